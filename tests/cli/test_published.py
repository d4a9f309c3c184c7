"""``spyrec examples`` and ``spyrec schema``: what comes along, from a checkout and from an installation alike."""

from __future__ import annotations

import itertools
import json
import runpy
import tomllib
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import cast

import pytest

from spyrec.cli import _published as published
from spyrec.cli import main
from spyrec.diagnostics.codes import CODES

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if (path / "README.md").is_file())
SCHEMAS = sorted(path.name.removesuffix(".schema.json") for path in (ROOT / "schemas").glob("*.json"))


def _install(target: Path) -> None:
    """Put into ``target`` what the build of a wheel puts beside the package."""
    build = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
    cast("Callable[[Path], object]", build["copy_published"])(target)


@pytest.fixture(params=["checkout", "installation"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "installation":
        package = tmp_path / "site" / "spyrec"
        _install(package)
        monkeypatch.setattr(published, "PACKAGE", package)
    return request.param


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("home")
def test_every_example_is_listed_with_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == EXAMPLES
    for name, line in zip(EXAMPLES, lines, strict=True):
        title = (ROOT / "examples" / name / "README.md").read_text().splitlines()[0].removeprefix("# ")
        assert line.endswith(title)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.usefixtures("home")
def test_an_example_is_copied_whole_but_for_its_golden_bundle(name: str, tmp_path: Path) -> None:
    assert main(["examples", name, "-o", str(tmp_path / "copy")]) == 0
    committed = {
        path: content
        for path, content in _files(ROOT / "examples" / name).items()
        if not any(part in ("golden", "bundle", "__pycache__") or part[0] == "." for part in path.split("/"))
        and not path.endswith((".trace.json", ".pyc"))
    }
    assert _files(tmp_path / "copy") == committed


@pytest.mark.usefixtures("home")
def test_a_copied_example_is_a_graph_with_its_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", "digits", "-o", str(tmp_path / "digits")]) == 0
    assert main(["check", str(tmp_path / "digits" / "graph.json")]) == 0
    assert "6 nodes: ok" in capsys.readouterr().out


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.usefixtures("home")
def test_a_schema_is_printed_as_it_is_published(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", name]) == 0
    text = capsys.readouterr().out
    assert text == (ROOT / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")
    assert json.loads(text)["$schema"]


@pytest.mark.usefixtures("home")
def test_every_schema_is_listed_with_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    lines = [line.split(None, 1) for line in capsys.readouterr().out.splitlines()]
    titles = [json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text())["title"] for name in SCHEMAS]
    assert lines == [[name, title] for name, title in zip(SCHEMAS, titles, strict=True)]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["examples", "digit", "-o", "copy"], "did you mean digits?"),
        (["examples", "..", "-o", "copy"], 'no example is named ".."'),
        (["examples", "digits"], "--output"),
        (["examples", "-o", "copy"], "NAME"),
        (["schema", "graphs"], "did you mean graph?"),
    ],
)
def test_a_wrong_name_is_a_usage_error(
    arguments: list[str], hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert hint in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_exists_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("mine")
    assert main(["examples", "digits", "-o", str(tmp_path)]) == 1
    assert "SPY0149" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [kept]


def test_a_directory_that_cannot_be_made_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", "digits", "-o", str(tmp_path / "no" / "where")]) == 1
    assert "SPY0613" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["examples"], ["schema"], ["schema", "graph"]])
def test_an_installation_without_them_says_so(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site" / "examples").mkdir(parents=True)  # another package's
    (tmp_path / "site" / "schemas").mkdir()
    monkeypatch.setattr(published, "PACKAGE", tmp_path / "site" / "spyrec")
    assert main(arguments) == 1
    assert "SPY0148" in capsys.readouterr().err


def test_hints_name_what_an_installation_has() -> None:
    hints = {code: str(row.hint) for code, row in CODES.items()}
    assert {code: hint for code, hint in hints.items() if "schemas/" in hint} == {}
    named = [hint.split("`spyrec schema ")[1].split("`")[0] for hint in hints.values() if "`spyrec schema " in hint]
    assert len(named) >= 4
    assert set(named) <= set(SCHEMAS)


COMPILED = ("a.nbi", "a.nbc", "a.kernel", "a.so", "a.o", "a.pyd", "a.pyc")


def test_nothing_that_was_compiled_for_one_processor_goes_into_a_wheel() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    taken = [*itertools.chain(*settings["package-data"].values(), *settings["data-files"].values())]
    assert "py.typed" in taken
    assert [(name, pattern) for name in COMPILED for pattern in taken if fnmatch(name, pattern)] == []
    (line,) = (line for line in (ROOT / "MANIFEST.in").read_text().splitlines() if line.startswith("global-exclude "))
    assert all(any(fnmatch(name, pattern) for pattern in line.split()[1:]) for name in COMPILED)
    handed_out = [file.name for kind in ("examples", "schemas") for file in published.published_files(ROOT / kind)]
    assert handed_out
    assert not {Path(name).suffix for name in handed_out} & {Path(name).suffix for name in COMPILED}
