"""assign-addresses: offsets in the pool for what a program keeps to itself.

Kernel arguments need none: argument ``i`` has segment ``i``, or ``i + 1`` where a pool has segment 0.
"""

from __future__ import annotations

from dataclasses import replace

from spyrec.diagnostics import SpyrecError, refuse
from spyrec.hardware.target import SEGMENT_BYTES, STICK_BYTES
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import KernelGraph, KernelProgram
from spyrec.passes.base import Lack, PassContext, Refused
from spyrec.passes.lifetimes import Lifetime, lifetimes
from spyrec.passes.solvers.scratchpad_packing import PackingBuffer, minimise_height

POOL_VISITS = 200_000
"""Work spent on a low pool; the sorted orders alone nearly always meet the bytes that are alive at once."""


def assign_addresses(graph: KernelGraph, context: PassContext) -> KernelGraph | Refused:
    """Lay out each program's pool: buffers that are alive together do not overlap.

    Refused: SPY0401 a pool larger than a segment.
    """
    del context
    alive = lifetimes(graph.kernels)
    programs = [_with_pool(graph, program, alive) for program in graph.programs]
    for program in programs:
        if program.pool_bytes > SEGMENT_BYTES:
            return Refused(Lack.ROOM, _refusal(graph, program))
    return replace(graph, programs=tuple(programs))


def _with_pool(graph: KernelGraph, program: KernelProgram, alive: dict[str, Lifetime]) -> KernelProgram:
    pool = list(program.pool_offsets)
    buffers = [
        PackingBuffer(graph.buffers[name].placed.size_bytes, alive[name].first, alive[name].last) for name in pool
    ]
    offsets = minimise_height(buffers, STICK_BYTES, visits=POOL_VISITS)
    pool_bytes = max((offset + buffer.size for offset, buffer in zip(offsets, buffers, strict=True)), default=0)
    return replace(program, pool_offsets=dict(zip(pool, offsets, strict=True)), pool_bytes=pool_bytes)


def _refusal(graph: KernelGraph, program: KernelProgram) -> SpyrecError:
    return refuse(
        "SPY0401",
        f"the intermediates of one program take {program.pool_bytes} bytes, a segment has {SEGMENT_BYTES}",
        location_of(graph.kernels[program.first_kernel].origin),
        hint="split the tensors, or make some of them outputs",
    )
