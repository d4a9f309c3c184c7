"""What PyTorch's functions compute, written in NumPy: float64, int64 and bool, independent of the compiler's own.

Each result has beside its numbers the size of the terms that it is made of, since rounding acts on those: of a sum the
sum of magnitudes.  ``roundings``: how many results of operations, each rounded, lie on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from spyrec.hardware.dtypes import DType
from spyrec.sweep.model_calls.arguments import Arguments, Array
from spyrec.sweep.model_calls.cases import Argument, Slice, Tensor
from spyrec.sweep.model_calls.translate import result_index, target_dtype

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Expected:
    """One result; ``terms`` are the result's own magnitudes where absent, ``dtype`` what its numbers say."""

    values: Array
    terms: Array | None = None
    roundings: int = 1
    dtype: DType | None = None


Oracle = Callable[[Arguments], list[Expected]]


def _one(values: Array, terms: Array | None = None, roundings: int = 1, dtype: DType | None = None) -> list[Expected]:
    return [Expected(np.asarray(values), terms, roundings, dtype)]


def _floats(a: Arguments, name: str = "input") -> Floats:
    return a.array(name).astype(np.float64)


# --- element by element ---


def _pair(function: Callable[[Array, Array], Array]) -> Oracle:
    return lambda a: _one(function(a.array(), a.array("other")))


def _sum_like(function: Callable[[Array, Array], Array]) -> Oracle:
    def compute(a: Arguments) -> list[Expected]:
        one, other = a.array(), a.array("other")
        if a.has("alpha"):
            other = other * np.asarray(a.number("alpha"))
        return _one(function(one, other), np.abs(one) + np.abs(other))

    return compute


def _function(function: Callable[[Floats], Floats], roundings: int = 1) -> Oracle:
    return lambda a: _one(function(_floats(a)), None, roundings)


def _wave(function: Callable[[Floats], Floats]) -> Oracle:
    """Sine and cosine cross 0 away from their arguments' own 0: an eighth of a unit there is as good as it gets."""

    def compute(a: Arguments) -> list[Expected]:
        values = function(_floats(a))
        return _one(values, np.abs(values) + 0.125)

    return compute


def _power(a: Arguments) -> list[Expected]:
    return _one(np.power(_floats(a), a.number("exponent")), None, 2)


def _quotient(a: Arguments) -> list[Expected]:
    one, other = a.array(), a.array("other")
    match a.bound.get("rounding_mode"):
        case "trunc":
            quotient = np.abs(one) // np.abs(other) * np.sign(one) * np.sign(other)
            return _one(quotient)
        case "floor":
            return _one(one // other)
        case _:
            return _one(one.astype(np.float64) / other.astype(np.float64))


def _clamp(a: Arguments) -> list[Expected]:
    values = a.array()
    if a.has("min"):
        values = np.maximum(values, np.asarray(a.number("min")).astype(values.dtype))
    if a.has("max") and not math.isinf(a.number("max")):
        values = np.minimum(values, np.asarray(a.number("max")).astype(values.dtype))
    return _one(values)


def _sigmoid(x: Floats) -> Floats:
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _gelu(a: Arguments) -> list[Expected]:
    x = _floats(a)
    if a.bound.get("approximate") == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return _one(x * _sigmoid(2 * inner), None, 2)
    return _one(0.5 * x * _erfc(-x / math.sqrt(2)), None, 2)


def _softplus(x: Floats) -> Floats:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _where(a: Arguments) -> list[Expected]:
    return _one(np.where(a.array("condition"), a.array("input"), a.array("other")))


def _masked_fill(a: Arguments) -> list[Expected]:
    values = a.array()
    return _one(np.where(a.array("mask"), np.asarray(a.number("value")).astype(values.dtype), values))


# --- one dim or several folded ---


def _fold(a: Arguments, function: Callable[..., Array], **options: object) -> Array:
    return np.asarray(function(a.array(), axis=a.dims(), keepdims=a.flag("keepdim"), **options))


def _sum(a: Arguments) -> list[Expected]:
    sizes = np.abs(_floats(a)).sum(axis=a.dims(), keepdims=a.flag("keepdim"))
    return _one(_fold(a, np.sum), sizes)


def _mean(a: Arguments) -> list[Expected]:
    sizes = np.abs(_floats(a)).mean(axis=a.dims(), keepdims=a.flag("keepdim"))
    return _one(_fold(a, np.mean), sizes)


def _largest(a: Arguments) -> list[Expected]:
    if not a.has("dim"):
        return _one(np.max(a.array()))
    dim, keep = a.whole("dim"), a.flag("keepdim")
    return [
        Expected(np.max(a.array(), axis=dim, keepdims=keep)),
        Expected(np.argmax(a.array(), axis=dim, keepdims=keep).astype(np.int64)),
    ]


def _cumsum(a: Arguments) -> list[Expected]:
    x, dim, asked = a.array(), a.whole("dim"), a.dtype()
    if asked is not None and not asked.is_float:
        return _one(np.cumsum(x.astype(np.int64), axis=dim), None, 1, asked)
    return _one(np.cumsum(x, axis=dim), np.cumsum(np.abs(x), axis=dim))


def _softmax(a: Arguments) -> list[Expected]:
    x, dim = _floats(a), a.whole("dim")
    below = x - x.max(axis=dim, keepdims=True)
    weights = np.exp(below) / np.exp(below).sum(axis=dim, keepdims=True)
    return _one(weights, weights * (1 + np.abs(below)), 2)


def _rms_norm(a: Arguments) -> list[Expected]:
    x = _floats(a)
    axes = tuple(range(-len(a.wholes("normalized_shape")), 0))
    values = x / np.sqrt((x * x).mean(axis=axes, keepdims=True) + a.number("eps", 2.0**-23))
    return _one(values * a.array("weight") if a.has("weight") else values, None, 3)


def _sorted(a: Arguments) -> list[Expected]:
    x, dim = a.array(), a.whole("dim", -1)
    order = np.argsort(x, axis=dim, kind="stable")
    order = np.flip(order, dim) if a.flag("descending") else order
    return [Expected(np.take_along_axis(x, order, dim)), Expected(order.astype(np.int64))]


def _topk(a: Arguments) -> list[Expected]:
    x, dim = a.array(), a.whole("dim", -1)
    order = np.flip(np.argsort(x, axis=dim, kind="stable"), dim)
    order = np.take(order, np.arange(a.whole("k")), axis=dim)
    return [Expected(np.take_along_axis(x, order, dim)), Expected(order.astype(np.int64))]


def _histogram(a: Arguments) -> list[Expected]:
    low, high, bins = a.number("min"), a.number("max"), a.whole("bins", 100)
    counts, _ = np.histogram(_floats(a), bins=bins, range=(low, high))
    return _one(counts.astype(np.float64))


# --- sums of products ---


def _matmul(a: Arguments) -> list[Expected]:
    x, y = _floats(a), _floats(a, "mat2" if "mat2" in a.bound else "other")
    return _one(x @ y, np.abs(x) @ np.abs(y))


def _linear(a: Arguments) -> list[Expected]:
    x, weight = _floats(a), _floats(a, "weight")
    values, terms = x @ weight.T, np.abs(x) @ np.abs(weight).T
    if a.has("bias"):
        values, terms = values + a.array("bias"), terms + np.abs(a.array("bias"))
    return _one(values, terms, 2)


def _grouped(a: Arguments) -> list[Expected]:
    """Rows up to the first offset meet the first matrix, those up to the second the second, and so on."""
    x, y = _floats(a, "mat_a"), _floats(a, "mat_b")
    ends = [int(end) for end in a.array("offs")]
    values, terms = np.zeros((len(x), y.shape[-1])), np.zeros((len(x), y.shape[-1]))
    for group, (start, end) in enumerate(zip([0, *ends], ends)):
        values[start:end] = x[start:end] @ y[group]
        terms[start:end] = np.abs(x[start:end]) @ np.abs(y[group])
    return _one(values, terms)


def _attention(a: Arguments) -> list[Expected]:
    query, key, value = _floats(a, "query"), _floats(a, "key"), _floats(a, "value")
    scale = a.number("scale") if a.has("scale") else query.shape[-1] ** -0.5
    if a.flag("enable_gqa"):
        times = query.shape[-3] // key.shape[-3]
        key, value = np.repeat(key, times, -3), np.repeat(value, times, -3)
    scores = query @ np.swapaxes(key, -1, -2) * scale
    sizes = (np.abs(query) @ np.swapaxes(np.abs(key), -1, -2)) * abs(scale)
    if a.flag("is_causal"):
        may_see = np.tri(query.shape[-2], key.shape[-2], dtype=np.bool_)
        scores, sizes = np.where(may_see, scores, -np.inf), np.where(may_see, sizes, 0)
    if a.has("attn_mask"):
        mask = a.array("attn_mask")
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    steps = 1 + sizes.max(-1, keepdims=True)
    return _one(weights @ value, (weights * steps) @ np.abs(value), 4)


def _convolution(a: Arguments) -> list[Expected]:
    x, weight = _floats(a), _floats(a, "weight")
    rank = x.ndim - 2
    pads = _each(a, "padding", 0, rank)
    x = np.pad(x, [(0, 0), (0, 0), *((pad, pad) for pad in pads)])
    values, terms = _windows(a, x, weight), _windows(a, np.abs(x), np.abs(weight))
    if a.has("bias"):
        bias = a.array("bias").reshape(-1, *(1,) * rank)
        values, terms = values + bias, terms + np.abs(bias)
    return _one(values, terms, 2)


def _each(a: Arguments, name: str, default: int, rank: int) -> tuple[int, ...]:
    found = a.wholes(name) if a.has(name) else (default,)
    return found * rank if len(found) == 1 else found


def _windows(a: Arguments, x: Floats, weight: Floats) -> Floats:
    """Return every channel's sum over every window; ``x`` is padded, ``[N, C, ...]``."""
    rank = x.ndim - 2
    steps, holes = _each(a, "stride", 1, rank), _each(a, "dilation", 1, rank)
    spans = tuple(hole * (size - 1) + 1 for hole, size in zip(holes, weight.shape[2:]))
    found = sliding_window_view(x, spans, axis=tuple(range(2, 2 + rank)))
    places = (slice(None), slice(None), *(slice(None, None, step) for step in steps))
    found = found[(*places, *(slice(None, None, hole) for hole in holes))]
    groups = a.whole("groups", 1)
    if groups == x.shape[1] == weight.shape[0]:
        shape = (1, groups, *(1,) * rank, *weight.shape[2:])
        axes = tuple(range(-rank, 0))
        return (found * weight.reshape(shape)).sum(axis=axes)
    results: list[Floats] = []
    for channels, filters in zip(np.split(found, groups, axis=1), np.split(weight, groups, axis=0)):
        inner = (1, *range(2 + rank, 2 + 2 * rank))
        product = np.tensordot(channels, filters, axes=(inner, tuple(range(1, 2 + rank))))
        results.append(np.moveaxis(product, -1, 1))
    return np.concatenate(results, axis=1)


# --- elements moved ---


def _moved(function: Callable[[Arguments], Array]) -> Oracle:
    return lambda a: _one(function(a))


def _view(a: Arguments) -> Array:
    return np.reshape(a.array(), a.wholes("shape"))


def _expand(a: Arguments) -> Array:
    x, sizes = a.array(), a.wholes("size")
    aligned = (1,) * (len(sizes) - x.ndim) + x.shape
    return np.broadcast_to(x, [old if new == -1 else new for old, new in zip(aligned, sizes)])


def _flatten(a: Arguments) -> Array:
    x = a.array()
    start, end = a.whole("start_dim", 0) % max(x.ndim, 1), a.whole("end_dim", -1) % max(x.ndim, 1)
    return x.reshape((*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


def _concatenated(a: Arguments) -> Array:
    parts = [item for item in a.every("tensors") if item.shape != (0,)]  # PyTorch skips those, whatever the rank
    return np.concatenate(parts, axis=a.whole("dim", 0))


def _getitem(a: Arguments) -> Array:
    if isinstance(a.bound["input"], tuple):  # one of several results
        return a.every("input")[result_index(a.bound)]
    return a.array()[_places(a)] if "index" in a.bound else a.array()


def _places(a: Arguments) -> tuple[Any, ...]:
    index = a.bound["index"]
    if isinstance(index, Tensor):
        return (a.array("index"),)
    items = index if isinstance(index, tuple) else (index,)
    return tuple(_place(a, f"index_{number}", item) for number, item in enumerate(items))


def _place(a: Arguments, name: str, item: Argument) -> Any:  # noqa: ANN401 -- what NumPy takes as an index
    if isinstance(item, Tensor):
        return a.array(name)
    return slice(item.start, item.stop, item.step) if isinstance(item, Slice) else item


def _setitem(a: Arguments) -> Array:
    x = a.array().copy()
    x[_places(a)] = a.array("value")
    return x


def _split(a: Arguments) -> list[Expected]:
    x, sizes, dim = a.array(), a.bound["split_size"], a.whole("dim", 0)
    extent = x.shape[dim]
    whole = [sizes] * -(-extent // sizes) if isinstance(sizes, int) else list(a.wholes("split_size"))
    return [Expected(part) for part in np.split(x, np.cumsum(whole)[:-1], axis=dim)]


def _chunk(a: Arguments) -> list[Expected]:
    x, dim = a.array(), a.whole("dim", 0)
    size = max(-(-x.shape[dim] // a.whole("chunks")), 1)
    return [Expected(part) for part in np.split(x, range(size, x.shape[dim], size), axis=dim)]


def _meshgrid(a: Arguments) -> list[Expected]:
    return [Expected(found) for found in np.meshgrid(*a.every("tensors"), indexing="ij")]


def _padded(a: Arguments) -> Array:
    x, amounts = a.array(), a.wholes("pad")
    for pair in range(len(amounts) // 2):
        axis = x.ndim - 1 - pair
        before, after = amounts[2 * pair : 2 * pair + 2]
        places = [slice(None)] * x.ndim
        places[axis] = slice(max(-before, 0), x.shape[axis] - max(-after, 0))
        widths = [(0, 0)] * x.ndim
        widths[axis] = (max(before, 0), max(after, 0))
        x = np.pad(x[tuple(places)], widths, constant_values=a.number("value") if a.has("value") else 0)
    return x


def _along(a: Arguments, name: str) -> tuple[Any, ...]:
    places: list[Any] = [slice(None)] * a.array().ndim
    places[a.whole("dim")] = a.array(name)
    return tuple(places)


def _index_add(a: Arguments) -> list[Expected]:
    x, sizes = a.array().copy(), np.abs(a.array())
    np.add.at(x, _along(a, "index"), a.array("source"))
    np.add.at(sizes, _along(a, "index"), np.abs(a.array("source")))
    return _one(x, sizes)


def _index_copy(a: Arguments) -> Array:
    x = a.array().copy()
    x[_along(a, "index")] = a.array("source")
    return x


def _scatter(a: Arguments) -> Array:
    x, index = a.array().copy(), a.array("index")
    np.put_along_axis(x, index, np.broadcast_to(a.array("src"), index.shape), a.whole("dim"))
    return x


def _masked_scatter(a: Arguments) -> Array:
    mask = np.broadcast_to(a.array("mask"), a.array().shape)
    x = a.array().copy()
    x[mask] = a.array("source").reshape(-1)[: int(mask.sum())]
    return x


def _repeat_interleave(a: Arguments) -> Array:
    return np.repeat(a.array(), a.whole("repeats"), axis=a.whole("dim"))


def _transposed(a: Arguments) -> Array:
    return np.swapaxes(a.array(), a.whole("dim0"), a.whole("dim1"))


def _squeezed(a: Arguments) -> Array:
    x, dims = a.array(), a.dims()
    wanted = range(x.ndim) if dims is None else [dim % x.ndim for dim in dims]
    return np.squeeze(x, tuple(dim for dim in wanted if x.shape[dim] == 1))


def _triangle(a: Arguments) -> Array:
    x = a.array()
    return np.where(np.tri(*x.shape[-2:], k=a.whole("diagonal"), dtype=np.bool_), x, np.zeros((), x.dtype))


# --- values from nothing, conversions ---


def _arange(a: Arguments) -> list[Expected]:
    start, end = (a.number("start"), a.number("end")) if a.has("end") else (0, a.number("start"))
    return _one(np.arange(start, end, a.number("step", 1)))


def _filled(number: float) -> Oracle:
    def compute(a: Arguments) -> list[Expected]:
        asked = a.dtype()
        if "input" in a.bound:
            asked = asked or a.tensor().dtype
        shape = a.wholes("size") if "size" in a.bound else a.array().shape
        asked = asked or DType.FLOAT32
        value = a.number("fill_value", number)
        carrier = np.float64 if asked.is_float else np.bool_ if asked is DType.BOOL else np.int64
        return _one(np.full(shape, value, carrier), None, 1, asked)

    return compute


def _converted(target: Callable[[Arguments], DType]) -> Oracle:
    def compute(a: Arguments) -> list[Expected]:
        x, dtype = a.array("source" if "source" in a.bound else "input"), target(a)
        if dtype.is_float:
            return _one(x.astype(np.float64), None, 1, dtype)
        return _one(x != 0 if dtype is DType.BOOL else np.trunc(x).astype(np.int64), None, 1, dtype)

    return compute


def _literal(a: Arguments) -> list[Expected]:
    return _one(np.asarray(a.wholes("data"), np.int64))


ORACLES: dict[str, Oracle] = {
    "add": _sum_like(np.add),
    "all": _moved(lambda a: _fold(a, np.all)),
    "arange": _arange,
    "as_tensor": _moved(lambda a: a.array()),
    "bitwise_and": _pair(np.bitwise_and),
    "bitwise_not": _moved(lambda a: np.invert(a.array())),
    "bitwise_or": _pair(np.bitwise_or),
    "bmm": _matmul,
    "cat": _moved(_concatenated),
    "chunk": _chunk,
    "clamp": _clamp,
    "clone": _moved(lambda a: a.array()),
    "contiguous": _moved(lambda a: a.array()),
    "conv1d": _convolution,
    "conv2d": _convolution,
    "copy": _converted(lambda a: a.tensor().dtype),
    "cos": _wave(np.cos),
    "cumsum": _cumsum,
    "div": _quotient,
    "dropout": _moved(lambda a: a.array()),
    "embedding": _moved(lambda a: a.array("weight")[a.array()]),
    "empty_like": _filled(0),
    "eq": _pair(np.equal),
    "exp": _function(np.exp),
    "expand": _moved(_expand),
    "expand_as": _moved(lambda a: np.broadcast_to(a.array(), a.array("other").shape)),
    "flatten": _moved(_flatten),
    "float": _converted(lambda _: DType.FLOAT32),
    "floor": _function(np.floor),
    "floor_divide": _pair(np.floor_divide),
    "full": _filled(0),
    "ge": _pair(np.greater_equal),
    "gelu": _gelu,
    "getitem": _moved(_getitem),
    "grouped_mm": _grouped,
    "gt": _pair(np.greater),
    "histc": _histogram,
    "index_add": _index_add,
    "index_copy": _moved(_index_copy),
    "le": _pair(np.less_equal),
    "linear": _linear,
    "log": _function(np.log),
    "long": _converted(lambda _: DType.INT64),
    "lt": _pair(np.less),
    "masked_fill": _masked_fill,
    "masked_scatter": _moved(_masked_scatter),
    "matmul": _matmul,
    "max": _largest,
    "mean": _mean,
    "meshgrid": _meshgrid,
    "mul": _pair(np.multiply),
    "neg": _moved(lambda a: np.negative(a.array())),
    "new_ones": _filled(1),
    "ones": _filled(1),
    "pad": _moved(_padded),
    "permute": _moved(lambda a: np.transpose(a.array(), a.wholes("dims"))),
    "pow": _power,
    "prod": _moved(lambda a: _fold(a, np.prod)),
    "repeat": _moved(lambda a: np.tile(a.array(), a.wholes("repeats"))),
    "repeat_interleave": _moved(_repeat_interleave),
    "reshape": _moved(_view),
    "rms_norm": _rms_norm,
    "rsqrt": _function(lambda x: 1 / np.sqrt(x)),
    "scaled_dot_product_attention": _attention,
    "scatter": _moved(_scatter),
    "setitem": _moved(_setitem),
    "sigmoid": _function(_sigmoid),
    "silu": _function(lambda x: x * _sigmoid(x), 2),
    "sin": _wave(np.sin),
    "softmax": _softmax,
    "softplus": _function(_softplus),
    "sort": _sorted,
    "split": _split,
    "squeeze": _moved(_squeezed),
    "stack": _moved(lambda a: np.stack(a.every("tensors"), axis=a.whole("dim", 0))),
    "sub": _sum_like(np.subtract),
    "sum": _sum,
    "sym_sum": _moved(lambda a: np.asarray(sum(a.wholes("args")), np.int64)),
    "tanh": _function(np.tanh),
    "tensor": _literal,
    "to": _converted(lambda a: target_dtype(a.bound)),
    "topk": _topk,
    "transpose": _moved(_transposed),
    "tril": _moved(_triangle),
    "type_as": _converted(lambda a: a.tensor("other").dtype),
    "unsqueeze": _moved(lambda a: np.expand_dims(a.array(), a.whole("dim"))),
    "view": _moved(_view),
    "view_as": _moved(lambda a: np.reshape(a.array(), a.array("other").shape)),
    "where": _where,
    "zeros": _filled(0),
    "zeros_like": _filled(0),
}
"""What each public function computes, by name."""
