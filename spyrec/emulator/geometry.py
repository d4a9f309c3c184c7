"""Where the elements of one operand lie: strides, extents and byte offsets, from the SuperDSC and the argument table.

The rules are D001 to D005, D014 and D019 of ``docs/decisions.md``: strides come from the buffer, not from the window
that is iterated; a dim that the operand does not extend along does not advance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component, Indirection, Operand, SuperDsc
from spyrec.bundle.superdsc_windows import input_extents, slid_axes, window_front
from spyrec.dataclass import dataclass
from spyrec.device_ops import CASTS, RESTICKIFY
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.device import TableEntry

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Digits:
    """Addresses along a dim: a coordinate's digits, each below the next of ``sizes``, times one of ``steps`` bytes.

    ``sizes``: elements that a digit of the next place stands for; there is one step more than sizes.
    """

    sizes: tuple[int, ...]
    steps: tuple[int, ...]

    def offset(self, coordinate: int) -> int:
        """Return the byte offset of a coordinate."""
        total = 0
        for size, step in zip(reversed(self.sizes), reversed(self.steps[1:])):
            digit, coordinate = divmod(coordinate, size)
            total += digit * step
        return total + coordinate * self.steps[0]

    def offsets(self, coordinates: Integers) -> Integers:
        """Return the byte offsets of coordinates."""
        total = np.zeros_like(coordinates)
        for size, step in zip(reversed(self.sizes), reversed(self.steps[1:])):
            digits, coordinates = np.divmod(coordinates, size)
            total += digits * step
        return total + coordinates * self.steps[0]


@dataclass(frozen=True, slots=True)
class OperandGeometry:
    """The addressing of one operand.

    ``extents``: entries of the buffer per dim that the operand extends along (sticks on the stick dim), inner to outer.
    ``stride_sticks``: distance of neighbours along a dim, keyed like ``extents``.  ``stick_dim`` is ``None`` where the
    operand has one stick along it.  ``table_extents`` says that the extents came from the argument table.
    ``pair_dim``: two entries along it share two sticks, element by element; each stick has 64 elements of both.
    ``is_interleaved``: the halves of a stick alternate every 8 elements.
    """

    extents: Mapping[str, int]
    stride_sticks: Mapping[str, int]
    stick_dim: str | None
    stick_size: int
    element_bytes: int
    table_extents: bool = False
    pair_dim: str | None = None
    is_interleaved: bool = False

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffer the window lies in."""
        return STICK_BYTES * math.prod(self.extents.values())

    def offset(self, dim: str, coordinate: int) -> int:
        """Return the byte offset of ``coordinate`` along ``dim``."""
        return self._digits(dim).offset(coordinate)

    def offsets(self, dim: str, coordinates: Integers) -> Integers:
        """Return the byte offsets of ``coordinates`` along ``dim``."""
        return self._digits(dim).offsets(coordinates)

    def unit_step(self, dim: str, unit: int) -> int:
        """Return the bytes that ``unit`` elements along ``dim`` advance, counted from a multiple of them."""
        return self._digits(dim).offset(unit)

    def breaks(self, dim: str) -> tuple[int, ...]:
        """Return the numbers of elements along ``dim``, each a multiple of the one before, that addresses jump at."""
        return self._digits(dim).sizes

    def _digits(self, dim: str) -> _Digits:
        """Return how addresses along ``dim`` go on."""
        step = STICK_BYTES * self.stride_sticks.get(dim, 0)
        if dim == self.pair_dim:
            return _Digits((2,), (self.element_bytes if step else 0, 2 * step))
        if dim != self.stick_dim:
            return _Digits((), (step,))
        if self.pair_dim is not None:
            pair_step = STICK_BYTES * self.stride_sticks.get(self.pair_dim, 0)
            return _Digits((64, self.stick_size), (2 * self.element_bytes, pair_step, step))
        if self.is_interleaved:
            return _Digits((8, 64, self.stick_size), (*(k * self.element_bytes for k in (1, 16, 8)), step))
        return _Digits((self.stick_size,), (self.element_bytes, step))


class Addressing(Protocol):
    """What a loop nest needs to know of an operand; device operands and dense arrays have it."""

    def breaks(self, dim: str) -> tuple[int, ...]:
        """Return the numbers of elements along ``dim`` that addresses jump at, ascending."""
        ...

    def offset(self, dim: str, coordinate: int) -> int:
        """Return the byte offset of ``coordinate`` along ``dim``."""
        ...

    def unit_step(self, dim: str, unit: int) -> int:
        """Return the bytes that ``unit`` elements along ``dim`` advance."""
        ...


@dataclass(frozen=True, slots=True)
class DenseGeometry:
    """A dense array beside the device: bytes per step along each dim it has."""

    strides_bytes: Mapping[str, int]

    @staticmethod
    def of(extents: Mapping[str, int], element_bytes: int) -> DenseGeometry:
        """Return the geometry of an array with these extents, the last dim innermost."""
        strides: dict[str, int] = {}
        stride = element_bytes
        for dim, extent in reversed(list(extents.items())):
            strides[dim] = stride
            stride *= extent
        return DenseGeometry(strides)

    def breaks(self, dim: str) -> tuple[int, ...]:
        """Return nothing: addresses along ``dim`` go on evenly."""
        assert dim
        return ()

    def offset(self, dim: str, coordinate: int) -> int:
        """Return the byte offset of ``coordinate`` along ``dim``."""
        return coordinate * self.strides_bytes.get(dim, 0)

    def unit_step(self, dim: str, unit: int) -> int:
        """Return the bytes that ``unit`` elements along ``dim`` advance."""
        return unit * self.strides_bytes.get(dim, 0)


def stick_dim_of(superdsc: SuperDsc, operand: Operand) -> str:
    """Return the stick dim of an operand's label."""
    return superdsc.labels[operand.label].stick_dim


def extending_dims(operand: Operand) -> tuple[str, ...]:
    """Return the dims an operand extends along, inner to outer."""
    return tuple(dim for dim in operand.layout_dim_order if operand.scales[dim] == 1)


def index_dims(superdsc: SuperDsc) -> tuple[str, ...]:
    """Return the dims of the index tensors of a gather, in layout order, without repetition."""
    dims = [
        dim
        for operand in superdsc.operands
        if operand.indirection is Indirection.INDEX
        for dim in operand.layout_dim_order
    ]
    return tuple(dict.fromkeys(dims))


def index_of(superdsc: SuperDsc, value: Operand) -> int:
    """Return the position of the index tensor that names a value tensor's rows."""
    own = value.related_operand
    return superdsc.compute.indirect_access_indices[0] if own is None else own


def row_dim_of(superdsc: SuperDsc, value: Operand) -> str | None:
    """Return the dim of a gather's value tensor that stands for the table's rows."""
    rows = index_dims(superdsc)
    return next((dim for dim in value.layout_dim_order if dim in rows), None)


def short_gap_dims(superdsc: SuperDsc, operand: Operand) -> frozenset[str]:
    """Return the dims along which a restickify's gap says that the tensor is shorter than the iteration."""
    if superdsc.op_func_name != RESTICKIFY:
        return frozenset()
    own = stick_dim_of(superdsc, operand)
    others = [item for item in superdsc.operands if item is not operand]
    short: set[str] = set()
    for dim in extending_dims(operand):
        gap = operand.back_gap.get(dim, 0)
        for other in others:
            label = superdsc.labels[other.label]
            if dim == label.stick_dim and dim != own and superdsc.work_slices[dim] == 1 and 0 < gap < label.stick_size:
                short.add(dim)
    return frozenset(short)


def window_elements(superdsc: SuperDsc, position: int) -> dict[str, Integers]:
    """Return, by axis of an operand that a window slides along, the elements ``[output, tap]`` that one core takes.

    They count from the core's start; before and behind the axis there are none (``window_inside``).
    """
    found: dict[str, Integers] = {}
    for axis, sizes in slid_axes(superdsc, position).items():
        outputs = np.arange(superdsc.core_extent[axis], dtype=np.int64)[:, None]
        taps = np.arange(superdsc.iteration[sizes.window_dim], dtype=np.int64)[None, :]
        front = window_front(superdsc.operands[position], axis, sizes)
        found[axis] = outputs * sizes.stride + taps * sizes.dilation - front
    return found


def core_firsts(superdsc: SuperDsc, position: int) -> dict[str, Integers]:
    """Return, by axis of an operand that a window slides along, the element of the axis that each core starts at."""
    return {
        axis: np.array([own[axis] for own in superdsc.core_work_slices], np.int64)
        * (superdsc.core_extent[axis] * sizes.stride)
        for axis, sizes in slid_axes(superdsc, position).items()
    }


def window_inside(superdsc: SuperDsc, position: int, extents: Mapping[str, int]) -> dict[str, npt.NDArray[np.bool_]]:
    """Return, by axis of an operand that a window slides along, which elements ``[core, output, tap]`` it has.

    ``extents``: what memory holds of each axis; the rest is padding.
    """
    firsts = core_firsts(superdsc, position)
    found: dict[str, npt.NDArray[np.bool_]] = {}
    for axis, elements in window_elements(superdsc, position).items():
        places = firsts[axis][:, None, None] + elements[None, :, :]
        found[axis] = (places >= 0) & (places < extents[axis])
    return found


def table_extents(operand: Operand, entry: TableEntry) -> Mapping[str, int] | None:
    """Return the extents (sticks on the stick dim) that the table gives the dims, or ``None`` if that is ambiguous."""
    order = operand.layout_dim_order
    outer = tuple(reversed(entry.device_size[:-1]))
    dims = extending_dims(operand)
    if len(order) == len(outer):
        return {dim: extent for dim, extent in zip(order, outer) if operand.scales[dim] == 1}
    large = [extent for extent in outer if extent != 1]
    return dict(zip(dims, large)) if len(dims) == len(large) else None


def describe(superdsc: SuperDsc, operand: Operand, entry: TableEntry | None) -> OperandGeometry:
    """Return the addressing of one operand; ``entry`` is the argument it lies in, where it is one."""
    label = superdsc.labels[operand.label]
    extents = _file_extents(superdsc, operand)
    from_table = False
    if superdsc.padding_sizes:
        size = None if entry is None else entry.device_size
        position = next(index for index, item in enumerate(superdsc.operands) if item is operand)
        extents = input_extents(superdsc, position, extents, size)
    if entry is not None and operand.indirection is Indirection.VALUE:
        extents |= _row_extent(superdsc, operand, extents, entry)
    elif entry is not None and _takes_table(superdsc):
        known = table_extents(operand, entry)
        # extents that fill the argument are right as the file has them, however the argument's dims are split or joined
        if known is not None and math.prod(extents.values()) != math.prod(entry.device_size[:-1]):
            from_table = any(known.get(dim, extent) != extent for dim, extent in extents.items())
            extents = {dim: known.get(dim, extent) for dim, extent in extents.items()}
    strides: dict[str, int] = {}
    stride = 1
    for dim in operand.layout_dim_order:
        if operand.scales[dim] == 1:
            strides[dim] = stride
            stride *= extents[dim]
    if operand.indirection is Indirection.VALUE:
        row_dim = row_dim_of(superdsc, operand)
        strides = {dim: step for dim, step in strides.items() if dim == row_dim or dim not in index_dims(superdsc)}
    stick_dim = label.stick_dim if operand.scales.get(label.stick_dim) == 1 else None
    pair_dim = label.stick_dims[0] if len(label.stick_dims) == 2 else None
    return OperandGeometry(
        extents, strides, stick_dim, label.stick_size, operand.word_length, from_table, pair_dim, operand.is_interleaved
    )


def _row_extent(superdsc: SuperDsc, value: Operand, extents: Mapping[str, int], entry: TableEntry) -> Mapping[str, int]:
    """Return the rows that a gather's table has: what the argument holds beside the extents that the file states.

    Of the index's dims only the row dim owns a part of the buffer, however many axes the argument's table pads or
    splits it into; whether the axes agree is for rule V6 to say.
    """
    row_dim = row_dim_of(superdsc, value)
    if row_dim is None or row_dim not in extents:
        return {}
    others = math.prod(extent for dim, extent in extents.items() if dim != row_dim)
    rows, rest = divmod(math.prod(entry.device_size[:-1]), others)
    return {} if rest else {row_dim: rows}


def _takes_table(superdsc: SuperDsc) -> bool:
    """Whether the file leaves extents open that only axes of the argument table settle: restickify gaps, casts."""
    return superdsc.op_func_name == RESTICKIFY or superdsc.op_func_name in CASTS


def _file_extents(superdsc: SuperDsc, operand: Operand) -> dict[str, int]:
    label = superdsc.labels[operand.label]
    short = short_gap_dims(superdsc, operand)
    rows = index_dims(superdsc) if operand.indirection is Indirection.VALUE else ()
    row_dim = row_dim_of(superdsc, operand) if rows else None
    extents: dict[str, int] = {}
    for dim in extending_dims(operand):
        if dim in rows and dim != row_dim:
            extents[dim] = 1
            continue
        is_hbm = operand.component is Component.HBM
        iterated = superdsc.iteration[dim] if is_hbm else superdsc.core_elements(operand, dim)
        gap = operand.back_gap.get(dim, 0)
        elements = iterated - gap if dim in short else iterated + gap
        extents[dim] = -(-elements // label.stick_size) if dim == label.stick_dim else elements
    return extents


def owned_extents(superdsc: SuperDsc, operand: Operand) -> dict[str, int]:
    """Return the extents of what each core owns of an operand of a shuffle, dims in the order of the file."""
    own = operand.distribution
    assert own is not None
    dims = extending_dims(operand)
    return {dim: own.core_elements(dim) if dim in dims else 1 for dim in superdsc.iteration}


def valid_extents(superdsc: SuperDsc, geometries: Sequence[OperandGeometry]) -> dict[str, int]:
    """Return the extents per core that are really executed: restickify and ragged casts stop at the shorter tensor.

    Of a shuffle they are those of the result, which each core stores.
    """
    extents = dict(superdsc.core_extent)
    for result in (superdsc.operands[place] for place in superdsc.compute.outputs[:1]):  # a wrong file has none
        if result.distribution is not None:
            return owned_extents(superdsc, result)
    if superdsc.op_func_name != RESTICKIFY and superdsc.op_func_name not in CASTS:
        return extents
    for operand, geometry in zip(superdsc.operands, geometries):
        for dim in geometry.stride_sticks:
            if superdsc.work_slices[dim] != 1:
                continue
            if dim != geometry.stick_dim and dim in short_gap_dims(superdsc, operand) | _short_of_table(geometry, dim):
                extents[dim] = min(extents[dim], geometry.extents[dim])
            elif dim == geometry.stick_dim and geometry.table_extents:
                extents[dim] = min(extents[dim], geometry.extents[dim] * geometry.stick_size)
    return extents


def _short_of_table(geometry: OperandGeometry, dim: str) -> frozenset[str]:
    return frozenset({dim}) if geometry.table_extents else frozenset()


@dataclass(frozen=True, slots=True)
class Nest:
    """One loop nest in which every operand's address is affine.

    ``loops[k]``: extent, then each operand's step in bytes; innermost first, at least two loops.  ``offsets[t]``: byte
    offset of operand t at the nest's first point.
    """

    loops: Integers
    offsets: Integers

    @property
    def points(self) -> int:
        """Elements per core."""
        return math.prod(int(extent) for extent in self.loops[:, 0])

    @property
    def outer_points(self) -> int:
        """Tasks per core: points of the loops from 2 outward."""
        return math.prod(int(extent) for extent in self.loops[2:, 0])


_RUN_LIMIT = 8192  # longest inner loop: a task then is small enough to share out


def build_nests(extents: Mapping[str, int], geometries: Sequence[Addressing]) -> list[Nest]:
    """Split the box ``extents`` so that every operand advances affinely; ragged tails become nests of their own."""
    pieces: list[tuple[list[tuple[str, int, int]], dict[str, int]]] = [([], {})]
    for dim, extent in extents.items():
        sizes = sorted({size for item in geometries for size in item.breaks(dim)})
        segments = _segments(extent, sizes)
        pieces = [
            (loops + [(dim, count, unit) for count, unit in segment], {**origin, dim: first})
            for loops, origin in pieces
            for first, segment in segments
        ]
    return [_nest(loops, origin, geometries) for loops, origin in pieces]


def _segments(extent: int, sizes: Sequence[int]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Split ``extent`` into (first, [(count, unit), ...]) so that no unit straddles a stick of any of ``sizes``.

    >>> _segments(106, [64])
    [(0, [(64, 1), (1, 64)]), (64, [(42, 1)])]
    """
    result: list[tuple[int, list[tuple[int, int]]]] = []
    first = 0
    for count_used in range(len(sizes), -1, -1):
        used = sizes[:count_used]
        whole = (extent - first) // used[-1] * used[-1] if used else extent - first
        if whole == 0:
            continue
        units = [1, *used]
        loops = [(following // unit, unit) for unit, following in zip(units, used)]
        loops.append((whole // units[-1], units[-1]))
        result.append((first, loops))
        first += whole
    return result


def _nest(loops: Sequence[tuple[str, int, int]], origin: Mapping[str, int], geometries: Sequence[Addressing]) -> Nest:
    rows = [[count, *(item.unit_step(dim, unit) for item in geometries)] for dim, count, unit in loops if count > 1]
    # Innermost where the result is contiguous; ties by the inputs.
    rows.sort(key=lambda row: tuple(reversed(row[1:])))
    merged: list[list[int]] = []
    for row in rows:
        if merged and all(step == before * merged[-1][0] for step, before in zip(row[1:], merged[-1][1:])):
            merged[-1][0] *= row[0]
        else:
            merged.append(list(row))
    merged = _bounded(merged)
    while len(merged) < 2:
        merged.append([1] + [0] * len(geometries))
    offsets = [sum(item.offset(dim, first) for dim, first in origin.items()) for item in geometries]
    return Nest(np.array(merged, np.int64), np.array(offsets, np.int64))


def _bounded(loops: list[list[int]]) -> list[list[int]]:
    """Break an inner loop that is long enough to keep a second thread waiting."""
    if not loops or loops[0][0] <= _RUN_LIMIT:
        return loops
    inner = math.gcd(loops[0][0], _RUN_LIMIT)
    if inner < 64:
        return loops
    count, *steps = loops[0]
    outer = [count // inner, *(step * inner for step in steps)]
    # Loop 1 stays short, so that the tasks (loops from 2 outward) are many.
    return [[inner, *steps], [1] + [0] * len(steps), outer, *loops[1:]]


def outer_sum(parts: Sequence[Integers]) -> Integers:
    """Return all sums of one entry of each part, the last part varying fastest."""
    total = np.zeros(1, np.int64)
    for part in parts:
        total = (total[:, None] + part[None, :]).reshape(-1)
    return total


def adjacent_runs(offsets: Integers, element_bytes: int, limit: int = 64) -> Integers:
    """Return (first index, count, byte offset) of the runs of adjacent elements, each at most ``limit`` long."""
    firsts = np.concatenate([[0], np.flatnonzero(np.diff(offsets) != element_bytes) + 1])
    return cut_runs(firsts, offsets[firsts], len(offsets), element_bytes, limit)


def cut_runs(firsts: Integers, offsets: Integers, total: int, element_bytes: int, limit: int = 64) -> Integers:
    """Return adjacent runs of any length, by first index and byte offset, in parts as :func:`adjacent_runs` has them.

    ``total``: elements of all.
    """
    lengths = np.diff(firsts, append=total)
    counts = -(-lengths // limit)
    done = limit * (np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts))
    parts = np.empty((len(done), 3), np.int64)
    parts[:, 0] = np.repeat(firsts, counts) + done
    parts[:, 1] = np.minimum(np.repeat(lengths, counts) - done, limit)
    parts[:, 2] = np.repeat(offsets, counts) + done * element_bytes
    return parts
