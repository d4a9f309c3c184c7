"""What the closed back end is publicly known to reject or to compile wrongly: one record per rule.

The back end's sources are closed; what is known of its limits is what users of torch-spyre report.  A rule stands here
where its condition can be decided from the files, and names the issues it was read from.  ``UNDECIDED`` lists reports
whose condition no file shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from spyrec.bundle.superdsc import Component, Indirection, Operand, SuperDsc
from spyrec.bundle.superdsc_derived import MASK_CONSTANT
from spyrec.dataclass import dataclass
from spyrec.device_ops import FP8_PRODUCTS, TOPKS
from spyrec.device_ops.record import FP8
from spyrec.diagnostics import DiagnosticSink, Location, Severity
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SPYRE_2026_08

KNOWN_FAILURE = "SPY0628"
"""Code of a program that the back end is publicly known to reject or to compile wrongly."""

_MOST_STEPS = 65_535
_FERMAT_PRIMES = (257, 65_537)
_TOPK_OF_A_CORE = 4
_FP8_COLUMNS = 1_024
_FP8_ROWS = 32


class Measure(Protocol):
    """Bytes of an operand on one core, which follow from its layout (the emulator computes them)."""

    def buffer_bytes(self, superdsc: SuperDsc, operand: Operand) -> int:
        """Return the bytes of an operand in LX, gaps and padding included."""
        ...

    def span_bytes(self, superdsc: SuperDsc, operand: Operand) -> int:
        """Return the bytes from the first to the last that one core touches, in whole sticks."""
        ...


@dataclass(frozen=True, slots=True)
class Facts:
    """What a rule looks at: one DSC, the bytes of its operands, and whether a loop of the program runs it."""

    dsc: SuperDsc
    measure: Measure
    is_looped: bool

    @property
    def inputs(self) -> tuple[Operand, ...]:
        """The operands that the operation reads, its index tensors not among them."""
        return tuple(self.dsc.operands[item] for item in self.dsc.compute.inputs)

    @property
    def outputs(self) -> tuple[Operand, ...]:
        """The operands that the operation writes."""
        return tuple(self.dsc.operands[item] for item in self.dsc.compute.outputs)

    @property
    def reduced(self) -> tuple[str, ...]:
        """The dims that the first input extends along and no output does."""
        kept = {dim for item in self.outputs for dim in extending(item)}
        return tuple(dim for item in self.inputs[:1] for dim in extending(item) if dim not in kept)

    def steps(self, dim: str) -> int:
        """Return what one core counts along a dim: sticks of the output's stick dim, else elements."""
        labels = [self.dsc.labels[item.label] for item in self.outputs[:1]]
        sticks = [label.stick_size for label in labels if label.stick_dim == dim]
        return -(-self.dsc.core_extent[dim] // (sticks or [1])[0])


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """One rule.  ``issues``: numbers of torch-spyre's tracker, a finding names the first.

    ``condition``: when it holds, in words; ``outcome``: what the back end does then.  ``reported``, ``mended``: month
    of the first report, and of the back end that has it mended (``None``: not known to be).
    """

    name: str
    issues: tuple[int, ...]
    condition: str
    outcome: str
    severity: Severity
    reported: str
    check: Callable[[Facts], Iterator[str]]
    mended: str | None = None


def extending(operand: Operand) -> tuple[str, ...]:
    """Return the dims an operand extends along, inner to outer."""
    return tuple(dim for dim in operand.layout_dim_order if operand.scales[dim] == 1)


def _reserved_lx(facts: Facts) -> Iterator[str]:
    first = SPYRE_2026_08.lx_usable_bytes
    for position, operand in enumerate(facts.dsc.operands):
        if operand.component is not Component.LX or operand.is_symbolic:
            continue
        past = max(operand.start_addresses) + facts.measure.buffer_bytes(facts.dsc, operand)
        if past > first:
            yield f"operand {position} ends at byte {past} of LX, the back end's own buffer begins at {first}"


def _wide_span(facts: Facts) -> Iterator[str]:
    most = SPYRE_2026_08.span_limit_bytes
    for position, operand in enumerate(facts.dsc.operands):
        if operand.component is Component.LX or operand.indirection is Indirection.VALUE:
            continue
        span = facts.measure.span_bytes(facts.dsc, operand)
        if span > most:
            yield f"one core spans {span} bytes of operand {position}, at most {most} are addressed"


def _wide_mask(facts: Facts) -> Iterator[str]:
    wide = [item.data_format for item in facts.inputs if (item.data_format.bits or 0) > 16]
    if facts.dsc.coordinate_masking and wide:
        yield f'dims {list(facts.dsc.coordinate_masking)} of a tensor of "{wide[0].name}" are masked'


def _divided_mask(facts: Facts) -> Iterator[str]:
    for dim in facts.dsc.coordinate_masking:
        if facts.dsc.work_slices[dim] > 1:
            yield f'dim "{dim}" is masked and divided among {facts.dsc.work_slices[dim]} slices'


def _other_constant(facts: Facts) -> Iterator[str]:
    names = [item.name for item in facts.dsc.constants]
    number = facts.dsc.masking_constant_id
    if facts.dsc.coordinate_masking and 0 <= number < len(names) and names[number] != MASK_CONSTANT:
        yield f'maskingConstId_ {number} is the constant "{names[number]}", not "{MASK_CONSTANT}"'


def _restickify_format(facts: Facts) -> Iterator[str]:
    if facts.dsc.op_func_name.startswith("ReStickifyOp"):
        for item in facts.inputs:
            if (item.data_format.bits or 16) > 16:
                yield f'{facts.dsc.op_func_name} of "{item.data_format.name}", elements of 16 bits are moved'


def _one_dim_cast(facts: Facts) -> Iterator[str]:
    if facts.dsc.op_func_name == "dl16tofp32" and len(facts.dsc.iteration) == 1:
        yield f"dl16tofp32 over {list(facts.dsc.iteration)}, its template loops over a dim beside the stick's"


def _fp8_contraction(facts: Facts) -> Iterator[str]:
    if facts.dsc.op_func_name in FP8_PRODUCTS:
        for dim in facts.reduced:
            if facts.dsc.iteration[dim] % 128:
                yield f'dim "{dim}" of {facts.dsc.iteration[dim]} is contracted, which is no multiple of 128'


def _fp8_sizes(facts: Facts) -> Iterator[str]:
    if facts.dsc.op_func_name not in FP8_PRODUCTS:
        return
    for output in facts.outputs:
        stick = facts.dsc.labels[output.label].stick_dim
        for dim in extending(output):
            extent, least = facts.dsc.iteration[dim], _FP8_COLUMNS if dim == stick else _FP8_ROWS
            if extent >= least:
                yield f'dim "{dim}" has {extent} {"columns" if dim == stick else "rows"}, {least} and more may fail'


def _integer_product(facts: Facts) -> Iterator[str]:
    if facts.dsc.op_func_name == "mul" and any(item.data_format is DeviceFormat.IEEE_INT32 for item in facts.inputs):
        yield "mul of IEEE_INT32 has no implementation"


def _fp8_copy(facts: Facts) -> Iterator[str]:
    if facts.dsc.op_func_name == "identity":
        for item in facts.inputs:
            if item.data_format in FP8:
                yield f"identity of {item.data_format.name} has no implementation"


def _topk_of_a_core(facts: Facts) -> Iterator[str]:
    if facts.dsc.op_func_name in TOPKS:
        searched = {dim for item in facts.inputs[:1] for dim in extending(item)}
        for dim in extending(facts.outputs[0]):
            if dim not in searched and facts.dsc.core_extent[dim] > _TOPK_OF_A_CORE:
                yield f"one core finds {facts.dsc.core_extent[dim]} values of a topk, {_TOPK_OF_A_CORE} are the most"


def _inner_gather(facts: Facts) -> Iterator[str]:
    indexed = {
        dim for item in facts.dsc.operands if item.indirection is Indirection.INDEX for dim in item.layout_dim_order
    }
    for position, item in enumerate(facts.dsc.operands):
        own = [dim for dim in item.layout_dim_order if dim in indexed]
        label = facts.dsc.labels[item.label]
        is_wide = facts.dsc.iteration[label.stick_dim] > label.stick_size
        if item.indirection is Indirection.VALUE and own and is_wide and item.layout_dim_order[-1] not in indexed:
            yield f'dim "{own[-1]}" of the table, operand {position}, is indexed and not its outermost'


def _is_single_fold(facts: Facts) -> bool:
    sources = set(facts.dsc.compute.inputs) - set(facts.dsc.compute.outputs)  # a fold lists its result as an input too
    is_fold = len(sources) == 1 and bool(facts.reduced)
    return is_fold and facts.inputs[0].data_format is DeviceFormat.IEEE_FP32


def _divided_fold(facts: Facts) -> Iterator[str]:
    for dim in facts.reduced if _is_single_fold(facts) else ():
        if facts.dsc.work_slices[dim] > 1:
            yield f'dim "{dim}" of float32 is reduced, and divided among {facts.dsc.work_slices[dim]} slices'


def _fold_of_rows(facts: Facts) -> Iterator[str]:
    if not _is_single_fold(facts) or facts.dsc.labels[facts.inputs[0].label].stick_dim not in facts.reduced:
        return
    rows = [dim for dim in extending(facts.inputs[0]) if dim not in facts.reduced and facts.dsc.core_extent[dim] > 1]
    if rows:
        yield f"float32 is reduced along its sticks, with more than one row on a core along {rows}"


def _two_reuses(facts: Facts) -> Iterator[str]:
    if not facts.dsc.op_func_name.startswith("batchmatmul"):
        return
    own = set(extending(facts.inputs[0]))
    reused = [dim for dim in extending(facts.outputs[0]) if dim not in own and facts.dsc.core_extent[dim] > 1]
    if len(reused) > 1:
        yield f"the first factor is used again along {reused}, one dim is scheduled"


def _many_steps(facts: Facts) -> Iterator[str]:
    for dim in facts.dsc.iteration:
        if facts.steps(dim) > _MOST_STEPS:
            yield f'one core takes {facts.steps(dim)} steps along "{dim}", a loop counts to {_MOST_STEPS}'


def _prime_rows(facts: Facts) -> Iterator[str]:
    for dim in facts.dsc.iteration if facts.is_looped else ():
        if facts.steps(dim) in _FERMAT_PRIMES:
            yield f'one core takes {facts.steps(dim)} steps along "{dim}" in a loop of the program, a Fermat prime'


def _masked_norm(facts: Facts) -> Iterator[str]:
    if facts.dsc.op_func_name == "exx2" and facts.dsc.coordinate_masking:
        yield f"exx2 with dims {list(facts.dsc.coordinate_masking)} masked"


_WRONG, _MAY = Severity.ERROR, Severity.WARNING

KNOWN_FAILURES = (
    KnownFailure(
        "reserved-lx",
        (3222, 3266, 3216),
        f"an operand in LX ends behind byte {SPYRE_2026_08.lx_usable_bytes} of a core",
        "the back end's buffer overwrites it: wrong numbers",
        _WRONG,
        "2026-07",
        _reserved_lx,
    ),
    KnownFailure(
        "wide-span",
        (3415, 1758, 1379, 1392, 3489),
        f"one core spans more than {SPYRE_2026_08.span_limit_bytes} bytes of an operand",
        "EAR overflow, immediate value out of boundary, wrong numbers or NaN",
        _WRONG,
        "2026-03",
        _wide_span,
    ),
    KnownFailure(
        "wide-mask",
        (2534, 4492),
        "a tensor whose elements have more than 16 bits is masked",
        "rejected: coordinate masking only up to 16 bit",
        _WRONG,
        "2026-06",
        _wide_mask,
    ),
    KnownFailure(
        "divided-mask",
        (3799,),
        "a masked dim is divided among cores",
        "rejected: masking of a dim split across cores",
        _WRONG,
        "2026-09",
        _divided_mask,
    ),
    KnownFailure(
        "mask-constant",
        (4390, 4400),
        f"maskingConstId_ is another constant than {MASK_CONSTANT}",
        "padding is filled with that constant: wrong numbers",
        _WRONG,
        "2026-09",
        _other_constant,
    ),
    KnownFailure(
        "restickify-format",
        (2542,),
        "a restickify moves elements of more than 16 bits",
        "not supported",
        _WRONG,
        "2026-06",
        _restickify_format,
    ),
    KnownFailure(
        "one-dim-cast",
        (2411, 2339, 1497),
        "dl16tofp32 iterates over the dim of its sticks alone",
        "rejected: illegal ddl",
        _WRONG,
        "2026-05",
        _one_dim_cast,
    ),
    KnownFailure(
        "fp8-contraction",
        (4308, 3050),
        "a product of 8-bit floats contracts a dim that is no multiple of 128",
        "SIGABRT",
        _WRONG,
        "2026-07",
        _fp8_contraction,
    ),
    KnownFailure(
        "fp8-sizes",
        (4309, 4235),
        f"a product of 8-bit floats has {_FP8_ROWS} rows or {_FP8_COLUMNS} columns, or more",
        "SIGABRT for some divisions",
        _MAY,
        "2026-09",
        _fp8_sizes,
    ),
    KnownFailure(
        "integer-product",
        (4325, 2356),
        "mul of 32-bit integers",
        "rejected: no op mapping; an empty program before 2026-05",
        _WRONG,
        "2026-09",
        _integer_product,
    ),
    KnownFailure(
        "fp8-copy",
        (4508, 3050, 2356),
        "identity of 8-bit floats",
        "rejected: no op mapping; an empty program before 2026-05",
        _WRONG,
        "2026-07",
        _fp8_copy,
    ),
    KnownFailure(
        "topk-of-a-core",
        (4716, 3782),
        f"one core finds more than {_TOPK_OF_A_CORE} values of a topk",
        "rejected",
        _WRONG,
        "2026-04",
        _topk_of_a_core,
    ),
    KnownFailure(
        "inner-gather",
        (3289, 3288),
        "rows of a gathered table are wider than a stick, and the indexed dim is not its outermost",
        "the wrong rows are read: wrong numbers",
        _WRONG,
        "2026-07",
        _inner_gather,
    ),
    KnownFailure(
        "divided-fold",
        (2453,),
        "a reduced dim of float32 is divided among cores",
        "rejected",
        _MAY,
        "2026-06",
        _divided_fold,
        mended="2026-06",
    ),
    KnownFailure(
        "fold-of-rows",
        (3804,),
        "float32 is reduced along its sticks, several rows on a core",
        "wrong numbers; the report is closed",
        _MAY,
        "2026-08",
        _fold_of_rows,
    ),
    KnownFailure(
        "two-reuses",
        (3927,),
        "a core has several elements along two dims of a product that its first factor lacks",
        "rejected: inp0_reuse_dim.size() == 1",
        _WRONG,
        "2026-08",
        _two_reuses,
    ),
    KnownFailure(
        "many-steps",
        (3161, 3162),
        f"one core takes more than {_MOST_STEPS} steps along a dim",
        "immediate value out of boundary, unless the loop can be split",
        _MAY,
        "2026-07",
        _many_steps,
    ),
    KnownFailure(
        "prime-rows",
        (3413,),
        "in a loop of the program one core takes 257 or 65,537 steps along a dim",
        "SIGABRT in LoopCoalescing",
        _WRONG,
        "2026-07",
        _prime_rows,
    ),
    KnownFailure(
        "masked-norm",
        (1801,),
        "exx2 of rows that are masked, being no whole sticks",
        "SIGABRT: zero_sfp_lrf has no producer",
        _MAY,
        "2026-04",
        _masked_norm,
    ),
)
"""Every rule of the profile ``pre-flight``, in the order in which findings stand."""

UNDECIDED = (
    (1974, "several labels that share a list of dims: which of them fail is not published; mended in 2026-05"),
    (
        2748,
        "operand does not dominate its use, with symbolic addresses: the programs are not published; mended in 2026-07",
    ),
    (4321, "gather or scatter along dim 0: the order of chunks is the back end's own"),
    (1731, "a batched product with 197 rows has no valid candidate: the report was not found again"),
    (3195, "some conversions of float16 to float32 abort: the shapes are not published; also 2313"),
    (3983, "batchmatmulfp8 of 128 by 128 by 128 aborts, solution cannot be found: mended in 2026-09"),
    (1765, "overwrite into an existing tensor gives wrong numbers: a fault of the writer of the files"),
    (4166, "coarse tiling on one core gives wrong numbers; also 4008, 3165, 3166, 3357: faults of the writer"),
    (1756, "sticks along dims of no whole sticks, and 1353, fractional coordinates: refused before files are written"),
    (4802, "gather from rows of less than a stick: the logical width is not in the file"),
)
"""Reports that no rule stands for: issue, and why."""


def check_preflight(facts: Facts, where: Location, sink: DiagnosticSink) -> None:
    """Add SPY0628 for each known failure that a DSC runs into: errors, and warnings where it may or is mended."""
    for rule in KNOWN_FAILURES:
        for fact in rule.check(facts):
            since = "" if rule.mended is None else f"; mended in back ends since {rule.mended}"
            reports = ", ".join(str(number) for number in rule.issues[1:])
            also = f" (also {reports})" if reports else ""
            notes = (f"torch-spyre issue {rule.issues[0]}{also}: {rule.outcome}{since}",)
            say = sink.error if rule.severity is Severity.ERROR else sink.warning
            say(KNOWN_FAILURE, f"{rule.name}: {facts.dsc.op_func_name}: {fact}", where, notes=notes)


def docs_page() -> str:
    """Return ``docs/preflight.md``: a table of the rules, and of the reports that none stands for."""
    rows = [
        f"| `{rule.name}` | {rule.severity.value} | {rule.condition} | {rule.outcome} | "
        f"{', '.join(str(number) for number in rule.issues)} | {rule.reported} | {rule.mended or ''} |"
        for rule in KNOWN_FAILURES
    ]
    others = [f"| {number} | {why} |" for number, why in UNDECIDED]
    return "\n".join((_HEAD, *rows, _OTHERS, *others, ""))


_HEAD = """# Before a program goes to the back end

`spyrec check BUNDLE --profile pre-flight` (or one `sdsc_N.json`) holds programs against what the closed back end is
publicly known to reject or to compile wrongly. Findings have the code SPY0628 and name the report in torch-spyre's
tracker: an error fails or computes wrong numbers, a warning may, or is mended in newer back ends. A program without
findings is no promise: these are the reports whose condition the files show. Whether a loop runs an operation is known
of bundles alone. This page is generated from `spyrec/bundle/preflight.py`.

| rule | severity | condition | outcome | torch-spyre issues and pull requests | reported | mended |
|---|---|---|---|---|---|---|"""

_OTHERS = """
## Reports that no rule stands for

| issue | why |
|---|---|"""
