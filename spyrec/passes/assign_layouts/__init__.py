"""assign-layouts: a device layout for every buffer, and the fewest bytes of copies that make every kernel legal.

Every buffer has a few candidate layouts, told apart by the dim that lies in the sticks.  What an operand costs depends
on its buffer's layout and on the kernel's output layout alone; what all readers of a buffer cost, each copy paid once,
on theirs together.  So the whole graph is a sum of small tables, and ``solvers.elimination`` finds its minimum exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.hardware.target import SEGMENT_BYTES, Target
from spyrec.ir.device_layout import BufferLayout
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, KernelGraph, LayoutCost, Use
from spyrec.passes.assign_layouts.layout_candidates import candidates, excess_bytes, layout_of_pin, leaves_default
from spyrec.passes.assign_layouts.layout_refusal import Conflict, refusal
from spyrec.passes.assign_layouts.operand_costs import TIE_SCALE, OperandCosts, OperandTable
from spyrec.passes.assign_layouts.operand_orders import NO_ORDERS, OrderCosts, order_costs
from spyrec.passes.assign_layouts.shared_constants import share_constants
from spyrec.passes.assign_layouts.shared_copies import Reader, SharedReaders, shared_readers, where_made
from spyrec.passes.assign_layouts.write_copies import write_copies
from spyrec.passes.base import Lack, PassContext, PipelineOptions, Refused
from spyrec.passes.solvers.elimination import INFINITE, Assignment, Elimination, Factor, Table, total_cost


def assign_layouts(graph: KernelGraph, context: PassContext) -> KernelGraph | Refused:
    """Choose a layout for every buffer and insert the copies that the choice needs.

    Cost: padded bytes that copies read and write, each copy once however many read it, plus, for inputs, constants and
    outputs, what the layout is larger than the default one, and what the order of a batched product's operand costs,
    as the bytes that take as long.
    Refused: SPY0350 no layout serves a kernel, SPY0401 a tensor over a segment, what ``candidates`` refuses.
    """
    problem = layout_problem(graph, context.options)
    if isinstance(problem, Refused):
        return problem
    choice = problem.solve()
    if choice is None:
        return Refused(Lack.LAYOUT, problem.refusal())
    cost = choice.in_bytes
    context.report.append(str(cost))
    buffers = {name: replace(buffer, layout=choice.layouts[name]) for name, buffer in graph.buffers.items()}
    placed = replace(graph, buffers=buffers, layout_cost=cost)
    written = write_copies(_without_elided(placed), problem.costs, context)
    if isinstance(written, Refused):
        return written
    shared = share_constants(written)
    return _oversized(shared) or shared


def layout_problem(graph: KernelGraph, options: PipelineOptions) -> LayoutProblem | Refused:
    """Return the choice of layouts that a graph of kernels leaves open; refused as ``candidates``."""
    plain = candidates_of(graph, options.target, fixed_io_layouts=options.fixed_io_layouts)
    if isinstance(plain, Refused):
        return plain
    orders = order_costs(graph, plain, options)
    return LayoutProblem(graph, {**plain, **{name: tuple(own) for name, own in orders.items()}}, orders)


def _oversized(graph: KernelGraph) -> Refused | None:
    for buffer in graph.buffers.values():
        if buffer.placed.size_bytes > SEGMENT_BYTES:
            refusal = refuse(
                "SPY0401",
                f'"{buffer.name}" takes {buffer.placed.size_bytes} device bytes, a segment has {SEGMENT_BYTES}',
                location_of(buffer.origin),
                notes=(f"its layout is {buffer.placed}",),
                hint="split the tensor",
            )
            return Refused(Lack.ROOM, refusal)
    return None


def candidates_of(
    graph: KernelGraph, target: Target, *, fixed_io_layouts: bool
) -> dict[str, tuple[BufferLayout, ...]] | Refused:
    """Return the layouts that each buffer may get; refused as ``candidates``."""
    found: dict[str, tuple[BufferLayout, ...]] = {}
    for name, buffer in graph.buffers.items():
        layouts = candidates(buffer, target, fixed_io_layouts=fixed_io_layouts)
        if isinstance(layouts, Refused):
            return layouts
        found[name] = layouts
    return found


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """A layout per buffer; cost and lower bound are bytes times ``TIE_SCALE`` plus departures from defaults."""

    layouts: Mapping[str, BufferLayout]
    cost: int
    lower_bound: int

    @property
    def in_bytes(self) -> LayoutCost:
        """The cost without departures from defaults."""
        return LayoutCost(self.cost // TIE_SCALE, self.lower_bound // TIE_SCALE)


@dataclass(frozen=True, slots=True)
class _Operand:
    """One input of a kernel: its table, the variables of the buffers read and written, and the loops around it."""

    table: OperandTable
    source: int
    target: int
    loops: tuple[int, ...]


class LayoutProblem:
    """The sum of tables whose minimum is the best choice of layouts for a kernel graph.

    ``plain``: the layouts that each buffer may get; ``orders``: what these cost batched products, of buffers that such
    read.
    """

    def __init__(
        self, graph: KernelGraph, plain: Mapping[str, tuple[BufferLayout, ...]], orders: OrderCosts = NO_ORDERS
    ) -> None:
        self._graph = graph
        self._plain = plain
        self._orders = orders
        self.domains = _with_pinned_targets(graph, self._plain)
        self.costs = OperandCosts(graph, self.domains)
        self._names = list(self.domains)
        self._sizes = [len(self.domains[name]) for name in self._names]
        index = {name: position for position, name in enumerate(self._names)}
        self._own = list(_own_costs(graph, self.domains, orders))
        operands = [
            _Operand(self.costs.table(kernel, position), index[use.buffer], index[kernel.output.buffer], kernel.loops)
            for kernel in graph.kernels
            for position, use in enumerate(kernel.inputs)
        ]
        self._operands = [operand for operand in operands if operand.source != operand.target]
        self._in_place = [operand for operand in operands if operand.source == operand.target]
        self._joint_tables: dict[Hashable, Table] = {}

    def solve(self) -> LayoutChoice | None:
        """Return the best choice, ``None`` where none serves every kernel."""
        best = self.cheapest()
        if best is None:
            return None
        layouts = {name: self.domains[name][best.values[i]] for i, name in enumerate(self._names)}
        return LayoutChoice(layouts, best.cost, best.lower_bound)

    def solve_with(self, name: str, layout: BufferLayout) -> LayoutChoice | None:
        """Return the best choice that gives one buffer this one of its layouts, ``None`` where none serves."""
        taken = [0 if item == layout else INFINITE for item in self.domains[name]]
        other = copy(self)
        other._own = [*self._own, Factor((self._names.index(name),), np.asarray(taken, np.int64))]  # noqa: SLF001 -- a copy
        return other.solve()

    def cheapest(self) -> Assignment | None:
        """Return the cheapest choice, ``None`` where none serves every kernel.

        The tables start as lower bounds: an optimum that uses exact entries only is the true one.  First every operand
        pays for its copies alone, which is quick and already the answer where there are none.
        """
        pairs = self._elimination([(item.source, item.target) for item in self._operands])
        alone = self._minimise(pairs, lambda: [item.table.costs for item in self._operands])
        if alone is None or alone.cost < TIE_SCALE:
            return alone
        groups = list(self._shared())
        joined = self._elimination([group.scope for group in groups])
        best = self._minimise(joined, lambda: self._joint(groups))
        assert best is not None
        if all(group.is_first for group in groups):
            return best
        tables = self._joint(groups, are_copies_of_others_free=True)
        bound = joined.minimise([*self._alone(), *tables]).lower_bound
        return replace(best, lower_bound=min(bound, best.cost))

    def _elimination(self, scopes: Sequence[tuple[int, ...]]) -> Elimination:
        """Return the elimination of what buffers cost by themselves, and of tables over ``scopes``."""
        in_place = [(item.source,) for item in self._in_place]
        return Elimination(self._sizes, [*(factor.scope for factor in self._own), *in_place, *scopes])

    def _alone(self) -> Iterator[Table]:
        """Yield what buffers cost by themselves."""
        yield from (factor.table for factor in self._own)
        yield from (np.diagonal(item.table.costs) for item in self._in_place)

    def _minimise(self, elimination: Elimination, tables: Callable[[], list[Table]]) -> Assignment | None:
        while True:
            best = elimination.minimise([*self._alone(), *tables()])
            if best.cost >= INFINITE:
                return None
            if not self._refine(best.values):
                return best

    def _shared(self) -> Iterator[SharedReaders]:
        """Yield the operands by the buffer they read."""
        readers: dict[int, list[Reader]] = {}
        for item in self._operands:
            readers.setdefault(item.source, []).append(Reader(item.table, item.target, item.loops))
        for source, found in readers.items():
            yield from shared_readers(source, found, self._sizes)

    def _joint(self, groups: Sequence[SharedReaders], *, are_copies_of_others_free: bool = False) -> list[Table]:
        """Return the joint table of each group; those of groups that are alike are one object, and stay it.

        ``are_copies_of_others_free``: of all but the first group of a buffer.
        """
        before, self._joint_tables = self._joint_tables, {}
        found: list[Table] = []
        for group in groups:
            is_free = are_copies_of_others_free and not group.is_first
            kind = group.kind(self._sizes), is_free
            if kind not in self._joint_tables:
                known = before.get(kind)
                table = group.factor(self._sizes, free_copies=is_free).table if known is None else known
                self._joint_tables[kind] = table
            found.append(self._joint_tables[kind])
        return found

    def cost_of(self, values: Sequence[int]) -> int:
        """Return the cost of one choice, added up kernel by kernel; a copy that several need counts once.

        ``values``: for every buffer, in the graph's order, the number of its candidate.
        """
        self._refine(values)
        total = total_cost(values, self._own)
        copies: dict[object, int] = {}
        for item in (*self._operands, *self._in_place):
            i, j = values[item.source], values[item.target]
            total += int(item.table.own_costs[i, j])
            steps = dict(item.table.chains()).get((i, j), ())
            made = where_made(steps, item.loops)
            copies.update({(item.source, made[: count + 1]): step.cost_bytes for count, step in enumerate(steps)})
        return min(total + sum(copies.values()) * TIE_SCALE, INFINITE)

    def refusal(self) -> SpyrecError:
        """Return the error SPY0350 of a graph that no choice serves."""
        costs = OperandCosts(self._graph, self._plain)  # where a value may lie as it is pinned, no kernel stands out
        kernel = costs.unserved()
        chosen = {use.buffer: self._plain[use.buffer] for use in kernel.uses}
        reasons = [
            costs.reason(kernel, position, chosen[use.buffer][0], chosen[kernel.output.buffer][0])
            for position, use in enumerate(kernel.inputs)
        ]
        return refusal(self._graph, Conflict(kernel, chosen, next(filter(None, reasons), None)), self._serves)

    def _serves(self, pinned: KernelBuffer) -> bool:
        """Whether the graph has a choice where one of its buffers has another pin."""
        assert pinned.pin is not None
        layout = layout_of_pin(pinned, pinned.pin)
        if isinstance(layout, Refused):
            return False
        changed = replace(self._graph, buffers={**self._graph.buffers, pinned.name: pinned})
        return LayoutProblem(changed, {**self._plain, pinned.name: (layout,)}, self._orders).cheapest() is not None

    def _refine(self, values: Sequence[int]) -> bool:
        asked = dict.fromkeys(
            (item.table, values[item.source], values[item.target]) for item in (*self._operands, *self._in_place)
        )
        changes = [table.refine(i, j) for table, i, j in asked]
        return any(changes)


def _with_pinned_targets(
    graph: KernelGraph, domains: Mapping[str, tuple[BufferLayout, ...]]
) -> dict[str, tuple[BufferLayout, ...]]:
    """Let a value that is copied into a pinned layout have that layout itself, so that the copy can be dropped."""
    result = dict(domains)
    for kernel in graph.kernels:
        source, target = kernel.inputs[0].buffer if kernel.inputs else "", kernel.output.buffer
        if kernel.is_elidable and graph.buffers[target].pin is not None and graph.buffers[source].pin is None:
            result[source] = tuple(dict.fromkeys((*result[source], *domains[target])))
    return result


def _own_costs(
    graph: KernelGraph, domains: Mapping[str, Sequence[BufferLayout]], orders: OrderCosts
) -> Iterator[Factor]:
    """Yield what the layouts of buffers cost by themselves; equal tables are one object.

    An intermediate's padding is not counted: a stick reduction leaves one element per stick, and to avoid that by a
    copy would move more.  What crosses the border is copied by DMA, padding and all.
    """
    tables: dict[Hashable, Table] = {}
    for variable, (name, layouts) in enumerate(domains.items()):
        buffer = graph.buffers[name]
        if buffer.role is BufferRole.INTERMEDIATE:
            continue
        order = orders.get(name, {})
        kind = buffer.role, buffer.pin is None, buffer.type, buffer.device_format, tuple(layouts), tuple(order.values())
        if kind not in tables:
            own = [excess_bytes(buffer, item) + order.get(item, 0) for item in layouts]
            left = [leaves_default(buffer, item) for item in layouts]
            tables[kind] = np.asarray([TIE_SCALE * cost + away for cost, away in zip(own, left, strict=True)], np.int64)
        yield Factor((variable,), tables[kind])


def _without_elided(graph: KernelGraph) -> KernelGraph:
    """Drop copies between equal layouts: the producer writes the target at once.

    ``v = add(a, b); z = copy(v)  -->  z = add(a, b)`` where v and z agree.
    """
    merged: dict[str, str] = {}
    kernels: list[Kernel] = []
    for kernel in graph.kernels:
        source, target = kernel.inputs[0].buffer if kernel.inputs else "", kernel.output.buffer
        # inside loops one copy stands several times: all of them go
        is_dropped = kernel.is_elidable and graph.buffers[source].layout == graph.buffers[target].layout
        if is_dropped and merged.setdefault(source, target) == target:
            continue
        kernels.append(kernel)
    if not merged:
        return graph
    # an elided output may stand before its source's last reader: the source's kernels come first in any case
    renamed = tuple(_with_renamed_uses(kernel, merged) for kernel in kernels)
    buffers = {name: buffer for name, buffer in graph.buffers.items() if name not in merged}
    places = {name: _renamed(use, merged) for name, use in graph.places.items()}
    return replace(graph, buffers=buffers, kernels=renamed, places=places)


def _with_renamed_uses(kernel: Kernel, merged: Mapping[str, str]) -> Kernel:
    if all(use.buffer not in merged for use in kernel.uses):
        return kernel
    inputs = tuple(_renamed(use, merged) for use in kernel.inputs)
    return replace(kernel, inputs=inputs, output=_renamed(kernel.output, merged))


def _renamed(use: Use, merged: Mapping[str, str]) -> Use:
    name = use.buffer
    while name in merged:
        name = merged[name]
    return use if name == use.buffer else replace(use, buffer=name)
