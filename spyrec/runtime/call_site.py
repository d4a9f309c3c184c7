"""Who called the runtime: the line that messages about asynchronous work name."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
_INNER = (f"{_PACKAGE / 'runtime'}{os.sep}", f"{_PACKAGE / 'exec'}{os.sep}")


_INNER_FILES: set[str] = set()
"""Files of the runtime that calls were seen in: most frames that are asked about."""


def _is_inner(filename: str) -> bool:
    if filename.startswith(_INNER):
        _INNER_FILES.add(filename)
        return True
    return False


def call_site() -> str:
    """Return ``file:line in function`` of the innermost caller outside of the runtime and the execution contract."""
    frame, inner = inspect.currentframe(), _INNER_FILES  # a frame that is kept keeps all that its callers have
    while frame is not None:
        filename = frame.f_code.co_filename
        if filename not in inner and not _is_inner(filename):
            return f"{filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back
    return "<start>"
