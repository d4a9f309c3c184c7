"""Divisions chosen together: neighbours that cut a tensor alike can keep it in the scratchpads (LX).

Every kernel is a variable over its candidate divisions, every tensor one over the ways it can lie in LX; a tensor in LX
saves each agreeing kernel the time of its bytes on the memory; one that does not agree may find it shuffled, which
takes time on the ring.  The least total time is found by variable elimination: exactly, as long as the tables stay
small.  What LX can hold at once is not a part of it: ``place-scratchpad`` leaves out what does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spyrec.hardware.target import RING_CORES
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, KernelGraph
from spyrec.ir.likeness import Answers, likeness
from spyrec.passes.base import NO_PLANNER, PipelineOptions
from spyrec.passes.divide_work.division_candidates import Candidate
from spyrec.passes.planning.divisions import Division
from spyrec.passes.planning.regions import BufferRegion, layout_of_region, whole_region
from spyrec.passes.planning.residency import Way, touched
from spyrec.passes.planning.shares import Share, share_of
from spyrec.passes.solvers.elimination import INFINITE, Factor, Table, minimise

_TICKS_PER_US = 1_000_000
"""Costs are whole picoseconds: sums of them do not depend on their order."""

_COPY_TICKS = 1_000
"""What a copy to or from LX costs beside its bytes, a nanosecond: of equal plans the one with fewer copies wins."""

_MOST_SHARES = 12
"""Ways to cut one tensor that are considered, those that most kernels offer first."""


@dataclass(frozen=True, slots=True)
class _State:
    """One way for a tensor to lie in LX, and the share that those who use it there have to have; neither: not in LX.

    Shuffled: its writers have the share, readers that have another one take a shuffle each.
    """

    way: Way | None = None
    share: Share | None = None


_IN_MEMORY = _State()


@dataclass(frozen=True, slots=True)
class _Touch:
    """A kernel touches a region of a tensor: its share by candidate (``None``: not in LX)."""

    kernel: int
    is_writer: bool
    shares: tuple[Share | None, ...]


_KernelTouch = tuple[int, BufferRegion, bool, tuple[Share | None, ...]]
"""An operand of a kernel, the region that it touches, whether it writes it, and its share by candidate."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A division for every kernel, and the tensors that the choice expects to be shuffled."""

    divisions: tuple[Division, ...]
    shuffled: frozenset[str] = frozenset()


def choose(graph: KernelGraph, candidates: Sequence[Sequence[Candidate]], options: PipelineOptions) -> Choice:
    """Return a division for every kernel of ``graph``, one of its ``candidates`` (best alone first, none empty)."""
    if options.lx_planner == NO_PLANNER:
        return Choice(tuple(items[0].division for items in candidates))
    return _Problem(graph, candidates, options).solved()


class _Problem:
    """The variables: kernels first, then the tensors that could lie in LX.

    What is asked of a kernel, a tensor or both is answered once for all that are alike; tables of one answer are one
    object, which the solver knows again.
    """

    def __init__(self, graph: KernelGraph, candidates: Sequence[Sequence[Candidate]], options: PipelineOptions) -> None:
        self._graph = graph
        self._bytes_per_us = float(options.profile.memory_bytes_per_us)
        self._usable = options.target.lx_usable_bytes
        self._profile = options.profile
        self._has_shuffles = options.has_shuffles and options.divides_for_shuffles
        self._trips = [graph.trips(kernel.loops) for kernel in graph.kernels]
        self._known = Answers()
        self._kinds = [
            self._known.number(likeness(graph, kernel), tuple(item.division for item in items))
            for kernel, items in zip(graph.kernels, candidates, strict=True)
        ]
        self._candidates = [
            self._known.answer(("distinct", kind, id(items)), lambda k=kernel, c=items: _distinct(k, c))
            for kernel, items, kind in zip(graph.kernels, candidates, self._kinds, strict=True)
        ]

    def solved(self) -> Choice:
        """Return the divisions of least total time."""
        variables: list[tuple[str, Sequence[_State]]] = []
        domains = [len(items) for items in self._candidates]
        factors = [Factor((number,), self._alone(number)) for number in range(len(domains))]
        every = self._touches()
        parted = {name for (name, region) in every if region != whole_region(self._graph.buffers[name])}
        for (name, region), touches in every.items():
            buffer = self._graph.buffers[name]
            states = self._states_of(buffer, region, touches, is_parted=name in parted)
            if len(states) == 1:
                continue
            variable = len(domains)
            domains.append(len(states))
            variables.append((name, states))
            moved = self._ticks(_region_bytes(buffer, region))
            factors.append(Factor((variable,), self._state_costs(moved, region, states)))
            factors.extend(Factor((touch.kernel, variable), self._agreement(moved, states, touch)) for touch in touches)
        values = minimise(domains, factors).values
        divisions = tuple(items[value].division for items, value in zip(self._candidates, values, strict=False))
        lying = zip(variables, values[len(divisions) :], strict=True)
        shuffled = frozenset(name for (name, states), value in lying if states[value].way is Way.SHUFFLED)
        return Choice(divisions, shuffled)

    def _touches(self) -> Mapping[tuple[str, BufferRegion], list[_Touch]]:
        found: dict[tuple[str, BufferRegion], list[_Touch]] = {}
        for number, kernel in enumerate(self._graph.kernels):
            kind, items = self._kinds[number], self._candidates[number]
            for position, region, is_writer, shares in self._known.answer(
                ("touched by", kind, id(items)), lambda k=kernel, c=items: self._touched_by(k, c)
            ):
                name = kernel.uses[position].buffer
                found.setdefault((name, region), []).append(_Touch(number, is_writer, shares))
        return found

    def _touched_by(self, kernel: Kernel, items: Sequence[Candidate]) -> list[_KernelTouch]:
        """Return each region of a buffer that a kernel touches, by the first of its operands there."""
        positions: dict[tuple[str, BufferRegion, bool], list[int]] = {}
        undivided = (1,) * len(kernel.placed.variables)
        for position, use in enumerate(kernel.uses):
            region, _ = self._touched(kernel, position, undivided)
            positions.setdefault((use.buffer, region, position == len(kernel.inputs)), []).append(position)
        return [
            (places[0], region, is_writer, self._shares(kernel, items, region, places))
            for (_, region, is_writer), places in positions.items()
        ]

    def _shares(
        self, kernel: Kernel, items: Sequence[Candidate], region: BufferRegion, positions: Sequence[int]
    ) -> tuple[Share | None, ...]:
        found: list[Share | None] = []
        for candidate in items:
            touches = [self._touched(kernel, position, candidate.division) for position in positions]
            shares = {share if part == region else None for part, share in touches}
            share = shares.pop()
            is_usable = not shares and share is not None and not share.is_replicated
            found.append(share if is_usable and share is not None and share.size_bytes <= self._usable else None)
        return tuple(found)

    def _touched(self, kernel: Kernel, position: int, division: Division) -> tuple[BufferRegion, Share | None]:
        return touched(self._graph.buffers[kernel.uses[position].buffer], kernel, position, division)

    def _states_of(
        self, buffer: KernelBuffer, region: BufferRegion, touches: Sequence[_Touch], *, is_parted: bool
    ) -> Sequence[_State]:
        """Return the ways of a region to lie in LX, and not to; alike for touches of the same shares."""
        touching = tuple((id(touch.shares), touch.is_writer, self._trips[touch.kernel]) for touch in touches)
        is_intermediate, is_whole = buffer.role is BufferRole.INTERMEDIATE, region == whole_region(buffer)
        key = ("states", is_intermediate, is_whole, is_parted, self._graph.trips(region.loops), touching)
        return self._known.answer(key, lambda: self._states(buffer, region, touches, is_parted=is_parted))

    def _states(
        self, buffer: KernelBuffer, region: BufferRegion, touches: Sequence[_Touch], *, is_parted: bool
    ) -> list[_State]:
        offers: dict[Share, int] = {}
        for touch in touches:
            for share in dict.fromkeys(touch.shares):
                if share is not None:
                    offers[share] = offers.get(share, 0) + self._trips[touch.kernel]
        rounds = self._graph.trips(region.loops)
        shared = [share for share, trips in offers.items() if trips > rounds]
        shared.sort(key=lambda share: -offers[share])
        writers = [touch for touch in touches if touch.is_writer]
        is_whole = region == whole_region(buffer)
        states = [_IN_MEMORY]
        for share in shared[:_MOST_SHARES]:
            if is_whole and buffer.role is BufferRole.INTERMEDIATE and all(share in touch.shares for touch in touches):
                states.append(_State(Way.RESIDENT, share))
            if is_whole and len(writers) == 1 and share in writers[0].shares:
                states.append(_State(Way.DRAINED, share))
            if len(writers) < 2 and sum(self._trips[touch.kernel] for touch in touches if not touch.is_writer) > rounds:
                states.append(_State(Way.STAGED, share))
        if self._has_shuffles and is_whole and buffer.role is BufferRole.INTERMEDIATE and writers:
            states += [
                _State(Way.SHUFFLED, share)
                for share in dict.fromkeys(writers[0].shares)
                if share is not None and self._may_move(share, touches)
            ]
        if is_parted:  # what is read in part has to be in device memory
            return [state for state in states if state.way not in {Way.RESIDENT, Way.SHUFFLED}]
        return states

    def _may_move(self, share: Share, touches: Sequence[_Touch]) -> bool:
        """Whether all writers offer a share and some readers only others that a shuffle can bring it to."""
        readers = [touch.shares for touch in touches if not touch.is_writer]
        return (
            all(share in touch.shares for touch in touches if touch.is_writer)
            and not all(share in offers for offers in readers)
            and all(share in offers or any(self._fits_beside(share, other) for other in offers) for offers in readers)
        )

    def _fits_beside(self, share: Share, other: Share | None) -> bool:
        """Whether a shuffle can bring a tensor from one share to another, both in LX for a while.

        Shares over dims of which one is taken apart are not told alike: no copy has both.
        """
        if other is None or len(other.slices) != len(share.slices) or len(other.extents) != len(share.extents):
            return False
        return share.size_bytes + other.size_bytes <= self._usable

    def _shuffle_ticks(self, share: Share) -> int:
        """Return about what a shuffle takes: all that a core gets passes a quarter of the ring."""
        links = min(len(share.slices) / 2, RING_CORES / 4)
        ring_us = share.size_bytes * links / self._profile.ring_bytes_per_us
        return round((ring_us + share.size_bytes / self._profile.vector_bytes_per_us) * _TICKS_PER_US)

    def _ticks(self, size_bytes: int) -> int:
        return round(size_bytes / self._bytes_per_us * _TICKS_PER_US)

    def _alone(self, number: int) -> Table:
        items, trips = self._candidates[number], self._trips[number]
        return self._known.answer(
            ("alone", id(items), trips),
            lambda: np.array([round(item.cost_us * _TICKS_PER_US) * trips for item in items], np.int64),
        )

    def _state_costs(self, moved: int, region: BufferRegion, states: Sequence[_State]) -> Table:
        taken = moved * self._graph.trips(region.loops) + _COPY_TICKS
        copied = (Way.DRAINED, Way.STAGED)
        key = ("state costs", taken, id(states))
        return self._known.answer(
            key, lambda: np.array([taken if state.way in copied else 0 for state in states], np.int64)
        )

    def _agreement(self, moved: int, states: Sequence[_State], touch: _Touch) -> Table:
        """What a kernel saves where it finds the tensor in LX cut as it cuts it, by candidate and state."""
        trips = self._trips[touch.kernel]
        key = ("agreement", moved, trips, id(states), id(touch.shares), touch.is_writer)
        return self._known.answer(key, lambda: self._savings(moved, trips, states, touch))

    def _savings(self, moved: int, trips: int, states: Sequence[_State], touch: _Touch) -> Table:
        saved = moved * trips
        table = np.zeros((len(touch.shares), len(states)), np.int64)
        for column, state in enumerate(states):
            if state.share is None or (touch.is_writer and state.way is Way.STAGED):
                continue
            is_moved = state.way is Way.SHUFFLED and not touch.is_writer
            shuffled = self._shuffle_ticks(state.share) * trips if is_moved else 0
            other = INFINITE if touch.is_writer or state.way is Way.RESIDENT or is_moved else 0
            for row, share in enumerate(touch.shares):
                if share == state.share:
                    table[row, column] = -saved
                elif is_moved and self._fits_beside(state.share, share):
                    table[row, column] = shuffled - saved
                else:
                    table[row, column] = other
        return table


def _distinct(kernel: Kernel, items: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the best candidate of each combination of shares."""
    found: dict[tuple[Share | None, ...], Candidate] = {}
    for candidate in items:
        key = tuple(share_of(kernel, position, candidate.division) for position in range(len(kernel.uses)))
        found.setdefault(key, candidate)
    return tuple(found.values())


def _region_bytes(buffer: KernelBuffer, region: BufferRegion) -> int:
    layout = layout_of_region(buffer.placed, buffer.type.shape, region.shape)
    return buffer.placed.size_bytes if layout is None else layout.size_bytes
