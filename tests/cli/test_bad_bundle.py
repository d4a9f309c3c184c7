"""Bad bundles and bad run inputs, end to end through ``spyrec run``: refused with a code, nothing left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.cli import main
from tests.cli.bad_input import refusals_of
from tests.handmade import add_bundle

HostArray = npt.NDArray[np.generic]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "bundle"
    add_bundle(tmp_path).save(path)
    return path


def test_the_undamaged_bundle_runs(bundle: Path, tmp_path: Path) -> None:
    assert main(["run", str(bundle), "--random", "1", "--outputs", str(tmp_path / "y.npz")]) == 0


FILES = ["manifest.json", "bundle.mlir", "sdsc_0.json", "dci/t0.h2d.json", "dci/t2.d2h.json"]


def remove(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def alter(path: Path) -> None:
    """Change one digit: the file stays well formed, so that only its hash shows it."""
    data = bytearray(path.read_bytes())
    position = next(i for i in range(len(data) // 2, len(data)) if chr(data[i]).isdigit())
    data[position] = ord("7") if data[position] != ord("7") else ord("3")
    path.write_bytes(bytes(data))


def replace_by_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = [
    (damage, name)
    for damage in (remove, truncate, empty, alter, replace_by_directory)
    for name in FILES
    if (damage, name) != (alter, "manifest.json")  # it holds the hashes: nothing holds its own
]


@pytest.mark.parametrize(("damage", "name"), DAMAGES)
def test_a_damaged_file_is_refused_by_name(
    damage: Callable[[Path], None], name: str, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(bundle / name)
    refusals = refusals_of(["run", str(bundle), "--random", "1"], tmp_path, capsys)
    shown = [f"{refusal.file} {refusal.message}" for refusal in refusals]
    assert any(name in text for text in shown) or name == "manifest.json", shown
    assert any(refusal.hint for refusal in refusals), refusals


@pytest.mark.parametrize("name", FILES)
def test_a_link_out_of_the_bundle_is_refused(
    name: str, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "outside.json"
    (bundle / name).rename(outside)
    (bundle / name).symlink_to(outside)
    refusals = refusals_of(["run", str(bundle), "--random", "1"], tmp_path, capsys)
    assert all(refusal.code.startswith("SPY06") for refusal in refusals), refusals


def test_no_verify_runs_a_bundle_whose_text_was_touched(bundle: Path, tmp_path: Path) -> None:
    program = bundle / "bundle.mlir"
    program.write_text(program.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert main(["run", str(bundle), "--random", "1"]) == 1
    assert main(["run", str(bundle), "--random", "1", "--no-verify"]) == 0


MANIFEST_CHANGES: dict[str, tuple[str, object]] = {
    "another version": ("format", "spyrec.bundle/2"),
    "unknown key": ("colour", 1),
    "plan without its program": ("plan", [{"program": "kernels/7", "arguments": ["t0", "t1", "t2"], "pool_bytes": 0}]),
    "plan that leaves the directory": ("plan", [{"program": "..", "arguments": ["t0", "t1", "t2"], "pool_bytes": 0}]),
    "plan of an unknown argument": ("plan", [{"program": ".", "arguments": ["t0", "t1", "t9"], "pool_bytes": 0}]),
    "output of an unknown argument": ("outputs", [{"name": "y", "argument": "t9"}]),
    "input of an unknown argument": ("inputs", ["t0", "t1", "t9"]),
    "too many cores": ("target", {"name": "spyre", "cores": 1000}),
    "huge pool": ("plan", [{"program": ".", "arguments": ["t0", "t1", "t2"], "pool_bytes": 2**62}]),
}


@pytest.mark.parametrize("how", MANIFEST_CHANGES)
def test_a_manifest_that_does_not_hold_together_is_refused(
    how: str, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, value = MANIFEST_CHANGES[how]
    path = bundle / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest[key] = value
    path.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    refusals_of(["run", str(bundle), "--random", "1"], tmp_path, capsys)


def good_inputs() -> dict[str, HostArray]:
    return {name: np.zeros((1024, 4096), np.float16) for name in ("t0", "t1")}


INPUT_CHANGES: dict[str, tuple[Callable[[dict[str, HostArray]], dict[str, HostArray]], str]] = {
    "missing": (lambda arrays: {"t0": arrays["t0"]}, "SPY0760"),
    "unknown": (lambda arrays: arrays | {"t3": arrays["t0"]}, "SPY0761"),
    "wrong shape": (lambda arrays: arrays | {"t1": arrays["t1"].T}, "SPY0762"),
    "wrong dtype": (lambda arrays: arrays | {"t1": arrays["t1"].astype(np.float32)}, "SPY0763"),
    "pickled": (lambda arrays: arrays | {"t1": np.array([None])}, "SPY0765"),
}


@pytest.mark.parametrize("how", INPUT_CHANGES)
def test_wrong_run_inputs_are_refused(
    how: str, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, code = INPUT_CHANGES[how]
    np.savez(tmp_path / "x.npz", **change(good_inputs()))  # pyright: ignore[reportArgumentType] -- see test_run_foreign
    arguments = ["run", str(bundle), "--inputs", str(tmp_path / "x.npz"), "--outputs", str(tmp_path / "y.npz")]
    refusals = refusals_of(arguments, tmp_path, capsys)
    assert [refusal.code for refusal in refusals] == [code]
    assert refusals[0].hint


def test_no_inputs_at_all_names_every_missing_one(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusals = refusals_of(["run", str(bundle)], tmp_path, capsys)
    assert [refusal.code for refusal in refusals] == ["SPY0760", "SPY0760"]


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".txt"])
def test_an_inputs_file_of_no_known_kind_is_refused(
    suffix: str, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"nonsense that is long enough")
    (refusal,) = refusals_of(["run", str(bundle), "--inputs", str(path)], tmp_path, capsys)
    assert refusal.code == "SPY0764"
    assert refusal.file == str(path)


def test_outputs_that_cannot_be_written_are_refused_before_the_run(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", str(bundle), "--random", "1", "--outputs", str(tmp_path / "absent" / "y.npz")]
    (refusal,) = refusals_of(arguments, tmp_path, capsys)
    assert refusal.code == "SPY0766"


@pytest.mark.parametrize(
    "options",
    [
        ["--random", "-1"],
        ["--random", "1", "--inputs", "{bundle}/manifest.json"],
        ["--inputs", "/nonexistent.npz"],
        ["--random", "1", "--max-executions", "-1"],
        ["--random", "1", "--numerics", "fp64"],
    ],
)
def test_an_option_out_of_range_is_a_usage_error(
    options: list[str], bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [option.replace("{bundle}", str(bundle)) for option in options]
    refusals_of(["run", str(bundle), *given], tmp_path, capsys, exit_code=2)


def test_an_empty_directory_is_no_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nothing").mkdir()
    refusals = refusals_of(["run", str(tmp_path / "nothing"), "--random", "1"], tmp_path, capsys)
    assert all(refusal.hint for refusal in refusals)


def test_looking_at_a_bundle_refuses_a_manifest_that_names_no_argument(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of the files has to be right for a look, but names of arguments are looked up."""
    whole = tmp_path / "whole"
    add_bundle(tmp_path).save(whole)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["plan"][0]["arguments"][1] = "t9"
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    for line in (["inspect", str(bundle)], ["diff", str(bundle), str(whole), "--semantic"], ["report", str(bundle)]):
        assert main(line) == 1
        found = capsys.readouterr()
        assert found.err.startswith('error[SPY0611]: argument "t9" does not exist'), line
    assert main(["diff", str(bundle), str(whole)]) == 1
    told = capsys.readouterr().out
    assert told.startswith("what changed cannot be told in words: ")
    assert 'argument "t9" does not exist (SPY0611)' in told
