"""An ONNX model as a graph: each operator becomes ops of the catalogue; what is known beforehand stays NumPy's.

Shapes are operands in ONNX.  What depends on shapes and small constants alone is computed by the onnx package's
reference evaluator, node by node, and becomes attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from spyrec.diagnostics import ModelPlace, SpyrecError
from spyrec.frontends.graph_builder import GraphBuilder
from spyrec.frontends.model_import.imported import with_places, with_program_names
from spyrec.frontends.model_import.names import legal_name
from spyrec.frontends.model_import.source_graph import NARROWED, HostArray, Problem, SourceGraph, SourceInput, Weights
from spyrec.frontends.model_import.unsupported import Unsupported, reason_of
from spyrec.frontends.onnx.model import DTYPES, OnnxModel, array_of
from spyrec.frontends.value import Value

if TYPE_CHECKING:
    from onnx import AttributeProto, NodeProto, ValueInfoProto

_MOST_KNOWN = 4096
"""Elements of a value that is known beforehand: shapes, axes, scales, small tables."""


class Call:
    """One node: operands by position, attributes by name."""

    def __init__(self, graph: OnnxLowering, node: NodeProto) -> None:
        self._graph = graph
        self.node = node
        self.attributes = {item.name: _attribute(item) for item in node.attribute}

    @property
    def count(self) -> int:
        """How many operands are given, absent ones between them included."""
        return len(self.node.input)

    def has(self, index: int) -> bool:
        """Whether an operand is given."""
        return index < len(self.node.input) and bool(self.node.input[index])

    def value(self, index: int) -> Value:
        """Return an operand as a value of the graph."""
        if not self.has(index):
            raise Unsupported(f"it lacks its operand {index}")
        return self._graph.value(self.node.input[index])

    def optional(self, index: int) -> Value | None:
        """Return an operand that may be absent."""
        return self.value(index) if self.has(index) else None

    def values(self) -> list[Value]:
        """Return all operands."""
        return [self.value(index) for index in range(self.count) if self.has(index)]

    def known(self, index: int) -> HostArray | None:
        """Return the numbers of an operand; ``None`` where it is absent.  Errors: it depends on an input."""
        if not self.has(index):
            return None
        found = self._graph.known(self.node.input[index])
        if found is None:
            raise Unsupported(f'its operand {index} ("{self.node.input[index][:60]}") is not known beforehand')
        return found

    def known_or_none(self, index: int) -> HostArray | None:
        """Return the numbers of an operand where they are known."""
        return self._graph.known(self.node.input[index]) if self.has(index) else None

    def integers(self, index: int) -> list[int] | None:
        """Return the whole numbers of an operand."""
        found = self.known(index)
        return None if found is None else [int(item) for item in found.reshape(-1)]

    def integer(self, name: str, otherwise: int) -> int:
        """Return an attribute that is a whole number."""
        return cast("int", self.attributes.get(name, otherwise))

    def number(self, name: str, otherwise: float) -> float:
        """Return an attribute that is a number."""
        return cast("float", self.attributes.get(name, otherwise))

    def text(self, name: str, otherwise: str) -> str:
        """Return an attribute that is a word."""
        return cast("str", self.attributes.get(name, otherwise))

    def list(self, name: str) -> list[int] | None:
        """Return an attribute that is a list of whole numbers."""
        found = self.attributes.get(name)
        return None if found is None else [int(item) for item in cast("Sequence[int]", found)]

    def add(self, op: str, *operands: object, **attributes: object) -> Value:
        """Add an op of the catalogue."""
        return self._graph.builder.op(op, *operands, **attributes)

    def add_all(self, op: str, *operands: object, **attributes: object) -> list[Value]:
        """Add an op of the catalogue with several results."""
        made = getattr(self._graph.builder, op)(*operands, **attributes)
        return [made] if isinstance(made, Value) else list(cast("tuple[Value, ...]", made))

    def dtype(self, number: int) -> str:
        """Return a dtype by ONNX's number."""
        name, carrier = DTYPES.get(number, (f"type {number}", ""))
        if not carrier:
            raise Unsupported(f"a graph has no {name}")
        return NARROWED.get(name, name)


def _attribute(item: AttributeProto) -> object:
    import onnx

    value = onnx.helper.get_attribute_value(item)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


_NOTHING_KEPT: Mapping[str, str] = {}


class OnnxLowering:
    """One model on its way: values of the graph, and numbers that are known, by ONNX's names."""

    def __init__(self, model: OnnxModel, weights: Weights, kept: Mapping[str, str] = _NOTHING_KEPT) -> None:
        self._kept = kept
        self.builder = GraphBuilder(legal_name(model.proto.graph.name or "graph"))
        self._model = model
        self._weights = weights
        self._values: dict[str, Value | None] = {}
        self._known: dict[str, HostArray] = {}
        self._places: dict[str, ModelPlace] = {}
        self._inputs: list[SourceInput] = []
        self._problems: list[Problem] = []
        self._narrowed: dict[str, str] = {}
        self._types = {item.name: item for item in model.proto.graph.value_info}
        self._types |= {item.name: item for item in model.proto.graph.output}

    def graph(self) -> SourceGraph:
        """Return the whole graph, with all problems that stand against it."""
        graph = self._model.proto.graph
        for item in graph.input:
            if item.name not in self._weights:
                self._declare(item)
        for node in graph.node:
            self._lower(node)
        names: dict[str, str] = {}
        for item in graph.output:
            value = None if self._is_lost(item.name) else self.value(item.name)
            if value is not None:
                self.builder.output(value)
                names[value.name] = legal_name(item.name)
        inputs, problems = tuple(self._inputs), tuple(self._problems)
        if problems or not names:
            return SourceGraph(None, inputs, problems)
        placed = with_places(self.builder.build(), self._places, inputs)
        return SourceGraph(with_program_names(placed, names), inputs, problems, self._narrowed)

    # --- values ---

    def _declare(self, item: ValueInfoProto) -> None:
        tensor = item.type.tensor_type
        name, carrier = DTYPES.get(tensor.elem_type, (f"type {tensor.elem_type}", ""))
        extents = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
        if not carrier or None in extents:
            symbols = [dim.dim_param for dim in tensor.shape.dim if not dim.HasField("dim_value")]
            reason = f"a graph has no {name}" if not carrier else f"its dims {', '.join(symbols)} are symbolic"
            hint = None if not carrier else f"bind them: --dim {symbols[0] or 'NAME'}=EXTENT"
            self._problems.append(Problem("input", item.name, (name,), None, reason, hint))
            self._values[item.name] = None
            return
        dtype = NARROWED.get(name, name)
        shape = [extent for extent in extents if extent is not None]
        value = self.builder.input(self.builder.free_name(legal_name(item.name)), shape, dtype)
        if dtype != name:
            self._narrowed[value.name] = name
        self._values[item.name] = value
        self._inputs.append(SourceInput(value.name, "user", item.name))

    def value(self, name: str) -> Value:
        """Return what a name of the model stands for, as a value of the graph."""
        found = self._values.get(name)
        if found is not None:
            return found
        weight = self._weights.get(name)
        if weight is not None:
            made = self.builder.input(self.builder.free_name(legal_name(name)), weight.shape, weight.dtype)
            kind = "parameter" if np.prod(weight.shape, dtype=np.int64) > _MOST_KNOWN else "buffer"
            self._inputs.append(SourceInput(made.name, kind, name, name))
        else:
            array = self._known[name]
            array = array.astype(np.float32) if array.dtype == np.float64 else array
            made = self.builder.constant(self.builder.free_name(legal_name(name)), array, list(array.shape))
        self._values[name] = made
        return made

    def known(self, name: str) -> HostArray | None:
        """Return the numbers of a value that depends on no input, ``None`` where it does or has many."""
        weight = self._weights.get(name)
        if name not in self._known and weight is not None and np.prod(weight.shape, dtype=np.int64) <= _MOST_KNOWN:
            self._known[name] = weight.read()
        return self._known.get(name)

    def inferred(self, name: str) -> tuple[str, tuple[int, ...]] | None:
        """Return dtype and shape of a value as shape inference knows them."""
        item = self._types.get(name)
        if item is None or not item.type.tensor_type.HasField("shape"):
            return None
        tensor = item.type.tensor_type
        extents = tuple(dim.dim_value for dim in tensor.shape.dim if dim.HasField("dim_value"))
        name_of_type = DTYPES.get(tensor.elem_type, ("", ""))[0]
        return (name_of_type, extents) if len(extents) == len(tensor.shape.dim) and name_of_type else None

    def _is_lost(self, name: str) -> bool:
        return name in self._values and self._values[name] is None

    # --- nodes ---

    def _lower(self, node: NodeProto) -> None:
        from spyrec.frontends.onnx.operators import OPERATORS

        given = [name for name in node.input if name]
        if any(self._is_lost(name) for name in given):
            self._lose(node)
            return
        if self._is_known(node, given):
            return
        place = ModelPlace(node.name.strip("/").replace("/", "."), None, None, node.op_type)
        before = self.builder.node_count
        module = place.module.rpartition(".")[0]
        self.builder.within(legal_name(module) if module else "")
        try:
            if node.domain not in ("", "ai.onnx", "ai.onnx.ml") and node.op_type not in self._kept:
                raise Unsupported(f'the domain "{node.domain}" is none that a graph knows')
            operator = OPERATORS.get(self._kept.get(node.op_type, node.op_type))
            if operator is None:
                raise Unsupported("a graph has no op for it")
            results = operator(Call(self, node))
        except (Unsupported, SpyrecError) as error:
            self._refuse(node, place, *reason_of(error))
            return
        self._places.update(dict.fromkeys(self.builder.node_names(before), place))
        for name, value in zip(node.output, results, strict=False):
            if name:
                self._values[name] = value
        for name in node.output[len(results) :]:
            if name:
                self._values[name] = None

    def _is_known(self, node: NodeProto, given: Sequence[str]) -> bool:
        """Compute a node whose operands are known, where its results are few."""
        if node.op_type == "Shape" and not self._is_static(node.input[0]):
            return False
        if node.op_type == "Constant":
            self._known[node.output[0]] = _constant(node)
            return True
        if node.op_type in ("Shape", "Size"):
            shape = np.asarray(self._shape(node.input[0]), np.int64)
            attributes = Call(self, node).attributes
            begin, end = cast("int", attributes.get("start", 0)), cast("int | None", attributes.get("end"))
            found = shape[begin:end] if node.op_type == "Shape" else np.asarray(np.prod(shape, dtype=np.int64))
            self._known[node.output[0]] = found
            return True
        arrays = {name: self.known(name) for name in given}
        if any(array is None for array in arrays.values()) or not given or node.domain not in ("", "ai.onnx"):
            return False
        inferred = self.inferred(node.output[0])
        if inferred is not None and np.prod(inferred[1], dtype=np.int64) > _MOST_KNOWN:
            return False
        results = _evaluated(node, {name: array for name, array in arrays.items() if array is not None}, self._model)
        if results is None:
            return False
        self._known.update(results)
        return True

    def _is_static(self, name: str) -> bool:
        return self._values.get(name) is not None or name in self._weights or name in self._known

    def _shape(self, name: str) -> tuple[int, ...]:
        if name in self._known:
            return self._known[name].shape
        weight = self._weights.get(name)
        return weight.shape if weight is not None else self.value(name).shape

    def _refuse(self, node: NodeProto, place: ModelPlace, reason: str, hint: str | None) -> None:
        dtypes = tuple(found.dtype for name in node.input if name and (found := self._values.get(name)) is not None)
        self._problems.append(Problem("op", node.op_type, dtypes, place, reason, hint))
        self._lose(node)

    def _lose(self, node: NodeProto) -> None:
        for name in node.output:
            if name:
                self._values[name] = None


def _constant(node: NodeProto) -> HostArray:
    """Return the numbers of a ``Constant``."""
    import onnx

    for item in node.attribute:
        value = onnx.helper.get_attribute_value(item)
        if item.name == "value":
            return array_of(value)
        if item.name in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
        if item.name in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
    raise Unsupported("its value is no tensor of numbers")


def _evaluated(node: NodeProto, arrays: dict[str, HostArray], model: OnnxModel) -> dict[str, HostArray] | None:
    """Return the results of one node by onnx's reference evaluator, ``None`` where it has none of it."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in arrays.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = onnx.helper.make_graph([node], "one", inputs, outputs)
    single = onnx.helper.make_model(graph, opset_imports=list(model.proto.opset_import))
    try:
        with np.errstate(all="ignore"):
            run = cast("Callable[[None, dict[str, HostArray]], list[object]]", ReferenceEvaluator(single).run)  # pyright: ignore[reportUnknownMemberType] -- untyped
            found = run(None, arrays)
    except Exception:  # noqa: BLE001 -- whatever it does not know goes to the graph, which says why
        return None
    results = dict(zip([name for name in node.output if name], found, strict=True))
    is_plain = all(isinstance(item, np.ndarray) or np.isscalar(item) for item in results.values())
    return {name: np.asarray(item) for name, item in results.items()} if is_plain else None
