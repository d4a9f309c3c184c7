"""Emulated fp16 add of two [4096,4096] through a bundle, beside a parallel numba float32 add; claim: ratio >= 0.4."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, prange

import spyrec
from benchmarks.device_launch import DeviceLaunch
from benchmarks.measure import Figures, interleaved, rounded

_EXTENT = 4096


@njit(parallel=True, cache=True)
def _add(left: npt.NDArray[np.float32], right: npt.NDArray[np.float32], out: npt.NDArray[np.float32]) -> None:
    for index in prange(left.size):
        out[index] = left[index] + right[index]


def measure() -> Figures:
    """Return seconds of both, and the ratio of their speeds in elements per second."""
    shape = (_EXTENT, _EXTENT)
    generator = np.random.Generator(np.random.PCG64(0))
    singles = [generator.standard_normal(shape, dtype=np.float32) for _ in range(2)]
    halves = {name: array.astype(np.float16) for name, array in zip("ab", singles)}
    inputs = [{"name": name, "shape": list(shape), "dtype": "float16"} for name in halves]
    nodes = [{"name": "y", "op": "add", "inputs": ["a", "b"]}]
    graph = {"format": "spyrec.graph/1", "name": "add", "inputs": inputs, "nodes": nodes, "outputs": ["y"]}
    bundle = spyrec.compile(graph)
    ready = DeviceLaunch(bundle, halves)
    left, right = (array.reshape(-1) for array in singles)
    out = np.empty(left.size, dtype=np.float32)
    seconds = interleaved({"emulated": ready.launch, "numba_float32": lambda: _add(left, right, out)}, rounds=15)
    return {
        "elements": left.size,
        "emulated_ms": rounded(seconds["emulated"] * 1e3),
        "numba_float32_ms": rounded(seconds["numba_float32"] * 1e3),
        "speed_ratio": rounded(seconds["numba_float32"] / seconds["emulated"]),
        "claim": "speed_ratio >= 0.4",
    }
