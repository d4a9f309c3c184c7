"""Sums of products and quotients, in float32: terms that were rounded to 16 bits would cancel to nothing."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.hardware.dtypes import DType
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.ops.combinations import ValueAttributes
from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompose.steps import Rewrite, Steps


def _rsub(builder: NodeBuilder) -> str:
    subtracted, other = builder.node.inputs
    attributes = builder.node.attributes
    assert isinstance(attributes, AlphaAttributes)
    return builder.emit("sub", other, subtracted, attributes=attributes)


def _lerp(builder: NodeBuilder) -> str:
    """``--> input + weight (end - input)``."""
    single = Steps(builder, DType.FLOAT32)
    start, end, weight = (single.taken(operand) for operand in builder.node.inputs)
    result = single.add(start, single.mul(weight, single.sub(end, start)))
    return single.given(result, builder.type_of(builder.node.output).dtype)


def _added(builder: NodeBuilder) -> str:
    """``--> input + (value tensor1) tensor2``, or with the quotient.

    In PyTorch's order: half a product that overflows is a number, and the product of half a factor is.
    """
    attributes = builder.node.attributes
    assert isinstance(attributes, ValueAttributes)
    single = Steps(builder, DType.FLOAT32)
    added, left, right = (single.taken(operand) for operand in builder.node.inputs)
    scaled = single.mul(left, attributes.value)
    term = single.mul(scaled, right) if builder.node.op == "addcmul" else single.div(scaled, right)
    result = single.add(added, term)
    return single.given(result, builder.type_of(builder.node.output).dtype)


REWRITES: Mapping[str, Rewrite] = {"rsub": _rsub, "lerp": _lerp, "addcmul": _added, "addcdiv": _added}
