"""``spyrec report --format``: every format of the table, written over itself, fitted where people read it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import click
import pytest

import spyrec
from spyrec.cli import group, main
from spyrec.report.exports.text import cells
from spyrec.report.formats import FORMATS
from tests.support.graphs import graph_data, node, tensor

LONG = "a_rather_long_name_of_a_result_" * 2
DATA = graph_data([tensor("a", 64, 64)], [node(LONG, "relu", "a")], [LONG])

EXPORTS = sorted(name for name, place in FORMATS.items() if ".exports." in place)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("report") / "bundle"
    spyrec.compile(DATA).save(directory)
    return directory


def test_the_verb_offers_the_formats_of_the_table() -> None:
    command = group.get_command(click.Context(group), "report")
    assert command is not None
    (option,) = [item for item in command.params if item.name == "shape"]
    assert isinstance(option.type, click.Choice)
    assert set(option.type.choices) == set(FORMATS)


@pytest.mark.parametrize("name", EXPORTS)
def test_a_file_is_replaced_by_the_same_and_somebody_elses_is_not(
    name: str, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["report", str(bundle), "--format", name, "-o", str(tmp_path / "out")]
    assert main(arguments) == 0
    first = (tmp_path / "out").read_bytes()
    assert main(arguments) == 0
    assert (tmp_path / "out").read_bytes() == first
    (tmp_path / "out").write_text("somebody's", encoding="utf-8")
    assert main(arguments) == 1
    assert "SPY0752" in capsys.readouterr().err
    assert (tmp_path / "out").read_text(encoding="utf-8") == "somebody's"


def test_text_is_whole_in_a_pipe_and_fits_the_columns_that_are_asked_for(
    bundle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["report", str(bundle)]) == 0
    piped = capsys.readouterr().out
    assert LONG in piped
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["report", str(bundle)]) == 0
    fitted = capsys.readouterr().out.splitlines()
    assert max(map(cells, fitted)) <= 60
    assert any("…" in line for line in fitted)
    assert "█" not in "".join(fitted)


class Terminal(io.TextIOWrapper):
    """A stdout that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("encoding", "draws"), [("utf-8", True), ("ascii", False)])
def test_a_terminal_that_has_the_characters_is_drawn_on(
    encoding: str, draws: bool, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    terminal = Terminal(written, encoding=encoding, errors="replace")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["report", str(bundle)]) == 0
    terminal.flush()
    # click writes UTF-8 where the stream says ASCII
    assert ("█" in written.getvalue().decode()) == draws
