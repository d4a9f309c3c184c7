"""Diagnostics: what is wrong, where, with which values, and what to do about it."""

from __future__ import annotations

from spyrec.diagnostics.diagnostic import (
    Diagnostic,
    DiagnosticSink,
    Location,
    Severity,
    SpyrecError,
    files_below,
    located,
    refuse,
)

__all__ = [
    "Diagnostic",
    "DiagnosticSink",
    "Location",
    "Severity",
    "SpyrecError",
    "files_below",
    "located",
    "refuse",
]
