"""A layout as notebooks show it: facts, its dims, and a drawing of its first and last sticks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic
from spyrec.hardware.target import STICK_BYTES
from spyrec.layout.tiling import HostTensor, analyse
from spyrec.notebook import facts, page, paragraph, table, text

if TYPE_CHECKING:
    from spyrec.layout.device_layout import DeviceLayout

_END_STICKS = 16
"""Sticks that are drawn from either end of a tensor: padding lies at the last ones."""

_COLUMNS, _WIDTH, _HEIGHT, _GAP = 8, 64, 14, 4

_NOTES = {0: "replicated", -1: "no host counterpart"}


def layout_html(layout: DeviceLayout, host: HostTensor | None) -> str:
    """Return a layout as HTML; ``host``: the tensor that it holds, ``None`` where the layout does not say which.

    Facts are those of ``spyrec inspect-layout``; sizes in bytes, extents and steps in elements.
    """
    sticks = math.prod(layout.device_size[:-1])
    known: list[tuple[str, object]] = [] if host is None else [
        ("host shape", list(host.shape)),
        ("host strides", list(host.strides)),
    ]  # fmt: skip
    shown = facts(
        [
            *known,
            ("device_size", list(layout.device_size)),
            ("stride_map", list(layout.stride_map)),
            ("device_dtype", layout.device_dtype.name),
            ("memory", f"{sticks * STICK_BYTES:,} bytes in {sticks:,} sticks of {layout.elements_per_stick} elements"),
            ("padding", None if host is None else f"{100 * layout.padding_fraction:.1f} %"),
        ]
    )
    return page("DeviceLayout", "", shown, _dims(layout), _drawing(layout, host))


def _dims(layout: DeviceLayout) -> str:
    last = len(layout.device_size) - 1
    steps = zip(layout.device_size, layout.device_strides(), layout.stride_map, strict=True)
    rows = [
        (dim, extent, device_step, host_step, "stick" if dim == last else _NOTES.get(host_step, ""))
        for dim, (extent, device_step, host_step) in enumerate(steps)
    ]
    return table("device dims, outermost first", ("dim", "extent", "device step", "host step", ""), rows, range(4))


@dataclass(frozen=True, slots=True)
class _Stick:
    """One stick: its device index, by lane whether an element lies there, and the host indices of the lanes."""

    index: tuple[int, ...]
    is_element: npt.NDArray[np.bool_]
    elements: npt.NDArray[np.int64]

    @property
    def label(self) -> str:
        """What it holds, in words."""
        inside = self.elements[self.is_element]
        ends = "padding" if not len(inside) else f"elements {inside[0].tolist()} to {inside[-1].tolist()}"
        return f"stick {list(self.index)}: {ends}"


def _drawing(layout: DeviceLayout, host: HostTensor | None) -> str:
    count = math.prod(layout.device_size[:-1])
    if not count or host is None or isinstance(analyse(host, layout.device_size, layout.stride_map), Diagnostic):
        return ""
    has_gap = count > 2 * _END_STICKS
    numbers = [*range(_END_STICKS), *range(count - _END_STICKS, count)] if has_gap else list(range(count))
    sticks = list(_sticks(layout, numbers))
    parts = [sticks[:_END_STICKS], sticks[_END_STICKS:]] if has_gap else [sticks]
    which = f"the first and last {_END_STICKS} of {count:,}" if has_gap else f"all {count:,}"
    caption = f"sticks in memory order, {which}: filled where elements lie, empty where padding is"
    return paragraph(caption) + "".join(_svg(part) for part in parts)


def _sticks(layout: DeviceLayout, numbers: Sequence[int]) -> Iterator[_Stick]:
    lanes = layout.elements_per_stick
    offsets = (np.array(numbers, np.int64)[:, None] * lanes + np.arange(lanes, dtype=np.int64)).reshape(-1)
    indices, is_element = layout.host_indices(offsets)
    for place, number in enumerate(numbers):
        own = slice(place * lanes, (place + 1) * lanes)
        index: list[int] = []
        rest = number
        for extent in reversed(layout.device_size[:-1]):
            rest, at = divmod(rest, extent)
            index.append(at)
        yield _Stick(tuple(reversed(index)), is_element[own], indices[own])


def _svg(sticks: Sequence[_Stick]) -> str:
    """Draw sticks in rows of eight; colours are the page's."""
    width = min(len(sticks), _COLUMNS) * (_WIDTH + _GAP) + _GAP
    height = -(-len(sticks) // _COLUMNS) * (_HEIGHT + _GAP) + _GAP
    drawn = "".join(_box(number, stick) for number, stick in enumerate(sticks))
    label = text(f"{sticks[0].label}; {sticks[-1].label}")
    return f'<svg role="img" aria-label="{label}" width="{width}" height="{height}" fill="currentColor">{drawn}</svg>'


def _box(number: int, stick: _Stick) -> str:
    row, column = divmod(number, _COLUMNS)
    x, y = _GAP + column * (_WIDTH + _GAP), _GAP + row * (_HEIGHT + _GAP)
    # elements fill a stick from its first lane on: its dim is one, and lanes beyond the end of that are padding
    used = _WIDTH * float(stick.is_element.mean())
    filled = f'<rect x="{x}" y="{y}" width="{used:g}" height="{_HEIGHT}" fill-opacity="0.4"/>' if used else ""
    outline = f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="currentColor"/>'
    return f"<g><title>{text(stick.label)}</title>{filled}{outline}</g>"
