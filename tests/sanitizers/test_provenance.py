"""Where an operation comes from is kept through a bundle and a device, and named wherever something is found.

The bundles are mixed: of their files one is of August 2026, which has room for it, the others are of June.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.debug_handle import DebugHandle, SourceRange
from spyrec.bundle.dialects import AUGUST_2026, JUNE_2026
from spyrec.bundle.superdsc import SuperDsc
from spyrec.cli import main
from spyrec.compare.storage import Array
from spyrec.emulator.rules.superdsc import check_superdsc
from spyrec.hardware.target import Target
from spyrec.options import CompileOptions, RunOptions
from tests.sanitizers.planting import moved, planted
from tests.support.planting import other_op

GRAPH = {
    "format": "spyrec.graph/1",
    "name": "chain",
    "inputs": [{"name": name, "shape": [64, 128], "dtype": "float16"} for name in ("x", "y")],
    "nodes": [
        {"name": "a", "op": "add", "inputs": ["x", "y"]},
        {"name": "b", "op": "mul", "inputs": ["a", "y"]},
        {"name": "c", "op": "sub", "inputs": ["b", "x"]},
    ],
    "outputs": ["c"],
}
HANDLE = DebugHandle("7", SourceRange("model.py", 12, 4), "aten.mul.Tensor", ("mul",))
SHOWN = "aten.mul.Tensor at model.py:12"
FILE = "sdsc_1.json"


def with_handle(superdsc: SuperDsc) -> SuperDsc:
    return replace(superdsc, dialect=AUGUST_2026, debug_handle=HANDLE)


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Write a bundle whose second file is of August, and return its directory."""
    compiled = spyrec.compile(
        GRAPH, CompileOptions(cores=4, lx_planner="none", symbolic_args=False, compat="torch-spyre@2026-06")
    )
    planted(compiled, FILE, with_handle).save(tmp_path / "b")
    return tmp_path / "b"


@pytest.fixture
def data() -> dict[str, Array]:
    generator = np.random.default_rng(5)
    return {name: generator.standard_normal((64, 128)).astype(np.float16) for name in ("x", "y")}


def test_files_of_two_dialects_are_read_and_run_as_one_bundle(mixed: Path, data: dict[str, Array]) -> None:
    (program,) = Bundle.load(mixed).programs
    assert [item.dialect for item in program.superdscs.values()] == [JUNE_2026, AUGUST_2026, JUNE_2026]
    assert [item.debug_handle for item in program.superdscs.values()] == [None, HANDLE, None]
    result = spyrec.run(mixed, data, RunOptions(check=True, sanitize="all"))
    assert result.is_ok
    assert not result.warnings


def test_a_sanitizer_names_it(mixed: Path, data: dict[str, Array]) -> None:
    broken = planted(Bundle.load(mixed), FILE, moved(0, 1 << 20))
    result = spyrec.run(broken, data, RunOptions(sanitize="all"))
    found = [item for item in result.sanitizer if item.file is not None and item.file.endswith(FILE)]
    assert found
    for item in found:
        assert item.to_json()["provenance"] == SHOWN
        assert f"from {SHOWN}" in item.to_diagnostic().notes[0]


def test_a_broken_rule_names_it(mixed: Path, data: dict[str, Array]) -> None:
    superdsc = Bundle.load(mixed).programs[0].superdscs[FILE]
    wrong = replace(superdsc, core_extent={dim: 2 * extent for dim, extent in superdsc.core_extent.items()})
    for found in check_superdsc(FILE, wrong, Target()):
        assert f"from {SHOWN}" in found.notes[-1]
    broken = planted(Bundle.load(mixed), FILE, moved(0, 1 << 20))
    with pytest.raises(spyrec.SpyrecError) as error:
        spyrec.run(broken, data)
    assert any(f"from {SHOWN}" in note for item in error.value.diagnostics for note in item.notes)


def test_bisect_names_it(mixed: Path, data: dict[str, Array], capsys: pytest.CaptureFixture[str]) -> None:
    broken = planted(Bundle.load(mixed), FILE, lambda superdsc: other_op(superdsc, "add"))
    result = spyrec.run(broken, data, RunOptions(bisect=True))
    assert result.bisect is not None
    assert result.bisect.divergence is not None
    assert result.bisect.divergence.provenance == SHOWN
    broken.save(mixed, force=True)
    assert main(["run", str(mixed), "--random", "1", "--bisect"]) == 1
    assert f"  from {SHOWN}\n" in capsys.readouterr().out
