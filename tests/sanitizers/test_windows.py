"""``init`` over sliding windows: what a window does not reach may be undefined, padding is not, the rest is found."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from spyrec.bundle.dialects import AUGUST_2026
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.opspec import OpSpecFile
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.runtime.device import ArgumentTable, TableEntry
from spyrec.runtime.findings import Finding, Sanitizer
from tests.sanitizers.planting import HandMade
from tests.support.window_specs import Problem, rounded_up, spec_of

PROBLEMS = [
    rounded_up(Problem("avgpoolfwd", 1, 64, (4, 3), (3, 2), (2, 1), splits={"h": 2})),
    rounded_up(Problem("avgpoolfwd", 1, 64, (3, 3), (3, 3), padding=(1, 1))),
    Problem("conv2d", 1, 64, (3, 3), (2, 2), in_channels=128, splits={"d": 2}),
    Problem("conv2d", 1, 64, (3, 3), (3, 3), padding=(1, 1)),
    Problem("depthwiseconv2dnative", 2, 64, (4, 3), (3, 3), (2, 2), splits={"h": 2}),
    Problem("depthwiseconv2dnative", 2, 64, (4, 4), (3, 3), padding=(1, 1), splits={"h": 4, "w": 2}),
    rounded_up(Problem("conv2d", 1, 64, (4, 4), (2, 3), (2, 1), (1, 1), splits={"w": 4})),
]


def watched(problem: Problem) -> HandMade:
    """Return the operation on a watched device whose arguments lie where their addresses are baked."""
    spec = spec_of(problem)
    file = OpSpecFile(symbolic_args=False, unroll_loops=False, specs=(spec,))
    made = emit_opspecs(file, CodegenOptions(dialect=AUGUST_2026, symbolic_args=False))
    entries = tuple(
        TableEntry(f"t{i}", i, arg.device_size, arg.device_dtype, i * SEGMENT_BYTES, 2 * math.prod(arg.device_size))
        for i, arg in enumerate(spec.args)
    )
    return HandMade(list(made.superdscs.values()), ArgumentTable(entries), "all")


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.op)
def test_what_is_defined_gives_what_is_defined(problem: Problem) -> None:
    made = watched(problem)
    last = len(made.table.entries) - 1
    assert made.run(range(last), [last]) == ()


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.op)
def test_an_input_that_nothing_wrote_is_found(problem: Problem) -> None:
    made = watched(problem)
    assert {item.sanitizer for item in findings(made, 0x3E)} == {Sanitizer.INIT}


def findings(made: HandMade, octet: int) -> tuple[Finding, ...]:
    """Return what is found where the weights hold one octet throughout, and nobody wrote the input."""
    last = len(made.table.entries) - 1
    for place in range(1, last):
        made.give(place, np.full(made.copy_of(place, is_to_device=True).size_bytes, octet, np.uint8))
    return made.run((), [last])


def test_channels_whose_weights_are_zero_may_be_undefined() -> None:
    """They count as zero: what a host copy leaves out of the last stick of them is no matter."""
    assert findings(watched(Problem("conv2d", 1, 64, (3, 3), (3, 3), padding=(1, 1))), 0) == ()
    assert findings(watched(Problem("conv2d", 1, 64, (3, 3), (3, 3), in_channels=128)), 0) != ()


@pytest.mark.parametrize("row", range(9))
def test_a_row_that_no_window_reaches_may_be_undefined(row: int) -> None:
    """Windows of one row at every third: rows 0, 3 and 6 count, the others fill the steps."""
    problem = rounded_up(Problem("avgpoolfwd", 1, 64, (3, 2), (1, 2), (3, 1)))
    assert problem.extent[0] == 9
    made = watched(problem)
    whole = made.copy_of(0, is_to_device=True)
    row_bytes = whole.size_bytes // 9
    made.device.memory(whole.address, whole.size_bytes)[:] = 0
    for other in range(9):
        if other != row:
            part = replace(whole, address=whole.address + other * row_bytes, size_bytes=row_bytes)
            made.monitor.copied_in(replace(part, device_size=(row_bytes // 128, 64)))
    made.launch()
    made.monitor.copied_out(made.copy_of(1, is_to_device=False))
    assert bool(made.monitor.findings) == (row in {0, 3, 6})
