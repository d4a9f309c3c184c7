"""What a SuperDSC cannot say is refused, each with its code and the place in the OpSpec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.expression import CoordinateExpression, parse_expression
from spyrec.codegen.opspec import IterationDim, OpSpec, OpSpecFile, TensorArgument
from spyrec.diagnostics import Diagnostic, Location, SpyrecError
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SPYRE_2026_06, SPYRE_2026_08, Target
from tests.codegen.builders import FP16, FP32, SEGMENT, Along, argument, matmul, pointwise, space

FP8 = DeviceFormat.SEN143_FP8
INT32 = DeviceFormat.IEEE_INT32


def refusals(*specs: OpSpec, symbolic: bool = False) -> list[Diagnostic]:
    file = OpSpecFile(symbolic, True, specs, Location("specs.json", ""))
    with pytest.raises(SpyrecError) as caught:
        emit_opspecs(file, CodegenOptions())
    return caught.value.diagnostics


def changed(spec: OpSpec, position: int, change: Callable[[TensorArgument], TensorArgument]) -> OpSpec:
    args = list(spec.args)
    args[position] = change(args[position])
    return replace(spec, args=tuple(args))


def coordinate(axis: int, text: str) -> Callable[[TensorArgument], TensorArgument]:
    def change(arg: TensorArgument) -> TensorArgument:
        coordinates = list(arg.device_coordinates)
        coordinates[axis] = parse_expression(text)
        return replace(arg, device_coordinates=tuple(coordinates))

    return change


def at(start_bytes: int) -> Callable[[TensorArgument], TensorArgument]:
    return lambda arg: replace(arg, allocation=replace(arg.allocation, start_bytes=start_bytes))


def in_format(data_format: DeviceFormat) -> Callable[[TensorArgument], TensorArgument]:
    return lambda arg: replace(arg, device_dtype=data_format)


def in_formats(spec: OpSpec, *formats: DeviceFormat) -> OpSpec:
    """The same operation over operands of other formats, each in its own sticks."""
    sizes = {dim.symbol: dim.size for dim in spec.iteration_space}
    args = (
        argument([Along("b"), Along("a")], "b", sizes, index=i, is_input=arg.is_input, data_format=formats[i])
        for i, arg in enumerate(spec.args)
    )
    return replace(spec, args=tuple(args))


def ragged_cast(sticks: int) -> OpSpec:
    sizes = {"a": 4, "b": 200}
    tail = sticks - 7
    args = (
        argument([Along("b"), Along("a")], "b", sizes, index=0),
        argument([Along("b", 0, tail), Along("a")], "b", sizes, index=1, is_input=False, data_format=FP32),
    )
    return OpSpec("dl16tofp32", False, space(sizes), args)


def output_window(width: int, offset: int, tail: int) -> OpSpec:
    sizes = {"a": 4, "b": width}
    args = (
        argument([Along("b"), Along("a")], "b", sizes, index=0),
        argument([Along("b", offset, tail), Along("a")], "b", sizes, index=1, is_input=False),
    )
    return OpSpec("identity", False, space(sizes), args)


def restickify(rows: int, room: int, offset: int = 0) -> OpSpec:
    sizes = {"a": rows, "b": 64}
    args = (
        argument([Along("b"), Along("a", offset, room - rows - offset)], "b", sizes, index=0),
        argument([Along("a"), Along("b")], "a", sizes, index=1, is_input=False),
    )
    return OpSpec("ReStickifyOpHBM", False, space(sizes), args)


def gather() -> OpSpec:
    sizes = {"r": 32, "c": 64}
    index = replace(
        argument([Along(None), Along("r")], "r", sizes, index=0, data_format=DeviceFormat.IEEE_INT32), name="rows"
    )
    table = argument([Along("c"), Along("r")], "c", sizes | {"r": 500}, index=1)
    out = argument([Along("c"), Along("r")], "c", sizes, index=2, is_input=False)
    return changed(
        OpSpec("identity", False, space(sizes), (index, table, out)), 1, coordinate(1, "IndirectAccess(rows)")
    )


def lx_window(cut: int) -> OpSpec:
    sizes = {"a": 8, "b": 64}
    args = (
        argument([Along("b"), Along("a", 0, 8)], "b", sizes, index=0, lx=0),
        argument([Along("b"), Along("a")], "b", sizes, index=1, is_input=False),
    )
    return OpSpec("abs", False, space(sizes, {"a": cut}), args)


def sparse_beside_dense() -> OpSpec:
    sizes = {"a": 8, "b": 64}
    args = (
        argument([Along(None), Along("b"), Along("a")], None, sizes, index=0),
        argument([Along(None), Along("b"), Along("a")], "b", sizes, index=1, is_input=False),
    )
    return OpSpec("abs", False, space(sizes), args)


def five_layouts() -> OpSpec:
    sizes = {"a": 64, "b": 64, "c": 64, "d": 64, "e": 64}
    args = [
        argument([Along(s) for s in "abcde"], stick, sizes, index=i, is_input=i < 4) for i, stick in enumerate("abcde")
    ]
    return OpSpec("layernormnorm", False, space(sizes), tuple(args))


ADD = pointwise("add", {"a": 8, "b": 256}, inputs=2)
ABS = pointwise("abs", {"a": 8, "b": 256})
SUM = OpSpec(
    "sum",
    True,
    space({"a": 8, "b": 256}),
    (
        argument([Along(None), Along("b"), Along("a")], "b", {"a": 8, "b": 256}, index=0),
        argument([Along(None), Along(None), Along("a")], None, {"a": 8}, index=1, is_input=False),
    ),
)
ROW_OUTPUT = replace(
    ABS, args=(ABS.args[0], argument([Along(None), Along("b")], "b", {"b": 256}, index=1, is_input=False))
)
TWICE_B = replace(ABS, iteration_space=(IterationDim("b", 8), IterationDim("b", 256)))
NINE = {f"c{i}": 2 for i in range(8)} | {"s": 64}

CASES: list[tuple[str, str, OpSpec]] = [
    ("SPY0505", "/specs/0/args/0/allocation/hbm", changed(ABS, 0, at(64))),
    ("SPY0505", "/specs/0/args/0/allocation/hbm", changed(ABS, 0, at(SEGMENT - 128))),
    ("SPY0505", "/specs/0/args/0/allocation/hbm", changed(ABS, 0, at(7 * SEGMENT))),
    ("SPY0506", "/specs/0/args", replace(ADD, args=ADD.args[1:])),
    ("SPY0506", "/specs/0/args", changed(ABS, 1, lambda a: replace(a, is_input=True))),
    ("SPY0506", "/specs/0/args", changed(ADD, 0, lambda a: replace(a, is_input=False))),
    ("SPY0507", "/specs/0/iteration_space", pointwise("abs", NINE)),
    ("SPY0507", "/specs/0/iteration_space", TWICE_B),
    ("SPY0508", "/specs/0/args/0/device_coordinates/1", changed(ABS, 0, coordinate(1, "2*a"))),
    ("SPY0508", "/specs/0/args/0/device_coordinates/1", changed(ABS, 0, coordinate(1, "a + b"))),
    ("SPY0508", "/specs/0/args/0/device_coordinates/1", changed(ABS, 0, coordinate(1, "z"))),
    ("SPY0508", "/specs/0/args/0/device_coordinates/1", changed(ABS, 0, coordinate(1, "3"))),
    ("SPY0508", "/specs/0/args/0/device_coordinates/0", changed(ABS, 0, coordinate(0, "floor(b / 32)"))),
    ("SPY0508", "/specs/0/args/0/device_coordinates/2", changed(ABS, 0, coordinate(2, "Mod(b, 32)"))),
    ("SPY0508", "/specs/0/args/0/device_coordinates/2", changed(ABS, 0, coordinate(2, "Mod(b, 64) + 5"))),
    ("SPY0508", "/specs/0/args/0/device_coordinates/2", changed(ABS, 0, coordinate(2, "7"))),
    ("SPY0508", "/specs/0/args/0/device_coordinates/0", changed(ABS, 0, coordinate(1, "floor(b / 64)"))),
    ("SPY0509", "/specs/0/args/0/device_size/2", changed(ABS, 0, lambda a: replace(a, device_size=(4, 8, 32)))),
    ("SPY0509", "/specs/0/args/0", changed(ABS, 0, coordinate(1, "a + 1"))),
    ("SPY0509", "/specs/0/args/0", changed(ABS, 0, coordinate(1, "a - 1"))),
    ("SPY0509", "/specs/0/args/0", changed(ABS, 0, lambda a: replace(a, device_size=(4, 7, 64)))),
    ("SPY0510", "/specs/0/iteration_space", pointwise("abs", {"a": 64, "b": 64}, {"a": 64})),
    ("SPY0511", "/specs/0/iteration_space", pointwise("abs", {"a": 10, "b": 64}, {"a": 4})),
    ("SPY0511", "/specs/0/iteration_space", matmul((4, 64, 200), (1, 1, 3))),
    ("SPY0512", "/specs/0/args/0", pointwise("abs", {"a": 2, "b": 320}, {"b": 2})),
    ("SPY0512", "/specs/0/args/0", matmul((4, 64, 192), (1, 1, 2))),
    ("SPY0513", "/specs/0/args/0/device_dtype", changed(ABS, 0, in_format(DeviceFormat.SENINT4))),
    ("SPY0513", "/specs/0/args/0/device_dtype",
     changed(ABS, 0, in_format(DeviceFormat.SEN18F_FP24))),
    ("SPY0514", "/specs/0", five_layouts()),
    ("SPY0515", "/specs/0/args/0", sparse_beside_dense()),
    ("SPY0516", "/specs/0/args/1", ragged_cast(7)),
    ("SPY0516", "/specs/0/args/1", changed(matmul((4, 64, 200)), 1, lambda a: replace(a, device_size=(1, 200, 64)))),
    ("SPY0517", "/specs/0/args/0", restickify(128, 150)),
    ("SPY0516", "/specs/0/args/0", restickify(106, 110)),
    ("SPY0518", "/specs/0/args/0", lx_window(2)),
    ("SPY0519", "/specs/0/args/1", output_window(100, 0, 1)),
    ("SPY0520", "/specs/0/args/0", pointwise("abs", {"a": (1 << 21) + 1, "b": 64})),
    ("SPY0521", "/specs/0/args/1", changed(gather(), 1, coordinate(1, "IndirectAccess(other)"))),
    ("SPY0521", "/specs/0/args/0", changed(gather(), 0, in_format(FP16))),
    ("SPY0522", "/specs/0/args/1", ROW_OUTPUT),
    ("SPY0530", "/specs/0/op", replace(ROW_OUTPUT, is_reduction=True)),
    ("SPY0522", "/specs/0/args/1", replace(SUM, op="abs", iteration_space=space({"a": 8, "b": 256}, {"b": 2}))),
    ("SPY0530", "/specs/0/op", pointwise("foo", {"a": 8, "b": 256})),
    ("SPY0531", "/specs/0/args/0/device_dtype", in_formats(pointwise("log", {"a": 8, "b": 256}), FP32, FP32)),
    ("SPY0531", "/specs/0/args/0/device_dtype", in_formats(ADD, FP8, FP8, FP8)),
    ("SPY0531", "/specs/0/args/0/device_dtype", in_formats(ADD, INT32, INT32, INT32)),
    ("SPY0531", "/specs/0/args/1/device_dtype", in_formats(ADD, FP16, FP32, FP16)),
    ("SPY0531", "/specs/0/args/2/device_dtype", in_formats(ADD, FP16, FP16, FP32)),
    ("SPY0531", "/specs/0/args/1/device_dtype", in_formats(pointwise("dl16tofp32", {"a": 8, "b": 256}), FP16, FP16)),
    ("SPY0531", "/specs/0/args/0/device_dtype", matmul((64, 64, 128), op="batchmatmulfp8")),
    ("SPY0529", "/specs/0/args/0",
     changed(pointwise("abs", {"a": 8192, "b": 128}), 0,
             lambda _: argument([Along("b"), Along("a")], "b", {"a": 8192, "b": 128}, index=0, lx=128))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "pointer", "spec"), CASES, ids=[f"{number}-{row[0]}" for number, row in enumerate(CASES)]
)
def test_an_operation_is_refused_with_its_code_and_place(code: str, pointer: str, spec: OpSpec) -> None:
    (problem,) = refusals(spec)
    assert problem.code == code
    assert problem.location is not None
    assert problem.location.pointer == pointer


@pytest.mark.parametrize(
    ("op", "formats"),
    [
        ("add", (FP32, FP32, FP32)),
        ("identity", (INT32, INT32)),
        ("identity", (FP8, FP8)),
        ("identity", (DeviceFormat.SENINT8, DeviceFormat.SENINT8)),
        ("layernormnorm", (FP32,) * 6),
        ("dl16tofp32", (FP16, FP32)),
        ("fp32todl16", (FP32, FP16)),
        ("qfp8ch", (FP16, FP8)),
        ("fp8todl16", (FP8, FP16)),
    ],
)
def test_formats_that_the_device_takes_are_lowered(op: str, formats: tuple[DeviceFormat, ...]) -> None:
    spec = in_formats(pointwise(op, {"a": 8, "b": 256}, inputs=len(formats) - 1), *formats)
    (superdsc,) = emit_opspecs(OpSpecFile(False, True, (spec,)), CodegenOptions()).superdscs.values()
    assert superdsc.op_func_name == op


@pytest.mark.parametrize("data_format", [FP16, FP32, INT32])
def test_a_restickify_is_lowered_for_every_format_that_graphs_are_transposed_in(data_format: DeviceFormat) -> None:
    sizes = {"a": 64, "b": 128}
    args = (
        argument([Along("b"), Along("a")], "b", sizes, index=0, data_format=data_format),
        argument([Along("a"), Along("b")], "a", sizes, index=1, is_input=False, data_format=data_format),
    )
    spec = OpSpec("ReStickifyOpHBM", False, space(sizes), args)
    assert emit_opspecs(OpSpecFile(False, True, (spec,)), CodegenOptions()).superdscs


def test_an_hbm_operand_without_argument_is_refused_when_addresses_are_symbolic_and_fine_when_baked() -> None:
    spec = changed(ABS, 0, lambda arg: replace(arg, arg_index=None))
    (problem,) = refusals(spec, symbolic=True)
    assert problem.code == "SPY0526"
    assert emit_opspecs(OpSpecFile(False, True, (spec,))).superdscs


def test_the_first_problem_of_every_operation_is_reported() -> None:
    bad = changed(ABS, 0, coordinate(1, "2*a"))
    worse = pointwise("abs", {"a": 64, "b": 64}, {"a": 64})
    assert [item.code for item in refusals(bad, ABS, worse)] == ["SPY0508", "SPY0510"]


@pytest.mark.parametrize(
    "spec",
    [
        ragged_cast(8),
        output_window(100, 1, 0),
        output_window(128, 1, 1),
        restickify(106, 106),
        restickify(128, 192),
        restickify(128, 200, 72),
        lx_window(1),
        matmul((4, 64, 200), (1, 1, 4)),
        pointwise("abs", {"a": SPYRE_2026_08.span_limit_bytes // 128, "b": 64}),
        gather(),
    ],
)
def test_the_nearest_operation_that_can_be_expressed_is_accepted(spec: OpSpec) -> None:
    assert emit_opspecs(OpSpecFile(False, True, (spec,))).superdscs


@pytest.mark.parametrize("target", [SPYRE_2026_06, SPYRE_2026_08], ids=lambda target: target.name)
def test_a_span_is_measured_per_core(target: Target) -> None:
    # twice the inclusive limit, in rows of 128 bytes: too much for one core, just right for two
    rows = 2 * target.span_limit_bytes // 128
    assert [item.code for item in refusals(pointwise("abs", {"a": rows, "b": 64}))] == ["SPY0520"]
    halves = pointwise("abs", {"a": rows, "b": 64}, {"a": 2})
    assert emit_opspecs(OpSpecFile(False, True, (halves,)), CodegenOptions(target=target)).superdscs


def test_a_refused_operation_leaves_the_input_as_it_was() -> None:
    before = repr(ABS)
    refusals(replace(ABS, iteration_space=(IterationDim("a", 8, 33), IterationDim("b", 256))))
    assert repr(ABS) == before
    assert CoordinateExpression.symbol("a") == ABS.args[0].device_coordinates[1]
