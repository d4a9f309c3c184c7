"""SuperDSC files: exact inverses on real files, refusals on damaged ones, warnings on repeated fields."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.bundle.known_texts import AlikeTexts
from spyrec.bundle.superdsc import Component, Indirection
from spyrec.bundle.superdsc_reader import from_json, parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes, to_json
from spyrec.device_ops import DEVICE_OPERATIONS
from spyrec.diagnostics import DiagnosticSink, SpyrecError
from spyrec.diagnostics.json_reading import JsonValue

EXAMPLES = Path(__file__).parents[1] / "fixtures" / "examples"
FILES = sorted(EXAMPLES.glob("*/sdsc_*.json"))

Json = Any


def load(case: str, index: int = 0) -> Json:
    return json.loads((EXAMPLES / case / f"sdsc_{index}.json").read_text())


def inner(data: Json) -> Json:
    (root,) = data.values()
    (dsc,) = root["dscs_"][0].values()
    return dsc


def codes_of(data: Json) -> list[tuple[str, str | None]]:
    with pytest.raises(SpyrecError) as caught:
        from_json(data)
    return [(item.code, item.location.pointer if item.location else None) for item in caught.value.diagnostics]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_reading_and_writing_a_real_file_gives_its_bytes_without_a_warning(path: Path) -> None:
    sink = DiagnosticSink()
    content = path.read_bytes()
    dsc = parse_superdsc(content, path.name, sink)
    assert to_bytes(dsc) == content
    assert to_json(dsc) == json.loads(content)
    assert sink.diagnostics == []
    assert dsc.file_name == path.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_text_with_another_number_and_other_symbols_is_read_from_one_like_it(path: Path) -> None:
    text = path.read_bytes()
    known = AlikeTexts()
    known.remember(text, parse_superdsc(text))
    other = re.sub(rb'": "-(\d+)"', lambda found: b'": "-%d"' % (int(found[1]) * 3 % 997 + 1), text)
    other = re.sub(rb'^\{\s*"\d+_', b'{"41_', other)
    found = known.find(other)
    assert found == parse_superdsc(other)
    assert found is not None
    assert found.index == 41


def test_a_text_that_differs_in_more_is_read_by_itself() -> None:
    text = (EXAMPLES / "add_symbolic" / "sdsc_0.json").read_bytes()
    known = AlikeTexts()
    known.remember(text, parse_superdsc(text))
    for change in ((b'"-1"', b'"7"'), (b'"scale_": [\n', b'"scale_": [ \n'), (b"sfp", b"pt"), (b"0_add", b"0_sub")):
        other = text.replace(*change)
        assert other != text
        assert known.find(other) is None
    stray = text.replace(b'"prev_": ""', b'"prev_": "-5"', 1)
    strays = AlikeTexts()
    strays.remember(stray, parse_superdsc(text))
    assert strays.find(stray) is None, "a number that is no symbol would be taken for one"


def test_all_examples_are_there() -> None:
    assert len(FILES) == 48


def test_scales_are_zipped_with_the_labels_order_and_not_the_operands_own() -> None:
    dsc = from_json(load("max_nonstick"))
    output = dsc.operands[1]
    assert output.layout_dim_order == ("mb", "out")
    assert dsc.labels[output.label].layout_dim_order == ("out", "mb")
    assert output.scales == {"out": -1, "mb": 1}


def test_gather_windows_and_symbols_are_read() -> None:
    gather = from_json(load("indirect_gather_1d"))
    assert [item.indirection for item in gather.operands] == [Indirection.INDEX, Indirection.VALUE, Indirection.NONE]
    assert (gather.operands[0].related_operand, gather.compute.indirect_access_indices) == (1, (0,))
    window = from_json(load("slice_backgap")).operands[0]
    assert (dict(window.back_gap), window.start_addresses[0]) == ({"out": 128}, 16384)
    symbolic = from_json(load("softmax_lx_symbolic", 1)).operands
    assert [(item.component, item.is_symbolic) for item in symbolic[:2]] == [
        (Component.HBM, True),
        (Component.LX, False),
    ]
    assert symbolic[0].start_addresses[0] == -33


def set_corelets(data: Json, second: str) -> None:
    for node in inner(data)["scheduleTree_"]:
        start = node["startAddressCoreCorelet_"]
        start["dim_prop_attr"][1]["factor_"] = 2
        start["data_"] |= {key.replace(", 0, 0]", ", 1, 0]"): value for key, value in start["data_"].items()}
    inner(data)["scheduleTree_"][1]["startAddressCoreCorelet_"]["data_"]["[3, 1, 0]"] = second


def test_two_corelets_are_read_where_they_are_equal_and_refused_where_they_differ() -> None:
    data = load("add")
    same = inner(data)["scheduleTree_"][1]["startAddressCoreCorelet_"]["data_"]["[3, 0, 0]"]
    set_corelets(data, same)
    assert from_json(data).operands == from_json(load("add")).operands
    set_corelets(data, "128")
    ((code, pointer),) = codes_of(data)
    assert code == "SPY0621"
    assert pointer == "/0_add/dscs_/0/add/scheduleTree_/1/startAddressCoreCorelet_/data_/[3, 1, 0]"


def test_both_spellings_of_the_index_list_are_read() -> None:
    data = load("indirect_gather_1d")
    entry = inner(data)["computeOp_"][0]
    entry["indirectAccessIndexLabeledDs_"] = entry.pop("indirectAccessIndexLabeledDs")
    sink = DiagnosticSink()
    assert from_json(data, sink=sink) == from_json(load("indirect_gather_1d"))
    assert sink.diagnostics == []


def child(place: Json, token: str) -> Json:
    if isinstance(place, list):
        return cast("list[Json]", place)[int(token)]
    return place[token]


def put(place: Json, path: str, value: Json) -> None:
    """Set, or with ``...`` remove, the value at a path."""
    *parents, last = path.split("/")
    for token in parents:
        place = child(place, token)
    key: Json = int(last) if isinstance(place, list) else last
    if value is ...:
        del place[key]
    else:
        place[key] = value


def change(path: str, value: Json) -> Callable[[Json], None]:
    """Return an edit of ``add``: below its root where the path begins with ``^/``, else below its DSC."""
    return lambda data: put(data["0_add"] if path.startswith("^/") else inner(data), path.removeprefix("^/"), value)


STARTS = "scheduleTree_/0/startAddressCoreCorelet_"
REFUSED: list[tuple[str, Json, str]] = [
    ("N_", ..., "SPY0620"),
    ("N_/mb_", 0, "SPY0620"),
    ("N_/mb_", "1024", "SPY0620"),
    ("N_/mb_", True, "SPY0620"),
    ("N_/paddingSizes_", {"i": 1}, "SPY0621"),
    ("coreIdsUsed_", [], "SPY0622"),
    ("coreIdsUsed_", [0] * 32, "SPY0622"),
    ("coreIdsUsed_/3", 99, "SPY0620"),
    ("numCoresUsed_", 31, "SPY0622"),
    ("^/numCoresUsed_", 31, "SPY0622"),
    ("^/coreIdToDsc_/5", 1, "SPY0622"),
    ("^/coreIdToWkSlice_/5", ..., "SPY0620"),
    ("^/coreIdToWkSlice_/5/out", ..., "SPY0620"),
    ("^/coreIdToWkSlice_/40", {"mb": 0, "out": 0}, "SPY0622"),
    ("^/numWkSlicesPerDim_/mb", 0, "SPY0620"),
    ("dataStageParam_/0/el_/mb_", 16, "SPY0622"),
    ("dataStageParam_/1", {"ss_": {}}, "SPY0620"),
    ("primaryDsInfo_/OUTPUT/stickDimOrder_", ["out", "mb"], "SPY0621"),
    ("primaryDsInfo_/OUTPUT/stickDimOrder_", ["x"], "SPY0622"),
    ("primaryDsInfo_/OUTPUT/stickSize_", [0], "SPY0620"),
    ("primaryDsInfo_/OUTPUT/layoutDimOrder_", ["mb", "x"], "SPY0622"),
    ("labeledDs_/1/dsType_", "KERNEL", "SPY0622"),
    ("labeledDs_/1/scale_", [1], "SPY0622"),
    ("labeledDs_/1/dataFormat_", "FP128", "SPY0620"),
    ("labeledDs_/1/ldsIdx_", 2, "SPY0622"),
    ("labeledDs_/1/wordLength", 1 << 40, "SPY0620"),
    ("scheduleTree_/1/nodeType_", "transfer", "SPY0621"),
    ("scheduleTree_/1/padding_", {"mb": "nopad"}, "SPY0621"),
    ("scheduleTree_/1/component_", "l3", "SPY0621"),
    ("scheduleTree_/1/layoutDimOrder_", ["mb"], "SPY0622"),
    ("scheduleTree_/1/layoutDimOrder_", ["mb", "mb"], "SPY0622"),
    ("scheduleTree_/1/relatedIndirectAccessAlloc_", "nowhere", "SPY0622"),
    ("scheduleTree_/1/backGapCore_", {"out": {"0": "64"}}, "SPY0622"),
    ("scheduleTree_/1/somethingNew_", 1, "SPY0621"),
    (f"{STARTS}/dim_prop_func/0", {"Const": {}}, "SPY0621"),
    (f"{STARTS}/dim_prop_func/0", {"WkSplit": {}}, "SPY0621"),
    (f"{STARTS}/dim_prop_attr/2/factor_", 2, "SPY0621"),
    (f"{STARTS}/dim_prop_attr/0/factor_", 31, "SPY0622"),
    (f"{STARTS}/data_/[7, 0, 0]", ..., "SPY0620"),
    (f"{STARTS}/data_/[7, 0, 0]", "0x10", "SPY0620"),
    (f"{STARTS}/data_/[7, 0, 0]", "9" * 19, "SPY0620"),
    (f"{STARTS}/data_/[7, 0, 0]", "-7", "SPY0622"),
    (f"{STARTS}/data_/[77, 0, 0]", "0", "SPY0622"),
    ("scheduleTree_/0/isStartAddrSymbolic_", 1, "SPY0622"),
    ("constantInfo_", "{", "SPY0620"),
    ("constantInfo_", {"1": {"name_": "x"}}, "SPY0622"),
    ("coordinateMasking_", {"x": [[0, 1]]}, "SPY0622"),
    ("coordinateMasking_", {"out": [[1]]}, "SPY0620"),
    ("computeOp_", [], "SPY0620"),
    ("computeOp_/0/inputLabeledDs", ["Tensor9-idx9"], "SPY0622"),
    ("computeOp_/0/opFuncName", "sub", "SPY0622"),
]


@pytest.mark.parametrize(("path", "value", "code"), REFUSED, ids=lambda item: str(item)[:60])
def test_a_damaged_file_is_refused_with_its_code_and_place(path: str, value: Json, code: str) -> None:
    data = load("add")
    change(path, value)(data)
    found = codes_of(data)
    assert {item for item, _ in found} == {code}
    assert found[0][1] is not None
    assert found[0][1].startswith("/0_add")


def test_an_unknown_operation_under_a_known_name_is_refused_with_the_list_of_those_known() -> None:
    data = load("add")
    change("computeOp_/0/opFuncName", "frobnicate")(data)
    with pytest.raises(SpyrecError) as error:
        from_json(data)
    (found,) = error.value.diagnostics
    assert "frobnicate" in found.message
    assert found.hint is not None
    known = found.hint.removeprefix("known operations: ").split(", ")
    assert known == sorted(DEVICE_OPERATIONS)


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("coreIdsUsed_", [0] * 32, "V1"),
        ("dataStageParam_/0/el_/mb_", 16, "V2"),
        (f"{STARTS}/data_/[7, 0, 0]", "-7", "V9"),
        ("labeledDs_/1/scale_", [1], "V11"),
        ("scheduleTree_/1/padding_", {"mb": "nopad"}, "V14"),
        ("computeOp_/0/opFuncName", "sub", None),
    ],
)
def test_a_broken_rule_is_named_in_a_note(path: str, value: Json, rule: str | None) -> None:
    data = load("add")
    change(path, value)(data)
    with pytest.raises(SpyrecError) as error:
        from_json(data)
    notes = error.value.diagnostics[0].to_json()["notes"]
    assert notes == ([] if rule is None else [f"rule {rule}"])


def test_one_core_in_two_dscs_and_several_compute_operations_are_refused_by_name() -> None:
    data = load("add")
    data["0_add"]["dscs_"] *= 2
    assert codes_of(data) == [("SPY0622", "/0_add/dscs_/1/add/coreIdsUsed_")]
    data = load("add")
    inner(data)["computeOp_"] *= 2
    assert codes_of(data) == [("SPY0621", "/0_add/dscs_/0/add/computeOp_")]


def test_problems_in_different_places_are_all_reported() -> None:
    data = load("add")
    change("labeledDs_/0/dataFormat_", "FP128")(data)
    change("scheduleTree_/2/component_", "l3")(data)
    change("computeOp_/0/exUnit", 3)(data)
    assert [pointer.removeprefix("/0_add/dscs_/0/add") for _, pointer in codes_of(data) if pointer] == [
        "/labeledDs_/0/dataFormat_",
        "/scheduleTree_/2/component_",
        "/computeOp_/0/exUnit",
    ]


@pytest.mark.parametrize(
    ("case", "path", "value"),
    [
        ("add", "scheduleTree_/0/coordinates_/coordInfo/mb/folds/dim_prop_func/0/Affine/alpha_", 31),
        ("add", "labeledDs_/0/dsName_", "Other"),
        ("add", "labeledDs_/0/memOrg_", {"hbm": {"isPresent": 1}, "dram": {"isPresent": 1}}),
        ("sum_stick_masked", "maskingConstId_", 3),
    ],
)
def test_a_repeated_field_that_disagrees_is_a_warning_and_changes_nothing(case: str, path: str, value: Json) -> None:
    good, data = load(case), load(case)
    put(inner(data), path, value)
    if path.endswith("dsName_"):
        inner(data)["computeOp_"][0]["inputLabeledDs"][0] = "Other-idx0"
    sink = DiagnosticSink()
    dsc = from_json(data, sink=sink)
    assert sink.diagnostics
    assert {(item.code, item.severity.value) for item in sink.diagnostics} == {("SPY0623", "warning")}
    if not path.startswith("maskingConstId_"):
        assert dsc == from_json(good)


PATHS = st.sampled_from(["add", "matmul_ksplit", "indirect_gather_1d", "sum_stick_masked", "softmax_lx_symbolic"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.lists(st.integers(-3, 3), max_size=3),
)


def places(value: JsonValue, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the path of every value below a value."""
    if isinstance(value, dict):
        below = [place for key, member in value.items() for place in places(member, (*path, key))]
    elif isinstance(value, list):
        below = [place for index, member in enumerate(value) for place in places(member, (*path, index))]
    else:
        below = []
    return [path, *below]


PLACES = {case: places(load(case)) for case in ("add", "matmul_ksplit", "indirect_gather_1d", "sum_stick_masked")}
PLACES["softmax_lx_symbolic"] = places(load("softmax_lx_symbolic"))
GOOD = {case: load(case) for case in PLACES}


@settings(max_examples=150)
@given(st.data())
def test_no_damage_makes_the_reader_raise_anything_but_diagnostics(data: st.DataObject) -> None:
    case = data.draw(PATHS)
    damaged = copy.deepcopy(GOOD[case])
    place = data.draw(st.sampled_from(PLACES[case][1:]))
    parent = damaged
    for token in place[:-1]:
        parent = parent[token]
    if data.draw(st.booleans()):
        parent[place[-1]] = data.draw(VALUES)
    else:
        del parent[place[-1]]
    refusal: SpyrecError | None = None
    try:
        dsc = from_json(damaged)
        assert from_json(to_json(dsc)) == dsc
    except SpyrecError as error:
        refusal = error
    if refusal is not None:
        assert all(item.code.startswith("SPY06") and item.location and item.hint for item in refusal.diagnostics)
