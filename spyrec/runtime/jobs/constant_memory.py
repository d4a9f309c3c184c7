"""Constants that several plans of one device have: equal ones in equal layouts lie there once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from spyrec.bundle.manifest import Argument
from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.memory.allocator import AllocationIndex
from spyrec.runtime.memory.spyre_allocator import Allocation
from spyrec.runtime.streams.launch_order import Readiness


class _Key(NamedTuple):
    tensor: str
    device_size: tuple[int, ...]
    stride_map: tuple[int, ...] | None
    device_dtype: DeviceFormat


@dataclass(slots=True, eq=False)
class _Kept:
    owner: Allocation
    readiness: Readiness
    users: int = 0


class ConstantMemory:
    """The constants of the plans of one model on one device, each freed when the last plan gives it back."""

    def __init__(self) -> None:
        self._kept: dict[_Key, _Kept] = {}

    def of_plan(self, arguments: Mapping[str, Argument], tensors: Mapping[str, str]) -> PlanConstants:
        """Return the constants of one plan; ``tensors``: by name, what each is known by to all plans."""
        keys = {
            name: _Key(tensor, arguments[name].device_size, arguments[name].stride_map, arguments[name].device_dtype)
            for name, tensor in tensors.items()
            if name in arguments
        }
        return PlanConstants(self._kept, keys)


class PlanConstants:
    """The constants of one plan among those of others."""

    def __init__(self, kept: dict[_Key, _Kept], keys: Mapping[str, _Key]) -> None:
        self._kept = kept
        self._keys = keys

    def is_there(self, name: str) -> bool:
        """Whether another plan has brought a constant."""
        kept = self._kept.get(self._keys[name])
        return kept is not None and kept.readiness.is_well

    def keep(self, name: str, owner: Allocation, readiness: Readiness) -> UsedConstant:
        """Let others use a constant that this plan brings, and return this plan's use of it."""
        self._kept[self._keys[name]] = _Kept(owner, readiness)
        return self.use(name)

    def use(self, name: str) -> UsedConstant:
        """Return a use of a constant that is there."""
        kept = self._kept[self._keys[name]]
        kept.users += 1
        return UsedConstant(self._kept, self._keys[name], kept)


@dataclass(frozen=True, slots=True)
class UsedConstant:
    """The use of a constant by one plan."""

    _all: dict[_Key, _Kept]
    _key: _Key
    _kept: _Kept

    @property
    def index(self) -> AllocationIndex:
        """Where the constant lies."""
        return self._kept.owner.index

    @property
    def readiness(self) -> Readiness:
        """When it is there."""
        return self._kept.readiness

    def free(self) -> None:
        """End the use; the last one gives the memory back."""
        self._kept.users -= 1
        if not self._kept.users:
            if self._all.get(self._key) is self._kept:
                del self._all[self._key]
            self._kept.owner.free()
