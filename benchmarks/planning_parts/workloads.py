"""Models whose plans are measured: those of one or a few operations that everything larger is made of."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.graphs import JsonObject, graph_data, node, tensor

_EPS = 2.0**-10
_POINTWISE = ("exp", "neg", "sigmoid", "abs", "relu")


@dataclass(frozen=True, slots=True)
class Workload:
    """A model, and the most bytes that its plan may move over the lower bound."""

    data: JsonObject
    most_ratio: float = 1.0


def softmax(rows: int, columns: int) -> JsonObject:
    """Return a softmax over the columns."""
    return graph_data([tensor("x", rows, columns)], [node("y", "softmax", "x", dim=1)], ["y"])


def layer_norm(rows: int, columns: int) -> JsonObject:
    """Return a layer norm with weight and bias."""
    inputs = [tensor("x", rows, columns), tensor("w", columns), tensor("b", columns)]
    norm = node("y", "layer_norm", "x", "w", "b", normalized_shape=[columns], eps=_EPS)
    return graph_data(inputs, [norm], ["y"])


def rms_norm(rows: int, columns: int) -> JsonObject:
    """Return a root mean square norm with weight."""
    norm = node("y", "rms_norm", "x", "w", normalized_shape=[columns], eps=_EPS)
    return graph_data([tensor("x", rows, columns), tensor("w", columns)], [norm], ["y"])


def pointwise_chain(count: int, rows: int, columns: int) -> JsonObject:
    """Return ``count`` operations, each on the result of the one before."""
    names = ["x", *(f"n{number}" for number in range(count))]
    nodes = [node(names[number + 1], _POINTWISE[number % len(_POINTWISE)], names[number]) for number in range(count)]
    return graph_data([tensor("x", rows, columns)], nodes, [names[-1]])


def residual_blocks(count: int, rows: int, columns: int) -> JsonObject:
    """Return blocks of norm, activation and sum with what went into them."""
    nodes: list[JsonObject] = []
    last = "x"
    for number in range(count):
        nodes.append(node(f"norm{number}", "rms_norm", last, normalized_shape=[columns], eps=_EPS))
        nodes.append(node(f"act{number}", "silu", f"norm{number}"))
        nodes.append(node(f"y{number}", "add", f"act{number}", last))
        last = f"y{number}"
    return graph_data([tensor("x", rows, columns)], nodes, [last])


def attention(heads: int, sequence: int, head_dim: int) -> JsonObject:
    """Return scaled dot-product attention of one batch."""
    inputs = [tensor(name, 1, heads, sequence, head_dim) for name in ("query", "key", "value")]
    return graph_data(inputs, [node("y", "scaled_dot_product_attention", "query", "key", "value")], ["y"])


def gated_mlp(rows: int, hidden: int, inner: int) -> JsonObject:
    """Return ``down(silu(gate(x)) * up(x))``."""
    weights = [tensor("gate", inner, hidden), tensor("up", inner, hidden), tensor("down", hidden, inner)]
    nodes = [
        node("gated", "linear", "x", "gate"),
        node("act", "silu", "gated"),
        node("wide", "linear", "x", "up"),
        node("product", "mul", "act", "wide"),
        node("y", "linear", "product", "down"),
    ]
    return graph_data([tensor("x", rows, hidden), *weights], nodes, ["y"])


def residual_mlp(rows: int, hidden: int, inner: int) -> JsonObject:
    """Return ``norm(x + down(silu(up(norm(x)))))``."""
    inputs = [tensor("x", rows, hidden), tensor("up", inner, hidden), tensor("down", hidden, inner)]
    nodes = [
        node("normal", "rms_norm", "x", normalized_shape=[hidden], eps=_EPS),
        node("wide", "linear", "normal", "up"),
        node("act", "silu", "wide"),
        node("narrow", "linear", "act", "down"),
        node("sum", "add", "narrow", "x"),
        node("y", "rms_norm", "sum", normalized_shape=[hidden], eps=_EPS),
    ]
    return graph_data(inputs, nodes, ["y"])


def rows_then_columns(rows: int, columns: int) -> JsonObject:
    """Return two operations on one tensor, pinned to 32 slices of its rows, then of its columns."""
    first = {**node("a", "exp", "x"), "work_division": {"out.0": 32}}
    then = {**node("y", "neg", "a"), "work_division": {"out.1": 32}}
    return graph_data([tensor("x", rows, columns)], [first, then], ["y"])


SHOWN = {
    "softmax 512x1024": Workload(softmax(512, 1024)),
    "softmax 4096x2048": Workload(softmax(4096, 2048)),
    "layer_norm 512x4096": Workload(layer_norm(512, 4096)),
    "rms_norm 512x4096": Workload(rms_norm(512, 4096)),
    "20 pointwise ops 512x4096": Workload(pointwise_chain(20, 512, 4096)),
    "4 residual blocks 512x4096": Workload(residual_blocks(4, 512, 4096), 1.0001),  # each block reads eps
    "attention 32x512x128": Workload(attention(32, 512, 128), 1.15),
    "gated MLP 512x4096x12800": Workload(gated_mlp(512, 4096, 12800), 1.15),
}
"""What the plans are judged by."""

TILED = {
    "softmax 16384x4096": Workload(softmax(16384, 4096)),
    "rms_norm 16384x4096": Workload(rms_norm(16384, 4096), 1.001),
    "attention 32x2048x128": Workload(attention(32, 2048, 128), 1.15),
}
"""Models whose intermediates do not fit the scratchpads: the compiler chooses loops."""
