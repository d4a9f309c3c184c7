"""A directory of entries by key, of a bounded size: what stands there is data, held against its hash before it is used.

An entry is one file.  It appears whole, by a rename, so that any number of processes may fill the directory at once.
What is damaged, cut short, of another key or no file of ours counts as absent.  No link inside is followed.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from spyrec.files.private_directory import is_ours_to_trust
from spyrec.files.reading import read_up_to
from spyrec.files.unfinished import unfinished_file

_MARK = b"spyrec.entry/1\n"
_NAME = re.compile(r"[0-9a-f]{64}\.entry", re.ASCII)
_DIGEST_BYTES = 32


class EntryStore:
    """Entries in a directory that hold at most ``most_bytes`` together; keys are SHA-256 in hexadecimal.

    What was used least recently goes first: an entry that is found is touched.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        """Take a directory, or make it; ``OSError`` where there is none to use, or others can write to it."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_ours_to_trust(folder):
            raise PermissionError("others can write to it")
        self._folder = folder
        self._most_bytes = most_bytes

    def find(self, key: str) -> bytes | None:
        """Return the content of an entry, ``None`` where there is none that is whole."""
        path = self._path(key)
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
            with os.fdopen(handle, "rb") as stream:
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode) or found.st_size > self._most_bytes:
                    return None
                content = _checked(read_up_to(stream, self._most_bytes), key)
                if content is not None:
                    with suppress(OSError):  # somebody else's entry is used, and stays as old as it is
                        os.utime(handle)
                return content
        return None

    def keep(self, key: str, content: bytes) -> bool:
        """Keep a content under its key, and make room for it; return whether: what is larger than the store is not.

        ``OSError`` where it cannot be written.
        """
        head = _MARK + bytes.fromhex(key) + _digest(key, content)
        if len(head) + len(content) > self._most_bytes:
            return False
        path = self._path(key)
        with unfinished_file(path, 0o600) as (temporary, handle):
            with os.fdopen(os.dup(handle), "wb") as stream:
                stream.write(head)
                stream.write(content)
            temporary.replace(path)
        self._make_room(path.name)
        return True

    def _path(self, key: str) -> Path:
        name = f"{key}.entry"
        assert _NAME.fullmatch(name), key
        return self._folder / name

    def _make_room(self, newest: str) -> None:
        """Remove entries, the one longest unused first, until the others fit; other files are left alone."""
        ages: list[tuple[int, str, int]] = []
        with os.scandir(self._folder) as items:
            for item in items:
                with suppress(OSError):  # another process may have removed it
                    found = item.stat(follow_symlinks=False)
                    if _NAME.fullmatch(item.name) and stat.S_ISREG(found.st_mode):
                        ages.append((found.st_mtime_ns, item.name, found.st_size))
        surplus = sum(size_bytes for _, _, size_bytes in ages) - self._most_bytes
        for _, name, size_bytes in sorted(ages):
            if surplus <= 0:
                break
            if name != newest:
                with suppress(OSError):
                    (self._folder / name).unlink(missing_ok=True)
                surplus -= size_bytes


def _digest(key: str, content: bytes) -> bytes:
    digest = sha256(key.encode())
    digest.update(content)
    return digest.digest()


def _checked(text: bytes, key: str) -> bytes | None:
    """Return what an entry holds, ``None`` where it is not the entry of this key or not what was written."""
    begin = len(_MARK) + 2 * _DIGEST_BYTES
    head, content = text[:begin], text[begin:]
    return content if head == _MARK + bytes.fromhex(key) + _digest(key, content) else None
