"""Rules checked at load report like sanitizers: op, file, core, tensor, address, element and the field to look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.superdsc import SuperDsc
from spyrec.runtime.findings import Finding, Sanitizer, findings_of_refusal
from tests.emulator.builders import Operation, Tensor, superdsc_of, table_of
from tests.sanitizers.planting import HandMade, moved, planted, with_operand
from tests.support.graphs import graph_data, node, tensor
from tests.support.tiling import in_scratchpad, looped

SHAPE = (8, 64, 256)
SEGMENT = 1 << 34
Change = Callable[[SuperDsc], SuperDsc]


def saved(directory: Path, *, symbolic_args: bool = False, cores: int = 4) -> Bundle:
    data = graph_data([tensor("x", *SHAPE)], [node("y", "abs", "x"), node("z", "neg", "y")], ["z"])
    spyrec.compile(data, spyrec.CompileOptions(cores=cores, symbolic_args=symbolic_args, lx_planner="none")).save(
        directory / "b"
    )
    return Bundle.load(directory / "b")


def reported(bundle: Bundle, kind: str) -> Finding:
    """Return the first finding of a refusal."""
    inputs = {"x": np.ones(SHAPE, np.float16)}
    result = spyrec.run(bundle, inputs, spyrec.RunOptions(sanitize=kind))
    assert result.outputs == {}
    return result.sanitizer[0]


def place(found: Finding) -> tuple[object, ...]:
    return (found.op, found.core, found.tensor, found.address, found.element, found.device_coordinate)


def test_an_access_outside_of_the_argument(tmp_path: Path) -> None:
    bundle = saved(tmp_path)
    past = 2 * int(np.prod(SHAPE))
    wide = planted(bundle, "sdsc_1.json", moved(1, 128))
    with pytest.raises(spyrec.SpyrecError) as error:
        spyrec.run(wide, {"x": np.ones(SHAPE, np.float16)})
    (found,) = findings_of_refusal(error.value, frozenset({Sanitizer.BOUNDS}))
    assert found.file == f"{tmp_path}/b/sdsc_1.json"
    assert place(found) == ("neg", 3, "z", 2 * SEGMENT + past + 127, None, None)
    assert found.field == "scheduleTree_[1].startAddressCoreCorelet_, N_"
    assert found.operand is not None
    assert found.operand.startswith("operand 1 ")
    assert "op neg, core 3, tensor z" in error.value.diagnostics[0].render()


def test_a_layout_that_contradicts_the_table(tmp_path: Path) -> None:
    def taller(item: SuperDsc) -> SuperDsc:
        return with_operand(item, 0, back_gap={"x": 64})

    found = reported(planted(saved(tmp_path), "sdsc_0.json", taller), "bounds")
    assert found.file == f"{tmp_path}/b/sdsc_0.json"
    assert place(found)[:3] == ("abs", 0, "x")
    assert (found.address, found.element) == (SEGMENT, (0, 0, 0))
    assert found.field == "scheduleTree_[0].layoutDimOrder_, N_, scheduleTree_[0].backGapCore_"


def test_two_cores_that_store_one_byte_are_named_with_the_second(tmp_path: Path) -> None:
    def crowded(item: SuperDsc) -> SuperDsc:
        starts = item.operands[1].start_addresses
        return with_operand(item, 1, start_addresses=(starts[0], starts[2], starts[2], starts[3]))

    bundle = saved(tmp_path)
    with pytest.raises(spyrec.SpyrecError) as error:
        spyrec.run(planted(bundle, "sdsc_1.json", crowded), {"x": np.ones(SHAPE, np.float16)})
    (found,) = findings_of_refusal(error.value, frozenset({Sanitizer.RACE}))
    assert (found.op, found.core, found.tensor, found.element) == ("neg", 2, "z", (4, 0, 0))
    assert found.field == "scheduleTree_[1].startAddressCoreCorelet_, coreIdToWkSlice_"


def test_an_operand_over_the_result() -> None:
    rows = Tensor(("mb", "out"), "out")
    operation = Operation("ReStickifyOpHBM", {"mb": (128, 2), "out": (128, 1)}, (rows, Tensor(("out", "mb"), "mb")))
    made = HandMade([superdsc_of(operation)], table_of(operation))
    made.addresses[1] = made.addresses[0]
    with pytest.raises(spyrec.SpyrecError) as error:
        made.launch()
    (found,) = findings_of_refusal(error.value, frozenset({Sanitizer.RACE}))
    assert (found.op, found.core, found.tensor) == ("ReStickifyOpHBM", 0, "arg0")
    assert found.address == made.addresses[0]
    assert found.device_coordinate == (0, 0, 0)
    fields = "scheduleTree_[0].startAddressCoreCorelet_, scheduleTree_[1].startAddressCoreCorelet_"
    assert found.field == fields


def test_lx_beyond_its_end_and_slices_of_another_split(tmp_path: Path) -> None:
    bundle = in_scratchpad(saved(tmp_path, symbolic_args=True), [("sdsc_0.json", 1), ("sdsc_1.json", 0)], 0)
    beyond = reported(planted(bundle, "sdsc_1.json", moved(0, (2 << 20) - 128)), "lx")
    assert place(beyond) == ("neg", 0, "lx", (2 << 20) - 128, None, None)
    assert beyond.field == "scheduleTree_[0].startAddressCoreCorelet_, N_"

    def turned(item: SuperDsc) -> SuperDsc:
        swap = (1, 0, 2, 3)
        starts = tuple(item.operands[1].start_addresses[i] for i in swap)
        return replace(
            with_operand(item, 1, start_addresses=starts),
            core_work_slices=tuple(item.core_work_slices[i] for i in swap),
        )

    with pytest.raises(spyrec.SpyrecError) as error:
        spyrec.run(planted(bundle, "sdsc_1.json", turned), {"x": np.ones(SHAPE, np.float16)})
    (found,) = findings_of_refusal(error.value, frozenset({Sanitizer.LX}))
    assert (found.op, found.core, found.tensor, found.address, found.field) == ("neg", 0, "lx", 0, "coreIdToWkSlice_")


def test_steps_that_are_no_tiles(tmp_path: Path) -> None:
    whole = looped(saved(tmp_path, symbolic_args=True), "x", 8)
    (program,) = whole.programs
    (wrong,) = [replace(item, coefficients=(item.coefficients[0] + 128,)) for item in program.program.maps]
    changed = replace(program, program=replace(program.program, maps=(wrong,)))
    bundle = replace(whole, programs=(changed,))
    with pytest.raises(spyrec.SpyrecError) as error:
        spyrec.run(bundle, {"x": np.ones(SHAPE, np.float16)})
    found = findings_of_refusal(error.value, frozenset({Sanitizer.BOUNDS}))
    steps = [item for item in found if "advances it by" in item.message]
    assert {(item.op, item.core, item.tensor) for item in steps} == {
        ("abs", 0, "x"),
        ("abs", 0, "pool"),
        ("neg", 0, "pool"),
        ("neg", 0, "z"),
    }
    assert all((item.field or "").endswith("affine_map of bundle.mlir") for item in steps)
    assert steps[0].element == (0, 0, 0)


def test_an_address_in_no_argument(tmp_path: Path) -> None:
    def lost(item: SuperDsc) -> SuperDsc:
        starts = item.operands[0].start_addresses
        return with_operand(item, 0, start_addresses=(*starts[:3], 5 * SEGMENT))

    found = reported(planted(saved(tmp_path), "sdsc_0.json", lost), "bounds")
    assert found.file == f"{tmp_path}/b/sdsc_0.json"
    assert (found.op, found.core, found.address) == ("abs", 3, 5 * SEGMENT)
    assert found.field == "scheduleTree_[0].startAddressCoreCorelet_"
