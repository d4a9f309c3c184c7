"""Traced programs as graphs, written by hand: rewrites compute what PyTorch documents, without torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.frontends.torch_export.lower import lower
from spyrec.frontends.torch_export.traced import (
    Argument,
    Size,
    Tensor,
    TracedInput,
    TracedNode,
    TracedOutput,
    TracedProgram,
    TracedTensor,
)
from spyrec.ir.evaluate import evaluate

Array = npt.NDArray[np.generic]
Floats = npt.NDArray[np.float64]


def _program(target: str, arguments: Mapping[str, Argument], shape: Sequence[int], **given: Array) -> TracedProgram:
    """Return a program of one operation over inputs of these names."""
    inputs = tuple(
        TracedInput(name, "user", TracedTensor(array.dtype.name, array.shape)) for name, array in given.items()
    )
    node = TracedNode("y", target, arguments, (("y", TracedTensor("float32", tuple(shape))),))
    return TracedProgram("graph", inputs, (node,), (TracedOutput(Tensor("y")),))


def _computed(target: str, arguments: Mapping[str, Argument], shape: Sequence[int], **given: Array) -> Floats:
    """Return what one operation computes in float64."""
    source = lower(_program(target, arguments, shape, **given))
    assert source.problems == ()
    assert source.graph is not None
    (found,) = evaluate(source.graph, given).values()
    return found.astype(np.float64)


def _random(*shape: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("mode", "fold"), [(0, np.sum), (1, np.mean), (2, np.max)])
def test_bags_are_folded_by_the_mode_of_that_number(mode: int, fold: Callable[[Floats, int], Floats]) -> None:
    weight, indices, offsets = _random(7, 3), np.asarray([1, 6, 2, 2, 0]), np.asarray([0, 2])
    arguments: dict[str, Argument] = {
        "weight": Tensor("weight"), "indices": Tensor("indices"), "offsets": Tensor("offsets"),
        "scale_grad_by_freq": False, "mode": mode, "sparse": False, "per_sample_weights": None,
        "include_last_offset": False, "padding_idx": None,
    }  # fmt: skip
    found = _computed(
        "aten.embedding_bag.padding_idx", arguments, [2, 3], weight=weight, indices=indices, offsets=offsets
    )
    bags = [fold(weight[indices[:2]].astype(float), 0), fold(weight[indices[2:]].astype(float), 0)]
    np.testing.assert_allclose(found, np.stack(bags), rtol=1e-6)


def test_a_norm_by_the_batch_is_computed() -> None:
    x, weight, bias = _random(2, 3, 4), _random(3), _random(3) + 1
    arguments: dict[str, Argument] = {
        "input": Tensor("x"), "weight": Tensor("weight"), "bias": Tensor("bias"), "training": True,
        "momentum": 0.1, "eps": 1e-3,
    }  # fmt: skip
    found = _computed("aten._native_batch_norm_legit.no_stats", arguments, [2, 3, 4], x=x, weight=weight, bias=bias)
    wide = x.astype(float)
    mean, variance = wide.mean((0, 2), keepdims=True), wide.var((0, 2), keepdims=True)
    wanted = (wide - mean) / np.sqrt(variance + 1e-3) * weight[:, None] + bias[:, None]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_norm_that_changes_its_statistics_is_refused_with_its_cure() -> None:
    x = _random(2, 3)
    arguments: dict[str, Argument] = {"input": Tensor("x"), "weight": None, "bias": None, "running_mean": Tensor("x")}
    (problem,) = lower(_program("aten._native_batch_norm_legit.default", arguments, [2, 3], x=x)).problems
    assert "training" in problem.reason
    assert problem.hint is not None
    assert "model.eval()" in problem.hint


def test_a_product_of_two_operands_and_a_cube_of_weights() -> None:
    x, y, weight, bias = _random(4, 3), _random(4, 2), _random(5, 3, 2), _random(5)
    arguments: dict[str, Argument] = {
        "input1": Tensor("x"), "input2": Tensor("y"), "weight": Tensor("weight"), "bias": Tensor("bias")
    }  # fmt: skip
    found = _computed("aten.bilinear.default", arguments, [4, 5], x=x, y=y, weight=weight, bias=bias)
    wanted = np.einsum("bi,oij,bj->bo", *(item.astype(float) for item in (x, weight, y))) + bias
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_result_that_a_graph_has_not_is_refused_where_it_is_read() -> None:
    """It was left out of the outputs, in silence."""
    x = _random(2, 3)
    program = _program("aten.native_layer_norm.default", {"input": Tensor("x"), "normalized_shape": (3,)}, [2, 3], x=x)
    results = (*program.nodes[0].results, ("mean", TracedTensor("float32", (2, 1))))
    program = replace(program, nodes=(replace(program.nodes[0], results=results),))
    assert lower(program).problems == ()
    read = lower(replace(program, outputs=(*program.outputs, TracedOutput(Tensor("mean")))))
    (problem,) = read.problems
    assert (problem.what, problem.name) == ("aten.native_layer_norm.default", "y")
    assert "its result 1" in problem.reason


def test_random_slopes_are_their_mean_in_inference() -> None:
    x = _random(6)
    arguments: dict[str, Argument] = {
        "self": Tensor("x"), "noise": Tensor("x"), "lower": 0.1, "upper": 0.3, "training": False
    }  # fmt: skip
    found = _computed("aten.rrelu_with_noise_functional.default", arguments, [6], x=x)
    np.testing.assert_allclose(found, np.where(x > 0, x, x * 0.2), rtol=1e-6)
    training = lower(_program("aten.rrelu_with_noise_functional.default", {**arguments, "training": True}, [6], x=x))
    assert [problem.what for problem in training.problems] == ["aten.rrelu_with_noise_functional.default"]


# --- resampling ---


def _cubic(distance: float, a: float) -> float:
    """Keys' kernel as it is defined: piecewise, 1 at 0, 0 at whole numbers."""
    x = abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def _resampled(x: Floats, count: int, is_aligned: bool) -> Floats:
    """Return a row of other length, cubic, the ends repeated: one element after the other."""
    step = (x.size - 1) / (count - 1) if is_aligned else x.size / count
    padded = np.pad(x, 4, mode="edge")
    result = np.zeros(count)
    for place in range(count):
        at = place * step if is_aligned else (place + 0.5) * step - 0.5
        result[place] = sum(
            padded[index + 4] * _cubic(at - index, -0.75) for index in range(math.floor(at) - 1, math.floor(at) + 3)
        )
    return result


@pytest.mark.parametrize("is_aligned", [False, True])
@pytest.mark.parametrize("extents", [(7, 9), (3, 2), (4, 5)])
def test_bicubic_extents(extents: tuple[int, int], is_aligned: bool) -> None:
    x = _random(1, 2, 4, 5)
    arguments: dict[str, Argument] = {
        "input": Tensor("x"), "output_size": extents, "align_corners": is_aligned, "scale_factors": None
    }  # fmt: skip
    found = _computed("aten.upsample_bicubic2d.vec", arguments, [1, 2, *extents], x=x)
    wanted = np.apply_along_axis(_resampled, 2, x.astype(float), extents[0], is_aligned)
    wanted = np.apply_along_axis(_resampled, 3, wanted, extents[1], is_aligned)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"])
def test_smoothed_extents_keep_what_is_even_and_halve_in_pairs(mode: str) -> None:
    """A constant stays constant, and halving reads each element with a weight that mirrors at the middle."""
    flat = np.full((1, 1, 8, 8), 3, np.float32)
    arguments: dict[str, Argument] = {"input": Tensor("x"), "align_corners": False, "scale_factors": None}
    for extents in [(3, 5), (4, 4), (8, 2)]:
        found = _computed(f"aten.{mode}.vec", arguments, [1, 1, *extents], x=flat)
        np.testing.assert_allclose(found, np.full((1, 1, *extents), 3.0), rtol=1e-6)
    x = _random(1, 1, 8, 8)
    found = _computed(f"aten.{mode}.vec", arguments, [1, 1, 4, 4], x=x)
    mirrored = _computed(f"aten.{mode}.vec", arguments, [1, 1, 4, 4], x=np.ascontiguousarray(x[..., ::-1, ::-1]))
    np.testing.assert_allclose(found, mirrored[..., ::-1, ::-1], rtol=1e-5, atol=1e-6)


def test_smoothing_by_a_triangle_reads_these_weights() -> None:
    """Halving: a triangle of width 4 around the middle of each pair, 1/8 and 3/8, cut off at the ends."""
    x = np.eye(8, dtype=np.float32).reshape(1, 8, 1, 8)
    arguments: dict[str, Argument] = {"input": Tensor("x"), "align_corners": False, "scale_factors": None}
    found = _computed("aten._upsample_bilinear2d_aa.vec", arguments, [1, 8, 1, 4], x=x)[0, :, 0]
    np.testing.assert_allclose(found[:, 1], [0, 1 / 8, 3 / 8, 3 / 8, 1 / 8, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(found[:, 0], [3 / 7, 3 / 7, 1 / 7, 0, 0, 0, 0, 0], atol=1e-6)


def test_what_no_output_depends_on_is_left_out() -> None:
    """A number that is made of a tensor for an assertion alone stands against nothing; where it is a size, it does."""
    inputs = (TracedInput("x", "user", TracedTensor("float32", (2, 3))),)
    number = TracedNode("item", "aten._local_scalar_dense.default", {"self": Tensor("x")}, (("item", None),))
    unknown = TracedNode("magic", "own.magic.default", {"x": Tensor("x")}, (("magic", TracedTensor("float32", (2,))),))
    made = TracedNode("y", "aten.relu.default", {"self": Tensor("x")}, (("y", TracedTensor("float32", (2, 3))),))
    program = TracedProgram("graph", inputs, (number, unknown, made), (TracedOutput(Tensor("y")),))
    source = lower(program)
    assert source.problems == ()
    assert source.graph is not None
    assert [node.op for node in source.graph.nodes] == ["relu"]
    sized = TracedNode(
        "y", "aten.slice.Tensor", {"self": Tensor("x"), "end": Size("u0")}, (("y", TracedTensor("float32", ("u0", 3))),)
    )
    problems = lower(TracedProgram("graph", inputs, (number, sized), (TracedOutput(Tensor("y")),))).problems
    assert [problem.what for problem in problems] == ["aten._local_scalar_dense.default", "aten.slice.Tensor"]


def test_a_size_among_the_outputs_is_refused_by_its_number() -> None:
    inputs = (TracedInput("x", "user", TracedTensor("float32", (2, 3))),)
    made = TracedNode("y", "aten.relu.default", {"self": Tensor("x")}, (("y", TracedTensor("float32", (2, 3))),))
    outputs = TracedOutput(Tensor("y")), TracedOutput(Size("s0"))
    source = lower(TracedProgram("graph", inputs, (made,), outputs))
    assert [(problem.what, problem.reason) for problem in source.problems] == [
        ("s0", "output 1 is a size, s0, and outputs are tensors")
    ]


@pytest.mark.parametrize("are_read", [True, False])
def test_places_of_a_pool_are_found_where_they_are_read(are_read: bool) -> None:
    x = np.asarray([[[[1, 5, 2], [7, 0, 3], [4, 6, 8]]]], np.float32)
    arguments: dict[str, Argument] = {
        "self": Tensor("x"), "kernel_size": (2, 2), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1),
        "ceil_mode": False,
    }  # fmt: skip
    results = (("y", TracedTensor("float32", (1, 1, 2, 2))), ("places", TracedTensor("int64", (1, 1, 2, 2))))
    node = TracedNode("y", "aten.max_pool2d_with_indices.default", arguments, results)
    outputs = tuple(TracedOutput(Tensor(name)) for name, _ in results[: 1 + are_read])
    inputs = (TracedInput("x", "user", TracedTensor("float32", x.shape)),)
    source = lower(TracedProgram("graph", inputs, (node,), outputs))
    assert source.problems == ()
    assert source.graph is not None
    assert [item.op for item in source.graph.nodes] == ["max_pool2d_with_indices" if are_read else "max_pool2d"]
    values, *places = evaluate(source.graph, {"x": x}).values()
    np.testing.assert_array_equal(values, [[[[7, 5], [7, 8]]]])
    assert [item.tolist() for item in places] == ([[[[[3, 1], [3, 8]]]]] if are_read else [])
