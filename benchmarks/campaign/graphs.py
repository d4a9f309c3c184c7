"""Cases that are graphs: against the float64 reference, tiled, planned and executed in several ways.

Each case holds the graph's object, the seed of its inputs' numbers, and the options; what the tests of the suite hold
of random graphs is held here of as many as there is time for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import cast
from zlib import crc32

import numpy as np
import numpy.typing as npt

import spyrec
from benchmarks.campaign.verdicts import Case, Verdict, WrongResultError, verdict_of
from spyrec import CompileOptions, RunOptions
from spyrec.diagnostics.json_reading import JsonValue
from spyrec.front import emit
from spyrec.hardware.dtypes import DType
from spyrec.ir.evaluate import evaluate
from spyrec.ir.kernel import KernelGraph
from tests.support.both_engines import bundle_memory, differing
from tests.support.graphs import Arrays, JsonObject, read
from tests.support.larger_inputs import larger_inputs
from tests.support.planned_runs import planned, reorders_sums, small_target, sums_in_tiles
from tests.support.random_chains import random_small_graph
from tests.support.random_graphs import VIEW_STEPS, random_graph
from tests.support.random_loops import looped_graph

_MOST_SUPERDSCS = 60
"""Of a bundle that the defining engine executes, which is slow."""

_PLANNERS = ("none", "best-fit", "cpsat")


def numbers_of(data: JsonObject, seed: int) -> Arrays:
    """Return the inputs of a graph by name: eighths, so that comparisons tie, the same for a name, shape and seed."""
    graph = read(data)
    return {name: _numbers(name, graph.type_of(name).shape, graph.type_of(name).dtype, seed) for name in graph.inputs}


def _numbers(name: str, shape: tuple[int, ...], dtype: DType, seed: int) -> npt.NDArray[np.generic]:
    generator = np.random.default_rng([seed, crc32(name.encode())])
    numbers = np.asarray(np.round(generator.standard_normal(shape) * 8) / 8)
    if dtype is DType.BOOL:
        return numbers < 0
    return (numbers if dtype.is_float else np.abs(numbers)).astype(dtype.carrier)


def graph_of(case: Case) -> JsonObject:
    """Return the graph's object of a case."""
    return cast("JsonObject", case["graph"])


def _case(graph: object, seed: int, options: Mapping[str, JsonValue]) -> Case:
    return {"graph": cast("JsonValue", graph), "numbers": seed, "options": dict(options)}


def _compile_options(case: Case, *names: str) -> CompileOptions:
    options = cast("Mapping[str, JsonValue]", case["options"])
    chosen = {name: options[name] for name in names if name in options}
    found = replace(CompileOptions(), **chosen)  # pyright: ignore[reportArgumentType] -- names and types are make's
    return replace(found, target=small_target(cast("int", options["sticks"]))) if "sticks" in options else found


def _option(case: Case, name: str, default: JsonValue) -> JsonValue:
    return cast("Mapping[str, JsonValue]", case["options"]).get(name, default)


def _judged(rule: Callable[[Case, JsonObject, Arrays], None]) -> Callable[[Case], Verdict]:
    """Return the trial of a rule that raises where it does not hold."""

    def trial(case: Case) -> Verdict:
        data = graph_of(case)
        return verdict_of(lambda: rule(case, data, numbers_of(data, cast("int", case["numbers"]))))

    return trial


def _bytes_of(outputs: Mapping[str, npt.NDArray[np.generic]]) -> dict[str, bytes]:
    return {name: np.ascontiguousarray(values).tobytes() for name, values in outputs.items()}


def _require_same(rule: str, one: Mapping[str, bytes], other: Mapping[str, bytes], said: str) -> None:
    names = [name for name in one if one[name] != other[name]]
    if names:
        raise WrongResultError(rule, f'output "{names[0]}" has other bits {said}')


def _require_right(result: spyrec.RunResult, said: str) -> None:
    """Require that every output is as near its float64 reference as ``--check`` demands."""
    for name, report in (result.check or {}).items():
        if not report.ok:
            count = f"{report.failed_elements} of {report.element_count} elements"
            raise WrongResultError(
                "bound", f'output "{name}": {count} are farther off than their formats explain{said}'
            )
    if result.sanitizer:
        raise WrongResultError("sanitizer", f"{result.sanitizer[0]}")


# --- against the reference --------------------------------------------------------------------------------------------


def make_reference(seed: int) -> Case:
    """Return a graph of the whole catalogue, of views, or of loops, and how it is compiled and executed."""
    random = Random(seed)  # noqa: S311 -- no secret
    options: dict[str, JsonValue] = {}
    draw = random.random()
    if draw < 0.6:
        graph, _ = random_graph(seed, random.randint(2, 9))
    elif draw < 0.8:
        graph, _ = random_graph(seed, random.randint(4, 10), VIEW_STEPS)
        options["exact"] = True
    else:
        graph, _ = looped_graph(seed, random.randint(3, 8))
    drawn: dict[str, tuple[JsonValue, JsonValue]] = {
        "cores": (None, random.choice((1, 2, 5, 7, 16))),
        "symbolic_args": (True, False),
        "fixed_io_layouts": (False, True),
        "numerics": ("dl16", "f32"),
        "auto_tile": (True, False),
        "symbolic_strides": (False, True),
    }
    options |= {name: other for name, (_, other) in drawn.items() if random.random() < 0.3}
    if "symbolic_args" in options:
        options.pop("symbolic_strides", None)  # baked addresses take no strides, and are one iteration's
        options["loops"] = "unroll"
    return _case(graph, seed, options)


def _hold_reference(case: Case, data: JsonObject, arrays: Arrays) -> None:
    names = ("cores", "symbolic_args", "fixed_io_layouts", "auto_tile", "symbolic_strides", "loops")
    bundle = spyrec.compile(data, _compile_options(case, *names))
    numerics = str(_option(case, "numerics", "dl16"))
    result = spyrec.run(bundle, arrays, RunOptions(numerics=numerics, check=True))
    _require_right(result, "")
    if _option(case, "exact", False):
        for name, values in evaluate(read(data), arrays).items():
            if not np.array_equal(result.outputs[name].astype(np.float64), values.astype(np.float64)):
                raise WrongResultError("moved", f'output "{name}" is not what was moved there')


try_reference = _judged(_hold_reference)


# --- tiled against untiled --------------------------------------------------------------------------------------------


def make_loops(seed: int) -> Case:
    """Return a graph with loops; every other one is compiled for other cores or scratchpads."""
    random = Random(seed)  # noqa: S311 -- no secret
    graph, _ = looped_graph(seed, random.randint(3, 9))
    options: dict[str, JsonValue] = {}
    if random.random() < 0.4:
        options["cores"] = random.choice((1, 3, 8))
    if random.random() < 0.4:
        options["sticks"] = random.choice((4, 16, 64, 512))
    return _case(graph, seed, options)


def _hold_loops(case: Case, data: JsonObject, arrays: Arrays) -> None:
    """Bit for bit where no sum is reordered, else within the bounds; kept loops equal unrolled ones."""
    options = _compile_options(case, "cores")
    graph = planned(data, options)
    kept = spyrec.run(emit(graph, options), arrays, RunOptions(check=True))
    _require_right(kept, " in tiles")
    if not graph.loops:
        return
    unrolled = spyrec.run(emit(graph, replace(options, loops="unroll")), arrays)
    _require_same("unrolled", _bytes_of(kept.outputs), _bytes_of(unrolled.outputs), "where its loops are unrolled")
    whole = planned({name: value for name, value in data.items() if name != "loops"}, options)
    if not _may_reorder(graph) and not _may_reorder(whole):
        plain = spyrec.run(emit(whole, options), arrays)
        _require_same("tiled", _bytes_of(kept.outputs), _bytes_of(plain.outputs), "without loops")


def _may_reorder(graph: KernelGraph) -> bool:
    return reorders_sums(graph) or (bool(graph.loops) and sums_in_tiles(graph))


try_loops = _judged(_hold_loops)


def make_launch(seed: int) -> Case:
    """Return a chain of operations that is compiled for small shapes and executed on larger ones."""
    random = Random(seed)  # noqa: S311 -- no secret
    options: dict[str, JsonValue] = {}
    if random.random() < 0.4:
        options["symbolic_strides"] = True
    if random.random() < 0.4:
        options["tile_reductions"] = True
    if random.random() < 0.4:
        options["correction_slots"] = 2
    if random.random() < 0.3:
        options["sanitize"] = "all"
    return _case(random_small_graph(random), seed, options)


def _hold_launch(case: Case, data: JsonObject, arrays: Arrays) -> None:
    del arrays
    options = _compile_options(case, "symbolic_strides", "correction_slots", "tile_reductions")
    bundle = spyrec.compile(data, options)
    source = Random(cast("int", case["numbers"]))  # noqa: S311 -- no secret
    inputs = larger_inputs(source, bundle.manifest)
    sanitize = cast("str | None", _option(case, "sanitize", None))
    _require_right(spyrec.run(bundle, inputs, RunOptions(check=True, sanitize=sanitize)), " of a launch in tiles")


try_launch = _judged(_hold_launch)


# --- planners against each other --------------------------------------------------------------------------------------


def make_planners(seed: int) -> Case:
    """Return a graph, two planners for its scratchpads, two choices of cores and tiles."""
    random = Random(seed)  # noqa: S311 -- no secret
    graph, _ = random_graph(seed, random.randint(2, 7)) if random.random() < 0.5 else looped_graph(seed, 5)
    options: dict[str, JsonValue] = {
        "planners": list(random.sample(_PLANNERS, 2)),
        "tiles": [random.random() < 0.5, True],
        "division": [None, random.choice((None, 1, 4, 32))],
    }
    if random.random() < 0.7:
        options["sticks"] = random.choice((2, 8, 32, 128))
    return _case(graph, seed, options)


def _hold_planners(case: Case, data: JsonObject, arrays: Arrays) -> None:
    options = cast("Mapping[str, list[JsonValue]]", case["options"])
    base = _compile_options(case)
    found: list[tuple[KernelGraph, dict[str, bytes]]] = []
    for planner, tiles, cores in zip(options["planners"], options["tiles"], options["division"], strict=True):
        chosen = replace(base, lx_planner=str(planner), auto_tile=bool(tiles), cores=cast("int | None", cores))
        graph = planned(data, chosen)
        result = spyrec.run(emit(graph, chosen), arrays, RunOptions(check=True))
        _require_right(result, f" with planner {planner}")
        found.append((graph, _bytes_of(result.outputs)))
    if not any(_may_reorder(graph) for graph, _ in found):
        _require_same("planners", found[0][1], found[1][1], f"with {options['planners']}")


try_planners = _judged(_hold_planners)


# --- the emulator against its definition ------------------------------------------------------------------------------


def make_engines(seed: int) -> Case:
    """Return a graph that both engines execute."""
    random = Random(seed)  # noqa: S311 -- no secret
    options: dict[str, JsonValue] = {}
    if random.random() < 0.5:
        options["cores"] = random.choice((1, 3, 8))
    if random.random() < 0.3:
        options["symbolic_args"] = False
    if random.random() < 0.4:
        options["numerics"] = random.choice(("ieee", "f32"))
    if random.random() < 0.6:
        graph, _ = random_graph(seed, random.randint(2, 6))
    else:
        graph, _ = looped_graph(seed, random.randint(2, 4))
        has_baked = options.get("symbolic_args") is False  # addresses that a kept loop cannot step
        options["loops"] = "unroll" if has_baked else random.choice(("keep", "unroll"))
    return _case(graph, seed, options)


def _hold_engines(case: Case, data: JsonObject, arrays: Arrays) -> None:
    bundle = spyrec.compile(data, _compile_options(case, "cores", "symbolic_args", "loops"))
    if sum(len(item.superdscs) for item in bundle.programs) >= _MOST_SUPERDSCS:
        return
    numerics = str(_option(case, "numerics", "dl16"))
    fast, stats = bundle_memory(bundle, arrays, RunOptions(numerics=numerics))
    defined, other = bundle_memory(bundle, arrays, RunOptions(numerics=numerics, engine="reference"))
    found = differing(fast, defined)
    if found:
        name, count = next(iter(found.items()))
        raise WrongResultError("engines", f"{count} bytes of {name} are not what the definition leaves there")
    if stats != other:
        raise WrongResultError("counters", f"the engines count differently: {stats} and {other}")


try_engines = _judged(_hold_engines)
