"""``check`` and ``run`` on every bundle of August 2026 say what the page says; refused is what upstream cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.august_outcomes import AUGUST, PAGE, REASONS, cases, outcome

LINES = {line.split("`")[1]: line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")}


@pytest.mark.parametrize("case", cases())
def test_a_bundle_as_emitted_is_checked_and_run(case: str, tmp_path: Path) -> None:
    found = outcome(case, tmp_path / case)
    assert LINES[case] == found.line, "rewrite the page: python -m scripts.august_outcomes"
    assert (found.check, found.run) == ("ok", "ok") or case in REASONS
    # these are the files that upstream wrote
    for path in AUGUST.joinpath(case).iterdir():
        assert path.name == "opspecs.json" or (tmp_path / case / path.name).read_bytes() == path.read_bytes()


def test_the_page_has_every_bundle_and_refuses_those_alone_that_have_a_reason() -> None:
    assert list(LINES) == cases()
    assert len(LINES) == 47
    assert {case for case, line in LINES.items() if "refused" in line or "differs" in line} == REASONS.keys()
    assert all(LINES[case].count("refused, SPY0") == 2 for case in REASONS)
