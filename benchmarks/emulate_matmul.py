"""Emulated fp16 matmul 2048x2048x2048 through a bundle, beside numpy's sgemm; claim: ratio >= 0.5."""

from __future__ import annotations

import numpy as np

import spyrec
from benchmarks.device_launch import DeviceLaunch
from benchmarks.measure import Figures, interleaved, rounded

_EXTENT = 2048


def measure() -> Figures:
    """Return seconds of both, and the ratio of their speeds."""
    shape = (_EXTENT, _EXTENT)
    generator = np.random.Generator(np.random.PCG64(0))
    left, right = (generator.standard_normal(shape, dtype=np.float32) for _ in range(2))
    inputs = [{"name": name, "shape": list(shape), "dtype": "float16"} for name in "ab"]
    nodes = [{"name": "y", "op": "mm", "inputs": ["a", "b"]}]
    graph = {"format": "spyrec.graph/1", "name": "mm", "inputs": inputs, "nodes": nodes, "outputs": ["y"]}
    bundle = spyrec.compile(graph)
    ready = DeviceLaunch(bundle, {"a": left.astype(np.float16), "b": right.astype(np.float16)})
    out = np.empty(shape, dtype=np.float32)
    candidates = {"emulated": ready.launch, "sgemm": lambda: np.matmul(left, right, out=out)}
    seconds = interleaved(candidates, rounds=7, pause_seconds=0.15)
    return {
        "flops": 2 * _EXTENT**3,
        "emulated_ms": rounded(seconds["emulated"] * 1e3),
        "sgemm_ms": rounded(seconds["sgemm"] * 1e3),
        "speed_ratio": rounded(seconds["sgemm"] / seconds["emulated"]),
        "claim": "speed_ratio >= 0.5",
    }
