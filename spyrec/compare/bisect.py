"""``--bisect``: every SuperDSC held against the float64 reference of its operation, in order, up to the guilty one.

A result is compared with what the operation makes of its inputs *as they stand in device memory*, so rounding and
errors from upstream are excluded, and the bound is that of one operation.  Computing nodes are compared with the
reference of the device graph's node, whose operands are what the values' own buffers held when they were written;
kernels that only move elements with the elements themselves.  Whatever else lies in the pool must not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from spyrec.bundle.bundle_content import CONSTANTS_FILE, BundleContent
from spyrec.compare.check import constant_loader
from spyrec.compare.device_values import Bytes, buffer_values, read, written
from spyrec.compare.divergence import BisectReport, Divergence, Element, Guilt, Operand
from spyrec.compare.live_values import LiveValues
from spyrec.compare.locate import core_storing
from spyrec.compare.one_op import Expectation, OpVerdict, computed, judge, stored, unchanged
from spyrec.compare.pool_watch import PoolWatch
from spyrec.compare.provenance import CompiledCall, program_of, provenance_of
from spyrec.compare.storage import Array, Floats, Storage, storage_of
from spyrec.ir.graph import location_of
from spyrec.ir.kernel import Buffer, BufferRole, Kernel
from spyrec.ir.numbers import decode
from spyrec.runtime.session import Session

_PADDED = ".padded"
"""Stands in the name of a constant's copy with zero rows, after the constant's own."""


class Bisection:
    """Watches a stepped session; :meth:`report` says what was found.

    ``inputs`` are the host arrays of the run, ``numerics`` is ``dl16``, ``ieee`` or ``f32``.  Errors: as
    :func:`spyrec.compare.provenance.provenance_of`, SPY0802 a constant of the graph is not in the bundle.
    """

    def __init__(self, bundle: BundleContent, session: Session, inputs: Mapping[str, Array], numerics: str) -> None:
        self._bundle = bundle
        self._session = session
        self._inputs = inputs
        self._numerics = numerics
        self._known = provenance_of(bundle)
        self._values = LiveValues(self._known.device, [call.node for call in self._known.calls])
        self._pool = PoolWatch(self._known)
        self._moved: Expectation | None = None
        self._divergence: Divergence | None = None
        self._compared = 0
        self._worst: tuple[float, str | None] = (0.0, None)
        buffers = self._known.kernels.buffers.values()
        self._merges_nan = any(storage_of(item.type.dtype, numerics).merges_nan for item in buffers)

    def before(self, number: int) -> None:
        """Take what the next call reads; before the first one, compare the host's copies."""
        if number == 0:
            self._divergence = self._compare_copies()
        call = self._known.calls[number]
        if call.node is None:
            (use,) = call.kernel.inputs
            moved = read(self._read(call, use.buffer), use.access)
            before = self._read(call, call.kernel.output.buffer)
            self._moved = unchanged(written(before, call.kernel.output.access, moved))
            return
        for name in self._values.sources_of(call.node):
            if name not in self._values:
                self._values.add(name, self._argument(name))

    def after(self, number: int) -> bool:
        """Compare what the call wrote; ``False`` where something is guilty."""
        if self._divergence is not None:
            return False
        call = self._known.calls[number]
        self._divergence = self._overwritten(number) or self._wrong_result(number)
        self._compared += 1
        self._pool.keep(number, self._memory(call, call.kernel.output.buffer))
        return self._divergence is None

    def report(self) -> BisectReport:
        """Return the verdict on what was executed."""
        total = len(self._known.calls)
        if self._divergence is None and self._bundle.has_altered_constants:
            self._divergence = self._altered_constants()
        return BisectReport(self._compared, total, *self._worst, self._divergence)

    # --- memory -----------------------------------------------------------------------------------------------------

    def _memory(self, call: CompiledCall, name: str) -> Bytes:
        program = program_of(self._known, call)
        if name in program.arguments:
            return self._session.argument_memory(name)
        pool = self._session.pool_memory(program.pool_bytes)
        width = len(pool) // program.pool_bytes
        first, size = program.pool_offsets[name], self._buffer(name).placed.size_bytes
        return pool[first * width : (first + size) * width]

    def _read(self, call: CompiledCall, name: str) -> Floats:
        return buffer_values(self._buffer(name), self._memory(call, name), self._numerics)

    def _buffer(self, name: str) -> Buffer:
        return self._known.kernels.buffers[name]

    def _argument(self, name: str) -> Floats:
        """Return what the device holds of an input or constant of the device graph; a padded copy serves too."""
        shape = self._known.device.type_of(name).shape
        for buffer in self._known.kernels.buffers.values():
            if _base_name(buffer) == name and buffer.role in (BufferRole.INPUT, BufferRole.CONSTANT):
                values = buffer_values(buffer, self._session.argument_memory(buffer.name), self._numerics)
                is_whole = values.size == np.prod(shape, dtype=np.int64)
                return values.reshape(shape) if is_whole else values[tuple(slice(extent) for extent in shape)]
        raise AssertionError(f'"{name}" is read by an operation and lies in no argument')

    # --- comparing --------------------------------------------------------------------------------------------------

    def _compare_copies(self) -> Divergence | None:
        load = constant_loader(self._bundle, self._known.source, self._known.stored)
        arguments = dict.fromkeys(name for item in self._known.kernels.programs for name in item.arguments)
        for buffer in map(self._buffer, arguments):
            if buffer.role is BufferRole.INPUT:
                numbers = self._inputs[buffer.name]
            elif buffer.role is BufferRole.CONSTANT and _base_name(buffer) in self._known.stored:
                numbers = load(_base_name(buffer))
            elif buffer.constant is not None and buffer.constant.data.array is not None:
                numbers = buffer.constant.data.array
            else:
                continue
            storage = storage_of(buffer.type.dtype, self._numerics)
            got = buffer_values(buffer, self._session.argument_memory(buffer.name), self._numerics)
            if _is_rounded_copy(numbers, buffer, got, storage):
                continue
            verdict = judge(got, stored(_padded(numbers, buffer), storage), merges_nan=self._merges_nan)
            if not verdict.ok:
                return self._copy_in(buffer, verdict)
        return None

    def _wrong_result(self, number: int) -> Divergence | None:
        call = self._known.calls[number]
        got = self._read(call, call.kernel.output.buffer)
        if call.node is None:
            assert self._moved is not None
            known = self._moved
        else:
            known = computed(self._known.device, call.node, self._values.operands(call.node), self._numerics)
            shape = known.want.shape
            self._values.finish(call.node, got.reshape(shape))
            known = Expectation(known.want.reshape(got.shape), known.bound.reshape(got.shape))
        verdict = judge(got, known, merges_nan=self._merges_nan)
        if not verdict.ok:
            return self._divergence_of(call, Guilt.RESULT, self._buffer(call.kernel.output.buffer), verdict)
        if verdict.ratio >= self._worst[0]:
            self._worst = (verdict.ratio, call.file)
        return None

    def _overwritten(self, number: int) -> Divergence | None:
        call = self._known.calls[number]
        for name, old in self._pool.watched(number):
            memory = self._memory(call, name)
            if not np.array_equal(old, memory):
                buffer = self._buffer(name)
                was, now = (buffer_values(buffer, item, self._numerics) for item in (old, memory))
                verdict = judge(now, unchanged(was), merges_nan=False)
                return self._divergence_of(call, Guilt.OVERWRITTEN, buffer, verdict)
        return None

    # --- reporting --------------------------------------------------------------------------------------------------

    def _divergence_of(self, call: CompiledCall, guilt: Guilt, buffer: Buffer, verdict: OpVerdict) -> Divergence:
        kernel = call.kernel
        location = location_of(kernel.origin)
        nodes = {location_of(node.origin).pointer: node.name for node in self._known.source.nodes}
        return Divergence(
            guilt=guilt,
            name=kernel.name,
            file=call.file,
            op=kernel.op_func,
            found_op=call.superdsc.op_func_name,
            node=nodes.get(location.pointer),
            location=location,
            tensor=buffer.name,
            element=self._element(call, buffer, verdict),
            failed_elements=verdict.failed_elements,
            element_count=verdict.element_count,
            inputs=self._operands(call, kernel),
        )

    def _operands(self, call: CompiledCall, kernel: Kernel) -> tuple[Operand, ...]:
        arguments = program_of(self._known, call).arguments
        return tuple(
            Operand(
                use.buffer,
                "argument" if use.buffer in arguments else "pool",
                self._buffer(use.buffer).type.dtype.value,
                self._buffer(use.buffer).host_type.shape,
            )
            for use in kernel.inputs
        )

    def _element(self, call: CompiledCall | None, buffer: Buffer, verdict: OpVerdict) -> Element:
        coordinate = buffer.placed.device_coordinate(verdict.index)
        core = None
        if call is not None:
            program = program_of(self._known, call)
            inside = _byte_offset(buffer, coordinate)
            if buffer.name in program.arguments:
                place, offset = program.arguments.index(buffer.name), inside
            else:
                place, offset = None, program.pool_offsets[buffer.name] + inside
            core = core_storing(self._bundle, call.program, call.file, place, offset)
        return Element(
            index=_host_index(buffer, verdict.index),
            device_coordinate=coordinate,
            core=core,
            got=verdict.got,
            want=verdict.want,
            error=verdict.error,
            bound=verdict.bound,
            bound_ratio=verdict.ratio,
        )

    def _copy_in(self, buffer: Buffer, verdict: OpVerdict) -> Divergence:
        is_constant = buffer.role is BufferRole.CONSTANT
        return Divergence(
            guilt=Guilt.COPY_IN,
            name=buffer.name,
            file=CONSTANTS_FILE if is_constant else None,
            op=None,
            found_op=None,
            node=None,
            location=location_of(buffer.origin),
            tensor=buffer.name,
            element=self._element(None, buffer, verdict),
            failed_elements=verdict.failed_elements,
            element_count=verdict.element_count,
        )

    def _altered_constants(self) -> Divergence | None:
        """Return the first operation that reads a constant whose numbers are in the altered file."""
        for call in self._known.calls:
            for use in call.kernel.inputs:
                buffer = self._buffer(use.buffer)
                if buffer.role is BufferRole.CONSTANT and _base_name(buffer) in self._known.stored:
                    nothing = OpVerdict((), 0.0, 0.0, 0.0, 0.0, 0, int(np.prod(buffer.type.shape)))
                    found = self._divergence_of(call, Guilt.ALTERED, buffer, replace(nothing, index=_first(buffer)))
                    return replace(found, element=None)
        return None


def _base_name(buffer: Buffer) -> str:
    """Return the name of the graph's value that an argument holds: of a padded constant, the constant's."""
    is_padded = buffer.constant is not None and buffer.constant.shape != buffer.type.shape
    return (buffer.name.rpartition(_PADDED)[0] or buffer.name) if is_padded else buffer.name


def _is_rounded_copy(numbers: Array, buffer: Buffer, got: Floats, storage: Storage) -> bool:
    """Whether a buffer holds exactly the rounded numbers: the usual case, told without temporaries of its size."""
    if buffer.constant is not None and buffer.constant.shape != buffer.type.shape:
        return False
    values = numbers if numbers.dtype.kind == "f" else decode(numbers, buffer.type.dtype)
    return np.array_equal(storage.rounded(values).reshape(got.shape), got)


def _padded(numbers: Array, buffer: Buffer) -> Array:
    """Return host numbers in the shape of their buffer, zeros behind those of a padded constant."""
    values = decode(numbers, buffer.type.dtype).astype(np.float64)
    if buffer.constant is None or buffer.constant.shape == buffer.type.shape:
        return values.reshape(buffer.type.shape)
    result = np.zeros(buffer.type.shape)
    result[tuple(slice(extent) for extent in buffer.constant.shape)] = values
    return result


def _byte_offset(buffer: Buffer, coordinate: tuple[int, ...]) -> int:
    device = buffer.placed.device
    elements = int(np.ravel_multi_index(coordinate, device.device_size))
    bits = buffer.device_format.bits
    assert bits is not None
    return elements * bits // 8


def _host_index(buffer: Buffer, index: tuple[int, ...]) -> tuple[int, ...]:
    if buffer.host_shape is None:
        return index
    flat = int(np.ravel_multi_index(index, buffer.type.shape))
    return tuple(int(position) for position in np.unravel_index(flat, buffer.host_shape))


def _first(buffer: Buffer) -> tuple[int, ...]:
    return (0,) * buffer.type.rank
