"""Random launches: a program on tiles of random shape and layout, tensors of other shapes and layouts, the result.

Values are small whole numbers, so that sums are exact in any order and results can be compared element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import cast

import numpy as np
import numpy.typing as npt

from spyrec.bundle.manifest import Role
from spyrec.bundle.tile_contract import (
    Combine,
    LoopKind,
    ReductionPrograms,
    TileArgument,
    TileContract,
    TileLoop,
    WriteMode,
)
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.launch.plan import LaunchOptions, Remainder
from spyrec.runtime.launch.tile_major import tile_major_layout
from tests.support.split_layouts import random_split
from tests.support.tiled_jobs import Function, Words

Values = npt.NDArray[np.float32]
"""Or what holds another dtype: exact types would only be in the way here."""

Shape = tuple[int, ...]
FP32 = DType.FLOAT32
LANES = {DType.FLOAT32: 32, DType.FLOAT16: 64, DType.INT8: 128}
SIGN = np.uint16(0x8000)


@dataclass(frozen=True)
class Operation:
    """What a program computes: its loops in order, per argument the loop of each dim, and the same on whole tensors.

    A dim that is called ``1`` has one element.  ``programs``: by program name, on tiles as they are stored.
    """

    name: str
    dims: tuple[str, ...]
    axes: tuple[tuple[str, ...], ...]
    programs: Mapping[str, Function]
    whole: Callable[[Sequence[Values]], Values]
    sums: str | None = None
    combine: Combine = Combine.SUM
    is_pointwise: bool = False
    is_accumulating: bool = False


@dataclass(frozen=True)
class Case:
    """One launch: the contract, the tensors' layouts, the inputs, what the output must be."""

    contract: TileContract
    layouts: tuple[DeviceLayout, ...]
    programs: Mapping[str, Function]
    inputs: tuple[Values, ...]
    expected: Values
    options: LaunchOptions
    dtype: DType


def _linear(tiles: Sequence[Words]) -> list[Words]:
    stored = tiles[0]
    match stored.dtype.name:
        case "uint16":  # DLFloat16: the other sign
            return [cast("Words", stored.view(np.uint16) ^ SIGN)]
        case "uint8":
            return [cast("Words", stored.view(np.uint8) ^ np.uint8(1))]
        case _:
            return [3 * stored + 1]


def _linear_of(inputs: Sequence[Values]) -> Values:
    x = inputs[0]
    match x.dtype.name:
        case "float16":
            return -x
        case "int8":
            return cast("Values", x.view(np.int8) ^ np.int8(1))
        case _:
            return 3 * x + 1


def pointwise(rank: int) -> Operation:
    """``y = 3 x + 1``."""
    dims = tuple("BMNP"[-rank:] if rank < 4 else "BMNP")
    return Operation("linear", dims, (dims, dims), {"linear": _linear}, _linear_of, is_pointwise=True)


def broadcast_add() -> Operation:
    """``y = x + row``, one row for all."""
    axes = (("M", "N"), ("1", "N"), ("M", "N"))
    return Operation("add", ("M", "N"), axes, {"add": lambda t: [t[0] + t[1]]}, lambda t: t[0] + t[1])


def batched_matmul() -> Operation:
    """``c[B, M, N] = a[B, M, K] @ b[K, N]``."""
    axes = (("B", "M", "K"), ("K", "N"), ("B", "M", "N"))
    return Operation("bmm", ("B", "M", "N"), axes, {"bmm": lambda t: [t[0] @ t[1]]}, lambda t: t[0] @ t[1])


def sum_of_parts() -> Operation:
    """``y[M, 1] = x.sum(1)``, parts joined by programs."""
    programs: dict[str, Function] = {
        "sum": lambda t: [t[0].sum(axis=1, keepdims=True)],
        "zero": lambda t: [np.zeros_like(t[0])],
        "join": lambda t: [t[0] + t[1]],
        "store": lambda t: [t[0], t[0]],
    }
    return Operation(
        "sum", ("M", "K"), (("M", "K"), ("M", "1")), programs, lambda t: t[0].sum(axis=1, keepdims=True), sums="K"
    )


def _largest(inputs: Sequence[Values]) -> Values:
    return inputs[0].max(axis=1, keepdims=True)


def maximum_of_parts() -> Operation:
    """``y[M, 1] = x.max(1)``, parts joined by programs, elements seen twice where it helps."""
    programs: dict[str, Function] = {
        "max": lambda t: [t[0].max(axis=1, keepdims=True)],
        "zero": lambda t: [np.zeros_like(t[0]) - np.float32(1e9)],
        "join": lambda t: [np.maximum(t[0], t[1])],
        "store": lambda t: [t[0], t[0]],
    }
    whole = sum_of_parts()
    return replace(whole, name="max", programs=programs, whole=_largest, combine=Combine.MAX)


def _product(tiles: Sequence[Words]) -> Words:
    return (tiles[0] @ tiles[1]).astype(np.float32)


def accumulating_matmul() -> Operation:
    """``c[M, N] = a[M, K] @ b[K, N]`` with a body that adds to what is there."""
    programs: dict[str, Function] = {"add": lambda t: [_product(t) + t[2]], "set": lambda t: [_product(t)]}
    axes = (("M", "K"), ("K", "N"), ("M", "N"))
    return Operation("add", ("M", "N", "K"), axes, programs, lambda t: t[0] @ t[1], sums="K", is_accumulating=True)


def random_case(random: Random) -> Case:
    """Return a launch; the planner may refuse it."""
    operation = random.choice(
        [pointwise(random.randint(1, 4))] * 3
        + [broadcast_add(), batched_matmul(), sum_of_parts(), maximum_of_parts(), accumulating_matmul()]
    )
    dtype = random.choice([FP32, FP32, DType.FLOAT16, DType.INT8]) if operation.is_pointwise else FP32
    names = sorted({name for axes in operation.axes for name in axes if name != "1"})
    sticky = {axes[-1] for axes in operation.axes}
    extents = {name: _extent(random, LANES[dtype] if name in sticky else 1) for name in names} | {"1": 1}
    tiles = {
        name: _tile(random, extents[name], LANES[dtype] if name in sticky else 1)
        if name in operation.dims
        else extents[name]
        for name in names
    } | {"1": 1}
    is_split = dtype is FP32 and random.random() < 0.25
    takes_strides = random.random() < 0.3
    order = random.choice([None, None, "permuted"])
    contract = _contract(operation, tiles, dtype, _tile_layouts(random, operation, tiles, dtype, is_split, order))
    if takes_strides:
        contract = _taking_strides(contract)
    cut = [name for name in operation.dims if extents[name] % tiles[name]]
    programs = dict(operation.programs)
    if cut and random.random() < 0.6:
        contract = _with_variants(random, operation, contract, (extents, tiles), cut, dtype)
        named = {f"{name}_{number}" for number in range(len(contract.variants)) for name in programs}
        programs |= {name: programs[name.rpartition("_")[0]] for name in sorted(named)}
    shapes = [tuple(extents[name] for name in axes) for axes in operation.axes]
    layouts = _layouts(random, contract, shapes, dtype, order)
    inputs = tuple(_values(random, shape, dtype) for shape in shapes[:-1])
    policies = [
        None,
        Remainder.OVERLAP,
        Remainder.PAD,
        Remainder.PAD,
        *[Remainder.VARIANT] * (2 if contract.variants else 0),
    ]
    options = LaunchOptions(reuse_order=random.random() < 0.3, remainder=random.choice(policies))
    return Case(contract, layouts, programs, inputs, operation.whole(inputs), options, dtype)


def _extent(random: Random, lanes: int) -> int:
    if lanes > 1:
        return lanes * random.choice([1, 2, 2, 3, 4]) if random.random() < 0.9 else random.randint(1, 3 * lanes)
    return random.choice([1, 2, 3, 4, 6, 8, 9, 12])


def _tile(random: Random, extent: int, lanes: int) -> int:
    if random.random() < 0.15:
        return extent
    choices = [tile for tile in (lanes, 2 * lanes, 3 * lanes, 4 * lanes, 6 * lanes) if tile < extent]
    return random.choice([*choices, extent])


def _contract(
    operation: Operation, tiles: Mapping[str, int], dtype: DType, layouts: Sequence[DeviceLayout]
) -> TileContract:
    roles = [*[Role.INPUT] * (len(layouts) - 1), Role.OUTPUT]
    write = WriteMode.ACCUMULATE if operation.is_accumulating else WriteMode.OVERWRITE
    arguments = tuple(
        TileArgument(name, role, dtype, layout, tuple(axis if axis in operation.dims else None for axis in axes), write)
        for name, role, layout, axes in zip("abc", roles, layouts, operation.axes, strict=False)
    )
    loops = tuple(
        TileLoop(name, tiles[name], LoopKind.REDUCTION, operation.combine, 0.0)
        if name == operation.sums
        else TileLoop(name, tiles[name])
        for name in operation.dims
    )
    has_programs = operation.sums is not None and not operation.is_accumulating
    return TileContract(
        operation.name,
        loops,
        arguments,
        is_pointwise=operation.is_pointwise,
        reduction=ReductionPrograms("zero", "join", "store") if has_programs else None,
        first="set" if operation.is_accumulating else None,
    )


def _taking_strides(contract: TileContract) -> TileContract:
    return replace(contract, arguments=tuple(replace(item, takes_strides=True) for item in contract.arguments))


def _tile_layouts(
    random: Random, operation: Operation, tiles: Mapping[str, int], dtype: DType, is_split: bool, order: str | None
) -> list[DeviceLayout]:
    shapes = [tuple(tiles[name] for name in axes) for axes in operation.axes]
    if is_split:
        return [random_split(random, shape).layout for shape in shapes]
    return [_ordered(shape, dtype, order) for shape in shapes]


def _ordered(shape: Shape, dtype: DType, order: str | None) -> DeviceLayout:
    rank = len(shape)
    dims = None if order is None else (*range(rank - 2, -1, -1), rank - 1)
    return DeviceLayout.default(shape, dtype, None, dims)


def _with_variants(
    random: Random,
    operation: Operation,
    contract: TileContract,
    extents: tuple[Mapping[str, int], Mapping[str, int]],
    cut: Sequence[str],
    dtype: DType,
) -> TileContract:
    whole, tiles = extents
    variants: list[TileContract] = []
    for chosen in product((False, True), repeat=len(cut)):
        if not any(chosen):
            continue
        left = {name: whole[name] % tiles[name] for name, is_left in zip(cut, chosen, strict=True) if is_left}
        smaller = {**tiles, **left}
        fresh = _tile_layouts(random, operation, smaller, dtype, is_split=False, order=None)
        # what both write parts of lies in one way
        layouts = [
            argument.layout if argument.layout.host_shape == layout.host_shape else layout
            for argument, layout in zip(contract.arguments, fresh, strict=True)
        ]
        variant = _contract(operation, smaller, dtype, layouts)
        number = len(variants)
        first = None if variant.first is None else f"{variant.first}_{number}"
        around = variant.reduction
        if around is not None:
            init, combine, publish = (f"{name}_{number}" for name in (around.init, around.combine, around.publish))
            around = ReductionPrograms(init, combine, publish)
        variants.append(replace(variant, program=f"{operation.name}_{number}", first=first, reduction=around))
    return replace(contract, variants=tuple(variants))


def _layouts(
    random: Random, contract: TileContract, shapes: Sequence[Shape], dtype: DType, order: str | None
) -> tuple[DeviceLayout, ...]:
    kind = random.choice(["same", "same", "same", "permuted", "tile-major", "split", "roomy", "roomy"])
    found: list[DeviceLayout] = []
    for argument, shape in zip(contract.arguments, shapes, strict=True):
        is_whole = argument.axes is None or not any(
            tile < extent for tile, extent in zip(argument.shape, shape, strict=True)
        )
        if is_whole and random.random() < 0.9:
            found.append(argument.layout)
            continue
        layout = _ordered(shape, dtype, order)
        if kind == "permuted":
            layout = _ordered(shape, dtype, None if order else "permuted")
        elif kind == "tile-major":
            layout = tile_major_layout(argument, shape, [loop.name for loop in contract.loops]) or layout
        elif kind == "split" and dtype is FP32:
            layout = random_split(random, shape).layout
        elif kind == "roomy":
            layout = _roomy(layout, argument, shape)
        found.append(layout)
    return tuple(found)


def _roomy(layout: DeviceLayout, argument: TileArgument, shape: Shape) -> DeviceLayout:
    """Return the layout with room for whole tiles: that of a larger tensor."""
    larger = tuple(-(-extent // tile) * tile for extent, tile in zip(shape, argument.shape, strict=True))
    if larger == shape:
        return layout
    wide = DeviceLayout.default(larger, argument.dtype)
    try:
        return DeviceLayout(wide.device_size, layout.stride_map, layout.device_dtype, shape, layout.host_strides)
    except SpyrecError:
        return layout  # no copy fills this room alone


def _values(random: Random, shape: Shape, dtype: DType) -> Values:
    rng = np.random.default_rng(random.getrandbits(32))
    return rng.integers(-9, 10, shape).astype(dtype.carrier)
