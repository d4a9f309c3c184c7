"""Staging copies against brute force: every element of a tile lands where the tile's own layout has it."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np

from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.launch.offset_rule import Obstacle
from spyrec.runtime.launch.plan import StageCopy
from spyrec.runtime.launch.stage_copies import stage_copies
from tests.support.split_layouts import SplitLayout, random_split


def sticks_moved(copies: tuple[StageCopy, ...]) -> dict[int, int]:
    """By byte offset of a stick in the tile, the byte offset in the tensor that it comes from."""
    moved: dict[int, int] = {}
    for copy in copies:
        assert min((*copy.parent_strides, *copy.scratch_strides), default=0) >= 0, "copies on the device walk forward"
        for index in product(*(range(size) for size in copy.sizes)):
            parent = copy.parent_bytes + sum(at * by for at, by in zip(index, copy.parent_strides, strict=True))
            scratch = copy.scratch_bytes + sum(at * by for at, by in zip(index, copy.scratch_strides, strict=True))
            for stick in range(0, copy.chunk_bytes, 128):
                assert scratch + stick not in moved
                moved[scratch + stick] = parent + stick
    return moved


def expected(parent: SplitLayout, tile: SplitLayout, starts: tuple[int, ...]) -> dict[int, int] | None:
    """The same from the places of all elements; ``None`` where a stick of the tile is none of the tensor's."""
    window = parent.places[tuple(slice(at, at + size) for at, size in zip(starts, tile.places.shape, strict=True))]
    if (window % 128 != tile.places % 128).any():
        return None
    pairs = np.unique(np.stack([tile.places // 128, window // 128]).reshape(2, -1), axis=1)
    if len(np.unique(pairs[0])) != pairs.shape[1]:
        return None
    return {int(scratch) * 128: int(origin) * 128 for scratch, origin in pairs.T}


def random_pairs() -> list[tuple[SplitLayout, SplitLayout, tuple[int, ...]]]:
    random = Random(11)
    layouts = [random_split(random) for _ in range(1200)]
    found: list[tuple[SplitLayout, SplitLayout, tuple[int, ...]]] = []
    for parent in layouts:
        for tile in random.sample(layouts, 40):
            shape, small = parent.places.shape, tile.places.shape
            if len(shape) == len(small) and all(a >= b for a, b in zip(shape, small, strict=True)) and shape != small:
                starts = tuple(random.randrange(a // b) * b for a, b in zip(shape, small, strict=True))
                found.append((parent, tile, starts))
                break
    return found


def test_copies_move_exactly_the_sticks_of_the_tile() -> None:
    staged = 0
    for parent, tile, starts in random_pairs():
        copies = stage_copies(0, (parent.layout, tile.layout), starts, 0)
        truth = expected(parent, tile, starts)
        if isinstance(copies, Obstacle):
            # A tile inside one stick could be reached where both have it at the same lanes: not told apart.
            continue
        staged += 1
        assert sticks_moved(copies) == truth, (parent.layout, tile.layout, starts)
    assert staged > 200


def test_refusals_are_of_tiles_whose_sticks_differ() -> None:
    for parent, tile, starts in random_pairs():
        copies = stage_copies(0, (parent.layout, tile.layout), starts, 0)
        if isinstance(copies, Obstacle) and min(tile.places.shape) > 1:
            assert expected(parent, tile, starts) is None, (parent.layout, tile.layout, starts)


def test_rows_of_the_default_layout_are_one_strided_copy() -> None:
    parent, tile = (DeviceLayout.default(shape, "float16") for shape in ((4096, 1024), (1024, 1024)))
    copies = stage_copies(3, (parent, tile), (2048, 0), 256)
    assert copies == (StageCopy(3, 256 + 2048 * 128, 0, 1024 * 128, (16,), (4096 * 128,), (1024 * 128,)),)
