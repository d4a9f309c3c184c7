"""What a loop of a builder is held against, beyond what a graph file's loops are."""

from __future__ import annotations

from difflib import get_close_matches

from spyrec.diagnostics import refuse
from spyrec.frontends.call_site import CallSite
from spyrec.frontends.recorder import GraphRecorder
from spyrec.ir.graph import LoopRequest
from spyrec.ir.graph_model import LoopModel


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
    flat = LoopModel.model_construct(dim=list(loop.dims), tiles=loop.tiles, tile_size=loop.tile_size, body=names)
    recorder.read_loops([flat], names, site)
    for item in loop.body:
        if isinstance(item, LoopRequest):
            check_loop(recorder, item, site)
