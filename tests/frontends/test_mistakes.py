"""What the builder refuses: a code, the values, a hint and a line for each mistake, and the builder stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

import spyrec
from spyrec import GraphBuilder, SpyrecError
from spyrec.diagnostics import Diagnostic
from spyrec.frontends.op_methods import op_method
from spyrec.frontends.value import Value
from spyrec.ir.opdef import Attributes, OpDef, OperandTypes, catalogue
from spyrec.ir.types import TensorType


class Small:
    """Two tensors and dims A = 64, B = 128."""

    def __init__(self) -> None:
        self.builder = GraphBuilder("small")
        self.A, self.B = self.builder.dim("A", 64), self.builder.dim("B", 128)
        self.x, self.y = self.builder.input("x", (self.A, self.B)), self.builder.input("y", (64, 128))
        self.m = self.builder.input("m", (self.A, self.B), "bool")


def call(name: str, /, *arguments: object, **keywords: object) -> Callable[[Small], object]:
    """Return a call of a builder's method; texts that begin with a dot name what the small graph has."""

    def held(small: Small, item: object) -> object:
        if isinstance(item, list):
            return [held(small, each) for each in cast("list[object]", item)]
        return getattr(small, item[1:]) if isinstance(item, str) and item.startswith(".") else item

    def work(small: Small) -> object:
        given = [held(small, item) for item in arguments]
        return getattr(small.builder, name)(*given, **{key: held(small, item) for key, item in keywords.items()})

    return work


def other() -> GraphBuilder:
    return GraphBuilder("other")


def named_after_use(small: Small) -> object:
    small.builder.neg(small.y)
    return small.builder.name_dims(small.y, ["A", "B"])


def named_result(small: Small) -> object:
    return small.builder.name_dims(small.builder.neg(small.y), ["A", "B"])


def node_name_taken(small: Small) -> object:
    small.builder.neg(small.x, name="n", outputs=["o"])
    return small.builder.abs(small.x, name="n", outputs=["p"])


def too_large_for_text(small: Small) -> object:
    small.builder.output(small.builder.constant("w", np.arange(5000, dtype=np.float16)))
    return small.builder.to_json()


MISTAKES: list[tuple[Callable[[Small], object], str, str]] = [
    # names
    (call("input", "x", (2,)), "SPY0115", '"x" is taken'),
    (call("constant", "x", 1.0), "SPY0115", '"x" is taken'),
    (call("neg", ".x", name="y"), "SPY0115", '"y" is taken'),
    (node_name_taken, "SPY0115", 'node name "n" is taken'),
    (call("input", "9x", (2,)), "SPY0114", '"9x" is no name'),
    (call("neg", ".x", name=3), "SPY0114", "3 is no name"),
    (lambda small: GraphBuilder("a graph"), "SPY0114", '"a graph" is no name'),
    # dims and shapes
    (call("input", "z", ("C", 2)), "SPY0123", 'dim "C" is not declared'),
    (call("input", "z", (-1, 2)), "SPY0124", "extent -1"),
    (call("input", "z", (2.5,)), "SPY0110", "2.5 is not an integer"),
    (call("input", "z", (2**40, 2**40)), "SPY0125", "elements"),
    (call("input", "z", (2,), "float61"), "SPY0140", '"float61" is no dtype'),
    (call("input", "z", (2,), np.complex64), "SPY0140", '"complex64" is no dtype'),
    (call("input", "z", (2,), object()), "SPY0140", "is no dtype"),
    (call("input", "z", (other().dim("A", 32),)), "SPY0142", 'dim "A" is 64 elements, and 32 here'),
    (call("input", "z", (other().dim("Z", 32),)), "SPY0123", 'dim "Z" is not declared in this builder'),
    (call("dim", "A", 65), "SPY0142", 'dim "A" is 64 elements, and 65 here'),
    (call("dim", "Z"), "SPY0110", 'dim "Z" needs an extent'),
    (call("dim", "Z", 64, max=64), "SPY0110", 'dim "Z" needs an extent'),
    (call("dim", "Z", -1), "SPY0124", "extent -1"),
    (call("dim", "Z", min=65, max=127, multiple_of=64), "SPY0133", 'dim "Z" has no extent'),
    (call("name_dims", ".y", ["B", "A"]), "SPY0142", "do not fit"),
    (call("name_dims", ".y", ["A"]), "SPY0142", "do not fit"),
    (call("name_dims", ".y", ["A", "C"]), "SPY0123", 'dim "C"'),
    (named_after_use, "SPY0147", 'node "neg" has read "y" already'),
    (named_result, "SPY0147", '"neg" is the result of a node'),
    # operands and attributes
    (call("add", ".x", other().input("q", (64, 128))), "SPY0143", '"q" belongs to another builder'),
    (call("output", other().input("q", (64, 128))), "SPY0143", '"q" belongs to another builder'),
    (call("add", ".x", "y"), "SPY0110", 'an operand is "y"'),
    (call("add", ".x", np.ones(2)), "SPY0110", "an operand is a ndarray"),
    (call("add", ".x", float("nan")), "SPY0103", "an operand is NaN"),
    (call("output", "y"), "SPY0110", 'an operand is "y"'),
    (call("output", 3), "SPY0110", "3 stands where a value is due"),
    (call("op", "sotfmax", ".x", dim=-1), "SPY0118", 'op "sotfmax" is unknown'),
    (call("op", "spyre.copy", ".x"), "SPY0118", 'op "spyre.copy" is unknown'),
    (call("softmax", ".x", dimm=-1, dim=0), "SPY0121", 'softmax has no attribute "dimm"'),
    (call("softmax", ".x"), "SPY0121", 'softmax needs the attribute "dim"'),
    (call("softmax", ".x", dim="last"), "SPY0122", "'last' is not an integer"),
    (call("softmax", ".x", dim=object()), "SPY0122", "an attribute is an object"),
    (call("softmax", ".x", dim=9), "SPY0204", "dim 9 is out of range"),
    (call("neg", ".x", ".y"), "SPY0120", "neg takes 1 operands, not 2"),
    (call("add", ".x", ".y", other=".y"), "SPY0120", 'operand 1 ("other") of add is given twice'),
    (call("add", ".x"), "SPY0120", "add takes 2 operands, not 1"),
    (call("cat", [".x", 2]), "SPY0219", "the number 2"),
    (call("add", ".x", 1e6), "SPY0215", "does not fit float16"),
    (call("matmul", ".x", ".y"), "SPY0213", "128"),
    (call("reshape", ".x", ("A*3", -1)), "SPY0208", "do not hold"),
    (call("reshape", ".x", ("Z", -1)), "SPY0123", 'dim "Z"'),
    (call("neg", ".x", layout={"dim_order": [0, 0]}), "SPY0136", "no permutation"),
    (call("neg", ".x", layout=3), "SPY0136", "the layout is an int"),
    (call("neg", ".x", layout={"dim_orders": [0, 1]}), "SPY0111", '"dim_orders" is unknown'),
    (call("neg", ".x", work_division={"C": 2}), "SPY0135", 'no axis of node "neg" is named "C"'),
    (call("neg", ".x", work_division=4), "SPY0135", "the work division is an int"),
    # numbers
    (call("constant", "w", [[1.0], [2.0, 3.0]]), "SPY0127", "several lengths"),
    (call("constant", "w", "text"), "SPY0128", "holds no numbers"),
    (call("constant", "w", [1.0, float("nan")]), "SPY0103", "NaN"),
    (call("constant", "w", [1e6]), "SPY0128", "1000000.0 is no float16"),
    (call("constant", "w", [300], None, "uint8"), "SPY0128", "300 is no uint8"),
    (call("constant", "w", [1, 1.5], None, "int64"), "SPY0128", "1.5 is no int64"),
    (call("constant", "w", [0, 2], None, "bool"), "SPY0128", "2 is no bool"),
    (call("constant", "w", [0.5], None, "bool"), "SPY0128", "0.5 is no bool"),
    (call("constant", "w", [0.5], None, "float8_e4m3fn"), "SPY0128", "not converted"),
    (call("constant", "w", np.array([np.nan]), None, "int32"), "SPY0103", "NaN"),
    (call("constant", "w", np.array([np.inf]), None, "int32"), "SPY0128", "inf is no int32"),
    (call("constant", "w", np.ones(2, np.longdouble)), "SPY0140", f'"{np.dtype(np.longdouble)}" is no dtype'),
    (call("constant", "w", np.ones((2, 3), np.float16), (3, 2)), "SPY0142", "dims are [3, 2], the array has [2, 3]"),
    (too_large_for_text, "SPY0146", 'constant "w", float16[5000], has no place in JSON'),
    (lambda small: small.builder.build(), "SPY0137", "no outputs"),
    (lambda small: bool(small.x < small.y), "SPY0145", '"lt" is asked for its truth'),
]


@pytest.mark.parametrize(("work", "code", "message"), MISTAKES)
def test_each_mistake_is_refused_with_code_message_hint_and_line(
    work: Callable[[Small], object], code: str, message: str
) -> None:
    small = Small()
    with pytest.raises(SpyrecError) as caught:
        work(small)
    found: Diagnostic = caught.value.diagnostics[0]
    assert found.code == code
    assert message in found.message
    assert found.advice
    assert found.location is not None
    assert found.location.file == __file__


AFTER_RIGHT_CALLS = (node_name_taken, named_after_use, named_result, too_large_for_text)


@pytest.mark.parametrize("work", [work for work, _, _ in MISTAKES[:-2] if work not in AFTER_RIGHT_CALLS])
def test_a_refused_call_leaves_the_builder_as_it_was(work: Callable[[Small], object]) -> None:
    def finish(small: Small) -> spyrec.Graph:
        value = small.builder.constant("w", [1.0] * 128, ("B",))
        late = small.builder.input("z", (small.builder.dim("Z", 64), 128))
        small.builder.output(small.builder.softmax(small.x * value, dim=-1, name="s"), small.builder.neg(late))
        return small.builder.build()

    spoilt, sound = Small(), Small()
    with pytest.raises(SpyrecError):
        work(spoilt)
    assert finish(spoilt) == finish(sound)


def test_the_first_of_two_equal_names_is_shown_with_its_line() -> None:
    small = Small()
    with pytest.raises(SpyrecError) as caught:
        small.builder.input("x", (2,))
    (note,) = caught.value.diagnostics[0].notes
    assert note.startswith(f"the first one is at {__file__}:")


def _two_halves(types: OperandTypes, attributes: Attributes) -> tuple[TensorType, ...]:
    (operand,) = types
    assert operand is not None
    return operand, operand


def test_an_op_of_several_results_returns_all_of_them() -> None:

    base = catalogue()["neg"]
    double = replace(base, name="halves", result_count=2, infer=_two_halves)
    table = cast("dict[str, OpDef]", catalogue())
    table["halves"] = double
    try:
        small = Small()
        method = op_method(double)
        results = cast("tuple[Value, ...]", method(small.builder, small.x))
        assert [value.name for value in results] == ["halves_0", "halves_1"]
        named = cast("tuple[Value, ...]", method(small.builder, small.x, name="n", outputs=["low", "high"]))
        assert [value.name for value in named] == ["low", "high"]
        with pytest.raises(SpyrecError, match="SPY0139"):
            small.builder.op("halves", small.x)
        with pytest.raises(SpyrecError, match="SPY0115"):
            method(small.builder, small.x, outputs=["same", "same"])
    finally:
        del table["halves"]
