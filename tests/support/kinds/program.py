"""What every random program of OpSpecs is: operations, what its arguments hold, and what each has to hold afterwards.

A kind (``tests/support/kinds``) makes such programs from a seed; :func:`hold` takes one through the files and executes
it by both engines: bytes and counters are equal, elements are NumPy's, and no other stick of memory has changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
import numpy.typing as npt

from spyrec.bundle.dialects import AUGUST_2026, JUNE_2026
from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.program import Program
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.codegen.emit_opspecs import CodegenOptions, EmittedProgram, emit_opspecs
from spyrec.codegen.opspec import AllocationKind, LoopSpec, OpSpec, OpSpecFile, TensorArgument
from spyrec.diagnostics import DiagnosticSink
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import SEGMENT_BYTES, STICK_BYTES
from spyrec.runtime.device import ArgumentTable, LaunchStats, TableEntry
from tests.conformance.op_runner import Operand, Places, Words, decoded, encoded, places
from tests.support.both_engines import Bytes, Launched, differing

Doubles = npt.NDArray[np.float64]

OWN = CodegenOptions(dialect=AUGUST_2026)
EXACT = CodegenOptions(dialect=AUGUST_2026, is_exact=True)
BAKED = CodegenOptions(dialect=AUGUST_2026, symbolic_args=False, unroll_loops=True)
OF_JUNE = CodegenOptions(dialect=JUNE_2026, is_exact=True)
BAKED_OF_JUNE = CodegenOptions(dialect=JUNE_2026, is_exact=True, symbolic_args=False, unroll_loops=True)

_POISON = 0x7F
ROUNDING = {DeviceFormat.SEN169_FP16: 2.0**-10, DeviceFormat.IEEE_FP32: 2.0**-23}
"""Relative error of one rounding to the nearest number of a format."""


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements of an argument: where each of them lies in its buffer, and what it is.

    Of a result, ``relative`` and ``absolute`` say how far off it may be; NaN stands for what is left open.
    """

    where: Places
    values: Doubles
    relative: float = 0.0
    absolute: Doubles | float = 0.0

    def padding(self, device_size: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Return which sticks of a buffer hold none of the elements, by device coordinates but the last."""
        free = np.ones(tuple(device_size[:-1]), np.bool_)
        free[self.where[:-1]] = False
        return free


@dataclass(frozen=True, slots=True)
class RandomProgram:
    """One program: its operations, its arguments before and after, by their index.

    ``values``: of dynamic sizes.  ``traffic``: bytes of device memory that are read and written, summed over all
    executions, where a kind counts them by brute force.
    """

    specs: tuple[OpSpec | LoopSpec, ...]
    given: Mapping[int, Elements]
    wanted: Mapping[int, Elements]
    options: CodegenOptions = OWN
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    traffic: tuple[int, int] | None = None

    @property
    def arguments(self) -> dict[int, TensorArgument]:
        """Every argument of the program as the first operation sees it that uses it, by index."""
        found: dict[int, TensorArgument] = {}
        for item in _operands(self.specs):
            if item.allocation.kind is AllocationKind.HBM and item.arg_index is not None:
                found.setdefault(item.arg_index, item)
        return dict(sorted(found.items()))

    @property
    def pool_bytes(self) -> int:
        """Bytes of the pool that its operations touch."""
        pool = [item for item in _operands(self.specs) if item.allocation.kind is AllocationKind.POOL]
        return max((item.allocation.start_bytes + _size_bytes(item) for item in pool), default=0)

    def emitted(self) -> EmittedProgram:
        """Return the files of the program."""
        return emit_opspecs(OpSpecFile(symbolic_args=True, unroll_loops=False, specs=self.specs), self.options)

    def table(self) -> ArgumentTable:
        """Return the arguments that the program is launched with, each in a segment of its own."""
        shift = 1 if self.pool_bytes else 0
        entries = tuple(
            TableEntry(f"t{index}", index, item.device_size, item.device_dtype, (index + shift) * SEGMENT_BYTES,
                       _size_bytes(item))
            for index, item in self.arguments.items()
        )  # fmt: skip
        return ArgumentTable(entries, self.pool_bytes)

    def memory(self, index: int) -> Bytes:
        """Return what an argument holds before: its elements, and 0x7F in every other byte."""
        argument = self.arguments[index]
        memory = np.full(_size_bytes(argument), _POISON, np.uint8)
        if index in self.given:
            elements = self.given[index]
            words(memory, argument)[elements.where] = encoded(elements.values.reshape(-1), argument.device_dtype)
        return memory

    def launched(self, program: Program, superdscs: Mapping[str, SuperDsc]) -> Launched:
        """Return a launch of these files on the arguments."""
        contents = {index: self.memory(index) for index in self.arguments}
        return Launched(program, superdscs, self.table(), contents, self.values)


def _operands(specs: Sequence[OpSpec | LoopSpec]) -> Iterator[TensorArgument]:
    for spec in specs:
        yield from _operands(spec.body) if isinstance(spec, LoopSpec) else spec.args


def _size_bytes(argument: TensorArgument) -> int:
    return STICK_BYTES * math.prod(argument.device_size[:-1])


def words(memory: Bytes, argument: TensorArgument) -> Words:
    """Return the memory of an argument as patterns of its format, by device coordinates."""
    return memory.view(f"u{STICK_BYTES // argument.device_size[-1]}").reshape(argument.device_size)


def hold(case: RandomProgram, change: Callable[[EmittedProgram], EmittedProgram] | None = None) -> None:
    """Execute what is read back from the written files; both engines and NumPy agree, or this raises.

    ``change``: what is done to the program first, to see that it would be noticed.
    """
    emitted = case.emitted()
    emitted = emitted if change is None else change(emitted)
    program = parse_program(print_program(emitted.program))
    assert program == emitted.program
    launched = case.launched(program, {name: _read_back(item) for name, item in emitted.superdscs.items()})
    fast, stats = launched.memory("fast")
    defined, other_stats = launched.memory("reference")
    assert differing(fast, defined) == {}
    assert stats == other_stats
    _hold_memory(case, fast)
    _hold_traffic(case, stats)


def _read_back(superdsc: SuperDsc) -> SuperDsc:
    sink, text = DiagnosticSink(), to_bytes(superdsc)
    found = parse_superdsc(text + b" ", None, sink)  # text that was written only is not known as read
    assert sink.diagnostics == []
    assert to_bytes(found) == text
    return found


def _hold_memory(case: RandomProgram, held: Mapping[str, Bytes]) -> None:
    for index, argument in case.arguments.items():
        after = words(held[f"argument {index}"], argument)
        before = words(case.memory(index), argument)
        wanted = case.wanted.get(index)
        if wanted is None:
            assert np.array_equal(after, before), f"argument {index} has changed"
            continue
        assert wanted.values.size, f"nothing is wanted of argument {index}"
        got = decoded(after[wanted.where], argument.device_dtype).reshape(wanted.values.shape)
        off = np.abs(got - wanted.values) - wanted.relative * np.abs(wanted.values) - wanted.absolute
        wrong = ~((off <= 0) | np.isnan(wanted.values))
        assert not wrong.any(), f"argument {index}: {got[wrong][:4]}, wanted {wanted.values[wrong][:4]}"
        free = wanted.padding(argument.device_size)
        assert np.array_equal(after[free], before[free]), f"argument {index} has changed beside its elements"


def _hold_traffic(case: RandomProgram, stats: LaunchStats) -> None:
    if case.traffic is not None:
        read = sum(item.hbm_read_bytes for item in stats.operations)
        written = sum(item.hbm_write_bytes for item in stats.operations)
        assert (read, written) == case.traffic


# --- what kinds draw --------------------------------------------------------------------------------------------------


def elements_of(argument: TensorArgument, symbols: Sequence[str], sizes: Mapping[str, int]) -> Places:
    """Return the device coordinates of an operand's elements, in the order of an array over these symbols."""
    return places(Operand(tuple(symbols), (), None), argument.device_coordinates, sizes)


def generator_of(source: Random) -> np.random.Generator:
    return np.random.default_rng(source.randrange(1 << 30))


def sixteenths(generator: np.random.Generator, shape: Sequence[int]) -> Doubles:
    """Return sixteenths up to 3: every 16- and 32-bit format holds them, and small sums of them."""
    return np.asarray(generator.integers(-48, 49, tuple(shape)), np.float64) / 16


def stored(values: Doubles, data_format: DeviceFormat) -> Doubles:
    """Return values as the format holds them: rounded once."""
    if data_format is DeviceFormat.IEEE_FP32:
        return values.astype(np.float32).astype(np.float64)
    return dlfloat.decode(dlfloat.encode(values.reshape(-1))).astype(np.float64).reshape(values.shape)


def a_cut(source: Random, count: int, most: int = 32) -> int:
    """Return a number of equal slices of ``count`` things, often one."""
    return source.choice([cut for cut in range(1, min(count, most) + 1) if count % cut == 0])


def cuts_of(source: Random, counts: Mapping[str, int], most: int = 32) -> dict[str, int]:
    """Return slices of each dim, of any that the counts allow, at most ``most`` in all."""
    found: dict[str, int] = {}
    left = most
    for symbol in source.sample(list(counts), len(counts)):
        found[symbol] = a_cut(source, counts[symbol], left) if source.random() < 0.6 else 1
        left //= found[symbol]
    return {symbol: found[symbol] for symbol in counts}
