"""Walks an exported program and writes down what its operations are called with: the one reader of torch's graphs.

Which operations are kept whole is derived from the catalogue: what a graph has is kept, all else is taken apart by
PyTorch's own decompositions, as far as there are some.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, cast

from spyrec.diagnostics import ModelPlace
from spyrec.frontends.torch_export.encoder_layer import decompositions
from spyrec.frontends.torch_export.higher_order import without_wrong_assertions, write_out
from spyrec.frontends.torch_export.kept import is_kept, qualified
from spyrec.frontends.torch_export.traced import (
    Argument,
    Size,
    Tensor,
    TracedInput,
    TracedNode,
    TracedOutput,
    TracedProgram,
    TracedTensor,
    Type,
)

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram
    from torch.fx import Node

_KINDS = {"PARAMETER": "parameter", "BUFFER": "buffer", "CONSTANT_TENSOR": "constant", "USER_INPUT": "user"}
_FRAME = re.compile(r'File "([^"]*)", line ([0-9]{1,9})')
_LIBRARY = re.compile(r".*/(?:site|dist)-packages/")
_OWN_FRAMES = re.compile(r"torch/(?:nn/modules|_|utils|export|fx)")


def walk(program: ExportedProgram, bound: Mapping[str, int | None], kept: Collection[str] = ()) -> TracedProgram:
    """Return an exported program as data.

    ``bound``: the extents of symbolic dims by name (``S``) or symbol (``s0``), ``None`` for one that stays symbolic, as
    do the others.  The only dim of a program that has lost its name, as a file has, takes the one that is given.
    ``kept``: operations, ``namespace.name``, that are not taken apart whatever the catalogue has.
    """
    return walk_decomposed(program, decomposed(program, kept), bound)


def walk_decomposed(program: ExportedProgram, made: ExportedProgram, bound: Mapping[str, int | None]) -> TracedProgram:
    """Return as data what :func:`decomposed` made of a program, with the program's own names; else as :func:`walk`."""
    return _Walk(made, bound, own_names(program, made)).program()


def decomposed(program: ExportedProgram, kept: Collection[str] = ()) -> ExportedProgram:
    """Return a program without mutation, in which what the catalogue does not have is taken apart; ``kept`` is not."""
    from torch.export import default_decompositions

    table = {**default_decompositions(), **decompositions()}
    for overload in list(table):
        name = qualified(str(overload))
        if name in kept or (name.startswith("aten.") and is_kept(name.removeprefix("aten."))):
            del table[overload]
    return functional(program, table)


def functional(program: ExportedProgram, table: MutableMapping[object, object]) -> ExportedProgram:
    """Return a program without mutation, taken apart by a table, in which graphs in graphs are written out."""
    return write_out(without_wrong_assertions(program).run_decompositions(table))


def own_names(program: ExportedProgram, made: ExportedProgram) -> dict[str, str]:
    """Return the names that a program has for its weights and buffers, by those that they have in what it became.

    Taking a program apart names them anew, after where they are held; whoever looks into its signature finds the old
    ones.
    """
    taken = {node.name for node in made.graph.nodes}
    names = {(spec.kind, spec.target): getattr(spec.arg, "name", "") for spec in program.graph_signature.input_specs}
    found: dict[str, str] = {}
    for spec in made.graph_signature.input_specs:
        name = getattr(spec.arg, "name", "")
        own = names.get((spec.kind, spec.target), name) if spec.target is not None else name
        if own != name and own not in taken:
            found[name] = own
    return found


class _Walk:
    def __init__(
        self, program: ExportedProgram, bound: Mapping[str, int | None], renamed: Mapping[str, str] | None = None
    ) -> None:
        self._program = program
        self._renamed = renamed or {}
        self._bound = bound
        self._names = _with_given_name(_dim_names(program), bound)
        self._nodes = list(program.graph.nodes)

    def program(self) -> TracedProgram:
        """Return the whole program."""
        placeholders = {node.name: node for node in self._nodes if node.op == "placeholder"}
        nodes = tuple(self._traced())
        return TracedProgram(
            "graph",
            tuple(self._inputs(placeholders)),
            nodes,
            tuple(self._outputs()),
            self._symbols(),
            {symbol: name for symbol, name in self._names.items() if symbol in self._free_symbols()},
        )

    # --- inputs and outputs ---

    def _inputs(self, placeholders: Mapping[str, Node]) -> Iterator[TracedInput]:
        for spec in self._program.graph_signature.input_specs:
            name = getattr(spec.arg, "name", "")
            node = placeholders.get(name)
            found = None if node is None else self._type_of(node.meta.get("val"))
            if node is None or found is None:
                continue  # a number or None that the program was exported with
            kind = _KINDS.get(spec.kind.name, spec.kind.name.lower())
            yield TracedInput(self._renamed.get(name, name), kind, found, spec.target)

    def _outputs(self) -> Iterator[TracedOutput]:
        user: list[TracedOutput] = []
        changed: list[TracedOutput] = []
        names = {spec.target: getattr(spec.arg, "name", "") for spec in self._program.graph_signature.input_specs}
        keys = {target: self._renamed.get(name, name) for target, name in names.items()}
        result = next(node for node in self._nodes if node.op == "output")
        values = cast("Sequence[object]", result.args[0])
        for spec, value in zip(self._program.graph_signature.output_specs, values, strict=True):
            argument = self._argument(value)
            if spec.kind.name == "USER_OUTPUT":
                user.append(TracedOutput(argument))
            else:
                target = spec.target or ""
                changed.append(TracedOutput(argument, keys.get(target, target)))
        yield from (*user, *changed)

    # --- symbolic dims ---

    def _free_symbols(self) -> set[str]:
        found: set[str] = set()
        for node in self._nodes:
            value = node.meta.get("val")
            for extent in getattr(value, "shape", ()):
                found.update(_symbols_of(extent))
        return {name for name in found if self._bound_value(name) is None}

    def _bound_value(self, symbol: str) -> int | None:
        by_name = self._bound.get(self._names.get(symbol, symbol))
        return self._bound.get(symbol) if by_name is None else by_name

    def _symbols(self) -> dict[str, tuple[int, int, int]]:
        result: dict[str, tuple[int, int, int]] = {}
        ranges = {str(symbol): bounds for symbol, bounds in self._program.range_constraints.items()}
        for symbol in sorted(self._free_symbols()):
            bounds = ranges.get(symbol)
            least, most = (1, 2**31) if bounds is None else (_whole(bounds.lower, 1), _whole(bounds.upper, 2**31))
            result[symbol] = (max(least, 1), most, 1)
        return result

    def _size(self, value: object) -> int | Size:
        """Return a size: a number where all its symbols are bound."""
        expression = getattr(getattr(value, "node", None), "expr", value)
        symbols = {str(symbol): symbol for symbol in getattr(expression, "free_symbols", ())}
        known = {symbol: self._bound_value(name) for name, symbol in symbols.items()}
        replaced = expression.subs({symbol: number for symbol, number in known.items() if number is not None})  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        return int(replaced) if getattr(replaced, "is_number", False) else Size(str(replaced))  # pyright: ignore[reportUnknownArgumentType]

    # --- nodes ---

    def _traced(self) -> Iterator[TracedNode]:
        parts: dict[str, dict[int, str]] = {}
        for node in self._nodes:
            if node.op == "call_function" and node.target is operator.getitem:
                source, index = node.args
                parts.setdefault(cast("Node", source).name, {})[cast("int", index)] = node.name
        for node in self._nodes:
            if node.op == "call_function" and node.target is not operator.getitem:
                yield self._node(node, parts.get(node.name, {}))

    def _node(self, node: Node, parts: Mapping[int, str]) -> TracedNode:
        schema = getattr(node.target, "_schema", None)
        arguments: dict[str, Argument] = {}
        defaulted: set[str] = set()
        if schema is None:
            arguments = {f"argument_{index}": self._argument(value) for index, value in enumerate(node.args)}
        else:
            for index, parameter in enumerate(schema.arguments):
                if index < len(node.args):
                    given: object = node.args[index]
                elif parameter.name in node.kwargs:
                    given = node.kwargs[parameter.name]
                else:
                    given = parameter.default_value if parameter.has_default_value() else None
                if parameter.has_default_value() and given == parameter.default_value:
                    defaulted.add(parameter.name)
                is_dtype = "dtype" in parameter.name and isinstance(given, int) and not isinstance(given, bool)
                arguments[parameter.name] = None if is_dtype else self._argument(given)
        value = node.meta.get("val")
        if isinstance(value, list | tuple):
            items = cast("Sequence[object]", value)
            results = [
                (parts.get(index, f"{node.name}_{index}"), self._type_of(item)) for index, item in enumerate(items)
            ]
        else:
            results = [(node.name, self._type_of(value))]
        return TracedNode(
            node.name, _target(node.target), arguments, tuple(results), frozenset(defaulted), place_of(node)
        )

    def _type_of(self, value: object) -> TracedTensor | None:
        import torch

        if not isinstance(value, torch.Tensor):
            return None
        sizes = [self._size(extent) if not isinstance(extent, int) else extent for extent in value.shape]
        return TracedTensor(_dtype(value.dtype), tuple(size.text if isinstance(size, Size) else size for size in sizes))

    def _argument(self, value: object) -> Argument:
        import torch
        from torch.fx import Node

        match value:
            case None | bool() | int() | float() | str():
                return value
            case Node():
                held = value.meta.get("val")
                if isinstance(held, torch.SymInt):
                    return self._size(held)
                name = self._renamed.get(value.name, value.name)
                return held if isinstance(held, bool | int | float) else Tensor(name)
            case torch.dtype():
                return Type(_dtype(value))
            case torch.SymInt():
                return self._size(value)
            case list() | tuple():
                return tuple(self._argument(item) for item in cast("Sequence[object]", value))
            case _:
                return str(value)


def _symbols_of(extent: object) -> set[str]:
    expression = getattr(getattr(extent, "node", None), "expr", None)
    return {str(symbol) for symbol in getattr(expression, "free_symbols", ())}


def _whole(bound: object, otherwise: int) -> int:
    try:
        return min(int(cast("int", bound)), 2**31)
    except (TypeError, ValueError, OverflowError, AttributeError):  # infinite ones, as sympy has them
        return otherwise


def _dim_names(program: ExportedProgram) -> dict[str, str]:
    """Return the name that the exporter gave each symbol, by symbol: the symbol's own where the program forgot it."""
    found: dict[str, str] = {}
    for node in program.graph.nodes:
        for axis, extent in enumerate(getattr(node.meta.get("val"), "shape", ())):
            symbols = _symbols_of(extent)
            shape_env = getattr(getattr(extent, "node", None), "shape_env", None)
            sources = getattr(shape_env, "source_name_to_debug_name", {})
            name = sources.get(f"L['{node.name}'].size()[{axis}]") if node.op == "placeholder" else None
            for symbol in symbols:
                is_named = name is not None and symbols == {symbol} and found.get(symbol, symbol) == symbol
                found[symbol] = str(name) if is_named else found.get(symbol, symbol)
    return found


def _with_given_name(names: dict[str, str], given: Mapping[str, int | None]) -> dict[str, str]:
    """Return the names with the one that a caller uses for the only dim, where that has none."""
    unknown = [name for name in given if name not in names and name not in names.values()]
    if len(names) == len(unknown) == 1 and all(symbol == name for symbol, name in names.items()):
        return dict.fromkeys(names, unknown[0])
    return names


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _target(target: object) -> str:
    name = str(target)
    module = getattr(target, "__module__", "")
    return name if "." in name and not name.startswith("<") else f"{module}.{getattr(target, '__name__', name)}"


def place_of(node: Node) -> ModelPlace:
    """Return where in the model an operation comes from: module path, and the innermost line that is not torch's."""
    stack = cast("Mapping[str, Sequence[str]]", node.meta.get("nn_module_stack") or {})
    module = ""
    for path, _ in stack.values():
        module = path
    return place_in(module, str(node.meta.get("stack_trace") or ""), _target(node.target))


def place_in(module: str, stack_trace: str, operation: str) -> ModelPlace:
    """Return a place in a model: ``module`` as torch writes its path, and the innermost line that is not torch's."""
    frames = _FRAME.findall(stack_trace)
    own = [frame for frame in frames if _OWN_FRAMES.search(_LIBRARY.sub("", frame[0])) is None] or frames
    file, line = (_LIBRARY.sub("", own[-1][0]), int(own[-1][1])) if own else (None, None)
    return ModelPlace(_module_path(module), file, line, operation)


def _module_path(path: str) -> str:
    cleaned = path
    for root in ("self", "fn"):
        cleaned = cleaned.replace(f"L['{root}'].", "").replace(f"L['{root}']", "")
    return cleaned.removeprefix("L__self__").removeprefix(".")
