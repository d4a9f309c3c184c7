"""Convolutions and their transposes, in groups: sums over kernel positions of products of channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import Dims
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    DeviceOp,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    Sample,
    register,
    rule,
)
from spyrec.ir.operands import Floats, common_float, floats, tensor
from spyrec.ir.samples import f16, f32
from spyrec.ir.shapes import Shape
from spyrec.ir.types import TensorType
from spyrec.ir.windows import Sliding, padded, per_dim, seen

MAX_POSITIONS = 64
"""Kernel positions that a convolution on the device is a sum over; each is a slice, a product and an addition."""


@dataclass(frozen=True, slots=True)
class ConvolutionAttributes:
    """Each number for all dims or one per dim; ``padding`` may be ``valid`` (none) or ``same`` (as many places as
    elements, for a stride of 1).
    """

    stride: Dims = (1,)
    padding: Dims | Literal["valid", "same"] = (0,)
    dilation: Dims = (1,)
    groups: int = 1


@dataclass(frozen=True, slots=True)
class TransposedAttributes:
    """``output_padding``: elements added after each dim of the result, fewer than the stride or the dilation."""

    stride: Dims = (1,)
    padding: Dims = (0,)
    output_padding: Dims = (0,)
    groups: int = 1
    dilation: Dims = (1,)


def windows_of(kernel: Shape, attributes: ConvolutionAttributes) -> tuple[Sliding, ...]:
    """Return the window along each dim.  Errors: SPY0209, SPY0211."""
    dims = len(kernel)
    strides = per_dim(attributes.stride, dims, "stride")
    dilations = per_dim(attributes.dilation, dims, "dilation")
    if isinstance(attributes.padding, str):
        is_same = attributes.padding == "same"
        if is_same and any(stride != 1 for stride in strides):
            raise OpError("SPY0209", 'padding "same" takes a stride of 1', attribute="padding")
        added = [dilation * (extent - 1) * is_same for dilation, extent in zip(dilations, kernel)]
        paddings = [(total // 2, total - total // 2) for total in added]
    else:
        paddings = [(value, value) for value in per_dim(attributes.padding, dims, "padding", 0)]
    found = zip(kernel, strides, dilations, paddings)
    return tuple(Sliding(extent, stride, dilation, *both) for extent, stride, dilation, both in found)


def _require_forms(operands: OperandTypes, dims: int) -> tuple[TensorType, TensorType]:
    """Return input and weight of ``dims`` sliding dims.  Errors: SPY0202, SPY0203, SPY0206, SPY0234."""
    x, weight = tensor(operands), tensor(operands, 1)
    common_float(operands)
    for index, (operand, ranks) in enumerate(((x, (dims + 1, dims + 2)), (weight, (dims + 2,)))):
        if operand.rank not in ranks:
            wanted = " or ".join(map(str, ranks))
            raise OpError("SPY0206", f"{operand} has rank {operand.rank}, the op takes rank {wanted}", operand=index)
    if 0 in weight.shape[2:]:
        raise OpError("SPY0234", f"the kernel {weight} has no elements", operand=1)
    return x, weight


def _require_groups(groups: int, channels: int, operand: int) -> None:
    if groups < 1 or channels % groups:
        message = f"{groups} groups do not divide {channels} channels"
        raise OpError("SPY0235", message, attribute="groups" if groups < 1 else None, operand=operand)


def _require_bias(operands: OperandTypes, channels: int) -> None:
    bias = operands[2]
    if bias is not None and bias.shape != (channels,):
        raise OpError("SPY0207", f"the bias {bias} has not one number for each of {channels} channels", operand=2)


def _infer_convolution(dims: int, operands: OperandTypes, attributes: ConvolutionAttributes) -> tuple[TensorType, ...]:
    x, weight = _require_forms(operands, dims)
    channels = x.shape[-dims - 1]
    _require_groups(attributes.groups, channels, 0)
    _require_groups(attributes.groups, weight.shape[0], 1)
    if weight.shape[1] * attributes.groups != channels:
        message = f"the weight {weight} takes {weight.shape[1]} channels of each of {attributes.groups} groups, "
        raise OpError("SPY0213", f"{message}and the input {x} has {channels}", operand=1)
    _require_bias(operands, weight.shape[0])
    windows = windows_of(weight.shape[2:], attributes)
    counts = tuple(window.places(extent) for window, extent in zip(windows, x.shape[-dims:]))
    return (TensorType((*x.shape[: -dims - 1], weight.shape[0], *counts), x.dtype),)


def _axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    """Samples keep their names; channels and places are new."""
    x, weight = tensor(operands), tensor(operands, 1)
    batch: AxisSources = (((0, 0),),) if x.rank == weight.rank else ()
    return (*batch, *((),) * (weight.rank - 1))


def _biased(result: Floats, operands: Sequence[Array | None], dims: int) -> Floats:
    return result if operands[2] is None else result + floats(operands, 2).reshape(-1, *(1,) * dims)


def _grouped(x: Floats, weight: Floats, groups: int) -> Floats:
    """Return ``x[n, c, ...]`` times ``weight[o, c of a group]`` over the channels, group by group: ``[n, o, ...]``."""
    sample, _, *places = x.shape
    parts = x.reshape(sample, groups, weight.shape[1], math.prod(places))
    matrices = weight.reshape(groups, weight.shape[0] // groups, weight.shape[1])
    return np.matmul(matrices, parts).reshape(sample, weight.shape[0], *places)


def _convolution(dims: int, operands: Sequence[Array | None], attributes: ConvolutionAttributes) -> tuple[Array, ...]:
    given, weight = floats(operands), floats(operands, 1)
    x = given if given.ndim == dims + 2 else given[None]
    windows = windows_of(weight.shape[2:], attributes)
    counts = [window.places(extent) for window, extent in zip(windows, x.shape[2:])]
    wide = padded(x, windows, counts, 0.0)
    result = np.zeros((x.shape[0], weight.shape[0], *counts))
    for at in np.ndindex(*weight.shape[2:]):
        result += _grouped(seen(wide, windows, counts, at), weight[(slice(None), slice(None), *at)], attributes.groups)
    biased = _biased(result, operands, dims)
    return (biased if given.ndim == dims + 2 else biased[0],)


def is_depthwise(weight: TensorType, attributes: ConvolutionAttributes) -> bool:
    """Whether each channel has one kernel of its own.

    A single channel in three dims is a matrix product like any other: element by element, with a sample and a channel
    of one element each, it would have more dims than a SuperDSC.
    """
    made, inner, *kernel = weight.shape
    return inner == 1 and made == attributes.groups and (made > 1 or len(kernel) < 3)


def _convolution_host_when(operands: OperandTypes, attributes: ConvolutionAttributes) -> str | None:
    x, weight = tensor(operands), tensor(operands, 1)
    kernel = weight.shape[2:]
    windows = windows_of(kernel, attributes)
    are_tiles = all(window == Sliding(window.kernel, window.kernel) for window in windows)
    if math.prod(kernel) > MAX_POSITIONS and not are_tiles:
        return f"a kernel of {math.prod(kernel)} positions is above the {MAX_POSITIONS} that the device form has"
    if x.dtype is DType.FLOAT32 and not is_depthwise(weight, attributes):
        return "the device multiplies matrices of 16 bits alone"
    return None


_OPERANDS = (OperandSpec("input"), OperandSpec("weight"), OperandSpec("bias", is_optional=True))


def _define(name: str, dims: int, samples: tuple[Sample, ...]) -> None:
    def infer(operands: OperandTypes, attributes: ConvolutionAttributes) -> tuple[TensorType, ...]:
        return _infer_convolution(dims, operands, attributes)

    def reference(operands: Sequence[Array | None], attributes: ConvolutionAttributes) -> tuple[Array, ...]:
        return _convolution(dims, operands, attributes)

    register(
        OpDef(
            name=name,
            summary=f"kernels of channels slid over {dims} dim{'s'[: dims > 1]} (as PyTorch: not flipped), plus bias",
            kind=OpKind.COMPOSITE,
            operands=_OPERANDS,
            attributes=ConvolutionAttributes,
            infer=rule(ConvolutionAttributes, infer),
            reference=rule(ConvolutionAttributes, reference),
            axes=_axes,
            formats=HALF_OR_SINGLE,
            host_when=rule(ConvolutionAttributes, _convolution_host_when),
            samples=samples,
        )
    )


_define(
    "conv1d",
    1,
    (
        ((f16(2, 4, 9), f16(6, 2, 3), f16(6)), ConvolutionAttributes((2,), (1,), (1,), 2)),
        ((f16(4, 9), f16(4, 1, 3), None), ConvolutionAttributes(padding="same", groups=4)),
        ((f32(1, 3, 9), f32(2, 3, 2), None), ConvolutionAttributes(dilation=(2,))),
    ),
)
_define(
    "conv2d",
    2,
    (
        ((f16(2, 4, 6, 5), f16(6, 4, 3, 2), f16(6)), ConvolutionAttributes((2, 1), (1, 0))),
        ((f32(3, 6, 5), f32(3, 1, 1, 1), None), ConvolutionAttributes(padding="valid", groups=3)),
        ((f16(0, 3, 6, 5), f16(3, 3, 2, 2), None), ConvolutionAttributes()),
    ),
)
_define(
    "conv3d",
    3,
    (((f16(1, 2, 4, 4, 3), f16(3, 2, 2, 2, 1), f16(3)), ConvolutionAttributes()),),
)


def _define_own(name: str, summary: str, op_func: str, samples: tuple[Sample, ...]) -> None:
    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.WINDOW,
            operands=(OperandSpec("input"), OperandSpec("weight")),
            attributes=ConvolutionAttributes,
            infer=rule(ConvolutionAttributes, _infer_own),
            reference=rule(ConvolutionAttributes, _own),
            axes=_axes,
            device=DeviceOp(op_func),
            is_public=False,
            samples=samples,
        )
    )


def _infer_own(operands: OperandTypes, attributes: ConvolutionAttributes) -> tuple[TensorType, ...]:
    return _infer_convolution(2, (*operands, None), attributes)


def _own(operands: Sequence[Array | None], attributes: ConvolutionAttributes) -> tuple[Array, ...]:
    return _convolution(2, (*operands, None), attributes)


_define_own(
    "spyre.conv2d",
    "the device's convolution: all input channels, two dims, no bias",
    "conv2d",
    (((f16(2, 4, 6, 5), f16(6, 4, 3, 2)), ConvolutionAttributes((2, 1), (1, 0))),),
)
_define_own(
    "spyre.depthwiseconv2d",
    "the device's convolution of each channel by itself, two dims, no bias",
    "depthwiseconv2dnative",
    (((f16(2, 4, 6, 5), f16(4, 1, 3, 2)), ConvolutionAttributes((2, 1), (1, 0), groups=4)),),
)


def _transposed_windows(kernel: Shape, attributes: TransposedAttributes) -> tuple[Sliding, ...]:
    dims = len(kernel)
    strides = per_dim(attributes.stride, dims, "stride")
    dilations = per_dim(attributes.dilation, dims, "dilation")
    paddings = per_dim(attributes.padding, dims, "padding", 0)
    added = per_dim(attributes.output_padding, dims, "output_padding", 0)
    for more, stride, dilation in zip(added, strides, dilations):
        if more and more >= max(stride, dilation):
            message = f"output_padding {more} is not below the stride {stride} or the dilation {dilation}"
            raise OpError("SPY0209", message, attribute="output_padding")
    found = zip(kernel, strides, dilations, paddings, added)
    # `after` may be negative: what is added to the result is padding that is not cut off
    return tuple(Sliding(size, stride, dilation, pad, pad - more) for size, stride, dilation, pad, more in found)


def _transposed_extent(window: Sliding, extent: int) -> int:
    """Return the extent of the result along a dim.  Errors: SPY0234 nothing is left of it."""
    found = (extent - 1) * window.stride + window.span - window.before - window.after
    if found < 1:
        raise OpError("SPY0234", f"padding leaves an extent of {found} of a dim of {extent}", attribute="padding")
    return found


def _infer_transposed(dims: int, operands: OperandTypes, attributes: TransposedAttributes) -> tuple[TensorType, ...]:
    x, weight = _require_forms(operands, dims)
    channels = x.shape[-dims - 1]
    _require_groups(attributes.groups, channels, 0)
    if weight.shape[0] != channels:
        raise OpError(
            "SPY0213", f"the weight {weight} takes {weight.shape[0]} channels, and {x} has {channels}", operand=1
        )
    made = weight.shape[1] * attributes.groups
    _require_bias(operands, made)
    windows = _transposed_windows(weight.shape[2:], attributes)
    extents = tuple(_transposed_extent(window, extent) for window, extent in zip(windows, x.shape[-dims:]))
    return (TensorType((*x.shape[: -dims - 1], made, *extents), x.dtype),)


def _transposed(dims: int, operands: Sequence[Array | None], attributes: TransposedAttributes) -> tuple[Array, ...]:
    """Each element is spread over the places of the kernel: the positions of the result that would have seen it."""
    given, weight = floats(operands), floats(operands, 1)
    x = given if given.ndim == dims + 2 else given[None]
    windows = _transposed_windows(weight.shape[2:], attributes)
    groups, per = attributes.groups, weight.shape[1]
    whole = [(extent - 1) * window.stride + window.span for window, extent in zip(windows, x.shape[2:])]
    room = [size + max(-window.after, 0) for size, window in zip(whole, windows)]
    result = np.zeros((x.shape[0], per * groups, *room))
    for at in np.ndindex(*weight.shape[2:]) if x.size else ():
        one = weight[(slice(None), slice(None), *at)].reshape(groups, x.shape[1] // groups, per)
        turned = one.transpose(0, 2, 1).reshape(groups * per, x.shape[1] // groups)
        places = tuple(
            slice(
                position * window.dilation, position * window.dilation + (extent - 1) * window.stride + 1, window.stride
            )
            for position, window, extent in zip(at, windows, x.shape[2:])
        )
        result[(slice(None), slice(None), *places)] += _grouped(x, turned, groups)
    cut = tuple(slice(w.before, size - max(w.after, 0)) for w, size in zip(windows, room))
    kept = result[(slice(None), slice(None), *cut)]
    biased = _biased(kept, operands, dims)
    return (biased if given.ndim == dims + 2 else biased[0],)


def _define_transposed(name: str, dims: int, samples: tuple[Sample, ...]) -> None:
    def infer(operands: OperandTypes, attributes: TransposedAttributes) -> tuple[TensorType, ...]:
        return _infer_transposed(dims, operands, attributes)

    def reference(operands: Sequence[Array | None], attributes: TransposedAttributes) -> tuple[Array, ...]:
        return _transposed(dims, operands, attributes)

    register(
        OpDef(
            name=name,
            summary=f"each element times a kernel, spread over {dims} dim{'s'[: dims > 1]} and added up, plus bias",
            kind=OpKind.HOST,
            operands=_OPERANDS,
            attributes=TransposedAttributes,
            infer=rule(TransposedAttributes, infer),
            reference=rule(TransposedAttributes, reference),
            axes=_axes,
            samples=samples,
        )
    )


_define_transposed(
    "conv_transpose1d",
    1,
    (
        ((f16(2, 4, 5), f16(4, 3, 3), f16(6)), TransposedAttributes((2,), (1,), (1,), 2)),
        ((f32(4, 5), f32(4, 3, 2), None), TransposedAttributes(dilation=(3,))),
    ),
)
_define_transposed(
    "conv_transpose2d",
    2,
    (
        ((f16(2, 4, 5, 3), f16(4, 3, 3, 2), f16(3)), TransposedAttributes((2, 1), (1, 0), (1, 0))),
        ((f16(4, 5, 3), f16(4, 1, 2, 2), None), TransposedAttributes((2,), groups=4)),
    ),
)
_define_transposed(
    "conv_transpose3d",
    3,
    (((f16(1, 2, 3, 2, 2), f16(2, 2, 2, 1, 2), f16(2)), TransposedAttributes((2,))),),
)
