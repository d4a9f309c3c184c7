"""What executing needs beside the program: the numerics, and the SuperDSC's operands with their addressing."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import SuperDsc
from spyrec.emulator.chain import Chain
from spyrec.emulator.geometry import Addressing, DenseGeometry, Nest, OperandGeometry, build_nests, cut_runs
from spyrec.emulator.kernels.copies import run_copy
from spyrec.emulator.numerics import Codec, Numerics, codec_of
from spyrec.emulator.operations.bound_calls import BoundCalls, KernelStep
from spyrec.emulator.rules.superdsc import input_positions
from spyrec.runtime.threads import Threads

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Patterns = npt.NDArray[np.unsignedinteger]

NO_TABLE = np.zeros(0, np.uint16)

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

    def codec(self, position: int) -> Codec:
        """Return the stored form of an operand."""
        return codec_of(self.superdsc.operands[position].data_format, self.numerics)

    def step_bytes(self, position: int) -> int:
        """Return the emulated bytes between neighbours in a stick."""
        return self.geometries[position].element_bytes * self.numerics.expansion

    def nests(self, positions: tuple[int, ...]) -> list[Nest]:
        """Return the loop nests over the box of one core, in emulated bytes."""
        return self.scaled(build_nests(self.extents, [self.geometries[t] for t in positions]))

    def scaled(self, nests: list[Nest]) -> list[Nest]:
        """Return nests over device bytes as nests over emulated bytes."""
        if self.numerics.expansion == 1:
            return nests
        return [self._scaled(nest) for nest in nests]

    def _scaled(self, nest: Nest) -> Nest:
        loops = nest.loops.copy()
        loops[:, 1:] *= self.numerics.expansion
        return Nest(loops, nest.offsets * self.numerics.expansion)

    def offsets(self, position: int, dim: str) -> Integers:
        """Return the emulated byte offsets along a dim over one core's box."""
        coordinates = np.arange(self.extents[dim], dtype=np.int64)
        return self.geometries[position].offsets(dim, coordinates) * self.numerics.expansion

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
                found += self.geometries[position].offsets(dim, coordinates) * self.numerics.expansion
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
class DataReads:
    """Device memory read at places that depend on data: distinct sticks over all cores, and summed over cores."""

    hbm_read_bytes: int = 0
    hbm_core_read_bytes: int = 0


NO_DATA_READS = DataReads()


class Executable(ABC):
    """One SuperDSC, planned; ``run`` executes it with operand t of core c at the emulated address ``starts[t, c]``."""

    _latest: tuple[Integers, Chain | None, BoundCalls] | None = None

    @abstractmethod
    def run(self, starts: Integers) -> None:
        """Execute once."""

    @property
    def is_bindable(self) -> bool:
        """Whether kernels alone do what ``run`` does, so that the compiled driver of loops may."""
        return False

    def bound(self, starts: Integers) -> BoundCalls:
        """Return the steps that do what ``run`` does with operands at ``starts`` or moved, where it is bindable."""
        raise NotImplementedError

    def bound_again(self, starts: Integers, chain: Chain | None) -> BoundCalls:
        """Return :meth:`bound`, or the steps of each part of a chain; the latest ones where the starts are: those of a
        launch are as a rule the next one's.
        """
        latest = self._latest
        if latest is None or latest[1] is not chain or not np.array_equal(latest[0], starts):
            bound = self.bound(starts) if chain is None else self._bound_parts(starts, chain)
            latest = self._latest = starts.copy(), chain, bound
        return latest[2]

    def _bound_parts(self, starts: Integers, chain: Chain) -> BoundCalls:
        parts = chain.positions(self.core_ids)
        return BoundCalls.of_parts([self.part_steps(starts, cores) if len(cores) else [] for cores in parts])

    @property
    def core_ids(self) -> Sequence[int]:
        """The cores that the operation uses, where it is separable."""
        raise NotImplementedError

    @property
    def is_separable(self) -> bool:
        """Whether kernels alone do each core's part, so that threads may do some cores' (:meth:`part_steps`)."""
        return False

    def part_steps(self, starts: Integers, cores: Integers) -> Sequence[KernelStep]:
        """Return the steps of the cores at these positions, which one thread does in order."""
        raise NotImplementedError

    @property
    def has_core_parts(self) -> bool:
        """Whether kernels alone do each core's part, and no core waits for what another one computes."""
        return False

    def core_steps(self, setting: Setting, starts: Integers) -> Sequence[KernelStep]:
        """Return the steps of the operation on boxes of ``setting``, a core's or equal blocks of it, where possible.

        ``starts``: of every box, core by core.  Tasks are numbered box by box, equally many for each.
        """
        raise NotImplementedError

    @property
    def data_reads(self) -> DataReads:
        """What the latest execution read beyond the counters known at load."""
        return NO_DATA_READS


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
        device = _Scaled(self.setting.geometries[self.position], self.setting.numerics.expansion)
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

    @property
    def stick_dim(self) -> str | None:
        return self.geometry.stick_dim

    @property
    def stick_size(self) -> int:
        return self.geometry.stick_size

    def offset(self, dim: str, coordinate: int) -> int:
        return self.expansion * self.geometry.offset(dim, coordinate)

    def unit_step(self, dim: str, unit: int) -> int:
        return self.expansion * self.geometry.unit_step(dim, unit)
