"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO


def why_unwritable(path: Path) -> str | None:
    """Return why a file could not be written at ``path``, as far as can be said before trying."""
    if not path.parent.is_dir():
        return f'the directory "{path.parent}" does not exist'
    if path.is_dir():
        return "it is a directory"
    return None if os.access(path.parent, os.W_OK) else f'the directory "{path.parent}" is not writable'


def write_whole(path: Path, content: bytes | Callable[[IO[bytes]], None]) -> None:
    """Write bytes, or what a function writes, beside the place and move it there.

    An ``OSError`` leaves nothing behind.
    """
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
