"""The worked example of the coarse-tiling design: in the default layout, and in that of its numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spyrec
from spyrec.bundle.bundle import Bundle
from spyrec.bundle.program import AffineApply, Constant, For, SdscExecute, Statement
from spyrec.bundle.superdsc import Component
from tests.support.tiled_addresses import calls_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STEPS = {"seed_tiling_default": (65_536, 2_097_152), "seed_tiling_rows": (4_194_304, 2_048)}
"""Bytes from one tile of rows to the next, and from one tile of columns to the next."""

ROWS, COLUMNS = 1024, 4096


def _bundle(name: str) -> Bundle:
    return spyrec.compile(EXAMPLES / name / "graph.json")


def _bounds(loop: For, body: tuple[Statement, ...]) -> tuple[int, int, int]:
    constants = {item.result: item.value for item in body if isinstance(item, Constant)}
    return constants[loop.lower], constants[loop.upper], constants[loop.step]


@pytest.mark.parametrize("name", STEPS)
def test_the_bundle_has_the_structure_of_the_design(name: str) -> None:
    """Two nested loops of 2 and 4, add then mul inside, one map of their steps, an address for what is in memory."""
    (program,) = _bundle(name).programs
    assert [item.coefficients for item in program.program.maps] == [STEPS[name]]
    body = program.program.body
    (outer,) = (item for item in body if isinstance(item, For))
    (inner,) = outer.body
    assert isinstance(inner, For)
    assert (_bounds(outer, body), _bounds(inner, body)) == ((0, 2, 1), (0, 4, 1))
    assert not any(isinstance(item, SdscExecute) for item in body)
    executes = [item for item in inner.body if isinstance(item, SdscExecute)]
    assert [program.superdscs[item.sdsc_filename].op_func_name for item in executes] == ["add", "mul"]
    applies = [item for item in inner.body if isinstance(item, AffineApply)]
    assert {item.dims for item in applies} == {(outer.induction, inner.induction)}
    assert len(applies) == sum(len(item.operands) for item in executes) == 4 * 32


@pytest.mark.parametrize("name", STEPS)
def test_the_intermediate_is_one_tile_in_lx_at_address_0(name: str) -> None:
    (program,) = _bundle(name).programs
    add, mul = program.superdscs.values()
    assert [item.component for item in add.operands] == [Component.HBM, Component.HBM, Component.LX]
    assert [item.component for item in mul.operands] == [Component.LX, Component.HBM, Component.HBM]
    for operand in (add.operands[2], mul.operands[0]):
        assert set(operand.start_addresses) == {0}
        assert not operand.is_symbolic
    assert add.iteration == mul.iteration
    assert sorted(add.iteration.values()) == [512, 1024]
    assert len(add.core_ids) == 32


@pytest.mark.parametrize("name", STEPS)
def test_tiles_begin_at_their_first_element(name: str) -> None:
    """Counted by hand: element (r, c) lies in column of sticks c // 64 and row r, or the other way round."""
    (program,) = _bundle(name).programs
    found = {
        call.rounds: min(call.symbols.values()) for call in calls_of(program.program) if call.file == "sdsc_0.json"
    }
    base = found[0, 0]
    for (row_tile, column_tile), address in found.items():
        row, stick = 512 * row_tile, 1024 * column_tile // 64
        sticks = stick * ROWS + row if name == "seed_tiling_default" else row * COLUMNS // 64 + stick
        assert address - base == 128 * sticks


@pytest.mark.parametrize("name", STEPS)
def test_the_example_computes_what_it_does_without_loops(name: str) -> None:
    rng = np.random.default_rng(5)
    inputs = {key: rng.standard_normal((ROWS, COLUMNS)).astype(np.float16) for key in "abc"}
    tiled = spyrec.run(_bundle(name), inputs).outputs["z"]
    plain = spyrec.run(_bundle("seed_add_mul"), inputs).outputs["z"]
    assert tiled.tobytes() == plain.tobytes()
