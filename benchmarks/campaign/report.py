"""What a campaign says of itself: cases, rates, branches over time, distinct causes; as JSON, text and a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import orjson

from benchmarks.campaign.branches import Branches
from benchmarks.campaign.journal import Journal, Row
from benchmarks.campaign.task import can_count_branches
from benchmarks.campaign.verdicts import FAILURE, INVALID, OK, PACKAGE
from benchmarks.machine import machine
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.files.file_kinds import PICTURE_MARK

_MOST_POINTS = 200
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 320, 64, 16, 32, 40


@dataclass(frozen=True, slots=True)
class Growth:
    """Branches taken over time: points of seconds and branches, and how many there are."""

    points: tuple[tuple[float, int], ...]
    total: int
    cases: int

    @property
    def taken(self) -> int:
        """Branches taken at the end."""
        return self.points[-1][1] if self.points else 0


class Reporter:
    """Writes the reports of a journal, again and again."""

    def __init__(self, journal: Journal, seed: int, workers: int) -> None:
        self._journal = journal
        self._about: dict[str, JsonValue] = {"seed": seed, "workers": workers}

    def write(self, *, is_last: bool = False) -> str:
        """Write ``report.json`` and ``report.txt``; return the text.

        The last one counts branches, and draws ``coverage.svg``: that parses all of the package, half a minute's work.
        """
        growth = self._growth() if is_last else None
        data = report_of([*self._journal.rows.values()], growth, self._about)
        text = "\n".join([*text_lines(data), ""])
        _write(self._journal.folder / "report.json", orjson.dumps(data, option=orjson.OPT_INDENT_2))
        _write(self._journal.folder / "report.txt", text.encode())
        if growth is not None:
            _write(self._journal.folder / "coverage.svg", picture(growth).encode())
        return text

    def _growth(self) -> Growth | None:
        if not can_count_branches():
            return None
        branches, points = Branches(PACKAGE), list[tuple[float, int]]()
        for line in self._journal.branches():
            branches.add(cast("Mapping[str, Sequence[Sequence[int]]]", line["arcs"]))
            points.append((cast("float", line["at"]), branches.taken))
        return Growth(tuple(points), branches.total, len(points))


def _write(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def report_of(rows: Sequence[Row], growth: Growth | None, about: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the report as JSON."""
    seconds = max((row.at for row in rows), default=0.0)
    by_kind: dict[str, list[Row]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    causes = Counter(row.cause or "not made small yet" for row in rows if row.is_failure)
    found: dict[str, JsonValue] = {
        "format": "spyrec.campaign-report/1",
        **about,
        "machine": cast("JsonValue", machine()),
        "seconds": round(seconds, 1),
        **_counts(rows),
        "cases_per_minute": round(60 * len(rows) / seconds, 1) if seconds else 0.0,
        "kinds": {name: _counts(items) for name, items in sorted(by_kind.items())},
        "refusals": dict(Counter(row.verdict.what for row in rows if row.verdict.end == INVALID).most_common()),
        "causes": dict(causes.most_common()),
    }
    if growth is not None:
        found["branches"] = {"taken": growth.taken, "total": growth.total, "watched_cases": growth.cases,
                             "over_time": [[*point] for point in _thinned(growth.points)]}  # fmt: skip
    return found


def _counts(rows: Sequence[Row]) -> dict[str, JsonValue]:
    ends = Counter(row.verdict.end for row in rows)
    valid = 1 - ends[INVALID] / len(rows) if rows else 0.0
    seconds = sum(row.seconds for row in rows)
    return {"cases": len(rows), OK: ends[OK], INVALID: ends[INVALID], FAILURE: ends[FAILURE],
            "valid_rate": round(valid, 4), "worker_seconds": round(seconds, 1)}  # fmt: skip


def _thinned(points: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    step = -(-len(points) // _MOST_POINTS) or 1
    found = [*points[::step]]
    return found if not points or found[-1] == points[-1] else [*found, points[-1]]


def text_lines(data: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield the lines of a report for people."""
    kinds = cast("Mapping[str, Mapping[str, float]]", data["kinds"])
    whole = cast("Mapping[str, float]", data)
    about = cast("Mapping[str, JsonValue]", data["machine"])
    yield (f"{whole['cases']} cases in {whole['seconds']:.0f} s ({whole['cases_per_minute']:.0f} a minute), "
           f"{data['workers']} workers, {about['processor']}, seed {data['seed']}")  # fmt: skip
    yield ""
    yield f"{'kind':12}{'cases':>8}{'ok':>8}{'invalid':>9}{'failure':>9}{'valid':>9}{'s/case':>9}"
    for name, item in [*kinds.items(), ("all", whole)]:
        each = item["worker_seconds"] / max(1, item["cases"])
        yield (f"{name:12}{item['cases']:8.0f}{item[OK]:8.0f}{item[INVALID]:9.0f}{item[FAILURE]:9.0f}"
               f"{item['valid_rate']:9.1%}{each:9.2f}")  # fmt: skip
    branches = cast("Mapping[str, int] | None", data.get("branches"))
    if branches is not None:
        taken, total = branches["taken"], branches["total"]
        yield ""
        watched = branches["watched_cases"]
        yield f"branches of spyrec taken: {taken} of {total} ({taken / total:.1%}), new ones in {watched} cases"
    refusals = cast("Mapping[str, int]", data["refusals"])
    yield ""
    yield f"refused by: {', '.join(f'{name} {count}' for name, count in refusals.items()) or 'nothing'}"
    causes = cast("Mapping[str, int]", data["causes"])
    yield ""
    yield f"distinct causes: {len(causes)}"
    yield from (f"{count:6}  {name}" for name, count in causes.items())


def picture(growth: Growth) -> str:
    """Return branches over time as a plain SVG."""
    points = _thinned([(0.0, 0), *growth.points])
    longest, most = max(points[-1][0], 1.0), max(growth.taken, 1)

    def place(point: tuple[float, int]) -> str:
        x = _LEFT + point[0] / longest * (_WIDTH - _LEFT - _RIGHT)
        y = _HEIGHT - _BOTTOM - point[1] / most * (_HEIGHT - _TOP - _BOTTOM)
        return f"{x:.1f},{y:.1f}"

    line = " ".join(map(place, points))
    style = "text{font:12px sans-serif;fill:currentColor}.axis{stroke:currentColor;fill:none}"
    return "\n".join([
        PICTURE_MARK,
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}">',
        f"<style>{style}.line{{stroke:#c33;fill:none}}</style>",
        f'<text x="{_LEFT}" y="20">branches of spyrec taken: {growth.taken} of {growth.total}</text>',
        f'<path class="axis" d="M{_LEFT} {_TOP}V{_HEIGHT - _BOTTOM}H{_WIDTH - _RIGHT}"/>',
        f'<text x="{_LEFT - 4}" y="{_TOP + 4}" text-anchor="end">{most}</text>',
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 20}" text-anchor="end">{longest / 60:.0f} min</text>',
        f'<polyline class="line" points="{line}"/>',
        "</svg>",
        "",
    ])  # fmt: skip
