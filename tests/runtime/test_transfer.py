"""Copies through conversion tables against NumPy indexing element by element."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.layout.conversion_table import DataConversionInfo
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.host_copies.transfer import copy_into_host, copy_to_device, copy_to_host

POISON = 0xA5
Array = npt.NDArray[np.generic]


def values_of(dtype: DType, count: int, seed: int) -> Array:
    """Random host values that their device format holds exactly."""
    generator = np.random.default_rng(seed)
    match dtype:
        case DType.FLOAT16 | DType.FLOAT32:
            return (generator.integers(-256, 257, count) / 8).astype(dtype.carrier)
        case DType.BFLOAT16:
            return ((generator.integers(-64, 65, count) / 8).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        case DType.BOOL:
            return generator.random(count) < 0.5
        case _:
            limits = np.iinfo(dtype.carrier if dtype is not DType.INT64 else "int32")
            return generator.integers(limits.min, limits.max, count, dtype=limits.dtype, endpoint=True).astype(
                dtype.carrier
            )


@st.composite
def copies(draw: st.DrawFn) -> tuple[DeviceLayout, tuple[int, ...], int, DType]:
    """A layout, the strides and the offset of a host tensor (permuted, pitched), and its dtype."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5, 33, 64, 65, 130]), max_size=6)))
    while math.prod(shape) > 2000:
        shape = (*shape[:-1], 1) if shape[-1] > 1 else shape[:-1]
    memory = [0] * len(shape)
    reach = 1
    for dim in draw(st.permutations(range(len(shape)))):
        memory[dim] = reach
        reach *= shape[dim] + draw(st.integers(0, 2))
    order = list(draw(st.permutations(range(len(shape)))))
    if len(shape) < 6 and draw(st.booleans()):
        order.append(-1)
    dtype = draw(st.sampled_from(list(DType)))
    return DeviceLayout.default(shape, dtype, dim_order=order), tuple(memory), draw(st.integers(0, 9)), dtype


@settings(max_examples=120)
@given(copies())
def test_a_round_trip_gives_every_element_back_and_touches_no_padding(
    copy: tuple[DeviceLayout, tuple[int, ...], int, DType],
) -> None:
    layout, strides, offset, dtype = copy
    shape = layout.host_shape
    storage = values_of(
        dtype, offset + 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True)), 5
    )
    memory = np.full(layout.nbytes, POISON, dtype=np.uint8)
    copy_to_device(storage, layout.dci("h2d", shape, strides, offset), memory)
    tensor = np.array(
        [
            storage[offset + sum(at * step for at, step in zip(index, strides, strict=True))]
            for index in np.ndindex(shape)
        ],
        dtype=storage.dtype,
    ).reshape(shape)
    np.testing.assert_array_equal(copy_to_host(memory, layout.dci("d2h"), shape, dtype), tensor)
    lanes = memory.reshape(*layout.device_size, -1)
    assert (lanes[~layout.valid_lane_mask()] == POISON).all()
    for index in list(np.ndindex(shape))[:: max(1, math.prod(shape) // 20)]:
        single = lanes[layout.device_coordinate(index)]
        if layout.device_dtype is DeviceFormat.SEN169_FP16 and dtype is DType.FLOAT16:
            assert dlfloat.decode(single.view(np.uint16))[0] == tensor[index]
    again = np.zeros_like(storage)
    copy_into_host(memory, layout.dci("d2h", shape, strides, offset), again)
    np.testing.assert_array_equal(
        np.lib.stride_tricks.as_strided(again[offset:], shape, [step * again.itemsize for step in strides]), tensor
    )


def test_a_transposed_source_of_several_sticks_is_copied_right() -> None:
    """torch-spyre leaves the stride of the tile index as it was and copies this one wrongly."""
    source = np.arange(60 * 140, dtype=np.float32).reshape(140, 60)
    layout = DeviceLayout.default((60, 140), "float32")
    memory = np.zeros(layout.nbytes, dtype=np.uint8)
    copy_to_device(source.reshape(-1), layout.dci("h2d", (60, 140), (1, 60)), memory)
    np.testing.assert_array_equal(copy_to_host(memory, layout.dci("d2h"), (60, 140), DType.FLOAT32), source.T)


def halves_of(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float16]:
    """Round to IEEE half; 65536, which the largest half becomes on the device, is that one again."""
    return np.where(np.abs(values) == 65536, np.copysign(65504, values), values).astype(np.float16)


def test_every_half_is_rounded_as_the_reference_rounds_it_in_both_directions() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    layout = DeviceLayout.default((1 << 16,), "float16")
    memory = np.zeros(layout.nbytes, dtype=np.uint8)
    copy_to_device(bits.view(np.float16), layout.dci("h2d"), memory)
    want = dlfloat.encode(bits.view(np.float16).astype(np.float32))
    np.testing.assert_array_equal(memory.view(np.uint16), want)
    memory.view(np.uint16)[:] = bits
    with np.errstate(over="ignore"):
        halves = halves_of(dlfloat.decode(bits))
    got = copy_to_host(memory, layout.dci("d2h"), (1 << 16,), DType.FLOAT16)
    np.testing.assert_array_equal(got.view(np.uint16), halves.view(np.uint16))


def test_every_half_is_rounded_in_both_directions_where_host_elements_lie_apart() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    layout = DeviceLayout.default((256, 256), "float16")
    memory = np.zeros(layout.nbytes, dtype=np.uint8)
    copy_to_device(bits.view(np.float16), layout.dci("h2d", (256, 256), (1, 256)), memory)
    places = [layout.device_coordinate((row, column)) for column in range(256) for row in range(256)]
    stored = memory.view(np.uint16).reshape(layout.device_size)
    want = dlfloat.encode(bits.view(np.float16).astype(np.float32))
    np.testing.assert_array_equal([stored[place] for place in places], want)
    for place, pattern in zip(places, bits.tolist(), strict=True):
        stored[place] = pattern
    with np.errstate(over="ignore"):
        halves = halves_of(dlfloat.decode(bits))
    got = np.zeros(1 << 16, np.float16)
    copy_into_host(memory, layout.dci("d2h", (256, 256), (1, 256)), got)
    np.testing.assert_array_equal(got.view(np.uint16), halves.view(np.uint16))


@pytest.mark.parametrize("rows", [1, 9])
def test_runs_of_every_length_are_rounded_as_the_reference_does_subnormals_among_them(rows: int) -> None:
    """Whole sticks, vectors of 8 and single lanes are converted apart, each with a way back to the full rounding."""
    generator = np.random.Generator(np.random.PCG64(rows))
    for lanes in (*range(1, 75), 127, 128, 135, 200):
        bits = generator.integers(0, 1 << 16, (rows, lanes), dtype=np.uint16)
        # mostly patterns that are simple, so that a single one decides how its vector goes
        rare = generator.random((rows, lanes)) < 0.02
        bits = np.where(rare, bits, bits & np.uint16(0x83FF) | np.uint16(0x3C00))
        layout = DeviceLayout.default((rows, lanes), "float16")
        memory = np.full(layout.nbytes, POISON, dtype=np.uint8)
        copy_to_device(bits.view(np.float16), layout.dci("h2d"), memory)
        stored = memory.view(np.uint16).reshape(layout.device_size)
        valid = layout.valid_lane_mask()
        assert (stored[~valid] == POISON * 0x101).all()
        want = dlfloat.encode(bits.view(np.float16).astype(np.float32))
        places = [layout.device_coordinate(index) for index in np.ndindex(rows, lanes)]
        np.testing.assert_array_equal([stored[place] for place in places], want.reshape(-1))
        for place, pattern in zip(places, bits.reshape(-1) ^ np.uint16(0x1C00), strict=True):
            stored[place] = pattern
        with np.errstate(over="ignore"):
            halves = halves_of(dlfloat.decode(bits ^ np.uint16(0x1C00)))
        got = copy_to_host(memory, layout.dci("d2h"), (rows, lanes), DType.FLOAT16)
        np.testing.assert_array_equal(got.view(np.uint16), halves.view(np.uint16))


_ENDS = [8573157376.0, -8573157376.0, np.inf, -np.inf, 0.0]
"""Finite numbers beyond DLFloat16 are its largest, infinities stay."""


@pytest.mark.parametrize(
    ("host", "device", "values", "stored"),
    [
        ("float32", "float16", np.array([1.0009765625, -0.0, np.nan, 8e9, 3e-10], np.float32), None),
        ("float32", "float16", np.array([1e30, -1e30, np.inf, -np.inf, 0], np.float32), _ENDS),
        ("bool", "bool", np.array([True, False, True, True, False]), [1.0, 0.0, 1.0, 1.0, 0.0]),
        ("float16", "float32", np.array([65504, 6e-8, -2, 0, 1], np.float16), None),
        (
            "bfloat16",
            "bfloat16",
            np.array([0x3F80, 0xC000, 0x7F80, 0x7FC0, 0], np.uint16),
            [1.0, -2.0, np.inf, np.inf, 0],
        ),
    ],
)
def test_formats_are_converted_on_the_way(host: str, device: str, values: Array, stored: list[float] | None) -> None:
    layout = DeviceLayout.default((5,), device)
    memory = np.zeros(layout.nbytes, dtype=np.uint8)
    copy_to_device(values, layout.dci("h2d", host_dtype=host), memory)
    if layout.device_dtype is DeviceFormat.SEN169_FP16:
        got = dlfloat.decode(memory.view(np.uint16)[:5])
        want = dlfloat.decode(dlfloat.encode(values.astype(np.float64))) if stored is None else stored
    else:
        got, want = memory.view(np.float32)[:5], values
    np.testing.assert_array_equal(got, want)


def test_bfloat16_is_rounded_to_nearest_even_on_the_way_back() -> None:
    layout = DeviceLayout.default((4,), "bfloat16")
    memory = np.zeros(layout.nbytes, dtype=np.uint8)
    values = np.array([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-9, 3.0], dtype=np.float64)
    memory.view(np.uint16)[:4] = dlfloat.encode(values)
    back = copy_to_host(memory, layout.dci("d2h"), (4,), DType.BFLOAT16)
    assert back.tolist() == [0x3F80, 0x3F82, 0xBF80, 0x4040]


def test_memory_that_stores_another_format_is_read_and_written_in_that_format() -> None:
    layout = DeviceLayout.default((3, 70), "float16")
    values = np.linspace(-1, 1, 210).astype(np.float16).reshape(3, 70)
    for stored_as, width in ((DeviceFormat.IEEE_FP16, 2), (DeviceFormat.IEEE_FP32, 4)):
        memory = np.zeros(math.prod(layout.device_size) * width, dtype=np.uint8)
        copy_to_device(values, layout.dci("h2d"), memory, stored_as=stored_as)
        np.testing.assert_array_equal(
            copy_to_host(memory, layout.dci("d2h"), (3, 70), DType.FLOAT16, stored_as=stored_as), values
        )


def refused(code: str, host: Array, table: DataConversionInfo, memory: npt.NDArray[np.uint8]) -> None:
    before = memory.copy()
    with pytest.raises(SpyrecError) as caught:
        copy_to_device(host, table, memory)
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == [code]
    np.testing.assert_array_equal(memory, before)


def test_a_copy_that_cannot_be_made_is_refused_before_a_byte_moves() -> None:
    layout = DeviceLayout.default((4, 100), "int64")
    table = layout.dci("h2d")
    memory = np.full(layout.nbytes, POISON, dtype=np.uint8)
    host = np.zeros((4, 100), dtype=np.int64)
    host[3, 99] = 1 << 31
    refused("SPY0318", host, table, memory)
    host[3, 99] = -(1 << 31) - 1
    refused("SPY0318", host, table, memory)
    host[3, 99] = 0
    refused("SPY0315", host.astype(np.int32), table, memory)
    refused("SPY0315", host[:3], table, memory)
    refused("SPY0315", host, layout.dci("d2h"), memory)
    refused("SPY0317", host.reshape(-1)[:-1], table, memory)
    refused("SPY0317", host, table, memory[:-128])
    shifted = replace(table.nests[0], destination_offset=-1)
    refused("SPY0317", host, replace(table, nests=(*table.nests, shifted)), memory)
    refused("SPY0315", host, replace(table, destination_format=DeviceFormat.SEN169_FP16), memory)
    with pytest.raises(SpyrecError) as caught:
        copy_to_host(memory, layout.dci("d2h"), (4, 99), DType.INT64)
    assert caught.value.diagnostics[0].code == "SPY0315"


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"isHostToSen_": 1},
        {"dcsi_": []},
        {"dcsi_": [{"size_": [64], "stride_src_": [1]}]},
        {"dcsi_": [{"size_": [64, 2], "stride_src_": [1], "stride_dst_": [1]}]},
        {"dcsi_": [{"size_": [1 << 63], "stride_src_": [1], "stride_dst_": [1]}]},
        {"dcsi_": [{"size_": [0], "stride_src_": [1], "stride_dst_": [1]}]},
        {"dataformat_src_": "FP16"},
        {"input_shape_": [1.5]},
        {"output_shape_": [1] * 33},
    ],
    ids=str,
)
def test_a_malformed_table_is_refused(change: dict[str, JsonValue]) -> None:
    data: dict[str, JsonValue] = json.loads(json.dumps(DeviceLayout.default((64,), "float16").dci("h2d").to_json()))
    DataConversionInfo.from_json(data)
    with pytest.raises(SpyrecError) as caught:
        DataConversionInfo.from_json({**data, **change})
    assert caught.value.diagnostics[0].code == "SPY0316"
