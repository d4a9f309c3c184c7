"""Write one Granite-3.3-8B decoder block: graph.json and weights.safetensors, in a cache directory.

Shapes and multipliers are those of the published model configuration; the weights are drawn from a seed (PCG64, scaled
by 1/sqrt(fan-in)), so the 400 MB file is made once on the machine and never committed::

    python examples/granite_block/make_graph.py            # .cache/granite_block
    python examples/granite_block/make_graph.py --narrow   # .cache/granite_block_narrow: same block, small shapes
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

Half = npt.NDArray[np.float16]
Record = dict[str, object]

DEFAULT_CACHE = Path(__file__).resolve().parent.parent.parent / ".cache"
GRAPH_FILE = "graph.json"
WEIGHTS_FILE = "weights.safetensors"
SEED = 20250416
ROPE_THETA = 1e7
NORM_EPS = 1e-5
RESIDUAL_MULTIPLIER = 0.22
ATTENTION_MULTIPLIER = 0.0078125


@dataclass(frozen=True, slots=True)
class BlockShape:
    """The sizes of one decoder block, in elements."""

    name: str
    sequence: int
    hidden: int
    heads: int
    key_value_heads: int
    head_dim: int
    mlp: int


FULL = BlockShape("granite_block", 128, 4096, 32, 8, 128, 12800)
NARROW = BlockShape("granite_block_narrow", 32, 256, 4, 2, 64, 512)


def constant_shapes(shape: BlockShape) -> dict[str, tuple[int, ...]]:
    """Return name -> shape of every constant; a matrix is ``[features out, features in]`` as in PyTorch."""
    query, key = shape.heads * shape.head_dim, shape.key_value_heads * shape.head_dim
    return {
        "attention_norm": (shape.hidden,),
        "w_query": (query, shape.hidden),
        "w_key": (key, shape.hidden),
        "w_value": (key, shape.hidden),
        "w_attention_out": (shape.hidden, query),
        "rope_cos": (shape.sequence, shape.head_dim),
        "rope_sin": (shape.sequence, shape.head_dim),
        "mlp_norm": (shape.hidden,),
        "w_gate": (shape.mlp, shape.hidden),
        "w_up": (shape.mlp, shape.hidden),
        "w_down": (shape.hidden, shape.mlp),
    }


def rope_table(name: str, shape: tuple[int, ...]) -> Half:
    """Return the cosine or sine table ``[sequence, head dim]``; the two halves of a head share their angles."""
    sequence, head_dim = shape
    frequencies = ROPE_THETA ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    angles = np.outer(np.arange(sequence, dtype=np.float64), frequencies)
    table = np.cos(angles) if name == "rope_cos" else np.sin(angles)
    return np.concatenate([table, table], axis=1).astype(np.float16)


def constant_value(name: str, shape: tuple[int, ...]) -> Half:
    """Return one constant; each has its own generator, so none depends on the order of the others."""
    if name.startswith("rope_"):
        return rope_table(name, shape)
    generator = np.random.Generator(np.random.PCG64([SEED, zlib.crc32(name.encode())]))
    drawn = generator.standard_normal(shape, dtype=np.float32)
    if len(shape) == 1:
        return (np.float32(1.0) + np.float32(0.1) * drawn).astype(np.float16)
    return (drawn * np.float32(shape[1] ** -0.5)).astype(np.float16)


def constant_values(shape: BlockShape) -> dict[str, Half]:
    """Return every constant by name; they are drawn by a thread for each processor."""
    shapes = constant_shapes(shape)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return dict(zip(shapes, threads.map(constant_value, shapes, shapes.values())))


def node(name: str, op: str, inputs: Sequence[str | float], **attrs: object) -> Record:
    """Return one node of the graph file."""
    record: Record = {"name": name, "op": op, "inputs": list(inputs)}
    return record | {"attrs": attrs} if attrs else record


def head_nodes(name: str, heads: int, shape: BlockShape) -> Iterator[Record]:
    """Project onto heads: [1, S, hidden] -> linear -> [1, S, heads, D] -> [1, heads, S, D]."""
    yield node(f"{name}_flat", "linear", ["attention_in", f"w_{name}"])
    yield node(f"{name}_split", "view", [f"{name}_flat"], size=[1, shape.sequence, heads, shape.head_dim])
    yield node(f"{name}_heads", "transpose", [f"{name}_split"], dim0=1, dim1=2)


def rope_nodes(name: str, shape: BlockShape) -> Iterator[Record]:
    """Rotate by position: x * cos + rotate_half(x) * sin, with rotate_half((a, b)) = (-b, a)."""
    half = shape.head_dim // 2
    yield node(f"{name}_first", "slice", [f"{name}_heads"], dim=3, start=0, end=half)
    yield node(f"{name}_second", "slice", [f"{name}_heads"], dim=3, start=half, end=shape.head_dim)
    yield node(f"{name}_negated", "neg", [f"{name}_second"])
    yield node(f"{name}_half_turned", "cat", [f"{name}_negated", f"{name}_first"], dim=3)
    yield node(f"{name}_cos", "mul", [f"{name}_heads", "rope_cos"])
    yield node(f"{name}_sin", "mul", [f"{name}_half_turned", "rope_sin"])
    yield node(f"{name}_rotated", "add", [f"{name}_cos", f"{name}_sin"])


def attention_nodes(shape: BlockShape) -> Iterator[Record]:
    """Grouped-query attention with a causal mask, then the scaled residual."""
    yield node("attention_in", "rms_norm", ["x", "attention_norm"], normalized_shape=[shape.hidden], eps=NORM_EPS)
    yield from head_nodes("query", shape.heads, shape)
    yield from head_nodes("key", shape.key_value_heads, shape)
    yield from head_nodes("value", shape.key_value_heads, shape)
    yield from rope_nodes("query", shape)
    yield from rope_nodes("key", shape)
    yield node(
        "attended",
        "scaled_dot_product_attention",
        ["query_rotated", "key_rotated", "value_heads"],
        is_causal=True,
        scale=ATTENTION_MULTIPLIER,
        enable_gqa=True,
    )
    yield node("attended_by_row", "transpose", ["attended"], dim0=1, dim1=2)
    yield node("attended_flat", "reshape", ["attended_by_row"], shape=[1, shape.sequence, shape.heads * shape.head_dim])
    yield node("attention_out", "linear", ["attended_flat", "w_attention_out"])
    yield node("attention_scaled", "mul", ["attention_out", RESIDUAL_MULTIPLIER])
    yield node("after_attention", "add", ["x", "attention_scaled"])


def mlp_nodes(shape: BlockShape) -> Iterator[Record]:
    """SwiGLU: down(silu(gate(x)) * up(x)), then the scaled residual."""
    yield node("mlp_in", "rms_norm", ["after_attention", "mlp_norm"], normalized_shape=[shape.hidden], eps=NORM_EPS)
    yield node("gate", "linear", ["mlp_in", "w_gate"])
    yield node("up", "linear", ["mlp_in", "w_up"])
    yield node("gate_active", "silu", ["gate"])
    yield node("gated", "mul", ["gate_active", "up"])
    yield node("down", "linear", ["gated", "w_down"])
    yield node("mlp_scaled", "mul", ["down", RESIDUAL_MULTIPLIER])
    yield node("block_out", "add", ["after_attention", "mlp_scaled"])


def graph(shape: BlockShape) -> Record:
    """Return the block as ``spyrec.graph/1``."""
    constants = [
        {"name": name, "shape": size, "dtype": "float16", "data": {"file": WEIGHTS_FILE, "tensor": name}}
        for name, size in constant_shapes(shape).items()
    ]
    return {
        "format": "spyrec.graph/1",
        "name": shape.name,
        "inputs": [{"name": "x", "shape": [1, shape.sequence, shape.hidden], "dtype": "float16"}],
        "constants": constants,
        "nodes": [*attention_nodes(shape), *mlp_nodes(shape)],
        "outputs": ["block_out"],
    }


def graph_text(shape: BlockShape) -> str:
    """Return the graph as JSON text, one tensor or node per line."""
    lines: list[str] = []
    for key, value in graph(shape).items():
        if isinstance(value, list) and key != "outputs":
            rows = ",\n".join(f"    {json.dumps(row)}" for row in value)  # pyright: ignore[reportUnknownVariableType]
            lines.append(f'  "{key}": [\n{rows}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(directory: Path, shape: BlockShape) -> Path:
    """Write graph and weights into ``directory``; weights that are there are kept. Return the graph's path."""
    directory.mkdir(parents=True, exist_ok=True)
    weights = directory / WEIGHTS_FILE
    if not weights.exists():
        partial = weights.with_suffix(f".{os.getpid()}.partial")
        save_file(constant_values(shape), partial)
        partial.replace(weights)  # an interrupted run leaves no file that looks complete
    path = directory / GRAPH_FILE
    path.write_text(graph_text(shape), encoding="utf-8")
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, write, print the graph's path."""
    parser = argparse.ArgumentParser(description="write one Granite-3.3-8B decoder block")
    parser.add_argument("--narrow", action="store_true", help="small shapes, for tests")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="directory to write below (default: .cache)")
    options = parser.parse_args(arguments)
    shape = NARROW if options.narrow else FULL
    print(write(options.cache / shape.name, shape))
    return 0


if __name__ == "__main__":
    sys.exit(main())
