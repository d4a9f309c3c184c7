"""From accesses and layouts to device coordinates: what a SuperDSC can express, and why not.

An operand of a SuperDSC is a dense box: every device dim is walked by at most one iteration variable, one step at a
time, in a window that may be smaller than the dim.  Iteration dims are refined into variables until every operand
has that form, or :class:`Inexpressible` says which rule stands in the way: an answer, by which a search goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from itertools import pairwise, product

from spyrec.dataclass import dataclass
from spyrec.ir.access import Access, Coordinate
from spyrec.ir.device_layout import BufferLayout, Digit
from spyrec.ir.remembered_hash import RemembersHash, remembers_hash
from spyrec.ir.sliding import Slide


@dataclass(frozen=True, slots=True)
class Inexpressible:
    """The answer where no SuperDSC operand can have an access as it stands: why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A refined iteration variable: ``floor(i[dim] / divisor) % size``."""

    dim: int
    divisor: int
    size: int


class VariablePart(Enum):
    """Which part of its variable a device dim counts."""

    WHOLE = "whole"
    TILE = "tile"
    LANE = "lane"


@dataclass(frozen=True, slots=True)
class DeviceDim:
    """One device dim of an operand: extent, the variable that walks it (index, or ``None``), first position."""

    extent: int
    variable: int | None
    offset: int
    part: VariablePart = VariablePart.WHOLE


Movement = tuple[tuple[int, tuple[int, ...]], ...]
"""How an access moves along the loops around its kernel, outermost first: trip count, elements a round and dim."""


@dataclass(frozen=True, slots=True)
class SlidDims:
    """The device dims that the window of a kernel slides along, by their places, and its axis.

    ``output``, ``tap``: the variables of the window's places and of its elements.
    """

    places: tuple[int, ...]
    slide: Slide
    output: int
    tap: int


@remembers_hash
@dataclass(frozen=True, slots=True)
class DeviceAccess(RemembersHash):
    """An operand in device form; ``lane`` is the variable that walks the lanes of a stick, or ``None``.

    ``moves`` has an entry per loop around the kernel: how many positions every device dim moves in each iteration.  It
    is empty where no loop moves the operand.  ``slid``: of an operand that a window slides over, along what.
    """

    dims: tuple[DeviceDim, ...]
    lane: int | None
    lane_extent: int
    moves: tuple[tuple[int, ...], ...] = ()
    slid: tuple[SlidDims, ...] = ()

    @property
    def variables(self) -> frozenset[int]:
        """The variables the operand depends on."""
        return frozenset(dim.variable for dim in self.dims if dim.variable is not None)


@lru_cache(maxsize=1 << 14)
def cut_points(access: Access, layout: BufferLayout) -> frozenset[tuple[int, int]] | Inexpressible:
    """Return (iteration dim, boundary) pairs: where the access or the layout needs an iteration dim to be cut."""
    found: set[tuple[int, int]] = set()
    for host_dim, coordinate in enumerate(access.coordinates):
        tiles = [
            digit.divisor
            for digit in layout.digits[:-1]
            if digit.host_dim == host_dim and digit.divisor != 1 and not _is_tile(digit, layout)
        ]
        for term in coordinate.terms:
            found.update(((term.dim, term.divisor), (term.dim, term.divisor * term.modulus)))
            for tile in tiles:
                if term.coefficient < tile < term.coefficient * term.modulus:
                    if tile % term.coefficient:
                        return Inexpressible(f"a step of {term.coefficient} does not divide a tile of {tile}")
                    found.add((term.dim, term.divisor * (tile // term.coefficient)))
    return frozenset(found)


def _is_tile(digit: Digit, layout: BufferLayout) -> bool:
    """Whether a device dim counts whole sticks of the stick dim."""
    return digit.host_dim == layout.stick_dim and digit.divisor == layout.lane_extent


@lru_cache(maxsize=1 << 14)
def refine(extents: tuple[int, ...], cuts: frozenset[tuple[int, int]]) -> tuple[Variable, ...] | Inexpressible:
    """Cut iteration dims into variables, outermost first; dims of extent 1 have none."""
    points: list[set[int]] = [{1} for _ in extents]
    for dim, boundary in cuts:
        if boundary < extents[dim]:
            points[dim].add(boundary)
    variables: list[Variable] = []
    for dim, extent in enumerate(extents):
        if extent == 1:
            continue
        boundaries = [*sorted(points[dim]), extent]
        for inner, outer in pairwise(boundaries):
            if outer % inner:
                return Inexpressible(f"an extent of {extent} is cut at {inner} and at {outer}, which do not nest")
        variables.extend(
            Variable(dim, inner, outer // inner)
            for inner, outer in zip(reversed(boundaries[:-1]), reversed(boundaries[1:]), strict=True)
        )
    return tuple(variables)


@dataclass(frozen=True, slots=True)
class _Step:
    """A variable walking a host coordinate in steps of ``coefficient``."""

    coefficient: int
    variable: int
    size: int


def _steps(coordinate: Coordinate, variables: Sequence[Variable]) -> list[_Step]:
    steps = [
        _Step(term.coefficient * (variable.divisor // term.divisor), index, variable.size)
        for term in coordinate.terms
        for index, variable in enumerate(variables)
        if variable.dim == term.dim and term.divisor <= variable.divisor < term.divisor * term.modulus
    ]
    steps.sort(key=lambda step: -step.coefficient)
    return steps


def express(
    access: Access,
    layout: BufferLayout,
    variables: Sequence[Variable],
    movement: Movement = (),
    slides: tuple[Slide, ...] = (),
) -> DeviceAccess | Inexpressible:
    """Return the operand in device form, in the first iteration of its loops, or why it has none.

    Invariant: for every index the device coordinates denote the element the access names, inside the buffer; in every
    iteration of the loops they do so after as many of the form's ``moves``.  Dims that a window slides along
    (``slides``) are whole, and the access stands there.
    """
    first = _placed(access, layout, tuple(variables), slides)
    if isinstance(first, Inexpressible) or all(count == 1 or not any(step) for count, step in movement):
        return first
    if slides:
        return Inexpressible("a loop moves an operand that a window slides over")
    moves = _moves(access, layout, tuple(variables), movement, first)
    return moves if isinstance(moves, Inexpressible) else replace(first, moves=moves)


def _moves(
    access: Access, layout: BufferLayout, variables: tuple[Variable, ...], movement: Movement, first: DeviceAccess
) -> tuple[tuple[int, ...], ...] | Inexpressible:
    """Return the positions per iteration of each loop and device dim.

    A device coordinate is the floor of an affine function of the iteration, modulo the dim's extent.  Where it moves
    by equal amounts in the first iteration and up to the last one, it does so in between; with several loops, where it
    does so in every corner of their iteration space.
    """
    moves: list[tuple[int, ...]] = []
    for count, step in movement:
        second = first if count == 1 else _placed(_shifted(access, ((1, step),)), layout, variables)
        if isinstance(second, Inexpressible):
            return second
        moves.append(tuple(there.offset - here.offset for here, there in zip(first.dims, second.dims, strict=True)))
    for corner in product(*((0, count - 1) for count, _ in movement)):
        shifts = tuple((times, step) for times, (_, step) in zip(corner, movement, strict=True))
        found = _placed(_shifted(access, shifts), layout, variables)
        if isinstance(found, Inexpressible):
            return found
        expected = tuple(
            replace(
                dim, offset=dim.offset + sum(times * move[place] for times, move in zip(corner, moves, strict=True))
            )
            for place, dim in enumerate(first.dims)
        )
        if found.dims != expected:
            return Inexpressible("tiles follow each other at uneven distances")
    return tuple(moves)


def _shifted(access: Access, shifts: Sequence[tuple[int, tuple[int, ...]]]) -> Access:
    """Return the access in a later iteration: its coordinates plus so many times each step."""
    return Access(
        access.extents,
        tuple(
            replace(coordinate, offset=coordinate.offset + sum(times * step[dim] for times, step in shifts))
            for dim, coordinate in enumerate(access.coordinates)
        ),
    )


@lru_cache(maxsize=1 << 14)
def _placed(
    access: Access, layout: BufferLayout, variables: tuple[Variable, ...], slides: tuple[Slide, ...] = ()
) -> DeviceAccess | Inexpressible:
    """Return the operand in device form, or why it has none; the search for layouts asks most questions many times."""
    walks = [_steps(coordinate, variables) for coordinate in access.coordinates]
    lane = _lane_variable(access, layout, walks)
    if isinstance(lane, Inexpressible):
        return lane
    dims: list[DeviceDim] = []
    slid = [_slid_dims(slide, variables, dims) for slide in slides if slide.host_dim is None]
    for digit in layout.digits[:-1]:
        slide = next((item for item in slides if digit.host_dim is not None and item.host_dim == digit.host_dim), None)
        if slide is not None:
            broken = _slide_breach(slide, digit, layout, variables)
            if broken is not None:
                return broken
            slid.append(_slid_dims(slide, variables, dims))
            continue
        if digit.host_dim is None:
            is_stick_count = layout.stick_dim is None and digit.divisor == layout.lane_extent
            dims.append(DeviceDim(digit.extent, None, 0, VariablePart.TILE if is_stick_count else VariablePart.WHOLE))
            continue
        coordinate = access.coordinates[digit.host_dim]
        steps = walks[digit.host_dim]
        if _is_tile(digit, layout):
            found = _tile_dims(digit, steps, coordinate.offset, lane, layout)
        else:
            found = _plain_dims(digit, steps, coordinate.offset, layout)
        if isinstance(found, Inexpressible):
            return found
        dims.extend(found)
    if not any(dim.part is VariablePart.TILE for dim in dims):
        # a pinned layout may leave out the count of sticks where there is one
        dims.insert(len(dims) if slid else 0, DeviceDim(1, lane, 0, VariablePart.TILE))
    dims.append(DeviceDim(layout.lane_extent, lane, 0, VariablePart.LANE))
    return DeviceAccess(tuple(dims), lane, layout.lane_extent, slid=tuple(slid))


def _slide_breach(
    slide: Slide, digit: Digit, layout: BufferLayout, variables: Sequence[Variable]
) -> Inexpressible | None:
    """Return why a window cannot slide along a dim that lies so, ``None`` where it can."""
    if layout.stick_dim == digit.host_dim or digit.divisor != 1 or digit.extent != slide.extent:
        return Inexpressible("the dim that a window slides along lies in sticks or in tiles")
    steps = slide.extent // slide.stride if slide.has_steps else slide.extent
    if slide.has_steps and slide.extent % slide.stride:
        return Inexpressible(f"{slide.extent} elements are no whole steps of {slide.stride} for a window")
    if variables[_variable_of(slide.output, variables)].size > steps:
        return Inexpressible(f"a window has more places than the {steps} steps of its dim")
    return None


def _slid_dims(slide: Slide, variables: Sequence[Variable], dims: list[DeviceDim]) -> SlidDims:
    """Add the device dims that a window slides along: its whole steps, and the elements of one."""
    output, tap = _variable_of(slide.output, variables), _variable_of(slide.tap, variables)
    first = len(dims)
    if slide.has_steps:
        dims += [DeviceDim(slide.extent // slide.stride, output, 0), DeviceDim(slide.stride, tap, 0)]
    else:
        dims.append(DeviceDim(slide.extent, output, 0))
    return SlidDims(tuple(range(first, len(dims))), slide, output, tap)


def _variable_of(dim: int, variables: Sequence[Variable]) -> int:
    """Return the variable that is a whole iteration dim."""
    (found,) = (index for index, variable in enumerate(variables) if variable.dim == dim)
    return found


def _lane_variable(
    access: Access, layout: BufferLayout, walks: Sequence[Sequence[_Step]]
) -> int | Inexpressible | None:
    """Return the variable in the lanes of the stick dim, checking that it may be there."""
    stick_dim, lanes = layout.stick_dim, layout.lane_extent
    if stick_dim is None:
        return None
    coordinate = access.coordinates[stick_dim]
    if coordinate.offset % lanes:
        return Inexpressible(f"a window begins {coordinate.offset % lanes} lanes into a stick of {lanes}")
    inside = [step for step in walks[stick_dim] if step.coefficient % lanes]
    if not inside:
        return None
    if len(inside) > 1 or inside[0].coefficient != 1:
        return Inexpressible("the lanes of a stick are walked by more than one index, or not one by one")
    return inside[0].variable


def _tile_dims(
    digit: Digit, steps: Sequence[_Step], offset: int, lane: int | None, layout: BufferLayout
) -> list[DeviceDim] | Inexpressible:
    """Split the dim that counts sticks among the variables that step over whole sticks and the lane's own."""
    lanes = digit.divisor
    dims: list[DeviceDim] = []
    is_outermost = _is_outermost(digit, layout)
    extent, position = digit.extent, offset // lanes if is_outermost else offset // lanes % digit.extent
    for step in steps:
        if step.variable == lane or not (is_outermost or step.coefficient < lanes * digit.extent):
            continue
        unit = step.coefficient // lanes
        window = _window(extent, unit, step, position)
        if isinstance(window, Inexpressible):
            return window
        dims.append(window)
        extent, position = unit, position % unit
    if lane is not None:
        size = next(step.size for step in steps if step.variable == lane)
        if position + -(-size // lanes) > extent:
            return Inexpressible(f"{size} lanes from stick {position} on leave a run of {extent} sticks")
        return [*dims, DeviceDim(extent, lane, position, VariablePart.TILE)]
    return [*dims, DeviceDim(extent, None, position, VariablePart.TILE)]


def _plain_dims(
    digit: Digit, steps: Sequence[_Step], offset: int, layout: BufferLayout
) -> list[DeviceDim] | Inexpressible:
    """Split a dim that does not lie in sticks among the variables that walk it."""
    low, high = digit.divisor, digit.divisor * digit.extent
    is_outermost = _is_outermost(digit, layout)
    position = offset // low if is_outermost else offset // low % digit.extent
    extent = digit.extent
    dims: list[DeviceDim] = []
    for step in steps:
        if not (low <= step.coefficient and (is_outermost or step.coefficient < high)):
            continue
        if step.coefficient % low:
            return Inexpressible(f"a step of {step.coefficient} does not fit tiles of {low}")
        unit = step.coefficient // low
        window = _window(extent, unit, step, position)
        if isinstance(window, Inexpressible):
            return window
        dims.append(window)
        extent, position = unit, position % unit
    if extent > 1 or not dims:
        if position >= extent:
            return Inexpressible(f"position {position} lies outside a dim of {extent}")
        dims.append(DeviceDim(extent, None, position))
    return dims


def _is_outermost(digit: Digit, layout: BufferLayout) -> bool:
    """Whether no other device dim counts the same host dim in larger steps."""
    return all(other.host_dim != digit.host_dim or other.divisor <= digit.divisor for other in layout.digits)


def _window(extent: int, unit: int, step: _Step, position: int) -> DeviceDim | Inexpressible:
    """The outer part of a dim of ``extent`` cut into pieces of ``unit``, walked by one variable."""
    if extent % unit:
        return Inexpressible(f"a dim of {extent} does not divide into pieces of {unit}")
    if position // unit + step.size > extent // unit:
        return Inexpressible(f"a window of {step.size} from {position // unit} on leaves a dim of {extent // unit}")
    return DeviceDim(extent // unit, step.variable, position // unit)
