"""State of symbolic dims: a call runs at the extents that state has, and inputs that disagree with it are refused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.bundle import Bundle
from tests.support.examples import examples

Halves = npt.NDArray[np.float16]
_COLUMNS = 64
_OPTIONS = spyrec.CompileOptions(cores=2)


def adding(*, is_cut: bool = True) -> spyrec.GraphBuilder:
    """Return a graph of two states: one that a result replaces, one whose result is made from it by an exponential.

    ``total`` sums over all rows of the second: what lies behind the extent of a state would show in it.
    """
    builder = spyrec.GraphBuilder("adding")
    rows = builder.dim("rows", min=1, max=128, multiple_of=64 if is_cut else 1)
    a, x = builder.input("a", (rows, _COLUMNS)), builder.input("x", (rows, _COLUMNS))
    c = builder.input("c", (rows, _COLUMNS))
    builder.update(builder.add(a, x, name="next"), of=a)
    builder.update(builder.exp(builder.mul(c, -1.0, name="negative"), name="decayed"), of=c)
    builder.output(builder.sum(c, dim=0, name="total"))
    return builder


@pytest.fixture(scope="module", params=[True, False], ids=["sticks", "rows"])
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return spyrec.compile(adding(is_cut=request.param), _OPTIONS)


def drawn(rows: int, seed: int) -> Halves:
    return (np.random.default_rng(seed).integers(0, 16, (rows, _COLUMNS)) / 8).astype(np.float16)


_CALLS = st.lists(st.tuples(st.sampled_from([64, 128]), st.sets(st.sampled_from("acx"))), min_size=2, max_size=6)


@examples(12)
@given(calls=_CALLS, is_checked=st.booleans())
def test_calls_of_any_extents_are_as_in_numpy(
    bundle: Bundle, calls: list[tuple[int, set[str]]], is_checked: bool
) -> None:
    state: dict[str, Halves] = {name: drawn(128, index) for index, name in enumerate("ac")}
    model = spyrec.load(bundle, spyrec.RunOptions(check=is_checked))
    model(**state, x=drawn(128, 9))  # what the rows behind smaller extents would be
    x = drawn(128, 9)
    state = {"a": state["a"] + x, "c": np.exp(-state["c"].astype(np.float32)).astype(np.float16)}
    for seed, (rows, names) in enumerate(calls):
        inputs = {name: drawn(rows, seed) for name in {*names, "x"}}
        now = {**state, **inputs}
        if len({array.shape for array in now.values()}) > 1:
            with pytest.raises(spyrec.SpyrecError, match=r'SPY0762.*the kept state "[ac]"'):
                model(**inputs)
            continue
        outputs = model(**inputs)
        assert np.allclose(outputs["next"], now["a"] + now["x"], rtol=2e-3)
        assert np.allclose(outputs["decayed"], np.exp(-now["c"].astype(np.float32)), rtol=6e-3)
        exact = now["c"].astype(np.float64).sum(0)
        assert np.allclose(outputs["total"], exact, rtol=1e-2)
        assert {outputs[name].shape for name in ("next", "decayed")} == {(rows, _COLUMNS)}
        state = {"a": outputs["next"].astype(np.float16), "c": outputs["decayed"].astype(np.float16)}


def counting(rows: int | None = None) -> spyrec.GraphBuilder:
    builder = spyrec.GraphBuilder("counting")
    a = builder.input("a", (rows or builder.dim("S", min=1, max=128, multiple_of=64), _COLUMNS))
    builder.update(builder.add(a, 1.0, name="n"), of=a)
    return builder


@pytest.mark.parametrize("sanitize", [None, "all"])
def test_a_call_without_the_state_has_the_extent_of_the_call_before(sanitize: str | None) -> None:
    model = spyrec.load(spyrec.compile(counting(), _OPTIONS), spyrec.RunOptions(sanitize=sanitize))
    for rows in (128, 64, 128):
        outputs = model(a=np.full((rows, _COLUMNS), 10, np.float16))
        for number in (11, 12, 13):
            assert np.array_equal(outputs["n"], np.full((rows, _COLUMNS), number))
            outputs = model()


def test_entries_that_share_state_take_no_other_extents_than_theirs() -> None:
    model = spyrec.load(spyrec.compile_entries({"some": counting(), "all": counting(128)}, _OPTIONS))
    model["some"](a=np.zeros((64, _COLUMNS), np.float16))
    with pytest.raises(spyrec.SpyrecError, match=r'SPY0762.*the kept state "a" has shape \[64, 64\].*\[128, 64\]'):
        model["all"]()
    assert np.array_equal(model["some"]()["n"], np.full((64, _COLUMNS), 2))
    model["all"](a=np.zeros((128, _COLUMNS), np.float16))
    assert np.array_equal(model["some"]()["n"], np.full((128, _COLUMNS), 2))


def test_a_refused_call_leaves_the_extent() -> None:
    builder = counting()
    builder.output(builder.add(builder.input("ids", (4,), "int64"), 1, name="late"))
    model = spyrec.load(spyrec.compile(builder, _OPTIONS))
    ids = np.zeros(4, np.int64)
    model(a=np.zeros((64, _COLUMNS), np.float16), ids=ids)
    with pytest.raises(spyrec.SpyrecError, match="SPY0318"):
        model(ids=ids + 2**40)
    assert np.array_equal(model(ids=ids)["n"], np.full((64, _COLUMNS), 2))
