"""SPY0350: where no layout serves, the message shows both sides, where they come from, and a pin that helps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import spyrec
from spyrec.diagnostics import Diagnostic, SpyrecError
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.layout.device_layout import DeviceLayout
from tests.support.graphs import JsonObject, graph_data, node, only_diagnostic, tensor

_TILES = [2] * 10 + [64]
_STEPS = [64 * step for step in (512, 8, 4, 2, 1, 16, 32, 64, 128, 256)] + [1]
_SHUFFLED: JsonObject = {"device_size": _TILES, "stride_map": _STEPS}
"""Ten tiles of one host dim: no kernel has as many iteration dims."""


def _refused(data: JsonObject, folder: Path) -> Diagnostic:
    path = folder / "graph.json"
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(path)
    found = only_diagnostic(caught.value)
    assert found.code == "SPY0350"
    return found


def _suggested(found: Diagnostic) -> tuple[str, JsonObject]:
    assert found.hint is not None
    match = re.match(r'pin "(\w+)" to (\{.*?\})', found.hint)
    assert match is not None, found.hint
    return match[1], json.loads(match[2])


def _input_case(pin: object) -> JsonObject:
    inputs = [tensor("a", 1024, 64) | {"layout": pin}, tensor("b", 1024, 64)]
    return graph_data(inputs, [node("t", "neg", "b"), node("v", "neg", "a"), node("y", "add", "t", "v")], ["y"])


def _output_case(pin: object) -> JsonObject:
    nodes = [node("t", "t", "a"), node("u", "neg", "t"), node("y", "add", "u", "b", layout=pin)]
    return graph_data([tensor("a", 64, 1024), tensor("b", 1024, 64)], nodes, ["y"])


def _contraction_case(pin: object) -> JsonObject:
    inputs = [tensor("a", 3, 1024), tensor("b", 1024, 64) | {"layout": pin}]
    return graph_data(inputs, [node("y", "matmul", "a", "b")], ["y"])


@pytest.mark.parametrize(
    ("case", "owner", "pointer", "reason"),
    [
        (_input_case, "a", "/inputs/0/layout", "11 iteration dims exceed the 8 labels of a SuperDSC"),
        (_output_case, "y", "/nodes/2/layout", "11 iteration dims exceed the 8 labels of a SuperDSC"),
        (_contraction_case, "b", "/inputs/1/layout", "the contracted dim or the columns are cut into several"),
    ],
)
def test_both_layouts_their_paths_and_a_pin_that_serves_are_told(
    case: Callable[[object], JsonObject], owner: str, pointer: str, reason: str, tmp_path: Path
) -> None:
    found = _refused(case(_SHUFFLED), tmp_path)
    text = "\n".join(found.notes)
    shuffled = DeviceLayout(_TILES, _STEPS, DeviceFormat.SEN169_FP16)
    assert f'"{owner}" is pinned to {shuffled}' in text
    assert re.search(rf'"{owner}" \(.*, pinned at .*graph.json:\d+:\d+  {pointer}\)', text)
    assert text.count("SpyreTensorLayout(") >= 2
    assert found.notes[-1] == reason
    name, pin = _suggested(found)
    assert name == owner
    assert spyrec.compile(case(pin)).programs


def test_the_path_names_every_node_back_to_the_input(tmp_path: Path) -> None:
    data = graph_data(
        [tensor("a", 4096)],
        [
            node("r", "reshape", "a", shape=[2] * 12),
            node("p", "permute", "r", dims=[3, 1, 2, 0, 5, 4, 7, 6, 9, 8, 11, 10]),
            node("y", "neg", "p"),
            node("z", "reshape", "y", shape=[4096]),
        ],
        ["z"],
    )
    found = _refused(data, tmp_path)
    steps = [("y", "neg", "/nodes/2"), ("p", "permute", "/nodes/1"), ("r", "reshape", "/nodes/0")]
    wanted = " <- ".join(rf'"{name}" \({op}, \S+graph\.json:\d+:\d+  {place}\)' for name, op, place in steps)
    assert re.search(rf'{wanted} <- "a" \(input, \S+graph\.json:\d+:\d+  /inputs/0\)', "\n".join(found.notes))
    assert found.hint is not None
    assert "reshape" in found.hint


def test_pins_that_a_copy_can_serve_are_served() -> None:
    """Second operand of a product with a ragged K, in every stick order, whole and in tiles."""
    for pin in (
        {"dim_order": [1, 0]},
        {"device_size": [70, 1, 150, 64], "stride_map": [150, -1, 1, -1]},
        {"device_size": [165, 64], "stride_map": [64, 1]},
        {"device_size": [2, 3, 35, 64], "stride_map": [150, 64, 300, 1]},
    ):
        data = graph_data(
            [tensor("a", 5, 70), tensor("b", 70, 150, layout=pin)], [node("y", "matmul", "a", "b")], ["y"]
        )
        assert spyrec.compile(data).programs
