"""Symbolic dims: one bundle for every extent, loops whose trips a run gives, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.bundle.bundle import Bundle
from spyrec.diagnostics import SpyrecError
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node
from tests.support.random_loops import looped_graph
from tests.support.symbolic import Arrays, compiled_or_refused, cut_inputs, with_symbolic_dim


@pytest.mark.parametrize("part", range(4))
@examples(15)
@given(seed=st.integers(0, 1 << 36))
def test_one_bundle_is_right_for_every_extent(part: int, seed: int) -> None:
    rng = random.Random(seed * 4 + part)
    data, arrays = looped_graph(seed * 4 + part)
    data, name = with_symbolic_dim(data, rng)
    bundle = compiled_or_refused(data)
    if bundle is None:
        return
    dim = bundle.manifest.symbolic_dims[name]
    for extent in {dim.multiple_of, dim.largest, rng.randrange(0, dim.largest, dim.multiple_of) + dim.multiple_of}:
        inputs = cut_inputs(data, arrays, name, extent)
        result = spyrec.run(bundle, inputs, RunOptions(check=True, sanitize="all"))
        assert result.is_ok, (extent, result.check)
        assert result.sanitizer == ()


def _rows(nodes: list[JsonObject], *, multiple_of: int = 1, **more: object) -> JsonObject:
    data = graph_data(
        [{"name": name, "shape": ["S", "B"], "dtype": "float16"} for name in "ab"],
        nodes,
        [str(nodes[-1]["name"])],
        dims={
            "S": {"min": multiple_of, "max": 1000 // multiple_of * multiple_of, "multiple_of": multiple_of},
            "B": 256,
        },
    )
    return {**data, **more}


def _executions(bundle: Bundle, rows: int) -> list[int]:
    inputs = {name: np.ones((rows, 256), np.float16) for name in "ab"}
    return [item.executions for item in spyrec.run(bundle, inputs, RunOptions(sanitize="all", check=True)).stats.ops]


def test_a_loop_goes_round_once_for_every_tile_that_a_run_has() -> None:
    data = _rows([node("y", "add", "a", "b")], loops=[{"dim": "S", "tile_size": 128, "body": ["y"]}])
    bundle = spyrec.compile(data)
    # 1000 rows are seven tiles of 128 and a rest of 104, which stands behind the loop
    assert [_executions(bundle, rows) for rows in (1, 128, 129, 896, 1000)] == [[1, 1], [1, 1], [2, 1], [7, 1], [7, 1]]
    assert bundle.manifest.plan[0].trip_counts["S_by_128_value"].max_trips == 7


def test_the_manifest_keeps_what_a_run_may_choose(tmp_path: object) -> None:
    bundle = spyrec.compile(_rows([node("y", "add", "a", "b")]))
    directory = f"{tmp_path}/bundle"
    bundle.save(directory)
    loaded = spyrec.Bundle.load(directory)
    # the file holds times to a picosecond
    assert replace(loaded.manifest, figures=None) == replace(bundle.manifest, figures=None)
    assert loaded.manifest.figures is not None
    assert bundle.manifest.figures is not None
    assert loaded.manifest.figures.tensors == bundle.manifest.figures.tensors
    assert loaded.manifest.arguments[0].symbolic_axes == ("S", None)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ({"a": (1001, 256), "b": (1001, 256)}, "S (1 to 1000)"),
        ({"a": (10, 255), "b": (10, 256)}, "[S (1 to 1000), 256]"),
        ({"a": (10, 256), "b": (11, 256)}, 'dim "S" has 10 elements in run input "a" and 11 in run input "b"'),
        ({"a": (10,), "b": (10, 256)}, "S (1 to 1000)"),
    ],
)
def test_shapes_that_a_run_may_not_have_are_refused(shapes: Mapping[str, tuple[int, ...]], text: str) -> None:
    bundle = spyrec.compile(_rows([node("y", "add", "a", "b")]))
    with pytest.raises(SpyrecError) as caught:
        spyrec.run(bundle, {name: np.ones(shape, np.float16) for name, shape in shapes.items()})
    assert caught.value.diagnostics[0].code == "SPY0762"
    assert text in caught.value.diagnostics[0].message


REFUSED: list[tuple[str, JsonObject]] = [
    ("SPY0425", _rows([node("y", "mean", "a", dim=0)])),
    (
        "SPY0425",
        _rows([node("f", "to", "a", dtype="float32"), node("g", "mul", "f", "f"), node("y", "sum", "g", dim=0)]),
    ),
    (
        "SPY0425",
        _rows([node("y", "mean", "a", dim=0)], multiple_of=64, loops=[{"dim": "S", "tile_size": 64, "body": ["y"]}]),
    ),
    (
        "SPY0425",
        _rows([node("y", "sum", "a", dim=0)], multiple_of=100, loops=[{"dim": "S", "tile_size": 64, "body": ["y"]}]),
    ),
    ("SPY0426", _rows([node("y", "reshape", "a", shape=[-1])])),
    ("SPY0426", _rows([node("y", "slice", "a", dim=0, start=1, end=5)])),
    ("SPY0426", _rows([node("y", "cat", "a", "b", dim=0)])),
    ("SPY0134", _rows([node("y", "add", "a", "b")], loops=[{"dim": "S", "tiles": 4, "body": ["y"]}])),
]


@pytest.mark.parametrize(("code", "data"), REFUSED, ids=[f"{code}-{place}" for place, (code, _) in enumerate(REFUSED)])
def test_what_would_mix_in_what_lies_behind_the_extent_is_refused(code: str, data: JsonObject) -> None:
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(data)
    found = caught.value.diagnostics[0]
    assert found.code == code
    assert found.hint
    assert found.location is not None


@pytest.mark.parametrize("op", ["mean", "layer_norm", "rms_norm"])
def test_the_refusal_of_a_mean_over_a_symbolic_dim_names_the_op_and_what_to_do(op: str) -> None:
    attributes: JsonObject = {"dim": -1} if op == "mean" else {"normalized_shape": ["S"]}
    x: JsonObject = {"name": "x", "shape": [8, "S"], "dtype": "float16"}
    dims: JsonObject = {"S": {"min": 64, "max": 256, "multiple_of": 64}}
    loops = [{"dim": "S", "tile_size": 64, "body": ["y"]}]
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(graph_data([x], [node("y", op, "x", **attributes)], ["y"], dims=dims, loops=loops))
    found = caught.value.diagnostics[0]
    assert found.code == "SPY0425"
    assert found.message.startswith(f'{op} divides by the extent of the symbolic dim "S"')
    assert "input" in (found.hint or "")


def test_a_sum_times_an_input_is_the_mean_over_a_symbolic_dim() -> None:
    inputs: list[JsonObject] = [
        {"name": "x", "shape": ["S", 128], "dtype": "float16"},
        {"name": "r", "shape": [], "dtype": "float16"},
    ]
    nodes = [node("s", "sum", "x", dim=0), node("y", "mul", "s", "r")]
    dims: JsonObject = {"S": {"min": 64, "max": 256, "multiple_of": 64}}
    bundle = spyrec.compile(
        graph_data(inputs, nodes, ["y"], dims=dims, loops=[{"dim": "S", "tile_size": 64, "body": ["s"]}])
    )
    for extent in (64, 128, 256):
        x = np.random.default_rng(extent).integers(-8, 9, (extent, 128)).astype(np.float16)
        arrays: Arrays = {"x": x, "r": np.full((), 1 / extent, np.float16)}
        result = spyrec.run(bundle, arrays, RunOptions(check=True, sanitize="all"))
        assert result.is_ok, result.check
        found = result.outputs["y"].astype(np.float64)
        np.testing.assert_allclose(found, x.astype(np.float64).mean(axis=0), atol=2.0**-9)


def test_a_loop_over_a_symbolic_dim_is_not_unrolled() -> None:
    data = _rows([node("y", "add", "a", "b")], loops=[{"dim": "S", "tile_size": 128, "body": ["y"]}])
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(data, CompileOptions(loops="unroll"))
    assert caught.value.diagnostics[0].code == "SPY0533"
