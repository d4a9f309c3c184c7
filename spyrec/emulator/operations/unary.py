"""Plans of the one-input operations: tables of 65,536 results on 16-bit formats, float64 on wider ones."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from spyrec.device_ops import device_operation
from spyrec.emulator.engine import NO_DATA_TRAFFIC, DataTraffic, Executable, Integers, Setting, StepRequest
from spyrec.emulator.geometry import DenseGeometry, Nest, build_nests, outer_sum
from spyrec.emulator.kernels.copies import run_copy
from spyrec.emulator.kernels.nests import NO_TABLE
from spyrec.emulator.numerics import Codec
from spyrec.emulator.operations.bound_calls import BoundCalls
from spyrec.emulator.operations.hidden import hidden_parts, hides_alike, mask_value
from spyrec.emulator.operations.host import HostExecutable
from spyrec.emulator.operations.pointwise import CopyExecutable, constants_of
from spyrec.emulator.operations.pointwise_steps import copy_steps

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

    def run(self, starts: Integers) -> DataTraffic:
        """Execute once."""
        used = starts[list(self.positions)]
        for nest in self.nests:
            part = partial(self._run_tasks, nest, _task_starts(nest, used))
            self.setting.threads.run(starts.shape[1] * nest.outer_points, starts.shape[1] * nest.points, part)
        return NO_DATA_TRAFFIC

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


class MaskedFunction(CopyExecutable):
    """A function through a table, of elements that a mask hides that of its number.

    These lie in the last sticks of a ragged dim: all are computed first, and then theirs are stored over again.
    """

    def __init__(self, setting: Setting, table: npt.NDArray[np.uint16], hidden: npt.NDArray[np.uint16]) -> None:
        super().__init__(setting, table)
        self._hidden = hidden

    @property
    def is_separable(self) -> bool:
        """Whether what is hidden is alike on every core and in every block."""
        return hides_alike(self.setting)

    def steps(self, request: StepRequest) -> BoundCalls:
        """Return one step per nest of the box, and one per nest of what is hidden."""
        steps = list(super().steps(request).steps)
        for part in hidden_parts(request.setting):
            boxes = np.flatnonzero(np.isin(request.cores, part.cores))
            for piece in part.hidden if len(boxes) else ():
                starts = np.ascontiguousarray(request.starts[:, boxes] + piece.moved)
                own = replace(request, setting=piece.setting, starts=starts, cores=request.cores[boxes])
                steps += copy_steps(2, self._hidden, self.positions, piece.setting.nests(self.positions), own).steps
        return BoundCalls(steps)


class WideMaskedFunction:
    """The same on wide formats; implements ``host.HostWork``."""

    def __init__(self, setting: Setting) -> None:
        self._all = WideFunction(setting)
        self._parts = [
            (part.cores, piece.moved[setting.output], piece.setting.scaled(
                build_nests(piece.setting.extents, [DenseGeometry({}), setting.geometries[setting.output]])))
            for part in hidden_parts(setting) for piece in part.hidden
        ]  # fmt: skip
        self._value = _result_of_mask(setting)

    def run(self, starts: Integers) -> DataTraffic:
        """Execute once."""
        self._all.run(starts)
        setting, place = self._all.setting, self._value.ctypes.data
        for cores, moved, nests in self._parts:
            targets = starts[setting.output, cores] + moved
            for nest in nests:
                at = np.stack([np.full(len(cores), place), targets + nest.offsets[1]])
                run_copy(self._value.itemsize, NO_TABLE, at, nest.loops, 0, len(cores) * nest.outer_points)
        return NO_DATA_TRAFFIC


def _result_of_mask(setting: Setting) -> npt.NDArray[np.unsignedinteger]:
    """Return the pattern that is stored for a hidden element."""
    function = device_operation(setting.superdsc.op_func_name).unary
    assert function is not None
    with np.errstate(all="ignore"):
        value = function(np.array([mask_value(setting)], np.float64), constants_of(setting))
    return setting.codec(setting.output).encode(value)


def plan_unary(setting: Setting) -> Executable:
    """Return the plan of a one-input operation."""
    source, target = setting.codec(setting.inputs[0]), setting.codec(setting.output)
    is_masked = bool(setting.superdsc.coordinate_masking)
    if source.word_bytes != 2 or target.word_bytes != 2:
        return HostExecutable(WideMaskedFunction(setting) if is_masked else WideFunction(setting))
    constants = tuple(sorted(constants_of(setting).items()))
    table = unary_table(setting.superdsc.op_func_name, constants, source, target)
    if not is_masked:
        return CopyExecutable(setting, table)
    return MaskedFunction(setting, table, _same_for_all(int(_result_of_mask(setting)[0])))


@lru_cache(maxsize=16)
def _same_for_all(pattern: int) -> npt.NDArray[np.uint16]:
    return np.full(1 << 16, pattern, np.uint16)


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
