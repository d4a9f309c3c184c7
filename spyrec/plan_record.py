"""What the compiler says of a plan: the options that make it again, its decisions, and what it predicts.

``lx`` and ``traffic`` of ``manifest.json``.  Bytes are those that the emulator counts: distinct sticks per execution,
every execution.  Times are simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from spyrec.hardware.target import CALIBRATED


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a bundle was planned with, its target apart.

    ``cores``: most that one operation may be divided among.  ``profile``: name of the parameters of the times that
    plans are compared by.  ``lx_planner``: what packed the scratchpads.  ``auto_tile``: whether the compiler chose
    loops; where it might have but did not need to, the plan is the same without.
    """

    cores: int
    fixed_io_layouts: bool = False
    profile: str = CALIBRATED.name
    lx_planner: str = "best-fit"
    auto_tile: bool = False


class Decision(Enum):
    """What was decided about a buffer, a kernel, or a group of kernels."""

    RESIDENT = "resident"
    """A buffer lies in the scratchpads for all of its life."""
    STAGED = "staged"
    """An input is copied into the scratchpads once and read there."""
    DRAINED = "drained"
    """An output is collected in the scratchpads and copied out once."""
    IN_PLACE = "in place"
    """A buffer takes the place of an operand that dies there."""
    SPILLED = "spilled"
    """A buffer that could have lain in the scratchpads lies in device memory."""
    DIVISION = "division"
    """A kernel is divided among the cores otherwise than it alone would be, or one of its cuts was chosen."""
    SPLIT = "split"
    """A kernel became several because one SuperDSC cannot express it."""
    TILING = "tiling"
    """Loops were put around kernels, or were not."""


@dataclass(frozen=True, slots=True)
class PlanNote:
    """One decision: what it is about, why it was taken, and what the next best choice would have cost.

    ``subject``: name of the buffer or kernel, or the dim of a loop.  ``reason``: lower case, with the numbers.
    ``alternative``: the choice that lost; ``None`` where there was none.  ``saved_bytes``, ``saved_us``: device memory
    traffic and simulated time of the whole model by which the alternative is worse; negative where the decision costs
    more of it.
    """

    subject: str
    decision: Decision
    reason: str
    alternative: str | None = None
    saved_bytes: int = 0
    saved_us: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannerName:
    """Which scratchpad planner made the plan; the manifest states it."""

    name: str
    version: str


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
