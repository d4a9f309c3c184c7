"""What a launch would do: the published examples, every refusal by its code, and counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyrec.bundle.tile_contract import Combine, LoopKind, ReductionPrograms, TileContract, TileLoop, WriteMode
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.launch.explain import explain_launch
from spyrec.runtime.launch.plan import (
    LaunchCounts,
    LaunchOptions,
    LaunchPhase,
    LaunchTensor,
    Mode,
    OperandHome,
    Remainder,
)
from spyrec.runtime.launch.tile_major import tile_major_layout
from tests.support.launch_builders import INOUT, INPUT, OUTPUT, argument, copying, default, matmul, tensor

MIB2 = 2 << 20
NO_SCRATCH = LaunchOptions(scratch_limit_bytes=0)


def code_of(
    contract: TileContract, tensors: list[LaunchTensor], options: LaunchOptions | None = None
) -> tuple[str, str]:
    with pytest.raises(SpyrecError) as caught:
        explain_launch(contract, tensors, options)
    diagnostic = caught.value.diagnostics[0]
    return diagnostic.code, diagnostic.render()


# --- the seeds' matmul, compiled for [1024, 1024], launched on [4096, 1024] ---


def flagship(layout: DeviceLayout | None = None) -> list[LaunchTensor]:
    return [tensor((4096, 1024), layout), tensor((1024, 1024)), tensor((4096, 1024), layout)]


def test_flagship_in_the_default_layout_is_staged_and_its_copies_are_counted() -> None:
    plan = explain_launch(matmul(1024, 1024, 1024), flagship())
    assert [item.mode for item in plan.body.arguments] == [Mode.STAGED, Mode.FIXED, Mode.STAGED]
    assert plan.counts == LaunchCounts(4, 4, 8, stage_copies=8, staged_bytes=8 * MIB2)
    assert plan.scratch_bytes == (MIB2, 0, MIB2)
    for number, iteration in enumerate(plan.iterations()):
        (gather,), (scatter,) = iteration.gathers, iteration.scatters
        assert (gather.argument, scatter.argument) == (0, 2)
        assert gather.parent_bytes == scatter.parent_bytes == number * 131_072
        assert [operand.place for operand in iteration.operands] == [
            OperandHome.SCRATCH,
            OperandHome.TENSOR,
            OperandHome.SCRATCH,
        ]


def test_flagship_with_the_tile_major_layout_only_moves_bases() -> None:
    contract = matmul(1024, 1024, 1024)
    layout = tile_major_layout(contract.arguments[0], (4096, 1024), ["M", "N"])
    assert layout is not None
    assert (layout.device_size, layout.stride_map) == ((4, 16, 1024, 64), (1_048_576, 64, 1024, 1))
    plan = explain_launch(contract, flagship(layout), NO_SCRATCH)
    assert [item.mode for item in plan.body.arguments] == [Mode.SLAB, Mode.FIXED, Mode.SLAB]
    assert plan.counts == LaunchCounts(4, 4, 8, 0, 0)
    offsets = [[operand.offset_bytes for operand in iteration.operands] for iteration in plan.iterations()]
    assert offsets == [[number * MIB2, 0, number * MIB2] for number in range(4)]


def test_flagship_with_strides_in_the_correction_needs_no_copies() -> None:
    plan = explain_launch(matmul(1024, 1024, 1024, takes_strides=True), flagship(), NO_SCRATCH)
    assert [item.mode for item in plan.body.arguments] == [Mode.STRIDED, Mode.FIXED, Mode.STRIDED]
    assert plan.body.arguments[0].stick_strides == (4096, 1)
    assert plan.counts == LaunchCounts(4, 4, 8, 0, 0)
    offsets = [iteration.operands[0].offset_bytes for iteration in plan.iterations()]
    assert offsets == [0, 131_072, 262_144, 393_216]


def test_a_tensor_of_the_compiled_shape_is_one_iteration() -> None:
    plan = explain_launch(matmul(1024, 1024, 1024), [tensor((1024, 1024)) for _ in range(3)])
    assert {item.mode for item in plan.body.arguments} == {Mode.FIXED}
    assert plan.counts == LaunchCounts(1, 1, 2, 0, 0)


def test_a_program_without_correction_is_one_control_block_per_iteration() -> None:
    contract = replace(matmul(1024, 1024, 1024), needs_correction=False)
    assert explain_launch(contract, flagship()).counts == LaunchCounts(4, 0, 4, 8, 8 * MIB2)


def test_two_loops_of_four_are_sixteen_iterations_not_a_diagonal() -> None:
    tensors = [tensor((512, 128)), tensor((128, 512)), tensor((512, 512))]
    plan = explain_launch(matmul(128, 128, 128), tensors)
    assert [iteration.index for iteration in plan.iterations()] == [(m, n) for m in range(4) for n in range(4)]


# --- every row of the reference's table: which host dim of which tensor a base shift serves ---

TABLE = [
    ((4096, 1024), (1024, 1024), 0, 131_072, 2_097_152, False),
    ((4096, 1024), (4096, 256), 1, 2_097_152, 512, True),
    ((4096, 64), (1024, 64), 0, 131_072, 131_072, True),
    ((1024, 4096), (512, 4096), 0, 65_536, 4_194_304, False),
    ((1024, 4096), (1024, 1024), 1, 2_097_152, 2_048, True),
    ((8, 100, 150), (2, 100, 150), 0, 256, 60_000, False),
    ((8, 100, 192), (8, 50, 192), 1, 153_600, 19_200, True),
    ((8, 100, 192), (8, 100, 64), 2, 1_024, 128, False),
    ((4, 8, 16, 128), (2, 8, 16, 128), 0, 256, 65_536, False),
    ((4, 8, 16, 128), (4, 4, 16, 128), 1, 65_536, 16_384, True),
    ((4096,), (1024,), 0, 2_048, 2_048, True),
]


@pytest.mark.parametrize(("parent", "tile", "dim", "step", "of_the_seeds", "is_slab"), TABLE)
def test_the_table_of_base_shifts(
    parent: tuple[int, ...], tile: tuple[int, ...], dim: int, step: int, of_the_seeds: int, is_slab: bool
) -> None:
    axes = tuple("T" if place == dim else None for place in range(len(tile)))
    loops = (TileLoop("T", tile[dim]),)
    tensors = [tensor(parent), tensor(parent)]
    assert default(parent).host_strides[dim] * tile[dim] * 2 == of_the_seeds
    arguments = explain_launch(copying(tile, axes, loops), tensors).body.arguments
    assert {item.mode for item in arguments} == {Mode.SLAB if is_slab else Mode.STAGED}
    # The distance from tile to tile, whatever the tile's inside: that of a program that takes strides.
    strided = replace(copying(tile, axes, loops))
    strided = replace(strided, arguments=tuple(replace(item, takes_strides=True) for item in strided.arguments))
    moved = [iteration.operands[0].offset_bytes for iteration in explain_launch(strided, tensors).iterations()]
    assert moved == [number * step for number in range(parent[dim] // tile[dim])]
    if not is_slab:
        code, _ = code_of(copying(tile, axes, loops), tensors, NO_SCRATCH)
        assert code == "SPY0960"


# --- modes ---


def test_a_pointwise_program_over_one_layout_runs_over_sticks_instead_of_copying() -> None:
    contract = copying((1024, 1024), ("M", None), [TileLoop("M", 1024)], is_pointwise=True)
    plan = explain_launch(contract, [tensor((4000, 1024)), tensor((4000, 1024))])
    assert {item.mode for item in plan.body.arguments} == {Mode.FLAT}
    assert plan.counts == LaunchCounts(4, 4, 8, 0, 0)
    offsets = [iteration.operands[0].offset_bytes for iteration in plan.iterations()]
    assert offsets == [0, MIB2, 2 * MIB2, 4000 * 1024 * 2 - MIB2]


def test_sticks_in_place_are_not_computed_twice() -> None:
    contract = copying((1024, 1024), ("M", None), [TileLoop("M", 1024)], is_pointwise=True)
    same = tensor((4000, 1024))
    assert code_of(contract, [same, same], NO_SCRATCH)[0] == "SPY0962"
    assert [item.mode for item in explain_launch(contract, [same, same]).body.arguments] == [Mode.STAGED, Mode.STAGED]
    whole = tensor((4096, 1024))
    assert {item.mode for item in explain_launch(contract, [whole, whole]).body.arguments} == {Mode.FLAT}


def test_a_pointwise_program_whose_tile_has_padding_does_not_run_over_sticks() -> None:
    contract = copying((2, 100, 150), ("M", None, None), [TileLoop("M", 2)], is_pointwise=True)
    plan = explain_launch(contract, [tensor((8, 100, 150)), tensor((8, 100, 150))])
    assert {item.mode for item in plan.body.arguments} == {Mode.STAGED}


def test_a_staged_tile_is_gathered_once_while_inner_loops_leave_it() -> None:
    tensors = [tensor((256, 128)), tensor((128, 256)), tensor((256, 256))]
    plan = explain_launch(matmul(128, 128, 128), tensors)
    gathered = [[copy.argument for copy in iteration.gathers] for iteration in plan.iterations()]
    assert [item.mode for item in plan.body.arguments] == [Mode.STAGED, Mode.SLAB, Mode.STAGED]
    assert gathered == [[0], [], [0], []]


def test_the_scratch_limit_is_kept() -> None:
    code, text = code_of(matmul(1024, 1024, 1024), flagship(), LaunchOptions(scratch_limit_bytes=MIB2))
    assert code == "SPY0960"
    assert "4194304 bytes" in text


def test_reuse_order_puts_the_loop_innermost_that_leaves_most_in_place() -> None:
    tensors = [tensor((256, 1024)), tensor((1024, 128)), tensor((256, 128))]
    plan = explain_launch(matmul(64, 1024, 64), tensors, LaunchOptions(reuse_order=True))
    # Both keep one operand; along N the larger tile of a stays: [64, 1024] as large as b's, so the contract's order.
    assert [loop.name for loop in plan.loops] == ["M", "N"]
    wide = explain_launch(
        matmul(64, 1024, 256),
        [tensor((256, 1024)), tensor((1024, 512)), tensor((256, 512))],
        LaunchOptions(reuse_order=True),
    )
    assert [loop.name for loop in wide.loops] == ["N", "M"]


# --- remainders ---


def rows(count: int, *, tile: int = 1024) -> tuple[TileContract, list[LaunchTensor]]:
    contract = copying((tile, 64), ("M", None), [TileLoop("M", tile)])
    return contract, [tensor((count, 64)), tensor((count, 64))]


def test_the_last_tile_begins_earlier_where_it_may() -> None:
    plan = explain_launch(*rows(4000))
    assert plan.loops[0].remainder is Remainder.OVERLAP
    assert [plan.loops[0].start(number) for number in range(4)] == [0, 1024, 2048, 2976]
    assert [iteration.operands[0].offset_bytes for iteration in plan.iterations()] == [0, 131_072, 262_144, 380_928]


def test_a_variant_serves_what_is_left_over() -> None:
    contract, tensors = rows(4000)
    variant, _ = rows(0 + 4000, tile=928)
    contract = replace(contract, is_idempotent=False, variants=(replace(variant, program="copy_928"),))
    plan = explain_launch(contract, tensors)
    assert plan.loops[0].remainder is Remainder.VARIANT
    programs = [(iteration.program, iteration.operands[0].offset_bytes) for iteration in plan.iterations()]
    assert programs == [("copy", 0), ("copy", 131_072), ("copy", 262_144), ("copy_928", 393_216)]


def test_room_beyond_the_tensor_serves_what_is_left_over() -> None:
    contract, _ = rows(4000)
    roomy = DeviceLayout((1, 4096, 64), (64, 64, 1), "SEN169_FP16", (4000, 64))
    options = LaunchOptions(remainder=Remainder.PAD)
    plan = explain_launch(contract, [tensor((4000, 64), roomy), tensor((4000, 64), roomy)], options)
    assert plan.loops[0].remainder is Remainder.PAD
    assert [iteration.operands[1].offset_bytes for iteration in plan.iterations()][-1] == 393_216
    code, text = code_of(contract, [tensor((4000, 64), roomy), tensor((4000, 64))], options)
    assert code == "SPY0962"
    assert "room for 4000 elements along dim 0, the last tile ends at 4096" in text


@pytest.mark.parametrize("policy", [Remainder.ERROR, Remainder.VARIANT, Remainder.PAD])
def test_a_policy_that_does_not_apply_is_refused(policy: Remainder) -> None:
    code, text = code_of(*rows(4000), LaunchOptions(remainder=policy))
    assert code == "SPY0962"
    assert "928 are left over" in text


def test_tiles_that_leave_lanes_over_fill_the_last_sticks() -> None:
    """416 columns are 7 sticks, the last one half empty; tiles are 2 sticks: the last one begins a stick earlier."""
    contract = copying((64, 128), (None, "N"), [TileLoop("N", 128)])
    plan = explain_launch(contract, [tensor((64, 416)), tensor((64, 416))])
    assert [loop.remainder for loop in plan.loops] == [Remainder.OVERLAP]
    offsets = [iteration.operands[1].offset_bytes for iteration in plan.iterations()]
    assert offsets == [stick * 64 * 128 for stick in (0, 2, 4, 5)]


def test_a_tile_that_would_begin_inside_a_stick_is_no_overlap() -> None:
    """Rows of the second tensor have no lanes to spare."""
    arguments = (argument("x", INPUT, (64, 128), (None, "N")), argument("y", OUTPUT, (128, 64), ("N", None)))
    contract = TileContract("turn", (TileLoop("N", 128),), arguments)
    code, text = code_of(contract, [tensor((64, 416)), tensor((416, 64))])
    assert code == "SPY0962"
    assert "inside a stick" in text


def updating() -> TileContract:
    return replace(rows(1024)[0], arguments=(argument("x", INOUT, (1024, 64), ("M", None)),))


def test_an_update_in_place_copies_back_only_what_is_new() -> None:
    plan = explain_launch(updating(), [tensor((4000, 64))])
    *_, before, last = plan.iterations()
    assert [(copy.parent_bytes, copy.size_bytes) for copy in before.scatters] == [(2048 * 128, 1024 * 128)]
    assert [(copy.parent_bytes, copy.size_bytes) for copy in last.gathers] == [(2976 * 128, 1024 * 128)]
    (copy,) = last.scatters
    assert (copy.parent_bytes, copy.scratch_bytes, copy.size_bytes) == (3072 * 128, 96 * 128, 928 * 128)


def test_an_update_in_place_is_not_done_twice() -> None:
    code, text = code_of(updating(), [tensor((4000, 64))], NO_SCRATCH)
    assert code == "SPY0962"
    assert "computed twice" in text


# --- reductions ---


def summing(**changes: object) -> tuple[TileContract, list[LaunchTensor]]:
    loops = (TileLoop("M", 64), TileLoop("K", 64, LoopKind.REDUCTION, Combine.SUM, 0.0))
    arguments = (argument("x", INPUT, (64, 64), ("M", "K")), argument("y", OUTPUT, (64, 1), ("M", None)))
    contract = TileContract("sum", loops, arguments)
    return replace(contract, **changes), [tensor((128, 192)), tensor((128, 1))]  # pyright: ignore[reportArgumentType]


def test_parts_of_a_sum_are_joined_by_the_programs_of_the_contract() -> None:
    plan = explain_launch(*summing(reduction=ReductionPrograms("zero", "add", "store")))
    phases = [(iteration.phase, iteration.index) for iteration in plan.iterations()]
    one = [
        (LaunchPhase.BODY, 0),
        (LaunchPhase.COMBINE, 0),
        (LaunchPhase.BODY, 1),
        (LaunchPhase.COMBINE, 1),
        (LaunchPhase.BODY, 2),
        (LaunchPhase.COMBINE, 2),
    ]
    assert phases == [
        (phase, (row, at)) for row in range(2) for phase, at in [(LaunchPhase.INIT, 0), *one, (LaunchPhase.PUBLISH, 2)]
    ]
    assert plan.counts.iterations == 6
    assert plan.counts.host_operations == 2 * (1 + 6 + 1)


def test_parts_of_a_sum_that_nothing_joins_are_refused() -> None:
    assert code_of(*summing())[0] == "SPY0958"


def test_a_body_that_accumulates_begins_with_the_program_that_replaces() -> None:
    contract, tensors = summing(first="sum_first")
    first, second = contract.arguments
    contract = replace(contract, arguments=(first, replace(second, write=WriteMode.ACCUMULATE)))
    programs = [iteration.program for iteration in explain_launch(contract, tensors).iterations()]
    assert programs == ["sum_first", "sum", "sum"] * 2


# --- refusals ---


def test_wrong_count_dtype_format_shape_strides_and_alignment_have_codes() -> None:
    contract = matmul(1024, 1024, 1024)
    a, b, c = flagship()
    assert code_of(contract, [a, b])[0] == "SPY0950"
    assert code_of(contract, [replace(a, dtype=DType.BFLOAT16), b, c])[0] == "SPY0951"
    wide = DeviceLayout.default((4096, 1024), "float32")
    assert code_of(contract, [replace(a, layout=wide), b, c])[0] == "SPY0952"
    assert code_of(contract, [replace(a, strides=(1, 4096)), b, c])[0] == "SPY0952"
    assert code_of(contract, [replace(a, storage_offset_bytes=64), b, c])[0] == "SPY0952"
    assert code_of(contract, [tensor((512, 1024)), b, c])[0] == "SPY0953"
    assert code_of(contract, [tensor((4096, 2048)), b, c])[0] == "SPY0953"
    assert code_of(contract, [tensor((4096,)), b, c])[0] == "SPY0953"
    transposed = DeviceLayout.default((1024, 1024), "float16", None, (1, 0))
    assert code_of(contract, [a, tensor((1024, 1024), transposed), c])[0] == "SPY0952"


def test_tiles_need_permission() -> None:
    code, text = code_of(matmul(1024, 1024, 1024), flagship(), LaunchOptions(allow_tiled_launch=False))
    assert code == "SPY0955"
    assert '"M": 4096 elements in tiles of 1024' in text


def test_arguments_that_disagree_on_a_loop_are_refused() -> None:
    a, b, _ = flagship()
    assert code_of(matmul(1024, 1024, 1024), [a, b, tensor((2048, 1024))])[0] == "SPY0957"


def test_an_output_that_stays_in_place_is_refused() -> None:
    loops = (TileLoop("M", 1),)
    arguments = (argument("x", INPUT, (1, 64), ("M", None)), argument("y", OUTPUT, (1, 64), ("M", None)))
    contract = TileContract("copy", loops, arguments)
    code, text = code_of(contract, [tensor((8, 64)), tensor((1, 64))])
    assert code == "SPY0958"
    assert "its dim 0 has 1 elements" in text
    expanded = LaunchTensor((8, 64), (0, 1), DType.FLOAT16, DeviceLayout.default((8, 64), "float16", (0, 1)))
    code, text = code_of(contract, [tensor((8, 64)), expanded])
    assert code == "SPY0958"
    assert "host stride 0" in text
    unnamed = replace(contract, arguments=(arguments[0], argument("y", OUTPUT, (1, 64), (None, None))))
    assert code_of(unnamed, [tensor((8, 64)), tensor((1, 64))])[0] == "SPY0958"


def test_an_input_that_stays_in_place_is_a_broadcast() -> None:
    loops = (TileLoop("M", 1),)
    arguments = tuple(argument(name, role, (1, 64), ("M", None)) for name, role in [("x", INPUT), ("y", OUTPUT)])
    plan = explain_launch(TileContract("copy", loops, arguments), [tensor((1, 64)), tensor((8, 64))])
    assert [item.mode for item in plan.body.arguments] == [Mode.FIXED, Mode.SLAB]


def test_an_output_on_the_memory_of_an_input_moves_with_it_or_is_refused() -> None:
    contract = copying((1024, 64), ("M", None), [TileLoop("M", 1024)])
    same = tensor((4096, 64), allocation=5)
    assert explain_launch(contract, [same, same]).total_iterations == 4
    assert code_of(contract, [same, replace(same, storage_offset_bytes=128)])[0] == "SPY0958"


def test_a_tile_inside_a_stick_is_refused_and_no_scratch_helps() -> None:
    contract = copying((64, 32), (None, "N"), [TileLoop("N", 32)])
    code, text = code_of(contract, [tensor((64, 128)), tensor((64, 128))])
    assert code == "SPY0959"
    assert "inside a stick" in text


def test_a_refusal_names_the_layout_that_would_do() -> None:
    _, text = code_of(matmul(1024, 1024, 1024), flagship(), NO_SCRATCH)
    assert "device_size=[4, 16, 1024, 64]" in text


def test_too_many_tiles_are_refused() -> None:
    assert code_of(matmul(1024, 1024, 1024), flagship(), LaunchOptions(max_tiles=3))[0] == "SPY0961"


# --- bundles that tell shapes only ---


def shapes_only(shape: tuple[int, ...], count: int = 3, *, is_pointwise: bool = True) -> TileContract:
    roles = [*[INPUT] * (count - 1), OUTPUT]
    arguments = tuple(argument(f"x{place}", role, shape, None) for place, role in enumerate(roles))
    return TileContract("add", (), arguments, is_pointwise=is_pointwise)


def test_a_pointwise_program_without_axes_is_tiled_along_the_dim_that_is_larger() -> None:
    plan = explain_launch(shapes_only((1024, 64)), [tensor((4096, 64)) for _ in range(3)])
    assert (plan.total_iterations, plan.loops[0].tile) == (4, 1024)


def test_without_axes_whatever_leaves_a_choice_is_refused() -> None:
    large, small = (4096, 64), (1024, 64)
    add = shapes_only(small)
    assert code_of(shapes_only(small, is_pointwise=False), [tensor(large) for _ in range(3)])[0] == "SPY0956"
    assert code_of(add, [tensor(large), tensor(large), tensor(small)])[0] == "SPY0956"
    assert code_of(add, [tensor(large), tensor(small), tensor(large)])[0] == "SPY0956"
    assert code_of(add, [tensor((4096, 128)) for _ in range(3)])[0] == "SPY0956"
    assert code_of(add, [tensor(large), tensor(large), tensor((2048, 64))])[0] == "SPY0956"


def test_plans_are_values() -> None:
    first, second = (explain_launch(matmul(1024, 1024, 1024), flagship_of_one()) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)


def flagship_of_one() -> list[LaunchTensor]:
    return [replace(item, allocation=number) for number, item in enumerate(flagship())]
