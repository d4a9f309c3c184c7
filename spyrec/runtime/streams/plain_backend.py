"""A backend of memory alone: copies are real, and computing is a function that is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import DEFAULT_PROFILE
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.lazy_memory import Bytes, LazyMemory
from spyrec.runtime.streams.control_block import COMPILED_STRIDES, ControlBlock, Kind, OperandCheck, StickStrides

_OPERATION_NS = 1000
"""What any operation takes at least, so that time passes at all (runtime decision: no source states it)."""

_RATES = {
    Kind.H2D.text: DEFAULT_PROFILE.host_to_device_bytes_per_us,
    Kind.D2H.text: DEFAULT_PROFILE.device_to_host_bytes_per_us,
}
"""Bytes per microsecond of the copies over the link, by the text of their kind (enums are slow to hash)."""

Compute = Callable[[ControlBlock, LazyMemory], None]


def _no_engine(block: ControlBlock, memory: LazyMemory) -> None:
    raise NotImplementedError(f"nothing computes {block.origin} on {memory}")


class _TakesEverything:
    """Implements :class:`OperandCheck` for a program that nobody knows."""

    index_rows: Mapping[int, int] = MappingProxyType({})

    def __call__(self, operands: Sequence[AddressRange | None], strides: StickStrides = COMPILED_STRIDES) -> None:
        pass


class PlainBackend(LazyMemory):
    """Implements :class:`Backend` for copies and host work; ``compute`` stands for the compute engine."""

    def __init__(self, compute: Compute = _no_engine, *, fill: int | None = None) -> None:
        super().__init__(fill)
        self._compute = compute

    def write(self, wanted: AddressRange, data: Bytes) -> None:
        """Write bytes of one live block; errors SPY0905 outside."""
        memory = self.view(wanted)
        memory[:] = data[: memory.size]

    def lend(self, wanted: AddressRange, *, is_written: bool) -> Bytes:
        """Return bytes of one live block; errors SPY0901, SPY0905."""
        del is_written  # a protocol's
        return self.view(wanted)

    def stored_as(self, device_format: DeviceFormat) -> DeviceFormat:
        """Return the format itself: this memory is the device's, byte for byte."""
        return device_format

    def operand_check(self, image: bytes, name: str) -> OperandCheck:  # noqa: ARG002 -- what computes knows no images
        """Return a check that takes everything."""
        return _TakesEverything()

    def compute(self, block: ControlBlock) -> None:
        """Call the function that stands for the compute engine."""
        self._compute(block, self)

    def duration_ns(self, block: ControlBlock) -> int:
        """Return the simulated time of a block."""
        return simulated_ns(block)


def simulated_ns(block: ControlBlock) -> int:
    """Return a time for a block from its footprint: copies at the link's rate, all else at that of the memory."""
    rate, size_bytes = _RATES.get(block.kind.text, DEFAULT_PROFILE.memory_bytes_per_us), 0
    for _, part_bytes in block.reads:
        size_bytes += part_bytes
    for _, part_bytes in block.writes:
        size_bytes += part_bytes
    return _OPERATION_NS + int(1000 * size_bytes / rate)
