"""Exact minimisation of a sum of small cost tables by variable elimination (bucket elimination, Dechter 1999).

Each variable has a finite domain; each factor is a table over a few variables.  Eliminating a variable joins its
factors and keeps, for every assignment of its neighbours, the best of its values.  Time and memory are exponential in
the induced width only; a graph of layers has width 2 to 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

_LARGE = 1 << 14
"""Entries from which on a table is worth more care than calls of functions."""

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

    ``domains[v]`` is the number of values of variable ``v``, ``scopes`` the variables of each table.  Which variable
    goes when, and which tables it joins, follows from these alone.  What is found is kept for the next time, when only
    what follows from changed tables is looked at.
    """

    def __init__(self, domains: Sequence[int], scopes: Sequence[tuple[int, ...]]) -> None:
        self._scopes = tuple(scopes)
        self._steps = _steps(domains, scopes)
        self._step_of = {slot: number for number, step in enumerate(self._steps) for slot in step.slots}
        self._chosen_by = _by_variable(len(domains), [step.scope[1:] for step in self._steps])
        self._paid_by = _by_variable(len(domains), scopes)
        self._tables = _Tables()
        self._given: dict[int, Table] = {}
        self._present: dict[int, _Compact] = {}
        self._joined: dict[int, _Joined] = {}
        self._values = [0] * len(domains)
        self._costs = [0] * len(scopes)
        self._bound = 0

    def minimise(self, tables: Sequence[Table]) -> Assignment:
        """Return an assignment of least total cost; ties go to the lowest values in elimination order.

        ``tables``: one per scope, not changed afterwards.  When a joined table would exceed ``TABLE_LIMIT``, the
        offending variable is replaced by independent copies for the lower bound (mini-buckets), and the assignment is
        built greedily against those bounds.
        """
        assert len(tables) == len(self._scopes)
        changed = {slot: table for slot, table in enumerate(tables) if self._given.get(slot) is not table}
        self._given.update(changed)
        moved = self._choose(self._join(changed))
        for slot in {*changed, *(slot for variable in moved for slot in self._paid_by[variable])}:
            chosen = tuple([self._values[variable] for variable in self._scopes[slot]])
            self._costs[slot] = int(tables[slot][chosen])
        return Assignment(tuple(self._values), min(sum(self._costs), INFINITE), min(self._bound, INFINITE))

    def _join(self, changed: Mapping[int, Table]) -> list[int]:
        """Join what follows from tables that have changed; return the numbers of the steps at which something did."""
        waiting: list[int] = []
        arrived = dict(zip(changed, self._tables.canonical(changed.values()), strict=True))
        done: list[int] = []
        while True:
            for slot, table in arrived.items():
                number = self._step_of.get(slot)  # no step has a table without variables
                if self._present.get(slot) is not table and number is not None:
                    self._present[slot] = table
                    heappush(waiting, number)
            if not waiting:
                return done
            number = heappop(waiting)
            while waiting and waiting[0] == number:
                heappop(waiting)
            step, before = self._steps[number], self._joined.get(number)
            joined = self._tables.joined(step.kind, [self._present[slot] for slot in step.slots])
            arrived = dict(zip(step.messages, joined.messages, strict=True))
            self._joined[number] = joined
            self._bound += joined.least - (0 if before is None else before.least)
            done.append(number)

    def _choose(self, joined: Iterable[int]) -> list[int]:
        """Choose values anew where steps have joined other tables, last step first; return the variables that moved."""
        waiting = [-number for number in joined]
        heapify(waiting)
        moved: list[int] = []
        while waiting:
            number = heappop(waiting)
            while waiting and waiting[0] == number:
                heappop(waiting)
            variable, *others = self._steps[-number].scope
            value = self._joined[-number].best(tuple([self._values[other] for other in others]))
            if value != self._values[variable]:
                self._values[variable] = value
                moved.append(variable)
                for earlier in self._chosen_by[variable]:
                    heappush(waiting, -earlier)
        return moved


def _by_variable(count: int, scopes: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return for each variable the numbers of the scopes that have it."""
    found: list[list[int]] = [[] for _ in range(count)]
    for number, scope in enumerate(scopes):
        for variable in scope:
            found[variable].append(number)
    return found


_Places = tuple[int, ...]
"""Which variables of a bucket, by their places in its scope."""

_Rows = tuple[int, ...]
"""Which row of a table's axis tells of each value."""

_Key = tuple[int, ...]
"""The kind of a bucket, and the identities of its tables."""


class _Compact:
    """A table that is told once of values that make no difference: value ``v`` of axis ``a`` has row ``rows[a][v]``.

    Without ``rows`` every value has its own.  Of a large table most values are told by others: of layouts that every
    copy treats alike, or that nothing serves.
    """

    __slots__ = ("__weakref__", "array", "rows")

    def __init__(self, array: Table, rows: tuple[_Rows, ...] | None = None) -> None:
        self.array = array
        self.rows = rows

    def costs(self, places: _Places, others: tuple[int, ...]) -> Table:
        """Return the costs of the variable at place 0, for values of those at the places behind it."""
        if self.rows is None:
            return self.array[tuple([others[place - 1] if place else slice(None) for place in places])]
        index = [
            rows[others[place - 1]] if place else slice(None) for place, rows in zip(places, self.rows, strict=True)
        ]
        return self.array[tuple(index)][list(self.rows[places.index(0)])]


def _compact(array: Table, rows: Sequence[_Rows] | None = None) -> _Compact:
    """Return a table in which large ones are told once of values that make no difference."""
    if array.size < _LARGE:
        return _Compact(array, None if rows is None else tuple(rows))
    found = [tuple(range(length)) for length in array.shape] if rows is None else list(rows)
    for axis, length in enumerate(array.shape):
        known: dict[bytes, int] = {}
        kept: list[int] = []
        of_row: list[int] = []
        for row in range(length):
            place = known.setdefault(array.take(row, axis).tobytes(), len(known))
            if place == len(kept):
                kept.append(row)
            of_row.append(place)
        if len(kept) < length:
            array = array.take(kept, axis)
            found[axis] = tuple([of_row[row] for row in found[axis]])
    return _Compact(array, tuple(found))


@dataclass(frozen=True, slots=True)
class _Sum:
    """How two tables are added: both are turned and brought to the same axes, blocks of variables of which has both.

    ``turned``: the order of each one's axes.  ``blocks``: the places of each one's variables, block by block.
    ``axes``: the places of the sum's axes.
    """

    turned: tuple[_Places, _Places]
    blocks: tuple[tuple[_Places, ...], tuple[_Places, ...]]
    axes: _Places

    def operands(self, left: Table, right: Table, lengths: Sequence[int]) -> tuple[Table, Table]:
        """Return both tables with the blocks as their axes; ``lengths``: of the axes, by place."""
        shapes = [[math.prod([lengths[place] for place in block]) for block in blocks] for blocks in self.blocks]
        return left.transpose(self.turned[0]).reshape(shapes[0]), right.transpose(self.turned[1]).reshape(shapes[1])


@dataclass(frozen=True, slots=True)
class _MiniBucket:
    """Tables of a bucket that are joined.

    ``members``: which, smallest first.  ``sums``: how each but the first is added to those before it.  ``axes``: the
    places of the sum's axes.  ``left``: these without the variable.  ``users``: of each axis, the members that have it,
    and as which of theirs.
    """

    members: tuple[int, ...]
    sums: tuple[_Sum, ...]
    axes: _Places
    left: _Places
    users: tuple[tuple[tuple[int, int], ...], ...]


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
    """The elimination of the first variable of ``scope``, the others in order.

    ``slots``, ``messages``: the numbers of its tables, and of those that are left of them.
    """

    scope: tuple[int, ...]
    slots: tuple[int, ...]
    messages: tuple[int, ...]
    kind: _Kind


def _steps(domains: Sequence[int], scopes: Sequence[tuple[int, ...]]) -> list[_Step]:
    """Return the eliminations in order: of the variables that are left, the one of the smallest joined table."""
    of_slot = list(scopes)
    slots = _by_variable(len(domains), scopes)
    is_gone = [False] * len(of_slot)
    kinds: dict[tuple[tuple[int, ...], tuple[_Places, ...]], _Kind] = {}
    steps: list[_Step] = []
    for variable in _order(domains, scopes):
        own = tuple([slot for slot in slots[variable] if not is_gone[slot]])
        around = set[int]().union(*[of_slot[slot] for slot in own])
        around.discard(variable)
        scope = (variable, *sorted(around))
        place_of = {other: place for place, other in enumerate(scope)}.__getitem__
        places = tuple([tuple(map(place_of, of_slot[slot])) for slot in own])
        alike = tuple([domains[other] for other in scope]), places
        kind = kinds.get(alike)
        if kind is None:
            kind = kinds[alike] = _Kind(len(kinds), *alike, tuple(_mini_buckets(*alike)))
        for slot in own:
            is_gone[slot] = True
        messages: list[int] = []
        for mini in kind.minis:
            if mini.left:
                left = tuple([scope[place] for place in mini.left])
                for other in left:
                    slots[other].append(len(of_slot))
                messages.append(len(of_slot))
                of_slot.append(left)
                is_gone.append(False)
        steps.append(_Step(scope, own, tuple(messages), kind))
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
            own = neighbours[other]
            own |= around
            own.discard(other)
            own.discard(variable)
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
    own = [places[number] for number in members]
    users = [tuple([(n, item.index(place)) for n, item in enumerate(own) if place in item]) for place in axes]
    return _MiniBucket(members, tuple(sums), axes, tuple([place for place in axes if place]), tuple(users))


def _sum(left: _Places, right: _Places, sizes: Sequence[int]) -> _Sum:
    """Return how tables over ``left`` and ``right`` are added, the variable that is eliminated in front.

    Behind it stand the variables that one of them has, and that both have; the largest block stands last, so that most
    of the addition runs over neighbours in memory.
    """
    both = tuple([place for place in left if place in right and place])
    of_left = tuple([place for place in left if place not in right])
    of_right = tuple([place for place in right if place not in left])
    behind = sorted((of_left, of_right, both), key=lambda block: math.prod([sizes[place] for place in block]))
    blocks = ((0,), *behind)
    axes = tuple([place for block in blocks for place in block])
    turned = (
        tuple([left.index(place) for place in axes if place in left]),
        tuple([right.index(place) for place in axes if place in right]),
    )
    has = (
        tuple([block if set(block) <= set(left) else () for block in blocks]),
        tuple([block if set(block) <= set(right) else () for block in blocks]),
    )
    return _Sum(turned, has, axes)


class _Tables:
    """Tables by what they hold, and what is joined of them: equal ones are one object, as long as somebody holds it."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[tuple[_Rows, ...] | None, tuple[int, ...], bytes], _Compact]
        self._known = WeakValueDictionary()
        self._joined: WeakValueDictionary[_Key, _Joined] = WeakValueDictionary()

    def canonical(self, tables: Iterable[Table]) -> Iterator[_Compact]:
        """Yield for each table the one of its costs, those above ``INFINITE`` brought down to it."""
        found: dict[int, _Compact] = {}
        for table in tables:
            if id(table) not in found:
                found[id(table)] = self.same(np.asarray(np.minimum(table, INFINITE)))
            yield found[id(table)]

    def same(self, array: Table, rows: Sequence[_Rows] | None = None) -> _Compact:
        """Return the one table of these costs."""
        table = _compact(array, rows)
        return self._known.setdefault((table.rows, table.array.shape, table.array.tobytes()), table)

    def joined(self, kind: _Kind, bucket: Sequence[_Compact]) -> _Joined:
        """Return what is left of a bucket without its variable."""
        key = (kind.number, *map(id, bucket))
        found = self._joined.get(key)
        if found is None:
            found = self._joined[key] = _join(kind, bucket, self)
        return found


class _Joined:
    """What is left of a bucket without its variable.

    ``least``: the sum of the least costs, which the tables are above.  ``messages``: these tables.
    """

    __slots__ = ("__weakref__", "_best", "_bucket", "_kind", "least", "messages")

    def __init__(self, kind: _Kind, bucket: Sequence[_Compact], least: int, messages: Sequence[_Compact]) -> None:
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
                costs = np.minimum(costs + table.costs(places, others), INFINITE)
            self._best[others] = int(costs.argmin())
        return self._best[others]


def _join(kind: _Kind, bucket: Sequence[_Compact], tables: _Tables) -> _Joined:
    """Join the tables of a bucket.

    The least cost is taken out of each message, so that what comes of a layer does not tell how many were before it.
    """
    messages: list[_Compact] = []
    total = 0
    for mini in kind.minis:
        members = [bucket[number] for number in mini.members]
        arrays, lengths, rows = [table.array for table in members], kind.sizes, None
        if any(table.rows is not None for table in members):
            arrays, lengths, rows = _aligned(mini, members, kind.sizes)
        array = _without_variable(mini, arrays, lengths)
        least = int(array.min())
        if mini.left and least >= INFINITE:
            least = 0  # nothing is allowed, which the table has to say
        if mini.left:
            above = np.where(array >= INFINITE, INFINITE, array - least)
            messages.append(tables.same(above, rows))
        total += least
    return _Joined(kind, bucket, total, messages)


def _aligned(
    mini: _MiniBucket, members: Sequence[_Compact], sizes: Sequence[int]
) -> tuple[list[Table], list[int], list[_Rows]]:
    """Return tables whose values are told apart as all of them do, the lengths of their axes by place, and the rows.

    The rows are those of the variables that are left.
    """
    arrays = [table.array for table in members]
    lengths = list(sizes)
    left: list[_Rows] = []
    for place, users in zip(mini.axes, mini.users, strict=True):
        every = tuple(range(sizes[place]))
        own = [every if rows is None else rows[axis] for rows, axis in [(members[n].rows, axis) for n, axis in users]]
        known: dict[tuple[int, ...], int] = {}
        together = tuple([known.setdefault(told, len(known)) for told in zip(*own, strict=True)])
        lengths[place] = len(known)
        for number, (member, axis) in enumerate(users):
            kept = [told[number] for told in known]
            if kept != list(range(arrays[member].shape[axis])):
                arrays[member] = arrays[member].take(kept, axis)
        if place:
            left.append(together)
    return arrays, lengths, left


def _without_variable(mini: _MiniBucket, members: Sequence[Table], lengths: Sequence[int]) -> Table:
    """Return the least of the sum of tables for each assignment of the variables that are left."""
    if not mini.sums:
        return np.minimum.reduce(members[0], mini.axes.index(0))
    joined = members[0]
    for count, (how, table) in enumerate(zip(mini.sums[:-1], members[1:-1], strict=True), 2):
        joined = np.add(*how.operands(joined, table, lengths)).reshape([lengths[place] for place in how.axes])
        if count % _SUMMANDS == 0:
            joined = np.minimum(joined, INFINITE)
    left, right = mini.sums[-1].operands(joined, members[-1], lengths)
    return np.minimum(_least_sum(left, right), INFINITE).reshape([lengths[place] for place in mini.left])


def _least_sum(left: Table, right: Table) -> Table:
    """Return the minimum of ``left + right`` along their first axis, large sums value by value: they stay in caches."""
    if left.size * right.size // max(left.shape[0], 1) < _LARGE:
        return np.minimum.reduce(left + right, 0)
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
        for variable in scope if len(scope) > 1 else ():
            neighbours[variable].update(scope)
    for variable, around in enumerate(neighbours):
        around.discard(variable)
    return neighbours


def _joined_size(variable: int, neighbours: Sequence[set[int]], domains: Sequence[int]) -> int:
    size = domains[variable]
    for other in neighbours[variable]:
        size *= domains[other]
        if size >= _LARGEST_SIZE:
            return _LARGEST_SIZE
    return size
