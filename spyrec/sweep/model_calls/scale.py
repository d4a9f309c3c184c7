"""Smaller calls of the same form: a vocabulary of 128,256 rows says of an op what one of 2,048 says.

The largest extent is halved, everywhere that it stands, until no tensor has more elements than asked for, and what the
tensors broadcast to has not either (two of 800,000 may make 100,000,000).  Equal
extents stay equal, multiples of 64 stay multiples of 64, odd extents odd; a size among the arguments goes along.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from spyrec.sweep.model_calls.cases import Argument, Case, Tensor
from spyrec.sweep.model_calls.signatures import bind, public_name

SMALLEST = 16
"""Extents up to this one stay: heads, experts, tiny shapes."""

_SIZES = {
    "conv1d": "groups",
    "view": "shape",
    "reshape": "shape",
    "expand": "size",
    "zeros": "size",
    "full": "size",
    "ones": "size",
    "split": "split_size",
    "rms_norm": "normalized_shape",
    "repeat_interleave": "repeats output_size",
}
"""Arguments of an op that are extents, and shrink with them."""


def scaled(case: Case, most: int | None) -> Case:
    """Return a case of the same form whose tensors have at most ``most`` elements, or as few as its form allows."""
    while most is not None and math.prod(_largest(case)) > most:
        smaller = _smaller(case)
        if smaller is None:
            return case
        case = smaller
    return case


def scaled_or_same(case: Case, most: int | None) -> Case:
    """Return the case as it will run; a call of unknown parameters stays as it is."""
    try:
        return scaled(case, most)
    except LookupError:
        return case


def _largest(case: Case) -> tuple[int, ...]:
    """Return the largest shape of a call: that of a tensor, or what its tensors broadcast to where they do."""
    shapes = [tensor.shape for tensor in case.tensors]
    with contextlib.suppress(ValueError):  # they are no operands of one element-wise op
        shapes.append(np.broadcast_shapes(*shapes))
    return max(shapes, key=math.prod, default=(0,))


def _smaller(case: Case) -> Case | None:
    """Return the case with its largest extent halved that may be halved, ``None`` where none may."""
    for extent in sorted({extent for extent in _largest(case) if extent > SMALLEST}, reverse=True):
        if _may_change(case, extent):
            return _replaced(case, {extent: _half(extent)})
    return None


def _half(extent: int) -> int:
    if extent % 128 == 0:
        return extent // 2
    if extent % 64 == 0 and extent > 64:
        return (extent // 128) * 64 or 64
    return extent // 2 | (extent % 2)


def _may_change(case: Case, extent: int) -> bool:
    """Return whether the arguments follow a changed extent: a reshape has it as often on either side.

    Pieces of several sizes make their dim together, and no one of them is its extent.
    """
    name = public_name(case.op)
    if name == "split":
        bound = bind(case)
        dim = bound.get("dim", 0)
        return not isinstance(bound["split_size"], tuple) or (
            isinstance(dim, int) and extent != case.tensors[0].shape[dim]
        )
    if name not in ("view", "reshape"):
        return True
    sizes = bind(case)["shape"]
    assert isinstance(sizes, tuple)
    before, after = case.tensors[0].shape, _resolved(case.tensors[0].shape, sizes)
    return Counter(before)[extent] == Counter(after)[extent]


def _resolved(shape: tuple[int, ...], sizes: tuple[Argument, ...]) -> tuple[int, ...]:
    stated = [size for size in sizes if isinstance(size, int)]
    rest = math.prod(size for size in stated if size != -1)
    return tuple(math.prod(shape) // rest if size == -1 else size for size in stated)


def _replaced(case: Case, sizes: Mapping[int, int]) -> Case:
    names = _SIZES.get(public_name(case.op), "").split()
    bound = bind(case)
    follows = any(name in bound for name in names)

    def of(value: Argument) -> Argument:
        if isinstance(value, Tensor):
            return _tensor(value, sizes)
        if isinstance(value, tuple):
            return tuple(of(item) for item in value)
        is_size = follows and isinstance(value, int) and not isinstance(value, bool)
        return sizes.get(value, value) if is_size and isinstance(value, int) else value

    keywords = tuple((name, of(value)) for name, value in case.keywords)
    return replace(case, arguments=tuple(of(value) for value in case.arguments), keywords=keywords)


def _tensor(tensor: Tensor, sizes: Mapping[int, int]) -> Tensor:
    shape = tuple(sizes.get(extent, extent) for extent in tensor.shape)
    if shape == tensor.shape:
        return tensor
    return Tensor(shape, tensor.dtype, _like(tensor, shape), 0, tensor.high)


def _like(tensor: Tensor, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return strides in the order of the tensor's own; what it repeats stays repeated, gaps go."""
    if tensor.strides is None:
        return None
    strides = list(tensor.strides)
    step = 1
    for axis in sorted(range(len(shape)), key=lambda item: (tensor.strides or ())[item]):
        if tensor.strides[axis]:
            strides[axis] = step
            step *= shape[axis]
    return tuple(strides)
