"""Counting and choosing what a program executes."""

from __future__ import annotations

import pytest

from spyrec.bundle.execution_count import execution_count
from spyrec.bundle.program import Add, ArgumentExtract, Constant, For, InputArgument, Program, SdscExecute
from spyrec.diagnostics import SpyrecError
from spyrec.runtime.selection import only_calls_of, refuse_too_many_executions


def nest(lower: int, upper: int, step: int, inner_upper: int) -> Program:
    inner = For("j", "zero", "n", "one", (SdscExecute("sdsc_1.json"),))
    body = (
        Constant("zero", 0),
        Constant("one", 1),
        Constant("half", inner_upper // 2),
        Constant("rest", inner_upper - inner_upper // 2),
        Add("n", "half", "rest"),
        Constant("lo", lower),
        Constant("hi", upper),
        Constant("st", step),
        SdscExecute("sdsc_0.json"),
        For("i", "lo", "hi", "st", (SdscExecute("sdsc_0.json"), inner)),
    )
    return Program((), (), body)


@pytest.mark.parametrize(("lower", "upper", "step"), [(0, 5, 1), (0, 5, 2), (3, 4, 7), (4, 4, 1), (9, 2, 1), (1, 9, 4)])
def test_executions_are_counted_as_a_python_range_does(lower: int, upper: int, step: int) -> None:
    assert execution_count(nest(lower, upper, step, 3)) == 1 + len(range(lower, upper, step)) * (1 + 3)


def test_counting_does_not_iterate() -> None:
    assert execution_count(nest(0, 10**15, 1, 10**15)) == 1 + 10**15 * (1 + 10**15)


def test_a_loop_that_the_launch_bounds_counts_by_its_largest_value_or_once() -> None:
    loop = For("i", "zero", "rounds", "two", (SdscExecute("sdsc_0.json"),))
    numbers = (Constant("zero", 0), Constant("two", 2), ArgumentExtract("rounds", "S_value"))
    program = Program((), (InputArgument("S_value"),), (*numbers, loop))
    assert execution_count(program) == 1
    assert [execution_count(program, {"S_value": most}) for most in (0, 1, 7)] == [0, 1, 4]


def test_only_keeps_the_calls_of_one_file_and_its_loops() -> None:
    kept = only_calls_of(nest(0, 4, 1, 3), "sdsc_1.json")
    assert execution_count(kept) == 12
    assert execution_count(only_calls_of(nest(0, 4, 1, 3), "sdsc_0.json")) == 5


def test_more_executions_than_allowed_are_refused_over_all_programs() -> None:
    programs = {".": nest(0, 4, 1, 3), "kernels/1": nest(0, 4, 1, 3)}
    refuse_too_many_executions(programs, 34)
    with pytest.raises(SpyrecError) as caught:
        refuse_too_many_executions(programs, 33)
    assert caught.value.diagnostics[0].code == "SPY0767"
    assert "34" in caught.value.diagnostics[0].message
