"""JSON to SuperDSC: reads what torch-spyre or the public bundle specification writes.

What decides execution is read and its cross references are checked; what the file merely repeats is compared with
what follows from the rest (``superdsc_derived``) and a difference is a warning.  A form whose meaning would have to
be guessed is refused by name (rule V14 of the executor).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from spyrec.bundle.debug_handle import DebugHandle, SourceRange, Transformation
from spyrec.bundle.dialects import DIALECTS, Dialect
from spyrec.bundle.dsc_schedule import DscCounts, read_schedule
from spyrec.bundle.json_cursor import (
    CONTRADICTORY,
    LARGEST_INTEGER,
    MALFORMED,
    NOT_UNDERSTOOD,
    Cursor,
    attempt,
    is_nothing,
)
from spyrec.bundle.known_texts import READ_SUPERDSCS
from spyrec.bundle.scheduled_reader import MAX_CORES, NamedFile, is_plural, read_scheduled
from spyrec.bundle.superdsc import (
    PAIRED_STICK,
    ComputeOp,
    ConstantEntry,
    DynamicDim,
    LabelInfo,
    Operand,
    PaddingSizes,
    SuperDsc,
)
from spyrec.bundle.superdsc_derived import check_derived
from spyrec.bundle.superdsc_distribution import DistributionReader
from spyrec.bundle.superdsc_operands import OperandReader, read_format
from spyrec.bundle.superdsc_windows import PADDING_SIZES, read_sizes, window_of
from spyrec.bundle.superdsc_writer import STAGE_DETAILS
from spyrec.dataclass import dataclass
from spyrec.device_ops import SHUFFLE, known_operations
from spyrec.diagnostics import DiagnosticSink, Location
from spyrec.diagnostics.json_reading import JsonValue, load_json

MAX_DIMS = 64
MAX_OPERANDS = 64
MAX_CONSTANTS = 1024
MAX_FUSIONS = 64
MAX_MASK_RANGES = 1024

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_ROOT_KEY = re.compile(r"([0-9]{1,9})_([A-Za-z_][A-Za-z0-9_]{0,63})")


def parse_superdsc(text: str | bytes, file: str | None = None, sink: DiagnosticSink | None = None) -> SuperDsc:
    """Read the text of one ``sdsc_N.json``; see :func:`from_json`, plus SPY0101 to SPY0104 for the text itself."""
    octets = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    known = READ_SUPERDSCS.find(octets)
    if known is not None:
        return known
    data, source = load_json(text, file)
    told = DiagnosticSink()
    dsc = from_json(data, Location(file, "", source=source), told)
    if not told.diagnostics:
        READ_SUPERDSCS.remember(octets, dsc)
    for warning in told.diagnostics if sink is not None else ():
        assert sink is not None
        sink.add(warning)
    return dsc


def from_json(data: JsonValue, where: Location | None = None, sink: DiagnosticSink | None = None) -> SuperDsc:
    """Read the content of one ``sdsc_N.json``; ``where`` is the place of ``data``.

    Warnings go to ``sink``, among them SPY0626 for each unknown key that holds nothing; all errors are collected and
    raised together: SPY0620 malformed, SPY0621 a form that is not understood, SPY0622 fields that contradict each
    other.  Whether the numbers make a legal operation (rules V1
    to V13) is for the executor's rules to say: here only what cannot be represented is refused.
    """
    collected = DiagnosticSink()
    root = Cursor(data, where or Location(None, ""))
    dsc = attempt(collected, lambda: _read_root(root, collected))
    if dsc is not None and not collected.errors:
        check_derived(dsc, root, collected)
    collected.raise_if_errors()
    assert dsc is not None
    if sink is not None:
        for warning in collected.diagnostics:
            sink.add(warning)
    return dsc


@dataclass(frozen=True, slots=True)
class _Division:
    """Which cores there are and how the iteration space is divided among them."""

    core_ids: tuple[int, ...]
    iteration: dict[str, int]
    work_slices: dict[str, int]
    core_extent: dict[str, int]
    core_work_slices: tuple[dict[str, int], ...]


def _read_root(root: Cursor, sink: DiagnosticSink) -> SuperDsc | None:
    key, outer = root.only_member('name "<index>_<operation>"')
    match = _ROOT_KEY.fullmatch(key)
    if match is None:
        root.refuse(MALFORMED, f'the root key "{key[:80]}" is not "<index>_<operation>"')
    if not is_plural(outer):
        return _read_dsc(_DscText(match, outer, outer.member("dscs_").only_item("DSC"), is_alone=True), sink)
    handle = attempt(sink, lambda: _read_handle(outer))
    dialect = _dialect(outer)
    named = NamedFile(int(match[1]), match[2], dialect, handle)
    return read_scheduled(
        outer, named, lambda entry: _read_dsc(_DscText(match, outer, entry, is_alone=False), sink), sink
    )


@dataclass(frozen=True, slots=True)
class _DscText:
    """One entry of ``dscs_`` and what is around it; ``match``: of the root key; ``is_alone``: there is no other."""

    match: re.Match[str]
    outer: Cursor
    entry: Cursor
    is_alone: bool


def _read_dsc(text: _DscText, sink: DiagnosticSink) -> SuperDsc | None:
    match, outer = text.match, text.outer
    name, inner = text.entry.only_member("operation's name")
    if name != match[2]:
        inner.refuse(CONTRADICTORY, f'the DSC is named "{name[:80]}", the root "{match[2]}"')
    dialect = _dialect(outer)
    handle = attempt(sink, lambda: _read_handle(outer))
    division = attempt(sink, lambda: _read_division(text, inner))
    windows = attempt(sink, lambda: _read_windows(inner, name))
    labels = attempt(sink, lambda: _read_labels(inner.member("primaryDsInfo_"), division))
    if division is None or labels is None or windows is None:
        return None
    distributions = DistributionReader(division.core_ids, tuple(division.iteration)) if name == SHUFFLE else None
    operands = _read_operands(
        inner, _OperandContext(dialect, division, labels, distributions, window_of(name) is not None), sink
    )
    dynamic = attempt(sink, lambda: _read_dynamic(outer, inner, division))
    constants = attempt(sink, lambda: _read_constants(inner))
    masking = attempt(sink, lambda: _read_masking(inner, division.iteration))
    compute = attempt(sink, lambda: _read_compute(inner, name))
    if operands is None or dynamic is None or constants is None or masking is None or compute is None:
        return None
    mask_id = inner.optional("maskingConstId_")
    return SuperDsc(
        index=int(match[1]),
        op_func_name=name,
        core_ids=division.core_ids,
        iteration=division.iteration,
        work_slices=division.work_slices,
        core_extent=division.core_extent,
        core_work_slices=division.core_work_slices,
        labels=labels,
        operands=operands,
        constants=constants,
        coordinate_masking=masking,
        masking_constant_id=-1 if mask_id is None else mask_id.integer(-1, MAX_CONSTANTS),
        compute=compute,
        dialect=dialect,
        debug_handle=handle,
        padding_sizes=windows[0],
        stage_padding_sizes=windows[1],
        dynamic_dims=dynamic,
    )


def _read_windows(inner: Cursor, name: str) -> tuple[dict[str, PaddingSizes], dict[str, PaddingSizes]]:
    """Read how a window slides along its axes, as a whole and per core."""
    whole = inner.member("N_")
    dims = _read_extents(whole)
    stage = inner.member("dataStageParam_").only_member("stage")[1]
    both = [read_sizes(stage.member(key), name, dims) for key in ("ss_", "el_")]
    if both[0] != both[1]:
        stage.refuse(CONTRADICTORY, f'"{PADDING_SIZES}" of ss_ and el_ differ (rule V2)')
    return read_sizes(whole, name, dims), both[0]


def _dialect(outer: Cursor) -> Dialect:
    """Tell the dialect by what is there: the newest one whose marks the file bears."""
    has_handle = outer.optional("debug_handle_") is not None
    return next(item for item in reversed(tuple(DIALECTS.values())) if has_handle or not item.has_debug_handles)


def _read_handle(outer: Cursor) -> DebugHandle | None:
    cursor = outer.optional("debug_handle_")
    return None if cursor is None or cursor.value is None else _read_one_handle(cursor, 0)


def _read_one_handle(cursor: Cursor, depth: int) -> DebugHandle:
    if depth > MAX_FUSIONS:
        cursor.refuse(MALFORMED, f"fused_from is nested more than {MAX_FUSIONS} deep")
    known = {"id", "source", "aten_op", "ir_chain", "fused_from", "transform_history"}
    for key, member in cursor.entries():
        if key not in known:
            member.refuse(NOT_UNDERSTOOD, f'key "{key[:80]}" of a debug handle is not understood (rule V14)')
    source, steps = _given(cursor, "source"), cursor.member("transform_history")
    return DebugHandle(
        cursor.member("id").text(),
        None if source is None else _read_source(source),
        _text_or_none(cursor, "aten_op"),
        tuple(item.text() for item in cursor.member("ir_chain").items()),
        tuple(_read_one_handle(item, depth + 1) for item in cursor.member("fused_from").items()),
        tuple(
            Transformation(item.member("kind").text(), item.member("pass_name").text(), _text_or_none(item, "reason"))
            for item in steps.items()
        ),
    )


def _read_source(cursor: Cursor) -> SourceRange:
    end_line, end_col = _given(cursor, "end_line"), _given(cursor, "end_col")
    return SourceRange(
        cursor.member("file").text(),
        cursor.member("start_line").integer(),
        cursor.member("start_col").integer(),
        None if end_line is None else end_line.integer(),
        None if end_col is None else end_col.integer(),
    )


def _given(cursor: Cursor, key: str) -> Cursor | None:
    """Return a member that is neither absent nor null."""
    member = cursor.optional(key)
    return None if member is None or member.value is None else member


def _text_or_none(cursor: Cursor, key: str) -> str | None:
    member = _given(cursor, key)
    return None if member is None else member.text()


def _read_division(text: _DscText, inner: Cursor) -> _Division:
    outer = text.outer
    ids = inner.member("coreIdsUsed_")
    core_ids = ids.integers(0, MAX_CORES - 1)
    if not core_ids or len(set(core_ids)) != len(core_ids):
        ids.refuse(CONTRADICTORY, f"core ids {list(core_ids)} are not distinct and at least one (rule V1)")
    for holder in (outer, inner) if text.is_alone else (inner,):
        count = holder.member("numCoresUsed_")
        if count.integer() != len(core_ids):
            count.refuse(CONTRADICTORY, f"{count.value} cores used, but coreIdsUsed_ lists {len(core_ids)} (rule V1)")
    if text.is_alone:
        read_schedule(outer, core_ids, DscCounts(1, 0))
    iteration = _read_extents(inner.member("N_"))
    stage_number, stage = inner.member("dataStageParam_").only_member("stage")
    if stage_number != "0":
        stage.refuse(NOT_UNDERSTOOD, f'data stage "{stage_number[:80]}" where only "0" is understood (rule V14)')
    core_extent = _read_same_extents(stage.member("ss_"), iteration)
    if _read_same_extents(stage.member("el_"), iteration) != core_extent:
        stage.refuse(CONTRADICTORY, "ss_ and el_ differ (rule V2)")
    slices = outer.member("numWkSlicesPerDim_")
    by_core = outer.member("coreIdToWkSlice_")
    if text.is_alone:
        _require_cores(by_core, core_ids)
    return _Division(
        core_ids,
        iteration,
        slices.integers_by(iteration, minimum=1),
        core_extent,
        tuple(by_core.member(str(core)).integers_by(iteration) for core in core_ids),
    )


def _require_cores(by_core: Cursor, core_ids: tuple[int, ...]) -> None:
    unexpected = sorted({key for key, _ in by_core.entries()} - {str(core) for core in core_ids})
    if unexpected:
        by_core.refuse(CONTRADICTORY, f'core "{unexpected[0][:40]}" is not in coreIdsUsed_ (rule V1)')


def _read_extents(cursor: Cursor) -> dict[str, int]:
    """Read ``{"name_": .., "mb_": 64, ..}``: extents by dim, in file order."""
    extents: dict[str, int] = {}
    for key, member in cursor.entries():
        if key == "name_":
            continue
        if key == PADDING_SIZES:
            continue
        if key == "symbolicDimInfo_":
            continue  # read with the symbols
        if key in STAGE_DETAILS:
            member.refuse(NOT_UNDERSTOOD, f'"{key}" is not understood (rule V14)')
        if not key.endswith("_") or not _NAME.fullmatch(key[:-1]):
            member.refuse(MALFORMED, f'"{key[:80]}" is not the name of a dim followed by "_"')
        extents[key[:-1]] = member.integer(1)
    if not 1 <= len(extents) <= MAX_DIMS:
        cursor.refuse(MALFORMED, f"{len(extents)} dims, not 1 to {MAX_DIMS}")
    return extents


def _read_same_extents(cursor: Cursor, iteration: Mapping[str, int]) -> dict[str, int]:
    extents = _read_extents(cursor)
    if extents.keys() != iteration.keys():
        cursor.refuse(CONTRADICTORY, f"dims {list(extents)} where N_ has {list(iteration)}")
    return extents


def _read_dynamic(outer: Cursor, inner: Cursor, division: _Division) -> dict[str, DynamicDim]:
    """Read the dims whose extent is a symbol: its id, name, and a core's share of maximum and granularity."""
    stage = inner.member("dataStageParam_").member("0")
    infos = [holder.optional("symbolicDimInfo_") for holder in (stage.member("ss_"), stage.member("el_"))]
    told = [None if item is None or is_nothing(item.value) else item for item in infos]
    mapping, tags = inner.optional("dimToSymbolMapping_"), outer.optional("inputSymbolsAndTags_")
    ids = {} if mapping is None else {dim: item.only_item("symbol id") for dim, item in mapping.members()}
    info = told[0]
    if (info is None) != (not ids) or (None if told[1] is None else told[1].value) != (info and info.value):
        fact = f"dims {list(ids)} have symbols, symbolicDimInfo_ of the stages does not say the same"
        (info or mapping or inner).refuse(CONTRADICTORY, fact)
    if info is None:
        return {}
    found: dict[str, DynamicDim] = {}
    for dim, cursor in ids.items():
        if dim not in division.iteration or cursor.integer() >= 0 or dim not in info.object():
            cursor.refuse(CONTRADICTORY, f'symbol {cursor.integer()} of dim "{dim[:80]}" (rule V9)')
        item, number = info.member(dim), cursor.integer()
        name = None if tags is None else tags.optional(str(number))
        sizes = item.member("maxSize_").integer(1), item.member("granularity_").integer(1)
        found[dim] = DynamicDim(number, f"symbol_{-number}" if name is None else name.text(), *sizes)
    return found


def _read_labels(cursor: Cursor, division: _Division | None) -> dict[str, LabelInfo]:
    labels: dict[str, LabelInfo] = {}
    for name, member in cursor.entries():
        if not _NAME.fullmatch(name):
            member.refuse(MALFORMED, f'"{name[:80]}" is not a label')
        order = member.member("layoutDimOrder_")
        dims = order.texts()
        if division is not None and not set(dims) <= division.iteration.keys():
            order.refuse(CONTRADICTORY, f"dims {list(dims)} are not all in N_ {list(division.iteration)} (rule V11)")
        labels[name] = LabelInfo(dims, *_read_stick(member, dims))
    if not labels:
        cursor.refuse(MALFORMED, "no label")
    return labels


def _read_stick(label: Cursor, dims: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the dims of a label's stick and its elements along each: one dim, or two of which the first has pairs."""
    order = label.member("stickDimOrder_")
    stick_dims, sizes = order.texts(), label.member("stickSize_").integers(1, 1 << 16)
    for stick in order.items():
        if stick.text() not in dims:
            stick.refuse(CONTRADICTORY, f"stick dim {stick.value!r} is not in layoutDimOrder_ {list(dims)} (rule V11)")
    is_plain = len(stick_dims) == len(sizes) == 1
    if not is_plain and not (len(set(stick_dims)) == len(stick_dims) == 2 and sizes == PAIRED_STICK):
        fact = f"sticks of {list(sizes)} elements along {list(stick_dims)}"
        order.refuse(NOT_UNDERSTOOD, f"{fact}; one dim, or {list(PAIRED_STICK)} of two are understood (rule V14)")
    return stick_dims, sizes


@dataclass(frozen=True, slots=True)
class _OperandContext:
    """What all operands of a file are read by."""

    dialect: Dialect
    division: _Division
    labels: Mapping[str, LabelInfo]
    distributions: DistributionReader | None
    has_window: bool


def _read_operands(inner: Cursor, context: _OperandContext, sink: DiagnosticSink) -> tuple[Operand, ...] | None:
    pairs = attempt(sink, lambda: _joined(inner))
    if pairs is None:
        return None
    names = {node.member("name_").text(): index for index, (node, _) in enumerate(pairs) if _is_named(node)}
    reader = OperandReader(
        context.dialect,
        context.division.core_ids,
        context.labels,
        names,
        context.distributions,
        has_window=context.has_window,
    )
    read = [attempt(sink, partial(reader.read, node, labeled)) for node, labeled in pairs]
    operands = tuple(operand for operand in read if operand is not None)
    return operands if len(operands) == len(read) else None


def _is_named(node: Cursor) -> bool:
    return isinstance(node.value, dict) and isinstance(node.value.get("name_"), str)


def _joined(inner: Cursor) -> list[tuple[Cursor, Cursor]]:
    """Return (allocate node, labeledDs_ entry) of each operand, in the order of ``ldsIdx_``."""
    nodes = _by_index(inner.member("scheduleTree_"))
    entries = _by_index(inner.member("labeledDs_"))
    if nodes.keys() != entries.keys():
        fact = f"allocate nodes have ldsIdx_ {sorted(nodes)}, labeledDs_ has {sorted(entries)}"
        inner.member("scheduleTree_").refuse(CONTRADICTORY, fact)
    return [(nodes[index], entries[index]) for index in range(len(nodes))]


def _by_index(cursor: Cursor) -> dict[int, Cursor]:
    if not 1 <= len(cursor.array()) <= MAX_OPERANDS:
        cursor.refuse(MALFORMED, f"{len(cursor.array())} operands, not 1 to {MAX_OPERANDS}")
    found = {item.member("ldsIdx_").integer(0, MAX_OPERANDS): item for item in cursor.items()}
    if sorted(found) != list(range(len(cursor.array()))):
        cursor.refuse(CONTRADICTORY, f"ldsIdx_ {sorted(found)} do not number {len(cursor.array())} operands from 0")
    return found


def _read_constants(inner: Cursor) -> tuple[ConstantEntry, ...]:
    cursor = inner.optional("constantInfo_")
    if cursor is None or cursor.value == "{}":
        return ()
    if len(cursor.object()) > MAX_CONSTANTS:
        cursor.refuse(MALFORMED, f"{len(cursor.object())} constants, more than {MAX_CONSTANTS}")
    entries: list[ConstantEntry] = []
    for key, member in cursor.entries():
        if key != str(len(entries)):
            member.refuse(CONTRADICTORY, f'constant "{key[:40]}" stands where "{len(entries)}" is due')
        bits = member.member("data_").member("data_").member("[0, 0, 0]")
        value = bits.only_item("value") if isinstance(bits.value, list) else bits
        number = value.integer(0, (1 << 32) - 1)
        entries.append(ConstantEntry(member.member("name_").text(), read_format(member.member("dataFormat_")), number))
    return tuple(entries)


def _read_masking(inner: Cursor, iteration: Mapping[str, int]) -> dict[str, tuple[tuple[int, int], ...]]:
    cursor = inner.optional("coordinateMasking_")
    masking: dict[str, tuple[tuple[int, int], ...]] = {}
    for dim, ranges in () if cursor is None else cursor.entries():
        if dim not in iteration:
            ranges.refuse(CONTRADICTORY, f'masked dim "{dim[:80]}" is not in N_ {list(iteration)}')
        if len(ranges.array()) > MAX_MASK_RANGES:
            ranges.refuse(MALFORMED, f"{len(ranges.array())} mask ranges, more than {MAX_MASK_RANGES}")
        masking[dim] = tuple(_read_range(item) for item in ranges.items())
    return masking


def _read_range(cursor: Cursor) -> tuple[int, int]:
    numbers = cursor.integers(0, LARGEST_INTEGER // 2)
    if len(numbers) != 2:
        cursor.refuse(MALFORMED, f"{len(numbers)} numbers where [start, count] is due")
    return numbers[0], numbers[1]


def _read_compute(inner: Cursor, name: str) -> ComputeOp:
    entry = inner.member("computeOp_").only_item("computeOp_")
    called = entry.member("opFuncName")
    if called.text() != name:
        hint = known_operations(called.text())
        called.refuse(CONTRADICTORY, f'opFuncName is "{called.text()[:80]}", the DSC is named "{name}"', hint)
    names = _operand_names(inner)
    indirect = entry.optional("indirectAccessIndexLabeledDs") or entry.optional("indirectAccessIndexLabeledDs_")
    return ComputeOp(
        execution_unit=entry.member("exUnit").text(),
        op_func_name=name,
        data_format=read_format(entry.member("attributes_").member("dataFormat_")),
        inputs=_resolve(entry.member("inputLabeledDs"), names),
        outputs=_resolve(entry.member("outputLabeledDs"), names),
        indirect_access_indices=() if indirect is None else _resolve(indirect, names),
    )


def _operand_names(inner: Cursor) -> dict[str, int]:
    names: dict[str, int] = {}
    for entry in inner.member("labeledDs_").items():
        index = entry.member("ldsIdx_").integer(0, MAX_OPERANDS)
        names[f"{entry.member('dsName_').text()}-idx{index}"] = index
    return names


def _resolve(cursor: Cursor, names: Mapping[str, int]) -> tuple[int, ...]:
    for item in cursor.items():
        if item.text() not in names:
            item.refuse(CONTRADICTORY, f'operand "{item.text()[:80]}" is none of {list(names)}')
    return tuple(names[item.text()] for item in cursor.items())
