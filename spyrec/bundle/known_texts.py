"""What a text of a bundle is, for texts that this process has read or written: SuperDSCs and programs.

A bundle that was just read, or made, is executed from the images of its programs, which hold the same texts again.
Reading one takes milliseconds, most of them for messages about what might be wrong with it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from spyrec.bundle.mlir_parser import parse_program
from spyrec.bundle.program import Program
from spyrec.bundle.superdsc import SuperDsc

Meaning = TypeVar("Meaning", SuperDsc, Program)


class KnownTexts(Generic[Meaning]):
    """What texts say, by their hash, each as long as somebody holds it."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[bytes, Meaning] = WeakValueDictionary()

    def find(self, text: bytes, digest: bytes | None = None) -> Meaning | None:
        """Return what a text says, ``None`` where it is not known; ``digest``: its SHA-256 where that is known."""
        return self._known.get(digest or sha256(text).digest())

    def remember(self, text: bytes, meaning: Meaning, digest: bytes | None = None) -> None:
        """Take note of what a text says; ``digest``: as above."""
        self._known[digest or sha256(text).digest()] = meaning


_NUMBER = re.compile(rb'\A\s*\{\s*"([0-9]{1,9})_')
_SYMBOL = re.compile(rb'":\s?"-([0-9]{1,18})"')


class AlikeTexts:
    """SuperDSCs whose texts differ in nothing but their number and the ids of their symbols: each is read once.

    A model of many layers has few others.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, SuperDsc] = {}

    def find(self, text: bytes) -> SuperDsc | None:
        """Return what a text says, ``None`` where none like it is known."""
        key, number, ids = _split(text)
        known = self._known.get(key)
        if known is None:
            return None
        rest = iter(ids)
        operands = tuple(
            replace(item, start_addresses=tuple(islice(rest, len(item.start_addresses)))) if item.is_symbolic else item
            for item in known.operands
        )
        return replace(known, index=number, operands=operands)

    def remember(self, text: bytes, dsc: SuperDsc) -> None:
        """Take note of a SuperDSC that was read without any message, if ids stand in its text as starts alone."""
        key, number, ids = _split(text)
        starts = [start for item in dsc.operands if item.is_symbolic for start in item.start_addresses]
        if dsc.schedule is None and number == dsc.index and ids == starts:
            self._known[key] = dsc


def _split(text: bytes) -> tuple[bytes, int, list[int]]:
    """Return a hash of what a text is without its number and its ids, and these."""
    begin = _NUMBER.match(text)
    number, past = (int(begin[1]), begin.end()) if begin is not None else (-1, 0)
    parts = _SYMBOL.split(text[past:])
    ids = [-int(item) for item in parts[1::2]]
    return sha256(b"\0".join(parts[0::2])).digest(), number, ids


READ_SUPERDSCS = KnownTexts[SuperDsc]()
"""Those that were read without any message."""

WRITTEN_SUPERDSCS = KnownTexts[SuperDsc]()
"""Those that were written: what a reader of files might say of them is not known."""

WRITTEN_PROGRAMS = KnownTexts[Program]()
"""Programs that were written to an image or a file."""

READ_PROGRAMS = KnownTexts[Program]()
"""Programs that were read from a file."""


def read_program(text: bytes, file: str | None = None) -> Program:
    """Read ``bundle.mlir``; one that somebody holds is not read again.  Errors: as ``parse_program``."""
    digest = sha256(text).digest()
    found = READ_PROGRAMS.find(text, digest)
    if found is None:
        found = parse_program(text, file)
        READ_PROGRAMS.remember(text, found, digest)
    return found
