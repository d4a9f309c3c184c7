"""Which arguments a program reads and which it writes: what its SuperDSCs' operands say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from spyrec.bundle.data_dsc import MovedTensor
from spyrec.bundle.program import (
    ARGUMENT_PARAMETER,
    Add,
    AffineApply,
    ArgumentExtract,
    For,
    Program,
    SdscExecute,
    Statement,
)
from spyrec.bundle.superdsc import Component, Operand, SuperDsc
from spyrec.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AddressSpan:
    """Where an argument lies in a program with baked addresses, in bytes."""

    base: int
    size_bytes: int

    def holds(self, address: int) -> bool:
        """Whether the byte at ``address`` is one of the argument's."""
        return self.base <= address < self.base + self.size_bytes


@dataclass(frozen=True, slots=True)
class ArgumentUses:
    """Indices of the arguments that a program reads, and of those that it writes."""

    read: frozenset[int]
    written: frozenset[int]


def argument_uses(program: Program, superdscs: Mapping[str, SuperDsc], spans: Sequence[AddressSpan]) -> ArgumentUses:
    """Return which arguments a program uses how; ``spans``: by index, where baked addresses put them."""
    read: set[int] = set()
    written: set[int] = set()
    for call, origins in _calls(program.body, {}):
        superdsc = superdscs[call.sdsc_filename]
        operands = [(dsc, position, operand) for dsc in superdsc.dscs for position, operand in enumerate(dsc.operands)]
        for dsc, position, operand in operands:
            if operand.component is not Component.HBM:
                continue
            used = _arguments_of(operand, call, origins, spans)
            is_output = position in dsc.compute.outputs
            written.update(used if is_output else ())
            read.update(() if is_output and position not in dsc.compute.inputs else used)
        for data_dsc in () if superdsc.schedule is None else superdsc.schedule.data_dscs:
            read.update(_held(data_dsc.source, spans))
            written.update(_held(data_dsc.destination, spans))
    return ArgumentUses(frozenset(read), frozenset(written))


def _held(tensor: MovedTensor, spans: Sequence[AddressSpan]) -> set[int]:
    """Return the arguments that pieces of a tensor lie in."""
    starts = {place.start_bytes for _, place in tensor.placed if place.core is None}
    return {index for index, span in enumerate(spans) for start in starts if span.holds(start)}


def _arguments_of(
    operand: Operand, call: SdscExecute, origins: Mapping[str, int | None], spans: Sequence[AddressSpan]
) -> set[int]:
    if not operand.is_symbolic:
        starts = set(operand.start_addresses)
        return {index for index, span in enumerate(spans) for start in starts if span.holds(start)}
    values = dict(zip(call.symbol_ids or (), call.operands, strict=False))
    used = {origins.get(values[symbol]) for symbol in operand.start_addresses if symbol in values}
    return {index for index in used if index is not None}


def _calls(
    body: Iterable[Statement], origins: dict[str, int | None]
) -> Iterator[tuple[SdscExecute, Mapping[str, int | None]]]:
    """Yield every call with the values defined there: the argument that each is an address in, if it is one.

    ``origins`` grows along the walk: a name that a later loop defines anew holds from there on.
    """
    for statement in body:
        match statement:
            case ArgumentExtract(result, argument):
                match = ARGUMENT_PARAMETER.fullmatch(argument)
                origins[result] = None if match is None else int(match[1])
            case Add(result, left, right):
                origin = origins.get(left)
                origins[result] = origins.get(right) if origin is None else origin
            case AffineApply(result, _, _, symbol):
                origins[result] = origins.get(symbol)
            case SdscExecute():
                yield statement, origins
            case For():
                yield from _calls(statement.body, origins)
            case _:
                pass
