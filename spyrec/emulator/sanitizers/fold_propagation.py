"""Carrying states through reductions and the layer norm statistics."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from spyrec.emulator.engine import Setting
from spyrec.emulator.geometry import adjacent_runs, outer_sum
from spyrec.emulator.operations.reduction_tables import FoldTables
from spyrec.emulator.sanitizers.kernel_shadow import DEFINED, FIRST_MARK
from spyrec.emulator.sanitizers.kernel_shadow_folds import fold_lanes, fold_rows, store_outer
from spyrec.emulator.sanitizers.propagation import (
    Marks,
    Mix,
    Outcome,
    Propagation,
    Sighting,
    Starts,
    state_at,
    weight_of,
)
from spyrec.emulator.sanitizers.touches import Touch, Touches, is_small, touch
from spyrec.hardware.target import STICK_BYTES

Integers = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]


class FoldPropagation(Propagation):
    """Reductions and the layer norm statistics, over the cores that share a result; masked lanes do not count."""

    def __init__(self, setting: Setting, marks: Marks, lanes: int) -> None:
        super().__init__(setting, marks)
        self.lanes = lanes
        self.tables = FoldTables.of(setting)
        self.source = setting.inputs[0]
        self.target_runs = adjacent_runs(
            outer_sum([setting.offsets(setting.output, dim) for dim in self.tables.kept]),
            setting.step_bytes(setting.output),
        )

    @cached_property
    def touches(self) -> Touches | None:
        """What happens where all lanes that count are defined."""
        setting, output, masked = self.setting, self.setting.output, self.tables.masked
        if not is_small(setting, (self.source, output)):
            return None
        kept = outer_sum([setting.offsets(self.source, dim) for dim in self.tables.kept])
        folded = outer_sum([setting.offsets(self.source, dim) for dim in self.tables.folded])
        shown = masked == 0 if masked.shape[1] else np.ones((setting.cores, len(folded)), np.bool_)
        patterns, group = np.unique(shown, axis=0, return_inverse=True)
        loads = tuple(
            touch(setting, self.source, (kept[:, None] + folded[pattern]).reshape(-1), np.flatnonzero(group == number))
            for number, pattern in enumerate(patterns)
        )
        stored = outer_sum([setting.offsets(output, dim) for dim in self.tables.kept])
        lanes = np.arange(self.lanes, dtype=np.int64) * setting.step_bytes(output)
        firsts = [cohort[0] for cohort in self.tables.cohorts]
        stores = touch(setting, output, (stored[:, None] + lanes).reshape(-1), firsts)
        sticks = self.forgotten_sticks()
        runs = np.stack([sticks, sticks + STICK_BYTES * setting.expansion], axis=1)
        forgets = (Touch(output, np.arange(setting.cores), runs),) if len(sticks) else ()
        return Touches(loads, (stores,), forgets)

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution."""
        tables, setting = self.tables, self.setting
        own = starts.shadow[self.source]
        low, high = self._folded(own)
        members = np.array(tables.cohorts)
        worst, best = low[members].min(axis=1), high[members].max(axis=1)
        outcome = Outcome()
        mixed = (worst != DEFINED) & (best == DEFINED)
        if tables.folds_lanes and mixed.any():
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
        tables, setting = self.tables, self.setting
        width, step = setting.codec(self.source).word_bytes, setting.step_bytes(self.source)
        low = np.empty((setting.cores, tables.results), np.uint8)
        high = np.zeros((setting.cores, tables.results), np.uint8)

        def lanes(first: int, last: int) -> None:
            fold_lanes(width, step, own, tables.kept_table, tables.folded_table, tables.masked, low, high, first, last)

        def rows(first: int, last: int) -> None:
            fold_rows(width, step, own, tables.kept_table, tables.folded_table, tables.masked, low, first, last)

        tasks = setting.cores * len(tables.kept_table)
        setting.threads.run(tasks, setting.cores * tables.elements, lanes if tables.folds_lanes else rows)
        return low, high

    def _mixes(self, starts: Starts, low: States, mixed: npt.NDArray[np.bool_]) -> list[Mix]:
        found: list[Mix] = []
        for cohort, result in np.argwhere(mixed).tolist()[:16]:
            for core in self.tables.cohorts[cohort]:
                if low[core, result] != DEFINED:
                    at = int(starts.shadow[self.source, core]) + int(self.tables.kept_table[result])
                    place, state = self._first_undefined(at, core)
                    found.append(Mix(self.source, core, place, state))
                    break
        return found

    def _first_undefined(self, at: int, core: int) -> tuple[int, int]:
        tables = self.tables
        step = self.setting.step_bytes(self.source)
        for first, count, offset in tables.folded_table.tolist():
            for lane in range(count):
                if not (tables.masked.shape[1] and tables.masked[core, first + lane]):
                    state = state_at(self.setting, self.source, at + offset + lane * step)
                    if state != DEFINED:
                        return at + offset + lane * step, state
        raise AssertionError(at)

    def _sight(self, sighting: Sighting, own: Integers, low: States) -> None:
        core, result = (int(number) for number in np.argwhere(low == low.min())[0])
        table = self.tables.kept_table
        if self.tables.folds_lanes:
            place, _ = self._first_undefined(int(own[core]) + int(table[result]), core)
        else:
            run = int(np.searchsorted(table[:, 0], result, side="right")) - 1
            first, _, offset = table[run].tolist()
            at = int(own[core]) + offset + (result - first) * self.setting.step_bytes(self.source)
            places = (at + folded for folded in self.tables.folded_table.tolist())
            place = next(p for p in places if state_at(self.setting, self.source, p) == low[core, result])
        sighting.note(weight_of(low[core, result]), self.source, core, place)
