"""Chains: units whose cores keep apart, so that threads run their own cores' parts of many dispatches without waiting.

Between two dispatches of a loop all threads otherwise wait for each other, which takes as long as a small tile.  No
wait is needed where no core ever touches what another core stores, in whichever rounds of the loops: that is proved at
load, over all dispatches of the units of a chain.  Every core still does all that it does, in the program's order.
Launches that someone watches, or whose arguments overlap, have no chains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.emulator.chain import Chain
from spyrec.emulator.engine import Integers
from spyrec.emulator.footprint import Owned, are_apart, merge, shifted
from spyrec.emulator.operations.bound_calls import is_worth_sharing
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.units import DispatchUnit, UnitLoop, Units, every_unit

_MOST_PARTS = 4
_PART_ELEMENTS = 3072
"""Elements of a dispatch for every part of a chain (at least two): threads take part after part, so that one that comes
late finds less left, but small parts of small tiles take longer (64x16 tiles of 4096 elements: 1.42 ms in 2 parts,
1.67 in 4; 342 tiles of 12288: 1.35 in 2, 1.26 in 4)."""

_MOST_RUNS = 1 << 16
"""Runs of bytes that the proof of one operand looks at: a program of more rounds keeps its waits, and loads at once."""

_MOST_MEMBERS = 64


def chained(units: Units, cores: int) -> Units:
    """Return a program's units with chains noted, of which no one can tell; ``cores``: of the device."""
    if not any(isinstance(item, UnitLoop) for item in units):
        return units
    found: dict[int, Chain] = {}
    latest: _Members | None = None
    for unit in every_unit(units):
        if latest is None or not latest.takes(unit):
            latest = _Members(Chain(_parts_for(unit), cores))
            if not latest.takes(unit):
                latest = None
                continue
        found[id(unit)] = latest.chain
    return _noted(units, found)


def _noted(units: Units, chains: Mapping[int, Chain]) -> Units:
    return tuple(
        replace(item, body=_noted(item.body, chains))
        if isinstance(item, UnitLoop)
        else replace(item, chain=chains.get(id(item)))
        for item in units
    )


def _is_even(unit: DispatchUnit, chain: Chain) -> bool:
    """Whether a unit is one call whose cores compute by themselves, as many of each part, or have little to do."""
    if len(unit.members) != 1 or not unit.executable.is_separable:
        return False
    counts = {len(positions) for positions in chain.positions(unit.members[0].call.superdsc.core_ids)}
    return len(counts) == 1 or not is_worth_sharing(_elements(unit))


def _elements(unit: DispatchUnit) -> int:
    setting = unit.members[0].setting
    return setting.cores * int(np.prod(list(setting.extents.values()), dtype=np.int64))


def _parts_for(unit: DispatchUnit) -> int:
    return min(_MOST_PARTS, max(2, _elements(unit) // _PART_ELEMENTS))


@dataclass(slots=True)
class _Members:
    """The calls of a chain so far; ``known``: what the operands of memories that a member stores to touch."""

    chain: Chain
    calls: list[PlannedCall] = field(default_factory=list[PlannedCall])
    known: dict[tuple[int, int], Owned | None] = field(default_factory=dict[tuple[int, int], "Owned | None"])

    def takes(self, unit: DispatchUnit) -> bool:
        """Add a unit if parts stay apart with it."""
        if not _is_even(unit, self.chain):
            return False
        planned = unit.members[0]
        calls = [*self.calls, planned]
        own = {base for base in planned.binding.bases if base is not None}
        stored = {item.binding.bases[item.setting.output] for item in calls} & own
        if len(calls) > _MOST_MEMBERS or not all(self._keeps_apart(calls, base) for base in stored):
            return False
        self.calls = calls
        return True

    def _keeps_apart(self, calls: Sequence[PlannedCall], base: int | None) -> bool:
        """Whether no part touches what another one stores in a memory; LX is each core's own."""
        stores: list[Owned] = []
        touches: list[Owned] = []
        for planned, position in _touching(calls, base):
            owned = self._owned(planned, position)
            if owned is None:
                return False
            touches.append(owned)
            if position == planned.setting.output:
                stores.append(owned)
        return are_apart(_union(stores), _union(touches))

    def _owned(self, planned: PlannedCall, position: int) -> Owned | None:
        key = id(planned), position
        if key not in self.known:
            self.known[key] = _owned(planned, position, self.chain)
        return self.known[key]


def _touching(calls: Sequence[PlannedCall], base: int | None) -> Iterator[tuple[PlannedCall, int]]:
    for planned in calls:
        for position, own in enumerate(planned.binding.bases):
            if own == base:
                yield planned, position


def _owned(planned: PlannedCall, position: int, chain: Chain) -> Owned | None:
    """Return what an operand touches in all rounds of the loops, part by part; ``None`` if that is too much to say."""
    binding = planned.binding
    runs, offsets = binding.runs[position], binding.offsets[position]
    moving = [(loop.values, step) for loop in planned.call.loops if (step := binding.steps[position].get(loop.number))]
    rounds = int(np.prod([len(values) for values, _ in moving], dtype=np.float64))
    if rounds == 0:  # a loop beside the one that never runs may be as long as it likes
        return np.zeros((0, 3), np.int64)
    if rounds * max(1, len(runs)) > _MOST_RUNS:
        return None
    shifts = np.zeros(1, np.int64)
    for values, step in moving:
        variable = np.arange(values.start, values.stop, values.step, dtype=np.int64)
        shifts = np.unique(shifts[:, None] + step * variable[None, :])
    found: list[Integers] = []
    for part, places in enumerate(chain.positions(planned.call.superdsc.core_ids)):
        own = merge(shifted(runs, np.unique(offsets[places])))
        if rounds * len(own) > _MOST_RUNS:
            return None
        found.append(_of_part(merge(shifted(own, shifts)), part))
    return np.concatenate(found)


def _of_part(runs: Integers, part: int) -> Owned:
    return np.column_stack([runs, np.full(len(runs), part, np.int64)])


def _union(items: Sequence[Owned]) -> Owned:
    everything = np.concatenate(items)
    parts = np.unique(everything[:, 2]).tolist()
    of_parts = [_of_part(merge(everything[everything[:, 2] == part, :2]), part) for part in parts]
    merged = np.concatenate([everything[:0], *of_parts])
    return merged[np.argsort(merged[:, 0], kind="stable")]
