"""Which axes of kernels are one: iteration dims that walk the same dim of tensors which the kernels hand on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from spyrec.ir.access import Coordinate
from spyrec.ir.kernel import BufferRole, Kernel, KernelGraph

Axis = Mapping[str, int]
"""One axis: the iteration dim of each kernel that has it, by kernel name."""

_Place = tuple[str, str, int]
"""A dim of a buffer or of a kernel's iteration: kind, name, number."""

_HostDim = tuple[str, int]
"""A buffer, and the number of its dim."""


def shared_axes(graph: KernelGraph, kernels: Sequence[Kernel]) -> list[Axis]:
    """Return the axes that at least two of the kernels have, once and free; those of most kernels first.

    Dims are one axis where kernels walk a whole dim of an intermediate with them, one element at a time.  What several
    read from outside joins nothing: the rows of queries and those of keys are two axes, though both come from one
    tensor.
    """
    joined: dict[_Place, _Place] = {}
    for kernel in kernels:
        for dim, place in walks(graph, kernel):
            _join(joined, ("kernel", kernel.name, dim), place)
    found: dict[_Place, dict[str, list[int]]] = {}
    for kernel in kernels:
        for dim, extent in enumerate(kernel.extents):
            if extent > 1:
                root = _root(joined, ("kernel", kernel.name, dim))
                found.setdefault(root, {}).setdefault(kernel.name, []).append(dim)
    by_name = {kernel.name: kernel for kernel in kernels}
    axes = [
        {name: dims[0] for name, dims in members.items() if len(dims) == 1 and is_free(by_name[name], dims[0])}
        for members in found.values()
    ]
    return sorted((axis for axis in axes if len(axis) > 1), key=lambda axis: -len(axis))


def grown(graph: KernelGraph, axis: Axis) -> Axis:
    """Return an axis with the kernels of the graph that hang together with it along intermediates.

    A loop that the small operations between two large ones do not interrupt keeps what the large ones share.
    """
    members = dict(axis)
    walked: dict[str, dict[_HostDim, set[int]]] = {}
    walkers: dict[_HostDim, dict[int, Kernel]] = {}
    for number, kernel in enumerate(graph.kernels):
        for dim, (_, buffer, host_dim) in walks(graph, kernel):
            walked.setdefault(kernel.name, {}).setdefault((buffer, host_dim), set()).add(dim)
            walkers.setdefault((buffer, host_dim), {})[number] = kernel
    places: set[_HostDim] = set()
    joining: Mapping[str, int] = axis
    while joining:
        new = {place for name, dim in joining.items() for place, dims in walked.get(name, {}).items() if dims == {dim}}
        new -= places
        places |= new
        joining = {}
        reached = {number: kernel for place in new for number, kernel in walkers[place].items()}
        for _, kernel in sorted(reached.items(), key=lambda item: item[0]):
            dims = {dim for place, own in walked[kernel.name].items() if place in places for dim in own}
            if kernel.name not in members and len(dims) == 1 and is_free(kernel, min(dims)):
                joining[kernel.name] = min(dims)
        members.update(joining)
    return members


def walks(graph: KernelGraph, kernel: Kernel) -> Iterator[tuple[int, _Place]]:
    """Yield the iteration dims with which a kernel walks whole dims of intermediates, and those dims."""
    for use in kernel.uses:
        buffer = graph.buffers[use.buffer]
        if buffer.role is not BufferRole.INTERMEDIATE:
            continue
        for host_dim, coordinate in enumerate(use.access.coordinates):
            dim = _plain_dim(coordinate, kernel.extents)
            if dim is not None and kernel.extents[dim] == buffer.type.shape[host_dim]:
                yield dim, ("buffer", use.buffer, host_dim)


def is_free(kernel: Kernel, dim: int) -> bool:
    """Whether a kernel neither folds a dim nor strides over elements along it, nor slides a window.

    A tile of every other element moves further than the tiles of what it reads lie apart (rule V10).
    """
    if kernel.window is not None:
        return False
    touching = (item for use in kernel.uses for item in use.access.coordinates if any(t.dim == dim for t in item.terms))
    return dim not in kernel.reduced and all(min(term.coefficient for term in item.terms) == 1 for item in touching)


def lanes_of(graph: KernelGraph, axis: Axis) -> int:
    """Return the elements of a stick where the axis comes last in a tensor, 1 where it never does."""
    found = 1
    for kernel in graph.kernels:
        for use in kernel.uses if kernel.name in axis else ():
            lanes = graph.buffers[use.buffer].device_format.elements_per_stick
            last = use.access.coordinates[-1:]
            if lanes and any(term.dim == axis[kernel.name] for coordinate in last for term in coordinate.terms):
                found = max(found, lanes)
    return found


def _plain_dim(coordinate: Coordinate, extents: Sequence[int]) -> int | None:
    """Return the iteration dim that a coordinate is, if it is one."""
    if coordinate.offset or len(coordinate.terms) != 1:
        return None
    (term,) = coordinate.terms
    is_plain = term.coefficient == term.divisor == 1 and term.modulus == extents[term.dim]
    return term.dim if is_plain else None


def _root(joined: Mapping[_Place, _Place], place: _Place) -> _Place:
    while place in joined:
        place = joined[place]
    return place


def _join(joined: dict[_Place, _Place], first: _Place, second: _Place) -> None:
    first, second = _root(joined, first), _root(joined, second)
    if first != second:
        joined[max(first, second)] = min(first, second)
