"""Plans of the operations that work element by element: pointwise, one-input tables, copies, casts, gathers."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component, Indirection
from spyrec.diagnostics import Location, refuse
from spyrec.emulator.engine import NO_DATA_READS, NO_TABLE, DataReads, Executable, Integers, Mover, Setting
from spyrec.emulator.footprint import box_runs, length, merge, shifted, whole_sticks
from spyrec.emulator.functions import FUNCTIONS
from spyrec.emulator.geometry import build_nests, index_dims, outer_sum, row_dim_of
from spyrec.emulator.kernel_copy import run_copy
from spyrec.emulator.kernel_pointwise import POINTWISE_OPERATIONS, run_pointwise
from spyrec.emulator.numerics import Codec, Storage, constant_value

_DENSE_ELEMENTS = 1 << 22  # elements decoded at a time on the slow path


def constants_of(setting: Setting) -> dict[str, float]:
    """Return the operation's constants by name, decoded as the device reads them."""
    return {entry.name: constant_value(entry.data_format, entry.bits) for entry in setting.superdsc.constants}


class PointwiseExecutable(Executable):
    """Decode, operate in float32, round once."""

    def __init__(self, setting: Setting, operation: str) -> None:
        self.setting = setting
        self.operation = POINTWISE_OPERATIONS.index(operation)
        self.positions = (*setting.inputs, setting.output)
        self.nests = setting.nests(self.positions)
        self.codes = np.array([setting.codec(t).storage.value for t in self.positions], np.int64)

    def run(self, starts: Integers) -> None:
        """Execute once."""
        used = starts[list(self.positions)]
        for nest in self.nests:
            tasks = used.shape[1] * nest.outer_points
            at = used + nest.offsets[:, None]

            def part(first: int, last: int, at: Integers = at, loops: Integers = nest.loops) -> None:
                run_pointwise(self.operation, self.codes, at, loops, first, last)

            self.setting.threads.run(tasks, used.shape[1] * nest.points, part)


class CopyExecutable(Executable):
    """Move patterns, through a table of 65,536 results for a one-input operation on 16-bit formats."""

    def __init__(self, setting: Setting, table: npt.NDArray[np.uint16] = NO_TABLE) -> None:
        self.setting = setting
        self.table = table
        self.positions = (setting.inputs[0], setting.output)
        self.nests = setting.nests(self.positions)
        self.word_bytes = setting.codec(setting.output).word_bytes

    def run(self, starts: Integers) -> None:
        """Execute once."""
        used = starts[list(self.positions)]
        for nest in self.nests:
            at = used + nest.offsets[:, None]

            def part(first: int, last: int, at: Integers = at, loops: Integers = nest.loops) -> None:
                run_copy(self.word_bytes, self.table, at, loops, first, last)

            self.setting.threads.run(used.shape[1] * nest.outer_points, used.shape[1] * nest.points, part)


class UnaryExecutable(Executable):
    """A one-input operation on formats too wide for a table: float64, a few million elements at a time."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.constants = constants_of(setting)
        extents = dict(setting.extents)
        self.source = Mover(setting, setting.inputs[0], extents)
        self.target = Mover(setting, setting.output, extents)
        self.elements = int(np.prod(list(extents.values()), dtype=np.int64))

    def run(self, starts: Integers) -> None:
        """Execute once."""
        setting = self.setting
        function = FUNCTIONS[setting.superdsc.op_func_name].unary
        assert function is not None
        group = max(1, _DENSE_ELEMENTS // self.elements)
        for first in range(0, setting.cores, group):
            cores = slice(first, first + group)
            values = setting.codec(setting.inputs[0]).decode(self.source.load(starts[setting.inputs[0], cores]))
            with np.errstate(all="ignore"):
                result = function(values, self.constants)
            self.target.store(starts[setting.output, cores], setting.codec(setting.output).encode(result))


def plan_unary(setting: Setting) -> Executable:
    """Return the plan of a one-input operation."""
    source, target = setting.codec(setting.inputs[0]), setting.codec(setting.output)
    if source.word_bytes != 2 or target.word_bytes != 2:
        return UnaryExecutable(setting)
    constants = tuple(sorted(constants_of(setting).items()))
    return CopyExecutable(setting, unary_table(setting.superdsc.op_func_name, constants, source, target))


@lru_cache(maxsize=256)
def unary_table(
    operation: str, constants: tuple[tuple[str, float], ...], source: Codec, target: Codec
) -> npt.NDArray[np.uint16]:
    """Return the result pattern of each of the 65,536 input patterns, computed in float64 and rounded once."""
    function = FUNCTIONS[operation].unary
    assert function is not None
    values = source.decode(np.arange(1 << 16, dtype=np.uint16))
    with np.errstate(all="ignore"):
        result = function(values, dict(constants))
    return target.encode(result).astype(np.uint16)


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
    return PointwiseExecutable(setting, "convert")


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

    def _count(self, starts: Integers, offsets: Integers) -> DataReads:
        if not self.is_hbm:
            return NO_DATA_READS
        places = (starts - starts.min())[:, None] // self.setting.numerics.expansion + offsets
        per_core = [length(merge(shifted(self.row_sticks, np.unique(of_core)))) for of_core in places]
        return DataReads(length(merge(shifted(self.row_sticks, np.unique(places)))), sum(per_core))

    def run(self, starts: Integers) -> None:
        """Execute once; errors SPY0706 for a row number outside the table."""
        setting = self.setting
        geometry = setting.geometries[self.value]
        rows = setting.codec(self.index).decode(self.reader.load(starts[self.index])).astype(np.int64)
        if self.row_dim is None:
            limit = 1
        else:
            limit = geometry.extents[self.row_dim] * (geometry.stick_size if self.row_dim == geometry.stick_dim else 1)
        wrong = np.argwhere((rows < 0) | (rows >= limit))
        if len(wrong):
            core, place = (int(number) for number in wrong[0])
            raise refuse(
                "SPY0706",
                f"index {place} of core {setting.superdsc.core_ids[core]} is row {rows[core, place]} of {limit}",
                Location(setting.file),
                hint="the row count is that of the value argument's device_size",
            )
        offsets = geometry.offsets(self.row_dim or "", rows)
        self._data_reads = self._count(starts[self.value], offsets)
        steps = offsets * setting.numerics.expansion
        sources = (starts[self.value][:, None] + steps).reshape(-1)
        targets = (starts[setting.output][:, None] + self.targets[None, :]).reshape(-1)
        word_bytes = setting.codec(setting.output).word_bytes
        for nest in self.nests:
            at = np.stack([sources + nest.offsets[0], targets + nest.offsets[1]])
            run_copy(word_bytes, NO_TABLE, at, nest.loops, 0, len(sources) * nest.outer_points)
