"""``run --check`` of bundles without a graph: the float64 evaluation of OpSpecs, written apart from the emulator.

A mistake in either pen is seen: each is planted in the emulator and in the evaluation.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.cli import main
from spyrec.codegen.opspec import OpSpec, OpSpecFile, TensorArgument
from spyrec.codegen.opspec_json import write_opspecs
from spyrec.compare import opspec_reference
from spyrec.compare.opspec_reference import rounded_to_fp8
from spyrec.compare.opspec_windows import WindowAxis, slid_axes
from spyrec.emulator import geometry
from spyrec.emulator.engine import StepRequest
from spyrec.emulator.operations import window
from spyrec.emulator.operations.bound_calls import BoundCalls
from spyrec.emulator.operations.shuffle_steps import ShuffleExecutable
from tests.conformance.test_windows import PROBLEMS
from tests.emulator.test_fp8_products import chain
from tests.support.kinds.eight_bits import FINITE, rounded
from tests.support.window_specs import Problem, rounded_up, spec_of

AUGUST = Path(__file__).parent.parent / "fixtures" / "examples_2026_08"
Integers = npt.NDArray[np.int64]


def written(folder: Path, file: OpSpecFile) -> str:
    """Return the bundle of OpSpecs."""
    source, bundle = folder / "opspecs.json", folder / "bundle"
    source.write_text(write_opspecs(file))
    assert main(["codegen", str(source), "-o", str(bundle)]) == 0
    return str(bundle)


def checked(bundle: str) -> int:
    return main(["run", bundle, "--random", "1", "--check"])


def of_window(problem: Problem) -> OpSpecFile:
    return OpSpecFile(symbolic_args=True, unroll_loops=False, specs=(spec_of(problem),))


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_window_agrees_with_its_evaluation(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = written(tmp_path, of_window(PROBLEMS[name]))
    capsys.readouterr()
    assert main(["run", bundle, "--random", "1", "--check", "--json"]) == 0
    ((_, report),) = json.loads(capsys.readouterr().out)["check"].items()
    problem = PROBLEMS[name]
    assert report["element_count"] == problem.images * problem.channels * problem.outputs[0] * problem.outputs[1]
    assert report["bounded_elements"] == report["element_count"]


PLANTED = [
    rounded_up(Problem("avgpoolfwd", 1, 64, (3, 4), (2, 3), (2, 1), (1, 1), splits={"w": 2})),
    Problem("conv2d", 1, 64, (3, 3), (2, 2), padding=(1, 0)),
    Problem("depthwiseconv2dnative", 1, 64, (4, 4), (3, 3), padding=(1, 1)),
]


@pytest.mark.parametrize("problem", PLANTED, ids=lambda problem: problem.op)
def test_a_window_that_the_emulator_moves_is_seen(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = written(tmp_path, of_window(problem))
    right = window.window_inside

    def late(*given: object) -> dict[str, npt.NDArray[np.bool_]]:
        found = right(*given)  # pyright: ignore[reportArgumentType] -- whatever the caller gave
        return {axis: flags & (np.arange(flags.shape[1])[None, :, None] > 0) for axis, flags in found.items()}

    monkeypatch.setattr(window, "window_inside", late)
    assert checked(bundle) == 1
    monkeypatch.undo()
    assert checked(bundle) == 0


@pytest.mark.parametrize("problem", PLANTED, ids=lambda problem: problem.op)
def test_a_window_that_the_evaluation_moves_is_seen(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = written(tmp_path, of_window(problem))

    def moved(spec: OpSpec, source: object) -> list[WindowAxis]:
        axes = slid_axes(spec, source)  # pyright: ignore[reportArgumentType] -- whatever the caller gave
        assert axes is not None
        return [replace(axes[0], front=axes[0].front + 1), *axes[1:]]

    monkeypatch.setattr(opspec_reference, "slid_axes", moved)
    assert checked(bundle) == 1


@pytest.mark.parametrize("case", ["matmul_fp8_weight", "qfp8wt", "lx_shuffle_chain", "avgpool_k2s2", "conv2d_k3",
                                  "conv2d_k3_split_rows", "depthwise_k1", "depthwise_k3"])  # fmt: skip
def test_cases_of_torch_spyre_agree_with_their_evaluation(case: str, tmp_path: Path) -> None:
    source = AUGUST / case / "opspecs.json"
    assert main(["codegen", str(source), "-o", str(tmp_path / "bundle")]) == 0
    assert checked(str(tmp_path / "bundle")) == 0


EIGHT_BITS = {
    "from 16 bits to the product": chain(3, 256, 128, (3, 1, 1)),
    "operands of 8 bits": replace(chain(3, 256, 256, (1, 2, 2)), specs=chain(3, 256, 256, (1, 2, 2)).specs[2:]),
}


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_a_product_of_8_bits_agrees_with_its_evaluation(name: str, tmp_path: Path) -> None:
    assert checked(written(tmp_path, EIGHT_BITS[name])) == 0


def test_rows_of_a_pair_that_the_evaluation_forgets_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = written(tmp_path, EIGHT_BITS["operands of 8 bits"])

    def in_order(_: TensorArgument, coordinates: Sequence[Integers]) -> Sequence[Integers]:
        return coordinates

    monkeypatch.setattr(opspec_reference, "_arranged", in_order)
    assert checked(bundle) == 1


def test_rows_of_a_pair_that_the_emulator_swaps_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = written(tmp_path, EIGHT_BITS["operands of 8 bits"])
    describe = geometry.describe

    def in_order(*given: object) -> geometry.OperandGeometry:
        found = describe(*given)  # pyright: ignore[reportArgumentType] -- whatever the caller gave
        return replace(found, is_interleaved=False)

    for module in ("engine", "plan", "operand_check"):
        held = __import__(f"spyrec.emulator.{module}", fromlist=[module])
        if hasattr(held, "describe"):
            monkeypatch.setattr(held, "describe", in_order)
    assert checked(bundle) == 1


def test_a_shuffle_that_takes_another_core_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["codegen", str(AUGUST / "lx_shuffle_chain" / "opspecs.json"), "-o", str(tmp_path / "b")]) == 0
    steps = ShuffleExecutable.steps

    def of_neighbours(self: ShuffleExecutable, request: StepRequest) -> BoundCalls:
        starts, source = request.starts.copy(), self.setting.inputs[0]
        starts[source] = np.roll(starts[source], 1)
        return steps(self, replace(request, starts=starts))

    monkeypatch.setattr(ShuffleExecutable, "steps", of_neighbours)
    assert checked(str(tmp_path / "b")) == 1


def test_numbers_are_rounded_to_8_bits_as_their_list_says() -> None:
    every = np.concatenate([FINITE, (FINITE[1:] + FINITE[:-1]) / 2, [500.0, 1e-9, 447.99, 0.3, 17.0]])
    for sign, values in itertools.product((1.0, -1.0), (every, every * (1 + 2**-20), every * (1 - 2**-20))):
        np.testing.assert_array_equal(rounded_to_fp8(sign * values), rounded(sign * values))
