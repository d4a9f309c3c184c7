"""What a HostOperation does when its time has come: the correction tensor of one iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from spyrec.bundle.host_compute import HostComputeInputs, HostComputeSpec, evaluate
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.streams.host_buffer import HostBuffer


@dataclass(frozen=True, slots=True, eq=False)
class CorrectionWork:
    """Writes the correction tensor to ``buffer``.

    ``operands``: where they lie, in the order of the job's arguments; ``segments``: the device address of the first
    byte of each region, by its id.  ``stick_strides``: by argument index.
    """

    specification: HostComputeSpec
    buffer: HostBuffer
    segments: Mapping[int, int]
    operands: tuple[AddressRange, ...]
    pool: AddressRange | None
    values: Mapping[str, int]
    stick_strides: Mapping[int, tuple[int, ...]]

    def __call__(self) -> None:
        """Compute the tensor; errors SPY0658."""
        self.buffer.data.data[:] = evaluate(self.specification, self.inputs())

    def inputs(self) -> HostComputeInputs:
        """Return the numbers that the words are taken from."""
        segments = self.segments
        addresses = tuple([segments[region_id] + offset for (region_id, offset), _ in self.operands])
        pool = None if self.pool is None else segments[self.pool.address.region_id] + self.pool.address.offset
        return HostComputeInputs(addresses, pool, self.values, self.stick_strides)

    def relocated(self, move: Callable[[AddressRange], AddressRange]) -> Self:
        """Return the same for operands that lie elsewhere."""
        return replace(self, operands=tuple(map(move, self.operands)))
