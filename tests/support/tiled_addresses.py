"""Where every operand of a tiled program has to begin, element by element, from the graph without loops.

An address is found from the index of an element: the first of the core's part of the tile, read through the access that
the operation had before it was tiled, placed by ``device_size`` and ``stride_map``.  The steps and moves that the
compiler works with are not looked at; ``bundle.mlir`` is run by a few lines of this file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.program import Add, AffineApply, ArgumentExtract, Constant, For, Program, SdscExecute, Statement
from spyrec.bundle.superdsc import SuperDsc
from spyrec.hardware.target import STICK_BYTES
from spyrec.ir.access import Access
from spyrec.ir.graph import Graph
from spyrec.ir.kernel import Kernel, KernelBuffer, KernelGraph, KernelProgram, Use
from spyrec.passes.base import PipelineOptions
from spyrec.passes.driver import DriverOptions, run_pipeline
from spyrec.passes.tile_loops import levels_of_kernels
from spyrec.passes.tile_loops.levels import Path

_POOL = 1 << 50
_ARGUMENT = 1 << 44
"""Addresses that the parameters are given: far apart, so that no sum of offsets leads from one to another."""


@dataclass(frozen=True, slots=True)
class Call:
    """One execution: the file, the round of every loop around it, outermost first, and the operands' values."""

    file: str
    rounds: tuple[int, ...]
    symbols: Mapping[int, int]


def calls_of(program: Program) -> Iterator[Call]:
    """Run a program: yield every execution in order."""
    values = {item.name: _base_address(item.name) for item in program.parameters}
    yield from _run(program, program.body, values, ())


def _base_address(parameter: str) -> int:
    found = re.fullmatch(r"arg_(\d+)_base_addr", parameter)
    return _POOL if found is None else (int(found.group(1)) + 1) * _ARGUMENT


def _run(
    program: Program, body: Sequence[Statement], values: dict[str, int], rounds: tuple[int, ...]
) -> Iterator[Call]:
    for item in body:
        match item:
            case ArgumentExtract():
                values[item.result] = values[item.argument]
            case Constant():
                values[item.result] = item.value
            case Add():
                values[item.result] = values[item.left] + values[item.right]
            case AffineApply():
                (found,) = (entry for entry in program.maps if entry.name == item.map_name)
                steps = zip(found.coefficients, item.dims, strict=True)
                values[item.result] = values[item.symbol] + sum(step * values[dim] for step, dim in steps)
            case For():
                for turn in range(values[item.lower], values[item.upper], values[item.step]):
                    values[item.induction] = turn
                    yield from _run(program, item.body, values, (*rounds, turn))
            case SdscExecute():
                pairs = zip(item.symbol_ids or (), item.operands, strict=True)
                yield Call(item.sdsc_filename, rounds, {identity: values[name] for identity, name in pairs})
            case _:
                raise AssertionError(item)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Equal neighbouring tiles of a dim: where the first begins in the dim, how many there are."""

    dim: str
    first: int
    size: int
    count: int


def _pieces(path: Path, extents: Mapping[str, int]) -> list[tuple[_Piece, ...]]:
    """Return, level by level, the tiles that an operation is run on, in the order of the runs."""
    found: list[tuple[_Piece, ...]] = [()]
    for level in path:
        longer: list[tuple[_Piece, ...]] = []
        for outer in found:
            extent = next((item.size for item in reversed(outer) if item.dim == level.dim), extents[level.dim])
            size = min(level.tile, extent)
            longer.append((*outer, _Piece(level.dim, 0, size, extent // size)))
            if extent % size:
                longer.append((*outer, _Piece(level.dim, extent // size * size, extent % size, 1)))
        found = longer
    return found


@dataclass(slots=True)
class Counts:
    """How many start addresses were held against their elements, how many of those move, what does not agree."""

    addresses: int = 0
    moving: int = 0
    unknown: int = 0
    """Operands of executions that ``affine.apply`` moves and that no element is known for: copies of copies."""
    problems: list[str] = field(default_factory=list[str])


class AddressOracle:
    """Checks the start addresses of a compiled graph; ``cores`` as it was compiled with."""

    def __init__(self, graph: Graph, options: PipelineOptions) -> None:
        self.placed = _stage(graph, options, "assign-addresses")
        formed = _stage(graph, options, "form-kernels")
        self._bases = {kernel.name: kernel for kernel in formed.kernels}
        self._shapes = {name: buffer.type.shape for name, buffer in formed.buffers.items()}
        self._paths = levels_of_kernels(formed)
        self._extents = {name: extent for name, extent in graph.dims.items() if isinstance(extent, int)}
        self._pieces = self._pieces_of_kernels()

    def check(self, bundle: Bundle) -> Counts:
        """Hold every start address of every execution and core against the element it has to be that of."""
        counts = Counts()
        directories = {program.directory: program for program in bundle.programs}
        for step, compiled in zip(bundle.manifest.plan, self.placed.programs, strict=True):
            files = directories[step.program]
            kernels = self.placed.kernels[compiled.first_kernel : compiled.end_kernel]
            order: dict[str, Kernel] = {}
            for call in calls_of(files.program):
                if call.file not in order:
                    order[call.file] = kernels[len(order)]
                self._check_call(compiled, order[call.file], call, files.superdscs[call.file], counts)
            assert len(order) == len(kernels)
        return counts

    def _check_call(
        self, program: KernelProgram, kernel: Kernel, call: Call, superdsc: SuperDsc, counts: Counts
    ) -> None:
        for position, (use, operand) in enumerate(zip(kernel.uses, superdsc.operands, strict=True)):
            if not operand.is_symbolic:
                continue
            access = self._untiled(kernel, position)
            if access is None:
                self._check_copy(program, kernel, position, call, operand.start_addresses, counts)
                continue
            for core, start in enumerate(operand.start_addresses):
                index = self._first_index(kernel, call, superdsc, core)
                wanted = self._address(program, use, access, kernel, call, index)
                counts.addresses += 1
                counts.moving += bool(use.steps)
                if call.symbols[start] != wanted:
                    counts.problems.append(
                        f"{kernel.name} operand {position} core {core} rounds {call.rounds}: "
                        f"{call.symbols[start]:#x}, the element lies at {wanted:#x}"
                    )

    def _check_copy(
        self, program: KernelProgram, kernel: Kernel, position: int, call: Call, starts: Sequence[int], counts: Counts
    ) -> None:
        """Hold the first address of a copy's source against that of the tile which the copy's reader wants."""
        reader = next((item for item in self._readers(kernel) if item[0].loops == kernel.loops), None)
        is_copy = position == 0 and bool(kernel.uses[0].steps) and self._base_of(kernel.name)[0] is None
        access = self._untiled_of_base(*reader) if is_copy and reader is not None else None
        if access is None:
            counts.unknown += bool(kernel.uses[position].steps)
            return
        assert reader is not None
        tiles = self._tiles(reader[0], call)
        index = [tiles[name][-1][0] if name in tiles else 0 for name in reader[0].dims]
        wanted = self._address(program, kernel.uses[position], access, reader[0], call, index)
        counts.addresses += 1
        counts.moving += bool(kernel.uses[position].steps)
        found = min(call.symbols[start] for start in starts)
        if found != wanted:
            counts.problems.append(f"{kernel.name} rounds {call.rounds}: {found:#x}, its reader wants {wanted:#x}")

    def _readers(self, kernel: Kernel) -> Iterator[tuple[Kernel, int]]:
        """Yield what reads the result of a kernel, with the positions."""
        for reader in self.placed.kernels[self.placed.kernels.index(kernel) + 1 :]:
            for position, use in enumerate(reader.inputs):
                if use.buffer == kernel.output.buffer:
                    yield reader, position

    def _untiled_of_base(self, reader: Kernel, position: int) -> Access | None:
        base, kind = self._base_of(reader.name)
        return None if base is None or kind not in ("", "partial", "product") else base.uses[position].access

    def _untiled(self, kernel: Kernel, position: int) -> Access | None:
        """Return which element of the whole buffer each index of the whole operation touches; ``None``: not known."""
        base, kind = self._base_of(kernel.name)
        if base is None:
            return None
        use = kernel.uses[position]
        if kind in ("full", "identity", "combined", "rounded", "widened"):
            if use.buffer.startswith("identity."):
                return use.access
            return Access.identity(self._shapes[base.output.buffer])
        if kind == "operand":
            return base.inputs[0].access if position == 0 else Access.identity(base.extents)
        if kind == "partial" and position == 0 and len(base.inputs) == 1:
            operand = next((k for k in self.placed.kernels if k.output.buffer == use.buffer), None)
            if operand is not None and self._base_of(operand.name)[1] == "operand":
                return Access.identity(base.extents)
        wanted = base.uses[position]
        if position == len(base.inputs) or use.buffer == wanted.buffer or _plain(use.buffer) == _plain(wanted.buffer):
            return wanted.access
        copy = next(item for item in self.placed.kernels if item.output.buffer == use.buffer)
        shape = self.placed.buffers[use.buffer].type.shape
        is_whole = copy.output.access == Access.identity(shape) == copy.inputs[0].access
        return wanted.access if is_whole and not copy.loops and _plain(copy.inputs[0].buffer) == wanted.buffer else None

    def _base_of(self, name: str) -> tuple[Kernel | None, str]:
        """Return the operation before tiling that a kernel is or is part of, and as which part."""
        plain = name if name in self._bases else re.sub(r"\.\d+$", "", name)
        if plain in self._bases:
            return self._bases[plain], ""
        root, _, kind = plain.rpartition(".")
        known = ("full", "identity", "combined", "rounded", "widened", "operand", "partial", "product")
        if kind not in known:
            return None, ""
        written = (base for base in self._bases.values() if _plain(base.output.buffer) == _plain(root))
        return self._bases.get(root) or next(written, None), kind

    def _pieces_of_kernels(self) -> dict[str, tuple[_Piece, ...]]:
        """Return the tiles of every kernel: the peeled copies of an operation come in the order of their tiles."""
        groups: dict[tuple[str, str], list[Kernel]] = {}
        for kernel in self.placed.kernels:
            base, kind = self._base_of(kernel.name)
            if base is not None:
                groups.setdefault((base.name, kind), []).append(kernel)
        found: dict[str, tuple[_Piece, ...]] = {}
        for (base, _), kernels in groups.items():
            path = self._paths[base]
            fitting = [
                pieces
                for depth in range(len(path), -1, -1)
                for pieces in [_pieces(path[:depth], self._extents)]
                if len(pieces) == len(kernels) and all(map(self._is_run_on, kernels, pieces))
            ]
            assert fitting, (base, [kernel.name for kernel in kernels], path)
            found.update({kernel.name: tiles for kernel, tiles in zip(kernels, fitting[0], strict=True)})
        return found

    def _is_run_on(self, kernel: Kernel, pieces: Sequence[_Piece]) -> bool:
        loops = [self.placed.loops[loop] for loop in kernel.loops]
        wanted = [(piece.dim, piece.count, piece.size) for piece in pieces if piece.count > 1]
        return [(loop.dim, loop.count, loop.tile) for loop in loops] == wanted

    def _tiles(self, kernel: Kernel, call: Call) -> dict[str, list[tuple[int, int]]]:
        """Return for each dim where its tile begins and ends up, level by level: (first element, elements)."""
        rounds = iter(call.rounds)
        tiles: dict[str, list[tuple[int, int]]] = {}
        for piece in self._pieces[kernel.name]:
            outer = tiles.setdefault(piece.dim, [(0, self._extents[piece.dim])])
            turn = next(rounds) if piece.count > 1 else 0
            outer.append((outer[-1][0] + piece.first + turn * piece.size, piece.size))
        assert next(rounds, None) is None
        return tiles

    def _first_index(self, kernel: Kernel, call: Call, superdsc: SuperDsc, core: int) -> list[int]:
        """Return the first index of the whole operation that a core works on in one execution."""
        tiles = self._tiles(kernel, call)
        index = [tiles[name][-1][0] if name in tiles else 0 for name in kernel.dims or (None,) * len(kernel.extents)]
        assert kernel.form is not None
        assert kernel.division is not None
        divided = [
            variable for variable, slices in zip(kernel.form.variables, kernel.division, strict=True) if slices > 1
        ]
        labels = [label for label, slices in superdsc.work_slices.items() if slices > 1]
        for variable, label in zip(divided, labels, strict=True):
            part = superdsc.core_work_slices[core][label] * superdsc.core_extent[label]
            index[variable.dim] += part * variable.divisor
        return index

    def _address(
        self, program: KernelProgram, use: Use, access: Access, kernel: Kernel, call: Call, index: Sequence[int]
    ) -> int:
        buffer = self.placed.buffers[use.buffer]
        place = [
            item.offset + sum(t.coefficient * (index[t.dim] // t.divisor % t.modulus) for t in item.terms)
            for item in access.coordinates
        ]
        place = self._inside_tile(buffer, place, access, kernel, call)
        elements = _element(buffer, place)
        size = STICK_BYTES // buffer.placed.device.device_size[-1]
        if use.buffer in program.arguments:
            return (program.arguments.index(use.buffer) + 1) * _ARGUMENT + elements * size
        return _POOL + program.pool_offsets[use.buffer] + elements * size

    def _inside_tile(
        self, buffer: KernelBuffer, place: list[int], access: Access, kernel: Kernel, call: Call
    ) -> list[int]:
        """Return the place in a buffer that holds one tile, counted from the tile's first element."""
        tiles = self._tiles(kernel, call)
        for dim, item in enumerate(access.coordinates):
            for term in item.terms:
                name = kernel.dims[term.dim] if kernel.dims else None
                for first, size in tiles.get(name or "", [])[1:]:
                    if size == buffer.type.shape[dim] and place[dim] >= size:
                        place[dim] -= first
                        break
        return place


def _element(buffer: KernelBuffer, index: Sequence[int]) -> int:
    """Return the place of an element, in elements: the coordinate that ``stride_map`` leads back from to the host."""
    device, shape = buffer.placed.device, buffer.type.shape
    coordinate = buffer.placed.device_coordinate(index)
    host = sum(place * prod(shape[dim + 1 :]) for dim, place in enumerate(index))
    assert sum(place * stride for place, stride in zip(coordinate, device.stride_map, strict=True)) == host
    assert all(0 <= place < extent for place, extent in zip(coordinate, device.device_size, strict=True))
    return sum(place * prod(device.device_size[dim + 1 :]) for dim, place in enumerate(coordinate))


def _plain(buffer: str) -> str:
    """Return the name of the value that a buffer, or the tiles in it, hold."""
    return re.sub(r"(\.value|\.pinned|\.tile|\.total|\.\d+)+$", "", buffer)


def _stage(graph: Graph, options: PipelineOptions, name: str) -> KernelGraph:
    found = run_pipeline(graph, options, DriverOptions(stop_after=name))
    assert isinstance(found, KernelGraph)
    return found
