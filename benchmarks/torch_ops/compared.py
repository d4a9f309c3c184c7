"""What a result may differ by: what happens to torch's own in float64 when its inputs are rounded at random.

An operation that is asked for in 16 bits is given numbers of 16 bits, and gives such: its error is that of its inputs,
as far as it amplifies them, and a few roundings of its own.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportOperatorIssue=false, reportIndexIssue=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

HALF_ROUNDOFF = 2.0**-10
"""Half a unit in the last place of DLFloat16, which has nine fraction bits."""

SINGLE_ROUNDOFF = 2.0**-24
"""Half a unit in the last place of float32."""

_RUNS = 8
_SAFETY = 4.0

Operation = Callable[..., object]


def tensors_of(value: object) -> list[torch.Tensor]:
    """Return the tensors of a nest of tuples, lists and dicts, in order."""
    import torch
    from torch.utils import _pytree

    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def worst(found: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> list[float]:
    """Return the largest difference of each output; infinite where numbers that are none, or signs of them, differ."""
    return [_difference(mine.double(), other.double()) for mine, other in zip(found, wanted, strict=True)]


def _difference(found: torch.Tensor, wanted: torch.Tensor) -> float:
    import torch

    if found.shape != wanted.shape:
        return float("inf")
    is_same = (found == wanted) | (torch.isnan(found) & torch.isnan(wanted))
    away = torch.where(is_same, 0.0, (found - wanted).abs())
    return float(torch.nan_to_num(away, nan=float("inf"), posinf=float("inf")).max()) if away.numel() else 0.0


def tolerances(operation: Operation, arguments: object, roundoff: float) -> list[float]:
    """Return what each output may differ by: four times the largest of eight runs with rounded inputs, and of a
    rounding of the result itself.
    """
    import torch

    exact = tensors_of(operation(*_doubled(arguments, 0.0)))
    found = [_SAFETY * roundoff * _largest(item.double()) for item in exact]
    for seed in range(_RUNS):
        torch.manual_seed(seed)
        rounded = tensors_of(operation(*_doubled(arguments, roundoff)))
        for index, away in enumerate(worst(rounded, exact)):
            found[index] = max(found[index], _SAFETY * away)
    return found


def exact_results(operation: Operation, arguments: object) -> list[torch.Tensor]:
    """Return torch's results in float64."""
    return tensors_of(operation(*_doubled(arguments, 0.0)))


def _doubled(arguments: object, roundoff: float) -> Sequence[object]:
    """Return arguments in float64, each number moved by up to one roundoff to either side, at random."""
    import torch
    from torch.utils import _pytree

    def moved(leaf: object) -> object:
        if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
            return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf
        wide = leaf.double()
        return wide * (1 + roundoff * (2 * torch.rand_like(wide) - 1)) if roundoff else wide

    return _pytree.tree_map(moved, arguments)


def _largest(tensor: torch.Tensor) -> float:
    finite = tensor[tensor.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0
