"""One run of the Granite decoder block with ``--check``: seconds, and the largest error over its bound."""

from __future__ import annotations

from benchmarks.granite import run_with_check
from benchmarks.measure import Figures


def measure() -> Figures:
    """Return the figures of the run."""
    return run_with_check()
