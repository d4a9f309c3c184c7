from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.ir.access import Access, Coordinate, Term
from tests.support.examples import examples
from tests.support.view_chains import (
    ViewChain,
    expanded,
    permuted,
    reshaped,
    start,
    view_chains,
    windowed,
)

_SHAPES = st.lists(st.sampled_from((1, 2, 3, 4, 6, 8, 12)), max_size=3)


def _assert_names_the_same_elements(chain: ViewChain) -> Access:
    access = chain.access
    assert access is not None, chain.steps
    assert access.extents == chain.numbers.shape, chain.steps
    whole = start(chain.shape).numbers
    for index in np.ndindex(*access.extents):
        at = access.coordinate(index)
        assert all(0 <= place < size for place, size in zip(at, chain.shape, strict=True)), (chain.steps, index, at)
        assert whole[at] == chain.numbers[index], (chain.steps, index, at)
    return access


@examples(180)
@given(_SHAPES.flatmap(view_chains))
def test_composed_views_name_the_elements_that_numpy_names(chain: ViewChain) -> None:
    if chain.access is not None:
        access = _assert_names_the_same_elements(chain)
        for dim in range(len(access.extents)):
            varies = any((np.take(chain.numbers, [0], axis=dim) != chain.numbers).ravel())
            assert access.depends_on(dim) == varies, (chain.steps, dim)


@examples(60)
@given(_SHAPES.flatmap(lambda shape: view_chains(shape, most=2)), st.data())
def test_re_indexing_moves_drops_and_adds_dims(chain: ViewChain, data: st.DataObject) -> None:
    if chain.access is None:
        return
    rank = chain.numbers.ndim
    places = data.draw(st.permutations(range(rank + 1)))
    sources = [data.draw(st.sampled_from((place, place, None))) for place in places[:rank]]
    extents = [data.draw(st.integers(1, 3)) for _ in range(rank + 1)]
    for old, source in enumerate(sources):
        if source is not None:
            extents[source] = chain.numbers.shape[old]
    access = chain.access.over(extents, sources)
    assert access.extents == tuple(extents)
    whole = start(chain.shape).numbers
    for index in np.ndindex(*extents):
        old_index = tuple(0 if source is None else index[source] for source in sources)
        assert whole[access.coordinate(index)] == chain.numbers[old_index]


_WITHOUT_COPY: dict[str, ViewChain] = {
    "heads split": reshaped(start((5, 4096)), (5, 32, 128)),
    "heads split and moved": permuted(reshaped(start((5, 64)), (5, 4, 16)), (1, 0, 2)),
    "heads merged": reshaped(permuted(start((4, 5, 16)), (1, 0, 2)), (5, 64)),
    "permute chain": permuted(permuted(permuted(start((2, 3, 4, 5)), (3, 1, 0, 2)), (1, 0, 3, 2)), (2, 0, 1, 3)),
    "slice of slices": windowed(windowed(start((3, 99)), 1, range(3, 99, 2)), 1, range(5, 40, 3)),
    "slice of a whole row block": windowed(reshaped(start((7, 5, 4)), (35, 4)), 0, range(5, 25)),
    "slice, then fold": reshaped(windowed(start((6, 10)), 0, range(1, 6)), (50,)),
    "slice, fold and unfold": reshaped(reshaped(windowed(start((6, 10)), 0, range(1, 6)), (50,)), (5, 5, 2)),
    "slice of the inner dim, then fold": reshaped(windowed(start((6, 10)), 1, range(2, 7)), (30,)),
    "every second row of a split": windowed(reshaped(start((12,)), (3, 4)), 1, range(0, 4, 2)),
    "grouped queries": reshaped(expanded(reshaped(start((2, 3, 5)), (2, 1, 3, 5)), (2, 4, 3, 5)), (8, 3, 5)),
    "a number everywhere": reshaped(expanded(start(()), (3, 4)), (12,)),
    "unit dims come and go": reshaped(reshaped(start((1, 6, 1)), (6,)), (1, 3, 1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", _WITHOUT_COPY)
def test_ordinary_chains_need_no_copy(name: str) -> None:
    _assert_names_the_same_elements(_WITHOUT_COPY[name])


def _seam() -> ViewChain:
    """Three elements, each four times in a row: index ``i`` reads element ``i // 4``."""
    return reshaped(expanded(reshaped(start((3,)), (3, 1)), (3, 4)), (12,))


def test_what_has_no_digits_is_left_to_a_copy() -> None:
    folded = permuted(start((3, 4)), (1, 0))
    assert folded.access is not None
    assert folded.access.reshape((12,)) is not None, "a transposition folds: the flat index has both digits"
    assert folded.access.reshape((6, 2)) is None, "4 and 6 do not nest"
    assert folded.access.reshape((2, 6)) is not None, "4 is cut at 2"
    assert windowed(_seam(), 0, range(1, 12)).access is None, "the window begins inside a repeated row"
    assert windowed(_seam(), 0, range(4, 11)).access is not None, "it begins with a row, and may end inside one"
    assert windowed(_seam(), 0, range(0, 12, 3)).access is None, "a step of 3 does not divide a run of 4"
    assert windowed(_seam(), 0, range(0, 12, 2)).access is not None


def test_steps_follow_a_repeated_row_where_they_divide_it() -> None:
    rows = reshaped(expanded(start((4,)), (3, 4)), (12,))  # index ``i`` reads element ``i % 4``
    for indices in (range(0, 12, 2), range(1, 12, 2), range(5, 12, 2), range(3, 12, 4)):
        _assert_names_the_same_elements(windowed(rows, 0, indices))
    assert windowed(rows, 0, range(0, 12, 3)).access is None


def test_round_trips_give_the_identity_back() -> None:
    for chain in (
        reshaped(reshaped(start((4096,)), (32, 128)), (4096,)),
        permuted(reshaped(reshaped(permuted(start((2, 32, 128)), (1, 0, 2)), (32, 256)), (32, 2, 128)), (1, 0, 2)),
        windowed(start((5, 6)), 1, range(6)),
        expanded(start((5, 6)), (5, 6)),
    ):
        assert chain.access is not None
        assert chain.access.is_identity, chain.steps


def test_digits_that_touch_are_one() -> None:
    access = Access.identity((2, 3, 4)).reshape((24,))
    assert access is not None
    assert access.reshape((2, 12)) == Access(
        (2, 12),
        (
            Coordinate(0, (Term(1, 0, 1, 2),)),
            Coordinate(0, (Term(1, 1, 4, 3),)),
            Coordinate(0, (Term(1, 1, 1, 4),)),
        ),
    )
    assert math.prod(access.extents) == 24
