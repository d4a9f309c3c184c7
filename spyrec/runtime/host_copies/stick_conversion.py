"""Conversion of 64 adjacent 16-bit patterns inside kernels, written as vector instructions.

Patterns that become or were no subnormal half need 16-bit steps alone, twice as many lanes to a vector as 32-bit ones.
As numba loops over arrays the same steps took twice the time: each stick asked anew whether its arrays overlap.
"""

# numba and llvmlite ship no type information: what they return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from spyrec.files.numba_names import cgutils, intrinsic, types

Patterns = npt.NDArray[np.uint16]

_LANES = 32
"""Of one vector here: a line of the host's caches; narrower processors take it in parts."""

_VECTORS = 2
"""Of a stick."""

FEW = 8
"""Lanes of the vectors of what is no whole stick: those that every processor has."""


def _number(bits: Any) -> Callable[[int], ir.Constant]:  # noqa: ANN401
    """Return what makes vectors of one number, as wide as ``bits``."""
    return lambda value: ir.Constant(bits.type, [value] * bits.type.count)


def _to_dlfloat(builder: Any, bits: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return the patterns, and where the simple way was wrong: at subnormal halves."""
    every = _number(bits)
    magnitude = builder.and_(bits, every(0x7FFF))
    normal = builder.add(builder.lshr(builder.add(magnitude, every(1)), every(1)), every((31 - 15) << 9))
    result = builder.select(builder.icmp_unsigned(">=", magnitude, every(0x7C00)), every(0x7FFF), normal)
    result = builder.or_(result, builder.and_(bits, every(0x8000)))
    result = builder.select(builder.icmp_unsigned(">", magnitude, every(0x7C00)), every(0x7FFF), result)
    result = builder.select(builder.icmp_unsigned("==", magnitude, every(0)), every(0), result)
    # less one, so that zero, which is simple, counts as the largest
    return result, builder.icmp_unsigned("<", builder.sub(magnitude, every(1)), every(0x400 - 1))


def _to_half(builder: Any, bits: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return the patterns, and where the simple way was wrong: at what becomes a subnormal half."""
    every = _number(bits)
    magnitude = builder.and_(bits, every(0x7FFF))
    normal = builder.shl(builder.sub(magnitude, every((31 - 15) << 9)), every(1))
    result = builder.select(builder.icmp_unsigned(">=", magnitude, every((31 + 16) << 9)), every(0x7C00), normal)
    result = builder.or_(result, builder.and_(bits, every(0x8000)))
    result = builder.select(builder.icmp_unsigned("==", magnitude, every(0)), every(0), result)
    return result, builder.icmp_unsigned("<", builder.sub(magnitude, every(1)), every(((31 - 14) << 9) - 1))


def _converter(
    convert: Callable[[Any, Any], tuple[Any, Any]], lanes: int, vectors: int
) -> Callable[[Patterns, np.uintp, Patterns, np.uintp], bool]:
    vector_type = ir.VectorType(ir.IntType(16), lanes)

    @intrinsic
    def converted(_context: Any, source: Any, read: Any, destination: Any, write: Any):  # noqa: ANN202, ANN401 - numba's own protocol
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            places: list[Any] = []
            for kind, array, index in ((source, *arguments[:2]), (destination, *arguments[2:])):
                data = context.make_array(kind)(context, builder, array).data
                first = builder.bitcast(builder.gep(data, [index]), vector_type.as_pointer())
                places.append(first)
            wrong: list[Any] = []
            for vector in range(vectors):
                here = [cgutils.gep(builder, place, vector) for place in places]
                result, is_wrong = convert(builder, builder.load(here[0], align=2))
                builder.store(result, here[1], align=2)
                wrong.append(builder.bitcast(is_wrong, ir.IntType(lanes)))
            return builder.icmp_unsigned("==", reduce(builder.or_, wrong), ir.Constant(ir.IntType(lanes), 0))

        return types.boolean(source, read, destination, write), generate

    return cast("Callable[[Patterns, np.uintp, Patterns, np.uintp], bool]", converted)


half_stick_to_dlfloat = _converter(_to_dlfloat, _LANES, _VECTORS)
"""``(source, read, destination, write)``: rounds 64 IEEE half patterns from element ``read`` on to DLFloat16, and says
whether that is all: ``False`` where some are subnormal, whose results are wrong (inside kernels only)."""

dlfloat_stick_to_half = _converter(_to_half, _LANES, _VECTORS)
"""The other way; ``False`` where some become subnormal halves (inside kernels only)."""

few_halves_to_dlfloat = _converter(_to_dlfloat, FEW, 1)
"""The same for :data:`FEW` patterns."""

few_dlfloats_to_half = _converter(_to_half, FEW, 1)
"""The other way."""


_INDEX = ir.IntType(32)
_BYTE = ir.IntType(8).as_pointer()


def _fetcher(*, is_write: bool) -> Callable[[Patterns, np.uintp], None]:
    @intrinsic
    def fetched(_context: Any, array: Any, index: Any):  # noqa: ANN202, ANN401
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            data = context.make_array(array)(context, builder, arguments[0]).data
            kind = ir.FunctionType(ir.VoidType(), [_BYTE, _INDEX, _INDEX, _INDEX])
            called = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            for vector in range(_VECTORS):
                place = builder.gep(data, [builder.add(arguments[1], ir.Constant(ir.IntType(64), vector * _LANES))])
                numbers = [ir.Constant(_INDEX, value) for value in (int(is_write), 3, 1)]
                builder.call(called, [builder.bitcast(place, _BYTE), *numbers])
            return context.get_dummy_value()

        return types.none(array, index), generate

    return cast("Callable[[Patterns, np.uintp], None]", fetched)


fetch_to_read = _fetcher(is_write=False)
"""``(array, index)``: asks for the cache lines of 64 patterns, which need not be memory (inside kernels only)."""

fetch_to_write = _fetcher(is_write=True)
"""The same, for patterns that will be written (inside kernels only)."""
