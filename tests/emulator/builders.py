"""Small SuperDSCs written by hand: the record of one operation from a few facts, with its argument table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from spyrec.bundle.program import Program, SdscExecute
from spyrec.bundle.superdsc import Component, ComputeOp, ConstantEntry, Indirection, LabelInfo, Operand, SuperDsc
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.runtime.device import ArgumentTable, TableEntry

DL16 = DeviceFormat.SEN169_FP16
FP32 = DeviceFormat.IEEE_FP32


@dataclass(frozen=True, slots=True)
class Tensor:
    """One operand: layout order inner to outer, stick dim, scale where not 1, window gap and its first coordinate."""

    order: tuple[str, ...]
    stick: str
    scale: Mapping[str, int] = field(default_factory=dict[str, int])
    data_format: DeviceFormat = DL16
    gap: Mapping[str, int] = field(default_factory=dict[str, int])
    first: Mapping[str, int] = field(default_factory=dict[str, int])
    lx_start: int | None = None
    indirection: Indirection = Indirection.NONE
    pairs: str | None = None
    """The dim of which a stick holds pairs."""
    is_interleaved: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: dims as (extent, slices) in order; the last tensor is the output."""

    op: str
    dims: Mapping[str, tuple[int, int]]
    tensors: Sequence[Tensor]
    constants: Mapping[str, int] = field(default_factory=dict[str, int])
    masks: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict[str, tuple[tuple[int, int], ...]])
    unit: str = "sfp"


def buffer_extents(operation: Operation, tensor: Tensor) -> dict[str, int]:
    """Extents in sticks and entries, inner to outer, of the buffer in device memory (or one core's LX)."""
    size = tensor.data_format.elements_per_stick
    assert size is not None
    extents: dict[str, int] = {}
    for dim in tensor.order:
        total, slices = operation.dims[dim]
        own = total if tensor.lx_start is None else total // slices
        entries = own + tensor.gap.get(dim, 0) if tensor.scale.get(dim, 1) == 1 else 1
        extents[dim] = -(-entries // size) if dim == tensor.stick and tensor.scale.get(dim, 1) == 1 else entries
    return extents


def start_of(operation: Operation, tensor: Tensor, base: int, slices: Mapping[str, int]) -> int:
    if tensor.lx_start is not None:
        return tensor.lx_start
    size = tensor.data_format.elements_per_stick
    assert size is not None
    address, stride = base, 128
    for dim, extent in buffer_extents(operation, tensor).items():
        if tensor.scale.get(dim, 1) == 1:
            coordinate = tensor.first.get(dim, 0) + slices[dim] * operation.dims[dim][0] // operation.dims[dim][1]
            if dim == tensor.stick:
                address += coordinate // size * stride + coordinate % size * (128 // size)
            else:
                address += coordinate * stride
        stride *= extent
    return address


def superdsc_of(operation: Operation, index: int = 0, bases: Sequence[int] | None = None) -> SuperDsc:
    """The SuperDSC of an operation whose tensor i is argument i at its segment (or at ``bases[i]``)."""
    counts = {dim: slices for dim, (_, slices) in operation.dims.items()}
    # The first dim varies fastest over the cores.
    places = [dict(zip(reversed(counts), place)) for place in product(*(range(n) for n in reversed(counts.values())))]
    per_core = [{dim: place[dim] for dim in counts} for place in places]
    labels: dict[str, LabelInfo] = {}
    operands: list[Operand] = []
    for position, tensor in enumerate(operation.tensors):
        size = tensor.data_format.elements_per_stick
        assert size is not None
        label = f"LABEL{position}"
        in_pairs = ((tensor.pairs, tensor.stick), (2, 64)) if tensor.pairs is not None else None
        labels[label] = LabelInfo(tensor.order, *(in_pairs or ((tensor.stick,), (size,))))
        base = position * SEGMENT_BYTES if bases is None else bases[position]
        operands.append(
            Operand(
                label=label,
                component=Component.HBM if tensor.lx_start is None else Component.LX,
                layout_dim_order=tensor.order,
                scales={dim: tensor.scale.get(dim, 1) for dim in tensor.order},
                max_dim_sizes=dict.fromkeys(tensor.order, -1),
                start_addresses=tuple(start_of(operation, tensor, base, slices) for slices in per_core),
                is_symbolic=False,
                back_gap=dict(tensor.gap),
                data_format=tensor.data_format,
                word_length=128 // size,
                indirection=tensor.indirection,
                is_interleaved=tensor.is_interleaved,
            )
        )
    indices = tuple(i for i, item in enumerate(operation.tensors) if item.indirection is Indirection.INDEX)
    last = len(operands) - 1
    return SuperDsc(
        index=index,
        op_func_name=operation.op,
        core_ids=tuple(range(math.prod(counts.values()))),
        iteration={dim: extent for dim, (extent, _) in operation.dims.items()},
        work_slices=counts,
        core_extent={dim: extent // slices for dim, (extent, slices) in operation.dims.items()},
        core_work_slices=tuple(per_core),
        labels=labels,
        operands=tuple(operands),
        constants=tuple(ConstantEntry(name, DL16, bits) for name, bits in operation.constants.items()),
        coordinate_masking=operation.masks,
        masking_constant_id=0 if operation.masks else -1,
        compute=ComputeOp(
            operation.unit, operation.op, DL16, tuple(i for i in range(last) if i not in indices), (last,), indices
        ),
    )


def entry_of(operation: Operation, position: int) -> TableEntry:
    tensor = operation.tensors[position]
    extents = buffer_extents(operation, tensor)
    size = tensor.data_format.elements_per_stick
    assert size is not None
    return TableEntry(
        name=f"arg{position}",
        arg_index=position,
        device_size=(*reversed(extents.values()), size),
        device_dtype=tensor.data_format,
        baked_base=position * SEGMENT_BYTES,
        size_bytes=128 * math.prod(extents.values()),
    )


def table_of(operation: Operation) -> ArgumentTable:
    """The argument table that an operation's tensors describe."""
    hbm = [i for i, item in enumerate(operation.tensors) if item.lx_start is None]
    return ArgumentTable(tuple(entry_of(operation, i) for i in hbm))


def program_of(count: int = 1) -> Program:
    """A program of ``count`` SuperDSCs with baked addresses."""
    return Program((), (), tuple(SdscExecute(f"sdsc_{i}.json") for i in range(count)))
