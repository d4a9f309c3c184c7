"""Layouts at their limits: overlapping places, over-padded tiles, expanded dims, and dtypes of every kind."""

from __future__ import annotations

import itertools
import math
from typing import cast

import numpy as np
import pytest

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DeviceFormat, DType, is_convertible
from spyrec.layout.device_layout import DeviceLayout
from spyrec.passes.assign_layouts.realize import forms_of
from spyrec.runtime.host_copies.conversion import converter, storage_type
from spyrec.runtime.host_copies.transfer import copy_to_device, copy_to_host


def code_of(caught: pytest.ExceptionInfo[SpyrecError]) -> str:
    (diagnostic,) = caught.value.diagnostics
    return diagnostic.code


@pytest.mark.parametrize(
    ("device_size", "stride_map", "device_format", "shape"),
    [
        ((2, 2, 64), (64, 64, 1), "SENINT16", (256,)),
        ((2, 4, 192, 32), (128, 32, 128, 1), "IEEE_INT32", (192, 128)),
        ((2, 3, 64), (1, 1, -1), "SENINT16", (6,)),
        ((2, 64), (48, 1), "SENINT16", (128,)),
        ((2, 2, 64), (96, 64, 1), "SENINT16", (256,)),
    ],
)
def test_places_that_overlap_are_refused(
    device_size: tuple[int, ...], stride_map: tuple[int, ...], device_format: str, shape: tuple[int, ...]
) -> None:
    with pytest.raises(SpyrecError) as caught:
        DeviceLayout(device_size, stride_map, device_format, shape)
    assert code_of(caught) in {"SPY0307", "SPY0308"}


def test_two_dims_of_one_stride_do_not_tell_their_tensor() -> None:
    layout = DeviceLayout((2, 2, 64), (64, 64, 1), "SENINT16")
    with pytest.raises(SpyrecError) as caught:
        layout.dci("h2d")
    assert code_of(caught) == "SPY0307"


def test_whatever_small_layout_is_accepted_holds_every_element_once() -> None:
    accepted = 0
    for sizes, strides, shape in itertools.product(
        itertools.product((1, 2, 3), repeat=2),
        itertools.product((1, 2, 3, 6, 32, 64), repeat=2),
        [(6,), (32,), (48,), (64,), (96,), (2, 3), (3, 32), (2, 48)],
    ):
        for lane in (1, -1):
            try:
                layout = DeviceLayout((*sizes, 32), (*strides, lane), "IEEE_INT32", shape)
            except SpyrecError:
                continue
            accepted += 1
            values = np.arange(1, math.prod(shape) + 1, dtype=np.int32).reshape(shape)
            memory = np.zeros(layout.nbytes, dtype=np.uint8)
            strides_of_host = tuple(stride // 4 for stride in values.strides)
            if layout.host_strides != strides_of_host:
                continue
            copy_to_device(values, layout.dci("h2d"), memory)
            assert np.array_equal(copy_to_host(memory, layout.dci("d2h"), shape, DType(values.dtype.name)), values), (
                layout
            )
            elements = memory.view(np.int32)
            for index in np.ndindex(shape):
                assert elements[layout.byte_address(index) // 4] == values[index], (layout, index)
    assert accepted > 100


@pytest.mark.parametrize(
    "shape",
    [
        (32,),
        (2, 32),
        (3, 32),
        (2, 31),
        (8, 33),
        (2, 65),
        (32, 2),
        (2, 1, 32),
        (2, 2, 16),
        (3, 4, 8),
        (2, 32, 3),
        (2, 3, 1, 32),
    ],
)
def test_what_the_compiler_gives_float32_buffers_tells_where_each_element_lies(shape: tuple[int, ...]) -> None:
    """Forms with a stick of padding too (D221): sizes and strides alone, as a manifest has them, against the digits."""
    for form in forms_of(shape, DeviceFormat.IEEE_FP32):
        device = form.device
        layout = DeviceLayout(device.device_size, device.stride_map, device.device_dtype, shape)
        homes = {index: form.device_coordinate(index) for index in np.ndindex(shape)}
        held = np.zeros(device.device_size, dtype=np.bool_)
        for index, home in homes.items():
            assert layout.device_coordinate(index) == home, (layout, index)
            assert layout.host_index(home) == index, (layout, index)
            held[home] = True
        assert held.sum() == math.prod(shape), layout
        assert np.array_equal(layout.valid_lane_mask(), held), layout
        values = np.arange(1, math.prod(shape) + 1, dtype=np.float32).reshape(shape)
        memory = np.zeros(layout.nbytes, dtype=np.uint8)
        copy_to_device(values, layout.dci("h2d"), memory)
        elements = memory.view(np.float32)
        assert all(elements[layout.byte_address(index) // 4] == values[index] for index in homes), layout
        assert np.array_equal(copy_to_host(memory, layout.dci("d2h"), shape, DType.FLOAT32), values), layout


@pytest.mark.parametrize("shape", [(2, 32), (4, 32), (8, 32), (2, 2, 16)])
def test_16_bits_computed_in_float32_with_rows_of_one_stick_compile_and_are_right(shape: tuple[int, ...]) -> None:
    builder = spyrec.GraphBuilder()
    builder.output(builder.log1p(builder.input("x", shape), name="y"))
    x = np.linspace(-0.75, 3, math.prod(shape)).astype(np.float16).reshape(shape)
    result = spyrec.run(spyrec.compile(builder), {"x": x}, spyrec.RunOptions(check=True))
    assert result.check is not None
    assert result.check["y"].ok
    assert np.allclose(result.outputs["y"], np.log1p(x.astype(np.float64)), rtol=2e-3, atol=1e-3)


def test_equal_layouts_copy_alike_wherever_the_tensor_lies() -> None:
    made, explicit = DeviceLayout.default((70, 70), "float16"), DeviceLayout((2, 70, 64), (64, 70, 1), "SEN169_FP16")
    assert made == explicit
    for direction in ("h2d", "d2h"):
        table = explicit.dci(direction, (70, 70), (1, 70))
        assert table == made.dci(direction, (70, 70), (1, 70))
        assert table.triples()[0][1] == (4480, 1, 70)


def test_a_table_that_nothing_converts_is_not_made() -> None:
    layout = DeviceLayout.default((4, 4), "float16")
    for direction in ("h2d", "d2h"):
        with pytest.raises(SpyrecError) as caught:
            layout.dci(direction, host_dtype="int8")
        assert code_of(caught) == "SPY0315"
        assert "float16, bfloat16, float32, bool" in (caught.value.diagnostics[0].hint or "")


def test_convertible_is_what_the_runtime_converts() -> None:
    for source, destination in itertools.product(DeviceFormat, repeat=2):
        try:
            storage_type(source)
            storage_type(destination)
            converter(source, destination)
        except SpyrecError:
            assert not is_convertible(source, destination)
        else:
            assert is_convertible(source, destination)


@pytest.mark.parametrize(
    ("device_size", "stride_map", "shape"),
    [((2, 64), (64, 1), (30,)), ((3, 2, 64), (30, 64, 1), (3, 30)), ((3, 2, 64), (256, 64, 1), (40,))],
)
def test_a_dim_below_one_tile_may_be_padded_by_whole_tiles(
    device_size: tuple[int, ...], stride_map: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    layout = DeviceLayout(device_size, stride_map, "float16", shape)
    homes = {layout.device_coordinate(index) for index in np.ndindex(shape)}
    assert len(homes) == layout.valid_lane_mask().sum() == math.prod(shape)
    values = np.arange(math.prod(shape), dtype=np.float16).reshape(shape)
    memory = np.zeros(layout.nbytes, dtype=np.uint8)
    copy_to_device(values, layout.dci("h2d"), memory)
    assert np.array_equal(copy_to_host(memory, layout.dci("d2h"), shape, DType(values.dtype.name)), values)


def test_expanded_dims_lie_where_the_default_layout_puts_them() -> None:
    assert DeviceLayout.default((8, 8), "float16", (0, 0), (1, 0)).device_coordinate((3, 5)) == (0, 5, 3)
    layout = DeviceLayout.default((64, 13, 26), "int8", (0, 0, 1), (1, 2, 0))
    for index in ((5, 7, 3), (63, 12, 25)):
        assert layout.host_index(layout.device_coordinate(index)) == index
    wide = DeviceLayout.default((3, 130), "float16", (1, 0))
    assert wide.device_coordinate((2, 129)) == (2, 2, 1)
    assert wide.host_index((2, 2, 1)) == (2, 129)


@pytest.mark.parametrize(
    ("shape", "device_size", "stride_map"),
    [
        ((0,), (0, 64), (64, 1)),
        ((0, 64), (1, 0, 64), (64, 64, 1)),
        ((4, 0), (0, 4, 64), (64, 1, 1)),
        ((2, 0, 3), (0, 1, 2, 64), (3, 64, 3, 1)),
    ],
)
def test_empty_tensors_have_layouts_without_memory(
    shape: tuple[int, ...], device_size: tuple[int, ...], stride_map: tuple[int, ...]
) -> None:
    """Extents of 0 count as 1 in strides, as in PyTorch: torch.empty(4, 0).stride() is (1, 1)."""
    layout = DeviceLayout.default(shape, "float16")
    assert (layout.device_size, layout.stride_map) == (device_size, stride_map)
    assert layout.nbytes == 0
    assert DeviceLayout(device_size, stride_map, "float16", shape) == layout
    assert not layout.dci("h2d").nests


def test_quantized_dtypes_have_the_form_of_their_integers() -> None:
    for name, plain in (("qint8", DType.INT8), ("torch.quint8", DType.UINT8)):
        layout = DeviceLayout.default((3, 4), name)
        assert layout.dci("h2d") == DeviceLayout.default((3, 4), plain).dci("h2d")
    for name in ("quint4x2", "torch.quint2x4"):
        layout = DeviceLayout.default((3, 4), name)
        assert (layout.device_dtype, layout.elements_per_stick) == (DeviceFormat.SENUINT2, 512)
        assert DeviceLayout((1, 3, 512), (512, 4, 1), name) == layout
        for host_dtype, code in ((None, "SPY0301"), (name, "SPY0301"), ("uint8", "SPY0315")):
            with pytest.raises(SpyrecError) as caught:
                layout.dci("h2d", host_dtype=host_dtype)
            assert code_of(caught) == code


def test_dtypes_of_numpy_serve_and_what_is_no_dtype_is_refused() -> None:
    wanted = DeviceLayout.default((4, 64), "float16")
    for dtype in (np.float16, np.dtype("float16")):
        assert DeviceLayout.default((4, 64), cast("str", dtype)) == wanted
        assert DeviceLayout((1, 4, 64), (64, 64, 1), cast("str", dtype)) == wanted
    for dtype in (3, None, float):
        with pytest.raises(SpyrecError) as caught:
            DeviceLayout((4, 64), (64, 1), cast("str", dtype))
        assert code_of(caught) == "SPY0301"
