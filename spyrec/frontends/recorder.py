"""The tables of a graph under construction: those of the JSON reader, filled one declaration at a time.

What a builder makes is therefore what reading the same graph from JSON gives, refusals included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import DiagnosticSink, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.frontends.call_site import CallSite
from spyrec.ir.constants import InlineValueError, repeated
from spyrec.ir.declarations import Declarations
from spyrec.ir.form import read_form
from spyrec.ir.graph import ConstantData, Graph, LoopRequest, Node, Value
from spyrec.ir.graph_text import FORMAT, GraphForm, GraphText, LoopText, take_graph
from spyrec.ir.node_reader import NameResults, NodeReader
from spyrec.ir.requests import read_loops, read_work_divisions

_NO_GRAPH: dict[str, JsonValue] = {"format": FORMAT, "outputs": ["nothing"]}


class GraphRecorder:
    """Dims, values and nodes so far; a declaration that is refused leaves no trace."""

    def __init__(self) -> None:
        form = GraphForm(take_graph(_NO_GRAPH))
        self.tables = Declarations(CallSite(), DiagnosticSink(), None, form)
        self.inputs: list[str] = []
        self.nodes: dict[str, Node] = {}
        self._sites: dict[str, CallSite] = {}

    def adopt(self, graph: Graph) -> None:
        """Take over all that a graph declares, as if it had been declared here."""
        site = CallSite()
        self.tables.dims.update(graph.dims)
        self.tables.extents.update(graph.extents)
        self.tables.values.update(graph.values)
        self.tables.constants.update(graph.constants)
        self.inputs.extend(graph.inputs)
        self.nodes.update({node.name: node for node in graph.nodes})
        self._sites.update(dict.fromkeys(graph.values, site))

    def read(self, part: Mapping[str, JsonValue], site: CallSite) -> GraphText:
        """Return a part of a graph file as records, and let the tables report at ``site``.

        Errors: those of :func:`spyrec.ir.form.read_form`.
        """
        sink = DiagnosticSink()
        form = read_form({**_NO_GRAPH, **part}, site, sink)
        sink.raise_if_errors()
        self.tables.root, self.tables.sink = site, sink
        return form.model

    def declare_dim(self, name: str, definition: JsonValue, site: CallSite) -> None:
        """Declare a dim that is not known.  Errors: SPY0110, SPY0114, SPY0124, SPY0133."""
        model = self.read({"dims": {name: definition}}, site)
        self._attempt(lambda: self.tables.read(model), lambda: self._forget_dim(name))

    def declare_input(self, item: dict[str, JsonValue], site: CallSite) -> str:
        """Declare an input and return its name.  Errors: as reading ``inputs``."""
        name = self._declare_value(item, site)
        self.inputs.append(name)
        return name

    def declare_constant(self, item: dict[str, JsonValue], array: npt.NDArray[np.generic], site: CallSite) -> str:
        """Declare a constant of the type that ``item`` states, and return its name.  Errors: as reading ``inputs``."""
        name = self._declare_value(item, site)
        try:
            held = array if array.ndim else repeated(array, self.tables.values[name].type.shape)
        except InlineValueError as error:
            self.tables.forget(name)
            raise refuse(error.code, f'constant "{name}": {error.message}', site) from None
        self.tables.constants[name] = ConstantData(array=held)
        return name

    def _declare_value(self, item: dict[str, JsonValue], site: CallSite) -> str:
        model = self.read({"inputs": [item]}, site)
        name = model.inputs[0].name
        self.refuse_taken([name], site)
        self._attempt(lambda: self.tables.read(model), lambda: self.tables.forget(name))
        self._sites[name] = site
        return name

    def add_node(self, item: dict[str, JsonValue], site: CallSite, name_results: NameResults) -> Node:
        """Add a node and return it; ``name_results`` names several results.  Errors: as reading ``nodes``."""
        model = self.read({"nodes": [item]}, site).nodes[0]
        names = [model.name] if model.outputs is None else model.outputs
        self.refuse_taken(names, site)
        if model.name in self.nodes:
            raise refuse("SPY0115", f'the node name "{model.name}" is taken', site)
        read: list[Node] = []
        constants = set(self.tables.constants)

        def work() -> None:
            reader = NodeReader(self.tables, name_results)
            read.extend(read_work_divisions([model], reader.read([model]), self.tables))

        def undo() -> None:
            for name in {model.name, *names, *(self.tables.constants.keys() - constants)}:
                self.tables.forget(name)

        self._attempt(work, undo)
        node = read[0]
        if model.name not in node.outputs:
            self.tables.forget(model.name)
        self._sites.update(dict.fromkeys((*node.outputs, *(self.tables.constants.keys() - constants)), site))
        self.nodes[model.name] = node
        return node

    def refuse_taken(self, names: Iterable[str], site: CallSite) -> None:
        """Refuse a value name that is taken.  Errors: SPY0115."""
        for name in names:
            if name in self._sites:
                notes = (f"the first one is at {self._sites[name]}",)
                raise refuse("SPY0115", f'the value name "{name}" is taken', site, notes=notes)

    def is_taken(self, name: str) -> bool:
        """Whether a value or a node has this name."""
        return name in self._sites or name in self.nodes

    def rename_axes(self, name: str, dims: tuple[str | None, ...]) -> None:
        """Give the axes of a value other dim names."""
        self.tables.values[name] = replace(self.tables.values[name], dims=dims)

    def read_loops(self, models: Iterable[LoopText], nodes: Iterable[str], site: CallSite) -> tuple[LoopRequest, ...]:
        """Return the loops that models state over some of the nodes.  Errors: SPY0134, SPY0116."""
        self.tables.root, self.tables.sink = site, DiagnosticSink()
        loops = read_loops(list(models), [self.nodes[name] for name in nodes], self.tables)
        self.tables.sink.raise_if_errors()
        return loops

    def touched(self, node: str) -> list[Value]:
        """Return the operands and results of a node."""
        found = self.nodes[node]
        names = [*(operand for operand in found.inputs if isinstance(operand, str)), *found.outputs]
        return [self.tables.values[name] for name in names]

    def _attempt(self, work: Callable[[], object], undo: Callable[[], object]) -> None:
        """Do ``work`` and raise what it reported, after ``undo``."""
        try:
            work()
            self.tables.sink.raise_if_errors()
        except SpyrecError:
            undo()
            raise

    def _forget_dim(self, name: str) -> None:
        self.tables.dims.pop(name, None)
        self.tables.extents.pop(name, None)
