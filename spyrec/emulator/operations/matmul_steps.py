"""Steps of a product, bound to the addresses of one launch; operands that do not move are decoded once.

Which cores share an operand does not depend on where loops have moved it: all cores' starts move together.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.codec import DECODERS
from spyrec.emulator.kernels.jit import TILE_ROWS
from spyrec.emulator.kernels.product_steps import ProductNotes, ProductRecord, multiply_step, pack_step, zero_rows_step
from spyrec.emulator.kernels.products import multiply, pack_rows, sizes_of_product, tasks_of
from spyrec.emulator.kernels.records import Held, dtype_of, written
from spyrec.emulator.numerics import Codec
from spyrec.emulator.operations.bound_calls import NOTES, Array, BoundCalls, KernelStep
from spyrec.emulator.operations.kept_operand import KeptOperand
from spyrec.emulator.operations.weight_cache import WeightCache

Integers = npt.NDArray[np.int64]

_KEPT_BYTES = 64 << 20
"""Most bytes of first operands that one product keeps decoded at a time, one at least."""

_GIVEN_WITH_NOTES = 0  # an address that each use of the steps has its own of

_MOST_PARTS = 4096
"""Parts of second operands beyond which none is looked up: each costs some microseconds at every launch."""


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Byte offsets inside the operands: rows of A, runs of K in A, k and n in B, rows and n in C."""

    a_rows: Integers
    a_runs: Integers
    b_depth: Integers
    b_columns: Integers
    c_rows: Integers
    c_columns: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Sharing:
    """Which starts there are and who shares them.

    ``a_starts[panel]``; ``a_panels[result, slice]``; ``groups[group]``: first and past-last of the results that share
    ``b_starts[group, slice]``; ``c_starts[result]``.  ``zero[panel]``: addresses of B and places of K that decide what
    is K padding in a panel.
    """

    a_starts: Integers
    a_panels: Integers
    groups: Integers
    b_starts: Integers
    c_starts: Integers
    zero: Sequence[tuple[Integers, Integers]]


@dataclass(frozen=True, slots=True)
class Forms:
    """The operands' stored forms, bytes between neighbours, rows of the movement, and ``codecs_of_product``."""

    a: Codec
    b: Codec
    a_bytes: int
    rows: tuple[int, int, int]
    codecs: Integers


@dataclass(frozen=True, slots=True)
class Keeping:
    """What keeps second operands, what knows where a launch stores, and which of A and B lie there (not in LX)."""

    kept: KeptOperand
    weights: WeightCache
    is_a_in_hbm: bool
    is_b_in_hbm: bool


class BoundProduct(BoundCalls):
    """A product with room for its decoded operands."""

    agrees = True

    def __init__(self, forms: Forms, tables: Tables, sharing: Sharing, keeping: Keeping, products: int) -> None:
        self._forms, self._tables, self._sharing, self._keeping = forms, tables, sharing, keeping
        self._tiles = -(-len(tables.a_rows) // TILE_ROWS)
        self._room: dict[str, Array] = {}
        self._record, arrays = self._made_record()
        has_padding = any(len(places) for _, places in sharing.zero)
        panels, depth = len(sharing.a_starts), len(tables.b_depth)
        tasks = tasks_of(len(sharing.groups), len(tables.c_rows), len(tables.b_columns))
        zero = self._step(zero_rows_step.address, arrays, panels, panels * depth)
        pack = self._step(pack_step.address, arrays, panels * self._tiles, panels * depth * len(tables.a_rows))
        product = self._step(multiply_step.address, arrays, tasks, products)
        super().__init__([zero, pack, product] if has_padding else [pack, product])

    def _step(self, function: int, arrays: tuple[Array, ...], tasks: int, elements: int) -> KernelStep:
        return KernelStep(function, self._record, arrays, tasks, elements)

    def _made_record(self) -> tuple[Integers, tuple[Array, ...]]:
        forms, tables, sharing = self._forms, self._tables, self._sharing
        most = int(np.diff(sharing.groups, axis=1).max())
        slices = sharing.b_starts.shape[1]
        sizes = sizes_of_product(len(tables.b_columns), len(tables.b_depth), len(tables.c_rows), slices, most)
        zero = _flat(sharing.zero)
        places = [sharing.groups, sharing.b_starts, sharing.b_starts, sharing.a_panels, sharing.c_starts]
        places += [sharing.b_starts, tables.b_depth, tables.b_columns, tables.c_rows, tables.c_columns]
        addresses = np.array([array.ctypes.data for array in places], np.int64)  # 1, 2, 4 and 5 are the step's affair
        held = Held()
        a_row, b_row, c_row = forms.rows
        record = ProductRecord(
            a_row=a_row,
            b_row=b_row,
            c_row=c_row,
            panels=len(sharing.a_starts),
            tiles=self._tiles,
            depth=len(tables.b_depth),
            a_starts=held.at(sharing.a_starts),
            a_rows=held.at(tables.a_rows),
            height=len(tables.a_rows),
            a_runs=held.at(tables.a_runs),
            a_run_count=len(tables.a_runs),
            pack=pack_rows.address,
            decode_a=DECODERS[forms.a.storage.value].address,
            a_bytes=forms.a_bytes,
            packed=_GIVEN_WITH_NOTES,
            is_clean=_GIVEN_WITH_NOTES,
            skipped=_GIVEN_WITH_NOTES,
            decode_b=DECODERS[forms.b.storage.value].address,
            b_offsets=held.at(tables.b_depth),
            b_columns=held.at(tables.b_columns),
            column_count=len(tables.b_columns),
            zero_bounds=held.at(zero.bounds),
            b_addresses=held.at(zero.addresses),
            zero_ks=held.at(zero.places),
            codecs=held.at(forms.codecs),
            sizes=held.at(sizes),
            places=held.at(addresses),
            b_starts=held.at(sharing.b_starts),
            b_count=sharing.b_starts.size,
            b_panels=_GIVEN_WITH_NOTES,
            c_starts=held.at(sharing.c_starts),
            c_count=len(sharing.c_starts),
            multiply=multiply.address,
        )
        return written(record), (*held.arrays, *places)

    @contextmanager
    def notes(self, moved: Integers) -> Generator[Integers]:
        """Yield for each dispatch where its decoded operands stand and whether it has to make them."""
        tables, sharing = self._tables, self._sharing
        a, b, _ = (moved[:, row] for row in self._forms.rows)
        a_extent = _extent(tables.a_rows, tables.a_runs[:, 2], 64 * self._forms.a_bytes)
        b_extent = _extent(tables.b_depth, tables.b_columns, self._forms.b.word_bytes)
        panel_bytes = 4 * TILE_ROWS * len(sharing.a_starts) * self._tiles * len(tables.b_depth)
        a_alone = self._keeping.is_a_in_hbm and self._is_left_alone(sharing.a_starts, a, a_extent)
        b_alone = self._keeping.is_b_in_hbm and self._is_left_alone(sharing.b_starts, b, b_extent)
        a_slots = _slots(a, a_alone, _KEPT_BYTES // panel_bytes)
        b_slots = _slots(b, b_alone, _MOST_PARTS // sharing.b_starts.size)
        self._make_room(a_slots.count * panel_bytes, a_slots.count, b_slots.count)
        made = np.zeros(len(moved), dtype_of(ProductNotes))
        made["a_slot"], made["a_is_new"] = a_slots.places, a_slots.is_new
        made["b_slot"], made["b_is_new"] = b_slots.places, b_slots.is_new
        notes = made.view(np.int64).reshape(-1, NOTES)
        try:
            if b_slots.moves is None:
                self._give("b_panels", np.zeros((1, sharing.b_starts.size, 2), np.int64))
                yield notes
            else:
                starts = sharing.b_starts[None, :, :] + b_slots.moves[:, None, None]
                with self._keeping.kept.panels(starts, is_used_again=len(moved) > b_slots.count) as panels:
                    self._give("b_panels", np.ascontiguousarray(panels))
                    yield notes
        finally:
            self._room.clear()

    def _is_left_alone(self, starts: Integers, moves: Integers, extent: tuple[int, int]) -> bool:
        """Whether the launch stores nothing to an operand, wherever it moves."""
        first, past = int(starts.min() + moves.min()) + extent[0], int(starts.max() + moves.max()) + extent[1]
        return bool(self._keeping.weights.may_keep(np.array([[first, past]], np.int64))[0])

    def _make_room(self, packed_bytes: int, a_slots: int, b_slots: int) -> None:
        panels, depth = len(self._sharing.a_starts), len(self._tables.b_depth)
        self._give("packed", np.empty(packed_bytes, np.uint8))
        self._give("is_clean", np.zeros(a_slots * panels * self._tiles, np.uint8))
        self._give("skipped", np.zeros(b_slots * panels * depth, np.uint8))

    def _give(self, field: str, array: Array) -> None:
        self._room[field] = array
        self._record.view(dtype_of(ProductRecord))[field] = array.ctypes.data


@dataclass(frozen=True, slots=True, eq=False)
class _Slots:
    """By dispatch: the slot of an operand and whether it is to be made; ``moves[slot]``, ``None`` if it is not kept."""

    places: Integers
    is_new: npt.NDArray[np.bool_]
    count: int
    moves: Integers | None


def _slots(moves: Integers, may_keep: bool, most: int) -> _Slots:
    """Give each place that an operand moves to a slot; beyond ``most`` of them only the latest one is kept."""
    none = np.zeros(len(moves), np.int64)
    if not may_keep:
        return _Slots(none, np.ones(len(moves), np.bool_), 1, None)
    distinct, firsts, places = np.unique(moves, return_index=True, return_inverse=True)
    if len(distinct) > most:
        return _Slots(none, np.concatenate([[True], moves[1:] != moves[:-1]]), 1, None)
    is_new = np.zeros(len(moves), np.bool_)
    is_new[firsts] = True
    return _Slots(places.astype(np.int64), is_new, len(distinct), distinct)


@dataclass(frozen=True, slots=True, eq=False)
class _Flat:
    """Ragged lists as flat arrays; ``bounds``: as ``ProductRecord.zero_bounds``."""

    bounds: Integers
    addresses: Integers
    places: Integers


def _flat(zero: Sequence[tuple[Integers, Integers]]) -> _Flat:
    counts = np.array([[len(addresses), len(places)] for addresses, places in zero], np.int64)
    ends = np.cumsum(counts, axis=0)
    firsts = ends - counts
    bounds = np.stack([firsts[:, 0], ends[:, 0], firsts[:, 1], ends[:, 1]], axis=1)
    addresses, places = (np.concatenate(list(parts)).astype(np.int64) for parts in zip(*zero, strict=True))
    return _Flat(np.ascontiguousarray(bounds), addresses, places)


def _extent(rows: Integers, columns: Integers, last_bytes: int) -> tuple[int, int]:
    """Return the first and past-last byte of an operand's part, from its start."""
    return int(rows.min() + columns.min()), int(rows.max() + columns.max()) + last_bytes
