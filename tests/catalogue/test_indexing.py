"""Lookups and writes by index: against loops over every element, and end to end."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.constants import load_constant
from spyrec.ir.graph import Scalar
from spyrec.ir.opdef import catalogue
from spyrec.ir.types import TensorType
from tests.ir.graphs import codes_of
from tests.support.one_node import Given, run_node

Array = npt.NDArray[Any]
DTYPES = ("float16", "bfloat16", "float32", "int64", "int32", "int8", "uint8", "bool")


def some(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Return numbers that every dtype of its kind holds."""
    generator = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return np.asarray(generator.random(shape) < 0.5)
    if dtype.startswith(("float", "bfloat")):
        return np.asarray(generator.integers(-63, 64, shape) / 8.0)
    return np.asarray(generator.integers(0, 100, shape))


def index_of(shape: tuple[int, ...], extent: int, seed: int = 1) -> Array:
    return np.random.default_rng([seed, *shape]).integers(0, extent, shape)


def every(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(itertools.product(*map(range, shape)))


def replaced(place: tuple[int, ...], dim: int, index: int) -> tuple[int, ...]:
    return (*place[:dim], index, *place[dim + 1 :])


def make(dtype: str, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape, np.bool_ if dtype == "bool" else np.float64 if "float" in dtype else np.int64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0)])
def test_embedding_is_rows(dtype: str, shape: tuple[int, ...]) -> None:
    weight, indices = some(dtype, (5, 4)), index_of(shape, 5)
    wanted = make(dtype, (*shape, 4))
    for place in every(shape):
        wanted[place] = weight[int(indices[place])]
    got = run_node("embedding", [("int64", indices), (dtype, weight)], {"padding_idx": 0}, dtype)
    np.testing.assert_array_equal(got, wanted)
    assert got.shape == wanted.shape


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int64", "bool"])
@pytest.mark.parametrize(("shape", "dim"), [((4,), 0), ((3, 4), -1), ((3, 4, 2), 1), ((2, 3, 2, 3), -2), ((0, 3), 1)])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_index_select_takes_a_list_along_a_dim(dtype: str, shape: tuple[int, ...], dim: int, count: int) -> None:
    x, chosen = some(dtype, shape), index_of((count,), shape[dim])
    front = dim % len(shape)
    wanted = make(dtype, replaced(shape, front, count))
    for place in every(wanted.shape):
        wanted[place] = x[replaced(place, front, int(chosen[place[front]]))]
    got = run_node("index_select", [(dtype, x), ("int32", chosen)], {"dim": dim}, dtype)
    np.testing.assert_array_equal(got, wanted)


GRIDS = [((4,), (6,), 0), ((3, 4), (2, 5), 1), ((5, 3), (7, 3), -2), ((2, 3, 4), (1, 3, 9), 2), ((3,), (0,), 0)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "bool"])
@pytest.mark.parametrize(("shape", "index_shape", "dim"), GRIDS)
def test_gather_reads_along_a_dim(dtype: str, shape: tuple[int, ...], index_shape: tuple[int, ...], dim: int) -> None:
    x, chosen = some(dtype, shape), index_of(index_shape, shape[dim])
    front = dim % len(shape)
    wanted = make(dtype, index_shape)
    for place in every(index_shape):
        wanted[place] = x[replaced(place, front, int(chosen[place]))]
    for op in ("gather", "take_along_dim") if index_shape[:front] == shape[:front] and shape != (3,) else ("gather",):
        if op == "take_along_dim" and index_shape[front + 1 :] != shape[front + 1 :]:
            continue
        got = run_node(op, [(dtype, x), ("int64", chosen)], {"dim": dim}, dtype)
        np.testing.assert_array_equal(got, wanted)


def test_take_along_dim_broadcasts_and_flattens() -> None:
    x, chosen = some("float16", (1, 4)), index_of((3, 2), 4)
    got = run_node("take_along_dim", [("float16", x), ("int64", chosen)], {"dim": 1})
    np.testing.assert_array_equal(got, np.array([[x[0, item] for item in row] for row in chosen]))
    got = run_node("take_along_dim", [("float16", x), ("int64", chosen)])
    np.testing.assert_array_equal(got, [x[0, item] for row in chosen for item in row])


def test_index_follows_pytorch() -> None:
    x = some("float16", (3, 4, 5))
    i, j = np.array([2, -3, 0]), np.array([[1], [-1]])
    cases: list[tuple[list[Array | None], Array]] = [
        ([i], np.stack([x[2], x[0], x[0]])),
        ([None, i], np.stack([x[:, 2], x[:, 1], x[:, 0]], axis=1)),
        ([i, j], np.stack([[x[2, 1], x[0, 1], x[0, 1]], [x[2, 3], x[0, 3], x[0, 3]]])),
        (
            [None, j, i],
            np.stack([[x[:, 1, 2], x[:, 1, 2], x[:, 1, 0]], [x[:, 3, 2], x[:, 3, 2], x[:, 3, 0]]]).transpose(2, 0, 1),
        ),
        ([i, None, i], np.stack([x[2, :, 2], x[0, :, 2], x[0, :, 0]])),
        ([np.array(-1)], x[2]),
    ]
    for indices, wanted in cases:
        operands = [("float16", x), *(None if item is None else ("int64", item) for item in indices)]
        np.testing.assert_array_equal(run_node("index", operands), wanted)


@settings(max_examples=25)
@given(st.data())
def test_index_chooses_elements(data: st.DataObject) -> None:
    """Every element of ``x[i, ..., j]`` is the one that loops over the dims find."""

    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    used = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    common = tuple(data.draw(st.lists(st.integers(0, 3), min_size=0, max_size=2)))
    x = np.arange(int(np.prod(shape))).reshape(shape)
    indices = [
        index_of(common, extent, axis) - data.draw(st.sampled_from([0, extent])) if is_used else None
        for axis, (extent, is_used) in enumerate(zip(shape, used, strict=True))
    ]
    axes = [axis for axis, item in enumerate(indices) if item is not None]
    operands = [x.astype(np.int64), *indices]
    types = [None if item is None else TensorType(item.shape, DType.INT64) for item in operands]
    definition = catalogue()["index"]
    (result,) = definition.infer(types, NO_ATTRIBUTES)
    (got,) = definition.reference(operands, NO_ATTRIBUTES)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    first = axes[0] if axes and axes == list(range(axes[0], axes[-1] + 1)) else 0
    assert got.shape == result.shape
    for place in every(got.shape):
        chosen = place[first : first + len(common)] if axes else ()
        rest = place if not axes else place[:first] + place[first + len(common) :]
        source = [0] * len(shape)
        for axis, index in zip(kept, rest, strict=True):
            source[axis] = index
        for axis in axes:
            item = indices[axis]
            assert item is not None
            source[axis] = int(item[chosen])
        assert got[place] == x[tuple(source)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "bool"])
@pytest.mark.parametrize(("shape", "dim"), [((4,), 0), ((3, 4), -1), ((3, 4, 2), 1), ((1, 2, 9, 3), 2)])
def test_writes_along_a_dim(dtype: str, shape: tuple[int, ...], dim: int) -> None:
    front = dim % len(shape)
    chosen = np.array([shape[front] - 1, 0, shape[front] - 1])
    x, source = some(dtype, shape), some(dtype, replaced(shape, front, 3), 5)
    copied, filled = x.copy(), x.copy()
    total = x.astype(np.float64)
    for place in every(source.shape):
        target = replaced(place, front, int(chosen[place[front]]))
        copied[target] = source[place]
        filled[target] = True if dtype == "bool" else 3
        total[target] += (1 if dtype == "bool" else 2) * float(source[place])
    three = True if dtype == "bool" else 3
    operands = [(dtype, x), ("int64", chosen), (dtype, source)]
    np.testing.assert_array_equal(run_node("index_copy", operands, {"dim": dim}, dtype), copied)
    wanted = total != 0 if dtype == "bool" else total
    alpha = {} if dtype == "bool" else {"alpha": 2}
    np.testing.assert_array_equal(run_node("index_add", operands, {"dim": dim, **alpha}, dtype), wanted)
    operands = [(dtype, x), ("int32", chosen - shape[front]), three]
    np.testing.assert_array_equal(run_node("index_fill", operands, {"dim": dim}, dtype), filled)


def test_index_put_writes_and_adds() -> None:
    x, values = some("float16", (4, 3)), some("float16", (3,), 7)
    i, j = np.array([1, -1, 1]), np.array([2, 0, 2])
    wanted = x.copy()
    for a, b, value in zip(i, j, values, strict=True):
        wanted[a, b] = value
    operands = [("float16", x), ("int64", i), ("int64", j), ("float16", values)]
    np.testing.assert_array_equal(run_node("index_put", operands), wanted)
    wanted = x.copy()
    for a, b, value in zip(i, j, values, strict=True):
        wanted[a, b] += value
    np.testing.assert_array_equal(run_node("index_put", operands, {"accumulate": True}), wanted)


def test_index_put_takes_numbers_and_masks() -> None:
    x = some("int64", (3, 4))
    wanted = x.copy()
    wanted[:, 1] = 7
    np.testing.assert_array_equal(run_node("index_put", [("int64", x), None, ("int64", [1]), 7], None, "int64"), wanted)
    mask = some("bool", (3, 4))
    wanted = np.where(mask, 9, x)
    np.testing.assert_array_equal(run_node("index_put", [("int64", x), ("bool", mask), 9], None, "int64"), wanted)
    values = np.arange(int(mask.sum()))
    got = run_node("index_put", [("int64", x), ("bool", mask), ("int64", values)], None, "int64")
    left = list(values)
    assert got.tolist() == [[left.pop(0) if mask[a, b] else x[a, b] for b in range(4)] for a in range(3)]


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def reduced(x: Array, chosen: Array, source: Array, dim: int, how: tuple[str, bool]) -> Array:
    """Collect what each place receives in a list, and fold the list."""
    reduce, include_self = how
    result = x.astype(np.float64)
    for place in every(x.shape):
        sent = [
            float(source[other]) for other in every(chosen.shape) if replaced(other, dim, int(chosen[other])) == place
        ]
        if sent:
            items = [float(x[place]), *sent] if include_self else sent
            mean = sum(items) / len(items)
            folds = {"sum": sum(items), "prod": float(np.prod(items)), "amax": max(items), "amin": min(items)}
            is_whole = x.dtype.kind == "i"
            result[place] = folds.get(reduce, np.floor(mean) if is_whole else mean)
    return result


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce_folds_what_is_sent(dtype: str, reduce: str, include_self: bool) -> None:
    x, chosen, source = some(dtype, (3, 4)), index_of((2, 3), 4), some(dtype, (2, 5), 3) % 4
    wanted = reduced(x, chosen, source, 1, (reduce, include_self))
    attributes = {"dim": 1, "reduce": reduce, "include_self": include_self}
    got = run_node("scatter_reduce", [(dtype, x), ("int64", chosen), (dtype, source)], attributes, dtype)
    np.testing.assert_allclose(got, wanted, rtol=2.0**-11)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
@pytest.mark.parametrize(("shape", "index_shape", "dim"), GRIDS)
def test_scatters(dtype: str, shape: tuple[int, ...], index_shape: tuple[int, ...], dim: int) -> None:
    front = dim % len(shape)
    x, chosen, source = some(dtype, shape), index_of(index_shape, shape[dim]), some(dtype, index_shape, 4)
    operands = [(dtype, x), ("int64", chosen), (dtype, source)]
    wanted = x.copy()
    for place in every(index_shape):
        wanted[replaced(place, front, int(chosen[place]))] = source[place]
    np.testing.assert_array_equal(run_node("scatter", operands, {"dim": dim}, dtype), wanted)
    total = reduced(x, chosen, source, front, ("sum", True))
    for op, attributes in (("scatter_add", {}), ("scatter", {"reduce": "add"})):
        np.testing.assert_array_equal(run_node(op, operands, {"dim": dim, **attributes}, dtype), total)


def test_scatter_writes_a_number() -> None:
    x, chosen = some("float16", (3, 4)), index_of((3, 2), 4)
    wanted = x.copy()
    for place in every((3, 2)):
        wanted[place[0], chosen[place]] = 1.0
    np.testing.assert_array_equal(run_node("scatter", [("float16", x), ("int64", chosen), 1], {"dim": 1}), wanted)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int64", "bool"])
def test_masked_scatter_fills_in_order(dtype: str) -> None:
    x, mask, source = some(dtype, (1, 6, 4)), some("bool", (1, 6, 1)), some(dtype, (5, 5), 3)
    left = list(source.reshape(-1))
    wanted = np.array([[[left.pop(0) if mask[0, a, 0] else x[0, a, b] for b in range(4)] for a in range(6)]])
    got = run_node("masked_scatter", [(dtype, x), ("bool", mask), (dtype, source)], None, dtype)
    np.testing.assert_array_equal(got, wanted)


X, PLACES, S = ("float16", np.ones((3, 4))), ("int64", np.array([0, 9])), ("float16", np.ones((2, 4)))
PAST: list[tuple[str, list[Given], dict[str, Any], str]] = [
    ("embedding", [("int64", np.array([[0, 3]])), X], {}, "3 at [0,1] is out of range for dim 0 of extent 3"),
    ("embedding", [("int64", np.array([-1])), X], {}, "-1 at [0] is out of range"),
    ("index_select", [X, PLACES], {"dim": 1}, "9 at [1] is out of range for dim 1 of extent 4"),
    ("gather", [X, ("int64", np.array([[4]]))], {"dim": 1}, "4 at [0,0]"),
    ("take_along_dim", [X, ("int64", np.array([12]))], {}, "12 at [0] is out of range for dim 0 of extent 12"),
    ("index", [X, None, ("int64", np.array(-5))], {}, "-5 is out of range for dim 1 of extent 4"),
    ("index_copy", [X, PLACES, S], {"dim": 0}, "9 at [1]"),
    ("index_add", [X, PLACES, S], {"dim": 0}, "9 at [1]"),
    ("index_fill", [X, PLACES, 0], {"dim": 0}, "9 at [1]"),
    ("index_put", [X, PLACES, 0], {}, "9 at [1]"),
    ("scatter", [X, ("int64", np.array([[7]])), 1], {"dim": 0}, "7 at [0,0]"),
]


@pytest.mark.parametrize(("op", "operands", "attributes", "text"), PAST)
def test_an_index_past_the_elements_stops_the_run(
    op: str, operands: list[Given], attributes: dict[str, Any], text: str
) -> None:
    with pytest.raises(SpyrecError) as error:
        run_node(op, operands, attributes)
    (finding,) = error.value.diagnostics
    assert finding.code in ("SPY0231", "SPY0706")  # the host's word, and the device's
    if finding.code == "SPY0231":
        assert text in finding.message
        assert '"y"' in finding.message


def test_masks_take_what_they_need() -> None:
    mask = ("bool", np.array([True, True, False]))
    for op, operands in (
        ("masked_scatter", [("float16", np.zeros(3)), mask, ("float16", np.ones(1))]),
        ("index_put", [("float16", np.zeros(3)), mask, ("float16", np.ones(3))]),
    ):
        with pytest.raises(SpyrecError) as error:
            run_node(op, operands)
        assert error.value.diagnostics[0].code == "SPY0232"


def refusal(op: str, operands: list[tuple[str, list[int]] | float | None], attributes: dict[str, Any]) -> str:
    names = [f"x{n}" if isinstance(item, tuple) else item for n, item in enumerate(operands)]
    inputs = [
        {"name": f"x{n}", "shape": item[1], "dtype": item[0]}
        for n, item in enumerate(operands)
        if isinstance(item, tuple)
    ]
    node = {"name": "y", "op": op, "inputs": names, "attrs": attributes}
    graph = {"format": "spyrec.graph/1", "name": "g", "inputs": inputs, "nodes": [node], "outputs": ["y"]}
    return codes_of(graph)[0][0]


@settings(max_examples=25)
@given(st.data())
def test_a_constant_mask_is_the_positions_that_it_chooses(data: st.DataObject) -> None:
    """Against NumPy, whose rule for masks of any rank, beside others and beside integers, is PyTorch's."""
    shape = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    choices: list[Array | None] = []
    axis = 0
    while axis < len(shape):
        rank = data.draw(st.integers(0, len(shape) - axis))
        if rank == 0:
            is_whole = data.draw(st.booleans())
            choices.append(None if is_whole else np.array(data.draw(st.integers(-shape[axis], shape[axis] - 1))))
        else:
            choices.append(np.asarray(generator.random(shape[axis : axis + rank]) < 0.6))
        axis += max(rank, 1)
    x = np.arange(int(np.prod(shape))).reshape(shape)
    builder = spyrec.GraphBuilder("masked")
    operands = [None if it is None else builder.constant(f"c{place}", it) for place, it in enumerate(choices)]
    given_x = builder.input("x", shape, "int64")
    try:
        wanted = x[tuple(slice(None) if it is None else it for it in choices)]
    except IndexError:
        with pytest.raises(SpyrecError, match="SPY0201"):
            builder.index(given_x, operands)
        return
    builder.output(builder.index(given_x, operands, name="y"))
    graph = builder.build()
    (node,) = graph.nodes
    types = [None if name is None else graph.type_of(name) for name in node.inputs if not isinstance(name, Scalar)]
    assert graph.type_of("y").shape == wanted.shape
    (got,) = catalogue()["index"].reference(
        [x if name == "x" else None if name is None else load_constant(graph, str(name)) for name in node.inputs],
        NO_ATTRIBUTES,
    )
    assert all(item is None or item.dtype is not DType.BOOL for item in types)
    np.testing.assert_array_equal(got, wanted)


def test_a_constant_mask_in_a_file_chooses(tmp_path: Path) -> None:
    x, mask = some("float16", (3, 4, 5)), np.random.default_rng(2).random((3, 4)) < 0.5
    np.save(tmp_path / "mask.npy", mask)
    graph: dict[str, Any] = {
        "format": "spyrec.graph/1",
        "name": "g",
        "inputs": [{"name": "x", "shape": [3, 4, 5], "dtype": "float16"}],
        "constants": [
            {"name": "m", "shape": [3, 4], "dtype": "bool", "data": {"file": "mask.npy"}},
            {"name": "m.true0", "shape": [], "dtype": "int64", "value": 1},
        ],
        "nodes": [
            {"name": "y", "op": "index", "inputs": ["x", "m"]},
            {"name": "z", "op": "index", "inputs": ["x", "m", "m.true0"]},
        ],
        "outputs": ["y", "z"],
    }
    bundle = spyrec.compile(graph, base_dir=tmp_path)
    bundle.save(tmp_path / "bundle")
    found = spyrec.run(tmp_path / "bundle", {"x": x.astype(np.float16)}, spyrec.RunOptions(check=True))
    assert all(item.ok for item in (found.check or {}).values())
    np.testing.assert_array_equal(found.outputs["y"], x[mask])
    np.testing.assert_array_equal(found.outputs["z"], x[mask, 1])


@pytest.mark.parametrize(
    ("mask", "code"),
    [(np.ones(4, bool), "SPY0207"), (np.ones((3, 4, 5), bool), "SPY0206"), (np.array(True), "SPY0206")],
)
def test_a_constant_mask_covers_the_dims_that_it_has(mask: Array, code: str) -> None:
    builder = spyrec.GraphBuilder("g")
    x, given_mask = builder.input("x", (3, 4)), builder.constant("mask", mask)
    with pytest.raises(SpyrecError, match=code):
        builder.index(x, [given_mask])
    builder.output(builder.constant("mask.true0", np.zeros(3, np.int64)))  # a refused node has left no name


def test_a_constant_index_past_the_elements_is_refused_when_a_graph_is_compiled() -> None:
    builder = spyrec.GraphBuilder("g")
    table, places = builder.constant("t", np.arange(3)), builder.constant("i", np.array([0, 3]))
    builder.output(builder.index_select(table, places, dim=0, name="y"))
    with pytest.raises(SpyrecError, match="SPY0231"):
        spyrec.compile(builder)


F, L = ("float16", [3, 4]), ("int64", [2])
REFUSED: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("embedding", [F, F], {}, "SPY0230"),
    ("embedding", [L, F], {"max_norm": 1.0}, "SPY0211"),
    ("embedding", [L, F], {"padding_idx": 3}, "SPY0209"),
    ("embedding", [L, ("float16", [3])], {}, "SPY0206"),
    ("index_select", [F, ("int64", [2, 2])], {"dim": 0}, "SPY0206"),
    ("index_select", [F, L], {"dim": 2}, "SPY0204"),
    ("gather", [F, L], {"dim": 0}, "SPY0206"),
    ("gather", [F, ("int64", [2, 5])], {"dim": 0}, "SPY0207"),
    ("take_along_dim", [F, ("int64", [2, 3])], {"dim": 0}, "SPY0201"),
    ("index", [F, ("bool", [3, 4])], {}, "SPY0233"),
    ("index", [F, L, L, L], {}, "SPY0206"),
    ("index", [F, ("int64", [2]), ("int64", [3])], {}, "SPY0201"),
    ("index_copy", [F, L, F], {"dim": 0}, "SPY0207"),
    ("index_copy", [F, L, ("float32", [2, 4])], {"dim": 0}, "SPY0203"),
    ("index_add", [("int64", [3]), L, L], {"dim": 0, "alpha": 0.5}, "SPY0215"),
    ("index_fill", [("int64", [3]), L, 0.5], {"dim": 0}, "SPY0203"),
    ("index_put", [F, L], {}, "SPY0120"),
    ("index_put", [F, L, None], {}, "SPY0219"),
    ("index_put", [F, L, ("float16", [3])], {}, "SPY0201"),
    ("index_put", [F, ("bool", [4]), 0], {}, "SPY0207"),
    ("scatter", [F, ("int64", [2, 3]), ("float16", [1, 3])], {"dim": 0}, "SPY0207"),
    ("scatter_reduce", [("bool", [3]), ("int64", [3]), ("bool", [3])], {"dim": 0, "reduce": "mean"}, "SPY0202"),
    ("masked_scatter", [F, L, F], {}, "SPY0210"),
]


@pytest.mark.parametrize(("op", "operands", "attributes", "code"), REFUSED)
def test_refusals(op: str, operands: list[Any], attributes: dict[str, Any], code: str) -> None:
    assert refusal(op, operands, attributes) == code


MOVED: list[tuple[str, list[str], dict[str, Any]]] = [
    ("gather", ["x", "j"], {"dim": 0}),
    ("take_along_dim", ["x", "j"], {"dim": 0}),
    ("index", ["x", "i"], {}),
    ("masked_scatter", ["x", "m", "s"], {}),
]
"""What the host moves: the device's copies of rows are held to DLFloat16."""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(("op", "operands", "attributes"), MOVED)
def test_what_is_moved_keeps_every_bit(op: str, operands: list[str], attributes: dict[str, Any], dtype: str) -> None:
    """Payloads of NaN and negative zeros too: elements are never decoded."""
    kind = DType(dtype)
    bits = np.dtype(f"uint{8 * kind.item_bytes}")
    every_bit = np.random.default_rng(0).integers(0, 2**31, (6, 4)).astype(bits)
    every_bit[0, 0] = np.iinfo(bits).max
    values = {
        "x": every_bit.view(kind.carrier),
        "s": every_bit[::-1][:2].copy().view(kind.carrier),
        "i": np.array([0, 5]),
        "j": np.array([[0, 1, 2, 3], [5, 0, 0, 1]]),
        "m": np.array([[True], [False], [False], [True], [False], [False]]),
    }
    dtypes = {"x": dtype, "s": dtype, "i": "int64", "j": "int64", "m": "bool"}
    node = {"name": "y", "op": op, "inputs": operands, "attrs": attributes}
    inputs = [{"name": name, "shape": list(values[name].shape), "dtype": dtypes[name]} for name in operands]
    graph = {"format": "spyrec.graph/1", "name": "g", "inputs": inputs, "nodes": [node], "outputs": ["y"]}
    given_values = {name: values[name] for name in operands}
    got = np.asarray(spyrec.run(spyrec.compile(graph), given_values).outputs["y"]).view(bits)
    rows = every_bit[[0, 5]]
    match op:
        case "index_copy":
            wanted = every_bit.copy()
            wanted[[0, 5]] = every_bit[::-1][:2]
        case "masked_scatter":
            wanted = every_bit.copy()
            wanted[[0, 3]] = every_bit[::-1][:2]
        case "gather" | "take_along_dim":
            wanted = np.array([[every_bit[values["j"][a, b], b] for b in range(4)] for a in range(2)], bits)
        case _:
            wanted = rows
    np.testing.assert_array_equal(got, wanted)


def test_the_builder_takes_index_tensors_as_pytorch_does() -> None:
    """In a list, or one after the other; the values of index_put behind them."""
    builder = spyrec.GraphBuilder("g")
    x, i = builder.input("x", (3, 4)), builder.input("i", (2,), "int64")
    calls: list[tuple[str, list[Any], dict[str, Any]]] = [
        ("index", [x, [None, i]], {}),
        ("index", [x, None, i], {}),
        ("index_put", [x, [i, 0.5]], {}),
        ("einsum", [[x, x]], {"equation": "ij,kj->ik"}),
        ("embedding", [i, x], {}),
    ]
    nodes = [getattr(builder, op)(*operands, **attributes) for op, operands, attributes in calls]
    assert [node.shape for node in nodes] == [(3, 2), (3, 2), (3, 4), (3, 3), (2, 4)]
