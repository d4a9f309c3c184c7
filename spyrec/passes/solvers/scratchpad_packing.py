"""Offsets in a memory for buffers with lifetimes: which lie in it where not all fit, or how little takes them all."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from spyrec.diagnostics import refuse
from spyrec.diagnostics.near_names import one_of
from spyrec.passes.solvers.packing_decoder import Places
from spyrec.passes.solvers.packing_problem import Packing, PackingBuffer, PackingProblem, value_bound
from spyrec.passes.solvers.packing_search import HEIGHT_VISITS, search_height, search_value

__all__ = ["PLANNERS", "Packing", "PackingBuffer", "checked_planner", "minimise_height", "plan"]

BEST_FIT, OMNIMALLOC, CPSAT = "best-fit", "omnimalloc", "cpsat"
PLANNERS = (BEST_FIT, OMNIMALLOC, CPSAT)
"""The planners by name: our own, and two that extras bring."""

BEST_FIT_VERSION = "1"
"""Of our own planner; raised whenever it finds other offsets than before."""

_EXTRAS = {OMNIMALLOC: ("omnimalloc", "alloc"), CPSAT: ("ortools", "solver")}
"""Planner -> the distribution and module that it needs, and the extra that brings it."""


def plan(buffers: Sequence[PackingBuffer], limit: int, alignment: int = 128, planner: str = BEST_FIT) -> Packing:
    """Return offsets below ``limit`` that win as much value as the planner finds.

    Two buffers that are alive at one step do not overlap, unless one overwrites its parent in place at that step: then
    both have the same offset.  A required buffer goes before all that are not; where not even the required ones fit,
    some of them are left out.  The same buffers give the same offsets on every machine.
    Errors: SPY0414 the extra that the planner needs is not installed.
    """
    checked_planner(planner)
    problem = PackingProblem.of(buffers, limit, alignment)
    total = sum(buffer.value for buffer in buffers)
    weights = [buffer.value + (total + 1 if buffer.is_required else 0) for buffer in buffers]
    bound = value_bound(problem)
    goal = bound + (total + 1) * sum(buffer.is_required for buffer in buffers)
    places = search_value(problem, weights, goal)
    if planner != BEST_FIT and sum(weight for weight, place in zip(weights, places) if place is not None) < goal:
        places, proved = _better(problem, weights, places, planner)
        bound = bound if proved is None or any(buffer.is_required for buffer in buffers) else min(bound, proved)
    value = sum(buffer.value for buffer, place in zip(buffers, places) if place is not None)
    return Packing(tuple(None if place is None else place * alignment for place in places), value, bound)


def _better(problem: PackingProblem, weights: list[int], known: Places, planner: str) -> tuple[Places, int | None]:
    """Return the places that the named planner makes of ours, and a bound where it proves one."""
    if planner == OMNIMALLOC:
        from spyrec.passes.solvers.packing_omnimalloc import pack_value

        return pack_value(problem, weights, known), None
    from spyrec.passes.solvers.packing_cpsat import solve_value

    return solve_value(problem, weights, known)


def minimise_height(
    buffers: Sequence[PackingBuffer], alignment: int = 128, planner: str = BEST_FIT, visits: int = HEIGHT_VISITS
) -> tuple[int, ...]:
    """Return an offset for every buffer, so that the end of the highest one is low.

    ``visits`` bounds the work of our own planner.
    Errors: SPY0414 the extra that the planner needs is not installed.
    """
    checked_planner(planner)
    problem = PackingProblem.of(buffers, None, alignment)
    if planner == BEST_FIT:
        places = search_height(problem, visits)
    elif planner == OMNIMALLOC:
        from spyrec.passes.solvers.packing_omnimalloc import pack_height

        places = pack_height(problem, search_height(problem, visits=0))
    else:
        from spyrec.passes.solvers.packing_cpsat import solve_height

        places = solve_height(problem, search_height(problem, visits))
    return tuple(place * alignment for place in places)


def checked_planner(planner: str) -> str:
    """Return a planner's version: its own, or that of the package which it stands for.

    Errors: SPY0414 no planner has the name, or the extra that it needs is not installed.
    """
    if planner not in PLANNERS:
        fact = f'there is no LX planner "{planner}"'
        raise refuse("SPY0414", fact, hint=one_of(planner, PLANNERS))
    if planner not in _EXTRAS:
        return BEST_FIT_VERSION
    module, extra = _EXTRAS[planner]
    if find_spec(module) is None:
        fact = f'the LX planner "{planner}" needs {module}, which is not installed'
        raise refuse("SPY0414", fact, hint=f"pip install 'spyrec[{extra}]'")
    from importlib.metadata import version

    return version(module)
