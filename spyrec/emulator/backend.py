"""The emulated device as what streams execute on: memory that an allocator carves, and programs that lie in it."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spyrec.bundle.correction_word import WordKind
from spyrec.bundle.program_image import ProgramImage, code_key
from spyrec.dataclass import dataclass
from spyrec.diagnostics import SpyrecError
from spyrec.emulator.attached_memory import AttachedMemory
from spyrec.emulator.choices import MAX_EXECUTIONS, Engine, Numerics, expansion_of, half_format_of
from spyrec.emulator.device import EmulatedDevice
from spyrec.emulator.emulated_program import EmulatedProgram
from spyrec.emulator.operand_check import EmulatedOperandCheck
from spyrec.emulator.program_store import DecodedImage, ProgramStore, StartedEntry
from spyrec.hardware.dtypes import DeviceFormat
from spyrec.hardware.target import DEFAULT_PROFILE, SEGMENT_BYTES, TargetProfile
from spyrec.runtime.device import ArgumentTable, LaunchStats, TableEntry
from spyrec.runtime.errors import ForeignMemory, NoEntry, OutsideAllocation
from spyrec.runtime.findings import NO_SANITIZERS, Sanitizer
from spyrec.runtime.host_copies.device_form import DeviceForm
from spyrec.runtime.memory.addresses import AddressRange, RegionTable, VirtualAddress
from spyrec.runtime.memory.allocator import MemoryOptions
from spyrec.runtime.observer import ArgumentCopy, RunObserver
from spyrec.runtime.spyre_device import DeviceOptions, SpyreDevice
from spyrec.runtime.streams.control_block import (
    ComputeRequest,
    ControlBlock,
    DeviceToDevice,
    DeviceToHost,
    HostToDevice,
    StickStrides,
)
from spyrec.runtime.streams.plain_backend import simulated_ns

Bytes = npt.NDArray[np.uint8]
Ranges = tuple[AddressRange, ...]
Strides = tuple[tuple[int, tuple[int, ...]], ...]
"""Stick strides of a launch by argument index, where they are not those that the program was compiled for."""

_MOST_PLANS = 128
"""Programs whose plans are kept, by code; those used longest ago go first."""

_MOST_LAUNCHES = 1024
"""Patched images whose operands are kept, by code and words; those used longest ago go first."""

_MOST_DECLARED = 16
"""Declarations of one bound launch that are kept, one for each correction slot that a job can have."""

_MOST_STATS = 256
"""Computations whose counters are kept until somebody takes them."""


class Extent(NamedTuple):
    """Where an argument lies: its name, the first and behind the last device byte, and whether it is written."""

    name: str
    first: int
    past: int
    is_stored: bool


@dataclass(frozen=True, slots=True)
class BoundLaunch:
    """What a patched image launches: the device address of each argument, of the pool, and the values.

    ``extents``: of the arguments that the program reads or writes.
    """

    program: EmulatedProgram
    extents: tuple[Extent, ...]
    addresses: tuple[int, ...]
    pool: int | None
    values: Mapping[str, int]
    declared: list[tuple[Ranges, Ranges]] = field(default_factory=list[tuple[Ranges, Ranges]], compare=False)
    """What blocks declared, as reads and writes, that was found to hold all of this; the latest go last."""


@dataclass(frozen=True, slots=True)
class ObservedMemory:
    """Implements :class:`spyrec.runtime.observer.LaunchedMemory` for one launch."""

    launch: BoundLaunch
    memory: AttachedMemory

    def argument(self, index: int) -> Bytes:
        """Return the device bytes of an argument."""
        entry = self.launch.program.table.entries[index]
        return self.memory.view(self.launch.addresses[index], entry.reach_bytes)

    def pool(self, size_bytes: int) -> Bytes:
        """Return the first bytes of the pool."""
        assert self.launch.pool is not None
        return self.memory.view(self.launch.pool, size_bytes)


@dataclass(frozen=True, slots=True)
class EmulatorOptions:
    """How an emulated device is made.

    ``engine`` and ``sanitizers``: as :class:`EmulatedDevice` has them; ``weight_cache_bytes``: most that decoded matmul
    operands may take, by default the device's own limit.
    """

    cores: int = 32
    numerics: Numerics = Numerics.DL16
    profile: TargetProfile = DEFAULT_PROFILE
    max_executions: int = MAX_EXECUTIONS
    engine: Engine = Engine.FAST
    sanitizers: frozenset[Sanitizer] = NO_SANITIZERS
    weight_cache_bytes: int | None = None


def emulated_device(
    options: EmulatorOptions | None = None, host: DeviceOptions | None = None, *, index: int = 0
) -> SpyreDevice:
    """Return a device of the runtime whose programs are emulated, on memory cut as its allocator cuts it."""
    host = host or DeviceOptions()
    return SpyreDevice(EmulatorBackend(options or EmulatorOptions(), host.memory), host, index=index)


def emulator_of(device: SpyreDevice) -> EmulatorBackend:
    """Return what executes the programs of a device that was made by :func:`emulated_device`."""
    assert isinstance(device.backend, EmulatorBackend)
    return device.backend


class EmulatorBackend:
    """Implements :class:`spyrec.runtime.device.Backend` with an emulated device.

    Programs come from device memory alone: a computation decodes the image that it is started in, lets its correction
    program patch it there, and takes every address from it.  Data segments hold two emulated bytes for each byte under
    ``f32``, the program segment one.  ``memory``: that of the allocator.  ``observer``: looks at every execution while
    it is set.
    """

    def __init__(self, options: EmulatorOptions, memory: MemoryOptions) -> None:
        self._data = AttachedMemory(expansion_of(options.numerics))
        self._programs = ProgramStore()
        self.device = EmulatedDevice(
            options.cores,
            options.numerics,
            max_executions=options.max_executions,
            profile=options.profile,
            sanitizers=options.sanitizers,
            memory=self._data,
            engine=options.engine,
        )
        if options.weight_cache_bytes is not None:
            self.device.weights.limit_bytes = options.weight_cache_bytes
        self.observer: RunObserver | None = None
        regions = RegionTable.of(memory.mode, memory.region_bytes)
        self._regions = regions
        self._bases = {item: regions.device_address(VirtualAddress(item, 0)) for item in regions.region_ids}
        self._program_region = regions.region_ids[regions.program_index]
        self._plans: OrderedDict[tuple[bytes, Strides], EmulatedProgram] = OrderedDict()
        self._bound: OrderedDict[tuple[bytes, tuple[int, ...]], BoundLaunch] = OrderedDict()
        self._stats: OrderedDict[int, tuple[ControlBlock, LaunchStats]] = OrderedDict()
        self._durations: dict[tuple[bytes, tuple[tuple[str, int], ...]], int] = {}
        self._turn = threading.RLock()
        """Held while a program is planned or executed: hosts have programs checked beside the compute engine."""

    @property
    def backed_bytes(self) -> int:
        """Device bytes that were touched."""
        return self._data.backed_bytes + self._programs.memory.backed_bytes

    @property
    def kept_counts(self) -> tuple[int, int]:
        """How many programs' plans, and how many patched images, are kept."""
        return len(self._plans), len(self._bound)

    def close(self) -> None:
        """Give up plans, scratchpads and decoded operands: what refers to a closed device may live on for a while."""
        with self._turn:
            self._plans.clear()
            self._bound.clear()
            self._stats.clear()
            self._durations.clear()
            self._programs = ProgramStore()
            self.device.close()
            self.observer = None

    def attach(self, block: AddressRange) -> None:
        """A block of the allocator begins its life; it costs nothing until it is touched."""
        self._memory_of(block).attach(self._address(block.address), block.size_bytes)

    def detach(self, block: AddressRange) -> None:
        """A block is free again."""
        self._memory_of(block).detach(self._address(block.address))

    def view(self, wanted: AddressRange) -> Bytes:
        """Return bytes of one live block, writable; errors SPY0905 outside."""
        try:
            return self._memory_of(wanted).host_view(self._address(wanted.address), wanted.size_bytes)
        except SpyrecError as error:
            raise OutsideAllocation(error.diagnostics[0].message) from error

    def lend(self, wanted: AddressRange, *, is_written: bool) -> Bytes:
        """Return bytes of one live block for one copy; errors SPY0905 outside."""
        try:
            memory = self._memory_of(wanted)
            return memory.lend(self._address(wanted.address), wanted.size_bytes, is_written=is_written)
        except SpyrecError as error:
            raise OutsideAllocation(error.diagnostics[0].message) from error

    def write(self, wanted: AddressRange, data: Bytes) -> None:
        """Write bytes of one live block; errors SPY0905 outside."""
        try:
            self._memory_of(wanted).host_write(self._address(wanted.address), wanted.size_bytes, data)
        except SpyrecError as error:
            raise OutsideAllocation(error.diagnostics[0].message) from error

    def stored_as(self, device_format: DeviceFormat) -> DeviceFormat:
        """Return the format that memory really holds where a tensor has this one."""
        is_half = device_format is DeviceFormat.SEN169_FP16
        return half_format_of(self.device.numerics) if is_half else device_format

    def operand_check(self, image: bytes, name: str) -> EmulatedOperandCheck:
        """Plan a program before it is loaded, and return what its launches ask of their operands.

        ``name``: whose it is, for messages.  Errors: SPY0620 to SPY0635 and SPY0652 to SPY0654 the image; what the
        device finds in the program: SPY0704, SPY0705, SPY0707, SPY0711 to SPY0724.
        """
        read, key = self._programs.read(image, name), self._plan_key(code_key(image), name)

        def planned(strides: StickStrides) -> EmulatedProgram:
            by_dim = {index: dict(enumerate(steps)) for index, steps in strides.items()}
            return self._planned(key, read, _strides_set(read, by_dim), name)

        planned({})
        return EmulatedOperandCheck(planned, self._bases)

    def compute(self, block: ControlBlock) -> None:
        """Execute the program that a block starts.

        Errors: SPY0966 to SPY0968 program, correction and operands do not fit together; SPY0652 to SPY0654 no intact
        program is there; SPY07xx what the device finds in it.
        """
        request = block.action
        assert isinstance(request, ComputeRequest)
        with self._turn:
            bound, observer = self._bind(request, block.origin.plan), self.observer
            self._check_operands(block, bound)
            if observer is not None:
                observer.launching(ObservedMemory(bound, self._data))
            stats = self.device.launch(bound.program, bound.addresses, bound.pool, observer, values=bound.values)
        kept = self._stats
        kept[id(block)] = block, stats
        while len(kept) > _MOST_STATS:
            kept.popitem(last=False)

    def copied(self, block: ControlBlock) -> None:
        """Tell the sanitizers of a copy that was executed."""
        monitor, action = self.device.monitor, block.action
        if monitor is None:
            return
        with self._turn:
            match action:
                case HostToDevice() if self._memory_of(action.destination) is self._data:
                    if action.conversion is None:
                        monitor.defined(self._address(action.destination.address), action.destination.size_bytes)
                    else:
                        monitor.copied_in(self._argument_copy(action, action.destination, block.origin.tensor))
                case DeviceToHost() if action.conversion is not None:
                    monitor.copied_out(self._argument_copy(action, action.source, block.origin.tensor))
                case DeviceToDevice():
                    source, destination = self._address(action.source), self._address(action.destination)
                    monitor.copied_on_device(source, destination, action.copy)
                case _:
                    return

    def _argument_copy(self, action: HostToDevice | DeviceToHost, place: AddressRange, tensor: str) -> ArgumentCopy:
        conversion, is_to_device = action.conversion, isinstance(action, HostToDevice)
        assert conversion is not None
        is_cleared = isinstance(action, HostToDevice) and action.is_cleared
        table = None if isinstance(conversion, DeviceForm) or is_cleared else conversion
        nests = None if table is None else table.nests
        if isinstance(conversion, DeviceForm):
            nests = conversion.nests(is_to_device=is_to_device)
        return ArgumentCopy(
            tensor,
            self._address(place.address),
            place.size_bytes,
            conversion.device_size,
            nests,
            is_to_device=is_to_device,
            host_shape=None if table is None else table.host_shape,
        )

    def stats_of(self, block: ControlBlock) -> LaunchStats | None:
        """Return the counters of a computation that was executed; ``None`` where they are not kept any more."""
        found = self._stats.get(id(block))
        return None if found is None or found[0] is not block else found[1]

    def duration_ns(self, block: ControlBlock) -> int:
        """Return the simulated time of a block on its engine.

        Of a computation it is the sum of its operations' timelines, without what depends on data; where its program
        is not in memory yet, a time from its footprint.
        """
        request = block.action
        if not isinstance(request, ComputeRequest):
            return simulated_ns(block)
        try:
            decoded = self._started(request).decoded
            key = decoded.key, tuple(sorted(request.values.items())) if request.values else ()
            found = self._durations.get(key)
            if found is None:
                name = block.origin.plan
                program = self._planned(self._plan_key(decoded.key, name), decoded.image, (), name)
                time_us = self.device.static_time_us(program, request.values)
                found = self._durations[key] = simulated_ns(block) if time_us is None else int(1000 * time_us)
        except SpyrecError:  # it is refused when it is executed
            return simulated_ns(block)
        return found

    def _started(self, request: ComputeRequest) -> StartedEntry:
        """Return the entry that a computation starts; errors as of :meth:`ProgramStore.started`."""
        (region_id, first), size_bytes = request.binary
        if region_id != self._program_region:
            raise NoEntry(f"a computation starts in region {region_id}, which holds no programs")
        bases, (entry_region, entry) = self._bases, request.entry
        address = bases[region_id] + first
        if entry_region not in bases:
            self._address(request.entry)  # which refuses it
        return self._programs.started(address, size_bytes, bases[entry_region] + entry - address)

    def _plan_key(self, code: bytes, name: str) -> bytes:
        """Return what tells programs apart: their code, and, where findings name its files, whose it is."""
        return code if self.device.monitor is None else code + name.encode()

    def _bind(self, request: ComputeRequest, name: str) -> BoundLaunch:
        started = self._started(request)
        decoded, words = started.decoded, started.corrected()
        if request.segment_table and any(item is not None for item in request.segment_table):
            return self._launch_of(decoded, words, request, name)
        key = self._plan_key(decoded.key, name), words
        bound = self._bound.get(key)
        if bound is None:
            bound = self._bound[key] = self._launch_of(decoded, words, request, name)
            while len(self._bound) > _MOST_LAUNCHES:
                self._bound.popitem(last=False)
        else:
            self._bound.move_to_end(key)
        return bound

    def _launch_of(
        self, decoded: DecodedImage, words: tuple[int, ...], request: ComputeRequest, name: str
    ) -> BoundLaunch:
        image = decoded.image
        patched = dict(zip(image.words, words, strict=True))
        addresses: dict[int, int] = {}
        values: dict[str, int] = {}
        strides: dict[int, dict[int, int]] = {}
        pool: int | None = None
        for word, number in patched.items():
            match word.kind:
                case WordKind.ARGUMENT:
                    addresses[word.index] = number
                case WordKind.POOL:
                    pool = number
                case WordKind.VALUE:
                    values[word.name] = number
                case WordKind.STICK_STRIDE:
                    strides.setdefault(word.index, {})[word.dim] = number
        for index, argument in enumerate(image.arguments):
            if index not in addresses:
                addresses[index] = self._baked(request, argument.baked_base)
        if pool is None and image.pool_bytes:
            pool = self._baked(request, 0)
        ordered = tuple(addresses[index] for index in range(len(image.arguments)))
        program = self._planned(self._plan_key(decoded.key, name), image, _strides_set(image, strides), name)
        extents = tuple(
            Extent(item.name, address, address + item.reach_bytes, item.arg_index in program.stored)
            for item, address in zip(program.table.entries, ordered, strict=True)
            if item.arg_index in program.touched
        )
        return BoundLaunch(program, extents, ordered, pool, values)

    def _baked(self, request: ComputeRequest, baked_address: int) -> int:
        segment, offset_bytes = divmod(baked_address, SEGMENT_BYTES)
        base = request.segment_table[segment] if segment < len(request.segment_table) else None
        if base is None:
            raise ForeignMemory(f"the program addresses segment {segment}, and this launch has nothing there")
        return self._bases[base.region_id] + base.offset + offset_bytes

    def _planned(self, code: bytes, image: ProgramImage, strides: Strides, name: str) -> EmulatedProgram:
        key = code, strides
        with self._turn:
            found = self._plans.get(key)
            if found is None:
                if self.device.monitor is not None:
                    directory = name.partition("/")[2]
                    self.device.monitor.loading(f"{directory}/" if directory else "")
                found = self._plans[key] = self.device.load(image.program, image.superdscs, table_of(image, strides))
                while len(self._plans) > _MOST_PLANS:
                    _, old = self._plans.popitem(last=False)
                    self._forget(old)
            self._plans.move_to_end(key)
            return found

    def _forget(self, program: EmulatedProgram) -> None:
        """Give up a plan, with what is bound to it and the memory of its own."""
        for key in [key for key, item in self._bound.items() if item.program is program]:
            del self._bound[key]
        for address in program.own_memory.values():
            self._data.detach(address)

    def _check_operands(self, block: ControlBlock, bound: BoundLaunch) -> None:
        """Refuse a program that addresses what the block does not declare; errors SPY0967."""
        declared = block.reads, block.writes
        if declared in bound.declared:  # the same objects as a rule, one pair for each correction slot
            return
        reads, writes = self._intervals(block.reads), self._intervals(block.writes)
        for name, first, past, is_stored in bound.extents:
            if _holds(writes, first, past):
                continue
            is_readable = _holds(reads, first, past)
            if is_stored:
                raise _foreign(f'argument "{name}"', first, past, "writes", is_readable)
            if not is_readable:
                raise _foreign(f'argument "{name}"', first, past, "addresses", False)
        pool_bytes = bound.program.table.pool_bytes
        if pool_bytes and bound.pool is not None and not _holds(writes, bound.pool, bound.pool + pool_bytes):
            raise _foreign("the pool", bound.pool, bound.pool + pool_bytes, "writes", False)
        bound.declared[:] = [*bound.declared[1 - _MOST_DECLARED :], declared]

    def _intervals(self, ranges: tuple[AddressRange, ...]) -> list[tuple[int, int]]:
        bases = self._bases
        found: list[tuple[int, int]] = []
        for place, size_bytes in ranges:
            first = bases[place.region_id] + place.offset
            found.append((first, first + size_bytes))
        return found

    def _memory_of(self, block: AddressRange) -> AttachedMemory:
        return self._programs.memory if block.address.region_id == self._program_region else self._data

    def _address(self, address: VirtualAddress) -> int:
        base = self._bases.get(address.region_id)
        if base is None:
            raise OutsideAllocation(f"region {address.region_id} is none of this device's")
        return base + address.offset


def _holds(intervals: list[tuple[int, int]], first: int, past: int) -> bool:
    for low, high in intervals:  # noqa: SIM110 -- a generator costs more than these few comparisons
        if low <= first and past <= high:
            return True
    return False


def _foreign(what: str, first: int, past: int, deed: str, is_readable: bool) -> ForeignMemory:
    place = f"device bytes [{first:#x}, {past:#x})"
    if is_readable:
        return ForeignMemory(f"the program {deed} {place} ({what}), which this launch only reads")
    fact = f"the program {deed} {place} ({what}), which is no operand of this launch"
    return ForeignMemory(f"{fact}: its correction is missing, late, or another launch's")


def _strides_set(image: ProgramImage, found: Mapping[int, Mapping[int, int]]) -> Strides:
    """Return the stick strides of the arguments whose sticks lie elsewhere than the program was compiled for."""
    strides: list[tuple[int, tuple[int, ...]]] = []
    for index, by_dim in sorted(found.items()):
        size = image.arguments[index].device_size
        compiled = tuple(math.prod(size[dim + 1 : -1]) for dim in range(len(size) - 1))
        actual = tuple(by_dim.get(dim, stride) for dim, stride in enumerate(compiled))
        if actual != compiled:
            strides.append((index, actual))
    return tuple(strides)


def table_of(image: ProgramImage, strides: Strides = ()) -> ArgumentTable:
    """Return what the device checks a program's operands against (rule V6)."""
    by_index = dict(strides)
    entries = tuple(
        TableEntry(
            item.name,
            index,
            item.device_size,
            item.device_dtype,
            item.baked_base,
            item.size_bytes,
            by_index.get(index),
        )
        for index, item in enumerate(image.arguments)
    )
    return ArgumentTable(entries, image.pool_bytes, image.value_maxima)
