"""Arguments given as decoded values: exact for what a format holds, and operations on formats without a host dtype."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.opspec import OpSpec, OpSpecFile
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.host_copies.device_form import decode_device_form, encode_device_form
from tests.codegen.builders import FP16, Along, argument, space
from tests.foreign import EXAMPLES, argument_table, write_table
from tests.support.runs import ready

FP8 = DeviceFormat.SEN143_FP8
INTEGERS = {
    DeviceFormat.SENINT8: np.int8,
    DeviceFormat.SENINT16: np.int16,
    DeviceFormat.IEEE_INT32: np.int32,
    DeviceFormat.SENUINT32: np.uint32,
}


def e4m3(pattern: int) -> float:
    """One pattern's value, written from the definition: bias 7, subnormals, no infinity."""
    exponent, fraction = pattern >> 3 & 15, pattern & 7
    magnitude = (1 + fraction / 8) * 2.0 ** (exponent - 7) if exponent else fraction / 8 * 2.0**-6
    return -magnitude if pattern & 0x80 else magnitude


def nearest_e4m3(value: float) -> int:
    """The nearest finite pattern by trying all, ties to the even pattern."""
    best = min(range(127), key=lambda pattern: (abs(e4m3(pattern) - abs(value)), pattern % 2))
    return best | (0x80 if np.signbit(value) else 0)


def test_every_fp8_pattern_is_its_value_and_its_value_is_the_pattern() -> None:
    patterns = np.array([p for p in range(256) if p & 0x7F != 0x7F], np.uint8)
    values = decode_device_form(patterns, (2, 127), FP8)
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values.reshape(-1), [e4m3(int(p)) for p in patterns])
    np.testing.assert_array_equal(encode_device_form(values, FP8), patterns)
    assert np.isnan(decode_device_form(np.array([0x7F, 0xFF], np.uint8), (2,), FP8)).all()


def test_fp8_rounds_to_the_nearest_and_ties_to_even() -> None:
    generator = np.random.default_rng(0)
    middles = [(e4m3(p) + e4m3(p + 1)) / 2 for p in range(126)]
    values = np.array([*middles, *np.negative(middles), 1e9, -1e9, *generator.standard_normal(200) * 30], np.float32)
    np.testing.assert_array_equal(encode_device_form(values, FP8), [nearest_e4m3(float(v)) for v in values])
    special = np.array([np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(encode_device_form(special, FP8), [0x7E, 0xFE, 0x7F])


@pytest.mark.parametrize("data_format", list(INTEGERS))
def test_integers_are_exact_and_what_does_not_fit_is_refused(data_format: DeviceFormat) -> None:
    limits = np.iinfo(INTEGERS[data_format])
    values = np.array([0, 1, 100, max(limits.min, -(1 << 24)), min(limits.max, 1 << 24)], np.float32)
    stored = encode_device_form(values, data_format)
    np.testing.assert_array_equal(stored.view(INTEGERS[data_format]), values)
    np.testing.assert_array_equal(decode_device_form(stored, (5,), data_format), values)
    for outside in (float(limits.max) * 2, float(limits.min) - (1 << 24), np.nan, np.inf):
        with pytest.raises(SpyrecError) as error:
            encode_device_form(np.array([0, outside], np.float32), data_format)
        assert error.value.diagnostics[0].code == "SPY0318"


def test_a_format_without_values_is_refused_both_ways() -> None:
    for call in (
        lambda: encode_device_form(np.zeros(4, np.float32), DeviceFormat.SEN152_FP8),
        lambda: decode_device_form(np.zeros(4, np.uint8), (4,), DeviceFormat.SEN152_FP8),
    ):
        with pytest.raises(SpyrecError) as error:
            call()
        assert error.value.diagnostics[0].code == "SPY0773"


def written(spec: OpSpec, directory: Path) -> Bundle:
    """The bundle of one OpSpec as a foreign one: its files, and a table without host shapes."""
    emitted = emit_opspecs(OpSpecFile(False, True, (spec,)), CodegenOptions())
    (directory / "bundle.mlir").write_text(print_program(emitted.program))
    for name, superdsc in emitted.superdscs.items():
        (directory / name).write_bytes(to_bytes(superdsc))
    arguments: list[dict[str, Any]] = [
        {
            "name": f"t{index}",
            "arg_index": index,
            "role": "input" if item.is_input else "output",
            "address": item.allocation.start_bytes,
            "device_size": list(item.device_size),
            "device_dtype": item.device_dtype.name,
        }
        for index, item in enumerate(spec.args)
    ]
    table = {"format": "spyrec.args/1", "pool_bytes": 0, "arguments": arguments}
    return load_foreign(directory, write_table(directory, table))


def fp8_values(shape: tuple[int, ...], seed: int) -> npt.NDArray[np.float32]:
    patterns = np.random.default_rng(seed).integers(0, 0x60, shape)  # finite, not too large to add up
    return np.vectorize(e4m3)(patterns).astype(np.float32)


@pytest.mark.parametrize("op", ["qfp8ch", "fp8todl16"])
def test_fp8_casts_run_under_a_plain_table(op: str, tmp_path: Path) -> None:
    formats = (FP16, FP8) if op == "qfp8ch" else (FP8, FP16)
    sizes = {"a": 8, "b": 256}
    args = tuple(
        argument([Along("b"), Along("a")], "b", sizes, index=i, is_input=i == 0, data_format=formats[i])
        for i in range(2)
    )
    bundle = written(OpSpec(op, False, space(sizes, {"a": 4}), args), tmp_path)
    rows = fp8_values((8, 256), 1)

    def sticks(lanes: int) -> npt.NDArray[np.float32]:
        return np.ascontiguousarray(rows.reshape(8, 256 // lanes, lanes).transpose(1, 0, 2))

    given, want = (sticks(64), sticks(128)) if op == "qfp8ch" else (sticks(128), sticks(64))
    np.testing.assert_array_equal(spyrec.run(bundle, {"t0": given}).outputs["t1"], want)


def test_an_fp8_matmul_runs_under_a_plain_table(tmp_path: Path) -> None:
    sizes = {"m": 16, "n": 128, "k": 256}
    args = (
        argument([Along("k"), Along("m")], "k", sizes, index=0, data_format=FP8),
        argument([Along("n"), Along("k")], "n", sizes, index=1, data_format=FP8),
        argument([Along("n"), Along("m")], "n", sizes, index=2, is_input=False),
    )
    spec = OpSpec("batchmatmulfp8", True, space(sizes, {"m": 4}), args)
    bundle = written(spec, tmp_path)
    a, b = (fp8_values(shape, seed) / np.float32(8) for seed, shape in enumerate(((16, 256), (256, 128)), 2))
    a, b = (decode_device_form(encode_device_form(x, FP8), x.shape, FP8) for x in (a, b))
    given = {"t0": a.reshape(16, 2, 128).transpose(1, 0, 2), "t1": b.reshape(256, 1, 128).transpose(1, 0, 2)}
    result = spyrec.run(bundle, {name: np.ascontiguousarray(item) for name, item in given.items()}).outputs["t2"]
    want = a.astype(np.float64) @ b.astype(np.float64)
    got = result.astype(np.float64).transpose(1, 0, 2).reshape(16, 128)
    np.testing.assert_allclose(got, want, rtol=2.0**-9)


@pytest.mark.parametrize("numerics", ["dl16", "f32"])
def test_rows_beyond_the_host_tensor_are_zero_in_a_bundle_without_tables(numerics: str, tmp_path: Path) -> None:
    """``matmul_kpad`` describes a second operand of 256 rows; the host has the 200 that count."""
    table = argument_table("matmul_kpad")
    shapes = ((64, 200), (200, 128), (64, 128))
    for entry, shape in zip(table["arguments"], shapes, strict=True):
        entry |= {"shape": list(shape), "dtype": "float16", "stride_map": [64, shape[1], 1]}
    assert table["arguments"][1]["device_size"] == [2, 256, 64]
    bundle = load_foreign(EXAMPLES / "matmul_kpad", write_table(tmp_path, table))
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal(shape).astype(np.float16) for shape in shapes[:2])
    with ready(bundle, spyrec.RunOptions(numerics=numerics)) as run:
        result = run.run({"t0": a, "t1": b}).outputs["t2"].astype(np.float64)
        first, stored = (run.prepared.argument_memory(name).copy() for name in ("t0", "t1"))
    want = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(result - want).max() < 2.0**-8 * np.abs(want).max()
    lanes = stored.view(np.uint16 if numerics == "dl16" else np.float32).reshape(2, 256, 64)
    assert not lanes[:, 200:].any()
    # The first operand has no rows to spare: its padding lanes stay what they were.
    lanes = first.view(np.uint16).reshape(4, 64, -1)[3, :, -16:]
    assert np.all(lanes == 0x7FFF)
