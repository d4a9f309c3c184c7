"""Short ways to write contracts and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from spyrec.bundle.manifest import Role
from spyrec.bundle.tile_contract import TileArgument, TileContract, TileLoop
from spyrec.hardware.dtypes import DType
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.launch.plan import LaunchTensor

INPUT, OUTPUT, INOUT = Role.INPUT, Role.OUTPUT, Role.INOUT
Axes = Sequence[str | None] | None

_ALLOCATIONS = count(1)


def default(shape: Sequence[int], dtype: DType = DType.FLOAT16) -> DeviceLayout:
    return DeviceLayout.default(shape, dtype)


def argument(
    name: str,
    role: Role,
    shape: Sequence[int],
    axes: Axes,
    *,
    dtype: DType = DType.FLOAT16,
    takes_strides: bool = False,
) -> TileArgument:
    followed = None if axes is None else tuple(axes)
    return TileArgument(name, role, dtype, default(shape, dtype), followed, takes_strides=takes_strides)


def tensor(
    shape: Sequence[int],
    layout: DeviceLayout | None = None,
    *,
    dtype: DType = DType.FLOAT16,
    allocation: int | None = None,
    base_bytes: int = 0,
) -> LaunchTensor:
    """A tensor in an allocation of its own, in the default layout where no other is given."""
    chosen = layout or default(shape, dtype)
    number = next(_ALLOCATIONS) if allocation is None else allocation
    return LaunchTensor(tuple(shape), chosen.host_strides, dtype, chosen, base_bytes, number)


def copying(tile: Sequence[int], axes: Axes, loops: Sequence[TileLoop], *, is_pointwise: bool = False) -> TileContract:
    """The contract of a program from one tensor to another of the same shape."""
    arguments = (argument("x", INPUT, tile, axes), argument("y", OUTPUT, tile, axes))
    return TileContract("copy", tuple(loops), arguments, is_pointwise=is_pointwise)


def matmul(
    rows: int, inner: int, columns: int, *, takes_strides: bool = False, dtype: DType = DType.FLOAT16
) -> TileContract:
    """The contract of ``[rows, inner] @ [inner, columns]`` with loops over rows M and columns N."""
    return TileContract(
        "matmul",
        (TileLoop("M", rows), TileLoop("N", columns)),
        (
            argument("a", INPUT, (rows, inner), ("M", None), takes_strides=takes_strides, dtype=dtype),
            argument("b", INPUT, (inner, columns), (None, "N"), takes_strides=takes_strides, dtype=dtype),
            argument("c", OUTPUT, (rows, columns), ("M", "N"), takes_strides=takes_strides, dtype=dtype),
        ),
    )
