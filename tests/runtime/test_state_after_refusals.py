"""The state of a loaded model after calls that are refused: it is what it was, or the next call is told why not."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.entries import BundleEntries

Inputs = dict[str, npt.NDArray[np.generic]]

_ROWS, _LENGTH, _WIDTH = 4, 8, 64
_FIRST: Inputs = {
    "cache": np.zeros((1, _LENGTH, _WIDTH), np.float16),
    "sum": np.zeros((_ROWS, _WIDTH), np.float16),
    "count": np.zeros((2,), np.int64),
}


def counting() -> spyrec.GraphBuilder:
    """Return a graph with state of three kinds: written in place, made beside what it was, and kept by the host."""
    builder = spyrec.GraphBuilder("counting")
    table = builder.constant("table", (np.arange(16 * _WIDTH).reshape(16, _WIDTH) % 7).astype(np.float16))
    cache, total, count = (builder.input(name, it.shape, it.dtype.name) for name, it in _FIRST.items())
    ids, position = builder.input("ids", (_ROWS,), "int64"), builder.input("position", (1,), "int64")
    step = builder.input("step", (2,), "int64")
    rows = builder.embedding(ids, table, name="rows")
    line = builder.reshape(builder.slice(rows, dim=0, start=0, end=1), shape=[1, 1, _WIDTH])
    kept = builder.index_copy(cache, position, line, dim=1, name="kept")
    builder.update(kept, cache)
    builder.update(builder.add(total, rows, name="next"), total)
    builder.update(builder.add(count, step, name="number"), count)
    late = builder.input("late", (_ROWS,), "int64")
    builder.output(builder.index_select(kept, late, dim=1, name="looked_up"))
    return builder


@pytest.fixture(scope="module")
def counted() -> Bundle:
    return spyrec.compile(counting(), spyrec.CompileOptions(cores=2))


def good(seed: int) -> Inputs:
    drawn = np.random.default_rng(seed)
    return {
        "ids": drawn.integers(0, 16, _ROWS),
        "position": drawn.integers(0, _LENGTH, 1),
        "step": drawn.integers(0, 9, 2),
        "late": drawn.integers(0, _LENGTH, _ROWS),
    }


_WRONG: tuple[tuple[str, Inputs], ...] = (
    ("SPY0706", {"ids": np.array([3, 99, 1, 2])}),
    ("SPY0706", {"position": np.array([_LENGTH + 1])}),
    ("SPY0706", {"late": np.array([99, 1, 2, 3])}),  # after the cache was written
    ("SPY0318", {"step": np.array([2**31 - 1, 2**31 - 1])}),  # what the host adds
    ("SPY0318", {"ids": np.array([0, 1, 2, 2**40])}),  # while it is copied in
    ("SPY0762", {"ids": np.array([0, 1])}),
    ("SPY0763", {"step": np.zeros(2, np.float16)}),
)


def refused(model: spyrec.Model, code: str, given: Mapping[str, npt.NDArray[np.generic]]) -> None:
    with pytest.raises(spyrec.SpyrecError, match=code):
        model(**given)


@pytest.mark.parametrize("seed", range(2))
def test_a_good_call_is_as_if_the_refused_ones_had_not_happened_or_says_what_they_lost(
    counted: Bundle, seed: int
) -> None:
    wrongs = random.Random(seed).sample(_WRONG, len(_WRONG))
    with spyrec.load(counted) as model, spyrec.load(counted) as twin:
        now = {**_FIRST}
        outputs = model(**now, **good(0))
        equal(outputs, twin(**now, **good(0)))
        for number, (code, wrong) in enumerate(wrongs, 1):
            now = {"cache": outputs["kept"], "sum": outputs["next"], "count": outputs["number"]}
            refused(model, code, {**good(100 + number), **wrong})
            given = good(number)
            try:
                outputs = model(**given)
            except spyrec.SpyrecError as error:
                lost = {item.message.split('"')[1]: item for item in error.diagnostics}
                assert lost.keys() <= {"cache"}, "only what is written in place is lost"
                assert code == "SPY0706", "other calls were refused before a program had begun"
                for item in lost.values():
                    assert item.code == "SPY0760"
                    assert f"of the model was refused ({code})" in item.notes[0]
                outputs = model(**given, **{name: now[name] for name in lost})
            equal(outputs, twin(**given))


def equal(found: Mapping[str, npt.NDArray[np.generic]], expected: Mapping[str, npt.NDArray[np.generic]]) -> None:
    assert found.keys() == expected.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def test_state_is_kept_where_a_call_ends_before_a_program_has_begun(counted: Bundle) -> None:
    with spyrec.load(counted) as model, spyrec.load(counted) as twin:
        model(**_FIRST, **good(1))
        twin(**_FIRST, **good(1))
        refused(model, "SPY0762", {**good(2), "ids": np.array([0, 1])})
        equal(model(**good(2)), twin(**good(2)))


def writing(*, writes_again: bool = False, reads: bool = False) -> spyrec.GraphBuilder:
    """Return a graph that writes a row of its state in place, and may write or read another one afterwards."""
    builder = spyrec.GraphBuilder("writing")
    rows, step = builder.input("rows", (16, _WIDTH)), builder.input("step", (1,), "int64")
    row = builder.input("row", (1, _WIDTH))
    written = builder.index_copy(rows, step, row, dim=0, name="written")
    if writes_again:
        written = builder.index_copy(written, builder.input("late", (1,), "int64"), row, dim=0)
    builder.update(written, rows)
    if reads:
        builder.output(builder.index_select(written, builder.input("late", (1,), "int64"), dim=0, name="looked_up"))
    return builder


def test_an_input_that_is_not_converted_costs_no_state_and_is_named() -> None:
    row = np.ones((1, _WIDTH), np.float16)
    with spyrec.load(spyrec.compile(writing())) as model:
        model(rows=np.zeros((16, _WIDTH), np.float16), step=np.array([3]), row=row)
        with pytest.raises(spyrec.SpyrecError, match=r'"step": value 1099511627776 does not fit int32') as told:
            model(step=np.array([2**40]), row=2 * row)
        assert told.value.diagnostics[0].code == "SPY0318"
        found = model(step=np.array([4]), row=row)["written"]
        np.testing.assert_array_equal(found.sum(axis=1), [0, 0, 0, 64, 64, *[0] * 11])


def test_a_row_outside_of_the_state_costs_nothing_where_nothing_was_written_before() -> None:
    row = np.ones((1, _WIDTH), np.float16)
    with spyrec.load(spyrec.compile(writing())) as model:
        model(rows=np.zeros((16, _WIDTH), np.float16), step=np.array([3]), row=row)
        refused(model, "SPY0706", {"step": np.array([16]), "row": 2 * row})
        found = model(step=np.array([4]), row=row)["written"]
        np.testing.assert_array_equal(found.sum(axis=1), [0, 0, 0, 64, 64, *[0] * 11])


@pytest.mark.parametrize("way", [{"writes_again": True}, {"reads": True}])
def test_rows_that_were_written_before_another_lies_outside_are_lost(way: dict[str, bool]) -> None:
    row = np.ones((1, _WIDTH), np.float16)
    with spyrec.load(spyrec.compile(writing(**way))) as model:
        model(rows=np.zeros((16, _WIDTH), np.float16), step=np.array([3]), row=row, late=np.array([3]))
        refused(model, "SPY0706", {"step": np.array([4]), "row": row, "late": np.array([16])})
        with pytest.raises(spyrec.SpyrecError, match=r"refused \(SPY0706\) when it had begun to write it"):
            model(step=np.array([4]), row=row, late=np.array([3]))


def test_content_that_a_refused_call_gave_is_no_state(counted: Bundle) -> None:
    ones = {name: np.ones_like(array) for name, array in _FIRST.items()}
    with spyrec.load(counted) as model:
        model(**_FIRST, **good(1))
        refused(model, "SPY0706", {**good(2), **ones, "ids": np.array([3, 99, 1, 2])})
        with pytest.raises(spyrec.SpyrecError) as told:
            model(**good(2))
        missing = [item.message for item in told.value.diagnostics]
        assert missing == ['run input "cache" is missing', 'run input "sum" is missing']
        assert all("call 2 of the model was refused (SPY0706)" in item.notes[0] for item in told.value.diagnostics)


def test_entries_keep_what_a_refused_call_of_another_left() -> None:
    doubling = spyrec.GraphBuilder("doubling")
    state = doubling.input("sum", (_ROWS, _WIDTH))
    doubling.output(doubling.mul(state, 2.0, name="twice"))
    bundles: BundleEntries = spyrec.compile_entries(
        {"counting": counting(), "doubling": doubling}, spyrec.CompileOptions(cores=2)
    )
    with spyrec.load(bundles) as model:
        found = model.counting(**_FIRST, **good(1))
        with pytest.raises(spyrec.SpyrecError, match="SPY0706"):
            model.counting(**{**good(2), "ids": np.array([3, 99, 1, 2])})
        np.testing.assert_array_equal(model.doubling()["twice"], found["next"].astype(np.float16) * 2)
