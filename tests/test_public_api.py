"""What ``import spyrec`` offers is what the documentation lists, and nothing else."""

from __future__ import annotations

import dataclasses
import difflib
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import spyrec
from scripts import public_surface
from spyrec.runtime import Scheduler

SURFACE = Path(__file__).parent / "fixtures" / "public_surface.txt"

PUBLIC = {
    "Bundle",
    "BundleEntries",
    "CompileOptions",
    "DeviceLayout",
    "Diagnostic",
    "Graph",
    "GraphBuilder",
    "Model",
    "RunOptions",
    "RunResult",
    "SpyrecError",
    "__version__",
    "compile",
    "compile_entries",
    "exec",
    "import_onnx",
    "import_program",
    "load",
    "open_device",
    "run",
    "runtime",
}


def test_the_public_names_are_those_documented() -> None:
    assert set(spyrec.__all__) == PUBLIC
    assert set(dir(spyrec)) == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value: object = getattr(spyrec, name)
    assert value.__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        getattr(spyrec, "frobnicate")  # noqa: B009 -- the constant is the point


def test_the_version_is_that_of_the_installed_distribution() -> None:
    assert spyrec.__version__ == version("spyrec")


def test_the_module_runs_as_a_program() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "spyrec", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.split() == ["spyrec,", "version", spyrec.__version__]


def difference() -> str:
    """Return how the public surface differs from the one that was reviewed, as a diff of their lines."""
    reviewed = SURFACE.read_text(encoding="utf-8").splitlines()
    found = public_surface.surface_text().splitlines()
    return "\n".join(difflib.unified_diff(reviewed, found, "reviewed", "now", n=1, lineterm=""))


def test_the_public_surface_is_the_reviewed_one() -> None:
    found = difference()
    assert not found, f"`make cases` rewrites {SURFACE.name} where this is meant:\n{found}"


def test_what_users_touch_is_in_the_reviewed_surface() -> None:
    text = SURFACE.read_text(encoding="utf-8")
    classes = {block.splitlines()[0].partition("(")[0]: block for block in text.split("\n\n")}
    for name, line in (
        ("class spyrec.runtime.Scheduler", "control_blocks: "),
        ("enumeration Kind", "text: str"),
        ("dataclass spyrec.Bundle", "artifacts -> LaunchArtifacts  (property)"),
        ("dataclass Manifest", "figures: PlanFigures | None"),
        ("dataclass PlanFigures", "simulated_us: float"),
        ("class Value", "__matmul__(self, other: Value) -> Value"),
        ("spyrec run", "--numerics: dl16|ieee|f32, default dl16"),
        ("# Error classes", "StaleHandle(RuntimeFault) SPY0902"),
        ("# File formats", "spyrec.bundle/1"),
    ):
        assert any(item.strip().startswith(line) for item in classes[name].splitlines()), (name, line)


def test_a_removed_method_and_another_default_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclasses.dataclass(frozen=True)
    class Narrow(spyrec.RunOptions):
        check: bool = True

    monkeypatch.delattr(spyrec.GraphBuilder, "dim")

    def nothing(_: object) -> None:
        pass

    monkeypatch.setattr(Scheduler, "__init__", nothing)
    monkeypatch.setattr(spyrec, "RunOptions", Narrow)
    removed = [line for line in difference().splitlines() if line.startswith("-    ")]
    assert any("dim(self" in line for line in removed)
    assert any("control_blocks: " in line for line in removed)
    assert any("check: bool = False" in line for line in removed)
