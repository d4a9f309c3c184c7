"""Average pools and convolutions as the device's own operations, where they have the form for them (D200).

The device takes 16-bit images with the channels in the sticks, windows that divide what they see by one number, as
much padding behind as before, and rows and columns in whole strides.  It adds up in float32 and rounds once; a mean is
multiplied by a constant of 16 bits, which is rounded too.  What has another form, and pools of so few channels that
their sticks are mostly padding, are made of slices, sums and matrix products (``pools.py``, ``convolutions.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.ir.graph import Node, Operand
from spyrec.ir.operands import tensor
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.ops.convolutions import ConvolutionAttributes, is_depthwise, windows_of
from spyrec.ir.ops.pools import AvgPoolAttributes, divisors, pool_counts, pool_windows
from spyrec.ir.ops.selection import SliceAttributes
from spyrec.ir.ops.views import ReshapeAttributes
from spyrec.ir.shapes import Shape
from spyrec.ir.types import TensorType
from spyrec.ir.windows import Sliding
from spyrec.passes.builder import NodeBuilder

Rewrite = Callable[[NodeBuilder], str]

_MOST_STICKS = 4
"""How many times the sticks of a pool's input, columns in them, the same may have with channels in them.

Sums of slices read and write the input some nine times, the device's pool once, and a copy that turns the sticks
twice; with one or two channels of 64 in a stick these are more.
"""

_POOLS = frozenset({"avg_pool1d", "avg_pool2d"})
_CONVOLUTIONS = frozenset({"conv1d", "conv2d"})


@dataclass(frozen=True, slots=True)
class _Images:
    """An operation on images ``[samples, channels, rows, columns]``; ``kept``: rows and columns that windows reach.

    ``made``: channels of the result.
    """

    samples: int
    channels: int
    extents: Shape
    kept: Shape
    windows: tuple[Sliding, ...]
    made: int


def rewrite(node: Node, types: Sequence[TensorType | None]) -> Rewrite | None:
    """Return how to write a node as an operation of the device that slides a window, ``None`` where none has its form.

    ``y = avg_pool2d(x)  -->  y = spyre.avgpool(x)``
    """
    if node.op in _POOLS:
        assert isinstance(node.attributes, AvgPoolAttributes)
        pooled = _pooled(tensor(types), node.attributes, int(node.op[-2]))
        return None if pooled is None else lambda builder: _pool(builder, pooled)
    if node.op in _CONVOLUTIONS:
        assert isinstance(node.attributes, ConvolutionAttributes)
        convolved = _convolved(tensor(types), tensor(types, 1), node.attributes)
        return None if convolved is None else lambda builder: _convolution(builder, convolved)
    return None


def _pooled(x: TensorType, attributes: AvgPoolAttributes, dims: int) -> _Images | None:
    windows = pool_windows(dims, attributes)
    extents = x.shape[x.rank - dims :]
    counts = pool_counts(x.shape, windows, ceil_mode=attributes.ceil_mode)
    area = math.prod(window.kernel for window in windows)
    if not (divisors(extents, windows, counts, attributes) == area).all():
        return None
    images = _images(x, windows, x.shape[x.rank - dims - 1], has_steps=True)
    return images if images is not None and _sticks_suit(images) else None


def _sticks_suit(images: _Images) -> bool:
    """Whether images with channels in their sticks are not much larger than with columns."""
    lanes = DeviceFormat.SEN169_FP16.elements_per_stick
    assert lanes is not None
    rows, columns = images.extents
    by_channel = rows * columns * -(-images.channels // lanes)
    return by_channel <= _MOST_STICKS * images.channels * rows * -(-columns // lanes)


def _convolved(x: TensorType, weight: TensorType, attributes: ConvolutionAttributes) -> _Images | None:
    by_channel = is_depthwise(weight, attributes)
    if attributes.groups != 1 and not by_channel:
        return None
    return _images(x, windows_of(weight.shape[2:], attributes), weight.shape[0], has_steps=not by_channel)


def _images(x: TensorType, windows: tuple[Sliding, ...], made: int, *, has_steps: bool) -> _Images | None:
    """Return the images in two dims, ``None`` where the device has no such window on them.

    ``has_steps``: rows and columns are counted in whole strides; those beyond the last one, which no window may see,
    are left out.
    """
    dims = len(windows)
    samples = x.shape[0] if x.rank == dims + 2 else 1
    channels, *extents = x.shape[x.rank - dims - 1 :]
    if dims == 1:
        extents, windows = [1, *extents], (Sliding(1), *windows)
    kept = [
        extent // window.stride * window.stride if has_steps else extent for extent, window in zip(extents, windows)
    ]
    is_own = (
        x.dtype.device_format in HALF
        and 0 not in x.shape
        # a file of a depthwise window of one column does not tell it from one of one row
        and (has_steps or windows[-1].places(extents[-1]) > 1)
        and min(channels, made) > 1
        and all(
            _has_form(window, extent, rest, has_steps=has_steps) for window, extent, rest in zip(windows, extents, kept)
        )
    )
    return _Images(samples, channels, tuple(extents), tuple(kept), windows, made) if is_own else None


def _has_form(window: Sliding, extent: int, kept: int, *, has_steps: bool) -> bool:
    """Whether the device has a window along a dim of so many elements, of which those ``kept`` lie in whole strides."""
    count = window.places(extent)
    last = (count - 1) * window.stride + window.span - window.before
    steps = kept // window.stride if has_steps else extent
    return window.before == window.after and count <= steps and (kept == extent or last <= kept)


def _four_dims(builder: NodeBuilder, x: Operand, images: _Images) -> Operand:
    """Return the images, cut to what windows reach."""
    shape = (images.samples, images.channels, *images.extents)
    if builder.type_of(x).shape != shape:
        x = builder.emit("reshape", x, attributes=ReshapeAttributes(shape))
    for axis, (kept, extent) in enumerate(zip(images.kept, images.extents), 2):
        if kept < extent:
            x = builder.emit("slice", x, attributes=SliceAttributes(axis, 0, kept))
    return x


def _as_asked(builder: NodeBuilder, result: str) -> str:
    """Return the result in the rank of the node's first operand."""
    node = builder.node
    rank, dims = builder.type_of(node.inputs[0]).rank, int(node.op[-2])
    samples, channels, *places = builder.type_of(result).shape
    shape = (*((samples,) if rank == dims + 2 else ()), channels, *places[2 - dims :])
    if shape == builder.type_of(result).shape:
        return result
    return builder.emit("reshape", result, attributes=ReshapeAttributes(shape))


def _pool(builder: NodeBuilder, images: _Images) -> str:
    x = _four_dims(builder, builder.node.inputs[0], images)
    along = images.windows
    attributes = AvgPoolAttributes(
        tuple(item.kernel for item in along), tuple(item.stride for item in along), tuple(item.before for item in along)
    )
    return _as_asked(builder, builder.emit("spyre.avgpool", x, attributes=attributes))


def _convolution(builder: NodeBuilder, images: _Images) -> str:
    node, along = builder.node, images.windows
    attributes = node.attributes
    assert isinstance(attributes, ConvolutionAttributes)
    _, weight, bias = (*node.inputs, None)[:3]
    x = _four_dims(builder, node.inputs[0], images)
    made, per_group, *_ = builder.type_of(weight).shape
    shape = (made, per_group, *(item.kernel for item in along))
    if builder.type_of(weight).shape != shape:
        weight = builder.emit("reshape", weight, attributes=ReshapeAttributes(shape))
    own = ConvolutionAttributes(
        tuple(item.stride for item in along),
        tuple(item.before for item in along),
        tuple(item.dilation for item in along),
        attributes.groups,
    )
    op = "spyre.conv2d" if attributes.groups == 1 else "spyre.depthwiseconv2d"
    found = builder.emit(op, x, weight, attributes=own)
    if bias is not None:
        beside = builder.emit("reshape", bias, attributes=ReshapeAttributes((-1, 1, 1)))
        found = builder.emit("add", found, beside, attributes=AlphaAttributes())
    return _as_asked(builder, found)
