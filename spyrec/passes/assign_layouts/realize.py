"""The cheapest copies that bring an operand into a form its kernel can read.

Nodes of the search are buffers: the operand's own in another layout, a cropped and padded copy of it, or its view
written out, without or with its repetitions; edges are single copy kernels.  Dijkstra finds the cheapest path to a
form that the kernel accepts; a path through one element per stick always exists, so no legal view is refused for its
shape.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.ir.access import Access, Coordinate
from spyrec.ir.device_access import Inexpressible, Movement
from spyrec.ir.device_layout import BufferLayout, canonical_layout
from spyrec.ir.kernel_form import OUTPUT, KernelShape, OperandUse, Rule, kernel_form
from spyrec.ir.remembered_hash import RemembersHash, remembers_hash


@dataclass(frozen=True, slots=True)
class CopyStep:
    """One copy kernel: reads the buffer before it through ``access`` and writes ``window`` of a new buffer.

    The iteration extents are ``access.extents``; ``rule`` says whether it restickifies.  ``depth``: it stands in so
    many of the loops around its reader, the outermost ones; ``movement``: how what it reads moves along them.
    """

    access: Access
    shape: tuple[int, ...]
    layout: BufferLayout
    window: Access
    rule: Rule
    cost_bytes: int
    depth: int = 0
    movement: Movement = ()


@dataclass(frozen=True, slots=True)
class Realization:
    """Copies in order, and the access the kernel then has to the last buffer (its own, where there are none).

    ``is_whole``: the last buffer has all of the kernel's operand, so that the access still moves along the loops.
    """

    cost_bytes: int
    steps: tuple[CopyStep, ...]
    access: Access
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The loops around a reader, and where copies of its operand can stand.

    ``movement``: how the operand moves.  A copy of the whole buffer stands in the outermost ``whole`` loops, those
    which the buffer is written in too, and runs ``whole_trips`` times; ``None``: in these loops the buffer is never
    complete.  A copy of what one iteration reads stands in the outermost ``tile`` loops and runs ``tile_trips`` times.
    Loops go by their depth, so that readers in other loops that are alike have the same answers.
    """

    movement: Movement = ()
    whole: int | None = 0
    tile: int = 0
    whole_trips: int = 1
    tile_trips: int = 1


NO_LOOPS = Surroundings()


@dataclass(frozen=True, slots=True)
class Source:
    """An operand before any copy: the buffer's host shape, format and layout, and the kernel's access to it.

    ``is_whole``: nothing but a copy of the whole buffer will do.
    """

    shape: tuple[int, ...]
    device_format: DeviceFormat
    layout: BufferLayout
    access: Access
    surroundings: Surroundings = NO_LOOPS
    is_whole: bool = False


Accept = Callable[[Access, BufferLayout, tuple[int, ...], Movement], bool]
"""May a kernel read a buffer of this host shape through this access, which moves so, in this layout?"""


@remembers_hash
@dataclass(frozen=True, slots=True)
class _Node(RemembersHash):
    kind: str
    shape: tuple[int, ...]
    layout: BufferLayout
    kept: tuple[int, ...] = ()


def forms_of(shape: tuple[int, ...], device_format: DeviceFormat) -> tuple[BufferLayout, ...]:
    """Return the layouts a buffer may have, the default one first.

    One per dim of extent > 1 that can be the stick, and the sparse one; float32 buffers whose sticks do not pair up
    also with one more stick (what a cast to or from 16 bits needs).
    """
    lanes = device_format.elements_per_stick
    assert lanes is not None
    sticks: list[int | None] = [dim for dim in reversed(range(len(shape))) if shape[dim] > 1]
    if shape and shape[-1] == 1:
        sticks.insert(0, None)
    else:
        sticks.append(None)
    layouts = [canonical_layout(shape, device_format, stick) for stick in sticks]
    if device_format is DeviceFormat.IEEE_FP32:
        padded = [canonical_layout(shape, device_format, stick, 2) for stick in sticks]
        layouts += [layout for layout in padded if layout not in layouts]
    return tuple(layouts)


def copy_rule(read: OperandUse, write: OperandUse) -> Rule | None:
    """Return the rule under which one kernel copies what ``read`` reads to ``write``, ``None`` where none does."""
    for rule in (Rule.SAME_STICK, Rule.RESTICKIFY):
        form = kernel_form(KernelShape(rule, read.access.extents, ()), (read, write))
        if not isinstance(form, Inexpressible):
            return rule
    return None


def realize(source: Source, accept: Accept) -> Realization | None:
    """Return the cheapest realization, or ``None`` where the kernel accepts no form of the operand at all."""
    if accept(source.access, source.layout, source.shape, source.surroundings.movement):
        return Realization(0, (), source.access)
    copies = _copies_of(source.shape, source.device_format, source.access, source.surroundings, source.is_whole)
    return _cheapest(copies, source, accept)


def _cheapest(copies: _Copies, source: Source, accept: Accept) -> Realization | None:
    """Dijkstra over the buffers that the operand can pass through."""
    start = _Node("base", source.shape, source.layout)
    queue: list[tuple[int, int, int, _Node, tuple[CopyStep, ...]]] = [(0, 0, 0, start, ())]
    settled: set[_Node] = set()
    counter = 0
    while queue:
        cost, _, _, node, steps = heapq.heappop(queue)
        if node in settled:
            continue
        settled.add(node)
        is_whole = node.kind == "base"
        access = copies.access_from(node)
        movement = source.surroundings.movement if is_whole else ()
        if steps and accept(access, node.layout, node.shape, movement):
            return Realization(cost, steps, access, is_whole)
        for target, step in copies.edges(node):
            if target not in settled:
                counter += 1
                heapq.heappush(queue, (cost + step.cost_bytes, len(steps) + 1, counter, target, (*steps, step)))
    return None


class _Copies:
    """The buffers that an operand can pass through, and the copies between them.

    They are the same whatever its layout is and its kernel accepts: one search finds what many others go through.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        device_format: DeviceFormat,
        access: Access,
        surroundings: Surroundings,
        is_whole: bool,
    ) -> None:
        self._shape = shape
        self._is_whole = is_whole
        self._device_format = device_format
        self._access = access
        self._around = surroundings
        self._known: dict[_Node, tuple[tuple[_Node, CopyStep], ...]] = {}
        self._used = [dim for dim in range(len(access.extents)) if access.depends_on(dim)]
        self._view_shape = tuple(access.extents[dim] for dim in self._used)
        places: list[int | None] = [None] * len(access.extents)
        for place, dim in enumerate(self._used):
            places[dim] = place
        self._view = access.over(self._view_shape, places)
        self._from_view = Access.identity(self._view_shape).over(access.extents, self._used)
        self._cropped_shape, self._crop, self._crop_window, self._view_of_crop = _crop(shape, self._view)

    def edges(self, node: _Node) -> Sequence[tuple[_Node, CopyStep]]:
        """Return the copies that read a buffer, and the buffers that they write."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = tuple(self._edges(node))
        return known

    def access_from(self, node: _Node) -> Access:
        """Return the access that the kernel has to a buffer."""
        match node.kind:
            case "base":
                return self._access
            case "crop":
                places = list(self._used)
                return self._view_of_crop.over(self._access.extents, places)
            case "wide":
                return Access.identity(node.shape).over(self._access.extents, node.kept)
            case _:
                return self._from_view

    def _edges(self, node: _Node) -> Sequence[tuple[_Node, CopyStep]]:
        edges: list[tuple[_Node, CopyStep]] = []
        device_format = self._device_format
        is_complete = node.kind != "base" or self._around.whole is not None
        for layout in forms_of(node.shape, device_format) if is_complete else ():
            identity = Access.identity(node.shape)
            self._add(edges, node, _Node(node.kind, node.shape, layout, node.kept), identity, identity)
        if self._is_whole:
            return edges
        if node.kind == "base" and self._cropped_shape != self._shape:
            for layout in forms_of(self._cropped_shape, device_format):
                self._add(edges, node, _Node("crop", self._cropped_shape, layout), self._crop, self._crop_window)
        for kept in self._repeated(node):
            extents = tuple(self._access.extents[dim] for dim in kept)
            places: list[int | None] = [None] * len(self._access.extents)
            for place, dim in enumerate(kept):
                places[dim] = place
            wide = self.access_from(node).over(extents, places)
            for layout in forms_of(extents, device_format):
                self._add(edges, node, _Node("wide", extents, layout, kept), wide, Access.identity(extents))
        if node.kind in ("base", "crop"):
            view = self._view if node.kind == "base" else self._view_of_crop
            for layout in forms_of(self._view_shape, device_format):
                identity = Access.identity(self._view_shape)
                self._add(edges, node, _Node("view", self._view_shape, layout), view, identity)
        return edges

    def _repeated(self, node: _Node) -> list[tuple[int, ...]]:
        """Return the sets of dims that a written-out view may have: those it depends on and one more, or all."""
        if node.kind not in ("base", "view"):
            return []
        every = range(len(self._access.extents))
        unused = [dim for dim in every if dim not in self._used and self._access.extents[dim] > 1]
        sets = [tuple(sorted((*self._used, dim))) for dim in unused]
        return [*sets, tuple(every)] if len(unused) > 1 else sets

    def _add(
        self, edges: list[tuple[_Node, CopyStep]], node: _Node, target: _Node, access: Access, window: Access
    ) -> None:
        if target == node:
            return
        around = self._around
        is_whole = target.kind == "base"
        movement = around.movement[: around.tile] if node.kind == "base" and not is_whole else ()
        read = OperandUse(0, access, node.layout, node.shape, movement)
        rule = copy_rule(read, OperandUse(OUTPUT, window, target.layout, target.shape))
        if rule is None:
            return
        depth = (around.whole or 0) if is_whole else around.tile
        trips = around.whole_trips if is_whole else around.tile_trips
        cost = copy_cost_bytes(node.layout, node.shape, access, target.layout) * trips
        edges.append((target, CopyStep(access, target.shape, target.layout, window, rule, cost, depth, movement)))


_copies_of = lru_cache(maxsize=256)(_Copies)


def copy_cost_bytes(source: BufferLayout, shape: tuple[int, ...], access: Access, target: BufferLayout) -> int:
    """Return the padded bytes a copy moves: the part of the source it reads, and the whole of the target."""
    read = source.size_bytes
    touched = math.prod(access.extents)
    if touched < math.prod(shape):
        read = max(128, read * touched // math.prod(shape))
    return read + target.size_bytes


def _crop(shape: tuple[int, ...], view: Access) -> tuple[tuple[int, ...], Access, Access, Access]:
    """Return a buffer that starts where the view starts and whose dims divide evenly, and the accesses around it."""
    sizes: list[int] = []
    padded: list[int] = []
    starts: list[int] = []
    coordinates: list[Coordinate] = []
    for extent, coordinate in zip(shape, view.coordinates, strict=True):
        span = 1 + sum(term.coefficient * (term.modulus - 1) for term in coordinate.terms)
        unit = coordinate.terms[0].coefficient if coordinate.terms else 1
        size = min(span, extent - coordinate.offset)
        sizes.append(size)
        padded.append(-(-span // unit) * unit)
        starts.append(coordinate.offset)
        coordinates.append(Coordinate(0, coordinate.terms))
    crop = Access(
        tuple(sizes),
        tuple(
            Coordinate(start, inner.terms)
            for start, inner in zip(starts, Access.identity(sizes).coordinates, strict=True)
        ),
    )
    return tuple(padded), crop, Access.identity(sizes), Access(view.extents, tuple(coordinates))
