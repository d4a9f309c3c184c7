"""Steps of a fold, bound to the addresses of one launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spyrec.device_ops.record import Accumulator
from spyrec.emulator.kernels.codec import can_store
from spyrec.emulator.kernels.fold_steps import (
    FoldRecord,
    StoreRecord,
    fold_lanes_dl16_step,
    fold_lanes_step,
    fold_rows_dl16_step,
    fold_rows_step,
    store_folds_step,
)
from spyrec.emulator.kernels.folds import fold_functions, fold_table
from spyrec.emulator.kernels.records import Held
from spyrec.emulator.kernels.reductions import functions_of
from spyrec.emulator.numerics import Codec
from spyrec.emulator.operations.bound_calls import KernelStep

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

_FEWEST_CORES = 8  # fewer leave a thread waiting where cores are the tasks


@dataclass(frozen=True, slots=True)
class Fold:
    """What is folded on every core and what becomes of it.

    ``kinds`` and ``factors``: one per result of a place; results stand ``lane_bytes`` apart.  ``kept`` and ``folded``:
    the kernels' tables (``reductions``).  ``cohorts``: core positions that combine their results, in order.
    ``places``: byte offsets of the results from the output's start.
    """

    kinds: tuple[Accumulator, ...]
    factors: tuple[float, ...]
    source: Codec
    source_bytes: int
    folds_lanes: bool
    is_direct: bool
    kept: Integers
    folded: Integers
    masked: npt.NDArray[np.uint8]
    mask_value: float
    cohorts: Sequence[Sequence[int]]
    target: Codec
    lane_bytes: int
    places: Integers
    tasks_per_core: int
    elements: int

    @property
    def can_be_stored(self) -> bool:
        """Whether the steps round as everything else does."""
        return can_store(self.target)

    @property
    def cores(self) -> int:
        """Cores used."""
        return len(self.masked)

    def of_boxes(self, cores: Integers) -> Fold:
        """Return the fold of boxes of the cores at these positions, each of which keeps its results."""
        masked = np.ascontiguousarray(self.masked[cores])
        return replace(self, masked=masked, cohorts=[[box] for box in range(len(cores))])

    def steps(self, rows: tuple[int, int], sources: Integers, targets: Integers) -> list[KernelStep]:
        """Return the steps; ``rows``: of the movement, of what is read and of what is stored."""
        out = np.empty((len(self.kinds), self.cores, len(self.places)), np.float64)
        is_alone = len(self.cohorts[0]) == 1 and self.cores >= _FEWEST_CORES
        # In the cores' order where each stores its own results.
        members = np.arange(self.cores)[:, None] if is_alone else np.array(self.cohorts, np.int64)
        store = self._store(rows[1], members, targets, out)
        if is_alone:
            return [self._fold(rows[0], sources, out, store)]
        return [self._fold(rows[0], sources, out, None), store]

    def _fold(self, row: int, sources: Integers, out: Doubles, store: KernelStep | None) -> KernelStep:
        direct = fold_lanes_dl16_step if self.folds_lanes else fold_rows_dl16_step
        masked = fold_lanes_step if self.folds_lanes else fold_rows_step
        held = Held()
        record = FoldRecord(
            row=row,
            cores=self.cores,
            starts=held.at(sources),
            tasks_per_core=self.tasks_per_core,
            functions=held.at(functions_of(self.source.storage.value)),
            kinds=len(self.kinds),
            kept=held.at(self.kept),
            kept_count=len(self.kept),
            folded=held.at(self.folded),
            folded_count=len(self.folded),
            out=held.at(out),
            results=len(self.places),
            element_bytes=self.source_bytes,
            masked=held.at(self.masked),
            masked_count=self.masked.shape[1],
            mask=held.at(np.array([self.mask_value], np.float32)),
            folds=held.at(fold_table(self.kinds, is_dl16=self.is_direct)),
            store=0 if store is None else store.function,
            store_record=0 if store is None else held.at(store.record),
        )
        tasks = self.cores * (self.tasks_per_core if store is None else 1)
        made = KernelStep.of(direct if self.is_direct else masked, record, held, tasks, self.cores * self.elements)
        return made if store is None else made.with_arrays(store.arrays)

    def _store(self, row: int, members: Integers, targets: Integers, out: Doubles) -> KernelStep:
        merges = np.array([fold_functions(kind).merge.address for kind in self.kinds], np.int64)
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
            merges=held.at(merges),
            factors=held.at(np.array(self.factors, np.float64)),
            lane_bytes=self.lane_bytes,
            word_bytes=self.target.word_bytes,
        )
        return KernelStep.of(store_folds_step, record, held, len(members), out.size)
