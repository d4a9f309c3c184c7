"""Holds the oracle itself against PyTorch in float64, int64 and bool, so that a wrong reading of PyTorch would show.

Needs torch (the extra ``torch``).  The device has no part in it.
"""

from __future__ import annotations

import operator
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.model_ops.oracle import ORACLES, Expected
from spyrec.hardware.dtypes import DType
from spyrec.sweep.model_calls.arguments import Arguments, Array
from spyrec.sweep.model_calls.cases import Argument, Case, Slice, Tensor
from spyrec.sweep.model_calls.numbers import random_arrays
from spyrec.sweep.model_calls.signatures import bind, public_name
from spyrec.sweep.model_calls.translate import completed, computes_nothing, result_index

TOLERANCE = 1e-9
"""Relative, of the terms that a result is made of: sums of float64 in another order."""

_OF_GRADIENTS = ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
"""Arguments of embedding that say nothing of its result; a row of the whole vocabulary is none of a smaller one."""

_UNSAID = ("empty_like",)
"""Functions whose numbers nobody promises."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What PyTorch says of the oracle of one call: ``None`` nothing (it lacks the function), "" the same."""

    complaint: str | None


def opinion_of(case: Case) -> Opinion:
    """Return whether the oracle's results of a call are PyTorch's.  Errors: ModuleNotFoundError without torch."""
    name = public_name(case.op)
    bound = bind(case)
    if name in _UNSAID or computes_nothing(name, bound):
        return Opinion(None)
    function = _function(import_module("torch"), case.op)
    if function is None:
        return Opinion(None)
    bound = completed(name, bound)
    arrays = random_arrays(name, bound, zlib.crc32(repr(case).encode()))
    with np.errstate(all="ignore"):
        expected = ORACLES[name](Arguments(bound, arrays))
    if name == "getitem" and isinstance(bound["input"], tuple):  # lists name fewer results than there are
        bound = {**bound, "index": result_index(bound)}
    placed = {key: value for key, value in bind(case).items() if key not in dict(case.keywords)}
    translated = {key: _translated(key, value, arrays) for key, value in bound.items() if key not in _OF_GRADIENTS}
    positions = [translated.pop(key) for key in placed if key in translated]
    try:
        found = function(*positions, **translated)
    except (AssertionError, IndexError, RuntimeError, TypeError, ValueError) as error:
        return Opinion(f"PyTorch refuses it: {str(error)[:200]}")
    return Opinion(_complaint(_flat(found), expected))


_OPERATORS = {"__eq__": "eq", **{name: name for name in ("and_", "floordiv", "invert", "or_", "truediv")}}
"""Python's operators, by the names that the lists have for them."""


def _get(x: Any, index: Any = ...) -> Any:  # noqa: ANN401 -- tensors of torch's
    return x[index]


def _set(x: Any, index: Any, value: Any) -> Any:  # noqa: ANN401 -- tensors of torch's
    x[index] = value
    return x


def _sum_of_sizes(args: Sequence[int]) -> Any:  # noqa: ANN401 -- a tensor of torch's
    return import_module("torch").tensor(sum(args))


def _function(torch: Any, op: str) -> Callable[..., Any] | None:  # noqa: ANN401 -- the module
    """Return PyTorch's function or method of a name as the lists have it: ``torch.getitem``, ``torch.view_as``."""
    parts = op.removeprefix("torch.").split(".")
    last = parts[-1]
    if last in _OPERATORS:
        return getattr(operator, _OPERATORS[last])
    if last in ("getitem", "setitem"):
        return _get if last == "getitem" else _set
    if last == "float":  # of integers above 2**24 a float32 would have other ones
        return torch.Tensor.double
    if last == "sym_sum":
        return _sum_of_sizes
    if parts[:1] == ["ops"]:
        return None
    found = torch
    for part in parts:
        found = getattr(found, part, None)
    return found if callable(found) else getattr(torch.Tensor, last, None)


def _translated(name: str, value: Argument, arrays: Mapping[str, Array]) -> Any:  # noqa: ANN401 -- what torch takes
    torch = import_module("torch")
    if isinstance(value, Tensor):
        return torch.from_numpy(np.array(arrays[name]))
    if isinstance(value, DType):
        return torch.float64 if value.is_float else getattr(torch, value.value)
    if isinstance(value, Slice):
        return slice(value.start, value.stop, value.step)
    if isinstance(value, tuple):
        return tuple(_translated(f"{name}_{index}", item, arrays) for index, item in enumerate(value))
    return "cpu" if isinstance(value, str) and value.startswith("cuda") else value


def _flat(found: Any) -> list[Any]:  # noqa: ANN401 -- torch's results
    return [found] if hasattr(found, "dtype") else [item for part in found for item in _flat(part)]


def _complaint(found: Sequence[Any], expected: Sequence[Expected]) -> str:
    """Return how the results differ, "" for not at all."""
    if len(found) != len(expected):
        return f"{len(expected)} results, PyTorch has {len(found)}"
    for result, wanted in zip(found, expected):
        numbers, values = np.asarray(result.numpy()), np.asarray(wanted.values)
        if numbers.shape != values.shape:
            return f"the shape is {list(values.shape)}, PyTorch's is {list(numbers.shape)}"
        terms = np.abs(values) if wanted.terms is None else wanted.terms
        with np.errstate(all="ignore"):
            allowed = TOLERANCE * (np.where(np.isfinite(terms), terms, 0).astype(np.float64) + 1e-30)
            difference = np.abs(numbers.astype(np.float64) - values.astype(np.float64))
            is_same = (numbers == values) | (np.isnan(numbers.astype(np.float64)) & np.isnan(values.astype(np.float64)))
        is_wrong = ~is_same & ~(difference <= allowed)
        if is_wrong.any():
            place = tuple(int(index) for index in np.argwhere(is_wrong)[0])
            return (
                f"{int(is_wrong.sum())} of {is_wrong.size}: at {list(place)} {values[place]}, PyTorch {numbers[place]}"
            )
    return ""
