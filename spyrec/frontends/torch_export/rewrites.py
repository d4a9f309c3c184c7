"""Operations of PyTorch that are several ops of a graph, or one with other arguments; each rewrite names its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from spyrec.frontends.model_import.unsupported import Unsupported
from spyrec.frontends.torch_export.resampling import resample
from spyrec.frontends.torch_export.traced import Argument, Size, Tensor, TracedNode
from spyrec.frontends.value import Value
from spyrec.hardware.dtypes import DType

if TYPE_CHECKING:
    from spyrec.frontends.torch_export.lower import Lowering

Rewrite = Callable[["Lowering", TracedNode], Sequence[Value]]


def _result_dtype(graph: Lowering, node: TracedNode) -> str:
    wanted = node.results[0][1]
    assert wanted is not None
    return graph.dtype_of(wanted.dtype)


def _cast(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``to(x, dtype)``, whatever else it says: nothing where the dtype stays."""
    value = graph.tensor(node.arguments["self"])
    dtype = _result_dtype(graph, node)
    return [value if value.dtype == dtype else graph.op("to", value, dtype=dtype)]


def _copy(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``copy(x, source)``: the source in the place, shape and dtype of ``x``."""
    target, source = graph.tensor(node.arguments["self"]), graph.tensor(node.arguments["src"])
    if source.dtype != target.dtype:
        source = graph.op("to", source, dtype=target.dtype)
    return [source if source.shape == target.shape else graph.op("expand", source, size=graph.sizes_of(target))]


def _like(op: str) -> Rewrite:
    def rewrite(graph: Lowering, node: TracedNode) -> Sequence[Value]:
        other = graph.tensor(node.arguments["other"])
        return [graph.op(op, graph.tensor(node.arguments["self"]), size=graph.sizes_of(other))]

    return rewrite


def _full(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``full`` in the dtype that the program gave its result."""
    wanted = node.results[0][1]
    assert wanted is not None
    value = node.arguments.get("fill_value", node.arguments.get("s", node.arguments.get("value")))
    size = graph.sizes(wanted)
    if isinstance(value, Tensor):
        filled = graph.tensor(value)
        filled = (
            filled
            if filled.dtype == _result_dtype(graph, node)
            else graph.op("to", filled, dtype=_result_dtype(graph, node))
        )
        return [graph.op("expand", filled, size=size)]
    return [graph.op("full", size=size, fill_value=value, dtype=_result_dtype(graph, node))]


def positions(graph: Lowering, dim: str) -> Value:
    """Return 0, 1, 2 ... as many as a symbolic dim has."""
    return graph.op("cumsum", graph.op("ones", size=[dim], dtype="int64"), dim=0) - 1


def _arange(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``arange(start, start + S)`` counts the elements of a symbolic dim; other ranges are those of numbers."""
    start, step = node.arguments.get("start", 0), node.arguments.get("step", 1)
    wanted = node.results[0][1]
    extent = None if wanted is None else wanted.shape[0]
    if not isinstance(extent, str) and not isinstance(node.arguments.get("end"), Size):
        return graph.call("arange", node)
    dim = graph.symbolic.dim(extent) if isinstance(extent, str) else None
    if dim is None or not isinstance(start, int) or step != 1:
        raise Unsupported(
            f"it counts from {_shown(start)} to {_shown(node.arguments.get('end'))} in steps of {_shown(step)}",
            "bind the symbolic dim: --dim NAME=N",
        )
    counted = positions(graph, dim)
    counted = counted + start if start else counted
    dtype = _result_dtype(graph, node)
    return [counted if dtype == "int64" else graph.op("to", counted, dtype=dtype)]


def _slice(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``x[:S]``: the rows that a symbolic dim counts; other slices are those between numbers."""
    end = node.arguments.get("end")
    if not isinstance(end, Size):
        return graph.call("slice", node)
    value, axis = graph.tensor(node.arguments["self"]), cast("int", node.arguments.get("dim", 0))
    graph.size(end)  # refused where no input says it
    dim = graph.symbolic.dim(end.text)
    if dim is None or node.arguments.get("start") not in (None, 0) or node.arguments.get("step", 1) != 1:
        raise Unsupported(f"it ends at {end.text}, behind another start than 0", "bind the dim: --dim NAME=N")
    if value.dims[axis] == dim:
        return [value]
    return [graph.op("index_select", value, positions(graph, dim), dim=axis)]


def _shown(argument: Argument) -> str:
    return argument.text if isinstance(argument, Size) else str(argument)


def _index(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``x[:, i, j]``: the indexed axes go to the front, and where they stand side by side, the result's back again."""
    value = graph.tensor(node.arguments["self"])
    places, indices = _indices(graph, node)
    if places == list(range(len(places))):
        return [graph.op("index", value, *indices)]
    rest = [axis for axis in range(value.ndim) if axis not in places]
    moved = graph.op("permute", value, dims=[*places, *rest])
    found = graph.op("index", moved, *indices)
    if places != list(range(places[0], places[0] + len(places))):
        return [found]
    inner = found.ndim - len(rest)
    order = [*range(inner, inner + places[0]), *range(inner), *range(inner + places[0], found.ndim)]
    return [graph.op("permute", found, dims=order)]


def _indices(graph: Lowering, node: TracedNode) -> tuple[list[int], list[Value]]:
    """Return the axes that have an index, and the indices; a mask counts for as many axes as it has."""
    places: list[int] = []
    indices: list[Value] = []
    axis = 0
    for item in cast("tuple[Argument, ...]", node.arguments["indices"]):
        if item is None:
            axis += 1
            continue
        index = graph.tensor(item)
        width = index.ndim if index.dtype == "bool" else 1
        places.extend(range(axis, axis + width))
        indices.append(index)
        axis += width
    return places, indices


def _index_put(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``x[:, i] = v``, with nothing for the axes that stay whole."""
    value, source = graph.tensor(node.arguments["self"]), graph.tensor(node.arguments["values"])
    items = cast("tuple[Argument, ...]", node.arguments["indices"])
    indices = [None if item is None else graph.tensor(item) for item in items]
    return [graph.op("index_put", value, *indices, source, accumulate=bool(node.arguments.get("accumulate")))]


def _embedding(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``embedding(weight, indices)``, which graphs take the other way round; the rest is for training."""
    weight, indices = graph.tensor(node.arguments["weight"]), graph.tensor(node.arguments["indices"])
    return [graph.op("embedding", indices, weight)]


_BAG_MODES = ("sum", "mean", "max")


def _embedding_bag(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``embedding_bag``, whose mode is a number there; its other results are for training."""
    arguments = node.arguments
    order = ("indices", "weight", "offsets", "per_sample_weights")
    more: dict[str, object] = {"mode": _BAG_MODES[cast("int", arguments["mode"])]}
    if arguments.get("padding_idx") is not None:
        more["padding_idx"] = arguments["padding_idx"]
    operands = [graph.operand(arguments.get(name)) for name in order]
    made = graph.op("embedding_bag", *operands, include_last_offset=bool(arguments["include_last_offset"]), **more)
    return [made]


def _pad(mode: str) -> Rewrite:
    def rewrite(graph: Lowering, node: TracedNode) -> Sequence[Value]:
        widths = node.arguments.get("pad", node.arguments.get("padding"))
        value = node.arguments.get("value")
        more = {} if mode != "constant" or value is None else {"value": value}
        return [graph.op("pad", graph.tensor(node.arguments["self"]), pad=graph.plain(widths), mode=mode, **more)]

    return rewrite


def _where(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``where`` with numbers and dtypes that meet as PyTorch lets them."""
    if "self" not in node.arguments:
        raise Unsupported("the shape of its result depends on its numbers")
    condition = graph.tensor(node.arguments["condition"])
    dtype = _result_dtype(graph, node)
    branches = [graph.operand(node.arguments[name]) for name in ("self", "other")]
    made: list[object] = []
    for branch in branches:
        if isinstance(branch, Value):
            made.append(branch if branch.dtype == dtype else graph.op("to", branch, dtype=dtype))
        else:
            made.append(graph.number(cast("float", branch), dtype))
    if not any(isinstance(item, Value) for item in made):
        made[0] = graph.op("full", size=[], fill_value=made[0], dtype=dtype)
    return [graph.op("where", condition, *made)]


def _scatter(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    source = node.arguments.get("src", node.arguments.get("value"))
    more = {} if node.arguments.get("reduce") is None else {"reduce": node.arguments["reduce"]}
    operands = [graph.tensor(node.arguments["self"]), graph.tensor(node.arguments["index"]), graph.operand(source)]
    return [graph.op("scatter", *operands, dim=node.arguments["dim"], **more)]


def _convolution(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    arguments = node.arguments
    weight = graph.tensor(arguments["weight"])
    rank = weight.ndim - 2
    operands = [graph.tensor(arguments["input"]), weight, graph.operand(arguments["bias"])]
    more = {name: graph.plain(arguments[name]) for name in ("stride", "padding", "dilation", "groups")}
    if arguments["transposed"]:
        more["output_padding"] = graph.plain(arguments["output_padding"])
        return [graph.op(f"conv_transpose{rank}d", *operands, **more)]
    return [graph.op(f"conv{rank}d", *operands, **more)]


def _first_of(op: str, parameters: Sequence[str], **more: object) -> Rewrite:
    """An operation of several results whose first is an op's; the others are for training."""

    def rewrite(graph: Lowering, node: TracedNode) -> Sequence[Value]:
        return [graph.call(op, node, leave=[name for name in node.arguments if name not in parameters], **more)[0]]

    return rewrite


def _max_pool(op: str) -> Rewrite:
    """A pool whose second result are places, which the host finds where somebody reads them."""

    def rewrite(graph: Lowering, node: TracedNode) -> Sequence[Value]:
        has_places = len(node.results) > 1 and graph.is_read(node.results[1][0])
        leave = [name for name in node.arguments if name not in _POOL]
        return graph.call(f"{op}_with_indices" if has_places else op, node, leave=leave)[: 1 + has_places]

    return rewrite


def _native_group_norm(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    arguments = node.arguments
    operands = [graph.operand(arguments[name]) for name in ("input", "weight", "bias")]
    return [graph.op("group_norm", *operands, num_groups=arguments["group"], eps=arguments["eps"])]


def _upsample(mode: str) -> Rewrite:
    def rewrite(graph: Lowering, node: TracedNode) -> Sequence[Value]:
        wanted = node.results[0][1]
        value = graph.tensor(node.arguments.get("input", node.arguments.get("self")))
        assert wanted is not None
        more: dict[str, object] = {"size": graph.shape(wanted)[2:]}
        if "align_corners" in node.arguments:
            more["align_corners"] = node.arguments["align_corners"]
        given = [node.arguments.get(name) for name in ("scale_factors", "scales_d", "scales_h", "scales_w", "scales")]
        scales = [
            number for item in given if item is not None for number in (item if isinstance(item, tuple) else [item])
        ]
        if scales and not more.get("align_corners") and not _is_ratio(value.shape[2:], graph.shape(wanted)[2:], scales):
            more = {"scale_factor": scales, **({"align_corners": False} if "align_corners" in more else {})}
        return [graph.op("interpolate", value, mode=mode, **more)]

    return rewrite


def _is_ratio(source: Sequence[int], result: Sequence[int], scales: Sequence[object]) -> bool:
    """Whether scales are those that the extents say, so that size and scale mean the same places."""
    return all(
        isinstance(scale, int | float) and math.isclose(scale, after / before)
        for scale, before, after in zip(scales, source, result, strict=False)
    )


def _diff(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``diff``: what is next less what is here, ``n`` times, with what stands before and behind."""
    value = graph.tensor(node.arguments["self"])
    axis = cast("int", node.arguments["dim"]) % value.ndim
    around = [graph.operand(node.arguments.get("prepend")), value, graph.operand(node.arguments.get("append"))]
    parts = [item for item in around if item is not None]
    if len(parts) > 1:
        value = graph.op("cat", *parts, dim=axis)
    for _ in range(cast("int", node.arguments["n"])):
        later = graph.op("slice", value, dim=axis, start=1)
        earlier = graph.op("slice", value, dim=axis, end=-1)
        is_bool = value.dtype == DType.BOOL.value
        value = graph.op("logical_xor" if is_bool else "sub", later, earlier)
    return [value]


def _batch_norm(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    arguments = node.arguments
    order = ("input", "running_mean", "running_var", "weight", "bias")
    return [graph.op("batch_norm", *[graph.operand(arguments[name]) for name in order], eps=arguments["eps"])]


def _batch_norm_of_batch(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """A batch norm by the statistics of its own operand, as standardized weights have; no running ones change."""
    arguments = node.arguments
    if "running_mean" in arguments:
        raise Unsupported("it changes its running statistics, which is training", "call model.eval() before the export")
    x = graph.tensor(arguments["input"])
    dims = [axis for axis in range(x.ndim) if axis != 1]
    centred = x - graph.op("mean", x, dim=dims, keepdim=True)
    variance = graph.op("mean", centred * centred, dim=dims, keepdim=True)
    found = centred * graph.op("rsqrt", variance + cast("float", arguments["eps"]))
    for name, op in (("weight", "mul"), ("bias", "add")):
        if arguments[name] is not None:
            channels = graph.op("reshape", graph.tensor(arguments[name]), shape=[-1, *[1] * (x.ndim - 2)])
            found = graph.op(op, found, channels)
    return [found]


def _bilinear(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``x1 W y1 + b`` of two operands: a linear layer over all products of their elements."""
    first, second = graph.tensor(node.arguments["input1"]), graph.tensor(node.arguments["input2"])
    weight = graph.tensor(node.arguments["weight"])
    products = graph.op("unsqueeze", first, dim=-1) * graph.op("unsqueeze", second, dim=-2)
    products = graph.op("reshape", products, shape=[*first.shape[:-1], -1])
    rows = graph.op("reshape", weight, shape=[weight.shape[0], -1])
    return [graph.op("linear", products, rows, graph.operand(node.arguments["bias"]))]


def _softmax(op: str) -> Rewrite:
    """What ``run_decompositions`` writes of softmax: ``half_to_float`` says what the result's dtype says."""

    def rewrite(graph: Lowering, node: TracedNode) -> Sequence[Value]:
        value = _cast(graph, node)[0]
        return [graph.op(op, value, dim=node.arguments["dim"])]

    return rewrite


def _random_leaky_relu(graph: Lowering, node: TracedNode) -> Sequence[Value]:
    """``rrelu`` in inference: the mean of the slopes that training draws from."""
    if node.arguments["training"]:
        raise Unsupported("it draws random slopes, which is training", "call model.eval() before the export")
    slope = (cast("float", node.arguments["lower"]) + cast("float", node.arguments["upper"])) / 2
    return [graph.op("leaky_relu", graph.tensor(node.arguments["self"]), negative_slope=slope)]


_POOL = ("self", "kernel_size", "stride", "padding", "dilation", "ceil_mode")

REWRITES: Mapping[str, Rewrite] = MappingProxyType(
    {
        "_native_batch_norm_legit_no_training": _batch_norm,
        "_native_batch_norm_legit": _batch_norm_of_batch,
        "_native_batch_norm_legit_functional": _batch_norm_of_batch,
        "_log_softmax": _softmax("log_softmax"),
        "_softmax": _softmax("softmax"),
        "_to_copy": _cast,
        "bilinear": _bilinear,
        "constant_pad_nd": _pad("constant"),
        "convolution": _convolution,
        "copy": _copy,
        "diff": _diff,
        "embedding": _embedding,
        "embedding_bag": _embedding_bag,
        "arange": _arange,
        "slice": _slice,
        "expand_as": _like("expand"),
        "fill": _full,
        "full": _full,
        "index": _index,
        "index_put": _index_put,
        "_unsafe_index": _index,
        "max_pool1d_with_indices": _max_pool("max_pool1d"),
        "max_pool2d_with_indices": _max_pool("max_pool2d"),
        "max_pool3d_with_indices": _max_pool("max_pool3d"),
        "native_group_norm": _native_group_norm,
        "native_layer_norm": _first_of("layer_norm", ("input", "normalized_shape", "weight", "bias", "eps")),
        "reflection_pad1d": _pad("reflect"),
        "reflection_pad2d": _pad("reflect"),
        "reflection_pad3d": _pad("reflect"),
        "replication_pad1d": _pad("replicate"),
        "replication_pad2d": _pad("replicate"),
        "replication_pad3d": _pad("replicate"),
        "rrelu_with_noise": _random_leaky_relu,
        "rrelu_with_noise_functional": _random_leaky_relu,
        "scalar_tensor": _full,
        "scatter": _scatter,
        "to": _cast,
        "type_as": _cast,
        "upsample_bicubic2d": resample(is_cubic=True, is_smoothed=False),
        "_upsample_bicubic2d_aa": resample(is_cubic=True, is_smoothed=True),
        "_upsample_bilinear2d_aa": resample(is_cubic=False, is_smoothed=True),
        "upsample_bilinear2d": _upsample("bilinear"),
        "upsample_linear1d": _upsample("linear"),
        "upsample_nearest1d": _upsample("nearest"),
        "upsample_nearest2d": _upsample("nearest"),
        "upsample_nearest3d": _upsample("nearest"),
        "upsample_trilinear3d": _upsample("trilinear"),
        "view_as": _like("view"),
        "where": _where,
    }
)
"""Rewrites by the operation's name without namespace and overload."""
