"""How many SuperDSCs a program executes, counted without going round its loops."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.bundle.program import Add, ArgumentExtract, Constant, For, Program, SdscExecute, Statement


def execution_count(program: Program, maxima: Mapping[str, int] | None = None) -> int:
    """Return how many SuperDSCs the program executes, the most there can be.

    ``maxima``: the largest value of each value parameter.  A loop whose bounds are neither constants nor among these
    counts as executed once: it is the device's to refuse.
    """
    return _count(program.body, {}, maxima or {})


def _count(body: tuple[Statement, ...], known: dict[str, int], maxima: Mapping[str, int]) -> int:
    total = 0
    for statement in body:
        match statement:
            case Constant():
                known[statement.result] = statement.value
            case ArgumentExtract() if statement.argument in maxima:
                known[statement.result] = maxima[statement.argument]
            case Add() if statement.left in known and statement.right in known:
                known[statement.result] = known[statement.left] + known[statement.right]
            case SdscExecute():
                total += 1
            case For():
                total += _trip_count(statement, known) * _count(statement.body, dict(known), maxima)
            case _:
                continue
    return total


def _trip_count(loop: For, known: Mapping[str, int]) -> int:
    bounds = [known.get(name) for name in (loop.lower, loop.upper, loop.step)]
    match bounds:
        case [int(lower), int(upper), int(step)] if step > 0:
            return max(0, -((lower - upper) // step))
        case _:
            return 1
