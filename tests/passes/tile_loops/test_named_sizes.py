"""Dim names in sizes of attributes: they name the result's axes, so that loops and symbolic dims follow a reshape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, GraphBuilder, RunOptions
from spyrec.diagnostics import SpyrecError
from spyrec.frontends.value import Value
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node, random_arrays, read, scheduled
from tests.support.random_loops import looped_graph
from tests.support.tiling_cases import loop, looped

DIMS = {"B": 2, "S": 14, "T": 14, "H": 5, "D": 64, "E": 64}
SYMBOLIC = {"min": 1, "max": 200, "multiple_of": 1}
PROJECTIONS, SPLITS, HEADS = (tuple(letter + stage for letter in "qkv") for stage in ("p", "s", "h"))
BEHIND = ("op", "of", "y")
ALL = (*PROJECTIONS, *SPLITS, *HEADS, "o", *BEHIND)


def _attention(*loops: JsonObject) -> JsonObject:
    """Self-attention from the projections on; heads are split and merged by reshapes, the keys' axis is named T."""
    weights = {"wq": "XE", "wk": "XE", "wv": "XE", "wo": "EX"}
    inputs = {"x": "BSE", **weights}
    nodes = [node(name, "linear", "x", f"w{name[0]}") for name in PROJECTIONS]
    for split, projection in zip(SPLITS, PROJECTIONS, strict=True):
        rows = "S" if split == "qs" else "T"
        nodes.append(node(split, "reshape", projection, shape=["B", rows, "H", "D"]))
    nodes += [node(heads, "permute", split, dims=[0, 2, 1, 3]) for heads, split in zip(HEADS, SPLITS, strict=True)]
    nodes += [
        node("o", "scaled_dot_product_attention", *HEADS),
        node("op", "permute", "o", dims=[0, 2, 1, 3]),
        node("of", "reshape", "op", shape=["B", "S", "H*D"]),
        node("y", "linear", "of", "wo"),
    ]
    return looped({**DIMS, "X": DIMS["H"] * DIMS["D"]}, inputs, nodes, loops)


LOOPS = {
    "batch": [loop("B", *ALL, tiles=2)],
    "heads": [loop("H", "o", tiles=5)],
    "heads_with_a_remainder": [loop("H", "o", "op", tile_size=2)],
    "batch_and_heads": [loop("B", loop("H", *ALL, tile_size=2), tile_size=1)],
    "heads_inside_batch": [loop("B", *PROJECTIONS, loop("H", *SPLITS, *HEADS, "o", tile_size=1), *BEHIND, tiles=2)],
    "rows": [loop("S", "qp", "o", *BEHIND, tile_size=6)],
    "heads_inside_rows": [loop("S", loop("H", "o", tile_size=2), *BEHIND, tile_size=5)],
    "rows_inside_heads": [loop("H", loop("S", "o", tile_size=5), *BEHIND, tile_size=2)],
}


def _bytes(data: JsonObject, options: CompileOptions | None = None) -> bytes:
    arrays = {name: values.astype(np.float16) / np.float16(16) for name, values in random_arrays(data, 3).items()}
    bundle = spyrec.compile(data, options)
    result = spyrec.run(bundle, arrays, RunOptions(check=True, sanitize="all"))
    assert result.is_ok, result.check
    assert result.sanitizer == ()
    return result.outputs["y"].tobytes()


@pytest.fixture(scope="module")
def untiled() -> bytes:
    return _bytes(_attention())


@pytest.mark.parametrize("name", LOOPS)
def test_attention_that_splits_heads_by_a_reshape_is_tiled_over_them(name: str, untiled: bytes) -> None:
    data = _attention(*LOOPS[name])
    tiled = {loop.dim for loop in scheduled(data).loops.values()}
    assert tiled == {item for item in "BHS" if f'"{item}"' in str(LOOPS[name]).replace("'", '"')}
    assert _bytes(data) == untiled


def test_unrolled_loops_over_split_heads_equal_kept_ones(untiled: bytes) -> None:
    assert _bytes(_attention(*LOOPS["batch_and_heads"]), CompileOptions(loops="unroll")) == untiled


def _built() -> GraphBuilder:
    """Return the graph of ``_attention`` with loops over batch and heads, written in Python."""
    builder = GraphBuilder("small")
    batch, rows, keys, heads, width, model = (builder.dim(name, extent) for name, extent in DIMS.items())
    both = builder.dim("X", DIMS["H"] * DIMS["D"])
    x = builder.input("x", [batch, rows, model])
    weights = {name: builder.input(f"w{name}", [both, model]) for name in "qkv"}
    last = builder.input("wo", [model, both])
    with builder.loop(tile_size={"B": 1, "H": 2}):
        projected = [builder.linear(x, weights[name], name=f"{name}p") for name in "qkv"]
        split: list[Value] = []
        for name, value in zip("qkv", projected, strict=True):
            length = rows if name == "q" else keys
            split.append(builder.reshape(value, [batch, length, heads, "D"], name=f"{name}s"))
        turned = [builder.permute(item, [0, 2, 1, 3], name=f"{item.name[0]}h") for item in split]
        assert turned[1].dims == ("B", "H", "T", "D")
        attended = builder.scaled_dot_product_attention(*turned, name="o")
        back = builder.permute(attended, [0, 2, 1, 3], name="op")
        flat = builder.reshape(back, [batch, rows, "H*D"], name="of")
        builder.output(builder.linear(flat, last, name="y"))
    assert width.extent == DIMS["D"]
    return builder


def test_a_builder_names_axes_by_sizes_as_a_file_does(untiled: bytes) -> None:
    data = _built().to_json()
    assert read(dict(data)) == read(_attention(*LOOPS["batch_and_heads"]))
    assert _bytes(dict(data)) == untiled


@examples(12)
@given(seed=st.integers(0, 1 << 40))
def test_axes_merged_and_split_again_by_name_are_tiled_right(seed: int) -> None:
    data, arrays = _with_reshape(seed)
    found = spyrec.run(spyrec.compile(data), arrays, RunOptions(check=True, sanitize="all"))
    assert found.is_ok, found.check
    assert found.sanitizer == ()


def _with_reshape(seed: int) -> tuple[JsonObject, dict[str, np.ndarray]]:
    while True:
        data, arrays = looped_graph(seed)
        if '"view"' in str(data["nodes"]).replace("'", '"'):
            return data, arrays
        seed += 1


# --- names ---


def _names(*nodes: JsonObject, dims: JsonObject | None = None) -> list[tuple[str | None, ...]]:
    inputs: list[JsonObject] = [{"name": "x", "shape": ["A", "B", 6], "dtype": "float16"}]
    data = graph_data(inputs, nodes, ["y"], dims=dims or {"A": 4, "B": 10, "C": 6, "N": 4, "I": 1})
    graph = read(data)
    return [graph.values[str(item["name"])].dims for item in nodes]


@pytest.mark.parametrize(
    ("op", "attributes", "wanted"),
    [
        ("reshape", {"shape": ["A", "B", "C"]}, ("A", "B", "C")),
        ("reshape", {"shape": ["N", -1, 6]}, ("N", "B", None)),
        ("reshape", {"shape": [4, 2, 5, "C"]}, ("A", None, None, "C")),
        ("reshape", {"shape": [2, 2, 10, 6]}, (None, None, "B", None)),
        ("reshape", {"shape": ["A", "B*C"]}, ("A", None)),
        ("reshape", {"shape": ["A*1", "B", "C"]}, ("A", "B", "C")),
        ("view", {"size": ["A*B", "C"]}, (None, "C")),
        ("flatten", {"start_dim": 1}, ("A", None)),
        ("expand", {"size": ["N", "A", -1, "C"]}, ("N", "A", "B", "C")),
    ],
)
def test_sizes_name_axes_and_numbers_leave_the_operands_names(
    op: str, attributes: JsonObject, wanted: tuple[str | None, ...]
) -> None:
    assert _names(node("y", op, "x", **attributes)) == [wanted]


def test_a_full_tensor_has_the_names_of_its_sizes() -> None:
    assert _names(node("y", "full", size=["B", 3], fill_value=1.0)) == [("B", None)]


# --- symbolic dims ---


def _symbolic(
    nodes: list[JsonObject], *loops: object, shape: tuple[object, ...] = ("S", 256), **more: object
) -> JsonObject:
    dims: JsonObject = {"S": SYMBOLIC, "U": SYMBOLIC, "H": 4, "D": 64, "I": 1, "N": 200}
    inputs: list[JsonObject] = [{"name": "x", "shape": list(shape), "dtype": "float16"}]
    inputs += [{"name": name, "shape": entry, "dtype": "float16"} for name, entry in more.items()]
    return graph_data(inputs, nodes, [str(nodes[-1]["name"])], dims=dims, loops=list(loops))


_SPLIT = [
    node("s", "reshape", "x", shape=["S", "H", "D"]),
    node("t", "transpose", "s", dim0=0, dim1=1),
    node("k", "relu", "t"),
    node("b", "transpose", "k", dim0=0, dim1=1),
    node("y", "reshape", "b", shape=["S", "H*D"]),
]
SYMBOLIC_GRAPHS = {
    "split_and_merged": _symbolic(_SPLIT, loop("H", "k", tile_size=3)),
    "split_and_tiled_over_both": _symbolic(_SPLIT, loop("H", loop("S", "k", tile_size=64), tile_size=1)),
    "expanded": _symbolic([node("e", "expand", "r", size=["S", 256]), node("y", "add", "x", "e")], r=["I", 256]),
    "filled": _symbolic([node("f", "full", size=["S", 256], fill_value=2.5), node("y", "mul", "x", "f")]),
    "cut_at_its_end": _symbolic([node("y", "slice", "x", dim=0, start=0, end="S")]),
}


@pytest.mark.parametrize("name", SYMBOLIC_GRAPHS)
def test_a_symbolic_dim_stands_in_sizes(name: str) -> None:
    data = SYMBOLIC_GRAPHS[name]
    bundle = spyrec.compile(data)
    arrays = random_arrays(data, 3)
    for extent in (5, 64, 200):
        inputs = {**arrays, "x": arrays["x"][:extent]}
        result = spyrec.run(bundle, inputs, RunOptions(check=True, sanitize="all"))
        assert result.is_ok, result.check
        assert result.sanitizer == ()
        assert result.outputs["y"].shape == (extent, 256)


@pytest.mark.parametrize(
    ("shape", "sizes", "text"),
    [
        (("S", 256), ["U", 256], 'axis 0 of the result is named "U" and is "S"'),
        (("S", 256), ["N", 256], 'axis 0 of the result is named "N" and is "S"'),
        (("N", 256), ["S", 256], 'axis 0 of the result is named "S" and is "N"'),
        (("S", "U"), ["U", "S"], 'axis 0 of the result is named "U" and is "S"'),
        (("S", 64), [64, "S"], 'axis 1 of the result is named "S" and is no whole axis'),
        (("S", 64), ["S*8", 8], "its result float16[1600,8] is float16[8,8] at the smallest extents"),
    ],
)
def test_a_symbolic_dim_is_given_no_other_name(shape: tuple[object, ...], sizes: list[object], text: str) -> None:
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(_symbolic([node("y", "reshape", "x", shape=sizes)], shape=shape))
    found = caught.value.diagnostics[0]
    assert found.code == "SPY0426"
    assert text in found.message
    assert found.hint
