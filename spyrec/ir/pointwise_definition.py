"""How ops are declared that work element by element and are made of others, or computed by the host."""

from __future__ import annotations

from collections.abc import Callable

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import Formats
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NoAttributes
from spyrec.ir.opdef import (
    Attributes,
    AxisSources,
    HostRule,
    InferRule,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpError,
    OpKind,
    Reference,
    Roundings,
    Sample,
    register,
)
from spyrec.ir.operands import Floats, common_dtype, function_dtype, present, tensor
from spyrec.ir.shapes import broadcast, broadcast_axes
from spyrec.ir.types import TensorType

ONE = (OperandSpec("input"),)
"""One tensor."""

PAIR = (OperandSpec("input", accepts_number=True), OperandSpec("other", accepts_number=True))
"""Two tensors, or a tensor and a number in either place."""


@dataclass(frozen=True, slots=True)
class PointwiseRules:
    """What distinguishes one such op from the next.

    ``formats``: what the ops of its decomposition take; the host computes what has another format, and all of an op
    that states none.  ``host_when``, ``complete``, ``roundings``, ``poles``: as
    in :class:`OpDef`.
    """

    infer: InferRule
    reference: Reference
    formats: Formats = frozenset()
    host_when: HostRule | None = None
    complete: Callable[[OperandTypes, Attributes], Attributes] | None = None
    roundings: Roundings | None = None
    poles: Callable[[Floats], Floats] | None = None


def define_pointwise(  # noqa: PLR0913 - the fields of a row, in order
    name: str,
    summary: str,
    operands: tuple[OperandSpec, ...],
    rules: PointwiseRules,
    samples: tuple[Sample, ...],
    attributes: type = NoAttributes,
) -> None:
    """Add an op to the catalogue whose result has the broadcast shape of its operands, and which promotes them."""
    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.COMPOSITE if rules.formats else OpKind.HOST,
            operands=operands,
            attributes=attributes,
            infer=rules.infer,
            reference=rules.reference,
            axes=broadcast_sources,
            formats=rules.formats,
            host_when=rules.host_when,
            complete=rules.complete,
            is_promoted=True,
            roundings=rules.roundings,
            poles=rules.poles,
            samples=samples,
        )
    )


def broadcast_shape(operands: OperandTypes) -> tuple[int, ...]:
    """Return the shape that the operands broadcast to.  Errors: SPY0201."""
    return broadcast([(index, operand.shape) for index, operand in present(operands)])


def broadcast_sources(operands: OperandTypes, _: Attributes) -> AxisSources:
    """Return which operand axes each axis of the broadcast result runs along."""
    return broadcast_axes(operands, broadcast_shape(operands))


def arithmetic_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    """Return the result of arithmetic: of the operands' common dtype, which is not bool.  Errors: SPY0202, SPY0203."""
    dtype = common_dtype(operands)
    if dtype is DType.BOOL:
        raise OpError("SPY0202", "bools have no such arithmetic", hint="convert one operand: to(float16)", operand=0)
    return (TensorType(broadcast_shape(operands), dtype),)


def function_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    """Return the result of a function of one tensor that gives fractions: of the operand's dtype, or float32."""
    return (TensorType(tensor(operands).shape, function_dtype(tensor(operands))),)


def whole_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    """Return the result of a function of one tensor that keeps whole numbers whole.  Errors: SPY0202 a bool."""
    return (TensorType(tensor(operands).shape, arithmetic_result(operands[:1], _)[0].dtype),)


def float_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    """Return the result of a function of one float tensor.  Errors: SPY0202."""
    dtype = tensor(operands).dtype
    if not dtype.is_float:
        hint = "convert it first: to(float16)"
        raise OpError("SPY0202", f"{dtype.value} is not a floating-point dtype", hint=hint, operand=0)
    return (tensor(operands),)


def truth_result(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    """Return the result of a question: bools.  Errors: SPY0203."""
    common_dtype(operands)
    return (TensorType(broadcast_shape(operands), DType.BOOL),)
