"""The choice of layouts of a graph, as a problem to solve and to look into."""

from __future__ import annotations

from spyrec.hardware.target import Target
from spyrec.ir.kernel import KernelGraph
from spyrec.passes.assign_layouts import LayoutChoice, LayoutProblem, candidates_of
from spyrec.passes.base import Refused


def layout_problem(formed: KernelGraph, *, fixed_io_layouts: bool = False) -> LayoutProblem:
    """Return the problem of a graph whose buffers all have layouts to choose from."""
    plain = candidates_of(formed, Target(), fixed_io_layouts=fixed_io_layouts)
    assert not isinstance(plain, Refused)
    return LayoutProblem(formed, plain)


def solved(problem: LayoutProblem) -> LayoutChoice:
    """Return the best choice of a problem that has one."""
    choice = problem.solve()
    assert choice is not None
    return choice
