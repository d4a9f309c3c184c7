"""scaled_dot_product_attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import DimAttributes
from spyrec.ir.graph import Operand
from spyrec.ir.ops.attention import AttentionAttributes
from spyrec.ir.ops.binary import AlphaAttributes, DivAttributes
from spyrec.ir.ops.reduction import FoldAttributes, ReductionAttributes
from spyrec.ir.ops.views import ExpandAttributes, ReshapeAttributes, TransposeAttributes
from spyrec.passes.builder import NodeBuilder

Rewrite = Callable[[NodeBuilder], str]


def _attention(builder: NodeBuilder) -> str:
    """``--> softmax(query sqrt(scale) @ (key sqrt(scale))^T + mask) @ value``."""
    query, key, value, mask = (*builder.node.inputs, None)[:4]
    attributes = builder.node.attributes
    assert isinstance(attributes, AttentionAttributes)
    key = _with_query_heads(builder, query, key, attributes)
    value = _with_query_heads(builder, query, value, attributes)
    query, key = _scaled(builder, query, key, attributes.scale_for(builder.type_of(query).shape[-1]))
    transposed = builder.emit("transpose", key, attributes=TransposeAttributes(-2, -1))
    scores = builder.emit("spyre.batchmatmul", query, transposed)
    scores = _masked(builder, scores, mask, attributes)
    weights = _softmax(builder, scores, can_be_empty=mask is not None)
    return builder.emit("spyre.batchmatmul", weights, value)


def _with_query_heads(builder: NodeBuilder, query: Operand, other: Operand, attributes: AttentionAttributes) -> Operand:
    """Repeat heads, as a view, until there is one for each query head."""
    if not attributes.enable_gqa:
        return other
    heads, shape = builder.type_of(query).shape[-3], builder.type_of(other).shape
    ratio = heads // shape[-3]
    if ratio == 1:
        return other
    wide = builder.emit("unsqueeze", other, attributes=DimAttributes(len(shape) - 2))
    wide = builder.emit("expand", wide, attributes=ExpandAttributes((*shape[:-2], ratio, *shape[-2:])))
    return builder.emit("reshape", wide, attributes=ReshapeAttributes((*shape[:-3], heads, *shape[-2:])))


def _scaled(builder: NodeBuilder, query: Operand, key: Operand, scale: float) -> tuple[Operand, Operand]:
    """Scale both operands by the root, which keeps large scores in range; a negative scale goes to the query."""
    dtype = builder.type_of(query).dtype
    if scale == 1:
        return query, key
    if scale <= 0:
        return builder.emit("mul", query, builder.number(scale, dtype)), key
    root = builder.number(math.sqrt(scale), dtype)
    return builder.emit("mul", query, root), builder.emit("mul", key, root)


def _masked(builder: NodeBuilder, scores: str, mask: Operand, attributes: AttentionAttributes) -> str:
    shape, dtype = builder.type_of(scores).shape, builder.type_of(scores).dtype
    if attributes.is_causal:
        builder.require_holdable(f"the causal mask of {shape[-2]} x {shape[-1]}", shape[-2] * shape[-1])
        bias = builder.constant("causal_bias", _causal_bias(shape[-2], shape[-1]), dtype)
        return builder.emit("add", scores, bias, attributes=AlphaAttributes())
    if mask is None:
        return scores
    if builder.type_of(mask).dtype is DType.BOOL:
        return builder.emit("where", mask, scores, builder.number(-math.inf, dtype))
    return builder.emit("add", scores, mask, attributes=AlphaAttributes())


def _causal_bias(rows: int, columns: int) -> npt.NDArray[np.float64]:
    """Return 0 where a row may attend, up to its own column, else -inf: one line of numbers, seen from every row."""
    if not rows or not columns:
        return np.zeros((rows, columns))
    line = np.zeros(rows + columns - 1)
    line[rows:] = -np.inf
    return np.lib.stride_tricks.sliding_window_view(line, columns)[::-1]


def _softmax(builder: NodeBuilder, scores: str, *, can_be_empty: bool) -> str:
    """Softmax over the last dim; a row that may attend to nothing gives zeros, as in PyTorch.

    The row's largest score is then -inf: it is taken as 0, and a sum of 0 as 1.  Any other sum is at least 1.
    """
    dtype = builder.type_of(scores).dtype
    last = (builder.type_of(scores).rank - 1,)
    largest = builder.emit("amax", scores, attributes=FoldAttributes(last, keepdim=True))
    if can_be_empty:
        is_empty = builder.emit("eq", largest, builder.number(-math.inf, dtype))
        largest = builder.emit("where", is_empty, builder.number(0.0, dtype), largest)
    exponential = builder.emit("exp", builder.emit("sub", scores, largest, attributes=AlphaAttributes()))
    total = builder.emit("sum", exponential, attributes=ReductionAttributes(last, keepdim=True))
    if can_be_empty:
        total = builder.emit("maximum", total, builder.number(1.0, dtype))
    return builder.emit("div", exponential, total, attributes=DivAttributes())


REWRITES: Mapping[str, Rewrite] = {"scaled_dot_product_attention": _attention}
