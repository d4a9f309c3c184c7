"""Softmax and the norms, and the device's layer norm trio (D036 and D053 of docs/decisions.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES, NoAttributes, Sizes
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    Centre,
    DeviceOp,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    Roundings,
    register,
    rule,
)
from spyrec.ir.operands import Floats, common_float, floats, means, present, require_float, tensor
from spyrec.ir.samples import f16, f32, i64
from spyrec.ir.shapes import broadcast_axes, normalize_dim, show
from spyrec.ir.types import TensorType


def _axes_of_first(operands: OperandTypes, _: Attributes) -> AxisSources:
    return broadcast_axes(operands, tensor(operands).shape)


@dataclass(frozen=True, slots=True)
class SoftmaxAttributes:
    """``dim``: along which the results sum to 1; ``dtype``: what the elements are converted to first."""

    dim: int
    dtype: DType | None = None


def infer_softmax(operands: OperandTypes, attributes: SoftmaxAttributes) -> tuple[TensorType, ...]:
    """Return the result type of ``softmax`` and ``log_softmax``.  Errors: SPY0202, SPY0204."""
    x, dtype = tensor(operands), attributes.dtype
    if dtype is None:
        require_float(x, 0)
    elif not dtype.is_float:
        raise OpError("SPY0202", f"results are fractions, and {dtype.value} has none", attribute="dtype")
    normalize_dim(attributes.dim, x.rank)
    return (TensorType(x.shape, dtype or x.dtype),)


def _softmax(operands: Sequence[Array | None], attributes: SoftmaxAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    if x.ndim == 0:
        return (np.where(np.isfinite(x), 1.0, np.nan),)
    exponentials = np.exp(x - np.max(x, axis=attributes.dim, keepdims=True, initial=-np.inf))
    return (exponentials / np.sum(exponentials, axis=attributes.dim, keepdims=True),)


def _largest(x: Array, attributes: SoftmaxAttributes) -> Floats:
    values = x.astype(np.float64, copy=False)
    return values if x.ndim == 0 else np.max(values, axis=attributes.dim, keepdims=True, initial=-np.inf)


_SOFTMAX_ROUNDINGS = Roundings(3.0, 1.0, Centre("the row's largest", rule(SoftmaxAttributes, _largest)))
"""What 16-bit steps leave: the difference to the largest score, exponential, sum and quotient are each stored.

The difference counts, not the scores: one that leaves something of 2**-31 is below 22, and its rounding below 2.2 % of
that smallest result.  In float32 between two casts an op takes 3 to 5 % more simulated time and one to four operations
more, and twice the scratchpad, for half of these errors.
"""

register(
    OpDef(
        name="softmax",
        summary="exponentials that sum to 1 along dim",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("input"),),
        attributes=SoftmaxAttributes,
        roundings=_SOFTMAX_ROUNDINGS,
        infer=rule(SoftmaxAttributes, infer_softmax),
        reference=rule(SoftmaxAttributes, _softmax),
        axes=_axes_of_first,
        formats=HALF_OR_SINGLE,
        is_promoted=True,
        samples=(
            ((f16(3, 5),), SoftmaxAttributes(-1)),
            ((f16(2, 70, 3),), SoftmaxAttributes(1)),
            ((f32(2, 3),), SoftmaxAttributes(0)),
            ((f16(),), SoftmaxAttributes(0)),
            ((f16(3, 5),), SoftmaxAttributes(-1, DType.FLOAT32)),
            ((i64(3, 5),), SoftmaxAttributes(-1, DType.FLOAT32)),
            ((f16(0, 3),), SoftmaxAttributes(0)),
        ),
    )
)


@dataclass(frozen=True, slots=True)
class LayerNormAttributes:
    """``normalized_shape``: the last dims of the input; ``eps`` is added to the variance."""

    normalized_shape: Sizes
    eps: float = 1e-5


@dataclass(frozen=True, slots=True)
class RmsNormAttributes:
    """``normalized_shape``: the last dims of the input; ``eps`` is added to the mean square.

    Without ``eps`` it is the machine epsilon of the input's dtype, as in PyTorch.
    """

    normalized_shape: Sizes
    eps: float | None = None

    def eps_for(self, dtype: DType) -> float:
        """Return the eps that holds for an input of this dtype."""
        if self.eps is not None:
            return self.eps
        return {DType.FLOAT16: 2.0**-10, DType.BFLOAT16: 2.0**-7}.get(dtype, 2.0**-23)


def _require_normalized_shape(operands: OperandTypes, normalized_shape: tuple[int, ...]) -> None:
    x = tensor(operands)
    common_float(operands)
    count = len(normalized_shape)
    if count == 0 or x.shape[-count:] != normalized_shape:
        message = f"normalized_shape {show(normalized_shape)} does not name the last dims of the operand {x}"
        raise OpError("SPY0207", message, attribute="normalized_shape")
    for index, operand in present(operands)[1:]:
        if operand.shape != normalized_shape:
            message = f"operand {operand} has not the normalized_shape {show(normalized_shape)}"
            raise OpError("SPY0207", message, operand=index)


def _infer_layer_norm(operands: OperandTypes, attributes: LayerNormAttributes) -> tuple[TensorType, ...]:
    _require_normalized_shape(operands, attributes.normalized_shape)
    return (tensor(operands),)


def _infer_rms_norm(operands: OperandTypes, attributes: RmsNormAttributes) -> tuple[TensorType, ...]:
    _require_normalized_shape(operands, attributes.normalized_shape)
    return (tensor(operands),)


def _complete_rms_norm(operands: OperandTypes, attributes: RmsNormAttributes) -> Attributes:
    return RmsNormAttributes(attributes.normalized_shape, attributes.eps_for(tensor(operands).dtype))


def _affine(normalized: Floats, operands: Sequence[Array | None]) -> tuple[Array, ...]:
    scaled = normalized if operands[1] is None else normalized * floats(operands, 1)
    has_bias = len(operands) > 2 and operands[2] is not None
    return (scaled + floats(operands, 2) if has_bias else scaled,)


def _layer_norm(operands: Sequence[Array | None], attributes: LayerNormAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    dims = tuple(range(x.ndim - len(attributes.normalized_shape), x.ndim))
    centred = x - means(x, dims)
    variance = means(np.square(centred), dims)
    return _affine(centred / np.sqrt(variance + attributes.eps), operands)


def _rms_norm(operands: Sequence[Array | None], attributes: RmsNormAttributes) -> tuple[Array, ...]:
    x = floats(operands)
    dims = tuple(range(x.ndim - len(attributes.normalized_shape), x.ndim))
    assert attributes.eps is not None, "the reader fills in the eps of the dtype"
    return _affine(x / np.sqrt(means(np.square(x), dims) + attributes.eps), operands)


def _row_means(x: Array, attributes: LayerNormAttributes) -> Floats:
    dims = tuple(range(x.ndim - len(attributes.normalized_shape), x.ndim))
    return means(x.astype(np.float64), dims)


_LAYER_NORM_ROUNDINGS = Roundings(4.0, 1.0, Centre("the row's mean", rule(LayerNormAttributes, _row_means)))
"""What 16-bit steps leave: differences to the mean, statistics, their scale and the result are each stored.

That the mean is rounded costs next to nothing: what is left of it in the differences is taken out with their own mean,
but for a rounding of it, 2**-20 of the mean, which is what arithmetic inside of an op may cost.
"""

_NORM_OPERANDS = (OperandSpec("input"), OperandSpec("weight", is_optional=True), OperandSpec("bias", is_optional=True))

register(
    OpDef(
        name="layer_norm",
        summary="(x - mean) / sqrt(variance + eps) over the last dims, times weight, plus bias",
        kind=OpKind.COMPOSITE,
        operands=_NORM_OPERANDS,
        attributes=LayerNormAttributes,
        roundings=_LAYER_NORM_ROUNDINGS,
        infer=rule(LayerNormAttributes, _infer_layer_norm),
        reference=rule(LayerNormAttributes, _layer_norm),
        axes=_axes_of_first,
        formats=HALF_OR_SINGLE,
        samples=(
            ((f16(3, 70), f16(70), f16(70)), LayerNormAttributes((70,))),
            ((f16(2, 3, 4), None, None), LayerNormAttributes((3, 4), 1e-3)),
            ((f16(3, 8), f16(8), None), LayerNormAttributes((8,))),
        ),
    )
)

register(
    OpDef(
        name="rms_norm",
        summary="x / sqrt(mean of squares + eps) over the last dims, times weight",
        kind=OpKind.COMPOSITE,
        operands=_NORM_OPERANDS[:2],
        attributes=RmsNormAttributes,
        roundings=Roundings(5.0),
        infer=rule(RmsNormAttributes, _infer_rms_norm),
        reference=rule(RmsNormAttributes, _rms_norm),
        axes=_axes_of_first,
        formats=HALF_OR_SINGLE,
        complete=rule(RmsNormAttributes, _complete_rms_norm),
        samples=(
            ((f16(3, 70), f16(70)), RmsNormAttributes((70,), 1e-5)),
            ((f16(2, 3, 4), None), RmsNormAttributes((3, 4), 1e-6)),
            ((f32(2, 4), f32(4)), RmsNormAttributes((4,), 1e-5)),
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Exx2Attributes:
    """``exx2scale`` is 1 / N of the folded dim; ``use_zero_mean`` stores a mean of 0."""

    exx2scale: float
    use_zero_mean: bool = False


def _infer_exx2(operands: OperandTypes, _: Exx2Attributes) -> tuple[TensorType, ...]:
    x = tensor(operands)
    require_float(x, 0)
    if x.rank == 0:
        raise OpError("SPY0206", f"{x} has rank 0", operand=0)
    return (TensorType((*x.shape[:-1], 2), x.dtype),)


def _exx2(operands: Sequence[Array | None], attributes: Exx2Attributes) -> tuple[Array, ...]:
    x = floats(operands)
    mean = np.sum(x, axis=-1) * (0.0 if attributes.use_zero_mean else attributes.exx2scale)
    return (np.stack([mean, np.sum(np.square(x), axis=-1) * attributes.exx2scale], axis=-1),)


def _exx2_constants(_: OperandTypes, attributes: Exx2Attributes) -> Mapping[str, float]:
    return {"exx2scale": attributes.exx2scale, "useZeroMean": attributes.use_zero_mean}


def _leading_axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    return (*(((0, axis),) for axis in range(tensor(operands).rank - 1)), ())


register(
    OpDef(
        name="spyre.exx2",
        summary="mean and mean of squares over the last dim, as a last dim of 2",
        kind=OpKind.LAYER_NORM,
        operands=(OperandSpec("input"),),
        attributes=Exx2Attributes,
        infer=rule(Exx2Attributes, _infer_exx2),
        reference=rule(Exx2Attributes, _exx2),
        axes=_leading_axes,
        device=DeviceOp("exx2", rule(Exx2Attributes, _exx2_constants), rounded=("exx2scale",)),
        is_public=False,
        samples=(((f16(3, 8),), Exx2Attributes(0.125)), ((f16(3, 8),), Exx2Attributes(0.125, use_zero_mean=True))),
    )
)


@dataclass(frozen=True, slots=True)
class LayerNormScaleAttributes:
    """``eps`` is added to the variance."""

    eps: float


def _infer_scale(operands: OperandTypes, _: LayerNormScaleAttributes) -> tuple[TensorType, ...]:
    stats = tensor(operands)
    require_float(stats, 0)
    if stats.shape[-1:] != (2,):
        raise OpError("SPY0207", f"{stats} is no result of exx2: its last dim is not 2", operand=0)
    return (TensorType((*stats.shape[:-1], 1), stats.dtype),)


def _scale(operands: Sequence[Array | None], attributes: LayerNormScaleAttributes) -> tuple[Array, ...]:
    stats = floats(operands)
    variance = stats[..., 1:] - np.square(stats[..., :1])
    return (1.0 / np.sqrt(variance + attributes.eps),)


def _scale_constants(_: OperandTypes, attributes: LayerNormScaleAttributes) -> Mapping[str, float]:
    return {"eps": attributes.eps}


register(
    OpDef(
        name="spyre.layernormscale",
        summary="1 / sqrt(variance + eps) from the result of exx2",
        kind=OpKind.LAYER_NORM,
        operands=(OperandSpec("stats"),),
        attributes=LayerNormScaleAttributes,
        infer=rule(LayerNormScaleAttributes, _infer_scale),
        reference=rule(LayerNormScaleAttributes, _scale),
        axes=_leading_axes,
        device=DeviceOp("layernormscale", rule(LayerNormScaleAttributes, _scale_constants), rounded=("eps",)),
        is_public=False,
        samples=(((f16(3, 2),), LayerNormScaleAttributes(8.0)),),
    )
)


def _infer_norm(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    x = tensor(operands)
    common_float(operands)
    wanted = ((*x.shape[:-1], 2), (*x.shape[:-1], 1), x.shape[-1:], x.shape[-1:])
    for (index, operand), shape in zip(present(operands)[1:], wanted):
        if operand.shape != shape:
            raise OpError("SPY0207", f"operand {operand} has not the shape {show(shape)}", operand=index)
    return (x,)


def _norm(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    centred = floats(operands) - floats(operands, 1)[..., :1]
    return (centred * floats(operands, 2) * floats(operands, 3) + floats(operands, 4),)


_NORM_NAMES = ("input", "stats", "scale", "weight", "bias")

register(
    OpDef(
        name="spyre.layernormnorm",
        summary="(x - mean) scale weight + bias, mean and scale from exx2 and layernormscale",
        kind=OpKind.LAYER_NORM,
        operands=tuple(OperandSpec(name) for name in _NORM_NAMES),
        attributes=NoAttributes,
        infer=_infer_norm,
        reference=_norm,
        axes=_axes_of_first,
        device=DeviceOp("layernormnorm"),
        is_public=False,
        samples=(((f16(3, 8), f16(3, 2), f16(3, 1), f16(8), f16(8)), NO_ATTRIBUTES),),
    )
)
