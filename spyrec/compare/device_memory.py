"""The memory of a bundle under bisect: what buffers hold, and which stores change what is not theirs."""

from __future__ import annotations

import numpy as np

from spyrec.compare.device_values import Bytes, Places, buffer_values, device_numbers, element_values, pattern_values
from spyrec.compare.one_kernel import is_pair, over_extents, places_in_round
from spyrec.compare.placement import ElementTables, Integers, LxPlaces, bytes_of, lx_patterns, lx_places
from spyrec.compare.provenance import CompiledCall, Provenance, program_of
from spyrec.compare.storage import Floats
from spyrec.dataclass import dataclass
from spyrec.hardware.target import STICK_BYTES
from spyrec.ir.kernel import KernelBuffer
from spyrec.passes.lifetimes import lifetimes
from spyrec.runtime.observer import Execution, LaunchedMemory


@dataclass(frozen=True, slots=True)
class Stored:
    """What an execution left at its output's places: the values, and the row of the core that stored each, or -1."""

    values: Floats
    rows: Integers


@dataclass(frozen=True, slots=True)
class Overwritten:
    """An element that a store reached and that is not its own; ``row`` is the core's, -1 where no core names it."""

    buffer: KernelBuffer
    index: tuple[int, ...]
    was: float
    now: float
    row: int
    count: int


@dataclass(frozen=True, slots=True)
class Reach:
    """The sticks of one memory that an execution stores to, with what they held before; ``base`` as for operands."""

    base: int
    sticks: Integers
    before: Bytes


class BufferMemory:
    """Reads and watches buffers where the compilation has put them."""

    def __init__(self, known: Provenance, numerics: str) -> None:
        self._known = known
        self._launched: LaunchedMemory | None = None
        self._numerics = numerics
        self._alive = lifetimes(known.kernels.kernels)
        self._tables = ElementTables(known.kernels.buffers)
        self._lx_values: dict[str, Floats] = {}
        self._lx_places: dict[str, LxPlaces] = {}

    def launching(self, memory: LaunchedMemory) -> None:
        """Take note of the memory of the program that runs next."""
        self._launched = memory

    def is_in_lx(self, call: CompiledCall, name: str) -> bool:
        """Whether the compilation keeps a buffer in LX."""
        return name in program_of(self._known, call).lx_offsets

    def read(self, call: CompiledCall, position: int, iteration: tuple[int, ...]) -> Floats:
        """Return what an operand of a call reads in a round of its loops (or the output holds), over the extents."""
        name = call.kernel.uses[position].buffer
        places = places_in_round(call.kernel, position, iteration)
        if self.is_in_lx(call, name):
            held = self._lx(name)
            values = held[places] if held.ndim else held.reshape((1,) * len(call.kernel.extents))
            return np.broadcast_to(values, over_extents(call.kernel, position, np.zeros((), np.int64)).shape)
        buffer = self._buffer(name)
        numbers = over_extents(call.kernel, position, device_numbers(buffer.placed, places))
        return element_values(buffer, self._memory(call, name), numbers, self._numerics)

    def whole(self, call: CompiledCall, name: str) -> Floats:
        """Return all elements of a buffer that a call uses, in its shape."""
        if self.is_in_lx(call, name):
            return self._lx(name)
        return buffer_values(self._buffer(name), self._memory(call, name), self._numerics)

    def stored(self, call: CompiledCall, iteration: tuple[int, ...], execution: Execution) -> Stored:
        """Return what an execution left where its call should store; what lies in LX is remembered for its readers."""
        kernel, position = call.kernel, len(call.kernel.inputs)
        output = execution.superdsc.compute.outputs[0]
        places = places_in_round(kernel, position, iteration)
        name = kernel.output.buffer
        if self.is_in_lx(call, name):
            return self._stored_in_lx(call, places, execution, output)
        numbers = over_extents(kernel, position, device_numbers(self._buffer(name).placed, places))
        return Stored(self.read(call, position, iteration), self._rows(call, numbers, execution, output))

    def _stored_in_lx(self, call: CompiledCall, places: Places, execution: Execution, output: int) -> Stored:
        name = call.kernel.output.buffer
        buffer = self._buffer(name)
        if execution.base_of(output) is not None:
            missing = np.full(over_extents(call.kernel, len(call.kernel.inputs), np.zeros((), np.int64)).shape, -1)
            return Stored(np.full(missing.shape, np.nan), missing.astype(np.int64))
        target = lx_places(call.kernel, program_of(self._known, call).lx_offsets[name], buffer)
        lanes = 2 if is_pair(call.kernel, len(call.kernel.inputs)) else 1
        patterns, rows = lx_patterns(target, execution, output, lanes)
        values = np.where(rows >= 0, pattern_values(buffer, patterns, self._numerics), np.nan)
        held = self._lx(name)
        if held.ndim:
            held[tuple(np.broadcast_arrays(*places, values)[:-1])] = values
        else:
            held[...] = values.reshape(())
        self._lx_values[name], self._lx_places[name] = held, target
        return Stored(values, rows)

    def _rows(self, call: CompiledCall, numbers: Integers, execution: Execution, output: int) -> Integers:
        """Return the row of a core that stores each device element, -1 where none does."""
        base, first = self._place(call, call.kernel.output.buffer)
        if execution.base_of(output) is None or max(execution.base_of(output) or 0, -1) != base:
            return np.full(numbers.shape, -1, np.int64)
        addresses = execution.addresses(output, execution.dims_of(output))
        rows = np.repeat(np.arange(len(addresses)), addresses[0].size)
        flat = addresses.reshape(-1)
        order = np.argsort(flat, kind="stable")
        wanted = first + numbers * bytes_of(self._buffer(call.kernel.output.buffer))
        near = order[np.minimum(np.searchsorted(flat[order], wanted), flat.size - 1)]
        return np.where(flat[near] == wanted, rows[near], -1)

    # --- stores to what is not theirs -------------------------------------------------------------------------------

    def reach(self, execution: Execution, call: CompiledCall) -> Reach | None:
        """Return what an execution is about to store over in device memory, ``None`` where it stores to LX."""
        output = execution.superdsc.compute.outputs[0]
        base = execution.base_of(output)
        if base is None:
            return None
        addresses = execution.addresses(output, execution.dims_of(output))
        sticks = np.unique(addresses // STICK_BYTES)
        return Reach(base, sticks, self._sticks(call, base)[sticks].copy())

    def overwritten(
        self, call: CompiledCall, iteration: tuple[int, ...], execution: Execution, reach: Reach | None
    ) -> Overwritten | None:
        """Return an element that an execution has changed and that is not of its tile."""
        if reach is None:
            return self._overwritten_in_lx(call, execution)
        after = self._sticks(call, reach.base)[reach.sticks]
        width = after.shape[1] // STICK_BYTES
        changed = (after != reach.before).reshape(len(after), STICK_BYTES, width).any(axis=2)
        if not changed.any():
            return None
        rows, lanes = np.nonzero(changed)
        addresses = reach.sticks[rows] * STICK_BYTES + lanes
        own = call.kernel.output.buffer
        for name in self._neighbours(call, reach.base):
            buffer = self._buffer(name)
            first = self._place(call, name)[1]
            numbers = np.unique((addresses - first) // bytes_of(buffer))
            table = self._tables.of(name)
            numbers = numbers[(numbers >= 0) & (numbers < len(table))]
            numbers = numbers[table[numbers] >= 0]
            if name == own:
                position = len(call.kernel.inputs)
                places = places_in_round(call.kernel, position, iteration)
                numbers = np.setdiff1d(numbers, device_numbers(buffer.placed, places))
            if numbers.size:
                return self._change(call, execution, name, (numbers, reach))
        return None

    def _change(
        self, call: CompiledCall, execution: Execution, name: str, change: tuple[Integers, Reach]
    ) -> Overwritten:
        numbers, reach = change
        buffer = self._buffer(name)
        number = int(numbers[0])
        address = self._place(call, name)[1] + number * bytes_of(buffer)
        held = self._sticks(call, reach.base).copy()
        now = element_values(buffer, self._part(held, call, name), numbers[:1], self._numerics)
        held[reach.sticks] = reach.before
        was = element_values(buffer, self._part(held, call, name), numbers[:1], self._numerics)
        element = int(self._tables.of(name)[number])
        index = tuple(int(part) for part in np.unravel_index(element, buffer.type.shape))
        output = execution.superdsc.compute.outputs[0]
        cores = np.argwhere(execution.addresses(output, execution.dims_of(output)) == address)
        row = int(cores[0][0]) if len(cores) else -1
        return Overwritten(buffer, index, float(was[0]), float(now[0]), row, numbers.size)

    def _part(self, sticks: Bytes, call: CompiledCall, name: str) -> Bytes:
        first, size = self._place(call, name)[1], self._buffer(name).placed.size_bytes
        return sticks[first // STICK_BYTES : (first + size) // STICK_BYTES].reshape(-1)

    def _neighbours(self, call: CompiledCall, base: int) -> list[str]:
        """Return the buffers of one memory that hold something while a call runs, its own output first."""
        program = program_of(self._known, call)
        own = call.kernel.output.buffer
        if base >= 0:
            return [program.arguments[base]]
        last_read = [use.buffer for use in call.kernel.inputs if self._alive[use.buffer].last == call.position]
        alive = (name for name in program.pool_offsets if name != own and name not in last_read)
        waiting = [name for name in alive if self._alive[name].first <= call.position <= self._alive[name].last]
        return [own, *waiting] if own in program.pool_offsets else waiting

    def _overwritten_in_lx(self, call: CompiledCall, execution: Execution) -> Overwritten | None:
        """Return an element of another tile in LX, still to be read, that an execution has stored over."""
        output = execution.superdsc.compute.outputs[0]
        addresses = execution.addresses(output, execution.dims_of(output))
        rows = np.repeat(np.arange(len(addresses)), addresses[0].size)
        read = [use.buffer for use in call.kernel.inputs]
        for name, places in self._lx_places.items():
            life = self._alive[name]
            is_waiting = life.first < call.position < life.last or (call.position == life.last and name not in read)
            if name == call.kernel.output.buffer or not is_waiting:
                continue
            found = places.found(execution.superdsc.core_ids, rows, addresses.reshape(-1))
            if not (found >= 0).any():
                continue
            buffer = self._buffer(name)
            place = int(np.argmax(found >= 0))
            element = int(found[place])
            bits = execution.patterns(output, execution.dims_of(output)).reshape(-1)[place : place + 1]
            now = float(pattern_values(buffer, bits, self._numerics)[0])
            held = self._lx(name)
            index = tuple(int(part) for part in np.unravel_index(element % held.size, held.shape))
            return Overwritten(buffer, index, float(held[index]), now, int(rows[place]), int((found >= 0).sum()))
        return None

    # --- bytes ------------------------------------------------------------------------------------------------------

    def _lx(self, name: str) -> Floats:
        """Return what is known of a buffer in LX, NaN where nothing has been stored."""
        return self._lx_values.setdefault(name, np.full(self._buffer(name).type.shape, np.nan))

    def _buffer(self, name: str) -> KernelBuffer:
        return self._known.kernels.buffers[name]

    def _place(self, call: CompiledCall, name: str) -> tuple[int, int]:
        """Return the argument that a buffer is, -1 for the pool, and its first byte there."""
        program = program_of(self._known, call)
        if name in program.arguments:
            return program.arguments.index(name), 0
        return -1, program.pool_offsets[name]

    def _sticks(self, call: CompiledCall, base: int) -> Bytes:
        """Return the sticks of an argument or of the pool, a row each (twice as wide under ``f32``)."""
        program, launched = program_of(self._known, call), self._launched
        assert launched is not None
        if base >= 0:
            size_bytes = self._buffer(program.arguments[base]).placed.size_bytes
            return launched.argument(base).reshape(size_bytes // STICK_BYTES, -1)
        return launched.pool(program.pool_bytes).reshape(program.pool_bytes // STICK_BYTES, -1)

    def _memory(self, call: CompiledCall, name: str) -> Bytes:
        base, first = self._place(call, name)
        sticks = self._sticks(call, base)
        last = first + self._buffer(name).placed.size_bytes
        return sticks[first // STICK_BYTES : last // STICK_BYTES].reshape(-1)
