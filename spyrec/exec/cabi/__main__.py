"""``python -m spyrec.exec.cabi build [FOLDER]``: build the shared library, and print the flags to use it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from spyrec.diagnostics import SpyrecError
from spyrec.exec.cabi.build import build

_DEFAULT = Path("build") / "cabi"


def main(arguments: Sequence[str]) -> int:
    """Return 0, 1 where it could not be built, 2 for other arguments."""
    if len(arguments) not in {1, 2} or arguments[0] != "build":
        sys.stderr.write("usage: python -m spyrec.exec.cabi build [FOLDER]\n")
        return 2
    folder = Path(arguments[1]) if len(arguments) == 2 else _DEFAULT
    try:
        library = build(folder.resolve())
    except SpyrecError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{library.path}\n{' '.join(library.flags)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
