"""Rules between a plan and the images that it copies: J6, J11, and that corrections hold the words they should."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spyrec.bundle.host_compute import correction_bytes
from spyrec.bundle.image_sections import Bytes, ImageSections, ProgramEntry, entry_offset, read_sections
from spyrec.bundle.image_table import ImageTable
from spyrec.bundle.json_cursor import attempt
from spyrec.bundle.launch_plan import ComputeOnDevice, ComputeOnHost, DataTransfer, ExecutionStep, InitTransfer
from spyrec.bundle.program_image import image_table
from spyrec.bundle.spyrecode_codes import NO_ENTRY, NOT_CORRECTED, WRONG_WORDS
from spyrec.bundle.spyrecode_json import Placed, PlacedPlan
from spyrec.diagnostics import DiagnosticSink, Location


@dataclass(frozen=True, slots=True)
class LoadedImage:
    """One image as the preparation copies it to device address ``base``."""

    base: int
    size_bytes: int
    sections: ImageSections
    table: ImageTable

    def entry_at(self, pointer: int) -> ProgramEntry | None:
        """Return the entry at a device address."""
        return next((item for item in self.sections.entries if self.base + entry_offset(item.slot) == pointer), None)


def read_images(
    plan: PlacedPlan, files: Mapping[str, tuple[Bytes, Location]], sink: DiagnosticSink
) -> tuple[LoadedImage, ...]:
    """Read the image in every file that could be read; errors SPY0652 to SPY0654, SPY0620 for its table."""
    images: list[LoadedImage] = []
    for placed in plan.preparation:
        step = placed.step
        if not isinstance(step, InitTransfer) or step.file not in files:
            continue
        data, where = files[step.file]
        sections = attempt(sink, lambda data=data, where=where: read_sections(data, where))
        table = None if sections is None else attempt(sink, lambda s=sections, where=where: image_table(s, where))
        if sections is not None and table is not None:
            images.append(LoadedImage(step.dev_ptr, step.size_bytes, sections, table))
    return tuple(images)


def check_images(plan: PlacedPlan, images: tuple[LoadedImage, ...], sink: DiagnosticSink) -> None:
    """Check where programs start and what corrects them; errors SPY0646 (J6), SPY0651 (J11), SPY0657."""
    corrections: dict[int, tuple[ComputeOnHost, int]] = {}
    made: dict[str, Placed[ExecutionStep]] = {}
    for placed in plan.execution:
        match placed.step:
            case ComputeOnHost(output=output):
                made[output] = placed
            case DataTransfer(is_to_host=False, host_buffer=buffer, dev_ptr=pointer, size_bytes=size_bytes):
                producer = made.get(buffer)
                if producer is not None and isinstance(producer.step, ComputeOnHost):
                    corrections[pointer] = producer.step, size_bytes
            case ComputeOnDevice(job_bin_ptr=pointer):
                found = _entry(images, pointer, placed.at("job_bin_ptr"), sink)
                if found is not None:
                    image, entry = found
                    correction = corrections.pop(entry.correction_pointer, None)
                    _check_correction(image, entry, correction, placed.at("job_bin_ptr"), sink)
            case _:
                pass
    _check_slots(plan, images, sink)


def _entry(
    images: tuple[LoadedImage, ...], pointer: int, where: Location, sink: DiagnosticSink
) -> tuple[LoadedImage, ProgramEntry] | None:
    for image in images:
        entry = image.entry_at(pointer)
        if entry is not None:
            return image, entry
    is_covered = any(image.base <= pointer < image.base + image.size_bytes for image in images)
    fact = "no entry of the image there" if is_covered else "no byte that the preparation copies"
    sink.error(NO_ENTRY, f"job_bin_ptr {pointer:#x} points at {fact} (rule J6)", where)
    return None


def _check_correction(
    image: LoadedImage, entry: ProgramEntry, correction: tuple[ComputeOnHost, int] | None, where: Location,
    sink: DiagnosticSink,
) -> None:  # fmt: skip
    if not image.table.words:
        return
    wanted = correction_bytes(len(image.table.words))
    if correction is None or correction[1] != wanted:
        fact = f"the program takes a correction of {wanted} bytes at {entry.correction_pointer:#x}, "
        fact += "which no step before computes and transfers there" if correction is None else (
            f"where {correction[1]} bytes are transferred"
        )  # fmt: skip
        sink.error(NOT_CORRECTED, f"{fact} (rule J11)", where)
        return
    for fact in _differences(correction[0], image.table):
        sink.error(WRONG_WORDS, fact, where)


def _differences(step: ComputeOnHost, table: ImageTable) -> Iterator[str]:
    """Yield how a host computation differs from what the program takes."""
    given, taken = step.specification.words, table.words
    if given != taken:
        at = next((index for index, pair in enumerate(zip(given, taken, strict=False)) if pair[0] != pair[1]), -1)
        if at < 0:
            yield f"the host computes {len(given)} words, the program takes {len(taken)}"
        else:
            yield f"word {at} of the host computation is {given[at]}, the program takes {taken[at]}"
    addresses = (len(table.arguments) + (1 if table.pool_bytes else 0),)
    if step.input is not None or step.input_shape != addresses:
        source = "the launch" if step.input is None else f'buffer "{step.input[:80]}"'
        yield (
            f"the host computes from {source} with ishape {list(step.input_shape)[:8]}, "
            f"a correction from the launch with {list(addresses)}"
        )


def _check_slots(plan: PlacedPlan, images: tuple[LoadedImage, ...], sink: DiagnosticSink) -> None:
    for number, placed in enumerate(plan.slots):
        found = _entry(images, placed.step.job_bin_ptr, placed.at("job_bin_ptr"), sink)
        if found is not None and found[1].correction_pointer != placed.step.dev_ptr:
            fact = f"slot {number} has its correction at {placed.step.dev_ptr:#x}, its entry takes it from"
            where = placed.at("dev_ptr")
            sink.error(NOT_CORRECTED, f"{fact} {found[1].correction_pointer:#x} (rule J11)", where)
