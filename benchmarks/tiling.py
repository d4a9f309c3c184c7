"""Tiled programs on the emulator against the same programs without loops: ``python -m benchmarks tiling``.

A loop that stays a loop costs no more than the elements that it computes: a tiled program may be slower than the other
one only by what it computes beside that (copies to full tensors, casts and combinations of tiled sums).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

import spyrec
from benchmarks.device_launch import DeviceLaunch
from benchmarks.measure import Figures, interleaved, rounded
from spyrec.ir.kernel import Kernel, KernelGraph
from spyrec.ir.reader import read_graph_data
from spyrec.passes.base import PipelineOptions
from spyrec.passes.driver import compile_graph

_ROUNDS = 9
_NOISE = 1.1
"""What two measurements of one thing differ by on a quiet machine, minimum against minimum."""

JsonObject = dict[str, object]


def _graph(
    dims: Mapping[str, int], inputs: Mapping[str, Sequence[str]], nodes: Sequence[JsonObject], loops: Sequence[object]
) -> JsonObject:
    tensors = [{"name": name, "shape": list(shape), "dtype": "float16"} for name, shape in inputs.items()]
    graph: JsonObject = {"format": "spyrec.graph/1", "name": "tiling", "dims": dict(dims), "inputs": tensors}
    return {**graph, "nodes": list(nodes), "loops": list(loops), "outputs": [nodes[-1]["name"]]}


def _node(name: str, op: str, *inputs: object, **attrs: object) -> JsonObject:
    return {"name": name, "op": op, "inputs": list(inputs), **({"attrs": attrs} if attrs else {})}


def _nest(body: Sequence[object], *levels: tuple[str, int]) -> list[object]:
    found: list[object] = list(body)
    for dim, tiles in reversed(levels):
        found = [{"dim": dim, "tiles": tiles, "body": found}]
    return found


def _add_mul(*levels: tuple[str, int]) -> JsonObject:
    nodes = [_node("y", "add", "a", "b"), _node("z", "mul", "y", "c")]
    return _graph({"A": 1024, "B": 4096}, dict.fromkeys("abc", "AB"), nodes, _nest(["y", "z"], *levels))


def _softmax(*levels: tuple[str, int]) -> JsonObject:
    nodes = [_node("p", "softmax", "x", dim=-1)]
    return _graph({"A": 1024, "B": 1024}, {"x": "AB"}, nodes, _nest(["p"], *levels))


def _matmul(*levels: tuple[str, int]) -> JsonObject:
    nodes = [_node("y", "mm", "a", "b")]
    return _graph({"M": 512, "K": 1024, "N": 1024}, {"a": "MK", "b": "KN"}, nodes, _nest(["y"], *levels))


PROGRAMS: Mapping[str, Callable[[], JsonObject]] = {
    "add_mul_2x4": lambda: _add_mul(("A", 2), ("B", 4)),
    "add_mul_64x16": lambda: _add_mul(("A", 64), ("B", 16)),
    "add_mul_rows_of_3": lambda: _add_mul(("A", 342)),
    "softmax_rows": lambda: _softmax(("A", 16)),
    "softmax_reduced": lambda: _softmax(("B", 4)),
    "matmul_m_n": lambda: _matmul(("M", 4), ("N", 4)),
    "matmul_k": lambda: _matmul(("K", 4)),
}
"""Name -> a graph with loops."""


def compared(name: str) -> Figures:
    """Measure one program with and without its loops, launch against launch, the smallest of several seconds."""
    tiled = PROGRAMS[name]()
    plain: JsonObject = {**tiled, "loops": list[object]()}
    work = _elements(tiled) / _elements(plain)
    generator = np.random.default_rng(1)
    shapes = {key: read_graph_data(tiled).type_of(key).shape for key in read_graph_data(tiled).inputs}
    arrays = {key: generator.standard_normal(shape).astype(np.float16) for key, shape in shapes.items()}
    launches = {key: DeviceLaunch(spyrec.compile(data), arrays) for key, data in (("tiled", tiled), ("plain", plain))}
    seconds = interleaved({key: launch.launch for key, launch in launches.items()}, _ROUNDS, statistic=min)
    ratio = seconds["tiled"] / seconds["plain"]
    return {
        "plain_ms": rounded(1e3 * seconds["plain"]),
        "tiled_over_plain": rounded(ratio),
        "elements_over_plain": rounded(work),
        "is_not_slower_than_its_extra_work": ratio <= max(1.0, work) * _NOISE,
    }


def _elements(data: JsonObject) -> int:
    """Return how many elements all operations read and write together."""
    graph = compile_graph(read_graph_data(data), PipelineOptions())
    return sum(prod(kernel.extents) * len(kernel.uses) * _rounds(graph, kernel) for kernel in graph.kernels)


def _rounds(graph: KernelGraph, kernel: Kernel) -> int:
    return prod(graph.loops[loop].count for loop in kernel.loops)


def measure() -> Figures:
    """Return the figures of every program by name."""
    return {name: compared(name) for name in PROGRAMS}
