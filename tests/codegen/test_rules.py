"""Single rules of the lowering, each against numbers worked out by hand or stated by the format."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from spyrec.bundle.dialects import AUGUST_2026, DIALECTS, JUNE_2026, NEWEST, Dialect
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.program import Add, Constant, SdscExecute
from spyrec.bundle.superdsc import Indirection, SuperDsc
from spyrec.codegen.emit_opspecs import CodegenOptions, EmittedProgram, emit_opspecs
from spyrec.codegen.expression import parse_expression
from spyrec.codegen.opspec import AllocationKind, ArgumentAllocation, OpInfo, OpSpec
from spyrec.hardware.dtypes import DeviceFormat
from tests.codegen.builders import FP32, SEGMENT, Along, argument, file_of, matmul, pointwise, space


def lowered(spec: OpSpec, *, compat: bool = False, dialect: Dialect = NEWEST) -> SuperDsc:
    (dsc,) = emit_opspecs(file_of(spec), CodegenOptions(dialect, is_exact=compat)).superdscs.values()
    return dsc


def reduction(op: str, width: int, **constants: float) -> OpSpec:
    sizes = {"a": 8, "b": width}
    args = (
        argument([Along("b"), Along("a")], "b", sizes, index=0),
        argument([Along(None), Along("a")], None, sizes, index=1, is_input=False),
    )
    return OpSpec(op, True, space(sizes), args, op_info=OpInfo(constants))


@pytest.mark.parametrize(("op", "bits"), [("max", 0xFFFF), ("min", 0x7FFF), ("sum", 0), ("mean", 0), ("exx2", 0)])
def test_the_mask_replaces_padding_by_what_changes_nothing(op: str, bits: int) -> None:
    dsc = lowered(reduction(op, 200))
    assert dsc.coordinate_masking == {"out": ((200, 56),)}
    assert (dsc.constants[-1].name, dsc.constants[-1].bits) == ("samv-maskvalue", bits)


def test_the_mask_id_is_that_of_the_mask_constant_except_under_compat() -> None:
    spec = reduction("mean", 200, scaling_factor=1 / 200)
    assert lowered(spec).masking_constant_id == 1
    assert lowered(spec, compat=True).masking_constant_id == 0
    assert lowered(reduction("mean", 256, scaling_factor=1 / 256)).masking_constant_id == -1


def test_fp32_constants_are_ieee_bits_and_others_dlfloat16() -> None:
    spec = reduction("mean", 64, scaling_factor=1 / 64)
    assert [entry.bits for entry in lowered(spec).constants] == [0x3200]
    sizes = {"a": 8, "b": 64}
    args = (
        argument([Along("b"), Along("a")], "b", sizes, index=0, data_format=FP32),
        argument([Along(None), Along("a")], None, sizes, index=1, is_input=False, data_format=FP32),
    )
    bits = [entry.bits for entry in lowered(replace(spec, args=args)).constants]
    assert bits == [struct.unpack("<I", struct.pack("<f", 1 / 64))[0]]


@pytest.mark.parametrize(("constant", "bits"), [(1.0, 15872), (6.0, 17152), (1 / 512, 11264), (-65504.0, 0xDE00)])
def test_constants_have_the_published_encodings(constant: float, bits: int) -> None:
    # 65504 lies between 65408 and 65536: ten significant bits round it up to 2**16.
    spec = replace(pointwise("clip", {"a": 2, "b": 64}), op_info=OpInfo({"clipMin": constant}))
    assert [entry.bits for entry in lowered(spec).constants] == [bits]


def test_a_zero_dimensional_operation_iterates_one_stick() -> None:
    args = tuple(argument([Along(None)], None, {}, index=i, is_input=i == 0) for i in range(2))
    dsc = lowered(OpSpec("abs", False, (), args))
    assert dict(dsc.iteration) == {"mb": 64}
    assert [operand.layout_dim_order for operand in dsc.operands] == [("mb",), ("mb",)]
    assert [dict(operand.scales) for operand in dsc.operands] == [{"mb": 1}, {"mb": 1}]
    assert len(dsc.core_ids) == 1


def test_an_operation_on_sparse_tensors_gets_a_stick_after_its_dims() -> None:
    sizes = {"a": 256}
    args = tuple(argument([Along(None), Along("a")], None, sizes, index=i, is_input=i == 0) for i in range(2))
    dsc = lowered(OpSpec("abs", False, space(sizes, {"a": 32}), args))
    assert dict(dsc.iteration) == {"out": 256, "x": 64}
    assert dsc.labels["OUTPUT"].stick_dim == "x"


def test_a_scalar_is_one_lane_everywhere() -> None:
    sizes = {"a": 8, "b": 256}
    args = (
        argument([Along(None), Along(None)], None, sizes, index=0),
        argument([Along("b"), Along("a")], "b", sizes, index=1, is_input=False),
    )
    dsc = lowered(OpSpec("identity", False, space(sizes, {"a": 8}), args))
    assert dict(dsc.operands[0].scales) == {"mb": -1, "out": -2}
    assert set(dsc.operands[0].start_addresses) == {0}


def test_topk_lists_one_input_and_extends_along_everything() -> None:
    sizes = {"m": 128, "k": 4, "n": 32}
    args = (
        argument([Along("m"), Along("n")], "m", sizes, index=0),
        argument([Along("m"), Along("k")], "m", sizes, index=1, is_input=False),
    )
    dsc = lowered(OpSpec("topkvalue", True, space(sizes), args))
    assert dsc.compute.inputs == (0,)
    assert dsc.op_func_name == "topkvalue"
    assert {scale for operand in dsc.operands for scale in operand.scales.values()} == {1}
    assert list(dsc.labels) == ["OUTPUT", "KERNEL"]


def test_an_int32_copy_is_relabelled_fp32() -> None:
    sizes = {"a": 4, "b": 64}
    args = tuple(
        argument([Along("b"), Along("a")], "b", sizes, index=i, is_input=i == 0, data_format=DeviceFormat.IEEE_INT32)
        for i in range(2)
    )
    dsc = lowered(OpSpec("identity", False, space(sizes), args))
    assert {operand.data_format for operand in dsc.operands} == {FP32}


def test_cores_that_share_an_output_element_are_neighbours() -> None:
    dsc = lowered(matmul((512, 1024, 256), (4, 2, 4)))
    assert dsc.core_work_slices[1] == {"in": 1, "mb": 0, "out": 0}
    starts = dsc.operands[2].start_addresses
    assert [len(set(starts[core : core + 4])) for core in range(0, 32, 4)] == [1] * 8
    assert len(set(starts)) == 8


def test_fp8_matmuls_pad_the_contracted_dim_to_their_own_sticks() -> None:
    sizes = {"m": 4, "n": 128, "k": 200}
    fp8 = DeviceFormat.SEN143_FP8
    args = (
        argument([Along("k"), Along("m")], "k", sizes, index=0, data_format=fp8),
        argument([Along("n"), Along("k")], "n", sizes | {"k": 256}, index=1, data_format=fp8),
        argument([Along("n"), Along("m")], "n", sizes, index=2, is_input=False),
    )
    dsc = lowered(OpSpec("batchmatmulfp8", True, space(sizes), args))
    assert dict(dsc.iteration) == {"mb": 4, "out": 128, "in": 256}
    assert [label.stick_size for label in dsc.labels.values()] == [128, 128, 64]
    assert dsc.compute.execution_unit == "pt"


def gather(rank: int, splits: dict[str, int]) -> OpSpec:
    sizes = ({"r": 4} if rank == 2 else {}) | {"s": 64, "c": 128}
    rows = [Along("s"), *([Along("r")] if rank == 2 else [])]
    index = replace(argument(rows, "s", sizes, index=0, data_format=DeviceFormat.IEEE_INT32), name="rows")
    table = argument([Along("c"), Along("s")], "c", sizes | {"s": 500}, index=1)
    coordinates = (table.device_coordinates[0], parse_expression("IndirectAccess(rows)"), table.device_coordinates[2])
    table = replace(table, device_coordinates=coordinates)
    out = argument([Along("c"), *([Along("r")] if rank == 2 else []), Along("s")], "c", sizes, index=2, is_input=False)
    return OpSpec("identity", False, space(sizes, splits), (index, table, out))


@pytest.mark.parametrize("rank", [1, 2])
def test_a_table_starts_where_its_columns_start_whatever_the_rows(rank: int) -> None:
    dsc = lowered(gather(rank, {"s": 2, "c": 2}))
    index, table, out = dsc.operands
    column = 500 * 128
    row_dim = "mb" if rank == 1 else "x"
    for core, slices in enumerate(dsc.core_work_slices):
        assert table.start_addresses[core] == SEGMENT + slices["out"] * column
        assert index.start_addresses[core] == slices[row_dim] * 128 * (4 if rank == 2 else 1)
        assert out.start_addresses[core] >= 2 * SEGMENT
    assert [operand.indirection for operand in dsc.operands] == [
        Indirection.INDEX,
        Indirection.VALUE,
        Indirection.NONE,
    ]
    assert (index.related_operand, table.related_operand) == (1, 0)
    assert table.layout_dim_order == (("mb", "out") if rank == 1 else ("mb", "x", "out"))
    assert dsc.compute.inputs == (1,)
    assert dsc.compute.indirect_access_indices == (0,)
    assert list(dsc.labels) == ["KERNEL_IDX", "OUTPUT"]


def test_index_slices_below_a_stick_start_inside_it() -> None:
    dsc = lowered(gather(1, {"s": 8}), dialect=JUNE_2026)
    assert dsc.operands[0].start_addresses == tuple(32 * core for core in range(8))
    assert lowered(gather(1, {"s": 8}), dialect=AUGUST_2026).core_ids == (0,)  # not divided


def windows_of_one_argument(dialect: Dialect = NEWEST) -> EmittedProgram:
    sizes = {"a": 4, "b": 64}
    args = (
        argument([Along("b", 1, 2), Along("a")], "b", sizes, index=0),
        argument([Along("b", 3, 0), Along("a")], "b", sizes, index=0),
        argument([Along("b"), Along("a")], "b", sizes, index=1, is_input=False),
    )
    spec = OpSpec("add", False, space(sizes, {"a": 2}), args)
    return emit_opspecs(file_of(spec, symbolic=True), CodegenOptions(dialect))


def test_a_window_has_a_symbol_that_its_cores_count_from() -> None:
    emitted = windows_of_one_argument()
    (execute,) = (item for item in emitted.program.body if isinstance(item, SdscExecute))
    assert execute.operands == (
        "arg_0_slice_512",
        "arg_0_slice_512_core_256",
        "arg_0_slice_1536",
        "arg_0_slice_1536_core_256",
        "arg_1",
        "arg_1_core_256",
    )
    assert execute.symbol_ids == (-2, -3, -4, -5, -6, -7)  # -1 is the argument, of which windows alone are used


def test_windows_keep_their_offsets_under_symbolic_arguments() -> None:
    emitted = windows_of_one_argument(JUNE_2026)
    assert [item.name for item in emitted.program.parameters] == ["arg_0_base_addr", "arg_1_base_addr"]
    (execute,) = (item for item in emitted.program.body if isinstance(item, SdscExecute))
    assert execute.operands == (
        "arg_0_core_512",
        "arg_0_core_768",
        "arg_0_core_1536",
        "arg_0_core_1792",
        "arg_1",
        "arg_1_core_256",
    )
    declared = {item.result: item.value for item in emitted.program.body if isinstance(item, Constant)}
    added = [item for item in emitted.program.body if isinstance(item, Add)]
    assert all(item.result == f"{item.left}_core_{declared[item.right]}" for item in added)


@pytest.mark.parametrize("dialect", DIALECTS.values())
def test_no_value_is_defined_twice(dialect: Dialect) -> None:
    text = print_program(windows_of_one_argument(dialect).program)
    lines = [line.split(" = ")[0] for line in text.splitlines() if " = " in line]
    assert len(lines) == len(set(lines))


def test_a_restickify_does_not_divide_the_dims_it_pads() -> None:
    sizes = {"a": 100, "b": 8, "c": 128}
    args = (
        argument([Along("c"), Along("b"), Along("a")], "c", sizes, index=0),
        argument([Along("a"), Along("b"), Along("c")], "a", sizes, index=1, is_input=False),
    )
    dsc = lowered(OpSpec("ReStickifyOpHBM", False, space(sizes, {"a": 2, "b": 4, "c": 2}), args))
    assert dict(dsc.work_slices) == {"mb": 1, "x": 4, "out": 2}
    assert dict(dsc.operands[0].back_gap) == {"mb": 28}
    assert dict(dsc.operands[1].back_gap) == {}


@pytest.mark.parametrize(("dialect", "name"), [(JUNE_2026, "arg_0_core_1024"), (AUGUST_2026, "arg_0_slice_1024")])
def test_two_allocations_of_one_argument_count_from_the_lower(dialect: Dialect, name: str) -> None:
    spec = pointwise("mul", {"a": 8, "b": 64}, inputs=2)
    view = replace(spec.args[1], arg_index=0, allocation=ArgumentAllocation(AllocationKind.HBM, 1024))
    given = file_of(replace(spec, args=(spec.args[0], view, spec.args[2])), symbolic=True)
    emitted = emit_opspecs(given, CodegenOptions(dialect))
    (execute,) = (item for item in emitted.program.body if isinstance(item, SdscExecute))
    assert execute.operands == ("arg_0", name, "arg_2")


def test_an_operand_used_twice_has_its_symbols_once() -> None:
    spec = pointwise("mul", {"a": 8, "b": 64}, {"a": 4}, inputs=2)
    square = replace(spec, args=(spec.args[0], spec.args[0], spec.args[2]))
    emitted = emit_opspecs(file_of(square, square, symbolic=True))
    first, second = emitted.superdscs.values()
    assert first.operands[0].start_addresses == first.operands[1].start_addresses == (-1, -2, -3, -4)
    assert second.operands[0].start_addresses == (-9, -10, -11, -12)


def test_two_arguments_with_one_address_keep_their_own_parameters() -> None:
    spec = pointwise("mul", {"a": 8, "b": 64}, inputs=2)
    aliased = replace(
        spec,
        args=(spec.args[0], replace(spec.args[1], allocation=ArgumentAllocation(AllocationKind.HBM, 0)), spec.args[2]),
    )
    emitted = emit_opspecs(file_of(aliased, symbolic=True))
    assert [item.name for item in emitted.program.parameters] == [f"arg_{i}_base_addr" for i in range(3)]


def test_emission_is_deterministic() -> None:
    spec = matmul((64, 128, 256), (4, 2, 4))
    texts = {repr(emit_opspecs(file_of(spec, spec, symbolic=True))) for _ in range(3)}
    assert len(texts) == 1
