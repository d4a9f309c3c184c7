"""Who called the runtime: the line that messages about asynchronous work name."""

from __future__ import annotations

import inspect
from pathlib import Path

_RUNTIME = str(Path(__file__).resolve().parent)


def call_site() -> str:
    """Return ``file:line in function`` of the innermost caller outside of the runtime."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_RUNTIME):
        frame = frame.f_back
    return "<start>" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
