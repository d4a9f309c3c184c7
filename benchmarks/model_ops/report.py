"""The figures of all calls: by op and by model, counted as cases and weighted by how often they are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.model_ops.run import Status, Verdict
from spyrec.sweep.model_calls.cases import Calls, Case
from spyrec.sweep.model_calls.signatures import public_name

Row = dict[str, str | int | float]


@dataclass(frozen=True, slots=True)
class Report:
    """Verdicts of all distinct cases, with their calls by model; ``entries`` counts what the lists hold."""

    calls: Calls
    verdicts: Mapping[Case, Verdict]
    entries: int

    def rows(self) -> dict[str, list[Row]]:
        """Return the tables: of all, by op, by model."""
        by_op = self._table(lambda case: (public_name(case.op),))
        by_model = self._table(lambda case: tuple(self.calls[case]))
        return {"total": self._table(lambda _: ("all",)), "by_op": by_op, "by_model": by_model}

    def _table(self, keys: Callable[[Case], Iterable[str]]) -> list[Row]:
        cases: dict[str, Counter[Status]] = {}
        calls: dict[str, Counter[Status]] = {}
        for case, verdict in self.verdicts.items():
            for key in keys(case):
                models = self.calls[case]
                cases.setdefault(key, Counter())[verdict.status] += 1
                calls.setdefault(key, Counter())[verdict.status] += models.get(key, sum(models.values()))
        return [_row(key, cases[key], calls[key]) for key in sorted(cases)]

    def reasons(self) -> list[Row]:
        """Return what went otherwise than right, by op and reason, the most called first."""
        found: Counter[tuple[str, str, str]] = Counter()
        for case, verdict in self.verdicts.items():
            if verdict.status not in (Status.RIGHT, Status.EMPTY):
                key = (public_name(case.op), verdict.status.value, verdict.reason)
                found[key] += sum(self.calls[case].values())
        return [
            {"op": op, "status": status, "calls": count, "reason": reason}
            for (op, status, reason), count in found.most_common()
        ]

    @property
    def is_right(self) -> bool:
        """Whether every call that computes something is right."""
        return all(item.status in (Status.RIGHT, Status.EMPTY) for item in self.verdicts.values())


def _row(name: str, cases: Counter[Status], calls: Counter[Status]) -> Row:
    total = sum(calls.values())
    good = calls[Status.RIGHT] + calls[Status.EMPTY]
    row: Row = {"name": name, "cases": sum(cases.values()), "calls": total}
    row |= {status.value: cases[status] for status in Status}
    return {**row, "right % of calls": round(100 * good / total, 1)}


def as_text(report: Report) -> str:
    """Return the tables and the reasons as people read them."""
    lines: list[str] = [f"{report.entries} entries, {len(report.verdicts)} distinct calls"]
    for title, rows in report.rows().items():
        lines += ["", title.replace("_", " "), *_aligned(rows)]
    reasons = report.reasons()
    if reasons:
        lines += ["", "calls  op: why"]
        lines += [f"{row['calls']:5}  {row['op']}: {row['status']}: {row['reason']}" for row in reasons]
    return "\n".join(lines)


def as_markdown(report: Report) -> str:
    """Return the tables of ``docs/model_calls.md``: by model, by op, and what is not right with its reason."""
    tables = report.rows()
    lines = [f"{report.entries} entries of the lists are {len(report.verdicts)} distinct calls."]
    for title, rows in (("By model", [*tables["by_model"], *tables["total"]]), ("By op", tables["by_op"])):
        lines += ["", f"## {title}", "", *_as_table(title.removeprefix("By "), rows)]
    lines += ["", "## What is not right", "", "| op | calls | why |", "|---|---|---|"]
    lines += [f"| `{row['op']}` | {row['calls']} | {row['status']}: {row['reason']} |" for row in report.reasons()]
    return "\n".join(lines) + "\n"


_SHOWN = ("cases", "calls", "right", "wrong", "refused", "crashed", "no tensor", "right % of calls")


def _as_table(name: str, rows: Sequence[Row]) -> list[str]:
    lines = [f"| {name} | {' | '.join(_SHOWN)} |", f"|---|{'---|' * len(_SHOWN)}"]
    return [*lines, *(f"| {row['name']} | {' | '.join(str(row[column]) for column in _SHOWN)} |" for row in rows)]


def _aligned(rows: list[Row]) -> list[str]:
    titles = list(rows[0])
    cells = [titles, *([str(row[title]) for title in titles] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(titles))]
    return ["  ".join(_justified(line, widths)) for line in cells]


def _justified(line: Sequence[str], widths: Sequence[int]) -> Iterable[str]:
    yield line[0].ljust(widths[0])
    yield from (cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))
