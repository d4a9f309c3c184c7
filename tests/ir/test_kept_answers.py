"""Answers that outlive a process: the same as found anew, and found anew where what was kept is none."""

from __future__ import annotations

import pytest

from spyrec.ir.kept_answers import AnswerForm, KeptAnswers


def _read(data: object) -> int:
    if not isinstance(data, int):
        raise TypeError(data)
    return data


NUMBER = AnswerForm[int]("number", lambda found: found, _read)
"""An answer that is a number."""


def test_an_answer_is_found_once_and_taken_by_what_it_follows_from() -> None:
    asked: list[str] = []

    def find(name: str, found: int) -> int:
        asked.append(name)
        return found

    first = KeptAnswers("spyrec")
    assert [first.answer(NUMBER, ("a", 1), lambda: find("a", 7)) for _ in range(2)] == [7, 7]
    second = KeptAnswers("spyrec", first.used)
    assert second.answer(NUMBER, ("a", 1), lambda: find("again", 8)) == 7
    assert second.answer(NUMBER, ("a", 2), lambda: find("other facts", 10)) == 10
    assert KeptAnswers("another", first.used).answer(NUMBER, ("a", 1), lambda: find("another", 11)) == 11
    other = AnswerForm[int]("another question", lambda found: found, _read)
    assert second.answer(other, ("a", 1), lambda: find("another question", 12)) == 12
    assert "again" not in asked


@pytest.mark.parametrize("data", [None, "7", [7], {}])
def test_data_that_is_no_answer_is_found_anew(data: object) -> None:
    first = KeptAnswers("spyrec")
    first.answer(NUMBER, "a", lambda: 7)
    damaged = KeptAnswers("spyrec", dict.fromkeys(first.used, data))
    assert damaged.answer(NUMBER, "a", lambda: 7) == 7
    assert damaged.used == first.used
