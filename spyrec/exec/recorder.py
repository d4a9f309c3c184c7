"""Records what a callback gives to a stream, on a stream that nobody else has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spyrec.dataclass import dataclass
from spyrec.exec.errors import CaptureFailed, ExecError, InvalidCall, text_of, translated
from spyrec.exec.graph_exec import GraphExec
from spyrec.exec.relocation import Relocatable, move_of, relocated, touches
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.argument_kinds import Function, of, takes
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.memory.spyre_allocator import Holdings
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.capture import Capture
from spyrec.runtime.streams.control_block import ComputeRequest, ControlBlock, DeviceToHost, HostCall, HostToDevice
from spyrec.runtime.streams.launch_order import LaunchOrder
from spyrec.runtime.streams.spyre_stream import SpyreStream

Record = Callable[[SpyreStream], object]
"""Gives work to the stream that it is called with: launches, copies, host functions, events of that stream."""


@dataclass(frozen=True, slots=True, eq=False)
class Captured:
    """What a callback recorded; where it used ports, as long as it is not known what is bound to them.

    ``ports``: the memory that stands for each of them.
    """

    device: SpyreDevice
    blocks: list[ControlBlock]
    holdings: Holdings
    order: LaunchOrder
    ports: Mapping[str, AddressRange]

    def require_fit(self, port: str, place: AddressRange, label: str) -> None:
        """Refuse memory that cannot stand at a port: errors SPY0931 too small, or a tensor's that begins in a stick."""
        captured = self.ports[port]
        if place.size_bytes < captured.size_bytes:
            fact = f'a buffer of {place.size_bytes} bytes at port "{port}"{label}'
            raise InvalidCall(f"{fact}, which was captured with {captured.size_bytes}")
        shift_bytes = place.address.offset % STICK_BYTES
        if shift_bytes and any(_needs_sticks(block) and touches(block, (captured,)) for block in self.blocks):
            fact = f'a buffer from byte {shift_bytes} of a stick on at port "{port}"{label}'
            raise InvalidCall(f"{fact}, which was captured as a tensor: tensors begin with a stick")

    def linked(self, bound: Mapping[str, DeviceBytes]) -> GraphExec:
        """Return the executable that uses, for each port, what is bound to it: at least as many bytes."""
        if not self.ports:
            return GraphExec(self.device, self.blocks, self.holdings, self.order)
        moves = {place: bound[port].range for port, place in self.ports.items()}
        move, holdings = move_of(moves), Holdings(self.device.allocator)
        blocks = [relocated(block, move) for block in self.blocks]
        holdings.add(bound[port].allocation for port in self.ports)
        holdings.also(self.holdings)
        return GraphExec(self.device, blocks, holdings, self.order)


def record_on(device: SpyreDevice, record: Record, ports: Callable[[], Mapping[str, AddressRange]]) -> Captured:
    """Return what ``record`` gives to the stream that it is called with; ``ports``: those it has declared by then.

    Errors: SPY0931 in a host function, SPY0934 it raised, or did what a capture cannot record; nothing is left of it.
    """
    with translated():
        device.scheduler.refuse_in_host_function("capture")
    stream = device.own_stream()
    try:
        capture = _recorded(stream, record)
        capture.require_complete()
        order = LaunchOrder()
        for item in capture.orders:
            order.use_all_of(item)
        for sequence in capture.sequences:
            capture.holdings.also(sequence.holdings)
        used = ports()
        _require_movable(capture.blocks, tuple(used.values()))
        return Captured(device, capture.blocks, capture.holdings, order, used)
    except Exception as error:
        message, notes = text_of(error)
        raise CaptureFailed(f"the callback could not be captured: {message}", notes=notes) from error
    finally:
        device.give_back(stream)


def _recorded(stream: SpyreStream, record: Record) -> Capture:
    """Return what a callback recorded, closed; where anything interrupts it the stream is an ordinary one again."""
    capture = Capture(stream.flex)
    try:
        stream.flex.begin_capture(capture)
        record(stream)
    finally:
        capture.is_open = False  # at once: an interrupt in what follows leaves no stream that records for ever
        capture.close()
    return capture


@takes(InvalidCall, device=of("SpyreDevice"), record=Function())
def capture(device: SpyreDevice, record: Record) -> GraphExec:
    """Return the executable of what ``record`` gives to the stream that it is called with.

    It belongs to whoever asked; graphs adopt it.  Errors: SPY0934.
    """
    captured = record_on(device, record, dict)
    return linked_or_refused(captured, {})


def linked_or_refused(captured: Captured, bound: Mapping[str, DeviceBytes]) -> GraphExec:
    """Return the executable; errors SPY0934 a correction could not be computed, SPY0931 what is bound overlaps."""
    try:
        return captured.linked(bound)
    except ExecError:
        raise
    except Exception as error:
        message, notes = text_of(error)
        raise CaptureFailed(f"a correction could not be computed: {message}", notes=notes) from error


def _needs_sticks(block: ControlBlock) -> bool:
    """Whether an operation is about tensors, not about bytes."""
    action = block.action
    if isinstance(action, HostToDevice | DeviceToHost):
        return action.conversion is not None
    return isinstance(action, ComputeRequest)


def _require_movable(blocks: list[ControlBlock], ports: tuple[AddressRange, ...]) -> None:
    launches = {block.origin.launch_id for block in blocks if touches(block, ports)}
    for block in blocks:
        action = block.action
        if (
            block.origin.launch_id in launches
            and isinstance(action, HostCall)
            and not isinstance(action.function, Relocatable)
        ):
            raise CaptureFailed(f"host work of {block.origin} does not say how it uses a port")
