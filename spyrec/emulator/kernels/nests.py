"""Nests of loops over operands: the record of one operation on a nest, and where its operands are at a task."""

# As in jit.py: what numba and llvmlite return is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.instructions import floats_on_stack, pointer_at
from spyrec.emulator.kernels.records import Held, names_of, reader_of
from spyrec.files.linked_kernel import Linked
from spyrec.files.numba_names import cgutils, intrinsic, types

Integers = npt.NDArray[np.int64]
Table = npt.NDArray[np.uint16]

_WORD = ir.IntType(64)

MOST_OPERANDS = 8
"""Of one operation."""

operand_places = floats_on_stack(2 * MOST_OPERANDS)
"""The address of room for what :data:`task_places` writes (inside kernels only)."""


@dataclass(frozen=True, slots=True)
class ElementRecord:
    """One operation on a nest; arrays by address.

    ``operation``: the function that is called.  ``rows``: the operands' columns of the movement.
    ``starts[operand, origin]``: byte addresses before movement.  ``nest[k]``: extent of loop k, then each operand's
    step in bytes; loop 0 is the innermost; there are at least two.  A task is one origin at one of ``outer_points`` of
    the loops from 2 outward.  ``codecs``, ``blocks``: see ``pointwise_step``.  ``table``: of a copy, or 0.
    """

    operation: int
    operands: int
    origins: int
    loops: int
    outer_points: int
    rows: int
    starts: int
    nest: int
    codecs: int
    blocks: int
    table: int


element_record = reader_of(ElementRecord)
"""The record at an address (inside kernels only)."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one step does to each element: the step, the function that it calls, and that one's arguments.

    ``codecs``, ``blocks``: see ``pointwise_step``.  ``table``: 65,536 entries, or none.
    """

    step: Linked
    operation: int
    codecs: Integers
    table: Table
    blocks: Integers

    def record(self, positions: Sequence[int], starts: Integers, loops: Integers, held: Held) -> ElementRecord:
        """Return the record over ``loops`` from ``starts[operand, origin]``; ``positions``: of them in movements."""
        operands, origins = starts.shape
        assert operands <= MOST_OPERANDS
        return ElementRecord(
            operation=self.operation,
            operands=operands,
            origins=origins,
            loops=len(loops),
            outer_points=int(np.prod(loops[2:, 0], dtype=np.int64)),
            rows=held.at(np.array(positions, np.int64)),
            starts=held.at(np.ascontiguousarray(starts)),
            nest=held.at(np.ascontiguousarray(loops)),
            codecs=held.at(self.codecs),
            blocks=held.at(self.blocks),
            table=held.at(self.table) if len(self.table) else 0,
        )


NO_NUMBERS = np.zeros(0, np.int64)
NO_TABLE = np.zeros(0, np.uint16)


class _PlaceWriter:
    """Writes the loops that find where the operands of a record are at a task."""

    def __init__(self, builder: Any, record: Any) -> None:  # noqa: ANN401
        self.builder = builder
        self.record = record

    def word(self, address: Any, index: Any) -> Any:  # noqa: ANN401
        builder = self.builder
        return builder.load(pointer_at(builder, address, index, _WORD), align=8)

    def field(self, name: str) -> Any:  # noqa: ANN401
        return self.word(self.record, ir.Constant(_WORD, names_of(ElementRecord).index(name)))

    def write(self, moved: Any, task: Any, places: Any) -> None:  # noqa: ANN401
        builder = self.builder
        operands, origins, starts = self.field("operands"), self.field("origins"), self.field("starts")
        points, rows = self.field("outer_points"), self.field("rows")
        origin, point = builder.udiv(task, points), builder.urem(task, points)
        with cgutils.for_range(builder, operands, intp=_WORD) as loop:
            start = self.word(starts, builder.add(builder.mul(loop.index, origins), origin))
            beyond = self.word(moved, self.word(rows, loop.index))
            builder.store(builder.add(start, beyond), pointer_at(builder, places, loop.index, _WORD), align=8)
        left = cgutils.alloca_once_value(builder, point)
        outer = builder.sub(self.field("loops"), ir.Constant(_WORD, 2))
        with cgutils.for_range(builder, outer, intp=_WORD) as loop:
            number = builder.add(loop.index, ir.Constant(_WORD, 2))
            self._advance(left, operands, builder.mul(number, builder.add(operands, ir.Constant(_WORD, 1))), places)

    def _advance(self, left: Any, operands: Any, first: Any, places: Any) -> None:  # noqa: ANN401
        """Take the next loop, whose words of the nest begin at ``first``, out of the points that are left."""
        builder, nest = self.builder, self.field("nest")
        extent, point = self.word(nest, first), builder.load(left)
        index = builder.urem(point, extent)
        builder.store(builder.udiv(point, extent), left)
        with cgutils.for_range(builder, operands, intp=_WORD) as loop:
            step = self.word(nest, builder.add(builder.add(first, loop.index), ir.Constant(_WORD, 1)))
            place = pointer_at(builder, places, loop.index, _WORD)
            builder.store(builder.add(builder.load(place, align=8), builder.mul(index, step)), place, align=8)


@intrinsic
def _task_places(_context: Any, _record: Any, _moved: Any, _task: Any, _places: Any):  # noqa: ANN202, ANN401
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> object:  # noqa: ANN401
        record, moved, task, places = arguments
        _PlaceWriter(builder, record).write(moved, task, places)
        return ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


task_places = cast("Callable[[int, int, int, int], None]", _task_places)
"""``(record, moved, task, places)``: writes where each operand of an :class:`ElementRecord`, moved, is at a task.

Inside kernels only; ``places``: of :data:`operand_places`.
"""
