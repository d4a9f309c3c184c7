"""Random graphs over the whole catalogue, with ragged and tiny extents, views of views, and every dtype."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

JsonObject = dict[str, object]

_EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 30, 32, 33, 63, 64, 65, 70, 96, 128, 130, 200)
_UNARY = ("abs", "neg", "sigmoid", "tanh", "floor", "relu", "gelu", "silu", "square", "softplus")
_BINARY = ("add", "sub", "mul", "maximum", "minimum")
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
_REDUCE = ("sum", "mean", "amax", "amin")
_HALF_ONLY = ("tanh", "gelu", "silu", "softplus")


@dataclass
class _Value:
    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass
class RandomGraph:
    """A graph under construction; ``data`` holds an array for every input."""

    rng: random.Random
    limit: int = 1 << 15
    inputs: list[JsonObject] = field(default_factory=list[JsonObject])
    nodes: list[JsonObject] = field(default_factory=list[JsonObject])
    values: list[_Value] = field(default_factory=list[_Value])
    data: dict[str, npt.NDArray[np.generic]] = field(default_factory=dict[str, npt.NDArray[np.generic]])

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        """Draw a shape within the element limit."""
        rank = self.rng.randint(0, 4) if rank is None else rank
        while True:
            shape = tuple(self.rng.choice(_EXTENTS) for _ in range(rank))
            if math.prod(shape) <= self.limit // 4:
                return shape

    def new_input(self, shape: tuple[int, ...], dtype: str = "float16") -> _Value:
        """Add an input with random numbers; those of floats lie on a coarse grid, so that comparisons can tie."""
        name = f"x{len(self.inputs)}"
        generator = np.random.Generator(np.random.PCG64(self.rng.getrandbits(60)))
        numbers = np.round(generator.standard_normal(shape) * 8) / 8
        self.data[name] = np.asarray(numbers < 0 if dtype == "bool" else numbers).astype(dtype)
        self.inputs.append({"name": name, "shape": list(shape), "dtype": dtype})
        return self._add(name, shape, dtype)

    def _add(self, name: str, shape: tuple[int, ...], dtype: str) -> _Value:
        value = _Value(name, shape, dtype)
        self.values.append(value)
        return value

    def emit(
        self, op: str, operands: list[object], extents: tuple[int, ...], result: str, /, **attrs: object
    ) -> _Value:
        """Add a node."""
        name = f"n{len(self.nodes)}"
        names = [operand.name if isinstance(operand, _Value) else operand for operand in operands]
        node: JsonObject = {"name": name, "op": op, "inputs": names}
        if attrs:
            node["attrs"] = attrs
        self.nodes.append(node)
        return self._add(name, extents, result)

    def pick(self, *dtypes: str, rank: int = 0) -> _Value:
        """Return a known value of one of the dtypes and at least the rank, or a new input."""
        found = [value for value in self.values if value.dtype in dtypes and len(value.shape) >= rank]
        if found and self.rng.random() < 0.85:
            return found[-1] if self.rng.random() < 0.5 else self.rng.choice(found)
        return self.new_input(self.shape(max(rank, self.rng.randint(0, 4))), dtypes[0])

    def partner(self, shape: tuple[int, ...], dtype: str) -> object:
        """Return an operand that broadcasts to ``shape``: a known one, a new input, or a number."""
        fits = [v for v in self.values if v.dtype == dtype and _broadcasts(v.shape, shape)]
        if fits and self.rng.random() < 0.6:
            return self.rng.choice(fits)
        if self.rng.random() < 0.2:
            return self.rng.choice((0.5, -1.25, 2, 0))
        narrowed = tuple(1 if self.rng.random() < 0.25 else extent for extent in shape)
        return self.new_input(
            narrowed[self.rng.randint(0, len(shape)) :] if self.rng.random() < 0.3 else narrowed, dtype
        )

    def to_json(self, outputs: list[str]) -> JsonObject:
        """Return the graph file's object."""
        return {
            "format": "spyrec.graph/1",
            "name": "random",
            "inputs": self.inputs,
            "nodes": self.nodes,
            "outputs": outputs,
        }


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    if len(shape) > len(target):
        return False
    tail = target[len(target) - len(shape) :]
    return all(one in (1, other) for one, other in zip(shape, tail, strict=True))


def _unary(g: RandomGraph) -> None:
    _one_of(g, _UNARY)


def _smooth_unary(g: RandomGraph) -> None:
    _one_of(g, tuple(op for op in _UNARY if op != "floor"))


def _one_of(g: RandomGraph, ops: tuple[str, ...]) -> None:
    x = g.pick("float16", "float32")
    op = g.rng.choice([op for op in ops if x.dtype == "float16" or op not in _HALF_ONLY])
    g.emit(op, [x], x.shape, x.dtype)


def _binary(g: RandomGraph) -> None:
    x = g.pick("float16", "float32")
    g.emit(g.rng.choice(_BINARY), [x, g.partner(x.shape, x.dtype)], x.shape, x.dtype)


def _compare(g: RandomGraph) -> None:
    x = g.pick("float16")
    condition = g.emit(g.rng.choice(_COMPARE), [x, g.partner(x.shape, "float16")], x.shape, "bool")
    if g.rng.random() < 0.5:
        g.emit("where", [condition, x, g.partner(x.shape, "float16")], x.shape, "float16")
    elif g.rng.random() < 0.5:
        g.emit("logical_not", [condition], x.shape, "bool")


def _reduce(g: RandomGraph) -> None:
    x = g.pick("float16", "float32", rank=1)
    dims = sorted(g.rng.sample(range(len(x.shape)), g.rng.randint(1, min(2, len(x.shape)))))
    keepdim = g.rng.random() < 0.5
    kept = [1 if d in dims else n for d, n in enumerate(x.shape) if keepdim or d not in dims]
    g.emit(g.rng.choice(_REDUCE), [x], tuple(kept), x.dtype, dim=dims, keepdim=keepdim)


def _matmul(g: RandomGraph) -> None:
    x = g.pick("float16", rank=2)
    columns = g.rng.choice(_EXTENTS)
    batch = x.shape[:-2] if g.rng.random() < 0.5 else ()
    if math.prod(batch) * x.shape[-1] * columns > g.limit or math.prod(x.shape[:-1]) * columns > g.limit:
        return
    known = [v for v in g.values if v.dtype == "float16" and len(v.shape) == 2 and v.shape[0] == x.shape[-1]]
    other = g.rng.choice(known) if known and g.rng.random() < 0.4 else g.new_input((*batch, x.shape[-1], columns))
    product = g.emit("matmul", [x, other], (*x.shape[:-1], other.shape[-1]), "float16")
    g.emit("mul", [product, 2.0 ** -round(math.log2(x.shape[-1]) / 2)], product.shape, "float16")


def _norm(g: RandomGraph) -> None:
    x = g.pick("float16", "float32", rank=1)
    match g.rng.randint(0, 2):
        case 0:
            g.emit("softmax", [x], x.shape, x.dtype, dim=g.rng.randrange(len(x.shape)))
        case 1:
            g.emit("rms_norm", [x], x.shape, x.dtype, normalized_shape=[x.shape[-1]], eps=2.0**-10)
        case _:
            g.emit("layer_norm", [x], x.shape, x.dtype, normalized_shape=[x.shape[-1]], eps=2.0**-7)


def _any(g: RandomGraph, rank: int = 0) -> _Value:
    return g.pick(*g.rng.choice((("float16", "float32"), ("float16",), ("bool",))), rank=rank)


def _reshape(g: RandomGraph) -> None:
    x = _any(g)
    if math.prod(x.shape) == 1:
        return
    left = math.prod(x.shape)
    shape: list[int] = []
    while left > 1 and len(shape) < 3 and g.rng.random() < 0.75:
        shape.append(g.rng.choice([d for d in range(2, left + 1) if left % d == 0]))
        left //= shape[-1]
    shape.append(left)
    g.rng.shuffle(shape)
    g.emit("reshape", [x], tuple(shape), x.dtype, shape=shape)


def _permute(g: RandomGraph) -> None:
    x = _any(g, rank=2)
    order = list(range(len(x.shape)))
    g.rng.shuffle(order)
    g.emit("permute", [x], tuple(x.shape[d] for d in order), x.dtype, dims=order)


def _slice(g: RandomGraph) -> None:
    x = _any(g, rank=1)
    dim = g.rng.randrange(len(x.shape))
    extent = x.shape[dim]
    if g.rng.random() < 0.3:
        rest = (*x.shape[:dim], *x.shape[dim + 1 :])
        g.emit("select", [x], rest, x.dtype, dim=dim, index=g.rng.randrange(extent))
        return
    start = g.rng.choice((0, 0, g.rng.randrange(extent), 64 if extent > 64 else 0))
    end = g.rng.randint(start + 1, extent)
    step = g.rng.choice((1, 1, 1, 2, 3))
    count = len(range(start, end, step))
    shape = (*x.shape[:dim], count, *x.shape[dim + 1 :])
    g.emit("slice", [x], shape, x.dtype, dim=dim, start=start, end=end, step=step)


def _expand(g: RandomGraph) -> None:
    x = _any(g)
    if len(x.shape) > 3:
        return
    dim = g.rng.randint(0, len(x.shape))
    wide = g.emit("unsqueeze", [x], (*x.shape[:dim], 1, *x.shape[dim:]), x.dtype, dim=dim)
    count = g.rng.choice((1, 2, 3, 64, 65))
    if math.prod(x.shape) * count > g.limit:
        return
    shape = (*x.shape[:dim], count, *x.shape[dim:])
    g.emit("expand", [wide], shape, x.dtype, size=list(shape))


def _cat(g: RandomGraph) -> None:
    x = _any(g, rank=1)
    dim = g.rng.randrange(len(x.shape))
    if math.prod(x.shape) * 2 > g.limit:
        return
    extra = g.rng.choice((x.shape[dim], 1, 3, 64))
    shape = (*x.shape[:dim], extra, *x.shape[dim + 1 :])
    if math.prod(shape) > g.limit:
        return
    other = x if extra == x.shape[dim] and g.rng.random() < 0.5 else g.new_input(shape, x.dtype)
    total = (*x.shape[:dim], x.shape[dim] + extra, *x.shape[dim + 1 :])
    pieces = [x, other] if g.rng.random() < 0.5 else [other, x]
    g.emit("cat", list(pieces), total, x.dtype, dim=dim)


def _cast(g: RandomGraph) -> None:
    x = _any(g)
    target = {"float16": "float32", "float32": "float16", "bool": g.rng.choice(("float16", "float32"))}[x.dtype]
    g.emit("to", [x], x.shape, target, dtype=target)


def _copy(g: RandomGraph) -> None:
    x = _any(g)
    g.emit(g.rng.choice(("contiguous", "clone")), [x], x.shape, x.dtype)


_STEPS: tuple[Callable[[RandomGraph], None], ...] = (
    *(_unary, _binary, _binary, _compare, _reduce, _matmul, _norm),
    *(_reshape, _reshape, _permute, _permute, _slice, _slice, _expand, _cat, _cast, _copy),
)
CONTINUOUS_STEPS = (*(step for step in _STEPS if step not in (_unary, _compare)), _smooth_unary)
"""Without floor and comparisons: a small error stays small."""

VIEW_STEPS: tuple[Callable[[RandomGraph], None], ...] = (_reshape, _permute, _slice, _expand, _cat, _copy)


def random_graph(
    seed: int, steps: int = 6, kinds: tuple[Callable[[RandomGraph], None], ...] = _STEPS
) -> tuple[JsonObject, dict[str, npt.NDArray[np.generic]]]:
    """Return a graph file's object and an array per input, the same for the same seed."""
    rng = random.Random(seed)
    graph = RandomGraph(rng)
    graph.new_input(graph.shape())
    while len(graph.nodes) < steps:
        rng.choice(kinds)(graph)
    names = [str(node["name"]) for node in graph.nodes]
    outputs = [names[-1], *rng.sample(names, min(len(names), rng.randint(0, 2)))]
    return graph.to_json(list(dict.fromkeys(outputs))), graph.data
