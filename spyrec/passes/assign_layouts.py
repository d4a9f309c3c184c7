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
from spyrec.passes.operand_costs import OperandCosts
from spyrec.passes.solvers.elimination import INFINITE, Assignment, Factor, minimise
from spyrec.passes.write_copies import write_copies

TIE_SCALE = 1 << 12
"""Bytes weigh this much more than one input or output that leaves its default layout: the default wins every tie."""


def assign_layouts(graph: KernelGraph, context: PassContext) -> KernelGraph:
    """Choose a layout for every buffer and insert the copies that the choice needs.

    Cost: padded bytes that copies read and write, plus, for inputs, constants and outputs, what the layout is larger
    than the default one.
    Errors: SPY0350 no layout serves a kernel, SPY0351 a pin that no kernel can serve.
    """
    domains = {name: candidates(buffer, context.options.fixed_io_layouts) for name, buffer in graph.buffers.items()}
    costs = OperandCosts(graph)
    names = list(domains)
    index = {name: position for position, name in enumerate(names)}
    factors = [
        *(_own_cost(graph.buffers[name], index[name], domains[name]) for name in names),
        *(factor for kernel in graph.kernels for factor in _kernel_factors(kernel, domains, index, costs)),
    ]
    best = minimise([len(domains[name]) for name in names], factors)
    if best.cost >= INFINITE:
        raise costs.refusal(domains)
    chosen = {name: domains[name][best.values[index[name]]] for name in names}
    context.report.append(_summary(best))
    buffers = {name: replace(buffer, layout=chosen[name]) for name, buffer in graph.buffers.items()}
    return write_copies(_without_elided(replace(graph, buffers=buffers)), costs, context)


def _own_cost(buffer: Buffer, variable: int, layouts: Sequence[BufferLayout]) -> Factor:
    # An intermediate's padding is not counted: a stick reduction leaves one element per stick, and to avoid that
    # by a copy would move more.  What crosses the border is copied by DMA, padding and all.
    crosses_border = buffer.role is not BufferRole.INTERMEDIATE
    table = [
        crosses_border * excess_bytes(buffer, layout) * TIE_SCALE + leaves_default(buffer, layout)
        for layout in layouts
    ]
    return Factor((variable,), np.asarray(table, np.int64))


def _kernel_factors(
    kernel: Kernel,
    domains: Mapping[str, Sequence[BufferLayout]],
    index: Mapping[str, int],
    costs: OperandCosts,
) -> list[Factor]:
    """One table per input: bytes of copies for each pair of input layout and output layout."""
    factors: list[Factor] = []
    target = kernel.output.buffer
    for position, use in enumerate(kernel.inputs):
        rows = [
            [costs.cost(kernel, position, layout, output) for output in domains[target]]
            for layout in domains[use.buffer]
        ]
        table = np.asarray([[INFINITE if cost is None else cost * TIE_SCALE for cost in row] for row in rows], np.int64)
        factors.append(Factor((index[use.buffer], index[target]), table))
    return factors


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


