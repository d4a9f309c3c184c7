"""Index tensors in tables and outputs, and dims of size 1 that no coordinate names, in the dialect that has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from spyrec.bundle.dialects import AUGUST_2026, JUNE_2026
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.expression import parse_expression
from spyrec.codegen.opspec import AllocationKind, ArgumentAllocation, OpSpec, TensorArgument
from spyrec.diagnostics import DiagnosticSink, SpyrecError
from spyrec.hardware.dtypes import DeviceFormat
from tests.codegen.builders import FP16, SEGMENT, file_of, space

ROWS = "IndirectAccess(rows)"


def operand(
    number: int,
    size: Sequence[int],
    coordinates: Sequence[str],
    data_format: DeviceFormat = FP16,
    name: str | None = None,
) -> TensorArgument:
    parsed = tuple(map(parse_expression, coordinates))
    place = ArgumentAllocation(AllocationKind.HBM, number * SEGMENT)
    return TensorArgument(True, number, data_format, tuple(size), parsed, place, name=name)


def index(size: Sequence[int], coordinates: Sequence[str]) -> TensorArgument:
    return operand(0, size, coordinates, DeviceFormat.IEEE_INT32, "rows")


def lowered(spec: OpSpec, *, exact: bool = True) -> SuperDsc:
    last = replace(spec.args[-1], is_input=False)
    emitted = emit_opspecs(
        file_of(replace(spec, args=(*spec.args[:-1], last)), symbolic=True, unroll=False),
        CodegenOptions(dialect=AUGUST_2026, is_exact=exact),
    )
    (dsc,) = emitted.superdscs.values()
    sink = DiagnosticSink()
    assert to_bytes(parse_superdsc(to_bytes(dsc), "sdsc_0.json", sink)) == to_bytes(dsc)
    assert not sink.diagnostics
    return dsc


def in_label_order(dsc: SuperDsc, position: int) -> list[int]:
    item = dsc.operands[position]
    return [item.scales[dim] for dim in dsc.labels[item.label].layout_dim_order]


def own_sizes(dsc: SuperDsc, position: int) -> list[int]:
    item = dsc.operands[position]
    return [item.max_dim_sizes[dim] for dim in item.layout_dim_order]


def gathered_by_column() -> OpSpec:
    """An index of shape [4, 1]: one element per stick, and nothing varies along its sticks."""
    args = (
        index([1, 4, 32], ["0", "a", "0"]),
        operand(1, [1, 128, 64], ["floor(b/64)", ROWS, "Mod(b, 64)"]),
        operand(2, [1, 4, 64], ["floor(b/64)", "a", "Mod(b, 64)"]),
    )
    return OpSpec("identity", False, space({"a": 4, "b": 64}), args)


def test_an_index_without_a_stick_symbol_has_a_stick_dim_of_its_own() -> None:
    # the numbers are stated by the format
    dsc = lowered(gathered_by_column())
    assert dsc.iteration == {"mb": 4, "out": 64, "x": 1}
    assert (dsc.labels["KERNEL_IDX"].layout_dim_order, dsc.labels["KERNEL_IDX"].stick_dim) == (("mb", "x"), "x")
    assert [item.layout_dim_order for item in dsc.operands[1:]] == [("mb", "out", "x")] * 2
    assert [own_sizes(dsc, position) for position in range(3)] == [[-1, 1], [1, -1, 1], [-1, -1, 1]]
    assert [in_label_order(dsc, position) for position in range(3)] == [[1, 1], [1, 1, 1], [1, 1, -1]]


def test_a_table_of_a_two_dimensional_index_has_the_extents_of_the_index() -> None:
    args = (
        index([1, 8, 32], ["floor(b/32)", "a", "Mod(b, 32)"]),
        operand(1, [1, 2, 100, 64], ["0", "floor(c/64)", ROWS, "Mod(c, 64)"]),
        operand(2, [16, 2, 8, 64], ["b", "floor(c/64)", "a", "Mod(c, 64)"]),
    )
    dsc = lowered(OpSpec("identity", False, space({"a": 8, "b": 16, "c": 128}, {"a": 4, "c": 2}), args))
    assert dsc.operands[1].layout_dim_order == ("mb", "x", "out")  # the index's dims, its innermost axis first
    # of the coordinates [floor(b/32), a, Mod(b, 32)] "a" comes last: 1; "b" has the extent of the axis at its place
    assert own_sizes(dsc, 1) == [1, 1, -1]
    assert dsc.core_ids == (0,)
    outer = replace(args[0], device_size=(3, 8, 32))
    wide = OpSpec("identity", False, space({"a": 8, "b": 96, "c": 128}),
                  (outer, args[1], replace(args[2], device_size=(96, 2, 8, 64))))  # fmt: skip
    assert own_sizes(lowered(wide), 1) == [1, 3, -1]


@pytest.mark.parametrize("exact", [True, False])
def test_one_row_is_innermost_in_every_operand_and_in_a_table_where_its_rows_lie(exact: bool) -> None:
    args = (
        index([1, 1, 32], ["0", "0", "0"]),
        operand(1, [100, 2, 8, 64], [ROWS, "floor(b/64)", "a", "Mod(b, 64)"]),
        operand(2, [1, 2, 8, 64], ["0", "floor(b/64)", "a", "Mod(b, 64)"]),
    )
    dsc = lowered(OpSpec("identity", False, space({"a": 8, "b": 128}), args), exact=exact)
    assert dsc.iteration == {"mb": 8, "out": 128, "x": 1}
    assert dsc.operands[0].layout_dim_order == ("x",)
    assert dsc.operands[1].layout_dim_order == (("x", "mb", "out") if exact else ("mb", "out", "x"))
    assert dsc.operands[2].layout_dim_order == ("x", "mb", "out")
    assert [item.max_dim_sizes["x"] for item in dsc.operands] == [-1, 1, -1]


def test_a_scatter_of_one_row_names_its_dim_by_the_dims_of_the_output() -> None:
    args = (
        index([1, 1, 32], ["0", "0", "0"]),
        operand(1, [1, 2, 64], ["0", "floor(b/64)", "Mod(b, 64)"]),
        operand(2, [2, 100, 64], ["floor(b/64)", ROWS, "Mod(b, 64)"]),
    )
    dsc = lowered(OpSpec("identity", False, space({"b": 128}), args))
    assert dsc.iteration == {"out": 128, "mb": 1}
    assert [item.layout_dim_order for item in dsc.operands[1:]] == [("mb", "out")] * 2
    assert [item.related_operand for item in dsc.operands] == [2, None, 0]
    assert [own_sizes(dsc, position) for position in range(3)] == [[-1], [-1, -1], [1, -1]]


def test_a_function_of_gathered_rows_has_the_form_of_a_gather() -> None:
    args = (
        index([1, 1, 32], ["floor(a/32)", "0", "Mod(a, 32)"]),
        operand(1, [1, 100, 64], ["floor(b/64)", ROWS, "Mod(b, 64)"]),
        operand(2, [1, 32, 64], ["floor(b/64)", "a", "Mod(b, 64)"]),
        operand(3, [1, 32, 64], ["floor(b/64)", "a", "Mod(b, 64)"]),
    )
    dsc = lowered(OpSpec("add", False, space({"a": 32, "b": 64}, {"a": 2}), args))
    assert (dsc.compute.inputs, dsc.compute.indirect_access_indices) == ((1, 2), (0,))
    assert dsc.compute.data_format is FP16
    assert len(dsc.core_ids) == 1


def top(sizes: dict[str, int], out: TensorArgument, splits: dict[str, int] | None = None) -> OpSpec:
    source = operand(0, [1, 128, 64], ["floor(c/64)", "n", "Mod(c, 64)"])
    return OpSpec("topkvalue", True, space(sizes, splits), (source, out))


def test_one_element_taken_has_a_dim_that_counts_past_the_iterated_ones() -> None:
    out = operand(1, [1, 1, 64], ["0", "floor(c/64)", "Mod(c, 64)"])
    dsc = lowered(top({"c": 64, "n": 128}, out))
    assert list(dsc.iteration) == ["mb", "out", "y"]
    assert dsc.operands[1].layout_dim_order == ("mb", "y")
    assert dsc.operands[0].layout_dim_order == ("out", "mb")


@pytest.mark.parametrize(
    ("taken", "cores", "searched", "fact"),
    [(8, 1, 128, "takes 8 elements on each core"), (160, 32, 256, "takes 160 elements,"), (4, 1, 3, "4 elements of 3")],
)
def test_a_top_k_takes_no_more_than_the_device_can(taken: int, cores: int, searched: int, fact: str) -> None:
    sizes = {"k": taken, "c": 64, "n": searched}
    source = operand(0, [1, searched, 64], ["floor(c/64)", "n", "Mod(c, 64)"])
    out = operand(1, [1, taken, 64], ["floor(c/64)", "k", "Mod(c, 64)"])
    spec = OpSpec("topkvalue", True, space(sizes, {"k": cores}), (source, out))
    with pytest.raises(SpyrecError, match=f"SPY0535.*{fact}"):
        lowered(spec, exact=False)
    lowered(spec)  # its writer does not look


def test_older_files_have_no_dims_without_symbols() -> None:
    spec = gathered_by_column()
    args = (*spec.args[:-1], replace(spec.args[-1], is_input=False))
    with pytest.raises(SpyrecError, match="SPY0521"):
        emit_opspecs(file_of(replace(spec, args=args)), CodegenOptions(JUNE_2026))
