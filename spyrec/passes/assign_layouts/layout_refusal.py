"""Why no layout serves a kernel: both sides' layouts, the way each came about, and a pin that would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.device_ops import COPIES
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.ir.device_layout import BufferLayout
from spyrec.ir.graph import Graph, LayoutPin, location_of
from spyrec.ir.kernel import Kernel, KernelBuffer, KernelGraph
from spyrec.passes.assign_layouts.realize import forms_of

_MOST_STEPS = 8
"""Nodes of a path that are named; a longer one is cut."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """The kernel in the way, the layouts its buffers may have (the default or pinned one first), the broken rule."""

    kernel: Kernel
    domains: Mapping[str, Sequence[BufferLayout]]
    reason: str | None


Serves = Callable[[KernelBuffer], bool]
"""Does a choice of layouts serve every kernel of the graph where this buffer, with another pin, takes its place?"""


def refusal(graph: KernelGraph, conflict: Conflict, serves: Serves) -> SpyrecError:
    """Return the error SPY0350 of a graph that no choice serves."""
    kernel = conflict.kernel
    target = _value_of(graph, kernel.output.buffer)
    sources = ", ".join(f'"{_value_of(graph, name)}"' for name in dict.fromkeys(use.buffer for use in kernel.inputs))
    return refuse(
        "SPY0350",
        f'no layout serves {_deed(kernel)} of {sources} into "{target}"',
        location_of(kernel.origin),
        notes=(*_layout_notes(graph, conflict), conflict.reason or "the operands' layouts do not go together"),
        hint=_hint(graph, conflict, serves),
    )


def _deed(kernel: Kernel) -> str:
    return "a copy" if kernel.op_func in COPIES else kernel.op


def operand_notes(graph: KernelGraph, layouts: Mapping[str, BufferLayout]) -> tuple[str, ...]:
    """Return for each buffer its layout and the way from its value back to what decided it."""
    return tuple(
        note
        for name, layout in layouts.items()
        for note in (f'"{_value_of(graph, name)}" has {layout}', path_note(graph, name))
    )


def _layout_notes(graph: KernelGraph, conflict: Conflict) -> Iterator[str]:
    for name, layouts in conflict.domains.items():
        verb = "is pinned to" if graph.buffers[name].pin is not None else f"may have {len(layouts)} layouts, first"
        yield f'"{_value_of(graph, name)}" {verb} {layouts[0]}'
        yield path_note(graph, name)


def _value_of(graph: KernelGraph, buffer: str) -> str:
    """Return the name under which the user knows a buffer."""
    if graph.source is not None and buffer not in graph.source.values:
        return next((name for name, use in graph.places.items() if use.buffer == buffer), buffer)
    return buffer


def path_note(graph: KernelGraph, buffer: str) -> str:
    """Return the way from a value back to the pin or input that decided its layout: names and places in the file."""
    place = location_of(graph.buffers[buffer].origin)
    name = _value_of(graph, buffer)
    if graph.source is not None and name not in graph.source.values:
        # a buffer that a pass added belongs to the node that it was added for
        name = next((node.output for node in graph.source.nodes if location_of(node.origin) == place), name)
    if graph.source is None or name not in graph.source.values:
        return f'"{name}" comes from {place}'
    steps = _path(graph.source, name)
    texts = [_step(graph.source, step) for step in steps[:_MOST_STEPS]]
    if len(steps) > _MOST_STEPS:
        texts.append(f"... {len(steps) - _MOST_STEPS} more")
    return " <- ".join(texts)


def _path(graph: Graph, name: str) -> list[str]:
    """Return the shortest way from a value to a pinned one, or else to an input or constant."""
    producers = graph.producers()
    ways: list[list[str]] = [[name]]
    seen = {name}
    ends: list[list[str]] = []
    for way in ways:  # grows while it is walked: breadth first
        value = graph.values[way[-1]]
        if value.pin is not None:
            return way
        producer = producers.get(value.name)
        operands = [] if producer is None else [item for item in producer.inputs if isinstance(item, str)]
        if not operands:
            ends.append(way)
        for operand in operands:
            if operand not in seen:
                seen.add(operand)
                ways.append([*way, operand])
    return ends[0]


def _step(graph: Graph, name: str) -> str:
    value = graph.values[name]
    producer = graph.producers().get(name)
    kind = "constant" if name in graph.constants else "input"
    what = kind if producer is None else producer.op
    pinned = "" if value.pin is None else f", pinned at {value.pin.origin}"
    return f'"{name}" ({what}, {location_of(value.origin)}{pinned})'


def _hint(graph: KernelGraph, conflict: Conflict, serves: Serves) -> str:
    for name in conflict.domains:
        buffer = graph.buffers[name]
        if buffer.pin is None:
            continue
        found = _serving(buffer, serves)
        if found is not None:
            pin = f'{{"device_size": {list(found.device.device_size)}, "stride_map": {list(found.device.stride_map)}}}'
            return f'pin "{_value_of(graph, name)}" to {pin}, or drop its pin'
    return "fold dims with reshape before the operation: a device kernel walks 8 dims, a contraction 7"


def _serving(buffer: KernelBuffer, serves: Serves) -> BufferLayout | None:
    """Return the first of the buffer's ordinary layouts under which the graph has a choice."""
    for layout in forms_of(buffer.type.shape, buffer.device_format):
        assert buffer.pin is not None
        pin = LayoutPin(layout.device.device_size, layout.device.stride_map, origin=buffer.pin.origin)
        if serves(replace(buffer, pin=pin)):
            return layout
    return None
