"""Gives a settled graph the dtypes that the device is to compute in.

A program whose weights are float32 is computed in float16 (or bfloat16) throughout; in a program whose weights have 16
bits already, float32 stands where its author asked for it, and stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.frontends.model_import.source_graph import HostArray, SourceInput, Weights
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NoAttributes
from spyrec.ir.graph import ConstantData, Graph, Node, Operand, Scalar, Value
from spyrec.ir.inference import infer
from spyrec.ir.numbers import LARGEST, fits
from spyrec.ir.opdef import Attributes, OpError, catalogue
from spyrec.ir.ops.unary import ClampAttributes
from spyrec.ir.types import TensorType

_NUMBERS = frozenset(
    {"fill_value", "value", "min", "max", "min_val", "max_val", "nan", "posinf", "neginf", "threshold"}
)
"""Attributes that are numbers of the result, or stand beside them."""


@dataclass(frozen=True, slots=True)
class CastGraph:
    """A graph in the dtypes asked for.

    ``dtypes``: what each dtype of the program has become.  ``clamped``: numbers in the program that the new dtype does
    not hold, by the node that has them.
    """

    graph: Graph
    dtypes: Mapping[DType, DType]
    clamped: Mapping[str, float]


def chosen_dtypes(
    graph: Graph, inputs: Sequence[SourceInput], weights: Weights, target: DType | None
) -> dict[DType, DType]:
    """Return what each float dtype of a program becomes; ``target`` is ``None`` where all are kept."""
    if target is None:
        return {}
    counts: Counter[DType] = Counter()
    for item in inputs:
        weight = weights.get(item.key or "")
        if weight is not None and weight.dtype.is_float:
            counts[weight.dtype] += int(np.prod(weight.shape, dtype=np.int64))
    if not counts:
        counts.update(graph.type_of(name).dtype for name in graph.inputs if graph.type_of(name).dtype.is_float)
    working = counts.most_common(1)[0][0] if counts else DType.FLOAT32
    wide = {DType.FLOAT32} if working is DType.FLOAT32 else set[DType]()
    return dict.fromkeys({DType.FLOAT16, DType.BFLOAT16, *wide}, target)


def cast(graph: Graph, dtypes: Mapping[DType, DType]) -> CastGraph:
    """Return the graph with its floats in other dtypes, and the conversions that this makes idle left out.

    The prologue keeps its own dtypes, and converts what the device reads of it once, at its end.
    """
    return _Caster(graph, dtypes).cast()


class _Caster:
    def __init__(self, graph: Graph, dtypes: Mapping[DType, DType]) -> None:
        self._graph = graph
        self._dtypes = dtypes
        self._values: dict[str, Value] = {}
        self._names: dict[str, str] = {}
        self._nodes: list[Node] = []
        self._clamped: dict[str, float] = {}
        self._huge: set[str] = set()

    def cast(self) -> CastGraph:
        graph = self._graph
        of_host = {name for node in graph.nodes if node.on_host for name in (*node.outputs, *node.inputs)}
        read_by_device = {name for node in graph.nodes if not node.on_host for name in node.inputs} | set(graph.outputs)
        constants: dict[str, ConstantData] = {}
        for name in graph.inputs:
            self._values[name] = self._retyped(graph.values[name])
        for name, data in graph.constants.items():
            value = graph.values[name]
            if name in of_host and name in read_by_device and value.type.dtype in self._dtypes:
                own = self._fresh(f"{name}.prologue")
                self._names[f"prologue {name}"] = own
                self._values[own] = replace(value, name=own)
                constants[own] = data
            is_of_host = name in of_host and name not in read_by_device
            self._values[name] = value if is_of_host else self._retyped(value)
            constants[name] = data
        for node in graph.nodes:
            if node.on_host:
                self._add_of_host(node)
        for node in graph.nodes:
            if node.on_host:
                self._convert_results(node, read_by_device)
        for node in graph.nodes:
            if not node.on_host:
                self._add(node)
        outputs = tuple(self._renamed(name) for name in graph.outputs)
        updates = {self._renamed(output): name for output, name in graph.updates.items()}
        values = dict(self._values)
        made = replace(
            graph, nodes=tuple(self._nodes), values=values, constants=constants, outputs=outputs, updates=updates
        )
        return CastGraph(made, self._dtypes, self._clamped)

    def _retyped(self, value: Value) -> Value:
        dtype = self._dtypes.get(value.type.dtype, value.type.dtype)
        return replace(value, type=TensorType(value.type.shape, dtype))

    def _renamed(self, name: str) -> str:
        return self._names.get(name, name)

    def _fresh(self, stem: str) -> str:
        name, number = stem, 0
        while name in self._graph.values or name in self._values:
            number += 1
            name = f"{stem}_{number}"
        return name

    # --- the prologue ---

    def _add_of_host(self, node: Node) -> None:
        """Keep a node of the prologue as it is."""
        inputs = tuple(
            self._names.get(f"prologue {item}", item) if isinstance(item, str) else item for item in node.inputs
        )
        self._nodes.append(replace(node, inputs=inputs))
        for name in node.outputs:
            self._values[name] = self._graph.values[name]
        if self._makes_huge(node):
            self._huge.update(node.outputs)

    def _makes_huge(self, node: Node) -> bool:
        """Whether finite numbers beyond every format of 16 bits are in a node of the prologue, or in what it reads."""
        numbers = [item.value for item in node.inputs if isinstance(item, Scalar)]
        numbers += [value for _, value in _numbers(node.attributes)]
        least = LARGEST[DType.FLOAT16]
        if any(np.isfinite(number) and abs(number) > least for number in numbers):
            return True
        for name in node.inputs:
            data = self._graph.constants.get(name) if isinstance(name, str) else None
            if name in self._huge or (data is not None and data.array is not None and _is_huge(data.array, least)):
                return True
        return False

    def _convert_results(self, node: Node, read_by_device: set[Operand]) -> None:
        """Convert what the device reads of a node of the prologue to what it computes in."""
        for name in node.outputs:
            value = self._graph.values[name]
            target = self._dtypes.get(value.type.dtype)
            if name not in read_by_device or target is None or target is value.type.dtype:
                continue
            source = self._within(node, value, target) if name in self._huge else name
            own = self._fresh(f"{name}.{target.value}")
            attributes = catalogue()["to"].attributes(target)
            self._nodes.append(Node(own, "to", (source,), (own,), attributes, node.origin, on_host=True))
            self._values[own] = replace(value, name=own, type=TensorType(value.type.shape, target))
            self._names[name] = own

    def _within(self, node: Node, value: Value, target: DType) -> str:
        """Add ``where(isinf(x), x, clamp(x))``: finite numbers stay finite, infinities stay what they are."""
        largest = LARGEST[target]
        names = [self._fresh(f"{value.name}.{part}") for part in ("isinf", "finite", "within")]
        infinite, finite, made = names
        self._values[infinite] = replace(value, name=infinite, type=TensorType(value.type.shape, DType.BOOL))
        for name in (finite, made):
            self._values[name] = replace(value, name=name)
        limits = ClampAttributes(-largest, largest)
        nothing = NoAttributes()
        for name, op, inputs, attributes in (
            (infinite, "isinf", (value.name,), nothing),
            (finite, "clamp", (value.name,), limits),
            (made, "where", (infinite, value.name, finite), nothing),
        ):
            self._nodes.append(Node(name, op, inputs, (name,), attributes, node.origin, on_host=True))
        return made

    # --- the device's nodes ---

    def _add(self, node: Node) -> None:
        inputs = tuple(self._renamed(item) if isinstance(item, str) else item for item in node.inputs)
        attributes = self._attributes(node)
        made = replace(node, inputs=inputs, attributes=attributes)
        if node.op == "to" and isinstance(inputs[0], str):
            source = self._values[inputs[0]]
            if source.type.dtype is self._target(node.outputs[0]):
                self._names[node.outputs[0]] = source.name
                return
        made = replace(made, inputs=tuple(self._number(made, item) for item in made.inputs))
        definition = catalogue()[made.op]
        found = infer(definition, made.inputs, made.attributes, self._values)
        assert not isinstance(found, OpError), (made.name, made.op, found)
        self._nodes.append(made)
        for name, result, dims in zip(made.outputs, found.results, found.dims, strict=False):
            self._values[name] = replace(self._graph.values[name], type=result, dims=dims)
            if result.dtype.is_float and result.dtype is not self._target(name):
                self._convert(made, name)  # whole numbers beside a float are float32, whatever the others become

    def _convert(self, node: Node, name: str) -> None:
        """Convert a result of a node of the device to the dtype that the program's becomes."""
        target = self._target(name)
        own = self._fresh(f"{name}.{target.value}")
        self._nodes.append(Node(own, "to", (name,), (own,), catalogue()["to"].attributes(target), node.origin))
        self._values[own] = replace(
            self._values[name], name=own, type=TensorType(self._values[name].type.shape, target)
        )
        self._names[name] = own

    def _now(self, name: str) -> DType:
        """Return the dtype that a value of the source graph, or one made here, has now."""
        return self._values[name].type.dtype if name in self._values else self._target(name)

    def _target(self, name: str) -> DType:
        dtype = self._graph.values[name].type.dtype
        return self._dtypes.get(dtype, dtype)

    def _attributes(self, node: Node) -> Attributes:
        """Return attributes with dtypes as they are now, and with numbers that these dtypes hold."""
        attributes = node.attributes
        changed: dict[str, DType | float] = {
            item.name: self._dtypes[value]
            for item in fields(attributes)
            if isinstance(value := getattr(attributes, item.name), DType) and value in self._dtypes
        }
        changed |= {name: self._held(node, value) for name, value in _numbers(attributes)}
        return replace(attributes, **changed) if changed else attributes  # pyright: ignore[reportArgumentType, reportUnknownVariableType]

    def _number(self, node: Node, operand: Operand) -> Operand:
        """Return a number operand as the dtype beside it holds it."""
        if not isinstance(operand, Scalar) or isinstance(operand.value, bool):
            return operand
        held = self._held(node, operand.value)
        return operand if held == operand.value else Scalar(held)

    def _held(self, node: Node, number: float) -> float:
        """Return a number as the floats of a node hold it; a finite one stays finite."""
        values = (*node.outputs, *(item for item in node.inputs if isinstance(item, str)))
        floats = [dtype for name in values if (dtype := self._now(name)).is_float]
        target = floats[0] if floats else DType.FLOAT32
        if not np.isfinite(number) or fits(number, target):
            return number
        self._clamped[node.name] = float(number)
        return float(np.copysign(LARGEST[target], number))


def _numbers(attributes: Attributes) -> list[tuple[str, float]]:
    """Return the attributes that are numbers of a result, by name."""
    given = [(item.name, getattr(attributes, item.name)) for item in fields(attributes) if item.name in _NUMBERS]
    return [(name, value) for name, value in given if isinstance(value, int | float) and not isinstance(value, bool)]


def _is_huge(array: HostArray, least: float) -> bool:
    """Whether floats of the host are finite and beyond ``least``."""
    if array.dtype.kind != "f":
        return False
    magnitudes = np.abs(array)
    return bool((np.isfinite(magnitudes) & (magnitudes > least)).any())
