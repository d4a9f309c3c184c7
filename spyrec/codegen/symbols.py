"""Symbols: start addresses that a program with symbolic arguments computes instead of baking them in.

An address is a kernel argument (or the pool) plus a constant, plus a step per enclosing loop.  Within one SuperDSC
equal addresses share one symbol id; ids count down from -1 over the whole program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spyrec.bundle.program import Add, ArgumentExtract, Constant, InputArgument, Statement
from spyrec.codegen.opspec import AllocationKind, TensorArgument
from spyrec.diagnostics import Location, refuse


@dataclass(frozen=True, slots=True)
class LoopStep:
    """How far an address moves per iteration of loop number ``loop``, in bytes."""

    loop: int
    step_bytes: int


@dataclass(frozen=True, slots=True)
class Base:
    """What an address counts from: kernel argument ``arg_index``, or the pool where it is ``None``."""

    arg_index: int | None

    @property
    def name(self) -> str:
        """The value that holds the address."""
        return "pool" if self.arg_index is None else f"arg_{self.arg_index}"

    @property
    def parameter(self) -> str:
        """The function parameter the value is extracted from."""
        return f"{self.name}_base_addr"


@dataclass(frozen=True, slots=True)
class Address:
    """One symbolic address: base plus offset in bytes, before any loop step; ``value`` names what holds it in MLIR."""

    base: Base
    offset_bytes: int
    value: str

    @classmethod
    def of(cls, base: Base, offset_bytes: int) -> Address:
        """Return the address, named."""
        if base.arg_index is None:
            return cls(base, offset_bytes, f"pool_addr_{offset_bytes}")
        return cls(base, offset_bytes, f"{base.name}_core_{offset_bytes}" if offset_bytes else base.name)

    def declaration(self) -> tuple[Statement, ...]:
        """Return the statements that compute the address; none for a bare argument."""
        name = self.base.name
        if self.value == name:
            return ()
        is_pool = self.base.arg_index is None
        constant = f"{name}_{'' if is_pool else 'core_'}offset_{self.offset_bytes}"
        return (Constant(constant, self.offset_bytes), Add(self.value, name, constant))


@dataclass(frozen=True, slots=True)
class BoundSymbol:
    """A symbol of one SuperDSC: its id and the address it stands for."""

    symbol_id: int
    address: Address
    steps: tuple[LoopStep, ...]


class SymbolTable:
    """Allocates symbol ids and collects what the program must declare.

    ``argument_bases`` is the byte address at which each kernel argument begins, by ``arg_index``: addresses in the
    OpSpecs count from 0 of the device, symbols count from the argument.
    """

    def __init__(self, argument_bases: Mapping[int, int]) -> None:
        self._argument_bases = argument_bases
        self._bases = {index: Base(index) for index in (*argument_bases, None)}
        self._allocated = 0
        # Dictionaries for their order: first seen, first declared.
        self._used_bases: dict[Base, None] = {}
        self._declared: dict[tuple[int | None, int], Address] = {}
        self._current: dict[tuple[Base, tuple[LoopStep, ...]], dict[int, BoundSymbol]] = {}
        self._symbols: list[BoundSymbol] = []

    def begin_superdsc(self) -> None:
        """Forget the symbols of the SuperDSC before: ids are shared within one only."""
        self._current = {}
        self._symbols = []

    def bind(
        self,
        argument: TensorArgument,
        offsets_bytes: Sequence[int],
        steps: tuple[LoopStep, ...],
        location: Location | None,
    ) -> tuple[int, ...]:
        """Return the symbol id of each core's start.  Errors: SPY0526 no argument stands behind the operand."""
        base, start = self._base(argument, location)
        self._used_bases.setdefault(base)
        known = self._current.setdefault((base, steps), {})
        places = [start + offset for offset in offsets_bytes]
        for place in places:
            if place not in known:
                known[place] = self._allocate(base, place, steps)
        return tuple(known[place].symbol_id for place in places)

    def _allocate(self, base: Base, offset_bytes: int, steps: tuple[LoopStep, ...]) -> BoundSymbol:
        place = (base.arg_index, offset_bytes)
        address = self._declared.get(place)
        if address is None:
            address = self._declared[place] = Address.of(base, offset_bytes)
        self._allocated += 1
        symbol = BoundSymbol(-self._allocated, address, steps)
        self._symbols.append(symbol)
        return symbol

    def _base(self, argument: TensorArgument, location: Location | None) -> tuple[Base, int]:
        """Return the base of an operand and where its allocation begins relative to it."""
        if argument.allocation.kind is AllocationKind.POOL:
            return self._bases[None], argument.allocation.start_bytes
        if argument.arg_index is None:
            raise refuse(
                "SPY0526",
                f"operand at device address {argument.allocation.start_bytes} is no kernel argument, so that a program "
                "with symbolic arguments cannot find it",
                location,
                hint="give it an arg_index, put it into the pool, or use --no-symbolic-args",
            )
        start = argument.allocation.start_bytes - self._argument_bases[argument.arg_index]
        return self._bases[argument.arg_index], start

    def symbols(self) -> tuple[BoundSymbol, ...]:
        """Return the symbols of the current SuperDSC in order of their ids."""
        return tuple(self._symbols)

    def _ordered_bases(self) -> list[Base]:
        """Return the bases in the order of the parameters: the pool first, then arguments as first seen."""
        pool = self._bases[None]
        arguments = [base for base in self._used_bases if base is not pool]
        return [pool, *arguments] if pool in self._used_bases else arguments

    def parameters(self) -> tuple[InputArgument, ...]:
        """Return the parameters of the program's function."""
        return tuple(InputArgument(base.parameter) for base in self._ordered_bases())

    def extracts(self) -> tuple[Statement, ...]:
        """Return the statements that read the parameters."""
        return tuple(ArgumentExtract(base.name, base.parameter) for base in self._ordered_bases())

    def declarations(self) -> tuple[Statement, ...]:
        """Return the statements that compute the addresses, each once, in order of first use."""
        return tuple(statement for address in self._declared.values() for statement in address.declaration())
