"""The values that the public front takes and gives: options of a compilation, options of a run, its result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.choices import MAX_EXECUTIONS, Engine, Numerics
from spyrec.hardware.target import DEFAULT_PROFILE, Target, TargetProfile

if TYPE_CHECKING:
    from spyrec.compare.check import CheckReport
    from spyrec.compare.divergence import BisectReport
    from spyrec.diagnostics import Diagnostic
    from spyrec.runtime.device import LaunchStats, OperationStats
    from spyrec.runtime.findings import Finding
    from spyrec.runtime.launch.tile_plan import TilePlan
    from spyrec.runtime.timeline_records import HostCopy

HostArray = npt.NDArray[np.generic]


class Loops(Enum):
    """How the loops of a graph are emitted."""

    KEEP = "keep"
    UNROLL = "unroll"


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of :func:`spyrec.compile`.

    ``cores``: most cores that one operation is divided among, at most those of the target; all of them where ``None``.
    ``symbolic_args``: addresses arrive as operands of ``bundle.mlir``; else they are baked into the SuperDSCs.
    ``compat``: the writer whose files are written as it writes them, known mistakes included: a value of ``--compat``
    as ``torch-spyre@2026-08``; ``None`` for spyrec's own.
    ``fixed_io_layouts``: inputs and outputs keep the default layout even where another would save a copy.
    ``loops``: ``keep`` the graph's loops in ``bundle.mlir``, or ``unroll`` them, a SuperDSC per iteration.
    ``profile``: the parameters of the simulated times by which the planner chooses, or their name.
    ``lx_planner``: what packs the scratchpads: ``best-fit``, ``omnimalloc``, ``cpsat``, or ``none`` for a plan that
    leaves every tensor in device memory.  ``auto_tile``: a graph without loops gets loops where tensors do not fit.
    ``correction_slots``: launches of one program that may be in flight with addresses of their own, 1 to 16.
    ``symbolic_strides``: the correction also sets the stick strides of arguments that follow a loop of their program's
    tile contract, so that tiles of a larger tensor are used in place.  ``tile_reductions``: launches may also tile what
    a program sums up; the programs that join the parts are compiled, too.
    ``cache``: a directory that keeps whole compilations, by the hash of all that they follow from: the same graph with
    the same weights and options is not compiled again, and its bundle is the same, byte for byte.  One that cannot be
    used is a warning (SPY0775).  ``cache_bytes``: what it may hold; what was used least recently goes first.
    """

    cores: int | None = None
    target: Target = field(default_factory=Target)
    symbolic_args: bool = True
    fixed_io_layouts: bool = False
    loops: Loops | str = Loops.KEEP
    profile: str | TargetProfile = DEFAULT_PROFILE.name
    lx_planner: str = "best-fit"
    auto_tile: bool = True
    correction_slots: int = 1
    symbolic_strides: bool = False
    tile_reductions: bool = False
    compat: str | None = None
    cache: str | os.PathLike[str] | None = None
    cache_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of :func:`spyrec.run`.

    ``check``: compare every output with the graph's float64 reference.  ``only``: execute one SuperDSC file's calls.
    ``max_executions``: refuse a bundle whose loops would execute more SuperDSCs.
    ``bisect``: hold every SuperDSC against its operation's reference and stop at the first that is wrong.
    ``sanitize``: bugs to look for while the bundle runs: a list of ``bounds,init,lx,race,gap,sync``, or
    ``all``; ``sync`` delays whatever nobody waits for.
    ``profile``: the parameters of the simulated times, or their name.  ``trace``: write the simulated timeline to this
    file (Chrome trace JSON); ``force``: replace a file there that is no trace of spyrec's.  ``allow_tiled_launch``:
    inputs larger than compiled for are launched in tiles, where the bundle's tile contracts say how; else they are
    refused (SPY0955).
    ``weight_cache_bytes``: most memory that decoded weights may take between their uses.
    ``engine``: ``fast``, or ``reference`` for the interpreter that defines what programs do, which nothing can watch
    (SPY0780).  It takes about a second for some ten million multiply-adds.
    ``strict``: of a bundle that is read for the run, unknown keys of SuperDSCs that hold nothing are errors (SPY0626).
    ``dims``: sizes of symbolic dims and of dynamic sizes, by name, beside those that the inputs' shapes say (SPY0993,
    SPY0994); a dim that nobody gives a size has its largest.
    ``outputs``: the results that are copied to the host and returned, by default all (SPY0787).
    ``compare``: numbers to hold the outputs against, by name, or the .npz or .safetensors file that has them; with
    ``bisect`` those of any value of the graph, up to the first that differs.  An error of at most
    ``atol + rtol * |given|`` is allowed; what is ``None`` follows from the output's dtype (0.01 and 0.001 for float16).
    """

    numerics: Numerics | str = Numerics.DL16
    check: bool = False
    only: str | None = None
    max_executions: int = MAX_EXECUTIONS
    bisect: bool = False
    sanitize: str | None = None
    profile: str | TargetProfile = DEFAULT_PROFILE.name
    trace: str | os.PathLike[str] | None = None
    weight_cache_bytes: int = 1 << 30
    allow_tiled_launch: bool = True
    force: bool = False
    engine: Engine | str = Engine.FAST
    strict: bool = False
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    outputs: tuple[str, ...] | None = None
    compare: Mapping[str, HostArray] | str | os.PathLike[str] | None = None
    rtol: float | None = None
    atol: float | None = None


@dataclass(frozen=True, slots=True)
class TotalStats:
    """Counters of a whole run (semantics of the fields as in :class:`spyrec.runtime.device.OperationStats`).

    ``dma_h2d_bytes`` and ``dma_d2h_bytes`` are the device bytes of the host copies; those of the constants count in the
    call that brings them.
    ``simulated_us`` is the device's time, host copies apart; ``None`` where the device has no model of it.
    ``simulated_us_uncertainty``: the share of it by which a measured time would be off, nine times of ten.
    """

    hbm_read_bytes: int
    hbm_write_bytes: int
    hbm_core_read_bytes: int
    dma_h2d_bytes: int
    dma_d2h_bytes: int
    lx_peak_bytes: int
    flops: int
    simulated_us: float | None = None
    simulated_us_uncertainty: float | None = None


@dataclass(frozen=True, slots=True)
class RunStats:
    """Counters of a run: in total, and per SuperDSC in the order of the plan.

    ``profile`` names the parameters of the simulated times.
    """

    total: TotalStats
    ops: tuple[OperationStats, ...]
    profile: str = DEFAULT_PROFILE.name


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run gave: the fields of ``spyrec run --json``, with the arrays in ``outputs``.

    ``outputs`` are in graph order, carried in NumPy arrays; ``dtypes`` are the graph's names of their dtypes (a
    bfloat16 output is its raw bits in uint16).
    ``check`` is ``None`` where it was not asked for.  ``sanitizer``: the bugs that ``sanitize`` looked
    for and found; one that ends the run leaves no outputs.  ``warnings``: what reading the bundle had to
    say, and what a sanitizer watches instead of refusing.
    ``tiles``: of a run on larger inputs, how each program was launched in tiles.
    ``compare``: the verdict on each output that numbers were given for, ``None`` where none were.
    ``launches`` and ``copies``: what each launch did when, and what was copied between host and device, in order; of a
    run in tiles there are no launches.
    """

    outputs: dict[str, HostArray]
    dtypes: Mapping[str, str]
    stats: RunStats
    check: Mapping[str, CheckReport] | None = None
    bisect: BisectReport | None = None
    sanitizer: tuple[Finding, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    tiles: tuple[TilePlan, ...] = ()
    compare: Mapping[str, CheckReport] | None = None
    launches: tuple[LaunchStats, ...] = ()
    copies: tuple[HostCopy, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether no check and no comparison failed, no operation is guilty and no sanitizer found anything."""
        reports = (*(self.check or {}).values(), *(self.compare or {}).values())
        is_checked = all(report.ok for report in reports)
        return is_checked and (self.bisect is None or self.bisect.ok) and not self.sanitizer
