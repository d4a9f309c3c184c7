"""What an operation computes is written twice, in its record and in the op's reference: neither hides what the other
has wrong.

The mistakes are planted in process, so that the definition (``--engine reference``) executes: it reads records as they
are, where compiled kernels stand on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

import spyrec
from spyrec import CompileOptions, RunOptions, device_ops
from spyrec.device_ops.expression import Expression
from spyrec.device_ops.record import Constants, DeviceOperation, Doubles, Pointwise
from spyrec.ir.opdef import Array, Attributes, OpDef, catalogue

X = np.random.default_rng(3).uniform(0.5, 2.0, (6, 70)).astype(np.float16)
Y = np.random.default_rng(4).uniform(0.5, 2.0, (6, 70)).astype(np.float16)


def is_ok(op: str) -> bool:
    """Compile the smallest graph of an op, run it by definition, and return what ``--check`` finds."""
    inputs = {"x": X, "y": Y} if len(catalogue()[op].operands) == 2 else {"x": X}
    node: dict[str, object] = {"name": "z", "op": op, "inputs": [*inputs]}
    if op in FOLDS:
        node["attrs"] = {"dim": [1]}
    tensors = [{"name": name, "shape": [*value.shape], "dtype": "float16"} for name, value in inputs.items()]
    graph = {"format": "spyrec.graph/1", "inputs": tensors, "nodes": [node], "outputs": ["z"]}
    bundle = spyrec.compile(graph, CompileOptions(cores=4))
    return spyrec.run(bundle, inputs, RunOptions(check=True, engine="reference")).is_ok


def wrong_function(record: DeviceOperation) -> DeviceOperation:
    """A function of one input that is 2 % too large."""
    function = record.unary
    assert function is not None

    def wrong(x: Doubles, constants: Constants) -> Doubles:
        return function(x, constants) * 1.02

    return replace(record, unary=wrong)


def wrong_formula(record: DeviceOperation) -> DeviceOperation:
    """A formula whose first operand is 2 % too large."""
    assert record.pointwise is not None
    formula = record.pointwise.formula
    first, *_ = formula.operands
    text = f"({formula.text}) + {first} * 0.02"
    return replace(record, pointwise=Pointwise(Expression(text, formula.operands)))


def wrong_step(record: DeviceOperation) -> DeviceOperation:
    """A fold that takes each element 2 % too large."""
    assert record.fold is not None
    (accumulator,) = record.fold.accumulators
    step = Expression(f"({accumulator.step.text}) + x * 0.02", accumulator.step.operands)
    return replace(record, fold=replace(record.fold, accumulators=(replace(accumulator, step=step),)))


def wrong_reference(definition: OpDef) -> OpDef:
    """A reference that is 2 % too large."""

    def wrong(operands: Sequence[Array | None], attributes: Attributes) -> tuple[Array, ...]:
        return tuple(np.multiply(item, 1.02, dtype=np.float64) for item in definition.reference(operands, attributes))

    return replace(definition, reference=wrong)


FOLDS = ("sum", "mean", "amax", "amin")
RECORDS = (
    *((op, wrong_function) for op in ("exp", "sqrt", "abs")),
    *((op, wrong_formula) for op in ("add", "mul", "div", "maximum")),
    *((op, wrong_step) for op in FOLDS),
)


@pytest.mark.parametrize(("op", "wrong"), RECORDS, ids=[op for op, _ in RECORDS])
def test_a_mistake_in_a_record_is_seen_by_the_check(
    op: str, wrong: Callable[[DeviceOperation], DeviceOperation], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = catalogue()[op].device
    assert device is not None
    assert is_ok(op)
    records = {
        name: wrong(item) if item is device.record else item for name, item in device_ops.DEVICE_OPERATIONS.items()
    }
    monkeypatch.setattr(device_ops, "DEVICE_OPERATIONS", records)
    assert not is_ok(op)


@pytest.mark.parametrize("op", [op for op, _ in RECORDS])
def test_a_mistake_in_a_reference_is_seen_by_the_check(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    definitions = cast("dict[str, OpDef]", catalogue())
    monkeypatch.setitem(definitions, op, wrong_reference(definitions[op]))
    assert not is_ok(op)
