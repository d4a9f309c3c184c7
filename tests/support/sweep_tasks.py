"""What the tests of the sweep's engine have workers do: nothing, wait, die, eat memory, kill who runs them."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path


def act(payload: bytes, _: Path) -> bytes:
    """Do what the payload says, ``{"act": .., "path": ..}``."""
    asked = json.loads(payload)
    match asked["act"]:
        case "hang":
            time.sleep(1000)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "kill worker":
            _count(Path(asked["path"]))
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(1000)
        case "kill worker once":
            if not _count(Path(asked["path"])):
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(1000)
        case "eat":
            bytearray(1 << 36)
        case "raise":
            raise ValueError("no good")
        case "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        case "full here":
            _fail_on_the_first_worker(Path(asked["path"]))
        case "no json":
            return b"{"
        case "wait":
            _wait(Path(asked["path"]))
        case _:
            pass
    return json.dumps({"did": asked["act"], "worker": os.getppid()}).encode()


def _count(path: Path) -> int:
    """Note one more start in a file; return how many there were."""
    with path.open("a+") as file:
        file.seek(0)
        before = len(file.read())
        file.write("x")
    return before


def _fail_on_the_first_worker(path: Path) -> None:
    """Find no room, wrapped as a writer of files does, on whichever worker comes here first."""
    with suppress(FileExistsError), path.open("x") as file:
        file.write(str(os.getppid()))
    time.sleep(0.05)  # so that the other worker has something to do, too
    if path.read_text() == str(os.getppid()):
        try:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            raise ValueError("the output cannot be written") from None


def _wait(path: Path) -> None:
    """Say who runs this, and wait until somebody says that it may end."""
    path.with_suffix(f".{os.getppid()}").touch()
    while not path.exists():
        time.sleep(0.01)


def look(payload: bytes, held: Path) -> bytes:
    """Return the inode and the files of a group, and which worker has them."""
    folder = held / json.loads(payload)
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    return json.dumps({"worker": os.getppid(), "inode": folder.stat().st_ino, "files": files}).encode()
