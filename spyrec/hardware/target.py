"""The hardware figures: the only home of numbers about the Spyre device.

Each figure names its source and how far it can be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum
from typing import Self

from spyrec.dataclass import dataclass
from spyrec.files.json_form import COUNT, NAME, Form, json, omitted, optional

STICK_BYTES = 128
"""Bytes of one stick, the unit of transfer (torch-spyre, stated)."""

SEGMENT_BYTES = 0x400000000
"""16 GiB: the distance between segment bases (torch-spyre ``SEGMENT_SIZE``, stated)."""

DATA_SEGMENTS = 7
"""Data segments 0 to 6; the next one holds programs (torch-spyre ``SEGMENT_OFFSETS``, stated)."""

PROGRAM_SEGMENT_BASE = DATA_SEGMENTS * SEGMENT_BYTES
"""0x1C00000000: base of the program segment (seed 000, stated)."""

ARGUMENTS_WITHOUT_POOL = 6
"""Tensors that one device program may take as arguments (torch-spyre's fusion limit, stated): a segment for each."""

ARGUMENTS_WITH_POOL = 5
"""The same for a program with a pool of intermediates, which takes a segment of its own (stated)."""

MOST_ARGUMENTS = 1 << 16
"""Arguments that a program image lists, where nothing else limits them."""


@dataclass(frozen=True, slots=True)
class Target:
    """One device model; ``FIGURES`` says where the figures of each come from, and of which date they are.

    ``cores``: cores that may share one SuperDSC, 1 to 32.  ``lx_bytes``: scratchpad per core;
    ``lx_reserved_fraction``: how much of it is kept back for the back end.  ``lx_tensor_bytes``: the first byte of it
    that no tensor may lie on, where that is known; ``None``: what is not kept back, in whole sticks.
    ``span_limit_bytes``: most bytes of one operand that one core may touch, inclusive.  ``limits_symbolic_arguments``:
    a program whose addresses are its parameters takes no more arguments than one with baked addresses, which has a
    segment for each.  ``topk_limit``: most values that a topk gives, ``topk_core_limit``: those of one core.
    ``sparse_layout_entries``: most entries of the ``dim_order`` of a sparse layout, its -1 included.
    ``has_windows``: there are operations that slide a window, average pools and convolutions.
    """

    name: str = field(default="spyre", metadata=json(NAME))
    cores: int = field(default=32, metadata=json(Form(at_least=1, at_most=32)))
    lx_bytes: int = field(default=2 << 20, metadata=optional(COUNT))
    lx_reserved_fraction: float = field(default=0.2, metadata=optional(Form(at_least=0.0, at_most=1.0)))
    span_limit_bytes: int = field(default=256 << 20, metadata=optional(COUNT))
    lx_tensor_bytes: int | None = field(default=None, metadata=omitted(COUNT))
    limits_symbolic_arguments: bool = field(default=True, metadata=omitted())
    topk_limit: int = field(default=4, metadata=omitted(COUNT))
    topk_core_limit: int = field(default=4, metadata=omitted(COUNT))
    sparse_layout_entries: int = field(default=6, metadata=omitted(COUNT))
    has_windows: bool = field(default=False, metadata=omitted())

    @property
    def lx_usable_bytes(self) -> int:
        """Bytes of a scratchpad that may hold tensors, counted from its begin, in whole sticks."""
        if self.lx_tensor_bytes is not None:
            return self.lx_tensor_bytes // STICK_BYTES * STICK_BYTES
        return int(self.lx_bytes * (1 - self.lx_reserved_fraction)) // STICK_BYTES * STICK_BYTES

    def most_arguments(self, *, symbolic: bool, has_pool: bool) -> int:
        """Return how many tensors a program may take, whose addresses are parameters (``symbolic``) or baked in."""
        if symbolic and not self.limits_symbolic_arguments:
            return MOST_ARGUMENTS
        return ARGUMENTS_WITH_POOL if has_pool else ARGUMENTS_WITHOUT_POOL


def segment_base(segment: int) -> int:
    """Return the byte address at which data segment ``segment`` (0 to 6) begins."""
    assert 0 <= segment < DATA_SEGMENTS
    return segment * SEGMENT_BYTES


class Trust(Enum):
    """How far a figure can be relied on."""

    STATED = "stated"
    MEASURED = "measured"
    FITTED = "fitted"
    INFERRED = "inferred"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class FigureOrigin:
    """Where a figure of a target stands, of which date (ISO 8601) that is, and how far it can be trusted."""

    source: str
    date: str
    trust: Trust


_JUNE = "2026-06"
_AUGUST = "2026-08"
_STATED_IN_JUNE = {
    "cores": FigureOrigin("torch-spyre: cores of one chip", _JUNE, Trust.STATED),
    "lx_bytes": FigureOrigin("torch-spyre: scratchpad of one core", _JUNE, Trust.STATED),
    "lx_reserved_fraction": FigureOrigin("torch-spyre: DXP_LX_FRAC_AVAIL", _JUNE, Trust.STATED),
    "span_limit_bytes": FigureOrigin("torch-spyre: span of an operand, 256 MiB", _JUNE, Trust.STATED),
    "lx_tensor_bytes": FigureOrigin("follows from lx_bytes and lx_reserved_fraction", _JUNE, Trust.STATED),
    "limits_symbolic_arguments": FigureOrigin("torch-spyre: fusion stops at six arguments", _JUNE, Trust.STATED),
    "topk_limit": FigureOrigin("torch-spyre: k of topk", _JUNE, Trust.STATED),
    "topk_core_limit": FigureOrigin("torch-spyre: k of topk", _JUNE, Trust.STATED),
    "sparse_layout_entries": FigureOrigin("torch-spyre: sparse tensors up to rank 5", _JUNE, Trust.STATED),
    "has_windows": FigureOrigin("torch-spyre: no pool and no convolution in its table of ops", _JUNE, Trust.STATED),
}
_STATED_IN_AUGUST = {
    **_STATED_IN_JUNE,
    "span_limit_bytes": FigureOrigin(
        "torch-spyre: 65,535 steps of 4 KiB; 256 MiB made a card fail", _AUGUST, Trust.MEASURED
    ),
    "lx_tensor_bytes": FigureOrigin(
        "torch-spyre: 80 % of what 64 KiB of programs leave, rounded up to 128; exclusive, the back end allocates "
        "from there on",
        _AUGUST,
        Trust.STATED,
    ),
    "limits_symbolic_arguments": FigureOrigin(
        "torch-spyre: addresses are parameters of a program", _AUGUST, Trust.STATED
    ),
    "topk_limit": FigureOrigin("torch-spyre: k is divided among cores", _AUGUST, Trust.STATED),
    "topk_core_limit": FigureOrigin("torch-spyre: k of one core", _AUGUST, Trust.STATED),
    "sparse_layout_entries": FigureOrigin("torch-spyre: six dims and the -1", _AUGUST, Trust.STATED),
    "has_windows": FigureOrigin("torch-spyre: avgpoolfwd, conv2d, depthwiseconv2dnative", _AUGUST, Trust.STATED),
}

SPYRE_2026_06 = Target(_JUNE)
"""The device as the sources of June 2026 describe it; the default target has the same figures."""

SPYRE_2026_08 = Target(
    _AUGUST,
    span_limit_bytes=65_535 * 4_096,
    lx_tensor_bytes=1_625_344,
    limits_symbolic_arguments=False,
    topk_limit=128,
    topk_core_limit=4,
    sparse_layout_entries=7,
    has_windows=True,
)
"""The device as the sources of 19 August 2026 describe it."""

TARGETS = {target.name: target for target in (Target(), SPYRE_2026_06, SPYRE_2026_08)}
"""Every target that ``--target`` knows by name."""

FIGURES: Mapping[str, Mapping[str, FigureOrigin]] = {
    Target().name: _STATED_IN_JUNE,
    SPYRE_2026_06.name: _STATED_IN_JUNE,
    SPYRE_2026_08.name: _STATED_IN_AUGUST,
}
"""Where each figure of each of ``TARGETS`` comes from, by its field."""


class Figure(float):
    """A number of a timing profile that knows its source and how far it can be trusted; it calculates as a float."""

    __slots__ = ("source", "trust")

    source: str
    trust: Trust

    def __new__(cls, value: float, source: str, trust: Trust) -> Self:
        """Return the number ``value`` with where it stands and how far it can be trusted."""
        figure = super().__new__(cls, value)
        figure.source = source
        figure.trust = trust
        return figure

    def __reduce__(self) -> tuple[type[Figure], tuple[float, str, Trust]]:
        return Figure, (float(self), self.source, self.trust)


@dataclass(frozen=True, slots=True)
class ReductionRate:
    """Memory rate of a stick reduction by its result rows: ``floor + span * exp(-rows / decay_rows)``, bytes per us.

    ``share_by_cores``: (cores, share of the rate) where fewer cores cannot saturate the memory, fewest first.
    ``half_bytes_per_us``: what half of the cores get at most; all of them get twice that.  ``half_resonance``: by what
    share that takes longer where each has 256 rows.  ``vector_bytes_per_us``: at which one core folds, beside the
    memory; it is not limited apart from other operations where absent.
    """

    floor: Figure
    span: Figure
    decay_rows: Figure
    share_by_cores: tuple[tuple[int, Figure], ...] = ()
    half_bytes_per_us: Figure | None = None
    half_resonance: Figure = Figure(0, "no resonance is known", Trust.ASSUMED)
    vector_bytes_per_us: Figure | None = None


@dataclass(frozen=True, slots=True)
class StreamTerms:
    """What the way through memory costs beyond bytes: shares of the time that they take, where nothing else is said.

    ``half_share``: of the memory's rate that half of the cores or fewer reach.

    ``doubling``, ``partial_doubling``, ``turn_doubling``: per doubling of the bytes beyond 1 MiB.

    ``partial_turnaround``, ``copy_turnaround``, ``turn_turnaround``, ``matmul_turnaround``: as ``turnaround_bytes``, of
    operations with an operand that does not fill the result, copies, copies that turn dims, and matmuls.

    ``short_run``: over the square of the sticks that a core reads in a row, where the longer of rows and columns of
    sticks is divided.  ``square``: where rows are as many as columns of sticks in an operation with an operand that
    does not fill the result; a quarter less per doubling of the rows.

    ``piece``: bytes' worth per byte of the smaller of reads and writes and doubling of the pieces of a copy beyond 4,
    at most ``most_pieces`` doublings.  ``narrow_turn``: per halving of the written rows below 8.

    ``again``, ``again_short``: reading what an operation before left in device memory; the latter over the sticks in a
    row.  ``start_us``: of every execution.
    """

    half_share: Figure
    doubling: Figure
    partial_doubling: Figure
    turn_doubling: Figure
    partial_turnaround: Figure
    copy_turnaround: Figure
    turn_turnaround: Figure
    matmul_turnaround: Figure
    short_run: Figure
    square: Figure
    piece: Figure
    most_pieces: Figure
    narrow_turn: Figure
    again: Figure
    again_short: Figure
    start_us: Figure


@dataclass(frozen=True, slots=True)
class MatmulTerms:
    """What a matmul's division and the order of its operands cost, as shares of its arithmetic unless said otherwise.

    ``fill_exponent``: of the rows that fill the array, over ``rows_for_peak``.

    ``cohort``: per eight cores beyond eight along one dim, where a core's part of the result passes 64 K elements, in
    full from 256 K; ``wide_cohort``: the same where it is also wider than 128 along that dim, in full from 128 K and
    192.

    ``spill``: the result's bytes that are stored and fetched again, per doubling of a core's part beyond 64 K, at most
    ``most_spill``; depths below 512 spill less.  ``depth_split``: factor where the depth is divided.  ``six_sticks``:
    factor where a core has six or twelve sticks of columns.

    ``left_order``, ``shared_left_order``, ``right_order``: where batches lie between the rows of the first operand, the
    same beside a second one that all batches share, and of the second; in full from four batches, the shared one beyond
    four.  ``result_order``, ``shared_result_order``: the result's bytes again, where batches lie between its rows.
    ``batch_split``: factor where batches are divided.  ``strewn_rows``: per eight slices of the rows beyond eight, each
    of which reads a second operand whose batches lie between its rows.

    ``start_us``: of every execution, to fill the array.
    """

    fill_exponent: Figure
    cohort: Figure
    wide_cohort: Figure
    spill: Figure
    most_spill: Figure
    depth_split: Figure
    six_sticks: Figure
    left_order: Figure
    shared_left_order: Figure
    right_order: Figure
    result_order: Figure
    shared_result_order: Figure
    batch_split: Figure
    strewn_rows: Figure
    start_us: Figure


@dataclass(frozen=True, slots=True)
class TargetProfile:
    """One set of parameters of the cost model; bytes and multiply-adds are per microsecond.

    ``memory_bytes_per_us``: all cores together; ``core_memory_bytes_per_us``: one core's own draw on it;
    ``turnaround_bytes``: extra bytes' worth of time per byte of the smaller of reads and writes of one operation;
    ``restickify_``, ``broadcast_``, ``outer_reduction_bytes_per_us``: rates of those movements, turnaround included.
    ``overlap``: the share of an operation over which memory and compute run at once, 0 to 1.
    ``matmul_macs_per_us``: one core, 16-bit; ``rows_for_peak``: rows per core that fill the PT array, below them the
    rate falls with the square root; ``underfill_us``: added per halving below that.  ``vector_bytes_per_us``: one
    core's SFP units.  ``lx_read_bytes_per_us``, ``lx_write_bytes_per_us``: one core.
    ``broadcast_cores``: cores that may read one operand for the price of one, beyond them linearly dearer;
    ``contends_whole``: that price then holds for all the operation's traffic, not for the operand alone.
    ``ring_bytes_per_us``: one direction; ``partial_sum_us``: per result element and K slice beyond the first;
    ``batch_exponent``: the whole cost grows with the batch slices to this power.
    ``host_to_device_bytes_per_us``, ``device_to_host_bytes_per_us``: the host link.  ``reduction``, ``streams``,
    ``matmul``: terms that only some profiles have.  ``uncertainty``: by class of operations, the share of a time by
    which nine of ten measured ones were off at most.
    """

    name: str
    memory_bytes_per_us: Figure
    core_memory_bytes_per_us: Figure
    turnaround_bytes: Figure
    overlap: Figure
    matmul_macs_per_us: Figure
    rows_for_peak: Figure
    underfill_us: Figure
    vector_bytes_per_us: Figure
    lx_read_bytes_per_us: Figure
    lx_write_bytes_per_us: Figure
    broadcast_cores: Figure
    contends_whole: bool
    ring_bytes_per_us: Figure
    partial_sum_us: Figure
    batch_exponent: Figure
    host_to_device_bytes_per_us: Figure
    device_to_host_bytes_per_us: Figure
    restickify_bytes_per_us: Figure | None = None
    broadcast_bytes_per_us: Figure | None = None
    outer_reduction_bytes_per_us: Figure | None = None
    reduction: ReductionRate | None = None
    streams: StreamTerms | None = None
    matmul: MatmulTerms | None = None
    uncertainty: tuple[tuple[str, Figure], ...] = ()

    def __hash__(self) -> int:
        """Return the hash of the name: a profile is a key of many tables, and hardly two have one name."""
        return hash(self.name)


CYCLES_PER_US = Figure(1500, "makes 32 cores * 2 corelets * 64 PEs * 8 lanes * 2 the stated peak", Trust.INFERRED)
"""Clock: 1.5 GHz."""

PT_ROWS = Figure(8, "torch-spyre work_division.py _PT_ROWS", Trust.STATED)
"""Rows of the PT array: one pass of it serves this many rows of a matmul."""

VECTOR_UNITS_PER_CORE = 2
"""One SFP unit per corelet, two corelets (torch-spyre architecture page, stated)."""

FP8_MATMUL_SPEEDUP = Figure(2, "RaPiD (ISCA 2021): 192 TFLOP/s fp8 beside 96 fp16", Trust.INFERRED)
"""Multiply-adds of 8-bit operands per one of 16-bit operands."""

RING_CORES = 32
"""Cores on the ring, whatever number a program uses (torch-spyre architecture page, stated)."""

PARTIAL_SUM_BYTES = 4
"""Bytes of one partial sum on the ring: float32 (semantics 10, assumed for the hardware)."""

_PLANNER = "torch-spyre work_division.py, June 2026"
_COST_MODEL = "torch-spyre cost_model.md and notes/cost_model_*.md, Aug-Sep 2026, fitted on device profiles"
_PEAK_MEMORY = Figure(204_800, f"{_PLANNER}, _HBM_BW_GBS: LPDDR5, 256 bit at 6.4 Gb/s", Trust.STATED)
_PEAK_MACS = Figure(1_536_000, f"{_PLANNER}, _PEAK_MACS_US_CORE: 98.304 TFLOP/s per chip", Trust.STATED)
_RING = Figure(128 * CYCLES_PER_US, "128 B/cycle per direction (stated) at the inferred clock", Trust.INFERRED)
_VECTOR = Figure(
    VECTOR_UNITS_PER_CORE * STICK_BYTES * CYCLES_PER_US,
    "64 fp16 lanes per unit, one result per cycle: sample_device.mlir of the scheduler",
    Trust.ASSUMED,
)
_LX_READ = Figure(256 * CYCLES_PER_US, "256 B/cycle: comment in sample_device.mlir", Trust.ASSUMED)
_LX_WRITE = Figure(128 * CYCLES_PER_US, "128 B/cycle: comment in sample_device.mlir", Trust.ASSUMED)
_LINK = Figure(63_000, "PCIe gen5 x16 (stated): 32 GT/s * 16 lanes * 128/130 / 8", Trust.STATED)


def _none(value: float, why: str) -> Figure:
    return Figure(value, why, Trust.ASSUMED)


DATASHEET = TargetProfile(
    name="datasheet",
    memory_bytes_per_us=_PEAK_MEMORY,
    core_memory_bytes_per_us=_RING,
    turnaround_bytes=_none(0, "peak figures know no turnaround"),
    overlap=_none(1, "double buffering hides the shorter of memory and compute"),
    matmul_macs_per_us=_PEAK_MACS,
    rows_for_peak=PT_ROWS,
    underfill_us=_none(0, "peak figures know none"),
    vector_bytes_per_us=_VECTOR,
    lx_read_bytes_per_us=_LX_READ,
    lx_write_bytes_per_us=_LX_WRITE,
    broadcast_cores=_none(32, "the ring carries one operand to all cores"),
    contends_whole=False,
    ring_bytes_per_us=_RING,
    partial_sum_us=_none(0, "the ring's rate stands for it"),
    batch_exponent=_none(0, "peak figures know none"),
    host_to_device_bytes_per_us=_LINK,
    device_to_host_bytes_per_us=_LINK,
)
"""What the published peak figures allow: no measured program reaches it."""

CALIBRATED = TargetProfile(
    name="calibrated",
    memory_bytes_per_us=Figure(150_000, f"{_COST_MODEL}: one-way rate", Trust.FITTED),
    core_memory_bytes_per_us=Figure(16_500, f"{_COST_MODEL}: 0.11 of the rate on one core", Trust.FITTED),
    turnaround_bytes=Figure(0.861, f"{_COST_MODEL}: 0.00574 ns per byte of min(read, write)", Trust.FITTED),
    overlap=Figure(0, "notes/cost_model_*.md: compute plus memory fits five matmuls within 7 %", Trust.FITTED),
    matmul_macs_per_us=_PEAK_MACS,
    rows_for_peak=Figure(64, f"{_PLANNER}: full efficiency from 8 passes of 8 rows", Trust.FITTED),
    underfill_us=_none(0, "the square root of rows_for_peak already counts it"),
    vector_bytes_per_us=_VECTOR,
    lx_read_bytes_per_us=Figure(math.inf, f"{_COST_MODEL}: LX traffic is below the noise", Trust.MEASURED),
    lx_write_bytes_per_us=Figure(math.inf, f"{_COST_MODEL}: LX traffic is below the noise", Trust.MEASURED),
    broadcast_cores=Figure(8, f"{_PLANNER}: _COHORT_LIMIT", Trust.FITTED),
    contends_whole=False,
    ring_bytes_per_us=_RING,
    partial_sum_us=_none(0, "the planner's 1.4e-4 was judged far too large upstream; the ring's rate stands for it"),
    batch_exponent=_none(0, "the planner's 1.4 steers a choice, it is no time"),
    host_to_device_bytes_per_us=Figure(12_400, "sample telemetry of RFC 0601, a mock-up", Trust.ASSUMED),
    device_to_host_bytes_per_us=Figure(8_200, "sample telemetry of RFC 0601, a mock-up", Trust.ASSUMED),
    restickify_bytes_per_us=Figure(116_000, _COST_MODEL, Trust.FITTED),
    broadcast_bytes_per_us=Figure(118_000, _COST_MODEL, Trust.FITTED),
    outer_reduction_bytes_per_us=Figure(113_000, _COST_MODEL, Trust.FITTED),
    reduction=ReductionRate(
        floor=Figure(114_000, _COST_MODEL, Trust.FITTED),
        span=Figure(61_000, _COST_MODEL, Trust.FITTED),
        decay_rows=Figure(3_700, _COST_MODEL, Trust.FITTED),
        share_by_cores=tuple(
            (cores, Figure(share, _COST_MODEL, Trust.FITTED))
            for cores, share in ((1, 0.11), (2, 0.22), (4, 0.43), (8, 0.54), (16, 0.54), (32, 1.0))
        ),
    ),
)
"""The published fits to device profiles.

Not in it, because the published matmul times contradict it: re-reading operands above 64 K accumulators per core, and
2.3 GB/s per core for operands that cores share.  Not in it, because its layout is not stated: 160 MAC/ns for batched
matmuls of default layout.
"""

_TIMINGS = "829 kernel times of a 32-core card in public torch-spyre forks, 2026-08, fitted by scripts/fit_profile.py"


def _fit(value: float) -> Figure:
    return Figure(value, _TIMINGS, Trust.FITTED)


_OF_REDUCTIONS = Figure(0.062, "that of reductions: four of 1.4 % are too few to tell", Trust.ASSUMED)
_OF_PARTIAL = Figure(0.12, "that of operands that do not fill the result: few were measured", Trust.ASSUMED)

MEASURED_2026_08 = replace(
    CALIBRATED,
    name="measured-2026-08",
    memory_bytes_per_us=_fit(173_300),
    core_memory_bytes_per_us=_fit(121_600),
    turnaround_bytes=_fit(1.019),
    overlap=_fit(0.2861),
    matmul_macs_per_us=_fit(1_200_000),
    vector_bytes_per_us=_fit(100_900),
    broadcast_cores=_fit(32),
    restickify_bytes_per_us=_fit(117_400),
    broadcast_bytes_per_us=_fit(118_000),
    outer_reduction_bytes_per_us=_fit(121_900),
    reduction=ReductionRate(
        floor=_fit(114_400),
        span=_fit(63_360),
        decay_rows=_fit(4_793),
        half_bytes_per_us=_fit(79_700),
        half_resonance=_fit(0.0683),
        vector_bytes_per_us=_fit(15_150),
    ),
    streams=StreamTerms(
        half_share=_fit(0.9366),
        doubling=_fit(0.01983),
        partial_doubling=_fit(0.02313),
        turn_doubling=_fit(0.04866),
        partial_turnaround=_fit(0.6024),
        copy_turnaround=_fit(0.1811),
        turn_turnaround=_fit(0.7886),
        matmul_turnaround=_fit(0.3064),
        short_run=_fit(4.057),
        square=_fit(0.2018),
        piece=_fit(0.4418),
        most_pieces=_fit(6),
        narrow_turn=_fit(0.3404),
        again=_fit(0.1896),
        again_short=_fit(4.21),
        start_us=_fit(0.4637),
    ),
    matmul=MatmulTerms(
        fill_exponent=_fit(0.7114),
        cohort=_fit(0.3617),
        wide_cohort=_fit(0.8213),
        spill=_fit(0.5759),
        most_spill=_fit(2.039),
        depth_split=_fit(2.005),
        six_sticks=Figure(1.5, "notes on the same times: 6 or 12 sticks of N per core cost 1.5 times", Trust.STATED),
        left_order=_fit(3.281),
        shared_left_order=_fit(1.152),
        right_order=_fit(2.434),
        result_order=_fit(2.56),
        shared_result_order=_fit(0.4767),
        batch_split=_fit(2.513),
        strewn_rows=_fit(0.2667),
        start_us=_fit(2.994),
    ),
    uncertainty=(
        ("copy", _fit(0.135)),
        ("copy that turns dims outside the sticks", _fit(0.155)),
        ("matmul", _fit(0.188)),
        ("outer reduction", _OF_REDUCTIONS),
        ("pointwise", _fit(0.112)),
        ("pointwise with an operand that does not fill the result", _fit(0.12)),
        ("reduction", _fit(0.062)),
        ("restickify", _fit(0.032)),
        ("broadcast", _OF_PARTIAL),
    ),
)
"""Rates and terms fitted to measured kernel times; docs/planning.md says how well, and where not to trust it."""

PLANNER_2026_06 = TargetProfile(
    name="planner-2026-06",
    memory_bytes_per_us=_PEAK_MEMORY,
    core_memory_bytes_per_us=_none(math.inf, "the planner knows no limit per core"),
    turnaround_bytes=_none(0, "the planner knows none"),
    overlap=Figure(0, f"{_PLANNER}: the terms are added", Trust.STATED),
    matmul_macs_per_us=_PEAK_MACS,
    rows_for_peak=Figure(64, f"{_PLANNER}: _PT_ROWS * _TARGET_PT_PASSES", Trust.STATED),
    underfill_us=Figure(50, f"{_PLANNER}: _TARGET_M_PENALTY_US", Trust.STATED),
    vector_bytes_per_us=_VECTOR,
    lx_read_bytes_per_us=_none(math.inf, "the planner knows none"),
    lx_write_bytes_per_us=_none(math.inf, "the planner knows none"),
    broadcast_cores=Figure(8, f"{_PLANNER}: _COHORT_LIMIT", Trust.STATED),
    contends_whole=True,
    ring_bytes_per_us=_none(math.inf, "partial_sum_us stands for it"),
    partial_sum_us=Figure(1.4e-4, f"{_PLANNER}: _PSUM_PER_ELEM_US", Trust.STATED),
    batch_exponent=Figure(1.4, f"{_PLANNER}: _BATCH_SPLIT_EXPONENT", Trust.STATED),
    host_to_device_bytes_per_us=_LINK,
    device_to_host_bytes_per_us=_LINK,
)
"""The matmul planner of torch-spyre's June 2026 snapshot: a score to choose splits by, not a time."""

DEFAULT_PROFILE = MEASURED_2026_08
"""The profile of whoever names none."""

PROFILES = {profile.name: profile for profile in (MEASURED_2026_08, CALIBRATED, DATASHEET, PLANNER_2026_06)}
"""Every timing profile by name."""
