"""Captured launches over windows of one tensor keep their windows, also where a port moves them."""

from __future__ import annotations

import pytest

from spyrec.exec import capture
from spyrec.exec.relocation import move_of, relocated
from spyrec.runtime.launch.plan import Mode
from spyrec.runtime.memory.windows import AddressWindow, covering
from tests.support.launch_windows import BUNDLES, ROOM_BYTES, Scene, watched


@pytest.mark.parametrize("mode", BUNDLES)
@pytest.mark.parametrize(("first", "is_race"), [(2, False), (1, True)])
def test_replays_race_where_the_windows_of_what_was_captured_meet(mode: Mode, first: int, is_race: bool) -> None:
    with watched() as device:
        scene = Scene.on(device, BUNDLES[mode])
        columns = [scene.arguments(is_rows=False, first=number) for number in (0, first)]
        one = capture(device, lambda stream: scene.launch(stream, columns[0]))
        two = capture(device, lambda stream: scene.launch(stream, columns[1]))
        one.replay(device.stream())
        two.replay(device.stream())
        assert bool(device.findings) is is_race


@pytest.mark.parametrize("mode", BUNDLES)
def test_an_operation_that_is_moved_touches_the_same_window_elsewhere(mode: Mode) -> None:
    with watched() as device:
        scene = Scene.on(device, BUNDLES[mode])
        blocks = scene.launch(device.default_stream, scene.arguments(is_rows=False, first=1))
        elsewhere = device.spyre_allocator.allocate(ROOM_BYTES)
        before, there = (device.allocator.range_of(item.index) for item in (scene.memory[1], elsewhere))
        move, seen = move_of({before: there}), 0
        for block in blocks:
            items = (*block.footprint.reads, *block.footprint.writes)
            after = relocated(block, move).footprint
            for item, other in zip(items, (*after.reads, *after.writes), strict=True):
                assert covering(other) == move(covering(item))
                if isinstance(item, AddressWindow):
                    assert other == item._replace(range=covering(other))
                    seen += covering(other) != item.range
        assert seen > 0
