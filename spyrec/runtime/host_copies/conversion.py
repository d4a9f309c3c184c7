"""What happens to an element on its way between host and device formats.

The pairs are those torch-spyre's runtime allows and this project's dtypes need. Floats go through float32, which
holds every 8- and 16-bit format exactly, and are rounded once into the destination.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse
from spyrec.hardware.dlfloat import decode, encode, saturated
from spyrec.hardware.dtypes import DeviceFormat

Elements = npt.NDArray[np.generic]
_F = DeviceFormat

_STORAGE: dict[DeviceFormat, str] = {
    _F.SEN169_FP16: "uint16",
    _F.IEEE_FP32: "float32",
    _F.SEN143_FP8: "uint8",
    _F.SEN152_FP8: "uint8",
    _F.SENINT8: "int8",
    _F.SENINT16: "int16",
    _F.IEEE_INT32: "int32",
    _F.IEEE_INT64: "int64",
    _F.SENUINT32: "uint32",
    _F.IEEE_FP16: "float16",
    _F.BFLOAT16: "uint16",
    _F.BOOL: "bool",
}

_HOST_ONLY: dict[DeviceFormat, tuple[np.dtype[np.generic], ...]] = {
    _F.SENUINT32: (np.dtype("uint8"), np.dtype("uint32")),
    _F.SEN169_FP16: (),
}


@cache
def storage_type(device_format: DeviceFormat) -> np.dtype[np.generic]:
    """Return the NumPy type that stores one element of a format; errors SPY0315 for formats nothing is stored in."""
    if device_format not in _STORAGE:
        raise refuse("SPY0315", f"elements of format {device_format.name} cannot be copied")
    return np.dtype(_STORAGE[device_format])


def host_carriers(host_format: DeviceFormat) -> tuple[np.dtype[np.generic], ...]:
    """Return the NumPy types that a host tensor of a format may have."""
    if host_format in _HOST_ONLY:
        return _HOST_ONLY[host_format]
    return (storage_type(host_format),)


@dataclass(frozen=True, slots=True)
class Converter:
    """How elements change: ``apply`` (``None``: NumPy's own assignment does it), and a check before anything moves."""

    apply: Callable[[Elements], Elements] | None = None
    check: Callable[[Elements], None] | None = None


@cache
def converter(source: DeviceFormat, destination: DeviceFormat) -> Converter:
    """Return the conversion of a pair of formats; errors SPY0315 where there is none."""
    if source is destination:
        return Converter(apply=_narrow_uint8 if source is _F.SENUINT32 else None)
    if (source, destination) in _CLAMPED:
        clamped = _CLAMPED[source, destination]
        return Converter(apply=lambda elements: clamped(_TO_FLOAT[source](elements)))
    if source in _TO_FLOAT and destination in _FROM_FLOAT:
        to_float, from_float = _TO_FLOAT[source], _FROM_FLOAT[destination]
        return Converter(apply=lambda elements: from_float(to_float(elements)))
    if (source, destination) == (_F.IEEE_INT64, _F.IEEE_INT32):
        return Converter(apply=lambda elements: elements.astype(np.int32), check=_require_int32)
    if (source, destination) == (_F.IEEE_INT32, _F.IEEE_INT64):
        return Converter(apply=lambda elements: elements.astype(np.int64))
    raise refuse("SPY0315", f"no copy converts {source.name} to {destination.name}")


def _narrow_uint8(elements: Elements) -> Elements:
    return elements.astype(np.uint32)


def _require_int32(elements: Elements) -> None:
    limits = np.iinfo(np.int32)
    low, high = int(elements.min()), int(elements.max())
    if low < limits.min or high > limits.max:
        worst = low if low < limits.min else high
        raise refuse(
            "SPY0318", f"value {worst} does not fit int32", hint="the device holds int64 tensors as 32-bit integers"
        )


def _decode_bfloat16(bits: Elements) -> npt.NDArray[np.float32]:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _encode_bfloat16(values: npt.NDArray[np.float32]) -> Elements:
    """Round to nearest, ties to even, as PyTorch does; NaN stays a quiet NaN."""
    pattern = np.ascontiguousarray(values).view(np.uint32)
    rounded = (pattern + np.uint32(0x7FFF) + ((pattern >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)


def _encode_half(values: npt.NDArray[np.float32]) -> Elements:
    with np.errstate(over="ignore"):  # a value beyond half precision becomes infinity: that is its rounding
        return values.astype(np.float16)


def _encode_saturated(values: npt.NDArray[np.float32]) -> Elements:
    return encode(saturated(values))


def _halves_of_dlfloats(values: npt.NDArray[np.float32]) -> Elements:
    """Round to IEEE half; 65536 is what its largest number became on the way to the device, and is that again."""
    return _encode_half(np.where(np.abs(values) == _HALF_END, np.copysign(_HALF_MAXIMUM, values), values))


_HALF_MAXIMUM, _HALF_END = np.float32(65504.0), np.float32(65536.0)

_TO_FLOAT: dict[DeviceFormat, Callable[[Elements], npt.NDArray[np.float32]]] = {
    _F.SEN169_FP16: lambda elements: decode(elements.astype(np.uint16)),
    _F.IEEE_FP16: lambda elements: elements.astype(np.float32),
    _F.IEEE_FP32: lambda elements: elements.astype(np.float32),
    _F.BFLOAT16: _decode_bfloat16,
    _F.BOOL: lambda elements: elements.astype(np.float32),
}

_FROM_FLOAT: dict[DeviceFormat, Callable[[npt.NDArray[np.float32]], Elements]] = {
    _F.SEN169_FP16: encode,
    _F.IEEE_FP16: _encode_half,
    _F.IEEE_FP32: lambda values: values,
    _F.BFLOAT16: _encode_bfloat16,
    _F.BOOL: lambda values: values != 0,
}

_CLAMPED: dict[tuple[DeviceFormat, DeviceFormat], Callable[[npt.NDArray[np.float32]], Elements]] = {
    (_F.BFLOAT16, _F.SEN169_FP16): _encode_saturated,
    (_F.IEEE_FP32, _F.SEN169_FP16): _encode_saturated,
    (_F.SEN169_FP16, _F.IEEE_FP16): _halves_of_dlfloats,
}
"""Pairs in which a finite number that the destination ends before stays finite."""
