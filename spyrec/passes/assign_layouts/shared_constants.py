"""Constants that are the same in device memory become one: one argument of a program, one copy to the device."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from spyrec.files.array_memory import digest
from spyrec.ir.kernel import BufferRole, KernelBuffer, KernelGraph, Use


def share_constants(graph: KernelGraph) -> KernelGraph:
    """Return the graph with one constant for all of the same numbers, dtype, shape and layout; the first stays.

    Numbers in files are the same where they are the same tensor of the same file: the files are not read for it.
    """
    first: dict[Hashable, str] = {}
    kept_as: dict[str, str] = {}
    for name, buffer in graph.buffers.items():
        if buffer.role is BufferRole.CONSTANT:
            kept_as[name] = first.setdefault(_contents(buffer), name)
    dropped = {name for name, kept in kept_as.items() if name != kept}
    if not dropped:
        return graph

    def shared(use: Use) -> Use:
        return replace(use, buffer=kept_as.get(use.buffer, use.buffer))

    kernels = tuple(replace(kernel, inputs=tuple(map(shared, kernel.inputs))) for kernel in graph.kernels)
    buffers = {name: buffer for name, buffer in graph.buffers.items() if name not in dropped}
    places = {name: shared(use) for name, use in graph.places.items()}
    return replace(graph, buffers=buffers, kernels=kernels, places=places)


def _contents(buffer: KernelBuffer) -> Hashable:
    """Return what two constants have in common whose bytes on the device are the same."""
    assert buffer.constant is not None, buffer.name
    data = buffer.constant.data
    array = data.array
    numbers = (data.file, data.tensor) if array is None else digest(array)
    return (numbers, buffer.constant.shape, buffer.type, buffer.host_shape, buffer.layout)
