"""``spyrec codegen`` on files: exact bytes, and nothing left behind where the input is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spyrec.cli import main

EXAMPLES = Path(__file__).parent.parent / "fixtures" / "examples"
AUGUST = Path(__file__).parent.parent / "fixtures" / "examples_2026_08"
OF_JUNE = ("--compat", "torch-spyre@2026-06")


BESIDE = ("opspecs.json", "manifest.json")
"""What a writer of programs alone does not write."""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name not in BESIDE}


@pytest.mark.parametrize("case", ["layernorm", "softmax_lx_symbolic"])
@pytest.mark.parametrize(
    ("options", "written"),
    [
        (OF_JUNE, EXAMPLES),
        (("--compat", "torch-spyre@2026-08"), AUGUST),
        (("--compat", "torch-spyre"), AUGUST),
        (("--symbolic-args",), AUGUST),
    ],
)
def test_the_verb_writes_the_bytes_of_torch_spyre(
    tmp_path: Path, case: str, options: tuple[str, ...], written: Path
) -> None:
    output = tmp_path / "out"
    assert main(["codegen", str(EXAMPLES / case / "opspecs.json"), "-o", str(output), *options]) == 0
    assert contents(output) == contents(written / case)


def test_the_flags_override_the_file(tmp_path: Path) -> None:
    source = str(EXAMPLES / "add_symbolic" / "opspecs.json")
    assert main(["codegen", source, "-o", str(tmp_path / "a"), "--no-symbolic-args", *OF_JUNE]) == 0
    assert contents(tmp_path / "a") == contents(EXAMPLES / "add")
    baked = str(EXAMPLES / "add" / "opspecs.json")
    assert main(["codegen", baked, "-o", str(tmp_path / "b"), "--symbolic-args", *OF_JUNE]) == 0
    assert contents(tmp_path / "b") == contents(EXAMPLES / "add_symbolic")
    nest = str(EXAMPLES / "nested_loop_symbolic" / "opspecs.json")
    assert main(["codegen", nest, "-o", str(tmp_path / "c"), "--loops", "unroll", "--no-symbolic-args"]) == 0
    assert len(contents(tmp_path / "c")) == 17


def test_kept_loops_without_symbols_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nest = str(EXAMPLES / "nested_loop_symbolic" / "opspecs.json")
    assert main(["codegen", nest, "-o", str(tmp_path / "out"), "--loops", "keep", "--no-symbolic-args"]) == 1
    error = capsys.readouterr().err
    assert "SPY0524" in error
    assert "/specs/0/loop/body/0/loop/body/0/args/0" in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1000, 0])
def test_a_refused_file_leaves_nothing_behind(tmp_path: Path, size: int, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads((EXAMPLES / "add" / "opspecs.json").read_text())
    data["specs"][0]["iteration_space"][0]["size"] = size
    source = tmp_path / "bad.json"
    source.write_text(json.dumps(data))
    assert main(["--diagnostics", "json", "codegen", str(source), "-o", str(tmp_path / "out")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    problem = json.loads(line)
    assert problem["code"] == ("SPY0511" if size else "SPY0503")
    assert problem["location"]["line"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.json"]


def test_an_output_that_exists_is_kept_without_force(tmp_path: Path) -> None:
    source = str(EXAMPLES / "add" / "opspecs.json")
    output = tmp_path / "out"
    assert main(["codegen", source, "-o", str(output)]) == 0
    before = contents(output)
    assert len(before) == 2
    other = str(EXAMPLES / "matmul" / "opspecs.json")
    assert main(["codegen", other, "-o", str(output)]) == 1
    assert contents(output) == before
    assert main(["codegen", other, "-o", str(output), "--force", *OF_JUNE]) == 0
    assert contents(output) == contents(EXAMPLES / "matmul")


def test_a_missing_input_is_a_usage_error_and_an_unreadable_one_is_refused(tmp_path: Path) -> None:
    assert main(["codegen", str(tmp_path / "absent.json"), "-o", str(tmp_path / "out")]) == 2
    huge = tmp_path / "huge.json"
    with huge.open("wb") as stream:
        stream.truncate((1 << 28) + 1)
    assert main(["codegen", str(huge), "-o", str(tmp_path / "out")]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["huge.json"]
