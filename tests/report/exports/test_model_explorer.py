"""Graphs and node data for Model Explorer: their published form, every operation once, edges between what is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from spyrec.notebook import visible
from spyrec.report.exports import model_explorer
from spyrec.report.exports.report_graph import edges_of
from tests.support.examples import seeds
from tests.support.reports import HOSTILE, random_report

KEY_VALUE = {"key": str, "value": str}
METADATA = {"id": str, "attrs": [KEY_VALUE]}
NODE = {
    "id": str,
    "label": str,
    "namespace": str,
    "attrs": [KEY_VALUE],
    "incomingEdges": [{"sourceNodeId": str, "sourceNodeOutputId": str, "targetNodeInputId": str}],
    "inputsMetadata": [METADATA],
    "outputsMetadata": [METADATA],
}
GRAPH = {"id": str, "nodes": [NODE], "groupNodeAttributes": dict}
COLLECTION = {"label": str, "graphs": [GRAPH]}
"""The fields that the data classes of the public package have, as far as they are written, and their types."""


def problems(value: Any, form: Any, where: str = "") -> list[str]:  # noqa: ANN401 -- what JSON gives
    """What of a value is not of a form: a type, a list of one form, or an object with some of these members."""
    if isinstance(form, type):
        return [] if isinstance(value, form) else [f"{where} is no {form.__name__}"]
    if isinstance(form, list):
        if not isinstance(value, list):
            return [f"{where} is no list"]
        return [found for item in value for found in problems(item, form[0], where)]  # pyright: ignore[reportUnknownVariableType]
    found = [f"{where} has {key}" for key in value if key not in form]
    return found + [item for key in value if key in form for item in problems(value[key], form[key], f"{where}.{key}")]


def values_of(attributes: list[dict[str, str]]) -> dict[str, str]:
    return {item["key"]: item["value"] for item in attributes}


@pytest.mark.parametrize("names", [None, HOSTILE], ids=["plain", "hostile"])
@pytest.mark.parametrize("seed", seeds(40))
def test_a_collection_is_of_the_published_form_and_has_every_operation_once(
    seed: int, names: tuple[str, ...] | None
) -> None:
    report = random_report(seed, names)
    found = json.loads(model_explorer.render(report))
    assert problems(found, COLLECTION) == []
    assert [graph["id"] for graph in found["graphs"]] == ["programs", "modules"]
    edges = {(edge.source, edge.target) for edge in edges_of(report)}
    for graph in found["graphs"]:
        nodes = {node["id"]: node for node in graph["nodes"]}
        assert len(nodes) == len(graph["nodes"])
        assert {key for key in nodes if key.startswith("op")} == {f"op{number}" for number in range(len(report.ops))}
        drawn = {(edge["sourceNodeId"], key) for key, node in nodes.items() for edge in node.get("incomingEdges", ())}
        assert drawn == edges
        assert {source for source, _ in drawn} <= nodes.keys()
        for number, op in enumerate(report.ops):
            node = nodes[f"op{number}"]
            assert node["label"] == (visible(op.name) or "_")
            assert values_of(node["attrs"])["read bytes"] == f"{op.read:,}"
            assert [item["targetNodeInputId"] for item in node["incomingEdges"]] == [
                str(place) for place in range(len(op.inputs))
            ]
            assert [values_of(item["attrs"])["tensor_name"] for item in node["outputsMetadata"]] == [
                visible(report.tensors[item.tensor].name) for item in op.outputs
            ]


@pytest.mark.parametrize("seed", seeds(20))
def test_edges_leave_the_result_that_they_carry(seed: int) -> None:
    report = random_report(seed)
    found = json.loads(model_explorer.render(report))["graphs"][0]
    nodes = {node["id"]: node for node in found["nodes"]}
    for number, op in enumerate(report.ops):
        for operand, edge in zip(op.inputs, nodes[f"op{number}"]["incomingEdges"], strict=True):
            result = nodes[edge["sourceNodeId"]]["outputsMetadata"][int(edge["sourceNodeOutputId"])]
            assert values_of(result["attrs"])["tensor_name"] == visible(report.tensors[operand.tensor].name)


@pytest.mark.parametrize("seed", seeds(20))
def test_groups_are_modules_in_one_graph_and_programs_and_loops_in_the_other(seed: int) -> None:
    report = random_report(seed)
    programs, modules = json.loads(model_explorer.render(report))["graphs"]
    by_module = {node["id"]: node["namespace"] for node in modules["nodes"]}
    by_program = {node["id"]: node["namespace"] for node in programs["nodes"]}
    for number, op in enumerate(report.ops):
        module = "" if op.module is None else report.modules[op.module].replace(".", "/")
        assert by_module[f"op{number}"] == module
        parts = by_program[f"op{number}"].split("/")
        assert parts[0] == f"program kernels\N{DIVISION SLASH}{op.program}"
        assert [part.startswith("loop ") for part in parts[1 : 1 + len(op.loops)]] == [True] * len(op.loops)
    for graph in (programs, modules):
        named = {name for name in graph["groupNodeAttributes"] if name}
        assert {node["namespace"] for node in graph["nodes"]} - {""} <= named
        for name in named:
            inside = [
                report.ops[int(node["id"][2:])]
                for node in graph["nodes"]
                if node["id"].startswith("op") and f"{node['namespace']}/".startswith(f"{name}/")
            ]
            said = graph["groupNodeAttributes"][name]
            assert said["read bytes"] == f"{sum(op.read for op in inside):,}"


def results(text: str) -> Mapping[str, float]:
    found = json.loads(text)
    assert set(found) == {"programs", "modules"}
    assert found["programs"] == found["modules"]
    values = {key: item["value"] for key, item in found["programs"]["results"].items()}
    assert all(type(value) in (int, float) for value in values.values())
    return values


@pytest.mark.parametrize("seed", seeds(30))
def test_node_data_are_the_numbers_of_the_report(seed: int) -> None:
    report = random_report(seed)
    times = {f"op{number}": op.us for number, op in enumerate(report.ops) if op.us is not None}
    assert results(model_explorer.render_time(report)) == times
    moved = {f"op{number}": op.read + op.written for number, op in enumerate(report.ops)}
    assert results(model_explorer.render_bytes(report)) == moved
    errors = results(model_explorer.render_error(report))
    checked = () if report.run is None else report.run.checks
    for check in checked:
        op = report.outputs[check.output].op
        if op is not None and check.bound_ratio == check.bound_ratio:
            assert errors[f"op{op}"] >= min(check.bound_ratio, 1e30)
    if report.run is None:
        assert errors == {}


def test_gradients_and_thresholds_are_whole() -> None:
    report = random_report(0)
    gradient = json.loads(model_explorer.render_time(report))["programs"]["gradient"]
    assert [item["stop"] for item in gradient] == [0, 1]
    thresholds = [item["value"] for item in json.loads(model_explorer.render_error(report))["programs"]["thresholds"]]
    assert thresholds == sorted(thresholds)
