"""What becomes of an exception: message, exit code, and a report where the fault is ours."""

from __future__ import annotations

import errno
import os
import platform
import shlex
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import TextIO

import click

from spyrec import __version__
from spyrec.cli._console import Console, DiagnosticsFormat
from spyrec.cli._fitted import columns_of, fitted
from spyrec.diagnostics import Diagnostic, Location, SpyrecError

EXIT_REFUSED = 1
EXIT_INTERNAL = 70
"""``EX_SOFTWARE`` of sysexits.h."""
EXIT_INTERRUPTED = 130
"""What a shell reports for SIGINT."""
EXIT_BROKEN_PIPE = 141
"""What a shell reports for SIGPIPE, which ends other tools whose reader has gone."""

_KERNEL_NOTICE = "compiled kernels"

_FAULTS_OF_THE_MACHINE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE}
)
"""Errors of the operating system that no check beforehand can rule out; any other ``OSError`` here is a bug."""


class ReaderGoneError(Exception):
    """A broken pipe by another name: click answers to its own one, and with the exit code of a refusal."""


@contextmanager
def broken_pipes_renamed() -> Generator[None]:
    """Raise :class:`ReaderGoneError` where a pipe is broken inside."""
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGoneError from error


def exit_code_of_failure(action: Callable[[], int], console: Console, arguments: Sequence[str]) -> int:
    """Run ``action`` and turn whatever it raises into a message on stderr and an exit code."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", _KERNEL_NOTICE)  # it is shown below, as messages are
            code = _exit_code(action, console, arguments)
        console.emit(_notices())
        return _settled(code)
    except BrokenPipeError:  # of the messages themselves
        return _settled(EXIT_BROKEN_PIPE)


def _notices() -> list[Diagnostic]:
    """Return what the user should know of where kernels are kept, if a verb has used any."""
    kernels = sys.modules.get("spyrec.files.kernel_cache")
    found = None if kernels is None else kernels.notice()
    return [] if found is None else [found]


def _exit_code(action: Callable[[], int], console: Console, arguments: Sequence[str]) -> int:
    try:
        return action()
    except SpyrecError as error:
        console.refuse(error.diagnostics)
        return EXIT_REFUSED
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        console.note("interrupted")
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        _show_usage(error, console, arguments)
        return error.exit_code
    except (BrokenPipeError, ReaderGoneError):
        return EXIT_BROKEN_PIPE
    except MemoryError as error:
        console.refuse([_out_of_memory(error)])
        return EXIT_REFUSED
    except SystemExit as error:
        return _exit_status(error)
    except Exception as error:  # noqa: BLE001 -- the last line of defence: everything left is reported as a bug
        return _report(error, console, arguments)


def _show_usage(error: click.ClickException, console: Console, arguments: Sequence[str]) -> None:
    """Show what is wrong with a command line; an option may be read in vain before that of the format is."""
    if _asks_for_json(arguments):
        console.diagnostics_format = DiagnosticsFormat.JSON
    if console.diagnostics_format is DiagnosticsFormat.TEXT:
        shown = StringIO()
        error.show(shown)
        click.echo("\n".join(fitted(shown.getvalue().rstrip("\n"), columns_of(sys.stderr.isatty()))), err=True)
    else:
        message = error.format_message().rstrip(".")
        console.emit(
            [Diagnostic("SPY0799", message[:1].lower() + message[1:], hint="the verb's --help lists its options")]
        )


def _asks_for_json(arguments: Sequence[str]) -> bool:
    said = f"--diagnostics={DiagnosticsFormat.JSON.value}"
    return any(said in {item, f"{item}={after}"} for item, after in zip(arguments, [*arguments[1:], ""], strict=True))


def _exit_status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    return error.code if isinstance(error.code, int) else EXIT_REFUSED


def _settled(code: int) -> int:
    """Flush both streams; one that cannot be flushed leads nowhere from here on.

    The interpreter would flush it once more at its end, fail, and exit with a code of its own.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _lead_nowhere(stream)
    return code


def _lead_nowhere(stream: TextIO) -> None:
    with suppress(OSError, ValueError):  # a stream without a file descriptor needs none of this
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def open_closed_streams() -> None:
    """Lead what of stdin, stdout and stderr is closed to the null device.

    Else a file that is opened would take its descriptor, and what is printed would go into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
        if getattr(sys, name) is None:  # so Python says that it found the descriptor closed
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


def _out_of_memory(error: MemoryError) -> Diagnostic:
    return Diagnostic(
        "SPY0798",
        "this machine has not enough memory for the work",
        notes=(str(error),) if str(error) else (),
        hint="close other programs, or run a smaller graph",
    )


def _report(error: Exception, console: Console, arguments: Sequence[str]) -> int:
    if isinstance(error, OSError) and error.errno in _FAULTS_OF_THE_MACHINE:
        place = Location(os.fspath(error.filename)) if isinstance(error.filename, str) else None
        console.refuse([Diagnostic("SPY0797", f"the operating system refused: {error.strerror}", place)])
        return EXIT_REFUSED
    path = write_bug_report(error, arguments)
    notes = ["this is a bug in spyrec, not in your input", f"a report was written to {path}"]
    if console.reproducer is not None:
        notes.append(f"`spyrec opt {shlex.quote(console.reproducer)}` does it again")
    console.refuse(
        [
            Diagnostic(
                "SPY9901",
                f"internal error: {type(error).__name__}: {error}",
                notes=tuple(notes),
                hint="please file the report together with the input",
            )
        ]
    )
    return EXIT_INTERNAL


def write_bug_report(error: Exception, arguments: Sequence[str]) -> str:
    """Write command line, versions and traceback to a new text file of the temporary directory; return its path."""
    handle, path = tempfile.mkstemp(prefix="spyrec-bug-", suffix=".txt")
    lines = [
        f"command: {shlex.join(['spyrec', *arguments])}",
        f"directory: {Path.cwd()}",
        f"spyrec {__version__}, Python {platform.python_version()}, {platform.platform()}",
        "",
        *traceback.format_exception(error),
    ]
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return path
