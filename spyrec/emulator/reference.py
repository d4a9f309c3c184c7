"""What a program of SuperDSCs does: the definition, to be read from top to bottom.

This is an interpreter, plain and slow.  What it leaves in memory is what the device leaves there, bit for bit, and the
compiled path of the emulator has to equal it (``tests/properties/test_reference.py``).  It takes nothing from that
path; what each operation computes on its elements stands in its record (``spyrec/device_ops``).

1. Memory: regions of bytes, in sticks of 128; and how a number is stored in each format.
2. The program ``bundle.mlir``: numbers, addresses, loops, and the SuperDSCs that it executes one after the other.  One
   with several DSCs is as many operations (``bundle/dsc_actions``), what its data DSCs do is in ``reference_moves``.
3. Operands: at which byte each element of an operand lies; what a window takes: ``reference_windows.py``.
4. Operations: what is loaded, computed, rounded and stored.

It is defined for programs that obey the rules checked at load (V1 to V14): nothing here looks for mistakes but what
only data shows, the row of a gather.  ``docs/decisions.md`` says why a rule is as it is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from spyrec.bundle import program as mlir
from spyrec.bundle.data_dsc import PiecePlace
from spyrec.bundle.dsc_actions import actions_of
from spyrec.bundle.superdsc import Component, Indirection, Operand, SuperDsc
from spyrec.bundle.superdsc_windows import input_extents
from spyrec.device_ops import CASTS, RESTICKIFY, TOP_PLACES, device_operation
from spyrec.device_ops.expression import ArrayAlgebra
from spyrec.device_ops.record import Accumulator, Family, WindowForm
from spyrec.diagnostics import Location, refuse
from spyrec.emulator.reference_moves import move_pieces
from spyrec.emulator.reference_windows import slid_axis
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.device import ArgumentTable, TableEntry

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Floating = npt.NDArray[np.floating]
ScalarType = TypeVar("ScalarType", bound=np.generic)
Patterns = npt.NDArray[np.unsignedinteger]

# Part 1: memory, and how numbers are stored in it.

_CARRIERS: dict[int, type[np.unsignedinteger]] = {1: np.uint8, 2: np.uint16, 4: np.uint32}

POOL = -1
"""The region of the pool.  An argument's region is its index; what the program allocates itself is -2, -3, ..."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The memories of a device.  They keep what they hold from one launch to the next.

    ``regions``: device memory, by argument index, ``POOL``, or below.  ``scratchpads``: LX, by core id; only
    shuffles and data DSCs move data between them.  ``half``: the format that stands where a tensor is DLFloat16
    (``--numerics``); one that is twice as wide has twice the memory: ``expansion`` bytes for each byte of the device.
    """

    regions: Mapping[int, Bytes]
    scratchpads: Mapping[int, Bytes]
    half: DeviceFormat = DeviceFormat.SEN169_FP16
    expansion: int = 1


_IEEE = {DeviceFormat.IEEE_FP16: np.float16, DeviceFormat.IEEE_FP32: np.float32}
_FLOATS = frozenset({DeviceFormat.SEN169_FP16, DeviceFormat.SEN143_FP8, *_IEEE})
"""Formats that are computed on.  All others are patterns to move, and 32-bit ones indices, signed."""


def decode(data_format: DeviceFormat, patterns: Patterns) -> Floats:
    """Return the values of patterns; float32 holds those of every format exactly."""
    if data_format is DeviceFormat.SEN169_FP16:
        return dlfloat.decode(patterns.astype(np.uint16))
    if data_format is DeviceFormat.SEN143_FP8:
        return _E4M3[patterns]
    return patterns.view(_IEEE[data_format]).astype(np.float32)


def encode(data_format: DeviceFormat, values: Floating) -> Patterns:
    """Round values once, from the width that they have, to nearest: ties to even, those of DLFloat16 away from 0.

    NaN becomes one pattern, but in float32, where it stays the NaN that it is.
    """
    if data_format is DeviceFormat.SEN169_FP16:
        return dlfloat.encode(values)
    if data_format is DeviceFormat.SEN143_FP8:
        return _encode_e4m3(values.astype(np.float64))
    if data_format is DeviceFormat.IEEE_FP16:
        return np.where(np.isnan(values), 0x7E00, values.astype(np.float16).view(np.uint16)).astype(np.uint16)
    return values.astype(np.float32).view(np.uint32)


def _e4m3_value(pattern: int) -> float:
    """Return the value of an E4M3 pattern: bias 7, subnormals, no infinity, and all ones is NaN."""
    exponent, fraction = pattern >> 3 & 15, pattern & 7
    if pattern & 0x7F == 0x7F:
        return math.nan
    magnitude = math.ldexp(8 + fraction, exponent - 10) if exponent else math.ldexp(fraction, -9)
    return -magnitude if pattern & 0x80 else magnitude


_E4M3: Floats = np.array([_e4m3_value(pattern) for pattern in range(256)], np.float32)


def _encode_e4m3(values: Doubles) -> Patterns:
    """Round to the nearest of 127 magnitudes, ties to the even pattern; what is beyond the last one becomes that."""
    known = _E4M3[:127].astype(np.float64)
    magnitude = np.nan_to_num(np.minimum(np.abs(values), known[-1]), nan=0.0)
    above = np.searchsorted(known, magnitude)
    below = np.maximum(above - 1, 0)
    down, up = magnitude - known[below], known[above] - magnitude
    nearest = np.where((down < up) | ((down == up) & (below % 2 == 0)), below, above)
    signed = np.where(np.signbit(values), nearest | 0x80, nearest)
    return np.where(np.isnan(values), 0x7F, signed).astype(np.uint8)


# Part 2: the program.


@dataclass(frozen=True, slots=True)
class Place:
    """A value of ``bundle.mlir``: byte ``offset`` of a region, or a plain number where there is no region."""

    region: int | None
    offset: int

    def __add__(self, other: Place) -> Place:
        assert self.region is None or other.region is None, "two addresses are added"
        return Place(other.region if self.region is None else self.region, self.offset + other.offset)


Starts = Sequence[Sequence[Place]]
"""Where operand t of the ith core begins: ``starts[t][i]``; a place in LX, which is the core's own, has no region."""

Scope = Mapping[str, Place]
Watcher = Callable[[mlir.SdscExecute, int, Starts], None]
"""Is told of each execution: the statement, which of its actions it is, and where operands begin."""


@dataclass(frozen=True, slots=True)
class DefinedLaunch:
    """A launch of a program; ``values``: of its value parameters; ``watcher``: is told of each execution before it."""

    program: mlir.Program
    superdscs: Mapping[str, SuperDsc]
    table: ArgumentTable
    machine: Machine
    values: Mapping[str, int]
    watcher: Watcher | None = None

    def run(self) -> None:
        """Execute the program; errors SPY0706 a gather takes a row that its table does not have."""
        self._run(self.program.body, {})

    def _run(self, body: Sequence[mlir.Statement], outer: Scope) -> None:
        """Execute statements in the order of the text, each SuperDSC finished before the next one begins.

        A name holds to the end of the loop's body that it stands in.
        """
        scope = dict(outer)
        for statement in body:
            match statement:
                case mlir.Constant(result, value):
                    scope[result] = Place(None, value)
                case mlir.ArgumentExtract(result, argument):
                    scope[result] = self._argument(argument)
                case mlir.Add(result, left, right):
                    scope[result] = scope[left] + scope[right]
                case mlir.AffineApply(result, map_name, dims, symbol):
                    (affine,) = (item for item in self.program.maps if item.name == map_name)
                    steps = (k * scope[dim].offset for k, dim in zip(affine.coefficients, dims, strict=True))
                    scope[result] = scope[symbol] + Place(None, sum(steps))
                case mlir.DeviceMemoryAllocate(result, _):
                    scope[result] = Place(self._own_region(statement), 0)
                case mlir.For(induction, lower, upper, step, inner):
                    for value in range(scope[lower].offset, scope[upper].offset, scope[step].offset):
                        self._run(inner, {**scope, induction: Place(None, value)})
                case mlir.SdscExecute():
                    self._execute(statement, scope)

    def _argument(self, name: str) -> Place:
        if mlir.is_value_parameter(name):
            return Place(None, self.values[name])
        if name == "pool_base_addr":
            return Place(POOL, 0)
        return Place(int(name.removeprefix("arg_").removesuffix("_base_addr")), 0)

    def _own_region(self, wanted: mlir.DeviceMemoryAllocate) -> int:
        """Memory that the program allocates lives as long as the program: one region per statement, in text order."""
        own = [item for item in _every_statement(self.program.body) if isinstance(item, mlir.DeviceMemoryAllocate)]
        return POOL - 1 - next(number for number, item in enumerate(own) if item is wanted)

    def _execute(self, statement: mlir.SdscExecute, scope: Scope) -> None:
        """Execute a SuperDSC: as a rule one operation, else what its schedule says, one action after the other.

        That is more order than barriers give; programs that need it race.
        """
        superdsc, file = self.superdscs[statement.sdsc_filename], statement.sdsc_filename
        bound = dict(zip(statement.symbol_ids or (), (scope[name] for name in statement.operands), strict=True))
        if superdsc.schedule is None:
            self._compute(statement, 0, superdsc, bound)
            return
        for number, action in enumerate(actions_of(superdsc, file)):
            if action.part is not None:
                self._compute(statement, number, action.part.superdsc, bound)
            elif action.data_dsc is not None:
                if self.watcher is not None:
                    self.watcher(statement, number, ())
                move_pieces(action.data_dsc, self._located, self.machine.expansion, file)

    def _located(self, place: PiecePlace) -> tuple[Bytes, int]:
        """Return the memory of a piece, and where it begins there."""
        if place.core is not None:
            return self.machine.scratchpads[place.core], place.start
        found = self._baked(place.start_bytes)
        assert found.region is not None
        return self.machine.regions[found.region], found.offset

    def _compute(
        self, statement: mlir.SdscExecute, number: int, superdsc: SuperDsc, bound: Mapping[int, Place]
    ) -> None:
        starts = [self._starts(superdsc, operand, bound) for operand in superdsc.operands]
        if self.watcher is not None:
            self.watcher(statement, number, starts)
        entries = {entry.arg_index: entry for entry in self.table.entries}  # the arguments, by region
        with np.errstate(all="ignore"):
            given = {dim: (bound[item.symbol_id].offset, item) for dim, item in superdsc.dynamic_dims.items()}
            sizes = {dim: size for dim, (size, item) in given.items() if size < item.max_size}
            perform(DefinedExecution(statement.sdsc_filename, superdsc, self.machine, starts, entries, sizes))

    def _starts(self, superdsc: SuperDsc, operand: Operand, bound: Mapping[int, Place]) -> list[Place]:
        """Return where the operand begins on each core.

        A gather's table begins where it does on the core with the same slices, but slice 0 of the index's dims: those
        of others advance by a slice of the index, which means nothing.
        """
        starts = [self._start(operand, start, bound) for start in operand.start_addresses]
        if operand.indirection is not Indirection.VALUE:
            return starts
        still, slices = _index_dims(superdsc), superdsc.core_work_slices
        firsts = ({dim: 0 if dim in still else number for dim, number in own.items()} for own in slices)
        return [starts[slices.index(first)] for first in firsts]

    def _start(self, operand: Operand, start: int, bound: Mapping[int, Place]) -> Place:
        """A start of LX is a byte of the core's own; a negative one is the id of a symbol, which this call binds."""
        if operand.component is Component.LX:
            return Place(None, start)
        place = bound[start] if start < 0 else Place(None, start)
        return place if place.region is not None else self._baked(place.offset)

    def _baked(self, address: int) -> Place:
        """An absolute address names the argument whose part of the address space holds it, or the pool."""
        for entry in self.table.entries:
            if entry.baked_base <= address < entry.baked_base + entry.size_bytes:
                return Place(entry.arg_index, address - entry.baked_base)
        return Place(POOL, address)


def _every_statement(body: Sequence[mlir.Statement]) -> Iterator[mlir.Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, mlir.For):
            yield from _every_statement(statement.body)


# Part 3: where the elements of an operand lie.


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
                total = total + _at_axis(axis, box, self.along(dim, np.arange(extent)))
        return total


def _at_axis(axis: int, box: Mapping[str, int], numbers: npt.NDArray[ScalarType]) -> npt.NDArray[ScalarType]:
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
        still = {dim for dim in _index_dims(superdsc) if dim in extents} - {_row_dim(superdsc, operand)}
        extents |= dict.fromkeys(still, 1)
        extents = _with_rows(extents, _row_dim(superdsc, operand), entry)
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


def _index_dims(superdsc: SuperDsc) -> set[str]:
    found = (item.layout_dim_order for item in superdsc.operands if item.indirection is Indirection.INDEX)
    return {dim for order in found for dim in order}


def _row_dim(superdsc: SuperDsc, table: Operand) -> str | None:
    """Return the dim of a gather's table that stands for its rows: the first one that the index has."""
    return next((dim for dim in table.layout_dim_order if dim in _index_dims(superdsc)), None)


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


class DefinedExecution:
    """One execution of a SuperDSC: loads and stores whole operands of one core, an axis per dim of the box."""

    def __init__(  # noqa: PLR0913 -- an operation, and all that a call binds it to
        self,
        file: str,
        superdsc: SuperDsc,
        machine: Machine,
        starts: Starts,
        entries: Mapping[int, TableEntry],
        sizes: Mapping[str, int],
    ) -> None:
        self.file, self.superdsc, self.machine = file, superdsc, machine
        self._starts, self._entries = starts, entries
        regions = [places[0].region for places in starts]
        arguments = [None if region is None else entries.get(region) for region in regions]
        self.views = [view_of(superdsc, *pair) for pair in zip(superdsc.operands, arguments, strict=True)]
        # A dynamic dim ends where the launch says, in a buffer of the largest size; no other core has a part of it.
        self.box = {dim: min(extent, sizes.get(dim, extent)) for dim, extent in box_of(superdsc, self.views).items()}
        self.iteration = {dim: min(extent, sizes.get(dim, extent)) for dim, extent in superdsc.iteration.items()}
        self.cores = range(len(superdsc.core_ids))
        compute = superdsc.compute
        (self.output,) = compute.outputs
        self.inputs = [t for t in compute.inputs if t != self.output and t not in compute.indirect_access_indices]
        self.constants = {item.name: constant_value(item.data_format, item.bits) for item in superdsc.constants}

    def stored(self, position: int) -> DeviceFormat:
        """Return the format that memory really holds."""
        data_format = self.views[position].data_format
        return self.machine.half if data_format is DeviceFormat.SEN169_FP16 else data_format

    def extends(self, position: int, dim: str) -> bool:
        """Whether an operand extends along a dim; along others it has one element, which stands for all."""
        return dim in self.views[position].strides

    def patterns(self, position: int, core: int, offsets: Integers) -> Patterns:
        """Return what stands ``offsets`` behind the start of an operand on a core."""
        memory, places = self._bytes(position, core, offsets)
        return np.ascontiguousarray(memory[places]).view(_CARRIERS[places.shape[-1]])[..., 0]

    def offsets(self, position: int, core: int) -> Integers:
        """Return the bytes from the start of an operand to each of its elements, an axis per dim of the box.

        Of a table, which one side of a gather or scatter is, the index names the rows, counted from its start.
        """
        superdsc, view = self.superdsc, self.views[position]
        operand = superdsc.operands[position]
        if operand.indirection is not Indirection.VALUE:
            return view.offsets(self.box)
        row_dim = _row_dim(superdsc, operand)
        count = 1 if row_dim is None else view.extents[row_dim] * (view.stick_size if row_dim == view.stick_dim else 1)
        index = (
            superdsc.compute.indirect_access_indices[0] if operand.related_operand is None else operand.related_operand
        )
        numbers = self.patterns(index, core, self.views[index].offsets(self.box))
        rows = _index_values(self.stored(index), numbers)
        for row in rows.flat:
            if not 0 <= row < count:
                raise refuse("SPY0706", f"row {row} of a table of {count} rows", Location(self.file))
        return view.offsets(self.box, but=row_dim) + view.along(row_dim, rows)

    def values(self, position: int, core: int, lane: int = 0) -> Floats:
        """Return the values of an operand on a core, or of those ``lane`` elements behind."""
        offsets = self.offsets(position, core) + lane * self.views[position].element_bytes
        return decode(self.stored(position), self.patterns(position, core, offsets))

    def slid_values(self, core: int) -> Floats:
        """Return the values of the first input on a core, an axis per dim of the box, those of the window too.

        Which element stands where a window slides is said in ``reference_windows.py``; padding counts as zero.
        """
        superdsc, position = self.superdsc, self.inputs[0]
        view = self.views[position]
        axes = [axis for axis in superdsc.padding_sizes if axis in view.strides]
        offsets = view.offsets({dim: 1 if dim in axes else extent for dim, extent in self.box.items()})
        is_inside = np.ones([1] * len(self.box), bool)
        for axis in axes:
            slid = slid_axis(superdsc, axis, view.extents[axis], core, self.box)
            offsets = offsets + view.along(axis, slid.elements)
            is_inside = is_inside & slid.is_inside
        return np.where(is_inside, decode(self.stored(position), self.patterns(position, core, offsets)), np.float32(0))

    def store(self, core: int, patterns: Patterns, lane: int = 0) -> None:
        """Store the output of a core: each element that it extends to, and nothing else of its sticks."""
        offsets = self.offsets(self.output, core) + lane * self.views[self.output].element_bytes
        self.store_at(core, offsets, patterns)

    def store_at(self, core: int, offsets: Integers, patterns: Patterns) -> None:
        """Store elements of the output of a core, ``offsets`` bytes behind its start, in the order of the box.

        Of rows that an index names twice the later one stays.
        """
        memory, places = self._bytes(self.output, core, offsets)
        whole = np.broadcast_to(patterns, offsets.shape).astype(_CARRIERS[places.shape[-1]])
        octets = np.ascontiguousarray(whole)[..., None].view(np.uint8)
        memory[places.reshape(-1)] = octets.reshape(-1)  # flat, where NumPy keeps the order

    def store_rounded(self, core: int, values: Floating, lane: int = 0) -> None:
        """Round and store the output of a core."""
        self.store(core, encode(self.stored(self.output), values), lane)

    def _bytes(self, position: int, core: int, offsets: Integers) -> tuple[Bytes, Integers]:
        """Return a memory, and where in it the bytes of elements stand that lie ``offsets`` behind the start."""
        start, bits = self._starts[position][core], self.stored(position).bits
        assert bits is not None
        if start.region is None:
            memory, places = self.machine.scratchpads[self.superdsc.core_ids[core]], start.offset + offsets
        else:
            memory = self.machine.regions[start.region]
            places = walked(start.offset + offsets, self._entries.get(start.region))
        every = self.machine.expansion * places[..., None] + np.arange(bits // 8)
        assert every.min() >= 0, "an operand begins before its memory"
        return memory, every

    def cohorts(self, folded: Sequence[str]) -> list[list[int]]:
        """Return the cores that share a result, because they differ in slices of ``folded`` dims only, in slice order.

        A file says so by nothing but equal addresses.  Slices of the dims count in the order of the dims.
        """
        groups: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = defaultdict(list)
        for core, slices in enumerate(self.superdsc.core_work_slices):
            key = tuple(slices[dim] for dim in self.box if dim not in folded)
            groups[key].append((tuple(slices[dim] for dim in folded), core))
        return [[core for _, core in sorted(members)] for members in groups.values()]

    def folded_first(self, array: npt.NDArray[np.generic], folded: Sequence[str]) -> npt.NDArray[np.generic]:
        """Return ``[folded point, *box]``: folded dims in the order of the file, the last one fastest, then 1 long."""
        axes = [axis for axis, dim in enumerate(self.box) if dim in folded]
        shape = [extent if dim in folded else array.shape[axis] for axis, (dim, extent) in enumerate(self.box.items())]
        rest = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
        return np.moveaxis(np.broadcast_to(array, shape), axes, range(len(axes))).reshape(-1, *rest)


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


def constant_value(data_format: DeviceFormat, bits: int) -> float:
    """Return a constant of an operation: IEEE bits where it says IEEE_FP32, else DLFloat16 whatever it says."""
    if data_format is not DeviceFormat.IEEE_FP32:
        data_format, bits = DeviceFormat.SEN169_FP16, bits & 0xFFFF
    return float(decode(data_format, np.array([bits], np.uint32))[0])


# Part 4: what the operations compute.


def perform(execution: DefinedExecution) -> None:
    """Execute one SuperDSC.  The outer name of a reduction only says that no output has one element per stick."""
    name = execution.superdsc.op_func_name
    match device_operation(name).family:
        case Family.IDENTITY | Family.RESTICKIFY | Family.CAST | Family.PACK:
            _copy(execution)
        case Family.SHUFFLE:
            _shuffle(execution)
        case Family.UNARY:
            _one_input(execution)
        case Family.POINTWISE:
            _pointwise(execution)
        case Family.REDUCTION | Family.NORM_STATISTICS:
            _reduce(execution)
        case Family.NORM_SCALE:
            _norm_scale(execution)
        case Family.MATMUL:
            _matmul(execution)
        case Family.WINDOW:
            _window(execution)
        case Family.TOP:
            _top(execution, is_index=name == TOP_PLACES)


def _one_input(execution: DefinedExecution) -> None:
    """The function of the value and of the operation's constants, in float64, rounded once.

    An element that a mask hides, which only exp has, counts as the mask's number.
    """
    function = device_operation(execution.superdsc.op_func_name).unary
    assert function is not None
    for core in execution.cores:
        hidden = _masked(execution, core, list(execution.box))
        elements = np.where(hidden, _mask_value(execution), execution.values(execution.inputs[0], core))
        values = elements.astype(np.float64)
        execution.store_rounded(core, function(values, execution.constants))


SINGLE, DOUBLE = ArrayAlgebra(np.float32), ArrayAlgebra(np.float64)
"""Formulas in float32 and in float64: every step is rounded to that."""


def _pointwise(execution: DefinedExecution) -> None:
    """The formula in float32, element by element, rounded to the output's format; padding lanes like any others.

    A formula whose steps may cancel is computed in float64 and rounded to float32 first.
    """
    pointwise = device_operation(execution.superdsc.op_func_name).pointwise
    assert pointwise is not None
    algebra = DOUBLE if pointwise.is_double else SINGLE
    absent = pointwise.absent or {}
    names = pointwise.formula.operands[len(execution.inputs) :]
    rest = [np.full((), absent[name], algebra.dtype) for name in names]
    for core in execution.cores:
        operands = [execution.values(position, core).astype(algebra.dtype) for position in execution.inputs]
        result = pointwise.formula.evaluate(algebra, (*operands, *rest))
        execution.store_rounded(core, result.astype(np.float32))


def _copy(execution: DefinedExecution) -> None:
    """Coordinate by coordinate, lane n to lane n: bits between equal formats and 32-bit ones, values between floats.

    With an index this is a gather or a scatter.
    """
    source, target = execution.inputs[0], execution.output
    formats = {execution.stored(source), execution.stored(target)}
    for core in execution.cores:
        if len(formats) == 2 and formats <= _FLOATS:
            execution.store_rounded(core, execution.values(source, core))
        else:
            execution.store(core, execution.patterns(source, core, execution.offsets(source, core)))


def _shuffle(execution: DefinedExecution) -> None:
    """Every core gets what it shall own, from the cores that own it: all is read first, then it is stored.

    Of several owners of an element the lowest core counts.  Bits are copied, whatever they mean.
    """
    source, target = execution.inputs[0], execution.output
    owned: dict[tuple[int, ...], np.unsignedinteger] = {}
    for core in execution.cores:
        coordinates, offsets = _owned_elements(execution, source, core)
        for coordinate, pattern in zip(coordinates, execution.patterns(source, core, offsets), strict=True):
            owned.setdefault(coordinate, pattern)
    for core in execution.cores:
        coordinates, offsets = _owned_elements(execution, target, core)
        execution.store_at(core, offsets, np.array([owned[coordinate] for coordinate in coordinates]))


def _owned_elements(execution: DefinedExecution, position: int, core: int) -> tuple[list[tuple[int, ...]], Integers]:
    """Return the coordinates in the tensor of what a core owns of an operand, and the byte of each from its start.

    Elements lie as those of any operand in LX, in the order in which the folds count them, corelet by corelet.
    """
    superdsc, view = execution.superdsc, execution.views[position]
    own = superdsc.operands[position].distribution
    assert own is not None
    places: list[Integers] = []
    for dim in view.extents:
        core_fold, corelet_fold, _, *elements = own.folds[dim]
        inside = np.zeros(1, np.int64)
        for fold in elements:
            inside = (inside[:, None] + fold.alpha * np.arange(fold.factor)).reshape(-1)
        inside = inside[: own.corelet_elements(dim)]
        corelets = corelet_fold.alpha * np.arange(corelet_fold.factor)
        first = core_fold.alpha * own.core_slices[core][dim]
        places.append(first + (corelets[:, None] + inside).reshape(-1))
    box = {dim: len(at) for dim, at in zip(view.extents, places, strict=True)}
    points = np.meshgrid(*places, indexing="ij")
    return list(zip(*(axis.reshape(-1).tolist() for axis in points), strict=True)), view.offsets(box).reshape(-1)


def _index_values(data_format: DeviceFormat, patterns: Patterns) -> Integers:
    if data_format in _FLOATS:
        return decode(data_format, patterns).astype(np.int64)
    return patterns.view(np.int32).astype(np.int64) if patterns.itemsize == 4 else patterns.astype(np.int64)


# Folds: of every core in float64, then the cores that share a result in slice order, then rounded once.


def _reduce(execution: DefinedExecution) -> None:
    """Fold the input over the dims along which the output does not extend; scale by a constant at last, where one is.

    exx2 stores two folds, the sum in lane 0, or 0 under ``useZeroMean``, and the sum of squares in lane 1.
    """
    fold = device_operation(execution.superdsc.op_func_name).fold
    assert fold is not None
    scale = 1.0 if fold.scale is None else execution.constants[fold.scale]
    for lane, accumulator in enumerate(fold.accumulators):
        has_zero = lane == 0 and execution.constants.get("useZeroMean", 0.0) != 0
        for core, folded in _folded(execution, accumulator):
            execution.store_rounded(core, np.zeros_like(folded) if has_zero else folded * scale, lane=lane)


def _folded(execution: DefinedExecution, accumulator: Accumulator) -> Iterator[tuple[int, Doubles]]:
    """Yield the results of each cohort of cores, in float64, and the core that stores them: its first one."""

    def step(total: Doubles, x: Doubles) -> Doubles:
        return np.asarray(accumulator.step.evaluate(DOUBLE, (total, x)), np.float64)

    def merge(total: Doubles, x: Doubles) -> Doubles:
        return np.asarray(accumulator.merge.evaluate(DOUBLE, (total, x)), np.float64)

    source = execution.inputs[0]
    folded = [dim for dim in execution.box if not execution.extends(execution.output, dim)]
    lanes = _lanes(execution, folded)
    for members in execution.cohorts(folded):
        parts: list[Doubles] = []
        for core in members:
            values = np.where(_masked(execution, core, folded), _mask_value(execution), execution.values(source, core))
            elements = execution.folded_first(values, folded).astype(np.float64)
            sums = [np.full(elements.shape[1:], accumulator.identity) for _ in range(_LANES)]
            for lane, element in zip(lanes, elements, strict=True):
                sums[lane] = step(sums[lane], element)
            parts.append(reduce(merge, sums))
        yield members[0], reduce(merge, parts)


_LANES = 64


def _lanes(execution: DefinedExecution, folded: Sequence[str]) -> list[int]:
    """Return the lane that takes each folded element: lanes are folded side by side, and one after the other at last.

    Where sticks are folded, neighbours in memory go to lanes one after the other, a run of 64 at most; the next run
    begins at lane 0 again.  Elsewhere all go to lane 0.
    """
    view = execution.views[execution.inputs[0]]
    offsets = execution.folded_first(view.offsets(execution.box), folded)[:, *[0] * len(execution.box)].tolist()
    lanes = [0] * len(offsets)
    for place in range(1, len(offsets) if view.stick_dim in folded else 0):
        if offsets[place] == offsets[place - 1] + view.element_bytes:
            lanes[place] = (lanes[place - 1] + 1) % _LANES
    return lanes


def _masked(execution: DefinedExecution, core: int, dims: Sequence[str]) -> Flags:
    """Return which elements a mask hides along these dims: it counts in coordinates of the whole iteration."""
    superdsc, box = execution.superdsc, execution.box
    hidden = np.zeros([1] * len(box), bool)
    for axis, (dim, extent) in enumerate(box.items()):
        place = superdsc.core_work_slices[core][dim] * superdsc.core_extent[dim] + np.arange(extent)
        for first, count in superdsc.coordinate_masking.get(dim, ()) if dim in dims else ():
            hidden = hidden | _at_axis(axis, box, (first <= place) & (place < first + count))
    return hidden


def _mask_value(execution: DefinedExecution) -> np.float32:
    """The constant of that name; the id beside the mask counts only where there is none."""
    superdsc = execution.superdsc
    if "samv-maskvalue" in execution.constants or not superdsc.coordinate_masking:
        return np.float32(execution.constants.get("samv-maskvalue", 0.0))
    entry = superdsc.constants[superdsc.masking_constant_id]
    return np.float32(constant_value(entry.data_format, entry.bits))


def _norm_scale(execution: DefinedExecution) -> None:
    """layernormscale: ``1 / sqrt(lane 1 - lane 0 squared + eps)`` of each input stick, in every lane of the output."""
    for core in execution.cores:
        mean, square = (execution.values(execution.inputs[0], core, lane).astype(np.float64) for lane in (0, 1))
        execution.store_rounded(core, 1.0 / np.sqrt(square - mean * mean + execution.constants["eps"]))


def _top(execution: DefinedExecution, *, is_index: bool) -> None:
    """Sort along the dim that only the input has, descending, NaN last, equal ones as they stand; store the first.

    How many is said by the dim that only the output has, of which a core has its slice; without such a dim it is one.
    """
    source, target = execution.inputs[0], execution.output
    (sorted_dim,) = (d for d in execution.box if execution.extends(source, d) and not execution.extends(target, d))
    own = [d for d in execution.box if execution.extends(target, d) and not execution.extends(source, d)]
    taken_dim = own[0] if own else sorted_dim
    count, slices = (execution.box[taken_dim] if own else 1), execution.superdsc.core_work_slices
    dims = list(execution.box)
    for core in execution.cores:
        rows = np.swapaxes(execution.values(source, core), dims.index(sorted_dim), dims.index(taken_dim))
        axis = dims.index(taken_dim)
        places = np.argsort(-rows, axis=axis, kind="stable")
        places = np.take(places, slices[core][taken_dim] * count + np.arange(count), axis=axis)
        if is_index and execution.views[target].data_format not in _FLOATS:
            execution.store(core, places.astype(np.uint32))
        else:
            values = places.astype(np.float64) if is_index else np.take_along_axis(rows, places, axis=axis)
            execution.store_rounded(core, values)


def _matmul(execution: DefinedExecution) -> None:
    """``C = sum over K of A B``: K is what A and B have and C has not; everything else follows from broadcasting."""
    a, b = execution.inputs
    folded = [
        dim
        for dim in execution.box
        if execution.extends(a, dim) and execution.extends(b, dim) and not execution.extends(execution.output, dim)
    ]
    _contract(execution, folded, lambda core: execution.values(a, core))


def _contract(execution: DefinedExecution, folded: Sequence[str], first_input: Callable[[int], Floats]) -> None:
    """Fold the products of both inputs.

    Each element is one chain of fused multiply-adds in float32 from 0 on, k ascending, per slice of K; the slices are
    added in float32, in order, and the sum is rounded.
    """
    for members in execution.cohorts(folded):
        total: Floats | None = None
        for core in members:
            left = np.where(_padding(execution, core, folded), np.float32(0), first_input(core))
            rows = execution.folded_first(left, folded)
            columns = execution.folded_first(execution.values(execution.inputs[1], core), folded)
            part = np.zeros(np.broadcast_shapes(rows.shape[1:], columns.shape[1:]), np.float32)
            for row, column in zip(rows.astype(np.float32), columns.astype(np.float32), strict=True):
                part = fused_multiply_add(row, column, part)
            total = part if total is None else total + part
        assert total is not None
        execution.store_rounded(members[0], total)


def _window(execution: DefinedExecution) -> None:
    """Slide a window: a pool sums in float64 and scales, a depthwise convolution sums products in float64.

    A convolution over all channels is a matrix product whose K is input channels and window, in the order of the file;
    each core has a part of the channels, and whole windows.
    """
    form = device_operation(execution.superdsc.op_func_name).window
    folded = [dim for dim in execution.box if not execution.extends(execution.output, dim)]
    if form is WindowForm.CONVOLUTION:
        _contract(execution, folded, execution.slid_values)
        return
    for core in execution.cores:
        values = execution.slid_values(core).astype(np.float64)
        if form is WindowForm.DEPTHWISE:
            values = values * execution.values(execution.inputs[1], core)
        elements = execution.folded_first(values, folded)
        total = np.zeros(elements.shape[1:])
        for element in elements.astype(np.float64):
            total = total + element
        execution.store_rounded(core, total * execution.constants["nmap"] if form is WindowForm.POOL else total)


def fused_multiply_add(x: Floats, y: Floats, z: Floats) -> Floats:
    """Return ``x * y + z``, rounded once to float32.

    float64 holds the product exactly, but not the sum.  What rounding that lost is known exactly, and the bit below
    all others is set instead where there was anything (rounding to odd): with 29 bits to spare the second rounding then
    is that of the exact sum.
    """
    product, addend = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
    total = product + addend
    back = total - product
    lost = (product - (total - back)) + (addend - back)
    bits = total.view(np.int64)
    towards = np.where((lost > 0) == (total > 0), 1, -1)
    is_rounded_to_even = np.isfinite(total) & (lost != 0) & (bits % 2 == 0)
    return np.where(is_rounded_to_even, bits + towards, bits).view(np.float64).astype(np.float32)


def _padding(execution: DefinedExecution, core: int, folded: Sequence[str]) -> Flags:
    """Return where A counts as zero: where k may be padding, because it lies in the last stick of K, and B is zero in
    every column.  The file does not say where K really ends, and what A holds behind that is undefined.

    Columns of other cores count, and matrices of a batch each for itself.
    """
    superdsc, box, (a, b) = execution.superdsc, execution.box, execution.inputs
    stick_dim = execution.views[a].stick_dim
    if stick_dim is None or stick_dim not in folded:
        return np.zeros([1] * len(box), bool)
    slices = superdsc.core_work_slices
    place = slices[core][stick_dim] * superdsc.core_extent[stick_dim] + np.arange(box[stick_dim])
    first = execution.iteration[stick_dim] - execution.views[a].stick_size
    is_last = _at_axis(list(box).index(stick_dim), box, place >= first)
    if not is_last.any():
        return is_last
    shared = [dim for dim in box if execution.extends(a, dim) and execution.extends(b, dim)]
    others = [other for other in execution.cores if all(slices[other][dim] == slices[core][dim] for dim in shared)]
    columns = tuple(axis for axis, dim in enumerate(box) if execution.extends(b, dim) and dim not in shared)
    zero = [np.all(execution.values(b, other) == 0, axis=columns, keepdims=True) for other in others]
    return is_last & np.logical_and.reduce(zero)
