"""The bundle's directory: a round trip, atomic and deterministic writing, and refusals of damaged directories."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from spyrec.bundle import atomic_directory as atomic
from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.bundle.constants import ConstantForm, open_constants, write_constants
from spyrec.bundle.manifest import Argument, Role
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.layout.device_layout import DeviceLayout
from tests.foreign import EXAMPLES, argument_table, write_table
from tests.handmade import add_bundle


def with_constant(bundle: Bundle) -> Bundle:
    """Add a small constant that no program reads, and a graph."""
    layout = DeviceLayout.default((3, 70), "float16")
    paths = {way: f"dci/w.{way}.json" for way in ("h2d", "d2h")}
    form = (layout.device_size, layout.stride_map, DeviceFormat.SEN169_FP16)
    constant = Argument("w", Role.CONSTANT, None, None, (3, 70), DType.FLOAT16, (70, 1), *form, paths)
    graph = b'{"format": "spyrec.graph/1"}'
    manifest = dataclasses.replace(
        bundle.manifest,
        arguments=(*bundle.manifest.arguments, constant),
        graph_sha256=hashlib.sha256(graph).hexdigest(),
    )
    return dataclasses.replace(
        bundle,
        manifest=manifest,
        constants={"w": np.random.default_rng(0).standard_normal((3, 70)).astype(np.float16)},
        dci={**bundle.dci, **{path: layout.dci(way) for way, path in paths.items()}},
        graph_json=graph,
    )


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return with_constant(add_bundle(tmp_path))


def tree(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def refusal(action: Callable[[], object]) -> list[str]:
    with pytest.raises(SpyrecError) as caught:
        action()
    assert all(item.location is not None and item.hint for item in caught.value.diagnostics)
    return [item.code for item in caught.value.diagnostics]


def test_a_saved_bundle_is_loaded_as_it_was(bundle: Bundle, tmp_path: Path) -> None:
    bundle.save(tmp_path / "out")
    loaded = Bundle.load(tmp_path / "out")
    assert loaded.manifest == bundle.manifest
    assert loaded.programs == bundle.programs
    assert loaded.dci == bundle.dci
    assert loaded.graph_json == bundle.graph_json
    assert list(loaded.constants) == ["w"]
    np.testing.assert_array_equal(loaded.constants["w"], bundle.constants["w"])
    loaded.save(tmp_path / "again")
    assert tree(tmp_path / "again") == tree(tmp_path / "out")


def test_the_files_are_the_reference_files_and_their_hashes_are_listed(bundle: Bundle, tmp_path: Path) -> None:
    bundle.save(tmp_path / "out")
    files = tree(tmp_path / "out")
    for name in ("bundle.mlir", "sdsc_0.json"):
        assert files[name] == (EXAMPLES / "add" / name).read_bytes()
    manifest = json.loads(files.pop("manifest.json"))
    assert manifest["format"] == "spyrec.bundle/1"
    assert manifest["files"] == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    assert list(manifest["files"]) == sorted(manifest["files"])
    assert (manifest["lx"], manifest["traffic"], manifest["tile_contract"]) == (None, None, None)


def test_several_programs_lie_below_kernels(bundle: Bundle, tmp_path: Path) -> None:
    (program,) = bundle.programs
    (step,) = bundle.manifest.plan
    both = [dataclasses.replace(program, directory=f"kernels/{number}") for number in (0, 1)]
    plan = tuple(dataclasses.replace(step, program=item.directory) for item in both)
    several = dataclasses.replace(
        bundle, programs=tuple(both), manifest=dataclasses.replace(bundle.manifest, plan=plan)
    )
    several.save(tmp_path / "out")
    assert {"kernels/0/bundle.mlir", "kernels/1/sdsc_0.json"} <= tree(tmp_path / "out").keys()
    assert Bundle.load(tmp_path / "out").programs == several.programs


def test_an_existing_output_is_replaced_only_by_force_and_only_if_it_is_a_bundle(
    bundle: Bundle, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious.txt").write_text("mine")
    before = tree(tmp_path)
    assert refusal(lambda: bundle.save(out)) == ["SPY0612"]
    assert refusal(lambda: bundle.save(out, force=True)) == ["SPY0614"]
    assert tree(tmp_path) == before
    (tmp_path / "link").symlink_to(out)
    assert refusal(lambda: bundle.save(tmp_path / "link", force=True)) == ["SPY0614"]
    bundle.save(tmp_path / "other")
    (tmp_path / "other" / "stale.txt").write_text("of the old bundle")
    assert refusal(lambda: bundle.save(tmp_path / "other")) == ["SPY0612"]
    bundle.save(tmp_path / "other", force=True)
    assert "stale.txt" not in tree(tmp_path / "other")
    assert not list(tmp_path.glob(".*"))


def test_an_output_that_cannot_be_written_leaves_nothing_behind(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(tmp_path.iterdir())
    assert refusal(lambda: bundle.save(tmp_path / "absent" / "out")) == ["SPY0613"]
    assert refusal(lambda: bundle.save(tmp_path / "args.json" / "out")) == ["SPY0613"]
    assert sorted(tmp_path.iterdir()) == before

    def disk_full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.NewDirectory, "write", disk_full)
    assert refusal(lambda: bundle.save(tmp_path / "out")) == ["SPY0613"]
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("has_exchange", [True, False])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_an_existing_bundle_survives_a_failed_replacement(
    has_exchange: bool, error: BaseException, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle.save(tmp_path / "out")
    before = tree(tmp_path)
    rename = Path.rename

    def exchange(*_: Path) -> None:
        raise error if has_exchange else OSError(errno.ENOSYS, "Function not implemented")

    def failing(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial"):
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    monkeypatch.setattr(atomic, "_exchange", exchange)
    with pytest.raises((SpyrecError, KeyboardInterrupt)) as caught:
        bundle.save(tmp_path / "out", force=True)
    assert not isinstance(caught.value, SpyrecError) or caught.value.diagnostics[0].code == "SPY0613"
    assert tree(tmp_path) == before
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("has_exchange", [True, False])
def test_a_bundle_is_replaced_with_and_without_an_exchange_of_names(
    has_exchange: bool, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def library(*_: object, **__: object) -> object:
        return object()

    if not has_exchange:
        monkeypatch.setattr("ctypes.CDLL", library)
    bundle.save(tmp_path / "out")
    before = tree(tmp_path)
    (tmp_path / "out" / "stale.txt").write_text("of the old bundle")
    bundle.save(tmp_path / "out", force=True)
    assert tree(tmp_path) == before
    assert not list(tmp_path.glob(".*"))


SLOW_SAVE = """
import sys, time
from pathlib import Path
from spyrec.bundle.atomic_directory import atomic_directory
with atomic_directory(Path(sys.argv[1])) as directory:
    directory.write("bundle.mlir", b"x")
    print("writing", flush=True)
    time.sleep(60)
"""


@contextmanager
def writing(target: Path) -> Generator[subprocess.Popen[str]]:
    """Yield a process that writes a bundle to ``target`` and has begun."""
    process = subprocess.Popen([sys.executable, "-c", SLOW_SAVE, str(target)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "writing\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def inodes(root: Path) -> dict[str, int]:
    return {path.relative_to(root).as_posix(): path.stat().st_ino for path in root.rglob("*") if path.is_file()}


def test_a_replacement_is_what_a_new_directory_would_be_and_keeps_the_files_that_stay(tmp_path: Path) -> None:
    program, other = add_bundle(tmp_path), with_constant(add_bundle(tmp_path))
    program.save(tmp_path / "out")
    before = inodes(tmp_path / "out")
    other.save(tmp_path / "out", force=True)
    other.save(tmp_path / "fresh")
    assert tree(tmp_path / "out") == tree(tmp_path / "fresh")
    kept = {name for name, number in inodes(tmp_path / "out").items() if before.get(name) == number}
    same = {name for name in before if name != "manifest.json"}
    assert kept < same, "all but the first file, by which the permissions of new files are known"
    assert len(kept) == len(same) - 1
    assert all(path.stat().st_nlink == 1 for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert Bundle.load(tmp_path / "out").manifest == other.manifest


def _altered(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"0", b"1"))


def _private(path: Path) -> None:
    path.chmod(0o600)


def _held_elsewhere(path: Path) -> None:
    (path.parents[1] / "mine").hardlink_to(path)


def _led_to(path: Path) -> None:
    elsewhere = path.parents[1] / "mine"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _in_a_folder_elsewhere(path: Path) -> None:
    elsewhere = path.parents[2] / "folder"
    path.parent.rename(elsewhere)
    path.parent.symlink_to(elsewhere)


@pytest.mark.parametrize("change", [_altered, _private, _held_elsewhere, _led_to, _in_a_folder_elsewhere])
def test_a_file_that_is_not_what_would_be_written_is_written_anew(
    change: Callable[[Path], None], bundle: Bundle, tmp_path: Path
) -> None:
    bundle.save(tmp_path / "out")
    bundle.save(tmp_path / "fresh")
    found = tmp_path / "out" / "dci" / "w.h2d.json"
    change(found)
    before = found.stat().st_ino
    bundle.save(tmp_path / "out", force=True)
    assert tree(tmp_path / "out") == tree(tmp_path / "fresh")
    assert not found.is_symlink()
    assert found.stat().st_ino != before
    assert found.stat().st_mode == (tmp_path / "fresh" / "dci" / "w.h2d.json").stat().st_mode


def test_a_file_system_without_links_gets_all_files_anew(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "links")

    bundle.save(tmp_path / "out")
    expected = tree(tmp_path / "out")
    monkeypatch.setattr(atomic.os, "link", no_links)
    bundle.save(tmp_path / "out", force=True)
    assert tree(tmp_path / "out") == expected


def test_a_killed_writer_leaves_no_bundle_at_its_place(tmp_path: Path) -> None:
    with writing(tmp_path / "out") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_writer_that_is_told_to_end_leaves_nothing_and_ends_by_the_signal(number: int, tmp_path: Path) -> None:
    with writing(tmp_path / "out") as process:
        process.send_signal(number)
        assert process.wait(30) == -number
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_writer_leaves_is_removed_by_the_next_and_a_living_ones_stays(
    bundle: Bundle, tmp_path: Path
) -> None:
    with writing(tmp_path / "out") as process:
        (mine,) = tmp_path.glob(".*")
        assert mine.is_dir()
        bundle.save(tmp_path / "other")
        assert mine.is_dir(), "its writer lives"
        process.send_signal(signal.SIGKILL)
        process.wait()
    foreign = [tmp_path / ".other.partial", tmp_path / f".mine.{'0' * 16}.partial"]
    for path in foreign:
        path.mkdir()
    (tmp_path / f".link.{'0' * 16}.spyrec.partial").symlink_to(tmp_path / "other")
    bundle.save(tmp_path / "third")
    assert not mine.exists()
    assert all(path.is_dir() for path in foreign)
    assert tree(tmp_path / "other") == tree(tmp_path / "third")


def test_a_program_keeps_its_own_handler_and_gets_the_systems_back(bundle: Bundle, tmp_path: Path) -> None:
    def own(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError

    before = signal.getsignal(signal.SIGTERM)
    with atomic.atomic_directory(tmp_path / "one"), atomic.atomic_directory(tmp_path / "two"):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
    signal.signal(signal.SIGTERM, own)
    try:
        with atomic.atomic_directory(tmp_path / "three"):
            assert signal.getsignal(signal.SIGTERM) is own
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_bundle_is_written_by_any_thread(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    places = [tmp_path / "many" / str(number) for number in range(24)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(bundle.save, places))
    assert sorted((tmp_path / "many").iterdir()) == sorted(places)
    assert tree(places[0]) == tree(places[-1])


@pytest.mark.parametrize("name", ["n" * 250, "\u00e9" * 120])
def test_a_name_as_long_as_names_may_be_can_be_written(name: str, bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    bundle.save(tmp_path / "one" / name)
    bundle.save(tmp_path / "one" / name, force=True)
    assert [path.name for path in (tmp_path / "one").iterdir()] == [name]


FILES = ["bundle.mlir", "sdsc_0.json", "dci/t0.h2d.json", "constants.safetensors", "graph.json"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["remove", "truncate", "alter"])
def test_a_missing_truncated_or_altered_file_is_one_clear_refusal(
    name: str, damage: str, bundle: Bundle, tmp_path: Path
) -> None:
    bundle.save(tmp_path / "out")
    path = tmp_path / "out" / name
    content = bytearray(path.read_bytes())
    match damage:
        case "remove":
            path.unlink()
        case "truncate":
            path.write_bytes(content[:-1])
        case _:
            content[len(content) // 2] ^= 1
            path.write_bytes(content)
    assert refusal(lambda: Bundle.load(tmp_path / "out")) == ["SPY0601" if damage == "remove" else "SPY0602"]


def test_every_damaged_file_is_reported(bundle: Bundle, tmp_path: Path) -> None:
    bundle.save(tmp_path / "out")
    for name in FILES:
        (tmp_path / "out" / name).write_bytes(b"{}")
    assert refusal(lambda: Bundle.load(tmp_path / "out")) == ["SPY0602"] * len(FILES)


def test_without_verifying_an_edited_bundle_is_read_and_its_rules_still_hold(bundle: Bundle, tmp_path: Path) -> None:
    bundle.save(tmp_path / "out")
    path = tmp_path / "out" / "bundle.mlir"
    path.write_bytes(path.read_bytes().replace(b"\t\treturn", b"\t\t// edited\n\t\treturn"))
    assert refusal(lambda: Bundle.load(tmp_path / "out")) == ["SPY0602"]
    assert Bundle.load(tmp_path / "out", verify=False).programs == bundle.programs
    constants = tmp_path / "out" / "constants.safetensors"
    constants.write_bytes(constants.read_bytes()[:-2])
    assert refusal(lambda: Bundle.load(tmp_path / "out", verify=False)) == ["SPY0616"]


@pytest.mark.parametrize("name", ["../secret.json", "/etc/hostname", "a/../../secret.json", "..\\secret.json", ""])
def test_a_filename_that_leaves_the_directory_is_refused(name: str, bundle: Bundle, tmp_path: Path) -> None:
    bundle.save(tmp_path / "out")
    (tmp_path / "secret.json").write_bytes((EXAMPLES / "add" / "sdsc_0.json").read_bytes())
    path = tmp_path / "out" / "bundle.mlir"
    path.write_text(path.read_text().replace("sdsc_0.json", name.replace("\\", "\\5C")))
    assert refusal(lambda: Bundle.load(tmp_path / "out", verify=False)) == ["SPY0603"]


def test_a_link_that_leaves_the_directory_is_refused_and_one_inside_is_not(bundle: Bundle, tmp_path: Path) -> None:
    bundle.save(tmp_path / "out")
    path = tmp_path / "out" / "sdsc_0.json"
    outside = path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(outside)
    assert refusal(lambda: Bundle.load(tmp_path / "out")) == ["SPY0603"]
    path.unlink()
    outside.rename(tmp_path / "out" / "inside.json")
    path.symlink_to("inside.json")
    assert Bundle.load(tmp_path / "out").programs == bundle.programs


def edit_manifest(root: Path, *path: str | int, value: object) -> None:
    content = json.loads((root / "manifest.json").read_bytes())
    place = content
    for token in path[:-1]:
        place = place[token]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    (root / "manifest.json").write_text(json.dumps(content))


MANIFEST_DAMAGES: list[tuple[tuple[str | int, ...], object, str]] = [
    (("format",), "spyrec.bundle/2", "SPY0610"),
    (("format",), ..., "SPY0610"),
    (("surprise",), 1, "SPY0610"),
    (("plan",), ..., "SPY0610"),
    (("target", "cores"), 33, "SPY0610"),
    (("arguments", 0, "role"), "visitor", "SPY0610"),
    (("arguments", 0, "dtype"), "float12", "SPY0610"),
    (("arguments", 0, "device_dtype"), "INVALID", "SPY0610"),
    (("arguments", 0, "device_size", 0), -1, "SPY0610"),
    (("arguments", 0, "device_size", 0), 1 << 63, "SPY0610"),
    (("arguments", 0, "device_size"), [1] * 33, "SPY0610"),
    (("arguments", 0, "device_size"), [64, 1024, 32], "SPY0611"),
    (("arguments", 0, "stride_map"), [64, 4096], "SPY0611"),
    (("arguments", 0, "host_strides"), [1], "SPY0611"),
    (("arguments", 0, "shape"), [1024, 4095], "SPY0611"),
    (("arguments", 0, "dci"), None, "SPY0611"),
    (("arguments", 0, "dci", "h2d"), "../t0.json", "SPY0603"),
    (("arguments", 0, "dci", "h2d"), "dci/t0.d2h.json", "SPY0611"),
    (("arguments", 0, "name"), "t2", "SPY0611"),
    (("inputs",), ["t2"], "SPY0611"),
    (("outputs", 0, "argument"), "t9", "SPY0611"),
    (("inputs",), [], "SPY0611"),
    (("outputs",), [], "SPY0611"),
    (("plan", 0, "program"), "../other", "SPY0611"),
    (("plan", 0, "program"), "/tmp", "SPY0611"),
    (("plan", 0, "arguments", 0), "t9", "SPY0611"),
    (("plan", 0, "pool_bytes"), 128, "SPY0611"),
    (("files", "bundle.mlir"), ..., "SPY0606"),
    (("files", "bundle.mlir"), "0" * 64, "SPY0602"),
    (("files", "bundle.mlir"), "abc", "SPY0610"),
    (("files", "../x"), "0" * 64, "SPY0603"),
    (("graph_sha256",), "0" * 64, "SPY0602"),
]


@pytest.mark.parametrize(("path", "value", "code"), MANIFEST_DAMAGES, ids=str)
def test_a_damaged_manifest_is_refused(
    path: tuple[str | int, ...], value: object, code: str, bundle: Bundle, tmp_path: Path
) -> None:
    bundle.save(tmp_path / "out")
    edit_manifest(tmp_path / "out", *path, value=value)
    assert set(refusal(lambda: Bundle.load(tmp_path / "out"))) == {code}


def test_a_directory_without_manifest_or_without_anything_is_refused(tmp_path: Path) -> None:
    assert refusal(lambda: Bundle.load(EXAMPLES / "add")) == ["SPY0615"]
    assert refusal(lambda: Bundle.load(tmp_path)) == ["SPY0615"]
    assert refusal(lambda: Bundle.load(tmp_path / "absent")) == ["SPY0601"]


@pytest.mark.parametrize("case", sorted(path.parent.name for path in EXAMPLES.glob("*/bundle.mlir")))
def test_every_reference_bundle_loads_with_a_table(case: str, tmp_path: Path) -> None:
    bundle = load_foreign(EXAMPLES / case, write_table(tmp_path, argument_table(case)))
    (program,) = bundle.programs
    assert sorted(program.superdscs) == sorted(path.name for path in (EXAMPLES / case).glob("sdsc_*.json"))
    assert [item.role for item in bundle.manifest.arguments].count(Role.OUTPUT) == len(bundle.manifest.outputs) > 0


TABLE_DAMAGES: list[tuple[tuple[str | int, ...], object, str]] = [
    (("format",), "spyrec.args/2", "SPY0610"),
    (("arguments", 0, "role"), "constant", "SPY0610"),
    (("arguments", 0, "arg_index"), 1, "SPY0617"),
    (("arguments", 0, "name"), "t1", "SPY0617"),
    (("arguments", 0, "device_size"), [64, 1024, 32], "SPY0617"),
    (("arguments", 0, "shape"), [1024, 4096], "SPY0617"),
    (("arguments", 2), ..., "SPY0634"),
]


@pytest.mark.parametrize(("path", "value", "code"), TABLE_DAMAGES, ids=str)
def test_a_damaged_table_is_refused(path: tuple[str | int, ...], value: object, code: str, tmp_path: Path) -> None:
    table = argument_table("add_symbolic")
    place: Any = table
    for token in path[:-1]:
        place = place[token]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    args = write_table(tmp_path, table)
    assert set(refusal(lambda: load_foreign(EXAMPLES / "add_symbolic", args))) == {code}


FORMS = {
    "b": ConstantForm(DType.BOOL, (3,)),
    "f16": ConstantForm(DType.FLOAT16, (2, 5)),
    "f32": ConstantForm(DType.FLOAT32, ()),
    "i64": ConstantForm(DType.INT64, (3, 1)),
    "bf16": ConstantForm(DType.BFLOAT16, (7,)),
    "f8": ConstantForm(DType.FLOAT8_E4M3FN, (9,)),
}


def random_tensors() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    raw = {name: rng.integers(0, 2, form.size_bytes, dtype=np.uint8) for name, form in FORMS.items()}
    return {name: raw[name].view(form.dtype.carrier).reshape(form.shape) for name, form in FORMS.items()}


def test_constants_are_what_the_safetensors_library_reads(tmp_path: Path) -> None:
    tensors = random_tensors()
    path = tmp_path / "constants.safetensors"
    with path.open("wb") as stream:
        write_constants(stream.write, tensors, FORMS)
    mapped = open_constants(path, FORMS, "constants.safetensors")
    for name, array in tensors.items():
        np.testing.assert_array_equal(mapped[name], array)
        assert mapped[name].dtype == array.dtype
        assert mapped[name].ctypes.data % array.dtype.itemsize == 0
    plain = {name: form for name, form in FORMS.items() if name in {"b", "f16", "f32", "i64"}}
    with path.open("wb") as stream:
        write_constants(stream.write, {name: tensors[name] for name in plain}, plain)
    for name, array in load_file(path).items():
        np.testing.assert_array_equal(array, tensors[name])


def test_writing_constants_takes_no_second_copy(tmp_path: Path) -> None:
    tensors = {"w": np.zeros((4096, 4096), np.float16)}
    with (tmp_path / "c").open("wb") as stream:
        tracemalloc.start()
        write_constants(stream.write, tensors, {"w": ConstantForm(DType.FLOAT16, (4096, 4096))})
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak_bytes < 1 << 20


HEADERS = [
    b"\xff" * 8,
    b"\x02\0\0\0\0\0\0\0{",
    b"\x02\0\0\0\0\0\0\0{}",
    b"\x02\0\0\0\0\0\0\0[]",
    *(
        len(text).to_bytes(8, "little") + text + b"\0" * 20
        for text in (
            b'{"w": {"dtype": "F32", "shape": [2, 5], "data_offsets": [0, 20]}}',
            b'{"w": {"dtype": "F16", "shape": [5, 2], "data_offsets": [0, 20]}}',
            b'{"w": {"dtype": "F16", "shape": [2, 5], "data_offsets": [4, 24]}}',
            b'{"w": {"dtype": "F16", "shape": [2, 5], "data_offsets": [-4, 16]}}',
            b'{"w": {"dtype": "F16", "shape": [2, 5]}}',
            b'{"v": {"dtype": "F16", "shape": [2, 5], "data_offsets": [0, 20]}}',
        )
    ),
]


@pytest.mark.parametrize("content", HEADERS)
def test_a_damaged_constants_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "constants.safetensors"
    path.write_bytes(content)
    assert refusal(lambda: open_constants(path, {"w": ConstantForm(DType.FLOAT16, (2, 5))}, str(path))) == ["SPY0616"]
