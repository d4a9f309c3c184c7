"""A program that the emulated device has loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from spyrec.bundle.dynamic_sizes import size_parameters
from spyrec.bundle.program import Program
from spyrec.bundle.superdsc import SuperDsc
from spyrec.dataclass import dataclass
from spyrec.emulator.operations.gather import gather_of
from spyrec.emulator.plan import PlannedCall
from spyrec.emulator.prepared_launch import LatestLaunch
from spyrec.emulator.resolve import POOL, Schedule
from spyrec.emulator.timeline.launch import CallTimes
from spyrec.emulator.units import Units
from spyrec.runtime.device import ArgumentTable


@dataclass(frozen=True, slots=True)
class EmulatedProgram:
    """A program that obeys every rule, planned for this device; ``own_memory``: addresses of what it allocates.

    ``units``: what is dispatched where nobody watches.  ``lx_cores``: so many cores' LX it reaches, from the first on.
    ``value_maxima``: of the value parameters.
    ``program`` and ``superdscs``: what was loaded.  ``latest``: its latest launch.  ``at_sizes``: the same at other
    dynamic sizes than the largest, by their values.
    """

    program: Program
    superdscs: Mapping[str, SuperDsc]
    table: ArgumentTable
    schedule: Schedule
    planned: Mapping[int, PlannedCall]
    units: Units
    own_memory: Mapping[int, int]
    lx_peak_bytes: int
    lx_cores: int
    call_times: CallTimes
    region_bytes: Mapping[int, int]
    value_maxima: Mapping[str, int]
    at_sizes: dict[tuple[tuple[str, int], ...], EmulatedProgram] = field(
        default_factory=dict[tuple[tuple[str, int], ...], "EmulatedProgram"], init=False, compare=False
    )
    latest: LatestLaunch = field(default_factory=LatestLaunch, init=False, compare=False)

    has_sizes: bool = field(init=False, compare=False)
    """Whether any of its parameters is a dynamic size."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_sizes", bool(size_parameters(self.program)))

    @property
    def touched(self) -> frozenset[int]:
        """Indices of the arguments that it reads or writes."""
        executed = [item for item in self.planned.values() if item.call.is_executed]
        found = {base for item in executed for base in item.binding.bases}
        return frozenset(base for base in found if base is not None and base > POOL)

    @property
    def stored(self) -> frozenset[int]:
        """Indices of the arguments that it writes."""
        executed = [item for item in self.planned.values() if item.call.is_executed]
        found = {item.binding.bases[output] for item in executed for output in item.call.superdsc.compute.outputs}
        return frozenset(base for base in found if base is not None and base > POOL)

    @property
    def index_rows(self) -> Mapping[int, int]:
        """By argument that holds row numbers: the rows of the smallest table that they choose of."""
        rows: dict[int, int] = {}
        for planned in self.planned.values():
            gather = gather_of(planned.executable)
            for index, count in () if gather is None else gather.row_counts.items():
                base = planned.binding.bases[index]
                if base is not None and base > POOL:
                    rows[base] = min(count, rows.get(base, count))
        return rows
