"""Where the elements of an operand lie: at which byte from its start, and which of them a core executes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component, Indirection, Operand, SuperDsc
from spyrec.bundle.superdsc_windows import input_extents
from spyrec.dataclass import dataclass
from spyrec.device_ops import CASTS, RESTICKIFY
from spyrec.emulator.reference.memory import Integers, ScalarType
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.device import TableEntry


@dataclass(frozen=True, slots=True)
class View:
    """How an operand lies in its buffer.

    ``extents``: entries of the buffer along each dim that the operand extends along, inner to outer: elements, along
    the stick dim sticks.  ``strides``: sticks from one entry to the next.  A dim that is not there does not advance.
    ``stick_dim``: the dim whose elements fill sticks of ``stick_size``; ``None`` where one stick is all there is, and
    lane 0 counts.  ``is_of_table``: the argument table corrects the extents of the file.

    Inside of a stick elements stand in order, but: ``is_interleaved``: the two halves alternate every 8 elements.
    ``pair_dim``: two entries along this dim, row 0 and row 1, share two sticks, the first for the first 64 elements of
    both, row 0 and row 1 alternating element by element, the second one for the others.
    """

    data_format: DeviceFormat
    element_bytes: int
    stick_dim: str | None
    stick_size: int
    extents: Mapping[str, int]
    strides: Mapping[str, int]
    is_of_table: bool
    pair_dim: str | None = None
    is_interleaved: bool = False

    def along(self, dim: str | None, coordinates: Integers) -> Integers:
        """Return how many bytes coordinates along a dim lie behind coordinate 0."""
        if dim is None or dim not in self.strides:
            return np.zeros_like(coordinates)
        stick_bytes = STICK_BYTES * self.strides[dim]
        if dim == self.pair_dim:
            pairs, rows = np.divmod(coordinates, 2)
            return pairs * 2 * stick_bytes + rows * self.element_bytes
        if dim != self.stick_dim:
            return coordinates * stick_bytes
        sticks, lanes = np.divmod(coordinates, self.stick_size)
        if self.pair_dim is not None:
            halves, lanes = np.divmod(lanes, 64)
            pair_bytes = STICK_BYTES * self.strides[self.pair_dim]
            return sticks * stick_bytes + halves * pair_bytes + lanes * 2 * self.element_bytes
        if self.is_interleaved:
            halves, lanes = np.divmod(lanes, 64)
            eights, lanes = np.divmod(lanes, 8)
            lanes = 16 * eights + 8 * halves + lanes
        return sticks * stick_bytes + lanes * self.element_bytes

    def offsets(self, box: Mapping[str, int], but: str | None = None) -> Integers:
        """Return the bytes from the start of every element of a box, an axis per dim; 1 long where it stands still."""
        total = np.zeros([1] * len(box), np.int64)
        for axis, (dim, extent) in enumerate(box.items()):
            if dim in self.strides and dim != but:
                total = total + at_axis(axis, box, self.along(dim, np.arange(extent)))
        return total


def at_axis(axis: int, box: Mapping[str, int], numbers: npt.NDArray[ScalarType]) -> npt.NDArray[ScalarType]:
    """Return numbers along one axis of a box, 1 long along all others."""
    return numbers.reshape([-1 if other == axis else 1 for other in range(len(box))])


def view_of(superdsc: SuperDsc, operand: Operand, entry: TableEntry | None) -> View:
    """Return how an operand lies in its buffer; ``entry``: the argument that is the buffer, if one is.

    The strides are those of the buffer, which is larger than what is iterated by the back gap, or, where a restickify's
    gap is a short one, smaller.
    """
    label = superdsc.labels[operand.label]
    extents: dict[str, int] = {}
    for dim in operand.layout_dim_order:
        if operand.scales[dim] == 1:
            is_hbm = operand.component is Component.HBM
            iterated = superdsc.iteration[dim] if is_hbm else superdsc.core_elements(operand, dim)
            gap = operand.back_gap.get(dim, 0)
            elements = iterated - gap if _is_short(superdsc, operand, dim) else iterated + gap
            extents[dim] = -(-elements // label.stick_size) if dim == label.stick_dim else elements
    is_of_table = False
    still: set[str] = set()
    if operand.indirection is Indirection.VALUE:
        still = {dim for dim in index_dims(superdsc) if dim in extents} - {row_dim_of(superdsc, operand)}
        extents |= dict.fromkeys(still, 1)
        extents = _with_rows(extents, row_dim_of(superdsc, operand), entry)
    elif superdsc.padding_sizes:
        position = next(index for index, item in enumerate(superdsc.operands) if item is operand)
        extents = input_extents(superdsc, position, extents, None if entry is None else entry.device_size)
    elif entry is not None and (superdsc.op_func_name == RESTICKIFY or superdsc.op_func_name in CASTS):
        corrected = _corrected(operand, extents, entry)
        is_of_table, extents = corrected != extents, corrected
    strides = {dim: math.prod(list(extents.values())[:place]) for place, dim in enumerate(extents) if dim not in still}
    stick_dim = label.stick_dim if operand.scales.get(label.stick_dim) == 1 else None
    pair_dim = label.stick_dims[0] if len(label.stick_dims) == 2 else None
    return View(
        operand.data_format, operand.word_length, stick_dim, label.stick_size, extents, strides, is_of_table,
        pair_dim, operand.is_interleaved,
    )  # fmt: skip


def _is_short(superdsc: SuperDsc, operand: Operand, dim: str) -> bool:
    """Whether a gap says that the tensor ends before the padded iteration: it is less than a stick of the other side
    of a restickify, whose stick dim this is, and the dim is not divided.
    """
    other_sticks = (
        superdsc.labels[other.label].stick_size
        for other in superdsc.operands
        if other is not operand and superdsc.labels[other.label].stick_dim == dim
    )
    return (
        superdsc.op_func_name == RESTICKIFY
        and dim != superdsc.labels[operand.label].stick_dim
        and superdsc.work_slices[dim] == 1
        and any(0 < operand.back_gap.get(dim, 0) < size for size in other_sticks)
    )


def _corrected(operand: Operand, extents: Mapping[str, int], entry: TableEntry) -> dict[str, int]:
    """Ragged casts and gaps of restickifies leave extents open; where the argument's size differs, its axes say them.

    Its axes are those of the operand's order, or, both without those of extent 1, those that it extends along.
    """
    axes = tuple(reversed(entry.device_size[:-1]))
    order = operand.layout_dim_order
    if math.prod(extents.values()) == math.prod(axes):
        return dict(extents)
    large = [extent for extent in axes if extent != 1]
    if len(order) == len(axes):
        known = dict(zip(order, axes, strict=True))
    elif len(large) == len(extents):
        known = dict(zip(extents, large, strict=True))
    else:
        known = {}
    return {dim: known.get(dim, extent) for dim, extent in extents.items()}


def index_dims(superdsc: SuperDsc) -> set[str]:
    """Return the dims of the index of a gather or scatter."""
    found = (item.layout_dim_order for item in superdsc.operands if item.indirection is Indirection.INDEX)
    return {dim for order in found for dim in order}


def row_dim_of(superdsc: SuperDsc, table: Operand) -> str | None:
    """Return the dim of a gather's table that stands for its rows: the first one that the index has."""
    return next((dim for dim in table.layout_dim_order if dim in index_dims(superdsc)), None)


def _with_rows(extents: Mapping[str, int], row_dim: str | None, entry: TableEntry | None) -> dict[str, int]:
    """The file does not say how many rows a gather's table has: what the argument holds beside the other dims."""
    if entry is None or row_dim is None or row_dim not in extents:
        return dict(extents)
    others = math.prod(extent for dim, extent in extents.items() if dim != row_dim)
    rows, rest = divmod(math.prod(entry.device_size[:-1]), others)
    return dict(extents) if rest else {**extents, row_dim: rows}


def box_of(superdsc: SuperDsc, views: Sequence[View]) -> dict[str, int]:
    """Return how many elements along each dim one core executes: its slice, dims in the order of the file.

    A restickify and a ragged cast end where the shorter of both tensors does.
    """
    box = dict(superdsc.core_extent)
    if superdsc.op_func_name == RESTICKIFY or superdsc.op_func_name in CASTS:
        for operand, view in zip(superdsc.operands, views, strict=True):
            for dim, extent in view.extents.items():
                if superdsc.work_slices[dim] == 1 and (view.is_of_table or _is_short(superdsc, operand, dim)):
                    box[dim] = min(box[dim], extent * (view.stick_size if dim == view.stick_dim else 1))
    return box


def walked(offsets: Integers, entry: TableEntry | None) -> Integers:
    """Return bytes of an argument as a launch walks it, which may be at other stick strides than its size has.

    Every digit of a stick's number, one per axis of the size, then moves by the stride of its axis.
    """
    if entry is None or entry.stick_strides is None:
        return offsets
    sticks, lanes = np.divmod(offsets, STICK_BYTES)
    total = np.zeros_like(sticks)
    for extent, stride in zip(reversed(entry.device_size[:-1]), reversed(entry.stick_strides), strict=True):
        sticks, digit = np.divmod(sticks, extent)
        total = total + digit * stride
    return STICK_BYTES * total + lanes
