"""The Granite decoder block once more: head by head on ``[sequence, hidden]``, without spyrec and the block's graph."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from examples.granite_block.make_graph import BlockShape

Floats = npt.NDArray[np.float32 | np.float64]
Weights = Mapping[str, npt.NDArray[np.generic]]


def decoder_block(shape: BlockShape, x: Floats, weights: Weights) -> Floats:
    """Return the block's output, computed in the dtype of ``x``; weights are widened when they are used."""

    def weight(name: str, rows: slice = slice(None)) -> Floats:
        return weights[name][rows].astype(x.dtype)

    normal = _rms_norm(x, weight("attention_norm"))
    middle = x + 0.22 * (_attended(shape, normal, weights) @ weight("w_attention_out").T)
    normal = _rms_norm(middle, weight("mlp_norm"))
    gate = normal @ weight("w_gate").T
    return middle + 0.22 * ((gate / (1 + np.exp(-gate)) * (normal @ weight("w_up").T)) @ weight("w_down").T)


def _rms_norm(x: Floats, weight: Floats) -> Floats:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight


def _attended(shape: BlockShape, normal: Floats, weights: Weights) -> Floats:
    size = shape.head_dim
    ratio = shape.heads // shape.key_value_heads
    heads: list[Floats] = []
    for head in range(shape.heads):
        own, shared = slice(head * size, (head + 1) * size), slice(head // ratio * size, (head // ratio + 1) * size)
        query, key, value = (
            normal @ weights[name][rows].astype(normal.dtype).T
            for name, rows in (("w_query", own), ("w_key", shared), ("w_value", shared))
        )
        scores = _rotated(query, weights) @ _rotated(key, weights).T * 0.0078125
        scores[np.triu_indices(shape.sequence, 1)] = -np.inf
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        heads.append(powers / powers.sum(axis=-1, keepdims=True) @ value)
    return np.concatenate(heads, axis=-1)


def _rotated(head: Floats, weights: Weights) -> Floats:
    """Rotary positions as complex rotations of the pairs (n, n + D/2), with the angles of the float16 tables."""
    half = head.shape[-1] // 2
    cosine, sine = (weights[name][:, :half].astype(head.dtype) for name in ("rope_cos", "rope_sin"))
    turned = (head[..., :half] + 1j * head[..., half:]) * (cosine + 1j * sine)
    return np.concatenate([turned.real, turned.imag], axis=-1)
