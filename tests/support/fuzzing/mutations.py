"""Damage to files, driven by a generator of random numbers: JSON values and texts, other texts, bytes, archives.

Half of what a reader must refuse is no file of its kind; the other half is one, and says something that cannot be.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from random import Random

from spyrec.ir.opdef import catalogue

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

NUMBERS: list[Json] = [None, True, 0, 1, -1, 2, 3, 7, 64, 2**31, 2**63, -(2**70), 0.5, 1e308, 1e-320]
TEXTS: list[Json] = ["", "x", "a", "y", "A", "S", "A*B", "inf", "-inf", "float32", "bool", "int64", "\x00", "🙂"]
LISTS: list[Json] = [[], {}, [[]], [0], [1, 1], ["A", "B"], [None], {"a": 1}, {"file": "../w.npy"}, [-1, 2], [0, 1, 2]]
REPLACEMENTS = [*NUMBERS, *TEXTS, *LISTS, *catalogue()]
KEYS = ["dim", "shape", "size", "dtype", "min", "alpha", "value", "data", "outputs", "attrs", "layout", "zzz", "dims"]

EXTREMES = (0, 1, -1, 2, 63, 65, 128, 2**20, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30)
"""Whole numbers at which something ends: sticks, words of 32 and 64 bits, what a float64 tells apart."""

ODD_TEXTS = ("../../x", "/etc/passwd", "a" * 5000, "\ud800", "\u202e", "%s%n", "a\nb", "٣", "__class__", "sdsc_0.json")

_PATHOLOGICAL_DEPTHS = (60, 300, 5000)


def members(data: Json) -> list[tuple[Json, str | int]]:
    """Return every (container, key) below the data."""
    items: list[tuple[str | int, Json]] = []
    if isinstance(data, dict):
        items.extend(data.items())
    elif isinstance(data, list):
        items.extend(enumerate(data))
    return [entry for key, value in items for entry in [(data, key), *members(value)]]


def damage(data: Json, generator: Random) -> None:
    """Change one to four members of a JSON value in place: removed, doubled, renamed, or other values."""
    for _ in range(generator.choice((1, 1, 2, 4))):
        places = members(data)
        if not places:
            return
        holder, key = generator.choice(places)
        junk = generator.choice(REPLACEMENTS)
        kind = generator.randrange(5)
        if isinstance(holder, list):
            assert isinstance(key, int)
            if kind == 0:
                del holder[key]
            elif kind == 1:
                holder.append(_copy(holder[key]))
            else:
                holder[key] = _copy(junk)
        elif isinstance(holder, dict):
            assert isinstance(key, str)
            if kind == 0:
                del holder[key]
            else:
                holder[generator.choice(KEYS) if kind == 1 else key] = _copy(junk)


def _copy(data: Json) -> Json:
    return json.loads(json.dumps(data))


def exchange(data: Json, others: Json, generator: Random) -> None:
    """Put one to three members of the same or another value, or odd texts and numbers, where others stand."""
    sources = [_member(*place) for place in members(others)] or [others]
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        places = members(data)
        if not places:
            return
        holder, key = generator.choice(places)
        kind = generator.randrange(4)
        if kind == 0:
            new: Json = generator.choice(ODD_TEXTS)
        elif kind == 1:
            new = _near(_member(holder, key), generator)
        else:
            new = generator.choice(sources)
        if isinstance(holder, dict):
            renamed = generator.choice(ODD_TEXTS) if generator.random() < 0.1 else str(key)
            holder[renamed] = holder.pop(str(key)) if renamed != key else _copy(new)
        elif isinstance(holder, list):
            holder[int(key)] = _copy(new)


def transplant(data: Json, others: Json, generator: Random) -> None:
    """Put one to three values where others of the same key, or in lists of the same type, stand: the form stays right.

    What is hurt is what values say of each other, which is what rules behind the form are about.
    """
    sources = members(others)
    for _ in range(generator.choice((1, 1, 2, 3))):
        places = members(data)
        if not places or not sources:
            return
        holder, key = generator.choice(places)
        old = _member(holder, key)
        alike = [
            _member(other, name)
            for other, name in generator.sample(sources, k=min(200, len(sources)))
            if (name == key if isinstance(key, str) else isinstance(name, int))
            and type(_member(other, name)) is type(old)
        ]
        is_number = isinstance(old, int | float) and generator.random() < 0.3
        new = _near(old, generator) if is_number else generator.choice(alike or [old])
        if isinstance(holder, dict):
            holder[str(key)] = _copy(new)
        elif isinstance(holder, list):
            holder[int(key)] = _copy(new)


def _member(holder: Json, key: str | int) -> Json:
    if isinstance(holder, dict):
        return holder[str(key)]
    return holder[int(key)] if isinstance(holder, list) else holder


def _near(old: Json, generator: Random) -> Json:
    """Return a value of the same type, or one that is written alike: most rules are about such."""
    match old:
        case bool():
            return not old
        case int():
            small = [old + 1, old - 1, old * 2, old // 2, -old, float(old), str(old)]
            return generator.choice([*small, *small, *EXTREMES])
        case float():
            return generator.choice([-old, 0.0, old * 1e300 if abs(old) < 1e7 else 1e300, 1e-300, int(old)])
        case str():
            return generator.choice([old + "x", old[:-1], old.upper(), old + "/..", old * 3, ""])
        case list():
            return generator.choice([old[::-1], old + old, old[1:], old * 100 if len(old) < 100 else []])
        case _:
            return generator.choice(REPLACEMENTS)


def damaged_json(text: bytes, others: Sequence[bytes], generator: Random) -> bytes:
    """Return a JSON text with values changed, or one that is hurt as a text."""
    kind = generator.randrange(14)
    if kind == 0:
        return damaged_bytes(text, others, generator)
    if kind == 1:
        return _hurt_json(text.decode("utf-8", "replace"), generator).encode("utf-8", "surrogatepass")
    data: Json = json.loads(text)
    if kind < 4:
        damage(data, generator)
    else:
        other: Json = json.loads(generator.choice(others)) if generator.random() < 0.4 else data
        (exchange if kind < 7 else transplant)(data, _copy(other), generator)
    return json.dumps(data, ensure_ascii=generator.random() < 0.9).encode("utf-8", "surrogatepass")


_LITERALS = (
    "NaN", "-Infinity", "1e999", "-0", "-0.0", "00", "1" * 5000, "1e-999", "[1,]", '"\\ud800"', '"\\u0000"', "'x'",
    "9" * 400 + ".0", '{"a":1,"a":2}', "true", "null", "[]", "{}", '"', "/*", "1.", "+1", "0x10",
)  # fmt: skip
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null|\[\]|\{\}')


def _hurt_json(text: str, generator: Random) -> str:
    """Return a text in which a value is another literal, legal or not, or nested deep, or a member stands twice."""
    found = list(_VALUE.finditer(text))
    if not found:
        return text + generator.choice(_LITERALS)
    place = generator.choice(found)
    kind = generator.randrange(4)
    if kind == 0:
        depth = generator.choice(_PATHOLOGICAL_DEPTHS)
        new = "[" * depth + place[0] + "]" * (depth if generator.random() < 0.7 else depth - 1)
    elif kind == 1:
        depth = generator.choice(_PATHOLOGICAL_DEPTHS)
        new = '{"a":' * depth + place[0] + "}" * depth
    elif kind == 2:
        new = f"{place[0]}, {generator.choice(found)[0]}: {place[0]}"
    else:
        new = generator.choice(_LITERALS)
    return text[: place.start()] + new + text[place.end() :]


_WORD = re.compile(r"[0-9]+|\b[A-Za-z][A-Za-z0-9_.]*\b")
_LARGE = ("y", "x", "w", "b", "dim", "l0", "i0", "h0", "return")
_MARKS = ("{", "}", "[", "]", "(", ")", ",", '"', "\\", "//", "\n", "é", "\0", "-", "%", "#", "@", ":", "->", "=")


def exchanged_text(text: str, generator: Random) -> str:
    """Return a text with a number replaced by another one, or a word by another of its words: form is seldom hurt."""
    for _ in range(generator.randint(1, 2)):
        words = list(_WORD.finditer(text))
        if not words:
            return text
        found = generator.choice(words)
        numbers = [0, 1, 2, 3, 63, 65, 128, 1000, 2**20, 2**31, 2**62]
        new = str(generator.choice(numbers)) if found[0].isdigit() else generator.choice(words)[0]
        text = text[: found.start()] + new + text[found.end() :]
    return text


def mutated_text(text: str, generator: Random, words: Sequence[str] = _LARGE) -> str:
    """Return a text with one to three places changed: cut, doubled, swapped, or another number or word."""
    for _ in range(generator.randint(1, 3)):
        if not text:
            return text
        at = generator.randrange(len(text))
        end = min(len(text), at + generator.randint(1, 20))
        other = generator.randrange(len(text))
        number = str(generator.choice(EXTREMES))
        text = generator.choice(
            [
                text[:at] + text[end:],
                text[:at] + text[at:end] * 2 + text[end:],
                text[:at] + text[other : other + end - at] + text[end:],
                text[:at] + generator.choice(_MARKS) + text[end:],
                _with_word(text, at, generator.choice([*words, number])),
            ]
        )
    return text


def _with_word(text: str, at: int, word: str) -> str:
    """Return a text with the word, or number, at a place replaced."""
    first = last = at
    while first > 0 and (text[first - 1].isalnum() or text[first - 1] in "_."):
        first -= 1
    while last < len(text) and (text[last].isalnum() or text[last] in "_."):
        last += 1
    return text[:first] + word + text[last:]


def damaged_lines(text: bytes, others: Sequence[bytes], generator: Random) -> bytes:
    """Return a text with words, lines or bytes changed."""
    kind = generator.randrange(8)
    if kind == 0:
        return damaged_bytes(text, others, generator)
    decoded = text.decode("utf-8", "replace")
    if kind < 4:
        decoded = exchanged_text(decoded, generator)
    elif kind < 6:
        decoded = mutated_text(decoded, generator)
    else:
        decoded = _other_lines(decoded, generator.choice(others).decode("utf-8", "replace"), generator)
    return decoded.encode("utf-8", "surrogatepass")


def _other_lines(text: str, other: str, generator: Random) -> str:
    """Return a text with lines removed, repeated many times, moved, or taken from another."""
    lines, more = text.split("\n"), other.split("\n")
    at = generator.randrange(len(lines))
    end = min(len(lines), at + generator.randint(1, 4))
    kind = generator.randrange(5)
    if kind == 0:
        new: list[str] = []
    elif kind == 1:
        new = lines[at:end] * generator.choice((2, 5, 8))
    elif kind == 2:
        start = generator.randrange(len(more))
        new = more[start : start + generator.randint(1, 6)]
    elif kind == 3:
        new = [line * generator.choice((2, 40)) for line in lines[at:end]]
    else:
        new = generator.sample(lines[at:end], end - at)
    return "\n".join([*lines[:at], *new, *lines[end:]])


def damaged_bytes(content: bytes, others: Sequence[bytes], generator: Random) -> bytes:
    """Return bytes that are cut short, have bits flipped, parts doubled or of others, or words of extreme numbers."""
    kind = generator.randrange(7)
    at = generator.randrange(len(content) + 1)
    size = generator.choice((1, 2, 4, 8, 40, 500))
    if kind == 0:
        return content[:at]
    if kind == 1:
        changed = bytearray(content)
        for _ in range(generator.choice((1, 1, 3, 20)) if changed else 0):
            changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
        return bytes(changed)
    if kind == 2:
        return content[:at] + content[at : at + size] * 2 + content[at + size :]
    if kind == 3:
        other = generator.choice(others)
        start = generator.randrange(len(other) + 1)
        return content[:at] + other[start : start + generator.choice((4, 64, 10**6))] + content[at:]
    if kind == 4:
        width = generator.choice((2, 4, 8))
        number = generator.choice(EXTREMES) & ((1 << 8 * width) - 1)
        at = generator.choice((0, 4, 8, at))
        return content[:at] + number.to_bytes(width, "little") + content[at + width :]
    if kind == 5:
        return content[:at] + generator.randbytes(size) + content[at:]
    return generator.choice((b"", b"\0", b"\xef\xbb\xbf" + content, content + b"\0" * size, content[at:]))


def damaged_safetensors(content: bytes, others: Sequence[bytes], generator: Random) -> bytes:
    """Return a safetensors file whose header is another, its length right, or bytes changed anywhere."""
    if generator.random() < 0.3:
        return damaged_bytes(content, others, generator)
    begin = 8 + int.from_bytes(content[:8], "little")
    header = damaged_json(content[8:begin], [content[8:begin]], generator)
    return len(header).to_bytes(8, "little") + header + content[begin:]


def damaged_npy(content: bytes, others: Sequence[bytes], generator: Random) -> bytes:
    """Return a .npy file whose header is another, its length right, or bytes changed anywhere."""
    if generator.random() < 0.3 or content[:6] != b"\x93NUMPY":
        return damaged_bytes(content, others, generator)
    begin = 10 + int.from_bytes(content[8:10], "little")
    header = content[10:begin].decode("latin-1")
    if generator.random() < 0.5:
        words = (
            "-1",
            "True",
            "None",
            "1.5",
            "(1,)",
            "'<f2'",
            "'|O'",
            "'>f4'",
            "'<M8[s]'",
            "[('a','<f4')]",
            "()",
            "1is 2",
        )
        header = mutated_text(header, generator, words)
    else:
        header = header.replace(
            generator.choice(("False", "<f2", "<f4", "<i8", "shape", "(", ",")),
            generator.choice(("True", "|O", "<f8", "<U4", "|V8", "descr", "(9999999999,", ", " * 9, "(" * 300, "-")),
        )
    new = header.encode("latin-1", "replace")[:65535]
    return content[:8] + len(new).to_bytes(2, "little") + new + content[begin:]


Damage = Callable[[bytes, Sequence[bytes], Random], bytes]
"""From a content and others of its kind to a damaged one."""


def damaged_archive(content: bytes, others: Sequence[bytes], generator: Random) -> bytes:
    """Return a zip archive that holds a damaged member, or others under its names, or bytes changed anywhere."""
    if generator.random() < 0.3:
        return damaged_bytes(content, others, generator)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {item.filename: archive.read(item) for item in archive.infolist()}
    name = generator.choice(list(files))
    kind = generator.randrange(6)
    if kind == 0:
        del files[name]
    elif kind == 1:
        files[generator.choice(("../x", "/x", name.upper(), "a" * 3000, name + ".npy"))] = files.pop(name)
    else:
        suffix = name[name.rfind(".") :]
        same = [member for other, member in files.items() if other.endswith(suffix)]
        files[name] = damage_of(name)(files[name], same, generator)
    made = io.BytesIO()
    method = generator.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(made, "w", method) as archive:
        for path, member in files.items():
            archive.writestr(path, member)
            if kind == 2 and path == name:
                archive.NameToInfo.pop(name)  # the same name once more, without a warning
                archive.writestr(path, member)
    return made.getvalue()


_DAMAGE: dict[str, Damage] = {
    ".json": damaged_json,
    ".jsonl": damaged_lines,
    ".mlir": damaged_lines,
    ".txt": damaged_lines,
    ".csv": damaged_lines,
    ".npy": damaged_npy,
    ".safetensors": damaged_safetensors,
    ".npz": damaged_archive,
    ".pt2": damaged_archive,
}


def damage_of(name: str) -> Damage:
    """Return what damages a file of this name: by its ending, bytes where it is none that is known."""
    return _DAMAGE.get(name[name.rfind(".") :] if "." in name else "", damaged_bytes)
