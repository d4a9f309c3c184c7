"""Every number of a conversion table or layout altered, hashes renewed: it is refused, or means what it meant."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spyrec
from spyrec import CompileOptions, RunOptions
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.conversion_checks import check_copy
from spyrec.cli import main
from spyrec.compare.validate_path import validate_path
from spyrec.diagnostics import DiagnosticSink, Location, SpyrecError
from spyrec.layout.conversion_table import CopyNest, DataConversionInfo
from tests.handmade import add_bundle
from tests.support.examples import examples
from tests.support.graphs import JsonObject, graph_data, node, random_arrays, tensor

_RAGGED = graph_data(
    [tensor("x", 3, 70), tensor("w", 70, 5)],
    [node("p", "mm", "x", "w"), node("s", "softmax", "p", dim=-1), node("y", "to", "s", dtype="float32")],
    ["y"],
    constants=[tensor("c", 5, value=[1, 2, 3, 4, 5])],
)
_PERMUTED = graph_data(
    [tensor("x", 3, 5, 70, layout={"dim_order": [2, 0, 1]}), tensor("b", 3, 5, 70, dtype="bool")],
    [node("y", "where", "b", "x", 0.5)],
    ["y"],
)
_TWO_PROGRAMS = graph_data(
    [tensor(f"x{number}", 2, 64) for number in range(9)],
    [node("y", "cat", *(f"x{number}" for number in range(9)), dim=0), node("z", "neg", "y")],
    ["z"],
)
_SUMS = graph_data([tensor("x", 4, 128)], [node("y", "sum", "x", dim=[0])], ["y"])

_CASES = {
    "ragged": (_RAGGED, CompileOptions()),
    "permuted": (_PERMUTED, CompileOptions()),
    "two programs": (_TWO_PROGRAMS, CompileOptions()),
    "tiled sums": (_SUMS, CompileOptions(tile_reductions=True, symbolic_strides=True)),
}
_LAYOUT_KEYS = frozenset({"shape", "host_strides", "device_size", "stride_map"})


@dataclass(frozen=True)
class _Change:
    file: str
    path: tuple[str | int, ...]
    value: int


def _numbers(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], int]]:
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _numbers(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _numbers(item, (*path, index))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path, value


def _others(number: int) -> list[int]:
    """Return a number's neighbour, and 0 or the word for nothing."""
    return [number + 1, 0 if number else -1]


def _changes(root: Path) -> Iterator[_Change]:
    for path in sorted((root / "dci").rglob("*.json")):
        for place, number in _numbers(json.loads(path.read_text())):
            yield from (_Change(str(path.relative_to(root)), place, other) for other in _others(number))
    for place, number in _numbers(json.loads((root / "manifest.json").read_text())):
        if place[0] in {"arguments", "tile_contract"} and not _LAYOUT_KEYS.isdisjoint(place):
            yield from (_Change("manifest.json", place, other) for other in _others(number))


class _Altered:
    """A bundle's directory in which one number at a time is another one, with the hashes of what it holds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._before = {path: path.read_bytes() for path in [root / "manifest.json", *(root / "dci").rglob("*.json")]}

    def apply(self, change: _Change) -> None:
        path = self.root / change.file
        data = json.loads(path.read_text())
        here = data
        for token in change.path[:-1]:
            here = here[token]
        here[change.path[-1]] = change.value
        path.write_text(json.dumps(data))
        if change.file != "manifest.json":
            manifest = json.loads((self.root / "manifest.json").read_text())
            manifest["files"][change.file] = hashlib.sha256(path.read_bytes()).hexdigest()
            (self.root / "manifest.json").write_text(json.dumps(manifest))

    def restore(self, change: _Change) -> None:
        for path in (self.root / change.file, self.root / "manifest.json"):
            path.write_bytes(self._before[path])


def _bits(root: Path, data: JsonObject) -> dict[str, bytes]:
    result = spyrec.run(Bundle.load(root), random_arrays(data), RunOptions(sanitize="all"))
    assert result.is_ok
    return {name: array.tobytes() for name, array in result.outputs.items()}


@pytest.mark.parametrize(("data", "options"), _CASES.values(), ids=_CASES)
def test_no_number_of_a_layout_or_table_can_be_another_one(
    data: JsonObject, options: CompileOptions, tmp_path: Path
) -> None:
    root = tmp_path / "b"
    spyrec.compile(data, options).save(root)
    expected = _bits(root, data)
    altered = _Altered(root)
    accepted: list[_Change] = []
    changes = _some(list(_changes(root)), 70 if data is _RAGGED else 60)
    for change in changes:
        altered.apply(change)
        try:
            Bundle.load(root)
        except SpyrecError:
            pass
        else:
            accepted.append(change)
            assert _is_harmless(change, root), change
            if len(accepted) <= 3:
                assert _bits(root, data) == expected, change
        altered.restore(change)
    assert len(changes) > 50
    assert len(accepted) < len(changes) / 3


def _some(changes: list[_Change], most: int) -> list[_Change]:
    """Return so many of them, evenly spread; all of them in a larger profile."""
    factor = max(1, settings().max_examples // 100)
    return changes[:: max(1, len(changes) // (most * factor))]


def _is_harmless(change: _Change, root: Path) -> bool:
    """Whether a number has no meaning: a stride of what has one element, or no bytes of its own in a table."""
    data = json.loads((root / change.file).read_text())
    here = data
    for token in change.path[:-2]:
        here = here[token]
    key, index = change.path[-2:]
    if change.file == "manifest.json":
        extents = {"host_strides": "shape", "stride_map": "device_size"}.get(str(key))
        return extents is not None and here[extents][index] == 1
    return key in {"stride_src_", "stride_dst_"} and here["size_"][index] == 1


@pytest.mark.parametrize("key", ["size_", "stride_dst_"])
def test_check_and_run_refuse_an_altered_table_with_and_without_hashes(key: str, tmp_path: Path) -> None:
    root = tmp_path / "b"
    spyrec.compile(_RAGGED).save(root)
    change = _Change("dci/x.h2d.json", ("dcsi_", 0, key, 0), 63)
    _Altered(root).apply(change)
    verdict = validate_path(root)
    assert [item.code for item in verdict.diagnostics] == ["SPY0659"]
    place = verdict.diagnostics[0].location
    assert place is not None
    assert (place.pointer, Path(str(place.file)).name) == (f"/dcsi_/0/{key}", "x.h2d.json")
    outputs = tmp_path / "y.npz"
    for more in ([], ["--no-verify"]):
        assert main(["run", str(root), "--random", "1", "--outputs", str(outputs), *more]) == 1
    assert not outputs.exists()


def test_an_intermediate_in_a_layout_that_does_not_hold_it_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "b"
    spyrec.compile(_TWO_PROGRAMS).save(root)
    manifest = json.loads((root / "manifest.json").read_text())
    (root / "manifest.json").write_text(json.dumps({**manifest, "tile_contract": None}))
    index = next(place for place, item in enumerate(manifest["arguments"]) if item["role"] == "intermediate")
    altered = _Altered(root)
    item = manifest["arguments"][index]
    wrong = (("stride_map", "device_size", 7), ("host_strides", "shape", 7), ("host_strides", "shape", 0))
    for key, extents, value in wrong:
        moving = next(dim for dim, extent in enumerate(item[extents]) if extent > 1)
        change = _Change("manifest.json", ("arguments", index, key, moving), value)
        altered.apply(change)
        (found,) = validate_path(root).diagnostics
        assert (found.code, found.location is not None) == ("SPY0660", True)
        assert str(found.location.pointer).startswith(f"/arguments/{index}")  # pyright: ignore[reportOptionalMemberAccess]
        altered.restore(change)


_LAYOUTS = [
    spyrec.DeviceLayout.default((3, 70), "float16"),
    spyrec.DeviceLayout.default((5, 3, 64), "float16", dim_order=(1, 0, 2)),
    spyrec.DeviceLayout.default((130,), "float32"),
]


def _copied(table: DataConversionInfo) -> dict[int, int]:
    """Walk the loops of a table one element at a time: destination to source."""
    found: dict[int, int] = {}
    for nest in table.nests:
        for at in np.ndindex(*nest.sizes):
            to = nest.destination_offset + sum(map(math.prod, zip(at, nest.destination_strides)))
            found[to] = nest.source_offset + sum(map(math.prod, zip(at, nest.source_strides)))
    return found


@examples(150)
@given(
    layout=st.sampled_from(_LAYOUTS),
    way=st.sampled_from(["h2d", "d2h"]),
    rng=st.randoms(use_true_random=False),
    is_altered=st.booleans(),
)
def test_a_table_is_taken_where_it_copies_the_same_elements_however_its_nests_are_cut(
    layout: spyrec.DeviceLayout,
    way: str,
    rng: random.Random,
    is_altered: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    wanted = layout.dci(way)
    nests = [_recut(nest, rng) for nest in wanted.nests]
    nests = [part for cut in nests for part in cut]
    rng.shuffle(nests)
    if is_altered:
        place = rng.randrange(len(nests))
        nests[place] = CopyNest(
            nests[place].sizes,
            nests[place].source_strides,
            nests[place].destination_strides,
            nests[place].source_offset + rng.choice([0, 1, 64]),
            nests[place].destination_offset,
        )
    shape, strides = layout.host_shape, layout.host_strides
    (argument, *_) = add_bundle(tmp_path_factory.mktemp("b")).manifest.arguments
    data = wanted.to_json() | {"dcsi_": [nest.to_json() for nest in nests]}
    table = DataConversionInfo.from_json(json.loads(json.dumps(data)))
    sink = DiagnosticSink()
    own = spyrec.DeviceLayout(layout.device_size, layout.stride_map, layout.device_dtype, shape, strides)
    check_copy(argument, own, table, Location("file", ""), sink)
    assert bool(sink.errors) == (_copied(table) != _copied(wanted))


def _recut(nest: CopyNest, rng: random.Random) -> list[CopyNest]:
    """Cut a nest in two along one loop, and write its loops in another order."""
    order = list(range(len(nest.sizes)))
    rng.shuffle(order)
    dim = rng.choice(order)
    at = rng.randrange(nest.sizes[dim] + 1)
    parts: list[CopyNest] = []
    for first, size in ((0, at), (at, nest.sizes[dim] - at)):
        sizes = [size if place == dim else nest.sizes[place] for place in order]
        parts.append(
            CopyNest(
                tuple(sizes),
                tuple(nest.source_strides[place] for place in order),
                tuple(nest.destination_strides[place] for place in order),
                nest.source_offset + first * nest.source_strides[dim],
                nest.destination_offset + first * nest.destination_strides[dim],
            )
        )
    return [part for part in parts if min(part.sizes) > 0]
