"""Rules that a launch artefact keeps, all problems collected: its plan by itself (J2, J5, J7, J8, J9); the plan and the
images that it copies (J6, J11), and that corrections hold the words they should.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, product

from spyrec.bundle.host_compute import correction_bytes
from spyrec.bundle.image_sections import Bytes, ImageSections, ProgramEntry, entry_offset, read_sections
from spyrec.bundle.image_table import ImageTable
from spyrec.bundle.json_cursor import attempt
from spyrec.bundle.launch_plan import (
    Allocate,
    ComputeOnDevice,
    ComputeOnHost,
    DataTransfer,
    ExecutionStep,
    InitTransfer,
)
from spyrec.bundle.program_image import image_table
from spyrec.bundle.spyrecode_codes import (
    MALFORMED_PLAN,
    MISALIGNED,
    NO_ENTRY,
    NOT_CORRECTED,
    OUTSIDE_ALLOCATION,
    OVERLAP,
    WRONG_ORDER,
    WRONG_TRANSFER_SIZE,
    WRONG_WORDS,
)
from spyrec.bundle.spyrecode_json import Placed, PlacedPlan
from spyrec.dataclass import dataclass
from spyrec.diagnostics import DiagnosticSink, Location
from spyrec.hardware.target import PROGRAM_SEGMENT_BASE, SEGMENT_BYTES, STICK_BYTES


@dataclass(frozen=True, slots=True)
class _Range:
    """Device memory that a step touches, in whole sticks; ``what`` names it in messages."""

    begin: int
    size_bytes: int
    what: str
    where: Location

    @property
    def past(self) -> int:
        return self.begin + -(-self.size_bytes // STICK_BYTES) * STICK_BYTES

    def overlaps(self, other: _Range) -> bool:
        return self.begin < other.past and other.begin < self.past

    def __str__(self) -> str:
        return f"{self.what} at {self.begin:#x} to {self.past:#x}"


def check_plan(plan: PlacedPlan, sink: DiagnosticSink) -> None:
    """Check a plan that could be read; errors SPY0640, SPY0642, SPY0645, SPY0647 to SPY0649."""
    if plan.is_complete:
        _check_order(plan, sink)
        _check_buffers(plan, sink)
        _check_first_slot(plan, sink)
    code = list(_code(plan))
    corrections = list(_corrections(plan))
    others = list(_other_transfers(plan))
    _check_places(plan, [*code, *corrections, *others], sink)
    _check_overlaps(plan, code, corrections, sink)


def first_correction(plan: PlacedPlan) -> DataTransfer | None:
    """Return the transfer that the correction slots stand for: the first of a host computation."""
    made = _made(plan)
    for placed in plan.execution:
        step = placed.step
        if isinstance(step, DataTransfer) and not step.is_to_host and step.host_buffer in made:
            return step
    return None


def _code(plan: PlacedPlan) -> Iterator[_Range]:
    for placed in plan.preparation:
        if isinstance(placed.step, InitTransfer):
            name = f'"{placed.step.file[:80]}"'
            yield _Range(placed.step.dev_ptr, placed.step.size_bytes, name, placed.at("dev_ptr"))


def _made(plan: PlacedPlan) -> set[str]:
    return {placed.step.output for placed in plan.execution if isinstance(placed.step, ComputeOnHost)}


def _corrections(plan: PlacedPlan) -> Iterator[_Range]:
    """Yield where corrections lie: each place once."""
    made = _made(plan)
    found: dict[int, _Range] = {}
    for placed in plan.execution:
        step = placed.step
        if isinstance(step, DataTransfer) and not step.is_to_host and step.host_buffer in made:
            found.setdefault(
                step.dev_ptr, _Range(step.dev_ptr, step.size_bytes, "the correction", placed.at("dev_ptr"))
            )
    first = first_correction(plan)
    for number, placed in enumerate(plan.slots):
        size_bytes = 0 if first is None else first.size_bytes
        name = f"the correction of slot {number}"
        place = _Range(placed.step.dev_ptr, size_bytes, name, placed.at("dev_ptr"))
        if number == 0:
            found.setdefault(placed.step.dev_ptr, place)
        else:
            yield place
    yield from found.values()


def _other_transfers(plan: PlacedPlan) -> Iterator[_Range]:
    made = _made(plan)
    for placed in plan.execution:
        step = placed.step
        if isinstance(step, DataTransfer) and (step.is_to_host or step.host_buffer not in made):
            yield _Range(step.dev_ptr, step.size_bytes, "the transfer", placed.at("dev_ptr"))


def _check_places(plan: PlacedPlan, ranges: Iterable[_Range], sink: DiagnosticSink) -> None:
    """J2 and J5."""
    allocation = next((placed for placed in plan.preparation if isinstance(placed.step, Allocate)), None)
    size_bytes = SEGMENT_BYTES
    if allocation is not None and isinstance(allocation.step, Allocate):
        size_bytes = allocation.step.size_bytes
        if size_bytes > SEGMENT_BYTES:
            fact = f"an allocation of {size_bytes} bytes, the program segment has {SEGMENT_BYTES} (rule J2)"
            sink.error(OUTSIDE_ALLOCATION, fact, allocation.at("size"))
    past = PROGRAM_SEGMENT_BASE + min(size_bytes, SEGMENT_BYTES)
    for item in ranges:
        if item.begin < PROGRAM_SEGMENT_BASE or item.past > past:
            fact = f"{item} leaves the allocation at {PROGRAM_SEGMENT_BASE:#x} to {past:#x} (rule J2)"
            sink.error(OUTSIDE_ALLOCATION, fact, item.where)
        _check_aligned(item.begin, item.where, sink)
    for placed in plan.execution:
        if isinstance(placed.step, ComputeOnDevice):
            _check_aligned(placed.step.job_bin_ptr, placed.at("job_bin_ptr"), sink)
    for placed in plan.slots:
        _check_aligned(placed.step.job_bin_ptr, placed.at("job_bin_ptr"), sink)


def _check_aligned(pointer: int, where: Location, sink: DiagnosticSink) -> None:
    if pointer % STICK_BYTES:
        fact = f"pointer {pointer:#x} is {pointer % STICK_BYTES} bytes beyond a multiple of {STICK_BYTES} (rule J5)"
        sink.error(MISALIGNED, fact, where)


def _check_overlaps(
    plan: PlacedPlan, code: Iterable[_Range], corrections: Iterable[_Range], sink: DiagnosticSink
) -> None:
    """J8."""
    known = tuple(corrections)
    for correction, part in () if plan.may_overlap else product(known, code):
        if correction.overlaps(part):
            sink.error(OVERLAP, f"{correction} overlaps {part} (rule J8)", correction.where)
    for first, second in combinations(known, 2):
        if first.overlaps(second):
            sink.error(OVERLAP, f"{first} overlaps {second} (rule J8)", first.where)


def _check_order(plan: PlacedPlan, sink: DiagnosticSink) -> None:
    """J9, the order: a host computation is followed by its transfers, these by a program."""
    steps = [placed.step for placed in plan.execution]
    is_due = False
    for index, step in enumerate(steps):
        following = steps[index + 1] if index + 1 < len(steps) else None
        is_due = isinstance(step, ComputeOnHost) or (is_due and _is_to_device(step))
        if not is_due:
            continue
        wanted: tuple[type[ExecutionStep], ...] = (ComputeOnHost, DataTransfer)
        if _is_to_device(step):
            wanted = (DataTransfer, ComputeOnDevice)
        if not isinstance(following, wanted) or (isinstance(following, DataTransfer) and following.is_to_host):
            found = "nothing" if following is None else _name(following)
            fact = f"step {index}, {_name(step)}, is followed by {found}: what the host computes is transferred"
            sink.error(
                WRONG_ORDER, f"{fact} to the device and then used (rule J9)", plan.execution[index].properties.location
            )


def _is_to_device(step: ExecutionStep) -> bool:
    return isinstance(step, DataTransfer) and not step.is_to_host


def _name(step: ExecutionStep) -> str:
    if isinstance(step, DataTransfer):
        return "a DataTransfer to the host" if step.is_to_host else "a DataTransfer to the device"
    return f"a {type(step).__name__}"


@dataclass(frozen=True, slots=True)
class _Buffer:
    size_bytes: int
    is_computed: bool


def _check_buffers(plan: PlacedPlan, sink: DiagnosticSink) -> None:
    """J7, and of J9 that buffers are made once and before their use."""
    buffers: dict[str, _Buffer] = {}
    for placed in plan.execution:
        step = placed.step
        match step:
            case ComputeOnHost():
                if step.input is not None and step.input not in buffers:
                    _unknown(step.input, placed.at("ihandle"), sink)
                _make(buffers, step.output, _Buffer(step.size_bytes, is_computed=True), placed.at("ohandle"), sink)
                wanted = step.specification.size_bytes
                if step.size_bytes != wanted:
                    fact = f"{step.size_bytes} bytes, {len(step.specification.words)} words take {wanted} (rule J7)"
                    sink.error(WRONG_TRANSFER_SIZE, fact, placed.at("size"))
            case DataTransfer(is_to_host=True):
                _make(
                    buffers,
                    step.host_buffer,
                    _Buffer(step.size_bytes, is_computed=False),
                    placed.at("host_handle"),
                    sink,
                )
            case DataTransfer():
                _check_transfer(placed, step, buffers, sink)
            case ComputeOnDevice():
                pass


def _make(buffers: dict[str, _Buffer], name: str, buffer: _Buffer, where: Location, sink: DiagnosticSink) -> None:
    if not name or name in buffers:
        fact = f'buffer "{name[:80]}" is made twice (rule J9)' if name else "a buffer without a name (rule J9)"
        sink.error(WRONG_ORDER, fact, where)
    buffers[name] = buffer


def _unknown(name: str, where: Location, sink: DiagnosticSink) -> None:
    sink.error(WRONG_ORDER, f'buffer "{name[:80]}" is used and not made before (rule J9)', where)


def _check_transfer(
    placed: Placed[ExecutionStep], step: DataTransfer, buffers: dict[str, _Buffer], sink: DiagnosticSink
) -> None:
    buffer = buffers.get(step.host_buffer)
    if buffer is None:
        _unknown(step.host_buffer, placed.at("host_handle"), sink)
    elif step.size_bytes > buffer.size_bytes or (buffer.is_computed and step.size_bytes != buffer.size_bytes):
        fact = f'{step.size_bytes} bytes of buffer "{step.host_buffer[:80]}", which has {buffer.size_bytes} (rule J7)'
        sink.error(WRONG_TRANSFER_SIZE, fact, placed.at("size"))


def _check_first_slot(plan: PlacedPlan, sink: DiagnosticSink) -> None:
    """Check that slot 0 is that of the plan, and that a plan with a correction has one."""
    first = first_correction(plan)
    if not plan.slots:
        if first is not None:
            fact = "the plan transfers a correction, and correctionSlots is empty"
            sink.error(MALFORMED_PLAN, fact, plan.location.child("correctionSlots"))
        return
    slot = plan.slots[0].step
    starts = {placed.step.job_bin_ptr for placed in plan.execution if isinstance(placed.step, ComputeOnDevice)}
    if first is None or first.dev_ptr != slot.dev_ptr or slot.job_bin_ptr not in starts:
        fact = f"slot 0 (dev_ptr {slot.dev_ptr:#x}, job_bin_ptr {slot.job_bin_ptr:#x}) is not that of JobExecPlan"
        sink.error(MALFORMED_PLAN, fact, plan.slots[0].properties.location)


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
