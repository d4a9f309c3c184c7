"""Carrying states through what depends on data, or moves between cores: topk, rows that an index names, shuffles."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Indirection
from spyrec.emulator.engine import Setting
from spyrec.emulator.geometry import adjacent_runs, build_nests, index_dims, index_of, outer_sum, row_dim_of
from spyrec.emulator.kernels.copies import run_copy
from spyrec.emulator.kernels.nests import NO_TABLE
from spyrec.emulator.operations.shuffle import Shuffle
from spyrec.emulator.sanitizers.kernel_shadow import DEFINED, FIRST_MARK
from spyrec.emulator.sanitizers.kernel_shadow_folds import fold_lanes, fold_rows, store_outer
from spyrec.emulator.sanitizers.propagation import (
    NO_SKIPS,
    Marks,
    Mix,
    Outcome,
    Propagation,
    Starts,
    run_nest,
    state_at,
    weight_of,
)
from spyrec.emulator.sanitizers.touches import Touches, is_small, touch

Integers = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]


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
        self.taken = outer_sum([setting.offsets(target, d) for d in taken])
        self.runs = adjacent_runs(self.taken, setting.step_bytes(target))
        self.candidates = outer_sum([setting.offsets(source, d) for d in (*shared, *folded)])

    @cached_property
    def touches(self) -> Touches | None:
        """What happens where all candidates are defined."""
        setting = self.setting
        if not is_small(setting, (self.source, self.target)):
            return None
        stored = (self.rows[:, None] + self.taken).reshape(-1)
        return Touches(
            (touch(setting, self.source, self.candidates),),
            (touch(setting, self.target, stored),),
        )

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
            place = next(lane for lane in lanes if state_at(setting, self.source, lane) != DEFINED)
            outcome.mixes.append(Mix(self.source, core, place, state_at(setting, self.source, place)))
        states = self.marked(np.where(mixed, DEFINED, low).astype(np.uint8))
        for core, row in np.argwhere(low < FIRST_MARK).tolist()[:1]:
            outcome.sighting.note(weight_of(low[core, row]), self.source, core, int(own[core]) + int(self.kept[row]))
        columns = np.full((setting.cores, int(self.runs[:, 1].sum())), DEFINED, np.uint8)
        layout = np.array([setting.codec(self.target).word_bytes, setting.step_bytes(self.target)], np.int64)
        at = starts.shadow[self.target]
        store_outer(layout, at, self.rows, self.runs, states, columns, self.marks.clobbered, 0, states.size)
        return outcome


class IndexedPropagation(Propagation):
    """Rows that an index names carry their own states; an undefined index is an error whatever it selects."""

    reads_data = True

    def __init__(self, setting: Setting, marks: Marks) -> None:
        super().__init__(setting, marks)
        superdsc = setting.superdsc
        rows = index_dims(superdsc)
        self.indexed = [dim for dim in setting.extents if dim in rows]
        rest = {dim: extent for dim, extent in setting.extents.items() if dim not in rows}
        self.positions = (*setting.inputs, setting.output)
        self.nests = setting.scaled(build_nests(rest, [setting.geometries[t] for t in self.positions]))
        self.widths = np.array([setting.codec(t).word_bytes for t in self.positions], np.int64)

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution."""
        outcome = Outcome()
        for index in self.setting.superdsc.compute.indirect_access_indices:
            outcome.mixes += self._undefined(index, starts.shadow[index])
        if outcome.mixes:
            return outcome  # nobody knows which rows would be taken
        rows = [self._offsets(position, starts.data) for position in self.positions]
        used = [(starts.shadow[t][:, None] + own).reshape(-1) for t, own in zip(self.positions, rows, strict=True)]
        each = len(used[0]) // self.setting.cores
        for nest in self.nests:
            at = np.stack([own + offset for own, offset in zip(used, nest.offsets.tolist(), strict=True)])
            # of rows that are stored twice the later one's states stay: no threads share them
            seen = run_nest(self, self.widths, (at, nest.loops), (nest.outer_points, 0))
            outcome.sighting.note(seen.weight, self.positions[seen.operand], seen.core // each, seen.place)
        return outcome

    def _undefined(self, index: int, own: Integers) -> list[Mix]:
        setting, single = self.setting, np.zeros(1, np.int64)
        offsets = outer_sum([setting.offsets(index, dim) for dim in self.indexed])
        runs = adjacent_runs(offsets, setting.step_bytes(index))
        states = np.empty((setting.cores, len(offsets)), np.uint8)
        width, step = setting.codec(index).word_bytes, setting.step_bytes(index)
        fold_rows(width, step, own, runs, single, NO_SKIPS, states, 0, setting.cores * len(runs))
        found = np.argwhere(states != DEFINED).tolist()[:16]
        return [
            Mix(index, core, int(own[core]) + int(offsets[place]), int(states[core, place])) for core, place in found
        ]

    def _offsets(self, position: int, starts: Integers) -> Integers:
        """Return the emulated bytes ``[core, index]`` from an operand's start; rows are kept inside of the table."""
        setting = self.setting
        operand = setting.superdsc.operands[position]
        if operand.indirection is not Indirection.VALUE:
            return outer_sum([setting.offsets(position, dim) for dim in self.indexed])[None, :]
        index = index_of(setting.superdsc, operand)
        places = starts[index][:, None] + outer_sum([setting.offsets(index, dim) for dim in self.indexed])[None, :]
        rows = _words_at(places, setting.codec(index).word_bytes)
        geometry, dim = setting.geometries[position], row_dim_of(setting.superdsc, operand)
        if dim is None:
            return np.zeros_like(rows)
        size = geometry.stick_size if dim == geometry.stick_dim else 1
        inside = np.clip(rows, 0, geometry.extents[dim] * size - 1)
        return geometry.offsets(dim, inside) * setting.expansion


class ShufflePropagation(Propagation):
    """Elements carry their states to other cores."""

    def __init__(self, setting: Setting, marks: Marks) -> None:
        super().__init__(setting, marks)
        self.work = Shuffle(setting)

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution."""
        source, outcome = self.setting.inputs[0], Outcome()
        words = self.work.load(starts.shadow)
        states = words.view(np.uint8).reshape(*words.shape, -1)
        low = states.min(axis=-1)
        for core, place in np.argwhere(low < FIRST_MARK).tolist()[:1]:
            at = int(starts.shadow[source, core] + self.work.source_offsets()[place])
            outcome.sighting.note(weight_of(int(low[core, place])), source, core, at)
        states[:] = self.marked(states)
        self.work.store(starts.shadow, words)
        return outcome


def _words_at(places: Integers, word_bytes: int) -> Integers:
    """Return the signed integers at emulated addresses."""
    kind = {1: np.int8, 2: np.int16, 4: np.int32}[word_bytes]
    result = np.empty(places.shape, kind)
    targets = result.ctypes.data + np.arange(result.size, dtype=np.int64) * word_bytes
    loops = np.array([[1, 0, 0], [1, 0, 0]], np.int64)
    run_copy(word_bytes, NO_TABLE, np.stack([places.reshape(-1), targets]), loops, 0, result.size)
    return result.astype(np.int64)
