"""What launching needs to know of a program image: where its parts lie, and what its arguments are."""

from __future__ import annotations

from spyrec.bundle.correction_word import Word, WordKind
from spyrec.bundle.host_compute import correction_bytes
from spyrec.bundle.image_sections import entry_offset, image_bytes_of, operand_table_bytes, read_sections
from spyrec.bundle.image_table import ImageTable
from spyrec.bundle.launch_plan import CorrectionSlot, InitTransfer, LaunchArtifact
from spyrec.bundle.program_image import image_table
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location
from spyrec.hardware.target import PROGRAM_SEGMENT_BASE, SEGMENT_BYTES
from spyrec.runtime.errors import MalformedPlan
from spyrec.runtime.launch.address_levels import stick_strides

Part = tuple[int, int]
"""A part of a job's allocation: its first byte, and its length in bytes."""


@dataclass(frozen=True, slots=True)
class SlotPlaces:
    """The parts of a job's allocation that one correction slot uses; ``entry`` is where a launch starts.

    ``reads`` and ``writes``: of a DeviceCompute beside its operands.  ``correction``: where the tensor goes.
    """

    entry: int
    correction: Part | None
    reads: tuple[Part, ...]
    writes: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Binary:
    """A program image and where it goes.

    ``image``: the part of the allocation that it takes.  ``read`` and ``written``: the indices of the arguments that
    the program reads as it finds them, and writes.  ``baked``: of arguments without a word in the correction, the
    index, and segment and offset of the address they were compiled for.  ``default_strides``: by index of an argument
    whose stick strides a correction sets, those that it was compiled for.
    """

    artifact: LaunchArtifact
    table: ImageTable
    image: Part
    slots: tuple[SlotPlaces, ...]
    read: tuple[int, ...]
    written: tuple[int, ...]
    baked: tuple[tuple[int, int, int], ...]
    has_baked_pool: bool
    default_strides: dict[int, tuple[int, ...]]

    @property
    def image_bytes(self) -> bytes:
        """The image as it is brought to a device."""
        return self.artifact.files[self.artifact.transfers[0].file]


def binary_of(artifact: LaunchArtifact, name: str, made_here: frozenset[int] = frozenset()) -> Binary:
    """Return what an artefact's image says; ``made_here``: arguments that hold nothing before a launch.

    What a program reads of these it has written itself, where it writes them.

    Errors: SPY0652 to SPY0654 for the image, SPY0965 where there is none.
    """
    transfer = _image_transfer(artifact, name)
    where = Location(f"{name}: {transfer.file}")
    sections = read_sections(artifact.files[transfer.file], where)
    table = image_table(sections, where)
    begin = transfer.dev_ptr - PROGRAM_SEGMENT_BASE
    image = begin, transfer.size_bytes
    words = len(table.words)
    count = len(sections.entries)
    code = image_bytes_of(words, count, 0)
    fixed = ((begin, entry_offset(count)), (begin + code, transfer.size_bytes - code))
    slots: list[SlotPlaces] = []
    for entry in sections.entries:
        own: tuple[Part, ...] = ()
        correction = None
        if words:
            correction = entry.correction_pointer - PROGRAM_SEGMENT_BASE, correction_bytes(words)
            own = (begin + entry.operand_offset, operand_table_bytes(words)), correction
        slots.append(SlotPlaces(begin + entry_offset(entry.slot), correction, (*fixed, *own), own))
    arguments = table.arguments
    symbolic = {word.index for word in table.words if word.kind is WordKind.ARGUMENT}
    strided = {word.index for word in table.words if word.kind is WordKind.STICK_STRIDE}
    return Binary(
        artifact, table, image, tuple(slots),
        tuple(
            index for index, item in enumerate(arguments)
            if item.is_read and (index not in made_here or not item.is_written)
        ),
        tuple(index for index, item in enumerate(arguments) if item.is_written),
        tuple(
            (index, *divmod(item.baked_base, SEGMENT_BYTES))
            for index, item in enumerate(arguments) if index not in symbolic
        ),
        table.pool_bytes > 0 and Word(WordKind.POOL) not in table.words,
        {index: stick_strides(arguments[index].device_size) for index in sorted(strided)},
    )  # fmt: skip


def slot_zero(artifact: LaunchArtifact) -> CorrectionSlot | None:
    """Return the slot that the artefact's own steps use."""
    return artifact.slots[0] if artifact.slots else None


def _image_transfer(artifact: LaunchArtifact, name: str) -> InitTransfer:
    """Return the transfer that brings the image: the first one."""
    if not artifact.transfers:
        raise MalformedPlan(f'job "{name}" loads nothing')
    return artifact.transfers[0]
