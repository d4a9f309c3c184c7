"""``spyrec import --verify``: what the emulated device makes of a model, beside what its own library makes of it.

The library computes in float64 with the model's own weights and inputs; the device has them in the dtype asked for.
An output may differ by what roundings do, and has to hold its bound of ``--check`` as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from spyrec.bundle.bundle import Bundle
from spyrec.compare.random_roundings import SAYS_NOTHING, every_value, relative_error, rounding_errors
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.front import compile as compile_graph
from spyrec.frontends.model_import.imported import CastCount, narrowed
from spyrec.hardware.dtypes import DType
from spyrec.ir.graph import Graph
from spyrec.ir.numbers import LARGEST, decode
from spyrec.model import run
from spyrec.options import HostArray, RunOptions

if TYPE_CHECKING:
    from spyrec.frontends.model_import.imported import ImportedModel
    from spyrec.frontends.model_import.source_graph import ReferenceRun
    from spyrec.frontends.model_import.symbolic_sizes import DimChoice

SAFETY = 4.0
"""Most that an error may be of the largest of a few runs with random roundings."""


@dataclass(frozen=True, slots=True)
class OutputVerdict:
    """One output of one run.

    ``seed``: of the inputs' draw, ``None`` for the program's example inputs.  ``error``: the largest difference from
    the library's float64 over the largest magnitude; ``tolerance``: what it may be.  ``bound_ratio``: the largest
    error against the graph's own reference over its bound.  ``module``: where bisecting found the guilty operation.
    """

    seed: int | None
    output: str
    error: float
    tolerance: float
    bound_ratio: float
    ok: bool
    module: str | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Return the verdict as an object."""
        return {
            "seed": self.seed, "output": self.output, "ok": self.ok, "error": self.error, "tolerance": self.tolerance,
            "bound_ratio": self.bound_ratio, "module": self.module,
        }  # fmt: skip

    def __str__(self) -> str:
        source = "example inputs" if self.seed is None else f"draw {self.seed}"
        verdict = "ok" if self.ok else "WRONG"
        where = "" if self.module is None else f", from {self.module}"
        numbers = f"error {self.error:.3g} of {self.tolerance:.3g}, error/bound {self.bound_ratio:.3g}"
        if self.ok and self.tolerance >= SAYS_NOTHING:
            numbers += " (it says nothing: roundings alone may change all of it)"
        return f"verify {self.output}: {verdict}, {numbers}, {source}{where}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What is verified: the model's ``file`` and its symbolic dims' extents, and what became of it."""

    file: Path
    dims: Mapping[str, DimChoice]
    model: ImportedModel

    def verdicts(self, draws: int, *, bisect: bool) -> list[OutputVerdict]:
        """Verify each output, with the example inputs (``draws`` 0) or with that many random draws.

        ``bisect``: look for the operation that a wrong output comes from.  Errors: SPY0160 to SPY0165 for the file, and
        those of compiling and running.
        """
        graph = self.model.in_memory()
        bundle = compile_graph(graph)
        seeds: list[int | None] = [None] if draws == 0 else list(range(draws))
        found: list[OutputVerdict] = []
        for seed in seeds:
            drawn = {} if seed is None else self._drawn(graph, bundle, seed)
            found.extend(self._of_run(graph, bundle, seed, self._reference(drawn), is_bisected=bisect))
        return found

    def _drawn(self, graph: Graph, bundle: Bundle, seed: int) -> dict[str, HostArray]:
        """Return random inputs by the program's names; floats in float64 as their dtype holds them.

        Integers that are no row numbers of a table are the example's where there are some, and 0 or 1 in ONNX; so is
        what the program changes.
        """
        from spyrec.runtime.inputs.binding import expected_inputs
        from spyrec.runtime.inputs.random_inputs import random_inputs

        expected = [item for item in expected_inputs(bundle.manifest) if item.name not in graph.updates.values()]
        drawn = random_inputs(expected, seed)
        names = self._program_names()
        found: dict[str, HostArray] = {}
        for item in expected:
            dtype = graph.type_of(item.name).dtype
            is_bounded = dtype.is_float or dtype is DType.BOOL or item.row_count is not None
            if is_bounded:
                found[names[item.name]] = decode(drawn[item.name], dtype)
            elif self.file.suffix == ".onnx":
                found[names[item.name]] = np.bitwise_and(drawn[item.name].astype(np.int64), 1)
        return found

    def _program_names(self) -> dict[str, str]:
        rows = cast("list[dict[str, str]]", self.model.report["inputs"])
        return {row["name"]: row["program_name"] for row in rows}

    def _reference(self, given: Mapping[str, HostArray]) -> ReferenceRun:
        if self.file.suffix == ".onnx":
            from spyrec.frontends.onnx import float64 as of_onnx

            return of_onnx.run_in_float64(self.file, self.dims, given)
        from spyrec.frontends.torch_export import float64 as of_torch

        return of_torch.run_in_float64(self.file, given)

    def _of_run(
        self, graph: Graph, bundle: Bundle, seed: int | None, reference: ReferenceRun, *, is_bisected: bool
    ) -> list[OutputVerdict]:
        names = self._program_names()
        inputs = {name: _as_input(reference.inputs[names[name]], graph.type_of(name).dtype) for name in graph.inputs}
        wanted = dict(zip(graph.outputs, reference.outputs, strict=False))
        wanted |= {output: reference.changed[names[name]] for output, name in graph.updates.items()}
        result = run(bundle, inputs, RunOptions(check=True))
        tolerances = rounding_errors(graph, inputs)
        assert result.check is not None
        verdicts: list[OutputVerdict] = []
        for name, want in wanted.items():
            dtype = graph.type_of(name).dtype
            error = relative_error(decode(result.outputs[name], dtype), _as_cast(want, dtype), dtype)
            tolerance, report = SAFETY * tolerances[name], result.check[name]
            is_ok = report.ok and error <= tolerance
            verdicts.append(OutputVerdict(seed, name, error, tolerance, report.bound_ratio, is_ok))
        if not is_bisected or all(item.ok for item in verdicts):
            return verdicts
        tolerance = max(item.tolerance for item in verdicts)
        module = guilty_module(bundle, inputs) or differing_module(graph, inputs, reference.modules, tolerance)
        return [item if item.ok else replace(item, module=module) for item in verdicts]


def guilty_module(bundle: Bundle, inputs: Mapping[str, HostArray]) -> str | None:
    """Return the path of the module whose operation a bisection of the run finds guilty, ``None`` if all are right."""
    found = run(bundle, inputs, RunOptions(bisect=True)).bisect
    if found is None or found.divergence is None:
        return None
    place = found.divergence.location.model
    return found.divergence.node if place is None else place.module


def differing_module(
    graph: Graph, inputs: Mapping[str, HostArray], modules: Mapping[str, HostArray], tolerance: float
) -> str | None:
    """Return the first module whose last result the graph, in float64, has otherwise than the model's library.

    ``modules``: these results by path.  ``None`` where none differs by more than ``tolerance``, or none is known.
    """
    last: dict[str, str] = {}
    for node in graph.nodes:
        if isinstance(node.origin, Location) and node.origin.model is not None:
            last[node.origin.model.module] = node.outputs[0]
    values = every_value(graph, inputs)
    for module, name in last.items():
        want = modules.get(module)
        is_comparable = want is not None and want.shape == graph.type_of(name).shape
        dtype = graph.type_of(name).dtype
        if want is not None and is_comparable:
            error = relative_error(values[name], _as_cast(want, dtype), dtype)
            if error > tolerance:
                return module
    return None


def _as_input(array: HostArray, dtype: DType) -> HostArray:
    """Return an input of the library as the graph takes it."""
    if dtype.is_float:
        return narrowed(np.asarray(array, np.float64), DType.FLOAT32, dtype, CastCount())
    return np.asarray(array, dtype.carrier)


def _as_cast(array: HostArray, dtype: DType) -> HostArray:
    """Return a result of the library as an import casts: what is finite stays finite, as a mask of ``finfo.min``."""
    if not dtype.is_float:
        return array
    numbers = array.astype(np.float64)
    return np.where(np.isfinite(numbers), np.clip(numbers, -LARGEST[dtype], LARGEST[dtype]), numbers)
