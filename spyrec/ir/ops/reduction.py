"""Reductions over one, several or all dims.  Device names and constants: torch-spyre's op table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import Dims
from spyrec.ir.numbers import HOST_DTYPES
from spyrec.ir.opdef import (
    Array,
    AxisSources,
    DeviceOp,
    HostRule,
    InferRule,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    Reference,
    Sample,
    register,
    rule,
)
from spyrec.ir.operands import array, converted, function_dtype, tensor
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import Shape, normalize_dims
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class FoldAttributes:
    """``dim``: the dims to fold, none given means all; ``keepdim``: folded dims stay with extent 1."""

    dim: Dims | None = None
    keepdim: bool = False


@dataclass(frozen=True, slots=True)
class ReductionAttributes(FoldAttributes):
    """``dtype``: what the elements are converted to first, which is that of the result."""

    dtype: DType | None = None


def kept_shape(shape: Shape, folded: Sequence[int], keepdim: bool) -> Shape:
    """Return the shape after folding these dims, counted from the front."""
    if keepdim:
        return tuple(1 if axis in folded else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in folded)


def kept_axes(rank: int, folded: Sequence[int], keepdim: bool) -> AxisSources:
    """Return the sources of the axes after folding these dims, counted from the front."""
    if keepdim:
        return tuple(() if axis in folded else ((0, axis),) for axis in range(rank))
    return tuple(((0, axis),) for axis in range(rank) if axis not in folded)


def reduced_shape(shape: Shape, attributes: FoldAttributes) -> Shape:
    """Return the shape after folding.  Errors: SPY0204, SPY0205."""
    return kept_shape(shape, normalize_dims(attributes.dim, len(shape)), attributes.keepdim)


def reduced_axes(operands: OperandTypes, attributes: FoldAttributes) -> AxisSources:
    """Return the sources of the axes after folding.  Errors: SPY0204, SPY0205."""
    rank = tensor(operands).rank
    return kept_axes(rank, normalize_dims(attributes.dim, rank), attributes.keepdim)


def require_elements(operand: TensorType, folded: Sequence[int]) -> None:
    """Refuse to choose of no elements.  Errors: SPY0222."""
    if any(operand.shape[axis] == 0 for axis in folded):
        fact = f"{operand} has no elements along a folded dim: nothing is the largest or the smallest of them"
        raise OpError("SPY0222", fact, operand=0)


def _dtype_of(operand: TensorType, attributes: FoldAttributes) -> DType | None:
    """Return the dtype that the attributes ask for.  Errors: SPY0202 one that nothing computes with."""
    dtype = attributes.dtype if isinstance(attributes, ReductionAttributes) else None
    for wanted in (operand.dtype, dtype):
        if wanted is not None and wanted not in HOST_DTYPES:
            raise OpError("SPY0202", f"nothing adds {wanted.value}", attribute=None if dtype is None else "dtype")
    return dtype


def _infer_mean(operands: OperandTypes, attributes: FoldAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    dtype = _dtype_of(operand, attributes)
    if dtype is not None and not dtype.is_float:
        fact = f"mean is a fraction, and {dtype.value} has none"
        raise OpError("SPY0202", fact, hint="give a floating-point dtype, or none", attribute="dtype")
    return (TensorType(reduced_shape(operand.shape, attributes), dtype or function_dtype(operand)),)


def total_dtype(operand: TensorType, dtype: DType | None) -> DType:
    """Return the dtype of a sum or product: as asked for, else that of a float, else int64, as in PyTorch."""
    return dtype or (operand.dtype if operand.dtype.is_float else DType.INT64)


def _infer_total(operands: OperandTypes, attributes: FoldAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    dtype = total_dtype(operand, _dtype_of(operand, attributes))
    return (TensorType(reduced_shape(operand.shape, attributes), dtype),)


def _is_truth_of_single(operands: OperandTypes, attributes: FoldAttributes) -> str | None:
    """Return why the host adds, or multiplies, what is judged first: a float32 may be below all 16-bit floats."""
    is_truth = isinstance(attributes, ReductionAttributes) and attributes.dtype is DType.BOOL
    is_single = tensor(operands).dtype is DType.FLOAT32
    return "the device does not convert float32 to bool" if is_truth and is_single else None


def _infer_extremum(operands: OperandTypes, attributes: FoldAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    require_elements(operand, normalize_dims(attributes.dim, operand.rank))
    return (TensorType(reduced_shape(operand.shape, attributes), operand.dtype),)


def _mean_constants(operands: OperandTypes, attributes: FoldAttributes) -> Mapping[str, float]:
    shape = tensor(operands).shape
    return {"scaling_factor": 1.0 / math.prod(shape[axis] for axis in normalize_dims(attributes.dim, len(shape)))}


_SAMPLES = (
    ((f16(3, 5),), (1,), False),
    ((f16(3, 70),), (0,), True),
    ((f16(2, 3, 4, 5),), (-1, 1), False),
    ((f16(2, 3, 4),), None, False),
    ((f16(),), None, False),
    ((f32(4, 33),), (-1,), True),
    ((i64(3, 5),), (0,), False),
    ((boolean(3, 5),), (1,), False),
)
_TOTAL_SAMPLES: tuple[Sample, ...] = (
    *((types, ReductionAttributes(dim, keepdim)) for types, dim, keepdim in _SAMPLES),
    ((f16(3, 5),), ReductionAttributes((1,), dtype=DType.FLOAT32)),
    ((boolean(3, 5),), ReductionAttributes((1,), dtype=DType.FLOAT16)),
    ((i64(3, 5),), ReductionAttributes((1,), dtype=DType.FLOAT32)),
    ((f16(0, 3),), ReductionAttributes((0,))),
)
_EXTREMUM_SAMPLES: tuple[Sample, ...] = (
    *((types, FoldAttributes(dim, keepdim)) for types, dim, keepdim in _SAMPLES),
    ((f16(0, 3),), FoldAttributes((1,))),
)


def _fold(x: Array, attributes: FoldAttributes, ufunc: np.ufunc) -> Array:
    dims = normalize_dims(attributes.dim, x.ndim)
    return np.asarray(ufunc.reduce(x, axis=dims, keepdims=attributes.keepdim))


def _elements(operands: Sequence[Array | None], attributes: FoldAttributes) -> Array:
    return converted(array(operands), attributes.dtype if isinstance(attributes, ReductionAttributes) else None)


def _sum(operands: Sequence[Array | None], attributes: FoldAttributes) -> tuple[Array, ...]:
    return (_fold(_elements(operands, attributes), attributes, np.add),)


def _prod(operands: Sequence[Array | None], attributes: FoldAttributes) -> tuple[Array, ...]:
    return (_fold(_elements(operands, attributes), attributes, np.multiply),)


def _mean(operands: Sequence[Array | None], attributes: FoldAttributes) -> tuple[Array, ...]:
    x = _elements(operands, attributes).astype(np.float64)
    folded = math.prod(x.shape[axis] for axis in normalize_dims(attributes.dim, x.ndim))
    return (np.asarray(_fold(x, attributes, np.add).astype(np.float64) / np.float64(folded)),)


def _amax(operands: Sequence[Array | None], attributes: FoldAttributes) -> tuple[Array, ...]:
    return (_fold(array(operands), attributes, np.maximum),)


def _amin(operands: Sequence[Array | None], attributes: FoldAttributes) -> tuple[Array, ...]:
    return (_fold(array(operands), attributes, np.minimum),)


@dataclass(frozen=True, slots=True)
class _Family:
    """What sums, or extrema, have in common."""

    attributes: type
    infer: InferRule
    samples: tuple[Sample, ...]
    host_when: HostRule | None = None


def _define(name: str, summary: str, device: DeviceOp, family: _Family, reference: Reference) -> None:
    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.REDUCTION,
            operands=(OperandSpec("input"),),
            attributes=family.attributes,
            infer=family.infer,
            reference=reference,
            axes=rule(FoldAttributes, reduced_axes),
            formats=HALF_OR_SINGLE,
            device=device,
            host_when=family.host_when,
            is_promoted=True,
            samples=family.samples,
        )
    )


_TOTALS = _Family(
    ReductionAttributes, rule(FoldAttributes, _infer_total), _TOTAL_SAMPLES, rule(FoldAttributes, _is_truth_of_single)
)
_MEANS = _Family(ReductionAttributes, rule(FoldAttributes, _infer_mean), _TOTAL_SAMPLES)
_EXTREMA = _Family(FoldAttributes, rule(FoldAttributes, _infer_extremum), _EXTREMUM_SAMPLES)
_MEAN = DeviceOp("mean", rule(FoldAttributes, _mean_constants))

_define("sum", "sum", DeviceOp("sum"), _TOTALS, rule(FoldAttributes, _sum))
_define("prod", "product", DeviceOp("prod"), _TOTALS, rule(FoldAttributes, _prod))
_define("mean", "arithmetic mean", _MEAN, _MEANS, rule(FoldAttributes, _mean))
_define("amax", "largest", DeviceOp("max"), _EXTREMA, rule(FoldAttributes, _amax))
_define("amin", "smallest", DeviceOp("min"), _EXTREMA, rule(FoldAttributes, _amin))
