"""Operations, tensors, programs and loops of a report, from a bundle as it reads: what touches what, where."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from spyrec.bundle.manifest import Argument
from spyrec.bundle.superdsc import Indirection
from spyrec.compare.bundle_reading import (
    Body,
    BundleReading,
    LoopReading,
    OperandReading,
    OperationReading,
    ProgramReading,
)
from spyrec.dataclass import dataclass
from spyrec.hardware.plan_record import PlannedLoop, PlannedTensor
from spyrec.hardware.target import SEGMENT_BYTES, STICK_BYTES
from spyrec.report.model import Op, OpDim, OpOperand, ReportLoop, ReportProgram, Tensor, TensorLayout
from spyrec.report.numbers import ranges_of

_READ_ONCE = frozenset({"input", "inout", "constant"})
_WRITTEN_ONCE = frozenset({"output"})


@dataclass(frozen=True, slots=True)
class Operations:
    """What a bundle executes; positions in these are the numbers of a report."""

    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...]
    programs: tuple[ReportProgram, ...]
    loops: tuple[ReportLoop, ...]


@dataclass(frozen=True, slots=True)
class _Key:
    """What makes a tensor one: arguments are the bundle's, the rest is a program's."""

    memory: str
    program: int | None
    name: str
    base: int | None = None


@dataclass(slots=True)
class _Uses:
    """Who writes and who reads a tensor, in order."""

    number: int
    writers: list[int] = field(default_factory=list[int])
    readers: list[int] = field(default_factory=list[int])
    example: OperandReading | None = None


def operations_of(reading: BundleReading) -> Operations:
    """Return the operations of a bundle's plan, without times; what programs outside of the plan do is left out."""
    return _Collector(reading).collect()


class _Collector:
    """Numbers tensors as they are met, arguments first."""

    def __init__(self, reading: BundleReading) -> None:
        manifest = reading.manifest
        steps = len(reading.programs) if manifest is None else len(manifest.plan)
        self.programs = reading.programs[:steps]
        self.manifest = manifest
        figures = None if manifest is None else manifest.figures
        self.planned_loops = {} if figures is None else {item.number: item for item in figures.loops}
        self.planned = {} if figures is None else {item.name: item for item in figures.tensors}
        self.arguments = {} if manifest is None else {item.name: item for item in manifest.arguments}
        self.uses: dict[_Key, _Uses] = {}
        self.loops: list[ReportLoop] = []
        for item in () if manifest is None else manifest.arguments:
            self.tensor(_Key("argument", None, item.name))

    def collect(self) -> Operations:
        ops: list[Op] = []
        programs: list[ReportProgram] = []
        for number, program in enumerate(self.programs):
            first = len(ops)
            loops = self.program_loops(number, program)
            ops += [self.operation(number, item, loops) for item in program.operations]
            arguments = tuple(self.tensor(_Key("argument", None, name)).number for name in program.arguments)
            programs.append(ReportProgram(program.directory, first, len(ops), arguments, program.pool_bytes))
        tensors = tuple(self.tensor_of(key, uses) for key, uses in self.uses.items())
        bounds = _bounds(tensors)
        bounded = tuple(replace(op, bound=bounds.get(number, 0)) for number, op in enumerate(ops))
        return Operations(bounded, tensors, tuple(programs), tuple(self.loops))

    def tensor(self, key: _Key) -> _Uses:
        return self.uses.setdefault(key, _Uses(len(self.uses)))

    def program_loops(self, number: int, program: ProgramReading) -> dict[int, int]:
        """Add the loops of a program; return their positions by their numbers in it."""
        found: dict[int, int] = {}
        for item, around in _nested(program.body):
            inside = [*_operations(item.body)]
            if not inside:
                continue
            found[item.loop.number] = len(self.loops)
            known = self.planned_loop(inside[0], len(around))
            self.loops.append(
                ReportLoop(
                    name=item.name,
                    program=number,
                    count=len(item.loop.values),
                    first=inside[0].number,
                    past=inside[-1].number + 1,
                    parent=found[around[-1]] if around else None,
                    dim=None if known is None else known.dim,
                    tile=0 if known is None else known.tile,
                    parameter=item.loop.parameter,
                    read=0 if known is None else known.hbm_read_bytes,
                    written=0 if known is None else known.hbm_write_bytes,
                    us=None if known is None else known.simulated_us,
                )
            )
        return found

    def planned_loop(self, inside: OperationReading, depth: int) -> PlannedLoop | None:
        """Return what the plan says of a loop: ``depth`` loops are around it, and it repeats an operation."""
        figures = inside.figures
        if figures is None or len(figures.loops) != len(inside.call.loops):
            return None
        return self.planned_loops.get(figures.loops[depth])

    def operation(self, program: int, item: OperationReading, loops: Mapping[int, int]) -> Op:
        dsc, figures = item.superdsc, item.figures
        inputs = tuple(self.operand(program, item, operand) for operand in item.operands if not operand.is_written)
        outputs = tuple(self.operand(program, item, operand) for operand in item.operands if operand.is_written)
        handle = dsc.debug_handle
        executions = math.prod(len(loop.values) for loop in item.call.loops)
        return Op(
            op=dsc.op_func_name,
            name=item.results[0] if item.results else f"{dsc.op_func_name} {item.number}",
            file=_path(self.programs[program].directory, item.call.file),
            program=program,
            loops=tuple(loops[loop.number] for loop in item.call.loops if loop.number in loops),
            cores=ranges_of(sorted(item.call.core_ids)),
            executions=executions,
            part=item.call.subject or None,
            source=None if handle is None or handle.source is None else handle.source.shown,
            origin=None if handle is None else handle.aten_op,
            unit=dsc.compute.execution_unit or None,
            dims=tuple(
                OpDim(dim, extent, dsc.work_slices[dim], dsc.core_extent[dim]) for dim, extent in dsc.iteration.items()
            ),
            inputs=inputs,
            outputs=outputs,
            us=None if figures is None else figures.simulated_us,
            uncertainty=None if figures is None else figures.simulated_us_uncertainty,
            read=0 if figures is None else figures.hbm_read_bytes,
            written=0 if figures is None else figures.hbm_write_bytes,
            core_read=0 if figures is None else figures.hbm_core_read_bytes,
            flops=0 if figures is None else figures.flops,
            ring=0 if figures is None else figures.ring_bytes,
        )

    def operand(self, program: int, item: OperationReading, operand: OperandReading) -> OpOperand:
        uses = self.tensor(_key(program, operand))
        if uses.example is None or operand.is_written:
            uses.example = operand
        writer = uses.writers[-1] if uses.writers else None
        users = uses.writers if operand.is_written else uses.readers
        if item.number not in users[-1:]:
            users.append(item.number)
        first = operand.places[0] if operand.places else None
        rows = item.superdsc.operands.index(operand.operand) in item.superdsc.compute.indirect_access_indices
        return OpOperand(
            tensor=uses.number,
            memory=operand.memory,
            place=None if first is None or first.parameter is not None else first.offset,
            core_bytes=_core_bytes(item, operand),
            writer=None if operand.is_written else writer,
            rows=rows,
            gathers=operand.operand.indirection is Indirection.VALUE,
        )

    def tensor_of(self, key: _Key, uses: _Uses) -> Tensor:
        known = self.arguments.get(key.name) if key.memory == "argument" else None
        planned = self.planned.get(key.name)
        if known is not None:
            return replace(_argument(known, planned), writers=_once(uses.writers), readers=_once(uses.readers))
        operand = uses.example
        return Tensor(
            name=key.name,
            role="intermediate" if key.memory != "argument" else "argument",
            memory=key.memory,
            program=key.program,
            size=planned.size_bytes if planned is not None else 0 if operand is None else operand.geometry.buffer_bytes,
            read=0 if planned is None else planned.hbm_read_bytes,
            written=0 if planned is None else planned.hbm_write_bytes,
            layout=None if operand is None else _walked(operand),
            writers=_once(uses.writers),
            readers=_once(uses.readers),
        )


def _key(program: int, operand: OperandReading) -> _Key:
    if operand.memory == "argument":
        return _Key("argument", None, operand.name)
    if operand.memory == "segment":
        return _Key("segment", None, operand.name)
    base = operand.places[0].base if operand.places and operand.producer is None and not operand.is_written else None
    return _Key(operand.memory, program, operand.name, base)


def _once(numbers: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(numbers))


def _path(directory: str, file: str) -> str:
    return file if directory == "." else f"{directory}/{file}"


def _operations(body: Body) -> Iterator[OperationReading]:
    for item in body:
        if isinstance(item, LoopReading):
            yield from _operations(item.body)
        else:
            yield item


def _nested(body: Body, around: tuple[int, ...] = ()) -> Iterator[tuple[LoopReading, tuple[int, ...]]]:
    """Yield the loops of a body, outer ones first, each with the numbers of the loops around it."""
    for item in body:
        if isinstance(item, LoopReading):
            yield item, around
            yield from _nested(item.body, (*around, item.loop.number))


def _core_bytes(item: OperationReading, operand: OperandReading) -> int:
    """Return what one core has of an operand, in bytes: of a scratchpad its buffer, else the elements of its part."""
    if operand.memory == "lx":
        return operand.geometry.buffer_bytes
    held, extents = operand.operand, item.superdsc.core_extent
    parts = [extents[dim] for dim in held.layout_dim_order if dim in extents and held.scales.get(dim, 1) == 1]
    return held.word_length * math.prod(parts)


def _argument(item: Argument, planned: PlannedTensor | None) -> Tensor:
    size_bytes = STICK_BYTES * math.prod(item.device_size[:-1])
    return Tensor(
        name=item.name,
        role=item.role.value,
        memory="argument",
        shape=item.shape,
        dtype=None if item.dtype is None else item.dtype.value,
        size=size_bytes,
        read=0 if planned is None else planned.hbm_read_bytes,
        written=0 if planned is None else planned.hbm_write_bytes,
        layout=TensorLayout(item.device_size, item.device_dtype.name, item.stride_map, _own_strides(item)),
        address=item.address,
        segment=None if item.address is None else item.address // SEGMENT_BYTES,
    )


def _own_strides(item: Argument) -> tuple[int, ...] | None:
    """Return the host strides of an argument that is not row-major."""
    if item.shape is None or item.host_strides is None:
        return None
    row_major = tuple(math.prod(item.shape[place + 1 :]) for place in range(len(item.shape)))
    return None if item.host_strides == row_major else item.host_strides


def _walked(operand: OperandReading) -> TensorLayout | None:
    """Return what a SuperDSC says of a buffer: its device dims, without what they are of the host's tensor."""
    geometry = operand.geometry
    dims = [dim for dim in reversed(operand.operand.layout_dim_order) if dim in geometry.extents]
    if not dims:
        return None
    sizes = (*(geometry.extents[dim] for dim in dims), geometry.stick_size)
    return TensorLayout(sizes, operand.operand.data_format.name)


def _bounds(tensors: Sequence[Tensor]) -> dict[int, int]:
    """Return by operation its share of the bytes that no plan undercuts."""
    found: dict[int, int] = {}
    for item in tensors:
        if item.role in _READ_ONCE and item.readers:
            found[item.readers[0]] = found.get(item.readers[0], 0) + item.size
        if item.role in _WRITTEN_ONCE and item.writers:
            found[item.writers[-1]] = found.get(item.writers[-1], 0) + item.size
    return found
