"""Directories of this user alone: for what must not come from anybody else, such as code that will be run."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from spyrec.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PrivateDirectory:
    """Where it is, and whether it was made just now."""

    path: Path
    is_new: bool


def private_directory(purpose: str, parent: Path | None = None) -> PrivateDirectory | None:
    """Return a directory that only this user can enter; ``None`` where there can be none.

    It lies in the directory for temporary files and has a random end of its name: a name that is known beforehand could
    be taken by others.  It is found again by its begin, its owner and its mode, which others cannot give it.
    """
    folder = Path(tempfile.gettempdir()) if parent is None else parent
    try:
        mode = folder.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return None  # anybody could put another directory in the place of ours
        prefix = f"{purpose}-"
        for name in sorted(item.name for item in os.scandir(folder) if item.name.startswith(prefix)):
            if is_private(folder / name):
                return PrivateDirectory(folder / name, is_new=False)
        return PrivateDirectory(Path(tempfile.mkdtemp(prefix=prefix, dir=folder)), is_new=True)
    except OSError:
        return None


def made_private(path: Path) -> bool:
    """Whether a path is a private directory that can be written to, now that it was made where nothing was."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):
        path.mkdir(mode=0o700)
    return is_private(path) and os.access(path, os.W_OK | os.X_OK)


def is_private(path: Path) -> bool:
    """Whether a path is a directory, no link, that this user owns and nobody else can enter."""
    with suppress(OSError), opened_private(path):
        return True
    return False


def why_not_private(path: Path) -> str | None:
    """Return what is wrong with a directory that :func:`made_private` does not give; ``None`` where nothing is."""
    if made_private(path):
        return None
    try:
        found = path.lstat()
    except OSError as error:
        return f"it cannot be made: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return "it is a link" if stat.S_ISLNK(found.st_mode) else "it is no directory"
    if found.st_uid != os.geteuid():
        return f"it belongs to user {found.st_uid}"
    mode = stat.S_IMODE(found.st_mode)
    return f"its mode is {mode:04o}: others can enter it" if mode & 0o077 else "it cannot be written to"


def is_ours_to_trust(path: Path) -> bool:
    """Whether what lies in a directory was put there by this user, the administrator or members of its group."""
    with suppress(OSError):
        found = path.stat()
        return found.st_uid in (os.geteuid(), 0) and not found.st_mode & stat.S_IWOTH
    return False


@contextmanager
def opened_private(path: Path) -> Generator[int]:
    """Hold a private directory open: what is named from its descriptor lies in it, whatever the path becomes.

    An ``OSError`` where it is a link or no directory, has another owner, or lets others in.
    """
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise PermissionError(f'the directory "{path}" is not of this user alone')
        yield handle
    finally:
        os.close(handle)
