"""What changed between two bundles, as facts that are grouped by what they say: one cause is one line with a count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from spyrec.dataclass import dataclass

_NAMED = 3
"""Operations and tensors of a group that are named; the others are counted."""


class Topic(Enum):
    """What a change is about, in the order in which they are told: causes before what follows from them."""

    OPTIONS = "options"
    GRAPH = "graph"
    ARGUMENTS = "arguments"
    PLAN = "plan"
    OPERATIONS = "operations"
    LOOPS = "loops"
    DIVISIONS = "divisions"
    LAYOUTS = "layouts"
    ADDRESSES = "addresses"
    LX = "LX places"
    CONSTANTS = "constants"
    COPIES = "host copies"
    ORIGINS = "origins"
    PREDICTIONS = "predictions"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that changed: ``about`` a tensor, dim or option (or nothing), in one operation (or in none)."""

    topic: Topic
    about: str
    text: str
    operation: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Facts that say the same: of which things and in which operations, in order.  ``count``: how many facts."""

    topic: Topic
    text: str
    abouts: tuple[str, ...]
    operations: tuple[str, ...]
    count: int

    def __str__(self) -> str:
        subject = ""
        if len(self.abouts) == 1 and self.abouts[0]:
            subject = f"{self.abouts[0]} "
        elif len(self.abouts) > 1:
            subject = f"each of {len(self.abouts):,} ({named(self.abouts)}) "
        if not self.operations:
            return subject + self.text
        if len(self.operations) == 1:
            return f"{subject}{self.text}, in {self.operations[0]}"
        return f"{subject}{self.text}, in {len(self.operations):,} operations ({named(self.operations)})"

    def to_json(self) -> dict[str, object]:
        """Return the change as a JSON object, with all operations and names."""
        return {
            "topic": self.topic.value,
            "what": str(self),
            "about": [item for item in self.abouts if item],
            "operations": list(self.operations),
            "count": self.count,
        }


def named(items: Sequence[str]) -> str:
    """Return the first names of a list, and dots for the others."""
    return ", ".join([*items[:_NAMED], *(["..."] if len(items) > _NAMED else [])])


def grouped(facts: Iterable[Fact]) -> list[Change]:
    """Return facts by topic, those of one text together, in the order of their first one."""
    groups: dict[tuple[Topic, str], list[Fact]] = {}
    for fact in facts:
        groups.setdefault((fact.topic, fact.text), []).append(fact)
    changes = [
        Change(
            topic,
            text,
            tuple(dict.fromkeys(item.about for item in found)),
            tuple(dict.fromkeys(item.operation for item in found if item.operation is not None)),
            len(found),
        )
        for (topic, text), found in groups.items()
    ]
    order = {topic: place for place, topic in enumerate(Topic)}
    return sorted(changes, key=lambda item: order[item.topic])


def change_lines(changes: Sequence[Change]) -> Iterator[str]:
    """Yield the changes below a line for each topic."""
    last: Topic | None = None
    for change in changes:
        if change.topic is not last:
            yield change.topic.value
            last = change.topic
        yield f"  {change}"
