"""A kernel graph as text: one line per buffer and kernel, kernels inside of their loops, then the programs.

``read_kernels.py`` reads it back.  What follows from the rest is not written: device forms from layouts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from spyrec.hardware.plan_record import PlanNote
from spyrec.ir.access import Access, Coordinate
from spyrec.ir.device_layout import BufferLayout, Digit, device_layout_of
from spyrec.ir.kernel import BufferRole, Kernel, KernelBuffer, KernelGraph, KernelProgram, Loop, Owners, Use
from spyrec.ir.kernel_form import Rule
from spyrec.ir.sliding import Slide, Window
from spyrec.ir.text.numbers import data_text
from spyrec.ir.text.print_graph import has_text, made_of, pin_text, places_of, source_lines, type_text
from spyrec.ir.text.tokens import name_text, number_text


def kernel_lines(graph: KernelGraph, has: tuple[str, ...] = (), base: Path | None = None) -> Iterator[str]:
    """Yield the lines of a kernel graph; last the graph that it was made of.  Arguments as of ``graph_lines``."""
    assert list(graph.inputs) == [name for name, item in graph.buffers.items() if item.role is BufferRole.INPUT]
    yield f"kernels {name_text(graph.name)}{has_text(has)} {{"
    places = places_of(graph.source)
    for buffer in graph.buffers.values():
        yield f"  {_buffer(buffer, base)}{made_of(buffer.origin, places)}"
    yield from _kernels(graph)
    for program in graph.programs:
        yield from _program(program)
    yield "  outputs " + ", ".join(f"{name_text(name)} = {name_text(buffer)}" for name, buffer in graph.outputs)
    for name, use in graph.places.items():
        indices = _indices(use.access.extents)
        ranges = ", ".join(f"{index}<{extent}" for index, extent in zip(indices, use.access.extents, strict=True))
        yield f"  place {name_text(name)} = [{ranges}] {_use(use, indices)}"
    if graph.layout_cost is not None:
        yield f"  cost {graph.layout_cost.cost_bytes} at least {graph.layout_cost.lower_bound_bytes}"
    if graph.expects_in_lx:
        yield f"  expects {', '.join(map(name_text, sorted(graph.expects_in_lx)))}"
    for note in graph.notes:
        yield f"  {_note(note)}"
    if graph.planner is not None:
        yield f"  planner {json.dumps(graph.planner.name)} {json.dumps(graph.planner.version)}"
    if graph.source is not None:
        yield from source_lines(graph.source, base)
    yield "}"


def _kernels(graph: KernelGraph) -> Iterator[str]:
    places = places_of(graph.source)
    open_loops: tuple[int, ...] = ()
    written: set[int] = set()
    for kernel in graph.kernels:
        common = next(
            (depth for depth, pair in enumerate(zip(open_loops, kernel.loops)) if pair[0] != pair[1]),
            min(len(open_loops), len(kernel.loops)),
        )
        for depth in range(len(open_loops), common, -1):
            yield "  " * depth + "}"
        for depth in range(common, len(kernel.loops)):
            number = kernel.loops[depth]
            yield "  " * (depth + 1) + _loop(number, graph.loops[number]) + " {"
            written.add(number)
        open_loops = kernel.loops
        yield "  " * (len(kernel.loops) + 1) + _kernel(kernel) + made_of(kernel.origin, places)
    for depth in range(len(open_loops), 0, -1):
        yield "  " * depth + "}"
    for number, loop in graph.loops.items():
        if number not in written:
            yield f"  {_loop(number, loop)} {{ }}"


def _loop(number: int, loop: Loop) -> str:
    most = "at most " if loop.is_symbolic else ""
    return f"loop l{number}: {most}{loop.count} tiles of {loop.tile} along {name_text(loop.dim)}"


def _buffer(buffer: KernelBuffer, base: Path | None) -> str:
    text = f"{buffer.role.value} {name_text(buffer.name)}: {type_text(buffer.type, (None,) * buffer.type.rank)}"
    if buffer.layout is not None:
        text += f" layout {_layout(buffer.layout, buffer)}"
    if buffer.pin is not None:
        text += f" pin {pin_text(buffer.pin)}"
    if buffer.host_shape is not None:
        text += f" host {list(buffer.host_shape)}"
    if buffer.home:
        text += f" home {list(buffer.home)}"
    if buffer.constant is not None:
        shape = buffer.constant.shape
        own = "" if shape == buffer.type.shape else f" of {list(shape)}"
        text += f"{own} = {data_text(buffer.constant.data, shape, buffer.type.dtype, base)}"
    return text


def _layout(layout: BufferLayout, buffer: KernelBuffer) -> str:
    device = layout.device
    text = f"{list(device.device_size)} of [{', '.join(map(_digit, layout.digits))}]"
    if device != device_layout_of(layout.digits, buffer.type.shape, buffer.device_format):
        text += f" strides {list(device.stride_map)} {device.device_dtype.name}"
    return text


def _digit(digit: Digit) -> str:
    owner = "-" if digit.host_dim is None else f"h{digit.host_dim}"
    return owner if digit.divisor == 1 else f"{owner}/{digit.divisor}"


def _indices(extents: Sequence[int]) -> list[str]:
    return [f"i{dim}" for dim in range(len(extents))]


def _kernel(kernel: Kernel) -> str:
    indices = _indices(kernel.extents)
    operands = ", ".join(_use(use, indices, kernel.loops) for use in kernel.inputs)
    output = _use(kernel.output, indices, kernel.loops)
    divided = "" if kernel.division is None else f" on {_slices(kernel.division)} cores"
    why = "" if kernel.reason is None else f" because {json.dumps(kernel.reason)}"
    text = f"for [{_ranges(kernel, indices)}] {output} = {name_text(kernel.op_func)}({operands}){divided}"
    return f"{text}{_details(kernel)}{why}"


def _ranges(kernel: Kernel, indices: Sequence[str]) -> str:
    """Return the iteration dims, with the names of those that have one."""
    names = kernel.dims or (None,) * len(indices)
    shown = ["" if name is None else f" of {name_text(name)}" for name in names]
    return ", ".join(f"{index}<{size}{name}" for index, size, name in zip(indices, kernel.extents, shown, strict=True))


def _details(kernel: Kernel) -> str:
    """Return what most kernels do not have, or have as it follows from the rest."""
    parts: list[str] = []
    if kernel.name != kernel.output.buffer:
        parts.append(f"named {name_text(kernel.name)}")
    if kernel.op != kernel.op_func:
        parts.append(f"op {name_text(kernel.op)}")
    if kernel.extents and not kernel.dims:
        parts.append("unnamed")
    if kernel.rule is not Rule.SAME_STICK:
        parts.append(f"rule {kernel.rule.name.lower()}")
    if kernel.reduced:
        parts.append(f"reduced {list(kernel.reduced)}")
    if kernel.constants:
        numbers = ", ".join(f"{name_text(name)}: {number_text(value)}" for name, value in kernel.constants.items())
        parts.append(f"with {{{numbers}}}")
    if kernel.is_elidable:
        parts.append("elidable")
    if kernel.tiled:
        parts.append(f"tiled {[list(dims) for dims in kernel.tiled]}")
    if kernel.pinned:
        parts.append(f"pinned {list(kernel.pinned)}")
    if kernel.owners:
        parts.append("owners " + " ".join(map(_owners, kernel.owners)))
    if kernel.window is not None:
        parts.append(_window(kernel.window))
    return "".join(f" {part}" for part in parts)


def _owners(owners: Owners) -> str:
    return f"{_slices(owners.division)} {list(owners.order)}"


def _slices(division: Sequence[int]) -> str:
    return "x".join(map(str, division)) or "1"


def _window(window: Window) -> str:
    numbers = [window.channels, window.source_channels, window.samples]
    return f"window {window.form.value} {numbers} {' '.join(map(_slide, window.slides))}"


def _slide(slide: Slide) -> str:
    return "[" + ", ".join(json.dumps(getattr(slide, field.name)) for field in fields(Slide)) + "]"


def use_text(use: Use) -> str:
    """Return which element of a buffer an access touches: ``a[i1, i0 + 3]``."""
    return _use(use, _indices(use.access.extents))


def _use(use: Use, indices: Sequence[str], loops: Sequence[int] = ()) -> str:
    places = _coordinates(use.access, indices)
    for loop, steps in zip(loops, use.steps, strict=False):
        places = [f"{step}*l{loop} + {place}" if step else place for step, place in zip(steps, places, strict=True)]
    return f"{name_text(use.buffer)}[{', '.join(places)}]"


def _coordinates(access: Access, indices: Sequence[str]) -> list[str]:
    return [_coordinate(access, coordinate, indices) for coordinate in access.coordinates]


def _coordinate(access: Access, coordinate: Coordinate, indices: Sequence[str]) -> str:
    parts: list[str] = []
    for term in coordinate.terms:
        text = indices[term.dim]
        if term.divisor > 1:
            text = f"{text}//{term.divisor}"
        if term.modulus != -(-access.extents[term.dim] // term.divisor):
            text = f"{text}%{term.modulus}"
        if term.coefficient != 1:
            text = f"{term.coefficient}*{text}" if text == indices[term.dim] else f"{term.coefficient}*({text})"
        parts.append(text)
    if coordinate.offset or not parts:
        parts.append(str(coordinate.offset))
    return " + ".join(parts)


def _program(program: KernelProgram) -> Iterator[str]:
    arguments = ", ".join(map(name_text, program.arguments))
    span = f"{program.first_kernel}..{program.end_kernel - 1}"
    yield f"  program of kernels {span}({arguments}) pool {program.pool_bytes} bytes {{"
    for place, offsets in (("LX", program.lx_offsets), ("pool", program.pool_offsets)):
        yield from (f"    {name_text(name)} in {place} at {offset}" for name, offset in offsets.items())
    yield "  }"


def _note(note: PlanNote) -> str:
    text = f"note {json.dumps(note.subject)} {note.decision.name.lower()} {json.dumps(note.reason)}"
    if note.alternative is not None:
        text += f" against {json.dumps(note.alternative)}"
    return f"{text} saved {note.saved_bytes} {number_text(float(note.saved_us))}"
