"""Programs as the device finds them: images decoded from program memory, and corrections applied to them there."""

from __future__ import annotations

from dataclasses import replace

from spyrec.bundle.host_compute import correction_bytes, correction_words
from spyrec.bundle.image_sections import Bytes as ImageBytes
from spyrec.bundle.image_sections import entry_offset, image_bytes_of, operand_table_bytes, read_sections
from spyrec.bundle.program_image import ProgramEntry, ProgramImage, code_key, read_image
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location
from spyrec.emulator.attached_memory import AttachedMemory, Bytes
from spyrec.hardware.target import PROGRAM_SEGMENT_BASE, STICK_BYTES
from spyrec.runtime.errors import CorrectionMissing, NoEntry

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


class ProgramStore:
    """The memory of the program segment, byte for byte, and what its images were decoded to.

    An image is decoded when a computation starts it, and again where a copy may have changed its bytes since.
    """

    def __init__(self) -> None:
        self.memory = AttachedMemory()
        self._decoded: dict[tuple[int, int], DecodedImage] = {}

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
        self._forget_written()
        found = self._decoded.get((address, size_bytes))
        if found is None:
            found = self._decode(self.memory.view(address, size_bytes))
            while len(self._decoded) >= _MOST_IMAGES:
                del self._decoded[next(iter(self._decoded))]
            self._decoded[address, size_bytes] = found
        return found

    def corrected(self, decoded: DecodedImage, allocation: int, entry: ProgramEntry) -> tuple[int, ...]:
        """Run an entry's correction program: patch the operand table in memory; return its words.

        The image lies at the start of its job's allocation.  A correction tensor serves once: its magic is cleared.
        Errors: SPY0966 there is none.
        """
        words = len(decoded.image.words)
        if words == 0:
            return ()
        area = self.memory.view(allocation + entry.correction_pointer - PROGRAM_SEGMENT_BASE, correction_bytes(words))
        found = correction_words(area.data, words)
        if found is None:
            begins = bytes(area[:8])
            fact = f"the area of slot {entry.slot} holds no correction tensor of {words} words"
            notes = (f"it begins with {begins!r}, a tensor with its magic; a computation clears it",)
            raise CorrectionMissing(f"{fact}: the copy of it is missing or late", notes=notes)
        table = self.memory.view(allocation + entry.operand_offset, operand_table_bytes(words))
        table[: 8 * words] = area[STICK_BYTES : STICK_BYTES + 8 * words]  # both as little-endian words
        area[:8] = 0
        return found

    def _decode(self, memory: Bytes) -> DecodedImage:
        data = memory.data
        image = self.read(data, "device memory")
        first, count = memory.ctypes.data, len(image.entries)
        code = first + image_bytes_of(len(image.words), count, 0)
        return DecodedImage(image, code_key(data), ((first, first + entry_offset(count)), (code, first + len(memory))))

    def _forget_written(self) -> None:
        for first, past in self.memory.host_writes():
            gone = [key for key, item in self._decoded.items() if item.is_touched(first, past)]
            for key in gone:
                del self._decoded[key]


def entry_at(decoded: DecodedImage, offset_bytes: int) -> ProgramEntry:
    """Return the entry that lies so far into an image; errors SPY0968."""
    for entry in decoded.image.entries:
        if entry_offset(entry.slot) == offset_bytes:
            return entry
    offsets = ", ".join(str(entry_offset(entry.slot)) for entry in decoded.image.entries)
    raise NoEntry(f"a computation starts at byte {offset_bytes} of a program whose entries are at {offsets}")
