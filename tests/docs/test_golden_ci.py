"""Each recipe of ``docs/golden_ci.md`` as it stands there: in a shell, in pytest, as a hook, in a workflow."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import spyrec
from spyrec import golden_check
from spyrec.cli import main
from spyrec.testing import GoldenBundle

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "golden_ci.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GRAPH = {
    "format": "spyrec.graph/1",
    "name": "model",
    "inputs": [{"name": name, "shape": [64, 128], "dtype": "float16"} for name in "ab"],
    "constants": [{"name": "w", "shape": [128], "dtype": "float16", "value": [0.5] * 128}],
    "nodes": [{"name": "y", "op": "add", "inputs": ["a", "b"]}, {"name": "z", "op": "mul", "inputs": ["y", "w"]}],
    "outputs": ["z"],
}


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE) if found == language]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "graph.json").write_text(json.dumps(GRAPH))
    return tmp_path


def change(project: Path) -> None:
    """Let the model subtract where it added."""
    text = json.dumps(GRAPH).replace('"op": "add"', '"op": "sub"')
    (project / "model" / "graph.json").write_text(text)


@dataclass(frozen=True)
class Ended:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


Shell = Callable[[str], Ended]


@pytest.fixture
def shell(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Run a command line of ours in this process, in the project."""
    monkeypatch.chdir(project)

    def run(command: str) -> Ended:
        words = shlex.split(command)
        if words[0] == "spyrec":
            code = main(words[1:])
        else:
            assert words[:3] == ["python", "-m", "spyrec.golden_check"]
            code = golden_check.main(words[3:])
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return run


def test_in_a_shell(project: Path, shell: Shell) -> None:
    write, compare = blocks("sh")[0].splitlines()
    missing = shell(compare)
    assert (missing.code, "--update-golden writes it" in missing.err) == (2, True)
    first = shell(write)
    assert (first.code, first.out) == (0, "model/golden: written, read the change before it is committed\n")
    golden = project / "model" / "golden"
    names = {path.relative_to(golden).as_posix() for path in golden.rglob("*") if path.is_file()}
    assert {"manifest.json", "bundle.mlir", "sdsc_0.json", "graph.json", "left_out.txt"} <= names
    assert not {name for name in names if name.endswith((".bin", ".safetensors"))}
    (golden / "notes.txt").write_text("reviewed")
    same = shell(compare)
    assert (same.code, same.out) == (0, "no differences from model/golden\n")
    change(project)
    differs = shell(compare)
    assert differs.code == 1
    assert "is sub instead of add, in 0 add" in differs.out
    assert differs.out.endswith("not the golden bundle model/golden; if this is meant, --update-golden\n")
    updated = shell(write)
    assert updated.code == 0
    assert "is sub instead of add, in 0 add" in updated.out
    assert shell(compare).code == 0
    assert (golden / "notes.txt").read_text() == "reviewed"


def test_an_update_replaces_bundles_alone_and_keeps_the_list_of_what_is_left_out(project: Path, shell: Shell) -> None:
    write, _ = blocks("sh")[0].splitlines()
    golden = project / "model" / "golden"
    assert shell(write).code == 0
    (golden / "sdsc_1.json").unlink()
    with (golden / "left_out.txt").open("a") as stream:
        stream.write("sdsc_1.json\n")
    assert shell(write).out == "no differences from model/golden\n"
    change(project)
    assert shell(write).code == 0
    assert not (golden / "sdsc_1.json").exists()
    assert "sdsc_1.json" in (golden / "left_out.txt").read_text().splitlines()
    (project / "notes").mkdir()
    (project / "notes" / "text").write_text("not a bundle")
    refused = shell("spyrec compile model/graph.json --golden notes --update-golden")
    assert (refused.code, "SPY0614" in refused.err) == (1, True)
    assert (project / "notes" / "text").read_text() == "not a bundle"
    assert shell("spyrec compile model/graph.json --update-golden").code == 2


def pytest_in(project: Path, command: str) -> Ended:
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(paths), "PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        [sys.executable, "-m", *shlex.split(command), "-q"],
        cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    return Ended(found.returncode, found.stdout, found.stderr)


def test_in_pytest(project: Path) -> None:
    for text in blocks("python"):
        name = text.partition("\n")[0].removeprefix("# ")
        (project / name).write_text(text)
    update, compare = blocks("sh")[1].splitlines()
    written = pytest_in(project, update)
    assert written.code == 0, written.out
    assert (project / "goldens" / "model" / "manifest.json").exists()
    change(project)
    differs = pytest_in(project, compare)
    assert differs.code == 1
    assert "is sub instead of add, in 0 add" in differs.out
    assert "if this is meant: pytest --update-goldens" in differs.out


def test_the_fixture_takes_graphs_and_bundles(tmp_path: Path) -> None:
    """The fixture's value by itself: missing, written, the same, and the same in meaning."""
    bundle = spyrec.compile(GRAPH, spyrec.CompileOptions(cores=4))
    check = GoldenBundle(tmp_path, "of_the_test", is_updated=False)
    with pytest.raises(pytest.fail.Exception, match="there is no golden bundle"):
        check(bundle)
    assert GoldenBundle(tmp_path, "of_the_test", is_updated=True)(bundle) is bundle
    assert check(bundle) is bundle
    check(GRAPH, options=spyrec.CompileOptions(cores=4))
    with pytest.raises(pytest.fail.Exception, match="cores 8 instead of 4"):
        check(GRAPH, options=spyrec.CompileOptions(cores=8))
    golden = tmp_path / "of_the_test"
    for path in golden.glob("sdsc_*.json"):
        path.write_text(path.read_text().replace('"0_add"', '"5_add"').replace('"1_mul"', '"6_mul"'))
    check(bundle, semantic=True)
    with pytest.raises(pytest.fail.Exception, match="the same in meaning"):
        check(bundle)


def hook() -> dict[str, str]:
    """Return the members of the hook, which are one line each."""
    lines = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8").splitlines()
    pairs = (line.removeprefix("- ").strip().partition(": ") for line in lines if not line.startswith("#"))
    return {key: value for key, _, value in pairs}


def test_as_a_hook(project: Path, shell: Shell) -> None:
    """What pre-commit runs: the entry with the arguments of the page, and the files that the patterns choose."""
    found = hook()
    page = blocks("yaml")[0]
    assert f"id: {found['id']}" in page
    arguments = re.findall(r"args: \[(.*)\]", page)[0]
    shell("python -m spyrec.golden_check --update-goldens --cores=16 model/graph.json")
    files = [path.relative_to(project).as_posix() for path in sorted(project.rglob("*.json"))]
    chosen = [name for name in files if re.search(found["files"], name) and not re.search(found["exclude"], name)]
    assert chosen == ["model/graph.json"]
    command = f"{found['entry']} {arguments} {' '.join(chosen)}"
    same = shell(command)
    assert (same.code, same.out) == (0, "")
    change(project)
    differs = shell(command)
    assert differs.code == 1
    assert "is sub instead of add, in 0 add" in differs.out
    mended = "spyrec compile model/graph.json --golden model/golden --cores 16 --update-golden"
    assert mended in differs.out
    assert shell(mended).code == 0
    assert shell(command).code == 0


def test_in_a_workflow(project: Path, shell: Shell) -> None:
    """What a runner runs behind the installation, in a repository."""
    (install, check) = re.findall(r"- run: (.*)", blocks("yaml")[1])
    assert install == "pip install spyrec"
    listing, command = check.split(" | xargs ")
    shell("python -m spyrec.golden_check --update-goldens --cores=16 model/graph.json")
    subprocess.run(["sh", "-c", "git init -q . && git add -A"], cwd=project, check=True)
    files = subprocess.run(
        ["sh", "-c", listing], cwd=project, check=True, capture_output=True, text=True
    ).stdout.split()
    assert files == ["model/graph.json"]
    assert shell(f"{command} {' '.join(files)}").code == 0
    change(project)
    differs = shell(f"{command} {' '.join(files)}")
    assert differs.code == 1
    assert "is sub instead of add, in 0 add" in differs.out


def test_a_refused_graph_is_told_and_the_others_are_held_all_the_same(project: Path, shell: Shell) -> None:
    (project / "other").mkdir()
    (project / "other" / "graph.json").write_text("{")
    (project / "other" / "golden").mkdir()
    written = shell("python -m spyrec.golden_check --update-goldens other/graph.json model/graph.json")
    assert written.code == 1
    assert "SPY0101" in written.err
    assert written.out == "model/golden: written\n"


def test_what_is_not_compared_is_named(project: Path, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    without = shell("python -m spyrec.golden_check model/graph.json")
    assert (without.code, without.out) == (0, "")
    assert "model/graph.json: not compared, there is no model/golden" in without.err
    with pytest.raises(SystemExit) as caught:
        shell("python -m spyrec.golden_check model/graf.json")
    assert caught.value.code == 2
    assert "no file model/graf.json" in capsys.readouterr().err
