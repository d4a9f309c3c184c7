"""What an importer raises where a graph does not have what a model calls; collected, never seen by users as such."""

from __future__ import annotations


class Unsupported(Exception):
    """An operation that a graph does not have; says why, lower case, and what to do."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
