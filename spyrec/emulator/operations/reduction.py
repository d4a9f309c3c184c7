"""Plans of the operations that fold dims: sum, max, min, mean, the layer norm statistics."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from spyrec.device_ops import device_operation
from spyrec.device_ops.folds import NOTHING
from spyrec.device_ops.record import Accumulator
from spyrec.device_ops.record import Fold as FoldRecord
from spyrec.emulator.engine import Doers, Doubles, Executable, Integers, Setting, StepRequest
from spyrec.emulator.operations.bound_calls import BoundCalls, KernelStep
from spyrec.emulator.operations.pieces import Piece, distinct_pieces, pieces_of
from spyrec.emulator.operations.pointwise import constants_of
from spyrec.emulator.operations.reduction_steps import Fold
from spyrec.emulator.operations.reduction_tables import Reduction

_TEMPORARY_BYTES = 32 << 20
"""Most bytes of temporaries of one operation at one time, a stick of results per core at least."""

_RESULT_BYTES = 48  # of one result of one fold: its offset, partial results, their combination, the rounded pattern


def _kept_pieces(setting: Setting, kinds: tuple[Accumulator, ...]) -> list[Piece]:
    kept = [dim for dim in setting.extents if setting.extends(setting.output, dim)]
    return pieces_of(setting, kept, _TEMPORARY_BYTES // (_RESULT_BYTES * len(kinds) * setting.cores))


class _PiecewiseExecutable(Executable):
    """Folds piece after piece of the kept box: a result depends on no other one."""

    def __init__(self, setting: Setting, kinds: tuple[Accumulator, ...]) -> None:
        self.kinds = kinds
        self._pieces = _kept_pieces(setting, kinds)
        self._reductions = {id(piece.setting): Reduction(piece.setting) for piece in distinct_pieces(self._pieces)}
        self.setting = setting

    def _reduction(self, piece: Piece) -> Reduction:
        return self._reductions[id(piece.setting)]

    def run(self, starts: Integers) -> None:
        """Execute once."""
        for piece in self._pieces:
            reduction = self._reduction(piece)
            at = starts + piece.moved
            first = [members[0] for members in reduction.cohorts]
            # infinities of both signs have no sum: that is the device's answer, and nothing to warn of
            with np.errstate(all="ignore"):
                values = reduction.partial(self.kinds, at)
                self.store(reduction, at[piece.setting.output, first], values)

    @property
    @abstractmethod
    def factors(self) -> tuple[float, ...]:
        """What each kind's result is multiplied by."""

    @property
    def is_bindable(self) -> bool:
        """Whether kernels can round the results."""
        return self._fold(self._pieces[0]).can_be_stored

    def steps(self, request: StepRequest) -> BoundCalls:
        """Return the steps of piece after piece."""
        rows = self.setting.inputs[0], self.setting.output
        is_own = request.setting is self.setting
        steps: list[KernelStep] = []
        for piece in self._pieces if is_own else _kept_pieces(request.setting, self.kinds):
            at = np.ascontiguousarray(request.starts + piece.moved)
            reduction = self._reduction(piece) if is_own else Reduction(piece.setting)
            fold = reduction.fold(self.kinds, self.factors)
            if request.doers is not Doers.THREADS:
                fold = fold.of_boxes(request.cores)
            steps += fold.steps(rows, at[rows[0]], at[rows[1]])
        return BoundCalls(steps)

    def _fold(self, piece: Piece) -> Fold:
        return self._reduction(piece).fold(self.kinds, self.factors)

    @property
    def is_separable(self) -> bool:
        """Whether kernels can round the results, and no cores combine theirs."""
        return self.is_bindable and self._reduction(self._pieces[0]).has_core_parts

    @abstractmethod
    def store(self, reduction: Reduction, starts: Integers, values: list[Doubles]) -> None:
        """Store what the folds gave, [start, kept element] of each kind."""


def fold_of(setting: Setting) -> FoldRecord:
    """Return how the operation folds."""
    fold = device_operation(setting.superdsc.op_func_name).fold
    assert fold is not None, setting.superdsc.op_func_name
    return fold


class ReductionExecutable(_PiecewiseExecutable):
    """The reductions: one accumulator, its result multiplied by a constant where the record says so."""

    def __init__(self, setting: Setting) -> None:
        fold = fold_of(setting)
        self._factor = 1.0 if fold.scale is None else constants_of(setting)[fold.scale]
        super().__init__(setting, fold.accumulators)

    @property
    def factors(self) -> tuple[float, ...]:
        """A mean's factor, 1 for others."""
        return (self._factor,)

    def store(self, reduction: Reduction, starts: Integers, values: list[Doubles]) -> None:
        """Store the fold, a mean scaled."""
        (total,) = values
        with np.errstate(invalid="ignore", over="ignore"):
            total = total * self.factors[0]
        reduction.store_at(starts, total)


class NormStatisticsExecutable(_PiecewiseExecutable):
    """exx2: lane 0 takes the scaled sum (0 under ``useZeroMean``), lane 1 the scaled sum of squares."""

    def __init__(self, setting: Setting) -> None:
        constants = constants_of(setting)
        self.scale = constants["exx2scale"]
        total, squares = fold_of(setting).accumulators
        super().__init__(setting, (NOTHING if constants["useZeroMean"] != 0 else total, squares))

    @property
    def factors(self) -> tuple[float, ...]:
        """The scale of both."""
        return self.scale, self.scale

    def store(self, reduction: Reduction, starts: Integers, values: list[Doubles]) -> None:
        """Store both lanes."""
        total, squares = values
        with np.errstate(invalid="ignore", over="ignore"):
            total, squares = total * self.factors[0], squares * self.factors[1]
        reduction.store_at(starts, total)
        reduction.store_at(starts, squares, lane=1)
