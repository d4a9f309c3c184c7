"""OpSpec: the last compiler IR before SuperDSC; the data behind ``spyrec.opspec/1``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from spyrec.codegen.expression import Expression
from spyrec.diagnostics import Location
from spyrec.hardware.dtypes import DeviceFormat


class AllocationKind(Enum):
    """Where an argument lies: a kernel argument's segment, the core's scratchpad, or the pool."""

    HBM = "hbm"
    LX = "lx"
    POOL = "pool"


@dataclass(frozen=True, slots=True)
class IterationDim:
    """One iteration symbol: its extent in elements and the number of work slices (cores) along it."""

    symbol: str
    size: int
    work_division: int = 1


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """One operand of an operation; ``device_coordinates`` has one expression per device dim.

    ``moves`` is the compiler's word, never a file's, how many positions each device dim moves per iteration of each
    loop around the operation, outermost first; ``None``: it follows from ``tiled_symbols``.
    ``ends_in_padding`` is the compiler's word, never a file's, that no element lies behind the window along the stick
    dim, so that a store may fill its last stick.
    """

    is_input: bool
    arg_index: int | None
    device_dtype: DeviceFormat
    device_size: tuple[int, ...]
    device_coordinates: tuple[Expression, ...]
    allocation_kind: AllocationKind
    allocation_bytes: int
    stride_map: tuple[int, ...] | None = None
    per_tile_fixed: bool = False
    name: str | None = None
    ends_in_padding: bool = False
    moves: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One device operation over an iteration space; the output is the last argument."""

    op: str
    is_reduction: bool
    iteration_space: tuple[IterationDim, ...]
    args: tuple[TensorArgument, ...]
    constants: Mapping[str, float] = field(default_factory=dict[str, float])
    tiled_symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopSpec:
    """A counted loop over OpSpecs and loops.

    ``parameter`` is the compiler's: the value parameter that gives the trips of a run, at most ``count``.
    """

    count: int
    tiled_symbols: tuple[str, ...]
    body: tuple[OpSpec | LoopSpec, ...]
    parameter: str | None = None


@dataclass(frozen=True, slots=True)
class OpSpecFile:
    """The whole of one ``spyrec.opspec/1`` file; ``location`` is where it was read from."""

    symbolic_args: bool
    unroll_loops: bool
    specs: tuple[OpSpec | LoopSpec, ...]
    location: Location | None = field(default=None, compare=False)
