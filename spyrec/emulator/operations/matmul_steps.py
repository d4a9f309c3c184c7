"""Steps of a product, bound to the addresses of one launch; operands that do not move are decoded once.

Which cores share an operand does not depend on where loops have moved it: all cores' starts move together.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.kernels.codec import DECODERS, ENCODERS
from spyrec.emulator.kernels.product_steps import (
    PackRecord,
    PaddingRecord,
    ProductNotes,
    ProductRecord,
    multiply_step,
    pack_step,
    zero_rows_step,
)
from spyrec.emulator.kernels.product_tile import TILE_ROWS
from spyrec.emulator.kernels.products import (
    CHUNK_COLUMNS,
    GROUP_TILES,
    Scratch,
    TileCode,
    pack_columns,
    store_tiles,
)
from spyrec.emulator.kernels.records import Held, KernelRecord, dtype_of, written
from spyrec.emulator.numerics import Codec, ElementStorage
from spyrec.emulator.operations.bound_calls import NOTES, Array, BoundCalls, KernelStep
from spyrec.emulator.operations.kept_operand import KeptOperand
from spyrec.emulator.operations.weight_cache import WeightCache
from spyrec.runtime.threads import Threads

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

    def of_rows(self, rows: slice) -> Tables:
        """Return those of some rows."""
        return replace(self, a_rows=self.a_rows[rows], c_rows=self.c_rows[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Padding:
    """A k of ``places`` is K padding where B is zero at all of ``addresses``; of the cores that look together."""

    addresses: Integers
    places: Integers


NO_PADDING = Padding(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Sharing:
    """Which starts there are and who shares them.

    ``a_starts[panel]``; ``a_panels[result, slice]``; ``groups[group]``: first and past-last of the results that share
    ``b_starts[group, slice]``; ``c_starts[result]``.  ``padding`` there is, and which one is each panel's.
    """

    a_starts: Integers
    a_panels: Integers
    groups: Integers
    b_starts: Integers
    c_starts: Integers
    padding: Sequence[Padding]
    padding_of: Integers


@dataclass(frozen=True, slots=True)
class ProductForm:
    """An operand's stored form, bytes between neighbours in a stick, and its row of the movement."""

    codec: Codec
    element_bytes: int
    row: int

    @property
    def is_plain(self) -> bool:
        """Whether it is DLFloat16, side by side."""
        return self.codec.storage is ElementStorage.DL16 and self.element_bytes == self.codec.word_bytes


@dataclass(frozen=True, slots=True)
class Forms:
    """The operands' forms."""

    a: ProductForm
    b: ProductForm
    c: ProductForm


@dataclass(frozen=True, slots=True)
class Keeping:
    """What keeps second operands, what knows where a launch stores, and which of A and B lie there (not in LX)."""

    kept: KeptOperand
    weights: WeightCache
    is_a_in_hbm: bool
    is_b_in_hbm: bool


class BoundProduct(BoundCalls):
    """A product with room for its decoded operands, some rows of A at a time where all would take too much of it.

    A row's result does not depend on the others.
    """

    agrees = True

    def __init__(self, forms: Forms, tables: Tables, sharing: Sharing, keeping: Keeping, rows_at_once: int) -> None:
        self.forms = forms
        self._tables, self._sharing, self._keeping = tables, sharing, keeping
        self._height = min(rows_at_once, len(tables.a_rows))
        self._is_whole = rows_at_once >= len(tables.a_rows)
        self._known_slots: dict[int, tuple[Integers, _Slots]] = {}
        held = Held()
        self._padding = self.padding_record(sharing.padding, held)
        self._packs: list[Integers] = []
        self._products: list[Integers] = []
        self._tasks: list[int] = []
        for first in range(0, len(tables.a_rows), rows_at_once):
            own = tables if self._is_whole else tables.of_rows(slice(first, first + rows_at_once))
            self._packs.append(self._pack_record(own, held))
            product = self._product_record(own, self._packs[-1], held)
            self._products.append(_held(product, held))
            self._tasks.append(product.tasks)
        super().__init__([*self._steps(held.arrays)])

    @property
    def depth(self) -> int:
        """Extent of a slice of K."""
        return len(self._tables.b_depth)

    def _steps(self, arrays: tuple[Array, ...]) -> Iterator[KernelStep]:
        sharing, tables = self._sharing, self._tables
        depth, columns, panels = len(tables.b_depth), len(tables.b_columns), len(sharing.a_starts)
        groups = len(sharing.padding)
        if any(len(item.places) for item in sharing.padding):
            yield KernelStep(zero_rows_step.address, self._padding, arrays, groups, groups * depth)
        made = zip(self._packs, self._products, self._tasks, strict=True)
        for place, (pack, product, tasks) in enumerate(made):
            height = min(self._height, len(tables.a_rows) - place * self._height)
            tiles, points = panels * -(-height // TILE_ROWS), height * depth
            yield KernelStep(pack_step.address, pack, arrays, tiles, panels * points)
            results = len(sharing.c_starts) * sharing.b_starts.shape[1]
            yield KernelStep(multiply_step.address, product, arrays, tasks, results * points * columns)

    def padding_record(self, padding: Sequence[Padding], held: Held) -> Integers:
        """Return the record of K padding of B, but for where it goes."""
        flat = _flat(padding)
        record = PaddingRecord(
            b_row=self.forms.b.row,
            groups=len(padding),
            depth=len(self._tables.b_depth),
            decode=DECODERS[self.forms.b.codec.storage.value].address,
            b_offsets=held.at(self._tables.b_depth),
            b_columns=held.at(self._tables.b_columns),
            column_count=len(self._tables.b_columns),
            bounds=held.at(flat.bounds),
            b_addresses=held.at(flat.addresses),
            ks=held.at(flat.places),
            skipped=_GIVEN_WITH_NOTES,
        )
        return _held(record, held)

    def _pack_record(self, tables: Tables, held: Held) -> Integers:
        record = PackRecord(
            a_row=self.forms.a.row,
            panels=len(self._sharing.a_starts),
            tiles=-(-len(tables.a_rows) // TILE_ROWS),
            a_starts=held.at(self._sharing.a_starts),
            a_rows=held.at(tables.a_rows),
            height=len(tables.a_rows),
            a_runs=held.at(tables.a_runs),
            a_run_count=len(tables.a_runs),
            decode=DECODERS[self.forms.a.codec.storage.value].address,
            a_bytes=self.forms.a.element_bytes,
            padding=self._padding.ctypes.data,
            groups=held.at(self._sharing.padding_of),
            packed=_GIVEN_WITH_NOTES,
            is_clean=_GIVEN_WITH_NOTES,
        )
        return _held(record, held)

    def _product_record(self, tables: Tables, pack: Integers, held: Held) -> ProductRecord:
        sharing, b, c = self._sharing, self.forms.b, self.forms.c
        columns, depth, rows = len(tables.b_columns), len(tables.b_depth), len(tables.c_rows)
        slices, most = sharing.b_starts.shape[1], int(np.diff(sharing.groups, axis=1).max())
        scratch = Scratch.of(columns, depth, rows, slices, most)
        of_b = TileCode(DECODERS[b.codec.storage.value].address, b.element_bytes, int(b.is_plain))
        of_c = TileCode(ENCODERS[c.codec.storage.value].address, c.element_bytes, int(c.is_plain))
        row_tiles = -(-rows // TILE_ROWS)
        return ProductRecord(
            b_row=b.row,
            c_row=c.row,
            pack=pack.ctypes.data,
            columns=columns,
            depth=depth,
            rows=rows,
            slices=slices,
            row_tiles=row_tiles,
            blocks=-(-row_tiles // GROUP_TILES),
            chunks=-(-columns // CHUNK_COLUMNS),
            groups=held.at(sharing.groups),
            a_panels=held.at(sharing.a_panels),
            b_starts=held.at(sharing.b_starts),
            c_starts=held.at(sharing.c_starts),
            b_panels=_GIVEN_WITH_NOTES,
            b_count=sharing.b_starts.size,
            b_depth=held.at(tables.b_depth),
            b_columns=held.at(tables.b_columns),
            c_rows=held.at(tables.c_rows),
            c_columns=held.at(tables.c_columns),
            b_code=held.at(written(of_b)),
            c_code=held.at(written(of_c)),
            pack_columns=pack_columns.address,
            store_tiles=store_tiles.address,
            sums=4 * scratch.block,
            slice_sums=4 * (scratch.block + scratch.sums),
            scratch_bytes=4 * scratch.floats,
        )

    @contextmanager
    def notes(self, moved: Integers) -> Generator[Integers]:
        """Yield for each dispatch where its decoded operands stand and whether it has to make them."""
        sharing, tables = self._sharing, self._tables
        tiles, depth = len(sharing.a_starts) * -(-self._height // TILE_ROWS), len(tables.b_depth)
        a_slots, b_slots = self._slots_of(moved, 4 * TILE_ROWS * tiles * depth)
        made = np.zeros(len(moved), dtype_of(ProductNotes))
        made["a_slot"], made["a_is_new"] = a_slots.places, a_slots.is_new
        made["b_slot"], made["b_is_new"] = b_slots.places, b_slots.is_new
        is_clean = np.zeros(a_slots.count * tiles, np.uint8)
        skipped = np.zeros(b_slots.count * len(sharing.padding) * depth, np.uint8)
        _give(self._padding, PaddingRecord, skipped=skipped)
        workspace, floats = self._keeping.weights.workspace, a_slots.count * tiles * TILE_ROWS * depth
        is_used_again = len(moved) > b_slots.count
        with workspace.floats(floats) as packed, self._panels(b_slots, is_used_again=is_used_again) as panels:
            for pack, product in zip(self._packs, self._products, strict=True):
                _give(pack, PackRecord, packed=packed, is_clean=is_clean)
                _give(product, ProductRecord, b_panels=panels)
            yield made.view(np.int64).reshape(-1, NOTES)

    def _slots_of(self, moved: Integers, a_bytes: int) -> tuple[_Slots, _Slots]:
        """Return the slots of A and of B; ``a_bytes``: of A, packed."""
        sharing, keeping = self._sharing, self._keeping
        a, b = moved[:, self.forms.a.row], moved[:, self.forms.b.row]
        if len(moved) == 1:  # nothing comes in between: what is kept of B is the cache's affair
            return _unkept(a), replace(_unkept(b), moves=b if keeping.is_b_in_hbm else None)
        a_extent, b_extent = self._extents
        keeps_a = self._is_whole and keeping.is_a_in_hbm and self._is_left_alone(sharing.a_starts, a, a_extent)
        keeps_b = keeping.is_b_in_hbm and self._is_left_alone(sharing.b_starts, b, b_extent)
        a_slots = self._kept_slots(self.forms.a.row, a, _KEPT_BYTES // a_bytes) if keeps_a else _unkept(a)
        most_b = _MOST_PARTS // sharing.b_starts.size
        return a_slots, self._kept_slots(self.forms.b.row, b, most_b) if keeps_b else _unkept(b)

    @cached_property
    def _extents(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The first and past-last byte of a part of A, and of B, from its start."""
        tables, forms = self._tables, self.forms
        a_extent = _extent(tables.a_rows, tables.a_runs[:, 2], 64 * forms.a.element_bytes)
        return a_extent, _extent(tables.b_depth, tables.b_columns, forms.b.codec.word_bytes)

    def _kept_slots(self, row: int, moves: Integers, most: int) -> _Slots:
        """Return the slots of an operand; those of the latest launch where it moved as far."""
        known = self._known_slots.get(row)
        if known is None or not np.array_equal(known[0], moves):
            known = self._known_slots[row] = moves.copy(), _slots(moves, most)
        return known[1]

    @contextmanager
    def _panels(self, slots: _Slots, *, is_used_again: bool) -> Generator[Integers]:
        """Yield ``b_panels`` of the products' records."""
        b_starts = self._sharing.b_starts
        if slots.moves is None:
            yield np.zeros((1, b_starts.size, 2), np.int64)
            return
        starts = b_starts[None, :, :] + slots.moves[:, None, None]
        with self._keeping.kept.panels(starts, is_used_again=is_used_again) as panels:
            yield np.ascontiguousarray(panels)

    def _is_left_alone(self, starts: Integers, moves: Integers, extent: tuple[int, int]) -> bool:
        """Whether the launch stores nothing to an operand, wherever it moves."""
        first, past = int(starts.min() + moves.min()) + extent[0], int(starts.max() + moves.max()) + extent[1]
        return bool(self._keeping.weights.may_keep(np.array([[first, past]], np.int64))[0])


class JoinedProduct:
    """Dispatches of one product done at once, where none of their K is padding: A is packed alike for all columns.

    ``extents``: first and past-last emulated byte of A, B and C over all of them.
    """

    def __init__(self, product: BoundProduct, padding: Sequence[Padding], extents: Integers) -> None:
        held = Held()
        self._product, self._extents = product, extents
        self._rows = [product.forms.a.row, product.forms.b.row, product.forms.c.row]
        record = product.padding_record(padding, held)
        flags = np.zeros((len(padding), product.depth), np.uint8)
        _give(record, PaddingRecord, skipped=flags)
        self._is_skipped = flags
        step = KernelStep(zero_rows_step.address, record, held.arrays, len(padding), flags.size)
        self._search = BoundCalls([step]) if any(len(item.places) for item in padding) else None

    def run(self, moved: Integers, threads: Threads) -> bool:
        """Do them, if they store to nothing that they load and no K is padding; return whether."""
        a, b, c = (extent + moved[row] for extent, row in zip(self._extents, self._rows, strict=True))
        if any(c[0] < past and first < c[1] for first, past in (a, b)):
            return False
        if self._search is not None:
            self._search.run_noting(moved, _NEW_NOTES, threads)
            if self._is_skipped.any():
                return False
        self._product.run(moved, threads)
        return True


_NEW_NOTES = written(ProductNotes(a_slot=0, a_is_new=1, b_slot=0, b_is_new=1))


def _held(record: KernelRecord, held: Held) -> Integers:
    """Return a record's integers, which live as long as the other arrays."""
    integers = written(record)
    held.at(integers)
    return integers


def _give(record: Integers, kind: type[KernelRecord], **arrays: Array) -> None:
    """Write the addresses of arrays into a record."""
    fields = record.view(dtype_of(kind))
    for name, array in arrays.items():
        fields[name] = array.ctypes.data


@dataclass(frozen=True, slots=True, eq=False)
class _Slots:
    """By dispatch: the slot of an operand and whether it is to be made; ``moves[slot]``, ``None`` if it is not kept."""

    places: Integers
    is_new: npt.NDArray[np.bool_]
    count: int
    moves: Integers | None


def _unkept(moves: Integers) -> _Slots:
    """Give all dispatches one slot, which each makes anew."""
    return _Slots(np.zeros(len(moves), np.int64), np.ones(len(moves), np.bool_), 1, None)


def _slots(moves: Integers, most: int) -> _Slots:
    """Give each place that an operand moves to a slot; beyond ``most`` of them only the latest one is kept."""
    distinct, firsts, places = np.unique(moves, return_index=True, return_inverse=True)
    if len(distinct) > most:
        return _Slots(np.zeros(len(moves), np.int64), np.concatenate([[True], moves[1:] != moves[:-1]]), 1, None)
    is_new = np.zeros(len(moves), np.bool_)
    is_new[firsts] = True
    return _Slots(places.astype(np.int64), is_new, len(distinct), distinct)


@dataclass(frozen=True, slots=True, eq=False)
class _Flat:
    """Ragged lists as flat arrays, as in ``PaddingRecord``."""

    bounds: Integers
    addresses: Integers
    places: Integers


def _flat(padding: Sequence[Padding]) -> _Flat:
    counts = np.array([[len(item.addresses), len(item.places)] for item in padding], np.int64)
    ends = np.cumsum(counts, axis=0)
    firsts = ends - counts
    bounds = np.stack([firsts[:, 0], ends[:, 0], firsts[:, 1], ends[:, 1]], axis=1)
    addresses = np.concatenate([item.addresses for item in padding])
    return _Flat(np.ascontiguousarray(bounds), addresses, np.concatenate([item.places for item in padding]))


def _extent(rows: Integers, columns: Integers, last_bytes: int) -> tuple[int, int]:
    """Return the first and past-last byte of an operand's part, from its start."""
    return int(rows.min() + columns.min()), int(rows.max() + columns.max()) + last_bytes
