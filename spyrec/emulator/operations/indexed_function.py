"""Functions of rows that an index names, or stored in such rows: in NumPy, between kernels that move elements."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from spyrec.device_ops import device_operation
from spyrec.device_ops.expression import ArrayAlgebra
from spyrec.emulator.engine import DataTraffic, Integers, Mover, Patterns, Setting
from spyrec.emulator.numerics import constant_value
from spyrec.emulator.operations.gather import Gather
from spyrec.emulator.operations.hidden import mask_value
from spyrec.emulator.operations.pieces import BoxPiece, pieces_of

Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_TEMPORARY_BYTES = 32 << 20
"""Most bytes of temporaries at one time, one row of a piece at least."""

_ELEMENT_BYTES = 64  # of one result: patterns and values of up to five inputs


class IndexedFunction(Gather):
    """A function, a formula or a conversion, whose operands' rows are named; implements ``host.HostWork``."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._record = device_operation(setting.superdsc.op_func_name)
        self._constants = {
            entry.name: constant_value(entry.data_format, entry.bits) for entry in setting.superdsc.constants
        }
        self._hidden = self._masked() if setting.superdsc.coordinate_masking else None
        most = max(1, _TEMPORARY_BYTES // _ELEMENT_BYTES)
        # the flags of a mask are those of whole boxes
        self._pieces = pieces_of(
            setting, list(self.rest), most if self._hidden is None else math.prod(self.rest.values())
        )

    def _masked(self) -> Flags:
        """Return which elements ``[start, rest]`` a mask hides."""
        setting, superdsc = self.setting, self.setting.superdsc
        extents = {dim: setting.extents[dim] for dim in (*self.indexed, *self.rest)}
        hidden = np.zeros((setting.cores, *extents.values()), np.bool_)
        for core, slices in enumerate(superdsc.core_work_slices):
            for axis, dim in enumerate(extents):
                low = slices[dim] * superdsc.core_extent[dim]
                for first, count in superdsc.coordinate_masking.get(dim, ()):
                    hidden[core][(slice(None),) * axis + (slice(max(0, first - low), max(0, first + count - low)),)] = (
                        True
                    )
        starts = setting.cores * math.prod(setting.extents[dim] for dim in self.indexed)
        return hidden.reshape(starts, -1)

    def run(self, starts: Integers) -> DataTraffic:
        """Execute once and return the sticks of the rows; raises what :meth:`look_up` raises."""
        found = self.look_up(starts)
        for piece in self._pieces:
            self._run_piece(piece, {position: own.reshape(-1) for position, own in found.places.items()})
        return found.traffic

    def _run_piece(self, piece: BoxPiece, places: dict[int, Integers]) -> None:
        rest = {dim: piece.setting.extents[dim] for dim in self.rest}
        movers = {position: Mover(piece.setting, position, rest) for position in self.positions}
        step = max(1, _TEMPORARY_BYTES // (_ELEMENT_BYTES * math.prod(rest.values())))
        output = self.setting.output
        for first in range(0, len(places[output]), step):
            rows = slice(first, first + step)
            at = {position: own[rows] + piece.moved[position] for position, own in places.items()}
            values = [
                self.setting.codec(position).decode(movers[position].load(at[position]))
                for position in self.setting.inputs
            ]
            movers[output].store(at[output], self._results(values, rows))

    def _results(self, values: list[Doubles], rows: slice) -> Patterns:
        record = self._record
        if record.unary is not None:
            shown = (
                values[0] if self._hidden is None else np.where(self._hidden[rows], mask_value(self.setting), values[0])
            )
            with np.errstate(all="ignore"):
                result = record.unary(shown, self._constants)
        elif record.pointwise is not None:
            pointwise = record.pointwise
            algebra = ArrayAlgebra(np.float64 if pointwise.is_double else np.float32)
            absent = pointwise.absent or {}
            rest = [absent[name] for name in pointwise.formula.operands[len(values) :]]
            operands = tuple(np.asarray(value, algebra.dtype) for value in (*values, *rest))
            with np.errstate(all="ignore"):
                result = np.asarray(pointwise.formula.evaluate(algebra, operands), np.float32).astype(np.float64)
        else:
            result = values[0]
        return np.asarray(self.setting.codec(self.setting.output).encode(result))
