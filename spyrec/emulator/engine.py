"""How one SuperDSC is executed: its operands with their addressing, and the steps of kernels that move them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum, auto
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import SuperDsc
from spyrec.dataclass import dataclass
from spyrec.emulator.chain import CoreParts
from spyrec.emulator.choices import Numerics, expansion_of
from spyrec.emulator.geometry import Addressing, DenseGeometry, Nest, OperandGeometry, build_nests, cut_runs
from spyrec.emulator.kernels.copies import run_copy
from spyrec.emulator.kernels.nests import NO_TABLE
from spyrec.emulator.numerics import Codec, codec_of
from spyrec.emulator.operations.bound_calls import BoundCalls
from spyrec.emulator.rules.superdsc import input_positions
from spyrec.runtime.threads import Threads

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Patterns = npt.NDArray[np.unsignedinteger]

_POINTS_AT_ONCE = 1 << 16  # of which offsets are worked out, some 2 MB


@dataclass(frozen=True, slots=True)
class Setting:
    """One SuperDSC ready to be planned: operands' addressing and stored forms, extents per core that are executed.

    ``deferred_rules``: rules that sanitizers watch while it runs, which therefore do not refuse it.
    """

    file: str
    superdsc: SuperDsc
    geometries: tuple[OperandGeometry, ...]
    extents: Mapping[str, int]
    numerics: Numerics
    threads: Threads
    deferred_rules: frozenset[int] = frozenset()

    @property
    def inputs(self) -> tuple[int, ...]:
        """Positions of the inputs, in the operation's order."""
        return input_positions(self.superdsc)

    @property
    def output(self) -> int:
        """Position of the output."""
        return self.superdsc.compute.outputs[0]

    @property
    def cores(self) -> int:
        """Cores used."""
        return len(self.superdsc.core_ids)

    @property
    def expansion(self) -> int:
        """Emulated bytes per device byte."""
        return expansion_of(self.numerics)

    def codec(self, position: int) -> Codec:
        """Return the stored form of an operand."""
        return codec_of(self.superdsc.operands[position].data_format, self.numerics)

    def step_bytes(self, position: int) -> int:
        """Return the emulated bytes between neighbours in a stick."""
        return self.geometries[position].element_bytes * self.expansion

    def nests(self, positions: tuple[int, ...]) -> list[Nest]:
        """Return the loop nests over the box of one core, in emulated bytes."""
        return self.scaled(build_nests(self.extents, [self.geometries[t] for t in positions]))

    def scaled(self, nests: list[Nest]) -> list[Nest]:
        """Return nests over device bytes as nests over emulated bytes."""
        if self.expansion == 1:
            return nests
        return [self._scaled(nest) for nest in nests]

    def _scaled(self, nest: Nest) -> Nest:
        loops = nest.loops.copy()
        loops[:, 1:] *= self.expansion
        return Nest(loops, nest.offsets * self.expansion)

    def offsets(self, position: int, dim: str) -> Integers:
        """Return the emulated byte offsets along a dim over one core's box."""
        coordinates = np.arange(self.extents[dim], dtype=np.int64)
        return self.geometries[position].offsets(dim, coordinates) * self.expansion

    def runs(self, position: int, dims: Sequence[str]) -> Integers:
        """Return the adjacent runs of the points of dims, the last one varying fastest, as ``adjacent_runs`` does.

        Offsets are worked out some at a time: all of them take four times the memory of the elements.
        """
        total, step = math.prod(self.extents[dim] for dim in dims), self.step_bytes(position)
        firsts: list[Integers] = []
        offsets: list[Integers] = []
        following = None  # the offset of the next element where it goes on with the run
        for first in range(0, total, _POINTS_AT_ONCE):
            rest = np.arange(first, min(total, first + _POINTS_AT_ONCE))
            found = np.zeros(len(rest), np.int64)
            for dim in reversed(dims):
                rest, coordinates = np.divmod(rest, self.extents[dim])
                found += self.geometries[position].offsets(dim, coordinates) * self.expansion
            begins = np.diff(found, prepend=found[0]) != step
            begins[0] = following != found[0]
            following = int(found[-1]) + step
            firsts.append(first + np.flatnonzero(begins))
            offsets.append(found[begins])
        return cut_runs(np.concatenate(firsts), np.concatenate(offsets), total, step)

    def extends(self, position: int, dim: str) -> bool:
        """Whether an operand extends along a dim."""
        return dim in self.geometries[position].stride_sticks


@dataclass(frozen=True, slots=True)
class DataTraffic:
    """Device memory moved at places that depend on data: distinct sticks of all cores, and reads summed over cores."""

    hbm_read_bytes: int = 0
    hbm_core_read_bytes: int = 0
    hbm_write_bytes: int = 0

    def __add__(self, other: DataTraffic) -> DataTraffic:
        return DataTraffic(
            self.hbm_read_bytes + other.hbm_read_bytes,
            self.hbm_core_read_bytes + other.hbm_core_read_bytes,
            self.hbm_write_bytes + other.hbm_write_bytes,
        )


NO_DATA_TRAFFIC = DataTraffic()


class Doers(Enum):
    """Who does the tasks of steps."""

    THREADS = auto()
    """All threads share the tasks of a step before the next one begins."""

    ONE_THREAD = auto()
    """One thread does all steps of its cores in order, without waiting for those of others."""

    BOX_BY_BOX = auto()
    """One thread does all steps of a box before the next box: tasks are numbered box by box, equally many for each."""


@dataclass(frozen=True, slots=True, eq=False)
class StepRequest:
    """Which boxes steps are to do: operand t of box b lies at the emulated address ``starts[t, b]``.

    ``setting``: that of a box, a core's or that of equal blocks of it; boxes go core by core.  ``cores``: positions of
    the cores that the boxes belong to, in order.
    """

    setting: Setting
    starts: Integers
    cores: Integers
    doers: Doers

    @classmethod
    def whole(cls, setting: Setting, starts: Integers) -> StepRequest:
        """Ask for the boxes of all cores."""
        return cls(setting, starts, np.arange(setting.cores), Doers.THREADS)

    @classmethod
    def part(cls, setting: Setting, starts: Integers, cores: Integers) -> StepRequest:
        """Ask for the boxes of some of the cores, ``starts`` being those of all."""
        return cls(setting, np.ascontiguousarray(starts[:, cores]), cores, Doers.ONE_THREAD)

    @classmethod
    def boxes(cls, setting: Setting, starts: Integers) -> StepRequest:
        """Ask for equally many boxes of each core."""
        cores = np.repeat(np.arange(setting.cores), starts.shape[1] // setting.cores)
        return cls(setting, starts, cores, Doers.BOX_BY_BOX)


class JoinedCalls(Protocol):
    """Several dispatches that are done at once."""

    def run(self, moved: Integers, threads: Threads) -> bool:
        """Do them, operand t ``moved[t]`` past where they were bound; ``False`` and nothing if one at a time must."""
        ...


class Executable(ABC):
    """What is dispatched at once, planned: of one SuperDSC :class:`KernelExecutable`, or the fallback
    (``operations/host.py``); of several that are fused, ``fuse.FusedExecutable``.
    """

    @abstractmethod
    def run(self, starts: Integers) -> None:
        """Execute once, operand t of core c at the emulated address ``starts[t, c]``."""

    @property
    def is_separable(self) -> bool:
        """Whether kernels do it and no core waits for what another one computes: any boxes may be asked for."""
        return False

    @property
    def joins(self) -> bool:
        """Whether dispatches that follow each other may be done at once, by ``KernelExecutable.joined``."""
        return False

    @property
    def data_traffic(self) -> DataTraffic:
        """What the latest execution moved beyond the counters known at load."""
        return NO_DATA_TRAFFIC


class KernelExecutable(Executable):
    """One SuperDSC that kernels alone compute: :meth:`steps` says what it does, once, to all who execute it.

    These are the compiled driver of loops, for all cores or for a chain's part of them, fusion, and :meth:`run`.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._bound: dict[CoreParts | None, tuple[Integers, BoundCalls]] = {}

    @abstractmethod
    def steps(self, request: StepRequest) -> BoundCalls:
        """Return the steps that do the operation on the boxes of a request, or on these moved."""

    def joined(self, _starts: Integers, _moves: Integers) -> JoinedCalls | None:
        """Return what does dispatches that follow each other at once, each moved by a row; ``None`` if nothing does."""
        return None

    def run(self, starts: Integers) -> None:
        """Execute once.  Steps stay bound where a run began: binding takes several times as long as being moved."""
        origin, calls = self._bound.get(None, (starts, None))
        moved = movement(origin, starts)
        if calls is None or moved is None:
            calls, moved = self.bound(starts), np.zeros(len(starts), np.int64)
        calls.run(moved, self.setting.threads)

    def bound(self, starts: Integers, parts: CoreParts | None = None) -> BoundCalls:
        """Return the steps of all cores, or those of each part of them; the latest ones where the starts are: those
        of a launch are as a rule the next one's.
        """
        origin, calls = self._bound.get(parts, (starts, None))
        if calls is None or not np.array_equal(origin, starts):
            calls = self._bound_now(starts, parts)
            self._bound[parts] = starts.copy(), calls
        return calls

    def _bound_now(self, starts: Integers, parts: CoreParts | None) -> BoundCalls:
        if parts is None:
            return self.steps(StepRequest.whole(self.setting, starts))
        positions = parts.positions(self.setting.superdsc.core_ids)
        requests = [StepRequest.part(self.setting, starts, cores) if len(cores) else None for cores in positions]
        return BoundCalls.of_parts([() if item is None else self.steps(item).steps for item in requests])


def movement(origin: Integers, starts: Integers) -> Integers | None:
    """Return how far each operand is from where it was bound; ``None`` if not all cores' are equally far."""
    moved = starts - origin
    first = moved[:, :1]
    return np.ascontiguousarray(first[:, 0]) if (moved == first).all() else None


@dataclass(frozen=True, slots=True)
class Mover:
    """Moves patterns between a dense array ``[starts, *extents]`` and device memory."""

    setting: Setting
    position: int
    extents: Mapping[str, int]
    _known: dict[bool, list[Nest]] = field(default_factory=dict[bool, list[Nest]], init=False, compare=False)

    def _nests(self, *, store: bool) -> list[Nest]:
        if store not in self._known:
            self._known[store] = self._built_nests(store=store)
        return self._known[store]

    def _built_nests(self, *, store: bool) -> list[Nest]:
        dense = DenseGeometry.of(self.extents, self.setting.codec(self.position).word_bytes)
        device = _Scaled(self.setting.geometries[self.position], self.setting.expansion)
        order: list[Addressing] = [dense, device] if store else [device, dense]
        return build_nests(self.extents, order)

    def load(self, starts: Integers) -> Patterns:
        """Return the patterns at ``starts``: shape [starts, elements], the last dim of ``extents`` fastest."""
        count = int(np.prod(list(self.extents.values()), dtype=np.int64))
        result = np.empty((len(starts), count), self.setting.codec(self.position).carrier)
        self._move(starts, _line_addresses(result), self._nests(store=False))
        return result

    def store(self, starts: Integers, patterns: Patterns) -> None:
        """Store patterns of the form that :meth:`load` returns."""
        patterns = np.ascontiguousarray(patterns)
        self._move(_line_addresses(patterns), starts, self._nests(store=True))

    def _move(self, sources: Integers, targets: Integers, nests: list[Nest]) -> None:
        word_bytes = self.setting.codec(self.position).word_bytes
        for nest in nests:
            both = np.stack([sources + nest.offsets[0], targets + nest.offsets[1]])
            run_copy(word_bytes, NO_TABLE, both, nest.loops, 0, len(sources) * nest.outer_points)


def _line_addresses(array: Patterns) -> Integers:
    return array.ctypes.data + np.arange(array.shape[0], dtype=np.int64) * array.strides[0]


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A device operand in emulated bytes."""

    geometry: OperandGeometry
    expansion: int

    def breaks(self, dim: str) -> tuple[int, ...]:
        return self.geometry.breaks(dim)

    def offset(self, dim: str, coordinate: int) -> int:
        return self.expansion * self.geometry.offset(dim, coordinate)

    def unit_step(self, dim: str, unit: int) -> int:
        return self.expansion * self.geometry.unit_step(dim, unit)
