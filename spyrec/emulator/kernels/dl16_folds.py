"""Runs of DLFloat16 in memory folded, and rows normalised, for use inside kernels."""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from llvmlite import ir

from spyrec.device_ops.expression import Expression
from spyrec.emulator.kernels.dl16 import (
    DOUBLE_ORDER,
    DOUBLES,
    DOUBLES_JOINED,
    GROUP,
    HALF,
    SHORTS,
    WORD,
    advanced,
    decode_doubles,
    encode_vectors,
    in_every_lane,
    lanes_of,
    pointer,
    repeat,
)
from spyrec.emulator.kernels.formulas import computed, formula_of
from spyrec.emulator.kernels.instructions import pointer_at
from spyrec.files.numba_names import cgutils, intrinsic, literal_intrinsic, types
from spyrec.hardware.dlfloat_kernels import decoded

_RUNS_AT_ONCE = 8
"""Runs whose elements are folded before totals go back to memory: as many streams the processor fetches ahead."""

_TOTALS_BYTES = 8 * 64
"""From the totals of one row of lanes to those of the next."""


class _Folder:
    """Writes the loops of one fold: some runs at once, row by row, group by group."""

    def __init__(self, builder: Any, formulas: Sequence[Expression], arguments: Sequence[Any]) -> None:  # noqa: ANN401
        self.builder, self.formulas = builder, formulas
        self.source, self.places, self.rows, self.sums, self.kind_bytes = arguments[:5]
        self.offsets, self.runs, self.groups = arguments[5:]
        self.totals = [[cgutils.alloca_once(builder, DOUBLES) for _ in range(4)] for _ in formulas]

    def write(self) -> None:
        builder, most = self.builder, ir.Constant(WORD, _RUNS_AT_ONCE)
        past = builder.add(self.runs, ir.Constant(WORD, _RUNS_AT_ONCE - 1))
        repeat(builder, builder.sdiv(past, most), self._some_runs)

    def _some_runs(self, number: Any) -> None:  # noqa: ANN401
        builder, most = self.builder, ir.Constant(WORD, _RUNS_AT_ONCE)
        first = builder.mul(number, most)
        left = builder.sub(self.runs, first)
        count = builder.select(builder.icmp_signed("<", left, most), left, most)
        offsets = advanced(builder, self.offsets, first, 8)
        repeat(builder, self.rows, lambda row: self._row(row, offsets, count))

    def _row(self, row: Any, offsets: Any, count: Any) -> None:  # noqa: ANN401
        builder = self.builder
        source = builder.add(self.source, builder.load(pointer_at(builder, self.places, row, WORD), align=8))
        sums = advanced(builder, self.sums, row, _TOTALS_BYTES)

        def group(index: Any) -> None:  # noqa: ANN401
            place = advanced(builder, source, index, 2 * GROUP)
            self._group(place, advanced(builder, sums, index, 8 * GROUP), (offsets, count))

        repeat(builder, self.groups, group)

    def _group(self, source: Any, sums: Any, runs: tuple[Any, Any]) -> None:  # noqa: ANN401
        builder, (offsets, count) = self.builder, runs
        kinds = (builder.add(sums, builder.mul(self.kind_bytes, ir.Constant(WORD, k))) for k in range(len(self.totals)))
        in_memory = [_double_places(builder, kind) for kind in kinds]

        def fold(index: Any) -> None:  # noqa: ANN401
            place = builder.add(source, builder.load(pointer_at(builder, offsets, index, WORD), align=8))
            values = decode_doubles(builder, builder.load(pointer(builder, place, SHORTS), align=2))
            for formula, totals in zip(self.formulas, self.totals):
                for total, value in zip(totals, values):
                    builder.store(computed(builder, formula, [builder.load(total), value]), total)

        for totals, places in zip(self.totals, in_memory):
            for total, place in zip(totals, places):
                builder.store(builder.load(place, align=8), total)
        repeat(builder, count, fold)
        for totals, places in zip(self.totals, in_memory):
            for total, place in zip(totals, places):
                builder.store(builder.load(total), place, align=8)


@literal_intrinsic
def _fold_groups(_context: Any, formulas: Any, _at: Any, _places: Any, _rows: Any, _sums: Any, _step: Any, _offsets: Any, _runs: Any, _groups: Any):  # noqa: ANN202, ANN401, E501 # fmt: skip
    found = [formula_of(text) for text in formulas.literal_value.split("; ")]

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        _Folder(builder, found, arguments[1:]).write()
        return ir.Constant(WORD, 0)

    return types.int64(formulas, *[types.int64] * 8), generate


fold_groups = cast("Callable[[str, int, int, int, int, int, int, int, int], None]", _fold_groups)
"""``(formulas, source, places, rows, sums, kind_bytes, offsets, runs, groups)``: folds runs of patterns into float64.

Inside kernels only.  ``formulas``: of the total and the next element, as a constant, parted by ``"; "``: one for each
kind of totals, which stand ``kind_bytes`` apart, those of a row 64 behind those of the row before.  A run of a row
begins at ``source``, a byte offset of ``places`` and one of ``offsets`` on, and has so many groups.  Totals of a group
are in the order of decoding: :data:`settle_groups` restores that of its elements, after the last fold.
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


def _repeated(builder: Any, address: Any) -> Any:  # noqa: ANN401
    """Return the value of the pattern at an address, in all lanes of a vector of float64."""
    value = decoded(builder, builder.load(pointer(builder, address, SHORTS.element), align=2))
    return in_every_lane(builder, builder.fpext(value, ir.DoubleType()), DOUBLES.count)


@intrinsic
def _widen_groups(_context: Any, _source: Any, _step: Any, _target: Any, _groups: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        source, step, target, groups = arguments

        def store(index: Any, values: Sequence[Any]) -> None:  # noqa: ANN401
            places = _double_places(builder, advanced(builder, target, index, 8 * GROUP))
            for place, value in zip(places, values):
                builder.store(value, place, align=8)

        def group(index: Any) -> None:  # noqa: ANN401
            place = pointer(builder, advanced(builder, source, index, 2 * GROUP), SHORTS)
            store(index, decode_doubles(builder, builder.load(place, align=2)))

        with builder.if_else(builder.icmp_signed("==", step, ir.Constant(WORD, 0))) as (one, row):
            with one:
                repeat(builder, groups, lambda index: store(index, [_repeated(builder, source)] * 4))
            with row:
                repeat(builder, groups, group)
        return ir.Constant(WORD, 0)

    words = types.int64
    return words(words, words, words, words), generate


widen_groups = cast("Callable[[int, int, int, int], None]", _widen_groups)
"""``(source, step, target, groups)``: decodes groups into float64 in the order of decoding, as
:data:`normalise_rows` takes them; of step 0: one element for all (inside kernels only).
"""


class _Normaliser:
    """Writes the loops over rows and their groups."""

    def __init__(self, builder: Any, arguments: Sequence[Any], *, is_scaled: bool) -> None:  # noqa: ANN401
        self.builder = builder
        places, self.nest, self.operands = arguments[:3]
        self.vectors = arguments[3:] if is_scaled else []
        numbers = [*(ir.Constant(WORD, t) for t in range(3)), builder.sub(self.operands, ir.Constant(WORD, 1))]
        self.starts = [builder.load(pointer_at(builder, places, number, WORD), align=8) for number in numbers]
        outer = builder.add(self.operands, ir.Constant(WORD, 2))  # the word of the first operand's step between rows
        self.steps = [self._word(builder.add(outer, number)) for number in numbers]

    def write(self) -> None:
        builder = self.builder
        groups = builder.sdiv(self._word(ir.Constant(WORD, 0)), ir.Constant(WORD, GROUP))
        rows = self._word(builder.add(self.operands, ir.Constant(WORD, 1)))
        repeat(builder, rows, lambda number: self._row(number, groups))

    def _word(self, index: Any) -> Any:  # noqa: ANN401
        return self.builder.load(pointer_at(self.builder, self.nest, index, WORD), align=8)

    def _row(self, number: Any, groups: Any) -> None:  # noqa: ANN401
        builder = self.builder
        x, mean, factor, out = (
            builder.add(start, builder.mul(number, step)) for start, step in zip(self.starts, self.steps)
        )
        scalars = _repeated(builder, mean), _repeated(builder, factor)

        def group(index: Any) -> None:  # noqa: ANN401
            patterns = builder.load(pointer(builder, advanced(builder, x, index, 2 * GROUP), SHORTS), align=2)
            values = [builder.fptrunc(value, _SINGLES) for value in self._values(patterns, index, scalars)]
            split = [lanes_of(builder, *pair, DOUBLES_JOINED) for pair in (values[:2], values[2:])]
            target = pointer(builder, advanced(builder, out, index, 2 * GROUP), SHORTS)
            builder.store(encode_vectors(builder, (split[0], split[1])), target, align=2)

        repeat(builder, groups, group)

    def _values(self, patterns: Any, index: Any, scalars: tuple[Any, Any]) -> list[Any]:  # noqa: ANN401
        """Return the results of a group as four vectors of float64."""
        builder, (mean, factor) = self.builder, scalars
        values = [builder.fmul(builder.fsub(value, mean), factor) for value in decode_doubles(builder, patterns)]
        for vector, operation in zip(self.vectors, (builder.fmul, builder.fadd)):
            places = _double_places(builder, advanced(builder, vector, index, 8 * GROUP))
            values = [operation(value, builder.load(place, align=8)) for value, place in zip(values, places)]
        return values


_SINGLES = ir.VectorType(ir.FloatType(), DOUBLES.count)


@intrinsic
def _normalise_rows(_context: Any, _places: Any, _nest: Any, _operands: Any, _weights: Any, _biases: Any):  # noqa: ANN202, ANN401 # fmt: skip
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        is_scaled = builder.icmp_signed("!=", arguments[3], ir.Constant(WORD, 0))
        with builder.if_else(is_scaled) as (scaled, plain):
            with scaled:
                _Normaliser(builder, arguments, is_scaled=True).write()
            with plain:
                _Normaliser(builder, arguments, is_scaled=False).write()
        return ir.Constant(WORD, 0)

    words = types.int64
    return words(words, words, words, words, words), generate


normalise_rows = cast("Callable[[int, int, int, int, int], None]", _normalise_rows)
"""``(places, nest, operands, weights, biases)``: rows of ``(x - mean) * factor * weight + bias`` (inside kernels only).

In float64, rounded to float32, then to patterns.  ``places``: addresses of x, mean and factor, which are one element a
row, and last of the result.  ``nest``: of the operands, loop 0 a row of groups, loop 1 the rows.  ``weights``,
``biases``: float64 of a row, of :data:`widen_groups`; ``weights`` 0: all weights are 1 and all biases 0.
"""
