"""Which axes of kernels are one: iteration dims that walk the same dim of a tensor, under one name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from spyrec.ir.access import Coordinate
from spyrec.ir.kernel import Kernel, KernelGraph


@dataclass(frozen=True, slots=True)
class TileGroup:
    """Kernels, by name, in loops that the compiler chose: (axis, elements of a tile), outermost first."""

    kernels: frozenset[str]
    levels: tuple[tuple[str, int], ...]


_Place = tuple[str, str, int]
"""A dim of a buffer or of a kernel's iteration: kind, name, number."""


def with_axis_names(graph: KernelGraph) -> tuple[KernelGraph, dict[str, int]]:
    """Return the graph with its kernels' iteration dims named by axis, and the extent of each axis.

    Dims are one axis where a kernel walks a whole dim of a tensor with one of its own, one element at a time.
    """
    joined: dict[_Place, _Place] = {}
    for kernel in graph.kernels:
        for dim, place in _walks(graph, kernel):
            _join(joined, ("kernel", kernel.name, dim), place)
    names: dict[_Place, str] = {}
    extents: dict[str, int] = {}
    kernels: list[Kernel] = []
    for kernel in graph.kernels:
        roots = [_root(joined, ("kernel", kernel.name, dim)) for dim in range(len(kernel.extents))]
        dims = tuple(names.setdefault(root, f"axis{len(names)}") for root in roots)
        extents.update(zip(dims, kernel.extents, strict=True))
        kernels.append(replace(kernel, dims=dims))
    return graph.with_kernels(tuple(kernels)), extents


def _walks(graph: KernelGraph, kernel: Kernel) -> Iterator[tuple[int, _Place]]:
    for use in kernel.uses:
        shape = graph.buffers[use.buffer].type.shape
        for host_dim, coordinate in enumerate(use.access.coordinates):
            dim = _plain_dim(coordinate, kernel.extents)
            if dim is not None and kernel.extents[dim] == shape[host_dim]:
                yield dim, ("buffer", use.buffer, host_dim)


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
