"""Pointwise ops of two and three tensors.  Device names: torch-spyre's op table.

Dtypes: floats of one dtype, integers and bools, with the result that PyTorch gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import HALF
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES, NoAttributes, Real
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    DeviceOp,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    Reference,
    Roundings,
    register,
    rule,
)
from spyrec.ir.operands import alike, array, common_dtype, floats, present, require_alpha, scaled, tensor
from spyrec.ir.ops.division import floor_quotient, whole_quotient
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import broadcast, broadcast_axes
from spyrec.ir.types import TensorType

_PAIR = (OperandSpec("input", accepts_number=True), OperandSpec("other", accepts_number=True))


def _shape(operands: OperandTypes) -> tuple[int, ...]:
    return broadcast([(index, operand.shape) for index, operand in present(operands)])


def _axes(operands: OperandTypes, _: Attributes) -> AxisSources:
    return broadcast_axes(operands, _shape(operands))


def _infer_selection(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    return (TensorType(_shape(operands), common_dtype(operands)),)


def _infer_comparison(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    common_dtype(operands)
    return (TensorType(_shape(operands), DType.BOOL),)


def _arrays(operands: Sequence[Array | None]) -> tuple[Array, Array]:
    """Return both arrays, bools as numbers unless both are bools."""
    left, right = array(operands), array(operands, 1)
    if left.dtype == np.bool_ and right.dtype == np.bool_:
        return left, right
    left, right = alike(operands, 0, 1)
    return left, right


_FLOAT_SAMPLES = (
    ((f16(3, 5), f16(3, 5)), NO_ATTRIBUTES),
    ((f16(2, 1, 70), f16(4, 1)), NO_ATTRIBUTES),
    ((f16(3), f16()), NO_ATTRIBUTES),
)
_BOOL_SAMPLES = (((boolean(3, 5), boolean(5)), NO_ATTRIBUTES), ((boolean(3, 5), f16(5)), NO_ATTRIBUTES))
_SINGLE_SAMPLES = (((f32(3, 5), f32(5)), NO_ATTRIBUTES),)


@dataclass(frozen=True, slots=True)
class AlphaAttributes:
    """``alpha`` scales the second operand before it is added or subtracted; a float scales floats alone."""

    alpha: Real = 1


def complete_alpha(operands: OperandTypes, attributes: AlphaAttributes) -> AlphaAttributes:
    """Return the factor of floats as a float, however it is written; 1 is the default of all, which no text says."""
    if not common_dtype(operands).is_float:
        return attributes
    return AlphaAttributes() if attributes.alpha == 1 else AlphaAttributes(float(attributes.alpha))


def _infer_scaled(operands: OperandTypes, attributes: AlphaAttributes) -> tuple[TensorType, ...]:
    result = TensorType(_shape(operands), common_dtype(operands))
    require_alpha(result.dtype, attributes.alpha)
    return (result,)


def _bools_on_host(operands: OperandTypes, _: Attributes) -> str | None:
    """A sum of bools is whether one of them is true, as in PyTorch; the device would make 2 of two that are."""
    is_bool = common_dtype(operands) is DType.BOOL
    return "the device's sum of two bools is a number" if is_bool else None


def _sum_of(sign: float) -> Reference:
    def reference(operands: Sequence[Array | None], attributes: AlphaAttributes) -> tuple[Array, ...]:
        left, other = _arrays(operands)
        if left.dtype == np.bool_:
            return (np.logical_or(left, np.logical_and(other, attributes.alpha != 0)),)
        total = np.add if sign > 0 else np.subtract
        return (total(left, scaled(attributes.alpha, other)),)

    return rule(AlphaAttributes, reference)


NO_BOOLS = (
    OperandSpec("input", accepts_number=True, no_bool="logical_not and bitwise_xor"),
    OperandSpec("other", accepts_number=True, no_bool="logical_not and bitwise_xor"),
)
"""Two tensors, or a tensor and a number, none of them bool: PyTorch subtracts none."""

for _name, _summary, _sign, _operands in (
    ("add", "input + alpha other; of bools: either", 1.0, _PAIR),
    ("sub", "input - alpha other", -1.0, NO_BOOLS),
):
    register(
        OpDef(
            name=_name,
            summary=_summary,
            kind=OpKind.POINTWISE,
            operands=_operands,
            attributes=AlphaAttributes,
            infer=rule(AlphaAttributes, _infer_scaled),
            reference=_sum_of(_sign),
            axes=_axes,
            complete=rule(AlphaAttributes, complete_alpha),
            device=DeviceOp(_name),
            host_when=_bools_on_host,
            roundings=Roundings(1.0),
            is_promoted=True,
            samples=(
                *((types, AlphaAttributes()) for types, _ in (*_FLOAT_SAMPLES, *_SINGLE_SAMPLES)),
                ((f16(3, 5), f16(5)), AlphaAttributes(0.5)),
                *((((boolean(3, 5), boolean(5)), AlphaAttributes()),) if _name == "add" else ()),
            ),
        )
    )


def _multiply(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    left, right = _arrays(operands)
    return (np.multiply(left, right),)


def _maximum(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    left, right = _arrays(operands)
    return (np.maximum(left, right),)


def _minimum(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    left, right = _arrays(operands)
    return (np.minimum(left, right),)


for _name, _summary, _reference in (
    ("mul", "product; of bools: both", _multiply),
    ("maximum", "the larger element", _maximum),
    ("minimum", "the smaller element", _minimum),
):
    register(
        OpDef(
            name=_name,
            summary=_summary,
            kind=OpKind.POINTWISE,
            operands=_PAIR,
            attributes=NoAttributes,
            infer=_infer_selection,
            reference=_reference,
            axes=_axes,
            device=DeviceOp(_name),
            is_promoted=True,
            samples=(*_FLOAT_SAMPLES, *_BOOL_SAMPLES, *_SINGLE_SAMPLES),
        )
    )


@dataclass(frozen=True, slots=True)
class DivAttributes:
    """``rounding_mode`` is PyTorch's: the quotient rounded down, or towards zero."""

    rounding_mode: Literal["trunc", "floor"] | None = None


def _infer_div(operands: OperandTypes, attributes: DivAttributes) -> tuple[TensorType, ...]:
    dtype = common_dtype(operands)
    if not dtype.is_float and attributes.rounding_mode is None:
        dtype = DType.FLOAT32
    if dtype is DType.BOOL:
        raise OpError("SPY0202", "two bool operands have no whole quotient", hint="convert one: to(int64)", operand=0)
    return (TensorType(_shape(operands), dtype),)


def _divide(operands: Sequence[Array | None], attributes: DivAttributes) -> tuple[Array, ...]:
    match attributes.rounding_mode:
        case "floor":
            return (floor_quotient(*alike(operands, 0, 1)),)
        case "trunc":
            return (whole_quotient(*alike(operands, 0, 1)),)
        case None:
            return (floats(operands) / floats(operands, 1),)


def _whole_quotients(_: OperandTypes, attributes: DivAttributes) -> str | None:
    """A quotient that is rounded before it is made whole may be the next whole number already."""
    return None if attributes.rounding_mode is None else "the device rounds a quotient before it could be made whole"


register(
    OpDef(
        name="div",
        summary="quotient",
        kind=OpKind.POINTWISE,
        operands=_PAIR,
        attributes=DivAttributes,
        infer=rule(DivAttributes, _infer_div),
        reference=rule(DivAttributes, _divide),
        axes=_axes,
        device=DeviceOp("realdiv"),
        host_when=rule(DivAttributes, _whole_quotients),
        exact_with="rounding_mode",
        is_promoted=True,
        samples=(
            *((types, DivAttributes()) for types, _ in (*_FLOAT_SAMPLES, *_SINGLE_SAMPLES)),
            ((f16(3, 5), f16(5)), DivAttributes("floor")),
            ((i64(3, 5), i64(5)), DivAttributes("trunc")),
        ),
    )
)


def _comparison(name: str, summary: str, op_func: str, function: Callable[[Array, Array], Array]) -> None:
    def reference(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
        return (function(*alike(operands, 0, 1)),)

    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.POINTWISE,
            operands=_PAIR,
            attributes=NoAttributes,
            infer=_infer_comparison,
            reference=reference,
            axes=_axes,
            device=DeviceOp(op_func),
            formats=HALF,
            is_promoted=True,
            samples=(*_FLOAT_SAMPLES, *_BOOL_SAMPLES),
        )
    )


_comparison("eq", "input = other, as bool", "equal", np.equal)
_comparison("ne", "input and other differ, as bool", "notequal", np.not_equal)
_comparison("lt", "input < other, as bool", "lesserthan", np.less)
_comparison("le", "input <= other, as bool", "lesserequal", np.less_equal)
_comparison("gt", "input > other, as bool", "greaterthan", np.greater)
_comparison("ge", "input >= other, as bool", "greaterequal", np.greater_equal)


def _logical_and(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    return (np.logical_and(array(operands) != 0, array(operands, 1) != 0),)


register(
    OpDef(
        name="logical_and",
        summary="whether both are true or not zero",
        kind=OpKind.COMPOSITE,
        operands=_PAIR,
        attributes=NoAttributes,
        infer=_infer_comparison,
        reference=_logical_and,
        axes=_axes,
        formats=HALF,
        is_promoted=True,
        samples=(*_FLOAT_SAMPLES, *_BOOL_SAMPLES),
    )
)


def _infer_where(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    condition = tensor(operands)
    if condition.dtype is not DType.BOOL:
        hint = "compare first: ne(condition, 0)"
        raise OpError("SPY0210", f"the condition of where is {condition}, not bool", hint=hint, operand=0)
    return (TensorType(_shape(operands), common_dtype((None, *operands[1:]))),)


def _where(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    first, second = _arrays(operands[1:])
    return (np.where(array(operands).astype(np.bool_), first, second),)


register(
    OpDef(
        name="where",
        summary="input where the condition holds, other elsewhere",
        kind=OpKind.POINTWISE,
        operands=(OperandSpec("condition", is_condition=True), *_PAIR),
        attributes=NoAttributes,
        infer=_infer_where,
        reference=_where,
        axes=_axes,
        device=DeviceOp("where3"),
        formats=HALF,
        is_promoted=True,
        samples=(
            ((boolean(3, 5), f16(3, 5), f16(3, 5)), NO_ATTRIBUTES),
            ((boolean(4, 1), f16(70), f16()), NO_ATTRIBUTES),
            ((boolean(4, 1), boolean(2, 1, 3), boolean()), NO_ATTRIBUTES),
        ),
    )
)
