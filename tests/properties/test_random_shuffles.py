"""Random shuffles: tensors of any shape over any owners, by both engines, and what is written of them."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from tests.support.shuffles import Owners, Shape, chain, emitted, held, launched, patterned

FAR = 66560
EXAMPLES = max(2, 2 * (settings().max_examples or 0) // 5)


@st.composite
def divisions(draw: st.DrawFn, sizes: dict[str, int], cores: int) -> Owners:
    """Draw a division of dims among cores, in any order of the dims."""
    rest, slices = cores, dict.fromkeys(sizes, 1)
    dims = draw(st.permutations(list(sizes)))
    for dim in dims:
        count = sizes[dim] // 64 if dim == "c" else sizes[dim]
        fitting = [cut for cut in (1, 2, 4, 8, 16) if rest % cut == 0 and count % cut == 0]
        slices[dim] = draw(st.sampled_from(fitting))
        rest //= slices[dim]
    for dim in dims:
        while rest > 1 and (sizes[dim] // 64 if dim == "c" else sizes[dim]) % (2 * slices[dim]) == 0:
            slices[dim], rest = 2 * slices[dim], rest // 2
    return Owners(slices, tuple(draw(st.permutations(list(sizes)))))


@settings(deadline=None, max_examples=EXAMPLES)
@given(st.data())
def test_random_shuffles_lose_nothing(data: st.DataObject) -> None:
    """A tensor of any shape goes over any owners, and comes back as it was; both engines, and what is written."""
    cores = data.draw(st.sampled_from([2, 4, 8]))
    sizes = {"x": data.draw(st.sampled_from([1, 2, 3, 4])), "r": cores * data.draw(st.integers(1, 3))}
    sizes |= {"c": 64 * data.draw(st.sampled_from([1, 2, 4]))}
    if sizes["x"] == 1:
        del sizes["x"]
    shape = Shape(sizes)
    plain = {"x": 1, "r": 1, "c": 1}
    first = {**{dim: plain[dim] for dim in sizes}, "r": cores}
    middle = [data.draw(divisions(sizes, cores)) for _ in range(data.draw(st.integers(1, 2)))]
    states = [Owners(first)]
    for item in (*middle, Owners(first)):
        is_whole = np.prod(list(item.slices.values())) == cores
        states += [item] if is_whole and item.opspec() != states[-1].opspec() else []
    assume(states[-1] == states[0])
    program = emitted(chain(shape, [(FAR * (number % 2), item) for number, item in enumerate(states)]))
    for superdsc in program.superdscs.values():
        assert parse_superdsc(to_bytes(superdsc)) == superdsc
    contents = patterned(shape)
    assert np.array_equal(held(launched(program, shape, contents)), contents)
