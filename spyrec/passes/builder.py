"""Builds replacement nodes for one node: infers types, names what is new, remembers where it came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from spyrec.diagnostics import refuse
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.graph import ConstantData, Derived, Graph, Node, Operand, Origin, Scalar, Value, location_of
from spyrec.ir.inference import MAX_ELEMENTS, dim_names, number_dtype
from spyrec.ir.numbers import as_held, encode
from spyrec.ir.opdef import Attributes, catalogue
from spyrec.ir.types import TensorType


class GraphRewriter:
    """Values, constants and nodes of a graph under construction; names stay unique."""

    def __init__(self, graph: Graph, pass_name: str) -> None:
        self.values: dict[str, Value] = dict(graph.values)
        self.constants: dict[str, ConstantData] = dict(graph.constants)
        self.nodes: list[Node] = []
        self._pass_name = pass_name
        self._scalars: dict[tuple[str, DType], str] = {}
        self._taken: set[str] = set(graph.values) | {node.name for node in graph.nodes}

    def fresh(self, stem: str) -> str:
        """Return a name that nothing has: ``stem``, or ``stem`` with a number."""
        name, number = stem, 0
        while name in self._taken:
            number += 1
            name = f"{stem}.{number}"
        self._taken.add(name)
        return name

    def scalar(self, number: float, dtype: DType, origin: Origin) -> str:
        """Return the 0-d constant of a number; one constant per number and dtype."""
        key = (float(number).hex(), dtype)
        name = self._scalars.get(key)
        if name is None:
            name = self.constant("number", np.asarray(number), dtype, origin)
            self._scalars[key] = name
        return name

    def constant(self, stem: str, values: np.ndarray, dtype: DType, origin: Origin) -> str:
        """Return a new constant holding ``values`` of ``dtype``.

        Floats stay float64, so that nothing but the device's format rounds them: IEEE half has neither the range of
        DLFloat16 nor, for an eps of 1e-5, its precision, and bfloat16 has two bits less.
        """
        name = self.fresh(stem)
        if dtype in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32):
            data = values.astype(np.float64, copy=False)
        else:
            data = encode(values.astype(np.bool_) if dtype is DType.BOOL else values, dtype)
        self.constants[name] = ConstantData(array=np.asarray(data))
        derived = Derived(self._pass_name, (origin,))
        self.values[name] = Value(name, TensorType(values.shape, dtype), (None,) * values.ndim, derived)
        return name

    def one_number(self, name: str) -> str:
        """Put a 0-d constant in the place of a uniform one, whose value then has no numbers; return the new name."""
        data, value = self.constants.pop(name), self.values[name]
        assert data.array is not None, name
        number = self.fresh(f"{name}.number")
        self.constants[number] = ConstantData(array=np.asarray(data.array.flat[0]))
        derived = Derived(self._pass_name, (value.origin,))
        self.values[number] = Value(number, TensorType((), value.type.dtype), (), derived)
        return number


MOST_CONSTANT_ELEMENTS = 1 << 28
"""Elements of a constant that a rewrite makes: they take memory here, and lie in the bundle."""


class NodeBuilder:
    """Emits the nodes that replace ``node``."""

    def __init__(self, builder: GraphRewriter, node: Node, pass_name: str) -> None:
        self._builder = builder
        self.node = node
        self.emitted: list[Node] = []
        self._origin = Derived(pass_name, (node.origin,))

    def type_of(self, operand: Operand) -> TensorType:
        """Return the type of a named operand."""
        assert isinstance(operand, str), operand
        return self._builder.values[operand].type

    def _require_countable(self, op: str, result: TensorType) -> None:
        """Refuse what the graph does not show: a product of its extents that no op of its own has.  Errors: SPY0441."""
        if result.element_count < MAX_ELEMENTS:
            return
        fact = f"{self.node.op} takes an intermediate {result}, the result of {op}: {result.element_count} elements"
        raise refuse("SPY0441", f"{fact}, the limit is 2**63 - 1", location_of(self.node.origin))

    def number(self, number: float, dtype: DType) -> str:
        """Return a 0-d constant."""
        return self._builder.scalar(number, dtype, self._origin)

    def number_of(self, operand: Operand) -> float | None:
        """Return the number that a 0-d constant holds, ``None`` of anything else."""
        found = self._builder.constants.get(str(operand))
        if found is None or found.array is None or found.array.ndim or found.array.dtype.kind != "f":
            return None
        return float(found.array)

    def require_holdable(self, what: str, element_count: int) -> None:
        """Refuse a constant that the bundle would have to hold with too many numbers.  Errors: SPY0443."""
        if element_count > MOST_CONSTANT_ELEMENTS:
            fact = f"{what} has {element_count} elements, the limit is {MOST_CONSTANT_ELEMENTS}"
            raise refuse("SPY0443", fact, location_of(self.node.origin))

    def constant(self, stem: str, values: np.ndarray, dtype: DType) -> str:
        """Return a constant tensor."""
        return self._builder.constant(stem, values, dtype, self._origin)

    def emit(self, op: str, *inputs: Operand, attributes: Attributes = NO_ATTRIBUTES) -> str:
        """Add a node and return its result's name; the type comes from the op's own inference."""
        definition = catalogue()[op]
        types = [None if operand is None else self.type_of(operand) for operand in inputs]
        (result,) = definition.infer(types, attributes)
        self._require_countable(op, result)
        names = [() if operand is None else self._builder.values[str(operand)].dims for operand in inputs]
        dims = dim_names(definition, types, attributes, names)
        name = self._builder.fresh(f"{self.node.name}.{op.removeprefix('spyre.')}")
        self._builder.values[name] = Value(name, result, dims, self._origin)
        self.emitted.append(Node(name, op, inputs, (name,), attributes, self._origin))
        return name

    def name_last(self, name: str) -> None:
        """Let the node that was emitted last make a value of the graph."""
        last = self.emitted.pop()
        del self._builder.values[last.output]
        self.emitted.append(replace(last, name=name, outputs=(name,)))


def numbers_as_constants(builder: GraphRewriter, node: Node) -> tuple[Operand, ...]:
    """Return the operands with every number replaced by a 0-d constant of the dtype the node computes in."""
    dtype = number_dtype(catalogue()[node.op], node.inputs, builder.values)
    return tuple(
        builder.scalar(as_held(operand.value, dtype), dtype, node.origin) if isinstance(operand, Scalar) else operand
        for operand in node.inputs
    )


def live_values(values: Mapping[str, Value], graph: Graph, nodes: list[Node]) -> dict[str, Value]:
    """Return the values that the inputs, the outputs or a node name, in their old order."""

    def used() -> Iterator[str]:
        yield from graph.inputs
        yield from graph.outputs
        for node in nodes:
            yield from node.outputs
            yield from (operand for operand in node.inputs if isinstance(operand, str))

    kept = set(used())
    return {name: value for name, value in values.items() if name in kept}
