"""Diagnostics: what is wrong, where, with which values, and what to do about it."""

from __future__ import annotations

from spyrec.diagnostics.diagnostic import (
    MOST_LISTED,
    Diagnostic,
    DiagnosticSink,
    Location,
    ModelPlace,
    Severity,
    SpyrecError,
    answered,
    capped,
    files_below,
    listed,
    located,
    refuse,
    standing_for,
)

__all__ = [
    "MOST_LISTED",
    "Diagnostic",
    "DiagnosticSink",
    "Location",
    "ModelPlace",
    "Severity",
    "SpyrecError",
    "answered",
    "capped",
    "files_below",
    "listed",
    "located",
    "refuse",
    "standing_for",
]
