"""Scaled dot product attention, as PyTorch defines it (its math backend, with ``_safe_softmax``).

It states no roundings of its result: two sums of products have the bounds of their steps, which no number of roundings
of a result that cancels could say.  What is stored in 16 bits is this, each once: query and key times the root of the
scale (a power of 2 changes none), the scores, the scores with a mask of numbers, their distances from the row's
largest, the exponentials, their sum, the quotients, the result; sums are added up in float32.  So a score of 60 may be
off by 1/32, and its share by 3 %; in float32 the scores, the largest thing there is, would take twice the memory.  Runs
on adversarial operands reach 0.7 of that bound, and one rounding more exceeds it
(``tests/compare/test_attention_bound.py``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF
from spyrec.hardware.dtypes import DType
from spyrec.ir.opdef import (
    Array,
    AxisSources,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    register,
    rule,
)
from spyrec.ir.operands import Floats, array, common_float, floats, tensor, unsupported
from spyrec.ir.samples import boolean, f16
from spyrec.ir.shapes import Shape, broadcast, broadcast_axes, show
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class AttentionAttributes:
    """``scale`` multiplies the scores (none: 1 / sqrt of the last dim); ``is_causal`` lets row i see columns 0..i.

    ``enable_gqa``: the query may have a multiple of the key's and value's heads (dim -3).
    """

    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False

    def scale_for(self, width: int) -> float:
        """Return the factor of the scores for a query whose last dim is ``width``."""
        return 1.0 / math.sqrt(max(width, 1)) if self.scale is None else self.scale  # scores of nothing are all 0


def _head_ratio(query: TensorType, other: TensorType, index: int, attributes: AttentionAttributes) -> int:
    """Return how many query heads share one head of key or value.  Errors: SPY0207."""
    if not attributes.enable_gqa:
        return 1
    if query.rank < 3 or other.rank < 3:
        message = f"enable_gqa needs a head dim (-3): query {query}, operand {other}"
        raise OpError("SPY0206", message, operand=index)
    if query.shape[-3] % other.shape[-3]:
        message = f"{query.shape[-3]} query heads are no multiple of {other.shape[-3]} heads"
        raise OpError("SPY0207", message, operand=index)
    return query.shape[-3] // other.shape[-3]


def _batch(operand: TensorType, ratio: int) -> Shape:
    """Return the batch dims, as many heads as the query has."""
    return operand.shape[:-2] if ratio == 1 else (*operand.shape[:-3], operand.shape[-3] * ratio)


def _require_switches(attributes: AttentionAttributes, *, has_mask: bool) -> None:
    if attributes.dropout_p != 0:
        raise unsupported("dropout_p", attributes.dropout_p, "inference has no dropout: leave it out")
    if attributes.is_causal and has_mask:
        hint = "put the causal part into the mask, and drop is_causal"
        raise OpError("SPY0209", "attn_mask and is_causal exclude each other", hint=hint, attribute="is_causal")


def _require_matching(name: str, left: tuple[TensorType, int], right: tuple[TensorType, int], operand: int) -> None:
    one, other = left[0].shape[left[1]], right[0].shape[right[1]]
    if one != other:
        message = f"{name}: dim {left[1]} of {left[0]} is {one}, dim {right[1]} of {right[0]} is {other}"
        raise OpError("SPY0213", message, operand=operand)


def _require_mask(mask: TensorType, dtype: DType, scores: Shape) -> None:
    if mask.dtype not in (DType.BOOL, dtype):
        hint = f'convert the mask first: {{"op": "to", "attrs": {{"dtype": "{dtype.value}"}}}}'
        message = f"the mask is {mask}, neither bool nor {dtype.value}"
        raise OpError("SPY0203", message, hint=hint, operand=3)
    if mask.rank > len(scores) or broadcast([(0, scores), (3, mask.shape)], "scores and mask") != scores:
        message = f"the mask {mask} does not broadcast to the scores {show(scores)}"
        raise OpError("SPY0201", message, operand=3)


def _infer(operands: OperandTypes, attributes: AttentionAttributes) -> tuple[TensorType, ...]:
    query, key, value = (tensor(operands, index) for index in range(3))
    dtype = common_float(operands[:3])
    for index, operand in enumerate((query, key, value)):
        if operand.rank < 2:
            raise OpError("SPY0206", f"{operand} has rank {operand.rank}, attention takes 2 or more", operand=index)
    _require_switches(attributes, has_mask=operands[3] is not None)
    _require_matching("query and key", (query, -1), (key, -1), 1)
    _require_matching("key and value", (key, -2), (value, -2), 2)
    keys = _batch(key, _head_ratio(query, key, 1, attributes))
    values = _batch(value, _head_ratio(query, value, 2, attributes))
    score_batch = broadcast([(0, query.shape[:-2]), (1, keys)], "batch shapes")
    if operands[3] is not None:
        _require_mask(operands[3], dtype, (*score_batch, query.shape[-2], key.shape[-2]))
    batch = broadcast([(0, score_batch), (2, values)], "batch shapes")
    return (TensorType((*batch, query.shape[-2], value.shape[-1]), dtype),)


def _axes(operands: OperandTypes, attributes: AttentionAttributes) -> AxisSources:
    query, value = tensor(operands), tensor(operands, 2)
    batch = _infer(operands, attributes)[0].shape[:-2]
    sources = broadcast_axes([query if query.rank > 2 else None], batch, skip_last=2)
    return (*sources, ((0, query.rank - 2),), ((2, value.rank - 1),))


def _safe_softmax(scores: Floats) -> Floats:
    """Return the softmax over the last axis; a row of nothing but -inf gives zeros (PyTorch's ``_safe_softmax``)."""
    largest = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
    exponentials = np.exp(scores - np.where(largest == -np.inf, 0.0, largest))
    total = np.sum(exponentials, axis=-1, keepdims=True)
    return exponentials / np.where(total == 0.0, 1.0, total)


def _masked(scores: Floats, operands: Sequence[Array | None], attributes: AttentionAttributes) -> Floats:
    if attributes.is_causal:
        allowed = np.tril(np.ones(scores.shape[-2:], np.bool_))
        return np.where(allowed, scores, -np.inf)
    if len(operands) < 4 or operands[3] is None:
        return scores
    mask = array(operands, 3)
    if mask.dtype == np.bool_:
        may_attend: npt.NDArray[np.bool_] = mask.astype(np.bool_)
        return np.where(may_attend, scores, -np.inf)
    return scores + floats(operands, 3)


def _with_query_heads(x: Floats, heads: int, attributes: AttentionAttributes) -> Floats:
    return np.repeat(x, heads // x.shape[-3], axis=-3) if attributes.enable_gqa else x


def _attention(operands: Sequence[Array | None], attributes: AttentionAttributes) -> tuple[Array, ...]:
    query = floats(operands)
    heads = query.shape[-3] if query.ndim > 2 else 1
    key = _with_query_heads(floats(operands, 1), heads, attributes)
    value = _with_query_heads(floats(operands, 2), heads, attributes)
    scores = query @ np.swapaxes(key, -1, -2) * attributes.scale_for(query.shape[-1])
    return (_safe_softmax(_masked(scores, operands, attributes)) @ value,)


_QKV = (f16(2, 4, 3, 8), f16(2, 4, 5, 8), f16(2, 4, 5, 6))

register(
    OpDef(
        name="scaled_dot_product_attention",
        summary="softmax(query key^T scale + mask) value; a bool mask means 'may attend'",
        kind=OpKind.COMPOSITE,
        operands=(
            OperandSpec("query"),
            OperandSpec("key"),
            OperandSpec("value"),
            OperandSpec("attn_mask", is_optional=True),
        ),
        attributes=AttentionAttributes,
        infer=rule(AttentionAttributes, _infer),
        reference=rule(AttentionAttributes, _attention),
        axes=rule(AttentionAttributes, _axes),
        formats=HALF,
        samples=(
            ((*_QKV, None), AttentionAttributes()),
            ((*_QKV, None), AttentionAttributes(is_causal=True, scale=0.25)),
            ((*_QKV, boolean(3, 5)), AttentionAttributes()),
            ((*_QKV, f16(2, 1, 3, 5)), AttentionAttributes()),
            ((f16(2, 6, 3, 8), f16(2, 2, 5, 8), f16(2, 2, 5, 8), None), AttentionAttributes(enable_gqa=True)),
            ((f16(3, 8), f16(5, 8), f16(5, 4), None), AttentionAttributes()),
        ),
    )
)
