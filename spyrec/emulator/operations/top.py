"""The operations that sort, on the host: topkvalue, topkindex."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyrec.device_ops import TOP_PLACES
from spyrec.diagnostics import Location, refuse
from spyrec.emulator.engine import NO_DATA_TRAFFIC, DataTraffic, Integers, Mover, Patterns, Setting
from spyrec.emulator.operations.pieces import distinct_pieces, pieces_of

_TEMPORARY_BYTES = 32 << 20
"""Most bytes of temporaries at one time, one row at least."""

_SORTED_BYTES = 48  # of one element that is sorted: its pattern, value, key, place and the sort's own copy


class Top:
    """topkvalue, topkindex: descending along the folded dim, ties lowest index first; implements ``host.HostWork``."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        extents = setting.extents
        of_input = [dim for dim in extents if setting.extends(setting.inputs[0], dim)]
        of_output = [dim for dim in extents if setting.extends(setting.output, dim)]
        only_input = [dim for dim in of_input if dim not in of_output]
        only_output = [dim for dim in of_output if dim not in of_input]
        superdsc = setting.superdsc
        is_divided = any(superdsc.work_slices[dim] != 1 for dim in only_input)
        if len(only_input) != 1 or len(only_output) > 1 or is_divided:
            message = f"folds {only_input} into {only_output}; one undivided dim into at most one is executed"
            raise refuse("SPY0724", f'"{superdsc.op_func_name}" {message}', Location(setting.file))
        self.length, self.taken = extents[only_input[0]], extents[only_output[0]] if only_output else 1
        total = superdsc.iteration[only_output[0]] if only_output else 1
        if total > self.length:
            message = f'takes {total} of {self.length} elements along "{only_input[0]}"'
            raise refuse("SPY0724", f'"{superdsc.op_func_name}" {message}', Location(setting.file))
        slices = [of_core[only_output[0]] if only_output else 0 for of_core in superdsc.core_work_slices]
        self._ranks = np.array(slices, np.int64)[:, None] * self.taken + np.arange(self.taken)
        shared = [dim for dim in extents if dim not in {*only_input, *only_output}]
        rows = max(1, _TEMPORARY_BYTES // (_SORTED_BYTES * self.length))
        self._cores_at_once = min(setting.cores, rows)
        self._pieces = pieces_of(setting, shared, rows // self._cores_at_once)
        self._movers = {id(piece.setting): _movers_of(piece.setting, shared, only_input, only_output)
                        for piece in distinct_pieces(self._pieces)}  # fmt: skip

    def run(self, starts: Integers) -> DataTraffic:
        """Execute once."""
        setting = self.setting
        for first in range(0, setting.cores, self._cores_at_once):
            for piece in self._pieces:
                at = starts[:, first : first + self._cores_at_once] + piece.moved
                source, target = self._movers[id(piece.setting)]
                ranks = self._ranks[first : first + self._cores_at_once]
                target.store(at[setting.output], self._taken(source.load(at[setting.inputs[0]]), ranks))
        return NO_DATA_TRAFFIC

    def _taken(self, patterns: Patterns, ranks: Integers) -> Patterns:
        """Return the patterns [core, result] of values of each row by their ``ranks[core]``, or of their places."""
        setting = self.setting
        rows = setting.codec(setting.inputs[0]).decode(patterns).reshape(len(patterns), -1, self.length)
        order = np.argsort(-rows, axis=-1, kind="stable")[..., : int(ranks.max()) + 1]
        order = np.take_along_axis(order, ranks[:, None, :], axis=-1)
        is_index = setting.superdsc.op_func_name == TOP_PLACES
        result = order.astype(np.float64) if is_index else np.take_along_axis(rows, order, axis=-1)
        return setting.codec(setting.output).encode(result.reshape(len(patterns), -1))


def _movers_of(
    setting: Setting, shared: Sequence[str], folded: Sequence[str], taken: Sequence[str]
) -> tuple[Mover, Mover]:
    """Return what loads the input and stores the output, rows over the shared dims."""
    extents = setting.extents
    source = {dim: extents[dim] for dim in (*shared, *folded)}
    target = {dim: extents[dim] for dim in (*shared, *taken)}
    return Mover(setting, setting.inputs[0], source), Mover(setting, setting.output, target)
