"""What a graph replays: validated control blocks, with everything that is the same every time done once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from spyrec.exec.errors import InvalidCall
from spyrec.exec.relocation import Relocatable
from spyrec.runtime.argument_kinds import is_a, shown
from spyrec.runtime.memory.addresses import AddressRange
from spyrec.runtime.memory.spyre_allocator import Holdings
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.control_block import ControlBlock, HostCall, HostToDevice, Kind
from spyrec.runtime.streams.host_buffer import HostBuffer
from spyrec.runtime.streams.launch_order import LaunchOrder, Turn
from spyrec.runtime.streams.spyre_stream import SpyreStream
from spyrec.runtime.streams.stream_queue import RecordedSequence

_SETTLING = threading.RLock()
"""Held while host work is done ahead: executables that one capture has recorded share its host memory."""


class GraphExec:
    """An executable of one device: made by :func:`spyrec.exec.capture`, replayed by graphs or by hand.

    What a correction would compute was computed when it was made, and its bytes are its own.  It holds the memory that
    it uses.  Replays of one executable are ordered: one on another stream begins when the one before it is done.
    """

    def __init__(self, device: SpyreDevice, blocks: list[ControlBlock], holdings: Holdings, order: LaunchOrder) -> None:
        own = LaunchOrder()
        own.use_all_of(order)
        own.use(Turn(is_promised=True))
        self.device = device
        with _SETTLING:
            movable = _settled(blocks, _is_fixed)
            settled = _settled(movable, _is_constant)
        self._sequence = RecordedSequence(settled, holdings, own)
        # what another capture records: its corrections are still to be computed, for its own ports may move them
        self._recorded = RecordedSequence(movable, holdings, own)

    @property
    def blocks(self) -> tuple[ControlBlock, ...]:
        """What one replay enqueues."""
        return self._sequence.blocks

    @property
    def control_blocks(self) -> int:
        """How many control blocks the device sees at each replay."""
        return self._sequence.control_blocks

    def replay(self, stream: SpyreStream) -> None:
        """Enqueue everything on a stream; errors SPY0920, SPY0923, SPY0928, SPY0929, SPY0931."""
        if not is_a(stream, SpyreStream) or stream.device is not self.device:
            raise InvalidCall(f"a replay on {shown(stream)}, no stream of the executable's device")
        stream.flex.enqueue_recorded(self._sequence if stream.flex.capture is None else self._recorded)


def _is_constant(block: ControlBlock) -> bool:
    """Whether host work depends on nothing but what is known when it is captured."""
    return block.kind is Kind.HOST_OPERATION and not block.reads


def _is_fixed(block: ControlBlock) -> bool:
    """Whether it does not depend on where device memory lies, either."""
    action = block.action
    return _is_constant(block) and isinstance(action, HostCall) and not isinstance(action.function, Relocatable)


def _settled(blocks: list[ControlBlock], settles: Callable[[ControlBlock], bool]) -> list[ControlBlock]:
    """Do now the host work that ``settles`` names: its bytes go into their copies, as corrections do."""
    made: list[AddressRange] = []
    settled: list[ControlBlock] = []
    for block in blocks:
        action = block.action
        if isinstance(action, HostCall) and settles(block):
            action.function()
            made.extend(block.writes)
        elif isinstance(action, HostToDevice) and isinstance(action.source, HostBuffer) and action.source.range in made:
            source = action.source.data.copy()
            settled.append(replace(block, action=replace(action, source=source), reads=()))
        else:
            settled.append(block)
    return settled
