"""What the program execution pipeline refuses, one exception per kind of mistake, each with its code.

A fault that a call raises has enqueued nothing.  One that an operation meets while it runs is kept by its stream, which
reports it, as ``ExecutionFailed`` (beside the control blocks), at its next query, synchronisation or launch.  Last come
the faults of tiled launches and of jobs.
"""

from __future__ import annotations

from typing import ClassVar

from spyrec.diagnostics import Diagnostic, Location, SpyrecError


class RuntimeFault(SpyrecError):
    """A refusal of the runtime: ``code`` of the class, one message, notes, and what to do about it."""

    code: ClassVar[str]

    def __init__(
        self, message: str, *, notes: tuple[str, ...] = (), hint: str | None = None, location: Location | None = None
    ) -> None:
        super().__init__([Diagnostic(self.code, message, location, notes, hint)])

    @property
    def message(self) -> str:
        """The sentence that says what is wrong, without code and notes."""
        return self.diagnostics[0].message

    @property
    def notes(self) -> tuple[str, ...]:
        """The facts that go with the message."""
        return self.diagnostics[0].notes


class OutOfDeviceMemory(RuntimeFault):
    """No region has a free block of the size asked for."""

    code = "SPY0901"


class StaleHandle(RuntimeFault):
    """An allocation is used after it was freed: its handle's generation is over."""

    code = "SPY0902"


class DoubleFree(RuntimeFault):
    """An allocation is freed a second time."""

    code = "SPY0903"


class UnknownRegion(RuntimeFault):
    """A virtual address names a region that this device does not have, or lies outside of it."""

    code = "SPY0904"


class OutsideAllocation(RuntimeFault):
    """Bytes are asked for that do not lie in one live allocation."""

    code = "SPY0905"


class InvalidSize(RuntimeFault):
    """A size is negative, or a shape and its layout do not fit."""

    code = "SPY0906"


class InvalidArgument(RuntimeFault):
    """A call is given an argument of another kind than it takes, or one out of its range."""

    code = "SPY0939"


class InvalidMemory(RuntimeFault):
    """A device memory is described that no device has: its regions, or its mode."""

    code = "SPY0940"


class StreamPoisoned(RuntimeFault):
    """Work is given to a stream whose error was not cleared."""

    code = "SPY0920"


class SynchronizeTimeout(RuntimeFault):
    """The time given to a synchronisation is over; the work goes on."""

    code = "SPY0922"


class NotPermittedInHostFunction(RuntimeFault):
    """A host function calls what may wait or enqueue on the runtime that runs it."""

    code = "SPY0923"


class EventNotReady(RuntimeFault):
    """The time between events is asked for before both have been reached."""

    code = "SPY0924"


class TimingDisabled(RuntimeFault):
    """The time of an event is asked for that was made without timing."""

    code = "SPY0925"


class OverlappingCopy(RuntimeFault):
    """Source and destination of a copy on the device share bytes."""

    code = "SPY0926"


class ScheduleUnknown(RuntimeFault):
    """A schedule is named that there is not."""

    code = "SPY0927"


class DeviceClosed(RuntimeFault):
    """A device is used after it was closed."""

    code = "SPY0928"


class DeviceFault(RuntimeFault):
    """The device itself is broken (an error that no check caught); it answers nothing until it is reset."""

    code = "SPY0929"


class NotPermittedInCapture(RuntimeFault):
    """A stream that records what it is given is asked to wait, to query, or to record twice."""

    code = "SPY0930"


class ArgumentCountError(RuntimeFault):
    """A launch has more or fewer tensors than the plan takes."""

    code = "SPY0950"


class DtypeMismatch(RuntimeFault):
    """A tensor's dtype is not the one the plan was compiled for, or an array's not the tensor's."""

    code = "SPY0951"


class LayoutMismatch(RuntimeFault):
    """A tensor's device layout is not the one asked for."""

    code = "SPY0952"


class ShapeMismatch(RuntimeFault):
    """A tensor's shape is not the one asked for."""

    code = "SPY0953"


class DeviceMismatch(RuntimeFault):
    """An event, tensor or stream belongs to another device."""

    code = "SPY0954"


class NotATensor(RuntimeFault):
    """A launch is given something else where it takes a tensor of a device."""

    code = "SPY0970"


class HostArrayNotWritable(RuntimeFault):
    """A copy to the host is given an array that it cannot write: read-only, or not contiguous."""

    code = "SPY0971"


class RaceFound(RuntimeFault):
    """Two operations touch the same bytes, one of them writes, and nothing orders them (``--sanitize sync``)."""

    code = "SPY0980"


class UninitialisedRead(RuntimeFault):
    """An operation reads bytes that nothing has written since they were allocated (``--sanitize init``)."""

    code = "SPY0981"


class UnrecordedWait(RuntimeFault):
    """A stream waits for an event that was never recorded: that orders nothing (``--sanitize sync``)."""

    code = "SPY0982"


class ProfileActive(RuntimeFault):
    """A device is profiled twice at the same time."""

    code = "SPY0990"


class FreedInUse(RuntimeFault):
    """Memory is given back while host work that touches it without holding it is to come (``--sanitize sync``)."""

    code = "SPY0991"


class InstructionUnknown(RuntimeFault):
    """An instruction is removed from a program that it is not in."""

    code = "SPY0992"


class TilingNotAllowed(RuntimeFault):
    """The tensors are larger than compiled for, and the launch does not allow tiles."""

    code = "SPY0955"


class TileAmbiguous(RuntimeFault):
    """The shapes do not tell which loops are meant, and no contract names them."""

    code = "SPY0956"


class TileInconsistent(RuntimeFault):
    """Two arguments give one loop different extents."""

    code = "SPY0957"


class OutputOverwritten(RuntimeFault):
    """Iterations of the launch would write the same bytes."""

    code = "SPY0958"


class TileInsideStick(RuntimeFault):
    """A tile would begin inside a stick."""

    code = "SPY0959"


class TileNotExpressible(RuntimeFault):
    """No mode of a tiled launch reaches the tiles of an argument."""

    code = "SPY0960"


class TooManyTiles(RuntimeFault):
    """A launch would have more iterations than its limit."""

    code = "SPY0961"


class RemainderNotPossible(RuntimeFault):
    """A dim is no whole number of tiles, and no policy for what is left over applies."""

    code = "SPY0962"


class JobNotLoaded(RuntimeFault):
    """A job is launched on a device that its program was not loaded on."""

    code = "SPY0964"


class MalformedPlan(RuntimeFault):
    """The steps of a job do not make a launch: one uses what no earlier step of the same job makes."""

    code = "SPY0965"


class CorrectionMissing(RuntimeFault):
    """A program is started whose correction tensor is not there: its copy is missing, late, or was consumed before."""

    code = "SPY0966"


class ForeignMemory(RuntimeFault):
    """A program addresses memory that is no operand of its launch, or writes what it may only read."""

    code = "SPY0967"


class NoEntry(RuntimeFault):
    """A computation begins where the program has no entry, or outside of program memory."""

    code = "SPY0968"


class OperandAmongPrograms(RuntimeFault):
    """A tensor of a launch lies in the memory of programs, where no program can reach tensors."""

    code = "SPY0938"


class SegmentConflict(RuntimeFault):
    """Tensors that a program with baked addresses has in one segment do not lie there as it was compiled for."""

    code = "SPY0969"


class ProgramMissing(RuntimeFault):
    """A job's tile contract names a program that the job does not have."""

    code = "SPY0973"
