"""Programs with loops written by hand: every member works on one tile of one stick per core."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spyrec.bundle.program import (
    Add,
    AffineApply,
    AffineMap,
    ArgumentExtract,
    Constant,
    For,
    InputArgument,
    Program,
    SdscExecute,
    Statement,
)
from spyrec.bundle.superdsc import SuperDsc
from spyrec.emulator.device import EmulatedDevice
from spyrec.hardware.target import STICK_BYTES
from spyrec.runtime.device import NO_VALUES, ArgumentTable, LaunchStats, TableEntry
from spyrec.runtime.observer import Execution, ExecutionObserver
from tests.emulator.builders import DL16, Operation, Tensor, superdsc_of

Words = npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Tile:
    """An operand: its argument, its tile where no loop has advanced, and the loops (by depth) that advance it."""

    argument: int
    first: tuple[int, ...]
    advances: frozenset[int]


@dataclass(frozen=True, slots=True)
class Member:
    """An operation on tiles, the last one stored, at some depth of the nest: before the inner loop, or after it."""

    op: str
    tiles: tuple[Tile, ...]
    depth: int
    is_after: bool = False


@dataclass(frozen=True, slots=True)
class LoopProgram:
    """A nest of loops over tiles ``extents`` of every argument; ``bounds``: per loop lower bound, upper bound, step.

    ``value_loop``: a loop whose upper bound is the parameter ``S_value`` (its bound here is then the largest).
    """

    cores: int
    extents: tuple[int, ...]
    bounds: tuple[tuple[int, int, int], ...]
    members: tuple[Member, ...]
    arguments: int
    value_loop: int | None = None

    def strides(self) -> list[int]:
        """Bytes from tile to tile along each dim."""
        return [STICK_BYTES * self.cores * math.prod(self.extents[d + 1 :]) for d in range(len(self.extents))]

    def superdsc(self, member: Member) -> SuperDsc:
        dims = [f"r{d}" for d in range(len(self.extents))]
        tensor = Tensor(("c", *reversed(dims)), "c")
        operation = Operation(
            member.op, {"c": (64 * self.cores, self.cores), **dict.fromkeys(dims, (1, 1))}, [tensor] * len(member.tiles)
        )
        made = superdsc_of(operation)
        gaps = {dim: extent - 1 for dim, extent in zip(dims, self.extents)}
        operands = [
            replace(
                operand,
                back_gap=gaps,
                is_symbolic=True,
                start_addresses=tuple(-1 - core - self.cores * t for core in range(self.cores)),
            )
            for t, operand in enumerate(made.operands)
        ]
        return replace(made, operands=tuple(operands))

    def table(self) -> ArgumentTable:
        size_bytes = STICK_BYTES * self.cores * math.prod(self.extents)
        entries = tuple(
            TableEntry(f"arg{i}", i, (*self.extents, self.cores, 64), DL16, 0, size_bytes)
            for i in range(self.arguments)
        )
        maxima = {} if self.value_loop is None else {"S_value": self.bounds[self.value_loop][1]}
        return ArgumentTable(entries, 0, maxima)

    def program(self) -> Program:
        names = [f"arg_{i}_base_addr" for i in range(self.arguments)]
        head: list[Statement] = [ArgumentExtract(f"arg_{i}", name) for i, name in enumerate(names)]
        for d, (low, high, step) in enumerate(self.bounds):
            head += [Constant(f"low{d}", low), Constant(f"step{d}", step)]
            head.append(ArgumentExtract("S", "S_value") if d == self.value_loop else Constant(f"high{d}", high))
        maps: list[AffineMap] = []
        body: tuple[Statement, ...] = ()
        for depth in reversed(range(len(self.bounds))):
            before, after = (
                [s for k, m in enumerate(self.members) if (m.depth, m.is_after) == (depth, late)
                 for s in self._call(k, m, head, maps)]
                for late in (False, True)
            )  # fmt: skip
            upper = "S" if depth == self.value_loop else f"high{depth}"
            body = (For(f"i{depth}", f"low{depth}", upper, f"step{depth}", (*before, *body, *after)),)
        if self.value_loop is not None:
            names.append("S_value")
        return Program(tuple(maps), tuple(map(InputArgument, names)), (*head, *body))

    def _call(self, number: int, member: Member, head: list[Statement], maps: list[AffineMap]) -> list[Statement]:
        strides = self.strides()
        statements: list[Statement] = []
        names: list[str] = []
        for t, tile in enumerate(member.tiles):
            steps = [strides[d] // self.bounds[d][2] if d in tile.advances else 0 for d in range(member.depth + 1)]
            maps.append(AffineMap(f"m{number}_{t}", tuple(steps)))
            start = sum(first * stride for first, stride in zip(tile.first, strides))
            start -= sum(step * low for step, (low, _, _) in zip(steps, self.bounds))
            for core in range(self.cores):
                name = f"a{number}_{t}_{core}"
                head.append(Constant(f"{name}o", start + STICK_BYTES * core))
                head.append(Add(f"{name}b", f"arg_{tile.argument}", f"{name}o"))
                dims = tuple(f"i{d}" for d in range(member.depth + 1))
                statements.append(AffineApply(name, f"m{number}_{t}", dims, f"{name}b"))
                names.append(name)
        ids = tuple(-1 - i for i in range(len(names)))
        return [*statements, SdscExecute(f"sdsc_{number}.json", tuple(names), ids)]


class Looker:
    """An observer that looks at nothing: under it every call is dispatched by itself."""

    def before(self, execution: Execution) -> None:
        """Look away."""

    def after(self, execution: Execution) -> None:
        """Look away."""


def launched(
    made: LoopProgram,
    contents: Sequence[Words],
    observer: ExecutionObserver | None = None,
    values: Mapping[str, int] = NO_VALUES,
) -> tuple[list[Words], LaunchStats]:
    """Return what the arguments hold after a launch that found ``contents`` in them, and its counters."""
    device = EmulatedDevice()
    files = {f"sdsc_{k}.json": made.superdsc(member) for k, member in enumerate(made.members)}
    loaded = device.load(made.program(), files, made.table())
    sizes = [entry.size_bytes for entry in made.table().entries]
    addresses = [device.allocate(size) for size in sizes]
    for address, size, words in zip(addresses, sizes, contents, strict=True):
        device.memory(address, size)[:] = words.view(np.uint8)
    stats = device.launch(loaded, addresses, None, observer, values=values)
    found = [device.memory(address, size).view(np.uint16).copy() for address, size in zip(addresses, sizes)]
    return found, stats
