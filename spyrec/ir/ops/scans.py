"""Running sums, products and extrema along one dim, by the host: the device folds a dim, and keeps no steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.opdef import Array, OperandSpec, OperandTypes, Reference, rule
from spyrec.ir.operands import array, converted, floats, require_float, tensor
from spyrec.ir.ops.index_writes import axes_of_input
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import normalize_dim
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class RunningAttributes:
    """``dim`` that is run along."""

    dim: int


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


def _cumsum(operands: Sequence[Array | None], attributes: ScanAttributes) -> tuple[Array, ...]:
    x = converted(array(operands), attributes.dtype)
    return (np.asarray(np.add.accumulate(x, axis=attributes.dim)) if x.ndim else x,)


def _cumprod(operands: Sequence[Array | None], attributes: ScanAttributes) -> tuple[Array, ...]:
    x = converted(array(operands), attributes.dtype)
    return (np.asarray(np.multiply.accumulate(x, axis=attributes.dim)) if x.ndim else x,)


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
        HostRules(rule(ScanAttributes, _infer), rule(ScanAttributes, _reference), axes_of_input, is_promoted=True),
        _SAMPLES,
        ScanAttributes,
    )


# --- cummax, cummin, logcumsumexp -------------------------------------------------------------------------------------


def _infer_extrema(operands: OperandTypes, attributes: RunningAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    normalize_dim(attributes.dim, operand.rank)
    return operand, TensorType(operand.shape, DType.INT64)


def _running(extremum: np.ufunc) -> Reference:
    def reference(operands: Sequence[Array | None], attributes: RunningAttributes) -> tuple[Array, ...]:
        """The extremum so far, and where the last of its equals stands."""
        x = array(operands)
        if x.ndim == 0:
            return x, np.zeros((), np.int64)
        values = np.asarray(extremum.accumulate(x, axis=attributes.dim))
        is_it = np.equal(x, values)
        if x.dtype.kind == "f":
            is_it |= np.isnan(floats(operands))
        extents = [extent if axis == attributes.dim % x.ndim else 1 for axis, extent in enumerate(x.shape)]
        along = np.asarray(range(x.shape[attributes.dim]), np.int64).reshape(extents)
        places = np.where(is_it, along, 0)
        return values, np.maximum.accumulate(places, axis=attributes.dim)

    return rule(RunningAttributes, reference)


def _infer_log_sums(operands: OperandTypes, attributes: RunningAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    require_float(operand, 0)
    normalize_dim(attributes.dim, operand.rank)
    return (operand,)


def _log_sums(operands: Sequence[Array | None], attributes: RunningAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    return (np.logaddexp.accumulate(x, axis=attributes.dim) if x.ndim else x,)


_RUNNING_SAMPLES = tuple((types, RunningAttributes(scan.dim)) for types, scan in _SAMPLES)

for _name, _summary, _extremum in (
    ("cummax", "largest elements so far along dim, and their places", np.maximum),
    ("cummin", "smallest elements so far along dim, and their places", np.minimum),
):
    define_on_host(
        _name,
        _summary,
        (OperandSpec("input"),),
        HostRules(rule(RunningAttributes, _infer_extrema), _running(_extremum), axes_of_input, result_count=2),
        _RUNNING_SAMPLES,
        RunningAttributes,
    )

define_on_host(
    "logcumsumexp",
    "logarithms of the sums of exponentials so far along dim",
    (OperandSpec("input"),),
    HostRules(rule(RunningAttributes, _infer_log_sums), rule(RunningAttributes, _log_sums), axes_of_input),
    tuple((types, attributes) for types, attributes in _RUNNING_SAMPLES if types[0].dtype.is_float),
    RunningAttributes,
)
