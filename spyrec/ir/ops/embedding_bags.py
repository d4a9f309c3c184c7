"""``embedding_bag``: rows of a table, folded bag by bag.  The host computes it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.index_operands import indices_below, require_index
from spyrec.ir.opdef import Array, OperandSpec, OperandTypes, OpError, rule
from spyrec.ir.operands import Floats, array, common_float, floats, integers, require_rank, tensor, unsupported
from spyrec.ir.samples import f16, f32, i64
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class BagAttributes:
    """As in torch.nn.functional; ``padding_idx`` names a row that no bag counts, ``include_last_offset`` says that the
    last offset is the end of the last bag.  ``scale_grad_by_freq`` and ``sparse`` are of gradients alone.
    """

    max_norm: float | None = None
    norm_type: float = 2.0
    scale_grad_by_freq: bool = False
    mode: Literal["sum", "mean", "max"] = "mean"
    sparse: bool = False
    include_last_offset: bool = False
    padding_idx: int | None = None


def _infer(operands: OperandTypes, attributes: BagAttributes) -> tuple[TensorType, ...]:
    found, table, offsets, scales = require_index(operands, 0), tensor(operands, 1), operands[2], operands[3]
    require_rank(found, (1, 2), 0)
    require_rank(table, (2,), 1)
    common_float((None, table, None, scales))
    if attributes.max_norm is not None:
        raise unsupported("max_norm", attributes.max_norm, "scale the rows of the weight beforehand")
    rows = table.shape[0]
    if attributes.padding_idx is not None and not -rows <= attributes.padding_idx < rows:
        message = f"padding_idx {attributes.padding_idx} is no row of the weight {table}"
        raise OpError("SPY0209", message, attribute="padding_idx")
    if scales is not None and (scales.shape != found.shape or attributes.mode != "sum"):
        message = f'per_sample_weights {scales} scale each of the indices {found}, for mode "sum" alone'
        raise OpError("SPY0207", message, operand=3)
    if (offsets is None) != (found.rank == 2):
        message = (
            "indices of rank 1 need offsets" if offsets is None else "indices of rank 2 are bags, and have no offsets"
        )
        raise OpError("SPY0219", message, operand=2)
    bags = found.shape[0]
    if offsets is not None:
        require_rank(require_index(operands, 2), (1,), 2)
        bags = offsets.shape[0] - attributes.include_last_offset
        if bags < 0:
            raise OpError("SPY0207", f"the offsets {offsets} lack the end of the last bag", operand=2)
    return (TensorType((bags, table.shape[1]), table.dtype),)


def _bags(operands: Sequence[Array | None], attributes: BagAttributes) -> list[tuple[int, int]]:
    """Return where each bag begins and ends among the flattened indices.  Errors: SPY0231."""
    shape, count = array(operands).shape, array(operands).size
    if operands[2] is None:
        return [(row * shape[1], (row + 1) * shape[1]) for row in range(shape[0])]
    edges = [int(item) for item in integers(operands, 2)]
    edges = edges if attributes.include_last_offset else [*edges, count]
    for one, other in pairwise(edges):
        if not 0 <= one <= other <= count:
            raise OpError("SPY0231", f"a bag runs from {one} to {other} of {count} indices", operand=2)
    return list(pairwise(edges))


def _fold(rows: Floats, mode: str) -> Floats:
    """Return the fold of a bag's rows, 0 of none."""
    if not rows.shape[0]:
        return np.zeros(rows.shape[1:])
    if mode == "max":
        return np.asarray(np.max(rows, axis=0), np.float64)
    total = np.asarray(np.sum(rows, axis=0), np.float64)
    return total / rows.shape[0] if mode == "mean" else total


def _embedding_bag(operands: Sequence[Array | None], attributes: BagAttributes) -> tuple[Array, ...]:
    weight = floats(operands, 1)
    extent = weight.shape[0]
    chosen = indices_below(operands, 0, extent, 0).reshape(-1)
    rows = weight[chosen]
    if operands[3] is not None:
        rows = rows * floats(operands, 3).reshape(-1, 1)
    padding = None if attributes.padding_idx is None else attributes.padding_idx % extent
    counts = np.ones(chosen.size, np.bool_) if padding is None else chosen != padding
    parts = [_fold(rows[i:j][counts[i:j]], attributes.mode) for i, j in _bags(operands, attributes)]
    return (np.stack(parts) if parts else np.zeros((0, weight.shape[1])),)


define_on_host(
    "embedding_bag",
    "sums, means or maxima of the rows that each bag of indices names",
    (
        OperandSpec("input"),
        OperandSpec("weight"),
        OperandSpec("offsets", is_optional=True),
        OperandSpec("per_sample_weights", is_optional=True),
    ),
    HostRules(rule(BagAttributes, _infer), rule(BagAttributes, _embedding_bag)),
    (
        ((i64(2, 3), f16(100, 4), None, None), BagAttributes()),
        ((i64(2, 3), f32(100, 4), None, f32(2, 3)), BagAttributes(mode="sum")),
        ((i64(0, 3), f32(100, 4), None, None), BagAttributes(mode="max", padding_idx=-1)),
    ),
    BagAttributes,
)
