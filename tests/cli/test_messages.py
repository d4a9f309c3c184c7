"""Messages of the verbs: the line of an input below its place, colours, verbosity; what is marked is what is meant."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.cli import main
from spyrec.diagnostics import Location
from spyrec.diagnostics.excerpt import WIDTH, excerpt_of
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.diagnostics.source_text import SourceText
from tests.support.json_pointers import pointers_of

LEAVES = st.one_of(st.integers(), st.booleans(), st.none(), st.text(max_size=80), st.floats(allow_nan=False))
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
)


@given(VALUES, st.sampled_from([None, 1, 4]))
def test_the_mark_stands_below_the_value_and_every_line_fits(value: JsonValue, indent: int | None) -> None:
    source = SourceText(json.dumps(value, indent=indent), "x.json")
    for pointer, item in pointers_of(value):
        excerpt = Location("x.json", pointer, source=source).excerpt()
        assert excerpt is not None
        line, mark = excerpt.lines()
        assert max(len(line), len(mark)) <= 60
        assert len(excerpt.text) <= WIDTH
        assert (excerpt.number, line[:7].strip(" |")) == (source.position(pointer)[0], str(excerpt.number))
        marked, wanted = excerpt.text[excerpt.begin : excerpt.end], json.dumps(item)
        if isinstance(item, dict | list):
            assert marked[0] == wanted[0]
        elif len(wanted) < 20:
            assert marked == wanted
        else:
            assert marked[:10] == wanted[:10]


@pytest.mark.parametrize("column", [1, 30, 60, 100, 119, 120])
def test_a_long_line_is_cut_around_its_place(column: int) -> None:
    line = "".join(chr(ord("a") + number % 26) for number in range(120))
    excerpt = excerpt_of(line, 3, column)
    assert len(excerpt.text) == WIDTH
    assert excerpt.text[excerpt.begin] == line[column - 1]
    assert excerpt.text.startswith("...") == (column > 21)
    assert excerpt.text.endswith("...") == (column < 91)


def test_what_an_excerpt_costs_is_not_a_matter_of_the_lines_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred diagnostics of one line of 546,486 characters took 6.6 s (found by damaged files)."""
    looked_at: list[str] = []

    def counted(char: str) -> bool:
        looked_at.append(char)
        return True

    monkeypatch.setattr("spyrec.diagnostics.excerpt._is_plain", counted)
    line = '{"a": "' + "x" * 1_000_000 + '"}'
    assert excerpt_of(line, 1, 7).lines()[0].endswith("xxx...")
    assert len(looked_at) == WIDTH


def test_what_a_terminal_would_obey_is_not_printed() -> None:
    excerpt = excerpt_of('{"a": "\x1b[31m\u4e2d\u0301\t"}', 1, 7)
    assert excerpt.text == '{"a": "?[31m?? "}'
    assert excerpt.end == 16


GRAPH = {
    "format": "spyrec.graph/1",
    "name": "g",
    "inputs": [{"name": "x", "shape": [4, 64], "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exq", "inputs": ["x"]}],
    "outputs": ["y"],
}
RIGHT = {**GRAPH, "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}]}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(GRAPH, indent=1))
    return file


def test_no_name_of_somebody_s_moves_the_cursor(
    graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of ops and files stand in messages, on stderr and in the summary; a terminal gets no escapes of theirs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)  # else click takes escapes out of what it prints
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    path = Path("g\x1b[2J\n.json")
    path.write_text(graph.read_text().replace('"exq"', '"add\\u001b[31m\\u202e"'))
    assert main(["check", str(path)]) == 1
    said = capsys.readouterr()
    assert 'op "add?[31m?" is unknown' in said.err
    assert "--> g?[2J?.json:" in said.err
    messages = said.err.split("\r\x1b[K")  # the progress bar's own
    assert not {"\x1b", "\u202e"} & {*"".join(messages), *said.out}


def test_the_verbs_show_the_line(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(graph)]) == 1
    assert '  17 |    "op": "exq",\n     |          ^^^^^\n   = hint' in capsys.readouterr().err


def test_text_that_is_no_json_and_mlir_are_marked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.json"
    file.write_text('{"format": }')
    assert main(["check", str(file)]) == 1
    assert '   1 | {"format": }\n     |            ^\n' in capsys.readouterr().err
    file.write_text("module {\n  func.func @other() {\n}")
    assert main(["check", str(file)]) == 1
    assert "   2 |   func.func @other() {\n     |             ^" in capsys.readouterr().err


@pytest.mark.parametrize("is_behind", [False, True])
def test_the_options_of_messages_stand_before_the_verb_or_behind_it(
    graph: Path, is_behind: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*options: str) -> list[str]:
        verb = ["check", str(graph)]
        assert main([*verb, *options] if is_behind else [*options, *verb]) == 1
        return capsys.readouterr().err.splitlines()

    assert [json.loads(line)["code"] for line in refused("--diagnostics=json")] == ["SPY0118"]
    assert any(line.startswith("checking graph.json: ") for line in refused("-v"))
    assert refused("-q") == refused()


@pytest.mark.parametrize("option", [["--diagnostics=json"], ["--diagnostics", "json"]])
@pytest.mark.parametrize("place", [0, 1, 2, 4])
def test_a_command_line_that_is_not_understood_is_a_json_line_wherever_the_option_stands(
    option: list[str], place: int, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["run", ".", "--sed", "1"]
    assert main([*line[:place], *option, *line[place:]]) == 2
    (found,) = [json.loads(text) for text in capsys.readouterr().err.splitlines()]
    assert (found["code"], found["message"].split(".")[0]) == ("SPY0799", "no such option '--sed'")


def test_names_that_are_not_there_bring_the_closest_that_is(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph.write_text(json.dumps(RIGHT))
    bundle = graph.parent / "b"
    assert main(["compile", str(graph), "-o", str(bundle)]) == 0
    compiling = ["compile", str(graph), "-o", str(graph.parent / "other")]
    for command, meant in [
        (["compil", str(graph)], "did you mean compile?"),
        ([*compiling, "--targt", "spyre"], "--target"),
        ([*compiling, "--target", "spire"], 'did you mean "spyre"?'),
        ([*compiling, "--profile", "calibratd"], 'did you mean "calibrated"?'),
        ([*compiling, "--print-after", "decompos"], 'did you mean "decompose"?'),
        (["opt", str(graph), "--pass", "decompos"], 'did you mean "decompose"?'),
        (["passes", "decompos"], "did you mean decompose?"),
        (["ops", "sofmax"], "did you mean softmax"),
        (["ops", "nonzero"], "nonzero is no op of a graph: the shape of its result depends on the numbers"),
        (["ops", "fold"], "a graph has it as col2im"),
        (["schema", "grahp"], "did you mean graph?"),
        (["examples", "digit"], "did you mean digits?"),
        (["explain", "SPY0213x"], "did you mean SPY0213"),
        (["run", str(bundle), "--sanitize", "bound"], 'did you mean "bounds"?'),
        (["run", str(bundle), "--only", "sdsc_00.json"], 'did you mean "sdsc_0.json"?'),
        (["run", str(bundle), "--random", "1", "--entry", "decod"], "this is one bundle, leave it out"),
        (["inspect", str(bundle), "expp"], "did you mean exp?"),
        (["inspect-layout", str(graph), "--tensor", "xx"], 'did you mean "x"?'),
    ]:
        assert main(command) in (1, 2), command
        assert meant in capsys.readouterr().err, command


def test_quiet_leaves_out_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, blocked = tmp_path / "graph.json", tmp_path / "cache"
    file.write_text(json.dumps(RIGHT))
    blocked.write_text("in the way")
    command = ["compile", str(file), "--cache", str(blocked), "--force", "-o", str(tmp_path / "b")]
    assert main(command) == 0
    assert "SPY0775" in capsys.readouterr().err
    assert main([*command, "-q"]) == 0
    assert capsys.readouterr().err == ""


def run(*arguments: str, given: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "spyrec", *arguments], input=given, capture_output=True, check=False)


def test_a_dash_is_the_standard_input(tmp_path: Path) -> None:
    text = json.dumps(RIGHT).encode()
    assert run("check", "-", given=text).stdout == b'-: graph: "g", 1 node: ok\n'
    assert run("compile", "-", "-o", str(tmp_path / "b"), given=text).returncode == 0
    assert (tmp_path / "b" / "manifest.json").is_file()
    refused = run("check", "-", given=b"[")
    assert (refused.returncode, b"--> -:1:2" in refused.stderr) == (1, True)


@pytest.mark.parametrize("has_colours", [True, False])
def test_a_terminal_gets_colours_and_lines_that_it_has_room_for(graph: Path, has_colours: bool) -> None:
    reader, writer = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60", "TERM": "xterm", **({} if has_colours else {"NO_COLOR": "1"})}
    command = [sys.executable, "-m", "spyrec", "check", "graph.json"]
    subprocess.run(command, stderr=writer, stdout=subprocess.DEVNULL, env=environment, cwd=graph.parent, check=False)
    os.close(writer)
    shown = b""
    while chunk := _read(reader):
        shown += chunk
    os.close(reader)
    messages = shown.replace(b"\r\n", b"\n").decode().rpartition("\x1b[K")[2]  # behind what showed progress
    assert ("\x1b[31m\x1b[1merror[SPY0118]\x1b[0m" in messages) == has_colours
    assert ("\x1b[" in messages) == has_colours
    for code in ("\x1b[31m", "\x1b[34m", "\x1b[1m", "\x1b[0m"):
        messages = messages.replace(code, "")
    lines = messages[messages.index("error[") :].splitlines()
    assert len(lines) >= 5
    assert max(map(len, lines)) <= 60


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # what Linux says of a terminal whose writer has gone
        return b""


def test_columns_of_an_op_stand_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "embedding"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  attribute")]
    assert "  attribute  scale_grad_by_freq bool, default false" in rows
    assert len({len(line) - len(line.split(maxsplit=2)[2]) for line in rows}) == 1
