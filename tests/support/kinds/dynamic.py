"""Operations whose extents a launch gives: what lies behind them is neither read nor written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from spyrec.codegen.opspec import DynamicBound, DynamicSize, IterationDim, OpSpec, TensorArgument
from spyrec.hardware.dtypes import DeviceFormat
from tests.codegen.builders import FP16, FP32, Along, argument
from tests.support.kinds.program import (
    EXACT,
    OWN,
    ROUNDING,
    Doubles,
    Elements,
    RandomProgram,
    a_cut,
    elements_of,
    generator_of,
    sixteenths,
)

_FUNCTIONS: dict[str, Callable[..., Doubles]] = {"add": np.add, "sub": np.subtract, "maximum": np.maximum}


@dataclass(frozen=True)
class _Dims:
    """Dims by symbol: largest extents, those of this launch, names and granularities of the dynamic ones, slices."""

    most: Mapping[str, int]
    now: Mapping[str, int]
    names: Mapping[str, str]
    steps: Mapping[str, int]
    cuts: Mapping[str, int]

    def spec(self, op: str, symbols: str, args: tuple[TensorArgument, ...], *, folds: bool = False) -> OpSpec:
        dims = tuple(
            IterationDim(
                symbol,
                DynamicSize(self.names[symbol], self.most[symbol]) if symbol in self.names else self.most[symbol],
                self.cuts[symbol],
            )
            for symbol in symbols
        )
        bounds = {self.names[s]: DynamicBound(self.most[s], self.steps[s]) for s in symbols if s in self.names}
        return OpSpec(op, folds, dims, args, symbolic_dim_bounds=bounds)

    def values(self, symbols: str) -> dict[str, int]:
        """Return the sizes of this launch as the parameters of a program whose first operation has these dims."""
        names = list(dict.fromkeys(self.names[symbol] for symbol in symbols if symbol in self.names))
        sizes = {self.names[symbol]: self.now[symbol] for symbol in self.names}
        return {f"sym_0_{number}_base": sizes[name] for number, name in enumerate(names, 1)}

    def shape(self, symbols: str) -> list[int]:
        return [self.most[symbol] for symbol in symbols]

    def inside(self, symbols: str) -> tuple[slice, ...]:
        return tuple(slice(self.now[symbol]) for symbol in symbols)


def _dims(source: Random, symbols: str, sticks: str, lanes: int) -> _Dims:
    """Draw dims, at least one of them dynamic; ``sticks``: those along which some operand has its sticks."""
    most: dict[str, int] = {}
    now: dict[str, int] = {}
    names: dict[str, str] = {}
    steps: dict[str, int] = {}
    cuts: dict[str, int] = {}
    dynamic = source.sample(symbols, source.choice([1, 1, 2]) if len(symbols) > 1 else 1)
    shares_name = len(dynamic) == 2 and all(symbol not in sticks for symbol in dynamic) and source.random() < 0.3
    for symbol in symbols:
        unit = lanes if symbol in sticks else 1
        if symbol not in dynamic:
            count = source.choice([1, 2, 3, 4])
            most[symbol] = now[symbol] = unit * count
            cuts[symbol] = a_cut(source, count)
            continue
        if shares_name and names:
            (first,) = names
            for table in (most, now, steps):
                table[symbol] = table[first]
            names[symbol] = names[first]
        else:
            count, steps[symbol] = source.choice([1, 2, 3, 5]), unit * source.choice([1, 1, 2])
            most[symbol], now[symbol] = steps[symbol] * count, steps[symbol] * source.randint(1, count)
            names[symbol] = f"s{len(names)}"
        cuts[symbol] = 1
    return _Dims(most, now, names, steps, cuts)


def _operand(source: Random, dims: _Dims, index: int, symbols: str, stick: str, data_format: DeviceFormat) -> TensorArgument:  # fmt: skip  # noqa: E501
    kept = source.sample(symbols, len(symbols))
    axes = [Along(None)] * max(0, 2 - len(kept)) + [Along(symbol) for symbol in kept]
    own = stick if stick in symbols else None
    return argument(axes, own, dims.most, index=index, data_format=data_format)


def sizes(source: Random) -> RandomProgram:
    """Chains of functions of elements and a fold of their result, or a product: at sizes up to the largest."""
    return _product(source) if source.random() < 0.25 else _chain(source)


def _chain(source: Random) -> RandomProgram:
    """``fold over one dim of ((x op y) op y)``: x, y, the two results, the fold."""
    data_format = source.choice([FP16, FP16, FP32])
    symbols = source.choice(["ab", "abc"])
    stick = source.choice(symbols)
    dims = _dims(source, symbols, stick, data_format.elements_per_stick or 0)
    # a fold over sticks leaves one element in each
    folded = source.choice(symbols)
    kept = symbols.replace(folded, "")
    operands = [_operand(source, dims, index, symbols, stick, data_format) for index in range(4)]
    operands.append(_operand(source, dims, 4, kept, stick, data_format))
    order = "".join(source.sample(symbols, len(symbols)))
    generator = generator_of(source)
    shape = dims.shape(symbols)
    before: list[Doubles] = [sixteenths(generator, shape) for _ in range(4)]
    before.append(sixteenths(generator, dims.shape(kept)))
    after = [values.copy() for values in before]
    inside = dims.inside(symbols)
    specs: list[OpSpec] = []
    for number in (2, 3):
        op = source.choice(list(_FUNCTIONS))
        first = 0 if number == 2 else 2
        specs.append(dims.spec(op, order, _last_written(operands[first], operands[1], operands[number])))
        after[number][inside] = _FUNCTIONS[op](after[first][inside], before[1][inside])
    fold = source.choice(["sum", "max"])
    specs.append(dims.spec(fold, kept + folded, _last_written(operands[3], operands[4]), folds=True))
    axis = symbols.index(folded)
    values = after[3][inside]
    after[4][dims.inside(kept)] = values.sum(axis=axis) if fold == "sum" else values.max(axis=axis)
    count = source.choice([1, 2, 3, 3])
    held = range(4) if count == 3 else range(4) if count == 2 else range(3)
    names = {index: kept if index == 4 else symbols for index in range(5)}
    where = {index: elements_of(operands[index], names[index], dims.most) for index in range(5)}
    used = [*held, 4] if count == 3 else list(held)
    wanted = {index: Elements(where[index], after[index]) for index in used if 1 < index < 4}
    if count == 3:
        wanted[4] = Elements(where[4], after[4], 1.01 * ROUNDING[data_format])
    given = {index: Elements(where[index], before[index]) for index in used}
    options = source.choice([OWN, EXACT])
    return RandomProgram(tuple(specs[:count]), given, wanted, options, _given_sizes(source, dims, order))


def _product(source: Random) -> RandomProgram:
    """``x @ w``, of which any dim may be dynamic: what lies behind the end of the contracted one does not count."""
    dims = _dims(source, "mnk", "nk", 64)
    operands = [_operand(source, dims, index, symbols, symbols[1], FP16) for index, symbols in enumerate(("mk", "kn"))]
    operands.append(_operand(source, dims, 2, "mn", "n", FP16))
    generator = generator_of(source)
    x, w, before = (sixteenths(generator, dims.shape(symbols)) for symbols in ("mk", "kn", "mn"))
    x[:, dims.now["k"] :] = 3.0
    after = before.copy()
    after[dims.inside("mn")] = x[dims.inside("mk")] @ w[dims.inside("kn")]
    args = _last_written(*operands)
    spec = dims.spec("batchmatmul", "mnk", args, folds=True)
    where = [elements_of(item, s, dims.most) for item, s in zip(args, ("mk", "kn", "mn"), strict=True)]
    given = {at: Elements(where[at], values) for at, values in enumerate((x, w, before))}
    # these sums are exact in float32: one rounding is left
    wanted = {2: Elements(where[2], after, 1.01 * ROUNDING[FP16])}
    return RandomProgram((spec,), given, wanted, source.choice([OWN, EXACT]), _given_sizes(source, dims, "mnk"))


def _last_written(*operands: TensorArgument) -> tuple[TensorArgument, ...]:
    return (*operands[:-1], replace(operands[-1], is_input=False))


def _given_sizes(source: Random, dims: _Dims, order: str) -> dict[str, int]:
    """Return the sizes of a launch; those that are the largest may be left out."""
    found = dims.values(order)
    largest = {name: dims.most[symbol] for symbol, name in dims.names.items()}
    names = list(dict.fromkeys(dims.names[symbol] for symbol in order if symbol in dims.names))
    return {
        parameter: size
        for (parameter, size), name in zip(found.items(), names, strict=True)
        if size < largest[name] or source.random() < 0.5
    }
