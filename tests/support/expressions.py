"""Graphs from expressions such as ``(a+b.t())@c``: how published restickify costs are stated."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

JsonObject = dict[str, object]


class ExpressionGraph:
    """Builds a graph file's object from statements over named inputs; inputs are pinned to their default layout."""

    def __init__(self, text: str, shapes: Mapping[str, Sequence[int]]) -> None:
        self._shapes = shapes
        self._inputs = {name: list(shape) for name, shape in shapes.items()}
        self._nodes: list[JsonObject] = []
        self._names: dict[str, str] = {}
        self._result = ""
        for statement in text.split(";"):
            (parsed,) = ast.parse(statement.strip()).body
            if isinstance(parsed, ast.Assign):
                (target,) = parsed.targets
                assert isinstance(target, ast.Name)
                self._names[target.id] = self._value(parsed.value)
            else:
                assert isinstance(parsed, ast.Expr)
                self._result = self._value(parsed.value)

    def to_json(self, *, pinned: bool) -> JsonObject:
        """Return the graph; ``pinned`` inputs keep their default layout."""
        pins = {name: {"layout": {"dim_order": list(range(len(shape)))}} for name, shape in self._inputs.items()}
        inputs = [
            {"name": name, "shape": shape, "dtype": "float16", **(pins[name] if pinned else {})}
            for name, shape in self._inputs.items()
        ]
        return {
            "format": "spyrec.graph/1",
            "name": "expression",
            "inputs": inputs,
            "nodes": self._nodes,
            "outputs": [self._result],
        }

    def _emit(self, op: str, inputs: list[str], **attrs: object) -> str:
        name = f"n{len(self._nodes)}"
        self._nodes.append({"name": name, "op": op, "inputs": inputs, "attrs": attrs})
        return name

    def _value(self, expression: ast.expr) -> str:
        match expression:
            case ast.Name(name):
                return self._names.get(name, name)
            case ast.BinOp(left, ast.Add(), right):
                return self._emit("add", [self._value(left), self._value(right)])
            case ast.BinOp(left, ast.MatMult(), right):
                return self._emit("matmul", [self._value(left), self._value(right)])
            case ast.Call(ast.Attribute(inner, method), args):
                return self._method(self._value(inner), method, [ast.literal_eval(item) for item in args])
            case ast.Call(ast.Name(function), [ast.Name(operand)]):
                return self._function(function, operand)
            case _:
                raise AssertionError(ast.dump(expression))

    def _method(self, operand: str, method: str, args: list[object]) -> str:
        match method:
            case "t":
                return self._emit("t", [operand])
            case "transpose":
                return self._emit("transpose", [operand], dim0=args[0], dim1=args[1])
            case "sum":
                return self._emit("sum", [operand], dim=args)
            case "fill_":
                return operand
            case _:
                raise AssertionError(method)

    def _function(self, function: str, operand: str) -> str:
        if function == "cpu_fallback_sin":  # its result reaches the device from outside, in the default layout
            self._inputs[f"{operand}_from_host"] = list(self._shapes[operand])
            return f"{operand}_from_host"
        number = {"ones_like": 1.0, "zeros_like": 0.0, "empty_like": 1.0}[function]
        return self._emit("full", [], size=list(self._shapes[operand]), fill_value=number)
