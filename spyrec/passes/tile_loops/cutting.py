"""Accesses cut to tiles: from an index over a whole dim to a place inside a tile, and a step per iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from spyrec.dataclass import dataclass
from spyrec.ir.access import Access, Coordinate, Term


@dataclass(frozen=True, slots=True)
class DimTiles:
    """The tiles of one iteration dim: ``count`` of ``size`` elements, the first at ``start``, out of ``extent``."""

    dim: int
    start: int
    size: int
    count: int


def cut(access: Access, tiles: Sequence[DimTiles | None]) -> tuple[Access, tuple[tuple[int, ...], ...]] | None:
    """Return the access in the first tile of every loop, and how far it moves with each, in elements per buffer dim.

    ``tiles`` has an entry per loop, outermost first, ``None`` where a loop tiles no dim; a dim may be tiled twice.
    ``None``: the view behind the access is cut apart by the tiles.
    """
    rank = len(access.extents)
    current: Access | None = access
    indices: list[int | None] = []
    for tile in tiles:
        if tile is None:
            indices.append(None)
            continue
        assert current is not None
        current = current.window(tile.dim, tile.start, tile.size * tile.count, 1)
        current = None if current is None else _split(current, tile)
        if current is None:
            return None
        indices.append(len(current.extents) - 1)
    assert current is not None
    steps = tuple((0,) * len(current.coordinates) if index is None else _step(current, index) for index in indices)
    if any(step is None for step in steps):
        return None
    kept = current.over(current.extents[:rank], [dim if dim < rank else None for dim in range(len(current.extents))])
    return kept, tuple(step for step in steps if step is not None)


def _split(access: Access, tile: DimTiles) -> Access | None:
    """Return the access with the tiled dim cut in two: the place in a tile where it was, the tile's number last."""
    extents, dim = access.extents, tile.dim
    split = access.reshape((*extents[:dim], tile.count, tile.size, *extents[dim + 1 :]))
    if split is None:
        return None
    others = [place for place in range(len(extents) + 1) if place != dim]
    return split.permute([*others, dim])


def _step(access: Access, index: int) -> tuple[int, ...] | None:
    """Return how far each coordinate moves with a dim, ``None`` where one does not move evenly."""
    steps: list[int] = []
    for coordinate in access.coordinates:
        terms = [term for term in coordinate.terms if term.dim == index]
        if any(term.divisor != 1 or term.modulus != access.extents[index] for term in terms):
            return None
        steps.append(sum(term.coefficient for term in terms))
    return tuple(steps)


def loses_digit(access: Access, tiles: Sequence[DimTiles]) -> bool:
    """Whether tiles of one element take an axis that a reshape has split off out of a buffer dim it shares.

    Nothing then walks the axis, and its step is known as one of whole tiles (rule V10) only where what lies inside of
    it is walked whole: heads of 64 columns in a row of all heads, but not half of each head.
    """
    sizes: dict[int, int] = {}
    for tile in tiles:
        sizes[tile.dim] = min(tile.size, sizes.get(tile.dim, tile.size))
    for coordinate in access.coordinates:
        for outer, inner in pairwise(coordinate.terms):
            walk = min(inner.modulus, sizes.get(inner.dim, inner.modulus))
            if sizes.get(outer.dim) == 1 and (inner.coefficient * walk != outer.coefficient or coordinate.offset):
                return True
    return False


def localized(access: Access, tile: DimTiles) -> Access:
    """Return the access to a buffer that holds one tile only: the tiled dim is walked from the tile's own start."""
    coordinates: list[Coordinate] = []
    for coordinate in access.coordinates:
        terms = [_local(term, tile) if term.dim == tile.dim else term for term in coordinate.terms]
        coordinates.append(replace(coordinate, terms=tuple(term for term in terms if term.modulus > 1)))
    extents = (*access.extents[: tile.dim], tile.size, *access.extents[tile.dim + 1 :])
    return Access(extents, tuple(coordinates))


def _local(term: Term, tile: DimTiles) -> Term:
    assert term.divisor == 1, "readers and writers of a tile walk its dim one by one"
    return replace(term, modulus=tile.size)
