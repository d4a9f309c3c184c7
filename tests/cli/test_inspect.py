"""The verb ``inspect``: what it says of bundles, foreign ones and single files, and how it is asked."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

import spyrec
from spyrec.cli import main
from tests.foreign import EXAMPLES

NEWER = EXAMPLES.parent / "examples_2026_08"
ARGS = EXAMPLES.parent / "examples_args"

GRAPH = {
    "format": "spyrec.graph/1",
    "name": "two",
    "inputs": [{"name": name, "shape": [128, 256], "dtype": "float16"} for name in "ab"],
    "nodes": [
        {"name": "y", "op": "add", "inputs": ["a", "b"]},
        {"name": "z", "op": "sum", "inputs": ["y"], "attrs": {"dim": [-1], "keepdim": True}},
    ],
    "outputs": ["z"],
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inspect") / "two"
    spyrec.compile(GRAPH, spyrec.CompileOptions(cores=32)).save(path)
    return path


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("COLUMNS", "100")
    return monkeypatch


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["inspect", *arguments]) == 0
    return capsys.readouterr().out


def test_an_operation_is_told_in_words(
    bundle: Path, columns: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, str(bundle), "y", "--core", "3").splitlines()
    assert lines[0] == "program 0, 2 operations, arguments a, b, z"
    assert lines[1].startswith("0 add, sdsc_0.json, 32 cores, sfp, predicted ")
    assert lines[2:] == [
        "    mb 128 = 32 cores x 4",
        "    out 256",
        "    reads a: argument 0, from byte 0, +512 each part of mb",
        "      [out/64: 4, mb: 128, stick of 64 out] SEN169_FP16 (OUTPUT)",
        "    reads b: argument 1, from byte 0, +512 each part of mb",
        "      [out/64: 4, mb: 128, stick of 64 out] SEN169_FP16 (OUTPUT)",
        "    writes y: LX 0 to 2,048 of each core",
        "      [out/64: 4, mb: 4, stick of 64 out] SEN169_FP16 (OUTPUT)",
        "    core 3: mb 12:16, out 0:256",
        "      reads a[12:16, 0:256] at bytes 1,536 to 51,200, address 0x600",
        "      reads b[12:16, 0:256] at bytes 1,536 to 51,200, address 0x400000600",
        "      writes y at LX 0 to 2,048",
    ]


@pytest.mark.parametrize("name", ["1", "z", "sum", "sdsc_1.json", "sdsc_1"])
def test_an_operation_has_many_names(bundle: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, str(bundle), name, "--json"))
    (operation,) = found["programs"][0]["body"]
    assert (operation["number"], operation["op"]) == (1, "sum")
    assert operation["operands"][-1]["scales"] == {"mb": 1, "out": -2}
    assert [item["name"] for item in found["arguments"]] == ["a", "b", "z"]


def test_what_is_not_there_is_refused_with_what_is(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(bundle), "summ"]) == 1
    message = capsys.readouterr().err
    assert "SPY0830" in message
    assert "did you mean sum?" in message
    assert main(["inspect", str(bundle), "7"]) == 1
    assert "SPY0830" in capsys.readouterr().err
    assert main(["inspect", str(bundle), "--core", "32"]) == 1
    assert "cores 0 to 31 take part" in capsys.readouterr().err
    assert main(["inspect", str(bundle.parent)]) == 1
    assert "SPY0615" in capsys.readouterr().err
    assert main(["inspect", str(bundle), "--json", "nothing"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False


def test_a_file_of_another_kind_is_refused_by_name(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file, fact in (("manifest.json", 'no SuperDSC: format "spyrec.bundle/1"'), ("bundle.mlir", "a bundle.mlir by")):
        assert main(["inspect", str(bundle / file)]) == 1
        assert fact in capsys.readouterr().err


def test_a_superdsc_is_taken_from_standard_input(
    bundle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (bundle / "sdsc_0.json").read_bytes()
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text)))
    assert main(["inspect", "-"]) == 0
    assert capsys.readouterr().out.startswith("-: a SuperDSC by itself")


def test_loops_are_indentation_and_steps_are_told_by_their_names(
    columns: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, str(EXAMPLES / "nested_loop_symbolic"))
    lines = text.splitlines()
    start = lines.index("loop i_0, 2 rounds")
    assert lines[start : start + 3] == [
        "loop i_0, 2 rounds",
        "  loop i_1, 4 rounds",
        "    0 add, sdsc_0.json, 32 cores, sfp",
    ]
    assert "+33,554,432 each round of i_0" in text  # what check refuses can be looked at
    assert "window of 512 in 1024 along mb" in " ".join(text.split())


def test_scales_masks_and_constants_are_words(columns: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    broadcast = shown(capsys, str(EXAMPLES / "add_broadcast"))
    assert "one entry for all of mb" in broadcast
    assert "lane 0 of a stick for all of out" in broadcast
    masked = shown(capsys, str(EXAMPLES / "sum_stick_masked" / "sdsc_0.json"))
    assert "masked out 200:256" in masked
    assert "constants samv-maskvalue = 0" in masked
    assert "a SuperDSC by itself" in masked
    clipped = shown(capsys, str(EXAMPLES / "clip_constants"))
    assert "constants clipMin = " in clipped


CASES = sorted(path for folder in (EXAMPLES, NEWER) for path in folder.iterdir() if (path / "bundle.mlir").exists())


@pytest.mark.parametrize("columns_asked", ["40", "60", "77", "300"])
def test_every_worked_example_is_shown_within_its_columns(
    columns_asked: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns_asked)
    limit = min(max(int(columns_asked), 60), 100)
    for case in CASES:
        for line in shown(capsys, str(case), "--core", "0").splitlines():
            assert len(line) <= limit, (case.name, line)


def test_every_worked_example_is_an_object_and_so_is_each_of_its_files(capsys: pytest.CaptureFixture[str]) -> None:
    for case in CASES:
        whole = json.loads(shown(capsys, str(case), "--json", "--core", "0"))
        assert whole["format"] == "spyrec.inspect/1"
        alone = json.loads(shown(capsys, str(case / "sdsc_0.json"), "--json"))
        (operation,) = alone["programs"][0]["body"][:1]
        dims = operation["dims"]
        assert all(item["parts"] * item["per_core"] >= item["extent"] for item in dims.values())


def test_a_table_gives_a_foreign_bundle_its_host_indices(
    columns: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = ARGS / "indirect_gather_1d.host.json"
    text = shown(capsys, str(EXAMPLES / "indirect_gather_1d"), "--args", str(table), "--core", "0")
    assert "by index" in text
    assert "rows that operand 0 names" in text
    assert "[0:" in text


def test_what_check_refuses_can_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    """Its cores share a dynamic dim, so that nobody can say where they begin at another size (Q18)."""
    case = NEWER / "add_dynamic_rows_split"
    assert main(["check", str(case)]) == 1
    refused = capsys.readouterr().err
    assert "error[SPY0547]" in refused
    assert f"--> {case}/sdsc_0.json" in refused
    text = shown(capsys, str(case))
    assert "mb 512 = 8 cores x 64, at most; each launch gives it (s0)" in text
    assert "each core at its own place" in " ".join(text.split())
    assert main(["diff", str(case), str(NEWER / "add_dynamic_rows")]) == 1
    assert "mb is in 1 part instead of 8, in 0 add" in capsys.readouterr().out
