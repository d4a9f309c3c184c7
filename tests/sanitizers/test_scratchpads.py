"""``lx``: every way to misuse a core's scratchpad is named with core, address and the SuperDSC to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle, load_foreign
from spyrec.runtime.device import ArgumentTable, TableEntry
from spyrec.runtime.findings import Finding, Sanitizer
from tests.emulator.builders import DL16, Operation, Tensor, superdsc_of
from tests.foreign import argument_table, copy_example, write_table
from tests.sanitizers.planting import HandMade, moved, planted, with_operand

ROWS = Tensor(("mb", "out"), "out")
DIMS = {"mb": (8, 4), "out": (256, 1)}
BYTES = 2 * 4 * 128  # of one core's slice
IN, OUT = 0, 1 << 34


def lx(start: int) -> Tensor:
    return replace(ROWS, lx_start=start)


def run(operations: Sequence[tuple[Operation, Sequence[int]]], sanitize: str = "lx") -> tuple[Finding, ...]:
    table = ArgumentTable(tuple(TableEntry(f"t{i}", i, (4, 8, 64), DL16, i << 34, 4 * 8 * 128) for i in range(2)))
    superdscs = [superdsc_of(operation, i, bases) for i, (operation, bases) in enumerate(operations)]
    return HandMade(superdscs, table, sanitize).run([0], [1])


def store(start: int) -> tuple[Operation, Sequence[int]]:
    return Operation("abs", DIMS, (ROWS, lx(start))), (IN, 0)


def fetch(start: int, dims: dict[str, tuple[int, int]] = DIMS) -> tuple[Operation, Sequence[int]]:
    return Operation("neg", dims, (lx(start), ROWS)), (0, OUT)


@pytest.mark.parametrize("sanitize", ["lx", "init", "all"])
def test_a_right_chain_is_silent(sanitize: str) -> None:
    through = (Operation("abs", DIMS, (lx(0), lx(BYTES))), (0, 0))
    again = (Operation("neg", DIMS, (lx(BYTES), lx(0))), (0, 0))
    assert run([store(0), through, again, fetch(0)], sanitize) == ()


def test_a_slice_read_under_another_split() -> None:
    (finding,) = run([store(0), fetch(0, {"mb": (8, 2), "out": (256, 2)})])
    assert (finding.file, finding.tensor, finding.field) == ("sdsc_1.json", "lx", "coreIdToWkSlice_")
    assert finding.core == 0, "all cores hold other rows than the reader takes"
    assert '"sdsc_0.json"' in finding.message


def test_another_cores_data() -> None:
    dims = {"mb": (8, 4), "out": (256, 1)}
    first = superdsc_of(Operation("abs", dims, (ROWS, lx(0))), 0, (IN, 0))
    second = superdsc_of(Operation("neg", dims, (lx(0), ROWS)), 1, (0, OUT))
    turned = second.core_work_slices[2:] + second.core_work_slices[:2]
    starts = second.operands[1].start_addresses[2:] + second.operands[1].start_addresses[:2]
    second = with_operand(replace(second, core_work_slices=turned), 1, start_addresses=starts)
    table = ArgumentTable(tuple(TableEntry(f"t{i}", i, (4, 8, 64), DL16, i << 34, 4 * 8 * 128) for i in range(2)))
    (finding,) = HandMade([first, second], table, "lx").run([0], [1])
    assert (finding.file, finding.core) == ("sdsc_1.json", 0)


def test_data_that_nobody_wrote() -> None:
    found = run([store(0), fetch(512)])
    assert [(item.file, item.core, item.address) for item in found] == [("sdsc_1.json", 0, BYTES)]
    assert "nothing wrote" in found[0].message


def test_overlapping_buffers() -> None:
    late = (Operation("abs", DIMS, (ROWS, lx(512))), (IN, 0))
    add = (Operation("add", DIMS, (lx(0), lx(512), ROWS)), (0, 0, OUT))
    (finding,) = run([store(0), late, add])
    assert (finding.file, finding.operand, finding.address) == ("sdsc_2.json", "operand 0 (LABEL0, lx)", 512)
    assert '"sdsc_1.json" overwrote in part after "sdsc_0.json"' in finding.message


def test_a_reader_that_runs_before_its_writer_takes_stale_data() -> None:
    # LX is used twice; the second reader and the second writer are swapped
    found = run([store(0), fetch(0), fetch(0), store(0)])
    assert [(item.file, item.address) for item in found] == [("sdsc_3.json", 0)]
    assert "nothing" in found[0].message


def zeros(bundle: Bundle) -> dict[str, npt.NDArray[np.generic]]:
    """Inputs in device form."""
    arguments = bundle.manifest.arguments
    return {item.name: np.zeros(item.device_size, np.float32) for item in arguments if item.role.value == "input"}


def first_scratchpad_input(bundle: Bundle) -> tuple[str, int]:
    """File and position of the first input in LX."""
    return next(
        (name, t)
        for name, item in bundle.programs[0].superdscs.items()
        for t in item.compute.inputs
        if item.operands[t].component.value == "lx" and t not in item.compute.outputs
    )


def test_capacity(tmp_path: Path) -> None:
    folder = copy_example("softmax_lx", tmp_path)
    bundle = load_foreign(folder, write_table(folder, argument_table("softmax_lx")))
    data = zeros(bundle)
    assert spyrec.run(bundle, data, spyrec.RunOptions(sanitize="all")).sanitizer == ()
    name, position = first_scratchpad_input(bundle)
    start = bundle.programs[0].superdscs[name].operands[position].start_addresses[0]
    wrong = planted(bundle, name, moved(position, (2 << 20) - start - 128))
    result = spyrec.run(wrong, data, spyrec.RunOptions(sanitize="lx"))
    assert {item.sanitizer for item in result.sanitizer} == {Sanitizer.LX}
    assert result.sanitizer[0].file is not None
    assert result.sanitizer[0].file.endswith(name)
    assert "exceeds" in result.sanitizer[0].message
    assert result.outputs == {}


@pytest.mark.parametrize("by", [128, 4096])
def test_a_moved_start_in_a_foreign_bundle(tmp_path: Path, by: int) -> None:
    folder = copy_example("softmax_lx", tmp_path)
    bundle = load_foreign(folder, write_table(folder, argument_table("softmax_lx")))
    data = zeros(bundle)
    name, position = first_scratchpad_input(bundle)
    found = spyrec.run(planted(bundle, name, moved(position, by)), data, spyrec.RunOptions(sanitize="all")).sanitizer
    named = [item for item in found if (item.file or "").endswith(name)]
    assert any(f"operand {position} " in f"{item.operand} {item.message}" for item in named), found
