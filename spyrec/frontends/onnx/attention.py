"""ONNX's operators of transformers: ``Attention`` with a cache, ``RotaryEmbedding`` and ``SwiGLU``.

Source of the rules: the operators' specification (opset 23 and newer).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spyrec.frontends.model_import.unsupported import Unsupported
from spyrec.frontends.onnx.open_numbers import Number, OpenNumber, product
from spyrec.frontends.value import Value

if TYPE_CHECKING:
    from spyrec.frontends.onnx.lower import Call

_LOWEST = float(np.finfo(np.float32).min)
"""What a score gets that a float mask is not asked for: finite, as masks of 16 bits are."""


def attention(call: Call) -> Sequence[Value]:
    """The result, and the keys and values with those of the cache before them; soft caps are refused."""
    if call.number("softcap", 0.0):
        raise Unsupported("a softcap")
    query, key, value = (call.value(index) for index in range(3))
    heads, others = call.integer("q_num_heads", 0), call.integer("kv_num_heads", 0)
    is_flat = query.ndim == 3
    if is_flat:
        query, key, value = (
            _by_heads(call, item, count) for item, count in ((query, heads), (key, others), (value, others))
        )
    past_key, past_value = call.optional(4), call.optional(5)
    past: Number = 0
    if past_key is not None and past_value is not None:
        past = call.shape(past_key)[2]
        key, value = call.add("cat", past_key, key, dim=2), call.add("cat", past_value, value, dim=2)
    mask, more = call.optional(3), dict[str, object]()
    if call.integer("is_causal", 0):
        if mask is None and past_key is None:
            more["is_causal"] = True
        else:
            mask = _causal(call, mask, (call.shape(query)[2], call.shape(key)[2], past))
    if "scale" in call.attributes:
        more["scale"] = call.number("scale", 1.0)
    if query.shape[1] != key.shape[1]:
        more["enable_gqa"] = True
    made = call.add("scaled_dot_product_attention", query, key, value, *([] if mask is None else [mask]), **more)
    if is_flat:
        batch, count, length, width = call.shape(made)
        shape = call.written([batch, length, count * width])
        made = call.add("reshape", call.add("permute", made, dims=[0, 2, 1, 3]), shape=shape)
    return [made, key, value]


def _by_heads(call: Call, value: Value, heads: int) -> Value:
    batch, length, width = call.shape(value)
    split = call.add("reshape", value, shape=call.written([batch, length, heads, width // heads]))
    return call.add("permute", split, dims=[0, 2, 1, 3])


def _causal(call: Call, mask: Value | None, lengths: tuple[Number, Number, Number]) -> Value:
    """Return a mask within which row ``i`` sees columns 0 to ``i`` and as many as the cache has."""
    rows, columns, past = lengths
    row = call.add("unsqueeze", _counted(call, rows) + call.counted(past), dim=1)
    seen = call.add("le", _counted(call, columns), row)
    if mask is None:
        return seen
    if mask.dtype == "bool":
        return call.add("logical_and", mask, seen)
    return call.add("where", seen, mask, _LOWEST)


def _counted(call: Call, extent: Number) -> Value:
    """Return 0, 1, 2 ... as many as an extent has."""
    if isinstance(extent, OpenNumber):
        (dim,) = call.written([extent])
        return call.positions(str(dim))
    return call.as_value(np.arange(extent))


def rotary_embedding(call: Call) -> Sequence[Value]:
    """Halves, or neighbours, of each head turned by the angles of their position; the rest of a head stays."""
    value, positions = call.value(0), call.optional(3)
    own = call.shape(value)
    is_flat, heads = value.ndim == 3, call.integer("num_heads", 0)
    if is_flat:
        value = call.add("reshape", value, shape=call.written([own[0], own[1], heads, own[2] // heads]))
    else:
        value = call.add("permute", value, dims=[0, 2, 1, 3])
    width = call.extent(value, 3)
    turned = call.integer("rotary_embedding_dim", 0) or width
    tables = [call.value(1), call.value(2)]
    if positions is not None:
        tables = [call.add("embedding", positions, table) for table in tables]
    cosine, sine = (call.add("unsqueeze", table, dim=2) for table in tables)
    is_interleaved = bool(call.integer("interleaved", 0))
    bounds = [(0, turned, 2), (1, turned, 2)] if is_interleaved else [(0, turned // 2, 1), (turned // 2, turned, 1)]
    first, second = (call.add("slice", value, dim=3, start=start, end=end, step=step) for start, end, step in bounds)
    parts = [cosine * first - sine * second, sine * first + cosine * second]
    if is_interleaved:
        shape = [*call.shape(value)[:3], turned]
        made = call.add("reshape", call.add("stack", *parts, dim=4), shape=call.written(shape))
    else:
        made = call.add("cat", *parts, dim=3)
    if turned < width:
        made = call.add("cat", made, call.add("slice", value, dim=3, start=turned, end=width), dim=3)
    if is_flat:
        shape = call.written([*own[:2], product(call.shape(made)[2:])])
        return [call.add("reshape", made, shape=shape)]
    return [call.add("permute", made, dims=[0, 2, 1, 3])]


def swish(call: Call, value: Value) -> Value:
    """Return ``x * sigmoid(alpha * x)``."""
    alpha = call.number("alpha", 1.0)
    if alpha == 1.0:
        return call.add("silu", value)
    return call.add("mul", value, call.add("sigmoid", call.add("mul", value, alpha)))


def swiglu(call: Call) -> Sequence[Value]:
    """``swish(a) * b``."""
    return [call.add("mul", swish(call, call.value(0)), call.value(1))]
