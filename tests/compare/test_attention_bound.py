"""How often attention rounds in 16 bits, and where: runs on adversarial operands stay within that, and come near it.

The bound is written down here from the op's documentation (``ir/ops/attention.py``), and not taken from the steps of
its decomposition: one more rounding among these is more than it allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.hardware.dtypes import DType
from spyrec.passes.builder import NodeBuilder
from spyrec.passes.decompose import attention
from tests.support.graph_files import graph_data, node, tensor

Floats = npt.NDArray[np.float64]

RANDOM = np.random.default_rng(20261123)
INNER = 16 * 2.0**-24
"""What sums in float32 may lose of the magnitudes of their terms."""


def held(values: object) -> Floats:
    """Return numbers that float16 and DLFloat16 both hold."""
    array = np.asarray(values, np.float16)
    return (array.view(np.uint16) & np.uint16(0xFFFE)).view(np.float16).astype(np.float64)


def half_step(values: Floats) -> Floats:
    """Return how far a number may be from the next one of DLFloat16, which has 9 bits of fraction."""
    exponent = np.floor(np.log2(np.maximum(np.abs(values), 2.0**-31)))
    return np.asarray(2.0 ** (exponent - 10.0))


@dataclass(frozen=True)
class Case:
    """Operands of one head, and what ``docs/ops.md`` calls scale, mask and causality."""

    query: Floats
    key: Floats
    value: Floats
    mask: Floats | None = None
    is_causal: bool = False
    scale: float | None = None

    def result(self) -> tuple[Floats, Floats]:
        """Return the exact result, and how far a run may be off.

        Of the operands of the scores each is scaled and stored once, the root of the scale is a constant of 16 bits;
        a score is stored once, once more with a mask of numbers; its distance from the row's largest, the exponential,
        the sum of these, the quotient and the result once each.
        """
        scale = 1.0 / math.sqrt(self.query.shape[-1]) if self.scale is None else self.scale
        root = math.sqrt(abs(scale))
        scores = self.query @ self.key.T * scale
        products = np.abs(self.query) @ np.abs(self.key).T * scale
        inexact = 0.0 if math.log2(root).is_integer() else 4 * 2.0**-10
        off = half_step(scores) + (inexact + INNER) * products
        seen = scores
        if self.mask is not None:
            seen = scores + self.mask
            off = off + half_step(seen)
        if self.is_causal:
            seen = np.where(np.tril(np.ones(scores.shape)) > 0, scores, -np.inf)
        distance = seen - seen.max(axis=-1, keepdims=True)
        weights = np.exp(distance)
        weights /= weights.sum(axis=-1, keepdims=True)
        exact = weights @ self.value
        finite = np.where(np.isfinite(distance), distance, 0.0)
        relative = np.expm1(off + half_step(finite) * (finite != 0)) + 2.0**-10  # exp(0) is exact, but others are not
        relative *= np.exp(2 * relative.max(axis=-1, keepdims=True))  # terms of second order
        moved = np.abs(self.value[None] - exact[:, None]) * (weights * relative)[..., None]
        bound = moved.sum(axis=1) + 2.0**-10 * np.abs(exact)  # the sum of the exponentials
        bound += (weights * 2.0**-10) @ np.abs(self.value) + INNER * np.abs(self.value).max()
        return exact, bound + half_step(np.abs(exact) + bound)

    def run(self) -> tuple[Floats, bool]:
        """Return the result of a run on the emulated device, and whether ``--check`` finds it right."""
        given = {"q": self.query, "k": self.key, "v": self.value}
        given |= {} if self.mask is None else {"m": self.mask}
        attributes: dict[str, object] = {"is_causal": self.is_causal, "scale": self.scale}
        made = node("y", "scaled_dot_product_attention", *given, **attributes)
        graph = graph_data([tensor(name, *item.shape) for name, item in given.items()], [made], ["y"])
        inputs = {name: item.astype(np.float16) for name, item in given.items()}
        result = spyrec.run(spyrec.compile(graph), inputs, spyrec.RunOptions(check=True))
        return result.outputs["y"].astype(np.float64), result.is_ok

    def share(self) -> float:
        """Return the largest share of the bound that a run reaches."""
        exact, bound = self.result()
        return float(np.max(np.abs(self.run()[0] - exact) / bound))


def opposite(keys: int, columns: int = 64) -> Floats:
    """Return values of 1 and -1 in turns: what one key gains another loses."""
    return np.repeat(np.where(np.arange(keys) % 2, -1.0, 1.0)[:, None], columns, axis=1)


def near_ties(rows: int, width: int, scores: float, keys: int = 2) -> Case:
    """Return rows whose scores are large and within a rounding of each other."""
    first = held(RANDOM.uniform(0.5, 1.0, width))
    key = np.stack([held(first + number * 2.0**-9 * RANDOM.integers(-1, 2, width)) for number in range(keys)])
    query = held(RANDOM.uniform(0.55, 0.95, (rows, width)) * scores * math.sqrt(width) / (0.75 * 0.75 * width))
    return Case(query, key, opposite(keys))


NEAR_TIES = near_ties(512, 16, 60.0)
"""A width of 16: the root of the scale is 1/2, and only the scores are rounded before the exponential."""

EQUAL = {keys: Case(np.ones((1, 16)), np.zeros((keys, 16)), np.ones((keys, 64))) for keys in (1371, 3881, 3969)}
"""Long rows of equal scores: the sum and the quotient are rounded, the same way for all."""

Q, K, V = (held(RANDOM.standard_normal((64, 32))) for _ in range(3))

CASES: Mapping[str, Case] = {
    "near ties": NEAR_TIES,
    "near ties of many": near_ties(64, 64, 200.0, keys=9),
    "far from 0": Case(NEAR_TIES.query, -NEAR_TIES.key, NEAR_TIES.value),
    "a scale that is no power": Case(Q, K, V, scale=0.3),
    "a negative scale": Case(Q, K, V, scale=-1.0),
    "one takes all": Case(8 * Q, 8 * K, V),
    "causal": Case(4 * Q, 4 * K, V, is_causal=True),
    "a mask of numbers": Case(Q, K, V, mask=held(RANDOM.uniform(-40, 40, (64, 64)))),
    "a long row": Case(held(RANDOM.standard_normal((8, 16))), held(RANDOM.standard_normal((2000, 16))), opposite(2000)),
    "values that cancel": Case(Q, K, 1000 + V),
    **{f"{keys} equal ones": case for keys, case in EQUAL.items()},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_run_is_within_the_roundings_that_are_documented(case: Case) -> None:
    exact, bound = case.result()
    found, is_ok = case.run()
    assert is_ok
    assert (np.abs(found - exact) <= bound).all(), np.max(np.abs(found - exact) / bound)


def test_the_bound_is_reached() -> None:
    """Else it would say nothing of one rounding more."""
    assert NEAR_TIES.share() > 0.65
    assert max(case.share() for case in EQUAL.values()) > 0.65


def rounded_more(function: Callable[..., str], factor: float) -> Callable[..., str]:
    """Return a step of the decomposition whose result is multiplied and divided by a factor, and stored both times."""

    def planted(builder: NodeBuilder, *operands: object, **keywords: object) -> str:
        made = function(builder, *operands, **keywords)
        up = builder.emit("mul", made, builder.number(factor, DType.FLOAT16))
        return builder.emit("mul", up, builder.number(1 / factor, DType.FLOAT16))

    return planted


@pytest.mark.parametrize(("step", "cases"), [("_masked", [NEAR_TIES]), ("_softmax", list(EQUAL.values()))])
def test_one_rounding_more_is_found(monkeypatch: pytest.MonkeyPatch, step: str, cases: list[Case]) -> None:
    """Scores, or shares, that are stored once more on the way: 0.75 and 4/3 are near what 16 bits hold of them."""
    monkeypatch.setattr(attention, step, rounded_more(getattr(attention, step), 0.75))
    assert max(case.share() for case in cases) > 1.0
