"""One decoder block of Granite 3.3 8B at its published size, compiled and run: 200 million weights, 51 Gflop.

``--check`` would take half a minute here; the narrow block (``tests/test_examples.py``) has it, element by element.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest

import spyrec
from examples.granite_block import make_graph
from spyrec.front import OpenedBundle
from spyrec.ir.reader import read_graph_data
from tests.support.granite import Weights, decoder_block
from tests.support.runs import ready

SHAPE = make_graph.FULL
Singles = npt.NDArray[np.float32]


@dataclass(frozen=True)
class FullBlock:
    """The block on a device, what it was given and what it gave in its first run."""

    run: OpenedBundle
    weights: Weights
    x: npt.NDArray[np.float16]
    block_out: Singles


def compiled_without_weights() -> spyrec.Bundle:
    """Compile the block with rows of numbers of its own in place of each constant's file: nothing is written anywhere.

    Equal constants would become one argument, and one number all over is no argument at all.
    """
    graph = json.loads(make_graph.graph_text(SHAPE))
    for constant in graph["constants"]:
        del constant["data"]
        constant["value"] = 1
    read = read_graph_data(graph)
    constants = {
        name: replace(data, array=_rows(number, read.type_of(name).shape))
        for number, (name, data) in enumerate(read.constants.items())
    }
    return spyrec.compile(replace(read, constants=constants))


def _rows(first: int, shape: tuple[int, ...]) -> npt.NDArray[np.float16]:
    return np.broadcast_to(np.arange(first, first + shape[-1]).astype(np.float16), shape)


def block_out(run: OpenedBundle, x: npt.NDArray[np.float16]) -> Singles:
    """Run the block and return its output, each value exact."""
    return run.run({"x": x}).outputs["block_out"].astype(np.float32)


@pytest.fixture(scope="module")
def full() -> Generator[FullBlock]:
    weights = make_graph.constant_values(SHAPE)
    bundle = compiled_without_weights()
    assert weights.keys() <= set(bundle.constants)
    numbers = {name: weights.get(name, bundle.constants[name]) for name in bundle.constants}
    drawn = np.random.default_rng(1).standard_normal((1, SHAPE.sequence, SHAPE.hidden), dtype=np.float32)
    x = drawn.astype(np.float16)
    with ready(replace(bundle, constants=numbers)) as run:
        yield FullBlock(run, weights, x, block_out(run, x))


def test_the_full_block_gives_what_the_model_is_defined_to_give(full: FullBlock) -> None:
    x = full.x[0].astype(np.float32)
    want = decoder_block(SHAPE, x, full.weights)
    added = want - x
    error = full.block_out[0] - want
    typical = float(np.linalg.norm(added)) / added.size**0.5
    # Every weight and every stored value is rounded to 9 bits of fraction, by at most 2^-10 of its size; the longest
    # path has some 30 of them, which add up like independent errors: sqrt(30) * 2^-10 = 0.5 % of what the block adds.
    assert np.linalg.norm(error) < 2**-7 * np.linalg.norm(added)
    # And no element hides behind the others: one taken from elsewhere is off by about the size of all.
    assert np.abs(error).max() < 2**-3 * typical


def test_a_second_run_of_the_full_block_gives_the_same_bits(full: FullBlock) -> None:
    assert np.array_equal(block_out(full.run, full.x), full.block_out)
