"""``spyrec.report/1``: everything that is shown of a bundle, as one object; ``docs/report_data.md`` describes it.

Numbers are references: an op is a position in ``ops``, a tensor in ``tensors``, and so on.  Ranges are half open.
What is ``None`` or empty has no key in the file.  Every text may come from a stranger's file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from spyrec.bundle.debug_handle import DebugHandle
from spyrec.compare.error_cells import MAX_CELLS
from spyrec.dataclass import dataclass
from spyrec.files.json_form import COUNT, INTEGER, MAX_RANK, Form, json, omitted
from spyrec.report.numbers import (
    CELLS,
    ENTRIES,
    FIGURE,
    NAMES,
    NUMBER,
    NUMBERS,
    RANGES,
    SEVERAL,
    SHARE,
    SPANS,
    TEXT,
    US,
    Range,
    Several,
    Span,
)

_SIZES = Form(max_length=MAX_RANK, each=COUNT)
_STRIDES = Form(max_length=MAX_RANK, each=INTEGER)


@dataclass(frozen=True, slots=True)
class BundleFacts:
    """Where a report comes from: the bundle, what it was compiled for, and how much of it could be told.

    ``kind``: ``spyrec``, ``foreign`` (no manifest) or ``record`` (made of a RUN.json alone).  ``compiled``: ``same``
    where the bundle's graph, compiled again, gives this bundle, ``other`` where it does not, ``none`` without a graph.
    """

    path: str = field(metadata=json(TEXT))
    kind: str = field(metadata=json(TEXT))
    digest: str = field(metadata=json(TEXT))
    target: str = field(metadata=json(TEXT))
    cores: int = field(metadata=json(COUNT))
    lx_bytes: int = field(metadata=json(COUNT))
    profile: str = field(metadata=json(TEXT))
    compiled: str = field(metadata=json(TEXT))
    dialect: str = field(default="", metadata=omitted(TEXT))


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums over all operations; bytes are of device memory, ``bound`` what no plan undercuts."""

    us: float | None = field(default=None, metadata=omitted(US))
    uncertainty: float | None = field(default=None, metadata=omitted(SHARE))
    read: int = field(default=0, metadata=omitted(COUNT))
    written: int = field(default=0, metadata=omitted(COUNT))
    core_read: int = field(default=0, metadata=omitted(COUNT))
    bound: int = field(default=0, metadata=omitted(COUNT))
    flops: int = field(default=0, metadata=omitted(COUNT))
    ring: int = field(default=0, metadata=omitted(COUNT))
    executions: int = field(default=0, metadata=omitted(COUNT))
    lx_peak: int = field(default=0, metadata=omitted(COUNT))


@dataclass(frozen=True, slots=True)
class ReportProgram:
    """One device program of the plan: its operations, arguments in order, pool and time."""

    directory: str = field(metadata=json(TEXT))
    first: int = field(metadata=json(COUNT))
    past: int = field(metadata=json(COUNT))
    arguments: tuple[int, ...] = field(default=(), metadata=omitted(NUMBERS))
    pool_bytes: int = field(default=0, metadata=omitted(COUNT))
    us: float | None = field(default=None, metadata=omitted(US))


@dataclass(frozen=True, slots=True)
class ReportLoop:
    """A loop over operations; ``count``: its most rounds, ``parameter``: the value parameter that ends it."""

    name: str = field(metadata=json(TEXT))
    program: int = field(metadata=json(COUNT))
    count: int = field(metadata=json(COUNT))
    first: int = field(metadata=json(COUNT))
    past: int = field(metadata=json(COUNT))
    parent: int | None = field(default=None, metadata=omitted(COUNT))
    dim: str | None = field(default=None, metadata=omitted(TEXT))
    tile: int = field(default=0, metadata=omitted(COUNT))
    parameter: str | None = field(default=None, metadata=omitted(TEXT))
    read: int = field(default=0, metadata=omitted(COUNT))
    written: int = field(default=0, metadata=omitted(COUNT))
    us: float | None = field(default=None, metadata=omitted(US))


@dataclass(frozen=True, slots=True)
class HostWork:
    """Nodes that the host computes before a program; ``before`` is the number of programs for the last such step."""

    before: int = field(metadata=json(COUNT))
    nodes: tuple[str, ...] = field(default=(), metadata=omitted(NAMES))


@dataclass(frozen=True, slots=True)
class OpDim:
    """One dim of an operation's iteration: its extent, in how many parts it is cut, the extent of one core."""

    name: str = field(metadata=json(TEXT))
    extent: int = field(metadata=json(COUNT))
    parts: int = field(metadata=json(COUNT))
    core: int = field(metadata=json(COUNT))


@dataclass(frozen=True, slots=True)
class OpOperand:
    """A tensor that an operation reads or writes.

    ``memory``: ``argument``, ``pool``, ``program``, ``segment``, ``lx`` or ``symbol``.  ``place``: where the first core
    begins, in bytes from the tensor's start, in LX the core's own; ``None`` where only a call says it.  ``writer``:
    the operation that wrote it last before.  ``rows``: its numbers say which rows of another operand are taken.
    """

    tensor: int = field(metadata=json(COUNT))
    memory: str = field(metadata=json(TEXT))
    place: int | None = field(default=None, metadata=omitted(INTEGER))
    core_bytes: int = field(default=0, metadata=omitted(COUNT))
    writer: int | None = field(default=None, metadata=omitted(COUNT, "from"))
    rows: bool = field(default=False, metadata=omitted())
    gathers: bool = field(default=False, metadata=omitted())


@dataclass(frozen=True, slots=True)
class Op:
    """One call of a SuperDSC, those in loops once.  Counters and ``us`` are of all its executions.

    ``bound``: its share of the model's: inputs and constants that it reads first, outputs that it writes last.
    ``pattern``: what its cores do in one execution; ``start_us``: when the first one begins.
    """

    op: str = field(metadata=json(TEXT))
    name: str = field(metadata=json(TEXT))
    file: str = field(metadata=json(TEXT))
    program: int = field(metadata=json(COUNT))
    loops: tuple[int, ...] = field(metadata=json(NUMBERS))
    cores: tuple[Range, ...] = field(metadata=json(RANGES))
    executions: int = field(metadata=json(COUNT))
    part: str | None = field(default=None, metadata=omitted(TEXT))
    node: str | None = field(default=None, metadata=omitted(TEXT))
    module: int | None = field(default=None, metadata=omitted(COUNT))
    source: str | None = field(default=None, metadata=omitted(TEXT))
    origin: str | None = field(default=None, metadata=omitted(TEXT))
    handle: int | None = field(default=None, metadata=omitted(COUNT))
    unit: str | None = field(default=None, metadata=omitted(TEXT))
    kind: str | None = field(default=None, metadata=omitted(TEXT, "class"))
    dims: tuple[OpDim, ...] = field(default=(), metadata=omitted(ENTRIES))
    inputs: tuple[OpOperand, ...] = field(default=(), metadata=omitted(ENTRIES))
    outputs: tuple[OpOperand, ...] = field(default=(), metadata=omitted(ENTRIES))
    us: float | None = field(default=None, metadata=omitted(US))
    uncertainty: float | None = field(default=None, metadata=omitted(SHARE))
    read: int = field(default=0, metadata=omitted(COUNT))
    written: int = field(default=0, metadata=omitted(COUNT))
    core_read: int = field(default=0, metadata=omitted(COUNT))
    flops: int = field(default=0, metadata=omitted(COUNT))
    ring: int = field(default=0, metadata=omitted(COUNT))
    bound: int = field(default=0, metadata=omitted(COUNT))
    limit: str | None = field(default=None, metadata=omitted(TEXT))
    utilisation: float | None = field(default=None, metadata=omitted(SHARE))
    flops_per_byte: float | None = field(default=None, metadata=omitted(SHARE))
    ridge: float | None = field(default=None, metadata=omitted(SHARE))
    pattern: int | None = field(default=None, metadata=omitted(COUNT))
    start_us: float = field(default=0.0, metadata=omitted(US))
    decisions: tuple[int, ...] = field(default=(), metadata=omitted(NUMBERS))


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """How a tensor lies in device memory; host strides are row-major where there are none, ``None`` is no host form."""

    device_size: tuple[int, ...] = field(metadata=json(_SIZES))
    format: str = field(metadata=json(TEXT))
    stride_map: tuple[int, ...] | None = field(default=None, metadata=omitted(_STRIDES))
    host_strides: tuple[int, ...] | None = field(default=None, metadata=omitted(_STRIDES))


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in device memory or in the scratchpads; ``size``: bytes of its whole sticks.

    ``program``: of what belongs to one.  ``read``, ``written``: device memory traffic of all that use it.
    """

    name: str = field(metadata=json(TEXT))
    role: str = field(metadata=json(TEXT))
    memory: str = field(metadata=json(TEXT))
    program: int | None = field(default=None, metadata=omitted(COUNT))
    shape: tuple[int, ...] | None = field(default=None, metadata=omitted(_SIZES))
    dtype: str | None = field(default=None, metadata=omitted(TEXT))
    size: int = field(default=0, metadata=omitted(COUNT))
    read: int = field(default=0, metadata=omitted(COUNT))
    written: int = field(default=0, metadata=omitted(COUNT))
    layout: TensorLayout | None = field(default=None, metadata=omitted())
    address: int | None = field(default=None, metadata=omitted(COUNT))
    segment: int | None = field(default=None, metadata=omitted(COUNT))
    writers: tuple[int, ...] = field(default=(), metadata=omitted(NUMBERS))
    readers: tuple[int, ...] = field(default=(), metadata=omitted(NUMBERS))
    decisions: tuple[int, ...] = field(default=(), metadata=omitted(NUMBERS))


_CORES = Form(max_length=MAX_CELLS * MAX_CELLS, each=Form(at_least=0, at_most=1 << 16))


@dataclass(frozen=True, slots=True)
class Grid:
    """An output in at most 64 x 64 cells: its last axis gives the columns, all others the rows, flattened.

    ``cores``: row by row, the core that writes a cell's first element; ``None``: no core, or it is not known.
    """

    rows: int = field(metadata=json(CELLS))
    columns: int = field(metadata=json(CELLS))
    row_step: int = field(metadata=json(COUNT))
    column_step: int = field(metadata=json(COUNT))
    cores: tuple[int | None, ...] = field(default=(), metadata=omitted(_CORES))


@dataclass(frozen=True, slots=True)
class Output:
    """A result of the model: its tensor, the operation that writes it last, and which core makes which part."""

    name: str = field(metadata=json(TEXT))
    tensor: int = field(metadata=json(COUNT))
    shape: tuple[int, ...] = field(metadata=json(_SIZES))
    op: int | None = field(default=None, metadata=omitted(COUNT))
    dtype: str | None = field(default=None, metadata=omitted(TEXT))
    grid: Grid | None = field(default=None, metadata=omitted())


@dataclass(frozen=True, slots=True)
class Considered:
    """One of the ways that the planner weighed, with the figures that it weighed them by, as far as there are any."""

    text: str = field(metadata=json(TEXT))
    us: float | None = field(default=None, metadata=omitted(US))
    bytes_: int | None = field(default=None, metadata=omitted(COUNT, "bytes"))
    programs: int | None = field(default=None, metadata=omitted(COUNT))
    is_chosen: bool = field(default=False, metadata=omitted(name="chosen"))


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision of the planner, what it is about, and what the choice that lost would have cost the model more.

    ``kind``: as of :class:`spyrec.hardware.plan_record.Decision`, or ``layout``, ``copy`` or ``program``.
    ``considered``: the ways that were weighed, the best first; ``measure``: what their figures are of.
    """

    kind: str = field(metadata=json(TEXT))
    subject: str = field(metadata=json(TEXT))
    reason: str = field(metadata=json(TEXT))
    ops: tuple[int, ...] = field(default=(), metadata=omitted(NUMBERS))
    tensor: int | None = field(default=None, metadata=omitted(COUNT))
    loop: int | None = field(default=None, metadata=omitted(COUNT))
    program: int | None = field(default=None, metadata=omitted(COUNT))
    alternative: str | None = field(default=None, metadata=omitted(TEXT))
    saved_bytes: int = field(default=0, metadata=omitted(INTEGER))
    saved_us: float = field(default=0.0, metadata=omitted(FIGURE))
    measure: str | None = field(default=None, metadata=omitted(TEXT))
    considered: tuple[Considered, ...] = field(default=(), metadata=omitted(ENTRIES))


@dataclass(frozen=True, slots=True)
class LxRegion:
    """Bytes of a scratchpad that hold a tensor's share, from the operation ``begin`` to ``end``, both included.

    ``decision``: why it lies there.  ``memory_bytes``: what its uses would move of device memory instead.
    """

    tensor: int = field(metadata=json(COUNT))
    first: int = field(metadata=json(COUNT))
    past: int = field(metadata=json(COUNT))
    begin: int = field(metadata=json(COUNT))
    end: int = field(metadata=json(COUNT))
    writer: int = field(metadata=json(COUNT))
    readers: tuple[int, ...] = field(default=(), metadata=omitted(NUMBERS))
    decision: int | None = field(default=None, metadata=omitted(COUNT))
    memory_bytes: int = field(default=0, metadata=omitted(COUNT))


@dataclass(frozen=True, slots=True)
class LxCores:
    """The scratchpads of cores that hold the same all the time in one program."""

    program: int = field(metadata=json(COUNT))
    cores: tuple[Range, ...] = field(metadata=json(RANGES))
    usable: int = field(metadata=json(COUNT))
    peak: int = field(metadata=json(COUNT))
    regions: tuple[LxRegion, ...] = field(metadata=json(ENTRIES))


@dataclass(frozen=True, slots=True)
class PoolRegion:
    """Bytes of a program's pool that hold a tensor while operations need it, both ends included."""

    tensor: int = field(metadata=json(COUNT))
    first: int = field(metadata=json(COUNT))
    past: int = field(metadata=json(COUNT))
    begin: int | None = field(default=None, metadata=omitted(COUNT))
    end: int | None = field(default=None, metadata=omitted(COUNT))


@dataclass(frozen=True, slots=True)
class Pool:
    """Device memory that a program has for intermediates, and what lies there when."""

    program: int = field(metadata=json(COUNT))
    size: int = field(metadata=json(COUNT))
    regions: tuple[PoolRegion, ...] = field(metadata=json(ENTRIES))


@dataclass(frozen=True, slots=True)
class Segment:
    """An argument in a segment of device memory, by address."""

    number: int = field(metadata=json(COUNT))
    tensor: int = field(metadata=json(COUNT))
    first: int = field(metadata=json(COUNT))
    past: int = field(metadata=json(COUNT))


@dataclass(frozen=True, slots=True)
class Memory:
    """What lies where, when: scratchpads, pools, segments of device memory."""

    lx: tuple[LxCores, ...] = field(default=(), metadata=omitted(ENTRIES))
    pools: tuple[Pool, ...] = field(default=(), metadata=omitted(ENTRIES))
    segments: tuple[Segment, ...] = field(default=(), metadata=omitted(ENTRIES))


@dataclass(frozen=True, slots=True)
class PatternGroup:
    """What the engines of cores that do the same do in one execution, and what they wait for."""

    cores: tuple[Range, ...] = field(metadata=json(RANGES))
    spans: tuple[Span, ...] = field(default=(), metadata=omitted(SPANS))
    waits: tuple[Span, ...] = field(default=(), metadata=omitted(SPANS))


@dataclass(frozen=True, slots=True)
class Pattern:
    """One execution of an operation: how long it takes, and what each group of cores does."""

    us: float = field(metadata=json(US))
    groups: tuple[PatternGroup, ...] = field(metadata=json(ENTRIES))


@dataclass(frozen=True, slots=True)
class Step:
    """What is executed: an operation, or a loop or a program over further steps; exactly one of the three is set."""

    op: int | None = field(default=None, metadata=omitted(COUNT))
    loop: int | None = field(default=None, metadata=omitted(COUNT))
    count: int = field(default=1, metadata=omitted(COUNT))
    program: int | None = field(default=None, metadata=omitted(COUNT))
    body: tuple[Step, ...] = field(default=(), metadata=omitted(ENTRIES))


@dataclass(frozen=True, slots=True)
class Roof:
    """What the whole target can do in a microsecond: bytes of device memory, flops by unit in float16."""

    bytes_per_us: float = field(metadata=json(SHARE))
    flops_per_us: Mapping[str, float] = field(metadata=json(Form(max_length=16, keys=TEXT, each=SHARE)))


@dataclass(frozen=True, slots=True)
class TensorCopy:
    """An argument copied between host and device."""

    tensor: int = field(metadata=json(COUNT))
    size: int = field(metadata=json(COUNT))
    to_device: bool
    us: float | None = field(default=None, metadata=omitted(US))


@dataclass(frozen=True, slots=True)
class Time:
    """When which engine of which core does what.

    ``source``: ``run``, ``predicted`` (every loop with its most rounds) or ``none``.
    """

    source: str = field(metadata=json(TEXT, "from"))
    us: float | None = field(default=None, metadata=omitted(US))
    engines: tuple[str, ...] = field(default=(), metadata=omitted(NAMES))
    waits: tuple[str, ...] = field(default=(), metadata=omitted(NAMES))
    patterns: tuple[Pattern, ...] = field(default=(), metadata=omitted(ENTRIES))
    schedule: tuple[Step, ...] = field(default=(), metadata=omitted(ENTRIES))
    roof: Roof | None = field(default=None, metadata=omitted())
    copies: tuple[TensorCopy, ...] = field(default=(), metadata=omitted(ENTRIES))


@dataclass(frozen=True, slots=True)
class Text:
    """One tab of a pane; ``lines`` are positions in the report's strings.

    ``of``: the earlier text that ``comes_from`` counts in.  ``ops``: what each line is about.
    ``left_out``: lines beyond the limit.
    """

    pane: str = field(metadata=json(TEXT))
    name: str = field(metadata=json(TEXT))
    kind: str = field(metadata=json(TEXT))
    lines: tuple[int, ...] = field(metadata=json(NUMBERS))
    of: int | None = field(default=None, metadata=omitted(COUNT))
    comes_from: Several = field(default=(), metadata=omitted(SEVERAL, "from"))
    ops: Several = field(default=(), metadata=omitted(SEVERAL))
    left_out: int = field(default=0, metadata=omitted(COUNT))


@dataclass(frozen=True, slots=True)
class Worst:
    """The element with the largest error over its bound: host index, device coordinate, and the core that made it."""

    index: tuple[int, ...] = field(metadata=json(_SIZES))
    got: float = field(metadata=json(NUMBER))
    want: float = field(metadata=json(NUMBER))
    device: tuple[int, ...] | None = field(default=None, metadata=omitted(_SIZES))
    core: int | None = field(default=None, metadata=omitted(COUNT))


_RATIOS = Form(max_length=MAX_CELLS * MAX_CELLS, each=NUMBER)
_PLACES = Form(max_length=MAX_CELLS * MAX_CELLS, each=Form(min_length=2, max_length=2, each=COUNT))


@dataclass(frozen=True, slots=True)
class ErrorMap:
    """An output's errors over their bounds, reduced to at most 64 x 64 cells as in :class:`Grid`.

    ``ratio``: by cell the largest one.  ``worst``: the element that has it, as row and column of the flattened output.
    ``cores``: the core that wrote that element.
    """

    rows: int = field(metadata=json(CELLS))
    columns: int = field(metadata=json(CELLS))
    row_step: int = field(metadata=json(COUNT))
    column_step: int = field(metadata=json(COUNT))
    ratio: tuple[float, ...] = field(metadata=json(_RATIOS))
    worst: tuple[tuple[int, ...], ...] = field(default=(), metadata=omitted(_PLACES))
    cores: tuple[int | None, ...] = field(default=(), metadata=omitted(_CORES))


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """The verdict of ``--check`` or ``--compare`` on one output, as of :class:`spyrec.compare.verdict.CheckReport`."""

    output: int = field(metadata=json(COUNT))
    ok: bool
    max_abs: float = field(metadata=json(NUMBER))
    max_rel: float = field(metadata=json(NUMBER))
    bound_ratio: float = field(metadata=json(NUMBER))
    elements: int = field(metadata=json(COUNT))
    bounded: int = field(metadata=json(COUNT))
    failed: int = field(metadata=json(COUNT))
    worst: Worst
    map: ErrorMap | None = field(default=None, metadata=omitted())


@dataclass(frozen=True, slots=True)
class SeenBug:
    """What a sanitizer found, at its place as far as it is known."""

    sanitizer: str = field(metadata=json(TEXT))
    message: str = field(metadata=json(TEXT))
    op: int | None = field(default=None, metadata=omitted(COUNT))
    core: int | None = field(default=None, metadata=omitted(COUNT))
    tensor: int | None = field(default=None, metadata=omitted(COUNT))
    operand: str | None = field(default=None, metadata=omitted(TEXT))
    address: int | None = field(default=None, metadata=omitted(INTEGER))
    element: tuple[int, ...] | None = field(default=None, metadata=omitted(_STRIDES))
    device: tuple[int, ...] | None = field(default=None, metadata=omitted(_STRIDES))
    iteration: tuple[int, ...] | None = field(default=None, metadata=omitted(_STRIDES))
    member: str | None = field(default=None, metadata=omitted(TEXT, "field"))
    provenance: str | None = field(default=None, metadata=omitted(TEXT))
    details: tuple[str, ...] = field(default=(), metadata=omitted(NAMES))


@dataclass(frozen=True, slots=True)
class Bisected:
    """What ``--bisect`` found: the first guilty operation, or that none is."""

    ok: bool
    compared: int = field(metadata=json(COUNT))
    total: int = field(metadata=json(COUNT))
    worst_ratio: float = field(default=0.0, metadata=omitted(NUMBER))
    worst_op: int | None = field(default=None, metadata=omitted(COUNT))
    guilt: str | None = field(default=None, metadata=omitted(TEXT))
    op: int | None = field(default=None, metadata=omitted(COUNT))
    tensor: int | None = field(default=None, metadata=omitted(COUNT))
    tensor_name: str | None = field(default=None, metadata=omitted(TEXT))
    node: str | None = field(default=None, metadata=omitted(TEXT))
    location: str | None = field(default=None, metadata=omitted(TEXT))
    worst: Worst | None = field(default=None, metadata=omitted())
    error: float = field(default=0.0, metadata=omitted(NUMBER))
    bound: float = field(default=0.0, metadata=omitted(NUMBER))
    failed: int = field(default=0, metadata=omitted(COUNT))
    elements: int = field(default=0, metadata=omitted(COUNT))
    iteration: tuple[int, ...] = field(default=(), metadata=omitted(_STRIDES))


@dataclass(frozen=True, slots=True)
class Run:
    """What a run found; ``is_same_bundle``: it was a run of this bundle, and not of one with other files."""

    ok: bool
    is_same_bundle: bool
    numerics: str = field(metadata=json(TEXT))
    engine: str = field(metadata=json(TEXT))
    checks: tuple[OutputCheck, ...] = field(default=(), metadata=omitted(ENTRIES))
    compares: tuple[OutputCheck, ...] = field(default=(), metadata=omitted(ENTRIES))
    findings: tuple[SeenBug, ...] = field(default=(), metadata=omitted(ENTRIES))
    bisect: Bisected | None = field(default=None, metadata=omitted())
    dims: Mapping[str, int] = field(
        default_factory=dict[str, int], metadata=omitted(Form(max_length=MAX_RANK, keys=TEXT, each=COUNT))
    )


@dataclass(frozen=True, slots=True)
class OpPair:
    """An operation of both bundles: ``op`` of this one, ``other`` of the other one, whose figures stand here.

    ``changed``: what differs, of ``us``, ``bytes``, ``division``, ``cores``, ``memory``, ``loops`` and ``op``.
    """

    op: int = field(metadata=json(COUNT))
    other: int = field(metadata=json(COUNT))
    name: str = field(metadata=json(TEXT))
    us: float | None = field(default=None, metadata=omitted(US))
    read: int = field(default=0, metadata=omitted(COUNT))
    written: int = field(default=0, metadata=omitted(COUNT))
    executions: int = field(default=0, metadata=omitted(COUNT))
    cores: int = field(default=0, metadata=omitted(COUNT))
    dims: tuple[OpDim, ...] = field(default=(), metadata=omitted(ENTRIES))
    changed: tuple[str, ...] = field(default=(), metadata=omitted(NAMES))


@dataclass(frozen=True, slots=True)
class LoneOp:
    """An operation of one bundle alone: ``side`` is ``this`` or ``other``, ``op`` its number there."""

    side: str = field(metadata=json(TEXT))
    op: int = field(metadata=json(COUNT))
    name: str = field(metadata=json(TEXT))
    us: float | None = field(default=None, metadata=omitted(US))
    read: int = field(default=0, metadata=omitted(COUNT))
    written: int = field(default=0, metadata=omitted(COUNT))


@dataclass(frozen=True, slots=True)
class Moved:
    """A tensor that lies elsewhere than in the other bundle."""

    name: str = field(metadata=json(TEXT))
    was: str = field(metadata=json(TEXT))
    now: str = field(metadata=json(TEXT, "is"))
    tensor: int | None = field(default=None, metadata=omitted(COUNT))


@dataclass(frozen=True, slots=True)
class ChangedFact:
    """One sentence of ``spyrec diff --semantic``, this bundle seen from the other one."""

    topic: str = field(metadata=json(TEXT))
    text: str = field(metadata=json(TEXT))
    about: str = field(default="", metadata=omitted(TEXT))
    op: int | None = field(default=None, metadata=omitted(COUNT))


@dataclass(frozen=True, slots=True)
class Against:
    """Another bundle reduced to what moved and what became faster or slower in this one."""

    name: str = field(metadata=json(TEXT))
    path: str = field(metadata=json(TEXT))
    totals: Totals
    pairs: tuple[OpPair, ...] = field(default=(), metadata=omitted(ENTRIES))
    only: tuple[LoneOp, ...] = field(default=(), metadata=omitted(ENTRIES))
    moved: tuple[Moved, ...] = field(default=(), metadata=omitted(ENTRIES))
    facts: tuple[ChangedFact, ...] = field(default=(), metadata=omitted(ENTRIES))


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is shown of a bundle.  ``notes``: what could not be told, and why, in sentences."""

    name: str = field(metadata=json(TEXT))
    bundle: BundleFacts
    totals: Totals
    memory: Memory
    time: Time
    programs: tuple[ReportProgram, ...] = field(default=(), metadata=omitted(ENTRIES))
    loops: tuple[ReportLoop, ...] = field(default=(), metadata=omitted(ENTRIES))
    host_steps: tuple[HostWork, ...] = field(default=(), metadata=omitted(ENTRIES))
    modules: tuple[str, ...] = field(default=(), metadata=omitted(NAMES))
    ops: tuple[Op, ...] = field(default=(), metadata=omitted(ENTRIES))
    tensors: tuple[Tensor, ...] = field(default=(), metadata=omitted(ENTRIES))
    outputs: tuple[Output, ...] = field(default=(), metadata=omitted(ENTRIES))
    decisions: tuple[Choice, ...] = field(default=(), metadata=omitted(ENTRIES))
    strings: tuple[str, ...] = field(default=(), metadata=omitted(NAMES))
    texts: tuple[Text, ...] = field(default=(), metadata=omitted(ENTRIES))
    handles: tuple[DebugHandle, ...] = field(default=(), metadata=omitted(ENTRIES))
    run: Run | None = field(default=None, metadata=omitted())
    against: Against | None = field(default=None, metadata=omitted())
    notes: tuple[str, ...] = field(default=(), metadata=omitted(NAMES))
