"""Products of float32 matrices: on the device where they have room, against float64 and an error of 24 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.one_node import Given, is_on_device, numbers_of, run_node

Array = npt.NDArray[Any]


def some(shape: tuple[int, ...], seed: int) -> Array:
    return numbers_of("float32", np.random.default_rng([seed, *shape]).standard_normal(shape))


SHAPES = [
    ("matmul", (1, 64, 1), (1, 1, 12)),
    ("matmul", (1, 64, 1), (1, 1, 1)),
    ("matmul", (2, 1, 3, 5), (6, 5, 4)),
    ("matmul", (7,), (2, 7, 3)),
    ("matmul", (2, 4, 5), (5,)),
    ("mm", (3, 70), (70, 5)),
    ("mm", (70, 33), (33, 40)),
    ("bmm", (3, 2, 9), (3, 9, 65)),
    ("mv", (5, 130), (130,)),
    ("dot", (100,), (100,)),
]


@pytest.mark.parametrize(("op", "left", "right"), SHAPES)
def test_the_device_multiplies_float32(op: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = some(left, 0), some(right, 1)
    operands: list[Given] = [("float32", a), ("float32", b)]
    assert is_on_device(op, operands)
    got = run_node(op, operands, result="float32")
    wanted = np.matmul(a, b)
    terms = left[-1]
    allowed = (terms + 3) * 2.0**-24 * np.matmul(np.abs(a), np.abs(b))
    assert got.shape == wanted.shape
    assert (np.abs(got - wanted) <= allowed).all()


@pytest.mark.parametrize("has_bias", [True, False])
def test_linear_and_addmm_of_float32(has_bias: bool) -> None:
    x, weight, bias = some((4, 33), 0), some((9, 33), 1), some((9,), 2)
    operands: list[Given] = [("float32", x), ("float32", weight), ("float32", bias) if has_bias else None]
    assert is_on_device("linear", operands)
    wanted = x @ weight.T + (bias if has_bias else 0)
    allowed = 40 * 2.0**-24 * (np.abs(x) @ np.abs(weight.T) + 1)
    assert (np.abs(run_node("linear", operands, result="float32") - wanted) <= allowed).all()
    operands = [("float32", bias), ("float32", x), ("float32", weight.T)]
    got = run_node("addmm", operands, {"beta": 0.5, "alpha": 2.0}, "float32")
    assert (np.abs(got - (0.5 * bias + 2 * (x @ weight.T))) <= 2 * allowed).all()


def test_the_host_multiplies_what_has_no_room() -> None:
    a, b = some((130, 256), 0), some((256, 128), 1)
    operands: list[Given] = [("float32", a), ("float32", b)]
    assert not is_on_device("mm", operands)
    np.testing.assert_array_equal(run_node("mm", operands, result="float32"), np.float32(a @ b))


def test_integers_multiply_whole() -> None:
    a, b = np.array([[2**20, 3], [5, 7]]), np.array([[2**10, -1], [4, 2]])
    operands: list[Given] = [("int64", a), ("int64", b)]
    np.testing.assert_array_equal(run_node("mm", operands, result="int64"), [[2**30 + 12, 6 - 2**20], [5148, 9]])
    got = run_node("addmm", [("int32", [1, 1]), ("int32", a // 2**10), ("int32", b)], {"alpha": 2, "beta": 3}, "int32")
    np.testing.assert_array_equal(got, [[2**21 + 3, 3 - 2**11], [3, 3]])
