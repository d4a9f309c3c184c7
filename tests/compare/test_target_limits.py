"""Limits of a target by date: what exceeds one is named with its figure, and the compiler plans within them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
import pytest

import spyrec
from examples.granite_block import make_graph
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.superdsc import Component, SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.cli import main
from spyrec.cli._target import resolve_target
from spyrec.compare.validate_path import CheckOptions, validate_path
from spyrec.emulator.rules.target_limits import exceeded_limits
from spyrec.hardware.target import FIGURES, SPYRE_2026_06, SPYRE_2026_08, TARGETS, Target
from spyrec.options import CompileOptions, RunOptions
from tests.sanitizers.planting import with_operand

FIXTURES = Path(__file__).parent.parent / "fixtures"


def exceeded(superdsc: SuperDsc, target: Target) -> list[str]:
    found = list(exceeded_limits("sdsc_0.json", superdsc, target))
    assert {item.code for item in found} <= {"SPY0627"}
    return [item.message for item in found]


def example(name: str, number: int = 0, folder: str = "examples") -> SuperDsc:
    return parse_superdsc((FIXTURES / folder / name / f"sdsc_{number}.json").read_bytes())


def test_every_figure_of_every_named_target_has_a_source_and_a_date() -> None:
    names = {item.name for item in fields(Target)} - {"name"}
    assert FIGURES.keys() == TARGETS.keys()
    for figures in FIGURES.values():
        assert figures.keys() == names
        assert {item.date for item in figures.values()} <= {"2026-06", "2026-08"}
        assert all(item.source for item in figures.values())


def test_the_default_target_is_that_of_june() -> None:
    assert replace(SPYRE_2026_06, name="spyre") == Target()
    assert Target().lx_usable_bytes == 1_677_696


def test_the_figures_of_august() -> None:
    assert SPYRE_2026_08.lx_usable_bytes == -(-int(((2 << 20) - (64 << 10)) * 0.8) // 128) * 128 == 1_625_344
    assert SPYRE_2026_08.span_limit_bytes == 65_535 * 4_096
    pairs = [(symbolic, has_pool) for symbolic in (True, False) for has_pool in (False, True)]
    assert [SPYRE_2026_06.most_arguments(symbolic=s, has_pool=p) for s, p in pairs] == [6, 5, 6, 5]
    assert [SPYRE_2026_08.most_arguments(symbolic=s, has_pool=p) > 6 for s, p in pairs] == [True, True, False, False]
    assert [SPYRE_2026_08.most_arguments(symbolic=False, has_pool=p) for p in (False, True)] == [6, 5]


def at_end(superdsc: SuperDsc, past: int) -> SuperDsc:
    """Move the first scratchpad operand so that it ends before byte ``past``."""
    position = next(i for i, item in enumerate(superdsc.operands) if item.component is Component.LX)
    operand = superdsc.operands[position]
    sticks = np.prod([superdsc.core_extent[dim] for dim, scale in operand.scales.items() if scale == 1]) // 64
    starts = (past - max(1, int(sticks)) * 128,) * len(operand.start_addresses)
    return with_operand(superdsc, position, start_addresses=starts)


@pytest.mark.parametrize("target", [SPYRE_2026_06, SPYRE_2026_08], ids=lambda target: target.name)
def test_the_first_byte_of_the_back_end_is_no_tensors(target: Target) -> None:
    superdsc = example("softmax_lx", 2)
    assert exceeded(at_end(superdsc, target.lx_usable_bytes), target) == []
    (found,) = exceeded(at_end(superdsc, target.lx_usable_bytes + 128), target)
    assert f"ends at byte {target.lx_usable_bytes + 128} of LX" in found
    assert "lx_tensor_bytes" in found


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (-1, 3)])
def test_a_span_may_be_as_large_as_the_limit(limit: int, count: int) -> None:
    superdsc = example("add")
    extents = [superdsc.core_extent[dim] for dim in ("mb", "out")]
    rows, sticks = extents[0], superdsc.iteration["out"] // 64
    span = ((rows - 1) + (sticks - 1) * superdsc.iteration["mb"] + 1) * 128 if extents[1] > 64 else rows * 128
    found = exceeded(superdsc, Target(span_limit_bytes=span + limit))
    assert len(found) == count
    assert all("span_limit_bytes" in item for item in found)


def test_topk_may_be_divided_where_the_target_divides_it() -> None:
    superdsc = example("topk_k8_split", folder="examples_2026_08")
    assert exceeded(superdsc, SPYRE_2026_08) == []
    (found,) = exceeded(superdsc, SPYRE_2026_06)
    assert "topk gives 8 values" in found
    assert "(topk_limit)" in found
    (found,) = exceeded(superdsc, replace(SPYRE_2026_08, topk_core_limit=1))
    assert "(topk_core_limit)" in found


@pytest.fixture
def granite(tmp_path: Path) -> Callable[[Target], Bundle]:
    graph = make_graph.write(tmp_path, make_graph.NARROW)
    return lambda target: spyrec.compile(graph, CompileOptions(target=target))


def test_a_model_needs_fewer_programs_without_the_limit_of_arguments(granite: Callable[[Target], Bundle]) -> None:
    before, after = granite(SPYRE_2026_06), granite(SPYRE_2026_08)
    assert (len(before.manifest.plan), len(after.manifest.plan)) == (11, 1)
    assert max(len(step.arguments) for step in after.manifest.plan) == 18
    shape = (1, make_graph.NARROW.sequence, make_graph.NARROW.hidden)
    x = {"x": np.random.default_rng(3).standard_normal(shape).astype(np.float16)}
    results = [spyrec.run(bundle, x, RunOptions(check=True, sanitize="all")) for bundle in (before, after)]
    assert all(result.is_ok for result in results)
    traffic = [result.stats.total.hbm_read_bytes + result.stats.total.hbm_write_bytes for result in results]
    assert traffic[1] < traffic[0]
    bisected = spyrec.run(after, x, RunOptions(bisect=True)).bisect
    assert bisected is not None
    assert bisected.ok


def test_a_plan_for_another_target_is_found_by_name(granite: Callable[[Target], Bundle], tmp_path: Path) -> None:
    directory = tmp_path / "b"
    granite(SPYRE_2026_08).save(directory)
    assert validate_path(directory).is_ok
    found = validate_path(directory, CheckOptions(target=SPYRE_2026_06)).diagnostics
    assert {item.code for item in found} == {"SPY0627"}
    assert '18 arguments and a pool with symbolic addresses, target "2026-06" has 5' in found[-1].message
    assert main(["check", str(directory), "--target", "2026-06"]) == 1
    assert main(["check", str(directory), "--target", "2026-08"]) == 0


def test_baked_addresses_keep_the_limit(tmp_path: Path) -> None:
    graph = make_graph.write(tmp_path, make_graph.NARROW)
    options = CompileOptions(target=SPYRE_2026_08, symbolic_args=False)
    assert max(len(step.arguments) for step in spyrec.compile(graph, options).manifest.plan) <= 6


def test_a_target_file_may_set_each_figure(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    wanted = replace(SPYRE_2026_08, name="mine", lx_reserved_fraction=0.5, topk_core_limit=2)
    file.write_text(json.dumps({"format": "spyrec.target/1", **asdict(wanted)}))
    assert resolve_target(str(file)) == wanted
    for key, value in (("lx_reserved_fraction", 2), ("limits_symbolic_arguments", 1), ("topk_limit", 0)):
        file.write_text(json.dumps({"format": "spyrec.target/1", key: value}))
        with pytest.raises(spyrec.SpyrecError, match="SPY0774"):
            resolve_target(str(file))


def test_the_manifest_of_the_default_target_is_as_it_was(granite: Callable[[Target], Bundle], tmp_path: Path) -> None:
    granite(Target()).save(tmp_path / "b")
    target = json.loads((tmp_path / "b" / "manifest.json").read_bytes())["target"]
    assert target.keys() == {"name", "cores", "lx_bytes", "lx_reserved_fraction", "span_limit_bytes"}
    granite(SPYRE_2026_08).save(tmp_path / "c")
    assert Bundle.load(tmp_path / "c").manifest.target == SPYRE_2026_08


def test_the_examples_of_each_date_keep_the_limits_of_it() -> None:
    for folder, target in (("examples", SPYRE_2026_06), ("examples_2026_08", SPYRE_2026_08)):
        for path in sorted((FIXTURES / folder).glob("*/sdsc_*.json")):
            try:
                superdsc = parse_superdsc(path.read_bytes())
            except spyrec.SpyrecError:
                continue  # a family that is not read yet
            assert exceeded(superdsc, target) == [], path
