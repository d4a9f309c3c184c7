"""Copies of table rows named by index tensors, on the host: the index is read, and refused, before the copy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spyrec.bundle.superdsc import Component, Indirection
from spyrec.diagnostics import Diagnostic, Location
from spyrec.emulator.engine import NO_DATA_READS, DataReads, Executable, Integers, Mover, Setting
from spyrec.emulator.footprint import box_runs, length, merge, shifted, whole_sticks
from spyrec.emulator.geometry import build_nests, index_dims, outer_sum, row_dim_of
from spyrec.emulator.kernels.copies import run_copy
from spyrec.emulator.kernels.nests import NO_TABLE
from spyrec.emulator.operations.host import HostExecutable
from spyrec.emulator.rules.fault_places import START, IndexOutsideTable, operand_field
from spyrec.emulator.rules.superdsc import name_of
from spyrec.runtime.findings import FaultPlace


@dataclass(frozen=True, slots=True)
class Rows:
    """Bytes ``offsets[core, index]`` from the table's start to the rows that the index names, and what they read."""

    offsets: Integers
    reads: DataReads


class Gather:
    """Every (core, index) pair is one start of a copy nest; implements ``host.HostWork``."""

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
        operands = [setting.geometries[self.value], setting.geometries[setting.output]]
        self.nests = setting.scaled(build_nests(rest, operands))
        self.targets = outer_sum([setting.offsets(setting.output, dim) for dim in extents])

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
        named = FaultPlace(
            superdsc.op_func_name,
            own_core,
            operand=operand,
            field=operand_field(self.index, START),
            provenance=superdsc.provenance,
        )
        return IndexOutsideTable(found, named, int(starts[self.index, core] + offset))

    def _count(self, starts: Integers, offsets: Integers) -> DataReads:
        if not self.is_hbm:
            return NO_DATA_READS
        places = (starts - starts.min())[:, None] // self.setting.numerics.expansion + offsets
        per_core = [length(merge(shifted(self.row_sticks, np.unique(of_core)))) for of_core in places]
        return DataReads(length(merge(shifted(self.row_sticks, np.unique(places)))), sum(per_core))

    def look_up(self, starts: Integers) -> Rows:
        """Return the rows that the index names.

        Raises :class:`IndexOutsideTable` (SPY0706) for a row number outside the table.
        """
        setting = self.setting
        rows = setting.codec(self.index).decode(self.reader.load(starts[self.index])).astype(np.int64)
        wrong = np.argwhere((rows < 0) | (rows >= self.row_count))
        if len(wrong):
            core, place = (int(number) for number in wrong[0])
            raise self._outside(core, place, int(rows[core, place]), starts)
        offsets = setting.geometries[self.value].offsets(self.row_dim or "", rows)
        return Rows(offsets, self._count(starts[self.value], offsets))

    def run(self, starts: Integers) -> DataReads:
        """Execute once and return the sticks of the rows that it took; raises what :meth:`look_up` raises."""
        setting, rows = self.setting, self.look_up(starts)
        steps = rows.offsets * setting.numerics.expansion
        sources = (starts[self.value][:, None] + steps).reshape(-1)
        targets = (starts[setting.output][:, None] + self.targets[None, :]).reshape(-1)
        word_bytes = setting.codec(setting.output).word_bytes
        for nest in self.nests:
            at = np.stack([sources + nest.offsets[0], targets + nest.offsets[1]])
            run_copy(word_bytes, NO_TABLE, at, nest.loops, 0, len(sources) * nest.outer_points)
        return rows.reads


def gather_of(executable: Executable) -> Gather | None:
    """Return the gather that an executable is, if it is one."""
    work = executable.work if isinstance(executable, HostExecutable) else None
    return work if isinstance(work, Gather) else None
