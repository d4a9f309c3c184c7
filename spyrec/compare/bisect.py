"""``--bisect``: every SuperDSC held against the float64 reference of its operation, in order, up to the guilty one.

A result is compared with what the operation makes of its inputs *as they stand in device memory*, so rounding and
errors from upstream are excluded, and the bound is that of one operation.  In a loop that is done for every tile, by
itself: what the graph, compiled again, says of the elements that it reads and writes.  What lies in LX is read where
the compilation has put it, core by core.  Nothing else that still has a reader may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from spyrec.bundle.bundle_content import BundleContent
from spyrec.compare.device_memory import BufferMemory, Overwritten, Reach, Stored
from spyrec.compare.divergence import BisectReport, Divergence, Element, Guilt
from spyrec.compare.given import Comparison
from spyrec.compare.guilt import guilty_call, guilty_copy, worst_element
from spyrec.compare.host_copies import HostCopies, base_name
from spyrec.compare.one_kernel import expected, over_extents, places_in_round
from spyrec.compare.one_op import Expectation, OpVerdict, judge
from spyrec.compare.provenance import CompiledCall, provenance_of
from spyrec.compare.storage import Array, Floats
from spyrec.dataclass import dataclass
from spyrec.ir.kernel import BufferRole, KernelBuffer
from spyrec.runtime.bundle_run import BundleRun
from spyrec.runtime.inputs.binding import chosen_extents
from spyrec.runtime.observer import Execution, LaunchedMemory, RunEnded


@dataclass(frozen=True, slots=True)
class _Step:
    """One execution of a call: which round it is, what it should store, and what it is about to store over."""

    call: CompiledCall
    execution: Execution
    iteration: tuple[int, ...]
    want: Expectation
    reach: Reach | None

    def core(self, row: int) -> int | None:
        """Return the core of a row of addresses."""
        return None if row < 0 else self.execution.superdsc.core_ids[row]


class Bisection:
    """Watches the ``run`` of a bundle; :meth:`report` says what was found.

    ``inputs`` are the host arrays of the run, ``numerics`` is ``dl16``, ``ieee`` or ``f32``.  ``comparison``: numbers
    that were given for values of the graph; each is held against them when its last element is stored.  Errors: as
    :func:`spyrec.compare.provenance.provenance_of`, SPY0802 a constant of the graph is not in the bundle.
    """

    def __init__(
        self,
        bundle: BundleContent,
        run: BundleRun,
        inputs: Mapping[str, Array],
        numerics: str,
        comparison: Comparison | None = None,
    ) -> None:
        self._bundle = bundle
        self._inputs = inputs
        self._numerics = numerics
        self._known = provenance_of(bundle)
        self._extents = chosen_extents(inputs, run.inputs, bundle.manifest.symbolic_dims)
        self._calls = {(call.program, call.file): call for call in self._known.calls}
        self._memory = BufferMemory(self._known, numerics)
        self._program = -1
        self._step: _Step | None = None
        self._divergence: Divergence | None = None
        self._compared: set[str] = set()
        self._worst: tuple[float, str | None] = (0.0, None)
        self._copies = HostCopies(bundle, self._known, run, numerics)
        self._comparison = comparison
        self._last_writers = {call.kernel.output.buffer: call.file for call in self._known.calls}
        self._compared_values: list[str] = []

    @property
    def is_ended(self) -> bool:
        """Whether something is guilty."""
        return self._divergence is not None

    def launching(self, memory: LaunchedMemory) -> None:
        """Take note of the program that runs next; before the first one, compare the host's copies."""
        self._program += 1
        self._memory.launching(memory)
        if self._program == 0:
            found = self._copies.first_wrong(self._inputs)
            self._divergence = None if found is None else guilty_copy(*found)

    def before(self, execution: Execution) -> None:
        """Take what the next execution reads."""
        if self.is_ended:
            raise RunEnded
        directory = self._bundle.manifest.plan[self._program].program
        file = execution.file if directory == "." else f"{directory}/{execution.file}"
        call = self._calls[self._program, file]
        iteration = execution.iteration if call.iteration is None else call.iteration
        if any(number >= count for number, count in zip(iteration, self._rounds_of(call), strict=True)):
            self._guilty(self._wrong_rounds(call, iteration))
        want = self._expectation(call, iteration)
        self._step = _Step(call, execution, iteration, want, self._memory.reach(execution, call))

    def after(self, execution: Execution) -> None:
        """Compare what the execution stored; raises :class:`RunEnded` where something is guilty."""
        step = self._step
        assert step is not None
        assert step.execution is execution
        self._compared.add(step.call.file)
        stored = self._memory.stored(step.call, step.iteration, execution)
        overwritten = self._overwritten(step)
        is_own = overwritten is not None and overwritten.tensor == step.call.kernel.output.buffer
        # a tile in a wrong place is wrong itself first
        self._guilty((self._wrong_result(step, stored) if is_own else None) or overwritten)
        self._guilty(self._wrong_result(step, stored))
        if execution.is_last and step.call.iteration is None:
            self._guilty(self._missing_rounds(step))
        if execution.is_last and self._last_writers[step.call.kernel.output.buffer] == step.call.file:
            self._guilty(self._unlike_given(step, stored))

    def report(self, outputs: Mapping[str, Array]) -> BisectReport:
        """Return the verdict on what was executed, and on the ``outputs`` that the host got of a whole run."""
        total = len(self._known.calls)
        if self._divergence is None:
            self._divergence = self._never_executed()
        if self._divergence is None:
            found = self._copies.first_wrong_result(outputs)
            self._divergence = None if found is None else guilty_copy(*found, Guilt.COPY_OUT)
        if self._divergence is None and self._bundle.has_altered_constants:
            self._divergence = self._altered_constants()
        given = None if self._comparison is None else tuple(self._compared_values)
        return BisectReport(len(self._compared), total, *self._worst, self._divergence, given)

    def _guilty(self, found: Divergence | None) -> None:
        if found is not None:
            self._divergence = found
            raise RunEnded

    # --- comparing --------------------------------------------------------------------------------------------------

    def _expectation(self, call: CompiledCall, iteration: tuple[int, ...]) -> Expectation:
        kernel = call.kernel
        buffers = [self._buffer(use.buffer) for use in kernel.uses]
        operands = [self._memory.read(call, position, iteration) for position in range(len(kernel.inputs))]
        return expected(call, buffers, operands, self._numerics)

    def _wrong_result(self, step: _Step, stored: Stored) -> Divergence | None:
        verdict = self._judged(stored.values, step.want)
        if not verdict.ok:
            core = step.core(int(stored.rows[verdict.index]))
            return self._divergence_at(step, verdict, core)
        if verdict.ratio >= self._worst[0]:
            self._worst = (verdict.ratio, step.call.file)
        return None

    def _unlike_given(self, step: _Step, stored: Stored) -> Divergence | None:
        """Return the guilt of a value, now whole, that is not what was given for it."""
        buffer = self._buffer(step.call.kernel.output.buffer)
        tensor = None if self._comparison is None else self._comparison.tensor_of(buffer.name)
        if self._comparison is None or tensor is None or not _holds(buffer, tensor.shape):
            return None
        whole = self._memory.whole(step.call, buffer.name).reshape(buffer.host_type.shape)
        report = self._comparison.of_value(tensor, whole[tuple(map(slice, tensor.shape))])
        self._compared_values.append(tensor.name)
        if report.ok:
            return None
        flat = np.ravel_multi_index(report.worst.index, buffer.host_type.shape)
        index = tuple(int(part) for part in np.unravel_index(flat, buffer.type.shape))
        got, want, allowed = report.worst.got, report.worst.want, self._comparison.allowed(tensor, report.worst.want)
        failed, count = report.failed_elements, report.element_count
        verdict = OpVerdict(index, got, want, allowed, report.bound_ratio, failed, count)
        guilt = guilty_call(self._known, step.call, Guilt.GIVEN, buffer)
        return _with(guilt, step.iteration, verdict, worst_element(buffer, verdict, self._core_of(step, stored, index)))

    def _core_of(self, step: _Step, stored: Stored, index: tuple[int, ...]) -> int | None:
        """Return the core that stored an element of the output, ``None`` for one of an earlier round."""
        kernel = step.call.kernel
        position = len(kernel.inputs)
        places = places_in_round(kernel, position, step.iteration)
        is_there = np.ones(stored.rows.shape, np.bool_)
        for place, number in zip(places, index, strict=True):
            is_there &= np.broadcast_to(over_extents(kernel, position, place) == number, is_there.shape)
        rows = stored.rows[is_there]
        return step.core(int(rows[0])) if rows.size else None

    def _judged(self, got: Floats, want: Expectation) -> OpVerdict:
        known = Expectation(np.broadcast_to(want.want, got.shape), np.broadcast_to(want.bound, got.shape))
        return judge(got, known, merges_nan=self._copies.merges_nan)

    def _overwritten(self, step: _Step) -> Divergence | None:
        found = self._memory.overwritten(step.call, step.iteration, step.execution, step.reach)
        return None if found is None else self._overwriting(step, found)

    def _overwriting(self, step: _Step, found: Overwritten) -> Divergence:
        count = found.buffer.type.element_count
        verdict = OpVerdict(found.index, found.now, found.was, 0.0, np.inf, found.count, count)
        guilt = guilty_call(self._known, step.call, Guilt.OVERWRITTEN, found.buffer)
        element = worst_element(found.buffer, verdict, step.core(found.row))
        return _with(guilt, step.iteration, verdict, element)

    def _divergence_at(self, step: _Step, verdict: OpVerdict, core: int | None) -> Divergence:
        """Return the guilt of a wrong result; the element is the buffer's, which holds one tile or all of them."""
        buffer = self._buffer(step.call.kernel.output.buffer)
        guilt = guilty_call(self._known, step.call, Guilt.RESULT, buffer)
        position = len(step.call.kernel.inputs)
        places = places_in_round(step.call.kernel, position, step.iteration)
        index = tuple(int(over_extents(step.call.kernel, position, place)[verdict.index]) for place in places)
        return _with(guilt, step.iteration, verdict, worst_element(buffer, replace(verdict, index=index), core))

    # --- loops ------------------------------------------------------------------------------------------------------

    def _missing_rounds(self, step: _Step) -> Divergence | None:
        """Return the guilt of a call that is over before its last tile."""
        rounds = zip(step.iteration, self._rounds_of(step.call), strict=True)
        if all(number == count - 1 for number, count in rounds):
            return None
        return self._wrong_rounds(step.call, step.iteration)

    def _wrong_rounds(self, call: CompiledCall, iteration: tuple[int, ...]) -> Divergence:
        buffer = self._buffer(call.kernel.output.buffer)
        return replace(guilty_call(self._known, call, Guilt.ROUNDS, buffer), iteration=iteration)

    def _never_executed(self) -> Divergence | None:
        """Return the guilt of a call that did not run."""
        missing = (call for call in self._known.calls if call.file not in self._compared)
        return next((self._wrong_rounds(call, ()) for call in missing), None)

    def _rounds_of(self, call: CompiledCall) -> tuple[int, ...]:
        return self._known.rounds_of(call, self._extents)

    # --- words ------------------------------------------------------------------------------------------------------

    def _buffer(self, name: str) -> KernelBuffer:
        return self._known.kernels.buffers[name]

    def _altered_constants(self) -> Divergence | None:
        """Return the first operation that reads a constant whose numbers are in the altered file."""
        for call in self._known.calls:
            for use in call.kernel.inputs:
                buffer = self._buffer(use.buffer)
                if buffer.role is BufferRole.CONSTANT and base_name(buffer) in self._known.stored:
                    return guilty_call(self._known, call, Guilt.ALTERED, buffer)
        return None


def _holds(buffer: KernelBuffer, shape: tuple[int, ...]) -> bool:
    """Whether a buffer has room for all of a value: in a loop it may have room for one tile."""
    held = buffer.host_type.shape
    return len(held) == len(shape) and all(extent <= room for extent, room in zip(shape, held))


def _with(guilt: Divergence, iteration: tuple[int, ...], verdict: OpVerdict, element: Element) -> Divergence:
    return replace(
        guilt,
        element=element,
        iteration=iteration,
        failed_elements=verdict.failed_elements,
        element_count=verdict.element_count,
    )
