"""Grouped, scaled and packed matrix products: against loops and tables of bits, and end to end."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.ir.numbers import decode, encode
from tests.catalogue.test_indexing import refusal
from tests.support.one_node import Given, run_node

Array = npt.NDArray[Any]
UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}


def some(shape: tuple[int, ...], seed: int) -> Array:
    return np.round(np.random.default_rng([seed, *shape]).standard_normal(shape) * 32) / 32


def close(got: Array, wanted: Array, dtype: str) -> None:
    """The host rounds once."""
    assert got.shape == wanted.shape
    assert (np.abs(got - wanted) <= UNIT[dtype] * np.abs(wanted) * (1 + 2.0**-20) + 2.0**-25).all()


@pytest.mark.parametrize("dtype", list(UNIT))
@pytest.mark.parametrize("op", ["grouped_mm", "_grouped_mm"])
def test_rows_meet_the_matrix_of_their_group(op: str, dtype: str) -> None:
    a, b, ends = some((7, 5), 0), some((3, 5, 4), 1), [2, 2, 6]
    owner = [0, 0, 2, 2, 2, 2, None]
    wanted = np.array([a[row] @ b[group] if group is not None else np.zeros(4) for row, group in enumerate(owner)])
    close(run_node(op, [(dtype, a), (dtype, b), ("int32", ends)], None, dtype), wanted, dtype)
    columns = np.array([b[group].T @ a[row] if group is not None else np.zeros(4) for row, group in enumerate(owner)])
    got = run_node(op, [(dtype, b.transpose(0, 2, 1)), (dtype, a.T), ("int32", ends)], None, dtype)
    close(got, columns.T, dtype)
    wide = some((4, 7), 2)
    wanted = np.array([wide[:, i:j] @ a[i:j] for i, j in ((0, 2), (2, 2), (2, 6))])
    close(run_node(op, [(dtype, wide), (dtype, a), ("int32", ends)], None, dtype), wanted, dtype)
    got = run_node(op, [(dtype, b.transpose(0, 2, 1)), (dtype, b), None], None, dtype)
    close(got, np.array([matrix.T @ matrix for matrix in b]), dtype)


def eight_bits(bits: int, *, is_e4m3: bool) -> float:
    """Read the two formats as their specifications write them."""
    sign, rest = (-1.0 if bits & 0x80 else 1.0), bits & 0x7F
    exponent, fraction, bias = (rest >> 3, rest & 7, 7) if is_e4m3 else (rest >> 2, rest & 3, 16)
    steps = 8 if is_e4m3 else 4
    if exponent == 0:
        return sign * fraction / steps * 2.0 ** (1 - bias)
    return sign * (1 + fraction / steps) * 2.0 ** (exponent - bias)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2fnuz"])
@pytest.mark.parametrize("is_by_row", [True, False])
def test_scaled_products_of_eight_bits(name: str, is_by_row: bool) -> None:
    generator = np.random.default_rng(3)
    a_bits, b_bits = (
        generator.integers(0, 2, shape) * 128 + generator.integers(20, 90, shape) for shape in ((3, 6), (6, 4))
    )
    a, b = (
        np.array([[eight_bits(int(x), is_e4m3="e4" in name) for x in row] for row in bits]) for bits in (a_bits, b_bits)
    )
    scale_a, scale_b = (np.abs(some((3, 1), 1)) + 0.5, np.abs(some((1, 4), 2)) + 0.5) if is_by_row else (0.5, 0.25)
    bias = some((4,), 4)
    operands: list[Given] = [
        (name, a_bits),
        (name, b_bits),
        ("float32", scale_a),
        ("float32", scale_b),
        ("bfloat16", bias),
    ]
    wanted = (a * scale_a) @ (b * scale_b) + bias
    for dtype in ("bfloat16", "float32"):
        close(run_node("_scaled_mm", operands, {"out_dtype": dtype}, dtype), wanted, dtype)


@pytest.mark.parametrize("dtype", list(UNIT))
def test_weights_of_eight_bits_have_a_scale_per_row(dtype: str) -> None:
    x, scales = some((3, 9), 0), some((4,), 1)
    weight = np.random.default_rng(2).integers(-128, 128, (4, 9))
    wanted = np.array([[sum(x[m] * weight[n]) * scales[n] for n in range(4)] for m in range(3)])
    close(run_node("_weight_int8pack_mm", [(dtype, x), ("int8", weight), (dtype, scales)], None, dtype), wanted, dtype)


@pytest.mark.parametrize("dtype", list(UNIT))
def test_weights_of_four_bits_are_two_in_a_byte(dtype: str) -> None:
    x, table = some((2, 64), 0), some((2, 3, 2), 1)
    numbers = np.random.default_rng(2).integers(0, 16, (3, 64))
    packed = np.array([[16 * row[k] + row[k + 1] for k in range(0, 64, 2)] for row in numbers])
    wanted = np.zeros((2, 3))
    for m in range(2):
        for n in range(3):
            for k in range(64):
                scale, zero = table[k // 32, n]
                wanted[m, n] += x[m, k] * ((numbers[n, k] - 8) * scale + zero)
    operands: list[Given] = [(dtype, x), ("uint8", packed), (dtype, table)]
    close(run_node("_weight_int4pack_mm", operands, {"qGroupSize": 32}, dtype), wanted, dtype)


def test_ends_that_fall_stop_the_run() -> None:
    with pytest.raises(SpyrecError) as error:
        run_node("grouped_mm", [("float16", np.ones((4, 2))), ("float16", np.ones((2, 2, 2))), ("int32", [3, 2])])
    assert error.value.diagnostics[0].code == "SPY0231"
    assert "group 1 runs from 3 to 2" in error.value.diagnostics[0].message


def test_refusals() -> None:
    a, b, ends = ("float16", [4, 5]), ("float16", [2, 5, 3]), ("int32", [2])
    assert refusal("grouped_mm", [a, b], {}) == "SPY0219"
    assert refusal("grouped_mm", [b, ("float16", [2, 3, 3]), ends], {}) == "SPY0219"
    assert refusal("grouped_mm", [a, b, ("int32", [3])], {}) == "SPY0207"
    assert refusal("grouped_mm", [a, b, ("float16", [2])], {}) == "SPY0230"
    assert refusal("grouped_mm", [a, b, ends, ("float16", [3])], {}) == "SPY0211"
    assert refusal("grouped_mm", [a, b, ends], {"out_dtype": "float32"}) == "SPY0211"
    assert refusal("grouped_mm", [("float16", [4, 4]), b, ends], {}) == "SPY0213"
    eight, one = ("float8_e4m3fn", [4, 4]), ("float32", list[int]())
    assert refusal("_scaled_mm", [eight, eight, one, one], {}) == "SPY0211"
    assert refusal("_scaled_mm", [eight, a, one, one], {"out_dtype": "bfloat16"}) == "SPY0202"
    assert refusal("_scaled_mm", [eight, eight, ("float32", [4]), one], {"out_dtype": "bfloat16"}) == "SPY0207"
    assert refusal("_scaled_mm", [eight, eight, one, one, None, one], {"out_dtype": "bfloat16"}) == "SPY0211"
    packed, table = ("uint8", [3, 32]), ("float16", [2, 3, 2])
    x = ("float16", [2, 64])
    assert refusal("_weight_int4pack_mm", [x, packed, table], {"qGroupSize": 48}) == "SPY0209"
    assert refusal("_weight_int4pack_mm", [x, ("int32", [3, 32]), table], {"qGroupSize": 32}) == "SPY0202"
    assert refusal("_weight_int8pack_mm", [x, ("int8", [3, 64]), ("float16", [2])], {}) == "SPY0207"


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2fnuz"])
def test_eight_bit_floats_round_to_the_nearest(name: str) -> None:
    """Against each pattern's number as the specifications write it; PyTorch 2.13 rounds all of these so."""
    dtype, is_e4m3 = DType(name), "e4" in name
    patterns = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(encode(decode(patterns, dtype), dtype), patterns)
    numbers = [eight_bits(bits, is_e4m3=is_e4m3) for bits in range(127 if is_e4m3 else 128)]
    for low, (here, there) in enumerate(itertools.pairwise(numbers)):
        middle = (here + there) / 2
        near = np.array([np.nextafter(middle, 0), middle, np.nextafter(middle, np.inf)])
        assert encode(near, dtype).tolist() == [low, low + low % 2, low + 1]
        signs = [bits | 0x80 if bits or is_e4m3 else 0 for bits in (low, low + low % 2, low + 1)]
        assert encode(-near, dtype).tolist() == signs
    beyond = encode(np.array([1e6, -1e6, np.inf, np.nan]), dtype).tolist()
    assert beyond == ([0x7E, 0xFE, 0x7E, 0x7F] if is_e4m3 else [0x80] * 4)


@pytest.mark.parametrize("moved", ["t", "cat"])
def test_a_scaled_product_takes_what_was_moved_before(moved: str) -> None:
    """PyTorch's usual form is ``_scaled_mm(a, b.t(), ...)``; every pattern goes through, NaN as NaN."""
    generator = np.random.default_rng(5)
    a_bits = generator.integers(0, 127, (3, 16)).astype(np.uint8)
    b_bits = generator.permutation(256).astype(np.uint8).reshape(16, 16)
    builder = spyrec.GraphBuilder("g")
    a, b = (builder.input(name, (rows, 16), "float8_e4m3fn") for name, rows in (("a", 3), ("b", 16)))
    scale = builder.input("s", (), "float32")
    given = builder.t(b) if moved == "t" else builder.cat([b, b], 1)
    bits = b_bits.T if moved == "t" else np.concatenate([b_bits, b_bits], 1)
    builder.output(builder._scaled_mm(a, given, scale, scale, out_dtype="float32"), given)
    feed = {"a": a_bits, "b": b_bits, "s": np.array(0.5, np.float32)}
    done = spyrec.run(spyrec.compile(builder), feed, spyrec.RunOptions(check=True))
    assert done.check is not None
    assert all(item.ok for item in done.check.values())
    product, back = done.outputs.values()
    np.testing.assert_array_equal(back, bits)
    left, right = (numbers_of_patterns(item) for item in (a_bits, bits))
    np.testing.assert_allclose(np.asarray(product, np.float64), left @ right / 4, rtol=UNIT["float32"] * (1 + 2.0**-20))


@pytest.mark.parametrize("is_moved", [False, True])
@pytest.mark.parametrize("is_inline", [False, True])
def test_a_scaled_product_with_a_constant_of_eight_bits(is_moved: bool, is_inline: bool) -> None:
    """The bits of a builder's constant lie beside the graph's text, which may hold numbers itself: both are read."""
    generator = np.random.default_rng(6)
    a_bits, b_bits = (generator.integers(0, 127, shape).astype(np.uint8) for shape in ((3, 16), (16, 16)))
    builder = spyrec.GraphBuilder("g")
    a, scale = builder.input("a", (3, 16), "float8_e4m3fn"), builder.input("s", (), "float32")
    b = builder.constant("b", b_bits, dtype="float8_e4m3fn")
    given = builder.t(b) if is_moved else b
    builder.output(builder._scaled_mm(a, given, scale, scale, out_dtype="float32"))
    graph: Any = builder
    if is_inline:
        graph = json.loads(spyrec.compile(builder).graph_json or b"")
        (constant,) = graph["constants"]
        del constant["data"]
        constant["value"] = numbers_of_patterns(b_bits).tolist()
    feed = {"a": a_bits, "s": np.array(0.5, np.float32)}
    done = spyrec.run(spyrec.compile(graph), feed, spyrec.RunOptions(check=True))
    assert done.check is not None
    assert all(item.ok for item in done.check.values())
    (product,) = done.outputs.values()
    left, right = numbers_of_patterns(a_bits), numbers_of_patterns(b_bits.T if is_moved else b_bits)
    np.testing.assert_allclose(np.asarray(product, np.float64), left @ right / 4, rtol=UNIT["float32"] * (1 + 2.0**-20))


def numbers_of_patterns(bits: Array) -> Array:
    return np.array([[eight_bits(int(x), is_e4m3=True) if x & 0x7F != 0x7F else np.nan for x in row] for row in bits])
