"""Programs in C, and one in Rust, that link the shared library: the seed's scenarios, nothing of Python in sight."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import cffi
import pytest

import spyrec
from spyrec.exec.cabi.build import CLibrary
from spyrec.exec.cabi.header import HEADERS, functions

SOURCES = Path(__file__).resolve().parent / "c"
assert cffi.__version__  # what the library is made with; this file is not collected without it


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A bundle that adds two rows, and one that multiplies them."""
    folder = tmp_path_factory.mktemp("bundles")
    for name in ("add", "mul"):
        builder = spyrec.GraphBuilder(name)
        x, y = (builder.input(item, (1, 64), "float16") for item in "xy")
        builder.output(x + y if name == "add" else x * y)
        spyrec.compile(builder, spyrec.CompileOptions(cores=1)).save(folder / name)
    return folder / "add", folder / "mul"


def compiled(source: Path, library: CLibrary, folder: Path, *flags: str) -> Path:
    program = folder / source.stem
    warnings = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-Wpedantic")
    subprocess.run(["cc", "-g", *warnings, *flags, str(source), "-o", str(program), *library.flags], check=True)
    return program


@pytest.mark.parametrize("scenario", ["decode", "lifetime", "speculative", "vla"])
def test_a_scenario_runs_from_c(scenario: str, c_library: CLibrary, bundles: tuple[Path, Path], tmp_path: Path) -> None:
    program = compiled(SOURCES / f"{scenario}.c", c_library, tmp_path)
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}  # no Python of ours in sight
    done = subprocess.run(
        [program, *bundles], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{scenario}: ok\n", "")


@pytest.mark.skipif(shutil.which("rustc") is None, reason="there is no rustc")
def test_a_program_in_rust_captures_and_replays(c_library: CLibrary, tmp_path: Path) -> None:
    folder, program = c_library.path.parent, tmp_path / "replay"
    flags = ("--edition", "2021", "-D", "warnings", "-L", str(folder), "-C", f"link-arg=-Wl,-rpath,{folder}")
    subprocess.run(["rustc", *flags, str(SOURCES.parent / "rust" / "replay.rs"), "-o", str(program)], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "replay: ok\n", "")


def test_the_library_exports_what_the_headers_declare_and_nothing_else(c_library: CLibrary) -> None:
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(c_library.path)], capture_output=True, text=True, check=True
    )
    exported = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert exported == {function.name for header in HEADERS for function in functions(header)}


def test_the_headers_are_c_and_cplusplus(c_library: CLibrary, tmp_path: Path) -> None:
    for suffix, language in ((".c", "c11"), (".cpp", "c++17")):
        source = tmp_path / f"empty{suffix}"
        source.write_text("#include <flashrt/spyrec.h>\nint main(void) { return FRT_OK; }\n", encoding="ascii")
        flags = ("-Wall", "-Werror", "-Wpedantic", f"-I{c_library.include}", "-fsyntax-only")
        subprocess.run(["cc", f"-std={language}", *flags, str(source)], check=True)
