"""Random pools and convolutions as upstream writes them: what its files leave open or say wrong is refused."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.diagnostics import SpyrecError
from tests.support.examples import examples
from tests.support.kinds.program import EXACT, hold
from tests.support.kinds.sliding import CONVOLUTION, DEPTHWISE, POOL, of_problem, problem


@pytest.mark.parametrize("op", [POOL, CONVOLUTION, DEPTHWISE])
def test_what_upstream_would_write_computes_the_same_or_is_refused(op: str) -> None:
    """Its files leave padding open, say one dilation only, and step divided axes by the place of a dim."""

    @examples(40)
    @given(st.integers(0, 1 << 30))
    def check(seed: int) -> None:
        source = Random(seed)
        drawn = problem(source, op)
        case = replace(of_problem(source, drawn), options=EXACT)
        if op == CONVOLUTION and drawn.dilation != (1, 1):
            files = case.emitted().superdscs.values()
            assert all(sizes.dilation == 1 for item in files for sizes in item.padding_sizes.values())
            return
        try:
            hold(case)
        except SpyrecError as error:
            codes = {item.code for item in error.diagnostics}
            assert codes <= {"SPY0714", "SPY0715", "SPY0716", "SPY0717", "SPY0721", "SPY0724"}
            is_plain = drawn.padding == (0, 0) and not drawn.splits and drawn.dilation == (1, 1)
            assert not is_plain or drawn.rest != (0, 0) or 1 in drawn.outputs

    check()
