"""Random pools and convolutions: emitted, read back, executed by both engines, held against loops in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.diagnostics import DiagnosticSink, SpyrecError
from spyrec.hardware import dlfloat
from tests.conformance.test_windows import CONVOLUTION, DEPTHWISE, EXACT, OWN, POOL, launched, result_of
from tests.support.both_engines import Launched
from tests.support.window_specs import Doubles, Pair, Problem, rounded_up

_SMALL = st.integers(1, 3)
EXAMPLES = max(2, (settings().max_examples or 0) * 2 // 5)  # each of them is executed by both engines


@st.composite
def problems(draw: st.DrawFn, op: str) -> Problem:
    """Return an operation whose input is small; divided channels are whole sticks."""
    taps_from = 1 if op == DEPTHWISE else 2
    taps: Pair = (draw(st.integers(taps_from, 3)), draw(st.integers(taps_from, 3)))
    outputs: Pair = (draw(st.integers(2, 4)), draw(st.integers(2, 4)))
    dilation: Pair = (1, 1) if op == POOL else (draw(_SMALL), draw(_SMALL))
    is_whole = op == CONVOLUTION or draw(st.booleans())
    channels = 64 * draw(st.integers(1, 2)) if is_whole else draw(st.integers(1, 100))
    padding: Pair = (draw(st.integers(0, taps[0] - 1)), draw(st.integers(0, taps[1] - 1)))
    cuts = {"h": outputs[0], "w": outputs[1], "c": channels // 64 if channels % 64 == 0 else 1}
    divided = draw(st.sets(st.sampled_from(list(cuts))))
    problem = Problem(
        op,
        draw(st.integers(1, 2)),
        channels,
        outputs,
        taps,
        (draw(_SMALL), draw(_SMALL)),
        padding,
        dilation,
        splits={name: cut for name, cut in cuts.items() if name in divided and cut > 1},
        pad_type=draw(st.sampled_from([None, "padded_nozeropad", "padded_wzeropad"])) if op != POOL else None,
    )
    rest: Pair = (draw(st.integers(0, 2)), draw(st.integers(0, 2)))
    if op == DEPTHWISE:
        # what a window does not reach is less than a step
        return replace(problem, rest=(min(rest[0], problem.strides[0] - 1), min(rest[1], problem.strides[1] - 1)))
    return rounded_up(problem, rest)


def hold(problem: Problem, made: Launched, result: Doubles) -> None:
    for superdsc in made.superdscs.values():
        sink, text = DiagnosticSink(), to_bytes(superdsc)
        assert to_bytes(parse_superdsc(text + b" ", None, sink)) == text
        assert sink.diagnostics == []
    made.assert_equal()
    roundings = 2.01 if problem.op == POOL else 1.01
    atol = 1e-6 * float(np.abs(result).max()) + 1e-12
    found = result_of(problem, made, "fast")
    np.testing.assert_allclose(found, result, rtol=roundings * dlfloat.UNIT_ROUNDOFF, atol=atol)


@pytest.mark.parametrize("op", [POOL, CONVOLUTION, DEPTHWISE])
@settings(deadline=None, max_examples=EXAMPLES)
@given(st.data())
def test_a_random_window_computes_what_loops_over_it_compute(op: str, data: st.DataObject) -> None:
    problem = data.draw(problems(op))
    if min(problem.extent) < 1:
        return
    hold(problem, *launched(problem, OWN))


@pytest.mark.parametrize("op", [POOL, CONVOLUTION, DEPTHWISE])
@settings(deadline=None, max_examples=EXAMPLES)
@given(st.data())
def test_what_upstream_would_write_computes_the_same_or_is_refused(op: str, data: st.DataObject) -> None:
    """Its files leave padding open, say one dilation only, and step divided axes by the place of a dim."""
    problem = data.draw(problems(op))
    if min(problem.extent) < 1:
        return
    made, result = launched(problem, EXACT)
    if op == CONVOLUTION and problem.dilation != (1, 1):
        assert all(sizes.dilation == 1 for item in made.superdscs.values() for sizes in item.padding_sizes.values())
        return
    try:
        hold(problem, made, result)
    except SpyrecError as error:
        codes = {item.code for item in error.diagnostics}
        assert codes <= {"SPY0714", "SPY0715", "SPY0716", "SPY0717", "SPY0721", "SPY0724"}
        is_plain = problem.padding == (0, 0) and not problem.splits and problem.dilation == (1, 1)
        assert not is_plain or problem.rest != (0, 0)
