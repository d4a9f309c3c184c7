"""The Granite decoder block at full size: its launches beside the same block in PyTorch float32, and its memory.

The PyTorch block is written from the model's definition, not from the graph, and its output is compared first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

import spyrec
from benchmarks.device_launch import DeviceLaunch
from benchmarks.emulator_parts.claims import at_least, below
from benchmarks.emulator_parts.outside import torch_or_none
from benchmarks.granite import graph_file
from benchmarks.measure import Figures, interleaved, rounded
from examples.granite_block import make_graph

Halves = npt.NDArray[np.float16]

_ROOT = Path(__file__).resolve().parent.parent.parent
_SHAPE = make_graph.FULL
_MEBIBYTE = 1 << 20
_CACHE_BYTES = 1 << 30  # decoded weights: the emulator's default
_CONSTANT_BYTES = 64 * _MEBIBYTE


def block_in_torch(torch: Any, weights: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- see torch_or_none
    """Return a function of x ``[1, sequence, hidden]``: the decoder block in the weights' dtype."""
    functional = torch.nn.functional
    size = _SHAPE.head_dim

    def heads(x: Any, name: str, count: int) -> Any:  # noqa: ANN401
        return functional.linear(x, weights[name]).reshape(1, _SHAPE.sequence, count, size).transpose(1, 2)

    def turned(x: Any) -> Any:  # noqa: ANN401
        first, second = x.chunk(2, dim=-1)
        return x * weights["rope_cos"] + torch.cat([-second, first], dim=-1) * weights["rope_sin"]

    def norm(x: Any, name: str) -> Any:  # noqa: ANN401
        return functional.rms_norm(x, [_SHAPE.hidden], weights[name], make_graph.NORM_EPS)

    def block(x: Any) -> Any:  # noqa: ANN401
        inner = norm(x, "attention_norm")
        attended = functional.scaled_dot_product_attention(
            turned(heads(inner, "w_query", _SHAPE.heads)),
            turned(heads(inner, "w_key", _SHAPE.key_value_heads)),
            heads(inner, "w_value", _SHAPE.key_value_heads),
            is_causal=True,
            scale=make_graph.ATTENTION_MULTIPLIER,
            enable_gqa=True,
        )
        joined = attended.transpose(1, 2).reshape(1, _SHAPE.sequence, -1)
        x = x + make_graph.RESIDUAL_MULTIPLIER * functional.linear(joined, weights["w_attention_out"])
        inner = norm(x, "mlp_norm")
        gated = functional.silu(functional.linear(inner, weights["w_gate"])) * functional.linear(inner, weights["w_up"])
        return x + make_graph.RESIDUAL_MULTIPLIER * functional.linear(gated, weights["w_down"])

    return block


def speed() -> Figures:
    """Return the time of the block's launches without host copies, beside PyTorch's in float32."""
    file = graph_file()
    bundle = spyrec.compile(file)
    x = np.random.Generator(np.random.PCG64(1)).standard_normal((1, _SHAPE.sequence, _SHAPE.hidden), dtype=np.float32)
    half = x.astype(np.float16)
    ready = DeviceLaunch(bundle, {"x": half})
    ready.launch()
    candidates = {"emulated": ready.launch}
    figures: Figures = {"superdscs": sum(len(item.superdscs) for item in bundle.programs)}
    torch = torch_or_none()
    if torch is not None:
        weights = {
            n: torch.from_numpy(item).float() for n, item in load_file(file.with_name(make_graph.WEIGHTS_FILE)).items()
        }
        block, given = block_in_torch(torch, weights), torch.from_numpy(half).float()
        figures["relative_error"] = _relative_error(ready.result("block_out"), block(given).numpy(), half)
        candidates["torch_float32"] = lambda: block(given)
    best = interleaved(candidates, 9, pause_seconds=0.15, statistic=min)
    figures |= {f"{name}_ms": rounded(1e3 * value) for name, value in best.items()}
    ratio = best["torch_float32"] / best["emulated"] if "torch_float32" in best else None
    return {**figures, "claims": [at_least("speed, of PyTorch's in float32", ratio, 0.5)]}


def _relative_error(got: npt.NDArray[np.generic], wanted: npt.NDArray[np.float32], x: Halves) -> float:
    """Return the error of what the block adds to its input, as a part of that; asserts that it is rounding."""
    added = wanted - x
    error = float(np.linalg.norm(got.astype(np.float32) - wanted) / np.linalg.norm(added))
    assert error < 2**-6, error
    return rounded(error)


def memory() -> Figures:
    """Return the peak memory of loading and running the block from its bundle, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.emulator_parts.granite_memory", str(graph_file())]
    done = subprocess.run(command, check=True, cwd=_ROOT, env=dict(os.environ), stdout=subprocess.PIPE)  # noqa: S603
    found = cast("dict[str, int]", json.loads(done.stdout))
    grown = found["peak_bytes"] - found["before_bytes"]
    allowed = 2 * found["device_bytes"] + _CACHE_BYTES + _CONSTANT_BYTES
    figures = {name.replace("_bytes", "_mebibytes"): rounded(value / _MEBIBYTE) for name, value in found.items()}
    claim = "peak memory beyond the narrow block's, of twice the device bytes, the cache and 64 MiB"
    return {**figures, "claims": [below(claim, grown / allowed, 1)]}
