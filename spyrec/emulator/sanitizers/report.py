"""Collecting findings: the first few of each kind, no two of one place."""

from __future__ import annotations

from collections import Counter

from spyrec.runtime.findings import Finding, Sanitizer

MOST_FINDINGS = 10
"""Findings kept per sanitizer: one bug shows in many places, and the first is the one to look at."""


class Report:
    """What the chosen sanitizers found, in order."""

    def __init__(self, kinds: frozenset[Sanitizer]) -> None:
        self.kinds = kinds
        self.findings: list[Finding] = []
        self._counts: Counter[Sanitizer] = Counter()
        self._places: set[tuple[object, ...]] = set()

    def add(self, finding: Finding) -> None:
        """Keep a finding of a chosen kind, unless its SuperDSC, operand and fault were seen before."""
        place = (finding.sanitizer, finding.file, finding.operand, finding.tensor, finding.field)
        if finding.sanitizer not in self.kinds or place in self._places:
            return
        self._places.add(place)
        self._counts[finding.sanitizer] += 1
        if self._counts[finding.sanitizer] <= MOST_FINDINGS:
            self.findings.append(finding)
