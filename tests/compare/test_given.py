"""``--compare``: outputs, and under ``--bisect`` any value, beside numbers that somebody else gives."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.cli import main
from spyrec.compare.given import TOLERANCES
from spyrec.compare.storage import Array
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.ir.evaluate import evaluate
from spyrec.options import RunOptions, RunResult
from spyrec.runtime.inputs.tensor_files import write_npz
from tests.support.graphs import graph_data, node, random_arrays, read, tensor
from tests.support.random_loops import looped_graph

SHAPE = (130, 70)
NODES = [node("h", "exp", "x"), node("s", "softmax", "h", dim=-1), node("o", "add", "s", "h")]
GRAPH = graph_data([tensor("x", *SHAPE)], NODES, ["o", "s"])


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return spyrec.compile(GRAPH)


@pytest.fixture(scope="module")
def inputs() -> dict[str, Array]:
    return random_arrays(GRAPH, seed=1)


@pytest.fixture(scope="module")
def numbers(inputs: dict[str, Array]) -> dict[str, Array]:
    """What NumPy computes, in float64."""
    h = np.exp(inputs["x"].astype(np.float64))
    e = np.exp(h - h.max(-1, keepdims=True))
    s = e / e.sum(-1, keepdims=True)
    return {"h": h, "s": s, "o": s + h}


def outputs_of(numbers: dict[str, Array]) -> dict[str, Array]:
    return {name: numbers[name] for name in "os"}


def compared(bundle: Bundle, inputs: dict[str, Array], numbers: dict[str, Array], **options: object) -> RunResult:
    return spyrec.run(bundle, inputs, RunOptions(compare=numbers, **options))  # type: ignore[arg-type]


def test_numbers_within_the_tolerance_are_right(
    bundle: Bundle, inputs: dict[str, Array], numbers: dict[str, Array]
) -> None:
    result = compared(bundle, inputs, outputs_of(numbers))
    assert result.is_ok
    assert result.compare is not None
    assert list(result.compare) == ["o", "s"]
    assert 0 < result.compare["o"].bound_ratio <= 1
    assert compared(bundle, inputs, {"s": numbers["s"]}).is_ok, "some outputs alone"
    assert not compared(bundle, inputs, outputs_of(numbers), rtol=0.0, atol=0.0).is_ok


@settings(max_examples=25)
@given(st.integers(0, SHAPE[0] - 1), st.integers(0, SHAPE[1] - 1), st.floats(0.5, 3.0), st.sampled_from([-1, 1]))
def test_the_worst_element_is_the_one_that_is_wrong_and_its_error_is_the_distance(
    row: int, column: int, factor: float, sign: int
) -> None:
    bundle, inputs = _KNOWN
    own = spyrec.run(bundle, inputs).outputs["o"].astype(np.float64)
    rtol, atol = TOLERANCES[DType.FLOAT16]
    given_numbers = own.copy()
    given_numbers[row, column] += sign * factor * (atol + rtol * abs(own[row, column]))
    report = (compared(bundle, inputs, {"o": given_numbers}).compare or {})["o"]
    allowed = atol + rtol * abs(given_numbers[row, column])
    assert report.worst.index == (row, column)
    assert report.max_abs == abs(own - given_numbers).max()
    assert report.bound_ratio == pytest.approx(report.max_abs / allowed)
    assert report.ok == (report.max_abs <= allowed)
    place = report.worst.device_coordinate
    assert place is not None
    assert (place[1], place[0] * 64 + place[2]) == (row, column)
    assert report.worst.core is not None


_KNOWN = (spyrec.compile(GRAPH), random_arrays(GRAPH, seed=1))


def test_a_bisection_names_the_first_value_that_is_not_the_given_one(
    bundle: Bundle, inputs: dict[str, Array], numbers: dict[str, Array]
) -> None:
    right = compared(bundle, inputs, numbers, bisect=True)
    assert right.is_ok
    assert right.bisect is not None
    assert right.bisect.given == ("h", "s", "o")
    assert right.compare is not None
    other = numbers["s"].copy()
    other[129, 69] += 0.5
    wrong = compared(bundle, inputs, {**numbers, "s": other, "o": other}, bisect=True)
    found = wrong.bisect.divergence if wrong.bisect is not None else None
    assert found is not None
    assert (found.guilt.value, found.tensor, found.node) == ("given", "s", "s")
    assert found.element is not None
    assert (found.element.index, found.failed_elements, found.element_count) == ((129, 69), 1, 130 * 70)
    assert found.element.core is not None
    assert not wrong.is_ok


@pytest.mark.parametrize("seed", range(6))
def test_no_value_of_a_random_looped_graph_differs_from_its_reference(seed: int) -> None:
    data, arrays = looped_graph(seed, steps=3)
    graph, bundle = read(data), spyrec.compile(data)
    computed = tuple(name for item in graph.live_nodes() for name in item.outputs)
    named = dict(evaluate(replace(graph, outputs=computed), arrays))
    options = RunOptions(compare=named, bisect=True, rtol=0.5, atol=0.5)
    result = spyrec.run(bundle, arrays, options)
    assert result.bisect is not None
    assert result.bisect.ok, result.bisect.divergence
    assert set(graph.outputs) <= set(result.bisect.given or ())
    last = graph.outputs[-1]
    named[last] = named[last] + 9.0 * (1.0 + np.abs(named[last]).max())
    wrong = spyrec.run(bundle, arrays, RunOptions(compare=named, bisect=True, rtol=0.5, atol=0.5)).bisect
    assert wrong is not None
    assert wrong.divergence is not None
    assert wrong.divergence.tensor == last


WRONG: dict[str, tuple[dict[str, npt.NDArray[Any]] | None, dict[str, Any], str]] = {
    "unknown": ({"q": np.zeros(SHAPE)}, {}, "SPY0804"),
    "misspelt": ({"O": np.zeros(SHAPE)}, {}, "SPY0804"),
    "nothing": ({}, {}, "SPY0804"),
    "no output": ({"h": np.zeros(SHAPE)}, {}, "SPY0804"),
    "shape": ({"o": np.zeros((3, 70))}, {}, "SPY0762"),
    "dtype": ({"o": np.zeros(SHAPE, complex)}, {}, "SPY0763"),
    "objects": ({"o": np.full(SHAPE, None)}, {}, "SPY0763"),
    "negative": ({"o": np.zeros(SHAPE)}, {"rtol": -1.0}, "SPY0771"),
    "nan": ({"o": np.zeros(SHAPE)}, {"atol": float("nan")}, "SPY0771"),
    "tolerance alone": (None, {"rtol": 1.0}, "SPY0771"),
    "only": ({"o": np.zeros(SHAPE)}, {"only": "sdsc_0.json"}, "SPY0771"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_compared_is_refused(bundle: Bundle, inputs: dict[str, Array], case: str) -> None:
    numbers, options, code = WRONG[case]
    with pytest.raises(SpyrecError) as caught:
        spyrec.run(bundle, inputs, RunOptions(compare=numbers, **options))  # type: ignore[arg-type]
    assert [item.code for item in caught.value.diagnostics] == [code]


def test_what_is_not_finite_has_to_be_of_the_same_class() -> None:
    bundle = spyrec.compile(graph_data([tensor("x", 4, 64)], [node("y", "mul", "x", "x")], ["y"]))
    x = np.full((4, 64), 300.0, np.float16)
    whole = np.full((4, 64), 90000.0)  # which float16 has no room for
    assert compared(bundle, {"x": x}, {"y": whole}).is_ok
    assert not compared(bundle, {"x": x}, {"y": -whole}).is_ok
    assert not compared(bundle, {"x": x}, {"y": np.zeros((4, 64))}).is_ok
    assert not compared(bundle, {"x": x / 300}, {"y": np.full((4, 64), np.inf)}).is_ok


def test_a_run_is_its_own_golden_file_in_every_format(tmp_path: Path) -> None:
    nodes = [node("y", "exp", "x"), node("i", "add", "n", "n"), node("b", "gt", "x", 0.0)]
    inputs = [tensor("x", 5, 70, dtype="bfloat16"), tensor("n", 7, dtype="int32")]
    bundle = spyrec.compile(graph_data(inputs, nodes, ["y", "i", "b"]))
    bits = (np.linspace(-2, 2, 350, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16).reshape(5, 70)
    arrays = {"x": bits, "n": np.arange(7, dtype=np.int32)}
    outputs = spyrec.run(bundle, arrays).outputs
    assert spyrec.run(bundle, arrays, RunOptions(compare=outputs, rtol=0.0, atol=0.0)).is_ok
    write_npz(tmp_path / "y.npz", outputs)
    assert spyrec.run(bundle, arrays, RunOptions(compare=tmp_path / "y.npz", rtol=0.0, atol=0.0)).is_ok
    numbers = (outputs["y"].astype(np.uint32) << 16).view(np.float32)
    write_npz(tmp_path / "f.npz", {"y": numbers})
    assert spyrec.run(bundle, arrays, RunOptions(compare=tmp_path / "f.npz", rtol=0.0, atol=0.0)).is_ok
    save_file({"i": outputs["i"], "y": numbers.astype(np.float64)}, tmp_path / "y.safetensors")
    assert spyrec.run(bundle, arrays, RunOptions(compare=tmp_path / "y.safetensors", rtol=0.0, atol=0.0)).is_ok
    save_file({"i": np.arange(7, dtype=np.int32)}, tmp_path / "i.safetensors")
    assert not spyrec.run(bundle, arrays, RunOptions(compare=tmp_path / "i.safetensors")).is_ok


def test_the_command_prints_the_worst_element_and_ends_with_one(
    bundle: Bundle,
    inputs: dict[str, Array],
    numbers: dict[str, Array],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bundle.save(tmp_path / "b")
    write_npz(tmp_path / "x.npz", inputs)
    write_npz(tmp_path / "y.npz", outputs_of(numbers))
    numbers["o"][3, 5] -= 1.0
    write_npz(tmp_path / "wrong.npz", outputs_of(numbers))
    command = ["run", str(tmp_path / "b"), "--inputs", str(tmp_path / "x.npz"), "--compare"]
    assert main([*command, str(tmp_path / "y.npz")]) == 0
    assert "compare o: ok, error/tolerance" in capsys.readouterr().out
    assert main([*command, str(tmp_path / "wrong.npz"), "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["compare"]["o"]["worst"]["index"] == [3, 5]
    assert printed["compare"]["o"]["worst"]["device_coordinate"] == [0, 3, 5]
    assert printed["compare"]["s"]["ok"]
    assert main([*command, str(tmp_path / "wrong.npz"), "--bisect"]) == 1
    assert 'stores "o" farther from what was given' in capsys.readouterr().out
    numbers["o"][3, 5] += 1.0
    assert main([*command, str(tmp_path / "x.npz")]) == 1
    assert "SPY0804" in capsys.readouterr().err


def test_the_page_shows_the_tolerances_as_they_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text()
    rows = [line.removesuffix(" |").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    shown = {cells[0].removeprefix("| ").strip("`"): cells[1:] for cells in rows}
    for dtype, tolerance in TOLERANCES.items():
        numbers = [2.0 ** int(cell[3:]) if cell.startswith("2**") else float(cell) for cell in shown[dtype.value]]
        assert tuple(numbers) == tolerance
