"""Two results of a sweep, case by case: what is broken, mended, worse, better, new or gone since the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from spyrec.dataclass import dataclass
from spyrec.sweep.fronts import AXES
from spyrec.sweep.rows import Row


class Verdict(Enum):
    """What has become of a case; the first two fail a gate."""

    BROKEN = "broken"
    """Nothing was wrong with it, and something is."""

    WORSE = "worse"
    """It takes more time, traffic or scratchpad than it did."""

    MENDED = "mended"
    BETTER = "better"
    """It takes less of something, and more of nothing."""

    NEW = "new"
    GONE = "gone"
    UNFINISHED = "not run or gone"
    """It had a row and has none, in results that lack rows."""


FAILING = (Verdict.WORSE, Verdict.BROKEN)


@dataclass(frozen=True, slots=True)
class Change:
    """A case that has changed; ``before`` or ``after`` is ``None`` where it has no row."""

    verdict: Verdict
    before: Row | None
    after: Row | None
    said: str

    @property
    def name(self) -> str:
        """The case as people read it."""
        row = self.after or self.before
        assert row is not None
        return row.name


def changes(
    before: Iterable[Row], after: Iterable[Row], tolerance: float = 0.0, *, is_unfinished: bool = False
) -> list[Change]:
    """Return what has changed, in the order of the cases after, those that are gone at the end.

    Cases are the same where graph's name, options, checks and seed are.  ``tolerance``: the share by which a figure may
    grow and is not worse.  ``is_unfinished``: whether ``after`` has still cases to run.
    """
    old = {row.case: row for row in before}
    found: list[Change] = []
    known: set[str] = set()
    for row in after:
        known.add(row.case)
        change = _change(old.get(row.case), row, tolerance)
        if change is not None:
            found.append(change)
    for case, row in old.items():
        if case not in known:
            verdict = Verdict.UNFINISHED if is_unfinished else Verdict.GONE
            found.append(Change(verdict, row, None, verdict.value))
    return found


def _change(old: Row | None, new: Row, tolerance: float) -> Change | None:
    if old is None:
        return Change(Verdict.NEW, None, new, new.status)
    if old.is_good != new.is_good:
        verdict = Verdict.MENDED if new.is_good else Verdict.BROKEN
        why = f" {new.code}" if new.code else ""
        return Change(verdict, old, new, f"{old.status} -> {new.status}{why}")
    moved = list(_moved(old, new, tolerance))
    if not new.is_good or not moved:
        return None
    is_worse = any(share > 0 for _, share in moved)
    verdict = Verdict.WORSE if is_worse else Verdict.BETTER
    return Change(verdict, old, new, ", ".join(f"{name} {share:+.1%}" for name, share in moved))


def _moved(old: Row, new: Row, tolerance: float) -> Iterator[tuple[str, float]]:
    """Yield the figures that are others by more than the tolerance, and by which share."""
    for name in AXES:
        was: float | None = getattr(old, name)
        now: float | None = getattr(new, name)
        if was is None or now is None or was == now:
            continue
        share = now / was - 1 if was else float("inf")
        if abs(share) > tolerance:
            yield name, share


def counts_line(found: Sequence[Change], name: str) -> str:
    """Return what has changed in one line: ``since yesterday: 3 worse, 1 broken``."""
    counts = {verdict: sum(item.verdict is verdict for item in found) for verdict in (*FAILING, *Verdict)}
    said = [f"{count} {verdict.value}" for verdict, count in counts.items() if count]
    return f"since {name}: {', '.join(said) or 'nothing has changed'}"


def is_failing(found: Iterable[Change]) -> bool:
    """Whether a gate stays shut: something is worse or broken."""
    return any(item.verdict in FAILING for item in found)
