"""The plan of a launch: loops, modes, and the iterations one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import product

from spyrec.bundle.manifest import Role
from spyrec.bundle.tile_contract import TileArgument, TileContract, WriteMode
from spyrec.dataclass import dataclass
from spyrec.runtime.errors import TileNotExpressible
from spyrec.runtime.launch.matching import is_reduction
from spyrec.runtime.launch.modes import tile_done, tile_starts
from spyrec.runtime.launch.offset_rule import Obstacle
from spyrec.runtime.launch.plan import (
    ArgumentPlan,
    Iteration,
    IterationOperand,
    LaunchCounts,
    LaunchPhase,
    LaunchTensor,
    LoopPlan,
    Mode,
    OperandHome,
    StageCopy,
)
from spyrec.runtime.launch.stage_copies import stage_copies

Index = tuple[int, ...]
Window = tuple[Index, Index]
"""Where a tile begins in a tensor, and its shape."""


@dataclass(frozen=True, slots=True)
class Part:
    """A program of a launch: the body, or a variant of it for tiles of other extents, and how it reaches them."""

    contract: TileContract
    arguments: tuple[ArgumentPlan, ...]


@dataclass(frozen=True, slots=True)
class TilePlan:
    """Everything a launch enqueues, as data: hashable, made without touching a device.

    ``parts``: by the elements that an iteration covers along each loop, the program and the modes.
    """

    loops: tuple[LoopPlan, ...]
    tensors: tuple[LaunchTensor, ...]
    parts: tuple[tuple[Index, Part], ...]

    @property
    def body(self) -> Part:
        """The program of whole tiles."""
        return self.parts[0][1]

    @property
    def total_iterations(self) -> int:
        """How often a body runs."""
        total = 1
        for loop in self.loops:
            total *= loop.trips
        return total

    @property
    def scratch_bytes(self) -> tuple[int, ...]:
        """Per argument the bytes of its scratch tile, 0 where it is not staged."""
        by_part = [[plan.scratch_bytes for plan in part.arguments] for _, part in self.parts]
        return tuple(max(column) for column in zip(*by_part, strict=True))

    @property
    def sum_scratch_bytes(self) -> tuple[int, ...]:
        """Per argument the bytes of the part of a result that one iteration computes; 0 where there is none."""
        has_sums = self.body.contract.reduction is not None and any(map(is_reduction, self.loops))
        return tuple(
            argument.layout.nbytes if has_sums and argument.is_written else 0
            for argument in self.body.contract.arguments
        )

    @property
    def accumulator_bytes(self) -> tuple[int, ...]:
        """Per argument the bytes of what its parts are joined in; 0 where there is none."""
        around = self.body.contract.reduction
        if around is None or not around.accumulators:
            return self.sum_scratch_bytes
        sizes = iter(around.accumulators)
        return tuple(next(sizes).layout.nbytes if size else 0 for size in self.sum_scratch_bytes)

    def iterations(self) -> Iterator[Iteration]:
        """Yield what is run, in the order of the stream: row-major over the loops."""
        return _Walk(self).iterations()

    def _repr_html_(self) -> str:
        """Return what a notebook shows: counts, loops, and how each argument reaches its tiles."""
        from spyrec.runtime.launch.plan_html import tile_plan_html  # late: notebooks alone ask

        return tile_plan_html(self)

    @property
    def counts(self) -> LaunchCounts:
        """What the launch enqueues, counted over all iterations."""
        programs = copies = staged = 0
        for iteration in self.iterations():
            programs += 1
            moved = (*iteration.gathers, *iteration.scatters)
            copies += len(moved)
            staged += sum(copy.size_bytes for copy in moved)
        has_correction = self.body.contract.needs_correction
        host_operations, blocks = (programs, 2 * programs) if has_correction else (0, programs)
        return LaunchCounts(self.total_iterations, host_operations, blocks, copies, staged)


@dataclass(slots=True)
class _Walk:
    """One pass over the iterations; ``_held``: by staged argument, the window that its scratch tile holds."""

    plan: TilePlan
    _parts: Mapping[Index, Part] = field(init=False)
    _sums: list[int] = field(init=False)
    _held: dict[int, Window] = field(default_factory=dict[int, Window])

    def __post_init__(self) -> None:
        self._parts = dict(self.plan.parts)
        self._sums = [place for place, loop in enumerate(self.plan.loops) if is_reduction(loop)]

    def iterations(self) -> Iterator[Iteration]:
        indices = product(*(range(loop.trips) for loop in self.plan.loops))
        index = next(indices)
        for following in indices:
            yield from self._around(index, following)
            index = following
        yield from self._around(index, None)

    def _part(self, index: Index) -> Part:
        loops = zip(self.plan.loops, index, strict=True)
        return self._parts[tuple(loop.size(number) for loop, number in loops)]

    def _around(self, index: Index, following: Index | None) -> Iterator[Iteration]:
        part = self._part(index)
        around = part.contract.reduction
        if around is None or not self._sums:
            yield self._body(index, part, following)
            return
        written = [number for number, argument in enumerate(part.contract.arguments) if argument.is_written]
        sums = tuple(IterationOperand(number, OperandHome.ACCUMULATOR, 0) for number in written)
        partials = tuple(IterationOperand(number, OperandHome.PARTIAL, 0) for number in written)
        if self._is_first(index):
            yield Iteration(index, LaunchPhase.INIT, around.init, sums)
        yield self._body(index, part, following)
        yield Iteration(index, LaunchPhase.COMBINE, around.combine, (*sums, *partials))
        if all(index[place] == self.plan.loops[place].trips - 1 for place in self._sums):
            results = tuple(self._operand(number, index, part) for number in written)
            scatters = self._copies(written, index, part, leaves_done=True)
            yield Iteration(index, LaunchPhase.PUBLISH, around.publish, (*sums, *results), (), scatters)

    def _is_first(self, index: Index) -> bool:
        return all(index[place] == 0 for place in self._sums)

    def _body(self, index: Index, part: Part, following: Index | None) -> Iteration:
        contract = part.contract
        # a result of one part is that of the first one
        program = contract.first if contract.first is not None and self._is_first(index) else contract.program
        has_sums = contract.reduction is not None and bool(self._sums)
        operands = tuple(
            IterationOperand(number, OperandHome.PARTIAL, 0)
            if has_sums and argument.is_written
            else self._operand(number, index, part)
            for number, argument in enumerate(contract.arguments)
        )
        staged = [number for number, plan in enumerate(part.arguments) if plan.mode is Mode.STAGED]
        for number in set(self._held) - set(staged):  # this part works on the tensor itself
            del self._held[number]
        fresh = [number for number in staged if self._window(number, index) != self._held.get(number)]
        self._held.update((number, self._window(number, index)) for number in fresh)
        done = [number for number in staged if following is None or not self._stays(number, following)]
        gathered = [number for number in fresh if self._is_read(contract.arguments[number], index)]
        scattered = [number for number in done if contract.arguments[number].is_written and not has_sums]
        gathers = self._copies(gathered, index, part)
        scatters = self._copies(scattered, index, part, leaves_done=True)
        return Iteration(index, LaunchPhase.BODY, program, operands, gathers, scatters)

    def _stays(self, number: int, following: Index) -> bool:
        """Whether the next iteration goes on with what a scratch tile holds."""
        is_staged = self._part(following).arguments[number].mode is Mode.STAGED
        return is_staged and self._window(number, following) == self._held[number]

    def _is_read(self, argument: TileArgument, index: Index) -> bool:
        """Whether a program needs what is there: of a result, where it adds a further part to it."""
        return argument.role is not Role.OUTPUT or (
            argument.write is WriteMode.ACCUMULATE and not self._is_first(index)
        )

    def _operand(self, number: int, index: Index, part: Part) -> IterationOperand:
        plan = part.arguments[number]
        if plan.mode is Mode.STAGED:
            return IterationOperand(number, OperandHome.SCRATCH, 0)
        moved = (
            steps.offset_bytes(at, loop.trips)
            for steps, at, loop in zip(plan.loops, index, self.plan.loops, strict=True)
        )
        return IterationOperand(number, OperandHome.TENSOR, plan.base_bytes + sum(moved))

    def _window(self, number: int, index: Index) -> Window:
        argument = self._part(index).contract.arguments[number]
        return tile_starts(argument, self.plan.tensors[number], self.plan.loops, index), argument.shape

    def _copies(self, numbers: list[int], index: Index, part: Part, leaves_done: bool = False) -> tuple[StageCopy, ...]:
        found: list[StageCopy] = []
        for number in numbers:
            plan, argument, tensor = part.arguments[number], part.contract.arguments[number], self.plan.tensors[number]
            if plan.mode is not Mode.STAGED:
                continue
            starts, _ = self._window(number, index)
            done = tile_done(argument, tensor, self.plan.loops, index) if leaves_done else None
            copies = stage_copies(number, (tensor.layout, argument.layout), starts, plan.base_bytes, done)
            if isinstance(copies, Obstacle):
                fact = f'the tile of "{argument.name}" at {list(starts)} cannot be copied: {copies.value}'
                raise TileNotExpressible(fact)
            found.extend(copies)
        return tuple(found)
