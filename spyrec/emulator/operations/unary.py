"""Plans of the one-input operations: tables of 65,536 results on 16-bit formats, float64 on wider ones."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from spyrec.device_ops import device_operation
from spyrec.emulator.engine import NO_DATA_READS, DataReads, Executable, Integers, Setting
from spyrec.emulator.geometry import Nest, outer_sum
from spyrec.emulator.kernels.copies import run_copy
from spyrec.emulator.kernels.nests import NO_TABLE
from spyrec.emulator.numerics import Codec
from spyrec.emulator.operations.host import HostExecutable
from spyrec.emulator.operations.pointwise import CopyExecutable, constants_of

_DENSE_ELEMENTS = 1 << 15  # elements decoded to float64 at a time


class WideFunction:
    """A one-input operation in float64, a piece that fits the cache at a time; implements ``host.HostWork``."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.positions = setting.inputs[0], setting.output
        self.nests = setting.nests(self.positions)
        self.constants = constants_of(setting)
        function = device_operation(setting.superdsc.op_func_name).unary
        assert function is not None
        self.function = function
        self.codecs = [setting.codec(position) for position in self.positions]

    def run(self, starts: Integers) -> DataReads:
        """Execute once."""
        used = starts[list(self.positions)]
        for nest in self.nests:
            part = partial(self._run_tasks, nest, _task_starts(nest, used))
            self.setting.threads.run(starts.shape[1] * nest.outer_points, starts.shape[1] * nest.points, part)
        return NO_DATA_READS

    def _run_tasks(self, nest: Nest, at: Integers, first: int, past: int) -> None:
        step = max(1, _DENSE_ELEMENTS // int(nest.loops[0, 0] * nest.loops[1, 0]))
        for place in range(first, past, step):
            self._run_piece(nest.loops[:2], at[:, place : min(place + step, past)])

    def _run_piece(self, loops: Integers, at: Integers) -> None:
        """Compute the points of ``loops`` from each pair of starts."""
        source, target = self.codecs
        inner, outer = (int(extent) for extent in loops[:, 0])
        patterns = np.empty((at.shape[1], outer, inner), source.carrier)
        run_copy(source.word_bytes, NO_TABLE, *_to_dense(loops[:, :2], at[0], patterns), 0, at.shape[1])
        with np.errstate(all="ignore"):
            values = self.function(source.decode(patterns.reshape(-1)), self.constants)
        results = np.ascontiguousarray(target.encode(values)).reshape(patterns.shape)
        both, nest = _to_dense(loops[:, [0, 2]], at[1], results)
        run_copy(target.word_bytes, NO_TABLE, both[::-1].copy(), nest[:, [0, 2, 1]], 0, at.shape[1])


def _task_starts(nest: Nest, starts: Integers) -> Integers:
    """Return the addresses [operand, task] at which tasks begin."""
    rows: list[Integers] = []
    for operand, firsts in enumerate(starts + nest.offsets[:, None]):
        # The innermost of the outer loops varies fastest, as kernels number their tasks.
        outer = nest.loops[2:][::-1].tolist()
        loops = [np.arange(loop[0], dtype=np.int64) * loop[operand + 1] for loop in outer]
        rows.append(outer_sum([firsts, *loops]))
    return np.stack(rows)


def _to_dense(loops: Integers, starts: Integers, dense: npt.NDArray[np.unsignedinteger]) -> tuple[Integers, Integers]:
    """Return starts and nest of a copy between ``starts``, one per task, and the dense ``[task, outer, inner]``."""
    steps = np.array([[dense.strides[2]], [dense.strides[1]]], np.int64)
    places = dense.ctypes.data + np.arange(len(starts), dtype=np.int64) * dense.strides[0]
    return np.stack([starts, places]), np.concatenate([loops, steps], axis=1)


def plan_unary(setting: Setting) -> Executable:
    """Return the plan of a one-input operation."""
    source, target = setting.codec(setting.inputs[0]), setting.codec(setting.output)
    if source.word_bytes != 2 or target.word_bytes != 2:
        return HostExecutable(WideFunction(setting))
    constants = tuple(sorted(constants_of(setting).items()))
    return CopyExecutable(setting, unary_table(setting.superdsc.op_func_name, constants, source, target))


@lru_cache(maxsize=256)
def unary_table(
    operation: str, constants: tuple[tuple[str, float], ...], source: Codec, target: Codec
) -> npt.NDArray[np.uint16]:
    """Return the result pattern of each of the 65,536 input patterns, computed in float64 and rounded once."""
    function = device_operation(operation).unary
    assert function is not None
    values = source.decode(np.arange(1 << 16, dtype=np.uint16))
    with np.errstate(all="ignore"):
        result = function(values, dict(constants))
    return target.encode(result).astype(np.uint16)
