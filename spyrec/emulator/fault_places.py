"""Where a rule is broken: core, tensor, address and element of one operand, as the files and the table tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spyrec.emulator.resolve import POOL, Call
from spyrec.emulator.rules import name_of
from spyrec.runtime.device import TableEntry
from spyrec.runtime.findings import FaultPlace
from spyrec.runtime.observer import unravel
from spyrec.target import STICK_BYTES

START = "startAddressCoreCorelet_"


@dataclass(frozen=True, slots=True)
class Spot:
    """A byte of an operand: the core's position among the cores, bytes from the base of the operand's memory."""

    core: int
    byte: int


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule: number, operand, where it shows, and the fields to look at (the operand's own first)."""

    rule: int
    position: int
    spot: Spot
    field: str = START
    more_fields: tuple[str, ...] = ()


def operand_field(position: int, name: str) -> str:
    """Return how a field of one operand's node is written."""
    return f"scheduleTree_[{position}].{name}"


def place_of(call: Call, position: int, spot: Spot, field: str, entries: Mapping[int, TableEntry]) -> FaultPlace:
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
    )


def _memory(base: int | None) -> str:
    return "pool" if base == POOL else "memory of the program"


def _coordinate(entry: TableEntry, byte: int) -> tuple[int, ...] | None:
    """Return the device coordinate of a byte of an argument, ``None`` outside of it."""
    return unravel(byte // (STICK_BYTES // entry.device_size[-1]), entry.device_size) if byte >= 0 else None
