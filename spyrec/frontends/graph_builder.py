"""``spyrec.GraphBuilder``: a graph written in Python, loops included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import cast

import numpy.typing as npt

from spyrec.diagnostics import refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.frontends.arguments import (
    DTypeLike,
    Layout,
    attribute_json,
    bind,
    dim_name,
    dtype_name,
    layout_json,
    operand_json,
    requests_json,
)
from spyrec.frontends.call_site import CallSite, call_site
from spyrec.frontends.constant_arrays import constant_array
from spyrec.frontends.dim import Dim, Extent
from spyrec.frontends.loop_groups import LoopFunction, loops_json
from spyrec.frontends.loops import BuiltLoops, DimCounts, LoopScope, check_loop, levels_of
from spyrec.frontends.op_methods import OpMethods
from spyrec.frontends.recorder import GraphRecorder
from spyrec.frontends.saved_graph import inline_json, save_graph
from spyrec.frontends.value import Value
from spyrec.ir import graph as ir
from spyrec.ir.opdef import OpDef, catalogue
from spyrec.ir.requests import why_no_update
from spyrec.layout.symbolic_dim import SymbolicDim

_NO_COUNTS: Mapping[str, int] = {}


class GraphBuilder(OpMethods):
    """A graph under construction; ``name`` is the graph's.

    Dims, inputs and constants are declared, ops are methods named after PyTorch's functions, loops are ``with`` blocks;
    :meth:`build` returns the graph, and :func:`spyrec.compile` takes the builder itself.  What is refused is refused at
    the call, with the codes of the graph file's reader, and leaves the builder as it was.
    """

    def __init__(self, name: str = "graph") -> None:
        self._recorder = GraphRecorder()
        self._name = self._recorder.read({"name": name}, call_site()).name
        self._loops = BuiltLoops(self._recorder)
        self._loop_function: tuple[LoopFunction, CallSite] | None = None
        self._outputs: list[str] = []
        self._updates: dict[str, str] = {}
        self._outside_lx: dict[str, None] = {}
        self._last_numbers: dict[str, int] = {}
        self._module = ""

    @classmethod
    def of(cls, graph: ir.Graph) -> GraphBuilder:
        """Return a builder that has made ``graph``, and to which more can be added."""
        builder = cls(graph.name)
        builder._recorder.adopt(graph)
        builder._outputs, builder._updates = list(graph.outputs), dict(graph.updates)
        builder._outside_lx = dict.fromkeys(graph.outside_lx)
        builder._loops.adopt(graph.loops)
        return builder

    # --- declarations ---

    def dim(
        self,
        name: str,
        extent: int | None = None,
        *,
        min: int = 1,  # noqa: A002 -- the graph file's name
        max: int | None = None,  # noqa: A002 -- the graph file's name
        multiple_of: int = 1,
    ) -> Dim:
        """Declare a dim of ``extent`` elements, or a symbolic one of ``min`` to ``max`` in steps of ``multiple_of``.

        The same declaration twice is one dim.  Errors: SPY0114, SPY0124, SPY0133, SPY0142 it has another extent.
        """
        site = call_site()
        if (extent is None) == (max is None):
            raise refuse("SPY0110", f'dim "{name}" needs an extent, or a max if it is symbolic', site)
        size = attribute_json(extent, site)
        bounds = {"min": min, "max": max, "multiple_of": multiple_of}
        symbolic: JsonValue = {key: attribute_json(value, site) for key, value in bounds.items()}
        wanted = Dim(name, SymbolicDim(min, cast("int", max), multiple_of) if extent is None else extent)
        if name in self._recorder.tables.dims:
            return self._known_dim(wanted, site)
        self._recorder.declare_dim(name, symbolic if extent is None else size, site)
        return Dim(name, self._recorder.tables.dims[name])

    def input(
        self, name: str, shape: Sequence[Extent], dtype: DTypeLike = "float16", *, layout: Layout | None = None
    ) -> Value:
        """Declare a tensor given at run time.

        Errors: SPY0114, SPY0115, SPY0123 an unknown dim, SPY0124, SPY0125, SPY0136 the layout, SPY0140 the dtype.
        """
        site = call_site()
        item = self._typed(name, shape, dtype_name(dtype, site), site)
        if layout is not None:
            item["layout"] = layout_json(layout, site)
        return Value(self, self._recorder.declare_input(item, site))

    def constant(
        self,
        name: str,
        value: npt.ArrayLike,
        dims: Sequence[Extent] | None = None,
        dtype: DTypeLike | None = None,
    ) -> Value:
        """Declare a tensor known now: an array, nested lists, or one number for a tensor of the shape ``dims``.

        ``dims`` names the axes of an array.  An array keeps its dtype unless ``dtype`` names another; Python's numbers
        become float16, or bool.  bfloat16 and the 8-bit floats may come as raw bits in uint16 and uint8.
        Errors: as :meth:`input`; SPY0103, SPY0127 and SPY0128 the numbers, SPY0142 dims of other extents.
        """
        site = call_site()
        array, found = constant_array(value, None if dtype is None else dtype_name(dtype, site), site)
        shape: Sequence[Extent] = array.shape if dims is None else dims
        item = self._typed(name, shape, found.value, site)
        extents = tuple(self._extent(entry) for entry in shape)
        if array.ndim and extents != array.shape:
            raise refuse("SPY0142", f"dims are {list(extents)}, the array has {list(array.shape)}", site)
        return Value(self, self._recorder.declare_constant(item, array, site))

    def name_dims(self, value: Value, dims: Sequence[str | Dim | None]) -> Value:
        """Name the axes of an input or a constant that no node has read yet (``None``: no name), and return it.

        Errors: SPY0123 an unknown dim, SPY0142 another extent or number of axes, SPY0143, SPY0147 it cannot be named.
        """
        site = call_site()
        name = self._name_of(value, site)
        if any(name in node.outputs for node in self._recorder.nodes.values()):
            raise refuse("SPY0147", f'"{name}" is the result of a node', site)
        readers = [node.name for node in self._recorder.nodes.values() if name in node.inputs]
        if readers:
            raise refuse("SPY0147", f'node "{readers[0]}" has read "{name}" already', site)
        names = [None if item is None else str(self._shape_entry(item, site)) for item in dims]
        fits = [item is None or self._extent(item) == extent for item, extent in zip(names, value.shape)]
        if len(names) != value.ndim or not all(fits):
            raise refuse("SPY0142", f'the dims {names} do not fit the axes of "{name}", {list(value.shape)}', site)
        self._recorder.rename_axes(name, tuple(names))
        return value

    def output(self, *values: Value) -> None:
        """Make values outputs of the graph, in this order.  Errors: SPY0110, SPY0143."""
        site = call_site()
        self._outputs.extend([self._name_of(value, site) for value in values])

    # --- ops ---

    def op(self, op: str, /, *operands: object, **arguments: object) -> Value:
        """Add a node by the name of its op and return its result.

        ``operands`` are values and numbers in PyTorch's order, ``None`` where an optional one is absent; attributes
        go by keyword, beside ``name``, ``layout`` (a pin), ``work_division`` (a pinned split) and ``outputs`` (names of
        the results, where they differ from the node's).
        Errors: SPY0118 unknown op, SPY0120 to SPY0123 operands and attributes, SPY0143, 02xx those of the op.
        """
        results = self._record(op, operands, arguments)
        if len(results) != 1:
            hint = f"call builder.{op}(...), which returns all of them"
            raise refuse("SPY0139", f"{op} has {len(results)} results", call_site(), hint=hint)
        return results[0]

    def _record(self, op: str, operands: Sequence[object], arguments: Mapping[str, object]) -> tuple[Value, ...]:
        site = call_site()
        definition = catalogue().get(op)
        keywords = dict(arguments)
        requests = {key: keywords.pop(key, None) for key in ("name", "outputs", "layout", "work_division")}
        given, attributes = list(operands), keywords
        if definition is not None:
            given, attributes = bind(definition, operands, keywords, site)
        item: dict[str, JsonValue] = {"name": self._node_name(op, requests["name"]), "op": op}
        item["inputs"] = [operand_json(operand, self, site) for operand in given]
        item["attrs"] = {key: attribute_json(value, site) for key, value in attributes.items()}
        item |= requests_json(requests, site)
        node = self._recorder.add_node(item, site, self._result_names)
        self._loops.add(node.name)
        return tuple(Value(self, name) for name in node.outputs)

    def record_op(self, definition: OpDef, operands: Sequence[object], arguments: Mapping[str, object]) -> object:
        """Add a node and return its result, or all of them as a tuple: what the methods of the ops do."""
        results = self._record(definition.name, operands, arguments)
        is_one = definition.result_count == 1 or (definition.is_first_enough and len(results) == 1)
        return results[0] if is_one else results

    def within(self, module: str) -> None:
        """Let the names of the nodes that follow begin with a module's path: ``layers.0.mlp.linear``."""
        self._module = f"{module}." if module else ""

    @property
    def node_count(self) -> int:
        """How many nodes there are so far."""
        return len(self._recorder.nodes)

    def node_names(self, first: int = 0) -> list[str]:
        """Return the names of the nodes from the ``first`` on, in their order."""
        return list(islice(self._recorder.nodes, first, None))

    def _result_names(self, node: str, count: int) -> list[str]:
        return [self.free_name(f"{node}_{index}") for index in range(count)]

    def _name_of(self, value: object, site: CallSite) -> str:
        """Return the name of one of this builder's values.  Errors: SPY0110 no value, SPY0143 another builder's."""
        name = operand_json(value, self, site)
        if not isinstance(name, str):
            raise refuse(
                "SPY0110", f"{value!r:.60} stands where a value is due", site, hint="give a value of this builder"
            )
        return name

    def _node_name(self, op: str, name: object) -> JsonValue:
        return self.free_name(self._module + op) if name is None else cast("JsonValue", name)

    def free_name(self, stem: str) -> str:
        """Return a name that nothing has: ``stem``, or ``stem`` with the next free number."""
        name, number = stem, self._last_numbers.get(stem, 0)
        while self._recorder.is_taken(name):
            number += 1
            name = f"{stem}_{number}"
        self._last_numbers[stem] = max(number - 1, 0)  # the call may yet be refused
        return name

    # --- loops ---

    def loop(self, tiles: DimCounts = _NO_COUNTS, /, *, tile_size: DimCounts = _NO_COUNTS, **counts: int) -> LoopScope:
        """Tile the ops of the ``with`` block: ``loop(A=2)`` cuts dim A into 2 tiles, ``loop(tile_size={"A": 64})`` into
        tiles of 64 elements.

        Several dims stand in one loop that visits every combination of their tiles, the first dim slowest; blocks nest.
        Errors: SPY0134 the loop cannot be, here or at the end of the block; SPY0144 blocks left out of order.
        """
        site = call_site()
        pairs = [(dim, "tiles", count) for dim, count in (*tiles.items(), *counts.items())]
        pairs += [(dim, "tile_size", size) for dim, size in tile_size.items()]
        return LoopScope(self._loops, levels_of(pairs, self._recorder, site), site)

    def loops_from(self, function: LoopFunction) -> None:
        """Let a function compute the loops from the built graph: nodes with their dims.

        What it returns takes the place of the ``with`` blocks' loops, which it finds in ``graph.loops``.  It returns a
        list of loops, as the graph or the graph file has them, or as groups: ``(ops, tiles)``, ``(ops, tiles, dims)``,
        ``(ops, [(tiles, dims), ...])``.  It is called by :meth:`build`, which raises what is wrong with them.
        """
        self._loop_function = (function, call_site())

    def update(self, value: Value, of: Value) -> None:
        """Make a value an output of the graph, and the new content of the input ``of``, of its shape and dtype.

        Errors: SPY0110, SPY0143, SPY0150 it is no input, the types differ, or it is replaced already.
        """
        site = call_site()
        output, name = self._name_of(value, site), self._name_of(of, site)
        known = self._recorder.tables.values
        problem = why_no_update(output, name, self._recorder.inputs, self._updates.values(), known)
        if output in self._updates:
            problem = f'"{output}" replaces "{self._updates[output]}"; one output replaces one input'
        if problem is not None:
            raise refuse("SPY0150", problem, site)
        self._updates[output] = name
        if output not in self._outputs:
            self._outputs.append(output)

    def outside_lx(self, value: Value) -> None:
        """Keep a value in device memory: no scratchpad holds it or what is made on the way to it.

        Errors: SPY0110, SPY0143.
        """
        self._outside_lx[self._name_of(value, call_site())] = None

    # --- the graph ---

    def build(self) -> ir.Graph:
        """Return the graph so far.  Errors: SPY0137 no output, SPY0144 inside a loop, those of computed loops."""
        site = call_site()
        if self._loops.innermost is not None:
            raise refuse("SPY0144", f"the loop over {self._loops.innermost} is still open", site)
        if not self._outputs:
            raise refuse("SPY0137", "the graph has no outputs", site, hint="name one: builder.output(value)")
        tables, nodes = self._recorder.tables, tuple(self._recorder.nodes.values())
        names = [*self._recorder.inputs, *tables.constants, *(name for node in nodes for name in node.outputs)]
        graph = ir.Graph(
            name=self._name,
            dims=dict(tables.dims),
            inputs=tuple(self._recorder.inputs),
            constants=dict(tables.constants),
            nodes=nodes,
            values={name: tables.values[name] for name in names},
            outputs=tuple(self._outputs),
            loops=self._loops.closed,
            updates=dict(self._updates),
            outside_lx=tuple(self._outside_lx),
        )
        return graph if self._loop_function is None else replace(graph, loops=self._computed_loops(graph))

    def to_json(self) -> dict[str, JsonValue]:
        """Return the graph as the object of a graph file.  Errors: as :meth:`build`; SPY0146 too large a constant."""
        return inline_json(self.build())

    def save(self, directory: str | PathLike[str]) -> None:
        """Write ``graph.json``, and ``constants.safetensors`` where a constant is large, into a new directory; atomic.

        Errors: as :meth:`build`; SPY0612 the directory exists, SPY0613 it cannot be written.
        """
        save_graph(self.build(), Path(directory))

    def described(self, name: str) -> ir.Value:
        """Return what the value of that name is: type, dims, pin."""
        return self._recorder.tables.values[name]

    def _computed_loops(self, graph: ir.Graph) -> tuple[ir.LoopRequest, ...]:
        assert self._loop_function is not None
        function, site = self._loop_function
        found = loops_json(function(graph), graph, site)
        models = self._recorder.read({"loops": found}, site).loops
        loops = self._recorder.read_loops(models, self._recorder.nodes, site)
        for loop in loops:
            check_loop(self._recorder, loop, site)
        return loops

    # --- shapes ---

    def _typed(self, name: str, shape: Sequence[Extent], dtype: str, site: CallSite) -> dict[str, JsonValue]:
        return {"name": name, "shape": [self._shape_entry(entry, site) for entry in shape], "dtype": dtype}

    def _shape_entry(self, entry: Extent, site: CallSite) -> JsonValue:
        """Return an extent as shapes of the graph file have it.  Errors: SPY0123 unknown dim, SPY0142 another one."""
        if isinstance(entry, Dim):
            return self._known_dim(entry, site).name
        if isinstance(entry, str) and entry not in self._recorder.tables.dims:
            raise refuse("SPY0123", f'dim "{entry}" is not declared', site, hint=f'builder.dim("{entry}", extent)')
        return attribute_json(entry, site)

    def _known_dim(self, dim: Dim, site: CallSite) -> Dim:
        """Return a dim that is declared as it says.  Errors: SPY0123 it is not declared, SPY0142 another extent."""
        known = self._recorder.tables.dims.get(dim.name)
        if known is None:
            message = f'dim "{dim.name}" is not declared in this builder'
            raise refuse("SPY0123", message, site, hint=f'builder.dim("{dim.name}", extent)')
        if known != dim.definition:
            raise refuse("SPY0142", f'dim "{dim.name}" is {known} elements, and {dim.definition} here', site)
        return dim

    def _extent(self, entry: Extent) -> int:
        name = dim_name(entry) if isinstance(entry, str | Dim) else None
        return cast("int", entry) if name is None else self._recorder.tables.extents[name]
