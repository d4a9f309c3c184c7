"""The references against values from outside: published numbers, SciPy, and definitions written as plain loops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import NO_ATTRIBUTES, DimAttributes
from spyrec.ir.opdef import Attributes, catalogue
from spyrec.ir.ops.attention import AttentionAttributes
from spyrec.ir.ops.binary import AlphaAttributes, DivAttributes
from spyrec.ir.ops.contraction import AddmmAttributes
from spyrec.ir.ops.movement import FullAttributes, JoinAttributes, RepeatAttributes
from spyrec.ir.ops.normalization import (
    Exx2Attributes,
    LayerNormAttributes,
    LayerNormScaleAttributes,
    RmsNormAttributes,
    SoftmaxAttributes,
)
from spyrec.ir.ops.reduction import ReductionAttributes
from spyrec.ir.ops.selection import SliceAttributes
from spyrec.ir.ops.unary import ClampAttributes, GeluAttributes, PowAttributes, SoftplusAttributes
from spyrec.ir.ops.unit_dims import SqueezeAttributes
from spyrec.ir.ops.views import ExpandAttributes, FlattenAttributes, PermuteAttributes, ReshapeAttributes

POINTS = np.array([-50.0, -8.0, -2.0, -1.0, -0.3, -1e-6, 0.0, 1e-6, 0.3, 1.0, 2.0, 8.0, 50.0])
RANDOM = np.random.default_rng(7)


Floats = npt.NDArray[np.float64]


def call(name: str, operands: Sequence[object], attributes: Attributes = NO_ATTRIBUTES) -> Floats:
    arrays = [None if item is None else np.asarray(item) for item in operands]
    with np.errstate(all="ignore"):
        return cast("Floats", catalogue()[name].reference(arrays, attributes)[0])


def each(function: Callable[[float], float]) -> Floats:
    return np.array([function(float(x)) for x in POINTS])


UNARY: list[tuple[str, Attributes, Callable[[float], float]]] = [
    ("abs", NO_ATTRIBUTES, math.fabs),
    ("neg", NO_ATTRIBUTES, lambda x: -x),
    ("exp", NO_ATTRIBUTES, math.exp),
    ("tanh", NO_ATTRIBUTES, math.tanh),
    ("floor", NO_ATTRIBUTES, math.floor),
    ("relu", NO_ATTRIBUTES, lambda x: x if x > 0 else 0.0),
    ("square", NO_ATTRIBUTES, lambda x: x * x),
    ("sigmoid", NO_ATTRIBUTES, lambda x: float(special.expit(x))),
    ("silu", NO_ATTRIBUTES, lambda x: x * float(special.expit(x))),
    ("gelu", GeluAttributes(), lambda x: x * float(special.ndtr(x))),
    ("gelu", GeluAttributes("tanh"), lambda x: 0.5 * x * (1 + math.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))),
    ("softplus", SoftplusAttributes(), lambda x: math.log1p(math.exp(x)) if x <= 20 else x),
    ("softplus", SoftplusAttributes(3.0, 1.5), lambda x: math.log1p(math.exp(3 * x)) / 3 if 3 * x <= 1.5 else x),
    ("clamp", ClampAttributes(-0.5, 1.5), lambda x: min(max(x, -0.5), 1.5)),
    ("clamp", ClampAttributes(2.0, -2.0), lambda _: -2.0),
    ("pow", PowAttributes(3.0), lambda x: x * x * x),
]


@pytest.mark.parametrize(("name", "attributes", "function"), UNARY)
def test_unary_reference_is_the_textbook_function(
    name: str, attributes: Attributes, function: Callable[[float], float]
) -> None:
    np.testing.assert_allclose(call(name, [POINTS], attributes), each(function), rtol=1e-13, atol=1e-14)


ON_POSITIVE: list[tuple[str, Callable[[float], float]]] = [
    ("log", math.log),
    ("sqrt", math.sqrt),
    ("rsqrt", lambda x: 1 / math.sqrt(x)),
    ("reciprocal", lambda x: 1 / x),
]


@pytest.mark.parametrize(("name", "function"), ON_POSITIVE)
def test_unary_reference_on_positive_numbers(name: str, function: Callable[[float], float]) -> None:
    positive = POINTS[POINTS > 0]
    np.testing.assert_allclose(call(name, [positive]), [function(float(x)) for x in positive], rtol=1e-14)


def test_gelu_has_the_published_values() -> None:
    # torch.nn.functional.gelu in float64 at 1: x Phi(x), Phi(1) = 0.8413447460685429 (any normal table)
    assert call("gelu", [1.0], GeluAttributes()) == pytest.approx(0.8413447460685429, rel=1e-15)
    assert call("gelu", [-10.0], GeluAttributes()) == pytest.approx(-10 * 7.61985302416047e-24, rel=1e-9)


@pytest.mark.parametrize("name", ["gelu", "silu"])
def test_gates_vanish_at_minus_infinity(name: str) -> None:
    attributes = GeluAttributes() if name == "gelu" else NO_ATTRIBUTES
    np.testing.assert_array_equal(call(name, [[-np.inf, np.inf]], attributes), [0.0, np.inf])


BINARY: list[tuple[str, Attributes, Callable[[float, float], float]]] = [
    ("add", AlphaAttributes(0.5), lambda x, y: x + 0.5 * y),
    ("sub", AlphaAttributes(2.0), lambda x, y: x - 2 * y),
    ("mul", NO_ATTRIBUTES, lambda x, y: x * y),
    ("div", DivAttributes(), lambda x, y: x / y),
    ("maximum", NO_ATTRIBUTES, max),
    ("minimum", NO_ATTRIBUTES, min),
    ("eq", NO_ATTRIBUTES, lambda x, y: x == y),
    ("ne", NO_ATTRIBUTES, lambda x, y: x != y),
    ("lt", NO_ATTRIBUTES, lambda x, y: x < y),
    ("le", NO_ATTRIBUTES, lambda x, y: x <= y),
    ("gt", NO_ATTRIBUTES, lambda x, y: x > y),
    ("ge", NO_ATTRIBUTES, lambda x, y: x >= y),
    ("logical_and", NO_ATTRIBUTES, lambda x, y: bool(x and y)),
]


@pytest.mark.parametrize(("name", "attributes", "function"), BINARY)
def test_binary_reference_works_element_by_element_under_broadcasting(
    name: str, attributes: Attributes, function: Callable[[float, float], float]
) -> None:
    left, right = np.array([[-1.5, 2.0, 0.25]]), np.array([[2.0], [-1.5], [4.0]])
    wanted = [[function(float(left[0, j]), float(right[i, 0])) for j in range(3)] for i in range(3)]
    np.testing.assert_array_equal(call(name, [left, right], attributes), wanted)


def test_where_and_bools_count_as_zero_and_one_beside_floats() -> None:
    condition = np.array([True, False])
    np.testing.assert_array_equal(call("where", [condition, [1.0, 2.0], [3.0, 4.0]]), [1.0, 4.0])
    np.testing.assert_array_equal(call("mul", [condition, [2.5, 3.5]]), [2.5, 0.0])
    np.testing.assert_array_equal(call("logical_not", [[0.0, -0.0, 2.0]]), [True, True, False])


def test_reductions_fold_any_dims() -> None:
    x = RANDOM.standard_normal((2, 3, 4, 5))
    folds: dict[str, Callable[[list[float]], float]] = {
        "sum": math.fsum,
        "mean": lambda values: math.fsum(values) / len(values),
        "amax": max,
        "amin": min,
    }
    for count in range(5):
        for dims in itertools.combinations(range(4), count):
            folded = dims or tuple(range(4))
            kept = [axis for axis in range(4) if axis not in folded]
            rows = np.transpose(x, [*kept, *folded]).reshape(-1, math.prod(x.shape[axis] for axis in folded))
            shape = tuple(1 if axis in folded else x.shape[axis] for axis in range(4))
            for name, fold in folds.items():
                negative = tuple(axis - 4 for axis in dims)
                result = call(name, [x], ReductionAttributes(negative or None, keepdim=True))
                wanted = np.array([fold(row.tolist()) for row in rows]).reshape(shape)
                np.testing.assert_allclose(result, wanted, rtol=1e-13)


def test_matmul_is_the_triple_loop_over_broadcast_batches() -> None:
    a, b = RANDOM.standard_normal((2, 1, 3, 5)), RANDOM.standard_normal((4, 5, 2))
    result = call("matmul", [a, b])
    for i, j, m, n in itertools.product(range(2), range(4), range(3), range(2)):
        wanted = math.fsum(float(a[i, 0, m, k] * b[j, k, n]) for k in range(5))
        assert result[i, j, m, n] == pytest.approx(wanted, rel=1e-12)


def test_contractions_agree_with_einsum() -> None:
    a, b, v = RANDOM.standard_normal((3, 5)), RANDOM.standard_normal((5, 4)), RANDOM.standard_normal(5)
    batch_a, batch_b = RANDOM.standard_normal((2, 3, 5)), RANDOM.standard_normal((2, 5, 4))
    added = RANDOM.standard_normal(4)
    cases = [
        (call("mm", [a, b]), "mk,kn->mn", (a, b)),
        (call("bmm", [batch_a, batch_b]), "bmk,bkn->bmn", (batch_a, batch_b)),
        (call("mv", [a, v]), "mk,k->m", (a, v)),
        (call("dot", [v, v]), "k,k->", (v, v)),
        (call("matmul", [v, batch_b]), "k,bkn->bn", (v, batch_b)),
        (call("matmul", [batch_a, v]), "bmk,k->bm", (batch_a, v)),
        (call("linear", [batch_a, b.T, added]) - added, "bmk,kn->bmn", (batch_a, b)),
        ((call("addmm", [added, a, b], AddmmAttributes(2.0, 0.5)) - 2 * added) * 2, "mk,kn->mn", (a, b)),
    ]
    for result, subscripts, operands in cases:
        np.testing.assert_allclose(result, np.einsum(subscripts, *operands), rtol=1e-12, atol=1e-12)


def test_addmm_with_beta_zero_ignores_what_it_would_add() -> None:
    nan = np.full((3,), np.nan)
    assert np.isfinite(call("addmm", [nan, np.ones((2, 2)), np.ones((2, 3))], AddmmAttributes(beta=0.0))).all()


def softmax(x: Floats, dim: int) -> Floats:
    return np.asarray(special.softmax(x, axis=dim))  # pyright: ignore[reportUnknownMemberType]  # SciPy ships no types


def test_softmax_is_scipys_and_survives_large_numbers() -> None:
    x = RANDOM.standard_normal((3, 4, 5)) * 300
    for dim in range(-3, 3):
        wanted = softmax(x, dim)
        np.testing.assert_allclose(call("softmax", [x], SoftmaxAttributes(dim)), wanted, rtol=1e-12)


def test_norms_follow_their_definitions_and_the_device_trio_makes_layer_norm() -> None:
    x, w, b = RANDOM.standard_normal((3, 8)), RANDOM.standard_normal(8), RANDOM.standard_normal(8)
    mean, mean_square = x.mean(-1, keepdims=True), (x * x).mean(-1, keepdims=True)
    layer = (x - mean) / np.sqrt(x.var(-1, keepdims=True) + 1e-3) * w + b
    np.testing.assert_allclose(call("layer_norm", [x, w, b], LayerNormAttributes((8,), 1e-3)), layer, rtol=1e-12)
    stats = call("spyre.exx2", [x], Exx2Attributes(1 / 8))
    np.testing.assert_allclose(stats, np.concatenate([mean, mean_square], -1), rtol=1e-12)
    scale = call("spyre.layernormscale", [stats], LayerNormScaleAttributes(1e-3))
    np.testing.assert_allclose(call("spyre.layernormnorm", [x, stats, scale, w, b]), layer, rtol=1e-10)
    rms = x / np.sqrt(mean_square + 1e-6) * w
    np.testing.assert_allclose(call("rms_norm", [x, w], RmsNormAttributes((8,), 1e-6)), rms, rtol=1e-12)
    two = RANDOM.standard_normal((2, 3, 4))
    flat = call("layer_norm", [two.reshape(2, 12), None, None], LayerNormAttributes((12,)))
    np.testing.assert_allclose(
        call("layer_norm", [two, None, None], LayerNormAttributes((3, 4))), flat.reshape(2, 3, 4), rtol=1e-12
    )


def test_rms_norm_without_eps_takes_the_machine_epsilon_of_the_dtype() -> None:
    epsilons = [RmsNormAttributes((1,)).eps_for(dtype) for dtype in (DType.FLOAT16, DType.FLOAT32)]
    assert epsilons == [float(np.finfo(np.float16).eps), float(np.finfo(np.float32).eps)]


def attention_row(query: Floats, key: Floats, value: Floats, scale: float, allowed: list[bool]) -> list[float]:
    """One query against the keys it may see, in plain Python."""
    scores = [scale * math.fsum((query * row).tolist()) for row in key]
    weights = [math.exp(score) if may else 0.0 for score, may in zip(scores, allowed)]
    total = math.fsum(weights)
    return [
        math.fsum(weight * float(row[column]) for weight, row in zip(weights, value)) / total if total else 0.0
        for column in range(value.shape[-1])
    ]


@pytest.mark.parametrize("form", ["plain", "causal", "bool mask", "float mask", "grouped"])
def test_attention_is_a_weighted_mean_of_the_values(form: str) -> None:
    heads = 2 if form == "grouped" else 4
    query, key = RANDOM.standard_normal((4, 3, 8)), RANDOM.standard_normal((heads, 5, 8))
    value = RANDOM.standard_normal((heads, 5, 6))
    may = RANDOM.random((3, 5)) < 0.6
    may[1] = False
    mask = {"bool mask": may, "float mask": np.where(may, 0.0, -np.inf)}.get(form)
    attributes = AttentionAttributes(is_causal=form == "causal", scale=0.4, enable_gqa=form == "grouped")
    result = call("scaled_dot_product_attention", [query, key, value, mask], attributes)
    for head, row in itertools.product(range(4), range(3)):
        allowed = [True] * 5 if mask is None else may[row].tolist()
        if form == "causal":
            allowed = [column <= row for column in range(5)]
        shared = head // (4 // heads)
        wanted = attention_row(query[head, row], key[shared], value[shared], 0.4, allowed)
        np.testing.assert_allclose(result[head, row], wanted, rtol=1e-11, atol=1e-13)


def test_attention_scales_by_the_root_of_the_width_unless_told() -> None:
    operands = [RANDOM.standard_normal((3, 16)), RANDOM.standard_normal((5, 16)), RANDOM.standard_normal((5, 2)), None]
    told = call("scaled_dot_product_attention", operands, AttentionAttributes(scale=0.25))
    np.testing.assert_array_equal(call("scaled_dot_product_attention", operands, AttentionAttributes()), told)


def test_views_and_movement_index_as_pytorch_does() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(call("permute", [x], PermuteAttributes((2, 0, 1)))[3, 1, 2], x[1, 2, 3])
    np.testing.assert_array_equal(call("reshape", [x], ReshapeAttributes((4, -1)))[1], x.ravel()[6:12])
    np.testing.assert_array_equal(call("flatten", [x], FlattenAttributes(1)), x.reshape(2, 12))
    np.testing.assert_array_equal(call("slice", [x], SliceAttributes(-1, -3, 100, 2)), x[:, :, 1::2])
    np.testing.assert_array_equal(call("expand", [x[:, :1]], ExpandAttributes((5, -1, 3, -1)))[4, 1, 2], x[1, 0])
    np.testing.assert_array_equal(call("unsqueeze", [x], DimAttributes(-1))[..., 0], x)
    np.testing.assert_array_equal(call("squeeze", [x[:, :1, :1]], SqueezeAttributes((2, 0))), x[:, :1, 0])
    np.testing.assert_array_equal(call("cat", [x, x[:, :1]], JoinAttributes(1))[:, 3], x[:, 0])
    np.testing.assert_array_equal(call("stack", [x, -x], JoinAttributes(1))[:, 1], -x)
    np.testing.assert_array_equal(call("repeat", [x[0]], RepeatAttributes((2, 1, 3)))[1, 2, 4:8], x[0, 2])
    np.testing.assert_array_equal(call("full", [], FullAttributes((2, 2), 3, DType.FLOAT16)), np.full((2, 2), 3.0))
