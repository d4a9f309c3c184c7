"""Ops that are a chain of other ops on their first operand: their types, axes and references follow from the chain."""

from __future__ import annotations

from collections.abc import Sequence

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import ANY_FORMAT
from spyrec.hardware.dtypes import DType
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    ChainRule,
    HostRule,
    OpDef,
    OperandSpec,
    OperandTypes,
    OpKind,
    Sample,
    catalogue,
    register,
)
from spyrec.ir.operands import array, tensor
from spyrec.ir.types import TensorType

INPUT = (OperandSpec("input"),)
INPUT_AND_OTHER = (OperandSpec("input"), OperandSpec("other"))


@dataclass(frozen=True, slots=True)
class ChainRules:
    """What distinguishes one such op from the next.

    ``steps`` raises what is wrong with the operands and attributes themselves, the ops of the chain the rest.
    """

    steps: ChainRule
    kind: OpKind = OpKind.VIEW
    operands: tuple[OperandSpec, ...] = INPUT
    host_when: HostRule | None = None
    result_sizes: str | None = None


def define_chain(name: str, summary: str, attributes: type, rules: ChainRules, samples: tuple[Sample, ...]) -> None:
    """Add an op to the catalogue that is the ops of a chain, one on the result of the other."""

    def infer(operands: OperandTypes, values: Attributes) -> tuple[TensorType, ...]:
        return (_types(rules.steps, operands, values)[-1],)

    def reference(operands: Sequence[Array | None], values: Attributes) -> tuple[Array, ...]:
        kinds = [None if item is None else _type_of(item) for item in operands]
        result = array(operands)
        for op, attributes_of_step in rules.steps(kinds, values):
            result = catalogue()[op].reference((result,), attributes_of_step)[0]
        return (result,)

    def axes(operands: OperandTypes, values: Attributes) -> AxisSources:
        types = _types(rules.steps, operands, values)
        sources: AxisSources = tuple(((0, axis),) for axis in range(tensor(operands).rank))
        for (op, attributes_of_step), operand in zip(rules.steps(operands, values), types, strict=False):
            found = catalogue()[op].axes((operand,), attributes_of_step)
            sources = tuple(tuple(source for _, axis in axis_of for source in sources[axis]) for axis_of in found)
        return sources

    register(
        OpDef(
            name=name,
            summary=summary,
            kind=rules.kind,
            operands=rules.operands,
            attributes=attributes,
            infer=infer,
            reference=reference,
            axes=axes,
            formats=ANY_FORMAT,
            host_when=rules.host_when,
            chain=rules.steps,
            result_sizes=rules.result_sizes,
            samples=samples,
        )
    )


def _types(steps: ChainRule, operands: OperandTypes, values: Attributes) -> list[TensorType]:
    """Return the type of the first operand, and those of the results of each step."""
    types = [tensor(operands)]
    for op, attributes in steps(operands, values):
        types.append(catalogue()[op].infer((types[-1],), attributes)[0])
    return types


def _type_of(values: Array) -> TensorType:
    """Return a type of the shape of an array; views do not ask for more."""
    kinds = {"b": DType.BOOL, "f": DType.FLOAT32}
    return TensorType(values.shape, kinds.get(values.dtype.kind, DType.INT64))
