"""The fold that multiplies, against NumPy in float64: over rows and over sticks, on several cores, in both formats."""

from __future__ import annotations

import numpy as np
import pytest

from spyrec.hardware import dlfloat
from tests.emulator.builders import DL16, FP32, Operation, Tensor, program_of, superdsc_of, table_of
from tests.support.both_engines import Launched


@pytest.mark.parametrize("data_format", [DL16, FP32])
@pytest.mark.parametrize(("op", "slices"), [("prod", (3, 1)), ("prod", (1, 2)), ("prodnonstick", (4, 2))])
def test_a_product_is_that_of_all_elements(op: str, slices: tuple[int, int], data_format: object) -> None:
    is_single = data_format is FP32
    rows, columns = 12, 128
    folded = "mb" if op.endswith("nonstick") else "out"
    source = Tensor(("mb", "out"), "out", {}, FP32 if is_single else DL16)
    target = Tensor(("mb", "out"), "out", {folded: -1 if folded == "mb" else -2}, FP32 if is_single else DL16)
    operation = Operation(op, {"mb": (rows, slices[0]), "out": (columns, slices[1])}, (source, target))
    generator = np.random.default_rng(3)
    x = generator.uniform(0.9, 1.1, (rows, columns)) * generator.choice([1.0, -1.0], (rows, columns))
    lanes = 32 if is_single else 64
    sticks = x.reshape(rows, columns // lanes, lanes).transpose(1, 0, 2)
    encoded, singles = dlfloat.encode(sticks), sticks.astype(np.float32)
    stored = (singles if is_single else dlfloat.decode(encoded)).astype(np.float64)
    held = np.ascontiguousarray(singles if is_single else encoded).view(np.uint8).reshape(-1)
    case = Launched(program_of(), {"sdsc_0.json": superdsc_of(operation)}, table_of(operation), {0: held})
    case.assert_equal()
    memory, _ = case.memory("fast")
    raw = memory["argument 1"]
    values = raw.view(np.float32) if is_single else dlfloat.decode(raw.view(np.uint16))
    exact = stored.transpose(1, 0, 2).reshape(rows, columns)
    if folded == "mb":
        got, want = values.reshape(columns), exact.prod(axis=0)
    else:
        got, want = values.reshape(rows, lanes)[:, 0], exact.prod(axis=1)
    np.testing.assert_allclose(got, want, rtol=2.0**-22 if is_single else 2.0**-10)
