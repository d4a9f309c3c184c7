"""Programs that take a tensor into LX, shuffle it from owners to owners, and store it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from spyrec.bundle.dialects import AUGUST_2026
from spyrec.bundle.superdsc import Distribution, SuperDsc
from spyrec.codegen.emit_opspecs import CodegenOptions, EmittedProgram, emit_opspecs
from spyrec.codegen.expression import CoordinateExpression, parse_expression
from spyrec.codegen.opspec import (
    AllocationKind,
    ArgumentAllocation,
    IterationDim,
    LoopSpec,
    OpSpec,
    OpSpecFile,
    OwnedSlices,
    TensorArgument,
)
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import ArgumentTable, TableEntry
from tests.support.both_engines import Launched

DL16 = DeviceFormat.SEN169_FP16
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Owners:
    """A division among cores: slices along each dim, and the dims from the fastest to the slowest of core numbers."""

    slices: Mapping[str, int]
    order: Sequence[str] = ()

    def opspec(self) -> OwnedSlices:
        """Return it as an OpSpec says it."""
        slots: dict[str, CoordinateExpression] = {}
        before = 1
        for dim in self.order or self.slices:
            slots[dim] = parse_expression(f"Mod(floor(core_id/{before}), {self.slices[dim]})")
            before *= self.slices[dim]
        return OwnedSlices(self.slices, slots)


@dataclass(frozen=True, slots=True)
class Shape:
    """A tensor of elements along iteration symbols, outermost first; the last one is that of the sticks."""

    sizes: Mapping[str, int]
    data_format: DeviceFormat = DL16

    @property
    def stick_size(self) -> int:
        """Elements per stick."""
        size = self.data_format.elements_per_stick
        assert size is not None
        return size

    @property
    def device_size(self) -> tuple[int, ...]:
        """Sticks outermost but for leading dims: [.., sticks, rows, elements]."""
        *outer, rows, columns = self.sizes.values()
        return (*outer, -(-columns // self.stick_size), rows, self.stick_size)

    @property
    def size_bytes(self) -> int:
        """Bytes on the device."""
        return 128 * prod(self.device_size[:-1])

    def argument(self, place: ArgumentAllocation, *, index: int | None = None, is_input: bool) -> TensorArgument:
        """Return the tensor as an operand."""
        *outer, rows, columns = self.sizes
        texts = (*outer, f"floor({columns}/{self.stick_size})", rows, f"Mod({columns}, {self.stick_size})")
        coordinates = tuple(parse_expression(text) for text in texts)
        return TensorArgument(is_input, index, self.data_format, self.device_size, coordinates, place)


def lx(start: int) -> ArgumentAllocation:
    return ArgumentAllocation(AllocationKind.LX, start)


def hbm(index: int) -> ArgumentAllocation:
    return ArgumentAllocation(AllocationKind.HBM, index << 34)


def copy(shape: Shape, slices: Mapping[str, int], source: TensorArgument, target: TensorArgument) -> OpSpec:
    dims = tuple(IterationDim(name, size, slices.get(name, 1)) for name, size in shape.sizes.items())
    return OpSpec("identity", False, dims, args=(source, target))


def shuffle(shape: Shape, first: tuple[int, Owners], then: tuple[int, Owners]) -> OpSpec:
    """Return the copy from one place in LX and its owners to another."""
    source = replace(shape.argument(lx(first[0]), is_input=True), work_division=first[1].opspec())
    target = replace(shape.argument(lx(then[0]), is_input=False), work_division=then[1].opspec())
    return copy(shape, then[1].slices, source, target)


def chain(shape: Shape, states: Sequence[tuple[int, Owners]]) -> tuple[OpSpec, ...]:
    """Return what takes argument 0 into LX, shuffles it from state to state, and stores it into argument 1."""
    begin, end = states[0], states[-1]
    load = shape.argument(hbm(0), index=0, is_input=True), shape.argument(lx(begin[0]), is_input=False)
    store = shape.argument(lx(end[0]), is_input=True), shape.argument(hbm(1), index=1, is_input=False)
    moves = (shuffle(shape, one, other) for one, other in pairwise(states))
    return (copy(shape, begin[1].slices, *load), *moves, copy(shape, end[1].slices, *store))


def emitted(specs: Sequence[OpSpec | LoopSpec]) -> EmittedProgram:
    file = OpSpecFile(symbolic_args=True, unroll_loops=False, specs=tuple(specs))
    return emit_opspecs(file, CodegenOptions(dialect=AUGUST_2026))


def entry(index: int, shape: Shape) -> TableEntry:
    return TableEntry(f"t{index}", index, shape.device_size, shape.data_format, index << 34, shape.size_bytes)


def patterned(shape: Shape, seed: int = 0) -> Bytes:
    """Return bytes of the tensor, every pattern of its format among them; of float32 no NaN, of which one is like
    another.
    """
    generator = np.random.default_rng(seed)
    if shape.data_format is DeviceFormat.IEEE_FP32:
        return generator.standard_normal(shape.size_bytes // 4).astype(np.float32).view(np.uint8)
    return generator.integers(0, 256, shape.size_bytes).astype(np.uint8)


def launched(program: EmittedProgram, shape: Shape, contents: Bytes, result: Shape | None = None) -> Launched:
    table = ArgumentTable((entry(0, shape), entry(1, result or shape)))
    return Launched(program.program, program.superdscs, table, {0: contents})


def with_superdsc(program: EmittedProgram, superdsc: SuperDsc) -> EmittedProgram:
    return replace(program, superdscs={**program.superdscs, superdsc.file_name: superdsc})


def with_distribution(superdsc: SuperDsc, position: int, own: Distribution) -> SuperDsc:
    operands = list(superdsc.operands)
    operands[position] = replace(operands[position], distribution=own)
    return replace(superdsc, operands=tuple(operands))


def distribution(superdsc: SuperDsc, position: int) -> Distribution:
    own = superdsc.operands[position].distribution
    assert own is not None
    return own


def held(launch: Launched) -> Bytes:
    """Return what argument 1 holds in the end, by both engines."""
    launch.assert_equal()
    return launch.memory("fast")[0]["argument 1"]
