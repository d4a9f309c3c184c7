"""The op references against PyTorch itself, in float64, on every sample of the catalogue.

Collected only where torch is importable (``tests/conftest.py``): the extra ``torch`` of ``pyproject.toml``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from spyrec.hardware.dtypes import DType
from spyrec.ir.evaluate import evaluate
from spyrec.ir.numbers import decode
from spyrec.ir.opdef import catalogue
from tests.support.samples import SampleCase, sample_cases

# typed as Any: the project's type check runs without torch
torch: Any = import_module("torch")
functional: Any = import_module("torch.nn.functional")

CASES = sample_cases()

Arguments = dict[str, Any]
Function = Callable[[Sequence[Any], Arguments], Any]

KIND_OF: dict[bool, Callable[[DType], Any]] = {
    True: lambda _: torch.float64,
    False: lambda dtype: torch.bool if dtype is DType.BOOL else torch.int64,
}


def oracle_dtype(dtype: DType) -> object:
    """Return the dtype that the float64 oracle computes in."""
    return KIND_OF[dtype.is_float](dtype)


def reduction(name: str) -> Function:
    def reduce(x: Sequence[Any], arguments: Arguments) -> object:
        dims = arguments["dim"]
        every = tuple(range(x[0].dim())) if dims is None else dims
        given = x[0].double() if name == "mean" else x[0]
        return getattr(torch, name)(given, dim=every, keepdim=arguments["keepdim"]) if every else given.clone()

    return reduce


def every_dim(function: Any, x: Any, arguments: Arguments) -> Any:  # noqa: ANN401 -- torch's
    """Fold dim by dim, from the last one: PyTorch's takes one at a time."""
    dims = arguments["dim"]
    chosen: list[int] = list(range(x.dim())) if dims is None else [*np.atleast_1d(dims)]
    result: Any = x * 1
    for dim in sorted((item % max(x.dim(), 1) for item in chosen), reverse=True):
        result = function(result, dim, arguments["keepdim"])
    return result


def corrected(arguments: Arguments) -> float:
    correction = arguments["correction"]
    return (1 if arguments.get("unbiased", True) in (True, None) else 0) if correction is None else correction


def along_or_all(function: Any, x: Sequence[Any], arguments: Arguments) -> object:  # noqa: ANN401 -- torch's
    if len(x) > 1 and x[1] is not None:
        return function(x[0], x[1])
    return function(x[0]) if arguments["dim"] is None else function(x[0], arguments["dim"], arguments["keepdim"])


def pieces(sizes: int | tuple[int, ...]) -> int | tuple[int, ...]:
    return sizes[0] if isinstance(sizes, tuple) and len(sizes) == 1 else sizes


def arange(arguments: Arguments) -> object:
    start, end, step = (arguments[key] for key in ("start", "end", "step"))
    return torch.arange(start) if end is None else torch.arange(start, end, step)


def index_put(x: Sequence[Any], arguments: Arguments) -> object:
    """Write by index as Python does; a dim without an index is whole."""
    result: Any = x[0].clone()
    places = tuple(slice(None) if item is None else item for item in x[1:-1])
    if arguments["accumulate"]:
        return torch.ops.aten.index_put(x[0], list(x[1:-1]), x[-1], True)
    result[places] = x[-1]
    return result


def bound(x: Sequence[Any], arguments: Arguments, name: str) -> object:
    """Return a bound of clamp, wherever this catalogue has it: operand or attribute."""
    if arguments.get(name) is not None:
        return arguments[name]
    place = ("min", "max").index(name) + 1
    return x[place] if place < len(x) else None


def output_size(arguments: Arguments, rank: int) -> tuple[int, ...]:
    found = arguments["output_size"]
    return (found,) * rank if isinstance(found, int) else tuple(found) * (rank // len(found))


def interpolated(x: Sequence[Any], arguments: Arguments) -> object:
    """A factor that is held alone is for all dims, which PyTorch takes as a number."""
    factors = arguments["scale_factor"]
    alone = factors[0] if factors is not None and len(factors) == 1 else factors
    return functional.interpolate(x[0], **{**arguments, "scale_factor": alone})


def sliced(x: Sequence[Any], arguments: Arguments) -> object:
    places = [slice(None)] * x[0].dim()
    places[arguments["dim"]] = slice(arguments["start"], arguments["end"], arguments["step"])
    return x[0][tuple(places)]


FUNCTIONS: dict[str, Function] = {
    "sum": reduction("sum"),
    "mean": reduction("mean"),
    "amax": reduction("amax"),
    "amin": reduction("amin"),
    "cat": lambda x, a: torch.cat(list(x), **a),
    "stack": lambda x, a: torch.stack(list(x), **a),
    "slice": sliced,
    "to": lambda x, a: x[0].to(oracle_dtype(a["dtype"])),
    "full": lambda _, a: torch.full(a["size"], a["fill_value"], dtype=oracle_dtype(a["dtype"])),
    "softmax": lambda x, a: torch.softmax(x[0].double(), a["dim"]),
    "layer_norm": lambda x, a: functional.layer_norm(x[0], a["normalized_shape"], *x[1:], eps=a["eps"]),
    "rms_norm": lambda x, a: functional.rms_norm(x[0], a["normalized_shape"], *x[1:], eps=a["eps"]),
    "squeeze": lambda x, a: torch.squeeze(x[0]) if a["dim"] is None else torch.squeeze(x[0], a["dim"]),
    "reshape": lambda x, a: torch.reshape(x[0], a["shape"]),
    "permute": lambda x, a: torch.permute(x[0], a["dims"]),
    "view": lambda x, a: x[0].reshape(a["size"]),
    "expand": lambda x, a: x[0].expand(a["size"]),
    "repeat": lambda x, a: x[0].repeat(a["repeats"]),
    "adaptive_avg_pool2d": lambda x, a: functional.adaptive_avg_pool2d(x[0], output_size(a, 2)),
    "adaptive_avg_pool3d": lambda x, a: functional.adaptive_avg_pool3d(x[0], output_size(a, 3)),
    "adaptive_max_pool1d": lambda x, a: functional.adaptive_max_pool1d(x[0], output_size(a, 1)),
    "adaptive_max_pool2d": lambda x, a: functional.adaptive_max_pool2d(x[0], output_size(a, 2)),
    "adaptive_max_pool3d": lambda x, a: functional.adaptive_max_pool3d(x[0], output_size(a, 3)),
    "arange": lambda _, a: arange(a),
    "batch_norm": lambda x, a: functional.batch_norm(*x, eps=a["eps"]),
    "elu": lambda x, a: torch.ops.aten.elu(x[0], a["alpha"], a["scale"], a["input_scale"]),
    "interpolate": interpolated,
    "instance_norm": lambda x, a: functional.instance_norm(*x, use_input_stats=a["use_input_stats"], eps=a["eps"]),
    "linalg_vector_norm": lambda x, a: torch.linalg.vector_norm(x[0], a["ord"], a["dim"], a["keepdim"]),
    "rsub": lambda x, a: x[1] - x[0] * int(a["alpha"]) if a["alpha"] == int(a["alpha"]) else x[1] - x[0] * a["alpha"],
    "split": lambda x, a: torch.split(x[0], pieces(a["split_size"]), a["dim"]),
    "unfold": lambda x, a: x[0].unfold(a["dimension"], a["size"], a["step"]),
    "prod": lambda x, a: every_dim(torch.prod, x[0], a),
    "std": lambda x, a: torch.std(x[0], a["dim"], correction=corrected(a), keepdim=a["keepdim"]),
    "std_mean": lambda x, a: torch.std_mean(x[0], a["dim"], correction=corrected(a), keepdim=a["keepdim"]),
    "var": lambda x, a: torch.var(x[0], a["dim"], correction=corrected(a), keepdim=a["keepdim"]),
    "var_mean": lambda x, a: torch.var_mean(x[0], a["dim"], correction=corrected(a), keepdim=a["keepdim"]),
    "max": lambda x, a: along_or_all(torch.max, x, a),
    "min": lambda x, a: along_or_all(torch.min, x, a),
    "median": lambda x, a: along_or_all(torch.median, x, a),
    "argmax": lambda x, a: torch.argmax(x[0] * 1, a["dim"], a["keepdim"]),
    "argmin": lambda x, a: torch.argmin(x[0] * 1, a["dim"], a["keepdim"]),
    "clamp": lambda x, a: torch.clamp(x[0], min=bound(x, a, "min"), max=bound(x, a, "max")),
    "einsum": lambda x, a: torch.einsum(a["equation"], *x),
    "index": lambda x, _: x[0][tuple(slice(None) if item is None else item for item in x[1:])],
    "index_put": index_put,
    "histc": lambda x, a: torch.histc(x[0].double(), a["bins"], a["min"], a["max"]),
    "round": lambda x, a: torch.round(x[0], decimals=a["decimals"]),
}
"""Ops whose call in PyTorch is not ``function(*operands, **attributes)``."""


def function_of(name: str) -> Function:
    """Return what calls PyTorch's function of that name, wherever it stands."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    homes = (functional, torch) if name in {"linear", "gelu", "softplus", "silu"} else (torch, functional, torch.Tensor)
    functions = [getattr(home, name) for home in homes if hasattr(home, name)]
    specs = catalogue()[name].operands

    def call(x: Sequence[Any], arguments: Arguments) -> object:
        """Call it in the first form that it takes: they differ in what may be named, and in what may be None."""
        named = {spec.name: item for spec, item in zip(specs, x) if item is not None}
        given = {key: value for key, value in arguments.items() if value is not None}
        here = [item for item in x if item is not None]
        forms: list[tuple[list[Any], Arguments]] = [
            (here, arguments),
            ([], {**named, **given}),
            (here, given),
            ([*x[:1], *arguments.values(), *here[1:]], {}),
            ([list(x)], given),
            ([*here[:1], *given.values()], {}),
        ]
        problems: list[str] = []
        for function in functions:
            for places, words in forms:
                try:
                    return function(*places, **words)
                except (TypeError, RuntimeError) as error:
                    problems.append(str(error).split("\n", maxsplit=1)[0])
        raise AssertionError(problems)

    return call


def arguments_of(case: SampleCase) -> Arguments:
    attributes = case.graph.nodes[0].attributes
    arguments = {item.name: getattr(attributes, item.name) for item in fields(attributes)}
    if case.op == "rms_norm" and arguments["eps"] is None:
        # PyTorch takes the machine epsilon of the dtype it computes in, here float64: give that of the sample's
        arguments["eps"] = torch.finfo(getattr(torch, case.result.dtype.value)).eps
    return arguments


WITHOUT_ORACLE: dict[str, str] = {
    "_grouped_mm": "PyTorch has no float64 of it",
    "_scaled_mm": "PyTorch has no float64 of it",
    "_weight_int4pack_mm": "PyTorch packs weights for its own kernels",
    "_weight_int8pack_mm": "PyTorch has no float64 of it",
    "argsort": "equal elements may stand in any order",
    "empty": "its elements are whatever memory held",
    "empty_like": "its elements are whatever memory held",
    "grouped_mm": "PyTorch has no float64 of it",
    "new_empty": "its elements are whatever memory held",
    "scaled_mm": "PyTorch has no float64 of it",
    "sort": "equal elements may stand in any order",
    "topk": "equal elements may stand in any order",
}
"""Ops that are compared elsewhere, and why not here."""

CALLS_WITHOUT_ORACLE: dict[str, str] = {
    "clamp-9": "PyTorch takes two numbers or two tensors, not one of each",
    "col2im-0": "PyTorch has it under another name: catalogue/test_against_torch.py",
    "col2im-1": "PyTorch has it under another name: catalogue/test_against_torch.py",
    "embedding_bag-1": "PyTorch takes no ends of bags beside rows of them",
    "kthvalue-0": "PyTorch takes any of equal numbers: its places are another choice",
    "round-2": "PyTorch rounds no integers to places",
    "scatter-1": "PyTorch reduces only numbers here",
}
"""Samples of other ops whose arguments PyTorch takes in another form."""


@pytest.mark.filterwarnings("ignore:.*degrees of freedom", "ignore:The reduce argument of torch.scatter")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_reference_is_what_pytorch_computes(case: SampleCase) -> None:
    if case.op in WITHOUT_ORACLE:
        pytest.skip(WITHOUT_ORACLE[case.op])
    if case.title in CALLS_WITHOUT_ORACLE:
        pytest.skip(CALLS_WITHOUT_ORACLE[case.title])
    arrays = case.arrays()
    values: dict[str, npt.NDArray[np.generic]] = {
        name: decode(array, case.graph.type_of(name).dtype) for name, array in arrays.items()
    }
    operands = [
        torch.from_numpy(np.array(values[name])) if isinstance(name, str) else None
        for name in case.graph.nodes[0].inputs
    ]
    arguments = {
        name: oracle_dtype(value) if isinstance(value, DType) and case.op not in FUNCTIONS else value
        for name, value in arguments_of(case).items()
    }
    found: Any = function_of(case.op)(operands, arguments)
    results: list[Any] = [*found] if isinstance(found, tuple | list) else [found]
    ours: Any = evaluate(case.graph, arrays)
    # of integers PyTorch computes in float32
    tolerance = 1e-12 if all(values[name].dtype.kind == "f" for name in values) else 1e-6
    for name, wanted in zip(case.graph.outputs, results, strict=True):
        assert tuple(wanted.shape) == case.graph.type_of(name).shape == ours[name].shape
        np.testing.assert_allclose(ours[name], wanted.numpy(), rtol=tolerance, atol=tolerance, equal_nan=True)


def test_every_public_op_is_compared() -> None:
    assert {case.op for case in CASES} == {item.name for item in catalogue().values() if item.is_public}
