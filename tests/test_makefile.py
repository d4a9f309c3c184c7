"""The Makefile makes its environment whole, also where an earlier attempt died half way."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

INTERPRETER = """#!/bin/sh
# stands for a Python: makes environments, and is one where pip runs
echo "$@ [$PYTHONDONTWRITEBYTECODE]" >> "{log}"
case "$*" in
  *"-m venv"*) mkdir -p .venv/bin; cp "{good}" .venv/bin/python ;;
  *"-m pip"*) exit {pip} ;;
esac
"""


def write_interpreter(path: Path, log: Path, good: Path, *, has_pip: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(INTERPRETER.format(log=log, good=good, pip=0 if has_pip else 1))
    path.chmod(0o755)


def make(target: str, state: str, directory: Path, **more: str) -> list[str]:
    """Make a target where only a stand-in for Python is; return the calls of it, each with whether it keeps bytecode.

    ``state``: of the environment before.
    """
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, directory / name)
    log, good = directory / "log", directory / "python"
    write_interpreter(good, log, good, has_pip=True)
    if state != "absent":
        write_interpreter(directory / ".venv" / "bin" / "python", log, good, has_pip=state == "whole")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", f"PYTHON={good}", target]
    done = subprocess.run(command, cwd=directory, env=environment | more, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return log.read_text().splitlines()


@pytest.mark.parametrize(("state", "is_made"), [("absent", True), ("broken", True), ("whole", False)])
def test_only_an_environment_with_a_working_pip_is_kept(state: str, is_made: bool, tmp_path: Path) -> None:
    calls = make(".venv/installed", state, tmp_path)
    assert any("-m venv" in call for call in calls) == is_made
    assert any("-m pip install" in call for call in calls)
    assert (tmp_path / ".venv" / "installed").exists()


@pytest.mark.parametrize("more", [{}, {"PYTHONDONTWRITEBYTECODE": "1"}])
def test_the_suite_keeps_bytecode_whatever_the_shell_says(more: dict[str, str], tmp_path: Path) -> None:
    """Each process would compile the package anew, which takes longer than what most of them do."""
    (suite,) = [call for call in make("test", "whole", tmp_path, **more) if "-m pytest" in call]
    assert suite.endswith(" []")
