"""Every row of the device op tables, from an OpSpec through the code generator and the emulator, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from spyrec.codegen.emit_opspecs import emit_opspecs
from spyrec.device_ops import DEVICE_OPERATIONS
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.device import EmulatedDevice
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import ArgumentTable
from tests.codegen.builders import FP16, FP32, file_of, pointwise
from tests.conformance.op_runner import (
    E4M3,
    Doubles,
    Operand,
    execute,
    gathered,
    launch,
    numbers,
    places,
    specification,
)
from tests.support.planting import other_op

FP8 = DeviceFormat.SEN143_FP8
INT32 = DeviceFormat.IEEE_INT32
Function = Callable[..., Doubles]
Sizes = dict[str, int]


def ulp(data_format: DeviceFormat) -> float:
    """Return twice the relative error of a store: what one rounding and float32 arithmetic may differ."""
    return 2.0**-9 if data_format is FP16 else 2.0**-21


def erf(x: Doubles) -> Doubles:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def sigmoid(x: Doubles) -> Doubles:
    return 1 / (1 + np.exp(-x))


def rsqrt(x: Doubles) -> Doubles:
    return 1 / np.sqrt(x)


def relu(x: Doubles) -> Doubles:
    return np.maximum(x, 0)


def gelu(x: Doubles) -> Doubles:
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def silu(x: Doubles) -> Doubles:
    return x * sigmoid(x)


def softplus(x: Doubles) -> Doubles:
    return np.where(2 * x > 1, x, np.log1p(np.exp(2 * x)) / 2)


def clip(x: Doubles) -> Doubles:
    return np.clip(x, -0.5, 1.5)


def same(x: Doubles) -> Doubles:
    return x


def choose(condition: Doubles, x: Doubles, y: Doubles) -> Doubles:
    return np.where(condition != 0, x, y)


def normalize(x: Doubles, mean: Doubles, scale: Doubles, weight: Doubles, bias: Doubles) -> Doubles:
    return (x - mean) * scale * weight + bias


POINTWISE: dict[str, tuple[int, Function]] = {
    "abs": (1, np.abs),
    "neg": (1, np.negative),
    "exp": (1, np.exp),
    "sqrt": (1, np.sqrt),
    "rsqrt": (1, rsqrt),
    "reciprocal": (1, np.reciprocal),
    "sigmoid": (1, sigmoid),
    "floor": (1, np.floor),
    "log": (1, np.log),
    "tanh": (1, np.tanh),
    "relufwd": (1, relu),
    "gelufwd": (1, gelu),
    "silu": (1, silu),
    "softplus": (1, softplus),
    "clip": (1, clip),
    "identity": (1, same),
    "add": (2, np.add),
    "sub": (2, np.subtract),
    "mul": (2, np.multiply),
    "realdiv": (2, np.divide),
    "maximum": (2, np.maximum),
    "minimum": (2, np.minimum),
    "equal": (2, np.equal),
    "notequal": (2, np.not_equal),
    "greaterequal": (2, np.greater_equal),
    "greaterthan": (2, np.greater),
    "lesserequal": (2, np.less_equal),
    "lesserthan": (2, np.less),
    "where3": (3, choose),
    "layernormnorm": (5, normalize),
}
CONSTANTS: dict[str, dict[str, float]] = {
    "softplus": {"softplusBeta": 2.0, "softplusThresh": 1.0},
    "clip": {"clipMin": -0.5, "clipMax": 1.5},
    "mean": {"scaling_factor": 0.125},
    "exx2": {"exx2scale": 0.125, "useZeroMean": 0.0},
    "layernormscale": {"eps": 0.25},
}
POSITIVE = {"sqrt", "rsqrt", "log", "reciprocal", "realdiv"}
HALF_ONLY = {"log", "tanh", "gelufwd", "silu", "softplus", "clip"} | {
    op for op in POINTWISE if op.endswith(("equal", "than"))
}
SINGLE = set(POINTWISE) - HALF_ONLY - {"where3"}
"""Pointwise operations that the tables give IEEE_FP32 as well."""

SHAPES: list[tuple[Sizes, Sizes]] = [
    ({"i": 128}, {}),
    ({"i": 100}, {}),
    ({"i": 8, "j": 192}, {"i": 4, "j": 3}),
    ({"i": 5, "j": 70}, {"i": 5}),
    ({"i": 4, "j": 8, "k": 128}, {"i": 2, "j": 8, "k": 2}),
    ({"i": 3, "j": 2, "k": 65}, {"i": 3}),
]
"""Aligned and ragged extents, 1 to 32 cores."""


def layouts(symbols: Sequence[str]) -> Iterator[tuple[tuple[str | None, ...], str]]:
    """Yield (device axes, stick symbol): sticks along the last dim or the first, counted outermost or innermost."""
    for stick in dict.fromkeys((symbols[-1], symbols[0])):
        rest = [symbol for symbol in symbols if symbol != stick]
        if not rest:
            yield (None, stick), stick
            continue
        yield (stick, *rest), stick
        yield (*reversed(rest), stick), stick


def whole_sticks(sizes: Sizes, splits: Sizes, stick: str, lanes: int) -> Sizes:
    """Drop a split of the stick dim that would cut a stick."""
    return {s: n for s, n in splits.items() if s != stick or sizes[s] % (n * lanes) == 0}


@pytest.mark.parametrize("op", list(POINTWISE))
def test_pointwise(op: str) -> None:
    inputs, function = POINTWISE[op]
    generator = np.random.default_rng(len(op))
    for sizes, splits in SHAPES:
        for data_format in (FP16, FP32) if op in SINGLE else (FP16,):
            for axes, stick in layouts(tuple(sizes)):
                kept = whole_sticks(sizes, splits, stick, data_format.elements_per_stick or 0)
                operands = [Operand(tuple(sizes), axes, stick, data_format)] * (inputs + 1)
                spec = specification(op, operands, sizes, kept, constants=CONSTANTS.get(op))
                arrays = [numbers(generator, sizes, positive=op in POSITIVE) for _ in range(inputs)]
                got = execute(spec, operands, arrays, sizes)
                want = np.asarray(function(*arrays), np.float64)
                where = f"{op} {data_format.name} {sizes} over {kept} as {axes}"
                # a cancelling sum of float32 products has an error of its terms' size
                atol = 2.0**-18 if op == "layernormnorm" else 0.0
                np.testing.assert_allclose(got, want, rtol=ulp(data_format), atol=atol, err_msg=where)


@pytest.mark.parametrize("op", ["add", "realdiv", "lesserthan", "where3"])
def test_pointwise_with_a_row_a_column_and_a_scalar(op: str) -> None:
    inputs, function = POINTWISE[op]
    sizes = {"i": 8, "j": 130}
    whole = Operand(("i", "j"), ("j", "i"), "j")
    generator = np.random.default_rng(1)
    row, column, scalar = (
        Operand(("j",), (None, "j"), "j"),
        Operand(("i",), (None, "i"), None),
        Operand((), (None, None), None),
    )
    for small in (row, column, scalar):
        operands = [*[whole] * (inputs - 1), small, whole]
        arrays = [numbers(generator, {s: sizes[s] for s in item.symbols}, positive=True) for item in operands[:-1]]
        got = execute(specification(op, operands, sizes, {"i": 8}), operands, arrays, sizes)
        arrays[-1] = arrays[-1][:, None] if small is column else arrays[-1]
        np.testing.assert_allclose(got, np.broadcast_to(function(*arrays), got.shape), rtol=ulp(FP16))


@pytest.mark.parametrize(
    ("sizes", "splits"),
    [
        ({"i": 128, "j": 64}, {"i": 2}),
        ({"i": 256, "j": 512}, {"i": 4, "j": 8}),
        ({"i": 70, "j": 100}, {}),
        ({"i": 64, "j": 100, "k": 3}, {"k": 3}),
    ],
)
def test_restickify(sizes: Sizes, splits: Sizes) -> None:
    rest = tuple(symbol for symbol in sizes if symbol not in "ij")
    symbols = tuple(sizes)
    operands = [Operand(symbols, ("j", "i", *rest), "j"), Operand(symbols, ("i", "j", *rest), "i")]
    values = numbers(np.random.default_rng(2), sizes)
    got = execute(specification("ReStickifyOpHBM", operands, sizes, splits), operands, [values], sizes)
    np.testing.assert_array_equal(got, values)


CASTS = {"dl16tofp32": (FP16, FP32), "fp32todl16": (FP32, FP16), "fp8todl16": (FP8, FP16), "qfp8ch": (FP16, FP8)}


@pytest.mark.parametrize("op", list(CASTS))
@pytest.mark.parametrize(
    ("sizes", "splits"), [({"j": 128}, {}), ({"i": 32, "j": 256}, {"i": 32}), ({"i": 6, "j": 128}, {"i": 3})]
)
def test_casts(op: str, sizes: Sizes, splits: Sizes) -> None:
    axes = (None, "j") if len(sizes) == 1 else ("j", "i")
    operands = [Operand(tuple(sizes), axes, "j", data_format) for data_format in CASTS[op]]
    generator = np.random.default_rng(3)
    values = np.asarray(generator.choice(E4M3[1:0x70], tuple(sizes.values())))  # all four formats hold these
    got = execute(specification(op, operands, sizes, splits), operands, [values], sizes)
    np.testing.assert_array_equal(got, values)


def fold(op: str, values: Doubles, axis: int) -> Doubles:
    match op:
        case "sum":
            return np.asarray(values.sum(axis=axis))
        case "mean":
            return np.asarray(values.sum(axis=axis)) * 0.125
        case "max":
            return np.asarray(values.max(axis=axis))
        case _:
            return np.asarray(values.min(axis=axis))


@pytest.mark.parametrize("data_format", [FP16, FP32])
@pytest.mark.parametrize("op", ["sum", "mean", "max", "min"])
def test_reductions_over_the_stick_dim_and_beside_it(op: str, data_format: DeviceFormat) -> None:
    generator = np.random.default_rng(4)
    for sizes, splits in (
        ({"i": 8, "j": 192}, {"i": 8}),
        ({"i": 8, "j": 192}, {"j": 3}),
        ({"i": 5, "j": 70}, {"i": 5}),
        ({"i": 32, "j": 64}, {"i": 32}),
        ({"i": 6, "k": 4, "j": 100}, {"k": 4}),
    ):
        symbols = tuple(sizes)
        source = Operand(symbols, ("j", *(s for s in symbols if s != "j")), "j", data_format)
        for folded in ("j", "i"):
            kept = tuple(symbol for symbol in symbols if symbol != folded)
            beside = [symbol for symbol in kept if symbol != "j"]
            axes: list[str | None] = ["j", *beside] if folded == "i" else [None, *kept]
            if len(axes) < 2:
                axes.insert(0, None)
            operands = [source, Operand(kept, tuple(axes), "j" if folded == "i" else None, data_format)]
            spec = specification(op, operands, sizes, splits, is_reduction=True, constants=CONSTANTS.get(op))
            values = numbers(generator, sizes)
            got = execute(spec, operands, [values], sizes)
            where = f"{op} {sizes} over {splits}, without {folded}"
            want = fold(op, values, symbols.index(folded))
            np.testing.assert_allclose(got, want, rtol=ulp(data_format), err_msg=where)


PAIR = Operand(("i",), (None, "i"), None)
"""One stick per row: exx2 fills its first two lanes."""


@pytest.mark.parametrize(
    ("sizes", "splits"), [({"i": 8, "j": 192}, {"i": 8}), ({"i": 5, "j": 70}, {}), ({"i": 32, "j": 64}, {"i": 32})]
)
def test_exx2_gives_the_means_of_values_and_of_squares(sizes: Sizes, splits: Sizes) -> None:
    source = Operand(("i", "j"), ("j", "i"), "j")
    values = numbers(np.random.default_rng(5), sizes)
    spec = specification("exx2", [source, PAIR], sizes, splits, is_reduction=True, constants=CONSTANTS["exx2"])
    lanes = launch(spec, [(places(source, spec.args[0].device_coordinates, sizes), values)])[0]
    np.testing.assert_allclose(lanes[:, 0], values.sum(axis=1) / 8, rtol=ulp(FP16), atol=2.0**-20)
    np.testing.assert_allclose(lanes[:, 1], (values**2).sum(axis=1) / 8, rtol=ulp(FP16))


@pytest.mark.parametrize(("rows", "cores"), [(8, 8), (5, 1), (64, 32)])
def test_layernormscale_takes_both_means_and_fills_the_stick(rows: int, cores: int) -> None:
    sizes = {"i": rows}
    spec = specification("layernormscale", [PAIR, PAIR], sizes, {"i": cores}, constants=CONSTANTS["layernormscale"])
    mean = numbers(np.random.default_rng(6), sizes)
    square = mean**2 + numbers(np.random.default_rng(7), sizes, positive=True)
    square = np.round(square * 16) / 16  # what the format holds
    zero, row, _ = places(PAIR, spec.args[0].device_coordinates, sizes)
    lanes = (np.tile(zero, 2), np.tile(row, 2), np.repeat([0, 1], rows))
    got = launch(spec, [(lanes, np.concatenate([mean, square]))])[0]
    want = 1 / np.sqrt(square - mean**2 + 0.25)
    np.testing.assert_allclose(got, np.repeat(want[:, None], 64, axis=1), rtol=2 * ulp(FP16))


@pytest.mark.parametrize("op", ["topkvalue", "topkindex"])
@pytest.mark.parametrize(("columns", "count", "rows"), [(40, 4, 64), (5, 3, 128), (1, 1, 100)])
def test_topk(op: str, columns: int, count: int, rows: int) -> None:
    sizes = {"m": rows, "k": count, "n": columns}
    result = INT32 if op == "topkindex" else FP16
    operands = [Operand(("m", "n"), ("m", "n"), "m"), Operand(("m", "k"), ("m", "k"), "m", result)]
    values = numbers(np.random.default_rng(8), {"m": rows, "n": columns})
    got = execute(specification(op, operands, sizes, {}, is_reduction=True), operands, [values], sizes)
    order = np.argsort(-values, axis=1, kind="stable")[:, :count]
    want = order if op == "topkindex" else np.take_along_axis(values, order, axis=1)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", ["matmul", "batchmatmul", "batchmatmulfp8"])
def test_products(op: str) -> None:
    narrow = FP8 if op.endswith("fp8") else FP16
    lanes = narrow.elements_per_stick or 0
    generator = np.random.default_rng(9)
    for batch, m, n, k, splits in (
        ((), 8, 2 * lanes, lanes, {"m": 8}),
        ((), 16, lanes, 2 * lanes, {"m": 8, "k": 2}),
        ((), 5, 2 * lanes, 2 * lanes, {"n": 2}),
        ((3,), 4, lanes, lanes, {"b": 3, "m": 4}),
        ((), 5, 2 * lanes - 58, lanes + 36, {"m": 5}),
        ((), 1, 4 * lanes, 2 * lanes, {"n": 4, "k": 2}),
    ):
        sizes = ({"b": batch[0]} if batch else {}) | {"m": m, "n": n, "k": k}
        outer = ("b",) if batch else ()
        operands = [
            Operand((*outer, "m", "k"), ("k", "m", *outer), "k", narrow),
            Operand((*outer, "k", "n"), ("n", "k", *outer), "n", narrow),
            Operand((*outer, "m", "n"), ("n", "m", *outer), "n"),
        ]
        shapes = [[sizes[symbol] for symbol in operand.symbols] for operand in operands[:2]]
        a, b = (np.asarray(generator.integers(-8, 9, shape), np.float64) / 8 for shape in shapes)
        got = execute(specification(op, operands, sizes, splits, is_reduction=True), operands, [a, b], sizes)
        where = f"{op} {sizes} over {splits}"
        # these sums are exact in float32: one rounding is left
        np.testing.assert_allclose(got, a @ b, rtol=2.0**-10, atol=0.0, err_msg=where)


@pytest.mark.parametrize("splits", [{}, {"s": 2, "c": 2}, {"s": 16, "c": 2}])
def test_gather(splits: Sizes) -> None:
    got, wanted = gathered(splits)
    np.testing.assert_array_equal(got, wanted)


def test_every_operation_of_the_emulator_and_of_the_code_generator_stands_in_this_file() -> None:
    here = {*POINTWISE, *CASTS, "ReStickifyOpHBM", "sum", "mean", "max", "min", "exx2", "layernormscale"}
    here |= {"qfp8wt", "prod"}  # those of tests/emulator/test_fp8_products.py and test_products_of_elements.py
    here |= {"topkvalue", "topkindex", "matmul", "batchmatmul", "batchmatmulfp8"}
    here |= {"avgpoolfwd", "conv2d", "depthwiseconv2dnative"}  # they have a file of their own, test_windows.py
    here |= {"shuffle"}  # tests/emulator/test_shuffles.py
    assert here == {record.name for record in DEVICE_OPERATIONS.values()}


def test_an_unknown_operation_is_refused_at_load_with_those_that_are_known() -> None:
    emitted = emit_opspecs(file_of(pointwise("exp", {"i": 8, "j": 64})))
    ((file, superdsc),) = emitted.superdscs.items()
    with pytest.raises(SpyrecError) as error:
        EmulatedDevice().load(emitted.program, {file: other_op(superdsc, "frobnicate")}, ArgumentTable((), 1 << 40))
    diagnostics = [item for item in error.value.diagnostics if item.code == "SPY0724"]
    assert ['"frobnicate"' in item.message for item in diagnostics] == [True]
    assert all(op in (diagnostics[0].hint or "") for op in DEVICE_OPERATIONS)
