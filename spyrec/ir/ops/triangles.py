"""Parts of matrices below and above a diagonal, and rows that mark a class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF
from spyrec.hardware.dtypes import DType
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
    Reference,
    register,
    rule,
)
from spyrec.ir.operands import array, integers, tensor, unsupported
from spyrec.ir.ops.index_writes import axes_of_input
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import Shape, broadcast_axes, show
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class TriangleAttributes:
    """``diagonal``: how many columns right of the main diagonal the one lies that belongs to the part."""

    diagonal: int = 0


def is_kept(op: str, shape: Shape, attributes: TriangleAttributes) -> npt.NDArray[np.bool_]:
    """Return which elements of a matrix ``tril`` or ``triu`` keeps, for a tensor of this shape."""
    rows, columns = shape[-2:]
    if not rows or not columns:
        return np.zeros((rows, columns), np.bool_)
    diagonal = min(max(attributes.diagonal, -rows), columns)  # beyond either corner all are alike
    column, limit = np.arange(columns), np.arange(rows)[:, None] + diagonal
    return column <= limit if op == "tril" else column >= limit


def _infer(operands: OperandTypes, _: TriangleAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    if operand.rank < 2:
        raise OpError("SPY0206", f"{operand} has rank {operand.rank}, a triangle is of matrices", operand=0)
    return (operand,)


def _axes(operands: OperandTypes, _: TriangleAttributes) -> AxisSources:
    return broadcast_axes(operands, tensor(operands).shape)


def _reference(op: str) -> Reference:
    def reference(operands: Sequence[Array | None], attributes: TriangleAttributes) -> tuple[Array, ...]:
        x = array(operands)
        return (np.where(is_kept(op, x.shape, attributes), x, np.zeros((), x.dtype)),)

    return rule(TriangleAttributes, reference)


for _name, _where in (("tril", "below and on"), ("triu", "above and on")):
    register(
        OpDef(
            name=_name,
            summary=f"matrices with zeros but {_where} a diagonal",
            kind=OpKind.COMPOSITE,
            operands=(OperandSpec("input"),),
            attributes=TriangleAttributes,
            infer=rule(TriangleAttributes, _infer),
            reference=_reference(_name),
            axes=rule(TriangleAttributes, _axes),
            formats=HALF,
            number_attributes=("diagonal",),
            samples=(
                ((f16(3, 70),), TriangleAttributes()),
                ((f16(2, 3, 4),), TriangleAttributes(-1)),
                ((f32(3, 3),), TriangleAttributes(1)),
                ((i64(3, 2),), TriangleAttributes()),
                ((boolean(4, 4),), TriangleAttributes(1)),
                ((f16(0, 3),), TriangleAttributes()),
            ),
        )
    )


@dataclass(frozen=True, slots=True)
class OneHotAttributes:
    """``num_classes``: how many there are; a number outside 0 to ``num_classes`` - 1 is refused (SPY0231)."""

    num_classes: int = -1


MOST_CLASSES = 2**26


def _infer_one_hot(operands: OperandTypes, attributes: OneHotAttributes) -> tuple[TensorType, ...]:
    operand = tensor(operands)
    if operand.dtype is not DType.INT64:
        message = f"classes are of int64, not {operand.dtype.value}"
        raise OpError("SPY0202", message, hint="convert it first: to(int64)", operand=0)
    if attributes.num_classes == -1:
        hint = "give the number of classes: that of the largest element is known when the graph runs"
        raise unsupported("num_classes", -1, hint)
    if not 0 < attributes.num_classes <= MOST_CLASSES:
        fact = f"num_classes {attributes.num_classes} is not within 1 and {MOST_CLASSES}"
        raise OpError("SPY0209", fact, attribute="num_classes")
    return (TensorType((*operand.shape, attributes.num_classes), DType.INT64),)


def _one_hot(operands: Sequence[Array | None], attributes: OneHotAttributes) -> tuple[Array, ...]:
    """Return the rows.  Errors: SPY0231, as PyTorch's: a row of zeros would be no class."""
    classes = integers(operands)
    wrong = (classes < 0) | (classes >= attributes.num_classes)
    if wrong.any():
        where = np.unravel_index(int(np.argmax(wrong)), classes.shape) if classes.ndim else ()
        at = f" at {show([int(item) for item in where])}" if classes.ndim else ""
        message = f"class {int(classes[where])}{at} is none of {attributes.num_classes}"
        raise OpError("SPY0231", message, hint=f"classes run from 0 to {attributes.num_classes - 1}", operand=0)
    return ((classes[..., None] == np.arange(attributes.num_classes)).astype(np.int64),)


def _one_hot_axes(operands: OperandTypes, attributes: Attributes) -> AxisSources:
    return (*axes_of_input(operands, attributes), ())


define_on_host(
    "one_hot",
    "for each number a row of zeros with a one at its place",
    (OperandSpec("input"),),
    HostRules(rule(OneHotAttributes, _infer_one_hot), rule(OneHotAttributes, _one_hot), _one_hot_axes),
    (((i64(2, 3),), OneHotAttributes(100)), ((i64(),), OneHotAttributes(100)), ((i64(0),), OneHotAttributes(3))),
    OneHotAttributes,
)
