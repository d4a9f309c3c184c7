"""``col2im`` adds up windows, ``grid_sampler_2d`` reads an image at fractional places.  The host computes them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.ir.attributes import Dims
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.opdef import Array, OperandSpec, OperandTypes, OpError, rule
from spyrec.ir.operands import Floats, common_float, floats, require_float, require_rank, tensor, unsupported
from spyrec.ir.samples import f16, f32
from spyrec.ir.types import TensorType
from spyrec.ir.windows import Sliding, per_dim


@dataclass(frozen=True, slots=True)
class Col2imAttributes:
    """``output_size`` of the image, and the windows that its columns are."""

    output_size: Dims
    kernel_size: Dims
    dilation: Dims = (1,)
    padding: Dims = (0,)
    stride: Dims = (1,)


def _windows(attributes: Col2imAttributes) -> tuple[Sliding, ...]:
    found = zip(
        per_dim(attributes.kernel_size, 2, "kernel_size"),
        per_dim(attributes.stride, 2, "stride"),
        per_dim(attributes.dilation, 2, "dilation"),
        per_dim(attributes.padding, 2, "padding", 0),
    )
    return tuple(Sliding(kernel, stride, dilation, pad, pad) for kernel, stride, dilation, pad in found)


def _infer_col2im(operands: OperandTypes, attributes: Col2imAttributes) -> tuple[TensorType, ...]:
    x = tensor(operands)
    require_float(x, 0)
    require_rank(x, (2, 3), 0)
    image, windows = per_dim(attributes.output_size, 2, "output_size"), _windows(attributes)
    places = math.prod(window.places(extent) for window, extent in zip(windows, image))
    positions = math.prod(window.kernel for window in windows)
    if x.shape[-1] != places or x.shape[-2] % positions:
        message = f"{x} holds no columns of {positions} elements for each of {places} places"
        raise OpError("SPY0207", message, operand=0)
    return (TensorType((*x.shape[:-2], x.shape[-2] // positions, *image), x.dtype),)


def _col2im(operands: Sequence[Array | None], attributes: Col2imAttributes) -> tuple[Array, ...]:
    x, windows = floats(operands), _windows(attributes)
    image = per_dim(attributes.output_size, 2, "output_size")
    counts = [window.places(extent) for window, extent in zip(windows, image)]
    kernel = [window.kernel for window in windows]
    channels = x.shape[-2] // math.prod(kernel)
    columns = x.reshape(*x.shape[:-2], channels, *kernel, *counts)
    wide = [extent + window.before + window.after for window, extent in zip(windows, image)]
    result = np.zeros((*columns.shape[:-4], *wide))
    for at in np.ndindex(*kernel):
        places = tuple(
            slice(first, first + (count - 1) * window.stride + 1, window.stride)
            for first, count, window in zip(
                (position * window.dilation for position, window in zip(at, windows)), counts, windows
            )
        )
        result[(..., *places)] += columns[(..., *at, slice(None), slice(None))]
    inside = tuple(slice(window.before, window.before + extent) for window, extent in zip(windows, image))
    return (result[(..., *inside)],)


define_on_host(
    "col2im",
    "an image in which the columns of windows are added up (torch.nn.functional.fold)",
    (OperandSpec("input"),),
    HostRules(rule(Col2imAttributes, _infer_col2im), rule(Col2imAttributes, _col2im)),
    (
        ((f16(2, 12, 6),), Col2imAttributes((3, 4), (2, 2))),
        ((f32(4, 9),), Col2imAttributes((4, 4), (2, 2), padding=(1,), stride=(2,))),
    ),
    Col2imAttributes,
)


@dataclass(frozen=True, slots=True)
class GridAttributes:
    """``interpolation_mode``: 0 bilinear, 1 nearest; ``padding_mode`` of places outside: 0 zeros, 1 the border's.

    Bicubic (2) and reflection (2) are refused.  ``align_corners``: -1 and 1 are the centres of the outer elements, else
    their outer edges.
    """

    interpolation_mode: int
    padding_mode: int
    align_corners: bool


def _infer_grid(operands: OperandTypes, attributes: GridAttributes) -> tuple[TensorType, ...]:
    x, grid = tensor(operands), tensor(operands, 1)
    common_float(operands)
    require_rank(x, (4,), 0)
    require_rank(grid, (4,), 1)
    for name, value, meaning in (
        ("interpolation_mode", attributes.interpolation_mode, "bilinear (0) or nearest (1)"),
        ("padding_mode", attributes.padding_mode, "zeros (0) or border (1)"),
    ):
        if value not in (0, 1):
            raise unsupported(name, value, f"choose {meaning}")
    if grid.shape[0] != x.shape[0] or grid.shape[3] != 2 or 0 in x.shape[2:]:
        message = f"the grid {grid} has not two coordinates for places of each sample of {x}"
        raise OpError("SPY0207", message, operand=1)
    return (TensorType((*x.shape[:2], *grid.shape[1:3]), x.dtype),)


def _coordinate(place: Floats, extent: int, attributes: GridAttributes) -> Floats:
    """Return where -1 to 1 lies among ``extent`` elements."""
    found = (place + 1) / 2 * (extent - 1) if attributes.align_corners else ((place + 1) * extent - 1) / 2
    found = np.nan_to_num(found, nan=-1.0, posinf=1e18, neginf=-1e18)
    return np.clip(found, 0, extent - 1) if attributes.padding_mode == 1 else np.clip(found, -2.0, extent + 1.0)


def _grid(operands: Sequence[Array | None], attributes: GridAttributes) -> tuple[Array, ...]:
    x, grid = floats(operands), floats(operands, 1)
    height, width = x.shape[2:]
    columns, rows = _coordinate(grid[..., 0], width, attributes), _coordinate(grid[..., 1], height, attributes)
    result = np.zeros((*x.shape[:2], *grid.shape[1:3]))
    if attributes.interpolation_mode == 1:
        pairs = [(np.rint(rows), np.rint(columns), np.ones(rows.shape))]
    else:
        top, left = np.floor(rows), np.floor(columns)
        pairs = [
            (row, column, (1 - np.abs(rows - row)) * (1 - np.abs(columns - column)))
            for row in (top, top + 1)
            for column in (left, left + 1)
        ]
    sample = np.arange(x.shape[0], dtype=np.int64).reshape(-1, 1, 1)
    for row, column, weight in pairs:
        is_inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        i, j = (np.where(is_inside, item, 0).astype(np.int64) for item in (row, column))
        found = x[sample, :, i, j] * np.where(is_inside, weight, 0.0)[..., None]
        result += np.where(is_inside[..., None], found, 0.0).transpose(0, 3, 1, 2)
    return (result,)


define_on_host(
    "grid_sampler_2d",
    "an image read at fractional places, -1 to 1 from edge to edge (torch.nn.functional.grid_sample)",
    (OperandSpec("input"), OperandSpec("grid")),
    HostRules(rule(GridAttributes, _infer_grid), rule(GridAttributes, _grid)),
    (
        ((f16(2, 3, 4, 5), f16(2, 6, 7, 2)), GridAttributes(0, 0, align_corners=False)),
        ((f32(1, 1, 4, 5), f32(1, 2, 2, 2)), GridAttributes(1, 1, align_corners=True)),
    ),
    GridAttributes,
)
