"""The levels of a coarse-tiling request: which dim each loop runs over, in tiles of what size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spyrec.diagnostics import Location, refuse
from spyrec.ir.graph import Graph, LoopRequest, Node, location_of
from spyrec.passes.tiling.groups import node_names


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One loop of the request; two levels are equal only where they are one.

    ``tile``: elements of dim ``dim`` in one iteration.  The last tile of the dim may be smaller.
    """

    dim: str
    tile: int
    origin: Location = field(repr=False)


Path = tuple[Level, ...]
"""Loops around something, outermost first."""


def read_levels(graph: Graph) -> dict[str, Path]:
    """Return the levels around each node that stands in ``loops``.

    A level over several dims is one loop per dim, nested in the order in which they are named: every combination of
    tiles is run.  Errors: SPY0420 more tiles than elements.
    """
    reader = _Reader(graph)
    for request in graph.loops:
        reader.walk(request, ())
    return reader.paths


class _Reader:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes = {node.name: node for node in graph.nodes}
        self.paths: dict[str, Path] = {}

    def walk(self, request: LoopRequest, outer: Path) -> None:
        lanes = self._stick_lanes(request)
        path = outer
        for dim in request.dims:
            level = self._level(request, dim, path, lanes.get(dim, 1))
            if level.tile < self._extent(dim, path):  # one tile is no loop
                path = (*path, level)
        for item in request.body:
            if isinstance(item, str):
                self.paths[item] = path
            else:
                self.walk(item, path)

    def _level(self, request: LoopRequest, dim: str, outer: Path, lanes: int) -> Level:
        extent = self._extent(dim, outer)
        if request.tile_size is None:
            assert request.tiles is not None, "the reader asks for one of both"
            if request.tiles > extent:
                raise refuse(
                    "SPY0420",
                    f'{request.tiles} tiles of dim "{dim}", which has {extent} elements there',
                    request.origin,
                    hint=f"at most {extent} tiles",
                )
            tile = -(-extent // request.tiles)
        else:
            tile = request.tile_size
            if tile > extent:
                raise refuse(
                    "SPY0420",
                    f'a tile of {tile} elements of dim "{dim}", which has {extent} there',
                    request.origin,
                    hint=f"at most {extent} elements",
                )
        return Level(dim, min(-(-tile // lanes) * lanes, extent), request.origin)

    def _extent(self, dim: str, outer: Path) -> int:
        """The extent of a dim inside the outer loops: an outer loop over the same dim leaves one of its tiles."""
        for level in reversed(outer):
            if level.dim == dim:
                return level.tile
        extent = self._graph.dims[dim]
        assert isinstance(extent, int), "symbolic dims were refused before"
        return extent

    def _stick_lanes(self, request: LoopRequest) -> Mapping[str, int]:
        """Return the dims that come last in a value of the body, with the lanes of a stick: tiles hold whole ones."""
        found: dict[str, int] = {}
        for node in (self._nodes[name] for name in node_names(request) if name in self._nodes):
            for value in _values(node):
                dims, dtype = self._graph.values[value].dims, self._graph.values[value].type.dtype
                lanes = dtype.device_format.elements_per_stick
                if dims and dims[-1] is not None and lanes is not None:
                    found[dims[-1]] = max(lanes, found.get(dims[-1], 1))
        return found


def _values(node: Node) -> Sequence[str]:
    return [*(operand for operand in node.inputs if isinstance(operand, str)), *node.outputs]


def nodes_by_place(graph: Graph) -> dict[Location, Node]:
    """Return the nodes of a graph by the place they were read from: what kernels are traced back by."""
    return {location_of(node.origin): node for node in graph.nodes}


def known_extents(graph: Graph) -> dict[str, int]:
    """Return the elements of each dim by name."""
    return {name: extent for name, extent in graph.dims.items() if isinstance(extent, int)}
