"""Write the two graphs of the decoder: prefill.json reads a prompt, decode.json one letter with the cache in place.

Both take their parameters from weights.safetensors beside them, and their masks from mask.safetensors, which this
writes too::

    python examples/tiny_llm/graphs.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

Record = dict[str, object]

HERE = Path(__file__).resolve().parent
SHAPES = {name: array.shape for name, array in load_file(HERE / "weights.safetensors").items()}
CONTEXT, WIDTH = SHAPES["positions"]
LAYERS = sum(name.startswith("query") for name in SHAPES)
HEADS = 2
HEAD = WIDTH // HEADS
EPS = 1e-5

PROMPT = 32
"""Letters that the prefill reads at once."""

HIDDEN = -1e4
"""Added to the score of a row that is not written yet: its exponential is zero in DLFloat16 and in float64."""


def tensor(name: str, shape: Sequence[int], dtype: str = "float16") -> Record:
    """Return an input of a graph file."""
    return {"name": name, "shape": list(shape), "dtype": dtype}


def node(name: str, op: str, inputs: Sequence[str | float], **attrs: object) -> Record:
    """Return one node of a graph file."""
    record: Record = {"name": name, "op": op, "inputs": list(inputs)}
    return record | {"attrs": attrs} if attrs else record


def layer_nodes(layer: int, rows: int, cache: Iterator[Record]) -> Iterator[Record]:
    """One layer over ``x{layer}`` ``[rows, width]``; ``cache`` makes the nodes ``keys{layer}`` and ``values{layer}``.

    They are ``[1, heads, positions, head]``, of the rows ``new_keys{layer}`` and ``new_values{layer}``; what a row may
    look at says ``mask``, which is added to the scores.
    """
    norm = {"normalized_shape": [WIDTH], "eps": EPS}
    yield node(f"attention_in{layer}", "rms_norm", [f"x{layer}", f"attention_norm{layer}"], **norm)
    for name, result in (("query", "queries"), ("key", "new_keys"), ("value", "new_values")):
        yield node(f"{name}_flat{layer}", "linear", [f"attention_in{layer}", f"{name}{layer}"])
        yield node(f"{name}_split{layer}", "view", [f"{name}_flat{layer}"], size=[1, rows, HEADS, HEAD])
        yield node(f"{result}{layer}", "transpose", [f"{name}_split{layer}"], dim0=1, dim1=2)
    yield from cache
    yield node(f"keys_turned{layer}", "transpose", [f"keys{layer}"], dim0=2, dim1=3)
    yield node(f"scores{layer}", "matmul", [f"queries{layer}", f"keys_turned{layer}"])
    yield node(f"scaled{layer}", "mul", [f"scores{layer}", HEAD**-0.5])
    yield node(f"masked{layer}", "add", [f"scaled{layer}", "mask"])
    yield node(f"shares{layer}", "softmax", [f"masked{layer}"], dim=-1)
    yield node(f"attended{layer}", "matmul", [f"shares{layer}", f"values{layer}"])
    yield node(f"attended_by_row{layer}", "transpose", [f"attended{layer}"], dim0=1, dim1=2)
    yield node(f"attended_flat{layer}", "reshape", [f"attended_by_row{layer}"], shape=[rows, WIDTH])
    yield node(f"attention{layer}", "linear", [f"attended_flat{layer}", f"attention_out{layer}"])
    yield node(f"middle{layer}", "add", [f"x{layer}", f"attention{layer}"])
    yield node(f"mlp_in{layer}", "rms_norm", [f"middle{layer}", f"mlp_norm{layer}"], **norm)
    yield node(f"gated{layer}", "linear", [f"mlp_in{layer}", f"gate{layer}"])
    yield node(f"upped{layer}", "linear", [f"mlp_in{layer}", f"up{layer}"])
    yield node(f"active{layer}", "silu", [f"gated{layer}"])
    yield node(f"inner{layer}", "mul", [f"active{layer}", f"upped{layer}"])
    yield node(f"mlp{layer}", "linear", [f"inner{layer}", f"down{layer}"])
    yield node(f"x{layer + 1}", "add", [f"middle{layer}", f"mlp{layer}"])


def last_nodes(x: str) -> Iterator[Record]:
    """From the rows after the last layer to the logits ``[rows, letters]``."""
    yield node("last", "rms_norm", [x, "last_norm"], normalized_shape=[WIDTH], eps=EPS)
    yield node("logits", "linear", ["last", "to_letters"])


def prefill_cache(layer: int) -> Iterator[Record]:
    """The keys and values of the prompt are those of its rows; the caches behind them are zeros."""
    for name in ("keys", "values"):
        yield node(f"{name}{layer}", "mul", [f"new_{name}{layer}", 1.0])
        yield node(f"{name}_cache{layer}", "pad", [f"new_{name}{layer}"], pad=[0, 0, 0, CONTEXT - PROMPT])


def prefill_graph() -> Record:
    """Return the graph from ``tokens`` ``[PROMPT]`` to the last row's ``logits`` ``[1, letters]`` and the caches."""
    nodes = [node("mask_rows", "slice", ["masks"], dim=0, start=0, end=PROMPT)]
    nodes.append(node("mask", "slice", ["mask_rows"], dim=1, start=0, end=PROMPT))
    nodes.append(node("spelled", "embedding", ["tokens", "letters"]))
    nodes.append(node("places", "slice", ["positions"], dim=0, start=0, end=PROMPT))
    nodes.append(node("x0", "add", ["spelled", "places"]))
    for layer in range(LAYERS):
        nodes += layer_nodes(layer, PROMPT, prefill_cache(layer))
    nodes.append(node("x_last", "slice", [f"x{LAYERS}"], dim=0, start=PROMPT - 1, end=PROMPT))
    nodes += last_nodes("x_last")
    outputs = [f"{name}_cache{layer}" for layer in range(LAYERS) for name in ("keys", "values")]
    return document("prefill", [tensor("tokens", [PROMPT], "int64")], nodes, ["logits", *outputs])


def decode_cache(layer: int) -> Iterator[Record]:
    """Write the new row of keys and of values at ``position`` into the caches."""
    for name in ("keys", "values"):
        operands = [f"{name}_cache{layer}", "position", f"new_{name}{layer}"]
        yield node(f"{name}{layer}", "index_copy", operands, dim=2)


def decode_graph() -> Record:
    """Return the graph from ``token`` ``[1]``, ``position`` ``[1]`` and the caches to ``logits`` ``[1, letters]``.

    Its new caches replace the old ones.  The mask of a position is a row of a constant, as the position's vector is.
    """
    nodes = [node("mask", "embedding", ["position", "masks"])]
    nodes.append(node("spelled", "embedding", ["token", "letters"]))
    nodes.append(node("place", "embedding", ["position", "positions"]))
    nodes.append(node("x0", "add", ["spelled", "place"]))
    for layer in range(LAYERS):
        nodes += layer_nodes(layer, 1, decode_cache(layer))
    nodes += last_nodes(f"x{LAYERS}")
    names = [(f"{name}{layer}", f"{name}_cache{layer}") for layer in range(LAYERS) for name in ("keys", "values")]
    caches = [tensor(cache, [1, HEADS, CONTEXT, HEAD]) for _, cache in names]
    inputs = [tensor("token", [1], "int64"), tensor("position", [1], "int64"), *caches]
    graph = document("decode", inputs, nodes, ["logits", *(name for name, _ in names)])
    return graph | {"updates": dict(names)}


def document(name: str, inputs: list[Record], nodes: list[Record], outputs: list[str]) -> Record:
    """Return a whole graph file, the parameters among its constants."""
    constants = [
        tensor(parameter, shape) | {"data": {"file": "weights.safetensors", "tensor": parameter}}
        for parameter, shape in sorted(SHAPES.items())
    ]
    constants.append(tensor("masks", [CONTEXT, CONTEXT]) | {"data": {"file": "mask.safetensors", "tensor": "masks"}})
    return {
        "format": "spyrec.graph/1",
        "name": name,
        "inputs": inputs,
        "constants": constants,
        "nodes": nodes,
        "outputs": outputs,
    }


def graph_text(graph: Record) -> str:
    """Return a graph as JSON text, one tensor or node per line."""
    lines: list[str] = []
    for key, value in graph.items():
        if isinstance(value, list) and key != "outputs":
            rows = ",\n".join(f"    {json.dumps(row)}" for row in value)  # pyright: ignore[reportUnknownVariableType]
            lines.append(f'  "{key}": [\n{rows}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    """Write both graphs and the masks beside this file: row p of these is zero up to column p, and hides the rest."""
    save_file({"masks": np.triu(np.full((CONTEXT, CONTEXT), HIDDEN, np.float16), 1)}, HERE / "mask.safetensors")
    for name, graph in (("prefill", prefill_graph()), ("decode", decode_graph())):
        (HERE / f"{name}.json").write_text(graph_text(graph), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
