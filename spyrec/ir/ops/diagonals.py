"""Elements of a diagonal of two dims, picked by the host: no dim of the device runs along two dims of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.opdef import Array, AxisSources, OperandSpec, OperandTypes, OpError, rule
from spyrec.ir.operands import array, tensor
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import normalize_dim
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class DiagonalAttributes:
    """``offset`` columns right of the main diagonal, of the rows ``dim1`` and the columns ``dim2``."""

    offset: int = 0
    dim1: int = 0
    dim2: int = 1


def _dims(rank: int, attributes: DiagonalAttributes) -> tuple[int, int]:
    rows, columns = normalize_dim(attributes.dim1, rank, "dim1"), normalize_dim(attributes.dim2, rank, "dim2")
    if rows == columns:
        raise OpError("SPY0205", f"dim1 and dim2 are both dim {rows}", attribute="dim2")
    return rows, columns


def _infer(operands: OperandTypes, attributes: DiagonalAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    rows, columns = _dims(operand.rank, attributes)
    right, below = max(attributes.offset, 0), max(-attributes.offset, 0)
    length = max(min(operand.shape[rows] - below, operand.shape[columns] - right), 0)
    rest = [extent for axis, extent in enumerate(operand.shape) if axis not in (rows, columns)]
    return (TensorType((*rest, length), operand.dtype),)


def _axes(operands: OperandTypes, attributes: DiagonalAttributes) -> AxisSources:
    taken = _dims(tensor(operands).rank, attributes)
    rest = [axis for axis in range(tensor(operands).rank) if axis not in taken]
    return (*(((0, axis),) for axis in rest), ())


def _diagonal(operands: Sequence[Array | None], attributes: DiagonalAttributes) -> tuple[Array, ...]:
    return (np.diagonal(array(operands), attributes.offset, attributes.dim1, attributes.dim2).copy(),)


define_on_host(
    "diagonal",
    "the elements of one diagonal of two dims, which becomes the last dim",
    (OperandSpec("input"),),
    HostRules(rule(DiagonalAttributes, _infer), rule(DiagonalAttributes, _diagonal), rule(DiagonalAttributes, _axes)),
    (
        ((f16(3, 5),), DiagonalAttributes()),
        ((f32(2, 4, 3),), DiagonalAttributes(1, -2, -1)),
        ((i64(4, 2, 4),), DiagonalAttributes(-2, 0, 2)),
        ((boolean(3, 3),), DiagonalAttributes(5)),
        ((f16(0, 3),), DiagonalAttributes()),
    ),
    DiagonalAttributes,
)
