"""Random graphs over a few shared dims, with coarse-tiling requests: chains that loops can hold together."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tests.support.random_graphs import JsonObject

_EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 65, 70, 128, 129, 130, 192, 256, 257, 320)
_LIMIT = 1 << 16
_UNARY = ("abs", "neg", "sigmoid", "tanh", "relu", "silu", "square")
_BINARY = ("add", "sub", "mul", "maximum", "minimum")
_REDUCE = ("sum", "mean", "amax", "amin")


@dataclass(frozen=True)
class _Value:
    """``named``: the dims that the graph knows by name; the halves of an axis lose it, and so does what joins them."""

    name: str
    dims: tuple[str, ...]
    named: frozenset[str]


@dataclass
class _Builder:
    """A graph under construction; every value's axes are dims of the graph, each once.

    ``node_dims``: the dims that a loop around a node may run over, those of its operands and its result.
    """

    rng: random.Random
    dims: dict[str, int] = field(default_factory=dict[str, int])
    inputs: list[JsonObject] = field(default_factory=list[JsonObject])
    nodes: list[JsonObject] = field(default_factory=list[JsonObject])
    values: list[_Value] = field(default_factory=list[_Value])
    node_dims: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    data: dict[str, npt.NDArray[np.generic]] = field(default_factory=dict[str, npt.NDArray[np.generic]])

    def extents(self, dims: Sequence[str]) -> list[int]:
        """Return the extents of dims."""
        return [self.dims[dim] for dim in dims]

    def fits(self, dims: Sequence[str]) -> bool:
        """Whether a tensor over these dims is small enough."""
        return int(np.prod(self.extents(dims), dtype=np.int64)) <= _LIMIT

    def new_input(self, dims: Sequence[str]) -> _Value:
        """Add an input with numbers on a coarse grid."""
        name = f"x{len(self.inputs)}"
        generator = np.random.Generator(np.random.PCG64(self.rng.getrandbits(60)))
        numbers = np.round(generator.standard_normal(self.extents(dims)) * 8) / 8
        self.data[name] = numbers.astype(np.float16)
        self.inputs.append({"name": name, "shape": list(dims), "dtype": "float16"})
        return self._value(name, dims, dims)

    def _value(self, name: str, dims: Sequence[str], named: Iterable[str]) -> _Value:
        value = _Value(name, tuple(dims), frozenset(named))
        self.values.append(value)
        return value

    def emit(self, op: str, operands: Sequence[object], axes: Sequence[str], /, **attrs: object) -> _Value:
        """Add a node; ``axes``: those of its result that are whole dims."""
        names = [operand.name if isinstance(operand, _Value) else operand for operand in operands]
        node: JsonObject = {"name": f"n{len(self.nodes)}", "op": op, "inputs": names}
        if attrs:
            node["attrs"] = attrs
        self.nodes.append(node)
        known = frozenset[str]().union(*(operand.named for operand in operands if isinstance(operand, _Value)))
        made = self._value(str(node["name"]), axes, axes if op == "view" else known.intersection(axes))
        self.node_dims[made.name] = known | made.named
        return made

    def pick(self) -> _Value:
        """Return the latest value, another one, or a new input."""
        if not self.values or self.rng.random() < 0.12:
            return self.new_input(self._some_dims())
        return self.values[-1] if self.rng.random() < 0.65 else self.rng.choice(self.values)

    def _some_dims(self) -> list[str]:
        while True:
            dims = self.rng.sample(list(self.dims), self.rng.randint(1, len(self.dims)))
            if self.fits(dims):
                return dims

    def partner(self, dims: Sequence[str]) -> object:
        """Return an operand that broadcasts to ``dims``: known, new, narrower, or a number."""
        known = [value for value in self.values if value.dims == tuple(dims[len(dims) - len(value.dims) :])]
        draw = self.rng.random()
        if known and draw < 0.5:
            return self.rng.choice(known)
        if draw < 0.6:
            return self.rng.choice((0.5, -1.25, 2))
        return self.new_input(dims[self.rng.randint(0, len(dims) - 1) :] if dims else ())


def _without(dims: Sequence[str], axis: int) -> tuple[str, ...]:
    return (*dims[:axis], *dims[axis + 1 :])


def _unary(g: _Builder) -> None:
    x = g.pick()
    g.emit(g.rng.choice(_UNARY), [x], x.dims)


def _binary(g: _Builder) -> None:
    x = g.pick()
    g.emit(g.rng.choice(_BINARY), [x, g.partner(x.dims)], x.dims)


def _reduce(g: _Builder) -> None:
    x = g.pick()
    if not x.dims:
        return
    dim = g.rng.randrange(len(x.dims))
    if g.rng.random() < 0.5:
        g.emit(g.rng.choice(_REDUCE), [x], _without(x.dims, dim), dim=[dim], keepdim=False)
        return
    # the reduced dim comes back in the operation that reads it
    reduced = g.emit(g.rng.choice(_REDUCE), [x], _without(x.dims, dim), dim=[dim], keepdim=True)
    g.values.pop()
    g.emit(g.rng.choice(_BINARY), [x, reduced], x.dims)


def _matmul(g: _Builder) -> None:
    x = g.pick()
    if len(x.dims) < 2:
        return
    free = [dim for dim in g.dims if dim not in x.dims]
    columns = g.rng.choice(free) if free else None
    if columns is None or not g.fits([*x.dims, columns]):
        return
    batch = x.dims[:-2] if g.rng.random() < 0.5 else ()
    known = [value for value in g.values if value.dims == (*batch, x.dims[-1], columns)]
    other = g.rng.choice(known) if known else g.new_input([*batch, x.dims[-1], columns])
    product = g.emit("matmul", [x, other], [*x.dims[:-1], columns])
    g.emit("mul", [product, 2.0 ** -round(np.log2(max(1, g.dims[x.dims[-1]])) / 2)], product.dims)


def _norm(g: _Builder) -> None:
    x = g.pick()
    if not x.dims:
        return
    match g.rng.randint(0, 2):
        case 0:
            g.emit("softmax", [x], x.dims, dim=g.rng.randrange(len(x.dims)))
        case 1:
            g.emit("rms_norm", [x], x.dims, normalized_shape=[x.dims[-1]], eps=2.0**-10)
        case _:
            g.emit("layer_norm", [x], x.dims, normalized_shape=[x.dims[-1]], eps=2.0**-7)


def _permute(g: _Builder) -> None:
    x = g.pick()
    order = g.rng.sample(range(len(x.dims)), len(x.dims))
    g.emit("permute", [x], [x.dims[dim] for dim in order], dims=order)


def _cat(g: _Builder) -> None:
    x = g.pick()
    half = next((dim for dim in range(len(x.dims)) if g.dims[x.dims[dim]] % 2 == 0), None)
    if half is None:
        return
    pieces: list[object] = []
    for first in (0, g.dims[x.dims[half]] // 2):
        end = first + g.dims[x.dims[half]] // 2
        pieces.append(g.emit("slice", [x], _without(x.dims, half), dim=half, start=first, end=end, step=1))
        g.values.pop()
    g.emit("cat", pieces[::-1], x.dims, dim=half)


def _merge_and_split(g: _Builder) -> None:
    """Two neighbouring axes become one without a name, and two again by what the sizes say."""
    x = g.pick()
    if len(x.dims) < 2:
        return
    left = g.rng.randrange(len(x.dims) - 1)
    sizes = [*x.dims[:left], f"{x.dims[left]}*{x.dims[left + 1]}", *x.dims[left + 2 :]]
    others = (*x.dims[:left], *x.dims[left + 2 :])
    merged = g.emit("reshape", [x], others, shape=sizes)
    inner = g.emit(g.rng.choice(_UNARY), [merged], others)
    del g.values[-2:]
    g.emit("view", [inner], x.dims, size=list(x.dims))


_KINDS: tuple[Callable[[_Builder], None], ...] = (
    _unary, _unary, _binary, _binary, _binary, _reduce, _reduce, _matmul, _matmul, _norm, _permute, _cat,
    _merge_and_split,
)  # fmt: skip


def looped_graph(seed: int, steps: int = 6) -> tuple[JsonObject, dict[str, npt.NDArray[np.generic]]]:
    """Return a graph with one to three groups of nested loops, and an array for every input."""
    rng = random.Random(seed)
    g = _Builder(rng, {name: rng.choice(_EXTENTS) for name in "ABCD"[: rng.randint(2, 4)]})
    while len(g.nodes) < steps:
        rng.choice(_KINDS)(g)
    names = [str(node["name"]) for node in g.nodes]
    outputs = [names[-1], *(name for name in names[:-1] if rng.random() < 0.15)]
    data: JsonObject = {
        "format": "spyrec.graph/1",
        "name": "looped",
        "dims": g.dims,
        "inputs": g.inputs,
        "nodes": g.nodes,
        "outputs": outputs,
    }
    loops = [item for group in _groups(names, rng) for item in _tree(g, group, ()) if not isinstance(item, str)]
    return {**data, "loops": loops}, g.data


def _groups(names: Sequence[str], rng: random.Random) -> list[list[str]]:
    """Return disjoint runs of nodes in graph order, often all of them."""
    if rng.random() < 0.5:
        return [list(names)]
    cuts = sorted(rng.sample(range(len(names) + 1), min(rng.choice((2, 2, 3, 4)), len(names) + 1)))
    return [list(names[first:end]) for first, end in pairwise(cuts)]


def _tree(g: _Builder, names: Sequence[str], outer: tuple[str, ...]) -> list[object]:
    """Return the nodes, all or some neighbours of them inside a loop over a dim that one of them has."""
    rng = g.rng
    found = sorted({dim for name in names for dim in g.node_dims[name] if outer.count(dim) < 2})
    if not found or len(outer) == 3 or not names:
        return list(names)
    first = rng.randrange(len(names)) if outer and rng.random() < 0.4 else 0
    end = rng.randint(first + 1, len(names)) if outer and rng.random() < 0.4 else len(names)
    chosen = [rng.choice(found)]
    if len(found) > 1 and rng.random() < 0.15:
        chosen.append(rng.choice([dim for dim in found if dim != chosen[0]]))
    smallest = min(g.extents(chosen))
    is_inner = any(dim in outer for dim in chosen)
    size = 1 if is_inner else rng.choice([1, 2, 3, 64, rng.randint(1, smallest), -(-smallest // 2)])
    inner = (*outer, *chosen)
    body = _tree(g, names[first:end], inner) if rng.random() < 0.55 else list(names[first:end])
    key = rng.choice(("tiles", "tile_size"))
    level: JsonObject = {"dim": chosen if len(chosen) > 1 else chosen[0], key: min(size, smallest), "body": body}
    return [*names[:first], level, *names[end:]]
