"""DLFloat16 in vectors: loops over groups of 32 elements, written as LLVM instructions.

Decoding works on 16-bit lanes, 32 at a time, and widens last; what LLVM makes of the scalar form
(:mod:`spyrec.dlfloat_kernels`) has 16 lanes and half as many instructions again, which shows where memory is the limit.
Both forms give the same bits for every input (tested over all patterns).
"""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from spyrec.dlfloat import SMALLEST

GROUP = 32
"""Elements of one step of a loop."""

HALF = GROUP // 2
WORD = ir.IntType(64)
INDEX = ir.IntType(32)
SHORTS = ir.VectorType(ir.IntType(16), GROUP)
_INTEGERS = ir.VectorType(INDEX, HALF)
FLOATS = ir.VectorType(ir.FloatType(), HALF)
DOUBLES = ir.VectorType(ir.DoubleType(), HALF)

# A group's floats are two vectors of 16.  They are split within quarters of 128 bits, as one instruction does: the
# first holds elements 0-3, 8-11, 16-19, 24-27, the second those between.
_LOW = [lane for q in range(4) for i in range(4) for lane in (8 * q + i, GROUP + 8 * q + i)]
_HIGH = [lane for q in range(4) for i in range(4) for lane in (8 * q + 4 + i, GROUP + 8 * q + 4 + i)]
_JOIN = [first + 8 * q + 2 * i for q in range(4) for first in (0, GROUP) for i in range(4)]
# The same split of floats in memory order: from two vectors of 16 to split ones and back are one permutation each.
BELOW = [8 * q + i for q in range(4) for i in range(4)]
ABOVE = [8 * q + 4 + i for q in range(4) for i in range(4)]
FIRST = [first + 4 * q + i for q in range(2) for first in (0, HALF) for i in range(4)]
SECOND = [8 + lane for lane in FIRST]

Floats = tuple[Any, Any]


def _shorts(value: int) -> ir.Constant:
    return ir.Constant(SHORTS, [value] * GROUP)


def _integers(value: int) -> ir.Constant:
    return ir.Constant(_INTEGERS, [value] * HALF)


def lanes_of(builder: Any, left: Any, right: Any, lanes: Sequence[int]) -> Any:  # noqa: ANN401
    """Return the lanes with these numbers, of ``left`` and then of ``right``."""
    return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(INDEX, len(lanes)), list(lanes)))


def pointer(builder: Any, address: Any, kind: ir.Type) -> Any:  # noqa: ANN401
    """Return an address as a pointer."""
    return builder.inttoptr(address, kind.as_pointer())


def decode_vectors(builder: Any, patterns: Any) -> Floats:  # noqa: ANN401
    """Return the two split vectors of float32 of 32 patterns: the high and low halves of each float, interleaved."""
    magnitude = builder.and_(patterns, _shorts(0x7FFF))
    is_infinite = builder.icmp_unsigned("==", magnitude, _shorts(0x7FFF))
    # A float32 has 23 fraction bits and bias 127: the fraction moves up by 14 bits, the exponent by 96.
    high = builder.add(builder.lshr(magnitude, _shorts(2)), _shorts(96 << 7))
    high = builder.select(is_infinite, _shorts(0x7F80), high)
    high = builder.or_(high, builder.and_(patterns, _shorts(0x8000)))
    high = builder.select(builder.icmp_unsigned("==", magnitude, _shorts(0)), _shorts(0), high)
    low = builder.select(is_infinite, _shorts(0), builder.shl(patterns, _shorts(14)))
    first, second = (lanes_of(builder, low, high, lanes) for lanes in (_LOW, _HIGH))
    return builder.bitcast(first, FLOATS), builder.bitcast(second, FLOATS)


def _rounded(builder: Any, value: Any) -> Any:  # noqa: ANN401
    """Return the patterns of 16 floats, each in a 32-bit lane."""

    def bound(name: str, lanes: Any, limit: int) -> Any:  # noqa: ANN401
        function = ir.FunctionType(_INTEGERS, [_INTEGERS] * 2)
        called = cgutils.get_or_insert_function(builder.module, function, f"llvm.{name}.v{HALF}i32")
        return builder.call(called, [lanes, _integers(limit)])

    pattern = builder.bitcast(value, _INTEGERS)
    magnitude = builder.and_(pattern, _integers(0x7FFFFFFF))
    absolute = builder.bitcast(magnitude, FLOATS)
    half_of_smallest = ir.Constant(FLOATS, [SMALLEST / 2] * HALF)
    # NaN is no number at least as large, yet not a smaller one: it keeps the largest magnitude and takes no sign.
    is_signed = builder.fcmp_ordered(">=", absolute, half_of_smallest)
    is_kept = builder.fcmp_unordered(">=", absolute, half_of_smallest)
    # Half a unit is added and the exponent moved back by 96 before the shift; ties so round away from zero.
    result = builder.ashr(builder.sub(magnitude, _integers((96 << 23) - (1 << 13))), _integers(14))
    result = builder.select(is_kept, bound("smax", result, 1), _integers(0))
    result = bound("smin", result, 0x7FFF)
    sign = builder.and_(builder.lshr(pattern, _integers(16)), _integers(0x8000))
    return builder.select(is_signed, builder.or_(result, sign), result)


def encode_vectors(builder: Any, values: Floats) -> Any:  # noqa: ANN401
    """Return the 32 patterns of two split vectors."""
    first, second = (builder.bitcast(_rounded(builder, value), SHORTS) for value in values)
    return lanes_of(builder, first, second, _JOIN)


def repeat(builder: Any, count: Any, body: Callable[[Any], None]) -> None:  # noqa: ANN401
    """Write a loop over ``range(count)``."""
    entry = builder.block
    head, inside, done = (builder.append_basic_block(f"dl16.{name}") for name in ("head", "body", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(WORD)
    index.add_incoming(ir.Constant(WORD, 0), entry)
    builder.cbranch(builder.icmp_signed("<", index, count), inside, done)
    builder.position_at_end(inside)
    body(index)
    index.add_incoming(builder.add(index, ir.Constant(WORD, 1)), builder.block)
    builder.branch(head)
    builder.position_at_end(done)


def advanced(builder: Any, address: Any, index: Any, step_bytes: int) -> Any:  # noqa: ANN401
    """Return the address ``index`` steps on."""
    return builder.add(address, builder.mul(index, ir.Constant(WORD, step_bytes)))


@intrinsic
def _decode_groups(_context: Any, _source: Any, _target: Any, _groups: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        source, target, groups = arguments

        def body(index: Any) -> None:  # noqa: ANN401
            place = pointer(builder, advanced(builder, source, index, 2 * GROUP), SHORTS)
            split = decode_vectors(builder, builder.load(place, align=2))
            for half, lanes in enumerate((FIRST, SECOND)):
                place = advanced(builder, target, index, 4 * GROUP)
                place = pointer(builder, builder.add(place, ir.Constant(WORD, 4 * HALF * half)), FLOATS)
                builder.store(lanes_of(builder, *split, lanes), place, align=4)

        repeat(builder, groups, body)
        return ir.Constant(WORD, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def _encode_groups(_context: Any, _source: Any, _target: Any, _groups: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        source, target, groups = arguments

        def body(index: Any) -> None:  # noqa: ANN401
            place = advanced(builder, source, index, 4 * GROUP)
            halves = [
                builder.load(pointer(builder, builder.add(place, ir.Constant(WORD, 4 * HALF * half)), FLOATS), align=4)
                for half in range(2)
            ]
            split = [lanes_of(builder, *halves, lanes) for lanes in (BELOW, ABOVE)]
            place = pointer(builder, advanced(builder, target, index, 2 * GROUP), SHORTS)
            builder.store(encode_vectors(builder, (split[0], split[1])), place, align=2)

        repeat(builder, groups, body)
        return ir.Constant(WORD, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


decode_groups = cast("Callable[[int, int, int], None]", _decode_groups)
"""``(source, target, groups)``: decodes 32 patterns a group into float32 (inside kernels only)."""

encode_groups = cast("Callable[[int, int, int], None]", _encode_groups)
"""``(source, target, groups)``: rounds 32 float32 a group to patterns (inside kernels only)."""
