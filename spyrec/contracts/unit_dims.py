"""Loops over dims of one element: a program says nothing of them, the graph at larger extents does.

A kernel does not walk a dim of one element.  The source graph with some of its inputs' dims enlarged shows which dims
of other tensors grow with them, and whether the kernels that it makes then compute every element along them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import cast

from spyrec.contracts.known_program import KnownProgram, known_program
from spyrec.dataclass import dataclass
from spyrec.ir.graph import Graph, Node, Value
from spyrec.ir.inference import infer
from spyrec.ir.kernel import BufferRole, KernelGraph, KernelProgram
from spyrec.ir.opdef import Attributes, OpError, catalogue
from spyrec.ir.sizes import NamedSize, read_size
from spyrec.ir.verify import verify

HostDim = tuple[str, int]
"""A tensor and the number of one of its host dims."""

FormKernels = Callable[[Graph], KernelGraph | None]
"""The passes from a source graph to its kernels; ``None`` where the host computes a part of it."""

_MOST_DIMS = 16
_MOST_NODES = 400
"""In larger graphs, and beyond so many dims of one element, nothing is tried: each trial forms all kernels again."""


@dataclass(frozen=True, slots=True)
class UnitLoops:
    """Loops over dims of one element: by tensor the host dim that follows each; ``tensors``: of which that is known."""

    loops: tuple[Mapping[str, int], ...] = ()
    tensors: frozenset[str] = frozenset()


def unit_loops(graph: KernelGraph, form: FormKernels) -> UnitLoops:
    """Return the loops over dims of one element, which all outputs of the graph follow.

    Inputs whose dims grow into one dim of the outputs are one loop.  Loops are tried together, each with an extent of
    its own that nothing else has: one is kept if it is a loop beside those before it.
    """
    source = graph.source
    if source is None or source.loops or source.symbolic_dims or len(source.nodes) > _MOST_NODES:
        return UnitLoops()
    dims = [(name, dim) for name in source.inputs for dim, extent in enumerate(_shape(source, name)) if extent == 1]
    if not 0 < len(dims) <= _MOST_DIMS:
        return UnitLoops()
    trial = _Trial(graph, source, form)
    groups: dict[frozenset[HostDim], list[HostDim]] = {}
    for named in _by_name(source, dims):
        alone = trial.unit_loops([named])
        for loop in alone.loops:
            reached = frozenset((name, place) for name, place in loop.items() if name in trial.outputs)
            groups.setdefault(reached, []).extend(named)
    kept: list[list[HostDim]] = []
    found = UnitLoops()
    for group in groups.values():
        together = trial.unit_loops([*kept, group])
        if together.loops:
            kept.append(group)
            found = together
    return found


def _by_name(source: Graph, dims: Sequence[HostDim]) -> list[list[HostDim]]:
    """Return dims that the graph gives one name together, which have one extent in whatever is launched."""
    groups: dict[str | HostDim, list[HostDim]] = {}
    for name, dim in dims:
        groups.setdefault(source.values[name].dims[dim] or (name, dim), []).append((name, dim))
    return list(groups.values())


def _shape(source: Graph, name: str) -> tuple[int, ...]:
    return source.values[name].type.shape


class _Trial:
    """The kernels of a graph with some of its inputs' dims enlarged."""

    def __init__(self, graph: KernelGraph, source: Graph, form: FormKernels) -> None:
        self._graph = graph
        self._source = source
        self._form = form
        self.outputs = {buffer for _, buffer in graph.outputs}
        used = {extent for value in source.values.values() for extent in value.type.shape}
        self._known: dict[tuple[tuple[HostDim, ...], ...], UnitLoops] = {}
        self._extents = [size for size in range(2, len(used) + _MOST_DIMS + 2) if size not in used]

    def unit_loops(self, groups: Sequence[Sequence[HostDim]]) -> UnitLoops:
        """Return what follows each group of enlarged dims; none where one is no loop, or there is no such graph."""
        key = tuple(map(tuple, groups))
        if key not in self._known:
            self._known[key] = self._tried(groups)
        return self._known[key]

    def _tried(self, groups: Sequence[Sequence[HostDim]]) -> UnitLoops:
        sizes = {dim: size for group, size in zip(groups, self._extents, strict=False) for dim in group}
        enlarged = _enlarged(self._source, sizes)
        if enlarged is None:
            return UnitLoops()
        formed = self._form(enlarged)
        if formed is None:
            return UnitLoops()
        known = self._whole(formed)
        found: list[dict[str, int]] = []
        for group in groups:
            name, dim = group[0]
            signature = known.signatures[name][dim] if name in known.signatures else ()
            dims = known.followers(signature)
            if dims is None or not dims.keys() >= self.outputs or not self._are_units(group, dims):
                return UnitLoops()
            found.append(dims)
        return UnitLoops(tuple(found), frozenset(known.signatures))

    def _whole(self, formed: KernelGraph) -> KnownProgram:
        """Return what is known of all kernels as one program, with the arguments that the graph's programs have."""
        names = dict.fromkeys(name for program in self._graph.programs for name in program.arguments)
        arguments = tuple(
            name for name in names if name in formed.buffers and formed.buffers[name].role is not BufferRole.CONSTANT
        )
        return known_program(formed, KernelProgram(0, len(formed.kernels), arguments, {}, 0))

    def _are_units(self, group: Sequence[HostDim], dims: Mapping[str, int]) -> bool:
        """Whether the enlarged dims follow, and whatever follows has one element where nothing is enlarged."""
        shapes = {name: self._graph.buffers[name].host_type.shape for name in dims}
        return all(dims.get(name) == dim for name, dim in group) and all(
            dim < len(shapes[name]) and shapes[name][dim] == 1 for name, dim in dims.items()
        )


def _enlarged(source: Graph, sizes: Mapping[HostDim, int]) -> Graph | None:
    """Return a graph with other extents of some of its inputs' dims, names of dims and pins left out.

    ``None``: an op does not take them, or the graph states sizes that no longer fit.
    """
    values: dict[str, Value] = {}
    named = {source.values[name].dims[dim]: size for (name, dim), size in sizes.items()}
    extents = source.extents | {name: size for name, size in named.items() if name is not None}
    for name, value in source.values.items():
        shape = tuple(sizes.get((name, dim), extent) for dim, extent in enumerate(value.type.shape))
        grown = replace(value.type, shape=shape) if name in source.inputs else value.type
        values[name] = replace(value, type=grown, dims=(None,) * len(shape), pin=None)
    nodes: list[Node] = []
    for node in source.nodes:
        again = _again(node, values, extents)
        if again is None:
            return None
        nodes.append(again)
    enlarged = replace(source, dims={}, nodes=tuple(nodes), values=values)
    return None if verify(enlarged) else enlarged


def _again(node: Node, values: dict[str, Value], extents: Mapping[str, int]) -> Node | None:
    """Return a node over enlarged operands; ``None`` where it takes them not, or has more results of them."""
    attributes = _resized(node.attributes, extents)
    inferred = infer(catalogue()[node.op], node.inputs, attributes, values)
    if isinstance(inferred, OpError) or len(inferred.results) != len(node.outputs):
        return None
    for name, result in zip(node.outputs, inferred.results, strict=True):
        values[name] = replace(values[name], type=result, dims=(None,) * result.rank)
    return replace(node, attributes=attributes, work_division=None)


def _resized(attributes: Attributes, extents: Mapping[str, int]) -> Attributes:
    """Return attributes whose sizes that were written with dim names have other extents."""
    changed: dict[str, object] = {}
    for item in fields(attributes):
        found: object = getattr(attributes, item.name)
        if isinstance(found, tuple):
            sizes = cast("tuple[object, ...]", found)
            if any(isinstance(size, NamedSize) for size in sizes):
                changed[item.name] = tuple(
                    int(read_size(size.text, extents)) if isinstance(size, NamedSize) else size for size in sizes
                )
    return replace(attributes, **changed) if changed else attributes


def of_program(found: UnitLoops, program: KnownProgram) -> Iterator[dict[str, int]]:
    """Yield the host dims of a program's arguments that follow each loop, where all follow that it writes.

    A tensor that a pass made, and that the trials do not know, may follow or not: there is then no loop.
    """
    buffers, arguments = program.graph.buffers, program.program.arguments
    if all(name in found.tensors or buffers[name].role is BufferRole.CONSTANT for name in arguments):
        for loop in found.loops:
            dims = {name: loop[name] for name in arguments if name in loop}
            if dims.keys() >= set(program.written):
                yield dims
