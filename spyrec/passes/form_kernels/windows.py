"""Pools and convolutions that the device has: one loop nest over the places and the elements of a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spyrec.dataclass import dataclass
from spyrec.device_ops import window_of
from spyrec.device_ops.record import WindowForm
from spyrec.ir.access import Coordinate, Term
from spyrec.ir.graph import Node, Operand
from spyrec.ir.kernel import Kernel, KernelBuffer, Use
from spyrec.ir.kernel_form import Rule
from spyrec.ir.ops.convolutions import ConvolutionAttributes, windows_of
from spyrec.ir.ops.pools import AvgPoolAttributes, pool_windows
from spyrec.ir.sliding import Slide, Window, sliding
from spyrec.ir.windows import Sliding
from spyrec.passes.form_kernels.contractions import with_whole_rows
from spyrec.passes.form_kernels.pointwise import constants_of, op_func_of
from spyrec.passes.kernel_builder import KernelBuilder, copy_into, whole


@dataclass(frozen=True, slots=True)
class _Dims:
    """The iteration dims by their parts; ``summed``: the channels that are summed over, where any are.

    ``places``, ``taps``: along columns, then along rows.  So they follow each other in the memory of a tensor
    ``[n, c, rows, columns]`` whose channels lie in the sticks, by which a file tells them apart.
    """

    samples: int
    channels: int
    places: tuple[int, int]
    taps: tuple[int, int]
    summed: int | None


# in the order in which a SuperDSC of each form names its dims
_DIMS: Mapping[WindowForm, _Dims] = {
    WindowForm.POOL: _Dims(0, 3, (1, 2), (4, 5), None),
    WindowForm.CONVOLUTION: _Dims(0, 3, (1, 2), (5, 6), 4),
    WindowForm.DEPTHWISE: _Dims(0, 1, (2, 3), (4, 5), None),
}


def form(builder: KernelBuilder, node: Node) -> None:
    """``y[n, c, i, j] = sum x[n, c, i s + k d - p, j t + l e - q] (w[c, k, l])`` over k and l.

    A convolution sums over its input's channels as well, whose weights have zero rows up to a whole stick of these.
    """
    window_form = window_of(op_func_of(node))
    assert window_form is not None
    dims = _DIMS[window_form]
    source = _plain(builder, node.inputs[0], node)
    samples, source_channels, *extents = source.access.extents
    _, channels, *places = builder.type_of(node.output).shape
    places, extents, along = places[::-1], extents[::-1], _windows(builder, node)[::-1]
    by_dim = {dims.samples: samples, dims.channels: channels, **dict(zip(dims.places, places, strict=True))}
    by_dim |= {dim: item.kernel for dim, item in zip(dims.taps, along, strict=True)}
    if dims.summed is not None:
        by_dim[dims.summed] = source_channels
    iterated = tuple(by_dim[dim] for dim in range(len(by_dim)))
    host_dims = [_host_dim(source, axis) for axis in (3, 2)]
    slides = tuple(
        Slide(host_dim, extent, place, tap, item.stride, item.dilation, item.before, _has_steps(window_form))
        for host_dim, extent, place, tap, item in zip(host_dims, extents, dims.places, dims.taps, along, strict=True)
    )
    summed = dims.channels if dims.summed is None else dims.summed
    standing = source.access.over(iterated, (dims.samples, summed, None, None))
    inputs = [Use(source.buffer, sliding(standing, slides))]
    if len(node.inputs) > 1:
        inputs.append(_weights(builder, node, dims, iterated))
    result = builder.result(node)
    first, second = slides
    builder.add_kernel(
        Kernel(
            name=node.output,
            op=node.op,
            op_func=op_func_of(node),
            rule=Rule.WINDOW,
            extents=iterated,
            inputs=tuple(inputs),
            output=Use(result.name, whole(result).over(iterated, (dims.samples, dims.channels, *dims.places[::-1]))),
            origin=node.origin,
            reduced=(*dims.taps, *(() if dims.summed is None else (dims.summed,))),
            constants=constants_of(builder, node),
            dims=_names(builder, node, dims, len(iterated)),
            window=Window(window_form, (first, second), dims.channels, summed),
        )
    )


def _has_steps(window_form: WindowForm) -> bool:
    """Whether the device counts the input of a form in whole strides."""
    return window_form is not WindowForm.DEPTHWISE


def _windows(builder: KernelBuilder, node: Node) -> tuple[Sliding, ...]:
    attributes = node.attributes
    if isinstance(attributes, AvgPoolAttributes):
        return pool_windows(2, attributes)
    assert isinstance(attributes, ConvolutionAttributes)
    return windows_of(builder.type_of(node.inputs[1]).shape[2:], attributes)


def _plain(builder: KernelBuilder, operand: Operand, node: Node) -> Use:
    """Return where an operand lies, whole dims of one buffer in some order; it is written out where it does not."""
    use = builder.operand(operand)
    others = {builder.operand(other).buffer for other in node.inputs[1:]}
    if _is_plain(use, builder.buffers[use.buffer]) and use.buffer not in others:
        return use
    target = builder.new_buffer(f"{node.output}.input", builder.type_of(operand), node.origin)
    return copy_into(
        builder, use, target, reason="a window slides over whole dims of a tensor", dims=builder.dims_of(operand)
    )


def _is_plain(use: Use, buffer: KernelBuffer) -> bool:
    """Whether each dim that an operand has walks a dim of its buffer, all of it: nothing repeats or is left out."""
    sides = zip(use.access.coordinates, buffer.type.shape)
    walked = [_whole_dim(use, coordinate, extent) for coordinate, extent in sides if extent > 1]
    own = [dim for dim, extent in enumerate(use.access.extents) if extent > 1]
    return buffer.pin is None and None not in walked and set(walked) == set(own)


def _whole_dim(use: Use, coordinate: Coordinate, extent: int) -> int | None:
    """Return the dim that walks a whole buffer dim of an extent, ``None`` where none does."""
    found = [dim for dim, own in enumerate(use.access.extents) if coordinate == Coordinate(0, (Term(1, dim, 1, own),))]
    return found[0] if found and use.access.extents[found[0]] == extent else None


def _host_dim(use: Use, axis: int) -> int | None:
    """Return the buffer dim that an axis of an operand walks."""
    found = [
        dim
        for dim, coordinate in enumerate(use.access.coordinates)
        if any(term.dim == axis for term in coordinate.terms)
    ]
    return found[0] if found else None


def _weights(builder: KernelBuilder, node: Node, dims: _Dims, iterated: Sequence[int]) -> Use:
    """Return the weights over the iteration: ``[channels, summed or 1, taps]``."""
    use = builder.operand(node.inputs[1])
    made, summed, *taps = builder.dims_of(node.inputs[1])
    rows_and_columns = dims.taps[::-1]
    if dims.summed is None:
        return Use(use.buffer, use.access.over(tuple(iterated), (dims.channels, None, *rows_and_columns)))
    turned = Use(use.buffer, use.access.permute((2, 3, 1, 0)))
    rows = with_whole_rows(builder, turned, node, (*taps, summed, made))
    return Use(rows.buffer, rows.access.over(tuple(iterated), (*rows_and_columns, dims.summed, dims.channels)))


def _names(builder: KernelBuilder, node: Node, dims: _Dims, count: int) -> tuple[str | None, ...]:
    samples, channels, rows, columns = builder.dims_of(node.output)
    names: list[str | None] = [None] * count
    names[dims.samples], names[dims.channels] = samples, channels
    names[dims.places[0]], names[dims.places[1]] = columns, rows
    if dims.summed is not None:
        names[dims.summed] = builder.dims_of(node.inputs[0])[1]
    return tuple(names)
