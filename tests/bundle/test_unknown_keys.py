"""Keys that no reader knows: empty ones are named and ignored, others are refused; ``strict`` refuses both."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import spyrec
from spyrec import Bundle, SpyrecError
from spyrec.bundle.json_cursor import attempt
from spyrec.bundle.spyrecode import CODE_DIRECTORY
from spyrec.bundle.superdsc_reader import from_json, parse_superdsc
from spyrec.cli import main
from spyrec.compare.validate_path import CheckOptions, validate_path
from spyrec.diagnostics import DiagnosticSink, Severity

FIXTURES = Path(__file__).parent.parent / "fixtures"
CASES = [
    FIXTURES / "examples" / "sum_stick_masked",
    FIXTURES / "examples" / "slice_backgap",
    FIXTURES / "examples_2026_08" / "debug_handle",
    FIXTURES / "examples_2026_08" / "indirect_gather_1d",
    FIXTURES / "examples_2026_08" / "exp_masked",
]
NOTHINGS: list[object] = [{}, [], "", None, "{}"]
KEY = "keyOfTomorrow_"
FOLDS = ("Map", "Const")

Json = Any  # a JSON document that a test edits in place


def load(case: Path) -> Json:
    return json.loads((case / "sdsc_0.json").read_bytes())


def objects(value: Json, pointer: str = "") -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield every object of a document with its JSON pointer."""
    if isinstance(value, dict):
        mapping = cast("dict[str, Json]", value)
        yield pointer, mapping
        for key, member in mapping.items():
            yield from objects(member, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Json]", value)):
            yield from objects(item, f"{pointer}/{index}")


def places(case: Path) -> list[str]:
    """Return objects of a file, one of each kind, but fold functions: ``{"Map": {}}`` is a name and nothing else."""
    found = [pointer for pointer, found in objects(load(case)) if found not in ({}, *({kind: {}} for kind in FOLDS))]
    return list({re.sub(r"/([0-9]+|\[[0-9, ]+\])(?=/|$)", "/#", pointer): pointer for pointer in found}.values())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_empty_key_is_ignored_and_named_wherever_it_stands(case: Path) -> None:
    wanted = from_json(load(case))
    for number, pointer in enumerate(places(case)):
        data = load(case)
        dict(objects(data))[pointer][KEY] = NOTHINGS[number % len(NOTHINGS)]
        sink = DiagnosticSink()
        assert from_json(data, sink=sink) == wanted, pointer
        (found,) = sink.diagnostics
        assert found.code == "SPY0626", pointer
        assert found.severity is Severity.WARNING
        assert KEY in found.message
        assert found.location is not None
        assert found.location.pointer == f"{pointer}/{KEY}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_key_with_content_is_never_ignored(case: Path) -> None:
    for number, pointer in enumerate(places(case)):
        data = load(case)
        dict(objects(data))[pointer][KEY] = [1, {"a": 1}, [0], "x", False][number % 5]
        sink = DiagnosticSink()
        found = attempt(sink, lambda data=data, sink=sink: from_json(data, sink=sink))
        codes = {item.code for item in sink.diagnostics}
        # memory organisation and the like is compared, and decides nothing
        assert codes <= {"SPY0620", "SPY0621", "SPY0622"} if found is None else codes == {"SPY0623"}, pointer


def test_a_key_in_many_places_is_one_warning_that_counts_them() -> None:
    data = load(CASES[0])
    for _, found in objects(data["0_sum"]):
        if "ldsIdx_" in found:
            found[KEY] = {}
    sink = DiagnosticSink()
    from_json(data, sink=sink)
    (found,) = sink.diagnostics
    assert found.notes == ("it stands in 4 places of the file",)


def test_strict_makes_errors_of_them() -> None:
    data = load(CASES[0])
    data["0_sum"][KEY] = None
    parse_superdsc(json.dumps(data))
    sink = DiagnosticSink(refused={"SPY0626"})
    parse_superdsc(json.dumps(data), "sdsc_0.json", sink)
    assert [item.code for item in sink.errors] == ["SPY0626"]


def written(directory: Path, key: str, value: object) -> Path:
    """Write a case whose first file has one more key."""
    directory.mkdir()
    for path in CASES[2].iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    data = load(directory)
    data["0_add"]["dscs_"][0]["add"][key] = value
    (directory / "sdsc_0.json").write_text(json.dumps(data, indent=2))
    return directory


def test_check_names_them_and_refuses_them_if_strict(tmp_path: Path) -> None:
    bundle = written(tmp_path / "b", KEY, {})
    lenient = validate_path(bundle)
    assert lenient.is_ok, lenient.diagnostics
    assert [item.code for item in lenient.diagnostics] == ["SPY0626"]
    strict = validate_path(bundle, CheckOptions(strict=True))
    assert [(item.code, item.severity) for item in strict.diagnostics] == [("SPY0626", Severity.ERROR)]
    file = validate_path(bundle / "sdsc_0.json", CheckOptions(strict=True))
    assert [item.code for item in file.diagnostics] == ["SPY0626"]
    assert not file.is_ok


def compiled(directory: Path, value: object) -> Path:
    """Write a compiled bundle whose first file has one more key."""
    graph = {
        "format": "spyrec.graph/1",
        "name": "g",
        "inputs": [{"name": "x", "shape": [64, 64], "dtype": "float16"}],
        "nodes": [{"name": "y", "op": "neg", "inputs": ["x"]}],
        "outputs": ["y"],
    }
    spyrec.compile(graph).save(directory)
    data = load(directory)
    data["0_neg"][KEY] = value
    (directory / "sdsc_0.json").write_text(json.dumps(data, indent=2))
    return directory


def test_run_names_them_and_refuses_them_if_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = str(compiled(tmp_path / "b", None))
    arguments = ["run", bundle, "--random", "1", "--no-verify", "--check"]
    assert main(arguments) == 0
    assert "warning[SPY0626]" in capsys.readouterr().err
    assert main([*arguments, "--strict"]) == 1
    assert "error[SPY0626]" in capsys.readouterr().err
    assert main(["check", bundle, "--strict"]) == 1


def test_the_front_returns_them_and_refuses_them_if_strict(tmp_path: Path) -> None:
    directory = compiled(tmp_path / "b", {})
    manifest = json.loads((directory / "manifest.json").read_bytes())
    manifest["files"]["sdsc_0.json"] = hashlib.sha256((directory / "sdsc_0.json").read_bytes()).hexdigest()
    shutil.rmtree(directory / CODE_DIRECTORY)
    manifest["files"] = {
        name: digest for name, digest in manifest["files"].items() if not name.startswith(CODE_DIRECTORY)
    }
    (directory / "manifest.json").write_text(json.dumps(manifest))
    inputs = {"x": np.ones((64, 64), np.float16)}
    result = spyrec.run(directory, inputs)
    assert [item.code for item in result.warnings] == ["SPY0626"]
    assert float(result.outputs["y"][0, 0]) == -1.0
    with pytest.raises(SpyrecError, match="SPY0626"):
        spyrec.run(directory, inputs, spyrec.RunOptions(strict=True))
    with pytest.raises(SpyrecError, match="SPY0626"):
        Bundle.load(directory, strict=True)


def test_a_further_attribute_of_bundle_mlir_is_refused(tmp_path: Path) -> None:
    bundle = written(tmp_path / "b", KEY, {})
    text = (bundle / "bundle.mlir").read_text()
    (bundle / "bundle.mlir").write_text(text.replace('"symbol_ids"=', '"hint"="", "symbol_ids"=', 1))
    assert "SPY0631" in {item.code for item in validate_path(bundle).diagnostics}
