"""The tree of loops as kernels: full tiles in loops, what is left peeled, accesses and buffers cut to tiles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.device_ops import MULTIPLICATION
from spyrec.ir.access import Access
from spyrec.ir.kernel import Kernel, KernelBuffer, Loop, Use
from spyrec.ir.kernel_form import Rule
from spyrec.ir.types import TensorType
from spyrec.passes.kernel_builder import unique
from spyrec.passes.tile_loops.cutting import DimTiles, cut, localized
from spyrec.passes.tile_loops.tree import Body, LoopNode, TiledKernel


@dataclass(frozen=True, slots=True)
class _Instance:
    """The tiles of one loop of the tree in one place of the schedule; ``loop`` is ``None`` where there is one only."""

    serial: int
    dim: str
    start: int
    size: int
    count: int
    loop: int | None

    def of(self, dim: int) -> DimTiles:
        """Return the same tiles of an iteration dim."""
        return DimTiles(dim, self.start, self.size, self.count)


class Expansion:
    """Kernels, buffers and loops made from a tree.

    ``extents``: of the dims that the loops run over; ``symbolic``: those that are symbolic.  ``depths``: in how many of
    its outermost loops a buffer is per tile.
    """

    def __init__(
        self,
        buffers: Mapping[str, KernelBuffer],
        extents: Mapping[str, int],
        symbolic: Collection[str],
        depths: Mapping[str, int],
    ) -> None:
        self.buffers = {name: buffer for name, buffer in buffers.items() if name not in depths}
        self.kernels: list[Kernel] = []
        self.loops: dict[int, Loop] = {}
        self._all_buffers = buffers
        self._extents = extents
        self._symbolic = symbolic
        self._depths = depths
        self._names: set[str] = set()
        self._tiles: dict[tuple[str, tuple[_Instance, ...]], str] = {}

    def run(self, body: Body, instances: tuple[_Instance, ...] = ()) -> None:
        """Add everything in a body that stands inside ``instances``."""
        for item in body:
            if isinstance(item, TiledKernel):
                self._add(item, instances)
            else:
                self._loop(item, instances)

    def _loop(self, node: LoopNode, outer: tuple[_Instance, ...]) -> None:
        dim = node.level.dim
        outer_tile = next((item.size for item in reversed(outer) if item.dim == dim), None)
        extent = self._extents[dim] if outer_tile is None else outer_tile
        tile = min(node.level.tile, extent)
        count, rest = divmod(extent, tile)
        loop = None
        if count > 1:
            loop = len(self.loops)
            self.loops[loop] = Loop(count, dim, tile, outer_tile is None and dim in self._symbolic)
        self.run(node.body, (*outer, _Instance(node.serial, dim, 0, tile, count, loop)))
        if rest:
            self.run(node.body, (*outer, _Instance(node.serial, dim, count * tile, rest, 1, None)))

    def _add(self, item: TiledKernel, instances: tuple[_Instance, ...]) -> None:
        kernel = item.kernel
        tiles = tuple(
            None if dim is None else instance.of(dim) for dim, instance in zip(item.dims, instances, strict=True)
        )
        extents = list(kernel.extents)
        for tile in tiles:
            if tile is not None:
                extents[tile.dim] = tile.size
        uses = [self._cut(use, tiles, instances) for use in kernel.uses]
        loops = tuple(item.loop for item in instances if item.loop is not None)
        tiled = tuple(
            () if tile is None else (tile.dim,)
            for tile, instance in zip(tiles, instances, strict=True)
            if instance.loop is not None
        )
        self.kernels.append(
            replace(
                _multiplication(kernel) if kernel.rule is Rule.CONTRACTION and extents[-1] == 1 else kernel,
                name=self._unique(kernel.name),
                extents=tuple(extents),
                inputs=tuple(uses[:-1]),
                output=uses[-1],
                is_elidable=kernel.is_elidable and self._keeps_shape(kernel),
                loops=loops,
                tiled=tiled,
            )
        )

    def _keeps_shape(self, kernel: Kernel) -> bool:
        """Whether what a copy reads is of one shape with what it writes: both full, or tiles of the same loops."""
        depths = {self._depths.get(use.buffer, 0) for use in kernel.uses}
        return len(depths) == 1

    def _unique(self, stem: str) -> str:
        name = unique(stem, self._names.__contains__)
        self._names.add(name)
        return name

    def _cut(self, use: Use, tiles: Sequence[DimTiles | None], instances: Sequence[_Instance]) -> Use:
        depth = self._depths.get(use.buffer, 0)
        access = use.access
        for tile in tiles[:depth]:
            if tile is not None:
                access = localized(access, tile)
        found = cut(access, [None] * depth + list(tiles[depth:]))
        assert found is not None, "views that tiles cut apart were written out"
        access, all_steps = found
        steps = tuple(step for step, instance in zip(all_steps, instances, strict=True) if instance.loop is not None)
        name = self._tile_buffer(use, tiles, tuple(instances[:depth])) if depth else use.buffer
        return Use(name, access, steps if any(any(step) for step in steps) else ())

    def _tile_buffer(self, use: Use, tiles: Sequence[DimTiles | None], inside: tuple[_Instance, ...]) -> str:
        """Return the buffer of one tile, made at its first use in each place of the schedule."""
        known = self._tiles.get((use.buffer, inside))
        if known is not None:
            return known
        whole = self._all_buffers[use.buffer]
        shape = list(whole.type.shape)
        for tile in tiles[: len(inside)]:
            for dim, coordinate in enumerate(use.access.coordinates):
                if tile is not None and any(term.dim == tile.dim for term in coordinate.terms):
                    shape[dim] = tile.size
        name = unique(use.buffer, self.buffers.__contains__)
        home = tuple(item.loop for item in inside if item.loop is not None)
        self.buffers[name] = replace(whole, name=name, type=TensorType(tuple(shape), whole.type.dtype), home=home)
        self._tiles[use.buffer, inside] = name
        return name


def _multiplication(kernel: Kernel) -> Kernel:
    """Return a contraction over one element, the last tile of the contracted dim, as the multiplication it is."""
    return replace(kernel, op=MULTIPLICATION, op_func=MULTIPLICATION, rule=Rule.SAME_STICK, reduced=())


def is_followable(access: Access, tiles: Sequence[DimTiles]) -> bool:
    """Whether tiles of so many elements, and what they leave, move evenly through an access."""
    for tile in tiles:
        count, rest = divmod(access.extents[tile.dim], tile.size)
        if cut(access, [DimTiles(tile.dim, 0, tile.size, count)]) is None:
            return False
        if rest and cut(access, [DimTiles(tile.dim, count * tile.size, rest, 1)]) is None:
            return False
    return True
