"""A picture of a layout as the tiled-tensor RFC draws it: rows coloured, sticks boxed, padding hatched."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.diagnostics import refuse
from spyrec.layout.device_layout import DeviceLayout

_MOST_STICKS = 4096
_COLUMNS = 16
_WIDTH, _HEIGHT, _GAP, _TILE_GAP, _MARGIN, _LABEL, _TITLE = 96, 22, 4, 12, 12, 84, 54
_COLOURS = ("#8fb1d6", "#f5b878", "#97cb8f", "#ec9a9b", "#a5d3cf", "#f3dc8a", "#d0b0c8", "#c5a895")


def draw(layout: DeviceLayout) -> str:
    """Return an SVG of all sticks in memory order, left to right and down; errors SPY0319 beyond 4096 sticks.

    A stick has the colour of the host row (all dims but the last) of its first element, which is written into it; the
    last dim before the stick keeps together, and a wider gap sets its runs apart.
    """
    count = math.prod(layout.device_size[:-1])
    if count > _MOST_STICKS:
        raise refuse(
            "SPY0319", f"{count} sticks are too many for a picture", hint=f"draw at most {_MOST_STICKS} sticks"
        )
    if not count:
        raise refuse("SPY0310", "a tensor without elements has no sticks to draw")
    boxes = list(_boxes(layout))
    mask = layout.valid_lane_mask()
    width = max([520, *(box.x + _WIDTH + _MARGIN for box in boxes)])
    height = max([_TITLE, *(box.y + _HEIGHT + _MARGIN for box in boxes)])
    drawn = [line for box in boxes for line in _drawn(layout, box, np.flatnonzero(mask[box.stick]).tolist())]
    return "\n".join([*_head(width, height, layout), *drawn, "</svg>", ""])


@dataclass(frozen=True, slots=True)
class _Box:
    """One stick: its device index, where it is drawn in pixels, and the label of its row where it begins one."""

    stick: tuple[int, ...]
    x: int
    y: int
    label: str | None


def _boxes(layout: DeviceLayout) -> Iterator[_Box]:
    extents = layout.device_size[:-1]
    run = extents[-1] if extents else 1
    fitting = [first for first in range(len(extents)) if math.prod(extents[first:]) <= _COLUMNS]
    # A row holds as many whole dims as fit; a run that is too long for one row takes several.
    first = fitting[0] if fitting else len(extents) - 1
    rows_per_run = 1 if fitting or not extents else -(-run // _COLUMNS)
    columns = math.prod(extents[first:]) if fitting else _COLUMNS
    for number, stick in enumerate(product(*(range(extent) for extent in extents))):
        row, column = divmod(number, columns) if rows_per_run == 1 else _wrapped(number, run, rows_per_run)
        x = _MARGIN + _LABEL + column * (_WIDTH + _GAP) + (column // run if run else 0) * _TILE_GAP
        y = _TITLE + row * (_HEIGHT + _GAP) + row // rows_per_run * (_TILE_GAP if rows_per_run > 1 else 0)
        prefix = stick[:first] if rows_per_run == 1 else stick
        label = f"[{', '.join([*map(str, prefix), *['·'] * (len(extents) - len(prefix))])}]"
        yield _Box(stick, x, y, label if column == 0 else None)


def _wrapped(number: int, run: int, rows_per_run: int) -> tuple[int, int]:
    block, inner = divmod(number, run)
    return block * rows_per_run + inner // _COLUMNS, inner % _COLUMNS


def _head(width: int, height: int, layout: DeviceLayout) -> list[str]:
    facts = (
        f"host shape {list(layout.host_shape)}, {layout.elements_per_stick} elements per stick, "
        f"{100 * layout.padding_fraction:.1f} % padding (hatched)"
    )
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    device = f"device_size {list(layout.device_size)}, stride_map {list(layout.stride_map)}, {layout.device_dtype.name}"
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace">',
        '<defs><pattern id="padding" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">',
        '<rect width="6" height="6" fill="#fff"/><line x1="0" y1="0" x2="0" y2="6" stroke="#bbb" stroke-width="2"/>',
        "</pattern></defs>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{_MARGIN}" y="20" font-size="11" font-weight="bold">{device}</text>',
        f'<text x="{_MARGIN}" y="38" font-size="11" fill="#555">{facts}</text>',
    ]


def _drawn(layout: DeviceLayout, box: _Box, lanes: list[int]) -> list[str]:
    """Draw one stick whose elements are in ``lanes``."""
    ends = [layout.host_index((*box.stick, lane)) for lane in (*lanes[:1], *lanes[-1:])]
    inside = [index for index in ends if index is not None]
    place = f'x="{box.x}" y="{box.y}" height="{_HEIGHT}"'
    title = "padding" if not inside else f"elements {list(inside[0])} to {list(inside[-1])}"
    lines = [f"<g><title>stick {list(box.stick)}: {title}</title>"]
    lines.append(f'<rect {place} width="{_WIDTH}" fill="url(#padding)"/>')
    if inside:
        # Elements fill a stick from its first lane on in every layout that this draws finely enough to see.
        used = _WIDTH * len(lanes) / layout.elements_per_stick
        lines.append(f'<rect {place} width="{used:g}" fill="{_colour(layout, inside[0])}"/>')
        text = ",".join(map(str, inside[0]))
        lines.append(f'<text x="{box.x + 4}" y="{box.y + 15}" font-size="10" fill="#222">{text}</text>')
    lines.append(f'<rect {place} width="{_WIDTH}" fill="none" stroke="#444"/></g>')
    if box.label is not None:
        lines.append(
            f'<text x="{_MARGIN + _LABEL - 8}" y="{box.y + 15}" font-size="10" fill="#555" '
            f'text-anchor="end">{box.label}</text>'
        )
    return lines


def _colour(layout: DeviceLayout, index: tuple[int, ...]) -> str:
    row = 0
    for at, size in zip(index[:-1], layout.host_shape[:-1], strict=False):
        row = row * size + at
    return _COLOURS[row % len(_COLOURS)]
