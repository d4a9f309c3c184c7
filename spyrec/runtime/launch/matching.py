"""Do these tensors fit the program, exactly or as many tiles?  The loops of a launch, or the fault, as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from spyrec.bundle.tile_contract import LoopKind, TileArgument, TileContract, TileLoop
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.errors import (
    ArgumentCountError,
    DtypeMismatch,
    LayoutMismatch,
    RuntimeFault,
    ShapeMismatch,
    TileAmbiguous,
    TileInconsistent,
    TilingNotAllowed,
    TooManyTiles,
)
from spyrec.runtime.launch.plan import LaunchOptions, LaunchTensor, LoopPlan


def unfit_arguments(contract: TileContract, tensors: Sequence[LaunchTensor]) -> RuntimeFault | None:
    """Return why the program cannot take these tensors in any number of tiles, ``None`` where it may.

    Reasons: SPY0950 count, SPY0951 dtype, SPY0952 device format, strides or alignment, SPY0953 rank or a dim that is
    smaller than compiled for.
    """
    if len(tensors) != len(contract.arguments):
        fact = f'"{contract.program}" takes {len(contract.arguments)} tensors, not {len(tensors)}'
        return ArgumentCountError(fact, notes=tuple(_shown(argument) for argument in contract.arguments))
    for argument, tensor in zip(contract.arguments, tensors, strict=True):
        unfit = _unfit_form(argument, tensor) or _unfit_extents(argument, tensor)
        if unfit is not None:
            return unfit
    return None


def _shown(argument: TileArgument) -> str:
    return f'"{argument.name}": {argument.role.value} {list(argument.shape)} {argument.dtype.value}'


def _unfit_form(argument: TileArgument, tensor: LaunchTensor) -> RuntimeFault | None:
    if tensor.dtype is not argument.dtype:
        fact = f'"{argument.name}" was compiled for {argument.dtype.value}, the tensor is {tensor.dtype.value}'
        return DtypeMismatch(fact)
    if tensor.layout.device_dtype is not argument.layout.device_dtype:
        formats = f"{argument.layout.device_dtype.name}, the tensor has {tensor.layout.device_dtype.name}"
        return LayoutMismatch(f'"{argument.name}" was compiled for device format {formats}')
    is_made_for = tensor.layout.host_shape == tensor.shape and len(tensor.strides) == len(tensor.shape)
    if not is_made_for or _moving(tensor, tensor.strides) != _moving(tensor, tensor.layout.host_strides):
        fact = f'"{argument.name}" has shape {list(tensor.shape)} and strides {list(tensor.strides)}'
        made = f"its layout was made for {list(tensor.layout.host_shape)} and {list(tensor.layout.host_strides)}"
        return LayoutMismatch(f"{fact}; {made}")
    if tensor.storage_offset_bytes % STICK_BYTES != 0:
        fact = f'"{argument.name}" begins {tensor.storage_offset_bytes} bytes into its allocation, inside a stick'
        return LayoutMismatch(fact, hint=f"a tensor begins at a multiple of {STICK_BYTES} bytes")
    return None


def _moving(tensor: LaunchTensor, strides: Sequence[int]) -> list[int]:
    return [stride for stride, extent in zip(strides, tensor.shape, strict=True) if extent > 1]


def _unfit_extents(argument: TileArgument, tensor: LaunchTensor) -> ShapeMismatch | None:
    compiled, actual = argument.shape, tensor.shape
    both = f'"{argument.name}" was compiled for {list(compiled)}, the tensor is {list(actual)}'
    if len(compiled) != len(actual):
        return ShapeMismatch(both)
    for dim, (tile, extent) in enumerate(zip(compiled, actual, strict=True)):
        if extent < tile:
            return ShapeMismatch(both, notes=(f"dim {dim} is smaller than compiled for: {extent} < {tile}",))
        if extent > tile and argument.axes is not None and argument.axes[dim] is None:
            fact = f"dim {dim} has {extent} elements for {tile}, and no loop of the tile contract cuts it"
            return ShapeMismatch(both, notes=(fact,))
    return None


def with_loops(contract: TileContract, tensors: Sequence[LaunchTensor]) -> TileContract | TileAmbiguous:
    """Return the contract with its loops named, where it tells shapes only: one loop over the dim that is larger.

    Reasons for none: SPY0956 where the shapes leave a choice: several dims larger, different numbers of tiles, no
    output larger, an argument of full size that is not cut, or a program that is not pointwise.
    """
    if all(argument.axes is not None for argument in contract.arguments):
        return contract
    larger = [_larger_dims(argument, tensor) for argument, tensor in zip(contract.arguments, tensors, strict=True)]
    name = "tile"
    tile = _only_tile(contract, tensors, larger) if any(larger) else 1
    if isinstance(tile, TileAmbiguous):
        return tile
    arguments = tuple(
        replace(argument, axes=tuple(name if dim in dims else None for dim in range(len(argument.shape))))
        for argument, dims in zip(contract.arguments, larger, strict=True)
    )
    return replace(contract, loops=(TileLoop(name, tile),), arguments=arguments, variants=())


def _larger_dims(argument: TileArgument, tensor: LaunchTensor) -> tuple[int, ...]:
    pairs = zip(argument.shape, tensor.shape, strict=True)
    return tuple(dim for dim, (tile, extent) in enumerate(pairs) if extent > tile)


def _only_tile(
    contract: TileContract, tensors: Sequence[LaunchTensor], larger: Sequence[tuple[int, ...]]
) -> int | TileAmbiguous:
    """Return the tile of the one loop that the shapes can mean; places are counted from the last dim, as broadcasts."""
    cut = [
        (dims[0] - len(argument.shape), argument.shape[dims[0]], tensor.shape[dims[0]])
        for argument, tensor, dims in zip(contract.arguments, tensors, larger, strict=True)
        if dims
    ]
    is_written = any(dims and item.is_written for item, dims in zip(contract.arguments, larger, strict=True))
    is_one = all(len(dims) <= 1 for dims in larger) and len(set(cut)) == 1 and is_written and contract.is_pointwise
    place = cut[0][0]
    for argument, dims in zip(contract.arguments, larger, strict=True):
        is_one = is_one and (bool(dims) or len(argument.shape) < -place or argument.shape[place] == 1)
    if not is_one:
        shapes = tuple(
            f'"{argument.name}" was compiled for {list(argument.shape)}, the tensor is {list(tensor.shape)}'
            for argument, tensor in zip(contract.arguments, tensors, strict=True)
        )
        return TileAmbiguous("the shapes do not determine the loops, and the bundle has no tile contract", notes=shapes)
    return cut[0][1]


def matched_loops(
    contract: TileContract, tensors: Sequence[LaunchTensor], options: LaunchOptions
) -> tuple[LoopPlan, ...] | RuntimeFault:
    """Return the loops of a launch, contract order, remainders still open, or why there are none.

    Reasons: SPY0955 tiles are not allowed, SPY0957 arguments disagree on a loop, SPY0961 too many iterations.
    """
    loops: list[LoopPlan] = []
    for declared in contract.loops:
        loop = _loop(declared, contract, tensors)
        if isinstance(loop, TileInconsistent):
            return loop
        loops.append(loop)
    if options.allow_tiled_launch:
        return too_many(loops, options) or tuple(loops)
    tiled = [f'"{loop.name}": {loop.extent} elements in tiles of {loop.tile}' for loop in loops if loop.trips > 1]
    if tiled:
        fact = f'the tensors are larger than "{contract.program}" was compiled for, and tiled launch is off'
        return TilingNotAllowed(fact, notes=tuple(tiled))
    return tuple(loops)


def too_many(loops: Sequence[LoopPlan], options: LaunchOptions) -> TooManyTiles | None:
    """Return what refuses more iterations than a launch may have: SPY0961."""
    total = 1
    for loop in loops:
        total *= loop.trips
    if total > options.max_tiles:
        nest = " x ".join(str(loop.trips) for loop in loops)
        return TooManyTiles(f"the launch would have {total} iterations ({nest}), more than {options.max_tiles}")
    return None


def _loop(loop: TileLoop, contract: TileContract, tensors: Sequence[LaunchTensor]) -> LoopPlan | TileInconsistent:
    extents: list[tuple[str, int]] = []
    for argument, tensor in zip(contract.arguments, tensors, strict=True):
        if argument.axes is not None and loop.name in argument.axes:
            extents.append((argument.name, tensor.shape[argument.axes.index(loop.name)]))
    # An argument of one element is read by every tile of one element, as in any broadcast.
    counted = [item for item in extents if item[1] > 1 or loop.tile > 1] or extents
    for (first, extent), (second, other) in pairwise(counted):
        if extent != other:
            fact = f'loop "{loop.name}" has {extent} elements in "{first}" and {other} in "{second}"'
            return TileInconsistent(fact)
    # a tile whose last stick is padded covers more elements than there may be
    return LoopPlan(loop.name, loop.kind, max(counted[0][1], loop.tile) if counted else loop.tile, loop.tile)


def is_reduction(loop: LoopPlan) -> bool:
    """Whether the tiles of the loop are parts of one result, and there are several."""
    return loop.kind is LoopKind.REDUCTION and loop.trips > 1
