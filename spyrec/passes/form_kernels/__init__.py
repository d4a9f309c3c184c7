"""form-kernels: views become accesses, every node that writes memory becomes a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from spyrec.ir.access import Access
from spyrec.ir.device_layout import Window, even_windows, folded_shape
from spyrec.ir.graph import Graph, Node, Value
from spyrec.ir.kernel import BufferRole, ConstantSource, KernelBuffer, KernelGraph, Use
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.ir.types import TensorType
from spyrec.passes.base import PassContext
from spyrec.passes.form_kernels import contractions, movements, pointwise, views, windows
from spyrec.passes.form_kernels.size_limits import refuse_oversized
from spyrec.passes.kernel_builder import KernelBuilder, copy_between, copy_into, whole
from spyrec.passes.tile_loops.symbolic import refuse_lost_symbols


def form_kernels(graph: Graph, context: PassContext) -> KernelGraph:
    """Return the kernels of a graph of device ops.

    ``y = t(x); z = add(y, b)  -->  kernel z: add over [i, j], reading x[j, i] and b[i, j]``
    Errors: SPY0401, SPY0441 and SPY0442 what no plan can hold, whatever the later passes choose.
    """
    del context
    refuse_lost_symbols(graph)
    builder = KernelBuilder(graph)
    for name in graph.inputs:
        value = graph.values[name]
        memory, host_shape = _memory_form(value)
        builder.add_buffer(
            KernelBuffer(name, memory, BufferRole.INPUT, value.origin, pin=value.pin, host_shape=host_shape)
        )
        _read_evenly(builder, name)
    for name, data in graph.constants.items():
        value = graph.values[name]
        source = ConstantSource(data, value.type.shape)
        builder.add_buffer(KernelBuffer(name, value.type, BufferRole.CONSTANT, value.origin, constant=source))
    for node in graph.nodes:
        _FORMERS[catalogue()[node.op].kind](builder, node)
        _honour_pin(builder, node)
    outputs = tuple((name, _output_buffer(builder, name)) for name in graph.outputs)
    formed = KernelGraph(graph.name, builder.buffers, tuple(builder.kernels), graph.inputs, outputs)
    pruned = _pruned(replace(formed, places=_places(builder, outputs)))
    refuse_oversized(pruned)
    return pruned


_FORMERS: dict[OpKind, Callable[[KernelBuilder, Node], None]] = {
    OpKind.VIEW: views.form,
    OpKind.POINTWISE: pointwise.form,
    OpKind.CAST: pointwise.form_cast,
    OpKind.REDUCTION: pointwise.form_reduction,
    OpKind.CONTRACTION: contractions.form,
    OpKind.LAYER_NORM: pointwise.form_layer_norm,
    OpKind.MOVEMENT: movements.form,
    OpKind.WINDOW: windows.form,
}


def _honour_pin(builder: KernelBuilder, node: Node) -> None:
    """Give a pinned value a buffer of its own in the layout its user asked for."""
    for name in node.outputs:
        pin = builder.graph.values[name].pin
        if pin is None:
            continue
        use = builder.uses[name]
        memory, host_shape = _memory_form(builder.graph.values[name])
        is_elidable = _is_whole(builder, use)
        dims = builder.dims_of(name)
        target = builder.new_buffer(f"{name}.pinned", memory, node.origin, pin=pin, host_shape=host_shape)
        windows = _even_windows(target)
        if host_shape is not None or len(windows) > 1:
            # no kernel walks two dims through the lanes of one: the value is laid out as one dim first
            folded = builder.new_buffer(f"{name}.folded", memory, node.origin, host_shape=host_shape)
            reason = f'"{name}" of shape {list(target.host_type.shape)} is laid out as {list(memory.shape)}'
            copy_into(builder, use, folded, is_elidable=is_elidable and host_shape is None, reason=reason)
            use, is_elidable = Use(folded.name, whole(folded)), True
        if len(windows) == 1:
            copy_into(
                builder, use, target, is_elidable=is_elidable, reason=f'the layout of "{name}" is pinned', dims=dims
            )
        else:
            _copy_windows(builder, use.buffer, target, windows)
        builder.uses[name] = Use(target.name, target.whole)
        if name in builder.graph.outputs:
            builder.buffers[target.name] = replace(target, role=BufferRole.OUTPUT)
            builder.output_buffers[name] = target.name
        _read_evenly(builder, name)


Windows = tuple[tuple[Window, ...], ...]
"""Parts of a buffer that cover it, each with a window per dim."""


def _even_windows(buffer: KernelBuffer) -> Windows:
    """Return the parts of a pinned buffer that kernels can walk: no tile of its layout is ragged inside them."""
    pin = buffer.pin
    if pin is None or pin.device_size is None or pin.stride_map is None:
        return ((),)
    return tuple(product(*even_windows(pin.device_size, pin.stride_map, buffer.type.shape)))


def _read_evenly(builder: KernelBuilder, name: str) -> None:
    """Have a value whose pinned layout has ragged tiles read through a copy without them."""
    buffer = builder.buffers[builder.uses[name].buffer]
    windows = _even_windows(buffer)
    if len(windows) == 1:
        return
    if buffer.role is not BufferRole.INPUT and not any(name in node.inputs for node in builder.graph.nodes):
        return
    even = builder.new_buffer(f"{buffer.name}.whole", buffer.type, buffer.origin, host_shape=buffer.host_shape)
    _copy_windows(builder, buffer.name, even, windows)
    builder.uses[name] = Use(even.name, even.whole)


def _copy_windows(builder: KernelBuilder, source: str, target: KernelBuffer, windows: Windows) -> None:
    """Copy all of a buffer into another of its shape, window by window."""
    for window in windows:
        access = Access.identity([extent for _, extent in window])
        starts = [start for start, _ in window]
        shifted = replace(
            access,
            coordinates=tuple(
                replace(inner, offset=start) for inner, start in zip(access.coordinates, starts, strict=True)
            ),
        )
        reason = f"the tiles of a pinned layout do not divide {list(target.type.shape)}"
        copy_between(builder, Use(source, shifted), Use(target.name, shifted), target.origin, reason)


def _memory_form(value: Value) -> tuple[TensorType, tuple[int, ...] | None]:
    """Return the type that accesses to a value's buffer index, and its host shape where a pin makes that another."""
    pin = value.pin
    if pin is None or pin.device_size is None or pin.stride_map is None:
        return value.type, None
    folded = folded_shape(pin.device_size, pin.stride_map, value.type.shape)
    if folded == value.type.shape:
        return value.type, None
    return replace(value.type, shape=folded), value.type.shape


def _places(builder: KernelBuilder, outputs: tuple[tuple[str, str], ...]) -> dict[str, Use]:
    """Return where each value lies; an output that a node makes is what its own buffer holds."""
    finals = {name: Use(buffer, builder.buffers[buffer].whole) for name, buffer in outputs}
    sources = {name: Use(name, builder.buffers[name].whole) for name in builder.graph.inputs}
    return builder.uses | finals | sources


def _is_whole(builder: KernelBuilder, use: Use) -> bool:
    """Whether a use is all of a buffer that a kernel wrote, in its own order."""
    buffer = builder.buffers[use.buffer]
    return (
        buffer.role is BufferRole.INTERMEDIATE
        and buffer.pin is None
        and buffer.type.shape == use.access.extents
        and use.access.is_identity
    )


def _output_buffer(builder: KernelBuilder, name: str) -> str:
    """Return the buffer that holds a graph output; what has none of its own is copied."""
    known = builder.output_buffers.get(name)
    if known is not None:
        return known
    use = builder.uses[name]
    value = builder.graph.values[name]
    buffer = builder.buffers[use.buffer]
    if buffer.pin is not None and buffer.role is BufferRole.INTERMEDIATE and use.access == buffer.whole:
        builder.buffers[use.buffer] = replace(buffer, role=BufferRole.OUTPUT)
        builder.output_buffers[name] = use.buffer
        return use.buffer
    stem = name if name not in builder.buffers else f"{name}.result"
    target = builder.new_buffer(stem, value.type, value.origin, role=BufferRole.OUTPUT)
    reason = f'the output "{name}" has memory and a layout of its own'
    copy_into(builder, use, target, is_elidable=_is_whole(builder, use), reason=reason, dims=value.dims)
    builder.output_buffers[name] = target.name
    return target.name


def _pruned(graph: KernelGraph) -> KernelGraph:
    """Drop constants that no kernel reads."""
    read = {use.buffer for kernel in graph.kernels for use in kernel.uses}
    kept = {
        name: buffer for name, buffer in graph.buffers.items() if buffer.role is not BufferRole.CONSTANT or name in read
    }
    return replace(graph, buffers=kept)
