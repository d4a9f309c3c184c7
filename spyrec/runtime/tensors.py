"""Tensors in device memory: made from host arrays or empty, and copied back, through streams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.hardware.target import STICK_BYTES
from spyrec.layout.conversion_table import DataConversionInfo, Direction
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.rules import host_dtype
from spyrec.layout.tiling import row_major_strides
from spyrec.runtime.argument_kinds import Several, Unfit, Whole, of, takes
from spyrec.runtime.errors import (
    DeviceMismatch,
    DtypeMismatch,
    InvalidSize,
    LayoutMismatch,
    OutsideAllocation,
    ShapeMismatch,
)
from spyrec.runtime.host_copies.conversion import converter
from spyrec.runtime.memory.allocator import AllocationIndex, DeviceBytes
from spyrec.runtime.memory.spyre_allocator import Allocation, Borrowed
from spyrec.runtime.streams.blocks import device_to_host, host_to_device
from spyrec.runtime.streams.control_block import Origin
from spyrec.runtime.streams.launch_argument import LaunchArgument

if TYPE_CHECKING:
    from spyrec.runtime.spyre_device import SpyreDevice
    from spyrec.runtime.streams.spyre_stream import SpyreStream

HostArray = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class TensorForm:
    """The kind of a form: shape, dtype, layout or ``None``."""

    def read(self, value: object) -> object:
        """Return it, its extents those of Python."""
        if not isinstance(value, tuple):
            raise Unfit("no tuple of shape, dtype and layout")
        parts = cast("tuple[object, ...]", value)
        if len(parts) != 3:
            raise Unfit("no tuple of shape, dtype and layout")
        shape, dtype, layout = parts
        named, laid = of("DType", "str").read(dtype), of("DeviceLayout", or_none=True).read(layout)
        return Several(Whole(0)).read(shape), named, laid


_BY_CARRIER = {
    DType[name.upper()].carrier: DType[name.upper()]
    for name in ("float16", "float32", "bool", "int8", "int16", "int32", "int64", "uint8")
}


class SpyreTensor:
    """A tensor on a device: ``shape``, ``strides`` (of the host tensor, in elements), ``dtype``, ``layout``.

    Its memory is freed when the tensor is dropped, or by :meth:`free`; what is enqueued keeps it until then.
    """

    def __init__(
        self, device: SpyreDevice, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, layout: DeviceLayout
    ) -> None:
        self.device = device
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.layout = layout
        device.refuse_if_closed()
        self.offset_bytes = 0
        self._argument: LaunchArgument | None = None
        self._allocation: Allocation | Borrowed = device.spyre_allocator.allocate(layout.nbytes)

    @classmethod
    @takes(
        device=of("SpyreDevice"),
        array=of("ndarray"),
        layout=of("DeviceLayout", or_none=True),
        stream=of("SpyreStream", or_none=True),
        dtype=of("DType", "str", or_none=True),
    )
    def to_device(
        cls,
        device: SpyreDevice,
        array: HostArray,
        layout: DeviceLayout | None = None,
        stream: SpyreStream | None = None,
        dtype: DType | str | None = None,
    ) -> SpyreTensor:
        """Return a new tensor with the values of a host array, copied on a stream, by default the current one.

        The call returns before the copy; the array may be changed at once.  ``dtype``: for what NumPy has no type for
        (bfloat16 in uint16, float8 in uint8).  Errors: SPY0901, SPY0906, SPY0951, SPY0953, those of the layout, SPY0318
        an integer does not fit its device format; of enqueueing.
        """
        named = dtype_of(array, dtype)
        shape = array.shape
        tensor = cls(device, shape, row_major_strides(shape), named, layout or DeviceLayout.default(shape, named))
        tensor.copy_in(array, stream)
        return tensor

    @classmethod
    @takes(
        device=of("SpyreDevice"),
        shape=Several(Whole(0)),
        dtype=of("DType", "str"),
        layout=of("DeviceLayout", or_none=True),
    )
    def empty(
        cls, device: SpyreDevice, shape: Sequence[int], dtype: DType | str, layout: DeviceLayout | None = None
    ) -> SpyreTensor:
        """Return a tensor that nobody has written; errors SPY0901, SPY0953, those of the layout."""
        return cls.empty_strided(device, shape, row_major_strides(tuple(shape)), dtype, layout)

    @classmethod
    @takes(
        device=of("SpyreDevice"),
        shape=Several(Whole(0)),
        strides=Several(Whole(0)),
        dtype=of("DType", "str"),
        layout=of("DeviceLayout", or_none=True),
    )
    def empty_strided(
        cls,
        device: SpyreDevice,
        shape: Sequence[int],
        strides: Sequence[int],
        dtype: DType | str,
        layout: DeviceLayout | None = None,
    ) -> SpyreTensor:
        """Return a tensor that nobody has written, made for a host tensor with these strides in elements.

        Strides may pitch, permute, or, with 0, expand; they decide the layout where none is given.  Errors: as
        :meth:`empty`.
        """
        named = host_dtype(dtype)
        extents, steps = tuple(shape), tuple(strides)
        chosen = layout or DeviceLayout.default(extents, named, stride=steps)
        _require_shape(chosen, extents)
        return cls(device, extents, steps, named, chosen)

    @classmethod
    @takes(device=of("SpyreDevice"), memory=of("DeviceBytes"), form=TensorForm(), offset_bytes=Whole())
    def over(
        cls,
        device: SpyreDevice,
        memory: DeviceBytes,
        form: tuple[Sequence[int], DType | str, DeviceLayout | None],
        offset_bytes: int = 0,
    ) -> SpyreTensor:
        """Return a tensor in memory that somebody else owns: shape, dtype and layout of ``form``, from an offset on.

        Freeing it frees nothing.  Errors: SPY0905 it does not fit, SPY0906 the offset is not whole sticks; those of
        the layout.
        """
        shape, dtype, layout = tuple(form[0]), host_dtype(form[1]), form[2]
        chosen = layout or DeviceLayout.default(shape, dtype)
        _require_shape(chosen, shape)
        start = device.allocator.range_of(memory.allocation).address.offset
        first = memory.range.address.offset - start + offset_bytes
        if first % STICK_BYTES:
            raise InvalidSize(f"a tensor from byte {first} of an allocation on, which is not the first of a stick")
        if offset_bytes < 0 or offset_bytes + chosen.nbytes > memory.range.size_bytes:
            fact = f"a tensor of {chosen.nbytes} bytes from byte {offset_bytes} on"
            raise OutsideAllocation(f"{fact}, in memory of {memory.range.size_bytes}")
        tensor = cls.__new__(cls)
        tensor.device, tensor.shape, tensor.strides = device, shape, row_major_strides(shape)
        tensor.dtype, tensor.layout, tensor.offset_bytes = dtype, chosen, first
        tensor._argument = None  # noqa: SLF001 -- a constructor of this class
        tensor._allocation = Borrowed(memory.allocation)  # noqa: SLF001 -- a constructor of this class
        return tensor

    @property
    def allocation_index(self) -> AllocationIndex:
        """The handle of the tensor's memory."""
        return self._allocation.index

    @property
    def size_bytes(self) -> int:
        """Bytes of device memory."""
        return self.layout.nbytes

    def device_bytes(self) -> DeviceBytes:
        """Return where the tensor lies; errors SPY0902 it was freed."""
        return self.device.allocator.part(self.allocation_index, self.offset_bytes, self.size_bytes)

    def launch_argument(self) -> LaunchArgument:
        """Return what a launch needs to know of the tensor: the same each time, which is told at a glance."""
        found = self._argument
        if found is None:
            found = self._argument = LaunchArgument(
                self._allocation.index, self.shape, self.strides, self.dtype, self.layout, self.offset_bytes
            )
        return found

    @takes(stream=of("SpyreStream", or_none=True))
    def to_host(self, stream: SpyreStream | None = None) -> HostArray:
        """Return the values as a new contiguous array, after waiting for the stream, by default the current one.

        Errors: SPY0902, those of :meth:`FlexStream.synchronize`.
        """
        chosen = self.stream(stream)
        # One element for all of an expanded dim: it is copied once, and repeated here.
        kept = tuple(1 if stride == 0 else size for size, stride in zip(self.shape, self.strides, strict=True))
        storage = np.zeros(math.prod(kept), self.dtype.carrier)
        steps = tuple(
            0 if stride == 0 and size > 1 else step
            for size, stride, step in zip(self.shape, self.strides, row_major_strides(kept), strict=True)
        )
        conversion = _table(self.layout, Direction.DEVICE_TO_HOST, self.shape, steps, self.dtype)
        origin = Origin(self.device.next_launch_id(), "to_host")
        chosen.flex.refuse_waiting("copy to the host")
        chosen.flex.enqueue([device_to_host(self.device_bytes(), storage, origin, conversion)])
        chosen.synchronize()
        values = storage.reshape(kept)
        return values if kept == self.shape else np.ascontiguousarray(np.broadcast_to(values, self.shape))

    @takes(array=of("ndarray"), stream=of("SpyreStream", or_none=True))
    def copy_in(self, array: HostArray, stream: SpyreStream | None = None) -> None:
        """Copy the values of a host array of this shape and dtype to the device, on a stream, by default the current.

        The call returns before the copy; the array may be changed at once.  Errors: as :meth:`to_device`.
        """
        dtype_of(array, self.dtype)
        if array.shape != self.shape:
            raise ShapeMismatch(f"a copy of shape {list(array.shape)} into shape {list(self.shape)}")
        conversion = _table(
            self.layout, Direction.HOST_TO_DEVICE, self.shape, row_major_strides(self.shape), self.dtype
        )
        check = converter(conversion.host_format, conversion.device_format).check
        if check is not None:
            check(array)
        source = np.ascontiguousarray(array).reshape(-1)
        origin = Origin(self.device.next_launch_id(), "to_device")
        self.stream(stream).flex.enqueue([host_to_device(source, self.device_bytes(), origin, conversion)])

    @takes(source=of("SpyreTensor"), stream=of("SpyreStream", or_none=True))
    def copy_from(self, source: SpyreTensor, stream: SpyreStream | None = None) -> None:
        """Copy the values of another tensor of this shape, dtype and layout, on the device.

        Errors: SPY0902, SPY0926 onto itself, SPY0951 to SPY0954; of enqueueing.
        """
        if source.device is not self.device:
            raise DeviceMismatch(f"a copy from device {source.device.index} to device {self.device.index}")
        if source.shape != self.shape:
            raise ShapeMismatch(f"a copy of shape {list(source.shape)} into shape {list(self.shape)}")
        if source.dtype is not self.dtype:
            raise DtypeMismatch(f"a copy of {source.dtype.value} into {self.dtype.value}")
        if source.layout != self.layout:
            hint = "copy through the host, or make both with one layout"
            raise LayoutMismatch(f"a copy of {source.layout} into {self.layout}", hint=hint)
        self.stream(stream).flex.copy_d2d(self.device_bytes(), source.device_bytes())

    def free(self) -> None:
        """Give the memory back now, or when the last enqueued operation that uses it has retired; errors SPY0903."""
        self._allocation.free()

    @takes(stream=of("SpyreStream"))
    def record_stream(self, stream: SpyreStream) -> None:
        """Keep the memory until all that is enqueued on a stream now is done, even if the tensor is freed before.

        Copies and launches do so by themselves; host functions do not.  Errors: SPY0902, SPY0954.
        """
        self.stream(stream).flex.keep(self.allocation_index)

    def stream(self, stream: SpyreStream | None) -> SpyreStream:
        """Return the stream given, or the current one; errors SPY0954 it is another device's."""
        if stream is None:
            return self.device.current_stream()
        if stream.device is not self.device:
            fact = f"a tensor of device {self.device.index} and a stream of device {stream.device.index}"
            raise DeviceMismatch(fact)
        return stream

    def __repr__(self) -> str:
        return f"SpyreTensor({list(self.shape)}, {self.dtype.value}, {self.layout})"


def dtype_of(array: HostArray, dtype: DType | str | None = None) -> DType:
    """Return the dtype that an array has on a device, as named or as NumPy's tells; errors SPY0951."""
    if dtype is None:
        if array.dtype.name not in _BY_CARRIER:
            raise DtypeMismatch(f"no dtype of the device holds a {array.dtype.name} array", hint="convert it first")
        return _BY_CARRIER[array.dtype.name]
    named = host_dtype(dtype)
    if array.dtype.name != named.carrier:
        raise DtypeMismatch(f"the array is {array.dtype.name}, {named.value} is carried by {named.carrier}")
    return named


def _require_shape(layout: DeviceLayout, shape: tuple[int, ...]) -> None:
    if layout.host_shape != shape and math.prod(layout.host_shape) < math.prod(shape):
        raise ShapeMismatch(f"the shape is {list(shape)}, the layout holds {list(layout.host_shape)}")


def _table(
    layout: DeviceLayout, direction: Direction, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType
) -> DataConversionInfo:
    _require_shape(layout, shape)
    return layout.dci(direction, shape, strides, host_dtype=dtype)
