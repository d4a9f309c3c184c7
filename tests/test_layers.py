"""The layers of the house hold, and the contracts that guard them would notice a breach."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spyrec

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("numba", "numpy", "orjson", "pydantic", "safetensors", "sympy")
LAYERS = "layers of the house"
DECISIONS = "no decision depends on a file format: passes import neither bundle nor codegen"
CODEGEN = "codegen receives what is decided and decides nothing"
EMULATOR = "the emulator does not peek at the intent"
RUNTIME = "the runtime runs anyone's bundle"
EXEC = "exec imports the runtime alone: the front hands devices in"
BORDER = "the border is readable without the compiler"
LINT_PLANTED = """
import pathlib
import sys
sys.path.insert(0, ".")
from importlinter.cli import lint_imports_command
for planted in sys.argv[1:]:
    module, _, imported = planted.partition(" ")
    file = pathlib.Path("spyrec", module)
    if module:
        file.write_text(f"import {imported}\\n", encoding="utf-8")
    try:
        lint_imports_command(["--cache-dir", "kept"])
    except SystemExit:
        print("\\0")
    if module:
        file.unlink()
"""
RUN_WITHOUT_COMPILER = """
import sys


class Deleted:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("spyrec.passes", "spyrec.codegen", "spyrec.contracts")):
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Deleted())
from spyrec.cli import main

sys.exit(main(sys.argv[1:]))
"""
IMPORTS_OF = """
import sys
from spyrec.cli import main
code = main(sys.argv[2:])
found = [name for name in sys.argv[1].split() if name in sys.modules]
sys.exit(f"imported: {found}" if found else code)
"""
ALL = {LAYERS, DECISIONS, CODEGEN, EMULATOR, RUNTIME, EXEC, BORDER}


def run(arguments: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, cwd=directory, capture_output=True, text=True, check=False, timeout=120)


PLANTED: dict[tuple[str, str], set[str]] = {
    ("", ""): set(),
    ("emulator/planted.py", "spyrec.ir.graph"): {EMULATOR},
    ("passes/planted.py", "spyrec.bundle.superdsc"): {DECISIONS},
    ("codegen/planted.py", "spyrec.passes.pipelines"): {CODEGEN},
    ("codegen/planted_too.py", "spyrec.runtime.inputs.binding"): {CODEGEN},
    ("contracts/planted.py", "spyrec.front"): {LAYERS},
    ("runtime/planted.py", "spyrec.ir.opdef"): {RUNTIME},
    ("exec/planted.py", "spyrec.emulator.backend"): {EXEC},
    ("exec/planted_too.py", "spyrec.bundle.bundle"): {EXEC},
    ("bundle/planted.py", "spyrec.ir.types"): {BORDER, LAYERS},
    ("compare/planted.py", "spyrec.cli"): {LAYERS},
    ("cli/planted.py", "spyrec.torch_backend"): {LAYERS},
    ("planted.py", "spyrec.hardware.target"): {LAYERS},
}
"""A module and what it imports: the contracts that this breaks.  Nothing planted breaks none."""


def test_a_forbidden_import_breaks_exactly_its_contract(tmp_path: Path) -> None:
    """All in one process, which reads again what has changed."""
    shutil.copytree(ROOT / "spyrec", tmp_path / "spyrec", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    printed = run([sys.executable, "-c", LINT_PLANTED, *map(" ".join, PLANTED)], tmp_path).stdout
    *texts, rest = printed.split("\0")
    assert not rest.strip()
    assert {case: _broken(text) for case, text in zip(PLANTED, texts, strict=True)} == PLANTED


def _broken(text: str) -> set[str]:
    """Return the names of the contracts that import-linter says are broken; it has looked at all of them."""
    words = " ".join(text.split())
    verdicts = {name: word for name in ALL for word in ("KEPT", "BROKEN") if f"{name} {word}" in words}
    assert set(verdicts) == ALL, text
    return {name for name, word in verdicts.items() if word == "BROKEN"}


def test_the_emulator_runs_a_bundle_where_the_compiler_is_deleted(tmp_path: Path) -> None:
    spyrec.compile(ROOT / "examples" / "seed_add_mul" / "graph.json").save(tmp_path / "bundle")
    arguments = ["run", str(tmp_path / "bundle"), "--random", "1"]
    result = run([sys.executable, "-c", RUN_WITHOUT_COMPILER, *arguments], ROOT)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_the_front_page_imports_no_heavy_library(arguments: list[str]) -> None:
    result = run([sys.executable, "-c", IMPORTS_OF, " ".join(HEAVY), *arguments], ROOT)
    assert result.returncode == 0, result.stderr


def test_a_compile_and_a_run_import_what_they_use_alone(tmp_path: Path) -> None:
    graph, bundle = str(ROOT / "examples" / "seed_add_mul" / "graph.json"), str(tmp_path / "bundle")
    for arguments, apart in ((["compile", graph, "-o", bundle], ["numba"]), (["run", bundle, "--random", "1"], [])):
        unused = ["pydantic", "safetensors", "sympy", "numpy.ma", *apart]
        result = run([sys.executable, "-c", IMPORTS_OF, " ".join(unused), *arguments], ROOT)
        assert result.returncode == 0, result.stderr
