"""Steps of a fold, bound to the addresses of one launch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.device_ops.record import Accumulator
from spyrec.emulator.engine import Setting
from spyrec.emulator.geometry import outer_sum
from spyrec.emulator.kernels.codec import DECODERS, ROUNDERS
from spyrec.emulator.kernels.dl16 import GROUP
from spyrec.emulator.kernels.fold_steps import (
    FoldRecord,
    StoreRecord,
    fold_lanes_dl16_step,
    fold_lanes_step,
    fold_rows_dl16_step,
    fold_rows_step,
    hide_lanes,
    hide_row,
    store_folds_step,
)
from spyrec.emulator.kernels.folds import ROWS, fold_functions, fold_table, pattern_fold
from spyrec.emulator.kernels.records import Held
from spyrec.emulator.numerics import Codec, ElementStorage
from spyrec.emulator.operations.bound_calls import KernelStep
from spyrec.emulator.operations.reduction_tables import FoldTables

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

_FEWEST_CORES = 8  # fewer leave a thread waiting where cores are the tasks


@dataclass(frozen=True, slots=True, eq=False)
class LaneFold:
    """What is folded on every core and what becomes of it.

    ``kinds`` and ``factors``: one per result of a place; results stand ``lane_bytes`` apart.  ``places``: byte offsets
    of the results from the output's start.
    """

    kinds: tuple[Accumulator, ...]
    factors: tuple[float, ...]
    tables: FoldTables
    source: Codec
    source_bytes: int
    target: Codec
    lane_bytes: int
    places: Integers

    @classmethod
    def of(cls, setting: Setting, kinds: tuple[Accumulator, ...], factors: tuple[float, ...]) -> LaneFold:
        """Return the fold of a setting."""
        source, target, tables = setting.inputs[0], setting.output, FoldTables.of(setting)
        return cls(
            kinds=kinds,
            factors=factors,
            tables=tables,
            source=setting.codec(source),
            source_bytes=setting.step_bytes(source),
            target=setting.codec(target),
            lane_bytes=setting.step_bytes(target),
            places=outer_sum([setting.offsets(target, dim) for dim in tables.kept]),
        )

    def of_boxes(self, cores: Integers) -> LaneFold:
        """Return the fold of boxes of the cores at these positions, each of which keeps its results."""
        return replace(self, tables=self.tables.of_boxes(cores))

    @property
    def cores(self) -> int:
        """Cores used."""
        return len(self.tables.masked)

    @property
    def _is_direct(self) -> bool:
        """Whether the input is whole groups of DLFloat16 without a mask."""
        tables = self.tables
        runs = tables.folded_table if tables.folds_lanes else tables.kept_table
        is_dl16 = self.source.storage is ElementStorage.DL16
        return is_dl16 and tables.masked.shape[1] == 0 and not (runs[:, 1] % GROUP).any()

    @property
    def _has_even_runs(self) -> bool:
        """Whether the lanes are folded run by run, all of them as long."""
        tables = self.tables
        return tables.folds_lanes and bool((tables.folded_table[:, 1] == tables.folded_table[0, 1]).all())

    def _run_offsets(self) -> Integers:
        return np.ascontiguousarray(self.tables.folded_table[:, 2])

    @property
    def _tasks_per_core(self) -> int:
        return -(-self.tables.results // ROWS) if self.tables.folds_lanes else len(self.tables.kept_table)

    def room(self) -> Doubles:
        """Return room for the partial results ``[kind, core, result]``."""
        return np.empty((len(self.kinds), self.cores, len(self.places)), np.float64)

    def steps(self, rows: tuple[int, int], sources: Integers, targets: Integers, out: Doubles) -> list[KernelStep]:
        """Return the steps; ``rows``: of the movement, of what is read and of what is stored; ``out``: the room."""
        is_alone = len(self.tables.cohorts[0]) == 1 and self.cores >= _FEWEST_CORES
        # In the cores' order where each stores its own results.
        members = np.arange(self.cores)[:, None] if is_alone else np.array(self.tables.cohorts, np.int64)
        store = self._store(rows[1], members, targets, out)
        if is_alone:
            return [self._fold(rows[0], sources, out, store)]
        return [self._fold(rows[0], sources, out, None), store]

    def _fold(self, row: int, sources: Integers, out: Doubles, store: KernelStep | None) -> KernelStep:
        direct = fold_lanes_dl16_step if self.tables.folds_lanes else fold_rows_dl16_step
        general = fold_lanes_step if self.tables.folds_lanes else fold_rows_step
        hide = hide_lanes if self.tables.folds_lanes else hide_row
        masked, held = self.tables.masked, Held()
        record = FoldRecord(
            row=row,
            cores=self.cores,
            starts=held.at(sources),
            tasks_per_core=self._tasks_per_core,
            kinds=len(self.kinds),
            folds=held.at(fold_table(self.kinds, is_dl16=self._is_direct)),
            fold_patterns=pattern_fold(self.kinds).address if self._is_direct else 0,
            kept=held.at(self.tables.kept_table),
            kept_count=len(self.tables.kept_table),
            folded=held.at(self.tables.folded_table),
            folded_count=len(self.tables.folded_table),
            run_offsets=held.at(self._run_offsets()) if self._has_even_runs else 0,
            out=held.at(out),
            results=len(self.places),
            decode=0 if self._is_direct else DECODERS[self.source.storage.value].address,
            element_bytes=self.source_bytes,
            hide=hide.address if masked.shape[1] else 0,
            masked=held.at(masked),
            masked_count=masked.shape[1],
            mask=held.at(np.array([self.tables.mask_value], np.float32)),
            store=0 if store is None else store.function,
            store_record=0 if store is None else held.at(store.record),
        )
        tasks = self.cores * (self._tasks_per_core if store is None else 1)
        step, elements = direct if self._is_direct else general, self.cores * self.tables.elements
        made = KernelStep.of(step, record, held, tasks, elements)
        return made if store is None else made.with_arrays(store.arrays)

    def _store(self, row: int, members: Integers, targets: Integers, out: Doubles) -> KernelStep:
        is_merged = members.shape[1] > 1
        merges = [fold_functions(kind).merge.address if is_merged else 0 for kind in self.kinds]
        held = Held()
        record = StoreRecord(
            row=row,
            members=held.at(members.astype(np.int64)),
            member_count=members.shape[1],
            starts=held.at(targets),
            out=held.at(out),
            cores=self.cores,
            results=len(self.places),
            places=held.at(self.places),
            kinds=len(self.kinds),
            merges=held.at(np.array(merges, np.int64)),
            factors=held.at(np.array(self.factors, np.float64)),
            lane_bytes=self.lane_bytes,
            store=ROUNDERS[self.target.storage.value].address,
        )
        return KernelStep.of(store_folds_step, record, held, len(members), out.size)
