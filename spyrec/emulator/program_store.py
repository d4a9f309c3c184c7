"""Programs as the device finds them: images decoded from program memory, and corrections applied to them there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spyrec.bundle.host_compute import correction_bytes, correction_words
from spyrec.bundle.image_sections import Bytes as ImageBytes
from spyrec.bundle.image_sections import entry_offset, image_bytes_of, operand_table_bytes, read_sections
from spyrec.bundle.program_image import ProgramEntry, ProgramImage, code_key, read_image
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location
from spyrec.emulator.attached_memory import AttachedMemory, Bytes
from spyrec.emulator.memory import KEPT_RANGES
from spyrec.hardware.target import PROGRAM_SEGMENT_BASE, STICK_BYTES
from spyrec.runtime.errors import CorrectionMissing, NoEntry

_CLEARED = bytes(8)

_MOST_IMAGES = 256
"""Decoded images that are kept; the oldest goes first."""

_READ: dict[bytes, ProgramImage] = {}
"""What images of this process say, by the SHA-256 of their code, which is held against the code at every read: one
image is the same on every device."""


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """An image as it lies at a place in program memory; ``key``: of its code.

    ``fixed``: the emulated ranges that nothing but a copy of another program changes: all but the operand tables.
    """

    image: ProgramImage
    key: bytes
    fixed: tuple[tuple[int, int], ...]

    def is_touched(self, first: int, past: int) -> bool:
        """Whether bytes that were written are among those that were decoded."""
        for own_first, own_past in self.fixed:  # noqa: SIM110 -- a generator costs more than these comparisons
            if first < own_past and own_first < past:
                return True
        return False


class StartedEntry:
    """An entry of a decoded image, and the bytes of its slot: where its correction comes to lie, and its words.

    The image lies at the start of its job's allocation, at the device address ``allocation``.
    """

    def __init__(self, memory: AttachedMemory, allocation: int, decoded: DecodedImage, entry: ProgramEntry) -> None:
        self.decoded = decoded
        self._entry = entry
        self._words = words = len(decoded.image.words)
        self._area = self._given = self._table = memoryview(b"")
        if words:
            area = allocation + entry.correction_pointer - PROGRAM_SEGMENT_BASE
            self._area = memory.view(area, correction_bytes(words)).data
            self._given = self._area[STICK_BYTES : STICK_BYTES + 8 * words]
            table = memory.view(allocation + entry.operand_offset, operand_table_bytes(words))
            self._table = table.data[: 8 * words]

    def corrected(self) -> tuple[int, ...]:
        """Run the correction program: patch the operand table in memory; return its words.

        A correction tensor serves once: its magic is cleared.  Errors: SPY0966 there is none.
        """
        words = self._words
        if words == 0:
            return ()
        found = correction_words(self._area, words)
        if found is None:
            begins = bytes(self._area[:8])
            fact = f"the area of slot {self._entry.slot} holds no correction tensor of {words} words"
            notes = (f"it begins with {begins!r}, a tensor with its magic; a computation clears it",)
            raise CorrectionMissing(f"{fact}: the copy of it is missing or late", notes=notes)
        self._table[:] = self._given  # both as little-endian words
        self._area[:8] = _CLEARED
        return found


class ProgramStore:
    """The memory of the program segment, byte for byte, and what its images were decoded to.

    An image is decoded when a computation starts it, and again where a copy may have changed its bytes since.
    """

    def __init__(self) -> None:
        self.memory = AttachedMemory()
        self._decoded: dict[tuple[int, int], DecodedImage] = {}
        self._started: dict[tuple[int, int, int], StartedEntry] = {}
        self._harmless: set[tuple[int, int]] = set()
        """Ranges that were written and lie in nothing that was decoded: corrections go there again and again."""

    def read(self, data: ImageBytes, file: str) -> ProgramImage:
        """Return what an image holds; its code is parsed once, on whatever device and however many slots it has.

        Errors: SPY0652 to SPY0654 no intact image, as of bundles.
        """
        sections = read_sections(data, Location(file))
        key = code_key(data)
        found = _READ.get(key)
        if found is not None and len(found.words) == sections.words:
            return replace(found, entries=sections.entries)
        found = read_image(data, file)
        for oldest in list(_READ)[: max(0, len(_READ) + 1 - _MOST_IMAGES)]:  # other threads may do the same
            _READ.pop(oldest, None)
        _READ[key] = found
        return found

    def image(self, address: int, size_bytes: int) -> DecodedImage:
        """Return what lies at a device address; errors SPY0702, SPY0652 to SPY0654 no intact image, as of bundles."""
        written = self.memory.host_writes()
        if written:
            self._forget_written(written)
        found = self._decoded.get((address, size_bytes))
        if found is None:
            found = self._decode(self.memory.view(address, size_bytes))
            while len(self._decoded) >= _MOST_IMAGES:
                self._forget(next(iter(self._decoded)))
            self._decoded[address, size_bytes] = found
            self._harmless.clear()
        return found

    def started(self, address: int, size_bytes: int, offset_bytes: int) -> StartedEntry:
        """Return the entry that lies ``offset_bytes`` into the image at a device address.

        Errors: as :meth:`image`; SPY0968 no entry lies there.
        """
        decoded = self.image(address, size_bytes)
        key = address, size_bytes, offset_bytes
        found = self._started.get(key)
        if found is None:
            found = StartedEntry(self.memory, address, decoded, entry_at(decoded, offset_bytes))
            self._started[key] = found
        return found

    def _decode(self, memory: Bytes) -> DecodedImage:
        data = memory.data
        image = self.read(data, "device memory")
        first, count = memory.ctypes.data, len(image.entries)
        code = first + image_bytes_of(len(image.words), count, 0)
        return DecodedImage(image, code_key(data), ((first, first + entry_offset(count)), (code, first + len(memory))))

    def _forget_written(self, written: Sequence[tuple[int, int]]) -> None:
        for place in written:
            if place in self._harmless:
                continue
            gone = [key for key, item in self._decoded.items() if item.is_touched(*place)]
            for key in gone:
                self._forget(key)
            if len(self._harmless) < KEPT_RANGES:
                self._harmless.add(place)

    def _forget(self, key: tuple[int, int]) -> None:
        del self._decoded[key]
        for started in [item for item in self._started if item[:2] == key]:
            del self._started[started]


def entry_at(decoded: DecodedImage, offset_bytes: int) -> ProgramEntry:
    """Return the entry that lies so far into an image; errors SPY0968."""
    for entry in decoded.image.entries:
        if entry_offset(entry.slot) == offset_bytes:
            return entry
    offsets = ", ".join(str(entry_offset(entry.slot)) for entry in decoded.image.entries)
    raise NoEntry(f"a computation starts at byte {offset_bytes} of a program whose entries are at {offsets}")
