"""The execution contract (seed 003): capture a launch sequence once, replay it for ever.

``Buffer``, ``Graph``, ``Plan`` and a shape key; streams, events and copies beside them.  Mechanism only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spyrec.files.lazy_names import lazy_names

if TYPE_CHECKING:
    from spyrec.exec.arguments import KEY_INHERIT
    from spyrec.exec.buffer import Buffer
    from spyrec.exec.context import Context
    from spyrec.exec.errors import ExecError, Status
    from spyrec.exec.event import Event
    from spyrec.exec.graph import Graph
    from spyrec.exec.graph_exec import GraphExec
    from spyrec.exec.plan import Plan
    from spyrec.exec.recorder import capture

__all__ = [
    "KEY_INHERIT",
    "Buffer",
    "Context",
    "Event",
    "ExecError",
    "Graph",
    "GraphExec",
    "Plan",
    "Status",
    "capture",
]

_HOMES = {
    "KEY_INHERIT": "spyrec.exec.arguments",
    "Buffer": "spyrec.exec.buffer",
    "Context": "spyrec.exec.context",
    "Event": "spyrec.exec.event",
    "ExecError": "spyrec.exec.errors",
    "Graph": "spyrec.exec.graph",
    "GraphExec": "spyrec.exec.graph_exec",
    "Plan": "spyrec.exec.plan",
    "Status": "spyrec.exec.errors",
    "capture": "spyrec.exec.recorder",
}


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
