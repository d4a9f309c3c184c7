"""Extents in attributes as text: a dim name, an integer, or a product of those (``"A*64"``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self

_TERM = re.compile(r"\s*(?:([0-9]{1,19})|([A-Za-z_][A-Za-z0-9_.]{0,127}))\s*", re.ASCII)
_LIMIT = 2**63


class NamedSize(int):
    """An extent that was written with dim names: the elements it stands for, and the text.

    It is an int, so that ops compute with it as with any other; equal to every int of its value.  A symbolic dim counts
    with its largest extent.  Shapes of types hold plain ints.
    """

    text: str

    def __new__(cls, elements: int, text: str) -> Self:
        """Return ``elements`` as an extent written as ``text``."""
        size = super().__new__(cls, elements)
        size.text = text
        return size

    def __getnewargs__(self) -> tuple[int, str]:  # pyright: ignore[reportIncompatibleMethodOverride] -- for copies
        return int(self), self.text

    @property
    def dim(self) -> str | None:
        """The dim that the extent is all of; ``None`` for a product."""
        return None if "*" in self.text else self.text


class SizeError(Exception):
    """A text that is no extent; the message says why."""


def dim_of_size(size: int) -> str | None:
    """Return the dim that an extent was written as, ``None`` for a number or a product."""
    return size.dim if isinstance(size, NamedSize) else None


def read_size(text: str, dims: Mapping[str, int]) -> int:
    """Return the extent that ``text`` stands for; it keeps its names.

    Errors: :class:`SizeError` for syntax, unknown names, 2**63.
    """
    product = 1
    words: list[str] = []
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
        words.append(number or name)
        if product >= _LIMIT:
            message = f'"{text[:80]}" is 2**63 or more'
            raise SizeError(message)
    is_number = all(word.isdigit() for word in words)
    return product if is_number else NamedSize(product, "*".join(words))
