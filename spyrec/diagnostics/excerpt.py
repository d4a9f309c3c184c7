"""The line of an input that a diagnostic is about, cut to a readable width, with a mark below what is meant."""

from __future__ import annotations

import re
import unicodedata

from spyrec.dataclass import dataclass

WIDTH = 50
"""Characters of a line that are shown: with the number before it, it fits 60 columns."""

_BEFORE = 20
"""Characters before what is meant, of a line that is too long."""

_CUT = "..."
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[^\s{}\[\]:,"]+|.')


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A line of a text, counted from 1, and the columns from ``begin`` up to ``end`` that are meant, counted from 0."""

    number: int
    text: str
    begin: int
    end: int

    def lines(self) -> tuple[str, str]:
        """Return the line with its number, and the mark below it."""
        gutter = f"{self.number:>4} | "
        mark = " " * self.begin + "^" * max(1, self.end - self.begin)
        return f"{gutter}{self.text}", f"{'':>4} | {mark}"


def excerpt_of(line: str, number: int, column: int) -> Excerpt:
    """Return the part of a line around ``column``, counted from 1, where a JSON token begins.

    What a terminal would not print as one column (control characters, wide ones) stands as ``?``: the text is not ours.
    """
    start, line = column - 1, line.rstrip("\r")
    token = _TOKEN.match(line, start, start + WIDTH)  # of what is longer no more is shown
    end = start + 1 if token is None else token.end()
    if len(line) <= WIDTH:
        return Excerpt(number, _shown(line), start, min(end, max(len(line), start + 1)))
    first = max(0, min(start - _BEFORE, len(line) - WIDTH))
    text = _shown(line[first : first + WIDTH])
    if first:
        text = _CUT + text[len(_CUT) :]
    if first + WIDTH < len(line):
        text = text[: -len(_CUT)] + _CUT
    return Excerpt(number, text, start - first, min(end - first, WIDTH))


def _shown(text: str) -> str:
    return "".join(" " if char == "\t" else char if _is_plain(char) else "?" for char in text)


def _is_plain(char: str) -> bool:
    return char.isprintable() and unicodedata.east_asian_width(char) not in "WF" and not unicodedata.combining(char)
