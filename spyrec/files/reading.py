"""Opening files that others name: nothing is waited for, and no more is read than was meant."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import BufferedReader

NOT_REGULAR = "it is no regular file"


def open_regular(path: Path) -> BufferedReader:
    """Open a file to be read; ``OSError`` where it is a device, a pipe or anything else that is no file.

    It is asked of what was opened, so that nothing can take the path's place in between, and a pipe that nobody writes
    is not waited for.
    """
    # asked beforehand too: opening some devices does things
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, NOT_REGULAR, str(path))
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, NOT_REGULAR, str(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_at_most(path: Path, limit_bytes: int) -> bytes | None:
    """Return what a file, pipe or device that the user named holds; ``None`` where that is more than the limit."""
    with path.open("rb") as stream:
        content = stream.read(limit_bytes + 1)
    return content if len(content) <= limit_bytes else None
