"""Plans of the operations that fold dims: sum, max, min, mean, the layer norm statistics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.device_ops import device_operation
from spyrec.device_ops.folds import NOTHING
from spyrec.device_ops.record import Accumulator
from spyrec.device_ops.record import Fold as FoldRecord
from spyrec.emulator.engine import Doers, KernelExecutable, Setting, StepRequest
from spyrec.emulator.operations.bound_calls import BoundCalls, KernelStep
from spyrec.emulator.operations.pieces import BoxPiece, pieces_of
from spyrec.emulator.operations.pointwise import constants_of
from spyrec.emulator.operations.reduction_steps import Doubles, LaneFold
from spyrec.emulator.operations.reduction_tables import cohorts_of, kept_dims

_TEMPORARY_BYTES = 32 << 20
"""Most bytes of tables and partial results of one operation's pieces, a stick of results per core at least."""

_RESULT_BYTES = 24  # of one result of one fold: its offsets in the input and in the output, its partial result


class FoldExecutable(KernelExecutable):
    """Folds piece after piece of the kept box: a result depends on no other one.

    ``kinds`` and ``factors``: one accumulator per lane of a result, and what it is multiplied by.
    """

    def __init__(self, setting: Setting, kinds: Sequence[Accumulator], factors: Sequence[float]) -> None:
        super().__init__(setting)
        self.kinds, self.factors = tuple(kinds), tuple(factors)

    @property
    def is_separable(self) -> bool:
        """Whether no cores combine their results."""
        return all(len(members) == 1 for members in cohorts_of(self.setting))

    def steps(self, request: StepRequest) -> BoundCalls:
        """Return the steps of piece after piece; those of equal extents share tables and room."""
        rows = self.setting.inputs[0], self.setting.output
        known: dict[int, tuple[LaneFold, Doubles]] = {}
        steps: list[KernelStep] = []
        for piece in self._pieces(request.setting):
            at = np.ascontiguousarray(request.starts + piece.moved)
            if id(piece.setting) not in known:
                fold = LaneFold.of(piece.setting, self.kinds, self.factors)
                fold = fold if request.doers is Doers.THREADS else fold.of_boxes(request.cores)
                known[id(piece.setting)] = fold, fold.room()
            fold, out = known[id(piece.setting)]
            steps += fold.steps(rows, at[rows[0]], at[rows[1]], out)
        return BoundCalls(steps)

    def _pieces(self, setting: Setting) -> list[BoxPiece]:
        most = _TEMPORARY_BYTES // (_RESULT_BYTES * len(self.kinds) * setting.cores)
        return pieces_of(setting, kept_dims(setting), most)


def _fold_of(setting: Setting) -> FoldRecord:
    fold = device_operation(setting.superdsc.op_func_name).fold
    assert fold is not None, setting.superdsc.op_func_name
    return fold


def plan_reduction(setting: Setting) -> FoldExecutable:
    """Return the plan of a reduction: one accumulator, its result multiplied by a constant where the record says so."""
    fold = _fold_of(setting)
    factor = 1.0 if fold.scale is None else constants_of(setting)[fold.scale]
    return FoldExecutable(setting, fold.accumulators, [factor])


def plan_statistics(setting: Setting) -> FoldExecutable:
    """Return the plan of exx2: lane 0 takes the scaled sum (0 under ``useZeroMean``), lane 1 that of squares."""
    constants = constants_of(setting)
    total, squares = _fold_of(setting).accumulators
    kinds = NOTHING if constants["useZeroMean"] != 0 else total, squares
    return FoldExecutable(setting, kinds, [constants["exx2scale"]] * len(kinds))
