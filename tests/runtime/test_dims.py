"""Sizes of dims that a run gives by name: each that a dim takes gives what NumPy gives, nothing beyond is touched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.bundle.device_program import DeviceProgram
from spyrec.cli import main
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.opspec import OpSpecFile
from spyrec.codegen.opspec_json import read_opspecs, write_opspecs
from spyrec.codegen.opspec_table import manifest_of_opspecs
from spyrec.diagnostics import SpyrecError
from spyrec.front import OpenedBundle, opened
from spyrec.hardware import dlfloat
from spyrec.hardware.target import SPYRE_2026_08
from spyrec.options import RunOptions
from tests.emulator.test_dynamic_sizes import several
from tests.support.examples import examples
from tests.support.graphs import graph_data, node, tensor

Json = dict[str, object]
Floats = npt.NDArray[np.float32]
AUGUST = Path(__file__).parents[1] / "fixtures" / "examples_2026_08"


def operand(index: int, rows: int, columns: int, *, is_input: bool = True) -> Json:
    return {
        "is_input": is_input, "arg_index": index, "name": "xyz"[index], "device_dtype": "SEN169_FP16",
        "device_size": [columns // 64, rows, 64], "allocation": {"hbm": index << 34},
        "device_coordinates": ["floor(c1/64)", "c0", "Mod(c1, 64)"],
    }  # fmt: skip


def program(rows: int, columns: int, step: int, op: str = "add", cut: int = 1) -> OpSpecFile:
    """An operation over ``rows`` at most, multiples of ``step``, by the name "rows"."""
    inputs = 2 if op == "add" else 1
    spec: Json = {
        "op": op, "is_reduction": False,
        "iteration_space": [
            {"symbol": "c0", "size": "rows", "work_division": 1},
            {"symbol": "c1", "size": columns, "work_division": cut},
        ],
        "args": [*(operand(i, rows, columns) for i in range(inputs)), operand(inputs, rows, columns, is_input=False)],
        "symbolic_dim_bounds": {"rows": {"max": rows, "granularity": step}},
    }  # fmt: skip
    content = {"format": "spyrec.opspec/1", "symbolic_args": True, "unroll_loops": False, "specs": [spec]}
    return read_opspecs(json.dumps(content))


def bundle_of(file: OpSpecFile) -> Bundle:
    emitted = emit_opspecs(file, CodegenOptions())
    made = DeviceProgram(".", emitted.program, emitted.superdscs)
    manifest = manifest_of_opspecs(file, made, SPYRE_2026_08, "b")
    return Bundle(manifest, (made,), opspecs_json=write_opspecs(file).encode())


def drawn(shape: tuple[int, ...], seed: int) -> Floats:
    """Return numbers that the device stores as they are."""
    return dlfloat.decode(dlfloat.encode(np.random.default_rng(seed).standard_normal(shape))).astype(np.float32)


def ran(bundle: Bundle, inputs: Mapping[str, Floats], options: RunOptions) -> tuple[Floats, Floats, int]:
    """Return the result "y" or "z" of a run that was checked, what its buffer holds, and the bytes written."""
    (result,) = (name for name, _ in bundle.manifest.outputs)
    with opened(bundle, options) as found:
        assert isinstance(found, OpenedBundle)
        run = found.run(inputs)
        assert run.is_ok
        size = next(item.device_size for item in bundle.manifest.arguments if item.name == result)
        held = dlfloat.decode(found.prepared.argument_memory(result).view(np.uint16)).astype(np.float32).reshape(size)
    written = sum(item.hbm_write_bytes for item in run.stats.ops)
    return run.outputs[result].astype(np.float32), held, written


@examples(25)
@given(st.integers(1, 5), st.sampled_from([1, 2, 8]), st.sampled_from([64, 128]), st.integers(0, 99), st.data())
def test_every_size_that_a_dim_takes_gives_what_numpy_gives(
    count: int, step: int, columns: int, seed: int, data: st.DataObject
) -> None:
    rows, size = count * step, data.draw(st.integers(1, count)) * step
    cut = data.draw(st.sampled_from([1, columns // 64]))
    engine = data.draw(st.sampled_from(["fast", "reference"]))
    bundle = bundle_of(program(rows, columns, step, cut=cut))
    given_to_it = {name: drawn((columns // 64, size, 64), seed + i) for i, name in enumerate("xy")}
    got, held, written = ran(bundle, given_to_it, RunOptions(dims={"rows": size}, check=True, engine=engine))
    exact = given_to_it["x"].astype(np.float64) + given_to_it["y"]
    assert got.shape == exact.shape
    assert np.all(np.abs(got - exact) <= 2.0**-10 * np.abs(exact))
    assert np.array_equal(held[:, :size], got)
    assert written == 2 * exact.size


def test_nothing_behind_the_size_is_touched() -> None:
    bundle = bundle_of(program(8, 128, 2, "exp"))
    for size in (2, 4, 6, 8):
        whole = drawn((2, 8, 64), size)  # what lies behind is no 0, and e to the 0 is none either
        for sanitize in (None, "all"):
            options = RunOptions(dims={"rows": size}, check=True, sanitize=sanitize)
            got, held, written = ran(bundle, {"x": whole}, options)
            assert np.allclose(got, np.exp(whole[:, :size]), rtol=4e-3)
            assert np.all(held[:, size:] == np.inf)  # fresh memory, all bits set
            assert written == 2 * 2 * size * 64


def test_the_shapes_of_inputs_say_it_too() -> None:
    bundle = bundle_of(program(8, 64, 2))
    x, y = drawn((1, 6, 64), 1), drawn((1, 6, 64), 2)
    for dims in ({}, {"rows": 6}):
        result = spyrec.run(bundle, {"x": x, "y": y}, RunOptions(check=True, dims=dims))
        assert result.is_ok
        assert np.allclose(result.outputs["z"], x + y, rtol=2e-3)
    for shapes, code in (((6, 4), "SPY0762"), ((3, 3), "SPY0762"), ((10, 10), "SPY0762")):
        inputs = {name: np.ones((1, rows, 64), np.float32) for name, rows in zip("xy", shapes, strict=True)}
        with pytest.raises(SpyrecError, match=code):
            spyrec.run(bundle, inputs)
    with pytest.raises(SpyrecError, match=r"SPY0762.*takes \[1, rows \(4\), 64\]"):
        spyrec.run(bundle, {"x": x, "y": y}, RunOptions(dims={"rows": 4}))


@pytest.mark.parametrize(
    ("dims", "code"),
    [
        ({"rows": 0}, "SPY0994"),
        ({"rows": 1}, "SPY0994"),
        ({"rows": 3}, "SPY0994"),
        ({"rows": 10}, "SPY0994"),
        ({"rows": -2}, "SPY0994"),
        ({"rows": True}, "SPY0994"),
        ({"rows": 2.0}, "SPY0994"),
        ({"row": 2}, 'SPY0993.*did you mean "rows"'),
        ({"sym_0_1_base": 2}, "SPY0993"),
        ({3: 2}, "SPY0993"),
    ],
)
def test_what_a_dim_does_not_take_is_refused(dims: Mapping[str, int], code: str) -> None:
    bundle = bundle_of(program(8, 64, 2))
    with pytest.raises(SpyrecError, match=f"(?s){code}"):
        spyrec.run(bundle, {}, RunOptions(dims=dims))
    still = bundle_of(program(8, 64, 2))
    assert spyrec.run(still, {name: drawn((1, 8, 64), 3) for name in "xy"}, RunOptions(check=True)).is_ok


def test_a_check_at_a_size_sees_a_wrong_element_and_no_other() -> None:
    from spyrec.compare.check_opspecs import check_opspecs

    bundle = bundle_of(program(8, 64, 2))
    x, y = drawn((1, 4, 64), 1), drawn((1, 4, 64), 2)
    outputs = spyrec.run(bundle, {"x": x, "y": y}).outputs
    assert check_opspecs(bundle, {"x": x, "y": y}, outputs)["z"].element_count == 4 * 64
    wrong = outputs["z"].copy()
    wrong[0, 3, 5] += 1
    report = check_opspecs(bundle, {"x": x, "y": y}, {"z": wrong})["z"]
    assert (report.ok, report.failed_elements) == (False, 1)
    assert report.worst.index == (0, 3, 5)


def test_the_command_line_gives_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, bundle, results = tmp_path / "o.json", tmp_path / "b", tmp_path / "y.npz"
    source.write_text(write_opspecs(program(8, 64, 2)))
    assert main(["codegen", str(source), "-o", str(bundle)]) == 0
    assert main(["check", str(bundle)]) == 0
    run = ["run", str(bundle), "--random", "1", "--check", "--outputs", str(results), "--force"]
    for size in (2, 8):
        assert main([*run, "--dim", f"rows={size}"]) == 0
        assert np.load(results)["z"].shape == (1, size, 64)
    assert main(run) == 0
    assert np.load(results)["z"].shape == (1, 8, 64)
    capsys.readouterr()
    assert main([*run, "--dim", "rows=3"]) == 1
    assert "SPY0994" in capsys.readouterr().err
    for wrong in (["--dim", "rows"], ["--dim", "=2"], ["--dim", "rows=x"], ["--dim", "rows=2", "--dim", "rows=4"]):
        assert main([*run, *wrong]) == 2


def test_bundles_of_others_take_sizes_by_the_names_of_their_superdscs(tmp_path: Path) -> None:
    directory, table = tmp_path / "b", tmp_path / "args.json"
    bundle = bundle_of(program(8, 64, 2))
    bundle.save(directory)
    for name in ("manifest.json", "opspecs.json"):
        (directory / name).unlink()
    rows: list[Json] = [
        {"name": item.name, "role": item.role.value, "arg_index": item.arg_index, "address": None, "shape": None,
         "dtype": None, "stride_map": None, "device_size": list(item.device_size), "device_dtype": "SEN169_FP16"}
        for item in bundle.manifest.arguments
    ]  # fmt: skip
    inputs = {name: drawn((1, 8, 64), 3) for name in "xy"}
    for values, stated in (({}, 8), ({"sym_0_1_base": 2}, 2)):
        content = {"format": "spyrec.args/1", "arguments": rows, "pool_bytes": 0, "values": values}
        table.write_text(json.dumps(content))
        foreign = load_foreign(directory, table)
        for dims, size in (({}, stated), ({"rows": 4}, 4), ({"rows": 8}, 8)):
            result = spyrec.run(foreign, inputs, RunOptions(dims=dims))
            assert result.stats.total.hbm_write_bytes == 128 * size
            assert np.allclose(result.outputs["z"][:, :size], (inputs["x"] + inputs["y"])[:, :size], rtol=2e-3)
        with pytest.raises(SpyrecError, match="SPY0994"):
            spyrec.run(foreign, inputs, RunOptions(dims={"rows": 5}))


def test_symbolic_dims_of_graphs_take_sizes_too(tmp_path: Path) -> None:
    data = graph_data([tensor("x", "S", 64)], [node("y", "exp", "x")], ["y"])  # pyright: ignore[reportArgumentType] -- a symbolic extent
    bundle = spyrec.compile({**data, "dims": {"S": {"min": 2, "max": 8, "multiple_of": 2}}})
    bundle.save(tmp_path / "b")
    results = tmp_path / "y.npz"
    for size in (2, 6, 8):
        x = np.random.default_rng(size).standard_normal((size, 64)).astype(np.float16)
        for dims in ({}, {"S": size}):
            result = spyrec.run(bundle, {"x": x}, RunOptions(check=True, dims=dims))
            assert result.is_ok
            assert np.allclose(result.outputs["y"], np.exp(x.astype(np.float64)), rtol=4e-3)
        run = ["run", str(tmp_path / "b"), "--random", "1", "--check", "--outputs", str(results), "--force"]
        assert main([*run, "--dim", f"S={size}"]) == 0
        assert np.load(results)["y"].shape == (size, 64)
        assert main([*run[:2], "--random", "1", "--bisect", "--dim", f"S={size}"]) == 0
    with pytest.raises(SpyrecError, match="SPY0762"):
        spyrec.run(bundle, {"x": np.ones((6, 64), np.float16)}, RunOptions(dims={"S": 4}))
    with pytest.raises(SpyrecError, match="SPY0994"):
        spyrec.run(bundle, {"x": np.ones((6, 64), np.float16)}, RunOptions(dims={"S": 5}))


def test_the_case_of_upstream_runs_at_each_of_its_sizes(tmp_path: Path) -> None:
    source = AUGUST / "add_dynamic_rows" / "opspecs.json"
    bundle = bundle_of(read_opspecs(source.read_bytes(), str(source)))
    bundle.save(tmp_path / "b")
    loaded = Bundle.load(tmp_path / "b")
    assert loaded.manifest.symbolic_dims == bundle.manifest.symbolic_dims
    for size in range(64, 513, 64):
        assert main(["run", str(tmp_path / "b"), "--random", "1", "--check", "--dim", f"s0={size}"]) == 0


def test_sizes_of_several_dims_reach_the_dims_that_have_their_names() -> None:
    bundle = bundle_of(several())
    flat, deep = drawn((2, 128, 64), 1), drawn((6, 2, 128, 64), 2)
    for a, b, c in ((64, 128, 4), (128, 64, 2), (64, 64, 6), (128, 128, 6)):
        dims = {"c": c, "a": a, "b": b}
        result = spyrec.run(bundle, {"arg_0": flat, "arg_2": deep}, RunOptions(dims=dims, check=True))
        assert result.is_ok
        # rows of arg_1 count "a", those of arg_3 "b"; the size along sticks follows from no shape
        assert result.outputs["arg_1"].shape == (2, a, 64)
        assert result.outputs["arg_3"].shape == (c, 2, b, 64)
        assert np.array_equal(result.outputs["arg_1"][: b // 64], np.abs(flat)[: b // 64, :a])
        assert np.array_equal(result.outputs["arg_3"][:, : a // 64], -deep[:c, : a // 64, :b])
        sticks = a * b // 64 + a * b * c // 64
        assert result.stats.total.hbm_write_bytes == 128 * sticks


@pytest.mark.parametrize(
    ("axes", "dims", "fact"),
    [
        ([None, "zz", None], {}, '"zz" does not exist'),
        (["rows"], {}, "1 axes for 3 extents"),
        (["rows", None, None], {}, '"rows" has up to 8 elements, the axis 1'),
        ([None, "rows", None], {"max": 16}, '"rows" has up to 16 elements, the axis 8'),
        ([None, "rows", None], {"multiple_of": 16}, '"rows" has no size'),
        ([None, "rows", None], None, '"rows" does not exist'),
    ],
)
def test_a_manifest_whose_dims_do_not_fit_is_refused(
    axes: list[str | None], dims: dict[str, int] | None, fact: str, tmp_path: Path
) -> None:
    bundle_of(program(8, 64, 2)).save(tmp_path / "b")
    path = tmp_path / "b" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["arguments"][0]["symbolic_axes"] = axes
    if dims is None:
        del manifest["symbolic_dims"]
    else:
        manifest["symbolic_dims"]["rows"].update(dims)
    path.write_text(json.dumps(manifest))
    with pytest.raises(SpyrecError, match=f"SPY0611.*{fact}"):
        Bundle.load(tmp_path / "b", verify=False)
