"""How often loops go round in one launch, where a value that the launch gives says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.emulator.dispatch_trace import TripCounts
from spyrec.emulator.resolve import PROGRAM_FILE, ScheduledLoop


def bound_values(loops: Iterable[ScheduledLoop], maxima: Mapping[str, int], given: Mapping[str, int]) -> TripCounts:
    """Return the values that each loop's variable takes; ``maxima``: of the value parameters.

    Errors: SPY0708 where a parameter has no value or one out of range, or a value no parameter.
    """
    for name in sorted({*maxima, *given}):
        if name not in maxima:
            raise _refused(f'the program has no value parameter "%{name}"')
        if name not in given:
            raise _refused(f'parameter "%{name}" has no value, it takes 0 to {maxima[name]}')
        if not 0 <= given[name] <= maxima[name]:
            raise _refused(f'parameter "%{name}" has the value {given[name]}, it takes 0 to {maxima[name]}')
    return {
        loop.number: loop.values
        if loop.parameter is None
        else range(loop.values.start, given[loop.parameter], loop.values.step)
        for loop in loops
    }


def iteration_of(loops: Iterable[ScheduledLoop], values: TripCounts, execution: int) -> tuple[int, ...]:
    """Return the round of each loop around a call, outermost first, in its execution number ``execution`` (from 0)."""
    rounds: list[int] = []
    for loop in reversed(tuple(loops)):
        execution, own = divmod(execution, len(values[loop.number]))
        rounds.append(own)
    return tuple(reversed(rounds))


def _refused(message: str) -> SpyrecError:
    hint = "give every value parameter a value in its range, and no others"
    return refuse("SPY0708", message, Location(PROGRAM_FILE), hint=hint)
