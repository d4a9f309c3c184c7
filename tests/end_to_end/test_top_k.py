"""The largest elements along a dim as the device's own operations: values and places bit for bit, ties in order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.hardware.target import TARGETS
from tests.support.graph_files import JsonObject, graph_data, node, tensor

Array = npt.NDArray[np.generic]

AUGUST = spyrec.CompileOptions(target=TARGETS["2026-08"])
CHECKED = spyrec.RunOptions(check=True)
PLACES = ["topkvalue", "topkindex"]


def top(shape: tuple[int, ...], dtype: str = "float16", **attributes: object) -> JsonObject:
    made = node("v", "topk", "x", **attributes)
    made["outputs"] = ["v", "i"]
    return graph_data([tensor("x", *shape, dtype=dtype)], [made], ["v", "i"])


def operations(bundle: Bundle) -> list[str]:
    """Return the device's operations that take the largest elements."""
    calls = [superdsc.op_func_name for program in bundle.programs for superdsc in program.superdscs.values()]
    return [name for name in calls if name.startswith("topk")]


def numbers(seed: int, *shape: int) -> npt.NDArray[np.float16]:
    """Return few different numbers, which both 16-bit formats hold: most have equals."""
    return (np.random.default_rng(seed).integers(-20, 21, shape) / 8).astype(np.float16)


def expected(x: Array, k: int, dim: int, *, largest: bool) -> tuple[Array, Array]:
    """Return the values and their places, of equals the first."""
    keys = x.astype(np.float64)
    places = np.take(np.argsort(-keys if largest else keys, axis=dim, kind="stable"), range(k), axis=dim)
    return np.take_along_axis(x, places, axis=dim), places


ON_DEVICE: list[tuple[tuple[int, ...], int, int, bool]] = [
    ((64, 100), 8, -1, True),
    ((100, 128), 8, 0, True),
    ((40, 70), 3, -1, False),
    ((3, 20, 70), 6, 1, True),
    ((2, 5, 64), 5, 1, False),
    ((33, 2), 1, 1, True),
    ((64, 130), 128, -1, True),
]


@pytest.mark.parametrize(("shape", "k", "dim", "largest"), ON_DEVICE)
def test_values_and_places_are_those_of_a_stable_sort(shape: tuple[int, ...], k: int, dim: int, largest: bool) -> None:
    bundle = spyrec.compile(top(shape, k=k, dim=dim, largest=largest), AUGUST)
    assert operations(bundle) == PLACES
    assert bundle.manifest.host_steps == ()
    x = numbers(k, *shape)
    found = spyrec.run(bundle, {"x": x}, CHECKED)
    again = spyrec.run(bundle, {"x": x}, spyrec.RunOptions(engine="reference"))
    values, places = expected(x, k, dim, largest=largest)
    assert found.is_ok
    for outputs in (found.outputs, again.outputs):
        np.testing.assert_array_equal(outputs["v"], values)
        np.testing.assert_array_equal(outputs["i"], places)
        assert outputs["i"].dtype == np.int64


@settings(max_examples=8)
@given(st.data())
def test_so_they_are_of_any_shape(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    dim = data.draw(st.integers(0, len(shape)))
    shape.insert(dim, data.draw(st.integers(2, 40)))
    shape[0 if dim else -1] *= 8
    k = data.draw(st.integers(1, shape[dim]))
    bundle = spyrec.compile(top(tuple(shape), k=k, dim=dim), AUGUST)
    columns = int(np.prod(shape)) // shape[dim]
    is_own = columns >= 32 and any(k % cores == 0 and k // cores <= 4 for cores in range(1, 33))
    assert operations(bundle) == PLACES * is_own
    x = numbers(0, *shape)
    found = spyrec.run(bundle, {"x": x}, CHECKED)
    assert found.is_ok
    for name, wanted in zip("vi", expected(x, k, dim, largest=True), strict=True):
        np.testing.assert_array_equal(found.outputs[name], wanted)


def test_infinities_stand_first_and_last() -> None:
    x = numbers(1, 64, 50)
    x[:, 7], x[:, 20], x[:, 30] = -np.inf, np.inf, np.nan
    bundle = spyrec.compile(top((64, 50), k=3), AUGUST)
    outputs = spyrec.run(bundle, {"x": x}).outputs
    # the device holds a NaN as an infinity
    assert (outputs["i"][:, :2] == [20, 30]).all()
    assert not np.isfinite(outputs["v"][:, :2].astype(np.float64)).any()
    smallest = spyrec.run(spyrec.compile(top((64, 50), k=1, largest=False), AUGUST), {"x": x}).outputs
    assert (smallest["i"] == 7).all()


HOST: list[tuple[JsonObject, spyrec.CompileOptions]] = [
    (top((64, 100), k=8), spyrec.CompileOptions()),
    (top((64, 100), k=8), spyrec.CompileOptions(target=TARGETS["2026-08"], compat="torch-spyre@2026-08")),
    (top((64, 100), "float32", k=8), AUGUST),
    (top((64, 100), k=37), AUGUST),  # no 32 cores divide 37 evenly
    (top((64, 200), k=130), AUGUST),
    (top((100,), k=8), AUGUST),
    (top((8, 100), k=8), AUGUST),  # of eight columns a stick is mostly padding
    (top((64, 1), k=1), AUGUST),
]


@pytest.mark.parametrize(("graph", "options"), HOST)
def test_what_has_another_form_is_the_hosts(graph: JsonObject, options: spyrec.CompileOptions) -> None:
    bundle = spyrec.compile(graph, options)
    assert operations(bundle) == []
    assert len(bundle.manifest.host_steps) == 1


def test_a_router_chooses_on_the_device_and_looks_up_on_the_host() -> None:
    chosen = node("v", "topk", "p", k=4)
    chosen["outputs"] = ["v", "i"]
    nodes = [
        node("p", "softmax", "x", dim=-1),
        chosen,
        node("t", "sum", "v", dim=-1, keepdim=True),
        node("w", "div", "v", "t"),
        node("g", "index_select", "e", "r", dim=0),
        node("r", "reshape", "i", shape=[-1]),
    ]
    nodes[4], nodes[5] = nodes[5], nodes[4]
    graph = graph_data([tensor("x", 96, 40), tensor("e", 40, 64)], nodes, ["w", "i", "g"])
    bundle = spyrec.compile(graph, AUGUST)
    assert operations(bundle) == PLACES
    x, e = (np.random.default_rng(5).permuted(np.tile(np.arange(40.0), (96, 1)), axis=1) / 4, numbers(6, 40, 64))
    found = spyrec.run(bundle, {"x": x.astype(np.float16), "e": e}, CHECKED)
    assert found.is_ok
    places = np.argsort(-x, axis=1)[:, :4]
    np.testing.assert_array_equal(found.outputs["i"], places)
    np.testing.assert_array_equal(found.outputs["g"], e[places.reshape(-1)])


def test_one_result_alone_is_one_operation() -> None:
    graph = top((64, 100), k=8)
    graph["outputs"] = ["i"]
    assert operations(spyrec.compile(graph, AUGUST)) == ["topkindex"]


def test_what_the_host_made_stays_there() -> None:
    chosen = node("v", "topk", "t", k=4)
    chosen["outputs"] = ["v", "i"]
    nodes = [node("s", "sin", "x"), node("t", "transpose", "s", dim0=0, dim1=1), chosen]
    bundle = spyrec.compile(graph_data([tensor("x", 96, 40)], nodes, ["v", "i"]), AUGUST)
    assert operations(bundle) == []
    x = np.random.default_rng(7).permuted(np.linspace(-1.4, 1.4, 96 * 40)).reshape(96, 40).astype(np.float16)
    assert spyrec.run(bundle, {"x": x}, CHECKED).is_ok
