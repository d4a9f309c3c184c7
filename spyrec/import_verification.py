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
from spyrec.compare.bundle_graph import graph_of_bundle
from spyrec.compare.random_roundings import SAYS_NOTHING, RoundedRuns, every_value, relative_error, rounded_runs
from spyrec.dataclass import dataclass
from spyrec.diagnostics import Location, SpyrecError
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
    ``state_of``: the entry whose run left the state that this one began with.
    """

    seed: int | None
    output: str
    error: float
    tolerance: float
    bound_ratio: float
    ok: bool
    module: str | None = None
    state_of: str | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Return the verdict as an object."""
        return {
            "seed": self.seed, "output": self.output, "ok": self.ok, "error": self.error, "tolerance": self.tolerance,
            "bound_ratio": self.bound_ratio, "module": self.module, "state_of": self.state_of,
        }  # fmt: skip

    def __str__(self) -> str:
        source = "example inputs" if self.seed is None else f"draw {self.seed}"
        source += "" if self.state_of is None else f", with the state of {self.state_of}"
        verdict = "ok" if self.ok else "WRONG"
        where = "" if self.module is None else f", from {self.module}"
        numbers = f"error {self.error:.3g} of {self.tolerance:.3g}, error/bound {self.bound_ratio:.3g}"
        if self.ok and self.tolerance >= SAYS_NOTHING:
            numbers += " (it says nothing: roundings alone may change all of it)"
        return f"verify {self.output}: {verdict}, {numbers}, {source}{where}"


@dataclass(frozen=True, slots=True)
class LeftState:
    """What a run of an ``entry`` left in the inputs that it changes, by their names in the graph.

    ``device``: as the device computed it, ``library``: as the library did in float64, ``rounded``: as the runs with
    random roundings did.
    """

    entry: str
    device: Mapping[str, HostArray]
    library: Mapping[str, HostArray]
    rounded: RoundedRuns

    def of(self, graph: Graph) -> LeftState:
        """Return the part of the state that a graph has as inputs of the same shapes."""
        names = {
            name
            for name in self.device
            if name in graph.inputs and graph.type_of(name).shape == self.device[name].shape
        }

        def part(held: Mapping[str, HostArray]) -> dict[str, HostArray]:
            return {name: held[name] for name in held if name in names}

        runs = RoundedRuns(part(self.rounded.exact), tuple(map(part, self.rounded.rounded)))
        return LeftState(self.entry, part(self.device), part(self.library), runs)

    def then(self, later: LeftState) -> LeftState:
        """Return this state with what a later run left of it."""
        pairs = zip(self.rounded.rounded, later.rounded.rounded, strict=True)
        runs = RoundedRuns({**self.rounded.exact, **later.rounded.exact}, tuple({**old, **new} for old, new in pairs))
        return LeftState(later.entry, {**self.device, **later.device}, {**self.library, **later.library}, runs)


States = dict[int | None, LeftState]
"""What runs left, by the seed of their draw."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What is verified: the model's ``file`` and its symbolic dims' extents, and what became of it.

    ``entry``: its name among several programs.
    """

    file: Path
    dims: Mapping[str, DimChoice]
    model: ImportedModel
    entry: str = ""

    def verdicts(self, draws: int, *, bisect: bool, states: States | None = None) -> list[OutputVerdict]:
        """Verify each output, with the example inputs (``draws`` 0) or with that many random draws.

        ``bisect``: look for the operation that a wrong output comes from.  ``states``: what earlier entries left, with
        which this one begins, on the device and in the library; it has afterwards what this one left.
        Errors: SPY0160 to SPY0165 for the file, and those of compiling and running.
        """
        graph = self.model.in_memory()
        bundle = compile_graph(graph)
        seeds: list[int | None] = [None] if draws == 0 else list(range(draws))
        found: list[OutputVerdict] = []
        for seed in seeds:
            drawn = {} if seed is None else self._drawn(graph, bundle, seed, with_examples=self.file.suffix != ".onnx")
            state = None if states is None or seed not in states else states[seed].of(graph)
            names = self._program_names()
            handed = {} if state is None else {names[name]: array for name, array in state.library.items()}
            reference = self._reference({**drawn, **handed})
            shown = seed
            if reference is None:  # the file holds no examples
                shown = seed or 0
                drawn = self._drawn(graph, bundle, shown, with_examples=False)
                reference = self._reference({**drawn, **handed}, is_filled=True)
            assert reference is not None, self.file
            verdicts, left = self._of_run(graph, bundle, shown, reference, state, is_bisected=bisect)
            found.extend(verdicts)
            if states is not None and left is not None:
                states[seed] = states[seed].then(left) if seed in states else left
        return found

    def _drawn(self, graph: Graph, bundle: Bundle, seed: int, *, with_examples: bool) -> dict[str, HostArray]:
        """Return random inputs by the program's names; floats in float64 as their dtype holds them.

        Integers that are no row numbers of a table are the file's examples, and 0 or 1 where it has none, as in ONNX;
        what the program changes is what the file holds.
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
            elif not with_examples:
                found[names[item.name]] = np.bitwise_and(drawn[item.name].astype(np.int64), 1)
        return found

    def _program_names(self) -> dict[str, str]:
        rows = cast("list[dict[str, str]]", self.model.report["inputs"])
        return {row["name"]: row["program_name"] for row in rows}

    def _reference(self, given: Mapping[str, HostArray], *, is_filled: bool = False) -> ReferenceRun | None:
        """Return what the library computes; ``None`` where an input is not given and the file has no example of it.

        ``is_filled``: such an input is zeros; an import has dropped it.
        """
        if self.file.suffix == ".onnx":
            from spyrec.frontends.onnx import float64 as of_onnx

            return of_onnx.run_in_float64(self.file, self.dims, given)
        from spyrec.frontends.torch_export import float64 as of_torch

        return of_torch.run_in_float64(self.file, given, is_filled=is_filled)

    def _of_run(  # noqa: PLR0913 -- what a run is of
        self,
        graph: Graph,
        bundle: Bundle,
        seed: int | None,
        reference: ReferenceRun,
        state: LeftState | None,
        *,
        is_bisected: bool,
    ) -> tuple[list[OutputVerdict], LeftState | None]:
        names = self._program_names()
        inputs = {name: _as_input(reference.inputs[names[name]], graph.type_of(name).dtype) for name in graph.inputs}
        if state is not None:
            inputs |= state.device
        wanted = dict(zip(graph.outputs, reference.outputs, strict=False))
        wanted |= {output: reference.changed[names[name]] for output, name in graph.updates.items()}
        result = run(bundle, inputs, RunOptions(check=True))
        at_run = _at_extents(graph, bundle, inputs)
        runs = rounded_runs(at_run, inputs, None if state is None else state.rounded)
        tolerances = runs.errors(at_run)
        state_of = state.entry if state is not None and state.device else None
        assert result.check is not None
        verdicts: list[OutputVerdict] = []
        for name, want in wanted.items():
            dtype = graph.type_of(name).dtype
            error = relative_error(decode(result.outputs[name], dtype), _as_cast(want, dtype), dtype)
            tolerance, report = SAFETY * tolerances[name], result.check[name]
            is_ok = report.ok and error <= tolerance
            verdicts.append(OutputVerdict(seed, name, error, tolerance, report.bound_ratio, is_ok, state_of=state_of))
        left = self._left(graph, result.outputs, reference, runs) if graph.updates else None
        if not is_bisected or all(item.ok for item in verdicts):
            return verdicts, left
        tolerance = max(item.tolerance for item in verdicts)
        module = guilty_module(graph, bundle, inputs) or differing_module(at_run, inputs, reference.modules, tolerance)
        return [item if item.ok else replace(item, module=module) for item in verdicts], left

    def _left(
        self, graph: Graph, outputs: Mapping[str, HostArray], reference: ReferenceRun, runs: RoundedRuns
    ) -> LeftState:
        """Return what a run left in the inputs that it changes."""
        names = self._program_names()

        def left(made: Mapping[str, HostArray]) -> dict[str, HostArray]:
            return {name: made[output] for output, name in graph.updates.items()}

        library = {name: reference.changed[names[name]] for name in graph.updates.values()}
        rounded = RoundedRuns(left(runs.exact), tuple(map(left, runs.rounded)))
        return LeftState(self.entry, left(outputs), library, rounded)


def _at_extents(graph: Graph, bundle: Bundle, inputs: Mapping[str, HostArray]) -> Graph:
    """Return the graph of a bundle with the extents that these inputs choose for its symbolic dims."""
    from spyrec.runtime.inputs.binding import chosen_extents, expected_inputs

    extents = chosen_extents(inputs, expected_inputs(bundle.manifest), bundle.manifest.symbolic_dims)
    if not extents:
        return graph
    found, stored = graph_of_bundle(bundle, extents)
    return replace(found, constants={**found.constants, **{name: graph.constants[name] for name in stored}})


def guilty_module(graph: Graph, bundle: Bundle, inputs: Mapping[str, HostArray]) -> str | None:
    """Return the path of the module whose operation the device computes wrongly, ``None`` if all are right.

    Of a bundle that cannot be bisected, as the host computes some of it, the last results of all modules are checked.
    """
    try:
        found = run(bundle, inputs, RunOptions(bisect=True)).bisect
    except SpyrecError as error:
        if error.diagnostics[0].code != "SPY0786":
            raise
        return _first_wrong_module(graph, inputs)
    if found is None or found.divergence is None:
        return None
    place = found.divergence.location.model
    return found.divergence.node if place is None else place.module


def _first_wrong_module(graph: Graph, inputs: Mapping[str, HostArray]) -> str | None:
    """Return the first module whose last result is not within its bound, in a graph that has them all as outputs."""
    last = _last_results(graph)
    shown = replace(graph, outputs=tuple(dict.fromkeys((*graph.outputs, *last.values()))))
    found = run(compile_graph(shown), inputs, RunOptions(check=True)).check
    assert found is not None
    return next((module for module, name in last.items() if not found[name].ok), None)


def _last_results(graph: Graph) -> dict[str, str]:
    """Return what each module computes last, by its path, but for what the host computes beforehand."""
    last: dict[str, str] = {}
    for node in graph.nodes:
        if isinstance(node.origin, Location) and node.origin.model is not None and not node.on_host:
            module = node.origin.model.module
            last.pop(module, None)  # in the order in which modules end
            last[module] = node.outputs[0]
    return last


def differing_module(
    graph: Graph, inputs: Mapping[str, HostArray], modules: Mapping[str, HostArray], tolerance: float
) -> str | None:
    """Return the first module whose last result the graph, in float64, has otherwise than the model's library.

    ``modules``: these results by path.  ``None`` where none differs by more than ``tolerance``, or none is known.
    """
    values = every_value(graph, inputs)
    for module, name in _last_results(graph).items():
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
