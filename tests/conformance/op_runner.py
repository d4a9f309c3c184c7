"""One OpSpec through the code generator and the emulator: host arrays in, what the output's buffer holds out.

Where an element lies comes from the OpSpec's own coordinates, evaluated; all other lanes of the inputs stay poisoned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from spyrec.codegen.emit_opspecs import emit_opspecs
from spyrec.codegen.expression import CoordinateExpression, parse_expression
from spyrec.codegen.opspec import OpInfo, OpSpec, TensorArgument
from spyrec.emulator.device import EmulatedDevice
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import ArgumentTable, TableEntry
from tests.codegen.builders import FP16, SEGMENT, Along, argument, file_of, space

Doubles = npt.NDArray[np.float64]
Places = tuple[npt.NDArray[np.int64], ...]
Words = npt.NDArray[np.unsignedinteger]

MATMULS = {"matmul", "batchmatmul", "batchmatmulfp8"}


def _e4m3(pattern: int) -> float:
    exponent, fraction = pattern >> 3 & 15, pattern & 7
    magnitude = fraction * 2.0**-9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)
    return -magnitude if pattern & 128 else magnitude


E4M3: Doubles = np.array([_e4m3(pattern) for pattern in range(256)])
"""The values of the 8-bit format by pattern; the two NaN patterns (0x7F and 0xFF) have none."""
_ASCENDING = np.array(sorted({*range(256)} - {0x7F, 0x80, 0xFF}, key=lambda pattern: E4M3[pattern]), np.uint8)
"""Its patterns by value, without that of minus zero."""


@dataclass(frozen=True)
class Operand:
    """One operand: the symbols that are the dims of its host array, its device axes outermost first, and the stick.

    ``None`` as an axis is a device dim of extent 1; ``stick=None``: one element per stick.
    """

    symbols: tuple[str, ...]
    axes: tuple[str | None, ...]
    stick: str | None
    data_format: DeviceFormat = FP16


def specification(
    op: str,
    operands: Sequence[Operand],
    sizes: Mapping[str, int],
    splits: Mapping[str, int],
    *,
    is_reduction: bool = False,
    constants: Mapping[str, float] | None = None,
) -> OpSpec:
    """Return an OpSpec whose last operand is the output; the second of a product has whole sticks of rows."""
    args: list[TensorArgument] = []
    for index, operand in enumerate(operands):
        extents = dict(sizes)
        if op in MATMULS and index == 1:
            lanes = operand.data_format.elements_per_stick or 0
            extents["k"] = -(-sizes["k"] // lanes) * lanes
        axes = [Along(symbol) for symbol in operand.axes]
        is_input = index < len(operands) - 1
        made = argument(axes, operand.stick, extents, index=index, is_input=is_input, data_format=operand.data_format)
        args.append(replace(made, ends_in_padding=not is_input))
    return OpSpec(op, is_reduction, space(sizes, splits), tuple(args), op_info=OpInfo(constants or {}))


def places(operand: Operand, coordinates: Sequence[CoordinateExpression], sizes: Mapping[str, int]) -> Places:
    """Return the device coordinates of every element of an operand's host array, in its order."""
    extents = [sizes[symbol] for symbol in operand.symbols]
    points = dict(zip(operand.symbols, np.indices(extents).reshape(len(extents), math.prod(extents))))
    # an expression is sums, quotients and remainders: arrays do as well as numbers
    found = [np.asarray(coordinate.evaluate(cast("Mapping[str, int]", points)), np.int64) for coordinate in coordinates]
    return tuple(np.broadcast_to(item, (math.prod(extents),)) for item in found)


def encoded(values: Doubles, data_format: DeviceFormat) -> Words:
    """Return the patterns of values that the format holds."""
    match data_format:
        case DeviceFormat.SEN169_FP16:
            return dlfloat.encode(values)
        case DeviceFormat.IEEE_FP32:
            return values.astype(np.float32).view(np.uint32)
        case DeviceFormat.SEN143_FP8:
            found = np.searchsorted(E4M3[_ASCENDING], values)
            assert np.array_equal(E4M3[_ASCENDING[found]], values)
            return _ASCENDING[found]
        case _:
            return values.astype(np.int32).view(np.uint32)


def decoded(patterns: Words, data_format: DeviceFormat) -> Doubles:
    """Return the values of patterns."""
    match data_format:
        case DeviceFormat.SEN169_FP16:
            return dlfloat.decode(patterns.astype(np.uint16)).astype(np.float64)
        case DeviceFormat.IEEE_FP32:
            return patterns.astype(np.uint32).view(np.float32).astype(np.float64)
        case DeviceFormat.SEN143_FP8:
            return E4M3[patterns]
        case _:
            return patterns.astype(np.uint32).view(np.int32).astype(np.float64)


def launch(spec: OpSpec, inputs: Sequence[tuple[Places, Doubles]]) -> Doubles:
    """Execute on poisoned memory with these elements in place; return the output's buffer, decoded."""
    emitted = emit_opspecs(file_of(spec))
    entries = tuple(
        TableEntry(f"t{i}", i, arg.device_size, arg.device_dtype, i * SEGMENT, 128 * math.prod(arg.device_size[:-1]))
        for i, arg in enumerate(spec.args)
    )
    device = EmulatedDevice()
    loaded = device.load(emitted.program, emitted.superdscs, ArgumentTable(entries))
    addresses = [device.allocate(entry.size_bytes) for entry in entries]

    def words(position: int) -> Words:
        arg = spec.args[position]
        carrier = f"u{128 // arg.device_size[-1]}"
        memory = device.memory(addresses[position], entries[position].size_bytes)
        return memory.view(carrier).reshape(arg.device_size)

    for position, (where, values) in enumerate(inputs):
        if spec.op in MATMULS and position == 1:
            words(position)[:] = 0
        words(position)[where] = encoded(values.reshape(-1), spec.args[position].device_dtype)
    device.launch(loaded, addresses, None)
    last = spec.args[-1]
    return decoded(words(len(entries) - 1).reshape(-1), last.device_dtype).reshape(last.device_size)


def execute(spec: OpSpec, operands: Sequence[Operand], arrays: Sequence[Doubles], sizes: Mapping[str, int]) -> Doubles:
    """Return the host array of the output, the last of ``operands``; ``arrays`` are those of the inputs."""
    *sources, target = operands
    inputs = [
        (places(operand, arg.device_coordinates, sizes), array)
        for operand, arg, array in zip(sources, spec.args, arrays)
    ]
    result = launch(spec, inputs)
    at = places(target, spec.args[-1].device_coordinates, sizes)
    return result[at].reshape([sizes[symbol] for symbol in target.symbols])


def numbers(generator: np.random.Generator, sizes: Mapping[str, int], *, positive: bool = False) -> Doubles:
    """Return sixteenths up to 3: DLFloat16 holds them, some are equal."""
    shape = tuple(sizes.values())
    return np.asarray(generator.integers(1 if positive else -48, 49, shape), np.float64) / 16


def gathered(splits: Mapping[str, int]) -> tuple[Doubles, Doubles]:
    """Return rows of a table as the device gathers them by their numbers, and as NumPy does."""
    sizes, rows = {"s": 64, "c": 128}, 500
    index = replace(argument([Along("s")], "s", sizes, index=0, data_format=DeviceFormat.IEEE_INT32), name="rows")
    table = argument([Along("c"), Along("s")], "c", sizes | {"s": rows}, index=1)
    columns, _, lane = table.device_coordinates
    read = replace(table, device_coordinates=(columns, parse_expression("IndirectAccess(rows)"), lane))
    out = replace(argument([Along("c"), Along("s")], "c", sizes, index=2, is_input=False), ends_in_padding=True)
    spec = OpSpec("identity", False, space(sizes, splits), (index, read, out))
    generator = np.random.default_rng(10)
    chosen, values = generator.integers(0, rows, 64).astype(np.float64), numbers(generator, {"s": rows, "c": 128})
    operand = Operand(("s", "c"), ("c", "s"), "c")
    result = launch(
        spec,
        [
            (places(Operand(("s",), ("s",), "s"), index.device_coordinates, sizes), chosen),
            (places(operand, table.device_coordinates, sizes | {"s": rows}), values),
        ],
    )
    got = result[places(operand, out.device_coordinates, sizes)].reshape(64, 128)
    return got, values[chosen.astype(np.int64)]
