"""What the compiler says of a plan: the options that make it again, its decisions, and what it predicts.

``lx`` and ``traffic`` of ``manifest.json``.  Bytes are those that the emulator counts: distinct sticks per execution,
every execution.  Times are simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.files.json_form import COUNT, INTEGER, NAME, Form, json, omitted, optional
from spyrec.hardware.target import DEFAULT_PROFILE, Target

_US_DIGITS = 6  # a picosecond: what differs beyond is the machine's, not the model's
_MOST_ENTRIES = 1_000_000
_MOST_LOOPS = 64

_TEXT = Form(max_length=4096)
_MICROSECONDS = Form(at_least=0, is_finite=True, digits=_US_DIGITS)
_SHARE = Form(at_least=0, is_finite=True, digits=4)
_LOOPS = Form(max_length=_MOST_LOOPS, each=COUNT)
_SLICES = Form(max_length=_MOST_LOOPS, keys=_TEXT, each=COUNT)
_ENTRIES = Form(max_length=_MOST_ENTRIES)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a bundle was planned with, its target apart.

    ``cores``: most that one operation may be divided among.  ``profile``: name of the parameters of the times that
    plans are compared by.  ``lx_planner``: what packed the scratchpads.  ``auto_tile``: whether the compiler chose
    loops; where it might have but did not need to, the plan is the same without.  ``has_windows``: whether pools and
    convolutions could be the device's own operations.
    """

    cores: int = field(metadata=json(Form(at_least=1, at_most=Target().cores)))
    fixed_io_layouts: bool = False
    profile: str = field(default=DEFAULT_PROFILE.name, metadata=json(NAME))
    lx_planner: str = field(default="best-fit", metadata=json(NAME))
    auto_tile: bool = False
    has_windows: bool = field(default=False, metadata=omitted())


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
    SHUFFLED = "shuffled"
    """A buffer in the scratchpads is brought from the cores that wrote it to those that read it, over the ring."""
    SPILLED = "spilled"
    """A buffer that could have lain in the scratchpads lies in device memory."""
    DIVISION = "division"
    """A kernel is divided among the cores otherwise than it alone would be, or one of its cuts was chosen."""
    SPLIT = "split"
    """A kernel became several because one SuperDSC cannot express it."""
    COPIED = "copied"
    """Places of state are written into a new tensor, so that all of it moves."""
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

    subject: str = field(metadata=json(_TEXT))
    decision: Decision
    reason: str = field(metadata=json(_TEXT))
    alternative: str | None = field(default=None, metadata=json(_TEXT))
    saved_bytes: int = field(default=0, metadata=json(INTEGER))
    saved_us: float = field(default=0.0, metadata=json(Form(is_finite=True, digits=_US_DIGITS)))


@dataclass(frozen=True, slots=True)
class PlannerName:
    """Which scratchpad planner made the plan; the manifest states it."""

    name: str = field(metadata=json(_TEXT))
    version: str = field(metadata=json(_TEXT))


@dataclass(frozen=True, slots=True)
class PlannedOperation:
    """One operation of a device program, all its executions together.

    ``program``: the program's position in the plan; ``place``: the operation's position in the program, which is its
    number in ``bundle.mlir`` where loops are kept.  ``output``: the tensor it writes.  ``loops``: numbers of the loops
    around it, outermost first.  ``slices``: of each divided dim; of a shuffle those of its result, ``source_slices``
    those of what it reads.  ``ring_bytes``: what a core gets of others in a shuffle, each byte as often as there are
    links on its way, of the core where that is most.
    """

    program: int = field(metadata=json(COUNT))
    place: int = field(metadata=json(COUNT))
    op: str = field(metadata=json(_TEXT))
    output: str = field(metadata=json(_TEXT))
    loops: tuple[int, ...] = field(metadata=json(_LOOPS))
    executions: int = field(metadata=json(COUNT))
    cores: int = field(metadata=json(COUNT))
    slices: Mapping[str, int] = field(metadata=json(_SLICES))
    hbm_read_bytes: int = field(metadata=json(COUNT))
    hbm_write_bytes: int = field(metadata=json(COUNT))
    hbm_core_read_bytes: int = field(metadata=json(COUNT))
    flops: int = field(metadata=json(COUNT))
    simulated_us: float = field(metadata=json(_MICROSECONDS))
    source_slices: Mapping[str, int] = field(default_factory=dict[str, int], metadata=omitted(_SLICES))
    ring_bytes: int = field(default=0, metadata=omitted(COUNT))
    simulated_us_uncertainty: float | None = field(default=None, metadata=omitted(_SHARE))


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """One tensor and the device memory traffic of all operations that use it.

    ``memory``: ``argument``, ``pool`` or ``lx``.  ``size_bytes``: its whole sticks.
    """

    name: str = field(metadata=json(_TEXT))
    role: str = field(metadata=json(_TEXT))
    memory: str = field(metadata=json(_TEXT))
    size_bytes: int = field(metadata=json(COUNT))
    hbm_read_bytes: int = field(metadata=json(COUNT))
    hbm_write_bytes: int = field(metadata=json(COUNT))


@dataclass(frozen=True, slots=True)
class PlannedLoop:
    """One loop: its (most) trips, the dim it tiles, and what all operations inside do in the whole run."""

    number: int = field(metadata=json(COUNT))
    count: int = field(metadata=json(COUNT))
    dim: str = field(metadata=json(_TEXT))
    tile: int = field(metadata=json(COUNT))
    hbm_read_bytes: int = field(metadata=json(COUNT))
    hbm_write_bytes: int = field(metadata=json(COUNT))
    simulated_us: float = field(metadata=json(_MICROSECONDS))


@dataclass(frozen=True, slots=True)
class ResidentTensor:
    """A tensor in the scratchpads: where every core holds its share, and from which to which operation.

    ``first`` and ``last`` are places in the program ``program``.
    """

    name: str = field(metadata=json(_TEXT))
    program: int = field(metadata=json(COUNT))
    offset_bytes: int = field(metadata=json(COUNT))
    core_bytes: int = field(metadata=json(COUNT))
    first: int = field(metadata=json(COUNT))
    last: int = field(metadata=json(COUNT))


@dataclass(frozen=True, slots=True)
class LxFigures:
    """The scratchpads: bytes per core that may hold tensors, the highest byte in use plus one, who planned, what."""

    usable_bytes: int = field(metadata=json(COUNT))
    peak_bytes: int = field(metadata=json(COUNT))
    planner: PlannerName | None = field(default=None, metadata=optional())
    residents: tuple[ResidentTensor, ...] = field(default=(), metadata=optional(_ENTRIES, "tensors"))


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """The figures of a compiled model, in one run with the most trips of every loop.

    ``hbm_read_bytes``, ``hbm_write_bytes``, ``flops`` and ``simulated_us`` are sums over its operations.
    ``simulated_us_uncertainty``: the share of the time by which a measured one would be off, nine times of ten; of one
    operation it is that of its class.  ``lower_bound_bytes``: every input and constant that an operation reads once,
    every output once.  ``profile``: the parameters of the simulated times.  ``notes``: the planner's decisions.
    """

    lx: LxFigures
    hbm_read_bytes: int = field(metadata=json(COUNT))
    hbm_write_bytes: int = field(metadata=json(COUNT))
    lower_bound_bytes: int = field(metadata=json(COUNT))
    flops: int = field(metadata=optional(COUNT, absent=0))
    simulated_us: float = field(metadata=optional(_MICROSECONDS, absent=0.0))
    profile: str = field(metadata=optional(_TEXT, absent=""))
    operations: tuple[PlannedOperation, ...] = field(default=(), metadata=optional(_ENTRIES, "ops"))
    tensors: tuple[PlannedTensor, ...] = field(default=(), metadata=optional(_ENTRIES))
    loops: tuple[PlannedLoop, ...] = field(default=(), metadata=optional(_ENTRIES))
    notes: tuple[PlanNote, ...] = field(default=(), metadata=optional(_ENTRIES, "decisions"))
    simulated_us_uncertainty: float | None = field(default=None, metadata=omitted(_SHARE))
