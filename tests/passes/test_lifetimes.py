"""Lifetimes, against rules that are taken literally: one buffer and one loop after the other, until nothing changes."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from spyrec.ir.access import Access
from spyrec.ir.graph import Derived
from spyrec.ir.kernel import Kernel, Use
from spyrec.ir.kernel_form import Rule
from spyrec.passes.lifetimes import lifetimes

_ACCESS = Access.identity((2,))
_NESTS = ((), (0,), (0, 1), (0, 1, 2), (0, 3), (0,), (), (4,), (4, 5), (4, 5), (6, 7), (6, 7, 8), (6, 7), (9,), ())
"""The loops around kernels, in order; those of one loop are neighbours."""


def _kernel(number: int, loops: tuple[int, ...], reads: str, writes: str) -> Kernel:
    return Kernel(
        name=f"k{number}",
        op="neg",
        op_func="neg",
        rule=Rule.SAME_STICK,
        extents=(2,),
        inputs=(Use(reads, _ACCESS),),
        output=Use(writes, _ACCESS),
        origin=Derived("test", ()),
        loops=loops,
    )


def _expected(kernels: Sequence[Kernel]) -> dict[str, tuple[int, int]]:
    users = {
        use.buffer: [place for place, other in enumerate(kernels) if use.buffer in {item.buffer for item in other.uses}]
        for kernel in kernels
        for use in kernel.uses
    }
    spans: dict[int, tuple[int, int]] = {}
    for place, kernel in enumerate(kernels):
        for loop in kernel.loops:
            spans[loop] = (spans.get(loop, (place, place))[0], place)
    found: dict[str, tuple[int, int]] = {}
    for name, places in users.items():
        first, last = min(places), max(places)
        for begin, end in sorted(spans.values(), key=lambda span: span[1] - span[0]):
            is_touched, is_inside = first <= end and begin <= last, begin <= first and last <= end
            if is_touched and not is_inside:
                first, last = min(first, begin), max(last, end)
        found[name] = (first, last)
    return found


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), min_size=15, max_size=15))
def test_what_crosses_a_loops_border_lives_through_all_of_the_loop(names: Sequence[tuple[str, str]]) -> None:
    pairs = zip(_NESTS, names, strict=True)
    kernels = [_kernel(number, loops, *pair) for number, (loops, pair) in enumerate(pairs)]
    assert {name: (life.first, life.last) for name, life in lifetimes(kernels).items()} == _expected(kernels)
