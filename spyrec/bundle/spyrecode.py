"""The launch artefact of a program: made from a compiled program, written to and read from a ``spyreCodeDir``."""

from __future__ import annotations

from collections.abc import Mapping

from spyrec.bundle.host_compute import HostComputeSpec
from spyrec.bundle.image_sections import MAX_SLOTS, entry_offset, image_bytes_of, pack_code, pack_image
from spyrec.bundle.image_table import TABLE_FILE, ImageTable, write_table
from spyrec.bundle.launch_plan import (
    Allocate,
    ComputeOnDevice,
    ComputeOnHost,
    CorrectionSlot,
    DataTransfer,
    ExecutionStep,
    InitTransfer,
    LaunchArtifact,
)
from spyrec.hardware.target import PROGRAM_SEGMENT_BASE

CODE_DIRECTORY = "spyreCodeDir"
PLAN_FILE = "spyrecode.json"
IMAGE_FILE = "init.bin"

CORRECTION_BUFFER = "correction"
"""The handle of the host buffer that holds the correction tensor."""


def artifact_of(files: Mapping[str, bytes], table: ImageTable, correction_slots: int = 1) -> LaunchArtifact:
    """Return the launch artefact of a program given as its files and its table.

    The allocation holds the image and behind it a correction area for each slot; a program that takes no correction
    has one entry and no slot.  ``correction_slots``: 1 to 16.
    """
    assert 1 <= correction_slots <= MAX_SLOTS
    specification = HostComputeSpec(table.words)
    code = pack_code({**files, TABLE_FILE: write_table(table)})
    count = correction_slots if table.words else 1
    image_bytes = image_bytes_of(len(table.words), count, len(code))
    first = PROGRAM_SEGMENT_BASE + image_bytes
    places = tuple(
        CorrectionSlot(first + slot * specification.size_bytes, PROGRAM_SEGMENT_BASE + entry_offset(slot))
        for slot in range(count)
    )
    slots = places if table.words else ()
    image = pack_image(code, len(table.words), [slot.dev_ptr for slot in slots] or [0])
    assert len(image) == image_bytes
    return LaunchArtifact(
        (
            Allocate(image_bytes + len(slots) * specification.size_bytes),
            InitTransfer(IMAGE_FILE, PROGRAM_SEGMENT_BASE, image_bytes),
        ),
        _execution(table, specification, places[0]),
        slots,
        {IMAGE_FILE: image},
    )


def _execution(table: ImageTable, specification: HostComputeSpec, slot: CorrectionSlot) -> tuple[ExecutionStep, ...]:
    compute = ComputeOnDevice(slot.job_bin_ptr)
    if not table.words:
        return (compute,)
    size_bytes = specification.size_bytes
    addresses = len(table.arguments) + (1 if table.pool_bytes else 0)
    return (
        ComputeOnHost(CORRECTION_BUFFER, size_bytes, (addresses,), None, specification),
        DataTransfer(False, CORRECTION_BUFFER, slot.dev_ptr, size_bytes),
        compute,
    )
