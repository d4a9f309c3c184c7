"""Loops over DLFloat16 in memory, for use inside kernels: two operands combined, runs folded, rows normalised."""

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

from spyrec.emulator.jit_dl16 import (
    ABOVE,
    BELOW,
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
    decode_vectors,
    encode_vectors,
    lanes_of,
    pointer,
    repeat,
)

Combine = Callable[[Any, Any, Any], Any]
"""Writes one step: ``(builder, left, right)`` to the result's vector."""


def _chosen(relation: str) -> Combine:
    def combine(builder: Any, left: Any, right: Any) -> Any:  # noqa: ANN401
        return builder.select(builder.fcmp_ordered(relation, left, right), left, right)

    return combine


Rows = tuple[int, int, int]
"""Address of the first row, bytes to the next row, bytes from group to group in a row (0: one element, repeated)."""


def _combiner(combine: Combine) -> Callable[[Rows, Rows, Rows, int, int], None]:
    """Return ``(x, y, out, rows, groups)`` for use inside kernels: combines rows of groups."""

    @intrinsic
    def write(_context: Any, _x: Any, _y: Any, _out: Any, _rows: Any, _groups: Any):  # noqa: ANN202, ANN401
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            *operands, rows, groups = arguments
            x, y, out = ([builder.extract_value(operand, field) for field in range(3)] for operand in operands)
            buffers = [cgutils.alloca_once(builder, SHORTS) for _ in range(2)]

            def row(number: Any) -> None:  # noqa: ANN401
                firsts = [_row_start(builder, operand, number, buffer) for operand, buffer in zip((x, y), buffers)]
                target = builder.add(out[0], builder.mul(number, out[1]))

                def group(index: Any) -> None:  # noqa: ANN401
                    places = (
                        builder.add(first, builder.mul(index, operand[2])) for first, operand in zip(firsts, (x, y))
                    )
                    loaded = (builder.load(pointer(builder, place, SHORTS), align=2) for place in places)
                    left, right = (decode_vectors(builder, patterns) for patterns in loaded)
                    result = combine(builder, left[0], right[0]), combine(builder, left[1], right[1])
                    place = pointer(builder, builder.add(target, builder.mul(index, out[2])), SHORTS)
                    builder.store(encode_vectors(builder, result), place, align=2)

                repeat(builder, groups, group)

            repeat(builder, rows, row)
            return ir.Constant(WORD, 0)

        operand = types.UniTuple(types.int64, 3)
        return types.int64(operand, operand, operand, types.int64, types.int64), generate

    return cast("Callable[[Rows, Rows, Rows, int, int], None]", write)


def _row_start(builder: Any, operand: Sequence[Any], number: Any, buffer: Any) -> Any:  # noqa: ANN401
    """Return where a row's groups are loaded from: ``buffer``, filled with its one element, where it has but one."""
    place = builder.add(operand[0], builder.mul(number, operand[1]))
    undefined = ir.Constant(SHORTS, ir.Undefined)
    one = builder.load(pointer(builder, place, ir.IntType(16)), align=2)
    first = builder.insert_element(undefined, one, ir.Constant(INDEX, 0))
    builder.store(lanes_of(builder, first, undefined, [0] * GROUP), buffer)
    is_repeated = builder.icmp_signed("==", operand[2], ir.Constant(WORD, 0))
    return builder.select(is_repeated, builder.ptrtoint(buffer, WORD), place)


add_rows = _combiner(lambda builder, left, right: builder.fadd(left, right))
subtract_rows = _combiner(lambda builder, left, right: builder.fsub(left, right))
multiply_rows = _combiner(lambda builder, left, right: builder.fmul(left, right))
divide_rows = _combiner(lambda builder, left, right: builder.fdiv(left, right))
# A decoded value is never NaN, so that nothing has to win but the larger or smaller one.
maximum_rows = _combiner(_chosen(">"))
minimum_rows = _combiner(_chosen("<"))


def _doubles_of(builder: Any, patterns: Any) -> list[Any]:  # noqa: ANN401
    """Return 32 patterns as two vectors of 16 float64, in memory order."""
    split = decode_vectors(builder, patterns)
    return [builder.fpext(lanes_of(builder, *split, lanes), DOUBLES) for lanes in (FIRST, SECOND)]


def _folder(fold: Combine) -> Callable[[int, int, int], None]:
    """Return ``(source, sums, groups)`` for use inside kernels: folds patterns into as many float64 at ``sums``."""

    @intrinsic
    def write(_context: Any, _source: Any, _sums: Any, _groups: Any):  # noqa: ANN202, ANN401
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            source, sums, groups = arguments

            def body(index: Any) -> None:  # noqa: ANN401
                patterns = builder.load(pointer(builder, advanced(builder, source, index, 2 * GROUP), SHORTS), align=2)
                for half, values in enumerate(_doubles_of(builder, patterns)):
                    place = advanced(builder, sums, index, 8 * GROUP)
                    place = pointer(builder, builder.add(place, ir.Constant(WORD, 8 * HALF * half)), DOUBLES)
                    builder.store(fold(builder, builder.load(place, align=8), values), place, align=8)

            repeat(builder, groups, body)
            return ir.Constant(WORD, 0)

        return types.int64(*[types.int64] * 3), generate

    return cast("Callable[[int, int, int], None]", write)


sum_groups = _folder(lambda builder, sums, values: builder.fadd(sums, values))
square_groups = _folder(lambda builder, sums, values: builder.fadd(sums, builder.fmul(values, values)))
fold_maximum_groups = _folder(lambda builder, sums, values: _chosen(">")(builder, values, sums))
fold_minimum_groups = _folder(lambda builder, sums, values: _chosen("<")(builder, values, sums))


@intrinsic
def _normalise_groups(_context: Any, _x: Any, _mean: Any, _factor: Any, _weights: Any, _biases: Any, _out: Any, _groups: Any):  # noqa: ANN202, ANN401, E501 # fmt: skip
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        x, mean, factor, weights, biases, out, groups = arguments
        mean, factor = (_splat_double(builder, value) for value in (mean, factor))

        def body(index: Any) -> None:  # noqa: ANN401
            patterns = builder.load(pointer(builder, advanced(builder, x, index, 2 * GROUP), SHORTS), align=2)
            halves: list[Any] = []
            for half, values in enumerate(_doubles_of(builder, patterns)):
                scaled = builder.fmul(builder.fsub(values, mean), factor)
                rows = (builder.add(row, ir.Constant(WORD, 8 * HALF * half)) for row in (weights, biases))
                places = (pointer(builder, advanced(builder, row, index, 8 * GROUP), DOUBLES) for row in rows)
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
    undefined = ir.Constant(DOUBLES, ir.Undefined)
    one = builder.insert_element(undefined, value, ir.Constant(INDEX, 0))
    return lanes_of(builder, one, undefined, [0] * HALF)


normalise_groups = cast("Callable[[int, float, float, int, int, int, int], None]", _normalise_groups)
"""``(x, mean, factor, weights, biases, out, groups)``: ``(x - mean) * factor * weight + bias`` (inside kernels only).

In float64, rounded to float32, then to patterns.  ``weights`` and ``biases``: addresses of float64, one per element.
"""
