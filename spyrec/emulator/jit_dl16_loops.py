"""Two operands of DLFloat16, or of float32, in memory combined into one, for use inside kernels."""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from spyrec.emulator.jit_dl16 import (
    FLOATS,
    GROUP,
    HALF,
    INDEX,
    SHORTS,
    WORD,
    Floats,
    advanced,
    decode_vectors,
    encode_vectors,
    lanes_of,
    pointer,
    repeat,
)
from spyrec.emulator.jit_fetch import LINE_BYTES, fetch

Combine = Callable[[Any, Any, Any], Any]
"""Writes one step: ``(builder, left, right)`` to the result's vector."""


@dataclass(frozen=True, slots=True)
class _Combination:
    """How two operands are combined.

    ``prepare``, ``by_prepared``: where the right one is one element, what is made of it once a row, and how that is
    combined.
    """

    combine: Combine
    prepare: Callable[[Any, Any], Any] = lambda _builder, right: right
    by_prepared: Combine | None = None


def chosen(relation: str) -> Combine:
    """Return what takes the left operand where it stands in this relation to the right one, and else that."""

    def combine(builder: Any, left: Any, right: Any) -> Any:  # noqa: ANN401
        return builder.select(builder.fcmp_ordered(relation, left, right), left, right)

    return combine


@dataclass(frozen=True, slots=True)
class _Form:
    """How elements lie in memory: ``lanes`` are a group's as they are loaded, ``decode`` makes two vectors of them."""

    lanes: ir.VectorType
    element_bytes: int
    decode: Callable[[Any, Any], Floats]
    encode: Callable[[Any, Any, Floats], Any]

    @property
    def group_bytes(self) -> int:
        """Bytes of a group."""
        return GROUP * self.element_bytes


def _halves(builder: Any, lanes: Any) -> Floats:  # noqa: ANN401
    undefined = ir.Constant(_SINGLES, ir.Undefined)
    return lanes_of(builder, lanes, undefined, range(HALF)), lanes_of(builder, lanes, undefined, range(HALF, GROUP))


def _joined(_context: Any, builder: Any, values: Floats) -> Any:  # noqa: ANN401
    return lanes_of(builder, *values, range(GROUP))


_SINGLES = ir.VectorType(ir.FloatType(), GROUP)
_DL16 = _Form(SHORTS, 2, decode_vectors, encode_vectors)
_SINGLE = _Form(_SINGLES, 4, _halves, _joined)

Rows = tuple[int, int, int]
"""Address of the first row, bytes to the next row, bytes from group to group in a row (0: one element, repeated)."""

_AHEAD = 64
"""Groups between what is combined and what is fetched ahead of it, 4 KiB: with a fourth of that, adding 4096x4096
took 3 % longer, without fetching ahead 40 % (and the processor's own look-ahead ends at a page)."""


class _Combiner:
    """Writes the loops of one combination: over rows, and in a row over groups."""

    def __init__(self, context: Any, builder: Any, kind: tuple[_Combination, _Form], arguments: Sequence[Any]) -> None:  # noqa: ANN401
        self.context = context
        self.builder = builder
        self.combination, self.form = kind
        *operands, self.rows, self.groups, self.streams = arguments
        self.operands = [[builder.extract_value(operand, field) for field in range(3)] for operand in operands]
        self.buffers = [cgutils.alloca_once(builder, self.form.lanes) for _ in range(2)]

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
        right = self._row_start(y, number, self.buffers[1])
        target = builder.add(out[0], builder.mul(number, out[1]))
        prepared = self._prepared(right) if is_repeated else None
        combine = (self.combination.by_prepared if is_repeated else None) or self.combination.combine

        def group(index: Any) -> None:  # noqa: ANN401
            if streams:
                self._fetch_ahead(number, index)
            values = self._decoded(left, x, index)
            others = prepared or self._decoded(right, y, index)
            result = combine(builder, values[0], others[0]), combine(builder, values[1], others[1])
            place = pointer(builder, advanced(builder, target, index, self.form.group_bytes), self.form.lanes)
            lanes = self.form.encode(self.context, builder, result)
            stored = builder.store(lanes, place, align=LINE_BYTES if streams else self.form.element_bytes)
            if streams:
                stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(INDEX, 1)]))

        repeat(builder, self.groups, group)

    def _prepared(self, row: Any) -> Floats:  # noqa: ANN401
        first, second = self._loaded(row)
        prepare = self.combination.prepare
        return prepare(self.builder, first), prepare(self.builder, second)

    def _decoded(self, row: Any, operand: Sequence[Any], index: Any) -> Floats:  # noqa: ANN401
        builder = self.builder
        place = builder.add(row, builder.mul(index, operand[2]))
        return self._loaded(place)

    def _loaded(self, address: Any) -> Floats:  # noqa: ANN401
        place = pointer(self.builder, address, self.form.lanes)
        return self.form.decode(self.builder, self.builder.load(place, align=self.form.element_bytes))

    def _row_start(self, operand: Sequence[Any], number: Any, buffer: Any) -> Any:  # noqa: ANN401
        """Return where a row's groups are loaded from: ``buffer``, filled with its one element, if it has but one."""
        builder, form = self.builder, self.form
        place = builder.add(operand[0], builder.mul(number, operand[1]))
        is_repeated = builder.icmp_signed("==", operand[2], ir.Constant(WORD, 0))
        with builder.if_then(is_repeated, likely=False):
            undefined = ir.Constant(form.lanes, ir.Undefined)
            one = builder.load(pointer(builder, place, form.lanes.element), align=form.element_bytes)
            first = builder.insert_element(undefined, one, ir.Constant(INDEX, 0))
            builder.store(lanes_of(builder, first, undefined, [0] * GROUP), buffer)
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


def _combiner(combination: _Combination, form: _Form = _DL16) -> Callable[[Rows, Rows, Rows, int, int, int], None]:
    """Return ``(x, y, out, rows, groups, streams)`` for use inside kernels: combines rows of groups.

    ``streams``: 1 where the result is larger than caches: it is stored past them, and operands are fetched ahead.
    """

    @intrinsic
    def write(_context: Any, _x: Any, _y: Any, _out: Any, _rows: Any, _groups: Any, _streams: Any):  # noqa: ANN202, ANN401
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
            _Combiner(context, builder, (combination, form), arguments).write()
            return ir.Constant(WORD, 0)

        operand = types.UniTuple(types.int64, 3)
        return types.int64(operand, operand, operand, *[types.int64] * 3), generate

    return cast("Callable[[Rows, Rows, Rows, int, int, int], None]", write)


def _reciprocal(builder: Any, divisor: Any) -> Any:  # noqa: ANN401
    return builder.fdiv(ir.Constant(FLOATS, [1.0] * HALF), divisor)


def _add(builder: Any, left: Any, right: Any) -> Any:  # noqa: ANN401
    return builder.fadd(left, right)


def _multiply(builder: Any, left: Any, right: Any) -> Any:  # noqa: ANN401
    return builder.fmul(left, right)


def _subtract(builder: Any, left: Any, right: Any) -> Any:  # noqa: ANN401
    return builder.fsub(left, right)


def _divide(builder: Any, left: Any, right: Any) -> Any:  # noqa: ANN401
    return builder.fdiv(left, right)


def _or_nan(relation: str) -> Combine:
    """Return what takes the left operand where it stands in this relation to the right one or is NaN, else that."""

    def combine(builder: Any, left: Any, right: Any) -> Any:  # noqa: ANN401
        is_left = builder.fcmp_ordered(relation, left, right)
        return builder.select(builder.or_(is_left, builder.fcmp_unordered("uno", left, left)), left, right)

    return combine


add_rows = _combiner(_Combination(_add))
subtract_rows = _combiner(_Combination(_subtract))
multiply_rows = _combiner(_Combination(_multiply))
# A quotient of two 10-bit significands that is no tie lies 2**-21 of itself away from the next one (y and a tie M/2**k
# of 11 bits differ from x by at least 1/(y * 2**k)), and none is a tie.  Multiplying by the rounded reciprocal errs by
# 2**-23: it gives the same patterns.  Where the quotient is the least that is kept, the divisor is a power of two.
divide_rows = _combiner(_Combination(_divide, _reciprocal, _multiply))
# A decoded value is never NaN, so that nothing has to win but the larger or smaller one.
maximum_rows = _combiner(_Combination(chosen(">")))
minimum_rows = _combiner(_Combination(chosen("<")))

add_single_rows = _combiner(_Combination(_add), _SINGLE)
subtract_single_rows = _combiner(_Combination(_subtract), _SINGLE)
multiply_single_rows = _combiner(_Combination(_multiply), _SINGLE)
divide_single_rows = _combiner(_Combination(_divide), _SINGLE)
maximum_single_rows = _combiner(_Combination(_or_nan(">")), _SINGLE)
minimum_single_rows = _combiner(_Combination(_or_nan("<")), _SINGLE)
