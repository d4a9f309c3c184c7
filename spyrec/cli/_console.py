"""Where messages go: diagnostics as text or JSON lines on stderr, progress on a terminal only."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from enum import Enum

import click

from spyrec.diagnostics import Diagnostic


class DiagnosticsFormat(Enum):
    """How messages are written to stderr."""

    TEXT = "text"
    JSON = "json"


class Console:
    """The one object that the group hands to its verbs (``click.pass_obj``)."""

    def __init__(self) -> None:
        self.diagnostics_format = DiagnosticsFormat.TEXT
        self.object_format: str | None = None
        """What the verb's one JSON object on stdout says of itself in ``format``, where it was asked for one."""
        self.reproducer: str | None = None
        """The file that makes the crash of a pass happen again, once there is one."""

    def refuse(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Write diagnostics to stderr, and to stdout the object of a verb that comes to nothing."""
        self.emit(diagnostics)
        if self.object_format is not None:
            found = [item.to_json() for item in diagnostics]
            click.echo(json.dumps({"format": self.object_format, "ok": False, "diagnostics": found}))

    def emit(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Write diagnostics to stderr in the chosen format."""
        for diagnostic in diagnostics:
            is_json = self.diagnostics_format is DiagnosticsFormat.JSON
            text = json.dumps(diagnostic.to_json()) if is_json else diagnostic.render()
            click.echo(text, err=True)

    def note(self, message: str) -> None:
        """Write one line of information to stderr; as a JSON line where diagnostics are JSON."""
        is_json = self.diagnostics_format is DiagnosticsFormat.JSON
        click.echo(json.dumps({"severity": "note", "message": message}) if is_json else message, err=True)

    @contextmanager
    def progress(self, message: str) -> Generator[None]:
        """Show that long work is under way while the block runs; silent where stderr is no terminal."""
        if self.diagnostics_format is DiagnosticsFormat.JSON or not sys.stderr.isatty():
            yield
            return
        # Imported late: rich costs more than all of `spyrec --help`.
        from rich.console import Console as RichConsole

        with RichConsole(stderr=True).status(message):
            yield


def current_console() -> Console:
    """Return the console of the running command; a fresh one where a verb is called outside the group."""
    context = click.get_current_context(silent=True)
    found = context.find_object(Console) if context is not None else None
    return found if found is not None else Console()
