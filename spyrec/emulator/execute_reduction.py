"""Plans of the operations that fold dims: sum, max, min, mean, the layer norm statistics and scale, topk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Location, refuse
from spyrec.emulator.engine import CoreParts, Doubles, Executable, Integers, Mover, Setting
from spyrec.emulator.execute_pointwise import constants_of
from spyrec.emulator.folds import MAXIMUM, MINIMUM, ROWS, SUM, SUM_OF_SQUARES
from spyrec.emulator.geometry import adjacent_runs, outer_sum
from spyrec.emulator.jit_dl16 import GROUP
from spyrec.emulator.kernel_reduce import functions_of, reduce_lanes, reduce_rows
from spyrec.emulator.kernel_reduce_dl16 import functions_of_dl16, reduce_lanes_dl16, reduce_rows_dl16
from spyrec.emulator.numerics import Storage, constant_value
from spyrec.emulator.rules import mask_constant

_KINDS = {"sum": SUM, "mean": SUM, "max": MAXIMUM, "min": MINIMUM}


class Reduction:
    """Partial results per core, combined over the cores that share an output, in slice order."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.input = setting.inputs[0]
        self.kept = {dim: size for dim, size in setting.extents.items() if setting.extends(setting.output, dim)}
        self.folded = [dim for dim in setting.extents if dim not in self.kept]
        kept = outer_sum([setting.offsets(self.input, dim) for dim in self.kept])
        folded = outer_sum([setting.offsets(self.input, dim) for dim in self.folded])
        step = setting.step_bytes(self.input)
        self.folds_lanes = setting.geometries[self.input].stick_dim in self.folded
        self.kept_table = kept if self.folds_lanes else adjacent_runs(kept, step)
        self.folded_table = adjacent_runs(folded, step) if self.folds_lanes else folded
        self.results = len(kept)
        self.elements = len(kept) * len(folded)
        self.cohorts = self._cohorts()
        self.masked, self.mask_value = self._mask(len(folded))
        self._target = Mover(setting, setting.output, self.kept)

    def _cohorts(self) -> list[list[int]]:
        """Return the core positions that share an output, each list in ascending slice order of the folded dims."""
        groups: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = defaultdict(list)
        for core, slices in enumerate(self.setting.superdsc.core_work_slices):
            key = tuple(slices[dim] for dim in self.kept)
            groups[key].append((tuple(slices[dim] for dim in self.folded), core))
        return [[core for _, core in sorted(members)] for members in groups.values()]

    def _mask(self, folded_points: int) -> tuple[npt.NDArray[np.uint8], float]:
        superdsc = self.setting.superdsc
        position = mask_constant(superdsc) if superdsc.coordinate_masking else None
        if position is None:
            return np.zeros((self.setting.cores, 0), np.uint8), 0.0
        entry = superdsc.constants[position]
        masked = np.zeros((self.setting.cores, folded_points), np.uint8)
        for core, slices in enumerate(superdsc.core_work_slices):
            total = np.zeros(1, bool)
            for dim in self.folded:
                extent = self.setting.extents[dim]
                place = slices[dim] * superdsc.core_extent[dim] + np.arange(extent)
                hidden = np.zeros(extent, bool)
                for first, count in superdsc.coordinate_masking.get(dim, ()):
                    hidden |= (place >= first) & (place < first + count)
                total = (total[:, None] | hidden[None, :]).reshape(-1)
            masked[core] = total
        return masked, constant_value(entry.data_format, entry.bits)

    @property
    def has_core_parts(self) -> bool:
        """Whether no cores combine their results."""
        return all(len(members) == 1 for members in self.cohorts)

    def partial(self, kinds: tuple[int, ...], starts: Integers) -> list[Doubles]:
        """Return the combined results [cohort, kept element] of each kind of fold."""
        setting = self.setting
        out = np.empty((len(kinds), setting.cores, self.results), np.float64)
        part = self._part(kinds, starts, self.masked, out)
        setting.threads.run(setting.cores * self._tasks_per_core, setting.cores * self.elements, part)
        return [self._combined(kind, results) for kind, results in zip(kinds, out, strict=True)]

    def partial_of(self, cores: slice, kinds: tuple[int, ...], starts: Integers) -> Doubles:
        """Return the results [kind, core, kept element] of some cores, computed on the calling thread."""
        count = cores.stop - cores.start
        out = np.empty((len(kinds), count, self.results), np.float64)
        self._part(kinds, starts[:, cores], self.masked[cores], out)(0, count * self._tasks_per_core)
        return out

    @property
    def _tasks_per_core(self) -> int:
        return -(-self.results // ROWS) if self.folds_lanes else len(self.kept_table)

    def _part(
        self, kinds: tuple[int, ...], starts: Integers, masked: npt.NDArray[np.uint8], out: Doubles
    ) -> Callable[[int, int], None]:
        """Return what runs tasks ``first <= t < past``; ``out``: the results [kind, core, kept element]."""
        places, tables = np.ascontiguousarray(starts[self.input]), (self.kept_table, self.folded_table)
        if self._is_direct:
            direct = reduce_lanes_dl16 if self.folds_lanes else reduce_rows_dl16
            return partial(direct, functions_of_dl16(kinds), places, *tables, out)
        kernel = reduce_lanes if self.folds_lanes else reduce_rows
        functions = functions_of(kinds, self.setting.codec(self.input).storage.value)
        mask = np.array([self.mask_value], np.float32)
        step = self.setting.step_bytes(self.input)
        return partial(kernel, functions, step, places, *tables, np.ascontiguousarray(masked), mask, out)

    @property
    def _is_direct(self) -> bool:
        """Whether the input is whole groups of DLFloat16 without a mask."""
        runs = self.folded_table if self.folds_lanes else self.kept_table
        is_dl16 = self.setting.codec(self.input).storage is Storage.DL16
        return is_dl16 and self.masked.shape[1] == 0 and not (runs[:, 1] % GROUP).any()

    def _combined(self, kind: int, out: Doubles) -> Doubles:
        total = out[[members[0] for members in self.cohorts]]
        for place in range(1, len(self.cohorts[0])):
            following = out[[members[place] for members in self.cohorts]]
            if kind == MAXIMUM:
                total = np.maximum(total, following)
            elif kind == MINIMUM:
                total = np.minimum(total, following)
            else:
                total = total + following
        return total

    def store(self, starts: Integers, values: Doubles, lane: int = 0) -> None:
        """Round the combined results once and store them, at ``lane`` where the output has one value per stick."""
        first = [members[0] for members in self.cohorts]
        self.store_at(starts[self.setting.output, first], values, lane)

    def store_at(self, starts: Integers, values: Doubles, lane: int = 0) -> None:
        """Round results [start, kept element] once and store them at ``lane`` from the starts on."""
        at = starts + lane * self.setting.step_bytes(self.setting.output)
        self._target.store(at, self.setting.codec(self.setting.output).encode(values))


class ReductionExecutable(Executable):
    """sum, max, min, mean, with or without ``nonstick``."""

    def __init__(self, setting: Setting) -> None:
        name = setting.superdsc.op_func_name.removesuffix("nonstick")
        self.kind = _KINDS[name]
        self.factor = constants_of(setting)["scaling_factor"] if name == "mean" else None
        self.reduction = Reduction(setting)

    def run(self, starts: Integers) -> None:
        """Execute once."""
        (values,) = self.reduction.partial((self.kind,), starts)
        self.reduction.store(starts, self._scaled(values))

    @property
    def has_core_parts(self) -> bool:
        """Whether no cores combine their results."""
        return self.reduction.has_core_parts

    def core_parts(self, starts: Integers) -> CoreParts:
        """Return what runs the parts of some cores."""

        def run(first: int, past: int) -> None:
            cores = slice(first, past)
            (values,) = self.reduction.partial_of(cores, (self.kind,), starts)
            self.reduction.store_at(starts[self.reduction.setting.output, cores], self._scaled(values))

        return run

    def _scaled(self, values: Doubles) -> Doubles:
        return values if self.factor is None else values * self.factor


class NormStatisticsExecutable(Executable):
    """exx2: lane 0 takes the scaled sum (0 under ``useZeroMean``), lane 1 the scaled sum of squares."""

    def __init__(self, setting: Setting) -> None:
        constants = constants_of(setting)
        self.scale = constants["exx2scale"]
        self.has_zero_mean = constants["useZeroMean"] != 0
        self.reduction = Reduction(setting)

    def run(self, starts: Integers) -> None:
        """Execute once."""
        total, squares = self.reduction.partial((SUM, SUM_OF_SQUARES), starts)
        first = [members[0] for members in self.reduction.cohorts]
        self._store(starts[self.reduction.setting.output, first], total, squares)

    @property
    def has_core_parts(self) -> bool:
        """Whether no cores combine their results."""
        return self.reduction.has_core_parts

    def core_parts(self, starts: Integers) -> CoreParts:
        """Return what runs the parts of some cores."""

        def run(first: int, past: int) -> None:
            cores = slice(first, past)
            total, squares = self.reduction.partial_of(cores, (SUM, SUM_OF_SQUARES), starts)
            self._store(starts[self.reduction.setting.output, cores], total, squares)

        return run

    def _store(self, starts: Integers, total: Doubles, squares: Doubles) -> None:
        self.reduction.store_at(starts, total * (0.0 if self.has_zero_mean else self.scale))
        self.reduction.store_at(starts, squares * self.scale, lane=1)


class NormScaleExecutable(Executable):
    """layernormscale: ``1 / sqrt(lane 1 - lane 0 squared + eps)`` of each input stick, stored in every output lane."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.eps = constants_of(setting)["eps"]
        self.rows = {dim: size for dim, size in setting.extents.items() if setting.extends(setting.inputs[0], dim)}
        # Rows first: the result is computed per row and repeated over the rest of the box.
        rest = {dim: size for dim, size in setting.extents.items() if dim not in self.rows}
        self.box = {**self.rows, **rest}
        self.repeat = int(np.prod(list(rest.values()), dtype=np.int64))

    def run(self, starts: Integers) -> None:
        """Execute once."""
        setting = self.setting
        source = setting.inputs[0]
        reader = Mover(setting, source, self.rows)
        codec = setting.codec(source)
        first = codec.decode(reader.load(starts[source]))
        second = codec.decode(reader.load(starts[source] + setting.step_bytes(source)))
        with np.errstate(all="ignore"):
            scale = 1.0 / np.sqrt(second - first * first + self.eps)
        patterns = np.repeat(setting.codec(setting.output).encode(scale), self.repeat, axis=1)
        Mover(setting, setting.output, self.box).store(starts[setting.output], patterns)


class TopExecutable(Executable):
    """topkvalue, topkindex: descending along the folded dim, ties lowest index first."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        extents = setting.extents
        of_input = [dim for dim in extents if setting.extends(setting.inputs[0], dim)]
        of_output = [dim for dim in extents if setting.extends(setting.output, dim)]
        only_input = [dim for dim in of_input if dim not in of_output]
        only_output = [dim for dim in of_output if dim not in of_input]
        slices = setting.superdsc.work_slices
        if len(only_input) != 1 or len(only_output) != 1 or slices[only_input[0]] * slices[only_output[0]] != 1:
            message = f"folds {only_input} into {only_output}; one undivided dim into one is executed"
            raise refuse("SPY0724", f'"{setting.superdsc.op_func_name}" {message}', Location(setting.file))
        shared = {d: n for d, n in extents.items() if d not in {only_input[0], only_output[0]}}
        self.length, self.taken = extents[only_input[0]], extents[only_output[0]]
        self.source = Mover(setting, setting.inputs[0], {**shared, only_input[0]: self.length})
        self.target = Mover(setting, setting.output, {**shared, only_output[0]: self.taken})

    def run(self, starts: Integers) -> None:
        """Execute once."""
        setting = self.setting
        values = setting.codec(setting.inputs[0]).decode(self.source.load(starts[setting.inputs[0]]))
        rows = values.reshape(setting.cores, -1, self.length)
        order = np.argsort(-rows, axis=-1, kind="stable")[..., : self.taken]
        if setting.superdsc.op_func_name == "topkindex":
            result = order.astype(np.float64)
        else:
            result = np.take_along_axis(rows, order, axis=-1)
        patterns = setting.codec(setting.output).encode(result.reshape(setting.cores, -1))
        self.target.store(starts[setting.output], patterns)
