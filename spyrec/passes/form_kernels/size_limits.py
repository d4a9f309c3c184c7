"""What no plan can hold, refused before any plan is made: sizes are numbers in the graph's text, cheap to write.

Later passes choose among layouts, divisions and tiles, count bytes in 64 bits and look at the divisors of extents: all
of it is bounded by what is let through here.
"""

from __future__ import annotations

import math

from spyrec.diagnostics import SpyrecError, refuse
from spyrec.hardware.target import SEGMENT_BYTES, STICK_BYTES
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, KernelGraph

MOST_INTERMEDIATE_BYTES = 1 << 44
"""Bytes of an intermediate, of which only tiles may lie in memory at a time: a thousand segments."""

MOST_STEPS = 1 << 40
"""Elements of one dim of an operation: as many bytes as 64 segments hold."""

MOST_ELEMENTS = 1 << 56
"""Elements that one operation walks over: a product of two matrices that each fill a segment has 2**50."""


def refuse_oversized(graph: KernelGraph) -> None:
    """Refuse formed kernels that no layout, division or tiling makes executable.

    Errors: SPY0401 an input, constant or output larger than a segment, which lies in device memory whole; SPY0441 an
    intermediate and SPY0442 an operation beyond every plan.
    """
    # what the graph names comes first: of an output, its value is an intermediate of the same size
    for buffer in sorted(graph.buffers.values(), key=lambda item: item.role is BufferRole.INTERMEDIATE):
        least = _least_bytes(buffer)
        if least > (MOST_INTERMEDIATE_BYTES if buffer.role is BufferRole.INTERMEDIATE else SEGMENT_BYTES):
            raise _larger(buffer, least)
    for kernel in graph.kernels:
        if max(kernel.extents, default=1) > MOST_STEPS or math.prod(kernel.extents) > MOST_ELEMENTS:
            raise _longer(kernel)


def _least_bytes(buffer: KernelBuffer) -> int:
    """Return the bytes that a buffer takes at least, whatever its layout."""
    lanes = buffer.type.dtype.device_format.elements_per_stick
    assert lanes is not None, buffer.type.dtype
    return -(-buffer.type.element_count // lanes) * STICK_BYTES


def _larger(buffer: KernelBuffer, least_bytes: int) -> SpyrecError:
    place, notes = location_of(buffer.origin), (f"it is {buffer.type}",)
    if buffer.role is BufferRole.INTERMEDIATE:
        fact = f'"{buffer.name}" takes at least {least_bytes} device bytes, the limit is {MOST_INTERMEDIATE_BYTES}'
        return refuse("SPY0441", fact, place, notes=notes)
    fact = f'"{buffer.name}" takes at least {least_bytes} device bytes, a segment has {SEGMENT_BYTES}'
    return refuse("SPY0401", fact, place, notes=notes, hint="split the tensor")


def _longer(kernel: Kernel) -> SpyrecError:
    shown = " x ".join(map(str, kernel.extents))
    fact = (
        f'{kernel.op}, which writes "{kernel.output.buffer}", walks over {shown} elements, the limit is {MOST_STEPS} '
        f"of one dim and {MOST_ELEMENTS} in all"
    )
    return refuse("SPY0442", fact, location_of(kernel.origin))
