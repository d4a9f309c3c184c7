"""Host dtypes and device formats: widths, elements per stick, NumPy carriers.

Sources: the torch dtype table of torch-spyre (device formats and elements per stick) and the DeepTools
``DataFormats`` enumeration.  Formats without a stick geometry cannot hold a tensor.
"""

from __future__ import annotations

from enum import Enum

from spyrec.dataclass import dataclass


class DeviceFormat(Enum):
    """A data format of the device, by its DeepTools name; the value is DeepTools' number.

    A format also equals its name as text: ``layout.device_dtype == "SEN169_FP16"``.
    """

    SEN169_FP16 = 0
    IEEE_FP32 = 1
    INVALID = 2
    SEN143_FP8 = 3
    SEN152_FP8 = 4
    SEN153_FP9 = 5
    SENINT2 = 6
    SENINT4 = 7
    SENINT8 = 8
    SENINT16 = 9
    SENINT24 = 10
    IEEE_INT64 = 11
    IEEE_INT32 = 12
    SENUINT32 = 13
    SENUINT2 = 14
    IEEE_FP16 = 15
    BOOL = 16
    BFLOAT16 = 17
    SEN18F_FP24 = 18

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other == self.name)

    __hash__ = Enum.__hash__  # that of the name: what equals has one hash

    @property
    def elements_per_stick(self) -> int | None:
        """Elements in one stick of 128 bytes, or ``None`` for a format without a stick geometry."""
        return _ELEMENTS_PER_STICK.get(self)

    @property
    def bits(self) -> int | None:
        """Bits of one element in a stick, or ``None`` for a format without a stick geometry."""
        elements = self.elements_per_stick
        return None if elements is None else 1024 // elements


_ELEMENTS_PER_STICK: dict[DeviceFormat, int] = {
    DeviceFormat.SEN169_FP16: 64,
    DeviceFormat.IEEE_FP32: 32,
    DeviceFormat.SEN143_FP8: 128,
    DeviceFormat.SEN152_FP8: 128,
    DeviceFormat.SENINT2: 512,
    DeviceFormat.SENINT4: 256,
    DeviceFormat.SENINT8: 128,
    DeviceFormat.SENINT16: 64,
    DeviceFormat.IEEE_INT64: 16,
    DeviceFormat.IEEE_INT32: 32,
    DeviceFormat.SENUINT32: 32,
    DeviceFormat.SENUINT2: 512,
    DeviceFormat.IEEE_FP16: 64,
    DeviceFormat.BOOL: 128,
    DeviceFormat.BFLOAT16: 64,
}


@dataclass(frozen=True, slots=True)
class _Facts:
    host_format: str
    device_format: DeviceFormat
    item_bytes: int
    carrier: str


class DType(Enum):
    """A host dtype by its PyTorch name; see ``docs`` of each property for what it means on the device."""

    __hash__ = object.__hash__  # a member is one object, and a key of many tables

    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2FNUZ = "float8_e5m2fnuz"

    @property
    def device_format(self) -> DeviceFormat:
        """The format a tensor of this dtype has in device memory."""
        return _FACTS[self].device_format

    @property
    def host_format(self) -> str:
        """The DeepTools name of the host side of a copy (``dataformat_src_`` of a host-to-device DCI)."""
        return _FACTS[self].host_format

    @property
    def item_bytes(self) -> int:
        """Bytes of one element on the host."""
        return _FACTS[self].item_bytes

    @property
    def carrier(self) -> str:
        """The NumPy dtype that holds host values; formats NumPy lacks are carried as raw bits in unsigned integers."""
        return _FACTS[self].carrier

    @property
    def is_float(self) -> bool:
        """Whether the dtype is a floating-point format."""
        return self.value.startswith(("float", "bfloat"))


_FACTS: dict[DType, _Facts] = {
    DType.FLOAT16: _Facts("IEEE_FP16", DeviceFormat.SEN169_FP16, 2, "float16"),
    DType.BFLOAT16: _Facts("BFLOAT16", DeviceFormat.SEN169_FP16, 2, "uint16"),
    DType.FLOAT32: _Facts("IEEE_FP32", DeviceFormat.IEEE_FP32, 4, "float32"),
    DType.BOOL: _Facts("BOOL", DeviceFormat.SEN169_FP16, 1, "bool"),
    DType.INT8: _Facts("SENINT8", DeviceFormat.SENINT8, 1, "int8"),
    DType.INT16: _Facts("SENINT16", DeviceFormat.SENINT16, 2, "int16"),
    DType.INT32: _Facts("IEEE_INT32", DeviceFormat.IEEE_INT32, 4, "int32"),
    DType.INT64: _Facts("IEEE_INT64", DeviceFormat.IEEE_INT32, 8, "int64"),
    DType.UINT8: _Facts("SENUINT32", DeviceFormat.SENUINT32, 1, "uint8"),
    DType.FLOAT8_E4M3FN: _Facts("SEN143_FP8", DeviceFormat.SEN143_FP8, 1, "uint8"),
    DType.FLOAT8_E5M2FNUZ: _Facts("SEN152_FP8", DeviceFormat.SEN152_FP8, 1, "uint8"),
}


QUANTIZED: dict[str, DType] = {"qint8": DType.INT8, "quint8": DType.UINT8}
"""PyTorch's quantized dtypes by name, and the dtype of the integers they are: device and host hold these."""

PACKED: dict[str, DeviceFormat] = {"quint4x2": DeviceFormat.SENUINT2, "quint2x4": DeviceFormat.SENUINT2}
"""PyTorch's dtypes of several elements per byte: they have a device format; no copy makes or reads one."""

_FLOATS = frozenset(
    {
        DeviceFormat.SEN169_FP16,
        DeviceFormat.IEEE_FP16,
        DeviceFormat.IEEE_FP32,
        DeviceFormat.BFLOAT16,
        DeviceFormat.BOOL,
    }
)
_INTEGERS = frozenset({DeviceFormat.IEEE_INT32, DeviceFormat.IEEE_INT64})
_UNCHANGED = frozenset(
    {
        DeviceFormat.SEN143_FP8,
        DeviceFormat.SEN152_FP8,
        DeviceFormat.SENINT8,
        DeviceFormat.SENINT16,
        DeviceFormat.SENUINT32,
    }
)


def is_convertible(source: DeviceFormat, destination: DeviceFormat) -> bool:
    """Whether a copy between host and device exists for a pair of formats."""
    if source in _UNCHANGED:
        return source is destination
    return any({source, destination} <= family for family in (_FLOATS, _INTEGERS))
