"""Operations of a ``.pt2`` file that torch alone does not have, found in the program's text before torch reads it.

torch fails at the first of them without saying its name.  What a name may be stands in ``inert.py``, which holds the
same list against all that torch would call.
"""

from __future__ import annotations

from collections.abc import Iterator

from spyrec.diagnostics import ModelPlace
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.frontends.model_import.source_graph import Problem
from spyrec.frontends.torch_export.archive import dtype_name
from spyrec.frontends.torch_export.inert import why_foreign
from spyrec.frontends.torch_export.walk import place_in


def foreign_operations(program: JsonValue) -> tuple[Problem, ...]:
    """Return each call of an operation that torch alone does not have, in the program's order, inner graphs last.

    ``program``: the JSON of ``models/model.json``; what has not its form is left to torch.
    """
    graphs = [_at(_at(program, "graph_module"), "graph")]
    found: list[Problem] = []
    for graph in graphs:  # grows while it is read
        for node in _items(_at(graph, "nodes")):
            for operation in _called(node, graphs):
                why = why_foreign(operation)
                if why is not None:
                    dtypes = tuple(_operand_dtypes(node, graph))
                    name = operation.removeprefix("torch.ops.")[:120]
                    found.append(Problem("op", name, dtypes, _place(node, name), *why, _text(_at(node, "name"))))
    return tuple(found)


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
