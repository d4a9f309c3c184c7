"""Operations of a ``.pt2`` file that torch alone does not have, found in the program's text before torch reads it.

torch fails at the first of them without saying its name.  What it would look up is held against a list: a name of a
file (``torch.os.system``) is otherwise an attribute of any module that torch imports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from spyrec.diagnostics import ModelPlace
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.frontends.model_import.source_graph import Problem
from spyrec.frontends.torch_export.archive import dtype_name
from spyrec.frontends.torch_export.walk import place_in

NAMESPACES = frozenset({
    "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "_inductor_test", "_native", "_quantized", "_test",
    "aten", "c10d", "c10d_functional", "debug_mode_ops", "debugprims", "export", "flex_lib", "fsdp", "higher_order",
    "inductor", "inductor_prims", "mkl", "mkldnn", "mkldnn_prepacked", "onednn", "onnx", "onnx_symbolic", "prim",
    "prims", "profiler", "quantization", "quantized", "rngprims", "sparse", "static_runtime", "streams", "symm_mem",
})  # fmt: skip
"""Namespaces of operations that torch registers itself; what of them a graph has, is told once torch has read them."""

FUNCTIONS = frozenset({
    "_operator.add", "_operator.and_", "_operator.eq", "_operator.floordiv", "_operator.ge", "_operator.getitem",
    "_operator.gt", "_operator.le", "_operator.lshift", "_operator.lt", "_operator.mod", "_operator.mul",
    "_operator.ne", "_operator.neg", "_operator.or_", "_operator.pos", "_operator.pow", "_operator.rshift",
    "_operator.sub", "_operator.truediv", "math.trunc", "torch._sym_sqrt", "torch.sym_float", "torch.sym_int",
    "torch.sym_ite", "torch.sym_max", "torch.sym_min", "torch.sym_not", "torch.sym_sqrt",
})  # fmt: skip
"""Functions of sizes that torch.export writes by their Python names (its ``_SYM_OPS``)."""

_OF_FILES = frozenset({"aten.from_file", "aten.save", "debugprims.load_tensor"})
"""Operations of torch that open files: a program may not have torch do so."""

_NAME = r"_?[A-Za-z0-9][A-Za-z0-9_]*"
_OPERATION = re.compile(rf"torch\.ops\.({_NAME})\.({_NAME}|__i?(?:and|or|xor|lshift|rshift)__)(?:\.{_NAME})?", re.ASCII)
_NESTING = re.compile(r"torch\._functorch\.predispatch\._?[a-z][a-z_]*", re.ASCII)
"""What torch.export writes of ``torch.vmap`` and its kind."""


def foreign_operations(program: JsonValue) -> tuple[Problem, ...]:
    """Return each call of an operation that torch alone does not have, in the program's order, inner graphs last.

    ``program``: the JSON of ``models/model.json``; what has not its form is left to torch.
    """
    graphs = [_at(_at(program, "graph_module"), "graph")]
    found: list[Problem] = []
    for graph in graphs:  # grows while it is read
        for node in _items(_at(graph, "nodes")):
            for operation in _called(node, graphs):
                why = _why_foreign(operation)
                if why is not None:
                    dtypes = tuple(_operand_dtypes(node, graph))
                    name = operation.removeprefix("torch.ops.")[:120]
                    found.append(Problem("op", name, dtypes, _place(node, name), *why, _text(_at(node, "name"))))
    return tuple(found)


def _why_foreign(operation: str) -> tuple[str, str] | None:
    """Return why torch alone cannot be asked for an operation, and what to do; ``None`` where it can be."""
    if operation in FUNCTIONS or _NESTING.fullmatch(operation):
        return None
    match = _OPERATION.fullmatch(operation)
    if match is None:
        return "it is no operation of PyTorch", "export the module again with torch.export.export and save it"
    namespace, name = match[1], match[2]
    if f"{namespace}.{name}" in _OF_FILES:
        return "it opens a file, which a program may not", "give the module the numbers as a buffer"
    if namespace in NAMESPACES:
        return None
    reason = f'torch does not have "{namespace}", whose library a file does not bring along'
    hint = (
        f"save program.run_decompositions() where the library takes it apart; or import the program from memory, with "
        f'keep_ops=["{namespace}::{name}=OP"] if it is one op of a graph; or write it with PyTorch\'s functions'
    )
    return reason, hint


def _called(node: JsonValue, graphs: list[JsonValue]) -> Iterator[str]:
    """Yield the operation that a node calls, and those among its arguments; ``graphs`` gets its inner graphs."""
    target = _at(node, "target")
    if isinstance(target, str):
        yield target
    held = [_at(node, "inputs")]
    for value in held:  # grows while it is read
        if isinstance(value, dict):
            operator = value.get("as_operator")
            if isinstance(operator, str):
                yield operator
            graphs.extend(_at(item, "graph") for key, item in value.items() if key == "as_graph")
            held.extend(item for key, item in value.items() if key != "as_graph")
        elif isinstance(value, list):
            held.extend(value)


def _operand_dtypes(node: JsonValue, graph: JsonValue) -> Iterator[str]:
    for item in _items(_at(node, "inputs")):
        argument = _at(item, "arg")
        for tensor in (_at(argument, "as_tensor"), *_items(_at(argument, "as_tensors"))):
            number = _at(_at(_at(graph, "tensor_values"), _text(_at(tensor, "name"))), "dtype")
            if isinstance(number, int):
                yield dtype_name(number)


def _place(node: JsonValue, operation: str) -> ModelPlace:
    """Return where in the model a node comes from; its modules stand as ``KEY,PATH,CLASS;...``, outermost first."""
    metadata = _at(node, "metadata")
    innermost = _text(_at(metadata, "nn_module_stack")).rpartition(";")[2].split(",")
    return place_in(innermost[1] if len(innermost) > 2 else "", _text(_at(metadata, "stack_trace")), operation)


def _at(value: JsonValue, key: str) -> JsonValue:
    return value.get(key) if isinstance(value, dict) else None


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
