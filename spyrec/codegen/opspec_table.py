"""The argument table of a program generated from OpSpecs, which has no manifest to say it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.image_table import ImageArgument, ImageTable, completed
from spyrec.codegen.opspec import AllocationKind, LoopSpec, OpSpec, TensorArgument
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SEGMENT_BYTES, STICK_BYTES


def table_of_opspecs(specs: Sequence[OpSpec | LoopSpec], program: DeviceProgram) -> ImageTable:
    """Return what a program of these OpSpecs is launched with.

    An argument that several operations see as different tensors is one row of sticks that covers them all; an index
    that no operation uses is one stick.
    """
    arguments = list(_arguments(specs))
    pool = [item for item in arguments if item.allocation.kind is AllocationKind.POOL]
    pool_bytes = max((item.allocation.start_bytes + _size_bytes(item) for item in pool), default=0)
    seen: dict[int, list[TensorArgument]] = {}
    for item in arguments:
        if item.allocation.kind is AllocationKind.HBM and item.arg_index is not None:
            seen.setdefault(item.arg_index, []).append(item)
    listed = [_argument(index, seen.get(index, ()), pool_bytes) for index in range(max(seen, default=-1) + 1)]
    return completed(program, ImageTable(tuple(listed), pool_bytes, {}, ()))


def _arguments(specs: Sequence[OpSpec | LoopSpec]) -> Iterator[TensorArgument]:
    for spec in specs:
        if isinstance(spec, LoopSpec):
            yield from _arguments(spec.body)
        else:
            yield from spec.args


def _size_bytes(argument: TensorArgument) -> int:
    return math.prod(argument.device_size[:-1]) * STICK_BYTES


@dataclass(frozen=True, slots=True)
class _Form:
    device_size: tuple[int, ...]
    device_dtype: DeviceFormat
    base: int


def _argument(index: int, uses: Sequence[TensorArgument], pool_bytes: int) -> ImageArgument:
    name = next((item.name for item in uses if item.name is not None), f"arg_{index}")
    form = _form(uses) if uses else None
    if form is None:
        form = _Form((1, 64), DeviceFormat.SEN169_FP16, (index + (1 if pool_bytes else 0)) * SEGMENT_BYTES)
    return ImageArgument(name, form.device_size, form.device_dtype, form.base, is_read=False, is_written=False)


def _form(uses: Sequence[TensorArgument]) -> _Form:
    first = uses[0]
    base = min(item.allocation.start_bytes for item in uses)
    forms = {(item.device_size, item.device_dtype, item.allocation.start_bytes) for item in uses}
    if len(forms) == 1:
        return _Form(first.device_size, first.device_dtype, base)
    past = max(item.allocation.start_bytes + _size_bytes(item) for item in uses)
    lanes = first.device_dtype.elements_per_stick
    assert lanes is not None, "formats without sticks hold no tensor"
    return _Form((-(-(past - base) // STICK_BYTES), lanes), first.device_dtype, base)
