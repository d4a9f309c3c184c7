"""Values: their operators are the ops of PyTorch, and they tell shape, dtype and dims at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import spyrec
from spyrec import GraphBuilder, SpyrecError
from spyrec.frontends.value import Value

OPERATORS: list[tuple[Callable[[Value, Value], Value], str, tuple[object, ...]]] = [
    (lambda x, y: x + y, "add", ("x", "y")),
    (lambda x, y: x + 2, "add", ("x", 2)),
    (lambda x, y: 2 + x, "add", (2, "x")),
    (lambda x, y: x - y, "sub", ("x", "y")),
    (lambda x, y: 1.5 - x, "sub", (1.5, "x")),
    (lambda x, y: x * y, "mul", ("x", "y")),
    (lambda x, y: np.float32(0.5) * x, "mul", (0.5, "x")),
    (lambda x, y: x / y, "div", ("x", "y")),
    (lambda x, y: 1 / x, "div", (1, "x")),
    (lambda x, y: x @ y, "matmul", ("x", "y")),
    (lambda x, y: -x, "neg", ("x",)),
    (lambda x, y: abs(x), "abs", ("x",)),
    (lambda x, y: x**2, "pow", ("x", None)),
    (lambda x, y: x < y, "lt", ("x", "y")),
    (lambda x, y: x <= 0, "le", ("x", 0)),
    (lambda x, y: x > y, "gt", ("x", "y")),
    (lambda x, y: 0 <= x, "ge", ("x", 0)),  # noqa: SIM300 -- the reflected form
    (lambda x, y: x == y, "eq", ("x", "y")),
    (lambda x, y: x != float("-inf"), "ne", ("x", float("-inf"))),
]


def square() -> tuple[GraphBuilder, Value, Value]:
    builder = GraphBuilder()
    side = builder.dim("N", 64)
    return builder, builder.input("x", (side, side)), builder.input("y", (64, 64))


@pytest.mark.parametrize(("work", "op", "operands"), OPERATORS)
def test_operators_add_the_op_of_pytorch(
    work: Callable[[Value, Value], Value], op: str, operands: tuple[object, ...]
) -> None:
    builder, x, y = square()
    builder.output(work(x, y))
    (node,) = builder.build().nodes
    named = tuple(getattr(operand, "value", operand) for operand in node.inputs)
    assert (node.op, named) == (op, operands)


def test_values_tell_what_they_are() -> None:
    builder, x, _ = square()
    y = builder.softmax(x, -1, name="soft")
    assert (y.name, y.shape, y.ndim, y.dtype, y.dims) == ("soft", (64, 64), 2, "float16", ("N", "N"))
    assert (x > 0).dtype == "bool"
    assert repr(y) == "<soft: float16[N=64, N=64]>"
    assert {x: 1, y: 2}[y] == 2


def test_arrays_beside_values_are_refused_as_a_whole() -> None:
    builder, x, _ = square()
    with pytest.raises(SpyrecError, match=r"declare it first: builder\.constant"):
        np.ones((64, 64)) * x  # pyright: ignore[reportUnusedExpression, reportOperatorIssue]
    builder.output(x)
    assert builder.build().nodes == ()


def test_comparing_with_something_else_is_no_op() -> None:
    builder, x, _ = square()
    assert x != "x"
    assert x != None  # noqa: E711 -- the operator is the point
    builder.output(x)
    assert builder.build().nodes == ()


def test_attributes_follow_the_only_tensor_by_position_as_in_pytorch() -> None:
    builder, x, y = square()
    assert builder.transpose(x, 0, 1).shape == (64, 64)
    assert builder.reshape(x, ("N", 32, 2)).shape == (64, 32, 2)
    assert builder.sum(x, -1, keepdim=True).shape == (64, 1)
    assert builder.cat([x, y], 1).shape == (64, 128)
    assert builder.op("cat", x, y, dim=1).shape == (64, 128)
    assert builder.full((2, builder.dim("N", 64)), 1.0).shape == (2, 64)
    assert builder.clamp(x, 0, 1).shape == (64, 64)
    assert builder.add(x, other=y).shape == (64, 64)
    assert builder.to(x, np.float32).dtype == "float32"


def test_an_operand_given_by_name_leaves_absent_ones_before_it_absent() -> None:
    builder, x, _ = square()
    bias = builder.constant("b", 0.0, (64,))
    builder.output(builder.layer_norm(x, bias=bias, normalized_shape=64))
    (node,) = builder.build().nodes
    assert node.inputs == ("x", None, "b")


def test_names_are_made_where_none_is_given() -> None:
    builder, x, y = square()
    assert [(x + y).name, (x + y).name, builder.add(x, y, name="sum").name, (x + y).name] == [
        "add", "add_1", "sum", "add_2",
    ]  # fmt: skip


def test_dims_named_later_go_on_to_what_reads_them() -> None:
    builder, x, y = square()
    builder.dim("M", 64)
    assert builder.name_dims(y, ["N", "M"]) is y
    assert (builder.matmul(y, x).dims, y.dims) == (("N", "N"), ("N", "M"))
    declared = GraphBuilder()
    rows, columns = declared.dim("N", 64), declared.dim("M", 64)
    declared.output(declared.matmul(declared.input("y", (rows, columns)), declared.input("x", (rows, rows)), name="m"))
    builder = GraphBuilder()
    rows, columns = builder.dim("N", 64), builder.dim("M", 64)
    y, x = builder.input("y", (64, 64)), builder.input("x", (64, 64))
    builder.name_dims(y, [rows, columns])
    builder.name_dims(x, [rows, rows])
    builder.output(builder.matmul(y, x, name="m"))
    assert builder.build() == declared.build()


def test_pins_and_divisions_are_those_of_the_call() -> None:
    builder, x, y = square()
    layout = spyrec.DeviceLayout.default((64, 64), "float16")
    z = builder.add(x, y, layout=layout, work_division={builder.dim("N", 64): 4, "out.1": 2})
    builder.output(z)
    (node,) = builder.build().nodes
    pin = builder.build().values[z.name].pin
    assert pin is not None
    assert (pin.device_size, pin.stride_map) == (layout.device_size, layout.stride_map)
    assert node.work_division == {"N": 4, "out.1": 2}


def test_a_builder_goes_on_after_it_was_built() -> None:
    builder, x, y = square()
    builder.output(x + y)
    first = builder.build()
    builder.output(x * y)
    assert (len(first.nodes), len(builder.build().nodes)) == (1, 2)
    assert first.outputs == ("add",)
