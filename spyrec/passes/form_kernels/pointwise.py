"""Pointwise ops, casts, reductions and the layer norm trio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spyrec.device_ops import IDENTITY, cast_between, device_operation
from spyrec.device_ops.record import Family
from spyrec.ir.access import Access, Coordinate
from spyrec.ir.graph import Node
from spyrec.ir.kernel import Kernel, KernelBuffer, Use
from spyrec.ir.kernel_form import Rule
from spyrec.ir.opdef import catalogue
from spyrec.ir.ops.reduction import FoldAttributes
from spyrec.passes.kernel_builder import KernelBuilder, whole


def constants_of(builder: KernelBuilder, node: Node) -> Mapping[str, float]:
    """Return the op constants of a node, in the order in which the SuperDSC lists them."""
    device = catalogue()[node.op].device
    if device is None or device.constants is None:
        return {}
    return device.constants([builder.type_of(operand) for operand in node.inputs], node.attributes)


def op_func_of(node: Node) -> str:
    """Return the device's name of a node's op."""
    device = catalogue()[node.op].device
    assert device is not None, node.op
    return device.op_func


def _broadcast(builder: KernelBuilder, node: Node, extents: Sequence[int]) -> tuple[Use, ...]:
    uses = (builder.operand(operand) for operand in node.inputs)
    return tuple(Use(use.buffer, use.access.expand(extents)) for use in uses)


def form(builder: KernelBuilder, node: Node) -> None:
    """One loop nest over the result's shape; operands broadcast."""
    result = builder.result(node)
    builder.add_kernel(
        Kernel(
            name=node.output,
            op=node.op,
            op_func=op_func_of(node),
            rule=Rule.SAME_STICK,
            extents=result.type.shape,
            inputs=_broadcast(builder, node, result.type.shape),
            output=Use(result.name, whole(result)),
            origin=node.origin,
            constants=constants_of(builder, node),
            dims=builder.dims_of(node.output),
        )
    )


def form_cast(builder: KernelBuilder, node: Node) -> None:
    """A conversion between device formats; dtypes that share one are copied."""
    (operand,) = node.inputs
    result = builder.result(node)
    formats = (builder.type_of(operand).dtype.device_format, result.device_format)
    op_func = IDENTITY if formats[0] is formats[1] else cast_between(*formats)
    assert op_func is not None, formats
    builder.add_kernel(
        Kernel(
            name=node.output,
            op=node.op if op_func != IDENTITY else "spyre.copy",
            op_func=op_func,
            rule=Rule.CAST if op_func != IDENTITY else Rule.COPY,
            extents=result.type.shape,
            inputs=_broadcast(builder, node, result.type.shape),
            output=Use(result.name, whole(result)),
            origin=node.origin,
            reason="a cast that keeps the format copies" if op_func == IDENTITY else None,
            dims=builder.dims_of(node.output),
        )
    )


def _without(result: KernelBuffer, kept: Sequence[int]) -> Access:
    """The access of a result whose reduced dim has extent 1, over the ``kept`` dims and the reduced one last."""
    extents = (*(result.type.shape[axis] for axis in kept), 1)
    places: list[int | None] = [None] * len(result.type.shape)
    for place, axis in enumerate(kept):
        places[axis] = place
    return Access.identity(result.type.shape).over(extents, places)


def form_reduction(builder: KernelBuilder, node: Node) -> None:
    """The kept dims in order, the reduced one last."""
    (operand,) = node.inputs
    attributes = node.attributes
    assert isinstance(attributes, FoldAttributes)
    assert attributes.dim is not None
    assert attributes.keepdim
    use = builder.operand(operand)
    (dim,) = attributes.dim
    kept = [axis for axis in range(len(use.access.extents)) if axis != dim]
    extents = tuple(use.access.extents[axis] for axis in (*kept, dim))
    result = builder.result(node)
    output = _without(result, kept)
    builder.add_kernel(
        Kernel(
            name=node.output,
            op=node.op,
            op_func=op_func_of(node),
            rule=Rule.REDUCTION,
            extents=extents,
            inputs=(Use(use.buffer, use.access.permute((*kept, dim))),),
            output=Use(result.name, Access(extents, output.coordinates)),
            origin=node.origin,
            reduced=(len(extents) - 1,),
            constants=constants_of(builder, node),
            dims=tuple(builder.dims_of(operand)[axis] for axis in (*kept, dim)),
        )
    )


def form_layer_norm(builder: KernelBuilder, node: Node) -> None:
    """exx2 reduces the last dim into two lanes; layernormscale runs over the rows; layernormnorm over all."""
    result = builder.result(node)
    uses = [builder.operand(operand) for operand in node.inputs]
    extents = uses[0].access.extents
    match device_operation(op_func_of(node)).family:
        case Family.NORM_STATISTICS:
            inputs = (uses[0],)
            output, rule, reduced = _rows(whole(result), extents), Rule.STATISTICS, (len(extents) - 1,)
        case Family.NORM_SCALE:
            extents = extents[:-1]
            inputs = (Use(uses[0].buffer, _rows(uses[0].access, extents)),)
            output, rule, reduced = _rows(whole(result), extents), Rule.STATISTICS, ()
        case _:
            statistics = Use(uses[1].buffer, _rows(uses[1].access, extents))
            rest = (Use(use.buffer, use.access.expand(extents)) for use in uses[2:])
            inputs = (uses[0], statistics, *rest)
            output, rule, reduced = whole(result), Rule.SAME_STICK, ()
    builder.add_kernel(
        Kernel(
            name=node.output,
            op=node.op,
            op_func=op_func_of(node),
            rule=rule,
            extents=extents,
            inputs=inputs,
            output=Use(result.name, output),
            origin=node.origin,
            reduced=reduced,
            constants=constants_of(builder, node),
            dims=builder.dims_of(node.inputs[0])[: len(extents)],
        )
    )


def _rows(access: Access, extents: tuple[int, ...]) -> Access:
    """The first element of each row: the last coordinate stands at its start."""
    return Access(extents, (*access.coordinates[:-1], Coordinate(access.coordinates[-1].offset)))
