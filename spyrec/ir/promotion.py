"""What an op converts its operands to before it computes: PyTorch's type promotion, by one rule for all ops."""

from __future__ import annotations

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Graph, Node, Scalar
from spyrec.ir.inference import number_dtype, operand_types
from spyrec.ir.numbers import as_promoted, decode, encode
from spyrec.ir.opdef import Array, OpDef, catalogue
from spyrec.ir.operands import common_dtype


@dataclass(frozen=True, slots=True)
class Promotion:
    """What the operands of one node become.

    ``held``: the dtype that numbers take.  ``whole``: what integers are converted to, ``rounded``: what a number with a
    point is rounded to; ``None`` where an op takes them as they are, as what the device computes does: a constant is
    rounded once there, by its format.
    """

    definition: OpDef
    held: DType | None
    whole: DType | None = None
    rounded: DType | None = None

    def tensor(self, index: int, values: Array) -> Array:
        """Return the elements of the operand at ``index`` as the op computes with them; floats and bools stay."""
        if self.whole is None or values.dtype.kind != "i" or self.definition.operand_spec(index).is_condition:
            return values
        return as_promoted(values, self.whole)

    def number(self, index: int, number: Scalar) -> Array:
        """Return a number as a 0-d array of what the op computes with."""
        assert self.held is not None, number
        carrier = np.bool_ if self.held is DType.BOOL else np.float64 if self.held.is_float else np.int64
        value = np.asarray(number.value, carrier)
        if self.rounded is not None and self.held.is_float:
            return np.asarray(decode(encode(value, self.rounded), self.rounded))
        return self.tensor(index, value)


def promotion(graph: Graph, node: Node) -> Promotion:
    """Return what the operands of a node of a graph are converted to."""
    definition = catalogue()[node.op]
    has_numbers = any(isinstance(operand, Scalar) for operand in node.inputs)
    held = number_dtype(definition, node.inputs, graph.values) if has_numbers else None
    if not definition.is_promoted:
        return Promotion(definition, held)
    result = graph.type_of(node.outputs[0]).dtype
    computed = _common(graph, node, definition) if result is DType.BOOL else result
    return Promotion(definition, held, computed, held if _rounds_numbers(graph, node, definition, held) else None)


def _common(graph: Graph, node: Node, definition: OpDef) -> DType:
    types = operand_types(definition, node.inputs, graph.values)
    return common_dtype([item for index, item in enumerate(types) if not definition.operand_spec(index).is_condition])


def _rounds_numbers(graph: Graph, node: Node, definition: OpDef, held: DType | None) -> bool:
    """Whether a number is rounded before the op computes: where the device has no part in it."""
    if held is not DType.FLOAT32 or not definition.formats:
        return not definition.formats
    is_question = graph.type_of(node.outputs[0]).dtype is DType.BOOL
    return is_question or not any(isinstance(name, str) and graph.type_of(name).dtype.is_float for name in node.inputs)
