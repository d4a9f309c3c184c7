"""OpSpecs as torch-spyre prints them: calls of ``OpSpec``, ``TensorArg`` and ``LoopSpec`` in Python source.

The source is parsed and never executed.  Of a file only those literals count: calls with keywords of constants, lists,
dictionaries, ``sympify('..')``, ``DataFormats.NAME``, ``DebugHandle`` and ``SourceLoc``; whatever else stands around
them, imports and functions too, is not looked at.  What they hold is turned into a ``spyrec.opspec/1`` document, which
its own reader then checks.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping

from spyrec.codegen.opspec import FORMAT, OpSpecFile
from spyrec.codegen.opspec_json import read_opspecs
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.diagnostics.source_text import SourceText
from spyrec.files.python_text import unremarked
from spyrec.hardware.target import SEGMENT_BYTES

NO_CAPTURE = "SPY0549"
"""Code of Python source that holds no OpSpecs, or several programs."""

NO_LITERAL = "SPY0550"
"""Code of a part of an OpSpec that is no literal of the form that is read."""

_MOST_WORDS = 1 << 20
"""Words and marks of a source, of which each may become a part of half a kilobyte."""
_WORD = re.compile(rb"\w+|[^\s\w]")
_MOST_DEPTH = 64
_SPECS = frozenset({"OpSpec", "LoopSpec"})


def read_opspecs_or_capture(text: bytes, file: str) -> OpSpecFile:
    """Return the OpSpecs of a ``spyrec.opspec/1`` text, or of Python source, told apart by the first character.

    Errors: as :func:`read_opspecs`; SPY0549 source that does not parse, without OpSpecs or with several programs,
    SPY0550 an expression that is no literal.
    """
    return read_opspecs(text, file) if text.lstrip()[:1] in {b"{", b"", b'"'} else read_capture(text, file)


def read_capture(text: bytes, file: str) -> OpSpecFile:
    """Return the OpSpecs that Python source holds; errors as :func:`read_opspecs_or_capture`."""
    where = Location(file)
    if sum(1 for _ in _WORD.finditer(text)) > _MOST_WORDS:
        raise refuse(NO_CAPTURE, f"the source has more than {_MOST_WORDS} words", where)
    try:
        with unremarked():
            tree = ast.parse(text.decode())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        source = SourceText(text.decode("utf-8", "replace"), file)
        hint = "name a spyrec.opspec/1 file, or the Python source that torch-spyre has generated"
        raise refuse(
            NO_CAPTURE, "the source does not parse", Location(file, line=line, column=1, source=source), hint=hint
        ) from None
    programs = list(_programs(tree, 0))
    if len(programs) != 1:
        hint = "keep the OpSpecs of one kernel in the file"
        raise refuse(NO_CAPTURE, f"the source holds {len(programs)} programs of OpSpecs, one is read", where, hint=hint)
    reader = _Literals(SourceText(text.decode(), file))
    specs: list[JsonValue] = [reader.spec(item, 0) for item in programs[0]]
    document = {"format": FORMAT, "symbolic_args": True, "unroll_loops": False, "specs": specs}
    return read_opspecs(json.dumps(document), file)


def _programs(node: ast.AST, depth: int) -> Iterator[list[ast.expr]]:
    """Yield the outermost lists of OpSpecs; an OpSpec outside of a list is a program by itself."""
    if isinstance(node, ast.expr) and _is_spec(node):
        yield [node]
        return
    if isinstance(node, ast.List | ast.Tuple) and node.elts and all(_is_spec(item) for item in node.elts):
        yield node.elts
        return
    for child in ast.iter_child_nodes(node) if depth < _MOST_DEPTH else ():
        yield from _programs(child, depth + 1)


def _is_spec(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _called(node) in _SPECS


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


class _Literals:
    """Reads the literals of one file."""

    def __init__(self, source: SourceText) -> None:
        self._source = source

    def refused(self, node: ast.AST, fact: str) -> SpyrecError:
        line, column = getattr(node, "lineno", None), getattr(node, "col_offset", 0)
        place = Location(self._source.file, line=line, column=column + 1, source=self._source)
        hint = "OpSpecs are read as literals: numbers, texts, lists, dictionaries, sympify('..'), DataFormats.NAME"
        return refuse(NO_LITERAL, fact, place, hint=hint)

    def _keywords(self, node: ast.expr, name: str, known: Mapping[str, object]) -> dict[str, ast.expr]:
        """Return the arguments of a call of ``name``, which has keywords only."""
        if not isinstance(node, ast.Call) or _called(node) != name:
            raise self.refused(node, f"expected a call of {name}")
        if node.args:
            raise self.refused(node.args[0], f"{name} takes keywords only")
        found: dict[str, ast.expr] = {}
        for item in node.keywords:
            if item.arg is None or item.arg not in known:
                raise self.refused(item.value, f'{name} has no keyword "{item.arg or "**"}"')
            found[item.arg] = item.value
        return found

    def spec(self, node: ast.expr, depth: int) -> dict[str, JsonValue]:
        """Return an operation, or a loop, as an OpSpec file has it."""
        if depth > _MOST_DEPTH:
            raise self.refused(node, f"loops are nested more than {_MOST_DEPTH} deep")
        if isinstance(node, ast.Call) and _called(node) == "LoopSpec":
            given = self._keywords(node, "LoopSpec", {"count": 0, "body": 0, "tiled_symbols": 0})
            body: list[JsonValue] = [self.spec(item, depth + 1) for item in self._items(given.get("body"), node)]
            return {"loop": {"count": self.integer(given.get("count"), node), "body": body}}
        given = self._keywords(node, "OpSpec", _OPERATION)
        return self._members(given, _OPERATION)

    def _members(self, given: Mapping[str, ast.expr], known: Mapping[str, _Member]) -> dict[str, JsonValue]:
        members: dict[str, JsonValue] = {}
        for key, value in given.items():
            name, read = known[key]
            if name and not (isinstance(value, ast.Constant) and value.value is None):
                found = read(self, value)
                if found is not None:
                    members[name] = found
        return members

    # --- plain values -------------------------------------------------------------------------------------------------

    def plain(self, node: ast.expr) -> JsonValue:
        """Return a constant, a list or a dictionary of them."""
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as found):
                return str(found) if isinstance(found, float) and found - found != 0 else found
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return str(-number) if isinstance(number, float) and number - number != 0 else -number
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.plain(item) for item in items]
            case ast.Dict(keys=keys, values=values):
                return {self.name(key, node): self.plain(value) for key, value in zip(keys, values, strict=True)}
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value="inf" | "-inf" as text)], keywords=[]):
                return str(text)
            case ast.Call() if _called(node) in {"sympify", "Symbol", "Integer"}:
                return self.expression(node)
            case _:
                raise self.refused(node, f"{type(node).__name__} is no literal that is read")

    def expression(self, node: ast.expr) -> str:
        """Return the text of ``sympify('..')``, of a number, or of a text."""
        match node:
            case ast.Call(args=[inner], keywords=[]) if _called(node) in {"sympify", "Symbol", "Integer"}:
                return self.expression(inner)
            case ast.Constant(value=str() | int() as found) if not isinstance(found, bool):
                return str(found)
            case _:
                raise self.refused(node, "expected sympify('..')")

    def integer(self, node: ast.expr | None, parent: ast.AST) -> int | str:
        """Return a number, or the name of a dynamic size."""
        if node is None:
            raise self.refused(parent, "a count is missing")
        text = self.expression(node)
        return int(text) if text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20 else text

    def name(self, node: ast.expr | None, parent: ast.AST) -> str:
        if node is None:
            raise self.refused(parent, "a dictionary has keys only")
        return self.expression(node)

    def _items(self, node: ast.expr | None, parent: ast.AST) -> list[ast.expr]:
        if not isinstance(node, ast.List | ast.Tuple):
            raise self.refused(node or parent, "expected a list")
        return node.elts

    # --- members of OpSpec and TensorArg ------------------------------------------------------------------------------

    def space(self, node: ast.expr) -> JsonValue:
        """Return ``{sympify('c0'): (sympify('64'), 4), ..}`` as iteration dims."""
        if not isinstance(node, ast.Dict):
            raise self.refused(node, "expected a dictionary of symbols")
        dims: list[JsonValue] = []
        for key, value in zip(node.keys, node.values, strict=True):
            size, slices = (*self._items(value, node), None, None)[:2]
            entry: dict[str, JsonValue] = {"symbol": self.name(key, node), "size": self.integer(size, value)}
            entry["work_division"] = self.integer(slices, value)
            dims.append(entry)
        return dims

    def unless_empty(self, node: ast.expr) -> JsonValue:
        """Return a value, ``None`` for an empty one: its key is then left out."""
        return self.plain(node) or None

    def levels(self, node: ast.expr) -> JsonValue:
        """Return the symbols of each loop level; a flat list has one level for each."""
        found = [self._level(item) for item in self._items(node, node)]
        return found or None

    def _level(self, node: ast.expr) -> JsonValue:
        if isinstance(node, ast.List | ast.Tuple):
            return [self.expression(item) for item in node.elts]
        return [self.expression(node)]

    def arguments(self, node: ast.expr) -> JsonValue:
        found: list[JsonValue] = []
        for item in self._items(node, node):
            given = self._keywords(item, "TensorArg", _ARGUMENT)
            members = self._members(given, _ARGUMENT)
            found.append(_placed(members))
        return found

    def coordinates(self, node: ast.expr) -> JsonValue:
        return [self.expression(item) for item in self._items(node, node)]

    def data_format(self, node: ast.expr) -> JsonValue:
        """Return the name of ``DataFormats.NAME``."""
        match node:
            case ast.Attribute(value=ast.Name(), attr=name):
                return name
            case _:
                return self.plain(node)

    def handle(self, node: ast.expr) -> JsonValue:
        """Return ``DebugHandle(..)`` as an object."""
        given = self._keywords(node, "DebugHandle", _HANDLE)
        return self._members(given, _HANDLE)

    def handle_id(self, node: ast.expr) -> JsonValue:
        return str(self.plain(node))

    def source(self, node: ast.expr) -> JsonValue:
        return self._members(self._keywords(node, "SourceLoc", _SOURCE), _SOURCE)

    def handles(self, node: ast.expr) -> JsonValue:
        return [self.handle(item) for item in self._items(node, node)]

    def history(self, node: ast.expr) -> JsonValue:
        steps: list[JsonValue] = []
        for item in self._items(node, node):
            if not isinstance(item, ast.Call):
                raise self.refused(item, "expected a call")
            steps.append(self._members(self._keywords(item, _called(item), _STEP), _STEP))
        return steps

    def division(self, node: ast.expr) -> JsonValue:
        """Return a dictionary of slices, or a call with keywords of two of them."""
        if not isinstance(node, ast.Call):
            return self.plain(node)
        return self._members(self._keywords(node, _called(node), _DIVISION), _DIVISION)


_Member = tuple[str, Callable[[_Literals, ast.expr], JsonValue]]
"""The key in an OpSpec file, empty where it has no such key, and how the value is read."""

_OPERATION: Mapping[str, _Member] = {
    "op": ("op", _Literals.plain),
    "is_reduction": ("is_reduction", _Literals.plain),
    "iteration_space": ("iteration_space", _Literals.space),
    "op_info": ("op_info", _Literals.plain),
    "tiled_symbols": ("tiled_levels", _Literals.levels),
    "tiled_symbol_trip_counts": ("tiled_symbol_trip_counts", _Literals.plain),
    "node_output_ranges": ("node_output_ranges", _Literals.plain),
    "debug_handle": ("debug_handle", _Literals.handle),
    "args": ("args", _Literals.arguments),
    "symbolic_dim_bounds": ("symbolic_dim_bounds", _Literals.unless_empty),
    "core_id_to_work_slice": ("", _Literals.plain),  # follows from the divisions
}
_ARGUMENT: Mapping[str, _Member] = {
    "is_input": ("is_input", _Literals.plain),
    "arg_index": ("arg_index", _Literals.plain),
    "device_dtype": ("device_dtype", _Literals.data_format),
    "device_size": ("device_size", _Literals.plain),
    "device_coordinates": ("device_coordinates", _Literals.coordinates),
    "allocation": ("allocation", _Literals.plain),
    "stride_map": ("stride_map", _Literals.plain),
    "per_tile_fixed": ("per_tile_fixed", _Literals.plain),
    "name": ("name", _Literals.plain),
    "tile_advance": ("tile_advance", _Literals.expression),
    "element_arrangement": ("element_arrangement", _Literals.data_format),
    "work_division": ("work_division", _Literals.division),
}
_HANDLE: Mapping[str, _Member] = {
    "id": ("id", _Literals.handle_id),
    "source": ("source", _Literals.source),
    "aten_op": ("aten_op", _Literals.plain),
    "ir_chain": ("ir_chain", _Literals.plain),
    "fused_from": ("fused_from", _Literals.handles),
    "transform_history": ("transform_history", _Literals.history),
}
_SOURCE: Mapping[str, _Member] = {
    key: (key, _Literals.plain) for key in ("file", "start_line", "start_col", "end_line", "end_col")
}
_STEP: Mapping[str, _Member] = {key: (key, _Literals.plain) for key in ("kind", "pass_name", "reason")}
_DIVISION: Mapping[str, _Member] = {
    "work_slices": ("work_slices", _Literals.plain),
    "core_id_to_work_slice": ("core_id_to_work_slice", _Literals.plain),
}


def _placed(argument: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return an argument with an address: where a capture names only its index, or adds it to the offset.

    ``{} --> {"hbm": 3 * 2**34}`` and ``{"hbm": 3 + 128} --> {"hbm": 3 * 2**34 + 128}`` for argument 3.
    """
    index, allocation = argument.get("arg_index"), argument.get("allocation")
    if isinstance(index, int) and index >= 0 and isinstance(allocation, dict) and not allocation.keys() - {"hbm"}:
        start = allocation.get("hbm", 0)
        if isinstance(start, int) and 0 <= start < SEGMENT_BYTES:
            return {**argument, "allocation": {"hbm": index * SEGMENT_BYTES + max(0, start - index)}}
    return argument
