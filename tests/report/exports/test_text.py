"""The text of a report: the right operations in the right order, in as many columns as there are, plain in a pipe."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.report.exports.text import MOST_OPERATIONS, cells, cut, render, sparkline, text_lines
from spyrec.report.model import Choice, LxRegion, Report
from tests.support.examples import examples, seeds
from tests.support.reports import HOSTILE, random_report

BLOCKS = set("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉")


def section(lines: list[str], head: str) -> list[str]:
    first = next(place for place, line in enumerate(lines) if line.startswith(head))
    return lines[first : [*lines, ""].index("", first)]


@pytest.mark.parametrize("columns", [60, 61, 80, 200])
@pytest.mark.parametrize("seed", seeds(25))
def test_lines_fit_whatever_things_are_called(seed: int, columns: int) -> None:
    for draws in (False, True):
        for line in text_lines(random_report(seed, HOSTILE), columns, draws=draws):
            assert sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in line) <= columns + len(
                [char for char in line if unicodedata.combining(char)]
            )
            assert line.isprintable()


@pytest.mark.parametrize("seed", seeds(25))
def test_a_pipe_gets_whole_names_and_nothing_drawn(seed: int) -> None:
    report = random_report(seed)
    text = render(report)
    assert not BLOCKS & set(text)
    assert "…" not in text
    long = replace(report, ops=(replace(report.ops[0], name="n" * 500, us=99.0), *report.ops[1:]))
    assert "n" * 500 in render(long)
    assert "n" * 500 not in "\n".join(text_lines(long, 80))


@pytest.mark.parametrize("seed", seeds(25))
def test_the_ten_that_take_longest_come_first_with_their_share_and_bound(seed: int) -> None:
    report = random_report(seed)
    timed = sorted((op.us for op in report.ops if op.us is not None), reverse=True)
    lines = text_lines(report)
    if not timed:
        assert not any(line.startswith("the operations") for line in lines)
        return
    rows = section(lines, "the operations that take longest")[2::2]
    assert len(rows) == min(len(timed), MOST_OPERATIONS)
    for row, us in zip(rows, timed, strict=False):
        found = re.match(r" +([\d,.]+) +(\d+) %  +(\S+(?: 0)?)  (\S+) add$", row)
        assert found, row
        assert float(found[1].replace(",", "")) == pytest.approx(us, abs=5e-4)
        assert int(found[2]) == pytest.approx(100 * us / sum(timed) if sum(timed) else 0, abs=0.51)
        op = report.ops[int(found[4].removeprefix("op"))]
        moved = op.read + op.written
        has_bounds = any(item.bound for item in report.ops)
        wanted = f"{moved / op.bound:,.2f}" if op.bound else "over 0" if moved and has_bounds else "-"
        assert found[3] == wanted


@pytest.mark.parametrize("seed", seeds(25))
def test_bytes_beyond_the_bound_are_those_of_the_operations_farthest_from_it(seed: int) -> None:
    report = random_report(seed)
    beyond = sorted((op.read + op.written - op.bound for op in report.ops), reverse=True)
    wanted = [size for size in beyond if size > 0][:5] if any(op.bound for op in report.ops) else []
    lines = text_lines(report)
    if not wanted:
        assert not any(line.startswith("device memory beyond") for line in lines)
        return
    rows = section(lines, "device memory beyond")[2:]
    assert [int(row.split()[0].replace(",", "")) for row in rows] == wanted


def lx_of(report: Report) -> list[str]:
    return [line for line in text_lines(report) if "fullest" in line or "  at " in line]


def test_lx_is_fullest_where_regions_cover_most_and_what_lies_in_one_place_counts_once() -> None:
    report = next(found for found in map(random_report, range(9)) if found.programs[0].past > 1)
    pad = report.memory.lx[0]
    program = report.programs[0]
    first = program.first
    regions = (
        LxRegion(0, 0, 1024, first, first, first),
        LxRegion(1, 0, 1024, first, first, first),
        LxRegion(2, 0, 1152, program.past - 1, program.past - 1, first),
    )
    found = lx_of(replace(report, memory=replace(report.memory, lx=(replace(pad, regions=regions),))))
    assert found[0].startswith(f"  fullest at operation {program.past - 1}, ")
    assert found[1].split()[:3] == ["1,152", "at", "0"]


def test_the_fullest_scratchpads_are_shown_in_the_order_of_programs_and_the_others_counted() -> None:
    report = random_report(2)
    pad = replace(report.memory.lx[0], usable=1000)
    peaks = (10, 500, 20, 900, 30, 40, 800, 50)
    pads = tuple(replace(pad, peak=peak) for peak in peaks)
    lines = text_lines(replace(report, memory=replace(report.memory, lx=pads)))
    shown = [line.rpartition("(")[2] for line in lines if line.startswith("LX of")]
    assert shown == ["50.0 %)", "90.0 %)", "4.0 %)", "80.0 %)", "5.0 %)"]
    assert "and 3 more scratchpads that hold less" in lines


def test_spilled_tensors_are_named_with_the_reason_and_the_dearest_first() -> None:
    spilled = [Choice("spilled", f"s{cost}", "no room", saved_us=-cost) for cost in (1.0, 9.0, 4.0)]
    lines = text_lines(replace(random_report(2), decisions=(*spilled, Choice("resident", "r", "fits"))))
    assert [line.strip() for line in section(lines, "LX of")][-4:] == [
        "3 tensors in device memory that could have lain in LX", "s9.0: no room", "s4.0: no room", "s1.0: no room",
    ]  # fmt: skip


def test_a_run_says_what_it_found_and_another_bundle_what_changed() -> None:
    seen = ""
    for seed in range(60):
        report = random_report(seed)
        text = render(report)
        assert ("run:" in text) == (report.run is not None)
        assert ("against yesterday" in text) == (report.against is not None)
        seen += text
    for part in (
        "FAILED in 1 of 64",
        "bisect: none guilty",
        "is guilty (result)",
        "race: two cores",
        "and 2 more findings",
        "-50.0 %",
    ):
        assert part in seen


@given(st.lists(st.floats(0, 1e9), max_size=200), st.integers(1, 80))
@examples(100)
def test_a_sparkline_has_a_block_for_each_value_or_the_most_of_some(values: list[float], width: int) -> None:
    drawn = sparkline(values, width)
    assert len(drawn) == min(len(values), width)
    assert set(drawn) <= set("▁▂▃▄▅▆▇█")
    if any(values):
        assert "█" in drawn
    if values and len(values) <= width:
        order = sorted(range(len(values)), key=lambda place: values[place])
        heights = ["▁▂▃▄▅▆▇█".index(drawn[place]) for place in order]
        assert heights == sorted(heights)


@given(st.text().filter(str.isprintable), st.integers(1, 40))
@examples(100)
def test_what_is_cut_fits_and_says_so(text: str, room: int) -> None:
    found = cut(text, room)
    assert cells(found) <= room
    assert found == text or (found.endswith("…") and text.startswith(found[:-1]))
