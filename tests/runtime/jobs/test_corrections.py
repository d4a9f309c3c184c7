"""A program takes its addresses from the correction tensor in device memory: what is wrong with that is caught."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import spyrec
from spyrec.bundle.host_compute import CORRECTION_MAGIC
from spyrec.emulator.backend import EmulatorBackend
from spyrec.runtime.errors import CorrectionMissing, ForeignMemory, NoEntry
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.launch_kernel import launch_kernel
from spyrec.runtime.memory.addresses import AddressRange, MemoryMode
from spyrec.runtime.spyre_device import SpyreDevice
from spyrec.runtime.streams.control_block import (
    ComputeRequest,
    ControlBlock,
    ExecutionFailed,
    HostCall,
    HostToDevice,
    Kind,
)
from spyrec.runtime.tensors import SpyreTensor
from tests.support.pipeline import binary_graph, emulated, half, on_device, read_device, resolved, tidy, wanted
from tests.support.spyre_devices import Log


def outputs(device: SpyreDevice, count: int) -> list[SpyreTensor]:
    """Tensors of the shape of the graph, holding the number -1."""
    return [SpyreTensor.to_device(device, np.full((64, 64), -1, np.float16)) for _ in range(count)]


def prepared(device: SpyreDevice) -> tuple[ExecutionPlan, list[SpyreTensor], SpyreTensor]:
    """Return a plan, and tensors on the device for its inputs and its output."""
    plan = ExecutionPlan(spyrec.compile(binary_graph()))
    return plan, on_device(device, [half(1), half(2)]), outputs(device, 1)[0]


def expect_failure(device: SpyreDevice, blocks: list[ControlBlock], kind: type[Exception]) -> str:
    """Enqueue blocks, see that their execution fails for this reason, and return the message."""
    stream = device.default_stream
    stream.flex.enqueue(blocks)
    with pytest.raises(ExecutionFailed) as failed:
        stream.synchronize()
    cause = failed.value.__cause__
    assert isinstance(cause, kind), repr(cause)
    assert "launch" in failed.value.notes[0]
    stream.clear_error()
    return str(cause)


def part(blocks: list[ControlBlock], kind: Kind) -> ControlBlock:
    return next(block for block in blocks if block.kind is kind)


def test_without_the_dma_the_program_is_not_started() -> None:
    with tidy(emulated()) as device:
        plan, inputs, target = prepared(device)
        blocks = resolved(device.default_stream, plan, [*inputs, target])
        message = expect_failure(device, [block for block in blocks if block.kind is not Kind.H2D], CorrectionMissing)
        assert "missing or late" in message
        assert (target.to_host() == -1).all()
        del plan, inputs, target, blocks


def test_a_dma_behind_its_computation_is_late() -> None:
    with tidy(emulated()) as device:
        plan, inputs, target = prepared(device)
        host, copy, compute = resolved(device.default_stream, plan, [*inputs, target])
        expect_failure(device, [host, compute, copy], CorrectionMissing)
        assert (target.to_host() == -1).all()
        del plan, inputs, target, host, copy, compute


def test_a_correction_serves_one_computation() -> None:
    with tidy(emulated()) as device:
        plan, inputs, target = prepared(device)
        host, copy, compute = resolved(device.default_stream, plan, [*inputs, target])
        expect_failure(device, [host, copy, compute, compute], CorrectionMissing)
        assert (target.to_host() != -1).any()
        del plan, inputs, target, host, copy, compute


def test_two_dmas_in_each_others_place_give_a_program_foreign_addresses() -> None:
    with tidy(emulated()) as device:
        plan, inputs, targets = (
            ExecutionPlan(spyrec.compile(binary_graph())),
            on_device(device, [half(1), half(2)]),
            outputs(device, 2),
        )
        first = resolved(device.default_stream, plan, [*inputs, targets[0]])
        second = resolved(device.default_stream, plan, [*inputs, targets[1]])
        swapped = [first[0], second[0], second[1], first[2], first[1], second[2]]
        message = expect_failure(device, swapped, ForeignMemory)
        assert "another launch's" in message
        assert '"c"' in message
        assert all((target.to_host() == -1).all() for target in targets)
        del plan, inputs, targets, first, second, swapped


def test_with_a_slot_for_each_the_order_of_two_dmas_does_not_matter() -> None:
    bundle = spyrec.compile(binary_graph())
    arrays = [half(1), half(2)]
    with tidy(emulated()) as device:
        plan, inputs, targets = ExecutionPlan(bundle, correction_slots=2), on_device(device, arrays), outputs(device, 2)
        first = resolved(device.default_stream, plan, [*inputs, targets[0]])
        second = resolved(device.default_stream, plan, [*inputs, targets[1]])
        device.default_stream.flex.enqueue([first[0], second[0], second[1], first[1], first[2], second[2]])
        expected = wanted(bundle, {"a": arrays[0], "b": arrays[1]})["c"]
        assert [target.to_host().tobytes() for target in targets] == [expected, expected]
        del plan, inputs, targets, first, second


def test_a_program_that_writes_what_its_launch_only_reads_is_refused() -> None:
    with tidy(emulated()) as device:
        plan, inputs, target = prepared(device)
        host, copy, compute = resolved(device.default_stream, plan, [*inputs, target])
        *own, result = compute.writes
        assert result == target.device_bytes().range
        altered = dataclasses.replace(compute, reads=(*compute.reads, result), writes=tuple(own))
        assert "only reads" in expect_failure(device, [host, copy, altered], ForeignMemory)
        del plan, inputs, target, host, copy, compute, altered


def test_a_computation_starts_at_an_entry_of_a_program_only() -> None:
    with tidy(emulated()) as device:
        plan, inputs, target = prepared(device)
        host, copy, compute = resolved(device.default_stream, plan, [*inputs, target])
        request = compute.action
        assert isinstance(request, ComputeRequest)
        inside = dataclasses.replace(request, entry=request.entry.advanced(128))
        data = dataclasses.replace(request, binary=target.device_bytes().range)
        for wrong in (inside, data):
            altered = dataclasses.replace(compute, action=wrong)
            expect_failure(device, [host, copy, altered], NoEntry)
        del plan, inputs, target, host, copy, compute, altered


def test_the_correction_program_patches_the_operand_table_in_device_memory() -> None:
    with tidy(emulated()) as device:
        plan, inputs, target = prepared(device)
        host, copy, compute = resolved(device.default_stream, plan, [*inputs, target])
        device.default_stream.flex.enqueue([host, copy])
        device.synchronize()
        table, area = compute.writes[0], copy.writes[0]
        words = len(plan.jobs[0].binary.table.words)  # type: ignore[union-attr]
        assert read_device(device, area)[:8].tobytes() == CORRECTION_MAGIC
        assert (read_device(device, table)[: 8 * words] == 0xFF).all()
        device.default_stream.flex.enqueue([compute])
        device.synchronize()
        places = [item.device_bytes().range.address for item in (*inputs, target)]
        addresses = [device.allocator.regions.device_address(place) for place in places]
        assert read_device(device, table)[: 8 * words].view("<u8").tolist() == addresses
        assert not read_device(device, area)[:8].any()
        del plan, inputs, target, host, copy, compute


def test_physical_and_virtual_regions_give_the_same_correction_bytes() -> None:
    tensors: list[bytes] = []
    for mode in MemoryMode:
        with tidy(emulated(mode=mode)) as device:
            plan, inputs, (target,) = (
                ExecutionPlan(spyrec.compile(binary_graph())),
                on_device(device, [half(1), half(2)]),
                outputs(device, 1),
            )
            host, copy, compute = resolved(device.default_stream, plan, [*inputs, target])
            assert isinstance(host.action, HostCall)
            assert isinstance(copy.action, HostToDevice)
            host.action.function()
            tensors.append(copy.action.source.data.tobytes())  # type: ignore[union-attr]
            device.default_stream.flex.enqueue([host, copy, compute])
            assert (target.to_host() != -1).any()
            del plan, inputs, target, host, copy, compute
    assert tensors[0] == tensors[1]


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_any_number_of_slots_gives_the_same_bytes_and_launches_take_turns(slots: int) -> None:
    bundle = spyrec.compile(binary_graph())
    arrays = [half(seed) for seed in range(6)]
    with tidy(emulated()) as device:
        plan, sources, targets = (
            ExecutionPlan(bundle, correction_slots=slots),
            on_device(device, arrays),
            outputs(device, 5),
        )
        areas = {
            part(
                list(launch_kernel(device.default_stream, plan, [sources[i], sources[i + 1], targets[i]])), Kind.H2D
            ).writes
            for i in range(5)
        }
        assert len(areas) == slots
        expected = [wanted(bundle, {"a": arrays[i], "b": arrays[i + 1]})["c"] for i in range(5)]
        assert [item.to_host().tobytes() for item in targets] == expected
        del plan, sources, targets


def overlaps(slots: int) -> bool:
    """Whether the copy of the next correction begins before a computation has ended, on the simulated clock."""
    with tidy(emulated()) as device:
        log = Log(device)
        plan = ExecutionPlan(spyrec.compile(binary_graph("add", 512, 512)), correction_slots=slots)
        inputs = on_device(device, [half(1, 512, 512), half(2, 512, 512)])
        targets = [SpyreTensor.empty(device, (512, 512), "float16") for _ in range(4)]
        _ = [launch_kernel(device.default_stream, plan, [*inputs, item]) for item in targets]
        device.synchronize()
        named = [entry for entry in log.entries if entry.block.origin.plan == "small"]
        computes = [entry for entry in named if entry.block.kind is Kind.COMPUTE]
        copies = [entry for entry in named if entry.block.kind is Kind.H2D]
        found = any(later.start_ns < earlier.end_ns for earlier, later in zip(computes, copies[1:], strict=False))
        log.entries.clear()
        del plan, inputs, targets, _, named, computes, copies
        return found


def test_the_next_correction_is_copied_while_the_program_runs_only_where_it_has_a_slot_of_its_own() -> None:
    assert overlaps(2)
    assert not overlaps(1)


def image_of(plan: ExecutionPlan) -> bytes:
    binary = plan.jobs[0].binary
    assert binary is not None
    return binary.artifact.files["init.bin"]


def test_a_program_that_is_copied_over_another_is_the_one_that_runs() -> None:
    arrays = [half(1), half(2)]
    bundles = {op: spyrec.compile(binary_graph(op)) for op in ("add", "mul")}
    with tidy(emulated()) as device:
        plans = {op: ExecutionPlan(bundle) for op, bundle in bundles.items()}
        images = {op: image_of(plan) for op, plan in plans.items()}
        assert len(images["add"]) == len(images["mul"])
        inputs, (target,) = on_device(device, arrays), outputs(device, 1)
        plans["add"].load(device.default_stream)
        job = plans["add"].jobs[0]
        size_bytes = job.loaded_on(device).image.size_bytes
        memory = device.allocator.part(job.allocation_index(device), 0, size_bytes)
        for op in ("add", "mul", "add"):
            device.default_stream.flex.copy_h2d(np.frombuffer(images[op], np.uint8), memory)
            launch_kernel(device.default_stream, plans["add"], [*inputs, target])
            assert target.to_host().tobytes() == wanted(bundles[op], {"a": arrays[0], "b": arrays[1]})["c"]
        del plans, job, inputs, target, memory


def test_a_program_that_is_damaged_in_memory_is_not_run() -> None:
    with tidy(emulated()) as device:
        plan, inputs, target = prepared(device)
        launch_kernel(device.default_stream, plan, [*inputs, target])
        device.synchronize()
        binary = plan.jobs[0].loaded_on(device).image
        device.backend.view(AddressRange(binary.address.advanced(binary.size_bytes - 200), 1))[:] ^= 1
        launch_kernel(device.default_stream, plan, [*inputs, target])
        with pytest.raises(ExecutionFailed, match="SHA-256"):
            device.synchronize()
        device.default_stream.clear_error()
        del plan, inputs, target


def test_what_is_kept_of_programs_and_launches_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spyrec.emulator.backend._MOST_PLANS", 2)
    monkeypatch.setattr("spyrec.emulator.backend._MOST_LAUNCHES", 3)
    arrays = [half(1), half(2)]
    operations = ("add", "mul", "sub", "maximum")
    bundles = [spyrec.compile(binary_graph(op)) for op in operations]
    with tidy(emulated()) as device:
        backend = device.backend
        assert isinstance(backend, EmulatorBackend)
        plans, inputs, targets = (
            [ExecutionPlan(bundle) for bundle in bundles],
            on_device(device, arrays),
            outputs(device, 2),
        )
        for number in [0, 1, 2, 3, 0, 1, 2, 3]:
            expected = wanted(bundles[number], {"a": arrays[0], "b": arrays[1]})["c"]
            assert launched(plans[number], inputs, targets) == [expected, expected]
            assert backend.kept_counts[0] <= 2
            assert backend.kept_counts[1] <= 3
        del plans, inputs, targets, backend


def launched(plan: ExecutionPlan, inputs: list[SpyreTensor], targets: list[SpyreTensor]) -> list[bytes]:
    """The results of launching a plan once for each target."""
    results: list[bytes] = []
    for target in targets:
        launch_kernel(target.device.default_stream, plan, [*inputs, target])
        results.append(target.to_host().tobytes())
    return results
