"""The rules of a launch artefact, J1 to J11: a planted violation of each has its own code; so have hostile files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spyrec.bundle.launch_plan import LaunchArtifact
from spyrec.bundle.spyrecode_reader import read_artifact
from spyrec.bundle.spyrecode_rules import check_plan
from spyrec.cli import main
from spyrec.diagnostics import SpyrecError
from tests.support.artifacts import artifact, codes, edit_plan, example, write

BASE = 7 * (16 << 30)
Plan = dict[str, Any]
Edit = Callable[[Plan], object]


@pytest.fixture
def made(tmp_path: Path) -> LaunchArtifact:
    return artifact(example("add_symbolic", tmp_path), slots=2)


@pytest.fixture
def folder(made: LaunchArtifact, tmp_path: Path) -> Path:
    return write(made, tmp_path / "out")


def prepared(plan: Plan, index: int) -> dict[str, Any]:
    return plan["JobPreparationPlan"][index]["properties"]


def executed(plan: Plan, index: int) -> dict[str, Any]:
    return plan["JobExecPlan"][index]["properties"]


def put(properties: dict[str, Any], key: str, value: object) -> None:
    assert properties[key] != value
    properties[key] = value


def moved(text: str, distance: int) -> str:
    return str(int(text) + distance)


def test_a_written_artefact_is_read_as_it_was(made: LaunchArtifact, folder: Path) -> None:
    found = read_artifact(folder)
    assert found.preparation == made.preparation
    assert found.execution == made.execution
    assert found.slots == made.slots
    assert dict(found.files) == dict(made.files)
    assert codes(folder) == []


@pytest.mark.parametrize(
    "value",
    ["12abc", " 12", "-1", "+1", "", "0x80", "1_000", "1e3", "٣", "18446744073709551616", "1" * 5000, 128, None, True],
)
def test_j1_numbers_are_decimal_strings_of_64_bits(folder: Path, value: object) -> None:
    edit_plan(folder, lambda plan: put(prepared(plan, 0), "size", value))
    assert codes(folder) == ["SPY0641"]


def test_j1_leading_zeros_and_the_largest_number_are_numbers(folder: Path) -> None:
    edit_plan(folder, lambda plan: put(executed(plan, 1), "size", "0" * 300 + executed(plan, 1)["size"]))
    assert codes(folder) == []
    edit_plan(folder, lambda plan: put(prepared(plan, 0), "size", str(2**64 - 1)))
    assert codes(folder) == ["SPY0642"]


@pytest.mark.parametrize("distance", [-128, 1 << 20, 1 << 34, -(7 << 34)])
def test_j2_a_transfer_outside_the_allocation_is_refused(folder: Path, distance: int) -> None:
    edit_plan(folder, lambda plan: put(prepared(plan, 1), "dev_ptr", moved(str(BASE), distance)))
    assert "SPY0642" in codes(folder)


def test_j2_an_allocation_that_is_too_small_or_larger_than_the_segment_is_refused(folder: Path) -> None:
    edit_plan(folder, lambda plan: put(prepared(plan, 0), "size", moved(prepared(plan, 0)["size"], -1)))
    assert codes(folder) == ["SPY0642"]
    edit_plan(folder, lambda plan: put(prepared(plan, 0), "size", str((16 << 30) + 128)))
    assert codes(folder) == ["SPY0642"]


def test_j2_no_sum_of_pointer_and_size_wraps_around(folder: Path) -> None:
    edit_plan(folder, lambda plan: put(executed(plan, 1), "dev_ptr", str(2**64 - 128)))
    assert "SPY0642" in codes(folder)


@pytest.mark.parametrize("change", [-1, 1, 128])
def test_j3_a_file_of_another_size_than_its_transfer_is_refused(folder: Path, change: int) -> None:
    image = folder / "init.bin"
    data = image.read_bytes()
    image.write_bytes(data[:change] if change < 0 else data + bytes(change))
    assert codes(folder) == ["SPY0643"]


@pytest.mark.parametrize("name", ["../init.bin", "/etc/hostname", "a/../../init.bin", "..", "link", "a\\b", "c:x"])
def test_j4_a_file_outside_the_directory_is_refused(folder: Path, name: str) -> None:
    (folder.parent / "init.bin").write_bytes((folder / "init.bin").read_bytes())
    (folder / "link").symlink_to(folder.parent / "init.bin")
    edit_plan(folder, lambda plan: put(prepared(plan, 1), "init_bin_file", name))
    assert codes(folder) == ["SPY0644"]


def test_a_file_that_is_missing_or_no_file_is_refused(folder: Path) -> None:
    edit_plan(folder, lambda plan: put(prepared(plan, 1), "init_bin_file", "other.bin"))
    assert codes(folder) == ["SPY0601"]
    (folder / "other.bin").mkdir()
    assert codes(folder) == ["SPY0605"]


def test_j5_pointers_off_a_stick_are_refused(folder: Path) -> None:
    edit_plan(folder, lambda plan: put(plan["correctionSlots"][1], "dev_ptr",
                                       moved(plan["correctionSlots"][1]["dev_ptr"], -64)))  # fmt: skip
    assert "SPY0645" in codes(folder)
    edit_plan(folder, lambda plan: put(executed(plan, 2), "job_bin_ptr", str(BASE + 130)))
    assert codes(folder).count("SPY0645") == 2


@pytest.mark.parametrize("pointer", [BASE, BASE + 3 * 128, BASE + 4096, BASE + (1 << 30), 0])
def test_j6_a_start_that_is_no_entry_is_refused(folder: Path, pointer: int) -> None:
    edit_plan(folder, lambda plan: put(plan["correctionSlots"][1], "job_bin_ptr", str(pointer)))
    assert codes(folder) == ["SPY0646"]


@pytest.mark.parametrize("size", ["128", "384", "0"])
def test_j7_a_transfer_has_the_size_of_what_was_computed(folder: Path, size: str) -> None:
    edit_plan(folder, lambda plan: put(executed(plan, 1), "size", size))
    assert "SPY0647" in codes(folder)
    edit_plan(folder, lambda plan: put(executed(plan, 0), "size", size))
    assert "SPY0647" in codes(folder), "the words need 256 bytes"


def test_j7_a_copied_buffer_may_be_transferred_in_part_only(folder: Path) -> None:
    there = {"dirn": "true", "host_handle": "x", "dev_ptr": str(BASE), "size": "256"}
    back = {"dirn": "false", "host_handle": "x", "dev_ptr": str(BASE), "size": "128"}

    def add(plan: Plan) -> None:
        plan["JobExecPlan"] += [{"command": "DataTransfer", "properties": item} for item in (there, back)]

    edit_plan(folder, add)
    assert codes(folder) == []
    edit_plan(folder, lambda plan: put(executed(plan, 4), "size", "384"))
    assert codes(folder) == ["SPY0647"]


def over_code(plan: Plan) -> None:
    for properties in (executed(plan, 1), plan["correctionSlots"][0]):
        put(properties, "dev_ptr", str(BASE + 1024))


def test_j8_a_correction_over_code_is_refused_unless_it_is_declared(folder: Path) -> None:
    edit_plan(folder, over_code)
    assert codes(folder)[0] == "SPY0648"
    edit_plan(folder, lambda plan: plan.update(correctionOverlapsCode="true"))
    assert "SPY0648" not in codes(folder)


def test_j8_corrections_of_two_slots_lie_apart(folder: Path) -> None:
    slots = json.loads((folder / "spyrecode.json").read_bytes())["correctionSlots"]
    edit_plan(folder, lambda plan: put(plan["correctionSlots"][1], "dev_ptr", moved(slots[0]["dev_ptr"], 128)))
    assert codes(folder)[0] == "SPY0648"


@pytest.mark.parametrize("order", ["H", "HI", "HC", "IHC", "HIOC", "HOC", "HCI", "CHI", "HHC", "IC"])
def test_j9_steps_out_of_order_are_refused(folder: Path, order: str) -> None:
    edit_plan(folder, lambda plan: reorder(plan, order))
    assert "SPY0649" in codes(folder)


def reorder(plan: Plan, order: str) -> None:
    steps = dict(zip("HIC", plan["JobExecPlan"], strict=True))
    out = {"dirn": "true", "host_handle": "y", "dev_ptr": str(BASE), "size": "128"}
    steps["O"] = {"command": "DataTransfer", "properties": out}
    plan["JobExecPlan"] = [steps[letter] for letter in order]


def test_j9_the_grammar_is_that_of_the_specification() -> None:
    """Every order of up to six steps, against the regular expression of the specification."""
    import itertools
    import re

    from spyrec.bundle.host_compute import HostComputeSpec
    from spyrec.bundle.json_cursor import Cursor
    from spyrec.bundle.launch_plan import ComputeOnDevice, ComputeOnHost, DataTransfer
    from spyrec.bundle.spyrecode_json import Placed, PlacedPlan
    from spyrec.diagnostics import DiagnosticSink, Location

    grammar = re.compile(r"(H+I+C+|I|O|C)*")
    place = Cursor({}, Location("plan"))
    for length in range(7):
        for letters in itertools.product("HIOC", repeat=length):
            steps = [
                {
                    "H": ComputeOnHost(f"h{index}", 0, (), None, HostComputeSpec(())),
                    "I": DataTransfer(False, "h", BASE, 0),
                    "O": DataTransfer(True, f"o{index}", BASE, 0),
                    "C": ComputeOnDevice(BASE),
                }[letter]
                for index, letter in enumerate(letters)
            ]
            sink = DiagnosticSink()
            placed = tuple(Placed(step, place) for step in steps)
            check_plan(PlacedPlan((), placed, (), False, True, place.location), sink)
            out_of_order = [item for item in sink.diagnostics if "is followed by" in item.message]
            assert bool(out_of_order) == (grammar.fullmatch("".join(letters)) is None), letters


@pytest.mark.parametrize(
    ("index", "key", "value"), [(0, "ihandle", "nobody"), (1, "host_handle", "nobody"), (0, "ohandle", "")]
)
def test_j9_a_buffer_is_made_before_its_use(folder: Path, index: int, key: str, value: str) -> None:
    edit_plan(folder, lambda plan: put(executed(plan, index), key, value))
    assert "SPY0649" in codes(folder)


def test_j9_a_buffer_is_made_once(folder: Path) -> None:
    edit_plan(folder, lambda plan: plan["JobExecPlan"].insert(1, plan["JobExecPlan"][0]))
    assert codes(folder) == ["SPY0649"]


def test_j10_unknown_keys_are_warned_of_and_nothing_else(folder: Path) -> None:
    def add(plan: Plan) -> None:
        plan["note"] = {"a": 1}
        prepared(plan, 0)["alignment"] = "128"
        plan["JobExecPlan"][2]["id"] = "x"
        plan["correctionSlots"][0]["stream"] = "0"

    edit_plan(folder, add)
    assert codes(folder) == ["SPY0650"] * 4


@pytest.mark.parametrize("version", [None, "2", "0", "1000000"])
def test_j10_another_version_is_refused(folder: Path, version: str | None) -> None:
    edit_plan(folder, lambda plan: plan.update(schemaVersion=version) if version else plan.pop("schemaVersion"))
    assert codes(folder) == ["SPY0650"]


def test_j11_a_plan_whose_correction_another_job_makes_is_refused(folder: Path) -> None:
    edit_plan(folder, lambda plan: plan.update(JobExecPlan=plan["JobExecPlan"][2:], correctionSlots=[]))
    assert codes(folder) == ["SPY0651"]


def test_j11_a_second_start_needs_a_correction_of_its_own(folder: Path) -> None:
    edit_plan(folder, lambda plan: plan["JobExecPlan"].append(plan["JobExecPlan"][2]))
    assert codes(folder) == ["SPY0651"]


def test_j11_a_correction_where_no_entry_takes_it_from_is_refused(folder: Path) -> None:
    def swap(plan: Plan) -> None:
        slots = plan["correctionSlots"]
        slots[0]["job_bin_ptr"], slots[1]["job_bin_ptr"] = slots[1]["job_bin_ptr"], slots[0]["job_bin_ptr"]
        executed(plan, 2)["job_bin_ptr"] = slots[0]["job_bin_ptr"]

    edit_plan(folder, swap)
    assert codes(folder) == ["SPY0651"] * 3, "the plan's own start, and both slots"


def spyrec_key(plan: Plan) -> Plan:
    return executed(plan, 0)["hcm"]["spyrec"]


SPECIFICATIONS: list[Edit] = [
    lambda plan: executed(plan, 0)["hcm"].pop("spyrec"),
    lambda plan: spyrec_key(plan).update(version=2),
    lambda plan: spyrec_key(plan).update(words="eval('1')"),
    lambda plan: spyrec_key(plan)["words"].append({"kind": "code", "text": "import os"}),
    lambda plan: spyrec_key(plan)["words"].append(spyrec_key(plan)["words"][0]),
    lambda plan: spyrec_key(plan).update(words=[{"kind": "argument", "index": i} for i in range(5000)]),
    lambda plan: spyrec_key(plan)["words"].append({"kind": "argument", "index": -1}),
    lambda plan: spyrec_key(plan)["words"].append({"kind": "value", "name": "x" * 300}),
]


@pytest.mark.parametrize("edit", SPECIFICATIONS)
def test_a_host_computation_is_data_of_a_known_form(folder: Path, edit: Edit) -> None:
    edit_plan(folder, edit)
    assert codes(folder) == ["SPY0656"]


def test_a_host_computation_of_other_words_than_the_program_takes_is_refused(folder: Path) -> None:
    edit_plan(folder, lambda plan: spyrec_key(plan)["words"].reverse())
    assert codes(folder) == ["SPY0657"]
    edit_plan(folder, lambda plan: put(executed(plan, 0), "ishape", ["9"]))
    assert codes(folder) == ["SPY0657"] * 2


FORMS: list[Edit] = [
    lambda plan: plan.pop("JobPreparationPlan"),
    lambda plan: plan.pop("JobExecPlan"),
    lambda plan: plan.pop("correctionSlots"),
    lambda plan: plan.update(JobExecPlan={}),
    lambda plan: plan["JobPreparationPlan"].reverse(),
    lambda plan: plan["JobPreparationPlan"].pop(),
    lambda plan: plan["JobPreparationPlan"].append(plan["JobPreparationPlan"][0]),
    lambda plan: plan["JobExecPlan"].append(plan["JobPreparationPlan"][0]),
    lambda plan: plan["JobExecPlan"][0].pop("command"),
    lambda plan: plan["JobExecPlan"][0].update(command="Reboot"),
    lambda plan: executed(plan, 0).pop("ishape"),
    lambda plan: put(executed(plan, 0), "ishape", "4"),
    lambda plan: put(executed(plan, 1), "dirn", "False"),
    lambda plan: put(executed(plan, 1), "host_handle", 7),
    lambda plan: plan.update(correctionSlots=[]),
    lambda plan: plan.update(correctionSlots=plan["correctionSlots"] * 9),
    lambda plan: plan.update(JobExecPlan=plan["JobExecPlan"] * 400),
]


@pytest.mark.parametrize("edit", FORMS)
def test_a_plan_of_another_form_is_refused(folder: Path, edit: Edit) -> None:
    edit_plan(folder, edit)
    assert set(codes(folder)) == {"SPY0640"}


def test_the_first_slot_is_that_of_the_plan(folder: Path) -> None:
    edit_plan(folder, lambda plan: plan["correctionSlots"].reverse())
    assert codes(folder)[0] == "SPY0640"


def test_all_problems_are_collected(folder: Path) -> None:
    def plant(plan: Plan) -> None:
        put(prepared(plan, 0), "size", "12abc")
        put(prepared(plan, 1), "init_bin_file", "../init.bin")
        put(executed(plan, 0), "size", "-3")
        put(executed(plan, 0), "ohandle", 4)
        executed(plan, 1).pop("dirn")
        plan["correctionSlots"][1]["job_bin_ptr"] = str(BASE + 131)

    edit_plan(folder, plant)
    assert sorted(codes(folder)) == ["SPY0640", "SPY0640", "SPY0641", "SPY0641", "SPY0644", "SPY0645"]


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "{", '{"schemaVersion": "1", "schemaVersion": "1"}', "[" * 5000, "\xff"]
)
def test_what_is_no_plan_at_all_is_refused(folder: Path, text: str) -> None:
    (folder / "spyrecode.json").write_bytes(text.encode("latin-1"))
    found = codes(folder)
    assert found
    assert set(found) <= {"SPY0640", "SPY0101", "SPY0102", "SPY0104"}


def test_a_missing_directory_or_plan_is_refused(tmp_path: Path) -> None:
    assert codes(tmp_path / "nothing") == ["SPY0601"]
    (tmp_path / "empty").mkdir()
    assert codes(tmp_path / "empty") == ["SPY0601"]


def test_a_sparse_file_is_refused_by_its_size_before_it_is_read(folder: Path) -> None:
    with (folder / "init.bin").open("r+b") as stream:
        stream.truncate(1 << 42)
    assert codes(folder) == ["SPY0643"]
    edit_plan(folder, lambda plan: put(prepared(plan, 1), "size", str(1 << 42)))
    assert {"SPY0642", "SPY0604"} <= set(codes(folder))


def test_every_baked_or_symbolic_example_makes_an_artefact_that_keeps_the_rules(tmp_path: Path) -> None:
    for name in ("add", "add_symbolic", "pool_symbolic", "nested_loop_symbolic", "softmax_lx_symbolic", "layernorm"):
        (tmp_path / f"{name}.in").mkdir()
        made = artifact(example(name, tmp_path / f"{name}.in"), slots=4)
        assert len(made.slots) == (4 if name.endswith("symbolic") else 0)
        assert codes(write(made, tmp_path / name)) == []


def test_check_validates_a_launch_artefact(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(folder)]) == 0
    assert "launch artefact: 2 correction slots" in capsys.readouterr().out
    edit_plan(folder, lambda plan: put(prepared(plan, 0), "size", "1"))
    assert main(["check", str(folder)]) == 1
    assert "rule J2" in capsys.readouterr().err


def test_a_refusal_names_rule_and_place(folder: Path) -> None:
    edit_plan(folder, lambda plan: put(executed(plan, 1), "dev_ptr", str(BASE + 130)))
    with pytest.raises(SpyrecError) as caught:
        read_artifact(folder)
    found = {item.code: item for item in caught.value.diagnostics}
    assert "(rule J5)" in found["SPY0645"].message
    assert found["SPY0645"].location is not None
    assert found["SPY0645"].location.pointer == "/JobExecPlan/1/properties/dev_ptr"
