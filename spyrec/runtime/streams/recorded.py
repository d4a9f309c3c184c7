"""Operations that are enqueued as a unit, again and again: what is the same every time is done once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spyrec.runtime.memory.holdings import Holdings
from spyrec.runtime.streams.control_block import ControlBlock, EventAction
from spyrec.runtime.streams.launch_order import LaunchOrder


class RecordedSequence:
    """Validated operations of one stream, without events.

    ``holdings`` keeps the memory that they use; whoever has the sequence enqueued keeps the sequence, so that nothing
    is counted for each operation.  ``order``: what each replay comes behind.
    """

    def __init__(self, blocks: Iterable[ControlBlock], holdings: Holdings, order: LaunchOrder) -> None:
        self.blocks = tuple(replace(block, retained=()) if block.retained else block for block in blocks)
        self.holdings = holdings
        self.order = order
        assert not any(isinstance(block.action, EventAction) for block in self.blocks)

    @property
    def control_blocks(self) -> int:
        """How many control blocks the device sees at each replay."""
        return sum(block.kind.is_control_block for block in self.blocks)
