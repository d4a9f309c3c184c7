"""What a sweep tells: fronts against brute force, what is worse or broken since another one, pages and pictures."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from spyrec.sweep.batches import AIM_SECONDS, MOST_TASKS, BatchSizes
from spyrec.sweep.cases import folder_name
from spyrec.sweep.comparison import Verdict, changes, counts_line, is_failing
from spyrec.sweep.fronts import figures_of, front
from spyrec.sweep.page import page_of
from spyrec.sweep.plots import plots
from spyrec.sweep.results import ResultSet
from spyrec.sweep.rows import Row
from spyrec.sweep.summary import MOST_LISTED, Summary, summary_json, text_lines


def row(number: int, time_us: float | None = 1.0, traffic: int = 100, scratchpad: int = 10, **changed: object) -> Row:
    made = Row(
        key=f"{number:032x}", case=f"{number + 1000:032x}", graph="g", kind="file", digest="d",
        options={"cores": str(number)}, checks="compile", status="ok", simulated_us=time_us, hbm_bytes=traffic,
        lx_peak_bytes=scratchpad, spyrec="1", program="p", versions="v",
    )  # fmt: skip
    return replace(made, **changed)  # pyright: ignore[reportArgumentType] -- columns of a row


def results(rows: Sequence[Row], count: int | None = None) -> ResultSet:
    return ResultSet(Path("r"), "mine", tuple(rows), len(rows) if count is None else count)


@pytest.mark.parametrize("seed", range(20))
def test_a_front_is_what_brute_force_finds(seed: int) -> None:
    draw = random.Random(seed)
    rows = [row(number, draw.randint(1, 6), draw.randint(1, 6), draw.randint(1, 6)) for number in range(40)]

    def beats(one: Row, other: Row) -> bool:
        mine, theirs = figures_of(one), figures_of(other)
        assert mine is not None
        assert theirs is not None
        return mine != theirs and all(a <= b for a, b in zip(mine, theirs))

    wanted = {figures_of(item) for item in rows if not any(beats(other, item) for other in rows)}
    found = front(rows)
    assert [figures_of(item) for item in found] == sorted(wanted)  # pyright: ignore[reportArgumentType]


def test_cases_that_are_wrong_or_lack_a_figure_are_of_no_front() -> None:
    rows = [row(1, status="wrong"), row(2, None), row(3, 9.0, 900, 90)]
    assert front(rows) == [rows[2]]


def test_what_has_become_of_each_case() -> None:
    before = [row(1), row(2), row(3), row(4, status="wrong"), row(5), row(6), row(7, status="refused"), row(9)]
    after = [
        row(1), row(2, 1.1), row(3, status="crashed", code="SPY9901"), row(4), row(5, 0.9, 90), row(6, 0.5, 101),
        row(7, status="wrong"), row(8),
    ]  # fmt: skip
    found = {item.name: (item.verdict, item.said) for item in changes(before, after)}
    assert found == {
        "g cores=2": (Verdict.WORSE, "simulated_us +10.0%"),
        "g cores=3": (Verdict.BROKEN, "ok -> crashed SPY9901"),
        "g cores=4": (Verdict.MENDED, "wrong -> ok"),
        "g cores=5": (Verdict.BETTER, "simulated_us -10.0%, hbm_bytes -10.0%"),
        "g cores=6": (Verdict.WORSE, "simulated_us -50.0%, hbm_bytes +1.0%"),
        "g cores=8": (Verdict.NEW, "ok"),
        "g cores=9": (Verdict.GONE, "gone"),
    }
    assert counts_line(changes(before, after), "yesterday") == (
        "since yesterday: 2 worse, 1 broken, 1 mended, 1 better, 1 new, 1 gone"
    )


def test_a_gate_opens_within_the_tolerance_and_for_what_is_better_or_new() -> None:
    assert is_failing(changes([row(1)], [row(1, 1.05)]))
    assert not is_failing(changes([row(1)], [row(1, 1.05)], tolerance=0.06))
    assert is_failing(changes([row(1)], [row(1, scratchpad=11)]))
    assert not is_failing(changes([row(1), row(3)], [row(1, 0.5), row(2)]))
    assert is_failing(changes([row(1, scratchpad=0)], [row(1, scratchpad=1)], tolerance=10.0))


def test_what_was_measured_is_not_compared() -> None:
    same = row(1, seconds=1.0, worker="a", finished_at="b", compile_seconds=2.0, run_seconds=3.0)
    assert same.compared() == row(1, seconds=9.0, worker="c").compared()
    assert same.compared() != row(1, 2.0).compared()


def test_the_text_counts_all_and_lists_some() -> None:
    rows = [row(number, status="refused", code=f"SPY{number:04}") for number in range(50)]
    lines = list(text_lines(Summary(results([*rows, row(60), row(61, 2.0, 50)], 60))))
    assert lines[0] == "mine: 60 cases: 2 ok, 50 refused, 8 not run"
    assert f"  and {50 - MOST_LISTED} more lines (--format json has all)" in lines
    assert lines[-3:] == ["  g: 2 of 52", "    1.000 us  100 B  10 B  cores=60", "    2.000 us  50 B  10 B  cores=61"]


def test_the_json_has_fronts_changes_and_rows() -> None:
    rows = [row(1), row(2, 0.5)]
    compared = Summary(results(rows), tuple(changes([row(1, 0.9)], rows)), "old")
    found = summary_json(compared)
    assert found["fronts"] == {"g": [rows[1].key]}
    assert found["changes"] == [
        {"verdict": "worse", "case": "g cores=1", "said": "simulated_us +11.1%"},
        {"verdict": "new", "case": "g cores=2", "said": "ok"},
    ]


def test_a_picture_has_every_case_of_a_graph_and_joins_its_front() -> None:
    rows = [row(1, 1.0, 100), row(2, 2.0, 50), row(3, 3.0, 200), row(4, graph="alone")]
    drawn = ET.fromstring(plots(rows).partition("\n")[2])
    space = "{http://www.w3.org/2000/svg}"
    kinds = [item.get("class") for item in drawn.iter(f"{space}circle")]
    assert kinds == ["best", "best", "case"]
    (line,) = drawn.iter(f"{space}polyline")
    places = [(item.get("cx"), item.get("cy")) for item in drawn.iter(f"{space}circle")][:2]
    assert line.get("points") == " ".join(f"{x},{y}" for x, y in places)
    assert plots([row(1)]) == ""


def test_names_cannot_break_the_page() -> None:
    bad = '</script><img src="x" onerror="alert(1)">\u202e'
    rows = [row(1, graph=bad, status="wrong", message=bad), row(2, 2.0, graph=bad), row(3, 1.0, 200, graph=bad)]
    found = Summary(results(rows), tuple(changes([row(1, graph=bad)], rows)), bad)
    text = page_of(found, {folder_name(bad, rows[0].options): 'a b/"x".html'})
    assert "<img" not in text
    assert "\u202e" not in text
    assert 'href="a%20b/%22x%22.html"' in text
    assert "<script" not in text.lower().replace("&lt;/script", "")


def test_batches_grow_to_their_aim_and_no_further() -> None:
    sizes = BatchSizes()
    assert sizes.next_size(1000, 2) == 1
    found: list[int] = []
    for _ in range(8):
        size = sizes.next_size(1000, 2)
        found.append(size)
        sizes.learn(size, size * AIM_SECONDS / 20)
    assert found == [1, 4, 16, 20, 20, 20, 20, 20]
    quick = BatchSizes()
    for _ in range(8):
        quick.learn(quick.next_size(10_000, 2), 0.0)
    assert quick.next_size(10_000, 2) == MOST_TASKS
    assert quick.next_size(10, 4) == 3, "what is left is shared by all threads"
    many = BatchSizes()
    for _ in range(6):
        many.learn(many.next_size(100_000, 200), 1.0 * many.next_size(100_000, 200))
    assert many.next_size(100_000, 200) == 4, "two hundred threads want fifty batches a second"
    slow = BatchSizes()
    slow.learn(1, 60.0)
    assert slow.next_size(1000, 2) == 1
