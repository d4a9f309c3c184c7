"""A hundred thousand mistakes of one kind are refused in linear time, with the first of them and their number."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spyrec.bundle.manifest_json import read_manifest
from spyrec.codegen.opspec_json import read_opspecs
from spyrec.compare.validate_path import validate_path
from spyrec.diagnostics import MOST_LISTED, Diagnostic, Severity, SpyrecError, listed
from spyrec.diagnostics.json_reading import SourceText
from tests.support.cpu_limit import cpu_seconds
from tests.support.graphs import JsonObject, graph_data, node, tensor

_MANY = 100_000
_SECONDS = 8
_KEYS: JsonObject = {f"key{number}": 1 for number in range(_MANY)}
_GOOD = graph_data([tensor("x", 64)], [node("y", "relu", "x")], ["y"])

_GRAPHS: dict[str, tuple[str, JsonObject]] = {
    "graph": ("SPY0111", {**_GOOD, **_KEYS}),
    "node": ("SPY0111", {**_GOOD, "nodes": [{**node("y", "relu", "x"), **_KEYS}]}),
    "attributes": ("SPY0121", {**_GOOD, "nodes": [{**node("y", "relu", "x"), "attrs": _KEYS}]}),
    "dims": ("SPY0124", {**_GOOD, "dims": dict.fromkeys(_KEYS, -1)}),
    "work division": ("SPY0135", {**_GOOD, "nodes": [{**node("y", "relu", "x"), "work_division": _KEYS}]}),
    "outputs": ("SPY0116", {**_GOOD, "outputs": list(_KEYS)}),
}


@pytest.mark.parametrize(("code", "data"), _GRAPHS.values(), ids=_GRAPHS)
def test_mistakes_of_one_kind_in_a_graph_are_listed_up_to_a_number(code: str, data: JsonObject, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(data, indent=1))
    with cpu_seconds(_SECONDS):
        verdict = validate_path(path)
        places = [item.location.resolved().line for item in verdict.diagnostics if item.location is not None]
    found = [item for item in verdict.diagnostics if item.code == code]
    assert len(found) == MOST_LISTED + 1
    assert sum(item.count for item in found) == _MANY
    assert str(_MANY - MOST_LISTED) in found[-1].message
    assert len(set(places)) >= MOST_LISTED


@pytest.mark.parametrize(("read", "form"), [(read_manifest, "spyrec.bundle/1"), (read_opspecs, "spyrec.opspec/1")])
def test_mistakes_of_one_kind_elsewhere_are_listed_up_to_a_number(
    read: Callable[[bytes, str], object], form: str
) -> None:
    text = json.dumps({"format": form, **_KEYS}).encode()
    with cpu_seconds(_SECONDS), pytest.raises(SpyrecError) as caught:
        read(text, "file")
    assert sum(item.count for item in caught.value.diagnostics) > _MANY
    assert caught.value.diagnostics[0].location is not None
    assert len(caught.value.diagnostics) <= MOST_LISTED + 1


@pytest.mark.parametrize("count", [0, 1, MOST_LISTED, MOST_LISTED + 1, MOST_LISTED + 2, 5 * MOST_LISTED])
def test_what_is_listed_is_the_first_of_each_code_and_the_number_of_the_others(count: int) -> None:
    same = [Diagnostic("SPY0111", f"mistake {number}") for number in range(count)]
    other = Diagnostic("SPY0112", "another", severity=Severity.WARNING)
    found = listed([*same[: count // 2], other, *same[count // 2 :]])
    mine = [item for item in found if item.code == "SPY0111"]
    assert other in found
    assert mine[:MOST_LISTED] == same[:MOST_LISTED]
    assert len(mine) == min(count, MOST_LISTED + 1)
    assert listed(found) == found
    if count > MOST_LISTED + 1:
        assert mine[-1].message == f"{count - MOST_LISTED} more of this kind, the first of them here"


def test_places_are_found_in_any_order() -> None:
    source = SourceText('{"a": [1,\n 2], "b": {"c": 3,\n "d": 4}}')
    wanted = {"": (1, 1), "/a": (1, 7), "/a/1": (2, 2), "/b": (2, 11), "/b/d": (3, 7), "/b/e": (2, 11)}
    for order in (list(wanted), list(reversed(wanted))):
        assert {pointer: source.position(pointer) for pointer in order} == wanted
    fresh = SourceText(source.text)
    assert fresh.position("/b/d") == (3, 7)
    assert fresh.position("/a") == (1, 7)
