"""Compiles and runs one call with ``check``, and holds what comes out against the oracle."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

import spyrec
from benchmarks.model_ops.arguments import Arguments, Array, tensors_of
from benchmarks.model_ops.cases import Argument, Case, Tensor
from benchmarks.model_ops.judge import complaint
from benchmarks.model_ops.numbers import random_arrays
from benchmarks.model_ops.oracle import ORACLES, Expected
from benchmarks.model_ops.scale import scaled
from benchmarks.model_ops.signatures import UnknownCall, bind, public_name
from benchmarks.model_ops.translate import graph_of
from spyrec.hardware.dtypes import DType
from spyrec.ir.numbers import encode


class Status(Enum):
    """What became of a call."""

    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"
    CRASHED = "crashed"
    EMPTY = "no tensor"
    """Nothing to compute: a call without tensors, numbers or result."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a call, and why: the refusal's code and message, what is wrong."""

    status: Status
    reason: str = ""


def verdict_of(case: Case, most_elements: int | None) -> Verdict:
    """Return what becomes of a call, scaled to tensors of at most ``most_elements``."""
    try:
        smaller = scaled(case, most_elements)
        return _verdict(public_name(smaller.op), bind(smaller), zlib.crc32(repr(smaller).encode()))
    except UnknownCall as error:
        return Verdict(Status.REFUSED, f"benchmark: {error}")
    except spyrec.SpyrecError as error:
        first = error.diagnostics[0]
        return Verdict(Status.REFUSED, f"{first.code}: {first.message}")
    except Exception as error:  # noqa: BLE001 -- whatever a call provokes is a figure of this benchmark
        return Verdict(Status.CRASHED, f"{type(error).__name__}: {str(error)[:300]}")


def _verdict(name: str, bound: Mapping[str, Argument], seed: int) -> Verdict:
    if name == "nothing" or (name == "tensor" and "data" not in bound):
        return Verdict(Status.EMPTY)
    bound = completed(name, bound)
    arrays = random_arrays(name, bound, seed)
    with np.errstate(all="ignore"):
        expected = ORACLES[name](Arguments(bound, arrays))
    graph, outputs = graph_of(name, bound, expected)
    bundle = spyrec.compile(graph)
    inputs = {key: _carried(array, _tensor_named(bound, key).dtype) for key, array in arrays.items()}
    result = spyrec.run(bundle, inputs, spyrec.RunOptions(check=True))
    for output, wanted in zip(outputs, expected, strict=True):
        wrong = complaint(result.outputs[output], wanted, _dtype(wanted, bound), result.dtypes[output])
        if wrong is not None:
            return Verdict(Status.WRONG, wrong)
    if not result.is_ok:
        return Verdict(Status.WRONG, "the check says no")
    return Verdict(Status.RIGHT)


def completed(name: str, bound: Mapping[str, Argument]) -> Mapping[str, Argument]:
    """Return a call with what a list leaves out though PyTorch cannot do without it."""
    if name == "grouped_mm" and "offs" not in bound:  # one end for each matrix
        return {**bound, "offs": Tensor((_tensor(bound, "mat_b").shape[0],), DType.INT32)}
    if name == "cat" and "dim" not in bound:  # the dim along which the parts differ
        shapes = [tensor.shape for tensor in tensors_of(bound).values() if tensor.shape != (0,)]
        differing = [axis for axis, extents in enumerate(zip(*shapes)) if len(set(extents)) > 1]
        return {**bound, "dim": differing[0] if differing else 0}
    return bound


def _tensor(bound: Mapping[str, Argument], name: str) -> Tensor:
    found = bound[name]
    assert isinstance(found, Tensor)
    return found


def _tensor_named(bound: Mapping[str, Argument], key: str) -> Tensor:
    return tensors_of(bound)[key]


def _carried(array: Array, dtype: DType) -> Array:
    """Return an input in its carrier, in the strides that it has."""
    if 0 in array.strides or not array.size:
        memory = encode(array[tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)], dtype)
        return np.broadcast_to(memory, array.shape) if array.size else encode(array, dtype)
    carried = np.empty_like(array, dtype=encode(array.reshape(-1)[:1], dtype).dtype)  # in the order of the strides
    carried[...] = encode(array, dtype)
    return carried


def _dtype(expected: Expected, bound: Mapping[str, Argument]) -> DType:
    """Return PyTorch's dtype of a result: what the call asks for, else what its numbers and operands say."""
    if expected.dtype is not None:
        return expected.dtype
    kind = expected.values.dtype.kind
    if kind != "f":
        return DType.BOOL if kind == "b" else DType.INT64
    asked = next((value for value in bound.values() if isinstance(value, DType)), None)
    floats = {tensor.dtype for tensor in tensors_of(bound).values() if tensor.dtype.is_float}
    if asked is not None:
        return asked
    return floats.pop() if len(floats) == 1 else DType.FLOAT32
