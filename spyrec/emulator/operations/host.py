"""The fallback: what kernels alone cannot do, computed by NumPy between kernels that move elements.

There are five such things, and nothing else may become one without a reason as good as theirs:

* rows that an index names, gathered or scattered: where elements lie depends on data that have to be read, and
  refused, first (``gather``, and ``indexed_function`` where more than a copy is done to them);
* top-k: sorting (``top``);
* data DSCs: a core stores what others hold, so that all is read before anything is stored (``data_move``);
* functions of one input on formats too wide for a table of all results (``unary``);
* sliding windows, whose elements overlap: kernels walk boxes that advance evenly (``window``).

The compiled driver, chains and fusion leave them out: each execution is dispatched from Python, by itself.
"""

from __future__ import annotations

from typing import Protocol

from spyrec.emulator.engine import NO_DATA_TRAFFIC, DataTraffic, Executable, Integers


class HostWork(Protocol):
    """What one SuperDSC does in NumPy."""

    def run(self, starts: Integers) -> DataTraffic:
        """Execute once, operand t of core c at ``starts[t, c]``; return what it moved at places that depend on data."""
        ...


class HostExecutable(Executable):
    """One SuperDSC that the host computes: ``work`` says how."""

    def __init__(self, work: HostWork) -> None:
        self.work = work
        self._data_traffic = NO_DATA_TRAFFIC

    def run(self, starts: Integers) -> None:
        """Execute once; raises what the work raises."""
        self._data_traffic = self.work.run(starts)

    @property
    def data_traffic(self) -> DataTraffic:
        """What the latest execution moved at places that depend on data."""
        return self._data_traffic
