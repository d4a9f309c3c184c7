"""The matrix product: batch dims, then M, N, K; the second operand's rows padded with zeros to whole sticks of K."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spyrec.ir.access import Access, Coordinate, Term
from spyrec.ir.graph import ConstantData, Derived, Node
from spyrec.ir.kernel import BufferRole, ConstantSource, Kernel, KernelBuffer, Use
from spyrec.ir.kernel_form import Rule
from spyrec.ir.types import TensorType
from spyrec.passes.form_kernels.movements import copy_piece
from spyrec.passes.form_kernels.pointwise import op_func_of
from spyrec.passes.kernel_builder import PASS_NAME, KernelBuilder, whole


def form(builder: KernelBuilder, node: Node) -> None:
    """``c[.., m, n] = sum_k a[.., m, k] b[.., k, n]``.

    A dim of the result that neither operand walks has no part in the product: a view repeats what is computed once.
    """
    left, right = (builder.operand(operand) for operand in node.inputs)
    shape = builder.graph.values[node.output].type.shape
    *batch, rows, columns = shape
    inner = left.access.extents[-1]
    right = with_whole_rows(builder, right, node, builder.dims_of(node.inputs[1]))
    count = len(batch)
    walked = (*shape, inner)
    a = left.access.expand((*batch, rows, inner)).over(walked, (*range(count + 1), count + 2))
    b = right.access.expand((*batch, inner, columns)).over(walked, (*range(count), count + 2, count + 1))
    once = tuple(size if a.depends_on(dim) or b.depends_on(dim) else 1 for dim, size in enumerate(shape))
    result = _result(builder, node, once)
    extents = (*once, inner)
    builder.add_kernel(
        Kernel(
            name=node.output,
            op=node.op,
            op_func=op_func_of(node),
            rule=Rule.CONTRACTION,
            extents=extents,
            inputs=(
                Use(left.buffer, Access(extents, a.coordinates)),
                Use(right.buffer, Access(extents, b.coordinates)),
            ),
            output=Use(result.name, whole(result).over(extents, tuple(range(count + 2)))),
            origin=node.origin,
            reduced=(count + 2,),
            dims=(*builder.dims_of(node.output), _contracted_name(builder, node)),
        )
    )


def _contracted_name(builder: KernelBuilder, node: Node) -> str | None:
    """The first operand's name for the contracted dim, else the second's."""
    left, right = (builder.dims_of(operand) for operand in node.inputs)
    return left[-1] or right[-2]


def _result(builder: KernelBuilder, node: Node, once: tuple[int, ...]) -> KernelBuffer:
    """Add the buffer of the product, of extent 1 where it repeats itself."""
    full = builder.graph.values[node.output].type
    if once == full.shape:
        return builder.result(node)
    result = builder.new_buffer(f"{node.output}.once", TensorType(once, full.dtype), node.origin)
    builder.uses[node.output] = Use(result.name, whole(result).expand(full.shape))
    return result


def with_whole_rows(builder: KernelBuilder, use: Use, node: Node, names: tuple[str | None, ...]) -> Use:
    """Return a second operand ``[.., rows, columns]`` with zero rows up to a whole stick of what is contracted.

    Constants are padded at compile time.  ``names``: of the dims that ``use`` walks.
    """
    buffer, inner = builder.buffers[use.buffer], use.access.extents[-2]
    lanes = buffer.device_format.elements_per_stick
    assert lanes is not None
    if inner % lanes == 0:
        return use
    full = -(-inner // lanes) * lanes
    padded = _padded_constant(builder, use, inner)
    if padded is not None:
        return Use(padded.name, use.access)
    shape = (*use.access.extents[:-2], full, use.access.extents[-1])
    target = builder.new_buffer(f"{node.output}.padded", TensorType(shape, buffer.type.dtype), node.origin)
    reason = f"the contracted dim of {inner} is padded with zeros to {full}, whole sticks"
    dims = (*names[:-2], None, names[-1])
    copy_piece(builder, use, target, (len(shape) - 2, 0), reason, dims)
    zero = _zero(builder, buffer)
    fill = (*shape[:-2], full - inner, shape[-1])
    copy_piece(builder, Use(zero.name, Access(fill, ())), target, (len(shape) - 2, inner), reason, dims)
    window = whole(target).window(len(shape) - 2, 0, inner, 1)
    assert window is not None
    return Use(target.name, window)


def _walked_host_dim(use: Use, buffer: KernelBuffer, place: int) -> int | None:
    """Return the host dim that iteration dim ``place`` walks from end to end, if one does."""
    extent = use.access.extents[place]
    full = Coordinate(0, (Term(1, place, 1, extent),))
    found = [dim for dim, coordinate in enumerate(use.access.coordinates) if coordinate == full]
    if len(found) != 1 or buffer.type.shape[found[0]] != extent:
        return None
    return found[0]


def _padded_constant(builder: KernelBuilder, use: Use, inner: int) -> KernelBuffer | None:
    """Return the constant padded on the host, ``None`` where only the device can do it.

    Columns are padded too: a row has to be zero in every lane, and host copies write no lane that holds no element.
    """
    buffer = builder.buffers[use.buffer]
    rank = len(use.access.extents)
    rows, columns = _walked_host_dim(use, buffer, rank - 2), _walked_host_dim(use, buffer, rank - 1)
    lanes = buffer.device_format.elements_per_stick
    assert lanes is not None
    if buffer.constant is None or rows is None or columns is None or use.access.extents[-2] != inner:
        return None
    name = f"{buffer.name}.padded{rows}"
    known = builder.buffers.get(name)
    if known is not None:
        return known
    shape = tuple(
        -(-extent // lanes) * lanes if dim in (rows, columns) else extent
        for dim, extent in enumerate(buffer.type.shape)
    )
    padded = replace(
        buffer,
        name=name,
        type=TensorType(shape, buffer.type.dtype),
        constant=ConstantSource(buffer.constant.data, buffer.constant.shape),
    )
    builder.buffers[name] = padded
    return padded


def _zero(builder: KernelBuilder, like: KernelBuffer) -> KernelBuffer:
    """Return the 0-d constant 0 in a buffer's dtype."""
    name = f"zero.{like.type.dtype.value}"
    known = builder.buffers.get(name)
    if known is not None:
        return known
    data = ConstantData(array=np.zeros((), like.type.dtype.carrier))
    zero = KernelBuffer(
        name,
        TensorType((), like.type.dtype),
        BufferRole.CONSTANT,
        Derived(PASS_NAME, (like.origin,)),
        constant=ConstantSource(data, ()),
    )
    builder.buffers[name] = zero
    return zero
