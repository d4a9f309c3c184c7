"""assign-layouts: a device layout for every buffer, and the fewest bytes of copies that make every kernel legal.

Every buffer has a few candidate layouts, told apart by the dim that lies in the sticks.  What an operand costs depends
on its buffer's layout and on the kernel's output layout alone, so the whole graph is a sum of small tables, and
``solvers.elimination`` finds its minimum exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from spyrec.ir.device_layout import BufferLayout
from spyrec.ir.kernel import Buffer, BufferRole, Kernel, KernelGraph
from spyrec.passes.base import PassContext
from spyrec.passes.layout_candidates import candidates, excess_bytes, leaves_default
from spyrec.passes.operand_costs import TIE_SCALE, OperandCosts, OperandTable
from spyrec.passes.solvers.elimination import INFINITE, Assignment, Factor, minimise
from spyrec.passes.write_copies import write_copies


def assign_layouts(graph: KernelGraph, context: PassContext) -> KernelGraph:
    """Choose a layout for every buffer and insert the copies that the choice needs.

    Cost: padded bytes that copies read and write, plus, for inputs, constants and outputs, what the layout is larger
    than the default one.
    Errors: SPY0350 no layout serves a kernel, SPY0351 a pin that no kernel can serve.
    """
    domains = {name: candidates(buffer, context.options.fixed_io_layouts) for name, buffer in graph.buffers.items()}
    costs = OperandCosts(graph, domains)
    names = list(domains)
    index = {name: position for position, name in enumerate(names)}
    own = [_own_cost(graph.buffers[name], index[name], domains[name]) for name in names]
    operands = [
        (costs.table(kernel, position), (index[use.buffer], index[kernel.output.buffer]))
        for kernel in graph.kernels
        for position, use in enumerate(kernel.inputs)
    ]
    best = _minimise([len(domains[name]) for name in names], own, operands)
    if best.cost >= INFINITE:
        raise costs.refusal()
    chosen = {name: domains[name][best.values[index[name]]] for name in names}
    context.report.append(_summary(best))
    buffers = {name: replace(buffer, layout=chosen[name]) for name, buffer in graph.buffers.items()}
    return write_copies(_without_elided(replace(graph, buffers=buffers)), costs, context)


def _own_cost(buffer: Buffer, variable: int, layouts: Sequence[BufferLayout]) -> Factor:
    # An intermediate's padding is not counted: a stick reduction leaves one element per stick, and to avoid that
    # by a copy would move more.  What crosses the border is copied by DMA, padding and all.
    crosses_border = buffer.role is not BufferRole.INTERMEDIATE
    table = [
        crosses_border * excess_bytes(buffer, layout) * TIE_SCALE + leaves_default(buffer, layout) for layout in layouts
    ]
    return Factor((variable,), np.asarray(table, np.int64))


def _minimise(
    sizes: Sequence[int], own: Sequence[Factor], operands: Sequence[tuple[OperandTable, tuple[int, int]]]
) -> Assignment:
    """Minimise over tables that start as lower bounds: an optimum that uses exact entries only is the true one."""
    while True:
        best = minimise(sizes, [*own, *(Factor(scope, table.costs) for table, scope in operands)])
        values = best.values
        changes = [table.refine(values[i], values[j]) for table, (i, j) in operands]
        if not any(changes):
            return best


def _summary(best: Assignment) -> str:
    total, bound = best.cost // TIE_SCALE, best.lower_bound // TIE_SCALE
    kind = "optimal" if total == bound else "not proved optimal"
    return f"copies and padding cost {total} bytes, lower bound {bound} bytes ({kind})"


def _without_elided(graph: KernelGraph) -> KernelGraph:
    """Drop copies between equal layouts: the producer writes the target at once.

    ``v = add(a, b); z = copy(v)  -->  z = add(a, b)`` where v and z agree.
    """
    merged: dict[str, str] = {}
    kernels: list[Kernel] = []
    for kernel in graph.kernels:
        source, target = kernel.inputs[0].buffer if kernel.inputs else "", kernel.output.buffer
        if kernel.is_elidable and source not in merged and graph.buffers[source].layout == graph.buffers[target].layout:
            merged[source] = target
        else:
            kernels.append(kernel)
    if not merged:
        return graph
    # an elided output may stand before its source's last reader: the source's kernels come first in any case
    renamed = tuple(_renamed(kernel, merged) for kernel in kernels)
    buffers = {name: buffer for name, buffer in graph.buffers.items() if name not in merged}
    return replace(graph, buffers=buffers, kernels=renamed)


def _renamed(kernel: Kernel, merged: Mapping[str, str]) -> Kernel:
    def final(name: str) -> str:
        while name in merged:
            name = merged[name]
        return name

    inputs = tuple(replace(use, buffer=final(use.buffer)) for use in kernel.inputs)
    return replace(kernel, inputs=inputs, output=replace(kernel.output, buffer=final(kernel.output.buffer)))
