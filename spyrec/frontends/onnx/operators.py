"""ONNX's operators as ops of a graph, one function or one row each.

Source of the rules: the operators' specification (opset 13 and newer).  What an attribute says that a graph has not is
refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np

from spyrec.frontends.model_import.unsupported import Unsupported
from spyrec.frontends.onnx.attention import attention, rotary_embedding, swiglu, swish
from spyrec.frontends.onnx.open_numbers import Number, OpenNumber, hint_of, product
from spyrec.frontends.onnx.recurrent import recurrent
from spyrec.frontends.onnx.resizing import resize
from spyrec.frontends.value import Value

if TYPE_CHECKING:
    from onnx import TensorProto

    from spyrec.frontends.onnx.lower import Call

Operator = Callable[["Call"], Sequence[Value]]

_FLOATS = ("float16", "bfloat16", "float32")


def _same(op: str) -> Operator:
    """An op of the same operands and no attributes."""
    return lambda call: [call.add(op, *call.values())]


def _numeric(op: str) -> Operator:
    """An op of two operands, of which one may be a number: its dtype is the other's."""

    def operator(call: Call) -> Sequence[Value]:
        left, right = (call.number_or_value(index) for index in range(2))
        if not isinstance(left, Value) and not isinstance(right, Value):
            left = call.value(0)
        return [call.add(op, left, right)]

    return operator


def _with(op: str, **attributes: tuple[str, float]) -> Operator:
    """An op of the same operands whose attributes have other names: ``graph=("onnx", default)``."""

    def operator(call: Call) -> Sequence[Value]:
        given = {name: call.number(own, otherwise) for name, (own, otherwise) in attributes.items()}
        return [call.add(op, *call.values(), **given)]

    return operator


def _folded(op: str) -> Operator:
    """A binary op over any number of operands, from the left."""

    def operator(call: Call) -> Sequence[Value]:
        first, *others = call.values()
        for other in others:
            first = call.add(op, first, other)
        return [first]

    return operator


def _mean(call: Call) -> Sequence[Value]:
    (total,) = _folded("add")(call)
    return [call.add("div", total, call.count)]


def _div(call: Call) -> Sequence[Value]:
    left, right = call.values()
    if left.dtype in _FLOATS:
        return _numeric("div")(call)
    return [call.add("div", left, right, rounding_mode="trunc")]


def _mod(call: Call) -> Sequence[Value]:
    return [call.add("fmod" if call.integer("fmod", 0) else "remainder", *call.values())]


def _pow(call: Call) -> Sequence[Value]:
    base, exponent = call.value(0), call.number_or_value(1)
    if not isinstance(exponent, Value):
        # the result is of the base's dtype, whatever the exponent's
        is_whole = base.dtype not in _FLOATS and float(exponent).is_integer()
        return [call.add("pow", base, int(exponent) if is_whole else exponent)]
    return [call.add("pow", base, _as(call, exponent, base.dtype))]


def _as(call: Call, value: Value, dtype: str) -> Value:
    return value if value.dtype == dtype else call.add("to", value, dtype=dtype)


def _clip(call: Call) -> Sequence[Value]:
    bounds: dict[str, object] = {}
    value = call.value(0)
    for index, name in ((1, "min"), (2, "max")):
        found = call.known(index)
        if found is not None:
            number = found.reshape(-1)[0].item()
            bounds[name] = number
    return [call.add("clamp", value, **bounds)] if bounds else [value]


def _cast(call: Call) -> Sequence[Value]:
    return [_as(call, call.value(0), call.dtype(call.integer("to", 1)))]


def _cast_like(call: Call) -> Sequence[Value]:
    return [_as(call, call.value(0), call.value(1).dtype)]


def _dropout(call: Call) -> Sequence[Value]:
    """Dropout of inference: the operand, and a mask that is true everywhere."""
    value, ratio, training = call.value(0), call.known(1), call.known(2)
    if training is not None and training.any() and (ratio is None or ratio.any()):
        raise Unsupported("training_mode draws numbers", "export the model for inference")
    shape = call.written(call.shape(value))
    return [
        value,
        *([call.add("full", size=shape, fill_value=True, dtype="bool")] if len(call.node.output) > 1 else []),
    ]


def _gelu(call: Call) -> Sequence[Value]:
    return [call.add("gelu", call.value(0), approximate=call.text("approximate", "none"))]


def _celu(call: Call) -> Sequence[Value]:
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``, which is elu of x / alpha, times alpha."""
    alpha = call.number("alpha", 1.0)
    return [call.add("elu", call.value(0), alpha=alpha, scale=1.0, input_scale=1.0 / alpha)]


def _selu(call: Call) -> Sequence[Value]:
    alpha, gamma = call.number("alpha", 1.67326319217681884765625), call.number("gamma", 1.05070102214813232421875)
    return [call.add("elu", call.value(0), alpha=alpha, scale=gamma)]


def _prelu(call: Call) -> Sequence[Value]:
    """The slope is broadcast as other operands are; one per channel is PyTorch's."""
    value, slope = call.value(0), call.value(1)
    return [call.add("where", call.add("lt", value, 0), call.add("mul", value, slope), value)]


def _hard_sigmoid(call: Call) -> Sequence[Value]:
    alpha, beta = call.number("alpha", 0.2), call.number("beta", 0.5)
    return [call.add("clamp", call.add("add", call.add("mul", call.value(0), alpha), beta), min=0.0, max=1.0)]


def _thresholded(call: Call) -> Sequence[Value]:
    return [call.add("threshold", call.value(0), threshold=call.number("alpha", 1.0), value=0.0)]


def _shrink(call: Call) -> Sequence[Value]:
    value, lambd, bias = call.value(0), call.number("lambd", 0.5), call.number("bias", 0.0)
    low = call.add("where", call.add("lt", value, -lambd), call.add("add", value, bias), 0.0)
    return [call.add("where", call.add("gt", value, lambd), call.add("sub", value, bias), low)]


def _is_inf(call: Call) -> Sequence[Value]:
    value = call.value(0)
    positive, negative = call.integer("detect_positive", 1), call.integer("detect_negative", 1)
    if positive and negative:
        return [call.add("isinf", value)]
    return [call.add("eq", value, math.inf if positive else -math.inf)]


def _bit_shift(call: Call) -> Sequence[Value]:
    left = call.text("direction", "LEFT") == "LEFT"
    return [call.add("bitwise_left_shift" if left else "bitwise_right_shift", *call.values())]


# --- reductions ---


def _axes(call: Call, index: int = 1) -> list[int] | None:
    """Return the axes of a reduction, in an operand or an attribute; ``None`` for all."""
    found = call.integers(index) if call.has(index) else call.list("axes")
    return found or None


def _reduction(op: str) -> Operator:
    def operator(call: Call) -> Sequence[Value]:
        value = call.value(0)
        axes, is_nothing = _axes(call), bool(call.integer("noop_with_empty_axes", 0))
        if axes is None:
            if is_nothing:
                return [call.unchanged(value)]
            axes = list(range(value.ndim))
        keep = bool(call.integer("keepdims", 1))
        return [_reduced(call, op, value, axes, keep)]

    return operator


def _reduced(call: Call, op: str, value: Value, axes: list[int], keep: bool) -> Value:
    if not axes:
        return value
    match op:
        case "prod":
            for axis in sorted((item % value.ndim for item in axes), reverse=True):
                value = call.add("prod", value, dim=axis, keepdim=keep)
            return _as(call, value, call.value(0).dtype)
        case "l1":
            return call.add("sum", call.add("abs", value), dim=axes, keepdim=keep)
        case "l2":
            return call.add("norm", value, p=2.0, dim=axes, keepdim=keep)
        case "log_sum":
            return call.add("log", call.add("sum", value, dim=axes, keepdim=keep))
        case "sum_square":
            return call.add("sum", call.add("square", value), dim=axes, keepdim=keep)
        case "sum":
            return _as(call, call.add("sum", value, dim=axes, keepdim=keep), value.dtype)
        case _:
            return call.add(op, value, dim=axes, keepdim=keep)


def _arg(op: str) -> Operator:
    def operator(call: Call) -> Sequence[Value]:
        value, axis, keep = call.value(0), call.integer("axis", 0), bool(call.integer("keepdims", 1))
        if not call.integer("select_last_index", 0):
            return [call.add(op, value, dim=axis, keepdim=keep)]
        flipped = call.add(op, call.add("flip", value, dims=[axis]), dim=axis, keepdim=keep)
        return [call.add("sub", call.extent(value, axis) - 1, flipped)]

    return operator


def _top_k(call: Call) -> Sequence[Value]:
    count = call.sizes(1)
    given = {"k": count[0], "dim": call.integer("axis", -1), "largest": bool(call.integer("largest", 1))}
    return call.add_all("topk", call.value(0), **given)


def _cumulated(call: Call) -> Sequence[Value]:
    value, axes = call.value(0), call.sizes(1)
    axis = axes[0] % value.ndim
    reverse = bool(call.integer("reverse", 0))
    moved = call.add("flip", value, dims=[axis]) if reverse else value
    total = _as(call, call.add("cumsum", moved, dim=axis), value.dtype)
    total = call.add("sub", total, moved) if call.integer("exclusive", 0) else total
    return [call.add("flip", total, dims=[axis]) if reverse else total]


def _cumulated_product(call: Call) -> Sequence[Value]:
    value, axis = call.value(0), call.sizes(1)[0] % call.value(0).ndim
    reverse = bool(call.integer("reverse", 0))
    moved = call.add("flip", value, dims=[axis]) if reverse else value
    if call.integer("exclusive", 0):
        ones = call.add("ones_like", call.add("slice", moved, dim=axis, start=0, end=1))
        rest = call.add("slice", moved, dim=axis, start=0, end=call.extent(value, axis) - 1)
        moved = call.add("cat", ones, rest, dim=axis)
    total = _as(call, call.add("cumprod", moved, dim=axis), value.dtype)
    return [call.add("flip", total, dims=[axis]) if reverse else total]


def _hardmax(call: Call) -> Sequence[Value]:
    value = call.value(0)
    axis = call.integer("axis", -1) % value.ndim
    hot = call.add("one_hot", call.add("argmax", value, dim=axis), num_classes=call.extent(value, axis))
    made = _as(call, hot, value.dtype)
    return [made if axis == value.ndim - 1 else call.add("movedim", made, source=value.ndim - 1, destination=axis)]


def _eye_like(call: Call) -> Sequence[Value]:
    value, shift = call.value(0), call.integer("k", 0)
    dtype = call.dtype(call.integer("dtype", 0)) if "dtype" in call.attributes else value.dtype
    rows, columns = (np.arange(call.extent(value, axis)) for axis in range(2))
    return [_as(call, call.as_value((rows[:, None] + shift == columns).astype(np.int64)), dtype)]


def _softmax(op: str) -> Operator:
    return lambda call: [call.add(op, call.value(0), dim=call.integer("axis", -1))]


# --- products ---


def _gemm(call: Call) -> Sequence[Value]:
    left, right = call.value(0), call.value(1)
    left = call.add("transpose", left, dim0=0, dim1=1) if call.integer("transA", 0) else left
    alpha, beta = call.number("alpha", 1.0), call.number("beta", 1.0)
    addend = call.optional(2)
    if call.integer("transB", 0) and alpha == beta == 1.0 and (addend is None or addend.ndim == 1):
        return [call.add("linear", left, right, *([] if addend is None else [addend]))]
    right = call.add("transpose", right, dim0=0, dim1=1) if call.integer("transB", 0) else right
    if addend is None:
        product = call.add("matmul", left, right)
        return [product if alpha == 1.0 else call.add("mul", product, alpha)]
    return [call.add("addmm", addend, left, right, alpha=alpha, beta=beta)]


def _einsum(call: Call) -> Sequence[Value]:
    return [call.add("einsum", *call.values(), equation=call.text("equation", ""))]


def _spatial(call: Call, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Return strides, dilations and paddings (begins, then ends) of a window op."""
    pads = call.list("pads") or [0] * (2 * rank)
    return call.list("strides") or [1] * rank, call.list("dilations") or [1] * rank, pads


def _explicit_pads(call: Call, value: Value, kernel: Sequence[int], transposed: bool = False) -> list[int]:
    """Return the paddings that ``auto_pad`` means."""
    rank = len(kernel)
    strides, dilations, pads = _spatial(call, rank)
    mode = call.text("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return pads
    if mode == "VALID":
        return [0] * (2 * rank)
    if transposed:
        raise Unsupported(f"auto_pad {mode} of a transposed convolution")
    begins: list[int] = []
    ends: list[int] = []
    extents = [call.extent(value, axis) for axis in range(2, value.ndim)]
    for extent, size, stride, dilation in zip(extents, kernel, strides, dilations, strict=True):
        total = max((math.ceil(extent / stride) - 1) * stride + (size - 1) * dilation + 1 - extent, 0)
        small, large = total // 2, total - total // 2
        begins.append(small if mode == "SAME_UPPER" else large)
        ends.append(large if mode == "SAME_UPPER" else small)
    return [*begins, *ends]


def _padded(call: Call, value: Value, pads: Sequence[int], filled: float = 0.0) -> tuple[Value, list[int]]:
    """Return a value and symmetric paddings: uneven ones are made beforehand."""
    rank = len(pads) // 2
    begins, ends = list(pads[:rank]), list(pads[rank:])
    if begins == ends:
        return value, begins
    widths = [width for axis in reversed(range(rank)) for width in (begins[axis], ends[axis])]
    return call.add("pad", value, pad=widths, value=filled), [0] * rank


def _conv(call: Call) -> Sequence[Value]:
    value, weight = call.value(0), call.value(1)
    rank = weight.ndim - 2
    strides, dilations, _ = _spatial(call, rank)
    value, padding = _padded(call, value, _explicit_pads(call, value, weight.shape[2:]))
    given = {"stride": strides, "padding": padding, "dilation": dilations, "groups": call.integer("group", 1)}
    bias = call.optional(2)
    return [call.add(f"conv{rank}d", value, weight, *([] if bias is None else [bias]), **given)]


def _conv_transpose(call: Call) -> Sequence[Value]:
    value, weight = call.value(0), call.value(1)
    rank = weight.ndim - 2
    strides, dilations, _ = _spatial(call, rank)
    pads = _explicit_pads(call, value, weight.shape[2:], transposed=True)
    if call.list("output_shape") is not None or pads[:rank] != pads[rank:]:
        raise Unsupported("output_shape, or paddings that differ before and behind")
    given = {
        "stride": strides, "padding": pads[:rank], "output_padding": call.list("output_padding") or [0] * rank,
        "groups": call.integer("group", 1), "dilation": dilations,
    }  # fmt: skip
    bias = call.optional(2)
    return [call.add(f"conv_transpose{rank}d", value, weight, *([] if bias is None else [bias]), **given)]


def _pool(kind: str) -> Operator:
    def operator(call: Call) -> Sequence[Value]:
        value, kernel = call.value(0), call.list("kernel_shape")
        if not kernel:
            raise Unsupported("it lacks its kernel_shape")
        rank = len(kernel)
        strides, dilations, _ = _spatial(call, rank)
        pads = _explicit_pads(call, value, kernel)
        ceil = bool(call.integer("ceil_mode", 0))
        if len(call.node.output) > 1 and call.node.output[1]:
            raise Unsupported("the indices of a pool")
        if kind == "max":
            value, padding = _padded(call, value, pads, -math.inf)
            given = {"kernel_size": kernel, "stride": strides, "padding": padding, "dilation": dilations}
            return [call.add(f"max_pool{rank}d", value, ceil_mode=ceil, **given)]
        counted = bool(call.integer("count_include_pad", 0))
        if any(dilation != 1 for dilation in dilations) or (pads[:rank] != pads[rank:] and not counted):
            raise Unsupported("dilations, or paddings that differ before and behind and are not counted")
        value, padding = _padded(call, value, pads)
        given = {"kernel_size": kernel, "stride": strides, "padding": padding, "count_include_pad": counted}
        return [call.add(f"avg_pool{rank}d", value, ceil_mode=ceil, **given)]

    return operator


def _global_pool(op: str) -> Operator:
    return lambda call: [call.add(op, call.value(0), dim=list(range(2, call.value(0).ndim)), keepdim=True)]


# --- norms ---


def _batch_norm(call: Call) -> Sequence[Value]:
    if call.integer("training_mode", 0):
        raise Unsupported("training_mode")
    value, scale, bias, mean, variance = (call.value(index) for index in range(5))
    return [call.add("batch_norm", value, mean, variance, scale, bias, eps=call.number("epsilon", 1e-5))]


def _layer_norm(call: Call) -> Sequence[Value]:
    value, scale, bias = call.value(0), call.value(1), call.optional(2)
    axis = call.integer("axis", -1) % value.ndim
    shape = [call.extent(value, place) for place in range(axis, value.ndim)]
    rest = [] if bias is None else [bias]
    eps = call.number("epsilon", 1e-5)
    made = call.add("layer_norm", value, scale, *rest, normalized_shape=shape, eps=eps)
    if not any(call.node.output[1:]):
        return [made]
    dims = list(range(axis, value.ndim))
    mean = call.add("mean", value, dim=dims, keepdim=True)
    variance = call.add("mean", call.add("square", value - mean), dim=dims, keepdim=True)
    return [made, mean, call.add("rsqrt", variance + eps)]


def _rms_norm(call: Call) -> Sequence[Value]:
    value = call.value(0)
    axis = call.integer("axis", -1) % value.ndim
    shape = [call.extent(value, place) for place in range(axis, value.ndim)]
    return [call.add("rms_norm", value, call.value(1), normalized_shape=shape, eps=call.number("epsilon", 1e-5))]


def _instance_norm(call: Call) -> Sequence[Value]:
    value, scale, bias = (call.value(index) for index in range(3))
    groups = call.extent(value, 1)
    return [call.add("group_norm", value, scale, bias, num_groups=groups, eps=call.number("epsilon", 1e-5))]


def _group_norm(call: Call) -> Sequence[Value]:
    value, scale, bias = (call.value(index) for index in range(3))
    groups = call.integer("num_groups", 1)
    channels = call.extent(value, 1)
    if scale.shape[0] == groups != channels:  # before opset 21 the scale is of a group
        count = channels // groups
        scale, bias = (call.add("repeat_interleave", item, repeats=count) for item in (scale, bias))
    return [call.add("group_norm", value, scale, bias, num_groups=groups, eps=call.number("epsilon", 1e-5))]


def _lp_norm(call: Call) -> Sequence[Value]:
    value, axis, power = call.value(0), call.integer("axis", -1), call.integer("p", 2)
    norm = call.add("norm", value, p=float(power), dim=[axis], keepdim=True)
    return [call.add("div", value, call.add("where", call.add("eq", norm, 0.0), 1.0, norm))]  # zeros stay zeros


def _mean_variance_norm(call: Call) -> Sequence[Value]:
    value = call.value(0)
    axes = call.list("axes") or [0, 2, 3]
    centred = value - call.add("mean", value, dim=axes, keepdim=True)
    variance = call.add("mean", call.add("square", centred), dim=axes, keepdim=True)
    return [call.add("div", centred, call.add("sqrt", variance) + 1e-9)]


def _local_response_norm(call: Call) -> Sequence[Value]:
    """``x / (bias + alpha / size * sum of x ** 2 over size channels around) ** beta``."""
    value, size = call.value(0), call.integer("size", 1)
    alpha, beta, bias = call.number("alpha", 1e-4), call.number("beta", 0.75), call.number("bias", 1.0)
    before = (size - 1) // 2
    widths = [0, 0] * (value.ndim - 2) + [before, size - 1 - before]
    squares = call.add("pad", call.add("square", value), pad=widths)
    count = call.extent(value, 1)
    parts = [call.add("slice", squares, dim=1, start=start, end=start + count) for start in range(size)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return [call.add("div", value, call.add("pow", total * (alpha / size) + bias, beta))]


# --- views and movement ---


def _transpose(call: Call) -> Sequence[Value]:
    value = call.value(0)
    return [call.add("permute", value, dims=call.list("perm") or list(range(value.ndim))[::-1])]


def _reshape(call: Call) -> Sequence[Value]:
    value, sizes = call.value(0), call.extents(1)
    is_zero_kept = bool(call.integer("allowzero", 0))
    own = call.shape(value)
    shape = [own[axis] if size == 0 and not is_zero_kept else size for axis, size in enumerate(sizes)]
    if -1 in shape and any(isinstance(item, OpenNumber) for item in (*own, *shape)):
        place = shape.index(-1)
        shape[place] = product(own) // product([*shape[:place], *shape[place + 1 :]])
    return [call.add("reshape", value, shape=call.written(shape))]


def _flatten(call: Call) -> Sequence[Value]:
    value = call.value(0)
    axis = call.integer("axis", 1)
    axis = axis % value.ndim if axis < 0 else axis
    extents = call.shape(value)
    return [call.add("reshape", value, shape=call.written([product(extents[:axis]), product(extents[axis:])]))]


def _squeeze(call: Call) -> Sequence[Value]:
    value = call.value(0)
    axes = _axes(call)
    axes = [axis for axis, extent in enumerate(value.shape) if extent == 1] if axes is None else axes
    return [call.add("squeeze", value, dim=axes)] if axes else [value]


def _unsqueeze(call: Call) -> Sequence[Value]:
    value = call.value(0)
    axes = _axes(call) or []
    rank = value.ndim + len(axes)
    for axis in sorted(item % rank for item in axes):
        value = call.add("unsqueeze", value, dim=axis)
    return [value]


def _concat(call: Call) -> Sequence[Value]:
    return [call.add("cat", *call.values(), dim=call.integer("axis", 0))]


def _split(call: Call) -> Sequence[Value]:
    value, axis = call.value(0), call.integer("axis", 0)
    sizes: list[int] | None = call.integers(1) if call.has(1) else call.list("split")
    if sizes is None:
        count = call.integer("num_outputs", len(call.node.output))
        extent = call.extent(value, axis)
        each = math.ceil(extent / count)
        sizes = [min(each, extent - each * index) for index in range(count)]
    results: list[Value] = []
    begin = 0
    for size in sizes:
        _refuse_beyond(call, value, axis, begin + size)
        results.append(call.add("slice", value, dim=axis, start=begin, end=begin + size))
        begin += size
    return results


def _slice(call: Call) -> Sequence[Value]:
    value = call.value(0)
    starts, ends = call.extents(1), call.extents(2)
    axes = (call.integers(3) if call.has(3) else None) or list(range(len(starts)))
    steps = (call.integers(4) if call.has(4) else None) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        value = _sliced(call, value, axis % value.ndim, (start, end, step))
    return [value]


def _sliced(call: Call, value: Value, axis: int, bounds: tuple[Number, Number, int]) -> Value:
    """A slice of one axis: elements between numbers, or as many as a symbolic dim has."""
    start, end, step = bounds
    extent = call.shape(value)[axis]
    if start == 0 and step == 1 and (_is_same(end, extent) or (isinstance(end, int) and end >= _TO_THE_END)):
        return value
    if isinstance(start, OpenNumber) or isinstance(end, OpenNumber):
        return _slice_of_run(call, value, axis, bounds)
    if isinstance(extent, OpenNumber) and 0 <= start <= end < _TO_THE_END and step > 0:
        _refuse_beyond(call, value, axis, end)
        return call.add("slice", value, dim=axis, start=start, end=end, step=step)
    extent = call.extent(value, axis)
    if step < 0:
        return _reversed(call, value, axis, (start, end, step))
    taken = range(extent)[start:end:step]
    if (taken.start, len(taken), step) == (0, extent, 1):
        return value
    stop = taken.start + (len(taken) - 1) * step + 1 if len(taken) else taken.start
    return call.add("slice", value, dim=axis, start=taken.start, end=stop, step=step)


_TO_THE_END = 2**31 - 1
"""From here on the end of a slice is the axis's, as exporters write it."""


def _is_same(left: Number, right: Number) -> bool:
    return (left - right if isinstance(left, OpenNumber) else right - left) == 0


def _slice_of_run(call: Call, value: Value, axis: int, bounds: tuple[Number, Number, int]) -> Value:
    """``x[n : n + S]``: the rows from ``n`` on that a symbolic dim counts."""
    start, end, step = bounds
    count = end - start if isinstance(end, OpenNumber) else -(start - end)
    dim = count.written() if isinstance(count, OpenNumber) else None
    room = call.shape(value)[axis]
    behind = room - end if isinstance(room, OpenNumber) else -(end - room)
    least = behind.range()[0] if isinstance(behind, OpenNumber) else behind
    first = start.range()[0] if isinstance(start, OpenNumber) else start
    if dim is None or "*" in dim or step != 1 or least < 0 or first < 0:
        fact = f"it takes elements {start} to {end} of {room} in steps of {step}"
        raise Unsupported(f"{fact}, which each run chooses", hint_of(start, end, room))
    rows = call.positions(dim)
    return call.add("index_select", value, rows if start == 0 else rows + call.counted(start), dim=axis)


def _refuse_beyond(call: Call, value: Value, axis: int, end: int) -> None:
    """Refuse elements of a symbolic dim that its smallest extent does not have."""
    extent = call.shape(value)[axis]
    if isinstance(extent, OpenNumber) and extent.range()[0] < end:
        raise Unsupported(f"it takes element {end - 1} of {extent}, which not every run has", hint_of(extent))


def _reversed(call: Call, value: Value, axis: int, bounds: tuple[int, int, int]) -> Value:
    """A slice that runs backward: the elements forward, then flipped."""
    extent = call.extent(value, axis)
    start, end, step = bounds
    first = min(start + extent if start < 0 else start, extent - 1)
    last = max(end + extent if -extent <= end < 0 else end, -1)
    taken = sorted(range(first, last, step))
    if not taken:
        return call.add("slice", value, dim=axis, start=0, end=0)
    part = call.add("slice", value, dim=axis, start=taken[0], end=taken[-1] + 1, step=-step)
    return call.add("flip", part, dims=[axis])


def _expand(call: Call) -> Sequence[Value]:
    value, sizes = call.value(0), call.extents(1)
    own = call.shape(value)
    rank = max(len(own), len(sizes))
    pairs = zip([1] * (rank - len(own)) + own, [1] * (rank - len(sizes)) + sizes, strict=True)
    shape = [_broadcast(mine, given) for mine, given in pairs]
    return [call.add("expand", value, size=call.written(shape)) if shape != own else value]


def _broadcast(mine: Number, given: Number) -> Number:
    """Return the extent of two that meet.  Errors: :class:`Unsupported` where they do not, in some run or in any."""
    if isinstance(given, int) and given == 1:
        return mine
    if (isinstance(mine, int) and mine == 1) or _is_same(mine, given):
        return given
    raise Unsupported(f"an axis of {mine} elements does not become one of {given}", hint_of(mine, given))


def _tile(call: Call) -> Sequence[Value]:
    return [call.add("repeat", call.value(0), repeats=call.integers(1))]


def _pad(call: Call) -> Sequence[Value]:
    value, pads = call.value(0), call.sizes(1)
    axes = (call.integers(3) if call.has(3) else None) or list(range(value.ndim))
    begins, ends = [0] * value.ndim, [0] * value.ndim
    for position, axis in enumerate(axes):
        begins[axis], ends[axis] = pads[position], pads[len(axes) + position]
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}[
        call.text("mode", "constant")
    ]
    first = next((axis for axis in range(value.ndim) if begins[axis] or ends[axis]), value.ndim)
    widths = [width for axis in reversed(range(first, value.ndim)) for width in (begins[axis], ends[axis])]
    if not widths:
        return [call.unchanged(value)]
    given: dict[str, object] = {"pad": widths, "mode": mode}
    filled = call.known(2) if call.has(2) and mode == "constant" else None
    if filled is not None:
        given["value"] = filled.reshape(-1)[0].item()
    return [call.add("pad", value, **given)]


def _gather(call: Call) -> Sequence[Value]:
    """Rows of an axis by an index of any rank; one along the first axis of a table is ``embedding``."""
    value, index = call.value(0), call.value(1)
    axis = call.integer("axis", 0) % value.ndim
    index = _counted_from_the_front(call, index, value, axis)
    if index.ndim == 0:
        taken = call.add("index_select", value, call.add("reshape", index, shape=[1]), dim=axis)
        return [call.add("squeeze", taken, dim=[axis])]
    if axis == 0 and value.ndim == 2:
        return [call.add("embedding", index, value)]
    count = product(call.shape(index))
    flat = index if index.ndim == 1 else call.add("reshape", index, shape=call.written([count]))
    taken = call.add("index_select", value, flat, dim=axis)
    own = call.shape(value)
    shape = [*own[:axis], *call.shape(index), *own[axis + 1 :]]
    return [taken if index.ndim == 1 else call.add("reshape", taken, shape=call.written(shape))]


def _counted_from_the_front(call: Call, index: Value, value: Value, axis: int) -> Value:
    """Return an index without negative numbers, where it depends on no input."""
    known = call.known_or_none(1)
    if call.is_of_run(1) if known is None else all(int(item) >= 0 for item in known.reshape(-1)):
        return index
    extent = call.counted(call.shape(value)[axis])
    return call.add("where", call.add("lt", index, 0), call.add("add", index, extent), index)


def _gather_elements(call: Call) -> Sequence[Value]:
    value = call.value(0)
    axis = call.integer("axis", 0)
    index = _counted_from_the_front(call, call.value(1), value, axis)
    return [call.add("gather", value, index, dim=axis)]


def _gather_nd(call: Call) -> Sequence[Value]:
    value, index = call.value(0), call.value(1)
    if call.integer("batch_dims", 0):
        raise Unsupported("batch_dims")
    parts = [
        call.add("select", index, dim=index.ndim - 1, index=position) for position in range(call.extent(index, -1))
    ]
    return [call.add("index", value, *parts)]


def _scatter_elements(call: Call) -> Sequence[Value]:
    reduction = call.text("reduction", "none")
    value, index, source = (call.value(position) for position in range(3))
    axis = call.integer("axis", 0)
    operands = [value, _counted_from_the_front(call, index, value, axis), source]
    if reduction == "none":
        return [call.add("scatter", *operands, dim=axis)]
    if reduction == "add":
        return [call.add("scatter_add", *operands, dim=axis)]
    reduce = {"mul": "prod", "max": "amax", "min": "amin"}[reduction]
    return [call.add("scatter_reduce", *operands, dim=axis, reduce=reduce)]


def _scatter_nd(call: Call) -> Sequence[Value]:
    value, index, source = (call.value(position) for position in range(3))
    reduction = call.text("reduction", "none")
    if reduction not in ("none", "add"):
        raise Unsupported(f"reduction {reduction}")
    parts = [
        call.add("select", index, dim=index.ndim - 1, index=position) for position in range(call.extent(index, -1))
    ]
    return [call.add("index_put", value, *parts, source, accumulate=reduction == "add")]


def _one_hot(call: Call) -> Sequence[Value]:
    index, depth, values = call.value(0), call.sizes(1), call.numbers(2)
    axis = call.integer("axis", -1)
    wrapped = call.add("remainder", index, depth[0])
    hot = call.add("one_hot", _as(call, wrapped, "int64"), num_classes=depth[0])
    off, on = values.tolist()
    dtype = call.value(2).dtype
    if (off, on) == (0, 1):
        made = _as(call, hot, dtype)
    else:
        numbers = [call.add("full", size=[], fill_value=number, dtype=dtype) for number in (on, off)]
        made = call.add("where", call.add("ne", hot, 0), *numbers)
    rank = index.ndim + 1
    place = axis % rank
    return [made if place == rank - 1 else call.add("movedim", made, source=rank - 1, destination=place)]


def _triangle(call: Call) -> Sequence[Value]:
    diagonal = call.integers(1) if call.has(1) else None
    op = "triu" if call.integer("upper", 1) else "tril"
    return [call.add(op, call.value(0), diagonal=0 if diagonal is None else diagonal[0])]


def _range(call: Call) -> Sequence[Value]:
    """``start, start + step ...``: between numbers, or as many as a symbolic dim has."""
    sizes = [call.known_or_none(index) for index in range(3)]
    if None not in sizes:
        start, end, step = (cast("np.ndarray", item).reshape(-1)[0].item() for item in sizes)
        return [call.add("arange", start=start, end=end, step=step, dtype=call.value(0).dtype)]
    first, last, by = (call.extents(index)[0] for index in range(3))
    count = (last - first if isinstance(last, OpenNumber) else -(first - last)) // by
    dim = count.written() if isinstance(count, OpenNumber) else None
    if dim is None or "*" in dim:
        fact = f"it counts from {first} to {last} in steps of {by}"
        raise Unsupported(f"{fact}, which each run chooses", hint_of(first, last, by))
    counted = call.positions(dim)
    counted = counted if by == 1 else counted * call.counted(by)
    return [counted if first == 0 else counted + call.counted(first)]


def _constant_of_shape(call: Call) -> Sequence[Value]:
    import onnx

    sizes, filled = call.written(call.extents(0)), cast("TensorProto | None", call.attributes.get("value"))
    number: float = 0.0
    dtype = "float32"
    if filled is not None:
        array = onnx.numpy_helper.to_array(filled)
        number, dtype = array.reshape(-1)[0].item(), call.dtype(filled.data_type)
    return [call.add("full", size=sizes, fill_value=number, dtype=dtype)]


def _depth_to_space(call: Call) -> Sequence[Value]:
    value, block = call.value(0), call.integer("blocksize", 1)
    if call.text("mode", "DCR") == "CRD":
        return [call.add("pixel_shuffle", value, upscale_factor=block)]
    count, channels, height, width = call.shape(value)
    kept = channels // block**2
    split = call.add("reshape", value, shape=call.written([count, block, block, kept, height, width]))
    moved = call.add("permute", split, dims=[0, 3, 4, 1, 5, 2])
    return [call.add("reshape", moved, shape=call.written([count, kept, height * block, width * block]))]


def _space_to_depth(call: Call) -> Sequence[Value]:
    value, block = call.value(0), call.integer("blocksize", 1)
    count, channels, height, width = call.shape(value)
    rows, columns = height // block, width // block
    split = call.add("reshape", value, shape=call.written([count, channels, rows, block, columns, block]))
    is_depth_first = call.text("mode", "DCR") == "DCR"
    moved = call.add("permute", split, dims=[0, 3, 5, 1, 2, 4] if is_depth_first else [0, 1, 3, 5, 2, 4])
    return [call.add("reshape", moved, shape=call.written([count, channels * block**2, rows, columns]))]


def _col2im(call: Call) -> Sequence[Value]:
    """Windows added up to an image of two dims, whose paddings are even."""
    value, image, block = call.value(0), call.sizes(1), call.sizes(2)
    strides, dilations, pads = _spatial(call, 2)
    if len(image) != 2 or pads[:2] != pads[2:]:
        raise Unsupported("an image that has not two dims, or paddings that differ before and behind")
    given = {"output_size": image, "kernel_size": block, "dilation": dilations, "padding": pads[:2], "stride": strides}
    return [call.add("col2im", value, **given)]


def _grid_sample(call: Call) -> Sequence[Value]:
    value, mode = call.value(0), call.text("mode", "linear")
    modes = {"linear": 0, "bilinear": 0, "nearest": 1, "cubic": 2, "bicubic": 2}
    paddings = ("zeros", "border", "reflection")
    if mode not in modes or value.ndim != 4:
        raise Unsupported(f"{mode} of {value.ndim - 2} dims")
    given: dict[str, object] = {
        "interpolation_mode": modes[mode],
        "padding_mode": paddings.index(call.text("padding_mode", "zeros")),
        "align_corners": bool(call.integer("align_corners", 0)),
    }
    return [call.add("grid_sampler_2d", value, call.value(1), **given)]


# --- whole numbers that stand for floats ---

_RANGES = {"int8": (-128, 127), "uint8": (0, 255)}


def _dequantize(call: Call) -> Sequence[Value]:
    """``(x - zero) * scale``, of a weight computed beforehand."""
    value, scale = call.value(0), call.value(1)
    zero = call.optional(2)
    made = _as(call, value, scale.dtype)
    if zero is not None and not _is_zero(call, 2):
        made = call.add("sub", made, _along(call, _as(call, zero, scale.dtype), value))
    return [call.add("mul", made, _along(call, scale, value))]


def _quantize(call: Call) -> Sequence[Value]:
    """``round(x / scale) + zero`` within the range of the dtype, whole numbers to even."""
    value, scale, zero = call.value(0), call.value(1), call.optional(2)
    dtype = zero.dtype if zero is not None else call.dtype(call.integer("output_dtype", 0) or 2)
    if dtype not in _RANGES:
        raise Unsupported(f"quantized numbers of {dtype}")
    made = call.add("round", call.add("div", value, _along(call, scale, value)))
    if zero is not None and not _is_zero(call, 2):
        made = call.add("add", made, _along(call, _as(call, zero, value.dtype), value))
    least, most = _RANGES[dtype]
    return [call.add("to", call.add("clamp", made, min=float(least), max=float(most)), dtype=dtype)]


def _is_zero(call: Call, index: int) -> bool:
    known = call.known_or_none(index)
    return known is not None and not known.any()


def _along(call: Call, scale: Value, value: Value) -> Value:
    """Return scales as they stand beside the numbers that they are of: one, one of a row, or one of each block."""
    axis, block = call.integer("axis", 1) % max(value.ndim, 1), call.integer("block_size", 0)
    if scale.ndim == 0 or scale.shape == (1,):
        return scale
    if not block:
        return call.add("reshape", scale, shape=[-1 if place == axis else 1 for place in range(value.ndim)])
    wide = call.add("repeat_interleave", scale, repeats=block, dim=axis)
    return call.add("slice", wide, dim=axis, start=0, end=call.extent(value, axis))


_UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan",
    "Atanh": "atanh", "BitwiseNot": "bitwise_not", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf",
    "Exp": "exp", "Floor": "floor", "HardSwish": "hardswish", "IsNaN": "isnan", "Log": "log", "Mish": "mish",
    "Neg": "neg", "Reciprocal": "reciprocal", "Relu": "relu", "Round": "round", "Sigmoid": "sigmoid", "Sign": "sign",
    "Sin": "sin", "Sinh": "sinh", "Softplus": "softplus", "Softsign": "softsign", "Sqrt": "sqrt", "Tan": "tan",
    "Tanh": "tanh",
}  # fmt: skip
_BINARY = {
    "And": "logical_and", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor", "Equal": "eq", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt",
    "LessOrEqual": "le", "MatMul": "matmul", "Or": "logical_or", "Xor": "logical_xor",
}  # fmt: skip
_NUMERIC = {"Add": "add", "Mul": "mul", "Sub": "sub"}

OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {
        **{name: _same(op) for name, op in {**_UNARY, **_BINARY}.items()},
        **{name: _numeric(op) for name, op in _NUMERIC.items()},
        "ArgMax": _arg("argmax"),
        "ArgMin": _arg("argmin"),
        "Attention": attention,
        "AveragePool": _pool("avg"),
        "BatchNormalization": _batch_norm,
        "BitShift": _bit_shift,
        "Cast": _cast,
        "CastLike": _cast_like,
        "Celu": _celu,
        "Clip": _clip,
        "Col2Im": _col2im,
        "Concat": _concat,
        "ConstantOfShape": _constant_of_shape,
        "Conv": _conv,
        "ConvTranspose": _conv_transpose,
        "CumProd": _cumulated_product,
        "CumSum": _cumulated,
        "DepthToSpace": _depth_to_space,
        "DequantizeLinear": _dequantize,
        "Div": _div,
        "Dropout": _dropout,
        "Einsum": _einsum,
        "EyeLike": _eye_like,
        "Elu": _with("elu", alpha=("alpha", 1.0)),
        "Expand": _expand,
        "Flatten": _flatten,
        "Gather": _gather,
        "GatherElements": _gather_elements,
        "GRU": recurrent,
        "GatherND": _gather_nd,
        "Gelu": _gelu,
        "Gemm": _gemm,
        "GlobalAveragePool": _global_pool("mean"),
        "GlobalMaxPool": _global_pool("amax"),
        "GridSample": _grid_sample,
        "GroupNormalization": _group_norm,
        "Hardmax": _hardmax,
        "HardSigmoid": _hard_sigmoid,
        "InstanceNormalization": _instance_norm,
        "IsInf": _is_inf,
        "LRN": _local_response_norm,
        "LSTM": recurrent,
        "LayerNormalization": _layer_norm,
        "LeakyRelu": _with("leaky_relu", negative_slope=("alpha", 0.01)),
        "LogSoftmax": _softmax("log_softmax"),
        "LpNormalization": _lp_norm,
        "Max": _folded("maximum"),
        "MaxPool": _pool("max"),
        "Mean": _mean,
        "MeanVarianceNormalization": _mean_variance_norm,
        "Min": _folded("minimum"),
        "Mod": _mod,
        "Not": _same("logical_not"),
        "OneHot": _one_hot,
        "PRelu": _prelu,
        "Pad": _pad,
        "Pow": _pow,
        "QuantizeLinear": _quantize,
        "RMSNormalization": _rms_norm,
        "RotaryEmbedding": rotary_embedding,
        "RNN": recurrent,
        "Range": _range,
        "ReduceL1": _reduction("l1"),
        "ReduceL2": _reduction("l2"),
        "ReduceLogSum": _reduction("log_sum"),
        "ReduceLogSumExp": _reduction("logsumexp"),
        "ReduceMax": _reduction("amax"),
        "ReduceMean": _reduction("mean"),
        "ReduceMin": _reduction("amin"),
        "ReduceProd": _reduction("prod"),
        "ReduceSum": _reduction("sum"),
        "ReduceSumSquare": _reduction("sum_square"),
        "Reshape": _reshape,
        "Resize": resize,
        "ScatterElements": _scatter_elements,
        "ScatterND": _scatter_nd,
        "Selu": _selu,
        "Shrink": _shrink,
        "Slice": _slice,
        "Softmax": _softmax("softmax"),
        "SpaceToDepth": _space_to_depth,
        "Split": _split,
        "Squeeze": _squeeze,
        "Sum": _folded("add"),
        "SwiGLU": swiglu,
        "Swish": lambda call: [swish(call, call.value(0))],
        "ThresholdedRelu": _thresholded,
        "Tile": _tile,
        "TopK": _top_k,
        "Transpose": _transpose,
        "Trilu": _triangle,
        "Unsqueeze": _unsqueeze,
        "Where": _same("where"),
    }
)
"""Operators by their names."""
