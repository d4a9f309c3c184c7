"""What ``--check`` may forgive: an op's stated roundings, and not the errors of the steps it was made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.compare.bounds import bound_outputs
from spyrec.compare.check import check_outputs
from spyrec.compare.storage import DLFLOAT16
from spyrec.compare.verdict import CheckReport, OutputCase
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.hardware.dtypes import DType
from spyrec.ir.constants import load_constant
from spyrec.ir.numbers import decode, encode
from spyrec.ir.opdef import OpKind, catalogue
from spyrec.ir.ops.binary import AlphaAttributes
from spyrec.ir.reader import read_graph_data
from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompose import elementwise
from spyrec.passes.device_graph import rounding_graph

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[np.generic]

RANDOM = np.random.default_rng(20261123)
ROUNDOFF = {"float16": 2.0**-10, "float32": 2.0**-24}
INNER = 16 * 2.0**-24

EXACT = """
add sub bitwise_and bitwise_not bitwise_or bitwise_xor dropout hardtanh leaky_relu logical_and logical_not
logical_or logical_xor masked_fill prelu relu6 square threshold
"""
"""Made of steps that are exact, but for one that rounds once."""

NONE = ("ceil", "frac", "round", "sign", "trunc")
"""Made of steps that are all exact, or the host's: they state 0 roundings."""

FEW = "hardsigmoid hardswish"
"""Made of two or three steps that round, none of which cancels: each is exact where the sum of the first is small."""

QUOTIENTS: tuple[tuple[str, dict[str, object]], ...] = (
    ("floor_divide", {}),
    ("div", {"rounding_mode": "floor"}),
    ("div", {"rounding_mode": "trunc"}),
    ("remainder", {}),
    ("fmod", {}),
)
"""Whole quotients and what they leave, exact at the numbers that the device holds."""

UNPACKED = "_weight_int4pack_mm _weight_int8pack_mm"
"""Made of others where their weights are constants: in tests/passes/test_unpack_weights.py."""

PRODUCTS = "mm bmm mv dot matmul linear addmm scaled_dot_product_attention"
"""Sums of products: the bound of the product is the op's, a bias or a scale is one rounding more."""

WHOLE = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
addbmm addmv all aminmax any avg_pool1d avg_pool2d avg_pool3d baddbmm conv1d conv2d conv3d einsum
interpolate linalg_vector_norm log_softmax logsumexp max max_pool1d max_pool2d max_pool3d min norm outer slice_scatter
std_mean tril triu type_as var_mean
"""
"""Sums and statistics in float32 that are rounded once (D189, D191), products, and what chooses or moves elements."""


def held(values: object, dtype: str = "float16") -> Array:
    """Return numbers that the host's dtype and the device's format both hold."""
    array = np.asarray(values, dtype)
    return array if dtype == "float32" else (array.view(np.uint16) & np.uint16(0xFFFE)).view(np.float16)


LINE = np.linspace(-9, 9, 1024).reshape(8, 128)
TINY = RANDOM.standard_normal((8, 64)) * 2.0 ** RANDOM.integers(-9, 3, (8, 64))
WIDE = RANDOM.standard_normal((8, 64)) * 2.0 ** RANDOM.integers(-12, 6, (8, 64))
POSITIVE = np.abs(np.concatenate([LINE.ravel(), WIDE.ravel(), [1.0, 1.001953125, 0.998046875]])) + 2.0**-12
NEAR_ONE = 1.0 + np.arange(-40, 41) * 2.0**-9
ROWS = RANDOM.standard_normal((4, 64))

UNARY: dict[str, list[object]] = {
    "exp2": [LINE, TINY],
    "expm1": [LINE, TINY, np.linspace(-0.3, 0.3, 300)],
    "log1p": [np.abs(LINE), np.abs(TINY), np.linspace(-0.99, 0.3, 300), -TINY / 64],
    "log2": [POSITIVE, NEAR_ONE],
    "log10": [POSITIVE, NEAR_ONE],
    "elu": [LINE, TINY, WIDE],
    "selu": [LINE, TINY],
    "softsign": [LINE, WIDE, RANDOM.standard_normal(100) * 1000],
    "mish": [LINE, WIDE],
    "logsigmoid": [LINE, WIDE, LINE * 10],
    "silu": [LINE, WIDE],
    "glu": [LINE, WIDE],
}


def far_rows(width: int) -> Floats:
    """Return rows far from 0, of equal values, of subnormals, of one huge value, masked by the largest number."""
    normal = RANDOM.standard_normal((5, width))
    one = 60000 * np.eye(5, width)
    levels = np.repeat([[60000.0], [7.0], [-1000.0], [0.1], [2.0**-20]], width, axis=1)
    nearly = np.round(levels[1:3]) + (np.arange(width) == 3)
    masked = np.where(np.arange(width) < 5, normal, -65472.0)
    spread = RANDOM.uniform(-60000, 60000, (5, width))
    moved = [60000 + 100 * normal, -60000 + 50 * normal, 1000 + normal, 300 * normal, normal * 2.0**-20]
    return np.concatenate([spread, *moved, levels, nearly, one, normal + one, masked])


SMALL = np.concatenate([ROWS * 2.0**-22, ROWS * 2.0**-15, ROWS * 2.0**-11, ROWS, ROWS * 2.0**-15 + 2.0**-9])
"""Rows whose squares are below 2**-31, and others."""

POWERS = (0.3, -1.7, 3.0, 4.0, 2.5, -3.0)
CANCELLING = [ROWS, ROWS * (1 + 2.0**-8), np.ones((4, 64))]
NORMAL = [RANDOM.standard_normal(64), RANDOM.standard_normal(64)]
NORM_ROWS = [ROWS, ROWS + 1000, ROWS * 15000, ROWS / 100, WIDE]


@dataclass(frozen=True)
class Case:
    """One op on adversarial operands."""

    op: str
    operands: Sequence[object]
    attrs: Mapping[str, object]


def case(op: str, *operands: object, **attrs: object) -> Case:
    return Case(op, operands, attrs)


CASES: list[Case] = [
    *(case(op, values) for op, found in UNARY.items() for values in found),
    *(case("gelu", values, approximate="tanh") for values in (LINE, WIDE)),
    *(case("pow", values, exponent=power) for values in (POSITIVE, NEAR_ONE) for power in POWERS),
    *(case("pow", NEAR_ONE, exponent=power) for power in (100.0, 255.5, -200.3)),
    *(case("softmax", values, dim=-1) for values in (ROWS, ROWS * 30, ROWS + 1000, -np.abs(ROWS) * 15000, WIDE)),
    case("softmax", np.zeros((3, 70)), dim=1),
    *(
        case("layer_norm", values, *more, normalized_shape=[64])
        for values in (*NORM_ROWS, ROWS / 1000, np.eye(4, 64) * 300, np.full((2, 64), 7.0))
        for more in ([], NORMAL)
    ),
    *(
        case("rms_norm", values, *more, normalized_shape=[64], eps=1e-5)
        for values in NORM_ROWS
        for more in ([], NORMAL[:1])
    ),
    case("softmax", far_rows(64), dim=-1),
    case("softmax", far_rows(70), dim=-1),
    *(
        case(op, far_rows(width), *more, normalized_shape=[width], eps=1e-5)
        for op, width, more in (
            ("layer_norm", 64, NORMAL),
            ("layer_norm", 70, []),
            ("rms_norm", 64, NORMAL[:1]),
            ("rms_norm", 70, []),
        )
    ),
    *(
        case(op, SMALL, *more, normalized_shape=[64], eps=eps)
        for op, more in (("layer_norm", NORMAL), ("rms_norm", []))
        for eps in (0.0, 1e-12, 1e-8, 2.0**-22)
    ),
    *(
        case(op, values, *more, **attrs)
        for values in (*NORM_ROWS, SMALL, far_rows(64))
        for op, more, attrs in (
            ("var", [], {"dim": [-1]}),
            ("std", [], {"dim": [1], "correction": 0.0}),
            ("group_norm", NORMAL, {"num_groups": 1}),
        )
    ),
    *(
        case("instance_norm", values.reshape(-1, 2, 64))
        for values in (*NORM_ROWS, np.full((4, 64), 10000.0) + 8 * np.eye(4, 64))
    ),
    *(
        case("batch_norm", values, mean, np.abs(ROWS[1]) + variance, *more, eps=1e-5)
        for values, mean, variance, more in (
            (ROWS, ROWS[0], 0.5, NORMAL),
            (WIDE, ROWS[0] / 64, 2.0**-10, []),
            (far_rows(64), far_rows(64)[0] + ROWS[0], 0.5, NORMAL),
        )
    ),
    case("lerp", ROWS, -ROWS, np.full((4, 64), 0.5)),
    case("lerp", WIDE, WIDE[::-1].copy(), np.abs(ROWS[:1]) / 4),
    case("addcmul", *CANCELLING, value=-1.0),
    case("addcmul", WIDE, TINY, TINY, value=0.3),
    case("addcdiv", *CANCELLING, value=-1.0),
    case("rsub", ROWS, ROWS / 3, alpha=0.3333),
    case("add", ROWS, ROWS * 3, alpha=-0.3333),
    case("sub", ROWS, ROWS * 3, alpha=0.3333),
]


def graph_of(op: str, arrays: Sequence[Array], attrs: Mapping[str, object]) -> dict[str, object]:
    inputs: list[dict[str, object]] = [
        {"name": f"x{at}", "shape": [*item.shape], "dtype": item.dtype.name} for at, item in enumerate(arrays)
    ]
    node = {"name": "n", "op": op, "inputs": [item["name"] for item in inputs], "outputs": ["y"], "attrs": dict(attrs)}
    return {"format": "spyrec.graph/1", "name": "g", "inputs": inputs, "nodes": [node], "outputs": ["y"]}


def reference(graph: Mapping[str, object], arrays: Sequence[Floats]) -> Floats:
    node = read_graph_data(dict(graph)).nodes[0]
    definition = catalogue()[node.op]
    operands = [*arrays, *[None] * (len(definition.operands) - len(arrays))]
    with np.errstate(all="ignore"):
        return np.asarray(definition.reference(operands, node.attributes)[0], np.float64)


CENTRED = ("layer_norm", "group_norm", "instance_norm", "var", "std")


def distances(op: str, x: Floats) -> Floats:
    """Return what roundings of the first operand are relative to: no difference between rows moved by a number."""
    centres = {"softmax": x.max, **dict.fromkeys(CENTRED, x.mean)}
    return x - centres[op](axis=-1, keepdims=True) if op in centres else x


def allowed(graph: Mapping[str, object], op: str, arrays: Sequence[Floats], dtype: str) -> Floats:
    """Return what the stated roundings allow: operands moved up, down and at random, then the result rounded."""
    stated = catalogue()[op].roundings
    assert stated is not None
    want = reference(graph, arrays)
    relative = stated.operands * ROUNDOFF[dtype]
    worst = np.zeros(want.shape)
    for corner in range(2 ** len(arrays) + 12):
        signs: list[float | Floats] = [1.0 - 2.0 * (corner >> at & 1) for at in range(len(arrays))]
        if corner >= 2 ** len(arrays):
            signs = [RANDOM.choice((-1.0, 1.0), size=x.shape) for x in arrays]
        errors = [(relative + INNER) * sign * x for x, sign in zip(arrays, signs, strict=True)]
        if op in (*CENTRED, "softmax"):
            errors[0] = (relative + INNER) * (distances(op, arrays[0]) * signs[0] + errors[0])
        moved = reference(graph, [x + error for x, error in zip(arrays, errors, strict=True)])
        worst = np.maximum(worst, np.abs(moved - want))
    least = 2.0**-24 if dtype == "float16" else 2.0**-120
    return 2 * worst + (stated.result * ROUNDOFF[dtype] + INNER) * (np.abs(want) + worst) + least


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("found", CASES, ids=[f"{item.op}-{number}" for number, item in enumerate(CASES)])
def test_a_device_form_errs_by_the_stated_roundings_of_its_op(found: Case, dtype: str) -> None:
    op, operands, attrs = found.op, found.operands, found.attrs
    arrays = [held(item, dtype) for item in operands]
    graph = graph_of(op, arrays, attrs)
    exact = [item.astype(np.float64) for item in arrays]
    want = reference(graph, exact)
    run = spyrec.run(
        spyrec.compile(graph), {f"x{at}": item for at, item in enumerate(arrays)}, spyrec.RunOptions(check=True)
    )
    assert run.check is not None
    assert run.check["y"].ok, run.check["y"]
    got = run.outputs["y"].astype(np.float64)
    with np.errstate(all="ignore"):
        wrong = ~(np.abs(got - want) <= allowed(graph, op, exact, dtype)) & (np.abs(want) <= 65504.0)
    places = np.argwhere(wrong)[:5]
    assert not places.size, [(tuple(at), got[tuple(at)], want[tuple(at)]) for at in places]


def test_every_op_that_is_made_of_others_states_its_roundings_or_rounds_once() -> None:
    made = {item.name for item in catalogue().values() if item.kind is OpKind.COMPOSITE}
    stating = {item.name for item in catalogue().values() if item.roundings is not None}
    known = {*EXACT.split(), *FEW.split(), *PRODUCTS.split(), *WHOLE.split()}
    ours = made - stating - known
    assert not ours, ours
    exact = {*NONE, *(op for op, _ in QUOTIENTS)} - {"div"}
    assert {item.op for item in CASES} | set(UNPACKED.split()) | exact >= stating
    assert {item.name for item in catalogue().values() if item.roundings and item.roundings.is_exact} == exact
    assert [item.name for item in catalogue().values() if item.exact_with is not None] == ["div"]


def _planted(report_of: Callable[[Floats], CheckReport], want: Floats, at: int, off: float) -> bool:
    """Whether the check fails where one element of a right result is off."""
    got = want.copy()
    got[at] += off
    report = report_of(got)
    return report.failed_elements == 1 and report.worst.index == (at,)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("op", NONE)
def test_an_exact_op_is_the_op_at_the_number_that_the_device_holds(op: str, dtype: str) -> None:
    """Steps forgave a rounding of x, which from 512 on is any fraction."""
    limit = 511.5 if dtype == "float16" else 2.0**22 - 0.5
    x = held(
        np.concatenate([np.arange(-limit, limit, limit / 511), LINE.ravel(), WIDE.ravel(), [0.0, 3.0, -3.0]]), dtype
    )
    graph = graph_of(op, [x], {})
    want = reference(graph, [x.astype(np.float64)])
    run = spyrec.run(spyrec.compile(graph), {"x0": x}, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert run.check["y"].ok
    np.testing.assert_array_equal(run.outputs["y"].astype(np.float64), want)
    source = read_graph_data(graph)

    def report_of(got: Floats) -> CheckReport:
        return check_outputs(source, {"x0": x}, {"y": got})["y"]

    for at in (0, 1, 510, 900, len(x) - 1):
        assert _planted(report_of, want, at, 2.0**-9), (at, x[at])


@pytest.mark.parametrize(("op", "attributes"), QUOTIENTS, ids=str)
def test_a_whole_quotient_is_no_other_whole_number(op: str, attributes: Mapping[str, object]) -> None:
    """One rounding of a quotient from 512 on is a whole number."""
    x = held(np.arange(1536.0, 3072.0, 6.0), "float16")
    divisor = np.full(x.shape, 2.5 if op in ("remainder", "fmod") else 3.0, np.float16)
    graph = graph_of(op, [x, divisor], dict(attributes))
    inputs = {"x0": x, "x1": divisor}
    run = spyrec.run(spyrec.compile(graph), inputs, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert run.check["y"].ok
    exact, by = x.astype(np.float64), divisor.astype(np.float64)
    want = np.fmod(exact, by) if op in ("remainder", "fmod") else np.floor(exact / by)
    source = read_graph_data(graph)

    def report_of(got: Floats) -> CheckReport:
        return check_outputs(source, inputs, {"y": got})["y"]

    off = 2.0**-9 if op in ("remainder", "fmod") else 1.0
    for at in (0, 1, 100, len(x) - 1):
        assert _planted(report_of, want, at, off), (at, x[at])


@pytest.mark.parametrize(("op", "attributes"), QUOTIENTS, ids=str)
def test_a_quotient_of_what_was_rounded_may_be_the_next_whole_number(op: str, attributes: Mapping[str, object]) -> None:
    """The host's quotient of a sum that the device rounded: a choice, which no check reports."""
    x, y = (held(RANDOM.uniform(1.0, 40.0, (16, 64)), "float16") for _ in range(2))
    divisor = held(RANDOM.choice([0.5, 1.0, 3.0], x.shape), "float16")
    kinds = [{"name": name, "shape": [16, 64], "dtype": "float16"} for name in ("x", "y", "by")]
    nodes = [
        {"name": "sum", "op": "add", "inputs": ["x", "y"]},
        {"name": "z", "op": op, "inputs": ["sum", "by"], "attrs": dict(attributes)},
    ]
    graph = {"format": "spyrec.graph/1", "name": "g", "inputs": kinds, "nodes": nodes, "outputs": ["z"]}
    run = spyrec.run(spyrec.compile(graph), {"x": x, "y": y, "by": divisor}, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert run.check["z"].ok


def test_a_tangent_whose_pole_lies_within_the_error_has_no_bound() -> None:
    """tan of squares that the device rounds: wherever the pole is nearer than the rounding (a find of a campaign)."""
    x = np.arange(0x3C00, 0x4F00, 2, dtype=np.uint16).view(np.float16)  # from 1 to 28
    squares = x.astype(np.float64) ** 2
    distance = np.abs((np.floor(squares / np.pi) + 0.5) * np.pi - squares)
    is_near = distance < ROUNDOFF["float16"] * squares
    nodes = [{"name": "square", "op": "mul", "inputs": ["x", "x"]}, {"name": "y", "op": "tan", "inputs": ["square"]}]
    kinds = [{"name": "x", "shape": list(x.shape), "dtype": "float16"}]
    graph = {"format": "spyrec.graph/1", "name": "g", "inputs": kinds, "nodes": nodes, "outputs": ["y"]}
    run = spyrec.run(spyrec.compile(graph), {"x": x}, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert run.check["y"].ok, run.check["y"].worst
    assert 0 < is_near.sum() <= run.check["y"].element_count - run.check["y"].bounded_elements < len(x) / 4
    wrong = run.outputs["y"].astype(np.float64)
    (far,) = np.nonzero(distance > 0.5)
    wrong[far[0]] *= 1.25
    assert check_outputs(read_graph_data(graph), {"x": x}, {"y": wrong.astype(np.float16)})["y"].failed_elements == 1


NAN_READ_BY_THE_HOST: list[tuple[str, dict[str, JsonValue], int]] = [
    ("argmax", {"dim": 0}, 1),
    ("argmin", {"dim": 0}, 1),
    ("sort", {}, 2),
    ("argsort", {}, 1),
    ("topk", {"k": 3}, 2),
    ("kthvalue", {"k": 3}, 2),
    ("cummax", {"dim": 0}, 2),
    ("cummin", {"dim": 0}, 2),
    ("max", {"dim": 0}, 2),
    ("min", {"dim": 0}, 2),
    ("isnan", {}, 1),
    ("isinf", {}, 1),
    ("nan_to_num", {}, 1),
]


@pytest.mark.parametrize(("op", "attributes", "results"), NAN_READ_BY_THE_HOST)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_nan_that_the_device_has_made_is_an_infinity_to_the_host(
    op: str, attributes: dict[str, JsonValue], results: int, dtype: str
) -> None:
    """0 / 0 in 16 bits, of which the largest is asked: one pattern for both, so that no place of it is wrong.

    float32 tells them apart, and is held to its answer (a find of a campaign: NNSmith's argmax of abs of a quotient).
    """
    outputs = [f"y{index}" for index in range(results)]
    nodes: list[JsonValue] = [
        {"name": "quotient", "op": "div", "inputs": ["x", "zero"]},
        {"name": "size", "op": "abs", "inputs": ["quotient"]},
        {"name": "y0", "op": op, "inputs": ["size"], "attrs": attributes, "outputs": [*outputs]},
    ]
    x = np.array([0.1875, -1.375, 0.0, 2.5, 0.0, -0.5], np.dtype(dtype))
    kinds: list[JsonValue] = [
        {"name": "x", "shape": [6], "dtype": dtype},
        {"name": "zero", "shape": [], "dtype": dtype},
    ]
    graph: dict[str, JsonValue] = {"format": "spyrec.graph/1", "inputs": kinds, "nodes": nodes, "outputs": [*outputs]}
    inputs = {"x": x, "zero": np.zeros_like(x[0])}
    run = spyrec.run(spyrec.compile(graph), inputs, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert all(report.ok for report in run.check.values()), run.check
    if op == "argmax":
        other = check_outputs(read_graph_data(graph), inputs, {"y0": np.array(3)})["y0"]
        assert other.ok is (dtype != "float32")


READ_BY_THE_HOST: list[tuple[str, list[str], dict[str, object], int]] = [
    ("sort", ["x"], {}, 2),
    ("max", ["x"], {"dim": 0}, 2),
    ("topk", ["x"], {"k": 2}, 2),
    ("gather", ["x", "places"], {"dim": 0}, 1),
    ("cumsum", ["x"], {"dim": 0}, 1),
    ("nan_to_num", ["x"], {}, 1),
]


@pytest.mark.parametrize(("op", "names", "attributes", "results"), READ_BY_THE_HOST)
def test_what_the_host_alone_reads_is_what_it_was_given(
    op: str, names: list[str], attributes: dict[str, object], results: int
) -> None:
    """bfloat16 beyond the device's 16 bits: the graph's own numbers are right, and others are not."""
    x = encode(np.array([1.0, 1e12, -np.inf if op == "nan_to_num" else -3e30, 2.0]), DType.BFLOAT16)
    inputs = {"x": x, "places": np.array([3, 2, 1, 1])}
    outputs = [f"y{index}" for index in range(results)]
    node = {"name": "y0", "op": op, "inputs": names, "attrs": attributes, "outputs": outputs}
    kinds = [{"name": "x", "shape": [4], "dtype": "bfloat16"}, {"name": "places", "shape": [4], "dtype": "int64"}]
    kinds = [item for item in kinds if item["name"] in names]
    graph = {"format": "spyrec.graph/1", "name": "g", "inputs": kinds, "nodes": [node], "outputs": outputs}
    inputs = {name: inputs[name] for name in names}
    run = spyrec.run(spyrec.compile(graph), inputs, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert all(report.ok for report in run.check.values()), run.check
    numbers = decode(run.outputs["y0"], DType.BFLOAT16).astype(np.float64)
    assert np.abs(numbers).max() > 9e11
    off = encode(numbers * np.where(np.abs(numbers) > 1e10, 1.0 - 2.0**-5, 1.0), DType.BFLOAT16)
    assert not check_outputs(read_graph_data(graph), inputs, {**run.outputs, "y0": off})["y0"].ok


@pytest.mark.parametrize("op", NONE)
def test_an_exact_op_is_held_to_no_more_than_what_rounding_its_operand_changes(op: str) -> None:
    """float16 of 11 digits, of which the device holds 10: the fraction of 700.5 is lost, and no more than that."""
    x = np.array([700.5, 366.5, -700.5, 2.9995, 1023.5, 19.75, 5.25], np.float16)
    graph = graph_of(op, [x], {})
    exact = x.astype(np.float64)
    run = spyrec.run(spyrec.compile(graph), {"x0": x}, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert run.check["y"].ok
    source, want = read_graph_data(graph), reference(graph, [exact])

    def report_of(got: Floats) -> CheckReport:
        return check_outputs(source, {"x0": x}, {"y": got})["y"]

    stored = reference(graph, [DLFLOAT16.rounded(x).astype(np.float64)])
    for at in range(len(x)):
        assert _planted(report_of, want, at, 2.0 * abs(stored[at] - want[at]) + 2.0**-7), (at, x[at])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("op", NONE)
def test_an_exact_op_after_roundings_is_not_held_to_a_choice_that_they_turn_over(op: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    a, b = held(random.integers(-40, 41, (8, 64)) * 0.25), held(random.standard_normal((64, 64)))
    whole = held(np.rint(b.astype(np.float64) * 4) / 4)
    inputs = [{"name": name, "shape": [*item.shape], "dtype": "float16"} for name, item in (("a", a), ("b", whole))]
    nodes: list[dict[str, object]] = [
        {"name": "p", "op": "matmul", "inputs": ["a", "b"], "outputs": ["p"], "attrs": {}},
        {"name": "s", "op": "mul", "inputs": ["p", 0.1], "outputs": ["s"], "attrs": {}},
        {"name": "t", "op": "mul", "inputs": ["s", 10.0], "outputs": ["t"], "attrs": {}},
        {"name": "n", "op": op, "inputs": ["t"], "outputs": ["y"], "attrs": {}},
    ]
    graph: dict[str, object] = {
        "format": "spyrec.graph/1", "name": "g", "inputs": inputs, "nodes": nodes, "outputs": ["y"],
    }  # fmt: skip
    run = spyrec.run(spyrec.compile(graph), {"a": a, "b": whole}, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert run.check["y"].ok, run.check["y"]
    source = read_graph_data(graph)
    product = a.astype(np.float64) @ whole.astype(np.float64)
    for nudge in (-(2.0**-9), 2.0**-9):  # as another order of roundings might have it
        moved = DLFLOAT16.rounded(product * (1 + nudge)).astype(np.float64)
        got = reference(graph_of(op, [a], {}), [moved])
        assert check_outputs(source, {"a": a, "b": whole}, {"y": got})["y"].ok


def _bad_gelu(builder: NodeBuilder) -> str:
    """``0.5 x (1 + tanh(z))``: the sum has no digits left where tanh is close to -1."""
    (x,) = builder.node.inputs
    assert isinstance(x, str)
    dtype = DType.FLOAT16
    cube = builder.emit("mul", builder.emit("mul", x, x), x)
    scaled = builder.emit("mul", cube, builder.number(0.044715, dtype))
    inner = builder.emit("add", x, scaled, attributes=AlphaAttributes())
    bent = builder.emit("tanh", builder.emit("mul", inner, builder.number(0.7978845608028654, dtype)))
    shifted = builder.emit("add", bent, builder.number(1.0, dtype), attributes=AlphaAttributes())
    return builder.emit("mul", builder.emit("mul", x, builder.number(0.5, dtype)), shifted)


def test_a_decomposition_that_cancels_is_refused_though_its_own_bound_forgives_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def always(_node: object, _types: object) -> Callable[[NodeBuilder], str]:
        return _bad_gelu

    table = dict(elementwise.SOMETIMES)
    table["gelu"] = always
    monkeypatch.setattr(elementwise, "SOMETIMES", table)
    x = held(np.linspace(-4, -2.5, 128))
    graph = graph_of("gelu", [x], {"approximate": "tanh"})
    run = spyrec.run(spyrec.compile(graph), {"x0": x}, spyrec.RunOptions(check=True))
    want = reference(graph, [x.astype(np.float64)])
    got = run.outputs["y"].astype(np.float64)
    assert float(np.max(np.abs(got - want) / np.abs(want))) > 0.2
    source = read_graph_data(graph)
    lowered = rounding_graph(source)

    def load(name: str) -> Array:
        return load_constant(lowered, name)

    (forgiving,) = bound_outputs(lowered, {"x0": x}, load, "dl16")
    assert OutputCase(want, got, forgiving, DType.FLOAT16, "dl16").report(merges_nan=True).ok
    assert run.check is not None
    assert not run.check["y"].ok


@pytest.mark.parametrize("found", CASES[::3], ids=[f"{item.op}-{3 * number}" for number, item in enumerate(CASES[::3])])
def test_an_error_beyond_the_stated_roundings_fails_the_check(found: Case) -> None:
    op, operands, attrs = found.op, found.operands, found.attrs
    arrays = [held(item) for item in operands]
    graph = graph_of(op, arrays, attrs)
    exact = [item.astype(np.float64) for item in arrays]
    want = reference(graph, exact)
    place = np.unravel_index(int(np.argmax(np.where(np.abs(want) < 1000, np.abs(want), 0.0))), want.shape)
    got = want.copy()
    got[place] += 8.0 * allowed(graph, op, exact, "float16")[place] + 2.0**-9 * np.abs(want[place])
    given = {f"x{at}": item for at, item in enumerate(arrays)}
    report = check_outputs(read_graph_data(graph), given, {"y": got})["y"]
    assert report.failed_elements == 1
    assert report.worst.index == tuple(map(int, place))


def test_rows_far_from_zero_are_held_to_the_distances_of_their_elements() -> None:
    """A number near -60,000 is stored in steps of 64: had it been off by one, any result would be right."""
    x = held(50 * ROWS - 60000)
    graph = graph_of("layer_norm", [x], {"normalized_shape": [64]})
    want = reference(graph, [x.astype(np.float64)])
    got = want.copy()
    place = np.unravel_index(int(np.argmax(np.abs(want))), want.shape)
    got[place] *= 1.03
    report = check_outputs(read_graph_data(graph), {"x0": x}, {"y": got})["y"]
    assert report.failed_elements == 1
    assert report.worst.index == tuple(map(int, place))


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6, 1e7])
@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("group_norm", {"num_groups": 2}),
        ("instance_norm", {}),
        ("layer_norm", {"normalized_shape": [16]}),
        ("var", {"dim": [-1]}),
        ("std", {"dim": [-1]}),
        ("var", {}),
    ],
)
def test_rows_of_float32_far_from_zero_lose_nothing_and_are_forgiven_nothing(
    op: str, attrs: Mapping[str, object], offset: float
) -> None:
    """A mean of 1e7 is rounded to multiples of 1: what is left of it in the distances is taken out with theirs."""
    x = (offset + np.random.default_rng(5).standard_normal((2, 4, 16))).astype(np.float32)
    graph = graph_of(op, [x], attrs)
    want = reference(graph, [x.astype(np.float64)])
    run = spyrec.run(spyrec.compile(graph), {"x0": x}, spyrec.RunOptions(check=True))
    np.testing.assert_allclose(run.outputs["y"].astype(np.float64), want, rtol=4e-7, atol=4e-7)
    assert run.check is not None
    assert run.check["y"].ok, run.check["y"]
    place = np.unravel_index(int(np.argmax(np.abs(want))), want.shape)
    got = want.copy()
    got[place] *= 1 + 1e-4
    report = check_outputs(read_graph_data(graph), {"x0": x}, {"y": got})["y"]
    assert (report.failed_elements, report.worst.index) == (1, tuple(map(int, place)))


@pytest.mark.parametrize(("op", "attrs"), [("group_norm", {"num_groups": 1}), ("std", {"dim": [-1]})])
def test_rows_of_one_number_have_no_spread(op: str, attrs: Mapping[str, object]) -> None:
    """A third of their sum is not that number in float32, and beside an eps the difference were a result."""
    x = np.repeat([[10000.0], [-65472.0]], 3, axis=1).astype(np.float16)
    run = spyrec.run(spyrec.compile(graph_of(op, [x], attrs)), {"x0": x}, spyrec.RunOptions(check=True))
    assert np.max(np.abs(run.outputs["y"])) < 1e-6
    assert run.check is not None
    assert run.check["y"].ok, run.check["y"]


VANISHING = np.concatenate([[-np.inf, -1e30, -120.0], np.linspace(-104, -80, 93), np.linspace(-8, 8, 31), [np.inf]])


def _gated(op: str) -> tuple[Array, Mapping[str, object]]:
    x = VANISHING.astype(np.float32)
    return (np.concatenate([np.full_like(x, 1000.0), x]), {"dim": 0}) if op == "glu" else (x, {})


@pytest.mark.parametrize("op", ["silu", "mish", "glu"])
def test_a_gate_below_float32s_normal_numbers_has_no_relative_digits(op: str) -> None:
    """The product is a normal number or a few subnormals; its factor was rounded to a multiple of 2**-149."""
    x, attrs = _gated(op)
    run = spyrec.run(spyrec.compile(graph_of(op, [x], attrs)), {"x0": x}, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert run.check["y"].ok, run.check["y"]
    assert run.check["y"].bounded_elements == VANISHING.size


@pytest.mark.parametrize("op", ["silu", "mish", "glu"])
@pytest.mark.parametrize(("near", "factor"), [(-3.0, 1.03), (-85.0, 1.0001), (-95.0, 1.03), (-102.0, 4.0), (3.0, 1.03)])
def test_elsewhere_a_gate_is_held_to_its_digits(op: str, near: float, factor: float) -> None:
    x, attrs = _gated(op)
    graph = graph_of(op, [x], attrs)
    got = reference(graph, [x.astype(np.float64)])
    place = int(np.argmin(np.abs(VANISHING - near)))
    got[place] *= factor
    report = check_outputs(read_graph_data(graph), {"x0": x}, {"y": got})["y"]
    assert (report.failed_elements, report.worst.index) == (1, (place,))


@pytest.mark.parametrize("op", ["addcmul", "addcdiv"])
def test_half_a_term_beyond_float32_is_a_number(op: str) -> None:
    """PyTorch multiplies by ``value`` first; a term that is halved after it has overflowed stays an infinity."""
    left, right = np.full((1, 64), 2e19, np.float32), np.full((1, 64), 2e19 if op == "addcmul" else 5e-20, np.float32)
    builder = spyrec.GraphBuilder("g")
    x, one, other = (builder.input(name, (1, 64), "float32") for name in ("x", "one", "other"))
    builder.output(getattr(builder, op)(x, one, other, value=0.5, name="y"))
    given = {"x": np.zeros((1, 64), np.float32), "one": left, "other": right}
    found = spyrec.run(spyrec.compile(builder), given, spyrec.RunOptions(check=True))
    assert (np.abs(np.asarray(found.outputs["y"], np.float64) / 2e38 - 1) < 1e-6).all()
    assert found.check is not None
    assert found.check["y"].ok


@pytest.mark.parametrize(
    ("op", "dtype", "size", "result", "is_forgiven"),
    [
        ("norm", "float32", 1e20, np.inf, True),
        ("norm", "float32", 1e-24, 0.0, True),
        ("rms_norm", "float32", 1e20, 0.0, False),
        ("norm", "float32", 4e18, np.inf, True),
        ("std", "float32", 4e18, np.inf, False),
        ("var", "float32", 4e18, np.inf, False),
        ("var", "float32", 1e20, np.inf, True),
        ("std", "float32", 1e-24, 0.0, False),
        ("var", "float32", 1e-24, 0.0, True),
        ("group_norm", "float32", 2e19, 0.0, False),
        ("rms_norm", "bfloat16", 2.0**17, 0.0, False),
        ("layer_norm", "bfloat16", 2.0**17, 0.0, False),
    ],
)
def test_squares_that_leave_the_format_do_what_the_page_of_ops_says(
    op: str, dtype: str, size: float, result: float, is_forgiven: bool
) -> None:
    builder = spyrec.GraphBuilder("g")
    x = builder.input("x", (2, 64), dtype)
    calls = {
        "norm": {"dim": [1]},
        "std": {"dim": [1]},
        "var": {"dim": [1]},
        "group_norm": {"num_groups": 1},
        "rms_norm": {"normalized_shape": [64]},
        "layer_norm": {"normalized_shape": [64]},
    }
    builder.output(getattr(builder, op)(x, **calls[op]))
    given = encode(np.tile([-size, size], (2, 32)), DType(dtype))
    found = spyrec.run(spyrec.compile(builder), {"x": given}, spyrec.RunOptions(check=True))
    assert found.check is not None
    ((name, report),) = found.check.items()
    assert (decode(found.outputs[name], DType(dtype)) == result).all()
    assert report.ok is is_forgiven


def test_distances_below_the_smallest_number_are_off_by_an_absolute_rounding() -> None:
    """Rows of 2**-30: their distances are stored as 0 or 2**-31, which layer_norm scales by 1 / sqrt(1e-5)."""
    graph = graph_of("layer_norm", [ROWS.astype(np.float16)], {"normalized_shape": [64]})
    graph["inputs"] = [{"name": "x0", "shape": [4, 64], "dtype": "bfloat16"}]
    compiled = spyrec.compile(graph)
    for exponent, offset in product((-24, -26, -28, -30, -31, -33), (0.0, 1.0)):
        single = ((ROWS + offset) * 2.0**exponent).astype(np.float32)
        given = {"x0": (single.view(np.uint32) >> 16).astype(np.uint16)}
        run = spyrec.run(compiled, given, spyrec.RunOptions(check=True))
        assert run.check is not None
        assert run.check["y"].ok, (exponent, offset, run.check["y"])
        got = (run.outputs["y"].astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        got[1, 2] += (12 * 2.0**-32 + 2.0**-4 * 2.0**exponent) / np.sqrt(1e-5)
        assert not check_outputs(read_graph_data(graph), given, {"y": got})["y"].ok


@pytest.mark.parametrize("op", ["add", "sub", "rsub"])
def test_a_product_that_overflows_inside_of_a_sum_is_reported(op: str) -> None:
    """alpha other is a float32 number: the sum of 3e38 and -6e38 is an infinity, and the check says so."""
    x = np.full((64,), 3e38, np.float32)
    graph = graph_of(op, [x, x], {"alpha": -2.0 if op == "add" else 2.0})
    run = spyrec.run(spyrec.compile(graph), {"x0": x, "x1": x}, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert np.isinf(run.outputs["y"]).all()
    assert not run.check["y"].ok
