"""Rows that an index names: those outside of their table, and what torch-spyre describes wrong."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyrec.codegen.opspec import OpSpecFile
from spyrec.compare.opspec_reference import OpSpecEvaluation
from spyrec.diagnostics import SpyrecError
from tests.codegen.builders import FP16
from tests.conformance.op_runner import decoded
from tests.support.examples import examples
from tests.support.kinds.program import hold, words
from tests.support.kinds.rows import IndexedOperation


@examples(40)
@given(st.integers(0, 1 << 30), st.booleans())
def test_the_check_of_opspecs_knows_rows_that_an_index_names(seed: int, scatters: bool) -> None:
    """Rows named twice, of which the last one stays, and rows that nobody names among them."""
    case = IndexedOperation.random(Random(seed), scatters=scatters).program()
    ((last, wanted),) = case.wanted.items()
    evaluation = OpSpecEvaluation(OpSpecFile(symbolic_args=True, unroll_loops=False, specs=case.specs))
    for at, argument in case.arguments.items():
        held = decoded(words(case.memory(at), argument), argument.device_dtype)
        evaluation.give(at, argument.device_dtype, np.nan_to_num(held, nan=0.0))
    evaluation.run()
    found = evaluation.result(last)
    flat = np.ravel_multi_index(wanted.where, case.arguments[last].device_size).reshape(-1)
    assert np.all(np.abs(found.value[flat] - wanted.values.reshape(-1)) <= found.error[flat])


@pytest.mark.parametrize("scatters", [False, True])
@pytest.mark.parametrize("row", [-1, 7])
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_row_outside_of_its_table_is_refused_by_name(scatters: bool, row: int, engine: str) -> None:
    source = Random(1)
    operation = IndexedOperation.random(source, scatters=scatters)
    while operation.rows != 7 or operation.symbols != ("a",):
        operation = IndexedOperation.random(source, scatters=scatters)
    rows = np.zeros(operation.sizes["a"], np.int64)
    rows[-1] = row
    case = operation.program()
    index = replace(case.given[0], values=rows.astype(np.float64))
    outside = replace(case, given={**case.given, 0: index})
    emitted = case.emitted()
    with pytest.raises(SpyrecError, match=f"SPY0706.*row {row}"):
        outside.launched(emitted.program, emitted.superdscs).memory(engine)


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
        hold(replace(operation, exact=True).program())
    case = operation.program()
    emitted = case.emitted()
    case.launched(emitted.program, emitted.superdscs).assert_equal()
