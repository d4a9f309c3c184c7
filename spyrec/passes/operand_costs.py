"""What it costs a kernel to read an operand, for a pair of layouts; results are kept, as graphs repeat themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spyrec.diagnostics import SpyrecError, refuse
from spyrec.ir.access import Access
from spyrec.ir.device_access import Inexpressible
from spyrec.ir.device_layout import BufferLayout
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import Kernel, KernelGraph
from spyrec.ir.kernel_form import OUTPUT, KernelShape, OperandUse, Rule, kernel_form
from spyrec.passes.realize import Realization, Source, copy_cost_bytes, copy_rule, realize

_Key = tuple[object, ...]


class OperandCosts:
    """Realizations of a graph's operands by kernel, input position and layouts."""

    def __init__(self, graph: KernelGraph) -> None:
        self._graph = graph
        self._known: dict[_Key, Realization | None] = {}

    def realization(
        self, kernel: Kernel, position: int, layout: BufferLayout, output: BufferLayout
    ) -> Realization | None:
        """Return the cheapest copies after which the kernel can read its input, ``None`` where none help."""
        use = kernel.inputs[position]
        buffer, target = self._graph.buffers[use.buffer], self._graph.buffers[kernel.output.buffer]
        role = 0 if kernel.rule is not Rule.CONTRACTION else position
        key: _Key = (
            kernel.shape, role, buffer.type.shape, layout, use.access, kernel.output.access, target.type.shape, output
        )  # fmt: skip
        if key not in self._known:
            source = Source(buffer.type.shape, buffer.device_format, layout, use.access)
            write = OperandUse(OUTPUT, kernel.output.access, output, target.type.shape)
            self._known[key] = self._realized(kernel, position, source, write)
        return self._known[key]

    def _realized(self, kernel: Kernel, position: int, source: Source, write: OperandUse) -> Realization | None:
        def accept(access: Access, found: BufferLayout, shape: tuple[int, ...]) -> bool:
            return accepts(kernel.shape, OperandUse(position, access, found, shape), write)

        if _has_zero_rows(kernel, position, source.layout.lane_extent):
            direct = accept(source.access, source.layout, source.shape)
            return Realization(0, (), source.access) if direct else None
        return realize(source, accept)

    def cost(self, kernel: Kernel, position: int, layout: BufferLayout, output: BufferLayout) -> int | None:
        """Return the bytes of the copies, and for a copy kernel its own: none where it will be elided."""
        if kernel.is_elidable and layout == output:
            return 0
        found = self.realization(kernel, position, layout, output)
        if found is None:
            return None
        if kernel.rule is not Rule.COPY:
            return found.cost_bytes
        use = kernel.inputs[position]
        last = found.steps[-1].layout if found.steps else layout
        shape = found.steps[-1].shape if found.steps else self._graph.buffers[use.buffer].type.shape
        return found.cost_bytes + copy_cost_bytes(last, shape, found.access, output)

    def refusal(self, domains: Mapping[str, Sequence[BufferLayout]]) -> SpyrecError:
        """Return the error of a graph that no choice serves: the first kernel that has none of its own."""
        for kernel in self._graph.kernels:
            for position, use in enumerate(kernel.inputs):
                outputs = domains[kernel.output.buffer]
                inputs = domains[use.buffer]
                if all(self.cost(kernel, position, one, other) is None for one in inputs for other in outputs):
                    return self._refused(kernel, position, inputs, outputs)
        kernel = self._graph.kernels[0]
        return self._refused(kernel, 0, domains[kernel.inputs[0].buffer], domains[kernel.output.buffer])

    def _refused(
        self, kernel: Kernel, position: int, inputs: Sequence[BufferLayout], outputs: Sequence[BufferLayout]
    ) -> SpyrecError:
        use = kernel.inputs[position]
        return refuse(
            "SPY0350",
            f'no layout of "{use.buffer}" serves {kernel.op}, which writes "{kernel.output.buffer}"',
            location_of(kernel.origin),
            notes=(
                f'"{use.buffer}" may be {inputs[0]}',
                f'"{kernel.output.buffer}" may be {outputs[0]}',
                self.reason(kernel, position, inputs[0], outputs[0]) or "",
            ),
            hint="drop a pinned layout, or write fewer dims",
        )

    def reason(self, kernel: Kernel, position: int, layout: BufferLayout, output: BufferLayout) -> str | None:
        """Return why the kernel cannot read the operand as it stands, ``None`` where it can."""
        use = kernel.inputs[position]
        buffer, target = self._graph.buffers[use.buffer], self._graph.buffers[kernel.output.buffer]
        read = OperandUse(position, use.access, layout, buffer.type.shape)
        write = OperandUse(OUTPUT, kernel.output.access, output, target.type.shape)
        rule = Rule.SAME_STICK if kernel.rule is Rule.COPY else kernel.rule
        try:
            kernel_form(KernelShape(rule, kernel.extents, kernel.reduced), (read, write))
        except Inexpressible as error:
            return str(error)
        return None


def _has_zero_rows(kernel: Kernel, position: int, lanes: int) -> bool:
    """Whether an operand's rows beyond K count: they are zero in every lane, which no copy of the elements keeps."""
    return kernel.rule is Rule.CONTRACTION and position == 1 and kernel.extents[-1] % lanes != 0


def accepts(shape: KernelShape, read: OperandUse, write: OperandUse) -> bool:
    """Whether a kernel can read one operand as it stands while it writes its output."""
    if shape.rule is Rule.COPY:
        return copy_rule(read.access, read.layout, read.shape, write.access, write.layout, write.shape) is not None
    try:
        kernel_form(shape, (read, write))
    except Inexpressible:
        return False
    return True


