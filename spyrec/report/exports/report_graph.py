"""The graph of a report: boxes within boxes that hold its operations, and edges from who writes to who reads.

What DOT, Mermaid and Model Explorer draw.  Names are numbers here, so that no text of a file is one: ``op3`` is
``report.ops[3]``, ``tensor4`` a tensor that nobody in the bundle wrote before it is read, ``output0`` a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.report.model import Op, OpOperand, Report, ReportLoop, Tensor


class BoxKind(Enum):
    """What a box stands for."""

    PROGRAM = "program"
    LOOP = "loop"
    MODULE = "module"


@dataclass(frozen=True, slots=True)
class Box:
    """Operations that belong together: those of a program, a loop, or a module of the model inside of these.

    ``key`` is unique in the graph and made of letters, digits and ``_``; ``number`` counts programs, loops or modules.
    ``items``: operations by number and further boxes, in the order of execution.
    """

    key: str
    kind: BoxKind
    number: int
    items: tuple[Box | int, ...]

    @property
    def ops(self) -> Iterator[int]:
        """The operations inside, those of inner boxes too."""
        for item in self.items:
            if isinstance(item, Box):
                yield from item.ops
            else:
                yield item


@dataclass(frozen=True, slots=True)
class Edge:
    """A tensor on its way from a node to another one."""

    source: str
    target: str
    tensor: int


def boxes_of(report: Report) -> tuple[Box, ...]:
    """Return the programs of a report with what is in them; every operation is in exactly one innermost box.

    Loops are in their programs, modules in the innermost loop: a model's module may run in several programs, and has a
    box in each.  A module that holds nothing but another module has no box of its own.
    """
    root = _Open()
    modules = {name: number for number, name in enumerate(report.modules)}
    for number, op in enumerate(report.ops):
        place = root
        for step in _path(report, op, modules):
            place = place.items.setdefault(step, _Open())
        place.items[number] = _Open()
    return tuple(item for item in _closed(root, "") if isinstance(item, Box))


_Step = tuple[BoxKind, int]


@dataclass(slots=True)
class _Open:
    """A box that is being filled: inner boxes by kind and number, operations, which hold nothing, by their number."""

    items: dict[_Step | int, _Open] = field(default_factory=dict[_Step | int, "_Open"])


def _path(report: Report, op: Op, modules: dict[str, int]) -> Iterator[_Step]:
    yield BoxKind.PROGRAM, op.program
    for loop in op.loops:
        yield BoxKind.LOOP, loop
    if op.module is None:
        return
    parts = report.modules[op.module].split(".")
    for count in range(1, len(parts) + 1):
        number = modules.get(".".join(parts[:count]))
        if number is not None:
            yield BoxKind.MODULE, number


def _closed(place: _Open, key: str) -> tuple[Box | int, ...]:
    items: list[Box | int] = []
    for step, inner in place.items.items():
        if isinstance(step, int):
            items.append(step)
            continue
        kind, number = step
        own = f"{key}_{kind.value}{number}" if key else f"{kind.value}{number}"
        inside = _closed(inner, own)
        is_passage = kind is BoxKind.MODULE and len(inside) == 1 and isinstance(inside[0], Box)
        items.append(inside[0] if is_passage else Box(own, kind, number, inside))
    return tuple(items)


def title_of(report: Report, box: Box) -> str:
    """Return what a box is, in words, with names as they are."""
    match box.kind:
        case BoxKind.PROGRAM:
            return title_of_program(report, box.number)
        case BoxKind.LOOP:
            return title_of_loop(report.loops[box.number])
        case BoxKind.MODULE:
            return report.modules[box.number]


def title_of_program(report: Report, number: int) -> str:
    """Return what a program is called: by its directory, or its number where the bundle has one alone."""
    directory = report.programs[number].directory
    return f"program {number}" if directory == "." else f"program {directory}"


def title_of_loop(loop: ReportLoop) -> str:
    """Return what a loop is called, how often it goes round, and what it tiles."""
    rounds = f"as many rounds as {loop.parameter} says" if loop.parameter else counted(loop.count, "round")
    tiles = f", {loop.dim} in tiles of {loop.tile:,}" if loop.dim and loop.tile else ""
    return f"loop {loop.name}: {rounds}{tiles}"


def counted(count: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {what}{'s'[: count != 1]}"


def edges_of(report: Report) -> list[Edge]:
    """Return the edges, each once: into operations in their order, then into results."""
    found: dict[Edge, None] = {}
    for number, op in enumerate(report.ops):
        for operand in op.inputs:
            found[Edge(_source(operand), f"op{number}", operand.tensor)] = None
    for number, output in enumerate(report.outputs):
        source = f"tensor{output.tensor}" if output.op is None else f"op{output.op}"
        found[Edge(source, f"output{number}", output.tensor)] = None
    return list(found)


def _source(operand: OpOperand) -> str:
    return f"tensor{operand.tensor}" if operand.writer is None else f"op{operand.writer}"


def tensor_nodes(edges: Sequence[Edge]) -> list[int]:
    """Return the tensors that are nodes, in order: those that edges come from, as no operation wrote them before."""
    return sorted({edge.tensor for edge in edges if edge.source.startswith("tensor")})


def tensor_form(tensor: Tensor) -> str:
    """Return dtype and shape of a tensor (``float16[64,100]``), as far as they are known."""
    shape = "" if tensor.shape is None else f"[{','.join(map(str, tensor.shape))}]"
    return f"{tensor.dtype or ''}{shape}"


def op_facts(op: Op) -> str:
    """Return what an operation costs, in a line: its time, and its bytes of device memory."""
    time = "" if op.us is None else f"{op.us:,.3f} us, "
    return f"{time}{op.read + op.written:,} bytes"


def shares_of_time(report: Report) -> list[float]:
    """Return of each operation its time over that of the one that takes longest, 0 to 1."""
    times = [op.us or 0.0 for op in report.ops]
    most = max(times, default=0.0)
    return [time / most if most else 0.0 for time in times]
