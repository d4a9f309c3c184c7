"""baddbmm, addbmm, addmv, outer and einsum: against sums written with loops or other functions, and end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.catalogue.test_indexing import refusal
from tests.support.one_node import Given, is_on_device, run_node

Array = npt.NDArray[Any]
ROUNDING = {"float16": 2.0**-10, "bfloat16": 2.0**-8, "float32": 2.0**-22, "int64": 0.0}


def some(dtype: str, shape: tuple[int, ...], seed: int) -> Array:
    generator = np.random.default_rng([seed, *shape])
    if dtype == "int64":
        return generator.integers(-9, 10, shape)
    return np.round(generator.standard_normal(shape) * 32) / 32  # 8 bits: every float holds them


def close(got: Array, wanted: Array, size: Array, dtype: str, roundings: int) -> None:
    """Each stored value of at most ``size`` is off by half a unit, and the product before it by another."""
    assert got.shape == wanted.shape
    assert (np.abs(got - wanted) <= roundings * ROUNDING[dtype] * size).all()


@pytest.mark.parametrize("dtype", list(ROUNDING))
@pytest.mark.parametrize(("shape", "beta", "alpha"), [((2, 3, 4), 1.0, 1.0), ((3, 1), 0.0, 1.0), ((), 2.0, -3.0)])
def test_batches_are_added(dtype: str, shape: tuple[int, ...], beta: float, alpha: float) -> None:
    added, a, b = some(dtype, shape, 0), some(dtype, (2, 3, 70), 1), some(dtype, (2, 70, 4), 2)
    wanted = beta * added + alpha * np.einsum("bij,bjk->bik", a, b)
    size = np.abs(beta * added) + 2 * np.abs(alpha) * np.einsum("bij,bjk->bik", np.abs(a), np.abs(b))
    operands: list[Given] = [(dtype, added), (dtype, a), (dtype, b)]
    attributes = {"beta": beta, "alpha": alpha}
    close(run_node("baddbmm", operands, attributes, dtype), wanted, size, dtype, 2)
    if len(shape) < 3:
        wanted = beta * added + alpha * np.einsum("bij,bjk->ik", a, b)
        close(run_node("addbmm", operands, attributes, dtype), wanted, np.sum(size, 0), dtype, 2)
    if len(shape) < 1:
        operands = [(dtype, added), (dtype, a[0]), (dtype, b[0, :, 0])]
        wanted = beta * added + alpha * np.array([sum(row * b[0, :, 0]) for row in a[0]])
        close(run_node("addmv", operands, attributes, dtype), wanted, size[0, :, 0], dtype, 2)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
def test_outer_is_each_times_each(dtype: str) -> None:
    a, b = some(dtype, (5,), 0), some(dtype, (70,), 1)
    wanted = np.array([[x * y for y in b] for x in a])
    close(run_node("outer", [(dtype, a), (dtype, b)], None, dtype), wanted, np.abs(wanted), dtype, 1)


EQUATIONS: list[tuple[str, list[tuple[int, ...]], bool]] = [
    ("bij,bjk->bik", [(2, 3, 5), (2, 5, 4)], True),
    ("id,jd->ij", [(3, 66), (4, 66)], True),
    ("i,d->id", [(5,), (7,)], True),
    ("bhid,bhjd->bhij", [(1, 2, 3, 5), (1, 2, 4, 5)], True),
    ("bnd,hdk->bhnk", [(2, 3, 5), (2, 5, 4)], True),
    ("ij->ji", [(3, 5)], True),
    ("ijk->k", [(2, 3, 5)], True),
    ("...i,i", [(2, 3, 5), (5,)], True),
    ("i,i", [(9,), (9,)], True),
    ("ij,kl->ijkl", [(2, 3), (4, 5)], True),
    ("ijab,klab->ikjl", [(2, 3, 2, 3), (4, 2, 2, 3)], True),
    ("ii->i", [(4, 4)], False),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)], False),
    ("ij,k->k", [(2, 3), (4,)], False),
    ("...ij,...jk->...ik", [(2, 1, 3, 5), (4, 5, 2)], False),
]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("equation", "shapes", "on_device"), EQUATIONS)
def test_einsum(equation: str, shapes: list[tuple[int, ...]], on_device: bool, dtype: str) -> None:
    arrays = [some(dtype, shape, seed) for seed, shape in enumerate(shapes)]
    operands: list[Given] = [(dtype, item) for item in arrays]
    attributes = {"equation": equation}
    assert is_on_device("einsum", operands, attributes) is on_device
    wanted = np.einsum(equation, *arrays)
    size = np.einsum(equation, *map(np.abs, arrays))
    close(run_node("einsum", operands, attributes, dtype), wanted, size, dtype, 2)


def test_an_equation_says_something_of_its_operands() -> None:
    one, two = ("float16", [3, 4]), ("float16", [4, 5])
    assert refusal("einsum", [one, two], {"equation": "ij,jk->il"}) == "SPY0209"
    assert refusal("einsum", [one, two], {"equation": "ij,kj->ik"}) == "SPY0201"
    assert refusal("einsum", [one], {"equation": "ijk->i"}) == "SPY0209"
    assert refusal("einsum", [one, two], {"equation": "ij->ij"}) == "SPY0209"
    assert refusal("einsum", [one], {"equation": "i.j->i"}) == "SPY0209"
    assert refusal("baddbmm", [one, ("float16", [2, 3, 4]), ("float16", [3, 4, 4])], {}) == "SPY0201"
    assert refusal("addmv", [one, one, ("float16", [3])], {}) == "SPY0213"
    assert refusal("outer", [one, two], {}) == "SPY0206"
