"""What a core is said to do, beside every address that the emulated device touches, and beside the worked examples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions
from spyrec.bundle.superdsc import Component, Indirection
from spyrec.compare.bundle_reading import BundleReading, OperationReading, read_path
from spyrec.compare.core_shares import OperandShare, core_share, host_layout
from spyrec.hardware.target import TARGETS
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.observer import Execution, LaunchedMemory
from tests.foreign import EXAMPLES
from tests.support.examples import examples
from tests.support.random_graphs import random_graph
from tests.support.runs import ready

_ARGS = EXAMPLES.parent / "examples_args"


class Watcher:
    """Keeps, of each execution in the first round of its loops, which bytes of which memory each core touches."""

    is_ended = False

    def __init__(self) -> None:
        self.seen: dict[tuple[int, str], Execution] = {}
        self.touched: dict[tuple[int, str, int, int], tuple[int | None, npt.NDArray[np.int64]]] = {}
        self.launch = -1

    def launching(self, memory: LaunchedMemory) -> None:
        self.launch += 1

    def before(self, execution: Execution) -> None:
        if any(execution.iteration):
            return
        superdsc = execution.superdsc
        for position, operand in enumerate(superdsc.operands):
            if operand.indirection is Indirection.VALUE or position not in (
                *superdsc.compute.inputs, *superdsc.compute.outputs
            ):  # fmt: skip
                continue
            addresses = execution.addresses(position, execution.dims_of(position))
            base = execution.base_of(position)
            for row, core in enumerate(superdsc.core_ids):
                own = np.unique(addresses[row])
                self.touched[self.launch, execution.file, position, core] = (base, own)

    def after(self, execution: Execution) -> None:
        pass


def hold(reading: BundleReading, watcher: Watcher) -> int:
    """Hold every share of a bundle against what was touched; return how many were compared."""
    compared = 0
    for number, program in enumerate(reading.programs):
        for operation in program.operations:
            for core in operation.superdsc.core_ids:
                share = core_share(operation, core)
                assert share is not None
                for position, own in enumerate(share.operands):
                    key = number, operation.call.file, position, core
                    if key in watcher.touched and not operation.superdsc.padding_sizes:
                        # element by element: of the first core and the last, whose share may be ragged
                        ends = core in {operation.superdsc.core_ids[0], operation.superdsc.core_ids[-1]}
                        _hold_share(operation, position, own, watcher.touched[key], has_indices=ends)
                        compared += 1
    return compared


def _hold_share(
    operation: OperationReading,
    position: int,
    own: OperandShare,
    touched: tuple[int | None, npt.NDArray[np.int64]],
    *,
    has_indices: bool,
) -> None:
    operand = operation.operands[position]
    base, addresses = touched
    word = operand.operand.word_length
    is_lx = operand.operand.component is Component.LX
    assert own.place.base == (None if is_lx else base)
    assert (own.first_bytes, own.past_bytes) == (int(addresses[0]), int(addresses[-1]) + word)
    assert own.elements == len(addresses)
    layout = None if operand.argument is None else host_layout(operand.argument)
    if layout is None or own.host is None or not has_indices:
        return
    indices = elements_at(layout, addresses.tolist())
    box = list(product(*(range(item.first, item.past, item.step) for item in own.host.ranges)))
    if own.host.is_full:
        assert sorted(indices) == box
    else:
        assert indices <= set(box)


def elements_at(layout: DeviceLayout, addresses: list[int]) -> set[tuple[int, ...]]:
    """Return the host indices that lie at byte addresses, element by element."""
    found = (layout.host_index(layout.at_byte_address(address)) for address in addresses)
    return {index for index in found if index is not None}


def watched(graph: Mapping[str, object], arrays: Mapping[str, npt.NDArray[np.generic]], options: CompileOptions) -> int:
    with TemporaryDirectory() as parent:
        path = Path(parent) / "bundle"
        bundle = spyrec.compile(dict(graph), options)
        bundle.save(path)
        watcher = Watcher()
        with ready(bundle) as run:
            run.prepared.run(arrays, watcher)
        return hold(read_path(path), watcher)


@examples(12)
@given(st.integers(0, 1 << 30), st.sampled_from([1, 4, 6, 32]), st.booleans())
def test_shares_are_what_the_device_touches(seed: int, cores: int, is_symbolic: bool) -> None:
    graph, arrays = random_graph(seed, 3)
    watched(graph, arrays, CompileOptions(cores=cores, symbolic_args=is_symbolic))


TILED = {
    "format": "spyrec.graph/1",
    "dims": {"A": 128, "B": 256},
    "inputs": [{"name": name, "shape": ["A", "B"], "dtype": "float16"} for name in "ab"],
    "nodes": [
        {"name": "y", "op": "add", "inputs": ["a", "b"]},
        {"name": "z", "op": "mul", "inputs": ["y", "b"]},
    ],
    "loops": [{"dim": "A", "tiles": 2, "body": [{"dim": "B", "tiles": 2, "body": ["y", "z"]}]}],
    "outputs": ["z"],
}  # fmt: skip


def test_shares_in_loops_and_products_are_what_the_device_touches() -> None:
    generator = np.random.default_rng(1)
    ones = {name: generator.random((128, 256)).astype(np.float16) for name in "ab"}
    assert watched(TILED, ones, CompileOptions(cores=4)) == (2 + 3 + 3) * 4  # one copies b in
    product_graph = {
        "format": "spyrec.graph/1",
        "inputs": [
            {"name": "a", "shape": [70, 200], "dtype": "float16"},
            {"name": "b", "shape": [200, 130], "dtype": "float16"},
        ],
        "nodes": [
            {"name": "y", "op": "mm", "inputs": ["a", "b"]},
            {"name": "z", "op": "softmax", "inputs": ["y"], "attrs": {"dim": -1}},
        ],
        "outputs": ["z"],
    }  # fmt: skip
    arrays = {"a": np.ones((70, 200), np.float16), "b": np.ones((200, 130), np.float16)}
    assert watched(product_graph, arrays, CompileOptions(cores=8)) > 40


def one_share(case: str, core: int) -> tuple[OperationReading, tuple[OperandShare, ...]]:
    reading = read_path(EXAMPLES / case, _ARGS / f"{case}.host.json")
    operation = reading.operations[0]
    share = core_share(operation, core)
    assert share is not None
    return operation, share.operands


def said(shares: tuple[OperandShare, ...]) -> list[str]:
    return [", ".join(map(str, item.host.ranges)) if item.host is not None else "" for item in shares]


@pytest.mark.parametrize(
    ("case", "core", "wanted", "starts"),
    [
        # the worked examples by hand: 32 rows of 128 bytes in each column of sticks
        ("add", 3, ["96:128, 0:4096"] * 3, [12288] * 3),
        ("slice_backgap", 1, ["4:8, 64:192", "4:8, 0:128"], None),
        ("sum_stick", 1, None, None),
        ("matmul_ksplit", 1, ["0:128, 64:128", "64:128, 0:512", "0:128, 0:512"], [65536, 8192, 0]),
        ("max_nonstick", 0, None, [0, 0]),
    ],
)
def test_shares_of_the_worked_examples(
    case: str, core: int, wanted: list[str] | None, starts: list[int] | None
) -> None:
    operation, shares = one_share(case, core)
    if starts is not None:
        assert [item.first_bytes for item in shares] == starts
    if wanted is not None:
        assert said(shares) == wanted
    for item, own in zip(operation.operands, shares, strict=True):
        assert own.host is None or own.host.is_full
        assert own.first_bytes == item.places[operation.superdsc.core_ids.index(core)].offset


@pytest.mark.parametrize("table", sorted(path.name for path in _ARGS.glob("*.host.json")))
def test_the_cores_of_a_worked_example_write_every_element_of_its_outputs_once(table: str) -> None:
    case = table.removesuffix(".host.json")
    if case.startswith("nested_loop") or ".sdsc" in case or case == "dtype_cast":
        pytest.skip("several rounds or kernels: an output is written by more than one share")
    reading = read_path(EXAMPLES / case, _ARGS / table)
    arguments = {item["name"]: item for item in json.loads((_ARGS / table).read_text())["arguments"]}
    counts: dict[str, npt.NDArray[np.int64]] = {}
    for operation in reading.operations:
        for core in operation.superdsc.core_ids:
            share = core_share(operation, core)
            assert share is not None
            for item, own in zip(operation.operands, share.operands, strict=True):
                if not item.is_written or item.memory != "argument" or own.host is None:
                    continue
                assert own.host.is_full
                found = counts.setdefault(item.name, _zeros(arguments[item.name]["shape"]))
                found[tuple(slice(part.first, part.past, part.step) for part in own.host.ranges)] += 1
    assert counts
    once = 1 if case != "matmul_ksplit" else 4  # the cores that share the inner dim have the same result
    for found in counts.values():
        assert (found == once).all()


def _zeros(shape: list[int]) -> npt.NDArray[np.int64]:
    return np.zeros(shape, np.int64)


def test_a_window_takes_what_it_reaches_beyond_the_slice_and_no_padding(tmp_path: Path) -> None:
    """Outputs 8:16 of a convolution of width 3 that pads by one take elements 7:17, of which 16 is padding."""
    graph = {
        "format": "spyrec.graph/1",
        "inputs": [
            {"name": "x", "shape": [1, 64, 16, 16], "dtype": "float16"},
            {"name": "w", "shape": [64, 64, 3, 3], "dtype": "float16"},
        ],
        "nodes": [{"name": "y", "op": "conv2d", "inputs": ["x", "w"], "attrs": {"padding": [1, 1]}}],
        "outputs": ["y"],
    }
    spyrec.compile(graph, CompileOptions(cores=4, target=TARGETS["2026-08"])).save(tmp_path / "bundle")
    (operation,) = read_path(tmp_path / "bundle").operations
    assert operation.superdsc.padding_sizes
    wanted = {
        0: "0, 0:64, 0:9, 0:9",
        1: "0, 0:64, 0:9, 7:16",
        2: "0, 0:64, 7:16, 0:9",
        3: "0, 0:64, 7:16, 7:16",
    }
    for core, ranges in wanted.items():
        share = core_share(operation, core)
        assert share is not None
        assert said(share.operands)[:2] == [ranges, "0:64, 0:64, 0:3, 0:3"]
        assert all(item.host is not None and item.host.is_full for item in share.operands)
