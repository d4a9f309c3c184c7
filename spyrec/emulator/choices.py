"""What a user may choose of an emulated device, by name: how it stores 16-bit values, what executes programs, how many.

The front states these as options and hands them on; light, so that a compilation may import it.
"""

from __future__ import annotations

from enum import Enum

from spyrec.hardware.dtypes import DeviceFormat

MAX_EXECUTIONS = 10**9
"""SuperDSCs that one run may execute before it is refused as a mistake or an attack."""


class Numerics(Enum):
    """How 16-bit device values are stored: as on the device, as IEEE half, or unrounded in float32."""

    DL16 = "dl16"
    IEEE = "ieee"
    F32 = "f32"


class Engine(Enum):
    """What executes programs: the compiled path, or the slow interpreter that defines what they do.

    The second is ``spyrec/emulator/reference``; both leave the same bytes.
    """

    FAST = "fast"
    REFERENCE = "reference"


_HALF_FORMATS = {
    Numerics.DL16: DeviceFormat.SEN169_FP16,
    Numerics.IEEE: DeviceFormat.IEEE_FP16,
    Numerics.F32: DeviceFormat.IEEE_FP32,
}


def half_format_of(numerics: Numerics) -> DeviceFormat:
    """Return what memory really holds where a tensor is DLFloat16."""
    return _HALF_FORMATS[numerics]


def expansion_of(numerics: Numerics) -> int:
    """Return the emulated bytes per device byte."""
    return 2 if numerics is Numerics.F32 else 1
