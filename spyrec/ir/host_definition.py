"""How ops are declared that the device has no form of: the host computes them between two programs."""

from __future__ import annotations

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DeviceFormat
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
    PackedWeight,
    Reference,
    Roundings,
    RowRule,
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
    rows: RowRule | None = None
    formats: frozenset[DeviceFormat] = frozenset()
    moves: bool = False
    top: str | None = None
    packed: PackedWeight | None = None
    is_promoted: bool = False
    roundings: Roundings | None = None
    is_public: bool = True


def define_on_host(  # noqa: PLR0913 -- the parts of a declaration, in the order of one
    name: str,
    summary: str,
    operands: tuple[OperandSpec, ...],
    rules: HostRules,
    samples: tuple[Sample, ...],
    attributes: type = NoAttributes,
) -> None:
    """Add an op to the catalogue that the host computes, whatever its operands are, but where they are ``rows``.

    One that has a ``packed`` weight is computed by the host where the weight is no constant.
    """

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
            formats=rules.formats,
            moves=rules.moves,
            top=rules.top,
            number_attributes=rules.number_attributes,
            result_count=rules.result_count,
            rows=rules.rows,
            packed=rules.packed,
            is_promoted=rules.is_promoted,
            roundings=rules.roundings,
            is_public=rules.is_public,
            is_first_enough=rules.is_first_enough,
            samples=samples,
        )
    )
