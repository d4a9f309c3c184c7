"""Who called the runtime: the line that messages about asynchronous work name."""

from __future__ import annotations

import inspect
import os
from functools import lru_cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
_INNER = (f"{_PACKAGE / 'runtime'}{os.sep}", f"{_PACKAGE / 'exec'}{os.sep}")


@lru_cache(4096)
def _is_inner(filename: str) -> bool:
    return filename.startswith(_INNER)


def call_site() -> str:
    """Return ``file:line in function`` of the innermost caller outside of the runtime and the execution contract."""
    frame = inspect.currentframe()
    while frame is not None and _is_inner(frame.f_code.co_filename):
        frame = frame.f_back
    return "<start>" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
