"""Runs a tile plan on byte arrays: device memory as bytes, programs as NumPy functions on one tile.

What a program reads and writes is found from the layout it was compiled for, element by element, and not from the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from spyrec.bundle.tile_contract import TileArgument
from spyrec.layout.device_layout import DeviceLayout
from spyrec.runtime.launch.plan import Iteration, IterationOperand, Mode, OperandHome, StageCopy
from spyrec.runtime.launch.tile_plan import Part, TilePlan

Array = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Program = Callable[[Sequence[Array]], Sequence[Array]]
"""From the tiles of all operands in order to those that are written, in order."""

GARBAGE = 0xCD


def places(layout: DeviceLayout, stick_strides: Sequence[int] | None = None) -> Places:
    """Return the byte place of every element; ``stick_strides`` replaces the layout's own."""
    shape = layout.host_shape
    result = np.zeros(shape, dtype=np.int64)
    for dim, extent in enumerate(shape):
        along = [_place(layout, _at(dim, position, len(shape)), stick_strides) for position in range(extent)]
        result += np.array(along).reshape([extent if axis == dim else 1 for axis in range(len(shape))])
    corner = tuple(extent - 1 for extent in shape)
    assert result[corner] == _place(layout, corner, stick_strides), "the layout's dims are not independent"
    return result


def _at(dim: int, position: int, rank: int) -> tuple[int, ...]:
    return tuple(position if axis == dim else 0 for axis in range(rank))


def _place(layout: DeviceLayout, index: tuple[int, ...], stick_strides: Sequence[int] | None) -> int:
    coordinate, lanes = layout.device_coordinate(index), layout.elements_per_stick
    strides = [stride // lanes for stride in layout.device_strides()[:-1]] if stick_strides is None else stick_strides
    sticks = sum(at * by for at, by in zip(coordinate[:-1], strides, strict=True))
    return sticks * 128 + coordinate[-1] * 128 // lanes


def load(memory: Bytes, where: Places) -> Array:
    """Read elements of four bytes."""
    return memory.view(np.float32)[where // 4].astype(np.float64)


def store(memory: Bytes, where: Places, values: Array) -> None:
    """Write elements of four bytes."""
    memory.view(np.float32)[where // 4] = values


class Simulator:
    """The memory of one launch, by argument and place."""

    def __init__(self, plan: TilePlan, memories: Sequence[Bytes], programs: Mapping[str, Program]) -> None:
        self.plan = plan
        self.tensors = memories
        self.programs = programs
        self.scratch = [np.full(size, GARBAGE, np.uint8) for size in plan.scratch_bytes]
        self.partials = [np.full(size, GARBAGE, np.uint8) for size in plan.sum_scratch_bytes]
        self.sums = [np.full(size, GARBAGE, np.uint8) for size in plan.sum_scratch_bytes]
        self._cache: dict[object, Places] = {}

    def run(self) -> list[Iteration]:
        """Execute all iterations in order and return them."""
        done = list(self.plan.iterations())
        for iteration in done:
            for copy in iteration.gathers:
                self._copy(copy, is_gather=True)
            self._execute(iteration)
            for copy in iteration.scatters:
                self._copy(copy, is_gather=False)
        return done

    def _execute(self, iteration: Iteration) -> None:
        part = self._part(iteration)
        spots = [(self._memory(operand), self._places(operand, part)) for operand in iteration.operands]
        results = self.programs[iteration.program]([load(memory, where) for memory, where in spots])
        written = [
            place
            for place, operand in enumerate(iteration.operands)
            if part.contract.arguments[operand.argument].is_written
        ]
        for place, values in zip(written, results, strict=False):
            store(*spots[place], values)

    def _part(self, iteration: Iteration) -> Part:
        size = tuple(loop.size(at) for loop, at in zip(self.plan.loops, iteration.index, strict=True))
        return dict(self.plan.parts)[size]

    def _memory(self, operand: IterationOperand) -> Bytes:
        by_place = {
            OperandHome.TENSOR: self.tensors,
            OperandHome.SCRATCH: self.scratch,
            OperandHome.PARTIAL: self.partials,
            OperandHome.ACCUMULATOR: self.sums,
        }
        return by_place[operand.place][operand.argument]

    def _places(self, operand: IterationOperand, part: Part) -> Places:
        argument, plan = part.contract.arguments[operand.argument], part.arguments[operand.argument]
        is_walked = plan.mode is Mode.STRIDED and operand.place is OperandHome.TENSOR
        return self._own(argument, plan.stick_strides if is_walked else None) + operand.offset_bytes

    def _own(self, argument: TileArgument, strides: tuple[int, ...] | None) -> Places:
        key = (argument, argument.layout.host_tensor, strides)
        if key not in self._cache:
            self._cache[key] = places(argument.layout, strides)
        return self._cache[key]

    def _copy(self, copy: StageCopy, is_gather: bool) -> None:
        tensor, scratch = self.tensors[copy.argument], self.scratch[copy.argument]
        for index in product(*(range(size) for size in copy.sizes)):
            there = copy.parent_bytes + sum(at * by for at, by in zip(index, copy.parent_strides, strict=True))
            here = copy.scratch_bytes + sum(at * by for at, by in zip(index, copy.scratch_strides, strict=True))
            window, tile = slice(there, there + copy.chunk_bytes), slice(here, here + copy.chunk_bytes)
            assert 0 <= there <= len(tensor) - copy.chunk_bytes
            assert 0 <= here <= len(scratch) - copy.chunk_bytes
            if is_gather:
                scratch[tile] = tensor[window]
            else:
                tensor[window] = scratch[tile]


def filled(layout: DeviceLayout, values: Array | None, base_bytes: int = 0) -> Bytes:
    """Return the bytes of a tensor that holds ``values``, garbage around them and where there are none."""
    memory = np.full(base_bytes + layout.nbytes + 256, GARBAGE, np.uint8)
    if values is not None:
        store(memory, places(layout) + base_bytes, values)
    return memory


def held(layout: DeviceLayout, memory: Bytes, base_bytes: int = 0) -> Array:
    """Return the elements of a tensor."""
    return load(memory, places(layout) + base_bytes)
