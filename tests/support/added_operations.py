"""A program for a copy of the package to which operations were added: each compiles, runs, checks and is right.

``python added_operations.py DIRECTORY`` writes below the directory and fails at the first thing that is not so.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

import spyrec
from spyrec.bundle.program import For
from spyrec.bundle.tile_contract import Combine, LoopKind
from spyrec.cli import main
from spyrec.compare.simulation import Simulation
from spyrec.frontends.op_parameters import stub_text
from spyrec.ir.op_docs import docs_page
from spyrec.ir.opdef import catalogue
from spyrec.ir.ops.reduction import ReductionAttributes
from spyrec.ir.schema import graph_schema

Floats = npt.NDArray[np.floating[Any]]

CORES = 4

ADDED = ("mul_abs", "sumsq")
"""What the copy has and the package has not."""


@dataclass(frozen=True, slots=True)
class Case:
    """A graph of one node ``z``, its inputs, and what NumPy makes of them in float64."""

    name: str
    graph: Mapping[str, Any]
    inputs: Mapping[str, Floats]
    want: Floats


def factors(shape: tuple[int, ...], dtype: str) -> Floats:
    """Return numbers whose products every format holds exactly: the results then are what NumPy says, bit for bit."""
    return np.random.default_rng(15).choice([1.0, -1.0, 0.5, 2.0], shape, p=[0.86, 0.1, 0.02, 0.02]).astype(dtype)


def graph_of(op: str, inputs: Mapping[str, Floats], **members: object) -> dict[str, Any]:
    """Return the graph of one op on tensors."""
    tensors = [{"name": name, "shape": [*value.shape], "dtype": value.dtype.name} for name, value in inputs.items()]
    node: dict[str, object] = {"name": "z", "op": op, "inputs": [*inputs]}
    if "attrs" in members:
        node["attrs"] = members.pop("attrs")
    return {"format": "spyrec.graph/1", "inputs": tensors, "nodes": [node], "outputs": ["z"], **members}


def pair(dtype: str) -> Case:
    """The operation of two tensors, its last stick padded."""
    inputs = {name: factors((6, 100), dtype) * scale for name, scale in (("x", 3), ("y", -5))}
    want = np.multiply(inputs["x"], np.abs(inputs["y"]), dtype=np.float64)
    return Case(f"pair_{dtype}", graph_of(ADDED[0], inputs), inputs, want)


def fold(name: str, dtype: str, shape: tuple[int, ...], dim: int) -> Case:
    """The fold of one dim, of numbers whose squares sum up below 1024: exact in every format."""
    x = np.random.default_rng(15).choice([1.0, -1.0, 2.0], shape, p=[0.86, 0.1, 0.04]).astype(dtype)
    graph = graph_of(ADDED[1], {"x": x}, attrs={"dim": [dim]})
    return Case(f"{name}_{dtype}", graph, {"x": x}, np.sum(x.astype(np.float64) ** 2, axis=dim))


def tiled(dtype: str) -> Case:
    """The fold of a dim that a loop cuts into four."""
    case = fold("tiled", dtype, (6, 256), 1)
    case.graph["inputs"][0]["shape"] = ["A", "K"]
    loops = {"dims": {"A": 6, "K": 256}, "loops": [{"dim": "K", "tiles": 4, "body": ["z"]}]}
    return Case(case.name, {**case.graph, **loops}, case.inputs, case.want)


def masks(bundle: spyrec.Bundle) -> bool:
    """Whether a fold leaves the padding of sticks out."""
    return any(item.masking_constant_id >= 0 for program in bundle.programs for item in program.superdscs.values())


def folds_on_several_cores(bundle: spyrec.Bundle) -> bool:
    """Whether cores have parts of the dim of the sticks, which the first operation folds."""
    return bundle.programs[0].superdscs["sdsc_0.json"].work_slices["out"] > 1


def folds_rows(bundle: spyrec.Bundle) -> bool:
    """Whether the folded dim is another than that of the sticks."""
    return bundle.programs[0].superdscs["sdsc_0.json"].op_func_name.endswith("nonstick")


def has_loop(bundle: spyrec.Bundle) -> bool:
    """Whether a loop stands in the program."""
    return any(isinstance(item, For) for program in bundle.programs for item in program.program.body)


CASES: tuple[tuple[Case, Callable[[spyrec.Bundle], bool]], ...] = (
    (pair("float16"), lambda _: True),
    (pair("float32"), lambda _: True),
    (fold("ragged", "float16", (6, 100), 1), masks),
    (fold("ragged", "float32", (6, 100), 1), masks),
    (fold("cores", "float16", (1, 512), 1), folds_on_several_cores),
    (fold("rows", "float16", (100, 64), 0), folds_rows),
    (tiled("float16"), has_loop),
)
"""Each with what its bundle has to show, so that it is a case of what its name says."""


TILED: Mapping[str, Combine] = {"sum": Combine.SUM, "amax": Combine.MAX, ADDED[1]: Combine.SUM}
"""Folds of which a launch may have parts, the added one among them, and how their parts become one."""


def combinations(op: str) -> list[Combine | None]:
    """Return how a launch joins the parts of a fold."""
    graph = graph_of(op, {"x": factors((6, 128), "float16")}, attrs={"dim": [1]})
    compiled = spyrec.compile(graph, spyrec.CompileOptions(cores=CORES, tile_reductions=True))
    (contract,) = compiled.manifest.tile_contracts.values()
    return [loop.combine for loop in contract.loops if loop.kind is LoopKind.REDUCTION]


def typical_error_of_squares() -> bool:
    """Whether the error of a sum of squares comes from its partial sums: each addition rounds one, 2**-24 doubled."""
    x = np.array([[3.0, -1.0, 0.5, 2.0]])
    partial = [9.0, 10.0, 10.25, 14.25]
    simulation = Simulation(catalogue()[ADDED[1]], ReductionAttributes((1,)), 1.0)
    total, error = simulation.run_with_partial_sums([x])
    assert error is not None
    return total[0] == partial[-1] and bool(np.isclose(error[0], 2.0**-23 * math.hypot(*partial), rtol=1e-12))


def run(case: Case, shows: Callable[[spyrec.Bundle], bool], directory: Path) -> None:
    """Compile, then run and check with either engine."""
    bundle, inputs = directory / case.name, directory / f"{case.name}.npz"
    compiled = spyrec.compile(case.graph, spyrec.CompileOptions(cores=CORES))
    assert shows(compiled), case.name
    compiled.save(bundle)
    np.savez(inputs, allow_pickle=False, **case.inputs)
    for engine in ("fast", "reference"):
        outputs = directory / f"{case.name}.{engine}.npz"
        arguments = ["run", str(bundle), "--inputs", str(inputs), "--outputs", str(outputs)]
        assert main([*arguments, "--check", "--engine", engine]) == 0, case.name
        with np.load(outputs) as found:
            np.testing.assert_array_equal(found["z"].astype(np.float64), case.want, err_msg=f"{case.name} {engine}")


if __name__ == "__main__":
    for planned, shown in CASES:
        run(planned, shown, Path(sys.argv[1]))
    for name, combine in TILED.items():
        assert combinations(name) == [combine], name
    assert typical_error_of_squares()
    missing = [op for op in ADDED for text in (stub_text(), docs_page(), graph_schema()) if op not in text]
    assert not missing, missing
    click.echo(f"{len(CASES)} cases run with {spyrec.__file__}")
