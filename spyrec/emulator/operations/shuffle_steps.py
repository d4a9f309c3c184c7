"""Steps of a shuffle: boxes that cores copy out of the scratchpads of others.

No core stores where anybody loads: a shuffle's result lies apart from its source on every core (rule V7 inside one
core), and so the boxes need no order, and nothing has to be read first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.emulator.engine import Doers, Integers, KernelExecutable, Setting, StepRequest
from spyrec.emulator.geometry import extending_dims
from spyrec.emulator.kernels.copies import copy_work
from spyrec.emulator.kernels.nests import NO_TABLE
from spyrec.emulator.operations.bound_calls import BoundCalls
from spyrec.emulator.operations.pointwise_steps import step_of
from spyrec.emulator.operations.shuffle import coordinates_of
from spyrec.emulator.operations.spread_nest import is_forward, merged

Loops = tuple[tuple[int, int, int], ...]
"""Extent, then the steps of source and target in bytes; the innermost first."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Elements along a dim that one slice of the source holds; ``source`` and ``target``: bytes to the first one."""

    slot: int
    loops: Loops
    source: int
    target: int

    def over(self, count: int, apart: tuple[int, int] | None) -> _Run:
        """Return this run so many times, source and target so many bytes apart."""
        return self if apart is None else replace(self, loops=(*self.loops, (count, *apart)))


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Boxes with the same loops: ``cores[:, box]``, positions of those that hold source and target, and where there."""

    loops: Integers
    cores: Integers
    offsets: Integers


class ShuffleExecutable(KernelExecutable):
    """Each core copies what it shall own from the lowest core that owns it of the source; bits are copied."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._positions = setting.inputs[0], setting.output
        self._work = copy_work(setting.codec(setting.output).word_bytes, NO_TABLE)

    def steps(self, request: StepRequest) -> BoundCalls:
        """Return one step for all boxes with the same loops."""
        assert request.doers is Doers.THREADS, "cores copy from each other"
        used = request.starts[list(self._positions)]
        return BoundCalls(
            [
                step_of(
                    self._work, self._positions, np.take_along_axis(used, item.cores, axis=1) + item.offsets, item.loops
                )
                for item in self._cells
            ]
        )

    @cached_property
    def _cells(self) -> Sequence[_Cells]:
        """All boxes: looked for when the shuffle is first executed, for that takes some microseconds each."""
        source, target = (self.setting.superdsc.operands[position].distribution for position in self._positions)
        assert source is not None
        assert target is not None
        dims = extending_dims(self.setting.superdsc.operands[self.setting.output])
        owners: dict[tuple[int, ...], int] = {}
        for core, slices in enumerate(source.core_slices):
            owners.setdefault(tuple(slices[dim] for dim in dims), core)
        runs = {dim: self._runs_by_slot(dim) for dim in dims}
        found: dict[Loops, list[tuple[int, int, int, int]]] = {}
        for core, slices in enumerate(target.core_slices):
            for box in product(*(runs[dim][slices[dim]] for dim in dims)):
                owner = owners[tuple(run.slot for run in box)]
                loops = tuple(loop for run in box for loop in run.loops)
                places = sum(run.source for run in box), sum(run.target for run in box)
                found.setdefault(loops, []).append((owner, core, *places))
        return [_cells_of(loops, np.array(boxes, np.int64).T) for loops, boxes in found.items()]

    def _runs_by_slot(self, dim: str) -> Mapping[int, Sequence[_Run]]:
        """Return the runs along a dim of every slice of the target, by its number."""
        setting = self.setting
        source, target = (setting.superdsc.operands[position].distribution for position in self._positions)
        assert source is not None
        assert target is not None
        slots, places = (np.zeros(setting.superdsc.iteration[dim], np.int64) for _ in range(2))
        for slot in {slices[dim] for slices in source.core_slices}:
            own = coordinates_of(source, dim, slot)
            slots[own], places[own] = slot, np.arange(len(own))
        found: dict[int, Sequence[_Run]] = {}
        for slot in {slices[dim] for slices in target.core_slices}:
            wanted = coordinates_of(target, dim, slot)
            offsets = [
                setting.geometries[position].offsets(dim, own) * setting.expansion
                for position, own in zip(self._positions, (places[wanted], np.arange(len(wanted))), strict=True)
            ]
            found[slot] = _evenly(_evenly(_runs(slots[wanted], np.stack(offsets))))
        return found


def _runs(slots: Integers, offsets: Integers) -> Sequence[_Run]:
    """Return runs of elements that are as far apart as the first two; ``offsets``: [source or target, element]."""
    steps = np.diff(offsets, axis=1)
    is_next = (steps == steps[:, :1]).all(axis=0) & (slots[1:] == slots[:-1])
    firsts = np.flatnonzero(np.concatenate([[True], ~is_next]))
    counts = np.diff(firsts, append=len(slots))
    source_step, target_step = steps[:, 0].tolist() if steps.shape[1] else (0, 0)
    found = zip(slots[firsts].tolist(), counts.tolist(), *offsets[:, firsts].tolist(), strict=True)
    return [_Run(slot, ((count, source_step, target_step),), source, target) for slot, count, source, target in found]


def _evenly(runs: Sequence[_Run]) -> Sequence[_Run]:
    """Join consecutive runs that are alike and evenly apart to one with a loop more."""
    apart = [_apart(before, following) for before, following in pairwise(runs)]
    found: list[_Run] = []
    first = 0
    while first < len(runs):
        last = first
        while last < len(apart) and apart[last] is not None and apart[last] == apart[first]:
            last += 1
        found.append(runs[first].over(last - first + 1, apart[first] if last > first else None))
        first = last + 1
    return found


def _apart(run: _Run, following: _Run) -> tuple[int, int] | None:
    """Return the bytes of source and target from a run to one that is like it; ``None`` for one that is not."""
    if (run.slot, run.loops) != (following.slot, following.loops):
        return None
    return following.source - run.source, following.target - run.target


def _cells_of(loops: Loops, boxes: Integers) -> _Cells:
    """Return boxes as a nest from many origins; ``boxes``: source core, target core, bytes there, of each."""
    used = merged(sorted(([*loop] for loop in loops if loop[0] > 1), key=lambda loop: loop[:0:-1]))
    if not used or not is_forward(used[0]):
        used = [[1, 0, 0], *used]
    nest = [*used, [1, 0, 0]] if len(used) == 1 else used
    return _Cells(np.array(nest, np.int64), np.ascontiguousarray(boxes[:2]), np.ascontiguousarray(boxes[2:]))
