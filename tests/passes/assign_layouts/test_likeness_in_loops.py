"""Layers in loops of their own are planned as one: the loops' numbers are no part of what is asked of a kernel."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spyrec.front import schedule
from spyrec.ir.kernel import Kernel, KernelGraph
from spyrec.options import CompileOptions
from spyrec.passes.assign_layouts import operand_costs, realize
from spyrec.passes.assign_layouts.shared_copies import SharedReaders
from spyrec.passes.divide_work import joint
from spyrec.passes.planning import shares
from spyrec.passes.planning.divisions import Division
from tests.support.graphs import JsonObject, graph_data, node, tensor


def _layers(count: int) -> JsonObject:
    """Return layers that are alike, each in a loop of its own; weights are read both ways round, by a copy."""
    x: JsonObject = {"name": "x", "shape": ["A", 256], "dtype": "float16"}
    inputs, nodes, loops, last = [x], list[JsonObject](), list[JsonObject](), "x"
    for layer in range(count):
        inputs.append(tensor(f"w{layer}", 256, 256))
        names = [f"{name}{layer}" for name in ("turned", "product", "back", "sum")]
        turned, product, back, total = names
        nodes += [
            node(turned, "transpose", f"w{layer}", dim0=0, dim1=1),
            node(product, "matmul", last, turned),
            node(back, "matmul", product, f"w{layer}"),
            node(total, "add", back, last),
        ]
        loops.append({"dim": "A", "tiles": 4, "body": names[1:]})
        last = total
    return graph_data(inputs, nodes, [last], dims={"A": 512}, loops=loops)


@contextmanager
def _counted(monkeypatch: pytest.MonkeyPatch) -> Generator[list[str]]:
    """Count searches for copies, joint tables of readers, and kernels whose shares are found out."""
    asked: list[str] = []
    join = SharedReaders.factor

    def searched(source: realize.Source, accept: realize.Accept) -> realize.Realization | None:
        asked.append("copies")
        return realize.realize(source, accept)

    def shared(kernel: Kernel, position: int, divisions: list[Division]) -> object:
        asked.append("shares")
        return shares.shares_of(kernel, position, divisions)

    def joined(self: SharedReaders, sizes: list[int], *, free_copies: bool = False) -> object:
        asked.append("tables")
        return join(self, sizes, free_copies=free_copies)

    with monkeypatch.context() as patch:
        patch.setattr(operand_costs, "realize", searched)
        patch.setattr(joint, "shares_of", shared)
        patch.setattr(SharedReaders, "factor", joined)
        yield asked


def test_what_is_asked_of_layers_in_loops_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[dict[str, int]] = []
    for layers in (3, 7):
        with _counted(monkeypatch) as asked:
            kernels = schedule(_layers(layers), CompileOptions(), Path())
        assert isinstance(kernels, KernelGraph)
        assert len(kernels.loops) == layers
        counts.append({what: asked.count(what) for what in dict.fromkeys(asked)})
    few, many = counts
    assert few.keys() == {"copies", "shares", "tables"}
    assert many == few
