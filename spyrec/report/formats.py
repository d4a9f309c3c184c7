"""What a report can be shown as: the names of ``--format``, and the function that each of them is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from spyrec.report.model import Report

FORMATS: Mapping[str, str] = {
    "html": "spyrec.report.page:render_page",
    "json": "spyrec.report.report_file:report_text",
    "text": "spyrec.report.exports.text:render",
    "perfetto": "spyrec.report.exports.perfetto:render",
    "dot": "spyrec.report.exports.dot:render",
    "mermaid": "spyrec.report.exports.mermaid:render",
    "model-explorer": "spyrec.report.exports.model_explorer:render",
    "provenance": "spyrec.report.provenance:sidecar_text",
}
"""By name ``module:function``; the function takes a report and returns the whole text.  Imported when asked for."""


def renderer(name: str) -> Callable[[Report], str]:
    """Return the function of a format."""
    module, _, function = FORMATS[name].partition(":")
    return getattr(import_module(module), function)
