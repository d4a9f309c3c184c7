"""The map of the scratchpads as a picture: time runs to the right, addresses upward, loops are brackets below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from spyrec.compare.lx_map import LoopSpan, LxMap, LxRegion
from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse

_MOST_STEPS = 4096
_STEP, _HEIGHT, _MARGIN, _AXIS, _TITLE, _LABELS, _BRACKET = 28, 320, 16, 96, 34, 150, 18
_COLOURS = ("#8fb1d6", "#f5b878", "#97cb8f", "#ec9a9b", "#a5d3cf", "#f3dc8a", "#d0b0c8", "#c5a895")


def draw(maps: Sequence[LxMap]) -> str:
    """Return an SVG with a panel per map; errors SPY0319 beyond 4096 operations."""
    steps = max((len(found.steps) for found in maps), default=0)
    if steps > _MOST_STEPS:
        hint = f"draw at most {_MOST_STEPS}, or ask for the text"
        raise refuse("SPY0319", f"{steps} operations are too many for a picture", hint=hint)
    width = 2 * _MARGIN + _AXIS + max(steps * _STEP, 420)
    drawn: list[str] = []
    top = _MARGIN
    for found in maps:
        panel = _Panel(found, top)
        drawn += panel.lines()
        top += panel.height + _MARGIN
    size = f'width="{width}" height="{top}" viewBox="0 0 {width} {top}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="10">',
            f'<rect width="{width}" height="{top}" fill="#fff"/>',
            *drawn,
            "</svg>",
            "",
        ]
    )


@dataclass(frozen=True, slots=True)
class _Panel:
    """One map, from ``top`` pixels down."""

    found: LxMap
    top: int

    @property
    def depth(self) -> int:
        """Most loops inside each other."""
        return max((loop.depth + 1 for loop in self.found.loops), default=0)

    @property
    def height(self) -> int:
        """Pixels of the panel."""
        return _TITLE + _HEIGHT + self.depth * _BRACKET + _LABELS

    def lines(self) -> Iterator[str]:
        """Yield the panel's elements."""
        found = self.found
        title = f"program {found.program}, {len(found.cores)} cores from {found.cores[0]}: "
        title += f"peak {found.peak_bytes:,} of {found.usable_bytes:,} usable bytes of each core"
        yield f'<text x="{_MARGIN}" y="{self.top + 14}" font-weight="bold">{escape(title)}</text>'
        base = self._y(0)
        right = self._x(len(found.steps))
        for size in (0, found.peak_bytes):
            y = self._y(size)
            label = f'<text x="{_MARGIN + _AXIS - 6}" y="{y + 3}" text-anchor="end" fill="#555">{size:,}</text>'
            yield f'{label}<line x1="{self._x(0)}" y1="{y}" x2="{right}" y2="{y}" stroke="#bbb"/>'
        for number, region in enumerate(found.regions):
            yield from self._region(region, _COLOURS[number % len(_COLOURS)])
        for loop in found.loops:
            yield from self._loop(loop, base + 4 + (self.depth - loop.depth) * _BRACKET - _BRACKET // 2)
        for place, step in enumerate(found.steps):
            x, y = self._x(place) + _STEP // 2 + 3, base + 8 + self.depth * _BRACKET
            turned = f'transform="rotate(90 {x} {y})"'
            yield f'<text x="{x}" y="{y}" {turned} fill="#222">{escape(f"{step.file} {step.op}")}</text>'

    def _region(self, region: LxRegion, colour: str) -> Iterator[str]:
        others = [item for item in self.found.regions if item.first < region.past and region.first < item.past]
        # an operation that stores over what it reads does so in its middle
        x = self._x(region.begin) + (_STEP // 2 if any(item.end == region.begin for item in others) else 0)
        right = self._x(region.end + 1) - (_STEP // 2 if any(item.begin == region.end for item in others) else 0)
        y = self._y(region.past)
        width, height = max(2, right - x), max(1, self._y(region.first) - y)
        place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
        yield f"<g><title>{escape(region.name)}: bytes [{region.first:,}, {region.past:,})</title>"
        yield f'<rect {place} fill="{colour}" stroke="#444"/>'
        if height >= 12:
            shown = region.name[: max(1, width // 6 - 1)]
            yield f'<text x="{x + 3}" y="{y + 11}" fill="#222">{escape(shown)}</text>'
        yield "</g>"

    def _loop(self, loop: LoopSpan, y: int) -> Iterator[str]:
        if loop.last < loop.first:
            return
        left, right = self._x(loop.first) + 2, self._x(loop.last + 1) - 2
        rounds = "as a run needs" if loop.rounds is None else f"{loop.rounds} x"
        yield f'<path d="M{left} {y - 4}V{y}H{right}V{y - 4}" fill="none" stroke="#777"/>'
        yield f'<text x="{left + 3}" y="{y + 9}" fill="#777">{escape(loop.name)}: {rounds}</text>'

    def _x(self, place: int) -> int:
        return _MARGIN + _AXIS + place * _STEP

    def _y(self, size: int) -> int:
        return self.top + _TITLE + _HEIGHT - _HEIGHT * size // max(1, self.found.peak_bytes)
