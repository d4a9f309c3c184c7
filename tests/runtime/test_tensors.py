"""Device tensors: host arrays there and back, layouts, strides, and what they refuse."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.errors import (
    DeviceMismatch,
    DtypeMismatch,
    LayoutMismatch,
    NotPermittedInCapture,
    OverlappingCopy,
    ShapeMismatch,
    StaleHandle,
    UninitialisedRead,
)
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.plain_backend import PlainBackend
from spyrec.runtime.tensors import SpyreTensor
from tests.support.spyre_devices import SCHEDULES, opened

Open = Callable[..., SpyreDevice]
Array = npt.NDArray[np.generic]


def values_of(shape: tuple[int, ...], dtype: DType) -> Array:
    """Host values that the device's format holds exactly, all different as far as it goes."""
    count = int(np.prod(shape))
    numbers = np.arange(count) * 37 % 251
    if dtype is DType.BFLOAT16:
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).reshape(shape)
    if dtype is DType.BOOL:
        return (numbers % 3 == 0).reshape(shape)
    return (numbers % 100).astype(dtype.carrier).reshape(shape)


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("shape", [(), (1,), (5,), (130,), (3, 70), (2, 3, 65), (2, 1, 3, 64)])
def test_an_array_comes_back_as_it_went(dtype: DType, shape: tuple[int, ...]) -> None:
    with opened() as device:
        array = values_of(shape, dtype)
        tensor = SpyreTensor.to_device(device, array, dtype=dtype)
        back = tensor.to_host()
        np.testing.assert_array_equal(back, array)
        assert (back.dtype, back.shape, back.flags.c_contiguous) == (array.dtype, shape, True)
        assert tensor.layout == DeviceLayout.default(shape, dtype)
        assert tensor.size_bytes == tensor.layout.nbytes


@settings(max_examples=60)
@given(st.data())
def test_a_tensor_lies_where_its_layout_says(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 5, 64, 70]), min_size=1, max_size=3)))
    order = data.draw(st.permutations(range(len(shape))))
    layout = DeviceLayout.default(shape, DType.INT32, dim_order=order)
    with opened() as device:
        array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        source = array.transpose().copy().transpose() if data.draw(st.booleans()) else array
        tensor = SpyreTensor.to_device(device, source, layout)
        np.testing.assert_array_equal(tensor.to_host(), array)
        memory = device.backend.view(tensor.device_bytes().range).view(np.int32)
        for index in [tuple(data.draw(st.integers(0, size - 1)) for size in shape) for _ in range(5)]:
            assert memory[layout.byte_address(index) // 4] == array[index]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_tensor_travels_on_the_current_stream_or_the_one_given(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    array, stream, other = np.ones((3, 3), np.float32), device.stream(), device.stream()
    with stream:
        tensor = SpyreTensor.to_device(device, array)
        array[:] = 5
        assert schedule == "threads" or stream.flex.pending == 1
        np.testing.assert_array_equal(tensor.to_host(), np.ones((3, 3)))
    given_stream = SpyreTensor.to_device(device, array, stream=other)
    assert schedule == "threads" or other.flex.pending == 1
    np.testing.assert_array_equal(given_stream.to_host(other), np.full((3, 3), 5))


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((3, 4), (1, 3)), ((3, 4), (10, 2)), ((2, 3, 4), (12, 1, 3)), ((3, 4), (0, 1)), ((4, 3), (1, 0))],
)
def test_a_strided_tensor_holds_its_values_in_logical_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    with opened() as device:
        tensor = SpyreTensor.empty_strided(device, shape, strides, "float16")
        assert (tensor.shape, tensor.strides, tensor.dtype) == (shape, strides, DType.FLOAT16)
        storage = np.arange(100, dtype=np.float16)
        reach = tuple(stride * 2 for stride in strides)
        logical = np.lib.stride_tricks.as_strided(storage, shape, reach)
        conversion = tensor.layout.dci("h2d", shape, strides)
        device.default_stream.flex.copy_h2d(storage, tensor.device_bytes(), conversion)
        np.testing.assert_array_equal(tensor.to_host(), logical)


def test_reading_a_tensor_that_nobody_wrote_is_found() -> None:
    with opened(finds_uninitialised_reads=True) as device:
        written = SpyreTensor.to_device(device, np.ones((3, 100), np.float16))
        written.to_host()
        assert device.findings == ()
        empty = SpyreTensor.empty(device, (3, 100), "float16")
        empty.to_host()
        assert [type(finding) for finding in device.findings] == [UninitialisedRead]
        assert '"to_host"' in str(device.findings[0])
        assert "test_tensors.py" in str(device.findings[0])


def test_tensors_used_on_two_streams_without_order_are_a_race() -> None:
    with opened(finds_races=True) as device:
        tensor = SpyreTensor.to_device(device, np.ones(4, np.float32), stream=device.stream())
        tensor.to_host(device.stream())
        assert len(device.findings) == 1
        assert "test_tensors.py" in str(device.findings[0])


def test_what_does_not_fit_is_refused_and_nothing_is_enqueued(open_device: Open) -> None:
    device, other = open_device(index=0), open_device(index=1)
    layout = DeviceLayout.default((4, 4), "float16")
    attempts: list[tuple[str, Callable[[], object]]] = [
        (DtypeMismatch.code, lambda: SpyreTensor.to_device(device, np.ones(4, np.complex64))),
        (DtypeMismatch.code, lambda: SpyreTensor.to_device(device, np.ones(4, np.float64))),
        (DtypeMismatch.code, lambda: SpyreTensor.to_device(device, np.ones(4, np.float16), dtype="float32")),
        (ShapeMismatch.code, lambda: SpyreTensor.to_device(device, np.ones((5, 4), np.float16), layout)),
        (ShapeMismatch.code, lambda: SpyreTensor.empty(device, (5, 4), "float16", layout)),
        ("SPY0315", lambda: SpyreTensor.to_device(device, np.ones((4, 4), np.int32), layout)),
        ("SPY0318", lambda: SpyreTensor.to_device(device, np.array([1 << 40]))),
        ("SPY0901", lambda: SpyreTensor.empty(device, (1 << 22,), "float16")),
        (DeviceMismatch.code, lambda: SpyreTensor.to_device(device, np.ones(4), stream=other.stream(), dtype=None)),
    ]
    for code, attempt in attempts[:-1]:
        with pytest.raises(SpyrecError, match=code):
            attempt()
    with pytest.raises(DeviceMismatch, match="SPY0954"):
        SpyreTensor.to_device(device, np.ones(4, np.float32), stream=other.stream())
    assert device.pending == 0
    assert device.allocator.statistics().allocations == 0


def test_a_freed_tensor_is_stale(open_device: Open) -> None:
    device = open_device()
    tensor = SpyreTensor.to_device(device, np.ones(4, np.float32))
    tensor.free()
    for use in (tensor.to_host, tensor.device_bytes):
        with pytest.raises(StaleHandle, match="SPY0902"):
            use()
    device.synchronize()
    assert device.allocator.statistics().allocations == 0


def test_a_dropped_tensor_is_copied_before_its_memory_goes(open_device: Open) -> None:
    device = open_device("adversarial")
    tensor = SpyreTensor.to_device(device, np.full(4, 3, np.float32))
    place = tensor.device_bytes().range
    target = SpyreTensor.empty(device, (4,), "float32")
    device.default_stream.flex.copy_d2d(target.device_bytes(), tensor.device_bytes())
    del tensor
    fresh = SpyreTensor.empty(device, (4,), "float32")
    assert fresh.device_bytes().range != place
    np.testing.assert_array_equal(target.to_host(), np.full(4, 3))
    assert SpyreTensor.empty(device, (4,), "float32").device_bytes().range == place


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_tensor_is_copied_on_the_device(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    array = np.arange(210, dtype=np.float16).reshape(3, 70)
    source, target = SpyreTensor.to_device(device, array), SpyreTensor.empty(device, (3, 70), "float16")
    target.copy_from(source)
    np.testing.assert_array_equal(target.to_host(), array)


def test_a_copy_between_tensors_that_differ_is_refused(open_device: Open) -> None:
    device, other = open_device(index=0), open_device(index=1)
    target = SpyreTensor.empty(device, (4, 70), "float16")
    swapped = DeviceLayout.default((4, 70), "float16", dim_order=(1, 0))
    attempts = [
        (OverlappingCopy, target),
        (ShapeMismatch, SpyreTensor.empty(device, (70, 4), "float16")),
        (DtypeMismatch, SpyreTensor.empty(device, (4, 70), "float32")),
        (LayoutMismatch, SpyreTensor.empty(device, (4, 70), "float16", swapped)),
        (DeviceMismatch, SpyreTensor.empty(other, (4, 70), "float16")),
    ]
    for fault, source in attempts:
        with pytest.raises(fault, match=fault.code):
            target.copy_from(source)
    assert device.pending == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_recorded_stream_keeps_the_memory_of_a_tensor_that_is_freed(open_device: Open, schedule: str) -> None:
    device = open_device(schedule)
    tensor, stream, seen = SpyreTensor.to_device(device, np.full(4, 3, np.int32)), device.stream(), list[int]()
    device.synchronize()
    place, gate = tensor.device_bytes().range, threading.Event()

    def look() -> None:
        assert gate.wait(60)
        seen.append(int(device.backend.view(place).view(np.int32)[0]))

    stream.launch_host_function(look)
    tensor.record_stream(stream)
    tensor.free()
    assert device.allocator.statistics().pending_frees == 1
    gate.set()
    stream.synchronize()
    assert seen == [3]
    assert device.allocator.statistics().allocations == 0


def test_a_copy_back_ends_the_capture_of_its_stream(open_device: Open) -> None:
    device = open_device()
    tensor = SpyreTensor.to_device(device, np.ones(4, np.float32))
    device.default_stream.flex.begin_capture()
    with pytest.raises(NotPermittedInCapture):
        tensor.to_host()
    with pytest.raises(NotPermittedInCapture):
        device.default_stream.flex.end_capture()
    np.testing.assert_array_equal(tensor.to_host(), np.ones(4))


class WideBackend(PlainBackend):
    """Memory of two bytes for each of the device's: what a device that computes in float32 has."""

    def attach(self, block: AddressRange) -> None:
        super().attach(_twice(block))

    def detach(self, block: AddressRange) -> None:
        super().detach(_twice(block))

    def view(self, wanted: AddressRange) -> npt.NDArray[np.uint8]:
        return super().view(_twice(wanted))

    def stored_as(self, device_format: DeviceFormat) -> DeviceFormat:
        return DeviceFormat.IEEE_FP32 if device_format is DeviceFormat.SEN169_FP16 else device_format


def _twice(place: AddressRange) -> AddressRange:
    return AddressRange(place.address._replace(offset=place.address.offset * 2), place.size_bytes * 2)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.FLOAT32, DType.INT64, DType.INT8, DType.BOOL])
def test_a_device_that_computes_in_float32_holds_every_dtype_in_slots_of_twice_the_width(dtype: DType) -> None:
    with SpyreDevice(WideBackend()) as device:
        array = values_of((3, 70), dtype)
        tensor = SpyreTensor.to_device(device, array)
        np.testing.assert_array_equal(tensor.to_host(), array)
        copied = SpyreTensor.empty(device, (3, 70), dtype)
        device.default_stream.flex.copy_d2d(copied.device_bytes(), tensor.device_bytes())
        np.testing.assert_array_equal(copied.to_host(), array)
        del tensor, copied
