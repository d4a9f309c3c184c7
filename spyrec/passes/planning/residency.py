"""Which tensors of a program may lie in the scratchpads, in which way, and what that saves.

* *resident*: every operation that touches the tensor cuts it alike; it never sees device memory.
* *drained*: the writer and some readers cut it alike, and it is needed in device memory too: others cut it differently,
  or it leaves the program.  It is written to LX and stored once; those readers read LX.
* *staged*: some readers cut a region of it alike; its writer does not, or is outside.  The region is fetched once for
  all of them, in each iteration of the loops that it moves along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from spyrec.ir.device_access import Inexpressible, cut_points
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, KernelGraph, Use
from spyrec.passes.lifetimes import start_of_loops
from spyrec.passes.planning.regions import BufferRegion, region_of, use_of_twin, whole_region
from spyrec.passes.planning.scratchpad_copies import drain, fetch, twin_of
from spyrec.passes.planning.shares import Share, share_of, share_of_region


class Way(Enum):
    """How a tensor lies in LX."""

    RESIDENT = "resident"
    DRAINED = "drained"
    STAGED = "staged"


@dataclass(frozen=True, slots=True)
class Residence:
    """A way for one buffer, or a region of it, to lie in LX.

    ``name``: of what lies there, the buffer itself or its twin.  ``readers``: numbers of the kernels that read it
    there.  ``copy``: the kernel between the twins, none where it is resident.  ``saved_bytes``: device memory traffic
    that it saves.  ``size_bytes``: of one core's share.
    """

    way: Way
    buffer: str
    name: str
    size_bytes: int
    saved_bytes: int
    region: BufferRegion
    readers: frozenset[int] = frozenset()
    twin: KernelBuffer | None = None
    copy: Kernel | None = None


@dataclass(slots=True)
class _Touches:
    """Kernels that touch one region of a buffer, by number, with the share of each; ``None``: LX cannot serve it."""

    readers: dict[int, Share | None] = field(default_factory=dict[int, Share | None])
    writers: dict[int, Share | None] = field(default_factory=dict[int, Share | None])


def residences(graph: KernelGraph, kernels: Sequence[Kernel], internal: frozenset[str]) -> tuple[Residence, ...]:
    """Return a way for each buffer or region that can lie in LX, the one that saves most.

    ``internal``: the buffers that no other program and no caller sees.
    """
    return _Finder(graph, kernels, internal).found()


class _Finder:
    """What the kernels of one program touch, and how it could lie in LX."""

    def __init__(self, graph: KernelGraph, kernels: Sequence[Kernel], internal: frozenset[str]) -> None:
        self._graph = graph
        self._kernels = kernels
        self._internal = internal
        self._touches: dict[str, dict[BufferRegion, _Touches]] = {}
        self._writers: dict[str, list[int]] = {}
        for number, kernel in enumerate(kernels):
            for position in range(len(kernel.uses)):
                self._note(number, kernel, position)

    def _note(self, number: int, kernel: Kernel, position: int) -> None:
        use, is_output = kernel.uses[position], position == len(kernel.inputs)
        buffer = self._graph.buffers[use.buffer]
        region, share = touched(buffer, kernel, position, _division(kernel))
        touches = self._touches.setdefault(use.buffer, {}).setdefault(region, _Touches())
        known = touches.writers if is_output else touches.readers
        known[number] = share if known.get(number, share) == share else None
        if is_output:
            self._writers.setdefault(use.buffer, []).append(number)

    def found(self) -> tuple[Residence, ...]:
        """Return the residences that save something, in the order in which their buffers are first touched."""
        result: list[Residence] = []
        for name, by_region in self._touches.items():
            buffer = self._graph.buffers[name]
            resident = self._resident(buffer, by_region)
            if resident is not None:
                result.append(resident)
                continue
            for region, touches in by_region.items():
                best = self._with_twin(buffer, region, touches, len(result))
                if best is not None:
                    result.append(best)
        return tuple(item for item in result if item.saved_bytes > 0)

    def _resident(self, buffer: KernelBuffer, by_region: Mapping[BufferRegion, _Touches]) -> Residence | None:
        region = whole_region(buffer)
        touches = by_region.get(region)
        is_own = buffer.name in self._internal and buffer.role is BufferRole.INTERMEDIATE
        if touches is None or not is_own or len(by_region) > 1:
            return None
        shares = {*touches.readers.values(), *touches.writers.values()}
        share = shares.pop()
        if shares or share is None:
            return None
        saved = buffer.placed.size_bytes * sum(map(self._trips, (*touches.readers, *touches.writers)))
        return Residence(Way.RESIDENT, buffer.name, buffer.name, share.size_bytes, saved, region)

    def _with_twin(
        self, buffer: KernelBuffer, region: BufferRegion, touches: _Touches, number: int
    ) -> Residence | None:
        """Return the residence beside device memory, in the share that saves most."""
        twin = twin_of(self._graph, buffer, region, number)
        if twin is None:
            return None
        best: Residence | None = None
        for share in dict.fromkeys(touches.readers.values()):
            if share is None:
                continue
            is_drained = region == whole_region(buffer) and self._is_drained(buffer, touches, share)
            ready = self._first_ready(buffer.name, len(region.loops))
            readers = frozenset(
                reader
                for reader, found in touches.readers.items()
                if found == share and reader >= ready and self._reads_twin(reader, buffer, region, twin)
            )
            saved = twin.placed.size_bytes * sum(map(self._trips, readers))
            if not is_drained:
                saved -= twin.placed.size_bytes * self._graph.trips(region.loops)
            if not readers or saved <= (0 if best is None else best.saved_bytes):
                continue
            copy = (drain if is_drained else fetch)(self._graph, buffer, region, twin, share)
            if copy is not None:
                way = Way.DRAINED if is_drained else Way.STAGED
                best = Residence(way, buffer.name, twin.name, share.size_bytes, saved, region, readers, twin, copy)
        return best

    def _first_ready(self, name: str, depth: int) -> int:
        """Return the first kernel that finds in ``depth`` loops all that is ever written to a buffer there."""
        writers = self._writers.get(name)
        return end_of_loops(self._kernels, max(writers), depth) if writers else 0

    def _reads_twin(self, number: int, buffer: KernelBuffer, region: BufferRegion, twin: KernelBuffer) -> bool:
        """Whether a kernel that reads the twin has the variables that it has, so that its division holds."""
        kernel = self._kernels[number]
        if kernel.output.buffer == buffer.name:
            return False
        for position, use in enumerate(kernel.inputs):
            if use.buffer != buffer.name:
                continue
            if touched(buffer, kernel, position, _division(kernel))[0] != region:
                return False
            read = use_of_twin(use, region, twin.name)
            try:
                if cut_points(read.access, twin.placed) != cut_points(use.access, buffer.placed):
                    return False
            except Inexpressible:
                return False
        read_by = replace(self._graph, buffers={**self._graph.buffers, twin.name: twin})
        inputs = tuple(
            use_of_twin(use, region, twin.name) if use.buffer == buffer.name else use for use in kernel.inputs
        )
        try:
            return read_by.form_of(replace(kernel, inputs=inputs)).variables == kernel.placed.variables
        except Inexpressible:
            return False

    def _is_drained(self, buffer: KernelBuffer, touches: _Touches, share: Share) -> bool:
        """Whether one writer, in the loops that the buffer is at home in, writes it in this share."""
        writers = self._writers.get(buffer.name, [])
        return (
            len(writers) == 1
            and touches.writers.get(writers[0]) == share
            and self._kernels[writers[0]].loops == buffer.home
        )

    def _trips(self, number: int) -> int:
        return self._graph.trips(self._kernels[number].loops)


def touched(
    buffer: KernelBuffer, kernel: Kernel, position: int, division: tuple[int, ...]
) -> tuple[BufferRegion, Share | None]:
    """Return the region of its buffer that an operand is, and how a division cuts it; ``None``: LX cannot serve it.

    An operand that walks all sticks is the whole buffer, whichever of their lanes it takes.
    """
    share = share_of(kernel, position, division)
    if share is not None or position == len(kernel.inputs):
        return whole_region(buffer), share
    region = region_of(buffer, kernel, kernel.inputs[position])
    if region == whole_region(buffer):
        return region, None
    return region, share_of_region(kernel, position, division)


def _division(kernel: Kernel) -> tuple[int, ...]:
    return kernel.division or (1,) * len(kernel.placed.variables)


def with_residences(graph: KernelGraph, kernels: Sequence[Kernel], chosen: Sequence[Residence]) -> tuple[Kernel, ...]:
    """Return the kernels of a program, rewritten to read and write the twins of the ``chosen``, with their copies."""
    twins = {item.twin.name: item.twin for item in chosen if item.twin is not None}
    graph = replace(graph, buffers={**graph.buffers, **twins})
    inputs = {number: list(kernel.inputs) for number, kernel in enumerate(kernels)}
    result = list(kernels)
    before: dict[int, list[Kernel]] = {}
    after: dict[int, list[Kernel]] = {}
    for item in chosen:
        if item.copy is None:
            continue
        for number in item.readers:
            inputs[number] = [_twinned(use, item) for use in inputs[number]]
        if item.way is Way.STAGED:
            first = min(item.readers)
            place = start_of_loops(kernels, first, kernels[first].loops, len(item.copy.loops))
            before.setdefault(place, []).append(item.copy)
        else:
            writer = next(number for number, kernel in enumerate(kernels) if kernel.output.buffer == item.buffer)
            result[writer] = replace(result[writer], output=_twinned(result[writer].output, item))
            after.setdefault(writer, []).append(item.copy)
    parts: list[Kernel] = []
    for number, kernel in enumerate(result):
        read = replace(kernel, inputs=tuple(inputs[number]))
        if read.uses != kernels[number].uses:
            read = replace(read, form=graph.form_of(read))
        # before one kernel a copy outside of its loops goes first: a loop does not go on behind what stands outside
        outer_first = sorted(before.get(number, ()), key=lambda copy: len(copy.loops))
        parts.extend((*outer_first, read, *after.get(number, ())))
    return tuple(parts)


def _twinned(use: Use, item: Residence) -> Use:
    return use_of_twin(use, item.region, item.name) if use.buffer == item.buffer else use


def end_of_loops(kernels: Sequence[Kernel], number: int, depth: int) -> int:
    """Return the first kernel after ``number`` that stands outside the loops around it deeper than ``depth``."""
    inner = kernels[number].loops[: depth + 1]
    end = number + 1
    while len(inner) > depth and end < len(kernels) and kernels[end].loops[: len(inner)] == inner:
        end += 1
    return end
