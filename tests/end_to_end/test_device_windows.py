"""Average pools and convolutions of graphs as the device's own operations, on the target that has them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.front import emit, schedule
from spyrec.hardware.target import SPYRE_2026_06, SPYRE_2026_08
from spyrec.ir.kernel import KernelGraph
from tests.support.examples import examples
from tests.support.planned_records import emulated_records, planned_records

Array = npt.NDArray[Any]
AUGUST = spyrec.CompileOptions(target=SPYRE_2026_08)
JUNE = spyrec.CompileOptions(target=SPYRE_2026_06)
CHECKED = spyrec.RunOptions(check=True)
ROUNDOFF = 2.0**-10
"""Of DLFloat16, whose fraction has nine bits; results are rounded once."""

MEAN_ROUNDINGS = 2.01
"""Of the device's mean: its one divisor is a constant of DLFloat16."""


def one_node(op: str, inputs: dict[str, Array], **attributes: object) -> dict[str, Any]:
    """Return a graph of one op on float16 tensors."""
    return {
        "format": "spyrec.graph/1",
        "name": "g",
        "inputs": [{"name": name, "shape": list(array.shape), "dtype": "float16"} for name, array in inputs.items()],
        "nodes": [{"name": "y", "op": op, "inputs": list(inputs), "attrs": attributes}],
        "outputs": ["y"],
    }


def operations(bundle: spyrec.Bundle) -> list[str]:
    return [dsc.op_func_name for program in bundle.programs for dsc in program.superdscs.values()]


def eighths(seed: int, *shape: int) -> Array:
    """Numbers of few bits, which DLFloat16 and IEEE half both hold."""
    return (np.random.default_rng([seed, *shape]).integers(-16, 17, shape) / 8).astype(np.float16)


def pooled(x: Array, kernel: list[int], stride: list[int], padding: list[int]) -> Array:
    """Return the means of all windows, padding included, window by window."""
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    counts = [(n - k) // s + 1 for n, k, s in zip(wide.shape[2:], kernel, stride, strict=True)]
    result = np.zeros((*x.shape[:2], *counts))
    for row, column in itertools.product(*map(range, counts)):
        top, left = row * stride[0], column * stride[1]
        result[:, :, row, column] = wide[:, :, top : top + kernel[0], left : left + kernel[1]].mean(axis=(2, 3))
    return result


def close(got: Array, wanted: Array, magnitude: Array | float = 0.0, roundings: float = 1.0) -> None:
    """One rounding or more, and a sum in float32 of terms of such magnitudes."""
    assert got.shape == wanted.shape
    allowed = roundings * ROUNDOFF * np.abs(wanted) + 2.0**-20 * magnitude + 2.0**-20
    assert (np.abs(got.astype(np.float64) - wanted) <= allowed).all()


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding"),
    [
        ((1, 64, 8, 8), [2, 2], [2, 2], [0, 0]),
        ((2, 70, 6, 9), [3, 3], [1, 3], [1, 0]),
        ((1, 5, 7, 8), [7, 8], [1, 2], [0, 0]),
    ],
)
def test_an_average_pool_is_the_devices_own(
    shape: tuple[int, ...], kernel: list[int], stride: list[int], padding: list[int]
) -> None:
    x = eighths(1, *shape)
    graph = one_node("avg_pool2d", {"x": x}, kernel_size=kernel, stride=stride, padding=padding)
    wanted = pooled(x, kernel, stride, padding)
    for options, is_own in ((AUGUST, True), (JUNE, False)):
        bundle = spyrec.compile(graph, options)
        assert ("avgpoolfwd" in operations(bundle)) == is_own
        result = spyrec.run(bundle, {"x": x}, CHECKED)
        assert result.is_ok, result.check
        close(result.outputs["y"], wanted, roundings=MEAN_ROUNDINGS)


def convolved(x: Array, w: Array, stride: list[int], padding: list[int], dilation: list[int], groups: int) -> Array:
    """Return the sums of products, tap by tap, and beside them those of their magnitudes."""
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    spans = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    counts = [(n - span) // s + 1 for n, span, s in zip(wide.shape[2:], spans, stride, strict=True)]
    made, per = w.shape[:2]
    result = np.zeros((x.shape[0], made, *counts))
    for row, column in itertools.product(*map(range, w.shape[2:])):
        top, left = row * dilation[0], column * dilation[1]
        seen = wide[:, :, top : top + (counts[0] - 1) * stride[0] + 1 : stride[0]]
        seen = seen[:, :, :, left : left + (counts[1] - 1) * stride[1] + 1 : stride[1]]
        for group in range(groups):
            own = slice(group * made // groups, (group + 1) * made // groups)
            taken = seen[:, group * per : (group + 1) * per]
            result[:, own] += np.einsum("oc,nchw->nohw", w[own, :, row, column].astype(np.float64), taken)
    return result


def run_as_counted(graph: dict[str, Any], inputs: dict[str, Array]) -> spyrec.RunResult:
    """Return a checked run on the target of August, which moves what the planner says, field by field."""
    kernels = schedule(graph, AUGUST, Path())
    assert isinstance(kernels, KernelGraph)
    bundle = emit(kernels, AUGUST)
    assert planned_records(kernels) == emulated_records(bundle)
    result = spyrec.run(bundle, inputs, CHECKED)
    assert result.is_ok
    return result


def superdsc_of(bundle: spyrec.Bundle, op: str) -> SuperDsc:
    (found,) = (dsc for item in bundle.programs for dsc in item.superdscs.values() if dsc.op_func_name == op)
    return found


EXAMPLES = Path(__file__).parents[1] / "fixtures" / "examples_2026_08"


@pytest.mark.parametrize(
    ("example", "op", "shapes", "attributes", "inner"),
    [
        ("avgpool_k2s2", "avgpoolfwd", {"x": (1, 64, 8, 8)}, {"kernel_size": 2}, "avg_pool2d"),
        ("conv2d_k3", "conv2d", {"x": (1, 64, 8, 8), "w": (64, 64, 3, 3)}, {}, "conv2d"),
        (
            "depthwise_k3",
            "depthwiseconv2dnative",
            {"x": (2, 64, 10, 10), "w": (64, 1, 3, 3)},
            {"groups": 64},
            "conv2d",
        ),
    ],
)
def test_files_say_what_those_of_others_do(
    example: str, op: str, shapes: dict[str, tuple[int, ...]], attributes: dict[str, Any], inner: str
) -> None:
    """Dims, extents, labels and windows are those of a file that torch-spyre wrote; memory is walked columns first."""
    inputs = {name: np.zeros(shape, np.float16) for name, shape in shapes.items()}
    one_core = spyrec.CompileOptions(target=SPYRE_2026_08, cores=1)
    own = superdsc_of(spyrec.compile(one_node(inner, inputs, **attributes), one_core), op)
    theirs = parse_superdsc((EXAMPLES / example / "sdsc_0.json").read_bytes())
    assert own.iteration == theirs.iteration
    assert own.padding_sizes == theirs.padding_sizes
    assert [item.label for item in own.operands] == [item.label for item in theirs.operands]
    assert own.labels.keys() == theirs.labels.keys()
    for name, label in own.labels.items():
        assert label.stick_dim == theirs.labels[name].stick_dim
        assert set(label.layout_dim_order) == set(theirs.labels[name].layout_dim_order)
    for ours, other in zip(own.operands, theirs.operands, strict=True):
        assert dict(ours.scales) == dict(other.scales)
        assert dict(ours.padding) == dict(other.padding)
        assert ours.word_length == other.word_length


def layered(bias: str) -> dict[str, Any]:
    """Return a convolution, a function of it, a depthwise one and a pool."""
    return {
        "format": "spyrec.graph/1",
        "name": "layers",
        "inputs": [{"name": "x", "shape": [2, 8, 8, 8], "dtype": "float16"}],
        "constants": [
            {"name": "w", "shape": [16, 8, 3, 3], "dtype": "float16", "value": 0.125},
            {"name": "v", "shape": [16, 1, 3, 3], "dtype": "float16", "value": -0.5},
        ],
        "nodes": [
            {"name": "c", "op": "conv2d", "inputs": ["x", "w"], "attrs": {"padding": [1]}},
            {"name": "r", "op": bias, "inputs": ["c"]},
            {"name": "d", "op": "conv2d", "inputs": ["r", "v"], "attrs": {"padding": [1], "stride": [2], "groups": 16}},
            {"name": "y", "op": "avg_pool2d", "inputs": ["d"], "attrs": {"kernel_size": [2]}},
        ],
        "outputs": ["y"],
    }


def test_layers_hand_on_channels_in_sticks() -> None:
    bundle = spyrec.compile(layered("relu"), AUGUST)
    assert operations(bundle) == ["conv2d", "relufwd", "depthwiseconv2dnative", "avgpoolfwd"]
    x = eighths(3, 2, 8, 8, 8)
    checked = spyrec.run(bundle, {"x": x}, spyrec.RunOptions(check=True, sanitize="all"))
    assert checked.is_ok
    assert not checked.sanitizer


VIEWS: dict[str, tuple[list[int], dict[str, Any]]] = {
    "permute": ([2, 8, 8, 6], {"dims": [0, 3, 1, 2]}),
    "slice": ([2, 6, 9, 8], {"dim": 2, "start": 1, "end": 9}),
    "reshape": ([6, 64], {"shape": [1, 6, 8, 8]}),
    "expand": ([1, 6, 1, 8], {"size": [2, 6, 8, 8]}),
}


@pytest.mark.parametrize("view", VIEWS)
def test_windows_slide_over_views(view: str) -> None:
    shape, attributes = VIEWS[view]
    x = eighths(6, *shape)
    graph = one_node("avg_pool2d", {"x": x}, kernel_size=2)
    graph["nodes"] = [
        {"name": "v", "op": view, "inputs": ["x"], "attrs": attributes},
        {"name": "y", "op": "avg_pool2d", "inputs": ["v"], "attrs": {"kernel_size": 2}},
    ]
    moved = {
        "permute": lambda: x.transpose(0, 3, 1, 2),
        "slice": lambda: x[:, :, 1:],
        "reshape": lambda: x.reshape(1, 6, 8, 8),
        "expand": lambda: np.broadcast_to(x, (2, 6, 8, 8)),
    }[view]()
    bundle = spyrec.compile(graph, AUGUST)
    assert "avgpoolfwd" in operations(bundle)
    result = spyrec.run(bundle, {"x": x}, spyrec.RunOptions(check=True, sanitize="all"))
    assert result.is_ok
    assert not result.sanitizer
    close(result.outputs["y"], pooled(moved, [2, 2], [2, 2], [0, 0]))


def test_a_bisection_judges_windows_by_what_they_take() -> None:
    bundle = spyrec.compile(layered("neg"), AUGUST)
    x = eighths(4, 2, 8, 8, 8)
    found = spyrec.run(bundle, {"x": x}, spyrec.RunOptions(bisect=True)).bisect
    assert found is not None
    assert found.divergence is None


NO_FORM: list[tuple[dict[str, Any], spyrec.CompileOptions]] = [
    ({"kernel_size": 2}, spyrec.CompileOptions(target=SPYRE_2026_08, compat="torch-spyre")),
    ({"kernel_size": 2}, JUNE),
    ({"kernel_size": 3, "padding": 1, "count_include_pad": False}, AUGUST),
    ({"kernel_size": 3, "stride": 3, "ceil_mode": True}, AUGUST),
    ({"kernel_size": 2, "divisor_override": 3}, AUGUST),
]


@pytest.mark.parametrize(("attributes", "options"), NO_FORM)
def test_what_has_no_form_of_the_device_is_made_of_others(
    attributes: dict[str, Any], options: spyrec.CompileOptions
) -> None:
    graph = one_node("avg_pool2d", {"x": eighths(5, 1, 8, 8, 8)}, **attributes)
    assert "avgpoolfwd" not in operations(spyrec.compile(graph, options))


@pytest.mark.parametrize(("channels", "is_own"), [(2, False), (64, True)])
def test_few_channels_of_wide_images_stay_where_they_move_less(channels: int, is_own: bool) -> None:
    graph = one_node("avg_pool2d", {"x": np.zeros((1, channels, 8, 128), np.float16)}, kernel_size=2)
    bundle = spyrec.compile(graph, AUGUST)
    assert ("avgpoolfwd" in operations(bundle)) == is_own
    if is_own:
        other = spyrec.compile(graph, spyrec.CompileOptions(target=replace(SPYRE_2026_08, has_windows=False)))
        assert moved_bytes(bundle) * 4 < moved_bytes(other)


def moved_bytes(bundle: spyrec.Bundle) -> int:
    figures = bundle.manifest.figures
    assert figures is not None
    return figures.hbm_read_bytes + figures.hbm_write_bytes


@st.composite
def axes(draw: st.DrawFn, *, is_dilated: bool) -> tuple[int, int, int, int, int]:
    """Return extent, window, stride, padding and dilation of one axis."""
    kernel, stride = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    padding, dilation = draw(st.integers(0, kernel // 2)), draw(st.integers(1, 2)) if is_dilated else 1
    least = max(dilation * (kernel - 1) + 1 - 2 * padding, 1)
    return draw(st.integers(least, least + 5)), kernel, stride, padding, dilation


@examples(8)
@given(
    rows=axes(is_dilated=False),
    columns=axes(is_dilated=False),
    samples=st.integers(1, 3),
    channels=st.sampled_from([2, 64, 70]),
    has_ceil=st.sampled_from([False, False, True]),
    seed=st.integers(0, 999),
)
def test_average_pools(
    rows: tuple[int, ...], columns: tuple[int, ...], samples: int, channels: int, has_ceil: bool, seed: int
) -> None:
    """What has a form of the device, and what has none."""
    (height, *down), (width, *across) = rows, columns
    kernel, stride, padding = ([down[at], across[at]] for at in range(3))
    x = eighths(seed, samples, channels, height, width)
    wanted = pooled(x, kernel, stride, padding)
    graph = one_node("avg_pool2d", {"x": x}, kernel_size=kernel, stride=stride, padding=padding, ceil_mode=has_ceil)
    result = run_as_counted(graph, {"x": x})
    close(result.outputs["y"][:, :, : wanted.shape[2], : wanted.shape[3]], wanted, roundings=MEAN_ROUNDINGS)


@examples(10)
@given(
    rows=axes(is_dilated=True),
    columns=axes(is_dilated=True),
    samples=st.integers(1, 2),
    channels=st.sampled_from([(2, 3), (3, 1), (64, 70), (70, 2)]),
    kind=st.sampled_from(["plain", "depthwise", "grouped"]),
    has_bias=st.booleans(),
    seed=st.integers(0, 999),
)
def test_convolutions(
    rows: tuple[int, ...],
    columns: tuple[int, ...],
    samples: int,
    channels: tuple[int, int],
    kind: str,
    has_bias: bool,
    seed: int,
) -> None:
    (height, *down), (width, *across) = rows, columns
    kernel, stride, padding, dilation = ([down[at], across[at]] for at in range(4))
    taken, made = channels
    groups = {"plain": 1, "depthwise": taken, "grouped": 2 if taken % 2 == 0 else 1}[kind]
    made = taken if kind == "depthwise" else made + made % groups
    x, w = eighths(seed, samples, taken, height, width), eighths(seed + 1, made, taken // groups, *kernel)
    inputs = {"x": x, "w": w} | ({"b": eighths(seed + 2, made)} if has_bias else {})
    attributes = {"stride": stride, "padding": padding, "dilation": dilation}
    graph = one_node("conv2d", inputs, groups=groups, **attributes)
    wanted = convolved(x, w, stride, padding, dilation, groups)
    magnitude = convolved(np.abs(x), np.abs(w), stride, padding, dilation, groups)
    result = run_as_counted(graph, inputs)
    if has_bias:
        # the sum is rounded, and the bias is added to it
        beside = inputs["b"].astype(np.float64).reshape(-1, 1, 1)
        close(result.outputs["y"], wanted + beside, 2.0**10 * np.abs(wanted) + magnitude)
    else:
        close(result.outputs["y"], wanted, magnitude)
