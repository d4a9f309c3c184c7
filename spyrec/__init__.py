"""spyrec: an ahead-of-time compiler for the Spyre accelerator, with the runtime and emulator that execute its bundles.

This module is the public front; everything is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spyrec.bundle.bundle import Bundle
    from spyrec.diagnostics import Diagnostic, SpyrecError
    from spyrec.front import compile, run  # noqa: A004 -- the front's verbs are named after the commands
    from spyrec.frontends.graph_builder import GraphBuilder
    from spyrec.ir.graph import Graph
    from spyrec.layout import DeviceLayout
    from spyrec.options import CompileOptions, RunOptions, RunResult

__version__ = "0.1.0"

__all__ = [
    "Bundle",
    "CompileOptions",
    "DeviceLayout",
    "Diagnostic",
    "Graph",
    "GraphBuilder",
    "RunOptions",
    "RunResult",
    "SpyrecError",
    "__version__",
    "compile",
    "run",
]

_HOMES = {
    "Bundle": "spyrec.bundle.bundle",
    "CompileOptions": "spyrec.options",
    "DeviceLayout": "spyrec.layout",
    "Diagnostic": "spyrec.diagnostics",
    "Graph": "spyrec.ir.graph",
    "GraphBuilder": "spyrec.frontends.graph_builder",
    "RunOptions": "spyrec.options",
    "RunResult": "spyrec.options",
    "SpyrecError": "spyrec.diagnostics",
    "compile": "spyrec.front",
    "run": "spyrec.front",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home on first use; ``import spyrec`` itself stays free of heavy libraries."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'spyrec' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
