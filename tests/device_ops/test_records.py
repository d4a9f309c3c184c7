"""The records of device operations: whole or refused at import, and read by everything that knows an operation."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace

import numpy as np
import pytest

from spyrec.bundle.tile_contract import Combine
from spyrec.device_ops import COPIES, DEVICE_OPERATIONS, cast_between, device_operation
from spyrec.device_ops.expression import ArrayAlgebra, Expression
from spyrec.device_ops.record import DeviceOperation, Family
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.ir.attributes import NO_ATTRIBUTES
from spyrec.ir.opdef import catalogue
from spyrec.ir.types import TensorType

SINGLES = ArrayAlgebra(np.float32)
FOLDS = sorted({record.name for record in DEVICE_OPERATIONS.values() if record.fold is not None})


def test_every_field_of_a_record_is_stated() -> None:
    assert all(item.default is MISSING and item.default_factory is MISSING for item in fields(DeviceOperation))


@pytest.mark.parametrize("name", ["sum", "batchmatmul", "exx2"])
def test_a_fold_without_identity_cannot_exist(name: str) -> None:
    with pytest.raises(AssertionError, match="a fold has an identity"):
        replace(device_operation(name), fold=None)


@pytest.mark.parametrize(("name", "field"), [("exp", "unary"), ("add", "pointwise")])
def test_an_operation_that_computes_nothing_cannot_exist(name: str, field: str) -> None:
    with pytest.raises(AssertionError):
        replace(device_operation(name), **{field: None})


@pytest.mark.parametrize("text", ["x.real", "f(x)", "x < y < x", "z", "x ** y", "[x]", "lambda: x", "__import__('os')"])
def test_a_formula_outside_the_grammar_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="in the formula"):
        Expression(text, ("x", "y"))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("x + y * 2 - -x", [3.0, 0.0, 0.0]),
        ("x if x > y or x != x else y", [1.0, 1.0, 0.0]),
        ("1 if x == y and not_zero != 0 else 0", [0.0, 0.0, 1.0]),
    ],
)
def test_formulas_compute_what_they_say(text: str, want: list[float]) -> None:
    x, y = np.array([1.0, -1.0, 0.0], np.float32), np.array([0.5, 1.0, 0.0], np.float32)
    formula = Expression(text, ("x", "y", "not_zero"))
    got = formula.evaluate(SINGLES, (x, y, np.ones(3, np.float32)))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, np.array(want, np.float32))


def test_a_formula_for_numbers_alone_does_not_ask_for_nan() -> None:
    formula = Expression("x if x > y or x != x else y", ("x", "y"))
    assert formula.without_nan().text == "x if x > y else y"


@pytest.mark.parametrize("name", FOLDS)
def test_what_a_fold_begins_with_changes_nothing(name: str) -> None:
    record = device_operation(name)
    assert record.fold is not None
    algebra = ArrayAlgebra(np.float64)
    values = np.array([-3.5, 0.0, 7.25, 1e30, np.inf, -np.inf])
    for accumulator in record.fold.accumulators:
        first = np.full(values.shape, accumulator.identity)
        np.testing.assert_array_equal(accumulator.merge.evaluate(algebra, (first, values)), values)
        masked = accumulator.step.evaluate(algebra, (values, np.full(values.shape, record.fold.mask)))
        np.testing.assert_array_equal(masked, values)
    join = device_operation(record.fold.join).pointwise
    assert join is not None
    joined = join.formula.evaluate(algebra, (np.full(values.shape, record.fold.mask), values))
    np.testing.assert_array_equal(joined, values)


COMBINED = {Combine.SUM: np.add, Combine.PROD: np.multiply, Combine.MAX: np.maximum, Combine.MIN: np.minimum}


@pytest.mark.parametrize("name", FOLDS)
def test_a_contract_calls_the_combination_of_parts_what_joining_them_computes(name: str) -> None:
    fold = device_operation(name).fold
    assert fold is not None
    join = device_operation(fold.join).pointwise
    assert join is not None
    left, right = np.array([3.0, -2.0, 0.5]), np.array([-1.5, 4.0, 0.5])
    joined = join.formula.evaluate(ArrayAlgebra(np.float64), (left, right))
    np.testing.assert_array_equal(joined, COMBINED[Combine(fold.combination)](left, right))


def test_casts_are_found_by_their_formats() -> None:
    half, single = DeviceFormat.SEN169_FP16, DeviceFormat.IEEE_FP32
    assert cast_between(half, single) == "dl16tofp32"
    assert cast_between(single, half) == "fp32todl16"
    assert cast_between(DeviceFormat.IEEE_INT32, half) is None


def test_an_outer_name_is_another_name_of_one_record() -> None:
    for name, record in DEVICE_OPERATIONS.items():
        assert name in {record.name, record.outer_name}
        assert (record.outer_name is not None) == (record.family is Family.REDUCTION)


def test_copies_are_the_operations_whose_op_gives_every_element_as_it_is() -> None:
    values = np.random.default_rng(1).standard_normal((3, 70))
    given = TensorType(values.shape, DType.FLOAT16)
    found: set[str] = set()
    for definition in catalogue().values():
        if definition.device is None or ((given,), NO_ATTRIBUTES) not in definition.samples:
            continue
        if definition.infer((given,), NO_ATTRIBUTES) != (given,):
            continue
        (result,) = definition.reference([values], NO_ATTRIBUTES)
        if np.array_equal(result, values):
            found.add(definition.device.op_func)
    assert found == set(COPIES)
