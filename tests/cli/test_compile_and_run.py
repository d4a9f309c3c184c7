"""``spyrec compile`` and ``spyrec run`` on a real small graph, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from spyrec.cli import main
from tests.cli.bad_input import tree_of

ROWS, COLUMNS, HIDDEN = 24, 100, 70


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-layer head: matmul with weights from a file, bias, relu, softmax; an input that nothing reads."""
    folder = tmp_path_factory.mktemp("model")
    generator = np.random.default_rng(0)
    weights = {
        "w": (generator.standard_normal((COLUMNS, HIDDEN)) / 10).astype(np.float16),
        "bias": generator.standard_normal(HIDDEN).astype(np.float16),
    }
    safetensors.numpy.save_file(weights, folder / "w.safetensors")
    graph: dict[str, Any] = {
        "format": "spyrec.graph/1",
        "name": "head",
        "dims": {"B": ROWS, "K": COLUMNS, "N": HIDDEN},
        "inputs": [
            {"name": "x", "shape": ["B", "K"], "dtype": "float16"},
            {"name": "unused", "shape": [3], "dtype": "float16"},
        ],
        "constants": [
            {"name": name, "shape": shape, "dtype": "float16", "data": {"file": "w.safetensors", "tensor": name}}
            for name, shape in (("w", ["K", "N"]), ("bias", ["N"]))
        ],
        "nodes": [
            {"name": "h", "op": "mm", "inputs": ["x", "w"]},
            {"name": "b", "op": "add", "inputs": ["h", "bias"]},
            {"name": "r", "op": "relu", "inputs": ["b"]},
            {"name": "p", "op": "softmax", "inputs": ["r"], "attrs": {"dim": -1}},
        ],
        "outputs": ["p", "r", "p"],
    }
    path = folder / "graph.json"
    path.write_text(json.dumps(graph), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def bundle(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "out"
    assert main(["compile", str(model), "-o", str(path)]) == 0
    return path


def relative_tree(directory: Path) -> dict[str, str]:
    return {str(Path(name).relative_to(directory)): digest for name, digest in tree_of(directory).items()}


def test_the_same_graph_gives_the_same_bytes_in_any_directory(model: Path, bundle: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in model.parent.iterdir():
        (elsewhere / file.name).write_bytes(file.read_bytes())
    assert main(["compile", str(elsewhere / "graph.json"), "-o", str(tmp_path / "out")]) == 0
    assert relative_tree(tmp_path / "out") == relative_tree(bundle)


def test_stopping_after_a_pass_asks_nothing_of_an_output_that_is_not_written(model: Path, bundle: Path) -> None:
    before = tree_of(bundle)
    assert main(["compile", str(model), "-o", str(bundle), "--stop-after", "canonicalize"]) == 0
    assert main(["compile", str(model), "-o", "/nowhere/at/all", "--stop-after", "canonicalize"]) == 0
    assert tree_of(bundle) == before


def test_a_run_gives_the_right_numbers_in_json_and_in_the_file(
    bundle: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float16)
    np.savez(tmp_path / "x.npz", x=x)
    arguments = ["--inputs", str(tmp_path / "x.npz"), "--outputs", str(tmp_path / "y.npz"), "--check", "--json"]
    assert main(["run", str(bundle), *arguments]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["format"] == "spyrec.run/1"
    assert report["outputs"] == {
        "p": {"shape": [ROWS, HIDDEN], "dtype": "float16"},
        "r": {"shape": [ROWS, HIDDEN], "dtype": "float16"},
    }
    assert report["sanitizer"] == []
    assert set(report["check"]) == {"p", "r"}
    for verdict in report["check"].values():
        assert verdict["ok"] is True
        assert 0 <= verdict["bound_ratio"] <= 1
        assert set(verdict["worst"]) == {"index", "device_coordinate", "core", "got", "want"}
    assert report["stats"]["total"]["simulated_us"] > 0
    assert report["stats"]["total"]["flops"] >= 2 * ROWS * COLUMNS * HIDDEN
    weights = safetensors.numpy.load_file(model.parent / "w.safetensors")
    hidden = np.maximum(x.astype(np.float64) @ weights["w"].astype(np.float64) + weights["bias"].astype(np.float64), 0)
    with np.load(tmp_path / "y.npz") as archive:
        np.testing.assert_allclose(archive["r"].astype(np.float64), hidden, atol=0.05)
        np.testing.assert_allclose(archive["p"].astype(np.float64).sum(axis=-1), 1, atol=0.01)


def test_totals_are_the_sums_of_the_operations(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(bundle), "--random", "3", "--json"]) == 0
    stats = json.loads(capsys.readouterr().out)["stats"]
    for counter in ("hbm_read_bytes", "hbm_write_bytes", "hbm_core_read_bytes", "flops"):
        assert stats["total"][counter] == sum(operation[counter] for operation in stats["ops"]) > 0
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    named = {
        f"{'' if step['program'] == '.' else step['program'] + '/'}{file.name}"
        for step in manifest["plan"]
        for file in (bundle / step["program"]).glob("sdsc_*.json")
    }
    assert {operation["file"] for operation in stats["ops"]} == named


def test_stats_and_check_as_text(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(bundle), "--random", "3", "--stats", "--check"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert f"p: float16[{ROWS},{HIDDEN}]" in lines
    assert any(line.startswith("check p: ok") for line in lines)
    assert any(line.split()[:2] == ["file", "op"] for line in lines)
    assert captured.err == ""


def test_a_wrong_number_fails_the_check_with_exit_code_1(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    for name in relative_tree(bundle):
        target = broken / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (bundle / name).is_dir():
            target.mkdir(exist_ok=True)
        else:
            # the addition of the bias becomes a subtraction, in the root key, the kernel's key and the op
            data = (bundle / name).read_bytes()
            is_code = target.name.startswith("sdsc_")
            target.write_bytes(data.replace(b'_add"', b'_sub"').replace(b'"add"', b'"sub"') if is_code else data)
    assert main(["run", str(broken), "--random", "3", "--check"]) == 1
    assert "SPY06" in capsys.readouterr().err  # the hash shows it first
    assert main(["run", str(broken), "--random", "3", "--check", "--json", "--no-verify"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["check"]["r"]["ok"] is False


def test_an_unused_input_may_be_given_or_left_out(bundle: Path, tmp_path: Path) -> None:
    x = np.zeros((ROWS, COLUMNS), np.float16)
    np.savez(tmp_path / "without.npz", x=x)
    np.savez(tmp_path / "with.npz", x=x, unused=np.zeros(3, np.float16))
    for name in ("without", "with"):
        assert main(["run", str(bundle), "--inputs", str(tmp_path / f"{name}.npz"), "--check"]) == 0


def test_numerics_change_the_numbers_and_pass_their_own_check(bundle: Path, tmp_path: Path) -> None:
    outputs: dict[str, bytes] = {}
    for numerics in ("dl16", "ieee", "f32"):
        out = tmp_path / f"{numerics}.npz"
        arguments = ["--random", "5", "--numerics", numerics, "--check", "--outputs", str(out)]
        assert main(["run", str(bundle), *arguments]) == 0
        outputs[numerics] = out.read_bytes()
    assert len(set(outputs.values())) == 3


def test_baked_addresses_and_fewer_cores_give_outputs_within_the_bound(model: Path, tmp_path: Path) -> None:
    for index, options in enumerate([["--no-symbolic-args"], ["--cores", "1"], ["--cores", "5", "--fixed-io-layouts"]]):
        out = tmp_path / str(index)
        assert main(["compile", str(model), "-o", str(out), *options]) == 0
        assert main(["run", str(out), "--random", "3", "--check"]) == 0


def test_a_golden_bundle_is_compared_and_may_stand_alone(
    model: Path, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree_of(bundle)
    assert main(["compile", str(model), "--golden", str(bundle)]) == 0
    assert main(["compile", str(model), "--golden", str(bundle), "-o", str(tmp_path / "out"), "--cores", "2"]) == 1
    assert "differences from" in capsys.readouterr().out
    assert tree_of(bundle) == before
    assert (tmp_path / "out" / "manifest.json").is_file()


def test_force_replaces_a_bundle(model: Path, bundle: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["compile", str(model), "-o", str(out), "--cores", "2"]) == 0
    assert main(["compile", str(model), "-o", str(out)]) == 1
    assert main(["compile", str(model), "-o", str(out), "--force"]) == 0
    assert relative_tree(out) == relative_tree(bundle)


def test_passes_can_be_printed_timed_and_stopped(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["compile", str(model), "-o", str(out), "--print-after", "all", "--time-passes"]
    assert main([*arguments, "--stop-after", "decompose"]) == 0
    captured = capsys.readouterr()
    printed = [line for line in captured.out.splitlines() if line.startswith("// after")]
    assert printed == ["// after canonicalize", "// after decompose"]
    assert [line.split()[-1] for line in captured.err.splitlines()] == ["canonicalize", "decompose"]
    assert not out.exists()
    assert main(["compile", str(model), "-o", str(out), "--print-after", "decompose"]) == 0
    assert capsys.readouterr().out.count("// after") == 1


@pytest.mark.parametrize("option", ["--print-after", "--stop-after"])
def test_an_unknown_pass_is_a_usage_error(option: str, model: Path, tmp_path: Path) -> None:
    assert main(["compile", str(model), "-o", str(tmp_path / "out"), option, "no-such-pass"]) == 2
    assert not (tmp_path / "out").exists()


def test_a_target_file_limits_the_cores(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "half.json"
    target.write_text('{"format": "spyrec.target/1", "name": "half", "cores": 16}', encoding="utf-8")
    out = tmp_path / "out"
    assert main(["compile", str(model), "-o", str(out), "--target", str(target)]) == 0
    target_of_bundle = json.loads((out / "manifest.json").read_bytes())["target"]
    assert (target_of_bundle["name"], target_of_bundle["cores"]) == ("half", 16)
    assert target_of_bundle["lx_bytes"] == 2 << 20
    assert main(["run", str(out), "--random", "1", "--check"]) == 0
    assert main(["compile", str(model), "-o", str(tmp_path / "b"), "--target", str(target), "--cores", "17"]) == 2
