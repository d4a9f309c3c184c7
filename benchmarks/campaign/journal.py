"""What a campaign keeps in its directory: its settings, a line for each case, what was new of branches, its causes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import orjson

from benchmarks.campaign.verdicts import FAILURE, Verdict
from spyrec.diagnostics.json_reading import JsonValue

SETTINGS_FILE, CASES_FILE, BRANCHES_FILE, CAUSES_FILE, FAILURES = (
    "campaign.json", "cases.jsonl", "branches.jsonl", "causes.jsonl", "failures",
)  # fmt: skip


class JournalError(Exception):
    """The directory is no campaign's, or that of another one."""


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a case, and when in the campaign's own time; ``parts`` of a failure."""

    number: int
    kind: str
    seed: int
    verdict: Verdict
    seconds: float
    at: float
    parts: tuple[str, ...] = ()
    cause: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether it failed."""
        return self.verdict.end == FAILURE

    def to_json(self) -> dict[str, JsonValue]:
        """Return the line of it; its cause has a line of its own, as it is found later."""
        about: dict[str, JsonValue] = {"number": self.number, "kind": self.kind, "seed": self.seed}
        times: dict[str, JsonValue] = {"seconds": self.seconds, "at": self.at}
        found = {**about, **self.verdict.to_json(), **times}
        return {**found, "parts": [*self.parts]} if self.is_failure else found

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> Row:
        """Return what :meth:`to_json` has written."""
        parts = tuple(str(item) for item in cast("list[JsonValue]", data.get("parts", [])))
        number, seed = cast("int", data["number"]), cast("int", data["seed"])
        seconds, at = cast("float", data["seconds"]), cast("float", data["at"])
        return cls(number, str(data["kind"]), seed, Verdict.from_json(data), seconds, at, parts)


class Journal:
    """The directory of one campaign, which one process at a time writes."""

    def __init__(self, folder: Path, settings: Mapping[str, JsonValue]) -> None:
        """Open a directory that is new or has these settings.  Raises ``JournalError``."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / SETTINGS_FILE
        if path.exists():
            known = orjson.loads(path.read_bytes())
            if known != settings:
                raise JournalError(f"{folder} has a campaign with other settings: {known}; name a new directory")
        elif any(folder.iterdir()):
            raise JournalError(f"{folder} holds other things than a campaign; name a new directory")
        else:
            path.write_bytes(orjson.dumps(settings, option=orjson.OPT_INDENT_2))
        self._lock = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise JournalError(f"another campaign writes to {folder}") from None
        self.rows: dict[int, Row] = {}
        for line in _lines(folder / CASES_FILE):
            row = Row.from_json(line)
            self.rows[row.number] = row
        for line in _lines(folder / CAUSES_FILE):
            self._note(cast("int", line["number"]), str(line["cause"]))

    def close(self) -> None:
        """Let another process write."""
        os.close(self._lock)

    def append(self, row: Row) -> None:
        """Keep a row."""
        assert row.number not in self.rows, "a case is run once"
        _append(self.folder / CASES_FILE, row.to_json())
        self.rows[row.number] = row

    def append_branches(self, row: Row, arcs: Mapping[str, JsonValue]) -> None:
        """Keep what a case took that its process had not taken before."""
        if arcs:
            _append(self.folder / BRANCHES_FILE, {"number": row.number, "at": row.at, "arcs": dict(arcs)})

    def branches(self) -> Iterator[Mapping[str, JsonValue]]:
        """Yield what :meth:`append_branches` kept."""
        yield from _lines(self.folder / BRANCHES_FILE)

    def explain(self, number: int, cause: str) -> None:
        """Keep which cause a failure has."""
        _append(self.folder / CAUSES_FILE, {"number": number, "cause": cause})
        self._note(number, cause)

    def _note(self, number: int, cause: str) -> None:
        if number in self.rows:
            self.rows[number] = replace(self.rows[number], cause=cause)

    def unexplained(self) -> list[Row]:
        """Return the failures without a cause."""
        return [row for row in self.rows.values() if row.is_failure and not row.cause]


def _append(path: Path, data: Mapping[str, JsonValue]) -> None:
    with path.open("ab") as file:
        file.write(orjson.dumps(data, option=orjson.OPT_APPEND_NEWLINE))


def _lines(path: Path) -> Iterator[Mapping[str, JsonValue]]:
    """Yield the lines of a file; one that a stop of the machine tore at the end is cut off."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    for line in content[:whole].splitlines():
        yield orjson.loads(line)
