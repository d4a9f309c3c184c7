"""Opening files that others name: nothing is waited for, and no more is read than was meant."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from io import BufferedReader

NOT_REGULAR = "it is no regular file"

STANDARD_INPUT = Path("-")
"""What stands for the standard input on a command line."""

CHUNK_BYTES = 1 << 20
"""Bytes that are read at a time."""


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


def open_named(path: Path) -> AbstractContextManager[BinaryIO]:
    """Open what the user named, to be read: a file, a pipe, a device; ``-`` is the standard input."""
    return nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else path.open("rb")


def read_at_most(path: Path, limit_bytes: int) -> bytes | None:
    """Return what a file, pipe or device that the user named holds; ``None`` where that is more than the limit."""
    with open_named(path) as stream:
        content = read_up_to(stream, limit_bytes)
    return content if len(content) <= limit_bytes else None


def read_up_to(stream: BinaryIO, limit_bytes: int) -> bytes:
    """Return the content, or a little more of it than the limit; memory is taken for what is there."""
    chunks: list[bytes] = []
    read_bytes = 0
    ahead = _bytes_ahead(stream)
    while read_bytes <= limit_bytes and (chunk := stream.read(ahead)):
        chunks.append(chunk)
        read_bytes += len(chunk)
    return b"".join(chunks)


def _bytes_ahead(stream: BinaryIO) -> int:
    """Return how much to read at a time: room for a whole chunk costs more than a small file does."""
    try:
        size_bytes = os.fstat(stream.fileno()).st_size  # a pipe says that it has no bytes
    except io.UnsupportedOperation:  # a stream in memory
        return CHUNK_BYTES
    return min(max(size_bytes + 1, io.DEFAULT_BUFFER_SIZE), CHUNK_BYTES)
