"""Bundles written by others run with an argument table, and give the right numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.cli import main
from spyrec.hardware import dlfloat
from tests.cli.bad_input import refusals_of
from tests.foreign import argument_table, copy_example, write_table

Array = npt.NDArray[np.float32]


def values(shape: list[int], seed: int) -> Array:
    """Return normal values that the device holds exactly."""
    drawn = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return dlfloat.decode(dlfloat.encode(drawn.ravel())).reshape(shape)


def run_example(
    directory: Path, example: str, table: dict[str, Any], *options: str
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Run an example on random inputs in device form; return inputs and outputs."""
    bundle = copy_example(example, directory)
    inputs = {
        entry["name"]: values(entry["device_size"], index)
        for index, entry in enumerate(table["arguments"])
        if entry["role"] == "input"
    }
    np.savez(directory / "x.npz", **inputs)  # pyright: ignore[reportArgumentType] -- the stub takes names for options
    arguments = ["--inputs", str(directory / "x.npz"), "--outputs", str(directory / "y.npz")]
    args = str(write_table(directory, table))
    assert main(["run", str(bundle), "--args", args, *arguments, *options]) == 0
    with np.load(directory / "y.npz") as archive:
        return inputs, {name: archive[name] for name in archive.files}


def assert_rounded(got: Array, want: npt.NDArray[np.float64]) -> None:
    np.testing.assert_allclose(got, want, rtol=dlfloat.UNIT_ROUNDOFF * 1.0001, atol=2.0**-31)


@pytest.mark.parametrize("example", ["add", "add_symbolic"])
def test_an_addition_is_right_baked_and_symbolic(example: str, tmp_path: Path) -> None:
    inputs, outputs = run_example(tmp_path, example, argument_table(example))
    assert_rounded(outputs["t2"], inputs["t0"].astype(np.float64) + inputs["t1"])


def test_arguments_in_host_form_are_laid_out_by_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = argument_table("add")
    for entry in table["arguments"]:
        entry |= {"shape": [1024, 4096], "dtype": "float16", "stride_map": [64, 4096, 1]}
    bundle = copy_example("add", tmp_path)
    a, b = (np.random.default_rng(i).standard_normal((1024, 4096)).astype(np.float16) for i in range(2))
    np.savez(tmp_path / "x.npz", t0=a, t1=b)
    arguments = ["--args", str(write_table(tmp_path, table)), "--inputs", str(tmp_path / "x.npz"), "--json"]
    assert main(["run", str(bundle), *arguments, "--outputs", str(tmp_path / "y.npz")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["outputs"] == {"t2": {"shape": [1024, 4096], "dtype": "float16"}}
    tensor_bytes = 1024 * 4096 * 2
    total = report["stats"]["total"]
    assert (total["hbm_read_bytes"], total["hbm_write_bytes"]) == (2 * tensor_bytes, tensor_bytes)
    assert (total["dma_h2d_bytes"], total["dma_d2h_bytes"]) == (2 * tensor_bytes, tensor_bytes)
    (operation,) = report["stats"]["ops"]
    assert (operation["file"], operation["op"], operation["executions"]) == ("sdsc_0.json", "add", 1)
    with np.load(tmp_path / "y.npz") as archive:
        want = a.astype(np.float64) + b.astype(np.float64)
        # two roundings of the inputs, one of the sum, one back to float16
        bound = (np.abs(a) + np.abs(b)).astype(np.float64) * 2**-10 + np.abs(want) * (2**-10 + 2**-11) * 1.01 + 2**-24
        assert np.all(np.abs(archive["t2"].astype(np.float64) - want) <= bound)


def test_only_runs_one_kernel_of_a_directory_that_holds_two(tmp_path: Path) -> None:
    inputs, outputs = run_example(
        tmp_path, "add_broadcast", argument_table("add_broadcast", 0), "--only", "sdsc_0.json"
    )
    # [64][1024 rows][64] plus a row vector [64][64]
    want = inputs["t0"].astype(np.float64) + inputs["t1"].reshape(inputs["t0"].shape[0], 1, 64)
    assert_rounded(outputs["t2"], want)


def test_a_chain_through_the_scratchpad_is_right(tmp_path: Path) -> None:
    inputs, outputs = run_example(tmp_path, "softmax_lx", argument_table("softmax_lx"))
    x = inputs["t0"]  # [stick columns][rows][64]
    distance = x - x.max(axis=(0, 2), keepdims=True)
    stored = dlfloat.decode(dlfloat.encode(distance.ravel())).reshape(x.shape)
    assert_rounded(outputs["t1"], np.exp(stored.astype(np.float64)))


def test_a_pool_is_allocated_for_intermediates(tmp_path: Path) -> None:
    table = argument_table("pool_symbolic")
    assert table["pool_bytes"] > 0
    _, outputs = run_example(tmp_path, "pool_symbolic", table)
    assert all(np.isfinite(array).all() for array in outputs.values())


def test_random_inputs_in_device_form_are_drawn_from_the_seed(tmp_path: Path) -> None:
    bundle = copy_example("add", tmp_path)
    args = write_table(tmp_path, argument_table("add"))
    written: list[bytes] = []
    for seed in ("1", "1", "2"):
        out = tmp_path / "y.npz"
        assert main(["run", str(bundle), "--args", str(args), "--random", seed, "--outputs", str(out)]) == 0
        written.append(out.read_bytes())
    assert written[0] == written[1] != written[2]


@pytest.fixture
def add_bundle(tmp_path: Path) -> Path:
    return copy_example("add", tmp_path)


def test_a_bundle_without_manifest_needs_a_table(
    add_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (refusal,) = refusals_of(["run", str(add_bundle), "--random", "1"], tmp_path, capsys)
    assert refusal.code == "SPY0615"
    assert "--args" in (refusal.hint or "")


def test_only_of_an_unknown_file_is_refused(
    add_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = str(write_table(tmp_path, argument_table("add")))
    arguments = ["run", str(add_bundle), "--args", args, "--random", "1", "--only", "sdsc_9.json"]
    (refusal,) = refusals_of(arguments, tmp_path, capsys)
    assert refusal.code == "SPY0768"
    assert "sdsc_0.json" in (refusal.hint or "")


def test_too_many_executions_are_refused(add_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = str(write_table(tmp_path, argument_table("add")))
    arguments = ["run", str(add_bundle), "--args", args, "--random", "1", "--max-executions", "0"]
    (refusal,) = refusals_of(arguments, tmp_path, capsys)
    assert refusal.code == "SPY0767"


def test_check_without_a_graph_is_refused(add_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = str(write_table(tmp_path, argument_table("add")))
    arguments = ["run", str(add_bundle), "--args", args, "--random", "1", "--check"]
    (refusal,) = refusals_of(arguments, tmp_path, capsys)
    assert refusal.code == "SPY0769"


def change_table(table: dict[str, Any], how: str) -> None:
    match how:
        case "wrong format":
            table["format"] = "spyrec.args/2"
        case "unknown key":
            table["arguments"][0]["colour"] = 1
        case "missing argument":
            del table["arguments"][2]
        case "duplicate index":
            table["arguments"][1]["arg_index"] = 0
        case "extents that contradict the file":
            table["arguments"][0]["device_size"] = [32, 1024, 64]
        case "huge extents":
            table["arguments"][0]["device_size"] = [2**40, 2**40, 64]
        case "negative extent":
            table["arguments"][0]["device_size"] = [-64, 1024, 64]
        case _:
            table["arguments"][0]["device_dtype"] = "SEN999"


@pytest.mark.parametrize(
    "how",
    [
        "wrong format",
        "unknown key",
        "missing argument",
        "duplicate index",
        "extents that contradict the file",
        "huge extents",
        "negative extent",
        "unknown format",
    ],
)
def test_a_bad_argument_table_is_refused(
    how: str, add_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = argument_table("add")
    change_table(table, how)
    args = str(write_table(tmp_path, table))
    refusals_of(["run", str(add_bundle), "--args", args, "--random", "1"], tmp_path, capsys)


@pytest.mark.parametrize("name", ["../add2/sdsc_0.json", "/etc/passwd", "link.json", "absent.json", ".."])
def test_an_sdsc_filename_that_leaves_the_directory_is_refused(
    name: str, add_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "add2"
    outside.mkdir()
    (outside / "sdsc_0.json").write_bytes((add_bundle / "sdsc_0.json").read_bytes())
    (add_bundle / "link.json").symlink_to(outside / "sdsc_0.json")
    program = add_bundle / "bundle.mlir"
    program.write_text(program.read_text(encoding="utf-8").replace("sdsc_0.json", name), encoding="utf-8")
    args = str(write_table(tmp_path, argument_table("add")))
    refusals = refusals_of(["run", str(add_bundle), "--args", args, "--random", "1"], tmp_path, capsys)
    assert all(refusal.code.startswith("SPY06") for refusal in refusals), refusals
