"""The exact optimum: a packing as constraints for OR-Tools' CP-SAT (extra ``solver``).

One worker, a fixed seed and a limit in deterministic time (work done, not seconds): the same version of OR-Tools finds
the same places on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spyrec.dataclass import dataclass
from spyrec.passes.solvers.packing_decoder import Places
from spyrec.passes.solvers.packing_problem import PackingProblem, apart_by_step, height_bound

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

DETERMINISTIC_TIME = 5.0
"""CP-SAT's measure of its own work; about a second each on the machine it was calibrated for."""


@dataclass(frozen=True, slots=True)
class _Model:
    """Variables of a packing: where each buffer starts, and whether it is in, or could be."""

    model: cp_model.CpModel
    limit: int
    fits: tuple[bool, ...]
    starts: tuple[cp_model.IntVar, ...]
    presences: tuple[cp_model.IntVar, ...]


def solve_value(problem: PackingProblem, weights: list[int], known: Places) -> tuple[Places, int]:
    """Return the places of most weight that CP-SAT finds, and a weight that no places exceed.

    ``known``: places to begin with, which stay the answer where nothing better is found.
    """
    assert problem.limit is not None, "where all fit there is nothing to choose"
    variables = _model(problem, problem.limit, problem.highest, known)
    variables.model.maximize(sum(weight * there for weight, there in zip(weights, variables.presences)))
    solver = _solve(variables.model)
    if solver is None:
        return known, sum(weights)
    best = sum(weight for weight, place in zip(weights, known) if place is not None)
    bound = max(best, int(solver.best_objective_bound + 0.5))
    return (_places(solver, variables), bound) if solver.objective_value > best else (known, bound)


def solve_height(problem: PackingProblem, known: list[int]) -> list[int]:
    """Return a place for every buffer with the lowest end that CP-SAT finds, at most that of ``known``."""
    sizes = problem.sizes
    highest = max((place + size for place, size in zip(known, sizes)), default=0)
    variables = _model(problem, highest, [highest - size for size in sizes], list(known))
    height = variables.model.new_int_var(height_bound(problem), highest, "height")
    for start, there, size in zip(variables.starts, variables.presences, sizes):
        variables.model.add(there == 1)
        variables.model.add(start + size <= height)
    variables.model.add_hint(height, highest)
    variables.model.minimize(height)
    solver = _solve(variables.model)
    return known if solver is None else [place or 0 for place in _places(solver, variables)]


def _model(problem: PackingProblem, limit: int, highest: Sequence[int], known: Places) -> _Model:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    starts = tuple(model.new_int_var(0, max(0, most), f"start{index}") for index, most in enumerate(highest))
    presences = tuple(model.new_bool_var(f"there{index}") for index in range(len(problem.sizes)))
    variables = _Model(model, limit, tuple(most >= 0 for most in highest), starts, presences)
    for fits, place, start, there in zip(variables.fits, known, starts, presences):
        if not fits:
            model.add(there == 0)
        model.add_hint(there, place is not None)
        model.add_hint(start, place or 0)
    _keep_apart(variables, problem)
    for alive in [apart.members for apart in apart_by_step(problem)]:
        if sum(problem.sizes[index] for index in alive) > limit:
            model.add(sum(problem.sizes[index] * presences[index] for index in alive) <= limit)
    return variables


def _keep_apart(variables: _Model, problem: PackingProblem) -> None:
    """State that what lives together lies apart: rectangles of time and memory, and the steps taken over in place.

    The rectangle of a buffer that may overwrite a parent begins one step later; at its first step it is held against
    each of the others.
    """
    model, buffers = variables.model, problem.buffers
    begins = [buffer.first + bool(buffer.parents) for buffer in buffers]
    times: list[cp_model.IntervalVar] = []
    spaces: list[cp_model.IntervalVar] = []
    for index, (size, there) in enumerate(zip(problem.sizes, variables.presences)):
        steps = buffers[index].last + 1 - begins[index]
        if steps and size:
            start = variables.starts[index]
            times.append(model.new_optional_fixed_size_interval_var(begins[index], steps, there, f"time{index}"))
            spaces.append(model.new_optional_fixed_size_interval_var(start, size, there, f"space{index}"))
    model.add_no_overlap_2d(times, spaces)
    for index, neighbours in enumerate(problem.neighbours):
        for other in neighbours:
            is_covered = max(begins[index], begins[other]) <= min(buffers[index].last, buffers[other].last)
            is_possible = variables.fits[index] and variables.fits[other]
            if other < index and is_possible and not is_covered:
                _keep_pair_apart(variables, problem, index, other)


def _keep_pair_apart(variables: _Model, problem: PackingProblem, one: int, other: int) -> None:
    model, starts, sizes = variables.model, variables.starts, problem.sizes
    below, above, same = (model.new_bool_var(f"{name}{one}_{other}") for name in ("below", "above", "same"))
    reach = variables.limit + 1  # what is added where a relation does not hold: no two buffers are as far apart
    model.add(starts[one] + sizes[one] <= starts[other] + reach * (1 - below))
    model.add(starts[other] + sizes[other] <= starts[one] + reach * (1 - above))
    if other in problem.relatives[one]:
        model.add(starts[one] - starts[other] <= reach * (1 - same))
        model.add(starts[other] - starts[one] <= reach * (1 - same))
    else:
        model.add(same == 0)
    there = variables.presences
    model.add_bool_or([below, above, same, there[one].negated(), there[other].negated()])


def _solve(model: cp_model.CpModel) -> cp_model.CpSolver | None:
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = DETERMINISTIC_TIME
    status = solver.solve(model)
    return solver if status in {cp_model.OPTIMAL, cp_model.FEASIBLE} else None


def _places(solver: cp_model.CpSolver, variables: _Model) -> Places:
    return [
        solver.value(start) if solver.boolean_value(there) else None
        for start, there in zip(variables.starts, variables.presences)
    ]
