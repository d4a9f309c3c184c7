"""A claim beside the figure that was measured, and whether it held."""

from __future__ import annotations

from benchmarks.measure import Figures, rounded


def at_least(what: str, measured: float | None, least: float) -> Figures:
    """Return the claim that ``measured`` is no less than ``least``; undecided where nothing was measured."""
    held = None if measured is None else measured >= least
    return {"claim": f"{what} >= {least:g}", "measured": _shown(measured), "held": held}


def below(what: str, measured: float, limit: float) -> Figures:
    """Return the claim that ``measured`` is less than ``limit``."""
    return {"claim": f"{what} < {limit:g}", "measured": _shown(measured), "held": measured < limit}


def _shown(measured: float | None) -> float | None:
    return None if measured is None else rounded(measured)
