"""Views, lists and rearrangements end to end, against NumPy's indexing: elements are moved, never changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.frontends.value import Value
from spyrec.ir.opdef import catalogue
from spyrec.ir.ops.padding import PadAttributes
from spyrec.ir.ops.rearrangement import RollAttributes, UnfoldAttributes
from spyrec.ir.ops.view_names import DownscaleAttributes, UpscaleAttributes
from tests.support.node_runs import quarters, run_node

Numbers = npt.NDArray[np.generic]
Wanted = Callable[[Numbers], "Numbers | list[Numbers]"]


@dataclass(frozen=True)
class Case:
    """One node over ``x``; ``others`` are made of ``x`` too."""

    op: str
    shape: tuple[int, ...]
    attributes: Mapping[str, object]
    wanted: Wanted
    others: tuple[Callable[[Numbers], Numbers], ...] = field(default=())


def crossed(x: Numbers) -> Numbers:
    """The rows and columns of factors of 2 out of four channels, one element at a time."""
    result = np.zeros((x.shape[0], x.shape[1] // 4, x.shape[2] * 2, x.shape[3] * 2), x.dtype)
    for index in np.ndindex(result.shape):
        batch, channel, row, column = index
        result[index] = x[batch, channel * 4 + row % 2 * 2 + column % 2, row // 2, column // 2]
    return result


CASES = [
    Case("narrow", (5, 70), {"dim": 1, "start": -6, "length": 6}, lambda x: x[:, 64:]),
    Case("narrow", (5, 3), {"dim": 0, "start": 1, "length": 0}, lambda x: x[:0]),
    Case("slice", (5, 3), {"start": 4, "end": 2}, lambda x: x[:0]),
    Case(
        "movedim", (2, 3, 4, 5), {"source": [0, 1], "destination": [-1, 0]}, lambda x: np.moveaxis(x, [0, 1], [-1, 0])
    ),
    Case("moveaxis", (2, 3, 4), {"source": 2, "destination": 0}, lambda x: np.transpose(x, (2, 0, 1))),
    Case("swapaxes", (2, 3, 4), {"axis0": 0, "axis1": -1}, lambda x: np.transpose(x, (2, 1, 0))),
    Case("swapdims", (2, 3, 4), {"dim0": 0, "dim1": 1}, lambda x: np.transpose(x, (1, 0, 2))),
    Case("unflatten", (2, 12), {"dim": 1, "sizes": [3, -1]}, lambda x: x.reshape(2, 3, 4)),
    Case("broadcast_to", (3, 1), {"size": [2, 3, 5]}, lambda x: np.stack([np.repeat(x, 5, 1)] * 2)),
    Case("expand_as", (3, 1), {}, lambda x: np.repeat(x, 4, 1), (lambda x: np.repeat(x, 4, 1),)),
    Case("view_as", (3, 4), {}, lambda x: x.reshape(2, 6), (lambda x: x.reshape(2, 6),)),
    Case("reshape_as", (3, 4), {}, lambda x: x.reshape(12), (lambda x: x.reshape(12),)),
    Case("tile", (3, 5), {"dims": [2]}, lambda x: np.concatenate([x, x], 1)),
    Case("tile", (5,), {"dims": [2, 1]}, lambda x: np.stack([x, x])),
    Case("repeat_interleave", (3, 5), {"repeats": 2, "dim": 1}, lambda x: x[:, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]]),
    Case("repeat_interleave", (2, 3), {"repeats": 3}, lambda x: np.repeat(x.reshape(-1), 3)),
    Case("pixel_shuffle", (2, 8, 3, 4), {"upscale_factor": 2}, crossed),
    Case("channel_shuffle", (2, 6, 3), {"groups": 3}, lambda x: x[:, [0, 2, 4, 1, 3, 5]]),
    Case("split", (5, 70), {"split_size": 32, "dim": 1}, lambda x: [x[:, :32], x[:, 32:64], x[:, 64:]]),
    Case("split", (5, 2), {"split_size": [1, 4]}, lambda x: [x[:1], x[1:]]),
    Case("split_with_sizes", (5, 2), {"split_sizes": [0, 5]}, lambda x: [x[:0], x]),
    Case("chunk", (5, 70), {"chunks": 3, "dim": -1}, lambda x: [x[:, :24], x[:, 24:48], x[:, 48:]]),
    Case("unbind", (3, 70), {}, lambda x: [x[0], x[1], x[2]]),
    Case("unbind", (3, 2), {"dim": 1}, lambda x: [x[:, 0], x[:, 1]]),
    Case("flip", (3, 5), {"dims": [1]}, lambda x: x[:, [4, 3, 2, 1, 0]]),
    Case("roll", (3, 70), {"shifts": 3, "dims": 1}, lambda x: np.concatenate([x[:, 67:], x[:, :67]], 1)),
    Case("roll", (3, 5), {"shifts": -7}, lambda x: x.reshape(-1)[[(i + 7) % 15 for i in range(15)]].reshape(3, 5)),
    Case(
        "unfold",
        (2, 9),
        {"dimension": 1, "size": 3, "step": 2},
        lambda x: np.stack([x[:, i : i + 3] for i in (0, 2, 4, 6)], 1),
    ),
    Case("unfold", (2, 9), {"dimension": 1, "size": 3, "step": 3}, lambda x: x.reshape(2, 3, 3)),
    Case(
        "unfold", (4, 2), {"dimension": 0, "size": 2, "step": 1}, lambda x: np.stack([x[i : i + 2].T for i in range(3)])
    ),
    Case("diagonal", (3, 5), {"offset": 1}, lambda x: x[[0, 1, 2], [1, 2, 3]]),
    Case(
        "slice_scatter",
        (3, 70),
        {"dim": 1, "start": 3, "end": 9},
        lambda x: x[:, [0, 1, 2, *range(64, 70), *range(9, 70)]],
        (lambda x: x[:, 64:],),
    ),
    Case("slice_scatter", (4, 2), {"step": 2}, lambda x: x[[1, 1, 3, 3]], (lambda x: x[1::2],)),
    Case("select_scatter", (3, 5), {"dim": 0, "index": -1}, lambda x: x[[0, 1, 0]], (lambda x: x[0],)),
    Case(
        "pad", (3, 5), {"pad": [1, 2, -1, 1], "value": 1}, lambda x: np.pad(x[1:], ((0, 1), (1, 2)), constant_values=1)
    ),
    Case("pad", (3, 5), {"pad": [3, 2], "mode": "reflect"}, lambda x: x[:, [3, 2, 1, 0, 1, 2, 3, 4, 3, 2]]),
    Case("pad", (2, 3), {"pad": [1, 2, 1, 0], "mode": "replicate"}, lambda x: x[[0, 0, 1]][:, [0, 0, 1, 2, 2, 2]]),
    Case("pad", (2, 3), {"pad": [2, 1], "mode": "circular"}, lambda x: x[:, [1, 2, 0, 1, 2, 0]]),
    Case("meshgrid", (3,), {}, lambda x: [np.stack([x, x], 1), np.stack([x[1:]] * 3)], (lambda x: x[1:].copy(),)),
    Case(
        "meshgrid",
        (3,),
        {"indexing": "xy"},
        lambda x: [np.stack([x, x]), np.stack([x[1:]] * 3, 1)],
        (lambda x: x[1:].copy(),),
    ),
]


@pytest.mark.parametrize("dtype", ["float16", "int64", "bool"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_elements_go_where_numpys_indices_say(case: Case, dtype: str) -> None:
    x = cast("Numbers", (quarters(case.shape) > 0) if dtype == "bool" else (quarters(case.shape) * 2).astype(dtype))
    others = [np.ascontiguousarray(other(x)) for other in case.others]
    wanted = case.wanted(x)
    found = run_node(case.op, [x, *others], case.attributes, len(wanted) if isinstance(wanted, list) else None)
    for one, other in zip(found, wanted if isinstance(wanted, list) else [wanted], strict=True):
        assert one.dtype == x.dtype
        np.testing.assert_array_equal(one, other)


def test_type_as_takes_the_dtype_alone() -> None:
    x = np.array([0.5, -2.0, 0.0], np.float32)
    for dtype, wanted in ("float16", x), ("bool", x != 0), ("int64", np.trunc(x)), ("uint8", [0, 254, 0]):
        found = run_node("type_as", [x, np.zeros((2, 2), dtype)], {})[0]
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted)


dims = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


@given(dims, st.sampled_from(["constant", "reflect", "replicate", "circular"]), st.data())
@settings(max_examples=80)
def test_padding_of_every_mode_is_numpys(shape: tuple[int, ...], mode: str, data: st.DataObject) -> None:
    x = quarters(shape)
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    count = data.draw(st.integers(1, len(shape)))
    pairs = [
        tuple(data.draw(st.integers(0, extent - 1 if mode == "reflect" else extent)) for _ in range(2))
        for extent in reversed(shape[len(shape) - count :])
    ]
    attributes = PadAttributes(tuple(width for pair in pairs for width in pair), mode)  # pyright: ignore[reportArgumentType]  # drawn
    (found,) = catalogue()["pad"].reference([x], attributes)
    widths = [(0, 0)] * (len(shape) - count) + list(reversed(pairs))
    wanted = np.pad(x, widths, mode=cast('Literal["wrap"]', names[mode]))
    np.testing.assert_array_equal(found, wanted)


@given(dims, st.data())
@settings(max_examples=60)
def test_rolling_is_indexing_modulo_the_extent(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = quarters(shape)
    dim, shift = data.draw(st.integers(-len(shape), len(shape) - 1)), data.draw(st.integers(-9, 9))
    (found,) = catalogue()["roll"].reference([x], RollAttributes((shift,), (dim,)))
    extent = shape[dim]
    np.testing.assert_array_equal(found, np.take(x, [(place - shift) % extent for place in range(extent)], axis=dim))


@given(dims, st.data())
@settings(max_examples=60)
def test_windows_hold_what_stands_there(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = quarters(shape)
    dim = data.draw(st.integers(0, len(shape) - 1))
    size, step = data.draw(st.integers(1, shape[dim])), data.draw(st.integers(1, 3))
    (found,) = catalogue()["unfold"].reference([x], UnfoldAttributes(dim, size, step))
    for index in np.ndindex(found.shape):
        *place, inside = index
        place[dim] = place[dim] * step + inside
        assert found[index] == x[tuple(place)]


def test_unshuffling_undoes_shuffling() -> None:
    x = quarters((2, 8, 3, 4))
    (wide,) = catalogue()["pixel_shuffle"].reference([x], UpscaleAttributes(2))
    (back,) = catalogue()["pixel_unshuffle"].reference([wide], DownscaleAttributes(2))
    np.testing.assert_array_equal(back, x)
    found = run_node("pixel_unshuffle", [crossed(x).astype(np.float16)], {"downscale_factor": 2})[0]
    np.testing.assert_array_equal(found, x)


def test_a_builder_returns_as_many_pieces_as_there_are() -> None:
    builder = spyrec.GraphBuilder()
    x = builder.input("x", (7, 4))
    pieces = cast("tuple[Value, ...]", builder.record_op(catalogue()["split"], [x], {"split_size": 3}))
    assert [piece.shape for piece in pieces] == [(3, 4), (3, 4), (1, 4)]
    rows = cast("tuple[Value, ...]", builder.record_op(catalogue()["unbind"], [x], {}))
    builder.output(*pieces, *rows)
    numbers = quarters((7, 4)).astype(np.float16)
    found = list(spyrec.run(spyrec.compile(builder.build()), {"x": numbers}).outputs.values())
    np.testing.assert_array_equal(np.concatenate(found[:3]), numbers)
    np.testing.assert_array_equal(np.stack(found[3:]), numbers)
    assert builder.input("split", (2,)).name == "split", "a node's name is no value's where its results have their own"


REFUSED: list[tuple[str, tuple[int, ...], dict[str, object], str]] = [
    ("narrow", (3,), {"dim": 0, "start": 2, "length": 2}, "SPY0212"),
    ("movedim", (2, 3), {"source": [0, 1], "destination": [0]}, "SPY0205"),
    ("movedim", (2, 3), {"source": [0, 0], "destination": [0, 1]}, "SPY0205"),
    ("unflatten", (6,), {"dim": 0, "sizes": [4, 2]}, "SPY0208"),
    ("repeat_interleave", (3,), {"repeats": -1}, "SPY0209"),
    ("repeat_interleave", (3,), {"repeats": 2, "dim": 0, "output_size": 5}, "SPY0209"),
    ("pixel_shuffle", (1, 6, 2, 2), {"upscale_factor": 2}, "SPY0209"),
    ("pixel_unshuffle", (1, 3, 2), {"downscale_factor": 2}, "SPY0209"),
    ("channel_shuffle", (1, 6, 2), {"groups": 4}, "SPY0209"),
    ("roll", (3, 4), {"shifts": [1, 2], "dims": [0]}, "SPY0209"),
    ("unfold", (3,), {"dimension": 0, "size": 4, "step": 1}, "SPY0209"),
    ("unfold", (3,), {"dimension": 0, "size": 2, "step": 0}, "SPY0209"),
    ("diagonal", (3,), {}, "SPY0206"),
    ("diagonal", (3, 3), {"dim2": 0}, "SPY0205"),
    ("pad", (3,), {"pad": [1]}, "SPY0209"),
    ("pad", (3,), {"pad": [0, 0, 1, 1]}, "SPY0209"),
    ("pad", (3,), {"pad": [-2, -2]}, "SPY0209"),
    ("pad", (3,), {"pad": [3, 0], "mode": "reflect"}, "SPY0209"),
    ("pad", (3,), {"pad": [1, 0], "mode": "reflect", "value": 1}, "SPY0209"),
    ("pad", (3,), {"pad": [1, 0], "value": 1e30}, "SPY0215"),
    ("split", (5,), {"split_size": [2, 2]}, "SPY0209"),
    ("split", (5,), {"split_size": 0}, "SPY0209"),
    ("chunk", (5,), {"chunks": 0}, "SPY0209"),
    ("split", (5000,), {"split_size": 1}, "SPY0209"),
    ("flip", (3,), {"dims": [1]}, "SPY0204"),
]


@pytest.mark.parametrize(("op", "shape", "attributes", "code"), REFUSED)
def test_what_does_not_fit_is_refused(
    op: str, shape: tuple[int, ...], attributes: dict[str, object], code: str
) -> None:
    with pytest.raises(spyrec.SpyrecError) as caught:
        run_node(op, [np.zeros(shape, np.float16)], attributes)
    assert caught.value.diagnostics[0].code == code


def test_a_source_of_another_shape_is_refused() -> None:
    for op, attributes in ("slice_scatter", {"end": 2}), ("select_scatter", {"dim": 0, "index": 0}):
        with pytest.raises(spyrec.SpyrecError) as caught:
            run_node(op, [np.zeros((3, 4), np.float16), np.zeros((3, 4), np.float16)], attributes)
        assert caught.value.diagnostics[0].code == "SPY0207"


def test_a_list_is_named_whole_in_a_file() -> None:
    for results in None, 2:
        with pytest.raises(spyrec.SpyrecError) as caught:
            run_node("chunk", [np.zeros((9, 4), np.float16)], {"chunks": 3}, results)
        assert caught.value.diagnostics[0].code == "SPY0139"


def test_all_pieces_have_the_names_of_the_axes_that_they_keep() -> None:
    """A symbolic dim runs through each of them, and not through the first alone."""
    builder = spyrec.GraphBuilder()
    x = builder.input("x", (builder.dim("S", min=64, max=512, multiple_of=64), 64))
    halves = cast("tuple[Value, ...]", builder.record_op(catalogue()["chunk"], [x], {"chunks": 2, "dim": 1}))
    assert [half.dims for half in halves] == [("S", None), ("S", None)]
    both = cast("tuple[Value, ...]", builder.record_op(catalogue()["var_mean"], [x], {"dim": 1}))
    assert [item.dims for item in both] == [("S",), ("S",)]
    builder.output(*halves, *both)
    numbers = quarters((128, 64)).astype(np.float16)
    outcome = spyrec.run(spyrec.compile(builder.build()), {"x": numbers}, spyrec.RunOptions(check=True))
    assert outcome.check is not None
    assert all(report.ok for report in outcome.check.values())
    left, right, _, mean = outcome.outputs.values()
    np.testing.assert_array_equal(np.concatenate([left, right], 1), numbers)
    np.testing.assert_allclose(cast("npt.NDArray[np.float64]", mean), numbers.astype(float).mean(1), atol=0.01)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2fnuz"])
def test_the_host_moves_every_pattern_of_8_bit_floats(dtype: str) -> None:
    bits = np.random.default_rng(1).permutation(256).astype(np.uint8).reshape(8, 32)
    builder = spyrec.GraphBuilder("moved")
    x, rows = builder.input("x", bits.shape, dtype), builder.input("rows", (2,), "int64")
    builder.output(builder.flip(x, dims=[0, 1], name="flipped"))
    builder.output(builder.diagonal(x, name="diagonal"))
    builder.output(builder.index_select(x, rows, dim=0, name="selected"))
    builder.output(builder.slice_scatter(x, builder.slice(x, dim=1, start=0, end=4), dim=1, start=9, step=6, name="s"))
    options = spyrec.RunOptions(check=True)
    done = spyrec.run(spyrec.compile(builder), {"x": bits, "rows": np.array([5, 2])}, options)
    assert all(item.ok for item in (done.check or {}).values())
    scattered = bits.copy()
    scattered[:, 9::6] = bits[:, :4]
    wanted = {
        "flipped": bits[::-1, ::-1],
        "diagonal": np.diagonal(bits),
        "selected": bits[[5, 2]],
        "s": scattered,
    }
    for name, array in wanted.items():
        np.testing.assert_array_equal(done.outputs[name], array)


@pytest.mark.parametrize(("op", "taken"), [("sin", "all dtypes"), ("add", "IEEE_FP32 and SEN169_FP16 on the device")])
def test_arithmetic_of_8_bit_floats_is_refused_in_whole_words(op: str, taken: str) -> None:
    builder = spyrec.GraphBuilder("g")
    x = builder.input("x", (3,), "float8_e4m3fn")
    with pytest.raises(spyrec.SpyrecError, match="SPY0214") as told:
        getattr(builder, op)(*[x] * (1 + (op == "add")))
    assert f"{op} has no form of float8_e4m3fn[3]: it takes {taken}" in told.value.diagnostics[0].message
