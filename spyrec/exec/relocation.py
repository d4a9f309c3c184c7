"""Control blocks moved to other memory: how what was captured on a port is made to use the buffer bound to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, runtime_checkable

from spyrec.diagnostics import SpyrecError
from spyrec.exec.errors import InvalidCall, text_of
from spyrec.runtime.memory.addresses import AddressRange, VirtualAddress
from spyrec.runtime.memory.windows import Touched
from spyrec.runtime.streams.control_block import (
    Action,
    ComputeRequest,
    ControlBlock,
    DeviceToDevice,
    DeviceToHost,
    HostCall,
    HostToDevice,
    Kind,
    MemoryFootprint,
)

Move = Callable[[AddressRange], AddressRange]


@runtime_checkable
class Relocatable(Protocol):
    """Host work of the runtime that knows which device memory it is about."""

    def relocated(self, move: Move) -> Callable[[], None]:
        """Return the same work about memory that lies elsewhere."""
        ...


def move_of(moves: Mapping[AddressRange, AddressRange]) -> Move:
    """Return the function that moves what lies in one of some ranges to the same place of another."""

    def move(place: AddressRange) -> AddressRange:
        for old, new in moves.items():
            if old.contains(place):
                return new.part(place.address.offset - old.address.offset, place.size_bytes)
        return place

    return move


def touches(block: ControlBlock, places: tuple[AddressRange, ...]) -> bool:
    """Whether an operation reads or writes one of some ranges."""
    return any(item.overlaps(place) for item in (*block.reads, *block.writes) for place in places)


def relocated(block: ControlBlock, move: Move) -> ControlBlock:
    """Return an operation on memory that lies elsewhere; errors SPY0931 a copy would overlap itself there."""
    reads, writes = tuple(map(move, block.reads)), tuple(map(move, block.writes))
    if block.kind is Kind.D2D and any(one.overlaps(other) for one in reads for other in writes):
        raise InvalidCall(f"ports are bound to memory that overlaps: a copy from {reads[0]} to {writes[0]}")
    windows = block.windows
    if windows is not None:
        windows = MemoryFootprint(_moved(windows.reads, move), _moved(windows.writes, move))
    return replace(block, action=_action(block.action, move), reads=reads, writes=writes, windows=windows)


def _moved(items: tuple[Touched, ...], move: Move) -> tuple[Touched, ...]:
    return tuple(
        move(item) if isinstance(item, AddressRange) else item._replace(range=move(item.range)) for item in items
    )


def _action(action: Action, move: Move) -> Action:
    match action:
        case HostToDevice():
            return replace(action, destination=move(action.destination))
        case DeviceToHost():
            return replace(action, source=move(action.source))
        case DeviceToDevice(source=source, destination=destination):
            return replace(action, source=_address(source, move), destination=_address(destination, move))
        case ComputeRequest():
            table = tuple(None if item is None else _address(item, move) for item in action.segment_table)
            return replace(action, operands=_operands(action, move), segment_table=table)
        case HostCall(function=function) if isinstance(function, Relocatable):
            return HostCall(function.relocated(move))
        case _:
            return action


def _operands(request: ComputeRequest, move: Move) -> tuple[AddressRange, ...]:
    """Return the operands of a computation elsewhere; errors SPY0931 they overlap there as its program cannot take."""
    moved = tuple(map(move, request.operands))
    if request.check is not None and moved != request.operands:
        try:
            request.check(moved)
        except SpyrecError as error:
            message, notes = text_of(error)
            raise InvalidCall(f"ports are bound to memory that overlaps: {message}", notes=notes) from error
    return moved


def _address(address: VirtualAddress, move: Move) -> VirtualAddress:
    return move(AddressRange(address, 1)).address
