"""A trace as a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.runtime.whole_file import why_unwritable, write_whole


def refuse_unwritable_trace(path: Path) -> None:
    """Refuse a trace file whose directory is absent or closed, before any work is done; errors SPY0751."""
    why = why_unwritable(path)
    if why is not None:
        raise _unwritable(path, why)


def write_trace(path: Path, trace: Mapping[str, object]) -> None:
    """Write a trace as JSON, whole or not at all; the same trace gives the same bytes. Errors SPY0751."""
    refuse_unwritable_trace(path)
    # numbers that are not finite would make it no JSON: the times are sums of finite figures
    text = json.dumps(trace, separators=(",", ":"), allow_nan=False)
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise _unwritable(path, str(error.strerror)) from error


def _unwritable(path: Path, why: str) -> SpyrecError:
    return refuse(
        "SPY0751",
        f"the trace cannot be written: {why}",
        Location(str(path)),
        hint="name a file in an existing, writable directory",
    )
