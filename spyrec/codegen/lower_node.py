"""Scheduled kernel to OpSpec: device dims become device coordinates over iteration symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spyrec.codegen.expression import CoordinateExpression
from spyrec.codegen.lower_window import output_ranges, window_info
from spyrec.codegen.opspec import (
    AllocationKind,
    ArgumentAllocation,
    IterationDim,
    OpInfo,
    OpSpec,
    OwnedSlices,
    TensorArgument,
)
from spyrec.dataclass import dataclass
from spyrec.device_ops import IDENTITY
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.ir.device_access import DeviceAccess, DeviceDim, VariablePart
from spyrec.ir.kernel import Kernel, KernelBuffer, KernelGraph, KernelProgram, Owners
from spyrec.ir.kernel_form import KernelForm, Rule, stands_at_one_position, synthetic_count


@dataclass(frozen=True, slots=True)
class _Symbols:
    """Names of the iteration symbols: one per variable, those for single positions, and the unit lane's."""

    variables: tuple[str, ...]
    positions: tuple[str, ...]
    unit_lane: str | None


@dataclass(frozen=True, slots=True)
class _Dim:
    """One device dim as an OpSpec writes it; ``moves``: positions per iteration of each loop, empty where it stays."""

    extent: int
    coordinate: CoordinateExpression
    moves: tuple[int, ...] = ()


_EMPTY = _Dim(1, CoordinateExpression.constant(0))


def lower_node(graph: KernelGraph, program: KernelProgram, kernel: Kernel) -> OpSpec:
    """Return the OpSpec of a kernel inside a program.

    Single positions of dims get iteration symbols of extent 1 (``z0``..), put first so that the last symbols keep their
    meaning as M, N and K; every operand gets a leading dim of extent 1 for those that it has no use for.
    """
    form = kernel.placed
    division = kernel.division or (1,) * len(form.variables)
    names = tuple(f"c{index}" for index in range(len(form.variables)))
    count = synthetic_count(form.operands)
    symbols = _Symbols(names, tuple(f"z{index}" for index in range(count)), "u0" if form.unit_lane else None)
    space = [IterationDim(name, 1) for name in symbols.positions]
    space += [
        IterationDim(name, variable.size, slices)
        for name, variable, slices in zip(names, form.variables, division, strict=True)
    ]
    if symbols.unit_lane is not None:
        place = len(space) - 1 if kernel.rule is Rule.CONTRACTION else len(space)
        space.insert(place, IterationDim(symbols.unit_lane, 1))
    operands = [_operand_dims(kernel, form, symbols, position) for position in range(len(kernel.uses))]
    rank = max(len(dims) for dims in operands)
    args = tuple(
        _argument(graph.buffers[use.buffer], program, kernel, [*(_EMPTY,) * (rank - len(dims)), *dims])
        for use, dims in zip(kernel.inputs, operands, strict=False)
    )
    target = graph.buffers[kernel.output.buffer]
    output = _argument(target, program, kernel, [*(_EMPTY,) * (rank - len(operands[-1])), *operands[-1]])
    if kernel.owners:
        source, result = (_owned(owners, names) for owners in kernel.owners)
        args, output = (replace(args[0], work_division=source),), replace(output, work_division=result)
    # a kernel's form is refused where a store would reach its neighbour, and there the host extents are known
    output = replace(output, is_input=False, ends_in_padding=True)
    is_reduction = kernel.rule in (Rule.REDUCTION, Rule.CONTRACTION, Rule.WINDOW) or (
        kernel.rule is Rule.STATISTICS and bool(kernel.reduced)
    )
    tiled = tuple(
        name
        for dims in kernel.tiled
        for name, variable in zip(names, form.variables, strict=True)
        if variable.dim in dims
    )
    return OpSpec(
        IDENTITY if kernel.owners else kernel.op_func,
        is_reduction,
        tuple(space),
        (*args, output),
        op_info=OpInfo(kernel.constants) if kernel.window is None else window_info(kernel, kernel.window),
        tiled_symbols=tiled,
        node_output_ranges=None if kernel.window is None else output_ranges(kernel, kernel.window),
    )


def _owned(owners: Owners, names: Sequence[str]) -> OwnedSlices:
    """Return who owns what of an operand of a shuffle: an OpSpec says it of a copy."""
    slots: dict[str, CoordinateExpression] = {}
    before = 1
    for variable in owners.order:
        slices = owners.division[variable]
        if slices > 1:
            slots[names[variable]] = CoordinateExpression.mod(CoordinateExpression.floor("core_id", before), slices)
            before *= slices
    cut = {names[variable]: slices for variable, slices in enumerate(owners.division) if slices > 1}
    return OwnedSlices(cut, slots)


def _operand_dims(kernel: Kernel, form: KernelForm, symbols: _Symbols, position: int) -> list[_Dim]:
    """Return one operand's dims, outermost first, the stick pair last."""
    operand = form.operands[position]
    free = list(symbols.positions)
    dims: list[_Dim] = []
    has_unit_lane = symbols.unit_lane is not None and operand.lane is None and _takes_unit_lane(kernel, position)
    for place, dim in enumerate(operand.dims[:-1]):
        moves = tuple(move[place] for move in operand.moves)
        if has_unit_lane and dim.part is VariablePart.TILE:
            assert symbols.unit_lane is not None
            walk = CoordinateExpression.floor(symbols.unit_lane, operand.lane_extent)
            dims.append(_Dim(dim.extent, walk + dim.offset, moves))
        elif stands_at_one_position(dim):
            dims.append(_Dim(dim.extent, CoordinateExpression.symbol(free.pop(0)) + dim.offset, moves))
        elif dim.variable is not None:
            dims.append(_Dim(dim.extent, _walk(dim, symbols, operand), moves))
    leading = [_Dim(1, CoordinateExpression.symbol(name)) for name in free]
    if symbols.unit_lane is not None and not has_unit_lane and kernel.rule is Rule.RESTICKIFY:
        leading.append(_Dim(1, CoordinateExpression.symbol(symbols.unit_lane)))
    if operand.lane is None and not has_unit_lane:
        leading.insert(0, _EMPTY)
    return [*leading, *dims, _lane(operand, symbols, has_unit_lane)]


def _takes_unit_lane(kernel: Kernel, position: int) -> bool:
    """A contraction's first operand has K in its sticks, never the columns; a fill broadcasts its element's lane."""
    match kernel.rule:
        case Rule.CONTRACTION:
            return position > 0
        case Rule.SAME_STICK:
            return position == len(kernel.inputs)
        case _:
            return True


def _walk(dim: DeviceDim, symbols: _Symbols, operand: DeviceAccess) -> CoordinateExpression:
    assert dim.variable is not None
    name = symbols.variables[dim.variable]
    walk = (
        CoordinateExpression.floor(name, operand.lane_extent)
        if dim.part is VariablePart.TILE
        else CoordinateExpression.symbol(name)
    )
    return walk + dim.offset


def _lane(operand: DeviceAccess, symbols: _Symbols, has_unit_lane: bool) -> _Dim:
    if operand.lane is not None:
        return _Dim(operand.lane_extent, CoordinateExpression.mod(symbols.variables[operand.lane], operand.lane_extent))
    if has_unit_lane:
        assert symbols.unit_lane is not None
        return _Dim(operand.lane_extent, CoordinateExpression.mod(symbols.unit_lane, operand.lane_extent))
    return _Dim(operand.lane_extent, CoordinateExpression.constant(0))


def _argument(buffer: KernelBuffer, program: KernelProgram, kernel: Kernel, dims: list[_Dim]) -> TensorArgument:
    """Return an operand as an input."""
    arguments: Mapping[str, int] = {name: index for index, name in enumerate(program.arguments)}
    index = arguments.get(buffer.name)
    if buffer.name in program.lx_offsets:
        kind, address = AllocationKind.LX, program.lx_offsets[buffer.name]
    elif index is None:
        kind, address = AllocationKind.POOL, program.pool_offsets[buffer.name]
    else:
        kind, address = AllocationKind.HBM, argument_address(program, index)
    loops = range(len(kernel.loops))
    moves = tuple(tuple(dim.moves[loop] if dim.moves else 0 for dim in dims) for loop in loops)
    return TensorArgument(
        is_input=True,
        arg_index=index,
        device_dtype=buffer.device_format,
        device_size=tuple(dim.extent for dim in dims),
        device_coordinates=tuple(dim.coordinate for dim in dims),
        allocation=ArgumentAllocation(kind, address),
        per_tile_fixed=bool(buffer.home) and not any(any(move) for move in moves),
        moves=moves,
    )


def argument_address(program: KernelProgram, index: int) -> int:
    """Return the address of argument ``index``: the base of its segment, after that of the pool where there is one.

    Where addresses are parameters there may be more arguments than segments: the address is then a name and no place.
    """
    return (index + (1 if program.pool_bytes else 0)) * SEGMENT_BYTES
