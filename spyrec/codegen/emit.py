"""Scheduled kernels to a bundle: the contents page of code generation."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator
from dataclasses import replace

import numpy as np

from spyrec.bundle.bundle import Bundle, DeviceProgram
from spyrec.bundle.manifest import Argument, Manifest, PlanStep, Role, TripCount
from spyrec.bundle.program import VALUE_SUFFIX
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.graph_source import ConstantArrays, constants_of_source, graph_text
from spyrec.codegen.lower_node import argument_address, lower_node
from spyrec.codegen.opspec import LoopSpec, OpSpec, OpSpecFile
from spyrec.hardware.dtypes import DType
from spyrec.hardware.plan_record import PlanFigures
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import BufferRole, KernelBuffer, KernelGraph, KernelProgram, Loop
from spyrec.ir.likeness import program_likeness
from spyrec.ir.types import TensorType
from spyrec.layout.conversion_table import DataConversionInfo
from spyrec.layout.device_layout import DeviceLayout
from spyrec.layout.rules import MAX_RANK
from spyrec.layout.tiling import row_major_strides

_ROLES = {
    BufferRole.INPUT: Role.INPUT,
    BufferRole.OUTPUT: Role.OUTPUT,
    BufferRole.CONSTANT: Role.CONSTANT,
    BufferRole.INTERMEDIATE: Role.INTERMEDIATE,
}


def emit_bundle(scheduled: KernelGraph, options: CodegenOptions, figures: PlanFigures | None = None) -> Bundle:
    """Return the bundle of scheduled kernels: programs, manifest, conversion tables, constants, the graph itself.

    ``figures``: what the compiler predicts of the plan.  What a launch may do with the programs is not said:
    ``spyrec.contracts`` adds it.  Errors: SPY05xx from code generation.
    """
    programs = tuple(_programs(scheduled, options))
    tables = {f"dci/{argument}.{way}.json": table for argument, way, table in _tables(scheduled)}
    text = graph_text(scheduled)
    manifest = Manifest(
        name=scheduled.name,
        target=options.device,
        arguments=tuple(_arguments(scheduled)),
        inputs=scheduled.inputs,
        outputs=scheduled.outputs,
        plan=tuple(
            PlanStep(
                _directory(scheduled, number),
                program.arguments,
                program.pool_bytes,
                _trip_counts(scheduled, program),
            )
            for number, program in enumerate(scheduled.programs)
        ),
        pool_bytes=max((program.pool_bytes for program in scheduled.programs), default=0),
        graph_sha256=None if text is None else hashlib.sha256(text).hexdigest(),
        symbolic_dims={} if scheduled.source is None else scheduled.source.symbolic_dims,
        figures=figures,
        planned_with=options.planned_with,
        dialect=options.dialect.name,
        updates={} if scheduled.source is None else scheduled.source.updates,
    )
    constants, slots = ConstantArrays(scheduled), options.correction_slots
    return Bundle(manifest, programs, constants, tables, text, correction_slots=slots)


def _directory(scheduled: KernelGraph, number: int) -> str:
    return "." if len(scheduled.programs) == 1 else f"kernels/{number}"


def _programs(scheduled: KernelGraph, options: CodegenOptions) -> Iterator[DeviceProgram]:
    """Yield the code of each program; what differs in the names of its tensors only is generated once."""
    known: dict[Hashable, DeviceProgram] = {}
    for number, program in enumerate(scheduled.programs):
        key, directory = _what_code_says(scheduled, program), _directory(scheduled, number)
        if key not in known:
            is_only = len(scheduled.programs) == 1  # such a one may state where its arguments lie
            code = None if options.known is None else options.known.digest_of((key, is_only))
            found = None if options.known is None or code is None else options.known.find(code)
            known[key] = found or _generated(scheduled, program, options, code)
        yield replace(known[key], directory=directory)


def _generated(
    scheduled: KernelGraph, program: KernelProgram, options: CodegenOptions, code: str | None
) -> DeviceProgram:
    specs = _specs(scheduled, program, range(program.first_kernel, program.end_kernel), 0)
    emitted = emit_opspecs(OpSpecFile(symbolic_args=True, unroll_loops=False, specs=specs), options)
    return DeviceProgram(".", emitted.program, emitted.superdscs, code)


def _what_code_says(scheduled: KernelGraph, program: KernelProgram) -> Hashable:
    """Return all that :func:`lower_node` reads of a program: two of which it is the same have the same code."""
    alike = program_likeness(scheduled, program)
    indices = {name: index for index, name in enumerate(program.arguments)}
    places = [
        (program.lx_offsets.get(name), indices.get(name), program.pool_offsets.get(name)) for name in alike.buffers
    ]
    kernels = scheduled.kernels[program.first_kernel : program.end_kernel]
    # as text: -0.0 equals 0.0, and is another constant
    constants = [tuple((name, float(value).hex()) for name, value in kernel.constants.items()) for kernel in kernels]
    windows = tuple([kernel.window for kernel in kernels])
    return (alike.key, bool(program.pool_bytes), tuple(places), tuple(constants), windows)


def _specs(scheduled: KernelGraph, program: KernelProgram, kernels: range, depth: int) -> tuple[OpSpec | LoopSpec, ...]:
    """Return the OpSpecs of neighbouring kernels that share ``depth`` loops; runs inside one more loop are nested."""
    specs: list[OpSpec | LoopSpec] = []
    first = kernels.start
    while first < kernels.stop:
        loops = scheduled.kernels[first].loops[: depth + 1]
        end = first + 1
        if len(loops) <= depth:
            specs.append(lower_node(scheduled, program, scheduled.kernels[first]))
        else:
            while end < kernels.stop and scheduled.kernels[end].loops[: depth + 1] == loops:
                end += 1
            body = _specs(scheduled, program, range(first, end), depth + 1)
            loop = scheduled.loops[loops[depth]]
            parameter = value_parameter(loop) if loop.is_symbolic else None
            specs.append(LoopSpec(loop.count, (), body, parameter))
        first = end
    return tuple(specs)


def value_parameter(loop: Loop) -> str:
    """Return the name of the parameter that gives the trips of a loop over a symbolic dim."""
    return f"{loop.dim}_by_{loop.tile}{VALUE_SUFFIX}"


def _trip_counts(scheduled: KernelGraph, program: KernelProgram) -> dict[str, TripCount]:
    """Return what the value parameters of a program hold, in order of first use."""
    used = dict.fromkeys(
        loop for kernel in scheduled.kernels[program.first_kernel : program.end_kernel] for loop in kernel.loops
    )
    loops = [scheduled.loops[loop] for loop in used if scheduled.loops[loop].is_symbolic]
    return {value_parameter(loop): TripCount(loop.dim, loop.tile, loop.count * loop.tile) for loop in loops}


def _symbolic_axes(scheduled: KernelGraph, name: str) -> tuple[str | None, ...]:
    """Return the symbolic dims of an argument that is a value of the graph; empty where it has none."""
    symbolic = {} if scheduled.source is None else scheduled.source.symbolic_dims
    if scheduled.source is None or not symbolic:
        return ()
    value = next((result for result, buffer in scheduled.outputs if buffer == name), name)
    return symbolic_axes(scheduled.source, value)


def symbolic_axes(graph: Graph, name: str) -> tuple[str | None, ...]:
    """Return the symbolic dims of a value by axis; empty where it has none, or is none of the graph's."""
    symbolic = graph.symbolic_dims
    dims = graph.values[name].dims if symbolic and name in graph.values else ()
    axes = tuple(dim if dim in symbolic else None for dim in dims)
    return axes if any(axes) else ()


def _on_device(scheduled: KernelGraph) -> Iterator[KernelBuffer]:
    """Yield the buffers that are arguments: inputs first, then in order of first use."""
    names = dict.fromkeys(scheduled.inputs)
    for program in scheduled.programs:
        names.update(dict.fromkeys(program.arguments))
    return (scheduled.buffers[name] for name in names)


def host_layout(buffer: KernelBuffer) -> DeviceLayout:
    """Return a buffer's layout together with the host tensor it holds."""
    device = buffer.placed.device
    shape = buffer.host_type.shape
    return DeviceLayout(
        device.device_size, device.stride_map, device.device_dtype, shape, row_major_strides(shape), host_dtype(buffer)
    )


def host_dtype(buffer: KernelBuffer) -> DType:
    """Return the dtype of a buffer's host side: that of its value, but float32 for numbers that a pass made."""
    data = None if buffer.constant is None else buffer.constant.data.array
    if data is not None and data.dtype.kind == "f" and data.dtype != np.float16:
        return DType.FLOAT32
    return buffer.type.dtype


def _tables(scheduled: KernelGraph) -> Iterator[tuple[str, str, DataConversionInfo]]:
    for buffer in _on_device(scheduled):
        if buffer.role is BufferRole.INTERMEDIATE:
            continue
        layout = host_layout(buffer)
        yield buffer.name, "h2d", layout.dci("h2d")
        yield buffer.name, "d2h", layout.dci("d2h")


def _arguments(scheduled: KernelGraph) -> Iterator[Argument]:
    places = _first_places(scheduled)
    for buffer in _on_device(scheduled):
        place = places.get(buffer.name)
        crosses_border = buffer.role is not BufferRole.INTERMEDIATE
        yield Argument(
            name=buffer.name,
            role=_ROLES[buffer.role],
            arg_index=None if place is None else place[1],
            address=None if place is None else argument_address(*place),
            shape=buffer.host_type.shape,
            dtype=host_dtype(buffer),
            host_strides=row_major_strides(buffer.host_type.shape),
            device_size=buffer.placed.device.device_size,
            stride_map=buffer.placed.device.stride_map,
            device_dtype=buffer.device_format,
            dci={way: f"dci/{buffer.name}.{way}.json" for way in ("h2d", "d2h")} if crosses_border else None,
            symbolic_axes=_symbolic_axes(scheduled, buffer.name) if crosses_border else (),
        )
    for name, value in constants_of_source(scheduled):
        yield for_the_record(name, value.type)


def for_the_record(name: str, tensor: TensorType, symbolic_axes: tuple[str | None, ...] = ()) -> Argument:
    """Return the entry of a constant that only the graph's text names: it is in the bundle, and never on the device."""
    layout = _recorded_layout(tensor)
    return Argument(
        name=name,
        role=Role.CONSTANT,
        arg_index=None,
        address=None,
        shape=tensor.shape,
        dtype=tensor.dtype,
        host_strides=row_major_strides(tensor.shape),
        device_size=layout.device_size,
        stride_map=layout.stride_map,
        device_dtype=tensor.dtype.device_format,
        symbolic_axes=symbolic_axes,
    )


def _recorded_layout(tensor: TensorType) -> DeviceLayout:
    """Return the layout that is written of a tensor which never comes to the device: the default one, if it has one."""
    shape = tensor.shape if tensor.rank <= MAX_RANK else (tensor.element_count,)
    return DeviceLayout.default(shape, tensor.dtype)


def _first_places(scheduled: KernelGraph) -> dict[str, tuple[KernelProgram, int]]:
    """Return the first program that each argument is one of, and its index there."""
    found: dict[str, tuple[KernelProgram, int]] = {}
    for program in scheduled.programs:
        for index, name in enumerate(program.arguments):
            found.setdefault(name, (program, index))
    return found
