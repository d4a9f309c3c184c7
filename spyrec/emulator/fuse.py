"""Fusion: consecutive SuperDSCs run core by core, all of them on one core's part before the next core's.

What one stores another then finds in the processor's cache.  Every member still does all that it does alone, in the
members' order on each core, so that no one can tell as long as no core touches what another core stores: proved at load
from the bytes that each core touches.  Launches that someone watches, or whose arguments overlap, take each member by
itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from spyrec.emulator.engine import CoreParts, Executable, Integers
from spyrec.emulator.footprint import first_conflict
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.units import Unit

WORTHWHILE_ELEMENTS = 1 << 21
"""Elements of a member, over all cores, below which fusion does not pay: the calls per core take longer than the memory
(two tiled operations of 2**19 elements in eight rounds: 11.4 ms fused, 5.3 ms not)."""

_FEWEST_CORES = 4  # fewer parts than this would leave a thread waiting
_MOST_MEMBERS = 16


class FusedExecutable(Executable):
    """The members' executables, core by core."""

    def __init__(self, members: Sequence[PlannedCall]) -> None:
        self.members = tuple(item.executable for item in members)
        counts = [len(item.binding.bases) for item in members]
        self.rows = [slice(sum(counts[:place]), sum(counts[: place + 1])) for place in range(len(counts))]
        self.threads = members[0].setting.threads
        self.elements = sum(_elements(item) for item in members)

    def run(self, starts: Integers) -> None:
        """Execute every member once."""
        parts = [member.core_parts(starts[rows]) for member, rows in zip(self.members, self.rows, strict=True)]
        self.threads.run(starts.shape[1], self.elements, lambda first, past: _run_cores(parts, first, past))


def _run_cores(parts: Sequence[CoreParts], first: int, past: int) -> None:
    for core in range(first, past):
        for part in parts:
            part(core, core + 1)


def fuse(units: Sequence[Unit], worthwhile_elements: int = WORTHWHILE_ELEMENTS) -> list[Unit]:
    """Return the units with runs of consecutive ones fused, where no one can tell and where it pays."""
    groups: list[list[PlannedCall]] = []
    for unit in units:
        (planned,) = unit.members
        fits = groups and _fits(groups[-1], planned, worthwhile_elements)
        groups[-1].append(planned) if fits else groups.append([planned])
    return [Unit(tuple(group), _executable(group)) for group in groups]


def _executable(group: Sequence[PlannedCall]) -> Executable:
    return group[0].executable if len(group) == 1 else FusedExecutable(group)


def _elements(planned: PlannedCall) -> int:
    return planned.setting.cores * int(np.prod(list(planned.setting.extents.values()), dtype=np.int64))


def _fits(group: Sequence[PlannedCall], planned: PlannedCall, worthwhile_elements: int) -> bool:
    """Whether a call may join a group; a cheap look comes before the proof."""
    cores = planned.call.superdsc.core_ids
    if len(group) == _MOST_MEMBERS or len(cores) < _FEWEST_CORES or group[0].call.superdsc.core_ids != cores:
        return False
    if any(
        _elements(item) < worthwhile_elements or not item.executable.has_core_parts for item in (group[-1], planned)
    ):
        return False
    return all(_keeps_apart(earlier, planned) for earlier in group)


def _keeps_apart(earlier: PlannedCall, later: PlannedCall) -> bool:
    """Whether no core of one call touches what another core of the other call stores."""
    for left, right in product(range(len(earlier.binding.bases)), range(len(later.binding.bases))):
        stores = left == earlier.setting.output, right == later.setting.output
        if stores[0] and not _is_apart((earlier, left), (later, right)):
            return False
        if stores[1] and not stores[0] and not _is_apart((later, right), (earlier, left)):
            return False
    return True


def _is_apart(store: tuple[PlannedCall, int], other: tuple[PlannedCall, int]) -> bool:
    """Whether each core of ``other`` touches, of what the cores of ``store`` store, at most its own part."""
    (storing, target), (touching, position) = store, other
    base = storing.binding.bases[target]
    # LX is each core's own; bases are memories of their own unless arguments overlap, which a launch looks at.
    if base is None or touching.binding.bases[position] != base:
        return True
    # Distances hold in every round of the loops around only where both advance alike.
    if storing.binding.steps[target] != touching.binding.steps[position]:
        return False
    stored = storing.binding.runs[target], storing.binding.offsets[target]
    touched = touching.binding.runs[position], touching.binding.offsets[position]
    if len(stored[0]) == 0 or len(touched[0]) == 0:
        return True
    return first_conflict(stored, touched, range(len(stored[1]))) is None
