"""What a run found, from the run through its record to the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.cli import main
from spyrec.compare.error_cells import error_cells
from spyrec.compare.locate import locate_output
from spyrec.diagnostics import SpyrecError
from spyrec.report.build import Source, report_of
from spyrec.report.exports.perfetto import render
from spyrec.report.model import Report
from spyrec.report.ran import with_run
from spyrec.report.record import read_record
from spyrec.report.report_file import read_report, report_text
from tests.report.bundles import LOOPED, MODEL, PLAIN, saved
from tests.support.examples import examples
from tests.support.graphs import graph_data, node, tensor

Capture = pytest.CaptureFixture[str]


def _recorded(folder: Path, *options: str) -> Path:
    """Run a bundle with a record beside it; return the record."""
    path = folder.parent / "run.json"
    main(["run", str(folder), "--random", "3", "--record", str(path), "--json", *options])
    return path


def _shown(folder: Path, record: Path) -> Report:
    return with_run(report_of(Source(folder)), read_record(record.read_bytes(), str(record)))


@given(st.data())
@examples(60)
def test_cells_are_max_pooling(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 150), max_size=3).filter(lambda sizes: np.prod(sizes) < 1 << 20))
    errors = np.random.default_rng(data.draw(st.integers(0, 1 << 16))).random(shape)
    found = error_cells(errors)
    flat = errors.reshape(-1, shape[-1] if shape else 1)
    steps = [-(-size // 64) for size in flat.shape]
    counts = [-(-size // step) for size, step in zip(flat.shape, steps, strict=True)]
    padded = np.full([count * step for count, step in zip(counts, steps, strict=True)], -1.0)
    padded[: flat.shape[0], : flat.shape[1]] = flat
    pooled = padded.reshape(counts[0], steps[0], counts[1], steps[1]).max(axis=(1, 3))
    assert (found.grid.rows, found.grid.columns) == tuple(counts)
    assert max(counts) <= 64
    assert found.ratio == tuple(pooled.reshape(-1).tolist())
    assert found.ratio == tuple(flat[place] for place in found.worst)
    for number, (row, column) in enumerate(found.worst):
        assert (row // steps[0], column // steps[1]) == divmod(number, counts[1])


@pytest.mark.parametrize("data", [PLAIN, LOOPED, MODEL], ids=["plain", "looped", "model"])
def test_a_map_has_the_cores_that_made_its_elements(data: dict[str, Any], tmp_path: Path, capsys: Capture) -> None:
    folder = saved(data, tmp_path / "bundle")
    report = _shown(folder, _recorded(folder, "--check"))
    capsys.readouterr()
    assert report.run is not None
    assert [report.outputs[check.output].name for check in report.run.checks] == data["outputs"]
    bundle = Bundle.load(folder)
    for check in report.run.checks:
        output, found = report.outputs[check.output], check.map
        assert found is not None
        assert output.grid is not None
        assert max(found.ratio) == pytest.approx(check.bound_ratio)
        columns = output.shape[-1]
        elements = [
            tuple(map(int, np.unravel_index(row * columns + column, output.shape))) for row, column in found.worst
        ]
        assert check.worst.index in elements
        for element, core in [*zip(elements, found.cores, strict=True)][::97]:
            place = locate_output(bundle, output.name, element)
            assert place is not None
            assert core == place.core
        firsts = [
            (row, column)
            for row in range(0, int(np.prod(output.shape[:-1])), output.grid.row_step)
            for column in range(0, columns, output.grid.column_step)
        ]
        for (row, column), core in [*zip(firsts, output.grid.cores, strict=True)][::97]:
            element = tuple(map(int, np.unravel_index(row * columns + column, output.shape)))
            place = locate_output(bundle, output.name, element)
            assert place is not None
            assert core == place.core


def test_an_output_without_dims_is_one_cell(tmp_path: Path, capsys: Capture) -> None:
    folder = saved(graph_data([tensor("x", 64, 128)], [node("s", "sum", "x")], ["s"]), tmp_path / "bundle")
    report = _shown(folder, _recorded(folder, "--check"))
    capsys.readouterr()
    grid = report.outputs[0].grid
    assert grid is not None
    assert (report.outputs[0].shape, grid.rows, grid.columns) == ((), 1, 1)
    place = locate_output(Bundle.load(folder), "s", ())
    assert place is not None
    assert place.core is not None
    assert grid.cores == (place.core,)
    assert report.run is not None
    found = report.run.checks[0].map
    assert found is not None
    assert (found.worst, found.cores) == (((0, 0),), (place.core,))


@pytest.mark.parametrize("data", [PLAIN, LOOPED], ids=["plain", "looped"])
def test_times_are_the_runs(data: dict[str, Any], tmp_path: Path, capsys: Capture) -> None:
    folder = saved(data, tmp_path / "bundle")
    record = _recorded(folder)
    run = json.loads(capsys.readouterr().out)
    assert json.loads(record.read_text())["run"] == run
    report, plain = _shown(folder, record), report_of(Source(folder))
    assert report.time.source == "run"
    assert [op.us for op in report.ops] == [item["simulated_us"] for item in run["stats"]["ops"]]
    assert report.time.us == run["stats"]["total"]["simulated_us"]
    # nothing in these depends on data, so that a prediction and a run agree
    assert report.time.schedule == plain.time.schedule
    assert [report.time.patterns[op.pattern or 0] for op in report.ops] == [
        plain.time.patterns[op.pattern or 0] for op in plain.ops
    ]
    arguments = [(report.tensors[item.tensor].name, item.to_device) for item in report.time.copies]
    assert sorted(arguments) == sorted(
        [*((name, True) for name in _inputs(data)), *((n, False) for n in data["outputs"])]
    )


def _inputs(data: dict[str, Any]) -> list[str]:
    return [item["name"] for item in data["inputs"]]


def test_a_guilty_operation_has_its_number(tmp_path: Path, capsys: Capture) -> None:
    folder = saved(PLAIN, tmp_path / "bundle")
    file = folder / "sdsc_1.json"
    file.write_bytes(file.read_bytes().replace(b'"exp"', b'"neg"').replace(b"1_exp", b"1_neg"))
    report = _shown(folder, _recorded(folder, "--bisect", "--no-verify"))
    capsys.readouterr()
    assert report.run is not None
    assert report.run.bisect is not None
    found = report.run.bisect
    assert (found.ok, found.guilt) == (False, "result")
    assert found.op is not None
    assert report.ops[found.op].file == "sdsc_1.json"
    assert not report.run.ok


def test_findings_have_their_place(tmp_path: Path, capsys: Capture) -> None:
    folder = saved(PLAIN, tmp_path / "bundle")
    text = folder / "bundle.mlir"
    lines = text.read_text().splitlines(keepends=True)
    text.write_text("".join(line for line in lines if "sdsc_0.json" not in line))
    report = _shown(folder, _recorded(folder, "--sanitize", "init,lx", "--no-verify"))
    capsys.readouterr()
    assert report.run is not None
    assert report.run.findings
    assert {item.sanitizer for item in report.run.findings} <= {"init", "lx"}
    files = {report.ops[item.op].file for item in report.run.findings if item.op is not None}
    assert files
    assert files <= {"sdsc_1.json", "sdsc_2.json"}


def test_a_record_of_another_bundle_is_shown_as_such(tmp_path: Path, capsys: Capture) -> None:
    one, other = saved(PLAIN, tmp_path / "one"), saved(LOOPED, tmp_path / "other")
    record = _recorded(one)
    capsys.readouterr()
    report = _shown(other, record)
    assert report.run is not None
    assert not report.run.is_same_bundle
    assert report.time.source == "predicted"
    assert main(["report", str(other), "--run", str(record), "--json"]) == 0
    assert "SPY0852" in capsys.readouterr().err


def test_a_record_alone_is_a_report(tmp_path: Path, capsys: Capture) -> None:
    folder = saved(LOOPED, tmp_path / "bundle")
    record = _recorded(folder, "--check")
    capsys.readouterr()
    assert main(["report", str(record), "--json"]) == 0
    alone = read_report(capsys.readouterr().out.encode(), "report.json")
    whole = _shown(folder, record)
    assert alone.bundle.kind == "record"
    assert [(op.op, op.read, op.written) for op in alone.ops] == [(op.op, op.read, op.written) for op in whole.ops]
    assert [op.us for op in alone.ops] == pytest.approx([op.us for op in whole.ops], abs=1e-6)
    assert alone.totals.us == pytest.approx(whole.totals.us)
    assert (alone.totals.read, alone.totals.bound) == (whole.totals.read, whole.totals.bound)
    assert alone.run == whole.run
    assert [(it.count, it.first, it.past, it.parent) for it in alone.loops] == [
        (it.count, it.first, it.past, it.parent) for it in whole.loops
    ]
    assert [op.loops for op in alone.ops] == [op.loops for op in whole.ops]
    assert alone.time.schedule == whole.time.schedule
    assert [span["name"] for span in json.loads(render(alone))["traceEvents"] if span["ph"] == "X"].count(
        "round 0 of 4"
    ) == alone.loops[0].count
    assert [
        (alone.tensors[it.tensor].name, it.first, it.past, it.begin, it.end)
        for item in alone.memory.lx
        for it in item.regions
    ] == [
        (whole.tensors[it.tensor].name, it.first, it.past, it.begin, it.end)
        for item in whole.memory.lx
        for it in item.regions
    ]


@pytest.mark.parametrize(
    ("pointer", "value", "code"),
    [
        (("times", "launches", 0, "operations", 0), 99, "SPY0851"),
        (("times", "launches", 0, "schedule", 0, "op"), 99, "SPY0851"),
        (("maps", "c", "rows"), 3, "SPY0851"),
        (("maps", "c", "rows"), 65, "SPY0850"),
        (("maps", "c", "ratio", 0), "much", "SPY0850"),
        (("run", "ok"), "yes", "SPY0850"),
        (("run", "stats", "ops", 0, "flops"), -1, "SPY0850"),
        (("name",), "x" * 5000, "SPY0850"),
        (("format",), "spyrec.record/2", "SPY0850"),
        (("more",), 1, "SPY0850"),
    ],
)
def test_a_strangers_record_is_refused(
    pointer: tuple[str | int, ...], value: object, code: str, tmp_path: Path, capsys: Capture
) -> None:
    record = _recorded(saved(PLAIN, tmp_path / "bundle"), "--check")
    capsys.readouterr()
    data: Any = json.loads(record.read_text())
    inner = data
    for step in pointer[:-1]:
        inner = inner[step]
    inner[pointer[-1]] = value
    with pytest.raises(SpyrecError) as caught:
        read_record(json.dumps(data).encode(), "run.json")
    assert {item.code for item in caught.value.diagnostics} == {code}


def test_a_report_is_the_same_bytes_and_reads_back(tmp_path: Path, capsys: Capture) -> None:
    folder = saved(MODEL, tmp_path / "bundle")
    record = _recorded(folder, "--check")
    capsys.readouterr()
    report = _shown(folder, record)
    text = report_text(report)
    assert report_text(_shown(folder, record)) == text
    assert report_text(read_report(text.encode(), "report.json")) == text
    assert str(tmp_path) not in text


def test_a_run_without_a_record_is_what_it_was(tmp_path: Path) -> None:
    bundle = spyrec.compile(PLAIN)
    ones = {name: np.ones((64, 128), np.float16) for name in ("x", "y")}
    result = spyrec.run(bundle, ones)
    assert [len(launch.operations) for launch in result.launches] == [4]
    assert {copy.name for copy in result.copies if copy.is_to_device} == {"x", "y"}
