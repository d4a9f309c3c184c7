"""Reads what ``print_graph.py`` prints: a graph, every name, type and attribute of it checked where it stands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.ir.attribute_text import AttributeTextError, attribute_fields, read_attribute
from spyrec.ir.graph import ConstantData, Graph, LayoutPin, LoopRequest, Node, Operand, Origin, Scalar, Value
from spyrec.ir.inference import MAX_ELEMENTS, Inferred, infer
from spyrec.ir.near_names import meant_dtype, meant_ops, nearest
from spyrec.ir.numbers import as_written
from spyrec.ir.opdef import Attributes, OpDef, OpError, catalogue
from spyrec.ir.text.numbers import read_data
from spyrec.ir.text.tokens import BROKEN, Cursor, Token
from spyrec.ir.types import TensorType
from spyrec.layout.symbolic_dim import SymbolicDim

MAX_RANK = 32
_MOST = MAX_ELEMENTS - 1

FAULTS = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""What rules that were written for the compiler's own graphs may end in when they are given a stranger's."""


def read_type(cursor: Cursor) -> tuple[TensorType, tuple[str | None, ...]]:
    """Take ``float16[A=1024,64]``: the type, and the names of its axes."""
    token = cursor.peek()
    dtype = next((item for item in DType if cursor.accept(item.value)), None)
    if dtype is None:
        meant = meant_dtype(token.text)
        raise cursor.expected("a dtype" + ("" if meant is None else f' ("{meant}"?)'))

    def axis() -> tuple[str | None, int]:
        name = None
        if cursor.is_name():
            name = cursor.name()
            cursor.expect("=")
        return name, cursor.integer(0, _MOST)

    axes = cursor.items("[", "]", axis, MAX_RANK)
    found = TensorType(tuple(extent for _, extent in axes), dtype)
    if found.element_count > _MOST:
        raise cursor.refuse(f"{found} has {found.element_count} elements, the limit is 2**63 - 1", token)
    return found, tuple(name for name, _ in axes)


def read_pin(cursor: Cursor, rank: int) -> LayoutPin:
    """Take a pinned layout of a tensor of that rank."""
    place = cursor.place()
    token = cursor.peek()
    if cursor.accept("dim_order"):
        cursor.expect("=")
        order = cursor.integers(-1, MAX_RANK)
        dims = order[:-1] if order and order[-1] == -1 else order
        if sorted(dims) != list(range(rank)):
            raise cursor.refuse(f"dim_order {list(order)} is no permutation of the {rank} dims", token)
        return LayoutPin(dim_order=order, origin=place)
    sizes, strides = cursor.integers(1, _MOST), cursor.integers(-1, _MOST)
    if len(sizes) != len(strides) or not sizes or math.prod(sizes) > _MOST:
        raise cursor.refuse(f"{list(sizes)} and {list(strides)} are no sizes and strides of a layout", token)
    return LayoutPin(sizes, strides, origin=place)


@dataclass(frozen=True, slots=True)
class MadeOf:
    """A word that names the node of the source which something was made of."""

    name: str
    token: Token


def take_made_of(cursor: Cursor) -> MadeOf:
    """Take ``@node``."""
    cursor.expect("@")
    token = cursor.peek()
    return MadeOf(cursor.name(), token)


class SourcePlaces:
    """The places of a source's nodes: what passes know nodes by."""

    def __init__(self, cursor: Cursor, source: Graph | None) -> None:
        self._cursor = cursor
        self._places = {} if source is None else {node.name: node.origin for node in source.nodes}

    def of(self, made: MadeOf) -> Origin:
        """Return the place of a node.  Errors: SPY0181 there is none of that name."""
        if made.name not in self._places:
            raise self._cursor.refuse(f'the source has no node "{made.name[:80]}"', made.token, BROKEN)
        return self._places[made.name]


class GraphReader:
    """One graph; the word ``graph`` has been taken.  ``is_source``: it is one that another was made of."""

    def __init__(self, cursor: Cursor, *, is_source: bool = False) -> None:
        self._cursor = cursor
        self._is_source = is_source
        self._ops = catalogue()
        self._dims: dict[str, int | SymbolicDim] = {}
        self._extents: dict[str, int] = {}
        self._values: dict[str, Value] = {}
        self._constants: dict[str, ConstantData] = {}
        self._inputs: list[str] = []
        self._nodes: list[Node] = []
        self._node_names: set[str] = set()
        self._made_of: dict[str, MadeOf] = {}
        self._values_made_of: dict[str, MadeOf] = {}
        self._loops: list[LoopRequest] = []
        self._updates: dict[str, str] = {}
        self._outside_lx: list[str] = []
        self._masks: dict[str, str] = {}
        self.has: tuple[str, ...] = ()
        self.source: Graph | None = None

    def read(self) -> Graph:
        """Take name and body of the graph."""
        cursor = self._cursor
        name = cursor.name()
        self.has = read_has(cursor)
        cursor.expect("{")
        while not cursor.accept("return"):
            self._statement()
        outputs = cursor.listed(self._known)
        if not self._is_source and cursor.accept("source"):
            cursor.expect("graph")
            self.source = GraphReader(cursor, is_source=True).read()
        places = SourcePlaces(cursor, self.source)
        self._nodes = [
            replace(node, origin=places.of(self._made_of[node.name])) if node.name in self._made_of else node
            for node in self._nodes
        ]
        for value, made in self._values_made_of.items():
            self._values[value] = replace(self._values[value], origin=places.of(made))
        cursor.expect("}")
        return Graph(
            name, self._dims, tuple(self._inputs), self._constants, tuple(self._nodes), self._values, tuple(outputs),
            tuple(self._loops), self._updates, self._masks, tuple(dict.fromkeys(self._outside_lx)),
        )  # fmt: skip

    def _statement(self) -> None:
        cursor = self._cursor
        if cursor.accept("dim"):
            self._dim()
        elif cursor.accept("input"):
            self._inputs.append(self._declared().name)
        elif cursor.accept("constant"):
            value = self._declared()
            cursor.expect("=")
            self._constants[value.name] = read_data(cursor, value.type.shape, value.type.dtype)
            if cursor.at("@"):
                self._values_made_of[value.name] = take_made_of(cursor)
        elif cursor.accept("loop"):
            self._loops.append(cursor.deeper(self._loop))
        elif cursor.accept("update"):
            name = self._known()
            cursor.expect("=")
            self._updates[self._known()] = name
        elif cursor.accept("outside_lx"):
            self._outside_lx += cursor.listed(self._known)
        elif cursor.accept("mask"):
            dim = self._known_dim()
            cursor.expect("=")
            token = cursor.peek()
            name = self._known()
            self._masks[dim] = name
            self._check_mask(dim, self._values[name], token)
        elif cursor.is_name():
            self._node()
        else:
            raise cursor.expected('a statement or "return"')

    def _check_mask(self, dim: str, mask: Value, token: Token) -> None:
        """Refuse a mask that does not say of each index of its dim whether a run has it.  Errors: SPY0181."""
        extent = self._dims[dim]
        wanted = TensorType((extent if isinstance(extent, int) else extent.largest,), DType.BOOL)
        if mask.type != wanted:
            raise self._cursor.refuse(f'the mask of dim "{dim}" is a {mask.type}, not a {wanted}', token, BROKEN)

    # --- names ---

    def _known(self) -> str:
        """Take the name of a value that is there."""
        return self._one_of(self._values, "no value has been declared")

    def _known_dim(self) -> str:
        return self._one_of(self._dims, "no dim has been declared")

    def _one_of(self, known: Mapping[str, object], nothing: str) -> str:
        token = self._cursor.peek()
        name = self._cursor.name()
        if name not in known:
            meant = nearest(name, list(known))
            hint = f'; did you mean "{meant}"?' if meant is not None else ""
            raise self._cursor.refuse(f'{nothing} by the name "{name[:80]}"{hint}', token, BROKEN)
        return name

    def _dim(self) -> None:
        cursor = self._cursor
        token = cursor.peek()
        name = cursor.name()
        if name in self._dims:
            raise cursor.refuse(f'dim "{name}" is there already', token, BROKEN)
        cursor.expect("=")
        first = cursor.integer(0, _MOST)
        dim: int | SymbolicDim = first
        if cursor.accept(".."):
            last = cursor.integer(max(1, first), _MOST)
            for word in ("in", "steps", "of"):
                cursor.expect(word)
            dim = SymbolicDim(first, last, cursor.integer(1, _MOST))
            if dim.smallest > dim.largest:
                raise cursor.refuse(f'dim "{name}" has no extent: {dim}', token, BROKEN)
        self._dims[name] = dim
        self._extents[name] = dim if isinstance(dim, int) else dim.largest

    def _declared(self) -> Value:
        """Take a name with its type and, where it has one, its layout; the value is there from now on."""
        cursor = self._cursor
        token = cursor.peek()
        place = cursor.place()
        name = cursor.name()
        if name in self._values:
            raise cursor.refuse(f'the value "{name}" is there already', token, BROKEN)
        cursor.expect(":")
        found, names = read_type(cursor)
        pin = read_pin(cursor, found.rank) if cursor.accept("layout") else None
        value = Value(name, found, names, place, pin)
        self._values[name] = value
        return value

    # --- nodes ---

    def _node(self) -> None:
        cursor = self._cursor
        first = cursor.peek()
        place = cursor.place()
        results = cursor.listed(self._declared)
        for value in results:  # a node does not read what it makes
            del self._values[value.name]
        cursor.expect("=")
        definition = self._op()
        operands, attributes = self._arguments(definition)
        outputs = tuple(value.name for value in results)
        name = cursor.name() if cursor.accept("node") else outputs[0]
        if name in self._node_names:
            raise cursor.refuse(f'the node "{name}" is there already', first, BROKEN)
        division = self._division() if cursor.accept("split") else None
        keys = tuple(cursor.listed(cursor.name)) if cursor.accept("written") else ()
        if len(keys) not in (0, len(division or ())):
            raise cursor.refuse(f"{len(keys)} keys are written for {len(division or ())} pins", first, BROKEN)
        on_host = cursor.accept("on")
        if on_host:
            cursor.expect("host")
        if cursor.at("@"):
            self._made_of[name] = take_made_of(cursor)
            self._values_made_of.update(dict.fromkeys(outputs, self._made_of[name]))
        node = Node(name, definition.name, operands, outputs, attributes, place, division, keys, on_host)
        self._check(node, definition, results, first)
        self._node_names.add(name)
        self._nodes.append(node)
        self._values.update({value.name: value for value in results})

    def _op(self) -> OpDef:
        cursor = self._cursor
        token = cursor.peek()
        name = cursor.name()
        definition = self._ops.get(name)
        if definition is None:
            meant = meant_ops(name, list(self._ops))
            hint = f"; did you mean {' or '.join(meant)}?" if meant else ""
            raise cursor.refuse(f'op "{name[:80]}" is unknown{hint}', token, "SPY0118")
        return definition

    def _arguments(self, definition: OpDef) -> tuple[tuple[Operand, ...], Attributes]:
        cursor = self._cursor
        token = cursor.peek()
        operands: list[Operand] = []
        given: dict[str, object] = {}

        def argument() -> None:
            if cursor.is_key():
                self._attribute(definition, given)
            elif given:
                raise cursor.expected("an attribute")
            else:
                operands.append(self._operand())

        cursor.items("(", ")", argument)
        for name, field in attribute_fields(definition.attributes).items():
            if field.is_required and name not in given:
                raise cursor.refuse(f'{definition.name} needs the attribute "{name}"', token, "SPY0121")
        padding = 0 if definition.is_variadic else len(definition.operands) - len(operands)
        attributes = cast("Attributes", definition.attributes(**given))
        return (*operands, *((None,) * padding)), attributes

    def _operand(self) -> Operand:
        cursor = self._cursor
        if cursor.accept("null"):
            return None
        return self._known() if cursor.is_name() else Scalar(as_written(cursor.number()))

    def _attribute(self, definition: OpDef, given: dict[str, object]) -> None:
        cursor = self._cursor
        token = cursor.take()
        cursor.expect("=")
        known = attribute_fields(definition.attributes)
        if token.text not in known or token.text in given:
            what = "twice" if token.text in given else "and has none of that name"
            raise cursor.refuse(f'{definition.name} is given "{token.text[:80]}" {what}', token, "SPY0121")
        raw = cursor.json_value()
        try:
            given[token.text] = read_attribute(known[token.text].annotation, raw, self._extents)
        except AttributeTextError as error:
            message = f'attribute "{token.text}" of {definition.name}: {error.message}'
            raise cursor.refuse(message, token, error.code) from None

    def _division(self) -> dict[str, int]:
        cursor = self._cursor

        def pin() -> tuple[str, int]:
            name = cursor.name()
            cursor.expect(":")
            return name, cursor.integer(1, _MOST)

        return dict(cursor.items("{", "}", pin))

    def _check(self, node: Node, definition: OpDef, results: Sequence[Value], token: Token) -> None:
        """Refuse a node whose results are not what its op makes of its operands."""
        try:
            inferred = infer(definition, node.inputs, node.attributes, self._values)
        except FAULTS as fault:
            inferred = OpError(BROKEN, f"{definition.name} takes no such operands: {type(fault).__name__}")
        if isinstance(inferred, OpError):
            raise self._cursor.refuse(f'node "{node.name}": {inferred.message}', token, inferred.code)
        self._check_results(node, inferred, results, token)

    def _check_results(self, node: Node, inferred: Inferred, results: Sequence[Value], token: Token) -> None:
        if len(results) not in (1, len(inferred.results)):
            fact = f'node "{node.name}" has {len(results)} results, {node.op} makes {len(inferred.results)}'
            raise self._cursor.refuse(fact, token, "SPY0139")
        for value, made in zip(results, inferred.results):
            if value.type != made:
                fact = f'value "{value.name}" is declared as {value.type}, and {node.op} makes {made}'
                raise self._cursor.refuse(fact, token, "SPY0220")

    # --- loops ---

    def _loop(self) -> LoopRequest:
        cursor = self._cursor
        place = cursor.place()
        dims = cursor.listed(self._known_dim)
        cursor.expect("in")
        tiles = size = None
        if cursor.accept("tiles"):
            cursor.expect("of")
            size = cursor.integer(1, _MOST)
        else:
            tiles = cursor.integer(1, _MOST)
            cursor.expect("tiles")
        cursor.expect("{")
        body: list[str | LoopRequest] = []
        while not cursor.accept("}"):
            # a name may be that of a node which no output needed
            body.append(cursor.deeper(self._loop) if cursor.accept("loop") else cursor.name())
        return LoopRequest(tuple(dims), tiles, size, tuple(body), place)


def read_has(cursor: Cursor) -> tuple[str, ...]:
    """Take what the first line says of what passes have established."""
    return tuple(cursor.listed(cursor.name)) if cursor.accept("has") else ()
