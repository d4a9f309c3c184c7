"""Who touches what another one stores: sorted runs say of it what sets of single bytes say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from spyrec.emulator.footprint import ByteFootprint, Integers, are_apart, first_conflict, first_overlap, merge, shifted

OWNERS = 3


def owned(generator: np.random.Generator, parts: int) -> Integers:
    """Return runs of random bytes of 40 as a chain's proof takes them: sorted, those of one part merged."""
    held = generator.random((parts, 41)) < generator.choice([0.02, 0.1])
    held[:, 40] = False
    rows: list[tuple[int, int, int]] = []
    for part, own in enumerate(held):
        edges = np.flatnonzero(np.diff(own.astype(int), prepend=0)).tolist()
        rows += [(first, past, part) for first, past in zip(edges[::2], edges[1::2], strict=True)]
    return np.array(sorted(rows), np.int64).reshape(-1, 3)


def by_byte(runs: Integers) -> Iterator[tuple[int, int]]:
    for first, past, part in runs.tolist():
        yield from ((byte, part) for byte in range(first, past))


def test_parts_are_apart_where_no_byte_that_one_stores_is_touched_by_another() -> None:
    generator = np.random.Generator(np.random.PCG64(3))
    found: list[bool] = []
    for _ in range(600):
        stores, touches = owned(generator, 3), owned(generator, 3)
        expected = all(
            part == other for byte, part in by_byte(stores) for own, other in (*by_byte(stores), *by_byte(touches))
            if own == byte
        )  # fmt: skip
        assert are_apart(stores, touches) == expected
        found.append(expected)
    assert 100 < sum(found) < 500


RUNS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 4)), min_size=0, max_size=4).map(
    lambda found: merge(np.array([(first, first + size) for first, size in found], np.int64).reshape(-1, 2))
)
STARTS = st.lists(st.integers(0, 40), min_size=OWNERS, max_size=OWNERS).map(lambda found: np.array(found, np.int64))


def bytes_of(runs: Integers, start: int) -> set[int]:
    return {start + byte for first, past in runs.tolist() for byte in range(first, past)}


def parts(touched: Sequence[tuple[Integers, Sequence[int]]], starts: Integers) -> list[set[int]]:
    """Return the bytes that each owner touches."""
    found = [set[int]() for _ in starts]
    for runs, owners in touched:
        for owner in owners:
            found[owner] |= bytes_of(runs, int(starts[owner]))
    return found


def meets_another(stored: Sequence[set[int]], touched: Sequence[set[int]]) -> bool:
    return any(
        not own.isdisjoint(other)
        for owner, own in enumerate(touched)
        for place, other in enumerate(stored)
        if place != owner
    )


@given(RUNS, STARTS, RUNS, RUNS, st.none() | STARTS, st.integers(0, OWNERS))
def test_an_operand_keeps_out_of_a_store_where_no_owner_has_a_byte_of_another(
    stored: Integers, homes: Integers, one: Integers, two: Integers, elsewhere: Integers | None, split: int
) -> None:
    starts = homes if elsewhere is None else elsewhere
    store = ByteFootprint(7, {0: 128}, homes, stored, [(stored, range(OWNERS))])
    written = parts(store.touched, homes)
    assert store.is_disjoint == (not meets_another(written, written))
    assert store.is_disjoint == (first_overlap(stored, homes) is None)
    if not store.is_disjoint:
        return
    # owners touch differing runs, as those of padded cores do
    touched = [(one, range(split)), (two, range(split, OWNERS))]
    found = ByteFootprint(7, {0: 128}, starts, None, touched)
    expected = not meets_another(written, parts(touched, starts))
    assert found.keeps_out_of(store) == expected
    assert ByteFootprint(8, {0: 256}, starts, None, touched).keeps_out_of(store)
    assert not ByteFootprint(7, {0: 256}, starts, None, touched).keeps_out_of(store)
    rows = [_rows(runs, starts[[owner]], owner) for runs, owners in touched for owner in owners]
    stores = [_rows(stored, homes[[owner]], owner) for owner in range(OWNERS)]
    assert are_apart(_sorted(stores), _sorted(rows)) == expected


def _rows(runs: Integers, start: Integers, owner: int) -> npt.NDArray[np.int64]:
    found = merge(shifted(runs, start))
    return np.column_stack([found, np.full(len(found), owner, np.int64)])


def _sorted(items: Sequence[Integers]) -> Integers:
    found = np.concatenate(items)
    return found[np.argsort(found[:, 0], kind="stable")]


@given(RUNS, STARTS, RUNS, STARTS)
def test_the_conflict_that_is_named_is_one(stored: Integers, homes: Integers, runs: Integers, starts: Integers) -> None:
    written = [bytes_of(stored, int(start)) for start in homes]
    if meets_another(written, written):
        return
    loaded = [bytes_of(runs, int(start)) for start in starts]
    found = first_conflict((stored, homes), (runs, starts), range(OWNERS))
    if found is None:
        assert not meets_another(written, loaded)
    else:
        reader, owner, byte = found
        assert reader != owner
        assert byte in written[owner] & loaded[reader]
