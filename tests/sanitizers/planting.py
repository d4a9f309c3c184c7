"""Planting bugs: a right bundle, one change to one SuperDSC or to the order of calls, and what is reported then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.program import Program, SdscExecute
from spyrec.bundle.superdsc import SuperDsc
from spyrec.emulator.device import EmulatedDevice
from spyrec.runtime.device import ArgumentTable
from spyrec.runtime.findings import Finding, sanitizers_named
from spyrec.runtime.observer import ArgumentCopy
from tests.emulator.builders import Operation, program_of, superdsc_of

Change = Callable[[SuperDsc], SuperDsc]


def with_operand(superdsc: SuperDsc, position: int, **changes: object) -> SuperDsc:
    """Return a SuperDSC with fields of one operand changed."""
    operands = list(superdsc.operands)
    operands[position] = replace(operands[position], **changes)  # type: ignore[arg-type]
    return replace(superdsc, operands=tuple(operands))


def moved(position: int, by: int) -> Change:
    """Return the change that moves an operand's start on every core."""

    def change(superdsc: SuperDsc) -> SuperDsc:
        starts = tuple(start + by for start in superdsc.operands[position].start_addresses)
        return with_operand(superdsc, position, start_addresses=starts)

    return change


def planted(bundle: Bundle, file: str, change: Change) -> Bundle:
    """Return a bundle of one program with one SuperDSC changed."""
    (program,) = bundle.programs
    superdscs = {name: change(item) if name == file else item for name, item in program.superdscs.items()}
    return replace(bundle, programs=(replace(program, superdscs=superdscs),))


def reordered(bundle: Bundle, files: Callable[[list[str]], list[str]]) -> Bundle:
    """Return a bundle of one program that executes other files, or in another order."""
    (program,) = bundle.programs
    calls = {item.sdsc_filename: item for item in program.program.body if isinstance(item, SdscExecute)}
    rest = tuple(item for item in program.program.body if not isinstance(item, SdscExecute))
    chosen = files(list(calls))
    body = Program(program.program.maps, program.program.parameters, (*rest, *(calls[name] for name in chosen)))
    used = {name: item for name, item in program.superdscs.items() if name in chosen}
    return replace(bundle, programs=(replace(program, program=body, superdscs=used),))


def without(file: str) -> Callable[[list[str]], list[str]]:
    """Return the order of calls that leaves one out."""
    return lambda names: [name for name in names if name != file]


def findings(bundle: Bundle, data: Mapping[str, npt.NDArray[np.generic]], sanitize: str = "all") -> tuple[Finding, ...]:
    """Run a bundle and return what its sanitizers found."""
    result = spyrec.run(bundle, data, spyrec.RunOptions(sanitize=sanitize))
    assert result.is_ok == (not result.sanitizer)
    return result.sanitizer


class HandMade:
    """Hand-made operations on a watched device: argument ``i`` is allocated, and defined where it is an input."""

    def __init__(self, superdscs: Sequence[SuperDsc], table: ArgumentTable, sanitize: str = "all") -> None:
        self.device = EmulatedDevice(sanitizers=sanitizers_named(sanitize))
        self.table = table
        assert self.device.monitor is not None
        self.monitor = self.device.monitor
        files = {f"sdsc_{i}.json": item for i, item in enumerate(superdscs)}
        self.loaded = self.device.load(program_of(len(superdscs)), files, table)
        self.addresses = {entry.arg_index: self.device.allocate(entry.size_bytes) for entry in table.entries}
        self.pool = self.device.allocate(table.pool_bytes) if table.pool_bytes else None

    def copy_of(self, argument: int, *, is_to_device: bool) -> ArgumentCopy:
        """Return the copy of a whole argument in device form."""
        entry = next(item for item in self.table.entries if item.arg_index == argument)
        address = self.addresses[argument]
        return ArgumentCopy(entry.name, address, entry.size_bytes, entry.device_size, None, is_to_device=is_to_device)

    def give(self, argument: int, values: npt.NDArray[np.generic] | None = None) -> None:
        """Define an argument; its bytes are zero where no values are given."""
        copy = self.copy_of(argument, is_to_device=True)
        memory = self.device.memory(copy.address, copy.size_bytes)
        memory[:] = 0 if values is None else np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self.monitor.copied_in(copy)

    def run(self, inputs: Sequence[int], outputs: Sequence[int] = ()) -> tuple[Finding, ...]:
        """Define inputs, launch, read outputs; return the findings."""
        for argument in inputs:
            self.give(argument)
        self.launch()
        for argument in outputs:
            self.monitor.copied_out(self.copy_of(argument, is_to_device=False))
        return self.monitor.findings

    def launch(self) -> None:
        """Execute the program."""
        count = max(self.addresses, default=-1) + 1
        self.device.launch(self.loaded, [self.addresses.get(i, 0) for i in range(count)], self.pool)


def hand_made(operations: Sequence[Operation], bases: Sequence[Sequence[int]]) -> list[SuperDsc]:
    """Return the SuperDSCs of operations whose tensors lie at the given baked addresses."""
    return [superdsc_of(operation, i, own) for i, (operation, own) in enumerate(zip(operations, bases, strict=True))]
