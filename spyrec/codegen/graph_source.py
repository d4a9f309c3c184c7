"""The graph inside its bundle: its text, and the constants that the text or a program refers to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.files.array_memory import per_stored_number
from spyrec.ir.constants import is_inline, load_constant
from spyrec.ir.graph import Graph, Value
from spyrec.ir.kernel import BufferRole, KernelBuffer, KernelGraph
from spyrec.ir.writer import write_graph

HostArray = npt.NDArray[np.generic]


def graph_text(scheduled: KernelGraph) -> bytes | None:
    """Return the source graph as JSON text, constants that nothing uses left out."""
    return None if scheduled.source is None else graph_bytes(scheduled.source)


def graph_bytes(source: Graph) -> bytes:
    """Return a graph as JSON text, constants that nothing uses left out."""
    return write_graph(_used(source))


def file_constants(source: Graph) -> Iterator[str]:
    """Yield the constants of a graph's text whose numbers stand in a file beside it."""
    graph = _used(source)
    return (name for name, data in graph.constants.items() if not is_inline(data, graph.type_of(name)))


def _used(graph: Graph) -> Graph:
    names = {operand for node in graph.nodes for operand in node.inputs if isinstance(operand, str)}
    names.update(graph.outputs)
    kept = {name: data for name, data in graph.constants.items() if name in names}
    return replace(graph, constants=kept)


def constants_of_source(scheduled: KernelGraph) -> Iterator[tuple[str, Value]]:
    """Yield the constants beside the graph text that no program reads under their own name."""
    if scheduled.source is None:
        return
    arguments = {name for program in scheduled.programs for name in program.arguments}
    for name in file_constants(scheduled.source):
        if name not in arguments:
            yield name, scheduled.source.values[name]


class ConstantArrays(Mapping[str, HostArray]):
    """The constants' numbers by argument name, loaded when asked for: weights are never all in memory at once."""

    def __init__(self, scheduled: KernelGraph) -> None:
        arguments = dict.fromkeys(name for program in scheduled.programs for name in program.arguments)
        self._buffers: dict[str, KernelBuffer] = {
            name: scheduled.buffers[name] for name in arguments if scheduled.buffers[name].role is BufferRole.CONSTANT
        }
        self._source = scheduled.source
        self._extra = dict(constants_of_source(scheduled))

    def __getitem__(self, name: str) -> HostArray:
        if name in self._extra:
            assert self._source is not None
            return load_constant(self._source, name)
        return _numbers(self._buffers[name])

    def __iter__(self) -> Iterator[str]:
        yield from self._buffers
        yield from self._extra

    def __len__(self) -> int:
        return len(self._buffers) + len(self._extra)


def _numbers(buffer: KernelBuffer) -> HostArray:
    """Return a constant buffer's numbers, zero-padded to its shape."""
    assert buffer.constant is not None
    origin = Value(buffer.name, buffer.type, (None,) * buffer.type.rank, buffer.origin)
    inner = buffer.constant.shape
    value = replace(origin, type=replace(buffer.type, shape=inner))
    graph = Graph(buffer.name, {}, (), {buffer.name: buffer.constant.data}, (), {buffer.name: value}, (buffer.name,))
    array = load_constant(graph, buffer.name)
    if array.dtype == np.float64:
        array = per_stored_number(array, lambda numbers: numbers.astype(np.float32))
    if inner == buffer.type.shape:
        return array
    padded = np.zeros(buffer.type.shape, array.dtype)
    padded[tuple(slice(extent) for extent in inner)] = array
    return padded
