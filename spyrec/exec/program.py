"""A compiled bundle on a context's device, launched on buffers: what hosts outside of Python run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spyrec.exec.buffer import Buffer
from spyrec.exec.errors import InvalidCall, translated
from spyrec.runtime.jobs.execution_plan import ExecutionPlan
from spyrec.runtime.jobs.job_argument import JobArgument
from spyrec.runtime.jobs.launch_kernel import launch_arguments
from spyrec.runtime.memory.allocator import DeviceBytes
from spyrec.runtime.streams.control_block import Origin

if TYPE_CHECKING:
    from spyrec.exec.context import Context

Bytes = npt.NDArray[np.uint8]


class Program:
    """The programs and constants of a bundle, uploaded.  Its arguments: the graph's inputs, then its outputs."""

    def __init__(self, context: Context, directory: Path) -> None:
        self.context = context
        self._plan = ExecutionPlan(directory)
        stream = context.runtime_stream(0)
        with translated():
            self._plan.refuse_host_steps()
            self._plan.load(stream)
            stream.synchronize()
        context.own(self)

    @property
    def arguments(self) -> tuple[JobArgument, ...]:
        """The arguments of a launch, in order."""
        signature = self._plan.signature
        assert signature is not None
        return signature

    def argument(self, number: int) -> JobArgument:
        """Return an argument; errors SPY0931 there is none with this number."""
        if not 0 <= number < len(self.arguments):
            raise InvalidCall(f"argument {number} of {len(self.arguments)}")
        return self.arguments[number]

    def launch(self, buffers: list[Buffer], stream_id: int) -> None:
        """Enqueue the program on buffers, one for each argument; errors SPY0931, SPY0935."""
        if len(buffers) != len(self.arguments):
            raise InvalidCall(f"{len(buffers)} buffers for {len(self.arguments)} arguments")
        stream = self.context.runtime_stream(stream_id)
        given = [
            argument.placed(self._place(argument, buffer).allocation)._replace(
                storage_offset_bytes=self._offset(buffer)
            )
            for argument, buffer in zip(self.arguments, buffers, strict=True)
        ]
        with translated():
            launch_arguments(stream, self._plan, given)

    def write(self, number: int, buffer: Buffer, source: Bytes, stream_id: int) -> None:
        """Copy a row-major array of the argument's dtype to its form on the device; errors SPY0931."""
        argument = self.argument(number)
        array = self._array(argument, source)
        stream, tensors = self.context.runtime_stream(stream_id), self._plan.tensors
        assert tensors is not None
        origin = Origin(self.context.device.next_launch_id(), "write")
        place = self._place(argument, buffer)
        with translated():
            stream.flex.enqueue([tensors.copy_in(argument.name, array, place, origin)])

    def read(self, number: int, buffer: Buffer, stream_id: int) -> Bytes:
        """Return the bytes of the row-major array that an argument holds, after waiting for the stream."""
        argument = self.argument(number)
        stream, tensors = self.context.runtime_stream(stream_id), self._plan.tensors
        assert tensors is not None
        origin = Origin(self.context.device.next_launch_id(), "read")
        with translated():
            stream.flex.refuse_waiting("read")
            array, block = tensors.copy_out(argument.name, self._place(argument, buffer), origin)
            stream.flex.enqueue([block])
            stream.synchronize()
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def destroy(self) -> None:
        """Give the program's memory back when what is enqueued has retired."""
        self.context.forget(self)
        self._plan.unload(self.context.device)

    def _place(self, argument: JobArgument, buffer: Buffer) -> DeviceBytes:
        self.context.require_own(buffer)
        place = buffer.place()
        if place.range.size_bytes < argument.size_bytes:
            fact = f'buffer "{buffer.name}" of {place.range.size_bytes} bytes'
            raise InvalidCall(f'{fact} for argument "{argument.name}" of {argument.size_bytes}')
        return DeviceBytes(place.allocation, place.range.part(0, argument.size_bytes))

    def _offset(self, buffer: Buffer) -> int:
        place = buffer.place()
        start = self.context.device.allocator.range_of(place.allocation).address.offset
        return place.range.address.offset - start

    def _array(self, argument: JobArgument, source: Bytes) -> npt.NDArray[np.generic]:
        assert argument.shape is not None
        assert argument.dtype is not None
        carrier = np.dtype(argument.dtype.carrier)
        needed = int(np.prod(argument.shape, dtype=np.int64)) * carrier.itemsize
        if source.size != needed:
            raise InvalidCall(f'{source.size} bytes for argument "{argument.name}", whose array has {needed}')
        return source.view(carrier).reshape(argument.shape).copy()  # the caller may change it
