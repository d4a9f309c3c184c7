"""Two bundle directories beside each other: what changed in words, and every place that differs."""

from __future__ import annotations

from pathlib import Path

from spyrec.compare.bundle_listing import programs_below
from spyrec.compare.changes import Change
from spyrec.compare.diff import Difference, diff_bundles
from spyrec.compare.semantic_diff import NO_TABLES, ArgumentTables, changes_of
from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError


@dataclass(frozen=True, slots=True)
class BundleDiff:
    """What differs.  ``is_semantic``: only ``changes`` count, and ``differences`` were not looked for.

    ``untold``: why there are no words for it; a damaged bundle is still compared place by place.
    """

    changes: tuple[Change, ...]
    differences: tuple[Difference, ...]
    is_semantic: bool
    untold: str | None = None

    @property
    def differs(self) -> bool:
        """Whether the bundles are not the same."""
        return bool(self.changes if self.is_semantic else self.differences)


def diff_directories(
    left: Path, right: Path, *, is_semantic: bool = False, tables: ArgumentTables = NO_TABLES
) -> BundleDiff:
    """Compare two bundles; the words are looked for where places differ, or where only they count.

    ``tables``: what the arguments of a side are, where it has no manifest.  Errors: as
    :func:`spyrec.compare.diff.diff_bundles`, and with ``is_semantic`` as
    :func:`spyrec.compare.semantic_diff.changes_of`.
    """
    held = programs_below(left), programs_below(right)  # as long as they are, no other reader parses them
    found = _found(left, right, is_semantic=is_semantic, tables=tables)
    del held
    return found


def _found(left: Path, right: Path, *, is_semantic: bool, tables: ArgumentTables) -> BundleDiff:
    if is_semantic:
        return BundleDiff(tuple(changes_of(left, right, tables)), (), is_semantic=True)
    differences = tuple(diff_bundles(left, right))
    if not differences:
        return BundleDiff((), (), is_semantic=False)
    try:
        return BundleDiff(tuple(changes_of(left, right, tables)), differences, is_semantic=False)
    except SpyrecError as error:
        first = error.diagnostics[0]
        place = "" if first.location is None or first.location.file is None else f"{first.location.file}: "
        return BundleDiff((), differences, is_semantic=False, untold=f"{place}{first.message} ({first.code})")
