"""The data of a tiled launch: what was asked, how each argument reaches its tiles, and what one iteration is."""

from __future__ import annotations

from enum import Enum

from spyrec.bundle.tile_contract import LoopKind
from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DType
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.launch.offset_rule import STILL, AxisSteps


class Mode(Enum):
    """How an argument reaches its tiles, cheapest first; the values are sentences for the user."""

    FIXED = "the same memory in every iteration"
    SLAB = "the base moves"
    STRIDED = "the base moves, and the correction sets the stick strides"
    FLAT = "runs of sticks, whatever host dims they belong to"
    STAGED = "tiles are copied to and from scratch memory"


class Remainder(Enum):
    """What to do about elements that do not fill a tile."""

    ERROR = "error"
    OVERLAP = "overlap"
    VARIANT = "variant"
    PAD = "pad"


class LaunchPhase(Enum):
    """What a program does in a launch: the body, or one of the steps around a reduction's body."""

    BODY = "body"
    INIT = "init"
    COMBINE = "combine"
    PUBLISH = "publish"


class OperandHome(Enum):
    """Where an operand lies: in the tensor, or in scratch memory of the launch (each argument has its own)."""

    TENSOR = "tensor"
    SCRATCH = "scratch"
    PARTIAL = "partial"
    ACCUMULATOR = "accumulator"


@dataclass(frozen=True, slots=True)
class LaunchTensor:
    """A tensor as a launch sees it: host shape and strides (elements), and where it lies in its allocation.

    ``allocation`` tells allocations apart.  ``fill``: the value that lies in the layout's room beyond the shape.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    layout: DeviceLayout
    storage_offset_bytes: int = 0
    allocation: int = 0
    fill: float | None = None


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """What a launch may do.

    ``remainder``: the policy for all loops, ``None`` for the first that is legal.  ``scratch_limit_bytes``: most
    memory for staging, ``None`` for no limit; 0 forbids it.  ``reuse_order``: run the loop innermost that leaves most
    bytes of arguments in place; the results are the same.
    """

    allow_tiled_launch: bool = True
    remainder: Remainder | None = None
    max_tiles: int = 65_536
    scratch_limit_bytes: int | None = None
    reuse_order: bool = False


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """One loop of a launch: ``trips`` tiles of ``tile`` over ``extent`` elements (sticks for the loop of FLAT).

    ``remainder``: what the last tile does, ``None`` where all are whole.  ``keeps_done``: where it begins earlier, over
    elements that are done, only the others are copied back: what is done is not to be done twice.
    """

    name: str
    kind: LoopKind
    extent: int
    tile: int
    remainder: Remainder | None = None
    keeps_done: bool = False

    @property
    def trips(self) -> int:
        """Number of tiles."""
        return -(-self.extent // self.tile)

    def start(self, number: int) -> int:
        """Return the element at which a tile begins."""
        is_moved_back = self.remainder is Remainder.OVERLAP and number == self.trips - 1
        return self.extent - self.tile if is_moved_back else number * self.tile

    def done_before(self, number: int) -> int:
        """Return the elements at the beginning of a tile that are not to be copied back."""
        return number * self.tile - self.start(number) if self.keeps_done else 0

    def size(self, number: int) -> int:
        """Return the elements of the program that a tile runs: those of the variant for what is left over."""
        is_cut = self.remainder is Remainder.VARIANT and number == self.trips - 1
        return self.extent - self.start(number) if is_cut else self.tile


@dataclass(frozen=True, slots=True)
class LoopSteps:
    """How an argument's base moves along one loop; ``last_bytes`` where the last tile is out of step."""

    steps: AxisSteps = STILL
    last_bytes: int | None = None

    def offset_bytes(self, number: int, trips: int) -> int:
        """Return the distance of a tile from tile 0."""
        if self.last_bytes is not None and number == trips - 1:
            return self.last_bytes
        return self.steps.offset_bytes(number)


@dataclass(frozen=True, slots=True)
class ArgumentPlan:
    """How one argument reaches its tiles in a launch.

    ``base_bytes``: of the tensor in its allocation; ``loops``: per loop of the plan, empty for a staged argument.
    ``stick_strides`` (STRIDED): per device dim of the compiled layout but the stick, the distance in sticks to set.
    ``scratch_bytes``: of the tile that is staged.  ``reason``: why no cheaper mode applies, and what would help.
    """

    name: str
    mode: Mode
    base_bytes: int
    loops: tuple[LoopSteps, ...] = ()
    stick_strides: tuple[int, ...] | None = None
    scratch_bytes: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class StageCopy:
    """One strided copy on the device between an argument's tensor and its scratch tile.

    ``parent_bytes`` in the allocation, ``scratch_bytes`` in the tile; ``sizes`` outermost first, strides in bytes.
    """

    argument: int
    parent_bytes: int
    scratch_bytes: int
    chunk_bytes: int
    sizes: tuple[int, ...] = ()
    parent_strides: tuple[int, ...] = ()
    scratch_strides: tuple[int, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes that it moves."""
        moved = self.chunk_bytes
        for size in self.sizes:
            moved *= size
        return moved


@dataclass(frozen=True, slots=True)
class IterationOperand:
    """What a program is given in one iteration: an argument by number, where it lies, and the offset in bytes there."""

    argument: int
    place: OperandHome
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class Iteration:
    """One run of a program: copies into scratch, the run itself, copies back.

    ``index``: tile number per loop, outermost first.
    """

    index: tuple[int, ...]
    phase: LaunchPhase
    program: str
    operands: tuple[IterationOperand, ...]
    gathers: tuple[StageCopy, ...] = ()
    scatters: tuple[StageCopy, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchCounts:
    """What a launch enqueues: the programs' control blocks (correction DMA, compute) apart from staging's copies."""

    iterations: int
    host_operations: int
    control_blocks: int
    stage_copies: int
    staged_bytes: int
