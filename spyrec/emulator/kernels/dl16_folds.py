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
    DOUBLE_ORDER,
    DOUBLES,
    FLOATS,
    GROUP,
    HALF,
    INDEX,
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
from spyrec.emulator.kernels.instructions import pointer_at
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


def _wide_vectors(builder: Any, patterns: Any) -> list[Any]:  # noqa: ANN401
    """Return 32 patterns as two vectors of 16 float64, split as :func:`decode_vectors` splits."""
    return [builder.fpext(values, _WIDE) for values in decode_vectors(builder, patterns)]


def _wide_places(builder: Any, address: Any, index: Any) -> list[Any]:  # noqa: ANN401
    """Return pointers to the two vectors of 16 float64 of a group."""
    start = advanced(builder, address, index, 8 * GROUP)
    return [pointer(builder, builder.add(start, ir.Constant(WORD, 8 * HALF * half)), _WIDE) for half in range(2)]


def _repeated(builder: Any, address: Any) -> Any:  # noqa: ANN401
    """Return 32 times the pattern at an address."""
    undefined = ir.Constant(SHORTS, ir.Undefined)
    one = builder.load(pointer(builder, address, SHORTS.element), align=2)
    return lanes_of(builder, builder.insert_element(undefined, one, ir.Constant(INDEX, 0)), undefined, [0] * GROUP)


@intrinsic
def _widen_groups(_context: Any, _source: Any, _step: Any, _target: Any, _groups: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        source, step, target, groups = arguments
        is_one = builder.icmp_signed("==", step, ir.Constant(WORD, 0))

        def store(index: Any, patterns: Any) -> None:  # noqa: ANN401
            for place, values in zip(_wide_places(builder, target, index), _wide_vectors(builder, patterns)):
                builder.store(values, place, align=8)

        def group(index: Any) -> None:  # noqa: ANN401
            place = pointer(builder, advanced(builder, source, index, 2 * GROUP), SHORTS)
            store(index, builder.load(place, align=2))

        with builder.if_else(is_one) as (one, row):
            with one:
                repeat(builder, groups, lambda index: store(index, _repeated(builder, source)))
            with row:
                repeat(builder, groups, group)
        return ir.Constant(WORD, 0)

    words = types.int64
    return words(words, words, words, words), generate


widen_groups = cast("Callable[[int, int, int, int], None]", _widen_groups)
"""``(source, step, target, groups)``: decodes groups into float64 in the order of decoding, as
:data:`normalise_rows` takes them; of step 0: one element for all (inside kernels only).
"""


@intrinsic
def _normalise_rows(_context: Any, _places: Any, _nest: Any, _operands: Any, _weights: Any, _biases: Any):  # noqa: ANN202, ANN401 # fmt: skip
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        places, nest, operands, weights, biases = arguments

        def word(address: Any, index: Any) -> Any:  # noqa: ANN401
            return builder.load(pointer_at(builder, address, index, WORD), align=8)

        def row(number: Any) -> None:  # noqa: ANN401
            x, mean, factor, out = (builder.add(start, builder.mul(number, step)) for start, step in zip(starts, steps))
            shift, scale = (_wide_vectors(builder, _repeated(builder, place))[0] for place in (mean, factor))

            def group(index: Any) -> None:  # noqa: ANN401
                patterns = builder.load(pointer(builder, advanced(builder, x, index, 2 * GROUP), SHORTS), align=2)
                rows = [_wide_places(builder, address, index) for address in (weights, biases)]
                halves: list[Any] = []
                for values, *own in zip(_wide_vectors(builder, patterns), *rows):
                    weight, bias = (builder.load(place, align=8) for place in own)
                    scaled = builder.fmul(builder.fsub(values, shift), scale)
                    halves.append(builder.fptrunc(builder.fadd(builder.fmul(scaled, weight), bias), FLOATS))
                target = pointer(builder, advanced(builder, out, index, 2 * GROUP), SHORTS)
                builder.store(encode_vectors(builder, (halves[0], halves[1])), target, align=2)

            repeat(builder, groups, group)

        numbers = [*(ir.Constant(WORD, t) for t in range(3)), builder.sub(operands, ir.Constant(WORD, 1))]
        starts = [word(places, number) for number in numbers]
        outer = builder.add(operands, ir.Constant(WORD, 2))  # the word of the first operand's step from row to row
        steps = [word(nest, builder.add(outer, number)) for number in numbers]
        groups = builder.sdiv(word(nest, ir.Constant(WORD, 0)), ir.Constant(WORD, GROUP))
        repeat(builder, word(nest, builder.add(operands, ir.Constant(WORD, 1))), row)
        return ir.Constant(WORD, 0)

    words = types.int64
    return words(words, words, words, words, words), generate


normalise_rows = cast("Callable[[int, int, int, int, int], None]", _normalise_rows)
"""``(places, nest, operands, weights, biases)``: rows of ``(x - mean) * factor * weight + bias`` (inside kernels only).

In float64, rounded to float32, then to patterns.  ``places``: addresses of x, mean and factor, which are one element a
row, and last of the result.  ``nest``: of the operands, loop 0 a row of groups, loop 1 the rows.  ``weights``,
``biases``: float64 of a row, of :data:`widen_groups`.
"""
