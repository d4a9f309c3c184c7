"""DLFloat16 in vectors: loops over groups of 32 elements, written as LLVM instructions.

Decoding works on 16-bit lanes, 32 at a time, and widens last; what LLVM makes of the scalar form
(:mod:`spyrec.hardware.dlfloat_kernels`) has 16 lanes and half as many instructions again, which shows where memory is
the limit.
Both forms give the same bits for every input (tested over all patterns).
"""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from llvmlite import ir

from spyrec.files.host_processor import host_processor
from spyrec.files.numba_names import cgutils, intrinsic, types
from spyrec.hardware.dlfloat import SMALLEST

_VARIANT = host_processor().variant

GROUP = 32
"""Elements of one step of a loop."""

HALF = GROUP // 2
WORD = ir.IntType(64)
INDEX = ir.IntType(32)
SHORTS = ir.VectorType(ir.IntType(16), GROUP)
_INTEGERS = ir.VectorType(INDEX, HALF)
FLOATS = ir.VectorType(ir.FloatType(), HALF)
DOUBLES = ir.VectorType(ir.DoubleType(), HALF // 2)

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
# Of 16 zeros and then 16 words, within quarters again: zero and word, twice.
_FIRST_PAIRS = [lane for q in range(4) for i in range(2) for lane in (4 * q + i, HALF + 4 * q + i)]
_SECOND_PAIRS = [lane + 2 for lane in _FIRST_PAIRS]

DOUBLE_ORDER = [8 * q + 2 * part + i for part in range(4) for q in range(4) for i in range(2)]
"""By place in the four vectors of :func:`decode_doubles`: the number of the element there."""

DOUBLES_JOINED = [pair + 8 * part + i for pair in range(0, 8, 2) for part in range(2) for i in range(2)]
"""Of two neighbours of these four, as float32: the lanes of one split vector."""

_HALF_OF_SMALLEST = int(np.float32(SMALLEST / 2).view(np.int32))

Floats = tuple[Any, Any]


def _shorts(value: int) -> ir.Constant:
    return ir.Constant(SHORTS, [value] * GROUP)


def _integers(value: int) -> ir.Constant:
    return ir.Constant(_INTEGERS, [value] * HALF)


def lanes_of(builder: Any, left: Any, right: Any, lanes: Sequence[int]) -> Any:  # noqa: ANN401
    """Return the lanes with these numbers, of ``left`` and then of ``right``."""
    return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(INDEX, len(lanes)), list(lanes)))


def in_every_lane(builder: Any, value: Any, count: int) -> Any:  # noqa: ANN401
    """Return a vector of ``count`` lanes that all hold a value."""
    undefined = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    return lanes_of(builder, builder.insert_element(undefined, value, INDEX(0)), undefined, [0] * count)


def joined(builder: Any, parts: Sequence[Any], count: int) -> Sequence[Any]:  # noqa: ANN401
    """Return the lanes of vectors, a power of two of them, as those of ``count`` vectors."""
    while len(parts) > count:
        width = parts[0].type.count
        parts = [lanes_of(builder, *pair, range(2 * width)) for pair in zip(parts[::2], parts[1::2])]
    return parts


def pointer(builder: Any, address: Any, kind: ir.Type) -> Any:  # noqa: ANN401
    """Return an address as a pointer."""
    return builder.inttoptr(address, kind.as_pointer())


def _halves(builder: Any, patterns: Any, dropped: int, bias: int, infinity: int) -> tuple[Any, Any]:  # noqa: ANN401
    """Return the low and the high 16 bits below which a wider float of 32 patterns has but zeros.

    ``dropped``: bits of the pattern that do not fit the high half; ``bias``, ``infinity``: what the wider format adds
    to the exponent, and its infinity, as high halves.
    """
    magnitude = builder.and_(patterns, _shorts(0x7FFF))
    is_finite = builder.icmp_unsigned("!=", magnitude, _shorts(0x7FFF))
    is_nonzero = builder.icmp_unsigned("!=", magnitude, _shorts(0))
    largest = 0x7FFF >> dropped
    # The shift drags copies of the sign along, which the mask drops; what is added last so is 0 for zeros at no cost.
    high = builder.and_(builder.ashr(patterns, _shorts(dropped)), _shorts(0x8000 | largest))
    added = builder.select(is_finite, _shorts(bias), _shorts(infinity - largest))
    high = builder.select(is_nonzero, builder.add(high, added), _shorts(0))
    low = builder.select(is_finite, builder.shl(patterns, _shorts(16 - dropped)), _shorts(0))
    return low, high


def decode_vectors(builder: Any, patterns: Any) -> Floats:  # noqa: ANN401
    """Return the two split vectors of float32 of 32 patterns: the high and low halves of each float, interleaved."""
    # A float32 has 23 fraction bits and bias 127: the fraction moves up by 14 bits, the exponent by 96.
    low, high = _halves(builder, patterns, 2, 96 << 7, 0x7F80)
    first, second = (lanes_of(builder, low, high, lanes) for lanes in (_LOW, _HIGH))
    return builder.bitcast(first, FLOATS), builder.bitcast(second, FLOATS)


def decode_doubles(builder: Any, patterns: Any) -> list[Any]:  # noqa: ANN401
    """Return 32 patterns as four vectors of 8 float64, split as :data:`DOUBLE_ORDER` says."""
    # A float64 has 52 fraction bits and bias 1023: the fraction moves up by 43 bits, the exponent by 992.
    low, high = _halves(builder, patterns, 5, 992 << 4, 0x7FF0)
    words = [builder.bitcast(lanes_of(builder, low, high, lanes), _INTEGERS) for lanes in (_LOW, _HIGH)]
    zeros = _integers(0)
    parts = [lanes_of(builder, zeros, word, lanes) for word in words for lanes in (_FIRST_PAIRS, _SECOND_PAIRS)]
    return [builder.bitcast(part, DOUBLES) for part in parts]


def _rounded(builder: Any, value: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return magnitudes, -2**15 for zero and otherwise not yet clamped, and what has the sign; 32-bit lanes."""
    # NaN, which is not smaller, becomes the positive infinity, as which it is stored.
    infinity = ir.Constant(FLOATS, [float("inf")] * HALF)
    number = builder.select(builder.fcmp_ordered("<", value, infinity), value, infinity)
    pattern = builder.bitcast(number, _INTEGERS)
    magnitude = builder.and_(pattern, _integers(0x7FFFFFFF))
    is_kept = builder.icmp_signed(">=", magnitude, _integers(_HALF_OF_SMALLEST))
    # Half a unit is added and the exponent moved back by 96 before the shift; ties so round away from zero.
    result = builder.ashr(builder.sub(magnitude, _integers((96 << 23) - (1 << 13))), _integers(14))
    return builder.select(is_kept, result, _integers(-0x8000)), pattern


def _saturated(builder: Any, first: Any, second: Any) -> Any:  # noqa: ANN401
    """Return two split vectors of integers as 32 of 16 bits, limited to what those hold."""
    pack = _PACKS.get(_VARIANT.name)
    if pack is not None and builder.module.triple.startswith("x86_64"):
        # One instruction, which LLVM does not see in the general form: it would take seven.
        width = _VARIANT.lanes
        kinds = ir.VectorType(ir.IntType(16), 2 * width), ir.VectorType(INDEX, width)
        called = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kinds[0], [kinds[1]] * 2), pack)
        parts: list[Any] = []
        for start in range(0, HALF, width):
            lanes = range(start, start + width)
            own = [lanes_of(builder, item, item, lanes) for item in (first, second)]
            parts.append(builder.call(called, own))
        return joined(builder, parts, 1)[0]

    def limited(lanes: Any) -> Any:  # noqa: ANN401
        for name, limit in (("smax", -0x8000), ("smin", 0x7FFF)):
            lanes = _bounded(builder, name, lanes, _integers(limit))
        return builder.bitcast(lanes, SHORTS)

    return lanes_of(builder, limited(first), limited(second), _JOIN)


_PACKS = {
    "avx512": "llvm.x86.avx512.packssdw.512",
    "avx2": "llvm.x86.avx2.packssdw",
    "portable": "llvm.x86.sse2.packssdw.128",
}


def _bounded(builder: Any, name: str, lanes: Any, limit: Any) -> Any:  # noqa: ANN401
    kind = lanes.type
    function = ir.FunctionType(kind, [kind] * 2)
    called = cgutils.get_or_insert_function(builder.module, function, f"llvm.{name}.v{kind.count}i{kind.element.width}")
    return builder.call(called, [lanes, limit])


def encode_vectors(builder: Any, values: Floats) -> Any:  # noqa: ANN401
    """Return the 32 patterns of two split vectors."""
    (first, first_sign), (second, second_sign) = (_rounded(builder, value) for value in values)
    magnitude = _saturated(builder, first, second)
    sign = builder.and_(_saturated(builder, first_sign, second_sign), _shorts(0x8000))
    is_nonzero = builder.icmp_signed("!=", magnitude, _shorts(-0x8000))
    result = builder.add(_bounded(builder, "smax", magnitude, _shorts(1)), sign)
    return builder.select(is_nonzero, result, _shorts(0))


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
