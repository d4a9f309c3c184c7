"""A trace as a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from spyrec.runtime.file_kinds import TRACE, TRACE_FORMAT
from spyrec.runtime.whole_file import refuse_unwritable, write_file


def refuse_unwritable_trace(path: Path, *, force: bool = False) -> None:
    """Refuse a trace file that could not be written, before any work is done; errors as :func:`write_trace`."""
    refuse_unwritable(path, TRACE, force=force)


def write_trace(path: Path, trace: Mapping[str, object], *, force: bool = False) -> None:
    """Write a trace as JSON, whole or not at all; the same trace gives the same bytes.

    Errors: SPY0751, SPY0752 a file that spyrec did not write, without ``force``.
    """
    # numbers that are not finite would make it no JSON: the times are sums of finite figures
    text = json.dumps({"format": TRACE_FORMAT, **trace}, separators=(",", ":"), allow_nan=False)
    write_file(path, TRACE, text.encode(), force=force)
