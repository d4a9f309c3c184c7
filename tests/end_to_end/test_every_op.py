"""Every op of the catalogue, compiled, run on the emulated device and compared with its reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.front import emit, schedule
from spyrec.hardware.dtypes import DType
from spyrec.ir.evaluate import evaluate
from spyrec.ir.graph import Graph
from spyrec.ir.numbers import decode
from tests.support.samples import SampleCase, sample_cases

_ROUNDING = {"f32": 2.0**-9, "dl16": 2.0**-5}
"""Relative to 1 + the value: float32 inside and one rounding to the output's dtype (bfloat16: 8 bits); some roundings
to 9 bits of fraction on the way."""


@pytest.mark.parametrize("case", sample_cases(), ids=lambda case: case.title)
def test_an_op_computes_its_reference_on_the_device(case: SampleCase) -> None:
    arrays = case.arrays()
    wanted = evaluate(case.graph, arrays)["y"]
    planned = schedule(case.graph, CompileOptions(), Path())  # what arguments are written as decides nothing in a plan
    assert not isinstance(planned, Graph)
    symbolic, baked = (emit(planned, CompileOptions(symbolic_args=symbolic)) for symbolic in (True, False))
    for numerics, tolerance in _ROUNDING.items():
        result = spyrec.run(symbolic, arrays, RunOptions(numerics=numerics, check=True))
        assert result.is_ok, result.check
        found = result.outputs["y"]
        assert found.dtype == np.dtype(case.result.dtype.carrier)
        again = spyrec.run(baked, arrays, RunOptions(numerics=numerics)).outputs["y"]
        assert again.tobytes() == found.tobytes()
        _assert_close(decode(found, case.result.dtype), wanted, tolerance, case)


def _assert_close(found: np.ndarray, wanted: np.ndarray, tolerance: float, case: SampleCase) -> None:
    assert found.shape == wanted.shape
    if case.result.dtype is DType.BOOL or not case.result.dtype.is_float:
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
