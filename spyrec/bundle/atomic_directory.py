"""A directory that is complete or absent: written beside its place, then renamed into it."""

from __future__ import annotations

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

EXISTS = "SPY0612"
"""Code of an output directory that exists already."""

CANNOT_WRITE = "SPY0613"
"""Code of an output that cannot be written."""

NOT_REPLACEABLE = "SPY0614"
"""Code of an existing output that --force does not replace, because it is no bundle."""

_WRITE_ELSEWHERE = "name an output on a disk with room, in a directory that you may write to"

MANIFEST_FILE = "manifest.json"
PROGRAM_FILE = "bundle.mlir"


class NewDirectory:
    """The directory while it is written; ``digests`` are the SHA-256 of the files so far, made while writing."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders = {root}
        self.digests: dict[str, str] = {}

    def write(self, name: str, content: bytes) -> None:
        """Write one file; ``name`` is relative, ``/`` between its parts."""
        with self.stream(name) as write:
            write(content)

    @contextmanager
    def stream(self, name: str) -> Generator[Callable[[memoryview | bytes], None]]:
        """Open one file; yield the function that takes its pieces."""
        assert is_inside(name), name
        assert name not in self.digests, f"{name} is written twice"
        path = self._root / name
        if path.parent not in self._folders:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._folders.add(path.parent)
        digest = hashlib.sha256()
        with path.open("wb") as stream:
            yield _writer(stream, digest.update)
        self.digests[name] = digest.hexdigest()


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
    temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}.partial"
    try:
        temporary.mkdir()
    except OSError as error:
        raise _cannot_write(path, error) from None
    try:
        yield NewDirectory(temporary)
        _move_into_place(temporary, target, force)
    except OSError as error:
        raise _cannot_write(path, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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
    """Whether a path is a directory (no link) that holds a manifest of ours or a ``bundle.mlir``."""
    if path.is_symlink() or not path.is_dir():
        return False
    if (path / PROGRAM_FILE).is_file():
        return True
    with suppress(OSError), (path / MANIFEST_FILE).open("rb") as stream:
        return b'"spyrec.bundle/' in stream.read(4096)
    return False


def _move_into_place(temporary: Path, target: Path, force: bool) -> None:
    """Rename; an existing bundle is set aside first and put back when the rename fails."""
    if not os.path.lexists(target):
        temporary.rename(target)
        return
    _refuse_existing(target, target, force)
    aside = target.parent / f".{target.name}.{secrets.token_hex(8)}.old"
    target.rename(aside)
    try:
        temporary.rename(target)
    except OSError:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)
