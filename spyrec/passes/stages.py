"""Runs the passes over a graph whose parts the host computes: over each part of the device by itself, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.hardware.plan_record import Decision, PlanNote
from spyrec.ir.constants import load_constant
from spyrec.ir.graph import Graph, LayoutPin, location_of
from spyrec.ir.host_ops import refuse_wide
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.likeness import Answers
from spyrec.ir.parts import HostPart, Part, RowPart, Staged, TopPart
from spyrec.ir.types import TensorType
from spyrec.layout.device_layout import DeviceLayout
from spyrec.passes.base import PassContext, PipelineOptions
from spyrec.passes.divide_work.pins import name_pinned_dims
from spyrec.passes.driver import DriverOptions, Stage, run_pipeline
from spyrec.passes.mask_folds import folded_dims, with_mask_inputs, with_mask_makers
from spyrec.passes.parts import TABLE, split, writes_rows
from spyrec.passes.pipelines import DEVICE_GRAPH
from spyrec.passes.state_writes import copies, with_row_writes
from spyrec.passes.tile_loops.symbolic import refuse_unsteady_shapes
from spyrec.passes.top_k import on_device


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A graph in parts; ``whole``: the graph that they are parts of."""

    source: Graph
    whole: Graph
    parts: tuple[Part, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the device computes all of it as one."""
        return len(self.parts) == 1 and self.parts[0] is self.source


def device_stages(graph: Graph, options: PipelineOptions) -> list[Stage]:
    """Return the parts that the device computes, in order, each as the pipeline begins with it.

    Errors: as :func:`run_stages` before any pass.
    """
    prepared = _prepared(graph, options)
    pins = _default_layouts(prepared.whole, prepared.parts)
    found: list[Stage] = []
    for part in prepared.parts:
        if isinstance(part, Graph):
            values = {name: replace(value, pin=pins.get(name, value.pin)) for name, value in part.values.items()}
            first = name_pinned_dims(part if prepared.is_whole else replace(part, values=values))
            refuse_unsteady_shapes(first)
            found.append(Stage(first, frozenset(), first))
    return found


def run_stages(graph: Graph, options: PipelineOptions, driver: DriverOptions) -> Graph | KernelGraph | Staged:
    """Run the passes over a graph, or over each of its parts that the device computes.

    A tensor that two parts use has in the later ones the layout that the first gave it.  Errors: as
    :func:`run_pipeline`, SPY0448.
    """
    prepared = _prepared(graph, options)
    graph, whole, parts = prepared.source, prepared.whole, prepared.parts
    reasons = copies(whole, writes_rows)
    if prepared.is_whole:
        return _noted(run_pipeline(graph, options, driver), graph, reasons)
    results: list[HostPart | RowPart | TopPart | KernelGraph] = []
    pins = _default_layouts(whole, parts)
    for part in parts:
        if isinstance(part, HostPart | RowPart | TopPart):
            results.append(part)
            continue
        values = {name: replace(value, pin=pins.get(name, value.pin)) for name, value in part.values.items()}
        planned = _noted(run_pipeline(replace(part, values=values), options, driver), part, reasons)
        if isinstance(planned, Graph) or driver.stop_after is not None:
            continue
        results.append(planned)
        pins = {**_layouts(planned), **pins}
    return graph if driver.stop_after is not None else Staged(graph, whole, tuple(results))


def _noted(planned: Graph | KernelGraph, part: Graph, copied: Mapping[str, str]) -> Graph | KernelGraph:
    """Return what was planned of a part with notes of the state that it copies."""
    if not copied or isinstance(planned, Graph):
        return planned
    made = {name.removesuffix(TABLE) for node in part.nodes for name in node.outputs}
    return planned.with_notes(
        *(PlanNote(name, Decision.COPIED, reason) for name, reason in copied.items() if name in made)
    )


def _prepared(graph: Graph, options: PipelineOptions) -> _Prepared:
    """Return what the device and the host compute of a graph.

    Errors: SPY0318 a constant that 32 bits do not hold, SPY0448, and those of symbolic dims.
    """
    _refuse_wide_constants(graph)
    graph = with_row_writes(graph, writes_rows)
    prepared = on_device(graph, options)
    whole, parts = split(prepared, options)
    if graph.symbolic_dims:
        of_host = {node.name for part in parts if isinstance(part, HostPart) for node in part.nodes}
        refuse_unsteady_shapes(replace(whole, nodes=whole.live_nodes()), of_host)
        graph, whole, parts = _with_masks(graph, whole, parts, options)
    is_whole = len(parts) == 1 and parts[0] is prepared
    return _Prepared(prepared if is_whole else graph, whole, parts)


def _refuse_wide_constants(graph: Graph) -> None:
    """Refuse an int64 constant in use that 32 bits do not hold, whoever would compute with it.  Errors: SPY0318."""
    used = {name for node in graph.live_nodes() for name in node.inputs} | set(graph.outputs)
    for name in graph.constants:
        if name in used and graph.type_of(name).dtype is DType.INT64:
            refuse_wide(name, load_constant(graph, name), where=location_of(graph.values[name].origin))


def _with_masks(
    graph: Graph, whole: Graph, parts: tuple[Part, ...], options: PipelineOptions
) -> tuple[Graph, Graph, tuple[Part, ...]]:
    """Return a graph, its whole and its parts with the masks of the symbolic dims that parts for the device fold."""
    folded = [folded_dims(_device_graph(part, options)) if isinstance(part, Graph) else None for part in parts]
    dims = sorted(frozenset[str]().union(*(item for item in folded if item)))
    if not dims:
        return graph, whole, parts
    source, makers = with_mask_makers(graph, dims)
    names = dict(zip(dims, (node.output for node in makers), strict=True))
    planned = [
        with_mask_inputs(part, {dim: source.values[names[dim]] for dim in sorted(needed)})
        if isinstance(part, Graph) and needed
        else part
        for part, needed in zip(parts, folded, strict=True)
    ]
    first = planned.pop(0) if isinstance(planned[0], HostPart) else HostPart((), ())
    assert isinstance(first, HostPart)
    own = {node.name for node in first.nodes}
    nodes = tuple(node for node in makers if node.name not in own)
    reasons = ("it is the mask of an extent",) * len(nodes)
    planned.insert(0, HostPart((*nodes, *first.nodes), (*reasons, *first.reasons)))
    return source, replace(whole, values={**whole.values, **source.values}), tuple(planned)


def _device_graph(part: Graph, options: PipelineOptions) -> Graph:
    for item in DEVICE_GRAPH:
        part = item.run(part, PassContext(options, [], Answers()))
    return part


def _default_layouts(graph: Graph, parts: Sequence[Part]) -> dict[str, LayoutPin]:
    """Return the default layouts of what operations by themselves read and write: rows, and the largest elements."""
    pins: dict[str, LayoutPin] = {}
    for part in parts:
        if isinstance(part, TopPart):
            for name in (*part.inputs, part.node.output):
                pins[name] = _default_layout(graph.type_of(name))
        if isinstance(part, RowPart):
            table = graph.type_of(part.table)
            walked = part.access.walked(table, graph.type_of(part.index))
            shapes = {part.table: table.shape, part.node.output: table.shape if part.source else walked}
            pins[part.index] = _default_layout(graph.type_of(part.index))
            if part.source is not None:
                shapes[part.source] = walked
            for name, shape in shapes.items():
                pins[name] = _default_layout(TensorType(shape, table.dtype))
    return pins


def _default_layout(tensor: TensorType) -> LayoutPin:
    layout = DeviceLayout.default(tensor.shape, tensor.dtype)
    return LayoutPin(layout.device_size, layout.stride_map)


def _layouts(planned: KernelGraph) -> dict[str, LayoutPin]:
    """Return the layouts of a part's inputs and outputs, by the names of the values."""
    buffers = dict([*((name, name) for name in planned.inputs), *planned.outputs])
    found: dict[str, LayoutPin] = {}
    for value, name in buffers.items():
        layout = planned.buffers[name].placed.device
        found[value] = LayoutPin(layout.device_size, layout.stride_map)
    return found
