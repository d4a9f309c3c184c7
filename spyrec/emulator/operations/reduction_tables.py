"""What a fold of one setting takes: offset tables, masks, the cores that combine, and how its kernels are called."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from spyrec.device_ops.expression import ArrayAlgebra
from spyrec.device_ops.record import Accumulator
from spyrec.emulator.engine import Doubles, Integers, Mover, Setting
from spyrec.emulator.geometry import outer_sum
from spyrec.emulator.kernels.dl16 import GROUP
from spyrec.emulator.kernels.folds import ROWS, fold_table
from spyrec.emulator.kernels.reductions import (
    functions_of,
    reduce_lanes,
    reduce_lanes_dl16,
    reduce_rows,
    reduce_rows_dl16,
)
from spyrec.emulator.numerics import Storage, constant_value
from spyrec.emulator.operations.reduction_steps import Fold
from spyrec.emulator.rules.superdsc import mask_constant

_DOUBLES = ArrayAlgebra(np.float64)


class Reduction:
    """Partial results per core, combined over the cores that share an output, in slice order."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.input = setting.inputs[0]
        self.kept = {dim: size for dim, size in setting.extents.items() if setting.extends(setting.output, dim)}
        self.folded = [dim for dim in setting.extents if dim not in self.kept]
        self.folds_lanes = setting.geometries[self.input].stick_dim in self.folded
        runs = setting.runs(self.input, self.folded if self.folds_lanes else [*self.kept])
        points = self._points([*self.kept] if self.folds_lanes else self.folded)
        self.kept_table, self.folded_table = (points, runs) if self.folds_lanes else (runs, points)
        self.results = math.prod(self.kept.values())
        folded_points = math.prod(setting.extents[dim] for dim in self.folded)
        self.elements = self.results * folded_points
        self.cohorts = self._cohorts()
        self.masked, self.mask_value = self._mask(folded_points)
        self._target = Mover(setting, setting.output, self.kept)

    def _points(self, dims: list[str]) -> Integers:
        return outer_sum([self.setting.offsets(self.input, dim) for dim in dims])

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
            own = masked[core].reshape([self.setting.extents[dim] for dim in self.folded])
            for axis, dim in enumerate(self.folded):
                low = slices[dim] * superdsc.core_extent[dim]
                for first, count in superdsc.coordinate_masking.get(dim, ()):
                    hidden = slice(max(0, first - low), max(0, first + count - low))
                    own[(slice(None),) * axis + (hidden,)] = 1
        return masked, constant_value(entry.data_format, entry.bits)

    @property
    def has_core_parts(self) -> bool:
        """Whether no cores combine their results."""
        return all(len(members) == 1 for members in self.cohorts)

    def partial(self, kinds: tuple[Accumulator, ...], starts: Integers) -> list[Doubles]:
        """Return the combined results [cohort, kept element] of each kind of fold."""
        setting = self.setting
        out = np.empty((len(kinds), setting.cores, self.results), np.float64)
        part = self._part(kinds, starts, self.masked, out)
        setting.threads.run(setting.cores * self._tasks_per_core, setting.cores * self.elements, part)
        return [self._combined(kind, results) for kind, results in zip(kinds, out, strict=True)]

    @property
    def _tasks_per_core(self) -> int:
        return -(-self.results // ROWS) if self.folds_lanes else len(self.kept_table)

    def _part(
        self, kinds: tuple[Accumulator, ...], starts: Integers, masked: npt.NDArray[np.uint8], out: Doubles
    ) -> Callable[[int, int], None]:
        """Return what runs tasks ``first <= t < past``; ``out``: the results [kind, core, kept element]."""
        places, tables = np.ascontiguousarray(starts[self.input]), (self.kept_table, self.folded_table)
        if self._is_direct:
            direct = reduce_lanes_dl16 if self.folds_lanes else reduce_rows_dl16
            return partial(direct, fold_table(kinds, is_dl16=True), places, *tables, out)
        kernel = reduce_lanes if self.folds_lanes else reduce_rows
        functions = functions_of(self.setting.codec(self.input).storage.value)
        mask = np.array([self.mask_value], np.float32)
        step = self.setting.step_bytes(self.input)
        return partial(
            kernel,
            functions,
            fold_table(kinds, is_dl16=False),
            step,
            places,
            *tables,
            np.ascontiguousarray(masked),
            mask,
            out,
        )

    @property
    def _is_direct(self) -> bool:
        """Whether the input is whole groups of DLFloat16 without a mask."""
        runs = self.folded_table if self.folds_lanes else self.kept_table
        is_dl16 = self.setting.codec(self.input).storage is Storage.DL16
        return is_dl16 and self.masked.shape[1] == 0 and not (runs[:, 1] % GROUP).any()

    def _combined(self, kind: Accumulator, out: Doubles) -> Doubles:
        total: Doubles = out[[members[0] for members in self.cohorts]]
        for place in range(1, len(self.cohorts[0])):
            following = out[[members[place] for members in self.cohorts]]
            total = np.asarray(kind.merge.evaluate(_DOUBLES, (total, following)), np.float64)
        return total

    def fold(self, kinds: tuple[Accumulator, ...], factors: tuple[float, ...]) -> Fold:
        """Return the same as data for kernels: folds of these kinds, their results scaled, then lane after lane."""
        setting, codec = self.setting, self.setting.codec
        step = setting.step_bytes(setting.output)
        places = outer_sum([setting.offsets(setting.output, dim) for dim in self.kept])
        return Fold(
            kinds, factors, codec(self.input), setting.step_bytes(self.input), self.folds_lanes, self._is_direct,
            self.kept_table, self.folded_table, self.masked, self.mask_value, self.cohorts, codec(setting.output),
            step, places, self._tasks_per_core, self.elements,
        )  # fmt: skip

    def store_at(self, starts: Integers, values: Doubles, lane: int = 0) -> None:
        """Round results [start, kept element] once and store them at ``lane`` from the starts on."""
        at = starts + lane * self.setting.step_bytes(self.setting.output)
        self._target.store(at, self.setting.codec(self.setting.output).encode(values))
