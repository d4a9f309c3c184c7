"""``pad``: elements added around a tensor, or cut off it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import ANY_FORMAT
from spyrec.ir.attributes import Number, Sizes
from spyrec.ir.opdef import Array, AxisSources, OpDef, OperandSpec, OperandTypes, OpError, OpKind, register, rule
from spyrec.ir.operands import array, require_held, tensor
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import show
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class PadAttributes:
    """``pad``: elements before and after, of the last dim first; negative ones are cut off.

    ``value``: what a constant margin is made of, 0 unless given.
    """

    pad: Sizes
    mode: Literal["constant", "reflect", "replicate", "circular"] = "constant"
    value: Number | None = None

    def by_dim(self, rank: int) -> tuple[tuple[int, int], ...]:
        """Return (before, after) of each dim, outermost first.  Errors: SPY0209 not two for each of the last dims."""
        count = len(self.pad) // 2
        if len(self.pad) % 2 or count > rank:
            message = f"pad {show(self.pad)} does not hold two entries for each of the last dims of {rank}"
            raise OpError("SPY0209", message, attribute="pad")
        pairs = [(int(self.pad[2 * index]), int(self.pad[2 * index + 1])) for index in range(count)]
        return (*((0, 0),) * (rank - count), *reversed(pairs))


def _refuse_far(extent: int, dim: int, pair: tuple[int, int], mode: str) -> None:
    """Refuse to take more from a dim than it has.  Errors: SPY0209."""
    most = {"reflect": extent - 1, "circular": extent + min(*pair, 0), "replicate": max(pair) if extent else 0}[mode]
    if max(pair) > max(most, 0):
        fact = f"dim {dim} of extent {extent} has no {max(pair)} elements for {mode}"
        raise OpError("SPY0209", fact, hint=f"pad by {max(most, 0)} at most", attribute="pad")


def _infer(operands: OperandTypes, attributes: PadAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    value = 0 if attributes.value is None else attributes.value
    if attributes.mode == "constant":
        require_held("value", value, operand.dtype)
    if attributes.mode != "constant" and attributes.value not in (None, 0):
        message = f"value {attributes.value} has no place in mode {attributes.mode}"
        raise OpError("SPY0209", message, attribute="value")
    extents: list[int] = []
    for dim, (extent, pair) in enumerate(zip(operand.shape, attributes.by_dim(operand.rank), strict=True)):
        if attributes.mode != "constant":
            _refuse_far(extent, dim, pair, attributes.mode)
        if extent + sum(pair) < 0:
            fact = f"pad {list(pair)} cuts off more than the extent {extent} of dim {dim}"
            raise OpError("SPY0209", fact, attribute="pad")
        extents.append(extent + sum(pair))
    return (TensorType(tuple(extents), operand.dtype),)


def _axes(operands: OperandTypes, attributes: PadAttributes) -> AxisSources:
    pairs = attributes.by_dim(tensor(operands).rank)
    return tuple(((0, axis),) if pair == (0, 0) else () for axis, pair in enumerate(pairs))


def _source_indices(extent: int, pair: tuple[int, int], mode: str) -> list[int]:
    """Return which index of a dim each index of the result takes its elements from."""
    places = range(-pair[0], extent + pair[1])
    match mode:
        case "reflect":
            return [extent - 1 - abs(extent - 1 - abs(place)) for place in places]
        case "circular":  # what is cut off comes first: the rest goes round
            first, last = max(-pair[0], 0), extent - max(-pair[1], 0)
            around = range(-max(pair[0], 0), last - first + max(pair[1], 0))
            return [first + place % (last - first) for place in around]
        case _:
            return [min(max(place, 0), extent - 1) for place in places]


def _pad(operands: Sequence[Array | None], attributes: PadAttributes) -> tuple[Array, ...]:
    x = array(operands)
    pairs = attributes.by_dim(x.ndim)
    if attributes.mode != "constant":
        for dim, pair in enumerate(pairs):
            x = np.take(x, np.asarray(_source_indices(x.shape[dim], pair, attributes.mode), np.int64), axis=dim)
        return (x,)
    kept = tuple(slice(max(-before, 0), extent - max(-after, 0)) for extent, (before, after) in zip(x.shape, pairs))
    value = 0 if attributes.value is None else attributes.value
    widths = [(max(before, 0), max(after, 0)) for before, after in pairs]
    return (np.pad(x[kept], widths, constant_values=value) if x.ndim else x,)


register(
    OpDef(
        name="pad",
        summary="elements added around the last dims, or cut off",
        kind=OpKind.MOVEMENT,
        operands=(OperandSpec("input"),),
        attributes=PadAttributes,
        infer=rule(PadAttributes, _infer),
        reference=rule(PadAttributes, _pad),
        axes=rule(PadAttributes, _axes),
        formats=ANY_FORMAT,
        samples=(
            ((f16(3, 70),), PadAttributes((1, 2), value=0.5)),
            ((i64(3, 4),), PadAttributes((-1, 2, 1, 0), value=7)),
            ((boolean(3),), PadAttributes((0, 2), value=True)),
            ((f16(2, 3, 5),), PadAttributes((2, 1), "reflect")),
            ((f32(2, 3, 5),), PadAttributes((2, 1, 1, 0), "replicate")),
            ((f16(2, 5),), PadAttributes((3, -1), "circular")),
            ((f16(0, 2),), PadAttributes((0, 0, 1, 1))),
        ),
    )
)
