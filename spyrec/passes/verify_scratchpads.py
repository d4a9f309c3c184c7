"""The rules of tensors in the scratchpads (LX): everybody cuts one as its writer did, and shuffles say who has what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from spyrec.device_ops import SHUFFLE
from spyrec.ir.kernel import Kernel, KernelGraph, KernelProgram
from spyrec.passes.planning.record import kernel_record, slices_by_dim
from spyrec.passes.planning.shares import Share, share_of_region


def verify_scratchpads(graph: KernelGraph, before: KernelGraph | None = None) -> Iterator[str]:
    """Yield what is wrong with tensors in LX, each line led by its code (SPY0444 to SPY0446).

    ``before``: a graph of the same kernels that keeps all rules; programs with places in LX of its are not looked at.
    """
    known = {} if before is None else {program.first_kernel: program for program in before.programs}
    for program in graph.programs:
        if _lies_as(program, known.get(program.first_kernel)):
            continue
        held: dict[str, tuple[Share | None, str]] = {}
        for kernel in graph.kernels[program.first_kernel : program.end_kernel]:
            is_shuffle = bool(kernel.owners) or kernel.op_func == SHUFFLE
            problems = (_owners(kernel) or _places(kernel, program)) if is_shuffle else []
            yield from problems
            for position, use in enumerate(() if problems else kernel.uses):
                if use.buffer in program.lx_offsets:
                    yield from _as_written(kernel, position, held)


def _lies_as(program: KernelProgram, before: KernelProgram | None) -> bool:
    return before is not None and program.end_kernel == before.end_kernel and program.lx_offsets is before.lx_offsets


def _as_written(kernel: Kernel, position: int, held: dict[str, tuple[Share | None, str]]) -> Iterator[str]:
    """What lies in LX is cut by all who touch it as it was cut by the first, its writer."""
    name = kernel.uses[position].buffer
    share = share_of_region(kernel, position, kernel.division or (1,) * len(kernel.placed.variables))
    known, writer = held.setdefault(name, (share, kernel.name))
    if share is None or (share is not known and share != known):
        cut = slices_by_dim(kernel, kernel.division or ())
        fact = f'{kernel.name}, divided {cut}, does not find its part of "{name}" in LX'
        yield f"SPY0444 {fact}: {writer} cut it otherwise"


def _owners(kernel: Kernel) -> list[str]:
    """A shuffle is a copy among as many cores as each of its operands has parts."""
    cores = {len(share.slices) for share in _shares(kernel) if share is not None and not share.is_replicated}
    is_whole = len(kernel.owners) == len(kernel.uses) == len(_shares(kernel)) and None not in _shares(kernel)
    if kernel.op_func == SHUFFLE and is_whole and len(cores) == 1 and kernel.owners[-1].division == kernel.division:
        return []
    owners = " and ".join(f"{_cut(own.division)} in the order {list(own.order)}" for own in kernel.owners) or "none"
    return [
        f"SPY0445 {kernel.name} is a {kernel.op_func} on {_cut(kernel.division or ())} cores between owners {owners}"
    ]


def _cut(division: Iterable[int]) -> str:
    return "x".join(map(str, division))


def _shares(kernel: Kernel) -> tuple[Share | None, ...]:
    variables = set(range(len(kernel.placed.variables)))
    known = [own for own in kernel.owners if set(own.order) == variables and len(own.division) == len(variables)]
    if len(known) != len(kernel.uses):
        return ()
    return tuple(share_of_region(kernel, position, ()) for position in range(len(known)))


def _places(kernel: Kernel, program: KernelProgram) -> list[str]:
    """Both states of the tensor lie in LX, beside each other: no core is done when another one reads."""
    offsets: Mapping[str, int] = program.lx_offsets
    spans: list[tuple[int, int]] = []
    for position, use in enumerate(kernel.uses):
        if use.buffer not in offsets:
            return [f'SPY0446 {kernel.name} shuffles "{use.buffer}", which does not lie in LX']
        size = kernel_record(kernel).core_buffer_bytes(position, kernel.owners[position].division)
        spans.append((offsets[use.buffer], offsets[use.buffer] + size))
    (first, past), (begin, end) = spans
    if first < end and begin < past:
        return [f"SPY0446 {kernel.name} shuffles from [{first}, {past}) of LX to [{begin}, {end}), which overlap"]
    return []
