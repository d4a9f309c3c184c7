"""The tile-offset rule against brute force over random layouts, and the seeds' formula against both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np

from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.launch.address_levels import address_runs, run_of
from spyrec.runtime.launch.offset_rule import AxisCut, AxisSteps, Obstacle, axis_steps, start_bytes
from tests.support.split_layouts import Places, random_split

LAYOUTS = 3000


@dataclass(frozen=True, slots=True)
class Case:
    """One host dim of one layout cut into tiles, with the place in bytes of every element."""

    layout: DeviceLayout
    places: Places
    cut: AxisCut

    @property
    def rule(self) -> AxisSteps | Obstacle:
        return axis_steps(address_runs(self.layout), self.cut)

    def true_offset(self, start: int, extent: int) -> int | None:
        """The one distance, if there is one, of all elements of a tile from those of tile 0, in whole sticks."""
        along = np.moveaxis(self.places, self.cut.dim, 0)
        return whole_sticks((along[start : start + extent] - along[:extent]).reshape(1, -1))[0]

    @property
    def true_offsets(self) -> list[int | None]:
        """The same of every tile of the cut."""
        along = np.moveaxis(self.places, self.cut.dim, 0)[: self.cut.end]
        tiles = along.reshape(self.cut.trips, -1)
        return whole_sticks(tiles - tiles[:1])


def whole_sticks(distances: Places) -> list[int | None]:
    """Return per row its one value, ``None`` where it has several or is no multiple of a stick."""
    least, most = distances.min(axis=1), distances.max(axis=1)
    is_base = (least == most) & (least % 128 == 0)
    return [value if good else None for value, good in zip(least.tolist(), is_base.tolist(), strict=True)]


@cache
def cases() -> tuple[Case, ...]:
    random = Random(20261122)
    found: list[Case] = []
    for _ in range(LAYOUTS):
        split = random_split(random)
        dim = random.randrange(len(split.layout.host_shape))
        extent = split.layout.host_shape[dim]
        divisors = [tile for tile in range(1, extent) if extent % tile == 0]
        tiles = random.sample(divisors, min(2, len(divisors)))
        found += [Case(split.layout, split.places, AxisCut(dim, tile, extent // tile, extent)) for tile in tiles]
    return tuple(found)


def test_the_generated_layouts_agree_with_the_layout_class() -> None:
    random = Random(7)
    for _ in range(300):
        split = random_split(random)
        index = tuple(random.randrange(extent) for extent in split.layout.host_shape)
        assert split.layout.byte_address(index) == split.places[index]


def test_every_offset_of_the_rule_is_the_distance_of_every_element() -> None:
    accepted = [case for case in cases() if isinstance(case.rule, AxisSteps)]
    assert len(accepted) > 2000
    for case in accepted:
        rule = case.rule
        assert isinstance(rule, AxisSteps)
        assert [rule.offset_bytes(tile) for tile in range(case.cut.trips)] == case.true_offsets, case


def test_what_the_rule_refuses_has_a_tile_that_no_base_reaches() -> None:
    refused = [case for case in cases() if isinstance(case.rule, Obstacle)]
    assert len(refused) > 500
    for case in refused:
        assert None in case.true_offsets, case


def test_the_rule_needs_one_loop_two_and_more() -> None:
    loops = {len(case.rule.levels) for case in cases() if isinstance(case.rule, AxisSteps)}
    assert {1, 2, 3} <= loops


def test_the_seeds_formula_fails_where_the_rule_holds() -> None:
    """``base + i * stride * tile_size * element_size`` of both seeds, strides read as elements, then as bytes."""
    accepted = [case for case in cases() if isinstance(case.rule, AxisSteps) and case.cut.trips > 1]
    for stride_bytes in (1, 4):
        wrong = 0
        for case in accepted:
            stride = case.layout.host_strides[case.cut.dim] * stride_bytes
            literal = [tile * stride * case.cut.tile * 4 for tile in range(case.cut.trips)]
            wrong += literal != case.true_offsets
        assert wrong > len(accepted) // 2


def test_a_start_out_of_step_is_accepted_exactly_where_its_tile_lies_as_the_first_one() -> None:
    random = Random(3)
    outcomes: list[bool] = []
    for case in cases():
        extent, runs = case.layout.host_shape[case.cut.dim], address_runs(case.layout)
        tile = random.randint(1, extent - 1)
        found = start_bytes(runs, case.cut.dim, extent - tile, tile)
        truth = case.true_offset(extent - tile, tile)
        assert (None if isinstance(found, Obstacle) else found) == truth, (case, tile)
        outcomes.append(truth is not None)
    assert min(sum(outcomes), len(outcomes) - sum(outcomes)) > 500


def test_tiles_that_do_not_divide_the_dim_keep_the_rule_for_all_whole_tiles() -> None:
    random = Random(4)
    for case in cases():
        extent = case.layout.host_shape[case.cut.dim]
        tile = random.randint(1, extent - 1)
        trips = extent // tile
        uneven = Case(case.layout, case.places, AxisCut(case.cut.dim, tile, trips, trips * tile))
        rule = uneven.rule
        if isinstance(rule, Obstacle):
            assert None in uneven.true_offsets, uneven
        else:
            assert [rule.offset_bytes(number) for number in range(trips)] == uneven.true_offsets, uneven


def test_dims_that_share_device_dims_are_stepped_soundly() -> None:
    """40 rows of 60 in sticks of 64 elements: whole sticks are 16 rows; inside a row nothing is."""
    layout = DeviceLayout((38, 64), (64, 1), "SEN169_FP16", (40, 60))
    places = np.arange(2400, dtype=np.int64).reshape(40, 60) * 2
    runs = address_runs(layout)
    run = run_of(runs, 0)
    assert run is not None
    assert run is run_of(runs, 1)
    for dim, extent in enumerate((40, 60)):
        for tile in range(1, extent):
            case = Case(layout, places, AxisCut(dim, tile, extent // tile, extent // tile * tile))
            rule = case.rule
            if isinstance(rule, AxisSteps):
                assert [rule.offset_bytes(number) for number in range(case.cut.trips)] == case.true_offsets
    assert axis_steps(runs, AxisCut(0, 16, 2, 32)) != Obstacle.INSIDE_STICK
    assert axis_steps(runs, AxisCut(0, 8, 5, 40)) == Obstacle.INSIDE_STICK


def test_a_dim_whose_rows_share_blocks_with_the_next_row_is_stepped_soundly() -> None:
    """4 rows of 12 in blocks of 8: row 1 begins in the middle of a block."""
    layout = DeviceLayout((8, 6, 64), (1, 8, -1), "SEN169_FP16", (4, 12))
    position = np.arange(48, dtype=np.int64).reshape(4, 12)
    places = (position % 8 * 6 + position // 8) * 128
    for dim, extent in enumerate((4, 12)):
        for tile in (size for size in range(1, extent) if extent % size == 0):
            case = Case(layout, places, AxisCut(dim, tile, extent // tile, extent))
            rule = case.rule
            if isinstance(rule, Obstacle):
                assert None in case.true_offsets
            else:
                assert [rule.offset_bytes(number) for number in range(case.cut.trips)] == case.true_offsets
    assert axis_steps(address_runs(layout), AxisCut(1, 4, 3, 12)) is Obstacle.FOLDED
