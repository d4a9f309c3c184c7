"""Where every value of a compiled graph lies, and what the copies cost: the facts under ``inspect-layout GRAPH``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum

from spyrec.codegen.lower_node import argument_address
from spyrec.dataclass import dataclass
from spyrec.device_ops import COPIES, RESTICKIFY
from spyrec.hardware.target import segment_base
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, KernelGraph, KernelProgram, LayoutCost, Use
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.ir.parts import Staged
from spyrec.ir.types import TensorType
from spyrec.passes.assign_layouts.realize import copy_cost_bytes
from spyrec.passes.planning.shares import Share, share_of


class TensorMemory(Enum):
    """Which memory of a program a value lies in."""

    ARGUMENT = "argument"
    POOL = "pool"
    LX = "lx"


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where a value lies in one program: argument number or byte offset, and its device address (in LX, a core's).

    ``share``: in LX, what each core has of it.
    """

    program: int
    memory: TensorMemory
    number: int
    address: int
    share: Share | None = None

    def __str__(self) -> str:
        is_argument = self.memory is TensorMemory.ARGUMENT
        where = f"argument {self.number}" if is_argument else f"{self.memory.value} + {self.number:#x}"
        return f"{where} of program {self.program}"


@dataclass(frozen=True, slots=True)
class GraphValue:
    """One value: ``role`` says what it is; ``use`` is the element of ``buffer`` that each of its indices reads.

    ``owner`` names the value whose memory it shares, ``None`` where the memory is its own.  ``use`` and ``buffer`` are
    ``None`` for values that the compiler took apart or dropped.
    """

    name: str
    role: str
    type: TensorType
    use: Use | None = None
    buffer: KernelBuffer | None = None
    place: TensorPlace | None = None
    owner: str | None = None

    @property
    def owned(self) -> KernelBuffer | None:
        """The memory it has of its own."""
        return self.buffer if self.owner is None else None

    @property
    def padding_percent(self) -> float:
        """The part of its own memory that holds no element."""
        assert self.buffer is not None
        elements = math.prod(self.buffer.placed.device.device_size)
        return 100 * (1 - self.buffer.type.element_count / elements) if elements else 0.0


@dataclass(frozen=True, slots=True)
class CopyPoint:
    """One copy kernel: what it moves (bytes read and written, padding included), for which kernels, and why."""

    kernel: Kernel
    source: str
    target: str
    size_bytes: int
    readers: tuple[str, ...]

    @property
    def is_restickify(self) -> bool:
        """Whether another dim comes to lie in the sticks."""
        return self.kernel.op_func == RESTICKIFY


@dataclass(frozen=True, slots=True)
class GraphLayouts:
    """All values and copies of a graph, and what the compiler says the layouts cost."""

    name: str
    values: tuple[GraphValue, ...]
    copies: tuple[CopyPoint, ...]
    cost: LayoutCost

    @property
    def copied_bytes(self) -> int:
        """What all copies move."""
        return sum(copy.size_bytes for copy in self.copies)


def graph_layouts(graph: KernelGraph) -> GraphLayouts:
    """Return the facts of a scheduled graph: its own values in their order, then the buffers that passes added."""
    assert graph.source is not None
    assert graph.layout_cost is not None
    places = dict(_places(graph))
    owners = _owners(graph)
    values = [_of_source(graph, name, owners, places) for name in graph.source.values]
    values += [_added(graph, buffer, places) for name, buffer in graph.buffers.items() if name not in owners]
    return GraphLayouts(graph.name, tuple(values), tuple(_copies(graph)), graph.layout_cost)


def staged_layouts(staged: Staged) -> GraphLayouts:
    """Return the facts of a graph of which the host computes parts: what the device has, then what the host alone has.

    A value that several parts use is shown as the first of them has it.
    """
    values: dict[str, GraphValue] = {}
    copies: list[CopyPoint] = []
    cost = LayoutCost(0, 0)
    first_program = 0
    for part in staged.parts:
        if not isinstance(part, KernelGraph):
            continue
        found = graph_layouts(part)
        for value in found.values:
            values.setdefault(value.name, _in_program(value, first_program))
        copies += found.copies
        cost = LayoutCost(
            cost.cost_bytes + found.cost.cost_bytes, cost.lower_bound_bytes + found.cost.lower_bound_bytes
        )
        first_program += len(part.programs)
    for name, value in staged.source.values.items():
        values.setdefault(name, GraphValue(name, "on the host", value.type))
    order = list(staged.source.values)
    known = [values[name] for name in order]
    added = [value for name, value in values.items() if name not in staged.source.values]
    return GraphLayouts(staged.source.name, (*known, *added), tuple(copies), cost)


def _in_program(value: GraphValue, first: int) -> GraphValue:
    """Return a value whose place counts the programs of the parts before."""
    return (
        value
        if value.place is None
        else replace(value, place=replace(value.place, program=value.place.program + first))
    )


def _places(graph: KernelGraph) -> Iterator[tuple[str, TensorPlace]]:
    """Yield every buffer's place; the first program comes last and stays."""
    for number, program in reversed(list(enumerate(graph.programs))):
        for index, name in enumerate(program.arguments):
            yield name, TensorPlace(number, TensorMemory.ARGUMENT, index, argument_address(program, index))
        for name, offset in program.pool_offsets.items():
            yield name, TensorPlace(number, TensorMemory.POOL, offset, segment_base(0) + offset)
        for name, offset in program.lx_offsets.items():
            yield name, TensorPlace(number, TensorMemory.LX, offset, offset, _share(graph, program, name))


def _share(graph: KernelGraph, program: KernelProgram, name: str) -> Share | None:
    """Return what each core has of a tensor that lies in LX: all who touch it cut it alike."""
    for kernel in graph.kernels[program.first_kernel : program.end_kernel]:
        for position, use in enumerate(kernel.uses):
            if use.buffer == name:
                return share_of(kernel, position, kernel.division or (1,) * len(kernel.placed.variables))
    return None


def _owners(graph: KernelGraph) -> dict[str, str]:
    """Return for each buffer the value that it is, where a value of the graph is all of it."""
    assert graph.source is not None
    views = {
        name
        for node in graph.source.nodes
        for name in node.outputs
        if catalogue()[node.op].kind is OpKind.VIEW and name not in graph.source.outputs
    }
    owners: dict[str, str] = {}
    for name in graph.source.values:
        use = graph.places.get(name)
        if use is None or name in views or use.buffer not in graph.buffers:
            continue
        if use.access == graph.buffers[use.buffer].whole and (use.buffer == name or use.buffer not in owners):
            owners[use.buffer] = name
    return owners


def _of_source(graph: KernelGraph, name: str, owners: dict[str, str], places: dict[str, TensorPlace]) -> GraphValue:
    assert graph.source is not None
    tensor_type = graph.source.values[name].type
    use = graph.places.get(name)
    if use is None or use.buffer not in graph.buffers:
        return GraphValue(name, "folded away", tensor_type)
    buffer, owner = graph.buffers[use.buffer], owners.get(use.buffer, use.buffer)
    if owner == name:
        return GraphValue(name, buffer.role.value, tensor_type, use, buffer, places.get(use.buffer))
    return GraphValue(name, "view", tensor_type, use, buffer, places.get(use.buffer), owner)


def _added(graph: KernelGraph, buffer: KernelBuffer, places: dict[str, TensorPlace]) -> GraphValue:
    """Return a buffer that is no value of the graph."""
    use, place = Use(buffer.name, buffer.whole), places.get(buffer.name)
    return GraphValue(buffer.name, _added_role(graph, buffer), buffer.host_type, use, buffer, place)


def _added_role(graph: KernelGraph, buffer: KernelBuffer) -> str:
    writers = [kernel for kernel in graph.kernels if kernel.output.buffer == buffer.name]
    is_inner = buffer.role is BufferRole.INTERMEDIATE
    return "copy" if is_inner and writers and all(kernel.op_func in COPIES for kernel in writers) else buffer.role.value


def _copies(graph: KernelGraph) -> Iterator[CopyPoint]:
    in_lx = {name for program in graph.programs for name in program.lx_offsets}
    for kernel in graph.kernels:
        if kernel.op_func not in COPIES:
            continue
        (read,) = kernel.inputs
        source, target = graph.buffers[read.buffer], graph.buffers[kernel.output.buffer]
        if {source.name, target.name} & in_lx:
            continue  # no layout asked for it: what several operations read is fetched once
        moved = copy_cost_bytes(source.placed, source.type.shape, read.access, target.placed)
        readers = [other.name for other in graph.kernels if any(use.buffer == target.name for use in other.inputs)]
        yield CopyPoint(kernel, source.name, target.name, moved, tuple(readers))
