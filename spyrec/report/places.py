"""What lies where, when: scratchpads, pools and segments of device memory, in the numbers of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spyrec.compare.bundle_reading import BundleReading, OperationReading, ProgramReading
from spyrec.compare.lx_map import LxMap, LxRegion, lx_maps_of
from spyrec.diagnostics import SpyrecError
from spyrec.hardware.target import SEGMENT_BYTES
from spyrec.report import model
from spyrec.report.model import LxCores, Memory, Pool, PoolRegion, Segment
from spyrec.report.numbers import ranges_of
from spyrec.report.operations import Operations


def memory_of(reading: BundleReading, found: Operations, notes: list[str]) -> Memory:
    """Return what lies where; ``notes`` takes why scratchpads cannot be told."""
    programs = reading.programs[: len(found.programs)]
    return Memory(
        tuple(_scratchpads(reading, programs, found, notes)), tuple(_pools(programs, found)), tuple(_segments(found))
    )


def _scratchpads(
    reading: BundleReading, programs: Sequence[ProgramReading], found: Operations, notes: list[str]
) -> Iterator[LxCores]:
    texts = [program.text for program in programs]
    if any(text is None for text in texts):
        return
    figures = None if reading.manifest is None else reading.manifest.figures
    try:
        maps = lx_maps_of([text for text in texts if text is not None], figures)
    except SpyrecError as error:
        notes.append(f"what lies in the scratchpads cannot be told: {error.diagnostics[0].message}")
        return
    numbers = {program.directory: number for number, program in enumerate(programs)}
    for item in maps:
        number = numbers[item.program]
        yield _cores(item, number, _calls(programs[number]), found)


def _calls(program: ProgramReading) -> list[tuple[int, int]]:
    """Return by ``sdsc_execute`` of a program its first and last operation: of one with a schedule there are more."""
    found: list[tuple[int, int]] = []
    group: int | None = None
    for item in program.operations:
        own = None if item.call.place is None else item.call.place.group
        if own is not None and own == group:
            found[-1] = found[-1][0], item.number
        else:
            found.append((item.number, item.number))
        group = own
    return found


def _cores(item: LxMap, program: int, calls: Sequence[tuple[int, int]], found: Operations) -> LxCores:
    regions = tuple(_region(region, calls, found, program) for region in item.regions)
    return LxCores(program, ranges_of(sorted(item.cores)), item.usable_bytes, item.peak_bytes, regions)


def _region(region: LxRegion, calls: Sequence[tuple[int, int]], found: Operations, program: int) -> model.LxRegion:
    begin, end = calls[region.begin], calls[region.end]
    readers = tuple(
        number
        for place in region.uses
        for number in range(calls[place][0], calls[place][1] + 1)
        if _touches(found.ops[number].inputs, region)
    )
    return model.LxRegion(
        tensor=_tensor(region, begin, found, program),
        first=region.first,
        past=region.past,
        begin=begin[0],
        end=end[1],
        writer=begin[0],
        readers=readers,
        memory_bytes=0,
    )


def _touches(operands: Sequence[model.OpOperand], region: LxRegion) -> bool:
    return any(
        item.memory == "lx" and item.place is not None and region.first <= item.place < region.past for item in operands
    )


def _tensor(region: LxRegion, begin: tuple[int, int], found: Operations, program: int) -> int:
    """Return the tensor that the region's first operation writes there, else the one of that name."""
    for number in range(begin[0], begin[1] + 1):
        for item in found.ops[number].outputs:
            if item.memory == "lx" and item.place is not None and region.first <= item.place < region.past:
                return item.tensor
    named = (
        number
        for number, item in enumerate(found.tensors)
        if item.memory == "lx" and item.program == program and item.name == region.name
    )
    written = (item.tensor for number in range(begin[0], begin[1] + 1) for item in found.ops[number].outputs)
    return next(named, next(written, 0))


def _pools(programs: Sequence[ProgramReading], found: Operations) -> Iterator[Pool]:
    for number, program in enumerate(programs):
        places: dict[int, tuple[int, int]] = {}
        for reading in program.operations:
            for tensor, first, size_bytes in _pooled(reading, found):
                known = places.get(tensor, (first, size_bytes))
                places[tensor] = min(known[0], first), max(known[1], size_bytes)
        regions = tuple(_pool_region(tensor, place, found) for tensor, place in sorted(places.items()))
        size = max((item.past for item in regions), default=0)
        if regions or program.pool_bytes:
            yield Pool(number, program.pool_bytes or size, regions)


def _pooled(reading: OperationReading, found: Operations) -> Iterator[tuple[int, int, int]]:
    """Yield the tensors of a pool that an operation uses: where it begins, and the bytes of the whole."""
    op = found.ops[reading.number]
    shown = iter(op.inputs), iter(op.outputs)
    for operand in reading.operands:
        number = next(shown[operand.is_written]).tensor
        if operand.memory == "pool" and operand.places and operand.places[0].parameter is None:
            first = min(place.offset for place in operand.places)
            yield number, first, found.tensors[number].size or operand.geometry.buffer_bytes


def _pool_region(tensor: int, place: tuple[int, int], found: Operations) -> PoolRegion:
    uses = (*found.tensors[tensor].writers, *found.tensors[tensor].readers)
    return PoolRegion(tensor, place[0], place[0] + place[1], *_alive(min(uses), max(uses), found))


def _alive(first: int, last: int, found: Operations) -> tuple[int, int]:
    """Return from when to when something is needed: what a loop uses that it did not make is there all along."""
    for loop in reversed(found.loops):
        if loop.first <= last < loop.past and not loop.first <= first:
            last = loop.past - 1
        if loop.first <= first < loop.past and not last < loop.past:
            first = loop.first
    return first, last


def _segments(found: Operations) -> Iterator[Segment]:
    placed = [(item.address, number) for number, item in enumerate(found.tensors) if item.address is not None]
    for address, number in sorted(placed):
        yield Segment(address // SEGMENT_BYTES, number, address, address + found.tensors[number].size)
