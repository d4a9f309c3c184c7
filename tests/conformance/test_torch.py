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
        return getattr(torch, name)(x[0], dim=every, keepdim=arguments["keepdim"]) if every else x[0].clone()

    return reduce


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
    "softmax": lambda x, a: torch.softmax(x[0], a["dim"]),
    "layer_norm": lambda x, a: functional.layer_norm(x[0], a["normalized_shape"], *x[1:], eps=a["eps"]),
    "rms_norm": lambda x, a: functional.rms_norm(x[0], a["normalized_shape"], *x[1:], eps=a["eps"]),
    "squeeze": lambda x, a: torch.squeeze(x[0]) if a["dim"] is None else torch.squeeze(x[0], a["dim"]),
    "reshape": lambda x, a: torch.reshape(x[0], a["shape"]),
    "permute": lambda x, a: torch.permute(x[0], a["dims"]),
    "view": lambda x, a: x[0].reshape(a["size"]),
    "expand": lambda x, a: x[0].expand(a["size"]),
    "repeat": lambda x, a: x[0].repeat(a["repeats"]),
}
"""Ops whose call in PyTorch is not ``function(*operands, **attributes)``."""


def function_of(name: str) -> Function:
    """Return what calls PyTorch's function of that name, wherever it stands."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    homes = (functional, torch) if name in {"linear", "gelu", "softplus", "silu"} else (torch, functional, torch.Tensor)
    found = next(getattr(home, name) for home in homes if hasattr(home, name))
    return lambda x, arguments: found(*x, **arguments)


def arguments_of(case: SampleCase) -> Arguments:
    attributes = case.graph.nodes[0].attributes
    arguments = {item.name: getattr(attributes, item.name) for item in fields(attributes)}
    if case.op == "rms_norm" and arguments["eps"] is None:
        # PyTorch takes the machine epsilon of the dtype it computes in, here float64: give that of the sample's
        arguments["eps"] = torch.finfo(getattr(torch, case.result.dtype.value)).eps
    return arguments


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_reference_is_what_pytorch_computes(case: SampleCase) -> None:
    arrays = case.arrays()
    values: dict[str, npt.NDArray[np.generic]] = {
        name: decode(array, case.graph.type_of(name).dtype) for name, array in arrays.items()
    }
    operands = [
        torch.from_numpy(np.array(values[name])) if isinstance(name, str) else None
        for name in case.graph.nodes[0].inputs
    ]
    wanted = function_of(case.op)(operands, arguments_of(case))
    got: Any = evaluate(case.graph, arrays)["y"]
    assert tuple(wanted.shape) == case.result.shape == got.shape
    assert wanted.dtype == oracle_dtype(case.result.dtype)
    np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-12, atol=1e-12, equal_nan=True)


def test_every_public_op_is_compared() -> None:
    assert {case.op for case in CASES} == {item.name for item in catalogue().values() if item.is_public}
