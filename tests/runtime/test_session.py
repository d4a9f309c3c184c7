"""The session against a device double that copies its first argument to its last: wiring, not arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.bundle.bundle import Bundle, DeviceProgram, load_foreign
from spyrec.bundle.manifest import Argument, Manifest, PlanStep, Role
from spyrec.bundle.program import Program, SdscExecute
from spyrec.bundle.superdsc import SuperDsc
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.hardware.target import Target
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.device import NO_VALUES, ArgumentTable, LaunchStats, LoadedProgram, OperationStats
from spyrec.runtime.observer import ExecutionObserver
from spyrec.runtime.session import Session, SessionOptions
from tests.foreign import EXAMPLES, argument_table, write_table

SHAPE = (5, 100)
STATED_BASE = 5 << 34
LAYOUT = DeviceLayout.default(SHAPE, "float16")


@dataclass(frozen=True, slots=True)
class Loaded:
    table: ArgumentTable
    files: tuple[str, ...]
    index_rows: Mapping[int, int] = field(default_factory=dict[int, int])


@dataclass(slots=True)
class CopyingDevice:
    """Copies argument 0 to the last argument per launch, and writes down what it was asked."""

    allocations: dict[int, npt.NDArray[np.uint8]] = field(default_factory=dict[int, npt.NDArray[np.uint8]])
    loads: list[Loaded] = field(default_factory=list[Loaded])
    pools: list[int | None] = field(default_factory=list[int | None])

    def allocate(self, size_bytes: int) -> int:
        address = len(self.allocations) << 34
        self.allocations[address] = np.full(size_bytes, 0x7F, np.uint8)
        return address

    def memory(self, address: int, size_bytes: int) -> npt.NDArray[np.uint8]:
        assert self.allocations[address].size == size_bytes
        return self.allocations[address]

    def load(self, program: Program, superdscs: Mapping[str, SuperDsc], table: ArgumentTable) -> Loaded:
        assert program.body
        self.loads.append(Loaded(table, tuple(superdscs)))
        return self.loads[-1]

    def launch(
        self,
        loaded: LoadedProgram,
        arguments: Sequence[int],
        pool_address: int | None,
        observer: ExecutionObserver | None = None,
        *,
        values: Mapping[str, int] = NO_VALUES,
    ) -> LaunchStats:
        assert isinstance(loaded, Loaded)
        assert not values
        assert observer is None
        self.allocations[arguments[-1]][:] = self.allocations[arguments[0]]
        self.pools.append(pool_address)
        return LaunchStats(tuple(OperationStats(name, "copy", 1, 1, 2, 3, 4, 5) for name in loaded.files), 64)


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
    device = CopyingDevice()
    session = Session(chain, device)
    for seed in (1, 2):  # a session runs more than once
        record = session.run({"x": values(seed)})
        np.testing.assert_array_equal(record.outputs["y"], values(seed))
        np.testing.assert_array_equal(record.outputs["v"], values(9))


def test_an_output_may_repeat_or_be_an_input_and_keeps_the_graph_order(chain: Bundle) -> None:
    record = Session(chain, CopyingDevice()).run({"x": values(1)})
    assert list(record.outputs) == ["v", "y", "again", "x"]
    np.testing.assert_array_equal(record.outputs["again"], values(1))
    np.testing.assert_array_equal(record.outputs["x"], values(1))
    assert record.dtypes == dict.fromkeys(record.outputs, "float16")


def test_an_unused_input_is_accepted_and_may_be_left_out(chain: Bundle) -> None:
    session = Session(chain, CopyingDevice())
    assert [(item.name, item.is_required) for item in session.inputs] == [("x", True), ("unused", False)]
    session.run({"x": values(1), "unused": values(2)})


def test_each_program_gets_its_own_table_and_pool(chain: Bundle) -> None:
    device = CopyingDevice()
    Session(chain, device).run({"x": values(1)})
    tables = [loaded.table for loaded in device.loads]
    assert [[entry.name for entry in table.entries] for table in tables] == [["x", "t"], ["t", "y"], ["w", "v"]]
    assert [table.pool_bytes for table in tables] == [4096, 0, 128]
    # with baked addresses argument i lies in segment i, or i + 1 where there is a pool; what the manifest states is
    # that of the first program only
    bases = [[entry.baked_base >> 34 for entry in table.entries] for table in tables]
    assert bases == [[1, 2], [0, 1], [1, 2]]
    assert all(entry.size_bytes == LAYOUT.nbytes for table in tables for entry in table.entries)
    assert [pool is not None for pool in device.pools] == [True, False, True]


def test_the_only_program_of_a_plan_lies_where_the_manifest_says(superdsc: SuperDsc) -> None:
    device = CopyingDevice()
    roles = {"x": Role.INPUT, "y": Role.OUTPUT}
    Session(bundle_of(superdsc, roles, [PlanStep(".", ("x", "y"))], [("y", "y")]), device)
    assert [entry.baked_base for entry in device.loads[0].table.entries] == [STATED_BASE, STATED_BASE]


def test_counters_carry_the_file_with_its_program_and_the_copies(chain: Bundle) -> None:
    record = Session(chain, CopyingDevice()).run({"x": values(1)})
    assert [item.file for item in record.operations] == [f"kernels/{i}/sdsc_0.json" for i in range(3)]
    assert record.dma_h2d_bytes == 2 * LAYOUT.nbytes  # x and the constant
    assert record.dma_d2h_bytes == 4 * LAYOUT.nbytes
    assert record.lx_peak_bytes == 64


def test_only_loads_and_launches_one_program(chain: Bundle) -> None:
    device = CopyingDevice()
    record = Session(chain, device, SessionOptions(only="kernels/1/sdsc_0.json")).run({"x": values(1)})
    assert [[entry.name for entry in loaded.table.entries] for loaded in device.loads] == [["t", "y"]]
    assert [item.file for item in record.operations] == ["kernels/1/sdsc_0.json"]


def test_only_refuses_a_name_that_several_programs_have(chain: Bundle) -> None:
    with pytest.raises(SpyrecError) as caught:
        Session(chain, CopyingDevice(), SessionOptions(only="sdsc_0.json"))
    assert caught.value.diagnostics[0].code == "SPY0768"
    assert "3 SuperDSC files" in caught.value.diagnostics[0].message


def test_nothing_is_allocated_for_a_refused_bundle(chain: Bundle) -> None:
    device = CopyingDevice()
    with pytest.raises(SpyrecError):
        Session(chain, device, SessionOptions(max_executions=2))
    assert not device.allocations


def test_wrong_inputs_are_refused_before_any_launch(chain: Bundle) -> None:
    device = CopyingDevice()
    session = Session(chain, device)
    with pytest.raises(SpyrecError):
        session.run({"x": values(1)[:4]})
    assert not device.pools


def test_device_form_is_exact_for_values_of_the_format(tmp_path: Path) -> None:
    foreign = load_foreign(EXAMPLES / "add", write_table(tmp_path, argument_table("add")))
    session = Session(foreign, CopyingDevice())
    given = np.random.default_rng(0).integers(-512, 512, (64, 1024, 64)).astype(np.float32)
    record = session.run({"t0": given, "t1": given})
    np.testing.assert_array_equal(record.outputs["t2"], given)
