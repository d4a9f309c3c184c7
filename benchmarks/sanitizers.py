"""What ``--sanitize all`` costs beside a plain run; claim: at most 5 times.  ``python -m benchmarks sanitizers``.

Measured on digits, on the narrow Granite block, on loops of tiny operations (a stick or a few per core in thousands of
dispatches) and on a chain of which half of an input is undefined.  And 1,000 random right programs under all
sanitizers; claim: no finding.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

import numpy as np

import spyrec
from benchmarks.device_launch import DeviceLaunch, HostArray
from benchmarks.measure import Figures, interleaved, rounded
from examples.granite_block import make_graph
from spyrec.front import OpenedBundle, opened
from spyrec.runtime.inputs.random_inputs import random_inputs
from tests.support.random_graphs import random_graph

_DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits" / "graph.json"
_ROUNDS = 7
_PROGRAMS = 1000

JsonObject = dict[str, object]


def _cost(bundle: spyrec.Bundle) -> Figures:
    """Return the milliseconds of runs of a bundle that is ready: plain, each sanitizer alone, all together."""
    kinds = (None, "bounds", "init", "lx", "race", "gap", "all")
    with ExitStack() as held:
        ready = {str(kind): held.enter_context(_ready(bundle, kind)) for kind in kinds}
        inputs = random_inputs(ready["all"].inputs, 1)
        candidates = {name: (lambda r=run: r.prepared.run(inputs)) for name, run in ready.items()}
        seconds = interleaved(candidates, _ROUNDS)
        watched = ready["all"].run(inputs)
    figures: Figures = {f"{name}_ms": rounded(value * 1e3) for name, value in seconds.items() if name != "None"}
    assert not watched.sanitizer
    return {"plain_ms": rounded(seconds["None"] * 1e3), **figures, "ratio": rounded(seconds["all"] / seconds["None"])}


@contextmanager
def _ready(bundle: spyrec.Bundle, sanitize: str | None) -> Generator[OpenedBundle]:
    with opened(bundle, spyrec.RunOptions(sanitize=sanitize)) as found:
        assert isinstance(found, OpenedBundle)
        yield found


def _graph(sizes: Mapping[str, int], names: Sequence[str], nodes: Sequence[JsonObject], *tiles: int) -> JsonObject:
    """Return a graph over inputs of all dims whose nodes stand in a nest of loops, so many tiles of the first dims."""
    inputs = [{"name": name, "shape": list(sizes), "dtype": "float16"} for name in names]
    loops: list[object] = [node["name"] for node in nodes]
    for dim, count in reversed(list(zip(sizes, tiles, strict=False))):
        loops = [{"dim": dim, "tiles": count, "body": loops}]
    graph: JsonObject = {"format": "spyrec.graph/1", "name": "tiny", "dims": dict(sizes), "inputs": inputs}
    return {**graph, "nodes": list(nodes), "loops": loops if tiles else [], "outputs": [nodes[-1]["name"]]}


def _chain(rows: int, columns: int, *tiles: int) -> JsonObject:
    nodes: list[JsonObject] = [
        {"name": "y", "op": "add", "inputs": ["a", "b"]},
        {"name": "z", "op": "mul", "inputs": ["y", "c"]},
        {"name": "w", "op": "relu", "inputs": ["z"]},
    ]
    return _graph({"A": rows, "B": columns}, "abc", nodes, *tiles)


def _softmax(rows: int, columns: int, *tiles: int) -> JsonObject:
    node: JsonObject = {"name": "p", "op": "softmax", "inputs": ["a"], "attrs": {"dim": -1}}
    return _graph({"A": rows, "B": columns}, "a", [node], *tiles)


def _inputs(data: JsonObject, names: Sequence[str]) -> dict[str, HostArray]:
    generator = np.random.Generator(np.random.PCG64(0))
    shape = tuple(cast("Mapping[str, int]", data["dims"]).values())
    return {name: generator.standard_normal(shape, dtype=np.float32).astype(np.float16) for name in names}


def _launches(data: JsonObject, names: Sequence[str], cores: int) -> Figures:
    """Return the microseconds of a dispatch in launches of a program with loops, plain and under all sanitizers."""
    bundle, arrays = spyrec.compile(data, spyrec.CompileOptions(cores=cores)), _inputs(data, names)
    plain, watched = DeviceLaunch(bundle, arrays), DeviceLaunch(bundle, arrays, "all")
    seconds = interleaved({"plain": plain.launch, "all": watched.launch}, _ROUNDS, statistic=min)
    assert not watched.findings
    executions = plain.relaunch()
    figures = {f"{name}_us_per_dispatch": rounded(value / executions * 1e6) for name, value in seconds.items()}
    return {"dispatches": executions, **figures, "ratio": rounded(seconds["all"] / seconds["plain"])}


def tiny_operations() -> Figures:
    """Return the cost in loops of operations on a stick or a few per core."""
    found: Figures = {}
    for cores in (1, 32):
        found[f"pointwise_{cores}_cores"] = _launches(_chain(64 * cores, 2048, 64, 32), "abc", cores)
        found[f"softmax_{cores}_cores"] = _launches(_softmax(256 * cores, 256, 256), "a", cores)
    return found


def undefined_inputs() -> Figures:
    """Return the cost of a chain where half of one input is undefined; nothing is reported before results are read."""
    data = _chain(1024, 4096)
    bundle, arrays = spyrec.compile(data, spyrec.CompileOptions(cores=32)), _inputs(data, "abc")
    plain, watched = DeviceLaunch(bundle, arrays), DeviceLaunch(bundle, arrays, "all")
    watched.forget_half("a")
    seconds = interleaved({"plain": plain.launch, "all": watched.launch}, _ROUNDS, statistic=min)
    figures: Figures = {f"{name}_ms": rounded(value * 1e3) for name, value in seconds.items()}
    return {**figures, "ratio": rounded(seconds["all"] / seconds["plain"])}


def _silence(programs: int) -> Figures:
    """Return how many random right programs ran under all sanitizers, and the seeds of those with findings."""
    noisy: list[int] = []
    refused: list[int] = []
    for seed in range(programs):
        graph, data = random_graph(seed)
        options = spyrec.CompileOptions(cores=(1, 2, 8, 32)[seed % 4])
        try:
            bundle = spyrec.compile(graph, options)
        except spyrec.SpyrecError:  # another benchmark's matter: nothing was run
            refused.append(seed)
            continue
        if spyrec.run(bundle, data, spyrec.RunOptions(sanitize="all")).sanitizer:
            noisy.append(seed)
    return {"programs": programs - len(refused), "with_findings": noisy, "not_compiled": refused}


def measure() -> Figures:
    """Return the cost on both models, on tiny operations and undefined inputs, and the silence on right programs."""
    digits = _cost(spyrec.compile(_DIGITS))
    with tempfile.TemporaryDirectory() as directory:
        granite = _cost(spyrec.compile(make_graph.write(Path(directory), make_graph.NARROW)))
    models: Figures = {"digits": digits, "granite_narrow": granite}
    others: Figures = {"tiny_operations": tiny_operations(), "undefined_inputs": undefined_inputs()}
    return {**models, **others, "random": _silence(_PROGRAMS), "claim": "ratio <= 5"}


PARTS: Mapping[str, Callable[[], Figures]] = {"tiny": tiny_operations, "undefined": undefined_inputs}
