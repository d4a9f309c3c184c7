"""Random programs from seeds: graphs over the catalogue, with loops, pins and symbolic dims, and options for them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import cast

import numpy as np
import numpy.typing as npt

import spyrec
from scripts.behaviour.facts import Arrays
from tests.support.graph_files import JsonObject
from tests.support.random_chains import random_small_graph
from tests.support.random_graphs import random_graph
from tests.support.random_loops import looped_graph
from tests.support.tiling_cases import nested_case


@dataclass(frozen=True)
class Program:
    """A graph file's object with inputs of it and options.

    ``is_launched_larger``: the inputs are to be made for several tiles, from the tile contracts of the bundle.
    """

    graph: JsonObject
    arrays: Arrays
    compile_options: spyrec.CompileOptions
    numerics: str = "dl16"
    is_launched_larger: bool = False


def random_program(seed: int) -> Program:
    """Return a program: half of them without loops, a third with, the rest launched on larger tensors."""
    rng = Random(f"program {seed}")
    arrays: Arrays | None
    match seed % 20:
        case 9 | 10 | 11 | 12 | 13:
            graph, arrays = looped_graph(seed, steps=rng.choice((4, 6)))
            if rng.random() < 0.3:
                graph, arrays = with_symbolic_dim(graph, arrays, rng)
        case 14 | 15:
            graph, arrays = nested_case(seed), None
        case 16 | 17 | 18 | 19:
            graph = random_small_graph(rng)
            return Program(graph, {}, _options(rng), is_launched_larger=True)
        case _:
            graph, arrays = random_graph(seed, steps=rng.choice((3, 6, 8)))
    graph = with_pins(graph, rng)
    drawn = drawn_inputs(graph, seed) if arrays is None else arrays
    return Program(graph, drawn, _options(rng), numerics=rng.choice(("dl16", "dl16", "dl16", "ieee", "f32")))


def _options(rng: Random) -> spyrec.CompileOptions:
    symbolic_args = rng.random() < 0.75
    return spyrec.CompileOptions(
        cores=rng.choice((None, None, 1, 5, 7, 16, 32)),
        symbolic_args=symbolic_args,
        fixed_io_layouts=rng.random() < 0.2,
        loops=rng.choice(("keep", "keep", "keep", "unroll")),
        profile=rng.choice(("calibrated", "calibrated", "calibrated", "datasheet")),
        lx_planner=rng.choice(("best-fit", "best-fit", "best-fit", "none", "omnimalloc")),
        auto_tile=rng.random() < 0.8,
        correction_slots=rng.choice((1, 1, 2, 4)),
        symbolic_strides=symbolic_args and rng.random() < 0.3,
        tile_reductions=rng.random() < 0.15,
    )


def with_pins(graph: JsonObject, rng: Random) -> JsonObject:
    """Return the graph, sometimes with a pinned work division or a pinned layout somewhere."""
    nodes = [dict(item) for item in cast("list[JsonObject]", graph["nodes"])]
    inputs = [dict(item) for item in cast("list[JsonObject]", graph["inputs"])]
    if rng.random() < 0.25:
        rng.choice(nodes)["work_division"] = {f"out.{rng.choice((0, 0, 1))}": rng.choice((1, 2, 4))}
    if rng.random() < 0.2:
        chosen = rng.choice(inputs)
        rank = len(cast("list[object]", chosen["shape"]))
        chosen["layout"] = {"dim_order": rng.sample(range(rank), rank)}
    if rng.random() < 0.1:
        rng.choice(nodes)["layout"] = {"dim_order": rng.sample(range(2), 2)}
    return {**graph, "nodes": nodes, "inputs": inputs}


def without_pins(graph: JsonObject) -> JsonObject:
    """Return the graph without pins."""
    pins = ("layout", "work_division")
    return {
        **graph,
        **{
            part: [{k: v for k, v in item.items() if k not in pins} for item in cast("list[JsonObject]", graph[part])]
            for part in ("nodes", "inputs")
        },
    }


def _levels(loops: object) -> Iterator[JsonObject]:
    for item in cast("list[object]", loops):
        if isinstance(item, dict):
            level = cast("JsonObject", item)
            yield level
            yield from _levels(level["body"])


def with_symbolic_dim(graph: JsonObject, arrays: Arrays, rng: Random) -> tuple[JsonObject, Arrays]:
    """Return the graph with one dim symbolic, a tiled one where there is one, and inputs that have less of it."""
    dims = cast("dict[str, int]", graph["dims"])
    tiled = [
        (name, cast("int", level["tile_size"]))
        for level in _levels(graph["loops"])
        if "tile_size" in level
        for name in cast("list[str]", level["dim"] if isinstance(level["dim"], list) else [level["dim"]])
    ]
    name, tile = rng.choice(tiled) if tiled else (rng.choice(list(dims)), 1)
    step = tile if dims[name] % tile == 0 and rng.random() < 0.5 else 1
    extent = rng.randrange(step, dims[name] + 1, step)
    symbolic = {**dims, name: {"min": 1, "max": dims[name], "multiple_of": step}}
    shapes = {
        str(item["name"]): cast("list[object]", item["shape"]) for item in cast("list[JsonObject]", graph["inputs"])
    }
    cut = {
        key: array[tuple(slice(extent) if dim == name else slice(None) for dim in shapes[key])]
        for key, array in arrays.items()
    }
    return {**graph, "dims": symbolic}, cut


def drawn_inputs(graph: JsonObject, seed: int) -> Arrays:
    """Return eighths from -2 to 2 for the inputs of a graph whose dims are fixed."""
    dims = cast("dict[str, int]", graph.get("dims", {}))
    generator = np.random.default_rng(seed)
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    for item in cast("list[JsonObject]", graph["inputs"]):
        shape = [
            math.prod(dims[name] for name in extent.split("*")) if isinstance(extent, str) else cast("int", extent)
            for extent in cast("list[object]", item["shape"])
        ]
        arrays[str(item["name"])] = (generator.integers(-16, 17, shape) / 8).astype(str(item["dtype"]))
    return arrays


def larger_inputs(manifest: JsonObject, seed: int) -> Arrays:
    """Return arrays whose dims are as many tiles, whole ones or not, as the contracts of a bundle's manifest allow."""
    rng = Random(f"larger {seed}")
    extents: dict[str, int] = {}
    arguments = {str(item["name"]): item for item in cast("list[JsonObject]", manifest["arguments"])}
    shapes = {name: list(cast("list[int]", item["shape"] or [])) for name, item in arguments.items()}
    contracts = cast("dict[str, dict[str, JsonObject]]", manifest["tile_contract"]).get("programs", {})
    for step in cast("list[JsonObject]", manifest["plan"]):
        contract = contracts.get(str(step["program"]), {"loops": [], "arguments": []})
        for loop in cast("list[JsonObject]", contract["loops"]):
            tile = cast("int", loop["tile"])
            left_over = rng.randint(0, tile) if rng.random() < 0.25 else 0
            extents.setdefault(str(loop["name"]), tile * rng.choice((1, 1, 2, 3)) + left_over)
        bound = zip(cast("list[str]", step["arguments"]), cast("list[JsonObject]", contract["arguments"]))
        for name, argument in bound:
            for axis, loop_name in enumerate(cast("list[str | None]", argument["axes"] or [])):
                if loop_name is not None:
                    shapes[name][axis] = extents[loop_name]
    generator = np.random.default_rng(rng.getrandbits(32))
    return {
        name: generator.uniform(-1, 1, shapes[name]).astype(np.float16)
        for name in cast("list[str]", manifest["inputs"])
    }
