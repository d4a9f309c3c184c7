"""Random operations whose operands' rows an index names, with what NumPy makes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import numpy.typing as npt

from spyrec.bundle.dialects import AUGUST_2026
from spyrec.codegen.emit_opspecs import CodegenOptions, emit_opspecs
from spyrec.codegen.expression import parse_expression
from spyrec.codegen.opspec import AllocationKind, ArgumentAllocation, OpSpec, TensorArgument
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.runtime.device import ArgumentTable, TableEntry
from tests.codegen.builders import FP16, FP32, SEGMENT, file_of, space
from tests.conformance.op_runner import Operand, encoded, places
from tests.support.both_engines import Launched

Doubles = npt.NDArray[np.float64]
INT32 = DeviceFormat.IEEE_INT32
FUNCTIONS = {"identity": 1, "exp": 1, "neg": 1, "add": 2, "maximum": 2}


def launched(spec: OpSpec, contents: Mapping[int, npt.NDArray[np.uint8]], *, exact: bool) -> Launched:
    """Return a launch of one operation in the dialect of August, operand ``i`` being argument ``i``."""
    options = CodegenOptions(dialect=AUGUST_2026, is_exact=exact)
    emitted = emit_opspecs(file_of(spec, symbolic=True, unroll=False), options)
    entries = tuple(
        TableEntry(f"t{at}", at, arg.device_size, arg.device_dtype, at * SEGMENT, 128 * math.prod(arg.device_size[:-1]))
        for at, arg in enumerate(spec.args)
    )
    return Launched(emitted.program, emitted.superdscs, ArgumentTable(entries), contents)


@dataclass(frozen=True)
class IndexedOperation:
    """``index`` is over the symbols a and b, as many as it has; tables are over r, d and c, others over all but r.

    ``columns``: the index has one element per stick; ``outer``: the device axes of tables, outermost first.
    """

    op: str
    sizes: dict[str, int]
    rows: int
    rank: int
    columns: bool
    scatters: bool
    table_axes: tuple[str, ...]
    plain_axes: tuple[str, ...]
    data_format: DeviceFormat
    exact: bool
    splits: dict[str, int]
    seed: int

    @classmethod
    def random(cls, source: Random) -> IndexedOperation:
        rank = source.choice([0, 1, 1, 2, 2])
        symbols = ["a", "b"][:rank]
        sizes = {symbol: source.choice([1, 2, 5, 31, 32, 33, 40]) for symbol in symbols}
        columns = rank == 1 and source.random() < 0.3
        sizes |= {"d": source.choice([1, 2, 3])} if source.random() < 0.5 else {}
        sizes |= {"c": source.choice([1, 63, 64, 100, 200])}
        rest = [symbol for symbol in ("d", "c") if symbol in sizes]
        table_axes = source.sample(["r", *rest], len(rest) + 1)
        plain_axes = source.sample([*symbols, *rest], len(symbols) + len(rest))
        order = source.sample(list(sizes), len(sizes))
        exact = source.random() < 0.5 and not (rank == 0 and table_axes[-1] != "r")
        return cls(
            op=source.choice(list(FUNCTIONS)),
            sizes={symbol: sizes[symbol] for symbol in order},
            rows=source.choice([1, 2, 7, 50]),
            rank=rank,
            columns=columns,
            scatters=source.random() < 0.5,
            table_axes=tuple(table_axes),
            plain_axes=tuple(plain_axes),
            data_format=source.choice([FP16, FP16, FP32]),
            exact=exact,
            splits={order[0]: source.choice([1, 2])},
            seed=source.randrange(1 << 30),
        )

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols of the index, in the order of the iteration."""
        return tuple(symbol for symbol in self.sizes if symbol in ("a", "b")[: self.rank])

    @property
    def rest(self) -> tuple[str, ...]:
        return tuple(symbol for symbol in ("d", "c") if symbol in self.sizes)

    def _tensor(self, number: int, axes: Sequence[str]) -> TensorArgument:
        lanes = self.data_format.elements_per_stick or 0
        sizes = self.sizes | {"r": self.rows}
        form = {"c": f"floor(c/{lanes})", "r": "IndirectAccess(rows)"}
        extents = [-(-sizes[symbol] // lanes) if symbol == "c" else sizes[symbol] for symbol in axes]
        coordinates = [*(form.get(symbol, symbol) for symbol in axes), f"Mod(c, {lanes})"]
        # leading axes of one, as alignment gives them
        padding = max(0, 4 - len(axes))
        return self._argument(
            number, [*[1] * padding, *extents, lanes], ["0"] * padding + coordinates, self.data_format
        )

    @staticmethod
    def _argument(
        number: int, size: Sequence[int], coordinates: Sequence[str], data_format: DeviceFormat
    ) -> TensorArgument:
        at = ArgumentAllocation(AllocationKind.HBM, number * SEGMENT)
        parsed = tuple(map(parse_expression, coordinates))
        return TensorArgument(True, number, data_format, tuple(size), parsed, at, ends_in_padding=True)

    def _index(self) -> TensorArgument:
        sizes = [self.sizes[symbol] for symbol in ("a", "b")[: self.rank]]
        if self.rank == 0:
            form: tuple[list[int], list[str]] = [1, 1, 32], ["0", "0", "0"]
        elif self.columns:
            form = [1, sizes[0], 32], ["0", "a", "0"]
        elif self.rank == 1:
            form = [1, -(-sizes[0] // 32), 32], ["0", "floor(a/32)", "Mod(a, 32)"]
        else:
            form = [-(-sizes[1] // 32), sizes[0], 32], ["floor(b/32)", "a", "Mod(b, 32)"]
        return replace(self._argument(0, *form, INT32), name="rows")

    @property
    def spec(self) -> OpSpec:
        others = [self.plain_axes] * (FUNCTIONS[self.op] - 1)
        first, last = (self.plain_axes, self.table_axes) if self.scatters else (self.table_axes, self.plain_axes)
        tensors = [self._tensor(1 + place, axes) for place, axes in enumerate((first, *others, last))]
        args = (self._index(), *tensors[:-1], replace(tensors[-1], is_input=False))
        return OpSpec(self.op, False, space(self.sizes, self.splits), args)

    def case(self, rows: npt.NDArray[np.int64] | None = None) -> tuple[Launched, Doubles, int, int]:
        """Return a launch; the output's elements as NumPy has them; bytes of device memory read and written.

        ``rows``: what the index holds, random otherwise.  A table's elements are in the order r, d, c, others'
        in that of the iteration's index symbols, d, c.
        """
        generator = np.random.default_rng(self.seed)
        spec = self.spec
        shape = [self.sizes[symbol] for symbol in self.symbols]
        if rows is None:
            rows = generator.integers(0, self.rows, shape)
        rest = [self.sizes[symbol] for symbol in self.rest]
        arrays = [self._numbers(generator, [self.rows, *rest] if self._is_table(at) else [*shape, *rest])
                  for at in range(1, len(spec.args))]  # fmt: skip
        contents = {0: self.memory(0, rows.astype(np.float64))}
        contents |= {at: self.memory(at, arrays[at - 1]) for at in range(1, len(spec.args))}
        case = launched(spec, contents, exact=self.exact)
        inputs = [array[rows] if self._is_table(1 + at) else array for at, array in enumerate(arrays[:-1])]
        values = self.function(inputs)
        read = sum(128 * len(self._sticks(at, rows)) for at in range(len(spec.args) - 1))
        written = 128 * len(self._sticks(len(spec.args) - 1, rows))
        if not self.scatters:
            return case, values, read, written
        want = arrays[-1].copy()
        for place in np.ndindex(*shape):
            want[rows[place]] = values[place]
        return case, want, read, written

    def function(self, inputs: list[Doubles]) -> Doubles:
        match self.op:
            case "exp":
                return np.exp(inputs[0])
            case "neg":
                return -inputs[0]
            case "add":
                return inputs[0] + inputs[1]
            case "maximum":
                return np.maximum(inputs[0], inputs[1])
            case _:
                return inputs[0]

    def _is_table(self, position: int) -> bool:
        return position == (len(self.spec.args) - 1 if self.scatters else 1)

    @staticmethod
    def _numbers(generator: np.random.Generator, shape: Sequence[int]) -> Doubles:
        """Return sixteenths up to 3: every format and their sums are exact."""
        return np.asarray(generator.integers(-48, 49, shape), np.float64) / 16

    def where(self, position: int) -> tuple[npt.NDArray[np.int64], ...]:
        """Return the device coordinates of an operand's elements."""
        argument = self.spec.args[position]
        if position == 0:
            return places(Operand(self.symbols, (), None), argument.device_coordinates, self.sizes)
        coordinates = [parse_expression("r") if item.indirect_names else item for item in argument.device_coordinates]
        symbols = (("r",) if self._is_table(position) else self.symbols) + self.rest
        return places(Operand(symbols, (), "c"), coordinates, self.sizes | {"r": self.rows})

    def memory(self, position: int, values: Doubles) -> npt.NDArray[np.uint8]:
        """Return an operand's buffer with these elements, poison elsewhere."""
        argument = self.spec.args[position]
        lanes = argument.device_size[-1]
        words = np.full(argument.device_size, 0x7F7F7F7F if lanes == 32 else 0x7FFF, f"u{128 // lanes}")
        words[self.where(position)] = encoded(values.reshape(-1), argument.device_dtype)
        return words.reshape(-1).view(np.uint8)

    def _sticks(self, position: int, rows: npt.NDArray[np.int64]) -> set[tuple[int, ...]]:
        """Return the device coordinates of the sticks that are touched of an operand."""
        *outer, _ = self.where(position)
        found = np.stack(outer, axis=1)
        if position and self._is_table(position):
            axis = next(i for i, item in enumerate(self.spec.args[position].device_coordinates) if item.indirect_names)
            found = found[np.isin(found[:, axis], rows)]
        return set(map(tuple, found.tolist()))
