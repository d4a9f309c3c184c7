"""Tiled launches on two streams over windows of one tensor: a race where the windows meet, none where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from spyrec.bundle.bundle import Bundle
from spyrec.runtime.errors import RaceFound, UninitialisedRead
from spyrec.runtime.jobs.tile_blocks import launch_tensors
from spyrec.runtime.launch.explain import explain_launch
from spyrec.runtime.launch.plan import Mode
from spyrec.runtime.launch.tile_plan import TilePlan
from spyrec.runtime.memory.windows import covering, sticks_of
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.launch_argument import LaunchArgument
from tests.support.launch_windows import BLOCKS, BUNDLES, ROOM_BYTES, ROWS, Scene, watched

CASES = [
    # rows from row 0 to 128, and from these on; sticks 0 and 1 of every row, and from these on
    (True, 128, False),
    (True, 127, True),
    (True, 64, True),
    (False, 2, False),
    (False, 1, True),
]


@pytest.mark.parametrize("mode", BUNDLES)
@pytest.mark.parametrize(("is_rows", "first", "is_race"), CASES)
def test_two_launches_race_where_the_windows_that_they_write_meet(
    mode: Mode, is_rows: bool, first: int, is_race: bool
) -> None:
    with watched() as device:
        scene = Scene.on(device, BUNDLES[mode])
        one, two = scene.arguments(is_rows=is_rows, first=0), scene.arguments(is_rows=is_rows, first=first)
        modes = [item.mode for item in explained(BUNDLES[mode], two).body.arguments]
        assert modes == [mode, Mode.FIXED, mode]
        assert overlaps(device, one[2], two[2]), "the ranges around the windows are apart"
        streams = device.stream(), device.stream()
        for stream, arguments in zip(streams, (one, two), strict=True):
            scene.launch(stream, arguments)
        findings = device.findings
        assert bool(findings) is is_race
        for finding in findings:
            assert isinstance(finding, RaceFound)
            assert finding.message.startswith("write after write without order in chunks of")
            launches = {note.partition(" of launch ")[2].partition(" of ")[0] for note in finding.notes[:2]}
            assert len(launches) == 2
            for stream, note in zip(streams, finding.notes, strict=False):
                assert f"on stream {stream.id}, enqueued at" in note


@pytest.mark.parametrize("mode", BUNDLES)
@pytest.mark.parametrize(("is_rows", "first", "is_race"), CASES)
def test_a_launch_races_with_the_launch_whose_window_it_reads(
    mode: Mode, is_rows: bool, first: int, is_race: bool
) -> None:
    with watched() as device:
        scene = Scene.on(device, BUNDLES[mode])
        scene.launch(device.stream(), scene.arguments(is_rows=is_rows, first=0))
        scene.launch(device.stream(), scene.arguments(is_rows=is_rows, first=first, read=1))
        hazards = {finding.message.partition(" without")[0] for finding in device.findings}
        assert bool(hazards) is is_race
        assert hazards <= {"read after write", "write after read"}


@pytest.mark.parametrize("mode", BUNDLES)
def test_windows_that_meet_are_no_race_behind_an_event(mode: Mode) -> None:
    with watched() as device:
        scene, one, two = Scene.on(device, BUNDLES[mode]), device.stream(), device.stream()
        scene.launch(one, scene.arguments(is_rows=False, first=0))
        two.wait_event(one.record_event())
        scene.launch(two, scene.arguments(is_rows=False, first=1))
        assert device.findings == ()


@pytest.mark.parametrize("mode", BUNDLES)
@pytest.mark.parametrize("is_rows", [True, False])
def test_what_a_launch_changes_is_what_its_blocks_declare_to_write(mode: Mode, is_rows: bool) -> None:
    with watched() as device:
        scene = Scene.on(device, BUNDLES[mode])
        given, result = (device.allocator.part(item.index) for item in scene.memory)
        device.default_stream.flex.copy_h2d(np.full(ROOM_BYTES, 0x3C, np.uint8), given)
        blocks = scene.launch(device.default_stream, scene.arguments(is_rows=is_rows, first=3))
        device.synchronize()
        region_id, start = result.range.address
        bytes_per_stick = device.backend.view(result.range).size * 128 // ROOM_BYTES
        changed = device.backend.view(result.range).reshape(-1, bytes_per_stick).any(axis=1)
        declared = np.zeros(changed.size, np.bool_)
        for item in (item for block in blocks for item in block.footprint.writes):
            if covering(item).address.region_id == region_id and result.range.contains(covering(item)):
                for sticks in sticks_of(item):
                    places = np.arange(sticks.run)
                    for loop in sticks.loops:
                        places = np.add.outer(places, np.arange(loop.rounds) * loop.stride)
                    declared[places + sticks.first - start // 128] = True
        assert changed.sum() == (ROWS if is_rows else 2 * ROWS)
        np.testing.assert_array_equal(changed, declared)


@pytest.mark.parametrize("mode", BUNDLES)
@pytest.mark.parametrize("is_rows", [True, False])
def test_a_window_that_was_written_leaves_what_lies_between_unwritten(mode: Mode, is_rows: bool) -> None:
    half = 128 if is_rows else 2
    with watched("init") as device:
        scene = Scene.on(device, BUNDLES[mode])
        fresh = device.spyre_allocator.allocate(ROOM_BYTES)
        scene.memory[1] = fresh
        stream = device.default_stream
        scene.launch(stream, scene.arguments(is_rows=is_rows, first=0))
        scene.launch(stream, scene.arguments(is_rows=is_rows, first=0, read=1))
        device.synchronize()
        assert device.findings == ()
        scene.launch(stream, scene.arguments(is_rows=is_rows, first=half, read=1))
        device.synchronize()
        first_stick = device.allocator.range_of(fresh.index).address.offset // 128 + half
        assert {type(finding) for finding in device.findings} == {UninitialisedRead}
        assert f"byte {128 * first_stick} of region 0 is read before" in device.findings[0].message
        before = len(device.findings)
        scene.launch(stream, scene.arguments(is_rows=is_rows, first=half))
        scene.launch(stream, scene.arguments(is_rows=is_rows, first=half // 2, read=1))
        device.synchronize()
        assert len(device.findings) == before


def explained(bundle: Bundle, arguments: list[LaunchArgument]) -> TilePlan:
    return explain_launch(bundle.manifest.tile_contracts["."], launch_tensors(arguments))


def overlaps(device: SpyreDevice, one: LaunchArgument, two: LaunchArgument) -> bool:
    """Whether the ranges of two windows do."""
    used = 128 * (ROWS + ROWS // 2), 128 * (ROWS - 1) * BLOCKS
    places = [
        device.allocator.part(item.allocation_index, item.storage_offset_bytes, min(used)).range for item in (one, two)
    ]
    return places[0].overlaps(places[1])
