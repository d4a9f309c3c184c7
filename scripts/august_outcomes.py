"""What ``spyrec check`` and ``spyrec run`` say of the bundles that torch-spyre wrote in August 2026.

``python -m scripts.august_outcomes`` rewrites docs/august_2026_outcomes.md; a test holds every line of it.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from spyrec.cli import main as spyrec

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
AUGUST = FIXTURES / "examples_2026_08"
PAGE = ROOT / "docs" / "august_2026_outcomes.md"

NO_REFERENCE = "SPY0548"
"""Code of an operation that ``--check`` does not evaluate."""

REASONS = {
    "add_dynamic_rows_split": "the file says of no core but the first where it begins (Q18), unfinished upstream too",
    "lx_shuffle_rows_to_cols": "it begins with what others left in the scratchpads, and nothing wrote there",
}
"""Why upstream itself cannot run a bundle."""

_HEAD = """# Bundles of August 2026

Written by `python -m scripts.august_outcomes`; `tests/conformance/test_august_outcomes.py` holds every line.

The bundles of `tests/fixtures/examples_2026_08` as torch-spyre wrote them: `spyrec codegen --compat
torch-spyre@2026-08` gives the same bytes from their OpSpecs, and a manifest whose argument table follows from these.
Then `spyrec check`, and `spyrec run --random 1 --check`. Numbers are held against the OpSpecs in float64 where
`--check` evaluates all operations; the others have a float64 or integer oracle in the tests (`tests/support/kinds`).

| bundle | check | run | numbers | |
|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is said of one bundle: ``ok``, or the codes that refuse it."""

    case: str
    check: str
    run: str
    numbers: str

    @property
    def line(self) -> str:
        """Return its line of the page."""
        cells = (f"`{self.case}`", self.check, self.run, self.numbers, REASONS.get(self.case, ""))
        return f"| {' | '.join(cells)} |"


def cases() -> list[str]:
    """Return the names of the bundles, sorted."""
    return sorted(path.name for path in AUGUST.iterdir())


def opspecs_of(case: str) -> Path:
    """Return the OpSpecs of a bundle: its own, or June's of that name."""
    own = AUGUST / case / "opspecs.json"
    return own if own.exists() else FIXTURES / "examples" / case / "opspecs.json"


def outcome(case: str, bundle: Path) -> Outcome:
    """Write the bundle to a path where there is none, check it and run it."""
    (written,) = _codes("codegen", str(opspecs_of(case)), "-o", str(bundle), "--compat", "torch-spyre@2026-08") or ("",)
    assert not written, f"{case} is not written: {written}"
    check = _codes("check", str(bundle))
    run = _codes("run", str(bundle), "--random", "1", "--check")
    numbers = "equal"
    if run == (NO_REFERENCE,):
        numbers, run = "not evaluated", _codes("run", str(bundle), "--random", "1")
    return Outcome(case, _shown(check), _shown(run), "" if run else numbers)


def _shown(codes: Sequence[str]) -> str:
    return f"refused, {', '.join(codes)}" if codes else "ok"


def _codes(*arguments: str) -> tuple[str, ...]:
    """Run a command line; return the codes of its errors, each once, and of a check that failed ``differs``."""
    printed, problems = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(problems):
        status = spyrec(["--diagnostics=json", *arguments])
    if status == 0:
        return ()
    errors = [item for item in map(json.loads, problems.getvalue().splitlines()) if item["severity"] == "error"]
    return tuple(dict.fromkeys(item["code"] for item in errors)) or ("differs",)


def outcomes() -> Iterator[Outcome]:
    """Yield what is said of every bundle."""
    with tempfile.TemporaryDirectory() as directory:
        for case in cases():
            yield outcome(case, Path(directory) / case)


def rewrite() -> None:
    """Rewrite the page."""
    lines = [item.line for item in outcomes()]
    PAGE.write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    rewrite()
