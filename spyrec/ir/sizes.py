"""Extents in attributes as text: a dim name, an integer, or a product of those (``"A*64"``)."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TERM = re.compile(r"\s*(?:([0-9]{1,19})|([A-Za-z_][A-Za-z0-9_.]{0,127}))\s*", re.ASCII)
_LIMIT = 2**63


class SizeError(Exception):
    """A text that is no extent; the message says why."""


def read_size(text: str, dims: Mapping[str, int]) -> int:
    """Return the extent that ``text`` stands for.  Errors: :class:`SizeError` for syntax, unknown names, 2**63."""
    product = 1
    for part in text.split("*"):
        match = _TERM.fullmatch(part)
        if match is None:
            message = f'"{text[:80]}" is no extent: write integers and dim names with "*" between'
            raise SizeError(message)
        number, name = match.groups()
        if number is None and name not in dims:
            message = f'dim "{name}" is not in "dims"'
            raise SizeError(message)
        product *= int(number) if number is not None else dims[name]
        if product >= _LIMIT:
            message = f'"{text[:80]}" is 2**63 or more'
            raise SizeError(message)
    return product
