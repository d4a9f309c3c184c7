"""What a text of a bundle is, for texts that this process has read or written: SuperDSCs and programs.

A bundle that was just read, or made, is executed from the images of its programs, which hold the same texts again.
Reading one takes milliseconds, most of them for messages about what might be wrong with it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from spyrec.bundle.program import Program
from spyrec.bundle.superdsc import SuperDsc

Meaning = TypeVar("Meaning", SuperDsc, Program)


class KnownTexts(Generic[Meaning]):
    """What texts say, by their hash, each as long as somebody holds it."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[bytes, Meaning] = WeakValueDictionary()

    def find(self, text: bytes) -> Meaning | None:
        """Return what a text says, ``None`` where it is not known."""
        return self._known.get(sha256(text).digest())

    def remember(self, text: bytes, meaning: Meaning) -> None:
        """Take note of what a text says."""
        self._known[sha256(text).digest()] = meaning


READ_SUPERDSCS = KnownTexts[SuperDsc]()
"""Those that were read without any message."""

WRITTEN_SUPERDSCS = KnownTexts[SuperDsc]()
"""Those that were written: what a reader of files might say of them is not known."""

WRITTEN_PROGRAMS = KnownTexts[Program]()
"""Programs that were written to an image or a file."""
