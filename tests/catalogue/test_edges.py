"""What PyTorch does at the edges of its ops: extents of 0, fractions beside integers, factors that change nothing.

The expected numbers are those of PyTorch 2.13; ``test_against_torch.py`` asks it where it is installed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.diagnostics import SpyrecError
from spyrec.ir.evaluate import evaluate
from spyrec.ir.reader import read_graph_data
from tests.support.graph_files import graph_data, node, tensor

Array = npt.NDArray[np.generic]
Case = tuple[str, list[Array], dict[str, object], Array]

F16, I32, I64 = np.float16, np.int32, np.int64
X = np.arange(1.0, 5.0, dtype=F16).reshape(1, 1, 4)
SQUARE = np.arange(16.0, dtype=F16).reshape(1, 1, 4, 4)

BYTES = np.array([1, 2], np.uint8)
WIDE = np.array([2**31 - 1, -(2**31), 3])
"""Whole numbers whose products float64 rounds."""

CASES: list[Case] = [
    ("einsum", [np.ones((1, 2, 3), I32), np.ones(3, I32)], {"equation": "...ik, ...j -> ij"}, np.full((2, 3), 3, I64)),
    ("einsum", [np.ones((2, 3), I32), np.ones((3, 2), I32)], {"equation": "ik,kj->ij"}, np.full((2, 2), 3, I32)),
    ("diagonal", [np.ones((3, 3), F16)], {"offset": 2**62}, np.zeros(0, F16)),
    ("pow", [np.array([True, False])], {"exponent": 2}, np.array([1, 0])),
    ("mul", [WIDE, WIDE], {}, WIDE * WIDE),
    ("square", [WIDE], {}, WIDE * WIDE),
    ("addcmul", [WIDE, WIDE, WIDE], {"value": 3}, WIDE + 3 * WIDE * WIDE),
    ("rsub", [WIDE * WIDE, WIDE], {"alpha": 3}, WIDE - 3 * WIDE * WIDE),
    ("add", [WIDE * WIDE, WIDE], {"alpha": -3}, WIDE * WIDE - 3 * WIDE),
    ("sub", [WIDE * WIDE, WIDE], {}, WIDE * WIDE - WIDE),
    ("maximum", [WIDE * WIDE, WIDE * WIDE - 1], {}, WIDE * WIDE),
    ("eq", [WIDE * WIDE, WIDE * WIDE - 1], {}, np.zeros(3, np.bool_)),
    ("gt", [WIDE * WIDE, WIDE * WIDE - 1], {}, np.ones(3, np.bool_)),
    # an int64 range is one of whole numbers; of narrower ones the fractions say how many there are
    ("arange", [], {"start": 0.1, "end": -7.9, "step": -1.5, "dtype": "int64"}, np.arange(0, -7, -1)),
    ("arange", [], {"start": 0.1, "end": -7.9, "step": -1.5, "dtype": "int32"}, np.arange(0, -6, -1, dtype=I32)),
    ("arange", [], {"start": -0.9, "end": 2.1, "step": 2.0, "dtype": "int64"}, np.array([0])),
    ("arange", [], {"start": -0.9, "end": 2.1, "step": 2.0, "dtype": "int16"}, np.array([0, 2], np.int16)),
    ("arange", [], {"end": 3.1, "dtype": "int64"}, np.arange(3)),
    ("repeat", [X], {"repeats": [2, 0, 1]}, np.zeros((2, 0, 4), F16)),
    ("tile", [X], {"dims": [0]}, np.zeros((1, 1, 0), F16)),
    ("take_along_dim", [X, np.array([[[-1, 0, -4]]])], {"dim": 2}, np.array([[[4, 1, 1]]], F16)),
    ("searchsorted", [np.zeros((2, 0), F16), np.ones((2, 3), F16)], {}, np.zeros((2, 3), I64)),
    ("searchsorted", [np.zeros((0, 0), F16), np.zeros((0, 0), F16)], {}, np.zeros((0, 0), I64)),
    ("prelu", [np.ones((5, 0, 5), F16), np.ones(0, F16)], {}, np.zeros((5, 0, 5), F16)),
    ("conv1d", [np.ones((1, 3, 0), F16), np.ones((3, 3, 3), F16)], {"padding": 2}, np.zeros((1, 3, 2), F16)),
    ("conv2d", [np.ones((0, 3, 4, 4), F16), np.ones((2, 3, 3, 3), F16)], {}, np.zeros((0, 2, 2, 2), F16)),
    (
        "conv_transpose2d",
        [np.ones((2, 0, 3, 3), F16), np.ones((0, 2, 1, 1), F16)],
        {},
        np.zeros((2, 2, 3, 3), F16),
    ),
    (
        "scaled_dot_product_attention",
        [np.ones((2, 3, 0), F16), np.ones((2, 5, 0), F16), np.ones((2, 5, 4), F16)],
        {},
        np.ones((2, 3, 4), F16),
    ),
    (
        "scaled_dot_product_attention",
        [np.ones((2, 3, 4), F16), np.ones((2, 0, 4), F16), np.ones((2, 0, 5), F16)],
        {},
        np.zeros((2, 3, 5), F16),
    ),
    ("col2im", [np.zeros((0, 4, 4), F16)], {"output_size": [3, 3], "kernel_size": 2}, np.zeros((0, 1, 3, 3), F16)),
    (
        "_weight_int4pack_mm",
        [np.ones((2, 32), F16), np.zeros((0, 16), np.uint8), np.zeros((1, 0, 2), F16)],
        {"qGroupSize": 32},
        np.zeros((2, 0), F16),
    ),
    # integers of one operand that are added up are of int64, as those of sum
    ("einsum", [np.full((2, 3), 2, I32)], {"equation": "ij->j"}, np.full(3, 4, I64)),
    ("einsum", [np.ones((2, 3), np.bool_)], {"equation": "ij->i"}, np.full(2, 3, I64)),
    ("einsum", [np.full((2, 3), 2, I32)], {"equation": "ij->ji"}, np.full((3, 2), 2, I32)),
    # a dim whose extent stays is copied, but by the nearest of one or three dims
    ("interpolate", [X], {"scale_factor": 1.2, "mode": "linear"}, X),
    ("interpolate", [X], {"scale_factor": 1.2}, np.array([[[1, 1, 2, 3]]], F16)),
    ("interpolate", [SQUARE], {"scale_factor": 1.2, "mode": "bilinear"}, SQUARE),
    ("interpolate", [SQUARE], {"scale_factor": 1.2}, SQUARE),
    (
        "interpolate",
        [SQUARE],
        {"scale_factor": 1.2, "mode": "nearest-exact"},
        SQUARE[:, :, [0, 1, 2, 2]][:, :, :, [0, 1, 2, 2]],
    ),
]


def names(case: Case) -> str:
    return f"{case[0]}{[list(item.shape) for item in case[1]]}"


def graph_of(op: str, inputs: list[Array], attributes: dict[str, object]) -> dict[str, object]:
    given = [tensor(f"x{place}", *item.shape, dtype=str(item.dtype)) for place, item in enumerate(inputs)]
    return graph_data(given, [node("y", op, *(str(item["name"]) for item in given), **attributes)], ["y"])


@pytest.mark.parametrize("case", CASES, ids=names)
def test_references_do_what_pytorch_does(case: Case) -> None:
    op, inputs, attributes, wanted = case
    graph = read_graph_data(graph_of(op, inputs, attributes))
    found = evaluate(graph, {f"x{place}": item for place, item in enumerate(inputs)})["y"]
    assert (graph.type_of("y").dtype.value, graph.type_of("y").shape) == (str(wanted.dtype), wanted.shape)
    np.testing.assert_array_equal(found, wanted.astype(found.dtype))


@pytest.mark.parametrize(
    "case", [case for case in CASES if 0 in case[3].shape or any(0 in item.shape for item in case[1])], ids=names
)
def test_and_so_do_runs(case: Case) -> None:
    op, inputs, attributes, wanted = case
    bundle = spyrec.compile(graph_of(op, inputs, attributes))
    result = spyrec.run(bundle, {f"x{place}": item for place, item in enumerate(inputs)}, spyrec.RunOptions(check=True))
    assert result.is_ok
    np.testing.assert_array_equal(result.outputs["y"], wanted)


REFUSED: list[tuple[str, list[Array], dict[str, object], str]] = [
    ("einsum", [np.ones((1, 3), F16)], {"equation": "ii->i"}, "SPY0201"),
    ("take_along_dim", [X, np.array([[[-5]]])], {"dim": 2}, "SPY0231"),
    ("scatter", [np.ones(3, F16), np.zeros((), I64), np.zeros(0, F16)], {"dim": 0}, "SPY0207"),
    ("arange", [], {"start": 0.0, "end": 5.0, "step": 0.5, "dtype": "int64"}, "SPY0209"),
    # a number of an attribute beside whole numbers is one of them, and a factor has 64 bits
    ("add", [WIDE, WIDE], {"alpha": 0.5}, "SPY0215"),
    ("sub", [WIDE, WIDE], {"alpha": 1e19}, "SPY0215"),
    ("rsub", [WIDE, WIDE], {"alpha": 1e19}, "SPY0215"),
    ("addcmul", [WIDE, WIDE, WIDE], {"value": 1e19}, "SPY0215"),
    ("addmm", [np.ones((1, 1), I64)] * 3, {"beta": 1e19}, "SPY0215"),
    ("index_add", [WIDE, np.array([0]), np.array([3])], {"dim": 0, "alpha": 1e19}, "SPY0215"),
    ("clamp", [BYTES], {"max": -5}, "SPY0215"),
    ("clamp", [BYTES], {"min": 300}, "SPY0215"),
    ("pow", [BYTES], {"exponent": 300}, "SPY0215"),
    ("pow", [WIDE], {"exponent": -1}, "SPY0209"),
    ("pow", [np.ones(3, np.bool_)], {"exponent": -2}, "SPY0209"),
    ("pow", [WIDE], {"exponent": True}, "SPY0122"),
    ("threshold", [BYTES], {"threshold": 1, "value": 300}, "SPY0215"),
    ("hardtanh", [BYTES], {}, "SPY0215"),
    ("hardtanh", [np.ones(3, I64)], {"min_val": -0.5, "max_val": 2.0}, "SPY0215"),
    ("threshold", [np.ones(3, I64)], {"threshold": 1.0, "value": 0.5}, "SPY0215"),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "code"), REFUSED)
def test_what_has_no_such_numbers_is_refused(
    op: str, inputs: list[Array], attributes: dict[str, object], code: str
) -> None:
    with pytest.raises(SpyrecError) as caught:
        evaluate(
            read_graph_data(graph_of(op, inputs, attributes)),
            {f"x{place}": item for place, item in enumerate(inputs)},
        )
    assert code in {item.code for item in caught.value.diagnostics}


WIDER_THAN_64_BITS = (2**63, 2**64, -(2**63) - 1, 10**30)


@pytest.mark.parametrize("number", WIDER_THAN_64_BITS)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("op", ["add", "mul", "lt", "maximum", "where", "masked_fill", "clamp", "full_like"])
def test_a_whole_number_beyond_64_bits_beside_integers_is_refused_with_all_its_digits(
    op: str, dtype: str, number: int
) -> None:
    builder = spyrec.GraphBuilder()
    x, mask = builder.input("x", (2,), dtype), builder.input("m", (2,), "bool")
    if dtype == "bool" and op in ("masked_fill", "full_like"):
        pytest.skip("bools are filled with any number's truth")
    operands = [mask, x, number] if op == "where" else [x, mask, number] if op == "masked_fill" else [x, number]
    with pytest.raises(SpyrecError) as caught:
        getattr(builder, op)(*operands)
    (found,) = caught.value.diagnostics
    assert found.code == "SPY0215"
    assert str(number) in found.message


@pytest.mark.parametrize("number", WIDER_THAN_64_BITS)
@pytest.mark.parametrize("op", ["add", "maximum", "where", "masked_fill", "clamp", "full_like"])
def test_beside_floats_it_is_a_float(op: str, number: int) -> None:
    def result(given: float) -> Array:
        builder = spyrec.GraphBuilder()
        x, mask = builder.input("x", (2,), "float32"), builder.input("m", (2,), "bool")
        operands = [mask, x, given] if op == "where" else [x, mask, given] if op == "masked_fill" else [x, given]
        builder.output(getattr(builder, op)(*operands, name="y"))
        inputs = {"x": np.array([1.0, 2.0], np.float32), "m": np.array([True, False])}
        return spyrec.run(spyrec.compile(builder), inputs).outputs["y"]

    found, wanted = result(number), result(float(number))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, wanted)


def test_a_float_beside_integers_stays_one_whatever_its_size() -> None:
    data = graph_of("mul", [np.array([1, 2])], {"other": 1e30})
    found = spyrec.run(spyrec.compile(data), {"x0": np.array([1, 2])}).outputs["y"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array([1e30, 2e30], np.float32))


INF = float("inf")
SIGNED = np.array([-3.0, -0.5, 0.0, 0.5, 3.0])
INFINITE_FACTORS: list[tuple[str, dict[str, object], list[float]]] = [
    ("elu", {"alpha": "inf"}, [-INF, -INF, 0.0, 0.5, 3.0]),
    ("elu", {"input_scale": "inf"}, [-1.0, -1.0, 0.0, 0.5, 3.0]),
    ("elu", {"input_scale": "-inf"}, [INF, INF, 0.0, 0.5, 3.0]),
    ("leaky_relu", {"negative_slope": "inf"}, [-INF, -INF, float("nan"), 0.5, 3.0]),
    ("leaky_relu", {"negative_slope": "-inf"}, [INF, INF, float("nan"), 0.5, 3.0]),
]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("op", "attributes", "wanted"), INFINITE_FACTORS, ids=str)
def test_infinite_factors_leave_the_other_side_as_it_is(
    op: str, attributes: dict[str, object], wanted: list[float], dtype: str
) -> None:
    graph = graph_data([tensor("x", 5, dtype=dtype)], [node("y", op, "x", **attributes)], ["y"])
    run = spyrec.run(spyrec.compile(graph), {"x": SIGNED.astype(dtype)}, spyrec.RunOptions(check=True))
    assert run.is_ok
    np.testing.assert_array_equal(run.outputs["y"].astype(np.float64), wanted)


NORMS_OF_NOTHING: list[tuple[str, tuple[int, ...], dict[str, object]]] = [
    ("layer_norm", (3, 0), {"normalized_shape": [0]}),
    ("rms_norm", (3, 0), {"normalized_shape": [0]}),
    ("group_norm", (2, 4, 0), {"num_groups": 2}),
    ("instance_norm", (2, 4, 0), {}),
]


@pytest.mark.parametrize(("op", "shape", "attributes"), NORMS_OF_NOTHING, ids=str)
def test_norms_of_empty_rows_warn_of_nothing(op: str, shape: tuple[int, ...], attributes: dict[str, object]) -> None:
    """A warning is an error in these tests: NumPy's mean of an empty slice is one."""
    graph = graph_data([tensor("x", *shape)], [node("y", op, "x", **attributes)], ["y"])
    run = spyrec.run(spyrec.compile(graph), {"x": np.zeros(shape, F16)}, spyrec.RunOptions(check=True))
    assert run.is_ok
    assert run.outputs["y"].shape == shape


@pytest.mark.parametrize("op", ["abs", "cosh", "isnan"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_numbers_that_signal_warn_of_nothing(op: str, dtype: str) -> None:
    """A NaN whose first bit of the fraction is 0 raises a flag of the processor where it is converted."""
    bits = np.array([0x7F81, 0xFF81, 0x7FC0, 0x3F80], np.uint16)
    x = bits if dtype == "bfloat16" else (bits.astype(np.uint32) << 16).view(np.float32)
    graph = graph_data([tensor("x", 4, dtype=dtype)], [node("y", op, "x")], ["y"])
    run = spyrec.run(spyrec.compile(graph), {"x": x}, spyrec.RunOptions(check=True))
    assert run.is_ok
