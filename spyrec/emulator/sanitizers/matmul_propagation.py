"""Carrying states through the matmul family."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spyrec.emulator.engine import Setting
from spyrec.emulator.geometry import adjacent_runs, outer_sum
from spyrec.emulator.operations.matmul import roles_of
from spyrec.emulator.sanitizers.kernel_shadow import DEFINED, FIRST_MARK
from spyrec.emulator.sanitizers.kernel_shadow_folds import fold_lanes, fold_rows, store_outer, zero_rows
from spyrec.emulator.sanitizers.propagation import (
    NO_SKIPS,
    Marks,
    Mix,
    Outcome,
    Propagation,
    Sighting,
    Starts,
    state_at,
    weight_of,
)
from spyrec.emulator.sanitizers.touches import Touches, is_small, touch

Integers = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]


class MatmulPropagation(Propagation):
    """``C[m, n]`` is as defined as row m of A and column n of B; K padding where B is zero everywhere is exempt."""

    reads_data = True

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

    @cached_property
    def touches(self) -> Touches | None:
        """What happens where A and B are defined."""
        setting, roles = self.setting, self.roles
        if not is_small(setting, (self.a, self.b, self.c)):
            return None
        inputs = ((self.a, roles.rows + roles.depth), (self.b, roles.depth + roles.columns))
        loads = tuple(touch(setting, position, self._table(position, roles.batch + dims)) for position, dims in inputs)
        stored = self._table(self.c, roles.batch + roles.rows + roles.columns)
        return Touches(loads, (touch(setting, self.c, stored, [cohort[0] for cohort in self.cohorts]),))

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
                starts = np.unique(b_at[own])
                zero = np.ones((len(starts), len(places)), np.uint8)
                zero_rows(width, step, starts, self.b_depth[places], self.b_runs, zero)
                skipped[own[:, None], places[None, :]] = zero.all(axis=0)
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
                state = state_at(self.setting, self.a, place)
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
            sighting.note(weight_of(states[member, index]), position, member // batches, int(at[member]) + offset)
