"""Element-wise ops against SciPy, Python's mathematics and definitions written out, by reference and on the device.

The outputs of a run are held against the oracle itself, within a stated number of roundings of the result, beside the
check of the run: a bound that forgives would be noticed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import spyrec
from spyrec.ir.attribute_text import write_attributes
from spyrec.ir.opdef import catalogue
from tests.support.one_node import run_node

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[np.generic]
Oracle = Callable[[float], float] | Callable[[float, float], float]

ROUNDOFF = {"float16": 2.0**-10, "float32": 2.0**-24}
"""Of the device's formats: DLFloat16 has 9 fraction bits."""


@dataclass(frozen=True)
class Case:
    """One op: what it computes of single numbers, and by how many roundings its results may be off.

    ``terms``: the size of what is added, where terms may cancel: a sum of float32 terms errs by 2 2**-24 of that.
    """

    op: str
    oracle: Oracle
    operands: tuple[str, ...] = ("any",)
    attrs: Mapping[str, object] = field(default_factory=dict[str, object])
    roundings: float = 1.0
    single_roundings: float = 1.0
    terms: Oracle | None = None

    @property
    def title(self) -> str:
        """The name of the test."""
        return "-".join((self.op, *(f"{key}={value}" for key, value in self.attrs.items())))


_BELOW = [-50.0, -21.5, -8.0, -3.0, -2.9921875, -2.0, -1.0, -0.75, -0.3125, -0.015625, -(2.0**-12), -1000.0]
_ABOVE = [0.0, 0.5, 1.5, 2.5, 3.5, 1.001953125, 100.0, 1000.0, 65000.0]
POINTS = [*_BELOW, *_ABOVE, *(-x for x in _BELOW)]
DOMAINS = {
    "any": POINTS,
    "positive": [abs(x) for x in POINTS if x],
    "not negative": [abs(x) for x in POINTS],
    "above -1": [x for x in POINTS if x >= -1],
    "nonzero": [x for x in POINTS if x],
    "moderate": [x for x in POINTS if abs(x) <= 16],
}


def expm1_unit(x: float, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> float:
    return scale * (x if x > 0 else alpha * math.expm1(x * input_scale))


def sigmoid(x: float) -> float:
    return float(special.expit(x))


def half_even(x: float, decimals: int = 0) -> float:
    return float(round(x, decimals))


def sign_of(x: float) -> float:
    return 0.0 if x == 0 else math.copysign(1.0, x)


UNARY = [
    Case("sin", math.sin),
    Case("cos", math.cos),
    Case("tan", math.tan),
    Case("erf", math.erf),
    Case("exp2", lambda x: 2.0**x, ("moderate",), roundings=1.1),
    Case("expm1", math.expm1, ("moderate",), roundings=1.1),
    Case("log1p", lambda x: math.log1p(x) if x > -1 else -math.inf, ("above -1",), roundings=2.0),
    Case("log2", math.log2, ("positive",), roundings=1.1),
    Case("log10", math.log10, ("positive",), roundings=1.1),
    Case("ceil", math.ceil, roundings=0),
    Case("trunc", lambda x: float(int(x)), roundings=0),
    Case("frac", lambda x: math.copysign(math.modf(x)[0], x), roundings=0),
    Case("sign", sign_of, roundings=0),
    Case("round", half_even),
    Case("round", lambda x: half_even(x, 2), attrs={"decimals": 2}),
    Case("round", lambda x: half_even(x, -1), attrs={"decimals": -1}),
    Case("relu6", lambda x: min(max(x, 0.0), 6.0), roundings=0),
    Case("hardtanh", lambda x: min(max(x, -1.0), 1.0), roundings=0),
    Case("hardtanh", lambda x: min(max(x, -0.5), 2.0), attrs={"min_val": -0.5, "max_val": 2}, roundings=0),
    Case("hardsigmoid", lambda x: min(max(x + 3, 0.0), 6.0) / 6, roundings=2.0, single_roundings=2.0),
    Case("hardswish", lambda x: x * min(max(x + 3, 0.0), 6.0) / 6, roundings=3.0, single_roundings=3.0),
    Case("leaky_relu", lambda x: x if x > 0 else 0.01 * x, roundings=2.0, single_roundings=2.0),
    Case("leaky_relu", lambda x: x if x > 0 else 0.5 * x, attrs={"negative_slope": 0.5}),
    Case("softsign", lambda x: x / (1 + abs(x)), roundings=2.0, single_roundings=2.0),
    Case("mish", lambda x: x * math.tanh(math.log1p(math.exp(min(x, 50.0)))), roundings=1.1, single_roundings=8.0),
    Case("logsigmoid", lambda x: min(x, 0.0) - math.log1p(math.exp(-abs(x)))),
    Case("selu", lambda x: expm1_unit(x, 1.6732632423543772, 1.0507009873554805), roundings=1.1),
    Case("elu", expm1_unit, roundings=1.1),
    Case(
        "elu",
        lambda x: expm1_unit(x, 0.5, 2.0, 0.25),
        attrs={"alpha": 0.5, "scale": 2.0, "input_scale": 0.25},
        roundings=1.1,
    ),
    Case("threshold", lambda x: x if x > 0.5 else -3.0, attrs={"threshold": 0.5, "value": -3.0}, roundings=0),
    Case("dropout", lambda x: x, attrs={"p": 0.1, "training": False}, roundings=0, single_roundings=0),
    Case("silu", lambda x: x * sigmoid(x), single_roundings=4.0),
    Case("tanh", math.tanh),
    Case("gelu", lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2.0))),
    Case("softplus", lambda x: x if x > 20 else max(x, 0.0) + math.log1p(math.exp(-abs(x)))),
    Case("clamp", lambda x: min(max(x, -0.5), 1.0), attrs={"min": -0.5, "max": 1.0}, roundings=0, single_roundings=0),
    Case("clamp", lambda x: min(x, 1.0), attrs={"max": 1.0}, roundings=0, single_roundings=0),
    Case("pow", lambda x: x**0.3, ("positive",), attrs={"exponent": 0.3}, roundings=1.2),
    Case("pow", lambda x: x**-2.0, ("nonzero",), attrs={"exponent": -2.0}, roundings=1.1),
    Case("pow", lambda x: x**13.0, ("moderate",), attrs={"exponent": 13.0}, roundings=1.1),
    Case("pow", lambda x: x**1.5, ("positive",), attrs={"exponent": 1.5}, roundings=2.0, single_roundings=2.0),
    Case("pow", lambda x: x**-0.5, ("positive",), attrs={"exponent": -0.5}, single_roundings=2.0),
]


def floor_quotient(x: float, y: float) -> float:
    return float(math.floor(Fraction(x) / Fraction(y)))


def whole_quotient(x: float, y: float) -> float:
    return float(math.trunc(Fraction(x) / Fraction(y)))


PAIRS = [
    Case("remainder", lambda x, y: x - y * floor_quotient(x, y), ("any", "nonzero")),
    Case("fmod", math.fmod, ("any", "nonzero")),
    Case("floor_divide", floor_quotient, ("any", "nonzero")),
    Case("div", floor_quotient, ("any", "nonzero"), {"rounding_mode": "floor"}),
    Case("div", whole_quotient, ("any", "nonzero"), {"rounding_mode": "trunc"}),
    Case("rsub", lambda x, y: y - x, ("any", "any")),
    Case("rsub", lambda x, y: y - 0.3 * x, ("any", "any"), {"alpha": 0.3}, terms=lambda x, y: abs(x) + abs(y)),
    Case("add", lambda x, y: x + 0.3 * y, ("any", "any"), {"alpha": 0.3}, terms=lambda x, y: abs(x) + abs(y)),
    Case("pow", lambda x, y: x**y, ("positive", "moderate")),
    Case("logical_or", lambda x, y: bool(x) or bool(y), ("any", "any"), roundings=0, single_roundings=0),
    Case("logical_xor", lambda x, y: bool(x) != bool(y), ("any", "any"), roundings=0, single_roundings=0),
]


def values_of(domains: Sequence[str], dtype: str) -> list[Array]:
    """Return operands that meet in all pairs: one along each axis."""
    arrays: list[Array] = []
    for axis, domain in enumerate(domains):
        values = np.array(DOMAINS[domain], np.float64)
        shape = [1] * len(domains)
        shape[axis] = values.size
        arrays.append(values.reshape(shape).astype(dtype))
    return arrays


def graph_of(case: Case, arrays: Sequence[Array], dtypes: Sequence[str]) -> dict[str, object]:
    inputs = [
        {"name": f"x{number}", "shape": list(array.shape), "dtype": dtype}
        for number, (array, dtype) in enumerate(zip(arrays, dtypes, strict=True))
    ]
    names = [item["name"] for item in inputs]
    node = {"name": "n", "op": case.op, "inputs": names, "outputs": ["y"], "attrs": dict(case.attrs)}
    return {"format": "spyrec.graph/1", "name": "g", "inputs": inputs, "nodes": [node], "outputs": ["y"]}


def run(graph: Mapping[str, object], arrays: Sequence[Array]) -> Array:
    """Compile, run and check; return the output."""
    given_arrays = {f"x{number}": array for number, array in enumerate(arrays)}
    result = spyrec.run(spyrec.compile(dict(graph)), given_arrays, spyrec.RunOptions(check=True))
    assert result.check is not None
    assert result.check["y"].ok, result.check["y"]
    return result.outputs["y"]


def wanted(case: Case, arrays: Sequence[Array]) -> Array:
    spread = np.broadcast_arrays(*arrays)
    oracle = cast("Callable[..., float]", case.oracle)
    values = [oracle(*map(float, numbers)) for numbers in zip(*(item.flat for item in spread), strict=True)]
    return np.array(values).reshape(spread[0].shape)


@pytest.mark.parametrize("case", [*UNARY, *PAIRS], ids=lambda case: case.title)
def test_reference_is_the_textbook_function(case: Case) -> None:
    arrays = values_of(case.operands, "float64")
    definition = catalogue()[case.op]
    attributes = definition.attributes(**case.attrs)
    with np.errstate(all="ignore"):
        got = definition.reference(arrays, attributes)[0]
    np.testing.assert_allclose(got.astype(np.float64), wanted(case, arrays).astype(np.float64), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("case", [*UNARY, *PAIRS], ids=lambda case: case.title)
def test_device_errs_by_the_stated_roundings(case: Case, dtype: str) -> None:
    arrays = values_of(case.operands, dtype)
    if dtype == "float16":  # what DLFloat16 and half both hold
        arrays = [(array.view(np.uint16) & np.uint16(0xFFFE)).view(np.float16) for array in arrays]
    exact = wanted(case, arrays).astype(np.float64)
    got = run(graph_of(case, arrays, [dtype] * len(arrays)), arrays).astype(np.float64)
    roundings = case.roundings if dtype == "float16" else case.single_roundings
    least = 2.0**-24 if dtype == "float16" else 2.0**-126  # half's subnormals round the last
    limit = roundings * ROUNDOFF[dtype] * np.abs(exact) + least
    if case.terms is not None:
        limit += 2.0 * ROUNDOFF["float32"] * wanted(replace(case, oracle=case.terms), arrays).astype(np.float64)
    is_large = np.abs(exact) > (65504.0 if dtype == "float16" else 3.4e38)
    with np.errstate(invalid="ignore"):  # infinities are compared below
        error = np.abs(got - exact)
    wrong = ~(error <= limit) & ~(is_large & (np.abs(got) >= np.abs(exact) * 0.99))
    wrong &= ~(np.isinf(exact) & (got == exact))
    places = np.argwhere(wrong)
    spread = np.broadcast_arrays(*arrays)
    assert not places.size, [([item[tuple(at)] for item in spread], got[tuple(at)], exact[tuple(at)]) for at in places]


# --- ops of several operands, integers and bools: what NumPy makes of them ---

BITS = np.array([True, False, False])
INTS = np.array([-7, -6, -1, 0, 1, 2, 5, 100], np.int64)
COUNTS = np.array([0, 1, 3, 8], np.int64)
BOOLS = np.array([True, False, True, True, False, False, True, False])
RANDOM = np.random.default_rng(5)
HALVES = (np.round(RANDOM.standard_normal((3, 8)) * 64) / 64).astype(np.float16)
OTHERS = (np.round(RANDOM.standard_normal((3, 8)) * 64) / 64).astype(np.float16)
SINGLES, OTHER_SINGLES = HALVES.astype(np.float32), OTHERS.astype(np.float32)
CHANNELS = (np.round(RANDOM.standard_normal((2, 3, 4, 6)) * 64) / 64).astype(np.float16)


def sigmoids(x: Array) -> Floats:
    return cast("Floats", special.expit(x.astype(np.float64)))


def divided(one: Array, other: Array) -> list[int]:
    return [math.trunc(Fraction(int(a)) / int(b)) for a, b in zip(one, other, strict=True)]


def in_octet(value: int) -> int:
    """Return what 8 bits leave of a whole number."""
    return (value + 128) % 256 - 128


OCTETS = np.array([7, -3, 2, 5, 11, 30, 25, 3], np.int8)
"""Whose powers float64 does not hold."""

NANS = np.array([np.nan, np.inf, -np.inf, 2.5], np.float32)

WHOLE: list[tuple[str, list[object], dict[str, object], object, str]] = [
    ("bitwise_and", [INTS, 6], {}, [int(x) & 6 for x in INTS], "int64"),
    ("bitwise_or", [INTS, 6], {}, [int(x) | 6 for x in INTS], "int64"),
    ("bitwise_xor", [INTS, INTS[::-1].copy()], {}, [int(x) ^ int(y) for x, y in zip(INTS, INTS[::-1])], "int64"),
    ("bitwise_not", [INTS], {}, [~int(x) for x in INTS], "int64"),
    ("bitwise_not", [np.array([0, 1, 255], np.uint8)], {}, [255, 254, 0], "uint8"),
    ("bitwise_not", [BOOLS], {}, [not x for x in BOOLS], "bool"),
    ("bitwise_and", [BOOLS, BOOLS[::-1].copy()], {}, [bool(x and y) for x, y in zip(BOOLS, BOOLS[::-1])], "bool"),
    ("bitwise_or", [BOOLS, BOOLS[::-1].copy()], {}, [bool(x or y) for x, y in zip(BOOLS, BOOLS[::-1])], "bool"),
    ("bitwise_xor", [BOOLS, BOOLS[::-1].copy()], {}, [bool(x != y) for x, y in zip(BOOLS, BOOLS[::-1])], "bool"),
    ("bitwise_left_shift", [np.array([1, -3, 5, 0]), COUNTS], {}, [1, -6, 40, 0], "int64"),
    ("bitwise_left_shift", [np.array([1, 1], np.int8), np.array([7, 8], np.int8)], {}, [-128, 0], "int8"),
    ("bitwise_right_shift", [np.array([-9, -9, 9, 9]), np.array([1, 70, 1, 70])], {}, [-5, -1, 4, 0], "int64"),
    ("remainder", [INTS, 4], {}, [int(x) % 4 for x in INTS], "int64"),
    ("remainder", [INTS, -4], {}, [int(x) % -4 for x in INTS], "int64"),
    ("fmod", [INTS, 4], {}, [int(math.fmod(x, 4)) for x in INTS], "int64"),
    ("floor_divide", [INTS, 4], {}, [int(x) // 4 for x in INTS], "int64"),
    ("div", [INTS, np.full(8, 4)], {"rounding_mode": "trunc"}, divided(INTS, np.full(8, 4)), "int64"),
    ("div", [INTS, 4], {"rounding_mode": "floor"}, [int(x) // 4 for x in INTS], "int64"),
    ("neg", [INTS], {}, [-int(x) for x in INTS], "int64"),
    ("abs", [INTS], {}, [abs(int(x)) for x in INTS], "int64"),
    ("relu", [INTS], {}, [max(int(x), 0) for x in INTS], "int64"),
    ("square", [INTS], {}, [int(x) ** 2 for x in INTS], "int64"),
    ("sign", [INTS], {}, [-1, -1, -1, 0, 1, 1, 1, 1], "int64"),
    ("pow", [INTS, 3], {}, [int(x) ** 3 for x in INTS], "int64"),
    ("pow", [np.array([2, -2, 3, 0]), np.array([64, 30, 0, 0])], {}, [0, 2**30, 1, 1], "int64"),
    (
        "pow",
        [OCTETS, abs(OCTETS[::-1])],
        {},
        [in_octet(int(x) ** abs(int(y))) for x, y in zip(OCTETS, OCTETS[::-1])],
        "int8",
    ),
    ("pow", [OCTETS, 41], {}, [in_octet(int(x) ** 41) for x in OCTETS], "int8"),
    ("pow", [np.array([2, 1, -1, -1, 0]), np.array([-1, -5, -3, -2, 0])], {}, [0, 1, -1, 1, 1], "int64"),
    ("add", [BITS, BITS[::-1]], {}, [True, False, True], "bool"),
    ("add", [BITS, True], {}, [True, True, True], "bool"),
    ("add", [BITS, BITS[::-1]], {"alpha": 2}, [True, False, True], "bool"),
    ("add", [BITS, ~BITS], {"alpha": 0}, [True, False, False], "bool"),
    ("add", [BITS, BITS], {"alpha": -1}, [True, False, False], "bool"),
    ("square", [BITS], {}, [1, 0, 0], "int64"),
    ("sign", [BITS], {}, [True, False, False], "bool"),
    ("clamp", [BITS], {"min": 1}, [1, 1, 1], "int64"),
    ("clamp", [BITS, BITS[::-1]], {}, [True, False, True], "bool"),
    ("clamp", [INTS, -2, 4], {}, [min(max(int(x), -2), 4) for x in INTS], "int64"),
    ("clamp", [INTS, np.full(8, -2), 4], {}, [min(max(int(x), -2), 4) for x in INTS], "int64"),
    ("clamp", [INTS, None, np.array(3)], {}, [min(int(x), 3) for x in INTS], "int64"),
    ("clamp", [INTS, -0.5], {}, [max(float(x), -0.5) for x in INTS], "float32"),
    # a number with a point is a float whatever its value, and 2 is none (PyTorch)
    ("clamp", [INTS, 2.0], {}, [max(float(x), 2.0) for x in INTS], "float32"),
    ("clamp", [INTS], {"min": 1, "max": 2.0}, [min(max(float(x), 1), 2.0) for x in INTS], "float32"),
    ("clamp", [BOOLS, 0.5], {}, [max(float(x), 0.5) for x in BOOLS], "float32"),
    ("pow", [INTS, 2], {}, [int(x) ** 2 for x in INTS], "int64"),
    ("pow", [INTS, 2.0], {}, [float(x) ** 2 for x in INTS], "float32"),
    ("pow", [np.array([50000, 3]), 2.0], {}, [2.5e9, 9.0], "float32"),
    ("pow", [OCTETS, 2.0], {}, [float(x) ** 2 for x in OCTETS], "float32"),
    ("pow", [np.array([2, -4]), -1.0], {}, [0.5, -0.25], "float32"),
    ("pow", [BOOLS, 2.0], {}, [float(x) for x in BOOLS], "float32"),
    ("pow", [BOOLS, 2], {}, [int(x) for x in BOOLS], "int64"),
    ("relu6", [INTS], {}, [min(max(int(x), 0), 6) for x in INTS], "int64"),
    ("threshold", [INTS], {"threshold": 1, "value": 9}, [9, 9, 9, 9, 9, 2, 5, 100], "int64"),
    ("round", [np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32)], {}, [0.0, 2.0, 2.0, -0.0, -2.0], "float32"),
    ("logical_or", [INTS, 0], {}, [bool(x) for x in INTS], "bool"),
    ("logical_xor", [INTS, BOOLS], {}, [bool(x) != bool(y) for x, y in zip(INTS, BOOLS)], "bool"),
    ("logical_and", [INTS, BOOLS], {}, [bool(x) and bool(y) for x, y in zip(INTS, BOOLS)], "bool"),
    ("logical_not", [INTS], {}, [not x for x in INTS], "bool"),
    # joined tensors have their common dtype (PyTorch)
    ("cat", [INTS, BOOLS], {}, np.concatenate([INTS, BOOLS]), "int64"),
    ("cat", [OCTETS, INTS], {}, np.concatenate([OCTETS, INTS]), "int64"),
    ("cat", [OCTETS, np.array([200], np.uint8)], {}, [*map(int, OCTETS), 200], "int16"),
    ("cat", [BOOLS, np.array([0.5, 2], np.float16)], {}, [*map(float, BOOLS), 0.5, 2.0], "float16"),
    ("cat", [np.array([0.5], np.float16), np.zeros(0, np.int64)], {}, [0.5], "float16"),
    ("stack", [np.array([3, 4]), np.array([0.5, 2], np.float32)], {"dim": 1}, [[3, 0.5], [4, 2]], "float32"),
    ("masked_fill", [INTS, BOOLS, 7], {}, np.where(BOOLS, 7, INTS), "int64"),
    ("masked_fill", [INTS, BOOLS, 7.0], {}, np.where(BOOLS, 7, INTS), "int64"),
    ("masked_fill", [OCTETS, np.ones(1, np.bool_), -2.0], {}, [-2] * len(OCTETS), "int8"),
    ("index_fill", [INTS, np.arange(8), 7.0], {"dim": 0}, [7] * 8, "int64"),
    ("index_fill", [BOOLS, np.arange(8), 1], {"dim": 0}, [True] * 8, "bool"),
    ("scatter", [BOOLS, np.arange(8), 1], {"dim": 0}, [True] * 8, "bool"),
    ("scatter", [OCTETS, np.array([0]), 3.0], {"dim": 0}, [3, *map(int, OCTETS[1:])], "int8"),
    ("masked_fill", [BOOLS, BOOLS, False], {}, np.zeros(8, np.bool_), "bool"),
    ("masked_fill", [HALVES, BOOLS, "-inf"], {}, np.where(BOOLS, -np.inf, HALVES), "float16"),
    ("masked_fill", [SINGLES, BOOLS, -1e30], {}, np.where(BOOLS, np.float32(-1e30), SINGLES), "float32"),
    ("masked_fill", [HALVES, BOOLS, np.array(0.5, np.float16)], {}, np.where(BOOLS, 0.5, HALVES), "float16"),
    ("where", [BOOLS, INTS, 3], {}, np.where(BOOLS, INTS, 3), "int64"),
    ("where", [BOOLS, SINGLES, 0.5], {}, np.where(BOOLS, SINGLES, 0.5), "float32"),
    ("where", [BOOLS, 1.0, HALVES], {}, np.where(BOOLS, 1.0, HALVES), "float16"),
    ("gt", [SINGLES, OTHER_SINGLES], {}, SINGLES > OTHER_SINGLES, "bool"),
    ("eq", [INTS, 5], {}, [x == 5 for x in INTS], "bool"),
    ("isnan", [NANS], {}, [True, False, False, False], "bool"),
    ("isinf", [NANS], {}, [False, True, True, False], "bool"),
    ("isnan", [INTS], {}, [False] * 8, "bool"),
    ("nan_to_num", [NANS], {"nan": 1.0, "posinf": 2.0}, [1.0, 2.0, -3.4028234663852886e38, 2.5], "float32"),
    ("nan_to_num", [NANS], {"neginf": -7.0}, [0.0, 3.4028234663852886e38, -7.0, 2.5], "float32"),
    ("sin", [INTS], {}, [math.sin(x) for x in INTS], "float32"),
    ("addcmul", [INTS, INTS, INTS], {"value": 2}, [int(x) + 2 * int(x) ** 2 for x in INTS], "int64"),
    ("dropout", [INTS], {"p": 0.5, "training": False}, INTS, "int64"),
    ("rsub", [INTS, 3], {}, [3 - int(x) for x in INTS], "int64"),
]


def arrays_of(operands: Sequence[object]) -> list[Array]:
    return [cast("Array", item) for item in operands if isinstance(item, np.ndarray)]


def case_graph(
    op: str, operands: Sequence[object], attrs: Mapping[str, object]
) -> tuple[dict[str, object], list[Array]]:
    """Return a graph of one node, arrays as inputs and numbers as they are, and the arrays."""
    arrays = arrays_of(operands)
    inputs: list[dict[str, object]] = [
        {"name": f"x{at}", "shape": [*item.shape], "dtype": item.dtype.name} for at, item in enumerate(arrays)
    ]
    names = iter(f"x{at}" for at in range(len(arrays)))
    written = [next(names) if isinstance(item, np.ndarray) else item for item in operands]
    node = {"name": "n", "op": op, "inputs": written, "outputs": ["y"], "attrs": dict(attrs)}
    graph: dict[str, object] = {"format": "spyrec.graph/1", "name": "g", "inputs": inputs}
    return {**graph, "nodes": [node], "outputs": ["y"]}, arrays


@pytest.mark.parametrize(("op", "operands", "attrs", "expected", "dtype"), WHOLE)
def test_whole_numbers_bools_and_moved_numbers_are_exact(
    op: str, operands: list[object], attrs: dict[str, object], expected: object, dtype: str
) -> None:
    got = run(*case_graph(op, operands, attrs))
    assert got.dtype.name == dtype
    np.testing.assert_array_equal(got, np.asarray(expected, got.dtype))


def lerped(x: Array, y: Array, w: float) -> Floats:
    return (1 - w) * x.astype(np.float64) + w * y.astype(np.float64)


def sloped(x: Array, slopes: Sequence[float]) -> Floats:
    found = x.astype(np.float64)
    return np.stack(
        [np.where(found[:, at] > 0, found[:, at], found[:, at] * slope) for at, slope in enumerate(slopes)], 1
    )


WIDE_SLOPES = np.array([0.25, -0.5, 0.125], np.float16)

SUMS: list[tuple[str, list[object], dict[str, object], Floats, float]] = [
    ("lerp", [HALVES, OTHERS, 0.3], {}, lerped(HALVES, OTHERS, 0.3), 1.0),
    ("lerp", [SINGLES, OTHER_SINGLES, 0.75], {}, lerped(SINGLES, OTHER_SINGLES, 0.75), 1.0),
    ("addcmul", [HALVES, OTHERS, HALVES], {}, HALVES + OTHERS.astype(np.float64) * HALVES, 1.0),
    ("addcmul", [HALVES, OTHERS, HALVES], {"value": -0.5}, HALVES - OTHERS.astype(np.float64) * HALVES / 2, 1.0),
    ("addcdiv", [HALVES, OTHERS, HALVES], {}, HALVES + OTHERS.astype(np.float64) / HALVES, 1.0),
    ("addcdiv", [SINGLES, OTHER_SINGLES, SINGLES], {}, SINGLES + OTHER_SINGLES.astype(np.float64) / SINGLES, 2.0),
    ("glu", [CHANNELS], {}, CHANNELS[..., :3] * sigmoids(CHANNELS[..., 3:]), 1.1),
    ("glu", [CHANNELS], {"dim": 0}, CHANNELS[:1] * sigmoids(CHANNELS[1:]), 1.1),
    ("glu", [CHANNELS.astype(np.float32)], {"dim": 2}, CHANNELS[:, :, :2] * sigmoids(CHANNELS[:, :, 2:]), 4.0),
    ("prelu", [CHANNELS, WIDE_SLOPES], {}, sloped(CHANNELS, [0.25, -0.5, 0.125]), 1.0),
    ("prelu", [CHANNELS, WIDE_SLOPES[:1]], {}, sloped(CHANNELS, [0.25] * 3), 1.0),
    ("clamp", [HALVES, OTHERS, 0.5], {}, np.minimum(np.maximum(HALVES, OTHERS), 0.5).astype(np.float64), 0.0),
    ("clamp", [SINGLES, -0.5, OTHER_SINGLES], {}, np.minimum(np.maximum(SINGLES, -0.5), OTHER_SINGLES), 0.0),
    ("pow", [2.0, SINGLES], {}, 2.0 ** SINGLES.astype(np.float64), 1.0),
    ("pow", [3.0, HALVES], {}, 3.0 ** HALVES.astype(np.float64), 1.0),
]


@pytest.mark.parametrize(("op", "operands", "attrs", "expected", "roundings"), SUMS)
def test_ops_of_several_operands_err_by_few_roundings(
    op: str, operands: list[object], attrs: dict[str, object], expected: Floats, roundings: float
) -> None:
    got = run(*case_graph(op, operands, attrs)).astype(np.float64)
    dtype = arrays_of(operands)[0].dtype.name
    limit = roundings * ROUNDOFF[dtype] * np.abs(expected) + 8 * ROUNDOFF["float32"]
    assert got.shape == expected.shape
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(~(np.abs(got - expected) <= limit) & ~(got == expected), False)


OPS = sorted({case.op for case in (*UNARY, *PAIRS)} | {row[0] for row in (*WHOLE, *SUMS)})


@pytest.mark.parametrize("op", OPS)
def test_every_sample_runs_and_checks(op: str) -> None:
    generator = np.random.default_rng(3)
    for types, attributes in catalogue()[op].samples:
        operands: list[object] = []
        for found in types:
            if found is None:
                operands.append(None)
                continue
            values = generator.integers(1, 9, found.shape)
            is_float = found.dtype.is_float
            operands.append(np.asarray(values / 8 if is_float else values).astype(found.dtype.carrier))
        run(*case_graph(op, operands, write_attributes(attributes)))


BY_HAND: dict[str, Callable[[int, int], int]] = {
    "remainder": lambda x, y: x % y if y else 0,
    "fmod": lambda x, y: int(math.fmod(x, y)) if y else 0,
    "floor_divide": lambda x, y: x // y if y else 0,
    "logical_xor": lambda x, y: bool(x) != bool(y),
    "rsub": lambda x, y: y - x,
}
SHAPES = st.sampled_from([(), (0,), (1,), (3,), (2, 1), (0, 3), (2, 3), (1, 4, 1), (2, 1, 3, 5)])


@settings(max_examples=60)
@given(st.sampled_from(sorted(BY_HAND)), SHAPES, SHAPES, st.data())
def test_results_have_the_broadcast_shape(
    op: str, left: tuple[int, ...], right: tuple[int, ...], data: st.DataObject
) -> None:
    integer = st.integers(-9, 9)
    try:
        shape = np.broadcast_shapes(left, right)
    except ValueError:
        return
    arrays = [
        np.array([data.draw(integer) for _ in range(math.prod(found))], np.int64).reshape(found)
        for found in (left, right)
    ]
    definition = catalogue()[op]
    with np.errstate(all="ignore"):
        got = definition.reference(arrays, definition.attributes())[0]
    pairs = zip(*(item.flat for item in np.broadcast_arrays(*arrays)), strict=True)
    np.testing.assert_array_equal(got, np.array([BY_HAND[op](int(x), int(y)) for x, y in pairs]).reshape(shape))


REFUSALS: list[tuple[str, list[object], dict[str, object], str]] = [
    ("bitwise_and", [HALVES, HALVES], {}, "SPY0202"),
    ("bitwise_left_shift", [BOOLS, BOOLS], {}, "SPY0202"),
    ("remainder", [BOOLS, BOOLS], {}, "SPY0202"),
    ("div", [BOOLS, BOOLS], {"rounding_mode": "floor"}, "SPY0202"),
    ("masked_fill", [INTS, BOOLS, 0.5], {}, "SPY0203"),
    ("masked_fill", [INTS, INTS, 1], {}, "SPY0210"),
    ("masked_fill", [HALVES, BOOLS, HALVES], {}, "SPY0206"),
    ("dropout", [HALVES], {"p": 0.5, "training": True}, "SPY0211"),
    ("dropout", [HALVES], {"p": 0.5}, "SPY0121"),
    ("dropout", [HALVES], {"p": 1.5, "training": False}, "SPY0209"),
    ("glu", [CHANNELS], {"dim": 1}, "SPY0209"),
    ("glu", [CHANNELS], {"dim": 4}, "SPY0204"),
    ("prelu", [CHANNELS, HALVES[0]], {}, "SPY0209"),
    ("prelu", [CHANNELS, HALVES], {}, "SPY0206"),
    ("hardtanh", [HALVES], {"min_val": 2, "max_val": 1}, "SPY0209"),
    ("elu", [INTS], {}, "SPY0202"),
    ("lerp", [HALVES, SINGLES, 0.5], {}, "SPY0203"),
    ("addcmul", [INTS, INTS, INTS], {"value": 0.5}, "SPY0215"),
    ("rsub", [INTS, INTS], {"alpha": 0.5}, "SPY0215"),
    ("round", [INTS], {"decimals": 1}, "SPY0202"),
    ("round", [HALVES], {"decimals": 1000}, "SPY0209"),
    ("clamp", [HALVES], {}, "SPY0209"),
    ("clamp", [HALVES, HALVES], {"min": 1.0}, "SPY0209"),
    ("pow", [HALVES], {}, "SPY0121"),
    ("pow", [HALVES, HALVES], {"exponent": 2.0}, "SPY0121"),
    ("trunc", [BOOLS], {}, "SPY0202"),
]


@pytest.mark.parametrize(("op", "operands", "attrs", "code"), REFUSALS)
def test_refusals(op: str, operands: list[object], attrs: dict[str, object], code: str) -> None:
    graph, _ = case_graph(op, operands, attrs)
    with pytest.raises(spyrec.SpyrecError) as caught:
        spyrec.compile(graph)
    assert [item.code for item in caught.value.diagnostics] == [code]


QUESTIONS_OF_TWO: dict[str, Callable[[npt.ArrayLike, npt.ArrayLike], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


@pytest.mark.parametrize("number", [2, -3, 1, 0, 2.5, 1.0, True])
@pytest.mark.parametrize("op", list(QUESTIONS_OF_TWO))
def test_bools_beside_a_number_compare_as_numbers_of_its_kind(op: str, number: float) -> None:
    """As PyTorch promotes: an integer makes int64 of a bool, and a fraction a float."""
    bools = np.array([[True, False, True], [False, False, True]])
    ask, wide = QUESTIONS_OF_TWO[op], bools if isinstance(number, bool) else bools.astype(type(number))
    np.testing.assert_array_equal(run_node(op, [("bool", bools), number], None, "bool"), ask(wide, number))
    np.testing.assert_array_equal(run_node(op, [number, ("bool", bools)], None, "bool"), ask(number, wide))


@pytest.mark.parametrize("number", [0, 1, 2, -1, True, False])
def test_bools_are_filled_with_whether_a_number_is_not_zero(number: int) -> None:
    bools, mask = np.array([[True, False, True], [False, False, True]]), np.array([True, True, False])
    filled = run_node("masked_fill", [("bool", bools), ("bool", mask), number], None, "bool")
    np.testing.assert_array_equal(filled, np.where(mask, bool(number), bools))
