"""The parallel loops of every program: which dims of its arguments follow them, under names that programs share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from spyrec.contracts.known_program import KnownProgram, Signature, known_programs, source_dims
from spyrec.contracts.reducing_kernel import ReducingKernel, reducing_kernel
from spyrec.contracts.unit_dims import UnitLoops, of_program
from spyrec.dataclass import dataclass
from spyrec.device_ops.record import Fold
from spyrec.ir.kernel import KernelGraph
from spyrec.ir.kernel_form import Rule

_POINTWISE = frozenset({Rule.SAME_STICK, Rule.CAST, Rule.COPY, Rule.RESTICKIFY})

HostDim = tuple[str, int]
"""A buffer and the number of one of its host dims."""


@dataclass(frozen=True, slots=True)
class ProgramLoop:
    """Host dims of a program's arguments that are one parallel loop, by argument; each has ``tile`` elements.

    ``covered``: those that one run of the program computes, whole sticks where the last one is padded.
    """

    name: str
    tile: int
    dims: Mapping[str, int]
    covered: int


@dataclass(frozen=True, slots=True)
class ReductionLoop:
    """A loop whose tiles give parts of ``output``, which are joined as parts of ``fold`` are."""

    loop: ProgramLoop
    fold: Fold
    output: str


@dataclass(frozen=True, slots=True)
class ProgramLoops:
    """What a launch of a program may repeat.

    ``written``: arguments that the program writes; ``kept``: those of them that hold something when it begins.
    ``is_idempotent``: running it twice gives the same result.  ``reduction``: a loop over parts of its result.
    """

    loops: tuple[ProgramLoop, ...]
    is_pointwise: bool
    is_idempotent: bool
    written: frozenset[str]
    kept: frozenset[str]
    reduction: ReductionLoop | None = None


def program_loops(graph: KernelGraph, units: UnitLoops | None = None) -> tuple[ProgramLoops, ...]:
    """Return the parallel loops of each program of a scheduled graph; ``units``: those over dims of one element.

    A loop is one where running the program on the slice ``[i*T, (i+1)*T)`` of every argument that follows it gives
    exactly that slice of everything it writes.  Dims that several programs walk as one have one name: that of the
    graph's dim where it has one, else made of the first argument and its dim, ``x.0``.
    """
    programs = known_programs(graph)
    order = _Order(graph)
    names = _names(graph, programs, order)
    taken = frozenset(names.values())
    written_before: set[str] = set()
    results: list[ProgramLoops] = []
    for program in programs:
        written = frozenset(program.written)
        flags = _is_pointwise(program), _is_idempotent(program)
        loops, kept = _loops(program, names, taken), written & written_before
        if units is not None:
            loops = _with_units(program, loops, units, (order, taken))
        reduction = None if kept else _reduction(reducing_kernel(program), names, loops, taken)
        results.append(ProgramLoops(loops, *flags, written, kept, reduction))
        written_before |= written
    return tuple(results)


def _loops(program: KnownProgram, names: Mapping[HostDim, str], used: AbstractSet[str]) -> tuple[ProgramLoop, ...]:
    """Return the loops of a program in the order of the dims of the first tensor that it writes."""
    loops: list[ProgramLoop] = []
    for dims in _cut(program, names):
        (tile,) = {program.graph.buffers[name].host_type.shape[dim] for name, dim in dims.items()}
        name, taken = names[min(dims.items())], [loop.name for loop in loops]
        name, covered = _unused(name, {*taken, *used}) if name in taken else name, program.covered(dims)
        assert covered is not None, "only what can be cut is yielded"
        loops.append(ProgramLoop(name, tile, dims, covered))
    return tuple(loops)


def _with_units(
    program: KnownProgram, loops: tuple[ProgramLoop, ...], units: UnitLoops, known: tuple[_Order, AbstractSet[str]]
) -> tuple[ProgramLoop, ...]:
    """Return the loops of a program with those over dims of one element, in the order of its first result's dims."""
    graph, all_loops, (order, used) = program.graph, list(loops), known
    for dims in of_program(units, program):
        places = sorted(dims.items(), key=order.of)
        named = next(filter(None, (_dim_name(graph, place) for place in places)), None)
        wanted = f"{places[0][0]}.{places[0][1]}" if named is None else named
        taken = {*(loop.name for loop in all_loops), *used}
        all_loops.append(ProgramLoop(_unused(wanted, taken), 1, dims, 1))
    return tuple(sorted(all_loops, key=lambda loop: loop.dims[program.written[0]]))


def _reduction(
    found: ReducingKernel | None,
    names: Mapping[HostDim, str],
    loops: Sequence[ProgramLoop],
    used: AbstractSet[str],
) -> ReductionLoop | None:
    if found is None:
        return None
    name, taken = names[min(found.dims.items())], [loop.name for loop in loops]
    name = _unused(name, {*taken, *used}) if name in taken else name
    return ReductionLoop(ProgramLoop(name, found.tile, found.dims, found.tile), found.fold, found.output)


def _cut(program: KnownProgram, names: Mapping[HostDim, str]) -> Iterator[dict[str, int]]:
    """Yield the host dims of each loop by argument.

    Each tensor that is written has to follow a loop.  Where one axis does not reach all of them (a program that scales
    queries and keys), those of one extent that are apart from each other are one loop.
    """
    followers = {
        signature: dims
        for found in program.signatures.values()
        for signature in found
        if (dims := program.followers(signature)) is not None
    }
    for signature in program.signatures[program.written[0]] if program.written else ():
        dims = followers.get(signature)
        if dims is None:
            continue
        if not dims.keys() >= set(program.written):
            name = names[min(dims.items())]
            alike = [other for other, found in followers.items() if names[min(found.items())] == name]
            dims = {key: dim for other in alike for key, dim in followers[other].items()}
            if not dims.keys() >= set(program.written) or not program.are_apart(alike):
                continue
        if program.covered(dims) is not None:
            yield dims


def _is_pointwise(program: KnownProgram) -> bool:
    """Whether every element that is written depends on the elements at its own place only."""
    graph = program.graph
    if len(set(program.signatures.values())) != 1 or any(kernel.rule not in _POINTWISE for kernel in program.kernels):
        return False
    (signatures,) = set(program.signatures.values())
    shapes = {graph.buffers[name].host_type.shape for name in program.signatures}
    free = [signature for signature in signatures if program.followers(signature) is not None]
    return len(shapes) == 1 and len(free) == sum(size > 1 for size in next(iter(shapes)))


def _is_idempotent(program: KnownProgram) -> bool:
    """Whether no argument is read before the program has replaced all of it, and written as well."""
    graph = program.graph
    replaced: set[str] = set()
    for kernel in program.kernels:
        if any(use.buffer in program.written and use.buffer not in replaced for use in kernel.inputs):
            return False
        whole = graph.buffers[kernel.output.buffer].type.shape
        if not kernel.loops and kernel.output.access.is_identity and kernel.output.access.extents == whole:
            replaced.add(kernel.output.buffer)
    return True


def _names(graph: KernelGraph, programs: Sequence[KnownProgram], order: _Order) -> dict[HostDim, str]:
    """Return the name of every host dim of arguments; dims that are walked as one somewhere share it.

    They have one extent in whatever tensors the graph is used with.
    """
    groups = sorted(_groups(programs), key=lambda group: min(map(order.of, group)))
    names: dict[HostDim, str] = {}
    taken: set[str] = set()
    for group in groups:
        places = sorted(group, key=order.of)
        known = next(filter(None, (_dim_name(graph, place) for place in places)), None)
        wanted = f"{places[0][0]}.{places[0][1]}" if known is None else known
        name = _unused(wanted, taken)
        taken.add(name)
        names.update(dict.fromkeys(group, name))
    return names


def _groups(programs: Sequence[KnownProgram]) -> list[set[HostDim]]:
    group_of: dict[HostDim, set[HostDim]] = {}
    for program in programs:
        alike: dict[Signature, set[HostDim]] = {}
        for name, signatures in program.signatures.items():
            for dim, signature in enumerate(signatures):
                if signature:
                    alike.setdefault(signature, set()).add((name, dim))
        for joined in alike.values():
            merged = joined.union(*(group_of.get(place, set[HostDim]()) for place in joined))
            group_of.update(dict.fromkeys(merged, merged))
    return list({id(group): group for group in group_of.values()}.values())


class _Order:
    """Inputs in their order, then outputs, then the rest by name."""

    def __init__(self, graph: KernelGraph) -> None:
        names = (*graph.inputs, *(buffer for _, buffer in graph.outputs))
        self._last = len(names)
        self._ranks: dict[str, int] = {}
        for rank, name in enumerate(names):
            self._ranks.setdefault(name, rank)
        self._inputs = frozenset(graph.inputs)

    def of(self, place: HostDim) -> tuple[int, str, int]:
        """Return what places are sorted by."""
        name, dim = place
        return self._ranks.get(name, self._last), "" if name in self._inputs else name, dim


def _dim_name(graph: KernelGraph, place: HostDim) -> str | None:
    name, dim = place
    return next(iter(source_dims(graph, name)[dim : dim + 1]), None)


def _unused(wanted: str, taken: Collection[str]) -> str:
    """Return a name, or the name with the first number from 2 on that none of those taken has."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}.{number}"
    return name
