"""The panes of a report: source, the compiler's forms and the product as lines, each with the lines it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from spyrec.bundle.debug_handle import DebugHandle
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.program import For, SdscExecute, Statement
from spyrec.codegen.lower_node import lower_node
from spyrec.codegen.opspec import OpSpec, TensorArgument
from spyrec.compare.bundle_reading import OperationReading, ProgramReading
from spyrec.compare.bundle_text import Shown, operation_lines
from spyrec.dataclass import dataclass
from spyrec.diagnostics.diagnostic import ModelPlace
from spyrec.ir.graph import Graph, location_of
from spyrec.passes.driver import PassRecord
from spyrec.report.compiled import Compiled
from spyrec.report.lines import Index, Line, graph_json_lines, kernel_numbers, stage_lines
from spyrec.report.model import Text
from spyrec.report.numbers import Several

SOURCE, COMPILER, PRODUCT = "source", "compiler", "product"

MOST_CHARACTERS = 400
"""Longest string."""

MOST_LINES = 20_000
"""Longest text."""

MOST_TEXT = 1_500_000
"""Characters of all strings together, beyond which forms between passes are left out."""

_CUT = "…"


@dataclass(slots=True)
class _Draft:
    """A text before its lines are numbered."""

    pane: str
    name: str
    kind: str
    lines: list[str]
    of: _Draft | None = None
    comes_from: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    ops: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    may_go: bool = False


@dataclass(frozen=True, slots=True)
class Panes:
    """All texts, and the lines that they are made of."""

    strings: tuple[str, ...]
    texts: tuple[Text, ...]


def panes_of(
    programs: Sequence[ProgramReading], graph_json: bytes | None, compiled: Compiled | None, notes: list[str]
) -> Panes:
    """Return the texts of a bundle; ``notes`` takes what was left out."""
    drafts: list[_Draft] = []
    before: Mapping[int, tuple[int, ...]] = {}
    last: _Draft | None = None
    if graph_json is not None:
        drafts += _source(graph_json, None if compiled is None else compiled.source)
        last = drafts[-1]
    if compiled is not None and last is not None:
        lines = graph_json_lines(graph_json or b"", compiled.source)
        forms, before = _forms(compiled, last, lines)
        drafts += forms
        opspecs = _opspecs(compiled, forms[-1] if forms else last, before)
        drafts.append(opspecs.draft)
        last, before = opspecs.draft, opspecs.lines
    else:
        handled = [*_handles(programs)]
        if handled:
            drafts += [item.draft for item in handled]
            last, before = handled[-1].draft, handled[-1].lines
        else:
            last = None
    superdscs = _superdscs(programs, last, before)
    drafts += [superdscs.draft, _programs(programs, superdscs)]
    return _numbered(_kept(drafts, notes), notes)


@dataclass(frozen=True, slots=True)
class _Told:
    """A text, and by operation the lines of it that are about that."""

    draft: _Draft
    lines: Mapping[int, tuple[int, ...]]


def _source(text: bytes, graph: Graph | None) -> list[_Draft]:
    """Return the graph's text, behind that of the model's modules where it tells of any."""
    lines = graph_json_lines(text, graph)
    own = _Draft(SOURCE, "graph.json", "json", [line.text for line in lines])
    places: dict[ModelPlace, int] = {}
    for line in lines:
        model = None if line.origin is None else location_of(line.origin).model
        number = None if model is None else places.setdefault(model, len(places))
        own.comes_from.append(() if number is None else (number,))
    if not places:
        return [own]
    own.of = _Draft(SOURCE, "modules", "modules", [_place_text(item) for item in places])
    return [own.of, own]


def _place_text(place: ModelPlace) -> str:
    file = "" if place.file is None else f"{place.file}:{place.line}"
    return "  ".join(part for part in (place.module or "(no module)", file, place.op) if part)


def _forms(
    compiled: Compiled, source: _Draft, lines: Sequence[Line]
) -> tuple[list[_Draft], dict[int, tuple[int, ...]]]:
    """Return the forms after each pass that changed something, and by operation the line of its kernel in the last."""
    found: list[_Draft] = []
    before, draft = [Index.of(lines)] * len(compiled.passes), source
    shown: list[Sequence[Line]] = [()] * len(compiled.passes)
    for records in zip(*compiled.passes):
        texts: list[Sequence[Line]] = [stage_lines(record.stage) for record in records]
        if all([line.text for line in old] == [line.text for line in new] for old, new in zip(shown, texts)):
            continue
        offsets = _offsets(shown) if found else [0] * len(texts)
        form = _Draft(COMPILER, records[0].name, _kind(records[0]), [], draft, may_go=True)
        for index, offset, new in zip(before, offsets, texts):
            form.lines += [line.text for line in new]
            form.comes_from += [tuple(number + offset for number in index.parents(line)) for line in new]
        found.append(form)
        before, shown, draft = [Index.of(item) for item in texts], texts, form
    if found:
        found[0].may_go = found[-1].may_go = False
    offsets = _offsets(shown)
    kernels = [kernel_numbers(part, text) if text else {} for part, text in zip(compiled.parts, shown, strict=True)]
    made = {
        number: (offsets[item.part] + kernels[item.part][item.position],)
        for number, item in compiled.made_of.items()
        if item.position in kernels[item.part]
    }
    return found, made


def _kind(record: PassRecord) -> str:
    return "graph" if isinstance(record.result, Graph) else "kernels"


def _offsets(texts: Sequence[Sequence[Line]]) -> list[int]:
    """Return where each part's lines begin in a text of all parts."""
    found = [0]
    for text in texts:
        found.append(found[-1] + len(text))
    return found[:-1]


def _opspecs(compiled: Compiled, of: _Draft, before: Mapping[int, tuple[int, ...]]) -> _Told:
    draft = _Draft(COMPILER, "OpSpec", "opspec", [], of)
    told: dict[int, tuple[int, ...]] = {}
    for number, item in sorted(compiled.made_of.items()):
        spec = lower_node(compiled.parts[item.part], item.program, item.kernel)
        lines = [*_opspec_lines(spec)]
        told[number] = (len(draft.lines),)
        draft.lines += lines
        draft.comes_from += [before.get(number, ())] * len(lines)
    return _Told(draft, told)


def _opspec_lines(spec: OpSpec) -> Iterator[str]:
    dims = ", ".join(f"{dim.symbol}: {dim.size}/{dim.work_division}" for dim in spec.iteration_space)
    constants = "".join(f", {name} = {value}" for name, value in spec.op_info.constants.items())
    yield f"{spec.op} over [{dims}]{constants}"
    for argument in spec.args:
        yield f"  {_argument_text(argument)}"


def _argument_text(item: TensorArgument) -> str:
    word = "reads" if item.is_input else "writes"
    index = "" if item.arg_index is None else f" argument {item.arg_index}"
    place = f"{item.allocation.kind.value} {item.allocation.start_bytes:#x}"
    coordinates = ", ".join(map(str, item.device_coordinates))
    advance = "" if item.tile_advance is None else f" by {item.tile_advance}"
    return f"{word}{index} {place}: {item.device_dtype.name} {list(item.device_size)} at [{coordinates}]{advance}"


def _handles(programs: Sequence[ProgramReading]) -> Iterator[_Told]:
    """Yield what the handles of SuperDSCs tell: the places in the source, and the names on the way from there."""
    sources: dict[str, int] = {}
    draft = _Draft(COMPILER, "handles", "handles", [])
    told: dict[int, tuple[int, ...]] = {}
    known: dict[DebugHandle, tuple[int, ...]] = {}
    for item in _operations(programs):
        handle = item.superdsc.debug_handle
        if handle is None:
            continue
        if handle not in known:
            known[handle] = _told_by(handle, draft, sources, 0)
        told[item.number] = known[handle]
    if not draft.lines:
        return
    if sources:
        draft.of = _Draft(SOURCE, "sources", "modules", list(sources))
        yield _Told(draft.of, {})
    yield _Told(draft, told)


def _told_by(handle: DebugHandle, draft: _Draft, sources: dict[str, int], depth: int) -> tuple[int, ...]:
    """Add the lines of a handle and of those that were fused to it; return its own line."""
    chain = " -> ".join(handle.ir_chain)
    history = ", ".join(f"{item.kind} by {item.pass_name}" for item in handle.transform_history)
    parts = [handle.aten_op or "(no operation)", chain, history]
    number = len(draft.lines)
    draft.lines.append("  " * depth + "  ".join(part for part in parts if part))
    place = () if handle.source is None else (sources.setdefault(handle.source.shown, len(sources)),)
    draft.comes_from.append(place)
    for item in handle.fused_from:
        inner = _told_by(item, draft, sources, depth + 1)[0]
        place = (*place, *draft.comes_from[inner])
    draft.comes_from[number] = tuple(sorted(set(place)))
    return (number,)


def _operations(programs: Sequence[ProgramReading]) -> Iterator[OperationReading]:
    for program in programs:
        yield from program.operations


def _superdscs(programs: Sequence[ProgramReading], of: _Draft | None, before: Mapping[int, tuple[int, ...]]) -> _Told:
    draft = _Draft(PRODUCT, "SuperDSC", "superdsc", [], of)
    told: dict[int, tuple[int, ...]] = {}
    shown = Shown(None, None, MOST_CHARACTERS)
    for program in programs:
        for item in program.operations:
            lines = [*operation_lines(program, item, 0, shown)]
            told[item.number] = (len(draft.lines),)
            draft.lines += lines
            draft.comes_from += [before.get(item.number, ())] * len(lines)
            draft.ops += [(item.number,)] * len(lines)
    return _Told(draft, told)


def _programs(programs: Sequence[ProgramReading], superdscs: _Told) -> _Draft:
    """Return ``bundle.mlir`` of each program, without the arithmetic of addresses."""
    draft = _Draft(PRODUCT, "bundle.mlir", "mlir", [], superdscs.draft)
    for program in programs:
        if program.text is None:
            continue
        if len(programs) > 1:
            _add(draft, f"// {program.directory}", ())
        calls, executes = iter(_calls(program)), iter([*_executes(program.text.program.body)])
        left_out = 0
        for line in print_program(program.text.program).splitlines():
            bare = line.lstrip()
            if bare.startswith("%") and any(word in bare for word in _ARITHMETIC):
                left_out += 1
                continue
            if left_out:
                _add(draft, f"\t\t// {left_out} lines of address arithmetic", ())
                left_out = 0
            ops: tuple[int, ...] = ()
            if bare.startswith(_EXECUTE):
                ops, line = next(calls, ()), _call_text(next(executes), line)
            _add(draft, line, ops, tuple(place for op in ops for place in superdscs.lines[op]))
    return draft


_EXECUTE = "sdscbundle.sdsc_execute "
_ARITHMETIC = (" = arith.constant ", " = arith.addi ", " = affine.apply ")
_SHOWN_VALUES = 3


def _executes(body: Sequence[Statement]) -> Iterator[SdscExecute]:
    for item in body:
        if isinstance(item, SdscExecute):
            yield item
        elif isinstance(item, For):
            yield from _executes(item.body)


def _call_text(call: SdscExecute, line: str) -> str:
    """Return a call with its first values: a SuperDSC on many cores takes hundreds of addresses."""
    if len(line) <= MOST_CHARACTERS // 2:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    values = ", ".join(f"%{name}" for name in call.operands[:_SHOWN_VALUES])
    return f'{indent}{_EXECUTE}({values}, … {len(call.operands)} values) {{sdsc_filename="{call.sdsc_filename}"}}'


def _add(draft: _Draft, line: str, ops: tuple[int, ...], comes_from: tuple[int, ...] = ()) -> None:
    draft.lines.append(line)
    draft.ops.append(ops)
    draft.comes_from.append(comes_from)


def _calls(program: ProgramReading) -> Iterator[tuple[int, ...]]:
    """Yield by ``sdsc_execute`` in the order of the text the operations that it is."""
    group: list[int] = []
    last: int | None = None
    for item in program.operations:
        own = None if item.call.place is None else item.call.place.group
        if group and (own is None or own != last):
            yield tuple(group)
            group = []
        group.append(item.number)
        last = own
    if group:
        yield tuple(group)


def _kept(drafts: Sequence[_Draft], notes: list[str]) -> list[_Draft]:
    """Return the texts that there is room for: of the forms between passes those in the middle go first."""
    kept = list(drafts)
    dropped: list[str] = []
    while _characters(kept) > MOST_TEXT:
        spare = [item for item in kept if item.may_go]
        if not spare:
            break
        gone = spare[len(spare) // 2]
        _join(kept, gone)
        kept.remove(gone)
        dropped.append(gone.name)
    if dropped:
        notes.append(f"there is no room for the forms after {', '.join(dropped)}")
    return kept


def _characters(drafts: Iterable[_Draft]) -> int:
    return sum(map(len, {line[:MOST_CHARACTERS] for draft in drafts for line in draft.lines}))


def _join(drafts: Sequence[_Draft], gone: _Draft) -> None:
    """Let what came from a text that goes come from what that came from."""
    for item in drafts:
        if item.of is gone:
            item.of = gone.of
            item.comes_from = [
                tuple(sorted({place for number in numbers for place in _from(gone, number)}))
                for numbers in item.comes_from
            ]


def _from(draft: _Draft, line: int) -> tuple[int, ...]:
    return draft.comes_from[line] if line < len(draft.comes_from) else ()


def _numbered(drafts: Sequence[_Draft], notes: list[str]) -> Panes:
    strings: dict[str, int] = {}
    numbers = {id(draft): number for number, draft in enumerate(drafts)}
    texts: list[Text] = []
    for draft in drafts:
        left_out = max(0, len(draft.lines) - MOST_LINES)
        kept = len(draft.lines) - left_out
        lines = tuple(strings.setdefault(_short(line), len(strings)) for line in draft.lines[:kept])
        of = None if draft.of is None else numbers[id(draft.of)]
        comes_from = () if of is None else _trimmed(_within(item) for item in draft.comes_from[:kept])
        texts.append(
            Text(draft.pane, draft.name, draft.kind, lines, of, comes_from, _trimmed(draft.ops[:kept]), left_out)
        )
        if left_out:
            notes.append(f"{draft.name} has {left_out} lines more")
    return Panes(tuple(strings), tuple(texts))


def _within(lines: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(line for line in lines if line < MOST_LINES)


def _trimmed(items: Iterable[tuple[int, ...]]) -> Several:
    found = list(items)
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def _short(line: str) -> str:
    line = line.expandtabs(2)
    return line if len(line) <= MOST_CHARACTERS else line[: MOST_CHARACTERS - 1] + _CUT
