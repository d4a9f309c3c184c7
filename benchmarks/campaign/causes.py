"""Distinct causes: a failure made small, in a folder of its own, told apart by how it fails and what it is made of."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import orjson

from benchmarks.campaign.journal import FAILURES, Row
from benchmarks.campaign.reduction import Reduced
from benchmarks.campaign.verdicts import Case, Verdict

FORMAT = "spyrec.campaign-case/1"
_LONGEST_NAME = 60

_README = """# {name}

{message}

* fails as: {what}, {site}
* kind of case: {kind}; made of: {parts}
* first seen: case {number}, seed {seed}; made small in {trials} trials{stability}

Try it again:

    python -m benchmarks campaign --replay {folder}
"""


@dataclass(frozen=True, slots=True)
class Cause:
    """A way to fail, and the operations of the smallest case that does."""

    name: str
    verdict: Verdict
    parts: frozenset[str]

    def explains(self, row: Row) -> bool:
        """Whether a failure is taken for one of this cause: it fails the same way and has all that this one needs."""
        return row.verdict.way == self.verdict.way and self.parts <= set(row.parts)


def cause_of(verdict: Verdict, parts: list[str]) -> Cause:
    """Return the cause of a case that was made small."""
    text = "/".join([*verdict.way, *sorted(parts)])
    words = re.sub(r"[^a-z0-9]+", "-", "-".join([verdict.what, verdict.site, *sorted(parts)]).lower()).strip("-")
    name = f"{words[:_LONGEST_NAME].strip('-')}-{sha256(text.encode()).hexdigest()[:6]}"
    return Cause(name, verdict, frozenset(parts))


def write_cause(folder: Path, cause: Cause, found: Reduced, kind: str, row: Row) -> None:
    """Write the folder of a cause: the case, its graph, and how it is tried again."""
    target = folder / FAILURES / cause.name
    parts = sorted(cause.parts)
    data = {"format": FORMAT, "kind": kind, "case": found.case, "verdict": cause.verdict.to_json(), "parts": parts,
            "first": {"number": row.number, "seed": row.seed}, "trials": found.trials}  # fmt: skip
    told = _README.format(
        name=cause.name, message=cause.verdict.message, what=cause.verdict.what, site=cause.verdict.site or "-",
        kind=kind, parts=", ".join(parts), number=row.number, seed=row.seed, trials=found.trials, folder=target,
        stability="" if found.is_stable else "; it did not fail again when it was tried once more",
    )  # fmt: skip
    files = {"case.json": _pretty(data), "README.md": told.encode()}
    if "graph" in found.case:
        files["graph.json"] = _pretty(found.case["graph"])
    unfinished = target.with_name(f".{target.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for name, content in files.items():
        (unfinished / name).write_bytes(content)
    unfinished.rename(target)


def _pretty(data: object) -> bytes:
    return orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_causes(folder: Path) -> Iterator[Cause]:
    """Yield the causes in a campaign's directory."""
    for path in sorted((folder / FAILURES).glob("[!.]*/case.json")):
        data = orjson.loads(path.read_bytes())
        yield Cause(path.parent.name, Verdict.from_json(data["verdict"]), frozenset(data["parts"]))


def kept_case(folder: Path) -> tuple[str, Case, Verdict]:
    """Return kind, case and verdict of a cause's folder."""
    data = orjson.loads((folder / "case.json").read_bytes())
    return data["kind"], data["case"], Verdict.from_json(data["verdict"])
