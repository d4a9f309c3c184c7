"""An ONNX model as a graph: each operator becomes ops of the catalogue; what is known beforehand stays NumPy's.

Shapes are operands in ONNX.  What depends on shapes and small constants alone is computed by the onnx package's
reference evaluator, node by node, and becomes attributes; what is made of symbolic extents is followed as
polynomials in them (``open_numbers.py``).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.diagnostics import ModelPlace, SpyrecError
from spyrec.frontends.graph_builder import GraphBuilder
from spyrec.frontends.model_import.imported import with_places, with_program_names
from spyrec.frontends.model_import.names import legal_name
from spyrec.frontends.model_import.source_graph import NARROWED, HostArray, Problem, SourceGraph, SourceInput, Weight
from spyrec.frontends.model_import.unsupported import Unsupported, reason_of
from spyrec.frontends.onnx.control_flow import CONTROL_FLOW
from spyrec.frontends.onnx.model import DTYPES, UNSIGNED, OnnxModel, array_of, form_of, opset_of, schema_of, weight_of
from spyrec.frontends.onnx.open_numbers import Number, OpenNumber, computed, hint_of, product, read_open_size
from spyrec.frontends.onnx.probe import Made, Probe
from spyrec.frontends.onnx.sequences import SEQUENCES, TensorSequence
from spyrec.frontends.onnx.well_formed import MOST_NODES
from spyrec.frontends.value import Value
from spyrec.hardware.dtypes import DType

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto, ValueInfoProto

    from spyrec.frontends.onnx.sequences import Result, Tensor

T = TypeVar("T")

_BITS = frozenset({DType.BFLOAT16, DType.FLOAT8_E4M3FN})
"""Dtypes whose numbers stand as bits, with which nothing is computed beforehand."""

_MOST_SIGNED = 2**63 - 1
_MOST_KNOWN = 4096
"""Elements of a value that is known beforehand: shapes, axes, scales, small tables."""


class _LostError(Exception):
    """A body whose result could not be made: what stands against it is told already."""


@dataclass(frozen=True, slots=True)
class Body:
    """A graph that a node holds, and the keys of its own weights by their names in it."""

    graph: GraphProto
    keys: Mapping[str, str]


class _Attributes(dict[str, object]):
    """The attributes of a node by name, and which of them were asked for."""

    def __init__(self, given: Mapping[str, object]) -> None:
        super().__init__(given)
        self.asked: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def get(self, name: str, otherwise: object = None, /) -> object:
        self.asked.add(name)
        return super().get(name, otherwise)


class Call:
    """One node: operands by position, attributes by name."""

    def __init__(self, graph: OnnxLowering, node: NodeProto) -> None:
        self._graph = graph
        self.node = node
        self.attributes = _Attributes({item.name: _attribute(item) for item in node.attribute})
        self._asked: set[int] = set()

    def refuse_unread(self) -> None:
        """Refuse what the node says and nobody asked for: a newer operator's attribute, or an operand."""
        unasked = self.attributes.keys() - self.attributes.asked - _SAID_BY_OTHERS
        said = sorted(unasked - self._graph.defaults(self.node))
        if said:
            raise Unsupported(f'its attribute "{said[0][:60]}" is none that a graph has')
        unread = [index for index, name in enumerate(self.node.input) if name and index not in self._asked]
        if unread:
            raise Unsupported(f'its operand {unread[0]} ("{self.node.input[unread[0]][:60]}") is none that a graph has')

    def unchanged(self, value: Value) -> Value:
        """Return the operand that the node hands on as it is: what else the node says then changes nothing."""
        self.attributes.asked.update(self.attributes)
        self._asked.update(range(self.count))
        return value

    @property
    def builder(self) -> GraphBuilder:
        """The graph as far as it is built."""
        return self._graph.builder

    @property
    def count(self) -> int:
        """How many operands are given, absent ones between them included."""
        return len(self.node.input)

    def has(self, index: int) -> bool:
        """Whether an operand is given."""
        self._asked.add(index)
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
            open_ones = self._graph.open_numbers(self.node.input[index])
            if open_ones is not None:
                numbers = open_ones.reshape(-1).tolist()
                shown = ", ".join(map(str, numbers))
                raise Unsupported(f"it takes the number {shown:.80}, which each run chooses", hint_of(*numbers))
            raise Unsupported(f'its operand {index} ("{self.node.input[index][:60]}") is not known beforehand')
        return found

    def decided(self, index: int, what: str, remedy: str) -> HostArray | None:
        """Return the numbers of an operand that decides something; ``None`` where it is absent.

        Errors: it depends on an input, and ``what`` with it; or on a symbolic dim.
        """
        name = self.node.input[index] if self.has(index) else ""
        if name and self._graph.known(name) is None and self._graph.open_numbers(name) is None:
            raise Unsupported(f'{what} depends on an input, by "{name[:60]}"', remedy)
        return self.known(index)

    def result(self, index: int) -> Result:
        """Return an operand: its tensors if it is a sequence, its numbers where they are known."""
        found = self._graph.sequence(self.node.input[index]) if self.has(index) else None
        return self.tensor(index) if found is None else found

    def tensor(self, index: int) -> Tensor:
        """Return an operand that is one tensor: its numbers where they are known."""
        known = self.known_or_none(index)
        return self.value(index) if known is None else known

    def sequence(self, index: int) -> TensorSequence:
        """Return an operand that is a sequence.  Errors: it is absent, or a tensor."""
        found = self._graph.sequence(self.node.input[index]) if self.has(index) else None
        if found is None:
            raise Unsupported(f"its operand {index} is no sequence")
        return found

    def number_or_value(self, index: int) -> Value | float:
        """Return an operand as a number, where it is one that is known and has no dims."""
        known = self.known_or_none(index)
        return self.value(index) if known is None or known.ndim or known.dtype.kind not in "fi" else known.item()

    def body(self, name: str) -> Body:
        """Return a graph that the node holds.  Errors: it holds none by this name."""
        found = next((item for item in self.node.attribute if item.name == name and item.HasField("g")), None)
        if found is None:
            raise Unsupported(f'it has no "{name}"')
        return self._graph.body(self.node, found.g)

    def inlined(self, body: Body, given: Sequence[Result]) -> list[Result]:
        """Write a body out on these operands, and return its results."""
        return self._graph.inlined(body, given)

    def as_value(self, tensor: Tensor) -> Value:
        """Return a value of the graph, numbers as a constant."""
        return tensor if isinstance(tensor, Value) else self._graph.constant(self.node.name, tensor)

    def known_or_none(self, index: int) -> HostArray | None:
        """Return the numbers of an operand where they are known."""
        return self._graph.known(self.node.input[index]) if self.has(index) else None

    def is_of_run(self, index: int) -> bool:
        """Whether an operand depends on an input of the model."""
        return self._graph.is_of_run(self.node.input[index])

    def numbers(self, index: int) -> HostArray:
        """Return the numbers of an operand, flat.  Errors: it is absent, empty, or depends on an input."""
        found = self.known(index)
        if found is None or not found.size:
            raise Unsupported(f"it lacks its operand {index}")
        return found.reshape(-1)

    def integers(self, index: int) -> list[int] | None:
        """Return the whole numbers of an operand; ``None`` where it is absent."""
        found = self.known(index)
        if found is not None and found.dtype.kind not in "iub":
            raise Unsupported(f"its operand {index} has no whole numbers")
        return None if found is None else [int(item) for item in found.reshape(-1)]

    def extents(self, index: int) -> list[Number]:
        """Return the sizes of an operand, open ones among them.  Errors: it is absent, or depends on an input."""
        found = self._graph.open_numbers(self.node.input[index]) if self.has(index) else None
        return list(self.sizes(index)) if found is None else cast("list[Number]", found.reshape(-1).tolist())

    def shape(self, value: Value) -> list[Number]:
        """Return the extents of a value, symbolic ones among them."""
        return self._graph.shape_of(value)

    def extent(self, value: Value, axis: int) -> int:
        """Return an extent that is one number.  Errors: the dim is symbolic."""
        found = self._graph.shape_of(value)[axis]
        if isinstance(found, OpenNumber):
            raise Unsupported(f"it needs to know how many elements {found} are, which each run chooses", hint_of(found))
        return found

    def written(self, extents: Sequence[Number]) -> list[int | str]:
        """Return extents as a graph writes them.  Errors: one is neither a number nor a product of dims."""
        found = [item.written() if isinstance(item, OpenNumber) else int(item) for item in extents]
        for text, item in zip(found, extents, strict=True):
            if text is None:
                raise Unsupported(f"the size {item} is known in a run only", hint_of(item))
        return [item for item in found if item is not None]

    def positions(self, dim: str) -> Value:
        """Return 0, 1, 2 ... as many as a symbolic dim has."""
        return self.add("cumsum", self.add("ones", size=[dim], dtype="int64"), dim=0) - 1

    def counted(self, number: Number) -> Value | int:
        """Return a number as one that ops compute with: open ones are values of the prologue."""
        return self._graph.number(number) if isinstance(number, OpenNumber) else number

    def sizes(self, index: int) -> list[int]:
        """Return the whole numbers of an operand.  Errors: it is absent, or depends on an input."""
        found = self.integers(index)
        if found is None:
            raise Unsupported(f"it lacks its operand {index}")
        return found

    def integer(self, name: str, otherwise: int) -> int:
        """Return an attribute that is a whole number."""
        return self._attribute(name, otherwise, int)

    def number(self, name: str, otherwise: float) -> float:
        """Return an attribute that is a number."""
        return self._attribute(name, otherwise, float)

    def text(self, name: str, otherwise: str) -> str:
        """Return an attribute that is a word."""
        return self._attribute(name, otherwise, str)

    def _attribute(self, name: str, otherwise: T, kind: type[T]) -> T:
        found = self.attributes.get(name, otherwise)
        if not isinstance(found, kind):
            raise Unsupported(f'its attribute "{name}" is {found!r:.40}, which is no {kind.__name__}')
        return found

    def list(self, name: str) -> list[int] | None:
        """Return an attribute that is a list of whole numbers."""
        found = self.attributes.get(name)
        if found is None:
            return None
        items = list(cast("Sequence[object]", found)) if isinstance(found, list) else [found]
        whole = [item for item in items if isinstance(item, int)]
        if len(whole) != len(items):
            raise Unsupported(f'its attribute "{name}" is no list of whole numbers')
        return whole

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
            hint = "write the model with int64, which holds them" if number in UNSIGNED else None
            raise Unsupported(f"a graph has no {name}", hint)
        return NARROWED.get(name, name)


def _attribute(item: AttributeProto) -> object:
    import onnx

    value = onnx.helper.get_attribute_value(item)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


_SAID_BY_OTHERS = frozenset(
    {"antialias", "cubic_coeff_a", "exclude_outside", "extrapolation_value", "hidden_size", "kernel_shape", "momentum",
     "nearest_mode", "output_dtype", "precision", "qk_matmul_output_mode", "round_mode", "saturate", "seed",
     "softmax_precision", "sorted", "spatial", "stash_type", "storage_order"}
)  # fmt: skip
"""Attributes that say what operands and results say, how a result is made, or something of another mode."""


_NOTHING_KEPT: Mapping[str, str] = {}
_NO_EXTENTS: Mapping[str, Number] = {}


class OnnxLowering:
    """One model on its way: values of the graph, and numbers that are known, by ONNX's names."""

    def __init__(
        self,
        model: OnnxModel,
        weights: dict[str, Weight],
        kept: Mapping[str, str] = _NOTHING_KEPT,
        extents: Mapping[str, Number] = _NO_EXTENTS,
        probe: Probe | None = None,
    ) -> None:
        """``extents``: of dims that the model names (``dim_param``), open ones with the bounds that they have.

        ``probe``: what each result is at other extents; it is needed where some are open.
        """
        self._kept = kept
        self.builder = GraphBuilder(legal_name(model.proto.graph.name or "graph"))
        self._extents = extents
        self._probe = probe
        self._open: dict[str, OpenNumber] = {}
        for number in extents.values():
            if isinstance(number, OpenNumber):
                ((name,),) = number.terms
                dim = number.dims[name]
                self._open[name] = number
                self.builder.dim(name, min=dim.minimum, max=dim.maximum, multiple_of=dim.multiple_of)
        self._counts: dict[str, Value] = {}
        self.made: dict[str, list[Made]] = {}
        self._model = model
        self._weights = weights
        self._values: dict[str, Value | None] = {}
        self._known: dict[str, HostArray] = {}
        self._sequences: dict[str, TensorSequence] = {}
        self._fed: set[str] = set()
        self._places: dict[str, ModelPlace] = {}
        self._inputs: list[SourceInput] = []
        self._problems: list[Problem] = []
        self._narrowed: dict[str, str] = {}
        self._unsigned = {
            tensor.name: DTYPES[tensor.data_type][0]
            for tensor in model.proto.graph.initializer
            if tensor.data_type in UNSIGNED
        }
        self._read = {item.name for item in model.proto.graph.output} | _read_names(model.proto.graph)
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
            if self.sequence(item.name) is not None:
                self._problems.append(
                    Problem("value", item.name, (), None, "it is a sequence, and outputs are tensors")
                )
                continue
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
        extents = [
            dim.dim_value if dim.HasField("dim_value") else read_open_size(dim.dim_param, self._extents)
            for dim in tensor.shape.dim
        ]
        shape = [found for extent in extents if (found := _named(extent)) is not None]
        if not carrier or len(shape) != len(extents):
            symbols = [dim.dim_param for dim in tensor.shape.dim if not dim.HasField("dim_value")]
            reason = f"a graph has no {name}" if not carrier else f"its dims {', '.join(symbols)} are symbolic"
            hint = None
            if carrier:
                one = symbols[0] or "NAME"
                hint = f"bind them: --dim {one}=EXTENT, or say which extents runs have: --dim {one}=MIN:MAX:MULTIPLE"
            self._problems.append(Problem("input", item.name, (name,), None, reason, hint))
            self._values[item.name] = None
            return
        dtype = NARROWED.get(name, name)
        value = self.builder.input(self.builder.free_name(legal_name(item.name)), shape, dtype)
        if dtype != name:
            self._narrowed[value.name] = name
        self._values[item.name] = value
        self._fed.add(item.name)
        self._inputs.append(SourceInput(value.name, "user", item.name))

    def is_of_run(self, name: str) -> bool:
        """Whether a name of the model stands for what depends on an input."""
        return name in self._fed

    def value(self, name: str) -> Value:
        """Return what a name of the model stands for, as a value of the graph."""
        found = self._values.get(name)
        if found is not None:
            return found
        if name in self._sequences:
            raise Unsupported(f'"{name[:60]}" is a sequence')
        open_ones = self.open_numbers(name)
        if open_ones is not None:
            made = self._of_run(open_ones)
        else:
            made = self._weight(name) if name in self._weights else self.constant(name, self._known[name])
        self._values[name] = made
        return made

    def _of_run(self, array: HostArray) -> Value:
        """Return open numbers as a value of the prologue, which counts the extents of the run."""
        items = [
            self.number(item) if isinstance(item, OpenNumber) else self.constant("", np.asarray(item, np.int64))
            for item in array.reshape(-1).tolist()
        ]
        if not array.ndim:
            return items[0]
        return self.builder.op("reshape", self.builder.op("stack", *items, dim=0), shape=list(array.shape))

    def number(self, number: OpenNumber) -> Value:
        """Return an open number as a value of the prologue: an extent is the sum of as many ones."""
        total: Value | None = None
        for names, factor in number.terms.items():
            part: Value | None = None
            for name in names:
                if name not in self._counts:
                    ones = self.builder.op("ones", size=[name], dtype="int64")
                    self._counts[name] = self.builder.op("sum", ones, dim=[0])
                part = self._counts[name] if part is None else part * self._counts[name]
            part = self.constant("", np.asarray(factor)) if part is None else part if factor == 1 else part * factor
            total = part if total is None else total + part
        assert total is not None
        return total

    def shape_of(self, value: Value) -> list[Number]:
        """Return the extents of a value, symbolic ones among them."""
        named = zip(value.dims, value.shape, strict=True)
        return [extent if name is None else self._open.get(name, extent) for name, extent in named]

    def constant(self, name: str, array: HostArray) -> Value:
        """Return numbers that are known as a value of the graph.  Errors: one is beyond 64 bits with a sign."""
        if array.dtype.kind == "u" and array.dtype.itemsize > 1:
            if array.size and int(array.max()) > _MOST_SIGNED:
                raise Unsupported(f"the number {int(array.max())} of {array.dtype.name} is beyond int64")
            array = array.astype(np.int64)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        return self.builder.constant(self.builder.free_name(legal_name(name or "known")), array, list(array.shape))

    def _weight(self, key: str) -> Value:
        """Return a weight: an input of the graph, or a constant where it is one number."""
        weight = self._weights[key]
        if key in self._unsigned:
            known = self.known(key)
            if known is None:
                raise Unsupported(f"a graph has no {self._unsigned[key]}", "write the tensor as int64")
            return self.constant(key, known)
        name = self.builder.free_name(legal_name(key))
        if not weight.shape and weight.dtype not in _BITS:
            return self.builder.constant(name, np.asarray(weight.read(), np.dtype(weight.dtype.carrier)), [])
        made = self.builder.input(name, weight.shape, weight.dtype)
        kind = "buffer" if self._is_small(weight) else "parameter"
        self._inputs.append(SourceInput(made.name, kind, key, key))
        return made

    def _is_small(self, weight: Weight) -> bool:
        return math.prod(weight.shape) <= _MOST_KNOWN

    def known(self, name: str) -> HostArray | None:
        """Return the numbers of a value that depends on no input, ``None`` where it does or has many."""
        weight = self._weights.get(name)
        if name not in self._known and weight is not None and self._is_small(weight) and weight.dtype not in _BITS:
            self._known[name] = weight.read()
        found = self._known.get(name)
        return None if found is None or found.dtype == object else found

    def open_numbers(self, name: str) -> HostArray | None:
        """Return numbers that are made of symbolic extents; ``None`` for what has none among its own."""
        found = self._known.get(name)
        return found if found is not None and found.dtype == object else None

    def sequence(self, name: str) -> TensorSequence | None:
        """Return the tensors of a sequence, ``None`` for what is none."""
        return self._sequences.get(name)

    def inferred(self, name: str) -> tuple[str, tuple[int, ...]] | None:
        """Return dtype and shape of a value as shape inference knows them."""
        item = self._types.get(name)
        if item is None or not item.type.tensor_type.HasField("shape"):
            return None
        tensor = item.type.tensor_type
        extents = tuple(dim.dim_value for dim in tensor.shape.dim if dim.HasField("dim_value"))
        name_of_type = DTYPES.get(tensor.elem_type, ("", ""))[0]
        return (name_of_type, extents) if len(extents) == len(tensor.shape.dim) and name_of_type else None

    def defaults(self, node: NodeProto) -> set[str]:
        """Return the attributes of a node that say what they say by default."""
        schema = schema_of(node, opset_of(self._model.proto))
        if schema is None:
            return set()
        given = {item.name: item for item in node.attribute}
        return {
            name
            for name, item in schema.attributes.items()
            if name in given and _attribute(given[name]) == _attribute(item.default_value)
        }

    def _is_lost(self, name: str) -> bool:
        return name in self._values and self._values[name] is None

    # --- graphs inside of nodes ---

    def body(self, node: NodeProto, graph: GraphProto) -> Body:
        """Take the weights of a graph that a node holds under keys of their own, and return both."""
        keys: dict[str, str] = {}
        for tensor in graph.initializer:
            key = f"{node.name or node.op_type}.{tensor.name}"
            while key in self._weights:
                key += "_"
            weight = weight_of(tensor, self._model)
            storage = hashlib.sha256(tensor.SerializeToString(deterministic=True)).digest()
            self._weights[key] = replace(weight, storage=storage)
            if tensor.data_type in UNSIGNED:
                self._unsigned[key] = DTYPES[tensor.data_type][0]
            keys[tensor.name] = key
        return Body(graph, keys)

    def inlined(self, body: Body, given: Sequence[Result]) -> list[Result]:
        """Write a body out on these operands; its own names mean nothing outside of it."""
        graph = body.graph
        if len(graph.input) != len(given):
            raise Unsupported(f"its body has {len(graph.input)} inputs, and {len(given)} are given")
        own = {item.name for item in graph.input} | body.keys.keys()
        own |= {name for node in graph.node for name in node.output}
        values, known = _taken(self._values, own), _taken(self._known, own)
        sequences = _taken(self._sequences, own)
        for item, result in zip(graph.input, given, strict=True):
            self._bind(item.name, result)
            if isinstance(result, Value | TensorSequence):
                self._fed.add(item.name)
        for name, key in body.keys.items():
            self._values[name] = self.value(key)
            numbers = self.known(key)
            if numbers is not None:
                self._known[name] = numbers
        for node in graph.node:
            self._lower(node)
        if self.builder.node_count > MOST_NODES:
            raise Unsupported(f"written out, it makes the model more than {MOST_NODES} nodes")
        is_lost = any(self._is_lost(item.name) for item in graph.output)
        results = [] if is_lost else [self._result(item.name) for item in graph.output]
        _taken(self._values, own)
        _taken(self._known, own)
        _taken(self._sequences, own)
        self._values.update(values)
        self._known.update(known)
        self._sequences.update(sequences)
        if is_lost:
            raise _LostError
        return results

    def _result(self, name: str) -> Result:
        if name in self._sequences:
            return self._sequences[name]
        known = self.known(name)
        return self.value(name) if known is None else known

    def _bind(self, name: str, result: Result) -> None:
        if isinstance(result, Value):
            self._values[name] = result
        elif isinstance(result, TensorSequence):
            self._sequences[name] = result
        else:
            self._known[name] = result

    # --- nodes ---

    def _lower(self, node: NodeProto) -> None:
        given = [name for name in node.input if name]
        if any(self._is_lost(name) for name in given):
            self._lose(node)
            return
        place = ModelPlace(node.name.strip("/").replace("/", "."), None, None, node.op_type)
        before = self.builder.node_count
        module = place.module.rpartition(".")[0]
        self.builder.within(legal_name(module) if module else "")
        try:
            self._take(node, self._lowered(node, given))
        except (Unsupported, SpyrecError, _LostError) as error:
            if isinstance(error, _LostError):
                self._lose(node)
            else:
                self._refuse(node, place, *reason_of(error))
            return
        for name in self.builder.node_names(before):
            self._places.setdefault(name, place)

    def _take(self, node: NodeProto, results: Sequence[Result]) -> None:
        """Take a node's results under the model's names, and hold them against what they are at other extents."""
        if any(item.HasField("g") for item in node.attribute) or not self._fed.isdisjoint(node.input):
            self._fed.update(filter(None, node.output))
        for name, result in zip(node.output, results, strict=False):
            if name:
                self._bind(name, result)
        for index, name in enumerate(node.output[len(results) :], len(results)):
            if name in self._read and name not in self._known:
                raise Unsupported(f'its result {index} ("{name[:60]}") is none that a graph has')
        for name in filter(None, node.output):
            made = self._made(name)
            places = self.made.setdefault(name, [])
            places.append(made)
            if self._probe is not None:
                shape = self.shape_of(made) if isinstance(made, Value) else [] if made is None else list(made.shape)
                followed = self._probe.lost_dims(name, len(places) - 1, made, shape)
                if followed is not None:
                    self._values[name] = self._with_dims(made, followed)

    def _with_dims(self, made: Made, shape: Sequence[int | str]) -> Value:
        """Return whole numbers and truths with dims whose names they have lost; the host computes them in a run."""
        if not isinstance(made, Value) or DType(made.dtype).is_float:
            names = [item for item in shape if isinstance(item, str)]
            fact = f'its result has the symbolic dim "{names[0]}", which a graph does not follow through it'
            raise Unsupported(fact, "bind it: " + " ".join(f"--dim {name}=N" for name in dict.fromkeys(names)))
        return self.builder.op("reshape", made, shape=list(shape))

    def _made(self, name: str) -> Made:
        if name in self._known:
            return self._known[name]
        return self._values.get(name)

    def _lowered(self, node: NodeProto, given: Sequence[str]) -> Sequence[Result]:
        """Return the results that the graph makes of a node, none where they are known.

        Errors: :class:`Unsupported`.
        """
        try:
            return () if self._is_known(node, given) else self._results(node)
        except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            # what the specification rules out is not checked operator by operator
            raise Unsupported(f"its operands and attributes do not fit together ({error!r:.120})") from None

    def _results(self, node: NodeProto) -> Sequence[Result]:
        """Return the results of a node by its operator.  Errors: :class:`Unsupported`."""
        from spyrec.frontends.onnx.operators import OPERATORS

        if node.domain not in ("", "ai.onnx", "ai.onnx.ml") and node.op_type not in self._kept:
            raise Unsupported(f'the domain "{node.domain}" is none that a graph knows')
        kind = self._kept.get(node.op_type, node.op_type)
        operator = operator_of(kind)
        if operator is None:
            raise Unsupported("a graph has no op for it")
        call = Call(self, node)
        results = operator(call)
        if kind in OPERATORS:
            call.refuse_unread()
        return results

    def _is_known(self, node: NodeProto, given: Sequence[str]) -> bool:
        """Compute a node whose operands are known, where its results are few."""
        if node.op_type == "Shape" and not self._is_static(node.input[0]):
            return False
        if node.op_type == "Constant":
            held = next((item.t for item in node.attribute if item.name == "value"), None)
            if held is not None and DTYPES.get(held.data_type, ("",))[0] in {dtype.value for dtype in _BITS}:
                self._weights[node.output[0]] = weight_of(held, self._model)
            else:
                self._known[node.output[0]] = _constant(node)
            return True
        if node.op_type in ("Shape", "Size"):
            attributes = Call(self, node).attributes
            begin, end = cast("int", attributes.get("start", 0)), cast("int | None", attributes.get("end"))
            shape = self._shape(node.input[0])
            found = np.asarray(shape[begin:end] if node.op_type == "Shape" else product(shape))
            self._known[node.output[0]] = found if found.dtype == object else found.astype(np.int64)
            return True
        arrays = {name: self.known(name) for name in given}
        if not given or node.domain not in ("", "ai.onnx"):
            return False
        if any(array is None for array in arrays.values()):
            return self._is_open(node, given)
        if node.op_type in CONTROL_FLOW or node.op_type in _DRAWS:
            return False
        inferred = self.inferred(node.output[0])
        if inferred is not None and math.prod(inferred[1]) > _MOST_KNOWN:
            return False
        if node.op_type in _GROWING and inferred is None and _grown_to(node, arrays) > _MOST_KNOWN:
            return False
        results = _evaluated(node, {name: array for name, array in arrays.items() if array is not None}, self._model)
        if results is None:
            return False
        self._known.update(results)
        return True

    def _is_open(self, node: NodeProto, given: Sequence[str]) -> bool:
        """Compute a node whose operands are known but for symbolic extents, where that can be followed."""
        found = [known if (known := self.known(name)) is not None else self.open_numbers(name) for name in given]
        arrays = [array for array in found if array is not None]
        if len(arrays) < len(found) or all(array.dtype != object for array in arrays):
            return False
        if sum(array.size for array in arrays) > _MOST_KNOWN or node.op_type in _GROWING:
            return False

        def evaluate(operands: dict[str, HostArray]) -> list[HostArray] | None:
            results = _evaluated(node, operands, self._model)
            return None if results is None else list(results.values())

        results = computed(node, arrays, evaluate)
        if results is None:
            return False
        self._known.update(zip([name for name in node.output if name], results, strict=True))
        return True

    def _is_static(self, name: str) -> bool:
        return self._values.get(name) is not None or name in self._weights or name in self._known

    def _shape(self, name: str) -> list[Number]:
        if name in self._known:
            return list(self._known[name].shape)
        weight = self._weights.get(name)
        return list(weight.shape) if weight is not None else self.shape_of(self.value(name))

    def _refuse(self, node: NodeProto, place: ModelPlace, reason: str, hint: str | None) -> None:
        dtypes = tuple(found.dtype for name in node.input if name and (found := self._values.get(name)) is not None)
        self._problems.append(Problem("op", node.op_type, dtypes, place, reason, hint))
        self._lose(node)

    def _lose(self, node: NodeProto) -> None:
        for name in node.output:
            if name:
                self._values[name] = None


def operator_of(kind: str) -> Callable[[Call], Sequence[Result]] | None:
    """Return what makes ops of a graph of an operator, ``None`` where nothing does."""
    from spyrec.frontends.onnx.operators import OPERATORS

    return CONTROL_FLOW.get(kind) or SEQUENCES.get(kind) or OPERATORS.get(kind)


def _named(extent: Number | None) -> int | str | None:
    """Return the extent of an input: a number, or one dim by name; ``None`` for anything else."""
    text = extent.written() if isinstance(extent, OpenNumber) else extent
    return None if isinstance(text, str) and "*" in text else text


def _read_names(graph: GraphProto) -> set[str]:
    """Return the names that nodes of a graph read, those of graphs inside of them too."""
    found: set[str] = set()
    for node in graph.node:
        found.update(filter(None, node.input))
        for item in node.attribute:
            if item.HasField("g"):
                found |= _read_names(item.g) | {output.name for output in item.g.output}
    return found


def _taken(table: dict[str, T], names: set[str]) -> dict[str, T]:
    """Take these names out of a table, and return what they had in it."""
    return {name: table.pop(name) for name in names if name in table}


_DRAWS = frozenset({"Bernoulli", "Multinomial", "RandomNormalLike", "RandomUniformLike"})
"""Operators whose results are no function of what is known."""

_GROWING = frozenset(
    {"CenterCropPad", "Col2Im", "ConstantOfShape", "Einsum", "Expand", "EyeLike", "OneHot", "Pad", "Range", "Resize",
     "Tile", "Upsample"}
)  # fmt: skip
"""Operators whose results may have more elements than all pairs of elements of their operands."""


def _grown_to(node: NodeProto, arrays: Mapping[str, HostArray | None]) -> float:
    """Return how many elements a growing operator makes of what is known; infinite where its rule is not here."""
    operands = [np.asarray(arrays[name]) for name in node.input if name]
    if node.op_type == "Range":
        start, end, step = (float(item.reshape(-1)[0]) for item in operands)
        return max(0.0, (end - start) / step) if step else math.inf
    if node.op_type in ("ConstantOfShape", "Expand", "Tile"):
        first = 1 if node.op_type == "ConstantOfShape" else operands[0].size
        return first * math.prod(max(int(item), 1) for item in operands[-1].reshape(-1))
    return math.inf


def _constant(node: NodeProto) -> HostArray:
    """Return the numbers of a ``Constant``."""
    import onnx

    for item in node.attribute:
        value = onnx.helper.get_attribute_value(item)
        if item.name == "value" and form_of(value.data_type):
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
