"""What the host computes between the programs of a plan: nodes of the graph that the bundle holds.

It is handed to the runtime, which knows no graphs.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle_content import GRAPH_FILE, BundleContent
from spyrec.bundle.manifest import HostStep
from spyrec.compare.bundle_graph import graph_of_bundle
from spyrec.compare.check import constant_loader
from spyrec.diagnostics import Location, refuse
from spyrec.ir.graph import Graph, Node
from spyrec.ir.host_ops import compute_on_host

HostArray = npt.NDArray[np.generic]


class HostSteps:
    """The steps of one bundle.

    Errors: SPY0611 a step names what the bundle's graph lacks, or the bundle holds no graph; those of
    :func:`graph_of_bundle`.
    """

    def __init__(self, bundle: BundleContent) -> None:
        if bundle.graph_json is None:
            raise refuse("SPY0611", "the manifest has steps of the host, and the bundle holds no graph.json")
        self._bundle = bundle
        self._extents: Mapping[str, int] = {}
        self._graph, self._stored = graph_of_bundle(bundle)
        self._nodes = self._steps()
        _refuse_unmade(self._graph, self._nodes, bundle.manifest.host_steps)

    def _steps(self) -> list[list[Node]]:
        nodes = {node.name: node for node in self._graph.nodes}
        return [_nodes_of(step, nodes, number) for number, step in enumerate(self._bundle.manifest.host_steps)]

    @property
    def inputs(self) -> set[str]:
        """The graph's inputs that steps read as a run is given them."""
        operands = {name for nodes in self._nodes for node in nodes for name in node.inputs if isinstance(name, str)}
        return operands.intersection(self._graph.inputs)

    def compute(self, number: int, values: Mapping[str, HostArray], extents: Mapping[str, int]) -> dict[str, HostArray]:
        """Return the results of a step by name; ``values``: what is on the host, ``extents``: of symbolic dims.

        Errors: SPY0318 an integer that does not fit.
        """
        if extents != self._extents:
            self._graph, self._stored = graph_of_bundle(self._bundle, extents)
            self._nodes = self._steps()
            self._extents = dict(extents)
        return compute_on_host(self._graph, self._nodes[number], values, self.constant)

    def constant(self, name: str) -> HostArray:
        """Return the numbers of a constant of the graph; errors as :func:`constant_loader`."""
        return constant_loader(self._bundle, self._graph, self._stored)(name)

    def is_constant(self, name: str) -> bool:
        """Whether a value of the graph is a constant."""
        return name in self._graph.constants


def _nodes_of(step: HostStep, nodes: Mapping[str, Node], number: int) -> list[Node]:
    unknown = [name for name in step.nodes if name not in nodes]
    if unknown:
        place = Location("manifest.json").child("host_steps", number, "nodes")
        raise refuse("SPY0611", f'{GRAPH_FILE} has no node "{unknown[0][:80]}"', place)
    return [nodes[name] for name in step.nodes]


def _refuse_unmade(graph: Graph, steps: list[list[Node]], described: tuple[HostStep, ...]) -> None:
    """Refuse a step that reads what neither a step before it nor a program makes, or gives what it does not make."""
    made = {*graph.inputs, *graph.constants}
    for number, (nodes, step) in enumerate(zip(steps, described, strict=True)):
        place = Location("manifest.json").child("host_steps", number)
        known = made | step.takes.keys()
        for node in nodes:
            for operand in node.inputs:
                if isinstance(operand, str) and operand not in known:
                    raise refuse("SPY0611", f'"{node.name}" reads "{operand}", which nothing made before', place)
            known.update(node.outputs)
            made.update(node.outputs)
        for name in step.gives:
            if name not in made:
                raise refuse("SPY0611", f'the step gives "{name}", which none of its nodes makes', place)
