"""Conversion of adjacent 16-bit patterns inside kernels, written as vector instructions on addresses.

Patterns that are or become zero or a normal number need a handful of steps, infinities, NaNs and what is or becomes a
subnormal half several times as many.  So a stick goes the first way, and where that does not serve all of its lanes the
other one: a softmax of thousands of elements gives subnormal halves in every stick.
"""

# numba and llvmlite ship no type information: what they return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, cast

from llvmlite import ir

from spyrec.files.numba_names import cgutils, intrinsic, types

LINE_BYTES = 64
"""A line of the host's caches, half a stick."""

FEW = 8
"""Lanes of the vectors of what is no half of a stick: those that every processor has."""

_LINE_LANES = LINE_BYTES // 2
_INDEX = ir.IntType(32)
_WORD = ir.IntType(64)
_PATTERN = ir.IntType(16)
_BYTE = ir.IntType(8).as_pointer()

_Conversion = Callable[[Any, Any], Any]
"""``(builder, patterns)``: the patterns of the other format."""

_SimpleConversion = Callable[[Any, Any], tuple[Any, Any]]
"""The same, and the lanes where they are right."""


def _number(bits: Any) -> Callable[[int], ir.Constant]:  # noqa: ANN401
    """Return what makes vectors of one number, as wide as ``bits``."""
    return lambda value: ir.Constant(bits.type, [value] * bits.type.count)


def _signed_or_zero(builder: Any, bits: Any, result: Any, halves: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return ``result`` with the sign of ``bits``, zero where it is no normal number, and where that is right.

    ``halves``: magnitudes of the half patterns.
    """
    every = _number(bits)
    is_normal = builder.icmp_unsigned("<", builder.sub(halves, every(0x400)), every(0x7C00 - 0x400))
    is_zero = builder.icmp_unsigned("==", builder.and_(bits, every(0x7FFF)), every(0))
    signed = builder.or_(result, builder.and_(bits, every(0x8000)))
    return builder.select(is_normal, signed, every(0)), builder.or_(is_normal, is_zero)


def _normals_to_dlfloat(builder: Any, bits: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return the patterns, and where they are right: at zeros and normal numbers."""
    every = _number(bits)
    magnitude = builder.and_(bits, every(0x7FFF))
    # half of what the exponents differ by, and of the rounding, are added before the last bit goes
    result = builder.lshr(builder.add(magnitude, every(((31 - 15) << 10) + 1)), every(1))
    return _signed_or_zero(builder, bits, result, magnitude)


def _normals_to_half(builder: Any, bits: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return the patterns, and where they are right: at zeros and what becomes a normal number."""
    result = builder.sub(builder.add(bits, bits), _number(bits)((31 - 15) << 10))
    return _signed_or_zero(builder, bits, result, result)


def _all_to_dlfloat(builder: Any, bits: Any) -> Any:  # noqa: ANN401
    every = _number(bits)
    magnitude = builder.and_(bits, every(0x7FFF))
    normal = builder.add(builder.lshr(builder.add(magnitude, every(1)), every(1)), every((31 - 15) << 9))
    is_subnormal = builder.icmp_unsigned("<", magnitude, every(0x400))
    result = builder.select(is_subnormal, _normalised(builder, magnitude), normal)
    result = builder.select(builder.icmp_unsigned(">=", magnitude, every(0x7C00)), every(0x7FFF), result)
    result = builder.or_(result, builder.and_(bits, every(0x8000)))
    result = builder.select(builder.icmp_unsigned(">", magnitude, every(0x7C00)), every(0x7FFF), result)
    return builder.select(builder.icmp_unsigned("==", magnitude, every(0)), every(0), result)


def _normalised(builder: Any, magnitude: Any) -> Any:  # noqa: ANN401
    """Return DLFloat16 patterns of subnormal halves, which count units of 2**-24.

    Of such a number as a float32, exponent and top fraction bits are the result's.
    """
    wide, single = (ir.VectorType(kind, magnitude.type.count) for kind in (_INDEX, ir.FloatType()))
    pattern = builder.bitcast(builder.sitofp(builder.zext(magnitude, wide), single), wide)
    every = _number(pattern)
    return builder.trunc(builder.sub(builder.lshr(pattern, every(14)), every((127 - 31 + 24) << 9)), magnitude.type)


def _all_to_half(builder: Any, bits: Any) -> Any:  # noqa: ANN401
    every = _number(bits)
    magnitude = builder.and_(bits, every(0x7FFF))
    normal = builder.shl(builder.sub(magnitude, every((31 - 15) << 9)), every(1))
    # 65536 is what half's largest number becomes on the device
    result = builder.select(builder.icmp_unsigned("==", magnitude, every((31 + 16) << 9)), every(0x7BFF), normal)
    result = builder.select(builder.icmp_unsigned(">", magnitude, every((31 + 16) << 9)), every(0x7C00), result)
    is_subnormal = builder.icmp_unsigned("<", magnitude, every((31 - 14) << 9))
    result = builder.select(is_subnormal, _subnormal(builder, magnitude), result)
    result = builder.or_(result, builder.and_(bits, every(0x8000)))
    return builder.select(builder.icmp_unsigned("==", magnitude, every(0)), every(0), result)


def _subnormal(builder: Any, magnitude: Any) -> Any:  # noqa: ANN401
    """Return units of 2**-24, to nearest, ties to even, of DLFloat16 numbers below 2**-14.

    One is its ten bits, the first of them hidden, shifted right by 16 less its exponent: here by one more, of eleven.
    """
    every = _number(magnitude)
    exponent = _at_most(builder, builder.lshr(magnitude, every(9)), 16)
    shift = _at_most(builder, builder.sub(every(17), exponent), 15)  # from 12 on nothing is left
    bits = builder.shl(builder.or_(builder.and_(magnitude, every(0x1FF)), every(0x200)), every(1))
    is_odd = builder.and_(builder.lshr(bits, shift), every(1))
    nearly_half = builder.sub(builder.shl(every(1), builder.sub(shift, every(1))), every(1))
    return builder.lshr(builder.add(builder.add(bits, nearly_half), is_odd), shift)


def _at_most(builder: Any, values: Any, most: int) -> Any:  # noqa: ANN401
    limit = _number(values)(most)
    return builder.select(builder.icmp_unsigned("<", values, limit), values, limit)


def _pointer(builder: Any, address: Any, kind: ir.Type) -> Any:  # noqa: ANN401
    return builder.inttoptr(address, kind.as_pointer())


def _converter(
    in_full: _Conversion, lanes: int, simply: _SimpleConversion | None = None, *, is_streamed: bool = False
) -> Callable[[int, int], None]:
    """Return what converts a vector, or two of them ``simply`` where that is right for all lanes of both."""
    vector_type = ir.VectorType(_PATTERN, lanes)

    @intrinsic
    def converted(_context: Any, source: Any, destination: Any):  # noqa: ANN202, ANN401 - numba's own protocol
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            read, written = (_pointer(builder, address, vector_type) for address in arguments)
            values = [
                builder.load(cgutils.gep(builder, read, number), align=2)
                for number in range(1 if simply is None else 2)
            ]

            def store(results: Sequence[Any]) -> None:
                for number, result in enumerate(results):
                    place = cgutils.gep(builder, written, number)
                    stored = builder.store(result, place, align=LINE_BYTES if is_streamed else 2)
                    if is_streamed:
                        stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(_INDEX, 1)]))

            if simply is None:
                store([in_full(builder, value) for value in values])
                return ir.Constant(_WORD, 0)
            results, right = zip(*[simply(builder, value) for value in values])
            all_right = reduce(builder.and_, [builder.bitcast(item, ir.IntType(lanes)) for item in right])
            is_right = builder.icmp_unsigned("==", all_right, ir.Constant(all_right.type, -1))
            # a line that goes past the caches is stored once: twice takes a hundred times as long
            with builder.if_else(is_right, likely=True) as (simple, full):
                with simple:
                    store(results)
                with full:
                    store([in_full(builder, value) for value in values])
            return ir.Constant(_WORD, 0)

        return types.int64(source, destination), generate

    return cast("Callable[[int, int], None]", converted)


stick_to_dlfloat = _converter(_all_to_dlfloat, _LINE_LANES, _normals_to_dlfloat)
"""``(source, destination)``, addresses: rounds 64 IEEE half patterns to DLFloat16 (inside kernels only)."""

stick_to_half = _converter(_all_to_half, _LINE_LANES, _normals_to_half)
"""The other way."""

streamed_stick_to_dlfloat = _converter(_all_to_dlfloat, _LINE_LANES, _normals_to_dlfloat, is_streamed=True)
"""The same, stored past the caches: whole lines, which :func:`ordered` makes others see."""

streamed_stick_to_half = _converter(_all_to_half, _LINE_LANES, _normals_to_half, is_streamed=True)
"""The other way."""

line_to_dlfloat, line_to_half = (_converter(convert, _LINE_LANES) for convert in (_all_to_dlfloat, _all_to_half))
"""Half a stick, and the other way."""

few_to_dlfloat, few_to_half = (_converter(convert, FEW) for convert in (_all_to_dlfloat, _all_to_half))
""":data:`FEW` patterns, and the other way."""


@intrinsic
def _word_at(_context: Any, _table: Any, _place: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        table, place = arguments
        return builder.load(builder.gep(_pointer(builder, table, _WORD), [place]), align=8)

    return types.int64(types.int64, types.int64), generate


word_at = cast("Callable[[int, int], int]", _word_at)
"""``(table, place)``: a word of a table at an address."""


@intrinsic
def _pattern_at(_context: Any, _address: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        return builder.load(_pointer(builder, arguments[0], _PATTERN), align=2)

    return types.uint16(types.int64), generate


pattern_at = cast("Callable[[int], Any]", _pattern_at)
"""The pattern at an address."""


@intrinsic
def _set_pattern(_context: Any, _address: Any, _pattern: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        builder.store(arguments[1], _pointer(builder, arguments[0], _PATTERN), align=2)
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.uint16), generate


set_pattern = cast("Callable[[int, Any], None]", _set_pattern)
"""``(address, pattern)``: stores it there."""


@intrinsic
def _ordered(_context: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> object:  # noqa: ANN401
        builder.fence("seq_cst")
        return ir.Constant(_WORD, 0)

    return types.int64(), generate


ordered = cast("Callable[[], None]", _ordered)
"""Stores past the caches come before all that follows."""


def _fetcher(*, is_write: bool) -> Callable[[int], None]:
    @intrinsic
    def fetched(_context: Any, _address: Any):  # noqa: ANN202, ANN401
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            kind = ir.FunctionType(ir.VoidType(), [_BYTE, _INDEX, _INDEX, _INDEX])
            called = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            for line in range(2):
                place = builder.add(arguments[0], ir.Constant(_WORD, line * LINE_BYTES))
                numbers = [ir.Constant(_INDEX, value) for value in (int(is_write), 3, 1)]
                builder.call(called, [builder.inttoptr(place, _BYTE), *numbers])
            return ir.Constant(_WORD, 0)

        return types.int64(types.int64), generate

    return cast("Callable[[int], None]", fetched)


fetch_to_read = _fetcher(is_write=False)
"""``(address)``: asks for the cache lines of 64 patterns, which need not be memory."""

fetch_to_write = _fetcher(is_write=True)
"""The same, for patterns that will be written."""
