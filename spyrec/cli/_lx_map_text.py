"""The map of the scratchpads as text and as JSON: time runs down, addresses to the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from string import ascii_uppercase

from spyrec.cli._fitted import columns, table_lines
from spyrec.compare.lx_map import LxMap, LxRegion
from spyrec.hardware.target import STICK_BYTES

_CELLS = 64
_LABEL = 30
"""Columns beside a picture: the file and the function of an operation, marks of loops."""

_FREE = "."


def draw_text(found: LxMap) -> list[str]:
    """Return the picture of one map, and below it a line for every tensor.

    A row is an operation; a tensor's letter is large where the operation reads or writes it, small where it waits.
    """
    width = columns()
    most = _CELLS if width is None else min(_CELLS, width - _LABEL)
    cell_bytes = max(STICK_BYTES, -(-found.peak_bytes // most // STICK_BYTES) * STICK_BYTES)
    cells = -(-found.peak_bytes // cell_bytes)
    share = 100 * found.peak_bytes / found.usable_bytes if found.usable_bytes else 0.0
    where = f"program {found.program}, {_cores(found.cores)}"
    used = f"{found.peak_bytes:,} of {found.usable_bytes:,} usable bytes of each core ({share:.1f} %)"
    lines = [f"{where}: {used}; a column is {cell_bytes:,} bytes"]
    rows = list(_rows(found, cell_bytes, cells))
    width = max(len(label) for label, picture in rows if picture)
    lines += [f"  {label.ljust(width)}  {picture}".rstrip() for label, picture in rows]
    return [*lines, *_legend(found)]


def letter(place: int) -> str:
    """Return the letter of a region by its number; they come round after Z."""
    return ascii_uppercase[place % len(ascii_uppercase)]


def _rows(found: LxMap, cell_bytes: int, cells: int) -> Iterator[tuple[str, str]]:
    skipped = 0
    for place, step in enumerate(found.steps):
        loops = [loop for loop in found.loops if loop.first == place <= loop.last]
        living = [(number, item) for number, item in enumerate(found.regions) if item.begin <= place <= item.end]
        if skipped and (loops or living):
            yield _skipped(skipped), ""
            skipped = 0
        for loop in loops:
            rounds = "as many rounds as a run needs" if loop.rounds is None else f"{loop.rounds} rounds"
            yield f"{'  ' * loop.depth}loop {loop.name}, {rounds}", ""
        if living:
            picture = "".join(_cell(living, cell * cell_bytes, cell_bytes, place) for cell in range(cells))
            yield f"{'  ' * step.depth}{step.file} {step.op}", f"|{picture}|"
        else:
            skipped += 1
    if skipped:
        yield _skipped(skipped), ""


def _skipped(count: int) -> str:
    return f"{count} operation{'s'[: count != 1]} without LX"


def _cell(living: Sequence[tuple[int, LxRegion]], first: int, size: int, place: int) -> str:
    """Return the letter of what lies in most of a column's bytes."""

    def shared(region: LxRegion) -> int:
        return max(0, min(region.past, first + size) - max(region.first, first))

    # where an operation stores over the operand it reads, the new tensor is shown
    number, region = max(living, key=lambda item: (shared(item[1]), item[0]))
    if not shared(region):
        return _FREE
    return letter(number) if place in region.uses else letter(number).lower()


def _legend(found: LxMap) -> list[str]:
    rows = [
        (
            letter(number),
            f"[{item.first:,}, {item.past:,})",
            f"{found.steps[item.begin].file} to {found.steps[item.end].file}",
            item.name,
        )
        for number, item in enumerate(found.regions)
    ]
    return table_lines(rows, indent="  ")


def _cores(cores: Sequence[int]) -> str:
    """Return cores as ranges: ``cores 0-29, 31``."""
    spans: list[list[int]] = []
    for core in cores:
        if spans and core == spans[-1][1] + 1:
            spans[-1][1] = core
        else:
            spans.append([core, core])
    shown = ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in spans)
    return f"core{'s'[: len(cores) != 1]} {shown}"


def to_json(maps: Sequence[LxMap]) -> list[dict[str, object]]:
    """Return the maps as JSON objects: every operation, loop and region; places count operations from 0."""
    return [asdict(found) for found in maps]
