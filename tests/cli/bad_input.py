"""What every test of bad input demands: exit code, one clear diagnostic, and a tree that is as it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spyrec.cli import main
from spyrec.diagnostics.codes import CODES

VALUES = ("JSON", "DLFloat16", "SuperDSC", "True", "False", "None")
"""What a message may begin with in capitals: names and values, but no sentence."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One diagnostic as ``--diagnostics=json`` prints it."""

    code: str
    message: str
    file: str | None
    pointer: str | None
    line: int | None
    hint: str | None


def _refusal(line: dict[str, Any]) -> Refusal:
    place: dict[str, Any] = line["location"] or {}
    return Refusal(
        line["code"], line["message"], place.get("file"), place.get("pointer"), place.get("line"), line["hint"]
    )


def tree_of(directory: Path) -> dict[str, str]:
    """Return every path below a directory with a digest of what stands there."""
    found: dict[str, str] = {}
    for path in sorted(directory.rglob("*")):
        if path.is_symlink():
            found[str(path)] = f"link {path.readlink()}"
        else:
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
    return found


def refusals_of(
    arguments: Sequence[str], directory: Path, capsys: pytest.CaptureFixture[str], *, exit_code: int = 1
) -> list[Refusal]:
    """Run a command line that must be refused; return its errors. Nothing may be written or printed as product."""
    before = tree_of(directory)
    capsys.readouterr()
    assert main(["--diagnostics=json", *arguments]) == exit_code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert tree_of(directory) == before
    lines = [json.loads(line) for line in captured.err.splitlines()]
    refusals = [_refusal(line) for line in lines if line["severity"] == "error"]
    assert refusals
    for refusal in refusals:
        assert refusal.code in CODES, refusal.code
        assert refusal.message[0].islower() or not refusal.message[0].isalpha() or refusal.message.startswith(VALUES)
        assert not refusal.message.endswith(".") or refusal.message.endswith((" .", "..."))
    return refusals
