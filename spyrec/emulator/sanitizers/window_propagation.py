"""Carrying states through operations that slide a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from spyrec.emulator.engine import Setting
from spyrec.emulator.geometry import adjacent_runs, core_firsts, outer_sum, window_elements, window_inside
from spyrec.emulator.rules.races import combination_owners
from spyrec.emulator.sanitizers.kernel_shadow import DEFINED, FIRST_MARK
from spyrec.emulator.sanitizers.kernel_shadow_folds import fold_lanes, store_outer, zero_rows
from spyrec.emulator.sanitizers.propagation import NO_SKIPS, Marks, Outcome, Propagation, Starts, weight_of

Integers = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]
Scalar = TypeVar("Scalar", bound=np.generic)

_ONE_ELEMENT = np.array([[0, 1, 0]], np.int64)


class WindowPropagation(Propagation):
    """A result is as defined as the worst element of its window, and the worst weight; padding is defined.

    Channels of the result that are padding are computed like others: which results count shows where they are used.
    Channels that are summed over and whose weights are zero are padding, and exempt.
    """

    def __init__(self, setting: Setting, marks: Marks) -> None:
        super().__init__(setting, marks)
        self.dims = [dim for dim in setting.extents if setting.extends(setting.output, dim)]
        self.folded = [dim for dim in setting.extents if dim not in self.dims]
        source = setting.inputs[0]
        self.elements = window_elements(setting.superdsc, source)
        self.inside = window_inside(setting.superdsc, source, setting.geometries[source].extents)
        self.firsts = core_firsts(setting.superdsc, source)
        self.windows = {axis: setting.superdsc.padding_sizes[axis].window_dim for axis in self.elements}
        self.owners = np.array(combination_owners(setting))
        stored = outer_sum([setting.offsets(setting.output, dim) for dim in self.dims])
        self.target_runs = adjacent_runs(stored, setting.step_bytes(setting.output))
        stick_dim = setting.geometries[source].stick_dim
        self.summed = stick_dim if len(setting.inputs) > 1 and stick_dim in self.folded else None
        self.reads_data = self.summed is not None

    def run(self, starts: Starts) -> Outcome:
        """Carry the states of one execution."""
        setting, outcome = self.setting, Outcome()
        shape = [setting.extents[dim] for dim in self.dims]
        worst = np.full((setting.cores, *shape), DEFINED, np.uint8)
        for position in setting.inputs:
            for cores in self._groups(position):
                for kept, is_padding, runs in self._walks(position, cores[0]):
                    shadow = starts.shadow[position, cores]
                    states = self._folded(position, shadow, kept.reshape(-1), runs, NO_SKIPS)
                    if self.summed is not None and position == setting.inputs[0] and (states != DEFINED).any():
                        skipped = self._absent(starts, self.summed, cores)
                        states = self._folded(position, shadow, kept.reshape(-1), runs, skipped)
                    states = states.reshape(-1, *kept.shape)
                    states = np.where(is_padding, np.uint8(DEFINED), states).astype(np.uint8)
                    self._sight(outcome, (position, cores), starts, kept, states)
                    worst[cores] = np.minimum(worst[cores], states)
        firsts = [int(np.flatnonzero(self.owners == owner)[0]) for owner in range(int(self.owners.max()) + 1)]
        joined = np.stack([worst[self.owners == owner].min(axis=0) for owner in range(len(firsts))])
        self._store(starts, firsts, self.marked(joined.reshape(len(firsts), -1)))
        return outcome

    def _groups(self, position: int) -> list[list[int]]:
        """Return the cores whose windows have padding alike: in a divided axis outer ones have more of it."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for core in range(self.setting.cores):
            # where the axis's first element lies matters only where there is padding
            own = self.inside.items() if position == self.setting.inputs[0] else ()
            firsts = tuple(0 if flags[core].all() else int(self.firsts[axis][core]) for axis, flags in own)
            key = (firsts, *(flags[core].tobytes() for _, flags in own))
            groups.setdefault(key, []).append(core)
        return list(groups.values())

    def _walks(self, position: int, core: int) -> Iterator[tuple[Integers, npt.NDArray[np.bool_], Integers]]:
        """Yield, tap by tap, where the operand's elements of each result of a core lie, whether they are padding, and
        what is folded behind each.
        """
        setting = self.setting
        is_source = position == setting.inputs[0]
        taps = [
            dim for dim in self.folded if (dim in self.windows.values() if is_source else self._extends(position, dim))
        ]
        rest = [dim for dim in self.folded if dim not in taps and self._extends(position, dim)]
        behind = outer_sum([setting.offsets(position, dim) for dim in rest])
        runs = adjacent_runs(behind, setting.step_bytes(position)) if rest else _ONE_ELEMENT
        for point in product(*(range(setting.extents[dim]) for dim in taps)):
            at = dict(zip(taps, point, strict=True))
            yield *self._places(position, at, core if is_source else None), runs

    def _extends(self, position: int, dim: str) -> bool:
        return self.setting.extends(position, dim)

    def _places(self, position: int, at: dict[str, int], core: int | None) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Return the places of one tap, and which are padding; ``core``: whose windows, where they slide over it."""
        setting = self.setting
        geometry, expansion = setting.geometries[position], setting.expansion
        kept, is_padding = np.zeros([1] * len(self.dims), np.int64), np.zeros([1] * len(self.dims), np.bool_)
        for axis, dim in enumerate(self.dims):
            if core is not None and dim in self.elements:
                tap = at.get(self.windows[dim], 0)
                outside = ~self.inside[dim][core][:, tap]
                # the axis's first element is always there
                elements = np.where(outside, -self.firsts[dim][core], self.elements[dim][:, tap])
                offsets = geometry.offsets(dim, elements) * expansion
                is_padding = is_padding | self._along(axis, outside)
            elif self._extends(position, dim):
                offsets = setting.offsets(position, dim)
            else:
                continue
            kept = kept + self._along(axis, offsets)
        own = (setting.offsets(position, dim)[place] for dim, place in at.items() if self._extends(position, dim))
        return kept + sum(own), is_padding

    def _along(self, axis: int, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        return values.reshape([-1 if other == axis else 1 for other in range(len(self.dims))])

    def _absent(self, starts: Starts, summed: str, cores: Sequence[int]) -> States:
        """Return [core, channel]: those of the last stick whose weights are zero on every core that has them."""
        setting, superdsc = self.setting, self.setting.superdsc
        source, weights = setting.inputs[0], setting.inputs[1]
        both = [dim for dim in setting.extents if self._extends(source, dim) and self._extends(weights, dim)]
        others = [dim for dim in setting.extents if self._extends(weights, dim) and dim not in both]
        step, width = setting.step_bytes(weights), setting.codec(weights).word_bytes
        runs = adjacent_runs(outer_sum([setting.offsets(weights, dim) for dim in others]), step)
        last = superdsc.iteration[summed] - setting.geometries[source].stick_size
        skipped = np.zeros((len(cores), setting.extents[summed]), np.uint8)
        for row, core in enumerate(cores):
            slices = superdsc.core_work_slices
            channels = slices[core][summed] * superdsc.core_extent[summed] + np.arange(setting.extents[summed])
            places = np.flatnonzero(channels >= last)
            alike = [at for at, own in enumerate(slices) if all(own[dim] == slices[core][dim] for dim in both)]
            at = np.unique(starts.data[weights, alike])
            zero = np.ones((len(at), len(places)), np.uint8)
            zero_rows(width, step, at, setting.offsets(weights, summed)[places], runs, zero)
            skipped[row, places] = zero.all(axis=0)
        return skipped

    def _folded(self, position: int, shadow: Integers, kept: Integers, runs: Integers, skipped: States) -> States:
        """Return the worst state [core, result] of an operand; ``shadow``: where each of these cores starts.

        ``skipped``: [core, folded element], what does not count.
        """
        setting = self.setting
        low = np.empty((len(shadow), len(kept)), np.uint8)
        high = np.empty_like(low)
        layout = setting.codec(position).word_bytes, setting.step_bytes(position)
        fold_lanes(*layout, np.ascontiguousarray(shadow), kept, runs, skipped, low, high, 0, low.size)
        return low

    def _sight(
        self, outcome: Outcome, read: tuple[int, list[int]], starts: Starts, kept: Integers, states: States
    ) -> None:
        """Note the first element that nobody wrote; ``read``: an operand, and the cores that read it."""
        position, cores = read
        for member, *place in np.argwhere(states < FIRST_MARK).tolist()[:1]:
            at = int(starts.shadow[position, cores[member]]) + int(kept[tuple(place)])
            outcome.sighting.note(weight_of(int(states[member, *place])), position, cores[member], at)

    def _store(self, starts: Starts, firsts: Sequence[int], states: States) -> None:
        setting = self.setting
        layout = np.array([setting.codec(setting.output).word_bytes, setting.step_bytes(setting.output)], np.int64)
        rows = np.zeros(1, np.int64)
        row_states = np.full((len(states), 1), DEFINED, np.uint8)
        self.forget_lanes(starts.shadow)
        at = np.ascontiguousarray(starts.shadow[setting.output, firsts])
        store_outer(
            layout, at, rows, self.target_runs, row_states, states, self.marks.clobbered, 0, len(states)
        )  # fmt: skip
