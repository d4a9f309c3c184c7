"""The joint cost of all operands that read one buffer: a copy that several of them need is written, and paid, once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.passes.assign_layouts.operand_costs import TIE_SCALE, OperandTable, common_depth
from spyrec.passes.assign_layouts.realize import CopyStep
from spyrec.passes.solvers.elimination import INFINITE, Factor

TABLE_LIMIT = 1 << 16
"""Entries of one joint table.  Readers beyond it form groups that share nothing with each other, and the optimum of
the whole is then bounded from below by letting all but the first group copy for nothing."""

Costs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Reader:
    """One operand that reads the buffer: its table, the variable of the buffer that its kernel writes, its loops."""

    table: OperandTable
    target: int
    loops: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SharedReaders:
    """Readers of one buffer that pay for equal copies together; ``source`` is the buffer's variable."""

    source: int
    readers: tuple[Reader, ...]
    is_first: bool

    @property
    def scope(self) -> tuple[int, ...]:
        """The variables of the joint table: the buffer, then what its readers write."""
        return (self.source, *dict.fromkeys(reader.target for reader in self.readers))

    def factor(self, sizes: Sequence[int], *, free_copies: bool = False) -> Factor:
        """Return the joint table.

        Exact entries pay each copy once; of the searches not made yet only the dearest bound counts, since all others
        may turn out to share its copies.  ``free_copies`` leaves out the copies: a lower bound.
        """
        scope = self.scope
        shape = tuple([sizes[variable] for variable in scope])
        own = np.zeros(shape, np.int64)
        pending = np.zeros(shape, np.int64)
        for reader in self.readers:
            own = np.minimum(own + _spread(reader.table.own_costs, reader, scope), INFINITE)
            pending = np.maximum(pending, _spread(reader.table.pending_costs, reader, scope))
        if free_copies:
            return Factor(scope, own)
        return Factor(scope, np.minimum(own + np.maximum(self._copies(shape), pending), INFINITE))

    def kind(self, sizes: Sequence[int]) -> Hashable:
        """Return what groups have in common whose joint tables are equal."""
        scope, loops = self.scope, dict[tuple[int, ...], int]()
        readers = [
            (
                id(reader.table),
                reader.table.refined,
                scope.index(reader.target),
                loops.setdefault(reader.loops, len(loops)),
            )
            for reader in self.readers
        ]
        shared = [common_depth(one, other) for one, other in combinations(loops, 2)]
        return tuple([sizes[variable] for variable in scope]), tuple(readers), tuple(shared)

    def _copies(self, shape: tuple[int, ...]) -> Costs:
        """Return what all copies of the exact entries cost, each once."""
        needed: dict[object, tuple[int, npt.NDArray[np.bool_]]] = {}
        for reader in self.readers:
            axis = self.scope.index(reader.target)
            for (i, j), steps in reader.table.chains():
                for count, step in enumerate(steps, 1):
                    key = (i, where_made(steps[:count], reader.loops))
                    _, mask = needed.setdefault(key, (step.cost_bytes * TIE_SCALE, np.zeros(shape, np.bool_)))
                    where: list[int | slice] = [slice(None)] * len(shape)
                    where[0], where[axis] = i, j
                    mask[tuple(where)] = True
        total = np.zeros(shape, np.int64)
        for cost, mask in needed.values():
            total += cost * mask
        return total


def _spread(table: Costs, reader: Reader, scope: Sequence[int]) -> Costs:
    """Return a reader's table with an axis for every variable of the scope."""
    shape = [1] * len(scope)
    shape[0], shape[scope.index(reader.target)] = table.shape
    return table.reshape(shape)


def where_made(steps: Sequence[CopyStep], loops: tuple[int, ...]) -> tuple[tuple[CopyStep, tuple[int, ...]], ...]:
    """Return the copies that a reader needs with the loops that each stands in: what makes copies the same."""
    return tuple([(step, loops[: step.depth]) for step in steps])


def shared_readers(source: int, readers: Sequence[Reader], sizes: Sequence[int]) -> Iterator[SharedReaders]:
    """Yield the readers of one buffer in groups whose joint tables stay within the limit."""
    group: list[Reader] = []
    is_first = True
    for reader in readers:
        targets = {item.target for item in (*group, reader)}
        entries = sizes[source] * math.prod(sizes[target] for target in targets)
        if group and entries > TABLE_LIMIT:
            yield SharedReaders(source, tuple(group), is_first)
            group, is_first = [], False
        group.append(reader)
    yield SharedReaders(source, tuple(group), is_first)
