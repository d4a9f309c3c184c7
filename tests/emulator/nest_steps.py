"""Steps of pointwise operations on arrays of the test's own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.emulator.kernels.nests import Work
from spyrec.emulator.operations.bound_calls import BoundCalls
from spyrec.emulator.operations.pointwise_steps import step_of
from spyrec.runtime.threads import Threads

Integers = npt.NDArray[np.int64]


def run_step(work: Work, starts: Integers, nest: Integers) -> None:
    """Do some work over a nest from ``starts[operand, origin]``, all tasks in one call."""
    step = step_of(work, range(len(starts)), starts, nest)
    BoundCalls([step]).run(np.zeros(len(starts), np.int64), Threads(1))
