"""Searches for the layouts of larger tensors go by answers: an error that is raised inside of one reaches the user."""

from __future__ import annotations

from typing import NoReturn

import pytest

from spyrec.bundle.tile_contract import TileArgument
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.hardware.dtypes import DType
from spyrec.layout import coordinates, rules
from spyrec.layout.conversion_table import CopyNest
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.tiling import HostTensor
from spyrec.runtime.errors import TileNotExpressible
from spyrec.runtime.launch import explain
from spyrec.runtime.launch.launched_forms import ContractedStep, explain_steps, launched_layouts
from spyrec.runtime.launch.modes import Refusal
from spyrec.runtime.launch.plan import ArgumentPlan, LaunchTensor, LoopPlan, Mode
from spyrec.runtime.launch.tile_major import tile_major_layout
from tests.support.launch_builders import matmul

UNRELATED = "SPY0414"
"""What no layout and no launch is refused with: a planner whose extra is not installed."""

STEP = ContractedStep(matmul(1024, 1024, 1024), ("a", "b", "c"))
SHAPES = {"a": (4096, 1024), "b": (1024, 1024), "c": (4096, 1024)}


def _planted(*_: object) -> NoReturn:
    raise refuse(UNRELATED, "planted")


def _code(error: pytest.ExceptionInfo[SpyrecError]) -> str:
    return error.value.diagnostics[0].code


def test_an_error_inside_of_a_planned_launch_surfaces_from_the_search_for_layouts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layouts = launched_layouts([STEP], SHAPES, {})
    assert layouts["a"] != DeviceLayout.default((4096, 1024), DType.FLOAT16)  # whole tiles one after the other
    monkeypatch.setattr(explain, "argument_plan", _planted)
    with pytest.raises(SpyrecError, match="planted") as caught:
        launched_layouts([STEP], SHAPES, {})
    assert _code(caught) == UNRELATED


def test_an_error_inside_of_the_plan_without_copies_surfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class of an answer, in an error that is raised, is no answer."""
    layouts = {name: DeviceLayout.default(shape, "float16") for name, shape in SHAPES.items()}
    (plan,) = explain_steps([STEP], SHAPES, layouts)
    assert any(argument.mode is Mode.STAGED for argument in plan.body.arguments)
    plain = explain.argument_plan

    def planted(
        argument: TileArgument, tensor: LaunchTensor, loops: tuple[LoopPlan, ...], may_stage: bool, is_updated: bool
    ) -> ArgumentPlan | Refusal:
        if not may_stage:
            raise TileNotExpressible("planted")
        return plain(argument, tensor, loops, may_stage, is_updated)

    monkeypatch.setattr(explain, "argument_plan", planted)
    with pytest.raises(TileNotExpressible, match="planted"):
        explain_steps([STEP], SHAPES, layouts)


def test_an_error_inside_of_the_tile_major_layout_surfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    argument = STEP.contract.arguments[0]
    assert tile_major_layout(argument, (4096, 1024), ["M", "N"]) is not None
    monkeypatch.setattr(rules, "generate", _planted)
    with pytest.raises(SpyrecError, match="planted") as caught:
        tile_major_layout(argument, (4096, 1024), ["M", "N"])
    assert _code(caught) == UNRELATED


def test_an_error_inside_of_one_choice_of_strides_surfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layout is of strides [256, 1], no first choice: what is raised of the first one is not passed over."""
    pitched = DeviceLayout.default((4, 128), "float16", (256, 1))
    made = DeviceLayout(pitched.device_size, pitched.stride_map, pitched.device_dtype, (4, 128))
    assert made.host_strides == (256, 1)
    plain = rules.generate

    def planted(host: HostTensor, *rest: tuple[int, ...]) -> list[CopyNest] | object:
        return _planted() if host.strides == (128, 1) else plain(host, *rest)

    monkeypatch.setattr(rules, "generate", planted)
    with pytest.raises(SpyrecError, match="planted") as caught:
        DeviceLayout(pitched.device_size, pitched.stride_map, pitched.device_dtype, (4, 128))
    assert _code(caught) == UNRELATED


def test_an_error_inside_of_the_host_tensor_of_coordinates_surfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no host tensor fits, coordinates go without one; what is raised does not say that none fits."""
    twice = DeviceLayout((4, 2, 64), (64, 64, 1), "SEN169_FP16")
    assert twice.coordinates("i", {"i": 64}) == ("0", "0", "i")
    monkeypatch.setattr(coordinates, "inferred_host", _planted)
    with pytest.raises(SpyrecError, match="planted") as caught:
        twice.coordinates("i", {"i": 64})
    assert _code(caught) == UNRELATED


def test_a_launch_that_no_layout_helps_is_refused_where_it_is_explained() -> None:
    """The search itself goes on: its answer is the compiled kind of layout, and the refusal is the launch's own."""
    shapes = {"a": (4096, 1024), "b": (1024, 1024), "c": (2048, 1024)}
    layouts = launched_layouts([STEP], shapes, {})
    with pytest.raises(SpyrecError, match='loop "M" has 4096 elements in "a" and 2048 in "c"') as caught:
        explain_steps([STEP], shapes, layouts)
    assert _code(caught) == "SPY0957"
