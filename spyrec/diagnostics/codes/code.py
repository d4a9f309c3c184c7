"""One diagnostic code: what it means, and what to do about it."""

from __future__ import annotations

from spyrec.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """What a code means: a title of a few words, and what to know to put it right.

    ``hint`` is what to do in general; it stands in a diagnostic that has no hint of its own.  ``rule`` is the rule of
    the executor, V1 to V14, that a diagnostic of this code says is broken.
    """

    title: str
    explanation: str
    hint: str | None = None
    rule: str | None = None


REPORT = "please file a report together with the input"
"""What to do where a pass broke a rule of its own."""
