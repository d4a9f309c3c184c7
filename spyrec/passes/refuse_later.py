"""What graphs may say and this version does not compile yet: each has a code of its own."""

from __future__ import annotations

from spyrec.diagnostics import DiagnosticSink
from spyrec.ir.graph import Graph, location_of


def refuse_later_features(graph: Graph) -> None:
    """Raise on work division pins (SPY0412), all of them at once."""
    sink = DiagnosticSink()
    for node in graph.nodes:
        if node.work_division is not None:
            hint = 'leave "work_division" out: the compiler divides the work'
            message = f'the work division pinned on "{node.name}" is not compiled yet'
            sink.error("SPY0412", message, location_of(node.origin).child("work_division"), hint=hint)
    sink.raise_if_errors()
