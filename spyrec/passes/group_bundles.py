"""group-bundles: kernels are cut into device programs that fit the argument limit, executed in order by one plan."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import BufferRole, KernelGraph, KernelProgram
from spyrec.passes.base import Lack, PassContext, PipelineOptions, Refused
from spyrec.passes.lifetimes import lifetimes


def group_bundles(graph: KernelGraph, context: PassContext) -> KernelGraph | Refused:
    """Cut the kernels into as few programs as the argument limits allow; what stays inside one goes to its pool.

    The target says how many tensors a program has as arguments at most: 6, or 5 where it also has a pool of
    intermediates, or any number.  An intermediate that two programs use is an argument of both.  A loop is in one
    program.  Refused: SPY0422 a loop that does not fit.
    """
    borders = _Borders(graph, context.options)
    cuts = _fewest_programs(graph, borders)
    if cuts is None:
        return Refused(Lack.ARGUMENTS, _refusal(graph, borders))
    programs = tuple(_program(graph, borders, first, end) for first, end in cuts)
    return replace(graph, programs=programs)


@dataclass(frozen=True, slots=True)
class _Tensor:
    """What kernels use: of an intermediate the first and the last kernel that use it, and its bytes in device memory.

    ``is_own``: inputs, constants and outputs of the graph, which are arguments of whatever uses them.
    """

    name: str
    is_own: bool
    first: int = 0
    last: int = 0
    size_bytes: int = 0


class _Borders:
    """Which buffers cross the borders of a program; ``limit``: most of them, without a pool and with one."""

    def __init__(self, graph: KernelGraph, options: PipelineOptions) -> None:
        self.lifetimes = lifetimes(graph.kernels)
        self.graph = graph
        self.limit = {has_pool: options.most_arguments(has_pool=has_pool) for has_pool in (False, True)}
        known = {name: self._tensor(name) for name in self.lifetimes}
        self.used = [[known[name] for name in {use.buffer: None for use in kernel.uses}] for kernel in graph.kernels]
        """Of each kernel what it uses, each tensor once."""

    def _tensor(self, name: str) -> _Tensor:
        buffer, life = self.graph.buffers[name], self.lifetimes[name]
        if buffer.role is not BufferRole.INTERMEDIATE:
            return _Tensor(name, is_own=True)
        return _Tensor(name, False, life.first, life.last, buffer.placed.size_bytes)

    def is_external(self, name: str, first: int, end: int) -> bool:
        """Whether a buffer used by kernels ``first`` to ``end`` lives outside of them too."""
        if self.graph.buffers[name].role is not BufferRole.INTERMEDIATE:
            return True
        return self.lifetimes[name].first < first or self.lifetimes[name].last >= end

    def fits(self, used: AbstractSet[str], first: int, end: int) -> bool:
        """Whether kernels ``first`` to ``end``, which use these buffers, keep the argument limit."""
        external = sum(self.is_external(name, first, end) for name in used)
        return external <= self.limit[external < len(used)]


def _programs_from(graph: KernelGraph, borders: _Borders, first: int) -> Iterator[tuple[int, int]]:
    """Yield where a program may end that begins with kernel ``first``, and the bytes that it hands on then.

    It grows kernel by kernel until it needs more arguments than any program has, however it goes on.
    """
    known: set[str] = set()
    ending: dict[int, list[_Tensor]] = {}
    opened = pending = internal = handed_on_bytes = 0
    most, limit = borders.limit[False], borders.limit
    for number in range(first, len(graph.kernels)):
        for tensor in borders.used[number]:
            if tensor.name in known:
                continue
            known.add(tensor.name)
            handed_on_bytes += tensor.size_bytes
            if tensor.is_own or tensor.first < first:
                opened += 1
            else:
                pending += 1
                ending.setdefault(tensor.last, []).append(tensor)
        for tensor in ending.pop(number, ()):
            pending -= 1
            internal += 1
            handed_on_bytes -= tensor.size_bytes
        if opened > most:
            return
        if opened + pending <= limit[internal > 0] and _parts_no_loop(graph, number + 1):
            yield number + 1, handed_on_bytes


def _fewest_programs(graph: KernelGraph, borders: _Borders) -> list[tuple[int, int]] | None:
    """Shortest path over cut points: ``reach[e]`` is what covers kernels 0 to e best, and its last program's start.

    Fewest programs first; of those the ones that hand on the fewest bytes: what leaves a program cannot lie in LX.
    ``None``: a loop fits no program.
    """
    count = len(graph.kernels)
    reach: list[tuple[int, int, int] | None] = [None] * (count + 1)
    reach[0] = (0, 0, 0)
    for first in range(count):
        here = reach[first]
        if here is None:
            continue
        for end, handed_on_bytes in _programs_from(graph, borders, first):
            known, cost = reach[end], (here[0] + 1, here[1] + handed_on_bytes)
            if known is None or known[:2] > cost:
                reach[end] = (*cost, first)
        if first == 0 and reach[count] is not None:
            break  # one program is the fewest
    cuts: list[tuple[int, int]] = []
    end = count
    while end:
        step = reach[end]
        if step is None:
            return None
        cuts.append((step[2], end))
        end = step[2]
    return cuts[::-1]


@dataclass(frozen=True, slots=True)
class ProgramCut:
    """A place where a program may end, before kernel ``end``, and what the best plan with that cut costs.

    ``handed_on_bytes``: intermediates that its programs share with others, once for each: they cannot lie in LX.
    """

    end: int
    programs: int
    handed_on_bytes: int


def program_cuts(graph: KernelGraph, options: PipelineOptions, first: int) -> list[ProgramCut]:
    """Return where the program that begins with kernel ``first`` may end, best first: what the pass orders cuts by."""
    borders = _Borders(graph, options)
    count = len(graph.kernels)
    rest: list[tuple[int, int] | None] = [None] * count + [(0, 0)]
    found: list[ProgramCut] = []
    for start in range(count - 1, first - 1, -1):
        ways: list[ProgramCut] = []
        for end, handed_on_bytes in _programs_from(graph, borders, start):
            after = rest[end]
            if after is not None:
                ways.append(ProgramCut(end, 1 + after[0], handed_on_bytes + after[1]))
        rest[start] = min(((way.programs, way.handed_on_bytes) for way in ways), default=None)
        found = ways
    return sorted(found, key=lambda cut: (cut.programs, cut.handed_on_bytes, -cut.end))


def _parts_no_loop(graph: KernelGraph, end: int) -> bool:
    """Whether a program can end before kernel ``end``: a loop is emitted in one."""
    if end == len(graph.kernels):
        return True
    before, after = graph.kernels[end - 1].loops, graph.kernels[end].loops
    return not before or before[:1] != after[:1]


def _refusal(graph: KernelGraph, borders: _Borders) -> SpyrecError:
    """Say which loop uses more tensors than a program can name: one kernel alone never does."""
    spans = [(first, end) for first, end in _units(graph) if not borders.fits(_used(graph, first, end), first, end)]
    first, end = spans[0]
    names = sorted(name for name in _used(graph, first, end) if borders.is_external(name, first, end))
    return refuse(
        "SPY0422",
        f"a loop of {end - first} operations uses {len(names)} tensors from outside, a program has at most "
        f"{borders.limit[False]}",
        location_of(graph.kernels[first].origin),
        notes=("they are " + ", ".join(f'"{name}"' for name in names),),
        hint="part the loop into two",
    )


def _units(graph: KernelGraph) -> Iterator[tuple[int, int]]:
    """Yield the spans of kernels that no program border may part."""
    first = 0
    for end in range(1, len(graph.kernels) + 1):
        if _parts_no_loop(graph, end):
            yield first, end
            first = end


def _used(graph: KernelGraph, first: int, end: int) -> set[str]:
    return {use.buffer for kernel in graph.kernels[first:end] for use in kernel.uses}


def _program(graph: KernelGraph, borders: _Borders, first: int, end: int) -> KernelProgram:
    arguments: dict[str, int] = {}
    outputs: dict[str, int] = {}
    pool: dict[str, int] = {}
    for kernel in graph.kernels[first:end]:
        for use in kernel.uses:
            known = outputs if use is kernel.output else arguments
            if use.buffer in arguments or use.buffer in outputs or use.buffer in pool:
                continue
            (known if borders.is_external(use.buffer, first, end) else pool)[use.buffer] = 0
    return KernelProgram(first, end, (*arguments, *outputs), pool, 0)
