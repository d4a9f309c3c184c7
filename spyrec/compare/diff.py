"""Structural differences of two bundles: per file, per JSON pointer, per statement of ``bundle.mlir``.

White space, key order and comments are no differences.  A bundle kept as a reference (a golden bundle) may leave out
``constants.safetensors`` and what its ``left_out.txt`` names, files that are large and seldom read by people: the hash
in its manifest stands for a file and is held against the other side's bytes.  Nothing is loaded into the compiler's
types but ``bundle.mlir``, so that bundles of any writer and version can be compared, damaged ones included.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from enum import Enum
from pathlib import Path

import numpy as np
import orjson

from spyrec.bundle.atomic_directory import ENTRIES_FILE
from spyrec.bundle.bundle_content import CONSTANTS_FILE, GRAPH_FILE
from spyrec.bundle.entry_directory import is_entries_directory, read_entries, require_folder
from spyrec.bundle.known_texts import read_program
from spyrec.bundle.mlir_printer import print_program
from spyrec.bundle.paths import MAX_PROGRAM_BYTES, MISSING, read_whole
from spyrec.compare.bundle_listing import bundle_files, left_out_files, same_content
from spyrec.compare.diff_artifacts import IMAGE_NAME, PLAN_NAME, image_growth, image_parts, is_shift, repeats_file
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.diagnostics.json_reading import JsonValue, load_json
from spyrec.files.reading import open_regular
from spyrec.progress import counted

SHOWN_CHARACTERS = 160
"""Longest text of one side that a difference carries."""

ALIGNED_STATEMENTS = 2000
"""Most statements between the first and the last difference that are aligned; more are compared by position."""

MANIFEST_FILE = "manifest.json"

_BESIDE_PROGRAMS = frozenset({MANIFEST_FILE, GRAPH_FILE, CONSTANTS_FILE})
"""Files that stand in the directory of a program that is alone, and are no part of it."""


class DifferenceKind(Enum):
    """What a difference is: both sides have the place and differ, or only one has it."""

    CHANGED = "changed"
    ONLY_LEFT = "only left"
    ONLY_RIGHT = "only right"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: file, place in it (a JSON pointer, ``statement N``, empty for the file), and both sides."""

    file: str
    place: str
    kind: DifferenceKind
    left: str | None
    right: str | None

    def to_json(self) -> dict[str, str | None]:
        """Return the difference as a JSON object."""
        return {
            "file": self.file,
            "place": self.place,
            "kind": self.kind.value,
            "left": self.left,
            "right": self.right,
        }

    def __str__(self) -> str:
        name = f"{self.file}  {self.place}" if self.place else self.file
        match self.kind:
            case DifferenceKind.CHANGED:
                return f"{name}\n  - {self.left}\n  + {self.right}"
            case DifferenceKind.ONLY_LEFT:
                return f"{name}\n  - {self.left}"
            case DifferenceKind.ONLY_RIGHT:
                return f"{name}\n  + {self.right}"


def diff_bundles(left: Path, right: Path) -> list[Difference]:
    """Return every difference of two bundle directories, by file name, then in file order.

    Files that belong to no bundle are ignored.  Errors: SPY0601 a directory does not exist or holds no bundle,
    SPY0603 to SPY0605 files that cannot be read safely, SPY0784 one of them holds several bundles and the other one.
    """
    sides = [is_entries_directory(root) for root in (left, right)]
    if all(sides):
        return _diff_entries(left, right)
    for root, has_entries in zip((left, right), sides, strict=True):
        if has_entries:
            fact, hint = "the directory holds several bundles, the other side one", "name one of its folders"
            raise refuse("SPY0784", fact, Location(str(root)), hint=hint)
    names_left, names_right = (_files_of(root) for root in (left, right))
    only_left, only_right = names_left - names_right, names_right - names_left
    left_out = (only_right & left_out_files(left)) | (only_left & left_out_files(right))
    found: list[Difference] = []
    changed = set(left_out)
    alike = Alike()
    for name in counted(sorted(names_left | names_right), "files", len(names_left | names_right)):
        if name in left_out:
            found.extend(_by_hash(name, left, right))
        elif name in only_left:
            found.append(Difference(name, "", DifferenceKind.ONLY_LEFT, "the file", None))
        elif name in only_right:
            found.append(Difference(name, "", DifferenceKind.ONLY_RIGHT, None, "the file"))
        elif not same_content(left / name, right / name):
            changed.add(name)
            found.extend(_diff_file(name, left / name, right / name, alike))
    shown = [item for item in found if item.file != MANIFEST_FILE or not _is_hash_of_changed_file(item, changed)]
    files = {item.file for item in shown}
    programs = {name.rpartition("/")[0] for name in files - _BESIDE_PROGRAMS}
    repeated = {name for name in files & left_out if _is_image_of(name, programs)}
    return [item for item in shown if item.file not in repeated] if repeated else shown


def _diff_entries(left: Path, right: Path) -> list[Difference]:
    """Return the differences of the bundles by entry, with the entry's folder before the files."""
    sides = [read_entries(root, verify=False) for root in (left, right)]
    found: list[Difference] = []
    for name in sorted(sides[0].entries.keys() | sides[1].entries.keys()):
        if not all(name in side.entries for side in sides):
            is_left = name in sides[0].entries
            kind = DifferenceKind.ONLY_LEFT if is_left else DifferenceKind.ONLY_RIGHT
            found.append(Difference(name, "", kind, *(("the entry", None) if is_left else (None, "the entry"))))
            continue
        folders = [require_folder(root, name) for root in (left, right)]
        found += [replace(item, file=f"{name}/{item.file}") for item in diff_bundles(*folders)]
    names = [side.entries for side in sides]
    if names[0] != names[1] and not found:
        found += _diff_file(ENTRIES_FILE, left / ENTRIES_FILE, right / ENTRIES_FILE, Alike())
    digests = [side.files.get(CONSTANTS_FILE) for side in sides]
    if digests[0] != digests[1]:
        texts = [None if digest is None else f"SHA-256 {digest}" for digest in digests]
        found.append(Difference(CONSTANTS_FILE, "", DifferenceKind.CHANGED, *texts))
    return sorted(found, key=lambda item: item.file)


def _by_hash(name: str, left: Path, right: Path) -> Iterator[Difference]:
    """Compare a file that one side leaves out: its manifest's hash with the hash of the other side's bytes."""
    sides = [_hash_of(name, root) for root in (left, right)]
    if sides[0] == sides[1]:
        return
    if sides[1] is None:
        yield Difference(name, "", DifferenceKind.ONLY_LEFT, "the file", None)
    elif sides[0] is None:
        yield Difference(name, "", DifferenceKind.ONLY_RIGHT, None, "the file")
    else:
        yield Difference(name, "", DifferenceKind.CHANGED, *(f"SHA-256 {digest}" for digest in sides))


def _hash_of(name: str, root: Path) -> str | None:
    """Return the hash of a file, where it is left out the one in the manifest."""
    path = root / name
    if path.exists():
        with open_regular(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    try:
        manifest = load_json(read_whole(root / MANIFEST_FILE, MAX_PROGRAM_BYTES))[0]
    except SpyrecError:
        return None  # a damaged manifest is reported as a file that differs
    files = manifest.get("files") if isinstance(manifest, dict) else None
    digest = files.get(name) if isinstance(files, dict) else None
    return digest if isinstance(digest, str) else None


def _files_of(root: Path) -> set[str]:
    names = bundle_files(root)
    if not names:
        fact = "the directory holds no bundle" if root.is_dir() else "the bundle does not exist"
        raise refuse(MISSING, fact, Location(str(root)), hint="name two directories that hold a bundle each")
    return names


def _is_hash_of_changed_file(item: Difference, changed: set[str]) -> bool:
    """Whether a difference of two manifests repeats that another file differs, which is reported for that file."""
    names = {"graph.json"} if item.place == "/graph_sha256" else set[str]()
    if item.place.startswith("/files/"):
        names = {item.place.removeprefix("/files/").replace("~1", "/").replace("~0", "~")}
    return bool(names & changed)


def _is_image_of(file: str, programs: set[str]) -> bool:
    """Whether the hash of an image says that a program differs, one file of which is reported already."""
    return file.endswith(IMAGE_NAME) and file.removesuffix(IMAGE_NAME).removesuffix("/") in programs


def _diff_file(name: str, left: Path, right: Path, alike: Alike) -> list[Difference]:
    try:
        if name.endswith(IMAGE_NAME):
            return _diff_images(name, left, right, alike)
        if name.endswith((".json", ".mlir")):
            texts = read_whole(left, MAX_PROGRAM_BYTES), read_whole(right, MAX_PROGRAM_BYTES)
            found = _diff_texts(name, *texts, alike)
            growth = image_growth(left, right) if name.endswith(PLAN_NAME) else 0
            return [item for item in found if not is_shift(item.left, item.right, growth)] if growth else found
    except SpyrecError:
        pass  # damaged on one side at least: what can be said is that the bytes differ
    sides = (f"{path.stat().st_size} bytes" for path in (left, right))
    return [Difference(name, "", DifferenceKind.CHANGED, *(f"{side}, differing content" for side in sides))]


def _diff_texts(name: str, left: bytes, right: bytes, alike: Alike) -> list[Difference]:
    if name.endswith(".mlir"):
        return diff_programs(name, left, right)
    found = _quick_json(name, left, right, alike)
    return found or diff_json(name, load_json(left)[0], load_json(right)[0])


def _quick_json(name: str, left: bytes, right: bytes, alike: Alike) -> list[Difference]:
    """Return the differences of two texts as a reader finds them that is seven times as fast, and not strict.

    Nothing where it finds none, or might take numbers for others: the strict reader then says what there is.  A key
    that stands twice is no reason to look again where something else differs.
    """
    numbered = _NumberedPair.of(left, right)
    known = None if numbered is None else alike.texts.get(numbered.key)
    if numbered is not None and known is not None:
        return numbered.named(name, known)
    if _has_long_number(left) or _has_long_number(right):
        return []
    try:
        values: tuple[dict[str, JsonValue], dict[str, JsonValue]] = orjson.loads(left), orjson.loads(right)
    except orjson.JSONDecodeError:
        return []
    found = diff_json(name, *values, alike)
    if numbered is not None and all(len(value) == 1 for value in values):  # objects, as a name stands in them first
        alike.texts[numbered.key] = numbered.bare(found)
    return found


_NUMBER = re.compile(rb'\A\s*\{\s*"([0-9]{1,9})_')


@dataclass(frozen=True, slots=True)
class _NumberedPair:
    """Two texts of SuperDSCs of the same number: ``key`` says what they are without it."""

    number: str
    key: tuple[bytes, bytes]

    @classmethod
    def of(cls, left: bytes, right: bytes) -> _NumberedPair | None:
        """Return the pair, ``None`` where it is none."""
        heads = _NUMBER.match(left), _NUMBER.match(right)
        if heads[0] is None or heads[1] is None or heads[0][1] != heads[1][1]:
            return None
        rests = left[heads[0].end() :], right[heads[1].end() :]
        return cls(heads[0][1].decode(), (hashlib.sha256(rests[0]).digest(), hashlib.sha256(rests[1]).digest()))

    def bare(self, found: list[Difference]) -> list[Difference]:
        """Return the differences of two objects of one member each, without the file and the number in their places."""
        begin = len(self.number) + 1
        return [Difference("", item.place[begin:], item.kind, item.left, item.right) for item in found]

    def named(self, file: str, known: list[Difference]) -> list[Difference]:
        """Return such differences as those of a file with this number."""
        head = f"/{self.number}"
        return [Difference(file, head + item.place, item.kind, item.left, item.right) for item in known]


def _has_long_number(text: bytes) -> bool:
    """Whether a text has 19 digits in a row, which may be an integer of more than 64 bits."""
    octets = np.frombuffer(text, np.uint8)
    others = np.flatnonzero((octets < ord("0")) | (octets > ord("9")))
    return bool((np.diff(others) > 19).any())


def _diff_images(name: str, left: Path, right: Path, alike: Alike) -> list[Difference]:
    """Compare two program images part by part; what the files beside them show already is not repeated."""
    sides = image_parts(left), image_parts(right)
    found: list[Difference] = []
    for part in dict.fromkeys((*sides[0], *sides[1])):
        contents = [side.get(part) for side in sides]
        if contents[0] == contents[1] or all(
            content is None or repeats_file(path, part, content)
            for path, content in zip((left, right), contents, strict=True)
        ):
            continue
        file = f"{name}:{part}"
        if contents[0] is None or contents[1] is None:
            kind = DifferenceKind.ONLY_RIGHT if contents[0] is None else DifferenceKind.ONLY_LEFT
            found.append(Difference(file, "", kind, *(None if item is None else "the part" for item in contents)))
        else:
            found.extend(_diff_texts(file, contents[0], contents[1], alike))
    return found


def diff_json(file: str, left: JsonValue, right: JsonValue, alike: Alike | None = None) -> list[Difference]:
    """Return the differences of two JSON values, each at its pointer; 1, 1.0 and true are three values.

    ``alike``: what was found of other files, where no number has more than 64 bits.
    """
    comparison = _Comparison(file, alike)
    comparison.compare("", left, right)
    return comparison.found


_CONTAINERS = (dict, list)
_Container = dict[str, JsonValue] | list[JsonValue]

_WIDE = 16
"""Fewest members of an object or array that is looked up among the pairs that were compared before."""


class Alike:
    """What was found between two bundles, for values and files that are like earlier ones.

    ``values``: by both values as JSON, at places below them; ``texts``: by both texts of SuperDSCs without their
    number; ``shown``: by a value as JSON, what is shown of it.  Tables by core are most of what differs after a change
    of the division, and the same in SuperDSC after SuperDSC; of a model of many layers whole SuperDSCs are.
    """

    def __init__(self) -> None:
        self.values: dict[tuple[bytes, bytes], list[Difference]] = {}
        self.texts: dict[tuple[bytes, bytes], list[Difference]] = {}
        self.shown: dict[bytes, str] = {}

    def show(self, value: JsonValue) -> str:
        """Return a value as a difference shows it; a table is written out once, however many files have it."""
        if not isinstance(value, _CONTAINERS):
            return _shown(value)
        try:
            key = orjson.dumps(value)
        except orjson.JSONEncodeError:  # nested deeper than it writes
            return _shown(value)
        found = self.shown.get(key)
        if found is None:
            found = self.shown[key] = _shown(value)
        return found


class _Comparison:
    """Compares two JSON values of one file.

    ``alike``: what was found of other files; ``None``: numbers may have more than 64 bits, so that no value can be
    written to be looked up.
    """

    def __init__(self, file: str, alike: Alike | None) -> None:
        self.file = file
        self.alike = alike
        self.found: list[Difference] = []

    def compare(self, pointer: str, left: JsonValue, right: JsonValue) -> None:
        """Add the differences of two values.  Nearly all are equal: nothing is made for these."""
        if isinstance(left, dict) and isinstance(right, dict):
            if self.alike is None or not self._is_known(self.alike, pointer, left, right):
                self._objects(pointer, left, right)
        elif isinstance(left, list) and isinstance(right, list):
            if self.alike is None or not self._is_known(self.alike, pointer, left, right):
                self._arrays(pointer, left, right)
        elif type(left) is not type(right) or left != right:
            self.found.append(Difference(self.file, pointer, DifferenceKind.CHANGED, _shown(left), _shown(right)))

    def _is_known(self, alike: Alike, pointer: str, left: _Container, right: _Container) -> bool:
        """Whether two values are written alike, or differ in what was found before, which is added then."""
        is_equal = left == right  # 1, 1.0 and true are equal to Python
        if not is_equal and len(left) < _WIDE:
            return False
        try:
            key = orjson.dumps(left), orjson.dumps(right)
        except orjson.JSONEncodeError:  # nested deeper than it writes
            return False
        if is_equal:
            return key[0] == key[1]
        known = alike.values.get(key)
        if known is None:
            known = alike.values[key] = diff_json("", left, right)
        file = self.file
        self.found += [Difference(file, pointer + item.place, item.kind, item.left, item.right) for item in known]
        return True

    def _objects(self, pointer: str, left: dict[str, JsonValue], right: dict[str, JsonValue]) -> None:
        for key, value in left.items():
            if key not in right:
                self._alone(f"{pointer}/{_escaped(key)}", value, is_left=True)
            elif not _is_same_leaf(value, right[key]):
                self.compare(f"{pointer}/{_escaped(key)}", value, right[key])
        for key, value in right.items():
            if key not in left:
                self._alone(f"{pointer}/{_escaped(key)}", value, is_left=False)

    def _arrays(self, pointer: str, left: list[JsonValue], right: list[JsonValue]) -> None:
        for index, (value, other) in enumerate(zip(left, right)):
            if not _is_same_leaf(value, other):
                self.compare(f"{pointer}/{index}", value, other)
        is_left = len(left) > len(right)
        longer = left if is_left else right
        for index in range(min(len(left), len(right)), len(longer)):
            self._alone(f"{pointer}/{index}", longer[index], is_left=is_left)

    def _alone(self, place: str, value: JsonValue, *, is_left: bool) -> None:
        """Add a value that one side has alone."""
        text = _shown(value) if self.alike is None else self.alike.show(value)
        kind, sides = (DifferenceKind.ONLY_LEFT, (text, None)) if is_left else (DifferenceKind.ONLY_RIGHT, (None, text))
        self.found.append(Difference(self.file, place, kind, *sides))


def _is_same_leaf(left: JsonValue, right: JsonValue) -> bool:
    """Whether two values are the same and no objects or arrays; 1, 1.0 and true are three values."""
    kind = type(left)
    return kind is type(right) and kind not in _CONTAINERS and left == right


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _shown(value: JsonValue) -> str:
    return str(value) if type(value) is int else _cut(json.dumps(value))  # an encoder is made for each number, too


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}... ({len(text)} characters)"


def diff_programs(file: str, left: bytes, right: bytes) -> list[Difference]:
    """Return the differences of two ``bundle.mlir`` texts, per statement; errors SPY0630 and SPY0631."""
    sides = [print_program(read_program(text, file)).splitlines() for text in (left, right)]
    begin, end = _common_ends(sides[0], sides[1])
    middles = [side[begin : len(side) - end] for side in sides]
    if max(len(middle) for middle in middles) <= ALIGNED_STATEMENTS:
        matcher = SequenceMatcher(None, middles[0], middles[1], autojunk=False)
        blocks = [block for block in matcher.get_opcodes() if block[0] != "equal"]
    else:
        blocks = [("replace", 0, len(middles[0]), 0, len(middles[1]))]
    found: list[Difference] = []
    for _, first, last, other_first, other_last in blocks:
        block = middles[0][first:last], middles[1][other_first:other_last]
        found.extend(_statements(file, begin + first, begin + other_first, *block))
    return found


def _common_ends(left: list[str], right: list[str]) -> tuple[int, int]:
    """Return how many statements the two begin with in common, and how many they end with."""
    shorter = min(len(left), len(right))
    begin = next((index for index in range(shorter) if left[index] != right[index]), shorter)
    rest = shorter - begin
    end = next((index for index in range(rest) if left[-1 - index] != right[-1 - index]), rest)
    return begin, end


def _statements(
    file: str, left_begin: int, right_begin: int, left: list[str], right: list[str]
) -> Iterator[Difference]:
    """Compare a block by position; a place counts the statements of its own side, one a line, from 1."""
    for index in range(max(len(left), len(right))):
        if index >= len(right):
            yield Difference(
                file, f"statement {left_begin + index + 1}", DifferenceKind.ONLY_LEFT, _statement(left[index]), None
            )
        elif index >= len(left):
            place = f"statement {right_begin + index + 1}"
            yield Difference(file, place, DifferenceKind.ONLY_RIGHT, None, _statement(right[index]))
        elif left[index] != right[index]:
            place = f"statement {left_begin + index + 1}"
            yield Difference(file, place, DifferenceKind.CHANGED, *_pair(left[index].strip(), right[index].strip()))


def _statement(line: str) -> str:
    return _cut(line.strip())


def _pair(left: str, right: str) -> tuple[str, str]:
    """Return two long statements from shortly before the place where they begin to differ."""
    if max(len(left), len(right)) <= SHOWN_CHARACTERS:
        return left, right
    shorter = min(len(left), len(right))
    same = next((index for index in range(shorter) if left[index] != right[index]), shorter)
    begin = max(0, same - SHOWN_CHARACTERS // 2)
    head = "..." if begin else ""
    return _cut(head + left[begin:]), _cut(head + right[begin:])
