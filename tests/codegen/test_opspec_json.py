"""The JSON form of OpSpecs: what is written is read back, and every problem of a bad file is reported in its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import jsonschema
import pytest

from spyrec.codegen.opspec_json import opspec_schema, read_opspecs, write_opspecs
from spyrec.diagnostics import SpyrecError
from spyrec.diagnostics.json_reading import JsonValue

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted((ROOT / "tests" / "fixtures" / "examples").glob("*/opspecs.json"))
ADD = json.loads((ROOT / "tests/fixtures/examples/add/opspecs.json").read_text())
LOOPS = json.loads((ROOT / "tests/fixtures/examples/nested_loop_symbolic/opspecs.json").read_text())
CLIP = json.loads((ROOT / "tests/fixtures/examples/clip_constants/opspecs.json").read_text())
SCHEMA = json.loads(opspec_schema())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_writing_gives_the_text_that_was_read(path: Path) -> None:
    text = path.read_text()
    opspecs = read_opspecs(text)
    assert write_opspecs(opspecs).rstrip() == text.rstrip()
    assert read_opspecs(write_opspecs(opspecs)) == opspecs
    jsonschema.validate(json.loads(text), SCHEMA)


def test_the_schema_file_is_fresh() -> None:
    assert (ROOT / "schemas" / "opspec.schema.json").read_text() == opspec_schema()


def put(*path: str | int, value: object) -> Callable[[dict[str, object]], None]:
    def change(data: object) -> None:
        for key in path[:-1]:
            data = data[key]  # type: ignore[index]
        data[path[-1]] = value  # type: ignore[index]

    return change


def drop(*path: str | int) -> Callable[[dict[str, object]], None]:
    def change(data: object) -> None:
        for key in path[:-1]:
            data = data[key]  # type: ignore[index]
        del data[path[-1]]  # type: ignore[attr-defined]

    return change


ARG = ("specs", 0, "args", 1)
BAD: list[tuple[JsonValue, Callable[[dict[str, object]], None], str, str]] = [
    (ADD, put("format", value="spyrec.opspec/2"), "SPY0504", "/format"),
    (ADD, drop("format"), "SPY0504", "/format"),
    (ADD, drop("specs"), "SPY0503", "/specs"),
    (ADD, put("specs", value=[]), "SPY0503", "/specs"),
    (ADD, put("spec", value=[]), "SPY0503", "/spec"),
    (ADD, put("symbolic_args", value=0), "SPY0503", "/symbolic_args"),
    (ADD, put("specs", 0, value=3), "SPY0503", "/specs/0"),
    (ADD, put("specs", 0, "op", value="add\u00e4"), "SPY0503", "/specs/0/op"),
    (ADD, put("specs", 0, "extra/key", value=1), "SPY0503", "/specs/0/extra~1key"),
    (ADD, put("specs", 0, "iteration_space", 0, "size", value=0), "SPY0503", "/specs/0/iteration_space/0/size"),
    (ADD, put("specs", 0, "iteration_space", 0, "size", value=2**63), "SPY0503", "/specs/0/iteration_space/0/size"),
    (ADD, put("specs", 0, "iteration_space", 1, "work_division", value=1.0), "SPY0503",
     "/specs/0/iteration_space/1/work_division"),
    (ADD, put(*ARG, "device_dtype", value="FP99"), "SPY0513", "/specs/0/args/1/device_dtype"),
    (ADD, put(*ARG, "device_coordinates", value=["c0"]), "SPY0503", "/specs/0/args/1/device_coordinates"),
    (ADD, put(*ARG, "device_size", 0, value=2**60), "SPY0503", "/specs/0/args/1/device_size"),
    (ADD, put(*ARG, "device_size", 0, value=-4), "SPY0503", "/specs/0/args/1/device_size/0"),
    (ADD, put(*ARG, "device_coordinates", 1, value="c0 *"), "SPY0501", "/specs/0/args/1/device_coordinates/1"),
    (ADD, put(*ARG, "device_coordinates", 1, value="(" * 99), "SPY0502", "/specs/0/args/1/device_coordinates/1"),
    (ADD, put(*ARG, "allocation", value={}), "SPY0505", "/specs/0/args/1/allocation"),
    (ADD, put(*ARG, "allocation", value={"lx": 0, "hbm": 0}), "SPY0505", "/specs/0/args/1/allocation"),
    (ADD, put(*ARG, "allocation", value={"ddr": 0}), "SPY0503", "/specs/0/args/1/allocation/ddr"),
    (ADD, put(*ARG, "allocation", value={"pool": 0}), "SPY0503", "/specs/0/args/1/arg_index"),
    (ADD, put(*ARG, "stride_map", value=[1]), "SPY0503", "/specs/0/args/1/stride_map"),
    (ADD, put(*ARG, "name", value="a b"), "SPY0503", "/specs/0/args/1/name"),
    (CLIP, put("specs", 0, "op_info", "constants", "clipMin", value="big"), "SPY0503",
     "/specs/0/op_info/constants/clipMin"),
    (CLIP, put("specs", 0, "op_info", "constants", "clipMin", value=10**400), "SPY0103", ""),
    (CLIP, put("specs", 0, "op_info", "shared_weight_unit_bmm", value={"batch_dim": 0}), "SPY0532",
     "/specs/0/op_info/shared_weight_unit_bmm"),
    (LOOPS, put("specs", 0, "loop", "count", value=-1), "SPY0503", "/specs/0/loop/count"),
    (LOOPS, put("specs", 0, "loop", "count", value="K"), "SPY0503", "/specs/0/loop/count"),
    (LOOPS, drop("specs", 0, "loop", "body", 0, "loop", "body", 1, "args", 0, "allocation"), "SPY0503",
     "/specs/0/loop/body/0/loop/body/1/args/0/allocation"),
]  # fmt: skip


@pytest.mark.parametrize(("good", "change", "code", "pointer"), BAD, ids=[f"{row[2]}-{row[3]}" for row in BAD])
def test_a_problem_is_reported_with_its_code_and_place(
    good: dict[str, object], change: Callable[[dict[str, object]], None], code: str, pointer: str
) -> None:
    data = deepcopy(good)
    change(data)
    with pytest.raises(SpyrecError) as caught:
        read_opspecs(json.dumps(data), "specs.json")
    (problem,) = caught.value.diagnostics
    assert problem.code == code
    assert problem.location is not None
    assert problem.location.file == "specs.json"
    if pointer:
        assert problem.location.pointer == pointer
        assert problem.location.resolved().line is not None


def test_all_problems_are_reported_at_once() -> None:
    data = deepcopy(ADD)
    data["specs"][0]["args"][0]["is_input"] = "yes"
    data["specs"][0]["args"][2]["device_size"][0] = 0
    data["specs"][0]["tiled_symbols"] = None
    with pytest.raises(SpyrecError) as caught:
        read_opspecs(json.dumps(data))
    assert len(caught.value.diagnostics) == 3


def test_all_contradictions_of_what_has_the_right_form_are_reported_at_once() -> None:
    data = deepcopy(ADD)
    first, second, out = data["specs"][0]["args"]
    first["device_dtype"], first["device_size"] = "FP99", [2**40, 2**40, 1, 1]
    first["device_coordinates"] = ["c0 *", "c0 * c1"]
    second["allocation"] = {"pool": 0}
    out["allocation"] = {}
    data["specs"][0]["op_info"] = {"constants": {"a": 2**63, "\u00e4": 1}, "shared_weight_unit_bmm": False}
    with pytest.raises(SpyrecError) as caught:
        read_opspecs(json.dumps(data))
    assert sorted(
        (item.code, item.location.pointer or "") for item in caught.value.diagnostics if item.location is not None
    ) == [
        ("SPY0501", "/specs/0/args/0/device_coordinates/0"),
        ("SPY0501", "/specs/0/args/0/device_coordinates/1"),
        ("SPY0503", "/specs/0/args/0/device_coordinates"),
        ("SPY0503", "/specs/0/args/0/device_size"),
        ("SPY0503", "/specs/0/args/0/stride_map"),
        ("SPY0503", "/specs/0/args/1/arg_index"),
        ("SPY0503", "/specs/0/op_info/constants/a"),
        ("SPY0503", "/specs/0/op_info/constants/\u00e4"),
        ("SPY0505", "/specs/0/args/2/allocation"),
        ("SPY0513", "/specs/0/args/0/device_dtype"),
        ("SPY0532", "/specs/0/op_info/shared_weight_unit_bmm"),
    ]


def test_the_schema_that_a_file_names_is_kept() -> None:
    text = json.dumps({"$schema": "opspec.schema.json", **ADD})
    assert json.loads(write_opspecs(read_opspecs(text))) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", "null", '{"format": NaN}', '{"a": 1, "a": 2}', b"\xff"])
def test_what_is_no_opspec_file_is_refused(text: str | bytes) -> None:
    with pytest.raises(SpyrecError):
        read_opspecs(text)


def test_infinite_constants_are_written_as_text_and_read_back() -> None:
    data = deepcopy(CLIP)
    data["specs"][0]["op_info"]["constants"] = {"clipMin": "-inf", "clipMax": "inf"}
    opspecs = read_opspecs(json.dumps(data))
    assert json.loads(write_opspecs(opspecs))["specs"] == data["specs"]
