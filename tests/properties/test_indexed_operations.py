"""Gathers, scatters and functions of rows: fast path, definition and NumPy agree, and so do the counters."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.diagnostics import SpyrecError
from tests.codegen.builders import FP16
from tests.conformance.op_runner import decoded
from tests.support.both_engines import differing
from tests.support.examples import examples
from tests.support.indexed_operations import IndexedOperation


@examples(40)
@given(st.randoms(use_true_random=False))
def test_rows_that_an_index_names(source: Random) -> None:
    operation = IndexedOperation.random(source)
    case, want, read, written = operation.case()
    fast, stats = case.memory("fast")
    defined, other_stats = case.memory("reference")
    assert differing(fast, defined) == {}
    assert stats == other_stats
    last = len(operation.spec.args) - 1
    argument = operation.spec.args[last]
    words = fast[f"argument {last}"].view(f"u{128 // argument.device_size[-1]}").reshape(argument.device_size)
    got = decoded(words[operation.where(last)], argument.device_dtype).reshape(want.shape)
    # one rounding of exp is left; everything else is exact
    np.testing.assert_allclose(got, want, rtol=2.0**-10 if operation.op == "exp" else 0.0)
    (counted,) = stats.operations
    assert (counted.hbm_read_bytes, counted.hbm_write_bytes) == (read, written)


@pytest.mark.parametrize("scatters", [False, True])
@pytest.mark.parametrize("row", [-1, 7])
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_row_outside_of_its_table_is_refused_by_name(scatters: bool, row: int, engine: str) -> None:
    source = Random(1)
    operation = IndexedOperation.random(source)
    while operation.rows != 7 or operation.scatters != scatters or operation.symbols != ("a",):
        operation = IndexedOperation.random(source)
    rows = np.zeros(operation.sizes["a"], np.int64)
    rows[-1] = row
    case, *_ = operation.case()
    contents = {**case.contents, 0: operation.memory(0, rows.astype(np.float64))}
    with pytest.raises(SpyrecError, match=f"SPY0706.*row {row}"):
        replace(case, contents=contents).memory(engine)


GATHER = IndexedOperation(
    op="identity",
    sizes={"a": 40, "c": 100},
    rows=50,
    rank=1,
    columns=False,
    scatters=False,
    table_axes=("c", "r"),
    plain_axes=("c", "a"),
    data_format=FP16,
    exact=False,
    splits={},
    seed=1,
)


@pytest.mark.parametrize(
    "operation",
    [
        # rows outside of the columns, which torch-spyre describes as if they lay inside
        replace(GATHER, sizes={"c": 100}, rank=0, table_axes=("r", "c"), plain_axes=("c",)),
        # a dim that the table lacks, along which torch-spyre has it extend
        replace(GATHER, sizes={"a": 40, "b": 3, "c": 100}, plain_axes=("c", "b", "a")),
    ],
)
def test_what_torch_spyre_describes_wrong_is_refused_and_spyrec_describes_right(operation: IndexedOperation) -> None:
    with pytest.raises(SpyrecError, match="SPY0716"):
        replace(operation, exact=True).case()[0].memory("fast")
    operation.case()[0].assert_equal()
