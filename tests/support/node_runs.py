"""Graphs of one node, compiled, run and checked: what an op gives end to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

import spyrec

Array = npt.NDArray[np.generic]
Found = npt.NDArray[np.float64]
"""What is computed: numbers of any dtype, read as floats."""

ONE_ROUNDING = 2.0**-9
"""Relative error of one DLFloat16 rounding: nine bits behind the first, to the nearest."""


def one_node_graph(
    op: str, operands: Sequence[Array | float | None], attributes: Mapping[str, object], results: int | None = None
) -> dict[str, object]:
    """Return the graph file of one node over inputs ``x0``, ``x1``, ...; ``results``: how many ``outputs`` names."""
    inputs = [
        {"name": f"x{index}", "shape": list(item.shape), "dtype": str(item.dtype)}
        for index, item in enumerate(operands)
        if isinstance(item, np.ndarray)
    ]
    given = [f"x{index}" if isinstance(item, np.ndarray) else item for index, item in enumerate(operands)]
    node: dict[str, object] = {"name": "y", "op": op, "inputs": given, "attrs": dict(attributes)}
    names = ["y"]
    if results is not None:
        names = [f"y{index}" for index in range(results)]
        node["outputs"] = names
    return {"format": "spyrec.graph/1", "name": "one", "inputs": inputs, "nodes": [node], "outputs": names}


def run_node(
    op: str, operands: Sequence[Array | float | None], attributes: Mapping[str, object], results: int | None = None
) -> tuple[Found, ...]:
    """Return the results of one node, as the toolchain computes them; each has passed its check."""
    graph = one_node_graph(op, operands, attributes, results)
    inputs = {f"x{index}": item for index, item in enumerate(operands) if isinstance(item, np.ndarray)}
    outcome = spyrec.run(spyrec.compile(graph), inputs, spyrec.RunOptions(check=True))
    assert outcome.check is not None
    assert all(report.ok for report in outcome.check.values()), outcome.check
    return tuple(cast("Found", item) for item in outcome.outputs.values())


def quarters(shape: Sequence[int], seed: int = 0) -> npt.NDArray[np.float64]:
    """Return random quarters from -8 to 8: numbers that every float format of the device holds."""
    generator = np.random.default_rng(seed)
    return generator.integers(-32, 33, tuple(shape)) / 4.0
