"""The tensors in the pool between their writer and their last reader: nobody else may change them."""

from __future__ import annotations

from collections.abc import Iterable

from spyrec.compare.device_values import Bytes
from spyrec.compare.provenance import Provenance, program_of
from spyrec.ir.kernel import KernelProgram


class PoolWatch:
    """The tensors in the pool that are waiting to be read, as they were written."""

    def __init__(self, known: Provenance) -> None:
        self._known = known
        self._last_use: dict[str, int] = {}
        for number, call in enumerate(known.calls):
            self._last_use.update(dict.fromkeys((use.buffer for use in call.kernel.uses), number))
        self._held: dict[str, Bytes] = {}

    def keep(self, number: int, memory: Bytes) -> None:
        """Remember what a call wrote, and forget what no later call reads."""
        call = self._known.calls[number]
        name = call.kernel.output.buffer
        if name in self._program(number).pool_offsets:
            self._held[name] = memory.copy()
        self.forget(number)

    def forget(self, number: int) -> None:
        """Forget what no call after this one reads."""
        for held in [item for item in self._held if self._last_use[item] <= number]:
            del self._held[held]

    def waiting(self, number: int, names: Iterable[str]) -> list[str]:
        """Return those of the tensors that a later call reads and this one does not replace."""
        own = self._known.calls[number].kernel.output.buffer
        return [name for name in names if name != own and self._last_use[name] > number]

    def watched(self, number: int) -> list[tuple[str, Bytes]]:
        """Return the tensors that a call may not change, with their bytes; it may replace what it reads last."""
        own = self._known.calls[number].kernel.output.buffer
        return [(name, memory) for name, memory in self._held.items() if name != own and self._last_use[name] > number]

    def _program(self, number: int) -> KernelProgram:
        return program_of(self._known, self._known.calls[number])
