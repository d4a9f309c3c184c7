"""Comparisons and selections of float32 in OpSpecs: NumPy's answers on pairs of special numbers, and on random ones.

torch-spyre's list of operations on IEEE_FP32 has the selection, and since August 2026 the comparisons; graphs compare
16-bit floats alone, as before.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.dialects import AUGUST_2026, JUNE_2026
from spyrec.cli import main
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.opspec import OpSpecFile
from spyrec.codegen.opspec_json import read_opspecs, write_opspecs
from spyrec.codegen.opspec_table import manifest_of_opspecs
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.target import SPYRE_2026_08
from spyrec.ir.opdef import catalogue
from spyrec.options import RunOptions
from tests.support.examples import examples
from tests.support.graphs import graph_data, node

Floats = npt.NDArray[np.float32]
LANES = 32

COMPARISONS = {
    "equal": np.equal,
    "notequal": np.not_equal,
    "greaterequal": np.greater_equal,
    "greaterthan": np.greater,
    "lesserequal": np.less_equal,
    "lesserthan": np.less,
}
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 1.0 + 2.0**-23, 2.0**-126, -(2.0**-126), 3.4e38, -3.4e38, np.inf, -np.inf, np.nan],
    np.float32,
)


def operand(index: int, sticks: int, rows: int, fmt: str, *, is_input: bool) -> dict[str, object]:
    return {
        "is_input": is_input, "arg_index": index, "name": "abcd"[index], "device_dtype": fmt,
        "device_size": [sticks, rows, LANES if fmt == "IEEE_FP32" else 64], "allocation": {"hbm": index << 34},
        "device_coordinates": [f"floor(c1/{LANES})", "c0", f"Mod(c1, {LANES})"]
        if fmt == "IEEE_FP32" else ["floor(c1/64)", "c0", "Mod(c1, 64)"],
    }  # fmt: skip


def program(op: str, rows: int, columns: int, cut: int = 1, formats: tuple[str, ...] = ()) -> OpSpecFile:
    count = 4 if op == "where3" else 3
    chosen = formats or ("IEEE_FP32",) * count
    sticks = [columns // (LANES if fmt == "IEEE_FP32" else 64) for fmt in chosen]
    args = [operand(i, sticks[i], rows, chosen[i], is_input=i < count - 1) for i in range(count)]
    spec = {
        "op": op, "is_reduction": False, "args": args,
        "iteration_space": [
            {"symbol": "c0", "size": rows, "work_division": cut}, {"symbol": "c1", "size": columns, "work_division": 1},
        ],
    }  # fmt: skip
    content = {"format": "spyrec.opspec/1", "symbolic_args": True, "unroll_loops": False, "specs": [spec]}
    return read_opspecs(json.dumps(content))


def bundle_of(file: OpSpecFile) -> Bundle:
    emitted = emit_opspecs(file, CodegenOptions())
    made = DeviceProgram(".", emitted.program, emitted.superdscs)
    manifest = manifest_of_opspecs(file, made, SPYRE_2026_08, "b")
    return Bundle(manifest, (made,), opspecs_json=write_opspecs(file).encode())


def ran(op: str, operands: list[Floats], options: RunOptions, cut: int = 1) -> Floats:
    """Return what an operation gives for operands in device form."""
    sticks, rows, _ = operands[0].shape
    bundle = bundle_of(program(op, rows, sticks * LANES, cut))
    result = spyrec.run(bundle, dict(zip("abc", operands, strict=False)), options)
    assert result.is_ok
    (output,) = result.outputs.values()
    return output.astype(np.float32)


def pairs() -> tuple[Floats, Floats]:
    """Return every pair of special numbers, filled up to whole sticks."""
    x, y = np.meshgrid(SPECIAL, SPECIAL)
    size = -(-x.size // (2 * LANES)) * 2 * LANES
    return tuple(np.resize(item.ravel(), size).reshape(2, -1, LANES) for item in (x, y))  # pyright: ignore[reportReturnType] -- two of them


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("op", COMPARISONS)
def test_every_pair_of_special_numbers_compares_as_in_ieee_754(op: str, engine: str) -> None:
    x, y = pairs()
    got = ran(op, [x, y], RunOptions(engine=engine))
    assert np.array_equal(got, COMPARISONS[op](x, y).astype(np.float32))


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_selection_takes_whatever_is_no_zero_for_true(engine: str) -> None:
    condition, x = pairs()
    y = np.arange(x.size, dtype=np.float32).reshape(x.shape)
    got = ran("where3", [condition, x, y], RunOptions(engine=engine))
    assert np.array_equal(got, np.where(condition != 0, x, y), equal_nan=True)
    assert np.array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(np.where(condition != 0, x, y)[~np.isnan(got)]))


@examples(30)
@given(st.sampled_from([*COMPARISONS, "where3"]), st.integers(1, 3), st.integers(1, 8), st.integers(0, 1 << 30))
def test_random_numbers_compare_as_numpy_says_and_the_check_agrees(op: str, sticks: int, rows: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    shape = (sticks, rows, LANES)
    count = 3 if op == "where3" else 2
    # few values, so that many are equal; and neighbours of them, which only float32 tells apart
    operands = [
        np.nextafter(generator.integers(-2, 3, shape).astype(np.float32), np.float32(generator.integers(-9, 9)))
        * generator.integers(0, 2, shape).astype(np.float32)
        for _ in range(count)
    ]
    cut = int(generator.choice([n for n in (1, 2, 4) if rows % n == 0]))
    want = np.where(operands[0] != 0, operands[1], operands[2]) if count == 3 else COMPARISONS[op](*operands)
    for options in (RunOptions(check=True, sanitize="all"), RunOptions(engine="reference")):
        assert np.array_equal(ran(op, operands, options, cut), want.astype(np.float32))


def test_mixtures_of_formats_are_refused() -> None:
    single, half = "IEEE_FP32", "SEN169_FP16"
    for op, formats in (
        ("greaterthan", (single, single, half)),
        ("greaterthan", (half, single, half)),
        ("where3", (half, single, single, single)),
    ):
        with pytest.raises(SpyrecError, match=r"SPY0531.*together"):
            emit_opspecs(program(op, 2, 64, formats=formats))


def test_comparisons_of_float32_are_of_august_and_the_selection_is_of_june() -> None:
    for op in COMPARISONS:
        emit_opspecs(program(op, 2, 64), CodegenOptions(AUGUST_2026, is_exact=True))
        for exact in (False, True):
            with pytest.raises(SpyrecError, match=f'SPY0531.*"{op}" on IEEE_FP32'):
                emit_opspecs(program(op, 2, 64), CodegenOptions(JUNE_2026, is_exact=exact))
    (superdsc,) = emit_opspecs(program("where3", 2, 64), CodegenOptions(JUNE_2026)).superdscs.values()
    assert superdsc.op_func_name == "where3"


def test_graphs_compare_16_bit_floats_alone() -> None:
    for op in ("eq", "ne", "ge", "gt", "le", "lt", "where"):
        assert {item.name for item in catalogue()[op].formats} == {"SEN169_FP16"}
    values: list[dict[str, object]] = [{"name": name, "shape": [2, 64], "dtype": "float32"} for name in "ab"]
    bundle = spyrec.compile(graph_data(values, [node("y", "gt", "a", "b")], ["y"]))
    assert [step.nodes for step in bundle.manifest.host_steps] == [("y",)]


def test_they_run_from_the_command_line(tmp_path: Path) -> None:
    source = tmp_path / "o.json"
    source.write_text(write_opspecs(program("lesserthan", 4, 64, 2)))
    assert main(["codegen", str(source), "-o", str(tmp_path / "b")]) == 0
    assert main(["check", str(tmp_path / "b")]) == 0
    assert main(["run", str(tmp_path / "b"), "--random", "3", "--check"]) == 0
