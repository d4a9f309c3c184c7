"""Where in the user's program a declaration stands: what takes the place of a JSON pointer."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import FrameType

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


@dataclass(frozen=True, slots=True)
class CallSite(Location):
    """File, line and column of a call; what the call says has no place of its own."""

    def child(self, *tokens: str | int) -> CallSite:
        """Return the same place: a Python program has no JSON pointers (``tokens`` are unused)."""
        del tokens
        return replace(self)


def call_site() -> CallSite:
    """Return where the innermost call from outside this package stands."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return CallSite()
    return CallSite(frame.f_code.co_filename, line=frame.f_lineno, column=_column(frame))


def _column(frame: FrameType) -> int:
    """Return the column (1-based) of the call that a frame is in; 1 where the interpreter keeps no columns."""
    position = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    return 1 if position is None or position[2] is None else position[2] + 1
