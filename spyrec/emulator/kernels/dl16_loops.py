"""Two operands of DLFloat16, or of float32, in memory combined into one, for use inside kernels."""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from llvmlite import ir

from spyrec.dataclass import dataclass
from spyrec.device_ops.expression import Expression
from spyrec.emulator.kernels.dl16 import (
    GROUP,
    HALF,
    INDEX,
    SHORTS,
    WORD,
    Floats,
    advanced,
    decode_vectors,
    encode_vectors,
    in_every_lane,
    lanes_of,
    pointer,
    repeat,
)
from spyrec.emulator.kernels.formulas import computed, formula_of
from spyrec.emulator.kernels.instructions import LINE_BYTES, fetch, pointer_at
from spyrec.files.numba_names import cgutils, literal_intrinsic, types
from spyrec.hardware.dlfloat_kernels import decoded


@dataclass(frozen=True, slots=True)
class _Combination:
    """How two operands are combined.

    ``prepare``, ``by_prepared``: where the right one is one element, what is made of it once a row, and how that is
    combined; ``None`` where that is nothing of its own.
    """

    combine: Expression
    prepare: Expression | None
    by_prepared: Expression | None


@dataclass(frozen=True, slots=True)
class _Form:
    """How elements lie in memory: ``lanes`` are a group's as they are loaded, ``decode`` makes two vectors of them.

    ``decode_one``: makes a float32 of one element.
    """

    lanes: ir.VectorType
    element_bytes: int
    decode: Callable[[Any, Any], Floats]
    decode_one: Callable[[Any, Any], Any]
    encode: Callable[[Any, Floats], Any]

    @property
    def group_bytes(self) -> int:
        """Bytes of a group."""
        return GROUP * self.element_bytes


def _halves(builder: Any, lanes: Any) -> Floats:  # noqa: ANN401
    undefined = ir.Constant(_SINGLES, ir.Undefined)
    return lanes_of(builder, lanes, undefined, range(HALF)), lanes_of(builder, lanes, undefined, range(HALF, GROUP))


def _joined(builder: Any, values: Floats) -> Any:  # noqa: ANN401
    return lanes_of(builder, *values, range(GROUP))


_SINGLES = ir.VectorType(ir.FloatType(), GROUP)
_DL16 = _Form(SHORTS, 2, decode_vectors, decoded, encode_vectors)
_SINGLE = _Form(_SINGLES, 4, _halves, lambda _, value: value, _joined)

_AHEAD = 64
"""Groups between what is combined and what is fetched ahead of it, 4 KiB: with a fourth of that, adding 4096x4096
took 3 % longer, without fetching ahead 40 % (and the processor's own look-ahead ends at a page)."""


class _Combiner:
    """Writes the loops of one combination: over rows, and in a row over groups."""

    def __init__(self, builder: Any, kind: tuple[_Combination, _Form], arguments: Sequence[Any]) -> None:  # noqa: ANN401
        self.builder = builder
        self.combination, self.form = kind
        *starts, nest, self.streams = arguments
        words = [builder.load(pointer_at(builder, nest, ir.Constant(WORD, place), WORD), align=8) for place in range(8)]
        self.rows = words[4]
        self.groups = builder.sdiv(words[0], ir.Constant(WORD, GROUP))
        self.operands = [
            [start, words[5 + number], self._group_step(words[1 + number])] for number, start in enumerate(starts)
        ]
        self.buffers = [cgutils.alloca_once(builder, self.form.lanes) for _ in range(2)]

    def _group_step(self, step: Any) -> Any:  # noqa: ANN401
        """Return the bytes from group to group of a row whose elements are ``step`` apart."""
        builder, zero = self.builder, ir.Constant(WORD, 0)
        return builder.select(builder.icmp_signed("!=", step, zero), ir.Constant(WORD, self.form.group_bytes), zero)

    def write(self) -> None:
        with self.builder.if_else(self._is_streamed()) as (streamed, plain):
            with streamed:
                self._rows(streams=True)
                # Stores past the cache are not ordered by what hands the result on.
                self.builder.fence("seq_cst")
            with plain:
                self._rows(streams=False)

    def _rows(self, *, streams: bool) -> None:
        builder = self.builder
        is_repeated = builder.icmp_signed("==", self.operands[1][2], ir.Constant(WORD, 0))
        with builder.if_else(is_repeated) as (repeated, adjacent):
            with repeated:
                repeat(builder, self.rows, lambda number: self._row(number, streams=streams, is_repeated=True))
            with adjacent:
                repeat(builder, self.rows, lambda number: self._row(number, streams=streams, is_repeated=False))

    def _is_streamed(self) -> Any:  # noqa: ANN401
        """Return whether to store past the cache, which takes whole lines."""
        builder = self.builder
        start, step, _ = self.operands[2]
        within = builder.and_(builder.or_(start, step), ir.Constant(WORD, LINE_BYTES - 1))
        is_whole = builder.icmp_signed("==", within, ir.Constant(WORD, 0))
        return builder.and_(is_whole, builder.icmp_signed("!=", self.streams, ir.Constant(WORD, 0)))

    def _row(self, number: Any, *, streams: bool, is_repeated: bool) -> None:  # noqa: ANN401
        builder = self.builder
        x, y, out = self.operands
        left = self._row_start(x, number, self.buffers[0])
        right = self._place(y, number) if is_repeated else self._row_start(y, number, self.buffers[1])
        target = self._place(out, number)
        prepared = self._prepared(right) if is_repeated else None
        formula = (self.combination.by_prepared if is_repeated else None) or self.combination.combine

        def group(index: Any) -> None:  # noqa: ANN401
            if streams:
                self._fetch_ahead(number, index)
            values = self._decoded(left, x, index)
            others = prepared or self._decoded(right, y, index)
            result = tuple(computed(builder, formula, pair) for pair in zip(values, others))
            place = pointer(builder, advanced(builder, target, index, self.form.group_bytes), self.form.lanes)
            lanes = self.form.encode(builder, result)
            stored = builder.store(lanes, place, align=LINE_BYTES if streams else self.form.element_bytes)
            if streams:
                stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(INDEX, 1)]))

        repeat(builder, self.groups, group)

    def _place(self, operand: Sequence[Any], number: Any) -> Any:  # noqa: ANN401
        return self.builder.add(operand[0], self.builder.mul(number, operand[1]))

    def _one(self, address: Any) -> Any:  # noqa: ANN401
        """Return the element at an address, as it is loaded."""
        place = pointer(self.builder, address, self.form.lanes.element)
        return self.builder.load(place, align=self.form.element_bytes)

    def _prepared(self, address: Any) -> Floats:  # noqa: ANN401
        builder, prepare = self.builder, self.combination.prepare
        value = self.form.decode_one(builder, self._one(address))
        lanes = in_every_lane(builder, value if prepare is None else computed(builder, prepare, [value]), HALF)
        return lanes, lanes

    def _decoded(self, row: Any, operand: Sequence[Any], index: Any) -> Floats:  # noqa: ANN401
        builder = self.builder
        place = builder.add(row, builder.mul(index, operand[2]))
        return self._loaded(place)

    def _loaded(self, address: Any) -> Floats:  # noqa: ANN401
        place = pointer(self.builder, address, self.form.lanes)
        return self.form.decode(self.builder, self.builder.load(place, align=self.form.element_bytes))

    def _row_start(self, operand: Sequence[Any], number: Any, buffer: Any) -> Any:  # noqa: ANN401
        """Return where a row's groups are loaded from: ``buffer``, filled with its one element, if it has but one."""
        builder, place = self.builder, self._place(operand, number)
        is_repeated = builder.icmp_signed("==", operand[2], ir.Constant(WORD, 0))
        with builder.if_then(is_repeated, likely=False):
            builder.store(in_every_lane(builder, self._one(place), GROUP), buffer)
        return builder.select(is_repeated, builder.ptrtoint(buffer, WORD), place)

    def _fetch_ahead(self, number: Any, index: Any) -> None:  # noqa: ANN401
        """Fetch what the operands hold some groups on, in this row or the next one."""
        builder = self.builder
        later = builder.add(index, ir.Constant(WORD, _AHEAD))
        beyond = builder.sub(later, self.groups)
        is_here = builder.icmp_signed("<", beyond, ir.Constant(WORD, 0))
        group = builder.select(is_here, later, beyond)
        row = builder.select(is_here, number, builder.add(number, ir.Constant(WORD, 1)))
        for start, step, group_step in self.operands[:2]:
            place = builder.add(start, builder.add(builder.mul(row, step), builder.mul(group, group_step)))
            fetch(builder, place)


_FORMS = {"dl16": _DL16, "single": _SINGLE}


@literal_intrinsic
def _combine_rows(_context: Any, form: Any, formulas: Any, _x: Any, _y: Any, _out: Any, _nest: Any, _streams: Any):  # noqa: ANN202, ANN401 # fmt: skip
    combine, *by_row = map(formula_of, formulas.literal_value.split("; "))
    prepare, by_prepared = by_row or (None, None)
    kind = _Combination(combine, prepare, by_prepared), _FORMS[form.literal_value]

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        _Combiner(builder, kind, arguments[2:]).write()
        return ir.Constant(WORD, 0)

    return types.int64(form, formulas, *[types.int64] * 5), generate


combine_rows = cast("Callable[[str, str, int, int, int, int, int], None]", _combine_rows)
"""``(form, formulas, x, y, out, nest, streams)``: combines rows of groups (inside kernels only).

``form``: ``dl16`` or ``single``.  ``formulas``, as ``formulas.text_of`` writes them: that of the
two operands; after it, parted by ``"; "``, what replaces a right operand that is one element, and the formula for that.
Addresses of the operands and of a nest of three, whose loop 0 is a row and whose loop 1 are the rows.
``streams``: 1 where the result is larger than caches: it is stored past them, and operands are fetched ahead.
"""
