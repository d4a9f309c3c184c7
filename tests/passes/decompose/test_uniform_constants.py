"""One number for many elements stays one number: no array of them is made anywhere between the graph and the bundle."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.bundle.manifest import Role
from spyrec.diagnostics import SpyrecError
from spyrec.files.array_memory import PIECE_BYTES, digest, is_uniform, per_number, per_stored_number, pieces
from spyrec.ir.ops.triangles import TriangleAttributes, is_kept
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node, only_diagnostic, random_arrays, tensor
from tests.support.planned_runs import small_target

_LITTLE = 1 << 26


@contextmanager
def _little_memory(limit_bytes: int = _LITTLE) -> Generator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < limit_bytes


def _uniform(
    nodes: list[JsonObject], outputs: list[str], *shape: int, dtype: str = "float16", value: object = 1.5
) -> JsonObject:
    constant = tensor("c", *shape, dtype=dtype, value=value)
    return graph_data([], nodes, outputs, constants=[constant])


_BIG = (80_000, 80_000)
"""12.8 GB as float16, and a segment holds it."""

_USES = {
    "relu": [node("y", "relu", "c")],
    "sum": [node("y", "sum", "c", dim=[0])],
    "softmax": [node("y", "softmax", "c", dim=-1)],
    "transpose": [node("t", "transpose", "c", dim0=0, dim1=1), node("y", "exp", "t")],
    "slice": [node("t", "slice", "c", dim=0, start=1, end=40_000), node("y", "exp", "t")],
}


@pytest.mark.parametrize("nodes", _USES.values(), ids=_USES)
def test_a_large_uniform_constant_is_compiled_and_written_in_little_memory(
    nodes: list[JsonObject], tmp_path: Path
) -> None:
    data = _uniform(nodes, ["y"], *_BIG)
    with _little_memory():
        bundle = spyrec.compile(data)
        bundle.save(tmp_path / "b")
        spyrec.Bundle.load(tmp_path / "b")
    assert all(item.shape == () for item in bundle.manifest.arguments if item.role is Role.CONSTANT)
    assert sum(path.stat().st_size for path in (tmp_path / "b").rglob("*") if path.is_file()) < 1 << 23
    written = json.loads((tmp_path / "b" / "graph.json").read_text())
    assert written["constants"] == [{"name": "c", "shape": list(_BIG), "dtype": "float16", "value": 1.5}]


def test_a_uniform_constant_that_no_segment_holds_is_refused_with_its_size(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(_uniform([node("y", "relu", "c")], ["y"], 100_000, 100_000), indent=1))
    with _little_memory(), pytest.raises(SpyrecError) as caught:
        spyrec.compile(path)
    found = only_diagnostic(caught.value)
    assert (found.code, "20000000000" in found.message) == ("SPY0401", True)
    assert found.location is not None
    assert found.location.resolved().line is not None


@pytest.mark.parametrize("shape", [(1 << 62,), (1 << 31, 1 << 31)])
def test_more_bytes_than_can_be_counted_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(_uniform([node("y", "relu", "c")], ["y"], *shape, dtype="float32"))
    assert only_diagnostic(caught.value).code == "SPY0125"
    builder = spyrec.GraphBuilder("b")
    with pytest.raises(SpyrecError) as caught:
        builder.constant("c", 1.5, (1 << 62,), dtype="float32")
    assert only_diagnostic(caught.value).code == "SPY0125"


_DIRECTED: dict[str, tuple[str, object, list[JsonObject]]] = {
    "added": ("float16", 1.5, [node("y", "add", "x", "c")]),
    "alone": ("float16", 1.5, [node("y", "softmax", "c", dim=-1)]),
    "in half": ("float16", 0.1, [node("y", "mul", "x", "c")]),
    "infinite": ("float16", "-inf", [node("y", "maximum", "x", "c")]),
    "chosen by": ("bool", True, [node("y", "where", "c", "x", 2.0)]),
    "bfloat16": ("bfloat16", 0.1, [node("y", "exp", "c")]),
    "integers": ("int32", 7, [node("y", "cat", "c", "c", dim=0)]),
    "first factor": ("float16", 0.5, [node("t", "transpose", "x", dim0=0, dim1=1), node("y", "mm", "c", "t")]),
    "second factor": ("float16", 0.5, [node("t", "transpose", "c", dim0=0, dim1=1), node("y", "mm", "x", "t")]),
    "joined": ("float16", 0.5, [node("y", "cat", "x", "c", dim=1)]),
    "expanded factor": (
        "float16",
        0.5,
        [
            node("r", "slice", "x", dim=0, start=0, end=1),
            node("e", "expand", "r", size=[70, 100]),
            node("t", "transpose", "c", dim0=0, dim1=1),
            node("p", "mm", "c", "t"),
            node("y", "mm", "p", "e"),
        ],
    ),
    "normed": ("float16", 0.5, [node("y", "layer_norm", "c", normalized_shape=[100])]),
}


@pytest.mark.parametrize("usable_sticks", [None, 16])
@pytest.mark.parametrize(("dtype", "value", "nodes"), _DIRECTED.values(), ids=_DIRECTED)
def test_a_uniform_constant_gives_the_numbers_that_its_elements_give(
    dtype: str, value: object, nodes: list[JsonObject], usable_sticks: int | None, tmp_path: Path
) -> None:
    shape = (70, 100)
    carrier = {"bfloat16": "float32"}.get(dtype, dtype)
    listed = np.full(shape, float(str(value)) if isinstance(value, str) else value, carrier).tolist()
    inputs = [tensor("x", *shape)]
    uniform = graph_data(inputs, nodes, ["y"], constants=[tensor("c", *shape, dtype=dtype, value=value)])
    text = [[value] * shape[1]] * shape[0] if isinstance(value, str) else listed
    written = graph_data(inputs, nodes, ["y"], constants=[tensor("c", *shape, dtype=dtype, value=text)])
    options = CompileOptions() if usable_sticks is None else CompileOptions(target=small_target(usable_sticks))
    results = [
        spyrec.run(spyrec.compile(data, options), random_arrays(uniform), RunOptions(check=True, sanitize="all"))
        for data in (uniform, written)
    ]
    assert all(result.is_ok for result in results)
    np.testing.assert_array_equal(results[0].outputs["y"], results[1].outputs["y"])


def test_a_view_of_one_row_of_numbers_is_held_and_written_without_its_rows(tmp_path: Path) -> None:
    row = np.linspace(0, 1, 1 << 10, dtype=np.float32).astype(np.float16)
    builder = spyrec.GraphBuilder("b")
    with _little_memory(3 * PIECE_BYTES + (1 << 24)):
        c = builder.constant("c", np.broadcast_to(row, (1 << 16, 1 << 10)))
        builder.output(builder.relu(c, name="y"))
        bundle = spyrec.compile(builder)
        bundle.save(tmp_path / "b")
    assert (tmp_path / "b" / "constants.safetensors").stat().st_size >= 2 << 26
    np.testing.assert_array_equal(spyrec.Bundle.load(tmp_path / "b").constants["c"][[0, -1]], [row, row])


def test_a_causal_mask_is_one_line_of_numbers_until_it_is_written() -> None:
    names = [tensor(name, 1, 4096, 64) for name in "qkv"]
    attention = node("y", "scaled_dot_product_attention", "q", "k", "v", is_causal=True)
    with _little_memory(1 << 24):  # 16 Mi numbers
        bundle = spyrec.compile(graph_data(names, [attention], ["y"]))
    mask = bundle.constants["causal_bias"]
    np.testing.assert_array_equal(mask[[0, 7, -1]] == 0, np.tri(4096, dtype=bool)[[0, 7, -1]])


@pytest.mark.parametrize("extents", [(1 << 15, 1 << 15), (1 << 33, 1), (10**12, 10**12)])
def test_a_causal_mask_beyond_its_limit_is_refused(extents: tuple[int, int]) -> None:
    rows, columns = extents
    names = [tensor("q", rows, 2), tensor("k", columns, 2), tensor("v", columns, 2)]
    attention = node("y", "scaled_dot_product_attention", "q", "k", "v", is_causal=True)
    with _little_memory(), pytest.raises(SpyrecError) as caught:
        spyrec.compile(graph_data(names, [attention], ["y"]))
    found = only_diagnostic(caught.value)
    assert found.code == ("SPY0441" if rows * columns >= 1 << 63 else "SPY0443")
    assert found.location is not None
    assert found.location.pointer == "/nodes/0"


@pytest.mark.parametrize("op", ["tril", "triu"])
def test_the_mask_of_a_triangle_beyond_its_limit_is_refused_before_it_is_made(op: str) -> None:
    extent = (1 << 28) + 1
    with _little_memory(), pytest.raises(SpyrecError) as caught:
        spyrec.compile(graph_data([tensor("x", 1, extent)], [node("y", op, "x")], ["y"]))
    found = only_diagnostic(caught.value)
    assert found.code == "SPY0443"
    assert found.location is not None
    assert found.location.pointer == "/nodes/0"


@pytest.mark.parametrize("diagonal", [-(2**63), -4, -3, -1, 0, 2, 4, 5, 2**63 - 1])
@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (1, 1), (0, 3), (3, 0)])
def test_triangles_are_those_of_numpy(shape: tuple[int, int], diagonal: int) -> None:
    ones = np.ones(shape, np.bool_)
    near = min(max(diagonal, -10), 10)  # NumPy's own index would overflow
    np.testing.assert_array_equal(is_kept("tril", shape, TriangleAttributes(diagonal)), np.tril(ones, near))
    np.testing.assert_array_equal(is_kept("triu", shape, TriangleAttributes(diagonal)), np.triu(ones, near))


@st.composite
def _views(draw: st.DrawFn) -> npt.NDArray[np.int16]:
    """Arrays whose dims repeat, overlap, run backwards or skip."""
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(st.integers(0, 4)) for _ in range(rank))
    steps = tuple(draw(st.integers(-3, 3)) for _ in range(rank))
    base = np.arange(64, dtype=np.int16)
    return np.lib.stride_tricks.as_strided(base[32:], shape, tuple(2 * step for step in steps))


@examples(200)
@given(view=_views())
def test_what_works_on_stored_numbers_gives_what_it_gives_on_the_array(view: npt.NDArray[np.int16]) -> None:
    for mapped in (per_number, per_stored_number):
        np.testing.assert_array_equal(mapped(view, lambda numbers: numbers.astype(np.float32) * 2), view * 2)
    np.testing.assert_array_equal(np.concatenate([piece.reshape(-1) for piece in pieces(view)]), view.reshape(-1))
    assert digest(view) == digest(view.copy())
    shown = set(view.reshape(-1).tolist())
    assert not is_uniform(view) or len(shown) == 1


def test_digests_of_large_views_tell_different_numbers_apart() -> None:
    count = PIECE_BYTES
    line = np.zeros(count + 64, np.uint8)
    line[-1] = 1
    windows = np.lib.stride_tricks.sliding_window_view(line, count)
    assert digest(windows[:2]) == digest(windows[:2])
    assert digest(windows[-2:]) != digest(windows[:2])
    assert digest(windows[-2:]) != digest(windows[-2:][::-1])
    assert digest(windows[:2]) != digest(windows[:2].reshape(-1))
