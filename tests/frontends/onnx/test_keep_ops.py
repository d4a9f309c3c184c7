"""Functions of a model that are one operator of ONNX on demand, instead of what they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import onnx
import pytest

import spyrec

_make = cast("Callable[..., onnx.ValueInfoProto]", onnx.helper.make_tensor_value_info)
_node = cast("Callable[..., onnx.NodeProto]", onnx.helper.make_node)


def _model() -> onnx.ModelProto:
    """Return a model that calls a function of its own, which is what SiLU is."""
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("mine", 1)]
    body = [_node("Sigmoid", ["x"], ["s"]), _node("Mul", ["x", "s"], ["y"])]
    function = onnx.helper.make_function("mine", "Gate", ["x"], ["y"], body, opsets[:1])
    graph = onnx.helper.make_graph(
        [_node("Gate", ["a"], ["b"], domain="mine"), _node("Tanh", ["b"], ["c"])],
        "small",
        [_make("a", 1, [4, 64])],
        [_make("c", 1, [4, 64])],
    )
    return onnx.helper.make_model(graph, opset_imports=opsets, functions=[function])


def _ops(*keep: str) -> list[str]:
    return [node.op for node in spyrec.import_onnx(_model(), keep_ops=keep).build().nodes]


def test_a_function_is_the_operator_that_it_is_said_to_be() -> None:
    assert _ops() == ["sigmoid", "mul", "tanh"]
    assert _ops("mine::Gate=HardSwish") == ["hardswish", "tanh"]
    assert _ops("Gate=Mish", "Tanh") == ["mish", "tanh"]


def test_what_cannot_be_kept_is_refused() -> None:
    for name, words in (("Gate", "no op 'Gate'"), ("Gate=Mesh", "Gate=Mish says"), ("Gelu", "does not call it")):
        with pytest.raises(spyrec.SpyrecError, match=words) as raised:
            _ops(name)
        assert [item.code for item in raised.value.diagnostics] == ["SPY0167"]
