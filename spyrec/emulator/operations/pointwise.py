"""Plans of the operations that work element by element: pointwise, one-input tables, copies, casts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Location, refuse
from spyrec.emulator.engine import Executable, KernelExecutable, Setting, StepRequest
from spyrec.emulator.geometry import Nest
from spyrec.emulator.kernels.nests import NO_TABLE
from spyrec.emulator.kernels.pointwise import CONVERT
from spyrec.emulator.numerics import ElementStorage, constant_value
from spyrec.emulator.operations.bound_calls import BoundCalls
from spyrec.emulator.operations.gather import Gather
from spyrec.emulator.operations.host import HostExecutable
from spyrec.emulator.operations.indexed_function import IndexedFunction
from spyrec.emulator.operations.pointwise_steps import copy_steps, pointwise_steps


class NestExecutable(KernelExecutable):
    """An operation on the elements of nests over the operands at ``positions``, the result last."""

    def __init__(self, setting: Setting, positions: tuple[int, ...]) -> None:
        super().__init__(setting)
        self.positions = positions
        self._nests = setting.nests(positions)

    @property
    def is_separable(self) -> bool:
        """Elements are independent."""
        return True

    def nests_of(self, request: StepRequest) -> list[Nest]:
        """Return the nests over a box of a request."""
        return self._nests if request.setting is self.setting else request.setting.nests(self.positions)


def constants_of(setting: Setting) -> dict[str, float]:
    """Return the operation's constants by name, decoded as the device reads them."""
    return {entry.name: constant_value(entry.data_format, entry.bits) for entry in setting.superdsc.constants}


class PointwiseExecutable(NestExecutable):
    """Decode, operate in float32, round once."""

    def __init__(self, setting: Setting, operation: str) -> None:
        super().__init__(setting, (*setting.inputs, setting.output))
        self.operation = operation
        self.codes = np.array([setting.codec(t).storage.value for t in self.positions], np.int64)

    def steps(self, request: StepRequest) -> BoundCalls:
        """Return one step per nest."""
        return pointwise_steps(self.operation, self.codes, self.positions, self.nests_of(request), request)


class CopyExecutable(NestExecutable):
    """Move patterns, through a table of 65,536 results for a one-input operation on 16-bit formats."""

    def __init__(self, setting: Setting, table: npt.NDArray[np.uint16] = NO_TABLE) -> None:
        super().__init__(setting, (setting.inputs[0], setting.output))
        self.table = table
        self.word_bytes = setting.codec(setting.output).word_bytes

    def steps(self, request: StepRequest) -> BoundCalls:
        """Return one step per nest."""
        return copy_steps(self.word_bytes, self.table, self.positions, self.nests_of(request), request)


def plan_identity(setting: Setting) -> Executable:
    """Return the plan of a copy: patterns where the formats agree, values where both are floats."""
    if not setting.superdsc.compute.indirect_access_indices:
        return plan_conversion(setting)
    return HostExecutable(Gather(setting) if _moves_patterns(setting) else IndexedFunction(setting))


def plan_conversion(setting: Setting) -> Executable:
    """Return the plan of a copy between two formats; errors SPY0724 where no conversion is defined."""
    return CopyExecutable(setting) if _moves_patterns(setting) else PointwiseExecutable(setting, CONVERT)


def _moves_patterns(setting: Setting) -> bool:
    """Whether a copy moves patterns, else it converts; errors SPY0724."""
    source, target = setting.codec(setting.inputs[0]), setting.codec(setting.output)
    if source == target or {source.storage, target.storage} == {ElementStorage.WORD, ElementStorage.SINGLE}:
        return True
    if not (source.is_float and target.is_float):
        formats = [setting.superdsc.operands[t].data_format.name for t in (setting.inputs[0], setting.output)]
        raise refuse(
            "SPY0724",
            f'"{setting.superdsc.op_func_name}" from {formats[0]} to {formats[1]} is not defined',
            Location(setting.file),
        )
    return False
