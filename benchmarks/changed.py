"""A model of which one node changed, compiled again with ``--cache`` over the bundle of before: beside a first compile.

``first``: nothing is kept, and no bundle stands at the output.  ``unchanged``: the same graph again.  ``swapped``: one
op in the middle became another one.  ``inserted``: a node was put in there.  Each is reading, compiling and writing, in
seconds of processor time; ``of_first``: what part of a first compile it takes.  ``in_process``: ``spyrec.compile`` and
``Bundle.save`` in one process, all imports done; ``processes``: ``spyrec compile`` in a process each, beside
``start``, what the verb takes for a graph of one node.  Medians of rounds, each with a cache and an output of its own.

``decoder``: 840 nodes of 60 equal layers.  ``layers``: 840 nodes, weights of their own.  ``unlike``: 840 nodes, no
kernel like another.  ``grown``: the decoder with ten times as many nodes, in one process, one round.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import cast

import spyrec
from benchmarks.compile import Node, graph_of
from benchmarks.growth import Data, chain, decoder
from benchmarks.measure import Figures, rounded
from benchmarks.startup import spent_by

_NODES = 840
_ROUNDS = 3
_NODES_OF_A_LAYER = 4
_SWAPPED = {"relu": "sigmoid", "gelu": "relu"}


def layers(count: int, step: int = 0) -> Data:
    """Return a chain of linear, relu, softmax and layer_norm; ``step``: how much wider each layer is than the last."""
    inputs: dict[str, Sequence[int]] = {"x": (64, 128)}
    nodes: list[Node] = []
    last, before = "x", 128
    for number in range(count // _NODES_OF_A_LAYER):
        width = before + step
        inputs |= {f"w{number}": (width, before), f"b{number}": (width,)}
        step_nodes: list[Node] = [
            (f"wide{number}", "linear", [last, f"w{number}", f"b{number}"], {}),
            (f"bent{number}", "relu", [f"wide{number}"], {}),
            (f"shares{number}", "softmax", [f"bent{number}"], {"dim": -1}),
            (f"norm{number}", "layer_norm", [f"shares{number}"], {"normalized_shape": [width]}),
        ]
        nodes += step_nodes
        last, before = f"norm{number}", width
    return graph_of(inputs, nodes)


def swapped(graph: Mapping[str, object]) -> Data:
    """Return a graph whose middle relu is a sigmoid."""
    nodes, place = _middle(graph)
    nodes[place]["op"] = _SWAPPED[str(nodes[place]["op"])]
    return {**graph, "nodes": nodes}


def inserted(graph: Mapping[str, object]) -> Data:
    """Return a graph with a node behind its middle relu."""
    nodes, place = _middle(graph)
    name = nodes[place]["name"]
    for item in nodes[place + 1 :]:
        operands = cast("list[str]", item["inputs"])
        item["inputs"] = ["inserted" if operand == name else operand for operand in operands]
    nodes.insert(place + 1, {"name": "inserted", "op": "tanh", "inputs": [name]})
    return {**graph, "nodes": nodes}


def _middle(graph: Mapping[str, object]) -> tuple[list[Data], int]:
    nodes = [dict(item) for item in cast("list[Data]", graph["nodes"])]
    places = [place for place, item in enumerate(nodes) if item["op"] in _SWAPPED]
    return nodes, places[len(places) // 2]


def _graphs(graph: Data) -> dict[str, Data]:
    return {"first": graph, "unchanged": graph, "swapped": swapped(graph), "inserted": inserted(graph)}


def _in_process(graph: Data, folder: Path) -> dict[str, float]:
    seconds: dict[str, float] = {}
    options = spyrec.CompileOptions(cache=folder / "cache")
    for name, changed in _graphs(graph).items():
        start = time.process_time()
        spyrec.compile(changed, options).save(folder / "out", force=True)
        seconds[name] = time.process_time() - start
    return seconds


def _in_processes(graph: Data, folder: Path) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for name, changed in {**_graphs(graph), "start": chain(1)}.items():
        source = folder / f"{name}.json"
        source.write_text(json.dumps(changed), encoding="utf-8")
        output = folder / ("small" if name == "start" else "out")
        line = ["-m", "spyrec", "compile", str(source), "-o", str(output), "--force", "--cache", str(folder / "cache")]
        seconds[name] = spent_by(line, folder / "kernels").cpu_s
    return seconds


def _rounds(measure_one: Callable[[Data, Path], dict[str, float]], graph: Data, rounds: int) -> Figures:
    found: list[dict[str, float]] = []
    for _ in range(rounds):
        folder = Path(tempfile.mkdtemp(prefix="spyrec-changed-"))
        try:
            found.append(measure_one(graph, folder))
        finally:
            shutil.rmtree(folder)
    seconds = {name: median(item[name] for item in found) for name in found[0]}
    ratios = {name: rounded(seconds[name] / seconds["first"], 3) for name in ("unchanged", "swapped", "inserted")}
    return {"cpu_seconds": {name: rounded(value, 3) for name, value in seconds.items()}, "of_first": ratios}


def _both(graph: Data) -> Figures:
    spyrec.compile(decoder(28))  # what is imported and compiled once
    claim = "of_first of swapped and inserted <= 0.1"
    processes = _rounds(_in_processes, graph, _ROUNDS)
    return {"in_process": _rounds(_in_process, graph, _ROUNDS), "processes": processes, "claim": claim}


def _grown() -> Figures:
    spyrec.compile(decoder(28))
    return {"in_process": _rounds(_in_process, decoder(10 * _NODES), 1)}


PARTS: Mapping[str, Callable[[], Figures]] = {
    "decoder": lambda: _both(decoder(_NODES)),
    "layers": lambda: _both(layers(_NODES)),
    "unlike": lambda: _both(layers(_NODES, step=8)),
    "grown": _grown,
}
"""Name of a part -> what measures it."""


def measure() -> Figures:
    """Return the figures of the parts that take less than two minutes."""
    return {name: PARTS[name]() for name in ("decoder", "layers", "unlike")}
