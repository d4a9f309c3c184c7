"""Random graphs of device ops, and an independent simulation of the device on them.

The simulation shares no arithmetic with ``spyrec.compare`` or with the catalogue: every op is written here, in float32,
one store at a time; sums run one term after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from spyrec.diagnostics import Location
from spyrec.hardware import dlfloat
from spyrec.hardware.dtypes import DType
from spyrec.ir.attributes import DimAttributes, NoAttributes
from spyrec.ir.constants import load_constant
from spyrec.ir.graph import ConstantData, Graph, Node, Operand, Scalar, Value
from spyrec.ir.opdef import Attributes, OpDef, catalogue
from spyrec.ir.ops.binary import AlphaAttributes, DivAttributes
from spyrec.ir.ops.normalization import Exx2Attributes, LayerNormScaleAttributes
from spyrec.ir.ops.reduction import FoldAttributes, ReductionAttributes
from spyrec.ir.ops.unary import ClampAttributes, GeluAttributes, SoftplusAttributes
from spyrec.ir.types import TensorType

Array = npt.NDArray[np.generic]
Singles = npt.NDArray[np.float32]


def catalogue_default(definition: OpDef) -> Attributes:
    """Return the attributes of an op that are all left at their defaults."""
    defaults = definition.attributes()
    assert isinstance(defaults, NoAttributes | AlphaAttributes | DivAttributes | GeluAttributes)
    return defaults


class GraphMaker:
    """Writes a graph node by node; types come from the catalogue."""

    def __init__(self, seed: int = 0, dtype: DType = DType.FLOAT16) -> None:
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.dtype = dtype
        self.nodes: list[Node] = []
        self.values: dict[str, Value] = {}
        self.inputs: dict[str, Array] = {}
        self.constants: dict[str, ConstantData] = {}

    def input(self, array: Array) -> str:
        """Add an input with these numbers."""
        name = self._value(f"x{len(self.values)}", array)
        self.inputs[name] = array
        return name

    def constant(self, array: Array) -> str:
        """Add a constant with these numbers."""
        name = self._value(f"w{len(self.values)}", array)
        self.constants[name] = ConstantData(array=array)
        return name

    def normal(self, *shape: int, scale: float = 1.0) -> Array:
        """Return standard normal numbers in the maker's dtype."""
        return (self.random.standard_normal(shape) * scale).astype(self.dtype.carrier)

    def node(self, op: str, *inputs: Operand, attributes: Attributes | None = None) -> str:
        """Add a node and return the name of its result."""
        definition = catalogue()[op]
        attributes = catalogue_default(definition) if attributes is None else attributes
        types = [self.values[item].type if isinstance(item, str) else TensorType((), self.dtype) for item in inputs]
        (result,) = definition.infer(types, attributes)
        name = f"n{len(self.values)}"
        self.values[name] = Value(name, result, (None,) * result.rank, Location())
        self.nodes.append(Node(name, op, inputs, (name,), attributes, Location()))
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value."""
        return self.values[name].type.shape

    def graph(self, *outputs: str) -> Graph:
        """Return the graph."""
        return Graph("g", {}, tuple(self.inputs), self.constants, tuple(self.nodes), self.values, outputs)

    def _value(self, name: str, array: Array) -> str:
        dtype = DType(str(array.dtype)) if array.dtype != np.bool_ else DType.BOOL
        self.values[name] = Value(name, TensorType(array.shape, dtype), (None,) * array.ndim, Location())
        return name


def load_from(graph: Graph) -> Callable[[str], Array]:
    """Return what gives the constants of a graph by name."""

    return lambda name: load_constant(graph, name)


def _sum(x: Singles, axes: tuple[int, ...], *, keepdim: bool) -> Singles:
    """Add terms one after the other in float32, in index order."""
    axes = tuple(axis % x.ndim for axis in axes)
    moved = np.moveaxis(x, axes, range(x.ndim - len(axes), x.ndim))
    kept = moved.shape[: x.ndim - len(axes)]
    total = np.add.accumulate(moved.reshape(*kept, -1), axis=-1, dtype=np.float32)[..., -1]
    return np.asarray(np.expand_dims(total, tuple(sorted(axes))) if keepdim else total, dtype=np.float32)


def _product(a: Singles, b: Singles) -> Singles:
    total = np.zeros(np.broadcast_shapes(a[..., :1].shape, b[..., :1, :].shape), dtype=np.float32)
    for k in range(a.shape[-1]):
        total += a[..., k : k + 1] * b[..., k : k + 1, :]
    return total


def _constant(value: float) -> np.float32:
    return np.float32(dlfloat.decode(dlfloat.encode(np.array([value])))[0])


def _reduce(name: str, x: Singles, attributes: FoldAttributes) -> Singles:
    axes = tuple(range(x.ndim)) if not attributes.dim else attributes.dim
    if name in ("amax", "amin"):
        return getattr(np, name)(x, axis=axes, keepdims=attributes.keepdim)
    if name == "prod":
        return np.asarray(np.prod(x, axis=axes, keepdims=attributes.keepdim, dtype=np.float32))
    total = _sum(x, axes, keepdim=attributes.keepdim)
    count = math.prod(x.shape[axis] for axis in axes)
    return np.asarray(total * _constant(1.0 / count), dtype=np.float32) if name == "mean" else total


def _gelu(x: Singles) -> Singles:
    half_tail = np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in x.reshape(-1).tolist()]).reshape(
        x.shape
    )
    return np.where(half_tail == 0, 0.0, x * half_tail).astype(np.float32)


def _rsqrt(x: Singles) -> Singles:
    return np.divide(np.float32(1), np.sqrt(x), dtype=np.float32)


def _reciprocal(x: Singles) -> Singles:
    return np.float32(1) / x


def _sigmoid(x: Singles) -> Singles:
    return np.float32(1) / (np.float32(1) + np.exp(-x))


def _relu(x: Singles) -> Singles:
    return np.maximum(x, np.float32(0))


def _silu(x: Singles) -> Singles:
    return x / (np.float32(1) + np.exp(-x))


def _softplus(x: Singles, attributes: SoftplusAttributes) -> Singles:
    beta, threshold = _constant(attributes.beta), _constant(attributes.threshold)
    return np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta).astype(np.float32)


def _clamp(x: Singles, attributes: ClampAttributes) -> Singles:
    raised = x if attributes.min is None else np.maximum(x, _constant(attributes.min))
    return raised if attributes.max is None else np.minimum(raised, _constant(attributes.max))


def _exx2(x: Singles, attributes: Exx2Attributes) -> Singles:
    lanes = (_sum(x, (-1,), keepdim=False), _sum(x * x, (-1,), keepdim=False))
    return np.asarray(np.stack(lanes, axis=-1) * _constant(attributes.exx2scale), dtype=np.float32)


def _layernormscale(x: Singles, attributes: LayerNormScaleAttributes) -> Singles:
    variance = np.subtract(x[..., 1:], np.square(x[..., :1]), dtype=np.float32)
    return _rsqrt(np.add(variance, _constant(attributes.eps), dtype=np.float32))


def _layernormnorm(x: Singles, t: Singles, scale: Singles, weight: Singles, bias: Singles) -> Singles:
    return (x - t[..., :1]) * scale * weight + bias


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "abs": np.abs,
    "neg": np.negative,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": _rsqrt,
    "reciprocal": _reciprocal,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "floor": np.floor,
    "relu": _relu,
    "silu": _silu,
    "gelu": _gelu,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "where": np.where,
    "spyre.batchmatmul": _product,
    "spyre.layernormnorm": _layernormnorm,
}


def _device_op(node: Node, operands: list[Array]) -> Array:
    if node.op in _FUNCTIONS:
        return np.asarray(_FUNCTIONS[node.op](*operands))
    x = operands[0].astype(np.float32) if operands and operands[0].dtype != np.bool_ else np.zeros(1, np.float32)
    match node.attributes:
        case FoldAttributes():
            return _reduce(node.op, x, node.attributes)
        case ClampAttributes():
            return _clamp(x, node.attributes)
        case SoftplusAttributes():
            return _softplus(x, node.attributes)
        case Exx2Attributes():
            return _exx2(x, node.attributes)
        case LayerNormScaleAttributes():
            return _layernormscale(x, node.attributes)
        case _:  # elements that only move
            return catalogue()[node.op].reference(operands, node.attributes)[0]


def stored(values: Array, numerics: str = "dl16") -> Array:
    """Return the values as they are stored, in float32; bools stay bools."""
    if values.dtype == np.bool_:
        return values
    if numerics == "dl16":
        return dlfloat.decode(dlfloat.encode(values.astype(np.float64)))
    return np.asarray(values).astype(np.float16 if numerics == "ieee" else np.float32).astype(np.float32)


def simulate(
    graph: Graph, inputs: Mapping[str, Array], numerics: str = "dl16", damage: tuple[str, int, int] | None = None
) -> dict[str, Array]:
    """Return every value as the device stores it.

    ``damage`` = (value, flat element, units in the last place) alters one stored DLFloat16 element.
    """
    values = {name: stored(array, numerics) for name, array in inputs.items()}
    values |= {name: stored(load_from(graph)(name), numerics) for name in graph.constants}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            operands = [
                values[item] if isinstance(item, str) else stored(np.array(item.value), numerics)
                for item in node.inputs
                if isinstance(item, str | Scalar)
            ]
            values[node.output] = stored(_device_op(node, operands), numerics)
            if damage is not None and damage[0] == node.output:
                values[node.output] = damaged(values[node.output], damage[1], damage[2])
    return values


def damaged(values: Array, element: int, units: int) -> Array:
    """Return the stored values with one element moved by units in the last place; a bool is turned over."""
    flat = values.reshape(-1).copy()
    if flat.dtype == np.bool_:
        flat[element] = ~flat[element]
    else:
        bits = dlfloat.encode(flat[element : element + 1].astype(np.float64))
        flat[element : element + 1] = dlfloat.decode(bits + np.uint16(units))
    return flat.reshape(values.shape)


_UNARY = ("abs", "neg", "exp", "log", "sqrt", "rsqrt", "reciprocal", "sigmoid", "tanh", "floor", "relu", "silu", "gelu")
_BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def random_graph(seed: int, length: int = 10) -> tuple[GraphMaker, list[str]]:
    """Return a random graph of ``length`` steps over values [..., columns], and the names of its node results."""
    maker = GraphMaker(seed)
    random = maker.random
    rows, columns = int(random.integers(1, 9)), int(random.integers(2, 150))
    floats = [maker.input(maker.normal(rows, columns, scale=float(random.choice([0.1, 1.0, 5.0])))) for _ in range(2)]
    floats.append(maker.input(maker.normal(columns)))
    made: list[str] = []
    for _ in range(length):
        name = _random_step(maker, [item for item in floats if maker.shape(item)[-1:] == (columns,)], columns)
        made.append(name)
        floats.append(name)
    return maker, made


def _random_step(maker: GraphMaker, pool: list[str], columns: int) -> str:
    random = maker.random
    x, y = (pool[-1] if random.random() < 0.6 else str(random.choice(pool)) for _ in range(2))
    match int(random.integers(0, 12)):
        case 0 | 1 | 2:
            return maker.node(str(random.choice(_UNARY)), x)
        case 3 | 4 | 5:
            return maker.node(str(random.choice(_BINARY)), x, y)
        case 6:
            condition = maker.node(str(random.choice(_COMPARISONS)), x, y)
            return maker.node("where", condition, y, Scalar(0.3))
        case 7:
            weight = maker.constant(maker.normal(columns, columns, scale=columns**-0.5))
            matrix = x if len(maker.shape(x)) > 1 else maker.node("unsqueeze", x, attributes=DimAttributes(0))
            return maker.node("spyre.batchmatmul", matrix, weight)
        case 8:
            op = str(random.choice(["sum", "mean", "amax", "amin"]))
            reduced = maker.node(op, x, attributes=ReductionAttributes((-1,), keepdim=True))
            return maker.node(str(random.choice(_BINARY)), x, reduced)
        case 9:
            return maker.node("clamp", x, attributes=ClampAttributes(-0.7, 1.3))
        case 10:
            return maker.node("softplus", x, attributes=SoftplusAttributes(1.1, 18.0))
        case _:
            return _layer_norm(maker, x, columns)


def _layer_norm(maker: GraphMaker, x: str, columns: int) -> str:
    statistics = maker.node("spyre.exx2", x, attributes=Exx2Attributes(1.0 / columns))
    scale = maker.node("spyre.layernormscale", statistics, attributes=LayerNormScaleAttributes(1e-3))
    weight, bias = maker.constant(maker.normal(columns)), maker.constant(maker.normal(columns))
    return maker.node("spyre.layernormnorm", x, statistics, scale, weight, bias)
