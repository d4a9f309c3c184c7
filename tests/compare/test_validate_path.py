"""``spyrec check``: the kind by content, all problems, profiles, summary and JSON."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from spyrec.cli import main
from spyrec.compare.validate_path import CheckOptions, ContentKind, FormatProfile, validate_path
from tests.foreign import EXAMPLES, copy_example
from tests.handmade import add_bundle

Json = Any

GRAPH = {
    "format": "spyrec.graph/1",
    "name": "g",
    "inputs": [{"name": "a", "shape": [2, 3], "dtype": "float16"}],
    "nodes": [{"name": "y", "op": "exp", "inputs": ["a"]}],
    "outputs": ["y"],
}


def codes(path: Path, options: CheckOptions | None = None) -> list[str]:
    return [item.code for item in validate_path(path, options).diagnostics]


@pytest.mark.parametrize("case", sorted(path.parent.name for path in EXAMPLES.glob("*/bundle.mlir")))
def test_every_reference_bundle_and_each_of_its_superdscs_passes(case: str) -> None:
    verdict = validate_path(EXAMPLES / case)
    assert (verdict.kind, verdict.diagnostics) == (ContentKind.BUNDLE, ())
    assert validate_path(EXAMPLES / case / "sdsc_0.json").diagnostics == ()


def test_the_kind_is_decided_by_content_and_not_by_name(tmp_path: Path) -> None:
    sources = {
        ContentKind.SUPERDSC: (EXAMPLES / "add" / "sdsc_0.json").read_text(),
        ContentKind.OPSPECS: (EXAMPLES / "add" / "opspecs.json").read_text(),
        ContentKind.PROGRAM: (EXAMPLES / "add_symbolic" / "bundle.mlir").read_text(),
        ContentKind.GRAPH: json.dumps(GRAPH),
    }
    for kind, text in sources.items():
        path = tmp_path / "thing.txt"
        path.write_text(text)
        verdict = validate_path(path)
        assert (verdict.kind, verdict.is_ok) == (kind, True), verdict


def test_files_of_a_bundle_are_checked_by_themselves(tmp_path: Path) -> None:
    add_bundle(tmp_path).save(tmp_path / "out")
    manifest, table = tmp_path / "out" / "manifest.json", tmp_path / "out" / "dci" / "t0.h2d.json"
    assert [validate_path(path).kind for path in (manifest, table)] == [ContentKind.MANIFEST, ContentKind.CONVERSION]
    assert [validate_path(path).diagnostics for path in (manifest, table)] == [(), ()]
    said = json.loads(manifest.read_text())
    said["plan"][0]["arguments"][1] = "t9"
    manifest.write_text(json.dumps(said))
    table.write_text(table.read_text().replace('"isHostToSen_"', '"isHostToSent_"'))
    assert [codes(path) for path in (manifest, table)] == [["SPY0611"], ["SPY0316"]]


def test_a_bundle_with_manifest_is_checked_with_its_table(tmp_path: Path) -> None:
    add_bundle(tmp_path).save(tmp_path / "out")
    assert codes(tmp_path / "out") == []
    content = json.loads((tmp_path / "out" / "sdsc_0.json").read_text())
    content["0_add"]["dscs_"][0]["add"]["scheduleTree_"][0]["startAddressCoreCorelet_"]["data_"]["[3, 0, 0]"] = "64"
    (tmp_path / "out" / "sdsc_0.json").write_text(json.dumps(content))
    assert codes(tmp_path / "out") == ["SPY0602"]


def test_all_problems_of_all_files_are_reported(tmp_path: Path) -> None:
    copy = copy_example("layernorm", tmp_path)
    for number, (old, new) in enumerate([('"hbm"', '"l3"'), ('"Inner"', '"Outer"'), ('"coreIdsUsed_"', '"cores"')]):
        path = copy / f"sdsc_{number}.json"
        path.write_text(path.read_text().replace(old, new))
    verdict = validate_path(copy)
    by_file = {(Path(item.location.file).name, item.code) for item in verdict.diagnostics if item.location
               and item.location.file}  # fmt: skip
    assert {("sdsc_0.json", "SPY0621"), ("sdsc_1.json", "SPY0623"), ("sdsc_2.json", "SPY0620")} <= by_file
    assert not verdict.is_ok


def test_rules_of_the_executor_are_checked_on_a_lone_file(tmp_path: Path) -> None:
    content: Json = json.loads((EXAMPLES / "add" / "sdsc_0.json").read_text())
    stage = content["0_add"]["dscs_"][0]["add"]["dataStageParam_"]["0"]
    stage["ss_"]["mb_"] = stage["el_"]["mb_"] = 31
    path = tmp_path / "sdsc_0.json"
    path.write_text(json.dumps(content))
    assert "SPY0712" in codes(path)


def test_the_profiles_differ_where_writer_and_public_schema_do(tmp_path: Path) -> None:
    spec = CheckOptions(FormatProfile.SPEC)
    gather, cast = EXAMPLES / "indirect_gather_1d" / "sdsc_0.json", EXAMPLES / "dtype_cast" / "sdsc_0.json"
    assert codes(EXAMPLES / "add" / "sdsc_0.json", spec) == []
    assert (codes(gather), codes(gather, spec)) == ([], ["SPY0625"] * 3)
    assert (codes(cast), codes(cast, spec)) == ([], ["SPY0625"])
    content = json.loads((EXAMPLES / "add" / "sdsc_0.json").read_text())
    del content["0_add"]["sdscFolds_"]
    path = tmp_path / "sdsc_0.json"
    path.write_text(json.dumps(content))
    verdict = validate_path(path)
    assert ([item.code for item in verdict.diagnostics], verdict.is_ok) == (["SPY0624"], True)
    assert codes(path, spec) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [("{}", "SPY0820"), ('{"format": "spyrec.thing/1"}', "SPY0820"), ("[1]", "SPY0820"), ("{", "SPY0101"),
     ("\x00\xff", "SPY0101"), (None, "SPY0820")],
)  # fmt: skip
def test_what_can_not_be_checked_has_a_verdict_too(
    text: str | None, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "thing"
    if text is None:
        path.mkdir()
    else:
        path.write_text(text, encoding="latin-1")
    assert codes(path) == [code]
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out == f"{path}: unknown: 1 error\n"
    assert main(["check", str(path), "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["kind"], verdict["ok"], verdict["errors"]) == ("unknown", False, 1)
    assert [item["code"] for item in verdict["diagnostics"]] == [code]


def test_the_verb_prints_a_summary_or_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = EXAMPLES / "add" / "sdsc_0.json"
    assert main(["check", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{path}: SuperDSC: add on 32 cores, 3 operands: ok\n"
    assert captured.err == ""
    broken = tmp_path / "sdsc_0.json"
    broken.write_text(path.read_text().replace('"wordLength": 2', '"wordLength": "two"'))
    assert main(["check", str(broken), "--json"]) == 1
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert (result["format"], result["ok"], result["errors"]) == ("spyrec.check/1", False, 3)
    assert captured.err.count("error[SPY0620]") == 3
    assert main(["check", str(broken)]) == 1
    assert capsys.readouterr().out == f"{broken}: SuperDSC: 3 errors\n"
    assert main(["check", str(tmp_path / "absent")]) == 2


@pytest.mark.parametrize("case", ["add_symbolic", "nested_loop_symbolic"])
def test_mlir_itself_is_asked_or_the_missing_extra_is_named(case: str) -> None:
    expected = [] if find_spec("torch_mlir") else ["SPY0821"]
    assert codes(EXAMPLES / case / "bundle.mlir", CheckOptions(with_mlir=True)) == expected


TABLES = EXAMPLES.parent / "examples_args"


def test_an_argument_table_stands_for_a_manifest(capsys: pytest.CaptureFixture[str]) -> None:
    """Arguments of a bundle of others are held against its programs; one that has other sizes is refused."""
    bundle = str(EXAMPLES / "sum_stick")
    right, other = (str(TABLES / f"{name}.device.json") for name in ("sum_stick", "pool_symbolic"))
    assert main(["check", bundle, "--args", right]) == 0
    assert '"sum_stick", 1 program, 1 SuperDSC: ok' in capsys.readouterr().out
    assert main(["check", bundle, "--args", other]) == 1
    assert 'contradict argument "t0", whose device_size is' in capsys.readouterr().err
    assert main(["check", f"{bundle}/sdsc_0.json", "--args", right]) == 2


def test_an_argument_table_is_checked_by_itself(tmp_path: Path) -> None:
    path = TABLES / "sum_stick.device.json"
    verdict = validate_path(path)
    assert (verdict.kind, verdict.summary, verdict.diagnostics) == (ContentKind.ARGUMENTS, "2 arguments", ())
    damaged = tmp_path / "table.json"
    damaged.write_text(path.read_text().replace('"arg_index": 1', '"arg_index": 0'))
    assert codes(damaged) == ["SPY0617"]


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"exUnit": "sfp"', '"exUnit": "pt"', "SPY0624"),
        ('"maskingConstId_": -1', '"maskingConstId_": 0', "SPY0623"),
        ('"maxDimSizes_": [\n                -1', '"maxDimSizes_": [\n                64', "SPY0623"),
    ],
)
def test_what_no_operation_computes_from_is_held_against_the_rest(
    tmp_path: Path, old: str, new: str, code: str
) -> None:
    copy = copy_example("add", tmp_path)
    replaced(copy / "sdsc_0.json", old, new)
    for path in (copy, copy / "sdsc_0.json"):
        verdict = validate_path(path)
        assert (verdict.is_ok, [item.code for item in verdict.diagnostics]) == (True, [code])


def test_a_misplaced_core_is_found_without_an_argument_table(tmp_path: Path) -> None:
    copy = copy_example("add_symbolic", tmp_path)
    assert codes(copy) == []
    before = "core_offset_4096 = arith.constant 4096 :"
    for number, found in ((4097, ["SPY0714", "SPY0715"]), (8192, ["SPY0714"])):
        after = before.replace("constant 4096", f"constant {number}")
        replaced(copy / "bundle.mlir", before, after)
        diagnostics = validate_path(copy).diagnostics
        assert [item.code for item in diagnostics] == found
        assert all("core 1, tensor arg_0, " in item.notes[0] for item in diagnostics)
        replaced(copy / "bundle.mlir", after, before)


def test_an_argument_with_another_number_contradicts_the_plan(tmp_path: Path) -> None:
    add_bundle(tmp_path).save(tmp_path / "out")
    manifest = tmp_path / "out" / "manifest.json"
    said = json.loads(manifest.read_text())
    said["arguments"][0]["arg_index"] = 1
    manifest.write_text(json.dumps(said))
    assert codes(manifest) == codes(tmp_path / "out") == ["SPY0611"]


def test_files_of_tensors_are_called_what_they_are(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.zeros(3))
    np.save(tmp_path / "x.npy", np.zeros(3))
    save_file({"a": np.zeros(3)}, tmp_path / "x.safetensors")
    for kind, words in (("npz", "zip archive"), ("npy", "an array"), ("safetensors", "tensors (.safetensors)")):
        (found,) = validate_path(tmp_path / f"x.{kind}").diagnostics
        assert found.code == "SPY0820"
        assert words in found.message
