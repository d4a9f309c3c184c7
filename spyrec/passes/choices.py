"""What the planner chooses among, said as pins of a graph: the choices that a search may take otherwise.

The alternatives are the planner's own candidates: divisions of ``divide-work``, layouts of ``assign-layouts``, loops of
``auto-tile``, what ``place-scratchpad`` brings to LX.  What the graph pins is no choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from itertools import islice

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location
from spyrec.hardware.plan_record import Decision
from spyrec.ir.graph import Graph, LayoutPin, LoopRequest, Node, location_of
from spyrec.ir.kernel import Kernel, KernelGraph
from spyrec.passes.assign_layouts import candidates_of
from spyrec.passes.assign_layouts.operand_orders import order_costs
from spyrec.passes.auto_tile import members_to_tile, ways_to_tile
from spyrec.passes.base import NO_PLANNER, PipelineOptions, Refused, TileGroup
from spyrec.passes.divide_work.division_candidates import MOST_CANDIDATES, candidates
from spyrec.passes.divide_work.pins import folded_axes, with_named_axes
from spyrec.passes.driver import DriverOptions, PassRecord, run_pipeline
from spyrec.passes.planning.record import slices_by_dim
from spyrec.passes.stages import device_stages

_IN_LX = frozenset({Decision.RESIDENT, Decision.STAGED, Decision.DRAINED, Decision.SHUFFLED, Decision.SPILLED})


class ChoiceKind(Enum):
    """What is chosen."""

    DIVISION = "division"
    LAYOUT = "layout"
    TILES = "tiles"
    LX = "lx"


@dataclass(frozen=True, slots=True)
class DivisionPin:
    """Slices of a node's dims, by the keys that a graph file has for them."""

    slices: Mapping[str, int]

    def __str__(self) -> str:
        return " ".join(f"{key} {count}" for key, count in self.slices.items())


@dataclass(frozen=True, slots=True)
class ValueLayoutPin:
    """A device layout of an input or of a node's result."""

    layout: LayoutPin

    def __str__(self) -> str:
        return f"{list(self.layout.device_size or ())} strides {list(self.layout.stride_map or ())}"


@dataclass(frozen=True, slots=True)
class LoopPin:
    """A loop around nodes.

    ``names``: of axes of inputs and constants, (value, axis), that have to be called as the loop's dim, which is new.
    """

    loop: LoopRequest
    extent: int
    names: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        assert self.loop.tile_size is not None
        tiles = math.ceil(self.extent / self.loop.tile_size)
        return f"{len(self.loop.body)} nodes in {tiles} tiles of {self.loop.tile_size}"


@dataclass(frozen=True, slots=True)
class OutsidePin:
    """A value stays in device memory."""

    name: str

    def __str__(self) -> str:
        return "device memory"


Pin = DivisionPin | ValueLayoutPin | LoopPin | OutsidePin


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision of the planner, and what a graph may pin instead of it.

    ``subject``: the node, the value, or "" for loops, of which a graph has one group at most.  ``planned``: what the
    planner chose, in words.
    """

    kind: ChoiceKind
    subject: str
    planned: str
    pins: tuple[Pin, ...] = field(compare=False)


def choices(graph: Graph, options: PipelineOptions) -> list[Choice]:
    """Return what the planner chooses in a graph that it has a plan for; in the order of nodes, divisions first.

    Errors: as :func:`spyrec.passes.stages.run_stages`.
    """
    own = {location_of(node.origin): node for node in graph.nodes}
    found: list[Choice] = []
    for stage in device_stages(graph, options):
        assert isinstance(stage.graph, Graph), "stages begin with nodes"
        found += _Plan(graph, stage.graph, options, own).choices()
    order = list(ChoiceKind)
    return sorted(_unique(found), key=lambda item: order.index(item.kind))


def _unique(found: Sequence[Choice]) -> Iterator[Choice]:
    """Yield each subject's choice once: two parts may read one value, and a graph has one group of loops."""
    seen: set[tuple[ChoiceKind, str]] = set()
    for item in found:
        if (item.kind, item.subject) not in seen and item.pins:
            seen.add((item.kind, item.subject))
            yield item


class _Plan:
    """The plan of one part of a graph that the device computes, with what its passes made on the way."""

    def __init__(self, graph: Graph, part: Graph, options: PipelineOptions, own: Mapping[Location, Node]) -> None:
        self._graph = graph
        self._options = options
        self._own = own
        self._named = with_named_axes(part)
        records: list[PassRecord] = []
        planned = run_pipeline(self._named, options, DriverOptions(observe=records.append))
        assert isinstance(planned, KernelGraph), "a whole pipeline ends in kernels"
        self._planned = planned
        made = {record.name: record.result for record in records}
        self._formed = _kernels(made["form-kernels"])
        self._tiled = _kernels(made["tile-loops"])
        self._laid_out = _kernels(made["assign-layouts"])

    def choices(self) -> Iterator[Choice]:
        """Yield the choices of the part, some of them maybe without an alternative."""
        yield from self._divisions()
        yield from self._layouts()
        yield Choice(ChoiceKind.TILES, "", self._planned_loops(), tuple(self._loops()))
        yield from self._in_lx()

    # --- divisions ---

    def _divisions(self) -> Iterator[Choice]:
        for node, kernels in self._by_node(self._laid_out.kernels).items():
            if self._nodes[node].work_division is None:
                pins = self._division_pins(self._nodes[node], kernels)
                planned = self._planned_divisions(node)
                yield Choice(ChoiceKind.DIVISION, node, planned, tuple(islice(pins, MOST_CANDIDATES)))

    @property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self._own.values()}

    def _by_node(self, kernels: Sequence[Kernel]) -> dict[str, list[Kernel]]:
        """Return the kernels that do the work of each node of the graph; copies that passes inserted are none."""
        found: dict[str, list[Kernel]] = {}
        for kernel in kernels:
            node = self._own.get(location_of(kernel.origin))
            if node is not None and kernel.reason is None:
                found.setdefault(node.name, []).append(kernel)
        return found

    def _division_pins(self, node: Node, kernels: Sequence[Kernel]) -> Iterator[DivisionPin]:
        """Yield the candidates of a node's kernels by turns, those that each kernel alone would prefer first."""
        keys = self._keys(node)
        lists = [self._pins_of(kernel, keys) for kernel in kernels]
        seen: set[tuple[tuple[str, int], ...]] = set()
        for rank in range(max(map(len, lists), default=0)):
            for slices in (found[rank] for found in lists if rank < len(found)):
                key = tuple(sorted(slices.items()))
                if key not in seen:
                    seen.add(key)
                    yield DivisionPin(slices)

    def _pins_of(self, kernel: Kernel, keys: Mapping[str, str]) -> list[dict[str, int]]:
        """Return a kernel's candidates as a file says them; none whose divided dims have no name."""
        variables = kernel.placed.variables
        found: list[dict[str, int]] = []
        for candidate in candidates(self._laid_out, kernel, self._options):
            counts = [1] * len(kernel.extents)
            for variable, count in zip(variables, candidate.division, strict=True):
                counts[variable.dim] *= count
            divided = {dim: count for dim, count in enumerate(counts) if count > 1}
            names = {dim: keys.get(kernel.dims[dim] or "") if kernel.dims else None for dim in divided}
            if not divided or None in names.values():
                continue
            slices = {str(names[dim]): count for dim, count in divided.items()}
            if len(slices) == len(divided):
                found.append(slices)
        return found

    def _keys(self, node: Node) -> dict[str, str]:
        """Return what a file calls the dims of a node: by its own names, and by position where it has none."""
        found: dict[str, str] = {}
        if node.outputs[0] in self._named.values:
            for axis, name in enumerate(self._named.values[node.outputs[0]].dims):
                if name is not None:
                    found.setdefault(name, name if name in self._graph.dims else f"out.{axis}")
        for number, name in enumerate(self._folded_names(node)):
            if name is not None:
                found.setdefault(name, name if name in self._graph.dims else f"reduce.{number}")
        return found

    def _folded_names(self, node: Node) -> list[str | None]:
        operand = node.inputs[0] if node.inputs else None
        if not isinstance(operand, str) or operand not in self._named.values:
            return []
        dims = self._named.values[operand].dims
        return [dims[axis] for axis in folded_axes(self._named, node)]

    def _planned_divisions(self, node: str) -> str:
        """Return how the planner divides a node's kernels, each way once."""
        keys = self._keys(self._nodes[node])
        kernels = self._by_node(self._planned.kernels).get(node, ())
        ways = (slices_by_dim(kernel, kernel.division or ()) for kernel in kernels)
        texts = (" ".join(f"{keys.get(name, name)} {count}" for name, count in way.items()) for way in ways)
        return "; ".join(dict.fromkeys(text or "one core" for text in texts))

    # --- layouts ---

    def _layouts(self) -> Iterator[Choice]:
        plain = candidates_of(self._tiled, self._options.target, fixed_io_layouts=self._options.fixed_io_layouts)
        if isinstance(plain, Refused):
            return
        orders = order_costs(self._tiled, plain, self._options)
        for name in self._pinnable():
            buffer = self._tiled.buffers[name]
            layouts = tuple(dict.fromkeys((*plain[name], *orders.get(name, ()))))
            if buffer.pin is None and len(layouts) > 1:
                pins = (LayoutPin(item.device.device_size, item.device.stride_map) for item in layouts)
                planned = self._planned_layout(name)
                yield Choice(ChoiceKind.LAYOUT, name, planned, tuple(map(ValueLayoutPin, pins)))

    def _planned_layout(self, name: str) -> str:
        buffer = self._planned.buffers.get(name)
        if buffer is None:  # it was merged with what it is copied to
            return "as what it is copied to"
        device = buffer.placed.device
        return str(ValueLayoutPin(LayoutPin(device.device_size, device.stride_map)))

    def _pinnable(self) -> Iterator[str]:
        """Yield the inputs and first results of nodes that have a buffer of their own, whole, as a file shapes them."""
        results = [node.outputs[0] for node in self._graph.nodes if not node.on_host]
        for name in (*self._graph.inputs, *results):
            use, buffer = self._tiled.places.get(name), self._tiled.buffers.get(name)
            if use is None or buffer is None or self._graph.values[name].pin is not None:
                continue
            is_plain = use.buffer == name and use.access == buffer.whole and buffer.host_shape is None
            if is_plain and not buffer.home:
                yield name

    # --- loops ---

    def _planned_loops(self) -> str:
        return "; ".join(dict.fromkeys(map(str, self._planned.loops.values()))) or "no loops"

    def _loops(self) -> Iterator[LoopPin]:
        """Yield loops around nodes that hang together, where the graph asks for none."""
        if self._graph.loops or self._graph.symbolic_dims or self._options.lx_planner == NO_PLANNER:
            return
        kernels = {kernel.name: kernel for kernel in self._formed.kernels}
        seen: set[tuple[str, int, tuple[str | LoopRequest, ...]]] = set()
        for members, fewest in members_to_tile(self._formed, self._planned, self._options):
            for group in ways_to_tile(self._formed, members, fewest, self._options.cores):
                pin = self._loop_pin(group, kernels)
                if pin is None or (key := (pin.loop.dims[0], group.tile, pin.loop.body)) in seen:
                    continue
                seen.add(key)
                yield pin
                if len(seen) == MOST_CANDIDATES:
                    return

    def _loop_pin(self, group: TileGroup, kernels: Mapping[str, Kernel]) -> LoopPin | None:
        """Return the loop that a file asks for a group with, ``None`` where its axis goes by several names."""
        dims = {kernels[name].dims[dim] if kernels[name].dims else None for name, dim in group.dims}
        nodes = {location_of(kernels[name].origin) for name, _ in group.dims}
        name = next(iter(dims))
        if len(dims) != 1 or name is None:
            return None
        body = tuple(node.name for node in self._graph.nodes if location_of(node.origin) in nodes)
        if name in self._graph.dims:
            return LoopPin(LoopRequest((name,), None, group.tile, body), group.extent)
        given = (*self._graph.inputs, *self._graph.constants)
        named = [
            (value, axis)
            for value in given
            if value in self._named.values
            for axis, own in enumerate(self._named.values[value].dims)
            if own == name
        ]
        if not named:
            return None
        fresh = _fresh_name(self._graph)
        return LoopPin(LoopRequest((fresh,), None, group.tile, body), group.extent, tuple(named))

    # --- LX ---

    def _in_lx(self) -> Iterator[Choice]:
        """Yield the values that the plan brings to LX, or would if there were room."""
        if self._options.lx_planner == NO_PLANNER:
            return
        names: dict[str, str] = {}
        for note in self._planned.notes:
            if note.decision in _IN_LX and note.subject in self._planned.buffers:
                name = self._value_of(note.subject)
                if name is not None:
                    names.setdefault(name, note.decision.value)
        for name, planned in names.items():
            if name not in self._graph.outside_lx:
                yield Choice(ChoiceKind.LX, name, planned, (OutsidePin(name),))

    def _value_of(self, buffer: str) -> str | None:
        """Return the input, constant or result whose memory a buffer is, or is a step to."""
        if buffer in self._graph.inputs or buffer in self._graph.constants:
            return buffer
        node = self._own.get(location_of(self._planned.buffers[buffer].origin))
        return None if node is None else node.outputs[0]


def _kernels(graph: Graph | KernelGraph) -> KernelGraph:
    assert isinstance(graph, KernelGraph), "it is behind form-kernels"
    return graph


def _fresh_name(graph: Graph) -> str:
    """Return a name that no dim has."""
    number = 0
    while f"tiled_{number}" in graph.dims:
        number += 1
    return f"tiled_{number}"
