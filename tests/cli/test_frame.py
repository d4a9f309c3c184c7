"""The frame of the command line: verbs are found, exit codes are right, messages go to stderr."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from spyrec import cli
from spyrec.diagnostics import Diagnostic, refuse
from spyrec.diagnostics.codes import CODES

HEAVY = ("numba", "numpy", "pydantic", "sympy", "orjson", "safetensors")


def loaded_modules_after(arguments: str) -> set[str]:
    code = f"import sys; from spyrec.cli import main; main({arguments}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", ["['--help']", "['--version']"])
def test_help_and_version_import_no_heavy_library_and_no_verb(arguments: str) -> None:
    loaded = loaded_modules_after(arguments)
    assert not loaded & set(HEAVY)
    assert not {f"spyrec.cli.{verb.replace('-', '_')}" for verb in cli.verbs()} & loaded


def test_every_verb_is_a_command_of_its_own_name() -> None:
    for verb in cli.verbs():
        command = import_module(f"spyrec.cli.{verb.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        assert command.name == verb


def test_every_verb_answers_help(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in cli.verbs():
        assert cli.main([verb, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"Usage: spyrec {verb} ")


def test_help_lists_every_verb_with_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    section = capsys.readouterr().out.partition("Verbs:")[2]
    listed = [line.split(None, 1) for line in section.splitlines() if line.strip()]
    assert [entry[0] for entry in listed if entry[0] in cli.verbs()] == cli.verbs()
    assert all(len(entry) == 2 for entry in listed)


@pytest.mark.parametrize("arguments", [["nothing"], ["run"], ["--diagnostics=xml", "run"], ["run", "/nonexistent"]])
def test_a_usage_error_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err != ""


def test_diagnostics_json_makes_a_usage_error_one_json_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--diagnostics=json", "nothing"]) == 2
    assert json.loads(capsys.readouterr().err)["code"] == "SPY0799"


def plant_verb(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command(name="planted")
    def planted() -> None:
        raise error

    def get_command(group: click.Group, ctx: click.Context, cmd_name: str) -> click.Command:
        return planted

    monkeypatch.setattr(cli.VerbGroup, "get_command", get_command)


def test_a_refusal_is_exit_code_1_with_its_diagnostics(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant_verb(monkeypatch, refuse("SPY0764", "not good", hint="do better"))
    assert cli.main(["planted"]) == 1
    assert capsys.readouterr().err.splitlines() == ["error[SPY0764]: not good", "   = hint: do better"]
    assert cli.main(["--diagnostics", "json", "planted"]) == 1
    line = json.loads(capsys.readouterr().err)
    assert (line["code"], line["message"], line["hint"]) == ("SPY0764", "not good", "do better")


def test_a_bug_is_exit_code_70_with_the_path_of_a_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    plant_verb(monkeypatch, ZeroDivisionError("planted fault"))
    assert cli.main(["planted", "an argument"]) in (2, 70)
    assert cli.main(["planted"]) == 70
    (report,) = tmp_path.iterdir()
    assert str(report) in capsys.readouterr().err
    text = report.read_text(encoding="utf-8")
    assert "command: spyrec planted" in text
    assert "ZeroDivisionError: planted fault" in text


@pytest.mark.parametrize(
    ("error", "code", "exit_code"),
    [
        (MemoryError("1 TiB"), "SPY0798", 1),
        (OSError(28, "No space left on device"), "SPY0797", 1),
        (KeyboardInterrupt(), "interrupted", 130),
    ],
)
def test_faults_of_the_machine_are_no_bugs(
    error: BaseException,
    code: str,
    exit_code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plant_verb(monkeypatch, error)
    assert cli.main(["planted"]) == exit_code
    assert code in capsys.readouterr().err


def in_shell(line: str, folder: Path) -> tuple[int, str, str]:
    """Run a line of bash in which ``$spyrec`` is the program; return exit code, stdout and stderr."""
    script = f'spyrec="{sys.executable} -m spyrec"; {line}'
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("verb", ["run --help", "ops", "ops --json"])
def test_a_reader_that_closes_the_pipe_ends_spyrec_quietly_as_sigpipe_would(verb: str, tmp_path: Path) -> None:
    code, printed, said = in_shell(f"$spyrec {verb} | true; echo ${{PIPESTATUS[0]}}", tmp_path)
    assert (code, printed, said) == (0, "141\n", "")


def test_a_message_that_nobody_reads_is_no_bug(tmp_path: Path) -> None:
    _, printed, _ = in_shell("$spyrec check . 2> >(true) > /dev/null; echo $?", tmp_path)
    assert printed in ("1\n", "141\n")
    code, _, _ = in_shell("$spyrec check . --json >&- 2>&-", tmp_path)
    assert code == 1


@pytest.mark.parametrize("verb", ["--help", "ops --json"])
def test_without_a_stdout_the_exit_code_is_the_verbs(verb: str, tmp_path: Path) -> None:
    assert in_shell(f"$spyrec {verb} >&-", tmp_path) == (0, "", "")
    assert in_shell(f"$spyrec {verb} <&- >&- 2>&-", tmp_path) == (0, "", "")


def test_no_file_that_is_opened_takes_the_place_of_a_closed_stdout(tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(json.dumps(GRAPH))
    assert in_shell("$spyrec compile graph.json -o out >&- 2>&-", tmp_path)[0] == 0
    assert in_shell("$spyrec check out", tmp_path)[0] == 0


def test_a_stdout_that_takes_nothing_is_the_systems_refusal(tmp_path: Path) -> None:
    code, _, said = in_shell("$spyrec ops > /dev/full", tmp_path)
    assert code == 1
    assert "SPY0797" in said
    assert "Exception ignored" not in said


GRAPH = {
    "format": "spyrec.graph/1",
    "name": "g",
    "inputs": [{"name": "x", "shape": [4, 64], "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["x"]}],
    "outputs": ["y"],
}

REFUSED = {
    "spyrec.run/1": ["run", "FOLDER"],
    "spyrec.diff/1": ["diff", "FOLDER", "FOLDER"],
    "spyrec.check/1": ["check", "FOLDER"],
    "spyrec.layouts/1": ["inspect-layout", "FOLDER"],
    "spyrec.lx/1": ["inspect-layout", "FOLDER", "--lx"],
}


@pytest.mark.parametrize("form", REFUSED)
def test_a_refused_verb_prints_the_object_that_it_was_asked_for(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [argument.replace("FOLDER", str(tmp_path)) for argument in REFUSED[form]]
    assert cli.main(["--diagnostics=json", *command, "--json"]) == 1
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert (found["format"], found["ok"]) == (form, False)
    assert found["diagnostics"] == [json.loads(line) for line in printed.err.splitlines()] != []
    assert cli.main(command) == 1
    assert not capsys.readouterr().out.startswith("{")


def test_a_run_says_whether_it_was_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "graph.json").write_text(json.dumps(GRAPH))
    assert cli.main(["compile", str(tmp_path / "graph.json"), "-o", str(tmp_path / "out")]) == 0
    for arguments, code in ((["--random", "1", "--check"], 0), ([], 1), (["--random", "1", "--only", "x.json"], 1)):
        capsys.readouterr()
        assert cli.main(["run", str(tmp_path / "out"), "--json", *arguments]) == code
        found = json.loads(capsys.readouterr().out)
        assert (found["format"], found["ok"], bool(found.get("diagnostics"))) == ("spyrec.run/1", code == 0, code == 1)


def test_a_bug_and_a_full_disk_print_the_object_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    bug, full, huge = ZeroDivisionError("planted"), OSError(28, "full"), MemoryError()
    for error, code, shown in (bug, 70, "SPY9901"), (full, 1, "SPY0797"), (huge, 1, "SPY0798"):

        def fail(*_: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr("spyrec.compare.bundle_diff.diff_bundles", fail)
        assert cli.main(["diff", str(tmp_path), str(tmp_path), "--json"]) == code
        found = json.loads(capsys.readouterr().out)
        assert [item["code"] for item in found["diagnostics"]] == [shown]


def test_codes_are_well_formed() -> None:
    for code, row in CODES.items():
        assert code.startswith("SPY")
        assert len(code) == 7
        assert row.title
        assert row.explanation
        assert row.hint, code
        assert not row.hint.endswith("."), code
        assert Diagnostic(code, "some message").advice == row.hint


@pytest.mark.parametrize(("threshold", "inside"), [(700, 20_000), (0, 0), (50_000, 50_000)])
def test_a_verb_collects_garbage_rarely_and_leaves_its_caller_as_it_was(
    monkeypatch: pytest.MonkeyPatch, threshold: int, inside: int
) -> None:
    seen: list[tuple[int, int, int]] = []

    def note(_: click.Context, name: str) -> click.Command:
        seen.append(gc.get_threshold())
        raise click.UsageError(name)

    monkeypatch.setattr(cli.group, "get_command", note)
    before = gc.get_threshold()
    gc.set_threshold(threshold, 11, 12)
    try:
        assert cli.main(["ops"]) == 2
        assert seen == [(inside, 11, 12)]
        assert gc.get_threshold() == (threshold, 11, 12)
    finally:
        gc.set_threshold(*before)
