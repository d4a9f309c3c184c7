"""Folds over symbolic dims that no loop tiles, and steps of the host beside symbolic dims."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import RunOptions
from spyrec.bundle.bundle import Bundle
from spyrec.diagnostics import SpyrecError
from spyrec.passes import mask_folds
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node
from tests.support.symbolic import Arrays

_DIMS: JsonObject = {"S": {"min": 1, "max": 130, "multiple_of": 1}, "B": 64}

_FOLDS: dict[str, list[JsonObject]] = {
    "sum of rows": [node("y", "sum", "x", dim=0)],
    "sum in sticks": [node("t", "transpose", "x", dim0=0, dim1=1), node("y", "sum", "t", dim=1)],
    "largest": [node("y", "amax", "x", dim=0)],
    "smallest": [node("y", "amin", "x", dim=0)],
    "all": [node("y", "sum", "x", dim=[0, 1])],
    "softmax": [node("y", "softmax", "x", dim=0)],
    "product": [node("t", "transpose", "x", dim0=0, dim1=1), node("y", "matmul", "t", "x")],
    "both dims": [
        node("t", "transpose", "x", dim0=0, dim1=1),
        node("s", "matmul", "x", "t"),
        node("y", "amax", "s", dim=0),
    ],
    # behind the extent 1 / 0 lies, which no zero of the other operand takes away
    "no numbers behind": [
        node("r", "reciprocal", "x"),
        node("t", "transpose", "x", dim0=0, dim1=1),
        node("y", "matmul", "t", "r"),
    ],
}


def _fold(nodes: list[JsonObject]) -> JsonObject:
    return graph_data([{"name": "x", "shape": ["S", "B"], "dtype": "float16"}], nodes, ["y"], dims=_DIMS)


def _at(data: JsonObject, extent: int) -> JsonObject:
    return {**data, "dims": {**_DIMS, "S": extent}}


def _random(extent: int, seed: int = 0) -> Arrays:
    numbers = np.random.default_rng(seed * 1000 + extent).uniform(0.25, 2.0, (extent, 64))
    return {"x": numbers.astype(np.float16)}


@pytest.mark.parametrize("name", _FOLDS)
def test_a_fold_takes_the_elements_of_the_run_and_no_others(name: str) -> None:
    bundle = spyrec.compile(_fold(_FOLDS[name]))
    for extent in (130, 1, 64, 77):
        result = spyrec.run(bundle, _random(extent), RunOptions(check=True, sanitize="all"))
        assert result.is_ok, (extent, result.check, result.sanitizer)
        assert all(np.isfinite(array.astype(np.float64)).all() for array in result.outputs.values())


def test_a_loaded_model_does_not_see_the_rows_of_the_call_before() -> None:
    bundle = spyrec.compile(_fold(_FOLDS["softmax"]))
    with spyrec.load(bundle) as model:
        for extent in (130, 3, 130, 64, 1):
            fresh = spyrec.run(bundle, _random(extent)).outputs["y"]
            np.testing.assert_array_equal(model(**_random(extent))["y"], fresh)


@examples(10)
@given(seed=st.integers(0, 1 << 16), extent=st.integers(1, 130))
def test_the_largest_element_is_that_of_the_program_of_one_length(seed: int, extent: int) -> None:
    bundle = spyrec.compile(_fold(_FOLDS["largest"]))
    expected = spyrec.run(spyrec.compile(_at(_fold(_FOLDS["largest"]), extent)), _random(extent, seed)).outputs["y"]
    np.testing.assert_array_equal(spyrec.run(bundle, _random(extent, seed)).outputs["y"], expected)


# --- what holds the pass ----------------------------------------------------------------------------------------------


def _planned(data: JsonObject) -> None:
    spyrec.compile(data)


def test_a_fold_that_the_pass_left_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def unmasked(_builder: object, _maker: object, operand: str, _mask: str, _axis: int) -> str:
        return operand

    monkeypatch.setattr(mask_folds, "_masked", unmasked)
    with pytest.raises(SpyrecError) as caught:
        _planned(_fold(_FOLDS["sum of rows"]))
    assert caught.value.diagnostics[0].code == "SPY0425"


def test_a_mask_along_another_axis_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(builder: object, operand: str, mask: str, axis: int, number: float) -> str:
        return right(builder, operand, mask, 1 - axis, number)  # pyright: ignore[reportArgumentType]

    right = mask_folds._chosen  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(mask_folds, "_chosen", wrong)
    data = _fold(
        [node("t", "transpose", "x", dim0=0, dim1=1), node("s", "matmul", "x", "t"), node("y", "amax", "s", dim=0)]
    )
    with pytest.raises(SpyrecError) as caught:
        _planned(data)
    assert caught.value.diagnostics[0].code == "SPY0425"


def test_the_mask_stands_in_the_prologue_of_the_bundle_and_is_made_once() -> None:
    bundle = spyrec.compile(_fold(_FOLDS["softmax"]))
    assert [step.nodes for step in bundle.manifest.host_steps] == [("S.valid",)]
    text = bundle.graph_json
    assert text is not None
    again = spyrec.compile(_read(bundle))
    assert again.graph_json == text
    assert again.manifest.host_steps == bundle.manifest.host_steps


def _read(bundle: Bundle) -> JsonObject:
    import json

    assert bundle.graph_json is not None
    return json.loads(bundle.graph_json)


def test_a_users_value_by_the_name_of_a_mask_is_none() -> None:
    mask: JsonObject = {"name": "S.valid", "shape": ["S"], "dtype": "bool"}
    x: JsonObject = {"name": "x", "shape": ["S", "B"], "dtype": "float16"}
    nodes = [
        node("m", "reshape", "S.valid", shape=["S", 1]),
        node("k", "where", "m", "x", 0.0),
        node("y", "sum", "k", dim=0),
    ]
    bundle = spyrec.compile(graph_data([mask, x], nodes, ["y"], dims=_DIMS))
    chosen = np.arange(70) % 3 == 0
    result = spyrec.run(bundle, {**_random(70), "S.valid": chosen}, RunOptions(check=True, sanitize="all"))
    assert result.is_ok


# --- steps of the host ------------------------------------------------------------------------------------------------


def _embedded() -> spyrec.GraphBuilder:
    """Rows of a table by an index of the run's length, and positions that the host counts."""
    builder = spyrec.GraphBuilder("embedded")
    length = builder.dim("S", min=1, max=130)
    ids = builder.input("ids", (1, length), "int64")
    table = builder.constant("table", np.random.default_rng(0).standard_normal((50, 64)).astype(np.float16))
    ones = builder.op("ones", size=["S"], dtype="int64")
    angles = builder.op("sin", builder.to(builder.op("cumsum", ones, dim=0), dtype="float32"))
    column = builder.reshape(builder.to(angles, dtype="float16"), shape=[1, "S", 1])
    builder.output(builder.gelu(builder.op("embedding", ids, table) + column, name="y"))
    return builder


def test_the_host_computes_at_the_length_of_the_run() -> None:
    bundle = spyrec.compile(_embedded())
    with spyrec.load(bundle) as model:
        for extent in (130, 1, 65, 100):
            ids = np.random.default_rng(extent).integers(0, 50, (1, extent))
            result = spyrec.run(bundle, {"ids": ids}, RunOptions(check=True, sanitize="all"))
            assert result.is_ok, (extent, result.check, result.sanitizer)
            assert result.outputs["y"].shape == (1, extent, 64)
            np.testing.assert_array_equal(model(ids=ids)["y"], result.outputs["y"])


def test_a_step_between_two_programs_takes_what_a_run_has() -> None:
    builder = spyrec.GraphBuilder("between")
    x = builder.input("x", (builder.dim("S", min=1, max=130), 64))
    order = builder.op("cumsum", builder.exp(x), dim=0)
    builder.output(builder.mul(order, 0.5, name="y"))
    bundle = spyrec.compile(builder)
    assert [bool(step.takes) for step in bundle.manifest.host_steps] == [True]
    for extent in (130, 1, 77):
        result = spyrec.run(bundle, _random(extent), RunOptions(check=True, sanitize="all"))
        assert result.is_ok, (extent, result.check)


def test_rows_that_are_written_by_an_index_of_a_runs_length_are_the_hosts() -> None:
    builder = spyrec.GraphBuilder("written")
    length = builder.dim("S", min=1, max=8)
    rows, index = builder.input("rows", (8, 64)), builder.input("index", (length,), "int64")
    source = builder.input("source", (length, 64))
    builder.output(builder.index_copy(rows, index, source, dim=0, name="y"))
    bundle = spyrec.compile(builder)
    given = {"rows": np.ones((8, 64), np.float16), "index": np.array([3, 5]), "source": np.zeros((2, 64), np.float16)}
    written = spyrec.run(bundle, given, RunOptions(check=True)).outputs["y"]
    assert written.sum(axis=1).tolist() == [64, 64, 64, 0, 64, 0, 64, 64]


def test_an_axis_whose_length_is_lost_is_refused() -> None:
    builder = spyrec.GraphBuilder("lost")
    x = builder.input("x", (builder.dim("S", min=1, max=130),), "int64")
    builder.output(builder.op("histc", builder.to(x, dtype="float32"), bins=130, min=0.0, max=130.0))
    builder.output(builder.reshape(x, shape=[130], name="y"))
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(builder)
    assert caught.value.diagnostics[0].code == "SPY0426"


@pytest.mark.parametrize(("op", "attributes"), [("select", {"index": 0}), ("slice", {"start": 1, "end": 3})])
def test_rows_that_every_run_has_are_taken_by_number(op: str, attributes: JsonObject) -> None:
    nodes = [node("k", op, "x", dim=0, **attributes), node("y", "exp", "k")]
    dims: JsonObject = {"S": {"min": 3, "max": 130, "multiple_of": 1}, "B": 64}
    bundle = spyrec.compile({**_fold(nodes), "dims": dims})
    for extent in (3, 130, 64):
        assert spyrec.run(bundle, _random(extent), RunOptions(check=True, sanitize="all")).is_ok


@pytest.mark.parametrize(("op", "attributes"), [("select", {"index": -1}), ("slice", {"start": 1, "end": 3})])
def test_rows_that_some_run_does_not_have_are_not(op: str, attributes: JsonObject) -> None:
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(_fold([node("k", op, "x", dim=0, **attributes), node("y", "exp", "k")]))
    assert caught.value.diagnostics[0].code == "SPY0426"
