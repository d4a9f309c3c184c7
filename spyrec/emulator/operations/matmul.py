"""The plan of the matmul family: roles from the dim sets, panels packed once per distinct start, K slices in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component
from spyrec.diagnostics import Location, refuse
from spyrec.emulator.engine import Doers, Executable, Integers, Setting, StepRequest
from spyrec.emulator.geometry import adjacent_runs, outer_sum
from spyrec.emulator.kernels.codec import DECODERS
from spyrec.emulator.kernels.jit import TILE_ROWS
from spyrec.emulator.kernels.products import GROUP_ROWS, Product, codecs_of_product, find_zero_rows, pack_rows
from spyrec.emulator.operations.bound_calls import BoundCalls
from spyrec.emulator.operations.kept_operand import Decoding, KeptOperand
from spyrec.emulator.operations.matmul_steps import BoundProduct, Forms, Keeping, Sharing, Tables
from spyrec.emulator.operations.weight_cache import WeightCache

Floats = npt.NDArray[np.float32]

_PACKED_BYTES = 64 << 20
"""Most bytes of the first operand decoded at one time, a tile of rows per panel at least; the rest waits."""

_NONE = np.zeros(0, np.int64)


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


class MatmulExecutable(Executable):
    """``C = A B`` summed over K; each K slice accumulates in float32, slices are added in order, rounding is once."""

    def __init__(self, setting: Setting, weights: WeightCache) -> None:
        self.setting = setting
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
        used = (*roles.batch, *roles.rows, *roles.columns, *roles.depth)
        extents = [setting.extents[dim] for dim in used]
        self.products = setting.cores * int(np.prod(extents, dtype=np.int64))

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

    @property
    def is_bindable(self) -> bool:
        """Whether all rows are packed together."""
        panels = self.setting.cores * len(self.batches[self.a])
        return self._rows_at_once(panels) >= len(self.a_rows)

    def steps(self, request: StepRequest) -> BoundCalls:
        """Return the steps: K padding, packing, the product."""
        assert request.doers is Doers.THREADS, "cores share decoded operands"
        at = self._starts(request.starts)
        members = self._members(at)
        distinct, firsts, panels = np.unique(at[self.a], return_index=True, return_inverse=True)
        groups, b_starts = self._groups(at, members, len(self.a_rows))
        own = np.array(members)
        padding = self._padding(at[self.b])
        zero = [padding[int(core)] for core in firsts]
        sharing = Sharing(
            distinct, panels.astype(np.int64)[own], groups, b_starts, at[self.c][own[:, 0]],
            zero,
        )  # fmt: skip
        tables = Tables(self.a_rows, self.a_runs, self.b_depth, self.b_columns, self.c_rows, self.c_columns)
        setting = self.setting
        a, b, c = (setting.codec(position) for position in (self.a, self.b, self.c))
        codecs = codecs_of_product(b, setting.step_bytes(self.b), c, setting.step_bytes(self.c))
        forms = Forms(a, b, setting.step_bytes(self.a), (self.a, self.b, self.c), codecs)
        is_hbm = [setting.superdsc.operands[position].component is Component.HBM for position in (self.a, self.b)]
        return BoundProduct(forms, tables, sharing, Keeping(self._kept, self._weights, *is_hbm), self.products)

    def _padding(self, b_starts: Integers) -> list[tuple[Integers, Integers]]:
        """Return of each core and batch which addresses of B decide what is K padding, and which places of K may be."""
        batches = len(self.batches[self.b])
        found = [(_NONE, _NONE)] * (self.setting.cores * batches)
        for cores in self._padded_groups():
            places = np.flatnonzero(self.padded_depth[cores[0]])
            for batch in range(batches):
                virtual = [core * batches + batch for core in cores]
                distinct = np.unique(b_starts[virtual])
                for core in virtual:
                    found[core] = distinct, places
        return found

    def _padded_groups(self) -> list[list[int]]:
        """Return the cores that have the last K stick, those together that share a batch and a slice of K."""
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for core, slices in enumerate(self.setting.superdsc.core_work_slices):
            if self.padded_depth[core].any():
                groups[tuple(slices[dim] for dim in (*self.roles.batch, *self.roles.depth))].append(core)
        return list(groups.values())

    def _starts(self, starts: Integers) -> dict[int, Integers]:
        """Return each operand's starts by core and batch point: a batch point of a core is a core of its own."""
        return {t: (starts[t][:, None] + table[None, :]).reshape(-1) for t, table in self.batches.items()}

    def _members(self, at: Mapping[int, Integers]) -> list[list[int]]:
        """Return the cohorts of every batch point, those that share their B side by side."""
        batches = len(self.batches[self.a])
        members = [[core * batches + batch for core in cohort] for cohort in self.cohorts for batch in range(batches)]
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

    def run(self, starts: Integers) -> None:
        """Execute once."""
        batches = len(self.batches[self.a])
        at = self._starts(starts)
        members = self._members(at)
        skipped = self._zero_rows(at[self.b], batches)
        rows = self._rows_at_once(len(np.unique(at[self.a])))
        for first in range(0, len(self.a_rows), rows):
            self._run_rows(slice(first, first + rows), at, members, skipped)

    def _rows_at_once(self, panels: int) -> int:
        """Return how many rows of each panel are decoded together; a row's result does not depend on the others."""
        tile_bytes = panels * len(self.b_depth) * TILE_ROWS * np.dtype(np.float32).itemsize
        return max(1, _PACKED_BYTES // tile_bytes) * TILE_ROWS

    def _run_rows(
        self, rows: slice, at: Mapping[int, Integers], members: list[list[int]], skipped: npt.NDArray[np.uint8]
    ) -> None:
        distinct, firsts, panels = np.unique(at[self.a], return_index=True, return_inverse=True)
        shared, b_starts = self._groups(at, members, len(self.a_rows[rows]))
        members_of = np.array(members)
        count = len(distinct) * -(-len(self.a_rows[rows]) // TILE_ROWS) * TILE_ROWS * len(self.b_depth)
        with self._weights.workspace.floats(count) as packed, self._kept.panels(b_starts) as b_panels:
            self._pack(distinct, skipped[firsts], self.a_rows[rows], packed)
            c_starts = at[self.c][members_of[:, 0]]
            product = Product(
                shared, b_starts, b_panels, panels.astype(np.int64)[members_of], c_starts, packed,
                self.b_depth, self.b_columns, self.c_rows[rows], self.c_columns,
            )  # fmt: skip
            self._multiply(product)

    def _zero_rows(self, b_starts: Integers, batches: int) -> npt.NDArray[np.uint8]:
        """Return [core and batch, k]: K padding, a row of the last K stick that is zero in every column of B."""
        setting = self.setting
        skipped = np.zeros((len(b_starts), len(self.b_depth)), np.uint8)
        code = setting.codec(self.b).storage.value
        for cores in self._padded_groups():
            places = np.flatnonzero(self.padded_depth[cores[0]])
            for batch in range(batches):
                virtual = [core * batches + batch for core in cores]
                distinct = np.unique(b_starts[virtual])
                zero = find_zero_rows(code, distinct, self.b_depth[places], self.b_columns).all(axis=0)
                skipped[np.array(virtual)[:, None], places[None, :]] = zero
        return skipped

    def _pack(self, a_starts: Integers, skipped: npt.NDArray[np.uint8], a_rows: Integers, packed: Floats) -> None:
        """Decode the panels that begin at ``a_starts``; ``skipped[panel, k]``: see ``pack_rows``."""
        setting = self.setting
        decode, step = DECODERS[setting.codec(self.a).storage.value].address, setting.step_bytes(self.a)
        arrays = (a_starts, np.ascontiguousarray(a_rows), self.a_runs, skipped, packed)
        starts, rows, runs, skips, target = (array.ctypes.data for array in arrays)
        sizes = len(a_rows), len(self.a_runs), len(self.b_depth)

        def part(low: int, high: int) -> None:
            pack_rows(decode, step, starts, rows, sizes[0], runs, sizes[1], skips, sizes[2], target, low, high)

        setting.threads.run(len(a_starts) * -(-len(a_rows) // TILE_ROWS), packed.size, part)

    def _multiply(self, product: Product) -> None:
        setting = self.setting
        b, c = setting.codec(self.b), setting.codec(self.c)
        codecs = codecs_of_product(b, setting.step_bytes(self.b), c, setting.step_bytes(self.c))
        setting.threads.run(product.tasks, self.products, product.runner(codecs))
