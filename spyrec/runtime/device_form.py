"""Arguments in device form: a float32 array of shape ``device_size`` that holds decoded values.

It is the form of an argument whose table gives no host shape (a bundle written by others).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec import dlfloat
from spyrec.diagnostics import refuse
from spyrec.dtypes import DeviceFormat


def encode_device_form(values: npt.NDArray[np.float32], device_format: DeviceFormat) -> npt.NDArray[np.uint8]:
    """Return the device bytes of decoded values, rounded once into the format; errors SPY0773."""
    flat = np.ascontiguousarray(values).reshape(-1)
    match device_format:
        case DeviceFormat.SEN169_FP16:
            return dlfloat.encode(flat).view(np.uint8)
        case DeviceFormat.IEEE_FP32:
            return flat.view(np.uint8)
        case DeviceFormat.IEEE_FP16:
            return flat.astype(np.float16).view(np.uint8)
        case DeviceFormat.IEEE_INT32:
            return np.rint(flat).astype(np.int32).view(np.uint8)
        case DeviceFormat.SENINT8:
            return np.rint(flat).astype(np.int8).view(np.uint8)
        case _:
            raise refuse(
                "SPY0773",
                f"arguments in device form cannot have the format {device_format.name}",
                hint="give shape, dtype and stride_map in the argument table",
            )


def decode_device_form(
    memory: npt.NDArray[np.uint8], device_size: tuple[int, ...], device_format: DeviceFormat
) -> npt.NDArray[np.float32]:
    """Return the decoded values of an argument's device bytes, in shape ``device_size``; errors SPY0773."""
    match device_format:
        case DeviceFormat.SEN169_FP16:
            values = dlfloat.decode(memory.view(np.uint16))
        case DeviceFormat.IEEE_FP32:
            values = memory.view(np.float32).copy()
        case DeviceFormat.IEEE_FP16:
            values = memory.view(np.float16).astype(np.float32)
        case DeviceFormat.IEEE_INT32:
            values = memory.view(np.int32).astype(np.float32)
        case DeviceFormat.SENINT8:
            values = memory.view(np.int8).astype(np.float32)
        case _:
            raise refuse(
                "SPY0773",
                f"arguments in device form cannot have the format {device_format.name}",
                hint="give shape, dtype and stride_map in the argument table",
            )
    return values.reshape(device_size)
