"""Which name was meant by one that is not there."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from itertools import islice

LONGEST = 64
"""Characters of a name that are looked at: comparing takes their square."""

_MOST_KNOWN = 500
"""Names that one name is compared with at most."""

_MOST_LISTED = 16
"""Names that a hint lists."""


def nearest(found: str, known: Collection[str]) -> str | None:
    """Return the known name that ``found`` is closest to, ``None`` where none is close."""
    text = found[:LONGEST]
    same = next((name for name in known if name.casefold() == text.casefold()), None)
    return same or next(iter(get_close_matches(text, islice(known, _MOST_KNOWN), n=1)), None)


def one_of(found: str, known: Collection[str], said: str = "choose one of") -> str:
    """Return the hint for a name that is none of ``known``: the closest one, and what there is.

    >>> one_of("best_fit", ["best-fit", "cpsat"])
    'did you mean "best-fit"? choose one of best-fit, cpsat'
    """
    name = nearest(found, known)
    names = ", ".join(islice(known, _MOST_LISTED))
    more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    if name is not None and len(known) == 1:
        return f'did you mean "{name}"?'
    meant = "" if name is None else f'did you mean "{name}"? '
    return f"{meant}{said} {names}{more}"
