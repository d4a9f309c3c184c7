"""Reads what a graph file declares before its nodes: dims, inputs, constants and their pinned layouts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import DiagnosticSink, Location, ModelPlace
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.dtypes import DType
from spyrec.ir.attribute_text import AttributeTextError, read_dtype
from spyrec.ir.constants import InlineValueError, narrowed, read_inline
from spyrec.ir.graph import ConstantData, LayoutPin, Value
from spyrec.ir.graph_text import (
    NAMELESS,
    ConstantText,
    DataText,
    GraphForm,
    GraphText,
    InputText,
    LayoutText,
    SymbolicDimText,
)
from spyrec.ir.inference import MAX_ELEMENTS
from spyrec.ir.near_names import did_you_mean
from spyrec.ir.tensor_file import (
    WIDE,
    StoredTensor,
    TensorFileError,
    find_tensor,
    load_tensor,
    read_header,
    resolve_inside,
)
from spyrec.ir.types import TensorType
from spyrec.layout.symbolic_dim import SymbolicDim

Numbers = npt.NDArray[np.generic]


class Declarations:
    """The tables that the sections of a graph file fill and the nodes are read against.

    ``dims`` are as declared, ``extents`` the ints they count as (a symbolic dim: its largest legal extent); ``values``
    holds every value whose type is known; ``broken`` the names that were declared wrongly, so that their use is not
    reported again; ``form`` what of the file has no right form, which is reported already.
    """

    def __init__(self, root: Location, sink: DiagnosticSink, base_dir: Path | None, form: GraphForm) -> None:
        self.form = form
        self.root = root
        self.sink = sink
        self.dims: dict[str, int | SymbolicDim] = {}
        self.extents: dict[str, int] = {}
        self.values: dict[str, Value] = {}
        self.constants: dict[str, ConstantData] = {}
        self.broken: set[str] = set()
        self._base_dir = base_dir
        self._places: dict[str, Location] = {}
        self._headers: dict[Path, Mapping[str | None, StoredTensor]] = {}

    def read(self, model: GraphText) -> None:
        """Fill the tables from the sections before ``nodes``."""
        for name, dim in model.dims.items():
            self._read_dim(name, dim)
        for index, item in enumerate(model.inputs):
            self._add_value(item, self.root.child("inputs", index), self.form.of("inputs", index))
        for index, item in enumerate(model.constants):
            place = self.root.child("constants", index)
            if item.origin is not None:
                origin = item.origin
                place = replace(place, model=ModelPlace(origin.module, origin.file, origin.line, origin.op))
            self._read_constant(item, place, self.form.of("constants", index))

    def is_dangling(self, name: str) -> bool:
        """Whether nothing in the file can declare the name: neither rightly nor wrongly."""
        is_declared = name in self.values or name in self.broken
        return self.form.has_all_names and name != NAMELESS and not is_declared

    def is_claimed(self, name: str) -> bool:
        """Whether some declaration has taken a value name."""
        return name in self._places or name in self.values

    def claim(self, name: str, place: Location) -> bool:
        """Take a value name for the declaration at ``place``.  Errors: SPY0115 it is taken.

        Which of the two declarations a use of the name means, nobody knows: it is broken.
        """
        if name == NAMELESS:
            return True
        first = self._places.setdefault(name, place)
        if first is not place:
            notes = (f"the first one is at {first.pointer}",)
            where = place if "/outputs/" in (place.pointer or "") else place.child("name")
            self.sink.error("SPY0115", f'the value name "{name}" is taken', where, notes=notes)
            self.broken.add(name)
            self.values.pop(name, None)
        return first is place

    def forget(self, name: str) -> None:
        """Take a value's declaration back, as if it had not been read: a builder goes on after a refusal."""
        for table in (self.values, self.constants, self._places):
            table.pop(name, None)
        self.broken.discard(name)

    def _read_dim(self, name: str, dim: int | SymbolicDimText) -> None:
        if isinstance(dim, int):
            self.dims[name] = self.extents[name] = dim
            return
        largest = dim.max // dim.multiple_of * dim.multiple_of
        if largest < dim.min or largest < 1:
            message = f'dim "{name}" has no extent: min {dim.min}, max {dim.max}, multiple_of {dim.multiple_of}'
            self.sink.error("SPY0133", message, self.root.child("dims", name))
            largest = dim.max
        self.dims[name] = SymbolicDim(dim.min, dim.max, dim.multiple_of)
        self.extents[name] = largest

    def _read_type(self, item: InputText | ConstantText, place: Location) -> TensorType | None:
        """Return the declared type.  Errors: SPY0123 unknown dim, SPY0125 too many elements, SPY0140 no dtype."""
        dtype: DType | None = None
        try:
            dtype = DType.FLOAT32 if _is_wide(item) else read_dtype(item.dtype)
        except AttributeTextError as error:
            self.sink.error(error.code, error.message, place.child("dtype"), hint=error.hint(self.sink))
        unknown = [(axis, entry) for axis, entry in enumerate(item.shape) if self._extent(entry) is None]
        for axis, entry in unknown if self.form.has_all_names else []:
            if entry in self.form.lost_dims:
                continue
            hint = did_you_mean(str(entry), self.extents, self.sink)
            self.sink.error("SPY0123", f'dim "{entry}" is not in "dims"', place.child("shape", axis), hint=hint)
        if dtype is None or unknown:
            return None
        shape = tuple(cast("int", self._extent(entry)) for entry in item.shape)
        if math.prod(shape) >= MAX_ELEMENTS:
            message = f'"{item.name}" has {math.prod(shape)} elements, the limit is 2**63 - 1'
            self.sink.error("SPY0125", message, place.child("shape"))
            return None
        return TensorType(shape, dtype)

    def _extent(self, entry: int | str) -> int | None:
        return self.extents.get(entry) if isinstance(entry, str) else entry

    def _add_value(self, item: InputText | ConstantText, place: Location, lost: frozenset[str]) -> TensorType | None:
        """Declare a value; return its type if the declaration is right so far and nothing it says is lost."""
        found = self._read_type(item, place)
        if not self.claim(item.name, place):
            return None
        if found is None or lost & {"name", "shape", "dtype"}:
            self.broken.add(item.name)
            return None
        names = tuple(entry if isinstance(entry, str) else None for entry in item.shape)
        layout = item.layout if isinstance(item, InputText) else None
        pin = self.read_pin(layout, found.rank, place)
        self.values[item.name] = Value(item.name, found, names, place, pin)
        return found

    def _read_constant(self, item: ConstantText, place: Location, lost: frozenset[str]) -> None:
        found = self._add_value(item, place, lost)
        if lost & {"value", "data"} and (item.value is None or item.data is None):
            return
        if (item.value is None) == (item.data is None):
            state = "neither value nor data" if item.data is None else "both value and data"
            self.sink.error("SPY0126", f'constant "{item.name}" has {state}', place, hint="give exactly one of them")
        elif found is not None and item.data is not None:
            self._read_data(item, item.data, found, place.child("data"))
        elif found is not None:
            self._read_inline(item, found, place.child("value"))

    def _read_inline(self, item: ConstantText, wanted: TensorType, place: Location) -> None:
        try:
            array = read_inline(cast("JsonValue", item.value), wanted, is_wide=_is_wide(item))
            self.constants[item.name] = ConstantData(array=self._narrowed(item, array, place))
        except InlineValueError as error:
            self.sink.error(error.code, f'constant "{item.name}": {error.message}', place.child(*error.path))

    def _read_data(self, item: ConstantText, data: DataText, wanted: TensorType, place: Location) -> None:
        hint: str | None = None
        try:
            if self._base_dir is None:
                hint = "give base_dir, the directory that the files lie in"
                raise TensorFileError("SPY0130", f'"{data.file[:200]}" has no directory to be found in')
            path = resolve_inside(self._base_dir, data.file)
            if path not in self._headers:
                self._headers[path] = read_header(path)
            find_tensor(self._headers[path], data.tensor, wanted, is_wide=_is_wide(item))
            self.constants[item.name] = ConstantData(file=str(path), tensor=data.tensor)
            if _is_wide(item):
                wide = load_tensor(path, data.tensor, wanted, is_wide=True)
                self.constants[item.name] = ConstantData(array=self._narrowed(item, wide, place))
        except TensorFileError as error:
            self.sink.error(error.code, f'constant "{item.name}": {error.message}', place, hint=hint)

    def _narrowed(self, item: ConstantText, array: Numbers, place: Location) -> Numbers:
        """Return the numbers of a constant, of float64 ones as float32, with a warning (SPY0152)."""
        if not _is_wide(item):
            return array
        found, losses = narrowed(array)
        self.sink.warning("SPY0152", f'constant "{item.name}" is float64, and narrowed to float32: {losses}', place)
        return found

    def read_pin(self, layout: LayoutText | None, rank: int, owner: Location) -> LayoutPin | None:
        """Return the pinned layout of the input or node at ``owner``.

        Errors: SPY0136 neither or both forms, unequal lengths, no permutation.
        """
        if layout is None:
            return None
        place = owner.child("layout")
        lists = (layout.device_size, layout.stride_map)
        problem: str | None = None
        if layout.dim_order is not None and lists != (None, None):
            problem = "the layout has dim_order beside device_size or stride_map"
        elif layout.dim_order is not None and not _is_order(layout.dim_order, rank):
            problem = f"dim_order {layout.dim_order} is no permutation of the {rank} dims, with or without -1 behind it"
        elif layout.dim_order is None:
            problem = _list_problem(*lists)
        if problem is not None:
            hint = "give device_size and stride_map of one length, or dim_order"
            self.sink.error("SPY0136", problem, place, hint=hint)
            return None
        return LayoutPin(_tuple(layout.device_size), _tuple(layout.stride_map), _tuple(layout.dim_order), place)


def _tuple(items: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if items is None else tuple(items)


def _is_order(dim_order: Sequence[int], rank: int) -> bool:
    """Whether every dim stands in the order once; -1 behind them asks for one element per stick."""
    dims = dim_order[:-1] if dim_order and dim_order[-1] == -1 else dim_order
    return sorted(dims) == list(range(rank))


def _list_problem(device_size: list[int] | None, stride_map: list[int] | None) -> str | None:
    if device_size is None or stride_map is None:
        return "the layout lacks " + ("device_size" if device_size is None else "stride_map")
    if len(device_size) != len(stride_map) or not device_size:
        return f"device_size has {len(device_size)} entries, stride_map has {len(stride_map)}"
    if any(not 1 <= extent < MAX_ELEMENTS for extent in device_size) or math.prod(device_size) >= MAX_ELEMENTS:
        return f"device_size {device_size} is out of range"
    if any(not -1 <= stride < MAX_ELEMENTS for stride in stride_map):
        return f"stride_map {stride_map} holds an entry below -1 or above 2**63 - 1"
    return None


def _is_wide(item: InputText | ConstantText) -> bool:
    """Whether a constant is float64, which no value of a graph is."""
    return isinstance(item, ConstantText) and item.dtype == WIDE
