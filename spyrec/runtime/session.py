"""A bundle on a device: programs loaded, arguments allocated, constants copied; then runs, each with its inputs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.bundle.bundle import Bundle, DeviceProgram
from spyrec.bundle.image_table import baked_base
from spyrec.bundle.manifest import Argument, Manifest, PlanStep, Role
from spyrec.bundle.program import is_value_parameter
from spyrec.diagnostics import Location, files_below, located, refuse
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.argument_copy import ArgumentCopier
from spyrec.runtime.binding import actual_shape, checked_inputs, chosen_extents, expected_inputs, has_host_form
from spyrec.runtime.device import (
    NO_VALUES,
    ArgumentTable,
    Device,
    LaunchStats,
    LoadedProgram,
    OperationStats,
    TableEntry,
)
from spyrec.runtime.findings import naming_elements
from spyrec.runtime.observer import ArgumentCopy, CopyObserver, RunObserver
from spyrec.runtime.selection import only_calls_of, refuse_too_many_executions
from spyrec.runtime.timeline_records import HostCopy

HostArray = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Options of a session.

    ``only``: execute the calls of one SuperDSC file; ``max_executions``: most SuperDSCs that one run may execute;
    ``half_format``: what the device's memory really holds where a tensor is DLFloat16.
    ``observer`` is told of host copies.
    """

    only: str | None = None
    max_executions: int = 10**9
    half_format: DeviceFormat = DeviceFormat.SEN169_FP16
    observer: CopyObserver | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What one run gave: outputs and their dtypes by result name in graph order, counters per SuperDSC in plan order.

    ``dma_h2d_bytes`` and ``dma_d2h_bytes`` are device bytes; the constants' copy counts in every run's figure.
    ``copies`` and ``launches`` are the same in order: what a trace shows.
    """

    outputs: dict[str, HostArray]
    dtypes: dict[str, str]
    operations: tuple[OperationStats, ...]
    lx_peak_bytes: int
    dma_h2d_bytes: int
    dma_d2h_bytes: int
    copies: tuple[HostCopy, ...] = ()
    launches: tuple[LaunchStats, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """What one launch executes, loaded: ``prefix`` is put before its files' names in the counters."""

    plan: PlanStep
    loaded: LoadedProgram
    prefix: str
    value_parameters: frozenset[str]


def _names_on_device(manifest: Manifest) -> set[str]:
    """Return what the plan binds or the caller gets back; the rest (an unused input) never leaves the host."""
    return {name for step in manifest.plan for name in step.arguments} | {name for _, name in manifest.outputs}


def argument_size_bytes(argument: Argument) -> int:
    """Return the device bytes of an argument: whole sticks of its ``device_size``."""
    return STICK_BYTES * math.prod(argument.device_size[:-1])


class Session:
    """A bundle made ready on a device.

    Everything is validated before memory is taken: the number of executions (errors SPY0767), the file that ``only``
    names (SPY0768), then each program by the device (its rules V1 to V14).
    """

    def __init__(self, bundle: Bundle, device: Device, options: SessionOptions | None = None) -> None:
        chosen = options or SessionOptions()
        self._device = device
        self._manifest = bundle.manifest
        self._root = bundle.root
        self._arguments = {argument.name: argument for argument in bundle.manifest.arguments}
        self._copier = ArgumentCopier(bundle, chosen.half_format)
        self.observer = chosen.observer
        with naming_elements(self._element_of):
            self._steps = _load(bundle, device, chosen)
        rows = _index_rows(self._steps)
        self.inputs = tuple(
            dataclasses.replace(item, row_count=rows.get(item.name)) for item in expected_inputs(bundle.manifest)
        )
        on_device = _names_on_device(bundle.manifest)
        self._addresses = {
            name: device.allocate(argument_size_bytes(item))
            for name, item in self._arguments.items()
            if name in on_device
        }
        pool_bytes = max((step.plan.pool_bytes for step in self._steps), default=0)
        self._pool_address = device.allocate(pool_bytes) if pool_bytes else None
        self._constant_copies = self._copy_constants(bundle)

    def run(
        self,
        inputs: Mapping[str, HostArray],
        observer: RunObserver | None = None,
        *,
        values: Mapping[str, int] = NO_VALUES,
    ) -> RunRecord:
        """Copy the inputs in, execute the plan, copy the outputs out.

        Where ``observer`` ends the run there are no outputs.  ``values``: of the programs' value parameters, by name;
        they come before those that a foreign bundle's table gives.

        Errors: SPY0760 to SPY0763 (the inputs), those of the copies, and the device's for what the files alone do not
        show.
        """
        checked = checked_inputs(inputs, self.inputs)
        extents = chosen_extents(checked, self.inputs, self._manifest.symbolic_dims)
        self._refuse_unknown_values(values)
        self._forget_results()
        copied_in = [self._copy_in(name, array) for name, array in checked.items() if name in self._addresses]
        copied_in = [*self._constant_copies, *copied_in]
        launches, is_complete = self._launch_all(observer, {**self._trips(extents), **values})
        results = self._manifest.outputs if is_complete else ()
        outputs = {result: self._copy_out(name, extents) for result, name in results}
        sizes = {name: argument_size_bytes(self._arguments[name]) for _, name in results}
        copied_out = [HostCopy(name, sizes[name], is_to_device=False) for _, name in results]
        return RunRecord(
            outputs,
            {result: self._dtype_name(name) for result, name in results},
            tuple(operation for launch in launches for operation in launch.operations),
            max((launch.lx_peak_bytes for launch in launches), default=0),
            sum(item.size_bytes for item in copied_in),
            sum(item.size_bytes for item in copied_out),
            (*copied_in, *copied_out),
            tuple(launches),
        )

    def _trips(self, extents: Mapping[str, int]) -> dict[str, int]:
        """Return the values of the programs' value parameters for the extents of a run."""
        return {
            name: count.trips(extents[count.dim])
            for step in self._steps
            for name, count in step.plan.trip_counts.items()
            if count.dim in extents
        }

    def _refuse_unknown_values(self, values: Mapping[str, int]) -> None:
        known = sorted({name for step in self._steps for name in step.value_parameters})
        for name in sorted(set(values) - set(known)):
            hint = f"its value parameters are {', '.join(known)}" if known else "its programs have no value parameters"
            raise refuse("SPY0708", f'no program of the bundle has a value parameter "%{name}"', hint=hint)

    def _launch_all(self, observer: RunObserver | None, values: Mapping[str, int]) -> tuple[list[LaunchStats], bool]:
        """Execute the plan; the second result says whether to its end."""
        launches: list[LaunchStats] = []
        for number, step in enumerate(self._steps):
            if observer is not None:
                observer.launching(number)
            launches.append(self._launch(step, observer, values))
            if observer is not None and observer.is_ended:
                return launches, False
        return launches, True

    def _copy_constants(self, bundle: Bundle) -> list[HostCopy]:
        # a constant without an index serves the check alone: no program reads it
        names = [
            item.name
            for item in bundle.manifest.arguments
            if item.role is Role.CONSTANT and item.arg_index is not None and item.name in self._addresses
        ]
        return [self._copy_in(name, bundle.constants[name]) for name in names]

    def argument_memory(self, name: str) -> npt.NDArray[np.uint8]:
        """Return the device bytes of an argument that lives on the device."""
        return self._device.memory(self._addresses[name], argument_size_bytes(self._arguments[name]))

    def pool_memory(self, size_bytes: int) -> npt.NDArray[np.uint8]:
        """Return the first bytes of the pool, which all programs share."""
        assert self._pool_address is not None
        return self._device.memory(self._pool_address, size_bytes)

    def _copy_in(self, name: str, array: HostArray) -> HostCopy:
        with located(*self._copy_place(name, "h2d")):
            self._copier.copy_in(self._arguments[name], array, self.argument_memory(name))
        if self.observer is not None:
            self.observer.copied_in(self._argument_copy(name, "h2d", array.shape))
        return HostCopy(name, argument_size_bytes(self._arguments[name]), is_to_device=True)

    def _forget_results(self) -> None:
        """Tell the observer that what programs wrote in an earlier run counts no more."""
        if self.observer is None:
            return
        for name, address in self._addresses.items():
            if self._arguments[name].role in {Role.OUTPUT, Role.INTERMEDIATE}:
                self.observer.forgotten(address, argument_size_bytes(self._arguments[name]))

    def _argument_copy(self, name: str, direction: str, shape: tuple[int, ...] | None) -> ArgumentCopy:
        argument = self._arguments[name]
        is_whole = not has_host_form(argument) or (direction == "h2d" and self._copier.clears(argument))
        table = None if is_whole else self._copier.table(argument, direction, shape)
        return ArgumentCopy(
            name,
            self._addresses[name],
            argument_size_bytes(argument),
            argument.device_size,
            None if table is None else table.nests,
            is_to_device=direction == "h2d",
            host_shape=None if table is None else table.host_shape,
        )

    def _element_of(self, name: str, coordinate: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the host index of the element at a device coordinate of an argument, ``None`` for padding."""
        argument = self._arguments.get(name)
        if argument is None or not has_host_form(argument):
            return None
        direction = "d2h" if argument.role is Role.OUTPUT else "h2d"
        table = self._copier.table(argument, direction)
        size, is_to_device = argument_size_bytes(argument), direction == "h2d"
        copy = ArgumentCopy(name, 0, size, argument.device_size, table.nests, is_to_device, table.host_shape)
        number = 0
        for place, extent in zip(coordinate, argument.device_size, strict=True):
            number = number * extent + place
        return copy.host_index(number)

    def _copy_out(self, name: str, extents: Mapping[str, int]) -> HostArray:
        argument = self._arguments[name]
        shape = actual_shape(argument, extents) if argument.symbolic_axes else None
        if self.observer is not None:
            self.observer.copied_out(self._argument_copy(name, "d2h", shape))
        with located(*self._copy_place(name, "d2h")):
            return self._copier.copy_out(argument, self.argument_memory(name), shape)

    def _copy_place(self, name: str, direction: str) -> tuple[Location, tuple[str, ...]]:
        """Return what a refused copy is about: the conversion table (or the foreign bundle), and the argument."""
        tables = self._arguments[name].dci
        file = "/".join(part for part in (self._root, None if tables is None else tables[direction]) if part)
        return Location(file or None), (f'in the copy of argument "{name}"',)

    def _dtype_name(self, name: str) -> str:
        dtype = self._arguments[name].dtype
        return "float32" if dtype is None else dtype.value

    def _launch(self, step: _Step, observer: RunObserver | None, values: Mapping[str, int]) -> LaunchStats:
        addresses = [self._addresses[name] for name in step.plan.arguments]
        pool = self._pool_address if step.plan.pool_bytes else None
        own = {name: value for name, value in values.items() if name in step.value_parameters}
        with files_below(program_directory(self._root, step.plan.program)), naming_elements(self._element_of):
            stats = self._device.launch(step.loaded, addresses, pool, observer, values={**step.plan.values, **own})
        named = tuple(dataclasses.replace(item, file=step.prefix + item.file) for item in stats.operations)
        return dataclasses.replace(stats, operations=named)


def _load(bundle: Bundle, device: Device, options: SessionOptions) -> list[_Step]:
    programs = {program.directory: program for program in bundle.programs}
    if options.only is not None:
        programs = _selected(programs, options.only)
    refuse_too_many_executions({name: item.program for name, item in programs.items()}, options.max_executions)
    arguments = {argument.name: argument for argument in bundle.manifest.arguments}
    is_only = len(bundle.manifest.plan) == 1
    steps: list[_Step] = []
    for plan in bundle.manifest.plan:
        if plan.program in programs:
            chosen = programs[plan.program]
            table = argument_table(arguments, plan, is_only=is_only)
            if options.observer is not None:
                options.observer.loading(_prefix(plan.program))
            with files_below(program_directory(bundle.root, plan.program)):
                loaded = device.load(chosen.program, chosen.superdscs, table)
            names = frozenset(item.name for item in chosen.program.parameters if is_value_parameter(item.name))
            steps.append(_Step(plan, loaded, _prefix(plan.program), names))
    return steps


def _index_rows(steps: Iterable[_Step]) -> dict[str, int]:
    """Return, by argument that holds row numbers, the rows of the smallest table that a program takes them of."""
    rows: dict[str, int] = {}
    for step in steps:
        for index, count in step.loaded.index_rows.items():
            name = step.plan.arguments[index]
            rows[name] = min(count, rows.get(name, count))
    return rows


def program_directory(root: str | None, directory: str) -> str:
    """Return what stands before a program's file names in messages: bundle and program directory, as far as known."""
    return ("" if root is None else f"{root}/") + _prefix(directory)


def _prefix(directory: str) -> str:
    return "" if directory == "." else f"{directory}/"


def _selected(programs: Mapping[str, DeviceProgram], only: str) -> dict[str, DeviceProgram]:
    """Keep one file's calls: ``sdsc_3.json``, or with its directory where the plan has several programs."""
    full_names = {
        _prefix(directory) + file: (directory, file)
        for directory, program in programs.items()
        for file in program.superdscs
    }
    matches = [name for name in full_names if name == only or name.endswith(f"/{only}")]
    if len(matches) != 1:
        found = "no SuperDSC file" if not matches else f"{len(matches)} SuperDSC files"
        raise refuse(
            "SPY0768",
            f'"{only}" names {found} of the bundle',
            hint="name one of " + ", ".join(sorted(matches or full_names)[:8]),
        )
    directory, file = full_names[matches[0]]
    program = programs[directory]
    kept = only_calls_of(program.program, file)
    return {directory: dataclasses.replace(program, program=kept, superdscs={file: program.superdscs[file]})}


def argument_table(arguments: Mapping[str, Argument], plan: PlanStep, *, is_only: bool) -> ArgumentTable:
    """Return what the device checks one program's operands against (rule V6)."""
    entries = [_entry(arguments[name], index, plan, is_only) for index, name in enumerate(plan.arguments)]
    maxima = {name: item.max_trips for name, item in plan.trip_counts.items()}
    return ArgumentTable(tuple(entries), plan.pool_bytes, {**plan.values, **maxima})


def _entry(argument: Argument, index: int, plan: PlanStep, is_only: bool) -> TableEntry:
    base = baked_base(argument, index, plan, is_only=is_only)
    return TableEntry(
        argument.name, index, argument.device_size, argument.device_dtype, base, argument_size_bytes(argument)
    )
