"""Random operations whose operands' rows an index names, with what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

import numpy as np
import numpy.typing as npt

from spyrec.codegen.expression import parse_expression
from spyrec.codegen.opspec import AllocationKind, ArgumentAllocation, OpSpec, TensorArgument
from spyrec.hardware.dtypes import DeviceFormat
from tests.codegen.builders import FP16, FP32, SEGMENT, space
from tests.support.kinds.program import EXACT, OWN, Doubles, Elements, Places, RandomProgram, elements_of, sixteenths

INT32 = DeviceFormat.IEEE_INT32
FUNCTIONS = {"identity": 1, "exp": 1, "neg": 1, "add": 2, "maximum": 2}


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
    def random(cls, source: Random, *, scatters: bool) -> IndexedOperation:
        rank = source.choice([0, 1, 1, 2, 2])
        symbols = ["a", "b"][:rank]
        sizes = {
            symbol: source.choice([1, 2, 5, 31, 32, 33, 40] if rank == 1 else [1, 2, 3, 5, 33]) for symbol in symbols
        }
        columns = rank == 1 and source.random() < 0.3
        sizes |= {"d": source.choice([1, 2, 3])} if source.random() < 0.5 else {}
        sizes |= {"c": source.choice([1, 63, 64, 100, 200])}
        rest = [symbol for symbol in ("d", "c") if symbol in sizes]
        table_axes = source.sample(["r", *rest], len(rest) + 1)
        plain_axes = source.sample([*symbols, *rest], len(symbols) + len(rest))
        order = source.sample(list(sizes), len(sizes))
        exact = source.random() < 0.5 and rank > 0  # of one row torch-spyre describes another table
        return cls(
            op=source.choice(list(FUNCTIONS)),
            sizes={symbol: sizes[symbol] for symbol in order},
            rows=source.choice([1, 2, 7, 50]),
            rank=rank,
            columns=columns,
            scatters=scatters,
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

    @cached_property
    def spec(self) -> OpSpec:
        others = [self.plain_axes] * (FUNCTIONS[self.op] - 1)
        first, last = (self.plain_axes, self.table_axes) if self.scatters else (self.table_axes, self.plain_axes)
        tensors = [self._tensor(1 + place, axes) for place, axes in enumerate((first, *others, last))]
        args = (self._index(), *tensors[:-1], replace(tensors[-1], is_input=False))
        return OpSpec(self.op, False, space(self.sizes, self.splits), args)

    def program(self, rows: npt.NDArray[np.int64] | None = None) -> RandomProgram:
        """Return the program with what NumPy makes of it, and the bytes of device memory that it reads and writes.

        ``rows``: what the index holds, random otherwise.  A table's elements are in the order r, d, c, others'
        in that of the iteration's index symbols, d, c.
        """
        generator = np.random.default_rng(self.seed)
        spec = self.spec
        last = len(spec.args) - 1
        shape = [self.sizes[symbol] for symbol in self.symbols]
        if rows is None:
            rows = generator.integers(0, self.rows, shape)
        rest = [self.sizes[symbol] for symbol in self.rest]
        arrays = [rows.astype(np.float64)]
        arrays += [sixteenths(generator, [self.rows, *rest] if self._is_table(at) else [*shape, *rest])
                   for at in range(1, last + 1)]  # fmt: skip
        given = {at: Elements(self.where(at), values) for at, values in enumerate(arrays)}
        inputs = [array[rows] if self._is_table(at) else array for at, array in enumerate(arrays[1:-1], 1)]
        want = self.function(inputs)
        read = sum(128 * self._sticks(at, rows) for at in range(last))
        written = 128 * self._sticks(last, rows)
        if self.scatters:
            values, want = want, arrays[-1].copy()
            for place in np.ndindex(*shape):
                want[rows[place]] = values[place]
        # one rounding of exp is left; everything else is exact
        wanted = {last: Elements(self.where(last), want, relative=2.0**-10 if self.op == "exp" else 0.0)}
        return RandomProgram((spec,), given, wanted, EXACT if self.exact else OWN, traffic=(read, written))

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

    def where(self, position: int) -> Places:
        """Return the device coordinates of an operand's elements."""
        argument = self.spec.args[position]
        if position == 0:
            return elements_of(argument, self.symbols, self.sizes)
        coordinates = [parse_expression("r") if item.indirect_names else item for item in argument.device_coordinates]
        symbols = (("r",) if self._is_table(position) else self.symbols) + self.rest
        rows_named = replace(argument, device_coordinates=tuple(coordinates))
        return elements_of(rows_named, symbols, self.sizes | {"r": self.rows})

    def _sticks(self, position: int, rows: npt.NDArray[np.int64]) -> int:
        """Return how many sticks are touched of an operand."""
        argument = self.spec.args[position]
        touched = np.zeros(argument.device_size[:-1], np.bool_)
        touched[self.where(position)[:-1]] = True
        if position and self._is_table(position):
            axis = next(i for i, item in enumerate(argument.device_coordinates) if item.indirect_names)
            touched = touched.take(np.unique(rows), axis=axis)
        return int(touched.sum())


def gathers(source: Random) -> RandomProgram:
    """Rows of a table that an index of any rank names, copied or a function of them."""
    return IndexedOperation.random(source, scatters=False).program()


def scatters(source: Random) -> RandomProgram:
    """Rows of a table that an index names, stored, the later of two that it names twice."""
    return IndexedOperation.random(source, scatters=True).program()
