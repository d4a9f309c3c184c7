"""Record what spyrec does, and compare a record with what it does now: the net under a rebuild of its inside.

``python -m scripts.record_behaviour record FILE.json`` runs examples, reference examples, launches, faulty programs and
500 random programs, and writes per case: hashes of the bundle's files, of the outputs, the statistics, checks, findings
of the sanitizers, refusals, names of trace spans.  ``compare FILE.json`` does so again and prints every difference.
``show CASE`` prints one case with the texts that are hashes otherwise: run it before and after, and diff.

It goes through the public front and the command line alone, so that it runs unchanged on code that was rebuilt.  A
record is of one machine (libraries differ in the last bit of a sum), and it is not committed: any change of what the
compiler writes would rewrite it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # scripts, examples and tests are no installed packages

from scripts.behaviour.cases import Case, cases  # noqa: E402 -- the path comes first
from scripts.behaviour.facts import Facts, Record  # noqa: E402 -- the same

FORMAT = "spyrec.behaviour/1"
PROGRAMS = 500
SLOW_SECONDS = 10
"""Cases that take longer are named on stderr."""

Records = dict[str, Record]


def observed(case: Case, *, whole: bool = False) -> Record:
    """Run one case in a directory of its own and return what was recorded; a crash is a fact as well."""
    facts = Facts(whole)
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        try:
            case(facts, Path(directory))
        except Exception as error:  # noqa: BLE001 -- the other cases are to be recorded as well
            facts.number("crashed", f"{type(error).__name__}: {error}" if whole else type(error).__name__)
        finally:
            os.chdir(before)
    return facts.record


def observe_all(chosen: Mapping[str, Case]) -> Records:
    """Run cases and return what was recorded."""
    records: Records = {}
    began, group = time.perf_counter(), ""
    for name, case in chosen.items():
        if name.partition("/")[0] != group:
            group = name.partition("/")[0]
            print(f"{time.perf_counter() - began:6.0f} s  {group}", file=sys.stderr, flush=True)
        start = time.perf_counter()
        records[name] = observed(case)
        if time.perf_counter() - start > SLOW_SECONDS:
            print(f"{time.perf_counter() - start:6.0f} s  for {name}", file=sys.stderr, flush=True)
    print(f"{time.perf_counter() - began:6.0f} s  {len(records)} cases", file=sys.stderr)
    return records


def written(records: Records) -> str:
    """Return the text of a record: a line per case."""
    lines = (f"{json.dumps(name)}: {json.dumps(record)}" for name, record in records.items())
    return f'{{"format": "{FORMAT}", "cases": {{\n' + ",\n".join(lines) + "\n}}\n"


def read(path: Path) -> Records:
    """Return what was recorded in a file."""
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["format"] == FORMAT, f"{path} is no {FORMAT}"
    return cast("Records", document["cases"])


def differences(before: Records, after: Records) -> Iterator[str]:
    """Return every difference as a line; a case whose input differs is another case, and only that is said."""
    for name in before.keys() | after.keys():
        if name not in after or name not in before:
            yield f"{name}: {'is gone' if name in before else 'is new'}"
            continue
        old, new = before[name], after[name]
        if old.get("input") != new.get("input"):
            yield f"{name}: the program is another one, nothing of it is compared"
            continue
        for key in dict.fromkeys((*old, *new)):
            if key not in old or key not in new:
                state = f"{old[key]!r} is gone" if key in old else f"{new[key]!r} is new"
                yield f"{name}: {key}: {state}"
            elif old[key] != new[key]:
                yield f"{name}: {key}: {old[key]!r} became {new[key]!r}"


def _record(arguments: argparse.Namespace, chosen: Mapping[str, Case]) -> int:
    cast("Path", arguments.file).write_text(written(observe_all(chosen)), encoding="utf-8")
    return 0


def _compare(arguments: argparse.Namespace, chosen: Mapping[str, Case]) -> int:
    before = {name: record for name, record in read(arguments.file).items() if name.startswith(arguments.only)}
    found = sorted(differences(before, observe_all({name: case for name, case in chosen.items() if name in before})))
    print("\n".join([*found, f"{len(found)} differences in {len({item.split(':')[0] for item in found})} cases"]))
    return 1 if found else 0


def _show(_: argparse.Namespace, chosen: Mapping[str, Case]) -> int:
    for name in chosen:
        print(name, json.dumps(observed(chosen[name], whole=True), indent=1))
    return 0


def main() -> int:
    """Read the command line; exit code 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    verbs = parser.add_subparsers(required=True)
    actions: dict[str, Callable[[argparse.Namespace, Mapping[str, Case]], int]]
    actions = {"record": _record, "compare": _compare, "show": _show}
    for name, action in actions.items():
        verb = verbs.add_parser(name)
        verb.set_defaults(action=action)
        if name == "show":
            verb.add_argument("only", metavar="CASE", help="the beginning of names of cases")
        else:
            verb.add_argument("file", type=Path)
            verb.add_argument("--only", default="", metavar="CASES", help="the beginning of names of cases")
        verb.add_argument("--programs", type=int, default=PROGRAMS, help=f"random programs (default {PROGRAMS})")
    arguments = parser.parse_args()
    chosen = {name: case for name, case in cases(arguments.programs) if name.startswith(arguments.only)}
    assert chosen, f"no case is called {arguments.only}"
    return arguments.action(arguments, chosen)


if __name__ == "__main__":
    sys.exit(main())
