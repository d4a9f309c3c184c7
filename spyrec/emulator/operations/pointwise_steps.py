"""Steps of the operations that work element by element, bound to the addresses of one launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spyrec.emulator.engine import Doers, StepRequest
from spyrec.emulator.geometry import Nest
from spyrec.emulator.kernels.copies import copy_work
from spyrec.emulator.kernels.direct import combine_step, direct_function, three_operands
from spyrec.emulator.kernels.nests import NO_NUMBERS, NO_TABLE, Work
from spyrec.emulator.kernels.norm import can_normalise, norm_step
from spyrec.emulator.kernels.pointwise import OPERATIONS, block_functions, codecs_of, pointwise_step
from spyrec.emulator.kernels.records import Held
from spyrec.emulator.operations.bound_calls import BoundCalls, KernelStep, is_worth_sharing
from spyrec.emulator.operations.spread_nest import spread
from spyrec.files.linked_kernel import Linked

Integers = npt.NDArray[np.int64]
Table = npt.NDArray[np.uint16]


def pointwise_steps(
    operation: str, codes: Integers, positions: Sequence[int], nests: Sequence[Nest], request: StepRequest
) -> BoundCalls:
    """Return the steps of one operation; ``positions``: of the nests' operands."""
    used = request.starts[list(positions)]
    places = [_places(operation, codes, used, nest, request.doers) for nest in nests]
    return BoundCalls([step_of(_work(operation, codes, loops), positions, at, loops) for at, loops in places])


def copy_steps(
    word_bytes: int, table: Table, positions: Sequence[int], nests: Sequence[Nest], request: StepRequest
) -> BoundCalls:
    """Return the steps of one copy, through the table unless it is empty."""
    work, used = copy_work(word_bytes, table), request.starts[list(positions)]
    return BoundCalls([step_of(work, positions, *_spread(used, nest, request.doers)) for nest in nests])


def _places(operation: str, codes: Integers, used: Integers, nest: Nest, doers: Doers) -> tuple[Integers, Integers]:
    """Return starts and loops that suit an operation's kernel."""
    at, loops = _spread(used, nest, doers)
    if not can_normalise(operation, codes, loops) and can_normalise(operation, codes, nest.loops):
        return used + nest.offsets[:, None], nest.loops
    return at, loops


def _spread(starts: Integers, nest: Nest, doers: Doers) -> tuple[Integers, Integers]:
    if doers is Doers.BOX_BY_BOX:
        return starts + nest.offsets[:, None], nest.loops
    is_shared = doers is Doers.THREADS and is_worth_sharing(starts.shape[1] * nest.points)
    return spread(starts, nest, is_shared=is_shared)


def _work(operation: str, codes: Integers, loops: Integers) -> Work:
    """Return what computes one operation on a nest; all kernels give the same bits."""
    direct = direct_function(operation, codes, loops)
    if direct is not None:
        return direct_work(direct)
    if can_normalise(operation, codes, loops):
        return norm_work()
    return block_work(operation, codes)


def direct_work(function: Linked) -> Work:
    """Return what goes from memory to memory by one of ``direct_function``."""
    return Work(combine_step, function.address, NO_NUMBERS, NO_TABLE, NO_NUMBERS)


def norm_work() -> Work:
    """Return what normalises rows."""
    return Work(norm_step, 0, NO_NUMBERS, NO_TABLE, NO_NUMBERS)


def block_work(operation: str, codes: Integers) -> Work:
    """Return what computes an operation block by block, on operands with these formats, the result last."""
    return Work(pointwise_step, OPERATIONS[operation].address, codecs_of(codes), NO_TABLE, block_functions(operation))


def step_of(work: Work, positions: Sequence[int], starts: Integers, loops: Integers) -> KernelStep:
    """Return the step over ``loops`` from ``starts[operand, origin]``; ``positions``: of the operands in movements."""
    if work.step is combine_step:
        starts, loops = three_operands(starts, loops)
        positions = positions if len(positions) == 3 else [positions[0], *positions]
    tasks = starts.shape[1] * int(np.prod(loops[2:, 0], dtype=np.int64))
    elements = tasks * int(loops[0, 0] * loops[1, 0])
    held = Held()
    return KernelStep.of(work.step, work.record(positions, starts, loops, held), held, tasks, elements)
