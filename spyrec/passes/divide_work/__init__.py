"""divide-work: every kernel's iteration space is cut into even slices, one per core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spyrec.hardware.plan_record import Decision, PlanNote
from spyrec.ir.kernel import Kernel, KernelGraph
from spyrec.passes.base import PassContext, Refused
from spyrec.passes.divide_work.cutting import cut_kernels
from spyrec.passes.divide_work.division_candidates import Candidate, candidates
from spyrec.passes.divide_work.joint import choose
from spyrec.passes.divide_work.pins import with_pins
from spyrec.passes.planning.divisions import Division


def divide_work(graph: KernelGraph, context: PassContext) -> KernelGraph | Refused:
    """Give every kernel a division: a number of slices per variable of its form.

    Slices are even and, along a stick dim, whole sticks; their product is at most ``cores``, and no core touches more
    of an operand than the span limit.  A kernel that no even division fits well is cut in parts first.
    What the graph pins stays as it is.
    Refused: SPY0403 where no cut keeps the span limit, SPY0412 a pin that cannot be honoured.
    """
    options = context.options
    pinned = with_pins(graph, options)
    cut = pinned if isinstance(pinned, Refused) else cut_kernels(pinned, context)
    return cut if isinstance(cut, Refused) else _divided(cut, context)


def _divided(graph: KernelGraph, context: PassContext) -> KernelGraph:
    choices = [candidates(graph, kernel, context.options, context.known.kept) for kernel in graph.kernels]
    chosen = choose(graph, choices, context)
    divisions = chosen.divisions
    notes = [
        note
        for kernel, found, division in zip(graph.kernels, choices, divisions, strict=True)
        if (note := _note(graph, kernel, found, division)) is not None
    ]
    kernels = (replace(kernel, division=division) for kernel, division in zip(graph.kernels, divisions, strict=True))
    divided = replace(graph.with_kernels(tuple(kernels)), expects_in_lx=chosen.in_lx)
    return divided.with_notes(*notes)


def _note(graph: KernelGraph, kernel: Kernel, found: Sequence[Candidate], division: Division) -> PlanNote | None:
    """Return why a kernel is not divided as it alone would be; ``None`` where it is."""
    if kernel.pinned:
        return PlanNote(kernel.output.buffer, Decision.DIVISION, f"{_text(division)} is pinned by the graph")
    if division == found[0].division:
        return None
    trips = graph.trips(kernel.loops)
    chosen = next(item for item in found if item.division == division)
    return PlanNote(
        kernel.output.buffer,
        Decision.DIVISION,
        f"{_text(division)} cuts its tensors as its neighbours do",
        _text(found[0].division),
        saved_us=trips * (found[0].cost_us - chosen.cost_us),
    )


def _text(division: Division) -> str:
    return "x".join(map(str, division)) or "1"
