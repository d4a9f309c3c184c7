"""Two bundles: what moved, and what became faster or slower, operation by operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from spyrec.compare.changes import Change
from spyrec.compare.semantic_diff import ArgumentTables, aligned_operations, changes_of
from spyrec.diagnostics import SpyrecError
from spyrec.report.build import Built
from spyrec.report.model import Against, ChangedFact, LoneOp, Moved, Op, OpPair, Report

_ONLY_HERE = "only on the right side"


def with_other(this: Built, other: Built, paths: tuple[Path, Path], tables: ArgumentTables) -> Report:
    """Return a report with another bundle beside it; ``paths`` and ``tables``: of this one, then of the other."""
    pairs = _pairs(this, other)
    report = this.report
    partners = {mine: theirs for theirs, mine in pairs}
    ops, others = report.ops, other.report.ops
    only = (
        *(_alone("this", number, op) for number, op in enumerate(ops) if number not in partners),
        *(_alone("other", number, op) for number, op in enumerate(others) if number not in dict(pairs)),
    )
    notes = list(report.notes)
    against = Against(
        name=other.report.name,
        path=other.report.bundle.path,
        totals=other.report.totals,
        pairs=tuple(_pair(this.report, other.report, mine, theirs) for theirs, mine in pairs),
        only=only,
        moved=tuple(_moved(report, other.report)),
        facts=tuple(_facts(paths, tables, dict(pairs), notes)),
    )
    return replace(report, against=against, notes=tuple(notes))


def _pairs(this: Built, other: Built) -> list[tuple[int, int]]:
    """Return the operations of both, by number in the other bundle and in this one."""
    count, other_count = len(this.report.programs), len(other.report.programs)
    found: list[tuple[int, int]] = []
    if count != other_count:  # programs are cut elsewhere: operations keep their order
        sides = [
            [item for program in built.reading.programs[:steps] for item in program.operations]
            for built, steps in ((other, other_count), (this, count))
        ]
        return [(one.number, two.number) for one, two in aligned_operations(sides[0], sides[1])[0]]
    for one, two in zip(other.reading.programs[:count], this.reading.programs[:count], strict=True):
        found += [(left.number, right.number) for left, right in aligned_operations(one.operations, two.operations)[0]]
    return found


def _alone(side: str, number: int, op: Op) -> LoneOp:
    return LoneOp(side, number, op.name, op.us, op.read, op.written)


def _pair(this: Report, other: Report, mine: int, theirs: int) -> OpPair:
    one, two = other.ops[theirs], this.ops[mine]
    changed = {
        "us": one.us != two.us,
        "bytes": (one.read, one.written) != (two.read, two.written),
        "division": [(dim.name, dim.parts) for dim in one.dims] != [(dim.name, dim.parts) for dim in two.dims],
        "cores": one.cores != two.cores,
        "memory": _memories(one) != _memories(two),
        "loops": (len(one.loops), one.executions) != (len(two.loops), two.executions),
        "op": one.op != two.op,
    }
    return OpPair(
        op=mine,
        other=theirs,
        name=one.name,
        us=one.us,
        read=one.read,
        written=one.written,
        executions=one.executions,
        cores=sum(past - first for first, past in one.cores),
        dims=one.dims,
        changed=tuple(name for name, is_so in changed.items() if is_so),
    )


def _memories(op: Op) -> list[str]:
    return [item.memory for item in (*op.inputs, *op.outputs)]


def _moved(this: Report, other: Report) -> Iterator[Moved]:
    """Yield tensors of one name that lie in other memory or at other bytes of the scratchpads."""
    mine, theirs = _places(this), _places(other)
    numbers = {tensor.name: number for number, tensor in reversed([*enumerate(this.tensors)])}
    for name in mine:
        if name in theirs and theirs[name] != mine[name]:
            yield Moved(name, theirs[name], mine[name], numbers[name])


def _places(report: Report) -> dict[str, str]:
    """Return by name where each tensor lies, in words; of several with one name the first."""
    lx: dict[int, str] = {}
    for item in report.memory.lx:
        for region in item.regions:
            lx.setdefault(region.tensor, f"lx [{region.first}, {region.past})")
    found: dict[str, str] = {}
    for number, tensor in enumerate(report.tensors):
        found.setdefault(tensor.name, lx.get(number, tensor.memory))
    return found


def _facts(
    paths: tuple[Path, Path], tables: ArgumentTables, partners: Mapping[int, int], notes: list[str]
) -> Iterator[ChangedFact]:
    """Yield what `spyrec diff --semantic OTHER THIS` says; ``notes`` takes why it says nothing."""
    try:
        changes = changes_of(paths[1], paths[0], (tables[1], tables[0]))
    except SpyrecError as error:
        notes.append(f"what changed cannot be told in words: {error.diagnostics[0].message}")
        return
    for change in changes:
        yield from _told(change, partners)


def _told(change: Change, partners: Mapping[int, int]) -> Iterator[ChangedFact]:
    labels: Sequence[str] = change.operations or ("",)
    about = ", ".join(item for item in change.abouts if item)
    for label in labels:
        number = _number(label)
        is_ours = change.text == _ONLY_HERE
        op = number if is_ours or number is None else partners.get(number)
        yield ChangedFact(change.topic.value, change.text, about, op)


def _number(label: str) -> int | None:
    head = label.partition(" ")[0]
    return int(head) if head.isdecimal() else None
