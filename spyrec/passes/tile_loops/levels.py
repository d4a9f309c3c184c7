"""The levels of a coarse-tiling request: which dim each loop runs over, in tiles of what size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, refuse
from spyrec.ir.graph import Graph, LoopRequest, Node, location_of


@dataclass(frozen=True, slots=True, eq=False)
class TileLevel:
    """One loop of the request; two levels are equal only where they are one.

    ``tile``: elements of dim ``dim`` in one iteration.  The last tile of the dim may be smaller.
    """

    dim: str
    tile: int
    origin: Location = field(repr=False)


Path = tuple[TileLevel, ...]
"""Loops around something, outermost first."""


Lanes = Mapping[str, int]
"""Elements of a stick by the name of a dim that lies in sticks."""


def read_levels(graph: Graph, lanes: Mapping[str, Lanes]) -> dict[str, Path]:
    """Return the levels around each node that stands in ``loops``.

    A level over several dims is one loop per dim, nested in the order in which they are named: every combination of
    tiles is run.  Tiles are whole sticks where a dim of the body lies in sticks (``lanes``, by node).  A tile that
    inner loops cut again is a whole number of their tiles: nothing else moves by whole tiles (rule V10).
    Errors: SPY0420 more tiles than elements.
    """
    reader = _Reader(graph, lanes)
    for request in graph.loops:
        reader.walk(request, ())
    return reader.paths


class _Reader:
    def __init__(self, graph: Graph, lanes: Mapping[str, Lanes]) -> None:
        self._graph = graph
        self._lanes = lanes
        self.paths: dict[str, Path] = {}

    def walk(self, request: LoopRequest, outer: Path) -> None:
        path = outer
        for dim in request.dims:
            extent = self._extent(dim, path)
            tile = self._tile(request, dim, extent)
            if tile < extent:  # one tile is no loop
                path = (*path, TileLevel(dim, tile, request.origin))
        for item in request.body:
            if isinstance(item, str):
                self.paths[item] = path
            else:
                self.walk(item, path)

    def _tile(self, request: LoopRequest, dim: str, extent: int) -> int:
        """Return the elements of a tile, at most ``extent``."""
        lanes = max((self._lanes.get(name, {}).get(dim, 1) for name in request.node_names()), default=1)
        tile = min(-(-_requested(request, dim, extent) // lanes) * lanes, extent)
        inner = [self._tile(item, dim, tile) for item in _next_levels(request, dim)]
        whole = math.lcm(*inner)
        return min(-(-tile // whole) * whole, extent)

    def _extent(self, dim: str, outer: Path) -> int:
        """The extent of a dim inside the outer loops: an outer loop over the same dim leaves one of its tiles."""
        for level in reversed(outer):
            if level.dim == dim:
                return level.tile
        return self._graph.extents[dim]


def _requested(request: LoopRequest, dim: str, extent: int) -> int:
    if request.tile_size is None:
        assert request.tiles is not None, "the reader asks for one of both"
        if request.tiles > extent:
            raise refuse(
                "SPY0420",
                f'{request.tiles} tiles of dim "{dim}", which has {extent} elements there',
                request.origin,
                hint=f"at most {extent} tiles",
            )
        return -(-extent // request.tiles)
    if request.tile_size > extent:
        raise refuse(
            "SPY0420",
            f'a tile of {request.tile_size} elements of dim "{dim}", which has {extent} there',
            request.origin,
            hint=f"at most {extent} elements",
        )
    return request.tile_size


def _next_levels(request: LoopRequest, dim: str) -> Iterator[LoopRequest]:
    """Yield the levels over a dim inside of a level, but none that stand in one of them."""
    for item in request.body:
        if isinstance(item, str):
            continue
        if dim in item.dims:
            yield item
        else:
            yield from _next_levels(item, dim)


def nodes_by_place(graph: Graph) -> dict[Location, Node]:
    """Return the nodes of a graph by the place they were read from: what kernels are traced back by."""
    return {location_of(node.origin): node for node in graph.nodes}
