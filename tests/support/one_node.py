"""Runs one op end to end: a graph of a single node, compiled, executed and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.hardware.dtypes import DType
from spyrec.ir.numbers import decode, encode

Array = npt.NDArray[Any]
Given = tuple[str, npt.ArrayLike] | float | bool | None
"""An operand: dtype and numbers, a number, or nothing."""


def numbers_of(dtype: str, numbers: npt.ArrayLike) -> Array:
    """Return numbers as a dtype stores them, as float64, int64 or bool."""
    return decode(_stored(dtype, numbers), DType(dtype))


def _stored(dtype: str, numbers: npt.ArrayLike) -> Array:
    """Return numbers in the host carrier of a dtype; 8-bit floats are given as their bits."""
    if dtype.startswith("float8"):
        return np.asarray(numbers, np.uint8)
    return np.asarray(encode(np.asarray(numbers), DType(dtype)))


def _graph(op: str, operands: Sequence[Given], attributes: Mapping[str, Any]) -> dict[str, Any]:
    names = [f"x{index}" if isinstance(item, tuple) else item for index, item in enumerate(operands)]
    tensors = {f"x{index}": item for index, item in enumerate(operands) if isinstance(item, tuple)}
    return {
        "format": "spyrec.graph/1",
        "name": "one",
        "inputs": [{"name": n, "shape": list(np.shape(a)), "dtype": d} for n, (d, a) in tensors.items()],
        "nodes": [{"name": "y", "op": op, "inputs": names, "attrs": dict(attributes)}],
        "outputs": ["y"],
    }


def compile_node(op: str, operands: Sequence[Given], attributes: Mapping[str, Any] | None = None) -> Bundle:
    """Return the bundle of a graph of one node."""
    return _compiled(json.dumps(_graph(op, operands, attributes or {})))


@lru_cache(maxsize=8)
def _compiled(graph: str) -> Bundle:
    """Return the bundle of a graph: a test asks where a node is computed, and runs it then."""
    return spyrec.compile(json.loads(graph))


def run_node(
    op: str, operands: Sequence[Given], attributes: Mapping[str, Any] | None = None, result: str = "float16"
) -> Array:
    """Return the first result of a node, of dtype ``result``, as numbers; the run's own check has to pass."""
    bundle = compile_node(op, operands, attributes)
    given = {f"x{index}": _stored(*item) for index, item in enumerate(operands) if isinstance(item, tuple)}
    done = spyrec.run(bundle, given, spyrec.RunOptions(check=True))
    assert done.check is not None
    assert done.check["y"].ok, done.check["y"]
    return decode(np.asarray(done.outputs["y"]), DType(result))


def is_on_device(op: str, operands: Sequence[Given], attributes: Mapping[str, Any] | None = None) -> bool:
    """Whether the device computes a node, and the host nothing of it."""
    bundle = compile_node(op, operands, attributes)
    assert bool(bundle.programs) != bool(bundle.manifest.host_steps)
    return bool(bundle.programs)
