"""Records of operations by two pens: the emulator's, from SuperDSCs, and the planner's, from scheduled kernels."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.program import Program
from spyrec.bundle.superdsc import SuperDsc
from spyrec.emulator.device import EmulatedDevice, EmulatedProgram
from spyrec.emulator.timeline.cost_record import record_of as emulated_record
from spyrec.hardware.cost import OperationRecord
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.planning.record import record_of
from spyrec.runtime.device import ArgumentTable
from spyrec.runtime.session import Session


class _Recorder(EmulatedDevice):
    """An emulated device that keeps the programs it loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[EmulatedProgram] = []

    def load(self, program: Program, superdscs: Mapping[str, SuperDsc], table: ArgumentTable) -> EmulatedProgram:
        loaded = super().load(program, superdscs, table)
        self.loaded.append(loaded)
        return loaded


def emulated_records(bundle: Bundle) -> list[OperationRecord]:
    """Return the record of every SuperDSC of a bundle, in plan order."""
    device = _Recorder()
    Session(bundle, device)
    return [
        emulated_record(item.setting, item.binding, item.traffic)
        for loaded in device.loaded
        for item in loaded.planned.values()
    ]


def planned_records(graph: KernelGraph) -> list[OperationRecord]:
    """Return the planner's record of every kernel of a scheduled graph."""
    return [
        record_of(graph, kernel, frozenset(program.lx_offsets))
        for program in graph.programs
        for kernel in graph.kernels[program.first_kernel : program.end_kernel]
    ]
