"""Start-up: ``spyrec --help`` and ``--version`` in a process of their own, beside a bare Python; claim: under 0.3 s."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from benchmarks.measure import Figures, interleaved, rounded


def _process(*arguments: str) -> Callable[[], object]:
    command = [sys.executable, *arguments]
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 -- our own program


def measure() -> Figures:
    """Return the wall seconds of each."""
    candidates = {
        "help": _process("-m", "spyrec", "--help"),
        "version": _process("-m", "spyrec", "--version"),
        "python": _process("-c", "pass"),
    }
    seconds = interleaved(candidates, rounds=7)
    return {**{f"{name}_s": rounded(value) for name, value in seconds.items()}, "claim": "help_s < 0.3"}
