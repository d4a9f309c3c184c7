"""How the view ops are declared: they differ in shapes and indices alone."""

from __future__ import annotations

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import ANY_FORMAT
from spyrec.ir.opdef import AxisRule, InferRule, OpDef, OperandSpec, OperandTypes, OpKind, Reference, Sample, register
from spyrec.ir.operands import tensor
from spyrec.ir.shapes import Shape
from spyrec.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class ViewRules:
    """What distinguishes one view from the next."""

    infer: InferRule
    reference: Reference
    axes: AxisRule
    result_sizes: str | None = None


def define_view(name: str, summary: str, attributes: type, rules: ViewRules, samples: tuple[Sample, ...]) -> None:
    """Add a view op to the catalogue."""
    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.VIEW,
            operands=(OperandSpec("input"),),
            attributes=attributes,
            infer=rules.infer,
            reference=rules.reference,
            axes=rules.axes,
            formats=ANY_FORMAT,
            result_sizes=rules.result_sizes,
            samples=samples,
        )
    )


def retyped(operands: OperandTypes, shape: Shape) -> tuple[TensorType, ...]:
    """Return the operand's type under another shape."""
    return (TensorType(shape, tensor(operands).dtype),)
