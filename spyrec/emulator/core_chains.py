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
from spyrec.emulator.chain import Chain, CoreParts
from spyrec.emulator.engine import Integers
from spyrec.emulator.footprint import Owned, are_apart, merge, shifted
from spyrec.emulator.operations.bound_calls import is_worth_sharing
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.units import DispatchUnit, UnitLoop, Units, every_unit

_MOST_SHARED = 4
_SHARED_ELEMENTS = 3072
"""Parts that threads share, at most and of so many elements of a dispatch (at least two): small parts of small tiles
take longer (64x16 tiles of 4096 elements on two threads: 1.42 ms in 2 parts, 1.67 in 4)."""

_FEWEST_ELEMENTS = 256
"""Elements of a dispatch for every part beyond these: where a part's bytes lie together from round to round, the fewer
cores go along, the fewer places the processor has to follow (342 tiles of 12288 elements, 32 stick columns: 0.92 of the
time in 8 parts, 0.73 in 32; tiles whose rows are the cores': 1.04 in 8 parts, 1.5 in 32, which cut each column)."""

_MOST_RUNS = 1 << 16
"""Runs of bytes that the proof of one operand looks at: a program of more rounds keeps its waits, and loads at once."""

_MOST_MEMBERS = 64


def chained(units: Units, cores: int) -> Units:
    """Return a program's units with chains noted, of which no one can tell; ``cores``: of the device."""
    if not any(isinstance(item, UnitLoop) for item in units):
        return units
    found: dict[int, Chain] = {}
    waiting = list(every_unit(units))
    while waiting:
        members, chain = _longest(waiting, cores)
        taken = len(members.calls)
        if taken:
            found |= dict.fromkeys(map(id, waiting[:taken]), chain)
        waiting = waiting[max(1, taken) :]
    return _noted(units, found)


def _longest(units: Sequence[DispatchUnit], cores: int) -> tuple[_Members, Chain]:
    """Return the first ones of some units that share a chain, in as many parts as suit them and keep apart."""
    members = _grown(units, CoreParts(_shared_parts(units[0]), cores))
    uncut = _uncut_parts(members)
    if uncut > members.parts.count:
        finer = _grown(units, CoreParts(uncut, cores))
        members = finer if len(finer.calls) == len(members.calls) else members
    return members, Chain(members.parts, min(members.parts.count, uncut))


def _grown(units: Sequence[DispatchUnit], parts: CoreParts) -> _Members:
    members = _Members(parts)
    for unit in units:
        if not members.takes(unit):
            break
    return members


def _noted(units: Units, chains: Mapping[int, Chain]) -> Units:
    return tuple(
        replace(item, body=_noted(item.body, chains))
        if isinstance(item, UnitLoop)
        else replace(item, chain=chains.get(id(item)))
        for item in units
    )


def _is_even(unit: DispatchUnit, parts: CoreParts) -> bool:
    """Whether a unit is one call whose cores compute by themselves, as many of each part, or have little to do."""
    if len(unit.members) != 1 or not unit.executable.is_separable:
        return False
    counts = {len(positions) for positions in parts.positions(unit.members[0].call.superdsc.core_ids)}
    return len(counts) == 1 or not is_worth_sharing(_elements(unit.members[0]))


def _elements(planned: PlannedCall) -> int:
    setting = planned.setting
    return setting.cores * int(np.prod(list(setting.extents.values()), dtype=np.int64))


def _shared_parts(unit: DispatchUnit) -> int:
    return _MOST_SHARED if _elements(unit.members[0]) >= _MOST_SHARED * _SHARED_ELEMENTS else 2


def _uncut_parts(members: _Members) -> int:
    """Return the most parts that cut no run of bytes of device memory that the calls' cores touch together.

    What every core touches alike counts for none; calls that touch nothing else keep their parts.
    """
    calls, cores = members.calls, members.parts.cores
    whole = _runs_touched(calls, CoreParts(1, cores))
    if whole == 0:
        return members.parts.count
    found, most = 1, min(cores, max(map(_elements, calls)) // _FEWEST_ELEMENTS)
    while 2 * found <= most and _runs_touched(calls, CoreParts(2 * found, cores)) <= whole:
        found *= 2
    return found


def _runs_touched(calls: Sequence[PlannedCall], parts: CoreParts) -> int:
    """Return how many runs the parts of one execution of each call touch."""
    found = 0
    for planned in calls:
        binding = planned.binding
        for base, offsets, runs in zip(binding.bases, binding.offsets, binding.runs, strict=True):
            if base is None or len(np.unique(offsets)) == 1:
                continue
            for places in parts.positions(planned.call.superdsc.core_ids):
                found += len(merge(shifted(runs, np.unique(offsets[places]))))
    return found


@dataclass(slots=True)
class _Members:
    """The calls of a chain so far; ``known``: what the operands of memories that a member stores to touch."""

    parts: CoreParts
    calls: list[PlannedCall] = field(default_factory=list[PlannedCall])
    known: dict[tuple[int, int], Owned | None] = field(default_factory=dict[tuple[int, int], "Owned | None"])

    def takes(self, unit: DispatchUnit) -> bool:
        """Add a unit if parts stay apart with it."""
        if not _is_even(unit, self.parts):
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
            self.known[key] = _owned(planned, position, self.parts)
        return self.known[key]


def _touching(calls: Sequence[PlannedCall], base: int | None) -> Iterator[tuple[PlannedCall, int]]:
    for planned in calls:
        for position, own in enumerate(planned.binding.bases):
            if own == base:
                yield planned, position


def _owned(planned: PlannedCall, position: int, parts: CoreParts) -> Owned | None:
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
    for part, places in enumerate(parts.positions(planned.call.superdsc.core_ids)):
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
