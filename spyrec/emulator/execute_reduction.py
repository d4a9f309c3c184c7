"""Plans of the operations that fold dims: sum, max, min, mean, the layer norm statistics and scale, topk."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Location, refuse
from spyrec.emulator.engine import Doubles, Executable, Integers, Mover, Setting
from spyrec.emulator.execute_pointwise import constants_of
from spyrec.emulator.geometry import adjacent_runs, outer_sum
from spyrec.emulator.kernel_reduce import MAXIMUM, MINIMUM, SUM, SUM_OF_SQUARES, reduce_lanes, reduce_rows
from spyrec.emulator.numerics import constant_value
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

    def partial(self, kind: int, starts: Integers) -> Doubles:
        """Return the combined results [cohort, kept element] of one kind of fold."""
        setting = self.setting
        code, step = setting.codec(self.input).storage.value, setting.step_bytes(self.input)
        out = np.empty((setting.cores, self.results), np.float64)
        kernel = reduce_lanes if self.folds_lanes else reduce_rows
        per_core = -(-self.results // 16) if self.folds_lanes else len(self.kept_table)

        def part(first: int, last: int) -> None:
            kernel(
                kind, code, step, starts[self.input], self.kept_table, self.folded_table,
                self.masked, self.mask_value, out, first, last,
            )  # fmt: skip

        setting.threads.run(setting.cores * per_core, setting.cores * self.elements, part)
        return self._combined(kind, out)

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
        """Round the results once and store them, at ``lane`` of the stick where the output has one value per stick."""
        setting = self.setting
        first = [members[0] for members in self.cohorts]
        at = starts[setting.output, first] + lane * setting.step_bytes(setting.output)
        Mover(setting, setting.output, self.kept).store(at, setting.codec(setting.output).encode(values))


class ReductionExecutable(Executable):
    """sum, max, min, mean, with or without ``nonstick``."""

    def __init__(self, setting: Setting) -> None:
        name = setting.superdsc.op_func_name.removesuffix("nonstick")
        self.kind = _KINDS[name]
        self.factor = constants_of(setting)["scaling_factor"] if name == "mean" else None
        self.reduction = Reduction(setting)

    def run(self, starts: Integers) -> None:
        """Execute once."""
        values = self.reduction.partial(self.kind, starts)
        self.reduction.store(starts, values if self.factor is None else values * self.factor)


class NormStatisticsExecutable(Executable):
    """exx2: lane 0 takes the scaled sum (0 under ``useZeroMean``), lane 1 the scaled sum of squares."""

    def __init__(self, setting: Setting) -> None:
        constants = constants_of(setting)
        self.scale = constants["exx2scale"]
        self.has_zero_mean = constants["useZeroMean"] != 0
        self.reduction = Reduction(setting)

    def run(self, starts: Integers) -> None:
        """Execute once."""
        mean = self.reduction.partial(SUM, starts) * (0.0 if self.has_zero_mean else self.scale)
        squares = self.reduction.partial(SUM_OF_SQUARES, starts) * self.scale
        self.reduction.store(starts, mean)
        self.reduction.store(starts, squares, lane=1)


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
