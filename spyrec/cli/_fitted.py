"""Text in as many columns as there are: the terminal's, or what ``COLUMNS`` says; in a pipe a line is as long as it is.

What other programs read is never cut: JSON, the text of the IR, schemas, completions.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence

import click

LEAST_COLUMNS = 60
"""Narrower than this nothing is fitted to: it would be nothing but pieces of words."""

_GAP = "  "
_SECOND_COLUMN = re.compile(r"( *)\S.*?(?: {2,})(?=\S)")


def columns_of(stream_is_terminal: bool) -> int | None:
    """Return the columns that lines are fitted to; ``None`` where nobody says how many there are."""
    given = os.environ.get("COLUMNS", "")
    if not stream_is_terminal and not (given.isdecimal() and int(given)):
        return None
    return max(shutil.get_terminal_size().columns, LEAST_COLUMNS)


def columns() -> int | None:
    """Return the columns of stdout; ``None`` where nobody says how many there are."""
    return columns_of(sys.stdout.isatty())


_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys: control characters but tabs and line ends, and marks that turn the order of what follows."""


def harmless(text: str) -> str:
    """Return a text with ``?`` in place of what a terminal would obey: names in it come from somebody's files."""
    return _OBEYED.sub("?", text)


def say(text: str) -> None:
    """Print lines for people, each in as many as it takes."""
    click.echo("\n".join(fitted(text, columns())))


def fitted(text: str, width: int | None) -> Iterator[str]:
    """Yield the lines of a text; of one that is too long the rest stands below, farther to the right.

    It is cut between words alone, so that a name longer than ``width`` stays whole.  In a line of a list (a name, two
    spaces or more, words) the rest stands below the words.  What a terminal would obey stands as ``?``.
    """
    lines = harmless(text).split("\n")
    if width is None:
        yield from lines
        return
    for line in lines:
        if len(line) <= width:
            yield line
            continue
        begin = len(line) - len(line.lstrip())
        second = _SECOND_COLUMN.match(line)
        hanging = second.end() if second is not None and second.end() <= width // 2 else begin + 4
        if max(map(len, line.split())) > width - hanging:
            hanging = begin + 2  # a long name has the most room there is
        yield from textwrap.wrap(
            line.strip(), width, initial_indent=" " * begin, subsequent_indent=" " * hanging,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip


def table_lines(rows: Sequence[Sequence[str]], right: Collection[int] = (), indent: str = "") -> list[str]:
    """Return rows of cells as lines with columns one below the other; ``right``: the columns of numbers.

    A table that is too wide for stdout is folded: its first column and as many others as there is room for, then the
    first again and the next ones, an empty line between; a cell that is wider by itself is as many lines.
    """
    width = columns()
    room = None if width is None else width - len(indent)
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for group, limits in _groups(widths, room):
        if lines:
            lines.append("")
        for row in rows:
            cells = [_cell(row[number], limit) for number, limit in zip(group, limits, strict=True)]
            for place in range(max(map(len, cells))):
                parts = [cell[place] if place < len(cell) else "" for cell in cells]
                padded = (
                    part.rjust(limit) if number in right else part.ljust(limit)
                    for number, part, limit in zip(group, parts, limits, strict=True)
                )
                lines.append((indent + _GAP.join(padded)).rstrip())
    return lines


def _cell(text: str, limit: int) -> list[str]:
    """Return a cell in lines of at most ``limit`` columns."""
    return [text] if len(text) <= limit else textwrap.wrap(text, limit, break_on_hyphens=False)


def _groups(widths: Sequence[int], room: int | None) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the numbers of the columns that stand beside each other, and how wide each is."""
    if room is None or sum(widths) + len(_GAP) * (len(widths) - 1) <= room:
        yield list(range(len(widths))), list(widths)
        return
    first = min(widths[0], room // 2)
    most = room - first - len(_GAP)
    group, limits = [0], [first]
    for number, wanted in enumerate(widths[1:], 1):
        limit = min(wanted, most)
        if len(group) > 1 and sum(limits) + len(_GAP) * len(limits) + limit > room:
            yield group, limits
            group, limits = [0], [first]
        group.append(number)
        limits.append(limit)
    yield group, limits
