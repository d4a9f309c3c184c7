"""Random unequal divisions of random operations, and random relayouts by data DSCs.

What cores do together is what one core does alone: every byte of the result is the same, by both engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyrec.bundle.data_dsc import Piece
from spyrec.bundle.superdsc import SuperDsc
from spyrec.bundle.superdsc_reader import parse_superdsc
from spyrec.bundle.superdsc_writer import to_bytes
from spyrec.device_ops import DEVICE_OPERATIONS
from spyrec.device_ops.record import Family
from spyrec.diagnostics import SpyrecError
from spyrec.runtime.device import ArgumentTable, TableEntry
from tests.emulator.builders import DL16, Operation, program_of, superdsc_of
from tests.emulator.test_data_dscs import only_moving
from tests.emulator.test_operations import BUILDERS
from tests.properties.test_reference import launched
from tests.support.both_engines import Launched
from tests.support.pieces import boxes, data_dsc, piece, size_bytes, tensor
from tests.support.unequal import SHARE, WHOLE, WINDOW, divided

Bytes = npt.NDArray[np.uint8]

EXAMPLES = max(2, 3 * (settings().max_examples or 0) // 10)  # each is executed by both engines
_SEEDS = st.integers(0, 1 << 30)
_OPS = [
    "add",
    "exp",
    "identity",
    "sub",
    "sum",
    "maxnonstick",
    "batchmatmul",
    "dl16tofp32",
    "ReStickifyOpHBM",
    "exx2",
    "topkvalue",
]


def random_shares(source: Random, extent: int, unit: int) -> tuple[int, ...]:
    """Return 1 to 4 shares of whole units, as a rule unequal."""
    units = extent // unit
    count = source.randint(1, min(4, units))
    cuts = sorted(source.sample(range(1, units), count - 1))
    return tuple((b - a) * unit for a, b in zip([0, *cuts], [*cuts, units], strict=True))


def undivided(op: str, seed: int) -> Operation:
    made = BUILDERS[DEVICE_OPERATIONS[op].family](op, np.random.default_rng(seed))
    return replace(made, dims={dim: (extent, 1) for dim, (extent, _) in made.dims.items()})


@pytest.mark.parametrize("op", _OPS)
@settings(max_examples=EXAMPLES)
@given(seed=_SEEDS)
def test_unequal_cores_store_what_one_core_stores(op: str, seed: int) -> None:
    source, operation = Random(seed), undivided(op, seed)
    alone = superdsc_of(operation)
    sticks = {tensor.stick for tensor in operation.tensors}
    sizes = [tensor.data_format.elements_per_stick or 1 for tensor in operation.tensors]
    shares = {
        dim: random_shares(source, extent, max(sizes) if dim in sticks else 1)
        for dim, (extent, _) in operation.dims.items()
        if extent % (max(sizes) if dim in sticks else 1) == 0 and source.random() < 0.7
    }
    cores = int(np.prod([len(own) for own in shares.values()]))
    if cores > 32:
        shares = dict(list(shares.items())[:1])
    form = source.choice([WHOLE, WINDOW, SHARE] if not any(t.gap for t in operation.tensors) else [WHOLE])
    together = divided(alone, shares, form)
    launch = launched(operation, np.random.default_rng(seed))
    try:
        read = parse_superdsc(to_bytes(together))
        changed = replace(launch, superdscs={"sdsc_0.json": read})
        found = changed.memory("fast")[0]
    except SpyrecError as error:
        if len(together.dscs) > 1 and {item.code for item in error.diagnostics} != {"SPY0756"}:
            raise
        return
    changed.assert_equal()
    wanted = replace(launch, superdscs={"sdsc_0.json": alone}).memory("fast")[0]
    output = f"argument {len(operation.tensors) - 1}"
    assert np.array_equal(found[output], wanted[output])


def test_enough_divisions_are_executed() -> None:
    """The generator above is no list of refusals: most of its operations are executed, with several DSCs."""
    executed = 0
    for seed in range(20):
        operation, source = undivided("add", seed), Random(seed)
        stick = operation.tensors[0].stick
        dims = [dim for dim, (extent, _) in operation.dims.items() if dim != stick and extent > 2]
        shares = {dim: random_shares(source, operation.dims[dim][0], 1) for dim in dims[:1]}
        together = divided(superdsc_of(operation), shares)
        launch = replace(launched(operation, np.random.default_rng(seed)), superdscs={"sdsc_0.json": together})
        launch.assert_equal()
        executed += len(together.dscs) > 1
    assert executed >= 5


@settings(max_examples=EXAMPLES)
@given(source=st.randoms(use_true_random=False))
def test_a_random_relayout_is_that_of_its_elements(source: Random) -> None:
    """Pieces of any sizes on any cores, through LX once or twice, to pieces in device memory: element by element."""
    extents = {"a": source.randint(1, 3), "b": source.randint(1, 5), "c": source.choice([64, 70, 128, 200])}
    dims = list(extents)
    count, cores = source.randint(1, 3), list(range(source.randint(1, 6)))
    whole = {dim: (0, extent) for dim, extent in extents.items()}
    first = tensor("x", extents, source.sample(dims, 3), source.choice(dims), [piece("all", whole, (None, 0))])
    sides = [first]
    for number in range(count):
        stick = source.choice(dims)
        found = boxes({dim: random_shares(source, extent, 1) for dim, extent in extents.items()})
        nexts = dict.fromkeys(cores, (1 + number) * 65536)
        placed: list[Piece] = []
        for key, box in enumerate(found):
            core = source.choice(cores)
            placed.append(piece(f"p{key}", box, (core, nexts[core])))
            nexts[core] += size_bytes(box, stick) + 128 * source.randint(0, 2)
        sides.append(tensor(f"l{number}", extents, source.sample(dims, 3), stick, placed))
    last_order, last_stick = source.sample(dims, 3), source.choice(dims)
    place = 0
    last: list[Piece] = []
    for key, box in enumerate(boxes({dim: random_shares(source, extent, 1) for dim, extent in extents.items()})):
        last.append(piece(f"p{key}", box, (None, (1 << 27) + place)))
        place += size_bytes(box, last_stick) // 128
    sides.append(tensor("y", extents, last_order, last_stick, last))
    moves = [data_dsc(one, other, cores, number) for number, (one, other) in enumerate(pairwise(sides))]
    rows = [[number, -1, int(number > 0), 1] for number in range(len(moves))]
    superdsc = parse_superdsc(to_bytes(only_moving(moves, dict.fromkeys(cores, rows))))
    assert isinstance(superdsc, SuperDsc)
    begin = size_bytes(whole, first.stick_dim)
    contents = np.random.default_rng(source.randint(0, 9)).integers(0, 1 << 16, begin // 2).astype(np.uint16)
    entries = tuple(
        TableEntry(f"t{i}", i, (size // 128, 64), DL16, i << 34, size) for i, size in enumerate((begin, 128 * place))
    )
    launch = Launched(program_of(), {"sdsc_0.json": superdsc}, ArgumentTable(entries), {0: contents.view(np.uint8)})
    launch.assert_equal()
    result = launch.memory("fast")[0]["argument 1"].view(np.uint16)
    for own in sides[-1].pieces:
        start = (own.places[0].start - (1 << 27)) * 64
        values = dense(result[start:], own.extents, last_order, last_stick)
        taken = dense(contents, extents, list(first.layout_dim_order), first.stick_dim)
        box = tuple(slice(own.first[dim], own.first[dim] + own.extents[dim]) for dim in dims)
        assert np.array_equal(values, taken[box])


def dense(
    memory: npt.NDArray[np.uint16], extents: Mapping[str, int], order: list[str], stick: str
) -> npt.NDArray[np.uint16]:
    """Return a dense box as an array, an axis per dim: the text of the layout in NumPy's words."""
    outer = [-(-extents[dim] // 64) if dim == stick else extents[dim] for dim in reversed(order)]
    array = memory[: int(np.prod(outer)) * 64].reshape(*outer, 64)
    place = len(order) - 1 - order.index(stick)
    array = np.moveaxis(array, -1, place + 1)
    merged = array.reshape(*outer[:place], outer[place] * 64, *outer[place + 1 :])
    names = list(reversed(order))
    axes = [names.index(dim) for dim in extents]
    whole = merged.transpose(axes)
    return whole[tuple(slice(0, extent) for extent in extents.values())]


def test_every_family_that_takes_part_is_tried() -> None:
    families = {DEVICE_OPERATIONS[op].family for op in _OPS}
    assert {Family.POINTWISE, Family.UNARY, Family.REDUCTION, Family.MATMUL, Family.CAST} <= families
