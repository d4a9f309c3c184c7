"""``prod``: the device folds products along dims that do not lie in the sticks, and along no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spyrec
from spyrec.hardware.target import TARGETS

SHAPES = [((6, 70), -1), ((6, 70), 0), ((3, 5, 64), 2), ((2, 130, 3), 1), ((9,), 0), ((4, 1), 0), ((1, 7), 1)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_products_are_folded_beside_the_sticks(shape: tuple[int, ...], dim: int, dtype: str, target: str) -> None:
    graph: dict[str, Any] = {
        "format": "spyrec.graph/1",
        "name": "g",
        "inputs": [{"name": "x", "shape": list(shape), "dtype": dtype}],
        "nodes": [
            {"name": "r", "op": "abs", "inputs": ["x"]},
            {"name": "y", "op": "prod", "inputs": ["r"], "attrs": {"dim": [dim]}},
        ],
        "outputs": ["y"],
    }
    bundle = spyrec.compile(graph, spyrec.CompileOptions(target=TARGETS[target]))
    names = [dsc.op_func_name for program in bundle.programs for dsc in program.superdscs.values()]
    assert "prodnonstick" in names
    assert "prod" not in names
    x = (2.0 ** np.random.default_rng(shape).integers(-1, 2, shape)).astype(dtype)
    result = spyrec.run(bundle, {"x": x}, spyrec.RunOptions(check=True))
    assert result.is_ok
    np.testing.assert_array_equal(result.outputs["y"], x.astype(np.float64).prod(axis=dim).astype(dtype))
