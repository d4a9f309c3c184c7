"""Compiled kernels are kept on disk until what they are made of changes."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest

from spyrec.kernel_cache import cached_kernel, source_modules

ROOT = Path(__file__).resolve().parent.parent.parent

MARKS = ("@kernel", "@cached_kernel", "@linked")
KERNEL_MODULES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "spyrec").rglob("*.py")
    if any(line.startswith(MARKS) for line in file.read_text(encoding="utf-8").splitlines())
)
NUMBERS_ALONE = (".dlfloat", ".target", ".dtypes", ".kernel_cache")
"""Modules that give kernels constants and no code."""


def functions_compiled(project: Path) -> set[str]:
    """Run one operation in a process of its own and return what numba compiled for it."""
    command = [sys.executable, "-m", "benchmarks.emulator_parts.first_run", "restickify"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(project / "cache"), "PYTHONPATH": str(project)}
    done = subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout)["compiled_s"])


def test_a_second_process_compiles_nothing_until_a_file_that_kernels_inline_has_changed(tmp_path: Path) -> None:
    copytree(ROOT / "spyrec", tmp_path / "spyrec", ignore=ignore_patterns("__pycache__"))
    for folder in ("benchmarks", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    assert functions_compiled(tmp_path)
    assert functions_compiled(tmp_path) == set()
    with (tmp_path / "spyrec" / "emulator" / "jit.py").open("a", encoding="utf-8") as file:
        file.write("# a word more\n")
    assert functions_compiled(tmp_path)


def imported_by(file: Path) -> set[str]:
    """Return the modules of the package that a file imports at its top."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    found = {node.module for node in body if isinstance(node, ast.ImportFrom) and node.module is not None}
    return {name for name in found if name.startswith("spyrec.")}


@pytest.mark.parametrize("name", KERNEL_MODULES)
def test_a_kernel_is_made_of_all_that_its_file_and_theirs_import(name: str) -> None:
    import_module(name)
    made_of = source_modules(name)
    assert name in made_of
    for other in made_of:
        file = import_module(other).__file__
        if file is not None and not other.endswith(NUMBERS_ALONE):
            assert imported_by(Path(file)) <= made_of, other


def test_a_kernel_works_where_nothing_can_be_kept() -> None:
    made: dict[str, Any] = {}
    exec(compile("def add(a, b):\n    return a + b\n", "/nowhere/at/all.py", "exec"), made)
    assert cached_kernel(made["add"])(1, 2) == 3
