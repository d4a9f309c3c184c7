"""The few divisions of a kernel that are worth considering, with their cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import cast

from spyrec.dataclass import dataclass
from spyrec.hardware.cost import OperationClass, OperationRecord, cost_of, matmul_grid
from spyrec.hardware.target import STICK_BYTES, TargetProfile
from spyrec.ir.kept_answers import AnswerForm, KeptAnswers
from spyrec.ir.kernel import Kernel, KernelGraph
from spyrec.passes.base import PipelineOptions
from spyrec.passes.planning.divisions import Axis, Division, DivisionSpace, division_space
from spyrec.passes.planning.record import UndividedRecord, kernel_record

MOST_CANDIDATES = 12
"""Divisions kept per kernel: the joint choice multiplies those of neighbours."""

_CHEAPEST = 4
"""Candidates that are there for nothing but their cost."""

_COST_DIGITS = 6
"""Costs are whole picoseconds, so that the last bits of a logarithm choose nothing."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One legal division of a kernel among the cores: slices per variable of its form.

    ``cost_us``: its simulated time with every operand in device memory.  ``traffic_bytes``: distinct bytes of device
    memory that it reads and writes.
    """

    division: Division
    cost_us: float
    traffic_bytes: int


def candidates(
    graph: KernelGraph, kernel: Kernel, options: PipelineOptions, kept: KeptAnswers | None = None
) -> tuple[Candidate, ...]:
    """Return divisions of a kernel that has a form, best first; none where no even division keeps the span limit.

    The first is what the kernel alone would choose.  Beside the cheapest there are, for every variable that the result
    has, the one with most slices of it alone, and the cheapest ones of two variables, folded ones too.  A pinned
    kernel has the divisions that its pin leaves.  ``kept``: answers of other compilations.
    """
    assert kernel.output.buffer in graph.buffers, kernel.name
    facts = kernel_record(kernel), _space(kernel, options), options.profile
    return _candidates(*facts) if kept is None else kept.answer(_CANDIDATES, facts, lambda: _candidates(*facts))


def floor_us(kernel: Kernel, options: PipelineOptions) -> float:
    """Return the simulated time that a kernel would take if every number of cores divided it, all rows on each core."""
    return _floor_us(kernel_record(kernel), options.cores, options.profile)


@lru_cache(maxsize=4096)
def _floor_us(record: UndividedRecord, cores: int, profile: TargetProfile) -> float:
    whole = record.under((1,) * len(record.space.extents), (False,) * len(record.space.operands))
    return cost_of(replace(whole, cores=cores, core_points=-(-whole.core_points // cores)), profile).total_us


def _space(kernel: Kernel, options: PipelineOptions) -> DivisionSpace:
    return division_space(kernel, options.cores, options.target.span_limit_bytes)


def _written(found: tuple[Candidate, ...]) -> object:
    return [[item.division, item.cost_us, item.traffic_bytes] for item in found]


def _read(data: object) -> tuple[Candidate, ...]:
    items = cast("list[tuple[list[int], float, int]]", data)
    return tuple([Candidate(tuple(map(int, own)), float(cost), int(size_bytes)) for own, cost, size_bytes in items])


_CANDIDATES = AnswerForm("division candidates", _written, _read)

_Rank = tuple[float, int, tuple[bool, int, int], int, Division]
_Ranked = tuple[_Rank, Candidate]


@lru_cache(maxsize=4096)
def _candidates(record: UndividedRecord, space: DivisionSpace, profile: TargetProfile) -> tuple[Candidate, ...]:
    ranked = sorted(_priced(record, division, profile) for division in space)
    return tuple(candidate for _, candidate in sorted(_diverse(space, ranked)))


def _priced(record: UndividedRecord, division: Division, profile: TargetProfile) -> _Ranked:
    """Return a division with its rank: cheapest first; of those most cores, of a matmul as ``_shape_rank`` has it,
    least that cores read, outer dims first.
    """
    operation = record.under(division, (False,) * len(record.space.operands))
    cost_us = round(cost_of(operation, profile).total_us, _COST_DIGITS)
    candidate = Candidate(division, cost_us, operation.read_bytes + operation.write_bytes)
    outer_first = tuple(-count for count in division)
    rank = cost_us, -operation.cores, _shape_rank(operation), operation.core_read_bytes, outer_first
    return rank, candidate


def _shape_rank(operation: OperationRecord) -> tuple[bool, int, int]:
    """Return what tells divisions of a matmul apart that the model calls equally quick, the quicker ones first.

    Two sticks of columns per core or more, then fewer slices of the dim that has most, then more rows per core: of 22
    such pairs in the measured times this one is quicker in 17, by up to 39 %, and slower by more than a hundredth in 4,
    of which a plan takes one (D255).
    """
    if operation.operation_class is not OperationClass.MATMUL:
        return False, 0, 0
    is_narrow = operation.core_columns * operation.element_bytes < 2 * STICK_BYTES
    return is_narrow, max(matmul_grid(operation)), -operation.core_rows


def _diverse(space: DivisionSpace, ranked: Sequence[_Ranked]) -> list[_Ranked]:
    """Return the best of each kind: the cheapest, one variable alone, two variables; then the next cheapest."""
    by_division = {candidate.division: (rank, candidate) for rank, candidate in ranked}
    alone = [by_division[division] for division in _alone(space) if division in by_division]
    pairs: dict[tuple[int, ...], _Ranked] = {}
    for item in ranked:
        split = tuple(index for index, count in enumerate(item[1].division) if count > 1)
        if len(split) == 2:
            pairs.setdefault(split, item)
    found: dict[Division, _Ranked] = {}
    for item in (*ranked[:_CHEAPEST], *alone, *pairs.values(), *ranked):
        if len(found) == MOST_CANDIDATES:
            break
        found.setdefault(item[1].division, item)
    return list(found.values())


def _alone(space: DivisionSpace) -> Iterator[Division]:
    """Yield for every variable of the result the division that puts as many cores as it can on that one alone."""
    for index, axis in enumerate(space.axes):
        if axis.is_free and axis.pieces > 1:
            count = _most_slices(axis, space.cores)
            yield tuple(count if place == index else 1 for place in range(len(space.axes)))


def _most_slices(axis: Axis, cores: int) -> int:
    return max(count for count in range(1, min(axis.pieces, cores) + 1) if axis.pieces % count == 0)
