"""Copies, and cat as copies into windows of one buffer."""

from __future__ import annotations

from spyrec.ir.access import Access, Coordinate
from spyrec.ir.graph import Node
from spyrec.ir.kernel import KernelBuffer, Use
from spyrec.ir.ops.movement import JoinAttributes
from spyrec.ir.shapes import normalize_dim
from spyrec.passes.kernel_builder import DimNames, KernelBuilder, copy_between, copy_into


def form(builder: KernelBuilder, node: Node) -> None:
    """One copy, or one per piece of a cat."""
    result = builder.result(node)
    if node.op != "cat":
        (operand,) = node.inputs
        reason = f'"{node.output}" is a copy by the graph'
        copy_into(builder, builder.operand(operand), result, reason=reason, dims=builder.dims_of(operand))
        return
    attributes = node.attributes
    assert isinstance(attributes, JoinAttributes)
    dim = normalize_dim(attributes.dim, result.type.rank)
    start = 0
    reason = f'"{node.output}" joins {len(node.inputs)} tensors in one memory'
    for operand in node.inputs:
        use = builder.operand(operand)
        names = list(builder.graph.values[node.output].dims)
        names[dim] = None  # a tile of the whole is none of every piece
        copy_piece(builder, use, result, (dim, start), reason, tuple(names))
        start += use.access.extents[dim]


def copy_piece(
    builder: KernelBuilder, use: Use, target: KernelBuffer, place: tuple[int, int], reason: str, dims: DimNames = ()
) -> None:
    """Copy what ``use`` reads into the window of ``target`` that begins at ``place`` = (dim, start)."""
    dim, start = place
    coordinates = list(Access.identity(use.access.extents).coordinates)
    coordinates[dim] = Coordinate(start, coordinates[dim].terms)
    window = Access(use.access.extents, tuple(coordinates))
    copy_between(builder, use, Use(target.name, window), target.origin, reason, dims)
