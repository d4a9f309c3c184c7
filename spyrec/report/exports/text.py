"""A report as text for a terminal or a pipe: what costs most, bytes beyond their bound, where the scratchpads are full.

On a terminal lines fit its columns, names are cut, and rows of values are drawn as sparklines; in a pipe lines are as
long as they are, so that ``grep`` finds whole names, and there is nothing to draw.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

from spyrec.dataclass import dataclass
from spyrec.notebook import time_text, visible
from spyrec.report.exports.report_graph import counted, title_of_program
from spyrec.report.model import Against, LxCores, LxRegion, Op, OutputCheck, Report, Run
from spyrec.report.report_file import REPORT_FORMAT

MOST_OPERATIONS = 10
_MOST_OTHERS = 5
_LEAST_COLUMNS = 60
_BLOCKS = "▁▂▃▄▅▆▇█"
_BAR = 6


def render(report: Report) -> str:
    """Return the text as a pipe or a file gets it."""
    return "".join(f"{line}\n" for line in [f"# {REPORT_FORMAT}", *text_lines(report)])


def text_lines(report: Report, columns: int | None = None, *, draws: bool = False) -> list[str]:
    """Return the lines; ``columns``: how many there are, 60 at least, ``None`` for as many as it takes.

    ``draws``: whether the reader is a terminal that shows block characters.
    """
    shape = _Shape(None if columns is None else max(columns, _LEAST_COLUMNS), draws)
    sections = [_head, _expensive, _beyond_bound, _scratchpads, _run, _against, _notes]
    lines: list[str] = []
    for section in sections:
        found = list(section(report, shape))
        lines += ["", *found] if lines and found else found
    return lines


@dataclass(frozen=True, slots=True)
class _Shape:
    """How wide lines may be, and whether rows of values are drawn."""

    columns: int | None
    draws: bool

    def prose(self, text: str, indent: int = 0) -> Iterator[str]:
        """Yield a sentence in as many lines as it takes, cut between words or, where one is too long, inside it."""
        shown = visible(text)
        if self.columns is None:
            yield " " * indent + shown
            return
        room = self.columns - indent
        line = ""
        for word in shown.split(" "):
            joined = f"{line} {word}" if line else word
            if cells(joined) <= room:
                line = joined
                continue
            if line:
                yield " " * indent + line
            line = word
            while cells(line) > room:
                taken = cut(line, room, "")
                yield " " * indent + taken
                line = line[len(taken) :]
        yield " " * indent + line

    def row(self, numbers: str, name: str) -> str:
        """Return a line of a table: numbers that are aligned already, and a name in the room that is left."""
        shown = visible(name)
        if self.columns is not None:
            shown = cut(shown, self.columns - cells(numbers) - 2)
        return f"{numbers}  {shown}".rstrip()

    def spark(self, label: str, values: Sequence[float]) -> Iterator[str]:
        """Yield a line of blocks with a label, where lines are drawn and there are at least two values."""
        if self.draws and len(values) > 1:
            room = (self.columns or _LEAST_COLUMNS) - len(label) - 2
            yield f"{label}  {sparkline(values, room)}"


def sparkline(values: Sequence[float], width: int) -> str:
    """Return values as blocks, the highest for the largest; of more values than ``width`` a block is the most of some.

    >>> sparkline([0, 1, 2, 4], 8)
    '▁▂▄█'
    """
    count = min(len(values), width)
    edges = [place * len(values) // count for place in range(count + 1)] if count else [0]
    bins = [max(values[first:past]) for first, past in pairwise(edges)]
    most = max(bins, default=0.0)
    return "".join(_BLOCKS[int((len(_BLOCKS) - 1) * (value / most))] if most > 0 else _BLOCKS[0] for value in bins)


def cells(text: str) -> int:
    """Return how many columns of a terminal a printable text takes."""
    return sum(0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def cut(text: str, room: int, mark: str = "…") -> str:
    """Return a text in at most ``room`` columns, with a mark where its end is left out."""
    if cells(text) <= room:
        return text
    taken = ""
    for char in text:
        if cells(taken + char) + len(mark) > room:
            break
        taken += char
    return taken + mark


def _head(report: Report, shape: _Shape) -> Iterator[str]:
    totals = report.totals
    ops, programs = len(report.ops), len(report.programs)
    parts = [f"{report.name}: {counted(ops, 'operation')} in {counted(programs, 'program')}"]
    if totals.us is not None:
        source = "simulated" if report.time.source == "run" else "predicted"
        parts.append(f"{source} {time_text(totals.us, totals.uncertainty)} ({report.bundle.profile})")
    yield from shape.prose(", ".join(parts))
    moved = totals.read + totals.written
    yield from shape.prose(f"device memory {moved:,} bytes, at least {totals.bound:,}{_times(moved, totals.bound)}")
    yield from shape.spark("time in order ", [op.us or 0.0 for op in report.ops])
    yield from shape.spark("bytes in order", [op.read + op.written for op in report.ops])


def _times(moved: int, bound: int) -> str:
    return f" ({moved / bound:,.2f} times that)" if bound else ""


def _expensive(report: Report, shape: _Shape) -> Iterator[str]:
    timed = [(op.us, number) for number, op in enumerate(report.ops) if op.us is not None]
    longest = sorted(timed, key=lambda item: (-item[0], item[1]))[:MOST_OPERATIONS]
    if not longest:
        return
    whole = sum(us for us, _ in timed)
    has_bounds = _has_bounds(report)
    which = f", {len(longest)} of {len(timed):,}" if len(timed) > len(longest) else ""
    yield from shape.prose(f"the operations that take longest{which}")
    bar_head = " " * (_BAR + 2) * shape.draws
    yield shape.row(f"  {'us':>11}  {'share':>6}{bar_head}  {'of bound':>8}", "operation")
    for us, number in longest:
        op = report.ops[number]
        share = us / whole if whole else 0.0
        bar = f"  {_bar(us / longest[0][0] if longest[0][0] else 0.0)}" if shape.draws else ""
        numbers = f"  {us:>11,.3f}  {100 * share:>4.0f} %{bar}  {_over_bound(op) if has_bounds else '-':>8}"
        yield shape.row(numbers, _title(op))
        yield shape.row(" " * 6, ", ".join(_places(report, op)))


def _bar(share: float) -> str:
    eighths = round(share * _BAR * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + ("▏▎▍▌▋▊▉"[rest - 1] if rest else "")).ljust(_BAR)


def _title(op: Op) -> str:
    """Return what an operation is called, and its function where the name does not say it."""
    return op.name if op.name.endswith(f".{op.op}") else f"{op.name} {op.op}"


def _over_bound(op: Op) -> str:
    moved = op.read + op.written
    if op.bound:
        return f"{moved / op.bound:,.2f}"
    return "-" if not moved else "over 0"


def _has_bounds(report: Report) -> bool:
    """Whether the operations have their shares of the lower bound: of a record without its bundle nobody knows them."""
    return any(op.bound for op in report.ops)


def _places(report: Report, op: Op) -> Iterator[str]:
    yield op.file
    if op.limit is not None:
        yield op.limit
    if op.executions != 1:
        yield f"{op.executions:,} times"
    if op.module is not None:
        yield report.modules[op.module]
    if op.source is not None:
        yield op.source


def _beyond_bound(report: Report, shape: _Shape) -> Iterator[str]:
    beyond = [(op.read + op.written - op.bound, number) for number, op in enumerate(report.ops)]
    most = sorted((item for item in beyond if item[0] > 0), key=lambda item: (-item[0], item[1]))[:_MOST_OTHERS]
    if not most or not _has_bounds(report):
        return
    yield from shape.prose("device memory beyond the lower bound, most first")
    yield shape.row(f"  {'bytes beyond':>14}  {'moved':>14}", "operation")
    for size, number in most:
        op = report.ops[number]
        yield shape.row(f"  {size:>14,}  {op.read + op.written:>14,}", _title(op))


def _scratchpads(report: Report, shape: _Shape) -> Iterator[str]:
    """Yield the fullest scratchpads in the order of their programs, and what was left out of them."""
    used = [(pad.peak / max(1, pad.usable), -place) for place, pad in enumerate(report.memory.lx) if pad.regions]
    chosen = sorted(-place for _, place in sorted(used, reverse=True)[:_MOST_OTHERS])
    for place in chosen:
        yield from _scratchpad(report, report.memory.lx[place], shape)
    if len(used) > len(chosen):
        yield from shape.prose(f"and {counted(len(used) - len(chosen), 'more scratchpad')} that hold less")
    yield from _spilled(report, shape)


def _scratchpad(report: Report, pad: LxCores, shape: _Shape) -> Iterator[str]:
    program = report.programs[pad.program]
    there = [
        [item for item in pad.regions if item.begin <= op <= item.end] for op in range(program.first, program.past)
    ]
    held = [_covered(regions) for regions in there]
    share = f" ({100 * pad.peak / pad.usable:.1f} %)" if pad.usable else ""
    cores = ", ".join(f"{first}" if past - first == 1 else f"{first}-{past - 1}" for first, past in pad.cores)
    title = title_of_program(report, pad.program)
    yield from shape.prose(f"LX of {title}, cores {cores}: {pad.peak:,} of {pad.usable:,} bytes{share}")
    yield from shape.spark("  held", held)
    place = max(range(len(held)), key=lambda item: held[item])
    op = report.ops[program.first + place]
    yield from shape.prose(f"fullest at operation {program.first + place}, {_title(op)}:", 2)
    for item in sorted(there[place], key=lambda item: (item.first - item.past, item.first))[:_MOST_OTHERS]:
        yield shape.row(f"    {item.past - item.first:>12,}  at {item.first:>9,}", report.tensors[item.tensor].name)


def _covered(regions: Sequence[LxRegion]) -> int:
    """Return the bytes that regions cover together: what is computed in place lies where its operand does."""
    covered = reached = 0
    for item in sorted(regions, key=lambda item: item.first):
        covered += max(0, item.past - max(item.first, reached))
        reached = max(reached, item.past)
    return covered


def _spilled(report: Report, shape: _Shape) -> Iterator[str]:
    spilled = [item for item in report.decisions if item.kind == "spilled"]
    if spilled:
        yield from shape.prose(f"{counted(len(spilled), 'tensor')} in device memory that could have lain in LX")
    for item in sorted(spilled, key=lambda item: (item.saved_us, item.subject))[:_MOST_OTHERS]:
        yield from shape.prose(f"{item.subject}: {item.reason}", 2)


def _run(report: Report, shape: _Shape) -> Iterator[str]:
    run = report.run
    if run is None:
        return
    other = "" if run.is_same_bundle else ", of another bundle"
    yield from shape.prose(f"run{other}: {'ok' if run.ok else 'NOT ok'} ({run.numerics}, {run.engine})")
    for title, limit, checks in (("check", "bound", run.checks), ("compare", "tolerance", run.compares)):
        for check in checks:
            yield from shape.prose(_verdict(report, title, limit, check), 2)
    yield from _bisected(report, run, shape)
    for finding in run.findings[:_MOST_OTHERS]:
        where = "" if finding.op is None else f" at {report.ops[finding.op].name}"
        yield from shape.prose(f"{finding.sanitizer}: {finding.message}{where}", 2)
    if len(run.findings) > _MOST_OTHERS:
        yield from shape.prose(f"and {len(run.findings) - _MOST_OTHERS:,} more findings", 2)


def _verdict(report: Report, title: str, limit: str, check: OutputCheck) -> str:
    verdict = "ok" if check.ok else f"FAILED in {check.failed:,} of {check.elements:,} elements"
    core = "" if check.worst.core is None else f" of core {check.worst.core}"
    place = f"worst at {list(check.worst.index)}{core}"
    return f"{title} {report.outputs[check.output].name}: {verdict}, error/{limit} {check.bound_ratio:.3g}, {place}"


def _bisected(report: Report, run: Run, shape: _Shape) -> Iterator[str]:
    found = run.bisect
    if found is None:
        return
    compared = f"{found.compared:,} of {found.total:,} operations compared"
    if found.ok:
        yield from shape.prose(f"bisect: none guilty, {compared}", 2)
        return
    name = "a copy of the host" if found.op is None else report.ops[found.op].name
    yield from shape.prose(f"bisect: {name} is guilty ({found.guilt}), {compared}", 2)


def _against(report: Report, shape: _Shape) -> Iterator[str]:
    other = report.against
    if other is None:
        return
    yield from shape.prose(f"against {other.path} ({other.name})")
    yield shape.row(f"  {'there':>14}  {'here':>14}  {'change':>8}", "")
    mine, theirs = report.totals, other.totals
    if mine.us is not None and theirs.us is not None:
        yield shape.row(f"  {theirs.us:>14,.3f}  {mine.us:>14,.3f}  {_change(theirs.us, mine.us):>8}", "us")
    moved = theirs.read + theirs.written, mine.read + mine.written
    yield shape.row(f"  {moved[0]:>14,}  {moved[1]:>14,}  {_change(*moved):>8}", "bytes")
    yield from _changed_most(report, other, shape)
    if other.only:
        here = sum(item.side == "this" for item in other.only)
        yield from shape.prose(f"operations of one side alone: {here:,} here, {len(other.only) - here:,} there", 2)
    for item in other.moved[:_MOST_OTHERS]:
        yield from shape.prose(f"{item.name}: {item.was} before, {item.now} now", 2)


def _changed_most(report: Report, other: Against, shape: _Shape) -> Iterator[str]:
    changed = [
        (pair.us, report.ops[pair.op].us or 0.0, pair.op)
        for pair in other.pairs
        if pair.us is not None and "us" in pair.changed
    ]
    for before, now, number in sorted(changed, key=lambda item: (-abs(item[1] - item[0]), item[2]))[:_MOST_OTHERS]:
        op = report.ops[number]
        yield shape.row(f"  {before:>14,.3f}  {now:>14,.3f}  {_change(before, now):>8}", _title(op))


def _change(before: float, now: float) -> str:
    return f"{100 * (now / before - 1):+.1f} %" if before else "new" if now else "same"


def _notes(report: Report, shape: _Shape) -> Iterator[str]:
    for note in report.notes:
        yield from shape.prose(f"note: {note}")
