"""interpolate: against formulas of one coordinate at a time in fractions, and end to end."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.catalogue.test_indexing import refusal
from tests.support.one_node import Given, is_on_device, run_node

Array = npt.NDArray[Any]


def some(shape: tuple[int, ...]) -> Array:
    return np.round(np.random.default_rng([*shape]).standard_normal(shape) * 32) / 32


def sources(extent: int, count: int, attributes: dict[str, Any]) -> list[list[tuple[int, Fraction]]]:
    """Return the elements that each element of the result is made of, with their weights."""
    factor = attributes.get("scale_factor")
    ratio = Fraction(extent, count) if factor is None else 1 / Fraction(factor)
    mode = attributes.get("mode", "nearest")
    result: list[list[tuple[int, Fraction]]] = []
    for place in range(count):
        if mode.startswith("nearest"):
            shift = Fraction(1, 2) if mode == "nearest-exact" else 0
            result.append([(min(math.floor((place + shift) * ratio), extent - 1), Fraction(1))])
            continue
        if attributes.get("align_corners"):
            at = Fraction(place * (extent - 1), max(count - 1, 1))
        else:
            at = max((place + Fraction(1, 2)) * ratio - Fraction(1, 2), Fraction(0))
        low = min(math.floor(at), extent - 1)
        weight = min(at - low, Fraction(1))
        result.append([(low, 1 - weight), (min(low + 1, extent - 1), weight)])
    return result


def interpolated(x: Array, extents: tuple[int, ...], attributes: dict[str, Any]) -> Array:
    result = np.zeros((*x.shape[:2], *extents))
    given: list[float] | float | None = attributes.get("scale_factor")
    factors: list[float | None] = [*given] if isinstance(given, list) else [given] * len(extents)
    tables = [
        sources(n, m, {**attributes, "scale_factor": factor})
        for n, m, factor in zip(x.shape[2:], extents, factors, strict=True)
    ]
    for place in itertools.product(*map(range, extents)):
        for parts in itertools.product(*(table[index] for table, index in zip(tables, place, strict=True))):
            weight = math.prod((float(part[1]) for part in parts), start=1.0)
            result[(..., *place)] += weight * x[(..., *(part[0] for part in parts))]
    return result


CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], bool]] = [
    ((2, 3, 4), (8,), {"scale_factor": 2}, True),
    ((1, 3, 4, 5), (8, 15), {"size": [8, 15]}, True),
    ((1, 2, 3, 2, 2), (6, 4, 4), {"scale_factor": 2.0, "mode": "nearest-exact"}, True),
    ((1, 2, 4, 6), (6, 3), {"size": [6, 3]}, False),
    ((1, 2, 5), (7,), {"scale_factor": 1.5}, False),
    ((1, 3, 4, 5), (8, 10), {"scale_factor": [2, 2]}, True),
    ((1, 3, 4, 5), (8, 15), {"scale_factor": [2, 3.0]}, True),
    ((1, 1, 5, 4), (7, 10), {"scale_factor": [1.5, 2.5], "mode": "bilinear"}, False),
    ((1, 2, 5), (3,), {"size": 3, "mode": "nearest-exact"}, False),
    ((1, 2, 5), (7,), {"scale_factor": 1.5, "mode": "linear"}, False),
    ((1, 2, 4, 6), (8, 3), {"size": [8, 3], "mode": "bilinear"}, False),
    ((1, 2, 4, 6), (7, 1), {"size": [7, 1], "mode": "bilinear", "align_corners": True}, False),
    ((1, 1, 2, 3, 2), (4, 6, 4), {"scale_factor": 2.0, "mode": "trilinear"}, False),
]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("shape", "extents", "attributes", "on_device"), CASES)
def test_interpolate(
    shape: tuple[int, ...], extents: tuple[int, ...], attributes: dict[str, Any], on_device: bool, dtype: str
) -> None:
    x = some(shape)
    operands: list[Given] = [(dtype, x)]
    assert is_on_device("interpolate", operands, attributes) is on_device
    got, wanted = run_node("interpolate", operands, attributes, dtype), interpolated(x, extents, attributes)
    assert got.shape == wanted.shape
    if "linear" not in attributes.get("mode", "nearest"):
        np.testing.assert_array_equal(got, wanted)
    else:
        unit = 2.0**-11 if dtype == "float16" else 2.0**-24
        assert (np.abs(got - wanted) <= unit * np.abs(wanted) + 2.0**-25).all()


def test_refusals() -> None:
    x = ("float16", [1, 2, 4, 4])
    for attributes in ({"mode": "bicubic", "size": 8}, {"mode": "area", "size": 2}, {"antialias": True, "size": 2}):
        assert refusal("interpolate", [x], dict(attributes)) == "SPY0211"
    assert refusal("interpolate", [x], {}) == "SPY0209"
    assert refusal("interpolate", [x], {"size": 8, "scale_factor": 2}) == "SPY0209"
    assert refusal("interpolate", [x], {"scale_factor": 0.1}) == "SPY0209"
    assert refusal("interpolate", [x], {"scale_factor": [2.0, 2.0, 2.0]}) == "SPY0209"
    assert refusal("interpolate", [x], {"scale_factor": [2.0, True]}) == "SPY0122"
    assert refusal("interpolate", [x], {"scale_factor": "inf"}) == "SPY0209"
    assert refusal("interpolate", [x], {"scale_factor": 1e300}) == "SPY0209"
    assert refusal("interpolate", [x], {"size": 8, "align_corners": True}) == "SPY0209"
    assert refusal("interpolate", [x], {"size": 8, "mode": "linear"}) == "SPY0206"
    assert refusal("interpolate", [("int64", [1, 2, 4])], {"size": 8}) == "SPY0202"
