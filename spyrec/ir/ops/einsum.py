"""``einsum``: sums of products of tensors whose dims an equation names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_letters

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF_OR_SINGLE
from spyrec.hardware.dtypes import DType
from spyrec.ir.equation import Equation, parse
from spyrec.ir.opdef import Array, AxisSources, OpDef, OperandSpec, OperandTypes, OpKind, register, rule
from spyrec.ir.operands import present, tensor
from spyrec.ir.ops.contraction import MAX_SINGLE_PRODUCTS, product_dtype
from spyrec.ir.ops.reduction import total_dtype
from spyrec.ir.samples import f16, f32, i64
from spyrec.ir.shapes import Shape
from spyrec.ir.types import TensorType

_MAX_RANK = 6
"""Dims of an operand or a result that the device form permutes."""


@dataclass(frozen=True, slots=True)
class EinsumAttributes:
    """``equation``: ``bij,bjk->bik``; letters name dims, an ellipsis dims that broadcast; without an arrow the result
    has the letters that occur once, sorted.
    """

    equation: str


def equation_of(operands: OperandTypes, attributes: EinsumAttributes) -> Equation:
    """Return the equation of operands that are all present.  Errors: SPY0201, SPY0209."""
    return parse(attributes.equation, [operand.shape for _, operand in present(operands)])


def _is_sum(equation: Equation, shapes: Sequence[Shape]) -> bool:
    """Whether dims of one operand alone are added up: whole numbers then are of int64, as those of a sum (PyTorch).

    Operands are multiplied from left to right, a dim is added up where it is named last, and one of extent 1 repeats.
    """
    first, *others = [
        {label for label, extent in zip(labels, shape) if extent != 1}
        for labels, shape in zip(equation.operands, shapes)
    ]
    if not others:
        return any(label not in equation.result for label in equation.operands[0])
    for number, labels in enumerate(others, 2):
        kept = {*equation.result, *(label for later in equation.operands[number:] for label in later)}
        if (first ^ labels) - kept:
            return True
        first = (first | labels) & kept
    return False


def _infer(operands: OperandTypes, attributes: EinsumAttributes) -> tuple[TensorType, ...]:
    equation, dtype = equation_of(operands, attributes), product_dtype(operands, takes_bools=True)
    if _is_sum(equation, [operand.shape for _, operand in present(operands)]):
        dtype = total_dtype(TensorType((), dtype), None)
    return (TensorType(equation.shape, dtype),)


def _einsum(operands: Sequence[Array | None], attributes: EinsumAttributes) -> tuple[Array, ...]:
    arrays = [item for item in operands if item is not None]
    kind = arrays[0].dtype
    given = [item.astype(np.float64 if kind.kind == "f" else np.int64) for item in arrays]
    equation = parse(attributes.equation, [item.shape for item in arrays])
    letters = dict(zip(equation.extents, ascii_letters))
    terms = ["".join(letters[label] for label in labels) for labels in (*equation.operands, equation.result)]
    found = np.einsum(f"{','.join(terms[:-1])}->{terms[-1]}", *given, optimize=len(given) > 2)
    return (
        np.asarray(found) if _is_sum(equation, [item.shape for item in arrays]) else np.asarray(found).astype(kind),
    )


def _axes(operands: OperandTypes, attributes: EinsumAttributes) -> AxisSources:
    equation = equation_of(operands, attributes)
    return tuple(
        tuple(
            (number, labels.index(label))
            for number, labels in enumerate(equation.operands)
            if label in labels and tensor(operands, number).shape[labels.index(label)] == equation.extents[label]
        )
        for label in equation.result
    )


def _host_when(operands: OperandTypes, attributes: EinsumAttributes) -> str | None:
    """A dim that one operand alone has and the result lacks would be summed, and rounded, before the product."""
    equation = equation_of(operands, attributes)
    terms = equation.operands
    if len(terms) > 2:
        return f"the device multiplies two tensors at a time, not {len(terms)}"
    if any(len(set(labels)) != len(labels) for labels in terms):
        return "the device has no diagonals"
    if any(len(labels) > _MAX_RANK for labels in (*terms, equation.result)):
        return f"a tensor has more than {_MAX_RANK} dims"
    if len(terms) == 1:
        return None
    for index, labels in enumerate(terms):
        shape = tensor(operands, index).shape
        if any(equation.extents[label] != extent for label, extent in zip(labels, shape)):
            return "the device form does not broadcast"
        if any(label not in terms[1 - index] and label not in equation.result for label in labels):
            return "a dim of one operand alone is summed"
    if tensor(operands).dtype is DType.FLOAT32 and math.prod(equation.extents.values()) > MAX_SINGLE_PRODUCTS:
        return "its products of float32 have no room on the device"
    return None


register(
    OpDef(
        name="einsum",
        summary="sums of products, the dims named by an equation",
        kind=OpKind.COMPOSITE,
        operands=(OperandSpec("operands", is_variadic=True),),
        attributes=EinsumAttributes,
        infer=rule(EinsumAttributes, _infer),
        reference=rule(EinsumAttributes, _einsum),
        axes=rule(EinsumAttributes, _axes),
        formats=HALF_OR_SINGLE,
        host_when=rule(EinsumAttributes, _host_when),
        samples=(
            ((f16(2, 3, 5), f16(2, 5, 4)), EinsumAttributes("bij,bjk->bik")),
            ((f16(3, 5),), EinsumAttributes("ij->j")),
            ((f32(3, 5), f32(4, 5)), EinsumAttributes("id,jd->ij")),
            ((i64(3, 3),), EinsumAttributes("ii")),
            ((f16(2, 3, 5), f16(5)), EinsumAttributes("...i,i")),
            ((f16(3), f16(4), f16(5)), EinsumAttributes("i, j, k -> kij")),
        ),
    )
)
