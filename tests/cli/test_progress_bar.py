"""The line of progress: on a terminal alone, after half a second, never wider than it; and the counting behind it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.cli._progress_bar import line_of
from spyrec.progress import BYTES, Count, Counts, counted, listening

SLOW = """
import sys, time
from spyrec.cli._console import Console, DiagnosticsFormat
from spyrec.progress import counted
console = Console()
console.is_quiet = "-q" in sys.argv
console.is_verbose = "-v" in sys.argv
console.diagnostics_format = DiagnosticsFormat("json" if "--json" in sys.argv else "text")
with console.progress("executing"):
    for number in counted(range(40), "SuperDSCs", 40):
        time.sleep(float(sys.argv[1]) / 40)
        if number == 30:
            console.note("a message between")
print("done")
"""
ERASE = "\r\x1b[K"


def on_a_terminal(columns: int, *arguments: str, term: str = "xterm") -> str:
    """Run the slow work with a terminal of so many columns as stdout and stderr; return what arrived there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in {"COLUMNS", "LINES"}}
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments], stdout=theirs, stderr=theirs, env={**environment, "TERM": term}
    )
    os.close(theirs)
    found = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        found += piece
    os.close(ours)
    assert process.wait() == 0
    return found.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [60, 100])
def test_long_work_shows_a_bar_with_numbers_on_a_terminal(columns: int) -> None:
    found = on_a_terminal(columns, "2")
    drawn = [line for line in found.split(ERASE) if line.startswith("executing")]
    assert drawn
    assert all(len(line) < columns for line in drawn)
    assert any(" of 40 SuperDSCs  " in line and line.endswith(" s left") and "[#" in line for line in drawn)
    assert f"{ERASE}a message between\n" in found  # it stands on a line of its own
    assert found.endswith(f"{ERASE}done\n")


@pytest.mark.parametrize("arguments", [("0.1",), ("1", "-q"), ("1", "--json")])
def test_short_work_and_quiet_work_show_nothing(arguments: tuple[str, ...]) -> None:
    found = on_a_terminal(80, *arguments)
    assert ERASE not in found
    assert "executing" not in found


def test_a_terminal_that_takes_nothing_back_gets_no_line() -> None:
    assert on_a_terminal(80, "1", term="dumb") == "a message between\ndone\n"


def test_verbose_work_is_a_line_with_its_seconds() -> None:
    found = on_a_terminal(80, "0.2", "-v")
    assert ERASE not in found
    assert "\nexecuting: 0." in found


def test_a_pipe_gets_no_line() -> None:
    process = subprocess.run([sys.executable, "-c", SLOW, "1"], capture_output=True, text=True, check=True)
    assert process.stderr == "a message between\n"


@given(
    st.text("abc ./_", max_size=90), st.sampled_from(["SuperDSCs", BYTES]), st.integers(1, 1 << 40),
    st.floats(0, 1), st.floats(0, 1e7), st.integers(20, 200),
)  # fmt: skip
def test_a_line_fits_its_terminal(
    message: str, what: str, total: int, share: float, seconds: float, columns: int
) -> None:
    count = Count(Counts(), what, total)
    count.begun_at = 0.0
    count.advance(int(share * (total - 1)))
    for found in (count, None):
        line = line_of(message, found, seconds, seconds, columns)
        assert len(line) < columns
        assert line
    if columns >= 60:
        assert " of " in line_of(message, count, seconds, seconds, columns)


def test_bytes_are_told_in_larger_units_and_the_time_that_is_left_in_words() -> None:
    count = Count(Counts(), BYTES, 4 << 30)
    count.begun_at = 0.0
    count.advance(1 << 30)
    line = line_of("writing", count, 50.0, 50.0, 100)
    assert line == "writing  [#####---------------]  1.0 of 4.0 GiB  2 min left"
    assert line_of("writing", None, 3.2, 3.2, 100) == "writing  3 s"
    assert line_of("x" * 80, count, 50.0, 50.0, 60) == f"{'x' * 28}...  1.0 of 4.0 GiB  2 min left"


def test_loops_count_for_the_last_listener_alone_and_yield_the_same() -> None:
    counts, seen = Counts(), list[int]()
    items = range(3)
    assert counted(items, "files", 3) is items
    with listening(counts):
        for item in counted(items, "files", 3):
            assert counts.latest is not None
            seen.append(counts.latest.done)
            assert item == counts.latest.done
    assert seen == [0, 1, 2]
    assert counts.latest is None
    assert counted(items, "files", 3) is items


def test_every_long_stage_of_compile_and_run_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What passes, code generation, the writer, the reader, the emulator and the check say of a small bundle."""
    from spyrec.cli import main

    told: set[tuple[str, int]] = set()
    advance = Count.advance

    def noted(self: Count, more: int = 1) -> None:
        told.add((self.what, self.total))
        advance(self, more)

    monkeypatch.setattr(Count, "advance", noted)
    graph = {
        "format": "spyrec.graph/1",
        "inputs": [{"name": "a", "shape": [64, 128], "dtype": "float16"}],
        "constants": [{"name": "w", "shape": [128], "dtype": "float16", "value": [0.5] * 128}],
        "nodes": [
            {"name": "y", "op": "add", "inputs": ["a", "w"]},
            {"name": "s", "op": "sum", "inputs": ["y"], "attrs": {"dim": [-1]}},
        ],
        "outputs": ["s"],
    }
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    bundle = str(tmp_path / "bundle")
    with listening(Counts()):
        assert main(["-q", "compile", str(tmp_path / "graph.json"), "-o", bundle]) == 0
        assert {what for what, _ in told} >= {"passes", "operations", "SuperDSCs", BYTES}
        told.clear()
        assert main(["-q", "run", bundle, "--random", "1", "--check"]) == 0
        assert {what for what, _ in told} >= {"SuperDSCs", "SuperDSCs planned", "operations checked", BYTES}
