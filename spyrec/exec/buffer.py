"""Named device memory: the only state of the execution contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spyrec.exec.errors import InvalidCall, translated
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.memory.spyre_allocator import Allocation, Holdings
from spyrec.runtime.tensors import SpyreTensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spyrec.exec.context import Context
    from spyrec.hardware.dtypes import DType


class Buffer:
    """``bytes`` bytes of device memory with a name: a context's own, or somebody else's (``owner`` is ``None``).

    Graphs are wired together by using the same buffer.
    """

    def __init__(self, context: Context, name: str, place: DeviceBytes, owner: Allocation | None = None) -> None:
        self.context = context
        self.name = name
        self.bytes = place.range.size_bytes
        self.dptr = context.device.allocator.regions.device_address(place.range.address)
        """The address that programs on the device see; the host can do nothing with it."""
        self._place = place
        self._owner = owner
        self._is_destroyed = False

    @property
    def is_owned(self) -> bool:
        """Whether the memory is given back with the buffer."""
        return self._owner is not None

    @property
    def is_destroyed(self) -> bool:
        """Whether it can be used no more."""
        return self._is_destroyed

    def place(self) -> DeviceBytes:
        """Return the buffer's memory; errors SPY0931 the buffer, or its wrapped memory, is gone."""
        self.context.require_alive()
        if self._is_destroyed:
            raise InvalidCall(f'buffer "{self.name}" is destroyed')
        with translated():
            self.context.device.allocator.range_of(self._place.allocation)
        return self._place

    def held(self) -> Holdings:
        """Return what keeps the memory although the buffer is destroyed; errors SPY0931."""
        holdings = Holdings(self.context.device.allocator)
        with translated():
            holdings.add((self.place().allocation,))
        return holdings

    def tensor(
        self, shape: Sequence[int], dtype: DType | str, layout: DeviceLayout | None = None, offset_bytes: int = 0
    ) -> SpyreTensor:
        """Return a tensor that lies in this buffer, to launch programs on; errors SPY0931 it does not fit."""
        place = self.place()
        with translated():
            return SpyreTensor.over(self.context.device, place, (shape, dtype, layout), offset_bytes)

    def destroy(self) -> None:
        """Give the memory back when nothing that is enqueued, captured or bound uses it; a second call does nothing."""
        if self._is_destroyed:
            return
        self._is_destroyed = True
        self.context.forget(self)
        if self._owner is not None and not self._owner.is_freed:
            self._owner.free()
