"""Reads the nodes of a graph file: names, order, attributes, then types along the order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import cast

from spyrec.diagnostics import Location, ModelPlace
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.ir.attribute_text import AttributeTextError, attribute_fields, read_attribute
from spyrec.ir.constant_masks import with_positions
from spyrec.ir.declarations import Declarations
from spyrec.ir.graph import Node, Operand, Scalar, Value
from spyrec.ir.graph_text import NAMELESS, NodeText
from spyrec.ir.inference import Inferred, complete_attributes, infer
from spyrec.ir.near_names import did_you_mean, may_guess, meant_attributes, meant_ops
from spyrec.ir.numbers import as_written
from spyrec.ir.opdef import Attributes, OpDef, OpError, catalogue
from spyrec.ir.prologue import prologue_problem
from spyrec.ir.refused_ops import OTHER_NAMES, refusal

NameResults = Callable[[str, int], Sequence[str]]
"""Gives the names of the results of a node of this name, as many as there are."""


class NodeReader:
    """Turns node models into nodes and adds their results to the declarations.

    ``name_results`` names the results where an op may have several and the node names none: a graph file's node then
    has its first, or is refused.
    """

    def __init__(self, declarations: Declarations, name_results: NameResults | None = None) -> None:
        self._name_results = name_results
        self._declarations = declarations
        self._sink = declarations.sink
        self._ops = catalogue()
        self._producers: dict[str, int] = {}
        self._sections: list[tuple[str, int]] = []

    def read(self, models: Sequence[NodeText], prologue: Sequence[NodeText] = ()) -> tuple[Node, ...]:
        """Return the nodes that could be read, in topological order, file order breaking ties.

        Those of ``prologue`` stand first, and are the host's.
        Errors: SPY0115 to SPY0121, SPY0139, SPY0151 a node that cannot stand in a prologue, those of the attributes and
        of the ops.
        """
        whole = [*prologue, *models]
        self._sections = [("prologue", index) for index in range(len(prologue))]
        self._sections += [("nodes", index) for index in range(len(models))]
        places = [replace(self._node_place(index), model=_model_place(model)) for index, model in enumerate(whole)]
        for index, model in enumerate(whole):
            self._claim(model, index, places[index])
        nodes: list[Node] = []
        for index in self._order(whole):
            node = self._read_node(whole[index], places[index], self._declarations.form.of(*self._sections[index]))
            if node is not None and index < len(prologue):
                node = self._of_prologue(node, nodes, places[index])
            if node is not None:
                nodes.append(node)
        return tuple(nodes)

    def _node_place(self, index: int) -> Location:
        return self._declarations.root.child(*self._sections[index])

    def _of_prologue(self, node: Node, before: Sequence[Node], place: Location) -> Node:
        """Return a node as one of the prologue.  Errors: SPY0151."""
        declared = self._declarations
        made = {name for other in before if other.on_host for name in other.outputs}
        problem = prologue_problem(node, made, declared.constants, declared.values)
        if problem is not None:
            self._sink.error("SPY0151", f'node "{node.name}" cannot stand in the prologue: {problem}', place)
        return replace(node, on_host=True)

    # --- names and order ---

    def _claim(self, model: NodeText, index: int, place: Location) -> None:
        names = model.outputs if model.outputs is not None else [model.name]
        for position, name in enumerate(names):
            own = place if model.outputs is None else place.child("outputs", position)
            if self._declarations.claim(name, own):
                self._producers[name] = index
        definition = self._ops.get(model.op)
        is_whole = "outputs" not in self._declarations.form.of(*self._sections[index])
        count = None if definition is None else definition.result_count
        if is_whole and model.outputs is not None and count is not None and len(names) != count:
            message = f'{model.op} has {count} result{"s"[: count != 1]}, "outputs" names {len(names)}'
            self._sink.error("SPY0139", message, place.child("outputs"))

    def _order(self, models: Sequence[NodeText]) -> list[int]:
        """Return the indices of the nodes in topological order; those on or behind a cycle are left out."""
        self._refuse_repeated_names(models)
        waiting: list[int] = []
        users: list[list[int]] = [[] for _ in models]
        for index, model in enumerate(models):
            sources = {self._producers[name] for name in model.inputs if name in self._producers}
            waiting.append(len(sources))
            for source in sources:
                users[source].append(index)
        ready = [index for index, count in enumerate(waiting) if count == 0]
        order: list[int] = []
        while ready:
            index = heapq.heappop(ready)
            order.append(index)
            for user in users[index]:
                waiting[user] -= 1
                if waiting[user] == 0:
                    heapq.heappush(ready, user)
        if len(order) < len(models):
            self._refuse_cycle(models, set(range(len(models))) - set(order))
        return order

    def _refuse_repeated_names(self, models: Sequence[NodeText]) -> None:
        seen: set[str] = set()
        for index, model in enumerate(models):
            # with "outputs" absent the value name says it already
            if model.name in seen and model.outputs is not None and model.name != NAMELESS:
                place = self._node_place(index).child("name")
                self._sink.error("SPY0115", f'the node name "{model.name}" is taken', place)
            seen.add(model.name)

    def _refuse_cycle(self, models: Sequence[NodeText], left: set[int]) -> None:
        """Report one cycle among the nodes ``left``, and mark their results as broken."""
        path: list[int] = []
        index = min(left)
        while index not in path:
            path.append(index)
            index = next(
                self._producers[name]
                for name in models[index].inputs
                if isinstance(name, str) and self._producers.get(name) in left
            )
        cycle = path[path.index(index) :]
        start = cycle.index(min(cycle))
        names = [f'"{models[item].name}"' for item in [*cycle[start:], *cycle[:start], min(cycle)]]
        shown = names if len(names) <= 8 else [*names[:7], "...", names[-1]]
        place = self._node_place(min(cycle))
        self._sink.error("SPY0117", f"the nodes form a cycle: {' needs '.join(shown)}", place)
        for item in left:
            self._break(models[item])

    def _break(self, model: NodeText) -> None:
        self._declarations.broken.update([model.name, *(model.outputs or ())])

    # --- one node ---

    def _read_node(self, model: NodeText, place: Location, lost: frozenset[str]) -> Node | None:
        """Return a node and declare its results, or report what is wrong with it beside the ``lost`` fields."""
        definition = None if "op" in lost else self._find_op(model, place)
        operands, is_usable = self._read_operands(model, place)
        if definition is None or lost & {"inputs", "attrs"}:
            self._break(model)
            return None
        call = _Call(definition, operands, dict(cast("dict[str, JsonValue]", model.attrs)))
        call.sort_numbers()
        attributes = self._read_attributes(call, place)
        inferred = None if attributes is None or not is_usable else self._infer(model, call, attributes, place)
        names = self._result_names(model, definition, inferred)
        is_taken = any(name in self._declarations.broken for name in names)
        if attributes is None or inferred is None or "name" in lost or is_taken:
            self._break(model)
            return None
        if definition.result_count is None and not self._names_all(model, definition, names, inferred):
            self._refuse_unnamed(model, len(inferred.results), place)
            self._break(model)
            return None
        pin = self._declarations.read_pin(model.layout, inferred.results[0].rank, place)
        for name, result, dims in zip(names, inferred.results, inferred.dims):
            self._declarations.values[name] = Value(name, result, dims, place, pin if name == names[0] else None)
        complete = _as_graphs_hold(complete_attributes(definition, inferred.operands, attributes))
        padding = 0 if definition.is_variadic else len(definition.operands) - len(call.operands)
        operands = (Scalar(as_written(item.value)) if isinstance(item, Scalar) else item for item in call.operands)
        inputs = (*operands, *((None,) * padding))
        return Node(model.name, definition.name, inputs, names, complete, place)

    def _result_names(self, model: NodeText, definition: OpDef, inferred: Inferred | None) -> tuple[str, ...]:
        """Return the names of the results as the node gives them; where it gives none, its own or those made for it."""
        if model.outputs is not None:
            return tuple(model.outputs)
        count = 1 if inferred is None else len(inferred.results)
        is_one = definition.result_count == 1 or (definition.is_first_enough and count == 1)
        if self._name_results is None or inferred is None or is_one:
            return (model.name,)
        return tuple(self._name_results(model.name, count))

    def _names_all(self, model: NodeText, definition: OpDef, names: Sequence[str], inferred: Inferred) -> bool:
        """Whether a node names what results it has, as far as its op asks for that."""
        if model.outputs is None and self._name_results is None:
            return definition.is_first_enough
        return len(names) == len(inferred.results)

    def _refuse_unnamed(self, model: NodeText, count: int, place: Location) -> None:
        """Report a list of results that is not named whole (SPY0139)."""
        said = "none" if model.outputs is None else str(len(model.outputs))
        message = f'{model.op} makes {count} result{"s"[: count != 1]} here, "outputs" names {said}'
        where = place if model.outputs is None else place.child("outputs")
        self._sink.error("SPY0139", message, where, hint='name each in "outputs"')

    def _find_op(self, model: NodeText, place: Location) -> OpDef | None:
        """Return the op of a node.  Errors: SPY0118 unknown, SPY0226 known, and refused."""
        definition = self._ops.get(model.op)
        if definition is not None and definition.is_public:
            return definition
        refused = refusal(model.op)
        if refused is not None:
            self._sink.error("SPY0226", f"{refused[0]} cannot be computed: {refused[1]}", place.child("op"))
            return None
        public = [name for name, item in self._ops.items() if item.is_public]
        same = [name for name in OTHER_NAMES.get(model.op, ()) if name in public]
        if same:
            hint = f"here it is {' or '.join(same)}"
            self._sink.error("SPY0118", f'op "{model.op}" is unknown', place.child("op"), hint=hint)
            return None
        meant = meant_ops(model.op, public) if may_guess(self._sink) else []
        hint = f"did you mean {' or '.join(meant)}?" if meant else "`spyrec ops` lists the ops"
        self._sink.error("SPY0118", f'op "{model.op[:80]}" is unknown', place.child("op"), hint=hint)
        return None

    def _read_operands(self, model: NodeText, place: Location) -> tuple[list[Operand], bool]:
        """Return the operands, and whether all are usable.  Errors: SPY0116 a name that nothing declares."""
        operands: list[Operand] = []
        is_usable = True
        for index, text in enumerate(model.inputs):
            operand = self._read_operand(text)
            operands.append(operand)
            if not isinstance(operand, str) or operand in self._declarations.values:
                continue
            is_usable = False
            if operand not in self._producers and self._declarations.is_dangling(operand):
                hint = self._meant_operand(operand)
                message = f'node "{model.name}" reads "{operand}", which nothing makes'
                self._sink.error("SPY0116", message, place.child("inputs", index), hint=hint)
        return operands, is_usable

    def _meant_operand(self, name: str) -> str | None:
        known = self._declarations.values.keys() | self._producers.keys() if may_guess(self._sink) else ()
        return did_you_mean(name, sorted(known), self._sink)

    def _read_operand(self, text: str | float | bool | None) -> Operand:
        if text is None:
            return None
        if not isinstance(text, str):
            return Scalar(text)
        is_infinity = text == "-inf" or (text == "inf" and not self._is_value("inf"))
        return Scalar(float(text)) if is_infinity else text

    def _is_value(self, name: str) -> bool:
        return name in self._declarations.values or name in self._producers or name in self._declarations.broken

    def _read_attributes(self, call: _Call, place: Location) -> Attributes | None:
        """Return the attributes.  Errors: SPY0121 unknown or missing, and those of the values."""
        known = attribute_fields(call.definition.attributes)
        values: dict[str, object] = {}
        is_right = True
        meant = meant_attributes(call.attributes, known)
        for name, raw in call.attributes.items():
            try:
                if name not in known:
                    raise AttributeTextError("SPY0121", f'{call.definition.name} has no attribute "{name[:80]}"')
                values[name] = read_attribute(known[name].annotation, raw, self._declarations.extents)
            except AttributeTextError as error:
                is_right = False
                if error.code == "SPY0123" and not self._declarations.form.has_all_dims:
                    continue
                is_unknown = error.code == "SPY0121"
                hint = (
                    _attribute_hint(call.definition, known, meant.get(name)) if is_unknown else error.hint(self._sink)
                )
                prefix = "" if error.code == "SPY0121" else f'attribute "{name}" of {call.definition.name}: '
                where = place.child("attrs", name, *error.path)
                if name not in known:
                    where = place.child("attrs").key(name)
                self._sink.error(error.code, prefix + error.message, where, hint=hint)
        for name, field in known.items():
            if field.is_required and name not in call.attributes:
                is_right = False
                if name in meant.values():
                    continue  # it is there under another name
                message = f'{call.definition.name} needs the attribute "{name}"'
                self._sink.error("SPY0121", message, place, hint=_attribute_hint(call.definition, known))
        return cast("Attributes", call.definition.attributes(**values)) if is_right else None

    def _infer(self, model: NodeText, call: _Call, attributes: Attributes, place: Location) -> Inferred | None:
        """Return what the node's operands and results are, or report why it has none."""
        inferred = self._with_positions(call, place) or infer(
            call.definition, call.operands, attributes, self._declarations.values
        )
        if isinstance(inferred, OpError):
            notes = (f'node "{model.name}" = {call.definition.name}({self._describe(call.operands)})',)
            where = _place(inferred, model, place)
            self._sink.error(inferred.code, inferred.message, where, notes=notes, hint=inferred.hint)
            return None
        is_open = call.definition.result_count is None
        is_named = is_open or model.outputs is None or len(model.outputs) == len(inferred.results)
        return inferred if is_named else None

    def _with_positions(self, call: _Call, place: Location) -> OpError | None:
        """Take the positions of masks that are constants; return how one contradicts what it covers."""
        if call.definition.name != "index":
            return None
        try:
            call.operands = with_positions(call.operands, self._declarations, place)
        except OpError as contradiction:
            return contradiction
        return None

    def _describe(self, operands: Sequence[Operand]) -> str:
        return ", ".join(describe_operand(operand, self._declarations.values) for operand in operands[:8])


def _model_place(model: NodeText) -> ModelPlace | None:
    found = model.origin
    return None if found is None else ModelPlace(found.module, found.file, found.line, found.op)


def describe_operand(operand: Operand, values: Mapping[str, Value]) -> str:
    """Return an operand as notes show it: ``x: float16[2,3]``."""
    if operand is None:
        return "null"
    return str(operand.value) if isinstance(operand, Scalar) else f"{operand}: {values[operand].type}"


def _place(error: OpError, model: NodeText, place: Location) -> Location:
    if error.operand is not None and error.operand < len(model.inputs):
        return place.child("inputs", error.operand)
    if error.attribute is not None and error.attribute in model.attrs:
        return place.child("attrs", error.attribute)
    return place


def _attribute_hint(definition: OpDef, known: Mapping[str, object], meant: str | None = None) -> str:
    listed = f"its attributes are {', '.join(known)}" if known else f"{definition.name} has no attributes"
    return listed if meant is None else f'did you mean "{meant}"? {listed}'


class _Call:
    """A node as written: op, operands, raw attributes."""

    def __init__(self, definition: OpDef, operands: list[Operand], attributes: dict[str, JsonValue]) -> None:
        self.definition = definition
        self.operands = operands
        self.attributes = attributes

    def sort_numbers(self) -> None:
        """Bring numbers to the one place they have in the IR.

        An op with a scalar and a tensor overload may be written either way: ``mul(x, {"other": 2})`` and
        ``pow(x, 2)`` mean ``mul(x, 2)`` and ``pow(x, {"exponent": 2})``.
        """
        specs = self.definition.operands
        for spec in specs[len(self.operands) :]:
            if not spec.accepts_number or spec.name not in self.attributes:
                break
            raw = self.attributes[spec.name]
            if raw in ("inf", "-inf"):
                raw = float(cast("str", raw))
            if not isinstance(raw, int | float):
                break
            del self.attributes[spec.name]
            self.operands.append(Scalar(raw))
        if self.definition.is_variadic:
            return
        self._move_numbers()
        extra = self.operands[len(specs) :]
        names = self.definition.number_attributes[: len(extra)]
        is_free = len(extra) == len(names) and not any(name in self.attributes for name in names)
        if is_free and not any(isinstance(operand, str) for operand in extra):
            del self.operands[len(specs) :]
            for name, operand in zip(names, extra):
                value = operand.value if isinstance(operand, Scalar) else None
                self.attributes[name] = _as_text(value)

    def _move_numbers(self) -> None:
        """Make attributes of numbers where either a tensor or an attribute may stand: ``clamp(x, 0, high)``."""
        for index, (spec, operand) in enumerate(zip(self.definition.operands, self.operands)):
            is_named = spec.name in self.definition.number_attributes and spec.name not in self.attributes
            if is_named and isinstance(operand, Scalar):
                self.attributes[spec.name] = _as_text(operand.value)
                self.operands[index] = None


def _as_graphs_hold(attributes: Attributes) -> Attributes:
    """Return attributes with integers of more than 64 bits, which stand beside floats, as floats."""
    given = {item.name: getattr(attributes, item.name) for item in fields(attributes)}
    wide = {name: as_written(value) for name, value in given.items() if isinstance(value, int)}
    changed = {name: value for name, value in wide.items() if isinstance(value, float)}
    return replace(attributes, **changed) if changed else attributes


def _as_text(value: float | bool | None) -> JsonValue:
    if value in (float("inf"), float("-inf")):
        return str(value)
    return value
