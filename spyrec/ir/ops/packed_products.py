"""Matrix products of grouped, scaled and packed operands.

The host computes them, unpacked, in float64.  Where a packed weight is constant it is unpacked when a graph is
compiled, and the device multiplies (D207).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from spyrec.dataclass import dataclass
from spyrec.hardware.dtypes import DeviceFormat, DType
from spyrec.ir.attributes import NO_ATTRIBUTES, NoAttributes
from spyrec.ir.host_definition import HostRules, define_on_host
from spyrec.ir.index_operands import require_index
from spyrec.ir.opdef import (
    Array,
    Attributes,
    AxisSources,
    OperandSpec,
    OperandTypes,
    OpError,
    PackedWeight,
    Roundings,
    rule,
)
from spyrec.ir.operands import Floats, common_float, floats, integers, require_rank, tensor, unsupported
from spyrec.ir.samples import f16, f32
from spyrec.ir.shapes import Shape, broadcast, show
from spyrec.ir.types import TensorType

# --- grouped_mm -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupedAttributes:
    """``out_dtype``: by default that of the operands, which is all that is supported."""

    out_dtype: DType | None = None


def _groups(a: TensorType, b: TensorType) -> int | None:
    """Return how many ends ``offs`` has, ``None`` where it is not known by the matrices."""
    return a.shape[0] if a.rank == 3 else b.shape[0] if b.rank == 3 else None


def _infer_grouped(operands: OperandTypes, attributes: GroupedAttributes) -> tuple[TensorType, ...]:
    a, b, offs = tensor(operands), tensor(operands, 1), operands[2]
    require_rank(a, (2, 3), 0)
    require_rank(b, (2, 3), 1)
    dtype = common_float((a, b))
    if attributes.out_dtype not in (None, dtype):
        raise unsupported("out_dtype", f'"{attributes.out_dtype.value}"', "convert the result with to(...)")
    if operands[3] is not None:
        raise unsupported("bias", str(operands[3]), "add it to the result")
    if a.shape[-1] != b.shape[-2]:
        message = f"grouped_mm contracts {a.shape[-1]} with {b.shape[-2]}: the last dim of mat_a, dim -2 of mat_b"
        raise OpError("SPY0213", message, operand=1)
    if a.rank == b.rank == 3:
        if offs is not None:
            raise OpError("SPY0219", "offs has no place beside two batches", operand=2)
        batch = broadcast([(0, a.shape[:1]), (1, b.shape[:1])])
        return (TensorType((*batch, a.shape[1], b.shape[2]), dtype),)
    if offs is None:
        raise OpError("SPY0219", 'operand 2 ("offs") says where each group ends, and is absent', operand=2)
    found, groups = require_index(operands, 2), _groups(a, b)
    if found.rank != 1 or groups not in (None, found.element_count):
        raise OpError("SPY0207", f"{found} has not one end for each of the {groups} groups", operand=2)
    columns = (a.shape[-2], b.shape[-1])
    return (TensorType((found.element_count, *columns) if groups is None else columns, dtype),)


def _ends(operands: Sequence[Array | None], extent: int) -> list[tuple[int, int]]:
    """Return where each group begins and ends.  Errors: SPY0231 ends that fall, or that pass the dim."""
    ends = [0, *integers(operands, 2).tolist()]
    for number, (one, other) in enumerate(pairwise(ends)):
        if not one <= other <= extent:
            message = f"group {number} runs from {one} to {other} of a dim of extent {extent}"
            raise OpError(
                "SPY0231", message, hint="offs are the ends of the groups, none below the one before", operand=2
            )
    return list(pairwise(ends))


def _grouped(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    """What lies behind the last group, which PyTorch leaves as it is, is 0."""
    a, b = floats(operands), floats(operands, 1)
    if a.ndim == b.ndim == 3:
        return (np.matmul(a, b),)
    if a.ndim == b.ndim:
        return (np.stack([a[:, i:j] @ b[i:j] for i, j in _ends(operands, a.shape[1])] or [np.zeros((0, 0))]),)
    result = np.zeros((a.shape[-2], b.shape[-1]))
    along_rows = b.ndim == 3
    for number, (i, j) in enumerate(_ends(operands, result.shape[0 if along_rows else 1])):
        if along_rows:
            result[i:j] = a[i:j] @ b[number]
        else:
            result[:, i:j] = a[number] @ b[:, i:j]
    return (result,)


for _name in ("grouped_mm", "_grouped_mm"):
    define_on_host(
        _name,
        "the rows (or columns) up to each end in offs times the matrix of their group",
        (
            OperandSpec("mat_a"),
            OperandSpec("mat_b"),
            OperandSpec("offs", is_optional=True),
            OperandSpec("bias", is_optional=True),
        ),
        HostRules(rule(GroupedAttributes, _infer_grouped), _grouped),
        (
            ((f16(2, 3, 5), f16(2, 5, 4), None, None), GroupedAttributes()),
            ((f32(1, 3, 5), f32(2, 5, 4), None, None), GroupedAttributes()),
        ),
        GroupedAttributes,
    )

# --- scaled_mm --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScaledAttributes:
    """``out_dtype``: of the result, needed of 8-bit operands; ``use_fast_accum`` changes nothing here."""

    out_dtype: DType | None = None
    use_fast_accum: bool = False


_EIGHT_BITS = frozenset({DeviceFormat.SEN143_FP8, DeviceFormat.SEN152_FP8})
_FLOATS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32)


def _require_scale(operands: OperandTypes, index: int, rows: Shape) -> None:
    """Refuse a scale that is neither one number nor one for each row of the first, column of the second matrix."""
    found = tensor(operands, index)
    if found.dtype is not DType.FLOAT32:
        raise OpError("SPY0203", f"the scale is {found}, not of float32", operand=index)
    if found.element_count != 1 and found.shape != rows:
        message = f"the scale is {found}, neither one number nor {show(rows)}"
        raise OpError("SPY0207", message, operand=index)


def _infer_scaled(operands: OperandTypes, attributes: ScaledAttributes) -> tuple[TensorType, ...]:
    a, b = tensor(operands), tensor(operands, 1)
    for index, operand in enumerate((a, b)):
        require_rank(operand, (2,), index)
        if operand.dtype.device_format not in _EIGHT_BITS:
            raise OpError("SPY0202", f"{operand} is not of 8-bit floats", operand=index)
    if a.shape[1] != b.shape[0]:
        message = (
            f"_scaled_mm contracts {a.shape[1]} with {b.shape[0]}: dim 1 of the first operand, dim 0 of the second"
        )
        raise OpError("SPY0213", message, operand=1)
    _require_scale(operands, 2, (a.shape[0], 1))
    _require_scale(operands, 3, (1, b.shape[1]))
    if attributes.out_dtype not in _FLOATS:
        given = "null" if attributes.out_dtype is None else f'"{attributes.out_dtype.value}"'
        raise unsupported("out_dtype", given, 'nothing makes 8-bit floats: choose "bfloat16", "float16" or "float32"')
    bias = operands[4]
    if bias is not None and (bias.shape != b.shape[1:] or bias.dtype not in _FLOATS):
        raise OpError("SPY0207", f"the bias {bias} is not a float for each of {b.shape[1]} columns", operand=4)
    if operands[5] is not None:
        raise unsupported("scale_result", str(operands[5]), "multiply the result")
    return (TensorType((a.shape[0], b.shape[1]), attributes.out_dtype),)


def _scaled(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    product = floats(operands) @ floats(operands, 1)
    for index in (2, 3):
        scale = floats(operands, index)
        product = product * (scale.reshape(()) if scale.size == 1 else scale)
    return (product if operands[4] is None else product + floats(operands, 4),)


def _f8(*shape: int) -> TensorType:
    return TensorType(shape, DType.FLOAT8_E4M3FN)


define_on_host(
    "_scaled_mm",
    "product of 8-bit float matrices, times a scale of each, plus bias",
    (
        *(OperandSpec(name) for name in ("input", "mat2", "scale_a", "scale_b")),
        OperandSpec("bias", is_optional=True),
        OperandSpec("scale_result", is_optional=True),
    ),
    HostRules(rule(ScaledAttributes, _infer_scaled), _scaled, formats=_EIGHT_BITS),
    (
        ((_f8(3, 5), _f8(5, 4), f32(), f32(1), None, None), ScaledAttributes(DType.FLOAT32)),
        ((_f8(3, 5), _f8(5, 4), f32(3, 1), f32(1, 4), f16(4), None), ScaledAttributes(DType.FLOAT16)),
    ),
    ScaledAttributes,
)

# --- weights of 8 and 4 bits ------------------------------------------------------------------------------------------


_UNPACKED = Roundings(1.0, 1.0)
"""A sum of products is rounded once, and each number of an unpacked weight was, too (D207)."""


def _infer_int8(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    x, weight, scales = (tensor(operands, index) for index in range(3))
    require_rank(x, (2,), 0)
    require_rank(weight, (2,), 1)
    dtype = common_float((x, None, scales))
    if weight.dtype is not DType.INT8:
        raise OpError("SPY0202", f"the weight is {weight}, not of int8", operand=1)
    if x.shape[1] != weight.shape[1]:
        message = f"the input has {x.shape[1]} features, and the weight takes {weight.shape[1]}"
        raise OpError("SPY0213", message, operand=1)
    if scales.shape != weight.shape[:1]:
        message = f"{scales} has not one scale for each of the {weight.shape[0]} rows of the weight"
        raise OpError("SPY0207", message, operand=2)
    return (TensorType((x.shape[0], weight.shape[0]), dtype),)


def _int8(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    return (floats(operands) @ floats(operands, 1).T * floats(operands, 2),)


define_on_host(
    "_weight_int8pack_mm",
    "input times the transposed int8 weight, each row of it times its scale",
    (OperandSpec("input"), OperandSpec("mat2"), OperandSpec("scales")),
    HostRules(_infer_int8, _int8, packed=PackedWeight("spyre.unpack_int8", (1, 2)), roundings=_UNPACKED),
    (
        ((f16(3, 8), TensorType((4, 8), DType.INT8), f16(4)), NO_ATTRIBUTES),
        ((f32(1, 8), TensorType((4, 8), DType.INT8), f32(4)), NO_ATTRIBUTES),
    ),
    NoAttributes,
)


def _infer_unpacked_int8(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    return (TensorType(tensor(operands).shape, tensor(operands, 1).dtype),)


def _unpacked_int8(operands: Sequence[Array | None], _: Attributes) -> tuple[Array, ...]:
    return (floats(operands) * floats(operands, 1)[:, None],)


def _axes_of_int8(_operands: OperandTypes, _: Attributes) -> AxisSources:
    return (((0, 0), (1, 0)), ((0, 1),))


define_on_host(
    "spyre.unpack_int8",
    "int8 weight, each row of it times its scale",
    (OperandSpec("mat2"), OperandSpec("scales")),
    HostRules(_infer_unpacked_int8, _unpacked_int8, _axes_of_int8, is_public=False),
    (((TensorType((4, 8), DType.INT8), f16(4)), NO_ATTRIBUTES),),
    NoAttributes,
)


@dataclass(frozen=True, slots=True)
class Int4Attributes:
    """``qGroupSize``: how many neighbours of a row have one scale and zero: 32, 64, 128 or 256."""

    qGroupSize: int  # noqa: N815 -- PyTorch's name


def _infer_int4(operands: OperandTypes, attributes: Int4Attributes) -> tuple[TensorType, ...]:
    x, weight, table = (tensor(operands, index) for index in range(3))
    require_rank(x, (2,), 0)
    require_rank(weight, (2,), 1)
    dtype = common_float((x, None, table))
    size = attributes.qGroupSize
    if weight.dtype is not DType.UINT8:
        raise OpError("SPY0202", f"the weight is {weight}, not of uint8 with two numbers in each", operand=1)
    if x.shape[1] != 2 * weight.shape[1]:
        message = f"the input has {x.shape[1]} features, and the weight {weight} holds rows of {2 * weight.shape[1]}"
        raise OpError("SPY0213", message, operand=1)
    if size not in (32, 64, 128, 256) or x.shape[1] % size:
        message = f"qGroupSize {size} is not 32, 64, 128 or 256, or does not divide {x.shape[1]}"
        raise OpError("SPY0209", message, attribute="qGroupSize")
    wanted = (x.shape[1] // size, weight.shape[0], 2)
    if table.shape != wanted:
        raise OpError("SPY0207", f"qScaleAndZeros is {table}, and the weight needs {show(wanted)}", operand=2)
    return (TensorType((x.shape[0], weight.shape[0]), dtype),)


def unpacked(packed: Array, table: Floats, size: int) -> Floats:
    """Return the weight ``[n, k]``: ``(nibble - 8) * scale + zero``, the first of two neighbours in the high nibble."""
    pairs = packed.astype(np.int64)
    nibbles = np.stack([pairs >> 4, pairs & 15], axis=-1).reshape(packed.shape[0], 2 * packed.shape[1])
    groups = np.repeat(table.transpose(1, 0, 2), size, axis=1)
    return (nibbles - 8) * groups[..., 0] + groups[..., 1]


def _int4(operands: Sequence[Array | None], attributes: Int4Attributes) -> tuple[Array, ...]:
    weight = unpacked(integers(operands, 1), floats(operands, 2), attributes.qGroupSize)
    return (floats(operands) @ weight.T,)


define_on_host(
    "_weight_int4pack_mm",
    "input times the transposed 4-bit weight: uint8 [n, k/2], the first of two neighbours in the high nibble",
    (OperandSpec("input"), OperandSpec("mat2"), OperandSpec("qScaleAndZeros")),
    HostRules(
        rule(Int4Attributes, _infer_int4),
        rule(Int4Attributes, _int4),
        packed=PackedWeight("spyre.unpack_int4", (1, 2)),
        roundings=_UNPACKED,
    ),
    (((f16(3, 64), TensorType((4, 32), DType.UINT8), f16(2, 4, 2)), Int4Attributes(32)),),
    Int4Attributes,
)


def _infer_unpacked_int4(operands: OperandTypes, _: Attributes) -> tuple[TensorType, ...]:
    rows, pairs = tensor(operands).shape
    return (TensorType((rows, 2 * pairs), tensor(operands, 1).dtype),)


def _unpacked_int4(operands: Sequence[Array | None], attributes: Int4Attributes) -> tuple[Array, ...]:
    return (unpacked(integers(operands), floats(operands, 1), attributes.qGroupSize),)


def _axes_of_int4(_operands: OperandTypes, _: Attributes) -> AxisSources:
    return (((0, 0), (1, 1)), ())


define_on_host(
    "spyre.unpack_int4",
    "4-bit weight, each group of a row of it times its scale, plus its zero",
    (OperandSpec("mat2"), OperandSpec("qScaleAndZeros")),
    HostRules(_infer_unpacked_int4, rule(Int4Attributes, _unpacked_int4), _axes_of_int4, is_public=False),
    (((TensorType((4, 32), DType.UINT8), f16(2, 4, 2)), Int4Attributes(32)),),
    Int4Attributes,
)
