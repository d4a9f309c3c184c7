"""A traced program as a graph: each operation becomes an op of the catalogue, by name.

Operands and attributes go by the names of PyTorch's schema, so that an op that is declared needs no line here; where a
name differs, or one operation is several ops, ``rewrites.py`` says how.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import cast

from spyrec.diagnostics import ModelPlace, SpyrecError
from spyrec.frontends.graph_builder import GraphBuilder
from spyrec.frontends.model_import.imported import with_places, with_program_names
from spyrec.frontends.model_import.keep_ops import refuse_uncalled
from spyrec.frontends.model_import.names import legal_name
from spyrec.frontends.model_import.source_graph import NARROWED, Problem, SourceGraph, SourceInput
from spyrec.frontends.model_import.symbolic_sizes import DimChoice, SymbolicSizes
from spyrec.frontends.model_import.unsupported import Unsupported, reason_of
from spyrec.frontends.torch_export.higher_order import refusal_of
from spyrec.frontends.torch_export.kept import IDENTITIES, SIZES, VANISHING, public_name, qualified
from spyrec.frontends.torch_export.merged_rows import without_merged_rows
from spyrec.frontends.torch_export.rewrites import REWRITES
from spyrec.frontends.torch_export.traced import (
    Argument,
    Size,
    Tensor,
    TracedInput,
    TracedNode,
    TracedProgram,
    TracedTensor,
    Type,
)
from spyrec.frontends.value import Value
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Graph
from spyrec.ir.opdef import OpDef, OpKind, catalogue
from spyrec.ir.refused_ops import refusal

_SAID_BY_NOBODY = frozenset(
    {"device", "layout", "memory_format", "pin_memory", "non_blocking", "copy", "implicit", "cudnn_enable",
     "cudnn_enabled", "generator", "requires_grad", "inplace", "path", "stable"}
)  # fmt: skip
"""Arguments that say nothing of a result: where it lies, and how it is made."""

_FIRST = {"indices": "input", "self": "input"}
_PARAMETERS = {
    "dropout": {"train": "training"},
    "einsum": {"tensors": "operands"},
    "split": {"split_sizes": "split_size"},
    "_grouped_mm": {"self": "mat_a", "mat2": "mat_b"},
    "searchsorted": {"self": "input"},
}
"""Arguments by the name that an op of the catalogue has for them."""


_NO_DIMS: Mapping[str, DimChoice] = {}
_NOTHING_KEPT: Mapping[str, str] = {}


def lower(
    program: TracedProgram, dims: Mapping[str, DimChoice] = _NO_DIMS, kept: Mapping[str, str] = _NOTHING_KEPT
) -> SourceGraph:
    """Return a traced program as a graph in its own dtypes, with all problems that stand against that.

    ``dims``: the bounds that are asked of symbolic dims.  ``kept``: by ``namespace.name``, the op that an operation is
    by demand.  Errors: SPY0167 the program calls none, SPY0168 the bounds.
    """
    refuse_uncalled(kept, {qualified(node.target) for node in program.nodes})
    return Lowering(without_merged_rows(program), dims, kept).graph()


class Lowering:
    """One program on its way: the values so far, by the program's names."""

    def __init__(
        self,
        program: TracedProgram,
        dims: Mapping[str, DimChoice] = _NO_DIMS,
        kept: Mapping[str, str] = _NOTHING_KEPT,
    ) -> None:
        self.program = program
        self._kept = kept
        self.builder = GraphBuilder(program.name)
        extents = [size for item in program.inputs for size in item.tensor.shape if isinstance(size, str)]
        said = {name for size in extents for name in re.findall(r"\w+", size)}
        # of no other symbol does a run say the extent: numbers that are inputs, counts of what is found
        symbols = {symbol: bounds for symbol, bounds in program.symbols.items() if symbol in said}
        self.symbolic = SymbolicSizes(symbols, program.symbol_names, extents, dims)
        for name, bounds in self.symbolic.dims.items():
            self.builder.dim(name, min=bounds.minimum, max=bounds.maximum, multiple_of=bounds.multiple_of)
        self.values: dict[str, Value | None] = {}
        self.problems: list[Problem] = []
        self._places: dict[str, ModelPlace] = {}
        self._inputs: list[SourceInput] = []
        self._outputs: list[str] = []
        self._program_names: dict[str, str] = {}
        self._narrowed: dict[str, str] = {}
        self._types: dict[str, TracedTensor] = {}
        self._read: frozenset[str] = frozenset()

    def graph(self) -> SourceGraph:
        """Return the whole graph."""
        changed = {output.updates for output in self.program.outputs}
        first = [item for item in self.program.inputs if item.key is None or item.name in changed]
        for item in first:
            self._declare(item, item.name)
        for item in self.program.inputs:
            if item not in first:
                self._declare(item, item.key or item.name)
        needed = _needed(self.program)
        self._read = _read_by(self.program, needed)
        for node in needed:
            self._lower(node)
        self._finish()
        inputs, problems = tuple(self._inputs), tuple(self.problems)
        if problems or not self._outputs:
            return SourceGraph(None, inputs, problems)
        return SourceGraph(self._placed(), inputs, problems, self._narrowed)

    # --- inputs and outputs ---

    def _declare(self, item: TracedInput, name: str) -> None:
        self._types[item.name] = item.tensor
        try:
            dtype = self.dtype_of(item.tensor.dtype)
            shape = self.sizes(item.tensor)
        except Unsupported as error:
            self.problems.append(Problem("input", item.name, (item.tensor.dtype,), None, error.reason, error.hint))
            self.values[item.name] = None
            return
        value = self.builder.input(self.builder.free_name(legal_name(name)), shape, dtype)
        if dtype != item.tensor.dtype:
            self._narrowed[value.name] = item.tensor.dtype
        self.values[item.name] = value
        self._inputs.append(SourceInput(value.name, item.kind, item.name, item.key))

    def _finish(self) -> None:
        """Name the outputs, each by the program's own name of the value."""
        names: dict[str, str] = {}
        # an input is no new content of another, and no value is that of two: a copy is
        unready = {item.name for item in self._inputs}
        for number, output in enumerate(self.program.outputs):
            if isinstance(output.value, Size):
                reason = f"output {number} is a size, {output.value.text}, and outputs are tensors"
                hint = "return tensors alone: whoever gives the inputs knows their sizes"
                self.problems.append(Problem("value", output.value.text, (), None, reason, hint))
                continue
            value = self._output(output.value, number)
            if value is None:
                continue
            target = None if output.updates is None else self.values.get(output.updates)
            if output.updates is not None and (target is None or target.name == value.name):
                continue  # nothing is changed
            if target is not None and value.name in unready:
                value = self.op("clone", value)
            if target is not None:
                unready.add(value.name)
            self._outputs.append(value.name)
            if isinstance(output.value, Tensor):
                names[value.name] = output.value.name
            self.builder.output(value)
            if target is not None:
                self.builder.update(value, target)
        self._program_names = names

    def _output(self, argument: Argument, number: int) -> Value | None:
        if isinstance(argument, Tensor):
            return self.values.get(argument.name)
        if not isinstance(argument, bool | int | float):
            return None
        dtype = "bool" if isinstance(argument, bool) else "int64" if isinstance(argument, int) else "float32"
        return self.builder.constant(self.builder.free_name(f"output_{number}"), argument, [], dtype)

    def _placed(self) -> Graph:
        """Return the graph with each node's place in the model, and outputs under the program's names."""
        graph = with_places(self.builder.build(), self._places, self._inputs)
        return with_program_names(graph, self._program_names)

    # --- nodes ---

    def _lower(self, node: TracedNode) -> None:
        namespace, name, *_ = [*node.target.split("."), "", ""]
        demanded = self._kept.get(f"{namespace}.{name}")
        if namespace != "aten" and demanded is None:
            self._refuse_namespace(node, namespace)
            return
        if name in VANISHING or name in SIZES:
            return
        if any(self.values.get(operand) is None for operand in node.tensors()):
            self._lose(node)  # what it reads could not be made: said there
            return
        before = self.builder.node_count
        self.builder.within(legal_name(node.place.module) if node.place is not None and node.place.module else "")
        try:
            if demanded is None or (namespace, demanded) == ("aten", name):
                results = self._results(node, name)
            else:
                results = self._demanded(node, demanded)
        except (Unsupported, SpyrecError) as error:
            self._refuse(node, *reason_of(error))
            return
        for made in self.builder.node_names(before):
            if node.place is not None:
                self._places[made] = node.place
        self._bind(node, results)

    def _results(self, node: TracedNode, name: str) -> Sequence[Value]:
        if name in IDENTITIES:
            return [self.tensor(node.arguments["self"])]
        rewrite = REWRITES.get(name)
        if rewrite is not None:
            return rewrite(self, node)
        public = public_name(name)
        if public is None:
            known = refusal(name)
            raise Unsupported("a graph has no op for it" if known is None else f"it cannot be computed: {known[1]}")
        return self.call(public, node)

    def _demanded(self, node: TracedNode, op: str) -> Sequence[Value]:
        """Return the results of an operation of another namespace: its tensors are the op's operands, in order."""
        specs = [spec.name for spec in catalogue()[op].operands]
        free = [name for name in specs if name not in node.arguments]
        own = {name for name in node.arguments if name not in specs and _is_tensor(node.arguments[name])}
        renamed = dict(zip([name for name in node.arguments if name in own], free, strict=False))
        arguments = {renamed.get(name, name): argument for name, argument in node.arguments.items()}
        return self.call(op, replace(node, arguments=arguments))

    def _bind(self, node: TracedNode, results: Sequence[Value]) -> None:
        """Take the results under the program's names, as what the program says they are."""
        for (name, wanted), value in zip(node.results, results, strict=False):
            if wanted is not None:
                self._types[name] = wanted
                value = self._with_dims(wanted, value)
            self.values[name] = value
            if wanted is not None:
                self._compare(node, wanted, value)
        for index, (name, _) in list(enumerate(node.results))[len(results) :]:
            self.values[name] = None
            if self.is_read(name):
                self._refuse(node, f"its result {index} is none that a graph has")

    def is_read(self, name: str) -> bool:
        """Whether a result of the program is read by an operation that is needed, or is an output."""
        return name in self._read

    def _compare(self, node: TracedNode, wanted: TracedTensor, value: Value) -> None:
        shape = tuple(extent if isinstance(extent, int) else None for extent in wanted.shape)
        if len(shape) != len(value.shape) or any(
            known is not None and known != found for known, found in zip(shape, value.shape, strict=True)
        ):
            self._refuse(node, f"the program has {list(wanted.shape)} where a graph has {list(value.shape)}")
        elif NARROWED.get(wanted.dtype, wanted.dtype) != value.dtype:
            self._refuse(node, f"the program has {wanted.dtype} where a graph has {value.dtype}")
        else:
            self._compare_dims(node, wanted, value)

    def _with_dims(self, wanted: TracedTensor, value: Value) -> Value:
        """Return whole numbers and truths with the symbolic dims that the program knows of their axes.

        The host computes them at the extents of the run, where the sizes are compared again.
        """
        dims = [self.symbolic.dim(extent) if isinstance(extent, str) else None for extent in wanted.shape]
        is_lost = len(dims) == value.ndim and any(
            dim is not None and found is None and self.symbolic.dims[dim].largest == extent
            for dim, found, extent in zip(dims, value.dims, value.shape, strict=True)
        )
        if not is_lost or DType(value.dtype).is_float:
            return value
        return self.op("reshape", value, shape=[dim or size for dim, size in zip(dims, value.shape, strict=True)])

    def _compare_dims(self, node: TracedNode, wanted: TracedTensor, value: Value) -> None:
        """Refuse a result whose axes a graph does not know to be those of the symbolic dims that the program has."""
        symbolic = self.symbolic.dims.keys()
        for axis, (extent, name) in enumerate(zip(wanted.shape, value.dims, strict=True)):
            dim = self.symbolic.dim(extent) if isinstance(extent, str) else None
            if isinstance(extent, str) and dim is None:
                self._refuse(node, *self._open(f"axis {axis} of its result has {self._said(extent)} elements", extent))
                return
            if dim != (name if name in symbolic else None):
                fact = f'axis {axis} of its result is the symbolic dim "{dim or name}"'
                self._refuse(node, *self._open(f"{fact}, which a graph does not follow through it", dim or str(name)))
                return

    def _open(self, fact: str, size: str) -> tuple[str, str]:
        """Return why a symbolic size has no place in a graph, and what to do."""
        names = [name for name in self.symbolic.dims if name in self._said(size)] or list(self.symbolic.dims)
        if not names:
            return fact, "export the program with that number known, or give it as a tensor"
        return fact, "bind it: " + " ".join(f"--dim {name}=N" for name in names)

    def _said(self, size: str) -> str:
        """Return a size of the program with the names of the dims."""
        for symbol, name in self.program.symbol_names.items():
            size = size.replace(symbol, name)
        return size

    def _refuse(self, node: TracedNode, reason: str, hint: str | None = None) -> None:
        dtypes = tuple(self._types[name].dtype for name in node.tensors() if name in self._types)
        self.problems.append(Problem("op", node.target, dtypes, node.place, reason, hint, node.name))
        self._lose(node)

    def _refuse_namespace(self, node: TracedNode, namespace: str) -> None:
        if not any(wanted for _, wanted in node.results) and namespace in ("_operator", "math", "builtins", "torch"):
            return  # arithmetic of sizes
        higher = refusal_of(node.target)
        if higher is not None:
            self._refuse(node, *higher)
            return
        hint = "run the program's own decompositions first, or write the operation with PyTorch's functions"
        self._refuse(node, f'the namespace "{namespace}" is none that a graph knows', hint)

    def _lose(self, node: TracedNode) -> None:
        for name, _ in node.results:
            self.values[name] = None

    # --- one call ---

    def call(self, op: str, node: TracedNode, leave: Sequence[str] = (), **given: object) -> Sequence[Value]:
        """Add the op of the catalogue that a node is, with the node's arguments by name.

        ``given`` stand in the place of the node's own, ``leave`` are not given at all.
        """
        definition = catalogue()[op]
        operands, attributes = self._sorted(definition, node, frozenset(leave) | given.keys())
        attributes |= given
        known = {item.name for item in fields(definition.attributes)}
        if definition.kind is OpKind.CREATION and "dtype" in known and node.results[0][1] is not None:
            attributes["dtype"] = self.dtype_of(node.results[0][1].dtype)
        return self.add(definition, self._promoted(operands, node), attributes, len(node.results))

    def add(
        self, definition: OpDef, operands: Sequence[object], attributes: Mapping[str, object], results: int = 1
    ) -> Sequence[Value]:
        """Add a node and return its results."""
        made = self.builder.record_op(definition, operands, attributes)
        found = cast("tuple[Value, ...]", made) if isinstance(made, tuple) else (cast("Value", made),)
        return found[: max(results, 1)]

    def op(self, name: str, *operands: object, **attributes: object) -> Value:
        """Add a node of one result."""
        return self.builder.op(name, *operands, **attributes)

    def _sorted(
        self, definition: OpDef, node: TracedNode, taken: frozenset[str]
    ) -> tuple[list[object], dict[str, object]]:
        """Return operands in the op's order and attributes by name."""
        names = {item.name for item in fields(definition.attributes)}
        specs = [spec.name for spec in definition.operands]
        renamed = _PARAMETERS.get(definition.name, {})
        found: dict[str, object] = {}
        attributes: dict[str, object] = {}
        for parameter, argument in node.arguments.items():
            own = renamed.get(parameter, parameter)
            if own not in specs and own not in names and specs:
                own = _FIRST.get(own, own) if specs[0] == "input" else specs[0] if own == "self" else own
            if own in taken or parameter in taken:
                continue
            if own in specs and not (own in names and not _is_tensor(argument)):
                found[own] = self.operand(argument)
            elif own in names:
                attributes |= self._attribute(own, argument, parameter in node.defaulted)
            elif parameter not in node.defaulted and own not in _SAID_BY_NOBODY and argument is not None:
                raise Unsupported(f'{definition.name} has no "{parameter}" here')
        last = max((index for index, name in enumerate(specs) if found.get(name) is not None), default=-1)
        operands: list[object] = []
        for name in specs[: last + 1]:
            value = found.get(name)
            operands.extend(cast("list[object]", value) if isinstance(value, list) else [value])
        return operands, attributes

    def _attribute(self, name: str, argument: Argument, is_default: bool) -> dict[str, object]:
        if argument is None or (is_default and name == "dtype"):
            return {}
        return {name: self.plain(argument)}

    def _promoted(self, operands: Sequence[object], node: TracedNode) -> list[object]:
        """Return the operands, floats of several dtypes converted to what PyTorch computes in."""
        tensors = [item for item in operands if isinstance(item, Value)]
        floats = {item.dtype for item in tensors if DType(item.dtype).is_float}
        if len(floats) < 2:
            return list(operands)
        wanted = node.results[0][1]
        named = None if wanted is None else NARROWED.get(wanted.dtype, wanted.dtype)
        is_float = named is not None and DType(named).is_float
        target = named if is_float else "float32"
        return [
            self.op("to", item, dtype=target)
            if isinstance(item, Value) and DType(item.dtype).is_float and item.dtype != target
            else item
            for item in operands
        ]

    # --- arguments ---

    def tensor(self, argument: Argument) -> Value:
        """Return the value that an argument names."""
        assert isinstance(argument, Tensor), argument
        value = self.values[argument.name]
        assert value is not None, argument.name
        return value

    def operand(self, argument: Argument) -> object:
        """Return an argument as an operand: a value, a number, ``None`` or a list of values."""
        if isinstance(argument, Tensor):
            return self.tensor(argument)
        if isinstance(argument, tuple):
            return [self.operand(item) for item in argument]
        if isinstance(argument, Size):
            fact = f"it computes with the number {self._said(argument.text)}, which each run chooses"
            raise Unsupported(*self._open(fact, argument.text))
        return self.plain(argument)

    def plain(self, argument: Argument) -> object:
        """Return an argument as an attribute: numbers, names, lists."""
        match argument:
            case Type(name):
                return self.dtype_of(name)
            case Size():
                return self.size(argument)
            case tuple():
                return [self.plain(item) for item in argument]
            case Tensor(name):
                raise Unsupported(f'the number that "{name}" holds is not known before the program runs')
            case _:
                return argument

    def number(self, value: float, dtype: str) -> float:
        """Return a number as a tensor of ``dtype`` has it: whole numbers of a float are floats."""
        return float(value) if DType(dtype).is_float else value

    def size(self, size: Size) -> str:
        """Return a symbolic size as a graph writes it.  Errors: :class:`Unsupported`."""
        found = self.symbolic.text(size.text)
        if found is None:
            raise Unsupported(*self._open(f"the size {self._said(size.text)} is known in a run only", size.text))
        return found

    def sizes(self, tensor: TracedTensor) -> list[int | str]:
        """Return a shape for the builder, symbolic dims by name."""
        return [extent if isinstance(extent, int) else self.size(Size(extent)) for extent in tensor.shape]

    def sizes_of(self, value: Value) -> list[int | str]:
        """Return the shape of a value, symbolic dims by name."""
        dims = zip(value.dims, value.shape, strict=True)
        return [extent if name is None or name not in self.symbolic.dims else name for name, extent in dims]

    def shape(self, tensor: TracedTensor) -> list[int]:
        """Return a shape for the builder."""
        found = [extent for extent in tensor.shape if isinstance(extent, int)]
        if len(found) != len(tensor.shape):
            raise Unsupported("its extents are symbolic", "bind the dim: --dim NAME=N")
        return found

    def dtype_of(self, name: str) -> str:
        """Return a dtype by the graph's name.  Errors: :class:`Unsupported`."""
        found = NARROWED.get(name, name)
        if found not in {item.value for item in DType}:
            raise Unsupported(f"a graph has no {name}")
        return found


def _needed(program: TracedProgram) -> list[TracedNode]:
    """Return the operations that an output depends on, in order; the others check something, or are for training.

    Numbers that are made of tensors are needed where sizes are: a size does not say which one it is.
    """
    wanted = set(_read_by(program, ()))
    has_sizes = any(isinstance(item.value, Size) for item in program.outputs)
    found: set[str] = set()
    for node in reversed(program.nodes):
        if wanted.isdisjoint(name for name, _ in node.results):
            continue
        found.add(node.name)
        wanted.update(node.tensors())
        has_sizes = has_sizes or any(map(_has_size, node.arguments.values()))
    if has_sizes:
        found.update(node.name for node in program.nodes if not any(made for _, made in node.results))
    return [node for node in program.nodes if node.name in found]


def _read_by(program: TracedProgram, nodes: Sequence[TracedNode]) -> frozenset[str]:
    """Return the tensors that the outputs of a program are, and those that ``nodes`` of it read."""
    outputs = (item.value.name for item in program.outputs if isinstance(item.value, Tensor))
    return frozenset(outputs).union(*(node.tensors() for node in nodes))


def _has_size(argument: Argument) -> bool:
    return isinstance(argument, Size) or (isinstance(argument, tuple) and any(map(_has_size, argument)))


def _is_tensor(argument: Argument) -> bool:
    return isinstance(argument, Tensor) or (isinstance(argument, tuple) and any(map(_is_tensor, argument)))
