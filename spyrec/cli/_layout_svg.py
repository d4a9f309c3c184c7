"""A picture of a layout as the tiled-tensor RFC draws it: rows coloured, sticks boxed, padding hatched."""

from __future__ import annotations

import math
from itertools import product

from spyrec.diagnostics import refuse
from spyrec.layout import DeviceLayout

_MOST_STICKS = 4096
_COLUMNS = 16
_WIDTH, _HEIGHT, _GAP, _MARGIN = 96, 22, 4, 12
_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")


def draw(layout: DeviceLayout) -> str:
    """Return an SVG of all sticks in memory order, left to right and down; errors SPY0319 beyond 4096 sticks.

    A stick has the colour of the host row (all dims but the last) of its first element.
    """
    count = math.prod(layout.device_size[:-1])
    if count > _MOST_STICKS:
        raise refuse(
            "SPY0319", f"{count} sticks are too many for a picture", hint=f"draw at most {_MOST_STICKS} sticks"
        )
    columns = min(_COLUMNS, max(1, count))
    width = 2 * _MARGIN + columns * (_WIDTH + _GAP)
    height = 2 * _MARGIN + 20 + -(-count // columns) * (_HEIGHT + _GAP)
    return "\n".join([*_head(width, height, str(layout)), *_boxes(layout, columns), "</svg>", ""])


def _head(width: int, height: int, title: str) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="monospace">',
        '<defs><pattern id="padding" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">',
        '<rect width="6" height="6" fill="#fff"/><line x1="0" y1="0" x2="0" y2="6" stroke="#999" stroke-width="2"/>',
        "</pattern></defs>",
        f'<text x="{_MARGIN}" y="{_MARGIN + 8}" font-size="11">{title}</text>',
    ]


def _boxes(layout: DeviceLayout, columns: int) -> list[str]:
    mask = layout.valid_lane_mask()
    lines: list[str] = []
    for number, stick in enumerate(product(*(range(extent) for extent in layout.device_size[:-1]))):
        x = _MARGIN + number % columns * (_WIDTH + _GAP)
        y = _MARGIN + 20 + number // columns * (_HEIGHT + _GAP)
        box = f'x="{x}" y="{y}" height="{_HEIGHT}"'
        lines.append(f"<g><title>{_title(layout, stick)}</title>")
        lines.append(f'<rect {box} width="{_WIDTH}" fill="url(#padding)"/>')
        # Elements fill a stick from its first lane on in every layout that this draws finely enough to see.
        used = _WIDTH * int(mask[stick].sum()) / layout.elements_per_stick
        if used:
            lines.append(f'<rect {box} width="{used:g}" fill="{_colour(layout, stick)}"/>')
        lines.append(f'<rect {box} width="{_WIDTH}" fill="none" stroke="#333"/></g>')
    return lines


def _title(layout: DeviceLayout, stick: tuple[int, ...]) -> str:
    first = layout.host_index((*stick, 0))
    return f"stick {list(stick)}: " + ("padding" if first is None else f"from element {list(first)}")


def _colour(layout: DeviceLayout, stick: tuple[int, ...]) -> str:
    first = layout.host_index((*stick, 0)) or (0,)
    row = 0
    for at, size in zip(first[:-1], layout.host_shape[:-1], strict=False):
        row = row * size + at
    return _COLOURS[row % len(_COLOURS)]
