"""Every bundle that torch-spyre wrote executes with the argument table beside it, and gives NumPy's numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.bundle.bundle import load_foreign
from spyrec.cli import main
from spyrec.hardware import dlfloat
from spyrec.runtime.inputs.random_inputs import random_inputs
from tests.cli.bad_input import refusals_of
from tests.foreign import EXAMPLES, argument_table, copy_example
from tests.support.runs import ready

Doubles = npt.NDArray[np.float64]
Array = npt.NDArray[np.generic]
Evaluate = Callable[..., Doubles]
TABLES = EXAMPLES.parent / "examples_args"
UNIT = dlfloat.UNIT_ROUNDOFF
AUGUST = EXAMPLES.parent / "examples_2026_08"
FORMS = ("host", "device")


def stored(values: Doubles) -> Doubles:
    """Return values as the device stores them between two operations."""
    return dlfloat.decode(dlfloat.encode(np.asarray(values).ravel())).astype(np.float64).reshape(np.shape(values))


def softmax_numerator(x: Doubles) -> Doubles:
    return np.exp(stored(x - x.max(axis=-1, keepdims=True)))


def layer_norm(x: Doubles, weight: Doubles, bias: Doubles) -> Doubles:
    mean = stored(x.mean(axis=-1, keepdims=True))
    mean_square = stored((x * x).mean(axis=-1, keepdims=True))
    eps = stored(np.array([1e-5]))
    scale = stored(1.0 / np.sqrt(mean_square - mean * mean + eps))
    return (x - mean) * scale * weight + bias


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel: what it computes of its inputs, and how many roundings its result may be off."""

    evaluate: Evaluate
    roundings: float = 1.0001
    only: str | None = None


def add(x: Doubles, y: Doubles) -> Doubles:
    return x + y


def clip(x: Doubles) -> Doubles:
    return np.clip(x, 0.0, 6.0)


def same(x: Doubles) -> Doubles:
    return x


def gather(index: Doubles, table: Doubles) -> Doubles:
    return table[index.astype(np.int64)]


def padded_product(a: Doubles, b: Doubles) -> Doubles:
    return a @ b[:200]


def column_maximum(x: Doubles) -> Doubles:
    return x.max(axis=0)


def row_sum(x: Doubles) -> Doubles:
    return np.asarray(x.sum(axis=1, keepdims=True))


def magnitude_of_exponential(x: Doubles) -> Doubles:
    return np.abs(stored(np.exp(x)))


def columns(x: Doubles) -> Doubles:
    return x[:, 64:192]


def choose(condition: Doubles, x: Doubles, y: Doubles) -> Doubles:
    return np.where(condition != 0, x, y)


# The sums of these inputs (eighths) are exact in float32, so one rounding is left.
CASES: dict[str, Case] = {
    "add": Case(add),
    "add_broadcast.sdsc_0": Case(add, only="sdsc_0.json"),
    "add_broadcast.sdsc_1": Case(add, only="sdsc_1.json"),
    "add_symbolic": Case(add),
    "add_unaligned_stick": Case(add),
    "bmm": Case(np.matmul),
    "clip_constants": Case(clip, 0.0),
    "dtype_cast.sdsc_0": Case(same, 0.0, only="sdsc_0.json"),
    "dtype_cast.sdsc_1": Case(same, 0.0, only="sdsc_1.json"),
    "indirect_gather_1d": Case(gather, 0.0),
    "layernorm": Case(layer_norm, 4.0),
    "matmul": Case(np.matmul),
    "matmul_kpad": Case(padded_product),
    "matmul_ksplit": Case(np.matmul),
    "max_nonstick": Case(column_maximum, 0.0),
    "pool_symbolic": Case(magnitude_of_exponential),
    "restickify": Case(same, 0.0),
    "slice_backgap": Case(columns, 0.0),
    "softmax_lx": Case(softmax_numerator),
    "softmax_lx_symbolic": Case(softmax_numerator),
    "sum_stick": Case(row_sum),
    "sum_stick_masked": Case(row_sum),
    "where3": Case(choose, 0.0),
}
WRONG = {"nested_loop_symbolic", "nested_loop_unrolled"}


def read_table(name: str, form: str) -> dict[str, Any]:
    return json.loads((TABLES / f"{name}.{form}.json").read_bytes())


def host_inputs(name: str) -> dict[str, Array]:
    """Return eighths from -4 to 4: every format holds them exactly."""
    generator = np.random.default_rng(5)
    arrays: dict[str, Array] = {}
    for entry in read_table(name, "host")["arguments"]:
        if entry["role"] != "input":
            continue
        shape, dtype = entry["shape"], entry["dtype"]
        low, high, unit = (0, 128, 8) if dtype == "int32" else (-32, 33, 1)  # rows of the table, or eighths
        values: npt.NDArray[np.int64] = np.asarray(generator.integers(low, high, tuple(shape)) * unit)
        arrays[entry["name"]] = (values > 0) if dtype == "bool" else (values / 8).astype(dtype)
    if name == "matmul_kpad":
        arrays["t1"][200:] = 0  # the rows that pad K
    return arrays


def device_places(entry: dict[str, Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return for every device element the flat place of its host element, and which hold one, by the stride map."""
    return places_of(*(tuple(entry[key]) for key in ("shape", "device_size", "stride_map")))


@lru_cache(maxsize=4)
def places_of(
    shape: tuple[int, ...], device_size: tuple[int, ...], stride_map: tuple[int, ...]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    host_strides = [int(np.prod(shape[dim + 1 :])) for dim in range(len(shape))]
    indices = [np.zeros(device_size, np.int64) for _ in shape]
    is_held = np.ones(device_size, np.bool_)
    for axis, (stride, extent) in enumerate(zip(stride_map, device_size, strict=True)):
        along = np.arange(extent).reshape([-1 if other == axis else 1 for other in range(len(device_size))])
        if stride < 0 or extent == 1:
            is_held &= along == 0
            continue
        owner = min((dim for dim, s in enumerate(host_strides) if s <= stride), key=lambda dim: -host_strides[dim])
        indices[owner] += along * (stride // host_strides[owner])
    for index, extent in zip(indices, shape, strict=True):
        is_held &= index < extent
    places = np.zeros(device_size, np.int64)
    for index, stride in zip(indices, host_strides, strict=True):
        places += index * stride
    return places, is_held


def in_device_form(entry: dict[str, Any], array: Array) -> Array:
    """Return an argument in device form, infinities where no element lies."""
    places, is_held = device_places(entry)
    result = np.full(places.shape, np.inf, np.float32)
    result[is_held] = array.astype(np.float32).reshape(-1)[places[is_held]]
    return result


def from_device_form(entry: dict[str, Any], array: Array) -> Doubles:
    places, is_held = device_places(entry)
    flat: Doubles = np.full(np.prod(entry["shape"], dtype=np.int64), np.nan)
    flat[places[is_held]] = array[is_held]
    return flat.reshape(entry["shape"])


def run(bundle: Path, table: Path, inputs: dict[str, Array], directory: Path, *options: str) -> dict[str, Array]:
    np.savez(directory / "x.npz", **inputs)  # pyright: ignore[reportArgumentType] -- the stub takes names for options
    files = ["--inputs", str(directory / "x.npz"), "--outputs", str(directory / "y.npz")]
    assert main(["run", str(bundle), "--args", str(table), *files, *options]) == 0
    with np.load(directory / "y.npz") as archive:
        return {name: archive[name] for name in archive.files}


def assert_right(got: Doubles, want: Doubles, roundings: float) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=roundings * UNIT, atol=roundings * 2.0**-11 if roundings > 2 else 0.0)


def test_every_example_has_its_cases_and_its_tables_describe_what_the_opspecs_allocate() -> None:
    names = {name.partition(".")[0] for name in CASES} | WRONG
    assert names == {path.name for path in EXAMPLES.iterdir()}
    assert {path.name for path in TABLES.iterdir()} == {f"{n}.{f}.json" for n in {*CASES, *WRONG} for f in FORMS}
    for name in {*CASES, *WRONG}:
        example, _, file = name.partition(".sdsc_")
        device = read_table(name, "device")
        assert device == argument_table(example, int(file) if file else None)
        host = read_table(name, "host")
        for entry in host["arguments"]:
            places, is_held = device_places(entry)
            count = np.prod(entry["shape"], dtype=np.int64)
            assert np.array_equal(np.bincount(places[is_held]), np.ones(count))
            for key in ("shape", "dtype", "stride_map"):
                del entry[key]
        assert host == device


@pytest.mark.parametrize("written", [EXAMPLES, AUGUST], ids=["2026-06", "2026-08"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", list(CASES))
def test_the_numbers_are_right(name: str, form: str, written: Path, tmp_path: Path) -> None:
    case = CASES[name]
    entries = {entry["name"]: entry for entry in read_table(name, "host")["arguments"]}
    host = host_inputs(name)
    inputs: dict[str, Array] = dict(host)
    if form == "device":
        inputs = {n: in_device_form(entries[n], array) for n, array in host.items()}
    if form == "device" and name == "matmul_kpad":
        inputs["t1"] = np.where(np.isinf(inputs["t1"].astype(np.float64)), 0.0, inputs["t1"]).astype(np.float32)
    bundle = written / name.partition(".")[0]
    only = () if case.only is None else ("--only", case.only)
    outputs = run(bundle, TABLES / f"{name}.{form}.json", inputs, tmp_path, *only)
    ((result, array),) = outputs.items()
    got = array.astype(np.float64) if form == "host" else from_device_form(entries[result], array)
    want = case.evaluate(*(host[n].astype(np.float64) for n in sorted(host)))
    assert_right(got, want, case.roundings)


@pytest.mark.parametrize("rows", [100, 128, 200])
def test_a_gather_takes_its_row_count_from_the_table(rows: int, tmp_path: Path) -> None:
    table = read_table("indirect_gather_1d", "host")
    entry = table["arguments"][1]
    entry["device_size"][1], entry["shape"][0] = rows, rows
    (tmp_path / "args.json").write_text(json.dumps(table), encoding="utf-8")
    generator = np.random.default_rng(2)
    index = generator.integers(0, rows, 64).astype(np.int32)
    values = (generator.integers(-32, 33, (rows, 256)) / 8).astype(np.float16)
    inputs: dict[str, Array] = {"t0": index, "t1": values}
    outputs = run(EXAMPLES / "indirect_gather_1d", tmp_path / "args.json", inputs, tmp_path)
    np.testing.assert_array_equal(outputs["t2"], values[index])


def test_a_row_past_the_tables_rows_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = np.full(64, 128, np.int32)
    np.savez(tmp_path / "x.npz", t0=index, t1=np.zeros((128, 256), np.float16))
    arguments = ["run", str(EXAMPLES / "indirect_gather_1d"), "--inputs", str(tmp_path / "x.npz")]
    table = str(TABLES / "indirect_gather_1d.host.json")
    (refusal,) = refusals_of([*arguments, "--args", table], tmp_path, capsys)
    assert refusal.code == "SPY0706"
    assert "is row 128; the table has 128 rows" in refusal.message


@pytest.mark.parametrize("sanitize", ["bounds", "all"])
def test_a_row_past_the_tables_rows_is_a_finding_with_tensor_address_and_element(sanitize: str) -> None:
    index = np.zeros(64, np.int32)
    index[37] = -1
    bundle = load_foreign(EXAMPLES / "indirect_gather_1d", TABLES / "indirect_gather_1d.host.json")
    inputs: dict[str, Array] = {"t0": index, "t1": np.zeros((128, 256), np.float16)}
    result = spyrec.run(bundle, inputs, spyrec.RunOptions(sanitize=sanitize))
    (found,) = result.sanitizer
    assert (found.sanitizer.value, found.tensor, found.element) == ("bounds", "t0", (37,))
    assert found.device_coordinate == (0, 1, 5)
    assert found.address is not None
    assert found.address % (1 << 34) == 37 * 4
    assert "index [37]" in found.message
    assert "row -1" in found.message


@pytest.mark.parametrize("rows", [1, 100, 128])
@pytest.mark.parametrize("form", FORMS)
def test_random_row_numbers_are_uniform_over_the_rows_of_their_table(form: str, rows: int, tmp_path: Path) -> None:
    table = read_table("indirect_gather_1d", form)
    entry = table["arguments"][1]
    entry["device_size"][1] = rows
    if form == "host":
        entry["shape"][0] = rows
    (tmp_path / "args.json").write_text(json.dumps(table), encoding="utf-8")
    bundle = load_foreign(EXAMPLES / "indirect_gather_1d", tmp_path / "args.json")
    with ready(bundle) as run:
        drawn = random_inputs(run.inputs, 3)
        wanted = np.random.Generator(np.random.PCG64(3)).integers(0, rows, drawn["t0"].shape)
        np.testing.assert_array_equal(drawn["t0"], wanted)
        if form == "host":
            np.testing.assert_array_equal(run.run(drawn).outputs["t2"].shape, (64, 256))
    arguments = ["run", str(EXAMPLES / "indirect_gather_1d"), "--args", str(tmp_path / "args.json"), "--random", "3"]
    assert main(arguments) == 0


# --- the two that are wrong -----------------------------------------------------------------------------------------

ITS_STEPS = "33554432*d0 + 2147483648*d1"
RIGHT_STEPS = "65536*d0 + 2097152*d1"


def test_loop_steps_that_are_no_tile_steps_are_refused_with_the_map_and_both_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", str(EXAMPLES / "nested_loop_symbolic"), "--random", "1"]
    table = str(TABLES / "nested_loop_symbolic.host.json")
    refusals = refusals_of([*arguments, "--args", table], tmp_path, capsys)
    steps = [refusal for refusal in refusals if refusal.code == "SPY0720"]
    # two HBM operands of each SuperDSC, two loops
    assert len(steps) == 8
    for refusal, found in zip(steps, (33554432, 2147483648) * 4, strict=True):
        assert f"#map_0 advances it by {found} bytes" in refusal.message
        assert "mb: 65536" in refusal.message
        assert "out: 2097152" in refusal.message


def test_with_corrected_steps_the_loops_are_right(tmp_path: Path) -> None:
    bundle = copy_example("nested_loop_symbolic", tmp_path)
    text = (bundle / "bundle.mlir").read_text(encoding="utf-8")
    assert text.count(ITS_STEPS) == 1
    (bundle / "bundle.mlir").write_text(text.replace(ITS_STEPS, RIGHT_STEPS), encoding="utf-8")
    host = host_inputs("nested_loop_symbolic")
    outputs = run(bundle, TABLES / "nested_loop_symbolic.host.json", host, tmp_path)
    a, b, c = (host[name].astype(np.float64) for name in sorted(host))
    assert_right(outputs["t3"].astype(np.float64), stored(a + b) * c, 1.0001)


def test_under_the_bounds_sanitizer_the_run_stops_at_the_first_access_outside_the_argument(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", str(EXAMPLES / "nested_loop_symbolic"), "--random", "1", "--sanitize", "bounds"]
    table = str(TABLES / "nested_loop_symbolic.host.json")
    assert main(["--diagnostics=json", *arguments, "--args", table, "--json"]) == 1
    printed = capsys.readouterr()
    messages = [json.loads(line) for line in printed.err.splitlines()]
    assert {item["severity"] for item in messages if item["code"] == "SPY0720"} == {"warning"}
    findings = json.loads(printed.out)["sanitizer"]
    assert findings[0]["sanitizer"] == "bounds"
    assert (findings[0]["file"], findings[0]["tensor"]) == ("sdsc_0.json", "t0")


def test_tiles_that_overlap_inside_the_argument_are_reported_by_their_layout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", str(EXAMPLES / "nested_loop_unrolled"), "--random", "1"]
    table = str(TABLES / "nested_loop_unrolled.host.json")
    refusals = refusals_of([*arguments, "--args", table], tmp_path, capsys)
    assert {refusal.code for refusal in refusals} == {"SPY0716"}
    extents = [refusal for refusal in refusals if "contradict argument" in refusal.message]
    # two HBM operands in each of 16 SuperDSCs
    assert len(extents) == 32
    assert all("[64, 512]" in item.message and "device_size is [64, 1024, 64]" in item.message for item in extents)
