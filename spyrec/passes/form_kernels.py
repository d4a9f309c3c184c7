"""form-kernels: views become accesses, every node that writes memory becomes a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spyrec.ir.device_layout import folded_shape
from spyrec.ir.graph import Graph, Node, Value
from spyrec.ir.kernel import Buffer, BufferRole, ConstantSource, KernelGraph, Use
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.ir.types import TensorType
from spyrec.passes.base import PassContext
from spyrec.passes.kernel_builder import KernelBuilder, copy_into, whole
from spyrec.passes.kernel_forming import contractions, movements, pointwise, views


def form_kernels(graph: Graph, context: PassContext) -> KernelGraph:
    """Return the kernels of a graph of device ops.

    ``y = t(x); z = add(y, b)  -->  kernel z: add over [i, j], reading x[j, i] and b[i, j]``
    """
    del context
    builder = KernelBuilder(graph)
    for name in graph.inputs:
        value = graph.values[name]
        memory, host_shape = _memory_form(value)
        builder.add_buffer(Buffer(name, memory, BufferRole.INPUT, value.origin, pin=value.pin, host_shape=host_shape))
    for name, data in graph.constants.items():
        value = graph.values[name]
        source = ConstantSource(data, value.type.shape)
        builder.add_buffer(Buffer(name, value.type, BufferRole.CONSTANT, value.origin, constant=source))
    for node in graph.nodes:
        _FORMERS[catalogue()[node.op].kind](builder, node)
        _honour_pin(builder, node)
    outputs = tuple((name, _output_buffer(builder, name)) for name in graph.outputs)
    formed = KernelGraph(graph.name, builder.buffers, tuple(builder.kernels), graph.inputs, outputs)
    return _pruned(replace(formed, places=_places(builder, outputs)))


_FORMERS: dict[OpKind, Callable[[KernelBuilder, Node], None]] = {
    OpKind.VIEW: views.form,
    OpKind.POINTWISE: pointwise.form,
    OpKind.CAST: pointwise.form_cast,
    OpKind.REDUCTION: pointwise.form_reduction,
    OpKind.CONTRACTION: contractions.form,
    OpKind.LAYER_NORM: pointwise.form_layer_norm,
    OpKind.MOVEMENT: movements.form,
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
        if host_shape is not None:
            # no kernel walks two dims through the lanes of one: the value is laid out as one dim first
            folded = builder.new_buffer(f"{name}.folded", memory, node.origin, host_shape=host_shape)
            reason = f"the pinned layout walks shape {list(host_shape)} as {list(memory.shape)}"
            copy_into(builder, use, folded, reason=reason)
            use, is_elidable = Use(folded.name, whole(folded)), True
        target = builder.new_buffer(f"{name}.pinned", memory, node.origin, pin=pin, host_shape=host_shape)
        copy_into(builder, use, target, is_elidable=is_elidable, reason=f'the layout of "{name}" is pinned')
        builder.uses[name] = Use(target.name, target.whole)


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
    sources = {*builder.graph.inputs, *builder.graph.constants}
    finals = {name: Use(buffer, builder.buffers[buffer].whole) for name, buffer in outputs if name not in sources}
    return builder.uses | finals


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
    copy_into(builder, use, target, is_elidable=_is_whole(builder, use), reason=reason)
    builder.output_buffers[name] = target.name
    return target.name


def _pruned(graph: KernelGraph) -> KernelGraph:
    """Drop constants that no kernel reads."""
    read = {use.buffer for kernel in graph.kernels for use in kernel.uses}
    kept = {
        name: buffer for name, buffer in graph.buffers.items() if buffer.role is not BufferRole.CONSTANT or name in read
    }
    return replace(graph, buffers=kept)
