"""Which SuperDSC a text is, for texts that this process has read or written.

A bundle that was just read, or made, is executed from the images of its programs, which hold the same texts again.
Reading one takes milliseconds, most of them for messages about what might be wrong with it.
"""

from __future__ import annotations

from hashlib import sha256
from weakref import WeakValueDictionary

from spyrec.bundle.superdsc import SuperDsc


class SuperDscTexts:
    """SuperDSCs by the hash of their text, each as long as somebody holds it."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[bytes, SuperDsc] = WeakValueDictionary()

    def find(self, text: bytes) -> SuperDsc | None:
        """Return the SuperDSC of a text, ``None`` where it is not known."""
        return self._known.get(sha256(text).digest())

    def remember(self, text: bytes, dsc: SuperDsc) -> None:
        """Take note of the text of a SuperDSC."""
        self._known[sha256(text).digest()] = dsc


READ_TEXTS = SuperDscTexts()
"""Those that were read without any message."""

WRITTEN_TEXTS = SuperDscTexts()
"""Those that were written: what a reader of files might say of them is not known."""
