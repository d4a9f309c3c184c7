"""Random graphs whose operations are pinned to divisions that differ, so that tensors have to change owners."""

from __future__ import annotations

import math
import random

from tests.support.graphs import JsonObject, graph_data, node

_UNARY = ("neg", "abs", "relu", "sigmoid")
_BINARY = ("add", "sub", "mul", "maximum")


class RelayoutGraph:
    """A graph under construction: tensors ``[A, B, C]`` or ``[B, C]`` that every operation cuts as its pin says."""

    def __init__(self, seed: int) -> None:
        rng = self._rng = random.Random(seed)
        self.cores = rng.choice((2, 4, 8))
        sticks = self.cores * rng.choice((1, 1, 2))
        self._dtype, lanes = rng.choice((("float16", 64), ("float16", 64), ("float32", 32)))
        columns = lanes * sticks - rng.choice((0, 0, 0, 1, 27))
        self._dims = {"B": self.cores * rng.choice((1, 2, 3)), "C": columns}
        if rng.random() < 0.4:
            self._dims = {"A": rng.choice((2, 3, 4)), **self._dims}
        self._is_looped = "A" in self._dims and rng.random() < 0.5
        self._pieces = {**self._dims, "C": sticks}
        if self._is_looped:  # a pin names dims that a round of the loop has
            del self._pieces["A"]
        self._whole: list[str] = []
        self._inputs: list[JsonObject] = []
        self._nodes: list[JsonObject] = []

    def data(self) -> JsonObject:
        """Return the graph."""
        rng = self._rng
        for _ in range(rng.randint(3, 7)):
            self._pointwise()
        for _ in range(rng.randint(0, 2)):
            self._fold()
        read = {name for item in self._nodes for name in _names(item["inputs"])}
        outputs = [str(item["name"]) for item in self._nodes if item["name"] not in read or rng.random() < 0.15]
        loops: list[JsonObject] = []
        if self._is_looped:
            names = [str(item["name"]) for item in self._nodes if str(item["name"]).startswith("p")]
            loops = [{"dim": "A", "tile_size": 1, "body": names[: rng.randint(1, len(names))]}]
        return graph_data(self._inputs, self._nodes, outputs, dims=self._dims, loops=loops)

    def _operand(self) -> str:
        if not self._whole or self._rng.random() < 0.15:
            name = f"x{len(self._inputs)}"
            self._inputs.append({"name": name, "shape": list(self._dims), "dtype": self._dtype})
            self._whole.append(name)
            return name
        return self._whole[-1] if self._rng.random() < 0.6 else self._rng.choice(self._whole)

    def _pointwise(self) -> None:
        name, count = f"p{len(self._nodes)}", self._rng.choice((1, 1, 2))
        op = self._rng.choice(_UNARY if count == 1 else _BINARY)
        written = node(name, op, *(self._operand() for _ in range(count)))
        self._nodes.append({**written, "work_division": self._pin()})
        self._whole.append(name)

    def _fold(self) -> None:
        axis = self._rng.randrange(len(self._dims))
        op = self._rng.choice(("sum", "amax", "softmax"))
        attributes: dict[str, object] = {"dim": axis} if op == "softmax" else {"dim": [axis], "keepdim": True}
        written = node(f"f{len(self._nodes)}", op, self._operand(), **attributes)
        pin = self._pin()
        folded = list(self._dims)[axis]
        self._nodes.append({**written, "work_division": {**pin, folded: 1} if folded in pin else pin})

    def _pin(self) -> dict[str, int]:
        """Return slices of each dim, most often as many in all as there are cores."""
        rest, pin = self.cores, dict[str, int]()
        dims = self._rng.sample(list(self._pieces), len(self._pieces))
        for place, dim in enumerate(dims):
            fitting = [cut for cut in (1, 2, 4, 8) if rest % cut == 0 and self._pieces[dim] % cut == 0]
            pin[dim] = max(fitting) if place == len(dims) - 1 else self._rng.choice(fitting)
            rest //= pin[dim]
        assert math.prod(pin.values()) <= self.cores
        return pin


def _names(inputs: object) -> list[str]:
    assert isinstance(inputs, list)
    return [item for item in inputs if isinstance(item, str)]  # pyright: ignore[reportUnknownVariableType] -- JSON
