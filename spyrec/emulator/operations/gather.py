"""Rows of tables that index tensors name, read or stored, on the host: the index is read, and refused, first.

An operand whose rows are named is a start of a nest for every (core, index) pair; later pairs are stored later.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spyrec.bundle.superdsc import Component, Indirection
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Diagnostic, Location
from spyrec.emulator.engine import DataTraffic, Executable, Integers, Mover, Setting
from spyrec.emulator.footprint import box_runs, length, merge, shifted, whole_sticks
from spyrec.emulator.geometry import build_nests, index_dims, index_of, outer_sum, row_dim_of
from spyrec.emulator.kernels.copies import run_copy
from spyrec.emulator.kernels.nests import NO_TABLE
from spyrec.emulator.operations.host import HostExecutable
from spyrec.emulator.rules.fault_places import START, IndexOutsideTable, operand_field
from spyrec.emulator.rules.superdsc import name_of
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.findings import FaultPlace


class Table:
    """An operand at ``position`` of which an index tensor at ``index`` names rows."""

    def __init__(self, setting: Setting, position: int) -> None:
        self.setting, self.position = setting, position
        superdsc = setting.superdsc
        operand = superdsc.operands[position]
        self.index = index_of(superdsc, operand)
        self._row_dim = row_dim_of(superdsc, operand)
        rows = index_dims(superdsc)
        self._extents = {dim: extent for dim, extent in setting.extents.items() if dim in rows}
        self._reader = Mover(setting, self.index, self._extents)
        self.is_hbm = operand.component is Component.HBM
        rest = {dim: extent for dim, extent in setting.extents.items() if dim not in rows}
        self.row_sticks = whole_sticks(box_runs(setting.geometries[position], rest))

    @property
    def row_count(self) -> int:
        """Rows of the table."""
        geometry, dim = self.setting.geometries[self.position], self._row_dim
        if dim is None:
            return 1
        return geometry.extents[dim] * (geometry.stick_size if dim == geometry.stick_dim else 1)

    def offsets(self, starts: Integers) -> Integers:
        """Return the device bytes ``[core, index]`` from the table's start to the rows that the index names.

        Raises :class:`IndexOutsideTable` (SPY0706) for a row number outside the table.
        """
        setting = self.setting
        rows = setting.codec(self.index).decode(self._reader.load(starts[self.index])).astype(np.int64)
        wrong = np.argwhere((rows < 0) | (rows >= self.row_count))
        if len(wrong):
            core, place = (int(number) for number in wrong[0])
            raise self._outside(core, place, int(rows[core, place]), starts)
        return setting.geometries[self.position].offsets(self._row_dim or "", rows)

    def _outside(self, core: int, place: int, row: int, starts: Integers) -> IndexOutsideTable:
        """Return the fault of element ``place`` of a core's slice of the index."""
        setting, superdsc = self.setting, self.setting.superdsc
        slices, own_core = superdsc.core_work_slices[core], superdsc.core_ids[core]
        within = np.unravel_index(place, tuple(self._extents.values()))
        index = [slices[dim] * superdsc.core_extent[dim] + int(at) for dim, at in zip(self._extents, within)]
        offset = outer_sum([setting.offsets(self.index, dim) for dim in self._extents])[place]
        message = (
            f"index {index} of the operation, on core {own_core}, is row {row}; the table has {self.row_count} rows"
        )
        argument = "output" if self.position == setting.output else "value"
        hint = f"rows go from 0 to {self.row_count - 1}; their count is that of the {argument} argument's device_size"
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


@dataclass(frozen=True, slots=True)
class Found:
    """Emulated addresses ``[core, index]`` of each operand that is no index, and what rows move of device memory."""

    places: dict[int, Integers]
    traffic: DataTraffic


class Gather:
    """A copy between rows, on one side or both; what all operations with an index share."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        rows = index_dims(setting.superdsc)
        self.rest = {dim: extent for dim, extent in setting.extents.items() if dim not in rows}
        self.indexed = [dim for dim in setting.extents if dim in rows]
        self.positions = (*setting.inputs, setting.output)
        operands = setting.superdsc.operands
        self.tables = {
            position: Table(setting, position)
            for position in self.positions
            if operands[position].indirection is Indirection.VALUE
        }
        self._plain = {
            position: outer_sum([setting.offsets(position, dim) for dim in self.indexed])
            for position in self.positions
            if position not in self.tables
        }
        self.nests = setting.scaled(build_nests(self.rest, [setting.geometries[t] for t in self.positions]))

    @property
    def row_counts(self) -> dict[int, int]:
        """Rows of the smallest table, by the position of the index that names them."""
        found: dict[int, int] = {}
        for table in self.tables.values():
            found[table.index] = min(table.row_count, found.get(table.index, table.row_count))
        return found

    def look_up(self, starts: Integers) -> Found:
        """Return where the elements are whose other coordinates are 0; raises what :meth:`Table.offsets` raises."""
        expansion = self.setting.expansion
        rows = {position: table.offsets(starts) for position, table in self.tables.items()}
        places = {position: starts[position][:, None] + found * expansion for position, found in rows.items()}
        places |= {position: starts[position][:, None] + own[None, :] for position, own in self._plain.items()}
        output = self.setting.output
        lowest = min((int(starts[position].min()) for position in rows), default=0)
        moved = {
            table.position: (places[table.position] - lowest) // expansion // STICK_BYTES * STICK_BYTES
            for table in self.tables.values()
            if table.is_hbm
        }
        read, core_read = self._sticks({position: own for position, own in moved.items() if position != output})
        written, _ = self._sticks({position: own for position, own in moved.items() if position == output})
        return Found(places, DataTraffic(read, core_read, written))

    def _sticks(self, moved: Mapping[int, Integers]) -> tuple[int, int]:
        """Return the bytes of the sticks ``[core, index]`` that rows begin in: distinct ones, and summed over cores."""
        if not moved:
            return 0, 0
        per_core = [
            merge(
                np.concatenate([shifted(self.tables[t].row_sticks, np.unique(own[core])) for t, own in moved.items()])
            )
            for core in range(self.setting.cores)
        ]
        return length(merge(np.concatenate(per_core))), sum(map(length, per_core))

    def run(self, starts: Integers) -> DataTraffic:
        """Execute once and return the sticks of the rows; raises what :meth:`look_up` raises."""
        setting, found = self.setting, self.look_up(starts)
        addresses = [found.places[position].reshape(-1) for position in self.positions]
        word_bytes = setting.codec(setting.output).word_bytes
        for nest in self.nests:
            at = np.stack([own + offset for own, offset in zip(addresses, nest.offsets.tolist(), strict=True)])
            run_copy(word_bytes, NO_TABLE, at, nest.loops, 0, at.shape[1] * nest.outer_points)
        return found.traffic


def gather_of(executable: Executable) -> Gather | None:
    """Return the rows that an executable reads or stores through an index, if it does."""
    work = executable.work if isinstance(executable, HostExecutable) else None
    return work if isinstance(work, Gather) else None
