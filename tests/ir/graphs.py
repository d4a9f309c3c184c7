"""A small graph that uses every part of the format, and ways to change it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import SpyrecError
from spyrec.ir.graph import Graph
from spyrec.ir.reader import read_graph, read_graph_data

Array = npt.NDArray[Any]

EVERYTHING: dict[str, Any] = {
    "$schema": "graph.schema.json",
    "format": "spyrec.graph/1",
    "name": "everything",
    "dims": {"A": 64, "B": 128, "S": {"min": 1, "max": 512, "multiple_of": 64}},
    "inputs": [
        {"name": "a", "shape": ["A", "B"], "dtype": "float16"},
        {"name": "b", "shape": ["A", 128], "dtype": "float16", "layout": {"dim_order": [1, 0]}},
        {"name": "s", "shape": ["S", "B"], "dtype": "float16"},
    ],
    "constants": [
        {"name": "half", "shape": [], "dtype": "float16", "value": 0.5},
        {"name": "table", "shape": [2, 2], "dtype": "float32", "value": [[1, 2.5], ["-inf", 4]]},
        {"name": "yes", "shape": [3], "dtype": "bool", "value": [True, False, True]},
        {"name": "filled", "shape": ["B"], "dtype": "bfloat16", "value": 0.75},
        {"name": "w", "shape": ["B"], "dtype": "float16", "data": {"file": "w.safetensors", "tensor": "w"}},
        {"name": "n", "shape": [2, 3], "dtype": "int64", "data": {"file": "sub/n.npy"}},
    ],
    "nodes": [
        {"name": "soft", "op": "softmax", "inputs": ["z"], "attrs": {"dim": -1}},
        {"name": "y", "op": "add", "inputs": ["a", "b"], "attrs": {"alpha": 0.5}, "layout": {"dim_order": [0, 1]}},
        {"name": "z", "op": "mul", "inputs": ["y", "w"], "work_division": {"A": 8, "out.1": 2}},
        {"name": "r", "op": "reshape", "inputs": ["z"], "attrs": {"shape": ["A*2", -1]}, "outputs": ["reshaped"]},
        {"name": "p", "op": "pow", "inputs": ["y", 2]},
        {"name": "c", "op": "clamp", "inputs": ["y"], "attrs": {"max": "inf", "min": -1}},
        {"name": "l", "op": "linear", "inputs": ["s", "b", None]},
        {"name": "m", "op": "where", "inputs": ["g", "y", "-inf"]},
        {"name": "g", "op": "gt", "inputs": ["y", 0]},
    ],
    "loops": [{"dim": "A", "tiles": 2, "body": [{"dim": ["B"], "tile_size": 64, "body": ["y", "z"]}, "g"]}],
    "outputs": ["soft", "reshaped", "a", "soft", "m"],
}


def everything() -> dict[str, Any]:
    return copy.deepcopy(EVERYTHING)


def write_files(folder: Path) -> Path:
    """Write the tensors that the graph refers to; return where the graph itself belongs."""
    (folder / "sub").mkdir()
    write_safetensors(folder / "w.safetensors", {"w": np.arange(128).astype(np.float16)})
    np.save(folder / "sub" / "n.npy", np.arange(6).reshape(2, 3))
    return folder / "graph.json"


def write_safetensors(path: Path, arrays: dict[str, Array], dtypes: dict[str, str] | None = None) -> None:
    """Write the format by hand, so that our reader is held against its specification."""
    names = {"float16": "F16", "float32": "F32", "bool": "BOOL", "int64": "I64", "uint16": "BF16", "uint8": "U8"}
    header: dict[str, Any] = {"__metadata__": {"made": "by hand"}}
    offset = 0
    for name, array in arrays.items():
        dtype = (dtypes or {}).get(name, names[array.dtype.name])
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    body = b"".join(array.tobytes() for array in arrays.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def read_file(path: Path, data: object) -> Graph:
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return read_graph(path)


def codes_of(data: object, base_dir: Path | None = None) -> list[tuple[str, str | None]]:
    """Return (code, pointer) of everything that a reading refuses, in order; none for a legal graph."""
    try:
        read_graph_data(data, None, base_dir)
    except SpyrecError as error:
        return [(item.code, item.location.pointer if item.location else None) for item in error.diagnostics]
    return []
