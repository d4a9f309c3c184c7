"""The sizes that a caller gives the symbolic dims of a bundle by name, beside those that the inputs' shapes say."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace

from spyrec.bundle.bundle import Bundle
from spyrec.bundle.manifest import PlanStep
from spyrec.diagnostics import DiagnosticSink
from spyrec.layout.symbolic_dim import SymbolicDim
from spyrec.runtime.argument_kinds import as_integer, shown


def check_dims(known: Mapping[str, SymbolicDim], given: Mapping[str, object]) -> dict[str, int]:
    """Return the sizes that a caller gives dims, all problems raised at once.

    Errors: SPY0993 no such dim, SPY0994 a size that the dim does not take.
    """
    sink = DiagnosticSink()
    sizes: dict[str, int] = {}
    for name, value in given.items():
        dim, size = known.get(name), as_integer(value)
        if dim is None:
            close = difflib.get_close_matches(str(name), known, n=1)
            names = ", ".join(f'"{item}"' for item in sorted(known))
            hint = f"its symbolic dims are {names}" if known else "all its dims have one size"
            sink.error(
                "SPY0993",
                f"the bundle has no symbolic dim {shown(name)}",
                hint=f'did you mean "{close[0]}"?' if close else hint,
            )
        elif size is None or not dim.admits(size):
            found = shown(value) if size is None else str(size)
            hint = f"the largest it takes is {dim.largest}, the smallest {dim.smallest}"
            sink.error("SPY0994", f'dim "{name}" is to have {found} elements, it takes {dim}', hint=hint)
        else:
            sizes[name] = size
    sink.raise_if_errors()
    return sizes


def at_dims(bundle: Bundle, given: Mapping[str, object]) -> Bundle:
    """Return a bundle whose symbolic dims have the given sizes and no others; errors as :func:`check_dims`."""
    if not given:
        return bundle
    manifest = bundle.manifest
    sizes = check_dims(manifest.symbolic_dims, given)
    dims = {
        name: SymbolicDim(sizes[name], sizes[name]) if name in sizes else dim
        for name, dim in manifest.symbolic_dims.items()
    }
    plan = tuple(_without_values_of(step, sizes) for step in manifest.plan)
    return replace(bundle, manifest=replace(manifest, symbolic_dims=dims, plan=plan))


def _without_values_of(step: PlanStep, sizes: Mapping[str, int]) -> PlanStep:
    """Return a step that takes the sizes of dims from the run, where an argument table states them."""
    kept = {
        name: value
        for name, value in step.values.items()
        if name not in step.trip_counts or step.trip_counts[name].dim not in sizes
    }
    return replace(step, values=kept)
