"""What the rows of a sweep tell together: counts by status, what is wrong, each graph's front; as text or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from spyrec.dataclass import dataclass
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.notebook import time_text
from spyrec.sweep.comparison import Change, Verdict, counts_line
from spyrec.sweep.fronts import AXES, by_graph, figures_of, front
from spyrec.sweep.results import ResultSet
from spyrec.sweep.rows import ROW, STATUSES, Row

MOST_LISTED = 20
"""Lines of each list that people read; JSON and Parquet have all."""

FORMAT = "spyrec.sweep-report/1"


@dataclass(frozen=True, slots=True)
class Summary:
    """A result set, and what has changed since another one of this name."""

    results: ResultSet
    changes: tuple[Change, ...] = ()
    against: str | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many cases have each status, those without any left out."""
        found = Counter(row.status for row in self.results.rows)
        return {status: found[status] for status in STATUSES if found[status]}

    @property
    def unfinished(self) -> int:
        """Cases without a row."""
        return self.results.case_count - len(self.results.rows)

    @property
    def head(self) -> str:
        """The counts in one line."""
        said = [f"{count} {status}" for status, count in self.counts.items()]
        said += [f"{self.unfinished} not run"] if self.unfinished else []
        count = self.results.case_count
        return f"{self.results.name}: {count} case{'s'[: count != 1]}: {', '.join(said) or 'none'}"

    def reasons(self) -> list[tuple[int, str, str, Row]]:
        """Return why cases are not good: how many, status, code or message, the first; the most frequent first."""
        found: dict[tuple[str, str], list[Row]] = {}
        for row in self.results.rows:
            if not row.is_good:
                found.setdefault((row.status, row.code or (row.message or "").partition("\n")[0]), []).append(row)
        listed = [(len(rows), status, reason, rows[0]) for (status, reason), rows in found.items()]
        return sorted(listed, key=lambda item: -item[0])


def text_lines(summary: Summary) -> Iterator[str]:
    """Yield the lines for a terminal or a pipe."""
    yield summary.head
    yield from _reason_lines(summary)
    if summary.against is not None:
        yield ""
        yield counts_line(summary.changes, summary.against)
        yield from _listed([f"  {item.verdict.value}  {item.name}: {item.said}" for item in _told(summary.changes)])
    yield from _model_lines(summary)
    yield from _front_lines(summary.results.rows)


def _told(changes: Sequence[Change]) -> list[Change]:
    """Return changes with those that fail a gate first; new cases are counted alone."""
    order = list(Verdict)
    return sorted(
        (item for item in changes if item.verdict is not Verdict.NEW), key=lambda item: order.index(item.verdict)
    )


def _reason_lines(summary: Summary) -> Iterator[str]:
    reasons = summary.reasons()
    if reasons:
        yield ""
        yield "what is wrong"
        lines = [f"  {count}  {status}  {reason}  first: {row.name}" for count, status, reason, row in reasons]
        yield from _listed(lines)


def by_model(rows: Sequence[Row]) -> dict[str, Counter[str]]:
    """Return by model how many of its distinct calls have each status, and under ``calls`` how often it makes them."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        for model, calls in row.calls.items():
            counts = found.setdefault(model, Counter())
            counts[row.status] += 1
            counts["calls"] += calls
    return dict(sorted(found.items()))


def _model_lines(summary: Summary) -> Iterator[str]:
    models = by_model(summary.results.rows)
    if not models:
        return
    yield ""
    yield "by model"
    for model, counts in models.items():
        said = ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])
        yield f"  {model}  {said} in {counts['calls']} calls"


def _front_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield each graph's best cases, where more than one was tried."""
    tried = {graph: found for graph, found in by_graph(rows).items() if len(found) > 1}
    shown = {graph: front(found) for graph, found in tried.items()}
    lines: list[str] = []
    for graph, best in shown.items():
        if not best:
            continue
        lines.append(f"  {graph}: {len(best)} of {len(tried[graph])}")
        lines += [f"    {_figures(row)}  {_options(row)}" for row in best]
    if lines:
        yield ""
        yield "best in time, traffic and scratchpad"
        yield from _listed(lines)


def _figures(row: Row) -> str:
    figures = figures_of(row)
    assert figures is not None, "it is of a front"
    time_us, traffic, scratchpad = figures
    return f"{time_text(time_us, None)}  {int(traffic):,} B  {int(scratchpad):,} B"


def _options(row: Row) -> str:
    return " ".join(f"{name}={value}" for name, value in row.options.items()) or "default"


def _listed(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:MOST_LISTED]
    if len(lines) > MOST_LISTED:
        yield f"  and {len(lines) - MOST_LISTED} more lines (--format json has all)"


def summary_json(summary: Summary) -> dict[str, JsonValue]:
    """Return the object of ``--format json``."""
    found: dict[str, JsonValue] = {
        "format": FORMAT,
        "name": summary.results.name,
        "cases": summary.results.case_count,
        "counts": dict(summary.counts),
        "not_run": summary.unfinished,
        "axes": list(AXES),
        "fronts": {graph: [row.key for row in front(rows)] for graph, rows in by_graph(summary.results.rows).items()},
    }
    if summary.against is not None:
        found["against"] = summary.against
        found["changes"] = [
            {"verdict": item.verdict.value, "case": item.name, "said": item.said} for item in summary.changes
        ]
    return {**found, "rows": [ROW.write(row) for row in summary.results.rows]}  # pyright: ignore[reportReturnType] -- JSON
