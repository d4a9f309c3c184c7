"""``spyrec inspect-layout``: facts, drawings, both directions of ``--at``, pictures; and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from spyrec.cli import main

GRAPH = {
    "format": "spyrec.graph/1",
    "name": "twice",
    "inputs": [{"name": "a", "shape": [3, 100], "dtype": "float16"}],
    "nodes": [{"name": "b", "op": "add", "inputs": ["a", "a"]}],
    "outputs": ["b"],
}

Capture = pytest.CaptureFixture[str]


def test_a_small_tensor_is_drawn_stick_by_stick(capsys: Capture) -> None:
    assert main(["inspect-layout", "--shape", "3,100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "SpyreTensorLayout(device_size=[2, 3, 64], stride_map =[64, 100, 1], device_dtype=DataFormats.SEN169_FP16)"
    )
    assert f"  [0, 2] |{'#' * 64}| [2, 0] .. [2, 63]" in lines
    assert f"  [1, 0] |{'#' * 36}{'.' * 28}| [0, 64] .. [0, 99]" in lines


def test_the_copy_loops_that_are_printed_do_the_copy(capsys: Capture) -> None:
    """The text is read as data: its loops are walked here and must move every element to its place."""
    assert main(["inspect-layout", "--shape", "3,100"]) == 0
    text = capsys.readouterr().out
    assert "for i in range(3):\n  for j in range(64):\n    device[64*i + j] = host[100*i + j]" in text
    assert "for i in range(3):\n  for j in range(36):\n    device[64*i + j + 192] = host[100*i + j + 64]" in text


def test_an_element_is_mapped_to_its_byte_and_back(capsys: Capture) -> None:
    shape = ["inspect-layout", "--shape", "5,100,150", "--json"]
    assert main([*shape, "--at", "3,17,140"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["at"]
    assert answer == {"tensor": "tensor", "index": [3, 17, 140], "device_coordinate": [17, 2, 3, 12], "byte": 34328}
    assert main([*shape, "--at-address", "0x8618"]) == 0
    assert json.loads(capsys.readouterr().out)["at"] == [answer]
    assert main([*shape, "--at-address", "34428"]) == 0
    assert json.loads(capsys.readouterr().out)["at"][0]["index"] is None


def test_every_dtype_and_the_sparse_and_scalar_forms_are_described(capsys: Capture) -> None:
    for arguments in (["--shape", ""], ["--shape", "7,1"], ["--shape", "5,6", "--dim-order", "0,1,-1"]):
        for dtype in ("float16", "float32", "bool", "int8", "int64", "float8_e4m3fn"):
            assert main(["inspect-layout", *arguments, "--dtype", dtype]) == 0
            assert "SpyreTensorLayout(" in capsys.readouterr().out


def test_the_picture_boxes_every_stick_and_colours_the_part_in_use(tmp_path: Path) -> None:
    picture = tmp_path / "layout.svg"
    assert main(["inspect-layout", "--shape", "3,100", "--svg", str(picture)]) == 0
    root = ET.fromstring(picture.read_text(encoding="utf-8"))
    sticks = root.findall("{http://www.w3.org/2000/svg}g")
    assert len(sticks) == 6
    widths = [float(stick[2].attrib["width"]) for stick in sticks]
    assert widths == [96] * 3 + [54] * 3
    assert list(tmp_path.iterdir()) == [picture]


def test_a_graph_and_its_bundle_show_the_same_tensors(tmp_path: Path, capsys: Capture) -> None:
    graph, bundle = tmp_path / "twice.json", tmp_path / "bundle"
    graph.write_text(json.dumps(GRAPH), encoding="utf-8")
    assert main(["compile", str(graph), "-o", str(bundle)]) == 0
    capsys.readouterr()
    assert main(["inspect-layout", str(graph), "--json"]) == 0
    of_graph = json.loads(capsys.readouterr().out)
    assert main(["inspect-layout", str(bundle), "--json"]) == 0
    of_bundle = json.loads(capsys.readouterr().out)
    for inner, border in zip(of_graph["tensors"], of_bundle["tensors"], strict=True):
        assert {key: inner[key] for key in border if key != "host_strides"} == {
            key: border[key] for key in border if key != "host_strides"
        }
    assert [tensor["device_size"] for tensor in of_graph["tensors"]] == [[2, 3, 64], [2, 3, 64]]
    assert main(["inspect-layout", str(bundle), "--tensor", "b", "--at", "2,70"]) == 0
    assert "element [2, 70] lies at device coordinate [1, 2, 6]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["--shape", "4,5", "--dtype", "float64"], "SPY0301", 1),
        (["--shape", "4,5", "--at", "4,0"], "SPY0310", 1),
        (["--shape", "4,5", "--at-address", "100000"], "SPY0310", 1),
        (["--shape", "4,5", "--stride", "1,1"], "SPY0309", 1),
        (["--shape", "100000,640", "--svg", "PLACE/x.svg"], "SPY0319", 1),
        (["--shape", "4,5", "--svg", "PLACE/absent/x.svg"], "SPY0322", 1),
        (["--shape", "4,x"], "", 2),
        (["--shape", "4,5", "--at-address", "-1"], "", 2),
        ([], "", 2),
        (["PLACE/absent"], "", 2),
    ],
    ids=str,
)
def test_bad_questions_are_refused_and_leave_nothing_behind(
    arguments: list[str], code: str, exit_code: int, tmp_path: Path, capsys: Capture
) -> None:
    placed = [argument.replace("PLACE", str(tmp_path)) for argument in arguments]
    assert main(["inspect-layout", *placed]) == exit_code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert code in captured.err
    assert list(tmp_path.iterdir()) == []


def test_a_tensor_that_is_not_there_is_refused(tmp_path: Path, capsys: Capture) -> None:
    graph = tmp_path / "twice.json"
    graph.write_text(json.dumps(GRAPH), encoding="utf-8")
    assert main(["inspect-layout", str(graph), "--tensor", "z"]) == 1
    assert "SPY0321" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "place"),
    [
        (["--shape", "3,-1"], "SPY0305", "--shape 3,-1"),
        (["--shape", "3,4", "--at", "3,0"], "SPY0310", "--shape 3,4 --at 3,0"),
        (["--shape", "3,4", "--at-address", "99999"], "SPY0310", "--shape 3,4 --at-address 99999"),
        (["--shape", "3,4", "--stride", "4"], "SPY0302", "--shape 3,4 --stride 4"),
        (["--shape", "3,4", "--svg", "{}/absent/x.svg"], "SPY0322", "{}/absent/x.svg"),
    ],
)
def test_a_refusal_says_which_option_it_came_from(
    arguments: list[str], code: str, place: str, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["--diagnostics=json", "inspect-layout", *(text.format(tmp_path) for text in arguments)]) == 1
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["code"], line["location"]["file"]) == (code, place.format(tmp_path))
    assert line["hint"]


def test_a_refused_question_about_a_file_names_both(tmp_path: Path, capsys: Capture) -> None:
    graph = tmp_path / "twice.json"
    graph.write_text(json.dumps(GRAPH), encoding="utf-8")
    assert main(["--diagnostics=json", "inspect-layout", str(graph), "--at", "99,99,99"]) == 1
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["code"], line["location"]["file"]) == ("SPY0310", str(graph))
    assert "--at 99,99,99" in "".join(line["notes"])


@pytest.mark.parametrize("shape", ["0", "0,64", "4,0", "2,0,3"])
def test_a_tensor_without_elements_has_a_layout_and_no_sticks(capsys: Capture, tmp_path: Path, shape: str) -> None:
    assert main(["inspect-layout", "--shape", shape]) == 0
    assert "memory  0 bytes in 0 sticks" in capsys.readouterr().out
    assert main(["inspect-layout", "--shape", shape, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["tensors"]
    assert (found["size_bytes"], found["padding_percent"]) == (0, 0.0)
    place = ",".join("0" for _ in shape.split(","))
    for asked in (["--at", place], ["--at-address", "0"], ["--svg", str(tmp_path / "x.svg")]):
        assert main(["inspect-layout", "--shape", shape, *asked]) == 1
        assert "SPY0310" in capsys.readouterr().err
