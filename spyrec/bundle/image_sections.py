"""The bytes of a program image (``docs/program_image.md``): header, entries, operand tables, named files.

Nothing here looks into the files; every size and offset is checked before it is used.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence

from spyrec.bundle.correction_word import MAX_WORDS, UNRESOLVED
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.hardware.target import STICK_BYTES

DAMAGED_IMAGE = "SPY0652"
"""Code of an image whose header, entries or sections contradict each other or its length."""

ALTERED_CODE = "SPY0653"
"""Code of an image whose code section is not what the header's SHA-256 says."""

UNKNOWN_IMAGE = "SPY0654"
"""Code of bytes that are no program image, or one of another version."""

IMAGE_MAGIC = b"SPYREPRG"
ENTRY_MAGIC = b"SPYENTRY"
IMAGE_VERSION = 1
HEADER_BYTES = ENTRY_BYTES = STICK_BYTES

MAX_SLOTS = 16
"""Most correction slots of a job, and so most entries of an image."""

MAX_FILES = 1 << 20
_SHOWN_DIGITS = 12

_HEADER = struct.Struct("<8sIIQQQII16x32s32x")
"""Magic, version, header bytes, image bytes, code offset, code bytes, entries, words, zeros, SHA-256, zeros."""

_ENTRY = struct.Struct("<8sIIQQ96x")
"""Magic, slot, words, correction pointer, operand table offset, zeros."""

_RECORD = struct.Struct("<QQQQ")
"""Of one named file: name offset, name bytes, data offset, data bytes, from the start of the code section."""

_HINT = "write the bundle again: the form of an image is described in docs/program_image.md"

Bytes = bytes | memoryview


@dataclass(frozen=True, slots=True)
class ProgramEntry:
    """Where a launch starts a program: one for each correction slot.

    ``correction_pointer``: device address of the slot's correction tensor, relative to the program segment as a
    ``dev_ptr`` is; 0 where the program takes no correction.  ``operand_offset``: of the slot's operand table, in bytes
    from the start of the image.
    """

    slot: int
    correction_pointer: int
    operand_offset: int


@dataclass(frozen=True, slots=True)
class ImageSections:
    """The parts of an image; ``words``: of each operand table; ``files``: content by name, in order."""

    entries: tuple[ProgramEntry, ...]
    words: int
    files: Mapping[str, Bytes]


def entry_offset(slot: int) -> int:
    """Return where the entry of a slot lies, in bytes from the start of the image."""
    return HEADER_BYTES + slot * ENTRY_BYTES


def operand_table_bytes(words: int) -> int:
    """Return the bytes of one operand table: whole sticks."""
    return _whole_sticks(8 * words)


def code_key(data: Bytes) -> bytes:
    """Return the SHA-256 that the header names for the code section; the image was read before."""
    return bytes(data[64:96])


def operand_words(data: Bytes, entry: ProgramEntry, words: int) -> tuple[int, ...]:
    """Return the words of an entry's operand table as they stand; the image was read before."""
    return struct.unpack_from(f"<{words}Q", data, entry.operand_offset)


def image_bytes_of(words: int, slots: int, code_bytes: int) -> int:
    """Return the length of an image."""
    return entry_offset(slots) + slots * operand_table_bytes(words) + code_bytes


def pack_code(files: Mapping[str, bytes]) -> bytes:
    """Return the code section that holds ``files``: whole sticks."""
    names = [name.encode() for name in files]
    name_offset = 8 + _RECORD.size * len(files)
    data_offset = _whole_sticks(name_offset + sum(map(len, names)))
    records: list[bytes] = [struct.pack("<Q", len(files))]
    contents: list[bytes] = []
    for name, content in zip(names, files.values(), strict=True):
        records.append(_RECORD.pack(name_offset, len(name), data_offset, len(content)))
        contents.append(content.ljust(_whole_sticks(len(content)), b"\0"))
        name_offset += len(name)
        data_offset += len(contents[-1])
    head = b"".join((*records, *names))
    return b"".join((head.ljust(_whole_sticks(len(head)), b"\0"), *contents))


def pack_image(code: bytes, words: int, correction_pointers: Sequence[int]) -> bytes:
    """Return an image of one entry for each correction pointer, its operand tables unresolved."""
    slots = len(correction_pointers)
    assert 0 < slots <= MAX_SLOTS
    assert words <= MAX_WORDS
    assert len(code) % STICK_BYTES == 0
    code_offset = image_bytes_of(words, slots, 0)
    table = struct.pack("<Q", UNRESOLVED) * words
    digest = hashlib.sha256(code).digest()
    sizes = (HEADER_BYTES, code_offset + len(code), code_offset, len(code), slots, words)
    header = _HEADER.pack(IMAGE_MAGIC, IMAGE_VERSION, *sizes, digest)
    starts = (entry_offset(slots) + slot * operand_table_bytes(words) for slot in range(slots))
    entries = (
        _ENTRY.pack(ENTRY_MAGIC, slot, words, pointer, start)
        for slot, (pointer, start) in enumerate(zip(correction_pointers, starts, strict=True))
    )
    tables = table.ljust(operand_table_bytes(words), b"\0") * slots
    return b"".join((header, *entries, tables, code))


def read_sections(data: Bytes, where: Location) -> ImageSections:
    """Take an image apart; operand tables may hold anything, for corrections change them.

    ``data`` may be longer than the image, as memory is.  Errors: SPY0654 no image of this version, SPY0652 header,
    entries or sections that contradict each other or the length, SPY0653 an altered code section.
    """
    header = _read_header(data, where)
    entries = tuple(_read_entry(data, slot, header, where) for slot in range(header.slots))
    code = memoryview(data)[header.code_offset : header.code_offset + header.code_bytes]
    digest = hashlib.sha256(code).digest()
    if digest != header.digest:
        shown = [item.hex()[:_SHOWN_DIGITS] for item in (digest, header.digest)]
        fact = f"the code section's SHA-256 begins with {shown[0]}, the header's with {shown[1]}"
        raise refuse(ALTERED_CODE, fact, where, hint="write the bundle again: the image was altered or damaged")
    return ImageSections(entries, header.words, _read_files(code, where))


@dataclass(frozen=True, slots=True)
class _Header:
    image_bytes: int
    code_offset: int
    code_bytes: int
    slots: int
    words: int
    digest: bytes


def _damaged(fact: str, where: Location) -> SpyrecError:
    return refuse(DAMAGED_IMAGE, fact, where, hint=_HINT)


def _read_header(data: Bytes, where: Location) -> _Header:
    if len(data) < HEADER_BYTES or bytes(data[:8]) != IMAGE_MAGIC:
        fact = f"{len(data)} bytes that do not begin with a header of {HEADER_BYTES} bytes and its magic {IMAGE_MAGIC}"
        raise refuse(UNKNOWN_IMAGE, fact, where, hint=_HINT)
    _, version, header_bytes, image_bytes, offset, code_bytes, slots, words, digest = _HEADER.unpack_from(data)
    if version != IMAGE_VERSION:
        fact = f"an image of version {version}, version {IMAGE_VERSION} is read"
        raise refuse(UNKNOWN_IMAGE, fact, where, hint="write the bundle again with this version of spyrec")
    if header_bytes != HEADER_BYTES or any(data[48:64]) or any(data[96:128]):
        raise _damaged("reserved bytes of the header are not 0, or its length is not 128", where)
    if not (0 < slots <= MAX_SLOTS and words <= MAX_WORDS):
        fact = f"{slots} entries of {words} words, 1 to {MAX_SLOTS} entries and at most {MAX_WORDS} words are read"
        raise _damaged(fact, where)
    wanted = (image_bytes_of(words, slots, 0), image_bytes_of(words, slots, code_bytes))
    if (offset, image_bytes) != wanted or code_bytes % STICK_BYTES or image_bytes > len(data):
        fact = f"an image of {image_bytes} bytes with its code at {offset} (+{code_bytes}) in {len(data)} bytes"
        raise _damaged(f"{fact}: {slots} entries of {words} words put the code at {wanted[0]}", where)
    return _Header(image_bytes, offset, code_bytes, slots, words, digest)


def _read_entry(data: Bytes, slot: int, header: _Header, where: Location) -> ProgramEntry:
    begin = entry_offset(slot)
    magic, number, words, pointer, offset = _ENTRY.unpack_from(data, begin)
    wanted = entry_offset(header.slots) + slot * operand_table_bytes(header.words)
    if (magic, number, words, offset) != (ENTRY_MAGIC, slot, header.words, wanted) or any(
        data[begin + 32 : begin + 128]
    ):
        fact = f"entry {slot} has magic {magic!r}, slot {number}, {words} words and its operand table at {offset}"
        raise _damaged(f"{fact}, not {ENTRY_MAGIC!r}, {slot}, {header.words} and {wanted}", where)
    if (pointer == 0) != (header.words == 0):
        raise _damaged(f"entry {slot} takes {header.words} words from correction pointer {pointer:#x}", where)
    return ProgramEntry(slot, pointer, offset)


def _read_files(code: memoryview, where: Location) -> dict[str, memoryview]:
    count = int.from_bytes(code[:8], "little") if len(code) >= 8 else -1
    if not 0 <= count <= min(MAX_FILES, (len(code) - 8) // _RECORD.size):
        raise _damaged(f"{count} files in a code section of {len(code)} bytes", where)
    files: dict[str, memoryview] = {}
    for number in range(count):
        name_offset, name_bytes, offset, size_bytes = _RECORD.unpack_from(code, 8 + number * _RECORD.size)
        if name_offset + name_bytes > len(code) or offset + size_bytes > len(code):
            raise _damaged(f"file {number} lies outside the code section of {len(code)} bytes", where)
        try:
            name = str(code[name_offset : name_offset + name_bytes], "utf-8")
        except UnicodeDecodeError:
            raise _damaged(f"the name of file {number} is not UTF-8", where) from None
        if name in files:
            raise _damaged(f'file "{name[:80]}" stands twice', where)
        files[name] = code[offset : offset + size_bytes]
    return files


def _whole_sticks(size_bytes: int) -> int:
    return -(-size_bytes // STICK_BYTES) * STICK_BYTES
