"""Loops of a graph under construction: ``with builder.loop(A=2):`` and the tree that grows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from types import TracebackType

from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.frontends.arguments import attribute_json, dim_name
from spyrec.frontends.call_site import CallSite, call_site
from spyrec.frontends.dim import Dim
from spyrec.frontends.recorder import GraphRecorder
from spyrec.ir.graph import LoopRequest
from spyrec.ir.graph_text import LoopText

DimCounts = Mapping[str, int] | Mapping[Dim, int] | Mapping[str | Dim, int]
"""A number by dim, the dim given as such or by name."""


@dataclass(frozen=True, slots=True)
class BuiltLevel:
    """One counted loop: each of ``dims`` is cut into ``tiles`` tiles or into tiles of ``tile_size``."""

    dims: tuple[str, ...]
    tiles: int | None
    tile_size: int | None


@dataclass(slots=True)
class _Open:
    """A scope that has been entered, and what has been put into it."""

    scope: LoopScope
    body: list[str | LoopRequest] = field(default_factory=list[str | LoopRequest])


class BuiltLoops:
    """The loops so far: those that are closed, and inside each other those that are open.

    Nodes outside all loops stand beside the outermost ones only where a broken loop has left them there.
    """

    def __init__(self, recorder: GraphRecorder) -> None:
        self.recorder = recorder
        self._outermost: list[str | LoopRequest] = []
        self._open: list[_Open] = []

    @property
    def closed(self) -> tuple[LoopRequest, ...]:
        """The outermost loops."""
        return tuple(item for item in self._outermost if isinstance(item, LoopRequest))

    @property
    def innermost(self) -> LoopScope | None:
        """The loop that nodes go into now."""
        return self._open[-1].scope if self._open else None

    def adopt(self, loops: Sequence[LoopRequest]) -> None:
        """Take over loops that are closed."""
        self._outermost.extend(loops)

    def add(self, node: str) -> None:
        """Put a node into the innermost loop."""
        if self._open:
            self._open[-1].body.append(node)

    def enter(self, scope: LoopScope) -> None:
        """Open a loop inside the innermost one."""
        self._open.append(_Open(scope))

    def leave(self, scope: LoopScope, *, is_broken: bool) -> None:
        """Close the innermost loop; one that an exception leaves is dropped, its nodes go to the loop around it.

        Errors: SPY0144 another loop is the innermost one, SPY0134 a body that cannot be.
        """
        if self.innermost is not scope:
            state = "is not open" if all(item.scope is not scope for item in self._open) else "is around an open loop"
            raise refuse("SPY0144", f"the loop over {scope} {state}, and is left", call_site())
        body = self._open.pop().body
        around = self._open[-1].body if self._open else self._outermost
        if is_broken:
            around.extend(body)
            return
        if not body:
            raise refuse("SPY0134", f"the loop over {scope} has no op in it", scope.site)
        request = scope.request(tuple(body))
        check_loop(self.recorder, request, scope.site)
        around.append(request)


class LoopScope:
    """One ``with`` block; several levels stand in each other, the first outermost."""

    def __init__(self, tree: BuiltLoops, levels: tuple[BuiltLevel, ...], site: CallSite) -> None:
        self._tree = tree
        self._levels = levels
        self.site = site

    def request(self, body: tuple[str | LoopRequest, ...]) -> LoopRequest:
        """Return the loops with their body."""
        for level in reversed(self._levels):
            body = (LoopRequest(level.dims, level.tiles, level.tile_size, body, self.site),)
        (request,) = body
        assert isinstance(request, LoopRequest)
        return request

    def __enter__(self) -> None:
        self._tree.enter(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tree.leave(self, is_broken=kind is not None)

    def __str__(self) -> str:
        return ", ".join(name for level in self._levels for name in level.dims)


def levels_of(
    counts: Sequence[tuple[str | Dim, str, object]], recorder: GraphRecorder, site: CallSite
) -> tuple[BuiltLevel, ...]:
    """Return the levels of one request, given as (dim, ``tiles`` or ``tile_size``, number).

    Equal numbers make one level over several dims, different ones a level for each dim, the first outermost.

    Errors: SPY0110 and SPY0124 a number that is none, SPY0134 no dim, an unknown one, one with both numbers, a count
    that does not fit.
    """
    if not counts:
        raise refuse("SPY0134", "the loop names no dim", site, hint="name one: builder.loop(A=2)")
    levels: list[BuiltLevel] = []
    for dim, key, number in counts:
        name = dim_name(dim)
        level = _level(name, key, attribute_json(number, site), recorder, site)
        if name in (known for item in levels for known in item.dims):
            message = f'dim "{name}" stands twice in one loop'
            raise refuse("SPY0134", message, site, hint="give it a number of tiles, or a tile_size")
        levels.append(level)
    first = levels[0]
    if all((item.tiles, item.tile_size) == (first.tiles, first.tile_size) for item in levels):
        return (BuiltLevel(tuple(item.dims[0] for item in levels), first.tiles, first.tile_size),)
    return tuple(levels)


def _level(name: str, key: str, number: JsonValue, recorder: GraphRecorder, site: CallSite) -> BuiltLevel:
    """Return one level over one dim, held against the dim."""
    require_dim(recorder, name, site)
    model = recorder.read({"loops": [{"dim": name, key: number, "body": ["nothing"]}]}, site).loops[0]
    recorder.read_loops([replace(model, body=[])], (), site)
    return BuiltLevel((name,), model.tiles, model.tile_size)


def require_dim(recorder: GraphRecorder, name: str, site: CallSite) -> None:
    """Refuse a loop over a dim that is not declared.  Errors: SPY0134."""
    if name not in recorder.tables.dims:
        close = get_close_matches(name, recorder.tables.dims, n=1)
        hint = f'did you mean "{close[0]}"?' if close else f'declare it: builder.dim("{name}", extent)'
        raise refuse("SPY0134", f'loop dim "{name}" is not declared', site, hint=hint)


def check_loop(recorder: GraphRecorder, loop: LoopRequest, site: CallSite) -> None:
    """Refuse a loop, or one inside it, over a dim that no node in it has or that names two axes of a value.

    Errors: SPY0134.
    """
    names = list(loop.node_names())
    for dim in loop.dims:
        if not any(dim in value.dims for name in names for value in recorder.touched(name)):
            shown = ", ".join(f'"{name}"' for name in names[:8])
            hint = f'name an axis "{dim}" where the tensors are declared, or leave it out of the loop'
            raise refuse("SPY0134", f'no op in the loop has the dim "{dim}": {shown}', site, hint=hint)
    flat = LoopText(list(loop.dims), loop.tiles, loop.tile_size, [*names])
    recorder.read_loops([flat], names, site)
    for item in loop.body:
        if isinstance(item, LoopRequest):
            check_loop(recorder, item, site)
