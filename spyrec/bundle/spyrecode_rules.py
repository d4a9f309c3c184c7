"""Rules that a launch artefact's plan keeps by itself: J2, J5, J7, J8 and J9.  All problems are collected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product

from spyrec.bundle.launch_plan import (
    Allocate,
    ComputeOnDevice,
    ComputeOnHost,
    DataTransfer,
    ExecutionStep,
    InitTransfer,
)
from spyrec.bundle.spyrecode_codes import (
    MALFORMED_PLAN,
    MISALIGNED,
    OUTSIDE_ALLOCATION,
    OVERLAP,
    WRONG_ORDER,
    WRONG_TRANSFER_SIZE,
)
from spyrec.bundle.spyrecode_json import Placed, PlacedPlan
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
