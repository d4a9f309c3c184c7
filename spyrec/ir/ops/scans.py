"""Running sums and products along one dim, computed by the host: the device folds a dim, and keeps no steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.opdef import Array, OperandSpec, OperandTypes, rule
from spyrec.ir.operands import Floats, Integers, array, tensor
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import normalize_dim
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class ScanAttributes:
    """``dim`` that is run along; ``dtype`` that the elements are converted to first."""

    dim: int
    dtype: DType | None = None


def _infer(operands: OperandTypes, attributes: ScanAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    normalize_dim(attributes.dim, operand.rank)
    dtype = attributes.dtype or (operand.dtype if operand.dtype.is_float else DType.INT64)
    return (TensorType(operand.shape, dtype),)


def _converted(operands: Sequence[Array | None], attributes: ScanAttributes) -> Floats | Integers:
    found = array(operands)
    if attributes.dtype is DType.BOOL:
        return (found != 0).astype(np.int64)
    is_float = found.dtype.kind == "f" if attributes.dtype is None else attributes.dtype.is_float
    return found.astype(np.float64) if is_float else np.trunc(found).astype(np.int64)


def _cumsum(operands: Sequence[Array | None], attributes: ScanAttributes) -> tuple[Array, ...]:
    x = _converted(operands, attributes)
    return (np.cumsum(x, axis=attributes.dim) if x.ndim else x,)


def _cumprod(operands: Sequence[Array | None], attributes: ScanAttributes) -> tuple[Array, ...]:
    x = _converted(operands, attributes)
    return (np.cumprod(x, axis=attributes.dim) if x.ndim else x,)


_SAMPLES = (
    ((f16(3, 70),), ScanAttributes(-1)),
    ((f32(2, 3, 5),), ScanAttributes(1)),
    ((i64(4, 3),), ScanAttributes(0)),
    ((boolean(9),), ScanAttributes(0)),
    ((i64(4),), ScanAttributes(0, DType.FLOAT32)),
    ((f16(0, 3),), ScanAttributes(0)),
)

for _name, _summary, _reference in (
    ("cumsum", "running sums along dim", _cumsum),
    ("cumprod", "running products along dim", _cumprod),
):
    define_on_host(
        _name,
        _summary,
        (OperandSpec("input"),),
        HostRules(rule(ScanAttributes, _infer), rule(ScanAttributes, _reference)),
        _SAMPLES,
        ScanAttributes,
    )
