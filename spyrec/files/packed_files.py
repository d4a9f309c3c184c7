"""Many files as one text: each content stands once, compressed by itself, and is unpacked when it is asked for."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from hashlib import sha256

import orjson

from spyrec.dataclass import dataclass

_LEVEL = 1  # a tenth of the bytes at 300 MB/s; the next levels take twice the time for a fifth less
_HEAD_BYTES = 8
_MOST_BYTES = 1 << 32
_DIGEST_DIGITS = 64


class DamagedPackError(Exception):
    """A text that no :func:`pack` made."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedContent:
    """A content of a packed text as it stands there; ``digest``: SHA-256 of the content, in hexadecimal."""

    size_bytes: int
    digest: str
    packed: memoryview | bytes

    def unpacked(self) -> bytes:
        """Return the content; :class:`DamagedPackError` where it is not what size and digest say."""
        try:
            content = zlib.decompressobj().decompress(self.packed, self.size_bytes + 1)
        except zlib.error as error:
            raise DamagedPackError(str(error)) from None
        if len(content) != self.size_bytes or sha256(content).hexdigest() != self.digest:
            raise DamagedPackError(f"a content is not the {self.size_bytes} bytes that it should be")
        return content


Content = bytes | PackedContent
"""What a file holds, as it is or still packed."""


def digest_of(content: Content) -> str:
    """Return the SHA-256 of what a file holds, in hexadecimal."""
    return content.digest if isinstance(content, PackedContent) else sha256(content).hexdigest()


def unpacked(content: Content) -> bytes:
    """Return the bytes that a file holds.  Raises :class:`DamagedPackError`."""
    return content.unpacked() if isinstance(content, PackedContent) else content


def pack(files: Mapping[str, Content]) -> bytes:
    """Return files by name as one text, the same for the same files in the same order.

    What is packed already is taken as it stands.
    """
    digests: dict[int, tuple[Content, str]] = {}  # by object, which is held: programs that are alike share their files
    kept: dict[str, Content] = {}
    names: list[tuple[str, int]] = []
    numbers: dict[str, int] = {}
    for name, content in files.items():
        if id(content) not in digests:
            digests[id(content)] = content, digest_of(content)
        digest = digests[id(content)][1]
        kept.setdefault(digest, content)
        names.append((name, numbers.setdefault(digest, len(numbers))))
    packed = [item.packed if isinstance(item, PackedContent) else zlib.compress(item, _LEVEL) for item in kept.values()]
    sizes = [
        (item.size_bytes if isinstance(item, PackedContent) else len(item), len(own), digest)
        for (digest, item), own in zip(kept.items(), packed, strict=True)
    ]
    head = orjson.dumps([names, sizes])
    return b"".join([len(head).to_bytes(_HEAD_BYTES, "little"), head, *packed])


class PackedFiles(Mapping[str, bytes]):
    """The files of a packed text, in its order."""

    def __init__(self, text: bytes) -> None:
        """Read which files there are; :class:`DamagedPackError` where it is no such text."""
        view = memoryview(text)
        try:
            begin = _HEAD_BYTES + int.from_bytes(text[:_HEAD_BYTES], "little")
            names, sizes = orjson.loads(text[_HEAD_BYTES:begin])
            self._numbers: dict[str, int] = {str(name): int(number) for name, number in names}
            self._contents: list[PackedContent] = []
            for size_bytes, packed_bytes, digest in sizes:
                end = begin + int(packed_bytes)
                self._contents.append(PackedContent(int(size_bytes), str(digest), view[begin:end]))
                if not (0 <= int(size_bytes) <= _MOST_BYTES and begin <= end and len(digest) == _DIGEST_DIGITS):
                    raise DamagedPackError("sizes do not fit the text")
                begin = end
        except (ValueError, TypeError, OverflowError) as error:
            raise DamagedPackError(str(error)) from None
        if begin != len(text) or not all(0 <= number < len(self._contents) for number in self._numbers.values()):
            raise DamagedPackError("sizes and numbers do not fit the text")

    def number(self, name: str) -> int:
        """Return the number of a file's content: files with the same number hold the same."""
        return self._numbers[name]

    def packed(self, name: str) -> PackedContent:
        """Return a content as it stands in the text; files that hold the same have one."""
        return self._contents[self._numbers[name]]

    def __getitem__(self, name: str) -> bytes:
        """Return a content; :class:`DamagedPackError` where it is not what the text says of it."""
        return self.packed(name).unpacked()

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)
