"""The rules every kernel graph keeps, whatever pass made it, and after ``tile-loops`` those of loops around kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from spyrec.ir.access import Access, Coordinate
from spyrec.ir.device_access import Inexpressible
from spyrec.ir.kernel import BufferRole, Kernel, KernelGraph, Use
from spyrec.passes.verify_scratchpads import verify_scratchpads


def verify_kernels(graph: KernelGraph, before: KernelGraph | None = None) -> list[str]:
    """Return what is wrong: names, order of writes and reads, extents, loops; with layouts, kernels' device forms; with
    places in the scratchpads, who cuts them how.

    ``before``: a graph that keeps all rules.  Where a pass left its buffers, its loops and how kernels stand in these
    as they were, that is not looked at again.
    """
    if before is not None and _has_kernels_of(graph, before):
        return [*_split(graph), *verify_scratchpads(graph, before)]
    problems: list[str] = []
    written = {name for name, buffer in graph.buffers.items() if buffer.role in (BufferRole.INPUT, BufferRole.CONSTANT)}
    has_layouts = all(buffer.layout is not None for buffer in graph.buffers.values())
    for kernel in graph.kernels:
        for use in kernel.uses:
            if use.buffer not in graph.buffers:
                problems.append(f'{kernel.name} names "{use.buffer}", which is no buffer')
            elif use.access.extents != kernel.extents:
                problems.append(f"{kernel.name} iterates {kernel.extents}, its access {use.access.extents}")
        problems.extend(
            f'{kernel.name} reads "{use.buffer}" before a kernel has written it'
            for use in kernel.inputs
            if use.buffer not in written
        )
        written.add(kernel.output.buffer)
        if has_layouts and not problems:
            problems.extend(_form_problems(graph, kernel))
    if not problems:
        problems.extend(_verify_loops(graph, are_known=before is not None and _stands_as(graph, before)))
        problems.extend(verify_scratchpads(graph))
    problems.extend(f'output "{name}" is never written' for name, buffer in graph.outputs if buffer not in written)
    return problems


def _has_kernels_of(graph: KernelGraph, before: KernelGraph) -> bool:
    """Whether programs are all that a pass changed, if anything."""
    return (
        graph.kernels is before.kernels
        and graph.buffers is before.buffers
        and graph.loops is before.loops
        and graph.outputs is before.outputs
    )


def _form_problems(graph: KernelGraph, kernel: Kernel) -> list[str]:
    form = kernel.form
    if kernel.division is None:  # layouts are settled before work is divided, and stay
        found = graph.form_of(kernel)
        if isinstance(found, Inexpressible):
            return [f"{kernel.name}: {found.reason}"]
        if found != form:
            return [f"{kernel.name} carries a form that is not that of its layouts"]
    assert form is not None
    if kernel.division is not None and len(kernel.division) != len(form.variables):
        return [f"{kernel.name} is divided along {len(kernel.division)} variables, its form has {len(form.variables)}"]
    return []


def _stands_as(graph: KernelGraph, before: KernelGraph) -> bool:
    """Whether all kernels stand in the same loops as before and touch the same buffers alike."""
    if graph.buffers is not before.buffers or graph.loops is not before.loops:
        return False
    if len(graph.kernels) != len(before.kernels):
        return False
    pairs = zip(graph.kernels, before.kernels, strict=True)
    return all(kernel is other or _stands_alike(kernel, other) for kernel, other in pairs)


def _stands_alike(kernel: Kernel, other: Kernel) -> bool:
    return (
        kernel.inputs is other.inputs
        and kernel.output is other.output
        and kernel.loops is other.loops
        and kernel.tiled is other.tiled
        and kernel.dims is other.dims
    )


def _verify_loops(graph: KernelGraph, *, are_known: bool) -> list[str]:
    """Return what is wrong, each line led by its code (SPY0430 to SPY0437); ``graph`` names its buffers.

    ``are_known``: kernels stand as in a graph where nothing was wrong; programs may be others.
    """
    problems = [*_unknown_loops(graph)]
    if problems:
        return problems
    problems += [*_scattered(graph), *_split(graph)]
    for kernel in () if are_known else graph.kernels:
        if _stands_alone(graph, kernel):
            continue
        misfits = [*_misaligned(graph, kernel)]
        problems += misfits
        if not misfits:
            problems += [
                line
                for use in kernel.uses
                for line in (
                    *_home(graph, kernel, use),
                    *_bounds(graph, kernel, use),
                    *_standing(graph, kernel, use),
                )
            ]
    return problems


def _stands_alone(graph: KernelGraph, kernel: Kernel) -> bool:
    """Whether a kernel has nothing to do with loops and stays inside of its buffers: nearly all, and soon seen."""
    if kernel.loops or kernel.tiled:
        return False
    for use in kernel.uses:
        buffer = graph.buffers[use.buffer]
        is_inside = _is_inside(use.access, buffer.type.shape) or _is_padded(kernel, use)
        if use.steps or buffer.home or not is_inside:
            return False
    return True


def _is_padded(kernel: Kernel, use: Use) -> bool:
    """Whether a window slides over an operand: what it takes before and behind a dim is padding."""
    return kernel.window is not None and use is kernel.inputs[0]


def _unknown_loops(graph: KernelGraph) -> Iterator[str]:
    """A number stands for one loop: one trip count and dim, one place among the loops around it."""
    outer: dict[int, tuple[int, ...]] = {}
    for kernel in graph.kernels:
        for depth, loop in enumerate(kernel.loops):
            if loop not in graph.loops:
                yield f"SPY0431 {kernel.name} stands in loop {loop}, which has no trip count"
            elif outer.setdefault(loop, kernel.loops[:depth]) != kernel.loops[:depth]:
                yield f"SPY0431 {kernel.name} has loop {loop} inside {kernel.loops[:depth]}, others in {outer[loop]}"
    for number, loop in graph.loops.items():
        if loop.count < 1 or loop.tile < 1:
            yield f"SPY0431 loop {number} runs over {loop}"


def _scattered(graph: KernelGraph) -> Iterator[str]:
    """The kernels of a loop are neighbours."""
    ended: set[int] = set()
    before: tuple[int, ...] = ()
    for kernel in graph.kernels:
        ended.update(set(before) - set(kernel.loops))
        for loop in ended.intersection(kernel.loops):
            yield f"SPY0430 {kernel.name} stands in loop {loop}, which has ended before it"
        before = kernel.loops


def _split(graph: KernelGraph) -> Iterator[str]:
    """A loop is in one program."""
    for first, second in zip(graph.programs, graph.programs[1:], strict=False):
        inside = set(graph.kernels[first.end_kernel - 1].loops)
        for loop in sorted(inside.intersection(graph.kernels[second.first_kernel].loops)):
            yield f"SPY0430 loop {loop} goes on in a second program, from {graph.kernels[second.first_kernel].name} on"


def _misaligned(graph: KernelGraph, kernel: Kernel) -> Iterator[str]:
    """Tiled dims and steps have an entry per loop around the kernel, and there are none outside of loops."""
    depth = len(kernel.loops)
    if len(kernel.tiled) != depth:
        yield f"SPY0432 {kernel.name} stands in {depth} loops and tells tiled dims of {len(kernel.tiled)}"
        return
    for loop, dims in zip(kernel.loops, kernel.tiled, strict=True):
        for dim in dims:
            name = kernel.dims[dim] if dim < len(kernel.dims) else None
            if name != graph.loops[loop].dim:
                yield f'SPY0431 {kernel.name} tiles dim {dim} ("{name}") in a loop over "{graph.loops[loop].dim}"'
    for use in kernel.uses:
        rank = len(graph.buffers[use.buffer].type.shape)
        if use.steps and (len(use.steps) != depth or any(len(step) != rank for step in use.steps)):
            yield f'SPY0432 {kernel.name} stands in {depth} loops, its access to "{use.buffer}" has steps {use.steps}'


def _home(graph: KernelGraph, kernel: Kernel, use: Use) -> Iterator[str]:
    """What is written anew in each round is touched in that round only, and at the same place in every round."""
    home = graph.buffers[use.buffer].home
    tile = f'"{use.buffer}", which is written anew in each round of loops {home}'
    if kernel.loops[: len(home)] != home:
        yield f"SPY0433 {kernel.name} in loops {kernel.loops} touches {tile}"
    elif any(any(step) for step in use.steps[: len(home)]):
        yield f"SPY0434 {kernel.name} moves in {tile}"


def _standing(graph: KernelGraph, kernel: Kernel, use: Use) -> Iterator[str]:
    """What a loop tiles moves with it, unless the buffer is written anew in each of its rounds or says one thing."""
    home = graph.buffers[use.buffer].home
    for depth, (loop, dims) in enumerate(zip(kernel.loops, kernel.tiled, strict=True)):
        moves = bool(use.steps) and any(use.steps[depth])
        standing = [dim for dim in dims if depth >= len(home) and not moves and use.access.depends_on(dim)]
        if standing and not _repeats(graph, use, standing):
            yield f'SPY0437 {kernel.name} takes the same part of "{use.buffer}" in every round of loop {loop}'


def _bounds(graph: KernelGraph, kernel: Kernel, use: Use) -> Iterator[str]:
    """No round leaves the buffer."""
    shape = graph.buffers[use.buffer].type.shape
    if (not use.steps and _is_inside(use.access, shape)) or _is_padded(kernel, use):
        return
    for dim, (coordinate, extent) in enumerate(zip(use.access.coordinates, shape, strict=True)):
        moved = [step[dim] * (graph.loops[loop].count - 1) for loop, step in zip(kernel.loops, use.steps, strict=False)]
        first = coordinate.offset + sum(min(0, way) for way in moved)
        last = _largest(coordinate) + sum(max(0, way) for way in moved)
        if first < 0 or last >= extent:
            yield f'SPY0436 {kernel.name} reaches {first} to {last} of dim {dim} of "{use.buffer}", which has {extent}'


@lru_cache(maxsize=1 << 14)
def _is_inside(access: Access, shape: tuple[int, ...]) -> bool:
    return all(
        coordinate.offset >= 0 and _largest(coordinate) < extent
        for coordinate, extent in zip(access.coordinates, shape, strict=True)
    )


def _largest(coordinate: Coordinate) -> int:
    return coordinate.offset + sum(term.coefficient * (term.modulus - 1) for term in coordinate.terms)


def _repeats(graph: KernelGraph, use: Use, dims: Sequence[int]) -> bool:
    """Whether what an access reads along these dims are copies of one thing: an expanded number written out."""
    axes = [
        axis
        for axis, coordinate in enumerate(use.access.coordinates)
        if any(term.dim in dims for term in coordinate.terms)
    ]
    writers = [kernel for kernel in graph.kernels if kernel.output.buffer == use.buffer]
    return bool(writers) and all(_writes_alike(writer, axes) for writer in writers)


def _writes_alike(writer: Kernel, axes: Sequence[int]) -> bool:
    """Whether a kernel writes the same along these axes of its output: nothing that it reads follows them."""
    walked = {term.dim for axis in axes for term in writer.output.access.coordinates[axis].terms}
    return not any(read.access.depends_on(dim) for read in writer.inputs for dim in walked)
