"""Every link between lines of the panes, held against a walk that reads the lines themselves."""

from __future__ import annotations

import json
import re
from itertools import count, pairwise
from pathlib import Path

import pytest

import spyrec
from spyrec.report.build import Source, report_of
from spyrec.report.model import Report, Text
from tests.report.bundles import LOOPED, MODEL, ORIGINS, PLAIN, foreign, report_on

_MADE_OF = re.compile(r' @("[^"]*"|[^ "]+)$')
_KERNEL = re.compile(r"\s*for \[.*?\] (\S+?)\[")


def _lines(report: Report, text: Text) -> list[str]:
    return [report.strings[number] for number in text.lines]


def _from(text: Text, line: int) -> tuple[int, ...]:
    return text.comes_from[line] if line < len(text.comes_from) else ()


def _ancestors(report: Report, number: int, line: int) -> dict[int, set[int]]:
    """Return by text the lines that a line goes back to."""
    found: dict[int, set[int]] = {}
    lines, text = {line}, report.texts[number]
    while text.of is not None:
        lines = {before for item in lines for before in _from(text, item)}
        found[text.of] = lines
        text = report.texts[text.of]
    return found


def _number(report: Report, name: str) -> int:
    return next(number for number, text in enumerate(report.texts) if text.name == name)


@pytest.mark.parametrize("data", [PLAIN, LOOPED, MODEL], ids=["plain", "looped", "model"])
def test_what_a_form_says_that_a_line_was_made_of_is_its_ancestor(data: dict[str, object], tmp_path: Path) -> None:
    _assert_linked(report_on(data, tmp_path / "bundle"))


def _assert_linked(report: Report) -> None:
    graph = _number(report, "graph.json")
    source = _lines(report, report.texts[graph])
    told = 0
    for number, text in enumerate(report.texts):
        if text.kind not in {"graph", "kernels"}:
            continue
        for place, line in enumerate(_lines(report, text)):
            made_of = _MADE_OF.search(line)
            if made_of is None or len(line) == 400:
                continue
            name = json.loads(made_of[1]) if made_of[1].startswith('"') else made_of[1]
            nodes = {json.loads(source[item].rstrip(","))["name"] for item in _ancestors(report, number, place)[graph]}
            assert name in nodes, (text.name, line, nodes)
            told += 1
    assert told


@pytest.mark.parametrize("data", [PLAIN, LOOPED, MODEL], ids=["plain", "looped", "model"])
def test_a_call_goes_back_to_the_kernel_that_writes_its_tensor(data: dict[str, object], tmp_path: Path) -> None:
    report = report_on(data, tmp_path / "bundle")
    last = max(number for number, text in enumerate(report.texts) if text.kind == "kernels")
    product = report.texts[_number(report, "bundle.mlir")]
    kernels = _lines(report, report.texts[last])
    seen: set[int] = set()
    for place, line in enumerate(_lines(report, product)):
        match = re.search(r'sdsc_filename="([^"]*)"', line)
        ops = product.ops[place] if place < len(product.ops) else ()
        assert (match is not None) == bool(ops)
        for op in ops:
            found = report.ops[op]
            assert match is not None
            assert found.file.endswith(match[1])
            own = _ancestors(report, _number(report, "bundle.mlir"), place)[last]
            written = {match[1] for item in own if (match := _KERNEL.match(kernels[item])) is not None}
            assert written == {report.tensors[item.tensor].name for item in found.outputs}
            seen.add(op)
    assert seen == set(range(len(report.ops)))


def test_operations_know_node_and_module(tmp_path: Path) -> None:
    report = report_on(MODEL, tmp_path / "bundle")
    assert report.modules == ("model", "model.mlp", "model.mlp.up", "model.norm")
    nodes = ORIGINS
    by_node = {op.node for op in report.ops if op.node is not None}
    assert by_node == set(nodes)
    for op in report.ops:
        if op.node is not None:
            origin = nodes[op.node]
            assert op.module is not None
            assert (report.modules[op.module], op.source, op.origin) == (
                origin["module"], f"{origin['file']}:{origin['line']}", origin["op"],
            )  # fmt: skip
    modules = _lines(report, report.texts[_number(report, "modules")])
    assert modules[1] == "model.mlp.up  mlp.py:21  aten.mm"


def test_a_pass_that_changes_nothing_has_no_text(tmp_path: Path) -> None:
    report = report_on(PLAIN, tmp_path / "bundle")
    forms = [_lines(report, text) for text in report.texts if text.kind in {"graph", "kernels"}]
    assert all(before != after for before, after in pairwise(forms))


def test_what_there_is_no_room_for_is_told_and_links_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = report_on(MODEL, tmp_path / "whole")
    monkeypatch.setattr("spyrec.report.panes.MOST_TEXT", sum(map(len, whole.strings)) // 2)
    shorter = report_of(Source(tmp_path / "whole"))
    assert len(shorter.texts) < len(whole.texts)
    assert any("there is no room for the forms after" in note for note in shorter.notes)
    _assert_linked(shorter)


def test_a_bundle_that_its_graph_does_not_give_shows_no_compiler(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    spyrec.compile(PLAIN).save(folder)
    (folder / "sdsc_0.json").write_bytes((folder / "sdsc_0.json").read_bytes().replace(b'add"', b'sub"'))
    report = report_of(Source(folder))
    assert report.bundle.compiled == "other"
    assert {text.pane for text in report.texts} == {"source", "product"}
    assert any("is not what this version of spyrec makes" in note for note in report.notes)


def test_handles_of_others_are_panes(tmp_path: Path) -> None:
    report = report_of(Source(foreign("debug_handle", tmp_path / "foreign")))
    assert [text.name for text in report.texts] == ["sources", "handles", "SuperDSC", "bundle.mlir"]
    product, source = report.texts[3], _lines(report, report.texts[0])
    for place in range(len(product.lines)):
        for op in product.ops[place] if place < len(product.ops) else ():
            places = {source[item] for item in _ancestors(report, 3, place)[0]}
            handle = report.ops[op].handle
            assert handle is not None
            assert places == set(_sources(report, handle))
    assert any(op.origin == "aten.add.Tensor" and op.source == "model.py:12" for op in report.ops)


def _sources(report: Report, number: int) -> list[str]:
    found: list[str] = []
    waiting = [report.handles[number]]
    while waiting:
        handle = waiting.pop()
        found += [] if handle.source is None else [f"{handle.source.file}:{handle.source.start_line}"]
        waiting += handle.fused_from
    return found


def test_lines_are_numbered_once(tmp_path: Path) -> None:
    report = report_on(MODEL, tmp_path / "bundle")
    assert len(set(report.strings)) == len(report.strings)
    numbers = count()
    seen: dict[int, int] = {}
    for text in report.texts:
        for line in text.lines:
            seen.setdefault(line, next(numbers) if line not in seen else seen[line])
    assert sorted(seen) == list(range(len(report.strings)))
