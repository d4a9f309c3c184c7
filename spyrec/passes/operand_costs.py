"""What it costs a kernel to read an operand, for a pair of layouts; results are kept, as graphs repeat themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.dtypes import DeviceFormat
from spyrec.ir.access import Access
from spyrec.ir.device_access import Inexpressible
from spyrec.ir.device_layout import BufferLayout
from spyrec.ir.kernel import Kernel, KernelGraph
from spyrec.ir.kernel_form import OUTPUT, KernelShape, OperandUse, Rule, kernel_form
from spyrec.passes.realize import CopyStep, Realization, Source, copy_cost_bytes, copy_rule, realize
from spyrec.passes.solvers.elimination import INFINITE
from spyrec.target import STICK_BYTES

TIE_SCALE = 1 << 12
"""Bytes weigh this much more than one input or output that leaves its default layout: the default wins every tie."""

Layouts = tuple[BufferLayout, ...]


class OperandTable:
    """The cost of one operand for every pair of input and output layout.

    An entry is exact, or a lower bound until ``refine`` has searched for the cheapest copies: most entries of a graph
    are never near its optimum, and their searches would take most of the compiler's time.
    """

    def __init__(self, reader: _Reader, sources: Layouts, targets: Layouts) -> None:
        self._reader = reader
        self._sources, self._targets = sources, targets
        self._found: dict[tuple[int, int], Realization | None] = {}
        self.costs = np.zeros((len(sources), len(targets)), np.int64)
        self._is_exact = np.zeros(self.costs.shape, np.bool_)
        self._chains: dict[tuple[int, int], tuple[CopyStep, ...]] = {}
        for i, source in enumerate(sources):
            for j, target in enumerate(targets):
                self.costs[i, j], self._is_exact[i, j] = reader.estimate(source, target)

    def refine(self, i: int, j: int) -> bool:
        """Make one entry exact; return whether it was not."""
        if self._is_exact[i, j]:
            return False
        self._is_exact[i, j] = True
        found = self.realization(i, j)
        self.costs[i, j] = self._reader.cost(self._sources[i], self._targets[j], found)
        if found is not None and found.steps:
            self._chains[i, j] = found.steps
        return True

    @property
    def own_costs(self) -> npt.NDArray[np.int64]:
        """What exact entries cost beside their copies; 0 where the search has not been made."""
        own = np.where(self._is_exact, self.costs, 0)
        for place, steps in self._chains.items():
            own[place] -= sum(step.cost_bytes for step in steps) * TIE_SCALE
        return own

    @property
    def pending_costs(self) -> npt.NDArray[np.int64]:
        """The lower bounds of entries whose search has not been made; 0 elsewhere."""
        return np.where(self._is_exact, 0, self.costs)

    def chains(self) -> Iterable[tuple[tuple[int, int], tuple[CopyStep, ...]]]:
        """Return the copies of the exact entries that need some, by (input layout, output layout)."""
        return self._chains.items()

    def refine_all(self) -> None:
        """Make every entry exact."""
        for i in range(len(self._sources)):
            for j in range(len(self._targets)):
                self.refine(i, j)

    def realization_between(self, source: BufferLayout, target: BufferLayout) -> Realization | None:
        """Return the cheapest copies for two layouts, found among those the table was made for.

        After a copy is elided its buffer goes by another name, which may have had other candidates.
        """
        return self.realization(self._sources.index(source), self._targets.index(target))

    def realization(self, i: int, j: int) -> Realization | None:
        """Return the cheapest copies for a pair of layouts, ``None`` where none help."""
        if (i, j) not in self._found:
            self._found[i, j] = self._reader.realize(self._sources[i], self._targets[j])
        return self._found[i, j]


@dataclass(frozen=True, slots=True)
class _Reader:
    """What decides the cost of an operand besides the two layouts."""

    shape: KernelShape
    role: int
    is_elidable: bool
    source_shape: tuple[int, ...]
    source_format: DeviceFormat
    access: Access
    target_shape: tuple[int, ...]
    target_access: Access

    def estimate(self, source: BufferLayout, target: BufferLayout) -> tuple[int, bool]:
        """Return an exact cost where no copy is needed, else a lower bound: one copy of the elements, unpadded."""
        if self.is_elidable and source == target:
            return 0, True
        if self._accept(self.access, source, self.source_shape, target):
            return self.cost(source, target, Realization(0, (), self.access)), True
        if self._has_zero_rows(source):
            return INFINITE, True
        used = math.prod(extent for dim, extent in enumerate(self.access.extents) if self.access.depends_on(dim))
        least = STICK_BYTES * -(-used // source.lane_extent)
        own = least + target.size_bytes if self.shape.rule is Rule.COPY else 0
        return (2 * least + own) * TIE_SCALE, False

    def cost(self, source: BufferLayout, target: BufferLayout, found: Realization | None) -> int:
        """Return the scaled bytes of the copies, and for a copy kernel its own."""
        if found is None:
            return INFINITE
        if self.shape.rule is not Rule.COPY:
            return found.cost_bytes * TIE_SCALE
        last = found.steps[-1].layout if found.steps else source
        shape = found.steps[-1].shape if found.steps else self.source_shape
        return (found.cost_bytes + copy_cost_bytes(last, shape, found.access, target)) * TIE_SCALE

    def realize(self, source: BufferLayout, target: BufferLayout) -> Realization | None:
        """Search for the cheapest copies."""

        def accept(access: Access, found: BufferLayout, shape: tuple[int, ...]) -> bool:
            return self._accept(access, found, shape, target)

        if self._has_zero_rows(source):
            is_direct = accept(self.access, source, self.source_shape)
            return Realization(0, (), self.access) if is_direct else None
        return realize(Source(self.source_shape, self.source_format, source, self.access), accept)

    def _accept(self, access: Access, found: BufferLayout, shape: tuple[int, ...], target: BufferLayout) -> bool:
        write = OperandUse(OUTPUT, self.target_access, target, self.target_shape)
        return accepts(self.shape, OperandUse(self.role, access, found, shape), write)

    def _has_zero_rows(self, source: BufferLayout) -> bool:
        """Whether rows beyond K count: they are zero in every lane, which no copy of the elements keeps."""
        is_second = self.shape.rule is Rule.CONTRACTION and self.role == 1
        return is_second and self.shape.extents[-1] % source.lane_extent != 0


class OperandCosts:
    """The tables of a graph's operands; operands that agree in everything but their names share one."""

    def __init__(self, graph: KernelGraph, domains: Mapping[str, Layouts]) -> None:
        self._graph = graph
        self._domains = domains
        self._tables: dict[tuple[_Reader, Layouts, Layouts], OperandTable] = {}
        self._of_operand: dict[tuple[str, int], OperandTable] = {}

    def table(self, kernel: Kernel, position: int) -> OperandTable:
        """Return the table of one input of a kernel."""
        known = self._of_operand.get((kernel.name, position))
        if known is None:
            key = self._key(kernel, position)
            known = self._tables.get(key)
            if known is None:
                known = self._tables[key] = OperandTable(*key)
            self._of_operand[kernel.name, position] = known
        return known

    def _key(self, kernel: Kernel, position: int) -> tuple[_Reader, Layouts, Layouts]:
        use = kernel.inputs[position]
        source, target = self._graph.buffers[use.buffer], self._graph.buffers[kernel.output.buffer]
        reader = _Reader(
            shape=kernel.shape,
            role=position if kernel.rule is Rule.CONTRACTION else 0,
            is_elidable=kernel.is_elidable,
            source_shape=source.type.shape,
            source_format=source.device_format,
            access=use.access,
            target_shape=target.type.shape,
            target_access=kernel.output.access,
        )
        return reader, self._domains[use.buffer], self._domains[kernel.output.buffer]

    def realization(
        self, kernel: Kernel, position: int, layout: BufferLayout, output: BufferLayout
    ) -> Realization | None:
        """Return the cheapest copies after which the kernel can read its input, ``None`` where none help."""
        return self.table(kernel, position).realization_between(layout, output)

    def unserved(self) -> Kernel:
        """Return the kernel that stands in the way where no choice serves all."""
        for kernel in self._graph.kernels:
            served = np.ones(len(self._domains[kernel.output.buffer]), np.bool_)
            for position in range(len(kernel.inputs)):
                table = self.table(kernel, position)
                table.refine_all()
                served &= (table.costs < INFINITE).any(axis=0)
            if not served.any():
                return kernel
        return self._graph.kernels[0]

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


def accepts(shape: KernelShape, read: OperandUse, write: OperandUse) -> bool:
    """Whether a kernel can read one operand as it stands while it writes its output."""
    if shape.rule is Rule.COPY:
        return copy_rule(read, write) is not None
    try:
        kernel_form(shape, (read, write))
    except Inexpressible:
        return False
    return True
