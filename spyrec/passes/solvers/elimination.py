"""Exact minimisation of a sum of small cost tables by variable elimination (bucket elimination, Dechter 1999).

Each variable has a finite domain; each factor is a table over a few variables.  Eliminating a variable joins its
factors and keeps, for every assignment of its neighbours, the best of its values.  Time and memory are exponential in
the induced width only; a graph of layers has width 2 to 4.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass

INFINITE = 1 << 60
"""The cost of an assignment that is not allowed; sums of a few thousand stay exact in int64 by saturation."""

TABLE_LIMIT = 1 << 22
"""Entries of the largest joined table; above it a variable is fixed first and the result becomes an upper bound."""


_LARGEST_SIZE = 1 << 62
"""Where sizes of joined tables end to be told apart."""

_GONE = -1
"""In place of the size of a variable that was eliminated."""


Table = npt.NDArray[np.int64]
"""Costs, one axis per variable."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A cost table: one axis per variable of ``scope``, in that order."""

    scope: tuple[int, ...]
    table: Table


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
    tables = _Tables()
    buckets, joins = _Buckets(len(domains), factors, tables), _Joins(domains, tables)
    order: list[tuple[int, _Bucket]] = []
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
        bucket = _Bucket.of(variable, buckets.taken(variable))
        order.append((variable, bucket))
        messages, least = joins.messages(bucket)
        bound += least
        for message in messages:
            buckets.add(message)
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
        values[variable] = joins.best(bucket, tuple(values[other] for other in bucket.scope[1:]))
    return Assignment(tuple(values), total_cost(values, factors), min(bound, INFINITE))


@dataclass(frozen=True, slots=True)
class _Bucket:
    """The factors of one variable.

    ``scope``: their variables, that one first, the others in order.  ``places``: of each factor's axes in it.  ``key``:
    what buckets of the same tables have in common, whatever their variables are called.
    """

    scope: tuple[int, ...]
    factors: tuple[Factor, ...]
    places: tuple[tuple[int, ...], ...]
    key: tuple[tuple[int, tuple[int, ...]], ...]

    @staticmethod
    def of(variable: int, factors: Sequence[Factor]) -> _Bucket:
        """Return the factors of a variable as a bucket."""
        scope = (variable, *sorted({other for factor in factors for other in factor.scope} - {variable}))
        place_of = {other: place for place, other in enumerate(scope)}
        places = tuple([tuple([place_of[other] for other in factor.scope]) for factor in factors])
        key = tuple([(id(factor.table), axes) for factor, axes in zip(factors, places, strict=True)])
        return _Bucket(scope, tuple(factors), places, key)


class _Tables:
    """Tables by what they hold: equal ones are one object."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, ...], bytes], Table] = {}

    def same(self, table: Table) -> Table:
        """Return the one table of these costs, those above ``INFINITE`` brought down to it."""
        table = np.minimum(table, INFINITE)
        return self._known.setdefault((table.shape, table.tobytes()), table)


@dataclass(frozen=True, slots=True)
class _Joined:
    """What is left of a bucket without its variable.

    ``least``: the sum of the least costs, which the tables are above.  ``messages``: places in the bucket's scope, and
    a table over them.  ``bucket``: the first one of these tables, which holds them.
    """

    bucket: _Bucket
    least: int
    messages: tuple[tuple[tuple[int, ...], Table], ...]


class _Joins:
    """Joined tables and best values, each computed once for all buckets of the same tables: layers repeat.

    Tables go by their identity; the least cost is taken out of each, so that what comes of a layer does not tell how
    many were before it.
    """

    def __init__(self, domains: Sequence[int], tables: _Tables) -> None:
        self._domains = domains
        self._tables = tables
        self._joined: dict[Hashable, _Joined] = {}
        self._best: dict[Hashable, int] = {}

    def messages(self, bucket: _Bucket) -> tuple[list[Factor], int]:
        """Return what is left of a bucket without its variable: tables, and a cost that every assignment has."""
        key = bucket.key
        if key not in self._joined:
            self._joined[key] = self._left_of(bucket)
        joined = self._joined[key]
        factors = [Factor(tuple([bucket.scope[place] for place in places]), table) for places, table in joined.messages]
        return factors, joined.least

    def _left_of(self, bucket: _Bucket) -> _Joined:
        place_of = {variable: place for place, variable in enumerate(bucket.scope)}
        messages: list[tuple[tuple[int, ...], Table]] = []
        total = 0
        for group in _mini_buckets(bucket.factors, self._domains):
            joined = _join(group, bucket.scope[0])
            table: Table = joined.table.min(axis=0)
            least, others = int(table.min()), joined.scope[1:]
            if others and least >= INFINITE:
                least = 0  # nothing is allowed, which the table has to say
            if others:
                above = np.where(table >= INFINITE, INFINITE, table - least)
                messages.append((tuple(place_of[other] for other in others), self._tables.same(above)))
            total += least
        return _Joined(bucket, total, tuple(messages))

    def best(self, bucket: _Bucket, others: tuple[int, ...]) -> int:
        """Return the best value of a bucket's variable, the lowest of several, for values of the others."""
        key = bucket.key, others
        if key not in self._best:
            costs = np.zeros(self._domains[bucket.scope[0]], np.int64)
            for factor, places in zip(bucket.factors, bucket.places, strict=True):
                index = tuple(others[place - 1] if place else slice(None) for place in places)
                costs = np.minimum(costs + factor.table[index], INFINITE)
            self._best[key] = int(costs.argmin())
        return self._best[key]


class _Buckets:
    """The factors that are left, by variable, each bucket in the order in which its factors came."""

    def __init__(self, count: int, factors: Sequence[Factor], tables: _Tables) -> None:
        self._numbers: list[list[int]] = [[] for _ in range(count)]
        self._left: dict[int, Factor] = {}
        self._next = 0
        same: dict[int, Table] = {}
        for factor in factors:
            if id(factor.table) not in same:
                same[id(factor.table)] = tables.same(factor.table)
            self.add(Factor(factor.scope, same[id(factor.table)]))

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
    total: Table = np.zeros((1,) * len(scope), np.int64)
    for factor in group:
        axes = sorted(range(len(factor.scope)), key=lambda axis: scope.index(factor.scope[axis]))
        table = factor.table.transpose(axes)
        present = [factor.scope[axis] for axis in axes]
        shape = [table.shape[present.index(v)] if v in present else 1 for v in scope]
        total = np.minimum(total + table.reshape(shape), INFINITE)
    return Factor(scope, total)
