"""The report of the Granite block of the examples, narrow: what a page asks of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import spyrec
from examples.granite_block import make_graph
from spyrec.layout.device_layout import DeviceLayout
from spyrec.report.build import Source, report_of
from spyrec.report.model import Report, TensorLayout
from spyrec.report.report_file import read_report, report_text
from tests.report.bundles import FIXTURES

DOCUMENT = FIXTURES.parent.parent / "docs" / "report_data.md"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    home = tmp_path_factory.mktemp("granite")
    file = make_graph.write(home, make_graph.NARROW)
    folder = home / "bundle"
    spyrec.compile(file).save(folder)
    return report_of(Source(folder))


def test_nothing_is_left_untold(report: Report) -> None:
    assert report.bundle.compiled == "same"
    assert not report.notes
    assert len(report.programs) > 1
    assert [program.first for program in report.programs[1:]] == [program.past for program in report.programs[:-1]]
    cuts = [choice for choice in report.decisions if choice.kind == "program"]
    assert len(cuts) == len(report.programs) - 1


def test_every_operation_leads_to_a_node_of_the_graph(report: Report) -> None:
    nodes = {item["name"] for item in json.loads(make_graph.graph_text(make_graph.NARROW))["nodes"]}
    assert {op.node for op in report.ops if op.node is not None} <= nodes
    assert sum(op.node is None for op in report.ops) <= sum(op.op == "identity" for op in report.ops)


def test_every_resident_has_a_reason_or_is_a_copy_of_an_argument(report: Report) -> None:
    for item in report.memory.lx:
        for region in item.regions:
            tensor = report.tensors[region.tensor]
            assert region.decision is not None or tensor.name.endswith((".lx", ".copy")), tensor
            assert region.memory_bytes > 0


def test_writers_and_readers_are_each_others(report: Report) -> None:
    last: dict[int, int] = {}
    for number, op in enumerate(report.ops):
        for item in op.inputs:
            assert item.writer == last.get(item.tensor)
            assert number in report.tensors[item.tensor].readers
        for item in op.outputs:
            assert number in report.tensors[item.tensor].writers
            last[item.tensor] = number


def test_residents_that_live_together_lie_apart(report: Report) -> None:
    for item in report.memory.lx:
        assert max(region.past for region in item.regions) == item.peak <= item.usable
    for pool in report.memory.pools:
        assert all(region.past <= pool.size for region in pool.regions)
        for one in pool.regions:
            for two in pool.regions:
                both = one.begin is not None and two.begin is not None and one.end is not None and two.end is not None
                assert both
                apart = one.past <= two.first or two.past <= one.first
                assert one is two or apart or (one.end or 0) < (two.begin or 0) or (two.end or 0) < (one.begin or 0)


def _address(layout: TensorLayout, coordinate: tuple[int, ...]) -> tuple[int, int]:
    """Return host element and byte of a device coordinate, as ``docs/report_data.md`` says."""
    assert layout.stride_map is not None
    host = sum(place * stride for place, stride in zip(coordinate, layout.stride_map, strict=True) if stride != -1)
    sticks = 0
    for place, extent in zip(coordinate[:-1], layout.device_size[:-1], strict=True):
        sticks = sticks * extent + place
    return host, 128 * sticks + coordinate[-1] * 128 // layout.device_size[-1]


def test_a_layout_says_where_elements_lie(report: Report) -> None:
    rng = np.random.default_rng(1)
    told = 0
    for tensor in report.tensors:
        layout = tensor.layout
        if layout is None or layout.stride_map is None or tensor.shape is None or 0 in tensor.shape:
            continue
        device = DeviceLayout(layout.device_size, layout.stride_map, layout.format, tensor.shape)
        for _ in range(4):
            index = tuple(int(rng.integers(extent)) for extent in tensor.shape)
            host, address = _address(layout, device.device_coordinate(index))
            assert address == device.byte_address(index)
            assert host == int(np.ravel_multi_index(index, tensor.shape)) if index else host == 0
            told += 1
    assert told > 40


def test_the_page_that_describes_it_shows_one() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    example = text[text.index("## An example") :].partition("```json\n")[2].partition("\n```")[0]
    shown = read_report(example.encode(), "example.json")
    assert shown.name == "seed_add_mul"
    assert json.loads(report_text(shown)) == json.loads(example)
