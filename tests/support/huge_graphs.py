"""Random graphs with extents from 1 to 2**61: most are refused, none may take long."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from tests.support.graphs import JsonObject, graph_data, node

_SMALL = (1, 2, 3, 63, 64, 65, 128, 1000, 4096, 10**5, 2**20, 2**20 + 7, 10**6 + 3)
_LARGE = (10**9, 2**31 - 1, 2**33, 4000000007, 10**12, 2**40, 2**40 + 15, 10**18, 2**61 - 1)
_KINDS = (
    "unary", "binary", "fold", "softmax", "product", "transpose", "expand", "reshape", "slice", "cat", "repeat",
    "full", "norm", "attention", "where",
)  # fmt: skip

Shape = tuple[int, ...]


@dataclass
class _Huge:
    rng: random.Random
    pool: tuple[int, ...]
    inputs: list[JsonObject] = field(default_factory=list[JsonObject])
    constants: list[JsonObject] = field(default_factory=list[JsonObject])
    nodes: list[JsonObject] = field(default_factory=list[JsonObject])
    dims: JsonObject = field(default_factory=dict[str, object])
    values: list[tuple[str, Shape]] = field(default_factory=list[tuple[str, Shape]])

    def extent(self) -> int:
        return self.rng.choice(self.pool)

    def declare(self, shape: Shape) -> str:
        name = f"v{len(self.values)}"
        written = [self._named(extent) for extent in shape]
        item: JsonObject = {"name": name, "shape": written, "dtype": self.rng.choice(["float16"] * 4 + ["float32"])}
        if self.rng.random() < 0.3:
            self.constants.append({**item, "value": 1})
        else:
            self.inputs.append(item)
        self.values.append((name, shape))
        return name

    def _named(self, extent: int) -> int | str:
        if self.rng.random() < 0.7:
            return extent
        name = f"D{len(self.dims)}"
        self.dims[name] = extent if self.rng.random() < 0.8 else {"min": 1, "max": extent, "multiple_of": 1}
        return name

    def add(self, result: Shape, op: str, *inputs: str | float, **attrs: object) -> None:
        name = f"n{len(self.nodes)}"
        item = node(name, op, *inputs)
        if attrs:
            item["attrs"] = attrs
        if self.rng.random() < 0.08:
            item["work_division"] = {"out.0": self.rng.choice([2, 7, 32, 10**9])}
        self.nodes.append(item)
        self.values.append((name, result))

    def grow(self) -> None:
        """Add one operation on a value that is there."""
        rng = self.rng
        x, shape = rng.choice(self.values)
        kind = rng.choice(_KINDS)
        if kind == "unary":
            self.add(shape, rng.choice(["relu", "exp", "neg", "abs"]), x)
        elif kind == "binary":
            other = rng.choice([name for name, found in self.values if found == shape])
            self.add(shape, rng.choice(["add", "mul"]), x, other)
        elif kind == "where":
            self.add(shape, "maximum", x, 0.0)
        elif kind == "expand":
            wide = (self.extent(), *shape)
            self.add(wide, "expand", x, size=list(wide))
        elif kind == "full":
            size = tuple(self.extent() for _ in range(rng.randint(0, 2)))
            self.add(size, "full", size=list(size), fill_value=1.0)
        elif shape:
            self._grow_along(kind, x, shape)

    def _grow_along(self, kind: str, x: str, shape: Shape) -> None:
        rng, (first, *rest) = self.rng, shape
        if kind == "fold":
            dim = rng.randrange(len(shape))
            self.add(shape[:dim] + shape[dim + 1 :], rng.choice(["sum", "amax", "mean"]), x, dim=[dim])
        elif kind == "softmax":
            self.add(shape, "softmax", x, dim=-1)
        elif kind == "norm":
            self.add(shape, "layer_norm", x, normalized_shape=[shape[-1]])
        elif kind == "reshape":
            self.add((math.prod(shape),), "reshape", x, shape=[math.prod(shape)])
        elif kind == "slice":
            end = max(1, first // 2)
            self.add((end, *rest), "slice", x, dim=0, start=0, end=end)
        elif kind == "cat":
            self.add((2 * first, *rest), "cat", x, x, dim=0)
        elif kind == "repeat":
            times = self.extent()
            self.add((times * first, *rest), "repeat", x, repeats=[times] + [1] * len(rest))
        elif len(shape) == 2:
            self._grow_matrix(kind, x, shape)

    def _grow_matrix(self, kind: str, x: str, shape: Shape) -> None:
        if kind == "transpose":
            self.add(shape[::-1], "transpose", x, dim0=0, dim1=1)
        elif kind == "attention":
            self.add(shape, "scaled_dot_product_attention", x, x, x, is_causal=self.rng.random() < 0.6)
        elif kind == "product":
            columns = self.extent()
            self.add((shape[0], columns), "mm", x, self.declare((shape[1], columns)))


def huge_graph(seed: int) -> JsonObject:
    """Return a graph with a few operations; loops and pins among them."""
    rng = random.Random(seed)
    made = _Huge(rng, (*_SMALL, *_LARGE) if rng.random() < 0.5 else (*_SMALL, *_LARGE[:4]))
    made.declare(tuple(made.extent() for _ in range(rng.randint(0, 3))))
    for _ in range(rng.randint(1, 6)):
        made.grow()
    more: JsonObject = {"constants": made.constants, "dims": made.dims}
    names = [str(item["name"]) for item in made.nodes]
    if names and made.dims and rng.random() < 0.5:
        size = {rng.choice(["tiles", "tile_size"]): rng.choice([2, 3, 64, 1000, 10**6, 10**9])}
        more["loops"] = [{"dim": rng.choice(list(made.dims)), **size, "body": rng.sample(names, len(names))}]
    return graph_data(made.inputs, made.nodes, [name for name, _ in made.values[-2:]], **more)
