"""The references of the ops against PyTorch, on the arguments that PyTorch's own tests have of its functions.

Float64 stands where a graph has float32, integers and bools are themselves.  Each sample is run as it is, and some with
one extent made 0 or 1 everywhere.  What PyTorch takes and a graph does not has to be refused in the words of the page
of ops: its column of refused arguments, its places by dtype, or what is refused of every op.  Collected only where
torch is importable (``tests/conftest.py``).
"""

from __future__ import annotations

import itertools
import json
import random
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from spyrec.diagnostics import Diagnostic, SpyrecError
from spyrec.hardware.dtypes import DType
from spyrec.ir.op_places import CLASSES, places
from spyrec.ir.opdef import Array, OpKind, catalogue
from spyrec.ir.refused_ops import REFUSED_ARGUMENTS
from spyrec.ir.types import TensorType
from tests.support.torch_samples import (
    Call,
    Untold,
    bound_to,
    call_of,
    dtype_name,
    is_list,
    numbers_of,
    op_infos,
    ops_of,
)

# typed as Any: the project's type check runs without torch
torch: Any = import_module("torch")

SAMPLES = 5
"""Samples of each record and dtype, spread over all that there are."""

MOST_SAMPLES = 40
CHANGED = 3
"""Samples of each record with an extent of 0 or 1."""

DTYPES = (torch.float64, torch.int64, torch.bool)

INFOS = [(info, op) for info in op_infos() for op in ops_of(info)]
UNDEFINED = ("empty", "empty_like", "new_empty")
"""Ops that promise a shape alone."""

OwnSample = tuple[str, dict[str, Any], Any]
"""An op, its arguments by name, and PyTorch's result."""

ORDERED = ("topk", "sort", "argsort", "kthvalue")
"""Ops that PyTorch lets choose among equals; topk also in any order, where that is asked for."""

REFUSED_OF_EVERY_OP = ("SPY0203", "SPY0215", "SPY0222")

KNOWN = {
    ("adaptive_avg_pool3d", "SPY0234"): "PyTorch has means of no elements, and of three dims alone",
    ("add", "SPY0122"): "alpha may be true or false beside bools, which are refused themselves",
    ("batch_norm", "SPY0206"): "PyTorch takes one dim where it has no elements",
    ("dropout", "SPY0121"): "left alone PyTorch's function trains, with a p of its own",
    ("gather", "SPY0230"): "PyTorch takes an index of uint8 where it has no elements",
    ("grid_sampler_2d", "SPY0206"): "of three dims it is grid_sampler_3d, which is refused by name",
    ("pad", "SPY0209"): "PyTorch takes more away from a circle than it has",
}
"""What PyTorch takes by accident, or under another name."""

UNTOLD = {
    "_scaled_mm": "its samples are of another processor",
    "batch_norm-without_cudnn": "it trains",
    "linspace-tensor_overload": "both ends are tensors",
    "meshgrid-variadic_tensors": "its tensors are no list",
    "norm-nuc": "a norm of matrices",
    "silu-complex": "complex numbers",
    "to": "it says where a tensor lies",
}
"""Records none of whose samples a graph has words for."""

NOT_EMPTIED = {
    "addmv": "PyTorch does not broadcast the first operand where the matrix is empty",
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), "PyTorch's result has no channels where the input has none"),
    "embedding_bag": "PyTorch reads past its weight",
    "pixel_unshuffle": "PyTorch returns what has no elements in the shape that it had",
    "scaled_dot_product_attention": "PyTorch does not broadcast the first operand where another is empty",
}
"""Ops whose samples keep their extents."""


def title(case: tuple[Any, str]) -> str:
    info, op = case
    return f"{op}-{info.variant_test_name}" if info.variant_test_name else op


def test_every_op_has_samples_of_pytorchs_or_of_our_own() -> None:
    public = {name for name, item in catalogue().items() if item.is_public}
    found = {op for _, op in INFOS}
    assert public - found == {case[0] for case in OWN_SAMPLES}


@pytest.fixture(autouse=True)
def float64_by_default() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_default_dtype(before)


@pytest.mark.parametrize("case", INFOS, ids=title)
def test_results_are_those_of_pytorch(case: tuple[Any, str]) -> None:
    info, op = case
    compared, complaints = 0, list[str]()
    for dtype in DTYPES:
        if dtype not in info.supported_dtypes("cpu"):
            continue
        torch.manual_seed(0)
        samples: list[Any] = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), MOST_SAMPLES))
        chosen = samples[:: max(1, len(samples) // SAMPLES)]
        given = [((item.input, *item.args), dict(item.kwargs)) for item in chosen]
        changed = () if dtype is not torch.float64 or op in NOT_EMPTIED else changed_extents(title(case), given)
        for values, keywords in (*given, *changed):
            found = complaint_of(info, op, values, keywords)
            compared += found is not None
            complaints += [found] if found else []
    assert not complaints, "\n".join(complaints)
    assert compared or title(case) in UNTOLD


def eighths(*shape: int) -> Any:  # noqa: ANN401 -- a tensor of torch's
    """Return float32 numbers whose products and sums are exact."""
    return torch.randint(-16, 17, shape) / torch.tensor(8, dtype=torch.float32)


def groups(name: str) -> Iterator[OwnSample]:
    function = getattr(torch if name.startswith("_") else torch.nn.functional, name)
    rows, columns, both = eighths(6, 8), eighths(8, 12), eighths(3, 8, 4)
    for a, b, ends in (
        (rows, both, [2, 2, 6]),
        (eighths(3, 4, 8), columns, [5, 8, 12]),
        (rows, columns[:, :8].contiguous(), [3, 8]),
        (eighths(3, 4, 8), both, None),
    ):
        if (a.dim(), b.dim()) == (2, 2):
            b = eighths(8, 4)  # both are cut along what is summed over
        offs = None if ends is None else torch.tensor(ends, dtype=torch.int32)
        yield name, {"mat_a": a, "mat_b": b, "offs": offs}, function(a, b, offs=offs)


def packed_samples() -> Iterator[OwnSample]:
    for name in ("_grouped_mm", "grouped_mm"):
        yield from groups(name)
    x, weight, scales = eighths(3, 64), torch.randint(-128, 128, (32, 64), dtype=torch.int8), eighths(32)
    arguments = {"input": x, "mat2": weight, "scales": scales}
    yield "_weight_int8pack_mm", arguments, torch._weight_int8pack_mm(x, weight, scales)
    nibbles = torch.randint(0, 16, (32, 64), dtype=torch.int32)
    pairs = (nibbles[:, ::2] * 16 + nibbles[:, 1::2]).to(torch.uint8)
    own = torch._convert_weight_to_int4pack_for_cpu(nibbles, 1)
    for group in (32, 64):
        steps = eighths(64 // group, 32, 2)
        arguments = {"input": x, "mat2": pairs, "qScaleAndZeros": steps, "qGroupSize": group}
        yield "_weight_int4pack_mm", arguments, torch._weight_int4pack_mm_for_cpu(x, own, group, steps)


def conversions() -> Iterator[OwnSample]:
    numbers = torch.tensor([-2.5, -1.0, 0.0, 0.5, 1.0, 96.5], dtype=torch.float64)
    for source in (torch.float64, torch.int64, torch.bool, torch.float16, torch.int8):
        for target in (torch.float64, torch.int64, torch.bool, torch.float16, torch.int32):
            x, other = numbers.to(source), torch.zeros(2, 0, dtype=target)
            yield "type_as", {"input": x, "other": other}, x.type_as(other)


def folds() -> Iterator[OwnSample]:
    for shape, arguments in (
        ((2, 12, 12), {"output_size": [4, 5], "kernel_size": [2, 2]}),
        ((3 * 6, 4), {"output_size": [4, 7], "kernel_size": [2, 3], "stride": [2, 3]}),
        ((1, 4, 9), {"output_size": [3, 3], "kernel_size": 2, "dilation": 2, "padding": 1}),
        ((1, 0, 9), {"output_size": [3, 3], "kernel_size": 1}),
        ((0, 4, 4), {"output_size": [3, 3], "kernel_size": 2}),
    ):
        x = eighths(*shape)
        try:
            wanted = torch.nn.functional.fold(x, **arguments)
        except RuntimeError:  # PyTorch refuses images without channels
            continue
        yield "col2im", {"input": x, **arguments}, wanted


def lookups() -> Iterator[OwnSample]:
    x, every = eighths(3, 4, 5, 2), slice(None)
    one, two = torch.tensor([0, -1, 2]), torch.tensor([[1, -4, 3], [0, 2, 2]])
    for key in (
        (one,),
        (two[:, :1] % 3, two),
        (every, two),
        (one, every, one),
        (every, one, every, one % 2),
        (every, every, two.to(torch.int32), torch.tensor(1)),
        (torch.zeros(0, dtype=torch.int64), one[:1]),
    ):
        parts = [None if isinstance(part, slice) else part for part in key]
        yield "index", {"input": x, "indices": parts}, x[key]
    yield "index", {"input": x[:, :0], "indices": [one]}, x[:, :0][one]


def placed_pools() -> Iterator[OwnSample]:
    """Equals, NaN, rows of nothing but -inf, windows that reach past the end."""
    for dims, shape in ((1, (2, 3, 9)), (2, (2, 3, 9, 8)), (2, (1, 5, 4)), (3, (2, 5, 6, 4))):
        name = f"max_pool{dims}d"
        x = torch.round(2 * eighths(*shape))
        x[..., 1], x[..., 2], x[..., 3] = torch.nan, torch.nan, -torch.inf
        for kernel, stride, padding, dilation, ceil in itertools.product((2, 3), (1, 2), (0, 1), (1, 2), (False, True)):
            given = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation}
            function = getattr(torch.nn.functional, name)
            try:
                wanted = function(x, **given, ceil_mode=ceil, return_indices=True)
            except RuntimeError:
                continue
            yield f"{name}_with_indices", {"input": x, **given, "ceil_mode": ceil}, wanted


torch.manual_seed(0)
OWN_SAMPLES: list[OwnSample] = [*packed_samples(), *conversions(), *folds(), *lookups(), *placed_pools()]
"""Samples of ops that PyTorch has no record of."""


@pytest.mark.parametrize("case", OWN_SAMPLES, ids=lambda case: case[0])
def test_results_of_ops_without_a_record_are_those_of_pytorch(case: OwnSample) -> None:
    op, arguments, wanted = case
    call, results = call_of(op, arguments), flat(wanted)
    assert list(differences(call, call.results(len(results)), results)) == []


Values = tuple[Any, ...]


def complaint_of(info: Any, op: str, values: Values, keywords: Mapping[str, Any]) -> str | None:  # noqa: ANN401 -- torch's
    """Return how a graph's answer differs from PyTorch's, "" for not at all, ``None`` where there is nothing to say."""
    try:
        wanted = flat(info.op(*values, **keywords))
    except Exception:  # noqa: BLE001 -- what PyTorch refuses is no question
        return None
    try:
        call = call_of(op, bound_to(info.name, op, values, keywords))
    except Untold:
        return None
    if not wanted or any(item.is_complex() for item in wanted):
        return None
    try:
        found = call.results(len(wanted))
    except SpyrecError as error:
        diagnostic = error.diagnostics[0]
        is_said = is_refused_in_words(call, diagnostic)
        return "" if is_said else f"{call}: {diagnostic.code}: {diagnostic.message}, and PyTorch computes it"
    return next((f"{call}: {text}" for text in differences(call, found, wanted)), "")


def flat(result: Any) -> list[Any]:  # noqa: ANN401 -- torch's
    if isinstance(result, torch.Tensor):
        return [result]
    return [item for part in result for item in flat(part)]


def differences(call: Call, found: Sequence[tuple[TensorType, Array]], wanted: Sequence[Any]) -> Iterator[str]:
    is_unordered = call.op == "topk" and call.attributes.get("sorted") is False
    for index, ((kind, numbers), tensor) in enumerate(zip(found, wanted, strict=True)):
        expected = numbers_of(tensor)
        is_right = kind.dtype.value == dtype_name(tensor.dtype) and kind.shape == numbers.shape == expected.shape
        if not is_right:
            yield f"result {index} is {kind}, PyTorch's is {dtype_name(tensor.dtype)}{list(expected.shape)}"
        elif call.op in UNDEFINED or is_unordered:
            continue
        elif call.op in ORDERED and expected.dtype.kind == "i" and index == len(wanted) - 1:
            yield from places_differ(call, numbers, expected)
        elif not equal(numbers, expected):
            yield f"result {index}: {numbers.reshape(-1)[:8]}, PyTorch's: {expected.reshape(-1)[:8]}"


def places_differ(call: Call, found: Array, wanted: Array) -> Iterator[str]:
    """Yield a complaint where the places that were chosen hold other numbers: equals may stand in any order."""
    (x,) = (numbers_of(item) for item in call.tensors.values())
    dim = call.attributes.get("dim", -1)
    assert isinstance(dim, int)
    if found.ndim < x.ndim:
        found, wanted = np.expand_dims(found, dim), np.expand_dims(wanted, dim)
    chosen, expected = (np.take_along_axis(x, item.astype(np.int64), dim) if x.ndim else x for item in (found, wanted))
    if not np.array_equal(chosen, expected):
        yield f"places {found.reshape(-1)[:8]}, PyTorch's: {wanted.reshape(-1)[:8]}"


def equal(found: Array, wanted: Array) -> bool:
    if wanted.dtype.kind == "f":
        return bool(np.allclose(found.astype(np.float64), wanted, rtol=1e-7, atol=1e-7, equal_nan=True))
    return np.array_equal(found.astype(wanted.dtype), wanted)


def is_refused_in_words(call: Call, diagnostic: Diagnostic) -> bool:
    """Whether the page of ops says of this call that it is refused."""
    definition = catalogue()[call.op]
    if diagnostic.code in REFUSED_OF_EVERY_OP or (call.op, diagnostic.code) in KNOWN:
        return True
    named = set(places(definition))
    dtypes = {DType(dtype_name(item.dtype)) for item in call.tensors.values()}
    if definition.kind is not OpKind.CREATION and any(not named & class_of(dtype) for dtype in dtypes):
        return True
    blamed = re.search(r"/attrs/(\w+)", (diagnostic.location and diagnostic.location.pointer) or "")
    for entry in REFUSED_ARGUMENTS.get(call.op, ()):
        name, _, value = entry.partition("=")
        given = call.attributes.get(name)
        if (blamed is not None and blamed[1] == name) or (value and given is not None and json.loads(value) == given):
            return True
    return False


def class_of(dtype: DType) -> set[str]:
    return {name for name, dtypes in CLASSES.items() if dtype in dtypes}


def changed_extents(
    seed: str, samples: Sequence[tuple[Values, dict[str, Any]]]
) -> Iterator[tuple[Values, dict[str, Any]]]:
    """Yield samples in which one extent is 0 or 1 in every tensor that has it."""
    generator = random.Random(zlib.crc32(seed.encode()))
    for _ in range(CHANGED if samples else 0):
        values, keywords = generator.choice(samples)
        extents = sorted({extent for item in tensors_in((values, keywords)) for extent in item.shape if extent})
        if extents:
            old, new = generator.choice(extents), generator.choice((0, 1))
            yield with_extent(values, old, new), with_extent(keywords, old, new)


def is_mapping(value: Any) -> bool:  # noqa: ANN401 -- any argument of torch's
    return isinstance(value, Mapping)


def tensors_in(value: Any) -> Iterator[Any]:  # noqa: ANN401 -- any argument of torch's
    if isinstance(value, torch.Tensor):
        yield value
    elif is_mapping(value):
        yield from tensors_in(list(value.values()))
    elif is_list(value):
        for item in value:
            yield from tensors_in(item)


def with_extent(value: Any, old: int, new: int) -> Any:  # noqa: ANN401 -- any argument of torch's
    """Return arguments whose tensors have ``new`` elements along every dim of ``old``; sizes among them stay."""
    if isinstance(value, torch.Tensor):
        for axis, extent in enumerate(value.shape):
            if extent == old:
                value = value.narrow(axis, 0, new)
        return value.clone()
    if is_mapping(value):
        return {key: with_extent(item, old, new) for key, item in value.items()}
    if is_list(value) and not isinstance(value, torch.Size):
        return type(value)(with_extent(item, old, new) for item in value)
    return value
