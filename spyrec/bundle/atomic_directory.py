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
from spyrec.files.packed_files import Content, PackedContent, digest_of, unpacked
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
    """The directory while it is written; ``digests`` are the SHA-256 of the files so far, made while writing.

    ``before``: the directory that it takes the place of.  What stands there with the same bytes is linked instead of
    written again: to make a file costs a file system ten to thirty times as much, and a bundle has thousands.
    """

    def __init__(self, root: Path, before: Path | None = None) -> None:
        self._root = str(root)
        self._before = None if before is None else _OldDirectory(before)
        self._folders: set[str] = {""}
        self._shared: dict[int, tuple[Content, str]] = {}
        self.digests: dict[str, str] = {}

    def write(self, name: str, content: Content, *, is_shared: bool = False) -> None:
        """Write one file; ``name`` is relative, ``/`` between its parts.

        ``is_shared``: further files will have the very same content; its digest is made once, and it is held for that.
        Raises ``DamagedPackError`` where a content that is still packed is not what it should be.
        """
        path = self._new_file(name)
        if self._before is None:
            _write_file(path, unpacked(content))
        elif not self._before.link(name, path, content):
            _write_file(path, unpacked(content))
            self._before.know(path)
        if is_shared and id(content) not in self._shared:
            self._shared[id(content)] = content, digest_of(content)
        known = self._shared.get(id(content))
        self.digests[name] = digest_of(content) if known is None else known[1]

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


class _OldDirectory:
    """A directory that is to be replaced: its files stay until the new one has its place."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._are_inside: dict[str, bool] = {}
        self._form: tuple[int, ...] | None = None
        self._has_links = True

    def know(self, path: str) -> None:
        """Take a file that was just made as what others of this process are like: its permissions and its owner."""
        self._form = self._form or _form(os.lstat(path))

    def link(self, name: str, path: str, content: Content) -> bool:
        """Give a file of the old directory its place in the new one too, if it is what would be written there.

        Whether it was: it has these bytes, the permissions and the owner of new files, and no other place, through
        which the new directory would change with another one.  Manifests and the list of entries are always new files:
        their time is that of the bundle.
        """
        is_manifest = name.rpartition("/")[2] in (MANIFEST_FILE, ENTRIES_FILE)
        if not self._has_links or self._form is None or is_manifest or not self._is_inside(name):
            return False
        old = f"{self._root}/{name}"
        try:
            handle = os.open(old, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            found = os.fstat(handle)
            size_bytes = content.size_bytes if isinstance(content, PackedContent) else len(content)
            is_alike = _form(found) == self._form and found.st_nlink == 1 and found.st_size == size_bytes
            if not is_alike or not _is_content(os.read(handle, size_bytes + 1), content):
                return False
            os.link(old, path, follow_symlinks=False)
        except OSError:  # a file system without links, or one that cannot be read any more
            self._has_links = False
            return False
        finally:
            os.close(handle)
        return True

    def _is_inside(self, name: str) -> bool:
        """Whether no symbolic link leads to a file's folder."""
        folder = f"{self._root}/{name}".rpartition("/")[0]
        if folder not in self._are_inside:
            self._are_inside[folder] = os.path.realpath(folder) == folder
        return self._are_inside[folder]


def _is_content(text: bytes, content: Content) -> bool:
    """Whether a text is a content; one that is still packed is told by its digest, and stays so."""
    return digest_of(text) == content.digest if isinstance(content, PackedContent) else text == content


def _form(found: os.stat_result) -> tuple[int, ...]:
    """Return what a file is beside its bytes: kind and permissions, owner, file system."""
    return found.st_mode, found.st_uid, found.st_gid, found.st_dev


def _writer(stream: BinaryIO, update: Callable[[memoryview | bytes], None]) -> Callable[[memoryview | bytes], None]:
    def write(piece: memoryview | bytes) -> None:
        stream.write(piece)
        update(piece)

    return write


@contextmanager
def atomic_directory(path: Path, *, force: bool = False) -> Generator[NewDirectory]:
    """Yield a directory to fill; it appears at ``path`` when the block ends well, and not at all when it does not.

    ``force`` replaces an existing bundle, and nothing else; its files that stay as they are keep their times.
    Errors: SPY0612 the path exists, SPY0613 it cannot be written, SPY0614 what exists is no bundle.
    """
    target = path.absolute()
    _refuse_existing(target, path, force)
    before = target if os.path.lexists(target) else None
    try:
        with unfinished_directory(target) as temporary:
            yield NewDirectory(temporary, before)
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
