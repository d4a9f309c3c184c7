"""The text form of a kernel graph, for people and for golden files."""

from __future__ import annotations

from collections.abc import Sequence

from spyrec.ir.access import Access
from spyrec.ir.kernel import Kernel, KernelBuffer, KernelGraph, Use


def print_kernels(graph: KernelGraph) -> str:
    """Return one line per buffer and kernel, then the programs."""
    lines = [f"kernels of {graph.name}"]
    lines += [_buffer(buffer) for buffer in graph.buffers.values()]
    open_loops: tuple[int, ...] = ()
    for kernel in graph.kernels:
        for depth, loop in enumerate(kernel.loops):
            if open_loops[: depth + 1] != kernel.loops[: depth + 1]:
                lines.append(f"  {'  ' * depth}loop l{loop}: {graph.loops[loop]}")
        open_loops = kernel.loops
        lines.append("  " * len(kernel.loops) + _kernel(kernel))
    for program in graph.programs:
        span = f"{program.first_kernel}..{program.end_kernel - 1}"
        lines.append(f"program of kernels {span}({', '.join(program.arguments)}) pool {program.pool_bytes} bytes")
        lines += [f"  {name} in LX at {offset}" for name, offset in program.lx_offsets.items()]
    lines.append("outputs " + ", ".join(f"{name} = {buffer}" for name, buffer in graph.outputs))
    return "\n".join(lines) + "\n"


def _buffer(buffer: KernelBuffer) -> str:
    layout = "" if buffer.layout is None else f" {list(buffer.layout.device.device_size)}"
    return f"  {buffer.role.value} {buffer.name}: {buffer.type}{layout}"


def _kernel(kernel: Kernel) -> str:
    indices = [f"i{dim}" for dim in range(len(kernel.extents))]
    loops = ", ".join(f"{name}<{extent}" for name, extent in zip(indices, kernel.extents, strict=True))
    operands = ", ".join(_use(use, indices, kernel.loops) for use in kernel.inputs)
    divided = "" if kernel.division is None else f" on {_slices(kernel.division)} cores"
    if kernel.owners:
        divided = f" from {_slices(kernel.owners[0].division)}{divided}"
    why = "" if kernel.reason is None else f"  because {kernel.reason}"
    return f"  for [{loops}] {_use(kernel.output, indices, kernel.loops)} = {kernel.op_func}({operands}){divided}{why}"


def _slices(division: Sequence[int]) -> str:
    return "x".join(map(str, division)) or "1"


def use_text(use: Use) -> str:
    """Return which element of a buffer an access touches: ``a[i1, i0 + 3]``."""
    return _use(use, [f"i{dim}" for dim in range(len(use.access.extents))])


def _use(use: Use, indices: Sequence[str], loops: Sequence[int] = ()) -> str:
    places = _coordinates(use.access, indices)
    for loop, steps in zip(loops, use.steps, strict=False):
        places = [f"{step}*l{loop} + {place}" if step else place for step, place in zip(steps, places, strict=True)]
    return f"{use.buffer}[{', '.join(places)}]"


def _coordinates(access: Access, indices: Sequence[str]) -> list[str]:
    texts: list[str] = []
    for coordinate in access.coordinates:
        parts: list[str] = []
        for term in coordinate.terms:
            text = indices[term.dim]
            if term.divisor > 1:
                text = f"{text}//{term.divisor}"
            if term.divisor * term.modulus < access.extents[term.dim]:
                text = f"{text}%{term.modulus}"
            if term.coefficient > 1:
                text = f"{term.coefficient}*{text}" if text == indices[term.dim] else f"{term.coefficient}*({text})"
            parts.append(text)
        if coordinate.offset or not parts:
            parts.append(str(coordinate.offset))
        texts.append(" + ".join(parts))
    return texts
