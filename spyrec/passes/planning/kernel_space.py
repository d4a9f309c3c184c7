"""The iteration space and the operands of a kernel as its SuperDSC has them: padded extents, sticks, stored bytes.

What one core iterates and touches is even over the cores, so that all of it is known before a division is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from spyrec.dataclass import dataclass
from spyrec.device_ops import LAYERNORM_SCALE, device_operation
from spyrec.hardware.target import STICK_BYTES
from spyrec.ir.device_access import DeviceAccess, VariablePart
from spyrec.ir.kernel_form import KernelForm, Rule, synthetic_count
from spyrec.ir.sliding import Slide


@dataclass(frozen=True, slots=True)
class Side:
    """One device dim of an operand's box of sticks: extent, first position, positions walked, and by which variable."""

    extent: int
    first: int
    count: int
    variable: int | None


@dataclass(frozen=True, slots=True)
class SlidSide:
    """An axis that a window slides along: the variable of its places, how many there are, and the window's elements."""

    slide: Slide
    variable: int
    outputs: int
    taps: int

    @property
    def taken(self) -> int:
        """The elements of the axis that any window takes."""
        return _taken(self, 1)[0]

    def taken_by_cores(self, slices: int) -> int:
        """Return the elements that the windows of each slice take, summed: neighbours overlap."""
        return _taken(self, slices)[0]

    def taken_by_any(self, slices: int) -> int:
        """Return the elements, counted from a slice's first window, that the windows of any slice take."""
        return _taken(self, slices)[1]


@lru_cache(maxsize=1 << 14)
def _taken(side: SlidSide, slices: int) -> tuple[int, int]:
    places = side.outputs // slices
    found = [side.slide.elements(number * places, places, side.taps) for number in range(slices)]
    return sum(map(len, found)), len(frozenset[int]().union(*found))


@dataclass(frozen=True, slots=True)
class OperandSpace:
    """One operand over all cores.

    ``variables``: those that it varies along.  ``stick_bytes``: of the sticks it touches; ``element_bytes``: of its
    elements, which is what its scratchpad accesses count; ``word_bytes``: of one element.  ``moves``: positions that
    the box moves along each side in a round of every loop around the kernel; empty where no loop moves it.  ``slid``:
    what a window slides along; ``stick_bytes`` are then those that any window takes.
    """

    variables: tuple[int, ...]
    box: tuple[Side, ...]
    stick_bytes: int
    element_bytes: int
    word_bytes: int
    has_lane: bool
    moves: tuple[tuple[int, ...], ...] = ()
    slid: tuple[SlidSide, ...] = ()

    def core_bytes(self, division: Sequence[int], sharing: int) -> int:
        """Return the bytes that cores read, summed, where so many have the same share."""
        found = self.stick_bytes * sharing
        for side in self.slid:
            found = found * side.taken_by_cores(division[side.variable]) // side.taken
        return found

    def shared_bytes(self, division: Sequence[int]) -> int:
        """Return the bytes of the cores' shares, each once, as large as what windows of any core take of theirs."""
        found = self.stick_bytes
        for side in self.slid:
            slices = division[side.variable]
            found = found * slices * side.taken_by_any(slices) // side.taken
        return found

    def box_at(self, point: Sequence[int]) -> tuple[Side, ...]:
        """Return the box in another round of the loops: ``point`` is the number of each one's, outermost first."""
        if not self.moves:
            return self.box
        away = [sum(times * move[place] for times, move in zip(point, self.moves)) for place in range(len(self.box))]
        return tuple(replace(side, first=side.first + shift) for side, shift in zip(self.box, away, strict=True))


@dataclass(frozen=True, slots=True)
class KernelSpace:
    """The iteration space of one kernel.

    ``extents``: of its variables, rounded up to whole sticks; ``executed``: those that are really executed.
    ``lane``: extent of the stick that the file adds where there is no variable for one (1: none is added);
    ``executed_lane``: what is executed of it.  ``added_before``: dims of one slice that the file has beside variables.
    """

    extents: tuple[int, ...]
    executed: tuple[int, ...]
    lane: int
    executed_lane: int
    lane_operands: tuple[bool, ...]
    added_before: int
    operands: tuple[OperandSpace, ...]

    @property
    def points(self) -> int:
        """Iteration points, padding included."""
        return math.prod(self.extents) * self.lane

    @property
    def executed_points(self) -> int:
        """Iteration points that are executed."""
        return math.prod(self.executed) * self.executed_lane


def kernel_space(form: KernelForm, rule: Rule, op_func: str, *, reduces: bool) -> KernelSpace:
    """Return the space of a kernel with this form; ``reduces``: its output lacks a dim of its iteration."""
    extents = _padded(form, rule, reduces=reduces)
    executed = _executed(form, rule, extents)
    lane, lane_operands = _added_lane(form, rule, op_func, reduces=reduces)
    executed_lane = 1 if rule is Rule.RESTICKIFY else lane
    operands = tuple(
        _operand_space(operand, executed, executed_lane if has_lane else _stored_lanes(op_func, place, form))
        for place, (operand, has_lane) in enumerate(zip(form.operands, lane_operands, strict=True))
    )
    if rule is Rule.RESTICKIFY:
        lane_operands = (True,) * len(operands)  # the side that has no such stick has a dim of extent 1 for it
    added_before = synthetic_count(form.operands) + int(form.unit_lane)
    return KernelSpace(extents, executed, lane, executed_lane, lane_operands, added_before, operands)


def _padded(form: KernelForm, rule: Rule, *, reduces: bool) -> tuple[int, ...]:
    """Return the extents with ragged stick dims rounded up; which operands' sticks count depends on the rule."""
    extents = [variable.size for variable in form.variables]
    operands: Sequence[DeviceAccess] = form.operands
    match rule:
        case Rule.CONTRACTION:
            extents[-1] = _round_up(extents[-1], form.operands[1].lane_extent)
        case Rule.RESTICKIFY:
            pass
        case Rule.REDUCTION | Rule.STATISTICS if reduces:
            operands = form.operands[:1]
        case Rule.WINDOW:
            pass
        case _:
            operands = form.operands[-1:]
    for operand in operands:
        if operand.lane is not None:
            widest = max(item.lane_extent for item in form.operands) if rule is Rule.CAST else operand.lane_extent
            extents[operand.lane] = _round_up(extents[operand.lane], widest)
    return tuple(extents)


def _executed(form: KernelForm, rule: Rule, extents: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents that are executed: a restickify stops where the side that has no sticks of a dim ends."""
    return tuple(variable.size for variable in form.variables) if rule is Rule.RESTICKIFY else extents


def _added_lane(form: KernelForm, rule: Rule, op_func: str, *, reduces: bool) -> tuple[int, tuple[bool, ...]]:
    """Return the extent of the stick that is added where none is walked, and which operands have it."""
    operands = form.operands
    if form.unit_lane:
        lanes = max(item.lane_extent for item in operands) if rule is Rule.CAST else operands[-1].lane_extent
        if rule is Rule.CONTRACTION:
            return lanes, (False, *(True for _ in operands[1:]))
        if rule is Rule.SAME_STICK:
            return lanes, (*(False for _ in operands[:-1]), True)
        if rule is Rule.RESTICKIFY:
            lanes = next(item.lane_extent for item in operands if item.lane is None)
        return lanes, tuple(item.lane is None for item in operands)
    reference = operands[0 if reduces else -1]
    if rule is Rule.CONTRACTION or reference.lane is not None:
        return 1, (False,) * len(operands)
    # the device multiplies the two lanes of the statistics into a stick of its result
    is_scale = op_func == LAYERNORM_SCALE
    return operands[0].lane_extent, tuple(not (is_scale and place == 0) for place in range(len(operands)))


def _stored_lanes(op_func: str, place: int, form: KernelForm) -> int:
    """Return the lanes touched of a stick that holds one value."""
    fold = device_operation(op_func).fold
    if fold is not None and place == len(form.operands) - 1:
        return len(fold.accumulators)
    return _STATISTICS_LANES if op_func == LAYERNORM_SCALE else 1


_STATISTICS_LANES = 2
"""Lanes of the layer norm statistics, which the device multiplies on both sides of ``layernormscale``."""


def _operand_space(operand: DeviceAccess, executed: tuple[int, ...], lanes: int) -> OperandSpace:
    box: list[Side] = []
    elements = executed[operand.lane] if operand.lane is not None else lanes
    slid = tuple(SlidSide(item.slide, item.output, executed[item.output], executed[item.tap]) for item in operand.slid)
    slid_places = {place for item in operand.slid for place in item.places}
    for place, dim in enumerate(operand.dims[:-1]):
        count = 1
        if place in slid_places:
            pass
        elif dim.variable is not None:
            size = executed[dim.variable]
            count = -(-size // operand.lane_extent) if dim.part is VariablePart.TILE else size
            elements *= 1 if dim.part is VariablePart.TILE else size
        elif dim.part is VariablePart.TILE and operand.lane is None:
            count = -(-lanes // operand.lane_extent)
        box.append(Side(dim.extent, dim.offset, count, dim.variable))
    sticks = math.prod(side.count for side in box) * math.prod(side.taken for side in slid)
    word_bytes = STICK_BYTES // operand.lane_extent
    return OperandSpace(
        variables=tuple(sorted(operand.variables)),
        box=tuple(box),
        stick_bytes=sticks * STICK_BYTES,
        element_bytes=elements * word_bytes,
        word_bytes=word_bytes,
        has_lane=operand.lane is not None,
        moves=tuple(move[: len(box)] for move in operand.moves),
        slid=slid,
    )


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
