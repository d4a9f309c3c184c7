"""What of two launch artefacts is compared: the parts of an image, and plans apart from how long their images are."""

from __future__ import annotations

from pathlib import Path

from spyrec.bundle.atomic_directory import PROGRAM_FILE
from spyrec.bundle.image_sections import operand_words, read_sections
from spyrec.bundle.image_table import TABLE_FILE
from spyrec.bundle.paths import read_whole
from spyrec.bundle.spyrecode import CODE_DIRECTORY, IMAGE_FILE, PLAN_FILE
from spyrec.bundle.spyrecode_reader import MAX_IMAGE_BYTES
from spyrec.diagnostics import Location

IMAGE_NAME = f"{CODE_DIRECTORY}/{IMAGE_FILE}"
PLAN_NAME = f"{CODE_DIRECTORY}/{PLAN_FILE}"


def image_parts(path: Path) -> dict[str, bytes]:
    """Return the named files of an image, its table as ``table.json``, and what its operand tables hold.

    Errors: SPY0652 to SPY0654 for a damaged image, SPY0601 to SPY0605.
    """
    data = read_whole(path, MAX_IMAGE_BYTES)
    sections = read_sections(data, Location(str(path)))
    parts = {name: bytes(content) for name, content in sections.files.items()}
    parts["table.json"] = parts.pop(TABLE_FILE, b"{}")
    tables = [operand_words(data, entry, sections.words) for entry in sections.entries]
    parts["operand tables"] = str([list(table) for table in tables]).encode()
    return parts


def repeats_file(image: Path, part: str, content: bytes) -> bool:
    """Whether a part of an image is the program's file beside it, whose differences are reported there."""
    program = image.parent.parent
    if part != PROGRAM_FILE and not part.endswith(".json"):
        return False
    path = program / part
    return path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content


def image_growth(left: Path, right: Path) -> int:
    """Return by how many bytes the image beside the right plan is longer; 0 where one is missing."""
    images = [path.parent / IMAGE_FILE for path in (left, right)]
    if not all(path.is_file() for path in images):
        return 0
    return images[1].stat().st_size - images[0].stat().st_size


def is_shift(left: str | None, right: str | None, growth: int) -> bool:
    """Whether two numbers of a plan differ by as much as their images do, which says nothing new."""
    sides = [(side or "").strip('"') for side in (left, right)]
    if growth == 0 or not all(side.isdecimal() and len(side) <= 20 for side in sides):
        return False
    return int(sides[1]) - int(sides[0]) == growth
