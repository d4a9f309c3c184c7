"""The iteration space of one SuperDSC: dim labels, synthetic dims, extents, work slices, slices of each core."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from math import prod

from spyrec.bundle.dialects import Dialect
from spyrec.codegen.opspec import OpSpec
from spyrec.dataclass import dataclass
from spyrec.device_ops import CASTS, MATMULS
from spyrec.diagnostics import Location, SpyrecError, refuse
from spyrec.hardware.work_slices import slice_order, slices_of_cores

_MATMUL_LABELS = ("ki", "kj", "y", "x", "mb", "out", "in")
_LEADING_LABELS = ("mb", "x", "y", "i", "j", "ki", "kj")
_LAST_LABEL = "out"
CAST_ROW_LABEL = "mb"


@dataclass(frozen=True, slots=True)
class IterationSpace:
    """Extents and work slices by dim label, in file order.

    ``padding`` is the part of each extent beyond the operation's own, where a ragged stick dim was rounded up.
    ``cast_row`` is the synthetic row of a one-dimensional cast, ``missing_stick`` that of an operation whose reference
    operand has no stick dim; ``None`` where there is none.
    """

    sizes: Mapping[str, int]
    work_slices: Mapping[str, int]
    padding: Mapping[str, int]
    cast_row: str | None = None
    missing_stick: str | None = None

    @property
    def cores(self) -> int:
        """Cores that share the operation."""
        return prod(self.work_slices.values())

    def core_extent(self, dim: str) -> int:
        """Return the extent of one core's slice along ``dim``."""
        return self.sizes[dim] // self.work_slices[dim]

    def with_size(self, dim: str, size: int) -> IterationSpace:
        """Return the same space with another extent along ``dim``."""
        return replace(self, sizes={**self.sizes, dim: size})

    def with_cast_row(self) -> IterationSpace:
        """Return the space with a row of size 1 before its dims."""
        label = CAST_ROW_LABEL
        return replace(self, sizes={label: 1, **self.sizes}, work_slices={label: 1, **self.work_slices}, cast_row=label)

    def with_missing_stick(self, label: str, elements: int) -> IterationSpace:
        """Return the space with a stick of ``elements`` lanes after its dims."""
        return replace(
            self,
            sizes={**self.sizes, label: elements},
            work_slices={**self.work_slices, label: 1},
            missing_stick=label,
        )

    def with_unit_dims(self, labels: Iterable[str]) -> IterationSpace:
        """Return the space with undivided dims of size 1 after its dims."""
        ones = dict.fromkeys(labels, 1)
        return replace(self, sizes={**self.sizes, **ones}, work_slices={**self.work_slices, **ones})

    def padded(self, dim: str, stick_size: int) -> IterationSpace:
        """Return the space with the extent of ``dim`` rounded up to whole sticks."""
        rest = -self.sizes[dim] % stick_size
        if not rest:
            return self
        sizes = {**self.sizes, dim: self.sizes[dim] + rest}
        return replace(self, sizes=sizes, padding={**self.padding, dim: rest})

    def undivided(self, dims: Mapping[str, int]) -> IterationSpace:
        """Return the space with one slice along each of ``dims``."""
        return replace(self, work_slices={dim: 1 if dim in dims else cut for dim, cut in self.work_slices.items()})


def label_symbols(spec: OpSpec, location: Location | None) -> dict[str, str]:
    """Return the dim label of each iteration symbol, in order.

    Matmuls count from the end (``.., mb, out, in``), all others from the front with ``out`` last.  Errors: SPY0507.
    """
    names = [dim.symbol for dim in spec.iteration_space]
    most = len(_MATMUL_LABELS) if spec.op in MATMULS else len(_LEADING_LABELS) + 1
    if len(names) > most:
        raise refuse(
            "SPY0507",
            f'"{spec.op}" iterates {len(names)} dims, a SuperDSC has names for {most}',
            None if location is None else location.child("iteration_space"),
        )
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise refuse(
            "SPY0507",
            f'iteration symbol "{twice}" stands twice',
            None if location is None else location.child("iteration_space"),
        )
    if spec.op in MATMULS:
        return dict(zip(names, _MATMUL_LABELS[most - len(names) :], strict=True))
    labels = (*_LEADING_LABELS[: max(0, len(names) - 1)], _LAST_LABEL)
    return dict(zip(names, labels[: len(names)] if names else (), strict=True))


def initial_iteration(spec: OpSpec, labels: Mapping[str, str], *, is_divided: bool = True) -> IterationSpace:
    """Return the space as the OpSpec gives it, in dim labels; not ``is_divided``: on one core all the same."""
    return IterationSpace(
        {labels[dim.symbol]: dim.size for dim in spec.iteration_space},
        {labels[dim.symbol]: dim.work_division if is_divided else 1 for dim in spec.iteration_space},
        {},
    )


def next_label(spec: OpSpec, lacking: str, location: Location | None) -> str:
    """Return the label of one more dim, which is ``lacking``; SPY0507 where the operation has too many dims for one."""
    count = len(spec.iteration_space)
    if count >= len(_LEADING_LABELS):
        raise _too_many(spec, lacking, location)
    return _LEADING_LABELS[count]


def free_label(spec: OpSpec, taken: Collection[str], location: Location | None) -> str:
    """Return the first label that is not ``taken``, for a dim of an index; SPY0507 where there is none."""
    found = next((label for label in _LEADING_LABELS if label not in taken), None)
    if found is None:
        raise _too_many(spec, "a dim for its index", location)
    return found


def _too_many(spec: OpSpec, lacking: str, location: Location | None) -> SpyrecError:
    return refuse(
        "SPY0507",
        f'"{spec.op}" iterates {len(spec.iteration_space)} dims without {lacking}, a SuperDSC has no name for one more',
        None if location is None else location.child("iteration_space"),
    )


def needs_cast_row(spec: OpSpec, stick_dim: str | None, dim_order: tuple[str, ...]) -> bool:
    """Return whether a cast's reference operand has nothing but its stick dim."""
    return spec.op in CASTS and stick_dim is not None and dim_order == (stick_dim,)


def core_slices(spec: OpSpec, iteration: IterationSpace, dialect: Dialect) -> tuple[dict[str, int], ...]:
    """Return the slice index of each core along each dim, the fastest dim first, as torch-spyre writes them."""
    dims = list(iteration.sizes)
    counts = [iteration.work_slices[dim] for dim in dims]
    contracts, least_rank = spec.op in MATMULS, dialect.least_contracted_rank
    order = slice_order(counts, contracts=contracts, least_rank=least_rank)
    found = slices_of_cores(counts, contracts=contracts, least_rank=least_rank)
    return tuple({dims[place]: slices[place] for place in order} for slices in found)
