"""Launch artefacts inside bundles: written with them, listed by hash, read and held against the program beside them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import spyrec
from benchmarks.growth import decoder
from spyrec.bundle import bundle as written_bundle
from spyrec.bundle import launch_artifacts
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.correction_word import WordKind
from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.launch_plan import ComputeOnHost
from spyrec.bundle.program_image import program_files
from spyrec.cli import main
from spyrec.compare.diff import diff_bundles
from spyrec.diagnostics import SpyrecError
from tests.foreign import EXAMPLES as REFERENCE
from tests.handmade import add_bundle
from tests.support.artifacts import artifact, codes, dissect, example
from tests.support.call_counts import calls_of

EXAMPLES = Path(spyrec.__file__).parent.parent / "examples"
PLAN, IMAGE = "spyreCodeDir/spyrecode.json", "spyreCodeDir/init.bin"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    bundle = spyrec.compile(EXAMPLES / "seed_add_mul" / "graph.json", spyrec.CompileOptions(correction_slots=2))
    bundle.save(tmp_path / "out")
    return tmp_path / "out"


def refusal(root: Path, *, verify: bool = True) -> list[str]:
    with pytest.raises(SpyrecError) as caught:
        Bundle.load(root, verify=verify)
    assert all(item.location is not None and item.advice for item in caught.value.diagnostics)
    return [item.code for item in caught.value.diagnostics]


def rehash(root: Path) -> None:
    """Make the manifest's hashes those of the files: what somebody does who alters a bundle on purpose."""
    manifest = json.loads((root / "manifest.json").read_bytes())
    for name in manifest["files"]:
        manifest["files"][name] = hashlib.sha256((root / name).read_bytes()).hexdigest()
    (root / "manifest.json").write_text(json.dumps(manifest))


def edit_json(path: Path, **changes: Any) -> None:  # noqa: ANN401 -- JSON
    content = json.loads(path.read_bytes())
    content.update(changes)
    path.write_text(json.dumps(content, indent=2))


def test_a_bundle_is_written_with_its_artefact_and_read_with_it(saved: Path, tmp_path: Path) -> None:
    listed = json.loads((saved / "manifest.json").read_bytes())["files"]
    for name in (PLAN, IMAGE):
        assert listed[name] == hashlib.sha256((saved / name).read_bytes()).hexdigest()
    loaded = Bundle.load(saved)
    assert list(loaded.artifacts) == ["."]
    found = loaded.artifacts["."]
    assert found.files["init.bin"] == (saved / IMAGE).read_bytes()
    assert len(found.slots) == loaded.correction_slots == 2
    loaded.save(tmp_path / "again")
    assert diff_bundles(saved, tmp_path / "again") == []
    assert (tmp_path / "again" / PLAN).read_bytes() == (saved / PLAN).read_bytes()


def test_the_image_holds_the_files_beside_it(saved: Path) -> None:
    parts = dissect((saved / IMAGE).read_bytes()).files
    names = parts.keys() - {"/table.json"}
    assert names == {"bundle.mlir", "sdsc_0.json", "sdsc_1.json"}
    for name in names:
        assert parts[name] == (saved / name).read_bytes()


def test_every_program_of_a_bundle_has_an_artefact_of_its_own(tmp_path: Path) -> None:
    spyrec.compile(EXAMPLES / "digits" / "graph.json").save(tmp_path / "out")
    loaded = Bundle.load(tmp_path / "out")
    assert list(loaded.artifacts) == [step.program for step in loaded.manifest.plan] == ["kernels/0", "kernels/1"]
    for directory in loaded.artifacts:
        assert codes(tmp_path / "out" / directory / "spyreCodeDir") == []
    assert main(["check", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("slots", [1, 2, 4, 16])
def test_correction_slots_give_areas_behind_the_image_and_no_other_code(slots: int, tmp_path: Path) -> None:
    options = ["--correction-slots", str(slots)]
    source = str(EXAMPLES / "seed_add_mul" / "graph.json")
    assert main(["compile", source, "-o", str(tmp_path / "out"), *options]) == 0
    made = Bundle.load(tmp_path / "out").artifacts["."]
    (transfer,) = made.transfers
    places = [slot.dev_ptr for slot in made.slots]
    assert places == [transfer.dev_ptr + transfer.size_bytes + 256 * slot for slot in range(slots)]
    assert made.allocation_bytes == transfer.size_bytes + 256 * slots


@pytest.mark.parametrize("slots", [0, 17, -1])
def test_correction_slots_out_of_range_are_refused(slots: int, tmp_path: Path) -> None:
    graph = EXAMPLES / "seed_add_mul" / "graph.json"
    with pytest.raises(SpyrecError) as caught:
        spyrec.compile(graph, spyrec.CompileOptions(correction_slots=slots))
    assert [item.code for item in caught.value.diagnostics] == ["SPY0771"]
    assert main(["compile", str(graph), "-o", str(tmp_path / "x"), "--correction-slots", str(slots)]) == 2


def test_baked_addresses_need_no_correction(tmp_path: Path) -> None:
    graph = EXAMPLES / "seed_add_mul" / "graph.json"
    options = spyrec.CompileOptions(symbolic_args=False, correction_slots=4)
    spyrec.compile(graph, options).save(tmp_path / "out")
    made = Bundle.load(tmp_path / "out").artifacts["."]
    assert (made.slots, len(made.execution)) == ((), 1)
    assert made.allocation_bytes == made.transfers[0].size_bytes


def test_value_parameters_are_words_of_the_correction(tmp_path: Path) -> None:
    graph = {
        "format": "spyrec.graph/1",
        "name": "symbolic",
        "dims": {"S": {"min": 1, "max": 1024}, "N": 128},
        "inputs": [{"name": "a", "shape": ["S", "N"], "dtype": "float16"}],
        "nodes": [{"name": "y", "op": "relu", "inputs": ["a"]}],
        "loops": [{"dim": "S", "tile_size": 64, "body": ["y"]}],
        "outputs": ["y"],
    }
    spyrec.compile(graph).save(tmp_path / "out")
    bundle = Bundle.load(tmp_path / "out")
    host = bundle.artifacts["."].execution[0]
    assert isinstance(host, ComputeOnHost)
    assert [word.name for word in host.specification.words if word.kind is WordKind.VALUE] == ["S_by_64_value"]


# --- what does not belong together ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [PLAN, IMAGE])
@pytest.mark.parametrize("damage", ["remove", "truncate", "alter"])
def test_a_damaged_artefact_is_one_clear_refusal(saved: Path, name: str, damage: str) -> None:
    path = saved / name
    content = bytearray(path.read_bytes())
    match damage:
        case "remove":
            path.unlink()
        case "truncate":
            path.write_bytes(content[:-1])
        case _:
            content[len(content) // 2] ^= 1
            path.write_bytes(content)
    expected = {"remove": ["SPY0601"], "alter": ["SPY0602"], "truncate": ["SPY0602"]}[damage]
    if (name, damage) == (IMAGE, "truncate"):
        expected = ["SPY0643"]  # its size is held against the plan before it is read
    assert refusal(saved) == expected


def test_a_rehashed_image_whose_code_was_altered_is_refused_by_its_own_hash(saved: Path) -> None:
    data = bytearray((saved / IMAGE).read_bytes())
    data[-200] ^= 1
    (saved / IMAGE).write_bytes(data)
    rehash(saved)
    assert refusal(saved) == ["SPY0653"]
    assert refusal(saved, verify=False) == ["SPY0653"]


def test_an_image_of_another_program_is_refused_and_made_anew_where_nothing_is_verified(saved: Path) -> None:
    path = saved / "sdsc_0.json"
    path.write_bytes(path.read_bytes().replace(b'"fidelity_": "regular"', b'"fidelity_":  "regular"'))
    assert refusal(saved) == ["SPY0602"]
    edited = Bundle.load(saved, verify=False)
    assert edited.artifacts["."].files["init.bin"] == (saved / IMAGE).read_bytes(), "the same but for a blank"
    rehash(saved)
    assert refusal(saved) == ["SPY0655"]


def test_an_image_with_another_table_than_the_manifest_is_refused(saved: Path) -> None:
    path = saved / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"q"'))
    assert refusal(saved) == ["SPY0655"]
    assert Bundle.load(saved, verify=False).artifacts["."].files["init.bin"] != (saved / IMAGE).read_bytes()


def test_a_rehashed_plan_that_breaks_a_rule_is_refused_with_its_code(saved: Path) -> None:
    content = json.loads((saved / PLAN).read_bytes())
    content["JobExecPlan"] = content["JobExecPlan"][2:]
    content["correctionSlots"] = []
    edit_json(saved / PLAN, **content)
    rehash(saved)
    assert refusal(saved) == ["SPY0651"]
    assert refusal(saved, verify=False) == ["SPY0651"]


def test_a_link_out_of_the_bundle_is_refused(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.bin").write_bytes((saved / IMAGE).read_bytes())
    (saved / IMAGE).unlink()
    (saved / IMAGE).symlink_to(tmp_path / "elsewhere.bin")
    assert refusal(saved) == ["SPY0644"]


# --- bundles without one --------------------------------------------------------------------------------------------


def test_an_older_bundle_without_artefact_gets_one_in_memory(saved: Path) -> None:
    wanted = Bundle.load(saved).artifacts["."]
    manifest = json.loads((saved / "manifest.json").read_bytes())
    for name in (PLAN, IMAGE):
        manifest["files"].pop(name)
        (saved / name).unlink()
    (saved / "manifest.json").write_text(json.dumps(manifest))
    made = Bundle.load(saved).artifacts["."]
    assert made.files.keys() == wanted.files.keys()
    assert len(made.slots) == 1
    two = dataclasses.replace(Bundle.load(saved), correction_slots=2).artifacts["."]
    assert two.files == wanted.files
    assert two.execution == wanted.execution


def test_a_foreign_bundle_gets_one_in_memory(tmp_path: Path) -> None:
    bundle = example("pool_symbolic", tmp_path)
    assert bundle.artifacts["."].execution == artifact(bundle).execution
    assert bundle.artifacts["."] is bundle.artifacts["."]


def test_a_changed_copy_of_a_bundle_does_not_keep_the_artefact_of_the_original(tmp_path: Path) -> None:
    bundle = add_bundle(tmp_path)
    first = bundle.artifacts["."]
    renamed = dataclasses.replace(bundle, manifest=dataclasses.replace(bundle.manifest, name="x"))
    assert renamed.artifacts["."] is not first
    step = dataclasses.replace(bundle.manifest.plan[0], pool_bytes=4096)
    changed = dataclasses.replace(bundle, manifest=dataclasses.replace(bundle.manifest, plan=(step,)))
    assert changed.artifacts["."].files != first.files


# --- codegen, diff, atomic writing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["add", "add_symbolic", "pool_symbolic", "nested_loop_symbolic", "matmul_ksplit"])
def test_codegen_writes_the_artefact_that_the_argument_table_gives(case: str, tmp_path: Path) -> None:
    source = str(REFERENCE / case / "opspecs.json")
    assert main(["codegen", source, "-o", str(tmp_path / "out"), "--correction-slots", "2"]) == 0
    assert codes(tmp_path / "out" / "spyreCodeDir") == []
    assert main(["check", str(tmp_path / "out")]) == 0
    wanted = json.loads(dissect(artifact(example(case, tmp_path), 2).files["init.bin"]).files["/table.json"])
    found = json.loads(dissect((tmp_path / "out" / IMAGE).read_bytes()).files["/table.json"])
    for table in (wanted, found):
        for item in table["arguments"]:
            item.pop("name")
    assert found == wanted


def test_check_finds_a_broken_artefact_in_a_directory_without_manifest(tmp_path: Path) -> None:
    assert main(["codegen", str(REFERENCE / "add_symbolic" / "opspecs.json"), "-o", str(tmp_path / "out")]) == 0
    edit_json(tmp_path / "out" / PLAN, schemaVersion="9")
    assert main(["check", str(tmp_path / "out")]) == 1


def test_a_difference_of_a_superdsc_is_not_told_again_for_image_and_plan(saved: Path, tmp_path: Path) -> None:
    bundle = Bundle.load(saved)
    (program,) = bundle.programs
    dsc = program.superdscs["sdsc_0.json"]
    longer = dataclasses.replace(dsc, masking_constant_id=dsc.masking_constant_id + 1_000_000_000)
    changed = dataclasses.replace(program, superdscs={**program.superdscs, "sdsc_0.json": longer})
    names = {f"k{number}": 0 for number in range(20)}
    bigger = dataclasses.replace(dsc, coordinate_masking=dict.fromkeys(names, ()))
    for other in (changed, dataclasses.replace(program, superdscs={**program.superdscs, "sdsc_0.json": bigger})):
        target = tmp_path / f"other{other is changed}"
        dataclasses.replace(bundle, programs=(other,)).save(target)
        assert {item.file for item in diff_bundles(saved, target)} == {"sdsc_0.json"}


def test_a_difference_inside_the_image_alone_is_told(saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    bundle = Bundle.load(saved)
    dataclasses.replace(bundle, correction_slots=4).save(other)
    files = {item.file for item in diff_bundles(saved, other)}
    assert PLAN in files
    renamed = tuple(
        dataclasses.replace(item, name="q") if item.name == "a" else item for item in bundle.manifest.arguments
    )
    step = dataclasses.replace(bundle.manifest.plan[0], arguments=("q", *bundle.manifest.plan[0].arguments[1:]))
    manifest = dataclasses.replace(bundle.manifest, arguments=renamed, plan=(step,))
    dataclasses.replace(bundle, manifest=manifest).save(tmp_path / "third")
    places = {(item.file, item.place) for item in diff_bundles(saved, tmp_path / "third")}
    assert (f"{IMAGE}:table.json", "/arguments/0/name") in places
    (saved / IMAGE).write_bytes(b"damaged")
    assert IMAGE in {item.file for item in diff_bundles(saved, other)}


SLOW_IMAGE = """
import sys, time
from pathlib import Path
import spyrec
from spyrec.bundle import bundle as module

def write_slowly(directory, folder, artifact):
    original(directory, folder, artifact)
    assert list(directory.digests)[-1].endswith("spyreCodeDir/init.bin")
    print("image written", flush=True)
    time.sleep(60)

original, module.write_artifact = module.write_artifact, write_slowly
spyrec.compile(sys.argv[1]).save(sys.argv[2])
"""


def test_a_writer_killed_behind_the_image_leaves_no_partial_artefact(tmp_path: Path) -> None:
    source = str(EXAMPLES / "seed_add_mul" / "graph.json")
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_IMAGE, source, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "image written\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob("spyreCodeDir"))


def test_a_bundle_is_written_with_the_files_of_each_program_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def noted(program: DeviceProgram) -> dict[str, bytes]:
        made.append(id(program.program))
        return program_files(program)

    for module in (written_bundle, launch_artifacts):
        monkeypatch.setattr(module, "program_files", noted)
    bundle = spyrec.compile(decoder(56))
    assert all(program.directory in bundle.artifacts for program in bundle.programs)
    assert not made, "to ask for an artefact does not make it"
    bundle.save(tmp_path / "out")
    assert len(bundle.programs) > len(made) == len({id(program.program) for program in bundle.programs})


def test_each_further_program_is_written_in_as_many_calls_as_the_one_before() -> None:
    bundles = [spyrec.compile(decoder(nodes)) for nodes in (56, 112, 224)]
    calls = [calls_of(bundle.with_kept_files) for bundle in bundles]
    programs = [len(bundle.programs) for bundle in bundles]
    first, second = ((calls[i + 1] - calls[i]) / (programs[i + 1] - programs[i]) for i in range(2))
    assert second <= 1.02 * first, "nothing is looked through for each of them"
