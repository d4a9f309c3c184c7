"""Whether any or all elements are true, and how many are not zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import Dims
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.opdef import (
    Array,
    AxisSources,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    Reference,
    Sample,
    register,
    rule,
)
from spyrec.ir.operands import array, tensor
from spyrec.ir.ops.reduction import FoldAttributes, kept_axes, kept_shape
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import Shape, normalize_dims
from spyrec.ir.types import TensorType


def judged_dims(rank: int, attributes: FoldAttributes) -> Shape:
    """Return the dims that ``any`` and ``all`` fold: all without ``dim``, and none of an empty list, as in PyTorch.

    Errors: SPY0204, SPY0205.
    """
    return () if attributes.dim is not None and not attributes.dim else normalize_dims(attributes.dim, rank)


def _infer(operands: OperandTypes, attributes: FoldAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    shape = kept_shape(operand.shape, judged_dims(operand.rank, attributes), attributes.keepdim)
    # PyTorch answers for uint8, its bools of old, in uint8
    return (TensorType(shape, DType.UINT8 if operand.dtype is DType.UINT8 else DType.BOOL),)


def _axes(operands: OperandTypes, attributes: FoldAttributes) -> AxisSources:
    rank = tensor(operands).rank
    return kept_axes(rank, judged_dims(rank, attributes), attributes.keepdim)


def _any(operands: Sequence[Array | None], attributes: FoldAttributes) -> tuple[Array, ...]:
    x = array(operands) != 0
    dims = judged_dims(x.ndim, attributes)
    return (np.logical_or.reduce(x, axis=dims, keepdims=attributes.keepdim),)


def _all(operands: Sequence[Array | None], attributes: FoldAttributes) -> tuple[Array, ...]:
    x = array(operands) != 0
    dims = judged_dims(x.ndim, attributes)
    return (np.logical_and.reduce(x, axis=dims, keepdims=attributes.keepdim),)


_SAMPLES: tuple[Sample, ...] = (
    ((boolean(3, 5),), FoldAttributes((1,))),
    ((f16(2, 3, 70),), FoldAttributes((0, -1), keepdim=True)),
    ((f16(),), FoldAttributes()),
    ((f32(4),), FoldAttributes(())),
    ((i64(2, 3),), FoldAttributes()),
    ((boolean(0, 3),), FoldAttributes((0,))),
)


def _define(name: str, summary: str, reference: Reference) -> None:
    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.COMPOSITE,
            operands=(OperandSpec("input"),),
            attributes=FoldAttributes,
            infer=rule(FoldAttributes, _infer),
            reference=reference,
            axes=rule(FoldAttributes, _axes),
            formats=HALF,
            samples=_SAMPLES,
        )
    )


_define("any", "whether any element is true or not zero", rule(FoldAttributes, _any))
_define("all", "whether all elements are true or not zero", rule(FoldAttributes, _all))


@dataclass(frozen=True, slots=True)
class CountAttributes:
    """``dim``: the dims to count along, none given means all."""

    dim: Dims | None = None


def _infer_count(operands: OperandTypes, attributes: CountAttributes) -> tuple[TensorType, ...]:
    shape = tensor(operands).shape
    return (TensorType(kept_shape(shape, normalize_dims(attributes.dim, len(shape)), keepdim=False), DType.INT64),)


def _count(operands: Sequence[Array | None], attributes: CountAttributes) -> tuple[Array, ...]:
    x = array(operands)
    return (np.asarray(np.sum(x != 0, axis=normalize_dims(attributes.dim, x.ndim), dtype=np.int64)),)


define_on_host(
    "count_nonzero",
    "how many elements are true or not zero",
    (OperandSpec("input"),),
    HostRules(rule(CountAttributes, _infer_count), rule(CountAttributes, _count)),
    (
        ((f16(3, 5),), CountAttributes()),
        ((boolean(2, 3, 4),), CountAttributes((-1, 0))),
        ((i64(0, 3),), CountAttributes((0,))),
        ((f32(),), CountAttributes()),
    ),
    CountAttributes,
)


@dataclass(frozen=True, slots=True)
class PlacesAttributes:
    """``size``: how many places there are; ``fill_value`` stands where there are fewer."""

    size: int
    fill_value: int = -1


def _infer_places(operands: OperandTypes, attributes: PlacesAttributes) -> tuple[TensorType, ...]:
    if attributes.size < 0:
        raise OpError("SPY0209", f"size is {attributes.size}, and no count", attribute="size")
    return (TensorType((attributes.size, tensor(operands).rank), DType.INT64),)


def _places(operands: Sequence[Array | None], attributes: PlacesAttributes) -> tuple[Array, ...]:
    x = array(operands)
    result = np.full((attributes.size, x.ndim), attributes.fill_value, np.int64)
    if x.ndim:
        found = np.argwhere(x != 0)[: attributes.size]
        result[: len(found)] = found
    return (result,)


define_on_host(
    "nonzero_static",
    "where the first elements stand that are true or not zero, in order, a row of indices each",
    (OperandSpec("input"),),
    HostRules(rule(PlacesAttributes, _infer_places), rule(PlacesAttributes, _places)),
    (
        ((f16(3, 5),), PlacesAttributes(6)),
        ((boolean(2, 3, 4),), PlacesAttributes(30, -7)),
        ((i64(0, 3),), PlacesAttributes(2)),
        ((f32(),), PlacesAttributes(1)),
    ),
    PlacesAttributes,
)
