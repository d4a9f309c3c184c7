"""A directory that is complete or absent: written beside its place, then renamed into it."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from spyrec.bundle.paths import is_inside
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.files.reading import open_regular
from spyrec.files.unfinished import unfinished_directory

EXISTS = "SPY0612"
"""Code of an output directory that exists already."""

CANNOT_WRITE = "SPY0613"
"""Code of an output that cannot be written."""

NOT_REPLACEABLE = "SPY0614"
"""Code of an existing output that --force does not replace, because it is no bundle."""

_WRITE_ELSEWHERE = "name an output on a disk with room, in a directory that you may write to"

MANIFEST_FILE = "manifest.json"
ENTRIES_FILE = "entries.json"
PROGRAM_FILE = "bundle.mlir"


class NewDirectory:
    """The directory while it is written; ``digests`` are the SHA-256 of the files so far, made while writing."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._folders: set[str] = {""}
        self._shared: dict[int, tuple[bytes, str]] = {}
        self.digests: dict[str, str] = {}

    def write(self, name: str, content: bytes, *, is_shared: bool = False) -> None:
        """Write one file; ``name`` is relative, ``/`` between its parts.

        ``is_shared``: further files will have the very same content; its digest is made once, and it is held for that.
        """
        _write_file(self._new_file(name), content)
        if is_shared and id(content) not in self._shared:
            self._shared[id(content)] = content, hashlib.sha256(content).hexdigest()
        known = self._shared.get(id(content))
        self.digests[name] = hashlib.sha256(content).hexdigest() if known is None else known[1]

    @contextmanager
    def stream(self, name: str) -> Generator[Callable[[memoryview | bytes], None]]:
        """Open one file; yield the function that takes its pieces."""
        digest = hashlib.sha256()
        with open(self._new_file(name), "wb") as stream:  # noqa: PTH123
            yield _writer(stream, digest.update)
        self.digests[name] = digest.hexdigest()

    def _new_file(self, name: str) -> str:
        """Return the path of a file that is not there yet, in a folder that is."""
        assert name not in self.digests, f"{name} is written twice"
        assert is_inside(name), name
        folder = name.rpartition("/")[0]
        if folder not in self._folders:
            os.makedirs(f"{self._root}/{folder}", exist_ok=True)  # noqa: PTH103 -- hundreds of them, as below
            self._folders.add(folder)
        return f"{self._root}/{name}"


def _write_file(path: str, content: bytes) -> None:
    """Write a file that is not there yet: a bundle has thousands, for which a stream's own calls would be half."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        written = os.write(handle, content)
        while written < len(content):
            written += os.write(handle, memoryview(content)[written:])
    finally:
        os.close(handle)


def _writer(stream: BinaryIO, update: Callable[[memoryview | bytes], None]) -> Callable[[memoryview | bytes], None]:
    def write(piece: memoryview | bytes) -> None:
        stream.write(piece)
        update(piece)

    return write


@contextmanager
def atomic_directory(path: Path, *, force: bool = False) -> Generator[NewDirectory]:
    """Yield a directory to fill; it appears at ``path`` when the block ends well, and not at all when it does not.

    ``force`` replaces an existing bundle, and nothing else.  Errors: SPY0612 the path exists, SPY0613 it cannot be
    written, SPY0614 what exists is no bundle.
    """
    target = path.absolute()
    _refuse_existing(target, path, force)
    try:
        with unfinished_directory(target) as temporary:
            yield NewDirectory(temporary)
            _move_into_place(temporary, target, force)
    except OSError as error:
        raise _cannot_write(path, error) from None


def refuse_unwritable(path: Path, *, force: bool = False) -> None:
    """Refuse early, before long work, what `atomic_directory` would refuse; errors as there."""
    target = path.absolute()
    _refuse_existing(target, path, force)
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK | os.X_OK):
        raise _cannot_write(path, None)


def _cannot_write(path: Path, error: OSError | None) -> SpyrecError:
    parent = path.absolute().parent
    if not parent.is_dir():
        return refuse(CANNOT_WRITE, f'directory "{parent}" does not exist', Location(str(path)), hint="create it first")
    reason = "permission denied" if error is None else (error.strerror or str(error)).lower()
    return refuse(CANNOT_WRITE, f"the output cannot be written: {reason}", Location(str(path)), hint=_WRITE_ELSEWHERE)


def _refuse_existing(target: Path, path: Path, force: bool) -> None:
    if not os.path.lexists(target):
        return
    if not force:
        raise refuse(EXISTS, "the output exists already", Location(str(path)), hint="pass --force to replace a bundle")
    if not is_bundle_directory(target):
        fact = "the output exists and is no bundle, so it is not replaced"
        raise refuse(NOT_REPLACEABLE, fact, Location(str(path)), hint="name another output, or remove it yourself")


def is_bundle_directory(path: Path) -> bool:
    """Whether a path is a directory (no link) that holds a manifest of ours, our entries or a ``bundle.mlir``."""
    if path.is_symlink() or not path.is_dir():
        return False
    if (path / PROGRAM_FILE).is_file():
        return True
    for name, kind in ((MANIFEST_FILE, b'"spyrec.bundle/'), (ENTRIES_FILE, b'"spyrec.entries/')):
        with suppress(OSError), open_regular(path / name) as stream:
            if kind in stream.read(4096):
                return True
    return False


def _move_into_place(temporary: Path, target: Path, force: bool) -> None:
    """Rename; an existing bundle changes places with the new one, so that there is one at any moment."""
    if not os.path.lexists(target):
        temporary.rename(target)
        return
    _refuse_existing(target, target, force)
    try:
        _exchange(temporary, target)
    except OSError as error:
        if error.errno not in _NO_EXCHANGE:
            raise
        _set_aside(temporary, target)


_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def _exchange(one: Path, other: Path) -> None:
    """Let two paths of a file system change places, at once."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _set_aside(temporary: Path, target: Path) -> None:
    """Replace where nothing can be exchanged: what is there is set aside first, and put back when the rename fails."""
    aside = target.parent / f".{target.name}.{secrets.token_hex(8)}.old"
    target.rename(aside)
    try:
        temporary.rename(target)
    except BaseException:
        if not os.path.lexists(target):
            aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)
