"""The one rule that makes a graph's name of a program's."""

from __future__ import annotations

import re

_MOST = 110
"""Characters that are kept: room is left for the op behind a module's path, and for a number."""

_ILLEGAL = re.compile(r"[^A-Za-z0-9_.]")


def legal_name(name: str) -> str:
    """Return a name as graphs take it: other characters become ``_``, a leading digit gets one, the end is kept."""
    cleaned = _ILLEGAL.sub("_", name)
    if len(cleaned) > _MOST:
        cleaned = cleaned[-_MOST:]
    return cleaned if cleaned and (cleaned[0].isalpha() or cleaned[0] == "_") else f"_{cleaned}"
