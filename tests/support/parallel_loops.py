"""What a parallel loop promises, tried out on the meaning of kernels and of graphs, in float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt

from spyrec.contracts.program_loops import ProgramLoop, ProgramLoops
from spyrec.hardware.dtypes import DType
from spyrec.ir.evaluate import evaluate
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import BufferRole, KernelGraph, KernelProgram
from spyrec.ir.opdef import Array
from tests.support.graphs import Arrays, JsonObject, random_arrays, read
from tests.support.kernel_interpreter import interpret

Numbers = npt.NDArray[np.generic]


def numbers_for(graph: KernelGraph, program: KernelProgram, rng: np.random.Generator) -> Arrays:
    """Return numbers for everything that a program reads or writes and that is no constant."""
    found: Arrays = {}
    for name in program.arguments:
        buffer = graph.buffers[name]
        if buffer.role is BufferRole.CONSTANT:
            continue
        numbers = np.asarray(rng.integers(-16, 17, buffer.type.shape) / 8)
        found[name] = numbers > 0 if buffer.type.dtype is DType.BOOL else numbers.astype(buffer.type.dtype.carrier)
    return found


def executed(graph: KernelGraph, device: Graph, program: KernelProgram, arrays: Arrays) -> dict[str, Array]:
    """Return what one program writes."""
    kernels = graph.kernels[program.first_kernel : program.end_kernel]
    written = {kernel.output.buffer for kernel in kernels} & set(program.arguments)
    alone = replace(graph, kernels=kernels, outputs=tuple((name, name) for name in sorted(written)))
    return interpret(alone, device, arrays)


def broken_promise(graph: KernelGraph, device: Graph, number: int, found: ProgramLoops, seed: int) -> str | None:
    """Return what contradicts a loop of a program, ``None`` where nothing does.

    A program whose elements along a loop come out in another order where they go in so, and do not notice what stands
    beside them, computes each of them by itself, wherever it stands: then a slice goes to a slice.
    """
    program, rng = graph.programs[number], np.random.default_rng(seed)
    arrays, others = numbers_for(graph, program, rng), numbers_for(graph, program, rng)
    before = executed(graph, device, program, arrays)
    for loop in found.loops:
        if not set(loop.dims) >= found.written:
            return f"{loop}: an output does not follow"
        order = rng.permutation(loop.tile)
        after = executed(graph, device, program, _taken(arrays, loop, order))
        if not _are_equal(_taken(before, loop, order), after):
            return f"{loop}: the order is lost"
        kept = rng.random(loop.tile) < 0.5
        after = executed(graph, device, program, _mixed(arrays, others, loop, kept))
        if not _are_equal(_taken(before, loop, np.flatnonzero(kept)), _taken(after, loop, np.flatnonzero(kept))):
            return f"{loop}: elements depend on their neighbours"
    if found.is_pointwise and not _are_equal(_shuffled(before), executed(graph, device, program, _shuffled(arrays))):
        return "the program is not pointwise"
    if found.is_idempotent and not _are_equal(before, executed(graph, device, program, {**arrays, **before})):
        return "the program gives another result when it runs twice"
    return None


def _shuffled(arrays: Mapping[str, Array]) -> Arrays:
    """Return tensors of one shape with their elements in one other order."""
    (count,) = {array.size for array in arrays.values()}
    order = np.random.default_rng(count).permutation(count)
    return {name: array.reshape(-1)[order].reshape(array.shape) for name, array in arrays.items()}


def _taken(arrays: Mapping[str, Array], loop: ProgramLoop, order: npt.NDArray[np.intp]) -> Arrays:
    return {
        name: np.take(array, order, axis=loop.dims[name]) if name in loop.dims else array
        for name, array in arrays.items()
    }


def _mixed(arrays: Arrays, others: Arrays, loop: ProgramLoop, kept: npt.NDArray[np.bool_]) -> Arrays:
    mixed = dict(arrays)
    for name in loop.dims.keys() & arrays.keys():
        shape = [-1 if dim == loop.dims[name] else 1 for dim in range(arrays[name].ndim)]
        mixed[name] = np.where(kept.reshape(shape), arrays[name], others[name]).astype(arrays[name].dtype)
    return mixed


def _are_equal(first: Mapping[str, Numbers], second: Mapping[str, Numbers]) -> bool:
    """Whether numbers agree but for the last bits, which NumPy's vector loops choose by an element's place."""
    return all(np.allclose(first[name], second[name], rtol=1e-11, atol=1e-11, equal_nan=True) for name in first)


def graph_axes(graph: KernelGraph, found: Sequence[ProgramLoops]) -> dict[str, dict[str, int]]:
    """Return the loops of a whole plan: by name, which dim of which argument follows.

    Where a program has a tensor that follows in another one, it has to follow here, too.
    """
    axes: dict[str, dict[str, int]] = {}
    for loops in found:
        for loop in loops.loops:
            axes.setdefault(loop.name, {}).update(loop.dims)
    for program, loops in zip(graph.programs, found, strict=True):
        known = {loop.name: loop.dims for loop in loops.loops}
        for name, dims in list(axes.items()):
            if dims.keys() & set(program.arguments) != set(known.get(name, {})):
                del axes[name]
    return axes


def tiled_like_whole(
    tile: JsonObject, large: JsonObject, axes: Mapping[str, Mapping[str, int]], trips: Mapping[str, int]
) -> bool:
    """Whether a graph evaluated tile by tile gives what it gives for large tensors at once."""
    graph, arrays = read(tile), random_arrays(large, seed=3)
    whole = evaluate(read(large), arrays)
    pieces: dict[str, Array] = {name: np.full_like(array, np.nan) for name, array in whole.items()}
    for index in _indices(trips):
        inputs = {name: array[_window(graph, name, axes, index)] for name, array in arrays.items()}
        for name, array in evaluate(graph, inputs).items():
            pieces[name][_window(graph, name, axes, index)] = array
    return all(np.array_equal(whole[name], pieces[name], equal_nan=True) for name in whole)


def _indices(trips: Mapping[str, int]) -> Iterator[dict[str, int]]:
    for index in product(*(range(count) for count in trips.values())):
        yield dict(zip(trips, index, strict=True))


def _window(
    graph: Graph, name: str, axes: Mapping[str, Mapping[str, int]], index: Mapping[str, int]
) -> tuple[slice, ...]:
    shape = graph.type_of(name).shape
    starts = [0] * len(shape)
    for loop, number in index.items():
        if name in axes[loop]:
            starts[axes[loop][name]] = number * shape[axes[loop][name]]
    return tuple(slice(start, start + extent) for start, extent in zip(starts, shape, strict=True))
