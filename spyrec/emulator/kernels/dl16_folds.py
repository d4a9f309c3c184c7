"""Runs of DLFloat16 in memory folded, and rows normalised, for use inside kernels."""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir

from spyrec.emulator.kernels.dl16 import (
    ABOVE,
    BELOW,
    DOUBLE_ORDER,
    DOUBLES,
    FIRST,
    FLOATS,
    GROUP,
    HALF,
    INDEX,
    SECOND,
    SHORTS,
    WORD,
    advanced,
    decode_doubles,
    decode_vectors,
    encode_vectors,
    lanes_of,
    pointer,
    repeat,
)
from spyrec.emulator.kernels.formulas import computed, formula_of
from spyrec.files.numba_names import intrinsic, literal_intrinsic, types

_WIDE = ir.VectorType(ir.DoubleType(), HALF)


@literal_intrinsic
def _fold_groups(_context: Any, formula: Any, _source: Any, _sums: Any, _groups: Any):  # noqa: ANN202, ANN401
    found = formula_of(formula.literal_value)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        _, source, sums, groups = arguments

        def body(index: Any) -> None:  # noqa: ANN401
            patterns = builder.load(pointer(builder, advanced(builder, source, index, 2 * GROUP), SHORTS), align=2)
            places = _double_places(builder, advanced(builder, sums, index, 8 * GROUP))
            for place, values in zip(places, decode_doubles(builder, patterns)):
                builder.store(computed(builder, found, [builder.load(place, align=8), values]), place, align=8)

        repeat(builder, groups, body)
        return ir.Constant(WORD, 0)

    return types.int64(formula, *[types.int64] * 3), generate


fold_groups = cast("Callable[[str, int, int, int], None]", _fold_groups)
"""``(formula, source, sums, groups)``: folds patterns into as many float64 at ``sums`` (inside kernels only).

``formula``: of the total and the next element, as a constant.  Elements of a group are in the order of decoding:
:data:`settle_groups` restores theirs, after the last fold.
"""


def _double_places(builder: Any, address: Any) -> list[Any]:  # noqa: ANN401
    """Return pointers to the four vectors of float64 of a group."""
    width = GROUP // 4
    places = (builder.add(address, ir.Constant(WORD, 8 * width * part)) for part in range(4))
    return [pointer(builder, place, DOUBLES) for place in places]


@intrinsic
def _settle_groups(_context: Any, _sums: Any, _groups: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        sums, groups = arguments

        def body(index: Any) -> None:  # noqa: ANN401
            places = _double_places(builder, advanced(builder, sums, index, 8 * GROUP))
            parts = [builder.load(place, align=8) for place in places]
            halves = [lanes_of(builder, *pair, list(range(HALF))) for pair in (parts[:2], parts[2:])]
            width = GROUP // 4
            for part, place in enumerate(places):
                lanes = [DOUBLE_ORDER.index(width * part + lane) for lane in range(width)]
                builder.store(lanes_of(builder, *halves, lanes), place, align=8)

        repeat(builder, groups, body)
        return ir.Constant(WORD, 0)

    return types.int64(types.int64, types.int64), generate


settle_groups = cast("Callable[[int, int], None]", _settle_groups)
"""``(sums, groups)``: puts the float64 of each folded group in the order of its elements (inside kernels only)."""


def _wide_halves(builder: Any, patterns: Any) -> list[Any]:  # noqa: ANN401
    """Return 32 patterns as two vectors of 16 float64, in memory order."""
    split = decode_vectors(builder, patterns)
    return [builder.fpext(lanes_of(builder, *split, lanes), _WIDE) for lanes in (FIRST, SECOND)]


@intrinsic
def _normalise_groups(_context: Any, _x: Any, _mean: Any, _factor: Any, _weights: Any, _biases: Any, _out: Any, _groups: Any):  # noqa: ANN202, ANN401, E501 # fmt: skip
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        x, mean, factor, weights, biases, out, groups = arguments
        mean, factor = (_splat_double(builder, value) for value in (mean, factor))

        def body(index: Any) -> None:  # noqa: ANN401
            patterns = builder.load(pointer(builder, advanced(builder, x, index, 2 * GROUP), SHORTS), align=2)
            halves: list[Any] = []
            for half, values in enumerate(_wide_halves(builder, patterns)):
                scaled = builder.fmul(builder.fsub(values, mean), factor)
                rows = (builder.add(row, ir.Constant(WORD, 8 * HALF * half)) for row in (weights, biases))
                places = (pointer(builder, advanced(builder, row, index, 8 * GROUP), _WIDE) for row in rows)
                weight, bias = (builder.load(place, align=8) for place in places)
                halves.append(builder.fptrunc(builder.fadd(builder.fmul(scaled, weight), bias), FLOATS))
            split = lanes_of(builder, *halves, BELOW), lanes_of(builder, *halves, ABOVE)
            target = pointer(builder, advanced(builder, out, index, 2 * GROUP), SHORTS)
            builder.store(encode_vectors(builder, split), target, align=2)

        repeat(builder, groups, body)
        return ir.Constant(WORD, 0)

    words = types.int64
    return words(words, types.float64, types.float64, words, words, words, words), generate


def _splat_double(builder: Any, value: Any) -> Any:  # noqa: ANN401
    undefined = ir.Constant(_WIDE, ir.Undefined)
    one = builder.insert_element(undefined, value, ir.Constant(INDEX, 0))
    return lanes_of(builder, one, undefined, [0] * HALF)


normalise_groups = cast("Callable[[int, float, float, int, int, int, int], None]", _normalise_groups)
"""``(x, mean, factor, weights, biases, out, groups)``: ``(x - mean) * factor * weight + bias`` (inside kernels only).

In float64, rounded to float32, then to patterns.  ``weights`` and ``biases``: addresses of float64, one per element.
"""
