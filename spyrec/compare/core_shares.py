"""What one core does of an operation: its part of the iteration, and of each operand elements and bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from spyrec.bundle.manifest import Argument
from spyrec.bundle.superdsc import Indirection, SuperDsc
from spyrec.compare.bundle_reading import OperandReading, OperationReading
from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.geometry import (
    Integers,
    index_dims,
    row_dim_of,
    valid_extents,
    window_elements,
    window_inside,
)
from spyrec.emulator.resolve import AddressPlace
from spyrec.hardware.target import STICK_BYTES
from spyrec.layout.device_layout import DeviceLayout

_MOST_COMBINED = 1 << 20


@dataclass(frozen=True, slots=True)
class IndexRange:
    """Indices ``first, first + step, ...`` below ``past``; all of them, unless the box that they make is not full."""

    first: int
    past: int
    step: int = 1

    @property
    def count(self) -> int:
        """How many indices these are."""
        return len(range(self.first, self.past, self.step))

    def __str__(self) -> str:
        if self.count == 1:
            return str(self.first)
        return f"{self.first}:{self.past}" + (f":{self.step}" if self.step != 1 else "")


@dataclass(frozen=True, slots=True)
class HostBox:
    """Host indices per dim; ``is_full``: the core has every one of them and no other, else it has some of them."""

    ranges: tuple[IndexRange, ...]
    is_full: bool


@dataclass(frozen=True, slots=True)
class OperandShare:
    """A core's part of an operand in the first round of all loops.

    ``first_bytes``, ``past_bytes``: from the start of the tensor, in LX bytes of the core's own scratchpad; ``None``
    where only a call says them.  ``elements``: how many, padding included.  ``host``: of an argument with a host
    tensor; ``None`` elsewhere, and where all that the core has is padding.  ``rows_of``: operand whose numbers say
    which rows of this one are taken; the share is then the whole table.
    """

    place: AddressPlace
    first_bytes: int | None
    past_bytes: int | None
    elements: int
    host: HostBox | None
    rows_of: int | None = None


@dataclass(frozen=True, slots=True)
class CoreShare:
    """What a core does: coordinates of the whole iteration by dim, and its part of each operand by position."""

    core: int
    iteration: Mapping[str, IndexRange]
    operands: tuple[OperandShare, ...]


def core_share(operation: OperationReading, core: int) -> CoreShare | None:
    """Return what a core does of an operation, ``None`` where it takes no part."""
    superdsc = operation.superdsc
    if operation.call.data_dsc is not None or core not in superdsc.core_ids:
        return None
    row = superdsc.core_ids.index(core)
    box = valid_extents(superdsc, [item.geometry for item in operation.operands])
    slices = superdsc.core_work_slices[row]
    firsts = {dim: slices[dim] * extent for dim, extent in superdsc.core_extent.items()}
    iteration = {dim: IndexRange(first, first + box[dim]) for dim, first in firsts.items()}
    shares = (_share(operation, position, row, box) for position in range(len(operation.operands)))
    return CoreShare(core, iteration, tuple(shares))


def _share(operation: OperationReading, position: int, row: int, box: Mapping[str, int]) -> OperandShare:
    item, superdsc = operation.operands[position], operation.superdsc
    geometry = item.geometry
    place, rows_of = item.places[_start_row(superdsc, position, row)], None
    coordinates = {dim: np.arange(box[dim], dtype=np.int64) for dim in geometry.stride_sticks}
    if superdsc.padding_sizes:
        inside = window_inside(superdsc, position, geometry.extents)
        for axis, elements in window_elements(superdsc, position).items():
            coordinates[axis] = np.unique(elements[inside[axis][row]])
    if item.operand.indirection is Indirection.VALUE:
        row_dim = row_dim_of(superdsc, item.operand)
        if row_dim is not None:
            unit = geometry.stick_size if row_dim == geometry.stick_dim else 1
            coordinates[row_dim] = np.arange(geometry.extents.get(row_dim, 1) * unit, dtype=np.int64)
        rows_of = item.operand.related_operand
        rows_of = superdsc.compute.indirect_access_indices[0] if rows_of is None else rows_of
    steps = [geometry.offsets(dim, numbers) for dim, numbers in coordinates.items()]
    elements = math.prod(len(numbers) for numbers in steps)
    if place.parameter is not None or not elements:
        return OperandShare(place, None, None, elements, None, rows_of)
    first = place.offset + sum(int(numbers.min()) for numbers in steps)
    past = place.offset + sum(int(numbers.max()) for numbers in steps) + item.operand.word_length
    return OperandShare(place, first, past, elements, _host_box(item, place, steps), rows_of)


def _start_row(superdsc: SuperDsc, position: int, row: int) -> int:
    """Return the core whose start counts: of a table that of the same slices and slice 0 of what the index names."""
    if superdsc.operands[position].indirection is not Indirection.VALUE:
        return row
    still, slices = index_dims(superdsc), superdsc.core_work_slices
    wanted = {dim: 0 if dim in still else number for dim, number in slices[row].items()}
    return slices.index(wanted) if wanted in slices else row


def host_layout(argument: Argument) -> DeviceLayout | None:
    """Return the layout of an argument with its host tensor; ``None`` where nobody says what that is."""
    if argument.stride_map is None or argument.shape is None or 0 in argument.shape:
        return None
    try:
        return DeviceLayout(
            argument.device_size, argument.stride_map, argument.device_dtype, argument.shape, argument.host_strides
        )
    except SpyrecError:
        return None  # a table that contradicts itself is what `check` reports


def _host_box(item: OperandReading, place: AddressPlace, steps: Sequence[Integers]) -> HostBox | None:
    """Return which host indices elements have that lie at ``place`` plus one of each of ``steps``."""
    layout = None if item.argument is None else host_layout(item.argument)
    word = item.operand.word_length
    if layout is None or word * layout.elements_per_stick != STICK_BYTES:
        return None
    total = layout.nbytes
    base = place.offset + sum(int(numbers[0]) for numbers in steps)
    origin, is_element = layout.host_indices(np.array([base // word], np.int64))
    if not 0 <= base < total or base % word or not is_element[0]:
        return None
    lines: list[_Line] = []
    for numbers in steps:
        bytes_of_line = base + numbers - numbers[0]
        if bytes_of_line.min() < 0 or bytes_of_line.max() >= total or (bytes_of_line % word).any():
            return None
        indices, inside = layout.host_indices(bytes_of_line // word)
        lines.append(_Line(bytes_of_line[inside], indices[inside] - origin[0]))
    values = [_sums(origin[0][dim], [line.deltas[:, dim] for line in lines]) for dim in range(len(layout.host_shape))]
    if any(numbers is None for numbers in values):
        return None
    kept = [numbers for numbers in values if numbers is not None]
    ranges = [_range_of(numbers) for numbers in kept]
    is_full = math.prod(len(numbers) for numbers in kept) == math.prod(len(line.deltas) for line in lines) and all(
        item.count == len(numbers) for item, numbers in zip(ranges, kept, strict=True)
    )
    return HostBox(tuple(ranges), is_full and _adds_up(layout, lines, origin[0], base, word))


@dataclass(frozen=True, slots=True)
class _Line:
    """Elements along one dim, at the first of all others: their bytes, and by how much their host indices differ."""

    places: Integers
    deltas: Integers


def _sums(first: np.int64, parts: Sequence[Integers]) -> Integers | None:
    """Return all sums of a number and one of each part, ascending; ``None`` where there are too many."""
    total = np.array([first], np.int64)
    for part in parts:
        numbers = np.unique(part)
        if len(total) * len(numbers) > _MOST_COMBINED:
            return None
        total = np.unique(total[:, None] + numbers[None, :])
    return total


def _range_of(numbers: Integers) -> IndexRange:
    """Return the ascending numbers as a range, or, where they are none, the range from first to last."""
    steps = np.diff(numbers)
    step = int(steps[0]) if len(steps) and (steps == steps[0]).all() else 1
    return IndexRange(int(numbers[0]), int(numbers[-1]) + 1, step)


def _adds_up(layout: DeviceLayout, lines: Sequence[_Line], origin: Integers, base: int, word: int) -> bool:
    """Whether the index of the farthest corner is the sum of what each dim adds: no dim runs over into another."""
    corner = base + sum(int(line.places[-1]) - base for line in lines)
    wanted = origin + sum(line.deltas[-1] for line in lines) if lines else origin
    if not 0 <= corner < layout.nbytes:
        return False
    indices, inside = layout.host_indices(np.array([corner // word], np.int64))
    return bool(inside[0] and (indices[0] == wanted).all())
