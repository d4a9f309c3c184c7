"""The semantic diff: other names are no difference, and each of many planted changes is named in words."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import spyrec
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.superdsc import Operand, SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.cli import main
from spyrec.compare.changes import Change, Topic
from spyrec.compare.semantic_diff import changes_of
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import TARGETS
from tests.support.examples import examples
from tests.support.random_graphs import random_graph
from tests.support.renumbering import renumber

Json = Any

GRAPH: Json = {
    "format": "spyrec.graph/1",
    "name": "mixed",
    "dims": {"A": 128, "B": 256},
    "inputs": [
        {"name": "a", "shape": ["A", "B"], "dtype": "float16"},
        {"name": "b", "shape": ["A", "B"], "dtype": "float16"},
        {"name": "r", "shape": [64, 200], "dtype": "float16"},
    ],
    "constants": [{"name": "w", "shape": [200], "dtype": "float16", "value": [0.5] * 200}],
    "nodes": [
        {"name": "y", "op": "add", "inputs": ["a", "b"]},
        {"name": "z", "op": "mul", "inputs": ["y", "a"]},
        {"name": "c", "op": "clamp", "inputs": ["r"], "attrs": {"min": -1.0, "max": 2.0}},
        {"name": "p", "op": "mul", "inputs": ["c", "w"]},
        {"name": "s", "op": "sum", "inputs": ["p"], "attrs": {"dim": [-1], "keepdim": True}},
    ],
    "loops": [{"dim": "A", "tiles": 2, "body": [{"dim": "B", "tiles": 2, "body": ["y", "z"]}]}],
    "outputs": ["z", "s"],
}
PLAIN: Json = {**GRAPH, "loops": []}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``looped``: with symbols and loops; ``baked``: with addresses in the files and without loops."""
    folder = tmp_path_factory.mktemp("semantic")
    spyrec.compile(GRAPH, spyrec.CompileOptions(cores=8)).save(folder / "looped")
    spyrec.compile(PLAIN, spyrec.CompileOptions(cores=8, symbolic_args=False)).save(folder / "baked")
    return folder


@examples(3)
@given(st.integers(0, 1 << 30))
def test_other_names_are_no_difference(bundles: Path, tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    folder = tmp_path_factory.mktemp("renumbered")
    for name in ("looped", "baked"):
        renumber(bundles / name, folder / name, random.Random(seed))
        assert [str(item) for item in changes_of(bundles / name, folder / name)] == []
    assert main(["diff", "--semantic", str(folder / "looped"), str(bundles / "looped")]) == 0
    shutil.rmtree(folder)


@examples(10)
@given(st.integers(0, 1 << 30), st.booleans())
def test_other_names_of_random_bundles_are_no_difference(
    tmp_path_factory: pytest.TempPathFactory, seed: int, is_symbolic: bool
) -> None:
    folder = tmp_path_factory.mktemp("random")
    graph, _ = random_graph(seed, 3)
    spyrec.compile(graph, spyrec.CompileOptions(cores=4, symbolic_args=is_symbolic)).save(folder / "one")
    renumber(folder / "one", folder / "other", random.Random(seed))
    assert [str(item) for item in changes_of(folder / "one", folder / "other")] == []
    shutil.rmtree(folder)


@dataclass(frozen=True)
class Planted:
    """A change that is planted in a copy of a bundle, and what has to be said of it."""

    name: str
    bundle: str
    plant: Callable[[Path], None]
    topic: Topic
    words: str


def file_of(bundle: Path, op: str) -> Path:
    """Return the file of the first operation of that function."""
    for path in sorted(bundle.rglob("sdsc_*.json"), key=lambda path: int(path.stem.partition("_")[2])):
        if parse_superdsc(path.read_bytes()).op_func_name == op:
            return path
    raise AssertionError(op)


def in_dsc(op: str, change: Callable[[SuperDsc], SuperDsc]) -> Callable[[Path], None]:
    def plant(bundle: Path) -> None:
        path = file_of(bundle, op)
        path.write_bytes(to_bytes(change(parse_superdsc(path.read_bytes()))))

    return plant


def in_operand(op: str, position: int, change: Callable[[Operand], Operand]) -> Callable[[Path], None]:
    def changed(dsc: SuperDsc) -> SuperDsc:
        operands = list(dsc.operands)
        operands[position] = change(operands[position])
        return replace(dsc, operands=tuple(operands))

    return in_dsc(op, changed)


def in_json(name: str, change: Callable[[Json], None]) -> Callable[[Path], None]:
    def plant(bundle: Path) -> None:
        content = json.loads((bundle / name).read_text())
        change(content)
        (bundle / name).write_text(json.dumps(content))

    return plant


def repeat_wrong(bundle: Path) -> None:
    path = file_of(bundle, "add")
    content = json.loads(path.read_text())
    next(iter(content.values()))["sdscFoldProps_"] = [{"factor_": 2, "label_": "time"}]
    path.write_text(json.dumps(content))


def in_text(old: str, new: str, count: int = 1) -> Callable[[Path], None]:
    def plant(bundle: Path) -> None:
        path = next(path for path in sorted(bundle.rglob("bundle.mlir")) if old in path.read_text())
        path.write_text(path.read_text().replace(old, new, count))

    return plant


def later(operand: Operand, size_bytes: int, cores: tuple[int, ...] | None = None) -> Operand:
    starts = [
        start + size_bytes * (cores is None or core in cores) for core, start in enumerate(operand.start_addresses)
    ]
    return replace(operand, start_addresses=tuple(starts))


def swapped_slices(dsc: SuperDsc) -> SuperDsc:
    slices = list(dsc.core_work_slices)
    slices[0], slices[1] = slices[1], slices[0]
    return replace(dsc, core_work_slices=tuple(slices))


def swap_calls(bundle: Path) -> None:
    path = next(iter(sorted(bundle.rglob("bundle.mlir"))))
    lines = path.read_text().splitlines(keepends=True)
    first, second = [place for place, line in enumerate(lines) if "sdsc_execute" in line][:2]
    lines[first], lines[second] = lines[second], lines[first]
    path.write_text("".join(lines))


def drop_call(bundle: Path) -> None:
    path = next(iter(sorted(bundle.rglob("bundle.mlir"))))
    lines = path.read_text().splitlines(keepends=True)
    last = [place for place, line in enumerate(lines) if "sdsc_execute" in line][-1]
    path.write_text("".join(lines[:last] + lines[last + 1 :]))


def change_weights(bundle: Path) -> None:
    path = bundle / "constants.safetensors"
    content = bytearray(path.read_bytes())
    content[-2:] = np.float16(7).tobytes()
    path.write_bytes(content)


def change_step(bundle: Path) -> None:
    path = next(path for path in sorted(bundle.rglob("bundle.mlir")) if "affine_map" in path.read_text())
    text = path.read_text()
    number = parse_program(text).maps[0].coefficients[0]
    assert number
    path.write_text(text.replace(f"{number}*d0", f"{number + 4096}*d0", 1))


def set_in(key: str, value: Json) -> Callable[[Json], None]:
    return lambda content: content.__setitem__(key, value)


def argument(manifest: Json, name: str) -> Json:
    return next(item for item in manifest["arguments"] if item["name"] == name)


PLANTED = [
    Planted("one core begins later", "baked", in_operand("add", 1, lambda item: later(item, 4096, (3,))),
            Topic.ADDRESSES, "b starts 4,096 bytes later on core 3, in "),
    Planted("all cores begin later", "baked", in_operand("add", 1, lambda item: later(item, 128)),
            Topic.ADDRESSES, "b starts 128 bytes later, in "),
    Planted("another place in LX", "baked", in_operand("add", 2, lambda item: later(item, 65536)),
            Topic.LX, "starts 65,536 bytes later, in "),
    Planted("another function", "baked", in_dsc("add", lambda dsc: replace(
                dsc, op_func_name="sub", compute=replace(dsc.compute, op_func_name="sub"))),
            Topic.OPERATIONS, "is sub instead of add"),
    Planted("another constant", "baked", in_dsc("clip", lambda dsc: replace(
                dsc, constants=(replace(dsc.constants[0], bits=0x3E00), *dsc.constants[1:]))),
            Topic.CONSTANTS, "clipMin is 0x3e00"),
    Planted("a weight", "baked", change_weights, Topic.CONSTANTS, "w holds other numbers, 1 of 200 elements"),
    Planted("a dtype", "baked", in_json("manifest.json", lambda it: argument(it, "a").update(dtype="bfloat16")),
            Topic.ARGUMENTS, "a has dtype BFLOAT16 instead of FLOAT16"),
    Planted("a stride map", "baked", in_json(
                "manifest.json", lambda it: argument(it, "a").update(stride_map=[128, 256, 1])),
            Topic.LAYOUTS, "a has stride map (128, 256, 1) instead of (64, 256, 1)"),
    Planted("a layout", "baked", in_operand("add", 1, lambda item: replace(
                item, layout_dim_order=tuple(reversed(item.layout_dim_order)))),
            Topic.LAYOUTS, "b is laid out [mb, out] instead of [out, mb]"),
    Planted("a scale", "baked", in_operand("add", 1, lambda item: replace(item, scales={**item.scales, "mb": -1})),
            Topic.LAYOUTS, "b has scale -1 instead of 1 along mb"),
    Planted("a gap", "baked", in_operand("add", 1, lambda item: replace(item, back_gap={"mb": 16})),
            Topic.LAYOUTS, "b has a gap of 16 instead of 0 along mb"),
    Planted("a format", "baked", in_operand("add", 1, lambda item: replace(
                item, data_format=DeviceFormat.SENINT16)),
            Topic.LAYOUTS, "b has format SENINT16 instead of SEN169_FP16"),
    Planted("a loop's rounds", "looped", in_text("arith.constant 2 : index", "arith.constant 1 : index"),
            Topic.LOOPS, "has 1 round instead of 2"),
    Planted("a loop's step", "looped", change_step, Topic.ADDRESSES, "bytes instead of "),
    Planted("the order of two operations", "baked", swap_calls, Topic.OPERATIONS, "instead of"),
    Planted("an operation is missing", "baked", drop_call, Topic.OPERATIONS, "only on the left side, in "),
    Planted("another operand", "looped", in_text("(%arg_1", "(%arg_0"), Topic.OPERATIONS, "reads "),
    Planted("a mask", "baked", in_dsc("sum", lambda dsc: replace(dsc, coordinate_masking={"out": ((192, 64),)})),
            Topic.CONSTANTS, "masks out 192:256 instead of out 200:256"),
    Planted("an execution unit", "baked", in_dsc("add", lambda dsc: replace(
                dsc, compute=replace(dsc.compute, execution_unit="pt"))),
            Topic.OPERATIONS, "has execution unit pt instead of sfp"),
    Planted("slices of two cores", "baked", in_dsc("add", swapped_slices),
            Topic.DIVISIONS, "gives cores 0, 1 other slices"),
    Planted("another core", "baked", in_dsc("add", lambda dsc: replace(
                dsc, core_ids=(*dsc.core_ids[:-1], 31))),
            Topic.DIVISIONS, "runs on cores (0, 1, 2, 3, 4, 5, 6, 31) instead of"),
    Planted("a host copy", "baked", in_json("dci/a.h2d.json", lambda it: it.update(dci_dsName_="other")),
            Topic.COPIES, "a is copied otherwise (h2d)"),
    Planted("the graph", "baked", in_json("graph.json", lambda it: it.update(name="other")),
            Topic.GRAPH, "/name is"),
    Planted("the order of outputs", "baked", in_json(
                "manifest.json", lambda it: it.update(outputs=dict(reversed(it["outputs"].items()))
                if isinstance(it["outputs"], dict) else list(reversed(it["outputs"])))),
            Topic.PLAN, "outputs"),
    Planted("a target", "baked", in_json("manifest.json", lambda it: it["target"].update(lx_bytes=1 << 20)),
            Topic.OPTIONS, "lx bytes 1,048,576 instead of 2,097,152"),
    Planted("bound arguments", "baked", in_json("manifest.json", lambda it: it["plan"][0].update(
                arguments=[*it["plan"][0]["arguments"][1::-1], *it["plan"][0]["arguments"][2:]])),
            Topic.OPERATIONS, "reads b instead of a"),
    Planted("a repeated field", "baked", repeat_wrong,
            Topic.FILES, "the right side is warned once"),
    Planted("what one operation is predicted to take", "baked", in_json(
                "manifest.json", lambda it: it["traffic"]["ops"][0].update(simulated_us=99.0)),
            Topic.PREDICTIONS, "has simulated us 99.0 instead of "),
    Planted("a place in LX that is predicted", "baked", in_json(
                "manifest.json", lambda it: it["lx"]["tensors"][0].update(last=7)),
            Topic.PREDICTIONS, "has last 7 instead of "),
    Planted("a bound of the traffic", "baked", in_json(
                "manifest.json", lambda it: it["traffic"].update(lower_bound_bytes=1)),
            Topic.PREDICTIONS, "lower bound bytes 1 instead of "),
    Planted("a tile", "looped", in_json("manifest.json", lambda it: next(
                iter(it["tile_contract"]["programs"].values()))["arguments"][0].update(takes_strides=True)),
            Topic.PLAN, "takes strides True instead of False, in the tile contract of "),
    Planted("an output's tensor", "baked", in_json("manifest.json", lambda it: it["outputs"][0].update(name="y1")),
            Topic.PLAN, "outputs y1 as "),
]  # fmt: skip


def planted(bundles: Path, target: Path, item: Planted) -> list[Change]:
    shutil.copytree(bundles / item.bundle, target)
    item.plant(target)
    return changes_of(bundles / item.bundle, target)


@pytest.mark.parametrize("item", PLANTED, ids=lambda item: item.name)
def test_a_planted_change_is_named(bundles: Path, tmp_path: Path, item: Planted) -> None:
    found = planted(bundles, tmp_path / "other", item)
    assert any(change.topic is item.topic and item.words in str(change) for change in found), [*map(str, found)]


FOLLOWED = {
    "the order of two operations",
    "an operation is missing",
    "a layout",
    "another place in LX",  # what reads it reads what nobody wrote
    "slices of two cores",  # which begin where they began, and that is elsewhere now
}
ALONE = [item for item in PLANTED if item.name not in FOLLOWED]


@pytest.mark.parametrize("item", ALONE, ids=lambda item: item.name)
def test_a_planted_change_is_one_line(bundles: Path, tmp_path: Path, item: Planted) -> None:
    found = planted(bundles, tmp_path / "other", item)
    assert len({change.topic for change in found}) == 1, [*map(str, found)]


@examples(6)
@given(st.integers(0, 1 << 30), st.sampled_from([item for item in PLANTED if item.plant is not repeat_wrong]))
def test_a_change_is_found_among_other_names(
    bundles: Path, tmp_path_factory: pytest.TempPathFactory, seed: int, item: Planted
) -> None:
    """But for a repeated field: renumbering writes it anew."""
    folder = tmp_path_factory.mktemp("both")
    shutil.copytree(bundles / item.bundle, folder / "changed")
    item.plant(folder / "changed")
    try:
        renumber(folder / "changed", folder / "other", random.Random(seed))
    except (StopIteration, KeyError):
        return  # what stands in the bundle fits no program any more
    assert changes_of(bundles / item.bundle, folder / "other")
    shutil.rmtree(folder)


def test_constants_are_compared_by_their_bytes(bundles: Path, tmp_path: Path) -> None:
    for side, numbers in (("left", [0.0, math.nan]), ("right", [-0.0, math.nan])):
        shutil.copytree(bundles / "baked", tmp_path / side)
        constants = load_file(tmp_path / side / "constants.safetensors")
        constants["w"][:2] = numbers
        save_file(constants, tmp_path / side / "constants.safetensors")
    found = changes_of(tmp_path / "left", tmp_path / "right")
    assert [str(item) for item in found] == ["w holds other numbers, 1 of 200 elements"]


def test_one_cause_in_many_places_is_one_line_with_a_count(bundles: Path, tmp_path: Path) -> None:
    spyrec.compile(PLAIN, spyrec.CompileOptions(cores=4, symbolic_args=False)).save(tmp_path / "narrow")
    found = changes_of(bundles / "baked", tmp_path / "narrow")
    lines = [str(item) for item in found if item.topic is Topic.DIVISIONS]
    assert any(line.startswith("runs on 4 cores instead of 8, in ") and "operations (" in line for line in lines)
    assert not [str(item) for item in found if item.topic is Topic.ADDRESSES]
    assert [str(item) for item in found if item.topic is Topic.OPTIONS] == ["cores 4 instead of 8"]


def test_tensors_that_move_together_are_counted(tmp_path: Path) -> None:
    nodes = [{"name": f"n{k}", "op": "exp", "inputs": [f"n{k - 1}" if k else "x"]} for k in range(6)]
    graph: Json = {
        "format": "spyrec.graph/1",
        "inputs": [{"name": "x", "shape": [64, 64], "dtype": "float16"}],
        "nodes": nodes,
        "outputs": ["n5"],
    }
    for name in ("left", "right"):
        spyrec.compile(graph, spyrec.CompileOptions(cores=4)).save(tmp_path / name)
    for path in (tmp_path / "right").glob("sdsc_*.json"):
        dsc = parse_superdsc(path.read_bytes())
        moved = tuple(later(item, 8192) if item.component.value == "lx" else item for item in dsc.operands)
        path.write_bytes(to_bytes(replace(dsc, operands=moved)))
    (found,) = changes_of(tmp_path / "left", tmp_path / "right")
    assert str(found) == (
        "each of 5 (n0, n1, n2, ...) starts 8,192 bytes later, in 6 operations (0 exp, 1 exp, 2 exp, ...)"
    )
    assert found.count == 10


def told(left: Path, right: Path) -> list[str]:
    """Return what changed in words, in which nothing may stand that only Python says."""
    found = changes_of(left, right)
    lines = [f"{item.topic.value}: {item}" for item in found]
    assert not [line for line in lines if "has other" in line or "(name=" in line or "None" in line or ", )" in line]
    return lines


def test_options_are_told_in_words(bundles: Path, tmp_path: Path) -> None:
    baked, options = bundles / "baked", spyrec.CompileOptions(cores=8, symbolic_args=False)
    spyrec.compile(PLAIN, replace(options, lx_planner="none")).save(tmp_path / "none")
    lines = told(baked, tmp_path / "none")
    assert lines[0] == "options: lx planner none instead of best-fit"
    pools = "each of 2 (the pool of kernels/0, the pool of kernels/1) has 65,536 bytes instead of 0"
    assert f"addresses: {pools}" in lines
    assert not [line for line in lines if line.startswith("plan: ")]
    assert not [line for line in lines if line.startswith("files: ")]
    spyrec.compile(PLAIN, replace(options, target=TARGETS["2026-08"])).save(tmp_path / "august")
    lines = told(baked, tmp_path / "august")
    assert "options: target has windows True instead of False" in lines
    assert "options: target lx tensor bytes 1,625,344 instead of nothing" in lines
    spyrec.compile(GRAPH, spyrec.CompileOptions(cores=8, correction_slots=4)).save(tmp_path / "slots")
    lines = told(bundles / "looped", tmp_path / "slots")
    assert lines
    assert all(line.startswith("options: 4 launches may be in flight instead of 1, of ") for line in lines)


def test_another_name_of_a_node_changes_the_graph_alone(bundles: Path, tmp_path: Path) -> None:
    renamed = json.loads(json.dumps(PLAIN).replace('"c"', '"clamped"'))
    spyrec.compile(renamed, spyrec.CompileOptions(cores=8, symbolic_args=False)).save(tmp_path / "renamed")
    lines = told(bundles / "baked", tmp_path / "renamed")
    assert lines
    assert all(line.startswith("graph: ") for line in lines)
