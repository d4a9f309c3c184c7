"""The dtypes of results, and what is refused, of numbers beside tensors of every dtype: as PyTorch has them.

Numbers stand as operands and as attributes: true, whole ones, floats, and such as no narrow dtype holds.  What
PyTorch refuses is refused, but for a factor that IEEE half does not hold and the device does; what it takes and a
graph does not is refused in the words of the page of ops.  Collected only where torch is importable
(``tests/conftest.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from spyrec.diagnostics import SpyrecError
from spyrec.hardware.dtypes import DType
from tests.support.torch_samples import call_of, dtype_name, numbers_of

# typed as Any: the project's type check runs without torch
torch: Any = import_module("torch")

DTYPES = [
    *(torch.float16, torch.bfloat16, torch.float32),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
]
NUMBERS = (True, False, 0, 1, 2, -1, 300, 2**31, 0.0, 1.0, -2.0, 2.5)
_NO_ZEROS = ("div", "floor_divide", "remainder", "fmod")

REFUSED = ("SPY0122", "SPY0203", "SPY0215")
"""true where an attribute is a number; two float dtypes; a number that is no value of the dtype beside it."""

PAIRS = (
    *("add", "sub", "rsub", "mul", "div", "floor_divide", "remainder", "fmod"),
    *("eq", "ne", "lt", "ge", "bitwise_and", "bitwise_left_shift"),
)

KNOWN = {("pow", "SPY0209"): "a negative power"}

Sample = tuple[str, dict[str, Any], Callable[[], Any]]
"""An op, its arguments by name, and PyTorch's call."""


def numbers(dtype: Any, *shape: int) -> Any:  # noqa: ANN401 -- a tensor of torch's
    found = (torch.arange(int(np.prod(shape))).reshape(shape) * 5) % 7
    return found % 2 == 1 if dtype is torch.bool else (found + 1).to(dtype)


def operands(dtype: Any, x: Any, number: Any) -> Iterator[Sample]:  # noqa: ANN401 -- torch's
    """Yield calls in which the number stands where a tensor may."""
    for name in PAIRS:
        if number or name not in _NO_ZEROS:
            yield name, {"input": x, "other": number}, lambda name=name: getattr(torch, name)(x, number)
    mask = numbers(torch.bool, *x.shape)
    yield "where", {"condition": mask, "input": x, "other": number}, lambda: torch.where(mask, x, number)
    yield "where", {"condition": mask, "input": number, "other": x}, lambda: torch.where(mask, number, x)
    yield "masked_fill", {"input": x, "mask": mask, "value": number}, lambda: torch.masked_fill(x, mask, number)
    if x.ndim:
        at = torch.tensor([0, 2])
        for name, key in ("index_fill", "value"), ("scatter", "src"):
            given = {"input": x, "dim": 0, "index": at, key: number}
            yield name, given, lambda name=name: getattr(torch, name)(x, 0, at, number)


def attributes(dtype: Any, x: Any, number: Any) -> Iterator[Sample]:  # noqa: ANN401 -- torch's
    """Yield calls in which the number is an attribute."""
    for name in ("add", "sub", "rsub"):
        given = {"input": x, "other": x, "alpha": number}
        yield name, given, lambda name=name: getattr(torch, name)(x, x, alpha=number)
    given = {"input": x, "tensor1": x, "tensor2": x, "value": number}
    yield "addcmul", given, lambda: torch.addcmul(x, x, x, value=number)
    yield "full_like", {"input": x, "fill_value": number}, lambda: torch.full_like(x, number)
    yield "clamp", {"input": x, "min": number}, lambda: torch.clamp(x, min=number)
    yield "pow", {"input": x, "exponent": number}, lambda: torch.pow(x, number)
    size = {"size": [2], "fill_value": number}
    yield "full", {**size, "dtype": dtype_name(dtype)}, lambda: torch.full((2,), number, dtype=dtype)
    functional = torch.nn.functional
    given = {"input": x, "threshold": number, "value": 1}
    yield "threshold", given, lambda: functional.threshold(x, number, 1)
    if x.ndim:
        at, matrix = torch.tensor([0, 2]), numbers(dtype, 2, 2)
        given = {"input": x, "dim": 0, "index": at, "source": x[:2], "alpha": number}
        yield "index_add", given, lambda: torch.index_add(x, 0, at, x[:2], alpha=number)
        given = {"input": matrix, "mat1": matrix, "mat2": matrix, "alpha": number}
        yield "addmm", given, lambda: torch.addmm(matrix, matrix, matrix, alpha=number)
        given = {"input": x, "pad": [1, 1], "value": number}
        yield "pad", given, lambda: functional.pad(x, (1, 1), value=number)


def alone(number: Any, other: Any) -> Iterator[Sample]:  # noqa: ANN401 -- any number
    """Yield calls in which numbers stand beside no tensor that has their dtype."""
    mask = numbers(torch.bool, 3)
    yield "where", {"condition": mask, "input": number, "other": other}, lambda: torch.where(mask, number, other)
    # full without a dtype is float16 whatever the number is: the product's own default
    yield "full", {"size": [2], "fill_value": number}, lambda: torch.full((2,), number, dtype=torch.float16)


@pytest.fixture
def float16_by_default() -> Iterator[None]:
    """Numbers that are floats and stand alone are float16 in a graph."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    yield
    torch.set_default_dtype(before)


def complaint_of(sample: Sample, dtype: Any) -> str | None:  # noqa: ANN401 -- torch's
    """Return how a graph's answer differs from PyTorch's, ``None`` where it does not."""
    op, given, ask = sample
    try:
        wanted = ask()
    except (RuntimeError, TypeError, ValueError) as error:
        wanted = str(error).split("\n", 1)[0]
    call = call_of(op, given)
    names = {name: str(tensor.dtype).removeprefix("torch.") for name, tensor in call.tensors.items()}
    try:
        ((kind, found),) = call.results(1)
    except SpyrecError as error:
        code = error.diagnostics[0].code
        is_said = isinstance(wanted, str) or code in REFUSED or (op, code) in KNOWN
        return None if is_said else f"{call} {names}: {error.diagnostics[0].message}, and PyTorch computes it"
    if isinstance(wanted, str):
        is_beyond = dtype is torch.float16 and "without overflow" in wanted
        return None if is_beyond else f"{call} {names}: computed, and PyTorch says {wanted}"
    if kind.dtype.value != dtype_name(wanted.dtype):
        return f"{call} {names}: {kind}, and PyTorch's is {wanted.dtype}"
    expected = numbers_of(wanted)
    if not kind.dtype.is_float and not np.array_equal(found.astype(expected.dtype), expected):
        return f"{call} {names}: {found}, and PyTorch's is {expected}"
    return None


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_beside_tensors_do_what_pytorch_does(dtype: Any) -> None:  # noqa: ANN401 -- torch's
    complaints: list[str | None] = []
    with torch.no_grad():
        for shape in ((3,), ()):
            x = numbers(dtype, *shape)
            for number in NUMBERS:
                samples = (*operands(dtype, x, number), *attributes(dtype, x, number))
                complaints += [complaint_of(sample, dtype) for sample in samples]
    assert len(complaints) > 500
    assert not any(complaints), "\n".join(filter(None, complaints))


@pytest.mark.usefixtures("float16_by_default")
def test_numbers_that_stand_alone_have_pytorchs_dtypes() -> None:
    samples = [item for number in NUMBERS for other in NUMBERS for item in alone(number, other)]
    assert not [text for item in samples if (text := complaint_of(item, torch.float16)) is not None]


INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
FLOATS_ALONE = ("gelu", "silu", "softplus", "elu", "leaky_relu", "mish", "hardswish", "logsigmoid", "selu")


@pytest.mark.parametrize("op", FLOATS_ALONE)
def test_functions_of_floats_refuse_whole_numbers(op: str) -> None:
    for dtype in (*INTEGERS, torch.bool):
        with pytest.raises((RuntimeError, NotImplementedError)):
            getattr(torch.nn.functional, op)(numbers(dtype, 3))
        with pytest.raises(SpyrecError) as refused:
            call_of(op, {"input": numbers(dtype, 3)}).results(1)
        assert refused.value.diagnostics[0].code == "SPY0202"


WRAPPING = ("mul", "add", "sub")


@pytest.mark.parametrize("op", WRAPPING)
@pytest.mark.parametrize("dtype", INTEGERS[1:], ids=str)
def test_integers_of_32_bits_and_fewer_wrap_around(op: str, dtype: Any) -> None:  # noqa: ANN401 -- torch's
    limits = torch.iinfo(dtype)
    values = torch.tensor([limits.min, limits.min + 1, 0, 1, limits.max - 1, limits.max], dtype=dtype)
    x, other = values[:, None], values[None, :]
    ((kind, found),) = call_of(op, {"input": x, "other": other}).results(1)
    wanted = getattr(torch, op)(x, other)
    assert kind.dtype.value == dtype_name(wanted.dtype)
    np.testing.assert_array_equal(found, wanted.numpy())


QUESTIONS = ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
PROMOTED = (
    *QUESTIONS,
    *("add", "sub", "rsub", "mul", "div", "remainder", "fmod", "maximum", "minimum", "floor_divide"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "pow"),
)
EDGES = (0, 1, 3, -7, 127, 256, 300, 2049, 70000, 2**24 + 1, 2**24 + 3, 2**30 + 1, -(2**24 + 1), 2**31 - 1)
FRACTIONS = (0.1, 2.5, 2.0**24, 2.0**24 + 1, 2.0**53 + 2, float("inf"))
CLOSE = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float32: 2.0**-22}


def edges(dtype: Any) -> Any:  # noqa: ANN401 -- torch's
    """Return numbers around which float32, float16 and narrow integers lose some."""
    if dtype.is_floating_point:
        return torch.tensor([0.0, 1.0, 2.5, -3.0, 2048.0, 300.0, 2.0**24, float("inf"), float("nan")]).to(dtype)
    if dtype is torch.bool:
        return torch.tensor([False, True])
    limits = torch.iinfo(dtype)
    return torch.tensor([edge for edge in EDGES if limits.min <= edge <= limits.max], dtype=dtype)


def promoted_pairs(dtype: Any, other: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 -- torch's
    """Yield operands: tensors of both dtypes, 0-d ones of each beside the other, numbers beside the first."""
    left, right = edges(dtype), edges(other)
    yield left[:, None], right[None, :]
    if not right.dtype.is_floating_point and not left.dtype.is_floating_point:  # see D290 of 0-d beside 16 bits
        yield from ((left, item) for item in right)
        yield from ((item, right) for item in left)
    if dtype is other:
        yield from ((left, number) for number in (*FRACTIONS, *EDGES[:4], *EDGES[9:12]))


def promotion_complaint(op: str, left: Any, right: Any) -> str | None:  # noqa: ANN401 -- torch's
    """Return how an op of operands of several dtypes differs from PyTorch's, ``None`` where it does not."""
    try:
        wanted = getattr(torch, op)(left, right)
        call = call_of(op, {"input": left, "exponent" if op == "pow" else "other": right})
        ((kind, found),) = call.results(1)
    except (RuntimeError, TypeError, ZeroDivisionError, SpyrecError):
        return None  # what is refused is asked above
    expected = wanted.double().numpy() if wanted.is_floating_point() else wanted.numpy()
    got = np.asarray(found).astype(expected.dtype)
    if wanted.is_floating_point():
        got = torch.tensor(got).to(wanted.dtype).double().numpy()
        # PyTorch rounds the steps of powers and of remainders, and a quotient in 16 bits
        share = CLOSE[wanted.dtype] if op in ("pow", "floor_divide") else 0.0
        is_right = np.isclose(got, expected, rtol=share, atol=0.0, equal_nan=True)
    else:
        is_right = np.asarray(got == expected)
    if kind.dtype.value == dtype_name(wanted.dtype) and is_right.all():
        return None
    place = np.unravel_index(int(np.argmin(is_right)), is_right.shape)
    return f"{op} of {left.dtype} and {right}: {kind} {got[place]}, PyTorch {wanted.dtype} {expected[place]}"


def _promoted_beside(dtype: Any, right: Any) -> Sequence[str]:  # noqa: ANN401 -- torch's
    """Return the ops whose operands are promoted: of floats beside a number those that the host computes."""
    if isinstance(right, torch.Tensor):
        return PROMOTED
    if dtype in (torch.float16, torch.bfloat16):
        return ("remainder", "fmod")
    if dtype is torch.float32 and float(np.float32(right)) != right:
        return [op for op in PROMOTED if op not in ("add", "sub", "rsub", "mul", "div")]
    return PROMOTED


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operands_are_promoted_before_anything_is_computed(dtype: Any) -> None:  # noqa: ANN401 -- torch's
    """16777217 equals the float 16777216, and 300 beside int8 is 44: as in PyTorch."""
    complaints: list[str] = []
    count = 0
    for other in DTYPES:
        if dtype.is_floating_point and other.is_floating_point and dtype is not other:
            continue  # refused: SPY0203
        for left, right in promoted_pairs(dtype, other):
            # what the device computes takes a number as it is, and rounds it once, to its own format
            for op in _promoted_beside(dtype, right):
                count += 1
                complaint = promotion_complaint(op, left, right)
                complaints += [] if complaint is None else [complaint]
    assert count > 100
    assert not complaints, "\n".join(complaints)


def test_one_operand_is_promoted_too() -> None:
    whole = torch.tensor([2**24 + 1, 2**24 + 3, 2**30 + 1, 5])
    for name in ("sin", "cos", "tan", "exp2", "sqrt", "log", "reciprocal", "atan", "sigmoid"):
        ((kind, found),) = call_of(name, {"input": whole}).results(1)
        wanted = getattr(torch, name)(whole.to(torch.float32).double())
        assert kind.dtype is DType.FLOAT32
        np.testing.assert_allclose(found.astype(float), wanted.numpy(), rtol=1e-12)
    ((_, found),) = call_of("softmax", {"input": whole[:2] - 1, "dim": 0, "dtype": torch.float32}).results(1)
    wanted = torch.softmax((whole[:2] - 1).float().double(), 0)
    np.testing.assert_allclose(found.astype(float), wanted.numpy(), rtol=1e-12)


@pytest.mark.parametrize("dtype", INTEGERS[1:], ids=str)
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_reductions_of_narrow_integers_wrap_around_inside(dtype: Any, include_self: bool, reduce: str) -> None:  # noqa: ANN401 -- torch's
    limits = torch.iinfo(dtype)
    x, index = torch.tensor([limits.max, 2, 3], dtype=dtype), torch.tensor([0, 0, 1])
    source = torch.tensor([limits.max, limits.max, limits.min], dtype=dtype)
    given = {"input": x, "dim": 0, "index": index, "src": source, "reduce": reduce, "include_self": include_self}
    ((_, found),) = call_of("scatter_reduce", given).results(1)
    wanted = torch.scatter_reduce(x, 0, index, source, reduce, include_self=include_self)
    np.testing.assert_array_equal(found, wanted.numpy())
