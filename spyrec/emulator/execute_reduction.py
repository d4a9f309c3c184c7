"""Plans of the operations that fold dims: sum, max, min, mean, the layer norm statistics and scale."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from spyrec.emulator.bind_reduction import Fold
from spyrec.emulator.bound_calls import Array, BoundCalls, KernelStep
from spyrec.emulator.engine import Doubles, Executable, Integers, Mover, Setting
from spyrec.emulator.execute_pointwise import constants_of
from spyrec.emulator.geometry import adjacent_runs, outer_sum
from spyrec.emulator.jit_dl16 import GROUP
from spyrec.emulator.kernel_codec import DECODERS
from spyrec.emulator.kernel_doubles import can_store
from spyrec.emulator.kernel_folds import MAXIMUM, MINIMUM, ROWS, SUM, SUM_OF_SQUARES
from spyrec.emulator.kernel_reduce import functions_of, reduce_lanes, reduce_rows
from spyrec.emulator.kernel_reduce_dl16 import functions_of_dl16, reduce_lanes_dl16, reduce_rows_dl16
from spyrec.emulator.kernel_scale_step import scale_step
from spyrec.emulator.numerics import Storage, constant_value
from spyrec.emulator.pieces import Piece, distinct_pieces, pieces_of
from spyrec.emulator.rules import mask_constant

_KINDS = {"sum": SUM, "mean": SUM, "max": MAXIMUM, "min": MINIMUM}

_TEMPORARY_BYTES = 32 << 20
"""Most bytes of temporaries of one operation at one time, a stick of results per core at least."""

_RESULT_BYTES = 48  # of one result of one fold: its offset, partial results, their combination, the rounded pattern


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

    def fold(self, kinds: tuple[int, ...], factors: tuple[float, ...]) -> Fold:
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


def _kept_pieces(setting: Setting, kinds: tuple[int, ...]) -> list[Piece]:
    kept = [dim for dim in setting.extents if setting.extends(setting.output, dim)]
    return pieces_of(setting, kept, _TEMPORARY_BYTES // (_RESULT_BYTES * len(kinds) * setting.cores))


class _PiecewiseExecutable(Executable):
    """Folds piece after piece of the kept box: a result depends on no other one."""

    def __init__(self, setting: Setting, kinds: tuple[int, ...]) -> None:
        self.kinds = kinds
        self._pieces = _kept_pieces(setting, kinds)
        self._reductions = {id(piece.setting): Reduction(piece.setting) for piece in distinct_pieces(self._pieces)}
        self._setting = setting

    def _reduction(self, piece: Piece) -> Reduction:
        return self._reductions[id(piece.setting)]

    def run(self, starts: Integers) -> None:
        """Execute once."""
        for piece in self._pieces:
            reduction = self._reduction(piece)
            at = starts + piece.moved
            values = reduction.partial(self.kinds, at)
            first = [members[0] for members in reduction.cohorts]
            self.store(reduction, at[piece.setting.output, first], values)

    @property
    @abstractmethod
    def factors(self) -> tuple[float, ...]:
        """What each kind's result is multiplied by."""

    @property
    def is_bindable(self) -> bool:
        """Whether kernels can round the results."""
        return self._fold(self._pieces[0]).can_be_stored

    def bound(self, starts: Integers) -> BoundCalls:
        """Return the steps of piece after piece."""
        setting = self._setting
        rows = setting.inputs[0], setting.output
        steps: list[KernelStep] = []
        for piece in self._pieces:
            at = starts + piece.moved
            steps += self._fold(piece).steps(rows, at[rows[0]], at[rows[1]])
        return BoundCalls(steps)

    def _fold(self, piece: Piece) -> Fold:
        return self._reduction(piece).fold(self.kinds, self.factors)

    @property
    def has_core_parts(self) -> bool:
        """Whether kernels can round the results, and no cores combine theirs."""
        return self.is_bindable and self._reduction(self._pieces[0]).has_core_parts

    def core_steps(self, setting: Setting, starts: Integers) -> Sequence[KernelStep]:
        """Return the steps of piece after piece."""
        rows = setting.inputs[0], setting.output
        steps: list[KernelStep] = []
        for piece in _kept_pieces(setting, self.kinds):
            at = starts + piece.moved
            fold = Reduction(piece.setting).fold(self.kinds, self.factors)
            steps += fold.repeated(starts.shape[1] // setting.cores).steps(rows, at[rows[0]], at[rows[1]])
        return steps

    @abstractmethod
    def store(self, reduction: Reduction, starts: Integers, values: list[Doubles]) -> None:
        """Store what the folds gave, [start, kept element] of each kind."""


class ReductionExecutable(_PiecewiseExecutable):
    """sum, max, min, mean, with or without ``nonstick``."""

    def __init__(self, setting: Setting) -> None:
        name = setting.superdsc.op_func_name.removesuffix("nonstick")
        self._factor = constants_of(setting)["scaling_factor"] if name == "mean" else 1.0
        super().__init__(setting, (_KINDS[name],))

    @property
    def factors(self) -> tuple[float, ...]:
        """A mean's factor, 1 for others."""
        return (self._factor,)

    def store(self, reduction: Reduction, starts: Integers, values: list[Doubles]) -> None:
        """Store the fold, a mean scaled."""
        (total,) = values
        reduction.store_at(starts, total * self.factors[0])


class NormStatisticsExecutable(_PiecewiseExecutable):
    """exx2: lane 0 takes the scaled sum (0 under ``useZeroMean``), lane 1 the scaled sum of squares."""

    def __init__(self, setting: Setting) -> None:
        constants = constants_of(setting)
        self.scale = constants["exx2scale"]
        self.has_zero_mean = constants["useZeroMean"] != 0
        super().__init__(setting, (SUM, SUM_OF_SQUARES))

    @property
    def factors(self) -> tuple[float, ...]:
        """The scale of both, or 0 for the sum."""
        return 0.0 if self.has_zero_mean else self.scale, self.scale

    def store(self, reduction: Reduction, starts: Integers, values: list[Doubles]) -> None:
        """Store both lanes."""
        total, squares = values
        reduction.store_at(starts, total * self.factors[0])
        reduction.store_at(starts, squares * self.factors[1], lane=1)


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

    @property
    def is_bindable(self) -> bool:
        """Whether a kernel can round the results."""
        return can_store(self.setting.codec(self.setting.output))

    def bound(self, starts: Integers) -> BoundCalls:
        """Return one step."""
        setting, source, target = self.setting, self.setting.inputs[0], self.setting.output
        sources, targets = (np.ascontiguousarray(starts[position]) for position in (source, target))
        rows = outer_sum([setting.offsets(source, dim) for dim in self.rows])
        box = outer_sum([setting.offsets(target, dim) for dim in self.box])
        decode = DECODERS[setting.codec(source).storage.value].address
        fields: list[int | Array] = [source, target, sources, targets, len(rows), rows, self.repeat, box, decode]
        fields += [setting.step_bytes(source), np.array([self.eps]), setting.codec(target).word_bytes]
        return BoundCalls([KernelStep.of(scale_step, fields, setting.cores, setting.cores * len(box))])

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
