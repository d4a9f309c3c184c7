"""Plans of the operations that work element by element: pointwise, one-input tables, copies, casts, gathers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component, Indirection
from spyrec.diagnostics import Diagnostic, Location, refuse
from spyrec.emulator.engine import (
    NO_DATA_READS,
    NO_TABLE,
    DataReads,
    Executable,
    Integers,
    Mover,
    Setting,
    StepRequest,
)
from spyrec.emulator.footprint import box_runs, length, merge, shifted, whole_sticks
from spyrec.emulator.geometry import Nest, build_nests, index_dims, outer_sum, row_dim_of
from spyrec.emulator.kernels.copies import run_copy
from spyrec.emulator.kernels.direct import direct_function, run_combine, three_operands
from spyrec.emulator.kernels.norm import can_normalise, run_norm
from spyrec.emulator.kernels.pointwise import CONVERT, pointwise_runner
from spyrec.emulator.numerics import Storage, constant_value
from spyrec.emulator.operations.bound_calls import BoundCalls
from spyrec.emulator.operations.pointwise_steps import copy_steps, pointwise_steps
from spyrec.emulator.rules.fault_places import START, IndexOutsideTable, operand_field
from spyrec.emulator.rules.superdsc import name_of
from spyrec.runtime.findings import FaultPlace


class NestExecutable(Executable):
    """An operation on the elements of nests over the operands at ``positions``, the result last."""

    def __init__(self, setting: Setting, positions: tuple[int, ...]) -> None:
        self.setting = setting
        self.positions = positions
        self.nests = setting.nests(positions)

    def run(self, starts: Integers) -> None:
        """Execute once."""
        cores = starts.shape[1]
        for nest, part in zip(self.nests, self._parts(starts), strict=True):
            self.setting.threads.run(cores * nest.outer_points, cores * nest.points, part)

    @abstractmethod
    def _parts(self, starts: Integers) -> list[Callable[[int, int], None]]:
        """Return what runs tasks ``first <= t < past`` of each nest."""


class KernelNestExecutable(NestExecutable):
    """One that kernels alone compute, so that it can be bound to addresses and run core by core."""

    @property
    def is_bindable(self) -> bool:
        """Kernels do it all."""
        return True

    @property
    def is_separable(self) -> bool:
        """Elements are independent."""
        return True

    def nests_of(self, request: StepRequest) -> list[Nest]:
        """Return the nests over a box of a request."""
        return self.nests if request.setting is self.setting else request.setting.nests(self.positions)


TaskRunner = Callable[[Integers, Integers, int, int], None]
"""``(starts, nest, first, past)`` runs tasks ``first <= t < past``."""


def constants_of(setting: Setting) -> dict[str, float]:
    """Return the operation's constants by name, decoded as the device reads them."""
    return {entry.name: constant_value(entry.data_format, entry.bits) for entry in setting.superdsc.constants}


class PointwiseExecutable(KernelNestExecutable):
    """Decode, operate in float32, round once."""

    def __init__(self, setting: Setting, operation: str) -> None:
        super().__init__(setting, (*setting.inputs, setting.output))
        self.operation = operation
        self.codes = np.array([setting.codec(t).storage.value for t in self.positions], np.int64)
        self._runners: list[TaskRunner] = []

    def steps(self, request: StepRequest) -> BoundCalls:
        """Return one step per nest."""
        return pointwise_steps(self.operation, self.codes, self.positions, self.nests_of(request), request)

    def _parts(self, starts: Integers) -> list[Callable[[int, int], None]]:
        """Return what runs tasks ``first <= t < past`` of each nest."""
        if not self._runners:  # not before the first run: what never runs need not be compiled
            self._runners = [_runner_of(self.operation, self.codes, nest.loops) for nest in self.nests]
        used = starts[list(self.positions)]
        return [
            partial(runner, used + nest.offsets[:, None], nest.loops)
            for runner, nest in zip(self._runners, self.nests, strict=True)
        ]


def _runner_of(operation: str, codes: Integers, loops: Integers) -> TaskRunner:
    """Return what runs tasks of one operation; all kernels give the same bits."""
    direct = direct_function(operation, codes, loops)
    if direct is not None:
        return partial(_run_direct, direct.address)
    if can_normalise(operation, codes, loops):
        return run_norm
    return pointwise_runner(operation, codes)


def _run_direct(function: int, starts: Integers, loops: Integers, first: int, past: int) -> None:
    run_combine(function, *three_operands(starts, loops), first, past)


class CopyExecutable(KernelNestExecutable):
    """Move patterns, through a table of 65,536 results for a one-input operation on 16-bit formats."""

    def __init__(self, setting: Setting, table: npt.NDArray[np.uint16] = NO_TABLE) -> None:
        super().__init__(setting, (setting.inputs[0], setting.output))
        self.table = table
        self.word_bytes = setting.codec(setting.output).word_bytes

    def steps(self, request: StepRequest) -> BoundCalls:
        """Return one step per nest."""
        return copy_steps(self.word_bytes, self.table, self.positions, self.nests_of(request), request)

    def _parts(self, starts: Integers) -> list[Callable[[int, int], None]]:
        """Return what runs tasks ``first <= t < past`` of each nest."""
        used = starts[list(self.positions)]
        return [
            partial(run_copy, self.word_bytes, self.table, used + nest.offsets[:, None], nest.loops)
            for nest in self.nests
        ]


def plan_identity(setting: Setting) -> Executable:
    """Return the plan of a copy: patterns where the formats agree, values where both are floats."""
    if setting.superdsc.compute.indirect_access_indices:
        return GatherExecutable(setting)
    return plan_conversion(setting)


def plan_conversion(setting: Setting) -> Executable:
    """Return the plan of a copy between two formats; errors SPY0724 where no conversion is defined."""
    source, target = setting.codec(setting.inputs[0]), setting.codec(setting.output)
    if source == target or {source.storage, target.storage} == {Storage.WORD, Storage.SINGLE}:
        return CopyExecutable(setting)
    if not (source.is_float and target.is_float):
        formats = [setting.superdsc.operands[t].data_format.name for t in (setting.inputs[0], setting.output)]
        raise refuse(
            "SPY0724",
            f'"{setting.superdsc.op_func_name}" from {formats[0]} to {formats[1]} is not defined',
            Location(setting.file),
        )
    return PointwiseExecutable(setting, CONVERT)


class GatherExecutable(Executable):
    """Copy table rows named by index tensors; every (core, index) pair is one start of a copy nest."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        superdsc = setting.superdsc
        self.rows = index_dims(superdsc)
        self.index = superdsc.compute.indirect_access_indices[0]
        self.value = next(t for t, item in enumerate(superdsc.operands) if item.indirection is Indirection.VALUE)
        self.row_dim = row_dim_of(superdsc, superdsc.operands[self.value])
        extents = {dim: extent for dim, extent in setting.extents.items() if dim in self.rows}
        rest = {dim: extent for dim, extent in setting.extents.items() if dim not in self.rows}
        self.reader = Mover(setting, self.index, extents)
        self.is_hbm = superdsc.operands[self.value].component is Component.HBM
        self.row_sticks = whole_sticks(box_runs(setting.geometries[self.value], rest))
        self._data_reads = NO_DATA_READS
        operands = [setting.geometries[self.value], setting.geometries[setting.output]]
        self.nests = setting.scaled(build_nests(rest, operands))
        self.targets = outer_sum([setting.offsets(setting.output, dim) for dim in extents])

    @property
    def data_reads(self) -> DataReads:
        """The sticks of the rows that the latest execution took."""
        return self._data_reads

    @property
    def row_count(self) -> int:
        """Rows of the table."""
        geometry = self.setting.geometries[self.value]
        if self.row_dim is None:
            return 1
        return geometry.extents[self.row_dim] * (geometry.stick_size if self.row_dim == geometry.stick_dim else 1)

    def _outside(self, core: int, place: int, row: int, starts: Integers) -> IndexOutsideTable:
        """Return the fault of element ``place`` of a core's slice of the index."""
        setting, superdsc = self.setting, self.setting.superdsc
        extents = {dim: extent for dim, extent in setting.extents.items() if dim in self.rows}
        slices, own_core = superdsc.core_work_slices[core], superdsc.core_ids[core]
        within = np.unravel_index(place, tuple(extents.values()))
        index = [slices[dim] * superdsc.core_extent[dim] + int(at) for dim, at in zip(extents, within)]
        offset = outer_sum([setting.offsets(self.index, dim) for dim in extents])[place]
        message = (
            f"index {index} of the operation, on core {own_core}, is row {row}; the table has {self.row_count} rows"
        )
        hint = f"rows go from 0 to {self.row_count - 1}; their count is that of the value argument's device_size"
        found = Diagnostic("SPY0706", message, Location(setting.file), hint=hint)
        operand = name_of(superdsc, self.index)
        named = FaultPlace(superdsc.op_func_name, own_core, operand=operand, field=operand_field(self.index, START))
        return IndexOutsideTable(found, named, int(starts[self.index, core] + offset))

    def _count(self, starts: Integers, offsets: Integers) -> DataReads:
        if not self.is_hbm:
            return NO_DATA_READS
        places = (starts - starts.min())[:, None] // self.setting.numerics.expansion + offsets
        per_core = [length(merge(shifted(self.row_sticks, np.unique(of_core)))) for of_core in places]
        return DataReads(length(merge(shifted(self.row_sticks, np.unique(places)))), sum(per_core))

    def look_up(self, starts: Integers) -> Integers:
        """Return the bytes [core, index] from the table's start to the rows that the index names; count their reads.

        Raises :class:`IndexOutsideTable` (SPY0706) for a row number outside the table.
        """
        setting = self.setting
        rows = setting.codec(self.index).decode(self.reader.load(starts[self.index])).astype(np.int64)
        wrong = np.argwhere((rows < 0) | (rows >= self.row_count))
        if len(wrong):
            core, place = (int(number) for number in wrong[0])
            raise self._outside(core, place, int(rows[core, place]), starts)
        offsets = setting.geometries[self.value].offsets(self.row_dim or "", rows)
        self._data_reads = self._count(starts[self.value], offsets)
        return offsets

    def run(self, starts: Integers) -> None:
        """Execute once; raises what :meth:`look_up` raises."""
        setting = self.setting
        steps = self.look_up(starts) * setting.numerics.expansion
        sources = (starts[self.value][:, None] + steps).reshape(-1)
        targets = (starts[setting.output][:, None] + self.targets[None, :]).reshape(-1)
        word_bytes = setting.codec(setting.output).word_bytes
        for nest in self.nests:
            at = np.stack([sources + nest.offsets[0], targets + nest.offsets[1]])
            run_copy(word_bytes, NO_TABLE, at, nest.loops, 0, len(sources) * nest.outer_points)
