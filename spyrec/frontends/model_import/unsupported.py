"""What an importer raises where a graph does not have what a model calls; collected, never seen by users as such."""

from __future__ import annotations

from spyrec.diagnostics import SpyrecError


class Unsupported(Exception):
    """An operation that a graph does not have; says why, lower case, and what to do."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def reason_of(error: Unsupported | SpyrecError) -> tuple[str, str | None]:
    """Return why something is not in a graph, and what to do: its own words, or those of the graph's reader."""
    if isinstance(error, Unsupported):
        return error.reason, error.hint
    first = error.diagnostics[0]
    return f"{first.message} ({first.code})", first.hint
