"""Fusion: consecutive SuperDSCs run core by core, all of them on one core's part before the next core's.

What one stores another then finds in the processor's cache; where a core's part is too large for that, it is cut into
blocks (``blocks``).  Every member still does all that it does alone, in the members' order on each core and block, so
that no one can tell as long as none touches what another one stores: proved at load from the bytes that each touches.
Launches that someone watches, or whose arguments overlap, take each member by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np

from spyrec.emulator.blocks import BLOCK_BYTES, Cut, cuts_of
from spyrec.emulator.engine import Executable, Integers, KernelExecutable, StepRequest, movement
from spyrec.emulator.footprint import ByteFootprint
from spyrec.emulator.kernels.driver import BoxWork, StepRow, run_boxes
from spyrec.emulator.kernels.records import Held, table_of, written
from spyrec.emulator.operations.bound_calls import KernelStep
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.units import DispatchUnit

WORTHWHILE_ELEMENTS = 1 << 21
"""Elements of a member, over all cores, of which a unit needs two for fusion to pay: the calls per core otherwise take
longer than the memory (two tiled operations of 2**19 elements in eight rounds: 11.4 ms fused, 5.3 ms not)."""

_FEWEST_CORES = 4  # fewer parts than this would leave a thread waiting
_MOST_MEMBERS = 16


class FusedExecutable(Executable):
    """The members' operations, box by box: each core's box, or equal blocks of it; ``cuts``: one per member."""

    def __init__(self, members: Sequence[PlannedCall], cuts: Sequence[Cut] | None) -> None:
        self.members = tuple(members)
        self.cuts = cuts
        counts = [len(item.binding.bases) for item in members]
        self.rows = [slice(sum(counts[:place]), sum(counts[: place + 1])) for place in range(len(counts))]
        self.threads = members[0].setting.threads
        self.elements = sum(_elements(item) for item in members)
        self._bound: _Bound | None = None

    @property
    def blocks(self) -> int:
        """Blocks of a core's box."""
        return 1 if self.cuts is None else self.cuts[0].count

    def run(self, starts: Integers) -> None:
        """Execute every member once."""
        bound = self._bound
        moved = None if bound is None else movement(bound.starts, starts)
        if bound is None or moved is None:
            # Addresses are as a rule those of the launch before, and loops move all cores alike.
            bound, moved = self._bind(starts), np.zeros(len(starts), np.int64)
            self._bound = bound
        movements = np.zeros((len(bound.members), max(part.stop - part.start for part in self.rows)), np.int64)
        for place, member in enumerate(bound.members):
            own = moved[self.rows[member]]
            movements[place, : len(own)] = own
        held = Held()
        box_work = BoxWork(
            steps=held.at(bound.table),
            count=len(bound.table),
            moved=held.at(movements),
            moved_columns=movements.shape[1],
            boxes=bound.boxes,
        )
        self.threads.run(bound.boxes, self.elements, partial(run_boxes, held.at(written(box_work))))

    def _bind(self, starts: Integers) -> _Bound:
        steps: list[KernelStep] = []
        places: list[int] = []
        for place, item in enumerate(self.members):
            setting, own = item.setting, starts[self.rows[place]]
            if self.cuts is not None:
                cut = self.cuts[place]
                setting, own = cut.setting(setting), cut.starts(setting, own)
            assert isinstance(item.executable, KernelExecutable), "separable"
            found = item.executable.steps(StepRequest.boxes(setting, own)).steps
            steps += found
            places += [place] * len(found)
        boxes = starts.shape[1] * self.blocks
        assert all(step.tasks % boxes == 0 for step in steps)
        return _Bound(starts.copy(), steps, places, boxes)


class _Bound:
    """The steps bound to starts; ``members``: each step's member."""

    def __init__(self, starts: Integers, steps: Sequence[KernelStep], members: Sequence[int], boxes: int) -> None:
        self.starts = starts
        self.steps = tuple(steps)  # they keep alive what the table has the addresses of
        self.members = members
        self.boxes = boxes
        self.table = table_of(StepRow, [step.row for step in steps])


def fuse(
    units: Sequence[DispatchUnit], worthwhile_elements: int = WORTHWHILE_ELEMENTS, block_bytes: int = BLOCK_BYTES
) -> list[DispatchUnit]:
    """Return the units with runs of consecutive ones fused, where no one can tell and where it pays."""
    groups: list[list[PlannedCall]] = []
    for unit in units:
        (planned,) = unit.members
        fits = groups and _fits(groups[-1], planned)
        groups[-1].append(planned) if fits else groups.append([planned])
    worthwhile = [part for group in groups for part in _worthwhile(group, worthwhile_elements)]
    return [DispatchUnit(tuple(group), _executable(group, block_bytes)) for group in worthwhile]


def _worthwhile(group: list[PlannedCall], least_elements: int) -> list[list[PlannedCall]]:
    """Return what a group is cut into so that large members, and what is small between them, stay together."""
    large = [place for place, planned in enumerate(group) if _elements(planned) >= least_elements]
    if len(large) < 2:
        return [[planned] for planned in group]
    first, past = large[0], large[-1] + 1
    return [*([planned] for planned in group[:first]), group[first:past], *([planned] for planned in group[past:])]


def _executable(group: Sequence[PlannedCall], block_bytes: int) -> Executable:
    return group[0].executable if len(group) == 1 else FusedExecutable(group, cuts_of(group, block_bytes))


def _elements(planned: PlannedCall) -> int:
    return planned.setting.cores * int(np.prod(list(planned.setting.extents.values()), dtype=np.int64))


def _fits(group: Sequence[PlannedCall], planned: PlannedCall) -> bool:
    """Whether a call may join a group; a cheap look comes before the proof."""
    cores = planned.call.superdsc.core_ids
    if len(group) == _MOST_MEMBERS or len(cores) < _FEWEST_CORES or group[0].call.superdsc.core_ids != cores:
        return False
    if not group[-1].executable.is_separable or not planned.executable.is_separable:
        return False
    return all(_keeps_apart(earlier, planned) for earlier in group)


def _keeps_apart(earlier: PlannedCall, later: PlannedCall) -> bool:
    """Whether no core of one call touches what another core of the other call stores."""
    for left, right in product(range(len(earlier.binding.bases)), range(len(later.binding.bases))):
        # LX is each core's own; bases are memories of their own unless arguments overlap, which a launch looks at.
        if earlier.binding.bases[left] is None or earlier.binding.bases[left] != later.binding.bases[right]:
            continue
        stores = left == earlier.setting.output, right == later.setting.output
        if not any(stores):
            continue
        store, other = (earlier, left), (later, right)
        if not stores[0]:
            store, other = other, store
        if not _footprint(*other).keeps_out_of(_footprint(*store)):
            return False
    return True


def _footprint(planned: PlannedCall, position: int) -> ByteFootprint:
    binding = planned.binding
    stored = binding.runs[position] if position == planned.setting.output else None
    return ByteFootprint(
        binding.bases[position], binding.steps[position], binding.offsets[position], stored, binding.touched(position)
    )
