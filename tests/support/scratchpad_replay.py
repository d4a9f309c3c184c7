"""What the scratchpads hold while a plan runs, kernel by kernel: an oracle for lifetimes, places and overwriting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spyrec.hardware.target import CALIBRATED, Target
from spyrec.ir.kernel import Kernel, KernelGraph, KernelProgram
from spyrec.passes.planning.traffic import plan_figures

_MOST_ROUNDS = 3
"""Rounds of a loop that are replayed: the first, one in the middle, one behind it."""

Span = tuple[int, int]


def scratchpad_faults(graph: KernelGraph) -> list[str]:
    """Return every read of a tensor in LX whose place something else has written meanwhile, or nothing yet."""
    return [fault for number, program in enumerate(graph.programs) for fault in _program_faults(graph, number, program)]


def _program_faults(graph: KernelGraph, number: int, program: KernelProgram) -> Iterator[str]:
    figures = plan_figures(graph, Target(), CALIBRATED).lx.residents
    spans = {
        item.name: (item.offset_bytes, item.offset_bytes + item.core_bytes)
        for item in figures
        if item.program == number
    }
    held: dict[str, Span] = {}
    for kernel in _executions(graph, graph.kernels[program.first_kernel : program.end_kernel], 0):
        for use in kernel.inputs:
            if use.buffer in spans and use.buffer not in held:
                yield f'{kernel.name} reads "{use.buffer}", whose place holds {sorted(held)}'
        name = kernel.output.buffer
        if name not in spans:
            continue
        for other, span in list(held.items()):
            if other != name and _overlap(span, spans[name]):
                if other in {use.buffer for use in kernel.inputs} and span != spans[name]:
                    yield f'{kernel.name} writes "{name}" over a part of "{other}", which it reads'
                del held[other]
        held[name] = spans[name]


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _executions(graph: KernelGraph, kernels: Sequence[Kernel], depth: int) -> Iterator[Kernel]:
    """Yield kernels in the order in which the device executes them, loops with a few of their rounds."""
    first = 0
    while first < len(kernels):
        loops = kernels[first].loops
        if len(loops) <= depth:
            yield kernels[first]
            first += 1
            continue
        end = first
        while end < len(kernels) and kernels[end].loops[depth : depth + 1] == loops[depth : depth + 1]:
            end += 1
        for _ in range(min(graph.loops[loops[depth]].count, _MOST_ROUNDS)):
            yield from _executions(graph, kernels[first:end], depth + 1)
        first = end
