"""Naming places: from an emulated address to argument, device address, device coordinate and host index."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.bundle.superdsc import Component
from spyrec.dataclass import dataclass
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.resolve import POOL
from spyrec.emulator.rules.superdsc import name_of
from spyrec.emulator.sanitizers.shadow import Shadow
from spyrec.runtime.findings import Finding, Sanitizer
from spyrec.runtime.observer import ArgumentCopy


@dataclass(frozen=True, slots=True)
class Spot:
    """One element of one operand as a core sees it: its position among the cores, its emulated address."""

    operand: int
    core: int
    emulated: int


class NamedPlaces:
    """Knows the arguments by their device addresses, and their conversion tables once a copy has shown them."""

    def __init__(self, shadow: Shadow) -> None:
        self.shadow = shadow
        self._copies: dict[int, ArgumentCopy] = {}
        self._bases: Mapping[int, int] = {}
        self._names: Mapping[int, str] = {}
        self._files: dict[int, str] = {}
        self.iteration: tuple[int, ...] = ()

    def begin(self, bases: Mapping[int, int], names: Mapping[int, str]) -> None:
        """Take the emulated address of each base of a launch, and the names of those that are arguments."""
        self._bases, self._names = bases, names

    def call_loaded(self, planned: PlannedCall, directory: str) -> None:
        """Remember the directory of a call's file, with a closing slash or empty."""
        self._files[id(planned)] = directory + planned.call.file

    def file_of(self, planned: PlannedCall) -> str:
        """Return a call's file as the bundle names it."""
        return self._files[id(planned)]

    def executing(self, iteration: tuple[int, ...]) -> None:
        """Take note of the round of each loop around the execution that is watched next."""
        self.iteration = iteration

    def base(self, base: int | None) -> int:
        """Return the emulated address of a base in device memory."""
        assert base is not None
        return self._bases[base]

    def base_name(self, base: int | None) -> str:
        """Return how a base is called."""
        if base is None:
            return "lx"
        return self._names.get(base, "pool" if base == POOL else "memory of the program")

    def learn(self, copy: ArgumentCopy) -> None:
        """Remember the table of an argument."""
        self._copies[copy.address] = copy

    def forget(self, device_address: int) -> None:
        """Forget the table of what lay at a device address."""
        self._copies.pop(device_address, None)

    def argument_at(self, device_address: int) -> ArgumentCopy | None:
        """Return the argument with a known table that a device address lies in."""
        for copy in self._copies.values():
            if copy.address <= device_address < copy.address + copy.size_bytes:
                return copy
        return None

    def element_at(self, device_address: int) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
        """Return (host index, device coordinate) of a device address, ``None`` for what is not known."""
        copy = self.argument_at(device_address)
        if copy is None:
            return None, None
        number = (device_address - copy.address) // (128 // copy.device_size[-1])
        return copy.host_index(number), copy.device_coordinate(number)

    def finding(self, kind: Sanitizer, planned: PlannedCall, spot: Spot, message: str, field: str) -> Finding:
        """Return a finding about one element of one operand."""
        superdsc = planned.call.superdsc
        operand = superdsc.operands[spot.operand]
        _, address = self.shadow.device_address(spot.emulated)
        is_lx = operand.component is Component.LX
        index, coordinate = (None, None) if is_lx else self.element_at(address)
        copy = None if is_lx else self.argument_at(address)
        tensor = "lx" if is_lx else (copy and copy.name) or self.base_name(planned.binding.bases[spot.operand])
        return Finding(
            kind,
            message,
            file=self.file_of(planned),
            op=superdsc.op_func_name,
            core=planned.binding.holders.get(spot.operand, superdsc.core_ids[spot.core]),
            tensor=tensor,
            operand=name_of(superdsc, spot.operand),
            address=address,
            element=index,
            device_coordinate=coordinate,
            field=field,
            iteration=self.iteration or None,
            provenance=superdsc.provenance,
        )
