"""Symbols: start addresses that a program with symbolic arguments computes instead of baking them in.

An address is a kernel argument (or the pool) plus a constant, plus a step per enclosing loop.  Within one SuperDSC
equal addresses share one symbol id; ids count down from -1 over the whole program.  Which addresses get one, and under
which names, is a matter of the dialect.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from spyrec.bundle.program import Add, ArgumentExtract, Constant, InputArgument, Statement
from spyrec.codegen.opspec import AllocationKind, DynamicBound, TensorArgument
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, refuse
from spyrec.hardware.target import SEGMENT_BYTES


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
    """One symbolic address before any loop step.

    ``value`` names what holds it in MLIR: ``counted_from`` plus ``offset_bytes``, a constant named ``constant``.
    A bare argument counts from nothing.  ``is_number``: the value is no address but the number ``offset_bytes``.
    """

    value: str
    counted_from: str | None = None
    offset_bytes: int = 0
    constant: str = ""
    is_number: bool = False

    def declaration(self) -> tuple[Statement, ...]:
        """Return the statements that compute the address; none for a bare argument."""
        if self.is_number:
            return (Constant(self.value, self.offset_bytes),)
        if self.counted_from is None:
            return ()
        return (Constant(self.constant, self.offset_bytes), Add(self.value, self.counted_from, self.constant))


@dataclass(frozen=True, slots=True)
class Size:
    """A dynamic size as the program takes it: the value that holds it, and what is known of it."""

    value: str
    bound: DynamicBound

    @property
    def parameter(self) -> InputArgument:
        """The function parameter that the value is extracted from."""
        return InputArgument(f"{self.value}_base", self.bound.granularity, self.bound.max)


@dataclass(frozen=True, slots=True)
class BoundSymbol:
    """A symbol of one SuperDSC: its id and the address or size it stands for."""

    symbol_id: int
    address: Address


class SymbolTable(ABC):
    """Allocates symbol ids and collects what the program must declare."""

    def __init__(self) -> None:
        # Dictionaries for their order: first seen, first declared.
        self._used_bases: dict[Base, None] = {}
        self._declared: dict[Address, None] = {}
        self._by_id: dict[int, Address] = {}
        self._sizes: dict[str, Size] = {}
        self._own_sizes: dict[str, BoundSymbol] = {}

    def begin_superdsc(self) -> None:
        """Start another SuperDSC: nothing is shared with the one before."""
        self._own_sizes = {}
        self._forget_places()

    @abstractmethod
    def _forget_places(self) -> None:
        """Share no place with the SuperDSC before."""

    def bind_size(self, name: str, bound: DynamicBound, number: int, location: Location | None) -> int:
        """Return the symbol id of a dynamic size of SuperDSC ``number``; SPY0546 where an earlier one has other bounds.

        All SuperDSCs that name it share the parameter, which has the number of the first one.
        """
        if name not in self._own_sizes:
            size = self._sizes.setdefault(name, Size(f"sym_{number}_{len(self._own_sizes) + 1}", bound))
            if size.bound != bound:
                fact = f'"{name}" is at most {bound.max} in steps of {bound.granularity} here, at most {size.bound.max}'
                raise refuse("SPY0546", f"{fact} in steps of {size.bound.granularity} before", location)
            self._own_sizes[name] = self._allocate(Address(size.value))
        return self._own_sizes[name].symbol_id

    @abstractmethod
    def bind_unplaced(
        self, argument: TensorArgument, offsets_bytes: Sequence[int], location: Location | None
    ) -> tuple[int, ...]:
        """Return the symbol id of each core's start of a kernel argument, as upstream writes them that it cannot place.

        Those of the cores but the first are numbers counted from nothing (docs/compatibility.md, Q18).
        """

    @abstractmethod
    def bind(
        self,
        argument: TensorArgument,
        offsets_bytes: Sequence[int],
        steps: tuple[LoopStep, ...],
        location: Location | None,
    ) -> tuple[int, ...]:
        """Return the symbol id of each core's start.  Errors: SPY0526 no argument stands behind the operand."""

    @abstractmethod
    def _ordered_arguments(self) -> list[Base]:
        """Return the arguments in the order of their parameters."""

    def address(self, symbol_id: int) -> Address:
        """Return what an id stands for."""
        return self._by_id[symbol_id]

    def _allocate(self, address: Address) -> BoundSymbol:
        self._declared.setdefault(address)
        symbol = BoundSymbol(-self._next_number, address)
        self._by_id[symbol.symbol_id] = address
        return symbol

    @property
    def _next_number(self) -> int:
        return len(self._by_id) + 1

    def _ordered_bases(self) -> list[Base]:
        """Return the bases in the order of the parameters, the pool first."""
        return [*([_POOL] if _POOL in self._used_bases else []), *self._ordered_arguments()]

    def parameters(self) -> tuple[InputArgument, ...]:
        """Return the parameters of the program's function."""
        bases = (InputArgument(base.parameter) for base in self._ordered_bases())
        return (*bases, *(size.parameter for size in self._sizes.values()))

    def extracts(self) -> tuple[Statement, ...]:
        """Return the statements that read the parameters."""
        bases = (ArgumentExtract(base.name, base.parameter) for base in self._ordered_bases())
        return (*bases, *(ArgumentExtract(size.value, size.parameter.name) for size in self._sizes.values()))

    def declarations(self) -> tuple[Statement, ...]:
        """Return the statements that compute the addresses, each once, in order of first use."""
        return tuple(statement for address in self._declared for statement in address.declaration())


_POOL = Base(None)


def _in_pool(offset_bytes: int) -> Address:
    return Address(f"pool_addr_{offset_bytes}", _POOL.name, offset_bytes, f"pool_offset_{offset_bytes}")


def _argument_of(argument: TensorArgument, location: Location | None) -> Base:
    """Return the argument that an operand in device memory belongs to.  Errors: SPY0526."""
    if argument.arg_index is None:
        raise refuse(
            "SPY0526",
            f"operand at device address {argument.allocation.start_bytes} is no kernel argument, so that a program "
            "with symbolic arguments cannot find it",
            location,
            hint="give it an arg_index, put it into the pool, or use --no-symbolic-args",
        )
    return Base(argument.arg_index)


class PlaceSymbols(SymbolTable):
    """One symbol for every distinct place and movement; parameters in order of first use.

    ``argument_bases`` is the byte address at which each kernel argument begins, by ``arg_index``: addresses in the
    OpSpecs count from 0 of the device, symbols count from the argument.
    """

    def __init__(self, argument_bases: Mapping[int, int]) -> None:
        super().__init__()
        self._argument_bases = argument_bases
        self._current: dict[tuple[Base, tuple[LoopStep, ...]], dict[int, BoundSymbol]] = {}

    def _forget_places(self) -> None:
        self._current = {}

    def bind_unplaced(
        self, argument: TensorArgument, offsets_bytes: Sequence[int], location: Location | None
    ) -> tuple[int, ...]:
        """Return nothing: where places have symbols, no dialect has dynamic sizes."""
        raise AssertionError((argument, offsets_bytes, location))

    def bind(
        self,
        argument: TensorArgument,
        offsets_bytes: Sequence[int],
        steps: tuple[LoopStep, ...],
        location: Location | None,
    ) -> tuple[int, ...]:
        """Return the symbol id of each core's start.  Errors: SPY0526."""
        if argument.allocation.kind is AllocationKind.POOL:
            base, start = _POOL, argument.allocation.start_bytes
        else:
            base = _argument_of(argument, location)
            assert base.arg_index is not None
            start = argument.allocation.start_bytes - self._argument_bases[base.arg_index]
        self._used_bases.setdefault(base)
        known = self._current.setdefault((base, steps), {})
        places = [start + offset for offset in offsets_bytes]
        for place in places:
            if place not in known:
                known[place] = self._allocate(_in_pool(place) if base == _POOL else _behind(base, place))
        return tuple(known[place].symbol_id for place in places)

    def _ordered_arguments(self) -> list[Base]:
        return [base for base in self._used_bases if base != _POOL]


def _behind(base: Base, offset_bytes: int) -> Address:
    """Return the address of what lies so many bytes behind the beginning of an argument."""
    if not offset_bytes:
        return Address(base.name)
    return Address(
        f"{base.name}_core_{offset_bytes}", base.name, offset_bytes, f"{base.name}_core_offset_{offset_bytes}"
    )


class WindowSymbols(SymbolTable):
    """A symbol for each argument, for the start of a window in it, and for the cores that begin elsewhere.

    ``separates_steps``: operands that begin at one place and move differently have symbols of their own.  Upstream
    serves the later one with the earlier one's movement.
    """

    def __init__(self, *, separates_steps: bool) -> None:
        super().__init__()
        self._separates_steps = separates_steps
        self._current: dict[tuple[Base, int | None, tuple[LoopStep, ...]], BoundSymbol] = {}
        self._unplaced: dict[tuple[Base, int], BoundSymbol] = {}

    def _forget_places(self) -> None:
        self._current, self._unplaced = {}, {}

    def bind_unplaced(
        self, argument: TensorArgument, offsets_bytes: Sequence[int], location: Location | None
    ) -> tuple[int, ...]:
        """Return the symbol id of each core's start of an argument that upstream cannot place (Q18)."""
        (first,) = self.bind(argument, offsets_bytes[:1], (), location)
        base, start = _argument_of(argument, location), argument.allocation.start_bytes % SEGMENT_BYTES
        assert base.arg_index is not None
        found = [first]
        for core, offset in enumerate(offsets_bytes[1:], 1):
            if (base, core) not in self._unplaced:
                number = base.arg_index + start + offset
                value = f"sym_{self._next_number}"
                self._unplaced[base, core] = self._allocate(Address(value, None, number, is_number=True))
            found.append(self._unplaced[base, core].symbol_id)
        return tuple(found)

    def bind(
        self,
        argument: TensorArgument,
        offsets_bytes: Sequence[int],
        steps: tuple[LoopStep, ...],
        location: Location | None,
    ) -> tuple[int, ...]:
        """Return the symbol id of each core's start.  Errors: SPY0526."""
        own = steps if self._separates_steps else ()
        start = argument.allocation.start_bytes
        if argument.allocation.kind is AllocationKind.POOL:
            self._used_bases.setdefault(_POOL)
            in_pool = [start + offset for offset in offsets_bytes]
            symbols = {place: self._known(_POOL, place, own, _in_pool) for place in dict.fromkeys(in_pool)}
            return tuple([symbols[place].symbol_id for place in in_pool])
        base = _argument_of(argument, location)
        self._used_bases.setdefault(base)
        places = [start % SEGMENT_BYTES + offset for offset in offsets_bytes]
        # the argument itself is taken even where nothing refers to it afterwards
        first = self._known(base, None, own, lambda _: Address(base.name))
        begin = places[0]
        if begin:
            first = self._known(base, begin, own, lambda place: _window(base, place))
        found = {begin: first}
        for place in places:
            if place not in found:
                found[place] = self._known(base, place, own, lambda place: _from(first, place - begin))
        return tuple([found[place].symbol_id for place in places])

    def _known(
        self, base: Base, place: int | None, steps: tuple[LoopStep, ...], address: Callable[[int], Address]
    ) -> BoundSymbol:
        """Return the symbol of a place; ``address`` is asked for it the first time."""
        key = (base, place, steps)
        known = self._current.get(key)
        if known is None:
            known = self._current[key] = self._allocate(address(0 if place is None else place))
        return known

    def _ordered_arguments(self) -> list[Base]:
        indices = sorted(base.arg_index for base in self._used_bases if base.arg_index is not None)
        return [Base(index) for index in indices]


def _window(base: Base, start_bytes: int) -> Address:
    name = f"{base.name}_slice"
    return Address(f"{name}_{start_bytes}", base.name, start_bytes, f"{name}_offset_{start_bytes}")


def _from(first: BoundSymbol, distance_bytes: int) -> Address:
    name = f"{first.address.value}_core"
    return Address(f"{name}_{distance_bytes}", first.address.value, distance_bytes, f"{name}_offset_{distance_bytes}")
