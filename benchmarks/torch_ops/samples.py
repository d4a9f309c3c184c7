"""Takes the samples that PyTorch tests an operation with through the backend, one compilation each."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportPrivateImportUsage=false
from __future__ import annotations

import contextlib
import io
import logging
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, cast

from benchmarks.torch_ops.compared import (
    HALF_ROUNDOFF,
    SINGLE_ROUNDOFF,
    Operation,
    exact_results,
    tensors_of,
    tolerances,
    worst,
)
from spyrec import torch_backend

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo, SampleInput

Way = Literal["float16", "float32", "keep"]
WAYS: tuple[Way, ...] = ("float16", "float32", "keep")
"""Samples of float16; of float32, computed in float16; of float32, computed in it."""

OPERATIONS = (
    "add", "addmm", "amax", "baddbmm", "bmm", "cat", "clamp", "cumsum", "div", "exp",
    "gather", "index_select", "lerp", "log1p", "logsumexp", "matmul", "maximum", "mean", "mm", "mul",
    "nn.functional.avg_pool2d", "nn.functional.conv2d", "nn.functional.embedding", "nn.functional.gelu",
    "nn.functional.group_norm", "nn.functional.layer_norm", "nn.functional.linear", "nn.functional.rms_norm",
    "nn.functional.scaled_dot_product_attention", "nn.functional.silu", "permute", "rsqrt", "sigmoid",
    "softmax", "sub", "sum", "tanh", "where",
)  # fmt: skip
"""Operations of the benchmark, by PyTorch's names of their tests."""

_LONGEST_REASON = 160


@dataclass(slots=True)
class Row:
    """What became of the samples of an operation in one way.

    ``worst_share``: the largest error over what it may be; ``wrong`` and ``refused``: sample number -> what is wrong.
    """

    name: str
    way: Way
    samples: int = 0
    right: int = 0
    worst_share: float = 0.0
    seconds: float = 0.0
    eager_seconds: float = 0.0
    wrong: dict[int, str] = field(default_factory=dict[int, str])
    refused: dict[int, str] = field(default_factory=dict[int, str])


def operations() -> Mapping[str, OpInfo]:
    """Return PyTorch's table of tests by name, the plain variant of each."""
    with _quiet():
        from torch.testing._internal.common_methods_invocations import op_db

    found: dict[str, OpInfo] = {}
    for info in op_db:
        if not info.variant_test_name or info.name not in found:
            found[info.name] = info
    return found


def row_of(info: OpInfo, way: Way, most: int) -> Row:
    """Take an operation's first ``most`` samples through the backend, without fallback."""
    import torch

    row = Row(info.name, way)
    dtype = torch.float16 if way == "float16" else torch.float32
    if dtype not in info.dtypes:
        return row
    torch.manual_seed(0)
    with torch.no_grad(), _quiet():
        samples = list(islice(info.sample_inputs("cpu", dtype, requires_grad=False), most))
        for number, sample in enumerate(samples):
            row.samples += 1
            try:
                _compare(info, sample, way, row, number)
            except Exception as error:  # noqa: BLE001 -- whatever fails is a sample of the row, and the others are told
                text = " ".join(str(error).split())[:_LONGEST_REASON]
                row.refused[number] = f"{type(error).__name__}: {text}"
    return row


def _compare(info: OpInfo, sample: SampleInput, way: Way, row: Row, number: int) -> None:
    import torch

    keywords = dict(sample.kwargs)
    function = _function(info)
    operation = cast("Operation", lambda *given: function(*given[0], **given[1]))
    arguments = ((sample.input, *sample.args), keywords)
    torch.compiler.reset()
    before = torch_backend.report().calls
    options = {"dtype": "keep" if way == "keep" else "float16", "fallback": False}
    compiled = torch.compile(operation, backend=torch_backend.backend, options=options)
    start = time.process_time()
    found = tensors_of(compiled(*arguments))
    done = time.process_time()
    eager = tensors_of(operation(*arguments))
    row.seconds += done - start
    row.eager_seconds += time.process_time() - done
    if torch_backend.report().calls == before:
        row.refused[number] = "nothing of it was given to the backend"
        return
    allowed = tolerances(operation, arguments, SINGLE_ROUNDOFF if way == "keep" else HALF_ROUNDOFF)
    errors = worst(found, exact_results(operation, arguments))
    for mine, other, error, bound in zip(found, eager, errors, allowed, strict=True):
        if mine.dtype is not other.dtype or mine.shape != other.shape:
            row.wrong[number] = f"{mine.dtype} {list(mine.shape)}, torch has {other.dtype} {list(other.shape)}"
        elif error > bound:
            row.wrong[number] = f"error {error:.2e} of {bound:.2e}"
        if error:
            row.worst_share = max(row.worst_share, error / bound if bound else float("inf"))
    row.right += number not in row.wrong


def _function(info: OpInfo) -> Operation:
    """Return what is tested: where the test wraps it to set a seed, which dynamo leaves out, the function itself."""
    import torch

    is_wrapped = getattr(info.op, "__name__", "") == "<lambda>"
    return cast("Operation", attrgetter(info.name)(torch) if is_wrapped else info.op)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from talking."""
    previous = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)
