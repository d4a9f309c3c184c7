"""Divisions chosen together: neighbours that cut a tensor alike can keep it in the scratchpads (LX).

Every kernel is a variable over its candidate divisions, every tensor one over the ways it can lie in LX; a tensor in LX
saves each agreeing kernel the time of its bytes on the memory; one that does not agree may find it shuffled, which
takes time on the ring.  The least total time is found by variable elimination: exactly, as long as the tables stay
small.  Divisions that move fewer bytes are taken instead where the model cannot tell that they are slower (D253).
What LX can hold at once is not a part of it: ``place-scratchpad`` leaves out what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.hardware.cost import total_uncertainty
from spyrec.hardware.target import RING_CORES
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, KernelGraph
from spyrec.ir.likeness import likeness
from spyrec.passes.base import NO_PLANNER, PassContext
from spyrec.passes.divide_work.division_candidates import Candidate
from spyrec.passes.planning.divisions import Division
from spyrec.passes.planning.record import kernel_record, lx_flags, simulated_us
from spyrec.passes.planning.regions import BufferRegion, layout_of_region, region_of, whole_region
from spyrec.passes.planning.residency import Way, outside_lx, touched
from spyrec.passes.planning.shares import Share, share_of_region, shares_of
from spyrec.passes.solvers.elimination import INFINITE, Elimination, Table

_TICKS_PER_US = 1_000_000
"""Costs are whole picoseconds: sums of them do not depend on their order."""

_COPY_TICKS = 1_000
"""What a copy to or from LX costs beside its bytes, a nanosecond: of equal plans the one with fewer copies wins."""

_WORTHS = (8, 4)
"""What a byte of device memory counts, in its own time, where divisions are sought that move fewer of them."""

_MOST_UNCERTAIN = 0.5
"""A choice that takes twice the time of another is slower, however uncertain a profile calls its times."""

_MOST_SHARES = 12
"""Ways to cut one tensor that are considered, those that most kernels offer first."""


_NOWHERE = 0
"""In place of a share's number: a tensor that cannot lie in LX."""


class _Shares:
    """Numbers of shares, the same for equal ones: they are compared very often."""

    def __init__(self) -> None:
        self._numbers: dict[Share | None, int] = {None: _NOWHERE}
        self._shares: list[Share | None] = [None]

    def numbered(self, shares: Sequence[Share | None]) -> tuple[int, ...]:
        """Return the number of each share, ``_NOWHERE`` for ``None``."""
        for share in shares:
            if self._numbers.setdefault(share, len(self._shares)) == len(self._shares):
                self._shares.append(share)
        return tuple([self._numbers[share] for share in shares])

    def __getitem__(self, number: int) -> Share:
        """Return the share of a number."""
        share = self._shares[number]
        assert share is not None, "it lies nowhere"
        return share


@dataclass(frozen=True, slots=True)
class _State:
    """One way for a tensor to lie in LX, and the share that those who use it there have to have; neither: not in LX.

    Shuffled: its writers have the share, readers that have another one take a shuffle each.
    """

    way: Way | None = None
    share: int = _NOWHERE


_IN_MEMORY = _State()


@dataclass(frozen=True, slots=True)
class _Kind:
    """What kernels that are alike have in common: candidates of different shares, the operands' shares under each."""

    candidates: tuple[Candidate, ...]
    shares: tuple[tuple[Share | None, ...], ...]


@dataclass(frozen=True, slots=True)
class _Touch:
    """A kernel touches a region of a tensor: the number of its share by candidate."""

    kernel: int
    is_writer: bool
    shares: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Region:
    """A region of a tensor that could lie in LX: the variable of its states, what it takes to move it, who touches it.

    ``moved``: ticks.
    """

    name: str
    region: BufferRegion
    variable: int
    states: Sequence[_State]
    moved: int
    touches: Sequence[_Touch]


_KernelTouch = tuple[int, BufferRegion, bool, tuple[int, ...]]
"""An operand of a kernel, the region that it touches, whether it writes it, and its share by candidate.

Of kernels that are alike the region's loops are those of the first.
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """A division for every kernel, and the tensors that have to be shuffled or stay in LX for it to be a good one."""

    divisions: tuple[Division, ...]
    in_lx: frozenset[str] = frozenset()


def choose(graph: KernelGraph, candidates: Sequence[Sequence[Candidate]], context: PassContext) -> Choice:
    """Return a division for every kernel of ``graph``, one of its ``candidates`` (best alone first, none empty)."""
    if context.options.lx_planner == NO_PLANNER:
        return Choice(tuple(items[0].division for items in candidates))
    return _Problem(graph, candidates, context).solved()


class _Problem:
    """The variables: kernels first, then the tensors that could lie in LX.

    What is asked of a kernel, a tensor or both is answered once for all that are alike, in whatever plan; tables of one
    answer are one object, which the solver knows again.
    """

    def __init__(self, graph: KernelGraph, candidates: Sequence[Sequence[Candidate]], context: PassContext) -> None:
        options = context.options
        self._graph = graph
        self._bytes_per_us = float(options.profile.memory_bytes_per_us)
        self._usable = options.target.lx_usable_bytes
        self._profile = options.profile
        self._has_shuffles = options.has_shuffles and options.counts_on_lx
        self._may_be_slower = options.counts_on_lx and bool(options.profile.uncertainty)
        self._trips = [graph.trips(kernel.loops) for kernel in graph.kernels]
        self._known = context.known
        self._asked = self._known.number("divisions", options.profile, self._usable)
        self._shares = self._known.answer(("shares", self._asked), _Shares)
        self._numbers = [
            self._known.number(self._asked, likeness(graph, kernel), tuple([item.division for item in items]))
            for kernel, items in zip(graph.kernels, candidates, strict=True)
        ]
        self._kinds = [
            self._known.answer(("kind", number), lambda k=kernel, c=items: _kind(k, c))
            for kernel, items, number in zip(graph.kernels, candidates, self._numbers, strict=True)
        ]

    def solved(self) -> Choice:
        """Return the divisions of least total time, or those that move fewer bytes and may be as quick."""
        alone = [self._alone(number) for number in range(len(self._kinds))]
        domains = [len(kind.candidates) for kind in self._kinds]
        regions = self._regions(len(domains))
        scopes = [(number,) for number in range(len(domains))]
        for item in regions:
            domains.append(len(item.states))
            scopes += [(item.variable,), *((touch.kernel, item.variable) for touch in item.touches)]
        elimination = Elimination(domains, scopes)
        values = elimination.minimise([*alone, *self._region_tables(regions, 1)]).values
        kept = frozenset[str]()
        if self._may_be_slower and self._leaves_bytes(regions, values):
            most_us = self._as_quick_us(regions, values)
            for worth in _WORTHS:
                sparing = elimination.minimise([*alone, *self._region_tables(regions, worth)]).values
                if sum(part for part, _ in self._times(regions, sparing)) <= most_us:
                    if self._may_spill(regions, sparing):
                        kept = _lying(regions, sparing, Way.RESIDENT) - _lying(regions, values, Way.RESIDENT)
                    values = sparing
                    break
        divisions = tuple(kind.candidates[value].division for kind, value in zip(self._kinds, values, strict=False))
        return Choice(divisions, kept | _lying(regions, values, Way.SHUFFLED))

    def _as_quick_us(self, regions: Sequence[_Region], values: Sequence[int]) -> float:
        """Return the longest time of which a choice cannot be told to be shorter."""
        times = self._times(regions, values)
        return sum(part for part, _ in times) / (1.0 - min(_MOST_UNCERTAIN, total_uncertainty(times) or 0.0))

    def _may_spill(self, regions: Sequence[_Region], values: Sequence[int]) -> bool:
        """Whether the scratchpads do not hold at once all that ever lies there."""
        states = [item.states[values[item.variable]] for item in regions]
        return sum(self._shares[state.share].size_bytes for state in states if state.way is not None) > self._usable

    def _times(self, regions: Sequence[_Region], values: Sequence[int]) -> list[tuple[float, float | None]]:
        """Return the times of a choice with their uncertainties, priced with what lies in LX under it.

        The tables know no more than a tensor's bytes at the memory's full rate.
        """
        in_lx: list[set[str]] = [set() for _ in self._kinds]
        moved_ticks = 0
        for item in regions:
            state = item.states[values[item.variable]]
            if state.way in (Way.DRAINED, Way.STAGED):
                moved_ticks += item.moved * self._graph.trips(item.region.loops)
            for touch in item.touches if state.way is not None else ():
                agrees = touch.shares[values[touch.kernel]] == state.share
                if agrees and not (touch.is_writer and state.way is Way.STAGED):
                    in_lx[touch.kernel].add(item.name)
                if not agrees and state.way is Way.SHUFFLED:
                    in_lx[touch.kernel].add(item.name)
                    moved_ticks += self._shuffle_ticks(self._shares[state.share]) * self._trips[touch.kernel]
        found: list[tuple[float, float | None]] = [(moved_ticks / _TICKS_PER_US, None)]
        for number, kernel in enumerate(self._graph.kernels):
            division = self._kinds[number].candidates[values[number]].division
            time_us, uncertainty = self._known.answer(
                ("priced", self._numbers[number], division, lx_flags(kernel, in_lx[number])),
                lambda k=kernel, d=division, n=number: self._priced(replace(k, division=d), in_lx[n]),
            )
            found.append((time_us * self._trips[number], uncertainty))
        return found

    def _priced(self, kernel: Kernel, in_lx: AbstractSet[str]) -> tuple[float, float | None]:
        buffers = self._graph.buffers
        pool = frozenset(use.buffer for use in kernel.uses if buffers[use.buffer].role is BufferRole.INTERMEDIATE)
        shares = dict(self._profile.uncertainty)
        return simulated_us(kernel, in_lx, self._profile, pool), shares.get(kernel_record(kernel).operation_class.value)

    def _regions(self, first: int) -> list[_Region]:
        """Return what could lie in LX; ``first``: the number of the first variable."""
        found: list[_Region] = []
        outside = outside_lx(self._graph)
        every = {place: touches for place, touches in self._touches().items() if place[0] not in outside}
        parted = {name for (name, region) in every if region != whole_region(self._graph.buffers[name])}
        for (name, region), touches in every.items():
            buffer = self._graph.buffers[name]
            states = self._states_of(buffer, region, touches, is_parted=name in parted)
            if len(states) > 1:
                moved = self._ticks(_region_bytes(buffer, region))
                found.append(_Region(name, region, first + len(found), states, moved, touches))
        return found

    def _region_tables(self, regions: Sequence[_Region], worth: int) -> Iterator[Table]:
        """Yield the tables of regions, each its own and then those of its touches; ``worth``: of the time of bytes."""
        for item in regions:
            moved = item.moved * worth
            yield self._state_costs(moved, item.region, item.states)
            yield from (self._agreement(moved, item.states, touch) for touch in item.touches)

    def _leaves_bytes(self, regions: Sequence[_Region], values: Sequence[int]) -> bool:
        """Whether some region could save more if all who touch it were divided for it alone."""
        tables = self._region_tables(regions, 1)
        for item in regions:
            own = [next(tables) for _ in range(1 + len(item.touches))]
            pairs = zip(item.touches, own[1:], strict=True)
            saved = own[0][values[item.variable]]
            saved += sum(table[values[touch.kernel], values[item.variable]] for touch, table in pairs)
            if saved > self._most_saved(own):
                return True
        return False

    def _most_saved(self, tables: Sequence[Table]) -> int:
        key = ("most saved", *map(id, tables))  # answers, which stay
        return self._known.answer(key, lambda: int(min(tables[0] + sum(table.min(axis=0) for table in tables[1:]))))

    def _touches(self) -> Mapping[tuple[str, BufferRegion], list[_Touch]]:
        found: dict[tuple[str, BufferRegion], list[_Touch]] = {}
        for number, kernel in enumerate(self._graph.kernels):
            for position, region, is_writer, shares in self._known.answer(
                ("touched by", self._numbers[number]), lambda k=kernel, n=number: self._touched_by(k, self._kinds[n])
            ):
                own = replace(region, loops=kernel.loops[: len(region.loops)]) if region.loops else region
                name = kernel.uses[position].buffer
                found.setdefault((name, own), []).append(_Touch(number, is_writer, shares))
        return found

    def _touched_by(self, kernel: Kernel, kind: _Kind) -> list[_KernelTouch]:
        """Return each region of a buffer that a kernel touches, by the first of its operands there."""
        positions: dict[tuple[str, BufferRegion, bool], list[int]] = {}
        undivided = (1,) * len(kernel.placed.variables)
        for position, use in enumerate(kernel.uses):
            region, _ = touched(self._graph.buffers[use.buffer], kernel, position, undivided)
            positions.setdefault((use.buffer, region, position == len(kernel.inputs)), []).append(position)
        return [
            (places[0], region, is_writer, self._shares.numbered(self._usable_shares(kernel, kind, region, places)))
            for (_, region, is_writer), places in positions.items()
        ]

    def _usable_shares(
        self, kernel: Kernel, kind: _Kind, region: BufferRegion, positions: Sequence[int]
    ) -> list[Share | None]:
        """Return by candidate the share that all operands have of a region, ``None`` where it cannot lie in LX."""
        columns = [self._shares_of_region(kernel, kind, region, position) for position in positions]
        return [
            own[0] if own[0] is not None and len(set(own)) == 1 and self._is_usable(own[0]) else None
            for own in zip(*columns, strict=True)
        ]

    def _is_usable(self, share: Share) -> bool:
        return not share.is_replicated and share.size_bytes <= self._usable

    def _shares_of_region(
        self, kernel: Kernel, kind: _Kind, region: BufferRegion, position: int
    ) -> Sequence[Share | None]:
        """Return the share of an operand by candidate, ``None`` where it is not of the region (``touched``)."""
        shares, buffer = kind.shares[position], self._graph.buffers[kernel.uses[position].buffer]
        if region == whole_region(buffer):
            return shares
        if position == len(kernel.inputs) or region_of(buffer, kernel, kernel.inputs[position]) != region:
            return (None,) * len(shares)
        return [
            share_of_region(kernel, position, candidate.division) if share is None else None
            for candidate, share in zip(kind.candidates, shares, strict=True)
        ]

    def _states_of(
        self, buffer: KernelBuffer, region: BufferRegion, touches: Sequence[_Touch], *, is_parted: bool
    ) -> Sequence[_State]:
        """Return the ways of a region to lie in LX, and not to; alike for touches of the same shares."""
        touching = tuple([(touch.shares, touch.is_writer, self._trips[touch.kernel]) for touch in touches])
        is_intermediate, is_whole = buffer.role is BufferRole.INTERMEDIATE, region == whole_region(buffer)
        facts = (is_intermediate, is_whole, is_parted, self._graph.trips(region.loops))
        key = ("states", self._asked, self._has_shuffles, facts, touching)
        return self._known.answer(key, lambda: self._states(buffer, region, touches, is_parted=is_parted))

    def _states(
        self, buffer: KernelBuffer, region: BufferRegion, touches: Sequence[_Touch], *, is_parted: bool
    ) -> list[_State]:
        offers: dict[int, int] = {}
        for touch in touches:
            for share in dict.fromkeys(touch.shares):
                if share != _NOWHERE:
                    offers[share] = offers.get(share, 0) + self._trips[touch.kernel]
        rounds = self._graph.trips(region.loops)
        shared = [share for share, trips in offers.items() if trips > rounds]
        shared.sort(key=lambda share: -offers[share])
        writers = [touch for touch in touches if touch.is_writer]
        is_whole = region == whole_region(buffer)
        is_read_again = sum(self._trips[touch.kernel] for touch in touches if not touch.is_writer) > rounds
        states = [_IN_MEMORY]
        for share in shared[:_MOST_SHARES]:
            if is_whole and buffer.role is BufferRole.INTERMEDIATE and all(share in touch.shares for touch in touches):
                states.append(_State(Way.RESIDENT, share))
            if is_whole and len(writers) == 1 and share in writers[0].shares:
                states.append(_State(Way.DRAINED, share))
            if len(writers) < 2 and is_read_again:
                states.append(_State(Way.STAGED, share))
        if self._has_shuffles and is_whole and buffer.role is BufferRole.INTERMEDIATE and writers:
            states += [
                _State(Way.SHUFFLED, share)
                for share in dict.fromkeys(writers[0].shares)
                if share != _NOWHERE and self._may_move(share, touches)
            ]
        if is_parted:  # what is read in part has to be in device memory
            return [state for state in states if state.way not in {Way.RESIDENT, Way.SHUFFLED}]
        return states

    def _may_move(self, share: int, touches: Sequence[_Touch]) -> bool:
        """Whether all writers offer a share and some readers only others that a shuffle can bring it to."""
        readers = [touch.shares for touch in touches if not touch.is_writer]
        return (
            all(share in touch.shares for touch in touches if touch.is_writer)
            and not all(share in offers for offers in readers)
            and all(share in offers or any(self._fits_beside(share, other) for other in offers) for offers in readers)
        )

    def _fits_beside(self, number: int, other_number: int) -> bool:
        """Whether a shuffle can bring a tensor from one share to another, both in LX for a while.

        Shares over dims of which one is taken apart are not told alike: no copy has both.
        """
        if other_number == _NOWHERE:
            return False
        share, other = self._shares[number], self._shares[other_number]
        if len(other.slices) != len(share.slices) or len(other.extents) != len(share.extents):
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
        items, trips = self._kinds[number].candidates, self._trips[number]
        return self._known.answer(
            ("alone", self._numbers[number], trips),
            lambda: np.array([round(item.cost_us * _TICKS_PER_US) * trips for item in items], np.int64),
        )

    def _state_costs(self, moved: int, region: BufferRegion, states: Sequence[_State]) -> Table:
        taken = moved * self._graph.trips(region.loops) + _COPY_TICKS
        copied = (Way.DRAINED, Way.STAGED)
        key = ("state costs", taken, id(states))  # an answer, which stays
        return self._known.answer(
            key, lambda: np.array([taken if state.way in copied else 0 for state in states], np.int64)
        )

    def _agreement(self, moved: int, states: Sequence[_State], touch: _Touch) -> Table:
        """What a kernel saves where it finds the tensor in LX cut as it cuts it, by candidate and state."""
        trips = self._trips[touch.kernel]
        key = ("agreement", moved, trips, id(states), touch.shares, touch.is_writer)
        return self._known.answer(key, lambda: self._savings(moved, trips, states, touch))

    def _savings(self, moved: int, trips: int, states: Sequence[_State], touch: _Touch) -> Table:
        saved, is_writer = moved * trips, touch.is_writer
        gains: list[int] = []
        others: list[int] = []
        for state in states:
            is_used = state.share != _NOWHERE and not (is_writer and state.way is Way.STAGED)
            has_to_agree = is_writer or state.way in (Way.RESIDENT, Way.SHUFFLED)
            gains.append(-saved if is_used else 0)
            others.append(INFINITE if is_used and has_to_agree else 0)
        agrees = np.equal.outer(touch.shares, [state.share for state in states])
        table = np.where(agrees, np.array(gains, np.int64), np.array(others, np.int64))
        for column, state in enumerate(states):
            if state.way is Way.SHUFFLED and not is_writer:
                shuffled = self._shuffle_ticks(self._shares[state.share]) * trips
                for row, share in enumerate(touch.shares):
                    if share != state.share and self._fits_beside(state.share, share):
                        table[row, column] = shuffled - saved
        return table


def _kind(kernel: Kernel, items: Sequence[Candidate]) -> _Kind:
    """Return the best candidate of each combination of shares."""
    divisions = [candidate.division for candidate in items]
    found: dict[tuple[Share | None, ...], Candidate] = {}
    by_position = [shares_of(kernel, position, divisions) for position in range(len(kernel.uses))]
    for candidate, shares in zip(items, zip(*by_position, strict=True), strict=True):
        found.setdefault(shares, candidate)
    return _Kind(tuple(found.values()), tuple(zip(*found, strict=True)))


def _lying(regions: Sequence[_Region], values: Sequence[int], way: Way) -> frozenset[str]:
    """Return the tensors that lie in LX in one way."""
    return frozenset(item.name for item in regions if item.states[values[item.variable]].way is way)


def _region_bytes(buffer: KernelBuffer, region: BufferRegion) -> int:
    layout = layout_of_region(buffer.placed, buffer.type.shape, region.shape)
    return buffer.placed.size_bytes if layout is None else layout.size_bytes
