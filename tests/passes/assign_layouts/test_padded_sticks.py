"""Float32 of a cast from 16 bits whose last dim fills half a stick of those: the second stick is padding and no row."""

from __future__ import annotations

import numpy as np
import pytest

import spyrec
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.ir.device_layout import canonical_layout
from spyrec.ir.evaluate import evaluate


@pytest.mark.parametrize("shape", [(2, 32), (4, 32), (64, 32), (2, 2, 32), (3, 4, 32)])
def test_an_op_that_casts_on_the_way_runs(shape: tuple[int, ...]) -> None:
    """``log1p`` of 16 bits is computed in float32 and keeps its intermediates there."""
    builder = spyrec.GraphBuilder("cast")
    builder.output(builder.op("log1p", builder.input("x", list(shape), "float16")))
    x = np.random.default_rng(20261123).uniform(0.1, 1, shape).astype(np.float16)
    result = spyrec.run(spyrec.compile(builder), {"x": x}, spyrec.RunOptions(check=True))
    assert result.check is not None
    assert all(report.ok for report in result.check.values())
    (name,) = result.outputs
    wanted = evaluate(builder.build(), {"x": x})[name]
    np.testing.assert_allclose(result.outputs[name].astype(np.float64), wanted.astype(np.float64), rtol=4e-3)


def test_padding_has_no_stride_where_it_would_be_a_row_s() -> None:
    rows = canonical_layout((4, 32), DeviceFormat.IEEE_FP32, 1, 2).device
    assert (rows.device_size, rows.stride_map) == ((2, 4, 32), (-1, 32, 1))
    assert rows.with_host((4, 32)).host_strides == (32, 1)
    plain = canonical_layout((4, 32), DeviceFormat.IEEE_FP32, 1).device
    assert plain.stride_map == (32, 32, 1)
    wide = canonical_layout((4, 96), DeviceFormat.IEEE_FP32, 1, 2).device
    assert (wide.device_size, wide.stride_map) == ((4, 4, 32), (32, 96, 1))
