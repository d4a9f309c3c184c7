"""How good the plans are, part by part: ``python -m benchmarks planning`` or ``planning:division``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.measure import Figures
from benchmarks.planning_parts.division import division
from benchmarks.planning_parts.packing import packing
from benchmarks.planning_parts.shuffles import shuffles
from benchmarks.planning_parts.traffic import traffic

PARTS: Mapping[str, Callable[[], Figures]] = {
    "division": division,
    "packing": packing,
    "shuffles": shuffles,
    "traffic": traffic,
}
"""Name of a part -> what measures it, in the order of the report."""


def measure() -> Figures:
    """Return the figures of every part by name."""
    return {name: part() for name, part in PARTS.items()}
