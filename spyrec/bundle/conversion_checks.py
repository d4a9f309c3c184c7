"""What a bundle's layouts and conversion tables mean: a table is the copy between both sides of its argument.

Hashes say that files are as they were written; these rules say that what was written is right, and hold without them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spyrec.bundle.manifest import Argument, Manifest
from spyrec.bundle.tile_contract import argument_layout
from spyrec.diagnostics import DiagnosticSink, Location, SpyrecError
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.layout.conversion_table import CopyNest, DataConversionInfo
from spyrec.layout.device_layout import DeviceLayout

OTHER_COPY = "SPY0659"
"""Code of a conversion table that copies otherwise than between its argument's host tensor and device layout."""

NO_LAYOUT = "SPY0660"
"""Code of an argument whose device layout does not hold its host tensor."""

MOST_ELEMENTS_COMPARED = 1 << 20
"""Elements of a table whose nests are cut in another way that are compared one by one."""

_KEYS = ("size_", "stride_src_", "stride_dst_", "offset_src_", "offset_dst_")


def check_layouts(manifest: Manifest, where: Location, sink: DiagnosticSink) -> Mapping[str, DeviceLayout]:
    """Return the layouts of the arguments with a host form, by name; errors SPY0660 for those that are none."""
    layouts: dict[str, DeviceLayout] = {}
    for index, item in enumerate(manifest.arguments):
        if item.shape is None or item.stride_map is None or item.dtype is None:
            continue
        place = where.child("arguments", index)
        try:
            layout = argument_layout(item)
        except SpyrecError as error:
            sink.error(NO_LAYOUT, f'argument "{item.name}": {error.diagnostics[0].message}', place)
            continue
        if _has_strides(layout, item):
            layouts[item.name] = layout
        else:
            strides = list(item.host_strides or ())
            fact = f'argument "{item.name}" has host strides {strides}, its layout holds {list(layout.host_strides)}'
            sink.error(NO_LAYOUT, fact, place.child("host_strides"))
    return layouts


def _has_strides(layout: DeviceLayout, item: Argument) -> bool:
    """Whether the host tensor that a layout holds has the strides that the argument names; dims of 1 have none."""
    assert item.shape is not None
    assert item.stride_map is not None
    if item.host_strides is None:
        return True
    # a layout would hold the one element of an expanded dim without a dim that repeats it
    is_one = any(extent > 1 and stride == 0 for extent, stride in zip(item.shape, item.host_strides, strict=True))
    is_repeated = any(extent > 1 and step == 0 for extent, step in zip(item.device_size, item.stride_map, strict=True))
    return (is_repeated or not is_one) and all(
        extent == 1 or mine == theirs
        for extent, mine, theirs in zip(item.shape, item.host_strides, layout.host_strides, strict=True)
    )


def check_copy(
    item: Argument, layout: DeviceLayout, table: DataConversionInfo, place: Location, sink: DiagnosticSink
) -> None:
    """Hold a table, read at ``place``, against the copy that its argument needs; errors SPY0659."""
    way = table.direction.value
    try:
        wanted = layout.dci(way)
    except SpyrecError as error:
        fact = f'argument "{item.name}" has no {way} copy: {error.diagnostics[0].message}'
        sink.error(OTHER_COPY, fact, place)
        return
    for key in ("source_format", "destination_format", "input_shape", "output_shape"):
        found, due = getattr(table, key), getattr(wanted, key)
        if found != due:
            fact = f'the {way} table of "{item.name}" has {key.replace("_", " ")} {_shown(found)}, due is {_shown(due)}'
            sink.error(OTHER_COPY, fact, place)
            return
    if not _copy_alike(table.nests, wanted.nests):
        path, fact = _first_difference(table.nests, wanted.nests)
        sink.error(OTHER_COPY, f'the {way} table of "{item.name}" {fact}', place.child("dcsi_", *path))


def _shown(value: object) -> str:
    return value.name if isinstance(value, DeviceFormat) else str(value)


def _copy_alike(found: Sequence[CopyNest], wanted: Sequence[CopyNest]) -> bool:
    """Whether nests copy the same elements to the same places; where they are few, however the nests are cut."""
    if sorted(map(_plain, found)) == sorted(map(_plain, wanted)):
        return True
    counts = [sum(math.prod(nest.sizes) for nest in nests) for nests in (found, wanted)]
    if counts[0] != counts[1] or counts[0] > MOST_ELEMENTS_COMPARED:
        return False
    return np.array_equal(_pairs(found), _pairs(wanted))


def _plain(nest: CopyNest) -> tuple[int, int, tuple[tuple[int, int, int], ...]]:
    """Return a nest without loops of one round, its loops in one order, those that go on from one another fused."""
    loops = [
        loop for loop in zip(nest.destination_strides, nest.source_strides, nest.sizes, strict=True) if loop[2] > 1
    ]
    fused: list[tuple[int, int, int]] = []
    for to, start, size in sorted(loops):
        if fused and (to, start) == (fused[-1][0] * fused[-1][2], fused[-1][1] * fused[-1][2]):
            fused[-1] = (*fused[-1][:2], fused[-1][2] * size)
        else:
            fused.append((to, start, size))
    return nest.destination_offset, nest.source_offset, tuple(fused)


def _pairs(nests: Sequence[CopyNest]) -> npt.NDArray[np.int64]:
    """Return (destination, source) of every element that is copied, sorted."""
    sides = [
        np.stack(
            [
                _positions(nest.destination_offset, nest.sizes, nest.destination_strides),
                _positions(nest.source_offset, nest.sizes, nest.source_strides),
            ]
        )
        for nest in nests
    ]
    both = np.concatenate(sides, axis=1)
    return both[:, np.lexsort(both[::-1])]


def _positions(offset: int, sizes: Sequence[int], strides: Sequence[int]) -> npt.NDArray[np.int64]:
    found = np.full(1, offset, np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        found = (found[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
    return found


def _first_difference(found: Sequence[CopyNest], wanted: Sequence[CopyNest]) -> tuple[tuple[str | int, ...], str]:
    """Return the place of the first number that is not the one due, and what to say of it."""
    if len(found) != len(wanted):
        return (), f"has {len(found)} nests, due are {len(wanted)}"
    for index, (mine, due) in enumerate(zip(found, wanted, strict=True)):
        ours, theirs = mine.to_json(), due.to_json()
        for key in _KEYS:
            if ours[key] != theirs[key]:
                return (index, key), f"has {key} {ours[key]}, due is {theirs[key]}"
    raise AssertionError("equal nests copy alike")
