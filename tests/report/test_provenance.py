"""Handles in the public shape: their ids, the sidecar, and bundles of others with and without them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spyrec.bundle.debug_handle import DebugHandle
from spyrec.cli import main
from spyrec.compare.bundle_reading import read_path
from spyrec.diagnostics import SpyrecError
from spyrec.report.build import Source, report_of
from spyrec.report.provenance import PROVENANCE_FORMAT, handle_id, read_sidecar, sidecar_text
from tests.report.bundles import MODEL, NEWER, PLAIN, foreign, report_on

Capture = pytest.CaptureFixture[str]


def test_ids_are_made_as_torch_spyre_makes_them() -> None:
    handles = [item.superdsc.debug_handle for item in read_path(NEWER / "debug_handle").operations]
    known = [handle for handle in handles if handle is not None]
    assert len(known) == 2
    for handle in known:
        for item in (handle, *handle.fused_from):
            assert handle_id(item) == item.id


def test_a_sidecar_has_the_objects_of_the_files() -> None:
    folder = NEWER / "debug_handle"
    found = json.loads(sidecar_text(report_of(Source(folder))))
    assert found["format"] == PROVENANCE_FORMAT
    for item in found["operations"]:
        inner = next(iter(json.loads((folder / item["file"]).read_text()).values()))
        assert item["debug_handle_"] == inner["debug_handle_"]


def test_a_bundle_without_handles_opens_with_a_sidecar(tmp_path: Path, capsys: Capture) -> None:
    with_handles, bare = foreign("debug_handle", tmp_path / "with"), foreign("debug_handle", tmp_path / "bare")
    for file in bare.glob("sdsc_*.json"):
        data = json.loads(file.read_text())
        next(iter(data.values()))["debug_handle_"] = None
        file.write_text(json.dumps(data))
    side = tmp_path / "handles.json"
    assert main(["report", str(with_handles), "--format", "provenance", "-o", str(side)]) == 0
    assert main(["report", str(bare), "--json"]) == 0
    assert "handles" not in json.loads(capsys.readouterr().out)
    assert main(["report", str(bare), "--provenance", str(side), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert main(["report", str(with_handles), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert shown["handles"] == known["handles"]
    assert [op.get("handle") for op in shown["ops"]] == [op.get("handle") for op in known["ops"]]
    assert [text["name"] for text in shown["texts"]] == [text["name"] for text in known["texts"]]


def test_a_bundle_of_ours_gives_handles_of_its_model(tmp_path: Path) -> None:
    report = report_on(MODEL, tmp_path / "bundle")
    sidecar = read_sidecar(sidecar_text(report).encode(), "side.json")
    assert [item.file for item in sidecar.operations] == list(dict.fromkeys(op.file for op in report.ops))
    by_file = sidecar.by_file()
    for op in report.ops:
        handle = by_file[op.file]
        assert handle_id(handle) == handle.id
        assert handle.ir_chain[-1] == op.file
        if op.node is not None:
            assert handle.source is not None
            assert (handle.source.file, handle.aten_op) == ("mlp.py", op.origin)
            assert op.node in handle.ir_chain
    assert {item.pass_name for handle in by_file.values() for item in handle.transform_history} >= {"decompose"}


def test_a_bundle_of_ours_names_the_line_of_its_graph(tmp_path: Path) -> None:
    report = report_on(PLAIN, tmp_path / "bundle")
    lines = (tmp_path / "bundle" / "graph.json").read_text().splitlines()
    for op in report.ops:
        handle: DebugHandle = report.handles[op.handle or 0]
        assert handle.source is not None
        assert handle.source.file == "graph.json"
        text = "\n".join(lines[handle.source.start_line - 1 :])
        item = json.JSONDecoder().raw_decode(text[text.index("{") :])[0]
        assert item["name"] == (op.node or item["name"])


@pytest.mark.parametrize(
    "text",
    [
        '{"format": "spyrec.provenance/1", "bundle": "b", "operations": [{"file": "f", "op": "add"}]}',
        '{"format": "spyrec.provenance/1", "bundle": "b", "operations": {}}',
        '{"format": "spyrec.provenance/2", "bundle": "b", "operations": []}',
        '{"format": "spyrec.provenance/1", "bundle": "b", "operations": [{"file": "f", "op": "", "debug_handle_": {"id": "-1"}}]}',  # noqa: E501
    ],
)
def test_a_strangers_sidecar_is_refused(text: str) -> None:
    with pytest.raises(SpyrecError) as caught:
        read_sidecar(text.encode(), "side.json")
    assert {item.code for item in caught.value.diagnostics} == {"SPY0850"}
