"""Calls in the forms in which models make them, small: every function, dtype and kind of shape, compiled and run.

Each is held against NumPy in float64, by ``benchmarks.model_ops`` as the lists of real calls are, and by ``check``.
"""

from __future__ import annotations

import pytest

from benchmarks.model_ops.run import Status, verdict_of
from spyrec.hardware.dtypes import DType
from spyrec.sweep.model_calls.cases import Argument, Case, Slice, Tensor

FLOAT16, BFLOAT16, FLOAT32, INT64, BOOL = DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.INT64, DType.BOOL
ALL = Slice(None, None, None)


def half(*shape: int, strides: tuple[int, ...] | None = None, offset: int = 0) -> Tensor:
    return Tensor(shape, FLOAT16, strides, offset)


def brain(*shape: int, strides: tuple[int, ...] | None = None, offset: int = 0) -> Tensor:
    return Tensor(shape, BFLOAT16, strides, offset)


def single(*shape: int, strides: tuple[int, ...] | None = None) -> Tensor:
    return Tensor(shape, FLOAT32, strides)


def whole(*shape: int, high: int = 100, strides: tuple[int, ...] | None = None) -> Tensor:
    return Tensor(shape, INT64, strides, 0, high)


def truth(*shape: int, strides: tuple[int, ...] | None = None) -> Tensor:
    return Tensor(shape, BOOL, strides)


def call(name: str, *arguments: Argument, **keywords: Argument) -> Case:
    return Case(f"torch.{name}", arguments, tuple(sorted(keywords.items())))


def upto(stop: int) -> Slice:
    return Slice(None, stop, None)


CALLS = [
    # element by element
    call("Tensor.add", whole(1, 1), 64),
    call("add", half(1, 1, 1), 1e-5),
    call("add", single(1, 5, 1), 1e-6),
    call("add", half(1, 4, 6, 16, strides=(384, 16, 64, 1)), half(1, 4, 6, 16)),
    call("add", brain(1, 3, 72), brain(1, 3, 72)),
    call("add", 1, half(2, 70)),
    call("add", whole(12), 41),
    call("add", whole(1, 5), whole(5)),
    call("add", half(0, 64), half(64)),
    call("add_", whole(), 12),
    call("add_", brain(4, 45), brain(4, 45)),
    call("sub", half(1, 4, 1, 9), half(1, 4, 1, 1)),
    call("sub", single(1, 3, 1, 1, strides=(12, 4, 4, 1)), single(1, 3, 1, 4)),
    call("sub", brain(1, 4, 6, 8, strides=(192, 8, 32, 1)), brain(1, 4, 6, 8)),
    call("mul", half(1, 1, 128), 1.0),
    call("mul", 0.1, half(1, 3, 40)),
    call("mul", half(1, 4, 6, 16), half(1, 1, 6, 16)),
    call("mul", brain(1, 7, 100), brain(1, 7, 100)),
    call("mul", single(1, 5, 64), half(64)),
    call("mul", brain(1, 5, 64), single(1, 5, 1)),
    call("mul", whole(28, 1), 14),
    call("mul", half(0, 48), half(0, 1)),
    call("Tensor.mul", brain(1, 5, 44), brain(1)),
    call("truediv", half(1, 1, 150), 16.0),
    call("truediv", whole(1, 14), 16384),
    call("Tensor.truediv", single(5, 8), single(5, 1)),
    call("Tensor.truediv", half(5, 8), half(5, 1)),
    call("div", whole(66), 6, rounding_mode="trunc"),
    call("floordiv", whole(272), 8),
    call("floordiv", whole(), 14),
    call("neg", half(1, 4, 1, 8, strides=(64, 16, 64, 1), offset=8)),
    call("neg", brain(1, 4, 6, 8, strides=(384, 16, 64, 1))),
    call("neg", single(48)),
    call("exp", half(1, 3, 1, 12)),
    call("exp", single(1, 3, 1, 8, 8)),
    call("log", single(1, 14)),
    call("log", half(14)),
    call("floor", single(1, 14)),
    call("floor", half(14)),
    call("rsqrt", half(1, 6, 1)),
    call("rsqrt", single(53, 1)),
    call("pow", half(1, 5, 64), 2),
    call("pow", single(1, 9, 16, strides=(144, 1, 9)), 2),
    call("pow", single(1, 5, 1, 1), -0.5),
    call("Tensor.pow", single(1, 1, 96), 2),
    call("cos", half(1, 5, 32, strides=(160, 1, 5))),
    call("cos", single(53, 16)),
    call("Tensor.cos", single(1, 1, 128)),
    call("sin", half(1, 1, 128)),
    call("sin", single(1, 5, 32)),
    call("Tensor.sin", single(1, 1, 128)),
    call("tanh", brain(1, 1, 190)),
    call("tanh", half(1, 1, 190)),
    call("sigmoid", half(4, 45)),
    call("nn.functional.silu", half(1, 5, 32, strides=(320, 64, 1))),
    call("nn.functional.silu", single(1, 5, 48)),
    call("nn.functional.silu", brain(1, 1, 200), inplace=False),
    call("nn.functional.gelu", brain(1, 5, 100), approximate="tanh"),
    call("nn.functional.gelu", half(13, 70, strides=(140, 1))),
    call("nn.functional.softplus", half(1, 5, 48)),
    call("nn.functional.dropout", half(1, 4, 5, 8, strides=(180, 45, 9, 1)), p=0.0, training=False),
    call("clamp", half(1, 5, 48), 0.0, float("inf")),
    call("clamp", brain(4, 45, strides=(90, 2)), max=7.0, min=None),
    call("clamp", half(4, 45), max=7.0, min=-7.0),
    call("clamp", whole(44), 0, 31),
    call("clamp_", whole(30), max=12),
    # comparisons and truth
    call("le", whole(1, 1, 1, 33), whole(1, 1, 12, 1)),
    call("lt", whole(44), 32),
    call("ge", whole(44), 50),
    call("gt", whole(), 0),
    call("eq", whole(1, 1), 70),
    call("__eq__", whole(1, 11), 1),
    call("and_", truth(1, 1, 1, 12), truth(1, 1, 1, 12)),
    call("and_", truth(), truth(1, 1, 1, 12)),
    call("or_", truth(1, 1), truth(1, 1)),
    call("invert", truth(2, 2)),
    call("all", truth(1, 11)),
    call("where", truth(1, 9), 0, whole(1, 9)),
    # conversions
    call("to", brain(1, 1, 96), FLOAT32),
    call("to", half(1, 1, 96), BFLOAT16),
    call("to", single(1, 5, 70), dtype=FLOAT16),
    call("to", whole(), "cuda:0"),
    call("to", half(7), "cpu"),
    call("to", half(5, 9), dtype=BOOL),
    call("to", brain(0, 48), dtype=BFLOAT16),
    call("Tensor.to", single(1, 1, 64)),
    call("float", whole(1, 1, 12)),
    call("float", half(1, 5, 1, 16, strides=(400, 1, 80, 5))),
    call("Tensor.float", whole(1, 1, 1)),
    call("long", half(5, 9)),
    call("type_as", single(1, 5, 44), brain(1, 5, 44)),
    call("Tensor.copy_", half(1, 8, 4), half(1, 8, 4, strides=(32, 1, 8))),
    call("Tensor.copy_", half(1, 6, 4, 8), single(1, 6, 4, 8)),
    # views and what moves elements
    call("Tensor.contiguous", half(1, 6, 4, 16, strides=(384, 16, 96, 1))),
    call("Tensor.contiguous", brain(1, 1, 4, 16)),
    call("Tensor.expand", truth(1, 1, 12, 20), 1, -1, 12, 20),
    call("Tensor.expand", half(1, 4, 1, 6, 16), -1, -1, 3, -1, -1),
    call("Tensor.expand", single(1, 8, 1), 1, -1, 1),
    call("expand_as", truth(1, 9, 1), half(1, 9, 40)),
    call("Tensor.view", half(1, 5, 64), (1, 5, -1, 16)),
    call("Tensor.view", brain(1, 1, 64), 1, 1, 4, 16),
    call("Tensor.view", half(0, 64), -1, 4, 16),
    call("view_as", half(1, 1, 2, 4, 2, 8), half(1, 1, 8, 16)),
    call("reshape", brain(1, 2, 4, 24, 8, strides=(384, 192, 0, 8, 1)), (1, 8, 24, 8)),
    call("Tensor.reshape", half(1, 5, 4, 16), 1, 5, -1),
    call("reshape", whole(28, 38, 2), (-1,)),
    call("flatten", half(1, 1, 4, 2, 1, 8), 3),
    call("flatten", brain(1, 2, 4, 5, 8, strides=(80, 40, 0, 8, 1)), 1, 2),
    call("transpose", half(1, 5, 4, 16), 1, 2),
    call("transpose", single(1, 8, 5), -2, -1),
    call("Tensor.transpose", brain(1, 4, 5, 16, strides=(320, 16, 64, 1)), 1, 2),
    call("permute", single(1, 3, 1, 8, 9), (0, 2, 3, 4, 1)),
    call("squeeze", half(1, 53, 16), 0),
    call("squeeze", whole(5, 1), 1),
    call("unsqueeze", whole(12), 0),
    call("unsqueeze", half(1, 2, 5, 16, strides=(160, 16, 32, 1)), 2),
    call("Tensor.unsqueeze", brain(1, 1, 16), 1),
    call("getitem", half(1, 5, 96), (ALL, Slice(-1, None, None), ALL)),
    call("getitem", whole(1, 12), (ALL, None, ALL)),
    call("getitem", brain(1, 4, 5, 16, strides=(320, 16, 64, 1)), (..., upto(8))),
    call("getitem", half(1, 4, 5, 17), (..., upto(-1))),
    call("getitem", single(4, 34), (..., Slice(None, None, 2))),
    call("getitem", half(1, 3, 6, 4), (..., None)),
    call("getitem", half(1, 9, 7, 5), 0),
    call("getitem", whole(9), (-1,)),
    call("getitem", half(11, 48), whole(30, high=11)),
    call("getitem", brain(1, 45), whole(4, high=1, strides=(0,))),
    call("getitem", truth(1, 11), (whole(1, 1, 1, 1), whole(1, 1, 1, 11))),
    call("cat", (half(1, 1, 8), half(1, 1, 8)), dim=-1),
    call("cat", (brain(0), brain(1, 2, 5, 16, strides=(160, 16, 32, 1))), dim=-2),
    call("cat", (whole(1, 12), whole(1, 1)), dim=-1),
    call("cat", (half(0, 24), half(2, 24), half(0, 24), half(1, 24)), dim=0),
    call("stack", (whole(4, 5, strides=(1, 0)), whole(4, 5, strides=(0, 1))), dim=-1),
    call("chunk", half(1, 5, 64), 2, dim=-1),
    call("chunk", whole(20, 2), 2, -1),
    call("split", half(9, 48), (0, 2, 0, 3, 4, 0), dim=0),
    call("split", brain(1, 5, 80), (48, 24, 8), dim=-1),
    call("functional.split", half(1, 6, 40, strides=(240, 1, 6)), (24, 8, 8), dim=-1),
    call("functional.meshgrid", whole(4), whole(5), indexing="ij"),
    call("repeat", whole(1), 1, 1),
    call("repeat_interleave", half(1, 5, 1, 16), 6, dim=2, output_size=6),
    call("repeat_interleave", brain(1, 45), 4, dim=0),
    call("nn.functional.pad", half(1, 5, 3, 8), (0, 0, 0, 0, 0, 9, 0, 0), "constant", 0),
    call("nn.functional.pad", single(1, 5, 3), (0, 0, 0, 9, 0, 0), "constant", 0),
    call("nn.functional.pad", half(1, 12, 11), (-7, 0), "constant"),
    call("tril", truth(5, 5), diagonal=-1),
    call("clone", whole(1, 1)),
    call("as_tensor", whole(1, 2)),
    # values from nothing
    call("zeros", (1, 2, 20, 16), dtype=BFLOAT16),
    call("zeros", (0, 48), dtype=FLOAT16),
    call("zeros_like", single(1, 1, 3, 4, 8)),
    call("empty_like", whole(30)),
    call("new_ones", whole(1, 1, 11, 1), (), dtype=BOOL),
    call("ones", 6, 6, dtype=BOOL),
    call("full", (9, 9), dtype=FLOAT16, fill_value=-65472.0),
    call("arange", 14),
    call("arange", 0, 64, dtype=INT64),
    call("tensor", (7,)),
    call("sym_sum", (1, 65)),
    # folds
    call("sum", half(1, 1, 4, 2, 2, 8), 4, keepdim=True),
    call("sum", single(1, 1, 6, 3, 4, 8), -1),
    call("sum", whole(7, 5), 0),
    call("sum", half(0, 8), 0),
    call("mean", half(1, 5, 64), -1, keepdim=True),
    call("mean", single(1, 9, 16, strides=(144, 1, 9)), -1, keepdim=True),
    call("Tensor.mean", single(1, 1, 96), -1),
    call("max", half(1, 4, 1, 33), dim=-1, keepdim=True),
    call("max", brain(1, 4, 5, 33), dim=-1, keepdim=True),
    call("max", whole(9)),
    call("prod", whole(1, 2), dim=-1),
    call("cumsum", single(1, 3, 1, 8, 8), dim=-2),
    call("cumsum", half(1, 3, 1, 8, strides=(24, 1, 24, 3)), dim=-1),
    call("cumsum", half(9), dim=0, dtype=DType.INT32),
    call("softmax", single(5, 6), dim=1),
    call("nn.functional.softmax", half(1, 4, 1, 33), dim=-1, dtype=FLOAT16),
    call("nn.functional.softmax", brain(5, 4), dim=1, dtype=BFLOAT16),
    call("nn.functional.softmax", half(5, 40), dim=-1, dtype=FLOAT32),
    call("rms_norm", brain(1, 5, 96), (96,), brain(96), 1e-5),
    call("histc", single(30), bins=16, max=15, min=0),
    # by index
    call("nn.functional.embedding", whole(1, 5), half(70, 48), None, None, 2.0, False, False),
    call("nn.functional.embedding", whole(1, 5), brain(70, 48), 11, None, 2.0, False, False),
    call("index_copy_", half(1, 2, 20, 16), 2, whole(5), half(1, 2, 5, 16, strides=(160, 16, 32, 1))),
    call("index_copy_", brain(1, 2, 20, 16), 2, whole(1), brain(1, 2, 1, 16)),
    call("index_add", half(11, 40), 0, whole(30), half(30, 40)),
    call("scatter", half(5, 16), 1, whole(5, 3), 1),
    call("setitem", whole(30), whole(30), whole(30)),
    call("masked_fill", half(1, 3, 1, 6, 6, strides=(18, 1, 18, 3, 0)), truth(6, 6), 0),
    call("masked_fill", single(1, 3, 2, 2), truth(2, 2), float("-inf")),
    call("masked_fill_", brain(9, 40), truth(9, 1), 0.0),
    call("masked_scatter", half(1, 9, 40), truth(1, 9, 1), half(4, 40)),
    call("masked_scatter", brain(1, 9, 40), truth(1, 9, 40, strides=(9, 1, 0)), brain(4, 40)),
    call("sort", whole(30)),
    call("sort", whole(30), 0),
    call("topk", half(1, 32), 4, dim=-1),
    call("topk", single(11, 64), 6, dim=1),
    call("topk", brain(1, 32), 4, dim=-1),
    # sums of products
    call("nn.functional.linear", half(1, 5, 96), half(70, 96)),
    call("nn.functional.linear", brain(1, 1, 45), brain(64, 45), brain(64)),
    call("nn.functional.linear", half(0, 48), half(32, 48)),
    call("nn.functional.linear", half(1, 1, 96, offset=480), half(100, 96)),
    call("matmul", single(1, 64, 1), single(1, 1, 12)),
    call("matmul", half(1, 4, 5, 16), half(1, 4, 16, 33)),
    call("matmul", brain(1, 4, 1, 8), brain(1, 4, 8, 16, strides=(512, 128, 1, 8))),
    call("bmm", half(4, 1, 45), half(4, 45, 48)),
    call("bmm", brain(4, 1, 45), brain(4, 45, 48)),
    call("nn.functional.scaled_dot_product_attention", *(half(1, 4, 5, 16),) * 3, is_causal=True, scale=0.25),
    call(
        "nn.functional.scaled_dot_product_attention",
        brain(1, 6, 7, 16),
        brain(1, 2, 7, 16, strides=(2048, 1024, 16, 1)),
        brain(1, 2, 7, 16),
        dropout_p=0.0,
        enable_gqa=True,
        is_causal=True,
    ),
    call("conv1d", half(1, 24, 11, strides=(528, 1, 48)), half(24, 1, 4), half(24), (1,), (3,), (1,), 24),
    call("conv2d", half(1, 3, 28, 42, strides=(3, 1, 126, 3)), half(16, 3, 14, 14), None, (14, 14), (0, 0), (1, 1), 1),
    call("ops.transformers.grouped_mm_fallback", half(9, 24), half(4, 24, 40, strides=(960, 1, 24))),
    call("ops.transformers.grouped_mm_fallback", brain(9, 24), brain(4, 24, 40)),
]
"""Calls as models make them, at a hundredth of the size."""

NAMES = """
Tensor.add Tensor.contiguous Tensor.copy_ Tensor.cos Tensor.expand Tensor.float Tensor.mean Tensor.mul Tensor.pow
Tensor.reshape Tensor.sin Tensor.to Tensor.transpose Tensor.truediv Tensor.unsqueeze Tensor.view __eq__ add add_ all
and_ arange as_tensor bmm cat chunk clamp clamp_ clone conv1d conv2d cos cumsum div empty_like eq exp expand_as
flatten float floor floordiv full functional.meshgrid functional.split ge getitem gt histc index_add index_copy_
invert le log long lt masked_fill masked_fill_ masked_scatter matmul max mean mul neg new_ones nn.functional.dropout
nn.functional.embedding nn.functional.gelu nn.functional.linear nn.functional.pad
nn.functional.scaled_dot_product_attention nn.functional.silu nn.functional.softmax nn.functional.softplus ones
ops.transformers.grouped_mm_fallback or_ permute pow prod repeat repeat_interleave reshape rms_norm rsqrt scatter
setitem sigmoid sin softmax sort split squeeze stack sub sum sym_sum tanh tensor to topk transpose tril truediv
type_as unsqueeze view_as where zeros zeros_like
"""
"""What the models call; one call of theirs, that of a usage counter, computes nothing."""


def title(case: Case) -> str:
    shapes = ",".join(f"{tensor.dtype.value}{list(tensor.shape)}" for tensor in case.tensors)
    return f"{case.op.removeprefix('torch.')}({shapes})"


@pytest.mark.parametrize("case", CALLS, ids=title)
def test_a_call_of_a_model_is_right(case: Case) -> None:
    verdict = verdict_of(case, None)
    assert verdict.status is Status.RIGHT, verdict.reason


def test_every_function_dtype_and_kind_of_shape_is_called() -> None:
    assert {case.op.removeprefix("torch.") for case in CALLS} == set(NAMES.split())
    tensors = [tensor for case in CALLS for tensor in case.tensors]
    assert {tensor.dtype for tensor in tensors} == {FLOAT16, BFLOAT16, FLOAT32, INT64, BOOL}
    assert {len(tensor.shape) for tensor in tensors} == set(range(7))
    assert {0, 1} <= {extent for tensor in tensors for extent in tensor.shape}
    assert any(tensor.offset for tensor in tensors)
    assert any(0 in (tensor.strides or ()) for tensor in tensors)
