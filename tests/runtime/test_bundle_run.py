"""Runs of a bundle on a device double that copies its first argument to its last: wiring, not arithmetic."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle, DeviceProgram, load_foreign
from spyrec.bundle.image_sections import read_sections
from spyrec.bundle.image_table import ImageTable
from spyrec.bundle.manifest import Argument, Manifest, PlanStep, Role
from spyrec.bundle.program import Program, SdscExecute
from spyrec.bundle.program_image import image_table, read_image
from spyrec.bundle.superdsc import SuperDsc
from spyrec.diagnostics import Location, SpyrecError
from spyrec.emulator.emulated_program import EmulatedProgram
from spyrec.hardware.dtypes import DType
from spyrec.hardware.target import Target
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.bundle_run import BundleRun, RunRecord
from spyrec.runtime.device import LaunchStats, OperationStats
from spyrec.runtime.memory.lazy_memory import LazyMemory
from spyrec.runtime.selection import selected_plan
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.control_block import ComputeRequest, ControlBlock, OperandCheck
from spyrec.runtime.streams.plain_backend import PlainBackend
from tests.foreign import EXAMPLES, argument_table, write_table

SHAPE = (5, 100)
STATED_BASE = 5 << 34
LAYOUT = DeviceLayout.default(SHAPE, "float16")


class CopyingBackend(PlainBackend):
    """Copies argument 0 to the last argument per launch, and writes down what it was asked."""

    def __init__(self) -> None:
        super().__init__(self._copy, fill=0x7F)
        self.tables: list[ImageTable] = []
        self.launched: list[ControlBlock] = []

    def operand_check(self, image: bytes, name: str) -> OperandCheck:
        self.tables.append(image_table(read_sections(image, Location(name)), Location(name)))
        return super().operand_check(image, name)

    def _copy(self, block: ControlBlock, memory: LazyMemory) -> None:
        assert isinstance(block.action, ComputeRequest)
        assert not block.action.values
        operands = block.action.operands
        memory.view(operands[-1])[:] = memory.view(operands[0])
        self.launched.append(block)

    def stats_of(self, block: ControlBlock) -> LaunchStats | None:
        assert isinstance(block.action, ComputeRequest)
        files = read_image(self.view(block.action.binary).tobytes()).superdscs
        return LaunchStats(tuple(OperationStats(name, "copy", 1, 1, 2, 3, 4, 5) for name in files), 64)


class Prepared:
    """A bundle on a device of its own."""

    def __init__(self, bundle: Bundle, only: str | None = None, max_executions: int = 10**9) -> None:
        self.backend = CopyingBackend()
        self.device = SpyreDevice(self.backend)
        self.prepared = BundleRun(self.device, selected_plan(bundle, only, max_executions))

    def run(self, inputs: Mapping[str, npt.NDArray[np.generic]]) -> RunRecord:
        return self.prepared.run(inputs)


@pytest.fixture(scope="module")
def superdsc(tmp_path_factory: pytest.TempPathFactory) -> SuperDsc:
    table = write_table(tmp_path_factory.mktemp("args"), argument_table("add"))
    return load_foreign(EXAMPLES / "add", table).programs[0].superdscs["sdsc_0.json"]


def argument(name: str, role: Role) -> Argument:
    return Argument(
        name,
        role,
        0,
        STATED_BASE,
        SHAPE,
        DType.FLOAT16,
        (100, 1),
        LAYOUT.device_size,
        LAYOUT.stride_map,
        LAYOUT.device_dtype,
        {"h2d": "dci/h2d.json", "d2h": "dci/d2h.json"},
    )


def bundle_of(
    superdsc: SuperDsc,
    roles: dict[str, Role],
    plan: Sequence[PlanStep],
    outputs: Sequence[tuple[str, str]],
    constants: Mapping[str, npt.NDArray[np.generic]] | None = None,
) -> Bundle:
    manifest = Manifest(
        name="wiring",
        target=Target(),
        arguments=tuple(argument(name, role) for name, role in roles.items()),
        inputs=tuple(name for name, role in roles.items() if role is Role.INPUT),
        outputs=tuple(outputs),
        plan=tuple(plan),
        pool_bytes=max(step.pool_bytes for step in plan),
        graph_sha256=None,
    )
    program = Program((), (), (SdscExecute("sdsc_0.json"),))
    programs = tuple(DeviceProgram(step.program, program, {"sdsc_0.json": superdsc}) for step in plan)
    tables = {f"dci/{way}.json": LAYOUT.dci(way) for way in ("h2d", "d2h")}
    return Bundle(manifest=manifest, programs=programs, constants=constants or {}, dci=tables, graph_json=None)


def values(seed: int) -> npt.NDArray[np.float16]:
    """Return halves that DLFloat16 holds exactly."""
    return np.random.default_rng(seed).integers(-512, 512, SHAPE).astype(np.float16)


CHAIN = (
    PlanStep("kernels/0", ("x", "t"), 4096),
    PlanStep("kernels/1", ("t", "y")),
    PlanStep("kernels/2", ("w", "v"), 128),
)
CHAIN_ROLES = {
    "x": Role.INPUT,
    "unused": Role.INPUT,
    "w": Role.CONSTANT,
    "t": Role.INTERMEDIATE,
    "y": Role.OUTPUT,
    "v": Role.OUTPUT,
}


@pytest.fixture
def chain(superdsc: SuperDsc) -> Bundle:
    outputs = [("v", "v"), ("y", "y"), ("again", "y"), ("x", "x")]
    return bundle_of(superdsc, CHAIN_ROLES, CHAIN, outputs, {"w": values(9)})


def test_intermediates_join_programs_and_constants_are_copied_in(chain: Bundle) -> None:
    prepared = Prepared(chain)
    for seed in (1, 2):  # what is ready runs more than once
        record = prepared.run({"x": values(seed)})
        np.testing.assert_array_equal(record.outputs["y"], values(seed))
        np.testing.assert_array_equal(record.outputs["v"], values(9))


def test_an_output_may_repeat_or_be_an_input_and_keeps_the_graph_order(chain: Bundle) -> None:
    record = Prepared(chain).run({"x": values(1)})
    assert list(record.outputs) == ["v", "y", "again", "x"]
    np.testing.assert_array_equal(record.outputs["again"], values(1))
    np.testing.assert_array_equal(record.outputs["x"], values(1))
    assert record.dtypes == dict.fromkeys(record.outputs, "float16")


def test_an_unused_input_is_accepted_and_may_be_left_out(chain: Bundle) -> None:
    prepared = Prepared(chain)
    assert [(item.name, item.is_required) for item in prepared.prepared.inputs] == [("x", True), ("unused", False)]
    record = prepared.run({"x": values(1), "unused": values(2)})
    assert record.dma_h2d_bytes == 2 * LAYOUT.nbytes, "what no program reads never leaves the host"


def test_each_program_gets_its_own_table_and_pool(chain: Bundle) -> None:
    prepared = Prepared(chain)
    prepared.run({"x": values(1)})
    tables = prepared.backend.tables
    assert [[item.name for item in table.arguments] for table in tables] == [["x", "t"], ["t", "y"], ["w", "v"]]
    assert [table.pool_bytes for table in tables] == [4096, 0, 128]
    # with baked addresses argument i lies in segment i, or i + 1 where there is a pool; what the manifest states is
    # that of the first program only
    bases = [[item.baked_base >> 34 for item in table.arguments] for table in tables]
    assert bases == [[1, 2], [0, 1], [1, 2]]
    assert all(item.size_bytes == LAYOUT.nbytes for table in tables for item in table.arguments)
    written = [[item.size_bytes for item in block.writes] for block in prepared.backend.launched]
    assert [4096 in written[0], len(written[1]) < len(written[0]), 128 in written[2]] == [True, True, True]


def test_the_only_program_of_a_plan_lies_where_the_manifest_says(superdsc: SuperDsc) -> None:
    roles = {"x": Role.INPUT, "y": Role.OUTPUT}
    prepared = Prepared(bundle_of(superdsc, roles, [PlanStep(".", ("x", "y"))], [("y", "y")]))
    assert [item.baked_base for item in prepared.backend.tables[0].arguments] == [STATED_BASE, STATED_BASE]


def test_tensors_that_a_program_was_compiled_for_in_one_segment_lie_as_far_apart(superdsc: SuperDsc) -> None:
    roles = {"x": Role.INPUT, "y": Role.OUTPUT}
    bundle = bundle_of(superdsc, roles, [PlanStep(".", ("x", "y"))], [("y", "y")])
    distance = 3 * LAYOUT.nbytes
    moved = tuple(
        replace(item, address=STATED_BASE + number * distance) for number, item in enumerate(bundle.manifest.arguments)
    )
    prepared = Prepared(replace(bundle, manifest=replace(bundle.manifest, arguments=moved)))
    record = prepared.run({"x": values(3)})
    np.testing.assert_array_equal(record.outputs["y"], values(3))
    (block,) = prepared.backend.launched
    assert isinstance(block.action, ComputeRequest)
    first, second = block.action.operands
    assert first.address.region_id == second.address.region_id
    assert second.address.offset - first.address.offset == distance


def test_counters_carry_the_file_with_its_program_and_the_copies(chain: Bundle) -> None:
    prepared = Prepared(chain)
    record = prepared.run({"x": values(1)})
    again = prepared.run({"x": values(1)})
    assert again.dma_h2d_bytes == LAYOUT.nbytes  # the constant has stayed
    assert [item.name for item in again.copies if item.is_to_device] == ["x"]
    assert [item.file for item in record.operations] == [f"kernels/{i}/sdsc_0.json" for i in range(3)]
    assert record.dma_h2d_bytes == 2 * LAYOUT.nbytes  # x and the constant
    assert record.dma_d2h_bytes == 4 * LAYOUT.nbytes
    assert record.lx_peak_bytes == 64


def test_only_loads_and_launches_one_program(chain: Bundle) -> None:
    prepared = Prepared(chain, only="kernels/1/sdsc_0.json")
    record = prepared.run({"x": values(1)})
    assert [[item.name for item in table.arguments] for table in prepared.backend.tables] == [["t", "y"]]
    assert [item.file for item in record.operations] == ["kernels/1/sdsc_0.json"]


def test_only_refuses_a_name_that_several_programs_have(chain: Bundle) -> None:
    with pytest.raises(SpyrecError) as caught:
        Prepared(chain, only="sdsc_0.json")
    assert caught.value.diagnostics[0].code == "SPY0768"
    assert "3 SuperDSC files" in caught.value.diagnostics[0].message


def test_too_many_executions_are_refused_before_anything_else(chain: Bundle) -> None:
    with pytest.raises(SpyrecError) as caught:
        selected_plan(chain, max_executions=2)
    assert caught.value.diagnostics[0].code == "SPY0767"


def test_wrong_inputs_are_refused_before_any_launch_and_memory_is_given_back(chain: Bundle) -> None:
    prepared = Prepared(chain)
    with pytest.raises(SpyrecError):
        prepared.run({"x": values(1)[:4]})
    assert prepared.device.allocator.statistics().allocated_bytes == 0
    prepared.run({"x": values(1)})
    assert len(prepared.backend.launched) == 3
    prepared.prepared.free()
    prepared.prepared.plan.unload(prepared.device)
    assert prepared.device.allocator.statistics().allocated_bytes == 0


def test_device_form_is_exact_for_values_of_the_format(tmp_path: Path) -> None:
    foreign = load_foreign(EXAMPLES / "add", write_table(tmp_path, argument_table("add")))
    given = np.random.default_rng(0).integers(-512, 512, (64, 1024, 64)).astype(np.float32)
    record = Prepared(foreign).run({"t0": given, "t1": given})
    np.testing.assert_array_equal(record.outputs["t2"], given)


def test_what_a_run_has_loaded_is_gone_when_it_is_over_without_the_cyclic_collector() -> None:
    def loaded() -> int:
        return sum(type(item) is EmulatedProgram for item in gc.get_objects())

    builder = spyrec.GraphBuilder("one")
    builder.output(builder.relu(builder.input("x", (64, 64), "float16"), name="y"))
    bundle, inputs = spyrec.compile(builder), {"x": np.ones((64, 64), np.float16)}
    gc.collect()
    gc.disable()
    try:
        before = loaded()
        for _ in range(3):
            spyrec.run(bundle, inputs)
        assert loaded() == before
    finally:
        gc.enable()


def test_a_file_alone_may_read_an_output_that_another_file_writes() -> None:
    builder = spyrec.GraphBuilder("two")
    first = builder.relu(builder.input("x", (64, 256), "float16"), name="first")
    second = builder.permute(first, dims=(1, 0), name="second")
    builder.output(second)
    builder.output(first)
    bundle = spyrec.compile(builder)
    for file in bundle.programs[0].superdscs:
        result = spyrec.run(bundle, {"x": np.ones((64, 256), np.float16)}, spyrec.RunOptions(only=file))
        assert set(result.outputs) == {"first", "second"}
