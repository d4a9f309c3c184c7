"""Which tensors of a program may lie in the scratchpads, in which way, and what that saves.

* *resident*: every operation that touches the tensor cuts it alike; it never sees device memory.
* *drained*: the writer and some readers cut it alike, and it is needed in device memory too: others cut it differently,
  or it leaves the program.  It is written to LX and stored once; those readers read LX.
* *staged*: some readers cut a region of it alike; its writer does not, or is outside.  The region is fetched once for
  all of them, in each iteration of the loops that it moves along.
* *shuffled*: what lies in LX in one of these ways is brought there to the share of readers that cut it differently,
  from scratchpad to scratchpad.  Where that serves all of these readers, a tensor can be resident all the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.hardware.cost import cost_of
from spyrec.hardware.target import TargetProfile
from spyrec.ir.device_access import Inexpressible, cut_points
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, KernelGraph, Use
from spyrec.ir.likeness import Answers, ProgramLikeness, likeness
from spyrec.passes.lifetimes import start_of_loops
from spyrec.passes.planning.record import kernel_record
from spyrec.passes.planning.regions import BufferRegion, region_of, use_of_twin, whole_region
from spyrec.passes.planning.scratchpad_copies import again, drain, fetch, shuffle, twin_of
from spyrec.passes.planning.shares import Share, share_of, share_of_region


class Way(Enum):
    """How a tensor lies in LX."""

    RESIDENT = "resident"
    DRAINED = "drained"
    STAGED = "staged"
    SHUFFLED = "shuffled"


@dataclass(frozen=True, slots=True)
class Residence:
    """A way for one buffer, or a region of it, to lie in LX.

    ``name``: of what lies there, the buffer itself or its twin.  ``readers``: numbers of the kernels that read it
    there.  ``copy``: the kernel between the twins, none where it is resident.  ``saved_bytes``: device memory traffic
    that it saves.  ``share``: of each core.  ``source``: the name of what a shuffle reads in LX.  ``shuffle_bytes``:
    what could pass through device memory while it is shuffled.
    """

    way: Way
    buffer: str
    name: str
    share: Share
    saved_bytes: int
    region: BufferRegion
    readers: frozenset[int] = frozenset()
    twin: KernelBuffer | None = None
    copy: Kernel | None = None
    source: str | None = None
    shuffle_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of one core's share."""
        return self.share.size_bytes

    @property
    def worth_bytes(self) -> int:
        """What it saves, the time of its shuffle counted as bytes of device memory."""
        return self.saved_bytes - self.shuffle_bytes


Group = tuple[Residence, ...]
"""What one tensor, or a region of it, has in LX: first what is written or fetched there, then what is shuffled of it.
"""


@dataclass(frozen=True, slots=True)
class Shuffles:
    """What shuffles cost, and the buffers that are not to be shuffled."""

    profile: TargetProfile
    without: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Touches:
    """Kernels that touch one region of a buffer, by number, with the share of each; ``None``: LX cannot serve it."""

    readers: dict[int, Share | None] = field(default_factory=dict[int, Share | None])
    writers: dict[int, Share | None] = field(default_factory=dict[int, Share | None])


def residences(
    graph: KernelGraph,
    kernels: Sequence[Kernel],
    internal: frozenset[str],
    shuffles: Shuffles | None = None,
    without: AbstractSet[str] = frozenset(),
) -> tuple[Group, ...]:
    """Return a way for each buffer or region that can lie in LX, the one that saves most.

    ``internal``: the buffers that no other program and no caller sees.  ``shuffles``: none are made where absent.
    ``without``: buffers that nobody asks about.
    """
    return _Finder(graph, kernels, internal, shuffles).found(without | outside_lx(graph))


def outside_lx(graph: KernelGraph) -> frozenset[str]:
    """Return the buffers that the graph keeps in device memory: of the values that it names, and of the way to them.

    A result's are all that its node's operations write; a view's is what it is a view of.
    """
    source = graph.source
    if source is None or not source.outside_lx:
        return frozenset()
    named = frozenset(source.outside_lx)
    places = {location_of(node.origin) for node in source.nodes if not named.isdisjoint(node.outputs)}
    held = {use.buffer for name, use in graph.places.items() if name in named}
    made = {name for name, buffer in graph.buffers.items() if location_of(buffer.origin) in places}
    return frozenset(held | made | (named & graph.buffers.keys()))


class _Finder:
    """What the kernels of one program touch, and how it could lie in LX."""

    def __init__(
        self, graph: KernelGraph, kernels: Sequence[Kernel], internal: frozenset[str], shuffles: Shuffles | None
    ) -> None:
        self._graph = graph
        self._kernels = kernels
        self._internal = internal
        self._shuffles = shuffles
        self._touches: dict[str, dict[BufferRegion, _Touches]] = {}
        self._writers: dict[str, list[int]] = {}
        self._kinds: dict[int, int] = {}
        self._answers = Answers()
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

    def found(self, without: AbstractSet[str]) -> tuple[Group, ...]:
        """Return the residences that save something, in the order in which their buffers are first touched."""
        result: list[Group] = []
        number = 0
        for name, by_region in self._touches.items():
            if name in without:
                continue
            buffer = self._graph.buffers[name]
            groups = [self._resident(buffer, by_region)]
            if not groups[0]:
                groups = self._with_twins(buffer, by_region, number)
                moved = self._resident_and_moved(buffer, by_region, number)
                groups = [moved] if _worth(moved) > sum(map(_worth, groups)) else groups
            result += [group for group in groups if group]
            number += sum(map(len, groups))
        return tuple(result)

    def _resident(self, buffer: KernelBuffer, by_region: Mapping[BufferRegion, _Touches]) -> Group:
        touches = self._own_touches(buffer, by_region)
        share = None if touches is None else _one((*touches.readers.values(), *touches.writers.values()))
        if touches is None or share is None:
            return ()
        return self._resident_in(buffer, share, (*touches.readers, *touches.writers))

    def _resident_in(self, buffer: KernelBuffer, share: Share, users: Sequence[int]) -> Group:
        saved = buffer.placed.size_bytes * sum(map(self._trips, users))
        return (Residence(Way.RESIDENT, buffer.name, buffer.name, share, saved, whole_region(buffer)),)

    def _own_touches(self, buffer: KernelBuffer, by_region: Mapping[BufferRegion, _Touches]) -> _Touches | None:
        """Return who touches a buffer that nobody outside sees and that all touch whole."""
        is_own = buffer.name in self._internal and buffer.role is BufferRole.INTERMEDIATE
        return by_region.get(whole_region(buffer)) if is_own and len(by_region) == 1 else None

    def _resident_and_moved(
        self, buffer: KernelBuffer, by_region: Mapping[BufferRegion, _Touches], number: int
    ) -> Group:
        """Return the residence in the share of the writers, and shuffles for all readers that have others."""
        touches = self._own_touches(buffer, by_region)
        share = None if touches is None else _one(tuple(touches.writers.values()))
        if touches is None or share is None or not self._may_shuffle(buffer) or None in touches.readers.values():
            return ()
        alike = [reader for reader, own in touches.readers.items() if own == share]
        (anchor,) = self._resident_in(buffer, share, (*alike, *touches.writers))
        moved = self._moved(anchor, touches, number + 1)
        served = sum(len(item.readers) for item in moved) + len(alike)
        return (anchor, *moved) if served == len(touches.readers) else ()

    def _with_twins(self, buffer: KernelBuffer, by_region: Mapping[BufferRegion, _Touches], number: int) -> list[Group]:
        groups: list[Group] = []
        for region, touches in by_region.items():
            groups.append(self._with_twin(buffer, region, touches, number + sum(map(len, groups))))
        return groups

    def _with_twin(self, buffer: KernelBuffer, region: BufferRegion, touches: _Touches, number: int) -> Group:
        """Return the residence beside device memory, in the share that saves most."""
        twin = twin_of(self._graph, buffer, region, number)
        if twin is None:
            return ()
        best: Group = ()
        may_shuffle = self._may_shuffle(buffer)
        written = touches.writers.values() if may_shuffle else ()
        for share in dict.fromkeys((*touches.readers.values(), *written)):
            if share is None:
                continue
            is_drained = region == whole_region(buffer) and self._is_drained(buffer, touches, share)
            readers = self._readers(buffer, region, touches, twin, share)
            saved = twin.placed.size_bytes * sum(map(self._trips, readers))
            if not is_drained:
                saved -= twin.placed.size_bytes * self._graph.trips(region.loops)
            may_move = may_shuffle and any(own not in {share, None} for own in touches.readers.values())
            if not (readers or (is_drained and may_move)) or (saved <= _worth(best) and not may_move):
                continue
            copy = (drain if is_drained else fetch)(self._graph, buffer, region, twin, share)
            if copy is None:
                continue
            way = Way.DRAINED if is_drained else Way.STAGED
            anchor = Residence(way, buffer.name, twin.name, share, saved, region, readers, twin, copy)
            group = (anchor, *(self._moved(anchor, touches, number + 1) if may_move else ()))
            best = group if _worth(group) > _worth(best) else best
        return best

    def _readers(
        self, buffer: KernelBuffer, region: BufferRegion, touches: _Touches, twin: KernelBuffer, share: Share
    ) -> frozenset[int]:
        """Return the kernels that can read a twin of the region instead of it, in a share."""
        ready = self._first_ready(buffer.name, len(region.loops))
        return frozenset(
            reader
            for reader, found in touches.readers.items()
            if found == share and reader >= ready and self._reads_twin(reader, buffer, region, twin)
        )

    def _may_shuffle(self, buffer: KernelBuffer) -> bool:
        return self._shuffles is not None and buffer.name not in self._shuffles.without

    def _moved(self, anchor: Residence, touches: _Touches, number: int) -> Group:
        """Return shuffles of what lies in LX to all other shares of readers, as far as each is worth its time."""
        found: list[Residence] = []
        for share in dict.fromkeys(touches.readers.values()):
            moved = None if share in {anchor.share, None} else self._shuffled(anchor, touches, share, number)
            if moved is not None:
                found.append(moved)
                number += 1
        return tuple(found)

    def _shuffled(self, anchor: Residence, touches: _Touches, share: Share | None, number: int) -> Residence | None:
        buffer, region = self._graph.buffers[anchor.buffer], anchor.region
        twin = twin_of(self._graph, buffer, region, number)
        if twin is None or share is None or self._shuffles is None:
            return None
        readers = self._readers(buffer, region, touches, twin, share)
        copy = shuffle(self._graph, anchor.twin or buffer, region, twin, (anchor.share, share)) if readers else None
        if copy is None:
            return None
        profile = self._shuffles.profile
        cost = cost_of(kernel_record(copy).under(copy.division or (), (True, True)), profile)
        taken = math.ceil(cost.total_us * self._graph.trips(region.loops) * profile.memory_bytes_per_us)
        saved = twin.placed.size_bytes * sum(map(self._trips, readers))
        found = Residence(
            Way.SHUFFLED, buffer.name, twin.name, share, saved, region, readers, twin, copy, anchor.name, taken
        )
        return found if found.worth_bytes > 0 else None

    def _first_ready(self, name: str, depth: int) -> int:
        """Return the first kernel that finds in ``depth`` loops all that is ever written to a buffer there."""
        writers = self._writers.get(name)
        return end_of_loops(self._kernels, max(writers), depth) if writers else 0

    def _reads_twin(self, number: int, buffer: KernelBuffer, region: BufferRegion, twin: KernelBuffer) -> bool:
        """Whether a kernel that reads the twin has the variables that it has, so that its division holds."""
        kernel = self._kernels[number]
        if kernel.output.buffer == buffer.name:
            return False
        if number not in self._kinds:
            facts = likeness(self._graph, kernel), kernel.loops, _division(kernel)  # regions name loops
            self._kinds[number] = self._answers.number(*facts)
        places = tuple([use.buffer == buffer.name for use in kernel.inputs])
        question = ("reads twin", self._kinds[number], places, region, twin.layout)
        return self._answers.answer(question, lambda: self._has_same_variables(kernel, buffer, region, twin))

    def _has_same_variables(
        self, kernel: Kernel, buffer: KernelBuffer, region: BufferRegion, twin: KernelBuffer
    ) -> bool:
        for position, use in enumerate(kernel.inputs):
            if use.buffer != buffer.name:
                continue
            if touched(buffer, kernel, position, _division(kernel))[0] != region:
                return False
            read = use_of_twin(use, region, twin.name)
            points = cut_points(read.access, twin.placed)
            if isinstance(points, Inexpressible) or points != cut_points(use.access, buffer.placed):
                return False
        used = {use.buffer: self._graph.buffers[use.buffer] for use in kernel.uses}
        read_by = replace(self._graph, buffers={**used, twin.name: twin})
        inputs = tuple(
            use_of_twin(use, region, twin.name) if use.buffer == buffer.name else use for use in kernel.inputs
        )
        form = read_by.form_of(replace(kernel, inputs=inputs))
        return not isinstance(form, Inexpressible) and form.variables == kernel.placed.variables

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


class Names:
    """How what was found out of one program reads for another that is alike."""

    def __init__(self, graph: KernelGraph, first: ProgramLikeness, other: ProgramLikeness) -> None:
        self._graph = graph
        self._buffers = dict(zip(first.buffers, other.buffers, strict=True))
        self._loops = dict(zip(first.loops, other.loops, strict=True))
        self._twins: dict[str, str] = {}

    def renamed(self, item: Residence) -> Residence:
        """Return a residence of the first program as one of the other."""
        buffer = self._graph.buffers[self._buffers[item.buffer]]
        region = item.region
        region = replace(region, loops=self._of_loops(region.loops)) if region.loops else region
        if item.twin is None:
            return replace(item, buffer=buffer.name, name=buffer.name, region=region)
        twin = again(item.twin, item.buffer, buffer, self._graph)
        twin = replace(twin, home=self._of_loops(twin.home)) if twin.home else twin
        self._twins[item.name] = twin.name
        assert item.copy is not None, "between a buffer and its twin is a copy"
        return replace(
            item,
            buffer=buffer.name,
            name=twin.name,
            region=region,
            twin=twin,
            copy=self._copy(item.copy, item.name, twin),
            source=None if item.source is None else self._name(item.source),
        )

    def _copy(self, copy: Kernel, name: str, twin: KernelBuffer) -> Kernel:
        (read,) = copy.inputs
        return replace(
            copy,
            name=twin.name + copy.name[len(name) :],
            inputs=(replace(read, buffer=self._name(read.buffer)),),
            output=replace(copy.output, buffer=self._name(copy.output.buffer)),
            origin=twin.origin,
            loops=self._of_loops(copy.loops),
        )

    def _name(self, name: str) -> str:
        return self._twins.get(name) or self._buffers[name]

    def _of_loops(self, loops: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self._loops[loop] for loop in loops)


def _one(shares: Sequence[Share | None]) -> Share | None:
    """Return what is the share of all, ``None`` where there is no such."""
    return shares[0] if len(set(shares)) == 1 else None


def _worth(group: Group) -> int:
    return sum(item.worth_bytes for item in group)


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
    used = {use.buffer: graph.buffers[use.buffer] for kernel in kernels for use in kernel.uses}
    graph = replace(graph, buffers={**used, **twins})
    inputs: dict[int, Sequence[Use]] = {}
    result = list(kernels)
    before: dict[int, list[Kernel]] = {}
    after: dict[int, list[Kernel]] = {}
    for item in chosen:
        if item.copy is None:
            continue
        for number in item.readers:
            read = inputs.get(number, kernels[number].inputs)
            inputs[number] = [_twinned(use, item) for use in read]
        if item.way is not Way.DRAINED:
            first = min(item.readers.union(*(other.readers for other in chosen if other.source == item.name)))
            place = start_of_loops(kernels, first, kernels[first].loops, len(item.copy.loops))
            before.setdefault(place, []).append(item.copy)
        else:
            writer = next(number for number, kernel in enumerate(kernels) if kernel.output.buffer == item.buffer)
            result[writer] = replace(result[writer], output=_twinned(result[writer].output, item))
            after.setdefault(writer, []).append(item.copy)
    parts: list[Kernel] = []
    for number, kernel in enumerate(result):
        read = replace(kernel, inputs=tuple(inputs[number])) if number in inputs else kernel
        if read is not kernels[number] and read.uses != kernels[number].uses:
            form = graph.form_of(read)
            assert not isinstance(form, Inexpressible), form.reason  # a twin is read by kernels that have a form then
            read = replace(read, form=form)
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
