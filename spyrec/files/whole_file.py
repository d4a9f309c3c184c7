"""Writing a file whole or not at all, and never over what somebody else wrote.

A path that leads to a regular file, or to nothing yet, gets the file renamed into its place.  One that leads to a pipe
or a character device, or names a descriptor (``/dev/stdout``), is opened and written.  Anything else is refused.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, refuse
from spyrec.files.reading import open_regular
from spyrec.files.unfinished import unfinished_file

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

NOT_OURS = "SPY0752"
"""Code of a file that is not replaced, because spyrec did not write it."""

Content = bytes | Callable[[IO[bytes]], None]

_MOST_LINKS = 40


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file that spyrec writes: what messages call it, the code of one that cannot be written, its mark.

    ``is_ours``: whether a file carries the mark of this kind; the mark of another kind is none.
    """

    noun: str
    code: str
    is_ours: Callable[[IO[bytes]], bool]


@dataclass(frozen=True, slots=True)
class _Place:
    """What a path leads to: the file to replace, or where ``is_stream`` what is opened and written."""

    path: Path
    is_stream: bool
    mode: int | None
    """Permissions of the file that is there."""


def refuse_unwritable(path: Path, kind: FileKind, *, force: bool = False) -> None:
    """Refuse a path that could not be written, as far as can be said before any work is done.

    Errors: the kind's own, SPY0752 a file that spyrec did not write, without ``force``.
    """
    _checked_place(path, kind, force)


def write_file(path: Path, kind: FileKind, content: Content, *, force: bool = False) -> None:
    """Write a file of a kind; errors as :func:`refuse_unwritable`, and nothing is left behind then."""
    place = _checked_place(path, kind, force)
    try:
        _write(place, content)
    except OSError as error:
        raise refuse(kind.code, f"{kind.noun} cannot be written: {_reason(error)}", Location(str(path))) from None


def _checked_place(path: Path, kind: FileKind, force: bool) -> _Place:
    try:
        place = _place_of(path)
        is_foreign = place.mode is not None and not force and not _is_ours(place.path, kind)
    except OSError as error:
        raise refuse(kind.code, f"{kind.noun} cannot be written: {_reason(error)}", Location(str(path))) from None
    if is_foreign:
        raise refuse(NOT_OURS, f"{kind.noun} would replace a file that spyrec did not write", Location(str(path)))
    return place


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _is_ours(path: Path, kind: FileKind) -> bool:
    with open_regular(path) as file:
        return kind.is_ours(file)


def _place_of(path: Path) -> _Place:
    """Return what a path leads to; ``OSError`` says why nothing can be written there."""
    if not path.parent.is_dir():
        raise OSError(errno.ENOENT, f'the directory "{path.parent}" does not exist')
    is_descriptor = _descriptor(path) is not None
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise OSError(errno.ENOENT, "it is a link that leads nowhere") from None
        _require_writable(path.parent, f'the directory "{path.parent}"')
        return _Place(path, is_stream=False, mode=None)
    if is_descriptor or stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        _require_writable(path, "it")
        return _Place(path, is_stream=True, mode=None)
    if not stat.S_ISREG(mode):
        what = "directory" if stat.S_ISDIR(mode) else "block device" if stat.S_ISBLK(mode) else "socket"
        raise OSError(errno.EINVAL, f"it is a {what}")
    real = Path(os.path.realpath(path))
    _require_writable(real, "it")
    _require_writable(real.parent, f'the directory "{real.parent}"')
    return _Place(real, is_stream=False, mode=stat.S_IMODE(mode))


def _require_writable(path: Path, name: str) -> None:
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, f"{name} is not writable")


def _descriptor(path: Path) -> int | None:
    """Return the descriptor of this process that a path such as ``/dev/stdout`` leads to."""
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if re.fullmatch(rf"/proc/{os.getpid()}(/task/\d+)?/fd", folder) and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = Path(folder) / path.readlink()
    return None


def _write(place: _Place, content: Content) -> None:
    if place.is_stream:
        _write_stream(place.path, content)
        return
    with unfinished_file(place.path) as (temporary, handle):
        if place.mode is not None:
            os.fchmod(handle, place.mode)
        with os.fdopen(os.dup(handle), "wb") as file:
            _fill(file, content)
        temporary.replace(place.path)


def _fill(file: IO[bytes], content: Content) -> None:
    if isinstance(content, bytes):
        file.write(content)
    else:
        content(file)


def _write_stream(path: Path, content: Content) -> None:
    file = io.BufferedWriter(_Stream(_open_stream(path)))
    try:
        _fill(file, content)
        file.flush()
    finally:
        with suppress(OSError):  # what could not be flushed cannot be on closing either
            file.close()


def _open_stream(path: Path) -> int:
    """Open what is no file; a pipe that nobody reads is not waited for."""
    descriptor = _descriptor(path)
    if descriptor is not None:
        return os.dup(descriptor)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "nobody reads the pipe") from None
        raise
    os.set_blocking(handle, True)
    return handle


class _Stream(io.RawIOBase):
    """A descriptor that is written from its begin to its end: nothing is asked of its position."""

    def __init__(self, handle: int) -> None:
        super().__init__()
        self._handle = handle

    def writable(self) -> bool:
        """Whether it can be written: yes."""
        return True

    def write(self, data: Buffer, /) -> int:
        """Write some of the bytes; return how many."""
        return os.write(self._handle, data)

    def close(self) -> None:
        """Close the descriptor, once."""
        if not self.closed:
            super().close()
            os.close(self._handle)
