"""The frame of the command line: verbs are found, exit codes are right, messages go to stderr."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from spyrec import cli
from spyrec.codes import CODES
from spyrec.diagnostics import Diagnostic, refuse

HEAVY = ("numba", "numpy", "pydantic", "rich", "sympy", "orjson", "safetensors")


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


def test_a_reader_that_closes_the_pipe_causes_no_traceback() -> None:
    script = f"{sys.executable} -m spyrec run --help | true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_codes_are_well_formed() -> None:
    for code, row in CODES.items():
        assert code.startswith("SPY")
        assert len(code) == 7
        assert row.title
        assert row.explanation
        assert row.hint, code
        assert not row.hint.endswith("."), code
        assert Diagnostic(code, "some message").advice == row.hint
