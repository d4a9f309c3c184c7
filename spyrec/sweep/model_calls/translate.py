"""A call as a graph file's object: one node as a rule, a few where the name stands for a chain of methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import EllipsisType

from spyrec.dataclass import dataclass
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.dtypes import DType
from spyrec.ir.opdef import catalogue
from spyrec.sweep.model_calls.arguments import tensors_of
from spyrec.sweep.model_calls.cases import Argument, Slice, Tensor
from spyrec.sweep.model_calls.signatures import UnknownCall

Bound = Mapping[str, Argument]

_HAS_NO_SAY = {
    "dropout": "inplace",
    "embedding": "padding_idx max_norm norm_type scale_grad_by_freq sparse",
    "silu": "inplace",
}
"""Arguments that the lists give and that say nothing of a result: of gradients, of memory, with the value None."""

_ATTRIBUTE_NAMES = {("view", "shape"): "size"}
_ARITHMETIC = ("add", "sub", "mul", "div")


@dataclass(slots=True)
class GraphText:
    """A graph file's object that grows node by node."""

    bound: Bound
    nodes: list[dict[str, JsonValue]] = field(default_factory=list[dict[str, JsonValue]])
    constants: list[dict[str, JsonValue]] = field(default_factory=list[dict[str, JsonValue]])

    def add(
        self,
        op: str,
        inputs: Sequence[JsonValue],
        attributes: Mapping[str, JsonValue] | None = None,
        results: int | None = None,
    ) -> list[str]:
        """Append a node and return the names of its results; ``results`` says how many of a list."""
        name = f"n{len(self.nodes)}"
        node: dict[str, JsonValue] = {"name": name, "op": op, "inputs": list(inputs)}
        if attributes:
            node["attrs"] = dict(attributes)
        names = [name]
        if results is not None:
            names = [f"{name}_{index}" for index in range(results)]
            node["outputs"] = list[JsonValue](names)
        self.nodes.append(node)
        return names

    def constant(self, shape: Sequence[int], dtype: str, value: JsonValue) -> str:
        """Append a constant and return its name."""
        name = f"c{len(self.constants)}"
        self.constants.append({"name": name, "shape": list[JsonValue](shape), "dtype": dtype, "value": value})
        return name

    def text(self, outputs: Sequence[str]) -> dict[str, JsonValue]:
        """Return the whole object."""
        inputs: list[JsonValue] = [
            {"name": name, "shape": list[JsonValue](tensor.shape), "dtype": tensor.dtype.value}
            for name, tensor in tensors_of(self.bound).items()
        ]
        return {
            "format": "spyrec.graph/1",
            "name": "call",
            "inputs": inputs,
            "constants": list[JsonValue](self.constants),
            "nodes": list[JsonValue](self.nodes),
            "outputs": list[JsonValue](outputs),
        }


def computes_nothing(name: str, bound: Bound) -> bool:
    """Whether a call makes no tensor: a usage counter, a literal without numbers."""
    return name == "nothing" or (name == "tensor" and "data" not in bound)


def completed(name: str, bound: Mapping[str, Argument]) -> Mapping[str, Argument]:
    """Return a call with what a list leaves out though PyTorch cannot do without it."""
    if name == "grouped_mm" and "offs" not in bound:  # one end for each matrix
        return {**bound, "offs": Tensor((_tensor(bound, "mat_b").shape[0],), DType.INT32)}
    if name == "cat" and "dim" not in bound:  # the dim along which the parts differ
        shapes = [tensor.shape for tensor in tensors_of(bound).values() if tensor.shape != (0,)]
        differing = [axis for axis, extents in enumerate(zip(*shapes)) if len(set(extents)) > 1]
        return {**bound, "dim": differing[0] if differing else 0}
    return bound


def _tensor(bound: Mapping[str, Argument], name: str) -> Tensor:
    found = bound[name]
    assert isinstance(found, Tensor)
    return found


def graph_of(name: str, bound: Bound) -> tuple[dict[str, JsonValue], list[str]]:
    """Return a call of the public function ``name`` as a graph, and the names of its outputs in order."""
    graph = GraphText(bound)
    special = _SPECIAL.get(name)
    outputs = special(graph, bound) if special is not None else _plain(graph, name, bound)
    return graph.text(outputs), outputs


def _plain(graph: GraphText, name: str, bound: Bound) -> list[str]:
    """Write the call as it is: tensors, and numbers in their places, are inputs, all else attributes."""
    definition = catalogue().get(name)
    operands = [spec.name for spec in definition.operands] if definition is not None else []
    ignored = _HAS_NO_SAY.get(name, "").split()
    inputs: list[JsonValue] = []
    attributes: dict[str, JsonValue] = {}
    for parameter, value in _in_order(bound, operands):
        if isinstance(value, Tensor):
            inputs.append(_as_common(graph, name, parameter, bound))
        elif isinstance(value, tuple) and any(isinstance(item, Tensor) for item in value):
            inputs.extend(f"{parameter}_{index}" for index in range(len(value)))
        elif parameter in operands or (definition is None and name in _ARITHMETIC):
            inputs.append(_json(value))
        elif parameter not in ignored and value is not None:
            attributes[_ATTRIBUTE_NAMES.get((name, parameter), parameter)] = _json(value)
    count = _result_count(name, bound)
    is_list = count > 1 or (definition is not None and definition.result_count != 1)
    return graph.add(name, inputs, attributes, count if is_list else None)


def _result_count(name: str, bound: Bound) -> int:
    """Return how many tensors a call returns."""
    match name:
        case "meshgrid":
            return len(tensors_of(bound))
        case "split":
            sizes = bound["split_size"]
            return len(sizes) if isinstance(sizes, tuple) else -(-_extent(bound) // max(1, _whole(sizes)))
        case "chunk":
            extent = _extent(bound)
            size = max(1, -(-extent // max(1, _whole(bound["chunks"]))))
            return max(1, -(-extent // size))
        case "sort" | "topk":
            return 2
        case "max" if "dim" in bound:
            return 2
        case _:
            return 1


def _extent(bound: Bound) -> int:
    return tensors_of(bound)["input"].shape[_whole(bound.get("dim", 0))]


def _whole(value: Argument) -> int:
    if not isinstance(value, int):
        raise UnknownCall(f"{value!r} is no integer")
    return value


def _in_order(bound: Bound, operands: Sequence[str]) -> list[tuple[str, Argument]]:
    """Return the arguments, operands first in their order, ``None`` for one that is absent before others."""
    last = max((index for index, name in enumerate(operands) if name in bound), default=-1)
    first = [(name, bound.get(name)) for name in operands[: last + 1]]
    return first + [(name, value) for name, value in bound.items() if name not in operands]


def _as_common(graph: GraphText, name: str, parameter: str, bound: Bound) -> str:
    """Return the name of an operand in the dtype that PyTorch computes in; a graph states the conversion."""
    tensors = tensors_of(bound)
    floats = {tensor.dtype for tensor in tensors.values() if tensor.dtype.is_float}
    if name not in _ARITHMETIC or len(floats) < 2 or tensors[parameter].dtype is DType.FLOAT32:
        return parameter
    return graph.add("to", [parameter], {"dtype": DType.FLOAT32.value})[0]


def _json(value: Argument) -> JsonValue:
    if isinstance(value, DType):
        return value.value
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    assert value is None or isinstance(value, int | float | str), value
    return value


# --- names that are no op of a graph ---

Special = Callable[[GraphText, Bound], list[str]]


def _cast(graph: GraphText, source: str, dtype: DType) -> list[str]:
    return graph.add("to", [source], {"dtype": dtype.value})


def target_dtype(bound: Bound) -> DType:
    """Return the dtype that ``to`` converts to: one among its arguments, or that of the tensor (a device is asked)."""
    found = next((value for value in bound.values() if isinstance(value, DType)), None)
    given = bound["input"]
    assert isinstance(given, Tensor)
    return found or given.dtype


def _to(graph: GraphText, bound: Bound) -> list[str]:
    return _cast(graph, "input", target_dtype(bound))


def _type_as(graph: GraphText, bound: Bound) -> list[str]:
    return _cast(graph, "input", tensors_of(bound)["other"].dtype)


def _copy(graph: GraphText, bound: Bound) -> list[str]:
    return _cast(graph, "source", tensors_of(bound)["input"].dtype)


def _like_other(op: str) -> Special:
    def write(graph: GraphText, bound: Bound) -> list[str]:
        return graph.add(op, ["input"], {"size": list[JsonValue](tensors_of(bound)["other"].shape)})

    return write


def _filled(number: float) -> Special:
    """Return what writes a tensor of one number: that of the call, or this one."""

    def write(graph: GraphText, bound: Bound) -> list[str]:
        asked = next((value for value in bound.values() if isinstance(value, DType)), None)
        given = bound.get("input")
        if isinstance(given, Tensor):
            asked = asked or given.dtype
        dtype = asked or DType.FLOAT32
        size = bound.get("size")
        shape = (
            given.shape if size is None and isinstance(given, Tensor) else size if isinstance(size, tuple) else (size,)
        )
        value = bound.get("fill_value", number)
        assert isinstance(value, int | float)
        filled: JsonValue = (
            _json(float(value)) if dtype.is_float else bool(value) if dtype is DType.BOOL else int(value)
        )
        sizes: list[JsonValue] = [_json(extent) for extent in shape]
        return graph.add("full", [], {"size": sizes, "fill_value": filled, "dtype": dtype.value})

    return write


def _tensor_literal(graph: GraphText, bound: Bound) -> list[str]:
    data = bound["data"]
    numbers = data if isinstance(data, tuple) else (data,)
    return graph.add("clone", [graph.constant((len(numbers),), "int64", _json(numbers))])


def _sum_of_sizes(graph: GraphText, bound: Bound) -> list[str]:
    values = bound["args"]
    assert isinstance(values, tuple)
    total = graph.constant((), "int64", _json(values[0]))
    for value in values[1:]:
        total = graph.add("add", [total, graph.constant((), "int64", _json(value))])[0]
    return [total]


def _clone(graph: GraphText, _: Bound) -> list[str]:
    return graph.add("clone", ["input"])


def _getitem(graph: GraphText, bound: Bound) -> list[str]:
    """``x[a, :, 2:5, None]`` is select, slice and unsqueeze, axis by axis; index tensors are ``index``."""
    if "index" not in bound:
        return graph.add("clone", ["input"])
    index = bound["index"]
    if isinstance(bound["input"], tuple):  # one of several results
        return graph.add("clone", [f"input_{result_index(bound)}"])
    if isinstance(index, Tensor):
        return graph.add("index", ["input", "index"])
    items = index if isinstance(index, tuple) else (index,)
    if any(isinstance(item, Tensor) for item in items):
        return graph.add("index", ["input", *(f"index_{number}" for number in range(len(items)))])
    return [_basic_index(graph, items, len(tensors_of(bound)["input"].shape))]


def _basic_index(graph: GraphText, items: tuple[Argument, ...], rank: int) -> str:
    whole = Slice(None, None, None)
    taken = sum(item is not None and item is not ... for item in items)
    place = items.index(...) if ... in items else len(items)
    rest: tuple[Argument, ...] = (whole,) * (rank - taken)
    name, axis = "input", 0
    for item in (*items[:place], *rest, *items[place + 1 :]):
        assert not isinstance(item, EllipsisType)
        if item is None:
            (name,) = graph.add("unsqueeze", [name], {"dim": axis})
        elif isinstance(item, int):
            (name,) = graph.add("select", [name], {"dim": axis, "index": item})
            axis -= 1
        else:
            assert isinstance(item, Slice)
            if item != whole:
                attributes = {"dim": axis, "start": item.start, "end": item.stop, "step": item.step}
                kept: dict[str, JsonValue] = {key: value for key, value in attributes.items() if value is not None}
                (name,) = graph.add("slice", [name], kept)
        axis += 1
    return name if graph.nodes else graph.add("clone", [name])[0]


def result_index(bound: Bound) -> int:
    """Return which of several results a call takes; lists that name fewer of them mean the last."""
    results, index = bound["input"], bound["index"]
    assert isinstance(results, tuple)
    assert isinstance(index, int)
    return min(index, len(results) - 1)


def _setitem(graph: GraphText, bound: Bound) -> list[str]:
    assert isinstance(bound["index"], Tensor)
    return graph.add("index_put", ["input", "index", "value"])


_SPECIAL: dict[str, Special] = {
    "as_tensor": _clone,
    "copy": _copy,
    "empty_like": _filled(0),
    "expand_as": _like_other("expand"),
    "float": lambda graph, _: _cast(graph, "input", DType.FLOAT32),
    "full": _filled(0),
    "getitem": _getitem,
    "long": lambda graph, _: _cast(graph, "input", DType.INT64),
    "new_ones": _filled(1),
    "ones": _filled(1),
    "setitem": _setitem,
    "sym_sum": _sum_of_sizes,
    "tensor": _tensor_literal,
    "to": _to,
    "type_as": _type_as,
    "view_as": _like_other("view"),
    "zeros": _filled(0),
    "zeros_like": _filled(0),
}
