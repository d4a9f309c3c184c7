"""``--bisect``: every SuperDSC held against the float64 reference of its operation, in order, up to the guilty one.

A result is compared with what the operation makes of its inputs *as they stand in device memory*, so rounding and
errors from upstream are excluded, and the bound is that of one operation.  Computing nodes are compared with the
reference of the device graph's node, whose operands are what the values' own buffers held when they were written;
kernels that only move elements with the elements themselves.  Whatever else lies in the pool must not change.

In a loop every iteration is compared where it stored: the reference is that of the whole tensor, and addresses say
which elements of it a tile is.  What lies in LX is read back core by core, where it was stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from spyrec.bundle.bundle_content import BundleContent
from spyrec.compare.device_values import Bytes, buffer_values, pattern_values, read, written
from spyrec.compare.divergence import BisectReport, Divergence, Guilt
from spyrec.compare.guilt import guilty_call, guilty_copy, worst_element
from spyrec.compare.host_copies import HostCopies, base_name
from spyrec.compare.live_values import LiveValues
from spyrec.compare.one_op import Expectation, Mask, OpVerdict, computed, judge, unchanged
from spyrec.compare.placement import Integers, Placement
from spyrec.compare.pool_watch import PoolWatch
from spyrec.compare.provenance import CompiledCall, program_of, provenance_of
from spyrec.compare.storage import Array, Floats
from spyrec.ir.kernel import Buffer, BufferRole
from spyrec.runtime.observer import Execution, RunEnded
from spyrec.runtime.session import Session


@dataclass(frozen=True, slots=True)
class _Step:
    """One execution of a call: what its output held before, and what a kernel that moves elements should make of it.

    ``is_part``: it is not the last execution of its call, and stores a part of the output.
    """

    number: int
    execution: Execution
    before: Floats | None
    moved: Expectation | None

    @property
    def is_part(self) -> bool:
        return not self.execution.is_last

    @property
    def output(self) -> int:
        """The position of the output."""
        return self.execution.superdsc.compute.outputs[0]

    @property
    def is_in_lx(self) -> bool:
        """Whether the output lies in LX."""
        return self.execution.base_of(self.output) is None

    def stored_elements(self, placement: Placement, call: CompiledCall) -> Integers:
        """Return which elements of the output each core stores, ``[core, ...]``, -1 for none."""
        if self.is_in_lx:
            return placement.computed(call, self.execution)
        return placement.elements(call, self.execution, self.output, self.execution.dims_of(self.output))


class Bisection:
    """Watches a session's run; :meth:`report` says what was found.

    ``inputs`` are the host arrays of the run, ``numerics`` is ``dl16``, ``ieee`` or ``f32``.  Errors: as
    :func:`spyrec.compare.provenance.provenance_of`, SPY0802 a constant of the graph is not in the bundle.
    """

    def __init__(self, bundle: BundleContent, session: Session, inputs: Mapping[str, Array], numerics: str) -> None:
        self._bundle = bundle
        self._session = session
        self._inputs = inputs
        self._numerics = numerics
        self._known = provenance_of(bundle)
        self._numbers = {(call.program, call.file): number for number, call in enumerate(self._known.calls)}
        self._values = LiveValues(self._known.device, [call.node for call in self._known.calls])
        self._pool = PoolWatch(self._known)
        self._placement = Placement(self._known)
        self._slices: dict[str, Floats] = {}
        self._program = 0
        self._step: _Step | None = None
        self._expected: dict[int, tuple[int, Expectation]] = {}
        self._divergence: Divergence | None = None
        self._compared: set[int] = set()
        self._worst: tuple[float, str | None] = (0.0, None)
        self._copies = HostCopies(bundle, self._known, session, numerics)

    @property
    def is_ended(self) -> bool:
        """Whether something is guilty."""
        return self._divergence is not None

    def launching(self, number: int) -> None:
        """Take note of the program that runs next; before the first one, compare the host's copies."""
        self._program = number
        if number == 0:
            found = self._copies.first_wrong(self._inputs)
            self._divergence = None if found is None else guilty_copy(*found)

    def before(self, execution: Execution) -> None:
        """Take what the next execution reads."""
        if self.is_ended:
            raise RunEnded
        directory = self._bundle.manifest.plan[self._program].program
        file = execution.file if directory == "." else f"{directory}/{execution.file}"
        number = self._numbers[self._program, file]
        call = self._known.calls[number]
        name = call.kernel.output.buffer
        in_lx = execution.base_of(execution.superdsc.compute.outputs[0]) is None
        if call.node is None:
            (use,) = call.kernel.inputs
            old = self._slice_of(name) if in_lx else self._read(call, name)
            moved = unchanged(written(old, call.kernel.output.access, read(self._held(call, use.buffer), use.access)))
            self._step = _Step(number, execution, old, moved)
            return
        for source in self._values.sources_of(call.node):
            if source not in self._values:
                self._values.add(source, self._copies.values(source))
        is_part = not (in_lx or execution.is_last)
        self._step = _Step(number, execution, self._read(call, name) if is_part else None, None)

    def after(self, execution: Execution) -> None:
        """Compare what the execution stored; raises :class:`RunEnded` where something is guilty."""
        step = self._step
        assert step is not None
        assert step.execution is execution
        call = self._known.calls[step.number]
        elements = step.stored_elements(self._placement, call)
        self._divergence = self._overwritten(step) or self._wrong_result(step, elements)
        self._compared.add(step.number)
        if step.is_in_lx:
            self._placement.keep(call, execution, elements)
            self._pool.forget(step.number)
        else:
            self._pool.keep(step.number, self._memory(call, call.kernel.output.buffer))
        if self.is_ended:
            raise RunEnded

    def report(self) -> BisectReport:
        """Return the verdict on what was executed."""
        total = len(self._known.calls)
        if self._divergence is None and self._bundle.has_altered_constants:
            self._divergence = self._altered_constants()
        return BisectReport(len(self._compared), total, *self._worst, self._divergence)

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

    # --- comparing --------------------------------------------------------------------------------------------------

    def _wrong_result(self, step: _Step, elements: Integers) -> Divergence | None:
        call = self._known.calls[step.number]
        buffer = self._buffer(call.kernel.output.buffer)
        got = self._stored(step, elements)
        known = self._expectation(step)
        if call.node is not None:
            shape = known.want.shape
            self._values.add(call.node.output, got.reshape(shape))
            if not step.is_part:
                self._values.finish(call.node)
            known = Expectation(known.want.reshape(got.shape), known.bound.reshape(got.shape))
        count = got.size
        if step.is_part or step.is_in_lx:
            is_stored = np.zeros(got.size, np.bool_)
            is_stored[elements[elements >= 0]] = True
            count = int(np.count_nonzero(is_stored))
            known = _only_at(is_stored.reshape(got.shape), known, got if step.before is None else step.before)
        verdict = replace(judge(got, known, merges_nan=self._copies.merges_nan), element_count=count)
        if not verdict.ok:
            core = self._core_of(step, elements, int(np.ravel_multi_index(verdict.index, got.shape)) if got.ndim else 0)
            return self._divergence_of(step, Guilt.RESULT, buffer, verdict, core)
        if verdict.ratio >= self._worst[0]:
            self._worst = (verdict.ratio, call.file)
        return None

    def _expectation(self, step: _Step) -> Expectation:
        """Return what the whole output should hold; iterations of a loop share it while what they read is the same."""
        if step.moved is not None:
            return step.moved
        node = self._known.calls[step.number].node
        assert node is not None
        version = self._values.version_of(node)
        known = self._expected.pop(step.number, None)
        if known is None or known[0] != version:
            known = version, computed(self._known.device, node, self._values.operands(node), self._numerics)
        if step.is_part:
            self._expected[step.number] = known
        return known[1]

    def _stored(self, step: _Step, elements: Integers) -> Floats:
        """Return the whole output after an execution; of one in LX, what its executions have stored so far."""
        call = self._known.calls[step.number]
        name = call.kernel.output.buffer
        if not step.is_in_lx:
            return self._read(call, name)
        patterns = step.execution.patterns(step.output, step.execution.dims_of(step.output))
        values = self._slice_of(name).reshape(-1)
        is_known = elements >= 0
        values[elements[is_known]] = pattern_values(self._buffer(name), patterns[is_known], self._numerics)
        self._slices[name] = values.reshape(self._buffer(name).type.shape)
        return self._slices[name].copy()

    def _slice_of(self, name: str) -> Floats:
        """Return what is known of a buffer in LX, NaN where nothing has been stored."""
        held = self._slices.get(name)
        buffer = self._buffer(name)
        unknown = np.nan if buffer.type.dtype.is_float else 0.0
        return np.full(buffer.type.shape, unknown) if held is None else held.copy()

    def _held(self, call: CompiledCall, name: str) -> Floats:
        """Return what a buffer holds that a call reads."""
        return self._slice_of(name) if name in self._slices else self._read(call, name)

    def _overwritten(self, step: _Step) -> Divergence | None:
        call = self._known.calls[step.number]
        for name, old in self._pool.watched(step.number):
            memory = self._memory(call, name)
            if not np.array_equal(old, memory):
                buffer = self._buffer(name)
                was, now = (buffer_values(buffer, item, self._numerics) for item in (old, memory))
                verdict = judge(now, unchanged(was), merges_nan=False)
                return self._divergence_of(
                    step, Guilt.OVERWRITTEN, buffer, verdict, self._core_over(step, buffer, verdict)
                )
        return self._overwritten_slice(step) if step.is_in_lx else None

    def _overwritten_slice(self, step: _Step) -> Divergence | None:
        """Return the guilt of storing over a tensor in LX that is still to be read."""
        execution = step.execution
        dims = execution.dims_of(step.output)
        addresses = execution.addresses(step.output, dims)
        for name in self._pool.waiting(step.number, self._placement.slices):
            lost = self._placement.slices[name].at(execution.superdsc.core_ids, addresses)
            if not (lost >= 0).any():
                continue
            place = tuple(int(part) for part in np.argwhere(lost >= 0)[0])
            buffer = self._buffer(name)
            index = tuple(int(part) for part in np.unravel_index(int(lost[place]), buffer.type.shape))
            patterns = execution.patterns(step.output, dims)[place].reshape(1)
            got = float(pattern_values(buffer, patterns, self._numerics)[0])
            want = float(self._slices[name][index])
            verdict = OpVerdict(
                index, got, want, 0.0, np.inf, int(np.count_nonzero(lost >= 0)), buffer.type.element_count
            )
            core = execution.superdsc.core_ids[place[0]]
            return self._divergence_of(step, Guilt.OVERWRITTEN, buffer, verdict, core)
        return None

    def _core_of(self, step: _Step, elements: Integers, element: int) -> int | None:
        """Return the core that stored an element of the output in this execution, ``None`` where none did."""
        places = np.argwhere(elements == element)
        return step.execution.superdsc.core_ids[int(places[0][0])] if len(places) else None

    def _core_over(self, step: _Step, buffer: Buffer, verdict: OpVerdict) -> int | None:
        """Return the core that stored over an element of another buffer."""
        base = step.execution.base_of(step.output)
        if base is None:
            return None
        addresses = step.execution.addresses(step.output, step.execution.dims_of(step.output))
        call = self._known.calls[step.number]
        lost = self._placement.in_memory(call, buffer.name, base, addresses)
        return self._core_of(step, lost, int(np.ravel_multi_index(verdict.index, buffer.type.shape)))

    def _divergence_of(
        self, step: _Step, guilt: Guilt, buffer: Buffer, verdict: OpVerdict, core: int | None
    ) -> Divergence:
        call = self._known.calls[step.number]
        return replace(
            guilty_call(self._known, call, guilt, buffer, self._slices),
            element=worst_element(buffer, verdict, core),
            iteration=step.execution.iteration,
            failed_elements=verdict.failed_elements,
            element_count=verdict.element_count,
        )

    def _altered_constants(self) -> Divergence | None:
        """Return the first operation that reads a constant whose numbers are in the altered file."""
        for call in self._known.calls:
            for use in call.kernel.inputs:
                buffer = self._buffer(use.buffer)
                if buffer.role is BufferRole.CONSTANT and base_name(buffer) in self._known.stored:
                    return guilty_call(self._known, call, Guilt.ALTERED, buffer)
        return None


def _only_at(is_stored: Mask, known: Expectation, before: Floats) -> Expectation:
    """Return an expectation where one iteration stored; elsewhere what was there before has to stay."""
    return Expectation(np.where(is_stored, known.want, before), np.where(is_stored, known.bound, 0.0))
