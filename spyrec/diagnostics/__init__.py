"""Diagnostics: what is wrong, where, with which values, and what to do about it."""

from __future__ import annotations

from spyrec.diagnostics.diagnostic import (
    Diagnostic,
    DiagnosticSink,
    Location,
    Severity,
    SpyrecError,
    capped,
    files_below,
    listed,
    located,
    refuse,
    standing_for,
)

__all__ = [
    "Diagnostic",
    "DiagnosticSink",
    "Location",
    "Severity",
    "SpyrecError",
    "capped",
    "files_below",
    "listed",
    "located",
    "refuse",
    "standing_for",
]
