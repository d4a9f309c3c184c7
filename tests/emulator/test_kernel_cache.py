"""Compiled kernels are kept on disk until what they are made of changes."""

from __future__ import annotations

import ast
import json
import os
import stat
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest

from spyrec.files.kernel_cache import cached_kernel, source_modules
from spyrec.files.private_directory import PrivateDirectory, private_directory

ROOT = Path(__file__).resolve().parent.parent.parent

MARKS = ("@kernel", "@cached_kernel", "@linked")
KERNEL_MODULES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "spyrec").rglob("*.py")
    if any(line.startswith(MARKS) for line in file.read_text(encoding="utf-8").splitlines())
)


def functions_compiled(project: Path, cache: Path, operation: str = "restickify") -> set[str]:
    """Run one operation in a process of its own and return what numba compiled for it."""
    command = [sys.executable, "-m", "benchmarks.emulator_parts.first_run", operation]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(project)}
    done = subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout)["compiled_s"])


def test_a_second_process_compiles_nothing_until_a_file_that_kernels_inline_has_changed(tmp_path: Path) -> None:
    copytree(ROOT / "spyrec", tmp_path / "spyrec", ignore=ignore_patterns("__pycache__"))
    for folder in ("benchmarks", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    assert functions_compiled(tmp_path, tmp_path / "cache")
    assert functions_compiled(tmp_path, tmp_path / "cache") == set()
    with (tmp_path / "spyrec" / "emulator" / "kernels" / "jit.py").open("a", encoding="utf-8") as file:
        file.write("# a word more\n")
    assert functions_compiled(tmp_path, tmp_path / "cache")


@pytest.mark.parametrize(("operation", "most"), [("add", 2), ("sum", 6), ("matmul", 7)])
def test_a_first_run_compiles_few_functions_and_none_of_numbas_own(operation: str, most: int, tmp_path: Path) -> None:
    # Each takes 30 to 500 ms; "impl" is how numba names its own, as those that make an array.
    compiled = functions_compiled(ROOT, tmp_path, operation)
    assert "impl" not in compiled
    assert len(compiled) <= most, compiled


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
        if file is not None and other != cached_kernel.__module__:  # it gives kernels nothing of its own
            assert imported_by(Path(file)) <= made_of, other


def test_a_kernel_works_where_nothing_can_be_kept() -> None:
    made: dict[str, Any] = {}
    exec(compile("def add(a, b):\n    return a + b\n", "/nowhere/at/all.py", "exec"), made)
    assert cached_kernel(made["add"])(1, 2) == 3


def compiled_elsewhere(folder: Path, **environment: str) -> tuple[int, str]:
    """Run a kernel where numba has no place for it; return how much was compiled, and what was said."""
    source = folder / "program.py"
    if not source.exists():  # what is compiled is of one moment of its file
        source.write_text(
            "import sys, numba.core.event as event\n"
            "from spyrec.cli import _console, _failures\n"
            "from spyrec.files.kernel_cache import cached_kernel\n"
            "def work():\n"
            "    def add(a, b):\n        return a + b\n"
            "    with event.install_recorder('numba:compile') as recorder:\n"
            "        assert cached_kernel(add)(1, 2) == 3\n"
            "    print(len(recorder.buffer))\n"
            "    return 0\n"
            "sys.exit(_failures.exit_code_of_failure(work, _console.Console(), []))\n"
        )
    given = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator", "PYTHONPATH": str(ROOT), **environment}
    settings = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | given
    done = subprocess.run([sys.executable, source], env=settings, check=True, capture_output=True, text=True)
    return int(done.stdout), done.stderr


def test_kernels_without_a_place_are_kept_in_a_private_one_which_is_said_once(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    compiled, said = compiled_elsewhere(tmp_path, TMPDIR=str(temporary))
    (kept,) = temporary.iterdir()
    assert compiled > 0
    assert (said.count("SPY0754"), said.count(str(kept))) == (1, 1)
    assert "RuntimeWarning" not in said
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert compiled_elsewhere(tmp_path, TMPDIR=str(temporary)) == (0, "")
    assert list(temporary.iterdir()) == [kept]


@pytest.mark.parametrize("spoil", ["open to others", "a link", "of another user"])
def test_a_directory_that_may_be_anybodys_is_never_taken(spoil: str, tmp_path: Path) -> None:
    theirs = tmp_path / "spyrec-kernels-aaaa"
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    if spoil == "a link":
        theirs.symlink_to(tmp_path / "elsewhere")
    else:
        theirs.mkdir(mode=0o700)
    if spoil == "open to others":
        theirs.chmod(0o755)
    if spoil == "of another user":
        if os.geteuid() != 0:
            pytest.skip("only the administrator can give a directory away")
        os.chown(theirs, 12345, 12345)
    found = private_directory("spyrec-kernels", tmp_path)
    assert found is not None
    assert found.is_new
    assert found.path != theirs
    assert private_directory("spyrec-kernels", tmp_path) == PrivateDirectory(found.path, is_new=False)


def test_no_directory_is_private_where_anybody_can_replace_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert private_directory("spyrec-kernels", tmp_path) is None
    tmp_path.chmod(0o1777)
    assert private_directory("spyrec-kernels", tmp_path) is not None
    assert private_directory("spyrec-kernels", tmp_path / "absent") is None


def test_a_cache_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    theirs, temporary = tmp_path / "theirs", tmp_path / "tmp"
    temporary.mkdir()
    theirs.mkdir()
    compiled_elsewhere(tmp_path, TMPDIR=str(temporary), NUMBA_CACHE_DIR=str(theirs))
    (used,) = theirs.iterdir()
    assert list(temporary.iterdir()) == []
    used.chmod(0o777)
    compiled, said = compiled_elsewhere(tmp_path, TMPDIR=str(temporary), NUMBA_CACHE_DIR=str(theirs))
    assert compiled > 0, "code that others may have put there was loaded"
    assert "SPY0754" in said


def test_where_nothing_can_be_kept_a_run_says_so_once(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o777)
    compiled, said = compiled_elsewhere(tmp_path, TMPDIR=str(temporary))
    assert compiled > 0
    assert said.count("SPY0754") == 1
