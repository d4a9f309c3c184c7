"""How numbers of a report stand in its file: what is rounded, what is bounded, and which lists are lists of numbers."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, cast

from spyrec.compare.error_cells import MAX_CELLS
from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse
from spyrec.files.json_form import COUNT, INTEGER, Form, Shape

MAX_ENTRIES = 1_000_000
"""Longest list of a report or a record."""

WRONG_FORM = "SPY0850"
"""Code of a record, a report or a sidecar that is no such thing."""

_LONGEST_NAME = 4096

TEXT = Form(max_length=_LONGEST_NAME)
ENTRIES = Form(max_length=MAX_ENTRIES)
NUMBERS = Form(max_length=MAX_ENTRIES, each=COUNT)
INTEGERS = Form(max_length=MAX_ENTRIES, each=INTEGER)
NAMES = Form(max_length=MAX_ENTRIES, each=TEXT)
US = Form(at_least=0, is_finite=True, digits=6)
SHARE = Form(at_least=0, is_finite=True, digits=6)
FIGURE = Form(is_finite=True, digits=6)
CELLS = Form(at_least=0, at_most=MAX_CELLS)


def _finite_or_text(value: float) -> float | str:
    """Return a number of at most nine significant digits, or the name of one that JSON does not have."""
    return float(f"{value:.9g}") if abs(value) < float("inf") else str(value)


NUMBER = Form(shape=Shape(float | Literal["inf", "-inf", "nan"], float, _finite_or_text))
"""A number that need not be finite."""

Range = tuple[int, ...]
"""First and past: a half-open range."""

RANGES = Form(max_length=MAX_ENTRIES, each=Form(min_length=2, max_length=2, each=COUNT))
"""Ranges of cores, in their order."""


def ranges_of(numbers: tuple[int, ...] | list[int]) -> tuple[Range, ...]:
    """Return ascending numbers as ranges.

    >>> ranges_of([0, 1, 2, 5])
    ((0, 3), (5, 6))
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1][1] = number + 1
        else:
            found.append([number, number + 1])
    return tuple(map(tuple, found))


Several = tuple[tuple[int, ...], ...]
"""Per line, the numbers of what it comes from or is about."""


def _read_several(value: object) -> Several:
    if not isinstance(value, list) or len(lines := cast("list[object]", value)) > MAX_ENTRIES:
        raise refuse(WRONG_FORM, "a list is expected, with a number, a list of numbers or null for each line")
    return tuple(map(_read_one, lines))


def _read_one(value: object) -> tuple[int, ...]:
    if value is None:
        return ()
    found = cast("list[object]", value) if isinstance(value, list) else [value]
    numbers = [item for item in found if isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 1 << 63]
    if len(numbers) != len(found) or len(numbers) > MAX_ENTRIES:
        raise refuse(WRONG_FORM, "a line has what is no number, no list of numbers and not null")
    return tuple(numbers)


def _write_several(value: Several) -> list[object]:
    last = max((place for place, item in enumerate(value) if item), default=-1)
    return [None if not item else item[0] if len(item) == 1 else list(item) for item in value[: last + 1]]


SEVERAL = Form(shape=Shape(object, _read_several, _write_several, otherwise=()))


@dataclass(frozen=True, slots=True)
class Span:
    """An engine at work, or idle and waiting: its number, first and last microsecond, and the number of the wait."""

    engine: int
    first_us: float
    last_us: float
    wait: int | None = field(default=None)


_US_DIGITS = 6
_SPAN_LENGTH = 3


def _read_span(value: list[float]) -> Span:
    numbers = [value[0], *value[_SPAN_LENGTH:]]
    if any(number != int(number) for number in numbers) or value[2] < value[1]:
        raise refuse(WRONG_FORM, "a span is engine, first, last, and a wait: whole numbers outside, times in order")
    wait = int(value[_SPAN_LENGTH]) if len(value) > _SPAN_LENGTH else None
    return Span(int(value[0]), value[1], value[2], wait)


def _write_span(span: Span) -> list[float]:
    times = [round(span.first_us, _US_DIGITS), round(span.last_us, _US_DIGITS)]
    return [span.engine, *times, *([] if span.wait is None else [span.wait])]


_SPAN = Form(
    shape=Shape(
        tuple[float, ...],
        lambda value: _read_span(list(value)),
        _write_span,
        Form(min_length=_SPAN_LENGTH, max_length=_SPAN_LENGTH + 1, each=Form(at_least=0, is_finite=True)),
        otherwise=Span(0, 0.0, 0.0),
    )
)
SPANS = Form(max_length=MAX_ENTRIES, each=_SPAN)
