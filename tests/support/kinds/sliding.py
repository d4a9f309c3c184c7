"""Pools and convolutions of small images, their windows strided, padded, dilated, and divided among cores."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import numpy.typing as npt

from spyrec.codegen.opspec import TensorArgument
from spyrec.hardware import dlfloat
from tests.support.kinds.program import Doubles, Elements, RandomProgram, cuts_of, generator_of
from tests.support.window_specs import Pair, Problem, rounded_up, spec_of, wanted

POOL, CONVOLUTION, DEPTHWISE = "avgpoolfwd", "conv2d", "depthwiseconv2dnative"


def problem(source: Random, op: str) -> Problem:
    """Return an operation on a small input; divided channels are whole sticks."""
    while True:
        found = _drawn(source, op)
        if min(found.extent) > 0:
            return found


def _pair(source: Random, numbers: list[int]) -> Pair:
    return source.choice(numbers), source.choice(numbers)


def _drawn(source: Random, op: str) -> Problem:
    is_heavy = op == CONVOLUTION
    taps = _pair(source, [1, 2, 3] if op == DEPTHWISE else [2, 3] if not is_heavy else [2, 2, 2, 2, 3])
    outputs = _pair(source, {POOL: [1, 2, 3, 4], DEPTHWISE: [2, 3, 4], CONVOLUTION: [2, 2, 2, 3]}[op])
    dilation = (1, 1) if op == POOL else _pair(source, [1, 1, 2, 3])
    channels = source.choice([1, 3, 63, 64, 64, 70, 128, 128] if not is_heavy else [3, 64, 64, 64, 70, 128])
    padding = (source.randint(0, taps[0] - 1), source.randint(0, taps[1] - 1))
    pad_type = source.choice([None, "padded_nozeropad", "padded_wzeropad"]) if op != POOL else None
    images = source.choice([1, 1, 2, 3] if not is_heavy else [1, 1, 1, 1, 2])
    counts = {"n": images, "h": outputs[0], "w": outputs[1], "c": channels // 64 if channels % 64 == 0 else 1}
    splits = cuts_of(source, counts, 16)
    in_channels = source.choice([3, 63, 64, 64, 64, 64, 64, 64, 64, 64, 64, 128]) if is_heavy else 64
    splits |= {"d": 2} if in_channels == 128 else {}
    made = Problem(op, images, channels, outputs, taps, _pair(source, [1, 2, 3]), padding, dilation,
                   in_channels=in_channels, pad_type=pad_type,
                   splits={symbol: cut for symbol, cut in splits.items() if cut > 1})  # fmt: skip
    rest = _pair(source, [0, 0, 1, 2])
    if op == DEPTHWISE:
        # what a window does not reach is less than a step
        return replace(made, rest=(min(rest[0], made.strides[0] - 1), min(rest[1], made.strides[1] - 1)))
    return rounded_up(made, rest)


def _placed(shape: tuple[int, ...], images_inside: bool, argument: TensorArgument) -> tuple[npt.NDArray[np.int64], ...]:
    """Return where ``[.., C]`` lies as ``[C / 64, .., 64]``; ``images_inside``: the first dim innermost."""
    *outer, channel = np.indices(shape).reshape(len(shape), -1)
    extents = list(shape[:-1])
    if images_inside:
        outer, extents = [*outer[1:], outer[0]], [*extents[1:], extents[0]]
    flat = channel // 64
    for place, extent in zip(outer, extents, strict=True):
        flat = flat * extent + place
    return tuple(np.unravel_index(flat * 64 + channel % 64, argument.device_size))


def of_problem(source: Random, case: Problem) -> RandomProgram:
    """Return the program of a problem on eighths, and what loops over windows and taps make of it."""
    generator = generator_of(source)
    spec = spec_of(case)
    x = generator.integers(-16, 17, case.input_shape) / 8.0
    front = [(held - own) // 2 for held, own in zip(case.held, case.extent, strict=True)]
    held = np.pad(x, [(0, 0), *((size, size) for size in front), (0, 0)])
    given = {0: Elements(_placed(held.shape, True, spec.args[0]), held)}
    weights: Doubles | None = None
    if case.op != POOL:
        weights = generator.integers(-8, 9, case.weights_shape) / 8.0
        given[1] = _weights(case, spec.args[1], weights)
    result = wanted(case, x, weights)
    roundings = 2.01 if case.op == POOL else 1.01  # the reciprocal of a pool's area is rounded too
    last = len(spec.args) - 1
    absolute = 1e-6 * float(np.abs(result).max()) + 1e-12
    where = _placed(case.output_shape, True, spec.args[last])
    outcome = Elements(where, result, roundings * dlfloat.UNIT_ROUNDOFF, absolute)
    return RandomProgram((spec,), given, {last: outcome})


def _weights(case: Problem, argument: TensorArgument, values: Doubles) -> Elements:
    """Return ``[rows, columns, in, out]`` as ``[out / 64, columns, in, rows, 64]``, depthwise ones in their own order.

    Input channels that fill up a stick have weights, which are zero.
    """
    if case.op != CONVOLUTION:
        return Elements(_placed(values.shape, False, argument), values)
    padded = np.zeros((*case.taps, argument.device_size[2], case.channels))
    padded[:, :, : case.in_channels] = values
    return Elements(_placed(padded.shape, True, argument), padded)


def pools(source: Random) -> RandomProgram:
    """Means over windows."""
    return of_problem(source, problem(source, POOL))


def convolutions(source: Random) -> RandomProgram:
    """Convolutions over 64 channels."""
    return of_problem(source, problem(source, CONVOLUTION))


def depthwise(source: Random) -> RandomProgram:
    """Convolutions of each channel by itself."""
    return of_problem(source, problem(source, DEPTHWISE))
