"""Records of operations by two pens: the emulator's, from SuperDSCs, and the planner's, from scheduled kernels."""

from __future__ import annotations

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.program_image import read_image
from spyrec.emulator.backend import table_of
from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.timeline.cost_record import record_of as emulated_record
from spyrec.hardware.cost import OperationRecord
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.planning.record import record_of
from spyrec.runtime import ExecutionPlan


def emulated_records(bundle: Bundle) -> list[OperationRecord]:
    """Return the record of every SuperDSC of a bundle, in plan order."""
    device, records = EmulatedDevice(), list[OperationRecord]()
    for job in ExecutionPlan(bundle).jobs:
        assert job.binary is not None
        image = read_image(job.binary.image_bytes)
        loaded = device.load(image.program, image.superdscs, table_of(image))
        records += [emulated_record(item.setting, item.binding, item.traffic) for item in loaded.planned.values()]
    return records


def planned_records(graph: KernelGraph) -> list[OperationRecord]:
    """Return the planner's record of every kernel of a scheduled graph."""
    return [
        record_of(graph, kernel, frozenset(program.lx_offsets))
        for program in graph.programs
        for kernel in graph.kernels[program.first_kernel : program.end_kernel]
    ]
