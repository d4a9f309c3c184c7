"""Plans executed on bytes: whatever shapes, layouts, modes and remainders, the result is that of the whole tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from spyrec.bundle.manifest import Role
from spyrec.bundle.tile_contract import (
    Combine,
    LoopKind,
    ReductionPrograms,
    TileArgument,
    TileContract,
    TileLoop,
    WriteMode,
)
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.launch.explain import explain_launch
from spyrec.runtime.launch.plan import LaunchOptions, LaunchTensor, Mode, Remainder
from spyrec.runtime.launch.tile_major import tile_major_layout
from spyrec.runtime.launch.tile_plan import TilePlan
from tests.support.launch_simulator import Array, Program, Simulator, filled, held
from tests.support.split_layouts import random_split

FP32 = DType.FLOAT32


def executed(
    plan: TilePlan, values: Sequence[Array | None], programs: dict[str, Program], results: Sequence[int]
) -> list[Array]:
    """Run a plan on tensors that hold ``values``; return what the arguments ``results`` hold then."""
    memories = [
        filled(item.layout, value, item.storage_offset_bytes) for item, value in zip(plan.tensors, values, strict=True)
    ]
    Simulator(plan, memories, programs).run()
    return [
        held(plan.tensors[place].layout, memories[place], plan.tensors[place].storage_offset_bytes) for place in results
    ]


def launched(layout: DeviceLayout, allocation: int, base_bytes: int = 0) -> LaunchTensor:
    return LaunchTensor(layout.host_shape, layout.host_strides, FP32, layout, base_bytes, allocation)


def random_copy(random: Random) -> tuple[TileContract, list[LaunchTensor]]:
    """A program ``y = 3 x + 1`` on tiles of random shape and layout, and tensors of other shapes and layouts."""
    rank = random.randint(1, 3)
    outer, inner = [[], [2, 6, 8, 12, 20], [2, 4, 6, 10]][rank - 1], [32, 64, 96, 128]
    sizes = [*[outer] * (rank - 1), inner]
    shape = tuple(random.choice(choices) for choices in sizes)
    smaller = [[1, *(item for item in choices if item <= extent)] for choices, extent in zip(sizes, shape, strict=True)]
    tile = tuple(
        extent if random.random() < 0.4 else random.choice(choices)
        for choices, extent in zip(smaller, shape, strict=True)
    )
    axes = tuple(f"D{dim}" if tile[dim] < shape[dim] else None for dim in range(rank))
    if random.random() < 0.3:
        layouts = [random_split(random, shape).layout for _ in range(2)]
        tiles = [random_split(random, tile).layout for _ in range(2)]
    else:  # alike, as compilers choose them
        layouts = [DeviceLayout.default(shape, FP32)] * 2
        tiles = [DeviceLayout.default(tile, FP32)] * 2
    takes_strides = random.random() < 0.3
    arguments = tuple(
        TileArgument(name, role, FP32, layout, axes, takes_strides=takes_strides)
        for name, role, layout in zip("xy", (Role.INPUT, Role.OUTPUT), tiles, strict=True)
    )
    loops = tuple(TileLoop(f"D{dim}", tile[dim]) for dim in range(rank) if axes[dim] is not None)
    contract = TileContract("copy", loops, arguments, is_pointwise=random.random() < 0.5)
    if random.random() < 0.2:
        wanted = tile_major_layout(arguments[0], shape, [loop.name for loop in loops])
        layouts[0] = wanted or layouts[0]
    return contract, [launched(layout, place, 128 * place) for place, layout in enumerate(layouts)]


def test_tiled_equals_untiled_for_random_shapes_layouts_and_modes() -> None:
    random = Random(5)
    modes: Counter[Mode] = Counter()
    remainders: Counter[Remainder | None] = Counter()
    refused: Counter[str] = Counter()
    for _ in range(900):
        contract, tensors = random_copy(random)
        options = LaunchOptions(reuse_order=random.random() < 0.5)
        try:
            plan = explain_launch(contract, tensors, options)
        except SpyrecError as error:
            refused[error.diagnostics[0].code] += 1
            continue
        modes.update(argument.mode for argument in plan.body.arguments)
        remainders.update(loop.remainder for loop in plan.loops)
        x = np.arange(np.prod(tensors[0].shape), dtype=np.float64).reshape(tensors[0].shape)
        (y,) = executed(plan, [x, None], {"copy": lambda tiles: [3 * tiles[0] + 1]}, [1])
        assert np.array_equal(y, 3 * x + 1), (contract, tensors)
    assert set(modes) == set(Mode)
    assert min(modes.values()) > 20, modes
    assert remainders[Remainder.OVERLAP] > 10
    assert set(refused) <= {"SPY0952", "SPY0959", "SPY0960", "SPY0962"}


@pytest.mark.parametrize("mode", [Mode.STAGED, Mode.STRIDED, Mode.SLAB])
def test_a_matmul_over_rows_and_columns_equals_numpy(mode: Mode) -> None:
    shapes, tiles = ((16, 64), (64, 96), (16, 96)), ((4, 64), (64, 32), (4, 32))
    axes = (("M", None), (None, "N"), ("M", "N"))
    roles = (Role.INPUT, Role.INPUT, Role.OUTPUT)
    arguments = tuple(
        TileArgument(name, role, FP32, DeviceLayout.default(tile, FP32), follow, takes_strides=mode is Mode.STRIDED)
        for name, role, tile, follow in zip("abc", roles, tiles, axes, strict=True)
    )
    contract = TileContract("matmul", (TileLoop("M", 4), TileLoop("N", 32)), arguments)
    layouts: list[DeviceLayout | None] = [DeviceLayout.default(shape, FP32) for shape in shapes]
    if mode is Mode.SLAB:
        layouts = [tile_major_layout(item, shape, ["M", "N"]) for item, shape in zip(arguments, shapes, strict=True)]
    tensors = [launched(layout, place) for place, layout in enumerate(layouts) if layout is not None]
    plan = explain_launch(contract, tensors)
    assert mode in {argument.mode for argument in plan.body.arguments}
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (16, 64)).astype(np.float64), rng.integers(-4, 5, (64, 96)).astype(np.float64)
    (c,) = executed(plan, [a, b, None], {"matmul": lambda tiles: [tiles[0] @ tiles[1]]}, [2])
    assert np.array_equal(c, a @ b)


def reduction(rows: int, columns: int, combine: Combine) -> TileContract:
    loops = (TileLoop("M", rows), TileLoop("K", columns, LoopKind.REDUCTION, combine, 0.0))
    x = TileArgument("x", Role.INPUT, FP32, DeviceLayout.default((rows, columns), FP32), ("M", "K"))
    y = TileArgument("y", Role.OUTPUT, FP32, DeviceLayout.default((rows, 1), FP32), ("M", None))
    return TileContract("reduce", loops, (x, y), reduction=ReductionPrograms("fill", "join", "store"))


PROGRAMS: dict[Combine, dict[str, Program]] = {
    Combine.SUM: {
        "fill": lambda tiles: [np.zeros_like(tiles[0])],
        "reduce": lambda tiles: [tiles[0].sum(axis=1, keepdims=True)],
        "reduce_32": lambda tiles: [tiles[0].sum(axis=1, keepdims=True)],
        "join": lambda tiles: [tiles[0] + tiles[1]],
        "store": lambda tiles: [tiles[0], tiles[0]],
    },
    Combine.MAX: {
        "fill": lambda tiles: [np.full_like(tiles[0], -1e9)],
        "reduce": lambda tiles: [tiles[0].max(axis=1, keepdims=True)],
        "join": lambda tiles: [np.maximum(tiles[0], tiles[1])],
        "store": lambda tiles: [tiles[0], tiles[0]],
    },
}


def test_sums_over_tiles_with_a_variant_for_the_rest_equal_numpy() -> None:
    contract = reduction(4, 64, Combine.SUM)
    contract = replace(contract, variants=(replace(reduction(4, 32, Combine.SUM), program="reduce_32"),))
    tensors = [launched(DeviceLayout.default(shape, FP32), place) for place, shape in enumerate([(12, 160), (12, 1)])]
    plan = explain_launch(contract, tensors)
    assert [loop.remainder for loop in plan.loops] == [None, Remainder.VARIANT]
    x = np.random.default_rng(1).integers(-9, 9, (12, 160)).astype(np.float64)
    (y,) = executed(plan, [x, None], PROGRAMS[Combine.SUM], [1])
    assert np.array_equal(y, x.sum(axis=1, keepdims=True))


def test_a_maximum_may_see_elements_twice() -> None:
    tensors = [launched(DeviceLayout.default(shape, FP32), place) for place, shape in enumerate([(12, 160), (12, 1)])]
    plan = explain_launch(reduction(4, 64, Combine.MAX), tensors)
    assert [loop.remainder for loop in plan.loops] == [None, Remainder.OVERLAP]
    x = np.random.default_rng(1).integers(-9, 9, (12, 160)).astype(np.float64)
    (y,) = executed(plan, [x, None], PROGRAMS[Combine.MAX], [1])
    assert np.array_equal(y, x.max(axis=1, keepdims=True))


@pytest.mark.parametrize("is_staged", [False, True])
def test_a_body_that_accumulates_equals_numpy(is_staged: bool) -> None:
    rows = 8 if is_staged else 4  # several rows of several sticks: the output's tile is not in one piece
    loops = (TileLoop("M", 4), TileLoop("K", 32, LoopKind.REDUCTION, Combine.SUM, 0.0))
    shapes, axes = ((4, 32), (32, 64), (4, 64)), (("M", "K"), ("K", None), ("M", None))
    roles = (Role.INPUT, Role.INPUT, Role.OUTPUT)
    arguments = tuple(
        TileArgument(name, role, FP32, DeviceLayout.default(shape, FP32), follow, WriteMode.ACCUMULATE)
        for name, role, shape, follow in zip("abc", roles, shapes, axes, strict=True)
    )
    contract = TileContract("add", loops, arguments, first="set")
    whole = ((rows, 96), (96, 64), (rows, 64))
    tensors = [launched(DeviceLayout.default(shape, FP32), place) for place, shape in enumerate(whole)]
    plan = explain_launch(contract, tensors)
    assert (plan.body.arguments[2].mode is Mode.STAGED) == is_staged
    # The accumulating tile stays in scratch until its last part is in.
    assert [len(item.scatters) for item in plan.iterations()] == ([0, 0, 1] * 2 if is_staged else [0, 0, 0])
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-4, 5, shape).astype(np.float64) for shape in whole[:2])
    programs: dict[str, Program] = {
        "set": lambda tiles: [tiles[0] @ tiles[1]],
        "add": lambda tiles: [tiles[2] + tiles[0] @ tiles[1]],
    }
    (c,) = executed(plan, [a, b, None], programs, [2])
    assert np.array_equal(c, a @ b)


def test_an_update_in_place_is_done_once_where_it_is_staged() -> None:
    layout, tile = (DeviceLayout.default(shape, FP32) for shape in ((8, 64), (4, 64)))
    argument = TileArgument("x", Role.INOUT, FP32, tile, ("M", None))
    plan = explain_launch(TileContract("grow", (TileLoop("M", 4),), (argument,)), [launched(layout, 0)])
    assert plan.body.arguments[0].mode is Mode.STAGED
    x = np.arange(512, dtype=np.float64).reshape(8, 64)
    (y,) = executed(plan, [x], {"grow": lambda tiles: [tiles[0] + 1]}, [0])
    assert np.array_equal(y, x + 1)
