"""What a fold of one setting goes over: offset tables, masked elements, the cores that combine their results."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spyrec.dataclass import dataclass
from spyrec.emulator.engine import Integers, Setting
from spyrec.emulator.geometry import outer_sum
from spyrec.emulator.numerics import constant_value
from spyrec.emulator.rules.superdsc import mask_constant

Flags = npt.NDArray[np.uint8]


def kept_dims(setting: Setting) -> list[str]:
    """Return the dims that the output extends along: the others are folded."""
    return [dim for dim in setting.extents if setting.extends(setting.output, dim)]


@dataclass(frozen=True, slots=True, eq=False)
class FoldTables:
    """The box of a core as reduction kernels go over it.

    ``kept_table``, ``folded_table``: byte offsets in the input, of points or of runs of adjacent elements, as the
    kernels take them (``reductions``).  ``masked[core, folded point]``: whether ``mask_value`` stands for the element;
    no columns where none is masked.  ``cohorts``: the core positions that share an output, each list in ascending slice
    order of the folded dims.
    """

    kept: list[str]
    folded: list[str]
    folds_lanes: bool
    kept_table: Integers
    folded_table: Integers
    masked: Flags
    mask_value: float
    cohorts: list[list[int]]
    results: int
    elements: int

    @classmethod
    def of(cls, setting: Setting) -> FoldTables:
        """Return the tables of a setting."""
        source, kept = setting.inputs[0], kept_dims(setting)
        folded = [dim for dim in setting.extents if dim not in kept]
        folds_lanes = setting.geometries[source].stick_dim in folded
        runs = setting.runs(source, folded if folds_lanes else kept)
        points = outer_sum([setting.offsets(source, dim) for dim in (kept if folds_lanes else folded)])
        masked, mask_value = _mask(setting, folded)
        return cls(
            kept=kept,
            folded=folded,
            folds_lanes=folds_lanes,
            kept_table=points if folds_lanes else runs,
            folded_table=runs if folds_lanes else points,
            masked=masked,
            mask_value=mask_value,
            cohorts=cohorts_of(setting),
            results=math.prod(setting.extents[dim] for dim in kept),
            elements=math.prod(setting.extents.values()),
        )

    def of_boxes(self, cores: Integers) -> FoldTables:
        """Return those of boxes of the cores at these positions, each of which keeps its results."""
        masked = np.ascontiguousarray(self.masked[cores])
        return replace(self, masked=masked, cohorts=[[box] for box in range(len(cores))])


def cohorts_of(setting: Setting) -> list[list[int]]:
    """Return the core positions that share an output, each list in ascending slice order of the folded dims."""
    kept = kept_dims(setting)
    folded = [dim for dim in setting.extents if dim not in kept]
    groups: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = defaultdict(list)
    for core, slices in enumerate(setting.superdsc.core_work_slices):
        key = tuple(slices[dim] for dim in kept)
        groups[key].append((tuple(slices[dim] for dim in folded), core))
    return [[core for _, core in sorted(members)] for members in groups.values()]


def _mask(setting: Setting, folded: list[str]) -> tuple[Flags, float]:
    superdsc = setting.superdsc
    position = mask_constant(superdsc) if superdsc.coordinate_masking else None
    if position is None:
        return np.zeros((setting.cores, 0), np.uint8), 0.0
    entry, extents = superdsc.constants[position], [setting.extents[dim] for dim in folded]
    masked = np.zeros((setting.cores, math.prod(extents)), np.uint8)
    for core, slices in enumerate(superdsc.core_work_slices):
        own = masked[core].reshape(extents)
        for axis, dim in enumerate(folded):
            low = slices[dim] * superdsc.core_extent[dim]
            for first, count in superdsc.coordinate_masking.get(dim, ()):
                hidden = slice(max(0, first - low), max(0, first + count - low))
                own[(slice(None),) * axis + (hidden,)] = 1
    return masked, constant_value(entry.data_format, entry.bits)
