"""Rows are kept whatever happens to who writes them: a torn line, a full disk, a second writer, somebody's files."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from spyrec.diagnostics import SpyrecError
from spyrec.sweep.results import Results, read_results
from spyrec.sweep.rows import ROW, Row


def row(number: int, **changed: object) -> Row:
    made = Row(
        key=f"{number:032x}", case=f"{number + 1000:032x}", graph=f"g{number}", kind="file", digest="d",
        options={"cores": "8"}, checks="compile", status="ok", simulated_us=1.5, hbm_bytes=100, lx_peak_bytes=0,
        spyrec="1", program="p", versions="v", seconds=0.25, worker="tcp://here:1", finished_at="now",
    )  # fmt: skip
    return replace(made, **changed)  # pyright: ignore[reportArgumentType] -- columns of a row


def written(folder: Path, count: int) -> list[Row]:
    rows = [row(number) for number in range(count)]
    with Results(folder) as results:
        results.begin("mine", [item.key for item in rows])
        for item in reversed(rows):
            results.append(item)
    return rows


def append_all(results: Results, rows: list[Row]) -> None:
    for item in rows:
        results.append(item)


def codes(error: pytest.ExceptionInfo[SpyrecError]) -> list[str]:
    return [item.code for item in error.value.diagnostics]


def test_rows_come_back_in_the_order_of_the_cases(tmp_path: Path) -> None:
    rows = written(tmp_path / "r", 5)
    found = read_results(tmp_path / "r")
    assert (found.name, list(found.rows), found.case_count) == ("mine", rows, 5)


@pytest.mark.parametrize("kept", [1, 17, 200])
def test_a_torn_last_line_is_no_row_and_the_next_sweep_writes_over_it(tmp_path: Path, kept: int) -> None:
    rows = written(tmp_path, 3)
    path = tmp_path / "rows.jsonl"
    content = path.read_bytes()
    start = content.rstrip(b"\n").rindex(b"\n") + 1
    path.write_bytes(content[: start + kept])
    assert list(read_results(tmp_path).rows) == rows[1:]
    with Results(tmp_path) as results:
        assert set(results.rows) == {item.key for item in rows[1:]}
        results.append(rows[0])
    assert list(read_results(tmp_path).rows) == rows
    assert path.read_bytes().count(b"\n") == 3


def test_a_full_disk_is_one_diagnostic_and_every_row_before_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = os.write, [2000]

    def limited(handle: int, data: memoryview) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = write(handle, data[: left[0]])
        left[0] -= count
        return count

    rows = [row(number) for number in range(9)]
    with Results(tmp_path) as results:
        results.begin("mine", [item.key for item in rows])
        monkeypatch.setattr(os, "write", limited)
        with pytest.raises(SpyrecError, match="no space left") as caught:
            append_all(results, rows)
        monkeypatch.undo()
    assert codes(caught) == ["SPY0844"]
    whole = 2000 // (len(orjson.dumps(ROW.write(rows[0]))) + 1)
    assert 0 < whole < 9
    assert list(read_results(tmp_path).rows) == rows[:whole]
    assert (tmp_path / "rows.jsonl").read_bytes().endswith(b"}\n"), "what was torn is taken away"
    with Results(tmp_path) as results:
        for item in rows[whole:]:
            results.append(item)
    assert list(read_results(tmp_path).rows) == rows


def test_a_disk_of_its_own_that_is_full_is_refused_and_leaves_what_was_there(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no device that is always full")
    rows = written(tmp_path, 2)
    with Results(tmp_path) as results:
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, results._file)  # pyright: ignore[reportPrivateUsage]
        os.close(full)
        with pytest.raises(SpyrecError) as caught:
            results.append(row(7))
    assert codes(caught) == ["SPY0844"]
    assert list(read_results(tmp_path).rows) == rows


def test_two_sweeps_do_not_write_to_one_place(tmp_path: Path) -> None:
    with Results(tmp_path) as _, pytest.raises(SpyrecError, match="another sweep") as caught:
        Results(tmp_path)
    assert codes(caught) == ["SPY0844"]
    with Results(tmp_path):
        pass


def test_a_directory_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(SpyrecError) as caught:
        Results(tmp_path)
    assert codes(caught) == ["SPY0844"]
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    (tmp_path / "file").touch()
    with pytest.raises(SpyrecError) as caught:
        Results(tmp_path / "file")
    assert codes(caught) == ["SPY0844"]


def test_what_was_not_begun_leaves_nothing_of_its_own(tmp_path: Path) -> None:
    with Results(tmp_path / "new"):
        assert (tmp_path / "new" / "rows.jsonl").exists()
    assert list(tmp_path.iterdir()) == []
    for content in (b"", b"{\n", b"torn"):  # somebody's, with no list of cases beside them
        (tmp_path / "rows.jsonl").write_bytes(content)
        with suppress(SpyrecError), Results(tmp_path):
            pass
        assert (tmp_path / "rows.jsonl").exists()
        assert content != b"{\n" or (tmp_path / "rows.jsonl").read_bytes() == content


def test_what_only_looks_like_results_is_one_diagnostic(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.jsonl")
    with pytest.raises(SpyrecError, match="no regular file") as caught:
        Results(tmp_path)
    assert codes(caught) == ["SPY0844"]
    (tmp_path / "rows.jsonl").unlink()
    (tmp_path / "sweep.json").write_text('{"mine": true}')
    with pytest.raises(SpyrecError, match="other things") as caught:
        Results(tmp_path)
    assert codes(caught) == ["SPY0844"]
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.json"]


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        (b"{", "no JSON"),
        (b"[]", "the row is none"),
        (b"{}", "is missing"),
        (orjson.dumps({**ROW.write(row(1)), "status": "fine"}), "/status"),
        (orjson.dumps({**ROW.write(row(1)), "more": 1}), '"more" is unknown'),
        (orjson.dumps({**ROW.write(row(1)), "simulated_us": -1.0}), "/simulated_us"),
    ],
)
def test_a_damaged_row_is_refused_with_its_line(tmp_path: Path, line: bytes, fact: str) -> None:
    written(tmp_path, 1)
    with (tmp_path / "rows.jsonl").open("ab") as file:
        file.write(line + b"\n")
    for read in (read_results, Results):
        with pytest.raises(SpyrecError) as caught:
            read(tmp_path)
        (found,) = caught.value.diagnostics
        assert (found.code, found.location is not None and found.location.line) == ("SPY0845", 2)
        assert fact in found.message


@pytest.mark.parametrize("content", [None, b"{}", b'{"format": "spyrec.results/1", "name": "n", "cases": ["x"]}'])
def test_what_is_no_list_of_cases_is_refused(tmp_path: Path, content: bytes | None) -> None:
    written(tmp_path, 1)
    path = tmp_path / "sweep.json"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SpyrecError) as caught:
        read_results(tmp_path)
    assert set(codes(caught)) == {"SPY0845"}
