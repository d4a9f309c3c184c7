"""Arguments in device form: a float32 array of shape ``device_size`` that holds decoded values.

It is the form of an argument whose table gives no host shape (a bundle written by others).  Integers are exact up to
2**24, the last that float32 counts by ones.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.layout.conversion_table import CopyNest
from spyrec.layout.tiling import row_major_strides

Floats = npt.NDArray[np.float32]
Octets = npt.NDArray[np.uint8]

_INTEGERS: dict[DeviceFormat, type[np.integer]] = {
    DeviceFormat.SENINT8: np.int8,
    DeviceFormat.SENINT16: np.int16,
    DeviceFormat.IEEE_INT32: np.int32,
    DeviceFormat.SENUINT32: np.uint32,
}


@dataclass(frozen=True, slots=True)
class DeviceForm:
    """How a tensor in device form is copied: its ``device_size``, and the format of its elements on the device.

    ``extents``: how much of it a run has whose dims are smaller; what lies behind is 0 going in, and stays behind.
    """

    device_size: tuple[int, ...]
    device_format: DeviceFormat
    extents: tuple[int, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the host array."""
        return self.extents or self.device_size

    @property
    def inside(self) -> tuple[slice, ...]:
        """Where the host array lies in one of ``device_size``."""
        return tuple(slice(extent) for extent in self.shape)

    def encoded(self, values: Floats, stored_as: DeviceFormat) -> Octets:
        """Return the device bytes of a host array; errors SPY0318, SPY0773."""
        if self.extents is None:
            return encode_device_form(values, stored_as)
        whole = np.zeros(self.device_size, values.dtype)
        whole[self.inside] = values
        return encode_device_form(whole, stored_as)

    def decoded(self, memory: Octets, stored_as: DeviceFormat) -> Floats:
        """Return the host array of device bytes; errors SPY0773."""
        return decode_device_form(memory, self.device_size, stored_as)[self.inside]

    def nests(self, *, is_to_device: bool) -> tuple[CopyNest, ...] | None:
        """Return what a copy touches where that is not everything: coming back, lane 0 stands for its stick."""
        if self.extents is None:
            return None
        sizes = self.extents if is_to_device else (*self.extents[:-1], 1)
        strides = row_major_strides(self.device_size)[::-1]
        return (CopyNest(sizes[::-1], strides, strides),)


def encode_device_form(values: Floats, device_format: DeviceFormat) -> Octets:
    """Return the device bytes of decoded values, rounded once into the format.

    Errors: SPY0773 for a format whose elements have no value here, SPY0318 for a number outside an integer format.
    """
    flat = np.ascontiguousarray(values).reshape(-1)
    integer = _INTEGERS.get(device_format)
    if integer is not None:
        return _encode_integers(flat, integer, device_format)
    match device_format:
        case DeviceFormat.SEN169_FP16:
            return dlfloat.encode(flat).view(np.uint8)
        case DeviceFormat.IEEE_FP32:
            return flat.view(np.uint8)
        case DeviceFormat.IEEE_FP16:
            return flat.astype(np.float16).view(np.uint8)
        case DeviceFormat.SEN143_FP8:
            return _encode_e4m3(flat)
        case _:
            raise _no_values(device_format)


def decode_device_form(memory: Octets, device_size: tuple[int, ...], device_format: DeviceFormat) -> Floats:
    """Return the decoded values of an argument's device bytes, in shape ``device_size``; errors SPY0773."""
    integer = _INTEGERS.get(device_format)
    if integer is not None:
        return memory.view(integer).astype(np.float32).reshape(device_size)
    match device_format:
        case DeviceFormat.SEN169_FP16:
            values = dlfloat.decode(memory.view(np.uint16))
        case DeviceFormat.IEEE_FP32:
            values = memory.view(np.float32).copy()
        case DeviceFormat.IEEE_FP16:
            values = memory.view(np.float16).astype(np.float32)
        case DeviceFormat.SEN143_FP8:
            values = _e4m3_values()[memory]
        case _:
            raise _no_values(device_format)
    return values.reshape(device_size)


def _no_values(device_format: DeviceFormat) -> SpyrecError:
    return refuse(
        "SPY0773",
        f"arguments in device form cannot have the format {device_format.name}",
        hint="give shape, dtype and stride_map in the argument table",
    )


def _encode_integers(flat: Floats, integer: type[np.integer], device_format: DeviceFormat) -> Octets:
    limits = np.iinfo(integer)
    rounded = np.rint(flat.astype(np.float64))
    outside = ~((rounded >= limits.min) & (rounded <= limits.max))  # a NaN is outside as well
    if outside.any():
        worst = flat[int(np.argmax(outside))]
        raise refuse("SPY0318", f"value {worst} does not fit {device_format.name}, which holds whole numbers")
    return rounded.astype(integer).view(np.uint8)


@cache
def _e4m3_values() -> Floats:
    """Return the value of each of the 256 patterns: bias 7, largest 448, 0x7F and 0xFF are NaN."""
    patterns = np.arange(128)
    exponent, fraction = patterns >> 3, patterns & 7
    values = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    values[127] = np.nan
    return np.concatenate([values, -values]).astype(np.float32)


def _encode_e4m3(flat: Floats) -> Octets:
    """Round to the nearest pattern, ties to the even one; beyond 448 saturates, NaN is 0x7F."""
    finite = _e4m3_values()[:127].astype(np.float64)
    middles = (finite[:-1] + finite[1:]) / 2
    magnitude = np.abs(flat.astype(np.float64))
    codes = np.searchsorted(middles, magnitude, side="left")
    is_tie = (codes < len(middles)) & (middles[np.minimum(codes, len(middles) - 1)] == magnitude)
    codes += is_tie & (codes % 2 == 1)
    signed = codes | np.where(np.signbit(flat), 0x80, 0)
    return np.where(np.isnan(flat), 0x7F, signed).astype(np.uint8)
