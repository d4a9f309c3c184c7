"""Reads who owns what of an operand of a shuffle: the folds of its dims and the slices of its cores."""

from __future__ import annotations

from spyrec.bundle.json_cursor import CONTRADICTORY, MALFORMED, NOT_UNDERSTOOD, Cursor
from spyrec.bundle.superdsc import DimFold, Distribution, LabelInfo
from spyrec.bundle.superdsc_writer import SPATIAL_FOLDS
from spyrec.dataclass import dataclass

_MOST_FOLDS = 16
"""Folds of one dim: three are spatial, and two are those of a stick dim's elements."""

_LARGEST = 1 << 40
"""Of an alpha and a factor: no dim of a tensor has as many elements."""


@dataclass(frozen=True, slots=True)
class DistributionReader:
    """Reads ``coordinates_`` of an allocate node where it decides execution; ``dims``: those of the iteration."""

    core_ids: tuple[int, ...]
    dims: tuple[str, ...]

    def read(self, node: Cursor, label: LabelInfo) -> Distribution:
        """Read one distribution; SPY0620 malformed, SPY0621 not understood, SPY0622 contradictory.

        Whether it covers the tensor is for the executor's rules to say.
        """
        coordinates = node.member("coordinates_")
        by_core, info = coordinates.member("coreIdToWkSlice_"), coordinates.member("coordInfo")
        unexpected = sorted(by_core.object().keys() - {str(core) for core in self.core_ids})
        if unexpected:
            by_core.refuse(CONTRADICTORY, f'core "{unexpected[0][:40]}" is not in coreIdsUsed_ (rule V1)')
        slices = tuple(by_core.member(str(core)).integers_by(self.dims) for core in self.core_ids)
        unexpected = sorted(info.object().keys() - set(label.layout_dim_order))
        if unexpected:
            info.refuse(CONTRADICTORY, f'folds of dim "{unexpected[0][:40]}" outside {list(label.layout_dim_order)}')
        folds = {dim: _folds(info.member(dim)) for dim in label.layout_dim_order}
        attributes = node.member("startAddressCoreCorelet_").member("dim_prop_attr").items()
        corelets = next(item for item in attributes if item.member("label_").text() == "corelet")
        return Distribution(slices, folds, corelets.member("factor_").integer(1, 2))


def _folds(info: Cursor) -> tuple[DimFold, ...]:
    folds = info.member("folds")
    functions, attributes = (list(folds.member(key).items()) for key in ("dim_prop_func", "dim_prop_attr"))
    if len(functions) != len(attributes) or not len(SPATIAL_FOLDS) < len(functions) <= _MOST_FOLDS:
        fact = f"{len(functions)} fold functions and {len(attributes)} factors"
        folds.refuse(MALFORMED, f"{fact}, not as many of both, {len(SPATIAL_FOLDS) + 1} to {_MOST_FOLDS}")
    names = tuple(item.member("label_").text() for item in attributes)
    elements = tuple(f"elem_arr_{number}" for number in reversed(range(len(names) - len(SPATIAL_FOLDS))))
    if names != (*SPATIAL_FOLDS, *elements):
        fact = f"folds {list(names)} where {[*SPATIAL_FOLDS, *elements]} are understood (rule V14)"
        folds.member("dim_prop_attr").refuse(NOT_UNDERSTOOD, fact)
    return tuple(
        DimFold(_alpha(function), item.member("factor_").integer(1, _LARGEST))
        for function, item in zip(functions, attributes, strict=True)
    )


def _alpha(function: Cursor) -> int:
    kind, affine = function.only_member("fold function")
    if kind != "Affine":
        function.refuse(NOT_UNDERSTOOD, f'a fold of kind "{kind[:40]}"; only Affine is understood here (rule V14)')
    beta = affine.member("beta_")
    if beta.integer() != 0:
        beta.refuse(NOT_UNDERSTOOD, f"a fold that begins at {beta.value}; only 0 is understood here (rule V14)")
    return affine.member("alpha_").integer(0, _LARGEST)
