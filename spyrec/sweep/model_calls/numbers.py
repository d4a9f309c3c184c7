"""The numbers that a call is made with: the same in every run, exact in every float format, indices that are valid.

Floats have 8 significant bits, so that no conversion on the way in rounds them and what is off in a result is the op's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from spyrec.hardware.dtypes import DType
from spyrec.ir.numbers import encode
from spyrec.sweep.model_calls.arguments import Array, tensors_of
from spyrec.sweep.model_calls.cases import Argument, Tensor

_POSITIVE = {"log", "rsqrt", "pow"}
_WITHOUT_TIES = {"sort", "topk", "max"}
_INT_HIGH = 1000
_LEAST = 2.0**-7
"""Floats nearer to 0 are 0: of float16 the smallest lose digits, and so do products of two."""
_GRID = np.ldexp(np.arange(128, 256), -7)
_DISTINCT = np.concatenate([sign * np.ldexp(_GRID, power) for power in range(-8, 3) for sign in (1, -1)])
"""Floats of 8 bits from which rows without ties are drawn."""


def random_arrays(name: str, bound: Mapping[str, Argument], seed: int) -> dict[str, Array]:
    """Return float64, int64 and bool arrays for the tensors of a call of ``name``, in their strides."""
    generator = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for parameter, tensor in tensors_of(bound).items():
        values = _special(name, parameter, bound, generator)
        if values is None:
            values = _plain(name, parameter, tensor, generator)
        found[parameter] = _strided(values, tensor)
    return found


def _plain(name: str, parameter: str, tensor: Tensor, generator: np.random.Generator) -> Array:
    if tensor.dtype is DType.BOOL:
        return generator.random(tensor.shape) < 0.5
    if not tensor.dtype.is_float:
        return generator.integers(0, tensor.high or _INT_HIGH, tensor.shape)
    values = _eight_bits(generator.standard_normal(tensor.shape, dtype=np.float32))
    values[np.abs(values) < _LEAST] = 0
    return np.abs(values) + 0.125 if name in _POSITIVE and parameter == "input" else values


def _eight_bits(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    bits = np.atleast_1d(values).view(np.uint32)
    kept = ((bits + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)
    return kept.astype(np.float64).reshape(np.shape(values))


def _strided(values: Array, tensor: Tensor) -> Array:
    """Return the values in an array of the tensor's strides; where it shows one element twice, the last one counts."""
    if tensor.strides is None or 0 in tensor.shape:
        return np.ascontiguousarray(values).reshape(tensor.shape)
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.strides))
    memory = np.zeros(tensor.offset + span, values.dtype)
    steps = tuple(stride * memory.itemsize for stride in tensor.strides)
    shown = np.lib.stride_tricks.as_strided(memory[tensor.offset :], tensor.shape, steps)
    shown[...] = values
    return shown


Special = Callable[[str, Mapping[str, Argument], np.random.Generator], "Array | None"]


def _special(name: str, parameter: str, bound: Mapping[str, Argument], generator: np.random.Generator) -> Array | None:
    """Return numbers for a tensor of which an op asks something; ``None`` where any will do."""
    if parameter.startswith(("index", "offs")) or (name == "embedding" and parameter == "input"):
        return _indices(name, parameter, bound, generator)
    if name in _WITHOUT_TIES and parameter == "input":
        return _without_ties(bound, generator)
    if name == "masked_scatter" and parameter == "mask":
        return _mask_of(bound, generator)
    if name == "histc" and parameter == "input":
        shape = _tensor(bound, "input").shape
        return generator.integers(0, 1 + int(_number(bound, "max")), shape).astype(np.float64)
    return None


def _tensor(bound: Mapping[str, Argument], name: str) -> Tensor:
    found = tensors_of(bound)[name]
    assert isinstance(found, Tensor)
    return found


def _number(bound: Mapping[str, Argument], name: str) -> float:
    value = bound.get(name, 0)
    assert isinstance(value, int | float)
    return value


def _indices(name: str, parameter: str, bound: Mapping[str, Argument], generator: np.random.Generator) -> Array:
    tensor = _tensor(bound, parameter)
    if name == "grouped_mm":
        return np.sort(generator.integers(0, _tensor(bound, "mat_a").shape[0] + 1, tensor.shape))
    if name == "embedding":
        limit = _tensor(bound, "weight").shape[0]
    elif name in ("getitem", "setitem"):
        axis = int(parameter.removeprefix("index").removeprefix("_") or 0)
        limit = _tensor(bound, "input").shape[axis]
    else:
        limit = _tensor(bound, "input").shape[int(_number(bound, "dim"))]
    count = tensor.element_count
    if name in ("index_copy", "setitem") and count <= limit:  # who writes a place twice leaves either
        return generator.permutation(limit)[:count].reshape(tensor.shape)
    if name == "scatter":
        rows = [generator.permutation(limit)[: tensor.shape[-1]] for _ in range(count // tensor.shape[-1])]
        return np.stack(rows).reshape(tensor.shape)
    return generator.integers(0, min(limit, tensor.high or limit), tensor.shape)


def _without_ties(bound: Mapping[str, Argument], generator: np.random.Generator) -> Array | None:
    tensor = _tensor(bound, "input")
    if "dim" not in bound and "k" not in bound and tensor.dtype.is_float:
        return None
    dim = int(_number(bound, "dim")) if "dim" in bound else -1
    extent = tensor.shape[dim]
    pool = _DISTINCT if tensor.dtype.is_float else np.arange(max(tensor.high or _INT_HIGH, extent))
    others = [size for axis, size in enumerate(tensor.shape) if axis != dim % len(tensor.shape)]
    rows = [generator.permutation(pool)[:extent] for _ in range(math.prod(others))]
    return np.moveaxis(np.reshape(rows, (*others, extent)), -1, dim)


def _mask_of(bound: Mapping[str, Argument], generator: np.random.Generator) -> Array:
    """Return a mask that takes as many rows as the source has, or fewer."""
    mask, rows = _tensor(bound, "mask"), _tensor(bound, "source").shape[0]
    count = math.prod(mask.shape[:-1])
    chosen = np.zeros(count, np.bool_)
    chosen[generator.permutation(count)[: min(rows, count)]] = True
    return np.broadcast_to(chosen.reshape(*mask.shape[:-1], 1), mask.shape)


def carried(bound: Mapping[str, Argument], arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the inputs of a call as a run takes them: in the carriers of their dtypes, in their own strides."""
    tensors = tensors_of(bound)
    return {name: _carried(array, tensors[name].dtype) for name, array in arrays.items()}


def _carried(array: Array, dtype: DType) -> Array:
    """Return an input in its carrier, in the strides that it has."""
    if 0 in array.strides or not array.size:
        memory = encode(array[tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)], dtype)
        return np.broadcast_to(memory, array.shape) if array.size else encode(array, dtype)
    carried = np.empty_like(array, dtype=encode(array.reshape(-1)[:1], dtype).dtype)  # in the order of the strides
    carried[...] = encode(array, dtype)
    return carried
