"""Exact minimisation of a sum of small cost tables by variable elimination (bucket elimination, Dechter 1999).

Each variable has a finite domain; each factor is a table over a few variables.  Eliminating a variable joins its
factors and keeps, for every assignment of its neighbours, the best of its values.  Time and memory are exponential in
the induced width only; a graph of layers has width 2 to 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

INFINITE = 1 << 60
"""The cost of an assignment that is not allowed; sums of a few thousand stay exact in int64 by saturation."""

TABLE_LIMIT = 1 << 22
"""Entries of the largest joined table; above it a variable is fixed first and the result becomes an upper bound."""


_LARGEST_SIZE = 1 << 62
"""Where sizes of joined tables end to be told apart."""

_GONE = -1
"""In place of the size of a variable that was eliminated."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A cost table: one axis per variable of ``scope``, in that order."""

    scope: tuple[int, ...]
    table: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Assignment:
    """The minimiser: a value per variable, its cost, and a lower bound (equal to the cost where it is exact)."""

    values: tuple[int, ...]
    cost: int
    lower_bound: int

    @property
    def is_exact(self) -> bool:
        """Whether no assignment is cheaper."""
        return self.cost == self.lower_bound


def minimise(domains: Sequence[int], factors: Sequence[Factor]) -> Assignment:
    """Return an assignment of least total cost; ties go to the lowest values in elimination order.

    ``domains[v]`` is the number of values of variable ``v``.  When a joined table would exceed ``TABLE_LIMIT``, the
    offending variable is replaced by independent copies for the lower bound (mini-buckets), and the assignment is
    built greedily against those bounds.
    """
    buckets = _Buckets(len(domains), factors)
    order: list[tuple[int, list[Factor]]] = []
    bound = 0
    neighbours = _neighbours(len(domains), factors)
    sizes = [_joined_size(variable, neighbours, domains) for variable in range(len(domains))]
    smallest = [(size, variable) for variable, size in enumerate(sizes)]
    heapify(smallest)
    while smallest:
        size, variable = heappop(smallest)
        if size != sizes[variable]:  # it has changed since, or the variable is gone
            continue
        sizes[variable] = _GONE
        bucket = buckets.taken(variable)
        order.append((variable, bucket))
        for group in _mini_buckets(bucket, domains):
            joined = _join(group, variable)
            message = Factor(joined.scope[1:], joined.table.min(axis=0))
            if message.scope:
                buckets.add(message)
            else:
                bound += int(message.table)
        around = neighbours[variable]
        for other in around:
            neighbours[other] |= around - {other}
            neighbours[other].discard(variable)
        for other in around:
            changed = _joined_size(other, neighbours, domains)
            if changed != sizes[other]:
                sizes[other] = changed
                heappush(smallest, (changed, other))
    values = [0] * len(domains)
    for variable, bucket in reversed(order):
        costs = np.zeros(domains[variable], np.int64)
        for factor in bucket:
            index = tuple(slice(None) if v == variable else values[v] for v in factor.scope)
            costs = np.minimum(costs + factor.table[index], INFINITE)
        values[variable] = int(costs.argmin())
    return Assignment(tuple(values), total_cost(values, factors), min(bound, INFINITE))


class _Buckets:
    """The factors that are left, by variable, each bucket in the order in which its factors came."""

    def __init__(self, count: int, factors: Sequence[Factor]) -> None:
        self._numbers: list[list[int]] = [[] for _ in range(count)]
        self._left: dict[int, Factor] = {}
        self._next = 0
        for factor in factors:
            self.add(_saturated(factor))

    def add(self, factor: Factor) -> None:
        """Put a factor into the buckets of its variables."""
        for variable in factor.scope:
            self._numbers[variable].append(self._next)
        self._left[self._next] = factor
        self._next += 1

    def taken(self, variable: int) -> list[Factor]:
        """Return the factors of a variable, and forget them everywhere."""
        found = [self._left.pop(number, None) for number in self._numbers[variable]]
        self._numbers[variable] = []
        return [factor for factor in found if factor is not None]


def total_cost(values: Sequence[int], factors: Sequence[Factor]) -> int:
    """Return the cost of one assignment."""
    return min(sum(int(factor.table[tuple(values[v] for v in factor.scope)]) for factor in factors), INFINITE)


def _saturated(factor: Factor) -> Factor:
    return Factor(factor.scope, np.minimum(factor.table, INFINITE))


def _neighbours(count: int, factors: Sequence[Factor]) -> list[set[int]]:
    neighbours: list[set[int]] = [set() for _ in range(count)]
    for factor in factors:
        for variable in factor.scope:
            neighbours[variable] |= set(factor.scope) - {variable}
    return neighbours


def _joined_size(variable: int, neighbours: Sequence[set[int]], domains: Sequence[int]) -> int:
    size = domains[variable]
    for other in neighbours[variable]:
        size *= domains[other]
        if size >= _LARGEST_SIZE:
            return _LARGEST_SIZE
    return size


def _mini_buckets(bucket: Sequence[Factor], domains: Sequence[int]) -> list[list[Factor]]:
    """Group factors so that no joined table exceeds the limit; one group, and exact, in all ordinary graphs."""
    groups: list[tuple[set[int], list[Factor]]] = []
    for factor in sorted(bucket, key=lambda item: -item.table.size):
        for scope, members in groups:
            joined = scope | set(factor.scope)
            if int(np.prod([domains[v] for v in joined], dtype=object)) <= TABLE_LIMIT:
                scope |= set(factor.scope)
                members.append(factor)
                break
        else:
            groups.append((set(factor.scope), [factor]))
    return [members for _, members in groups]


def _join(group: Sequence[Factor], variable: int) -> Factor:
    """Add tables over the union of their scopes, ``variable`` first."""
    scope = (variable, *sorted({v for factor in group for v in factor.scope} - {variable}))
    total: npt.NDArray[np.int64] = np.zeros((1,) * len(scope), np.int64)
    for factor in group:
        axes = sorted(range(len(factor.scope)), key=lambda axis: scope.index(factor.scope[axis]))
        table = factor.table.transpose(axes)
        present = [factor.scope[axis] for axis in axes]
        shape = [table.shape[present.index(v)] if v in present else 1 for v in scope]
        total = np.minimum(total + table.reshape(shape), INFINITE)
    return Factor(scope, total)
