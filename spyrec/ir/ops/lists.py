"""Views that are lists: a tensor cut along a dim, or taken apart; and the grids of several vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import ANY_FORMAT
from spyrec.ir.attributes import Dims, Sizes
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    PieceRule,
    Sample,
    catalogue,
    register,
    rule,
)
from spyrec.ir.operands import array, present, require_same_dtype, tensor
from spyrec.ir.ops.selection import SelectAttributes, SliceAttributes
from spyrec.ir.samples import boolean, f16, i64
from spyrec.ir.shapes import normalize_dim, show
from spyrec.ir.types import TensorType

Pieces = tuple[tuple[str, Attributes], ...]


@dataclass(frozen=True, slots=True)
class SplitAttributes:
    """``split_size``: the extent of all pieces but the last, or a list with that of each; ``dim`` that is cut."""

    split_size: Sizes
    dim: int = 0


@dataclass(frozen=True, slots=True)
class SplitSizesAttributes:
    """``split_sizes``: the extent of each piece; ``dim`` that is cut."""

    split_sizes: Sizes
    dim: int = 0


@dataclass(frozen=True, slots=True)
class ChunkAttributes:
    """``chunks``: how many pieces there are at most, of one extent but the last; ``dim`` that is cut."""

    chunks: int
    dim: int = 0


@dataclass(frozen=True, slots=True)
class UnbindAttributes:
    """``dim`` that disappears."""

    dim: int = 0


def _cut_dim(operand: TensorType, dim: int) -> int:
    if operand.rank == 0:
        raise OpError("SPY0206", "a tensor of rank 0 has no dim to cut", operand=0)
    return normalize_dim(dim, operand.rank)


def _even(operand: TensorType, size: int, dim: int, attribute: str) -> Pieces:
    """Return pieces of one extent, the last may be smaller; one piece of nothing where there is nothing."""
    extent = operand.shape[dim]
    if size < 0 or (size == 0 and extent):
        raise OpError("SPY0209", f"pieces of {size} elements do not make {extent}", attribute=attribute)
    starts = range(0, extent, size) if extent else range(1)
    return tuple(("slice", SliceAttributes(dim, start, min(start + size, extent))) for start in starts)


def _sized(operand: TensorType, sizes: Sequence[int], dim: int, attribute: str) -> Pieces:
    extent = operand.shape[dim]
    if any(size < 0 for size in sizes) or sum(sizes) != extent:
        message = f"pieces of {show(sizes)} elements do not make the {extent} of dim {dim}"
        raise OpError("SPY0209", message, attribute=attribute)
    ends = accumulate(sizes)
    return tuple(("slice", SliceAttributes(dim, end - size, end)) for size, end in zip(sizes, ends, strict=True))


def _split(operands: OperandTypes, attributes: SplitAttributes) -> Pieces:
    operand = tensor(operands)
    dim = _cut_dim(operand, attributes.dim)
    if len(attributes.split_size) == 1 and attributes.split_size[0] != operand.shape[dim]:
        return _even(operand, attributes.split_size[0], dim, "split_size")
    return _sized(operand, attributes.split_size, dim, "split_size")


def _split_sizes(operands: OperandTypes, attributes: SplitSizesAttributes) -> Pieces:
    operand = tensor(operands)
    return _sized(operand, attributes.split_sizes, _cut_dim(operand, attributes.dim), "split_sizes")


def _chunk(operands: OperandTypes, attributes: ChunkAttributes) -> Pieces:
    operand = tensor(operands)
    dim = _cut_dim(operand, attributes.dim)
    if attributes.chunks < 1:
        raise OpError("SPY0209", f"chunks {attributes.chunks} is below 1", attribute="chunks")
    size = -(-operand.shape[dim] // attributes.chunks)
    if size == 0:  # as many pieces of nothing as asked for
        return (("slice", SliceAttributes(dim, 0, 0)),) * attributes.chunks
    return _even(operand, size, dim, "chunks")


def _unbind(operands: OperandTypes, attributes: UnbindAttributes) -> Pieces:
    operand = tensor(operands)
    dim = _cut_dim(operand, attributes.dim)
    if operand.shape[dim] == 0:
        raise OpError(
            "SPY0222", f"{operand} has no elements along dim {dim}: there is nothing to take apart", operand=0
        )
    return tuple(("select", SelectAttributes(dim, index)) for index in range(operand.shape[dim]))


MOST_PIECES = 4096
"""Results of one node: more are a mistake, or an attack on whoever reads the graph."""


def _define(name: str, summary: str, attributes: type, pieces: PieceRule, samples: tuple[Sample, ...]) -> None:
    """Add a view that is a list: its types, axes and reference are those of its pieces."""

    def infer(operands: OperandTypes, values: Attributes) -> tuple[TensorType, ...]:
        found = pieces(operands, values)
        if len(found) > MOST_PIECES:
            raise OpError("SPY0209", f"{name} makes {len(found)} pieces, the most are {MOST_PIECES}")
        return tuple(catalogue()[op].infer(operands, piece)[0] for op, piece in found)

    def reference(operands: Sequence[Array | None], values: Attributes) -> tuple[Array, ...]:
        x = array(operands)
        found = pieces((TensorType(x.shape, f16().dtype),), values)
        return tuple(catalogue()[op].reference((x,), piece)[0] for op, piece in found)

    def axes(operands: OperandTypes, values: Attributes) -> AxisSources:
        op, piece = pieces(operands, values)[0]
        return catalogue()[op].axes(operands, piece)

    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.VIEW,
            operands=(OperandSpec("input"),),
            attributes=attributes,
            infer=infer,
            reference=reference,
            axes=axes,
            formats=ANY_FORMAT,
            result_count=None,
            pieces=pieces,
            samples=samples,
        )
    )


_define(
    "split",
    "a dim cut into pieces of one size, or of the sizes of a list",
    SplitAttributes,
    rule(SplitAttributes, _split),
    (
        ((f16(7, 70),), SplitAttributes((3,))),
        ((f16(3, 70),), SplitAttributes((64, 6), -1)),
        ((i64(4),), SplitAttributes((4,))),
        ((f16(0, 3),), SplitAttributes((2,))),
    ),
)
_define(
    "split_with_sizes",
    "a dim cut into pieces of the sizes of a list",
    SplitSizesAttributes,
    rule(SplitSizesAttributes, _split_sizes),
    (((f16(7, 3),), SplitSizesAttributes((2, 4, 1))), ((boolean(2, 3),), SplitSizesAttributes((0, 3), 1))),
)
_define(
    "chunk",
    "a dim cut into so many pieces",
    ChunkAttributes,
    rule(ChunkAttributes, _chunk),
    (
        ((f16(3, 130),), ChunkAttributes(2, -1)),
        ((i64(7),), ChunkAttributes(3)),
        (
            (
                f16(
                    0,
                ),
            ),
            ChunkAttributes(2),
        ),
    ),
)
_define(
    "unbind",
    "the tensors that stand one after the other along a dim",
    UnbindAttributes,
    rule(UnbindAttributes, _unbind),
    (((f16(3, 5),), UnbindAttributes()), ((i64(2, 3, 2),), UnbindAttributes(1))),
)

# --- meshgrid ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeshgridAttributes:
    """``indexing``: whether the first two vectors run along the first two dims, or change places."""

    indexing: Literal["ij", "xy"] = "ij"


def _grid_order(rank: int, attributes: MeshgridAttributes) -> Dims:
    """Return the dim that each vector runs along."""
    order = list(range(rank))
    if attributes.indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    return tuple(order)


def _infer_meshgrid(operands: OperandTypes, attributes: MeshgridAttributes) -> tuple[TensorType, ...]:
    dtype = require_same_dtype(operands)
    extents = [1] * len(operands)
    for (index, operand), dim in zip(present(operands), _grid_order(len(operands), attributes), strict=True):
        if operand.rank > 1:
            raise OpError("SPY0206", f"{operand} has rank {operand.rank}, meshgrid takes vectors", operand=index)
        extents[dim] = operand.element_count
    return (TensorType(tuple(extents), dtype),) * len(operands)


def _meshgrid(operands: Sequence[Array | None], attributes: MeshgridAttributes) -> tuple[Array, ...]:
    vectors = [np.atleast_1d(array(operands, index)) for index in range(len(operands))]
    return tuple(np.meshgrid(*vectors, indexing=attributes.indexing))


define_on_host(
    "meshgrid",
    "for each vector a tensor over all combinations, which runs along the vector's own dim",
    (OperandSpec("tensors", is_variadic=True),),
    HostRules(
        rule(MeshgridAttributes, _infer_meshgrid), rule(MeshgridAttributes, _meshgrid), result_count=None, moves=True
    ),
    (
        ((f16(3), f16(4)), MeshgridAttributes()),
        ((i64(3), i64(4), i64(2)), MeshgridAttributes("xy")),
        ((f16(),), MeshgridAttributes()),
    ),
    MeshgridAttributes,
)
