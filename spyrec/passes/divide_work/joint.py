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
from spyrec.passes.base import NO_PLANNER, PipelineOptions
from spyrec.passes.divide_work.division_candidates import Candidate
from spyrec.passes.planning.divisions import Division
from spyrec.passes.planning.regions import BufferRegion, layout_of_region, whole_region
from spyrec.passes.planning.residency import Way, touched
from spyrec.passes.planning.shares import Share, share_of
from spyrec.passes.solvers.elimination import INFINITE, Factor, minimise

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


@dataclass(frozen=True, slots=True)
class Choice:
    """A division for every kernel, and the tensors that the choice expects to be shuffled."""

    divisions: tuple[Division, ...]
    shuffled: frozenset[str] = frozenset()


def choose(graph: KernelGraph, candidates: Sequence[Sequence[Candidate]], options: PipelineOptions) -> Choice:
    """Return a division for every kernel of ``graph``, one of its ``candidates`` (best alone first, none empty)."""
    if options.lx_planner == NO_PLANNER:
        return Choice(tuple(items[0].division for items in candidates))
    problem = _Problem(graph, tuple(_distinct(k, c) for k, c in zip(graph.kernels, candidates, strict=True)), options)
    return problem.solved()


def _distinct(kernel: Kernel, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the best candidate of each combination of shares."""
    found: dict[tuple[Share | None, ...], Candidate] = {}
    for candidate in candidates:
        key = tuple(share_of(kernel, position, candidate.division) for position in range(len(kernel.uses)))
        found.setdefault(key, candidate)
    return tuple(found.values())


class _Problem:
    """The variables: kernels first, then the tensors that could lie in LX."""

    def __init__(
        self, graph: KernelGraph, candidates: tuple[tuple[Candidate, ...], ...], options: PipelineOptions
    ) -> None:
        self._graph = graph
        self._candidates = candidates
        self._bytes_per_us = float(options.profile.memory_bytes_per_us)
        self._usable = options.target.lx_usable_bytes
        self._profile = options.profile
        self._has_shuffles = options.has_shuffles and options.divides_for_shuffles
        self._trips = [graph.trips(kernel.loops) for kernel in graph.kernels]

    def solved(self) -> Choice:
        """Return the divisions of least total time."""
        known: list[tuple[str, Sequence[_State]]] = []
        domains = [len(items) for items in self._candidates]
        factors = [self._alone(number, items) for number, items in enumerate(self._candidates)]
        every = self._touches()
        parted = {name for (name, region) in every if region != whole_region(self._graph.buffers[name])}
        for (name, region), touches in every.items():
            buffer = self._graph.buffers[name]
            states = self._states(buffer, region, touches)
            if name in parted:  # what is read in part has to be in device memory
                states = [state for state in states if state.way not in {Way.RESIDENT, Way.SHUFFLED}]
            if len(states) == 1:
                continue
            variable = len(domains)
            domains.append(len(states))
            known.append((name, states))
            moved = self._ticks(_region_bytes(buffer, region))
            factors.append(self._state_costs(moved, region, states, variable))
            factors.extend(self._agreement(moved, states, touch, variable) for touch in touches)
        values = minimise(domains, factors).values
        divisions = tuple(items[value].division for items, value in zip(self._candidates, values, strict=False))
        lying = zip(known, values[len(divisions) :], strict=True)
        shuffled = frozenset(name for (name, states), value in lying if states[value].way is Way.SHUFFLED)
        return Choice(divisions, shuffled)

    def _touches(self) -> Mapping[tuple[str, BufferRegion], list[_Touch]]:
        found: dict[tuple[str, BufferRegion], list[_Touch]] = {}
        for number, kernel in enumerate(self._graph.kernels):
            positions: dict[tuple[str, BufferRegion, bool], list[int]] = {}
            undivided = (1,) * len(kernel.placed.variables)
            for position, use in enumerate(kernel.uses):
                region, _ = touched(self._graph.buffers[use.buffer], kernel, position, undivided)
                positions.setdefault((use.buffer, region, position == len(kernel.inputs)), []).append(position)
            for (name, region, is_writer), places in positions.items():
                touch = _Touch(number, is_writer, self._shares(number, region, places))
                found.setdefault((name, region), []).append(touch)
        return found

    def _shares(self, number: int, region: BufferRegion, positions: Sequence[int]) -> tuple[Share | None, ...]:
        kernel = self._graph.kernels[number]
        found: list[Share | None] = []
        for candidate in self._candidates[number]:
            touches = [self._touched(kernel, position, candidate.division) for position in positions]
            shares = {share if part == region else None for part, share in touches}
            share = shares.pop()
            is_usable = not shares and share is not None and not share.is_replicated
            found.append(share if is_usable and share is not None and share.size_bytes <= self._usable else None)
        return tuple(found)

    def _touched(self, kernel: Kernel, position: int, division: Division) -> tuple[BufferRegion, Share | None]:
        return touched(self._graph.buffers[kernel.uses[position].buffer], kernel, position, division)

    def _states(self, buffer: KernelBuffer, region: BufferRegion, touches: Sequence[_Touch]) -> list[_State]:
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

    def _alone(self, number: int, items: Sequence[Candidate]) -> Factor:
        trips = self._trips[number]
        costs = [round(item.cost_us * _TICKS_PER_US) * trips for item in items]
        return Factor((number,), np.array(costs, np.int64))

    def _state_costs(self, moved: int, region: BufferRegion, states: Sequence[_State], variable: int) -> Factor:
        moved *= self._graph.trips(region.loops)
        copied = (Way.DRAINED, Way.STAGED)
        costs = [moved + _COPY_TICKS if state.way in copied else 0 for state in states]
        return Factor((variable,), np.array(costs, np.int64))

    def _agreement(self, moved: int, states: Sequence[_State], touch: _Touch, variable: int) -> Factor:
        """What a kernel saves where it finds the tensor in LX cut as it cuts it, by candidate and state."""
        saved = moved * self._trips[touch.kernel]
        table = np.zeros((len(touch.shares), len(states)), np.int64)
        for column, state in enumerate(states):
            if state.share is None or (touch.is_writer and state.way is Way.STAGED):
                continue
            is_moved = state.way is Way.SHUFFLED and not touch.is_writer
            shuffled = self._shuffle_ticks(state.share) * self._trips[touch.kernel] if is_moved else 0
            other = INFINITE if touch.is_writer or state.way is Way.RESIDENT or is_moved else 0
            for row, share in enumerate(touch.shares):
                if share == state.share:
                    table[row, column] = -saved
                elif is_moved and self._fits_beside(state.share, share):
                    table[row, column] = shuffled - saved
                else:
                    table[row, column] = other
        return Factor((touch.kernel, variable), table)


def _region_bytes(buffer: KernelBuffer, region: BufferRegion) -> int:
    layout = layout_of_region(buffer.placed, buffer.type.shape, region.shape)
    return buffer.placed.size_bytes if layout is None else layout.size_bytes
