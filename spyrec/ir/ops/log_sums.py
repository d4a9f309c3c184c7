"""Logarithms of sums of exponentials: ``logsumexp`` and ``log_softmax``.

Both are the difference or the sum of the largest element and a logarithm, which may cancel; the device therefore
computes them in float32, the logarithm too, and rounds once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.ir.attributes import Dims
from spyrec.ir.opdef import Array, AxisSources, OpDef, OperandSpec, OperandTypes, OpKind, register, rule
from spyrec.ir.operands import floats, function_dtype, tensor
from spyrec.ir.ops.normalization import SoftmaxAttributes, infer_softmax
from spyrec.ir.ops.reduction import kept_axes, kept_shape
from spyrec.ir.samples import f16, f32, i64
from spyrec.ir.shapes import broadcast_axes, normalize_dims
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class LogSumAttributes:
    """``dim``: the dims to fold, none given means all; ``keepdim``: folded dims stay with extent 1."""

    dim: Dims
    keepdim: bool = False


def _infer(operands: OperandTypes, attributes: LogSumAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    shape = kept_shape(operand.shape, normalize_dims(attributes.dim, operand.rank), attributes.keepdim)
    return (TensorType(shape, function_dtype(operand)),)


def _axes(operands: OperandTypes, attributes: LogSumAttributes) -> AxisSources:
    rank = tensor(operands).rank
    return kept_axes(rank, normalize_dims(attributes.dim, rank), attributes.keepdim)


def _logsumexp(operands: Sequence[Array | None], attributes: LogSumAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    dims = normalize_dims(attributes.dim, x.ndim)
    largest = np.max(x, axis=dims, keepdims=True, initial=-np.inf)
    shift = np.where(np.isinf(largest), 0.0, largest)
    result = np.log(np.sum(np.exp(x - shift), axis=dims, keepdims=True)) + shift
    return (result if attributes.keepdim else np.squeeze(result, dims),)


register(
    OpDef(
        name="logsumexp",
        summary="logarithm of the sum of exponentials",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input"),),
        attributes=LogSumAttributes,
        infer=rule(LogSumAttributes, _infer),
        reference=rule(LogSumAttributes, _logsumexp),
        axes=rule(LogSumAttributes, _axes),
        formats=HALF_OR_SINGLE,
        samples=(
            ((f16(3, 70),), LogSumAttributes((1,))),
            ((f16(2, 3, 4),), LogSumAttributes((0, -1), keepdim=True)),
            ((f32(4, 33),), LogSumAttributes((0,))),
            ((i64(3, 4),), LogSumAttributes((0,))),
            ((f16(),), LogSumAttributes((0,))),
            ((f16(0, 3),), LogSumAttributes((0,))),
        ),
    )
)


def _log_softmax(operands: Sequence[Array | None], attributes: SoftmaxAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    dims = normalize_dims((attributes.dim,), x.ndim)
    # an infinity has no distance from itself: all of its row is NaN, as in PyTorch
    shifted = x - np.max(x, axis=dims, keepdims=True, initial=-np.inf)
    return (shifted - np.log(np.sum(np.exp(shifted), axis=dims, keepdims=True)),)


def _axes_of_first(operands: OperandTypes, _: SoftmaxAttributes) -> AxisSources:
    return broadcast_axes(operands, tensor(operands).shape)


register(
    OpDef(
        name="log_softmax",
        summary="logarithm of softmax along dim",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input"),),
        attributes=SoftmaxAttributes,
        infer=rule(SoftmaxAttributes, infer_softmax),
        reference=rule(SoftmaxAttributes, _log_softmax),
        axes=rule(SoftmaxAttributes, _axes_of_first),
        formats=HALF_OR_SINGLE,
        is_promoted=True,
        samples=(
            ((f16(3, 70),), SoftmaxAttributes(-1)),
            ((f32(2, 3, 4),), SoftmaxAttributes(1)),
            ((f16(),), SoftmaxAttributes(0)),
            ((f16(0, 3),), SoftmaxAttributes(0)),
        ),
    )
)
