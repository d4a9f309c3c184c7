"""What graphs may say and this version does not compile yet: each has a code of its own."""

from __future__ import annotations

from spyrec.diagnostics import DiagnosticSink, Location
from spyrec.ir.graph import Graph, location_of
from spyrec.ir.types import SymbolicDim


def refuse_later_features(graph: Graph) -> None:
    """Raise on symbolic dims (SPY0411) and work division pins (SPY0412), all of them at once."""
    sink = DiagnosticSink()
    for name, dim in graph.dims.items():
        if isinstance(dim, SymbolicDim):
            hint = f'give "{name}" one extent, for example {dim.maximum}'
            sink.error(
                "SPY0411", f'dim "{name}" is symbolic, which is not compiled yet', _dim_place(graph, name), hint=hint
            )
    for node in graph.nodes:
        if node.work_division is not None:
            hint = 'leave "work_division" out: the compiler divides the work'
            message = f'the work division pinned on "{node.name}" is not compiled yet'
            sink.error("SPY0412", message, location_of(node.origin).child("work_division"), hint=hint)
    sink.raise_if_errors()


def _dim_place(graph: Graph, name: str) -> Location:
    """Return the place of a dim's declaration, in the file that the graph's values come from."""
    anywhere = location_of(next(iter(graph.values.values())).origin)
    return Location(anywhere.file, "", source=anywhere.source).child("dims", name)
