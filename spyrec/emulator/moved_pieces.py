"""The pieces of a data DSC as operands: each place of a piece is one, those of the source first.

Pieces are boxes of one tensor, each dense at its place.  What moves are cells: what a piece of the source and one of
the destination have in common.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spyrec.bundle.data_dsc import DataDsc, MovedTensor, Piece, PiecePlace
from spyrec.bundle.dsc_actions import Action
from spyrec.bundle.superdsc import Component, ComputeOp, LabelInfo, Operand, SuperDsc
from spyrec.dataclass import dataclass
from spyrec.emulator.geometry import Integers, OperandGeometry, outer_sum

PlacedPiece = tuple[Piece, PiecePlace]

Box = dict[str, tuple[int, int]]
"""Coordinates ``[first, past)`` by dim."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What operand ``target`` takes of operand ``source``: a box of the tensor; ``receiver``: the core that does it."""

    source: int
    target: int
    box: Box
    receiver: int


def pieces_of(data_dsc: DataDsc) -> list[PlacedPiece]:
    """Return piece and place of each operand."""
    return [*data_dsc.source.placed, *data_dsc.destination.placed]


def sides_of(data_dsc: DataDsc) -> list[MovedTensor]:
    """Return the tensor that each operand is a piece of."""
    return [side for side in (data_dsc.source, data_dsc.destination) for _ in side.placed]


def cells_of(data_dsc: DataDsc) -> list[Cell]:
    """Return all cells: target by target, the sources of each in the order of the file.

    The core that holds the target does it; where device memory holds it the core that holds the source, and between two
    places in device memory the first core of the data DSC.
    """
    sources, targets = list(data_dsc.source.placed), list(data_dsc.destination.placed)
    found: list[Cell] = []
    for target, (wanted, place) in enumerate(targets):
        for source, (piece, other) in enumerate(sources):
            box = wanted.shared(piece)
            if box is not None:
                receiver = next((core for core in (place.core, other.core) if core is not None), data_dsc.core_ids[0])
                found.append(Cell(source, len(sources) + target, box, receiver))
    return found


def geometry_of(side: MovedTensor, piece: Piece) -> OperandGeometry:
    """Return the addressing of a piece."""
    extents: dict[str, int] = {}
    strides: dict[str, int] = {}
    stride = 1
    for dim in side.layout_dim_order:
        own = piece.extents[dim]
        extents[dim] = -(-own // side.stick_size) if dim == side.stick_dim else own
        strides[dim] = stride
        stride *= extents[dim]
    return OperandGeometry(extents, strides, side.stick_dim, side.stick_size, side.word_length)


def cell_offsets(geometry: OperandGeometry, piece: Piece, box: Box) -> Integers:
    """Return the bytes from the start of a piece to each element of a box inside of it."""
    parts = [
        geometry.offsets(dim, np.arange(first - piece.first[dim], past - piece.first[dim]))
        for dim, (first, past) in box.items()
    ]
    return outer_sum(parts)


def superdsc_of(action: Action, file: SuperDsc) -> SuperDsc:
    """Return what an action executes as a SuperDSC: the part of a DSC, or the places of a data DSC as operands.

    Of the latter each has one start, whatever the number of cores: it is the place's, in its own core's LX.
    """
    if action.part is not None:
        return replace(action.part.superdsc, debug_handle=file.debug_handle)
    data_dsc = action.data_dsc
    assert data_dsc is not None
    sides = sides_of(data_dsc)
    operands = tuple(_operand(side, place) for side, (_, place) in zip(sides, pieces_of(data_dsc), strict=True))
    count = len(list(data_dsc.source.placed))
    labels = {
        name: LabelInfo(side.layout_dim_order, (side.stick_dim,), (side.stick_size,))
        for name, side in (("INPUT", data_dsc.source), ("OUTPUT", data_dsc.destination))
    }
    named = tuple(replace(item, label="INPUT" if t < count else "OUTPUT") for t, item in enumerate(operands))
    ones = dict.fromkeys(data_dsc.source.extents, 1)
    return SuperDsc(
        index=file.index,
        op_func_name=data_dsc.op,
        core_ids=data_dsc.core_ids[:1],
        iteration=data_dsc.source.extents,
        work_slices=ones,
        core_extent=data_dsc.source.extents,
        core_work_slices=(dict.fromkeys(ones, 0),),
        labels=labels,
        operands=named,
        constants=(),
        coordinate_masking={},
        masking_constant_id=-1,
        compute=ComputeOp(
            "", data_dsc.op, data_dsc.source.data_format, tuple(range(count)), tuple(range(count, len(named)))
        ),
        dialect=file.dialect,
        debug_handle=file.debug_handle,
    )


def _operand(side: MovedTensor, place: PiecePlace) -> Operand:
    return Operand(
        label="",
        component=Component.HBM if place.core is None else Component.LX,
        layout_dim_order=side.layout_dim_order,
        scales=dict.fromkeys(side.layout_dim_order, 1),
        max_dim_sizes=dict.fromkeys(side.layout_dim_order, -1),
        start_addresses=(place.start_bytes,),
        is_symbolic=False,
        back_gap={},
        data_format=side.data_format,
        word_length=side.word_length,
    )
