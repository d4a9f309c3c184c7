"""OpSpecs of pools and convolutions, their operands in device memory, and what they compute, element by element."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spyrec.codegen.expression import CoordinateExpression, parse_expression
from spyrec.codegen.opspec import AllocationKind, ArgumentAllocation, IterationDim, OpInfo, OpSpec, TensorArgument
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SEGMENT_BYTES

Doubles = npt.NDArray[np.float64]
Pair = tuple[int, int]
HALF = DeviceFormat.SEN169_FP16


@dataclass(frozen=True, slots=True)
class Problem:
    """One operation on images ``[N, H, W, C]``: window, strides, padding, dilation by (rows, columns)."""

    op: str
    images: int
    channels: int
    outputs: Pair
    taps: Pair
    strides: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    in_channels: int = 64
    rest: Pair = (0, 0)
    """Elements of the input behind what windows reach; a whole step less one is what pools and convolutions need."""
    splits: Mapping[str, int] = field(default_factory=dict[str, int])
    pad_type: str | None = None
    """``padded_wzeropad``: memory holds the padding; ``extent`` is without it all the same."""

    @property
    def extent(self) -> Pair:
        """Rows and columns of the input, without padding."""
        reached = [(n - 1) * s + (k - 1) * d + 1 - 2 * p + r
                   for n, k, s, p, d, r in zip(self.outputs, self.taps, self.strides, self.padding, self.dilation,
                                               self.rest, strict=True)]  # fmt: skip
        return reached[0], reached[1]

    @property
    def held(self) -> Pair:
        """Rows and columns that memory holds of the input."""
        rows, columns = self.extent
        more = 2 if self.pad_type == "padded_wzeropad" else 0
        return rows + more * self.padding[0], columns + more * self.padding[1]

    @property
    def source_channels(self) -> int:
        return self.in_channels if self.op == "conv2d" else self.channels

    @property
    def input_shape(self) -> tuple[int, int, int, int]:
        return (self.images, *self.extent, self.source_channels)

    @property
    def weights_shape(self) -> tuple[int, ...]:
        """``[kernel rows, kernel columns, in, out]``, of a depthwise one without ``in``."""
        return (*self.taps, self.in_channels, self.channels) if self.op == "conv2d" else (*self.taps, self.channels)

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        return (self.images, *self.outputs, self.channels)


def rounded_up(problem: Problem, rest: Pair = (0, 0)) -> Problem:
    """Return a pool or convolution whose input has whole steps, which is all that its device layout can say."""
    found = [-(problem.held[at] + rest[at] * problem.strides[at]) % problem.strides[at]
             + rest[at] * problem.strides[at] for at in (0, 1)]  # fmt: skip
    return Problem(**{name: getattr(problem, name) for name in problem.__slots__ if name != "rest"},
                   rest=(found[0], found[1]))  # fmt: skip


def spec_of(problem: Problem) -> OpSpec:
    """Return the OpSpec of a problem; symbols: n, h, w, c, d (input channels), p and q (the window)."""
    sizes = {"n": problem.images, "h": problem.outputs[0], "w": problem.outputs[1], "c": problem.channels,
             "d": problem.in_channels, "p": problem.taps[0], "q": problem.taps[1]}  # fmt: skip
    order = {"avgpoolfwd": "nhwcpq", "conv2d": "nhwcdpq", "depthwiseconv2dnative": "nchwpq"}[problem.op]
    left_out = {"n", "c"} if problem.op != "depthwiseconv2dnative" else {"n", "c", "p", "q"}
    left_out |= {"h", "w"} if problem.op == "avgpoolfwd" else set()
    iterated = [name for name in order if not (name in left_out and sizes[name] == 1)]
    space = tuple(IterationDim(name, sizes[name], problem.splits.get(name, 1)) for name in iterated)
    arguments = [_argument(0, *_input_axes(problem, iterated))]
    if problem.op == "conv2d":
        inside = 64 * _sticks(problem.in_channels)  # whole sticks, as the input has them
        arguments.append(_argument(1, [(_sticks(problem.channels), "floor(c/64)"), (problem.taps[1], "q"),
                                       (inside, "d"), (problem.taps[0], "p")], "Mod(c, 64)"))  # fmt: skip
    elif problem.op == "depthwiseconv2dnative":
        windows = [
            (problem.taps[0], "p" if "p" in iterated else "0"),
            (problem.taps[1], "q" if "q" in iterated else "0"),
        ]
        outer, last = _channel_axes(problem.channels, "c", iterated)
        arguments.append(_argument(1, [*outer, *windows], last))
    outer, last = _channel_axes(problem.channels, "c", iterated)
    axes = [
        *outer,
        *([(problem.outputs[0], "h")] if "h" in iterated else []),
        *([(problem.outputs[1], "w")] if "w" in iterated else []),
        *([(problem.images, "n")] if "n" in iterated else []),
    ]
    arguments.append(_argument(len(arguments), axes, last, is_input=False))
    return OpSpec(problem.op, True, space, tuple(arguments), op_info=_op_info(problem),
                  node_output_ranges=(problem.images, problem.channels, *problem.outputs))  # fmt: skip


def _sticks(channels: int) -> int:
    return -(-channels // 64)


def _channel_axes(channels: int, symbol: str, iterated: Sequence[str]) -> tuple[list[tuple[int, str]], str]:
    if symbol not in iterated:
        return [(1, "0")], "0"
    return [(_sticks(channels), f"floor({symbol}/64)")], f"Mod({symbol}, 64)"


def _input_axes(problem: Problem, iterated: Sequence[str]) -> tuple[list[tuple[int, str]], str]:
    outer, last = _channel_axes(problem.source_channels, "d" if problem.op == "conv2d" else "c", iterated)
    rows, columns = problem.held
    images = [(problem.images, "n")] if "n" in iterated else []
    if problem.op == "depthwiseconv2dnative":
        return [*outer, (rows, "h"), (columns, "w"), *images], last
    down, across = problem.strides
    of_rows = [(rows // down, "h"), (down, "p")] if "h" in iterated else [(rows, "p")]
    of_columns = [(columns // across, "w"), (across, "q")] if "w" in iterated else [(columns, "q")]
    return [*outer, *of_rows, *of_columns, *images], last


def _argument(index: int, axes: Sequence[tuple[int, str]], last: str, *, is_input: bool = True) -> TensorArgument:
    coordinates: list[CoordinateExpression] = [parse_expression(text) for _, text in axes]
    device_size = (*(size for size, _ in axes), 64)
    place = ArgumentAllocation(AllocationKind.HBM, index * SEGMENT_BYTES)
    return TensorArgument(is_input, index, HALF, device_size, (*coordinates, parse_expression(last)), place)


def _op_info(problem: Problem) -> OpInfo:
    if problem.op == "depthwiseconv2dnative":
        return OpInfo(conv_params={
            "kernel_h": problem.taps[0], "kernel_w": problem.taps[1],
            "pad_type": problem.pad_type or "padded_fullspan_wunneeded",
            **{f"{name}_{axis}": values[at] for name, values in (("stride", problem.strides), ("pad", problem.padding),
                                                                 ("dilation", problem.dilation))
               for at, axis in enumerate("ij")},
            **{f"total_size_{axis}": problem.extent[at] + 2 * problem.padding[at] for at, axis in enumerate("ij")},
        })  # fmt: skip
    numbers = {f"{name}_{axis}": values[at] for name, values in (("kernel", problem.taps), ("stride", problem.strides),
                                                               ("pad", problem.padding), ("dil", problem.dilation))
               for at, axis in enumerate("hw")}  # fmt: skip
    if problem.op == "conv2d":
        return OpInfo(conv_params=numbers | ({} if problem.pad_type is None else {"pad_type": problem.pad_type}))
    return OpInfo(constants={**numbers, "scaling_factor": 1 / math.prod(problem.taps)})


def in_device_order(values: Doubles, argument: TensorArgument, filler: float = 0.0) -> Doubles:
    """Return images ``[N, H, W, C]`` as ``[C / 64, H, W, N, 64]``, a ragged last stick filled up."""
    images, rows, columns, channels = values.shape
    sticks = _sticks(channels)
    padded = np.full((images, rows, columns, 64 * sticks), filler)
    padded[..., :channels] = values
    moved = padded.reshape(images, rows, columns, sticks, 64).transpose(3, 1, 2, 0, 4)
    assert moved.size == math.prod(argument.device_size)
    return moved.reshape(-1)


def weights_in_device_order(problem: Problem, values: Doubles) -> Doubles:
    sticks = _sticks(problem.channels)
    padded = np.zeros((*values.shape[:-1], 64 * sticks))
    padded[..., : problem.channels] = values
    if problem.op == "conv2d":
        rows, columns, channels, _ = values.shape
        return padded.reshape(rows, columns, channels, sticks, 64).transpose(3, 1, 2, 0, 4).reshape(-1)
    rows, columns, _ = values.shape
    return padded.reshape(rows, columns, sticks, 64).transpose(2, 0, 1, 3).reshape(-1)


def from_device_order(problem: Problem, memory: Doubles) -> Doubles:
    sticks = _sticks(problem.channels)
    shaped = memory.reshape(sticks, *problem.outputs, problem.images, 64).transpose(3, 1, 2, 0, 4)
    return shaped.reshape(*shaped.shape[:3], 64 * sticks)[..., : problem.channels]


def wanted(problem: Problem, source: Doubles, weights: Doubles | None) -> Doubles:
    """Return the result in float64, window by window and tap by tap."""
    result = np.zeros(problem.output_shape)
    for row in range(problem.outputs[0]):
        for column in range(problem.outputs[1]):
            for tap_row in range(problem.taps[0]):
                for tap_column in range(problem.taps[1]):
                    y = row * problem.strides[0] + tap_row * problem.dilation[0] - problem.padding[0]
                    x = column * problem.strides[1] + tap_column * problem.dilation[1] - problem.padding[1]
                    if not (0 <= y < problem.extent[0] and 0 <= x < problem.extent[1]):
                        continue
                    element = source[:, y, x, :]
                    if problem.op == "conv2d":
                        assert weights is not None
                        element = element @ weights[tap_row, tap_column]
                    elif weights is not None:
                        element = element * weights[tap_row, tap_column]
                    result[:, row, column, :] += element
    return result / math.prod(problem.taps) if problem.op == "avgpoolfwd" else result
