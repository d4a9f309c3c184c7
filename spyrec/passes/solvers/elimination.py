"""Exact minimisation of a sum of small cost tables by variable elimination (bucket elimination, Dechter 1999).

Each variable has a finite domain; each factor is a table over a few variables.  Eliminating a variable joins its
factors and keeps, for every assignment of its neighbours, the best of its values.  Time and memory are exponential in
the induced width only; a graph of layers has width 2 to 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from weakref import WeakValueDictionary

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

_SUMMANDS = 6
"""After so many tables a sum of costs, each up to ``INFINITE``, is brought down again, long before it leaves int64."""

_LARGE = 1 << 15
"""Entries from which on a table is worth more care than the call of a function."""

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
    """Return an assignment of least total cost, as ``Elimination.minimise``."""
    elimination = Elimination(domains, [factor.scope for factor in factors])
    return elimination.minimise([factor.table for factor in factors])


class Elimination:
    """Sums of tables over the same variables, to be minimised again and again while single tables change.

    ``domains[v]`` is the number of values of variable ``v``, ``scopes`` the variables of each table.  Which variable goes
    when, and which tables it joins, follows from these alone.  Of one minimisation the joined tables are kept for the
    next: only what comes of a changed table is joined again.
    """

    def __init__(self, domains: Sequence[int], scopes: Sequence[tuple[int, ...]]) -> None:
        self._scopes = tuple(scopes)
        self._steps = _steps(domains, scopes)
        self._count = len(domains)
        self._tables = _Tables()
        self._joined: dict[_Key, _Joined] = {}

    def minimise(self, tables: Sequence[Table]) -> Assignment:
        """Return an assignment of least total cost; ties go to the lowest values in elimination order.

        ``tables``: one per scope, not changed afterwards.  When a joined table would exceed ``TABLE_LIMIT``, the
        offending variable is replaced by independent copies for the lower bound (mini-buckets), and the assignment is
        built greedily against those bounds.
        """
        present = self._tables.canonical(tables)
        before, self._joined = self._joined, {}
        passed: list[_Joined] = []
        bound = 0
        for step in self._steps:
            bucket = [present[slot] for slot in step.slots]
            key = (step.kind.number, *map(id, bucket))
            joined = self._joined.get(key)
            if joined is None:
                joined = self._joined[key] = before.get(key) or _join(step.kind, bucket, self._tables)
            passed.append(joined)
            present.extend(joined.messages)
            bound += joined.least
        values = [0] * self._count
        for step, joined in zip(reversed(self._steps), reversed(passed), strict=True):
            values[step.scope[0]] = joined.best(tuple([values[other] for other in step.scope[1:]]))
        factors = [Factor(scope, table) for scope, table in zip(self._scopes, tables, strict=True)]
        return Assignment(tuple(values), total_cost(values, factors), min(bound, INFINITE))


_Places = tuple[int, ...]
"""Which variables of a bucket, by their places in its scope."""

_Key = tuple[int, ...]
"""The kind of a bucket, and the identities of its tables."""


@dataclass(frozen=True, slots=True)
class _Sum:
    """How two tables are added: both are turned and brought to the same axes, blocks of variables of which has both.

    ``turned``: the order of each one's axes.  ``shapes``: one length per block, 1 where a table does not have it.
    ``axes``: the places of the sum's axes, of lengths ``shape``.
    """

    turned: tuple[_Places, _Places]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    axes: _Places
    shape: tuple[int, ...]

    def operands(self, left: Table, right: Table) -> tuple[Table, Table]:
        """Return both tables with the blocks as their axes."""
        turned = left.transpose(self.turned[0]), right.transpose(self.turned[1])
        return turned[0].reshape(self.shapes[0]), turned[1].reshape(self.shapes[1])


@dataclass(frozen=True, slots=True)
class _MiniBucket:
    """Tables of a bucket that are joined: which, smallest first, how each is added, and the places that are left."""

    members: tuple[int, ...]
    sums: tuple[_Sum, ...]
    left: _Places
    axis: int  # of the variable, where a table is alone


@dataclass(frozen=True, slots=True)
class _Kind:
    """What buckets have in common whose tables have the same sizes at the same places.

    ``places``: of each table's axes in the bucket's scope, the variable that is eliminated first.
    """

    number: int
    sizes: tuple[int, ...]
    places: tuple[_Places, ...]
    minis: tuple[_MiniBucket, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """The elimination of the first variable of ``scope``, the others in order; ``slots``: the numbers of its tables."""

    scope: tuple[int, ...]
    slots: tuple[int, ...]
    kind: _Kind


def _steps(domains: Sequence[int], scopes: Sequence[tuple[int, ...]]) -> list[_Step]:
    """Return the eliminations in order: of the variables that are left, the one of the smallest joined table."""
    of_slot = list(scopes)
    slots: list[list[int]] = [[] for _ in domains]
    for slot, scope in enumerate(scopes):
        for variable in scope:
            slots[variable].append(slot)
    is_gone = [False] * len(of_slot)
    kinds: dict[tuple[tuple[int, ...], tuple[_Places, ...]], _Kind] = {}
    steps: list[_Step] = []
    for variable in _order(domains, scopes):
        own = tuple([slot for slot in slots[variable] if not is_gone[slot]])
        scope = (variable, *sorted({other for slot in own for other in of_slot[slot]} - {variable}))
        place_of = {other: place for place, other in enumerate(scope)}
        places = tuple([tuple([place_of[other] for other in of_slot[slot]]) for slot in own])
        alike = tuple([domains[other] for other in scope]), places
        if alike not in kinds:
            kinds[alike] = _Kind(len(kinds), *alike, tuple(_mini_buckets(*alike)))
        steps.append(_Step(scope, own, kinds[alike]))
        for slot in own:
            is_gone[slot] = True
        for mini in kinds[alike].minis:
            if mini.left:
                left = tuple([scope[place] for place in mini.left])
                for other in left:
                    slots[other].append(len(of_slot))
                of_slot.append(left)
                is_gone.append(False)
    return steps


def _order(domains: Sequence[int], scopes: Sequence[tuple[int, ...]]) -> Iterator[int]:
    neighbours = _neighbours(len(domains), scopes)
    sizes = [_joined_size(variable, neighbours, domains) for variable in range(len(domains))]
    smallest = [(size, variable) for variable, size in enumerate(sizes)]
    heapify(smallest)
    while smallest:
        size, variable = heappop(smallest)
        if size != sizes[variable]:  # it has changed since, or the variable is gone
            continue
        sizes[variable] = _GONE
        yield variable
        around = neighbours[variable]
        for other in around:
            neighbours[other] |= around - {other}
            neighbours[other].discard(variable)
        for other in around:
            changed = _joined_size(other, neighbours, domains)
            if changed != sizes[other]:
                sizes[other] = changed
                heappush(smallest, (changed, other))


def _mini_buckets(sizes: Sequence[int], places: Sequence[_Places]) -> Iterator[_MiniBucket]:
    """Group tables so that no joined table exceeds the limit; one group, and exact, in all ordinary graphs."""
    groups: list[tuple[set[int], list[int]]] = []
    entries = [math.prod([sizes[place] for place in own]) for own in places]
    for number in sorted(range(len(places)), key=lambda number: -entries[number]):
        for scope, members in groups:
            joined = scope.union(places[number])
            if math.prod([sizes[place] for place in joined]) <= TABLE_LIMIT:
                scope |= joined
                members.append(number)
                break
        else:
            groups.append((set(places[number]), [number]))
    for _, members in groups:
        yield _mini_bucket(tuple(reversed(members)), sizes, places)


def _mini_bucket(members: tuple[int, ...], sizes: Sequence[int], places: Sequence[_Places]) -> _MiniBucket:
    axes, sums = places[members[0]], list[_Sum]()
    for number in members[1:]:
        sums.append(_sum(axes, places[number], sizes))
        axes = sums[-1].axes
    return _MiniBucket(members, tuple(sums), tuple([place for place in axes if place]), axes.index(0))


def _sum(left: _Places, right: _Places, sizes: Sequence[int]) -> _Sum:
    """Return how tables over ``left`` and ``right`` are added, the variable that is eliminated in front.

    Behind it stand the variables that one of them has, and that both have; the largest block stands last, so that most
    of the addition runs over neighbours in memory.
    """
    both = tuple([place for place in left if place in right and place])
    only = (
        tuple([place for place in left if place not in right]),
        tuple([place for place in right if place not in left]),
    )
    blocks = sorted((*only, both), key=lambda block: math.prod([sizes[place] for place in block]))
    axes = (0, *[place for block in blocks for place in block])
    turned = (
        tuple([left.index(place) for place in axes if place in left]),
        tuple([right.index(place) for place in axes if place in right]),
    )
    lengths = [(block, math.prod([sizes[place] for place in block])) for block in ((0,), *blocks)]
    shapes = (
        tuple([1 if block is only[1] else length for block, length in lengths]),
        tuple([1 if block is only[0] else length for block, length in lengths]),
    )
    return _Sum(turned, shapes, axes, tuple([sizes[place] for place in axes]))


class _Tables:
    """Tables by what they hold: equal ones are one object, as long as somebody holds it."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[tuple[int, ...], bytes], Table] = WeakValueDictionary()
        self._given: dict[int, tuple[Table, Table]] = {}

    def canonical(self, tables: Sequence[Table]) -> list[Table]:
        """Return for each table the one of its costs, those above ``INFINITE`` brought down to it."""
        before, self._given = self._given, {}
        found: list[Table] = []
        for table in tables:
            known = self._given.get(id(table)) or before.get(id(table))
            if known is None:  # who is known is held, so that nobody else has its id
                known = table, self.same(np.asarray(np.minimum(table, INFINITE)))
            self._given[id(table)] = known
            found.append(known[1])
        return found

    def same(self, table: Table) -> Table:
        """Return the one table of these costs; a large one is taken as it is, since to look at it takes long."""
        return table if table.size > _LARGE else self._known.setdefault((table.shape, table.tobytes()), table)


class _Joined:
    """What is left of a bucket without its variable.

    ``least``: the sum of the least costs, which the tables are above.  ``messages``: these tables.
    """

    __slots__ = ("_best", "_bucket", "_kind", "least", "messages")

    def __init__(self, kind: _Kind, bucket: Sequence[Table], least: int, messages: Sequence[Table]) -> None:
        self._kind = kind
        self._bucket = bucket  # which holds the tables that it is known by
        self._best: dict[tuple[int, ...], int] = {}
        self.least = least
        self.messages = messages

    def best(self, others: tuple[int, ...]) -> int:
        """Return the best value of the variable, the lowest of several, for values of the others."""
        if others not in self._best:
            costs = np.zeros(self._kind.sizes[0], np.int64)
            for table, places in zip(self._bucket, self._kind.places, strict=True):
                index = tuple([others[place - 1] if place else slice(None) for place in places])
                costs = np.minimum(costs + table[index], INFINITE)
            self._best[others] = int(costs.argmin())
        return self._best[others]


def _join(kind: _Kind, bucket: Sequence[Table], tables: _Tables) -> _Joined:
    """Join the tables of a bucket.

    The least cost is taken out of each message, so that what comes of a layer does not tell how many were before it.
    """
    messages: list[Table] = []
    total = 0
    for mini in kind.minis:
        table = _without_variable(mini, [bucket[number] for number in mini.members])
        least = int(table.min())
        if mini.left and least >= INFINITE:
            least = 0  # nothing is allowed, which the table has to say
        if mini.left:
            messages.append(tables.same(np.where(table >= INFINITE, INFINITE, table - least)))
        total += least
    return _Joined(kind, bucket, total, messages)


def _without_variable(mini: _MiniBucket, members: Sequence[Table]) -> Table:
    """Return the least of the sum of tables for each assignment of the variables that are left."""
    if len(members) == 1:
        return members[0].min(axis=mini.axis)
    joined = members[0]
    for count, (how, table) in enumerate(zip(mini.sums[:-1], members[1:-1], strict=True), 2):
        joined = np.add(*how.operands(joined, table)).reshape(how.shape)
        if count % _SUMMANDS == 0:
            joined = np.minimum(joined, INFINITE)
    last = mini.sums[-1]
    left, right = last.operands(joined, members[-1])
    return np.minimum(_least_sum(left, right), INFINITE).reshape(last.shape[1:])


def _least_sum(left: Table, right: Table) -> Table:
    """Return the minimum of ``left + right`` along their first axis, large sums value by value: they stay in caches."""
    if left.size * right.size // max(left.shape[0], 1) < _LARGE:
        return (left + right).min(axis=0)
    least = left[0] + right[0]
    other = np.empty_like(least)
    for one, two in zip(left[1:], right[1:], strict=True):
        np.minimum(least, np.add(one, two, out=other), out=least)
    return least


def total_cost(values: Sequence[int], factors: Sequence[Factor]) -> int:
    """Return the cost of one assignment."""
    return min(sum(int(factor.table[tuple(values[v] for v in factor.scope)]) for factor in factors), INFINITE)


def _neighbours(count: int, scopes: Sequence[tuple[int, ...]]) -> list[set[int]]:
    neighbours: list[set[int]] = [set() for _ in range(count)]
    for scope in scopes:
        for variable in scope:
            neighbours[variable] |= set(scope) - {variable}
    return neighbours


def _joined_size(variable: int, neighbours: Sequence[set[int]], domains: Sequence[int]) -> int:
    size = domains[variable]
    for other in neighbours[variable]:
        size *= domains[other]
        if size >= _LARGEST_SIZE:
            return _LARGEST_SIZE
    return size
