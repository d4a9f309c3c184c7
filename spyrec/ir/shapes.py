"""Shape arithmetic shared by the ops: broadcasting, dims counted from the end, sizes with one -1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spyrec.ir.opdef import AxisSources, OperandTypes, OpError

Shape = tuple[int, ...]


def show(shape: Sequence[int]) -> str:
    """Return a shape as messages write it: ``[2,3]``."""
    return f"[{','.join(map(str, shape))}]"


def normalize_dim(dim: int, rank: int, attribute: str = "dim") -> int:
    """Return ``dim`` counted from the front; a 0-d tensor has the dims 0 and -1, as in PyTorch.

    Errors: SPY0204 out of range.
    """
    limit = max(rank, 1)
    if not -limit <= dim < limit:
        message = f"dim {dim} is out of range for a tensor of rank {rank}"
        raise OpError("SPY0204", message, hint=f"use a dim from {-limit} to {limit - 1}", attribute=attribute)
    return dim % limit


def normalize_dims(dims: Sequence[int] | None, rank: int, attribute: str = "dim") -> Shape:
    """Return distinct dims counted from the front, ascending; ``None`` and an empty list mean all dims.

    Errors: SPY0204 out of range, SPY0205 a dim twice.
    """
    if not dims:
        return tuple(range(rank))
    result = [normalize_dim(dim, rank, attribute) for dim in dims]
    if len(set(result)) != len(result):
        raise OpError("SPY0205", f"dims {show(dims)} name one dim twice (rank {rank})", attribute=attribute)
    return tuple(sorted(result)) if rank else ()


def broadcast(shapes: Sequence[tuple[int, Shape]], subject: str = "shapes") -> Shape:
    """Return the shape that (operand index, shape) pairs broadcast to.

    Errors: SPY0201 with both shapes, at the first operand that does not fit the ones before it.
    """
    result: Shape = ()
    for index, shape in shapes:
        rank = max(len(result), len(shape))
        left, right = (1,) * (rank - len(result)) + result, (1,) * (rank - len(shape)) + shape
        for one, other in zip(left, right):
            if one != other and 1 not in (one, other):
                message = f"{subject} {show(result)} and {show(shape)} do not broadcast: {one} against {other}"
                hint = "extents must be equal or 1, counted from the last dim"
                raise OpError("SPY0201", message, hint=hint, operand=index)
        result = tuple(other if one == 1 else one for one, other in zip(left, right))
    return result


def broadcast_axes(types: OperandTypes, result: Shape, skip_last: int = 0) -> AxisSources:
    """Return the sources of each axis of a broadcast ``result``; operands ignore their last ``skip_last`` axes."""
    sources: list[tuple[tuple[int, int], ...]] = []
    for position, extent in enumerate(result):
        found: list[tuple[int, int]] = []
        for index, operand in enumerate(types):
            axis = position - len(result) + (operand.rank - skip_last if operand is not None else 0)
            if operand is not None and axis >= 0 and operand.shape[axis] == extent:
                found.append((index, axis))
        sources.append(tuple(found))
    return tuple(sources)


def resolve_sizes(sizes: Sequence[int], element_count: int, attribute: str) -> Shape:
    """Return ``sizes`` with its one -1 replaced so that the product is ``element_count``.

    Errors: SPY0208 two -1, an extent below 1, or another number of elements.
    """
    unknown = [position for position, size in enumerate(sizes) if size == -1]
    if len(unknown) > 1:
        raise OpError("SPY0208", f"sizes {show(sizes)} hold {len(unknown)} entries of -1", attribute=attribute)
    if any(size < 0 for size in sizes if size != -1):
        message = f"sizes {show(sizes)} hold an extent below 0"
        raise OpError("SPY0208", message, hint="extents are 0 or more; one entry may be -1", attribute=attribute)
    known = math.prod(size for size in sizes if size != -1)
    if unknown and known and element_count % known == 0:
        return tuple(element_count // known if size == -1 else int(size) for size in sizes)
    if unknown or known != element_count:
        message = f"sizes {show(sizes)} do not hold the {element_count} elements of the operand"
        raise OpError("SPY0208", message, attribute=attribute)
    return tuple(map(int, sizes))


def reshape_axes(source: Shape, target: Shape) -> AxisSources:
    """Return which source axis each axis of a reshape runs along: only whole axes that are neither split nor merged."""
    if 0 in source:  # no element stands anywhere
        return ((),) * len(target)
    sources: list[tuple[tuple[int, int], ...]] = [()] * len(target)
    left = right = 0
    while left < len(source) and right < len(target):
        if source[left] == target[right]:
            sources[right] = ((0, left),)
            left, right = left + 1, right + 1
            continue
        if 1 in (source[left], target[right]):
            left, right = (left + 1, right) if source[left] == 1 else (left, right + 1)
            continue
        lower, upper = source[left], target[right]
        left, right = left + 1, right + 1
        while lower != upper:
            if lower < upper:
                lower *= source[left]
                left += 1
            else:
                upper *= target[right]
                right += 1
    return tuple(sources)
