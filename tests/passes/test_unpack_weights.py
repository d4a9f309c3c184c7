"""Weights of few bits that are constants are unpacked when a graph is compiled, and the device multiplies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec.compare.check import check_outputs
from spyrec.diagnostics import SpyrecError
from spyrec.frontends.graph_builder import GraphBuilder
from spyrec.hardware.dtypes import DType
from spyrec.ir.numbers import decode, encode
from spyrec.passes.fold_constants import MOST_ELEMENTS, folded_values
from spyrec.passes.unpack_weights import is_unpacking, unpack_weights, unpacked_weight
from tests.support.examples import examples

Array = npt.NDArray[Any]
UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-8, "float32": 2.0**-24}
"""Of what the host gets back: DLFloat16 has 9 bits behind the point, bfloat16 7."""


def some(shape: tuple[int, ...], seed: int) -> Array:
    return np.round(np.random.default_rng([seed, *shape]).standard_normal(shape) * 32) / 32


def int8_product(dtype: str, rows: int, k: int, n: int) -> tuple[GraphBuilder, Array, Array]:
    """Return a graph, the input that it takes and the unpacked weight."""
    scales = np.asarray(decode(encode(np.abs(some((n,), 1)) * 0.013 + 0.001, DType(dtype)), DType(dtype)))
    weight = np.random.default_rng([2, k, n]).integers(-128, 128, (n, k))
    g = GraphBuilder("packed")
    x = g.input("x", [rows, k], dtype)
    packed, table = g.constant("w", weight.astype(np.int8)), g.constant("s", scales, dtype=dtype)
    g.output(g.op("_weight_int8pack_mm", x, packed, table, name="y"))
    return g, some((rows, k), 0), np.array([[int(q) * scales[row] for q in weight[row]] for row in range(n)])


def int4_product(dtype: str, rows: int, groups: int, n: int, size: int) -> tuple[GraphBuilder, Array, Array]:
    k = size * groups
    table = np.asarray(decode(encode(some((groups, n, 2), 1) * 0.37, DType(dtype)), DType(dtype)))
    numbers = np.random.default_rng([2, k, n]).integers(0, 16, (n, k))
    packed = np.array([[16 * row[at] + row[at + 1] for at in range(0, k, 2)] for row in numbers])
    g = GraphBuilder("packed")
    x = g.input("x", [rows, k], dtype)
    held, pairs = g.constant("w", packed.astype(np.uint8)), g.constant("z", table, dtype=dtype)
    g.output(g.op("_weight_int4pack_mm", x, held, pairs, qGroupSize=size, name="y"))
    weight = np.zeros((n, k))
    for row in range(n):
        for at in range(k):
            scale, zero = table[at // size, row]
            weight[row, at] = (numbers[row, at] - 8) * scale + zero
    return g, some((rows, k), 0), weight


def product_is_right(made: tuple[GraphBuilder, Array, Array], dtype: str) -> None:
    """One rounding of each weight, one of the sum of products, and float32 sums."""
    g, x, weight = made
    bundle = spyrec.compile(g)
    assert bundle.manifest.host_steps == ()
    run = spyrec.run(bundle, {"x": np.asarray(encode(x, DType(dtype)))}, spyrec.RunOptions(check=True))
    assert run.check is not None
    assert run.check["y"].ok, run.check["y"]
    wanted, magnitudes = x @ weight.T, np.abs(x) @ np.abs(weight.T)
    got = decode(np.asarray(run.outputs["y"]), DType(dtype))
    device = 2.0**-24 if dtype == "float32" else 2.0**-10
    allowed = (device + 2.0**-20) * magnitudes + (UNIT[dtype] + device) * np.abs(wanted) + 2.0**-24
    assert (np.abs(got - wanted) <= allowed).all()


@pytest.mark.parametrize("dtype", list(UNIT))
@pytest.mark.parametrize(("rows", "k", "n"), [(1, 1, 1), (3, 9, 5), (2, 130, 67), (65, 64, 64)])
def test_the_device_multiplies_with_weights_of_eight_bits(dtype: str, rows: int, k: int, n: int) -> None:
    product_is_right(int8_product(dtype, rows, k, n), dtype)


@pytest.mark.parametrize("dtype", list(UNIT))
@pytest.mark.parametrize(
    ("rows", "groups", "n", "size"), [(1, 1, 1, 32), (3, 3, 5, 32), (2, 2, 67, 64), (2, 1, 3, 256)]
)
def test_the_device_multiplies_with_weights_of_four_bits(dtype: str, rows: int, groups: int, n: int, size: int) -> None:
    product_is_right(int4_product(dtype, rows, groups, n, size), dtype)


@examples(8)
@given(
    st.integers(1, 70), st.integers(1, 4), st.integers(1, 70), st.sampled_from([32, 64]), st.sampled_from(list(UNIT))
)
def test_any_shape_of_groups(rows: int, groups: int, n: int, size: int, dtype: str) -> None:
    product_is_right(int4_product(dtype, rows, groups, n, size), dtype)


def digits(values: npt.NDArray[np.float64], fraction_bits: int) -> npt.NDArray[np.float64]:
    """Return numbers rounded once to a format with so many bits behind the point, ties to even."""
    mantissa, exponent = np.frexp(values)
    scale = 2.0 ** (fraction_bits + 1)
    return np.ldexp(np.rint(mantissa * scale) / scale, exponent)


@pytest.mark.parametrize("fraction_bits", [9, 10, 7])
def test_unpacked_numbers_round_as_the_exact_ones_do(fraction_bits: int) -> None:
    """Numbers just above and below a tie of the device's format, which float32 would round onto it."""
    table = np.zeros((2, 64, 2))
    ties = 1.0 + (np.arange(64) + 0.5) * 2.0**-fraction_bits
    table[..., 0] = 2.0**-30 * np.array([[1.0], [-1.0]])
    table[..., 1] = ties * np.array([[1.0], [-3.0]])
    g = GraphBuilder("ties")
    x, packed = g.input("x", [1, 64], "float32"), g.constant("w", np.full((64, 32), 0x79, np.uint8))
    zeros = g.constant("z", table.astype(np.float32))
    half = g.op("to", zeros, dtype="float16")
    y = g.op("_weight_int4pack_mm", g.op("to", x, dtype="float16"), packed, half, qGroupSize=32, name="y")
    g.output(y)
    graph = unpack_weights(g.build())
    (node,) = (item for item in graph.nodes if is_unpacking(item))
    got = unpacked_weight(graph, node)  # the references take `half` as it is in float64
    exact = np.repeat((np.array([-1.0, 1.0]) * table[..., :1] + table[..., 1:])[:, :, None], 16, axis=2)
    wanted = exact.transpose(1, 0, 2, 3).reshape(64, 64)
    assert got.dtype == np.float32
    assert (got != wanted).any()
    np.testing.assert_array_equal(digits(got.astype(np.float64), fraction_bits), digits(wanted, fraction_bits))


def test_weights_of_any_size_are_unpacked_once_in_pieces(tmp_path: Path) -> None:
    g, _, weight = int8_product("float16", 1, 1031, 1030)
    assert weight.size > MOST_ELEMENTS
    (folded,) = folded_values(unpack_weights(g.build())).values()
    np.testing.assert_array_equal(folded, weight.astype(np.float32))  # 8 and 11 bits fit into 24
    bundle = spyrec.compile(g)
    bundle.save(tmp_path / "b")
    large = [name for name, array in bundle.constants.items() if array.size >= weight.size and array.itemsize > 1]
    assert len(large) == 1
    assert (tmp_path / "b" / "constants.safetensors").stat().st_size < 5.5 * weight.size  # packed ones beside it
    assert bundle.manifest.host_steps == ()


def test_a_view_of_a_packed_constant_is_one() -> None:
    g = GraphBuilder("views")
    weight = np.random.default_rng(0).integers(-128, 128, (4, 10, 6)).astype(np.int8)
    packed = g.op("transpose", g.op("select", g.constant("w", weight), dim=0, index=2), dim0=0, dim1=1)
    scales = g.op("mul", g.constant("s", np.arange(1, 7) / 64, dtype="float16"), 2.0)
    x = g.input("x", [3, 10], "float16")
    g.output(g.op("_weight_int8pack_mm", x, packed, scales, name="y"))
    product_is_right((g, some((3, 10), 5), weight[2].T * (np.arange(1, 7) / 32)[:, None]), "float16")


def host_nodes(g: GraphBuilder) -> list[str]:
    return [name for step in spyrec.compile(g).manifest.host_steps for name in step.nodes]


def test_what_is_no_constant_stays_the_host_s() -> None:
    g = GraphBuilder("given")
    x, weight, scales = g.input("x", [3, 8]), g.input("w", [4, 8], "int8"), g.constant("s", np.ones(4, np.float16))
    g.output(g.op("_weight_int8pack_mm", x, weight, scales, name="y"))
    assert host_nodes(g) == ["y"]
    g = GraphBuilder("many")
    x, weight = g.input("x", [300, 128], "float32"), g.constant("w", np.ones((128, 128), np.int8))
    g.output(g.op("_weight_int8pack_mm", x, weight, g.constant("s", np.ones(128, np.float32)), name="y"))
    assert host_nodes(g) == ["y"]


def test_a_second_run_copies_the_input_and_the_result_alone() -> None:
    g, x, _ = int8_product("float16", 3, 64, 64)
    model = spyrec.load(spyrec.compile(g))
    moved = [model.run({"x": x.astype(np.float16)}).stats.total for _ in range(2)]
    rows = 3 * 64 * 2
    assert [item.dma_h2d_bytes for item in moved] == [rows + 64 * 64 * 2, rows]
    assert [item.dma_d2h_bytes for item in moved] == [rows, rows]


@pytest.mark.parametrize("numerics", ["ieee", "f32"])
def test_the_check_holds_under_other_numerics(numerics: str) -> None:
    for g, x, _ in (int8_product("float16", 3, 70, 5), int4_product("float16", 3, 2, 5, 32)):
        options = spyrec.RunOptions(check=True, numerics=numerics)
        run = spyrec.run(spyrec.compile(g), {"x": x.astype(np.float16)}, options)
        assert run.check is not None
        assert run.check["y"].ok, run.check["y"]


def test_the_check_forgives_no_more_than_a_rounding_of_each_weight() -> None:
    for g, x, weight in (int8_product("float16", 4, 64, 64), int4_product("float16", 4, 2, 64, 32)):
        given, exact = {"x": x.astype(np.float16)}, x @ weight.T
        report = check_outputs(g.build(), given, {"y": exact})["y"]
        assert report.ok
        wrong = exact.copy()
        wrong[2, 5] += 2.0**-7 * (np.abs(x) @ np.abs(weight.T))[2, 5]
        report = check_outputs(g.build(), given, {"y": wrong})["y"]
        assert report.failed_elements == 1
        assert report.worst.index == (2, 5)


def test_a_bisection_of_what_was_folded_is_refused() -> None:
    g, x, _ = int8_product("float16", 3, 70, 5)
    with pytest.raises(SpyrecError) as error:
        spyrec.run(spyrec.compile(g), {"x": x.astype(np.float16)}, spyrec.RunOptions(bisect=True))
    assert error.value.diagnostics[0].code == "SPY0786"
    assert '"y" = _weight_int8pack_mm' in error.value.diagnostics[0].message
