"""The results of a model: who writes each last, and which core makes which part of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from spyrec.bundle.manifest import Argument, Manifest
from spyrec.compare.bundle_reading import OperandReading, OperationReading, ProgramReading
from spyrec.compare.core_shares import host_layout
from spyrec.compare.error_cells import CellGrid
from spyrec.hardware.target import STICK_BYTES
from spyrec.report.model import Grid, Output
from spyrec.report.operations import Operations

Integers = npt.NDArray[np.int64]


def outputs_of(manifest: Manifest | None, found: Operations, programs: Sequence[ProgramReading]) -> tuple[Output, ...]:
    """Return the results of a bundle, none where nobody says what they are."""
    if manifest is None:
        return ()
    numbers = {item.name: number for number, item in enumerate(found.tensors) if item.memory == "argument"}
    readings = {item.number: item for program in programs for item in program.operations}
    arguments = {item.name: item for item in manifest.arguments}
    outputs: list[Output] = []
    for name, held in manifest.outputs:
        tensor = found.tensors[numbers[held]]
        shape = tensor.shape if tensor.shape is not None else () if tensor.layout is None else tensor.layout.device_size
        writer = tensor.writers[-1] if tensor.writers else None
        grid = _grid(shape, arguments[held], [readings[number] for number in tensor.writers])
        outputs.append(Output(name, numbers[held], shape, writer, tensor.dtype, grid))
    return tuple(outputs)


def _grid(shape: Sequence[int], argument: Argument, writers: Sequence[OperationReading]) -> Grid:
    grid = CellGrid.of(shape)
    cores = cores_of(argument, writers, list(grid.firsts()))
    return Grid(grid.rows, grid.columns, grid.row_step, grid.column_step, cores if any_known(cores) else ())


def any_known(cores: Sequence[int | None]) -> bool:
    """Whether any core is known."""
    return any(core is not None for core in cores)


def cores_of(
    argument: Argument, writers: Sequence[OperationReading], elements: Sequence[tuple[int, ...]]
) -> tuple[int | None, ...]:
    """Return the core that writes each of some elements last, ``None`` where that is not known.

    ``elements``: row and column of each in the flattened host tensor; ``writers``: what writes it, in order.  Of
    operations with very many rounds nothing is known.
    """
    layout = host_layout(argument)
    if layout is None or argument.shape is None or not elements:
        return ()
    columns = argument.shape[-1] if argument.shape else 1
    places = np.array([row * columns + column for row, column in elements], np.int64)
    indices = np.array(np.unravel_index(places, argument.shape), np.int64).reshape(len(argument.shape), -1).T
    addresses = np.array([layout.byte_address(tuple(index)) for index in indices.tolist()], np.int64)
    found = np.full(len(elements), _NOBODY, np.int64)
    for operation in writers:
        for operand in operation.operands:
            if operand.is_written and operand.memory == "argument" and operand.name == argument.name:
                _mark(found, addresses, operation, operand)
    return tuple(None if core == _NOBODY else int(core) for core in found)


_NOBODY = np.iinfo(np.int64).max

_MOST_STARTS = 4096
"""Starts of cores and rounds that are looked at for one operation."""


def _mark(found: Integers, addresses: Integers, operation: OperationReading, operand: OperandReading) -> None:
    """Note the cores at the addresses that they write through an operand, in every round of the loops around it."""
    rounds = math.prod(len(loop.values) for loop in operation.call.loops)
    if rounds * len(operand.places) > _MOST_STARTS or any(place.parameter is not None for place in operand.places):
        found[:] = _NOBODY
        return
    for values in product(*(loop.values for loop in operation.call.loops)):
        numbers = {loop.number: value for loop, value in zip(operation.call.loops, values, strict=True)}
        for core, place in zip(operation.call.core_ids, operand.places, strict=True):
            start = place.offset + sum(step * numbers[loop] for loop, step in place.steps.items())
            found[_is_in_part(addresses - start, operation, operand)] = core


def _is_in_part(distances: Integers, operation: OperationReading, operand: OperandReading) -> npt.NDArray[np.bool_]:
    """Return which elements so many bytes behind the start of a core's part are in that part.

    The digits of a distance, in the mixed radix of the buffer's extents, are the element's coordinates.
    """
    geometry, held = operand.geometry, operand.operand
    extents = operation.superdsc.core_extent
    sticks, lane_bytes = np.divmod(distances, STICK_BYTES)
    lanes = lane_bytes // held.word_length
    inside = distances >= 0
    has_stick = False
    for dim in held.layout_dim_order:
        if dim not in geometry.extents:
            continue
        sticks, position = np.divmod(sticks, geometry.extents[dim])
        if dim == geometry.stick_dim:
            has_stick = True
            position = position * geometry.stick_size + lanes
        inside &= position < extents[dim]
    inside &= sticks == 0
    return inside if has_stick else inside & (lanes == 0)


def grids_by_name(outputs: Sequence[Output]) -> Mapping[str, int]:
    """Return the number of each output by name; of one that appears twice the first."""
    found: dict[str, int] = {}
    for number, item in enumerate(outputs):
        found.setdefault(item.name, number)
    return found
