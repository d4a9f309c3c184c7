"""Results lie in memory as torch promises: what comes behind a graph was compiled for these strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from torch.export import ExportedProgram

Strides = tuple[int, ...] | None


def promised_strides(program: ExportedProgram) -> tuple[Strides, ...]:
    """Return the strides of each result that the caller sees; ``None`` for what has none that are known."""
    result = next(node for node in program.graph.nodes if node.op == "output")
    values = cast("Sequence[object]", result.args[0])
    specs = program.graph_signature.output_specs
    return tuple(
        _strides(getattr(value, "meta", {}).get("val"))
        for spec, value in zip(specs, values, strict=True)
        if spec.kind.name == "USER_OUTPUT"
    )


def _strides(promised: object) -> Strides:
    import torch

    if not isinstance(promised, torch.Tensor) or promised.layout is not torch.strided:
        return None
    found = tuple(promised.stride())
    return found if all(type(item) is int for item in found) else None


def laid_out(results: Sequence[object], strides: Sequence[Strides]) -> list[object]:
    """Return results with these strides; one that has them stays, and another is copied."""
    return [_laid_out(result, wanted) for result, wanted in zip(results, strides, strict=True)]


def _laid_out(result: object, wanted: Strides) -> object:
    import torch

    if wanted is None or not isinstance(result, torch.Tensor) or result.stride() == wanted:
        return result
    made = torch.empty_strided(tuple(result.shape), wanted, dtype=result.dtype)
    once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in wanted)
    made[once].copy_(result[once])  # what an expanded dim repeats is one number in memory
    return made
