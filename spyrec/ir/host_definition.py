"""How ops are declared that the device has no form of: the host computes them between two programs."""

from __future__ import annotations

from dataclasses import dataclass

from spyrec.ir.attributes import NoAttributes
from spyrec.ir.opdef import (
    Attributes,
    AxisRule,
    AxisSources,
    InferRule,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpKind,
    Reference,
    Sample,
    register,
)


@dataclass(frozen=True, slots=True)
class HostRules:
    """What distinguishes one such op from the next.

    ``axes``: by default every axis of the first result is one of its own.  The others are as in :class:`OpDef`.
    """

    infer: InferRule
    reference: Reference
    axes: AxisRule | None = None
    result_count: int | None = 1
    is_first_enough: bool = False
    number_attributes: tuple[str, ...] = ()


def define_on_host(  # noqa: PLR0913 -- as many as an op has fields
    name: str,
    summary: str,
    operands: tuple[OperandSpec, ...],
    rules: HostRules,
    samples: tuple[Sample, ...],
    attributes: type = NoAttributes,
) -> None:
    """Add an op to the catalogue that the host computes, whatever its operands are."""

    def no_sources(types: OperandTypes, values: Attributes) -> AxisSources:
        return ((),) * rules.infer(types, values)[0].rank

    register(
        OpDef(
            name=name,
            summary=summary,
            kind=OpKind.HOST,
            operands=operands,
            attributes=attributes,
            infer=rules.infer,
            reference=rules.reference,
            axes=rules.axes or no_sources,
            number_attributes=rules.number_attributes,
            result_count=rules.result_count,
            is_first_enough=rules.is_first_enough,
            samples=samples,
        )
    )
