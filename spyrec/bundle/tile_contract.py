"""The tile contract of a device program: what one launch of it computes, so that tensors of many tiles can be launched.

Shapes alone do not determine the loops: with square tiles one diagonal loop of four looks like a nest of four by four.
The contract names the loop that each dim of each argument follows.
"""

from __future__ import annotations

import math
from dataclasses import field
from enum import Enum
from operator import attrgetter
from typing import Literal

from spyrec.bundle.manifest import Argument, Role
from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.files.json_form import EXTENTS, MAX_RANK, SIZE, Form, Parsed, Shape, json, omitted
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.layout.device_layout import DeviceLayout

MALFORMED_CONTRACT = "SPY0963"
"""Code of a tile contract that contradicts itself."""


class LoopKind(Enum):
    """What the tiles of a loop are to one another: results of their own, or parts of one result."""

    PARALLEL = "parallel"
    REDUCTION = "reduction"


class Combine(Enum):
    """How the results of a reduction's tiles become one."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    ANY = "any"
    XOR = "xor"

    @property
    def is_idempotent(self) -> bool:
        """Whether an element may be counted twice."""
        return self in (Combine.MAX, Combine.MIN, Combine.ANY)


class WriteMode(Enum):
    """What the program does to an output: replaces it, or adds to what is there."""

    OVERWRITE = "overwrite"
    ACCUMULATE = "accumulate"


def _format_by_name(value: object) -> object:
    return DeviceFormat[value] if isinstance(value, str) and value in DeviceFormat.__members__ else value


def _identity_text(identity: float) -> float | str:
    return identity if math.isfinite(identity) else str(identity)


_MOST_ENTRIES = 256
_TEXT = Form(min_length=1, max_length=1024)
_LOOPS = Form(max_length=MAX_RANK)
_STRIDES = Form(max_length=MAX_RANK, each=Form(at_least=-1, below=1 << 63))
_AXES = Form(max_length=MAX_RANK, each=_TEXT)
_IDENTITY = Form(shape=Shape(float | Literal["inf", "-inf"], float, _identity_text))
_ANY_FORMAT = Form(
    parsed=Parsed(_format_by_name, attrgetter("name"), {"enum": list(DeviceFormat.__members__)}),
)


@dataclass(frozen=True, slots=True)
class TileLoop:
    """A loop that a launch may run: one iteration covers ``tile`` elements.

    An argument may have fewer along the loop where its sticks end in padding: ``tile`` is then whole sticks.

    ``combine`` and ``identity`` of a reduction: how tiles are joined, and the value that changes nothing.
    """

    name: str = field(metadata=json(_TEXT))
    tile: int = field(metadata=json(SIZE))
    kind: LoopKind = LoopKind.PARALLEL
    combine: Combine | None = field(default=None, metadata=omitted())
    identity: float | None = field(default=None, metadata=omitted(_IDENTITY))


@dataclass(frozen=True, slots=True)
class TileArgument:
    """An argument as the program was compiled for it: shape and device layout of one tile.

    ``axes``: per host dim the loop that it follows, ``None`` for one that no loop cuts; ``None`` as a whole where the
    bundle tells shapes only.  ``takes_strides``: the correction sets the argument's stick strides, too.
    """

    name: str
    role: Role
    dtype: DType
    layout: DeviceLayout
    axes: tuple[str | None, ...] | None
    write: WriteMode = WriteMode.OVERWRITE
    takes_strides: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one tile."""
        return self.layout.host_shape

    def whole_sticks(self, dim: int) -> int:
        """Return the elements along a host dim, with the padding of its last stick if it is the dim of the sticks."""
        extent = self.shape[dim]
        if extent == 1 or self.layout.stride_map[-1] != self.layout.host_strides[dim]:
            return extent
        lanes = self.layout.elements_per_stick
        return -(-extent // lanes) * lanes

    @property
    def is_written(self) -> bool:
        """Whether the program writes it."""
        return self.role in (Role.OUTPUT, Role.INOUT)


@dataclass(frozen=True, slots=True)
class TileArgumentEntry:
    """One tile of an argument as the file shows it; strides in elements; ``axes`` null where only shapes are known."""

    name: str = field(metadata=json(_TEXT))
    role: Role
    dtype: DType
    shape: tuple[int, ...] = field(metadata=json(EXTENTS))
    host_strides: tuple[int, ...] = field(metadata=json(_STRIDES))
    device_size: tuple[int, ...] = field(metadata=json(EXTENTS))
    stride_map: tuple[int, ...] = field(metadata=json(_STRIDES))
    device_dtype: DeviceFormat = field(metadata=json(_ANY_FORMAT))
    axes: tuple[str | None, ...] | None = field(metadata=json(_AXES))
    write: WriteMode
    takes_strides: bool

    @staticmethod
    def of(argument: TileArgument) -> TileArgumentEntry:
        """Return the entry of an argument: its layout lies open."""
        layout = argument.layout
        return TileArgumentEntry(
            argument.name,
            argument.role,
            argument.dtype,
            layout.host_shape,
            layout.host_strides,
            layout.device_size,
            layout.stride_map,
            layout.device_dtype,
            argument.axes,
            argument.write,
            argument.takes_strides,
        )

    def argument(self) -> TileArgument:
        """Return the argument; errors SPY0301 to SPY0319 for a layout that is none."""
        layout = DeviceLayout(
            self.device_size, self.stride_map, self.device_dtype, self.shape, self.host_strides, self.dtype
        )
        # a layout takes other strides than those it is given where it does not hold these
        triples = zip(layout.host_shape, self.host_strides, layout.host_strides)
        if len(self.host_strides) != len(layout.host_shape) or any(
            extent > 1 and mine != theirs for extent, mine, theirs in triples
        ):
            held = list(layout.host_strides)
            fact = f'"{self.name}" has host strides {list(self.host_strides)}, its layout holds {held}'
            raise refuse(MALFORMED_CONTRACT, fact)
        return TileArgument(self.name, self.role, self.dtype, layout, self.axes, self.write, self.takes_strides)


_ARGUMENTS = Form(
    max_length=_MOST_ENTRIES,
    each=Form(shape=Shape(TileArgumentEntry, TileArgumentEntry.argument, TileArgumentEntry.of)),
)
_VARIANTS = Form(max_length=_MOST_ENTRIES, each=Form(without={"variants": ()}))


@dataclass(frozen=True, slots=True)
class ReductionPrograms:
    """The programs around the body of a reduction: accumulator := identity, accumulator := with partial, out := it.

    ``accumulators``: what accumulates each tensor that the program writes, in their order; without them an accumulator
    lies in memory as what it becomes.
    """

    init: str = field(metadata=json(_TEXT))
    combine: str = field(metadata=json(_TEXT))
    publish: str = field(metadata=json(_TEXT))
    accumulators: tuple[TileArgument, ...] = field(default=(), metadata=omitted(_ARGUMENTS))


@dataclass(frozen=True, slots=True)
class TileContract:
    """What one launch of ``program`` computes, and which loops may repeat it.

    ``loops`` outermost first.  ``is_pointwise``: every output element depends on the input elements at its own place
    only.  ``is_idempotent``: running a tile twice gives the same result.  ``needs_correction``: an iteration is a
    HostOperation, a DMA and a DeviceCompute, otherwise a DeviceCompute alone.  ``reduction``: the programs that join
    the tiles of a reduction; ``first``: the program for the first tile of one whose body accumulates.  ``variants``:
    the same for other tile extents, for what a dim leaves over.

    Errors: SPY0963 where names, extents or ranks contradict one another.
    """

    program: str = field(metadata=json(_TEXT))
    loops: tuple[TileLoop, ...] = field(metadata=json(_LOOPS))
    arguments: tuple[TileArgument, ...] = field(metadata=json(_ARGUMENTS))
    is_pointwise: bool = False
    is_idempotent: bool = True
    needs_correction: bool = True
    reduction: ReductionPrograms | None = field(default=None, metadata=omitted())
    first: str | None = field(default=None, metadata=omitted(_TEXT))
    variants: tuple[TileContract, ...] = field(default=(), metadata=omitted(_VARIANTS))

    def __post_init__(self) -> None:
        _check_loops(self)
        _check_accumulators(self)
        for argument in self.arguments:
            _check_axes(self, argument)
        _check_strides(self)
        for variant in self.variants:
            _check_variant(self, variant)

    @property
    def tiles(self) -> dict[str, int]:
        """Elements of one iteration by loop name."""
        return {loop.name: loop.tile for loop in self.loops}


def strided_places(contract: TileContract, program: str) -> frozenset[int]:
    """Return the places of a program's arguments whose stick strides launches by a contract may set.

    The body, ``first`` and variants have the contract's arguments.  ``publish`` writes where the body would: its
    accumulators come first, then the results in the contract's order.
    """
    own = [place for place, argument in enumerate(contract.arguments) if argument.takes_strides]
    places = set(own) if program in (contract.program, contract.first) else set[int]()
    if contract.reduction is not None and program == contract.reduction.publish:
        written = [place for place, argument in enumerate(contract.arguments) if argument.is_written]
        places.update(len(written) + number for number, place in enumerate(written) if place in own)
    return frozenset(places).union(*(strided_places(variant, program) for variant in contract.variants))


def programs_beside(contract: TileContract) -> tuple[str, ...]:
    """Return the further programs that launches by a contract run, beside its own."""
    around = contract.reduction
    joining = () if around is None else (around.init, around.combine, around.publish)
    first = () if contract.first is None else (contract.first,)
    named = (*joining, *first, *(name for item in contract.variants for name in (item.program, *programs_beside(item))))
    return tuple(dict.fromkeys(named))


def _contradiction(contract: TileContract, fact: str) -> SpyrecError:
    return refuse(MALFORMED_CONTRACT, f'tile contract of "{contract.program}": {fact}')


def _check_loops(contract: TileContract) -> None:
    names = [loop.name for loop in contract.loops]
    if len(set(names)) != len(names):
        raise _contradiction(contract, f"loops {names} name one twice")
    kinds = [loop.kind for loop in contract.loops]
    if kinds != sorted(kinds, key=lambda kind: kind is LoopKind.REDUCTION):
        raise _contradiction(contract, f"a parallel loop stands inside a reduction in {names}")
    for loop in contract.loops:
        if loop.tile < 1:
            raise _contradiction(contract, f'loop "{loop.name}" has tiles of {loop.tile} elements')


def _check_accumulators(contract: TileContract) -> None:
    found = () if contract.reduction is None else contract.reduction.accumulators
    shapes = [argument.shape for argument in contract.arguments if argument.is_written]
    if found and [argument.shape for argument in found] != shapes:
        fact = f"accumulators of shapes {[list(item.shape) for item in found]} for tiles {list(map(list, shapes))}"
        raise _contradiction(contract, fact)


def _check_strides(contract: TileContract) -> None:
    """Stick strides are words of a correction, and what parts are joined in belongs to the launch."""
    around = contract.reduction
    takers = [item.name for item in contract.arguments if item.takes_strides]
    if takers and not contract.needs_correction:
        raise _contradiction(contract, f"{takers} take stick strides, and the program has no correction to set them")
    inside = [item.name for item in (() if around is None else around.accumulators) if item.takes_strides]
    if inside:
        raise _contradiction(contract, f"accumulators {inside} take stick strides, and no loop moves them")


def _check_axes(contract: TileContract, argument: TileArgument) -> None:
    if argument.axes is None:
        return
    if len(argument.axes) != len(argument.shape):
        fact = f'"{argument.name}" has {len(argument.axes)} axes for {len(argument.shape)} dims'
        raise _contradiction(contract, fact)
    named = [name for name in argument.axes if name is not None]
    if len(set(named)) != len(named):
        raise _contradiction(contract, f'two dims of "{argument.name}" follow one loop: {list(argument.axes)}')
    tiles = contract.tiles
    for dim, (name, extent) in enumerate(zip(argument.axes, argument.shape, strict=True)):
        # an accumulator has nothing in the padding of its last stick
        most = extent if contract.reduction is not None else argument.whole_sticks(dim)
        if name is None or tiles.get(name) in (extent, most):
            continue
        known = f"tiles of {tiles[name]}" if name in tiles else "no such loop"
        raise _contradiction(contract, f'"{argument.name}" has {extent} elements along "{name}", the contract {known}')


def _check_variant(contract: TileContract, variant: TileContract) -> None:
    if variant.variants:
        raise _contradiction(contract, f'variant "{variant.program}" has variants of its own')
    mine = [(item.name, item.role, item.dtype, item.axes) for item in contract.arguments]
    theirs = [(item.name, item.role, item.dtype, item.axes) for item in variant.arguments]
    loops = [(loop.name, loop.kind) for loop in variant.loops]
    if mine != theirs or loops != [(loop.name, loop.kind) for loop in contract.loops]:
        raise _contradiction(contract, f'variant "{variant.program}" has other arguments or loops')
    pairs = list(zip(contract.arguments, variant.arguments, strict=True))
    differs = any(item.is_written and item.shape == own.shape and item.layout != own.layout for item, own in pairs)
    if differs and contract.reduction is not None:
        fact = f'variant "{variant.program}" writes a tile of the same shape in another layout'
        raise _contradiction(contract, f"{fact}: parts of one result must lie alike")
    if any(other.tile > loop.tile for loop, other in zip(contract.loops, variant.loops, strict=True)):
        raise _contradiction(contract, f'variant "{variant.program}" has larger tiles')


def argument_layout(argument: Argument) -> DeviceLayout:
    """Return the device layout of an argument whose host form the manifest tells."""
    assert argument.stride_map is not None
    return DeviceLayout(
        argument.device_size,
        argument.stride_map,
        argument.device_dtype,
        argument.shape,
        argument.host_strides,
        argument.dtype,
    )
