"""What changed between two bundles in what they mean, in words: options, arguments, operations, places, numbers.

How files are numbered, what symbols, values and maps are called, in which order arguments are bound and where the
compiler expected them, mean nothing.  What a file merely repeats is not compared, but what its reader says of it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import orjson

from spyrec.bundle.bundle_content import CONSTANTS_FILE, GRAPH_FILE, OPSPECS_FILE, constant_forms
from spyrec.bundle.constants import open_constants
from spyrec.bundle.entry_directory import is_entries_directory, read_entries, require_folder
from spyrec.bundle.manifest import Manifest
from spyrec.bundle.paths import ALTERED, MAX_JSON_BYTES, MAX_PROGRAM_BYTES, BundleFiles, read_whole
from spyrec.bundle.spyrecode import CODE_DIRECTORY, IMAGE_FILE, PLAN_FILE
from spyrec.compare.bundle_listing import left_out_files
from spyrec.compare.bundle_reading import (
    BundleReading,
    LoopReading,
    OperationReading,
    ProgramReading,
    loops_of,
    manifest_of,
    read_files,
)
from spyrec.compare.changes import Change, Fact, Topic, grouped
from spyrec.compare.manifest_changes import argument_facts, manifest_facts, prediction_facts, program_name, shown
from spyrec.compare.operation_changes import OperationPair, label_of, operation_facts
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.files.reading import open_regular

ALIGNED_OPERATIONS = 2000
"""Most operations between the first and the last that differ whose order is aligned; more are paired by position."""


ArgumentTables = tuple[Path | None, Path | None]
"""The ``spyrec.args/1`` file of either side, which stands for the manifest that it does not have."""

NO_TABLES: ArgumentTables = (None, None)


def changes_of(left: Path, right: Path, tables: ArgumentTables = NO_TABLES) -> list[Change]:
    """Return what changed between two bundles, or between two directories of entries, grouped; empty for nothing.

    Errors: what :func:`spyrec.compare.bundle_reading.read_path` refuses of either; SPY0602 a file that one side leaves
    out and the other one has with another content, SPY0784 one side holds several bundles and the other one.
    """
    return grouped(_facts(left, right, tables))


def _facts(left: Path, right: Path, tables: ArgumentTables = NO_TABLES) -> Iterator[Fact]:
    if is_entries_directory(left) and is_entries_directory(right):
        yield from _entries(left, right)
        return
    sides = _Side.of(left, right), _Side.of(right, left)
    manifests = [manifest_of(side.files, table) for side, table in zip(sides, tables, strict=True)]
    if tables == NO_TABLES:
        yield from manifest_facts(manifests[0], manifests[1])
    elif manifests[0] is not None and manifests[1] is not None:  # a table says of arguments what is needed, no more
        yield from argument_facts(manifests[0].arguments, manifests[1].arguments, is_all_said=False)
    readings = [_reading(side, manifest) for side, manifest in zip(sides, manifests, strict=True)]
    yield from (Fact(Topic.FILES, name, _UNTOLD) for side in sides for name in side.files.unknown)
    yield from _files(sides[0], sides[1], manifests)
    if readings[0] is None or readings[1] is None:
        return
    found = list(_programs(readings[0], readings[1]))
    yield from found
    if not found and tables == NO_TABLES:
        yield from prediction_facts(manifests[0], manifests[1])
    for one, other in zip(readings[0].programs, readings[1].programs):
        yield from _artifact(sides[0], sides[1], one.directory, other.directory, is_same=not found)
    yield from _warnings(readings[0], readings[1])


_UNTOLD = "is left out on one side and differs, so that only a whole bundle can say in what"


def _reading(side: _Side, manifest: Manifest | None) -> BundleReading | None:
    """Read a side; ``None`` where files that differ are left out, which are told by name."""
    try:
        return read_files(side.files, manifest)
    except SpyrecError as error:
        if any(item.code != ALTERED for item in error.diagnostics):
            raise
        return None


def _warnings(one: BundleReading, other: BundleReading) -> Iterator[Fact]:
    readings = one, other
    told = [Counter((item.code, item.message) for item in reading.warnings) for reading in readings]
    for (code, message), count in (told[1] - told[0]).items():
        yield Fact(Topic.FILES, "", f"the right side is warned {_times(count)}: {message} ({code})")
    for (code, message), count in (told[0] - told[1]).items():
        yield Fact(Topic.FILES, "", f"the left side is warned {_times(count)}: {message} ({code})")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _entries(left: Path, right: Path) -> Iterator[Fact]:
    found = [read_entries(root, verify=False) for root in (left, right)]
    for name in sorted(found[0].entries.keys() | found[1].entries.keys()):
        if not all(name in item.entries for item in found):
            side = "left" if name in found[0].entries else "right"
            yield Fact(Topic.PLAN, name, f"is an entry of the {side} side only")
            continue
        for fact in _facts(require_folder(left, name), require_folder(right, name)):
            yield Fact(fact.topic, fact.about, f"{fact.text} (entry {name})", fact.operation)
    digests = [item.files.get(CONSTANTS_FILE) for item in found]
    if digests[0] != digests[1]:
        yield Fact(Topic.CONSTANTS, CONSTANTS_FILE, "holds other numbers")


class _Files(BundleFiles):
    """The files of a bundle, of which those that it leaves out are read from the other side where that has the same."""

    def __init__(self, root: Path, other: Path) -> None:
        super().__init__(root, None)
        self._other = BundleFiles(other, None)
        self._left_out = left_out_files(root)
        self._digests_of_left_out = _digests(root) if len(self._left_out) > 1 else {}
        self.unknown: list[str] = []
        """What could not be compared."""

    def read(self, name: str, limit_bytes: int, mentioned_at: Location | None = None) -> bytes:
        """Return the content of a file; SPY0602 where it is left out and the other side's is another one."""
        if name not in self._left_out or (self.root / name).exists():
            return super().read(name, limit_bytes, mentioned_at)
        path = self._other.root / name
        content = self._other.read(name, limit_bytes, mentioned_at) if path.is_file() else b""
        if hashlib.sha256(content).hexdigest() != self._digests_of_left_out.get(name):
            self.unknown.append(name)
            fact = f'"{name[:200]}" is left out and differs, so that nobody can say in what'
            raise refuse(ALTERED, fact, Location(self.display(name)), hint="compare with the whole bundle")
        self.read_digests[name] = self._digests_of_left_out[name]
        return content


def _digests(root: Path) -> dict[str, str]:
    """Return what a manifest says of files, by a reader that is quick and not strict: the strict one reads it, too."""
    text = read_whole(root / "manifest.json", MAX_JSON_BYTES)
    try:
        manifest: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError:
        manifest = load_json(text)[0]
    files = manifest.get("files") if isinstance(manifest, dict) else None
    return {key: value for key, value in files.items() if isinstance(value, str)} if isinstance(files, dict) else {}


@dataclass(frozen=True, slots=True)
class _Side:
    """One of both bundles; ``digests``: what its manifest says of its files, empty without one."""

    root: Path
    files: _Files
    digests: Mapping[str, str]

    @classmethod
    def of(cls, root: Path, other: Path) -> _Side:
        has_manifest = (root / "manifest.json").exists()
        return cls(root, _Files(root, other), _digests(root) if has_manifest else {})

    def content(self, name: str) -> JsonValue:
        """Return what a JSON file holds."""
        return load_json(self.files.read(name, MAX_PROGRAM_BYTES), self.files.display(name))[0]

    def digest(self, name: str) -> str | None:
        """Return the hash of a file: of what was read of it, of its bytes, or, where it is left out, the manifest's."""
        known = self.files.read_digests.get(name)
        if known is not None or not (self.root / name).is_file():
            return known or self.digests.get(name)
        with open_regular(self.root / name) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def is_there(self, name: str) -> bool:
        """Whether the file itself is there."""
        return (self.root / name).is_file()

    def has(self, name: str) -> bool:
        """Whether there is such a file, or the manifest stands for it."""
        return name in self.digests or self.is_there(name)


# The programs.


def _programs(left: BundleReading, right: BundleReading) -> Iterator[Fact]:
    if len(left.programs) != len(right.programs):
        count = len(right.programs)
        yield Fact(Topic.PLAN, "", f"{count} program{'s'[: count != 1]} instead of {len(left.programs)}")
    partners: dict[int, int] = {}
    paired: list[tuple[ProgramReading, ProgramReading, list[tuple[OperationReading, OperationReading]]]] = []
    for one, other in zip(left.programs, right.programs):
        if sorted(one.arguments) != sorted(other.arguments):
            yield from _bound(one, other)
        if one.pool_bytes != other.pool_bytes:
            pool = "the pool" if one.directory == "." else f"the pool of {one.directory}"
            yield Fact(Topic.ADDRESSES, pool, f"has {other.pool_bytes:,} bytes instead of {one.pool_bytes:,}")
        pairs, facts = aligned_operations(one.operations, other.operations)
        yield from facts
        partners |= {theirs.number: mine.number for mine, theirs in pairs}
        paired.append((one, other, pairs))
    for which, rest in (("left", left.programs[len(paired) :]), ("right", right.programs[len(paired) :])):
        for program in rest:
            for item in program.operations:
                yield Fact(Topic.OPERATIONS, "", f"only on the {which} side", label_of(item))
    for one, other, pairs in paired:
        loops = _paired_loops(pairs)
        yield from _loops(one, other, pairs, loops)
        names = {item.loop.number: item.name for item in loops_of(one.body)}
        for mine, theirs in pairs:
            yield from operation_facts(OperationPair(mine, theirs, partners, loops, names))


def _bound(one: ProgramReading, other: ProgramReading) -> Iterator[Fact]:
    for which, items in (
        ("left", set(one.arguments) - set(other.arguments)),
        ("right", set(other.arguments) - set(one.arguments)),
    ):
        for name in sorted(items):
            yield Fact(Topic.ARGUMENTS, name, f"is bound to a program of the {which} side only")


def _key(item: OperationReading) -> tuple[object, ...]:
    """Return what an operation is recognised by: its function, what it writes, its dims, and how deep it stands."""
    writes = tuple(
        operand.name if operand.memory == "argument" or item.figures is not None else operand.memory
        for operand in item.operands
        if operand.is_written
    )
    part = "" if item.call.place is None else item.call.place.node.name
    return item.superdsc.op_func_name, writes, tuple(item.superdsc.iteration.items()), len(item.call.loops), part


def aligned_operations(
    left: Sequence[OperationReading], right: Sequence[OperationReading]
) -> tuple[list[tuple[OperationReading, OperationReading]], list[Fact]]:
    """Return the operations that are the same ones, and facts about those that one side has alone."""
    keys = [[_key(item) for item in side] for side in (left, right)]
    pairs: list[tuple[OperationReading, OperationReading]] = []
    facts: list[Fact] = []
    for kind, *ends in _blocks(keys[0], keys[1]):
        mine, theirs = left[ends[0] : ends[1]], right[ends[2] : ends[3]]
        if kind == "equal" or len(mine) == len(theirs):
            pairs += zip(mine, theirs, strict=True)
            continue
        functions = [[item.superdsc.op_func_name for item in side] for side in (mine, theirs)]
        for inner, *places in _blocks(functions[0], functions[1]):
            ours, others = mine[places[0] : places[1]], theirs[places[2] : places[3]]
            if inner == "equal":
                pairs += zip(ours, others, strict=True)
                continue
            facts += [Fact(Topic.OPERATIONS, "", "only on the left side", label_of(item)) for item in ours]
            facts += [Fact(Topic.OPERATIONS, "", "only on the right side", label_of(item)) for item in others]
    return pairs, facts


def _blocks(left: Sequence[object], right: Sequence[object]) -> Iterator[tuple[str, int, int, int, int]]:
    shorter = min(len(left), len(right))
    begin = next((place for place in range(shorter) if left[place] != right[place]), shorter)
    rest = shorter - begin
    end = next((place for place in range(rest) if left[-1 - place] != right[-1 - place]), rest)
    yield "equal", 0, begin, 0, begin
    middles = left[begin : len(left) - end], right[begin : len(right) - end]
    if max(map(len, middles)) <= ALIGNED_OPERATIONS:
        matcher = SequenceMatcher(None, *middles, autojunk=False)
        blocks = matcher.get_opcodes()
    else:
        count = min(map(len, middles))
        blocks = [("equal", 0, count, 0, count), ("replace", count, len(middles[0]), count, len(middles[1]))]
    for kind, first, past, other_first, other_past in blocks:
        yield kind, begin + first, begin + past, begin + other_first, begin + other_past
    yield "equal", len(left) - end, len(left), len(right) - end, len(right)


def _paired_loops(pairs: Sequence[tuple[OperationReading, OperationReading]]) -> dict[int, int]:
    """Return by number of a loop of the right side that of the left side which repeats the same operations."""
    found: dict[int, int] = {}
    for mine, theirs in pairs:
        for one, other in zip(mine.call.loops, theirs.call.loops):
            found.setdefault(other.number, one.number)
    return found


def _loops(
    one: ProgramReading,
    other: ProgramReading,
    pairs: Sequence[tuple[OperationReading, OperationReading]],
    loops: Mapping[int, int],
) -> Iterator[Fact]:
    sides: list[dict[int, LoopReading]] = [
        {item.loop.number: item for item in loops_of(side.body)} for side in (one, other)
    ]
    for theirs, mine in loops.items():
        before, after = sides[0][mine].loop, sides[1][theirs].loop
        name = f"loop {sides[0][mine].name}"
        if len(before.values) != len(after.values):
            count = len(after.values)
            text = f"has {count:,} round{'s'[: count != 1]} instead of {len(before.values):,}"
            yield Fact(Topic.LOOPS, name, text)
        elif before.values != after.values:
            yield Fact(Topic.LOOPS, name, f"counts {after.values} instead of {before.values}")
        if before.parameter != after.parameter:
            yield Fact(
                Topic.LOOPS,
                name,
                f"ends at {after.parameter or 'a number'} instead of {before.parameter or 'a number'}",
            )
    for mine, theirs in pairs:
        depths = len(mine.call.loops), len(theirs.call.loops)
        if depths[0] != depths[1]:
            yield Fact(Topic.LOOPS, "", f"in {_loop_count(depths[1])} instead of {depths[0]}", label_of(mine))
        elif [loops[loop.number] for loop in theirs.call.loops] != [loop.number for loop in mine.call.loops]:
            yield Fact(Topic.LOOPS, "", "in a loop with other operations", label_of(mine))


def _loop_count(count: int) -> str:
    return f"{count} loop{'s'[: count != 1]}" if count else "no loop"


# The other files.


def _files(left: _Side, right: _Side, manifests: Sequence[Manifest | None]) -> Iterator[Fact]:
    for name, topic in ((GRAPH_FILE, Topic.GRAPH), (OPSPECS_FILE, Topic.GRAPH)):
        yield from _json_file(name, topic, left, right)
    yield from _constants(left, right, manifests)
    if manifests[0] is not None and manifests[1] is not None:
        yield from _copies(left, right, manifests[0], manifests[1])


def _json_file(name: str, topic: Topic, left: _Side, right: _Side) -> Iterator[Fact]:
    from spyrec.compare.diff import diff_json

    present = [side.has(name) for side in (left, right)]
    if present[0] != present[1]:
        yield Fact(topic, name, f"is on the {'left' if present[0] else 'right'} side only")
    if not all(present) or left.digest(name) == right.digest(name):
        return
    if not left.is_there(name) or not right.is_there(name):
        yield Fact(topic, name, _UNTOLD)
        return
    found = diff_json(name, left.content(name), right.content(name))
    for item in found[:_MOST_PLACES]:
        sides = (item.right or "nothing", item.left or "nothing")
        yield Fact(topic, item.place, f"is {shown(sides[0])} instead of {shown(sides[1])}")
    if len(found) > _MOST_PLACES:
        yield Fact(topic, name, f"differs in {len(found) - _MOST_PLACES:,} further places")


_MOST_PLACES = 20


def _constants(left: _Side, right: _Side, manifests: Sequence[Manifest | None]) -> Iterator[Fact]:
    digests = [side.digest(CONSTANTS_FILE) for side in (left, right)]
    if digests[0] == digests[1]:
        return
    paths = [side.root / CONSTANTS_FILE for side in (left, right)]
    if not all(path.is_file() for path in paths):
        yield Fact(Topic.CONSTANTS, CONSTANTS_FILE, "holds other numbers")
        return
    arrays: list[Mapping[str, object]] = []
    for path, manifest in zip(paths, manifests, strict=True):
        forms = {} if manifest is None else constant_forms(manifest)
        arrays.append(open_constants(path, forms, str(path)))
    names = [name for name in arrays[0] if name in arrays[1]]
    for name in names:
        one, other = (np.asarray(side[name]) for side in arrays)
        if one.shape != other.shape or one.dtype != other.dtype:
            continue  # told of the argument
        if one.tobytes() != other.tobytes():
            rows = [np.frombuffer(array.tobytes(), np.uint8).reshape(one.size, -1) for array in (one, other)]
            count = int((rows[0] != rows[1]).any(axis=1).sum())  # of bytes: NaN is itself, and -0.0 is not 0.0
            yield Fact(Topic.CONSTANTS, name, f"holds other numbers, {count:,} of {one.size:,} elements")


def _copies(left: _Side, right: _Side, one: Manifest, other: Manifest) -> Iterator[Fact]:
    """Compare the tables of host copies, of arguments that have the same layout on both sides."""
    theirs = {item.name: item for item in other.arguments}
    for mine in one.arguments:
        match = theirs.get(mine.name)
        if match is None or (mine.device_size, mine.stride_map, mine.shape, mine.dtype) != (
            match.device_size, match.stride_map, match.shape, match.dtype,
        ):  # fmt: skip
            continue
        tables = mine.dci or {}, match.dci or {}
        for way in dict.fromkeys((*tables[0], *tables[1])):
            if way not in tables[0] or way not in tables[1]:
                yield Fact(Topic.COPIES, mine.name, f"has a table {way} on one side only")
            elif _differ(left, right, tables[0][way], tables[1][way]):
                yield Fact(Topic.COPIES, mine.name, f"is copied otherwise ({way})")


def _differ(left: _Side, right: _Side, one: str, other: str) -> bool:
    if left.digest(one) == right.digest(other):
        return False
    return not (left.is_there(one) and right.is_there(other)) or _json_text(left, one) != _json_text(right, other)


def _json_text(side: _Side, name: str) -> str:
    return json.dumps(side.content(name), sort_keys=True)


def _artifact(left: _Side, right: _Side, one: str, other: str, *, is_same: bool) -> Iterator[Fact]:
    """Compare what is launched: it follows from the program, but for how often a launch may be in flight.

    Of programs that mean the same (``is_same``) its form is compared, of those whose files are the same, byte for byte,
    all of it.
    """
    plans = [_below(folder, f"{CODE_DIRECTORY}/{PLAN_FILE}") for folder in (one, other)]
    about = f"{CODE_DIRECTORY} of {one}"
    present = [left.has(plans[0]), right.has(plans[1])]
    if present[0] != present[1]:
        yield Fact(Topic.FILES, about, f"is on the {'left' if present[0] else 'right'} side only")
    if not left.is_there(plans[0]) or not right.is_there(plans[1]):
        return  # it follows from the program
    contents = left.content(plans[0]), right.content(plans[1])
    slots = [_slots(content) for content in contents]
    if slots[0] != slots[1]:
        launches = f"{slots[1]} launch{'es'[: 2 * (slots[1] != 1)]} may be in flight"
        yield Fact(Topic.OPTIONS, "", f"{launches} instead of {slots[0]}, of {program_name(one)}")
    elif not is_same:
        return
    elif _form(contents[0]) != _form(contents[1]):
        yield Fact(Topic.FILES, about, "has another form: other commands, or other words that they correct")
    elif _is_same_program(left, right, one, other):
        images = [_below(folder, f"{CODE_DIRECTORY}/{IMAGE_FILE}") for folder in (one, other)]
        for names in (plans, images):
            if left.digest(names[0]) != right.digest(names[1]):
                yield Fact(Topic.FILES, names[0], "differs, though the program is the same")


def _slots(plan: JsonValue) -> int:
    """Return how many launches of a program may be in flight, by its plan."""
    slots = plan.get("correctionSlots") if isinstance(plan, dict) else None
    return len(slots) if isinstance(slots, list) else 0


def _below(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"


def _form(value: JsonValue) -> JsonValue:
    """Return a JSON value with the kinds of its texts and numbers in place of them."""
    if isinstance(value, dict):
        return {key: _form(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_form(item) for item in value]
    return type(value).__name__


def _is_same_program(left: _Side, right: _Side, one: str, other: str) -> bool:
    found = [
        {
            name.rpartition("/")[2]: digest
            for name, digest in side.files.read_digests.items()
            if (name.rpartition("/")[0] or ".") == folder and _PROGRAM_FILE.fullmatch(name.rpartition("/")[2])
        }
        for side, folder in ((left, one), (right, other))
    ]
    return found[0] == found[1]


_PROGRAM_FILE = re.compile(r"bundle\.mlir|sdsc_.*\.json")
