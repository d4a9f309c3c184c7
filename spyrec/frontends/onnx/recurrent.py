"""ONNX's recurrent operators, step by step: ``LSTM``, ``GRU`` and ``RNN`` of a known number of steps.

The products of all steps' inputs with ``W`` are one; a step adds the product of the last state with ``R``.
Source of the rules: the operators' specification (opset 14 and newer; 7 differs in no rule used here).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from spyrec.dataclass import dataclass
from spyrec.frontends.model_import.unsupported import Unsupported
from spyrec.frontends.onnx.control_flow import MOST_STEPS
from spyrec.frontends.value import Value

if TYPE_CHECKING:
    from spyrec.frontends.onnx.lower import Call

Activation = Callable[[Value], Value]

_DIRECTIONS: Mapping[str, tuple[bool, ...]] = MappingProxyType(
    {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
)
"""For each row of the weights, whether it reads the steps from the last to the first."""

_PLAIN = {"Relu": "relu", "Sigmoid": "sigmoid", "Softplus": "softplus", "Softsign": "softsign", "Tanh": "tanh"}
_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@dataclass(frozen=True, slots=True)
class _Cell:
    """The weights of one direction, and what a step does with them.

    ``gates``: the products of all steps' inputs, ``[steps, batch, gates * hidden]``, with the biases that a step adds
    them.  ``recurrent``: the weight of the last state.  ``reset_bias``: the bias of the last state in the new one of a
    ``GRU``.  ``peepholes``: those of the gates ``i``, ``o`` and ``f`` of an ``LSTM``.
    """

    call: Call
    hidden: int
    gates: Value
    recurrent: Value
    activations: Sequence[Activation]
    reset_bias: Value | None
    peepholes: Sequence[Value]

    def lstm(self, index: int, state: Sequence[Value]) -> Sequence[Value]:
        """One step of ``LSTM``: the new ``H`` and ``C``."""
        last, cell = state
        i, o, f, c = self._split(self._sum(index, last), 4)
        sigmoid, tanh, squash = self.activations
        if self.peepholes:
            i, f = i + self.peepholes[0] * cell, f + self.peepholes[2] * cell
        new = sigmoid(f) * cell + sigmoid(i) * tanh(c)
        o = o + self.peepholes[1] * new if self.peepholes else o
        return [sigmoid(o) * squash(new), new]

    def gru(self, index: int, state: Sequence[Value]) -> Sequence[Value]:
        """One step of ``GRU``, where the reset gate stands before or behind the product of the last state."""
        (last,) = state
        sigmoid, tanh = self.activations
        z, r, h = self._split(self._step(index), 3)
        before, behind = self._rows(0, 2), self._rows(2, 3)
        z_of_last, r_of_last = self._split(self.call.add("linear", last, before), 2)
        z, r = sigmoid(z + z_of_last), sigmoid(r + r_of_last)
        if self.reset_bias is None:
            new = tanh(h + self.call.add("linear", r * last, behind))
        else:
            new = tanh(h + r * self.call.add("linear", last, behind, self.reset_bias))
        return [new + z * (last - new)]

    def rnn(self, index: int, state: Sequence[Value]) -> Sequence[Value]:
        """One step of ``RNN``."""
        return [self.activations[0](self._sum(index, state[0]))]

    def _sum(self, index: int, last: Value) -> Value:
        return self._step(index) + self.call.add("linear", last, self.recurrent)

    def _step(self, index: int) -> Value:
        return self.call.add("select", self.gates, dim=0, index=index)

    def _split(self, value: Value, count: int) -> list[Value]:
        return self.call.add_all("split", value, split_size=[self.hidden] * count, dim=1)

    def _rows(self, first: int, end: int) -> Value:
        return self.call.add("slice", self.recurrent, dim=0, start=first * self.hidden, end=end * self.hidden)


def recurrent(call: Call) -> Sequence[Value]:
    """``LSTM``, ``GRU`` or ``RNN``: all states, the last one, and the last cell state of an ``LSTM``."""
    kind = call.node.op_type
    value = call.value(0)
    is_batch_first = bool(call.integer("layout", 0))
    if is_batch_first:
        value = call.add("transpose", value, dim0=0, dim1=1)
    steps, batch = call.extent(value, 0), call.extent(value, 1)
    _refuse_variants(call, steps, batch)
    directions = _DIRECTIONS.get(call.text("direction", "forward"), ())
    hidden = call.value(2).shape[2]
    initial = [_initial(call, index, is_batch_first) for index in ((5, 6) if kind == "LSTM" else (5,))]
    if any(item is not None and item.shape != (len(directions), batch, hidden) for item in initial):
        shapes = [list(item.shape) for item in initial if item is not None]
        raise Unsupported(f"its first states are {shapes}, and its cells have {hidden} numbers")
    rows: list[Value] = []
    lasts: list[list[Value]] = []
    for number, is_reverse in enumerate(directions):
        cell = _cell(call, kind, value, number, len(directions))
        step = {"LSTM": cell.lstm, "GRU": cell.gru, "RNN": cell.rnn}[kind]
        state: Sequence[Value] = [
            call.add("full", size=[batch, hidden], fill_value=0.0, dtype=value.dtype)
            if item is None
            else call.add("select", item, dim=0, index=number)
            for item in initial
        ]
        made: list[Value] = []
        for index in reversed(range(steps)) if is_reverse else range(steps):
            state = step(index, state)
            made.append(state[0])
        rows.append(call.add("stack", *(reversed(made) if is_reverse else made), dim=0))
        lasts.append(list(state))
    axis = 2 if is_batch_first else 1
    if is_batch_first:
        rows = [call.add("transpose", row, dim0=0, dim1=1) for row in rows]
    states = [
        call.add("stack", *(last[place] for last in lasts), dim=1 if is_batch_first else 0)
        for place in range(len(initial))
    ]
    return [call.add("stack", *rows, dim=axis), *states]


def _refuse_variants(call: Call, steps: int, batch: int) -> None:
    """Refuse what an unrolled operator is not."""
    if not 0 < steps <= MOST_STEPS:
        raise Unsupported(f"it has {steps} steps, and {MOST_STEPS} are the most that are written out")
    lengths = call.integers(4) if call.has(4) else None
    if lengths is not None and lengths != [steps] * batch:
        raise Unsupported("its sequences have lengths of their own")
    if "clip" in call.attributes or call.integer("input_forget", 0):
        raise Unsupported("clip, or a forget gate that is coupled with the input gate")


def _initial(call: Call, index: int, is_batch_first: bool) -> Value | None:
    """Return an initial state, ``[directions, batch, hidden]``."""
    found = call.optional(index)
    return call.add("transpose", found, dim0=0, dim1=1) if found is not None and is_batch_first else found


def _cell(call: Call, kind: str, value: Value, number: int, directions: int) -> _Cell:
    """Return one direction's cell: the products with its inputs, and its biases where they belong."""
    weight, recurrent_weight = (call.add("select", call.value(index), dim=0, index=number) for index in (1, 2))
    hidden, gates = recurrent_weight.shape[1], _GATES[kind]
    if recurrent_weight.shape[0] != gates * hidden:
        raise Unsupported(f"its weights have {recurrent_weight.shape[0]} rows, not {gates} times {hidden}")
    biases: list[Value] = []
    if call.has(3):
        both = call.add("select", call.value(3), dim=0, index=number)
        biases = call.add_all("split", both, split_size=[gates * hidden] * 2, dim=0)
    is_reset_behind = kind == "GRU" and bool(call.integer("linear_before_reset", 0))
    reset_bias: Value | None = None
    bias: list[Value] = []
    if is_reset_behind and not biases:
        reset_bias = call.add("full", size=[hidden], fill_value=0.0, dtype=value.dtype)
    elif is_reset_behind:
        *early, reset_bias = call.add_all("split", biases[1], split_size=[2 * hidden, hidden], dim=0)
        nothing = call.add("full", size=[hidden], fill_value=0.0, dtype=value.dtype)
        bias = [biases[0] + call.add("cat", *early, nothing, dim=0)]
    elif biases:
        bias = [biases[0] + biases[1]]
    peepholes: list[Value] = []
    if kind == "LSTM" and call.has(7):
        row = call.add("select", call.value(7), dim=0, index=number)
        peepholes = call.add_all("split", row, split_size=[hidden] * 3, dim=0)
    activations = _activations(call, kind, number, directions)
    products = call.add("linear", value, weight, *bias)
    return _Cell(call, hidden, products, recurrent_weight, activations, reset_bias, peepholes)


def _activations(call: Call, kind: str, number: int, directions: int) -> list[Activation]:
    """Return the functions of one direction, in the order of the specification: f, g, h."""
    found = call.attributes.get("activations")
    defaults = _DEFAULTS[kind]
    names = [item.decode() if isinstance(item, bytes) else str(item) for item in cast("Sequence[object]", found or [])]
    names = names or defaults * directions
    if len(names) != len(defaults) * directions:
        raise Unsupported(f"it names {len(names)} activations")
    parameters = "activation_alpha" in call.attributes or "activation_beta" in call.attributes
    own = [name.capitalize() for name in names[number * len(defaults) : (number + 1) * len(defaults)]]
    unknown = next((name for name in own if name not in _PLAIN), None)
    if unknown is not None or parameters:
        raise Unsupported(f"the activation {unknown}" if unknown is not None else "activations with parameters")
    return [_activation(call, _PLAIN[name]) for name in own]


def _activation(call: Call, op: str) -> Activation:
    return lambda value: call.add(op, value)
