"""What notebooks show of a value: a heading, tables and small drawings as HTML (``_repr_html_``).

All text is escaped here and nowhere else.  The HTML has no script, no style sheet and no address, and no colour of its
own: it takes those of the page around it, light or dark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape

MOST_ROWS = 20
"""Rows of a table; what is beyond is counted in a last line, so that a cell of a notebook stays a page."""

_LEFT, _RIGHT = "text-align:left", "text-align:right"


def text(value: object) -> str:
    """Return a value as HTML text: escaped, and what nobody can see, or no encoding has, by its code point."""
    shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return escape(visible(shown))


def visible(shown: str) -> str:
    r"""Return a text with what nobody can see, a terminal would obey or no encoding has as its code point (``\u202e``).

    It is one line, printable, and can be encoded whatever was in it.
    """
    return shown if shown.isprintable() else "".join(char if char.isprintable() else _escape_of(char) for char in shown)


def _escape_of(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def page(kind: str, title: object, *parts: str) -> str:
    """Return the whole of what is shown: what it is, its name, and parts that are HTML already."""
    return f"<div><p><strong>{text(kind)}</strong> {text(title)}</p>{''.join(parts)}</div>"


def paragraph(value: object) -> str:
    """Return one line of text."""
    return f"<p>{text(value)}</p>"


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Return a table of names and values, without those that are ``None``."""
    cells = (
        f'<tr><th scope="row" style="{_LEFT}">{text(name)}</th><td style="{_LEFT}">{text(value)}</td></tr>'
        for name, value in rows
        if value is not None
    )
    return f"<table><tbody>{''.join(cells)}</tbody></table>"


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[object]], numbers: Collection[int] = ()) -> str:
    """Return a table with a caption, nothing where it has no rows; ``numbers``: the columns that stand to the right."""
    if not rows:
        return ""
    styles = [_RIGHT if column in numbers else _LEFT for column in range(len(heads))]
    head = "".join(
        f'<th scope="col" style="{style}">{text(name)}</th>' for name, style in zip(heads, styles, strict=True)
    )
    lines = [
        "".join(f'<td style="{style}">{text(cell)}</td>' for cell, style in zip(row, styles, strict=True))
        for row in rows[:MOST_ROWS]
    ]
    rest = len(rows) - MOST_ROWS
    if rest > 0:
        lines.append(f'<td colspan="{len(heads)}" style="{_LEFT}">and {text(rest)} more</td>')
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    label = f'<caption style="{_LEFT}">{text(caption)}</caption>'
    return f"<table>{label}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def time_text(time_us: float, uncertainty: float | None) -> str:
    """Return a simulated time in microseconds; ``uncertainty``: its share of the time, ``None`` where unknown."""
    share = "" if uncertainty is None else f" (± {100 * uncertainty:.0f} %)"
    return f"{time_us:,.3f} us{share}"
