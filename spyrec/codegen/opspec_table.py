"""The argument table of a program generated from OpSpecs, which has no manifest to say it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from spyrec.bundle.device_program import DeviceProgram
from spyrec.bundle.dynamic_sizes import with_named_sizes
from spyrec.bundle.image_table import ImageArgument, ImageTable, completed
from spyrec.bundle.manifest import Argument, Manifest, PlanStep, Role
from spyrec.codegen.expression import CoordinateExpression
from spyrec.codegen.opspec import AllocationKind, DynamicSize, LoopSpec, OpSpec, OpSpecFile, TensorArgument
from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SEGMENT_BYTES, STICK_BYTES, Target


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


def manifest_of_opspecs(file: OpSpecFile, program: DeviceProgram, target: Target, name: str) -> Manifest:
    """Return the manifest of a bundle of one program made of OpSpecs: its arguments are in device form.

    What an operation reads before any writes it is an input; so is a tensor that rows are scattered into.  Dynamic
    sizes are symbolic dims, and device dims that follow one are its axes.
    """
    table = table_of_opspecs(file.specs, program)
    names = [item.name for item in table.arguments]
    read, written = _first_uses(file.specs)
    axes = _followed_sizes(file.specs)
    arguments = tuple(
        Argument(
            name=item.name if names.count(item.name) == 1 else f"arg_{index}",
            role=_role(index in read or index not in written, index in written),
            arg_index=index,
            address=item.baked_base,
            shape=None,
            dtype=None,
            host_strides=None,
            device_size=item.device_size,
            stride_map=None,
            device_dtype=item.device_dtype,
            symbolic_axes=axes[index] if index in axes and len(axes[index]) == len(item.device_size) else (),
        )
        for index, item in enumerate(table.arguments)
    )
    manifest = Manifest(
        name=name,
        target=target,
        arguments=arguments,
        inputs=tuple(item.name for item in arguments if item.role is not Role.OUTPUT),
        outputs=tuple((item.name, item.name) for item in arguments if item.role is not Role.INPUT),
        plan=(PlanStep(".", tuple(item.name for item in arguments), table.pool_bytes),),
        pool_bytes=table.pool_bytes,
        graph_sha256=None,
    )
    return with_named_sizes(manifest, program)


def _followed_sizes(specs: Sequence[OpSpec | LoopSpec]) -> dict[int, tuple[str | None, ...]]:
    """Return the dynamic size that each device dim of an argument counts, where all its operands say the same."""
    uses: dict[int, list[tuple[str | None, ...]]] = {}
    for spec in _operations(specs):
        for item in spec.args:
            if item.arg_index is not None and item.allocation.kind is AllocationKind.HBM:
                uses.setdefault(item.arg_index, []).append(_sizes_of_dims(spec, item))
    agreed = {index: found[0] for index, found in uses.items() if len(set(found)) == 1}
    return {index: axes for index, axes in agreed.items() if any(axes)}


def _sizes_of_dims(spec: OpSpec, argument: TensorArgument) -> tuple[str | None, ...]:
    """Return the dynamic size that each device dim of an operand counts element by element, from its first to its last.

    Nothing of a window, of a tile, or of a tensor whose elements lie behind a first one.
    """
    sizes = {
        CoordinateExpression.symbol(dim.symbol): dim.size
        for dim in spec.iteration_space
        if isinstance(dim.size, DynamicSize)
    }
    is_whole = argument.tile_advance is None and argument.allocation.start_bytes % SEGMENT_BYTES == 0
    found: list[str | None] = []
    for extent, coordinate in zip(argument.device_size, argument.device_coordinates, strict=True):
        size = sizes.get(coordinate)
        found.append(size.name if is_whole and size is not None and size == extent else None)
    return tuple(found)


def _first_uses(specs: Sequence[OpSpec | LoopSpec]) -> tuple[set[int], set[int]]:
    """Return the arguments that are read before they are written, and those that are written."""
    read: set[int] = set()
    written: set[int] = set()
    for item in _arguments(specs):
        if item.allocation.kind is not AllocationKind.HBM or item.arg_index is None:
            continue
        is_scattered = any(coordinate.indirect_names for coordinate in item.device_coordinates)
        if (item.is_input or is_scattered) and item.arg_index not in written:
            read.add(item.arg_index)
        if not item.is_input:
            written.add(item.arg_index)
    return read, written


def _role(is_read: bool, is_written: bool) -> Role:
    if is_read and is_written:
        return Role.INOUT
    return Role.OUTPUT if is_written else Role.INPUT


def _arguments(specs: Sequence[OpSpec | LoopSpec]) -> Iterator[TensorArgument]:
    for spec in _operations(specs):
        yield from spec.args


def _operations(specs: Sequence[OpSpec | LoopSpec]) -> Iterator[OpSpec]:
    for spec in specs:
        if isinstance(spec, LoopSpec):
            yield from _operations(spec.body)
        else:
            yield spec


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
