"""Symbolic device coordinates: the published vectors, and that every wrong one is refused."""

from __future__ import annotations

import itertools
import json
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TypedDict, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.diagnostics import SpyrecError
from spyrec.layout.coordinates import checked_coordinates, compute_coordinates
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.index_expression import evaluate, parse_index


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


def floor_div(dividend: Fraction, divisor: int) -> int:
    return dividend // divisor


def python_value(text: str, point: Mapping[str, int]) -> int:
    """Return the value of an index or coordinate as Python computes it: no part of sympy or spyrec."""
    functions: dict[str, Callable[..., object]] = {
        "floor": math.floor,
        "Mod": operator.mod,
        "FloorDiv": floor_div,
    }
    names = {name: Fraction(value) for name, value in point.items()}
    return int(eval(text, {"__builtins__": {}, **functions, **names}))


def assert_every_element(
    layout: DeviceLayout, index: str, ranges: Mapping[str, int], coordinates: tuple[str, ...]
) -> None:
    shape, strides = layout.host_shape, layout.host_strides
    home = {
        sum(at * stride for at, stride in zip(element, strides, strict=True)): layout.device_coordinate(element)
        for element in itertools.product(*map(range, shape))
    }
    for values in itertools.product(*map(range, ranges.values())):
        point = dict(zip(ranges, values, strict=True))
        assert tuple(python_value(item, point) for item in coordinates) == home[python_value(index, point)]


PADDING: list[tuple[tuple[int, ...], str, str, dict[str, int]]] = [
    ((4, 40), "float16", "p0 + 20", {"p0": 30}),
    ((4, 60), "float16", "60*p0 + 30*p1 + p2", {"p0": 3, "p1": 2, "p2": 34}),
    ((5, 8), "float8_e4m3fn", "p1 + p2", {"p1": 3, "p2": 22}),
    ((40,), "float16", "p0", {"p0": 64}),
    ((1, 1), "float16", "p0", {"p0": 2}),
    ((4, 100), "float16", "100*p0 + p1 + 100", {"p0": 4, "p1": 100}),
    ((4, 100), "float16", "400", {}),
]


@pytest.mark.parametrize(("shape", "dtype", "index", "ranges"), PADDING)
def test_what_would_read_padding_is_refused(
    shape: tuple[int, ...], dtype: str, index: str, ranges: dict[str, int]
) -> None:
    with pytest.raises(SpyrecError) as caught:
        DeviceLayout.default(shape, dtype).coordinates(index, ranges)
    assert caught.value.diagnostics[0].code in {"SPY0312", "SPY0313"}


def test_a_host_tensor_given_to_an_explicit_layout_bounds_its_lanes() -> None:
    layout = DeviceLayout([2, 64], [64, 1], "SEN169_FP16")
    assert layout.coordinates("p0", {"p0": 128}) == ("floor(p0/64)", "Mod(p0, 64)")
    with pytest.raises(SpyrecError):
        layout.with_host([120]).coordinates("p0", {"p0": 128})
    assert layout.with_host([120]).coordinates("p0", {"p0": 120}) == ("floor(p0/64)", "Mod(p0, 64)")


OFFSETS: list[tuple[tuple[int, ...], str, dict[str, int], tuple[str, ...] | None]] = [
    ((4, 100), "100*p0 + p1 + 100", {"p0": 3, "p1": 100}, ("floor(p1/64)", "p0 + 1", "Mod(p1, 64)")),
    ((4, 69), "p0 + 69", {"p0": 69}, ("floor(p0/64)", "1", "Mod(p0, 64)")),
    ((3, 4, 70), "280*p0 + 70*p1 + p2 + 70", {"p0": 3, "p1": 3, "p2": 70}, None),
    ((3, 4, 70), "280*p0 + 70*p1 + p2 + 280", {"p0": 2, "p1": 4, "p2": 70}, None),
    ((8, 100), "370", {}, ("1", "3", "6")),
    ((9, 18), "2*Mod(p1, 22)", {"p1": 210}, None),
    ((1, 2, 8, 1), "3*Mod(p0, 5)", {"p0": 57}, None),
    ((4, 100), "Mod(p0*p0, 3)", {"p0": 50}, None),
]


@pytest.mark.parametrize(("shape", "index", "ranges", "wanted"), OFFSETS)
def test_lawful_reads_of_ragged_tensors_find_every_element(
    shape: tuple[int, ...], index: str, ranges: dict[str, int], wanted: tuple[str, ...] | None
) -> None:
    layout = DeviceLayout.default(shape, "float16")
    coordinates = layout.coordinates(index, ranges)
    assert wanted in {None, coordinates}
    assert_every_element(layout, index, ranges, coordinates)


@pytest.mark.parametrize("offset", [150, 15000])
def test_offsets_of_a_row_and_of_a_plane_move_along_their_dim(offset: int) -> None:
    rows, planes = (1, 0) if offset == 150 else (0, 1)
    ranges = {"p0": 5 - planes, "p1": 100 - rows, "p2": 150}
    layout = DeviceLayout.default((5, 100, 150), "float16")
    row, plane = ("p1 + 1", "p0") if rows else ("p1", "p0 + 1")
    assert layout.coordinates(f"15000*p0 + 150*p1 + p2 + {offset}", ranges) == (
        row,
        "floor(p2/64)",
        plane,
        "Mod(p2, 64)",
    )


@pytest.mark.parametrize(
    ("index", "ranges"),
    [
        ("p0", {"p0": "a"}),
        (5, {}),
        (None, {}),
        ("p0", {"p0": 1 << 70}),
        ("p0", {"p0": 3.5}),
        ("p0", {"p0": 0}),
        ("p0", None),
        ("p0", ["p0"]),
        ("p0", {5: 3, "p0": 2}),
        ("4611686018427387904*p0", {"p0": 9}),
        ("*".join(["p0"] * 900), {"p0": 9}),
        ("p0", {"p0": 1 << 61}),
        ("Mod(7*Mod(p0, 3), 4)", {"p0": 50}),  # torch-spyre's rule knows one Mod per term
    ],
    ids=lambda item: str(item)[:20],
)
def test_arguments_of_no_use_are_refused_with_a_code(index: object, ranges: object) -> None:
    with pytest.raises(SpyrecError) as caught:
        DeviceLayout.default((4, 100), "float16").coordinates(cast("str", index), cast("dict[str, int]", ranges))
    assert caught.value.diagnostics[0].code in {"SPY0311", "SPY0312"}


SHAPES = st.lists(st.integers(1, 6), max_size=2).flatmap(
    lambda outer: st.sampled_from([1, 3, 18, 40, 64, 69, 100, 128]).map(lambda last: (*outer, last))
)


def terms(depth: int) -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["p0", "p1", "3", "0"])
    if depth == 0:
        return leaves
    inner = terms(depth - 1)
    factors, divisors = st.integers(0, 9), st.integers(1, 30)
    return st.one_of(
        leaves,
        st.builds("{} + {}".format, inner, inner),
        st.builds("{}*({})".format, factors, inner),
        st.builds("Mod({}, {})".format, inner, divisors),
        st.builds("FloorDiv({}, {})".format, inner, divisors),
        st.builds("({})*({})".format, inner, inner),
    )


@settings(max_examples=200)
@given(text=terms(4))
def test_a_parsed_index_has_the_value_that_its_text_has(text: str) -> None:
    point = {"p0": 17, "p1": 23}
    arrays = {name: np.asarray([value], dtype=np.int64) for name, value in point.items()}
    assert int(evaluate(parse_index(text), arrays).reshape(-1)[0]) == python_value(text, point)


@settings(max_examples=150)
@given(shape=SHAPES, data=st.data())
def test_what_is_accepted_reads_the_element_of_the_index(shape: tuple[int, ...], data: st.DataObject) -> None:
    total = math.prod(shape)
    steps = st.sampled_from([1, 2, 3, 8, 18, shape[-1], 2 * shape[-1]])
    variables = {f"p{place}": data.draw(st.integers(1, 24)) for place in range(data.draw(st.integers(0, 3)))}
    parts = [str(data.draw(st.integers(0, total)))]
    for name in variables:
        modulus = data.draw(st.sampled_from([None, None, 5, 22]))
        parts.append(f"{data.draw(steps)}*{name if modulus is None else f'Mod({name}, {modulus})'}")
    index = " + ".join(parts)
    layout = DeviceLayout.default(shape, "float16")
    try:
        coordinates = layout.coordinates(index, variables)
    except SpyrecError as error:
        assert error.diagnostics[0].code in {"SPY0312", "SPY0313"}  # noqa: PT017 -- refusing is one of two outcomes
        return
    assert_every_element(layout, index, variables, coordinates)


@settings(max_examples=100)
@given(shape=SHAPES, data=st.data())
def test_a_slice_along_dims_other_than_the_stick_is_always_followed(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    layout = DeviceLayout.default(shape, "float16")
    starts = [data.draw(st.integers(0, size - 1)) for size in shape[:-1]]
    lanes = data.draw(st.integers(0, (shape[-1] - 1) // 64)) * 64
    ranges = {f"p{dim}": size - start for dim, (size, start) in enumerate(zip(shape, [*starts, lanes], strict=True))}
    offset = sum(start * stride for start, stride in zip([*starts, lanes], layout.host_strides, strict=True))
    moving = [f"{stride}*p{dim}" for dim, stride in enumerate(layout.host_strides)]
    index = " + ".join([*moving, str(offset)])
    assert_every_element(layout, index, ranges, layout.coordinates(index, ranges))
