"""``spyrec passes``: the pipeline as it is declared, and declarations that hold."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from spyrec.cli import main
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.base import PassContext, PipelineOptions, Refused
from spyrec.passes.pass_docs import STEPS, details, docs_page
from spyrec.passes.pass_options import OPTIONS
from spyrec.passes.pipelines import AUTO_TILE, COMPILE, FORM, PLAN
from tests.support.graphs import graph_data, node, read, tensor

ROOT = Path(__file__).resolve().parents[2]


def test_the_passes_are_listed_in_the_order_in_which_they_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [item.name for item in FORM] + [AUTO_TILE.name] + [item.name for item in PLAN]
    assert [line.split()[0] for line in lines] == names
    assert main(["passes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["format"] == "spyrec.passes/1"
    assert [item["name"] for item in found["passes"]] == names
    for item, shown in zip(COMPILE, [item for item in found["passes"] if item["kind"] == "pass"], strict=True):
        assert set(shown["requires"]) == {facet.name.lower() for facet in item.requires}
        assert set(shown["establishes"]) == {facet.name.lower() for facet in item.establishes}
        assert [option["name"].replace("-", "_") for option in shown["options"]] == list(item.options)
        assert shown["cost"] == item.cost


def test_one_pass_is_shown_with_all_that_is_declared(capsys: pytest.CaptureFixture[str]) -> None:
    for step in STEPS:
        assert main(["passes", step.name]) == 0
        shown = capsys.readouterr().out
        assert shown == details(step) + "\n"
        assert " ".join(step.cost.split()) in " ".join(shown.split())
        assert all(OPTIONS[field].name in shown for field in step.options)


def test_a_wrong_pass_is_a_usage_error_that_names_a_near_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passes", "divide_work"]) == 2
    assert "did you mean divide-work?" in capsys.readouterr().err


def test_every_option_of_the_pipeline_is_described_and_read_by_a_step() -> None:
    assert set(OPTIONS) == {item.name for item in fields(PipelineOptions)}
    assert {field for step in STEPS for field in step.options} == set(OPTIONS)


def test_the_page_is_fresh() -> None:
    assert (ROOT / "docs" / "passes.md").read_text(encoding="utf-8") == docs_page()


_READ: set[str] = set()


class _Watched(PipelineOptions):
    """Options that remember which of them were asked for."""

    def __getattribute__(self, name: str) -> object:
        if name in OPTIONS:
            _READ.add(name)
        return super().__getattribute__(name)


def test_a_pass_reads_the_options_that_it_declares_and_no_other() -> None:
    dims = {"A": 256, "B": 128}
    x = {**tensor("x", 256, 128), "shape": ["A", "B"]}
    looped = {"dims": dims, "loops": [{"dim": "A", "tiles": 2, "body": ["y", "s"]}]}
    chain = graph_data([x], [node("y", "exp", "x"), node("s", "softmax", "y", dim=-1)], ["s"], **looped)
    pool = graph_data([tensor("p", 1, 64, 8, 8)], [node("q", "avg_pool2d", "p", kernel_size=[2, 2])], ["q"])
    batched = graph_data([tensor("a", 2, 64, 128), tensor("b", 2, 128, 64)], [node("c", "bmm", "a", "b")], ["c"])
    read_by: dict[str, set[str]] = {item.name: set() for item in COMPILE}
    for data in (chain, pool, batched):
        source = read(data)
        current: Graph | KernelGraph = source
        for item in COMPILE:
            _READ.clear()
            result: Graph | KernelGraph | Refused = item.run(
                current,  # pyright: ignore[reportArgumentType] -- passes are run in their order
                PassContext(_Watched(), []),
            )
            read_by[item.name] |= _READ
            assert not isinstance(result, Refused)
            current = result if isinstance(result, Graph) else replace(result, source=source)
    assert read_by == {item.name: set(item.options) for item in COMPILE}
