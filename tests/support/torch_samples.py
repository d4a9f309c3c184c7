"""PyTorch's own samples of arguments as nodes of a graph: the arguments by name, then operands and attributes.

Needs torch.  A sample that says something a graph has no words for (a memory format, tensors in place of numbers, both
results of a pool) is left out (:class:`Untold`).
"""

from __future__ import annotations

import inspect
import math
import sys
import unittest
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from spyrec.ir.evaluate import evaluate
from spyrec.ir.opdef import Array, OpDef, catalogue
from spyrec.ir.reader import read_graph_data
from spyrec.ir.types import TensorType
from tests.support.graph_files import JsonObject, graph_data

# typed as Any: the project's type check runs without torch
torch: Any = import_module("torch")

Arguments = dict[str, Any]
"""Arguments of a call by the names of PyTorch's parameters."""


class Untold(Exception):
    """A sample that a graph has no words for."""


def op_infos() -> list[Any]:
    """Return PyTorch's records of its functions, each with samples.

    They lie beside PyTorch's tests, whose base class is of a package that nothing here needs.
    """
    if find_spec("expecttest") is None:
        absent = ModuleType("expecttest")
        vars(absent)["TestCase"] = unittest.TestCase
        sys.modules["expecttest"] = absent
    return list(import_module("torch.testing._internal.common_methods_invocations").op_db)


_OTHER_NAMES = {
    "linalg.vector_norm": "linalg_vector_norm",
    "nn.functional.grid_sample": "grid_sampler_2d",
    "torch.ops.aten.slice": "slice",
}
_OTHER_FUNCTIONS = frozenset({"nn.functional.unfold", "to_sparse"})
"""Functions that have the name of an op that is another one."""

_FAMILIES = ("masked.", "_refs", "linalg.", "fft.", "special.", "sparse.", "signal.")


def op_of(name: str) -> str | None:
    """Return the op of a graph that PyTorch's record of this name is of."""
    if name in _OTHER_NAMES:
        return _OTHER_NAMES[name]
    if name in _OTHER_FUNCTIONS or name.startswith(_FAMILIES):
        return None
    found = next((item for item in (name, name.rpartition(".")[2]) if item in catalogue()), None)
    return found if found is not None and catalogue()[found].is_public else None


def ops_of(info: Any) -> list[str]:  # noqa: ANN401 -- torch's
    """Return the ops of a graph that a record is of: its function's, and those of the function's other names."""
    found = [op_of(name) for name in (info.name, *(alias.name for alias in info.aliases))]
    return list(dict.fromkeys(op for op in found if op is not None))


# --- the names of arguments -------------------------------------------------------------------------------------------

_SAYS_NOTHING = frozenset(
    [
        *("compute_mode", "generator", "sparse_grad"),
        *("copy", "device", "layout", "memory_format", "non_blocking", "pin_memory", "requires_grad"),
    ]
)
"""Arguments of memory, of gradients and of how a thing is computed."""

_IN_ORDER = {
    "arange": "start end step",
    "empty": "size",
    "empty_like": "input",
    "eye": "n m",
    "full": "size fill_value",
    "full_like": "input fill_value",
    "linspace": "start end steps",
    "new_empty": "input size",
    "new_full": "input size fill_value",
    "new_ones": "input size",
    "new_zeros": "input size",
    "ones": "size",
    "ones_like": "input",
    "scalar_tensor": "s",
    "zeros": "size",
    "zeros_like": "input",
}
"""Functions whose records call them by wrappers that name nothing."""


def bound_to(name: str, op: str, values: Sequence[Any], keywords: Mapping[str, Any]) -> Arguments:
    """Return a call's arguments by name.  Errors: :class:`Untold`."""
    named = {key: value for key, value in keywords.items() if key not in _SAYS_NOTHING}
    special = _by_hand(name, op, values, named)
    if special is not None:
        return special
    if op in _IN_ORDER:
        order = _IN_ORDER[op].split()
        order = ["end"] if op == "arange" and len(values) == 1 else order
        return {**dict(zip(order, values)), **{key: value for key, value in named.items() if value is not None}}
    if name.startswith("nn.functional."):
        function = getattr(torch.nn.functional, name.rpartition(".")[2])
        try:
            return dict(inspect.signature(function).bind(*values, **named).arguments)
        except (TypeError, ValueError):  # it is compiled, and tells nothing of its parameters
            pass
    for entry in (op, name.rpartition(".")[2], name.replace(".", "_")):
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{entry}"):
            found = _by_schema(schema, values, named)
            if found is not None:
                return found
    raise Untold(f"no signature of {name} takes these arguments")


def _by_hand(name: str, op: str, values: Sequence[Any], named: Arguments) -> Arguments | None:
    """Return the arguments of functions whose order is another one in their records."""
    if op == "where":
        return {"condition": values[1], "input": values[0], "other": values[2]}
    if op in ("embedding", "embedding_bag"):
        order = inspect.signature(getattr(torch.nn.functional, op)).bind(values[1], values[0], *values[2:], **named)
        return dict(order.arguments)
    if op == "einsum":
        return {"operands": list(values[0]), "equation": values[1]}
    if op == "index_put":
        return {"input": values[0], "indices": [*values[1], values[2]], **named}
    if op == "scatter":
        source = named.pop("value", None) if len(values) == 3 else values[3]
        if source is not None:
            return {"input": values[0], "dim": values[1], "index": values[2], "src": source, **named}
    if op in ("cdist", "logsigmoid"):
        return dict(zip(("x1", "x2", "p") if op == "cdist" else ("input",), values))
    if name == "to":
        return {"input": values[0], "dtype": _dtype_among(values[1:], named) or values[0].dtype}
    if name == "nn.functional.grid_sample":
        return _grid(values, named)
    return _pool(op, values, named) if "max_pool" in op else None


def _dtype_among(values: Sequence[Any], named: Arguments) -> object:
    found = [item.dtype if isinstance(item, torch.Tensor) else item for item in (*values, *named.values())]
    return next((item for item in found if isinstance(item, torch.dtype)), None)


def _grid(values: Sequence[Any], named: Arguments) -> Arguments:
    return {
        "input": values[0],
        "grid": values[1],
        "interpolation_mode": ("bilinear", "nearest", "bicubic").index(named.get("mode", "bilinear")),
        "padding_mode": ("zeros", "border", "reflection").index(named.get("padding_mode", "zeros")),
        "align_corners": bool(named.get("align_corners")),
    }


def _pool(op: str, values: Sequence[Any], named: Arguments) -> Arguments:
    if named.get("return_indices") or (op.startswith("adaptive") and True in values[2:]):
        return {"input": values[0], "return_indices": True}
    plain = {key: value for key, value in named.items() if key != "return_indices"}
    order = "input output_size" if op.startswith("adaptive") else "input kernel_size stride padding dilation ceil_mode"
    return {**dict(zip(order.split(), values)), **plain}


def _by_schema(schema: Any, values: Sequence[Any], named: Arguments) -> Arguments | None:  # noqa: ANN401 -- torch's
    """Return a call's arguments by the names of one signature, ``None`` where they are not its own."""
    parameters = schema.arguments
    if any(parameter.is_out for parameter in parameters):
        return None
    placed = [parameter for parameter in parameters if not parameter.kwarg_only]
    given = list(values)
    if len(given) > len(placed):
        if not placed or "List[int]" not in str(placed[-1].type):
            return None
        given = [*given[: len(placed) - 1], tuple(given[len(placed) - 1 :])]  # x.permute(2, 0, 1)
    by_name = {parameter.name: parameter for parameter in parameters}
    found = {parameter.name: value for parameter, value in zip(placed, given)}
    for key, value in named.items():
        known = {"input": "self", "axis": "dim", "keepdims": "keepdim"}.get(key, key) if key not in by_name else key
        if known in found:
            return None
        found[known] = value
    is_right = all(key in by_name and _fits(str(by_name[key].type), value) for key, value in found.items())
    is_whole = all(item.name in found or item.has_default_value() for item in parameters)
    return found if is_right and is_whole else None


def _fits(kind: str, value: Any) -> bool:  # noqa: ANN401 -- any argument of torch's
    """Return whether a value may stand where a signature says ``Optional[Tensor]``, ``List[int]``, ``number``, ..."""
    if value is None:
        return "Optional" in kind
    if isinstance(value, torch.Tensor):
        return "Tensor" in kind and "List" not in kind
    if is_list(value):
        return "List" in kind and ("Tensor" in kind) == any(_tensors_in(value))
    if isinstance(value, str):
        return "str" in kind
    if "List[int]" in kind:  # one number for every dim
        return isinstance(value, int)
    if isinstance(value, float):
        return "float" in kind or "number" in kind
    return any(word in kind for word in ("int", "bool", "number", "float", "Scalar"))


# --- nodes ------------------------------------------------------------------------------------------------------------

_FLOATS = {"torch.float64": "float32"}
"""Graphs have no float64: float32 stands for it, and the float64 numbers of references are not rounded to it."""


def dtype_name(dtype: object) -> str:
    """Return the dtype of a graph that stands for one of PyTorch's."""
    return _FLOATS.get(str(dtype), str(dtype).removeprefix("torch."))


@dataclass(frozen=True, slots=True)
class Call:
    """One node with its attributes, and the tensors that it reads by name."""

    op: str
    inputs: list[object]
    attributes: JsonObject
    tensors: dict[str, Any]

    def results(self, count: int) -> list[tuple[TensorType, Array]]:
        """Return types and float64, int64 or bool numbers of the ``count`` results.  Errors: those of the reader."""
        names = [f"r{index}" for index in range(count)]
        node: JsonObject = {"name": names[0], "op": self.op, "inputs": self.inputs, "attrs": self.attributes}
        if count != 1 or catalogue()[self.op].result_count != 1:
            node["outputs"] = names
        inputs: list[JsonObject] = [
            {"name": name, "shape": list(item.shape), "dtype": dtype_name(item.dtype)}
            for name, item in self.tensors.items()
        ]
        graph = read_graph_data(graph_data(inputs, [node], names))
        found = evaluate(graph, {name: numbers_of(item) for name, item in self.tensors.items()})
        return [(graph.type_of(name), found[name]) for name in names]

    def __str__(self) -> str:
        given = [f"{dtype_name(item.dtype)}{list(item.shape)}" for item in self.tensors.values()]
        return f"{self.op}({', '.join(given)}; inputs {self.inputs}, {self.attributes})"


def numbers_of(item: Any) -> Array:  # noqa: ANN401 -- a tensor of torch's
    """Return a tensor as float64, or in its own integers or bools."""
    plain = item.detach().resolve_conj().resolve_neg()
    return np.asarray(plain.to(torch.float64).numpy() if plain.is_floating_point() else plain.numpy())


def call_of(op: str, arguments: Arguments) -> Call:
    """Return a call as a node: tensors, and numbers in their places, are operands, what is not None an attribute.

    Errors: :class:`Untold`.
    """
    return _Writer(catalogue()[op]).call(arguments)


class _Writer:
    def __init__(self, definition: OpDef) -> None:
        self._definition = definition
        self._names = [spec.name for spec in definition.operands]
        self._tensors: dict[str, Any] = {}

    def call(self, arguments: Arguments) -> Call:
        places: dict[str, list[object]] = {}
        attributes: JsonObject = {}
        for position, (parameter, value) in enumerate(arguments.items()):
            name = "input" if parameter == "self" else parameter
            has_tensor = isinstance(value, torch.Tensor) or any(_tensors_in(value))
            if position == 0 and has_tensor and name not in self._names and self._names:
                name = self._names[0]
            if has_tensor:
                places[self._place(name, places, arguments)] = self._operands(value)
            elif value is not None and self._is_number_operand(name, value):
                places[name] = [_written(value)]
            elif value is not None:
                attributes[name] = _written(value)
        last = max((index for index, name in enumerate(self._names) if name in places), default=-1)
        inputs = [item for name in self._names[: last + 1] for item in places.get(name, [None])]
        return Call(self._definition.name, inputs, attributes, self._tensors)

    def _place(self, name: str, places: Mapping[str, object], arguments: Arguments) -> str:
        """Return the operand that a parameter is, by name, else the next one that is free."""
        if name in self._names:
            return name
        if self._definition.is_variadic and not places:
            return self._names[-1]
        free = [item for item in self._names if item not in places and item not in arguments]
        if not free:
            raise Untold(f"a tensor as {name}")
        return free[0]

    def _operands(self, value: Any) -> list[object]:  # noqa: ANN401 -- a tensor, or several
        items = list(value) if is_list(value) else [value]
        if len(items) > 1 and not self._definition.is_variadic:
            raise Untold("several tensors as one operand")
        return [self._tensor(item) if isinstance(item, torch.Tensor) else _written(item) for item in items]

    def _tensor(self, item: Any) -> str:  # noqa: ANN401 -- torch's
        if item.is_complex() or item.layout is not torch.strided:
            raise Untold("complex numbers, or a sparse tensor")
        name = f"t{len(self._tensors)}"
        self._tensors[name] = item
        return name

    def _is_number_operand(self, name: str, value: object) -> bool:
        is_operand = name in self._names and self._definition.operand_spec(self._names.index(name)).accepts_number
        return is_operand and isinstance(value, int | float)


def is_list(value: Any) -> bool:  # noqa: ANN401 -- any argument of torch's
    """Whether a value is a list or a tuple; what is in it stays unknown to the type check."""
    return isinstance(value, list | tuple)


def _tensors_in(value: Any) -> Iterator[bool]:  # noqa: ANN401 -- any argument of torch's
    """Yield for each item of a list whether it is a tensor, of anything else nothing."""
    if is_list(value):
        yield from (isinstance(item, torch.Tensor) for item in value)


def _written(value: Any) -> object:  # noqa: ANN401 -- any argument of torch's
    """Return an argument as a graph file holds it.  Errors: :class:`Untold`."""
    if isinstance(value, torch.dtype):
        return dtype_name(value)
    if is_list(value):
        return [_written(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise Untold("a number that is none")
        return "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise Untold(f"an argument of {type(value)}")
