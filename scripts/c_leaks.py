"""``c_leaks.py [ROUNDS]``: programs in C that use all of the execution contract, under valgrind.

``lifetime.c`` makes and destroys everything, twice: in ROUNDS rounds and in three times as many.  ``decode.c`` loads a
bundle, captures its launches and replays them; it runs once without valgrind before, so that what its loops are
compiled to is there (for a processor that valgrind knows).

Python, its loader and its packages lose a few blocks when they start, once; what counts is what is lost in the
library's own code, and whether more rounds lose more.  Takes about three minutes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import spyrec
from spyrec.exec.cabi.build import CLibrary, build

SOURCES = Path(__file__).resolve().parent.parent / "tests" / "exec" / "c"
LIBRARY = "flashrt_exec"
_INNERMOST = 4
"""Frames of an allocation in which the library would stand if it were its own."""
_PROCESSOR = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


def compiled(name: str, library: CLibrary, folder: Path, *flags: str) -> Path:
    """Return one of the C programs, compiled."""
    program = folder / "_".join([name, *flags]).replace("-", "")
    command = ["cc", "-g", "-std=c11", *flags, str(SOURCES / f"{name}.c"), "-o", str(program), *library.flags]
    subprocess.run(command, check=True)
    return program


def checked(program: Path, arguments: Sequence[Path] = ()) -> str:
    """Return valgrind's report, of a second run."""
    folder = program.parent
    checker = ["valgrind", "--leak-check=full", "--show-leak-kinds=definite", "--num-callers=60"]
    environment = {"PYTHONMALLOC": "malloc", "NUMBA_CACHE_DIR": str(folder), "PATH": "/usr/bin:/bin", **_PROCESSOR}
    command = [str(program), *map(str, arguments)]
    subprocess.run(command, capture_output=True, check=True, env=environment, cwd=folder)
    run = [*checker, *command]
    return subprocess.run(run, capture_output=True, text=True, check=True, env=environment, cwd=folder).stderr


def own_leaks(report: str) -> list[str]:
    """Return the records of blocks that the library itself lost."""
    found: list[str] = []
    for record in re.split(r"\n==\d+== \n", report):
        frames = re.findall(r"(?:at|by) 0x[0-9A-F]+: (.*)", record)
        if "definitely lost in loss record" in record and any(LIBRARY in item for item in frames[:_INNERMOST]):
            found.append(record)
    return found


def lost(report: str) -> str:
    """Return valgrind's sum of what is definitely lost."""
    return re.findall(r"definitely lost: (.*)", report)[-1]


def launched_bundle(folder: Path) -> Path:
    """Return a saved bundle that adds two rows."""
    builder = spyrec.GraphBuilder("add")
    x, y = (builder.input(name, (1, 64), "float16") for name in "xy")
    builder.output(x + y)
    spyrec.compile(builder, spyrec.CompileOptions(cores=1)).save(folder / "add")
    return folder / "add"


def main() -> int:
    """Print what was lost; 1 where any of it is the library's, or more rounds lose more."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library, bundle = build(folder), launched_bundle(folder)
        reports = {
            f"lifetime, {count} rounds": checked(compiled("lifetime", library, folder, f"-DROUNDS={count}"))
            for count in (rounds, 3 * rounds)
        }
        few, many = map(lost, reports.values())
        reports["decode"] = checked(compiled("decode", library, folder), (bundle, bundle))
    leaks = {program: own_leaks(report) for program, report in reports.items()}
    for program, report in reports.items():
        print(f"{program}: definitely lost {lost(report)}; {len(leaks[program])} records are the library's own")
        print("\n".join(leaks[program]), end="")
    if few != many:
        print(f"more rounds lose more: {few}, {many}")
    return 1 if any(leaks.values()) or few != many else 0


if __name__ == "__main__":
    sys.exit(main())
