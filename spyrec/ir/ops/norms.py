"""Norms of vectors: the sum of magnitudes, the root of the sum of squares, the largest and the smallest magnitude.

The device computes the root of the sum of squares in float32: a 16-bit sum would be rounded once more, and its squares
leave the range of a float16 at 256.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import Dims
from spyrec.ir.opdef import (
    Array,
    AxisSources,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    Sample,
    register,
    rule,
)
from spyrec.ir.operands import floats, require_float, tensor
from spyrec.ir.ops.reduction import kept_axes, kept_shape, require_elements
from spyrec.ir.samples import f16, f32
from spyrec.ir.shapes import normalize_dims
from spyrec.ir.types import TensorType

DEVICE_ORDERS = (1.0, 2.0, math.inf, -math.inf)
"""Norms that are sums, or extrema, of magnitudes and squares; the host computes the powers of others."""


@dataclass(frozen=True, slots=True)
class NormAttributes:
    """``p``: the order; ``dim`` and ``keepdim`` as in a sum; ``dtype``: what the elements are converted to first."""

    p: float = 2.0
    dim: Dims | None = None
    keepdim: bool = False
    dtype: DType | None = None


@dataclass(frozen=True, slots=True)
class VectorNormAttributes:
    """``ord``: the order; the rest as in ``norm``."""

    ord: float = 2.0
    dim: Dims | None = None
    keepdim: bool = False
    dtype: DType | None = None


def as_norm(attributes: NormAttributes | VectorNormAttributes) -> NormAttributes:
    """Return the attributes of either op as those of ``norm``."""
    if isinstance(attributes, NormAttributes):
        return attributes
    return NormAttributes(attributes.ord, attributes.dim, attributes.keepdim, attributes.dtype)


def _infer(operands: OperandTypes, given: NormAttributes | VectorNormAttributes) -> tuple[TensorType, ...]:
    operand, attributes = tensor(operands), as_norm(given)
    require_float(operand, 0)
    dtype = attributes.dtype or operand.dtype
    if not dtype.is_float:
        raise OpError("SPY0202", f"a norm is a fraction, and {dtype.value} has none", attribute="dtype")
    if dtype not in (operand.dtype, DType.FLOAT32):
        message = f"a norm of {operand.dtype.value} is none of {dtype.value}: its elements would be rounded first"
        raise OpError("SPY0202", message, hint=f"convert the norm: to({dtype.value})", attribute="dtype")
    folded = normalize_dims(attributes.dim, operand.rank)
    if attributes.p < 0 or math.isinf(attributes.p):
        require_elements(operand, folded)
    return (TensorType(kept_shape(operand.shape, folded, attributes.keepdim), dtype),)


def _axes(operands: OperandTypes, given: NormAttributes | VectorNormAttributes) -> AxisSources:
    rank, attributes = tensor(operands).rank, as_norm(given)
    return kept_axes(rank, normalize_dims(attributes.dim, rank), attributes.keepdim)


def _norm(operands: Sequence[Array | None], given: NormAttributes | VectorNormAttributes) -> tuple[Array, ...]:
    magnitudes, attributes = np.abs(floats(operands)), as_norm(given)
    dims, p = normalize_dims(attributes.dim, magnitudes.ndim), attributes.p
    if math.isinf(p):
        extremum = np.maximum if p > 0 else np.minimum
        return (extremum.reduce(magnitudes, axis=dims, keepdims=attributes.keepdim),)
    if p == 0:
        return (np.sum(magnitudes != 0, axis=dims, keepdims=attributes.keepdim).astype(np.float64),)
    total = np.sum(magnitudes**p, axis=dims, keepdims=attributes.keepdim)
    return (np.sqrt(total) if p == 2 else total ** (1.0 / p),)


def _on_host(_: OperandTypes, given: NormAttributes | VectorNormAttributes) -> str | None:
    p = as_norm(given).p
    return None if p in DEVICE_ORDERS else f"the device has no norm of order {p}"


def _samples(attributes: type[NormAttributes | VectorNormAttributes]) -> tuple[Sample, ...]:
    return (
        ((f16(3, 70),), attributes(2.0, (1,))),
        ((f16(3, 5),), attributes(1.0, (0,), keepdim=True)),
        ((f16(2, 3, 4),), attributes(math.inf)),
        ((f16(2, 3, 4),), attributes(-math.inf, (0, 2))),
        ((f32(4, 33),), attributes(3.0, (-1,))),
        ((f32(4),), attributes(0.0)),
        ((f16(4),), attributes(dtype=DType.FLOAT32)),
        ((f16(0, 3),), attributes(2.0, (0,))),
    )


for _name, _attributes in (("norm", NormAttributes), ("linalg_vector_norm", VectorNormAttributes)):
    register(
        OpDef(
            name=_name,
            summary="(sum of magnitudes to the power p) to the power 1 / p; the largest magnitude of p infinite",
            kind=OpKind.COMPOSITE,
            operands=(OperandSpec("input"),),
            attributes=_attributes,
            infer=rule(_attributes, _infer),
            reference=rule(_attributes, _norm),
            axes=rule(_attributes, _axes),
            formats=HALF_OR_SINGLE,
            host_when=rule(_attributes, _on_host),
            samples=_samples(_attributes),
        )
    )
