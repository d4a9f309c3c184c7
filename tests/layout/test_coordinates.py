"""Symbolic device coordinates: the published vectors, and that every wrong one is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict, cast

import pytest

from spyrec.coordinates import checked_coordinates, compute_coordinates
from spyrec.diagnostics import SpyrecError
from spyrec.index_expression import parse_index
from spyrec.layout import DeviceLayout


class CoordinateVector(TypedDict):
    size: list[int]
    stride: list[int]
    ranges: dict[str, int]
    index: str
    coordinates: list[str]
    identity_holds: bool
    coordinates_in_bounds: bool


FILE = Path(__file__).parents[1] / "fixtures" / "layout_vectors.json"
VECTORS = cast("dict[str, list[CoordinateVector]]", json.loads(FILE.read_text(encoding="utf-8")))["coordinates"]


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_coordinates_equal_the_vector_and_are_refused_where_it_says_they_are_wrong(vector: CoordinateVector) -> None:
    size, stride, index, ranges = vector["size"], vector["stride"], vector["index"], vector["ranges"]
    assert [str(item) for item in compute_coordinates(size, stride, parse_index(index), ranges)] == vector[
        "coordinates"
    ]
    if vector["identity_holds"] and vector["coordinates_in_bounds"]:
        assert list(checked_coordinates(size, stride, index, ranges)) == vector["coordinates"]
        return
    with pytest.raises(SpyrecError) as caught:
        checked_coordinates(size, stride, index, ranges)
    assert caught.value.diagnostics[0].code == ("SPY0313" if vector["identity_holds"] else "SPY0312")


def test_a_layout_gives_the_coordinates_of_an_index() -> None:
    layout = DeviceLayout.default((2, 256, 4096), "float16")
    assert layout.coordinates("4096*p0 + p1", {"p0": 512, "p1": 4096}) == (
        "Mod(p0, 256)",
        "floor(p1/64)",
        "floor(p0/256)",
        "Mod(p1, 64)",
    )


def test_flattening_across_a_padded_stick_dim_is_refused() -> None:
    with pytest.raises(SpyrecError) as caught:
        DeviceLayout.default((40, 120), "float16").coordinates("p0", {"p0": 4800})
    assert caught.value.diagnostics[0].code == "SPY0312"


def test_an_offset_inside_a_stick_is_refused() -> None:
    with pytest.raises(SpyrecError) as caught:
        DeviceLayout.default((15, 384), "float16").coordinates("384*p0 + p1 + 100", {"p0": 15, "p1": 100})
    assert caught.value.diagnostics[0].code == "SPY0313"


@pytest.mark.parametrize(
    "index",
    [
        "",
        "p0 +",
        "2 p0",
        "p0**2",
        "__import__('os')",
        "Mod(p0, 0)",
        "floor(p0/p0)",
        "q",
        "(" * 60 + "p0" + ")" * 60,
        "-" * 60 + "p0",
        "sin(p0)",
        "9" * 30,
        "p0;1",
        "p" * 20_000,
    ],
    ids=lambda text: text[:12],
)
def test_what_is_no_index_expression_is_refused(index: str) -> None:
    with pytest.raises(SpyrecError) as caught:
        DeviceLayout.default((64,), "float16").coordinates(index, {"p0": 64})
    assert caught.value.diagnostics[0].code == "SPY0311"
