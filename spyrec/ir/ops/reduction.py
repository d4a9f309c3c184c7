"""Reductions over one, several or all dims.  Device names and constants: torch-spyre's op table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import Dims
from spyrec.ir.opdef import (
    Array,
    AxisSources,
    DeviceOp,
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
from spyrec.ir.operands import array, floats, function_dtype, tensor
from spyrec.ir.samples import boolean, f16, f32
from spyrec.ir.shapes import normalize_dims
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class ReductionAttributes:
    """``dim``: the dims to fold, none given means all; ``keepdim``: folded dims stay with extent 1."""

    dim: Dims | None = None
    keepdim: bool = False


def reduced_shape(shape: tuple[int, ...], attributes: ReductionAttributes) -> tuple[int, ...]:
    """Return the shape after folding.  Errors: SPY0204, SPY0205."""
    folded = normalize_dims(attributes.dim, len(shape))
    if attributes.keepdim:
        return tuple(1 if axis in folded else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in folded)


def _axes(operands: OperandTypes, attributes: ReductionAttributes) -> AxisSources:
    rank = tensor(operands).rank
    folded = normalize_dims(attributes.dim, rank)
    if attributes.keepdim:
        return tuple(() if axis in folded else ((0, axis),) for axis in range(rank))
    return tuple(((0, axis),) for axis in range(rank) if axis not in folded)


def _infer(operands: OperandTypes, attributes: ReductionAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    return (TensorType(reduced_shape(operand.shape, attributes), function_dtype(operand)),)


def _infer_sum(operands: OperandTypes, attributes: ReductionAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    dtype = operand.dtype if operand.dtype.is_float else DType.INT64
    return (TensorType(reduced_shape(operand.shape, attributes), dtype),)


def _infer_extremum(operands: OperandTypes, attributes: ReductionAttributes) -> tuple[TensorType, ...]:
    shape = tensor(operands).shape
    if any(shape[axis] == 0 for axis in normalize_dims(attributes.dim, len(shape))):
        fact = f"{tensor(operands)} has no elements along a folded dim: nothing is the largest or the smallest of them"
        raise OpError("SPY0222", fact, operand=0)
    return (TensorType(reduced_shape(tensor(operands).shape, attributes), tensor(operands).dtype),)


def _mean_constants(operands: OperandTypes, attributes: ReductionAttributes) -> Mapping[str, float]:
    shape = tensor(operands).shape
    return {"scaling_factor": 1.0 / math.prod(shape[axis] for axis in normalize_dims(attributes.dim, len(shape)))}


_SAMPLES = (
    ((f16(3, 5),), ReductionAttributes((1,))),
    ((f16(3, 70),), ReductionAttributes((0,), keepdim=True)),
    ((f16(2, 3, 4, 5),), ReductionAttributes((-1, 1))),
    ((f16(2, 3, 4),), ReductionAttributes()),
    ((f16(),), ReductionAttributes()),
    ((f32(4, 33),), ReductionAttributes((-1,), keepdim=True)),
)


def _fold(x: Array, attributes: ReductionAttributes, ufunc: np.ufunc) -> Array:
    dims = normalize_dims(attributes.dim, x.ndim)
    return np.asarray(ufunc.reduce(x, axis=dims, keepdims=attributes.keepdim))


def _sum(operands: Sequence[Array | None], attributes: ReductionAttributes) -> tuple[Array, ...]:
    return (_fold(floats(operands), attributes, np.add),)


def _mean(operands: Sequence[Array | None], attributes: ReductionAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    total = _fold(x, attributes, np.add).astype(np.float64)
    folded = math.prod(x.shape[axis] for axis in normalize_dims(attributes.dim, x.ndim))
    return (np.asarray(total / np.float64(folded)),)


def _amax(operands: Sequence[Array | None], attributes: ReductionAttributes) -> tuple[Array, ...]:
    return (_fold(array(operands), attributes, np.maximum),)


def _amin(operands: Sequence[Array | None], attributes: ReductionAttributes) -> tuple[Array, ...]:
    return (_fold(array(operands), attributes, np.minimum),)


def _define(name: str, summary: str, device: DeviceOp, infer: InferRule, reference: Reference) -> None:
    bools: tuple[Sample, ...] = (((boolean(3, 5),), ReductionAttributes((1,))),)
    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.REDUCTION,
            operands=(OperandSpec("input"),),
            attributes=ReductionAttributes,
            infer=infer,
            reference=reference,
            axes=rule(ReductionAttributes, _axes),
            formats=HALF_OR_SINGLE,
            device=device,
            samples=_SAMPLES if infer is not _FLOATS_AND_BOOLS else (*_SAMPLES, *bools),
        )
    )


_FLOATS = rule(ReductionAttributes, _infer)
_SUMS = rule(ReductionAttributes, _infer_sum)
_FLOATS_AND_BOOLS = rule(ReductionAttributes, _infer_extremum)
_MEAN = DeviceOp("mean", rule(ReductionAttributes, _mean_constants))

_define("sum", "sum", DeviceOp("sum"), _SUMS, rule(ReductionAttributes, _sum))
_define("mean", "arithmetic mean", _MEAN, _FLOATS, rule(ReductionAttributes, _mean))
_define("amax", "largest", DeviceOp("max"), _FLOATS_AND_BOOLS, rule(ReductionAttributes, _amax))
_define("amin", "smallest", DeviceOp("min"), _FLOATS_AND_BOOLS, rule(ReductionAttributes, _amin))
