"""The rules every kernel graph keeps, whatever pass made it."""

from __future__ import annotations

from spyrec.ir.device_access import Inexpressible
from spyrec.ir.kernel import BufferRole, Kernel, KernelGraph
from spyrec.passes.verify_loops import verify_loops


def verify_kernels(graph: KernelGraph) -> list[str]:
    """Return what is wrong: names, order of writes and reads, extents, loops; with layouts, kernels' device forms."""
    problems: list[str] = []
    written = {name for name, buffer in graph.buffers.items() if buffer.role in (BufferRole.INPUT, BufferRole.CONSTANT)}
    has_layouts = all(buffer.layout is not None for buffer in graph.buffers.values())
    for kernel in graph.kernels:
        for use in kernel.uses:
            if use.buffer not in graph.buffers:
                problems.append(f'{kernel.name} names "{use.buffer}", which is no buffer')
            elif use.access.extents != kernel.extents:
                problems.append(f"{kernel.name} iterates {kernel.extents}, its access {use.access.extents}")
        problems.extend(
            f'{kernel.name} reads "{use.buffer}" before a kernel has written it'
            for use in kernel.inputs
            if use.buffer not in written
        )
        written.add(kernel.output.buffer)
        if has_layouts and not problems:
            problems.extend(_form_problems(graph, kernel))
    if not problems:
        problems.extend(verify_loops(graph))
    problems.extend(f'output "{name}" is never written' for name, buffer in graph.outputs if buffer not in written)
    return problems


def _form_problems(graph: KernelGraph, kernel: Kernel) -> list[str]:
    form = kernel.form
    if kernel.division is None:  # layouts are settled before work is divided, and stay
        try:
            if graph.form_of(kernel) != form:
                return [f"{kernel.name} carries a form that is not that of its layouts"]
        except Inexpressible as error:
            return [f"{kernel.name}: {error}"]
    assert form is not None
    if kernel.division is not None and len(kernel.division) != len(form.variables):
        return [f"{kernel.name} is divided along {len(kernel.division)} variables, its form has {len(form.variables)}"]
    return []
