"""A hash of what frozen values hold, the same in every process: a name for what follows from them alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b, sha256
from operator import attrgetter
from typing import cast

_DIGEST_BYTES = 20


def _nothing(_: object) -> tuple[()]:
    return ()


class ContentDigests:
    """Digests of values made of frozen dataclasses, members of enums, tuples, mappings, numbers and texts.

    Two values have one digest where they are of the same types and equal in every field that counts for equality, and
    floats bit by bit.  A dataclass is looked at once, and held: most of what programs are made of is shared.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, bytes]] = {}
        self._readers: dict[type, tuple[bytes, Callable[[object], object], bool]] = {}

    def of(self, value: object) -> str:
        """Return the SHA-256 of a value in hexadecimal; an ``AssertionError`` for a type that has no canonical form."""
        return sha256(self._text(value)).hexdigest()

    def _text(self, value: object) -> bytes:
        """Return a text that no other value has; of a dataclass its digest."""
        kind = type(value)
        if kind is int or kind is bool or value is None:
            return b"%a;" % (value,)
        if kind is tuple or kind is list:
            items = cast("tuple[object, ...]", value)  # most are numbers: no call for each of them
            return b"(%s)" % b"".join([b"%d;" % item if type(item) is int else self._text(item) for item in items])
        if kind is str:
            text = cast("str", value).encode()
            return b"'%d:%s" % (len(text), text)
        if isinstance(value, float):  # a figure of a profile is one, with its source
            return b"f%s;" % float(value).hex().encode()
        if isinstance(value, Enum):
            return self._text(("enum", kind.__module__, kind.__qualname__, value.name))
        if isinstance(value, Mapping):
            return b"{%s}" % b"".join([self._text(item) for item in cast("Mapping[object, object]", value).items()])
        if kind is frozenset:
            return b"<%s>" % b"".join(sorted(map(self._text, cast("frozenset[object]", value))))
        assert is_dataclass(value), f"{kind} has no canonical form"
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = value, self._record(kind, value)
        return known[1]

    def _record(self, kind: type, value: object) -> bytes:
        if kind not in self._readers:
            names = [item.name for item in fields(kind) if item.compare]
            read: Callable[[object], object] = attrgetter(*names) if names else _nothing
            self._readers[kind] = f"{kind.__module__}.{kind.__qualname__}:".encode(), read, len(names) == 1
        name, read, is_alone = self._readers[kind]
        found = read(value)
        text = self._text((found,) if is_alone else found)
        return b"=" + blake2b(name + text, digest_size=_DIGEST_BYTES).digest()
