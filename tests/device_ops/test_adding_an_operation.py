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


def test_the_shown_diffs_are_all_that_an_operation_needs(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "spyrec", tmp_path / "spyrec", ignore=shutil.ignore_patterns("__pycache__"))
    hunks = hunks_of((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    for hunk in hunks:
        hunk.apply(tmp_path)
    pointwise = {"spyrec/device_ops/pointwise.py", "spyrec/ir/ops/binary.py"}
    fold = {"spyrec/device_ops/folds.py", "spyrec/ir/ops/reduction.py"}
    errors = {"spyrec/device_ops/record.py", "spyrec/compare/propagation.py"}
    assert {hunk.file for hunk in hunks} == pointwise | fold | errors
    (tmp_path / "made").mkdir()
    result = subprocess.run(
        [sys.executable, "-W", "error", added_operations.__file__, str(tmp_path / "made")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    count, package = len(added_operations.CASES), tmp_path / "spyrec" / "__init__.py"
    assert result.stdout.endswith(f"{count} cases run with {package}\n")
