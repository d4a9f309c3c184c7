"""The structural diff: nothing for equal bundles, exactly the planted differences otherwise, and its verb."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec.bundle import known_texts
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.program import Program
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.cli import main
from spyrec.compare import diff as diff_module
from spyrec.compare.bundle_diff import BundleDiff, diff_directories
from spyrec.compare.diff import Alike, Difference, DifferenceKind, diff_bundles, diff_json, diff_programs
from spyrec.compare.diff_report import to_json, to_json_text
from spyrec.diagnostics import SpyrecError
from tests.foreign import EXAMPLES, argument_table, copy_example
from tests.handmade import add_bundle

Json = Any

CASES = sorted(path.parent.name for path in EXAMPLES.glob("*/bundle.mlir"))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    bundle = add_bundle(tmp_path)
    for side in ("a", "b"):
        bundle.save(tmp_path / side)
    return tmp_path / "a", tmp_path / "b"


@pytest.mark.parametrize("case", CASES)
def test_a_bundle_does_not_differ_from_itself_however_it_is_written(case: str, tmp_path: Path) -> None:
    copy = copy_example(case, tmp_path)
    for path in copy.glob("sdsc_*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()), indent=1, sort_keys=True))
    program = copy / "bundle.mlir"
    program.write_text("// rewritten\n" + program.read_text().replace("\t", "  "))
    (copy / "notes.txt").write_text("belongs to no bundle")
    assert diff_bundles(EXAMPLES / case, copy) == []


def edit(path: Path, change: Callable[[Json], None]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_a_changed_value_is_reported_at_its_pointer_once(pair: tuple[Path, Path]) -> None:
    left, right = pair

    def change(content: Json) -> None:
        content["0_add"]["numWkSlicesPerDim_"]["mb"] = 16

    edit(right / "sdsc_0.json", change)
    pointer = "/0_add/numWkSlicesPerDim_/mb"
    assert diff_bundles(left, right) == [Difference("sdsc_0.json", pointer, DifferenceKind.CHANGED, "32", "16")]
    assert diff_bundles(right, left) == [Difference("sdsc_0.json", pointer, DifferenceKind.CHANGED, "16", "32")]


def test_missing_members_items_and_files_are_on_one_side_only(pair: tuple[Path, Path]) -> None:
    left, right = pair

    def change(content: Json) -> None:
        del content["0_add"]["coreIdToWkSlice_"]["5"]
        content["0_add"]["dscs_"].append({"a/b": 1})

    edit(right / "sdsc_0.json", change)
    (right / "dci" / "t0.h2d.json").unlink()
    (right / "graph.json").write_text("{}")
    assert [(item.file, item.place, item.kind) for item in diff_bundles(left, right)] == [
        ("dci/t0.h2d.json", "", DifferenceKind.ONLY_LEFT),
        ("graph.json", "", DifferenceKind.ONLY_RIGHT),
        ("sdsc_0.json", "/0_add/coreIdToWkSlice_/5", DifferenceKind.ONLY_LEFT),
        ("sdsc_0.json", "/0_add/dscs_/1", DifferenceKind.ONLY_RIGHT),
    ]


def test_numbers_texts_and_flags_are_three_things() -> None:
    assert len(diff_json("f", {"a": 1, "b": 1, "c": "1", "d": 0}, {"a": 1.0, "b": True, "c": 1, "d": False})) == 4


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "a/b~c"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c/d"]), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150)
@given(JSON, JSON)
def test_two_values_have_no_differences_exactly_when_they_are_equal(left: Json, right: Json) -> None:
    forward, backward = diff_json("f", left, right), diff_json("f", right, left)
    assert (forward == []) == (json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True))
    assert {(item.place, item.left, item.right) for item in forward} == {
        (item.place, item.right, item.left) for item in backward
    }


WIDE = st.dictionaries(
    st.sampled_from([str(number) for number in range(40)]),
    st.sampled_from([0, 1, 1.0, -0.0, True, "a", {"0": 1}, {"0": 1.0}, [1], [True]]),
    min_size=14,
)


@settings(max_examples=60)
@given(st.lists(st.tuples(WIDE, WIDE), min_size=1, max_size=3), st.data())
def test_what_is_looked_up_is_what_would_be_found(pairs: list[tuple[Json, Json]], data: st.DataObject) -> None:
    alike = Alike()
    for number in range(4):
        left, right = data.draw(st.sampled_from(pairs))
        content: tuple[Json, Json] = {"mb": {"data_": left}, "x": [left]}, {"mb": {"data_": right}, "x": [right]}
        assert diff_json(f"f{number}", *content, alike) == diff_json(f"f{number}", *content)


def test_superdscs_that_are_alike_differ_each_at_its_own_places(tmp_path: Path) -> None:
    for name, cores in (("left", 32), ("right", 16)):
        spyrec.compile(chain(12), spyrec.CompileOptions(cores=cores)).save(tmp_path / name)
    left, right = tmp_path / "left", tmp_path / "right"
    found = [item for item in diff_bundles(left, right) if item.file.startswith("sdsc_")]
    expected: list[Difference] = []
    for path in sorted(left.glob("sdsc_*.json")):
        sides = [json.loads((side / path.name).read_bytes()) for side in (left, right)]
        expected += diff_json(path.name, *sides)
    assert found == expected


def chain(length: int) -> Json:
    """Return a graph of additions one after the other."""
    names = ["a", *(f"y{number}" for number in range(length))]
    nodes = [{"name": names[k + 1], "op": "add", "inputs": [names[k], "b"]} for k in range(length)]
    inputs = [{"name": name, "shape": [64, 128], "dtype": "float16"} for name in "ab"]
    return {"format": "spyrec.graph/1", "inputs": inputs, "nodes": nodes, "outputs": [names[-1]]}


def test_a_program_is_parsed_once_for_each_side(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = pair
    text = (right / "bundle.mlir").read_text()
    (right / "bundle.mlir").write_text(f"// other bytes\n{text}")
    (left / "bundle.mlir").write_text(f"// nobody else's bytes\n{text}")
    path = right / "sdsc_0.json"
    path.write_text(path.read_text().replace('"32"', '"31"'))
    parsed: list[bytes] = []

    def counted(given: bytes, file: str | None = None) -> Program:
        parsed.append(given)
        return parse_program(given, file)

    monkeypatch.setattr(known_texts, "parse_program", counted)
    for is_semantic in (False, True):
        parsed.clear()
        diff_directories(left, right, is_semantic=is_semantic)
        assert len(parsed) == 2


def test_bundles_without_manifest_are_told_by_the_names_of_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = copy_example("add", tmp_path)
    right = tmp_path / "right"
    shutil.copytree(left, right)
    table = tmp_path / "args.json"
    table.write_text(json.dumps(argument_table("add")))
    path = right / "sdsc_0.json"
    dsc = parse_superdsc(path.read_bytes())
    first, *others = dsc.operands
    turned = replace(first, layout_dim_order=tuple(reversed(first.layout_dim_order)))
    path.write_bytes(to_bytes(replace(dsc, operands=(turned, *others))))
    both = [str(left), str(right)]
    assert main(["diff", "--semantic", *both, "--args", str(table)]) == 1
    assert "  t0 is laid out [" in capsys.readouterr().out
    assert main(["diff", "--semantic", *both]) == 1
    assert "t0" not in capsys.readouterr().out
    other = tmp_path / "other.json"
    content = argument_table("add")
    content["arguments"][0]["name"] = "first"
    other.write_text(json.dumps(content))
    assert main(["diff", *both, "--args", str(table), "--args", str(other)]) == 1
    assert "first is an argument of the right side only" in capsys.readouterr().out
    assert main(["diff", *both, *(["--args", str(table)] * 3)]) == 2
    assert main(["diff", "--semantic", str(left), str(left), "--args", str(table)]) == 0
    capsys.readouterr()


def test_a_table_stands_beside_a_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = add_bundle(tmp_path)
    bundle.save(tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "bare")
    manifest = json.loads((tmp_path / "bare" / "manifest.json").read_text())
    (tmp_path / "bare" / "manifest.json").unlink()
    keys = ("name", "role", "arg_index", "address", "device_size", "device_dtype")
    arguments = [{key: item[key] for key in keys} for item in manifest["arguments"]]
    table = tmp_path / "args.json"
    content = {"format": "spyrec.args/1", "pool_bytes": 0, "arguments": arguments}
    table.write_text(json.dumps(content))
    both = [str(tmp_path / "whole"), str(tmp_path / "bare")]
    assert main(["diff", "--semantic", *both, "--args", str(table)]) == 0, capsys.readouterr().out
    assert main(["diff", "--semantic", both[0], both[0], "--args", str(table)]) == 2
    assert "both have one" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["plain", "\x7f", "\u00e9", "\ud800", '\b\f\n\x01 \\ " /'])
def test_the_object_is_the_standard_library_s(text: str) -> None:
    found = BundleDiff((), (Difference("f", text, DifferenceKind.CHANGED, text, None),), is_semantic=False)
    assert to_json_text(found) == json.dumps(to_json(found), indent=2)


def test_an_inserted_statement_is_one_difference_and_shifts_nothing() -> None:
    text = (EXAMPLES / "nested_loop_symbolic" / "bundle.mlir").read_text()
    line = "\t\t%arg_9_core_offset_1 = arith.constant 1 : index\n"
    lines = text.splitlines(keepends=True)
    inserted = "".join([*lines[:100], line, *lines[100:]])
    assert diff_programs("bundle.mlir", text.encode(), inserted.encode()) == [
        Difference("bundle.mlir", "statement 101", DifferenceKind.ONLY_RIGHT, None, line.strip())
    ]
    changed = text.replace("-33, -34", "-33, -99")
    (found,) = diff_programs("bundle.mlir", text.encode(), changed.encode())
    assert found.kind is DifferenceKind.CHANGED
    assert found.left is not None
    assert found.right is not None
    assert "-34" in found.left
    assert "-99" in found.right


def test_a_damaged_file_differs_as_a_whole(pair: tuple[Path, Path]) -> None:
    left, right = pair
    (right / "bundle.mlir").write_text("no program")
    (right / "sdsc_0.json").write_text("{")
    found = diff_bundles(left, right)
    assert [(item.file, item.place, item.kind) for item in found] == [
        ("bundle.mlir", "", DifferenceKind.CHANGED),
        ("sdsc_0.json", "", DifferenceKind.CHANGED),
    ]


def test_what_is_no_bundle_or_leaves_its_directory_is_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    left, right = pair
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpyrecError, match="SPY0601"):
        diff_bundles(left, tmp_path / "empty")
    (right / "sdsc_1.json").symlink_to("/etc/hostname")
    with pytest.raises(SpyrecError, match="SPY0603"):
        diff_bundles(left, right)


def test_the_verb_gates_on_differences(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    left, right = map(str, pair)
    assert main(["diff", left, right]) == 0
    assert capsys.readouterr().out == "no differences\n"

    def change(content: Json) -> None:
        content["0_add"]["numWkSlicesPerDim_"]["mb"] = 16

    edit(pair[1] / "sdsc_0.json", change)
    assert main(["diff", left, right, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    first, warned = found.pop("changes")
    assert (first["topic"], first["what"]) == ("divisions", "mb is in 16 parts instead of 32, in 0 add")
    assert warned["topic"] == "files"  # and what the file repeats of its slices is wrong now
    assert found == {
        "format": "spyrec.diff/1",
        "equal": False,
        "semantic": False,
        "topics": {"divisions": 1, "files": 1},
        "files": {"sdsc_0.json": 1},
        "differences": [
            {
                "file": "sdsc_0.json",
                "place": "/0_add/numWkSlicesPerDim_/mb",
                "kind": "changed",
                "left": "32",
                "right": "16",
            }
        ],
    }
    assert main(["diff", left, right, "--stat"]) == 1
    assert capsys.readouterr().out == (
        "     1  divisions\n     1  files\n     1  sdsc_0.json\n1 difference in 1 file\n"
    )
    assert main(["diff", left, right]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["divisions", "  mb is in 16 parts instead of 32, in 0 add"]
    place = lines.index("")
    assert lines[place + 1 : place + 4] == ["sdsc_0.json  /0_add/numWkSlicesPerDim_/mb", "  - 32", "  + 16"]
    (pair[1] / "sdsc_0.json").write_text("{")
    assert main(["diff", left, right]) == 1
    assert capsys.readouterr().out.startswith("what changed cannot be told in words: ")
    assert main(["diff", left, right, "--semantic"]) == 1
    assert "SPY0101" in capsys.readouterr().err
    assert main(["diff", left, "absent"]) == 2


def test_words_come_first_and_the_same_in_meaning_is_said(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    left, right = pair

    def rename(content: Json) -> None:
        content["7_add"] = content.pop("0_add")

    edit(right / "sdsc_0.json", rename)
    assert main(["diff", str(left), str(right)]) == 1
    assert capsys.readouterr().out.startswith(
        "the same in meaning: names, numbers of files and repeated fields differ\n\n"
    )
    assert main(["diff", str(left), str(right), "--semantic"]) == 0
    assert capsys.readouterr().out == "no differences in meaning\n"

    def shift(content: Json) -> None:
        node = content["7_add"]["dscs_"][0]["add"]["scheduleTree_"][1]
        node["startAddressCoreCorelet_"]["data_"]["[3, 0, 0]"] = str(17179869184 + 3 * 4096 + 4096)

    edit(right / "sdsc_0.json", shift)
    assert main(["diff", str(left), str(right), "--semantic"]) == 1
    said = ["addresses", "  t1 starts 4,096 bytes later on core 3, in 0 add", "1 change in meaning"]
    assert capsys.readouterr().out.splitlines() == said
    assert main(["diff", str(left), str(right), "--stat", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["topics"], "changes" in found) == ({"addresses": 1}, False)


@pytest.fixture
def weighty(tmp_path: Path) -> Path:
    """A bundle with constants."""
    graph = {
        "format": "spyrec.graph/1",
        "inputs": [{"name": "x", "shape": [4], "dtype": "float16"}],
        "constants": [{"name": "w", "shape": [4], "dtype": "float16", "value": [1, 2, 3, 4]}],
        "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
        "outputs": ["y"],
    }
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    spyrec.compile(graph).save(tmp_path / "fresh")
    return tmp_path / "fresh"


def test_a_golden_bundle_may_leave_out_its_constants_and_guards_them_all_the_same(
    weighty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = tmp_path / "golden"
    shutil.copytree(weighty, golden)
    (golden / "constants.safetensors").unlink()
    assert diff_bundles(golden, weighty) == diff_bundles(weighty, golden) == []
    assert main(["diff", str(golden), str(weighty)]) == 0
    assert main(["compile", str(tmp_path / "graph.json"), "--golden", str(golden)]) == 0
    constants = weighty / "constants.safetensors"
    content = bytearray(constants.read_bytes())
    content[-1] ^= 1
    constants.write_bytes(content)
    (difference,) = diff_bundles(golden, weighty)
    assert (difference.file, difference.kind) == ("constants.safetensors", DifferenceKind.CHANGED)
    capsys.readouterr()


def test_changed_constants_show_through_the_hash_once(weighty: Path, tmp_path: Path) -> None:
    golden = tmp_path / "golden"
    shutil.copytree(weighty, golden)
    (golden / "constants.safetensors").unlink()

    def change(content: Json) -> None:
        content["files"]["constants.safetensors"] = "0" * 64

    edit(golden / "manifest.json", change)
    assert [item.file for item in diff_bundles(golden, weighty)] == ["constants.safetensors"]


def test_constants_that_a_manifest_does_not_know_are_no_left_out_constants(weighty: Path, tmp_path: Path) -> None:
    golden = tmp_path / "golden"
    shutil.copytree(weighty, golden)
    (golden / "constants.safetensors").unlink()

    def change(content: Json) -> None:
        del content["files"]["constants.safetensors"]

    edit(golden / "manifest.json", change)
    assert ("constants.safetensors", DifferenceKind.ONLY_RIGHT) in {
        (item.file, item.kind) for item in diff_bundles(golden, weighty)
    }


@pytest.fixture
def terse(weighty: Path, tmp_path: Path) -> Path:
    """A golden bundle that leaves out what nobody reads."""
    golden = tmp_path / "golden"
    shutil.copytree(weighty, golden)
    names = ["sdsc_0.json", "spyreCodeDir/init.bin", "dci/x.h2d.json"]
    for name in names:
        (golden / name).unlink()
    (golden / "left_out.txt").write_text("".join(f"{name}\n" for name in names))
    return golden


def flip_last(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_a_golden_bundle_may_leave_out_what_it_lists(weighty: Path, terse: Path, tmp_path: Path) -> None:
    assert diff_bundles(terse, weighty) == diff_bundles(weighty, terse) == []
    assert main(["compile", str(tmp_path / "graph.json"), "--golden", str(terse)]) == 0


@pytest.mark.parametrize("name", ["sdsc_0.json", "spyreCodeDir/init.bin", "dci/x.h2d.json"])
def test_a_changed_byte_of_a_left_out_file_is_one_difference(weighty: Path, terse: Path, name: str) -> None:
    flip_last(weighty / name)
    for sides in ((terse, weighty), (weighty, terse)):
        assert [(item.file, item.kind) for item in diff_bundles(*sides)] == [(name, DifferenceKind.CHANGED)]


def test_a_left_out_image_does_not_repeat_that_its_program_differs(weighty: Path, terse: Path) -> None:
    flip_last(weighty / "spyreCodeDir" / "init.bin")
    edit(weighty / "manifest.json", lambda content: content.update(name="other"))
    assert [item.file for item in diff_bundles(terse, weighty)] == ["manifest.json", "spyreCodeDir/init.bin"]
    flip_last(weighty / "sdsc_0.json")
    assert [item.file for item in diff_bundles(terse, weighty)] == ["manifest.json", "sdsc_0.json"]


def test_words_are_told_of_golden_bundles_that_leave_files_out(
    weighty: Path, terse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What both have is read from the other side; of what differs and is left out, only the name is known."""
    assert main(["diff", str(terse), str(weighty), "--semantic"]) == 0
    edit(weighty / "manifest.json", lambda content: content["target"].update(lx_bytes=1 << 20))
    capsys.readouterr()
    assert main(["diff", str(terse), str(weighty), "--semantic"]) == 1
    said = ["options", "  target lx bytes 1,048,576 instead of 2,097,152", "1 change in meaning"]
    assert capsys.readouterr().out.splitlines() == said
    with (weighty / "sdsc_0.json").open("a") as stream:
        stream.write("\n")
    for sides in ((terse, weighty), (weighty, terse)):
        assert main(["diff", *map(str, sides)]) == 1
        text = capsys.readouterr().out
        assert "target lx bytes" in text
        assert "sdsc_0.json is left out on one side and differs" in text


def test_a_file_that_is_missing_without_being_listed_or_hashed_is_a_difference(weighty: Path, terse: Path) -> None:
    (terse / "bundle.mlir").unlink()
    assert [(item.file, item.kind) for item in diff_bundles(terse, weighty)] == [
        ("bundle.mlir", DifferenceKind.ONLY_RIGHT)
    ]
    (terse / "left_out.txt").write_text("bundle.mlir\n")

    def forget(content: Json) -> None:
        del content["files"]["bundle.mlir"]

    edit(terse / "manifest.json", forget)
    assert ("bundle.mlir", DifferenceKind.ONLY_RIGHT) in {
        (item.file, item.kind) for item in diff_bundles(terse, weighty)
    }


def test_a_list_of_left_out_files_is_read_safely(weighty: Path, terse: Path) -> None:
    (terse / "left_out.txt").unlink()
    (terse / "left_out.txt").symlink_to("/dev/zero")
    with pytest.raises(SpyrecError, match="SPY060"):
        diff_bundles(terse, weighty)


def test_a_value_that_many_files_have_alone_is_written_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is equal to Python and not to JSON keeps its own text."""
    tables: list[Json] = [{"a": list(range(200))}, {"a": [1]}, {"a": [1.0]}, {"a": [True]}]
    plain = [diff_json("f", {}, {"t": table}) for table in tables]
    written: list[Json] = []
    shown: Callable[[Json], str] = diff_module._shown  # pyright: ignore[reportPrivateUsage]

    def written_out(value: Json) -> str:
        written.append(value)
        return shown(value)

    monkeypatch.setattr(diff_module, "_shown", written_out)
    alike = Alike()
    for _ in range(3):
        assert [diff_json("f", {}, {"t": table}, alike) for table in tables] == plain
    assert written == tables
