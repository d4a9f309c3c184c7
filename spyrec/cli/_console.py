"""Where messages go: diagnostics as text or JSON lines on stderr, progress on a terminal only."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

import click

from spyrec.cli._fitted import columns_of, harmless
from spyrec.cli._sources import with_source
from spyrec.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from spyrec.cli._progress_bar import ProgressBar


class DiagnosticsFormat(Enum):
    """How messages are written to stderr."""

    TEXT = "text"
    JSON = "json"


_HEAD = re.compile(r"(error|warning)(\[\w+\])")
_GUTTER = re.compile(r"( *\d* \| )( *\^+$)?")
_COLOURS = {"error": "red", "warning": "yellow"}


class Console:
    """The one object that the group hands to its verbs (``click.pass_obj``)."""

    def __init__(self) -> None:
        self.diagnostics_format = DiagnosticsFormat.TEXT
        self.is_quiet = False
        """Whether warnings, notes and progress are left out."""
        self.is_verbose = False
        """Whether progress is shown as lines, with its seconds, where stderr is no terminal too."""
        self.object_format: str | None = None
        """What the verb's one JSON object on stdout says of itself in ``format``, where it was asked for one."""
        self._bar: ProgressBar | None = None
        self.reproducer: str | None = None
        """The file that makes the crash of a pass happen again, once there is one."""

    def refuse(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Write diagnostics to stderr, and to stdout the object of a verb that comes to nothing."""
        self.emit(diagnostics)
        if self.object_format is not None:
            found = [with_source(item).to_json() for item in diagnostics]
            click.echo(json.dumps({"format": self.object_format, "ok": False, "diagnostics": found}))

    def emit(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Write diagnostics to stderr in the chosen format."""
        for diagnostic in diagnostics:
            self._make_room()
            if self.is_quiet and diagnostic.severity is not Severity.ERROR:
                continue
            is_json = self.diagnostics_format is DiagnosticsFormat.JSON
            found = with_source(diagnostic)
            click.echo(json.dumps(found.to_json()) if is_json else _message(found), err=True)

    def note(self, message: str) -> None:
        """Write one line of information to stderr; as a JSON line where diagnostics are JSON."""
        if self.is_quiet:
            return
        self._make_room()
        is_json = self.diagnostics_format is DiagnosticsFormat.JSON
        click.echo(json.dumps({"severity": "note", "message": message}) if is_json else harmless(message), err=True)

    @contextmanager
    def progress(self, message: str) -> Generator[None]:
        """Show how far long work is while the block runs; silent where stderr is no terminal."""
        if self.is_verbose:
            begin = time.perf_counter()
            yield
            self.note(f"{message}: {time.perf_counter() - begin:.2f} s")
            return
        if self.is_quiet or self.diagnostics_format is DiagnosticsFormat.JSON or not sys.stderr.isatty():
            yield
            return
        from spyrec.cli._progress_bar import ProgressBar, is_wanted  # late: `spyrec --help` has no use for it

        if not is_wanted():
            yield
            return
        bar = self._bar = ProgressBar(harmless(message).replace("\n", "?"))
        try:
            with bar.shown():
                yield
        finally:
            self._bar = None

    def _make_room(self) -> None:
        """Take back the line of progress, where there is one: a message is written next."""
        if self._bar is not None:
            self._bar.erase()


def _message(diagnostic: Diagnostic) -> str:
    """Return a diagnostic with the line of the input that it is about; coloured on a terminal alone."""
    text = harmless(_on_one_line(diagnostic).render(with_excerpt=True))
    is_terminal = sys.stderr.isatty()
    columns = columns_of(is_terminal)
    if columns is None:
        return text
    lines = [line for whole in text.splitlines() for line in wrapped(whole, columns)]
    return "\n".join(map(_coloured, lines) if is_terminal else lines)


def _on_one_line(diagnostic: Diagnostic) -> Diagnostic:
    """Return a diagnostic whose file is named on one line, whatever somebody called it."""
    place = diagnostic.location
    if place is None or place.file is None or "\n" not in place.file:
        return diagnostic
    return replace(diagnostic, location=replace(place, file=place.file.replace("\n", "?")))


def wrapped(line: str, columns: int) -> list[str]:
    """Return a line in as many as the terminal takes, cut between words or, where one is longer, inside it.

    An excerpt is one of its own.
    """
    if len(line) <= columns or _GUTTER.match(line):
        return [line]
    return textwrap.wrap(line, max(columns, 20), subsequent_indent="     ", break_on_hyphens=False) or [line]


def _coloured(line: str) -> str:
    """Return a line of a message with its head, or the mark of an excerpt, in colour; as it is with ``NO_COLOR``."""
    if os.environ.get("NO_COLOR"):
        return line
    head = _HEAD.match(line)
    if head is not None:
        return click.style(head[0], fg=_COLOURS[head[1]], bold=True) + line[head.end() :]
    gutter = _GUTTER.match(line)
    if gutter is not None and gutter[2]:
        return click.style(gutter[1], fg="blue") + click.style(gutter[2], fg="red", bold=True)
    if gutter is not None:
        return click.style(gutter[1], fg="blue") + line[gutter.end() :]
    return line


def current_console() -> Console:
    """Return the console of the running command; a fresh one where a verb is called outside the group."""
    context = click.get_current_context(silent=True)
    found = context.find_object(Console) if context is not None else None
    return found if found is not None else Console()
