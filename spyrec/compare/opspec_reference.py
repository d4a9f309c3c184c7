"""What OpSpecs mean, in float64: ``--check`` of a bundle that holds its OpSpecs and no graph.

Written apart from code generation and emulator: an operation walks its iteration space, an operand gives the element at
``device_coordinates``, and the formula is the operation's record in float64.  Nothing is divided or masked: an
OpSpec iterates over elements.  Beside each value stands how far the device may be off (roundings of what is stored,
errors of operands through the formula), to first order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from string import ascii_letters

import numpy as np
import numpy.typing as npt

from spyrec.codegen.expression import CoordinateExpression, Floor, IndirectAccess, Modulo, Symbol
from spyrec.codegen.opspec import AllocationKind, DynamicSize, LoopSpec, OpSpec, OpSpecFile, TensorArgument
from spyrec.compare.opspec_windows import slid_axes
from spyrec.dataclass import dataclass
from spyrec.device_ops import COPIES, TOP_PLACES, device_operation
from spyrec.device_ops.expression import ArrayAlgebra
from spyrec.device_ops.record import DeviceOperation, Family, WindowForm
from spyrec.diagnostics import refuse
from spyrec.emulator.choices import Numerics, half_format_of
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SEGMENT_BYTES, STICK_BYTES

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NOT_EVALUATED = "SPY0548"
"""Code of an OpSpec that has no float64 evaluation here."""

_MOST_POINTS = 1 << 28
_CONTRACTIONS = frozenset({Family.MATMUL, Family.WINDOW})
"""Families that are never evaluated at every point of the iteration, but by sums of products."""

_NOTHING: Mapping[int, Integers] = {}
_LARGEST_FP8 = 448.0
_DOUBLE = ArrayAlgebra(np.float64)
_SINGLE_ROUNDOFF = 2.0**-24
_ROUNDOFF = {
    DeviceFormat.SEN169_FP16: dlfloat.UNIT_ROUNDOFF,
    DeviceFormat.IEEE_FP16: 2.0**-11,
    DeviceFormat.IEEE_FP32: _SINGLE_ROUNDOFF,
    DeviceFormat.SEN143_FP8: 2.0**-4,
}
_SMALLEST = {
    DeviceFormat.SEN169_FP16: 2.0**-31,
    DeviceFormat.IEEE_FP16: 2.0**-24,
    DeviceFormat.IEEE_FP32: 2.0**-149,
    DeviceFormat.SEN143_FP8: 2.0**-9,
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """Values with bounds of their errors; NaN as a bound where nobody has written."""

    value: Doubles
    error: Doubles

    def around(self) -> tuple[Doubles, Doubles, Doubles]:
        """Return the values moved by their errors: up, down, and away from 0."""
        value, error = self.value, self.error
        return value + error, value - error, np.copysign(np.abs(value) + error, value)


class OpSpecEvaluation:
    """The memories of one evaluation; ``numerics``: how 16-bit values are stored (``dl16``, ``ieee``, ``f32``).

    ``sizes``: of dynamic dims, by name; the largest where it says nothing.
    """

    def __init__(self, file: OpSpecFile, numerics: str = "dl16", sizes: Mapping[str, int] | None = None) -> None:
        self._file = file
        self._sizes = sizes or {}
        self._half = half_format_of(Numerics(numerics))
        self._memories: dict[tuple[AllocationKind, int], Estimate] = {}

    def give(self, arg_index: int, data_format: DeviceFormat, values: npt.NDArray[np.generic]) -> None:
        """Put the elements of an argument, in device form, where operations find them."""
        value = values.astype(np.float64).ravel()
        if data_format is DeviceFormat.SEN143_FP8:
            # three bits behind the point: a bound for any rounding would hide what is to be found
            self._memories[AllocationKind.HBM, arg_index] = Estimate(rounded_to_fp8(value), np.zeros_like(value))
            return
        rounding = self._rounding(data_format, value) if data_format in _ROUNDOFF else np.zeros_like(value)
        self._memories[AllocationKind.HBM, arg_index] = Estimate(value, rounding)

    def run(self) -> None:
        """Evaluate all operations in order; errors SPY0548, SPY0706 a row outside of its table."""
        self._run(self._file.specs, ())

    def result(self, arg_index: int) -> Estimate:
        """Return the elements of an argument, as many as were touched; the error is NaN where nobody wrote."""
        return self._memories.get((AllocationKind.HBM, arg_index), Estimate(np.zeros(0), np.zeros(0)))

    # --- control ----------------------------------------------------------------------------------------------------

    def _run(self, specs: Sequence[OpSpec | LoopSpec], rounds: tuple[int, ...]) -> None:
        for spec in specs:
            if isinstance(spec, LoopSpec):
                for number in range(spec.count):
                    self._run(spec.body, (*rounds, number))
            else:
                _Operation(self, spec, rounds).run()

    def extent(self, size: int) -> int:
        """Return how many elements a dim has."""
        return self._sizes.get(size.name, size) if isinstance(size, DynamicSize) else size

    def rounding_of(self, argument: TensorArgument, value: Doubles) -> Doubles:
        """Return what storing values in an operand may change."""
        if argument.device_dtype not in _ROUNDOFF:
            return np.zeros_like(value)
        return self._rounding(argument.device_dtype, value)

    def _rounding(self, data_format: DeviceFormat, value: Doubles) -> Doubles:
        stored = self._half if data_format is DeviceFormat.SEN169_FP16 else data_format
        return np.abs(value) * _ROUNDOFF[stored] + _SMALLEST[stored]

    # --- memory -----------------------------------------------------------------------------------------------------

    def load(self, argument: TensorArgument, places: Integers) -> Estimate:
        """Return the elements of an operand at flat places of its device layout."""
        memory, first = self._memory(argument, int(places.max()) + 1)
        return Estimate(memory.value[first + places], memory.error[first + places])

    def store(self, argument: TensorArgument, places: Integers, found: Estimate) -> None:
        """Store elements of an operand."""
        memory, first = self._memory(argument, int(places.max()) + 1)
        # flat, where NumPy keeps the order: of rows that an index names twice the later one stays
        flat = first + places.reshape(-1)
        memory.value[flat] = np.broadcast_to(found.value, places.shape).reshape(-1)
        memory.error[flat] = np.broadcast_to(found.error, places.shape).reshape(-1)

    def _memory(self, argument: TensorArgument, count: int) -> tuple[Estimate, int]:
        """Return the memory of an operand and the element it begins at; what lies in LX is known by its address."""
        kind, start = argument.allocation.kind, argument.allocation.start_bytes
        lanes = argument.device_dtype.elements_per_stick
        assert lanes is not None, "formats without sticks hold no tensor"
        key = {
            AllocationKind.HBM: (kind, -1 if argument.arg_index is None else argument.arg_index),
            AllocationKind.POOL: (kind, 0),
            AllocationKind.LX: (kind, start),
        }[kind]
        first = 0 if kind is AllocationKind.LX else start % SEGMENT_BYTES // (STICK_BYTES // lanes)
        memory = self._memories.get(key, Estimate(np.zeros(0), np.zeros(0)))
        lacking = first + count - memory.value.size
        if lacking > 0:
            pads = np.zeros(lacking), np.full(lacking, np.nan)
            memory = Estimate(np.append(memory.value, pads[0]), np.append(memory.error, pads[1]))
            self._memories[key] = memory
        return memory, first


class _Operation:
    """One execution of one OpSpec; arrays have an axis for each symbol of its iteration space."""

    def __init__(self, evaluation: OpSpecEvaluation, spec: OpSpec, rounds: tuple[int, ...]) -> None:
        self.evaluation = evaluation
        self.spec = spec
        self.symbols = [dim.symbol for dim in spec.iteration_space]
        self.extents = [evaluation.extent(dim.size) for dim in spec.iteration_space]
        self.levels = self._level_values(rounds)
        tables = {name for item in spec.args for place in item.device_coordinates for name in place.indirect_names}
        self.indices = {item.name: item for item in spec.args if item.name in tables}
        self.inputs = [item for item in spec.args[:-1] if item.name not in tables]
        self.output = spec.args[-1]

    @property
    def record(self) -> DeviceOperation:
        return device_operation(self.spec.op)

    def refused(self, why: str) -> Exception:
        return refuse(NOT_EVALUATED, f'"{self.spec.op}": {why}')

    def _level_values(self, rounds: tuple[int, ...]) -> dict[str, int]:
        """Return the round of each loop by the symbols that stand for it."""
        levels = self.spec.tiled_levels
        if levels is None:
            if rounds and self.spec.tiled_symbols:
                raise self.refused("loops by tiled_symbols; write tiled_levels and tile_advance")
            return {}
        return {name: number for names, number in zip(levels, rounds, strict=False) for name in names}

    def run(self) -> None:
        """Evaluate and store."""
        if math.prod(self.extents) > _MOST_POINTS and self.record.family not in _CONTRACTIONS:
            raise self.refused(f"{math.prod(self.extents)} points, more than {_MOST_POINTS}")
        family = self.record.family
        work: Mapping[Family, Callable[[], Estimate]] = {
            Family.UNARY: self._elementwise,
            Family.POINTWISE: self._elementwise,
            Family.IDENTITY: lambda: self.value_of(self.inputs[0]),
            Family.RESTICKIFY: lambda: self.value_of(self.inputs[0]),
            Family.REDUCTION: lambda: self._folded(0),
            Family.CAST: lambda: self.value_of(self.inputs[0]),
            Family.PACK: lambda: self.value_of(self.inputs[0]),
            Family.MATMUL: lambda: self._product([self.value_of(item) for item in self.inputs]),
            Family.WINDOW: self._window,
            Family.NORM_SCALE: self._norm_scale,
            Family.TOP: self._top,
        }
        if family is Family.NORM_STATISTICS:
            for lane in range(2):
                self._store(self._folded(lane), lane)
            return
        if family not in work:
            raise self.refused("this family of operations is not evaluated")
        self._store(work[family]())

    def _store(self, found: Estimate, lane: int = 0) -> None:
        if self.output.device_dtype is DeviceFormat.SEN143_FP8:
            # what is too large becomes the largest number there is
            found = replace(found, value=np.clip(found.value, -_LARGEST_FP8, _LARGEST_FP8))
        rounding = self.evaluation.rounding_of(self.output, found.value)
        formats = {item.device_dtype for item in (self.inputs[0], self.output)}
        total = found.error if self.record.name in COPIES and len(formats) == 1 else found.error + rounding
        total = total + np.abs(found.value) * _SINGLE_ROUNDOFF * self.record.error.ulps
        self.evaluation.store(self.output, self.places(self.output) + lane, replace(found, error=total))

    # --- operands ---------------------------------------------------------------------------------------------------

    def axis(self, symbol: str) -> Integers:
        """Return 0, 1, .. along the axis of a symbol."""
        place = self.symbols.index(symbol)
        shape = [1] * len(self.symbols)
        shape[place] = self.extents[place]
        return np.arange(self.extents[place]).reshape(shape)

    def coordinate(self, expression: CoordinateExpression) -> Integers:
        """Return a device coordinate at every point, broadcast over what it does not depend on."""
        total = np.full([1] * len(self.symbols), expression.offset, np.int64)
        for term in expression.terms:
            match term.atom:
                case Symbol(name):
                    value = self.axis(name)
                case Floor(inner, divisor):
                    value = self.coordinate(inner) // divisor
                case Modulo(inner, modulus):
                    value = self.coordinate(inner) % modulus
                case IndirectAccess(name):
                    value = self.value_of(self.indices[name]).value.astype(np.int64)
            total = total + term.coefficient * value
        return total

    def places(self, argument: TensorArgument, given: Mapping[int, Integers] = _NOTHING) -> Integers:
        """Return the flat place of an operand's element at every point; ``given``: coordinates of device dims."""
        found: list[Integers] = []
        for dim, (extent, expression) in enumerate(zip(argument.device_size, argument.device_coordinates, strict=True)):
            coordinate = given[dim] if dim in given else self.coordinate(expression)
            if expression.indirect_names and (coordinate.min() < 0 or coordinate.max() >= extent):
                raise refuse("SPY0706", f"a row of {int(coordinate.max())} of a table of {extent} rows")
            found.append(coordinate)
        flat = np.zeros([1] * len(self.symbols), np.int64)
        for extent, coordinate in zip(argument.device_size, _arranged(argument, found), strict=True):
            flat = flat * extent + coordinate
        if argument.tile_advance is not None:
            names = {name: self.levels.get(name, 0) for name in argument.tile_advance.symbols}
            flat = flat + argument.tile_advance.evaluate(names)
        return flat

    def value_of(self, argument: TensorArgument, lane: int = 0) -> Estimate:
        """Return an operand at every point, broadcast over what it does not depend on."""
        return self.evaluation.load(argument, self.places(argument) + lane)

    def extends(self, argument: TensorArgument, symbol: str) -> bool:
        """Whether an operand has other elements along a symbol."""
        place = self.symbols.index(symbol)
        return self.places(argument).shape[place] == self.extents[place] and self.extents[place] > 1

    # --- families ---------------------------------------------------------------------------------------------------

    def _elementwise(self) -> Estimate:
        """The formula at the operands, and how far it moves where each is off by its error."""
        operands = [self.value_of(item) for item in self.inputs]
        formula = self._formula()
        want = formula([item.value for item in operands])
        error = np.zeros_like(want)
        for corner in product(*([item.value + item.error, item.value - item.error] for item in operands)):
            moved = np.abs(formula(list(corner)) - want)
            # where a bound leaves the domain of a function, nothing is known
            error = np.where(np.isnan(moved) & ~np.isnan(want), np.inf, np.fmax(error, moved))
        return Estimate(want, error)

    def _formula(self) -> Callable[[list[Doubles]], Doubles]:
        record, constants = self.record, self.spec.op_info.constants
        if record.unary is not None:
            function = record.unary
            return lambda values: np.asarray(function(values[0], constants), np.float64)
        pointwise = record.pointwise
        assert pointwise is not None
        absent = [np.float64((pointwise.absent or {})[name]) for name in pointwise.formula.operands[len(self.inputs) :]]

        def evaluated(values: list[Doubles]) -> Doubles:
            with np.errstate(all="ignore"):
                operands = (*values, *(np.asarray(item) for item in absent))
                return np.asarray(pointwise.formula.evaluate(_DOUBLE, operands), np.float64)

        return evaluated

    def _folded(self, lane: int) -> Estimate:
        """One accumulator over the symbols along which the output stays where it is."""
        fold = self.record.fold
        assert fold is not None
        constants = self.spec.op_info.constants
        scale = 1.0 if fold.scale is None else constants[fold.scale]
        if lane == 0 and constants.get("useZeroMean", 0.0):
            scale = 0.0
        step, identity = fold.accumulators[lane].step, fold.accumulators[lane].identity
        source = self.value_of(self.inputs[0])
        axes = [i for i, name in enumerate(self.symbols) if not self.extends(self.output, name)]

        def total(values: Doubles) -> Doubles:
            rows = np.moveaxis(np.broadcast_to(values, self.extents), axes, range(len(axes)))
            rows = rows.reshape(-1, *rows.shape[len(axes) :])
            found = np.full(rows.shape[1:], identity)
            for row in rows:
                found = np.asarray(step.evaluate(_DOUBLE, (found, row)), np.float64)
            return np.expand_dims(found * scale, axes)

        want = total(source.value)
        return Estimate(want, np.fmax.reduce([np.abs(total(item) - want) for item in source.around()]))

    def _window(self) -> Estimate:
        """Sums over windows, of the input or of its products with weights; padding is zero."""
        form = self.record.window
        channel = set(self.output.device_coordinates[-1].symbols)
        # the weights of a convolution are told by their channels, those of others by their place
        is_swapped = form is WindowForm.CONVOLUTION and channel == set(self.inputs[0].device_coordinates[-1].symbols)
        source = self.inputs[1 if is_swapped else 0]
        slid = self._slid(source)
        if form is not WindowForm.POOL:
            return self._product([slid, self.value_of(self.inputs[0 if is_swapped else 1])])
        axes = tuple(i for i, name in enumerate(self.symbols) if slid.value.shape[i] > 1 and not self._is_kept(name))
        scale = self.spec.op_info.constants.get("scaling_factor", 1.0)
        value, error = slid.value.sum(axis=axes, keepdims=True), slid.error.sum(axis=axes, keepdims=True)
        # the scale is a constant of the file, a 16-bit number
        rounded = np.abs(value * scale) * _ROUNDOFF[DeviceFormat.SEN169_FP16]
        return Estimate(value * scale, error * abs(scale) + rounded)

    def _is_kept(self, symbol: str) -> bool:
        return any(symbol in coordinate.symbols for coordinate in self.output.device_coordinates)

    def _slid(self, source: TensorArgument) -> Estimate:
        """Return the input under its windows, at every point."""
        axes = slid_axes(self.spec, source)
        if axes is None:
            raise self.refused("which device dims of the input its windows slide along is not told")
        given: dict[int, Integers] = {}
        is_inside = np.ones([1] * len(self.symbols), np.bool_)
        for item in axes:
            outputs, taps = (
                np.zeros([1] * len(self.symbols), np.int64) if name is None else self.axis(name)
                for name in (item.output, item.tap)
            )
            element = outputs * item.stride + taps * item.dilation - item.front
            extents = [source.device_size[dim] for dim in item.dims]
            has_it = (element >= 0) & (element < math.prod(extents))
            is_inside, element = is_inside & has_it, np.where(has_it, element, 0)
            for dim, extent in reversed(list(zip(item.dims, extents, strict=True))):
                given[dim], element = element % extent, element // extent
        found = self.evaluation.load(source, self.places(source, given))
        return Estimate(np.where(is_inside, found.value, 0.0), np.where(is_inside, found.error, 0.0))

    def _product(self, operands: Sequence[Estimate]) -> Estimate:
        """Sum of products over the symbols that both inputs have and the output has not."""
        letters = [[i for i, size in enumerate(item.value.shape) if size > 1] for item in operands]
        kept = [i for i in sorted({*letters[0], *letters[1]}) if self.extends(self.output, self.symbols[i])]
        texts = ["".join(ascii_letters[i] for i in axes) for axes in (*letters, kept)]
        subscripts = f"{texts[0]},{texts[1]}->{texts[2]}"
        shape = [self.extents[i] if i in kept else 1 for i in range(len(self.symbols))]

        def contracted(left: Doubles, right: Doubles) -> Doubles:
            found = np.einsum(subscripts, np.squeeze(left), np.squeeze(right), optimize=True)
            return np.asarray(found, np.float64).reshape(shape)

        (a, b), terms = operands, math.prod(self.extents) // math.prod(shape)
        sizes = contracted(np.abs(a.value) + a.error, np.abs(b.value) + b.error)
        exact = contracted(np.abs(a.value), np.abs(b.value))
        return Estimate(contracted(a.value, b.value), sizes - exact + (terms + 1) * _SINGLE_ROUNDOFF * sizes)

    def _norm_scale(self) -> Estimate:
        """The reciprocal deviation, from the mean in lane 0 and the mean square in lane 1 of one stick."""
        eps = self.spec.op_info.constants["eps"]
        mean, square = (self.value_of(self.inputs[0], lane) for lane in range(2))

        def scale(first: Doubles, second: Doubles) -> Doubles:
            with np.errstate(all="ignore"):
                return 1.0 / np.sqrt(second - first * first + eps)

        want = scale(mean.value, square.value)
        moved = [np.abs(scale(first, second) - want) for first, second in product(mean.around(), square.around())]
        return Estimate(want, np.where(np.isnan(moved).any(axis=0), np.inf, np.fmax.reduce(moved)))

    def _top(self) -> Estimate:
        """The first values along the symbol that only the input has, descending, or their places."""
        source = self.value_of(self.inputs[0])
        searched = [name for name in self.symbols if self.extends(self.inputs[0], name)]
        (axis,) = (self.symbols.index(name) for name in searched if not self.extends(self.output, name))
        target = [i for i, name in enumerate(self.symbols) if name not in searched and self.extends(self.output, name)]
        count = self.extents[target[0]] if target else 1
        order = np.argsort(-source.value, axis=axis, kind="stable")
        order = np.take(order, np.arange(count), axis=axis)
        values = np.take_along_axis(source.value, order, axis=axis)
        is_place = self.spec.op == TOP_PLACES
        worst = np.broadcast_to(source.error.max(axis=axis, keepdims=True), values.shape)
        # equal within their errors, values may stand in another order
        places = Estimate(order.astype(np.float64), np.full(values.shape, np.inf))
        found = places if is_place else Estimate(values, worst)
        if not target:
            return found
        return Estimate(np.swapaxes(found.value, axis, target[0]), np.swapaxes(found.error, axis, target[0]))


def without_padding(
    file: OpSpecFile,
    inputs: Mapping[str, npt.NDArray[np.generic]],
    indices: Mapping[str, int],
    sizes: Mapping[str, int] | None = None,
) -> dict[str, npt.NDArray[np.generic]]:
    """Return inputs in device form with zeros in every element that no operation reads, as host copies leave padding.

    ``indices``: the number of each argument; ``sizes``: of dynamic dims.  A table of rows keeps all of its own.
    """
    evaluation = OpSpecEvaluation(file, sizes=sizes)
    read: dict[int, list[Integers]] = {}
    whole: set[int] = set()
    for operation in operations_of(file.specs):
        for item in operation.args:
            if item.arg_index is None or item.allocation.kind is not AllocationKind.HBM:
                continue
            is_slid = device_operation(operation.op).family is Family.WINDOW
            is_known = not is_slid and math.prod(dim.size for dim in operation.iteration_space) <= _MOST_POINTS
            is_gathered = any(place.indirect_names for place in item.device_coordinates)
            if operation.tiled_levels or is_gathered or not is_known:
                whole.add(item.arg_index)
            else:
                places = _Operation(evaluation, operation, ()).places(item)
                first = item.allocation.start_bytes % SEGMENT_BYTES * item.device_size[-1] // STICK_BYTES
                read.setdefault(item.arg_index, []).append(places.ravel() + first)
    kept: dict[str, npt.NDArray[np.generic]] = dict(inputs)
    for name, values in inputs.items():
        if indices[name] in whole or indices[name] not in read:
            continue
        elements = np.zeros_like(values).ravel()
        places = np.concatenate(read[indices[name]])
        elements[places] = values.ravel()[places]
        kept[name] = elements.reshape(values.shape)
    return kept


def rounded_to_fp8(values: Doubles) -> Doubles:
    """Return the nearest values of E4M3, of two those whose last bit is 0; the largest for what is beyond it."""
    _, exponents = np.frexp(values)
    units = np.ldexp(1.0, np.maximum(exponents, -5) - 4)
    return np.clip(np.round(values / units) * units, -_LARGEST_FP8, _LARGEST_FP8)


def _arranged(argument: TensorArgument, coordinates: Sequence[Integers]) -> Sequence[Integers]:
    """Return coordinates of device dims as elements lie inside of 8-bit sticks, of 128 elements each.

    ``QFP8CH``: the two halves alternate every 8 elements.  ``QFP8WT``: two rows share two sticks, of the first 64
    elements and of the others, and alternate element by element; the rows are those of the outermost dim that the
    sticks do not run along.
    """
    *outer, lane = coordinates
    if argument.element_arrangement == "QFP8CH":
        return [*outer, lane % 64 // 8 * 16 + lane // 64 * 8 + lane % 8]
    if argument.element_arrangement != "QFP8WT":
        return coordinates
    along = set(argument.device_coordinates[-1].symbols)
    places = [dim for dim, item in enumerate(argument.device_coordinates[:-1]) if not along & set(item.symbols)]
    if not places:
        return coordinates
    row = outer[places[0]]
    outer[places[0]] = row // 2 * 2 + lane // 64
    return [*outer, lane % 64 * 2 + row % 2]


def operations_of(specs: Sequence[OpSpec | LoopSpec]) -> Iterator[OpSpec]:
    """Yield the operations of a file in order, each once."""
    for spec in specs:
        if isinstance(spec, LoopSpec):
            yield from operations_of(spec.body)
        else:
            yield spec
