"""The diffs of CONTRIBUTING.md add operations to a copy of the package, and nothing else is needed to run them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import added_operations
from tests.support.shown_diffs import hunks_of

ROOT = Path(__file__).resolve().parents[2]


TESTS = ("tests/catalogue/test_catalogue.py", "tests/conformance/test_operation_table.py")
"""What has to be told of an operation beside the product."""

IN_TESTS = f"{' or '.join(added_operations.ADDED)} or public_ops or stands_in_this_file"


def run(directory: Path, *arguments: str) -> str:
    """Run Python on the copy below a directory, and return what it printed."""
    result = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_shown_diffs_are_all_that_an_operation_needs(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "fixtures")
    for folder in ("spyrec", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    hunks = hunks_of((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    for hunk in hunks:
        hunk.apply(tmp_path)
    pointwise = {"spyrec/device_ops/pointwise.py", "spyrec/ir/ops/binary.py"}
    fold = {"spyrec/device_ops/folds.py", "spyrec/ir/ops/reduction.py"}
    assert {hunk.file for hunk in hunks} == pointwise | fold | {*TESTS}
    (tmp_path / "made").mkdir()
    printed = run(tmp_path, added_operations.__file__, str(tmp_path / "made"))
    count, package = len(added_operations.CASES), tmp_path / "spyrec" / "__init__.py"
    assert printed.endswith(f"{count} cases run with {package}\n")
    tested = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", IN_TESTS, *TESTS)
    assert " passed" in tested
    assert all(word not in tested for word in ("failed", "error"))
