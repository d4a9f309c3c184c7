"""Kernels in a tree of loops: each joins the open loops as far as what it reads allows, else a sibling loop opens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from spyrec.dataclass import dataclass
from spyrec.ir.access import Coordinate, Term
from spyrec.ir.kernel import Kernel, Use
from spyrec.passes.tile_loops.levels import Path, TileLevel


@dataclass(frozen=True, slots=True)
class TiledKernel:
    """A kernel with the iteration dim that each loop around it tiles, outermost first; ``None``: it has none there."""

    kernel: Kernel
    dims: tuple[int | None, ...]


@dataclass(slots=True)
class LoopNode:
    """One loop of the schedule with its body; ``serial`` tells two loops over one level apart."""

    level: TileLevel
    serial: int
    body: list[LoopNode | TiledKernel] = field(default_factory=list["LoopNode | TiledKernel"])


Body = Sequence[LoopNode | TiledKernel]
Serials = tuple[int, ...]
"""Serial numbers of the loops around a kernel, outermost first."""


@dataclass(frozen=True, slots=True)
class _Write:
    """A kernel that wrote a buffer, the loops it stood in, and outside of how many of them the result is complete."""

    item: TiledKernel
    path: Serials
    complete_depth: int | None = None


class LoopTree:
    """The schedule under construction."""

    def __init__(self) -> None:
        self.body: list[LoopNode | TiledKernel] = []
        self._open: list[LoopNode] = []
        self._writes: dict[str, list[_Write]] = {}
        self._serial = 0

    def add(self, kernel: Kernel, levels: Path) -> None:
        """Add a kernel inside loops over ``levels``, whose dims it has; open loops are joined where that is right."""
        self.open_for(kernel, levels)
        self.add_inside(kernel, None)

    def close(self) -> None:
        """End all open loops."""
        self._open.clear()

    def open_for(self, kernel: Kernel, levels: Path) -> None:
        """Make the open loops those that ``kernel`` stands in."""
        dims = tuple(dim_of(kernel, level) for level in levels)
        depth = self._shared_depth(kernel, levels, dims)
        del self._open[depth:]
        for level in levels[depth:]:
            self._serial += 1
            node = LoopNode(level, self._serial)
            self._body_at(len(self._open)).append(node)
            self._open.append(node)

    def add_inside(self, kernel: Kernel, complete_depth: int | None) -> None:
        """Add a kernel to the innermost open loop; what it writes is complete outside of ``complete_depth`` loops."""
        item = TiledKernel(kernel, tuple(dim_of(kernel, node.level) for node in self._open))
        self._body_at(len(self._open)).append(item)
        self._wrote(item, len(self._open), complete_depth)

    def add_before(self, kernel: Kernel, depth: int) -> None:
        """Add a kernel just before the loop that is open at ``depth``."""
        item = TiledKernel(kernel, tuple(dim_of(kernel, node.level) for node in self._open[:depth]))
        body = self._body_at(depth)
        body.insert(len(body) - 1, item)
        self._wrote(item, depth, None)

    def _wrote(self, item: TiledKernel, depth: int, complete_depth: int | None) -> None:
        path = tuple(node.serial for node in self._open[:depth])
        self._writes.setdefault(item.kernel.output.buffer, []).append(_Write(item, path, complete_depth))

    def _body_at(self, depth: int) -> list[LoopNode | TiledKernel]:
        return self.body if depth == 0 else self._open[depth - 1].body

    def _shared_depth(self, kernel: Kernel, levels: Path, dims: Sequence[int | None]) -> int:
        """How many open loops the kernel can join: those over its levels in which all it touches is ready in time."""
        depth = 0
        for node, level in zip(self._open, levels, strict=False):
            if node.level is not level:
                break
            depth += 1
        for use in kernel.uses:
            for write in self._writes.get(use.buffer, ()):
                depth = self._ready_depth(use, write, dims, depth)
        return depth

    def _ready_depth(self, use: Use, write: _Write, dims: Sequence[int | None], limit: int) -> int:
        """The number of open loops in which ``use`` sees, in each iteration, what ``write`` wrote in the same one."""
        for depth in range(limit):
            if depth >= len(write.path) or write.path[depth] != self._open[depth].serial:
                return limit  # the loops of the write are closed from here on: it is complete
            if depth == write.complete_depth:
                return depth
            if not _is_same_tile(use, dims[depth], write.item.kernel.output, write.item.dims[depth]):
                return depth
        return limit


def _is_same_tile(read: Use, read_dim: int | None, written: Use, written_dim: int | None) -> bool:
    """Whether a loop over both dims moves a reader along with the writer."""
    if written_dim is None or not written.access.depends_on(written_dim):
        return True  # written anew in every iteration
    if read_dim is None:
        return False
    target = Coordinate(0, (Term(1, written_dim, 1, written.access.extents[written_dim]),))
    places = [dim for dim, coordinate in enumerate(written.access.coordinates) if coordinate == target]
    if len(places) != 1:
        return False
    wanted = Coordinate(0, (Term(1, read_dim, 1, read.access.extents[read_dim]),))
    others = [item for dim, item in enumerate(read.access.coordinates) if dim != places[0]]
    return read.access.coordinates[places[0]] == wanted and not any(
        term.dim == read_dim for coordinate in others for term in coordinate.terms
    )


def dim_of(kernel: Kernel, level: TileLevel) -> int | None:
    """Return the iteration dim that a level tiles, ``None`` where the kernel has none or two of that name."""
    found = [dim for dim, name in enumerate(kernel.dims) if name == level.dim]
    return found[0] if len(found) == 1 else None


def kernels_of(body: Body, path: Serials = ()) -> Iterator[tuple[TiledKernel, Serials]]:
    """Yield every kernel with the loops around it, in order."""
    for item in body:
        if isinstance(item, LoopNode):
            yield from kernels_of(item.body, (*path, item.serial))
        else:
            yield item, path
