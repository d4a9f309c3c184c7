"""Which way an operation carries states."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spyrec.device_ops import device_operation
from spyrec.device_ops.record import Family
from spyrec.emulator.engine import Setting
from spyrec.emulator.sanitizers.fold_propagation import FoldPropagation
from spyrec.emulator.sanitizers.matmul_propagation import MatmulPropagation
from spyrec.emulator.sanitizers.propagation import (
    ElementPropagation,
    Marks,
    Propagation,
)
from spyrec.emulator.sanitizers.selection_propagation import GatherPropagation, TopPropagation

Integers = npt.NDArray[np.int64]
States = npt.NDArray[np.uint8]


def plan_propagation(setting: Setting, marks: Marks) -> Propagation:
    """Return the plan of one operation."""
    match device_operation(setting.superdsc.op_func_name).family:
        case Family.REDUCTION:
            return FoldPropagation(setting, marks, lanes=1)
        case Family.NORM_STATISTICS:
            return FoldPropagation(setting, marks, lanes=2)
        case Family.MATMUL:
            return MatmulPropagation(setting, marks)
        case Family.TOP:
            return TopPropagation(setting, marks)
        case Family.NORM_SCALE:
            return ElementPropagation(setting, marks, (setting.inputs[0], setting.inputs[0]), second_lane=True)
        case Family.IDENTITY if setting.superdsc.compute.indirect_access_indices:
            return GatherPropagation(setting, marks)
        case _:
            return ElementPropagation(setting, marks, setting.inputs)
