"""Rule V7 between the cores of one SuperDSC: no two store one byte, and none loads what another stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spyrec.bundle.superdsc import Component
from spyrec.device_ops import device_operation
from spyrec.emulator.engine import Setting
from spyrec.emulator.footprint import first_overlap, loading_conflict
from spyrec.emulator.rules.fault_places import Fault, FaultSpot

Integers = npt.NDArray[np.int64]

_SLICES = ("coreIdToWkSlice_",)


class Touching(Protocol):
    """What a race is seen in: of each operand its base, each core's offset, and the runs of bytes that it touches."""

    @property
    def bases(self) -> Sequence[int | None]:
        """The memory that each operand lies in."""
        ...

    @property
    def runs(self) -> Sequence[Integers]:
        """Bytes that cores touch of each operand, relative to their starts."""
        ...

    @property
    def offsets(self) -> Sequence[Integers]:
        """Where each core starts in each operand."""
        ...

    def touched(self, position: int) -> list[tuple[Integers, list[int]]]:
        """Return the runs of an operand, and the cores that touch these."""
        ...


def races(setting: Setting, binding: Touching) -> Iterator[tuple[Fault, str]]:
    """Yield the races between cores, as fault and message."""
    bases, runs, offsets = binding.bases, binding.runs, binding.offsets
    output = setting.output
    if setting.superdsc.operands[output].component is Component.LX:
        return
    owners = combination_owners(setting)
    first = [owners.index(owner) for owner in range(max(owners) + 1)]
    stores = (runs[output], offsets[output][first])
    ids = setting.superdsc.core_ids
    overlap = first_overlap(*stores)
    if overlap is not None:
        cores = [ids[first[owner]] for owner in overlap[:2]]
        fault = Fault(7, output, FaultSpot(first[overlap[1]], overlap[2]), more_fields=_SLICES)
        yield fault, f"cores {cores[0]} and {cores[1]} both store byte {overlap[2]} of it"
        return
    for position in (*setting.inputs, *setting.superdsc.compute.indirect_access_indices):
        if bases[position] != bases[output] or bases[position] is None:
            continue
        conflict = loading_conflict(stores, binding.touched(position), offsets[position], owners)
        if conflict is not None:
            reader, writer = ids[conflict[0]], ids[first[conflict[1]]]
            fault = Fault(7, position, FaultSpot(conflict[0], conflict[2]), more_fields=_SLICES)
            yield fault, f"core {reader} loads byte {conflict[2]}, which core {writer} stores"


def combination_owners(setting: Setting) -> list[int]:
    """Return the combination cohort of each core: cores that differ only in the slice of a folded dim (rule 3)."""
    folds = device_operation(setting.superdsc.op_func_name).fold is not None
    numbers: dict[tuple[int, ...], int] = {}
    owners: list[int] = []
    for core, slices in enumerate(setting.superdsc.core_work_slices):
        kept = tuple(
            index for dim, index in sorted(slices.items()) if not folds or setting.extends(setting.output, dim)
        )
        owners.append(numbers.setdefault(kept if folds else (core,), len(numbers)))
    return owners
