"""Writes the chosen copies into the graph, one for all readers that need the same, and settles every copy's kind."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import replace
from operator import is_

from spyrec.device_ops import IDENTITY, RESTICKIFY
from spyrec.diagnostics import refuse
from spyrec.ir.access import Access
from spyrec.ir.device_access import Inexpressible, Movement
from spyrec.ir.device_layout import BufferLayout
from spyrec.ir.graph import Derived, location_of
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, KernelGraph, Use
from spyrec.ir.kernel_form import OUTPUT, OperandUse, Rule
from spyrec.ir.types import TensorType
from spyrec.passes.assign_layouts.layout_refusal import operand_notes
from spyrec.passes.assign_layouts.operand_costs import OperandCosts, accepts
from spyrec.passes.assign_layouts.realize import CopyStep, Realization, Source, copy_cost_bytes, copy_rule, realize
from spyrec.passes.base import Lack, PassContext, Refused
from spyrec.passes.lifetimes import start_of_loops

PASS_NAME = "assign-layouts"


def write_copies(graph: KernelGraph, costs: OperandCosts, context: PassContext) -> KernelGraph | Refused:
    """Return the graph with every operand in a form its kernel reads.  Refused: SPY0350."""
    writer = _Writer(graph, costs, context)
    for kernel in graph.kernels:
        refused = writer.add(kernel)
        if refused is not None:
            return refused
    return replace(graph, buffers=writer.buffers, kernels=tuple(writer.kernels))


class _Writer:
    """The growing graph; ``_made`` remembers copies by their source, step and loops."""

    def __init__(self, graph: KernelGraph, costs: OperandCosts, context: PassContext) -> None:
        self.buffers = dict(graph.buffers)
        self.kernels: list[Kernel] = []
        self._graph = replace(graph, buffers=self.buffers)  # a graph that grows with them
        self._names = sorted(self.buffers)
        self._costs = costs
        self._context = context
        self._made: dict[tuple[str, CopyStep, tuple[int, ...]], str] = {}

    def add(self, kernel: Kernel) -> Refused | None:
        """Add a kernel after the copies it needs."""
        inputs = tuple([self._realized(kernel, position) for position in range(len(kernel.inputs))])
        is_same = all(map(is_, inputs, kernel.inputs))
        formed = self._formed(self._settled(kernel if is_same else replace(kernel, inputs=inputs)))
        if isinstance(formed, Refused):
            return formed
        self.kernels.append(formed)
        return None

    def _realized(self, kernel: Kernel, position: int) -> Use:
        use = kernel.inputs[position]
        layout, output = self.buffers[use.buffer].placed, self.buffers[kernel.output.buffer].placed
        found = self._costs.realization(kernel, position, layout, output)
        assert found is not None, (kernel.name, position)
        reason = self._costs.reason(kernel, position, layout, output) if found.steps else None
        return self._written(kernel, use, found, reason)

    def _written(self, kernel: Kernel, use: Use, found: Realization, reason: str | None) -> Use:
        if not found.steps and found.access is use.access and found.is_whole:
            return use
        name = use.buffer
        for step in found.steps:
            name = self._copied(kernel, name, step, reason)
        return Use(name, found.access, use.steps if found.is_whole else ())

    def _copied(self, kernel: Kernel, source: str, step: CopyStep, reason: str | None) -> str:
        loops = kernel.loops[: step.depth]
        key = (source, step, loops)
        known = self._made.get(key)
        if known is not None:
            return known
        origin = Derived(PASS_NAME, (kernel.origin,))
        suffix = "restickified" if step.rule is Rule.RESTICKIFY else "copied"
        name = self._unused(f"{source}.{suffix}")
        dtype = self.buffers[source].type.dtype
        self.buffers[name] = KernelBuffer(
            name, TensorType(step.shape, dtype), BufferRole.INTERMEDIATE, origin, layout=step.layout, home=loops
        )
        copy = Kernel(
            name=name,
            op="spyre.restickify" if step.rule is Rule.RESTICKIFY else "spyre.copy",
            op_func=RESTICKIFY if step.rule is Rule.RESTICKIFY else IDENTITY,
            rule=step.rule,
            extents=step.access.extents,
            inputs=(Use(source, step.access, tuple(moved for _, moved in step.movement)),),
            output=Use(name, step.window),
            origin=origin,
            reason=reason,
            loops=loops,
            tiled=((),) * len(loops),
        )
        form = self._graph.form_of(copy)
        assert not isinstance(form, Inexpressible), (name, form.reason)
        copy = replace(copy, form=form)
        place = start_of_loops(self.kernels, len(self.kernels), kernel.loops, len(loops))
        self.kernels.insert(place, copy)
        self._report(copy, step.cost_bytes, f' for "{kernel.name}"')
        self._made[key] = name
        return name

    def _unused(self, stem: str) -> str:
        """Return a new name for a buffer: the stem, and how many names begin with it, or a larger number."""
        first = bisect_left(self._names, stem)
        number = bisect_left(self._names, True, first, key=lambda name: not name.startswith(stem)) - first
        while (name := f"{stem}{number or ''}") in self.buffers:
            number += 1
        insort(self._names, name)
        return name

    def _settled(self, kernel: Kernel) -> Kernel:
        """Turn a copy into an identity or a restickify, as its layouts ask for."""
        if kernel.rule is not Rule.COPY:
            return kernel
        source, target = self.buffers[kernel.inputs[0].buffer], self.buffers[kernel.output.buffer]
        movement = [self._graph.movement(kernel, use) for use in kernel.uses]
        read = OperandUse(0, kernel.inputs[0].access, source.placed, source.type.shape, movement[0])
        write = OperandUse(OUTPUT, kernel.output.access, target.placed, target.type.shape, movement[1])
        rule = copy_rule(read, write)
        assert rule is not None, kernel.name
        settled = replace(kernel, rule=rule)
        if rule is Rule.RESTICKIFY:
            settled = replace(settled, op="spyre.restickify", op_func=RESTICKIFY)
        moved = copy_cost_bytes(source.placed, source.type.shape, kernel.inputs[0].access, target.placed)
        self._report(settled, moved, "")
        return settled

    def _report(self, copy: Kernel, size_bytes: int, reader: str) -> None:
        kind = "restickify" if copy.rule is Rule.RESTICKIFY else "copy"
        names = f'"{copy.inputs[0].buffer}" to "{copy.output.buffer}"'
        self._context.report.append(f"{kind} {names}{reader}: {size_bytes} bytes, because {copy.reason}")

    def _formed(self, kernel: Kernel) -> Kernel | Refused:
        """Return the kernel with its device form.

        Where its refined dims do not fit a SuperDSC together its operands are written out, one after the other, until
        they do.
        """
        form = self._graph.form_of(kernel)
        for position in range(len(kernel.inputs)):
            if not isinstance(form, Inexpressible):
                break
            kernel = self._with_plain_input(kernel, position)
            form = self._graph.form_of(kernel)
        if not isinstance(form, Inexpressible):
            return replace(kernel, form=form)
        layouts = {use.buffer: self.buffers[use.buffer].placed for use in kernel.uses}
        refusal = refuse(
            "SPY0350",
            f'{kernel.op}, which writes "{kernel.output.buffer}", has no device form: {form.reason}',
            location_of(kernel.origin),
            notes=operand_notes(self._graph, layouts),
            hint="fold dims with reshape before the operation",
        )
        return Refused(Lack.LAYOUT, refusal)

    def _with_plain_input(self, kernel: Kernel, position: int) -> Kernel:
        use = kernel.inputs[position]
        buffer, target = self.buffers[use.buffer], self.buffers[kernel.output.buffer]
        moves = self._graph.movement(kernel, kernel.output)
        write = OperandUse(OUTPUT, kernel.output.access, target.placed, target.type.shape, moves)

        def accept(access: Access, layout: BufferLayout, shape: tuple[int, ...], movement: Movement) -> bool:
            read = OperandUse(position, access, layout, shape, movement)
            return _is_plain(access) and accepts(kernel.shape, read, write)

        around = self._costs.surroundings(kernel, position)
        found = realize(Source(buffer.type.shape, buffer.device_format, buffer.placed, use.access, around), accept)
        if found is None:
            return kernel
        written = self._written(kernel, use, found, "the operands' dims do not fit one SuperDSC together")
        return replace(kernel, inputs=(*kernel.inputs[:position], written, *kernel.inputs[position + 1 :]))


def _is_plain(access: Access) -> bool:
    """Whether every coordinate is one whole index or constant: such an access cuts no dim."""
    return all(
        coordinate.offset == 0
        and len(coordinate.terms) <= 1
        and all(
            term.divisor == 1 and term.coefficient == 1 and term.modulus == access.extents[term.dim]
            for term in coordinate.terms
        )
        for coordinate in access.coordinates
    )
