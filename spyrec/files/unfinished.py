"""Files and directories while they are written: beside their place, under a name of their own, and never left behind.

They are removed when the writing ends, well or not, and when the process is told to end (SIGTERM, SIGHUP).  A process
that is killed can remove nothing: what it leaves is locked by nobody, and the next one that writes there removes it.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import signal
import stat
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_NAME = re.compile(r"\..*\.[0-9a-f]{16}\.spyrec\.partial", re.DOTALL)
_LONGEST_PREFIX_BYTES = 128
"""Of the target's name that the name of the unfinished one begins with: file systems take 255 bytes in all."""

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def unfinished_directory(target: Path) -> Generator[Path]:
    """Yield a new directory beside ``target``, to be renamed there; what is left of it at the end is removed."""
    with _unfinished(target, _new_directory) as (path, handle):
        try:
            yield path
        finally:
            os.close(handle)


@contextmanager
def unfinished_file(target: Path, mode: int = 0o666) -> Generator[tuple[Path, int]]:
    """Yield path and descriptor of a new file beside ``target``; as :func:`unfinished_directory`.

    ``mode``: its permissions, less the umask.  The descriptor is closed at the end.
    """
    with _unfinished(target, lambda path: os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)) as (path, handle):
        try:
            yield path, handle
        finally:
            os.close(handle)


@contextmanager
def removed_when_told_to_end(path: Path) -> Generator[None]:
    """Remove a path when, inside, SIGTERM or SIGHUP ends the process; a program's own handlers are left alone."""
    with _removing() as remover:
        remover.path = path
        yield


def sweep(folder: Path) -> None:
    """Remove what processes that are no more have left unfinished in a folder; what a living one locks stays."""
    with suppress(OSError):
        names = [item.name for item in os.scandir(folder) if _NAME.fullmatch(item.name)]
        for name in names:
            with suppress(OSError):
                _sweep_one(folder / name)


def _sweep_one(path: Path) -> None:
    found = path.lstat()
    if found.st_uid != os.geteuid() or not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        # where locks are not to be had, nobody can tell whether the owner lives: it raises, and the path stays
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _leads_to(path, handle):
            _remove(path)
    finally:
        os.close(handle)


@contextmanager
def _unfinished(target: Path, create: Callable[[Path], int | None]) -> Generator[tuple[Path, int]]:
    """Yield a new path, locked, and the descriptor that locks it, which the caller closes."""
    sweep(target.parent)
    prefix = os.fsdecode(os.fsencode(target.name)[:_LONGEST_PREFIX_BYTES])
    with _removing() as remover:
        try:
            while True:
                path = remover.path = target.parent / f".{prefix}.{secrets.token_hex(8)}.spyrec.partial"
                handle = create(path)
                if handle is not None and _is_locked(path, handle):
                    break
                if handle is not None:
                    os.close(handle)
                # else a sweep came between making and locking it, and takes it away: another one is made
            yield path, handle
        finally:
            assert remover.path is not None
            _remove(remover.path)


def _new_directory(path: Path) -> int | None:
    path.mkdir()
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None


def _is_locked(path: Path, handle: int) -> bool:
    """Lock a path that was just made; whether it is still there, and nobody else's."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: no sweep removes it
    return _leads_to(path, handle)


def _leads_to(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _remove(path: Path) -> None:
    """Remove a file or a directory with all in it, as far as can be."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


class _Remover:
    """A handler of signals: removes one path, then does what was to be done before."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self._process = os.getpid()
        self._before: dict[int, _Remover | signal.Handlers] = {}

    def install(self) -> None:
        """Take the place of the system's own handling, or of another remover's, which comes next then."""
        for number in _ENDING_SIGNALS:
            before = signal.getsignal(number)
            if before is signal.SIG_DFL or isinstance(before, _Remover):
                self._before[number] = before if isinstance(before, _Remover) else signal.SIG_DFL
                signal.signal(number, self)

    def uninstall(self) -> None:
        """Put back what was there."""
        for number, before in self._before.items():
            if signal.getsignal(number) is self:
                signal.signal(number, before)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.path is not None and os.getpid() == self._process:  # a forked child removes nothing of its parent's
            _remove(self.path)
        before = self._before[number]
        if isinstance(before, _Remover):
            before(number, frame)
            return
        signal.signal(number, before)
        os.kill(os.getpid(), number)


@contextmanager
def _removing() -> Generator[_Remover]:
    """Yield a remover that takes the signals of this process inside; only the main thread can arrange it."""
    remover = _Remover()
    if threading.current_thread() is not threading.main_thread():
        yield remover
        return
    try:
        remover.install()
        yield remover
    finally:
        remover.uninstall()
