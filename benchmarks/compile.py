"""Compilation per emitted SuperDSC, imports done and no weights at hand.

``layers``: 12 layers, each its own weights.  ``repeated``: a decoder of 16 layers, which planning and code generation
see again and again; claim: at most 1 ms with writing.  ``unlike``: 12 layers of different widths, no kernel like
another; claim: at most 2.5 ms.  ``lookups``: 100,000 look-ups in a dictionary, which cancel the interpreter's speed.
``plain_save``: what a bundle's files cost in any case: the directory that stands there is removed, and the same bytes
are written by calls of the system alone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import spyrec
from benchmarks.growth import decoder
from benchmarks.measure import Figures, interleaved, rounded

_LAYERS = 12
_DECODER_NODES = 224  # of 16 layers
_LOOKUPS = 100_000

Node = tuple[str, str, list[str], dict[str, object]]
"""Name, op, operands, attributes."""


def graph_of(inputs: Mapping[str, Sequence[int]], nodes: Sequence[Node]) -> dict[str, object]:
    """Return the graph of these inputs and nodes, whose last one is its output."""
    return {
        "format": "spyrec.graph/1",
        "name": "layers",
        "inputs": [{"name": name, "shape": list(shape), "dtype": "float16"} for name, shape in inputs.items()],
        "nodes": [
            {"name": name, "op": op, "inputs": operands, "attrs": attributes}
            for name, op, operands, attributes in nodes
        ],
        "outputs": [nodes[-1][0]],
    }


def layers() -> dict[str, object]:
    """Return a chain of layers: matmul, bias, gelu, softmax, layer norm and a residual, with weights as inputs."""
    inputs: dict[str, Sequence[int]] = {"x": (128, 256)}
    nodes: list[Node] = []
    last = "x"
    for layer in range(_LAYERS):
        inputs |= {f"w{layer}": (256, 256), f"b{layer}": (256,)}
        step: list[Node] = [
            (f"n{layer}.0", "linear", [last, f"w{layer}", f"b{layer}"], {}),
            (f"n{layer}.1", "gelu", [f"n{layer}.0"], {}),
            (f"n{layer}.2", "softmax", [f"n{layer}.1"], {"dim": -1}),
            (f"n{layer}.3", "add", [f"n{layer}.2", last], {}),
            (f"n{layer}.4", "layer_norm", [f"n{layer}.3"], {"normalized_shape": [256]}),
        ]
        nodes += step
        last = nodes[-1][0]
    return graph_of(inputs, nodes)


def unlike() -> dict[str, object]:
    """Return the same chain with another width in each layer, and so without the residual."""
    inputs: dict[str, Sequence[int]] = {"x": (128, 128)}
    nodes: list[Node] = []
    last = "x"
    for layer in range(_LAYERS):
        before, width = 64 * (layer + 2), 64 * (layer + 3)
        inputs |= {f"w{layer}": (width, before), f"b{layer}": (width,)}
        step: list[Node] = [
            (f"n{layer}.0", "linear", [last, f"w{layer}", f"b{layer}"], {}),
            (f"n{layer}.1", "gelu", [f"n{layer}.0"], {}),
            (f"n{layer}.2", "softmax", [f"n{layer}.1"], {"dim": -1}),
            (f"n{layer}.3", "layer_norm", [f"n{layer}.2"], {"normalized_shape": [width]}),
        ]
        nodes += step
        last = nodes[-1][0]
    return graph_of(inputs, nodes)


def _looking_up() -> None:
    known = {"name": 1}
    for _ in range(_LOOKUPS):
        known["name"]


class _PlainFiles:
    """The files of a saved bundle, to be written again without anything that a bundle's writing adds."""

    def __init__(self, saved: Path, target: Path) -> None:
        paths = [path for path in saved.rglob("*") if path.is_file()]
        self._files = {f"{target}/{path.relative_to(saved).as_posix()}": path.read_bytes() for path in paths}
        self._folders = sorted({name.rpartition("/")[0] for name in self._files})
        self._target = target

    def save(self) -> None:
        """Write all files in place of those that are there."""
        shutil.rmtree(self._target, ignore_errors=True)
        for folder in self._folders:
            Path(folder).mkdir(parents=True, exist_ok=True)
        for name, content in self._files.items():
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            os.write(handle, content)
            os.close(handle)


def measure() -> Figures:
    """Return milliseconds per SuperDSC of compiling and of writing, and both in units of a thousand look-ups."""
    graphs = {"layers": layers(), "repeated": decoder(_DECODER_NODES), "unlike": unlike()}
    bundles = {name: spyrec.compile(graph) for name, graph in graphs.items()}
    counts = {name: sum(len(program.superdscs) for program in bundle.programs) for name, bundle in bundles.items()}
    with tempfile.TemporaryDirectory() as directory:
        actions: dict[str, Callable[[], object]] = {"lookups": _looking_up}
        for name, bundle in bundles.items():
            target = Path(directory) / name
            bundle.save(target)
            actions[f"{name} compile"] = lambda graph=graphs[name]: spyrec.compile(graph)
            actions[f"{name} save"] = lambda bundle=bundle, target=target: bundle.save(target, force=True)
            actions[f"{name} plain save"] = _PlainFiles(target, Path(directory) / f"{name}.plain").save
        seconds = interleaved(actions, rounds=5)
    figures: Figures = {"superdscs": counts}
    per_lookup = seconds["lookups"] / _LOOKUPS
    for name, count in counts.items():
        compiling, saving, plain = (seconds[f"{name} {what}"] / count for what in ("compile", "save", "plain save"))
        figures |= {
            f"{name}_compile_ms": rounded(compiling * 1e3),
            f"{name}_save_ms": rounded(saving * 1e3),
            f"{name}_plain_save_ms": rounded(plain * 1e3),
            f"{name}_save_over_plain": rounded(saving / plain),
            f"{name}_ms_per_superdsc": rounded((compiling + saving) * 1e3),
            f"{name}_over_lookups": rounded((compiling + saving) / per_lookup / 1e3),
        }
    return {**figures, "claim": "repeated_ms_per_superdsc <= 1, unlike_ms_per_superdsc <= 2.5"}
