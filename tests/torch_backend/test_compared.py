"""What the benchmark of PyTorch's operations accepts: rounding, and nothing larger."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportAttributeAccessIssue=false, reportOperatorIssue=false
from __future__ import annotations

import math

import torch

from benchmarks.torch_ops.compared import HALF_ROUNDOFF, exact_results, tolerances, worst


def test_the_tolerance_of_a_sum_is_that_of_its_terms_where_they_cancel() -> None:
    arguments = (torch.tensor([1000.0]), torch.tensor([-999.0]))
    (allowed,) = tolerances(torch.add, arguments, HALF_ROUNDOFF)
    assert 1000 * HALF_ROUNDOFF < allowed <= 4 * 2 * 1000 * HALF_ROUNDOFF


def test_the_tolerance_of_a_copy_is_its_rounding() -> None:
    (allowed,) = tolerances(lambda x: x * 0 + 3, (torch.ones(2),), HALF_ROUNDOFF)
    assert allowed == 4 * HALF_ROUNDOFF * 3


def test_differences_are_seen_whatever_the_numbers_are() -> None:
    inf, nan = math.inf, math.nan
    wanted = torch.tensor([1.0, inf, nan, 2.0])
    for found, error in (
        ([1, inf, nan, 2.5], 0.5),
        ([1, -inf, nan, 2], inf),
        ([1, inf, 0, 2], inf),
        ([nan, inf, nan, 2], inf),
    ):
        assert worst([torch.tensor(found)], [wanted]) == [error]
    assert worst([torch.zeros(3)], [torch.zeros(4)]) == [inf]
    assert worst([torch.zeros(0)], [torch.zeros(0)]) == [0.0]


def test_exact_results_are_float64_and_leave_whole_numbers() -> None:
    results = exact_results(lambda x, n: (x / 3, n), (torch.ones(1), torch.tensor([2])))
    assert [item.dtype for item in results] == [torch.float64, torch.int64]
    assert results[0].item() == 1 / 3
