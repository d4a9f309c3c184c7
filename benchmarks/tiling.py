"""Tiled programs on the emulator against the same programs without loops: ``python -m benchmarks tiling``.

A loop that stays a loop costs no more than the elements that it computes: a tiled program may be slower than the other
one only by what it moves beside that (copies to full tensors, casts and combinations of tiled sums).  Those bytes are
counted operand by operand, core by core, and are granted the seconds that the untiled ``add_mul`` takes for as many;
of a product only what it stores.  Beside it stands a looser bound, the ratio of what both move to and from device
memory, as ``--stats`` counts it: there a tiled product reads its operands once for every tile.

``tiled_over_plain`` is the ratio of the shortest of several launches on all processors, ``cpu_tiled_over_plain`` that
of the median processor time of one thread, which others on the machine disturb less.  The second one is held against
the bounds: the other suffers where somebody else has a processor, for threads then wait for each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import spyrec
from benchmarks.device_launch import DeviceLaunch
from benchmarks.measure import Figures, interleaved, rounded
from spyrec.ir.reader import read_graph_data

_ROUNDS = 30
_MARGIN = 1.05
"""What is granted beyond the bytes."""

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
    found: list[object] = list(body) if levels else []
    for dim, tiles in reversed(levels):
        found = [{"dim": dim, "tiles": tiles, "body": found}]
    return found


def _add_mul(*levels: tuple[str, int]) -> JsonObject:
    nodes = [_node("y", "add", "a", "b"), _node("z", "mul", "y", "c")]
    return _graph({"A": 1024, "B": 4096}, dict.fromkeys("abc", "AB"), nodes, _nest(["y", "z"], *levels))


def _add_mul_of_three_dims(*levels: tuple[str, int]) -> JsonObject:
    dims = {"A": 16, "B": 128, "C": 2048}
    return {**_add_mul(), "dims": dims, **_with_shapes("abc", "ABC"), "loops": _nest(["y", "z"], *levels)}


def _with_shapes(names: str, shape: str) -> JsonObject:
    return {"inputs": [{"name": name, "shape": list(shape), "dtype": "float16"} for name in names]}


def _rms_norm(*levels: tuple[str, int]) -> JsonObject:
    nodes = [_node("y", "rms_norm", "x", "w", normalized_shape=["B"])]
    return _graph({"A": 1024, "B": 2048}, {"x": "AB", "w": "B"}, nodes, _nest(["y"], *levels))


def _attention(*levels: tuple[str, int]) -> JsonObject:
    shapes = {"q": "BHSD", "k": "BHTD", "v": "BHTD"}
    nodes = [_node("y", "scaled_dot_product_attention", "q", "k", "v")]
    return _graph({"B": 2, "H": 16, "S": 256, "T": 256, "D": 64}, shapes, nodes, _nest(["y"], *levels))


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
    "add_mul_8x8x4": lambda: _add_mul_of_three_dims(("A", 8), ("B", 8), ("C", 4)),
    "rms_norm_rows": lambda: _rms_norm(("A", 32)),
    "attention_2x8": lambda: _attention(("B", 2), ("H", 8)),
    "attention_heads": lambda: _attention(("H", 16)),
    "softmax_rows": lambda: _softmax(("A", 16)),
    "softmax_reduced": lambda: _softmax(("B", 4)),
    "matmul_m_n": lambda: _matmul(("M", 4), ("N", 4)),
    "matmul_k": lambda: _matmul(("K", 4)),
}
"""Name -> a graph with loops."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What moving bytes costs one thread: a launch that moves next to nothing, and every byte more."""

    launch_seconds: float
    seconds_per_byte: float

    @classmethod
    def measured(cls) -> Rate:
        """Measure the untiled ``add_mul`` against one of a stick."""
        large = _add_mul()
        graphs = {"large": large, "small": {**large, "dims": {"A": 1, "B": 64}}}
        launches = {key: _loaded(graph, threads=1) for key, graph in graphs.items()}
        seconds = _processor_seconds(launches)
        moved = launches["large"].moved_bytes - launches["small"].moved_bytes
        return cls(seconds["small"], (seconds["large"] - seconds["small"]) / moved)


def compared(name: str, rate: Rate) -> Figures:
    """Measure one program with and without its loops, launch against launch."""
    tiled = PROGRAMS[name]()
    graphs = {"tiled": tiled, "plain": {**tiled, "loops": list[object]()}}
    launches = {key: _loaded(graph) for key, graph in graphs.items()}
    moved = {key: launch.moved_bytes for key, launch in launches.items()}
    device_memory = {key: launch.device_memory_bytes for key, launch in launches.items()}
    extra_bytes = max(0, moved["tiled"] - moved["plain"])
    seconds = interleaved({key: launch.launch for key, launch in launches.items()}, _ROUNDS, statistic=min)
    cpu_seconds = _processor_seconds({key: _loaded(graph, threads=1) for key, graph in graphs.items()})
    cpu_ratio = cpu_seconds["tiled"] / cpu_seconds["plain"]
    bytes_ratio = device_memory["tiled"] / device_memory["plain"]
    bound_ratio = 1 + extra_bytes * rate.seconds_per_byte / cpu_seconds["plain"]
    return {
        "plain_ms": rounded(1e3 * seconds["plain"]),
        "tiled_over_plain": rounded(seconds["tiled"] / seconds["plain"]),
        "cpu_tiled_over_plain": rounded(cpu_ratio),
        "tiled_device_memory_bytes": device_memory["tiled"],
        "plain_device_memory_bytes": device_memory["plain"],
        "device_memory_ratio": rounded(bytes_ratio),
        "is_within_device_memory_ratio": cpu_ratio <= bytes_ratio * _MARGIN,
        "tiled_bytes": moved["tiled"],
        "plain_bytes": moved["plain"],
        "extra_bytes": extra_bytes,
        "bound_over_plain": rounded(bound_ratio),
        "cpu_over_bound": rounded(cpu_ratio / bound_ratio),
        "is_not_slower_than_its_extra_bytes": cpu_ratio <= bound_ratio * _MARGIN,
    }


def _processor_seconds(launches: Mapping[str, DeviceLaunch]) -> dict[str, float]:
    """Return the median processor time of each launch on one thread."""
    return interleaved({key: item.launch for key, item in launches.items()}, _ROUNDS, clock=time.thread_time)


def _loaded(data: JsonObject, threads: int | None = None) -> DeviceLaunch:
    graph = read_graph_data(data)
    generator = np.random.default_rng(1)
    shapes = {key: graph.type_of(key).shape for key in graph.inputs}
    arrays = {key: generator.standard_normal(shape).astype(np.float16) for key, shape in shapes.items()}
    return DeviceLaunch(spyrec.compile(data), arrays, threads=threads)


def measure() -> Figures:
    """Return the figures of every program by name."""
    rate = Rate.measured()
    granted = {"gigabytes_per_second": rounded(1e-9 / rate.seconds_per_byte)}
    return {"granted": granted, **{name: compared(name, rate) for name in PROGRAMS}}
