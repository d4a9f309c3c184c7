"""What it costs a kernel to read an operand, for a pair of layouts; results are kept, as graphs repeat themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import STICK_BYTES
from spyrec.ir.access import Access
from spyrec.ir.device_access import Inexpressible, Movement
from spyrec.ir.device_layout import BufferLayout
from spyrec.ir.kernel import Kernel, KernelGraph, Use
from spyrec.ir.kernel_form import OUTPUT, KernelShape, OperandUse, Rule, kernel_form
from spyrec.passes.assign_layouts.realize import (
    NO_LOOPS,
    CopyStep,
    Realization,
    Source,
    Surroundings,
    copy_cost_bytes,
    copy_rule,
    realize,
)
from spyrec.passes.solvers.elimination import INFINITE

TIE_SCALE = 1 << 12
"""Bytes weigh this much more than one input or output that leaves its default layout: the default wins every tie."""

Layouts = tuple[BufferLayout, ...]


class OperandTable:
    """The cost of one operand for every pair of input and output layout.

    An entry is exact, or a lower bound until ``refine`` has searched for the cheapest copies: most entries of a graph
    are never near its optimum, and their searches would take most of the compiler's time.  ``refined``: how many did.
    """

    def __init__(self, reader: _Reader, sources: Layouts, targets: Layouts) -> None:
        self._reader = reader
        self._sources, self._targets = sources, targets
        self._found: dict[tuple[int, int], Realization | None] = {}
        self.costs = np.zeros((len(sources), len(targets)), np.int64)
        self._is_exact = np.zeros(self.costs.shape, np.bool_)
        self._chains: dict[tuple[int, int], tuple[CopyStep, ...]] = {}
        self.refined = 0
        for i, source in enumerate(sources):
            for j, target in enumerate(targets):
                self.costs[i, j], self._is_exact[i, j] = reader.estimate(source, target)

    def refine(self, i: int, j: int) -> bool:
        """Make one entry exact; return whether it was not."""
        if self._is_exact[i, j]:
            return False
        self._is_exact[i, j] = True
        self.refined += 1
        found = self.realization(i, j)
        self.costs = self.costs.copy()  # others have given the one before to an elimination
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
    target_movement: Movement
    surroundings: Surroundings
    trips: int

    def estimate(self, source: BufferLayout, target: BufferLayout) -> tuple[int, bool]:
        """Return an exact cost where no copy is needed, else a lower bound: one copy of the elements, unpadded."""
        if self.is_elidable and source == target:
            return 0, True
        if self._accept(self.access, source, self.source_shape, target, self.surroundings.movement):
            return self.cost(source, target, Realization(0, (), self.access)), True
        if self._has_zero_rows(source):
            return INFINITE, True
        used = math.prod(extent for dim, extent in enumerate(self.access.extents) if self.access.depends_on(dim))
        if self.is_slid:
            used = math.prod(self.source_shape)
        least = STICK_BYTES * -(-used // source.lane_extent)
        written = target.size_bytes * (1 if self.target_movement else self.trips)
        own = least * self.trips + written if self.shape.rule is Rule.COPY else 0
        return (2 * least + own) * TIE_SCALE, False

    def cost(self, source: BufferLayout, target: BufferLayout, found: Realization | None) -> int:
        """Return the scaled bytes of the copies, and for a copy kernel its own."""
        if found is None:
            return INFINITE
        if self.shape.rule is not Rule.COPY:
            return found.cost_bytes * TIE_SCALE
        last = found.steps[-1].layout if found.steps else source
        shape = found.steps[-1].shape if found.steps else self.source_shape
        read = copy_cost_bytes(last, shape, found.access, target) - target.size_bytes
        # the windows of a target that moves along the loops cover it once
        own = read * self.trips + target.size_bytes * (1 if self.target_movement else self.trips)
        return (found.cost_bytes + own) * TIE_SCALE

    def realize(self, source: BufferLayout, target: BufferLayout) -> Realization | None:
        """Search for the cheapest copies."""

        def accept(access: Access, found: BufferLayout, shape: tuple[int, ...], movement: Movement) -> bool:
            return self._accept(access, found, shape, target, movement)

        if self._has_zero_rows(source):
            is_direct = accept(self.access, source, self.source_shape, self.surroundings.movement)
            return Realization(0, (), self.access) if is_direct else None
        operand = Source(
            self.source_shape, self.source_format, source, self.access, self.surroundings, is_whole=self.is_slid
        )
        return realize(operand, accept)

    @property
    def is_slid(self) -> bool:
        """Whether a window slides over the operand: copies of it are whole."""
        return self.shape.slides_over(self.role)

    def _accept(
        self,
        access: Access,
        found: BufferLayout,
        shape: tuple[int, ...],
        target: BufferLayout,
        movement: Movement,
    ) -> bool:
        write = OperandUse(OUTPUT, self.target_access, target, self.target_shape, self.target_movement)
        return accepts(self.shape, OperandUse(self.role, access, found, shape, movement), write)

    def _has_zero_rows(self, source: BufferLayout) -> bool:
        """Whether rows beyond K count: they are zero in every lane, which no copy of the elements keeps."""
        if self.role != 1:
            return False
        window = self.shape.window
        rows = -1 if self.shape.rule is Rule.CONTRACTION else None if window is None else window.contracted
        return rows is not None and self.shape.extents[rows] % source.lane_extent != 0


class OperandCosts:
    """The tables of a graph's operands; operands that agree in everything but their names share one."""

    def __init__(self, graph: KernelGraph, domains: Mapping[str, Layouts]) -> None:
        self._graph = graph
        self._domains = domains
        self._writers: dict[str, set[tuple[int, ...]]] = {}
        self._order = {kernel.name: place for place, kernel in enumerate(graph.kernels)}
        self._last_writer = {kernel.output.buffer: place for place, kernel in enumerate(graph.kernels)}
        for kernel in graph.kernels:
            self._writers.setdefault(kernel.output.buffer, set()).add(kernel.loops)
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
        counts = [self._graph.loops[loop].count for loop in kernel.loops]
        reader = _Reader(
            shape=kernel.shape,
            role=position if kernel.rule in (Rule.CONTRACTION, Rule.WINDOW) else 0,
            is_elidable=kernel.is_elidable,
            source_shape=source.type.shape,
            source_format=source.device_format,
            access=use.access,
            target_shape=target.type.shape,
            target_access=kernel.output.access,
            target_movement=self._graph.movement(kernel, kernel.output),
            surroundings=self._surroundings(kernel, use, counts),
            trips=math.prod(counts),
        )
        return reader, self._domains[use.buffer], self._domains[kernel.output.buffer]

    def _surroundings(self, kernel: Kernel, use: Use, counts: Sequence[int]) -> Surroundings:
        """Return where copies of an operand can stand."""
        # a part that tiles leave is written behind the readers of the others: only what is read is there
        is_written = self._last_writer.get(use.buffer, -1) <= self._order[kernel.name]
        if not kernel.loops and is_written:
            return NO_LOOPS
        shared = max((common_depth(kernel.loops, path) for path in self._writers.get(use.buffer, ())), default=0)
        moving = [depth for depth, step in enumerate(use.steps, 1) if any(step)]
        tile = max(shared, *moving) if moving else shared
        is_complete = is_written and not any(depth <= shared for depth in moving)
        return Surroundings(
            movement=self._graph.movement(kernel, use),
            whole=shared if is_complete else None,
            tile=tile,
            whole_trips=math.prod(counts[:shared]),
            tile_trips=math.prod(counts[:tile]),
        )

    def surroundings(self, kernel: Kernel, position: int) -> Surroundings:
        """Return where copies of an operand can stand."""
        counts = [self._graph.loops[loop].count for loop in kernel.loops]
        return self._surroundings(kernel, kernel.inputs[position], counts)

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
        moves = [self._graph.movement(kernel, item) for item in (use, kernel.output)]
        read = OperandUse(position, use.access, layout, buffer.type.shape, moves[0])
        write = OperandUse(OUTPUT, kernel.output.access, output, target.type.shape, moves[1])
        rule = Rule.SAME_STICK if kernel.rule is Rule.COPY else kernel.rule
        form = kernel_form(replace(kernel.shape, rule=rule, is_in_place=False), (read, write))
        return form.reason if isinstance(form, Inexpressible) else None


def common_depth(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """Return how many loops two paths share from the outside in."""
    return next(
        (depth for depth, (one, other) in enumerate(zip(left, right)) if one != other), min(len(left), len(right))
    )


def accepts(shape: KernelShape, read: OperandUse, write: OperandUse) -> bool:
    """Whether a kernel can read one operand as it stands while it writes its output."""
    if shape.rule is Rule.COPY:
        return copy_rule(read, write) is not None
    return not isinstance(kernel_form(shape, (read, write)), Inexpressible)
