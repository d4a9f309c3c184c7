"""Sparse layouts of six dims: since August 2026 a ``dim_order`` may have seven entries, before it had six at most."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec.cli import main
from spyrec.compare.validate_path import CheckOptions, validate_path
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.target import SPYRE_2026_06, SPYRE_2026_08, Target
from spyrec.layout.device_layout import DeviceLayout
from spyrec.options import CompileOptions, RunOptions
from tests.support.graphs import graph_data, node, tensor

STICK_BYTES = 128
SHAPE = (2, 3, 1, 2, 3, 2)


def stick_of_each(shape: tuple[int, ...], order: tuple[int, ...]) -> dict[tuple[int, ...], int]:
    """Number the elements in the order in which a sparse layout keeps them, a stick each.

    That is row-major over the dims of ``order`` with its first dim moved behind the others.
    """
    walked = (*order[1:], order[0])
    found: dict[tuple[int, ...], int] = {}
    for number, index in enumerate(itertools.product(*(range(shape[dim]) for dim in walked))):
        found[tuple(index[walked.index(dim)] for dim in range(len(shape)))] = number
    return found


@given(
    st.integers(1, 6)
    .flatmap(lambda rank: st.tuples(*[st.integers(1, 3)] * rank))
    .flatmap(lambda shape: st.tuples(st.just(shape), st.permutations(range(len(shape))))),
    st.sampled_from(["float16", "float32", "int8"]),
)
def test_every_element_of_a_sparse_tensor_begins_a_stick_of_its_own(
    drawn: tuple[tuple[int, ...], list[int]], dtype: str
) -> None:
    shape, order = drawn
    layout = DeviceLayout.default(shape, dtype, dim_order=(*order, -1))
    wanted = stick_of_each(shape, tuple(order))
    assert layout.nbytes == STICK_BYTES * math.prod(shape)
    for index in np.ndindex(*shape):
        assert layout.byte_address(index) == STICK_BYTES * wanted[index]
        assert layout.host_index(layout.device_coordinate(index)) == index
    assert int(layout.valid_lane_mask().sum()) == math.prod(shape)


def test_seven_entries_name_six_dims_and_eight_of_the_device() -> None:
    layout = DeviceLayout.default(SHAPE, "float16", dim_order=(0, 1, 2, 3, 4, 5, -1))
    assert layout.device_size == (3, 1, 2, 3, 2, 1, 2, 64)
    assert layout.stride_map == (12, -1, 6, 2, 1, -1, 36, -1)


def test_more_than_six_dims_have_no_layout() -> None:
    for order in (None, (*range(7), -1)):
        with pytest.raises(SpyrecError, match=r"SPY0303.*unsupported tensor rank: 7, more than 6"):
            DeviceLayout.default((2,) * 7, "float16", dim_order=order)


def test_inspect_layout_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--shape", "2,3,1,2,3,2", "--dim-order", "0,1,2,3,4,5,-1", "--at", "1,2,0,1,2,1"]
    assert main(["inspect-layout", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "[3, 1, 2, 3, 2, 1, 2, 64]" in shown
    assert str(STICK_BYTES * stick_of_each(SHAPE, (0, 1, 2, 3, 4, 5))[1, 2, 0, 1, 2, 1]) in shown


def pinned() -> Mapping[str, object]:
    held = {**tensor("a", *SHAPE), "layout": {"dim_order": [1, 0, 2, 3, 5, 4, -1]}}
    return graph_data([held], [node("y", "add", "a", "a")], ["y"])


def test_a_target_of_august_runs_a_pinned_one_and_a_target_of_june_has_none(tmp_path: Path) -> None:
    bundle = spyrec.compile(pinned(), CompileOptions(target=SPYRE_2026_08))
    (argument,) = (item for item in bundle.manifest.arguments if item.name == "a")
    assert argument.device_size == (2, 1, 2, 2, 3, 1, 3, 64)
    values = np.arange(math.prod(SHAPE), dtype=np.float16).reshape(SHAPE)
    result = spyrec.run(bundle, {"a": values}, RunOptions(check=True, sanitize="all"))
    assert result.is_ok
    np.testing.assert_array_equal(result.outputs["y"], values + values)
    for target in (SPYRE_2026_06, Target()):
        with pytest.raises(SpyrecError, match=rf'SPY0303.*7 entries, target "{target.name}" has at most 6'):
            spyrec.compile(pinned(), CompileOptions(target=target))
    directory = tmp_path / "b"
    bundle.save(directory)
    assert validate_path(directory).is_ok
    found = validate_path(directory, CheckOptions(target=SPYRE_2026_06)).diagnostics
    assert {item.code for item in found} == {"SPY0627"}
    assert any('layout of "a" has 7 entries' in item.message for item in found)


def test_what_is_compiled_for_june_has_no_sparse_tensor_of_six_dims(tmp_path: Path) -> None:
    reshaped = node("r", "reshape", "a", shape=[65, 3])
    data = graph_data([tensor("a", 1, 1, 1, 1, 1, 195)], [reshaped, node("y", "sum", "r", dim=[1])], ["y"])
    values = {"a": np.arange(195, dtype=np.float16).reshape(1, 1, 1, 1, 1, 195) % 7}
    entries: dict[str, int] = {}
    for target in (SPYRE_2026_06, SPYRE_2026_08):
        bundle = spyrec.compile(data, CompileOptions(target=target))
        bundle.save(tmp_path / target.name)
        assert validate_path(tmp_path / target.name).is_ok
        outputs = spyrec.run(bundle, values, RunOptions(check=True)).outputs
        np.testing.assert_array_equal(outputs["y"].ravel(), values["a"].reshape(65, 3).sum(axis=1))
        (argument,) = (item for item in bundle.manifest.arguments if item.name == "a")
        entries[target.name] = len(argument.device_size) - 1
    assert entries == {"2026-06": 6, "2026-08": 7}


def test_a_target_file_says_how_many(tmp_path: Path) -> None:
    graph, target = tmp_path / "g.json", tmp_path / "t.json"
    graph.write_text(json.dumps(pinned()))
    arguments = ["compile", str(graph), "-o", str(tmp_path / "b"), "--target", str(target), "--force"]
    for entries, code in ((7, 0), (6, 1)):
        target.write_text(json.dumps({"format": "spyrec.target/1", "sparse_layout_entries": entries}))
        assert main(arguments) == code
