"""What a check decides: planted errors, NaN and infinities, undecided comparisons, missing bounds, where errors lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.compare.bounds import ValueBound
from spyrec.compare.check import CheckReport, check_bundle, warn_of_missing_bounds
from spyrec.compare.locate import locate_output
from spyrec.compare.verdict import OutputCase
from spyrec.diagnostics import DiagnosticSink, Severity, SpyrecError
from spyrec.hardware.dtypes import DType

Floats = npt.NDArray[np.float64]

NODES: list[dict[str, object]] = [
    {"name": "h", "op": "matmul", "inputs": ["x", "w"]},
    {"name": "y", "op": "gelu", "inputs": ["h"]},
    {"name": "s", "op": "softmax", "inputs": ["y"], "attrs": {"dim": -1}},
    {"name": "m", "op": "gt", "inputs": ["h", 0.1]},
    {"name": "c", "op": "where", "inputs": ["m", "y", 0.1]},
]


def graph(outputs: list[str], nodes: list[dict[str, object]], **inputs: npt.NDArray[np.generic]) -> dict[str, object]:
    described = [
        {"name": name, "shape": list(array.shape), "dtype": str(array.dtype)} for name, array in inputs.items()
    ]
    return {"format": "spyrec.graph/1", "name": "g", "inputs": described, "nodes": nodes, "outputs": outputs}


def normal(*shape: int, seed: int = 0) -> npt.NDArray[np.float16]:
    return np.random.Generator(np.random.PCG64(seed)).standard_normal(shape).astype(np.float16)


@pytest.fixture(scope="module")
def compiled() -> tuple[Bundle, dict[str, npt.NDArray[np.generic]]]:
    inputs: dict[str, npt.NDArray[np.generic]] = {"x": normal(20, 70), "w": normal(70, 100, seed=1)}
    return spyrec.compile(graph(["y", "s", "m", "c"], NODES, **inputs)), inputs


@pytest.mark.parametrize("numerics", ["dl16", "ieee", "f32"])
def test_the_emulator_stays_inside_the_bounds(
    compiled: tuple[Bundle, dict[str, npt.NDArray[np.generic]]], numerics: str
) -> None:
    bundle, inputs = compiled
    result = spyrec.run(bundle, inputs, spyrec.RunOptions(check=True, numerics=numerics))
    assert result.check is not None
    for name, report in result.check.items():
        assert report.ok, (name, report)
        assert report.bound_ratio <= 1.0
        assert report.bounded_elements == report.element_count
        assert report.worst.device_coordinate is not None
        assert report.worst.core is not None


def test_an_error_planted_in_any_output_fails_the_check_at_its_place(
    compiled: tuple[Bundle, dict[str, npt.NDArray[np.generic]]],
) -> None:
    bundle, inputs = compiled
    outputs = dict(spyrec.run(bundle, inputs).outputs)
    for name, index in (("y", (7, 93)), ("s", (19, 1)), ("m", (0, 64)), ("c", (12, 99))):
        altered = outputs[name].copy()
        altered[index] = not altered[index] if name == "m" else altered[index] + 0.25
        report = check_bundle(bundle, inputs, {**outputs, name: altered})[name]
        assert not report.ok
        assert report.failed_elements == 1
        assert report.worst.index == index
        layout = next(item for item in bundle.manifest.arguments if item.name == dict(bundle.manifest.outputs)[name])
        assert report.worst.device_coordinate is not None
        assert len(report.worst.device_coordinate) == len(layout.device_size)


def test_every_element_of_an_output_is_written_by_a_core_and_cores_split_the_rows(
    compiled: tuple[Bundle, dict[str, npt.NDArray[np.generic]]],
) -> None:
    bundle, _ = compiled
    columns = (0, 1, 63, 64, 99)
    writers = np.full((20, len(columns)), -1)
    for row in range(20):
        for number, column in enumerate(columns):
            place = locate_output(bundle, "y", (row, column))
            assert place is not None
            assert place.core is not None
            writers[row, number] = place.core
    dsc_cores = {core for program in bundle.programs for dsc in program.superdscs.values() for core in dsc.core_ids}
    assert set(np.unique(writers)) <= dsc_cores
    for sticks in (slice(0, 3), slice(3, 5)):  # a core's slice of the stick dim is whole sticks of 64
        assert (writers[:, sticks] == writers[:, sticks][:, :1]).all()
    assert len(np.unique(writers)) > 1


def test_the_writing_core_is_the_same_with_baked_addresses() -> None:
    inputs = {"x": normal(40, 130)}
    description = graph(["y"], [{"name": "y", "op": "exp", "inputs": ["x"]}], **inputs)
    symbolic = spyrec.compile(description)
    baked = spyrec.compile(description, spyrec.CompileOptions(symbolic_args=False))
    places = [locate_output(bundle, "y", (row, 129)) for bundle in (symbolic, baked) for row in range(40)]
    assert all(place is not None and place.core is not None for place in places)
    assert places[:40] == places[40:]


def case(want: list[float], device: list[float], bound: list[float], dtype: DType = DType.FLOAT16) -> OutputCase:
    known = ValueBound(np.array(want), np.array(device), np.array(bound))
    return OutputCase(np.array(want), np.array(want), known, dtype, "dl16")


def judged(sample: OutputCase, got: list[float], *, merges_nan: bool = True) -> CheckReport:
    return replace(sample, got=np.array(got)).report(merges_nan=merges_nan)


def test_an_infinity_keeps_its_sign_and_a_nan_may_be_either_infinity_where_the_format_merges_them() -> None:
    inf, nan = np.inf, np.nan
    sample = case([inf, -inf, nan], [inf, -inf, inf], [0.0, 0.0, 0.0])
    assert judged(sample, [inf, -inf, inf]).ok
    assert judged(sample, [inf, -inf, -inf]).ok
    assert judged(sample, [-inf, -inf, inf]).failed_elements == 1
    assert judged(sample, [inf, 3.0, inf]).failed_elements == 1
    assert judged(sample, [inf, -inf, 3.0]).failed_elements == 1


def test_single_precision_keeps_nan_and_infinity_apart() -> None:
    sample = case([np.inf, np.nan], [np.inf, np.nan], [0.0, 0.0], DType.FLOAT32)
    assert judged(sample, [np.inf, np.nan], merges_nan=False).ok
    assert judged(sample, [np.nan, np.nan], merges_nan=False).failed_elements == 1
    assert judged(sample, [np.inf, np.inf], merges_nan=False).failed_elements == 1


def test_an_infinity_where_the_reference_is_finite_fails_unless_half_overflows_there() -> None:
    sample = case([65504.0, 70000.0, 1.0], [65504.0, 70016.0, 1.0], [64.0, 68.0, 0.001])
    assert judged(sample, [65504.0, np.inf, 1.0]).ok
    assert judged(sample, [np.inf, np.inf, 1.0]).ok, "within the bound the value may lie past the largest half"
    assert judged(sample, [65504.0, -np.inf, 1.0]).failed_elements == 1
    assert judged(sample, [65504.0, np.inf, np.inf]).failed_elements == 1
    assert judged(sample, [65504.0, np.inf, np.nan]).failed_elements == 1


def test_an_output_is_judged_at_twice_the_bound() -> None:
    sample = case([1.0, 2.0], [1.0, 2.0], [0.01, 0.01])
    report = judged(sample, [1.0199, 2.0])
    assert report.ok
    assert report.bound_ratio == pytest.approx(1.99, abs=0.01)
    report = judged(sample, [1.0, 1.9799])
    assert not report.ok
    assert (report.worst.index, report.worst.got, report.worst.want) == ((1,), 1.9799, 2.0)
    assert report.max_abs == pytest.approx(0.0201)
    assert report.max_rel == pytest.approx(0.01005)


def test_a_zero_bound_accepts_the_exact_value_only() -> None:
    sample = case([1.0, 0.0], [1.0, 0.0], [0.0, 0.0], DType.BOOL)
    assert judged(sample, [1.0, 0.0]).ok
    report = judged(sample, [1.0, 1.0])
    assert not report.ok
    assert report.bound_ratio == np.inf
    assert report.to_json()["bound_ratio"] == "inf"


def test_an_output_without_a_bound_is_reported_with_a_warning_and_others_are_not() -> None:
    """0 / 0 is NaN, on the device an infinity: what a sigmoid makes of it says nothing about the device."""
    inputs = {"x": np.full((3, 70), 0.5, np.float16)}
    nodes: list[dict[str, object]] = [
        {"name": "z", "op": "sub", "inputs": ["x", 0.5]},
        {"name": "y", "op": "div", "inputs": ["z", "z"]},
        {"name": "c", "op": "sigmoid", "inputs": ["y"]},
    ]
    result = spyrec.run(spyrec.compile(graph(["c", "z"], nodes, **inputs)), inputs, spyrec.RunOptions(check=True))
    assert result.check is not None
    assert not result.check["c"].has_bound
    assert result.check["z"].has_bound
    sink = DiagnosticSink()
    warn_of_missing_bounds(result.check, sink)
    assert [(item.code, item.severity) for item in sink.diagnostics] == [("SPY0801", Severity.WARNING)]
    assert '"c"' in sink.diagnostics[0].message


def test_a_comparison_of_nearly_equal_values_may_go_either_way_and_others_may_not() -> None:
    x = np.array([[1.0, 1.0009765625, 1.5, 3.0]], np.float16)
    nodes: list[dict[str, object]] = [
        {"name": "k", "op": "lt", "inputs": ["x", "y"]},
        {"name": "c", "op": "where", "inputs": ["k", 2.0, "x"]},
    ]
    inputs = {"x": x, "y": np.array([[1.0009765625, 1.0009765625, 1.5, 2.0]], np.float16)}
    bundle = spyrec.compile(graph(["k", "c"], nodes, **inputs))
    outputs = dict(spyrec.run(bundle, inputs).outputs)
    for column, may_differ in ((0, True), (1, True), (2, False), (3, False)):
        turned = outputs["k"].copy()
        turned[0, column] = not turned[0, column]
        assert check_bundle(bundle, inputs, {**outputs, "k": turned})["k"].ok == may_differ, column


def test_a_constant_that_the_bundle_lost_is_refused() -> None:
    inputs = {"x": normal(3, 70)}
    description = graph(["y"], [{"name": "y", "op": "add", "inputs": ["x", "w"]}], **inputs)
    description["constants"] = [{"name": "w", "shape": [70], "dtype": "float16", "value": 1.0}]
    bundle = spyrec.compile(description)
    outputs = spyrec.run(bundle, inputs).outputs
    assert bundle.graph_json is not None
    text = bundle.graph_json.replace(b'"value": 1.0', b'"data": {"file": "constants.safetensors", "tensor": "w"}')
    assert text != bundle.graph_json
    altered = replace(bundle, graph_json=text, constants={})
    with pytest.raises(SpyrecError) as caught:
        check_bundle(altered, inputs, outputs)
    assert [item.code for item in caught.value.diagnostics] == ["SPY0802"]


@pytest.mark.parametrize("op", ["to", "matmul"])
def test_a_bfloat16_output_may_differ_by_its_rounding_and_by_no_more(op: str) -> None:
    attrs: dict[str, object] = {"attrs": {"dtype": "bfloat16"}} if op == "to" else {}
    dtype, operands = ("float16", ["x"]) if op == "to" else ("bfloat16", ["x", "w"])
    data = graph(["y"], [{"name": "y", "op": op, "inputs": operands, **attrs}], x=normal(32, 64), w=normal(64, 64))
    inputs = [{"name": name, "shape": [32, 64] if name == "x" else [64, 64], "dtype": dtype} for name in operands]
    bundle = spyrec.compile({**data, "inputs": inputs})
    halves = {name: normal(*item) for name, item in (("x", (32, 64)), ("w", (64, 64))) if name in operands}
    bits = {name: (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for name, array in halves.items()}
    given = halves if op == "to" else bits
    result = spyrec.run(bundle, given, spyrec.RunOptions(check=True))
    assert result.check is not None
    assert result.check["y"].ok
    assert 0.5 < result.check["y"].bound_ratio <= 1.0
    wrong = {"y": result.outputs["y"].copy()}
    wrong["y"][3, 5] += 3  # three units in the last place
    (report,) = check_bundle(bundle, given, wrong).values()
    assert not report.ok
    assert report.worst.index == (3, 5)


@pytest.mark.parametrize("number", [0.3, 1e-5, 3.3])
@pytest.mark.parametrize("op", ["add", "mul", "sub"])
def test_a_number_beside_bfloat16_is_rounded_once_as_the_device_stores_it(op: str, number: float) -> None:
    nodes: list[dict[str, object]] = [{"name": "y", "op": op, "inputs": ["x", number]}]
    data = graph(["y"], nodes, x=normal(64, 128))
    bundle = spyrec.compile({**data, "inputs": [{"name": "x", "shape": [64, 128], "dtype": "bfloat16"}]})
    bits = (normal(64, 128).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    result = spyrec.run(bundle, {"x": bits}, spyrec.RunOptions(check=True))
    assert result.check is not None
    assert result.check["y"].bound_ratio <= 1.0
