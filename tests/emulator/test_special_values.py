"""Infinities and NaN are numbers of the device: their sums are what IEEE 754 says, and nobody is warned of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec

SHAPE = (4, 128)
SPECIAL = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0]
WANTED = {"sum": np.sum, "amax": np.max, "amin": np.min}


def bundle_of(op: str, dim: int, dtype: str, pins: Mapping[str, int]) -> spyrec.Bundle:
    """Compile one reduction, divided among cores as pinned."""
    node = {"name": "y", "op": op, "inputs": ["x"], "attrs": {"dim": dim}, "work_division": dict(pins)}
    given = {"name": "x", "shape": list(SHAPE), "dtype": dtype}
    return spyrec.compile(
        {"format": "spyrec.graph/1", "name": "g", "inputs": [given], "nodes": [node], "outputs": ["y"]}
    )


BUNDLES = {
    (op, dim, dtype): bundle_of(op, dim, dtype, {"reduce.0": 4 if dim == 0 or dtype == "float32" else 2})
    for op in WANTED
    for dim in (0, 1)
    for dtype in ("float16", "float32")
    if (op, dtype) == ("sum", "float32") or dim == 0
}
"""Reductions whose partial results cores combine."""


@settings(max_examples=8)
@given(values=st.lists(st.sampled_from(SPECIAL), min_size=16, max_size=16), seed=st.integers(0, 99))
@pytest.mark.parametrize("key", BUNDLES, ids=str)
def test_a_reduction_of_special_values_is_numpys_without_a_warning(
    key: tuple[str, int, str], values: list[float], seed: int
) -> None:
    op, dim, dtype = key
    x: npt.NDArray[np.floating] = np.ones(SHAPE, dtype)
    x.reshape(-1)[np.random.default_rng(seed).integers(0, x.size, len(values))] = values
    with np.errstate(all="ignore"):
        wanted = WANTED[op](x.astype(np.float64), axis=dim)
    got = spyrec.run(BUNDLES[key], {"x": x}, spyrec.RunOptions(numerics="f32")).outputs["y"]
    np.testing.assert_array_equal(got.astype(np.float64), wanted)
