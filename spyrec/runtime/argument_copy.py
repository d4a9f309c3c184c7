"""Copies of whole arguments between host and device, through the conversion tables of the bundle."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.manifest import Argument
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.layout.conversion_table import DataConversionInfo
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.binding import has_host_form
from spyrec.runtime.device_form import decode_device_form, encode_device_form
from spyrec.runtime.transfer import copy_to_device, copy_to_host

HostArray = npt.NDArray[np.generic]
Memory = npt.NDArray[np.uint8]


class ArgumentCopier:
    """Executes the tables ``dci/NAME.*.json`` of one bundle; an argument without host form is copied as it is.

    ``half_format`` is what the device's memory really holds where a tensor is DLFloat16.  A device that stores float32
    there has memory twice as wide: an element of any other format then lies at the front of a slot of twice its width.
    """

    def __init__(self, bundle: Bundle, half_format: DeviceFormat) -> None:
        self._tables = bundle.dci
        self._half_format = half_format

    def copy_in(self, argument: Argument, array: HostArray, memory: Memory) -> None:
        """Copy a host array into the device bytes of an argument, converting its format; errors SPY0315 to SPY0318."""
        stored_as = self._stored_as(argument)
        if self.clears(argument):
            memory[:] = 0
        packed = memory if self._is_packed(argument) else _packed_copy(memory, stored_as)
        if has_host_form(argument):
            copy_to_device(array, self.table(argument, "h2d", array.shape), packed, stored_as=stored_as)
        else:
            packed[:] = encode_device_form(array.astype(np.float32, copy=False), stored_as)
        if packed is not memory:
            _slots(memory, stored_as)[:] = packed.view(_word(stored_as))

    def copy_out(self, argument: Argument, memory: Memory, shape: tuple[int, ...] | None = None) -> HostArray:
        """Return a new host array (or, without host form, the decoded device form) of an argument.

        ``shape``: that of a run, where the argument has symbolic axes.
        """
        stored_as = self._stored_as(argument)
        packed = memory if self._is_packed(argument) else _packed_copy(memory, stored_as)
        if argument.shape is None or argument.dtype is None or not has_host_form(argument):
            return decode_device_form(packed, argument.device_size, stored_as)
        actual = shape or argument.shape
        return copy_to_host(packed, self.table(argument, "d2h", actual), actual, argument.dtype, stored_as=stored_as)

    def clears(self, argument: Argument) -> bool:
        """Whether an argument is filled with zeros before it is copied in.

        Its table then has more rows than the host tensor: those of a matmul's second operand are padding of K, which
        has to be zero in every lane, and a bundle written by others has no other way to say so.
        """
        if argument.dci is not None or not has_host_form(argument):
            return False
        lanes = argument.device_size[-1]
        reached = sum(
            math.prod(
                size for size, stride in zip(nest.sizes, nest.destination_strides, strict=True) if stride % lanes == 0
            )
            for nest in self.table(argument, "h2d").nests
        )
        return reached < math.prod(argument.device_size[:-1])

    def _stored_as(self, argument: Argument) -> DeviceFormat:
        is_half = argument.device_dtype is DeviceFormat.SEN169_FP16
        return self._half_format if is_half else argument.device_dtype

    def _is_packed(self, argument: Argument) -> bool:
        is_wide = self._half_format is DeviceFormat.IEEE_FP32
        return not is_wide or argument.device_dtype is DeviceFormat.SEN169_FP16

    def table(self, argument: Argument, direction: str, shape: tuple[int, ...] | None = None) -> DataConversionInfo:
        """Return the conversion table of an argument that has a host form.

        The bundle's tables are for the largest extents; a run with others gets one for its ``shape``.
        """
        if argument.symbolic_axes and shape is not None and shape != argument.shape:
            return _run_table(argument, direction, shape)
        if argument.dci is not None:
            return self._tables[argument.dci[direction]]
        # Only a bundle written by others is without tables: they follow from the layout its argument table states.
        assert argument.stride_map is not None
        layout = DeviceLayout(argument.device_size, argument.stride_map, argument.device_dtype)
        return layout.dci(
            direction, host_shape=argument.shape, host_strides=argument.host_strides, host_dtype=argument.dtype
        )


def _run_table(argument: Argument, direction: str, shape: tuple[int, ...]) -> DataConversionInfo:
    """Return the table that copies a contiguous host tensor of a run's shape."""
    assert argument.stride_map is not None
    largest = DeviceLayout(argument.device_size, argument.stride_map, argument.device_dtype, argument.shape)
    strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return largest.dci(direction, host_shape=shape, host_strides=strides, host_dtype=argument.dtype)


def _word(stored_as: DeviceFormat) -> np.dtype[np.unsignedinteger]:
    assert stored_as.bits is not None
    return np.dtype(f"u{stored_as.bits // 8}")


def _slots(memory: Memory, stored_as: DeviceFormat) -> npt.NDArray[np.unsignedinteger]:
    """Return the elements of memory whose slots are twice as wide as they are."""
    return memory.view(_word(stored_as))[::2]


def _packed_copy(memory: Memory, stored_as: DeviceFormat) -> Memory:
    return np.ascontiguousarray(_slots(memory, stored_as)).view(np.uint8)
