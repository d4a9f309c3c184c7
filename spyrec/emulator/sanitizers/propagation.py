"""Carrying states through one operation, along the addressing that executes it.

What an operation stores is as defined as the worst lane it is computed from.  Nothing is reported for that alone:
padding lanes of ragged tensors are computed like the others.  Only places where an undefined lane mixes with defined
ones into a result that is known to count come back as :class:`Mix`: a stick folded into its lane 0, a row of a matmul,
a selection, an index.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Indirection
from spyrec.emulator.engine import Setting
from spyrec.emulator.execute_matmul import roles_of
from spyrec.emulator.execute_reduction import Reduction
from spyrec.emulator.functions import FUNCTIONS, Family
from spyrec.emulator.geometry import adjacent_runs, build_nests, index_dims, outer_sum, row_dim_of
from spyrec.emulator.sanitizers.kernel_shadow import (
    DEFINED,
    FIRST_MARK,
    clear_runs,
    fold_lanes,
    fold_rows,
    run_states,
    store_outer,
    zero_rows,
)

from spyrec.target import STICK_BYTES

Integers = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]

NO_SKIPS = np.zeros((1, 0), np.uint8)

UNWRITTEN_WEIGHT = 3
"""Weight of a sighting from which on it is memory that nothing wrote, below it a padding lane of a host copy."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The states that an operation gives: to what it computes from unwritten memory, and (0: to nothing) to lanes of
    a neighbour that it overwrites with something undefined.
    """

    computed: int
    clobbered: int = 0


@dataclass(frozen=True, slots=True)
class Mix:
    """An undefined lane of input ``operand`` that a valid result depends on: core position and emulated address."""

    operand: int
    core: int
    place: int
    state: int


@dataclass(slots=True)
class Sighting:
    """The most telling unwritten lane that an operation read: operand, core position, address of its state."""

    weight: int = 0
    operand: int = 0
    core: int = 0
    place: int = 0

    def note(self, weight: int, operand: int, core: int, place: int) -> None:
        """Keep a sighting that tells more than the one kept."""
        if weight > self.weight:
            self.weight, self.operand, self.core, self.place = weight, operand, core, place


@dataclass(frozen=True, slots=True)
class Starts:
    """Where operands lie, ``[operand, core]``: their bytes and the states of those."""

    data: Integers
    shadow: Integers


@dataclass(slots=True)
class Outcome:
    """What carrying states through one execution showed."""

    mixes: list[Mix] = field(default_factory=list[Mix])
    sighting: Sighting = field(default_factory=Sighting)


class Propagation:
    """One SuperDSC, planned for states."""

    def __init__(self, setting: Setting, marks: Marks) -> None:
        self.setting = setting
        self.marks = marks

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution; call it before the data are computed."""
        raise NotImplementedError

    def forget_lanes(self, starts: Integers) -> None:
        """Where the output has one value per stick, its other lanes hold nothing: neither do those of former tensors."""
        setting = self.setting
        operand = setting.superdsc.operands[setting.output]
        if -2 not in operand.scales.values():
            return
        offsets = outer_sum([setting.offsets(setting.output, dim) for dim in setting.geometries[setting.output].stride_sticks])
        clear_runs(np.unique(starts[setting.output]), offsets, STICK_BYTES * setting.numerics.expansion)

    def marked(self, states: States) -> States:
        """Return states with those of memory that nothing computed replaced by the operation's mark."""
        return np.where(states < FIRST_MARK, np.uint8(self.marks.computed), states).astype(np.uint8)


def plan_propagation(setting: Setting, marks: Marks) -> Propagation:
    """Return the plan of one operation."""
    match FUNCTIONS[setting.superdsc.op_func_name].family:
        case Family.REDUCTION:
            return FoldPropagation(setting, marks, lanes=1)
        case Family.NORM_STATISTICS:
            return FoldPropagation(setting, marks, lanes=2)
        case Family.MATMUL:
            return MatmulPropagation(setting, marks)
        case Family.TOP:
            return TopPropagation(setting, marks)
        case Family.NORM_SCALE:
            return ElementPropagation(setting, marks, (setting.inputs[0], setting.inputs[0]), second_lane=True)
        case Family.IDENTITY if setting.superdsc.compute.indirect_access_indices:
            return GatherPropagation(setting, marks)
        case _:
            return ElementPropagation(setting, marks, setting.inputs)


class ElementPropagation(Propagation):
    """Element by element; layer norm's scale reads lanes 0 and 1 of its one stick (``second_lane``)."""

    def __init__(self, setting: Setting, marks: Marks, inputs: tuple[int, ...], *, second_lane: bool = False) -> None:
        super().__init__(setting, marks)
        self.positions = (*inputs, setting.output)
        self.nests = setting.nests(self.positions)
        self.widths = np.array([setting.codec(t).word_bytes for t in self.positions], np.int64)
        self.shift = setting.step_bytes(inputs[0]) if second_lane else 0

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution."""
        used = starts.shadow[list(self.positions)]
        if self.shift:
            used[1] += self.shift
        outcome = Outcome()
        for nest in self.nests:
            points = (nest.outer_points, nest.points)
            sighting = run_nest(self, self.widths, (used + nest.offsets[:, None], nest.loops), points)
            position = self.positions[sighting.operand]
            outcome.sighting.note(sighting.weight, position, sighting.core, sighting.place)
        return outcome


def run_nest(
    plan: Propagation, widths: Integers, walk: tuple[Integers, Integers], points: tuple[int, int]
) -> Sighting:
    """Carry states along one nest (starts and loops; tasks and points per start); return what was sighted."""
    at, loops = walk
    marks = np.array([plan.marks.computed, plan.marks.clobbered], np.int64)
    total = Sighting()

    def part(first: int, last: int) -> None:
        seen = np.zeros(4, np.int64)
        run_states(widths, at, loops, marks, seen, first, last)
        if seen[0]:
            weight, operand, place, core = (int(number) for number in seen)
            total.note(weight, operand, core, place)

    plan.setting.threads.run(at.shape[1] * points[0], at.shape[1] * points[1], part)
    return total


class FoldPropagation(Propagation):
    """Reductions and the layer norm statistics, over the cores that share a result; masked lanes do not count."""

    def __init__(self, setting: Setting, marks: Marks, lanes: int) -> None:
        super().__init__(setting, marks)
        self.lanes = lanes
        self.reduction = Reduction(setting)
        self.source = setting.inputs[0]
        self.target_runs = adjacent_runs(
            outer_sum([setting.offsets(setting.output, dim) for dim in self.reduction.kept]),
            setting.step_bytes(setting.output),
        )

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution."""
        reduction, setting = self.reduction, self.setting
        own = starts.shadow[self.source]
        low, high = self._folded(own)
        members = np.array(reduction.cohorts)
        worst, best = low[members].min(axis=1), high[members].max(axis=1)
        outcome = Outcome()
        mixed = (worst != DEFINED) & (best == DEFINED)
        if reduction.folds_lanes and mixed.any():
            outcome.mixes = self._mixes(starts, low, mixed)
            worst = np.where(mixed, DEFINED, worst).astype(np.uint8)
        if (worst < FIRST_MARK).any():
            self._sight(outcome.sighting, own, low)
        states = self.marked(worst)
        rows = np.zeros(1, np.int64)
        row_states = np.full((len(states), 1), DEFINED, np.uint8)
        step = setting.step_bytes(setting.output)
        layout = np.array([setting.codec(setting.output).word_bytes, step], np.int64)
        self.forget_lanes(starts.shadow)
        own_outputs = starts.shadow[setting.output, members[:, 0]]
        for lane in range(self.lanes):
            at = own_outputs + lane * step
            store_outer(
                layout, at, rows, self.target_runs, row_states, states, self.marks.clobbered, 0, len(states)
            )  # fmt: skip
        return outcome

    def _folded(self, own: Integers) -> tuple[States, States]:
        """Return the worst and the best state [core, result]."""
        reduction, setting = self.reduction, self.setting
        width, step = setting.codec(self.source).word_bytes, setting.step_bytes(self.source)
        low = np.empty((setting.cores, reduction.results), np.uint8)
        high = np.zeros((setting.cores, reduction.results), np.uint8)

        def lanes(first: int, last: int) -> None:
            fold_lanes(
                width, step, own, reduction.kept_table, reduction.folded_table, reduction.masked, low, high, first, last
            )

        def rows(first: int, last: int) -> None:
            fold_rows(
                width, step, own, reduction.kept_table, reduction.folded_table, reduction.masked, low, first, last
            )

        tasks = setting.cores * len(reduction.kept_table)
        setting.threads.run(tasks, setting.cores * reduction.elements, lanes if reduction.folds_lanes else rows)
        return low, high

    def _mixes(self, starts: Starts, low: States, mixed: npt.NDArray[np.bool_]) -> list[Mix]:
        found: list[Mix] = []
        for cohort, result in np.argwhere(mixed).tolist()[:16]:
            for core in self.reduction.cohorts[cohort]:
                if low[core, result] != DEFINED:
                    at = int(starts.shadow[self.source, core]) + int(self.reduction.kept_table[result])
                    place, state = self._first_undefined(at, core)
                    found.append(Mix(self.source, core, place, state))
                    break
        return found

    def _first_undefined(self, at: int, core: int) -> tuple[int, int]:
        reduction = self.reduction
        step = self.setting.step_bytes(self.source)
        for first, count, offset in reduction.folded_table.tolist():
            for lane in range(count):
                if not (reduction.masked.shape[1] and reduction.masked[core, first + lane]):
                    state = _state_at(self.setting, self.source, at + offset + lane * step)
                    if state != DEFINED:
                        return at + offset + lane * step, state
        raise AssertionError(at)

    def _sight(self, sighting: Sighting, own: Integers, low: States) -> None:
        core, result = (int(number) for number in np.argwhere(low == low.min())[0])
        table = self.reduction.kept_table
        if self.reduction.folds_lanes:
            offset = int(table[result])
        else:
            run = int(np.searchsorted(table[:, 0], result, side="right")) - 1
            offset = int(table[run, 2]) + (result - int(table[run, 0])) * self.setting.step_bytes(self.source)
        sighting.note(_weight(low[core, result]), self.source, core, int(own[core]) + offset)


def _weight(state: int) -> int:
    return UNWRITTEN_WEIGHT if state == 0 else 1


def _state_at(setting: Setting, position: int, place: int) -> int:
    """Return the state of one element of an operand."""
    result = np.empty((1, 1), np.uint8)
    width, step = setting.codec(position).word_bytes, setting.step_bytes(position)
    one = np.array([[0, 1, 0]], np.int64)
    fold_rows(width, step, np.array([place], np.int64), one, np.zeros(1, np.int64), NO_SKIPS, result, 0, 1)
    return int(result[0, 0])


class MatmulPropagation(Propagation):
    """``C[m, n]`` is as defined as row m of A and column n of B; K padding where B is zero in every column is exempt."""

    def __init__(self, setting: Setting, marks: Marks) -> None:
        super().__init__(setting, marks)
        self.roles = roles = roles_of(setting)
        self.a, self.b = setting.inputs
        self.c = setting.output
        self.a_rows = self._table(self.a, roles.rows)
        self.a_runs = adjacent_runs(self._table(self.a, roles.depth), setting.step_bytes(self.a))
        self.b_depth = self._table(self.b, roles.depth)
        self.b_runs = adjacent_runs(self._table(self.b, roles.columns), setting.step_bytes(self.b))
        self.c_rows = self._table(self.c, roles.rows)
        self.c_runs = adjacent_runs(self._table(self.c, roles.columns), setting.step_bytes(self.c))
        self.columns = int(self.b_runs[:, 1].sum())
        self.batches = {t: self._table(t, roles.batch) for t in (self.a, self.b, self.c)}
        self.cohorts = self._groups((*roles.batch, *roles.rows, *roles.columns))

    def _table(self, position: int, dims: tuple[str, ...]) -> Integers:
        return outer_sum([self.setting.offsets(position, dim) for dim in dims])

    def _groups(self, dims: tuple[str, ...]) -> list[list[int]]:
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for core, slices in enumerate(self.setting.superdsc.core_work_slices):
            groups[tuple(slices[dim] for dim in dims)].append(core)
        return list(groups.values())

    def _at(self, starts: Integers, position: int) -> Integers:
        """Return the starts of every (core, batch point) of an operand."""
        return (starts[position][:, None] + self.batches[position][None, :]).reshape(-1)

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution."""
        batches = len(self.batches[self.a])
        a_at, b_at, c_at = (self._at(starts.shadow, t) for t in (self.a, self.b, self.c))
        low, high = self._rows(a_at, NO_SKIPS)
        if (low != DEFINED).any():
            low, high = self._rows(a_at, self._skipped(self._at(starts.data, self.b), batches))
        columns = self._columns(b_at)
        outcome = Outcome()
        members = np.array(
            [[core * batches + batch for core in cohort] for cohort in self.cohorts for batch in range(batches)]
        )
        worst, best = low[members].min(axis=1), high[members].max(axis=1)
        mixed = (worst != DEFINED) & (best == DEFINED)
        if mixed.any():
            outcome.mixes = self._mixes(a_at, members, mixed)
            worst = np.where(mixed, DEFINED, worst).astype(np.uint8)
        column_states = columns[members].min(axis=1)
        self._sight(outcome.sighting, (a_at, low), (b_at, columns))
        self._store(c_at[members[:, 0]], self.marked(worst), self.marked(column_states))
        return outcome

    def _store(self, at: Integers, rows: States, columns: States) -> None:
        setting = self.setting
        layout = np.array([setting.codec(self.c).word_bytes, setting.step_bytes(self.c)], np.int64)

        def part(first: int, last: int) -> None:
            store_outer(layout, at, self.c_rows, self.c_runs, rows, columns, self.marks.clobbered, first, last)

        setting.threads.run(len(at) * len(self.c_rows), len(at) * len(self.c_rows) * self.columns, part)

    def _rows(self, a_at: Integers, skipped: States) -> tuple[States, States]:
        """Return the worst and best state of each row of A, [core and batch, m]."""
        setting = self.setting
        unique, first, inverse = np.unique(a_at, return_index=True, return_inverse=True)
        if skipped.shape[1]:
            unique, first, inverse = a_at, np.arange(len(a_at)), np.arange(len(a_at))
        low = np.empty((len(unique), len(self.a_rows)), np.uint8)
        high = np.empty_like(low)
        own = skipped[first] if skipped.shape[1] else NO_SKIPS
        width, step = setting.codec(self.a).word_bytes, setting.step_bytes(self.a)

        def part(low_task: int, high_task: int) -> None:
            fold_lanes(width, step, unique, self.a_rows, self.a_runs, own, low, high, low_task, high_task)

        setting.threads.run(low.size, low.size * len(self.b_depth), part)
        return low[inverse], high[inverse]

    def _columns(self, b_at: Integers) -> States:
        """Return the worst state of each column of B, [core and batch, n]."""
        setting = self.setting
        unique, inverse = np.unique(b_at, return_inverse=True)
        low = np.empty((len(unique), self.columns), np.uint8)
        width, step = setting.codec(self.b).word_bytes, setting.step_bytes(self.b)

        def part(first: int, last: int) -> None:
            fold_rows(width, step, unique, self.b_runs, self.b_depth, NO_SKIPS, low, first, last)

        setting.threads.run(len(unique) * len(self.b_runs), low.size * len(self.b_depth), part)
        return low[inverse]

    def _skipped(self, b_at: Integers, batches: int) -> States:
        """Return [core and batch, k]: k of the last K stick whose row of B is zero in every column of every core."""
        setting, superdsc = self.setting, self.setting.superdsc
        skipped = np.zeros((len(b_at), len(self.b_depth)), np.uint8)
        for cores in self._groups((*self.roles.batch, *self.roles.depth)):
            places = np.flatnonzero(self._padded(superdsc.core_work_slices[cores[0]]))
            for batch in range(batches if len(places) else 0):
                own = np.array([core * batches + batch for core in cores])
                width, step = setting.codec(self.b).word_bytes, setting.step_bytes(self.b)
                zero = zero_rows(width, step, np.unique(b_at[own]), self.b_depth[places], self.b_runs).all(axis=0)
                skipped[own[:, None], places[None, :]] = zero
        return skipped

    def _padded(self, slices: Mapping[str, int]) -> npt.NDArray[np.bool_]:
        """Return per k of one core whether it lies in the last K stick of A."""
        superdsc, geometry = self.setting.superdsc, self.setting.geometries[self.a]
        total = np.full(1, geometry.stick_dim in self.roles.depth)
        for dim in self.roles.depth:
            place = slices[dim] * superdsc.core_extent[dim] + np.arange(superdsc.core_extent[dim])
            limit = superdsc.iteration[dim] - geometry.stick_size if dim == geometry.stick_dim else 0
            total = (total[:, None] & (place >= limit)[None, :]).reshape(-1)
        return total

    def _mixes(self, a_at: Integers, members: Integers, mixed: npt.NDArray[np.bool_]) -> list[Mix]:
        found: list[Mix] = []
        batches = len(self.batches[self.a])
        step = self.setting.step_bytes(self.a)
        for cohort, row in np.argwhere(mixed).tolist()[:16]:
            at = [(int(member), int(a_at[member]) + int(self.a_rows[row])) for member in members[cohort]]
            lanes = (
                (member, first + offset + lane * step)
                for member, first in at
                for _, count, offset in self.a_runs.tolist()
                for lane in range(count)
            )
            for member, place in lanes:
                state = _state_at(self.setting, self.a, place)
                if state != DEFINED:
                    found.append(Mix(self.a, member // batches, place, state))
                    break
        return found

    def _sight(self, sighting: Sighting, rows: tuple[Integers, States], columns: tuple[Integers, States]) -> None:
        batches = len(self.batches[self.a])
        for (at, states), position in ((rows, self.a), (columns, self.b)):
            unwritten = np.argwhere(states < FIRST_MARK)
            if len(unwritten) == 0:
                continue
            member, index = (int(number) for number in unwritten[0])
            if position == self.a:
                offset = int(self.a_rows[index])
            else:
                run = int(np.searchsorted(self.b_runs[:, 0], index, side="right")) - 1
                first, _, start = self.b_runs[run].tolist()
                offset = start + (index - first) * self.setting.step_bytes(self.b)
            sighting.note(_weight(states[member, index]), position, member // batches, int(at[member]) + offset)


class TopPropagation(Propagation):
    """A selection depends on every candidate of its row."""

    def __init__(self, setting: Setting, marks: Marks) -> None:
        super().__init__(setting, marks)
        source, target = self.source, self.target = setting.inputs[0], setting.output
        shared = [d for d in setting.extents if setting.extends(source, d) and setting.extends(target, d)]
        shared += [d for d in setting.extents if not (setting.extends(source, d) or setting.extends(target, d))]
        folded = [d for d in setting.extents if setting.extends(source, d) and d not in shared]
        taken = [d for d in setting.extents if setting.extends(target, d) and d not in shared]
        self.kept = outer_sum([setting.offsets(source, d) for d in shared])
        self.folded = adjacent_runs(
            outer_sum([setting.offsets(source, d) for d in folded]), setting.step_bytes(source)
        )  # fmt: skip
        self.rows = outer_sum([setting.offsets(target, d) for d in shared])
        self.runs = adjacent_runs(outer_sum([setting.offsets(target, d) for d in taken]), setting.step_bytes(target))

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution."""
        setting, own = self.setting, starts.shadow[self.source]
        low = np.empty((setting.cores, len(self.kept)), np.uint8)
        high = np.empty_like(low)
        width, step = setting.codec(self.source).word_bytes, setting.step_bytes(self.source)
        fold_lanes(width, step, own, self.kept, self.folded, NO_SKIPS, low, high, 0, low.size)
        outcome = Outcome()
        mixed = (low != DEFINED) & (high == DEFINED)
        for core, row in np.argwhere(mixed).tolist()[:16]:
            first = int(own[core]) + int(self.kept[row])
            lanes = (first + offset + lane * step for _, n, offset in self.folded.tolist() for lane in range(n))
            place = next(lane for lane in lanes if _state_at(setting, self.source, lane) != DEFINED)
            outcome.mixes.append(Mix(self.source, core, place, _state_at(setting, self.source, place)))
        states = self.marked(np.where(mixed, DEFINED, low).astype(np.uint8))
        for core, row in np.argwhere(low < FIRST_MARK).tolist()[:1]:
            outcome.sighting.note(_weight(low[core, row]), self.source, core, int(own[core]) + int(self.kept[row]))
        columns = np.full((setting.cores, int(self.runs[:, 1].sum())), DEFINED, np.uint8)
        layout = np.array([setting.codec(self.target).word_bytes, setting.step_bytes(self.target)], np.int64)
        at = starts.shadow[self.target]
        store_outer(layout, at, self.rows, self.runs, states, columns, self.marks.clobbered, 0, states.size)
        return outcome


class GatherPropagation(Propagation):
    """Rows carry their own states; an undefined index is an error whatever it selects."""

    def __init__(self, setting: Setting, marks: Marks) -> None:
        super().__init__(setting, marks)
        superdsc = setting.superdsc
        self.index = superdsc.compute.indirect_access_indices[0]
        self.value = next(t for t, item in enumerate(superdsc.operands) if item.indirection is Indirection.VALUE)
        self.row_dim = row_dim_of(superdsc, superdsc.operands[self.value])
        rows = index_dims(superdsc)
        indexed = [dim for dim in setting.extents if dim in rows]
        rest = {dim: extent for dim, extent in setting.extents.items() if dim not in rows}
        self.index_offsets = outer_sum([setting.offsets(self.index, dim) for dim in indexed])
        self.targets = outer_sum([setting.offsets(setting.output, dim) for dim in indexed])
        operands = [setting.geometries[self.value], setting.geometries[setting.output]]
        self.nests = setting.scaled(build_nests(rest, operands))
        self.widths = np.array([setting.codec(t).word_bytes for t in (self.value, setting.output)], np.int64)

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution."""
        setting, outcome = self.setting, Outcome()
        single = np.zeros(1, np.int64)
        runs = adjacent_runs(self.index_offsets, setting.step_bytes(self.index))
        states = np.empty((setting.cores, len(self.index_offsets)), np.uint8)
        width, step = setting.codec(self.index).word_bytes, setting.step_bytes(self.index)
        own = starts.shadow[self.index]
        fold_rows(width, step, own, runs, single, NO_SKIPS, states, 0, setting.cores * len(runs))
        for core, place in np.argwhere(states != DEFINED).tolist()[:16]:
            at = int(own[core]) + int(self.index_offsets[place])
            outcome.mixes.append(Mix(self.index, core, at, int(states[core, place])))
        if outcome.mixes:
            return outcome  # nobody knows which rows would be taken
        offsets = self._row_offsets(starts.data[self.index])
        sources = (starts.shadow[self.value][:, None] + offsets).reshape(-1)
        targets = (starts.shadow[setting.output][:, None] + self.targets[None, :]).reshape(-1)
        for nest in self.nests:
            at = np.stack([sources + nest.offsets[0], targets + nest.offsets[1]])
            seen = run_nest(self, self.widths, (at, nest.loops), (nest.outer_points, nest.points))
            outcome.sighting.note(seen.weight, self.value, seen.core // len(self.targets), seen.place)
        return outcome

    def _row_offsets(self, starts: Integers) -> Integers:
        """Return the emulated byte offset of the row that each index [core, place] names, kept inside the table."""
        geometry = self.setting.geometries[self.value]
        places = starts[:, None] + self.index_offsets[None, :]
        rows = _words_at(places, self.setting.codec(self.index).word_bytes)
        if self.row_dim is None:
            return np.zeros_like(rows)
        size = geometry.stick_size if self.row_dim == geometry.stick_dim else 1
        inside = np.clip(rows, 0, geometry.extents[self.row_dim] * size - 1)
        return geometry.offsets(self.row_dim, inside) * self.setting.numerics.expansion


def _words_at(places: Integers, word_bytes: int) -> Integers:
    """Return the signed integers at emulated addresses."""
    kind = {1: np.int8, 2: np.int16, 4: np.int32}[word_bytes]
    result = np.empty(places.shape, kind)
    from spyrec.emulator.engine import NO_TABLE
    from spyrec.emulator.kernel_copy import run_copy

    targets = result.ctypes.data + np.arange(result.size, dtype=np.int64) * word_bytes
    loops = np.array([[1, 0, 0], [1, 0, 0]], np.int64)
    run_copy(word_bytes, NO_TABLE, np.stack([places.reshape(-1), targets]), loops, 0, result.size)
    return result.astype(np.int64)
