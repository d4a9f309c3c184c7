"""Tensors without elements where nothing computes them: given and returned, unused, constant, kept."""

from __future__ import annotations

import numpy as np
import pytest

import spyrec

_ONES = np.ones((3, 64), np.float16)


@pytest.mark.parametrize("shape", [(0,), (4, 0), (2, 0, 3)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64", "bool", "float8_e4m3fn"])
def test_an_empty_input_comes_back(shape: tuple[int, ...], dtype: str) -> None:
    builder = spyrec.GraphBuilder("g")
    builder.output(builder.input("x", shape, dtype))
    carrier = {"bfloat16": "uint16", "float8_e4m3fn": "uint8"}.get(dtype, dtype)
    given = np.zeros(shape, carrier)
    found = spyrec.run(spyrec.compile(builder), {"x": given}, spyrec.RunOptions(check=True))
    assert (found.outputs["x"].shape, found.outputs["x"].dtype) == (shape, given.dtype)


@pytest.mark.parametrize("sanitize", [None, "all"])
def test_empty_tensors_beside_a_program(sanitize: str | None) -> None:
    builder = spyrec.GraphBuilder("g")
    empty, unused = builder.input("empty", (0, 64)), builder.input("unused", (4, 0))
    x, held = builder.input("x", (3, 64)), builder.constant("held", np.zeros((0, 8), np.float32))
    builder.output(builder.mul(x, 2.0, name="y"), empty, held)
    bundle = spyrec.compile(builder)
    assert not bundle.manifest.host_steps
    given = {"empty": np.zeros((0, 64), np.float16), "x": _ONES}
    for beside in ({}, {unused.name: np.zeros((4, 0), np.float16)}):
        found = spyrec.run(bundle, {**given, **beside}, spyrec.RunOptions(sanitize=sanitize, check=True))
        assert not found.sanitizer
        np.testing.assert_array_equal(found.outputs["y"], 2 * _ONES)
        assert [found.outputs[name].shape for name in ("empty", "held")] == [(0, 64), (0, 8)]


def test_empty_state_of_entries_is_kept() -> None:
    writing, reading = spyrec.GraphBuilder("writing"), spyrec.GraphBuilder("reading")
    state = writing.input("state", (0, 64))
    writing.update(writing.mul(state, 2.0, name="next"), state)
    x, read = reading.input("x", (3, 64)), reading.input("state", (0, 64))
    reading.output(reading.cat([read, x], dim=0, name="both"), reading.sum(read, dim=[0], name="total"))
    with spyrec.load(spyrec.compile_entries({"writing": writing, "reading": reading})) as model:
        assert model.writing(state=np.zeros((0, 64), np.float16))["next"].shape == (0, 64)
        assert model.writing()["next"].shape == (0, 64)
        found = model.reading(x=_ONES)
    np.testing.assert_array_equal(found["both"], _ONES)
    np.testing.assert_array_equal(found["total"], np.zeros(64))


def test_rows_that_are_none_are_written_in_place() -> None:
    builder = spyrec.GraphBuilder("g")
    table, places = builder.input("table", (8, 64)), builder.input("places", (0,), "int64")
    rows = builder.input("rows", (0, 64))
    builder.update(builder.index_copy(table, places, rows, dim=0, name="next"), table)
    none = {"places": np.zeros(0, np.int64), "rows": np.zeros((0, 64), np.float16)}
    with spyrec.load(spyrec.compile(builder)) as model:
        given = np.arange(512).reshape(8, 64).astype(np.float16)
        model(table=given, **none)
        np.testing.assert_array_equal(model(**none)["next"], given)
