"""Files of bytes under names in a private directory, each whole, or taken for absent.

They are written by any number of processes at once: each writes a file of its own and renames it into its place.  What
a file holds is told by a checksum: one that was cut off or damaged is none.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from spyrec.dataclass import dataclass
from spyrec.files.private_directory import opened_private

MOST_BYTES = 1 << 24
"""Of one file; a compiled kernel has thousands."""

MOST_FILES = 2048
"""Files that are kept: where there are more the oldest half goes."""

_MARK = b"spyrec.kernel/1\n"
_CHECKSUM_BYTES = hashlib.sha256().digest_size
_SUFFIX = ".kernel"
_UNFINISHED = ".unfinished-"
_ABANDONED_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class KernelStore:
    """The files of one directory."""

    path: Path

    def read(self, name: str) -> bytes | None:
        """Return what is kept under a name; ``None`` where there is nothing, or nothing whole of this user's."""
        try:
            with opened_private(self.path) as folder:
                content = _content(folder, name + _SUFFIX)
        except OSError:
            return None
        begin = len(_MARK) + _CHECKSUM_BYTES
        if content is None or not content.startswith(_MARK):
            return None
        kept = content[begin:]
        return kept if hashlib.sha256(kept).digest() == content[len(_MARK) : begin] else None

    def sizes_bytes(self) -> dict[str, int]:
        """Return the size of each file that is kept, by its name there."""
        found: dict[str, int] = {}
        with suppress(OSError), opened_private(self.path) as folder, os.scandir(folder) as items:
            for item in items:
                with suppress(OSError):  # another process may have removed it
                    if item.name.endswith(_SUFFIX):
                        found[item.name] = item.stat(follow_symlinks=False).st_size
        return found

    def write(self, name: str, kept: bytes) -> None:
        """Keep bytes under a name; where they cannot be written nothing is kept."""
        content = _MARK + hashlib.sha256(kept).digest() + kept
        if len(content) > MOST_BYTES:
            return
        with suppress(OSError), opened_private(self.path) as folder:
            _write(folder, name + _SUFFIX, content)
            _make_room(folder)


def _content(folder: int, name: str) -> bytes | None:
    """Return the bytes of a regular file of this user's; ``None`` for anything else."""
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size > MOST_BYTES:
            return None
        return file.read(MOST_BYTES)


def _write(folder: int, name: str, content: bytes) -> None:
    unfinished = f"{_UNFINISHED}{token_hex(8)}"
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)
        raise


def _make_room(folder: int) -> None:
    """Remove what processes left that were ended while they wrote, and the oldest files where there are too many."""
    with os.scandir(folder) as found:
        files = {item.name: item.stat(follow_symlinks=False).st_mtime for item in found}
    abandoned = time.time() - _ABANDONED_SECONDS
    old = [name for name, moment in files.items() if name.startswith(_UNFINISHED) and moment < abandoned]
    kept = sorted((name for name in files if name.endswith(_SUFFIX)), key=files.__getitem__)
    if len(kept) > MOST_FILES:
        old += kept[: len(kept) - MOST_FILES // 2]
    for name in old:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
