"""Random programs of every kind that came with August 2026: both engines bit for bit, and NumPy's numbers.

What a program is stands in ``tests/support/kinds/program.py``, a kind in a file beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.bundle.program import Constant, Statement
from spyrec.bundle.superdsc import SuperDsc
from spyrec.codegen.emit_opspecs import EmittedProgram
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.engine import Integers
from spyrec.emulator.reference.execution import DefinedExecution
from spyrec.emulator.reference.memory import Patterns
from tests.support.both_engines import Bytes, Launched, LaunchStats
from tests.support.examples import examples
from tests.support.kinds.kinds import KINDS, PROGRAMS
from tests.support.kinds.program import EXACT, OWN, RandomProgram, hold, words
from tests.support.planting import other_op

of_each_kind = pytest.mark.parametrize("kind", KINDS)


def refusal(case: RandomProgram) -> set[str]:
    """Return the codes with which a program is refused, none where it holds."""
    try:
        hold(case)
    except SpyrecError as error:
        return {item.code for item in error.diagnostics}
    return set()


@of_each_kind
def test_random_programs(kind: str) -> None:
    @examples(PROGRAMS)
    @given(st.integers(0, 1 << 30))
    def check(seed: int) -> None:
        case = KINDS[kind](Random(seed))
        found = refusal(case)
        if found:  # upstream counts by the places of dims, which may describe another tensor
            assert case.options is EXACT
            assert found <= {"SPY0706", "SPY0713", "SPY0714", "SPY0716"}
            hold(replace(case, options=OWN))

    check()


# --- each kind seen to fail -------------------------------------------------------------------------------------------


def some(kind: str, fits: Callable[[RandomProgram], bool] | None = None) -> RandomProgram:
    """Return a program of a kind that holds."""
    case = next(case for case in (KINDS[kind](Random(seed)) for seed in range(200)) if fits is None or fits(case))
    hold(case)
    return case


@of_each_kind
def test_engines_that_differ_in_a_bit_are_seen(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = some(kind)
    right = DefinedExecution.store_at

    def wrong(self: DefinedExecution, core: int, offsets: Integers, patterns: Patterns) -> None:
        right(self, core, offsets, patterns + 1)

    monkeypatch.setattr(DefinedExecution, "store_at", wrong)
    with pytest.raises(AssertionError):
        hold(case)


@of_each_kind
def test_a_store_that_both_engines_leave_out_is_seen(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = some(kind)
    right = Launched.memory

    def wrong(self: Launched, engine: str, numerics: str = "dl16") -> tuple[dict[str, Bytes], LaunchStats]:
        held, stats = right(self, engine, numerics)
        for index in case.wanted:
            before, argument = case.memory(index), case.arguments[index]
            after = words(held[f"argument {index}"], argument)
            for stick in zip(*case.wanted[index].where[:-1], strict=True):
                if (after[stick] != words(before, argument)[stick]).any():
                    after[stick] = words(before, argument)[stick]
                    return held, stats
        return held, stats

    monkeypatch.setattr(Launched, "memory", wrong)
    with pytest.raises(AssertionError):
        hold(case)


@of_each_kind
def test_a_store_beside_what_an_operation_is_to_store_is_seen(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = some(kind)
    right = Launched.memory

    def wrong(self: Launched, engine: str, numerics: str = "dl16") -> tuple[dict[str, Bytes], LaunchStats]:
        held, stats = right(self, engine, numerics)
        first = min(index for index in case.arguments if index not in case.wanted)
        held[f"argument {first}"][-1] += 1
        return held, stats

    if set(case.arguments) == set(case.wanted):
        case = some(kind, lambda found: set(found.arguments) != set(found.wanted))
    monkeypatch.setattr(Launched, "memory", wrong)
    with pytest.raises(AssertionError, match="has changed"):
        hold(case)


# --- files that are wrong, each in what is new of its kind -----------------------------------------------------------


def every(change: Callable[[SuperDsc], SuperDsc]) -> Callable[[EmittedProgram], EmittedProgram]:
    def changed(emitted: EmittedProgram) -> EmittedProgram:
        return replace(emitted, superdscs={name: change(item) for name, item in emitted.superdscs.items()})

    return changed


def another_function(superdsc: SuperDsc) -> SuperDsc:
    others = {"add": "sub", "sub": "add", "maximum": "minimum", "minimum": "maximum", "neg": "abs", "abs": "neg"}
    others |= {"identity": "neg", "exp": "neg", "sum": "max", "sumnonstick": "maxnonstick"}
    return other_op(superdsc, others.get(superdsc.op_func_name, superdsc.op_func_name))


def without_mask(superdsc: SuperDsc) -> SuperDsc:
    return replace(superdsc, coordinate_masking={})


def one_round_less(emitted: EmittedProgram) -> EmittedProgram:
    """The outermost loop that has rounds to lose ends before its last one."""
    statements: list[Statement] = list(emitted.program.body)
    at = next(i for i, item in enumerate(statements)
              if isinstance(item, Constant) and item.result.startswith("loop_bound") and item.value > 1)  # fmt: skip
    bound = statements[at]
    assert isinstance(bound, Constant)
    statements[at] = replace(bound, value=bound.value - 1)
    return replace(emitted, program=replace(emitted.program, body=tuple(statements)))


def always(_: RandomProgram) -> bool:
    return True


def has_padding(case: RandomProgram) -> bool:
    return any(item.coordinate_masking for item in case.emitted().superdscs.values())


def has_rounds(case: RandomProgram) -> bool:
    found = (item for item in case.emitted().program.body if isinstance(item, Constant))
    return any(item.result.startswith("loop_bound") and item.value > 1 for item in found)


PLANTED: dict[str, tuple[Callable[[EmittedProgram], EmittedProgram], Callable[[RandomProgram], bool]]] = {
    "windows": (every(another_function), always),
    "loops": (one_round_less, has_rounds),
    "gather": (every(another_function), always),
    "scatter": (every(another_function), always),
    "masked exp": (every(without_mask), has_padding),
    "product of elements": (every(without_mask), has_padding),
    "dynamic sizes": (every(another_function), always),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_wrong_file_is_seen(kind: str) -> None:
    """In one of ten programs: a round may store what the one before it stored, and a product be zero."""
    change, fits = PLANTED[kind]
    cases = [case for case in (KINDS[kind](Random(seed)) for seed in range(40)) if fits(case)][:10]

    def is_seen(case: RandomProgram) -> bool:
        hold(case)
        try:
            hold(case, change)
        except AssertionError:
            return True
        return False

    assert any(is_seen(case) for case in cases)
