"""What may stand in the prologue of a graph: small host computations over whole numbers and truths, before the copy in.

Position ids, padding masks, one-hot vectors and rotary tables are made there, in float64 and int64, and are rounded
once where the device takes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet

from spyrec.ir.graph import Node, Value
from spyrec.ir.opdef import OpKind, catalogue

MOST_ELEMENTS = 2**24
"""Elements of a value of the prologue, 128 MB in float64: the host makes it anew in every run."""

_KINDS = frozenset(
    {OpKind.POINTWISE, OpKind.REDUCTION, OpKind.CONTRACTION, OpKind.VIEW, OpKind.MOVEMENT, OpKind.CAST, OpKind.CREATION}
)
"""Kinds of ops of NumPy semantics."""

_OTHERS = frozenset({
    "abs", "all", "any", "argmax", "argmin", "argsort", "bitwise_and", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clamp", "cos", "cummax", "cummin", "cumprod",
    "cumsum", "div", "eq", "exp", "fmod", "frac", "gather", "ge", "gt", "index", "index_select", "isinf",
    "isnan", "le", "linspace", "log", "logical_and", "logical_not", "logical_or", "logical_xor", "lt",
    "masked_fill", "max", "maximum", "min", "minimum", "nan_to_num", "ne", "one_hot", "pow", "prod",
    "remainder", "round", "rsub", "scatter", "scatter_add", "searchsorted", "sin", "slice_scatter", "sort",
    "square", "tan", "tanh", "topk", "tril", "triu", "trunc",
})  # fmt: skip
"""Ops of other kinds that NumPy has."""


def may_be_of_prologue(op: str) -> bool:
    """Whether an op may stand in a prologue."""
    definition = catalogue().get(op)
    return definition is not None and (definition.kind in _KINDS or op in _OTHERS)


def prologue_problem(
    node: Node, made: AbstractSet[str], constants: Collection[str], values: Mapping[str, Value]
) -> str | None:
    """Return why a node cannot stand in the prologue, ``None`` where it can.

    ``made``: the values that the prologue makes before it.  It reads these, constants, and inputs of integers or bools.
    """
    if not may_be_of_prologue(node.op):
        return f"{node.op} is none of its ops"
    for name in node.inputs:
        if not isinstance(name, str) or name in made or name in constants:
            continue
        dtype = values[name].type.dtype
        if dtype.is_float:
            return (
                f'it reads "{name}", which is {dtype.value}; inputs of integers and bools, constants and the '
                "prologue's own values may be read"
            )
    for name in node.outputs:
        count = values[name].type.element_count
        if count > MOST_ELEMENTS:
            return f'"{name}" has {count} elements, the limit is {MOST_ELEMENTS}'
    return None
