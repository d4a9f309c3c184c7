"""The plan of the matmul family: roles from the dim sets, panels packed once per distinct start, K slices in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, refuse
from spyrec.emulator.engine import Doers, Integers, JoinedCalls, KernelExecutable, Setting, StepRequest
from spyrec.emulator.footprint import box_runs, length, merge, shifted
from spyrec.emulator.geometry import adjacent_runs, outer_sum
from spyrec.emulator.kernels.product_tile import TILE_ROWS
from spyrec.emulator.kernels.products import GROUP_ROWS
from spyrec.emulator.operations.bound_calls import BoundCalls
from spyrec.emulator.operations.kept_operand import Decoding, KeptOperand
from spyrec.emulator.operations.matmul_steps import (
    NO_PADDING,
    BoundProduct,
    Forms,
    JoinedProduct,
    Keeping,
    Padding,
    ProductForm,
    Sharing,
    Tables,
)
from spyrec.emulator.operations.weight_cache import WeightCache

_PACKED_BYTES = 64 << 20
"""Most bytes of the first operand decoded at one time, a tile of rows per panel at least; the rest waits."""

_MOST_RUNS = 1 << 16
"""Runs of bytes beyond which nobody looks whether dispatches store apart."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The dims of a matmul by what they do; a batch dim that B lacks is a row dim."""

    batch: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    depth: tuple[str, ...]


def roles_of(setting: Setting) -> Roles:
    """Return the roles of the dims, from the operands' dim sets alone; errors SPY0724 for a dim that has none."""
    found: dict[str, list[str]] = {"batch": [], "rows": [], "columns": [], "depth": []}
    names = {
        (True, True, True): "batch",
        (True, False, True): "rows",
        (False, True, True): "columns",
        (True, True, False): "depth",
    }
    a, b = setting.inputs
    for dim, extent in setting.superdsc.iteration.items():
        key = (setting.extends(a, dim), setting.extends(b, dim), setting.extends(setting.output, dim))
        role = names.get(key)
        if role is not None:
            found[role].append(dim)
        elif extent != 1:
            where = [name for name, present in zip(("A", "B", "C"), key) if present]
            message = f'dim "{dim}" of extent {extent} is in {where} only and has no part in a matmul'
            raise refuse("SPY0724", message, Location(setting.file))
    return Roles(*(tuple(dims) for dims in found.values()))


class MatmulExecutable(KernelExecutable):
    """``C = A B`` summed over K; each K slice accumulates in float32, slices are added in order, rounding is once."""

    def __init__(self, setting: Setting, weights: WeightCache) -> None:
        super().__init__(setting)
        self.roles = roles = roles_of(setting)
        self.a, self.b = setting.inputs
        self.c = setting.output
        self.a_rows = self._table(self.a, roles.rows)
        self.a_runs = adjacent_runs(self._table(self.a, roles.depth), setting.step_bytes(self.a))
        self.b_depth = self._table(self.b, roles.depth)
        self.b_columns = self._table(self.b, roles.columns)
        is_hbm = setting.superdsc.operands[self.b].component is Component.HBM
        self._weights = weights
        self._kept = KeptOperand(self._decoding() if is_hbm else None, weights)
        self.c_rows = self._table(self.c, roles.rows)
        self.c_columns = self._table(self.c, roles.columns)
        self.batches = {t: self._table(t, roles.batch) for t in (self.a, self.b, self.c)}
        self.padded_depth = self._padded_depth()
        self.cohorts = self._cohorts()

    def _decoding(self) -> Decoding:
        codec, step = self.setting.codec(self.b), self.setting.step_bytes(self.b)
        return Decoding(codec.storage.value, step, codec.word_bytes, self.b_depth, self.b_columns)

    def _table(self, position: int, dims: tuple[str, ...]) -> Integers:
        return outer_sum([self.setting.offsets(position, dim) for dim in dims])

    def _cohorts(self) -> list[list[int]]:
        """Return the core positions that share an output, each list in ascending K slice order."""
        groups: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = defaultdict(list)
        for core, slices in enumerate(self.setting.superdsc.core_work_slices):
            key = tuple(index for dim, index in sorted(slices.items()) if dim not in self.roles.depth)
            groups[key].append((tuple(slices[dim] for dim in self.roles.depth), core))
        return [[core for _, core in sorted(members)] for members in groups.values()]

    def _padded_depth(self) -> npt.NDArray[np.bool_]:
        """Return [core, k]: whether k lies in the last K stick, where a zero row of B may be padding."""
        superdsc = self.setting.superdsc
        stick_dim = self.setting.geometries[self.a].stick_dim
        if stick_dim not in self.roles.depth:
            return np.zeros((self.setting.cores, len(self.b_depth)), np.bool_)
        first = superdsc.iteration[stick_dim] - self.setting.geometries[self.a].stick_size
        flags: list[npt.NDArray[np.bool_]] = []
        for slices in superdsc.core_work_slices:
            total = np.ones(1, np.bool_)
            for dim in self.roles.depth:
                place = slices[dim] * superdsc.core_extent[dim] + np.arange(superdsc.core_extent[dim])
                last = place >= first if dim == stick_dim else np.ones(len(place), np.bool_)
                total = (total[:, None] & last[None, :]).reshape(-1)
            flags.append(total)
        return np.stack(flags)

    def steps(self, request: StepRequest) -> BoundCalls:
        """Return the steps: K padding, then for some rows of A after the other packing and the product."""
        assert request.doers is Doers.THREADS, "cores share decoded operands"
        at = self._starts(request.starts)
        return self._product(at, *self._padding(at[self.b], rounds=1), rounds=1)

    @property
    def joins(self) -> bool:
        """Dispatches share operands as cores do."""
        return True

    def joined(self, starts: Integers, moves: Integers) -> JoinedCalls | None:
        """Return what does several dispatches at once, cores at ``starts`` and moved by each row of ``moves``.

        All of them then share what they decode, as the cores of one do.  ``None`` where one might store what another
        one stores.
        """
        rounds = len(moves)
        everywhere = (starts[:, None, :] + moves.T[: len(starts), :, None]).reshape(len(starts), -1)
        if not self._stores_apart(everywhere[self.c].reshape(rounds, -1)):
            return None
        at = self._starts(everywhere)
        padding, _ = self._padding(at[self.b], rounds)
        product = self._product(at, [NO_PADDING], np.zeros(len(at[self.a]), np.int64), rounds)
        extents = np.stack([self._extent_of(position, everywhere[position]) for position in (self.a, self.b, self.c)])
        return JoinedProduct(product, padding, extents)

    def _stores_apart(self, starts: Integers) -> bool:
        """Whether no two of the results at ``starts[dispatch, core]`` share a byte; cores of a cohort share theirs."""
        runs = self._runs_of(self.c)
        own = np.concatenate([np.unique(of_dispatch) for of_dispatch in starts])
        if len(own) * len(runs) > _MOST_RUNS:
            return False
        return length(merge(shifted(runs, own))) == len(own) * length(runs)

    def _runs_of(self, position: int) -> Integers:
        return box_runs(self.setting.geometries[position], self.setting.extents) * self.setting.expansion

    def _extent_of(self, position: int, starts: Integers) -> Integers:
        """Return the first and past-last emulated byte of an operand over all starts."""
        runs = self._runs_of(position)
        return np.array([starts.min() + runs[0, 0], starts.max() + runs[-1, 1]], np.int64)

    def _product(
        self, at: Mapping[int, Integers], padding: list[Padding], padding_of: Integers, rounds: int
    ) -> BoundProduct:  # fmt: skip
        """Return the steps of the cores of so many dispatches; ``at``: starts by core and batch point."""
        distinct, firsts, panels = np.unique(at[self.a], return_index=True, return_inverse=True)
        rows = self._rows_at_once(len(distinct))
        members = self._members(at, rounds)
        groups, b_starts = self._groups(at, members, min(rows, len(self.a_rows)))
        own = np.array(members)
        c_starts = at[self.c][own[:, 0]]
        sharing = Sharing(
            distinct, panels.astype(np.int64)[own], groups, b_starts, c_starts, padding, padding_of[firsts]
        )
        tables = Tables(self.a_rows, self.a_runs, self.b_depth, self.b_columns, self.c_rows, self.c_columns)
        is_hbm = [self.setting.superdsc.operands[position].component is Component.HBM for position in (self.a, self.b)]
        forms = Forms(*(self._form(position) for position in (self.a, self.b, self.c)))
        return BoundProduct(forms, tables, sharing, Keeping(self._kept, self._weights, *is_hbm), rows)

    def _form(self, position: int) -> ProductForm:
        return ProductForm(self.setting.codec(position), self.setting.step_bytes(position), position)

    def _rows_at_once(self, panels: int) -> int:
        """Return how many rows of each panel are decoded together."""
        tile_bytes = panels * len(self.b_depth) * TILE_ROWS * np.dtype(np.float32).itemsize
        return max(1, _PACKED_BYTES // tile_bytes) * TILE_ROWS

    def _padding(self, b_starts: Integers, rounds: int) -> tuple[list[Padding], Integers]:
        """Return what decides about K padding, and by core and batch point which of these is theirs.

        Cores of so many dispatches follow each other; those of each decide by themselves.
        """
        batches = len(self.batches[self.b])
        found = [NO_PADDING]
        of_core = np.zeros(rounds * self.setting.cores * batches, np.int64)
        for cores in self._padded_groups():
            places = np.flatnonzero(self.padded_depth[cores[0]]).astype(np.int64)
            for place in range(rounds * batches):
                first, batch = place // batches * self.setting.cores, place % batches
                virtual = np.array([(first + core) * batches + batch for core in cores])
                of_core[virtual] = len(found)
                found.append(Padding(np.unique(b_starts[virtual]), places))
        return found, of_core

    def _padded_groups(self) -> list[list[int]]:
        """Return the cores that have the last K stick, those together that share a batch and a slice of K."""
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        padded = set(np.nonzero(self.padded_depth)[0].tolist())
        for core, slices in enumerate(self.setting.superdsc.core_work_slices):
            if core in padded:
                groups[tuple(slices[dim] for dim in (*self.roles.batch, *self.roles.depth))].append(core)
        return list(groups.values())

    def _starts(self, starts: Integers) -> dict[int, Integers]:
        """Return each operand's starts by core and batch point: a batch point of a core is a core of its own."""
        return {t: (starts[t][:, None] + table[None, :]).reshape(-1) for t, table in self.batches.items()}

    def _members(self, at: Mapping[int, Integers], rounds: int) -> list[list[int]]:
        """Return the cohorts of every batch point of each dispatch, those that share their B side by side."""
        batches, cores = len(self.batches[self.a]), self.setting.cores
        members = [
            [(first + core) * batches + batch for core in cohort]
            for first in range(0, rounds * cores, cores)
            for cohort in self.cohorts
            for batch in range(batches)
        ]
        return sorted(members, key=lambda cohort: [int(at[self.b][core]) for core in cohort])

    def _groups(self, at: Mapping[int, Integers], members: list[list[int]], rows: int) -> tuple[Integers, Integers]:
        """Return first and past-last of the members that share a decoding of B, and the starts of that."""
        most_members = max(1, GROUP_ROWS // rows)
        shared: list[list[int]] = []
        b_starts: list[list[int]] = []
        for place, cohort in enumerate(members):
            own = [int(at[self.b][core]) for core in cohort]
            if b_starts and b_starts[-1] == own and place - shared[-1][0] < most_members:
                shared[-1][1] = place + 1
            else:
                b_starts.append(own)
                shared.append([place, place + 1])
        return np.array(shared, np.int64), np.array(b_starts, np.int64)
