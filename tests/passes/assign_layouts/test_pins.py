"""Layouts that the user pins, and ``fixed_io_layouts``."""

from __future__ import annotations

import numpy as np
import pytest

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.bundle.bundle import Bundle
from spyrec.diagnostics import SpyrecError
from spyrec.ir.evaluate import evaluate
from spyrec.layout.device_layout import DeviceLayout
from tests.support.graphs import JsonObject, graph_data, node, random_arrays, read, scheduled, tensor


def _layout(bundle: Bundle, name: str) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    buffer = dict(bundle.manifest.outputs).get(name, name)
    found = next(argument for argument in bundle.manifest.arguments if argument.name == buffer)
    return found.device_size, found.stride_map


def _assert_right(bundle: Bundle, data: JsonObject) -> None:
    """Sums of a few eighths are exact in every format: the outputs have to be equal."""
    arrays = random_arrays(data)
    wanted = evaluate(read(data), arrays)
    for numerics in ("f32", "dl16"):
        found = spyrec.run(bundle, arrays, RunOptions(numerics=numerics)).outputs
        for name, values in wanted.items():
            np.testing.assert_array_equal(found[name].astype(np.float64), values)


_PINS: dict[str, tuple[dict[str, object], tuple[int, ...], tuple[int, ...]]] = {
    "dim_order": ({"dim_order": [1, 0]}, (3, 130, 64), (64 * 130, 1, 130)),
    "sparse dim_order": ({"dim_order": [0, 1, -1]}, (130, 1, 192, 64), (1, -1, 130, -1)),
    "rows in the sticks": (
        {"device_size": [3, 130, 64], "stride_map": [64 * 130, 1, 130]},
        (3, 130, 64),
        (64 * 130, 1, 130),
    ),
    "rows in tiles of 4": (
        {"device_size": [3, 48, 4, 64], "stride_map": [64, 520, 130, 1]},
        (3, 48, 4, 64),
        (64, 520, 130, 1),
    ),
    "tiles outermost": (
        {"device_size": [48, 3, 4, 64], "stride_map": [520, 64, 130, 1]},
        (48, 3, 4, 64),
        (520, 64, 130, 1),
    ),
    "one element per stick": (
        {"device_size": [130, 1, 192, 64], "stride_map": [1, -1, 130, -1]},
        (130, 1, 192, 64),
        (1, -1, 130, -1),
    ),
}


@pytest.mark.parametrize("name", _PINS)
def test_a_pinned_input_keeps_its_layout_and_its_numbers(name: str) -> None:
    pin, sizes, strides = _PINS[name]
    data = graph_data(
        [tensor("a", 192, 130, layout=pin), tensor("b", 192, 130)],
        [node("u", "add", "a", "b"), node("t", "t", "a"), node("m", "maximum", "t", 0.5)],
        ["u", "m"],
    )
    bundle = spyrec.compile(data)
    assert _layout(bundle, "a") == (sizes, strides)
    _assert_right(bundle, data)


@pytest.mark.parametrize("name", _PINS)
def test_a_pinned_node_keeps_its_layout_and_its_numbers(name: str) -> None:
    pin, sizes, strides = _PINS[name]
    data = graph_data(
        [tensor("a", 192, 130), tensor("b", 192, 130)],
        [node("u", "add", "a", "b", layout=pin), node("v", "maximum", "u", "a")],
        ["u", "v"],
    )
    bundle = spyrec.compile(data)
    assert _layout(bundle, "u") == (sizes, strides)
    _assert_right(bundle, data)


def test_a_pin_in_the_middle_is_a_buffer_of_its_own() -> None:
    pin = {"dim_order": [1, 0]}
    data = graph_data(
        [tensor("a", 64, 128)],
        [node("u", "neg", "a"), node("v", "add", "u", "a", layout=pin), node("y", "mul", "v", "u")],
        ["y"],
    )
    kernels = scheduled(data)
    pinned = [buffer for buffer in kernels.buffers.values() if buffer.pin is not None]
    assert [buffer.placed.stick_dim for buffer in pinned] == [0]
    _assert_right(spyrec.compile(data), data)


def test_a_pinned_view_is_written_out_in_its_layout() -> None:
    data = graph_data(
        [tensor("a", 64, 128)], [node("t", "t", "a", layout={"dim_order": [1, 0]}), node("y", "neg", "t")], ["t", "y"]
    )
    bundle = spyrec.compile(data)
    wanted = DeviceLayout.default((128, 64), "float16", dim_order=(1, 0))
    assert _layout(bundle, "t") == (wanted.device_size, wanted.stride_map)
    _assert_right(bundle, data)


@pytest.mark.parametrize(
    ("pin", "code"),
    [
        ({"device_size": [2, 192, 64], "stride_map": [64, 130, 1]}, "SPY0351"),
        ({"device_size": [3, 100, 64], "stride_map": [64, 130, 1]}, "SPY0351"),
        ({"device_size": [3, 192, 64], "stride_map": [64, 131, 1]}, "SPY0351"),
    ],
)
def test_a_pin_that_does_not_hold_the_tensor_is_refused_at_the_pin(pin: dict[str, object], code: str) -> None:
    for data, pointer in (
        (graph_data([tensor("a", 192, 130, layout=pin)], [node("y", "neg", "a")], ["y"]), "/inputs/0/layout"),
        (graph_data([tensor("a", 192, 130)], [node("y", "neg", "a", layout=pin)], ["y"]), "/nodes/0/layout"),
    ):
        with pytest.raises(SpyrecError) as caught:
            spyrec.compile(data)
        (found,) = caught.value.diagnostics
        assert found.code == code
        assert found.location is not None
        assert found.location.pointer == pointer
        assert found.hint


def test_fixed_borders_keep_the_default_layouts_and_the_numbers() -> None:
    """Left alone, ``b`` gets its rows into the sticks and saves the restickify that the default layout needs."""
    data = graph_data(
        [tensor("a", 64, 128), tensor("b", 128, 64)], [node("t", "t", "b"), node("y", "add", "a", "t")], ["y"]
    )
    free, fixed = spyrec.compile(data), spyrec.compile(data, CompileOptions(fixed_io_layouts=True))
    for name, shape in (("a", (64, 128)), ("b", (128, 64)), ("y", (64, 128))):
        default = DeviceLayout.default(shape, "float16")
        assert _layout(fixed, name) == (default.device_size, default.stride_map)
    assert any(_layout(free, name) != _layout(fixed, name) for name in "aby")
    assert len(free.programs[0].superdscs) < len(fixed.programs[0].superdscs)
    _assert_right(free, data)
    _assert_right(fixed, data)


@pytest.mark.parametrize(
    ("shape", "dim", "order"), [([2, 30], 1, [1, 0]), ([64, 30], 1, [1, 0]), ([5, 5, 16], 2, [0, 2, 1])]
)
def test_a_pinned_cat_is_joined_in_its_pinned_layout(shape: list[int], dim: int, order: list[int]) -> None:
    join: JsonObject = {
        "name": "y",
        "op": "cat",
        "inputs": ["x", "x"],
        "attrs": {"dim": dim},
        "layout": {"dim_order": order},
    }
    data: JsonObject = graph_data([tensor("x", *shape)], [join], ["y"])
    _assert_right(spyrec.compile(data), data)
