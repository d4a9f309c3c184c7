"""Answers about kernels that outlive a process: data by a digest of all that they follow from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar, cast

from spyrec.dataclass import dataclass
from spyrec.files.content_digest import ContentDigests

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class AnswerForm(Generic[Answer]):
    """A kind of question, and how its answers are written as JSON data and read again.

    ``read`` raises ``TypeError``, ``ValueError`` or ``KeyError`` for data that it has not written.
    """

    name: str
    write: Callable[[Answer], object]
    read: Callable[[object], Answer]


class KeptAnswers:
    """Answers of compilations before, and those that this one uses: ``used``, by digest.

    ``made_by``: names the compiler, whose rules the answers follow from as well.
    """

    def __init__(self, made_by: str, known: Mapping[str, object] | None = None) -> None:
        self.used: dict[str, object] = {}
        self._made_by = made_by
        self._known = known or {}
        self._digests = ContentDigests()
        self._found: dict[tuple[str, Hashable], object] = {}

    def answer(self, form: AnswerForm[Answer], facts: Hashable, find: Callable[[], Answer]) -> Answer:
        """Return the answer that follows from the facts: one that is known, or what ``find`` finds, once."""
        question = form.name, facts
        if question not in self._found:
            self._found[question] = self._answer(form, facts, find)
        return cast("Answer", self._found[question])

    def _answer(self, form: AnswerForm[Answer], facts: Hashable, find: Callable[[], Answer]) -> Answer:
        digest = self._digests.of((self._made_by, form.name, facts))
        if digest in self._known:
            try:
                found = form.read(self._known[digest])
            except (TypeError, ValueError, KeyError):
                found = find()
        else:
            found = find()
        self.used[digest] = form.write(found)
        return found
