"""spyrec: an ahead-of-time compiler for the Spyre accelerator, with the runtime and emulator that execute its bundles.

This module is the public front; everything is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spyrec.exec.default_device import DEFAULT_DEVICES
from spyrec.files.lazy_names import lazy_names

if TYPE_CHECKING:
    from spyrec import exec, runtime  # noqa: A004 -- the execution contract's name for itself
    from spyrec.bundle.bundle import Bundle
    from spyrec.bundle.entries import BundleEntries
    from spyrec.device_front import open_device
    from spyrec.diagnostics import Diagnostic, SpyrecError
    from spyrec.entry_compilation import compile_entries
    from spyrec.front import compile  # noqa: A004 -- the front's verbs are named after the commands
    from spyrec.frontends.graph_builder import GraphBuilder
    from spyrec.ir.graph import Graph
    from spyrec.layout.device_layout import DeviceLayout
    from spyrec.model import Model, load, run
    from spyrec.model_import import import_onnx, import_program
    from spyrec.options import CompileOptions, RunOptions, RunResult
    from spyrec.runtime.spyre_device import SpyreDevice

__version__ = "0.1.0"

__all__ = [
    "Bundle",
    "BundleEntries",
    "CompileOptions",
    "DeviceLayout",
    "Diagnostic",
    "Graph",
    "GraphBuilder",
    "Model",
    "RunOptions",
    "RunResult",
    "SpyrecError",
    "__version__",
    "compile",
    "compile_entries",
    "exec",
    "import_onnx",
    "import_program",
    "load",
    "open_device",
    "run",
    "runtime",
]

_HOMES = {
    "Bundle": "spyrec.bundle.bundle",
    "BundleEntries": "spyrec.bundle.entries",
    "CompileOptions": "spyrec.options",
    "DeviceLayout": "spyrec.layout.device_layout",
    "Diagnostic": "spyrec.diagnostics",
    "Graph": "spyrec.ir.graph",
    "GraphBuilder": "spyrec.frontends.graph_builder",
    "Model": "spyrec.model",
    "RunOptions": "spyrec.options",
    "RunResult": "spyrec.options",
    "SpyrecError": "spyrec.diagnostics",
    "compile": "spyrec.front",
    "compile_entries": "spyrec.entry_compilation",
    "exec": "spyrec.exec",
    "import_onnx": "spyrec.model_import",
    "import_program": "spyrec.model_import",
    "load": "spyrec.model",
    "open_device": "spyrec.device_front",
    "run": "spyrec.model",
    "runtime": "spyrec.runtime",
}

__getattr__ = lazy_names(__name__, _HOMES)


def _open_default_device() -> SpyreDevice:
    from spyrec.device_front import open_default_device

    return open_default_device()


DEFAULT_DEVICES.is_told(_open_default_device)


def __dir__() -> list[str]:
    return sorted(__all__)
