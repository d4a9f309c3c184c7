"""What a compiled model will move and take, as the compiler predicts it: ``lx`` and ``traffic`` of ``manifest.json``.

Bytes are those that the emulator counts: distinct sticks per execution, every execution.  Times are simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spyrec.plan_note import PlannerName, PlanNote


@dataclass(frozen=True, slots=True)
class PlannedOperation:
    """One operation of a device program, all its executions together.

    ``program``: the program's position in the plan; ``place``: the operation's position in the program, which is its
    number in ``bundle.mlir`` where loops are kept.  ``output``: the tensor it writes.  ``loops``: numbers of the loops
    around it, outermost first.  ``slices``: of each divided dim.
    """

    program: int
    place: int
    op: str
    output: str
    loops: tuple[int, ...]
    executions: int
    cores: int
    slices: Mapping[str, int]
    hbm_read_bytes: int
    hbm_write_bytes: int
    hbm_core_read_bytes: int
    flops: int
    simulated_us: float


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """One tensor and the device memory traffic of all operations that use it.

    ``memory``: ``argument``, ``pool`` or ``lx``.  ``size_bytes``: its whole sticks.
    """

    name: str
    role: str
    memory: str
    size_bytes: int
    hbm_read_bytes: int
    hbm_write_bytes: int


@dataclass(frozen=True, slots=True)
class PlannedLoop:
    """One loop: its (most) trips, the dim it tiles, and what all operations inside do in the whole run."""

    number: int
    count: int
    dim: str
    tile: int
    hbm_read_bytes: int
    hbm_write_bytes: int
    simulated_us: float


@dataclass(frozen=True, slots=True)
class ResidentTensor:
    """A tensor in the scratchpads: where every core holds its share, and from which to which operation.

    ``first`` and ``last`` are places in the program ``program``.
    """

    name: str
    program: int
    offset_bytes: int
    core_bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class LxFigures:
    """The scratchpads: bytes per core that may hold tensors, the highest byte in use plus one, who planned, what."""

    usable_bytes: int
    peak_bytes: int
    planner: PlannerName | None = None
    residents: tuple[ResidentTensor, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """The figures of a compiled model, in one run with the most trips of every loop.

    ``hbm_read_bytes``, ``hbm_write_bytes``, ``flops`` and ``simulated_us`` are sums over its operations.
    ``lower_bound_bytes``: every input and constant that an operation reads once, every output once.  ``profile``: the
    parameters of the simulated times.  ``notes``: the planner's decisions.
    """

    lx: LxFigures
    hbm_read_bytes: int
    hbm_write_bytes: int
    lower_bound_bytes: int
    flops: int
    simulated_us: float
    profile: str
    operations: tuple[PlannedOperation, ...] = ()
    tensors: tuple[PlannedTensor, ...] = ()
    loops: tuple[PlannedLoop, ...] = ()
    notes: tuple[PlanNote, ...] = ()
