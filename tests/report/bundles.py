"""Small bundles that reports are made of."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import spyrec
from spyrec.report.build import Source, report_of
from spyrec.report.model import Report
from tests.support.graphs import graph_data, node, tensor

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
NEWER = FIXTURES / "examples_2026_08"

LOOPED = graph_data(
    [{"name": name, "shape": ["A", "B"], "dtype": "float16"} for name in "abc"],
    [node("y", "add", "a", "b"), node("z", "mul", "y", "c")],
    ["z"],
    dims={"A": 256, "B": 512},
    loops=[{"dim": "A", "tiles": 2, "body": [{"dim": "B", "tiles": 4, "body": ["y", "z"]}]}],
)


ORIGINS: dict[str, dict[str, Any]] = {
    "n": {"module": "model.norm", "file": "mlp.py", "line": 10, "op": "aten.rms_norm"},
    "p": {"module": "model.mlp.up", "file": "mlp.py", "line": 21, "op": "aten.mm"},
    "s": {"module": "model.mlp.up", "file": "mlp.py", "line": 31, "op": "aten.softmax"},
}


def _with_origin(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "origin": ORIGINS[item["name"]]}


MODEL = graph_data(
    [tensor("x", 64, 128), tensor("w", 128, 256), tensor("g", 128)],
    [
        _with_origin(node("n", "rms_norm", "x", "g", normalized_shape=[128])),
        _with_origin(node("p", "mm", "n", "w")),
        _with_origin(node("s", "softmax", "p", dim=-1)),
    ],
    ["s"],
)
"""As an importer writes it: nodes know where in a model they come from."""

PLAIN = graph_data(
    [tensor("x", 64, 128), tensor("y", 64, 128)],
    [node("a", "add", "x", "y"), node("b", "exp", "a"), node("c", "neg", "b")],
    ["c", "b"],
)


def saved(data: dict[str, Any], folder: Path, options: spyrec.CompileOptions | None = None) -> Path:
    """Compile a graph into a folder of this name."""
    spyrec.compile(data, options).save(folder)
    return folder


def report_on(data: dict[str, Any], folder: Path, options: spyrec.CompileOptions | None = None) -> Report:
    """Return the report of a graph's bundle."""
    return report_of(Source(saved(data, folder, options)))


def foreign(name: str, folder: Path) -> Path:
    """Return a copy of a bundle that its own writer made, without what it was made of."""
    shutil.copytree(NEWER / name, folder, ignore=shutil.ignore_patterns("opspecs.json"))
    return folder
