"""Pictures of a sweep: each graph's cases by time and traffic, those of its front joined; a plain SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from spyrec.dataclass import dataclass
from spyrec.files.file_kinds import PICTURE_MARK
from spyrec.notebook import text, time_text
from spyrec.sweep.fronts import by_graph, figures_of, front
from spyrec.sweep.rows import Row

MOST_PLOTS = 60
"""Graphs that are drawn; those with the most cases of their own come first."""

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 360, 240, 64, 16, 32, 40
_COLUMNS = 3
_STYLE = (
    "text{font:11px sans-serif;fill:currentColor}.axis{stroke:currentColor;fill:none}"
    ".case{fill:#8fb1d6}.best{fill:#c33}.front{stroke:#c33;fill:none}"
)


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where numbers lie between two ends, by their logarithms where all are above 0."""

    least: float
    most: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        """Return the coordinate of a number."""
        low, high, here = (math.log1p(item) for item in (self.least, self.most, value))
        share = 0.5 if high == low else (here - low) / (high - low)
        return round(self.begin + share * (self.end - self.begin), 2)


def plots(rows: Sequence[Row]) -> str:
    """Return an SVG with a plot for each graph that has figures of more than one case; "" where none has."""
    drawn = _drawn_graphs(rows)
    if not drawn:
        return ""
    columns = min(_COLUMNS, len(drawn))
    width, height = columns * _WIDTH, -(-len(drawn) // columns) * _HEIGHT
    parts = [
        PICTURE_MARK,
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{_STYLE}</style>",
    ]
    for number, (graph, found) in enumerate(drawn.items()):
        x, y = number % columns * _WIDTH, number // columns * _HEIGHT
        parts += [f'<g transform="translate({x} {y})">', *_plot(graph, found), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _drawn_graphs(rows: Sequence[Row]) -> dict[str, list[Row]]:
    known = {graph: [row for row in found if figures_of(row)] for graph, found in by_graph(rows).items()}
    several = {graph: found for graph, found in known.items() if len(found) > 1}
    most = sorted(several, key=lambda graph: -len(several[graph]))[:MOST_PLOTS]
    return {graph: found for graph, found in several.items() if graph in most}


def _plot(graph: str, rows: Sequence[Row]) -> Iterator[str]:
    points = {row.key: figures for row in rows if (figures := figures_of(row)) is not None}
    times, traffics = [item[0] for item in points.values()], [item[1] for item in points.values()]
    across = _Scale(min(times), max(times), _LEFT + 8, _WIDTH - _RIGHT - 8)
    up = _Scale(min(traffics), max(traffics), _HEIGHT - _BOTTOM - 8, _TOP + 8)
    yield f'<text x="{_LEFT}" y="18" font-weight="bold">{text(graph[-44:])}</text>'
    yield f'<path class="axis" d="M{_LEFT} {_TOP}V{_HEIGHT - _BOTTOM}H{_WIDTH - _RIGHT}"/>'
    low, high = _HEIGHT - _BOTTOM + 14, _TOP + 12
    yield f'<text x="{_LEFT}" y="{low}">{time_text(across.least, None)}</text>'
    yield f'<text x="{_WIDTH - _RIGHT}" y="{low}" text-anchor="end">{time_text(across.most, None)}</text>'
    yield f'<text x="{(_LEFT + _WIDTH) // 2}" y="{_HEIGHT - 8}" text-anchor="middle">simulated time</text>'
    yield f'<text x="{_LEFT - 4}" y="{_HEIGHT - _BOTTOM}" text-anchor="end">{_bytes(up.least)}</text>'
    yield f'<text x="{_LEFT - 4}" y="{high}" text-anchor="end">{_bytes(up.most)}</text>'
    best = front(rows)
    path = " ".join(f"{across.place(points[row.key][0])},{up.place(points[row.key][1])}" for row in best)
    if len(best) > 1:
        yield f'<polyline class="front" points="{path}"/>'
    for row in rows:
        time_us, traffic, _ = points[row.key]
        kind = "best" if row in best else "case"
        said = f"{row.name}: {time_text(time_us, None)}, {_bytes(traffic)}"
        yield f'<circle class="{kind}" cx="{across.place(time_us)}" cy="{up.place(traffic)}" r="4">'
        yield f"<title>{text(said)}</title></circle>"


def _bytes(count: float) -> str:
    for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"
