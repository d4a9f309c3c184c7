"""How the time of compiling, and of looking at bundles, grows: ``python -m benchmarks growth`` or ``growth:large``.

CPU time of one process; ``exponent`` is that of the power of the number of nodes (SuperDSCs) that fits the points best:
1 is linear.  ``largest_mb``: memory that the process had at most until then.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import spyrec
from benchmarks.measure import Figures, rounded
from spyrec.cli import main

_SMALL, _LARGE = (400, 800, 1600), (1000, 3000, 10_000)
_BUNDLES, _LARGE_BUNDLES = (250, 500, 1000), (250, 1000, 4000)
_REPORTS = (112, 224, 448, 896)  # nodes; about 2.4 operations each
_EXTENT = 64
_TILED = (504, 8192, 1024)  # nodes, tokens and width of a decoder that does not fit

Data = dict[str, object]


def _tensor(name: str, *shape: int) -> Data:
    return {"name": name, "shape": list(shape), "dtype": "float16"}


def _graph(inputs: Sequence[Data], nodes: Sequence[Data], outputs: Sequence[str]) -> Data:
    named = {"format": "spyrec.graph/1", "name": "growth"}
    return {**named, "inputs": list(inputs), "nodes": list(nodes), "outputs": list(outputs)}


def _node(name: str, op: str, *inputs: str, **attributes: object) -> Data:
    return {"name": name, "op": op, "inputs": list(inputs), **({"attrs": attributes} if attributes else {})}


def chain(count: int, extent: int = _EXTENT) -> Data:
    """Return additions, each of the one before."""
    names = ["x", *(f"y{number}" for number in range(count))]
    nodes = [_node(names[number + 1], "add", names[number], "w") for number in range(count)]
    return _graph([_tensor("x", extent, extent), _tensor("w", extent, extent)], nodes, names[-1:])


def wide(count: int) -> Data:
    """Return additions that have nothing to do with each other but an input, joined by a tree."""
    inputs = [_tensor(name, _EXTENT, _EXTENT) for name in ("x", "w")]
    leaves = (count + 1) // 2
    waiting = [f"y{number}" for number in range(leaves)]
    nodes = [_node(name, "add", "x", "w") for name in waiting]
    while len(waiting) > 1:
        joined = [f"y{len(nodes) + place}" for place in range(len(waiting) // 2)]
        nodes += [_node(name, "add", *waiting[2 * place : 2 * place + 2]) for place, name in enumerate(joined)]
        waiting = [*joined, *waiting[2 * len(joined) :]]
    return _graph(inputs, nodes, waiting)


def decoder(count: int, tokens: int = _EXTENT, width: int = 128) -> Data:
    """Return layers of a transformer, 14 nodes each."""
    inputs, nodes, hidden = [_tensor("x", tokens, width)], list[Data](), "x"
    for layer in range(-(-count // 14)):
        shapes = dict.fromkeys(("wq", "wk", "wv", "wo"), (width, width))
        shapes |= {"up": (width, 4 * width), "down": (4 * width, width), "scale": (width,)}
        inputs += [_tensor(f"{name}{layer}", *shape) for name, shape in shapes.items()]
        steps: tuple[tuple[str, str, tuple[str, ...], dict[str, object]], ...] = (
            ("rms", "rms_norm", (hidden, "scale"), {"eps": 1e-5, "normalized_shape": [width]}),
            ("q", "matmul", ("rms", "wq"), {}),
            ("k", "matmul", ("rms", "wk"), {}),
            ("v", "matmul", ("rms", "wv"), {}),
            ("turned", "transpose", ("k",), {"dim0": 0, "dim1": 1}),
            ("scores", "matmul", ("q", "turned"), {}),
            ("shares", "softmax", ("scores",), {"dim": -1}),
            ("mixed", "matmul", ("shares", "v"), {}),
            ("out", "matmul", ("mixed", "wo"), {}),
            ("first", "add", (hidden, "out"), {}),
            ("wider", "matmul", ("first", "up"), {}),
            ("bent", "relu", ("wider",), {}),
            ("back", "matmul", ("bent", "down"), {}),
            ("last", "add", ("first", "back"), {}),
        )
        for name, op, operands, attributes in steps:
            named = [item if item == hidden else f"{item}{layer}" for item in operands]
            nodes.append(_node(f"{name}{layer}", op, *named, **attributes))
        hidden = f"last{layer}"
    return _graph(inputs, nodes, [hidden])


_SHAPES: Mapping[str, Callable[[int], Data]] = {"chain": chain, "wide": wide, "decoder": decoder}


def power(sizes: Sequence[int], seconds: Sequence[float]) -> Figures:
    """Return the points, and the exponent of the power of the size that fits them best."""
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    points = {str(size): rounded(value, 3) for size, value in zip(sizes, seconds, strict=True)}
    largest_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"cpu_seconds": points, "exponent": rounded(exponent, 3), "largest_mb": largest_kb >> 10}


def _cpu_seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def _compiles(sizes: Sequence[int]) -> Figures:
    for build in _SHAPES.values():
        spyrec.compile(build(20))  # what is imported and compiled once
    return {name: power(sizes, [_compile_seconds(build(size)) for size in sizes]) for name, build in _SHAPES.items()}


def _compile_seconds(graph: Data) -> float:
    return _cpu_seconds(lambda: spyrec.compile(graph))


def _looks(sizes: Sequence[int]) -> Figures:
    """Time the verbs over bundles of chains with ``sizes`` SuperDSCs."""
    seconds: dict[str, list[float]] = {}
    with TemporaryDirectory() as folder:
        inputs = Path(folder) / "inputs.npz"
        ones = np.ones((_EXTENT, _EXTENT), np.float16)
        np.savez(inputs, x=ones, w=ones)
        for size in (20, *sizes):
            path = Path(folder) / str(size)
            spyrec.compile(chain(size)).save(path)
            lines = {
                "check": ["check", str(path)],
                "run": ["run", str(path), "--inputs", str(inputs)],
                "diff": ["diff", str(path), str(path)],
                "inspect-layout": ["inspect-layout", str(path)],
            }
            for name, line in lines.items():
                seconds.setdefault(name, []).append(_cpu_seconds(lambda words=line: _said_nothing(words)))
    return {name: power(sizes, found[1:]) for name, found in seconds.items()}


def _said_nothing(line: list[str]) -> None:
    with redirect_stdout(StringIO()):
        code = main(line)
    assert code == 0, line


def small() -> Figures:
    """Graphs of 400 to 1,600 nodes."""
    return _compiles(_SMALL)


def large() -> Figures:
    """Graphs of 1,000 to 10,000 nodes: minutes."""
    return _compiles(_LARGE)


def tiled() -> Figures:
    """A decoder of 504 nodes whose tensors do not fit the scratchpads, planned again in tiles; claim: within 2 s."""
    graph = decoder(*_TILED)
    spyrec.compile(decoder(28, *_TILED[1:]))  # what is imported and compiled once
    seconds = min(_compile_seconds(graph) for _ in range(3))
    return {"cpu_seconds": rounded(seconds, 3), "nodes": _TILED[0], "claim": "cpu_seconds <= 2"}


def bundles() -> Figures:
    """``check``, ``run``, ``diff`` and ``inspect-layout`` of bundles of 250 to 1,000 SuperDSCs, cold."""
    return _looks(_BUNDLES)


def large_bundles() -> Figures:
    """The same up to 4,000 SuperDSCs."""
    return _looks(_LARGE_BUNDLES)


def reports() -> Figures:
    """``spyrec report --json`` of decoders of 250 to 2,000 operations: seconds, and bytes of the object."""
    from spyrec.report.build import Source, report_of
    from spyrec.report.report_file import report_text

    seconds: list[float] = []
    counts: list[int] = []
    sizes: list[int] = []
    with TemporaryDirectory() as folder:
        for nodes in (28, *_REPORTS):
            path = Path(folder) / str(nodes)
            spyrec.compile(decoder(nodes)).save(path)
            start = time.process_time()
            report = report_of(Source(path))
            sizes.append(len(report_text(report)))
            seconds.append(time.process_time() - start)
            counts.append(len(report.ops))
    found = power(counts[1:], seconds[1:])
    return {**found, "json_bytes": dict(zip(map(str, counts[1:]), sizes[1:], strict=True)), "claim": "exponent <= 1.2"}


PARTS: Mapping[str, Callable[[], Figures]] = {
    "compile": small,
    "tiled": tiled,
    "bundles": bundles,
    "reports": reports,
    "large": large,
    "large-bundles": large_bundles,
}
"""Name of a part -> what measures it."""


def measure() -> Figures:
    """Return the figures of the parts that take seconds."""
    return {"compile": small(), "tiled": tiled(), "bundles": bundles(), "reports": reports()}
