"""What launching jobs refuses, beside what a launch's tensors are refused for (SPY0950 to SPY0962)."""

from __future__ import annotations

from spyrec.runtime.errors import RuntimeFault


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
