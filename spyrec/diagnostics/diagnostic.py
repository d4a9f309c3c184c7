"""Diagnostics: what is wrong, where, with which values, and what to do about it.

A :class:`SpyrecError` is raised for the user's mistakes only; it carries every
:class:`Diagnostic` that was collected.  Our own mistakes are assertions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import field, replace
from enum import Enum
from typing import TypeVar

from spyrec.dataclass import dataclass
from spyrec.diagnostics.codes import CODES
from spyrec.diagnostics.excerpt import Excerpt, excerpt_of
from spyrec.diagnostics.source_text import SourceText

Item = TypeVar("Item")

_NAMED_RULE = re.compile(r"\(rule (V\d+)\)$")


_LONGEST_POINTER = 160
"""Characters of a JSON pointer that are shown: every one into a file of ours is shorter."""


class Severity(Enum):
    """How much a diagnostic weighs: an error refuses the input, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class ModelPlace:
    """Where in a model something comes from: its module's path, a source file and line there, and the operation."""

    module: str
    file: str | None = None
    line: int | None = None
    op: str | None = None

    def __str__(self) -> str:
        line = "" if self.file is None else f"{self.file}:{self.line}"
        return ", ".join(part for part in (self.module, line, self.op) if part)


@dataclass(frozen=True, slots=True)
class Location:
    """A place in an input: a file and a JSON pointer (RFC 6901) or a line and column.

    ``source`` is the text the pointer is resolved against when the location is printed.  ``is_key``: the key is meant,
    not the value that the pointer names.  ``model``: where the place
    comes from in the model that the input was made of, where that is known.
    """

    file: str | None = None
    pointer: str | None = None
    line: int | None = None
    column: int | None = None
    source: SourceText | None = field(default=None, compare=False, repr=False)
    model: ModelPlace | None = field(default=None, compare=False)
    is_key: bool = field(default=False, compare=False)

    def child(self, *tokens: str | int) -> Location:
        """Return the location of a member below this one, named by pointer tokens."""
        escaped = [str(token).replace("~", "~0").replace("/", "~1") for token in tokens]
        pointer = "".join(f"/{token}" for token in escaped)
        return Location(self.file, (self.pointer or "") + pointer, source=self.source, model=self.model)

    def key(self, token: str) -> Location:
        """Return the location of a key below this one, where the key itself is what is wrong."""
        return replace(self.child(token), is_key=True)

    def resolved(self) -> Location:
        """Return the same location with line and column filled in where the source text is known."""
        if self.line is not None or self.source is None or self.pointer is None:
            return self
        line, column = self.source.position(self.pointer, of_key=self.is_key)
        return Location(self.file, self.pointer, line, column, model=self.model)

    def excerpt(self) -> Excerpt | None:
        """Return the line of the source text that the location is in, ``None`` where the text is not at hand."""
        if self.source is None:
            return None
        if self.line is not None and self.column is not None:
            line, column = self.line, self.column
        elif self.pointer is not None:
            line, column = self.source.position(self.pointer, of_key=self.is_key)
        else:
            return None
        return excerpt_of(self.source.line_at(line), line, column)

    def __str__(self) -> str:
        place = self.resolved()
        text = place.file or "<input>"
        if place.line is not None:
            text += f":{place.line}:{place.column}"
        text = f"{text}  {_shortened(place.pointer)}" if place.pointer else text
        return text if place.model is None else f"{text}  ({place.model})"


def _shortened(pointer: str) -> str:
    """Return a pointer as it is shown: of a very long one, both ends."""
    if len(pointer) <= _LONGEST_POINTER:
        return pointer
    return f"{pointer[: _LONGEST_POINTER // 2]}...{pointer[-_LONGEST_POINTER // 4 :]}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fact about an input: code (see ``spyrec.diagnostics.codes``), message with the values, place, notes, hint.

    ``count``: of how many facts of its kind it tells, where there are too many to list.
    """

    code: str
    message: str
    location: Location | None = None
    notes: tuple[str, ...] = ()
    hint: str | None = None
    severity: Severity = Severity.ERROR
    count: int = field(default=1, kw_only=True)

    @property
    def advice(self) -> str | None:
        """The hint, or else what its code advises in general."""
        if self.hint is not None or self.code not in CODES:
            return self.hint
        return CODES[self.code].hint

    @property
    def rule(self) -> str | None:
        """The rule of the executor (V1 to V14) that is broken: its code's own, or the one the message ends with."""
        if self.code in CODES and CODES[self.code].rule is not None:
            return CODES[self.code].rule
        named = _NAMED_RULE.search(self.message)
        return named[1] if named is not None else None

    @property
    def facts(self) -> tuple[str, ...]:
        """The notes, and last the rule where one is broken."""
        return self.notes if self.rule is None else (*self.notes, f"rule {self.rule}")

    def render(self, *, with_excerpt: bool = False) -> str:
        """Return the text form: ``error[SPY0213]: ...`` with place, notes and hint on lines of their own.

        ``with_excerpt``: the line of the input, too, marked below, where its text is at hand.
        """
        lines = [f"{self.severity.value}[{self.code}]: {self.message}"]
        if self.location is not None:
            lines.append(f"  --> {self.location}")
            excerpt = self.location.excerpt() if with_excerpt else None
            lines.extend(() if excerpt is None else excerpt.lines())
        lines.extend(f"   = note: {note}" for note in self.facts)
        if self.advice is not None:
            lines.append(f"   = hint: {self.advice}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the same facts as a JSON object (the lines of ``--diagnostics=json``)."""
        place = self.location.resolved() if self.location is not None else None
        return {
            "severity": self.severity.value,
            "code": self.code,
            "message": self.message,
            "location": None
            if place is None
            else {"file": place.file, "pointer": place.pointer, "line": place.line, "column": place.column},
            "notes": list(self.facts),
            "hint": self.advice,
        }


MOST_LISTED = 100
"""Diagnostics of one code that are listed; a further one says how many more there are."""


def capped(items: Iterable[Item], kind_of: Callable[[Item], Hashable]) -> list[tuple[Item, int]]:
    """Return items in order, at most ``MOST_LISTED`` of each kind and one more, with how many that one stands for.

    Of the others that is 1.  Nobody reads a hundred thousand lines about one mistake, and each takes time to be placed
    and printed.
    """
    kept: list[tuple[Item, Hashable]] = []
    counts: Counter[Hashable] = Counter()
    for item in items:
        kind = kind_of(item)
        counts[kind] += 1
        if counts[kind] <= MOST_LISTED + 1:
            kept.append((item, kind))
    seen: Counter[Hashable] = Counter()
    result: list[tuple[Item, int]] = []
    for item, kind in kept:
        seen[kind] += 1
        result.append((item, counts[kind] - MOST_LISTED if seen[kind] > MOST_LISTED else 1))
    return result


def standing_for(diagnostic: Diagnostic, count: int) -> Diagnostic:
    """Return a diagnostic that stands for so many of its kind: itself, or one that tells their number."""
    if count == 1:
        return diagnostic
    message = f"{count} more of this kind, the first of them here"
    return replace(diagnostic, message=message, notes=(), count=count)


def listed(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return as many of each code as are listed; the last one says how many more there are."""
    kept: list[Diagnostic] = []
    room: Counter[tuple[str, Severity]] = Counter()
    last: dict[tuple[str, Severity], int] = {}
    for item in diagnostics:
        kind = (item.code, item.severity)
        if item.count == 1 and room[kind] < MOST_LISTED:
            room[kind] += 1
            kept.append(item)
        elif kind not in last:
            last[kind] = len(kept)
            kept.append(item)
        else:
            first = kept[last[kind]]
            kept[last[kind]] = standing_for(first, first.count + item.count)
    return kept


class SpyrecError(Exception):
    """The input was refused: ``diagnostics`` says why, one record per problem, as many as are ``listed``."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics: list[Diagnostic] = listed(diagnostics)
        super().__init__("\n".join(diagnostic.render() for diagnostic in self.diagnostics))


def refuse(
    code: str,
    message: str,
    location: Location | None = None,
    *,
    notes: tuple[str, ...] = (),
    hint: str | None = None,
) -> SpyrecError:
    """Return a :class:`SpyrecError` of one diagnostic, to be raised by the caller."""
    return SpyrecError([Diagnostic(code, message, location, notes, hint)])


def answered(found: Item | Diagnostic) -> Item:
    """Return an answer, or raise the reason that stands in its place: who asks has no other way left."""
    if isinstance(found, Diagnostic):
        raise SpyrecError([found])
    return found


@contextmanager
def located(place: Location, notes: tuple[str, ...] = ()) -> Generator[None]:
    """Give what is refused inside, and has no place of its own, this place; ``notes`` go with it."""
    try:
        yield
    except SpyrecError as error:
        raise SpyrecError([_placed(item, place, notes) for item in error.diagnostics]) from error


def _placed(item: Diagnostic, place: Location, notes: tuple[str, ...]) -> Diagnostic:
    return item if item.location is not None else replace(item, location=place, notes=(*item.notes, *notes))


@contextmanager
def files_below(directory: str) -> Generator[None]:
    """Put ``directory`` (with a closing slash, or empty) before the file names in what is refused inside."""
    try:
        yield
    except SpyrecError as error:
        raise SpyrecError([_below(item, directory) for item in error.diagnostics]) from error


def _below(item: Diagnostic, directory: str) -> Diagnostic:
    if item.location is None or item.location.file is None:
        return item
    return replace(item, location=replace(item.location, file=directory + item.location.file))


class DiagnosticSink:
    """Collects diagnostics; ``raise_if_errors`` ends the collecting of a stage.

    ``refused``: codes of which warnings, too, are kept as errors.
    """

    def __init__(self, refused: AbstractSet[str] = frozenset()) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._refused = refused

    def add(self, diagnostic: Diagnostic) -> None:
        """Keep one diagnostic."""
        if diagnostic.code in self._refused:
            diagnostic = replace(diagnostic, severity=Severity.ERROR)
        self.diagnostics.append(diagnostic)

    def error(
        self,
        code: str,
        message: str,
        location: Location | None = None,
        *,
        notes: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        """Keep one error."""
        self.add(Diagnostic(code, message, location, notes, hint))

    def warning(
        self,
        code: str,
        message: str,
        location: Location | None = None,
        *,
        notes: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        """Keep one warning."""
        self.add(Diagnostic(code, message, location, notes, hint, Severity.WARNING))

    @property
    def errors(self) -> list[Diagnostic]:
        """The diagnostics that refuse the input."""
        return [item for item in self.diagnostics if item.severity is Severity.ERROR]

    def raise_if_errors(self) -> None:
        """Raise :class:`SpyrecError` with everything collected if any of it is an error."""
        if self.errors:
            raise SpyrecError(self.diagnostics)
