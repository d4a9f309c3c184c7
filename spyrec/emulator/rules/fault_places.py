"""Where a rule is broken: core, tensor, address and element of one operand, as the files and the table tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, SpyrecError
from spyrec.emulator.resolve import POOL, ScheduledCall
from spyrec.emulator.rules.superdsc import name_of
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.device import TableEntry
from spyrec.runtime.findings import FaultPlace, LaunchRefused, RuleDiagnostic
from spyrec.runtime.observer import unravel

START = "startAddressCoreCorelet_"


class IndexOutsideTable(Exception):
    """A row number outside of a gather's table; ``found`` says which, ``place`` where but for the memory.

    ``emulated`` is where the index lies, ``iteration`` the round of each loop around the gather, outermost first;
    whoever launched the program knows what the first is, and sets the second.  ``stored``: the bases that operations
    before it may have stored to, where the launch knows.
    """

    def __init__(self, found: Diagnostic, place: FaultPlace, emulated: int) -> None:
        super().__init__(found.message)
        self.found = found
        self.place = place
        self.emulated = emulated
        self.iteration: tuple[int, ...] = ()
        self.stored: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """What an emulated address range is: the argument (or pool) and its device address."""

    entry: TableEntry
    first: int
    device_address: int

    def place(self, emulated: int, expansion: int) -> tuple[str, int, tuple[int, ...] | None] | None:
        """Return tensor, device address and device coordinate of an emulated address, ``None`` outside."""
        byte = (emulated - self.first) // expansion
        if not 0 <= byte < self.entry.size_bytes:
            return None
        coordinate = None if self.entry.arg_index == POOL else _coordinate(self.entry, byte)
        return self.entry.name, self.device_address + byte, coordinate


def index_refusal(fault: IndexOutsideTable, memories: Iterable[Memory], expansion: int) -> SpyrecError:
    """Return the refusal of a row number outside of its table, with tensor, address and element of the index."""
    places = (memory.place(fault.emulated, expansion) for memory in memories)
    known = next((item for item in places if item is not None), None)
    place = replace(fault.place, iteration=fault.iteration or None)
    if known is not None:
        tensor, address, coordinate = known
        place = replace(place, tensor=tensor, address=address, device_coordinate=coordinate)
    found = [RuleDiagnostic.of(fault.found, place)]
    return SpyrecError(found) if fault.stored is None else LaunchRefused(found, fault.stored)


@dataclass(frozen=True, slots=True)
class FaultSpot:
    """A byte of an operand: the core's position among the cores, bytes from the base of the operand's memory."""

    core: int
    byte: int


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule: number, operand, where it shows, and the fields to look at (the operand's own first)."""

    rule: int
    position: int
    spot: FaultSpot
    field: str = START
    more_fields: tuple[str, ...] = ()


def operand_field(position: int, name: str) -> str:
    """Return how a field of one operand's node is written."""
    return f"scheduleTree_[{position}].{name}"


def place_of(
    call: ScheduledCall, position: int, spot: FaultSpot, field: str, entries: Mapping[int, TableEntry]
) -> FaultPlace:
    """Return the place of a byte of an operand; an address of an argument is the one that programs bake in."""
    superdsc = call.superdsc
    places = call.places[position]
    base = None if places is None else places[spot.core].base
    entry = entries.get(base) if base is not None else None
    return FaultPlace(
        op=superdsc.op_func_name,
        core=superdsc.core_ids[spot.core],
        tensor=entry.name if entry is not None else "lx" if places is None else _memory(base),
        operand=name_of(superdsc, position),
        address=spot.byte + (0 if entry is None else entry.baked_base),
        device_coordinate=None if entry is None or base == POOL else _coordinate(entry, spot.byte),
        field=field,
        provenance=superdsc.provenance,
    )


def _memory(base: int | None) -> str:
    return "pool" if base == POOL else "memory of the program"


def _coordinate(entry: TableEntry, byte: int) -> tuple[int, ...] | None:
    """Return the device coordinate of a byte of an argument, ``None`` outside of it and in memory without layout."""
    if byte < 0 or not entry.device_size:
        return None
    return unravel(byte // (STICK_BYTES // entry.device_size[-1]), entry.device_size)
