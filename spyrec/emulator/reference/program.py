"""A launch of a program: its statements in order, loops, addresses, and the SuperDSCs that it executes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from spyrec.bundle import program as mlir
from spyrec.bundle.data_dsc import PiecePlace
from spyrec.bundle.dsc_actions import actions_of
from spyrec.bundle.superdsc import Component, Indirection, Operand, SuperDsc
from spyrec.dataclass import dataclass
from spyrec.emulator.reference.execution import DefinedExecution
from spyrec.emulator.reference.memory import POOL, Bytes, Machine, Place, Starts
from spyrec.emulator.reference.moves import move_pieces
from spyrec.emulator.reference.operands import index_dims
from spyrec.emulator.reference.operations import perform
from spyrec.runtime.device import ArgumentTable

Scope = Mapping[str, Place]
Watcher = Callable[[mlir.SdscExecute, int, Starts], None]
"""Is told of each execution: the statement, which of its actions it is, and where operands begin."""


@dataclass(frozen=True, slots=True)
class DefinedLaunch:
    """A launch of a program; ``values``: of its value parameters; ``watcher``: is told of each execution before it."""

    program: mlir.Program
    superdscs: Mapping[str, SuperDsc]
    table: ArgumentTable
    machine: Machine
    values: Mapping[str, int]
    watcher: Watcher | None = None

    def run(self) -> None:
        """Execute the program; errors SPY0706 a gather takes a row that its table does not have."""
        self._run(self.program.body, {})

    def _run(self, body: Sequence[mlir.Statement], outer: Scope) -> None:
        """Execute statements in the order of the text, each SuperDSC finished before the next one begins.

        A name holds to the end of the loop's body that it stands in.
        """
        scope = dict(outer)
        for statement in body:
            match statement:
                case mlir.Constant(result, value):
                    scope[result] = Place(None, value)
                case mlir.ArgumentExtract(result, argument):
                    scope[result] = self._argument(argument)
                case mlir.Add(result, left, right):
                    scope[result] = scope[left] + scope[right]
                case mlir.AffineApply(result, map_name, dims, symbol):
                    (affine,) = (item for item in self.program.maps if item.name == map_name)
                    steps = (k * scope[dim].offset for k, dim in zip(affine.coefficients, dims, strict=True))
                    scope[result] = scope[symbol] + Place(None, sum(steps))
                case mlir.DeviceMemoryAllocate(result, _):
                    scope[result] = Place(self._own_region(statement), 0)
                case mlir.For(induction, lower, upper, step, inner):
                    for value in range(scope[lower].offset, scope[upper].offset, scope[step].offset):
                        self._run(inner, {**scope, induction: Place(None, value)})
                case mlir.SdscExecute():
                    self._execute(statement, scope)

    def _argument(self, name: str) -> Place:
        if mlir.is_value_parameter(name):
            return Place(None, self.values[name])
        if name == "pool_base_addr":
            return Place(POOL, 0)
        return Place(int(name.removeprefix("arg_").removesuffix("_base_addr")), 0)

    def _own_region(self, wanted: mlir.DeviceMemoryAllocate) -> int:
        """Memory that the program allocates lives as long as the program: one region per statement, in text order."""
        own = [item for item in _every_statement(self.program.body) if isinstance(item, mlir.DeviceMemoryAllocate)]
        return POOL - 1 - next(number for number, item in enumerate(own) if item is wanted)

    def _execute(self, statement: mlir.SdscExecute, scope: Scope) -> None:
        """Execute a SuperDSC: as a rule one operation, else what its schedule says, one action after the other.

        That is more order than barriers give; programs that need it race.
        """
        superdsc, file = self.superdscs[statement.sdsc_filename], statement.sdsc_filename
        bound = dict(zip(statement.symbol_ids or (), (scope[name] for name in statement.operands), strict=True))
        if superdsc.schedule is None:
            self._compute(statement, 0, superdsc, bound)
            return
        for number, action in enumerate(actions_of(superdsc, file)):
            if action.part is not None:
                self._compute(statement, number, action.part.superdsc, bound)
            elif action.data_dsc is not None:
                if self.watcher is not None:
                    self.watcher(statement, number, ())
                move_pieces(action.data_dsc, self._located, self.machine.expansion, file)

    def _located(self, place: PiecePlace) -> tuple[Bytes, int]:
        """Return the memory of a piece, and where it begins there."""
        if place.core is not None:
            return self.machine.scratchpads[place.core], place.start
        found = self._baked(place.start_bytes)
        assert found.region is not None
        return self.machine.regions[found.region], found.offset

    def _compute(
        self, statement: mlir.SdscExecute, number: int, superdsc: SuperDsc, bound: Mapping[int, Place]
    ) -> None:
        starts = [self._starts(superdsc, operand, bound) for operand in superdsc.operands]
        if self.watcher is not None:
            self.watcher(statement, number, starts)
        entries = {entry.arg_index: entry for entry in self.table.entries}  # the arguments, by region
        with np.errstate(all="ignore"):
            given = {dim: (bound[item.symbol_id].offset, item) for dim, item in superdsc.dynamic_dims.items()}
            sizes = {dim: size for dim, (size, item) in given.items() if size < item.max_size}
            perform(DefinedExecution(statement.sdsc_filename, superdsc, self.machine, starts, entries, sizes))

    def _starts(self, superdsc: SuperDsc, operand: Operand, bound: Mapping[int, Place]) -> list[Place]:
        """Return where the operand begins on each core.

        A gather's table begins where it does on the core with the same slices, but slice 0 of the index's dims: those
        of others advance by a slice of the index, which means nothing.
        """
        starts = [self._start(operand, start, bound) for start in operand.start_addresses]
        if operand.indirection is not Indirection.VALUE:
            return starts
        still, slices = index_dims(superdsc), superdsc.core_work_slices
        firsts = ({dim: 0 if dim in still else number for dim, number in own.items()} for own in slices)
        return [starts[slices.index(first)] for first in firsts]

    def _start(self, operand: Operand, start: int, bound: Mapping[int, Place]) -> Place:
        """A start of LX is a byte of the core's own; a negative one is the id of a symbol, which this call binds."""
        if operand.component is Component.LX:
            return Place(None, start)
        place = bound[start] if start < 0 else Place(None, start)
        return place if place.region is not None else self._baked(place.offset)

    def _baked(self, address: int) -> Place:
        """An absolute address names the argument whose part of the address space holds it, or the pool."""
        for entry in self.table.entries:
            if entry.baked_base <= address < entry.baked_base + entry.size_bytes:
                return Place(entry.arg_index, address - entry.baked_base)
        return Place(POOL, address)


def _every_statement(body: Sequence[mlir.Statement]) -> Iterator[mlir.Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, mlir.For):
            yield from _every_statement(statement.body)
