"""Graphs with loops that were silently wrong elsewhere, or that are easily so; by name, made when asked for."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from math import prod

from tests.support.graph_files import JsonObject, graph_data, node

Extents = Mapping[str, int]


def looped(
    dims: Extents, inputs: Mapping[str, Sequence[str]], nodes: Sequence[JsonObject], loops: Sequence[object], *out: str
) -> JsonObject:
    """Return a graph whose inputs have named dims; the last node is the output, or those named."""
    tensors: list[JsonObject] = [
        {"name": name, "shape": list(shape), "dtype": "float16"} for name, shape in inputs.items()
    ]
    outputs = list(out) or [str(nodes[-1]["name"])]
    return {**graph_data(tensors, nodes, outputs, dims=dict(dims)), "loops": list(loops)}


def loop(dim: str | Sequence[str], *body: object, tiles: int | None = None, tile_size: int | None = None) -> JsonObject:
    """Return one loop of a request."""
    count: JsonObject = {"tile_size": tile_size} if tiles is None else {"tiles": tiles}
    return {"dim": dim if isinstance(dim, str) else list(dim), **count, "body": list(body)}


def _size_one_tiles_of_four_dims() -> JsonObject:
    """Tiles of one element, the failure at (1, 20, 16, 64): every dim but the sticks is cut down to single elements."""
    dims = {"N": 1, "H": 20, "S": 16, "D": 64}
    nodes = [node("p", "add", "a", "b"), node("q", "mul", "p", "b")]
    body = loop("H", loop("S", "p", "q", tile_size=1), tile_size=1)
    return looped(dims, {"a": "NHSD", "b": "NHSD"}, nodes, [loop("N", body, tile_size=1)])


def _size_one(dim: str) -> Callable[[], JsonObject]:
    def make() -> JsonObject:
        nodes = [node("p", "mul", "a", "b"), node("q", "sub", "p", "c")]
        inputs = {"a": "NHSD", "b": "NHSD", "c": "SD"}
        return looped({"N": 3, "H": 5, "S": 4, "D": 130}, inputs, nodes, [loop(dim, "p", "q", tile_size=1)])

    return make


_ATTENTION = {"B": 2, "H": 3, "S": 24, "T": 136, "D": 64}


def _attention_op(dims: str | Sequence[str], count: int) -> Callable[[], JsonObject]:
    def make() -> JsonObject:
        nodes = [node("o", "scaled_dot_product_attention", "q", "k", "v")]
        inputs = {"q": "BHSD", "k": "BHTD", "v": "BHTD"}
        return looped(_ATTENTION, inputs, nodes, [loop(dims, "o", tile_size=count)])

    return make


def _attention_written_out(*levels: tuple[str, int]) -> Callable[[], JsonObject]:
    def make() -> JsonObject:
        nodes = [
            node("s", "matmul", "q", "k"),
            node("c", "mul", "s", 0.125),
            node("p", "softmax", "c", dim=-1),
            node("o", "matmul", "p", "v"),
        ]
        body: list[object] = ["s", "c", "p", "o"]
        for dim, size in reversed(levels):
            body = [loop(dim, *body, tile_size=size)]
        return looped(_ATTENTION, {"q": "BHSD", "k": "BHDT", "v": "BHTD"}, nodes, body)

    return make


def _product(dims: Extents, *levels: tuple[str, int]) -> Callable[[], JsonObject]:
    def make() -> JsonObject:
        has_batch = "B" in dims
        body: list[object] = ["y", "z"]
        for dim, size in reversed(levels):
            body = [loop(dim, *body, tile_size=size)]
        nodes = [node("y", "bmm" if has_batch else "mm", "a", "b"), node("z", "mul", "y", 0.0625)]
        inputs = {"a": "BMK", "b": "BKN"} if has_batch else {"a": "MK", "b": "KN"}
        return looped(dims, inputs, nodes, body)

    return make


def _outer_only_inside_an_inner_loop() -> JsonObject:
    """An operand that only the outer loop moves, read inside the inner one: its address must not follow the inner."""
    nodes = [node("y", "add", "a", "b"), node("z", "mul", "y", "r")]
    inner = loop("B", "y", "z", tiles=4)
    return looped({"A": 12, "B": 256, "I": 1}, {"a": "AB", "b": "AB", "r": "AI"}, nodes, [loop("A", inner, tiles=3)])


def _broadcast_operands() -> JsonObject:
    """Operands that lack one of the tiled dims or both: a row, a column and one element."""
    nodes = [node("p", "mul", "a", "row"), node("q", "add", "p", "column"), node("r", "sub", "q", "one")]
    inputs = {"a": "AB", "row": "B", "column": "AI", "one": "I"}
    body = loop("A", loop("B", "p", "q", "r", tile_size=64), tile_size=7)
    return looped({"A": 20, "B": 200, "I": 1}, inputs, nodes, [body])


def _softmax(dim: str, size: int) -> Callable[[], JsonObject]:
    def make() -> JsonObject:
        nodes = [node("c", "mul", "x", 0.5), node("p", "softmax", "c", dim=-1), node("y", "add", "p", "x")]
        return looped({"R": 30, "C": 200}, {"x": "RC"}, nodes, [loop(dim, "c", "p", "y", tile_size=size)])

    return make


def _layer_norm(dim: str, size: int) -> Callable[[], JsonObject]:
    def make() -> JsonObject:
        norm = node("n", "layer_norm", "x", "w", "b", normalized_shape=[192], eps=2.0**-10)
        inputs = {"x": "RC", "w": "C", "b": "C"}
        body = loop(dim, "n", "y", tile_size=size)
        return looped({"R": 26, "C": 192}, inputs, [norm, node("y", "mul", "n", "x")], [body])

    return make


def _restickify() -> JsonObject:
    """A transposed operand needs another stick dim: the copy that turns it stands inside the loop or before it."""
    nodes = [node("t", "transpose", "b", dim0=0, dim1=1), node("y", "add", "a", "t"), node("z", "mul", "y", "a")]
    body = loop("A", loop("B", "y", "z", tile_size=64), tile_size=64)
    return looped({"A": 128, "B": 192}, {"a": "AB", "b": "BA"}, nodes, [body])


def _one_dim_twice() -> JsonObject:
    nodes = [node("y", "add", "a", "b"), node("z", "mul", "y", "b")]
    body = loop("A", loop("A", "y", "z", tile_size=7), tile_size=30)
    return looped({"A": 100, "B": 70}, {"a": "AB", "b": "AB"}, nodes, [body])


def _cat_and_slice() -> JsonObject:
    nodes = [
        node("p", "add", "a", "b"),
        node("s", "slice", "p", dim=1, start=64, end=192, step=1),
        node("u", "neg", "s"),
        node("y", "cat", "u", "b", dim=1),
        node("z", "relu", "y"),
    ]
    return looped({"A": 24, "B": 192}, {"a": "AB", "b": "AB"}, nodes, [loop("A", *"psuyz", tile_size=9)])


def _inside_and_outside() -> JsonObject:
    nodes = [node("y", "add", "a", "b"), node("z", "mul", "y", "b"), node("w", "exp", "y"), node("v", "sub", "w", "z")]
    body = loop("A", "y", "z", tile_size=6)
    return looped({"A": 20, "B": 128}, {"a": "AB", "b": "AB"}, nodes, [body], "v", "y")


def _groups_and_shared_outer_loop() -> JsonObject:
    """Two groups; in the second an outer loop over ops and two inner loops over different dims."""
    nodes = [
        node("p", "add", "a", "b"),
        node("q", "mul", "p", "a"),
        node("r", "neg", "q"),
        node("s", "add", "r", "b"),
        node("t", "sum", "s", dim=[2], keepdim=True),
        node("u", "sub", "s", "t"),
    ]
    second = loop("A", "r", loop("B", "s", tile_size=4), loop("C", "t", "u", tile_size=64), tile_size=2)
    dims = {"A": 5, "B": 10, "C": 150}
    return looped(dims, {"a": "ABC", "b": "ABC"}, nodes, [loop("C", "p", "q", tile_size=64), second])


def _copy_before_the_rest_is_written() -> JsonObject:
    """A joined tensor is read in another layout; its last columns are written behind the first readers."""
    nodes = [
        node("p", "slice", "a", dim=0, start=0, end=128, step=1),
        node("q", "slice", "a", dim=0, start=128, end=256, step=1),
        node("r", "cat", "q", "p", dim=0),
        node("s", "mul", "r", "b"),
        node("t", "sigmoid", "s"),
        node("u", "reshape", "t", shape=["B*A"]),
        node("v", "square", "u"),
        node("y", "view", "v", size=["B", "A"]),
    ]
    body = loop("A", loop(["B", "A"], *"pqrst", tile_size=1), *"uvy", tile_size=52)
    return looped({"A": 65, "B": 256}, {"a": "BA", "b": "BA"}, nodes, [body], *"yprs")


def _tiles_that_cut_a_split_axis() -> JsonObject:
    """Rows of a merged axis, one at a time, and a part of each: no device dim is left for the rows."""
    nodes = [
        node("f", "reshape", "x", shape=["B*A"]),
        node("s", "sigmoid", "f"),
        node("v", "view", "s", size=["B", "A"]),
        node("p", "slice", "v", dim=1, start=0, end=6, step=1),
        node("q", "slice", "v", dim=1, start=6, end=12, step=1),
        node("y", "cat", "q", "p", dim=1),
    ]
    return looped({"A": 12, "B": 3}, {"x": "BA"}, nodes, [loop("B", *"fsvpqy", tiles=3)], "y", "f")


CASES: Mapping[str, Callable[[], JsonObject]] = {
    "size_1_tiles_of_1_20_16_64": _size_one_tiles_of_four_dims,
    **{f"size_1_tiles_of_{dim}": _size_one(dim) for dim in "NHSD"},
    "attention_op_tiled_on_batch_and_heads": _attention_op(["B", "H"], 1),
    "attention_op_tiled_on_queries": _attention_op("S", 7),
    "attention_op_tiled_on_keys": _attention_op("T", 16),
    "attention_tiled_on_batch_and_heads": _attention_written_out(("B", 1), ("H", 1)),
    "attention_tiled_on_batch_heads_and_queries": _attention_written_out(("B", 1), ("H", 2), ("S", 10)),
    "attention_tiled_on_keys": _attention_written_out(("B", 1), ("T", 64)),
    "matmul_tiled_on_k_130": _product({"M": 20, "K": 130, "N": 70}, ("K", 64)),
    "matmul_tiled_on_k_200": _product({"M": 20, "K": 200, "N": 70}, ("K", 64)),
    "matmul_tiled_on_k_256": _product({"M": 20, "K": 256, "N": 128}, ("K", 128)),
    **{
        f"bmm_tiled_on_{'_'.join(dims)}": _product(
            {"B": 5, "M": 20, "K": 192, "N": 130},
            *((dim, {"B": 2, "M": 6, "K": 64, "N": 64}[dim]) for dim in dims),
        )
        for dims in ("M", "N", "K", "B", "BMN", "MNK", "BMNK", "KB")
    },
    "outer_only_tiling_inside_an_inner_loop": _outer_only_inside_an_inner_loop,
    "broadcast_operands_in_a_tiled_group": _broadcast_operands,
    "softmax_tiled_on_rows": _softmax("R", 7),
    "softmax_tiled_on_the_reduced_dim": _softmax("C", 64),
    "layer_norm_tiled_on_rows": _layer_norm("R", 8),
    "layer_norm_tiled_on_the_reduced_dim": _layer_norm("C", 64),
    "restickify_inside_a_group": _restickify,
    "one_dim_tiled_twice_with_remainders": _one_dim_twice,
    "cat_and_slice_inside": _cat_and_slice,
    "results_used_inside_and_outside": _inside_and_outside,
    "groups_and_different_inner_loops": _groups_and_shared_outer_loop,
    "copy_before_the_rest_is_written": _copy_before_the_rest_is_written,
    "parts_of_rows_of_a_merged_axis": _tiles_that_cut_a_split_axis,
}
"""Name -> the graph file's object."""


_FAMILIES: Sequence[tuple[Mapping[str, str], Sequence[JsonObject]]] = (
    (
        {"q": "BHSD", "k": "BHTD", "v": "BHTD"},
        [node("o", "scaled_dot_product_attention", "q", "k", "v"), node("y", "mul", "o", 0.5)],
    ),
    ({"x": "AMK", "w": "NK", "b": "N"}, [node("o", "linear", "x", "w", "b"), node("y", "relu", "o")]),
    ({"a": "BMK", "b": "BKN"}, [node("o", "bmm", "a", "b"), node("y", "softmax", "o", dim=2)]),
    ({"a": "BMK", "b": "BKN"}, [node("o", "bmm", "a", "b"), node("y", "softmax", "o", dim=1)]),
    (
        {"a": "ABC", "b": "CBA"},
        [
            node("t", "transpose", "b", dim0=0, dim1=2),
            node("o", "add", "a", "t"),
            node("s", "sum", "o", dim=[1], keepdim=True),
            node("y", "sub", "o", "s"),
        ],
    ),
    (
        {"a": "ABC", "w": "C"},
        [
            node("t", "permute", "a", dims=[1, 0, 2]),
            node("o", "mul", "t", "w"),
            node("m", "amax", "o", dim=[0], keepdim=True),
            node("y", "sub", "o", "m"),
        ],
    ),
)
_EXTENTS = (1, 2, 3, 5, 8, 24, 64, 65, 128, 130, 200)


def nested_case(seed: int) -> JsonObject:
    """Return one of a few groups inside one to three loops of any tile sizes, often over a dim that is cut again."""
    rng = random.Random(seed)
    while True:
        inputs, nodes = rng.choice(_FAMILIES)
        dims = {dim: rng.choice(_EXTENTS) for dim in sorted({dim for shape in inputs.values() for dim in shape})}
        levels: list[tuple[str, int]] = []
        left = dict(dims)
        for dim in rng.choices([dim for dim in dims if dims[dim] > 1] or list(dims), k=rng.randint(1, 3)):
            left[dim] = rng.choice([rng.randint(1, left[dim]), min(64, left[dim])])
            levels.append((dim, left[dim]))
        rounds = prod(-(-dims[dim] // size) for dim, size in levels)
        elements = [prod(dims[dim] for dim in shape) for shape in inputs.values()]
        if max(elements) <= 30_000 and prod(dims.values()) <= 1_000_000 and rounds <= 200:
            break
    body: list[object] = [item["name"] for item in nodes]
    for dim, size in reversed(levels):
        body = [loop(dim, *body, tile_size=size)]
    return looped(dims, inputs, nodes, body)
