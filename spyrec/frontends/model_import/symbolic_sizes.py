"""Extents of a model that each run chooses: the dims of a graph that they become, and sizes that are made of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError, refuse
from spyrec.frontends.model_import.names import legal_name
from spyrec.layout.symbolic_dim import SymbolicDim

DimChoice = int | SymbolicDim
"""What becomes of a symbolic dim: an extent that it is bound to, or the extents that runs may have."""

UNBOUNDED = 2**31
"""From here on a largest extent is none."""

_PRODUCT = re.compile(r"(?:([0-9]{1,18})\*)?([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)


def choices(dims: Mapping[str, int | str]) -> dict[str, DimChoice]:
    """Return what becomes of dims: an extent (``512``), or ``MIN:MAX`` or ``MIN:MAX:MULTIPLE``.  Errors: SPY0168."""
    return {name: _choice(name, str(bounds)) for name, bounds in dims.items()}


def _choice(name: str, bounds: str) -> DimChoice:
    numbers = bounds.split(":")
    if not name or len(numbers) > 3 or not all(re.fullmatch(r"[0-9]{1,10}", item, re.ASCII) for item in numbers):
        fact = f"{name}={bounds}"
        raise refuse("SPY0168", f"{fact!r:.80} is neither NAME=EXTENT nor NAME=MIN:MAX nor NAME=MIN:MAX:MULTIPLE")
    found = [int(item) for item in numbers]
    if len(found) == 1:
        if found[0] < 1:
            raise refuse("SPY0168", f'"{name}" has {found[0]} elements, the least is 1')
        return found[0]
    dim = SymbolicDim(found[0], found[1], found[2] if len(found) == 3 else 1) if 0 not in found[1:] else None
    if dim is None or dim.smallest > dim.largest:
        raise refuse("SPY0168", f'no extent of "{name}" is within {bounds}')
    return dim


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol of the program: the dim's ``name``, and elements of it for each 1 of the symbol."""

    name: str
    unit: int


class SymbolicSizes:
    """The dims that stay symbolic.

    ``symbols``: least, most and multiple of each symbol by its own name, ``names`` what the program's author calls it,
    ``extents``: those of the inputs that are no numbers, as text.  Where these are multiples of a symbol alone
    (``64*s0``), the dim is their greatest common one.  ``chosen``: what the user asks of dims by name.
    Errors: SPY0168 a dim without a largest extent, or asked to have extents that the program does not have.
    """

    def __init__(
        self,
        symbols: Mapping[str, tuple[int, int, int]],
        names: Mapping[str, str],
        extents: Iterable[str],
        chosen: Mapping[str, DimChoice],
    ) -> None:
        self.dims: dict[str, SymbolicDim] = {}
        self._symbols: dict[str, Symbol] = {}
        factors: dict[str, int] = {}
        for factor, symbol in filter(None, map(_product, extents)):
            factors[symbol] = math.gcd(factors.get(symbol, 0), factor)
        for symbol, (least, most, multiple) in symbols.items():
            unit, name = factors.get(symbol, 1), legal_name(names.get(symbol, symbol))
            program = SymbolicDim(least * unit, most * unit, multiple * unit)
            found = chosen.get(names.get(symbol, symbol), chosen.get(symbol))
            self.dims[name] = _within(name, program, found if isinstance(found, SymbolicDim) else None, most)
            self._symbols[symbol] = Symbol(name, unit)

    def text(self, size: str) -> str | None:
        """Return a size of the program as a graph writes it (``S``, ``S*2``); ``None`` where it is no product."""
        found = _product(size)
        if found is None or found[1] not in self._symbols:
            return None
        symbol = self._symbols[found[1]]
        factor, rest = divmod(found[0], symbol.unit)
        if rest:
            return None
        return symbol.name if factor == 1 else f"{symbol.name}*{factor}"

    def dim(self, size: str) -> str | None:
        """Return the dim that a size is all of."""
        text = self.text(size)
        return None if text is None or "*" in text else text


def _product(size: str) -> tuple[int, str] | None:
    """Return factor and symbol of ``2*s0``, ``None`` for anything else."""
    match = _PRODUCT.fullmatch(size.replace(" ", ""))
    return None if match is None else (int(match[1] or 1), match[2])


def _within(name: str, program: SymbolicDim, asked: SymbolicDim | None, most: int) -> SymbolicDim:
    if asked is None:
        if most >= UNBOUNDED:
            raise _refused(f'the program states no largest extent of "{name}"', name)
        return program
    # extents that no multiple reaches are none: 0:512:64 of a program from 2 on are 64 to 512
    if asked.smallest < program.smallest or asked.largest > program.maximum or asked.multiple_of % program.multiple_of:
        raise _refused(f'the program was exported for "{name}" of {program}, not of {asked}', name)
    return SymbolicDim(asked.smallest, asked.largest, asked.multiple_of)


def _refused(fact: str, name: str) -> SpyrecError:
    return refuse(
        "SPY0168", fact, hint=f"--dim {name}=MIN:MAX:MULTIPLE within what the program allows, or --dim {name}=N"
    )
