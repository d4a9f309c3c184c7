"""What each verb prints, as transcripts in ``tests/cases/texts``: ``pytest --update-goldens`` writes them anew.

``$ command`` is a command line, what follows is stdout and then stderr, and ``[exit N]`` the exit code where it is not
0.  The same commands are run with 60 columns, where nothing may be longer.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from spyrec import __version__, cli
from spyrec.cli import main
from spyrec.sweep.results import Results
from spyrec.sweep.rows import Row
from tests.support.measured import listed, rows

CASES = Path(__file__).parents[1] / "cases" / "texts"
FIXTURES = Path(__file__).parents[1] / "fixtures" / "examples"

GRAPH = {
    "format": "spyrec.graph/1",
    "name": "model",
    "inputs": [{"name": name, "shape": [256, 512], "dtype": "float16"} for name in "ab"],
    "constants": [{"name": "w", "shape": [512], "dtype": "float16", "value": 0.5}],
    "nodes": [
        {"name": "y", "op": "add", "inputs": ["a", "b"]},
        {"name": "z", "op": "mul", "inputs": ["y", "w"]},
        {"name": "s", "op": "sum", "inputs": ["z"], "attrs": {"dim": [-1]}},
    ],
    "outputs": ["s"],
}
"""Two operations and a fold: small bundles with a constant, a scratchpad and several divisions."""

COMMANDS: dict[str, tuple[str, ...]] = {
    "calibrate": ("calibrate measured.csv -o card.json",),
    "check": (
        "check graph.json", "check A", "check A --profile pre-flight", "check foreign", "check misspelt.json",
        "check damaged",
    ),
    "codegen": ("codegen opspecs.json -o C", "codegen opspecs.json -o C"),
    "compile": (
        "compile graph.json -o C", "compile graph.json -o C", "compile graph.json --explain-plan",
        "compile graph.json --golden B", "compile graph.json --stop-after decompose --print-after decompose",
        "compile graph.json --stop-after layouts", "compile misspelt.json -o D", "compile graph.json",
    ),
    "completion": ("completion tcsh",),
    "diff": ("diff A A", "diff A B --stat", "diff A B --semantic", "diff A damaged", "diff A nowhere"),
    "doctor": ("doctor",),
    "examples": ("examples", "examples digits -o digits", "examples digit"),
    "explain": ("explain SPY0213", "explain SPY0999"),
    "import": ("import model.onnx -o imported", "import model.onnx --list-unsupported"),
    "inspect": ("inspect A", "inspect A sum --core 1", "inspect foreign", "inspect A/sdsc_0.json", "inspect A mull"),
    "inspect-layout": (
        "inspect-layout --shape 5,100,150 --dtype float16", "inspect-layout --shape 5,100 --dtype float16 --at 1,2",
        "inspect-layout graph.json", "inspect-layout A", "inspect-layout A --lx",
    ),
    "ops": ("ops softmax", "ops softmacks"),
    "opt": ("opt graph.json --stop-after decompose", "opt graph.json --pass nosuch"),
    "passes": ("passes", "passes divide-work", "passes divide"),
    "report": (
        "report A", "report A --format mermaid", "report A -o page.html", "report A --run nowhere", "report nowhere",
    ),
    "run": (
        "run A --random 1 --check", "run A --random 1 --stats", "run A --random 1 --bisect",
        "run A --random 1 --sanitize all", "run A",
    ),
    "schema": ("schema", "schema graf"),
    "sweep": (
        "sweep SWEEP.toml", "sweep report results", "sweep report results --against yesterday", "sweep report A",
    ),
    "tune": (
        "tune graph.json -o tuned.json --trials 12 --cores 4 --workers 1 --only division --only lx",
        "tune graph.json -o graph.json", "tune misspelt.json", "tune graph.json --trials 0",
    ),
    "spyrec": ("--version", "--help", "nosuch", "compile --nosuch"),
}  # fmt: skip
"""File of a transcript -> command lines; those of a verb begin with its help."""

UNFITTED = re.compile(r"opt graph|--print-after|--format")
"""Commands that print what other programs read: text of the IR, exports."""


def test_every_verb_has_a_transcript() -> None:
    assert set(COMMANDS) == {*cli.verbs(), "spyrec"}
    assert {path.stem for path in CASES.glob("*.txt")} == set(COMMANDS)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of what the commands read."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "graph.json").write_text(json.dumps(GRAPH, indent=1))
    (folder / "misspelt.json").write_text(json.dumps(GRAPH, indent=1).replace('"op": "add"', '"op": "ad"'))
    for name, options in (("A", []), ("B", ["--cores", "4"])):
        assert main(["-q", "compile", str(folder / "graph.json"), "-o", str(folder / name), *options]) == 0
    shutil.copytree(folder / "A", folder / "damaged")
    path = folder / "damaged" / "sdsc_1.json"
    path.write_text(path.read_text().replace('"numCoresUsed_": 32', '"numCoresUsed_": 31', 1))
    shutil.copytree(FIXTURES / "nested_loop_symbolic", folder / "foreign")
    shutil.copy(FIXTURES / "add" / "opspecs.json", folder)
    listed(folder, rows())
    (folder / "SWEEP.toml").write_text(
        'format = "spyrec.sweep/1"\n[[graphs]]\nfiles = ["*.json"]\n[grid]\ncoers = [1]\n'
    )
    swept(folder / "results", 1.0)
    swept(folder / "yesterday", 0.5)
    return folder


def swept(folder: Path, factor: float) -> None:
    """Write results of a sweep: two graphs, one of them on several cores and one that is refused."""
    rows = [
        Row(
            key=f"{number:032x}", case=f"{number:032x}", graph="graphs/add_mul", kind="file", digest="d",
            options={"cores": str(cores)}, checks="compile", status="ok", figures="plan", simulated_us=factor * time_us,
            hbm_bytes=traffic, lx_peak_bytes=scratchpad, spyrec="0", program="p", versions="v",
        )
        for number, (cores, time_us, traffic, scratchpad) in enumerate(
            [(1, 90.5, 786_432, 0), (8, 20.25, 786_432, 2048), (32, 9.5, 1_048_576, 4096), (16, 21.0, 900_000, 4096)]
        )
    ]  # fmt: skip
    poor = replace(rows[0], key="f" * 32, case="f" * 32, graph="graphs/poor", status="refused", code="SPY0118")
    with Results(folder) as results:
        results.begin("nightly", [*(row.key for row in rows), poor.key, "e" * 32])
        for row in (*rows, poor):
            results.append(row)


def transcript(name: str, prepared: Path, directory: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    """Run the commands of a transcript; return each with what it prints."""
    shutil.copytree(prepared, directory, dirs_exist_ok=True)
    if name == "import":
        write_model(directory / "model.onnx")
    if name == "tune" and not (find_spec("distributed") and find_spec("optuna")):
        pytest.skip("the extra sweep is not there")
    commands = COMMANDS[name] if name == "spyrec" else (f"{name} --help", *COMMANDS[name])
    found: list[tuple[str, str]] = []
    capsys.readouterr()
    for command in commands:
        code = main(shlex.split(command))
        said = capsys.readouterr()
        ended = f"[exit {code}]\n" if code else ""
        found.append((command, said.out + said.err + ended))
    return found


def write_model(path: Path) -> None:
    if find_spec("onnx") is None:
        pytest.skip("onnx is not there")
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 64]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "small", [x], [y])
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())


def masked(name: str, text: str) -> str:
    """Return a text without what is another one on every machine, or with every release."""
    text = re.sub(r"\b[0-9a-f]{64}\b", "HASH", text.replace(__version__, "VERSION"))
    text = re.sub(r"(begins\s+with|the\s+manifest's\s+with) [0-9a-f]{12}\b", r"\1 HASH", text)
    if name != "doctor":
        return text
    helped, command, printed = text.partition("$ spyrec doctor\n")
    facts = (line[:12].rstrip() for line in printed.splitlines())
    return helped + command + "".join(f"{fact}\n" for fact in facts if fact)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_text_of_a_verb_is_the_reviewed_one(
    name: str,
    prepared: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    found = transcript(name, prepared, tmp_path, capsys)
    text = masked(name, "".join(f"$ spyrec {command}\n{printed}" for command, printed in found))
    assert "SPY99" not in text, text  # a bug is no text to review
    path = CASES / f"{name}.txt"
    if request.config.getoption("--update-goldens"):
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "if this is meant: pytest --update-goldens"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_texts_fit_sixty_columns(
    name: str, prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exempt is a line of one name that is longer, whatever stands before it, and a line of somebody's file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    for command, printed in transcript(name, prepared, tmp_path, capsys):
        if UNFITTED.search(command):
            continue
        for line in printed.splitlines():
            is_name = len(line.split()) == 1 and len(line.lstrip()) > 60 - 4
            assert len(line) <= 60 or is_name or re.match(r" *\d* \| ", line), f"{command}: {line}"


def test_in_a_pipe_a_line_is_as_long_as_it_is(prepared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        capsys.readouterr()
        assert main(["run", str(prepared / "A"), "--random", "1", "--stats"]) == 0
        (head,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("file "))
        assert head.endswith("flops/byte  ridge")
