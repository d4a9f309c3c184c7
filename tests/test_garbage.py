"""A compile searches for cycles rarely, and leaves the process as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from threading import Barrier, Thread

import pytest

import spyrec
from benchmarks.growth import decoder
from spyrec.diagnostics import SpyrecError
from spyrec.garbage import rarely_searched

USUAL = (700, 10, 10)


@pytest.fixture(autouse=True)
def process() -> Iterator[None]:
    """Search as often as Python does by default, and afterwards as before."""
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


def test_a_compile_searches_once_at_its_end_and_makes_no_cycle() -> None:
    graph = decoder(28)
    spyrec.compile(graph)
    gc.collect()
    searches: list[str] = []
    gc.callbacks.append(lambda phase, _: searches.append(phase))
    try:
        bundle = spyrec.compile(graph)
    finally:
        gc.callbacks.pop()
    assert bundle.programs
    assert searches in (["start", "stop"], []), "when the thresholds are back, what is new is looked at once"
    assert gc.get_threshold() == USUAL
    assert gc.collect() == 0, "what is searched for rarely has to be rare"


def test_thresholds_are_back_after_a_graph_that_is_refused() -> None:
    with pytest.raises(SpyrecError):
        spyrec.compile({"format": "spyrec.graph/1", "name": "none"})
    assert gc.get_threshold() == USUAL


def test_the_last_of_blocks_that_overlap_gives_the_thresholds_back() -> None:
    both_inside, first_is_gone = Barrier(2), Barrier(2)
    seen: list[tuple[int, int, int]] = []

    def longer() -> None:
        with rarely_searched():
            both_inside.wait()
            first_is_gone.wait()
            seen.append(gc.get_threshold())

    thread = Thread(target=longer)
    thread.start()
    with rarely_searched(), rarely_searched():
        both_inside.wait()
    first_is_gone.wait()
    thread.join()
    assert [found[0] > USUAL[0] for found in seen] == [True]
    assert gc.get_threshold() == USUAL


@pytest.mark.parametrize("usual", [(0, 10, 10), (10**6, 5, 5)])
def test_a_process_that_never_searches_or_more_rarely_goes_on_so(usual: tuple[int, int, int]) -> None:
    gc.set_threshold(*usual)
    with rarely_searched():
        assert gc.get_threshold() == usual
    assert gc.get_threshold() == usual


def test_thresholds_that_are_chosen_inside_stay() -> None:
    with rarely_searched():
        gc.set_threshold(5, 6, 7)
    assert gc.get_threshold() == (5, 6, 7)
