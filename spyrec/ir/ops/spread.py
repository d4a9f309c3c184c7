"""Variance and standard deviation, alone and with the mean.

The device computes them in float32: of 16-bit values far from 0 the mean, rounded to 16 bits, would be off by more than
their spread, whose square is all there is to the variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.ir.attributes import Dims
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    Centre,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    PieceRule,
    Roundings,
    Sample,
    register,
    rule,
)
from spyrec.ir.operands import Floats, floats, require_float, tensor
from spyrec.ir.ops.reduction import ReductionAttributes, kept_axes, kept_shape
from spyrec.ir.samples import f16, f32
from spyrec.ir.shapes import normalize_dims
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class SpreadAttributes:
    """``dim`` and ``keepdim`` as in a sum; the squares' sum is divided by the count less ``correction``.

    ``unbiased``: PyTorch's older form, a correction of 1 or 0.
    """

    dim: Dims | None = None
    unbiased: bool | None = None
    correction: float | None = None
    keepdim: bool = False

    def divisor(self, shape: Sequence[int]) -> float:
        """Return what the sum of squares over a tensor of this shape is divided by: 0 or more."""
        count = math.prod(shape[axis] for axis in normalize_dims(self.dim, len(shape)))
        correction = self.correction if self.correction is not None else float(self.unbiased is not False)
        return max(count - correction, 0.0)


def _infer_one(operands: OperandTypes, attributes: SpreadAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    require_float(operand, 0)
    if attributes.unbiased is not None and attributes.correction is not None:
        fact = f"unbiased {attributes.unbiased} and correction {attributes.correction} say one thing twice"
        raise OpError("SPY0209", fact, hint="give one of them", attribute="unbiased")
    shape = kept_shape(operand.shape, normalize_dims(attributes.dim, operand.rank), attributes.keepdim)
    return (TensorType(shape, operand.dtype),)


def _infer_both(operands: OperandTypes, attributes: SpreadAttributes) -> tuple[TensorType, ...]:
    return _infer_one(operands, attributes) * 2


def _axes(operands: OperandTypes, attributes: SpreadAttributes) -> AxisSources:
    rank = tensor(operands).rank
    return kept_axes(rank, normalize_dims(attributes.dim, rank), attributes.keepdim)


def _mean(x: Floats, attributes: SpreadAttributes) -> Array:
    dims = normalize_dims(attributes.dim, x.ndim)
    count = math.prod(x.shape[axis] for axis in dims)
    return np.asarray(np.sum(x, axis=dims, keepdims=attributes.keepdim) / np.float64(count))


def _variance(x: Floats, attributes: SpreadAttributes) -> Array:
    dims = normalize_dims(attributes.dim, x.ndim)
    count = math.prod(x.shape[axis] for axis in dims)
    centred = x - np.sum(x, axis=dims, keepdims=True) / np.float64(count)
    total = np.sum(np.square(centred), axis=dims, keepdims=attributes.keepdim)
    return np.asarray(total / np.float64(attributes.divisor(x.shape)))


def _deviation(x: Floats, attributes: SpreadAttributes) -> Array:
    return np.sqrt(_variance(x, attributes))


def _row_means(x: Array, attributes: SpreadAttributes) -> Floats:
    kept = SpreadAttributes(attributes.dim, keepdim=True)
    return np.asarray(_mean(x.astype(np.float64), kept), dtype=np.float64)


_ROUNDINGS = Roundings(1.0, 0.0, Centre("the mean", rule(SpreadAttributes, _row_means)))
"""Distances are those of float32, from a mean that is taken out twice; only the result is rounded to the format."""

_SAMPLES: tuple[Sample, ...] = (
    ((f16(3, 70),), SpreadAttributes((1,))),
    ((f16(2, 3, 4),), SpreadAttributes((0, -1), correction=0.0, keepdim=True)),
    ((f16(5),), SpreadAttributes(unbiased=False)),
    ((f32(4, 33),), SpreadAttributes((0,), correction=2.0)),
    ((f16(0, 3),), SpreadAttributes((0,))),
)


def _define(name: str, summary: str, parts: tuple[Callable[[Floats, SpreadAttributes], Array], ...]) -> None:
    def reference(operands: Sequence[Array | None], attributes: SpreadAttributes) -> tuple[Array, ...]:
        return tuple(part(floats(operands), attributes) for part in parts)

    is_alone = len(parts) == 1
    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.COMPOSITE,
            operands=(OperandSpec("input"),),
            attributes=SpreadAttributes,
            infer=rule(SpreadAttributes, _infer_one if is_alone else _infer_both),
            reference=rule(SpreadAttributes, reference),
            axes=rule(SpreadAttributes, _axes),
            formats=HALF_OR_SINGLE,
            result_count=len(parts),
            roundings=_ROUNDINGS if is_alone else None,
            pieces=None if is_alone else _with_mean(name.removesuffix("_mean")),
            samples=_SAMPLES,
        )
    )


def _with_mean(name: str) -> PieceRule:
    def pieces(_: OperandTypes, attributes: SpreadAttributes) -> tuple[tuple[str, Attributes], ...]:
        return (name, attributes), ("mean", ReductionAttributes(attributes.dim, attributes.keepdim))

    return rule(SpreadAttributes, pieces)


_define("var", "mean of the squared distances from the mean, over the count less correction", (_variance,))
_define("std", "square root of var", (_deviation,))
_define("var_mean", "var, and the mean", (_variance, _mean))
_define("std_mean", "std, and the mean", (_deviation, _mean))
