"""``spyrec completion``, held against the declared verbs and run by the shells; the examples of ``--help``."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import time
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from spyrec import cli
from spyrec.cli import main
from spyrec.cli._completions import declared_verbs, script
from spyrec.cli._help_examples import HELP_EXAMPLES
from spyrec.passes.pipelines import COMPILE
from tests.support.graphs import graph_data, node, tensor
from tests.support.measured import listed, rows

ROOT = Path(__file__).resolve().parents[2]
VERBS = {verb.name: verb for verb in declared_verbs()}


def test_all_that_is_declared_is_completed() -> None:
    assert list(VERBS) == cli.verbs()
    context = click.Context(cli.group, info_name="spyrec")
    for name, verb in VERBS.items():
        command = cli.group.get_command(context, name)
        assert command is not None
        declared = {word for item in command.params if isinstance(item, click.Option) for word in item.opts}
        assert declared <= {word for option in verb.options for word in option.names}
    options = {word: option for option in VERBS["compile"].options for word in option.names}
    assert options["--lx-planner"].values == ("best-fit", "omnimalloc", "cpsat", "none")
    assert options["--print-after"].values == (*(item.name for item in COMPILE), "all")
    assert not options["--force"].takes_value
    assert "SPY0213" in VERBS["explain"].values
    assert "digits" in VERBS["examples"].values


def _completed(words: list[str], script_text: str, directory: Path) -> list[str]:
    """Return what bash offers for the last of the words."""
    lines = [
        script_text,
        f"COMP_WORDS=({' '.join(map(shlex.quote, words))})",
        f"COMP_CWORD={len(words) - 1}",
        "_spyrec",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(lines)], cwd=directory, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not there")
def test_bash_completes_verbs_options_values_and_files(tmp_path: Path) -> None:
    text = script("bash", list(VERBS.values()))
    (tmp_path / "graph.json").touch()
    (tmp_path / "my model.json").touch()

    def completed(*words: str) -> list[str]:
        return _completed(["spyrec", *words], text, tmp_path)

    assert completed("") == cli.verbs()
    assert completed("comp") == ["compile", "completion"]
    assert completed("--diagnostics", "") == ["text", "json"]
    assert completed("--diagnostics", "json", "exp") == ["explain"]
    assert completed("compile", "--lx-planner", "") == ["best-fit", "omnimalloc", "cpsat", "none"]
    assert completed("compile", "--lx") == ["--lx-planner"]
    assert completed("compile", "--stop-after", "divide") == ["divide-work"]
    assert completed("opt", "--pass", "assign") == ["assign-layouts", "assign-addresses"]
    assert completed("compile", "gr") == ["graph.json"]
    assert completed("compile", "graph.json", "-o", "gr") == ["graph.json"]
    assert completed("compile", "my") == ["my model.json"]
    assert completed("explain", "SPY021")[0] == "SPY0210"
    assert completed("completion", "") == ["bash", "zsh", "fish"]
    assert completed("run", "--chec") == ["--check"]
    assert completed("nothing", "--x") == [""]


@pytest.mark.parametrize(("shell", "check"), [("zsh", ["-n"]), ("fish", ["--no-execute"])])
def test_other_shells_take_the_script(shell: str, check: list[str], tmp_path: Path) -> None:
    text = script(shell, list(VERBS.values()))
    for verb in VERBS.values():
        assert verb.name in text
        assert all(name.lstrip("-") in text for option in verb.options for name in option.names)
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not there: its script is held against the declarations only")
    file = tmp_path / "script"
    file.write_text(text, encoding="utf-8")
    subprocess.run([shell, *check, str(file)], check=True)


TYPED = [
    ("spyrec compl\tz\t", "completion zsh"),
    ("spyrec compile --lx-pl\tbest\t", "compile --lx-planner best-fit"),
    ("spyrec compile gra\t", "compile graph.json"),
    ("spyrec explain SPY021\t3\t", "explain SPY0213"),
    ("spyrec run --nume\tie\t", "run --numerics ieee"),
]
"""Keys -> the words that ``spyrec`` is called with."""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not there")
@pytest.mark.parametrize(("keys", "words"), TYPED)
def test_zsh_completes_what_is_typed(keys: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "_spyrec").write_text(script("zsh", list(VERBS.values())), encoding="utf-8")
    work = tmp_path / "work"
    work.mkdir()
    (work / "graph.json").touch()
    begin = [
        "PS1='' PS2='' RPS1=''",
        f"fpath=({shlex.quote(str(tmp_path))} $fpath)",
        f"autoload -Uz compinit && compinit -u -d {shlex.quote(str(tmp_path / 'dump'))}",
        'spyrec() { print -r -- "called:" $* }',
        "print re''ady",
    ]
    process = Typed(["zsh", "-f", "-i"], work)
    process.type("\n".join(begin) + "\n")
    process.until("ready")
    process.type(f"{keys}\n")
    assert process.until("called: ").strip() == words
    process.end()


class Typed:
    """A shell on a terminal of its own."""

    def __init__(self, command: list[str], directory: Path) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
        environment = {**os.environ, "TERM": "dumb"}
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=directory, env=environment, start_new_session=True
        )
        os.close(theirs)

    def type(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def until(self, mark: str) -> str:
        """Read up to a whole line that begins with the mark; return what stands behind it."""
        found, deadline = "", time.monotonic() + 60
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self.ours], [], [], 1)
            found += os.read(self.ours, 1 << 16).decode() if ready else ""
            line = re.search(rf"^{mark}(.*)\r\n", found, re.MULTILINE)
            if line is not None:
                return line[1]
        raise AssertionError(f"{mark} did not come: {found}")

    def end(self) -> None:
        self.type("exit\n")
        self.process.wait(60)
        os.close(self.ours)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not there")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("spyrec compl", ["completion"]),
        ("spyrec completion ", ["bash", "fish", "zsh"]),
        ("spyrec compile --lx-pl", ["--lx-planner"]),
        ("spyrec compile --lx-planner ", ["best-fit", "cpsat", "none", "omnimalloc"]),
        ("spyrec compile gra", ["graph.json"]),
        ("spyrec explain SPY0213", ["SPY0213"]),
        ("spyrec run --numerics ie", ["ieee"]),
    ],
)
def test_fish_offers_what_could_be_typed(typed: str, offered: list[str], tmp_path: Path) -> None:
    (tmp_path / "spyrec.fish").write_text(script("fish", list(VERBS.values())), encoding="utf-8")
    (tmp_path / "graph.json").touch()
    done = subprocess.run(
        ["fish", "--no-config", "-c", "source spyrec.fish; complete -C $argv[1]", typed],
        cwd=tmp_path, capture_output=True, text=True, check=True, env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert sorted(line.partition("\t")[0] for line in done.stdout.splitlines()) == offered


def test_the_verb_prints_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        assert capsys.readouterr().out == script(shell, list(VERBS.values()))
    assert main(["completion", "tcsh"]) == 2


# --- the examples of --help ---


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with a graph, its bundle, OpSpecs and, where onnx is there, a model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    data = graph_data([tensor("a", 64), tensor("b", 64)], [node("y", "add", "a", "b")], ["y"])
    (tmp_path / "graph.json").write_text(json.dumps(data), encoding="utf-8")
    shutil.copy(ROOT / "tests" / "fixtures" / "examples" / "add" / "opspecs.json", tmp_path)
    return tmp_path


@pytest.mark.parametrize("verb", cli.verbs())
def test_the_example_of_a_verb_works(verb: str, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    line = re.sub(r" >> .*", "", HELP_EXAMPLES[verb])
    assert shown.endswith(f"Example: {HELP_EXAMPLES[verb]}")
    program, *arguments = shlex.split(line)
    assert program == "spyrec"
    assert arguments[0] == verb
    if "add_mul.bundle" in arguments and verb != "compile":
        assert main(shlex.split(HELP_EXAMPLES["compile"])[1:]) == 0
    if verb == "calibrate":
        listed(workspace, rows())
    if verb == "sweep":
        if find_spec("distributed") is None:
            pytest.skip("Dask is not there")
        (workspace / "SWEEP.toml").write_text('format = "spyrec.sweep/1"\n[[graphs]]\nfiles = ["graph.json"]\n')
    if verb == "tune" and not (find_spec("distributed") and find_spec("optuna")):
        pytest.skip("the extra sweep is not there")
    if verb == "import":
        _write_model(workspace / "model.onnx")
    assert main(arguments) == 0


def _write_model(path: Path) -> None:
    if find_spec("onnx") is None:
        pytest.skip("onnx is not there")
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 64])
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "small", [x], [y])
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())


def test_help_of_all_verbs_has_an_example() -> None:
    assert set(cli.verbs()) <= set(HELP_EXAMPLES)


def test_completions_are_printed_without_the_emulator() -> None:
    code = "import sys; from spyrec.cli import main; main(['completion', 'bash']); sys.exit('numba' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
