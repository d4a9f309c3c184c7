"""Compilation per emitted SuperDSC, imports done and no weights at hand; claim: at most 2 ms."""

from __future__ import annotations

import tempfile
from pathlib import Path

import spyrec
from benchmarks.measure import Figures, interleaved, rounded

_LAYERS = 12


def _graph() -> dict[str, object]:
    """Return a chain of layers: matmul, bias, gelu, softmax, layer norm and a residual, with weights as inputs."""
    inputs: list[dict[str, object]] = [{"name": "x", "shape": [128, 256], "dtype": "float16"}]
    nodes: list[dict[str, object]] = []
    last = "x"
    for layer in range(_LAYERS):
        weight, bias = f"w{layer}", f"b{layer}"
        inputs.append({"name": weight, "shape": [256, 256], "dtype": "float16"})
        inputs.append({"name": bias, "shape": [256], "dtype": "float16"})
        steps: list[tuple[str, list[str], dict[str, object]]] = [
            ("linear", [last, weight, bias], {}),
            ("gelu", [f"n{layer}.0"], {}),
            ("softmax", [f"n{layer}.1"], {"dim": -1}),
            ("add", [f"n{layer}.2", last], {}),
            ("layer_norm", [f"n{layer}.3"], {"normalized_shape": [256]}),
        ]
        for number, (op, operands, attributes) in enumerate(steps):
            nodes.append({"name": f"n{layer}.{number}", "op": op, "inputs": operands, "attrs": attributes})
        last = f"n{layer}.{len(steps) - 1}"
    return {"format": "spyrec.graph/1", "name": "layers", "inputs": inputs, "nodes": nodes, "outputs": [last]}


def measure() -> Figures:
    """Return milliseconds per SuperDSC of compiling and of writing the bundle."""
    graph = _graph()
    bundle = spyrec.compile(graph)
    count = sum(len(program.superdscs) for program in bundle.programs)
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "bundle"
        actions = {"compile": lambda: spyrec.compile(graph), "save": lambda: bundle.save(target, force=True)}
        bundle.save(target)
        seconds = interleaved(actions, rounds=5)
    return {
        "superdscs": count,
        "compile_ms_per_superdsc": rounded(seconds["compile"] * 1e3 / count),
        "save_ms_per_superdsc": rounded(seconds["save"] * 1e3 / count),
        "ms_per_superdsc": rounded(sum(seconds.values()) * 1e3 / count),
        "claim": "ms_per_superdsc <= 2",
    }
