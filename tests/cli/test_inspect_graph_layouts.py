"""``spyrec inspect-layout GRAPH``: every value of the graph, the copies and why, elements of any value both ways."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from spyrec.cli import main
from spyrec.cli._graph_layout_text import answers
from spyrec.cli._graph_layouts import GraphLayouts, graph_layouts
from spyrec.cli._layout_text import Questions
from spyrec.ir.kernel import KernelGraph
from tests.support.graphs import JsonObject, graph_data, node, scheduled, tensor
from tests.support.random_graphs import random_graph

Capture = pytest.CaptureFixture[str]

DATA = graph_data(
    [
        tensor("a", 40, 60, layout={"device_size": [38, 64], "stride_map": [64, 1]}),
        tensor("b", 60, 40, layout={"dim_order": [0, 1]}),
        tensor("w", 60, 70),
    ],
    [
        node("bt", "t", "b"),
        node("s", "add", "a", "bt"),
        node("m", "matmul", "s", "w"),
        node("h", "slice", "m", dim=1, start=3, end=67, step=1),
        node("unused", "neg", "s"),
        node("c", "cat", "h", "h", dim=1),
        node("y", "softmax", "c", dim=1),
    ],
    ["y", "bt"],
)
"""A folded pin, a view that is copied, a view that is an output, a window, a padded contraction, a dead node."""


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(DATA), encoding="utf-8")
    return path


def _facts(data: JsonObject) -> tuple[KernelGraph, GraphLayouts]:
    kernels = scheduled(data)
    return kernels, graph_layouts(kernels)


def test_every_value_of_the_graph_and_every_buffer_is_listed_once() -> None:
    kernels, layouts = _facts(DATA)
    assert kernels.source is not None
    names = [value.name for value in layouts.values]
    assert len(set(names)) == len(names)
    assert set(kernels.source.values) <= set(names)
    owned = [value.owned.name for value in layouts.values if value.owned is not None]
    assert sorted(owned) == sorted(kernels.buffers)
    roles = {value.name: value.role for value in layouts.values}
    expected = {"a": "input", "bt": "output", "s": "intermediate", "h": "view", "unused": "folded away", "y": "output"}
    assert {name: roles[name] for name in expected} == expected


@pytest.mark.parametrize("seed", range(8))
def test_the_listing_of_random_graphs_agrees_with_the_compiler(seed: int) -> None:
    kernels, layouts = _facts(random_graph(seed)[0])
    owned = [value.owned.name for value in layouts.values if value.owned is not None]
    assert sorted(owned) == sorted(kernels.buffers)
    for value in layouts.values:
        if value.owned is None:
            assert value.role in ("view", "folded away")
            continue
        elements = math.prod(value.owned.placed.device.device_size)
        assert value.padding_percent == pytest.approx(100 * (1 - value.type.element_count / elements))
        assert value.place is None or value.place.program < len(kernels.programs)
    moving = [kernel for kernel in kernels.kernels if kernel.op_func in ("identity", "ReStickifyOpHBM")]
    twins = {name for program in kernels.programs for name in program.lx_offsets}
    assert not any({copy.source, copy.target} & twins for copy in layouts.copies)
    assert {copy.kernel.name for copy in layouts.copies} <= {kernel.name for kernel in moving}
    assert {kernel.name for kernel in moving if kernel.op_func != "identity"} <= {
        copy.kernel.name for copy in layouts.copies
    }
    for copy in layouts.copies:
        assert copy.kernel.reason
        target = kernels.buffers[copy.target].placed.size_bytes
        source = kernels.buffers[copy.source].placed.size_bytes
        assert target < copy.size_bytes <= source + target
    assert layouts.cost.lower_bound_bytes <= layouts.cost.cost_bytes


def test_the_table_shows_layout_padding_place_views_and_copies(graph: Path, capsys: Capture) -> None:
    assert main(["inspect-layout", str(graph)]) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = {line.split("  ")[0]: [cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines if line}
    assert cells["a"][1:] == [
        "input", "[40, 60]", "float16", "[38, 64]", "[64, 1]", "1.3 %", "argument 0 of program 0",
    ]  # fmt: skip
    assert cells["h"][-1] == "no memory: h[i0, i1] = m[i0, i1 + 3]"
    assert cells["unused"][-1] == "no memory: taken apart or dropped by the compiler"
    text = "\n".join(lines)
    assert "restickify b -> b.restickified: 12800 bytes for s\n    because operands have different dims" in text
    assert "because the contracted dim of 60 is padded with zeros to 64, whole sticks" in text
    assert 'because the output "bt" has memory and a layout of its own' in text
    assert lines[-1].startswith("layouts: copies and padding cost ")
    assert "lower bound" in lines[-1]


def test_json_says_the_same(graph: Path, capsys: Capture) -> None:
    _, layouts = _facts(DATA)
    assert main(["inspect-layout", str(graph), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [item["name"] for item in found["tensors"]] == [value.name for value in layouts.values]
    assert found["copied_bytes"] == sum(copy["size_bytes"] for copy in found["copies"]) == layouts.copied_bytes
    assert found["layout_cost_lower_bound_bytes"] <= found["layout_cost_bytes"]
    by_name = {item["name"]: item for item in found["tensors"]}
    assert by_name["h"]["view"] == {"of": "m", "index": "m[i0, i1 + 3]"}
    assert by_name["s"]["place"]["lx_offset"] >= 0
    assert by_name["m"]["place"]["pool_offset"] >= 0
    assert "dci" in by_name["a"]
    assert "dci" not in by_name["s"]


@pytest.mark.parametrize("name", ["a", "b", "h", "y", "b.restickified", "m.padded"])
def test_elements_of_any_value_are_mapped_both_ways(name: str, graph: Path, capsys: Capture) -> None:
    _, layouts = _facts(DATA)
    (value,) = (value for value in layouts.values if value.name == name)
    index = [size * 4 // 5 for size in value.type.shape]
    question = ["inspect-layout", str(graph), "--json", "--tensor", name]
    assert main([*question, "--at", ",".join(map(str, index))]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["at"]
    assert answer["index"] == index
    owner = value.owner or name
    back = ["inspect-layout", str(graph), "--json", "--tensor", owner, "--at-address", str(answer["byte"])]
    assert main(back) == 0
    (found,) = json.loads(capsys.readouterr().out)["at"]
    assert found["device_coordinate"] == answer["device_coordinate"]
    assert found["index"] == ([index[0], index[1] + 3] if name == "h" else index)


def test_an_element_in_lx_has_a_place_of_its_own_in_one_cores_scratchpad() -> None:
    kernels, layouts = _facts(DATA)
    (value,) = (value for value in layouts.values if value.name == "s")
    assert value.place is not None
    assert value.place.share is not None
    first = kernels.programs[0].lx_offsets["s"]
    found: set[tuple[int | None, int]] = set()
    for index in np.ndindex(*value.type.shape):
        (answer,) = answers([value], Questions(index, None))
        assert first <= answer.address < first + value.place.share.size_bytes
        found.add((answer.core, answer.address))
    assert len(found) == value.type.element_count
    writer = next(kernel for kernel in kernels.kernels if kernel.output.buffer == "s")
    assert {core for core, _ in found} == set(range(math.prod(writer.division or ())))


def test_one_value_is_described_and_drawn(graph: Path, tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "picture.svg"
    assert main(["inspect-layout", str(graph), "--tensor", "a", "--svg", str(picture)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("a  input, argument 0 of program 0\n\nSpyreTensorLayout(device_size=[38, 64]")
    assert "device[64*i + j] = host[64*i + j]" in text
    assert picture.read_text(encoding="utf-8").count("<g>") == 38
    assert main(["inspect-layout", str(graph), "--tensor", "s"]) == 0
    text = capsys.readouterr().out
    assert "s  intermediate, lx + " in text
    assert "host[" not in text
    assert main(["inspect-layout", str(graph), "--tensor", "h"]) == 0
    assert "h  view, float16[40,64], no memory: h[i0, i1] = m[i0, i1 + 3]" in capsys.readouterr().out


def test_fixed_layouts_of_inputs_and_outputs_are_shown_when_asked_for(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "graph.json"
    nodes = [node("t", "t", "b"), node("y", "add", "a", "t")]
    path.write_text(json.dumps(graph_data([tensor("a", 64, 128), tensor("b", 128, 64)], nodes, ["y"])), "utf-8")
    counts: list[int] = []
    for options in ([], ["--fixed-io-layouts"]):
        assert main(["inspect-layout", str(path), "--json", *options]) == 0
        counts.append(len(json.loads(capsys.readouterr().out)["copies"]))
    assert counts == [0, 1]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--tensor", "z"], "SPY0321"),
        (["--tensor", "a", "--at", "40,0"], "SPY0310"),
        (["--tensor", "h", "--at", "1"], "SPY0310"),
        (["--tensor", "h", "--at-address", "0"], "SPY0310"),
        (["--at", "1,2,3,4,5"], "SPY0310"),
        (["--at-address", "0xffffffffffff"], "SPY0310"),
    ],
    ids=str,
)
def test_questions_without_an_answer_are_refused(options: list[str], code: str, graph: Path, capsys: Capture) -> None:
    assert main(["inspect-layout", str(graph), *options]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert code in captured.err


def test_tiles_in_lx_are_said_to_lie_there_and_have_no_single_address(tmp_path: Path, capsys: Capture) -> None:
    x = {**tensor("x", 8, 256), "shape": ["A", "B"]}
    data = graph_data([x], [node("y", "abs", "x"), node("z", "neg", "y")], ["z"])
    data = {**data, "dims": {"A": 8, "B": 256}, "loops": [{"dim": "A", "tiles": 2, "body": ["y", "z"]}]}
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(data))
    assert main(["inspect-layout", str(path), "--tensor", "y"]) == 0
    assert capsys.readouterr().out.startswith("y  intermediate, lx + 0x0 of program 0")
    assert main(["inspect-layout", str(path), "--json"]) == 0
    values = {item["name"]: item for item in json.loads(capsys.readouterr().out)["tensors"]}
    assert values["y"]["place"] == {"program": 0, "lx_offset": 0}
    assert main(["inspect-layout", str(path), "--tensor", "y", "--at-address", "0"]) == 1
    assert "SPY0310" in capsys.readouterr().err
