"""``spyrec run --sanitize``: exit codes, messages, the JSON list, and names that are no sanitizers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import spyrec
from spyrec.cli import main
from tests.foreign import argument_table, copy_example, write_table


@pytest.fixture
def masked(tmp_path: Path) -> Path:
    """A ragged softmax on disk whose maximum has lost its mask."""
    graph = {
        "format": "spyrec.graph/1",
        "name": "soft",
        "inputs": [{"name": "x", "shape": [6, 70], "dtype": "float16"}],
        "nodes": [{"name": "y", "op": "softmax", "inputs": ["x"], "attrs": {"dim": -1}}],
        "outputs": ["y"],
    }
    spyrec.compile(graph, spyrec.CompileOptions(cores=1, lx_planner="none")).save(tmp_path / "bundle")
    return tmp_path / "bundle"


def break_mask(bundle: Path) -> str:
    for path in sorted(bundle.glob("sdsc_*.json")):
        document = json.loads(path.read_text())
        (root,) = document.values()
        (dsc,) = root["dscs_"][0].values()
        if dsc["computeOp_"][0]["opFuncName"] == "max":
            dsc["coordinateMasking_"] = {}
            path.write_text(json.dumps(document))
            return path.name
    raise AssertionError(bundle)


def test_a_right_bundle_exits_0_with_an_empty_list(masked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(masked), "--random", "1", "--sanitize", "all", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sanitizer"] == []


def test_findings_are_messages_and_records(masked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = break_mask(masked)
    arguments = ["run", str(masked), "--random", "1", "--no-verify", "--json"]
    assert main([*arguments, "--sanitize", "init"]) == 1
    printed = capsys.readouterr()
    (first, *_) = json.loads(printed.out)["sanitizer"]
    assert {"sanitizer", "op", "file", "core", "tensor", "address", "element", "field", "message"} <= first.keys()
    assert (first["sanitizer"], first["op"], first["file"], first["field"]) == (
        "init",
        "max",
        file,
        "coordinateMasking_",
    )
    assert (first["tensor"], first["core"]) == ("x", 0)
    assert "error[SPY0731]" in printed.err
    assert "look at coordinateMasking_" in printed.err
    assert main([*arguments, "--sanitize", "lx,race"]) == 0


def test_a_run_that_leaves_its_memory_ends_without_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy_example("nested_loop_symbolic", tmp_path)
    table = write_table(folder, argument_table("nested_loop_symbolic"))
    outputs = tmp_path / "out.npz"
    arguments = ["run", str(folder), "--args", str(table), "--random", "1", "--outputs", str(outputs), "--json"]
    assert main([*arguments, "--sanitize", "bounds"]) == 1
    printed = capsys.readouterr()
    data = json.loads(printed.out)
    assert data["outputs"] == {}
    assert data["sanitizer"][0]["sanitizer"] == "bounds"
    assert "warning[SPY0720]" in printed.err
    assert "error[SPY0730]" in printed.err
    assert not outputs.exists()


@pytest.mark.parametrize("name", ["synch", "inti", ""])
def test_a_name_that_is_no_sanitizer_is_a_usage_error(
    name: str, masked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(masked), "--random", "1", "--sanitize", name]) == 2
    message = capsys.readouterr().err
    assert f'"{name}"' in message
    assert "bounds, init, lx, race, gap, sync, all" in message
    with pytest.raises(spyrec.SpyrecError) as error:
        spyrec.run(masked, {}, spyrec.RunOptions(sanitize=name))
    assert {item.code for item in error.value.diagnostics} == {"SPY0735"}


def test_bisect_and_sanitize_exclude_each_other(masked: Path) -> None:
    with pytest.raises(spyrec.SpyrecError) as error:
        spyrec.run(masked, {}, spyrec.RunOptions(sanitize="all", bisect=True))
    assert {item.code for item in error.value.diagnostics} == {"SPY0771"}
