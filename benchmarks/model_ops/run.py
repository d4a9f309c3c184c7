"""Compiles and runs one call with ``check``, and holds what comes out against the oracle."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

import spyrec
from benchmarks.model_ops.judge import complaint
from benchmarks.model_ops.oracle import ORACLES, Expected
from spyrec.hardware.dtypes import DType
from spyrec.sweep.model_calls.arguments import Arguments, tensors_of
from spyrec.sweep.model_calls.cases import Argument, Case
from spyrec.sweep.model_calls.numbers import carried, random_arrays
from spyrec.sweep.model_calls.scale import scaled
from spyrec.sweep.model_calls.signatures import UnknownCall, bind, public_name
from spyrec.sweep.model_calls.translate import completed, computes_nothing, graph_of


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
    if computes_nothing(name, bound):
        return Verdict(Status.EMPTY)
    bound = completed(name, bound)
    arrays = random_arrays(name, bound, seed)
    with np.errstate(all="ignore"):
        expected = ORACLES[name](Arguments(bound, arrays))
    graph, outputs = graph_of(name, bound)
    bundle = spyrec.compile(graph)
    result = spyrec.run(bundle, carried(bound, arrays), spyrec.RunOptions(check=True))
    for output, wanted in zip(outputs, expected, strict=True):
        wrong = complaint(result.outputs[output], wanted, _dtype(wanted, bound), result.dtypes[output])
        if wrong is not None:
            return Verdict(Status.WRONG, wrong)
    if not result.is_ok:
        return Verdict(Status.WRONG, "the check says no")
    return Verdict(Status.RIGHT)


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
