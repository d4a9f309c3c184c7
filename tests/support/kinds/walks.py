"""Operations on windows of larger arguments, and nests of loops that walk tiles of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random

import numpy as np

from spyrec.bundle.dialects import JUNE_2026
from spyrec.codegen.emit_opspecs import CodegenOptions
from spyrec.codegen.expression import CoordinateExpression
from spyrec.codegen.opspec import LoopSpec, OpSpec, TensorArgument
from spyrec.hardware.dtypes import DeviceFormat
from tests.codegen.builders import FP16, FP32, Along, argument, space
from tests.support.kinds.program import (
    BAKED,
    EXACT,
    OWN,
    Doubles,
    Elements,
    RandomProgram,
    a_cut,
    elements_of,
    generator_of,
    sixteenths,
    stored,
)

_FUNCTIONS: dict[str, Callable[..., Doubles]] = {
    "add": np.add,
    "sub": np.subtract,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "neg": np.negative,
    "abs": np.abs,
    "identity": np.positive,
}
_ONE_INPUT = {"neg", "abs", "identity"}
_MOST_OPERATIONS = 3

_SYMBOLIC = (OWN, EXACT, CodegenOptions(dialect=JUNE_2026))
_BAKED = (BAKED, replace(BAKED, dialect=JUNE_2026))


@dataclass(frozen=True)
class Buffer:
    """An argument: its extents by symbol, and the symbols of its device axes, outermost first."""

    index: int
    extents: Mapping[str, int]
    axes: tuple[str, ...]
    stick: str
    data_format: DeviceFormat

    @property
    def lanes(self) -> int:
        return self.data_format.elements_per_stick or 0

    def operand(self, sizes: Mapping[str, int], starts: Mapping[str, int], *, is_input: bool) -> TensorArgument:
        """Return a window of it as an operand."""
        axes = [Along(None)] * (3 - len(self.axes) if len(self.axes) < 2 else 0)
        for symbol in self.axes:
            before, size, extent = starts[symbol], sizes[symbol], self.extents[symbol]
            if symbol == self.stick:
                before, size, extent = (-(-number // self.lanes) for number in (before, size, extent))
            axes.append(Along(symbol, before, extent - before - size))
        stick = self.stick if self.stick in self.axes else None
        made = argument(axes, stick, sizes, index=self.index, is_input=is_input, data_format=self.data_format)
        return replace(made, ends_in_padding=not is_input)

    def whole(self) -> TensorArgument:
        return self.operand(self.extents, dict.fromkeys(self.extents, 0), is_input=True)

    def positions(self, steps: Mapping[str, int]) -> int:
        """Return how many elements of the device layout it is from a place to one that lies further along dims."""
        sizes = self.whole().device_size
        found = 0
        for axis, symbol in enumerate(reversed(self.axes), 1):
            step = steps.get(symbol, 0) // (self.lanes if symbol == self.stick else 1)
            found += step * math.prod(sizes[-1 - axis + 1 :])
        return found


@dataclass(frozen=True)
class Level:
    """A loop, outermost first: rounds, and how far tiles of each dim move in a round."""

    count: int
    steps: Mapping[str, int]


@dataclass(frozen=True)
class Use:
    """An operand: a window, and at which levels it moves."""

    buffer: Buffer
    starts: Mapping[str, int]
    follows: tuple[bool, ...]

    def at(self, levels: Sequence[Level], rounds: Sequence[int]) -> dict[str, int]:
        """Return where its window starts in a round of each loop."""
        found = dict(self.starts)
        for level, number, follows in zip(levels, rounds, self.follows, strict=True):
            for symbol in found if follows else ():
                found[symbol] += number * level.steps.get(symbol, 0)
        return found

    def advance(self, levels: Sequence[Level]) -> CoordinateExpression | None:
        total = CoordinateExpression.constant(0)
        for number, (level, follows) in enumerate(zip(levels, self.follows, strict=True)):
            found = self.buffer.positions(level.steps) if follows else 0
            total = total + CoordinateExpression.symbol(f"t{number}") * found
        return total if total.symbols else None


@dataclass(frozen=True)
class Step:
    """An operation inside of some of the loops, the outermost ones."""

    op: str
    sizes: Mapping[str, int]
    splits: Mapping[str, int]
    uses: tuple[Use, ...]
    levels: tuple[Level, ...]

    @property
    def spec(self) -> OpSpec:
        args: list[TensorArgument] = []
        for number, use in enumerate(self.uses):
            made = use.buffer.operand(self.sizes, use.starts, is_input=number < len(self.uses) - 1)
            args.append(replace(made, tile_advance=use.advance(self.levels)))
        named = tuple((f"t{number}",) for number in range(len(self.levels)))
        return OpSpec(self.op, False, space(self.sizes, self.splits), tuple(args), tiled_levels=named)

    def perform(self, memory: Mapping[int, Doubles], rounds: Sequence[int]) -> None:
        """Do to arrays, one per argument, what the operation does to the arguments; NaN is what is left open."""
        windows = [self._window(use, rounds) for use in self.uses]
        inputs = [memory[use.buffer.index][window] for use, window in zip(self.uses[:-1], windows, strict=False)]
        target = self.uses[-1].buffer
        result = memory[target.index]
        shape = [self.sizes[symbol] for symbol in target.extents]
        values = _FUNCTIONS[self.op](*(self._aligned(u, x) for u, x in zip(self.uses[:-1], inputs, strict=True)))
        # loops let values grow: what float32 makes of them is rounded to the format, as the device does
        rounded = stored(values.astype(np.float32).astype(np.float64), target.data_format)
        result[windows[-1]] = np.broadcast_to(rounded, shape)

    def _window(self, use: Use, rounds: Sequence[int]) -> tuple[slice, ...]:
        starts = use.at(self.levels, rounds)
        return tuple(slice(starts[symbol], starts[symbol] + self.sizes[symbol]) for symbol in use.buffer.extents)

    def _aligned(self, use: Use, values: Doubles) -> Doubles:
        """Give an operand that lacks dims extents of one there."""
        return values.reshape([self.sizes[s] if s in use.buffer.extents else 1 for s in self.uses[-1].buffer.extents])


@dataclass
class _Draw:
    """What the operations of one program share."""

    source: Random
    sizes: dict[str, int]
    stick: str
    data_format: DeviceFormat
    levels: tuple[Level, ...]

    def reach(self, symbol: str) -> int:
        """Return how many elements of a dim tiles cover that follow all loops."""
        return self.sizes[symbol] + sum((level.count - 1) * level.steps.get(symbol, 0) for level in self.levels)

    def buffer(self, index: int) -> Buffer:
        lanes = self.data_format.elements_per_stick or 0
        extents: dict[str, int] = {}
        for symbol in self.sizes:
            unit = lanes if symbol == self.stick else 1
            extents[symbol] = self.reach(symbol) + unit * self.source.choice([0, 0, 1, 2])
            if symbol == self.stick and self.sizes[symbol] % lanes == 0:
                extents[symbol] += self.source.choice([0, 0, 1, lanes - 1])
        axes = tuple(self.source.sample(list(extents), len(extents)))
        return Buffer(index, extents, axes, self.stick, self.data_format)

    def small(self, index: int) -> Buffer:
        """Return an argument that lacks dims, to be read only."""
        whole = self.buffer(index)
        kept = [symbol for symbol in whole.axes if self.source.random() < 0.5]
        return replace(whole, extents={s: n for s, n in whole.extents.items() if s in kept}, axes=tuple(kept))

    def sizes_at(self, depth: int) -> dict[str, int]:
        """Return what an operation inside of the outermost loops covers: all that deeper loops walk."""
        inner = self.levels[depth:]
        return {s: n + sum((item.count - 1) * item.steps.get(s, 0) for item in inner) for s, n in self.sizes.items()}

    def use(self, buffer: Buffer, depth: int, *, is_output: bool) -> Use:
        starts: dict[str, int] = {}
        lanes = buffer.lanes
        for symbol, extent in buffer.extents.items():
            free = extent - self.reach(symbol)
            if symbol != self.stick:
                starts[symbol] = self.source.randrange(free + 1)
            elif is_output and self.sizes[symbol] % lanes:
                starts[symbol] = free  # its last stick is filled up, so no element lies behind it
            else:
                starts[symbol] = lanes * self.source.randrange(free // lanes + 1)
        follows: list[bool] = []
        for number, level in enumerate(self.levels[:depth]):
            # what an outer loop moves by several tiles follows the loop that walks these
            is_walked = any(set(level.steps) & set(self.levels[at].steps) for at in range(number) if follows[at])
            follows.append(is_walked or self.source.random() < 0.8)
        return Use(buffer, starts, tuple(follows))

    def step(self, buffers: Sequence[Buffer], smalls: Sequence[Buffer]) -> Step:
        depth = self.source.randint(max(0, len(self.levels) - 1), len(self.levels))
        op = self.source.choice(list(_FUNCTIONS))
        output = self.use(self.source.choice(buffers), depth, is_output=True)
        inputs: list[Use] = []
        while len(inputs) < (1 if op in _ONE_INPUT else 2):
            buffer = self.source.choice([*buffers, *smalls])
            found = self.use(buffer, depth, is_output=False)
            if buffer is output.buffer and not self.apart(found, output, depth):
                found = output  # in place
            inputs.append(found)
        if op == "identity" and inputs[0].buffer not in buffers:
            op = "abs"
        sizes = self.sizes_at(depth)
        cuts = {symbol: self.cut(symbol, size) for symbol, size in sizes.items()}
        while math.prod(cuts.values()) > 32:
            cuts[self.source.choice(list(cuts))] = 1
        order = self.source.sample(list(self.sizes), len(self.sizes))
        return Step(op, {s: sizes[s] for s in order}, cuts, (*inputs, output), self.levels[:depth])

    def cut(self, symbol: str, size: int) -> int:
        lanes = self.data_format.elements_per_stick or 0
        if symbol != self.stick:
            return a_cut(self.source, size)
        return a_cut(self.source, size // lanes) if size % lanes == 0 else 1

    def apart(self, one: Use, other: Use, depth: int) -> bool:
        """Whether two windows of one argument have no stick in common in any round."""
        levels, sizes = self.levels[:depth], self.sizes_at(depth)
        lanes = one.buffer.lanes
        for rounds in product(*(range(level.count) for level in levels)):
            first, second = one.at(levels, rounds), other.at(levels, rounds)
            shared = True
            for symbol, size in sizes.items():
                unit = lanes if symbol == self.stick else 1
                covered = -(-size // unit) * unit
                shared &= first[symbol] < second[symbol] + covered and second[symbol] < first[symbol] + covered
            if shared:
                return False
        return True


def _levels(source: Random, sizes: Mapping[str, int], stick: str, lanes: int, count: int) -> tuple[Level, ...]:
    """Return loops, outermost first; one of them may tile two dims, or none, and a dim may be tiled twice."""
    movable = [symbol for symbol, size in sizes.items() if symbol != stick or size % lanes == 0]
    inside = dict(sizes)
    found: list[Level] = []
    for _ in range(count):
        rounds = source.choice([1, 2, 2, 3])
        steps: dict[str, int] = {}
        for symbol in source.sample(movable, min(len(movable), source.choice([0, 1, 1, 1, 2]))):
            steps[symbol] = inside[symbol]
            inside[symbol] *= rounds
        found.insert(0, Level(rounds, steps))
    return tuple(found)


def _program(source: Random, loops: int) -> RandomProgram:
    data_format = source.choice([FP16, FP16, FP32])
    lanes = data_format.elements_per_stick or 0
    symbols = ["a", "b", "c"][: source.choice([1, 2, 2, 3])]
    stick = source.choice(symbols)
    sizes = {symbol: source.choice([1, 2, 3, 4, 6]) for symbol in symbols}
    sizes[stick] = source.choice([1, lanes - 1, lanes, lanes + 1, 2 * lanes, 2 * lanes, 100, 4 * lanes])
    draw = _Draw(source, sizes, stick, data_format, _levels(source, sizes, stick, lanes, loops))
    buffers = [draw.buffer(index) for index in range(source.choice([2, 2, 3]))]
    smalls = [draw.small(len(buffers))] if source.random() < 0.4 else []
    steps = [draw.step(buffers, smalls) for _ in range(source.randint(1, _MOST_OPERATIONS))]
    options = source.choice(_SYMBOLIC if loops or source.random() < 0.6 else _BAKED)
    if options is EXACT and any(_is_moved_by_another(step) for step in steps):
        options = OWN
    return _walked(source, draw, steps, options)


def _walked(source: Random, draw: _Draw, steps: Sequence[Step], options: CodegenOptions) -> RandomProgram:
    used = {use.buffer.index: use.buffer for step in steps for use in step.uses}
    numbers = {index: number for number, index in enumerate(sorted(used))}
    # arguments are those that operations use, numbered from 0
    steps = [replace(step, uses=tuple(_renumbered(use, numbers) for use in step.uses)) for step in steps]
    generator = generator_of(source)
    buffers = {use.buffer.index: use.buffer for step in steps for use in step.uses}
    before = {index: sixteenths(generator, list(item.extents.values())) for index, item in buffers.items()}
    where = {index: elements_of(item.whole(), list(item.extents), item.extents) for index, item in buffers.items()}
    after = {index: values.copy() for index, values in before.items()}
    written = {step.uses[-1].buffer.index for step in steps}
    specs = _nested(steps, draw.levels, 0)
    _perform(steps, draw.levels, after, ())
    return RandomProgram(
        specs,
        {index: Elements(where[index], values) for index, values in before.items()},
        {index: Elements(where[index], after[index]) for index in written},
        options,
    )


def _is_moved_by_another(step: Step) -> bool:
    """Whether operands may begin at one address and move differently: upstream moves both as the first (Q19)."""
    steps: dict[int, set[str]] = {}
    for use in step.uses:
        steps.setdefault(use.buffer.index, set()).add(str(use.advance(step.levels)))
    return any(len(found) > 1 for found in steps.values())


def _renumbered(use: Use, numbers: Mapping[int, int]) -> Use:
    return replace(use, buffer=replace(use.buffer, index=numbers[use.buffer.index]))


def _nested(steps: Sequence[Step], levels: Sequence[Level], depth: int) -> tuple[OpSpec | LoopSpec, ...]:
    """Return the operations inside of the loops around them; neighbours that go deeper share a loop."""
    found: list[OpSpec | LoopSpec] = []
    inner: list[Step] = []
    for step in (*steps, None):
        if step is not None and len(step.levels) > depth:
            inner.append(step)
            continue
        if inner:
            found.append(LoopSpec(levels[depth].count, (), _nested(inner, levels, depth + 1)))
            inner = []
        if step is not None:
            found.append(step.spec)
    return tuple(found)


def _perform(
    steps: Sequence[Step], levels: Sequence[Level], memory: Mapping[int, Doubles], rounds: tuple[int, ...]
) -> None:
    """Execute the nest that :func:`_nested` makes."""
    depth = len(rounds)
    inner: list[Step] = []
    for step in (*steps, None):
        if step is not None and len(step.levels) > depth:
            inner.append(step)
            continue
        for number in range(levels[depth].count if inner else 0):
            _perform(inner, levels, memory, (*rounds, number))
        inner = []
        if step is not None:
            step.perform(memory, rounds)


def windows(source: Random) -> RandomProgram:
    """One to three operations on windows of arguments, several of one argument, addresses as symbols or baked."""
    return _program(source, 0)


def loops(source: Random) -> RandomProgram:
    """The same inside of one to three loops, around tiles that operands follow or not."""
    return _program(source, source.choice([1, 1, 2, 2, 3]))
