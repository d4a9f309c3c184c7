"""Cases that are damaged files and a command line that reads them: they are read, or refused by diagnostics.

The files and the judge are those of the suite (``tests/support/fuzzing``); a laboratory with right files of one reader
is made when its first case comes, and kept for as long as the process.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import cast

from benchmarks.campaign.verdicts import CRASH, FAILURE, HANG, INVALID, MEMORY, OK, Case, Verdict
from spyrec.diagnostics.json_reading import JsonValue
from tests.support.fuzzing import trials
from tests.support.fuzzing.readers import READERS
from tests.support.fuzzing.trials import Laboratory
from tests.support.fuzzing.worker import chosen_readers, schedule

_ORDER = schedule(READERS)
_WAYS = {"takes": HANG, "holds": MEMORY, "has not enough memory": MEMORY}


@cache
def _laboratory(reader: str) -> Laboratory:
    home = Path(tempfile.mkdtemp(prefix="spyrec-campaign-")).resolve()
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return Laboratory(home, chosen_readers([reader]))


def make(seed: int) -> Case:
    """Return a case: the reader, the folder of right files, what stands in place of some, and the command line."""
    random = Random(seed)  # noqa: S311 -- no secret
    reader = random.choice(_ORDER)
    laboratory = _laboratory(reader)
    if not laboratory.seeds[reader]:  # its package is not there
        return make(random.getrandbits(31))
    found = laboratory.case(reader, seed, 0)
    return {
        "reader": reader,
        "seed": found.seed.relative_to(laboratory.home).as_posix(),
        "files": {name: b64encode(content).decode() for name, content in found.files.items()},
        "command": [*found.command],
        "text": seed % 10 == 0,
    }


def contents_of(case: Case) -> dict[str, bytes]:
    """Return what stands in place of right files, by name."""
    return {name: b64decode(str(text)) for name, text in cast("dict[str, JsonValue]", case["files"]).items()}


def _with_files(case: Case, files: dict[str, bytes]) -> Case:
    return {**case, "files": {name: b64encode(content).decode() for name, content in files.items()}}


def trial(case: Case) -> Verdict:
    """Run the command line on the damaged files."""
    reader = str(case["reader"])
    laboratory = _laboratory(reader)
    command = tuple(str(word) for word in cast("list[JsonValue]", case["command"]))
    damaged = trials.Case(reader, laboratory.home / str(case["seed"]), contents_of(case), command)
    found = laboratory.run(damaged, is_text=bool(case["text"]))
    if found.fault:
        way = next((what for begin, what in _WAYS.items() if found.fault.startswith(begin)), CRASH)
        site = way if way in (HANG, MEMORY) else found.where
        return Verdict(FAILURE, way, site, found.fault[-1000:])
    return Verdict(INVALID, found.refused_by or f"exit code {found.exit_code}") if found.exit_code else Verdict(OK)


def smaller(case: Case) -> Iterator[Case]:
    """Yield cases with fewer damaged files, and files with less in them."""
    files = contents_of(case)
    for name in files if len(files) > 1 else ():
        yield _with_files(case, {other: content for other, content in files.items() if other != name})
    for name, content in files.items():
        for shorter in _shorter(content):
            yield _with_files(case, {**files, name: shorter})


def _shorter(content: bytes) -> Iterator[bytes]:
    try:
        data: object = json.loads(content)
        yield from (_dumped(item) for item in _smaller_json(data))
    except (ValueError, RecursionError):
        pass
    length = len(content) // 2
    least = max(1, len(content) // 64)
    while length >= least:
        for first in range(0, len(content), length):
            yield content[:first] + content[first + length :]
        length //= 2


def _dumped(data: object) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _smaller_json(data: object) -> Iterator[object]:
    """Yield values with one member gone, anywhere; those near the root first, which take most with them."""
    level: list[tuple[tuple[str | int, ...], object]] = [((), data)]
    places: list[tuple[str | int, ...]] = []
    while level:
        level = [((*path, key), value) for path, holder in level for key, value in _members(holder)]
        places += [path for path, _ in level]
    for place in places:
        yield _without(data, place)


def _members(data: object) -> list[tuple[str | int, object]]:
    if isinstance(data, dict):
        return [*cast("dict[str, object]", data).items()]
    return [*enumerate(cast("list[object]", data))] if isinstance(data, list) else []


def _without(data: object, place: tuple[str | int, ...]) -> object:
    first, *rest = place
    if isinstance(data, dict):
        members = cast("dict[str, object]", data)
        if not rest:
            return {key: value for key, value in members.items() if key != first}
        return {key: _without(value, tuple(rest)) if key == first else value for key, value in members.items()}
    items = cast("list[object]", data)
    if not rest:
        return [value for number, value in enumerate(items) if number != first]
    return [_without(value, tuple(rest)) if number == first else value for number, value in enumerate(items)]


def size(case: Case) -> tuple[int, ...]:
    """Return files and bytes."""
    files = contents_of(case)
    return len(files), sum(map(len, files.values()))


def parts(case: Case) -> list[str]:
    """Return the reader and the verb: what tells files apart is where they are read."""
    return [str(case["reader"]), str(cast("list[JsonValue]", case["command"])[0])]
