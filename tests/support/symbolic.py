"""Random looped graphs with one of their dims symbolic."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np
import numpy.typing as npt

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.diagnostics import SpyrecError
from tests.support.graphs import JsonObject

Arrays = Mapping[str, npt.NDArray[np.generic]]

REFUSED_HERE = {"SPY0425", "SPY0426", "SPY0134"}
"""What a random graph may run into: sums without whole tiles, slices, and ``tiles`` of a symbolic dim."""


def _levels(loops: object) -> Iterator[JsonObject]:
    for item in cast("list[object]", loops):
        if isinstance(item, dict):
            level = cast("JsonObject", item)
            yield level
            yield from _levels(level["body"])


def with_symbolic_dim(data: JsonObject, rng: random.Random) -> tuple[JsonObject, str]:
    """Return the graph with one dim, a tiled one where there is one, symbolic."""
    dims = dict(cast("dict[str, int]", data["dims"]))
    tiled = [
        (name, cast("int", level["tile_size"]))
        for level in _levels(data["loops"])
        if "tile_size" in level
        for name in cast("list[str]", level["dim"] if isinstance(level["dim"], list) else [level["dim"]])
    ]
    name, tile = rng.choice(tiled) if tiled else (rng.choice(list(dims)), 1)
    whole = dims[name] // tile * tile
    step = tile if whole == dims[name] and rng.random() < 0.5 else 1
    symbolic = {**dims, name: {"min": 1, "max": dims[name], "multiple_of": step}}
    return {**data, "dims": symbolic}, name


def compiled_or_refused(data: JsonObject) -> Bundle | None:
    """Return the bundle, ``None`` where what the graph asks is refused for its symbolic dim."""
    try:
        return spyrec.compile(data)
    except SpyrecError as error:
        codes = {item.code for item in error.diagnostics}
    assert codes <= REFUSED_HERE
    return None


def cut_inputs(data: JsonObject, arrays: Arrays, name: str, extent: int) -> Arrays:
    """Return the inputs with ``extent`` elements along a dim."""
    shapes = {
        str(item["name"]): cast("list[object]", item["shape"]) for item in cast("list[JsonObject]", data["inputs"])
    }
    return {
        key: array[tuple(slice(extent) if dim == name else slice(None) for dim in shapes[key])]
        for key, array in arrays.items()
    }
