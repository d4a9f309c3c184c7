"""The console blocks of the READMEs and of some pages of docs/: read, execute, compare, rewrite.

A block is fenced as ``console``; a line that begins with ``$ `` is a command, which lines that begin with ``> `` go on
with, and the lines up to the next command are what it prints, stdout and stderr together.  All commands of one file run
in one shell, in a fresh directory that holds a copy of ``examples/`` and ``tests/fixtures/``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = (
    Path("README.md"),
    Path("docs/first_hour.md"),
    Path("docs/foreign_bundles.md"),
    Path("docs/coarse_tiling.md"),
    Path("docs/planning.md"),
    Path("docs/report_exports.md"),
    Path("docs/ir_text.md"),
    *sorted(path.relative_to(ROOT) for path in ROOT.glob("examples/*/README.md")),
)
PROMPT = "$ "
CONTINUED = "> "
SEPARATOR = "\x1e"
TIMEOUT_SECONDS = 300
BUG_CODE = "SPY9901"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Step:
    """One command and what it prints."""

    command: str
    output: str


def steps_of(text: str) -> list[Step]:
    """Return the steps of all console blocks of a Markdown text, in order."""
    steps: list[Step] = []
    for block in _BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            head, *lines = part.split("\n")
            more = list(takewhile(lambda line: line.startswith(CONTINUED), lines))
            command = "\n".join([head, *(line.removeprefix(CONTINUED) for line in more)])
            steps.append(Step(command, "\n".join(lines[len(more) :])))
    return steps


def execute(commands: list[str]) -> list[Step]:
    """Run the commands in one shell in a fresh directory; return what each printed."""
    mark = f"status=$?; printf '{SEPARATOR}'; (exit $status)"
    script = "\n".join(f"{command}\n{mark}" for command in commands)
    with tempfile.TemporaryDirectory() as directory:
        ignored = shutil.ignore_patterns("__pycache__", "golden")
        shutil.copytree(ROOT / "examples", Path(directory) / "examples", ignore=ignored)
        shutil.copytree(ROOT / "tests" / "fixtures", Path(directory) / "tests" / "fixtures")
        paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
        environment = os.environ | {"PATH": os.pathsep.join(paths), "COLUMNS": "400", "LC_ALL": "C.UTF-8"}
        printed = subprocess.run(
            ["/bin/bash", "-c", script],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        ).stdout
    outputs = printed.split(SEPARATOR)
    return [Step(command, output) for command, output in zip(commands, outputs, strict=False)]


def rewritten(text: str) -> str:
    """Return the Markdown text with every output replaced by what its command prints now."""
    steps = execute([step.command for step in steps_of(text)])
    for step in steps:
        assert BUG_CODE not in step.output, f"{step.command}\n{step.output}"  # a bug must not become expected output
    fresh = iter(steps)

    def block(match: re.Match[str]) -> str:
        shown = [next(fresh) for _ in steps_of(match.group(0))]
        lines = (step.command.replace("\n", f"\n{CONTINUED}") for step in shown)
        texts = (f"{PROMPT}{line}\n{step.output}" for line, step in zip(lines, shown, strict=True))
        return "```console\n" + "".join(texts) + "```"

    return _BLOCK.sub(block, text)


def main() -> int:
    """Rewrite the blocks of all READMEs in place."""
    for file in FILES:
        path = ROOT / file
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
