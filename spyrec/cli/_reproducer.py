"""Writes what makes the crash of a pass happen again, beside the output or where ``--crash-dir`` says."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from spyrec import __version__
from spyrec.cli._console import current_console

if TYPE_CHECKING:
    from spyrec.passes.driver import PassCrash

_SUFFIX = ".reproducer.txt"


def crash_writer(output: Path | None, crash_dir: Path | None, stem: str) -> Callable[[PassCrash], None]:
    """Return what writes a reproducer; the console knows its path from then on.

    It lies in ``crash_dir``, or beside ``output``; where neither can be written, among the temporary files.  A file
    that is there is replaced where it is a reproducer.
    """
    console = current_console()

    def write(crash: PassCrash) -> None:
        from spyrec.passes.reproducer import reproducer_text

        text = reproducer_text(crash, ["spyrec", *sys.argv[1:]], __version__)
        folders = [crash_dir, None if output is None else output.absolute().parent, Path(tempfile.gettempdir())]
        for folder in folders:
            path = None if folder is None else _written(folder / f"{stem}{_SUFFIX}", text)
            if path is not None:
                console.reproducer = str(path)
                return
        handle, name = tempfile.mkstemp(prefix=f"{stem}-", suffix=_SUFFIX)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        console.reproducer = name

    return write


def _written(path: Path, text: str) -> Path | None:
    """Write a reproducer whole, or return ``None``: the crash is told in either case."""
    from spyrec.diagnostics import SpyrecError
    from spyrec.files.whole_file import FileKind, write_file

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, FileKind("reproducer", "SPY0766", _is_ours), text.encode())
    except (SpyrecError, OSError):
        return None
    return path


def _is_ours(file: IO[bytes]) -> bool:
    from spyrec.passes.reproducer import MARK

    return file.read(len(MARK)) == MARK.encode()
