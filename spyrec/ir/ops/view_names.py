"""Views under their other names in PyTorch: each is one of the plain views, or a chain of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spyrec.dataclass import dataclass
from spyrec.ir.attributes import NO_ATTRIBUTES, DimAttributes, Dims, NoAttributes, Size, Sizes
from spyrec.ir.host_ops import host_reason
from spyrec.ir.op_chains import INPUT_AND_OTHER, ChainRules, define_chain
from spyrec.ir.opdef import Attributes, OperandTypes, OpError, OpKind, catalogue, rule
from spyrec.ir.operands import tensor
from spyrec.ir.ops.movement import RepeatAttributes, ToAttributes
from spyrec.ir.ops.selection import SliceAttributes
from spyrec.ir.ops.views import (
    ExpandAttributes,
    FlattenAttributes,
    PermuteAttributes,
    ReshapeAttributes,
    TransposeAttributes,
)
from spyrec.ir.samples import boolean, f16, f32, i64
from spyrec.ir.shapes import normalize_dim, normalize_dims, resolve_sizes
from spyrec.ir.types import TensorType

Steps = tuple[tuple[str, Attributes], ...]

# --- parts and orders of dims -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NarrowAttributes:
    """``length`` indices of ``dim``, from ``start`` on, which counts from the end where it is negative."""

    dim: int
    start: Size
    length: Size


def _narrow(operands: OperandTypes, attributes: NarrowAttributes) -> Steps:
    operand = tensor(operands)
    if operand.rank == 0:
        raise OpError("SPY0206", "a tensor of rank 0 has no dim to narrow", operand=0)
    extent = operand.shape[normalize_dim(attributes.dim, operand.rank)]
    start = attributes.start + extent if attributes.start < 0 else attributes.start
    if not 0 <= start <= start + attributes.length <= extent:
        fact = f"start {attributes.start} and length {attributes.length} leave the extent {extent} of dim"
        raise OpError("SPY0212", f"{fact} {attributes.dim}", attribute="length")
    return (("slice", SliceAttributes(attributes.dim, start, start + attributes.length)),)


define_chain(
    "narrow",
    "length indices of a dim from start on",
    NarrowAttributes,
    ChainRules(rule(NarrowAttributes, _narrow)),
    (
        ((f16(5, 70),), NarrowAttributes(1, 64, 6)),
        ((i64(5),), NarrowAttributes(0, -2, 1)),
        ((f16(5),), NarrowAttributes(0, 5, 0)),
    ),
)


@dataclass(frozen=True, slots=True)
class MoveDimAttributes:
    """The dims ``source`` come to stand at ``destination``; the others keep their order."""

    source: Dims
    destination: Dims


def _move(operands: OperandTypes, attributes: MoveDimAttributes) -> Steps:
    rank = tensor(operands).rank
    source = [normalize_dim(dim, rank, "source") for dim in attributes.source]
    destination = [normalize_dim(dim, rank, "destination") for dim in attributes.destination]
    if len(source) != len(destination):
        fact = f"source names {len(source)} dims, destination {len(destination)}"
        raise OpError("SPY0205", fact, attribute="destination")
    for dims, attribute in (source, "source"), (destination, "destination"):
        normalize_dims(dims, rank, attribute)
    if rank == 0:
        return ()
    others = iter(dim for dim in range(rank) if dim not in source)
    order = [source[destination.index(place)] if place in destination else next(others) for place in range(rank)]
    return (("permute", PermuteAttributes(tuple(order))),)


@dataclass(frozen=True, slots=True)
class SwapAxesAttributes:
    """The two dims that change places."""

    axis0: int
    axis1: int


def _swap(_: OperandTypes, attributes: SwapAxesAttributes) -> Steps:
    return (("transpose", TransposeAttributes(attributes.axis0, attributes.axis1)),)


def _swap_dims(_: OperandTypes, attributes: TransposeAttributes) -> Steps:
    return (("transpose", attributes),)


_MOVES = (
    ((f16(2, 3, 4),), MoveDimAttributes((0,), (-1,))),
    ((i64(2, 3, 4),), MoveDimAttributes((2, 0), (0, 1))),
    ((f16(),), MoveDimAttributes((0,), (0,))),
)
for _name in ("movedim", "moveaxis"):
    define_chain(
        _name,
        "dims moved to other places, the others in their order",
        MoveDimAttributes,
        ChainRules(rule(MoveDimAttributes, _move)),
        _MOVES,
    )
define_chain(
    "swapaxes",
    "two dims change places",
    SwapAxesAttributes,
    ChainRules(rule(SwapAxesAttributes, _swap)),
    (((f16(2, 3, 4),), SwapAxesAttributes(0, -1)), ((boolean(2, 3),), SwapAxesAttributes(1, 0))),
)
define_chain(
    "swapdims",
    "two dims change places",
    TransposeAttributes,
    ChainRules(rule(TransposeAttributes, _swap_dims)),
    (((f16(2, 3, 4),), TransposeAttributes(0, -1)), ((f32(2, 3),), TransposeAttributes(1, 0))),
)

# --- other shapes -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnflattenAttributes:
    """``dim`` becomes dims of the extents ``sizes``, one of which may be -1."""

    dim: int
    sizes: Sizes


def _unflatten(operands: OperandTypes, attributes: UnflattenAttributes) -> Steps:
    shape = tensor(operands).shape
    if not shape:
        raise OpError("SPY0206", "a tensor of rank 0 has no dim to unflatten", operand=0)
    dim = normalize_dim(attributes.dim, len(shape))
    sizes = resolve_sizes(attributes.sizes, shape[dim], "sizes")
    return (("reshape", ReshapeAttributes((*shape[:dim], *sizes, *shape[dim + 1 :]))),)


define_chain(
    "unflatten",
    "one dim becomes several",
    UnflattenAttributes,
    ChainRules(rule(UnflattenAttributes, _unflatten)),
    (((f16(3, 12),), UnflattenAttributes(-1, (3, -1))), ((i64(6, 2),), UnflattenAttributes(0, (2, 3)))),
)


def _broadcast_to(_: OperandTypes, attributes: ExpandAttributes) -> Steps:
    return (("expand", attributes),)


define_chain(
    "broadcast_to",
    "dims of extent 1 repeat without a copy; new dims in front",
    ExpandAttributes,
    ChainRules(rule(ExpandAttributes, _broadcast_to), result_sizes="size"),
    (((f16(3, 1),), ExpandAttributes((2, 3, 5))), ((i64(),), ExpandAttributes((4,)))),
)


def _expand_as(operands: OperandTypes, _: NoAttributes) -> Steps:
    return (("expand", ExpandAttributes(tensor(operands, 1).shape)),)


def _reshape_as(operands: OperandTypes, _: NoAttributes) -> Steps:
    wanted, count = tensor(operands, 1).shape, tensor(operands).element_count
    if math.prod(wanted) != count:
        raise OpError("SPY0207", f"{tensor(operands, 1)} does not hold the {count} elements of input", operand=1)
    return (("reshape", ReshapeAttributes(wanted)),)


for _name, _summary, _rule in (
    ("expand_as", "dims of extent 1 repeat up to the shape of other", _expand_as),
    ("view_as", "the same elements in the shape of other", _reshape_as),
    ("reshape_as", "the same elements in the shape of other", _reshape_as),
):
    define_chain(
        _name,
        _summary,
        NoAttributes,
        ChainRules(rule(NoAttributes, _rule), operands=INPUT_AND_OTHER),
        (
            ((f16(3, 1), i64(3, 5)), NO_ATTRIBUTES)
            if _name == "expand_as"
            else ((f16(3, 4), boolean(2, 6)), NO_ATTRIBUTES),
            ((i64(4), f16(4)), NO_ATTRIBUTES),
        ),
    )


def _type_as(operands: OperandTypes, _: NoAttributes) -> Steps:
    return (("to", ToAttributes(tensor(operands, 1).dtype)),)


def _type_on_host(operands: OperandTypes, _: NoAttributes) -> str | None:
    source, dtype = tensor(operands), tensor(operands, 1).dtype
    return host_reason(catalogue()["to"], (source,), (TensorType(source.shape, dtype),), ToAttributes(dtype))


define_chain(
    "type_as",
    "converted to the dtype of other",
    NoAttributes,
    ChainRules(
        rule(NoAttributes, _type_as),
        kind=OpKind.COMPOSITE,
        operands=INPUT_AND_OTHER,
        host_when=rule(NoAttributes, _type_on_host),
    ),
    (
        ((f16(3, 5), f32(2)), NO_ATTRIBUTES),
        ((f32(3), boolean()), NO_ATTRIBUTES),
        ((i64(3), f16(2)), NO_ATTRIBUTES),
    ),
)

# --- repetitions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TileAttributes:
    """``dims``: how often each dim repeats, counted from the last; dims that are not named do once."""

    dims: Sizes


def _tile(operands: OperandTypes, attributes: TileAttributes) -> Steps:
    missing = tensor(operands).rank - len(attributes.dims)
    return (("repeat", RepeatAttributes((*(1,) * missing, *attributes.dims))),)


define_chain(
    "tile",
    "the tensor repeated along its dims, the last of which may be named alone",
    TileAttributes,
    ChainRules(rule(TileAttributes, _tile), kind=OpKind.MOVEMENT),
    (((f16(3, 5),), TileAttributes((2,))), ((i64(3),), TileAttributes((2, 2)))),
)


@dataclass(frozen=True, slots=True)
class RepeatInterleaveAttributes:
    """``repeats``: how often each element stands in a row along ``dim``; without ``dim`` the tensor is flat.

    ``output_size``: the extent that this makes, as PyTorch has it told; another one is refused.
    """

    repeats: Size
    dim: int | None = None
    output_size: Size | None = None


def _interleave(operands: OperandTypes, attributes: RepeatInterleaveAttributes) -> Steps:
    shape, first = tensor(operands).shape, ()
    if attributes.repeats < 0:
        raise OpError("SPY0209", f"repeats {attributes.repeats} is below 0", attribute="repeats")
    if attributes.dim is None or not shape:
        normalize_dim(attributes.dim or 0, len(shape))
        first = (("flatten", FlattenAttributes()),)
        shape = (math.prod(shape),)
    dim = normalize_dim(attributes.dim or 0, len(shape))
    opened = (*shape[: dim + 1], attributes.repeats, *shape[dim + 1 :])
    extent = shape[dim] * attributes.repeats
    if attributes.output_size not in (None, extent):
        fact = f"output_size is {attributes.output_size}, and {shape[dim]} elements repeated are {extent}"
        raise OpError("SPY0209", fact, attribute="output_size")
    result = (*shape[:dim], extent, *shape[dim + 1 :])
    return (
        *first,
        ("unsqueeze", DimAttributes(dim + 1)),
        ("expand", ExpandAttributes(opened)),
        ("reshape", ReshapeAttributes(result)),
    )


define_chain(
    "repeat_interleave",
    "each element several times in a row",
    RepeatInterleaveAttributes,
    ChainRules(rule(RepeatInterleaveAttributes, _interleave)),
    (
        ((f16(2, 3, 4),), RepeatInterleaveAttributes(2, 1)),
        ((i64(2, 3),), RepeatInterleaveAttributes(3)),
        ((f32(2, 3),), RepeatInterleaveAttributes(2, 0, 4)),
        ((f16(2),), RepeatInterleaveAttributes(0, 0)),
    ),
)

# --- channels and pixels ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UpscaleAttributes:
    """``upscale_factor``: as many more rows and columns, of as many fewer channels squared."""

    upscale_factor: int


@dataclass(frozen=True, slots=True)
class DownscaleAttributes:
    """``downscale_factor``: as many fewer rows and columns, in as many more channels squared."""

    downscale_factor: int


@dataclass(frozen=True, slots=True)
class GroupsAttributes:
    """``groups``: how many groups of channels are dealt out in turns."""

    groups: int


def _image(operands: OperandTypes, least: int = 3) -> TensorType:
    operand = tensor(operands)
    if operand.rank < least:
        raise OpError("SPY0206", f"{operand} has rank {operand.rank}, the op takes rank {least} or more", operand=0)
    return operand


def _require_divisor(extent: int, factor: int, attribute: str) -> None:
    if factor < 1 or extent % factor:
        raise OpError("SPY0209", f"{attribute} {factor} does not divide {extent}", attribute=attribute)


def _regrouped(opened: Sequence[int], order: Sequence[int], result: Sequence[int]) -> Steps:
    return (
        ("reshape", ReshapeAttributes(tuple(opened))),
        ("permute", PermuteAttributes(tuple(order))),
        ("reshape", ReshapeAttributes(tuple(result))),
    )


def _shuffle(operands: OperandTypes, attributes: UpscaleAttributes) -> Steps:
    *batch, channels, rows, columns = _image(operands).shape
    factor, first = attributes.upscale_factor, len(batch)
    _require_divisor(channels, factor * factor if factor > 0 else 0, "upscale_factor")
    kept = channels // (factor * factor)
    order = (*range(first), first, first + 3, first + 1, first + 4, first + 2)
    return _regrouped(
        (*batch, kept, factor, factor, rows, columns), order, (*batch, kept, rows * factor, columns * factor)
    )


def _unshuffle(operands: OperandTypes, attributes: DownscaleAttributes) -> Steps:
    *batch, channels, rows, columns = _image(operands).shape
    factor, first = attributes.downscale_factor, len(batch)
    for extent in (rows, columns):
        _require_divisor(extent, factor, "downscale_factor")
    opened = (*batch, channels, rows // factor, factor, columns // factor, factor)
    order = (*range(first), first, first + 2, first + 4, first + 1, first + 3)
    return _regrouped(opened, order, (*batch, channels * factor * factor, rows // factor, columns // factor))


def _deal(operands: OperandTypes, attributes: GroupsAttributes) -> Steps:
    shape = _image(operands).shape
    batch, channels, *rest = shape
    _require_divisor(channels, attributes.groups, "groups")
    opened = (batch, attributes.groups, channels // attributes.groups, *rest)
    return _regrouped(opened, (0, 2, 1, *range(3, len(opened))), shape)


define_chain(
    "pixel_shuffle",
    "channels become rows and columns",
    UpscaleAttributes,
    ChainRules(rule(UpscaleAttributes, _shuffle)),
    (((f16(2, 8, 3, 4),), UpscaleAttributes(2)), ((i64(4, 1, 2),), UpscaleAttributes(2))),
)
define_chain(
    "pixel_unshuffle",
    "rows and columns become channels",
    DownscaleAttributes,
    ChainRules(rule(DownscaleAttributes, _unshuffle)),
    (((f16(2, 2, 6, 4),), DownscaleAttributes(2)), ((i64(1, 2, 2),), DownscaleAttributes(2))),
)
define_chain(
    "channel_shuffle",
    "the channels of groups in turns",
    GroupsAttributes,
    ChainRules(rule(GroupsAttributes, _deal)),
    (((f16(2, 6, 3),), GroupsAttributes(3)), ((i64(1, 4, 2, 2),), GroupsAttributes(2))),
)
