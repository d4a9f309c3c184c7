"""Small OpSpecs for tests, and the address rule of ``sdsc_execution`` written down a second time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from spyrec.bundle.superdsc import Component, SuperDsc
from spyrec.codegen.expression import CoordinateExpression
from spyrec.codegen.opspec import (
    AllocationKind,
    ArgumentAllocation,
    IterationDim,
    LoopSpec,
    OpSpec,
    OpSpecFile,
    TensorArgument,
)
from spyrec.hardware.dtypes import DeviceFormat

SEGMENT = 0x400000000
FP16 = DeviceFormat.SEN169_FP16
FP32 = DeviceFormat.IEEE_FP32


@dataclass(frozen=True)
class Along:
    """A device axis that carries ``symbol``: how big the buffer is beyond it, and where the window begins."""

    symbol: str | None
    offset: int = 0
    tail: int = 0


def argument(
    axes: Sequence[Along],
    stick: str | None,
    sizes: Mapping[str, int],
    *,
    index: int,
    is_input: bool = True,
    data_format: DeviceFormat = FP16,
    lx: int | None = None,
    pool: int | None = None,
) -> TensorArgument:
    """An operand over ``axes`` (outermost first, the stick axis counted in sticks), plus the stick."""
    lanes = data_format.elements_per_stick
    assert lanes is not None
    device_size: list[int] = []
    coordinates: list[CoordinateExpression] = []
    for axis in axes:
        if axis.symbol is None:
            device_size.append(1)
            coordinates.append(CoordinateExpression.constant(0))
            continue
        is_stick = axis.symbol == stick
        extent = -(-sizes[axis.symbol] // lanes) if is_stick else sizes[axis.symbol]
        device_size.append(axis.offset + extent + axis.tail)
        base = CoordinateExpression.floor(axis.symbol, lanes) if is_stick else CoordinateExpression.symbol(axis.symbol)
        coordinates.append(base + axis.offset)
    last = CoordinateExpression.constant(0) if stick is None else CoordinateExpression.mod(stick, lanes)
    kind, start = AllocationKind.HBM, index * SEGMENT
    if lx is not None:
        kind, start = AllocationKind.LX, lx
    if pool is not None:
        kind, start = AllocationKind.POOL, pool
    return TensorArgument(
        is_input,
        index if kind is AllocationKind.HBM else None,
        data_format,
        (*device_size, lanes),
        (*coordinates, last),
        ArgumentAllocation(kind, start),
    )


def space(sizes: Mapping[str, int], splits: Mapping[str, int] | None = None) -> tuple[IterationDim, ...]:
    return tuple(IterationDim(symbol, size, (splits or {}).get(symbol, 1)) for symbol, size in sizes.items())


def default_axes(symbols: Sequence[str]) -> list[Along]:
    """The generic stick layout of a tensor over ``symbols``: sticks of the last one outermost but for the batch."""
    if len(symbols) == 1:
        return [Along(None), Along(symbols[0])]
    return [*map(Along, symbols[1:]), Along(symbols[0])]


def pointwise(op: str, sizes: Mapping[str, int], splits: Mapping[str, int] | None = None, inputs: int = 1) -> OpSpec:
    symbols = list(sizes)
    args = [
        argument(default_axes(symbols), symbols[-1], sizes, index=position, is_input=position < inputs)
        for position in range(inputs + 1)
    ]
    return OpSpec(op, False, space(sizes, splits), tuple(args))


def matmul(sizes: tuple[int, int, int], splits: tuple[int, int, int] = (1, 1, 1), op: str = "batchmatmul") -> OpSpec:
    extents = dict(zip("mnk", sizes, strict=True))
    padded = extents | {"k": -(-sizes[2] // 64) * 64}
    args = (
        argument([Along("k"), Along("m")], "k", extents, index=0),
        argument([Along("n"), Along("k")], "n", padded, index=1),
        argument([Along("n"), Along("m")], "n", extents, index=2, is_input=False),
    )
    return OpSpec(op, True, space(extents, dict(zip("mnk", splits, strict=True))), args)


def file_of(*specs: OpSpec | LoopSpec, symbolic: bool = False, unroll: bool = True) -> OpSpecFile:
    return OpSpecFile(symbolic, unroll, specs)


def direct_address(arg: TensorArgument, point: Mapping[str, int]) -> int:
    """The byte address of an element from device_size and coordinates alone."""
    lanes = arg.device_dtype.elements_per_stick
    assert lanes is not None
    elements = sum(
        coordinate.evaluate(point) * prod(arg.device_size[axis + 1 :])
        for axis, coordinate in enumerate(arg.device_coordinates)
    )
    return arg.allocation.start_bytes + elements * (128 // lanes)


class ExecutionRule:
    """Element addresses of one operand from the SuperDSC alone: section 2 of the execution rules, to the letter."""

    def __init__(self, dsc: SuperDsc, position: int) -> None:
        self.dsc = dsc
        self.operand = dsc.operands[position]
        self.label = dsc.labels[self.operand.label]
        self.stick = self.label.stick_dim
        self.lanes = self.label.stick_size
        self.strides: dict[str, int] = {}
        running = 1
        for dim in self.operand.layout_dim_order:
            self.strides[dim] = running
            running *= self._units(dim)

    def is_short(self, dim: str) -> bool:
        others = [self.dsc.labels[operand.label] for operand in self.dsc.operands if operand is not self.operand]
        gap = self.operand.back_gap.get(dim, 0)
        return (
            self.dsc.op_func_name == "ReStickifyOpHBM"
            and dim != self.stick
            and self.dsc.work_slices[dim] == 1
            and any(other.stick_dim == dim and 0 < gap < other.stick_size for other in others)
        )

    def _units(self, dim: str) -> int:
        if self.operand.scales[dim] != 1:
            return 1
        is_lx = self.operand.component is Component.LX
        extent = self.dsc.core_extent[dim] if is_lx else self.dsc.iteration[dim]
        gap = self.operand.back_gap.get(dim, 0)
        extent += -gap if self.is_short(dim) else gap
        return -(-extent // self.lanes) if dim == self.stick else extent

    def address(self, core: int, local: Mapping[str, int]) -> int:
        operand = self.operand
        total = operand.start_addresses[core]
        for dim in operand.layout_dim_order:
            if operand.scales[dim] != 1:
                continue
            if dim == self.stick:
                total += 128 * (local[dim] // self.lanes) * self.strides[dim]
                total += operand.word_length * (local[dim] % self.lanes)
            else:
                total += 128 * local[dim] * self.strides[dim]
        return total


def core_points(
    dsc: SuperDsc, core: int, labels: Mapping[str, str], sizes: Mapping[str, int]
) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Yield (local coordinates by dim, global point by symbol) of corners and middles of one core's box, all valid."""
    dims = list(dsc.iteration)
    picks = [sorted({0, extent // 2, extent - 1, min(extent - 1, 1)}) for extent in dsc.core_extent.values()]
    for choice in product(*picks):
        local = dict(zip(dims, choice, strict=True))
        point = {
            symbol: dsc.core_work_slices[core][dim] * dsc.core_extent[dim] + local[dim]
            for symbol, dim in labels.items()
        }
        if all(value < sizes[symbol] for symbol, value in point.items()):
            yield local, point
